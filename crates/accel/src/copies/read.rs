//! A look-up in a copy, word by word, as `tables::image` describes it: what `kernels/lookup.cuh` is the same as.
//!
//! Whatever stands in the words, also while they change: nothing is read outside the copy, and it ends.

use super::layout::{
    FLOW4, FLOW6, HEADER_LINES, KIND, LENGTHS, LINE, LINK, LPM4, LPM6, MEMO, MOST_KEY, NONE, PARAMETERS,
    REGIONS,
};

/// The words of a copy.
pub(super) struct Words<F>(pub F);

/// Constants of the hash's rounds.
const ROUNDS: [u32; 3] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d];

const fn fold(word: u32, factor: u32) -> u32 {
    let product = word as u64 * factor as u64;
    product as u32 ^ (product >> 32) as u32
}

const fn scale(hash: u32, count: u32) -> u32 {
    ((hash as u64 * count as u64) >> 32) as u32
}

impl<F: Fn(usize) -> u32> Words<F> {
    fn parameter(&self, at: usize) -> u32 {
        (self.0)(PARAMETERS + at)
    }

    /// A word of a region; zero if it isn't there.
    fn region(&self, region: usize, at: u64) -> u32 {
        if at >= u64::from((self.0)(LENGTHS + region)) * LINE as u64 {
            return 0;
        }
        (self.0)((self.0)(REGIONS + region) as usize * LINE + at as usize)
    }

    fn hash(&self, key: &[u32]) -> (u32, u32) {
        let (mut sum, words) = (0_u64, key.len());
        for (at, pair) in key.chunks_exact(2).enumerate() {
            let with = |word: u32, at: usize| u64::from(word.wrapping_add(self.parameter(1 + at)));
            sum = sum.wrapping_add(with(pair[0], 2 * at).wrapping_mul(with(pair[1], 2 * at + 1)));
        }
        let (mut a, mut b) = (sum as u32, (sum >> 32) as u32);
        let round =
            |at: usize, word: u32| fold(word.wrapping_add(self.parameter(1 + words + at)), ROUNDS[at]);
        b ^= round(0, a);
        a ^= round(1, b);
        b ^= round(2, a);
        (a, b)
    }

    fn slots(&self, key: &[u32]) -> u32 {
        let ((a, b), buckets) = (self.hash(key), self.parameter(0));
        for bucket in [scale(a, buckets), scale(b, buckets)] {
            for slot in 0..4 {
                let at = u64::from(bucket) * LINE as u64 + 4 * slot;
                let word = |word: u64| self.region(0, at + word);
                let same = (0..4).all(|at| word(at) & self.parameter(8 + at as usize) == key[at as usize]);
                if same && word(3) >> 8 != 0 {
                    return (word(3) >> 8) - 1;
                }
            }
        }
        NONE as u32
    }

    fn tags(&self, key: &[u32]) -> u32 {
        let ((a, tag), buckets) = (self.hash(key), self.parameter(0));
        let home = scale(a, buckets);
        let other = scale(tag, buckets).wrapping_sub(home);
        let other = if other > buckets { other.wrapping_add(buckets) } else { other };
        for bucket in [home, other] {
            for slot in 0..8 {
                let at = u64::from(bucket) * LINE as u64 + slot;
                let number = self.region(0, at + 8);
                if number == 0 || self.region(0, at) != tag {
                    continue;
                }
                let record = u64::from(number - 1) * LINE as u64;
                if key.iter().zip(0..).all(|(word, at)| self.region(1, record + at) == *word) {
                    return self.region(1, record + MOST_KEY as u64);
                }
            }
        }
        NONE as u32
    }

    fn route(&self, address: &[u32]) -> u32 {
        let octet = |bits: u32| address[(bits / 32) as usize] >> (24 - bits % 32) & 0xff;
        let (root, all) = (self.parameter(0).clamp(1, 24), 32 * address.len() as u32);
        let mut entry = self.region(0, u64::from(address[0] >> (32 - root)));
        let mut decided = root;
        while entry >> 31 == 1 && decided < all {
            let node = u64::from(entry & 0x3fff_ffff);
            if entry >> 30 & 1 == 1 {
                let word = |at: u64| self.region(2, 8 * node + at);
                let until = word(4);
                // A node is further down than what leads to it, or else it is half written.
                if until < decided || until >= all || !until.is_multiple_of(8) {
                    return NONE as u32;
                }
                let same = (0..until)
                    .step_by(8)
                    .all(|bits| word(u64::from(bits / 32)) >> (24 - bits % 32) & 0xff == octet(bits));
                if !same {
                    entry = word(5);
                    break;
                }
                decided = until;
            }
            entry = self.region(1, 256 * node + u64::from(octet(decided)));
            decided += 8;
        }
        if entry >> 31 == 1 {
            return NONE as u32;
        }
        let entry = if entry == 0 { self.parameter(1) } else { entry };
        if entry >> 24 & 1 == 1 { entry & 0xffff } else { NONE as u32 }
    }

    fn memo(&self, key: &[u32]) -> u32 {
        let line = u64::from(key[0] & self.parameter(0).wrapping_sub(1)) * LINE as u64;
        let place = (0..8)
            .find(|place| self.region(0, line + place) == key[1] && self.region(0, line + 8 + place) != 0);
        // A line that is being written may have lost its value in the meantime: that is an answer, too, and the one for nothing.
        place.map_or(NONE as u32, |place| self.region(0, line + 8 + place).wrapping_sub(1))
    }

    /// The answer for a key of as many words as the kind of table has.
    pub(super) fn look_up(&self, key: &[u32]) -> u32 {
        match (self.0)(KIND) as usize {
            FLOW4 | LINK => self.slots(key),
            FLOW6 => self.tags(key),
            LPM4 | LPM6 => self.route(key),
            MEMO => self.memo(key),
            _ => NONE as u32,
        }
    }
}

/// Words of a header, without which there is no look-up.
pub(super) const HEADER: usize = HEADER_LINES * LINE;
