//! What a flow's first packet found out, for all that follow.
//!
//! A session whose rules look into the packet (filters, several QFIs, meters that rules share) is classified flow by
//! flow: the first packet takes the slow path, and what classification found is kept in the shard's flow table under
//! everything that it looked at. A flow knows its rule, and counts; what the rule does is in the rule's own
//! record, so that a FAR, QER or URR may change without touching a flow. If the rules' filters change, the session gets a
//! new version, and a flow of an older one is classified again by its next packet.

use crate::compile::only_link_local;
use crate::parse::{Kind, Meta};
use crate::police::{guarantees, limited_qers};
use crate::record::{coarse, from_coarse};
use packet::IpProtocol;
use session::rules::{Pdr, Rules, SdfFilter};
use tables::Nanos;
use tables::flow::{FlowId, FlowKey, FlowProbe, FlowValue};
use tables::hash::mix;

/// Everything that classification may look at, in 36 octets: the tunnel (or the session) with the UE's address, the other
/// end's address, protocol, ports, QFI and the ToS bits that a filter asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    /// Of the other end; an IPv4 address in the first word.
    remote: [u32; 4],
    /// Of the UE: an IPv4 address in the first word, or the lower half of an IPv6 address. The upper half is the session's.
    ue: [u32; 2],
    /// Source port above, destination port below, as the packet travels; 0 without ports.
    ports: u32,
    /// Slot of the tunnel (from a tunnel) or of the session.
    place: u32,
    /// Protocol, ToS bits, QFI, and [`TUNNEL`] and [`IPV6`]: an octet each, the protocol's uppermost. Whole words, so that a
    /// key that was just made can be read back as it is compared, in larger pieces.
    rest: u32,
}

/// From a tunnel.
const TUNNEL: u32 = 1;
/// The UE's packet is IPv6.
const IPV6: u32 = 2;

impl Key {
    /// The key of a packet whose record (with this `prefix` and mask) was found. `None`: the packet is classified by itself,
    /// because it is a fragment, has extension headers, lacks ports that it should have, or isn't of the UE's own prefix.
    #[inline(always)]
    pub fn of(frame: &[u8], meta: &Meta, prefix: u64, tos_mask: u8) -> Option<Self> {
        let packet = frame.get(meta.inner as usize..meta.inner as usize + meta.len as usize)?;
        let from_tunnel = meta.kind == Kind::Tunnel;
        let mut key = Self { place: meta.slot, ..Self::default() };
        let shape = (if from_tunnel { TUNNEL } else { 0 }) | (if meta.v6 { IPV6 } else { 0 });
        let (protocol, tos, transport);
        if meta.v6 {
            if meta.key != prefix || prefix == 0 {
                return None;
            }
            let (header, rest) = packet.split_first_chunk::<40>()?;
            let [v0, v1, _, _, _, _, next, _, addresses @ ..] = *header;
            let (words, _) = addresses.as_chunks::<4>();
            let words = words.first_chunk::<8>()?.map(u32::from_ne_bytes);
            let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = halves(words);
            (key.remote, key.ue) =
                if from_tunnel { ([d0, d1, d2, d3], [s2, s3]) } else { ([s0, s1, s2, s3], [d2, d3]) };
            (protocol, tos, transport) = (next, v0 << 4 | v1 >> 4, rest);
            if !(IpProtocol(next).has_ports() || IpProtocol(next) == IpProtocol::ICMPV6) {
                return None;
            }
        } else {
            let [v, octet, _, _, _, _, f0, f1, _, next, _, _, addresses @ ..] =
                *packet.first_chunk::<20>()?;
            // A fragment, or the first of several.
            if u16::from_be_bytes([f0, f1]) & 0x3fff != 0 {
                return None;
            }
            let [a0, a1, a2, a3, b0, b1, b2, b3] = addresses;
            let (source, destination) =
                (u32::from_ne_bytes([a0, a1, a2, a3]), u32::from_ne_bytes([b0, b1, b2, b3]));
            let (ue, remote) = if from_tunnel { (source, destination) } else { (destination, source) };
            (key.remote, key.ue) = ([remote, 0, 0, 0], [ue, 0]);
            (protocol, tos, transport) = (next, octet, packet.get((v & 15) as usize * 4..)?);
        }
        key.rest = (protocol as u32) << 24 | ((tos & tos_mask) as u32) << 16 | (meta.qfi as u32) << 8 | shape;
        if IpProtocol(protocol).has_ports() {
            key.ports = u32::from_be_bytes(*transport.first_chunk::<4>()?);
        }
        Some(key)
    }

    /// Where the flow's record is: a slot, and whether it is a tunnel's (or else a session's).
    pub const fn place(&self) -> (u32, bool) {
        (self.place, self.rest & TUNNEL != 0)
    }
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
    /// The flow's hash.
    pub probe: FlowProbe,
    /// Where the flow may be.
    pub found: Option<FlowId>,
    /// Number of the rule's record, or [`NO_RULE`].
    pub rule: u32,
}

/// The flow isn't found yet, or isn't known.
pub const NO_RULE: u32 = u32::MAX;

/// What is known of a flow, in 28 octets: with its key it fills a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Number of its rule's record in the shard.
    pub rule: u32,
    /// The classification that found it.
    pub version: u32,
    /// Packets forwarded.
    pub packets: u32,
    /// Their bytes, of the UE's own packets; lower word first, so that the line has no gap.
    bytes: [u32; 2],
    /// When the last of them passed, see [`coarse`].
    last: u32,
    /// Seconds without a packet after which it is forgotten.
    idle: u16,
}

impl Flow {
    /// A flow whose first packet passes now.
    pub fn new(rule: u32, version: u32, idle: u16, now: Nanos) -> Self {
        Self { rule, version, idle, last: coarse(now), ..Self::default() }
    }

    /// One more packet.
    #[inline(always)]
    pub const fn count(&mut self, bytes: u16, now: Nanos) {
        self.packets = self.packets.wrapping_add(1);
        let sum = self.bytes() + bytes as u64;
        self.bytes = [sum as u32, (sum >> 32) as u32];
        self.last = coarse(now);
    }

    /// More packets, forwarded by a device.
    pub const fn count_more(&mut self, packets: u64, bytes: u64, now: Nanos) {
        self.packets = self.packets.wrapping_add(packets as u32);
        let sum = self.bytes() + bytes;
        self.bytes = [sum as u32, (sum >> 32) as u32];
        self.last = coarse(now);
    }

    /// Bytes of the packets forwarded.
    #[inline(always)]
    pub const fn bytes(&self) -> u64 {
        let [low, high] = self.bytes;
        low as u64 | (high as u64) << 32
    }
}

impl FlowValue for Flow {
    fn deadline(&self) -> Nanos {
        from_coarse(self.last + 1).plus(self.idle as u64 * Nanos::SECOND)
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

/// Whether packets are classified after a change as before: then the flows stay in force, whatever the rules now do.
pub fn same_classification(before: &Rules, after: &Rules) -> bool {
    let looks_at = |pdr: &Pdr| {
        let Pdr { id, source, tunnel, .. } = *pdr;
        (id, source, tunnel)
    };
    let same =
        |(a, b): (&Pdr, &Pdr)| looks_at(a) == looks_at(b) && a.qfis == b.qfis && a.filters == b.filters;
    before.pdrs.len() == after.pdrs.len()
        && before.pdrs.iter().zip(&after.pdrs).all(same)
        && (before.ue_ipv4, before.ue_ipv6) == (after.ue_ipv4, after.ue_ipv6)
        && (&before.framed_ipv4, &before.framed_ipv6) == (&after.framed_ipv4, &after.framed_ipv6)
}
