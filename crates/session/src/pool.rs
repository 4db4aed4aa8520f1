//! A pool of UE addresses that knows the shard of each.
//!
//! Numbers stand for addresses: an IPv4 address is its 32 bits, an IPv6 prefix those bits that are its own. Every shard has a
//! *column* of the pool (see [`crate::columns`]) with a cursor over the addresses that were never used and a queue of
//! those that came back. A free address is taken from under the cursor while there is one, so that an address rests for
//! as long as the pool allows before it serves the next subscriber.
//!
//! Cost: two bits an address, four bytes more while it waits in a queue, 20 KiB a pool; allocation and release are
//! O(1) amortised. An SMF may choose an address itself: that marks it used here ([`Pool::reserve`]).

use crate::columns::{Block, aligned};
use crate::ids::{SHARDS, ShardId};
use std::collections::VecDeque;

/// Most numbers in one pool: a /6 of IPv4, a /38 of /64s. Sixteen MiB of bits.
pub const LARGEST: u64 = 1 << 26;

/// Why a pool can't be what its configuration says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PoolError {
    /// More than [`LARGEST`] addresses or prefixes.
    #[error("a pool holds at most 2^26 addresses or UEs' prefixes: name a smaller range")]
    TooLarge,
    /// The range ends before it begins.
    #[error("the range ends before it begins")]
    Backwards,
    /// Two ranges share addresses.
    #[error("two ranges share addresses")]
    Overlap,
    /// Longer than UEs' own.
    #[error("an IPv6 pool is no longer than the prefix that every UE gets of it")]
    PrefixTooLong,
}

/// Why an address can't be reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// It is not in this pool.
    Outside,
    /// Somebody has it, or it is excluded.
    Taken,
}

/// A pool of numbers.
#[derive(Clone, Debug)]
pub struct Pool {
    hash: fn(u64) -> u32,
    /// In order of `base`.
    blocks: Box<[Block]>,
    /// One bit a number: held by somebody, or excluded for good.
    used: Box<[u64]>,
    /// One bit a number: waiting in its column's queue.
    queued: Box<[u64]>,
    columns: Box<[Column]>,
    /// One bit a column: it may have something to give.
    promising: [u64; SHARDS / 64],
    /// Where the next allocation without a wish begins, so that shards fill evenly.
    rotor: u16,
    capacity: u32,
    held: u32,
}

#[derive(Clone, Debug, Default)]
struct Column {
    block: u32,
    m: u32,
    freed: VecDeque<u32>,
}

impl Pool {
    /// From inclusive ranges of numbers, less the excluded ones. `hash` is the linear hash that makes shards.
    pub fn new(
        ranges: &[(u64, u64)],
        excluded: impl IntoIterator<Item = u64>,
        hash: fn(u64) -> u32,
    ) -> Result<Self, PoolError> {
        let mut ranges = ranges.to_vec();
        ranges.sort_unstable();
        let mut total = 0u64;
        let mut before: Option<u64> = None;
        for &(first, last) in &ranges {
            if last < first {
                return Err(PoolError::Backwards);
            }
            if before.is_some_and(|before| first <= before) {
                return Err(PoolError::Overlap);
            }
            before = Some(last);
            total = total.saturating_add(last - first).saturating_add(1);
            if total > LARGEST {
                return Err(PoolError::TooLarge);
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut index = 0u32;
        for (first, last) in ranges {
            aligned(first, last, |base, bits| {
                blocks.push(Block::new(base, bits, index, hash));
                index += 1 << bits;
            });
        }
        let words = (total as usize).div_ceil(64);
        let mut pool = Self {
            hash,
            blocks: blocks.into(),
            used: vec![0; words].into(),
            queued: vec![0; words].into(),
            columns: vec![Column::default(); SHARDS].into(),
            promising: [u64::MAX; SHARDS / 64],
            rotor: 0,
            capacity: total as u32,
            held: 0,
        };
        for number in excluded {
            if let Some(index) = pool.index(number)
                && !get(&pool.used, index)
            {
                set(&mut pool.used, index, true);
                pool.capacity -= 1;
            }
        }
        Ok(pool)
    }

    /// How many addresses can be held.
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many are held.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Whether the pool's ranges cover the number, excluded or not.
    pub fn covers(&self, number: u64) -> bool {
        self.index(number).is_some()
    }

    /// Whether the pool's ranges and this inclusive range share a number.
    pub fn overlaps(&self, first: u64, last: u64) -> bool {
        let at = self.blocks.partition_point(|block| block.base + (block.size() - 1) < first);
        self.blocks.get(at).is_some_and(|block| block.base <= last)
    }

    /// Whether two pools share a number.
    pub fn meets(&self, other: &Self) -> bool {
        other.blocks.iter().any(|block| self.overlaps(block.base, block.base + (block.size() - 1)))
    }

    /// An address of this shard; `None` if the shard has none left here.
    pub fn allocate_in(&mut self, shard: ShardId) -> Option<u64> {
        let column = self.columns.get_mut(shard.index())?;
        while let Some(block) = self.blocks.get(column.block as usize) {
            if column.m >= block.per_shard() || !block.reaches(shard) {
                column.block += 1;
                column.m = 0;
                continue;
            }
            let number = block.number(shard, column.m);
            column.m += 1;
            let index = block.first + (number - block.base) as u32;
            if !get(&self.used, index) && !get(&self.queued, index) {
                set(&mut self.used, index, true);
                self.held += 1;
                return Some(number);
            }
        }
        while let Some(index) = column.freed.pop_front() {
            set(&mut self.queued, index, false);
            if !get(&self.used, index) {
                set(&mut self.used, index, true);
                self.held += 1;
                return number_at(&self.blocks, index);
            }
        }
        if let Some(word) = self.promising.get_mut(shard.index() / 64) {
            *word &= !(1 << (shard.index() % 64));
        }
        None
    }

    /// An address of any shard, and its shard: every shard in turn, so that they fill evenly. `None`: exhausted.
    pub fn allocate(&mut self) -> Option<(u64, ShardId)> {
        loop {
            let shard = self.next_promising()?;
            if let Some(number) = self.allocate_in(shard) {
                self.rotor = (shard.index() + 1) as u16;
                return Some((number, shard));
            }
        }
    }

    /// The first column at or after the rotor that may have something.
    fn next_promising(&self) -> Option<ShardId> {
        let start = self.rotor as usize % SHARDS;
        let words = self.promising.len();
        for step in 0..=words {
            let at = (start / 64 + step) % words;
            let mut word = *self.promising.get(at)?;
            if step == 0 {
                word &= u64::MAX << (start % 64);
            }
            if word != 0 {
                return Some(ShardId::from_hash((at * 64) as u32 + word.trailing_zeros()));
            }
        }
        None
    }

    /// Marks an address that somebody else chose as used, and tells its shard.
    pub fn reserve(&mut self, number: u64) -> Result<ShardId, Unavailable> {
        let index = self.index(number).ok_or(Unavailable::Outside)?;
        if get(&self.used, index) {
            return Err(Unavailable::Taken);
        }
        set(&mut self.used, index, true);
        self.held += 1;
        Ok(ShardId::from_hash((self.hash)(number)))
    }

    /// Whether somebody holds the address or it is excluded.
    pub fn is_used(&self, number: u64) -> bool {
        self.index(number).is_some_and(|index| get(&self.used, index))
    }

    /// Gives an address back that was allocated or reserved here.
    pub fn release(&mut self, number: u64) {
        let Some(index) = self.index(number).filter(|index| get(&self.used, *index)) else { return };
        set(&mut self.used, index, false);
        self.held -= 1;
        // One that was reserved may still wait in the queue from before, and must not be in it twice.
        if !get(&self.queued, index) {
            let shard = ShardId::from_hash((self.hash)(number)).index();
            if let Some(column) = self.columns.get_mut(shard) {
                set(&mut self.queued, index, true);
                column.freed.push_back(index);
            }
        }
        let shard = ShardId::from_hash((self.hash)(number)).index();
        if let Some(word) = self.promising.get_mut(shard / 64) {
            *word |= 1 << (shard % 64);
        }
    }

    fn index(&self, number: u64) -> Option<u32> {
        let at = self.blocks.partition_point(|block| block.base <= number).checked_sub(1)?;
        let block = self.blocks.get(at)?;
        let offset = number - block.base;
        (offset < block.size()).then_some(block.first + offset as u32)
    }
}

fn number_at(blocks: &[Block], index: u32) -> Option<u64> {
    let at = blocks.partition_point(|block| block.first <= index).checked_sub(1)?;
    let block = blocks.get(at)?;
    Some(block.base + (index - block.first) as u64)
}

fn get(bits: &[u64], index: u32) -> bool {
    bits.get(index as usize / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
}

fn set(bits: &mut [u64], index: u32, on: bool) {
    if let Some(word) = bits.get_mut(index as usize / 64) {
        *word = *word & !(1 << (index % 64)) | (on as u64) << (index % 64);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn hash(number: u64) -> u32 {
        (0..32).fold(0, |hash, bit| {
            let mask = 0x9e37_79b9_7f4a_7c15u64.rotate_left(bit * 7 + 3);
            hash | ((number & mask).count_ones() & 1) << bit
        })
    }

    fn shard(number: u64) -> ShardId {
        ShardId::from_hash(hash(number))
    }

    #[test]
    fn shards_fill_evenly_and_every_address_is_handed_out_once() {
        let mut pool = Pool::new(&[(0x0a2d_0000, 0x0a2d_ffff)], [], hash).unwrap();
        let mut seen = HashSet::new();
        let mut per_shard = [0; SHARDS];
        for _ in 0..SHARDS * 4 {
            let (number, of) = pool.allocate().unwrap();
            assert_eq!(of, shard(number));
            assert!(seen.insert(number));
            per_shard[of.index()] += 1;
        }
        assert!(per_shard.iter().all(|count| *count == 4));
        while let Some((number, _)) = pool.allocate() {
            assert!(seen.insert(number));
        }
        assert_eq!((seen.len(), pool.held(), pool.capacity()), (65536, 65536, 65536));
    }

    #[test]
    fn the_excluded_and_the_reserved_are_not_handed_out() {
        let mut pool = Pool::new(&[(256, 511)], [256, 257, 511], hash).unwrap();
        assert_eq!(pool.capacity(), 253);
        assert_eq!(pool.reserve(300), Ok(shard(300)));
        assert_eq!(pool.reserve(300), Err(Unavailable::Taken));
        assert_eq!(pool.reserve(256), Err(Unavailable::Taken));
        assert_eq!(pool.reserve(512), Err(Unavailable::Outside));
        let mut seen = HashSet::new();
        while let Some((number, _)) = pool.allocate() {
            seen.insert(number);
        }
        assert_eq!(seen.len(), 252);
        assert!(!seen.contains(&300) && !seen.contains(&256));
        pool.release(300);
        assert_eq!(pool.allocate(), Some((300, shard(300))));
        assert_eq!(pool.allocate(), None);
    }

    #[test]
    fn a_wish_for_a_shard_is_granted_while_it_has_addresses() {
        let mut pool = Pool::new(&[(0, 1023)], [], hash).unwrap();
        let wish = shard(700);
        let mut got = HashSet::new();
        while let Some(number) = pool.allocate_in(wish) {
            assert_eq!(shard(number), wish);
            got.insert(number);
        }
        assert_eq!(got.len(), (0..1024).filter(|n| shard(*n) == wish).count());
        assert!(pool.allocate().is_some());
    }

    #[test]
    fn a_freed_address_rests_while_there_are_others() {
        let mut pool = Pool::new(&[(0, 4095)], [], hash).unwrap();
        let (first, _) = pool.allocate().unwrap();
        pool.release(first);
        for _ in 1..4096 {
            assert_ne!(pool.allocate().unwrap().0, first);
        }
        assert_eq!(pool.allocate().unwrap().0, first);
    }

    #[test]
    fn reserving_and_releasing_forever_does_not_grow() {
        let mut pool = Pool::new(&[(0, 63)], [], hash).unwrap();
        for _ in 0..1000 {
            pool.reserve(9).unwrap();
            pool.release(9);
        }
        assert_eq!(pool.columns.iter().map(|column| column.freed.len()).sum::<usize>(), 1);
        let all: HashSet<u64> = std::iter::from_fn(|| pool.allocate()).map(|(number, _)| number).collect();
        assert_eq!(all.len(), 64);
    }

    #[test]
    fn a_pool_that_contradicts_itself_is_refused() {
        assert_eq!(Pool::new(&[(5, 4)], [], hash).err(), Some(PoolError::Backwards));
        assert_eq!(Pool::new(&[(0, 9), (9, 12)], [], hash).err(), Some(PoolError::Overlap));
        assert_eq!(Pool::new(&[(0, LARGEST)], [], hash).err(), Some(PoolError::TooLarge));
        let pool = Pool::new(&[(10, 19), (30, 39)], [], hash).unwrap();
        assert!(
            pool.overlaps(0, 10) && pool.overlaps(19, 25) && pool.overlaps(35, 36) && pool.overlaps(0, 99)
        );
        assert!(!pool.overlaps(0, 9) && !pool.overlaps(20, 29) && !pool.overlaps(40, 99));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(operations in prop::collection::vec((0u8..4, any::<u16>()), 0..300)) {
            let mut pool = Pool::new(&[(100, 130), (200, 299)], [200, 299], hash).unwrap();
            let mut model: HashSet<u64> = HashSet::new();
            for (operation, argument) in operations {
                let number = 90 + argument as u64 % 220;
                let inside = (100..=130).contains(&number) || (201..=298).contains(&number);
                match operation {
                    0 => if let Some((number, of)) = pool.allocate() {
                        prop_assert_eq!(of, shard(number));
                        prop_assert!(model.insert(number));
                    } else {
                        prop_assert_eq!(model.len() as u32, pool.capacity());
                    },
                    1 => if let Some(got) = pool.allocate_in(shard(number)) {
                        prop_assert_eq!(shard(got), shard(number));
                        prop_assert!(model.insert(got));
                    } else {
                        let free = (100..=130).chain(201..=298).any(|n| shard(n) == shard(number) && !model.contains(&n));
                        prop_assert!(!free);
                    },
                    2 => prop_assert_eq!(pool.reserve(number).is_ok(), inside && model.insert(number)),
                    _ => if model.remove(&number) { pool.release(number) },
                }
                prop_assert_eq!(pool.held() as usize, model.len());
            }
        }
    }
}
