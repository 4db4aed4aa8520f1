//! What a device has to know of an LDPC code, as words that it can copy.
//!
//! A plan has a header, then for each row that is used its first edge (with one more, the end), then edges, then corrections. What the kernels for encoding and
//! decoding need is different, so there are two kinds of plans; each stays as it is for all batches of its task.

use crate::constants::constants;
use crate::task::Decoding;
use ran::ldpc::{BaseGraph, CORE_ROWS, Code, Correction, Edge, MOST_SAID};

constants! { "PLAN_", "src/plan.rs";
    /// The lifting size.
    Z = 0;
    /// Rows that are used.
    ROWS = 1;
    /// Columns that the code has.
    COLUMNS = 2;
    /// The first column that only one row has.
    CORE_END = 3;
    /// Information bits.
    INFO_BITS = 4;
    /// Bits at the start that are never sent.
    PUNCTURED = 5;
    /// Edges in the plan.
    EDGES = 6;
    /// Where the edges begin: each has its column in the upper half and its shift in the lower one.
    FIRST_EDGE = 7;
    /// For decoding: LLRs of a block.
    RECEIVED = 8;
    /// For decoding: the first filler bit; the last is the last information bit.
    FILLERS_FROM = 9;
    /// For decoding: the most iterations.
    ITERATIONS = 10;
    /// For decoding: whether to stop as soon as all checks hold.
    EARLY_STOP = 11;
    /// For decoding: where the corrections begin. Each has 12 words; a row has its number in the upper half, beside its first edge.
    CORRECTIONS = 12;
    /// For decoding: the greatest magnitude that is said.
    MOST_SAID_AT = 13;
    /// For encoding: the shift that is left of the first core column when the core's rows are added up.
    ODD = 8;
    /// For encoding: the shifts of the first core column in the core's rows, or [`NONE`].
    CORE_SHIFTS = 9;
    /// Words of the header.
    HEADER = 16;
    /// No shift.
    NONE = 0xffff;
    /// Rows of the core.
    CORE_ROWS_NUMBER = 4;
    /// The most edges of a row.
    MOST_DEGREE = 19;
    /// Octets of a verdict.
    VERDICT = 4;
}

const _: () = {
    assert!(CORE_ROWS == CORE_ROWS_NUMBER);
    assert!(MOST_DEGREE == ran::ldpc::MOST_DEGREE);
    assert!(VERDICT == crate::task::VERDICT);
};

/// The words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    words: Vec<u32>,
}

impl Plan {
    /// For decoding. Columns of which all bits are fillers are left out: checks don't hear them.
    pub fn decode(decoding: &Decoding) -> Self {
        let code = decoding.code();
        let (z, rows) = (code.z(), code.rows_for(decoding.received()));
        let fillers_from = code.info_bits() - decoding.fillers();
        let is_filler = |column: usize| column * z >= fillers_from && (column + 1) * z <= code.info_bits();
        let edges: Vec<Edge> =
            code.edges().filter(|edge| edge.row < rows && !is_filler(edge.column)).collect();
        let mut corrections: Vec<&Correction> = Vec::new();
        let mut plan = Self::new(code, rows, &edges, |degree| {
            let correction = Correction::of(degree);
            corrections.iter().position(|known| *known == correction).unwrap_or_else(|| {
                corrections.push(correction);
                corrections.len() - 1
            })
        });
        for (at, word) in [
            (RECEIVED, decoding.received()),
            (FILLERS_FROM, fillers_from),
            (ITERATIONS, decoding.effort().iterations),
            (EARLY_STOP, usize::from(decoding.effort().early_stop)),
            (CORRECTIONS, plan.words.len()),
            (MOST_SAID_AT, usize::from(MOST_SAID)),
        ] {
            plan.words[at] = word as u32;
        }
        for correction in corrections {
            for table in [&correction.first, &correction.gap, &correction.second] {
                plan.words.extend(table.as_chunks().0.iter().map(|octets| u32::from_le_bytes(*octets)));
            }
        }
        plan
    }

    /// For encoding: the edges that a row's parity is the sum of.
    pub fn encode(code: Code) -> Self {
        let core = code.graph().core_columns();
        let summed = |edge: &Edge| edge.column < if edge.row < CORE_ROWS { core.start } else { core.end };
        let edges: Vec<Edge> = code.edges().filter(summed).collect();
        let mut plan = Self::new(code, code.graph().rows(), &edges, |_| 0);
        let mut odd = 0;
        for row in 0..CORE_ROWS {
            let first = code.edges().find(|edge| edge.row == row && edge.column == core.start);
            let shift = first.map(|edge| edge.shift);
            // Of three shifts, two are the same.
            odd ^= shift.unwrap_or(0);
            plan.words[CORE_SHIFTS + row] = shift.unwrap_or(NONE) as u32;
        }
        plan.words[ODD] = odd as u32;
        plan
    }

    fn new(code: Code, rows: usize, edges: &[Edge], mut more: impl FnMut(usize) -> usize) -> Self {
        let mut words = vec![0; HEADER];
        for (at, word) in [
            (Z, code.z()),
            (ROWS, rows),
            (COLUMNS, code.graph().columns()),
            (CORE_END, code.graph().core_columns().end),
            (INFO_BITS, code.info_bits()),
            (PUNCTURED, code.punctured_bits()),
            (EDGES, edges.len()),
            (FIRST_EDGE, HEADER + rows + 1),
        ] {
            words[at] = word as u32;
        }
        let mut first = 0;
        for row in 0..rows {
            let degree = edges.iter().filter(|edge| edge.row == row).count();
            words.push((more(degree) << 16 | first) as u32);
            first += degree;
        }
        words.push(first as u32);
        words.extend(edges.iter().map(|edge| (edge.column << 16 | edge.shift) as u32));
        Self { words }
    }

    /// As they go to the device.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    fn word(&self, at: usize) -> usize {
        self.words[at] as usize
    }

    /// Octets that decoding a block needs: bits, and messages.
    pub fn decoding_octets(&self) -> usize {
        let columns = self.word(CORE_END) + self.word(ROWS) - CORE_ROWS;
        (columns + self.word(EDGES)) * self.word(Z)
    }

    /// Octets that encoding a block needs.
    pub fn encoding_octets(&self) -> usize {
        (self.word(COLUMNS) + CORE_ROWS) * self.word(Z)
    }

    /// Threads that a block can use: a check each.
    pub fn threads(&self) -> usize {
        self.word(Z)
    }
}

/// The most octets that decoding needs: the largest code at its lowest rate.
pub fn most_decoding_octets() -> usize {
    let edges = BaseGraph::One.entries().len();
    (BaseGraph::One.columns() + edges) * ran::ldpc::MOST_LIFTING
}
