//! Which addresses of a block belong to which shard, without trying them.
//!
//! The Toeplitz hash is linear over GF(2): `hash(a ^ b) = hash(a) ^ hash(b)`. So inside an aligned block of 2^n
//! addresses the nine shard bits are a linear map of the n low address bits, and "the m-th address of this block that
//! belongs to shard s" is a system of nine equations, solved once a block by elimination. Nine of the low bits (the
//! *pivots*) are found that reach every shard; the other bits count freely, and for each of their values the pivots are
//! set to land in the shard that is wanted.

use crate::ids::ShardId;

/// Bits of a shard's number.
const SHARD_BITS: usize = 9;

/// An aligned block of 2^bits consecutive numbers.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its first number.
    pub base: u64,
    /// How many low bits vary.
    pub bits: u8,
    /// Index of its first number in the pool.
    pub first: u32,
    hash: fn(u64) -> u32,
    base_shard: u16,
    /// By leading bit of the vector: (what flipping these bits does to the shard, the bits to flip).
    pivots: [Option<(u16, u64)>; SHARD_BITS],
    pivot_bits: u64,
    rank: u8,
}

impl Block {
    /// Solves the block's equations. `hash` is linear; `base` is a multiple of 2^bits.
    pub fn new(base: u64, bits: u8, first: u32, hash: fn(u64) -> u32) -> Self {
        let shard = |number: u64| ShardId::from_hash(hash(number)).index() as u16;
        let base_shard = shard(base);
        let mut block =
            Self { base, bits, first, hash, base_shard, pivots: [None; SHARD_BITS], pivot_bits: 0, rank: 0 };
        for bit in 0..bits {
            let flip = 1u64 << bit;
            let (rest, combination) = block.reduce(shard(base | flip) ^ base_shard, flip);
            if let Some(leading) = rest.checked_ilog2()
                && let Some(pivot) = block.pivots.get_mut(leading as usize)
            {
                *pivot = Some((rest, combination));
                block.pivot_bits |= flip;
                block.rank += 1;
            }
        }
        block
    }

    /// Takes out of `vector` what the pivots can, gathering their bits in `combination`.
    fn reduce(&self, mut vector: u16, mut combination: u64) -> (u16, u64) {
        for bit in (0..SHARD_BITS).rev() {
            if vector >> bit & 1 != 0
                && let Some(Some((pivot, bits))) = self.pivots.get(bit)
            {
                vector ^= pivot;
                combination ^= bits;
            }
        }
        (vector, combination)
    }

    /// How many numbers there are.
    pub const fn size(&self) -> u64 {
        1 << self.bits
    }

    /// How many of them belong to each shard that the block reaches.
    pub const fn per_shard(&self) -> u32 {
        1 << (self.bits - self.rank)
    }

    /// Whether any of the block's numbers belongs to the shard.
    pub fn reaches(&self, shard: ShardId) -> bool {
        self.reduce(shard.index() as u16 ^ self.base_shard, 0).0 == 0
    }

    /// The `m`-th number (below [`Self::per_shard`]) that belongs to a shard that the block reaches.
    pub fn number(&self, shard: ShardId, m: u32) -> u64 {
        // Spread the bits of m over the places that are no pivots.
        let mut rest = m as u64;
        let mut offset = 0u64;
        for bit in 0..self.bits {
            if rest == 0 {
                break;
            }
            if self.pivot_bits >> bit & 1 == 0 {
                offset |= (rest & 1) << bit;
                rest >>= 1;
            }
        }
        let here = ShardId::from_hash((self.hash)(self.base | offset)).index() as u16;
        let (_, flips) = self.reduce(here ^ shard.index() as u16, 0);
        self.base | offset ^ flips
    }
}

/// Splits an inclusive range of numbers into aligned blocks.
pub fn aligned(first: u64, last: u64, mut each: impl FnMut(u64, u8)) {
    let mut start = first;
    while start <= last {
        let room = (last - start).saturating_add(1).ilog2();
        let bits = start.trailing_zeros().min(room).min(63) as u8;
        each(start, bits);
        match start.checked_add(1 << bits) {
            Some(next) => start = next,
            None => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Any linear function will do: the parity of each bit's mask.
    fn hash(number: u64) -> u32 {
        (0..32).fold(0, |hash, bit| {
            let mask = 0x9e37_79b9_7f4a_7c15u64.rotate_left(bit * 7 + 3);
            hash | ((number & mask).count_ones() & 1) << bit
        })
    }

    proptest! {
        #[test]
        fn every_number_is_found_once_and_in_its_shard(base in 0u64..1 << 20, bits in 0u8..13) {
            let block = Block::new(base << bits, bits, 0, hash);
            let mut seen = HashSet::new();
            for shard in ShardId::all().filter(|shard| block.reaches(*shard)) {
                for m in 0..block.per_shard() {
                    let number = block.number(shard, m);
                    prop_assert_eq!(ShardId::from_hash(hash(number)), shard);
                    prop_assert_eq!(number >> bits, base);
                    prop_assert!(seen.insert(number));
                }
            }
            prop_assert_eq!(seen.len() as u64, block.size());
        }

        #[test]
        fn aligned_blocks_tile_a_range(first in 0u64..5000, length in 1u64..5000) {
            let mut next = first;
            aligned(first, first + length - 1, |base, bits| {
                assert_eq!(base, next);
                assert_eq!(base % (1 << bits), 0);
                next += 1 << bits;
            });
            prop_assert_eq!(next, first + length);
        }
    }

    #[test]
    fn the_last_numbers_of_all() {
        let mut blocks = Vec::new();
        aligned(u64::MAX - 2, u64::MAX, |base, bits| blocks.push((base, bits)));
        assert_eq!(blocks, [(u64::MAX - 2, 0), (u64::MAX - 1, 1)]);
    }
}
