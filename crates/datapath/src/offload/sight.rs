//! Which flow is this packet's? Asked of one packet in many, so that the heavy flows are those that are met often.

use crate::datapath::Datapath;
use crate::meta::{Kind, Meta, NO_QFI, inner_destination, inner_source};
use crate::stages::ecn::Ecn;
use crate::stages::parse::Arrival;
use crate::stages::serve::admits;
use crate::state::flow::Key;
use crate::state::record::{Record, flag};
use io::Frame;
use io::offload::{Container, Pattern, TunnelMatch};
use packet::IpProtocol;
use std::net::IpAddr;

/// A flow, as far as a device has to tell it from others, and where its record is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    /// Which packets.
    pub pattern: Pattern,
    /// The interface that they arrive at.
    pub interface: u16,
    /// Its port.
    pub port: u16,
    /// The session's shard.
    pub shard: u16,
    /// Slot of the tunnel's record, or of the session's.
    pub slot: u32,
    /// In the shard's flow table, if the session is classified flow by flow.
    pub key: Option<Key>,
    /// Length of the user's packet that was seen.
    pub len: u16,
}

/// What identifies a flow to a device: the port that it arrives at, and its pattern.
pub(crate) type FlowName = (u16, Pattern);

/// A packet's congestion marks, in its ToS octet or traffic class.
const ECN: u8 = 3;

impl Sighting {
    pub const fn name(&self) -> FlowName {
        (self.port, self.pattern)
    }
}

impl<F: Frame> Datapath<F> {
    /// The flow that a packet belongs to, if its record serves it. `handed_off`: it came from another worker.
    pub(crate) fn sight(&self, port: u16, frame: &[u8], handed_off: bool) -> Option<Sighting> {
        let mut meta = Arrival::at(&self.network, port).handed_off(handed_off).parse(frame);
        if meta.internal || !matches!(meta.kind, Kind::Tunnel | Kind::Plain) {
            return None;
        }
        // Devices copy no congestion marks between headers: packets that may carry any stay here.
        Ecn::of(&meta).filter(|ecn| ecn.field() == 0)?;
        self.locate_one(&mut meta, frame)?;
        let shard = self.shards.get(meta.shard as usize)?.as_deref()?;
        let record = shard.record(&meta)?;
        let key = if record.has(flag::FLOWS) {
            Some(Key::of(frame, &meta, record.ue_prefix, record.tos_mask())?)
        } else {
            admits(record, &meta, frame).then_some(None)?
        };
        let interface = self.network.fib.interface(meta.interface)?;
        let pattern = Pattern { vlan: interface.vlan, ..Pattern::new(interface.mac) };
        let pattern = name(pattern, record, &meta, frame)?;
        let (interface, port) = (meta.interface, interface.port);
        Some(Sighting { pattern, interface, port, shard: meta.shard, slot: meta.slot, key, len: meta.len })
    }
}

/// The pattern of the packet's flow. Where one record serves all packets to an address, they are one flow. `None`: a
/// device can't tell it from others.
fn name(pattern: Pattern, record: &Record, meta: &Meta, frame: &[u8]) -> Option<Pattern> {
    let pattern = Pattern { v6: meta.v6, destination: Some(inner_destination(frame, meta)), ..pattern };
    if meta.kind == Kind::Plain && !record.has(flag::FLOWS) {
        return Some(Pattern { tos: Some((0, ECN)), ..pattern });
    }
    let packet = frame.get(meta.inner as usize..meta.inner as usize + meta.len as usize)?;
    let (protocol, tos, transport) = if meta.v6 {
        let [v0, v1, _, _, _, _, next, ..] = *packet.first_chunk::<40>()?;
        (next, v0 << 4 | v1 >> 4, packet.get(40..)?)
    } else {
        let [_, tos, _, _, _, _, f0, f1, _, protocol, ..] = *packet.first_chunk::<20>()?;
        let fragment = u16::from_be_bytes([f0, f1]) & 0x3fff;
        (fragment == 0).then_some(())?;
        (protocol, tos, packet.get(20..)?)
    };
    let ports = match IpProtocol(protocol) {
        IpProtocol::TCP | IpProtocol::UDP => {
            let [s0, s1, d0, d1] = *transport.first_chunk::<4>()?;
            Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])))
        }
        IpProtocol::ICMPV4 if !meta.v6 => None,
        IpProtocol::ICMPV6 if meta.v6 => None,
        _ => return None,
    };
    let mask = ECN | if record.has(flag::FLOWS) { record.tos_mask() } else { 0 };
    let tunnel = match meta.kind {
        Kind::Tunnel => Some(TunnelMatch {
            destination: outer_destination(frame, meta)?,
            teid: meta.teid,
            container: container(frame, meta)?,
        }),
        _ => None,
    };
    Some(Pattern {
        tunnel,
        source: Some(inner_source(frame, meta)),
        protocol: Some(protocol),
        ports,
        tos: Some((tos & mask, mask)),
        ..pattern
    })
}

fn outer_destination(frame: &[u8], meta: &Meta) -> Option<IpAddr> {
    let packet = frame.get(meta.l3 as usize..)?;
    if packet.first()? >> 4 == 6 {
        packet.get(24..)?.first_chunk::<16>().map(|octets| IpAddr::from(*octets))
    } else {
        packet.get(16..)?.first_chunk::<4>().map(|octets| IpAddr::from(*octets))
    }
}

/// The container, if the GTP-U header has a length that a device can know beforehand.
fn container(frame: &[u8], meta: &Meta) -> Option<Container> {
    let outer = if frame.get(meta.l3 as usize)? >> 4 == 6 { 40 } else { 20 };
    match (meta.inner.checked_sub(meta.l3 + outer + 8)?, meta.qfi) {
        (8, NO_QFI) => Some(Container::Absent),
        (16, qfi) if qfi != NO_QFI => Some(Container::Qfi(qfi)),
        _ => None,
    }
}
