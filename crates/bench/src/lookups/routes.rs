//! Tables of routes as the Internet's are.
//!
//! **Lengths** have the shares that public reports of the global routing tables show, rounded: six of ten IPv4 routes are /24, one in fifty is longer; half of the
//! IPv6 routes are /48. **Places** are clustered as allocations are: IPv4 routes lie in 36,000 /16s of the unicast space, longer ones than /16 anywhere in one of
//! these, so that they nest; IPv6 routes in 25,000 /32s (of six registries' blocks), longer ones than /32 in one of these, more often at its beginning. A seed
//! decides everything.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::hash::mix;

/// Routes of the table of Tseng and others.
pub const FULL_TABLE: usize = 1_076_806;

/// Next hops of a large router.
const NEXT_HOPS: u64 = 250;

/// Of 100,000 IPv4 routes so many have this length.
const LENGTHS4: [(u8, u64); 25] = [
    (8, 2),
    (9, 1),
    (10, 4),
    (11, 10),
    (12, 29),
    (13, 58),
    (14, 118),
    (15, 198),
    (16, 1_340),
    (17, 810),
    (18, 1_350),
    (19, 2_470),
    (20, 4_430),
    (21, 5_100),
    (22, 10_950),
    (23, 9_800),
    (24, 61_330),
    (25, 240),
    (26, 210),
    (27, 190),
    (28, 180),
    (29, 250),
    (30, 230),
    (31, 10),
    (32, 690),
];

/// Likewise for IPv6.
const LENGTHS6: [(u8, u64); 18] = [
    (24, 20),
    (28, 180),
    (29, 3_000),
    (30, 400),
    (32, 13_400),
    (33, 1_400),
    (34, 1_600),
    (36, 4_200),
    (38, 1_000),
    (40, 8_500),
    (42, 1_300),
    (44, 8_000),
    (45, 600),
    (46, 1_500),
    (47, 1_400),
    (48, 52_000),
    (56, 700),
    (64, 800),
];

/// A sequence that a seed decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0, 0xd6e8_feb8_6659_fd93)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn length(&mut self, lengths: &[(u8, u64)]) -> u8 {
        let mut left = self.below(lengths.iter().map(|(_, share)| share).sum());
        for (length, share) in lengths {
            match left.checked_sub(*share) {
                Some(less) => left = less,
                None => return *length,
            }
        }
        0
    }
}

/// `count` IPv4 routes, sorted by length: prefix, length and next hop.
pub fn ipv4(count: usize, seed: u64) -> Vec<(Ipv4Addr, u8, u16)> {
    let mut random = Random::new(seed);
    // 1.0.0.0 to 223.255.255.255.
    let blocks: Vec<u64> = (0..36_000).map(|_| 0x0100 + random.below(0xdf00)).collect();
    let place = |random: &mut Random, len: u8| {
        let block = blocks.get(random.below(blocks.len() as u64) as usize).copied().unwrap_or(0x0a00);
        let address = (block << 16) as u32 | random.below(1 << 16) as u32;
        address & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
    };
    let mut seen = HashSet::with_capacity(count);
    let mut routes = Vec::with_capacity(count);
    while routes.len() < count {
        let len = random.length(&LENGTHS4);
        let prefix = place(&mut random, len);
        if seen.insert((prefix, len)) {
            routes.push((Ipv4Addr::from_bits(prefix), len, random.below(NEXT_HOPS) as u16));
        }
    }
    routes.sort_by_key(|(_, len, _)| *len);
    routes
}

/// `count` IPv6 routes, likewise.
pub fn ipv6(count: usize, seed: u64) -> Vec<(Ipv6Addr, u8, u16)> {
    /// Blocks that registries allocate from, and their lengths.
    const REGISTRIES: [(u128, u32); 6] =
        [(0x2001, 16), (0x2400, 12), (0x2600, 12), (0x2800, 12), (0x2a00, 12), (0x2c00, 12)];
    let mut random = Random::new(seed);
    let blocks: Vec<u128> = (0..25_000)
        .map(|_| {
            let (first, len) = REGISTRIES.get(random.below(6) as usize).copied().unwrap_or((0x2001, 16));
            (first << 16 | u128::from(random.next()) & ((1 << (32 - len)) - 1)) << 96
        })
        .collect();
    let mut seen = HashSet::with_capacity(count);
    let mut routes = Vec::with_capacity(count);
    while routes.len() < count {
        let len = random.length(&LENGTHS6);
        let block = blocks.get(random.below(blocks.len() as u64) as usize).copied().unwrap_or(0);
        // Small numbers are given out first: a quarter of the routes lies in the first 16th of the block.
        let low = u128::from(random.next()) << 32 >> if random.below(4) == 0 { 4 } else { 0 };
        let prefix = (block | low) & u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
        if seen.insert((prefix, len)) {
            routes.push((Ipv6Addr::from_bits(prefix), len, random.below(NEXT_HOPS) as u16));
        }
    }
    routes.sort_by_key(|(_, len, _)| *len);
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_distinct_sorted_and_have_the_lengths_that_are_documented() {
        let four = ipv4(20_000, 1);
        let share = |len: u8| four.iter().filter(|route| route.1 == len).count() as f64 / 20_000.0;
        assert!((0.59..0.64).contains(&share(24)), "{}", share(24));
        let long = (25..=32).map(share).sum::<f64>();
        assert!((0.015..0.025).contains(&long), "{long}");
        assert!(four.is_sorted_by_key(|route| route.1));
        let distinct: HashSet<_> = four.iter().map(|(prefix, len, _)| (prefix, len)).collect();
        assert_eq!(distinct.len(), 20_000);
        let six = ipv6(20_000, 1);
        let slash_48 = six.iter().filter(|route| route.1 == 48).count();
        assert!((10_000..11_000).contains(&slash_48), "{slash_48}");
        assert!(six.is_sorted_by_key(|route| route.1));
        assert_eq!(ipv6(100, 7), ipv6(100, 7));
        assert_ne!(ipv6(100, 7), ipv6(100, 8));
    }
}
