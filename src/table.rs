//! Tables of text: a header, columns as wide as they have to be, numbers to the right.

use std::fmt;

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table.
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows.
    pub fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Cells may hold what a peer chose: what could steer a terminal is replaced.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        let clean =
            |cell: String| cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        self.rows.push(cells.into_iter().map(clean).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize, name: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(name.len())
        };
        let widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(column, (name, _))| width(column, name)).collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for ((cell, width), (_, side)) in cells.zip(&widths).zip(&self.columns) {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = if *side == Side::Left { ("", &*padding) } else { (&*padding, "") };
                text.extend([before, cell, after, "  "]);
            }
            writeln!(f, "{}", text.trim_end())
        };
        line(&mut self.columns.iter().map(|(name, _)| *name))?;
        self.rows.iter().try_for_each(|row| line(&mut row.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_steers_the_terminal() {
        let mut table = Table::new(&[("NAME", Side::Left), ("COUNT", Side::Right), ("NOTE", Side::Left)]);
        table.row(["a".into(), "1".into(), "ü".into()]);
        table.row(["longer".into(), "1234567".into(), "\x1b[2J".into()]);
        assert_eq!(
            table.to_string(),
            "NAME      COUNT  NOTE\na             1  ü\nlonger  1234567  \u{fffd}[2J\n"
        );
    }
}
