//! For any processor.

use super::{Kernel, Places};
use crate::cuckoo::{Secrets, scale};
use crate::image::Line;

/// What the vectors compute, in plain code.
pub(crate) struct Plain;

impl Kernel for Plain {
    #[inline(always)]
    fn places(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
        for ((key, home), other) in keys.iter().zip(&mut into.home).zip(&mut into.other) {
            let hash = secrets.hash(key);
            (*home, *other) = (scale(hash.a, buckets), scale(hash.b, buckets));
        }
    }

    #[inline(always)]
    fn find(line: &Line, key: &[u32; 4], mask: &[u32; 4]) -> usize {
        let (slots, _) = line.0.as_chunks::<4>();
        let mut found = 4;
        for (at, slot) in slots.iter().enumerate().rev() {
            let differs = (slot[0] ^ key[0]) & mask[0]
                | (slot[1] ^ key[1]) & mask[1]
                | (slot[2] ^ key[2]) & mask[2]
                | (slot[3] ^ key[3]) & mask[3];
            found = if differs == 0 && slot[3] >> 8 != 0 { at } else { found };
        }
        found
    }
}
