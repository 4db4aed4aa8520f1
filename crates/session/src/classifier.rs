//! Which rules may match? Without asking each of a session's filters.
//!
//! **Problem.** An SMF may give a session 64 PDRs of 16 filters each, and a packet that is asked about them one by one costs
//! thousands of cycles, more than everything else that is done for it.
//!
//! **Model.** Filters are boxes in five dimensions: protocol, two addresses, two ports. Each dimension is cut where any filter begins
//! or ends, and for each piece a bit per filter says whether the filter covers it (Lakshman and Stiliadis, SIGCOMM 1998). A packet
//! lies in one piece of each dimension, and only filters whose bit is set in all of them can match. Whether they do is then
//! asked as always: this only leaves out what can't match.
//!
//! Rows of bits would grow with the square of the filters, and are nearly empty: most filters cover a whole dimension or a
//! piece or two of it. So the former have a row of their own for the dimension, and a piece keeps only those words of its row
//! that have other bits, behind a summary, a bit for each such word (Baboescu and Varghese, SIGCOMM 2001). A look-up first
//! intersects the summaries, and reads words only where no dimension's are empty.
//!
//! There are [`BITS`] bits and [`MOST_BYTES`] bytes at most. Beyond, because the filters are very many or because many ranges
//! overlap many others, a few filters of one rule share a bit.
//!
//! **Cost.** Five binary searches, and for each word of 64 filters that the summaries leave over at most five reads; 20 to 40
//! bytes for each end of a filter's range as long as few ranges overlap.
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
/// Bits of a row: as many words as a summary has bits.
pub const BITS: usize = 64 * 64;
/// What a session's rows may take.
pub const MOST_BYTES: usize = 1 << 20;

/// Consecutive filters of one rule, behind one bit; none of a rule without filters.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    rule: u16,
    filters: Range<u16>,
}

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Classifier {
    /// By bit: rules of tunnels first, as no packet is asked about both those and the others; each sort in the rules' order.
    groups: Box<[Group]>,
    protocol: Dimension<u8>,
    source_v4: Dimension<u32>,
    destination_v4: Dimension<u32>,
    source_v6: Dimension<u128>,
    destination_v6: Dimension<u128>,
    source_port: Dimension<u16>,
    destination_port: Dimension<u16>,
}

/// Pieces of a dimension, and which groups cover each.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Dimension<K> {
    /// Where each piece begins.
    starts: Box<[K]>,
    /// Where each piece's row begins in `words`.
    rows: Box<[u32]>,
    /// Rows: a summary, and the words that it names, lowest first. The first row is empty.
    words: Box<[u64]>,
    /// The groups that cover the whole dimension, as all words and their summary. They are in no other row.
    whole: Box<[u64]>,
    whole_summary: u64,
}

/// The groups that cover a packet's coordinate in one dimension.
#[derive(Clone, Copy)]
struct Row<'c> {
    summary: u64,
    words: &'c [u64],
    whole_summary: u64,
    whole: &'c [u64],
}

impl Row<'_> {
    /// Words that are not empty, by bit.
    fn summary(&self) -> u64 {
        self.summary | self.whole_summary
    }

    /// The word of this number, less than 64.
    fn word(&self, number: u32) -> u64 {
        let own = if self.summary >> number & 1 == 1 {
            let before = self.summary & ((1 << number) - 1);
            self.words.get(before.count_ones() as usize).copied().unwrap_or(0)
        } else {
            0
        };
        own | self.whole.get(number as usize).copied().unwrap_or(0)
    }
}

/// The bits that are set, lowest first.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
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
    /// From the inclusive ranges that the filters of each group cover; `None` if it would take more than is `left` of the
    /// bytes. What it takes goes off them.
    fn new(
        pdrs: &[Pdr],
        groups: &[Group],
        left: &mut usize,
        covers: impl Fn(&SdfFilter) -> Vec<(K, K)>,
    ) -> Option<Self> {
        let width = groups.len().div_ceil(64);
        let mut whole = vec![0_u64; width];
        // Where a group begins to cover, and where it no longer does.
        let mut turns: Vec<(K, usize)> = Vec::new();
        for (bit, group) in groups.iter().enumerate() {
            for (low, high) in joined(group.ranges(pdrs, &covers)) {
                if (low, high) == (K::LEAST, K::GREATEST) {
                    toggle(&mut whole, bit);
                } else {
                    turns.push((low, bit));
                    turns.extend(high.next().map(|end| (end, bit)));
                }
            }
        }
        turns.sort_unstable();
        let (mut starts, mut rows, mut words) = (vec![K::LEAST], vec![0_u32], vec![0_u64]);
        let (mut now, mut summary) = (vec![0_u64; width], 0_u64);
        for piece in turns.chunk_by(|a, b| a.0 == b.0) {
            for (_, bit) in piece {
                toggle(&mut now, *bit);
                let empty = now.get(bit / 64).is_none_or(|word| *word == 0);
                let mark = 1 << (bit / 64);
                summary = if empty { summary & !mark } else { summary | mark };
            }
            let row = if summary == 0 { 0 } else { words.len() as u32 };
            let Some((at, _)) = piece.first() else { continue };
            // The dimension's own beginning is there already.
            if starts.last() == Some(at) {
                rows.pop();
            } else {
                starts.push(*at);
            }
            rows.push(row);
            if summary != 0 {
                words.push(summary);
                words.extend(bits(summary).filter_map(|word| now.get(word as usize)));
            }
            if 8 * words.len() > *left {
                return None;
            }
        }
        let bytes = starts.len() * (size_of::<K>() + size_of::<u32>()) + 8 * (words.len() + width);
        *left = left.checked_sub(bytes)?;
        let whole_summary = whole.iter().enumerate().map(|(at, word)| u64::from(*word != 0) << at).sum();
        Some(Self {
            starts: starts.into(),
            rows: rows.into(),
            words: words.into(),
            whole: whole.into(),
            whole_summary,
        })
    }

    /// The groups that cover this coordinate.
    fn row(&self, at: K) -> Row<'_> {
        let piece = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let begin = self.rows.get(piece).map_or(0, |row| *row as usize);
        let (summary, words) = match self.words.get(begin..) {
            Some([summary, words @ ..]) => (*summary, words),
            _ => (0, &[][..]),
        };
        Row { summary, words, whole_summary: self.whole_summary, whole: &self.whole }
    }
}

fn toggle(words: &mut [u64], bit: usize) {
    if let Some(word) = words.get_mut(bit / 64) {
        *word ^= 1 << (bit % 64);
    }
}

/// The same coordinates in ranges that neither overlap nor touch.
fn joined<K: Coordinate>(mut ranges: Vec<(K, K)>) -> Vec<(K, K)> {
    ranges.sort_unstable();
    let mut joined: Vec<(K, K)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match joined.last_mut() {
            Some((_, end)) if end.next().is_none_or(|next| low <= next) => *end = high.max(*end),
            _ => joined.push((low, high)),
        }
    }
    joined
}

impl Group {
    /// The rule, and its filters that are meant.
    fn of<'r>(&self, pdrs: &'r [Pdr]) -> Option<(&'r Pdr, &'r [SdfFilter])> {
        let pdr = pdrs.get(usize::from(self.rule))?;
        let filters = usize::from(self.filters.start)..usize::from(self.filters.end);
        Some((pdr, pdr.filters.get(filters)?))
    }

    /// What its filters cover.
    fn ranges<K: Coordinate>(&self, pdrs: &[Pdr], covers: impl Fn(&SdfFilter) -> Vec<(K, K)>) -> Vec<(K, K)> {
        match self.of(pdrs) {
            Some((_, [])) => vec![(K::LEAST, K::GREATEST)],
            Some((_, filters)) => filters.iter().flat_map(covers).collect(),
            None => Vec::new(),
        }
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

    /// For any rules, however few their filters; `None` if there are more rules than bits, or if they take too many bytes even
    /// with a bit a rule.
    pub fn of(pdrs: &[Pdr]) -> Option<Self> {
        Self::within(pdrs, BITS, MOST_BYTES)
    }

    /// With so many bits and bytes.
    fn within(pdrs: &[Pdr], most_bits: usize, most_bytes: usize) -> Option<Self> {
        // As few filters to a bit as bits and bytes allow.
        let needed =
            |share: usize| pdrs.iter().map(|pdr| pdr.filters.len().div_ceil(share).max(1)).sum::<usize>();
        let most = pdrs.iter().map(|pdr| pdr.filters.len()).max().unwrap_or(0).max(1);
        let mut share = (1..=most).find(|share| needed(*share) <= most_bits)?;
        loop {
            let found = Self::sharing(pdrs, share, most_bytes);
            if found.is_some() || share >= most {
                return found;
            }
            share *= 2;
        }
    }

    /// With so many filters of a rule to a bit; `None` if it takes too many bytes.
    fn sharing(pdrs: &[Pdr], share: usize, most_bytes: usize) -> Option<Self> {
        let mut groups = Vec::new();
        for tunnel in [true, false] {
            let sort = pdrs.iter().enumerate().filter(|(_, pdr)| pdr.tunnel.is_some() == tunnel);
            for (rule, pdr) in sort {
                let all = pdr.filters.len();
                for first in (0..all.max(1)).step_by(share) {
                    let filters = first as u16..all.min(first + share) as u16;
                    groups.push(Group { rule: rule as u16, filters });
                }
            }
        }
        let left = &mut most_bytes.checked_sub(size_of::<Group>() * groups.len())?;
        Some(Self {
            protocol: Dimension::new(pdrs, &groups, left, |filter| {
                vec![filter.protocol.map_or((0, u8::MAX), |protocol| (protocol, protocol))]
            })?,
            source_v4: Dimension::new(pdrs, &groups, left, |filter| v4(filter.source))?,
            destination_v4: Dimension::new(pdrs, &groups, left, |filter| v4(filter.destination))?,
            source_v6: Dimension::new(pdrs, &groups, left, |filter| v6(filter.source))?,
            destination_v6: Dimension::new(pdrs, &groups, left, |filter| v6(filter.destination))?,
            source_port: Dimension::new(pdrs, &groups, left, |filter| ports(&filter.source_ports))?,
            destination_port: Dimension::new(pdrs, &groups, left, |filter| ports(&filter.destination_ports))?,
            groups: groups.into(),
        })
    }

    /// The rules among `pdrs`, which this was made of, that may match: index, rule, and those of its filters that may. Those of
    /// tunnels come before the others, and each sort best first. A rule may come several times, with other filters.
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
        let protocol = self.protocol.row(ip.key.protocol.0);
        // A later fragment has no ports, and its rule is to be found out all the same.
        let ports = match ip.key.ports.filter(|_| ip.fragment.is_none_or(Fragment::is_first)) {
            Some(ports) => [self.source_port.row(ports.source), self.destination_port.row(ports.destination)],
            // The same twice changes nothing.
            None => [protocol; 2],
        };
        // Those first that leave least over, as a rule.
        let rows = [ports[1], ports[0], destination, source, protocol];
        let summary = rows.iter().fold(u64::MAX, |summary, row| summary & row.summary());
        let found = bits(summary).flat_map(move |number| {
            let mut word = u64::MAX;
            for row in &rows {
                word &= row.word(number);
                if word == 0 {
                    break;
                }
            }
            bits(word).map(move |bit| 64 * number as usize + bit as usize)
        });
        found.filter_map(|bit| {
            let group = self.groups.get(bit)?;
            let (pdr, filters) = group.of(pdrs)?;
            Some((group.rule, pdr, filters))
        })
    }
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
    use crate::ids::TeidRef;
    use crate::rules::{Source, Tunnel};
    use packet::{PacketBuilder, Teid};
    use pfcp::PdrId;
    use proptest::prelude::*;

    /// Odd ones are of a tunnel.
    fn pdr(id: u16, filters: Vec<SdfFilter>) -> Pdr {
        let tunnel = Tunnel { teid: Teid(7), place: TeidRef::of(Teid(7)) };
        let uplink = id % 2 == 1;
        let source = if uplink { Source::Access } else { Source::Core };
        let all = Pdr::all(PdrId(id), source, uplink.then_some(tunnel), 0);
        Pdr { precedence: id.into(), filters: filters.into(), ..all }
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

    impl<K> Dimension<K> {
        fn bytes(&self) -> usize {
            size_of_val(&*self.starts)
                + size_of_val(&*self.rows)
                + size_of_val(&*self.words)
                + size_of_val(&*self.whole)
        }
    }

    impl Classifier {
        fn bytes(&self) -> usize {
            let addresses = self.source_v4.bytes() + self.destination_v4.bytes();
            let wide = self.source_v6.bytes() + self.destination_v6.bytes();
            let ports = self.source_port.bytes() + self.destination_port.bytes();
            size_of_val(&*self.groups) + self.protocol.bytes() + addresses + wide + ports
        }

        fn shares(&self) -> bool {
            self.groups.iter().any(|group| group.filters.len() > 1)
        }
    }

    proptest! {
        /// Every filter that matches is among the candidates, in order of the rules.
        #[test]
        fn leaves_out_only_what_can_not_match(
            rules in prop::collection::vec(prop::collection::vec(filters(), 0..4), 0..150),
            (source, destination) in addresses(),
            ports in (prop::sample::select(vec![0_u16, 53, 54, 443, 65_535]), prop::sample::select(vec![0_u16, 80, 81, 65_535])),
            udp: bool,
            // With room for all of them, and without.
            (most_bits, most_bytes) in prop::sample::select(vec![(BITS, MOST_BYTES), (192, MOST_BYTES), (BITS, 12_000)]),
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
            let classifier = Classifier::within(&pdrs, most_bits, most_bytes);
            prop_assert!(classifier.is_some() || most_bytes < MOST_BYTES);
            let Some(classifier) = classifier else { return Ok(()) };
            prop_assert!(classifier.bytes() <= most_bytes);
            let shared = classifier.shares();
            prop_assert!(!shared || (most_bits, most_bytes) != (BITS, MOST_BYTES));
            let found: Vec<_> = classifier.candidates(&pdrs, &ip).collect();
            prop_assert!(found.is_sorted_by_key(|(index, pdr, _)| (pdr.tunnel.is_none(), *index)));
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

    /// The first of the filters that take a packet to this port.
    fn at(classifier: &Classifier, pdrs: &[Pdr], port: u16) -> Vec<u16> {
        let bytes =
            PacketBuilder::new().ip([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(9, port).build(b"x");
        classifier.candidates(pdrs, &IpPacket::parse(&bytes).unwrap()).map(|(rule, ..)| rule).collect()
    }

    fn to_ports(low: u16, high: u16) -> SdfFilter {
        SdfFilter { destination_ports: [(low, high)].into(), ..SdfFilter::default() }
    }

    #[test]
    fn two_thousand_filters_have_a_bit_each_and_little_memory() {
        let pdrs: Vec<Pdr> = (0..128_u16)
            .map(|rule| {
                pdr(
                    rule,
                    (0..16)
                        .map(|nth| 1_000 + 20 * (16 * rule + nth))
                        .map(|port| to_ports(port, port + 9))
                        .collect(),
                )
            })
            .collect();
        let classifier = Classifier::of(&pdrs).unwrap();
        assert!(!classifier.shares());
        assert!(classifier.bytes() < MOST_BYTES / 8, "{} bytes", classifier.bytes());
        for rule in 0..128 {
            let begin = 1_000 + 20 * 16 * rule;
            assert_eq!(at(&classifier, &pdrs, begin), [rule]);
            assert_eq!(at(&classifier, &pdrs, begin + 9 + 20 * 15), [rule]);
            assert!(at(&classifier, &pdrs, begin + 10).is_empty());
        }
    }

    #[test]
    fn filters_that_overlap_all_others_share_bits_rather_than_take_more_memory() {
        let pdrs: Vec<Pdr> = (0..64_u16)
            .map(|rule| {
                pdr(rule, (0..64).map(|nth| 64 * rule + nth).map(|nth| to_ports(nth, 40_000 + nth)).collect())
            })
            .collect();
        let classifier = Classifier::of(&pdrs).unwrap();
        assert!(classifier.shares());
        assert!(classifier.bytes() <= MOST_BYTES, "{} bytes", classifier.bytes());
        assert_eq!(at(&classifier, &pdrs, 0), [0]);
        // All of them may, those of tunnels, which are the odd ones, first.
        let mut all = at(&classifier, &pdrs, 30_000);
        all.dedup();
        assert_eq!(all, (1..64).step_by(2).chain((0..64).step_by(2)).collect::<Vec<_>>());
    }
}
