//! The packet whose record isn't enough: judged by the session's rules, one by one.
//!
//! This is where filters, buffering, several meters, exact volume limits, fragmentation and ICMP errors live. A packet
//! judged here meets the same checks in the same order as one that its record served:
//! source, rule, FAR, route, TTL, MTU, quota, gate, meter, account.

use crate::Reason;
use crate::command::Event;
use crate::datapath::Datapath;
use crate::meta::{self, Kind, Meta, NO_QFI, packet_of};
use crate::nat::Choice;
use crate::network::Context;
use crate::network::egress::Egress;
use crate::network::peer::NO_PEER;
use crate::stages::classify::classify;
use crate::stages::ecn::Ecn;
use crate::stages::serve::{self, Encapsulation, Routed};
use crate::state::conversation::{Answer, Inquiry, Known};
use crate::state::export::Ledger;
use crate::state::flow::Lookup;
use crate::state::origin::{SourceOf, are_all_uplink, source_of};
use crate::state::record::flag;
use crate::state::shard::Session;
use crate::state::treatment::{Treatment, Tunnelled, treatment};
use crate::state::waiting::Waiting;
use io::{Frame, FramePool};
use packet::{Dscp, Qfi};
use session::rules::{Pdr, Rules};
use session::{SessionRef, ShardId};
use std::sync::Arc;
use tables::{Colour, Nanos};

/// A packet that is judged, and by what.
struct Case<'a> {
    meta: &'a Meta,
    /// Shard and slot of its session.
    place: (u16, u32),
    rules: Arc<Rules>,
    /// Its flow, if packets like it make one.
    lookup: Option<Lookup>,
    /// The SMF is told of it if it has to wait.
    notify: bool,
}

/// The rule that matched.
struct Found<'r> {
    /// Its index among the session's.
    index: u16,
    pdr: &'r Pdr,
    /// Whose address the packet comes from.
    source: SourceOf,
    /// Its conversation, if the rule was found by what is known of that.
    inquiry: Option<Inquiry>,
}

/// Where a judged packet goes.
enum Exit {
    Tunnel {
        way: Encapsulation,
        /// The rule leaves the outer header's DSCP to the operator's table.
        dscp_by_qfi: bool,
    },
    Plain {
        egress: Egress,
        choice: Choice,
    },
    Ue {
        choice: Choice,
    },
}

/// Why a packet's sender is told that it did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// TTL or hop limit.
    TimeExceeded,
    /// Longer than this, and not to be fragmented.
    TooBig(u16),
}

impl<F: Frame> Datapath<F> {
    /// Shard and session slot of a packet whose record was found.
    pub(crate) fn session_slot(&self, meta: &Meta) -> Option<(u16, u32)> {
        let record = self.shards.get(meta.shard as usize)?.as_deref()?.record(meta)?;
        Some((meta.shard, u32::from(record.session)))
    }

    /// Judges a packet by its session's rules. `lookup`: its flow, if it was looked for.
    #[inline(never)]
    pub(crate) fn ask<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        lookup: Option<&Lookup>,
        place: (u16, u32),
        frame: F,
    ) {
        let resumed = match lookup.filter(|lookup| lookup.is_under_question()) {
            Some(lookup) => self.resume(cx, meta, lookup, frame),
            None => Err((frame, None)),
        };
        if let Err((frame, answer)) = resumed {
            self.judge(cx, meta, (lookup, answer), place, frame, true);
        }
    }

    /// `answer`: what came of asking about its application, if somebody was asked.
    fn judge<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        (lookup, answer): (Option<&Lookup>, Option<Answer>),
        place: (u16, u32),
        frame: F,
        notify: bool,
    ) {
        let Some(rules) = self.session(place).map(|session| Arc::clone(&session.rules)) else {
            self.counters.drop(Reason::NoRule);
            return;
        };
        // A packet that waited was not looked up.
        let shard = self.shards.get(usize::from(meta.shard)).and_then(Option::as_deref);
        let lookup = lookup.copied().or_else(|| shard?.prepare(meta, frame.bytes()));
        let case = Case { meta, place, rules, lookup, notify };
        let mut asked = answer;
        let found = self.rule_for(cx.now, &case, &frame, &mut asked);
        let index = found.as_ref().ok().map(|found| found.index);
        if let Err(reason) = found.and_then(|found| self.treat(cx, &case, found, frame)) {
            self.refuse(meta, reason);
        }
        if let Some(Answer { conversation, .. }) = asked {
            let pdr = index.and_then(|index| case.rules.pdrs.get(usize::from(index)));
            let rule = pdr.filter(|pdr| case.rules.tells_of_application(pdr)).map(|pdr| (&*case.rules, pdr));
            self.conclude(cx.now, meta, conversation, case.lookup.as_ref(), rule);
        }
    }

    fn session(&self, (shard, slot): (u16, u32)) -> Option<&Session<F>> {
        self.shards.get(shard as usize)?.as_deref()?.session(slot)
    }

    /// The rule that a packet matches, if its source may send such a packet. `asked`: what came of asking, if somebody was asked, now or before.
    fn rule_for<'c>(
        &mut self,
        now: Nanos,
        case: &'c Case<'_>,
        frame: &F,
        asked: &mut Option<Answer>,
    ) -> Result<Found<'c>, Reason> {
        let Case { meta, rules, lookup, .. } = case;
        let tunnel = (meta.kind == Kind::Tunnel).then_some(meta.teid);
        let source = match tunnel {
            Some(_) => source_of(rules, meta::inner_source(frame.bytes(), meta)),
            None => SourceOf::Ue,
        };
        // Where all rules of the tunnel are the UE's own, a stranger's packet is refused before it leaves a trace.
        if source == SourceOf::Stranger && are_all_uplink(rules, tunnel) {
            return Err(Reason::SpoofedSource);
        }
        let packet = packet_of(frame.bytes(), meta);
        let (may_ask, of_all) = (asked.is_none() && self.may_ask(lookup.as_ref()), self.inspects_all());
        let flows = &mut self.fragment_flows;
        // Where all flows are inspected, nobody has to look whether the answer matters.
        let unasked = (may_ask && !of_all).then(|| classify(rules, tunnel, meta, packet, None, flows, now));
        let found = match unasked {
            Some(found) if !found.open => found,
            _ => {
                if may_ask {
                    *asked = self.inquire(now, meta, lookup.as_ref(), rules, packet);
                }
                let known = asked.map_or(Known::NONE, |answer| answer.known);
                classify(rules, tunnel, meta, packet, Some(known), &mut self.fragment_flows, now)
            }
        };
        let inquiry = asked.map(|answer| {
            let open = found.open || (of_all && answer.known.open);
            Inquiry { answer, open }
        });
        let index = found.rule?;
        let pdr = rules.pdrs.get(usize::from(index)).ok_or(Reason::NoRule)?;
        // A tunnel may serve rules of both directions: then it is the rule that says whose packet this claims to be.
        let source = if pdr.source.is_uplink() { source } else { SourceOf::Ue };
        if source == SourceOf::Stranger {
            return Err(Reason::SpoofedSource);
        }
        Ok(Found { index, pdr, source, inquiry })
    }

    /// Does with a packet what its rule says.
    fn treat<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        case: &Case<'_>,
        found: Found<'_>,
        mut frame: F,
    ) -> Result<(), Reason> {
        let Case { meta, place, ref rules, ref lookup, .. } = *case;
        let Found { index, pdr, source, inquiry } = found;
        let treatment = treatment(rules, pdr);
        match treatment {
            Treatment::Drop => return Err(Reason::FarDrop),
            Treatment::Unresolved => return Err(Reason::FarUnresolved),
            Treatment::Buffer { notify, packets } => {
                return self.buffer(cx, case, index, frame, packets, notify && case.notify);
            }
            // What never leaves a link is for the SMF only; what comes from nobody known is not routed.
            Treatment::Tunnel(way) if source == SourceOf::Link && !way.to_smf => {
                return Err(Reason::SpoofedSource);
            }
            Treatment::Plain(_) | Treatment::Redirect(_)
                if matches!(source, SourceOf::Link | SourceOf::Unknown) =>
            {
                return Err(Reason::SpoofedSource);
            }
            Treatment::Redirect(to) => return self.redirect(cx, meta, (rules, pdr, to), place, &frame),
            Treatment::Tunnel(_) | Treatment::Plain(_) => {}
        }
        // The way out, and whether the packet may take it.
        let (mut exit, room) =
            self.exit(meta, &frame, treatment, self.session(place).map(|it| it.peer(pdr.far)))?;
        let routed = match exit {
            Exit::Tunnel { .. } => meta.kind == Kind::Plain,
            Exit::Plain { .. } => true,
            Exit::Ue { .. } => false,
        };
        let ecn = Ecn::of(meta).ok_or(Reason::CongestionNotEct)?;
        if routed && !serve::ttl_allows(frame.bytes(), meta.inner, meta.v6) {
            self.complain(cx, meta, &frame, Trouble::TimeExceeded);
            return Err(Reason::TtlExpired);
        }
        let too_big = meta.len > room;
        if too_big && !may_fragment(frame.bytes(), meta) {
            self.complain(cx, meta, &frame, Trouble::TooBig(room));
            return Err(Reason::PacketTooBig);
        }
        let colour = self.account(cx, meta, place, rules, index)?;
        self.learn(cx.now, meta, lookup.as_ref(), index, inquiry);
        ecn.enter(frame.bytes_mut(), meta);
        let marking = &self.config.marking;
        match &mut exit {
            Exit::Tunnel { way, dscp_by_qfi } => {
                way.tos = marking.outer(way.tos, *dscp_by_qfi, way.qfi(), colour) | ecn.field();
            }
            Exit::Plain { choice, .. } => {
                marking.inner(frame.bytes_mut(), meta, colour);
                self.translate_out(cx, meta, (*choice, false), &mut frame)?;
            }
            Exit::Ue { choice } => self.translate_out(cx, meta, (*choice, true), &mut frame)?,
        }
        self.counters.forwarded(pdr.source.is_uplink(), meta.len, colour);
        if routed {
            serve::decrement_ttl(frame.bytes_mut(), meta.inner, meta.v6);
        }
        if self.is_mirrored(meta) {
            let whose = (meta, lookup.as_ref());
            self.mirror(cx, whose, pdr.source.is_uplink(), packet_of(frame.bytes(), meta));
        }
        if !too_big {
            self.leave(cx, &exit, meta, frame);
            return Ok(());
        }
        let fragments = self.cut(cx, meta, &frame, room);
        if fragments.is_empty() {
            self.counters.drop(Reason::NoBuffer);
            return Ok(());
        }
        self.counters.consumed += 1;
        for (fragment, length) in fragments {
            let part = Meta { inner: 14, len: length, ..*meta };
            self.leave(cx, &exit, &part, fragment);
        }
        Ok(())
    }

    /// Sends a packet of our own making the way that a treatment of this rule says. Nobody's account has it, and no rate or quota holds it back.
    pub(crate) fn send_by<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        (place, far, treatment): ((u16, u32), u16, Treatment),
        mut frame: F,
    ) -> Result<(), Reason> {
        let peer = self.session(place).map(|session| session.peer(far));
        let (mut exit, room) = self.exit(meta, &frame, treatment, peer)?;
        if meta.len > room {
            return Err(Reason::PacketTooBig);
        }
        match &mut exit {
            Exit::Tunnel { way, dscp_by_qfi } => {
                way.tos = self.config.marking.outer(way.tos, *dscp_by_qfi, way.qfi(), Colour::Green);
            }
            Exit::Plain { choice, .. } => self.translate_out(cx, meta, (*choice, false), &mut frame)?,
            Exit::Ue { choice } => self.translate_out(cx, meta, (*choice, true), &mut frame)?,
        }
        if self.is_mirrored(meta) {
            self.mirror(cx, (meta, None), meta.kind == Kind::Tunnel, packet_of(frame.bytes(), meta));
        }
        self.leave(cx, &exit, meta, frame);
        Ok(())
    }

    /// The way that a treatment sends a packet, and the longest packet that may take it. `peer`: the FAR's far end, by its number.
    fn exit(
        &self,
        meta: &Meta,
        frame: &F,
        treatment: Treatment,
        peer: Option<u16>,
    ) -> Result<(Exit, u16), Reason> {
        let way = match treatment {
            Treatment::Tunnel(way) => way,
            Treatment::Plain(choice) => {
                return match self.route(frame.bytes(), meta, choice)? {
                    // A downlink rule that sends packets back to where they came from would do so for ever.
                    Routed::Ue if meta.kind == Kind::Plain => Err(Reason::NoRoute),
                    Routed::Ue if self.are_apart(frame.bytes(), meta) => Err(Reason::UeToUe),
                    Routed::Ue => Ok((Exit::Ue { choice }, u16::MAX)),
                    Routed::Out(egress) => Ok((Exit::Plain { egress, choice }, egress.mtu)),
                };
            }
            Treatment::Drop | Treatment::Unresolved | Treatment::Redirect(_) | Treatment::Buffer { .. } => {
                return Err(Reason::FarDrop);
            }
        };
        let number = peer.unwrap_or(NO_PEER);
        let peer = self.network.peers.get(number).ok_or(Reason::TooManyPeers)?;
        let egress = peer.egress.as_ref().ok_or(Reason::NoRoute)?;
        let Tunnelled { teid, flags, qfi, tos, paging_policy, .. } = way;
        let container = serve::container(flags, qfi, meta, self.config.marking.carried(meta));
        let way = Encapsulation { peer: number, teid, tos, container, paging_policy };
        let room = serve::room(egress, &peer.outer, &way);
        Ok((Exit::Tunnel { way, dscp_by_qfi: flags & flag::DSCP_BY_QFI != 0 }, room))
    }

    fn leave<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        exit: &Exit,
        meta: &Meta,
        mut frame: F,
    ) {
        match exit {
            Exit::Tunnel { way, .. } => self.encapsulate(cx, way, frame, meta.inner, meta.len),
            Exit::Plain { egress, .. } => self.send_plain(cx, egress, frame, meta),
            Exit::Ue { .. } => {
                if serve::internalise(&mut frame, meta) {
                    self.arisen.push(frame);
                } else {
                    self.counters.drop(Reason::NoHeadroom);
                }
            }
        }
    }

    /// Quota, gate, meter, and the packet's entry in the books.
    fn account<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        (shard_index, slot): (u16, u32),
        rules: &Rules,
        pdr: u16,
    ) -> Result<Colour, Reason> {
        let Some(Some(shard)) = self.shards.get_mut(shard_index as usize) else { return Err(Reason::NoRule) };
        let flags = shard.record(meta).map_or(0, |record| record.flags);
        let mut reports = Vec::new();
        // Where packets are led to their rule's record, this one is accounted there like those whose flow is known. If
        // the record has run dry, it is filled again by opening the books.
        let led = flags & (flag::FLOWS | flag::DIRECT) != 0;
        let rule = if led { shard.rule_record(slot, pdr) } else { None };
        if let Some(number) = rule
            && let Some(colour) = shard.passes(&mut self.slices, number, meta.len, cx.now)
        {
            return Ok(colour);
        }
        let Some(session) = shard.session(slot) else { return Err(Reason::NoRule) };
        let simple = flags & flag::COMPLEX == 0;
        let exact = simple || rule.is_some() || session.shared_meter || !session.books.covers(meta.len);
        if exact {
            shard.fold(slot);
        }
        let verdict =
            shard.enforce(&mut self.slices, slot, rules, pdr, meta.len, cx.now, exact, &mut reports);
        if exact {
            shard.grant(slot);
        }
        if !reports.is_empty() {
            cx.out.events.push(Event::Usage { seid: rules.seid, usage: reports });
        }
        verdict
    }

    /// Enters the flow of a packet that passed, so that those that follow are spared all this.
    fn learn(
        &mut self,
        now: Nanos,
        meta: &Meta,
        lookup: Option<&Lookup>,
        pdr: u16,
        inquiry: Option<Inquiry>,
    ) {
        let Some(lookup) = lookup else { return };
        let Some(Some(shard)) = self.shards.get_mut(meta.shard as usize) else { return };
        let Some(flow) = shard.flow_of(meta, pdr, self.config.flow_idle, now) else { return };
        let (export, counters) = (&mut self.export, &mut self.counters.flows);
        let mut ledger = Ledger { now, export, counters, room: &mut self.room };
        if shard.revise(lookup, &flow, inquiry, &mut ledger) {
            return;
        }
        // A conversation is remembered as long as it has flows, also by a rule whose record can't serve them.
        if inquiry.is_none() && !shard.serves(flow.rule) {
            return;
        }
        if !shard.may_have_more(&lookup.key, self.config.flows_per_session) {
            ledger.counters.refused += 1;
            return;
        }
        // What makes room may be the last other flow of the same conversation.
        shard.hold(inquiry, true);
        let has_room = self.room.lacks() == 0 || self.make_room(now, ShardId::from_hash(meta.shard.into()));
        let Some(Some(shard)) = self.shards.get_mut(usize::from(meta.shard)) else { return };
        shard.hold(inquiry, false);
        if !has_room {
            self.counters.flows.refused += 1;
            return;
        }
        let (export, counters) = (&mut self.export, &mut self.counters.flows);
        let mut ledger = Ledger { now, export, counters, room: &mut self.room };
        shard.add_flow(lookup, flow, inquiry, &mut self.supply, &mut ledger);
    }

    /// Makes room for a flow of a shard. False: there is none.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, now: Nanos, shard: ShardId) -> bool {
        let Self { shards, room, .. } = self;
        // After a move there may be too many: then two go for one that comes.
        for _ in 0..room.lacks().min(2) {
            let giver = room.giver(shard).and_then(|giver| shards.get_mut(giver.index()));
            let Some(Some(giver)) = giver else { return false };
            let (export, counters) = (&mut self.export, &mut self.counters.flows);
            if !giver.evict_flow(&mut Ledger { now, export, counters, room }) {
                return false;
            }
        }
        true
    }

    /// Keeps a packet until the SMF says what becomes of it.
    fn buffer<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        case: &Case<'_>,
        pdr_index: u16,
        frame: F,
        packets: u16,
        notify: bool,
    ) -> Result<(), Reason> {
        let Case { meta, place: (shard, slot), .. } = *case;
        let shard =
            self.shards.get_mut(shard as usize).and_then(Option::as_deref_mut).ok_or(Reason::NoRule)?;
        let session = shard.session_mut(slot).ok_or(Reason::NoRule)?;
        // The SMF is told even if the packet finds no room: the UE is to be paged all the same.
        if notify
            && let Some(state) = session.books.pdrs.get_mut(pdr_index as usize)
            && !state.notified
            && let Some(pdr) = session.rules.pdrs.get(pdr_index as usize)
        {
            state.notified = true;
            let marked = session.rules.marking(pdr);
            let carried = (meta.qfi != NO_QFI).then(|| Qfi::from_wire(meta.qfi));
            cx.out.events.push(Event::DownlinkData {
                seid: session.rules.seid,
                pdr: pdr.id,
                qfi: marked.or(carried),
                dscp: Dscp::from_tos(meta.tos),
            });
        }
        if session.waiting.len() >= packets as usize {
            return Err(Reason::BufferFull);
        }
        let place = self.config.buffered.take().ok_or(Reason::BufferExhausted)?;
        session.waiting.push_back(Waiting { meta: *meta, frame, _place: place });
        shard.buffered += 1;
        self.counters.buffered += 1;
        Ok(())
    }

    /// New rules are in force: judges the waiting packets again, in order, or discards them.
    pub(crate) fn flush<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        place: SessionRef,
        discard: bool,
    ) {
        let Some(shard) = self.shard_mut(place.shard) else { return };
        let Some(session) = shard.session_mut(place.slot) else { return };
        let waiting = std::mem::take(&mut session.waiting);
        shard.buffered -= waiting.len() as u32;
        for Waiting { meta, frame, .. } in waiting {
            self.counters.buffered -= 1;
            let at = (place.shard.index() as u16, place.slot);
            if discard || self.session_slot(&meta) != Some(at) {
                self.counters.drop(Reason::BufferDiscarded);
                if let Some(session) =
                    self.shard_mut(place.shard).and_then(|shard| shard.session_mut(place.slot))
                {
                    session.drop(Reason::BufferDiscarded);
                }
            } else {
                self.judge(cx, &meta, (None, None), at, frame, false);
            }
        }
    }
}

/// Whether a router may cut the packet: IPv4 without DF (RFC 791); IPv6 never (RFC 8200 §5).
fn may_fragment(frame: &[u8], meta: &Meta) -> bool {
    !meta.v6 && frame.get(meta.inner as usize + 6).is_some_and(|flags| flags & 0x40 == 0)
}
