//! One packet's copies: which mirrors take it, and the headers in front.

use super::tap::{Tap, TapWay};
use super::{Captured, NETWORK_MAC, Taps, Target, UE_MAC};
use crate::datapath::Datapath;
use crate::meta::Meta;
use crate::network::egress::Egress;
use crate::network::{Context, transmit};
use crate::stages::classify::selects;
use crate::stages::serve::{self, Encapsulation};
use crate::state::flow::Lookup;
use io::{Frame, FramePool};
use packet::erspan::{self, Direction, Erspan, Granularity};
use packet::ipv4::{self, Ipv4Header};
use packet::ipv6::{self, Ipv6Header};
use packet::{EtherType, IpPacket, IpProtocol, ethernet, gre};
use std::net::IpAddr;

/// Octets of an Ethernet header without tag.
const ETHERNET: usize = ethernet::HEADER_LEN;

/// A packet to be copied: the UE's, from its IP header on.
#[derive(Clone, Copy)]
struct Packet<'a> {
    bytes: &'a [u8],
    v6: bool,
    uplink: bool,
    /// Its own, and its flow, if that was looked for.
    meta: &'a Meta,
    lookup: Option<&'a Lookup>,
}

/// Why there is no copy.
enum Lost {
    NoBuffer,
    NoRoute,
    Backlog,
}

impl<F: Frame> Datapath<F> {
    /// Copies a packet that is about to leave to its session's mirrors.
    #[cold]
    #[inline(never)]
    pub(crate) fn mirror<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        (meta, lookup): (&Meta, Option<&Lookup>),
        uplink: bool,
        bytes: &[u8],
    ) {
        // Sending takes all of the worker but this.
        let mut taps = std::mem::take(&mut self.taps);
        let session = self
            .session_slot(meta)
            .and_then(|(shard, slot)| self.shards.get(shard as usize)?.as_deref()?.session(slot));
        taps.choose(session.map_or(&[], |session| session.mirrors.as_slice()));
        let v6 = bytes.first().is_some_and(|first| first >> 4 == 6);
        let packet = Packet { bytes, v6, uplink, meta, lookup };
        // Copies have identifications of their own: users' packets are the same with and without mirrors.
        std::mem::swap(&mut self.identification, &mut taps.identification);
        self.copy_to(cx, &mut taps, packet);
        std::mem::swap(&mut self.identification, &mut taps.identification);
        self.taps = taps;
    }

    fn copy_to<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        taps: &mut Taps,
        packet: Packet<'_>,
    ) {
        let chosen = std::mem::take(&mut taps.chosen);
        // Read only if a filter asks for it; `Some(None)`: it can't be read.
        let mut parsed: Option<Option<IpPacket>> = None;
        let mut lineage = None;
        for number in &chosen {
            let Some(tap) = taps.get_mut(*number) else { continue };
            let filters = if packet.uplink { &tap.mirror.uplink } else { &tap.mirror.downlink };
            let Some(filters) = filters else { continue };
            if !filters.is_empty() {
                let ip = parsed.get_or_insert_with(|| IpPacket::parse(packet.bytes).ok());
                if !ip.is_some_and(|ip| selects(filters, &ip, packet.bytes)) {
                    continue;
                }
            }
            if !tap.mirror.applications.is_empty() {
                let known = lineage.get_or_insert_with(|| self.lineage_of(packet.meta, packet.lookup));
                if !known.is_some_and(|known| tap.mirror.applications.iter().any(|it| known.has(*it))) {
                    continue;
                }
            }
            let skipped = tap.skip > 0;
            tap.skip = if skipped { tap.skip - 1 } else { tap.mirror.sample.saturating_sub(1) };
            let done = if skipped { None } else { Some(self.copy(cx, tap, packet)) };
            let Some(counters) = self.counters.mirrors.get_mut(*number as usize) else { continue };
            match done {
                None => counters.sampled_out += 1,
                Some(Ok(octets)) => {
                    counters.copied.add(octets);
                    counters.truncated += u64::from(octets < packet.bytes.len());
                }
                Some(Err(Lost::NoBuffer)) => counters.no_buffer += 1,
                Some(Err(Lost::NoRoute)) => counters.no_route += 1,
                Some(Err(Lost::Backlog)) => counters.backlog += 1,
            }
        }
        taps.chosen = chosen;
    }

    /// Makes one copy and sends it; says how much of the packet is in it.
    fn copy<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        tap: &mut Tap,
        packet: Packet<'_>,
    ) -> Result<usize, Lost> {
        let wanted = packet.bytes.get(..tap.mirror.truncate as usize).unwrap_or(packet.bytes);
        let peer = match &mut tap.way {
            TapWay::Port(egress) => return self.copy_to_port(cx, egress, packet, wanted),
            TapWay::Capture(sender) => {
                let length = packet.bytes.len() as u16;
                let copy = Captured { time: cx.now, uplink: packet.uplink, length, octets: wanted };
                return if sender.send(copy) { Ok(wanted.len()) } else { Err(Lost::Backlog) };
            }
            TapWay::Nowhere => return Err(Lost::Backlog),
            TapWay::Peer(peer) => *peer,
        };
        let far_end = self.network.peers.get(peer).ok_or(Lost::NoRoute)?;
        let (egress, outer) = (far_end.egress.ok_or(Lost::NoRoute)?, far_end.outer);
        let addresses = (outer.source(), far_end.address);
        if let Target::Gtpu { teid, .. } = tap.mirror.target {
            let way = Encapsulation { peer, teid: teid.0, tos: 0, container: None, paging_policy: None };
            let octets = cut(wanted, serve::room(&egress, &outer, &way).into())?;
            let frame = compose(cx, 0, octets)?;
            self.counters.originated += 1;
            self.encapsulate(cx, &way, frame, 0, octets.len() as u16);
            return Ok(octets.len());
        }
        // IP, GRE, and what the target has behind that.
        let (own, key) = match tap.mirror.target {
            Target::Erspan { .. } => (gre::header_len(None, Some(0)) + erspan::HEADER_LEN + ETHERNET, None),
            Target::Gre { key, .. } => (gre::header_len(key, None), key),
            Target::Gtpu { .. } | Target::Port { .. } | Target::Capture => return Err(Lost::NoRoute),
        };
        let v6 = far_end.address.is_ipv6();
        let ip = if v6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN };
        let octets = cut(wanted, (egress.mtu as usize).saturating_sub(ip + own))?;
        let mut frame = compose(cx, egress.l2 as usize + ip + own, octets)?;
        self.counters.originated += 1;
        egress.write(frame.bytes_mut(), v6);
        self.identification = self.identification.wrapping_add(1);
        let packet_out = frame.bytes_mut().get_mut(egress.l2 as usize..).unwrap_or_default();
        if let Some(behind) = write_ip(packet_out, addresses, own + octets.len(), self.identification) {
            if let Target::Erspan { session, .. } = tap.mirror.target {
                let header = Erspan {
                    session,
                    truncated: octets.len() < packet.bytes.len(),
                    direction: if packet.uplink { Direction::Ingress } else { Direction::Egress },
                    granularity: Granularity::Nanos100,
                    timestamp: (cx.now.0 / 100) as u32,
                };
                write_erspan(behind, tap.sequence, &header, packet);
                tap.sequence = tap.sequence.wrapping_add(1);
            } else {
                gre::emit_header(behind, ether_type(packet.v6), key, None);
            }
        }
        self.network.send(cx, &mut self.counters, &egress, frame);
        Ok(octets.len())
    }

    fn copy_to_port<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        egress: &Egress,
        packet: Packet<'_>,
        wanted: &[u8],
    ) -> Result<usize, Lost> {
        if cx.out.transmit.len() <= egress.port as usize {
            return Err(Lost::NoRoute);
        }
        let octets = cut(wanted, egress.mtu.into())?;
        let mut frame = compose(cx, egress.l2.into(), octets)?;
        egress.write(frame.bytes_mut(), packet.v6);
        self.counters.originated += 1;
        transmit(cx.out, &mut self.counters, egress.interface, egress.port, frame);
        Ok(octets.len())
    }
}

/// As much of it as there is room for.
fn cut(octets: &[u8], room: usize) -> Result<&[u8], Lost> {
    match room {
        0 => Err(Lost::NoRoute),
        room => Ok(octets.get(..room).unwrap_or(octets)),
    }
}

/// A new frame with `octets` behind `front` octets that are still to be written.
fn compose<F: Frame, P: FramePool<Frame = F>>(
    cx: &mut Context<'_, F, P>,
    front: usize,
    octets: &[u8],
) -> Result<F, Lost> {
    let mut frame = cx.pool.alloc().ok_or(Lost::NoBuffer)?;
    if !frame.append(front + octets.len()) {
        return Err(Lost::NoBuffer);
    }
    if let Some(place) = frame.bytes_mut().get_mut(front..) {
        place.copy_from_slice(octets);
    }
    Ok(frame)
}

const fn ether_type(v6: bool) -> EtherType {
    if v6 { EtherType::IPV6 } else { EtherType::IPV4 }
}

/// Writes the outer IP header in front of so many octets of GRE, and returns what is behind it.
fn write_ip(
    packet: &mut [u8],
    addresses: (IpAddr, IpAddr),
    length: usize,
    identification: u16,
) -> Option<&mut [u8]> {
    match addresses {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let (header, behind) = packet.split_first_chunk_mut::<{ ipv4::HEADER_LEN }>()?;
            // DF clear, as for tunnels: a smaller MTU further on must not lose copies silently.
            let fields = Ipv4Header {
                source,
                destination,
                protocol: IpProtocol::GRE,
                identification,
                ..Ipv4Header::default()
            };
            ipv4::emit_header(header, &fields, length);
            Some(behind)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let (header, behind) = packet.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>()?;
            let fields =
                Ipv6Header { source, destination, next_header: IpProtocol::GRE, ..Ipv6Header::default() };
            ipv6::emit_header(header, &fields, length);
            Some(behind)
        }
        _ => None,
    }
}

/// GRE with a sequence number, ERSPAN, and the Ethernet header of the mirrored frame.
fn write_erspan(behind: &mut [u8], sequence: u32, header: &Erspan, packet: Packet<'_>) {
    let gre = gre::header_len(None, Some(sequence));
    gre::emit_header(behind, EtherType::ERSPAN_III, None, Some(sequence));
    let Some((place, behind)) = behind.get_mut(gre..).and_then(|rest| rest.split_first_chunk_mut()) else {
        return;
    };
    erspan::emit_header(place, header);
    let (destination, source) = if packet.uplink { (NETWORK_MAC, UE_MAC) } else { (UE_MAC, NETWORK_MAC) };
    if let Some(place) = behind.first_chunk_mut::<ETHERNET>() {
        ethernet::emit_header(place, destination, source, ether_type(packet.v6));
    }
}
