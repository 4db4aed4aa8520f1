//! What a flow's first packet found out, for all that follow.
//!
//! A session whose rules look into the packet (filters, several QFIs, meters that rules share) is classified flow by
//! flow: the first packet takes the slow path, and what classification found is kept in the shard's flow table under
//! everything that it looked at. A flow knows its rule, and counts; what the rule does is in the rule's own
//! record, so that a FAR, QER or URR may change without touching a flow. If the rules' filters change, the session gets a
//! new version, and a flow of an older one is classified again by its next packet.

use crate::counters::Traffic;
use crate::meta::{Kind, Meta, NO_QFI};
use crate::state::police::{guarantees, limited_qers};
use crate::state::record::{MAX_SESSIONS, coarse, from_coarse};
use crate::state::rules::only_link_local;
use packet::{IpProtocol, Qfi};
use session::rules::{Pdr, Rules, SdfFilter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tables::Nanos;
use tables::flow::{FlowKey, FlowProbe, FlowValue};
use tables::hash::mix;

/// Everything that classification may look at, in 36 octets: the tunnel (or the session) with the UE's address, the other
/// end's address, protocol, ports, QFI and the ToS bits that a filter asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    /// Of the other end; an IPv4 address in the first word.
    remote: [u32; 4],
    /// Of the UE: an IPv4 address in the first word, or the lower half of an IPv6 address. The upper half is the session's, but for
    /// what the UE disposes of.
    ue: [u32; 2],
    /// Source port above, destination port below, as the packet travels; 0 without ports.
    ports: u32,
    /// Slot of the tunnel (from a tunnel) or of the session. Above it, which of its links the UE's IPv6 address is on: the bits of the upper
    /// half that aren't the prefix's own.
    place: u32,
    /// Protocol, ToS bits, QFI, and [`TUNNEL`] and [`IPV6`]: an octet each, the protocol's uppermost. Whole words, so that a
    /// key that was just made can be read back as it is compared, in larger pieces.
    rest: u32,
}

/// From a tunnel.
const TUNNEL: u32 = 1;
/// The UE's packet is IPv6.
const IPV6: u32 = 2;
/// Of a key's place: slots are below [`MAX_SESSIONS`], and TEIDs name no more.
const SLOT: u32 = MAX_SESSIONS - 1;
/// Where the UE's link is in it.
const LINK_SHIFT: u32 = 16;

const _: () = assert!(SLOT >> LINK_SHIFT == 0 && session::PrefixLength::SHORTEST >= 48);

impl Key {
    /// The key of a packet whose record (with this `prefix` and mask) was found. `None`: the packet is classified by itself,
    /// because it is a fragment, has extension headers, lacks ports that it should have, or isn't of the UE's own prefix.
    #[inline(always)]
    pub fn of(frame: &[u8], meta: &Meta, prefix: u64, tos_mask: u8) -> Option<Self> {
        let packet = frame.get(meta.inner as usize..meta.inner as usize + meta.len as usize)?;
        let from_tunnel = meta.kind == Kind::Tunnel;
        let mut key = Self { place: meta.slot, ..Self::default() };
        let shape = (if from_tunnel { TUNNEL } else { 0 }) | (if meta.v6 { IPV6 } else { 0 });
        let (protocol, transport);
        if meta.v6 {
            if meta.key != prefix || prefix == 0 {
                return None;
            }
            let (header, rest) = packet.split_first_chunk::<40>()?;
            let [_, _, _, _, _, _, next, _, addresses @ ..] = *header;
            let (words, _) = addresses.as_chunks::<4>();
            let words = words.first_chunk::<8>()?.map(u32::from_ne_bytes);
            let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = halves(words);
            let above;
            (key.remote, key.ue, above) =
                if from_tunnel { ([d0, d1, d2, d3], [s2, s3], s1) } else { ([s0, s1, s2, s3], [d2, d3], d1) };
            // A prefix is a /48 or longer: what differs from its key is in the lowest 16 bits.
            key.place |= (u32::from_be(above) ^ meta.key as u32) << LINK_SHIFT;
            (protocol, transport) = (next, rest);
            if !(IpProtocol(next).has_ports() || IpProtocol(next) == IpProtocol::ICMPV6) {
                return None;
            }
        } else {
            let [v, _, _, _, _, _, f0, f1, _, next, _, _, addresses @ ..] = *packet.first_chunk::<20>()?;
            // A fragment, or the first of several.
            if u16::from_be_bytes([f0, f1]) & 0x3fff != 0 {
                return None;
            }
            let [a0, a1, a2, a3, b0, b1, b2, b3] = addresses;
            let (source, destination) =
                (u32::from_ne_bytes([a0, a1, a2, a3]), u32::from_ne_bytes([b0, b1, b2, b3]));
            let (ue, remote) = if from_tunnel { (source, destination) } else { (destination, source) };
            (key.remote, key.ue) = ([remote, 0, 0, 0], [ue, 0]);
            (protocol, transport) = (next, packet.get((v & 15) as usize * 4..)?);
        }
        let tos = (meta.tos & tos_mask) as u32;
        key.rest = (protocol as u32) << 24 | tos << 16 | (meta.qfi as u32) << 8 | shape;
        if IpProtocol(protocol).has_ports() {
            key.ports = u32::from_be_bytes(*transport.first_chunk::<4>()?);
        }
        Some(key)
    }

    /// The ends of the conversation that the flow is a part of: the same for both directions, and for any QFI and ToS.
    pub fn ends(&self) -> Self {
        let (Self { remote, ue, .. }, [remote_first, ue_first]) = (*self, [self.remote[0], self.ue[0]]);
        let ports = if self.rest & TUNNEL != 0 { self.ports } else { self.ports.rotate_left(16) };
        // What comes out of another UPF's tunnel for the UE has its addresses the wrong way round (IPv6 has no flow there).
        let swapped =
            self.rest & IPV6 == 0 && (remote_first, ports as u16) < (ue_first, (ports >> 16) as u16);
        let (remote, ue, ports) = if swapped {
            ([ue_first, 0, 0, 0], [remote_first, 0], ports.rotate_left(16))
        } else {
            (remote, ue, ports)
        };
        // Of the place, the slot is left out, which differs.
        Self { remote, ue, ports, place: self.place & !SLOT, rest: self.rest & (0xff << 24 | IPV6) }
    }

    /// Where the flow's record is: a slot, and whether it is a tunnel's (or else a session's).
    pub const fn place(&self) -> (u32, bool) {
        (self.place & SLOT, self.rest & TUNNEL != 0)
    }

    /// What people know a flow by. `prefix`: the upper half of the UE's IPv6 prefix.
    pub fn tuple(&self, prefix: u64) -> Tuple {
        let [ue, _] = self.ue;
        let [remote, ..] = self.remote;
        let (ue, remote) = if self.rest & IPV6 != 0 {
            let [u0, u1] = self.ue.map(u32::to_ne_bytes).map(u32::from_be_bytes);
            let upper = u128::from(prefix | u64::from(self.place >> LINK_SHIFT)) << 64;
            let ue = Ipv6Addr::from_bits(upper | u128::from(u0) << 32 | u128::from(u1));
            let words = self.remote.map(u32::to_ne_bytes).map(u32::from_be_bytes);
            let remote = words.iter().fold(0, |all, word| all << 32 | u128::from(*word));
            (IpAddr::V6(ue), IpAddr::V6(Ipv6Addr::from_bits(remote)))
        } else {
            (Ipv4Addr::from(ue.to_ne_bytes()).into(), Ipv4Addr::from(remote.to_ne_bytes()).into())
        };
        let (source, destination) = if self.rest & TUNNEL != 0 { (ue, remote) } else { (remote, ue) };
        let [protocol, _, qfi, _] = self.rest.to_be_bytes();
        Tuple {
            source,
            destination,
            ports: IpProtocol(protocol).has_ports().then_some(((self.ports >> 16) as u16, self.ports as u16)),
            protocol: IpProtocol(protocol),
            qfi: (qfi != NO_QFI).then(|| Qfi::from_wire(qfi)),
        }
    }
}

/// Who speaks to whom, as the packet travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuple {
    /// Where packets come from.
    pub source: IpAddr,
    /// Where they go.
    pub destination: IpAddr,
    /// Source and destination port, of protocols that have them.
    pub ports: Option<(u16, u16)>,
    /// What they carry.
    pub protocol: IpProtocol,
    /// The QFI that they come with.
    pub qfi: Option<Qfi>,
}

const fn halves([a, b, c, d, e, f, g, h]: [u32; 8]) -> ([u32; 4], [u32; 4]) {
    ([a, b, c, d], [e, f, g, h])
}

impl FlowKey for Key {
    #[inline(always)]
    fn hash(&self, seed: u64) -> u64 {
        let word = |low: u32, high: u32| low as u64 | (high as u64) << 32;
        let [r0, r1, r2, r3] = self.remote;
        let [u0, u1] = self.ue;
        // Two multiplications side by side, both of whose factors nobody knows, and one that brings them together.
        let remote = mix(word(r0, r1) ^ seed, word(r2, r3) ^ seed.rotate_left(23) ^ SALT);
        let local = mix(
            word(u0, u1) ^ seed.rotate_left(41),
            word(self.ports, self.place) ^ seed ^ SALT.rotate_left(29),
        );
        mix(remote ^ self.rest as u64 ^ SALT, local ^ seed.rotate_left(11))
    }
}

/// Without structure: the fraction of the square root of 2.
const SALT: u64 = 0x6a09_e667_f3bc_c908;

/// A packet on its way to its rule's record.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// Its flow.
    pub key: Key,
    /// How far the look-up is.
    pub probe: FlowProbe,
    /// Number of the rule's record, or [`NO_RULE`].
    pub rule: u32,
}

impl Lookup {
    /// The flow is known, and so is its rule.
    #[inline(always)]
    pub const fn is_settled(&self) -> bool {
        self.rule < QUESTION
    }

    /// The flow isn't known.
    #[inline(always)]
    pub const fn is_stranger(&self) -> bool {
        self.rule == NO_RULE
    }

    /// The flow is known, and its rule is under question: there is a handle.
    #[inline(always)]
    pub const fn is_under_question(&self) -> bool {
        !self.is_settled() && !self.is_stranger()
    }
}

/// The flow isn't found yet, or isn't known.
pub const NO_RULE: u32 = u32::MAX;
/// From here on, numbers in place of a rule's are handles (see [`crate::state::conversation`]): no shard has so many rules.
pub const QUESTION: u32 = 1 << 31;

const _: () = assert!(size_of::<Option<Lookup>>() == 64, "a look-up is one cache line");

/// What is known of a flow, in 28 octets: with its key it fills a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Number of its rule's record in the shard; or, while there is a question, a handle (see [`crate::state::conversation`]).
    pub rule: u32,
    /// The classification that found it.
    pub version: u32,
    /// Packets forwarded since `first`.
    packets: u32,
    /// One number, lower word first so that the line has no gap: the bytes of these packets (the UE's own), [`TOLD_BYTES`],
    /// [`TOLD_PACKETS`], the seconds without a packet after which the flow is forgotten (15 bits), and [`INSPECTED`].
    sums: [u32; 2],
    /// When the first of them passed, see [`coarse`].
    first: u32,
    /// When the last of them passed.
    last: u32,
}

/// Bits of [`Flow::sums`] that count bytes: 70 TB.
const BYTES: u64 = (1 << 46) - 1;
/// The flow counts on a conversation, see [`crate::state::conversation`].
const INSPECTED: u64 = 1 << 63;
/// The flow was told to have reached its watermark in bytes.
const TOLD_BYTES: u64 = 1 << 46;
/// The same in packets.
const TOLD_PACKETS: u64 = 1 << 47;
const IDLE_SHIFT: u32 = 48;

/// Counts at which a flow is told of, once each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// Bytes, at most [`Marks::NONE`]'s.
    pub bytes: u64,
    /// Packets, likewise.
    pub packets: u32,
}

impl Marks {
    /// The counts at which a flow's counters are full. It is told as ended then, and begins anew: half of what fits, so that
    /// nothing is lost before somebody looks.
    pub const NONE: Self = Self { bytes: 1 << 45, packets: 1 << 31 };
}

impl Default for Marks {
    fn default() -> Self {
        Self::NONE
    }
}

/// Which of its marks a flow has reached, and was not told of before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The watermark in bytes.
    pub bytes: bool,
    /// The watermark in packets.
    pub packets: bool,
    /// The end of what can be counted.
    pub full: bool,
}

impl Flow {
    /// A flow whose first packet passes now. `idle`: at most [`Flow::LONGEST_IDLE`].
    pub fn new(rule: u32, version: u32, idle: u16, now: Nanos) -> Self {
        let sums = u64::from(idle.min(Self::LONGEST_IDLE)) << IDLE_SHIFT;
        let now = coarse(now);
        Self { rule, version, packets: 0, sums: words(sums), first: now, last: now }
    }

    /// Seconds without a packet after which a flow is forgotten, at most.
    pub const LONGEST_IDLE: u16 = 0x7fff;

    /// Whether it counts on a conversation.
    pub const fn is_inspected(&self) -> bool {
        self.sums() & INSPECTED != 0
    }

    /// It counts on a conversation from now on, or does no longer.
    pub const fn set_inspected(&mut self, is_inspected: bool) {
        let others = self.sums() & !INSPECTED;
        self.sums = words(if is_inspected { others | INSPECTED } else { others });
    }

    /// One more packet.
    #[inline(always)]
    pub const fn count(&mut self, bytes: u16, now: Nanos) {
        self.packets = self.packets.wrapping_add(1);
        self.sums = words(self.sums() + bytes as u64);
        self.last = coarse(now);
    }

    /// More packets, forwarded by a device: at most [`Flow::MORE`] at a time, and then the flow's marks are looked at.
    pub const fn count_more(&mut self, packets: u32, bytes: u64, now: Nanos) {
        self.packets = self.packets.wrapping_add(packets);
        let most = packets as u64 * u16::MAX as u64;
        self.sums = words(self.sums() + if bytes < most { bytes } else { most });
        self.last = coarse(now);
    }

    /// See [`Flow::count_more`]: what always fits between the marks' limits and the counters'.
    pub const MORE: u32 = 1 << 28;

    /// Whether it has reached a mark that it was not told of.
    #[inline(always)]
    pub const fn is_due(&self, marks: &Marks) -> bool {
        let sums = self.sums();
        let bytes = if sums & TOLD_BYTES == 0 { marks.bytes } else { Marks::NONE.bytes };
        let packets = if sums & TOLD_PACKETS == 0 { marks.packets } else { Marks::NONE.packets };
        sums & BYTES >= bytes || self.packets >= packets
    }

    /// Which marks it has reached; they are told now.
    pub const fn reach(&mut self, marks: &Marks) -> Reached {
        let sums = self.sums();
        let full = self.bytes() >= Marks::NONE.bytes || self.packets >= Marks::NONE.packets;
        let bytes = sums & TOLD_BYTES == 0 && marks.bytes < Marks::NONE.bytes && self.bytes() >= marks.bytes;
        let packets =
            sums & TOLD_PACKETS == 0 && marks.packets < Marks::NONE.packets && self.packets >= marks.packets;
        let told = if bytes { TOLD_BYTES } else { 0 } | if packets { TOLD_PACKETS } else { 0 };
        self.sums = words(sums | told);
        Reached { bytes, packets, full }
    }

    /// Counts from zero again.
    pub const fn begin_anew(&mut self, now: Nanos) {
        self.packets = 0;
        self.sums = words(self.sums() & !BYTES);
        self.first = coarse(now);
    }

    /// Packets forwarded.
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes of the packets forwarded.
    #[inline(always)]
    pub const fn bytes(&self) -> u64 {
        self.sums() & BYTES
    }

    /// Packets forwarded, and their bytes.
    pub const fn carried(&self) -> Traffic {
        Traffic { packets: self.packets as u64, bytes: self.bytes() }
    }

    /// When the first packet passed, and the last one.
    pub const fn times(&self) -> (Nanos, Nanos) {
        (from_coarse(self.first), from_coarse(self.last))
    }

    #[inline(always)]
    const fn sums(&self) -> u64 {
        let [low, high] = self.sums;
        low as u64 | (high as u64) << 32
    }
}

#[inline(always)]
const fn words(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

impl FlowValue for Flow {
    fn deadline(&self) -> Nanos {
        from_coarse(self.last + 1).plus(((self.sums() & !INSPECTED) >> IDLE_SHIFT) * Nanos::SECOND)
    }
}

const _: () = assert!(size_of::<Key>() + size_of::<Flow>() == 64, "a flow is one cache line");

/// Whether the session needs records for single rules: some packets can't be served by one record for a whole direction.
pub fn needs_rule_records(rules: &Rules) -> bool {
    let indexed = || rules.pdrs.iter().enumerate().map(|(index, pdr)| (index as u16, pdr));
    rules.slice.is_some()
        || indexed().any(|(index, pdr)| {
            let uplink = pdr.source.is_uplink();
            let qers = || limited_qers(rules, index, uplink);
            let shares = |other: &Pdr| qers().any(|qer| other.qers.contains(&qer));
            !pdr.filters.is_empty() && !only_link_local(pdr)
                || pdr.application.is_some()
                || pdr.qfis.len() > 1
                || qers().nth(1).is_some()
                || qers().any(|qer| guarantees(rules, qer, uplink))
                || indexed().any(|(i, other)| {
                    i != index
                        && other.source.is_uplink() == uplink
                        && !only_link_local(other)
                        && shares(other)
                })
        })
}

/// Whether all that filters look at is in a flow's key.
pub fn has_flows(rules: &Rules) -> bool {
    filters(rules).all(|filter| filter.spi.is_none() && filter.flow_label.is_none())
}

/// The bits of the ToS octet that filters look at.
pub fn tos_mask(rules: &Rules) -> u8 {
    filters(rules).filter_map(|filter| filter.tos).fold(0, |all, (_, mask)| all | mask)
}

fn filters(rules: &Rules) -> impl Iterator<Item = &SdfFilter> {
    rules.pdrs.iter().flat_map(|pdr| &pdr.filters)
}

/// Whether packets are classified after a change as before: then the flows stay in force, whatever the rules now do. Where somebody wants to be
/// told of a rule's application who did not before, they don't: it is classification that tells.
pub fn same_classification(before: &Rules, after: &Rules) -> bool {
    let looks_at = |rules: &Rules, pdr: &Pdr| {
        let Pdr { id, source, tunnel, application, .. } = *pdr;
        (id, source, tunnel, application, rules.tells_of_application(pdr))
    };
    let same = |(a, b): (&Pdr, &Pdr)| {
        looks_at(before, a) == looks_at(after, b) && a.qfis == b.qfis && a.filters == b.filters
    };
    before.pdrs.len() == after.pdrs.len()
        && before.pdrs.iter().zip(&after.pdrs).all(same)
        && (before.ue_ipv4, before.ue_ipv6) == (after.ue_ipv4, after.ue_ipv6)
        && (&before.framed_ipv4, &before.framed_ipv6) == (&after.framed_ipv4, &after.framed_ipv6)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use packet::PacketBuilder;
    use proptest::prelude::*;

    #[test]
    fn a_key_says_who_speaks_to_whom() {
        let (ue, host) = (Ipv4Addr::new(10, 45, 0, 1), Ipv4Addr::new(8, 8, 4, 4));
        let packet = PacketBuilder::new().ipv4(ue, host).udp(4000, 53).build(b"?");
        let meta =
            Meta { kind: Kind::Tunnel, len: packet.len() as u16, inner: 0, qfi: 9, slot: 3, ..Meta::EMPTY };
        let key = Key::of(&packet, &meta, 0, 0).unwrap();
        let tuple = Tuple {
            source: ue.into(),
            destination: host.into(),
            ports: Some((4000, 53)),
            protocol: IpProtocol::UDP,
            qfi: Some(Qfi::from_wire(9)),
        };
        assert_eq!(key.tuple(0), tuple);
        // Downlink, IPv6, without ports: the UE is the destination.
        let echo = packet::icmpv4::Echo { request: true, identifier: 1, sequence: 2 };
        let (ue, host) = ("2001:db8:45:7::a:b".parse().unwrap(), "2001:db8::53".parse().unwrap());
        let packet = PacketBuilder::new().ipv6(host, ue).icmpv6_echo(echo).build(b"?");
        let prefix = 0x2001_0db8_0045_0007;
        let meta =
            Meta { kind: Kind::Plain, v6: true, key: prefix, qfi: NO_QFI, len: packet.len() as u16, ..meta };
        let key = Key::of(&packet, &meta, prefix, 0).unwrap();
        let tuple = Tuple {
            source: host.into(),
            destination: ue.into(),
            ports: None,
            protocol: IpProtocol::ICMPV6,
            qfi: None,
        };
        assert_eq!(key.tuple(prefix), tuple);
        // The same where its UE has all of a /56: what was cut off is in the key, and beside the slot.
        let prefix = 0x2001_0db8_0045_0000;
        let meta = Meta { key: prefix, ..meta };
        let key = Key::of(&packet, &meta, prefix, 0).unwrap();
        assert_eq!((key.tuple(prefix), key.place()), (tuple, (3, false)));
    }

    #[test]
    fn a_flow_whose_counters_are_full_begins_anew_before_it_loses_anything() {
        let mut flow = Flow::new(1, 2, 30, Nanos(Nanos::SECOND));
        let mut sum = 0;
        while !flow.is_due(&Marks::NONE) {
            flow.count_more(Flow::MORE, u64::from(Flow::MORE) * 60_000, Nanos(2 * Nanos::SECOND));
            sum += u64::from(Flow::MORE);
        }
        assert_eq!((u64::from(flow.packets()), flow.bytes()), (sum, sum * 60_000));
        let reached = flow.reach(&Marks::NONE);
        assert_eq!(reached, Reached { bytes: false, packets: false, full: true });
        flow.begin_anew(Nanos(3 * Nanos::SECOND));
        assert_eq!((flow.packets(), flow.bytes()), (0, 0));
        assert_eq!(
            flow.deadline(),
            from_coarse(coarse(Nanos(2 * Nanos::SECOND)) + 1).plus(30 * Nanos::SECOND)
        );
    }

    proptest! {
        /// Against plain numbers: counts are exact, each watermark is told once, at the first packet that reaches it.
        #[test]
        fn counts_and_marks_are_as_plain_numbers_say(
            packets in prop::collection::vec(20..=u16::MAX, 1..200),
            bytes in prop::option::of(1_u64..4_000_000),
            count in prop::option::of(1_u32..150),
            idle in 0..=Flow::LONGEST_IDLE,
        ) {
            let marks = Marks {
                bytes: bytes.unwrap_or(Marks::NONE.bytes),
                packets: count.unwrap_or(Marks::NONE.packets),
            };
            let mut flow = Flow::new(7, 8, idle, Nanos(0));
            let (mut sum, mut told) = (0_u64, (false, false));
            for (number, length) in (1..).zip(&packets) {
                flow.count(*length, Nanos(number * Nanos::SECOND));
                sum += u64::from(*length);
                prop_assert_eq!((flow.packets(), flow.bytes()), (number as u32, sum));
                let now = (!told.0 && bytes.is_some_and(|at| sum >= at), !told.1 && count.is_some_and(|at| number >= at.into()));
                prop_assert_eq!(flow.is_due(&marks), now.0 || now.1);
                if flow.is_due(&marks) {
                    let reached = flow.reach(&marks);
                    prop_assert_eq!((reached.bytes, reached.packets, reached.full), (now.0, now.1, false));
                    told = (told.0 || now.0, told.1 || now.1);
                }
                let last = from_coarse(coarse(Nanos(number * Nanos::SECOND)) + 1);
                prop_assert_eq!(flow.deadline(), last.plus(u64::from(idle) * Nanos::SECOND));
            }
        }
    }
}
