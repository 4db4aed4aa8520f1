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

use crate::hash::Full;
use crate::image::{self, Changes, Image, Journal, Kind, Layout, Line};
use crate::lookup::Lookup;
use crate::prefetch::prefetch;

/// Entries of a line.
const WAYS: usize = 8;
/// Lines, at most: as many as half a key can name.
const MAX_LINES: usize = 1 << 28;

/// See the module's documentation.
#[derive(Clone)]
pub struct Memo {
    /// A power of two. A line is marks, then values plus one (zero: the place is vacant), the newest first.
    lines: Vec<Line>,
    /// Which have changed, for those who have a copy.
    journal: Option<Box<Journal>>,
}

impl Memo {
    /// The value that says: nothing is known of this key. To set it is to forget.
    pub const NOTHING: u32 = u32::MAX;

    /// An empty memo with room for about so many entries: it begins to forget when it has fewer, for lines fill unevenly.
    pub fn new(entries: usize) -> Self {
        Self { lines: vec![Line::default(); Self::lines(entries)], journal: None }
    }

    /// The same on large pages, if there is memory for it.
    pub fn on_large_pages(entries: usize) -> Result<Self, Full> {
        Ok(Self { lines: image::zeroed(Self::lines(entries))?, journal: None })
    }

    /// Octets of a memo with room for so many entries.
    pub fn octets(entries: usize) -> usize {
        Self::lines(entries) * size_of::<Line>()
    }

    fn lines(entries: usize) -> usize {
        entries.div_ceil(WAYS).clamp(1, MAX_LINES).next_power_of_two()
    }

    /// Remembers a value of a key, or with [`Self::NOTHING`] forgets it.
    pub fn set(&mut self, key: u64, value: u32) {
        let (at, mark, kept) = (self.index(key), mark(key), value.wrapping_add(1));
        let Some((marks, values)) = self.lines.get_mut(at).and_then(parts_mut) else { return };
        let places = || marks.iter().zip(values.iter());
        let known = places().position(|(known, value)| *known == mark && *value != 0);
        if kept == 0 {
            let Some(value) = known.and_then(|place| values.get_mut(place)) else { return };
            *value = 0;
        } else {
            // Where the key is, or a vacant place, or the last one, whose entry is forgotten.
            let vacant = || values.iter().position(|value| *value == 0);
            let place = known.or_else(vacant).unwrap_or(WAYS - 1);
            if let (Some(marks), Some(values)) = (marks.get_mut(..=place), values.get_mut(..=place)) {
                marks.rotate_right(1);
                values.rotate_right(1);
            }
            (marks[0], values[0]) = (mark, kept);
        }
        if let Some(journal) = &mut self.journal {
            journal.note(0, at);
        }
    }

    #[inline(always)]
    const fn index(&self, key: u64) -> usize {
        key as u32 as usize & (self.lines.len() - 1)
    }
}

/// A line's marks and values.
#[inline(always)]
fn parts(line: &Line) -> Option<(&[u32; WAYS], &[u32; WAYS])> {
    Some((line.0.first_chunk()?, line.0.last_chunk()?))
}

fn parts_mut(line: &mut Line) -> Option<(&mut [u32; WAYS], &mut [u32; WAYS])> {
    let (marks, values) = line.0.split_first_chunk_mut()?;
    Some((marks, values.first_chunk_mut()?))
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
        let (marks, values) = self.lines.get(probe as usize).and_then(parts)?;
        let known = marks.iter().zip(values).find(|(known, value)| **known == mark(*key) && **value != 0);
        known.map(|(_, value)| *value - 1)
    }
}

/// The words of a key, in the order of [`crate::image`].
pub const fn words(key: u64) -> [u32; 2] {
    [key as u32, mark(key)]
}

/// Whatever is forgotten changes its line, too. No entry moves to another line, so a copy has what the memo had, line by line.
impl Image for Memo {
    fn layout(&self) -> Layout {
        let mut parameters = [0; 16];
        parameters[0] = self.lines.len() as u32;
        Layout { kind: Kind::Memo, parameters }
    }

    fn regions(&self) -> Vec<&[u32]> {
        vec![crate::simd::words::of_lines(&self.lines)]
    }

    fn track(&mut self, limit: usize) {
        self.journal = Some(Box::new(Journal::new(limit)));
    }

    fn changes(&mut self, into: &mut Changes) {
        image::take(self.journal.as_deref_mut(), into);
    }
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memo").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::mix;
    use crate::image::Replica;
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

    /// A device's look-up: from `crate::image` alone.
    fn device(copy: &Replica, key: u64) -> Option<u32> {
        let Layout { kind, parameters } = copy.layout.unwrap();
        assert_eq!((kind, copy.regions.len()), (Kind::Memo, 1));
        let [low, high] = words(key);
        let line = &copy.regions[0][(low & (parameters[0] - 1)) as usize * 16..][..16];
        let place = (0..8).find(|place| line[*place] == high && line[place + 8] != 0)?;
        Some(line[place + 8] - 1)
    }

    #[test]
    fn copies_follow_line_by_line() {
        for (entries, numbers) in [(1, 20), (100, 300), (1 << 12, 2_000)] {
            let (mut memo, mut copy) = (Memo::on_large_pages(entries).unwrap(), Replica::default());
            memo.track(60);
            assert!(copy.follow(&mut memo));
            let mut all = 0;
            for step in 0..4_000_u64 {
                let random = mix(step + 1, 0x9e37_79b9_7f4a_7c15);
                let value = if step % 5 == 0 { Memo::NOTHING } else { (random >> 40) as u32 };
                memo.set(key(random % numbers), value);
                memo.set(key(random % 7), u32::MAX - 1 - step as u32);
                // Now and then more has changed than is noted.
                if step % 20 != 0 || step % 400 < 200 {
                    continue;
                }
                all += u32::from(copy.follow(&mut memo));
                for number in 0..numbers {
                    assert_eq!(device(&copy, key(number)), memo.lookup(&key(number)), "{number}");
                }
            }
            assert!(copy.copied > 60 && (all > 5 || entries < 1_000), "{} {all}", copy.copied);
            memo.set(key(1 << 40), Memo::NOTHING);
            let mut changes = Changes::default();
            while {
                memo.changes(&mut changes);
                !changes.is_empty()
            } {}
            memo.set(key(1 << 40), Memo::NOTHING);
            memo.changes(&mut changes);
            assert!(changes.is_empty(), "to forget what is not known changes nothing");
        }
    }
}
