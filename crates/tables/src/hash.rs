//! Exact match: a cuckoo hash map whose hits and misses normally read one cache line.
//!
//! **Problem.** A packet's key (UE address, /64 prefix, TEID) leads to a slot number. With a million subscribers the
//! table lives in DRAM, so what counts is the number of lines read per lookup, and how many lookups are under way at once.
//!
//! **Layout.** An array of 64-byte buckets with `WAYS` keys, their values and four bytes of bookkeeping: `u32 -> u32` has
//! seven entries a line, `u64 -> u32` and `u32 -> u64` five. Keys are compared directly, all of them at once; there are no
//! signatures to verify afterwards. An entry lives in one of two buckets that its hash names: *home*, or *away* when
//! home was full. A bucket counts its entries that are away, so that a lookup that finds nothing at home reads the
//! second line only if something was displaced from there: misses (unknown TEIDs, scans) cost one line too.
//!
//! **Growth.** When 15/16 of the slots are taken (less for narrow buckets), an array of twice the size is opened, and each
//! later insertion or removal moves two old buckets into it; bucket *b* splits into *2b* and *2b + 1*, so a lookup knows which
//! array holds a bucket by comparing one index, and never looks into both. No operation rehashes a whole table; a small one is
//! moved at once. Moving calls entries home where there is room, and the counts of displaced entries stay exact throughout.
//!
//! **Use on the packet path.** Two steps, interleaved over a burst and over any number of maps:
//!
//! ```
//! use tables::{BulkMap, Lookup};
//! let mut map: BulkMap<u32, u32> = BulkMap::new(0x5eed);
//! map.insert(0x0a00_0001, 7)?;
//! let keys = [0x0a00_0001, 0x0a00_0002];
//! let probes = keys.map(|key| map.prepare(&key)); // hashes, and prefetches the line
//! // ... other packets' prepare, other work ...
//! let found = [map.finish(probes[0], &keys[0]), map.finish(probes[1], &keys[1])];
//! assert_eq!(found, [Some(7), None]);
//! # Ok::<(), tables::Full>(())
//! ```
//!
//! **Cost.** An empty map is 64 bytes and owns no memory. `u32 -> u32` takes 10 to 20 bytes an entry, 14 on average over sizes.
//! `examples/cycles.rs` prints cycles per lookup. Arrays are reserved and returned in pieces of 512 KiB, so no
//! step takes longer than giving back one of them. What the allocator does with many is its own: hundreds of maps that outgrow their
//! arrays at the same size leave glibc that many free blocks, which it sorts in one later call (150 us for 512 maps).
//!
//! **When not to use it.** For keys above 16 bytes, where comparing all of a bucket's keys reads several lines. For
//! keys of which more than `2 * WAYS` share a 64-bit hash: these are refused with [`Full`]. The hash is seeded so that nobody who
//! doesn't know the seed can choose such keys; seed every table from a random number.

use crate::lookup::Lookup;
use crate::prefetch::prefetch;
use crate::segments::Segments;
use crate::simd;

/// No place for the entry: the limit is reached, or too many keys share a hash. The map is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no room left in the table")
    }
}

impl std::error::Error for Full {}

/// Folds the 128-bit product of two words into 64 bits: the mixing step of the tables' hashes.
#[inline(always)]
pub const fn mix(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    product as u64 ^ (product >> 64) as u64
}

/// What can be a key of a [`BulkMap`].
///
/// `Default` only fills vacant slots; any value, the default included, is a legal key.
pub trait TableKey: Copy + Eq + Default {
    /// A 64-bit hash whose upper and lower halves are both well mixed, different for every seed.
    fn hash(&self, seed: u64) -> u64;

    /// The bit mask of the positions in `keys` that equal `key`; bits of vacant slots are ignored by the caller.
    #[inline(always)]
    fn find<const N: usize>(keys: &[Self; N], key: &Self) -> u32 {
        simd::find_portable(keys, *key)
    }
}

/// Constants without structure: the fractions of the golden ratio and of the square root of 5.
const PHI: u64 = 0x9e37_79b9_7f4a_7c15;
const ROOT: u64 = 0x3c6e_f372_fe94_f82b;

/// Hashes a word in two rounds. One isn't enough: the products of consecutive addresses with one random multiplier fall into
/// few buckets for the one multiplier in a hundred that is near a fraction of small numbers. The first round spreads them with
/// a multiplier known to be good, the second makes what a stranger can know of the result nothing.
#[inline(always)]
const fn hash_word(word: u64, seed: u64) -> u64 {
    mix(mix(word ^ seed, PHI), (seed.rotate_left(31) ^ ROOT) | 1)
}

impl TableKey for u32 {
    #[inline(always)]
    fn hash(&self, seed: u64) -> u64 {
        hash_word(*self as u64, seed)
    }

    #[inline(always)]
    fn find<const N: usize>(keys: &[Self; N], key: &Self) -> u32 {
        match keys.first_chunk::<7>() {
            Some(seven) if N == 7 => simd::find_u32x7(seven, *key),
            _ => simd::find_portable(keys, *key),
        }
    }
}

impl TableKey for u64 {
    #[inline(always)]
    fn hash(&self, seed: u64) -> u64 {
        hash_word(*self, seed)
    }

    #[inline(always)]
    fn find<const N: usize>(keys: &[Self; N], key: &Self) -> u32 {
        match keys.first_chunk::<5>() {
            Some(five) if N == 5 => simd::find_u64x5(five, *key),
            _ => simd::find_portable(keys, *key),
        }
    }
}

impl TableKey for u128 {
    #[inline(always)]
    fn hash(&self, seed: u64) -> u64 {
        let high = hash_word((*self >> 64) as u64, seed);
        hash_word(*self as u64 ^ high, seed.rotate_left(17))
    }
}

/// A line of the table.
///
/// The counts of displaced entries have two readings. In the array in use, `away` is the number of entries whose home
/// is this bucket and that live in another one of this array, and `unsettled[0]` the number of those, of this
/// bucket and its sibling together, that still live in the old array. In the old array, `away` counts the entries
/// displaced from here that live in the old array, and `unsettled[c]` those that live in the new one and whose home will be child
/// *c* of this bucket. Outside a growth `unsettled` is zero. A count that reaches 255 stays there: too high is slow, never wrong.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Bucket<K, V, const WAYS: usize> {
    keys: [K; WAYS],
    // The bookkeeping sits in the middle so that neither a wide key nor a wide value needs padding.
    occupied: u8,
    away: u8,
    unsettled: [u8; 2],
    values: [V; WAYS],
}

/// Of a flow table's index.
pub(crate) type IndexBucket = Bucket<u32, u32, 7>;

impl<K: TableKey, V: Copy + Default, const WAYS: usize> Bucket<K, V, WAYS> {
    const ALL: u8 = {
        assert!(WAYS >= 1 && WAYS <= 8, "a bucket has 1 to 8 ways");
        (0xff_u16 >> (8 - WAYS)) as u8
    };

    fn vacant(away: u8, shared: u8) -> Self {
        Self {
            keys: [K::default(); WAYS],
            values: [V::default(); WAYS],
            occupied: 0,
            away,
            unsettled: [shared, 0],
        }
    }

    /// Where `key` is in this bucket.
    #[inline(always)]
    fn position(&self, key: &K) -> Option<usize> {
        let mask = K::find(&self.keys, key) & self.occupied as u32;
        (mask != 0).then(|| mask.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn value_of(&self, key: &K) -> Option<V> {
        self.position(key).and_then(|i| self.values.get(i)).copied()
    }

    /// Whether anything whose home is here lives elsewhere.
    #[inline(always)]
    fn displaced(&self) -> bool {
        self.away | self.unsettled[0] | self.unsettled[1] != 0
    }

    fn has_room(&self) -> bool {
        self.occupied != Self::ALL
    }

    /// Puts an entry into a vacant slot; `false` when there is none.
    fn put(&mut self, key: K, value: V) -> bool {
        let slot = (!self.occupied & Self::ALL).trailing_zeros() as usize;
        match (self.keys.get_mut(slot), self.values.get_mut(slot)) {
            (Some(k), Some(v)) => {
                *k = key;
                *v = value;
                self.occupied |= 1 << slot;
                true
            }
            _ => false,
        }
    }

    fn entry(&self, slot: usize) -> Option<(K, V)> {
        let taken = slot < WAYS && self.occupied >> slot & 1 == 1;
        taken.then(|| self.keys.get(slot).copied().zip(self.values.get(slot).copied())).flatten()
    }

    fn entries(&self) -> impl Iterator<Item = (K, V)> + '_ {
        (0..WAYS).filter_map(|slot| self.entry(slot))
    }
}

/// A hash between the two phases of a look-up. It stays valid whatever happens to the map in between.
#[derive(Clone, Copy, Default, Debug)]
pub struct Probe(u64);

impl Probe {
    /// The half that names the home bucket.
    #[inline(always)]
    const fn home(self) -> u64 {
        self.0 >> 32
    }

    /// The half that names the other one.
    #[inline(always)]
    const fn other(self) -> u64 {
        self.0 & 0xffff_ffff
    }
}

/// A bucket's place: in the old array during a growth, or in the one in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    old: bool,
    index: usize,
}

/// A bulk cuckoo hash map from `K` to `V` with `WAYS` entries a bucket; see the module's documentation.
///
/// Choose `WAYS` so that `WAYS * (size_of::<K>() + size_of::<V>()) + 4` is at most 64: 7 (the default) for two `u32`s, 5
/// for a `u32` and a `u64`, 3 for a `u128` and a `u32`.
// One line of its own, so that an array of maps (one per shard) costs one line per lookup, too.
#[derive(Clone)]
#[repr(align(64))]
pub struct BulkMap<K, V, const WAYS: usize = 7> {
    /// The array in use. During a growth it holds the children of the buckets that have been moved so far.
    buckets: Segments<Bucket<K, V, WAYS>>,
    /// The array being left, during a growth.
    old: Option<Box<Old<K, V, WAYS>>>,
    seed: u64,
    len: u32,
    /// 32 minus the logarithm of the final number of buckets.
    shift: u32,
}

/// The array that a growth leaves.
#[derive(Clone)]
struct Old<K, V, const WAYS: usize> {
    buckets: Segments<Bucket<K, V, WAYS>>,
    /// How many it had.
    len: usize,
    /// Buckets below this one are already moved.
    moved: usize,
}

/// The largest number of buckets: indices come from 32-bit halves of a hash.
const MAX_BUCKETS_LOG: u32 = 28;
/// Below this many buckets a growth is done at once (a few microseconds).
const SMALL: usize = 64;
/// Old buckets moved with each insertion or removal: growth ends long before the next one is due.
const STEP: usize = 2;
/// Buckets that the search for a displacement path visits before it gives up.
const SEARCH: usize = 192;

/// Two phases: [`Lookup::prepare`] fetches the home bucket, and one look-up in some twenty waits for the other one in [`Lookup::finish`].
impl<K: TableKey, V: Copy + Default, const WAYS: usize> Lookup for BulkMap<K, V, WAYS> {
    type Key = K;
    type Value = V;
    type Probe = Probe;

    #[inline(always)]
    fn prepare(&self, key: &K) -> Probe {
        let probe = self.probe(key);
        self.fetch(probe);
        probe
    }

    #[inline(always)]
    fn finish(&self, probe: Probe, key: &K) -> Option<V> {
        let home = self.bucket(probe.home())?;
        match home.value_of(key) {
            Some(value) => Some(value),
            None if home.displaced() => self.finish_away(probe, key),
            None => None,
        }
    }
}

impl<K: TableKey, V: Copy + Default, const WAYS: usize> BulkMap<K, V, WAYS> {
    /// An empty map, which owns no memory. The seed should be random, see the module's documentation.
    pub const fn new(seed: u64) -> Self {
        Self { buckets: Segments::new(), old: None, seed, len: 0, shift: 32 }
    }

    /// A map that takes `entries` entries without growing.
    pub fn with_capacity(seed: u64, entries: usize) -> Self {
        let mut map = Self::new(seed);
        let mut log = 0;
        while Self::limit(1 << log) < entries && log < MAX_BUCKETS_LOG {
            log += 1;
        }
        // Without the memory for it, the map begins small.
        if let Ok(buckets) = Segments::with_capacity(1 << log) {
            map.buckets = buckets;
            map.shift = 32 - log;
            for index in 0..1 << log {
                if index % 2 == 0 && map.buckets.reserve_pair(index).is_err() {
                    return Self::new(seed);
                }
                map.buckets.push(index, Bucket::vacant(0, 0));
            }
        }
        map
    }

    /// What it was made with.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that the map owns, itself included.
    pub fn memory(&self) -> usize {
        let array = |buckets: &Segments<Bucket<K, V, WAYS>>| {
            buckets.capacity() * size_of::<Bucket<K, V, WAYS>>() + buckets.directory()
        };
        let old = self.old.as_ref().map_or(0, |old| size_of_val(&**old) + array(&old.buckets));
        size_of::<Self>() + array(&self.buckets) + old
    }

    /// The part of [`Lookup::prepare`] that prefetches: the home bucket.
    #[inline(always)]
    pub(crate) fn fetch(&self, probe: Probe) {
        if let Some(bucket) = self.bucket(probe.home()) {
            prefetch(bucket);
        }
    }

    /// For a key that is not there and is going to be inserted: asks for what its insertion reads beside the home bucket, which was
    /// fetched before.
    pub(crate) fn foresee(&self, probe: Probe) {
        if self.bucket(probe.home()).is_some_and(|home| !home.has_room())
            && let Some(bucket) = self.bucket(probe.other())
        {
            prefetch(bucket);
        }
        if let Some(old) = &self.old {
            for index in old.moved..old.moved + STEP {
                if let Some(bucket) = old.buckets.get(index) {
                    prefetch(bucket);
                }
            }
        }
    }

    /// The end of a look-up in two, where the key may be in either bucket and nothing is to be waited for: the value, if it is in the home
    /// bucket. If it may be in the other one (and so it says), that is prefetched for [`Self::finish_other`].
    #[inline(always)]
    pub(crate) fn finish_home(&self, probe: Probe, key: &K) -> (Option<V>, bool) {
        let Some(home) = self.bucket(probe.home()) else { return (None, false) };
        let value = home.value_of(key);
        let is_elsewhere = value.is_none() && home.displaced();
        if is_elsewhere {
            self.fetch_other(probe);
        }
        (value, is_elsewhere)
    }

    #[cold]
    #[inline(never)]
    fn fetch_other(&self, probe: Probe) {
        if let Some(other) = self.bucket(probe.other()) {
            prefetch(other);
        }
    }

    /// The value, if it is in the other bucket.
    pub(crate) fn finish_other(&self, probe: Probe, key: &K) -> Option<V> {
        let may_be = self.bucket(probe.home())?.displaced();
        may_be.then(|| self.finish_away(probe, key)).flatten()
    }

    #[cold]
    #[inline(never)]
    fn finish_away(&self, probe: Probe, key: &K) -> Option<V> {
        self.bucket(probe.other())?.value_of(key)
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.finish(self.probe(key), key)
    }

    /// The value of `key`, to be changed in place.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (place, slot) = self.locate(self.probe(key), key)?;
        self.at_mut(place)?.values.get_mut(slot)
    }

    /// Adds or replaces an entry; the value that `key` had before, or [`Full`] with the map as it was.
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<V>, Full> {
        let probe = self.probe(&key);
        if let Some((place, slot)) = self.locate(probe, &key)
            && let Some(old) = self.at_mut(place).and_then(|bucket| bucket.values.get_mut(slot))
        {
            return Ok(Some(std::mem::replace(old, value)));
        }
        self.insert_absent(probe, key, value).map(|()| None)
    }

    /// Adds an entry whose key is not there, by its probe.
    pub(crate) fn insert_absent(&mut self, probe: Probe, key: K, value: V) -> Result<(), Full> {
        self.insert_growing(probe, key, value, &mut |_| Vec::new())
    }

    /// As [`Self::insert_absent`]. If the map grows for it, `memory` is asked for a vector with room for so many buckets, and if that has
    /// none, room is made.
    pub(crate) fn insert_growing(
        &mut self,
        probe: Probe,
        key: K,
        value: V,
        memory: &mut impl FnMut(usize) -> Vec<Bucket<K, V, WAYS>>,
    ) -> Result<(), Full> {
        if self.old.is_none() {
            if self.len() >= Self::limit(self.buckets()) {
                self.grow(memory)?;
            }
        } else {
            self.settle(STEP);
        }
        while !self.place(probe, key, value) {
            // Either dense old buckets are still to be moved, or luck ran out before the limit, or keys collide on
            // purpose. Only the first two get better with room.
            if self.old.is_some() {
                let before = self.buckets();
                self.settle(SMALL);
                if self.buckets() == before {
                    return Err(Full);
                }
            } else if self.len() >= Self::limit(self.buckets()) / 4 && self.buckets() > 2
                || self.buckets() < 8
            {
                self.grow(memory)?;
            } else {
                return Err(Full);
            }
        }
        self.len += 1;
        Ok(())
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let probe = self.probe(key);
        let (place, slot) = self.locate(probe, key)?;
        let bucket = self.at_mut(place)?;
        let (_, value) = bucket.entry(slot)?;
        bucket.occupied &= !(1 << slot);
        if place != self.place_of(probe.home()) {
            self.count_away(probe, place.old, false);
        }
        self.len -= 1;
        self.settle(STEP);
        Some(value)
    }

    /// Forgets all entries and returns all memory.
    pub fn clear(&mut self) {
        *self = Self::new(self.seed);
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> + '_ {
        let left =
            self.old.iter().flat_map(|old| (old.moved..old.len).filter_map(|index| old.buckets.get(index)));
        self.buckets.iter().chain(left).flat_map(Bucket::entries)
    }

    /// What the next growth asks for (see [`Self::insert_growing`]), if that comes before the map has more than `entries`.
    pub(crate) fn grows_within(&self, entries: usize) -> Option<usize> {
        let buckets = 1 << (32 - self.shift);
        let grows = !self.buckets.is_empty() && Self::limit(buckets) < entries;
        grows.then(|| Segments::<Bucket<K, V, WAYS>>::first(2 * buckets))
    }

    /// Moves up to `count` buckets of a growth under way; `true` when none is (any more). For idle moments: insertions
    /// and removals do this by themselves.
    pub fn settle(&mut self, count: usize) -> bool {
        for _ in 0..count {
            if self.old.is_none() || self.split().is_err() {
                break;
            }
        }
        self.old.is_none()
    }

    /// Entries that this many buckets take before the map grows. Two choices of buckets of `WAYS` can be filled to 89.7, 95.9, 97.7 and 98.6
    /// per cent for 2, 3, 4 and 5 ways; staying below keeps displacement paths short.
    const fn limit(buckets: usize) -> usize {
        let slots = buckets * WAYS;
        match WAYS {
            1 => slots * 3 / 8,
            2 => slots * 3 / 4,
            3 => slots * 7 / 8,
            _ => slots * 15 / 16,
        }
    }

    /// Buckets of the array in use: while it grows, those that are there already.
    fn buckets(&self) -> usize {
        match &self.old {
            Some(old) => 2 * old.moved,
            None if self.buckets.is_empty() => 0,
            None => 1 << (32 - self.shift),
        }
    }

    #[inline(always)]
    pub(crate) fn probe(&self, key: &K) -> Probe {
        Probe(key.hash(self.seed))
    }

    /// The live bucket that half a hash names; `None` in an empty map.
    #[inline(always)]
    fn bucket(&self, half: u64) -> Option<&Bucket<K, V, WAYS>> {
        let index = (half >> self.shift) as usize;
        match self.buckets.get(index) {
            Some(bucket) => Some(bucket),
            // Not moved yet, or nothing there at all.
            None => self.old.as_ref()?.buckets.get(index / 2),
        }
    }

    fn place_of(&self, half: u64) -> Place {
        let index = (half >> self.shift) as usize;
        let old = index >= self.buckets();
        Place { old, index: if old { index / 2 } else { index } }
    }

    fn at(&self, place: Place) -> Option<&Bucket<K, V, WAYS>> {
        if place.old { self.old.as_ref()?.buckets.get(place.index) } else { self.buckets.get(place.index) }
    }

    fn at_mut(&mut self, place: Place) -> Option<&mut Bucket<K, V, WAYS>> {
        if place.old {
            self.old.as_mut()?.buckets.get_mut(place.index)
        } else {
            self.buckets.get_mut(place.index)
        }
    }

    fn locate(&self, probe: Probe, key: &K) -> Option<(Place, usize)> {
        let home = self.place_of(probe.home());
        let bucket = self.at(home)?;
        if let Some(slot) = bucket.position(key) {
            return Some((home, slot));
        }
        if !bucket.displaced() {
            return None;
        }
        let other = self.place_of(probe.other());
        self.at(other)?.position(key).map(|slot| (other, slot))
    }

    /// Notes at its home that the entry of `probe` is (or is no longer) away in a bucket of the old or of the new array.
    fn count_away(&mut self, probe: Probe, lives_in_old: bool, more: bool) {
        let change = |count: &mut u8| {
            if *count != u8::MAX {
                *count = if more { *count + 1 } else { count.saturating_sub(1) };
            }
        };
        let home = self.place_of(probe.home());
        if home.old {
            let child = (probe.home() >> self.shift) as usize & 1;
            if let Some(bucket) = self.at_mut(home) {
                match bucket.unsettled.get_mut(child) {
                    Some(settled) if !lives_in_old => change(settled),
                    _ => change(&mut bucket.away),
                }
            }
        } else if lives_in_old {
            // Which child of the bucket that was split is home wasn't known when the count was inherited: both say so.
            for index in [home.index & !1, home.index | 1] {
                if let Some(bucket) = self.buckets.get_mut(index) {
                    change(&mut bucket.unsettled[0]);
                }
            }
        } else if let Some(bucket) = self.buckets.get_mut(home.index) {
            change(&mut bucket.away);
        }
    }

    /// Opens an array of twice the size; small ones are moved at once.
    fn grow(&mut self, memory: &mut impl FnMut(usize) -> Vec<Bucket<K, V, WAYS>>) -> Result<(), Full> {
        if self.buckets.is_empty() {
            self.buckets = Segments::with_capacity(1)?;
            self.buckets.push(0, Bucket::vacant(0, 0));
            self.shift = 32;
            return Ok(());
        }
        if self.shift <= 32 - MAX_BUCKETS_LOG {
            return Err(Full);
        }
        let len = self.buckets();
        let wider = Segments::within(memory(Segments::<Bucket<K, V, WAYS>>::first(2 * len)), 2 * len)?;
        let buckets = std::mem::replace(&mut self.buckets, wider);
        self.old = Some(Box::new(Old { buckets, len, moved: 0 }));
        self.shift -= 1;
        if len <= SMALL {
            self.settle(SMALL);
        }
        Ok(())
    }

    /// Moves the next old bucket into its two children; [`Full`], with nothing changed, without the memory for them.
    fn split(&mut self) -> Result<(), Full> {
        let Some(old) = &mut self.old else { return Ok(()) };
        let from = old.moved;
        let parent = *old.buckets.get(from).ok_or(Full)?;
        self.buckets.reserve_pair(2 * from)?;
        for (child, away) in (2 * from..).zip(parent.unsettled) {
            self.buckets.push(child, Bucket::vacant(away, parent.away));
        }
        old.moved += 1;
        old.buckets.leave(from);
        for (key, value) in parent.entries() {
            let probe = self.probe(&key);
            // In the old array: the parent's children exist already, so `place_of` no longer names the parent.
            let was_home = (probe.home() >> self.shift) as usize / 2 == from;
            if !was_home {
                self.count_away(probe, true, false);
            }
            let home = self.place_of(probe.home());
            if self.at_mut(home).is_some_and(|bucket| bucket.put(key, value)) {
                continue;
            }
            // The children of a bucket hold what it held: there is room. Not at home, so this entry was away.
            let other = self.place_of(probe.other());
            if self.at_mut(other).is_some_and(|bucket| bucket.put(key, value)) {
                self.count_away(probe, other.old, true);
            }
        }
        if self.old.as_ref().is_some_and(|old| old.moved == old.len) {
            self.old = None;
        }
        Ok(())
    }

    /// Puts a new entry somewhere, displacing others if need be; `false`, with nothing changed, if there's no way.
    fn place(&mut self, probe: Probe, key: K, value: V) -> bool {
        let home = self.place_of(probe.home());
        let other = self.place_of(probe.other());
        if self.at_mut(home).is_some_and(|bucket| bucket.put(key, value)) {
            return true;
        }
        if home != other && self.at_mut(other).is_some_and(|bucket| bucket.put(key, value)) {
            self.count_away(probe, other.old, true);
            return true;
        }
        let Some(freed) = self.make_room(home, other) else { return false };
        if !self.at_mut(freed).is_some_and(|bucket| bucket.put(key, value)) {
            return false;
        }
        if freed != home {
            self.count_away(probe, freed.old, true);
        }
        true
    }

    /// Moves an entry of one of these two full buckets elsewhere, and names the bucket that now has room; nothing is changed when there
    /// is no way. Mostly the entry's other bucket has room: all those that could are asked for together.
    fn make_room(&mut self, home: Place, other: Place) -> Option<Place> {
        for from in [home, other] {
            let mut ways = [from; WAYS];
            for (slot, way) in ways.iter_mut().enumerate() {
                let Some((key, _)) = self.at(from)?.entry(slot) else { continue };
                let probe = self.probe(&key);
                let (a, b) = (self.place_of(probe.home()), self.place_of(probe.other()));
                *way = if a == from { b } else { a };
                if let Some(bucket) = self.at(*way) {
                    prefetch(bucket);
                }
            }
            let mut ways = (0..).zip(ways);
            let room = ways.find(|(_, way)| self.at(*way).is_some_and(Bucket::has_room));
            if let Some((slot, way)) = room {
                self.displace(from, slot, way);
                return Some(from);
            }
        }
        self.search(home, other)
    }

    /// Searches breadth first for the shortest chain of displacements that ends in a bucket with room, carries it out from
    /// its end, and names the root (one of the two given) that now has room. Nothing is changed when there is none.
    #[cold]
    #[inline(never)]
    fn search(&mut self, home: Place, other: Place) -> Option<Place> {
        /// A bucket reached by moving the entry in `slot` of bucket `parent`; roots are their own parents.
        #[derive(Clone, Copy)]
        struct Step {
            place: Place,
            parent: usize,
            slot: usize,
        }
        let mut steps = [Step { place: home, parent: 0, slot: 0 }; SEARCH];
        let mut count = 1;
        if home != other {
            steps[1] = Step { place: other, parent: 1, slot: 0 };
            count = 2;
        }
        let roots = count;
        let mut next = 0;
        let mut end = None;
        'search: while next < count {
            let step = *steps.get(next)?;
            for slot in 0..WAYS {
                let Some((key, _)) = self.at(step.place)?.entry(slot) else { continue };
                let probe = self.probe(&key);
                let (a, b) = (self.place_of(probe.home()), self.place_of(probe.other()));
                let place = if a == step.place { b } else { a };
                // A bucket is visited once; otherwise a chain could move the same entry twice.
                if steps.iter().take(count).any(|seen| seen.place == place) {
                    continue;
                }
                let Some(free) = steps.get_mut(count) else { break 'search };
                *free = Step { place, parent: next, slot };
                count += 1;
                if self.at(place)?.has_room() {
                    end = Some(count - 1);
                    break 'search;
                }
            }
            next += 1;
        }
        let mut at = end?;
        while at >= roots {
            let step = *steps.get(at)?;
            let parent = steps.get(step.parent)?.place;
            self.displace(parent, step.slot, step.place);
            at = step.parent;
        }
        steps.get(at).map(|root| root.place)
    }

    /// Moves the entry in `slot` of `from` to the other of its two buckets, `to`, which has room.
    fn displace(&mut self, from: Place, slot: usize, to: Place) {
        let Some((key, value)) = self.at(from).and_then(|bucket| bucket.entry(slot)) else { return };
        if !self.at_mut(to).is_some_and(|bucket| bucket.put(key, value)) {
            return;
        }
        if let Some(bucket) = self.at_mut(from) {
            bucket.occupied &= !(1 << slot);
        }
        let probe = self.probe(&key);
        if self.place_of(probe.home()) == from {
            self.count_away(probe, to.old, true);
        } else {
            self.count_away(probe, from.old, false);
        }
    }
}

impl<K, V, const WAYS: usize> std::fmt::Debug for BulkMap<K, V, WAYS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkMap")
            .field("len", &self.len)
            .field("buckets", &self.buckets.capacity())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
