//! Which rules may match? Without asking each of a session's filters.
//!
//! **Problem.** An SMF may give a session 64 PDRs of 16 filters each, and a packet that is asked about them one by one costs
//! thousands of cycles, more than everything else that is done for it.
//!
//! **Model.** A rule's filters are boxes in five dimensions: protocol, two addresses, two ports. Each dimension is cut where
//! any filter begins or ends, and for each piece a bit per rule says whether one of the rule's filters covers it
//! (Lakshman and Stiliadis, SIGCOMM 1998, but with a bit per rule). A packet lies in one piece of each dimension, and only the
//! rules whose bit is set in all of them can match. Whether one of their filters does is then asked as always: this only leaves out
//! what can't match.
//!
//! **Cost.** Five binary searches and a few words per look-up, however many filters there are; 10 to 24 bytes for each end of
//! a filter's range.
//!
//! **When not to use it.** For a handful of filters asking each is faster: [`Classifier::new`] makes none.

use crate::rules::{Pdr, Prefix, SdfFilter};
use packet::{Fragment, IpPacket};
use std::net::IpAddr;

/// Filters of a session from which on a classifier is worth its look-ups.
const LEAST_FILTERS: usize = 8;
/// Filters times words of a row, at most: a dimension of a classifier takes 16 octets of bits for each, 256 KiB in all. An SMF that sends
/// more than that for one session is served without.
const MOST: usize = 1 << 14;

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Classifier {
    /// Words of a row of bits.
    words: usize,
    protocol: Dimension<u8>,
    source_v4: Dimension<u32>,
    destination_v4: Dimension<u32>,
    source_v6: Dimension<u128>,
    destination_v6: Dimension<u128>,
    source_port: Dimension<u16>,
    destination_port: Dimension<u16>,
}

/// Pieces of a dimension: where each begins, and a row of bits for each.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Dimension<K> {
    starts: Box<[K]>,
    rows: Box<[u64]>,
}

/// What a coordinate can be.
trait Coordinate: Copy + Ord {
    const LEAST: Self;
    const GREATEST: Self;
    /// The next one, if there is one.
    fn next(self) -> Option<Self>;
}

macro_rules! coordinate {
    ($($type:ty),*) => {
        $(impl Coordinate for $type {
            const LEAST: Self = 0;
            const GREATEST: Self = Self::MAX;
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
        })*
    };
}

coordinate!(u8, u16, u32, u128);

impl<K: Coordinate> Dimension<K> {
    /// From the inclusive ranges that each rule covers, in the order of the rules.
    fn new(rules: &[Vec<(K, K)>], words: usize) -> Self {
        let mut starts = vec![K::LEAST];
        for (low, high) in rules.iter().flatten() {
            starts.push(*low);
            starts.extend(high.next());
        }
        starts.sort_unstable();
        starts.dedup();
        let mut rows = vec![0; starts.len() * words];
        for (rule, ranges) in rules.iter().enumerate() {
            for (low, high) in ranges {
                let from = starts.partition_point(|start| start < low);
                let to = starts.partition_point(|start| start <= high);
                for row in rows.chunks_exact_mut(words).take(to).skip(from) {
                    if let Some(word) = row.get_mut(rule / 64) {
                        *word |= 1 << (rule % 64);
                    }
                }
            }
        }
        Self { starts: starts.into(), rows: rows.into() }
    }

    /// The rules that cover this coordinate.
    fn row(&self, at: K, words: usize) -> &[u64] {
        let piece = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        self.rows.get(piece * words..(piece + 1) * words).unwrap_or_default()
    }
}

impl Classifier {
    /// For a session's rules, in their order; `None` if there are too few filters to be worth it, or too many to be kept.
    pub fn new(pdrs: &[Pdr]) -> Option<Box<Self>> {
        let filters: usize = pdrs.iter().map(|pdr| pdr.filters.len()).sum();
        let worth = filters >= LEAST_FILTERS && filters.saturating_mul(words(pdrs)) <= MOST;
        worth.then(|| Box::new(Self::of(pdrs)))
    }

    /// For any rules, however few their filters.
    pub fn of(pdrs: &[Pdr]) -> Self {
        let words = words(pdrs);
        Self {
            words,
            protocol: dimension(pdrs, words, |filter| {
                vec![filter.protocol.map_or((0, u8::MAX), |protocol| (protocol, protocol))]
            }),
            source_v4: dimension(pdrs, words, |filter| v4(filter.source)),
            destination_v4: dimension(pdrs, words, |filter| v4(filter.destination)),
            source_v6: dimension(pdrs, words, |filter| v6(filter.source)),
            destination_v6: dimension(pdrs, words, |filter| v6(filter.destination)),
            source_port: dimension(pdrs, words, |filter| ports(&filter.source_ports)),
            destination_port: dimension(pdrs, words, |filter| ports(&filter.destination_ports)),
        }
    }

    /// The rules that may match, best first, as indices.
    pub fn candidates(&self, ip: &IpPacket) -> impl Iterator<Item = u16> + '_ {
        let words = self.words;
        let protocol = self.protocol.row(ip.key.protocol.0, words);
        let source = match ip.key.source {
            IpAddr::V4(address) => self.source_v4.row(address.to_bits(), words),
            IpAddr::V6(address) => self.source_v6.row(address.to_bits(), words),
        };
        let destination = match ip.key.destination {
            IpAddr::V4(address) => self.destination_v4.row(address.to_bits(), words),
            IpAddr::V6(address) => self.destination_v6.row(address.to_bits(), words),
        };
        // A later fragment has no ports, and its rule is to be found out all the same.
        let ports = ip.key.ports.filter(|_| ip.fragment.is_none_or(Fragment::is_first));
        let ports = ports.map(|ports| {
            (self.source_port.row(ports.source, words), self.destination_port.row(ports.destination, words))
        });
        let word = |row: &[u64], at: usize| row.get(at).copied().unwrap_or(0);
        (0..words).flat_map(move |at| {
            let mut bits = word(protocol, at) & word(source, at) & word(destination, at);
            if let Some((source, destination)) = ports {
                bits &= word(source, at) & word(destination, at);
            }
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(at as u16 * 64 + bit as u16)
            })
        })
    }
}

/// Words that have a bit for each rule.
fn words(pdrs: &[Pdr]) -> usize {
    pdrs.len().div_ceil(64).max(1)
}

/// One dimension of all rules; a rule without filters covers all of it.
fn dimension<K: Coordinate>(
    pdrs: &[Pdr],
    words: usize,
    covers: impl Fn(&SdfFilter) -> Vec<(K, K)>,
) -> Dimension<K> {
    let rules: Vec<Vec<(K, K)>> = pdrs
        .iter()
        .map(|pdr| {
            if pdr.filters.is_empty() {
                vec![(K::LEAST, K::GREATEST)]
            } else {
                pdr.filters.iter().flat_map(&covers).collect()
            }
        })
        .collect();
    Dimension::new(&rules, words)
}

fn v4(prefix: Option<Prefix>) -> Vec<(u32, u32)> {
    match prefix {
        None => vec![(0, u32::MAX)],
        Some(Prefix::V4(net)) => vec![(net.network().to_bits(), net.broadcast().to_bits())],
        Some(Prefix::V6(_)) => Vec::new(),
    }
}

fn v6(prefix: Option<Prefix>) -> Vec<(u128, u128)> {
    match prefix {
        None => vec![(0, u128::MAX)],
        Some(Prefix::V6(net)) => vec![(net.network().to_bits(), net.broadcast().to_bits())],
        Some(Prefix::V4(_)) => Vec::new(),
    }
}

fn ports(ranges: &[(u16, u16)]) -> Vec<(u16, u16)> {
    if ranges.is_empty() {
        return vec![(0, u16::MAX)];
    }
    ranges.iter().copied().filter(|(low, high)| low <= high).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rules::Source;
    use packet::PacketBuilder;
    use pfcp::PdrId;
    use proptest::prelude::*;

    fn pdr(id: u16, filters: Vec<SdfFilter>) -> Pdr {
        Pdr {
            id: PdrId(id),
            precedence: id.into(),
            source: Source::Core,
            tunnel: None,
            qfis: Box::default(),
            filters: filters.into(),
            outer_header_removal: false,
            far: 0,
            qers: Box::default(),
            urrs: Box::default(),
        }
    }

    /// Few values, so that much matches; the ends of the ranges among them.
    fn prefixes() -> impl Strategy<Value = Option<Prefix>> {
        let some = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/31",
            "10.0.0.1/32",
            "255.255.255.255/32",
            "::/0",
            "2001:db8::/32",
            "2001:db8::1/128",
            "ffff::/16",
        ];
        let parsed = some.map(|text| {
            let net: ipnet::IpNet = text.parse().unwrap();
            match net {
                ipnet::IpNet::V4(net) => Prefix::V4(net),
                ipnet::IpNet::V6(net) => Prefix::V6(net),
            }
        });
        prop::option::of(prop::sample::select(parsed.to_vec()))
    }

    fn ranges() -> impl Strategy<Value = Box<[(u16, u16)]>> {
        let port = || prop::sample::select(vec![0_u16, 1, 53, 54, 80, 443, 65_534, 65_535]);
        prop::collection::vec((port(), port()), 0..3).prop_map(Into::into)
    }

    fn filters() -> impl Strategy<Value = SdfFilter> {
        let protocol = prop::option::of(prop::sample::select(vec![0_u8, 1, 6, 17, 255]));
        (protocol, prefixes(), prefixes(), ranges(), ranges()).prop_map(
            |(protocol, source, destination, source_ports, destination_ports)| SdfFilter {
                protocol,
                source,
                destination,
                source_ports,
                destination_ports,
                ..SdfFilter::default()
            },
        )
    }

    fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
        let v4 = || {
            prop::sample::select(vec!["9.255.255.255", "10.0.0.0", "10.0.0.1", "10.0.0.2", "255.255.255.255"])
        };
        let v6 = || prop::sample::select(vec!["::", "2001:db8::1", "2001:db8::2", "2001:db9::", "ffff::1"]);
        let parse = |(a, b): (&str, &str)| (a.parse().unwrap(), b.parse().unwrap());
        prop_oneof![(v4(), v4()).prop_map(parse), (v6(), v6()).prop_map(parse)]
    }

    /// Asked as plainly as it can be said.
    fn matches(filter: &SdfFilter, ip: &IpPacket) -> bool {
        let within = |ranges: &[(u16, u16)], port: Option<u16>| {
            ranges.is_empty()
                || port.is_some_and(|port| ranges.iter().any(|(a, b)| (*a..=*b).contains(&port)))
        };
        filter.protocol.is_none_or(|protocol| protocol == ip.key.protocol.0)
            && filter.source.is_none_or(|prefix| prefix.contains(ip.key.source))
            && filter.destination.is_none_or(|prefix| prefix.contains(ip.key.destination))
            && within(&filter.source_ports, ip.key.ports.map(|ports| ports.source))
            && within(&filter.destination_ports, ip.key.ports.map(|ports| ports.destination))
    }

    proptest! {
        /// Every rule that matches is among the candidates, in order; with one filter a rule and with ports, no other is.
        #[test]
        fn leaves_out_only_what_can_not_match(
            rules in prop::collection::vec(prop::collection::vec(filters(), 0..4), 0..150),
            (source, destination) in addresses(),
            ports in (prop::sample::select(vec![0_u16, 53, 54, 443, 65_535]), prop::sample::select(vec![0_u16, 80, 81, 65_535])),
            udp: bool,
        ) {
            let pdrs: Vec<Pdr> = rules.into_iter().enumerate().map(|(id, filters)| pdr(id as u16, filters)).collect();
            let builder = PacketBuilder::new().ip(source, destination);
            let bytes = if udp {
                builder.udp(ports.0, ports.1).build(b"x")
            } else {
                // Another protocol, without ports.
                let mut bytes = builder.udp(ports.0, ports.1).build(b"x");
                let next = if source.is_ipv4() { 9 } else { 6 };
                bytes[next] = 255;
                bytes
            };
            let ip = IpPacket::parse(&bytes).unwrap();
            let found: Vec<u16> = Classifier::of(&pdrs).candidates(&ip).collect();
            prop_assert!(found.is_sorted());
            for (index, pdr) in pdrs.iter().enumerate() {
                let does = pdr.filters.is_empty() || pdr.filters.iter().any(|filter| matches(filter, &ip));
                let may = found.contains(&(index as u16));
                prop_assert!(may || !does, "rule {index} matches");
                prop_assert!(does || !may || pdr.filters.len() > 1 || !udp, "rule {index} can't match");
            }
        }
    }

    #[test]
    fn a_few_filters_are_asked_one_by_one() {
        let rules = |count: usize| [pdr(1, vec![SdfFilter::default(); count])];
        assert!(Classifier::new(&rules(LEAST_FILTERS - 1)).is_none());
        assert!(Classifier::new(&rules(LEAST_FILTERS)).is_some());
        assert!(Classifier::new(&rules(MOST)).is_some() && Classifier::new(&rules(MOST + 1)).is_none());
    }
}
