//! Longest-prefix match from an address to a [`HopId`].
//!
//! A UPF has few routes (connected networks, a default route, UE pools, its own addresses) and looks one up for every
//! uplink packet, so what counts is that the table stays in cache and is quickly rebuilt. The nested prefixes are
//! flattened into disjoint ranges; a lookup is a binary search without branches over the ranges' starts. Twenty
//! routes are about forty starts: 160 bytes for IPv4, five or six steps. A table of a million routes would want
//! [`tables`]' tries instead.

use crate::net::HopId;
use ipnet::{Ipv4Net, Ipv6Net};

/// The compiled routes of both families.
#[derive(Debug)]
pub struct Routes {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl Routes {
    /// Compiles prefixes, each of which occurs once.
    pub fn new(v4: &[(Ipv4Net, HopId)], v6: &[(Ipv6Net, HopId)]) -> Self {
        let bounds4 = |net: &Ipv4Net| (u32::from(net.network()), u32::from(net.broadcast()));
        let bounds6 = |net: &Ipv6Net| (u128::from(net.network()), u128::from(net.broadcast()));
        Self {
            v4: Ranges::new(v4.iter().map(|(net, hop)| (bounds4(net), *hop)).collect(), |last| {
                last.checked_add(1)
            }),
            v6: Ranges::new(v6.iter().map(|(net, hop)| (bounds6(net), *hop)).collect(), |last| {
                last.checked_add(1)
            }),
        }
    }

    /// The longest match for an IPv4 address.
    #[inline(always)]
    pub fn lookup4(&self, address: u32) -> HopId {
        self.v4.lookup(address)
    }

    /// The longest match for an IPv6 address.
    #[inline(always)]
    pub fn lookup6(&self, address: u128) -> HopId {
        self.v6.lookup(address)
    }
}

/// `hops[i]` holds from `starts[i]` to `starts[i + 1]`; `starts[0]` is zero.
#[derive(Debug)]
struct Ranges<A> {
    starts: Box<[A]>,
    hops: Box<[HopId]>,
}

impl<A: Copy + Ord + Default> Ranges<A> {
    fn new(mut prefixes: Vec<((A, A), HopId)>, after: impl Fn(A) -> Option<A>) -> Self {
        // By start, and the longer range (shorter prefix) first: outer before inner.
        prefixes.sort_by(|((a, a_end), _), ((b, b_end), _)| a.cmp(b).then(b_end.cmp(a_end)));
        let mut points: Vec<(A, HopId)> = vec![(A::default(), HopId::UNREACHABLE)];
        // The ranges that are open at this point, outermost first, by their last address.
        let mut open: Vec<(A, HopId)> = Vec::new();
        let close = |open: &mut Vec<(A, HopId)>, points: &mut Vec<(A, HopId)>, before: Option<A>| {
            while let Some((last, _)) = open.last().copied()
                && before.is_none_or(|start| last < start)
            {
                open.pop();
                let hop = open.last().map_or(HopId::UNREACHABLE, |(_, hop)| *hop);
                points.extend(after(last).map(|start| (start, hop)));
            }
        };
        for ((start, last), hop) in prefixes {
            close(&mut open, &mut points, Some(start));
            points.push((start, hop));
            open.push((last, hop));
        }
        close(&mut open, &mut points, None);
        // Several points at one place: the last said holds. Neighbours with the same hop are one range.
        let mut merged: Vec<(A, HopId)> = Vec::new();
        for (start, hop) in points {
            if merged.last().is_some_and(|(place, _)| *place == start) {
                merged.pop();
            }
            if merged.last().is_none_or(|(_, before)| *before != hop) {
                merged.push((start, hop));
            }
        }
        Self {
            starts: merged.iter().map(|(s, _)| *s).collect(),
            hops: merged.iter().map(|(_, h)| *h).collect(),
        }
    }

    #[inline(always)]
    fn lookup(&self, address: A) -> HopId {
        let range = self.starts.partition_point(|start| *start <= address);
        self.hops.get(range.wrapping_sub(1)).copied().unwrap_or(HopId::UNREACHABLE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_edges_of_the_address_space() {
        let everything = Ipv4Net::new(0.into(), 0).unwrap();
        let top = Ipv4Net::new(u32::MAX.into(), 32).unwrap();
        let routes = Routes::new(&[(everything, HopId(3)), (top, HopId(4))], &[]);
        assert_eq!(routes.lookup4(0), HopId(3));
        assert_eq!(routes.lookup4(u32::MAX - 1), HopId(3));
        assert_eq!(routes.lookup4(u32::MAX), HopId(4));
        assert_eq!(routes.lookup6(0), HopId::UNREACHABLE);
    }

    proptest! {
        /// Against a scan over all prefixes; addresses and prefixes crowd in a few bits so that they nest and touch.
        #[test]
        fn equals_a_scan(
            prefixes in prop::collection::vec((0u32..256, 24u8..=32, 3u16..20), 0..40),
            coarse in prop::collection::vec((any::<u32>(), 0u8..=8, 3u16..20), 0..4),
            addresses in prop::collection::vec(0u32..512, 1..60),
        ) {
            let mut table = BTreeMap::new();
            for (address, length, hop) in prefixes.into_iter().chain(coarse) {
                table.insert(Ipv4Net::new(address.into(), length).unwrap().trunc(), HopId(hop));
            }
            let list: Vec<_> = table.into_iter().collect();
            let wide: Vec<_> = list
                .iter()
                .map(|(net, hop)| {
                    let address = u128::from(u32::from(net.network())) << 96;
                    (Ipv6Net::new(address.into(), net.prefix_len()).unwrap(), *hop)
                })
                .collect();
            let routes = Routes::new(&list, &wide);
            for address in addresses {
                let best = list
                    .iter()
                    .filter(|(net, _)| net.contains(&std::net::Ipv4Addr::from(address)))
                    .max_by_key(|(net, _)| net.prefix_len())
                    .map_or(HopId::UNREACHABLE, |(_, hop)| *hop);
                prop_assert_eq!(routes.lookup4(address), best);
                prop_assert_eq!(routes.lookup6(u128::from(address) << 96 | 7), best);
            }
        }
    }
}
