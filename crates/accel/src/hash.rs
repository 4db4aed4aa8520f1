//! [`Task::Hash`](crate::Task::Hash): what an item's hash is.
//!
//! Each of its three words is folded in by a multiplication of 64 by 64 bits, both halves of whose product are kept: on processors and GPUs the same
//! few instructions. A second, third and fourth hash take the one before as their seed, so that none of them can be left out.

use crate::task::{HASHED, Hashes};
use tables::hash::mix;

/// Constants without structure: the fractions of the golden ratio, and of the square roots of 5 and 3.
const FACTORS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0x3c6e_f372_fe94_f82b, 0xbb67_ae85_84ca_a73b];

/// The hash of an item.
#[inline(always)]
pub fn hash(item: &[u8; HASHED], hashes: Hashes) -> u32 {
    let mut words = [0; 3];
    for (word, octets) in words.iter_mut().zip(item.as_chunks().0) {
        *word = u64::from_le_bytes(*octets);
    }
    let mut hash = 0;
    for _ in 0..hashes.get() {
        for (word, factor) in words.into_iter().zip(FACTORS) {
            hash = mix(hash ^ word, factor).wrapping_add(factor);
        }
    }
    (hash >> 32) as u32 ^ hash as u32
}
