//! How answers are shown to people: texts and tables.
//!
//! A line of an answer says its columns with `columns!`: each column's name beside what is in it.

use crate::hex::{SeidText, TeidText};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A line that is a row of a table.
pub trait Row {
    /// Names of the columns.
    const COLUMNS: &'static [(&'static str, Side)];

    /// What is in them.
    fn cells(&self) -> Vec<String>;
}

/// What a line's columns are called, which side they keep to, and what is in them.
#[macro_export]
macro_rules! columns {
    ($line:ty, |$it:ident| { $($name:literal $side:ident $cell:expr),+ $(,)? }) => {
        impl $crate::table::Row for $line {
            const COLUMNS: &'static [(&'static str, $crate::table::Side)] =
                &[$(($name, $crate::table::Side::$side)),+];

            fn cells(&self) -> Vec<String> {
                let $it = self;
                vec![$($crate::table::Cell::cell(&$cell)),+]
            }
        }
    };
}
pub(crate) use columns;

/// A value as it is written in a table.
pub trait Cell {
    /// As text; a dash for what is not there.
    fn cell(&self) -> String;
}

macro_rules! as_they_are {
    ($($type:ty),+) => {
        $(impl Cell for $type {
            fn cell(&self) -> String {
                self.to_string()
            }
        })+
    };
}
as_they_are!(u8, u16, u32, u64, str, String, IpAddr, Ipv4Addr, SocketAddr, SeidText, TeidText);

impl<T: Cell + ?Sized> Cell for &T {
    fn cell(&self) -> String {
        (**self).cell()
    }
}

impl<T: Cell> Cell for Option<T> {
    fn cell(&self) -> String {
        self.as_ref().map_or_else(|| "-".to_owned(), Cell::cell)
    }
}

impl<T: Cell> Cell for Vec<T> {
    fn cell(&self) -> String {
        if self.is_empty() {
            return "-".to_owned();
        }
        self.iter().map(Cell::cell).collect::<Vec<_>>().join(",")
    }
}

/// An answer for people: texts and tables, one below the other.
#[derive(Clone, Debug, Default)]
pub struct Page(Vec<Part>);

/// A part of a [`Page`].
#[derive(Clone, Debug)]
enum Part {
    /// Lines, each with its end.
    Text(String),
    Table(Table),
}

impl Page {
    /// A text, with the end of its last line.
    pub fn text(text: impl Into<String>) -> Self {
        let mut page = Self::default();
        page.say(text);
        page
    }

    /// A table.
    pub fn table<R: Row>(rows: &[R]) -> Self {
        Self(vec![Part::Table(Table::of(rows))])
    }

    /// Adds a text. What could steer a terminal is replaced.
    pub fn say(&mut self, text: impl Into<String>) {
        let steers = |c: char| c.is_control() && c != '\n';
        self.0.push(Part::Text(text.into().replace(steers, "\u{fffd}")));
    }

    /// Adds a table behind an empty line, if there are any rows.
    pub fn part<R: Row>(&mut self, rows: &[R]) {
        if !rows.is_empty() {
            self.say("\n");
            self.0.push(Part::Table(Table::of(rows)));
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Table(table) => table.fmt(f),
        })
    }
}

/// A table: a header, columns as wide as they have to be, numbers to the right.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows.
    pub fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// With these rows.
    pub fn of<R: Row>(rows: &[R]) -> Self {
        let mut table = Self::new(R::COLUMNS);
        rows.iter().for_each(|row| table.add(row.cells()));
        table
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.add(cells.into());
    }

    /// Cells may hold what a peer chose: what could steer a terminal is replaced.
    fn add(&mut self, cells: Vec<String>) {
        let clean = |cell: String| cell.replace(char::is_control, "\u{fffd}");
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
