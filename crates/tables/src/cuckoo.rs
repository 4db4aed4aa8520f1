//! What the flat tables share: the hash, and how a full bucket gets room.
//!
//! **Problem.** A [`crate::BulkMap`] grows piece by piece and keeps books in each bucket. A table of sixteen million 5-tuples, of which a device
//! has a copy, should be one flat array of a known size, every bit of a line used for entries, with a hash that a few 32-bit multipliers compute.
//!
//! **Model.** Cuckoo hashing in buckets of a line: an entry is in one of the two buckets that its hash names. When both are full, a
//! breadth-first search over at most [`SEARCH`] buckets looks for the shortest chain of moves that makes room. At 90 % of the slots taken
//! a chain has one move or two, and none has been seen to fail below 95 %; an adversary who doesn't know the seed can't do better than
//! chance (`crate::image` has the hash, word by word).

pub mod slots;
pub(crate) mod strays;

use crate::hash::mix;
use crate::simd::{Processor, cuckoo as kernels, words};

/// Why a flat table doesn't take an entry. It is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CuckooError {
    /// The table's limit is reached, or no room was found for a key whose buckets are full.
    Full,
    /// The value is wider than the table's slots.
    Value,
}

impl std::fmt::Display for CuckooError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "no room left in the table",
            Self::Value => "the value is too large for the table",
        })
    }
}

impl std::error::Error for CuckooError {}

/// What the seed says: secrets that the key's words are hashed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Secrets<const N: usize> {
    pub add: [u32; N],
    pub round: [u32; 3],
}

/// Two words that name a key's buckets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Hash {
    pub a: u32,
    pub b: u32,
}

/// The multipliers of the three rounds: odd numbers without structure.
pub(crate) const ROUNDS: [u32; 3] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d];

/// Both halves of a product, folded.
#[inline(always)]
const fn fold(x: u32, multiplier: u32) -> u32 {
    let product = x as u64 * multiplier as u64;
    product as u32 ^ (product >> 32) as u32
}

/// `hash` scaled to `0..n`.
#[inline(always)]
pub(crate) const fn scale(hash: u32, n: u32) -> u32 {
    ((hash as u64 * n as u64) >> 32) as u32
}

impl<const N: usize> Secrets<N> {
    pub(crate) fn new(seed: u64) -> Self {
        const { assert!(N.is_multiple_of(2), "words come in pairs") }
        let mut state = seed;
        let mut word = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            (mix(state, 0xd6e8_feb8_6659_fd93) ^ mix(state.rotate_left(32), 0xa076_1d64_78bd_642f)) as u32
        };
        Self { add: std::array::from_fn(|_| word()), round: std::array::from_fn(|_| word()) }
    }

    /// The hash of these words; see [`crate::image`].
    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u32; N]) -> Hash {
        let sums = |at: usize| -> u64 {
            match (key.get(at), self.add.get(at)) {
                (Some(word), Some(add)) => u64::from(word.wrapping_add(*add)),
                _ => 0,
            }
        };
        let sum = (0..N).step_by(2).fold(0_u64, |sum, at| sum.wrapping_add(sums(at) * sums(at + 1)));
        self.finish(sum)
    }

    /// The rounds.
    #[inline(always)]
    pub(crate) const fn finish(&self, sum: u64) -> Hash {
        let (mut a, mut b) = (sum as u32, (sum >> 32) as u32);
        b ^= fold(a.wrapping_add(self.round[0]), ROUNDS[0]);
        a ^= fold(b.wrapping_add(self.round[1]), ROUNDS[1]);
        b ^= fold(a.wrapping_add(self.round[2]), ROUNDS[2]);
        Hash { a, b }
    }

    /// What an image says of them, behind `before` other words.
    pub(crate) fn parameters(&self, first: u32) -> [u32; 16] {
        let mut words = [0; 16];
        let all = std::iter::once(&first).chain(&self.add).chain(&self.round);
        words.iter_mut().zip(all).for_each(|(word, value)| *word = *value);
        words
    }
}

/// The hash of keys of four words, alone: for those who measure it.
#[derive(Clone, Copy, Debug)]
pub struct KeyedHash {
    secrets: Secrets<4>,
}

impl KeyedHash {
    /// With the secrets that this seed gives.
    pub fn new(seed: u64) -> Self {
        Self { secrets: Secrets::new(seed) }
    }

    /// Both buckets of each key in a table of `buckets`, for as many as both slices have.
    pub fn places<S>(
        &self,
        processor: Processor,
        buckets: u32,
        keys: &[slots::Short<S>],
        out: &mut [(u32, u32)],
    ) {
        let keys = words::of_keys(keys).chunks(kernels::GROUP);
        for (keys, out) in keys.zip(out.chunks_mut(kernels::GROUP)) {
            let mut places = kernels::Places::NONE;
            kernels::places(processor, &self.secrets, buckets, keys, &mut places);
            let both = places.home.into_iter().zip(places.other).take(keys.len());
            out.iter_mut().zip(both).for_each(|(out, both)| *out = both);
        }
    }
}

/// Buckets that a search for room visits before it gives up.
pub const SEARCH: usize = 256;

/// Buckets whose entries may move.
pub(crate) trait Nest {
    /// Slots of a bucket.
    const WAYS: usize;
    /// A vacant slot.
    fn vacancy(&self, bucket: u32) -> Option<usize>;
    /// Where else the entry in a slot could be.
    fn other(&self, bucket: u32, slot: usize) -> u32;
    /// Asks memory for a bucket.
    fn fetch(&self, bucket: u32);
    /// Moves an entry to the vacant slot of its other bucket.
    fn shift(&mut self, from: (u32, usize), to: (u32, usize));
}

/// Makes room in one of the two full buckets of a key: which one, and the slot. Nothing has changed if there's none.
pub(crate) fn make_room<T: Nest>(nest: &mut T, roots: [u32; 2]) -> Option<(u32, usize)> {
    // Mostly one move is enough: all buckets that could take an entry are asked for together.
    for root in roots {
        let mut ways = [root; 8];
        for (slot, way) in ways.iter_mut().enumerate().take(T::WAYS) {
            *way = nest.other(root, slot);
            nest.fetch(*way);
        }
        for (slot, way) in ways.into_iter().enumerate().take(T::WAYS) {
            if let Some(vacancy) = nest.vacancy(way) {
                nest.shift((root, slot), (way, vacancy));
                return Some((root, slot));
            }
        }
    }
    search(nest, roots)
}

/// A bucket that is reached by moving the entry in `slot` of the bucket of step `parent`; roots are their own parents.
#[derive(Clone, Copy, Default)]
struct Step {
    bucket: u32,
    parent: u16,
    slot: u16,
}

#[cold]
#[inline(never)]
fn search<T: Nest>(nest: &mut T, roots: [u32; 2]) -> Option<(u32, usize)> {
    let mut steps = [Step::default(); SEARCH];
    let mut count = 0;
    for root in roots {
        if let Some(step) = steps.get_mut(count)
            && (count == 0 || roots[0] != root)
        {
            *step = Step { bucket: root, parent: count as u16, slot: 0 };
            count += 1;
        }
    }
    let first = count;
    let mut next = 0;
    let (mut at, mut vacancy) = 'found: loop {
        let parent = *steps.get(next).filter(|_| next < count)?;
        for slot in 0..T::WAYS {
            let bucket = nest.other(parent.bucket, slot);
            // A bucket is visited once: or else a chain could move an entry twice.
            if steps.iter().take(count).any(|seen| seen.bucket == bucket) {
                continue;
            }
            *steps.get_mut(count)? = Step { bucket, parent: next as u16, slot: slot as u16 };
            count += 1;
            if let Some(vacancy) = nest.vacancy(bucket) {
                break 'found (count - 1, vacancy);
            }
            nest.fetch(bucket);
        }
        next += 1;
    };
    // From the end of the chain: at each moment every entry is somewhere.
    while at >= first {
        let step = *steps.get(at)?;
        let parent = *steps.get(usize::from(step.parent))?;
        nest.shift((parent.bucket, step.slot.into()), (step.bucket, vacancy));
        (at, vacancy) = (step.parent.into(), step.slot.into());
    }
    steps.get(at).map(|root| (root.bucket, vacancy))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `crate::image` says, word by word and with nothing of the above.
    fn told(key: &[u32], add: &[u32], round: [u32; 3]) -> (u32, u32) {
        let fold = |x: u32, m: u64| (u64::from(x) * m) as u32 ^ ((u64::from(x) * m) >> 32) as u32;
        let mut s = 0_u64;
        for i in (0..key.len()).step_by(2) {
            let x = u64::from(key[i].wrapping_add(add[i]));
            let y = u64::from(key[i + 1].wrapping_add(add[i + 1]));
            s = s.wrapping_add(x * y);
        }
        let (mut a, mut b) = ((s & 0xffff_ffff) as u32, (s >> 32) as u32);
        b ^= fold(a.wrapping_add(round[0]), 0x9e37_79b1);
        a ^= fold(b.wrapping_add(round[1]), 0x85eb_ca77);
        b ^= fold(a.wrapping_add(round[2]), 0xc2b2_ae3d);
        (a, b)
    }

    #[test]
    fn the_hash_is_the_one_that_devices_are_told() {
        let secrets = Secrets::<10>::new(7);
        let mut state = 1_u64;
        for _ in 0..1000 {
            let key = std::array::from_fn(|_| {
                state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15), 0xd6e8_feb8_6659_fd93);
                state as u32
            });
            let Hash { a, b } = secrets.hash(&key);
            assert_eq!((a, b), told(&key, &secrets.add, secrets.round));
        }
        assert_ne!(secrets, Secrets::new(8));
    }

    /// A literal, so that a change of the hash does not go unnoticed: devices have kernels of their own.
    #[test]
    fn the_hash_of_one_key_is_known() {
        let secrets = Secrets::<4> { add: [1, 2, 3, 4], round: [5, 6, 7] };
        let found = secrets.hash(&[0x0a00_0001, 0x0a00_0002, 0x0050_1f90, 6]);
        let (a, b) = told(&[0x0a00_0001, 0x0a00_0002, 0x0050_1f90, 6], &[1, 2, 3, 4], [5, 6, 7]);
        assert_eq!((found.a, found.b), (a, b));
    }

    /// Keys in a row, as addresses and ports are, fall into buckets as evenly as chance would have them, for every seed.
    #[test]
    fn keys_in_a_row_spread_evenly() {
        const BUCKETS: u32 = 1 << 10;
        const KEYS: u32 = 64 << 10;
        for seed in 0..40 {
            let secrets = Secrets::<4>::new(seed);
            for word in 0..4 {
                for stride in [1_u32, 1 << 8, 1 << 16] {
                    let (mut a, mut b, mut both) =
                        (vec![0_u32; BUCKETS as usize], vec![0_u32; BUCKETS as usize], vec![0_u32; 1 << 10]);
                    for key in 0..KEYS {
                        let mut words = [0x0a00_0000, 0x0808_0808, 443, 6];
                        words[word] = u32::wrapping_add(words[word], key.wrapping_mul(stride));
                        let hash = secrets.hash(&words);
                        a[scale(hash.a, BUCKETS) as usize] += 1;
                        b[scale(hash.b, BUCKETS) as usize] += 1;
                        both[(scale(hash.a, 32) << 5 | scale(hash.b, 32)) as usize] += 1;
                    }
                    for counts in [&a, &b, &both] {
                        let mean = f64::from(KEYS) / 1024.0;
                        let chi: f64 = counts.iter().map(|n| (f64::from(*n) - mean).powi(2) / mean).sum();
                        // 1,023 degrees of freedom: 1,023 on average, standard deviation 45. Evener than chance is fine.
                        assert!(chi < 1400.0, "seed {seed}, word {word}, stride {stride}: {chi}");
                    }
                }
            }
        }
    }
}
