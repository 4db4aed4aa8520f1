//! Where packets meet the translation: first thing when they arrive, last thing before they leave.

use super::plan::{Choice, Endpoint, Plan, Protocol};
use super::pool::Place;
use super::translate::{Content, Head, rewrite, rewrite_quote, rewrite_to_be_quoted, tcp, to_be_quoted};
use super::{Ledger, State};
use crate::Reason;
use crate::datapath::Datapath;
use crate::meta::{self, Kind, Meta, Translated, packet_of, packet_of_mut};
use crate::network::Context;
use crate::stages::burst::Burst;
use crate::state::fragment::FirstFragments;
use crate::state::record::flag;
use io::{Frame, FramePool};
use packet::rewrite::{Side, set_ipv4};
use packet::{IpPacket, IpProtocol, Ipv6View};
use session::ShardId;
use session::rules::Rules;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use tables::{Nanos, Probe};

/// What becomes of the source of a packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outward {
    /// It stays.
    Untouched,
    /// A static entry's.
    Fixed(Head, Endpoint),
    /// A mapping's, by its number.
    Mapped(Head, u32),
    /// Another prefix.
    Prefix(u128),
}

/// What becomes of a packet that arrives, found out in the first of the phases of [`Datapath::translate_in`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead {
    /// It is to nobody public.
    Untouched,
    /// A static entry says to whom.
    Fixed(Head, Endpoint),
    /// The shard's mapping says.
    Mapped { head: Head, pool: u8, place: Place, protocol: Protocol },
    /// Another prefix.
    Prefix(u128),
    /// To nobody.
    Refused(Reason),
}

/// A mapping that is being fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought {
    shard: u16,
    pool: u8,
    protocol: Protocol,
    inside: Endpoint,
    probe: Probe,
}

/// What is translated by its first header alone, without state that might have to change.
#[inline(always)]
pub(crate) fn peek(plan: &Plan, state: &State, said: Choice, packet: &[u8], v6: bool) -> Option<Outward> {
    if v6 {
        if plan.prefixes.is_empty() {
            return Some(Outward::Untouched);
        }
        let Some(prefix) = plan.prefix_out(address6(packet, 8)) else { return Some(Outward::Untouched) };
        // An ICMPv6 error (a type below 128) quotes a packet.
        let plain = match IpProtocol(*packet.get(6)?) {
            IpProtocol::TCP | IpProtocol::UDP => true,
            IpProtocol::ICMPV6 => packet.get(packet::ipv6::HEADER_LEN).is_some_and(|kind| *kind >= 128),
            _ => false,
        };
        let public = if plain { prefix.outward(address6(packet, 8)) } else { None };
        return public.map(Outward::Prefix);
    }
    let source = u32::from_be_bytes(*packet.get(12..)?.first_chunk::<4>()?);
    let pool = plan.pool_of_inside(said, source);
    if pool.is_none() && !plan.is_fixed(source) {
        // An error is about a packet that may have come through a pool, whatever its own rule says.
        let error = *packet.get(9)? == IpProtocol::ICMPV4.0
            && Head::read(packet).is_none_or(|head| matches!(head.content, Content::Error(_)));
        return (!error).then_some(Outward::Untouched);
    }
    let head = Head::read(packet).filter(|head| head.content == Content::Transport && !head.fragmented)?;
    let protocol = head.protocol()?;
    if let Some(fixed) = plan.static_out(Some(protocol), head.source) {
        return Some(Outward::Fixed(head, fixed));
    }
    let Some(pool) = pool else { return Some(Outward::Untouched) };
    let number = state.find(pool, protocol, head.source)?;
    state.is_routine(number, head.destination.address).then_some(Outward::Mapped(head, number))
}

/// Does what [`peek`] found out.
#[inline(always)]
pub(crate) fn leave(state: &mut State, outward: &Outward, packet: &mut [u8], now: Nanos) {
    match outward {
        Outward::Untouched => {}
        Outward::Fixed(head, to) => rewrite(packet, head, Side::Source, *to),
        Outward::Mapped(head, number) => {
            if let Some(to) = state.leave(*number, head, now) {
                rewrite(packet, head, Side::Source, to);
            }
        }
        Outward::Prefix(to) => put6(packet, 8, *to),
    }
}

impl<F: Frame> Datapath<F> {
    /// Translates the destinations of a burst's packets that are to public addresses, so that all that follows takes them
    /// for packets to UEs. In phases, so that what is read for them is fetched for all of them at once.
    pub(crate) fn translate_in(&mut self, now: Nanos, burst: &mut Burst<F>) {
        let Self { nat, shards, nat_fragments, network, .. } = self;
        let Burst { frames, metas, ahead, .. } = burst;
        let Some(plan) = nat.as_deref() else { return };
        // By its public address too, another UE doesn't reach one that is to have nothing to do with others.
        let apart = |meta: &Meta, to: IpAddr| meta.internal && network.fib.is_isolated(to);
        let mut mapped = false;
        ahead.clear();
        ahead.extend(metas.iter().zip(frames.iter()).map(|(meta, frame)| {
            let ahead = match meta.kind {
                Kind::Plain if meta.v6 => look6(plan, packet_of(frame.bytes(), meta)),
                Kind::Plain => look4(plan, nat_fragments, packet_of(frame.bytes(), meta), now),
                _ => Ahead::Untouched,
            };
            if let Ahead::Mapped { pool, place, .. } = ahead {
                mapped = true;
                if let Some(state) = state_of(shards, place.shard) {
                    state.prefetch_block(pool, place);
                }
            }
            ahead
        }));
        if mapped {
            for step in [State::prefetch_slot, State::prefetch_mapping] {
                for ahead in ahead.iter() {
                    if let Ahead::Mapped { pool, place, protocol, .. } = ahead
                        && let Some(state) = state_of(shards, place.shard)
                    {
                        step(state, *pool, *place, *protocol);
                    }
                }
            }
        }
        for ((meta, frame), ahead) in metas.iter_mut().zip(frames).zip(ahead.iter()) {
            let (head, to) = match ahead {
                Ahead::Untouched => continue,
                Ahead::Refused(reason) => {
                    meta.kind = Kind::Bad(*reason);
                    continue;
                }
                Ahead::Prefix(to) if apart(meta, Ipv6Addr::from_bits(*to).into()) => {
                    meta.kind = Kind::Bad(Reason::UeToUe);
                    continue;
                }
                Ahead::Prefix(to) => {
                    let packet = packet_of_mut(frame.bytes_mut(), meta);
                    put6(packet, 24, *to);
                    quoted6(packet, Side::Source, |address| plan.prefix_in(address)?.inward(address));
                    meta.key = network.prefixes.key((*to >> 64) as u64);
                    meta.translated = Translated::Fixed;
                    continue;
                }
                Ahead::Fixed(head, to) => (head, Ok(*to)),
                Ahead::Mapped { head, pool, place, protocol } => {
                    let Some(Some(shard)) = shards.get_mut(place.shard as usize) else {
                        meta.kind = Kind::Public;
                        meta.shard = place.shard;
                        continue;
                    };
                    let Some(state) = shard.nat.as_deref_mut() else {
                        meta.kind = Kind::Bad(Reason::NatNoMapping);
                        continue;
                    };
                    let to = match head.content {
                        // Told apart before it leaves a trace: a RST shortens a mapping's life.
                        Content::Transport
                            if state
                                .inside_of(*pool, *place, *protocol)
                                .is_some_and(|to| apart(meta, Ipv4Addr::from_bits(to.address).into())) =>
                        {
                            Err(Reason::UeToUe)
                        }
                        Content::Transport => state.arrive(*pool, *place, head, now),
                        // What comes behind a first fragment that was let in.
                        _ => state.inside_of(*pool, *place, *protocol).ok_or(Reason::NatNoMapping),
                    };
                    (head, to)
                }
            };
            match to {
                Ok(to) if apart(meta, Ipv4Addr::from_bits(to.address).into()) => {
                    meta.kind = Kind::Bad(Reason::UeToUe);
                }
                Ok(to) => {
                    let packet = packet_of_mut(frame.bytes_mut(), meta);
                    rewrite(packet, head, Side::Destination, to);
                    if let Content::Error(quote) = &head.content {
                        rewrite_quote(packet, head, quote, Side::Source, to);
                    }
                    meta.key = u64::from(to.address);
                    meta.translated = match ahead {
                        Ahead::Mapped { pool, .. } => Translated::By(*pool),
                        _ => Translated::Fixed,
                    };
                }
                Err(reason) => meta.kind = Kind::Bad(reason),
            }
        }
    }

    /// Fetches the mappings of a burst's packets from UEs, in two phases as their records are fetched.
    pub(crate) fn fetch_mappings(&self, burst: &mut Burst<F>) {
        let Self { nat, shards, .. } = self;
        let Burst { frames, metas, lookups, sought, .. } = burst;
        let Some(plan) = nat.as_deref() else { return };
        sought.clear();
        sought.extend(metas.iter().zip(frames.iter()).enumerate().filter_map(|(at, (meta, frame))| {
            if meta.kind != Kind::Tunnel || meta.v6 {
                return None;
            }
            let shard = shards.get(meta.shard as usize)?.as_deref()?;
            let rule = lookups.get(at).and_then(Option::as_ref).map(|lookup| lookup.rule);
            let said = shard.way_of(meta, rule).filter(|way| !way.has(flag::OUTER))?.choice();
            let pool = plan.pool_of_inside(said, meta.key as u32)?;
            let state = shard.nat.as_deref()?;
            let head = Head::read(packet_of(frame.bytes(), meta))?;
            let (protocol, inside) = (head.protocol()?, head.source);
            let probe = state.prepare(pool, protocol, inside);
            Some(Sought { shard: meta.shard, pool, protocol, inside, probe })
        }));
        for Sought { shard, pool, protocol, inside, probe } in sought.iter() {
            if let Some(state) = state_of(shards, *shard) {
                state.locate(*probe, *pool, *protocol, *inside);
            }
        }
    }

    /// Translates the source of a packet that its session's rules sent on its way: to the data network, or (`to_ue`) to an
    /// address that turned out to be Millrace's own to route. `said`: by their rule. Makes a mapping if need be.
    pub(crate) fn translate_out<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        (said, to_ue): (Choice, bool),
        frame: &mut F,
    ) -> Result<(), Reason> {
        let Self { nat, shards, counters, nat_fragments, .. } = self;
        let Some(plan) = nat.as_deref() else { return Ok(()) };
        if meta.kind != Kind::Tunnel {
            return Ok(());
        }
        // A UE that addresses another one by its public address is told from the other's answers by its own (RFC 4787 REQ-9).
        let public = || match meta::inner_destination(frame.bytes(), meta) {
            IpAddr::V4(address) => plan.is_public4(address.into()),
            IpAddr::V6(address) => plan.is_public6(address),
        };
        if to_ue && !public() {
            return Ok(());
        }
        let packet = packet_of_mut(frame.bytes_mut(), meta);
        if meta.v6 {
            let source = address6(packet, 8);
            let Some(prefix) = plan.prefix_out(source) else { return Ok(()) };
            put6(packet, 8, prefix.outward(source).ok_or(Reason::NatUnsupported)?);
            quoted6(packet, Side::Destination, |address| plan.prefix_out(address)?.outward(address));
            return Ok(());
        }
        let Some(shard) = shards.get_mut(meta.shard as usize).and_then(Option::as_deref_mut) else {
            return Ok(());
        };
        let Some(state) = shard.nat.as_deref_mut() else { return Ok(()) };
        let ledger = &mut Ledger { now: cx.now, events: &mut cx.out.events, counters: &mut counters.nat };
        outward4(plan, state, nat_fragments, said, packet, ledger)
    }

    /// A packet that an error of ours is to quote, as its sender knows it: with the public destination.
    pub(crate) fn as_sent(&self, meta: &Meta, packet: &[u8]) -> Vec<u8> {
        let mut sent = packet.to_vec();
        let Some(plan) = self.nat.as_deref() else { return sent };
        if meta.v6 {
            let address = address6(&sent, 24);
            if let Some(public) = plan.prefix_out(address).and_then(|prefix| prefix.outward(address)) {
                put6(&mut sent, 24, public);
            }
        } else if let Some(quote) = to_be_quoted(&sent) {
            let fixed = plan.static_out(Some(quote.protocol), quote.destination);
            let mapped = || {
                let Translated::By(pool) = meta.translated else { return None };
                state_of(&self.shards, meta.shard)?.outside_of(pool, quote.protocol, quote.destination)
            };
            if let Some(public) = fixed.or_else(mapped) {
                rewrite_to_be_quoted(&mut sent, &quote, Side::Destination, public);
            }
        } else if let IpAddr::V4(address) = meta::inner_destination(packet, &Meta { inner: 0, ..*meta })
            && let Some(public) = plan.static_out(None, Endpoint { address: address.into(), port: 0 })
        {
            // A failure leaves the packet as it was, and it is quoted so.
            let _ = set_ipv4(&mut sent, Side::Destination, public.address.into());
        }
        sent
    }

    /// A session ended, or changed its addresses: the mappings of those that it no longer has end, too.
    pub(crate) fn forget_translations<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        shard: ShardId,
        before: &Rules,
        after: Option<&Rules>,
    ) {
        let Some(Some(shard)) = self.shards.get_mut(shard.index()) else { return };
        let Some(state) = shard.nat.as_deref_mut() else { return };
        let after = after.filter(|after| after.seid == before.seid);
        let keeps = |address: Ipv4Addr| {
            after.is_some_and(|after| {
                after.ue_ipv4 == Some(address) || after.framed_ipv4.iter().any(|net| net.contains(&address))
            })
        };
        let mut ledger = Ledger { now: cx.now, events: &mut cx.out.events, counters: &mut self.counters.nat };
        if let Some(address) = before.ue_ipv4.filter(|address| !keeps(*address)) {
            state.forget(address.into(), &mut ledger);
        }
        if !before.framed_ipv4.is_empty() {
            let framed = |address: Ipv4Addr| before.framed_ipv4.iter().any(|net| net.contains(&address));
            state.forget_all(|address| framed(address) && !keeps(address), &mut ledger);
        }
    }
}

impl<F> crate::Shard<F> {
    /// The public endpoint that stands for a UE's, if it has a mapping: of several, that of the first pool.
    pub fn public_of(&self, protocol: Protocol, inside: SocketAddrV4) -> Option<SocketAddrV4> {
        let inside = Endpoint { address: (*inside.ip()).into(), port: inside.port() };
        let state = self.nat.as_deref()?;
        let outside = state.outside_in_any(state.plan(), None, protocol, inside)?;
        Some(SocketAddrV4::new(outside.address.into(), outside.port))
    }
}

#[inline(always)]
fn state_of<F>(shards: &[Option<Box<crate::Shard<F>>>], shard: u16) -> Option<&State> {
    shards.get(shard as usize)?.as_deref()?.nat.as_deref()
}

/// To whom is a packet that arrived?
#[inline(always)]
fn look4(plan: &Plan, fragments: &mut FirstFragments<u16>, packet: &[u8], now: Nanos) -> Ahead {
    let address = packet.get(16..).and_then(|rest| rest.first_chunk::<4>());
    let address = address.map_or(0, |bytes| u32::from_be_bytes(*bytes));
    if !plan.is_public4(address) {
        return Ahead::Untouched;
    }
    let Some(head) = Head::read(packet) else { return Ahead::Refused(Reason::Malformed) };
    let mut protocol = head.protocol();
    let mut to = head.destination;
    match head.content {
        Content::Transport => {
            if head.fragmented {
                remember(fragments, packet, to.port, now);
            }
        }
        Content::Error(quote) => {
            // An error is about a packet that was sent from the address that is told.
            if quote.source.address != address {
                return Ahead::Refused(Reason::NatNoMapping);
            }
            (to, protocol) = (quote.source, Some(quote.protocol));
        }
        Content::Later => match recall(fragments, packet, now) {
            Some(port) => to.port = port,
            None => protocol = None,
        },
        Content::Other => protocol = None,
    }
    if let Some(fixed) = plan.static_in(protocol, to) {
        return Ahead::Fixed(head, fixed);
    }
    let Some(protocol) = protocol else {
        let later = head.content == Content::Later;
        return Ahead::Refused(if later { Reason::FragmentWithoutFirst } else { Reason::NatUnsupported });
    };
    let found = plan.pool_of_outside(address).and_then(|(pool, number)| {
        let place = plan.pools.get(pool as usize)?.numbering.place(number, to.port)?;
        Some(Ahead::Mapped { head, pool, place, protocol })
    });
    found.unwrap_or(Ahead::Refused(Reason::NatNoMapping))
}

fn look6(plan: &Plan, packet: &[u8]) -> Ahead {
    if plan.prefixes.is_empty() {
        return Ahead::Untouched;
    }
    let address = address6(packet, 24);
    match plan.prefix_in(address) {
        None => Ahead::Untouched,
        Some(prefix) => prefix.inward(address).map_or(Ahead::Refused(Reason::NatUnsupported), Ahead::Prefix),
    }
}

/// The way out of a packet that [`peek`] had no answer for.
fn outward4(
    plan: &Plan,
    state: &mut State,
    fragments: &mut FirstFragments<u16>,
    said: Choice,
    packet: &mut [u8],
    ledger: &mut Ledger<'_>,
) -> Result<(), Reason> {
    let Some(head) = Head::read(packet) else {
        let source = packet.get(12..).and_then(|rest| rest.first_chunk::<4>());
        let source = source.map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let translated = plan.pool_of_inside(said, source).is_some()
            || plan.static_out(None, Endpoint { address: source, port: 0 }).is_some();
        return if translated { Err(Reason::Malformed) } else { Ok(()) };
    };
    let pool = plan.pool_of_inside(said, head.source.address);
    let now = ledger.now;
    // Whose endpoint decides, and whether it is one that a packet came from just now.
    let (protocol, from) = match head.content {
        Content::Transport => {
            if head.fragmented {
                remember(fragments, packet, head.source.port, now);
            }
            (head.protocol(), head.source)
        }
        // Who tells of a packet must be whom it was for: nobody speaks for another UE's endpoint.
        Content::Error(quote) if quote.destination.address != head.source.address => {
            let translated = pool.is_some() || plan.is_fixed(head.source.address);
            return if translated { Err(Reason::NatNoMapping) } else { Ok(()) };
        }
        Content::Error(quote) => (Some(quote.protocol), quote.destination),
        Content::Later => match recall(fragments, packet, now) {
            Some(port) => (head.protocol(), Endpoint { port, ..head.source }),
            None => (None, head.source),
        },
        Content::Other => (None, head.source),
    };
    // An error is about a packet that came through some pool, whatever its own rule says.
    let is_error = matches!(head.content, Content::Error(_));
    let told = |protocol| state.outside_in_any(plan, pool, protocol, from);
    let told = protocol.filter(|_| is_error).and_then(told);
    let to = match (plan.static_out(protocol, from).or(told), pool, protocol) {
        (Some(known), ..) => known,
        (None, None, _) => return Ok(()),
        (None, Some(_), None) if head.content == Content::Later => return Err(Reason::FragmentWithoutFirst),
        (None, Some(_), None) => return Err(Reason::NatUnsupported),
        (None, Some(pool), Some(protocol)) if head.content == Content::Transport => {
            let begins = match protocol {
                Protocol::Tcp => head.kind & tcp::RST == 0,
                Protocol::Udp => true,
                Protocol::Icmp => head.asks(),
            };
            if !begins && state.find(pool, protocol, from).is_none() {
                return Err(Reason::NatNoMapping);
            }
            let number = state.open(pool, protocol, from, head.destination.address, ledger)?;
            state.leave(number, &head, now).ok_or(Reason::NatNoMapping)?
        }
        (None, Some(pool), Some(protocol)) => {
            state.outside_of(pool, protocol, from).ok_or(Reason::NatNoMapping)?
        }
    };
    rewrite(packet, &head, Side::Source, to);
    if let Content::Error(quote) = &head.content {
        rewrite_quote(packet, &head, quote, Side::Destination, to);
    }
    Ok(())
}

/// A first fragment has the ports of all.
fn remember(fragments: &mut FirstFragments<u16>, packet: &[u8], port: u16, now: Nanos) {
    if let Ok(ip) = IpPacket::parse(packet) {
        fragments.remember(&ip, port, now);
    }
}

fn recall(fragments: &FirstFragments<u16>, packet: &[u8], now: Nanos) -> Option<u16> {
    fragments.recall(&IpPacket::parse(packet).ok()?, now)
}

fn address6(packet: &[u8], at: usize) -> u128 {
    let bytes = packet.get(at..).and_then(|rest| rest.first_chunk::<16>());
    bytes.map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

/// Sets an address by one that adds up to the same: no checksum changes.
fn put6(packet: &mut [u8], at: usize, address: u128) {
    if let Some(place) = packet.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<16>()) {
        *place = address.to_be_bytes();
    }
}

/// Translates an address of the packet that an ICMPv6 error quotes (RFC 6296 §3.3), if it is one.
fn quoted6(packet: &mut [u8], side: Side, translate: impl Fn(u128) -> Option<u128>) {
    let Ok(upper) = Ipv6View::parse(packet).and_then(|ip| ip.upper_layer()) else { return };
    let first = upper.fragment.is_none_or(packet::Fragment::is_first);
    let at = packet::ipv6::HEADER_LEN + upper.extensions_len;
    // Errors have types below 128 (RFC 4443 §2.1).
    if upper.protocol != IpProtocol::ICMPV6 || !first || packet.get(at).is_none_or(|kind| *kind >= 128) {
        return;
    }
    let quoted = at + 8;
    let place = quoted + if side == Side::Source { 8 } else { 24 };
    if packet.get(quoted).is_none_or(|version| version >> 4 != 6) || packet.len() < quoted + 40 {
        return;
    }
    if let Some(address) = translate(address6(packet, place)) {
        put6(packet, place, address);
    }
}
