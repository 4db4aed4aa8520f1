//! What would the fast path do with a flow's packets, and can that be said in a rule?

use super::Mode;
use super::aggregate::Measured;
use super::share::{Limit, can_be_shared};
use super::sight::Sighting;
use crate::command::Event;
use crate::config::CheckSource;
use crate::counters::Traffic;
use crate::datapath::Datapath;
use crate::meta::{Kind, Meta};
use crate::network::Way;
use crate::network::near;
use crate::outbox::Outbox;
use crate::stages::serve::Encapsulation;
use crate::state::account::Counted;
use crate::state::export::Ledger;
use crate::state::police;
use crate::state::record::{Record, flag};
use crate::state::shard::Shard;
use io::Frame;
use io::offload::{Action, Container, CounterId, FlowRule, MeterId, TunnelMatch};
use pfcp::Seid;
use session::rules::Rules;
use session::usage::Usage;
use std::sync::Arc;
use tables::Nanos;

counters::labels! {
    /// Why no rule was made for a flow.
    pub enum Ineligible: "reason" {
        Gone = "gone", "Heavy, but over before their turn came.";
        Complex = "complex", "Heavy, but their packets are judged one by one.";
        Metered = "metered", "Heavy, but limited by a rate that a NIC can't have a share of.";
        NoWay = "no-way", "Heavy, but not routed to a neighbour that is known.";
        Credit = "credit", "Heavy, but too near to a volume threshold or quota.";
    }
}

/// A rule for a flow, and whose account its packets go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub rule: FlowRule,
    /// Slot of the session.
    pub session: u32,
    pub seid: Seid,
    /// Index of its rule.
    pub pdr: u16,
    pub uplink: bool,
    /// Octets in front of the user's packet when it is counted.
    pub front: u16,
    /// What its packets' rate is limited by, the worker's share of which doesn't count for them.
    pub limits: Vec<Limit>,
    /// The URRs that measure before the limits.
    pub measured: Option<Measured>,
    /// Its slice's place, uplink or downlink, where its packets are counted, too.
    pub slice: Option<u32>,
}

impl Plan {
    /// The rule, with a device's meters for the limits and its counter in front of them.
    pub fn rule_with(&self, counter: Option<CounterId>, meters: &[MeterId]) -> FlowRule {
        let mut rule = self.rule.clone();
        // Behind the headers' removal, where the length is the one that is limited.
        let at = rule.actions.len().min(1);
        let meters = meters.iter().map(|meter| Action::Meter(*meter));
        rule.actions.splice(at..at, counter.map(Action::CountFor).into_iter().chain(meters));
        rule
    }
}

/// All that a rule can say of a record. What isn't among these makes a flow ineligible, so that a flag that is added
/// to records one day isn't overlooked here.
const SAID: u32 = flag::LIVE
    | flag::UPLINK
    | flag::OUTER
    | flag::TO_ACCESS
    | flag::CONTAINER
    | flag::MARK
    | flag::MATCH
    | flag::REFLECTIVE
    | flag::LINK_LOCAL
    | flag::MORE_SOURCES
    | flag::ANY_SOURCE
    | flag::METERED
    | flag::SHARED_METERS
    | flag::DSCP_BY_QFI;

impl<F: Frame> Datapath<F> {
    /// The record that serves a flow's packets.
    fn serving(&self, sighting: &Sighting) -> Result<&Record, Ineligible> {
        let gone = Ineligible::Gone;
        let shard = self.shards.get(sighting.shard as usize).and_then(Option::as_deref).ok_or(gone)?;
        let kind = if sighting.pattern.tunnel.is_some() { Kind::Tunnel } else { Kind::Plain };
        let teid = sighting.pattern.tunnel.map_or(0, |tunnel| tunnel.teid);
        let meta = Meta { kind, teid, slot: sighting.slot, ..Meta::EMPTY };
        let record = shard.record(&meta).ok_or(gone)?;
        let rule = if record.has(flag::FLOWS) {
            let flow = sighting.key.as_ref().and_then(|key| shard.flows.get(key)).ok_or(gone)?;
            (flow.version == record.flow_version()).then_some(flow.rule).ok_or(gone)?
        } else if sighting.key.is_some() {
            return Err(gone);
        } else if record.has(flag::DIRECT) {
            record.rule()
        } else {
            return Ok(record);
        };
        shard.rules.elements().get(rule as usize).ok_or(gone)
    }

    /// The rule for a flow.
    pub(crate) fn plan(&self, sighting: &Sighting, mode: Mode) -> Result<Plan, Ineligible> {
        let record = self.serving(sighting)?;
        let (shard, slot) = (sighting.shard, u32::from(record.session));
        let session = self.shards.get(shard as usize).and_then(Option::as_deref);
        let session = session.and_then(|shard| shard.session(slot)).ok_or(Ineligible::Gone)?;
        let arrival = self.network.fib.interface(sighting.interface).ok_or(Ineligible::Gone)?;
        let l2 = if arrival.vlan.is_some() { 18 } else { 14 };
        let front = l2 + sighting.pattern.tunnel.as_ref().map_or(0, tunnel_header);
        let mut plan = Plan {
            rule: FlowRule {
                pattern: sighting.pattern,
                longest: u16::MAX,
                may_exceed: false,
                actions: vec![Action::Count],
            },
            limits: Vec::new(),
            measured: None,
            slice: None,
            session: slot,
            seid: session.rules.seid,
            pdr: record.pdr,
            uplink: record.has(flag::UPLINK),
            front,
        };
        if let Mode::Partial { queue } = mode {
            plan.rule.actions.push(Action::Queue(queue));
            return Ok(plan);
        }
        if record.flags & (flag::METERED | flag::SHARED_METERS) != 0 {
            self.add_limits(&mut plan, &session.rules, sighting)?;
        }
        // What happens to packets beside what their record says.
        let translated = self.nat.is_some() && !record.has(flag::OUTER);
        // A device doesn't look from where a tunnel's packets come.
        let checked = self.config.check_source != CheckSource::Off && sighting.pattern.tunnel.is_some();
        let beside = self.taps.plain == 0 || self.config.marking.is_any() || translated || checked;
        if record.flags & !SAID != 0 || beside {
            return Err(Ineligible::Complex);
        }
        let (longest, hop, headers, port) = self.way_of(sighting, record)?;
        plan.rule.longest = longest;
        plan.rule.may_exceed = arrival.mtu.saturating_sub(front - l2) > longest;
        plan.rule.actions.push(Action::Decap);
        if !plan.limits.is_empty() {
            // What a meter drops isn't counted; what passes has nothing in front any more when it is.
            plan.rule.actions.swap(0, 1);
            plan.front = 0;
        }
        if hop {
            plan.rule.actions.push(Action::DecTtl);
        }
        plan.rule.actions.push(Action::Encap(headers.into()));
        plan.rule.actions.push(Action::Port(port));
        Ok(plan)
    }

    /// What limits the rate of a plan's packets, what is measured before that, and their slice.
    fn add_limits(&self, plan: &mut Plan, rules: &Rules, sighting: &Sighting) -> Result<(), Ineligible> {
        let &Sighting { shard, port, .. } = sighting;
        let Plan { pdr, uplink, session, seid, .. } = *plan;
        for qer in police::limited_qers(rules, pdr, uplink) {
            let qer = rules.qers.get(qer as usize).ok_or(Ineligible::Gone)?;
            let rate = police::plain_maximum(qer, uplink);
            rate.filter(|rate| can_be_shared(*rate, self.config.meter_burst)).ok_or(Ineligible::Metered)?;
            plan.limits.push(Limit { shard, session, seid, qer: qer.id, uplink });
        }
        if let Some(slice) = rules.slice {
            let place = 2 * u32::from(slice) + u32::from(!uplink);
            let share = self.slices.get(place as usize);
            share.filter(|share| share.is_unlimited()).ok_or(Ineligible::Metered)?;
            plan.slice = Some(place);
        }
        // What meters drop is measured, too.
        let urrs = rules.pdrs.get(pdr as usize).map_or(&[][..], |pdr| &pdr.urrs);
        let mut urrs = urrs.iter().filter_map(|urr| rules.urrs.get(*urr as usize));
        if !plan.limits.is_empty() && urrs.any(|urr| urr.before_enforcement && !urr.inactive) {
            plan.measured = Some(Measured { port, shard, session, seid, pdr });
        }
        Ok(())
    }

    /// The longest packet that may take the flow's way out, whether that is a hop, the headers, and the port.
    fn way_of(&self, sighting: &Sighting, record: &Record) -> Result<(u16, bool, Vec<u8>, u16), Ineligible> {
        let tunnel = sighting.pattern.tunnel;
        if !record.has(flag::OUTER) {
            let destination = sighting.pattern.destination.filter(|_| tunnel.is_some());
            let destination = destination.ok_or(Ineligible::Complex)?;
            let fib = &self.network.fib;
            let (routed, v6) = (fib.route(destination), destination.is_ipv6());
            let steered = fib.steered(record.choice().policy, routed, v6);
            let egress = match self.network.way(steered.unwrap_or(routed)) {
                Way::Via(egress) => Some(egress),
                Way::OnLink(interface) if near::address(near::key(destination)).is_some() => {
                    self.network.neighbours.way(*interface, destination)
                }
                _ => None,
            };
            let egress = egress.ok_or(Ineligible::NoWay)?;
            if steered.is_none() && !fib.serves(egress.interface, record.instance()) {
                return Err(Ineligible::NoWay);
            }
            let headers = egress.header(sighting.pattern.v6);
            return egress
                .resolved
                .then_some((egress.mtu, true, headers, egress.port))
                .ok_or(Ineligible::NoWay);
        }
        // A container towards the radio takes more from the one that came than a pattern says.
        if tunnel.is_some() && record.has(flag::TO_ACCESS) && !record.has(flag::MARK) {
            return Err(Ineligible::Complex);
        }
        let mut meta = Meta::EMPTY;
        if let Some(TunnelMatch { container: Container::Qfi(qfi), .. }) = tunnel {
            meta.qfi = qfi;
        }
        let way = Encapsulation::of(record, &meta, meta.qfi);
        let peer = self.network.peers.get(way.peer).ok_or(Ineligible::NoWay)?;
        let egress = peer.egress.as_ref().filter(|egress| egress.resolved).ok_or(Ineligible::NoWay)?;
        let longest = crate::stages::serve::room(egress, &peer.outer, &way);
        Ok((longest, tunnel.is_none(), way.headers(egress, &peer.outer), egress.port))
    }

    /// Bytes that a session's rule may still count before one of its limits is reached.
    pub(crate) fn credit_of(&self, shard: u16, session: u32, pdr: u16) -> u64 {
        let shard = self.shards.get(shard as usize).and_then(Option::as_deref);
        let session = shard.and_then(|shard| shard.session(session));
        session.map_or(0, |session| session.books.unclaimed(&session.rules, pdr))
    }

    /// Enters what a device has forwarded of a flow between `since` and `now`: in the books, in the flow's own counters, in
    /// the worker's.
    pub(crate) fn enter_offloaded(
        &mut self,
        (since, now): (Nanos, Nanos),
        sighting: &Sighting,
        plan: &Plan,
        (packets, bytes): (u64, u64),
        out: &mut Outbox<F>,
    ) {
        if (packets, bytes) == (0, 0) {
            return;
        }
        let Some(Some(shard)) = self.shards.get_mut(sighting.shard as usize) else { return };
        if shard.session(plan.session).is_none_or(|session| session.rules.seid != plan.seid) {
            return;
        }
        if let Some(key) = &sighting.key {
            let (export, counters) = (&mut self.export, &mut self.counters.flows);
            let mut ledger = Ledger { now, export, counters, room: &mut self.room };
            shard.count_offloaded(key, packets, bytes, &mut ledger);
        }
        // The worker doesn't see that packets go there.
        if let Some(destination) = sighting.pattern.destination
            && let Way::OnLink(interface) = *self.network.way(self.network.fib.route(destination))
        {
            self.network.neighbours.touch(interface, destination);
        }
        let counted = if plan.measured.is_some() { Counted::Passed } else { Counted::Everywhere };
        let reports = settle(shard, plan.session, plan.pdr, counted, (packets, bytes), (since, now));
        self.counters.forwarded_by_device(plan.uplink, packets, bytes);
        if let Some(share) = plan.slice.and_then(|place| self.slices.get_mut(place as usize)) {
            share.count(Traffic { packets, bytes });
        }
        if !reports.is_empty() {
            out.events.push(Event::Usage { seid: plan.seid, usage: reports });
        }
    }

    /// Enters what has arrived in a device for a rule between `since` and `now`, before its rate was limited.
    pub(crate) fn enter_arrived(
        &mut self,
        times: (Nanos, Nanos),
        of: &Measured,
        counts: (u64, u64),
        out: &mut Outbox<F>,
    ) {
        let Some(Some(shard)) = self.shards.get_mut(of.shard as usize) else { return };
        let session = shard.session(of.session).filter(|session| session.rules.seid == of.seid);
        if counts == (0, 0) || session.is_none() {
            return;
        }
        let reports = settle(shard, of.session, of.pdr, Counted::Arrived, counts, times);
        if !reports.is_empty() {
            out.events.push(Event::Usage { seid: of.seid, usage: reports });
        }
    }
}

/// Enters packets in a session's books: what is to be reported.
fn settle<F>(
    shard: &mut Shard<F>,
    slot: u32,
    pdr: u16,
    counted: Counted,
    counts: (u64, u64),
    times: (Nanos, Nanos),
) -> Vec<Usage> {
    shard.fold(slot);
    let mut reports = Vec::new();
    if let Some(session) = shard.session_mut(slot) {
        let rules = Arc::clone(&session.rules);
        session.books.settle(&rules, pdr, counted, counts, times, &mut reports);
    }
    shard.grant(slot);
    reports
}

/// Octets from the outer IP header to the user's packet.
fn tunnel_header(tunnel: &TunnelMatch) -> u16 {
    let ip = if tunnel.destination.is_ipv6() { 40 } else { 20 };
    ip + 8 + tunnel.container.header() as u16
}
