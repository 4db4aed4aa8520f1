//! Layered min-sum ([`crate::ldpc`]) with the checks of a row in the lanes of vectors.
//!
//! A column is stored rotated so that the row that used it last had its lanes in order: lane `i` of the storage belongs to check `i` of that
//! row. The next row's lanes are the same ones, further on by the difference of the two shifts; so behind the column its start is repeated as far
//! as that row needs, and all it reads is contiguous. It writes to a second place, in its own order, from which the next one reads. Which place
//! that is depends on the parity of the iteration, so the plan is there for both.
//!
//! What a row has said is stored in the order in which it is asked for: vector by vector, in each of them edge by edge. The columns of the
//! later rows' own parity are in one row only: what it hears of them is always what was received, so that what it says need not be kept.
//!
//! Lanes behind the last check of a row hold anything. They are written, but what is read of them is never heard by a real check.

use super::Processor;
use crate::ldpc::{CORE_ROWS, Correction, Job, MOST_LIFTING, MOST_SAID, PINNED};
use std::ops::Range;

/// Octets of the widest vector. Columns, and what rows say, begin at multiples of it.
const BLOCK: usize = 64;

/// Columns that more than one row uses, at most.
const MOST_SHARED: usize = 26;

/// Edges to such columns, at most.
const MOST_EDGES: usize = 274;

/// Rows that have a column of their own, at most.
const MOST_OWN: usize = 42;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Block([i8; BLOCK]);

/// An edge to a shared column, in the iterations of one parity.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    /// Where the column is.
    base: u32,
    /// Where in it the row's first check is.
    turn: u32,
    /// Where the row writes the column to.
    to: u32,
}

#[derive(Debug, Clone)]
struct Row {
    /// Its edges to shared columns that hold more than fillers.
    edges: Range<usize>,
    /// Where what it says is stored.
    said: usize,
    /// Where its own column is as received; what is thought of it follows behind [`Plan::width`] octets.
    own: Option<usize>,
    correction: &'static Correction,
}

/// A shared column between two iterations.
#[derive(Debug, Clone, Copy, Default)]
struct Column {
    /// Where it is before an iteration of each parity.
    base: [u32; 2],
    /// Lane `i` is bit `(i + shift) % z`.
    shift: u32,
}

/// Where everything is, for one job.
#[derive(Debug, Clone, Default)]
struct Plan {
    z: usize,
    /// Octets from one half of a column to its repetition at most: Z in whole blocks.
    width: usize,
    rows: Vec<Row>,
    steps: [Vec<Step>; 2],
    /// For each step the column and the shift.
    edges: Vec<(usize, u32)>,
    columns: Vec<Column>,
    info_columns: usize,
    /// Of the column in which fillers begin: the column, the first filler's place in it.
    partial: Option<(usize, usize)>,
}

/// A decoder's memory, for one kind of processor.
#[derive(Debug, Clone)]
pub(crate) struct MinSum {
    processor: Processor,
    job: Option<Job>,
    plan: Plan,
    /// A block that is never written, the shared columns twice each, then the rows' own columns as received and as they are thought of.
    bits: Box<[Block]>,
    said: Box<[Block]>,
    /// Iterations made.
    iterations: usize,
}

impl Plan {
    fn make(&mut self, job: Job) {
        let (code, z) = (job.code, job.code.z());
        let graph = code.graph();
        let shared = graph.core_columns().end;
        self.z = z;
        self.width = z.next_multiple_of(BLOCK);
        self.info_columns = graph.info_columns();
        // A column, its start once more, and what a vector may read behind that.
        let half = 2 * self.width + BLOCK;
        let first = job.fillers().start;
        self.partial = (!first.is_multiple_of(z)).then_some((first / z, first % z));

        self.rows.clear();
        self.edges.clear();
        let mut said = 0;
        let edges = || code.edges().filter(|edge| edge.row < job.rows && !job.is_filler_column(edge.column));
        for row in 0..job.rows {
            let start = self.edges.len();
            let of_row = edges().filter(|edge| edge.row == row && edge.column < shared);
            self.edges.extend(of_row.map(|edge| (edge.column, edge.shift as u32)));
            let own =
                (row >= CORE_ROWS).then(|| BLOCK + shared * 2 * half + (row - CORE_ROWS) * 2 * self.width);
            let edges = start..self.edges.len();
            let degree = edges.len() + usize::from(own.is_some());
            self.rows.push(Row { edges: edges.clone(), said, own, correction: Correction::of(degree) });
            said += edges.len() * self.width;
        }

        // The shift that a column is left with is that of the last row that uses it.
        self.columns.clear();
        self.columns.resize(shared, Column::default());
        for (column, shift) in &self.edges {
            self.columns[*column].shift = *shift;
        }
        let mut shifts: [u32; MOST_SHARED] = [0; MOST_SHARED];
        let mut second = [false; MOST_SHARED];
        for (shift, column) in shifts.iter_mut().zip(&self.columns) {
            *shift = column.shift;
        }
        for parity in 0..2 {
            let place =
                |column: usize, second: bool| (BLOCK + (column * 2 + usize::from(second)) * half) as u32;
            for (at, column) in self.columns.iter_mut().enumerate() {
                column.base[parity] = place(at, second[at]);
            }
            self.steps[parity].clear();
            for &(column, shift) in &self.edges {
                self.steps[parity].push(Step {
                    base: place(column, second[column]),
                    turn: (shift + z as u32 - shifts[column]) % z as u32,
                    to: place(column, !second[column]),
                });
                second[column] = !second[column];
                shifts[column] = shift;
            }
        }
    }
}

impl MinSum {
    /// Memory for the largest code. `None` for a processor that this machine has not, or that has no vectors.
    pub(crate) fn new(processor: Processor) -> Option<Self> {
        let most = MOST_LIFTING.next_multiple_of(BLOCK);
        let bits = BLOCK + MOST_SHARED * 2 * (2 * most + BLOCK) + MOST_OWN * 2 * most;
        (processor != Processor::Any && processor.is_here()).then(|| Self {
            processor,
            job: None,
            plan: Plan::default(),
            bits: vec![Block([0; BLOCK]); bits / BLOCK].into(),
            said: vec![Block([0; BLOCK]); MOST_EDGES * most / BLOCK].into(),
            iterations: 0,
        })
    }

    /// Takes a block. Coded bits that were not received are left open.
    pub(crate) fn load(&mut self, job: Job, llrs: &[i8]) {
        if self.job != Some(job) {
            self.plan.make(job);
            self.job = Some(job);
        }
        self.iterations = 0;
        let Self { plan, bits, .. } = self;
        let (z, punctured, fillers) = (plan.z, job.code.punctured_bits(), job.fillers());
        let bits = octets(bits);
        // Bits of the block, from `at` on, to a place.
        let copy = |to: &mut [i8], at: usize| {
            let received = at.checked_sub(punctured).and_then(|at| llrs.get(at..)).unwrap_or_default();
            let received = &received[..received.len().min(to.len())];
            to[..received.len()].copy_from_slice(received);
            to[received.len()..].fill(0);
            let pinned =
                fillers.start.clamp(at, at + to.len()) - at..fillers.end.clamp(at, at + to.len()) - at;
            to[pinned].fill(PINNED);
        };
        for (at, column) in plan.columns.iter().enumerate() {
            let (base, shift) = (column.base[0] as usize, column.shift as usize);
            let (head, tail) = bits[base..base + z].split_at_mut(z - shift);
            copy(head, at * z + shift);
            copy(tail, at * z);
        }
        for (row, at) in plan.rows.iter().skip(CORE_ROWS).zip(plan.columns.len()..) {
            if let Some(own) = row.own {
                copy(&mut bits[own..own + z], at * z);
            }
        }
    }

    /// One iteration.
    pub(crate) fn sweep(&mut self) {
        let Self { processor, plan, bits, said, iterations, .. } = self;
        let parity = *iterations % 2;
        let (bits, said) = (octets(bits).as_mut_ptr(), octets(said).as_mut_ptr());
        // SAFETY: `new` has asked whether the processor is here, and made `bits` and `said` so large that all places of any plan are in them.
        unsafe {
            match (processor, *iterations) {
                (Processor::Avx2, 0) => avx2::sweep::<true>(plan, parity, bits, said),
                (Processor::Avx2, _) => avx2::sweep::<false>(plan, parity, bits, said),
                (Processor::Avx512, 0) => avx512::sweep::<true>(plan, parity, bits, said),
                (Processor::Avx512, _) => avx512::sweep::<false>(plan, parity, bits, said),
                _ => {}
            }
        }
        *iterations += 1;
    }

    /// Whether the bits, as they are thought of, fulfil all checks of the rows that are used.
    pub(crate) fn checks_hold(&self) -> bool {
        let (plan, parity) = (&self.plan, self.iterations % 2);
        let bits = self.bits.as_ptr().cast();
        // SAFETY: as in `sweep`.
        unsafe {
            match self.processor {
                Processor::Avx2 => avx2::checks_hold(plan, parity, bits),
                Processor::Avx512 => avx512::checks_hold(plan, parity, bits),
                Processor::Any => false,
            }
        }
    }

    /// Packs the information bits.
    pub(crate) fn pack(&self, info: &mut [u8]) {
        let (plan, parity) = (&self.plan, self.iterations % 2);
        let bits = self.bits.as_ptr().cast();
        // SAFETY: as in `sweep`.
        unsafe {
            match self.processor {
                Processor::Avx2 => avx2::pack(plan, parity, bits, info),
                Processor::Avx512 => avx512::pack(plan, parity, bits, info),
                Processor::Any => {}
            }
        }
    }
}

fn octets(blocks: &mut [Block]) -> &mut [i8] {
    // SAFETY: a block is 64 octets without padding, and an octet may stand anywhere.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), std::mem::size_of_val(blocks)) }
}

/// A vector of octets.
///
/// # Safety
/// All of it may only be called where the processor's instructions may be used. Pointers must be good for as many octets as a vector has.
trait Lanes: Copy {
    const COUNT: usize;
    unsafe fn load(from: *const i8) -> Self;
    unsafe fn store(self, to: *mut i8);
    unsafe fn splat(octet: u8) -> Self;
    /// Sixteen octets, over and over.
    unsafe fn table(octets: &[u8; 16]) -> Self;
    /// For each lane of `self`, all below 16, the octet of the table.
    unsafe fn look_up(self, table: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn halves(self) -> Self;
    /// Of signed lanes, clipped.
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn subtract(self, other: Self) -> Self;
    /// Of lanes without sign, not below zero.
    unsafe fn take(self, other: Self) -> Self;
    unsafe fn magnitude(self) -> Self;
    unsafe fn least(self, other: Self) -> Self;
    unsafe fn most(self, other: Self) -> Self;
    /// `one` where `self` equals `other`, elsewhere `another`.
    unsafe fn where_equal(self, other: Self, one: Self, another: Self) -> Self;
    /// Lanes with the sign of `of` turned over.
    unsafe fn signed(self, of: Self) -> Self;
    /// A bit for each lane, the first in the lowest: whether it is negative.
    unsafe fn signs(self) -> u64;
    /// `other` where `self` is negative, elsewhere `one`.
    unsafe fn choose(self, one: Self, other: Self) -> Self;
}

/// The lanes of a stored column of `z` lanes from `at` on, less than 2 Z, as if it went on with its start at its end; good for the first Z of them.
///
/// # Safety
/// As [`Lanes`]; the column may be read from a block before it on.
#[inline(always)]
unsafe fn turned<L: Lanes>(column: *const i8, at: usize, z: usize) -> L {
    static BEHIND: [i8; 2 * BLOCK] = {
        let mut lanes = [0; 2 * BLOCK];
        let mut lane = BLOCK;
        while lane < 2 * BLOCK {
            lanes[lane] = -1;
            lane += 1;
        }
        lanes
    };
    // SAFETY: up to a vector before the column, and no further than a block behind it, is read.
    unsafe {
        if at >= z {
            L::load(column.add(at - z))
        } else if at + L::COUNT <= z {
            L::load(column.add(at))
        } else {
            let behind = L::load(BEHIND.as_ptr().add(BLOCK - (z - at)));
            behind.choose(L::load(column.add(at)), L::load(column.wrapping_add(at).wrapping_sub(z)))
        }
    }
}

/// What a row does in one iteration.
///
/// # Safety
/// As [`Lanes`]; all places of the plan must be in the memory.
#[inline(always)]
unsafe fn row<L: Lanes, const SHARED: usize, const OWN: bool, const FIRST: bool>(
    plan: &Plan,
    row: &Row,
    parity: usize,
    bits: *mut i8,
    said: *mut i8,
) {
    // SAFETY: as the caller promises; a place behind a column's end, as far as its start is repeated, is before the next column.
    unsafe {
        let Some(steps) =
            plan.steps[parity].get(row.edges.clone()).and_then(|steps| steps.first_chunk::<SHARED>())
        else {
            return;
        };
        for step in steps {
            let base = bits.add(step.base as usize);
            for at in (0..step.turn as usize).step_by(L::COUNT) {
                L::load(base.add(at)).store(base.add(plan.z + at));
            }
        }
        let most = L::splat(MOST_SAID);
        let first = L::table(&row.correction.first);
        let gap = L::table(&row.correction.gap);
        let second = L::table(&row.correction.second);
        let last_gap = L::splat(15);
        let own = bits.add(if OWN { row.own.unwrap_or_default() } else { 0 });
        let mut said = said.add(row.said);
        for at in (0..plan.z).step_by(L::COUNT) {
            let mut heard = [L::splat(0); SHARED];
            let (mut least, mut next, mut sign) = (L::splat(u8::MAX), L::splat(u8::MAX), L::splat(0));
            for edge in 0..SHARED {
                let bit = L::load(bits.add((steps[edge].base + steps[edge].turn) as usize + at));
                heard[edge] = if FIRST { bit } else { bit.subtract(L::load(said.add(edge * L::COUNT))) };
                let magnitude = heard[edge].magnitude();
                sign = sign.xor(heard[edge]);
                next = next.least(least.most(magnitude));
                least = least.least(magnitude);
            }
            let received = L::load(own.add(at));
            if OWN {
                let magnitude = received.magnitude();
                sign = sign.xor(received);
                next = next.least(least.most(magnitude));
                least = least.least(magnitude);
            }
            // As `Correction::correct`.
            let (one, two) = (least.least(most), next.least(most));
            let apart = two.take(one).least(last_gap);
            let say = one.take(one.halves().look_up(first)).take(apart.look_up(gap));
            let say_least = two.take(two.halves().look_up(second));
            let say_to =
                |heard: L| heard.magnitude().where_equal(least, say_least, say).signed(heard.xor(sign));
            for edge in 0..SHARED {
                let say = say_to(heard[edge]);
                say.store(said.add(edge * L::COUNT));
                heard[edge].add(say).store(bits.add(steps[edge].to as usize + at));
            }
            if OWN {
                received.add(say_to(received)).store(own.add(plan.width + at));
            }
            said = said.add(SHARED * L::COUNT);
        }
    }
}

/// Makes the fillers of the column that holds other bits too what they are.
///
/// # Safety
/// As [`row`].
#[inline(always)]
unsafe fn pin(plan: &Plan, row: &Row, parity: usize, bits: *mut i8) {
    let Some((column, first)) = plan.partial else { return };
    for edge in row.edges.clone() {
        if plan.edges[edge].0 == column {
            let (shift, to) = (plan.edges[edge].1 as usize, plan.steps[parity][edge].to as usize);
            for bit in first..plan.z {
                let lane = (bit + plan.z - shift) % plan.z;
                // SAFETY: the lane is in the column.
                unsafe { *bits.add(to + lane) = PINNED };
            }
        }
    }
}

/// Whether all checks hold, found vector by vector: as long as a block is wrong, one of the first tells.
///
/// # Safety
/// As [`row`].
#[inline(always)]
unsafe fn checks_hold<L: Lanes>(plan: &Plan, parity: usize, bits: *const i8) -> bool {
    plan.rows.iter().all(|row| {
        (0..plan.z).step_by(L::COUNT).all(|at| {
            // SAFETY: as the caller promises.
            let failed = unsafe {
                let mut sum = L::splat(0);
                if let Some(own) = row.own {
                    sum = L::load(bits.add(own + plan.width + at));
                }
                for &(column, shift) in &plan.edges[row.edges.clone()] {
                    let column = plan.columns[column];
                    let turn = (shift + plan.z as u32 - column.shift) as usize % plan.z;
                    sum = sum.xor(turned(bits.add(column.base[parity] as usize), turn + at, plan.z));
                }
                sum.signs()
            };
            failed & first_bits(plan.z - at) == 0
        })
    })
}

/// # Safety
/// As [`row`].
#[inline(always)]
unsafe fn pack<L: Lanes>(plan: &Plan, parity: usize, bits: *const i8, info: &mut [u8]) {
    let mut octets = info.iter_mut();
    let (mut pending, mut count) = (0u128, 0);
    for column in &plan.columns[..plan.info_columns] {
        let turn = (plan.z - column.shift as usize) % plan.z;
        for at in (0..plan.z).step_by(L::COUNT) {
            // SAFETY: as the caller promises.
            let signs =
                unsafe { turned::<L>(bits.add(column.base[parity] as usize), turn + at, plan.z).signs() };
            pending |= u128::from(signs & first_bits(plan.z - at)) << count;
            count += L::COUNT.min(plan.z - at);
            while count >= 8 {
                if let Some(octet) = octets.next() {
                    *octet = (pending as u8).reverse_bits();
                }
                pending >>= 8;
                count -= 8;
            }
        }
    }
    if let Some(octet) = octets.next() {
        *octet = (pending as u8).reverse_bits();
    }
}

/// As many ones in the lowest bits.
fn first_bits(count: usize) -> u64 {
    1u64.checked_shl(count as u32).map_or(u64::MAX, |bit| bit - 1)
}

/// Calls `row` for the number of edges that it has.
macro_rules! by_degree {
    ($own:literal, $plan:ident, $row:ident, $parity:ident, $bits:ident, $said:ident: $($degree:literal)*) => {
        match $row.edges.len() {
            // SAFETY: as the caller promises.
            $($degree => unsafe { row::<$degree, $own, FIRST>($plan, $row, $parity, $bits, $said) },)*
            _ => {}
        }
    };
}

/// The functions of one processor.
macro_rules! processor {
    ($features:literal, $lanes:ty) => {
        /// One iteration.
        ///
        /// # Safety
        /// The processor must have the features; all places of the plan must be in the memory.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn sweep<const FIRST: bool>(plan: &Plan, parity: usize, bits: *mut i8, said: *mut i8) {
            for each in &plan.rows {
                if each.own.is_some() {
                    by_degree!(true, plan, each, parity, bits, said: 0 1 2 3 4 5 6 7 8 9);
                } else {
                    by_degree!(false, plan, each, parity, bits, said: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
                }
                // SAFETY: as the caller promises.
                unsafe { super::pin(plan, each, parity, bits) };
            }
        }

        /// # Safety
        /// As `sweep`.
        #[target_feature(enable = $features)]
        unsafe fn row<const SHARED: usize, const OWN: bool, const FIRST: bool>(
            plan: &Plan,
            row: &Row,
            parity: usize,
            bits: *mut i8,
            said: *mut i8,
        ) {
            // SAFETY: as the caller promises.
            unsafe { super::row::<$lanes, SHARED, OWN, FIRST>(plan, row, parity, bits, said) }
        }

        /// # Safety
        /// As `sweep`.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn checks_hold(plan: &Plan, parity: usize, bits: *const i8) -> bool {
            // SAFETY: as the caller promises.
            unsafe { super::checks_hold::<$lanes>(plan, parity, bits) }
        }

        /// # Safety
        /// As `sweep`.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn pack(plan: &Plan, parity: usize, bits: *const i8, info: &mut [u8]) {
            // SAFETY: as the caller promises.
            unsafe { super::pack::<$lanes>(plan, parity, bits, info) }
        }
    };
}

// Behind the macros, which they use.
mod avx2;
mod avx512;
