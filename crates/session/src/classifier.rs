//! Which rules may match? Without asking each of a session's filters.
//!
//! **Problem.** An SMF may give a session 64 PDRs of 16 filters each, and a packet that is asked about them one by one costs
//! thousands of cycles, more than everything else that is done for it.
//!
//! **Model.** Filters are boxes in five dimensions: protocol, two addresses, two ports. Each dimension is cut where any filter begins
//! or ends, and for each piece a bit per filter says whether the filter covers it (Lakshman and Stiliadis, SIGCOMM 1998). A packet
//! lies in one piece of each dimension, and only filters whose bit is set in all of them can match. Whether they do is then
//! asked as always: this only leaves out what can't match. There are [`BITS`] bits at most; of more filters, a few of one
//! rule share a bit.
//!
//! **Cost.** Five binary searches and a few words per look-up, however many filters there are; 10 to 48 bytes for each end of
//! a filter's range.
//!
//! **When not to use it.** For a handful of filters asking each is faster: [`Classifier::new`] makes none.

use crate::rules::{Pdr, Prefix, SdfFilter};
use packet::{Fragment, IpPacket};
use std::net::IpAddr;
use std::ops::Range;

/// Filters of a session from which on a classifier is worth its look-ups.
const LEAST_FILTERS: usize = 8;
/// Filters of a session, at most: an SMF that sends more for one is served without.
const MOST_FILTERS: usize = 1 << 14;
/// Bits of a row.
pub const BITS: usize = 64 * WORDS;
/// Words of a row.
const WORDS: usize = 4;

/// Bits for filters, the first of them lowest.
type Row = [u64; WORDS];

/// Consecutive filters of one rule, behind one bit; none of a rule without filters.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    rule: u16,
    filters: Range<u16>,
}

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Classifier {
    /// By bit.
    groups: Box<[Group]>,
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
    rows: Box<[Row]>,
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
    /// From the inclusive ranges that the filters of each group cover.
    fn new(pdrs: &[Pdr], groups: &[Group], covers: impl Fn(&SdfFilter) -> Vec<(K, K)>) -> Self {
        let ranges: Vec<Vec<(K, K)>> = groups
            .iter()
            .map(|group| match group.of(pdrs) {
                Some((_, [])) => vec![(K::LEAST, K::GREATEST)],
                Some((_, filters)) => filters.iter().flat_map(&covers).collect(),
                None => Vec::new(),
            })
            .collect();
        let mut starts = vec![K::LEAST];
        for (low, high) in ranges.iter().flatten() {
            starts.push(*low);
            starts.extend(high.next());
        }
        starts.sort_unstable();
        starts.dedup();
        let mut rows = vec![[0; WORDS]; starts.len()];
        for (bit, ranges) in ranges.iter().enumerate() {
            for (low, high) in ranges {
                let from = starts.partition_point(|start| start < low);
                let to = starts.partition_point(|start| start <= high);
                for row in rows.iter_mut().take(to).skip(from) {
                    if let Some(word) = row.get_mut(bit / 64) {
                        *word |= 1 << (bit % 64);
                    }
                }
            }
        }
        Self { starts: starts.into(), rows: rows.into() }
    }

    /// The groups that cover this coordinate.
    fn row(&self, at: K) -> Row {
        let piece = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        self.rows.get(piece).copied().unwrap_or_default()
    }
}

impl Group {
    /// The rule, and its filters that are meant.
    fn of<'r>(&self, pdrs: &'r [Pdr]) -> Option<(&'r Pdr, &'r [SdfFilter])> {
        let pdr = pdrs.get(usize::from(self.rule))?;
        let filters = usize::from(self.filters.start)..usize::from(self.filters.end);
        Some((pdr, pdr.filters.get(filters)?))
    }
}

impl Classifier {
    /// For a session's rules, in their order; `None` if there are too few filters to be worth it, or too many to be kept.
    pub fn new(pdrs: &[Pdr]) -> Option<Box<Self>> {
        let filters: usize = pdrs.iter().map(|pdr| pdr.filters.len()).sum();
        if !(LEAST_FILTERS..=MOST_FILTERS).contains(&filters) {
            return None;
        }
        Self::of(pdrs).map(Box::new)
    }

    /// For any rules, however few their filters; `None` if there are more rules than bits.
    pub fn of(pdrs: &[Pdr]) -> Option<Self> {
        // As few filters to a bit as the bits allow.
        let needed =
            |share: usize| pdrs.iter().map(|pdr| pdr.filters.len().div_ceil(share).max(1)).sum::<usize>();
        let most = pdrs.iter().map(|pdr| pdr.filters.len()).max().unwrap_or(0).max(1);
        let share = (1..=most).find(|share| needed(*share) <= BITS)?;
        let mut groups = Vec::with_capacity(needed(share));
        for (rule, pdr) in pdrs.iter().enumerate() {
            let all = pdr.filters.len();
            for first in (0..all.max(1)).step_by(share) {
                let filters = first as u16..all.min(first + share) as u16;
                groups.push(Group { rule: rule as u16, filters });
            }
        }
        Some(Self {
            protocol: Dimension::new(pdrs, &groups, |filter| {
                vec![filter.protocol.map_or((0, u8::MAX), |protocol| (protocol, protocol))]
            }),
            source_v4: Dimension::new(pdrs, &groups, |filter| v4(filter.source)),
            destination_v4: Dimension::new(pdrs, &groups, |filter| v4(filter.destination)),
            source_v6: Dimension::new(pdrs, &groups, |filter| v6(filter.source)),
            destination_v6: Dimension::new(pdrs, &groups, |filter| v6(filter.destination)),
            source_port: Dimension::new(pdrs, &groups, |filter| ports(&filter.source_ports)),
            destination_port: Dimension::new(pdrs, &groups, |filter| ports(&filter.destination_ports)),
            groups: groups.into(),
        })
    }

    /// The rules among `pdrs`, which this was made of, that may match, best first: index, rule, and those of its filters that may. A
    /// rule may come several times, with other filters.
    pub fn candidates<'r>(
        &'r self,
        pdrs: &'r [Pdr],
        ip: &IpPacket,
    ) -> impl Iterator<Item = (u16, &'r Pdr, &'r [SdfFilter])> {
        let source = match ip.key.source {
            IpAddr::V4(address) => self.source_v4.row(address.to_bits()),
            IpAddr::V6(address) => self.source_v6.row(address.to_bits()),
        };
        let destination = match ip.key.destination {
            IpAddr::V4(address) => self.destination_v4.row(address.to_bits()),
            IpAddr::V6(address) => self.destination_v6.row(address.to_bits()),
        };
        let mut row = and(self.protocol.row(ip.key.protocol.0), and(source, destination));
        // A later fragment has no ports, and its rule is to be found out all the same.
        if let Some(ports) = ip.key.ports.filter(|_| ip.fragment.is_none_or(Fragment::is_first)) {
            row = and(row, self.source_port.row(ports.source));
            row = and(row, self.destination_port.row(ports.destination));
        }
        let bits = row.into_iter().enumerate().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                word &= word.wrapping_sub(1);
                (bit < 64).then_some(64 * at + bit)
            })
        });
        bits.filter_map(|bit| {
            let group = self.groups.get(bit)?;
            let (pdr, filters) = group.of(pdrs)?;
            Some((group.rule, pdr, filters))
        })
    }
}

fn and(a: Row, b: Row) -> Row {
    std::array::from_fn(|at| a.get(at).copied().unwrap_or(0) & b.get(at).copied().unwrap_or(0))
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
        /// Every filter that matches is among the candidates, in order of the rules.
        #[test]
        fn leaves_out_only_what_can_not_match(
            rules in prop::collection::vec(prop::collection::vec(filters(), 0..4), 0..150),
            (source, destination) in addresses(),
            ports in (prop::sample::select(vec![0_u16, 53, 54, 443, 65_535]), prop::sample::select(vec![0_u16, 80, 81, 65_535])),
            udp: bool,
        ) {
            let shared = rules.iter().map(|filters| filters.len().max(1)).sum::<usize>() > BITS;
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
            let classifier = Classifier::of(&pdrs).unwrap();
            let found: Vec<_> = classifier.candidates(&pdrs, &ip).collect();
            prop_assert!(found.is_sorted_by_key(|(index, ..)| *index));
            for (index, pdr) in pdrs.iter().enumerate() {
                let mine = || found.iter().filter(|(other, ..)| usize::from(*other) == index);
                let narrowed: Vec<_> = mine().flat_map(|(_, _, filters)| filters.iter()).collect();
                for filter in &pdr.filters {
                    let does = matches(filter, &ip);
                    let may = narrowed.iter().any(|other| std::ptr::eq(*other, filter));
                    prop_assert!(may || !does, "a filter of rule {index} matches");
                    // With a bit for each filter and with ports, only what matches is left, but for ranges the wrong way round.
                    let plain = filter.source_ports.len() < 2 && filter.destination_ports.len() < 2;
                    prop_assert!(does || !may || !udp || !plain || shared, "a filter of rule {index} can't match");
                }
                prop_assert!(!pdr.filters.is_empty() || mine().count() == 1, "rule {index} takes all");
            }
        }
    }

    #[test]
    fn a_few_filters_are_asked_one_by_one() {
        let rules = |count: usize| [pdr(1, vec![SdfFilter::default(); count])];
        assert!(Classifier::new(&rules(LEAST_FILTERS - 1)).is_none());
        assert!(Classifier::new(&rules(LEAST_FILTERS)).is_some());
        assert!(Classifier::new(&rules(MOST_FILTERS)).is_some());
        assert!(Classifier::new(&rules(MOST_FILTERS + 1)).is_none());
        let many: Vec<Pdr> = (0..=BITS as u16).map(|id| pdr(id, vec![SdfFilter::default()])).collect();
        assert!(Classifier::new(&many).is_none() && Classifier::new(&many[1..]).is_some());
    }
}
