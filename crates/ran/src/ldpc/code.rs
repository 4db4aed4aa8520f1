//! A code: a base graph, lifted by one of the 51 sizes (TS 38.212 Table 5.3.2-1).

use super::Error;
use super::base_graph::{BaseGraph, CORE_ROWS, PUNCTURED_COLUMNS};

/// The largest lifting size.
pub const MOST_LIFTING: usize = 384;

/// A size Z by which a base graph may be lifted: an odd number of up to 15, or 2, times a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LiftingSize(u16);

/// A set of lifting sizes shares its shifts: the number that its sizes are multiples of, by the set's index.
const SETS: [usize; 8] = [2, 3, 5, 7, 9, 11, 13, 15];

impl LiftingSize {
    /// The size, if there is one of that number.
    pub fn new(z: usize) -> Result<Self, Error> {
        let exists = SETS.iter().any(|first| z.is_multiple_of(*first) && (z / first).is_power_of_two());
        if exists && z <= MOST_LIFTING { Ok(Self(z as u16)) } else { Err(Error::LiftingSize(z)) }
    }

    /// All 51 of them, the smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (2..=MOST_LIFTING).filter_map(|z| Self::new(z).ok())
    }

    /// As a number.
    pub const fn get(self) -> usize {
        self.0 as usize
    }

    /// The index of its set, i_LS.
    fn set(self) -> usize {
        // The odd part of a size tells its set; a power of two belongs to the first.
        match self.0 >> self.0.trailing_zeros() {
            1 => 0,
            odd => usize::from(odd / 2),
        }
    }
}

/// A code of NR: K information bits become N = K + (rows - 2) Z coded ones.
///
/// The order of bits is that of TS 38.212 §5.3.2. The first 2 Z information bits are never sent, so the coded bits are the other
/// K - 2 Z information bits and then all parity bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    graph: BaseGraph,
    z: LiftingSize,
}

/// An entry of a lifted base graph: check `i` of the row has bit `(i + shift) % Z` of the column in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The row.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// The shift, less than Z.
    pub shift: usize,
}

impl Code {
    /// The code of `graph`, lifted by `z`.
    pub const fn of(graph: BaseGraph, z: LiftingSize) -> Self {
        Self { graph, z }
    }

    /// The same for a number that may be no lifting size.
    pub fn new(graph: BaseGraph, z: usize) -> Result<Self, Error> {
        Ok(Self::of(graph, LiftingSize::new(z)?))
    }

    /// All 102 of them.
    pub fn all() -> impl Iterator<Item = Self> {
        BaseGraph::ALL.into_iter().flat_map(|graph| LiftingSize::all().map(move |z| Self::of(graph, z)))
    }

    /// The base graph.
    pub const fn graph(self) -> BaseGraph {
        self.graph
    }

    /// The lifting size Z.
    pub const fn z(self) -> usize {
        self.z.get()
    }

    /// How many information bits a block has, fillers among them: K.
    pub const fn info_bits(self) -> usize {
        self.graph.info_columns() * self.z()
    }

    /// How many coded bits a block has: N.
    pub const fn coded_bits(self) -> usize {
        (self.graph.columns() - PUNCTURED_COLUMNS) * self.z()
    }

    /// How many information bits, at the block's start, are not among the coded ones: 2 Z.
    pub const fn punctured_bits(self) -> usize {
        PUNCTURED_COLUMNS * self.z()
    }

    /// How many rows can be used of a block of which the first `coded` coded bits were received. The parity bits of later rows
    /// are unknown, so these rows say nothing.
    pub fn rows_for(self, coded: usize) -> usize {
        let columns = PUNCTURED_COLUMNS + coded.div_ceil(self.z());
        columns.saturating_sub(self.graph.info_columns()).clamp(CORE_ROWS, self.graph.rows())
    }

    /// The edges, by rows and then by columns.
    pub fn edges(self) -> impl Iterator<Item = Edge> {
        let set = self.z.set();
        self.graph.entries().iter().map(move |entry| Edge {
            row: usize::from(entry.row),
            column: usize::from(entry.column),
            shift: usize::from(entry.shifts[set]) % self.z(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 5.3.2-1, row by row.
    const TABLE: [&[usize]; 8] = [
        &[2, 4, 8, 16, 32, 64, 128, 256],
        &[3, 6, 12, 24, 48, 96, 192, 384],
        &[5, 10, 20, 40, 80, 160, 320],
        &[7, 14, 28, 56, 112, 224],
        &[9, 18, 36, 72, 144, 288],
        &[11, 22, 44, 88, 176, 352],
        &[13, 26, 52, 104, 208],
        &[15, 30, 60, 120, 240],
    ];

    #[test]
    fn lifting_sizes_are_those_of_the_table() {
        let mut listed: Vec<_> = TABLE.concat();
        listed.sort_unstable();
        assert_eq!(LiftingSize::all().map(LiftingSize::get).collect::<Vec<_>>(), listed);
        for (set, sizes) in TABLE.iter().enumerate() {
            for &z in *sizes {
                assert_eq!(LiftingSize::new(z).map(LiftingSize::set), Ok(set));
            }
        }
        for z in [0, 1, 17, 23, 33, 383, 385, 416, 480, 512, usize::MAX] {
            assert_eq!(LiftingSize::new(z), Err(Error::LiftingSize(z)));
        }
    }

    #[test]
    fn a_code_counts_its_bits_and_the_rows_that_a_shortened_block_needs() {
        let code = Code::of(BaseGraph::One, LiftingSize(384));
        assert_eq!((code.info_bits(), code.coded_bits(), code.punctured_bits()), (8448, 25344, 768));
        // 8448 / 0.917 bits: 24 columns, so four of parity.
        assert_eq!(code.rows_for(9216), 4);
        assert_eq!(code.rows_for(9217), 5);
        assert_eq!(code.rows_for(0), 4);
        assert_eq!(code.rows_for(25344), 46);
        assert_eq!(code.rows_for(usize::MAX), 46);
        let code = Code::of(BaseGraph::Two, LiftingSize(2));
        assert_eq!((code.info_bits(), code.coded_bits(), code.punctured_bits()), (20, 100, 4));
        assert_eq!(Code::all().count(), 102);
        assert!(Code::all().all(|code| code.edges().all(|edge| edge.shift < code.z())));
    }
}
