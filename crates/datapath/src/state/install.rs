//! Sessions come, change and go: what one keeps of what it was, and what packets find from then on.

use crate::command::Refusal;
use crate::state::account::Books;
use crate::state::compile::{compile, rule_record};
use crate::state::formers;
use crate::state::record::Record;
use crate::state::runs::Run;
use crate::state::shard::{Session, Shard};
use crate::state::{flow, police};
use pfcp::{FarId, UrrId};
use session::ShardId;
use session::rules::{Action, Destination, Forward, Rules, Tunnel};
use session::usage::{Trigger, Usage};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;

/// What installing a session changed.
#[derive(Debug, Default)]
pub struct Installed {
    /// The session existed before.
    pub found: bool,
    /// The slot held another session, which is forgotten: its packets are discarded.
    pub replaced: bool,
    /// Final usage of URRs that are gone, and usage that was asked for.
    pub usage: Vec<Usage>,
    /// Tunnels that end with an end marker.
    pub left: Vec<(IpAddr, packet::Teid)>,
    /// Mirrors of the session that was replaced.
    pub mirrors: Vec<u16>,
}

impl<F> Shard<F> {
    /// Makes the session be these rules. `peers` are the worker's peers by FAR, already counted; those of the rules
    /// before are returned to be given back.
    pub(crate) fn install(
        &mut self,
        rules: &Arc<Rules>,
        peers: Box<[u16]>,
        query: &[UrrId],
        end_markers: &[FarId],
        now: Nanos,
    ) -> Result<(Installed, Box<[u16]>), Refusal> {
        let slot = rules.place.slot;
        if slot >= self.max_sessions {
            return Err(Refusal::SlotBeyondLimit);
        }
        let tunnels = tunnel_slots(rules, self.id());
        self.make_places(slot, &tunnels);
        self.switch_paths(now, slot, rules, tunnels.iter().copied());
        self.fold(slot);
        let before = self.sessions.get_mut(slot as usize).and_then(Option::take);
        let mut session = self.new_session(rules, peers, &tunnels, now);
        let (mut installed, mut old_peers) = (Installed::default(), Box::default());
        if let Some(mut before) = before {
            self.unlink(slot, &before);
            if before.rules.seid == rules.seid {
                installed = self.inherit(&mut session, &mut before, query, end_markers, now);
            } else {
                // A new session in a slot that was never removed keeps nothing of the old one.
                installed.replaced = true;
                installed.mirrors = std::mem::take(&mut before.mirrors);
            }
            session.waiting = std::mem::take(&mut before.waiting);
            old_peers = std::mem::take(&mut before.peers);
            self.give_back(&before, installed.replaced);
        }
        self.count_peers(&session.peers, &old_peers);
        self.classify_anew(&mut session);
        self.publish(slot, session, &tunnels);
        Ok((installed, old_peers))
    }

    /// Forgets a session: its books after folding, for the final report.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Box<Session<F>>> {
        self.fold(slot);
        let session = self.sessions.get_mut(slot as usize).and_then(Option::take)?;
        self.unlink(slot, &session);
        self.give_back(&session, true);
        self.count_peers(&[], &session.peers);
        Some(session)
    }

    /// Places for a session and its tunnels.
    fn make_places(&mut self, slot: u32, tunnels: &[(u16, Tunnel)]) {
        if self.sessions.len() <= slot as usize {
            self.sessions.resize_with(slot as usize + 1, || None);
            self.downlink.resize(slot as usize + 1, Record::default());
        }
        if let Some((last, _)) = tunnels.last()
            && self.tunnels.len() <= usize::from(*last)
        {
            self.tunnels.resize(usize::from(*last) + 1, Record::default());
        }
    }

    /// A session that was nothing before, with meters and markers of its own.
    fn new_session(
        &mut self,
        rules: &Arc<Rules>,
        peers: Box<[u16]>,
        tunnels: &[(u16, Tunnel)],
        now: Nanos,
    ) -> Session<F> {
        let depth = self.depth();
        let meters = self.meters.allocate(rules.qers.len() as u16);
        police::set_meters(self.meters.get_mut(meters), rules);
        let markers = self.markers.allocate(police::markers_needed(rules));
        police::set_markers(self.markers.get_mut(markers), rules, &[], None, now, depth);
        Session {
            rules: Arc::clone(rules),
            books: Books::new(rules),
            peers,
            waiting: VecDeque::new(),
            shared_meter: false,
            tunnels: tunnels.iter().map(|(slot, _)| *slot).collect(),
            of_all: self.conversations.as_ref().is_some_and(|conversations| conversations.of_all),
            prefix: rules.ue_ipv6.and_then(|prefix| self.prefixes.key_of(prefix)),
            meters,
            markers,
            rule_records: Run::default(),
            versions: (self.next_version, self.next_version),
            flows: 0,
            current: 0,
            mirrors: Vec::new(),
            drops: Vec::new(),
        }
    }

    /// The session has other rules, and keeps what it was `before` of what both know: counts, fill levels, flows, mirrors.
    fn inherit(
        &mut self,
        session: &mut Session<F>,
        before: &mut Session<F>,
        query: &[UrrId],
        end_markers: &[FarId],
        now: Nanos,
    ) -> Installed {
        let (old, rules) = (&before.rules, &session.rules);
        let has = |urr: &UrrId| rules.urrs.binary_search_by_key(urr, |rule| rule.id).is_ok();
        let asked: Vec<_> = query.iter().copied().filter(has).collect();
        let mut usage = Vec::new();
        if !asked.is_empty() {
            usage = before.books.report(old, &asked, Trigger::Immediate);
        }
        let (books, mut last) = Books::succeed(&before.books, old, rules);
        usage.append(&mut last);
        let depth = self.depth();
        let known = self.meters.get(before.meters).to_vec();
        police::resume_meters(self.meters.get_mut(session.meters), rules, &known, old);
        let known = self.markers.get(before.markers).to_vec();
        let markers = self.markers.get_mut(session.markers);
        police::set_markers(markers, rules, &known, Some(old), now, depth);
        let left = left_tunnels(old, rules, end_markers);
        // Flows know a rule by its number: as long as all numbers mean the same, they stay in force.
        if needs_rule_records(session) && flow::same_classification(old, rules) {
            session.versions.1 = before.versions.1;
            session.current = std::mem::take(&mut before.current);
            session.rule_records = std::mem::take(&mut before.rule_records);
        }
        session.books = books;
        (session.versions.0, session.flows) = (before.versions.0, before.flows);
        session.drops = std::mem::take(&mut before.drops);
        session.mirrors = std::mem::take(&mut before.mirrors);
        Installed { found: true, usage, left, ..Installed::default() }
    }

    /// A session, or what one was, gives back what is left of it. Its flows are of a former classification from now on, or of nobody's if it
    /// is gone.
    fn give_back(&mut self, session: &Session<F>, is_gone: bool) {
        formers::retire(&mut self.formers, session);
        if is_gone {
            self.orphans += formers::bereave(&mut self.formers, session);
        }
        self.meters.free(session.meters);
        self.markers.free(session.markers);
        self.rules.free(session.rule_records);
    }

    /// The session's flows are classified by its rules, if they need it and don't go on as they were.
    fn classify_anew(&mut self, session: &mut Session<F>) {
        if needs_rule_records(session) && session.rule_records.len() == 0 {
            session.rule_records = self.rules.allocate(session.rules.pdrs.len() as u16);
            self.next_version = self.next_version.wrapping_add(1);
        }
    }

    /// Packets find the session from now on: makes its records, those of its rules first, and enters its addresses.
    fn publish(&mut self, slot: u32, mut session: Session<F>, tunnels: &[(u16, Tunnel)]) {
        for (index, record) in self.rules.get_mut(session.rule_records).iter_mut().enumerate() {
            *record = rule_record(&session, slot, index as u16);
        }
        let (own_rules, own_meters) = (self.rules.get(session.rule_records), self.meters.get(session.meters));
        for (place, tunnel) in tunnels {
            let (record, shared) = compile(&session, own_rules, own_meters, slot, Some(*tunnel));
            session.shared_meter |= shared;
            if let Some(to) = self.tunnels.get_mut(usize::from(*place)) {
                *to = record;
            }
        }
        let (record, shared) = compile(&session, own_rules, own_meters, slot, None);
        session.shared_meter |= shared;
        if let Some(to) = self.downlink.get_mut(slot as usize) {
            *to = record;
        }
        self.link(slot, &session);
        if let Some(place) = self.sessions.get_mut(slot as usize) {
            *place = Some(Box::new(session));
        }
        self.mark_mirrored(slot);
        self.grant(slot);
    }

    fn link(&mut self, slot: u32, session: &Session<F>) {
        self.live += 1;
        self.divided += usize::from(session.rule_records.len() > 0);
        // A full map leaves the address unknown: its packets are dropped and counted, nothing breaks.
        if let Some(address) = session.rules.ue_ipv4 {
            self.ambiguous |= self.by_ipv4.insert(address.into(), slot) != Ok(None);
        }
        if let Some(prefix) = session.prefix {
            self.ambiguous |= self.by_prefix.insert(prefix, slot) != Ok(None);
        }
    }

    fn unlink(&mut self, slot: u32, session: &Session<F>) {
        self.live -= 1;
        self.divided -= usize::from(session.rule_records.len() > 0);
        let rules = &session.rules;
        if let Some(address) = rules.ue_ipv4
            && self.by_ipv4.get(&address.into()) == Some(slot)
        {
            self.by_ipv4.remove(&address.into());
        }
        if let Some(prefix) = session.prefix
            && self.by_prefix.get(&prefix) == Some(slot)
        {
            self.by_prefix.remove(&prefix);
        }
        for tunnel in &session.tunnels {
            if let Some(record) = self.tunnels.get_mut(*tunnel as usize)
                && u32::from(record.session) == slot
            {
                *record = Record::default();
            }
        }
        if let Some(record) = self.downlink.get_mut(slot as usize) {
            *record = Record::default();
        }
        self.ambiguous &= self.live > 0;
    }
}

/// Whether packets of the session's rules are led to records of their own.
fn needs_rule_records<F>(session: &Session<F>) -> bool {
    session.of_all || flow::needs_rule_records(&session.rules)
}

/// Tunnels towards the radio that these FARs were sending into before and no longer do, although they still forward: a
/// path switch (TS 29.244 §5.2.3, TS 23.501 §5.8.2.9). A FAR that keeps its tunnel gets no end marker, whatever the SMF asks.
fn left_tunnels(before: &Rules, after: &Rules, fars: &[FarId]) -> Vec<(IpAddr, packet::Teid)> {
    let mut left = Vec::new();
    for far in before.fars.iter().filter(|far| fars.contains(&far.id)) {
        let Action::Forward(Forward { outer_header: Some(old), destination: Destination::Access, .. }) =
            far.action
        else {
            continue;
        };
        let now = after.fars.binary_search_by_key(&far.id, |f| f.id).ok().and_then(|i| after.fars.get(i));
        if let Some(Action::Forward(Forward { outer_header: Some(new), .. })) = now.map(|far| far.action)
            && new != old
            && !left.contains(&(old.peer, old.teid))
        {
            left.push((old.peer, old.teid));
        }
    }
    left
}

/// The session's tunnels in this shard, in the order of their slots, each once.
fn tunnel_slots(rules: &Rules, shard: ShardId) -> Vec<(u16, Tunnel)> {
    let tunnels = rules.pdrs.iter().filter_map(|pdr| pdr.tunnel);
    let mut slots: Vec<_> = tunnels
        .filter(|tunnel| tunnel.place.shard == shard && tunnel.teid.0 != 0)
        .map(|tunnel| (tunnel.place.slot, tunnel))
        .collect();
    slots.sort_unstable_by_key(|(slot, _)| *slot);
    slots.dedup_by_key(|(slot, _)| *slot);
    slots
}
