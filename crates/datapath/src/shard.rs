//! Everything mutable about a set of subscribers. A worker owns shards; moving one is handing over the box.

use crate::Reason;
use crate::account::{Books, forwards, limited_qers};
use crate::peer::NO_PEER;
use crate::record::{Record, flag};
use crate::slow::Waiting;
use session::rules::{Action, Destination, Forward, Pdr, Prefix, Rules, Source, Tunnel};
use session::usage::Usage;
use session::{SessionRef, ShardId};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use tables::BulkMap;

/// One session: the part that most packets don't touch.
#[derive(Debug)]
pub struct Session<F> {
    /// What the SMF said, compiled.
    pub rules: Arc<Rules>,
    /// What was counted.
    pub books: Books,
    /// By FAR: the worker's index of the tunnel's far end.
    pub peers: Box<[u16]>,
    /// Packets waiting, oldest first.
    pub(crate) waiting: VecDeque<Waiting<F>>,
    /// A record's meter is also used by packets that the session classifies: copy it back and forth each time.
    pub shared_meter: bool,
    /// Slots of its tunnels.
    tunnels: Box<[u16]>,
    drops: Vec<(Reason, u64)>,
}

impl<F> Session<F> {
    /// Counts a drop of one of the session's packets.
    pub fn drop(&mut self, reason: Reason) {
        match self.drops.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, n)) => *n += 1,
            None => self.drops.push((reason, 1)),
        }
    }

    /// Drops by reason, in order.
    pub fn drops(&self) -> Vec<(Reason, u64)> {
        let mut drops = self.drops.clone();
        drops.sort_unstable();
        drops
    }

    /// The far end that a FAR sends to.
    pub fn peer(&self, far: u16) -> u16 {
        self.peers.get(far as usize).copied().unwrap_or(NO_PEER)
    }
}

/// Why a command was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The worker doesn't own the shard.
    NotOwned,
    /// The slot lies beyond the configured limit.
    SlotBeyondLimit,
    /// The table of GTP-U peers is full.
    TooManyPeers,
}

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
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Shard<F> {
    id: ShardId,
    /// By TEID slot.
    pub(crate) tunnels: Vec<Record>,
    /// By session slot.
    pub(crate) downlink: Vec<Record>,
    /// By session slot.
    pub(crate) sessions: Vec<Option<Box<Session<F>>>>,
    /// UE addresses.
    pub(crate) by_ipv4: BulkMap<u32, u32>,
    /// Upper halves of UE prefixes.
    pub(crate) by_prefix: BulkMap<u64, u32, 5>,
    /// By far end and TEID of a tunnel that a session sends into.
    by_remote: HashMap<(IpAddr, u32), u32>,
    live: usize,
    max_sessions: u32,
}

impl<F> Shard<F> {
    /// An empty shard for session slots below `max_sessions`. The seed should be random.
    pub fn new(id: ShardId, max_sessions: u32, seed: u64) -> Self {
        Self {
            id,
            tunnels: Vec::new(),
            downlink: Vec::new(),
            sessions: Vec::new(),
            by_ipv4: BulkMap::new(seed),
            by_prefix: BulkMap::new(seed.rotate_left(32)),
            by_remote: HashMap::new(),
            live: 0,
            max_sessions,
        }
    }

    /// Which shard this is.
    pub const fn id(&self) -> ShardId {
        self.id
    }

    /// How many sessions live here.
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether there are no sessions.
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Packets that wait in its sessions.
    pub fn buffered(&self) -> usize {
        self.sessions.iter().flatten().map(|session| session.waiting.len()).sum()
    }

    /// The session in a slot.
    pub fn session(&self, slot: u32) -> Option<&Session<F>> {
        self.sessions.get(slot as usize)?.as_deref()
    }

    pub(crate) fn session_mut(&mut self, slot: u32) -> Option<&mut Session<F>> {
        self.sessions.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The session that sends into this tunnel.
    pub fn by_remote(&self, peer: IpAddr, teid: u32) -> Option<&Session<F>> {
        self.session(*self.by_remote.get(&(peer, teid))?)
    }

    /// Opens the books: enters what the session's records counted by themselves.
    pub(crate) fn fold(&mut self, slot: u32) {
        self.with_records(slot, |session, records| {
            for record in records {
                session.books.fold(&session.rules, record);
            }
        });
    }

    /// Closes the books: copies meters back and grants new credit. The records must have been folded in.
    pub(crate) fn grant(&mut self, slot: u32) {
        self.with_records(slot, |session, records| {
            let shares = records.len() as u32 + 1;
            for record in records.iter_mut() {
                session.books.unfold(&session.rules, record);
            }
            session.books.grant(&session.rules, shares, records.iter_mut().map(|record| &mut **record));
        });
    }

    /// Hands a session and all its records to `work`.
    fn with_records<R>(
        &mut self,
        slot: u32,
        work: impl FnOnce(&mut Session<F>, &mut [&mut Record]) -> R,
    ) -> Option<R> {
        let session = self.sessions.get_mut(slot as usize)?.as_deref_mut()?;
        let downlink = self.downlink.get_mut(slot as usize)?;
        let tunnels = self.tunnels.as_mut_slice();
        // Nearly every session has one tunnel.
        if let [tunnel] = *session.tunnels {
            return match tunnels.get_mut(tunnel as usize) {
                Some(record) => Some(work(session, &mut [downlink, record])),
                None => Some(work(session, &mut [downlink])),
            };
        }
        let mut records = vec![downlink];
        // Sorted slots let the slice be cut into disjoint pieces.
        let mut rest = tunnels;
        let mut cut = 0usize;
        let slots = std::mem::take(&mut session.tunnels);
        for slot in &slots {
            let Some((_, after)) = std::mem::take(&mut rest).split_at_mut_checked(*slot as usize - cut)
            else {
                break;
            };
            let Some((record, after)) = after.split_first_mut() else { break };
            records.push(record);
            rest = after;
            cut = *slot as usize + 1;
        }
        session.tunnels = slots;
        Some(work(session, &mut records))
    }

    /// Makes the session be these rules. `peers` are the worker's peers by FAR, already counted; those of the rules
    /// before are returned to be given back.
    pub(crate) fn install(
        &mut self,
        rules: &Arc<Rules>,
        peers: Box<[u16]>,
        query: &[pfcp::UrrId],
        end_markers: &[pfcp::FarId],
    ) -> Result<(Installed, Box<[u16]>), Refusal> {
        let slot = rules.place.slot;
        let slots = tunnel_slots(rules, self.id);
        if slot >= self.max_sessions {
            return Err(Refusal::SlotBeyondLimit);
        }
        if self.sessions.len() <= slot as usize {
            self.sessions.resize_with(slot as usize + 1, || None);
            self.downlink.resize(slot as usize + 1, Record::default());
        }
        if let Some(last) = slots.iter().map(|(slot, _)| *slot as usize).max()
            && self.tunnels.len() <= last
        {
            self.tunnels.resize(last + 1, Record::default());
        }
        self.fold(slot);
        let before = self.sessions.get_mut(slot as usize).and_then(Option::take);
        let mut installed = Installed { found: before.is_some(), ..Installed::default() };
        let (mut books, mut waiting, mut drops, mut old_peers) =
            (Books::new(rules), VecDeque::new(), Vec::new(), Box::default());
        if let Some(before) = before {
            let mut before = *before;
            self.unlink(slot, &before);
            // A new session in a slot that was never removed keeps nothing of the old one.
            if before.rules.seid == rules.seid {
                let known: Vec<_> = query
                    .iter()
                    .copied()
                    .filter(|urr| rules.urrs.binary_search_by_key(urr, |u| u.id).is_ok())
                    .collect();
                if !known.is_empty() {
                    installed.usage =
                        before.books.report(&before.rules, &known, session::usage::Trigger::Immediate);
                }
                let (next, mut usage) = Books::succeed(&before.books, &before.rules, rules);
                books = next;
                installed.usage.append(&mut usage);
                installed.left = left_tunnels(&before.rules, rules, end_markers);
                drops = std::mem::take(&mut before.drops);
            } else {
                installed.found = false;
                installed.replaced = true;
            }
            waiting = std::mem::take(&mut before.waiting);
            old_peers = before.peers;
        }
        let mut session = Session {
            rules: Arc::clone(rules),
            books,
            peers,
            waiting,
            shared_meter: false,
            tunnels: slots.iter().map(|(slot, _)| *slot).collect(),
            drops,
        };
        for (place, tunnel) in &slots {
            let (record, shared) = compile(&session, slot, Some(*tunnel));
            session.shared_meter |= shared;
            if let Some(to) = self.tunnels.get_mut(*place as usize) {
                *to = record;
            }
        }
        let (record, shared) = compile(&session, slot, None);
        session.shared_meter |= shared;
        if let Some(to) = self.downlink.get_mut(slot as usize) {
            *to = record;
        }
        self.link(slot, rules);
        if let Some(place) = self.sessions.get_mut(slot as usize) {
            *place = Some(Box::new(session));
        }
        self.grant(slot);
        Ok((installed, old_peers))
    }

    /// Forgets a session: its books after folding, for the final report.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Box<Session<F>>> {
        self.fold(slot);
        let session = self.sessions.get_mut(slot as usize).and_then(Option::take)?;
        self.unlink(slot, &session);
        Some(session)
    }

    /// Every session's FARs with a tunnel, to be given this worker's peers.
    pub(crate) fn relink(&mut self, mut peer: impl FnMut(IpAddr) -> u16) {
        for slot in 0..self.sessions.len() as u32 {
            self.fold(slot);
            let Some(session) = self.session_mut(slot) else { continue };
            session.peers =
                session.rules.fars.iter().map(|far| remote(far.action).map_or(NO_PEER, &mut peer)).collect();
            self.with_records(slot, |session, records| {
                for record in records.iter_mut().filter(|record| record.has(flag::OUTER)) {
                    if let Some(pdr) = session.rules.pdrs.get(record.pdr as usize) {
                        record.peer = session.peer(pdr.far);
                    }
                }
            });
            self.grant(slot);
        }
    }

    /// The peers that its sessions use, once for each use.
    pub(crate) fn peers(&self) -> impl Iterator<Item = u16> + '_ {
        self.sessions.iter().flatten().flat_map(|session| session.peers.iter().copied())
    }

    fn link(&mut self, slot: u32, rules: &Rules) {
        self.live += 1;
        // A full map leaves the address unknown: its packets are dropped and counted, nothing breaks.
        if let Some(address) = rules.ue_ipv4 {
            let _ = self.by_ipv4.insert(address.into(), slot);
        }
        if let Some(prefix) = rules.ue_ipv6
            && prefix.prefix_len() == 64
        {
            let _ = self.by_prefix.insert(upper_half(prefix.network()), slot);
        }
        for tunnel in rules.fars.iter().filter_map(|far| tunnel_of(far.action)) {
            self.by_remote.insert(tunnel, slot);
        }
    }

    fn unlink(&mut self, slot: u32, session: &Session<F>) {
        self.live -= 1;
        let rules = &session.rules;
        if let Some(address) = rules.ue_ipv4
            && self.by_ipv4.get(&address.into()) == Some(slot)
        {
            self.by_ipv4.remove(&address.into());
        }
        if let Some(prefix) = rules.ue_ipv6
            && self.by_prefix.get(&upper_half(prefix.network())) == Some(slot)
        {
            self.by_prefix.remove(&upper_half(prefix.network()));
        }
        for tunnel in rules.fars.iter().filter_map(|far| tunnel_of(far.action)) {
            if self.by_remote.get(&tunnel) == Some(&slot) {
                self.by_remote.remove(&tunnel);
            }
        }
        for tunnel in &session.tunnels {
            if let Some(record) = self.tunnels.get_mut(*tunnel as usize)
                && record.session == slot
            {
                *record = Record::default();
            }
        }
        if let Some(record) = self.downlink.get_mut(slot as usize) {
            *record = Record::default();
        }
    }
}

/// The half of an IPv6 address that names a UE.
pub(crate) fn upper_half(address: Ipv6Addr) -> u64 {
    (u128::from(address) >> 64) as u64
}

fn tunnel_of(action: Action) -> Option<(IpAddr, u32)> {
    match action {
        Action::Forward(Forward { outer_header: Some(outer), .. }) => Some((outer.peer, outer.teid.0)),
        _ => None,
    }
}

/// The far end that an action sends to.
pub(crate) fn remote(action: Action) -> Option<IpAddr> {
    tunnel_of(action).map(|(peer, _)| peer)
}

/// Tunnels towards the radio that these FARs were sending into before and no longer do, although they still forward: a
/// path switch (TS 29.244 §5.2.3, TS 23.501 §5.8.2.9). A FAR that keeps its tunnel gets no end marker, whatever the SMF asks.
fn left_tunnels(before: &Rules, after: &Rules, fars: &[pfcp::FarId]) -> Vec<(IpAddr, packet::Teid)> {
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

/// The session's tunnels in this shard, by slot, each once.
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

/// The rules that can match packets of a tunnel, or (`None`) packets to the UE's address, best first.
pub(crate) fn candidates(rules: &Rules, tunnel: Option<u32>) -> impl Iterator<Item = (u16, &Pdr)> {
    let pdrs = rules.pdrs.iter().enumerate().map(|(index, pdr)| (index as u16, pdr));
    pdrs.filter(move |(_, pdr)| match (tunnel, pdr.tunnel) {
        (Some(teid), Some(tunnel)) => tunnel.teid.0 == teid,
        (None, None) => matches!(pdr.source, Source::Core | Source::N6Lan),
        _ => false,
    })
}

/// Whether all of a rule's filters ask for a destination that never leaves a link: the SMF's rule for router solicitations.
fn only_link_local(pdr: &Pdr) -> bool {
    !pdr.filters.is_empty()
        && pdr.filters.iter().all(|filter| match filter.destination {
            Some(Prefix::V6(net)) => {
                let first = net.network().segments()[0];
                (first >> 8 == 0xff && net.prefix_len() >= 8)
                    || (first & 0xffc0 == 0xfe80 && net.prefix_len() >= 10)
            }
            _ => false,
        })
}

/// The record for a tunnel, or (`None`) for the session's addresses; and whether its meter is shared with packets that the
/// session classifies.
fn compile<F>(session: &Session<F>, slot: u32, tunnel: Option<Tunnel>) -> (Record, bool) {
    let rules = &*session.rules;
    let teid = tunnel.map(|tunnel| tunnel.teid.0);
    let mut record = Record {
        teid: teid.unwrap_or(0),
        session: slot,
        flags: flag::LIVE | flag::COMPLEX,
        ..Record::default()
    };
    let mut link_local = 0;
    let Some((index, pdr)) = candidates(rules, teid).find(|(_, pdr)| {
        let skip = only_link_local(pdr);
        if skip {
            link_local = flag::LINK_LOCAL;
        }
        !skip
    }) else {
        return (record, false);
    };
    let uplink = pdr.source.is_uplink();
    let Some(Action::Forward(forward)) = rules.fars.get(pdr.far as usize).map(|far| far.action) else {
        return (record, false);
    };
    if !pdr.filters.is_empty() || pdr.qfis.len() > 1 || !forwards(rules, pdr) {
        return (record, false);
    }
    if forward.outer_header.is_none() && forward.destination == Destination::CpFunction {
        return (record, false);
    }
    let mut flags = flag::LIVE | link_local;
    if uplink {
        flags |= flag::UPLINK;
        record.ue_ipv4 = rules.ue_ipv4.map_or(0, u32::from);
        match rules.ue_ipv6 {
            Some(prefix) if prefix.prefix_len() == 64 => record.ue_prefix = upper_half(prefix.network()),
            Some(_) => flags |= flag::MORE_SOURCES,
            None => {}
        }
        if !rules.framed_ipv4.is_empty() || !rules.framed_ipv6.is_empty() {
            flags |= flag::MORE_SOURCES;
        }
        if rules.ue_ipv4.is_none() && rules.ue_ipv6.is_none() && forward.outer_header.is_some() {
            flags |= flag::ANY_SOURCE;
        }
    }
    let qers = || pdr.qers.iter().filter_map(|qer| rules.qers.get(*qer as usize));
    if let Some(outer) = forward.outer_header {
        flags |= flag::OUTER;
        record.remote_teid = outer.teid.0;
        record.peer = session.peer(pdr.far);
        if forward.destination != Destination::CpFunction {
            flags |= flag::CONTAINER;
        }
        if forward.destination == Destination::Access {
            flags |= flag::TO_ACCESS;
            if qers().any(|qer| qer.reflective) {
                flags |= flag::REFLECTIVE;
            }
        }
        if qers().any(|qer| qer.paging_policy.is_some()) {
            return (record, false);
        }
        if let Some(dscp) = forward.transport_marking {
            flags |= flag::MARK_DSCP;
            record.tos = dscp.to_tos();
        }
        if let Some(qfi) = qers().find_map(|qer| qer.qfi) {
            flags |= flag::MARK;
            record.qfi = qfi.get();
        }
    }
    if let [qfi] = *pdr.qfis {
        if flags & flag::MARK != 0 && record.qfi != qfi.get() {
            return (record, false);
        }
        flags |= flag::MATCH;
        record.qfi = qfi.get();
    }
    // One meter fits the record, if no other rule that can match draws on the same bucket.
    let mut limited = limited_qers(rules, index, uplink);
    let mut shared = false;
    if let Some(qer) = limited.next() {
        if limited.next().is_some() {
            return (record, false);
        }
        let others = rules.pdrs.iter().enumerate().filter(|(i, other)| {
            *i != index as usize && other.source.is_uplink() == uplink && other.qers.contains(&qer)
        });
        for (_, other) in others {
            let hidden = candidates(rules, teid).any(|(_, candidate)| candidate.id == other.id)
                && pdr.qfis.is_empty()
                && !only_link_local(other);
            if only_link_local(other) {
                shared = true;
            } else if !hidden {
                return (record, false);
            }
        }
        flags |= flag::METERED;
        record.meter = session.books.meter(qer, uplink);
    }
    record.flags = flags;
    record.pdr = index;
    (record, shared)
}

/// Where a session is, as one number: shard above, slot below.
pub(crate) const fn pack(place: SessionRef) -> u64 {
    (place.shard.index() as u64) << 32 | place.slot as u64
}
