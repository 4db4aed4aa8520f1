//! How much of an IPv6 address names a UE.
//!
//! **Problem.** A UE has a /64, or a shorter prefix that is delegated to it whole (TS 23.501 §5.8.2.2.4): a /56 has 256 /64s. A packet says an
//! address, and not where its UE's prefix ends; but which shard is a subscriber's, and which session an address is of, must follow from
//! it at once, in both directions.
//!
//! **Model.** Each pool has one [`PrefixLength`], and the *key* of an address is its upper half, cut to the length of the
//! pool that it is in; outside of pools all of it counts. All addresses of a UE have one key then, and so one shard. A
//! UE whose prefix has another length than its pool's has no key of its own: such prefixes are exceptions, in a directory
//! that every worker has.

use crate::config::PoolConfig;
use ipnet::Ipv6Net;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// Length of the prefix that each UE of a pool gets: 48 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PrefixLength(u8);

impl Default for PrefixLength {
    /// /64: what a UE on one link needs, and no more.
    fn default() -> Self {
        Self(64)
    }
}

impl PrefixLength {
    /// The shortest one: a site (RFC 6177).
    pub const SHORTEST: u8 = 48;

    /// `None`: too short, or too long.
    pub const fn new(length: u8) -> Option<Self> {
        if length >= Self::SHORTEST && length <= 64 { Some(Self(length)) } else { None }
    }

    /// Bits of the prefix.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Bits of an address's upper half that the UE disposes of: 0 to 16.
    pub const fn delegated(self) -> u8 {
        64 - self.0
    }
}

/// Where prefixes are shorter than /64; cheap to clone, and the same as long as the process lives.
#[derive(Clone, Debug, Default)]
pub struct PrefixLengths(Arc<[Span]>);

/// Upper halves from the first to the last, of a pool's network.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    last: u64,
    length: PrefixLength,
}

impl Span {
    const fn cut(&self, half: u64) -> u64 {
        half >> self.length.delegated() << self.length.delegated()
    }
}

impl PrefixLengths {
    /// Of these pools, which don't overlap.
    pub fn of(pools: &[PoolConfig]) -> Self {
        let all = pools.iter().flat_map(|pool| pool.ipv6.iter().map(|net| (*net, pool.ipv6_length)));
        let mut spans: Vec<Span> = all
            .filter(|(_, length)| *length != PrefixLength::default())
            .map(|(net, length)| Span {
                first: upper_half(net.network()),
                last: upper_half(net.broadcast()),
                length,
            })
            .collect();
        spans.sort_unstable_by_key(|span| span.first);
        Self(spans.into())
    }

    /// Whether all are /64s: then an upper half is its own key.
    pub fn is_plain(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of an address by its upper half.
    #[inline]
    pub fn key(&self, half: u64) -> u64 {
        self.span(half).map_or(half, |span| span.cut(half))
    }

    /// The length that a UE's prefix has here, and its key, if it has that length.
    pub fn key_of(&self, prefix: Ipv6Net) -> Option<u64> {
        let half = upper_half(prefix.network());
        (self.length(half).get() == prefix.prefix_len()).then(|| self.key(half))
    }

    /// The length of UEs' prefixes where this upper half is.
    pub fn length(&self, half: u64) -> PrefixLength {
        self.span(half).map_or_else(PrefixLength::default, |span| span.length)
    }

    #[inline]
    fn span(&self, half: u64) -> Option<&Span> {
        let at = self.0.partition_point(|span| span.first <= half).checked_sub(1)?;
        self.0.get(at).filter(|span| half <= span.last)
    }
}

/// The half of an IPv6 address that names a UE, or more than that.
pub const fn upper_half(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn lengths() -> PrefixLengths {
        let pool = |nets: &[&str], length| PoolConfig {
            ipv6: nets.iter().map(|net| net.parse().unwrap()).collect(),
            ipv6_length: PrefixLength::new(length).unwrap(),
            ..PoolConfig::default()
        };
        PrefixLengths::of(&[
            pool(&["2001:db8:9::/48"], 60),
            pool(&["2001:db8:1::/48", "2001:db8:3::/48"], 56),
            pool(&["2001:db8:2::/48"], 64),
            pool(&["2001:db8:4::/48"], 48),
        ])
    }

    #[test]
    fn an_address_is_cut_to_the_length_of_its_pool() {
        let lengths = lengths();
        let key = |address: &str| {
            let half = lengths.key(upper_half(address.parse().unwrap()));
            Ipv6Addr::from_bits(u128::from(half) << 64).to_string()
        };
        assert_eq!(key("2001:db8:1:1234::5"), "2001:db8:1:1200::");
        assert_eq!(key("2001:db8:3:ffff::5"), "2001:db8:3:ff00::");
        assert_eq!(key("2001:db8:2:1234::5"), "2001:db8:2:1234::");
        assert_eq!(key("2001:db8:4:1234::5"), "2001:db8:4::");
        assert_eq!(key("2001:db8:9:1234::5"), "2001:db8:9:1230::");
        for outside in
            ["2001:db8:0:ffff::", "2001:db8:5:1234::", "2001:db8:8:ffff::", "::1", "ffff:ffff:ffff:ffff::"]
        {
            assert_eq!(
                lengths.key(upper_half(outside.parse().unwrap())),
                upper_half(outside.parse().unwrap())
            );
        }
        assert!(PrefixLengths::default().is_plain() && !lengths.is_plain());
    }

    #[test]
    fn a_prefix_has_a_key_if_it_has_its_pools_length() {
        let lengths = lengths();
        let has = |prefix: &str| lengths.key_of(prefix.parse().unwrap()).is_some();
        for (prefix, expected) in [
            ("2001:db8:1:1200::/56", true),
            ("2001:db8:1:1200::/64", false),
            ("2001:db8:1::/48", false),
            ("2001:db8:2:1234::/64", true),
            ("2001:db8:2:1200::/56", false),
            ("2001:db8:4::/48", true),
            ("2001:db8:7:1::/64", true),
            ("2001:db8:7::/56", false),
        ] {
            assert_eq!(has(prefix), expected, "{prefix}");
        }
        assert_eq!((PrefixLength::new(47), PrefixLength::new(65)), (None, None));
    }
}
