//! What is it? Where a rule asks for an application, whoever inspects is shown the packet.

use crate::datapath::Datapath;
use crate::inspect::{Detection, Direction, Payload};
use crate::meta::{Kind, Meta};
use crate::state::conversation::Known;
use crate::state::flow::{Lookup, Tuple};
use crate::state::rules::candidates;
use io::Frame;
use packet::IpPacket;
use session::prefixes::upper_half;
use session::rules::{Pdr, Rules};
use tables::Nanos;

impl<F: Frame> Datapath<F> {
    /// Whether all flows are inspected.
    pub(crate) fn inspects_all(&self) -> bool {
        self.config.inspection.as_ref().is_some_and(|inspection| inspection.of_all)
    }

    /// What is known before anybody is asked of a packet whose flow is `lookup`.
    pub(crate) const fn known_unasked(&self, lookup: Option<&Lookup>) -> Known {
        match (&self.config.inspection, lookup) {
            (Some(_), Some(_)) => Known::NOTHING,
            _ => Known::NONE,
        }
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
    ) -> Option<(u32, Known)> {
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
        shard.conversations.as_deref_mut()?.consult(whose, (&payload, direction), now, inspection, counters)
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
