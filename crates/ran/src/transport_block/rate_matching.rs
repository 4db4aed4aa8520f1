//! Rate matching (TS 38.212 §5.4.2): which coded bits are sent, in which order; and what a receiver does with what comes.
//!
//! Bits are read off a circle, from a start that depends on the redundancy version, for as long as it takes. Fillers are stepped over. The
//! standard says that bit by bit; here it is done in runs, the parts of the circle between its end, the fillers and the last bit.
//!
//! The interleaver writes the bits into Q_m rows and reads them column by column: a symbol's bits. To do so with packed bits, an octet of each
//! row is spread to every Q_m-th place by a table. LLRs are octets, and a loop that the compiler makes vectors of does.

use super::format::Modulation;
use crate::bits;
use std::ops::Range;

/// A code block's coded bits, as one transmission reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Circle {
    /// Bits after which it begins again: N_cb.
    pub(crate) length: usize,
    /// Where the fillers are, which are not sent. It begins behind the first bit, and may reach beyond the circle's end.
    pub(crate) hole: Range<usize>,
    /// Where reading begins: k_0.
    pub(crate) start: usize,
}

/// Parts of a [`Circle`], one behind the other.
#[derive(Debug, Clone)]
pub(crate) struct Runs<'a> {
    circle: &'a Circle,
    at: usize,
    left: usize,
}

impl Circle {
    /// Where the next `count` bits are that are sent.
    pub(crate) fn runs(&self, count: usize) -> Runs<'_> {
        Runs { circle: self, at: self.start, left: count }
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let Circle { length, hole, .. } = self.circle;
        if self.left == 0 {
            return None;
        }
        if hole.contains(&self.at) {
            self.at = hole.end;
        }
        if self.at >= *length {
            self.at = 0;
        }
        let end = if self.at < hole.start { hole.start.min(*length) } else { *length };
        let run = self.at..end.min(self.at + self.left);
        self.left -= run.len();
        self.at = run.end;
        Some(run)
    }
}

/// Takes `count` bits off the circle (§5.4.2.1).
pub(super) fn select(circle: &Circle, coded: &[u8], count: usize, selected: &mut [u8]) {
    let mut to = 0;
    for run in circle.runs(count) {
        bits::copy(coded, run.start, selected, to, run.len());
        to += run.len();
    }
}

/// Adds LLRs to those of the circle's bits, clipped. Where the last of these bits ends.
#[inline(always)]
pub(crate) fn combine(circle: &Circle, llrs: &[i8], soft: &mut [i8]) -> usize {
    let (mut llrs, mut reach) = (llrs, 0);
    for run in circle.runs(llrs.len()) {
        reach = reach.max(run.end);
        let (these, rest) = llrs.split_at(run.len());
        llrs = rest;
        soft[run].iter_mut().zip(these).for_each(|(sum, llr)| *sum = sum.saturating_add(*llr));
    }
    reach
}

/// For each group of `SYMBOLS` bits, the first uppermost, these bits in every `ORDER`-th place from the uppermost on.
const fn spread<const ORDER: usize, const SYMBOLS: usize, const GROUPS: usize>() -> [u64; GROUPS] {
    let mut table = [0; GROUPS];
    let mut group = 0;
    while group < GROUPS {
        let mut bit = 0;
        while bit < SYMBOLS {
            if group >> (SYMBOLS - 1 - bit) & 1 == 1 {
                table[group] |= 1 << (63 - bit * ORDER);
            }
            bit += 1;
        }
        group += 1;
    }
    table
}

static QPSK: [u64; 256] = spread::<2, 8, 256>();
static QAM16: [u64; 256] = spread::<4, 8, 256>();
static QAM64: [u64; 256] = spread::<6, 8, 256>();
static QAM256: [u64; 256] = spread::<8, 8, 256>();
/// Eight symbols of ten bits would not go into 64.
static QAM1024: [u64; 16] = spread::<10, 4, 16>();

/// Interleaves `count` bits (§5.4.2.2). `to` has room for eight octets more than these need.
#[inline(always)]
pub(crate) fn interleave(modulation: Modulation, from: &[u8], count: usize, to: &mut [u8]) {
    match modulation {
        Modulation::HalfPiBpsk => bits::copy(from, 0, to, 0, count),
        Modulation::Qpsk => interleave_by::<2, 8, 256>(&QPSK, from, count, to),
        Modulation::Qam16 => interleave_by::<4, 8, 256>(&QAM16, from, count, to),
        Modulation::Qam64 => interleave_by::<6, 8, 256>(&QAM64, from, count, to),
        Modulation::Qam256 => interleave_by::<8, 8, 256>(&QAM256, from, count, to),
        Modulation::Qam1024 => interleave_by::<10, 4, 16>(&QAM1024, from, count, to),
    }
}

#[inline(always)]
fn interleave_by<const ORDER: usize, const SYMBOLS: usize, const GROUPS: usize>(
    table: &[u64; GROUPS],
    from: &[u8],
    count: usize,
    to: &mut [u8],
) {
    let columns = count / ORDER;
    let mut to = to;
    for at in (0..columns).step_by(64) {
        let rows: [u64; ORDER] = std::array::from_fn(|row| bits::read(from, row * columns + at));
        let groups = (columns - at).min(64).div_ceil(SYMBOLS);
        for group in 0..groups {
            let shift = 64 - (group + 1) * SYMBOLS;
            let mut symbols = 0;
            for (row, bits) in rows.iter().enumerate() {
                symbols |= table[(bits >> shift) as usize % GROUPS] >> row;
            }
            // What is too much is written over by what follows.
            let Some((octets, _)) = to.split_first_chunk_mut() else { return };
            *octets = symbols.to_be_bytes();
            to = &mut to[SYMBOLS * ORDER / 8..];
        }
    }
}

/// The inverse for LLRs.
#[inline(always)]
pub(crate) fn deinterleave(modulation: Modulation, from: &[i8], to: &mut [i8]) {
    match modulation {
        Modulation::HalfPiBpsk => to.copy_from_slice(from),
        Modulation::Qpsk => deinterleave_by::<2>(from, to),
        Modulation::Qam16 => deinterleave_by::<4>(from, to),
        Modulation::Qam64 => deinterleave_by::<6>(from, to),
        Modulation::Qam256 => deinterleave_by::<8>(from, to),
        Modulation::Qam1024 => deinterleave_by::<10>(from, to),
    }
}

#[inline(always)]
fn deinterleave_by<const ORDER: usize>(from: &[i8], to: &mut [i8]) {
    let (symbols, _) = from.as_chunks::<ORDER>();
    for (place, row) in to.chunks_exact_mut(symbols.len().max(1)).enumerate().take(ORDER) {
        row.iter_mut().zip(symbols).for_each(|(llr, symbol)| *llr = symbol[place]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{self, Processor};
    use proptest::prelude::*;

    /// A circle with fillers in it, behind its end or across it.
    fn circles() -> impl Strategy<Value = Circle> {
        (1_usize..400, 1_usize..450, 0_usize..80, any::<prop::sample::Index>()).prop_map(
            |(length, hole, fillers, start)| Circle {
                length,
                hole: hole..hole + fillers,
                start: start.index(length),
            },
        )
    }

    proptest! {
        #[test]
        fn runs_are_the_places_that_the_standard_s_loop_finds(circle in circles(), count in 0_usize..1500) {
            let (mut places, mut at) = (Vec::new(), circle.start);
            while places.len() < count {
                if !circle.hole.contains(&at) {
                    places.push(at);
                }
                at = (at + 1) % circle.length;
            }
            prop_assert_eq!(circle.runs(count).flatten().collect::<Vec<_>>(), places);
        }

        #[test]
        fn llrs_are_added_to_their_own_bits_and_clipped(
            circle in circles(), llrs in prop::collection::vec(any::<i8>(), 0..1500), before in prop::collection::vec(any::<i8>(), 400),
        ) {
            let mut expected = before[..circle.length].to_vec();
            let mut reach = 0;
            for (at, llr) in circle.runs(llrs.len()).flatten().zip(&llrs) {
                expected[at] = (i32::from(expected[at]) + i32::from(*llr)).clamp(-128, 127) as i8;
                reach = reach.max(at + 1);
            }
            for processor in Processor::here() {
                let mut sums = before[..circle.length].to_vec();
                prop_assert_eq!(simd::rate_matching::combine(processor, &circle, &llrs, &mut sums), reach);
                prop_assert_eq!(&sums, &expected);
            }
        }

        #[test]
        fn bits_and_llrs_are_interleaved_by_columns_and_back(symbols in 0_usize..300, octets in prop::collection::vec(any::<u8>(), 400)) {
            for modulation in Modulation::ALL {
                let (order, count) = (modulation.order(), symbols * modulation.order());
                let places = (0..count).map(|at| at % order * symbols + at / order);
                let bit = |octets: &[u8], at: usize| octets[at / 8] >> (7 - at % 8) & 1;
                let llrs: Vec<i8> = octets.iter().cycle().take(count).map(|octet| octet.cast_signed()).collect();
                let interleaved_llrs: Vec<i8> = places.clone().map(|at| llrs[at]).collect();
                for processor in Processor::here() {
                    let mut interleaved = vec![0; 400 + 8];
                    simd::rate_matching::interleave(processor, modulation, &octets, count, &mut interleaved);
                    for (at, place) in places.clone().enumerate() {
                        prop_assert_eq!(bit(&interleaved, at), bit(&octets, place), "{:?} bit {}", modulation, at);
                    }
                    let mut back = vec![0; count];
                    simd::rate_matching::deinterleave(processor, modulation, &interleaved_llrs, &mut back);
                    prop_assert_eq!(&back, &llrs);
                }
            }
        }
    }
}
