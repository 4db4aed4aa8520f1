//! A table that may forget: what somebody was told of a key, if that is not too long ago.
//!
//! **Problem.** An accelerator that looks things up for others has a copy of their tables, and a copy costs: every entry that comes, goes
//! or moves has to be told, in order, to the last one. But whoever verifies each answer before believing it needs no such copy. It is enough that
//! the answers are right most of the time.
//!
//! **Model.** A memo has lines of eight entries. A key's upper half is its mark in the one line that its lower half names. What is set comes
//! first in its line, and the last one of the line is forgotten, so the table never grows, never moves anything and never refuses. An answer may be
//! another key's (one in some 500 million of keys that were never set: eight marks of 32 bits), or out of date.
//!
//! ```
//! use tables::{Lookup, Memo};
//! let mut memo = Memo::new(1_000);
//! memo.set(0x1234_5678_9abc_def0, 7);
//! assert_eq!(memo.lookup(&0x1234_5678_9abc_def0), Some(7));
//! assert_eq!(memo.lookup(&0x1234_5679_9abc_def0), None);
//! ```
//!
//! **Cost.** One line of 64 bytes, hit or miss; 8 bytes an entry.
//!
//! **When not to use it.** For whatever has to be remembered. For keys that are not hashes: both halves have to be well mixed
//! ([`crate::hash::mix`]), under a seed that strangers don't know.

use crate::lookup::Lookup;
use crate::prefetch::prefetch;

/// Entries of a line.
const WAYS: usize = 8;
/// Lines, at most: as many as half a key can name.
const MAX_LINES: usize = 1 << 28;

/// A line of cache: marks, then values, the newest first.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    marks: [u32; WAYS],
    values: [u32; WAYS],
}

/// See the module's documentation.
#[derive(Clone)]
pub struct Memo {
    /// A power of two.
    lines: Box<[Line]>,
}

impl Memo {
    /// The value that says: nothing is known of this key. To set it is to forget.
    pub const NOTHING: u32 = u32::MAX;

    /// An empty memo with room for about so many entries: it begins to forget when it has fewer, for lines fill unevenly.
    pub fn new(entries: usize) -> Self {
        let lines = entries.div_ceil(WAYS).clamp(1, MAX_LINES).next_power_of_two();
        let vacant = Line { marks: [0; WAYS], values: [Self::NOTHING; WAYS] };
        Self { lines: vec![vacant; lines].into_boxed_slice() }
    }

    /// Remembers a value of a key, or with [`Self::NOTHING`] forgets it.
    pub fn set(&mut self, key: u64, value: u32) {
        let mark = mark(key);
        let at = self.index(key);
        let Some(Line { marks, values }) = self.lines.get_mut(at) else { return };
        let places = || marks.iter().zip(values.iter());
        let is_there = |(known, value): (&u32, &u32)| *known == mark && *value != Self::NOTHING;
        let known = places().position(is_there);
        if value == Self::NOTHING {
            if let Some(value) = known.and_then(|place| values.get_mut(place)) {
                *value = Self::NOTHING;
            }
            return;
        }
        // Where the key is, or a vacant place, or the last one, whose entry is forgotten.
        let vacant = || places().position(|(_, value)| *value == Self::NOTHING);
        let place = known.or_else(vacant).unwrap_or(WAYS - 1);
        if let (Some(marks), Some(values)) = (marks.get_mut(..=place), values.get_mut(..=place)) {
            marks.rotate_right(1);
            values.rotate_right(1);
        }
        (marks[0], values[0]) = (mark, value);
    }

    #[inline(always)]
    const fn index(&self, key: u64) -> usize {
        key as u32 as usize & (self.lines.len() - 1)
    }
}

#[inline(always)]
const fn mark(key: u64) -> u32 {
    (key >> 32) as u32
}

/// Two phases: the line is asked for, and read.
impl Lookup for Memo {
    type Key = u64;
    type Value = u32;
    type Probe = u32;

    #[inline(always)]
    fn prepare(&self, key: &u64) -> u32 {
        let index = self.index(*key);
        if let Some(line) = self.lines.get(index) {
            prefetch(line);
        }
        index as u32
    }

    #[inline(always)]
    fn finish(&self, probe: u32, key: &u64) -> Option<u32> {
        let Line { marks, values } = self.lines.get(probe as usize)?;
        let known =
            marks.iter().zip(values).find(|(known, value)| **known == mark(*key) && **value != Self::NOTHING);
        known.map(|(_, value)| *value)
    }
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memo").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use std::collections::HashMap;

    fn key(number: u64) -> u64 {
        mix(mix(number ^ 0x5eed, 0x9e37_79b9_7f4a_7c15), 0x3c6e_f372_fe94_f82b)
    }

    #[test]
    fn a_memo_with_room_knows_what_it_was_told_last() {
        let mut memo = Memo::new(1 << 14);
        let mut model = HashMap::new();
        for step in 0..20_000_u64 {
            let number = mix(step + 1, 0x9e37_79b9_7f4a_7c15) % 2_000;
            if step % 5 == 0 {
                memo.set(key(number), Memo::NOTHING);
                model.remove(&number);
            } else {
                memo.set(key(number), step as u32);
                model.insert(number, step as u32);
            }
        }
        let keys: Vec<u64> = (0..3_000).map(key).collect();
        let mut found = vec![None; keys.len()];
        memo.lookup_bulk(&keys, &mut found);
        for (number, found) in (0..).zip(found) {
            assert_eq!(found, model.get(&number).copied(), "{number}");
        }
    }

    #[test]
    fn the_oldest_of_a_full_line_is_forgotten() {
        let mut memo = Memo::new(1);
        let key = |number: u64| number << 32;
        (1..=8).for_each(|number| memo.set(key(number), number as u32));
        memo.set(key(1), 100);
        memo.set(key(9), 9);
        assert_eq!(memo.lookup(&key(2)), None, "longest ago");
        assert_eq!(memo.lookup(&key(1)), Some(100), "told again, so not the oldest");
        assert!((3..=9).all(|number| memo.lookup(&key(number)) == Some(number as u32)));
        memo.set(key(9), Memo::NOTHING);
        assert_eq!(memo.lookup(&key(9)), None);
    }

    #[test]
    fn any_size_is_a_size() {
        for entries in [0, 1, 8, 9, 1_000] {
            let mut memo = Memo::new(entries);
            memo.set(u64::MAX, 3);
            assert_eq!((memo.lookup(&u64::MAX), memo.lookup(&0)), (Some(3), None));
        }
    }
}
