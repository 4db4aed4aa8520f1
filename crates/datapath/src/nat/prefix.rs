//! Prefix translation for IPv6 (NPTv6, RFC 6296): one prefix becomes another, and a word of the address makes up for the difference
//! in every checksum that counts the address. Nothing is remembered, and no header behind the first is touched.

use ipnet::Ipv6Net;

/// A pair of prefixes of the same length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    inside: Ipv6Net,
    outside: Ipv6Net,
    /// What the inner prefix's words sum up to beyond the outer one's, in ones' complement.
    surplus: u16,
}

/// Ones' complement addition; zero is always 0x0000 (RFC 6296 §3.1 has no use for 0xffff).
const fn add(a: u16, b: u16) -> u16 {
    let sum = a as u32 + b as u32;
    let sum = (sum as u16).wrapping_add((sum >> 16) as u16);
    if sum == 0xffff { 0 } else { sum }
}

const fn word(address: u128, number: u32) -> u16 {
    (address >> (112 - 16 * number)) as u16
}

fn sum(net: Ipv6Net) -> u16 {
    net.network().segments().into_iter().fold(0, add)
}

impl Prefix {
    /// `None` if the lengths differ, or are below 32 or above 64.
    pub fn new(inside: Ipv6Net, outside: Ipv6Net) -> Option<Self> {
        let length = inside.prefix_len();
        let (inside, outside) = (inside.trunc(), outside.trunc());
        let fits = length == outside.prefix_len() && (32..=64).contains(&length);
        fits.then(|| Self { inside, outside, surplus: add(sum(inside), !sum(outside)) })
    }

    /// The UEs' prefix.
    pub const fn inside(&self) -> Ipv6Net {
        self.inside
    }

    /// The public prefix.
    pub const fn outside(&self) -> Ipv6Net {
        self.outside
    }

    /// The public address of a UE's. `None`: it has none, because the word that would be changed is all ones, or the
    /// interface identifier all zeros (§3.4, §3.5).
    pub fn outward(&self, address: u128) -> Option<u128> {
        self.swap(address, self.outside, self.surplus)
    }

    /// The UE's address of a public one.
    pub fn inward(&self, address: u128) -> Option<u128> {
        self.swap(address, self.inside, !self.surplus)
    }

    fn swap(&self, address: u128, to: Ipv6Net, difference: u16) -> Option<u128> {
        let length = self.inside.prefix_len();
        let number = if length <= 48 {
            // The subnet's word is at hand (§3.4).
            (word(address, 3) != 0xffff).then_some(3)?
        } else {
            // Otherwise one of the interface identifier: the first that isn't all ones (§3.5).
            if address as u64 == 0 {
                return None;
            }
            (4..8).find(|number| word(address, *number) != 0xffff)?
        };
        let mask = u128::MAX << (128 - u32::from(length));
        let swapped = to.network().to_bits() | (address & !mask);
        let shift = 112 - 16 * number;
        let changed = add(word(address, number), difference);
        Some((swapped & !(0xffff << shift)) | u128::from(changed) << shift)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn address(text: &str) -> u128 {
        text.parse::<Ipv6Addr>().unwrap().to_bits()
    }

    fn prefix(inside: &str, outside: &str) -> Prefix {
        Prefix::new(inside.parse().unwrap(), outside.parse().unwrap()).unwrap()
    }

    fn total(address: u128) -> u16 {
        (0..8).map(|number| word(address, number)).fold(0, add)
    }

    #[test]
    fn the_rfc_s_example() {
        // RFC 6296 §3.6, and appendix B.
        let prefix = prefix("fd01:0203:0405::/48", "2001:0db8:0001::/48");
        let (inside, outside) = (address("fd01:203:405:1::1234"), address("2001:db8:1:d550::1234"));
        assert_eq!(prefix.outward(inside), Some(outside));
        assert_eq!(prefix.inward(outside), Some(inside));
        assert_eq!(prefix.outward(address("fd01:203:405:ffff::1234")), None);
    }

    #[test]
    fn lengths_are_checked() {
        let new = |a: &str, b: &str| Prefix::new(a.parse().unwrap(), b.parse().unwrap());
        assert_eq!(new("fd00::/48", "2001:db8::/56"), None);
        assert_eq!(new("fd00::/65", "2001:db8::/65"), None);
        assert_eq!(new("fd00::/31", "2001:db8::/31"), None);
        assert!(new("fd00::/64", "2001:db8::/64").is_some());
        let long = prefix("fd00::/64", "2001:db8::/64");
        assert_eq!(long.outward(address("fd00::")), None, "all zeros");
        assert_eq!(long.outward(address("fd00::ffff:ffff:ffff:ffff")), None, "all ones");
    }

    proptest! {
        #[test]
        fn back_and_forth_and_no_checksum_changes(
            a in any::<u128>(), b in any::<u128>(), host in any::<u128>(), length in 32u8..=64, ones in 0u32..4
        ) {
            let net = |bits: u128| Ipv6Net::new(Ipv6Addr::from_bits(bits), length).unwrap().trunc();
            let prefix = Prefix::new(net(a), net(b)).unwrap();
            let mask = u128::MAX >> length;
            // Some leading words of the interface identifier are all ones.
            let host = host | (u64::MAX as u128) & !((u64::MAX >> (16 * ones)) as u128);
            let inside = prefix.inside.network().to_bits() | host & mask;
            if let Some(outside) = prefix.outward(inside) {
                prop_assert!(prefix.outside.contains(&Ipv6Addr::from_bits(outside)));
                prop_assert_eq!(total(outside), total(inside));
                prop_assert_eq!(prefix.inward(outside), Some(inside));
            }
        }
    }
}
