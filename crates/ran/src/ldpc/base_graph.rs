//! The two base graphs (TS 38.212 Tables 5.3.2-2 and 5.3.2-3).
//!
//! A base graph is a sparse matrix. Lifted by Z, each of its entries becomes a Z by Z identity matrix, rotated by the entry's
//! shift. The shifts depend on the set that Z belongs to, so an entry has eight of them.
//!
//! The tables stand in two CSV files beside this one, an entry a line, as the standard prints them; the compiler reads them.

use std::ops::Range;

/// One of the two base graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BaseGraph {
    /// Base graph 1: for large blocks and high rates, down to 1/3.
    One,
    /// Base graph 2: for small blocks and low rates, down to 1/5.
    Two,
}

/// An entry of a base graph.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its row: a group of Z parity checks.
    pub row: u8,
    /// Its column: a group of Z bits.
    pub column: u8,
    /// Its shift for each of the eight sets of lifting sizes; to be taken modulo Z.
    pub shifts: [u16; 8],
}

/// Rows whose parity bits depend on each other; each later row brings one parity column that no other row has.
pub const CORE_ROWS: usize = 4;

/// Columns at the start that are never sent.
pub const PUNCTURED_COLUMNS: usize = 2;

/// The most columns of a graph.
pub const MOST_COLUMNS: usize = 68;

/// The most entries of a row.
pub const MOST_DEGREE: usize = 19;

static ONE: [Entry; 316] = read(include_str!("base-graph-1.csv"));
static TWO: [Entry; 197] = read(include_str!("base-graph-2.csv"));

impl BaseGraph {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    /// The entries, by rows and then by columns.
    pub fn entries(self) -> &'static [Entry] {
        match self {
            Self::One => &ONE,
            Self::Two => &TWO,
        }
    }

    /// How many columns hold information bits.
    pub const fn info_columns(self) -> usize {
        match self {
            Self::One => 22,
            Self::Two => 10,
        }
    }

    /// How many rows there are, and parity columns.
    pub const fn rows(self) -> usize {
        match self {
            Self::One => 46,
            Self::Two => 42,
        }
    }

    /// How many columns there are.
    pub const fn columns(self) -> usize {
        self.info_columns() + self.rows()
    }

    /// The parity columns that the first four rows share.
    pub const fn core_columns(self) -> Range<usize> {
        self.info_columns()..self.info_columns() + CORE_ROWS
    }
}

/// The table of a CSV file: a line of titles, then lines of ten numbers.
const fn read<const N: usize>(csv: &str) -> [Entry; N] {
    let csv = csv.as_bytes();
    let mut at = 0;
    while csv[at] != b'\n' {
        at += 1;
    }
    let mut entries = [Entry { row: 0, column: 0, shifts: [0; 8] }; N];
    let mut line = 0;
    while line < N {
        let mut field = 0;
        while field < 10 {
            at += 1; // a comma, or the end of the line before
            let mut number = 0;
            while at < csv.len() && csv[at].is_ascii_digit() {
                number = number * 10 + (csv[at] - b'0') as u16;
                at += 1;
            }
            match field {
                0 => entries[line].row = number as u8,
                1 => entries[line].column = number as u8,
                _ => entries[line].shifts[field - 2] = number,
            }
            field += 1;
        }
        line += 1;
    }
    assert!(at + 1 == csv.len(), "as many lines as entries");
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_shape_that_the_standard_gives_them() {
        for graph in BaseGraph::ALL {
            let entries = graph.entries();
            assert!(entries.is_sorted_by_key(|entry| (entry.row, entry.column)));
            assert_eq!(usize::from(entries.last().map_or(0, |entry| entry.row)) + 1, graph.rows());
            assert!(entries.iter().all(|entry| usize::from(entry.column) < graph.columns()));
            assert!(entries.iter().all(|entry| entry.shifts.iter().all(|&shift| shift < 384)));
            for row in 0..graph.rows() {
                let degree = entries.iter().filter(|entry| usize::from(entry.row) == row).count();
                assert!((3..=MOST_DEGREE).contains(&degree));
            }
            // The columns of the later rows: one entry each, on the diagonal and not rotated.
            for entry in entries.iter().filter(|entry| usize::from(entry.column) >= graph.core_columns().end)
            {
                assert_eq!(usize::from(entry.column), graph.info_columns() + usize::from(entry.row));
                assert_eq!(entry.shifts, [0; 8]);
            }
        }
        assert_eq!(BaseGraph::One.columns(), MOST_COLUMNS);
    }

    #[test]
    fn some_entries_are_those_that_the_standard_prints() {
        let at = |graph: BaseGraph, row, column| {
            graph
                .entries()
                .iter()
                .find(|entry| (entry.row, entry.column) == (row, column))
                .map(|entry| entry.shifts)
        };
        assert_eq!(at(BaseGraph::One, 0, 0), Some([250, 307, 73, 223, 211, 294, 0, 135]));
        assert_eq!(at(BaseGraph::One, 1, 22), Some([0, 0, 0, 0, 0, 0, 105, 0]));
        assert_eq!(at(BaseGraph::One, 0, 4), None);
        assert_eq!(at(BaseGraph::Two, 0, 0), Some([9, 174, 0, 72, 3, 156, 143, 145]));
        assert_eq!(at(BaseGraph::Two, 2, 10), Some([1, 1, 1, 0, 1, 1, 1, 0]));
    }
}
