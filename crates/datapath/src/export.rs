//! What is told of single flows: that they ended, that they go on, that they carried much.
//!
//! **Problem.** A flow's counters are in its line of the shard's table, and the line is gone when the flow ends. Somebody wants to
//! know: who talked to whom, for how long, how much. At a hundred thousand ends a second that must not hold a worker up, and
//! at a flood's million it must cost records, not packets.
//!
//! **Model.** Where a flow leaves the table it is made a [`FlowRecord`] of: its packets' addresses and ports, session and rule,
//! what it counted, when it began and ended, and the [`End`], as IPFIX names it. Records wait in a list of limited length for the next
//! tick, which sends them to control as a batch. What exceeds the list, the rate that was configured, or the room
//! in the ring to control is counted and forgotten.
//!
//! A flow's counts are of its whole life: a record of a flow that goes on ([`Told::Active`]) is an interim state, and the last one
//! says all. So the ended flows' records and the flows that live add up to the packets that flows served.
//!
//! **Whose flow was it?** A flow knows its rule by the number of the rule's record and by the version of its session's
//! classification. When the session is removed, or its filters change, the records go at once and the flows by and by. Until the
//! last one has ended, what is told of them is kept under the version ([`Former`]): at most one for each flow that lives, normally
//! none.
//!
//! **Watermarks** ([`Marks`]) ride on the compare that keeps a flow's counters from overflowing: the line that a packet counts in
//! says, too, what was told of it. One that is set while flows live is looked for in all of them, some thousand a tick, so that those
//! beyond it are told of at once.
//!
//! **Cost.** Per packet two compares within the flow's line. Per end a look at the flow's session, which the table's accounts need
//! anyhow, and 120 bytes copied. The walk for interim records reads each line once per active timeout.

use crate::command::Event;
use crate::counters::FlowCounters;
use crate::datapath::Datapath;
use crate::flow::{Flow, Key, Lookup, Reached};
use crate::room::Room;
use crate::shard::{Session, Shard, upper_half};
use io::Frame;
use pfcp::{PdrId, Seid};
use session::SHARDS;
use std::collections::HashMap;
use tables::flow::FlowKey;
use tables::{Nanos, RateLimiter};

pub use crate::flow::{Marks, Tuple};

/// Records in one event, at most.
const BATCH: usize = 256;
/// Records that wait for a tick, at most.
const WAITING: usize = 4096;
/// Lines that one tick looks at for a watermark that was set.
const LOOKED_BACK: u32 = 2048;
/// Lines that one visit to a shard looks at for interim records, at most.
const VISITED: u32 = 1024;
/// The longest active timeout, 26 days: so that places are computed in 64 bits.
const LONGEST_ACTIVE: u64 = 1 << 51;
/// Apart from the flow table's seeds.
const SAMPLING: u64 = 0x7f4a_7c15_9e37_79b9;

/// Why a flow ended: flowEndReason (IPFIX information element 136, RFC 5102 §5.11.3). There is no "end of flow detected" (3), since a TCP
/// connection's end isn't looked for: such a flow becomes idle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum End {
    /// No packet came for as long as was configured.
    IdleTimeout = 1,
    /// Its session or its rule is gone, or the worker stopped.
    ForcedEnd = 4,
    /// It made room for another flow, or its counters were full.
    LackOfResources = 5,
}

impl End {
    /// The name in logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::IdleTimeout => "idle-timeout",
            Self::ForcedEnd => "forced-end",
            Self::LackOfResources => "lack-of-resources",
        }
    }
}

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Told {
    /// It ended.
    Ended(End),
    /// It goes on (active timeout, flowEndReason 2): what it counted until now.
    Active,
    /// It has reached the watermark of so many bytes.
    Bytes(u64),
    /// It has reached the watermark of so many packets.
    Packets(u32),
}

/// A flow, as it is told to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// What about it.
    pub told: Told,
    /// Its packets.
    pub tuple: Tuple,
    /// The session that forwarded them.
    pub seid: Seid,
    /// By this rule.
    pub pdr: PdrId,
    /// Whether the rule is about packets from the UE.
    pub uplink: bool,
    /// Packets forwarded.
    pub packets: u64,
    /// Their bytes, of the UE's own packets.
    pub bytes: u64,
    /// When the first packet passed, to 17 ms.
    pub first: Nanos,
    /// When the last one passed.
    pub last: Nanos,
}

/// What is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Of one flow in so many, chosen by their addresses and ports: all that is told of a flow is told, or nothing. Watermarks
    /// are told of all. 0 is taken as 1.
    pub sample: u32,
    /// Records a second of this worker, at most; watermarks beside.
    pub per_second: u32,
    /// A flow that lives longer is told of each time that this has passed, in nanoseconds; 0: when it ends.
    pub active: u64,
    /// Watermarks at the start.
    pub marks: Marks,
}

impl Policy {
    /// Whether a flow is one of those that are told of.
    fn takes(&self, key: &Key) -> bool {
        self.sample <= 1 || ((key.hash(SAMPLING) >> 32) * u64::from(self.sample)) >> 32 == 0
    }
}

/// What waits to be told, and what is told at all.
#[derive(Debug)]
pub(crate) struct Export {
    policy: Option<Policy>,
    /// Watermarks in force.
    pub marks: Marks,
    limiter: RateLimiter,
    waiting: Vec<FlowRecord>,
    /// Shard, and the numbers below which its flows are still to be looked at for new watermarks.
    looking_back: Option<(usize, u32)>,
    /// The same for the end of all flows.
    closing: (usize, u32),
    /// Reused: flows that were visited.
    visited: Vec<(Key, Flow)>,
}

/// With what flows are accounted.
pub(crate) struct Ledger<'a> {
    pub now: Nanos,
    pub export: &'a mut Export,
    pub counters: &'a mut FlowCounters,
    pub room: &'a mut Room,
}

impl Export {
    pub fn new(policy: Option<Policy>) -> Self {
        let per_second = policy.map_or(0, |policy| policy.per_second);
        Self {
            policy: policy.map(|policy| Policy { active: policy.active.min(LONGEST_ACTIVE), ..policy }),
            marks: policy.map_or(Marks::NONE, |policy| policy.marks),
            limiter: RateLimiter::new(per_second, (per_second / 10).max(1)),
            waiting: Vec::new(),
            looking_back: None,
            closing: (0, u32::MAX),
            visited: Vec::new(),
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self, events: &mut Vec<Event>) {
        let mut waiting = self.waiting.drain(..);
        while waiting.len() > 0 {
            events.push(Event::Flows(waiting.by_ref().take(BATCH).collect()));
        }
    }
}

impl Ledger<'_> {
    fn tell(&mut self, told: Told, key: &Key, flow: &Flow, owner: Option<Owner>) {
        let Some(policy) = self.export.policy else { return };
        let is_mark = matches!(told, Told::Bytes(_) | Told::Packets(_));
        if !is_mark && !policy.takes(key) {
            self.counters.unsampled += 1;
            return;
        }
        let allowed = is_mark || self.export.limiter.allow(self.now);
        let Some(Owner { seid, pdr, uplink, prefix, .. }) =
            owner.filter(|_| allowed && self.export.waiting.len() < WAITING)
        else {
            self.counters.unexported += 1;
            return;
        };
        let ((first, last), packets) = (flow.times(), u64::from(flow.packets()));
        let tuple = key.tuple(prefix);
        let record = FlowRecord { told, tuple, seid, pdr, uplink, packets, bytes: flow.bytes(), first, last };
        self.export.waiting.push(record);
        self.counters.exported += 1;
    }
}

/// Whose a flow is or was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    seid: Seid,
    pdr: PdrId,
    uplink: bool,
    prefix: u64,
    /// The rule is still there, and would still be found.
    in_force: bool,
}

/// A session's classification that is no more, and of which there are flows.
#[derive(Debug)]
pub(crate) struct Former {
    seid: Seid,
    prefix: u64,
    /// Number that its first rule's record had.
    start: u32,
    /// Its rules, and whether they were about packets from the UE.
    rules: Box<[(PdrId, bool)]>,
    /// Flows that are left.
    flows: u32,
    /// The session is no more: they are looked for, and end.
    gone: bool,
}

/// By version.
pub(crate) type Formers = HashMap<u32, Former>;

/// Lines that one visit to a shard looks at for flows whose session is gone, and as many of them as it ends at most: some 50 us.
const PURGED: (u32, u32) = (2048, 128);

/// A session's classification comes to its end. Its flows are still there.
pub(crate) fn retire<F>(formers: &mut Formers, session: &Session<F>) {
    if session.current > 0 && session.rule_records.len() > 0 {
        let rules = &session.rules;
        let former = Former {
            seid: rules.seid,
            prefix: rules.ue_ipv6.map_or(0, |prefix| upper_half(prefix.network())),
            start: session.rule_records.start(),
            rules: rules.pdrs.iter().map(|pdr| (pdr.id, pdr.source.is_uplink())).collect(),
            flows: session.current,
            gone: false,
        };
        formers.insert(session.versions.1, former);
    }
}

/// A session whose classification has retired is no more: how many flows are left of it.
pub(crate) fn bereave<F>(formers: &mut Formers, session: &Session<F>) -> u32 {
    let mut flows = 0;
    let mut lose = |former: &mut Former| {
        former.gone = true;
        flows += former.flows;
    };
    if session.flows > session.current {
        // It had others before.
        let its = |former: &&mut Former| former.seid == session.rules.seid && !former.gone;
        formers.values_mut().filter(its).for_each(lose);
    } else if let Some(former) = formers.get_mut(&session.versions.1).filter(|_| session.current > 0) {
        lose(former);
    }
    flows
}

impl<F> Shard<F> {
    fn owner(&self, key: &Key, flow: &Flow) -> Option<Owner> {
        if let Some(session) = self.session_of(key)
            && session.versions.1 == flow.version
            && let Some(at) = flow.rule.checked_sub(session.rule_records.start())
            && let Some(pdr) = session.rules.pdrs.get(at as usize)
        {
            let prefix = session.rules.ue_ipv6.map_or(0, |prefix| upper_half(prefix.network()));
            let (seid, uplink) = (session.rules.seid, pdr.source.is_uplink());
            return Some(Owner { seid, pdr: pdr.id, uplink, prefix, in_force: true });
        }
        let former = self.formers.get(&flow.version)?;
        let &(pdr, uplink) = former.rules.get(flow.rule.checked_sub(former.start)? as usize)?;
        Some(Owner { seid: former.seid, pdr, uplink, prefix: former.prefix, in_force: false })
    }

    /// A flow has left the table: it is told of, and its session has one less.
    pub(crate) fn flow_ended(&mut self, key: &Key, flow: &Flow, end: End, ledger: &mut Ledger<'_>) {
        let owner = self.owner(key, flow);
        let silence = end == End::IdleTimeout && owner.is_some_and(|owner| !owner.in_force);
        let end = if silence { End::ForcedEnd } else { end };
        ledger.tell(Told::Ended(end), key, flow, owner);
        ledger.room.left(self.id());
        self.discount(key, flow);
    }

    /// Ends flows of sessions that are gone, some at a time, as long as there are any.
    pub(crate) fn purge_flows(&mut self, ledger: &mut Ledger<'_>) {
        if self.orphans == 0 {
            return;
        }
        let (mut lines, mut flows) = PURGED;
        let mut ended = std::mem::take(&mut self.ended);
        while self.orphans > 0 && lines > 0 && flows > 0 {
            // Downwards: the flow that fills a gap comes from the end, where all have been seen.
            let below = self.purging.min(self.flows.len() as u32);
            let from = below.saturating_sub(lines.min(flows));
            let formers = &self.formers;
            self.flows.visit(from..below, |key, flow| {
                if formers.get(&flow.version).is_some_and(|former| former.gone) {
                    ended.push((*key, *flow));
                }
            });
            flows -= ended.len() as u32;
            for (key, flow) in ended.drain(..) {
                self.flows.remove(&key);
                ledger.counters.deleted += 1;
                self.flow_ended(&key, &flow, End::ForcedEnd, ledger);
            }
            lines -= (below - from).clamp(1, lines);
            self.purging = if from == 0 { u32::MAX } else { from };
        }
        self.ended = ended;
    }

    /// Ends the flow that was idle for longest, as far as a glance shows. False: there is none.
    pub(crate) fn evict_flow(&mut self, ledger: &mut Ledger<'_>) -> bool {
        let Some((key, flow)) = self.flows.evict() else { return false };
        ledger.counters.evicted += 1;
        self.flow_ended(&key, &flow, End::LackOfResources, ledger);
        true
    }

    /// A flow is no more, or not this session's any more.
    pub(crate) fn discount(&mut self, key: &Key, flow: &Flow) {
        let mut is_former = true;
        if let Some(session) = self.session_of_mut(key) {
            // The place may be another session's by now, whose flows are all younger.
            if flow.version >= session.versions.0 {
                session.flows = session.flows.saturating_sub(1);
            }
            if flow.version == session.versions.1 {
                session.current = session.current.saturating_sub(1);
                is_former = false;
            }
        }
        if is_former && let Some(former) = self.formers.get_mut(&flow.version) {
            former.flows = former.flows.saturating_sub(1);
            self.orphans = self.orphans.saturating_sub(former.gone.into());
            if former.flows == 0 {
                self.formers.remove(&flow.version);
            }
        }
    }

    /// A packet of a flow that is known was classified: what was found, with this packet counted, is in `found`. If the
    /// flow's rule is another one now, its counts are told and begin anew. False: the flow isn't known.
    pub(crate) fn revise(&mut self, lookup: &Lookup, found: &Flow, ledger: &mut Ledger<'_>) -> bool {
        let key = &lookup.key;
        let marks = ledger.export.marks;
        let Some(known) = self.flows.confirm(lookup.probe, lookup.found, key) else { return false };
        let before = *known;
        let is_due;
        if (before.version, before.rule) == (found.version, found.rule) {
            known.count(found.bytes() as u16, ledger.now);
            is_due = known.is_due(&marks);
        } else {
            ledger.counters.revised += 1;
            let (owner, next) = (self.owner(key, &before), self.owner(key, found));
            let same = |a: &Owner, b: &Owner| (a.seid, a.pdr) == (b.seid, b.pdr);
            let goes_on = owner.zip(next).is_some_and(|(owner, next)| same(&owner, &next));
            if !goes_on {
                ledger.tell(Told::Ended(End::ForcedEnd), key, &before, owner);
            }
            self.discount(key, &before);
            if let Some(session) = self.session_of_mut(key) {
                session.flows += 1;
                session.current += 1;
            }
            let Some(known) = self.flows.get_mut(key) else { return false };
            if goes_on {
                (known.rule, known.version) = (found.rule, found.version);
                known.count(found.bytes() as u16, ledger.now);
            } else {
                *known = *found;
            }
            is_due = known.is_due(&marks);
        }
        if is_due {
            self.flow_due(key, (1, found.bytes()), ledger);
        }
        true
    }

    /// A flow has reached a mark, with the last of these packets and bytes, or before it was set.
    #[cold]
    #[inline(never)]
    pub(crate) fn flow_due(&mut self, key: &Key, (packets, bytes): (u32, u64), ledger: &mut Ledger<'_>) {
        let marks = ledger.export.marks;
        let Some(flow) = self.flows.get_mut(key) else { return };
        let Reached { bytes: bytes_due, packets: packets_due, full } = flow.reach(&marks);
        let then = *flow;
        if full {
            flow.begin_anew(ledger.now);
        }
        let owner = self.owner(key, &then);
        if bytes_due {
            ledger.counters.marked += 1;
            ledger.counters.marked_late += u64::from(then.bytes() - bytes.min(then.bytes()) >= marks.bytes);
            ledger.tell(Told::Bytes(marks.bytes), key, &then, owner);
        }
        if packets_due {
            ledger.counters.marked += 1;
            let late = then.packets() - packets.min(then.packets()) >= marks.packets;
            ledger.counters.marked_late += u64::from(late);
            ledger.tell(Told::Packets(marks.packets), key, &then, owner);
        }
        if full {
            ledger.counters.full += 1;
            ledger.tell(Told::Ended(End::LackOfResources), key, &then, owner);
        }
    }

    /// Enters packets of a flow that a device has forwarded.
    pub(crate) fn count_offloaded(
        &mut self,
        key: &Key,
        mut packets: u64,
        mut bytes: u64,
        ledger: &mut Ledger<'_>,
    ) {
        while packets > 0 {
            let Some(flow) = self.flows.get_mut(key) else { return };
            let some = packets.min(Flow::MORE.into());
            let part = (u128::from(bytes) * u128::from(some) / u128::from(packets)) as u64;
            (packets, bytes) = (packets - some, bytes - part);
            flow.count_more(some as u32, part, ledger.now);
            if flow.is_due(&ledger.export.marks) {
                self.flow_due(key, (some as u32, part), ledger);
            }
        }
    }

    /// Tells of flows that go on. Called again and again, it comes to each about once per active timeout: `before` is when
    /// it was called last.
    pub(crate) fn tell_active(&mut self, before: Nanos, ledger: &mut Ledger<'_>) {
        let Some(active) = ledger.export.policy.map(|policy| policy.active).filter(|active| *active > 0)
        else {
            return;
        };
        let (now, len) = (ledger.now, self.flows.len() as u32);
        if len == 0 {
            return;
        }
        // The hand goes round once per timeout; where it was then and where it is now is told by the clock alone.
        let place = |at: Nanos| (((at.0 % active) >> 20) * u64::from(len) / (active >> 20).max(1)) as u32;
        let (from, to) = (place(before), place(now));
        let (first, second) = if now.since(before) >= active {
            (0..len, 0..0)
        } else if from <= to {
            (from..to, 0..0)
        } else {
            (from..len, 0..to)
        };
        let mut visited = std::mem::take(&mut ledger.export.visited);
        for range in [first, second] {
            let range = range.start..range.end.min(range.start.saturating_add(VISITED));
            self.flows.visit(range, |key, flow| {
                let (first, last) = flow.times();
                if now.since(first) >= active && now.since(last) < active {
                    visited.push((*key, *flow));
                }
            });
        }
        for (key, flow) in visited.drain(..) {
            ledger.counters.interim += 1;
            ledger.tell(Told::Active, &key, &flow, self.owner(&key, &flow));
        }
        ledger.export.visited = visited;
    }

    /// Shows the flows below a number, at most so many of them; returns the number below which others are left.
    fn visit_below(&mut self, below: u32, most: u32, mut visit: impl FnMut(&Key, &Flow)) -> u32 {
        // Downwards: the flow that fills a gap comes from the end, where all have been seen.
        let below = below.min(self.flows.len() as u32);
        let from = below.saturating_sub(most);
        self.flows.visit(from..below, |key, flow| visit(key, flow));
        from
    }
}

impl<F: Frame> Datapath<F> {
    /// From now on flows are told of at these counts, if there is a policy. Those beyond them are told of soon; those that were
    /// told to have reached a former watermark are not told of again.
    pub(crate) fn set_marks(&mut self, marks: Marks) {
        if self.export.policy.is_some() {
            let Marks { bytes, packets } = marks;
            self.export.marks =
                Marks { bytes: bytes.min(Marks::NONE.bytes), packets: packets.min(Marks::NONE.packets) };
            self.export.looking_back = Some((0, u32::MAX));
        }
    }

    /// Looks for flows beyond watermarks that were set.
    pub(crate) fn look_back(&mut self, now: Nanos) {
        let mut left = LOOKED_BACK;
        let mut due = std::mem::take(&mut self.export.visited);
        while let Some((at, below)) = self.export.looking_back
            && left > 0
        {
            let marks = self.export.marks;
            let next = if let Some(Some(shard)) = self.shards.get_mut(at) {
                let below = below.min(shard.flows.len() as u32);
                let next = shard.visit_below(below, left, |key, flow| {
                    if flow.is_due(&marks) {
                        due.push((*key, *flow));
                    }
                });
                left -= below - next;
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                for (key, _) in due.drain(..) {
                    shard.flow_due(&key, (0, 0), &mut ledger);
                }
                next
            } else {
                0
            };
            // An empty shard costs a look, too.
            left = left.saturating_sub(1);
            self.export.looking_back = match next {
                0 if at + 1 < SHARDS => Some((at + 1, u32::MAX)),
                0 => None,
                below => Some((at, below)),
            };
        }
        self.export.visited = due;
    }

    /// The worker stops: tells of the flows that still live, as many as make up some batches. False: that was all. Nothing may be
    /// processed between calls, nor after them.
    pub fn close_flows(&mut self, now: Nanos, events: &mut Vec<Event>) -> bool {
        if self.export.policy.is_none() {
            return false;
        }
        let mut left = (WAITING - self.export.waiting.len().min(WAITING)) as u32;
        // The ring to control sets the pace.
        self.export.limiter = RateLimiter::new(u32::MAX, u32::MAX);
        while left > 0 && self.export.closing.0 < SHARDS {
            let (at, below) = self.export.closing;
            let mut next = 0;
            if let Some(Some(shard)) = self.shards.get_mut(at) {
                let mut visited = std::mem::take(&mut self.export.visited);
                let below = below.min(shard.flows.len() as u32);
                next = shard.visit_below(below, left, |key, flow| visited.push((*key, *flow)));
                left -= below - next;
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                for (key, flow) in visited.drain(..) {
                    ledger.counters.closed += 1;
                    let owner = shard.owner(&key, &flow);
                    ledger.tell(Told::Ended(End::ForcedEnd), &key, &flow, owner);
                }
                self.export.visited = visited;
            }
            self.export.closing = if next == 0 { (at + 1, u32::MAX) } else { (at, next) };
        }
        self.export.flush(events);
        self.export.closing.0 < SHARDS
    }

    /// The worker stops, and there is no time to tell of the flows that [`Self::close_flows`] left.
    pub fn abandon_flows(&mut self) {
        if self.export.policy.is_none() {
            return;
        }
        let (from, below) = std::mem::replace(&mut self.export.closing, (SHARDS, 0));
        for at in from..SHARDS {
            let flows = self.shards.get(at).and_then(Option::as_deref).map_or(0, |shard| shard.flows.len());
            let flows = if at == from { flows.min(below as usize) } else { flows } as u64;
            self.counters.flows.closed += flows;
            self.counters.flows.unexported += flows;
        }
    }
}
