//! What is it? Where a rule asks for an application, whoever inspects is shown the packet.
//!
//! A flow's first packet is judged by its session's rules, and so is the one after which its conversation is taken for something else. All those between are
//! shown, and then served by the record of the rule that the flow goes by so far: the rules are the same, and so is all that they look at.

use crate::datapath::Datapath;
use crate::inspect::{Detection, Direction, Payload};
use crate::meta::{Kind, Meta, packet_of};
use crate::network::Context;
use crate::state::conversation::Answer;
use crate::state::flow::{Lookup, Tuple};
use crate::state::record::flag;
use crate::state::rules::candidates;
use io::{Frame, FramePool};
use packet::IpPacket;
use session::applications::Lineage;
use session::prefixes::upper_half;
use session::rules::{Pdr, Rules};
use tables::Nanos;

impl<F: Frame> Datapath<F> {
    /// Whether all flows are inspected.
    pub(crate) fn inspects_all(&self) -> bool {
        self.config.inspection.as_ref().is_some_and(|inspection| inspection.of_all)
    }

    /// Whether somebody could be asked about a packet whose flow is `lookup`.
    pub(crate) const fn may_ask(&self, lookup: Option<&Lookup>) -> bool {
        matches!((&self.config.inspection, lookup), (Some(_), Some(_)))
    }

    /// A packet of a flow under question: it is shown, and served by the rule that the flow has so far, if what is known makes no difference. If it
    /// does, or the rule's record can't decide, the packet is given back, with what came of asking if somebody was asked.
    pub(crate) fn resume<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        lookup: &Lookup,
        frame: F,
    ) -> Result<(), (F, Option<Answer>)> {
        match self.ask_again(cx.now, meta, lookup, packet_of(frame.bytes(), meta)) {
            None => Err((frame, None)),
            Some((answer, None)) => Err((frame, Some(answer))),
            Some((answer, rule)) => {
                self.serve_one(cx, meta, Some(lookup), frame, rule).map_err(|frame| (frame, Some(answer)))
            }
        }
    }

    /// Shows a packet of a flow that hangs on its conversation, and was classified by rules that are in force. Says what came of it, and the rule's
    /// record if it is the same as before and nothing has to be told. `None`: nobody was asked.
    fn ask_again(
        &mut self,
        now: Nanos,
        meta: &Meta,
        lookup: &Lookup,
        packet: &[u8],
    ) -> Option<(Answer, Option<u32>)> {
        let inspection = self.config.inspection.as_ref()?;
        let shard = self.shards.get_mut(usize::from(meta.shard))?.as_deref_mut()?;
        let version = shard.record(meta).filter(|record| record.has(flag::FLOWS))?.flow_version();
        let conversations = shard.conversations.as_deref_mut()?;
        let flow = shard.flows.confirm(lookup.probe, &lookup.key).filter(|flow| flow.version == version)?;
        let hung = *conversations.hung(flow.rule)?;
        let payload = Payload { packet, ip: IpPacket::parse(packet).ok()? };
        let (whose, shown) = (hung.conversation, (&payload, hung.direction));
        let known = conversations.show(whose, shown, now, inspection, &mut self.counters.inspection)?;
        let answer = Answer { conversation: whose, known, direction: hung.direction };
        // Where an application is known for good, somebody may want to be told.
        if known.of != hung.of || (!known.open && known.of != Lineage::NONE) {
            return Some((answer, None));
        }
        if !known.open {
            flow.rule = conversations.settle(flow.rule);
        }
        Some((answer, Some(hung.rule)))
    }

    /// Shows a packet of a session with these rules to whoever inspects, if its conversation is under question: which one it is, and
    /// what is known of it now. `None`: nobody can be asked.
    pub(crate) fn inquire(
        &mut self,
        now: Nanos,
        meta: &Meta,
        lookup: Option<&Lookup>,
        rules: &Rules,
        packet: &[u8],
    ) -> Option<Answer> {
        let inspection = self.config.inspection.as_ref()?;
        let shard = self.shards.get_mut(usize::from(meta.shard))?.as_deref_mut()?;
        let payload = Payload { packet, ip: IpPacket::parse(packet).ok()? };
        let tunnel = (meta.kind == Kind::Tunnel).then_some(meta.teid);
        // A tunnel's rules are of one direction, but for odd SMFs': then the first of them says it.
        let first = candidates(rules, tunnel).next();
        let is_uplink = first.is_some_and(|(_, pdr)| pdr.source.is_uplink());
        let direction = if is_uplink { Direction::Uplink } else { Direction::Downlink };
        let whose = (&lookup?.key.ends(), rules.seid, lookup?.rule);
        let counters = &mut self.counters.inspection;
        let conversations = shard.conversations.as_deref_mut()?;
        let found = conversations.consult(whose, (&payload, direction), now, inspection, counters);
        found.map(|(conversation, known)| Answer { conversation, known, direction })
    }

    /// A packet was judged: its conversation is forgotten, unless a flow counts on it. `rule`: the one that it matched, if somebody wants to be
    /// told of the rule's application.
    pub(crate) fn conclude(
        &mut self,
        now: Nanos,
        meta: &Meta,
        conversation: u32,
        lookup: Option<&Lookup>,
        rule: Option<(&Rules, &Pdr)>,
    ) {
        let Some(Some(shard)) = self.shards.get_mut(usize::from(meta.shard)) else { return };
        let Some(conversations) = &mut shard.conversations else { return };
        conversations.forget_unused(conversation);
        let Some(((rules, pdr), lookup)) = rule.zip(lookup) else { return };
        // The SMF is told of the application that it has named, whichever part of it this is.
        let named = pdr.application.filter(|it| conversations.is_untold(conversation, *it));
        let Some(application) = named else { return };
        let counters = &mut self.counters.inspection;
        if !self.rates.applications.allow(now) {
            counters.untold += 1;
            return;
        }
        counters.begun += 1;
        let prefix = rules.ue_ipv6.map_or(0, |prefix| upper_half(prefix.network()));
        let Tuple { source, destination, ports, protocol, .. } = lookup.key.tuple(prefix);
        let mut ends = [(source, ports.map(|ports| ports.0)), (destination, ports.map(|ports| ports.1))];
        if !pdr.source.is_uplink() {
            ends.reverse();
        }
        let (seid, pdr, instance) = (rules.seid, pdr.id, (now, conversation));
        let begins = Detection { begins: true, seid, pdr, application, instance, ends, protocol };
        conversations.tell(conversation, begins);
    }
}
