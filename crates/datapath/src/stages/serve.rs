//! The packet whose record says everything: check, route, enforce, transform, send.
//!
//! Everything here happens within a record's cache line, the packet's first two, and tables small enough to stay in
//! cache. Whatever a record can't decide goes to [`crate::stages::judge`], which decides by the session's rules.

use crate::Reason;
use crate::counters::Traffic;
use crate::datapath::Datapath;
use crate::meta::{Kind, Meta, NO_QFI, destination6, inner_destination, inner_source, packet_of};
use crate::nat::{self, Choice};
use crate::network::egress::{Egress, Link};
use crate::network::fib::{Fib, HopId};
use crate::network::near;
use crate::network::peer::Outer;
use crate::network::{Context, Network, Way, transmit};
use crate::stages::burst::Burst;
use crate::stages::ecn::Ecn;
use crate::stages::parse::internal_header;
use crate::state::export::Ledger;
use crate::state::flow::Lookup;
use crate::state::police::{Policers, enforce};
use crate::state::record::{Record, flag};
use crate::state::rules::may_stay_on_link;
use io::{Frame, FramePool};
use packet::IpProtocol;
use packet::checksum::{self, Sum};
use std::net::{IpAddr, Ipv6Addr};
use tables::Nanos;

/// How a packet leaves in a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encapsulation {
    /// Index of the far end.
    pub peer: u16,
    /// The far end's TEID.
    pub teid: u32,
    /// ToS octet of the outer header.
    pub tos: u8,
    /// The PDU session container's octets, if there is one.
    pub container: Option<[u8; 2]>,
    /// Paging policy indicator, which makes the container longer.
    pub paging_policy: Option<u8>,
}

impl Encapsulation {
    /// Octets of the container extension header with the optional word before it.
    const fn extra(&self) -> usize {
        match (self.container, self.paging_policy) {
            (None, _) => 0,
            (Some(_), None) => 8,
            (Some(_), Some(_)) => 12,
        }
    }

    /// Octets in front of the UE's packet, layer 2 included.
    #[inline(always)]
    const fn front(&self, egress: &Egress, outer: &Outer) -> u8 {
        egress.l2 + (outer.len() + self.extra()) as u8
    }

    /// Puts the packet of `length` octets at `inner` into the tunnel. False, and nothing done: the frame has no room.
    #[inline(always)]
    fn wrap<F: Frame>(
        &self,
        frame: &mut F,
        egress: &Egress,
        outer: &Outer,
        inner: u16,
        length: u16,
        identification: u16,
    ) -> bool {
        if !strip(frame, inner, length, self.front(egress, outer)) {
            return false;
        }
        let bytes = frame.bytes_mut();
        egress.write(bytes, matches!(outer, Outer::V6 { .. }));
        if let Some((_, packet)) = bytes.split_at_mut_checked(egress.l2 as usize) {
            write_outer(packet, outer, self, length, identification);
        }
        true
    }

    /// The headers that go in front of every such packet, with the lengths of an empty one: a device fills in its own.
    pub(crate) fn headers(&self, egress: &Egress, outer: &Outer) -> Vec<u8> {
        let mut headers = vec![0; self.front(egress, outer) as usize];
        egress.write(&mut headers, matches!(outer, Outer::V6 { .. }));
        if let Some((_, packet)) = headers.split_at_mut_checked(egress.l2 as usize) {
            write_outer(packet, outer, self, 0, 0);
        }
        headers
    }

    /// The QFI that the packet leaves with, or [`NO_QFI`].
    #[inline(always)]
    pub const fn qfi(&self) -> u8 {
        match self.container {
            Some([_, octet]) => octet & 0x3f,
            None => NO_QFI,
        }
    }

    /// What a record says of the packet, which came with QFI `carried`.
    #[inline(always)]
    pub(crate) fn of(record: &Record, meta: &Meta, carried: u8) -> Self {
        Self {
            peer: record.peer,
            teid: record.remote_teid,
            tos: record.tos,
            container: container(record.flags, record.qfi, meta, carried),
            paging_policy: None,
        }
    }
}

/// The container that a packet leaves with: the rule's QFI, or else the one that it came with (TS 38.415 §5.5.2).
#[inline(always)]
pub(crate) const fn container(flags: u32, qfi: u8, meta: &Meta, carried: u8) -> Option<[u8; 2]> {
    if flags & flag::CONTAINER == 0 {
        return None;
    }
    let [_, octet] = meta.container;
    let (qfi, reflective) = if flags & flag::MARK != 0 {
        (qfi, flags & flag::REFLECTIVE != 0)
    } else if carried == NO_QFI {
        return None;
    } else {
        (carried, flags & flag::TO_ACCESS != 0 && octet & 0x40 != 0)
    };
    if flags & flag::TO_ACCESS != 0 { Some([0x00, qfi | (reflective as u8) << 6]) } else { Some([0x10, qfi]) }
}

/// Where a packet goes that leaves without a tunnel.
pub(crate) enum Routed {
    /// To another UE.
    Ue,
    /// Through this neighbour.
    Out(Egress),
}

impl<F: Frame> Datapath<F> {
    /// Serves a burst's packets by their records, from the first to one that has to be asked about, and sends them. They
    /// are made ready where they are: a burst of which all leave through one port isn't moved, but exchanged for
    /// the port's empty list.
    pub(crate) fn serve_first<P>(&mut self, cx: &mut Context<'_, F, P>, burst: &mut Burst<F>) -> usize {
        let Burst { frames, metas, lookups, links, .. } = burst;
        // As long as nobody's rules have records of their own, nobody pays for looking.
        let sent = if lookups.is_empty() {
            self.serve_all::<false>(cx.now, metas.iter().map(|meta| (meta, None)), frames, links)
        } else {
            let looked_up = lookups.iter().map(Option::as_ref);
            self.serve_all::<true>(cx.now, metas.iter().zip(looked_up), frames, links)
        };
        let counters = &mut self.counters;
        let Some((first, others)) = links.split_first() else { return 0 };
        match cx.out.transmit.get_mut(first.port as usize) {
            Some(queue) if others.iter().all(|link| link == first) => {
                if queue.is_empty() && links.len() == frames.len() {
                    std::mem::swap(queue, frames);
                } else {
                    queue.extend(frames.drain(..links.len()));
                }
                counters.sent(first.interface, sent);
            }
            _ => {
                for (link, frame) in links.iter().zip(frames.drain(..links.len())) {
                    transmit(cx.out, counters, link.interface, link.port, frame);
                }
            }
        }
        links.len()
    }

    fn serve_all<'a, const DIVIDED: bool>(
        &mut self,
        now: Nanos,
        metas: impl Iterator<Item = (&'a Meta, Option<&'a Lookup>)>,
        frames: &mut [F],
        links: &mut Vec<Link>,
    ) -> Traffic {
        links.clear();
        let mut sent = Traffic::default();
        for ((meta, lookup), frame) in metas.zip(frames) {
            let plain = self.taps.plain;
            let Some(link) = self.serve::<DIVIDED>(now, meta, (lookup, None), frame, plain) else { break };
            sent.add(frame.len());
            links.push(link);
        }
        sent
    }

    /// Serves one packet by its record and sends it; gives it back if it has to be asked about. `so_far`: the number of its rule's record, if its flow
    /// is under question.
    pub(crate) fn serve_one<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        lookup: Option<&Lookup>,
        mut frame: F,
        so_far: Option<u32>,
    ) -> Result<(), F> {
        let uplink = self.counters.uplink.packets;
        let flow = (lookup, so_far);
        let Some(link) = self.serve::<true>(cx.now, meta, flow, &mut frame, flag::LIVE) else {
            return Err(frame);
        };
        if self.is_mirrored(meta) {
            // The UE's packet is the frame's end; which way it went, its counter says.
            let packet = frame.bytes().get(frame.len() - meta.len as usize..).unwrap_or_default();
            self.mirror(cx, (meta, lookup), self.counters.uplink.packets != uplink, packet);
        }
        transmit(cx.out, &mut self.counters, link.interface, link.port, frame);
        Ok(())
    }

    /// Checks, enforces and transforms a packet where it is. `None`, and nothing done, if the record can't decide by itself
    /// or the way out isn't known. `DIVIDED`: sessions are looked for whose rules have records of their own. `so_far`: as above. `plain`: of these
    /// flags, the session's record must have just [`flag::LIVE`] (see [`crate::mirror`]).
    #[inline(always)]
    fn serve<const DIVIDED: bool>(
        &mut self,
        now: Nanos,
        meta: &Meta,
        (lookup, so_far): (Option<&Lookup>, Option<u32>),
        frame: &mut F,
        plain: u32,
    ) -> Option<Link> {
        let shard = self.shards.get_mut(meta.shard as usize)?.as_deref_mut()?;
        let record = match meta.kind {
            Kind::Tunnel => {
                shard.tunnels.get_mut(meta.slot as usize).filter(|record| record.teid == meta.teid)?
            }
            Kind::Plain => shard.downlink.get_mut(meta.slot as usize)?,
            _ => return None,
        };
        if record.flags & plain != flag::LIVE {
            return None;
        }
        let mut flow = None;
        let record = if record.flags & (flag::FLOWS | flag::DIRECT) == 0 {
            admits(record, meta, frame.bytes()).then_some(record)?
        } else if DIVIDED {
            // The session's record only leads to the rule's.
            let rule = if record.flags & flag::DIRECT != 0 {
                admits(record, meta, frame.bytes()).then(|| record.rule())?
            } else {
                let lookup = lookup?;
                let known = shard.flows.confirm(lookup.probe, &lookup.key)?;
                let known = (known.version == record.flow_version()).then_some(known)?;
                let known = flow.insert(known);
                so_far.unwrap_or(known.rule)
            };
            shard
                .rules
                .elements_mut()
                .get_mut(rule as usize)
                .filter(|rule| rule.flags & flag::COMPLEX == 0)?
        } else {
            return None;
        };
        let mut policers = if DIVIDED {
            Policers {
                meters: shard.meters.elements_mut(),
                markers: shard.markers.elements_mut(),
                slices: &mut self.slices,
                depth: self.config.meter_burst,
                last_word: false,
            }
        } else {
            Policers { depth: self.config.meter_burst, ..Policers::none() }
        };
        let marking = &self.config.marking;
        let Network { fib, ways, peers, neighbours, .. } = &mut self.network;
        let uplink = record.flags & flag::UPLINK != 0;
        let ecn = Ecn::of(meta)?;
        let colour;
        let egress = if record.flags & flag::OUTER != 0 {
            let mut way = Encapsulation::of(record, meta, marking.carried(meta));
            let peer = peers.get(way.peer)?;
            let egress = peer.egress.as_ref().filter(|egress| egress.resolved)?;
            // What comes from a tunnel and goes into one isn't routed here: it keeps its TTL.
            let routed = meta.kind == Kind::Plain;
            if meta.len > room(egress, &peer.outer, &way)
                || (routed && !ttl_allows(frame.bytes(), meta.inner, meta.v6))
                || !has_room(frame, meta.inner, way.front(egress, &peer.outer))
            {
                return None;
            }
            colour = enforce(record, &mut policers, meta.len, now)?;
            way.tos = marking.outer(way.tos, record.has(flag::DSCP_BY_QFI), way.qfi(), colour) | ecn.field();
            ecn.enter(frame.bytes_mut(), meta);
            if routed {
                decrement_ttl(frame.bytes_mut(), meta.inner, meta.v6);
            }
            self.identification = self.identification.wrapping_add(1);
            way.wrap(frame, egress, &peer.outer, meta.inner, meta.len, self.identification);
            egress
        } else {
            // To the data network, by the inner destination; a downlink rule without a tunnel is for the session to judge.
            if meta.kind == Kind::Plain {
                return None;
            }
            let routed = inner_route(fib, frame.bytes(), meta);
            let steered = fib.steered(record.choice().policy, routed, meta.v6);
            let HopId(hop) = steered.unwrap_or(routed);
            let egress = match ways.get(hop as usize)? {
                Way::Via(egress) => egress,
                Way::OnLink(interface) => neighbours.near(*interface, inner_key(frame.bytes(), meta))?,
                _ => return None,
            };
            if (steered.is_none() && !fib.serves(egress.interface, record.instance()))
                || meta.len > egress.mtu
                || !egress.resolved
                || !ttl_allows(frame.bytes(), meta.inner, meta.v6)
                || !has_room(frame, meta.inner, egress.l2)
            {
                return None;
            }
            // What begins a translation, or may end one, is looked at more closely.
            let outward = match &self.nat {
                Some(plan) => {
                    let packet = packet_of(frame.bytes(), meta);
                    Some(nat::peek(plan, shard.nat.as_deref()?, record.choice(), packet, meta.v6)?)
                }
                None => None,
            };
            colour = enforce(record, &mut policers, meta.len, now)?;
            ecn.enter(frame.bytes_mut(), meta);
            marking.inner(frame.bytes_mut(), meta, colour);
            decrement_ttl(frame.bytes_mut(), meta.inner, meta.v6);
            if let Some(outward) = &outward
                && let Some(state) = shard.nat.as_deref_mut()
                && let Some((_, packet)) = frame.bytes_mut().split_at_mut_checked(meta.inner as usize)
            {
                nat::leave(state, outward, packet, now);
            }
            strip(frame, meta.inner, meta.len, egress.l2);
            egress.write(frame.bytes_mut(), meta.v6);
            egress
        };
        if let Some(flow) = flow {
            flow.count(meta.len, now);
            self.counters.flows.served += 1;
            if flow.is_due(&self.export.marks)
                && let Some(lookup) = lookup
            {
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                shard.flow_due(&lookup.key, (1, meta.len.into()), &mut ledger);
            }
        }
        self.counters.forwarded(uplink, meta.len, colour);
        Some(Link { interface: egress.interface, port: egress.port })
    }

    /// A user's packet that its record didn't serve, if it has one.
    pub(crate) fn unserved<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        lookup: Option<&Lookup>,
        frame: F,
    ) {
        if let Some(place) = self.session_slot(meta) {
            self.ask(cx, meta, lookup, place, frame);
        } else if meta.kind == Kind::Tunnel {
            self.unknown_teid(cx, meta, &frame);
        } else {
            self.unknown_ue(cx, meta, frame);
        }
    }

    /// Puts the UE's packet into a tunnel and sends it. It fits the MTU.
    pub(crate) fn encapsulate<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        way: &Encapsulation,
        mut frame: F,
        inner: u16,
        length: u16,
    ) {
        let Some((egress, outer)) =
            self.network.peers.get(way.peer).and_then(|peer| Some((peer.egress.as_ref()?, &peer.outer)))
        else {
            self.counters.drop(Reason::NoRoute);
            return;
        };
        self.identification = self.identification.wrapping_add(1);
        if way.wrap(&mut frame, egress, outer, inner, length, self.identification) {
            let egress = *egress;
            self.network.send(cx, &mut self.counters, &egress, frame);
        } else {
            self.counters.drop(Reason::NoHeadroom);
        }
    }

    /// The slow side of routing: what a route that isn't a resolved router leads to, for a packet of a rule with this choice.
    pub(crate) fn route(&self, frame: &[u8], meta: &Meta, choice: Choice) -> Result<Routed, Reason> {
        let destination = inner_destination(frame, meta);
        let fib = &self.network.fib;
        let routed = fib.route(destination);
        let steered = fib.steered(choice.policy, routed, meta.v6);
        match self.network.way(steered.unwrap_or(routed)) {
            Way::Unreachable => Err(Reason::NoRoute),
            Way::Own => Err(Reason::OwnAddress),
            Way::Martian => Err(Reason::MartianDestination),
            Way::Ue => Ok(Routed::Ue),
            Way::Closed => Err(Reason::NotTowardsN6),
            Way::Via(Egress { interface, .. }) | Way::OnLink(interface)
                if steered.is_none() && !fib.serves(*interface, choice.instance) =>
            {
                Err(Reason::NotTowardsN6)
            }
            Way::Via(egress) => Ok(Routed::Out(*egress)),
            Way::OnLink(interface) => {
                let multicast = destination.is_multicast()
                    || matches!(destination, IpAddr::V6(a) if session::rules::is_link_local(a))
                    || matches!(destination, IpAddr::V4(a) if a.is_broadcast());
                if multicast {
                    return Err(Reason::IgnoredMulticast);
                }
                self.network.on_link(*interface, destination).map(Routed::Out).ok_or(Reason::NoRoute)
            }
        }
    }

    /// Whether a packet is of two UEs of which one is to have nothing to do with others.
    pub(crate) fn are_apart(&self, frame: &[u8], meta: &Meta) -> bool {
        let fib = &self.network.fib;
        fib.is_isolated(inner_source(frame, meta)) || fib.is_isolated(inner_destination(frame, meta))
    }

    /// Sends the UE's packet without a tunnel. It fits the MTU, and its TTL has been seen to.
    pub(crate) fn send_plain<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        egress: &Egress,
        mut frame: F,
        meta: &Meta,
    ) {
        if !self.network.may_ask(egress, meta.key, cx.now) {
            self.counters.drop(Reason::NeighbourPending);
            return;
        }
        if !strip(&mut frame, meta.inner, meta.len, egress.l2) {
            self.counters.drop(Reason::NoHeadroom);
            return;
        }
        egress.write(frame.bytes_mut(), meta.v6);
        self.network.neighbours.touch(egress.interface, egress.target);
        self.network.send(cx, &mut self.counters, egress, frame);
    }

    /// Drops a packet of a session, under a reason that its record's session remembers too.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&mut self, meta: &Meta, reason: Reason) {
        self.counters.drop(reason);
        if let Some(session) = self
            .session_slot(meta)
            .and_then(|(shard, slot)| self.shards.get_mut(shard as usize)?.as_deref_mut()?.session_mut(slot))
        {
            session.drop(reason);
        }
    }
}

/// Makes a frame that holds the UE's packet and nothing behind it, with `front` octets (unspecified) before it.
#[inline(always)]
pub(crate) fn strip<F: Frame>(frame: &mut F, inner: u16, length: u16, front: u8) -> bool {
    let (inner, front) = (inner as usize, front as usize);
    if front > inner {
        if !frame.prepend(front - inner) {
            return false;
        }
    } else {
        frame.trim_front(inner - front);
    }
    frame.truncate(front + length as usize);
    true
}

/// Whether [`strip`] will succeed.
#[inline(always)]
fn has_room<F: Frame>(frame: &F, inner: u16, front: u8) -> bool {
    frame.headroom() + inner as usize >= front as usize
}

/// Makes a frame internal: the UE's packet behind an Ethernet header that was never on a wire.
pub(crate) fn internalise<F: Frame>(frame: &mut F, meta: &Meta) -> bool {
    if !strip(frame, meta.inner, meta.len, 14) {
        return false;
    }
    if let Some(header) = frame.bytes_mut().first_chunk_mut::<14>() {
        *header = internal_header(meta.v6);
    }
    true
}

/// Whether the record decides over this packet by itself.
#[inline(always)]
pub(crate) fn admits(record: &Record, meta: &Meta, frame: &[u8]) -> bool {
    let flags = record.flags;
    if flags & flag::COMPLEX != 0 || (flags & flag::MATCH != 0 && record.qfi != meta.qfi) {
        return false;
    }
    if flags & flag::UPLINK != 0 {
        let own = if meta.v6 { meta.key == record.ue_prefix } else { meta.key as u32 == record.ue_ipv4 };
        if (!own || meta.key == 0) && flags & flag::ANY_SOURCE == 0 {
            return false;
        }
    }
    flags & flag::LINK_LOCAL == 0
        || !may_stay_on_link(meta, frame.get(meta.inner as usize..).unwrap_or_default())
}

/// The longest packet that fits.
#[inline(always)]
pub(crate) fn room(egress: &Egress, outer: &Outer, way: &Encapsulation) -> u16 {
    egress.mtu.saturating_sub((outer.len() + way.extra()) as u16)
}

#[inline(always)]
pub(crate) fn ttl_allows(frame: &[u8], inner: u16, v6: bool) -> bool {
    let place = inner as usize + if v6 { 7 } else { 8 };
    frame.get(place).is_some_and(|ttl| *ttl > 1)
}

/// One hop less, and the IPv4 header checksum to match (RFC 1624).
#[inline(always)]
pub(crate) fn decrement_ttl(frame: &mut [u8], inner: u16, v6: bool) {
    let Some(packet) = frame.get_mut(inner as usize..) else { return };
    if v6 {
        if let Some([.., limit]) = packet.first_chunk_mut::<8>() {
            *limit = limit.wrapping_sub(1);
        }
    } else if let Some([_, _, _, _, _, _, _, _, ttl, _, c0, c1]) = packet.first_chunk_mut::<12>() {
        *ttl = ttl.wrapping_sub(1);
        // The word (TTL, protocol) shrinks by 0x100: ~(~HC + ~m + m'), equation 3, which alone never says 0xffff for 0.
        let sum = !u16::from_be_bytes([*c0, *c1]) as u32 + 0xfeff;
        [*c0, *c1] = (!((sum + (sum >> 16)) as u16)).to_be_bytes();
    }
}

/// What the route of the UE's packet leads to.
#[inline(always)]
fn inner_route(fib: &Fib, frame: &[u8], meta: &Meta) -> HopId {
    if meta.v6 {
        fib.route6(destination6(frame, meta.inner))
    } else {
        let bytes = frame.get(meta.inner as usize + 16..).and_then(|rest| rest.first_chunk::<4>());
        fib.route4(bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes)))
    }
}

/// What a host on a link is found by.
#[inline(always)]
fn inner_key(frame: &[u8], meta: &Meta) -> u128 {
    if meta.v6 {
        // A group's may look like another's.
        let address = destination6(frame, meta.inner);
        if address >> 120 == 0xff { 0 } else { address }
    } else {
        let bytes = frame.get(meta.inner as usize + 16..).and_then(|rest| rest.first_chunk::<4>());
        near::key_v4(bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes)))
    }
}

/// Writes IP, UDP and GTP-U headers in front of a packet of `length` octets. `packet` begins with the room for them.
#[inline(always)]
fn write_outer(packet: &mut [u8], outer: &Outer, way: &Encapsulation, length: u16, identification: u16) {
    match outer {
        Outer::V4 { template, sum } => {
            let total = length + 36 + way.extra() as u16;
            let sum = *sum + way.tos as u32 + total as u32 + identification as u32;
            let sum = (sum & 0xffff) + (sum >> 16);
            let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
            if way.container.is_some() && way.paging_policy.is_none() {
                let Some(header) = packet.first_chunk_mut::<44>() else { return };
                *header = *template;
                if let (Some((ip, gtpu)), Some([c0, c1])) = (split_v4(header), way.container) {
                    write_ipv4(ip, way.tos, total, identification, checksum);
                    write_gtpu(gtpu, way.teid, length + 8);
                    header[41] = c0;
                    header[42] = c1;
                }
            } else {
                if let (Some(to), Some(from)) = (packet.first_chunk_mut::<36>(), template.first_chunk::<36>())
                {
                    *to = *from;
                }
                if let Some((ip, rest)) = packet.split_first_chunk_mut::<28>() {
                    write_ipv4(ip, way.tos, total, identification, checksum);
                    write_long(rest, *way, length);
                }
            }
        }
        Outer::V6 { template } => {
            if let (Some(to), Some(from)) = (packet.first_chunk_mut::<56>(), template.first_chunk::<56>()) {
                *to = *from;
            }
            let Some((ip, datagram)) = packet.split_first_chunk_mut::<40>() else { return };
            let udp_length = length + 16 + way.extra() as u16;
            ip[0] = 0x60 | way.tos >> 4;
            ip[1] = way.tos << 4;
            [ip[4], ip[5]] = udp_length.to_be_bytes();
            let Some((udp, rest)) = datagram.split_first_chunk_mut::<8>() else { return };
            [udp[4], udp[5]] = udp_length.to_be_bytes();
            [udp[6], udp[7]] = [0, 0];
            write_long(rest, *way, length);
            // Over IPv6 the checksum is mandatory but for tunnels whose both ends agreed (RFC 6935 §5): nobody asked.
            let (source, destination) = addresses6(ip);
            let pseudo = checksum::pseudo_v6(source, destination, IpProtocol::UDP, udp_length as u32);
            let sum: Sum = pseudo.bytes(datagram);
            if let Some((udp, _)) = datagram.split_first_chunk_mut::<8>() {
                [udp[6], udp[7]] = sum.finish_udp().to_be_bytes();
            }
        }
    }
}

fn addresses6(ip: &[u8; 40]) -> (Ipv6Addr, Ipv6Addr) {
    let (_, addresses) = ip.split_at(8);
    let (halves, _) = addresses.as_chunks::<16>();
    match halves {
        [source, destination] => (Ipv6Addr::from(*source), Ipv6Addr::from(*destination)),
        _ => (Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
    }
}

#[inline(always)]
fn split_v4(header: &mut [u8; 44]) -> Option<(&mut [u8; 28], &mut [u8; 8])> {
    let (ip, rest) = header.split_first_chunk_mut::<28>()?;
    Some((ip, rest.first_chunk_mut::<8>()?))
}

#[inline(always)]
fn write_ipv4(ip: &mut [u8; 28], tos: u8, total: u16, identification: u16, checksum: u16) {
    ip[1] = tos;
    [ip[2], ip[3]] = total.to_be_bytes();
    [ip[4], ip[5]] = identification.to_be_bytes();
    [ip[10], ip[11]] = checksum.to_be_bytes();
    [ip[24], ip[25]] = (total - 20).to_be_bytes();
}

#[inline(always)]
fn write_gtpu(gtpu: &mut [u8; 8], teid: u32, length: u16) {
    [gtpu[2], gtpu[3]] = length.to_be_bytes();
    [gtpu[4], gtpu[5], gtpu[6], gtpu[7]] = teid.to_be_bytes();
}

/// A GTP-U header of any form: none, a short or a long container. `rest` begins with it.
fn write_long(rest: &mut [u8], way: Encapsulation, length: u16) {
    let extra = way.extra();
    let Some((gtpu, optional)) = rest.split_first_chunk_mut::<8>() else { return };
    gtpu[0] = if extra == 0 { 0x30 } else { 0x34 };
    gtpu[1] = 255;
    write_gtpu(gtpu, way.teid, length + extra as u16);
    let Some([c0, c1]) = way.container else { return };
    match way.paging_policy {
        None => {
            if let Some(to) = optional.first_chunk_mut::<8>() {
                *to = [0, 0, 0, 0x85, 1, c0, c1, 0];
            }
        }
        Some(policy) => {
            // PPP set, then the PPI in the upper three bits (TS 38.415 §5.5.2.1).
            if let Some(to) = optional.first_chunk_mut::<12>() {
                *to = [0, 0, 0, 0x85, 2, c0, c1 | 0x80, policy << 5, 0, 0, 0, 0];
            }
        }
    }
}
