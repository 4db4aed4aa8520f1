//! IPv6 5-tuples: tags in lines, and a line for each record.

use crate::cuckoo::{CuckooError, Hash, Nest, Secrets, make_room, scale};
use crate::image::{self, Changes, Journal, Kind, Layout, Line};
use crate::lookup::Lookup;
use crate::prefetch::prefetch_slice_at;
use crate::simd::Processor;
use crate::simd::tags::{self, Tagged};
use std::net::Ipv6Addr;

/// An IPv6 5-tuple.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C, align(8))]
pub struct Tuple6 {
    pub(crate) words: [u32; 10],
}

impl Tuple6 {
    /// Of these addresses, protocol and ports.
    pub fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        protocol: u8,
        source_port: u16,
        destination_port: u16,
    ) -> Self {
        let mut words = [0; 10];
        let addresses = [source.to_bits(), destination.to_bits()];
        let parts = addresses.iter().flat_map(|bits| [96, 64, 32, 0].map(|shift| (bits >> shift) as u32));
        words.iter_mut().zip(parts).for_each(|(word, part)| *word = part);
        words[8] = u32::from(source_port) << 16 | u32::from(destination_port);
        words[9] = protocol.into();
        Self { words }
    }

    /// The words, as devices see them.
    pub const fn words(&self) -> [u32; 10] {
        self.words
    }
}

/// A look-up between its phases. It stays valid whatever happens to the table in between.
#[derive(Clone, Copy, Default, Debug)]
pub struct TagProbe {
    hash: Hash,
    at: At,
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
enum At {
    /// The home bucket was asked for.
    #[default]
    Home,
    /// Its tags don't have it; the other bucket was asked for.
    Other,
    /// A record was asked for.
    Record,
    /// No tag has it.
    Nowhere,
}

/// The word of a record that has the value.
pub(crate) const VALUE: usize = 10;
/// Slots of a bucket.
const WAYS: usize = 8;

/// IPv6 flows, each with a value of 32 bits; see the module's documentation.
pub struct Flows6 {
    buckets: Vec<Line>,
    records: Vec<Line>,
    /// Records that were given back.
    free: Vec<u32>,
    /// Records that were ever used.
    used: u32,
    secrets: Secrets<10>,
    limit: u32,
    processor: Processor,
    journal: Option<Box<Journal>>,
}

impl Flows6 {
    /// An empty table of at most `limit` flows (of which there can be 2^26), with memory for all of them. The seed should be random.
    pub fn new(seed: u64, limit: u32) -> Result<Self, CuckooError> {
        let limit = limit.min(1 << 26);
        let buckets = (u64::from(limit) * 10).div_ceil(72) as usize + 2;
        let zeroed = |count| image::zeroed(count).map_err(|_| CuckooError::Full);
        Ok(Self {
            buckets: zeroed(buckets)?,
            records: zeroed(limit as usize)?,
            free: Vec::new(),
            used: 0,
            secrets: Secrets::new(seed),
            limit,
            processor: Processor::best(),
            journal: None,
        })
    }

    /// Looks bulks up with the instructions of this processor, or of the best below it that is here.
    #[must_use]
    pub const fn with_processor(mut self, processor: Processor) -> Self {
        self.processor = processor;
        self
    }

    /// Number of flows.
    pub const fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    /// Whether there are no flows.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most flows.
    pub const fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Bytes of memory that the table owns, without a journal.
    pub fn memory(&self) -> usize {
        let lines = self.buckets.capacity() + self.records.capacity();
        size_of::<Self>() + lines * size_of::<Line>() + self.free.capacity() * size_of::<u32>()
    }

    /// The value of `key`.
    pub fn get(&self, key: &Tuple6) -> Option<u32> {
        self.lookup(key)
    }

    /// For a key that is going to be entered: asks for both of its buckets.
    #[inline]
    pub fn expect(&self, key: &Tuple6) -> TagProbe {
        let hash = self.secrets.hash(&key.words);
        let home = self.home(hash);
        prefetch_slice_at(&self.buckets, home as usize);
        prefetch_slice_at(&self.buckets, self.opposite(home, hash.b) as usize);
        TagProbe { hash, at: At::Home }
    }

    /// Adds or replaces a flow; the value that it had before.
    pub fn insert(&mut self, key: Tuple6, value: u32) -> Result<Option<u32>, CuckooError> {
        self.enter(TagProbe { hash: self.secrets.hash(&key.words), at: At::Home }, key, value)
    }

    /// As [`Self::insert`], for a key that was prepared or expected.
    pub fn enter(&mut self, probe: TagProbe, key: Tuple6, value: u32) -> Result<Option<u32>, CuckooError> {
        let TagProbe { hash, .. } = probe;
        if let Some((_, _, record)) = self.position(hash, &key) {
            let before = self.value(record);
            self.write_record(record, &key, value);
            return Ok(before);
        }
        let record = self.free.last().copied().unwrap_or(self.used);
        if record >= self.limit {
            return Err(CuckooError::Full);
        }
        let home = self.home(hash);
        let roots = [home, self.opposite(home, hash.b)];
        let vacant = roots.into_iter().find_map(|bucket| self.vacancy(bucket).map(|slot| (bucket, slot)));
        let (bucket, slot) = vacant.or_else(|| make_room(self, roots)).ok_or(CuckooError::Full)?;
        if self.free.pop().is_none() {
            self.used += 1;
        }
        // The record first: a tag leads to it.
        self.write_record(record, &key, value);
        self.write_slot(bucket, slot, (hash.b, record + 1));
        Ok(None)
    }

    /// Removes a flow and returns its value.
    pub fn remove(&mut self, key: &Tuple6) -> Option<u32> {
        let (bucket, slot, record) = self.position(self.secrets.hash(&key.words), key)?;
        let value = self.value(record);
        self.write_slot(bucket, slot, (0, 0));
        self.free.push(record);
        value
    }

    #[inline(always)]
    fn home(&self, hash: Hash) -> u32 {
        scale(hash.a, self.buckets.len() as u32)
    }

    /// The other bucket of a tag that may be in this one: of either, it gives the other.
    #[inline(always)]
    fn opposite(&self, bucket: u32, tag: u32) -> u32 {
        opposite(bucket, tag, self.buckets.len() as u32)
    }

    /// Where a key's slot is, and its record.
    fn position(&self, hash: Hash, key: &Tuple6) -> Option<(u32, usize, u32)> {
        let home = self.home(hash);
        [home, self.opposite(home, hash.b)].into_iter().find_map(|bucket| {
            let line = self.buckets.get(bucket as usize)?;
            tags_of(line).find_map(|(slot, tag, record)| {
                let is_it = tag == hash.b && self.holds(record, key);
                is_it.then_some((bucket, slot, record))
            })
        })
    }

    /// Both buckets of a key.
    #[cfg(test)]
    pub(super) fn places(&self, key: &Tuple6) -> [u32; 2] {
        let hash = self.secrets.hash(&key.words);
        [self.home(hash), self.opposite(self.home(hash), hash.b)]
    }

    /// Gives all slots the tag of one key.
    #[cfg(test)]
    pub(super) fn set_all_tags(&mut self, key: &Tuple6) {
        let tag = self.secrets.hash(&key.words).b;
        self.buckets.iter_mut().for_each(|line| line.0[..WAYS].fill(tag));
    }

    fn holds(&self, record: u32, key: &Tuple6) -> bool {
        self.records.get(record as usize).is_some_and(|line| line.0.starts_with(&key.words))
    }

    fn value(&self, record: u32) -> Option<u32> {
        self.records.get(record as usize).map(|line| line.0[VALUE])
    }

    /// The record that the first fitting tag of a bucket names.
    #[inline(always)]
    fn candidate(&self, bucket: u32, tag: u32) -> Option<u32> {
        let line = self.buckets.get(bucket as usize)?;
        tags_of(line).find(|(_, own, _)| *own == tag).map(|(_, _, record)| record)
    }

    fn write_record(&mut self, record: u32, key: &Tuple6, value: u32) {
        if let Some(line) = self.records.get_mut(record as usize) {
            line.0.iter_mut().zip(&key.words).for_each(|(own, word)| *own = *word);
            line.0[VALUE] = value;
        }
        if let Some(journal) = &mut self.journal {
            journal.note(1, record as usize);
        }
    }

    fn write_slot(&mut self, bucket: u32, slot: usize, (tag, number): (u32, u32)) {
        if let Some(line) = self.buckets.get_mut(bucket as usize)
            && slot < WAYS
        {
            line.0[slot] = tag;
            line.0[WAYS + slot] = number;
        }
        if let Some(journal) = &mut self.journal {
            journal.note(0, bucket as usize);
        }
    }
}

/// As [`Flows6::opposite`].
#[inline(always)]
pub(crate) const fn opposite(bucket: u32, tag: u32, buckets: u32) -> u32 {
    let other = scale(tag, buckets).wrapping_sub(bucket);
    // Below zero it is large: then one of all buckets more is the smaller number.
    let wrapped = other.wrapping_add(buckets);
    if wrapped < other { wrapped } else { other }
}

/// The slots of a bucket that are taken: number, tag and record.
fn tags_of(line: &Line) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
    let (tags, numbers) = line.0.split_at(WAYS);
    let slots = tags.iter().zip(numbers).enumerate();
    slots.filter_map(|(slot, (tag, number))| number.checked_sub(1).map(|record| (slot, *tag, record)))
}

/// Three phases: the home bucket, for some the other one, and the record.
impl Lookup for Flows6 {
    type Key = Tuple6;
    type Value = u32;
    type Probe = TagProbe;

    #[inline(always)]
    fn prepare(&self, key: &Tuple6) -> TagProbe {
        let hash = self.secrets.hash(&key.words);
        prefetch_slice_at(&self.buckets, self.home(hash) as usize);
        TagProbe { hash, at: At::Home }
    }

    #[inline(always)]
    fn step(&self, probe: &mut TagProbe, _: &Tuple6) -> bool {
        let TagProbe { hash, at } = *probe;
        let bucket = match at {
            At::Home => self.home(hash),
            At::Other => self.opposite(self.home(hash), hash.b),
            At::Record | At::Nowhere => return false,
        };
        probe.at = match (self.candidate(bucket, hash.b), at) {
            (Some(record), _) => {
                prefetch_slice_at(&self.records, record as usize);
                At::Record
            }
            (None, At::Home) => {
                prefetch_slice_at(&self.buckets, self.opposite(self.home(hash), hash.b) as usize);
                At::Other
            }
            (None, _) => At::Nowhere,
        };
        probe.at == At::Other
    }

    #[inline(always)]
    fn finish(&self, probe: TagProbe, key: &Tuple6) -> Option<u32> {
        let (_, _, record) = self.position(probe.hash, key)?;
        self.value(record)
    }

    fn lookup_bulk(&self, keys: &[Tuple6], out: &mut [Option<u32>]) {
        let table = Tagged { buckets: &self.buckets, records: &self.records, secrets: &self.secrets };
        tags::bulk(self.processor, table, keys, out);
    }
}

impl Nest for Flows6 {
    const WAYS: usize = WAYS;

    fn vacancy(&self, bucket: u32) -> Option<usize> {
        self.buckets.get(bucket as usize)?.0.get(WAYS..)?.iter().position(|number| *number == 0)
    }

    fn other(&self, bucket: u32, slot: usize) -> u32 {
        let tag = self.buckets.get(bucket as usize).and_then(|line| line.0.get(slot));
        tag.map_or(bucket, |tag| self.opposite(bucket, *tag))
    }

    fn fetch(&self, bucket: u32) {
        prefetch_slice_at(&self.buckets, bucket as usize);
    }

    fn shift(&mut self, from: (u32, usize), to: (u32, usize)) {
        let Some(line) = self.buckets.get(from.0 as usize).copied() else { return };
        if let (Some(tag), Some(number)) = (line.0.get(from.1), line.0.get(WAYS + from.1)) {
            self.write_slot(to.0, to.1, (*tag, *number));
            self.write_slot(from.0, from.1, (0, 0));
        }
    }
}

impl image::Image for Flows6 {
    fn layout(&self) -> Layout {
        Layout { kind: Kind::Flow6, parameters: self.secrets.parameters(self.buckets.len() as u32) }
    }

    fn regions(&self) -> Vec<&[u32]> {
        [&self.buckets, &self.records].map(|lines| crate::simd::words::of_lines(lines)).to_vec()
    }

    fn track(&mut self, limit: usize) {
        self.journal = Some(Box::new(Journal::new(limit)));
    }

    fn changes(&mut self, into: &mut Changes) {
        image::take(self.journal.as_deref_mut(), into);
    }
}

impl std::fmt::Debug for Flows6 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flows6").field("len", &self.len()).field("limit", &self.limit).finish_non_exhaustive()
    }
}
