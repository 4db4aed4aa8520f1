//! Entries in lines: keys of up to 13 bytes with their values, four to a line.

use super::strays::Strays;
use super::{CuckooError, Nest, Secrets, make_room, scale};
use crate::image::{self, Changes, Journal, Kind, Layout, Line};
use crate::lookup::Lookup;
use crate::prefetch::prefetch_slice_at;
use crate::simd::Processor;
use crate::simd::cuckoo::{self as kernels, Inline, Kernel, Plain};
use std::marker::PhantomData;

/// What a slot of four words holds; see [`crate::image`].
pub trait Slot: Copy {
    /// The key's bits.
    const MASK: [u32; 4];
    /// What devices know it as.
    const KIND: Kind;
}

/// A key of a table with such slots: its words, zero where there is no key.
#[repr(C, align(16))]
pub struct Short<S> {
    pub(crate) words: [u32; 4],
    slot: PhantomData<S>,
}

impl<S> Short<S> {
    pub(crate) const fn of(words: [u32; 4]) -> Self {
        Self { words, slot: PhantomData }
    }

    /// The words, as devices see them.
    pub const fn words(&self) -> [u32; 4] {
        self.words
    }
}

impl<S> Clone for Short<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Short<S> {}

impl<S> PartialEq for Short<S> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl<S> Eq for Short<S> {}

impl<S> std::hash::Hash for Short<S> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}

impl<S> std::fmt::Debug for Short<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x?}", self.words)
    }
}

/// A look-up between its phases. It stays valid whatever happens to the table in between.
#[derive(Clone, Copy, Default, Debug)]
pub struct SlotProbe {
    pub(crate) home: u32,
    pub(crate) other: u32,
    /// It wasn't at home; the other bucket was asked for.
    away: bool,
}

/// A flat cuckoo table of slots `S`: at most so many entries as were asked for, in 19.2 bytes each.
pub struct Slots<S> {
    lines: Vec<Line>,
    strays: Strays,
    secrets: Secrets<4>,
    len: u32,
    limit: u32,
    processor: Processor,
    journal: Option<Box<Journal>>,
    slot: PhantomData<S>,
}

impl<S: Slot> Slots<S> {
    /// The largest value: a slot has 24 bits, and one value stands for a vacant slot.
    pub const MAX_VALUE: u32 = (1 << 24) - 2;

    /// An empty table of at most `limit` entries (of which there can be 2^28), with memory for all of them: then 90 % of its slots are taken. The
    /// seed should be random.
    pub fn new(seed: u64, limit: u32) -> Result<Self, CuckooError> {
        let limit = limit.min(1 << 28);
        // Two more, so that small tables, too, have somewhere to go.
        let buckets = (u64::from(limit) * 10).div_ceil(36) as usize + 2;
        Ok(Self {
            lines: image::zeroed(buckets).map_err(|_| CuckooError::Full)?,
            strays: Strays::new(buckets)?,
            secrets: Secrets::new(seed),
            len: 0,
            limit,
            processor: Processor::best(),
            journal: None,
            slot: PhantomData,
        })
    }

    /// Looks bulks up with the instructions of this processor, or of the best below it that is here.
    #[must_use]
    pub fn with_processor(mut self, processor: Processor) -> Self {
        self.processor = processor;
        self
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most entries.
    pub const fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Bytes of memory that the table owns, without a journal.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.lines.capacity() * size_of::<Line>() + self.strays.memory()
    }

    /// The value of `key`.
    pub fn get(&self, key: &Short<S>) -> Option<u32> {
        self.lookup(key)
    }

    /// Adds or replaces an entry; the value that the key had before.
    pub fn insert(&mut self, key: Short<S>, value: u32) -> Result<Option<u32>, CuckooError> {
        self.enter(self.probe(&key), key, value)
    }

    /// For a key that is going to be entered: asks for both of its buckets.
    #[inline]
    pub fn expect(&self, key: &Short<S>) -> SlotProbe {
        let probe = self.probe(key);
        prefetch_slice_at(&self.lines, probe.home as usize);
        prefetch_slice_at(&self.lines, probe.other as usize);
        probe
    }

    /// As [`Self::insert`], for a key that was prepared or expected.
    pub fn enter(&mut self, probe: SlotProbe, key: Short<S>, value: u32) -> Result<Option<u32>, CuckooError> {
        if value > Self::MAX_VALUE {
            return Err(CuckooError::Value);
        }
        let mut words = key.words;
        words[3] |= (value + 1) << 8;
        let before = self.put(probe, &key, words)?;
        Ok(before.and_then(|words| (words[3] >> 8).checked_sub(1)))
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &Short<S>) -> Option<u32> {
        let (bucket, slot) = self.position(self.probe(key), key)?;
        let words = self.clear(bucket, slot)?;
        (words[3] >> 8).checked_sub(1)
    }

    /// Writes a slot for a key: what was in it, if it was there.
    pub(crate) fn put(
        &mut self,
        probe: SlotProbe,
        key: &Short<S>,
        words: [u32; 4],
    ) -> Result<Option<[u32; 4]>, CuckooError> {
        if let Some((bucket, slot)) = self.position(probe, key) {
            let before = self.slot(bucket, slot);
            self.write(bucket, slot, words);
            return Ok(before);
        }
        if self.len >= self.limit {
            return Err(CuckooError::Full);
        }
        let SlotProbe { home, other, .. } = probe;
        let vacant =
            [home, other].into_iter().find_map(|bucket| self.vacancy(bucket).map(|slot| (bucket, slot)));
        let (bucket, slot) = vacant.or_else(|| make_room(self, [home, other])).ok_or(CuckooError::Full)?;
        self.write(bucket, slot, words);
        if bucket != home {
            self.strays.add(home, other);
        }
        self.len += 1;
        Ok(None)
    }

    /// Where a key is.
    pub(crate) fn position(&self, probe: SlotProbe, key: &Short<S>) -> Option<(u32, usize)> {
        [probe.home, probe.other].into_iter().find_map(|bucket| {
            let slot = Plain::find(self.lines.get(bucket as usize)?, &key.words, &S::MASK);
            (slot < 4).then_some((bucket, slot))
        })
    }

    /// A slot that is taken.
    pub(crate) fn slot(&self, bucket: u32, slot: usize) -> Option<[u32; 4]> {
        let words = *self.lines.get(bucket as usize)?.0.as_chunks::<4>().0.get(slot)?;
        (words[3] >> 8 != 0).then_some(words)
    }

    /// Vacates a slot.
    pub(crate) fn clear(&mut self, bucket: u32, slot: usize) -> Option<[u32; 4]> {
        let words = self.slot(bucket, slot)?;
        self.write(bucket, slot, [0; 4]);
        let SlotProbe { home, other, .. } = self.probe_of(words);
        if bucket != home {
            self.strays.remove(home, other);
        }
        self.len -= 1;
        Some(words)
    }

    pub(crate) fn write(&mut self, bucket: u32, slot: usize, words: [u32; 4]) {
        let line = self.lines.get_mut(bucket as usize);
        if let Some(own) = line.and_then(|line| line.0.as_chunks_mut::<4>().0.get_mut(slot)) {
            *own = words;
        }
        if let Some(journal) = &mut self.journal {
            journal.note(0, bucket as usize);
        }
    }

    /// Of each bucket and sort: how many strays are counted, and how many there are.
    #[cfg(test)]
    pub(crate) fn counted_strays(&self) -> [Vec<u32>; 2] {
        let mut there = vec![0; 8 * self.lines.len()];
        for bucket in 0..self.buckets() {
            for words in (0..4).filter_map(|slot| self.slot(bucket, slot)) {
                let SlotProbe { home, other, .. } = self.probe_of(words);
                there[8 * home as usize + other as usize % 8] += u32::from(bucket != home);
            }
        }
        let counted = (0..there.len() as u32).map(|at| {
            let count = self.strays.count(at / 8, at % 8);
            assert_eq!(self.strays.may_be(at / 8, at % 8), count > 0);
            count
        });
        [counted.collect(), there]
    }

    pub(crate) fn buckets(&self) -> u32 {
        self.lines.len() as u32
    }

    #[inline(always)]
    pub(crate) fn probe(&self, key: &Short<S>) -> SlotProbe {
        let hash = self.secrets.hash(&key.words);
        let buckets = self.buckets();
        SlotProbe { home: scale(hash.a, buckets), other: scale(hash.b, buckets), away: false }
    }

    /// Of the key in a slot.
    fn probe_of(&self, words: [u32; 4]) -> SlotProbe {
        self.probe(&Short::of(std::array::from_fn(|at| words[at] & S::MASK[at])))
    }

    #[inline(always)]
    fn value_at(&self, bucket: u32, key: &Short<S>) -> Option<u32> {
        let line = self.lines.get(bucket as usize)?;
        kernels::value(line, Plain::find(line, &key.words, &S::MASK))
    }

    fn inline(&self) -> Inline<'_> {
        Inline { lines: &self.lines, marks: self.strays.marks(), secrets: &self.secrets, mask: &S::MASK }
    }
}

/// Two phases: the home bucket, and for one key in five the other one. A key's sort is its other bucket's.
impl<S: Slot> Lookup for Slots<S> {
    type Key = Short<S>;
    type Value = u32;
    type Probe = SlotProbe;

    #[inline(always)]
    fn prepare(&self, key: &Short<S>) -> SlotProbe {
        let probe = self.probe(key);
        prefetch_slice_at(&self.lines, probe.home as usize);
        probe
    }

    #[inline(always)]
    fn step(&self, probe: &mut SlotProbe, key: &Short<S>) -> bool {
        if !probe.away
            && self.strays.may_be(probe.home, probe.other)
            && self.value_at(probe.home, key).is_none()
        {
            probe.away = true;
            prefetch_slice_at(&self.lines, probe.other as usize);
        }
        false
    }

    #[inline(always)]
    fn finish(&self, probe: SlotProbe, key: &Short<S>) -> Option<u32> {
        let SlotProbe { home, other, away } = probe;
        if !self.strays.may_be(home, other) {
            return self.value_at(home, key);
        }
        let (first, second) = if away { (other, home) } else { (home, other) };
        self.value_at(first, key).or_else(|| self.value_at(second, key))
    }

    fn lookup_bulk(&self, keys: &[Short<S>], out: &mut [Option<u32>]) {
        kernels::bulk(self.processor, self.inline(), crate::simd::words::of_keys(keys), out);
    }
}

impl<S: Slot> Nest for Slots<S> {
    const WAYS: usize = 4;

    fn vacancy(&self, bucket: u32) -> Option<usize> {
        let slots = self.lines.get(bucket as usize)?.0.as_chunks::<4>().0;
        slots.iter().position(|slot| slot[3] >> 8 == 0)
    }

    fn other(&self, bucket: u32, slot: usize) -> u32 {
        let Some(words) = self.slot(bucket, slot) else { return bucket };
        let probe = self.probe_of(words);
        if probe.home == bucket { probe.other } else { probe.home }
    }

    fn fetch(&self, bucket: u32) {
        prefetch_slice_at(&self.lines, bucket as usize);
    }

    fn shift(&mut self, from: (u32, usize), to: (u32, usize)) {
        if let Some(words) = self.slot(from.0, from.1) {
            self.write(to.0, to.1, words);
            self.write(from.0, from.1, [0; 4]);
            let SlotProbe { home, other, .. } = self.probe_of(words);
            match (from.0 == home, to.0 == home) {
                (true, false) => self.strays.add(home, other),
                (false, true) => self.strays.remove(home, other),
                _ => (),
            }
        }
    }
}

impl<S: Slot> image::Image for Slots<S> {
    fn layout(&self) -> Layout {
        let mut parameters = self.secrets.parameters(self.buckets());
        parameters.iter_mut().skip(8).zip(S::MASK).for_each(|(word, mask)| *word = mask);
        Layout { kind: S::KIND, parameters }
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

impl<S> std::fmt::Debug for Slots<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").field("len", &self.len).field("limit", &self.limit).finish_non_exhaustive()
    }
}
