//! From information bits to coded bits (TS 38.212 §5.3.2).
//!
//! A row's parity is the sum of columns, each rotated by its edge's shift. Columns stay packed, eight bits to an octet. To rotate
//! one without moving bits, eight copies are kept of it, each a bit further on and with the column's start repeated behind its
//! end: a rotation is then a load from some octet of one of them.
//!
//! The parity columns of the first four rows depend on each other. Added up, the four rows leave only the first of these columns: each of
//! the others is in two of them with one shift. The first one is in three rows, in two of them with one shift, and so is left with the
//! shift of the third. Both graphs and all sets are built like that, though the odd shift is in another row and not always 0 or 1.

use super::base_graph::{CORE_ROWS, PUNCTURED_COLUMNS};
use super::{Code, Error, MOST_LIFTING};
use crate::simd::{self, Processor};

/// Octets of a row: enough for the largest Z. All rows are added up as if they were so long.
const ROW: usize = 64;

/// Octets of a copy of a column: up to Z bits before the first that is asked for, a row from there, and what makes it whole vectors.
const COPY: usize = (MOST_LIFTING / 8 + ROW).next_multiple_of(64);

/// Columns that rows are summed from: those of information bits and of the first four rows' parity.
const MOST_SUMMED: usize = 26;

type Row = [u8; ROW];

/// For each summed column its eight copies.
pub(crate) type Copies = [[[u8; COPY]; 8]];

/// Encodes blocks of any code, one at a time.
#[derive(Debug, Clone)]
pub struct Encoder {
    processor: Processor,
    plan: Option<Plan>,
    copies: Box<Copies>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for the best that this processor has, with memory for the largest code.
    pub fn new() -> Self {
        Self::on(Processor::best())
    }

    /// An encoder for `processor`. Plain code serves where this machine has not got it.
    pub fn on(processor: Processor) -> Self {
        let processor = if processor.is_here() { processor } else { Processor::Any };
        Self { processor, plan: None, copies: vec![[[0; COPY]; 8]; MOST_SUMMED].into() }
    }

    /// Encodes one block: `info` holds the code's K information bits (fillers are zeros), `coded` gets its N coded bits.
    ///
    /// # Errors
    /// When a buffer has not as many octets as its bits need.
    pub fn encode(&mut self, code: Code, info: &[u8], coded: &mut [u8]) -> Result<(), Error> {
        let needed = code.info_bits().div_ceil(8);
        if info.len() != needed {
            return Err(Error::InfoLength { given: info.len(), needed });
        }
        let needed = code.coded_bits().div_ceil(8);
        if coded.len() != needed {
            return Err(Error::CodedLength { given: coded.len(), needed });
        }
        if self.plan.as_ref().is_none_or(|plan| plan.code != code) {
            self.plan = Some(Plan::new(code));
        }
        if let Some(plan) = &self.plan {
            match self.processor {
                Processor::Any => plan.encode(&mut self.copies, info, coded),
                vectors => simd::encode::encode(vectors, plan, &mut self.copies, info, coded),
            }
        }
        Ok(())
    }
}

/// What encoding needs to know of a code.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    code: Code,
    /// The edges of all rows, but of those to parity columns only those of the later rows to the core's.
    edges: Vec<Load>,
    /// Where a row's edges begin, and where the last row's end.
    starts: Vec<usize>,
    /// For each core row its shift of the first core column.
    first: [Option<usize>; CORE_ROWS],
    /// The shift by which the first core column is left when the core rows are added up.
    odd: usize,
    /// For each summed column a bit for each of its copies that some edge loads from.
    used: [u8; MOST_SUMMED],
}

/// Where a rotated column is found.
#[derive(Debug, Clone, Copy)]
struct Load {
    column: u8,
    copy: u8,
    octet: u8,
}

impl Load {
    const fn new(column: usize, shift: usize) -> Self {
        Self { column: column as u8, copy: (shift % 8) as u8, octet: (shift / 8) as u8 }
    }
}

impl Plan {
    fn new(code: Code) -> Self {
        let (core, rows) = (code.graph().core_columns(), code.graph().rows());
        let mut plan = Self {
            code,
            edges: Vec::with_capacity(code.graph().entries().len()),
            starts: vec![0; rows + 1],
            first: [None; CORE_ROWS],
            odd: 0,
            used: [0; MOST_SUMMED],
        };
        for edge in code.edges() {
            let in_core = edge.row < CORE_ROWS;
            if in_core && edge.column == core.start {
                plan.first[edge.row] = Some(edge.shift);
            }
            if edge.column < if in_core { core.start } else { core.end } {
                plan.edges.push(Load::new(edge.column, edge.shift));
            }
            if edge.column < core.end {
                plan.used[edge.column] |= 1 << (edge.shift % 8);
            }
            plan.starts[edge.row + 1] = plan.edges.len();
        }
        // Of three shifts, two are the same.
        plan.odd = plan.first.into_iter().flatten().fold(0, |odd, shift| odd ^ shift);
        plan
    }

    /// Encodes a block; the buffers are known to be as long as they should be. To be compiled for several processors, it is inlined, and so is all
    /// that it calls.
    #[inline(always)]
    pub(crate) fn encode(&self, copies: &mut Copies, info: &[u8], coded: &mut [u8]) {
        let mut writer = Writer { octets: coded, at: 0 };
        self.info(copies, info, &mut writer);
        self.core(copies, &mut writer);
        for row in CORE_ROWS..self.code.graph().rows() {
            writer.write(&self.sum(copies, row), self.code.z());
        }
    }

    /// Writes the information bits that are sent, and lays out all of them as columns.
    #[inline(always)]
    fn info(&self, copies: &mut Copies, info: &[u8], writer: &mut Writer) {
        let z = self.code.z();
        for column in 0..self.code.graph().info_columns() {
            let row = read(info, column * z);
            self.lay_out(copies, column, &row);
            if column >= PUNCTURED_COLUMNS {
                writer.write(&row, z);
            }
        }
    }

    /// Finds, writes and lays out the parity columns of the core.
    #[inline(always)]
    fn core(&self, copies: &mut Copies, writer: &mut Writer) {
        let (z, column) = (self.code.z(), self.code.graph().core_columns().start);
        let (mut sums, mut all) = ([[0; ROW]; CORE_ROWS], [0; ROW]);
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum = self.sum(copies, row);
            add(&mut all, sum);
        }
        // The sum is the first column rotated by the odd shift; rotating on to Z turns it back.
        let mut parity = read(&twice(&all, z), (z - self.odd) % z);
        writer.write(&parity, z);
        self.lay_out(copies, column, &parity);
        parity = [0; ROW];
        for (row, sum) in sums[..CORE_ROWS - 1].iter().enumerate() {
            // The first core row has no other column of the core; each later one has that which the row before gave.
            add(&mut parity, sum);
            if let Some(shift) = self.first[row] {
                add(&mut parity, load(copies, Load::new(column, shift)));
            }
            writer.write(&parity, z);
            self.lay_out(copies, column + 1 + row, &parity);
        }
    }

    /// The sum of a row's edges.
    #[inline(always)]
    fn sum(&self, copies: &Copies, row: usize) -> Row {
        let mut sum = [0; ROW];
        for &edge in &self.edges[self.starts[row]..self.starts[row + 1]] {
            add(&mut sum, load(copies, edge));
        }
        sum
    }

    /// Makes the copies of a column that are used.
    #[inline(always)]
    fn lay_out(&self, copies: &mut Copies, column: usize, row: &Row) {
        let base = twice(row, self.code.z());
        for (bits, copy) in copies[column].iter_mut().enumerate() {
            if self.used[column] >> bits & 1 == 1 {
                shift_left(&base, bits, copy);
            }
        }
    }
}

#[inline(always)]
fn load(copies: &Copies, load: Load) -> &Row {
    let copy = &copies[usize::from(load.column)][usize::from(load.copy % 8)];
    // The last octet that a shift leads to is before the last row of a copy.
    copy[usize::from(load.octet).min(COPY - ROW)..].first_chunk().unwrap_or(&[0; ROW])
}

#[inline(always)]
fn add(sum: &mut Row, row: &Row) {
    for at in 0..ROW {
        sum[at] ^= row[at];
    }
}

/// The first `z` bits of a row, twice.
#[inline(always)]
fn twice(row: &Row, z: usize) -> [u8; COPY + 1] {
    let mut octets = [0; COPY + 1];
    let mut writer = Writer { octets: &mut octets, at: 0 };
    writer.write(row, z);
    writer.write(row, z);
    octets
}

/// `to` becomes `from` without its first `bits` bits, fewer than eight.
#[inline(always)]
fn shift_left(from: &[u8; COPY + 1], bits: usize, to: &mut [u8; COPY]) {
    for at in 0..COPY {
        to[at] = from[at] << bits | from[at + 1] >> 1 >> (7 - bits);
    }
}

/// A row's bits from bit `at` of `octets` on, as far as there are any; more of them than a row has may follow its Z bits.
#[inline(always)]
fn read(octets: &[u8], at: usize) -> Row {
    let mut row = [0; ROW];
    let octets = octets.get(at / 8..).unwrap_or_default();
    if let (0, Some(octets)) = (at % 8, octets.first_chunk()) {
        row = *octets;
    } else if at.is_multiple_of(8) {
        let octets = &octets[..octets.len().min(ROW)];
        row[..octets.len()].copy_from_slice(octets);
    } else {
        for (at_octet, to) in row.iter_mut().enumerate() {
            let octet = |at: usize| octets.get(at).copied().unwrap_or_default();
            *to = octet(at_octet) << (at % 8) | octet(at_octet + 1) >> (8 - at % 8);
        }
    }
    row
}

/// Appends bits to octets.
struct Writer<'a> {
    octets: &'a mut [u8],
    /// Bits written.
    at: usize,
}

impl Writer<'_> {
    /// Appends the first `z` bits of a row. What is left of the last octet becomes zero.
    #[inline(always)]
    fn write(&mut self, row: &Row, z: usize) {
        let (from, bits) = (self.at / 8, self.at % 8);
        let whole = z / 8;
        let last = if z.is_multiple_of(8) { 0 } else { row[whole] & !(0xff >> (z % 8)) };
        self.at += z;
        if let (0, Some(octets)) = (bits, self.octets[from..].first_chunk_mut()) {
            // What is too much is written over by what follows.
            *octets = *row;
            if !z.is_multiple_of(8) {
                octets[whole] = last;
            }
        } else if bits == 0 {
            self.octets[from..from + whole].copy_from_slice(&row[..whole]);
            if !z.is_multiple_of(8) {
                self.octets[from + whole] = last;
            }
        } else {
            let mut carry = self.octets[from];
            let octets = self.octets[from..self.at.div_ceil(8)].iter_mut();
            for (to, &octet) in octets.zip(row[..whole].iter().chain([&last, &0])) {
                *to = carry | octet >> bits;
                carry = octet << (8 - bits);
            }
        }
    }
}
