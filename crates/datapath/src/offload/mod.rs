//! Which flows does the NIC take off a worker's hands?
//!
//! **Problem.** A device with a flow table ([`io::offload`]) can forward flows by itself, but it holds few rules, takes
//! them slowly, and knows nothing of sessions, quotas or ages. Whatever it does must look as if the worker had done it.
//!
//! **Model.** An [`Offload`] belongs to one worker and one [`Datapath`]. It decides by rate and lifetime: one packet in some
//! dozens is looked at (`watch`), and a flow that was heavy in two windows in a row and has lived long enough is a
//! candidate. For a candidate, `plan` says in a rule what the fast path does with its packets, if a rule can say that; then the
//! rule is inserted (`admit`), within a budget. If the device is full, a candidate takes the place of the lightest flow only if
//! it is clearly heavier. A flow is what a device has to tell from others: of a session without filters, all packets to
//! the UE are one flow; uplink a flow is a 5-tuple in its tunnel, because its way out depends on the destination.
//!
//! **Order of events.** [`Offload::before`] is called before each order of the control side. An order that changes a session
//! takes the session's rules back, enters their last counters, and only then is it carried out: once its answer is
//! under way, no packet is handled by old rules. A query is answered after counters are read. The network is asked after every burst
//! and every order ([`Offload::check`]): when a neighbour has moved or a route has changed, all rules are planned anew, and
//! those that aren't the same any more are taken back.
//!
//! **Books.** Counters are read back in turns, each rule's once per [`Policy::read_interval`], and entered in the session's books,
//! the flow's entry and the worker's counters. At each reading the rule is planned anew, and taken back if it isn't the same any
//! more, if its flow has ended, if it was idle, or if a volume threshold or quota of the session has come near:
//! hardware can't stop exactly, so the rest of the volume is software's. The margin is four readings' worth of bytes of all
//! the session's rules, and at least [`Policy::margin`]; so volumes are exact as long as a session's flows in hardware don't carry
//! more than that between two readings.
//!
//! **Limited rates.** Of the rate that a session or a flow may have, a device gets a share: a meter that all the QER's rules in it draw
//! on. The worker's own bucket is smaller by that, so that both together never let more pass than the rate (`share`).
//!
//! **Failure.** If a device can't say what a rule counted, or doesn't take it back, all its rules are taken back, control is told
//! ([`Event::OffloadFailed`]), and after a pause that doubles each time it is tried again. Software goes on meanwhile.
//!
//! ```
//! # use datapath::Rib;
//! use datapath::offload::{Mode, Offload, Policy};
//! use datapath::{Config, Datapath, Outbox};
//! use io::mem::MemFrame;
//! use io::offload::NoOffload;
//! use tables::Nanos;
//!
//! let mut worker: Datapath<MemFrame> = Datapath::new(Config::new(Rib::new().fib()));
//! let mut offload = Offload::new(Policy::new(Mode::Full), vec![Box::new(NoOffload)]);
//! let mut out = Outbox::new(1);
//! // Before `Datapath::process`, with the same burst; after it, and after `Datapath::apply`; and before `Datapath::tick`:
//! offload.sight(Nanos(1), &worker, 0, &[]);
//! offload.check(Nanos(1), &mut worker, &mut out);
//! offload.tick(Nanos(1), &mut worker, &mut out);
//! assert_eq!(offload.report(8).entries, 0);
//! ```
//!
//! **What isn't exact.** The time of a flow's last packet is known to one reading interval. A device that counts frames counts
//! the padding of short Ethernet frames: six bytes too many for a TCP acknowledgement of 40 octets from the data
//! network; packets in tunnels are never that short. When a flow changes hands, packets that wait in a queue may be overtaken.
//!
//! **When not to use it.** For traffic of many light flows: sampling costs a little, and nothing is ever offloaded.

mod admit;
mod aggregate;
mod plan;
mod policy;
mod report;
mod share;
mod sight;
mod watch;

pub use plan::Ineligible;
pub use policy::{Mode, Policy};
pub use report::{EntryReport, FlowReport, OffloadCounters, OffloadReport, TakenBack};

use crate::command::{Command, Event};
use crate::datapath::Datapath;
use crate::outbox::Outbox;
use crate::stages::burst::Burst;
use aggregate::{Aggregate, Measured};
use io::Frame;
use io::offload::{Action, Counts, Failure, Feature, FlowOffload, Handle};
use plan::Plan;
use session::{SessionRef, ShardId};
use share::Shares;
use sight::{FlowName, Sighting};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use tables::Nanos;
use watch::{Candidate, Watch};

/// A rule in a device.
#[derive(Debug)]
struct Entry {
    sighting: Sighting,
    plan: Plan,
    handle: Handle,
    /// As entered last, and when that was read.
    counts: Counts,
    read: Nanos,
    /// As read last, and when.
    told: Counts,
    asked: Nanos,
    /// Readings in a row that gave one number without the other.
    torn: u8,
    /// When a reading last found packets.
    active: Nanos,
    /// Packets and bytes a second.
    rate: u64,
    bytes: u64,
}

/// A device and its moods.
struct Device {
    offload: Box<dyn FlowOffload>,
    /// It can count, has meters, and can mark.
    counts: bool,
    meters: bool,
    marks: bool,
    /// It has refused a rule for want of room, and none was taken back since.
    full: bool,
    /// Not asked before this time; and the last pause.
    resume: Nanos,
    pause: u64,
    /// It failed, and still has to forget what it may hold.
    failed: bool,
}

/// One worker's rules in devices. See the module's documentation.
pub struct Offload {
    policy: Policy,
    /// By port.
    devices: Vec<Device>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_name: HashMap<FlowName, u32>,
    /// By shard and slot.
    by_session: HashMap<(u16, u32), Vec<u32>>,
    /// What devices have of limited rates, and what they count before these.
    shares: Shares,
    aggregates: HashMap<Measured, Aggregate>,
    watch: Watch,
    /// Candidates whose turn comes in one of the next ticks.
    pending: VecDeque<Candidate>,
    /// Flows that are left alone until then.
    resting: HashMap<FlowName, Nanos>,
    /// The lightest entries of full devices, the very lightest last.
    lightest: Vec<(u64, u32)>,
    /// The entry whose counters are read next.
    cursor: usize,
    /// The network's generation that the rules are made for.
    network: u64,
    counters: OffloadCounters,
}

impl std::fmt::Debug for Offload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offload")
            .field("policy", &self.policy)
            .field("entries", &self.by_name.len())
            .finish_non_exhaustive()
    }
}

/// If so many readings in a row gave packets and never a byte, or bytes and never a packet, that is all that there is.
const MOST_TORN: u8 = 3;

/// Nanoseconds for which a device that is busy is left alone, the first time.
const BREATH: u64 = 2_000_000;

impl Offload {
    /// Devices by port, in the order of the datapath's ports.
    pub fn new(policy: Policy, devices: Vec<Box<dyn FlowOffload>>) -> Self {
        let device = |offload: Box<dyn FlowOffload>| {
            let features = offload.capabilities().features;
            let [counts, meters, marks] =
                [Feature::Count, Feature::Meter, Feature::Mark].map(|feature| features.has(feature));
            Device { offload, counts, meters, marks, full: false, resume: Nanos(0), pause: 0, failed: false }
        };
        Self {
            watch: Watch::new(policy.watched, policy.sample, policy.seed),
            policy,
            devices: devices.into_iter().map(device).collect(),
            entries: Vec::new(),
            free: Vec::new(),
            by_name: HashMap::new(),
            by_session: HashMap::new(),
            shares: Shares::default(),
            aggregates: HashMap::new(),
            pending: VecDeque::new(),
            resting: HashMap::new(),
            lightest: Vec::new(),
            cursor: 0,
            network: 0,
            counters: OffloadCounters::default(),
        }
    }

    /// Looks at some packets of a burst that arrived at a port and is about to be processed.
    pub fn sight<F: Frame>(&mut self, now: Nanos, datapath: &Datapath<F>, port: u16, burst: &[F]) {
        if matches!(self.policy.mode, Mode::Full) {
            self.look(now, burst.len(), |at| datapath.sight(port, burst.get(at)?.bytes(), false));
            return;
        }
        // Steering is for what comes to the wrong worker; what was steered here says so.
        let mut from = 0;
        while let Some(at) = self.watch.sample(from, burst.len()) {
            from = at + 1;
            let mark = burst.get(at).and_then(Frame::mark);
            let index = mark.and_then(|mark| mark.checked_sub(1));
            if let Some(Some(entry)) = index.and_then(|index| self.entries.get_mut(index as usize))
                && entry.sighting.port == port
            {
                entry.active = now;
            }
        }
    }

    /// Looks at some packets that another worker handed over.
    pub fn sight_handed_off<F: Frame>(&mut self, now: Nanos, datapath: &Datapath<F>, burst: &Burst<F>) {
        self.look(now, burst.frames.len(), |at| {
            let (meta, frame) = (burst.metas.get(at)?, burst.frames.get(at)?);
            datapath.sight(datapath.network.port(meta.interface), frame.bytes(), true)
        });
    }

    fn look(&mut self, now: Nanos, n: usize, sighting: impl Fn(usize) -> Option<Sighting>) {
        let mut from = 0;
        while let Some(at) = self.watch.sample(from, n) {
            from = at + 1;
            let Some(sighting) = sighting(at) else { continue };
            let name = sighting.name();
            if !self.resting.contains_key(&name) && !self.by_name.contains_key(&name) {
                self.watch.met(now, &sighting);
            }
        }
    }

    /// Whether rules are still what the network wants. Cheap if nothing has changed; to be called after each burst and each order.
    #[inline]
    pub fn check<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, out: &mut Outbox<F>) {
        if datapath.network.generation != self.network {
            self.network = datapath.network.generation;
            self.follow(now, datapath, out);
        }
        if self.shares.has_changed() {
            self.withhold_again(now, datapath);
        }
    }

    /// Takes back what the fast path would do otherwise now.
    #[cold]
    fn follow<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, out: &mut Outbox<F>) {
        for index in 0..self.entries.len() {
            if let Some(Some(entry)) = self.entries.get(index)
                && self.plan(datapath, &entry.sighting).as_ref() != Ok(&entry.plan)
            {
                self.take_back(now, datapath, index as u32, out, TakenBack::Network);
            }
        }
    }

    /// Makes way for an order of the control side; see the module's documentation.
    pub fn before<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        command: &Command,
        out: &mut Outbox<F>,
    ) {
        match command {
            Command::Install { rules, .. } | Command::Restore { rules, .. } => {
                self.withdraw_session(now, datapath, rules.place, out);
            }
            Command::Remove { session, .. } => self.withdraw_session(now, datapath, *session, out),
            Command::Query { session, .. } | Command::Inspect { session, .. } => {
                self.read_session(now, datapath, *session, out);
            }
            Command::Export { shard, slots, .. } => {
                for &slot in slots {
                    self.read_session(now, datapath, SessionRef { shard: *shard, slot }, out);
                }
            }
            // The rest is a matter of [`Offload::check`].
            Command::Fib(fib) if fib.interfaces() == datapath.network.fib.interfaces() => {}
            Command::Fib(_) => self.withdraw_all(now, datapath, out, TakenBack::Network),
            // It may lead part of another session's prefix elsewhere.
            Command::AddressDirectory { prefix, .. } => {
                let own = |entry: &Entry| {
                    let pattern = &entry.sighting.pattern;
                    let address = if entry.plan.uplink { pattern.source } else { pattern.destination };
                    address.is_some_and(|address: IpAddr| prefix.contains(&address))
                };
                self.withdraw_where(now, datapath, out, TakenBack::Session, own);
            }
            // Copies are made in software.
            Command::Mirror(_) => self.withdraw_all(now, datapath, out, TakenBack::Asked),
            // A TEID changes hands only when the session that had it is changed or removed; a neighbour's move, and that sources of
            // tunnels are checked from now on, is seen by the check.
            Command::Directory { .. }
            | Command::FlowMarks(_)
            | Command::CountStages { .. }
            | Command::CountCarried
            | Command::Limits(_)
            | Command::Neighbour { .. }
            | Command::Neighbours { .. } => {}
        }
    }

    /// Gives a shard's rules back, before it goes to another worker.
    pub fn withdraw_shard<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        shard: ShardId,
        out: &mut Outbox<F>,
    ) {
        let shard = shard.index() as u16;
        self.withdraw_where(now, datapath, out, TakenBack::Asked, |entry| entry.sighting.shard == shard);
        self.release_all(now, datapath, Some(shard), out);
    }

    /// Takes everything back: the worker ends.
    pub fn stop<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, out: &mut Outbox<F>) {
        self.withdraw_all(now, datapath, out, TakenBack::Asked);
        self.release_all(now, datapath, None, out);
    }

    /// What devices have counted of a session is counted before it is told.
    fn read_session<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        session: SessionRef,
        out: &mut Outbox<F>,
    ) {
        let place = (session.shard.index() as u16, session.slot);
        for index in self.by_session.get(&place).cloned().unwrap_or_default() {
            self.read(now, datapath, index, out);
        }
        self.read_drops(now, datapath, place, out);
    }

    /// Regular work: reads counters, takes back what isn't worth its place, inserts what is. Call it before
    /// [`Datapath::tick`], which forgets flows that are idle.
    pub fn tick<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, out: &mut Outbox<F>) {
        self.check(now, datapath, out);
        self.retry(now, datapath);
        self.read_some(now, datapath, out);
        self.revise_some(now, datapath, out);
        if self.watch.is_over(now, self.policy.window) {
            self.turn(now);
        }
        for _ in 0..self.policy.insertions {
            let Some(candidate) = self.pending.pop_front() else { break };
            self.insert(now, datapath, candidate, out);
        }
    }

    /// What there is to say, with at most `some` entries.
    pub fn report(&self, some: usize) -> OffloadReport {
        let entries = self.entries.iter().flatten().take(some).map(|entry| EntryReport {
            port: entry.sighting.port,
            flow: (&entry.sighting.pattern).into(),
            uplink: entry.plan.uplink,
            counts: entry.counts,
            rate: entry.rate,
        });
        OffloadReport {
            counters: self.counters,
            entries: self.by_name.len(),
            some: entries.collect(),
            devices: self.devices.iter().map(|device| device.offload.capabilities()).collect(),
            down: self.devices.iter().filter(|device| device.failed).count(),
        }
    }

    /// Counts since the start.
    pub const fn counters(&self) -> &OffloadCounters {
        &self.counters
    }

    /// The end of a window: who is next?
    fn turn(&mut self, now: Nanos) {
        let Policy { packets_per_second, lifetime, .. } = self.policy;
        self.resting.retain(|_, until| *until > now);
        // Whoever didn't get a turn in the last window is met again if it's still worth it.
        self.pending = self.watch.turn(now, packets_per_second, lifetime).into();
        self.lightest.clear();
        if self.pending.is_empty() {
            return;
        }
        if self.devices.iter().any(|device| device.full) {
            let entries = self.entries.iter().enumerate();
            let mut all: Vec<_> =
                entries.filter_map(|(index, entry)| Some((entry.as_ref()?.rate, index as u32))).collect();
            let wanted = self.pending.len().min(all.len());
            if wanted < all.len() {
                all.select_nth_unstable(wanted);
                all.truncate(wanted);
            }
            all.sort_unstable_by(|a, b| b.cmp(a));
            self.lightest = all;
        }
    }

    /// The rule for a flow. What only steers does without a counter where there is none: its packets' marks tell that it isn't
    /// idle. Without marks it is taken back when it would be idle, and comes again if it's still worth it.
    fn plan<F: Frame>(&self, datapath: &Datapath<F>, sighting: &Sighting) -> Result<Plan, Ineligible> {
        let mut plan = datapath.plan(sighting, self.policy.mode)?;
        let device = self.devices.get(sighting.port as usize);
        if let Mode::Partial { .. } = self.policy.mode
            && device.is_some_and(|device| !device.counts)
        {
            plan.rule.actions.retain(|action| *action != Action::Count);
        }
        Ok(plan)
    }

    /// The volume from which on software counts: what the session's rules, and another one of so many bytes a second, carry in
    /// four readings.
    fn margin(&self, shard: u16, session: u32, bytes: u64) -> u64 {
        let entries = self.by_session.get(&(shard, session)).map_or(&[][..], Vec::as_slice);
        let entries = entries.iter().filter_map(|index| self.entries.get(*index as usize)?.as_ref());
        // What arrives is at least what passes.
        let of = |entry: &Entry| entry.bytes.max(self.arriving(&entry.plan));
        let all = entries.fold(bytes, |sum, entry| sum.saturating_add(of(entry)));
        let volume = u128::from(all) * 4 * u128::from(self.policy.read_interval) / u128::from(Nanos::SECOND);
        self.policy.margin.max(u64::try_from(volume).unwrap_or(u64::MAX))
    }

    fn enter(&mut self, entry: Entry) {
        let (name, session) = (entry.sighting.name(), (entry.sighting.shard, entry.plan.session));
        self.shares.used(&entry.plan.limits, entry.sighting.port, false);
        if let Some(of) = entry.plan.measured {
            self.counted(&of, false);
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        if let Some(place) = self.entries.get_mut(index as usize) {
            *place = Some(entry);
        }
        self.by_name.insert(name, index);
        self.by_session.entry(session).or_default().push(index);
    }

    fn leave(&mut self, index: u32) -> Option<Entry> {
        let entry = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.by_name.remove(&entry.sighting.name());
        self.shares.used(&entry.plan.limits, entry.sighting.port, true);
        if let Some(of) = entry.plan.measured {
            self.counted(&of, true);
        }
        let session = (entry.sighting.shard, entry.plan.session);
        if let Some(entries) = self.by_session.get_mut(&session) {
            entries.retain(|known| *known != index);
            if entries.is_empty() {
                self.by_session.remove(&session);
            }
        }
        if let Some(device) = self.devices.get_mut(entry.sighting.port as usize) {
            device.full = false;
        }
        Some(entry)
    }

    fn rest(&mut self, now: Nanos, name: FlowName) {
        self.watch.forget(&name);
        if self.resting.len() < self.policy.watched {
            self.resting.insert(name, now.plus(self.policy.rest));
        }
    }

    /// Reads the counters of entries whose turn it is.
    fn read_some<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, out: &mut Outbox<F>) {
        for _ in 0..(self.policy.reads as usize).min(self.entries.len()) {
            let index = self.cursor;
            self.cursor = if index + 1 < self.entries.len() { index + 1 } else { 0 };
            let due = self.entries.get(index).and_then(Option::as_ref);
            if due.is_some_and(|entry| now.since(entry.asked) >= self.policy.read_interval) {
                self.review(now, datapath, index as u32, out);
            }
        }
    }

    /// Reads an entry's counters, and takes it back if it has no business in the device any more.
    fn review<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, index: u32, out: &mut Outbox<F>) {
        if !self.read(now, datapath, index, out) {
            return;
        }
        let Some(entry) = self.entries.get(index as usize).and_then(Option::as_ref) else { return };
        let (shard, session) = (entry.sighting.shard, entry.plan.session);
        let full = matches!(self.policy.mode, Mode::Full);
        let reason = if self.plan(datapath, &entry.sighting).as_ref() != Ok(&entry.plan) {
            TakenBack::Flow
        } else if now.since(entry.active) >= self.policy.idle {
            TakenBack::Idle
        } else if full && datapath.credit_of(shard, session, entry.plan.pdr) < self.margin(shard, session, 0)
        {
            TakenBack::Credit
        } else {
            return;
        };
        let name = entry.sighting.name();
        self.take_back(now, datapath, index, out, reason);
        self.rest(now, name);
    }

    /// Reads an entry's counters and enters them. False: the device failed, and the entry is gone.
    fn read<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        index: u32,
        out: &mut Outbox<F>,
    ) -> bool {
        let Some(entry) = self.entries.get(index as usize).and_then(Option::as_ref) else { return false };
        let (port, handle, measured) = (entry.sighting.port, entry.handle, entry.plan.measured);
        let Some(device) = self.devices.get_mut(port as usize) else { return false };
        let read = device.offload.counts(handle).and_then(|counts| {
            self.account(now, datapath, index, (counts, false), out);
            measured.map_or(Ok(()), |of| self.read_aggregate(now, datapath, &of, out))
        });
        if let Err(failure) = &read {
            self.fail(now, datapath, port, failure, out);
        }
        read.is_ok()
    }

    /// Enters what has been counted since the last reading. `last`: the rule is gone, and these are all that there will be.
    fn account<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        index: u32,
        (counts, last): (Counts, bool),
        out: &mut Outbox<F>,
    ) {
        let Some(Some(entry)) = self.entries.get_mut(index as usize) else { return };
        let told = std::mem::replace(&mut entry.told, counts);
        entry.asked = now;
        // Packets without their bytes, or bytes without their packets: the rest follows, but from a device that has only the one.
        let torn = (counts.packets == told.packets) != (counts.bytes == told.bytes);
        entry.torn = if torn { entry.torn.saturating_add(1) } else { 0 };
        let both = counts.packets > 0 && counts.bytes > 0;
        if torn && !last && (both || entry.torn <= MOST_TORN) {
            return;
        }
        let packets = counts.packets.saturating_sub(entry.counts.packets);
        let frames = counts.bytes.saturating_sub(entry.counts.bytes);
        let bytes = frames.saturating_sub(packets * u64::from(entry.plan.front));
        let since = entry.read;
        let elapsed = now.since(since);
        // What isn't counted is as heavy as it was when it was offered.
        let counts_rules = self.devices.get(entry.sighting.port as usize).is_some_and(|device| device.counts);
        if elapsed > 0 && counts_rules {
            let per_second =
                |n: u64| (u128::from(n) * u128::from(Nanos::SECOND) / u128::from(elapsed)) as u64;
            (entry.rate, entry.bytes) = (per_second(packets), per_second(bytes));
        }
        (entry.counts, entry.read) = (counts, now);
        if packets > 0 {
            entry.active = now;
        }
        self.counters.packets += packets;
        self.counters.bytes += bytes;
        self.shares.passed(&entry.plan.limits, entry.sighting.port, bytes);
        // What is only steered is accounted by the worker that it is steered to.
        if matches!(self.policy.mode, Mode::Full) {
            datapath.enter_offloaded((since, now), &entry.sighting, &entry.plan, (packets, bytes), out);
        }
    }

    /// Takes one rule back and enters its last counters. False: the device failed.
    fn take_back<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        index: u32,
        out: &mut Outbox<F>,
        reason: TakenBack,
    ) -> bool {
        let Some(entry) = self.entries.get(index as usize).and_then(Option::as_ref) else { return false };
        let (port, handle, measured) = (entry.sighting.port, entry.handle, entry.plan.measured);
        let Some(device) = self.devices.get_mut(port as usize) else { return false };
        let taken = device.offload.remove(handle).and_then(|counts| {
            self.account(now, datapath, index, (counts, true), out);
            self.leave(index);
            self.counters.taken_back.add(reason, 1);
            measured.map_or(Ok(()), |of| self.read_aggregate(now, datapath, &of, out))
        });
        if let Err(failure) = &taken {
            self.fail(now, datapath, port, failure, out);
        }
        taken.is_ok()
    }

    fn withdraw_session<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: SessionRef,
        out: &mut Outbox<F>,
    ) {
        let place = (place.shard.index() as u16, place.slot);
        // Nobody looks for a session's candidates, but what was found out about them may be wrong now.
        self.pending.retain(|candidate| candidate.sighting.shard != place.0);
        for index in self.by_session.get(&place).cloned().unwrap_or_default() {
            self.take_back(now, datapath, index, out, TakenBack::Session);
        }
        self.release_session(now, datapath, place, out);
        self.will_change(now, datapath, place);
    }

    fn withdraw_all<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        out: &mut Outbox<F>,
        reason: TakenBack,
    ) {
        self.pending.clear();
        self.watch.clear();
        self.withdraw_where(now, datapath, out, reason, |_| true);
    }

    fn withdraw_where<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        out: &mut Outbox<F>,
        reason: TakenBack,
        which: impl Fn(&Entry) -> bool,
    ) {
        for index in 0..self.entries.len() {
            if self.entries.get(index).and_then(Option::as_ref).is_some_and(&which) {
                self.take_back(now, datapath, index as u32, out, reason);
            }
        }
    }

    /// A device has failed: everything is taken back from it, as far as it goes.
    fn fail<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        port: u16,
        failure: &Failure,
        out: &mut Outbox<F>,
    ) {
        self.counters.failures += 1;
        for index in 0..self.entries.len() {
            let Some(Some(entry)) = self.entries.get(index) else { continue };
            if entry.sighting.port != port {
                continue;
            }
            let handle = entry.handle;
            let last = self.devices.get_mut(port as usize).map(|device| device.offload.remove(handle));
            if let Some(Ok(counts)) = last {
                self.account(now, datapath, index as u32, (counts, true), out);
            } else {
                self.counters.lost += 1;
            }
            self.leave(index as u32);
            self.counters.taken_back.add(TakenBack::Failure, 1);
        }
        self.lose_aggregates(now, datapath, port, out);
        self.shares.withhold(port);
        let retry = self.policy.retry;
        if let Some(device) = self.devices.get_mut(port as usize) {
            device.failed = true;
            // What it forgets now isn't in its way any more; the retry makes sure.
            let _ = device.offload.flush();
            device.pause = (2 * device.pause).clamp(retry, 64 * retry);
            device.resume = now.plus(device.pause);
        }
        out.events.push(Event::OffloadFailed { port, failure: failure.to_string() });
    }

    /// Devices that failed come back once they have forgotten everything.
    fn retry<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>) {
        let retry = self.policy.retry;
        for port in 0..self.devices.len() {
            let Some(device) = self.devices.get_mut(port).filter(|device| device.failed) else { continue };
            if now < device.resume {
                continue;
            }
            if device.offload.flush().is_ok() {
                device.failed = false;
                self.forgotten(now, datapath, port as u16);
            } else {
                device.pause = (2 * device.pause).clamp(retry, 64 * retry);
                device.resume = now.plus(device.pause);
            }
        }
    }
}
