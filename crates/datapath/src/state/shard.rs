//! Everything mutable about a set of subscribers. A worker owns shards; moving one is handing over the box.

use crate::Reason;
use crate::config::CheckSource;
use crate::counters::Traffic;
use crate::lookups::UNKNOWN;
use crate::meta::{Kind, Meta};
use crate::network::peer::{Luggage, NO_PEER};
use crate::state::account::{self, Books};
use crate::state::conversation::{Conversations, Inquiry};
use crate::state::export::{End, Ledger};
use crate::state::feeder::Feeder;
use crate::state::flow::{self, Flow, Key, Lookup};
use crate::state::formers::Formers;
use crate::state::police::{self, Meters, Place, Policers, enforce};
use crate::state::record::{MAX_SESSIONS, Record, flag};
use crate::state::rules::remote;
use crate::state::runs::{Run, Runs};
use crate::state::slice::Share;
use crate::state::waiting::Waiting;
use pfcp::Seid;
use session::rules::Rules;
use session::usage::Usage;
use session::{PrefixLengths, ShardId};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use tables::flow::{FlowId, FlowProbe, FlowTable};
use tables::prefetch::prefetch_slice_at;
use tables::{BulkMap, Colour, Lookup as _, Marker, Nanos, Supply};

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
    pub(crate) tunnels: Box<[u16]>,
    /// All its flows are inspected.
    pub(crate) of_all: bool,
    /// The key of its IPv6 prefix, if that has one.
    pub(crate) prefix: Option<u64>,
    /// Its QERs' meters, among the shard's.
    pub(crate) meters: Run,
    /// Its QERs' markers, among the shard's.
    pub(crate) markers: Run,
    /// Its PDRs' records, among the shard's, if packets are led to them.
    pub(crate) rule_records: Run,
    /// Versions of its classification: the first, and the one in force.
    pub(crate) versions: (u32, u32),
    /// Its flows.
    pub flows: u32,
    /// Those of the version in force.
    pub(crate) current: u32,
    /// Its mirrors, by number.
    pub(crate) mirrors: Vec<u16>,
    pub(super) drops: Vec<(Reason, u64)>,
}

impl<F> Session<F> {
    /// Counts a drop of one of the session's packets.
    pub fn drop(&mut self, reason: Reason) {
        self.drop_many(reason, 1);
    }

    /// Counts drops of the session's packets.
    pub fn drop_many(&mut self, reason: Reason, packets: u64) {
        match self.drops.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, n)) => *n += packets,
            None => self.drops.push((reason, packets)),
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

/// See the module's documentation.
#[derive(Debug)]
pub struct Shard<F> {
    id: ShardId,
    /// By TEID slot.
    pub(crate) tunnels: Vec<Record>,
    /// By TEID slot, as far as somebody was heard there: empty unless sources are checked.
    pub(crate) feeders: Vec<Feeder>,
    /// How they were heard.
    pub(crate) check_source: CheckSource,
    /// By session slot.
    pub(crate) downlink: Vec<Record>,
    /// Records of PDRs, for packets whose flow says which: a run for each session that needs it.
    pub(crate) rules: Runs<Record>,
    /// Meters of QERs: a run for each session.
    pub(crate) meters: Runs<Meters>,
    /// Markers of QERs that promise a rate: a run for each session that has any.
    pub(crate) markers: Runs<Marker>,
    /// Public endpoints that stand for UEs', if there is a NAT.
    pub(crate) nat: Option<Box<crate::nat::State>>,
    /// What is known of single flows.
    pub(crate) flows: FlowTable<Key, Flow>,
    /// Conversations that are inspected, if any are.
    pub(crate) conversations: Option<Box<Conversations>>,
    /// Whose flows of former versions are.
    pub(crate) formers: Formers,
    /// When its flows were last looked over.
    swept: Nanos,
    /// The version that the next classification gets.
    pub(super) next_version: u32,
    /// By session slot.
    pub(crate) sessions: Vec<Option<Box<Session<F>>>>,
    /// UE addresses.
    pub(crate) by_ipv4: BulkMap<u32, u32>,
    /// Keys of UE prefixes.
    pub(crate) by_prefix: BulkMap<u64, u32, 5>,
    /// There was an address, or a prefix, that more than one session had, or that found no room in its map: records don't say what the maps say.
    pub(super) ambiguous: bool,
    /// How many FARs use each peer, by its number.
    peers: HashMap<u16, u32>,
    /// How much of an IPv6 address is its key.
    pub(crate) prefixes: PrefixLengths,
    /// While the shard is between two workers.
    pub(crate) luggage: Option<Luggage>,
    /// Packets that wait in its sessions.
    pub(crate) buffered: u32,
    pub(super) live: usize,
    /// See [`Shard::divided`].
    pub(super) divided: usize,
    /// Flows of sessions that are gone.
    pub(crate) orphans: u32,
    /// The number below which they are looked for next.
    pub(crate) purging: u32,
    /// Reused where flows end.
    pub(crate) ended: Vec<(Key, Flow)>,
    pub(super) max_sessions: u32,
    /// Depth of a meter's bucket, in nanoseconds.
    depth: u64,
}

impl<F> Shard<F> {
    /// An empty shard for session slots below `max_sessions` and for `max_flows` flows, with meters that may be overdrawn for `depth`
    /// nanoseconds. The seed should be random.
    pub fn new(id: ShardId, max_sessions: u32, max_flows: u32, depth: u64, seed: u64) -> Self {
        Self {
            id,
            tunnels: Vec::new(),
            feeders: Vec::new(),
            check_source: CheckSource::Off,
            downlink: Vec::new(),
            rules: Runs::new(),
            meters: Runs::new(),
            markers: Runs::new(),
            nat: None,
            flows: FlowTable::new(seed.rotate_left(16), max_flows, Nanos(0)),
            conversations: None,
            formers: Formers::new(),
            swept: Nanos(0),
            next_version: 0,
            sessions: Vec::new(),
            by_ipv4: BulkMap::new(seed),
            by_prefix: BulkMap::new(seed.rotate_left(32)),
            ambiguous: false,
            peers: HashMap::new(),
            prefixes: PrefixLengths::default(),
            luggage: None,
            buffered: 0,
            live: 0,
            divided: 0,
            orphans: 0,
            purging: u32::MAX,
            ended: Vec::new(),
            max_sessions: max_sessions.min(MAX_SESSIONS),
            depth,
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

    /// Depth of a meter's bucket, in nanoseconds.
    pub(crate) const fn depth(&self) -> u64 {
        self.depth
    }

    /// Packets that wait in its sessions.
    pub const fn buffered(&self) -> usize {
        self.buffered as usize
    }

    /// The session in a slot.
    pub fn session(&self, slot: u32) -> Option<&Session<F>> {
        self.sessions.get(slot as usize)?.as_deref()
    }

    pub(crate) fn session_mut(&mut self, slot: u32) -> Option<&mut Session<F>> {
        self.sessions.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Sessions whose rules have records of their own.
    pub(crate) const fn divided(&self) -> usize {
        self.divided
    }

    /// The record of a user's packet, if its place is in use.
    #[inline(always)]
    pub(crate) fn record(&self, meta: &Meta) -> Option<&Record> {
        let record = match meta.kind {
            Kind::Tunnel => self.tunnels.get(meta.slot as usize).filter(|record| record.teid == meta.teid)?,
            Kind::Plain => self.downlink.get(meta.slot as usize)?,
            _ => return None,
        };
        record.has(flag::LIVE).then_some(record)
    }

    /// The record that says which way a packet goes: its own, or its rule's, where that is known by now.
    #[inline(always)]
    pub(crate) fn way_of(&self, meta: &Meta, rule: Option<u32>) -> Option<&Record> {
        let record = self.record(meta)?;
        let rule = match record.flags & (flag::FLOWS | flag::DIRECT) {
            0 => return Some(record),
            flag::DIRECT => record.rule(),
            _ => rule?,
        };
        self.rules.elements().get(rule as usize)
    }

    /// The record that leads a packet to its rule's, if there is one.
    #[inline(always)]
    fn leading(&self, meta: &Meta) -> Option<&Record> {
        self.record(meta).filter(|record| record.flags & (flag::FLOWS | flag::DIRECT) != 0)
    }

    /// First phase of a packet's way to its rule's record: which flow is it? Fetches the flow table's bucket.
    #[inline(always)]
    pub(crate) fn prepare(&self, meta: &Meta, frame: &[u8]) -> Option<Lookup> {
        self.look_up(meta, frame, |key| self.flows.prepare(key))
    }

    /// As [`Self::prepare`], where somebody says in which line the flow is: fetches that instead.
    #[inline(always)]
    pub(crate) fn prepare_by(&self, meta: &Meta, frame: &[u8], line: u32) -> Option<Lookup> {
        self.look_up(meta, frame, |key| match line {
            UNKNOWN => self.flows.prepare(key),
            line => self.flows.guess(key, line),
        })
    }

    #[inline(always)]
    fn look_up(&self, meta: &Meta, frame: &[u8], prepare: impl FnOnce(&Key) -> FlowProbe) -> Option<Lookup> {
        let record = self.leading(meta)?;
        if record.flags & flag::DIRECT != 0 {
            prefetch_slice_at(self.rules.elements(), record.rule() as usize);
            return None;
        }
        let key = Key::of(frame, meta, record.ue_prefix, record.tos_mask())?;
        Some(Lookup { key, probe: prepare(&key), rule: flow::NO_RULE })
    }

    /// The line of a flow that was looked up and is known.
    pub(crate) fn line_of(&self, lookup: &Lookup) -> Option<u32> {
        self.flows.finish(lookup.probe, &lookup.key).map(FlowId::line)
    }

    /// Whether the map of addresses has this slot for a plain packet's, told by the slot's record alone.
    #[inline(always)]
    pub(crate) fn is_at(&self, slot: u32, meta: &Meta) -> bool {
        let Some(record) = self.downlink.get(slot as usize).filter(|record| record.has(flag::LIVE)) else {
            return false;
        };
        let address = if meta.v6 { record.ue_prefix } else { u64::from(record.ue_ipv4) };
        // Zero stands for none.
        address == meta.key && address != 0 && !self.ambiguous
    }

    /// Second phase: fetches the flow. True: it isn't where most are, and this phase is wanted once more.
    #[inline(always)]
    pub(crate) fn locate(&self, lookup: &mut Lookup) -> bool {
        self.flows.step(&mut lookup.probe, &lookup.key)
    }

    /// Third phase: fetches the rule's record. False: the flow is not known, or its rule isn't yet.
    #[inline(always)]
    pub(crate) fn prefetch_rule(&mut self, lookup: &mut Lookup) -> bool {
        let Some(flow) = self.flows.confirm(lookup.probe, &lookup.key) else { return false };
        lookup.rule = flow.rule;
        prefetch_slice_at(self.rules.elements(), flow.rule as usize);
        lookup.is_settled()
    }

    /// Fourth phase: fetches the meters.
    #[inline(always)]
    pub(crate) fn prefetch_meters(&self, lookup: &Lookup) {
        let Some(record) = self.rules.elements().get(lookup.rule as usize) else { return };
        if record.flags & flag::SHARED_METERS != 0 {
            for number in record.shared_meters() {
                match police::place(number) {
                    Place::Meters(at) => prefetch_slice_at(self.meters.elements(), at as usize),
                    Place::Marker(at) => prefetch_slice_at(self.markers.elements(), at as usize),
                    Place::Slice => {}
                }
            }
        }
    }

    /// The number of the record of a session's PDR, if it has one that can serve packets.
    pub(crate) fn rule_record(&self, slot: u32, pdr: u16) -> Option<u32> {
        self.session(slot)?.rule_records.element(pdr).filter(|number| self.serves(*number))
    }

    /// Whether the rule's record of this number can serve packets.
    pub(crate) fn serves(&self, rule: u32) -> bool {
        self.rules.elements().get(rule as usize).is_some_and(|record| record.flags & flag::COMPLEX == 0)
    }

    /// Accounts a packet in its rule's record. `None`, and nothing done: the books have to be opened.
    pub(crate) fn passes(
        &mut self,
        slices: &mut [Share],
        rule: u32,
        length: u16,
        now: Nanos,
    ) -> Option<Colour> {
        let record = self.rules.elements_mut().get_mut(rule as usize)?;
        let mut policers = Policers {
            meters: self.meters.elements_mut(),
            markers: self.markers.elements_mut(),
            slices,
            depth: self.depth,
            last_word: false,
        };
        enforce(record, &mut policers, length, now)
    }

    /// The flow of a packet that was found to be this PDR's, with this packet counted. `None`: packets like it make none.
    pub(crate) fn flow_of(&self, meta: &Meta, pdr: u16, idle: u16, now: Nanos) -> Option<Flow> {
        let record = self.leading(meta).filter(|record| record.has(flag::FLOWS))?;
        let rule = self.session(u32::from(record.session))?.rule_records.element(pdr)?;
        let mut flow = Flow::new(rule, record.flow_version(), idle, now);
        flow.count(meta.len, now);
        Some(flow)
    }

    /// Whether a flow's session may have one more.
    pub(crate) fn may_have_more(&self, key: &Key, per_session: u32) -> bool {
        self.session_of(key).is_some_and(|session| session.flows < per_session)
    }

    /// Enters a flow that isn't known yet, for which there is room.
    pub(crate) fn add_flow(
        &mut self,
        lookup: &Lookup,
        mut flow: Flow,
        inquiry: Option<Inquiry>,
        supply: &mut Supply<Key, Flow>,
        ledger: &mut Ledger<'_>,
    ) {
        let key = lookup.key;
        let Some(session) = self.session_of_mut(&key) else { return };
        session.flows += 1;
        session.current += 1;
        let seid = session.rules.seid;
        if let (Some(inquiry), Some(conversations)) = (inquiry, &mut self.conversations) {
            // It has carried nothing before, so that its direction doesn't matter.
            conversations.join(&mut flow, inquiry, true, Traffic::default());
        }
        let Ok(evicted) = self.flows.enter_from(supply, lookup.probe, key, flow) else {
            ledger.counters.refused += 1;
            let uplink = self.is_uplink(&key, &flow);
            self.discount(&key, &flow);
            self.leave_conversation(&key, &flow, Some(seid), uplink);
            return;
        };
        ledger.counters.learned += 1;
        ledger.room.entered(self.id);
        if let Some((key, flow)) = evicted {
            ledger.counters.evicted += 1;
            self.flow_ended(&key, &flow, End::LackOfResources, ledger);
        }
        if flow.is_due(&ledger.export.marks) {
            self.flow_due(&key, (flow.packets(), flow.bytes()), ledger);
        }
    }

    /// A conversation is remembered as if one more flow counted on it, or no longer.
    pub(crate) fn hold(&mut self, inquiry: Option<Inquiry>, holds: bool) {
        if let (Some(Inquiry { answer, .. }), Some(conversations)) = (inquiry, &mut self.conversations) {
            conversations.hold(answer.conversation, holds);
        }
    }

    /// Number of the record of the rule that a flow goes by.
    pub(crate) fn rule_of(&self, flow: &Flow) -> u32 {
        self.conversations.as_ref().map_or(flow.rule, |conversations| conversations.rule(flow.rule))
    }

    /// The session that a flow is or was of, if it counts on a conversation.
    pub(crate) fn inspected_for(&self, key: &Key, flow: &Flow) -> Option<Seid> {
        match self.session_of(key) {
            _ if !flow.is_inspected() => None,
            Some(session) if session.versions.1 == flow.version => Some(session.rules.seid),
            _ => self.formers.get(&flow.version).map(|former| former.seid),
        }
    }

    /// A flow, of that session, counts on its conversation no longer, if it did.
    pub(crate) fn leave_conversation(&mut self, key: &Key, flow: &Flow, seid: Option<Seid>, uplink: bool) {
        if flow.is_inspected()
            && let Some(conversations) = &mut self.conversations
        {
            conversations.leave(&key.ends(), seid, flow, uplink);
        }
    }

    /// Forgets flows after a silence, and tells of those that have gone on for long.
    pub(crate) fn sweep_flows(&mut self, ledger: &mut Ledger<'_>) {
        let before = std::mem::replace(&mut self.swept, ledger.now);
        if self.flows.is_empty() {
            return;
        }
        let mut ended = std::mem::take(&mut self.ended);
        self.flows.expire(ledger.now, &mut |key, flow| ended.push((key, flow)));
        self.expect_ends(&ended);
        for (key, flow) in ended.drain(..) {
            ledger.counters.expired += 1;
            self.flow_ended(&key, &flow, End::IdleTimeout, ledger);
        }
        self.ended = ended;
        self.tell_active(before, ledger);
    }

    /// The slot of the session that is now in a flow's place.
    pub(crate) fn slot_of(&self, key: &Key) -> Option<u32> {
        match key.place() {
            (slot, true) => {
                let record = self.tunnels.get(slot as usize).filter(|record| record.has(flag::LIVE))?;
                Some(record.session.into())
            }
            (slot, false) => Some(slot),
        }
    }

    /// The session that is now in a flow's place.
    pub(crate) fn session_of(&self, key: &Key) -> Option<&Session<F>> {
        self.session(self.slot_of(key)?)
    }

    /// The same, to be changed.
    pub(crate) fn session_of_mut(&mut self, key: &Key) -> Option<&mut Session<F>> {
        self.session_mut(self.slot_of(key)?)
    }

    /// Opens the books: enters what the session's records counted by themselves.
    pub(crate) fn fold(&mut self, slot: u32) {
        self.with_records(slot, |session, meters, records| {
            for record in records {
                session.books.fold(&session.rules, meters, record);
            }
        });
    }

    /// Closes the books: copies meters back and grants new credit. The records must have been folded in.
    pub(crate) fn grant(&mut self, slot: u32) {
        self.with_records(slot, |session, meters, records| {
            let shares = records.len() as u32 + 1;
            for record in records.iter_mut() {
                account::unfold(&session.rules, meters, record);
            }
            session.books.grant(&session.rules, shares, records.iter_mut().map(|record| &mut **record));
        });
    }

    /// Hands a session, its meters and all its records to `work`.
    pub(crate) fn with_records<R>(
        &mut self,
        slot: u32,
        work: impl FnOnce(&mut Session<F>, &mut [Meters], &mut [&mut Record]) -> R,
    ) -> Option<R> {
        let session = self.sessions.get_mut(slot as usize)?.as_deref_mut()?;
        let meters = self.meters.get_mut(session.meters);
        let downlink = self.downlink.get_mut(slot as usize)?;
        let tunnels = self.tunnels.as_mut_slice();
        // Nearly every session has one tunnel and no flows.
        if let ([tunnel], 0) = (&*session.tunnels, session.rule_records.len()) {
            return match tunnels.get_mut(*tunnel as usize) {
                Some(record) => Some(work(session, meters, &mut [downlink, record])),
                None => Some(work(session, meters, &mut [downlink])),
            };
        }
        let mut records = vec![downlink];
        records.extend(self.rules.get_mut(session.rule_records));
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
        Some(work(session, meters, &mut records))
    }

    /// Judges a packet by the session's books; see [`Books::enforce`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the packet, the rule and the circumstances are plain values"
    )]
    pub(crate) fn enforce(
        &mut self,
        slices: &mut [Share],
        slot: u32,
        rules: &Rules,
        pdr: u16,
        bytes: u16,
        now: Nanos,
        exact: bool,
        reports: &mut Vec<Usage>,
    ) -> Result<Colour, Reason> {
        let Some(session) = self.sessions.get_mut(slot as usize).and_then(Option::as_deref_mut) else {
            return Err(Reason::NoRule);
        };
        let mut policers = Policers {
            meters: self.meters.get_mut(session.meters),
            markers: self.markers.get_mut(session.markers),
            slices,
            depth: self.depth,
            last_word: true,
        };
        session.books.enforce(rules, &mut policers, pdr, bytes, now, exact, reports)
    }

    pub(super) fn count_peers(&mut self, more: &[u16], less: &[u16]) {
        for number in more.iter().filter(|number| **number != NO_PEER) {
            *self.peers.entry(*number).or_default() += 1;
        }
        for number in less {
            if let Entry::Occupied(mut uses) = self.peers.entry(*number) {
                *uses.get_mut() -= 1;
                if *uses.get() == 0 {
                    uses.remove();
                }
            }
        }
    }

    /// The shard comes from workers whose peers have other numbers: gives every session's FARs the numbers of this one's.
    pub(crate) fn relink(&mut self, mut peer: impl FnMut(IpAddr) -> u16) {
        self.peers.clear();
        for slot in 0..self.sessions.len() as u32 {
            self.fold(slot);
            let Some(session) = self.session_mut(slot) else { continue };
            let peers: Box<[u16]> =
                session.rules.fars.iter().map(|far| remote(far.action).map_or(NO_PEER, &mut peer)).collect();
            session.peers.clone_from(&peers);
            self.count_peers(&peers, &[]);
            self.with_records(slot, |session, _, records| {
                for record in records.iter_mut().filter(|record| record.has(flag::OUTER)) {
                    if let Some(pdr) = session.rules.pdrs.get(record.pdr as usize) {
                        record.peer = session.peer(pdr.far);
                    }
                }
            });
            self.grant(slot);
        }
    }

    /// The peers that its sessions use, with the number of uses.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.peers.iter().map(|(number, uses)| (*number, *uses))
    }
}
