//! The flow table of NICs in memory: an embedded switch that some of them share.

use super::counter::Counter;
use super::flows::{Facts, decrement_ttl, encapsulate};
use super::frame::{Ledger, MemFrame};
use super::meter::Bucket;
use super::nic::{MemNic, Registers};
use crate::frame::Frame;
use crate::offload::{
    Action, Capabilities, Container, CounterId, Counts, Failure, Feature, Features, FlowOffload, FlowRule,
    Handle, MeterId, Pattern, Refused, TunnelMatch,
};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::{MeterConfig, Nanos};

/// Frames that may wait at a port's wire side for whoever collects them; more are lost.
const HAIRPIN: usize = 65_536;

/// What the flow table of a [`MemSwitch`] is like.
#[derive(Clone, Debug)]
pub struct FlowTableConfig {
    /// Rules that fit.
    pub entries: u32,
    /// Rules taken per second; as many may come at once. 0: as many as want.
    pub insertions_per_second: u32,
    /// Refuses every so many-th rule in its own words; 0: none.
    pub refuse_every: u32,
    /// Meters that fit.
    pub meters: u32,
    /// Nanoseconds until a rule that was taken is in force, and between two looks at the counters that are read. Taking back
    /// is done, and counted to the end, when the call returns.
    pub delay: u64,
    /// Rules come in force after twice as long at most, in any order.
    pub disorder: bool,
    /// A reading may give packets without their bytes, or bytes without their packets; the rest follows.
    pub torn: bool,
    /// Whether a meter's rate can be changed.
    pub meters_change: bool,
    /// What rules may contain.
    pub features: Features,
}

impl Default for FlowTableConfig {
    /// 1,024 rules, as many meters, and all that the model can do.
    fn default() -> Self {
        Self {
            entries: 1024,
            insertions_per_second: 0,
            refuse_every: 0,
            meters: 1024,
            delay: 0,
            disorder: false,
            torn: false,
            meters_change: true,
            features: MemSwitch::features(),
        }
    }
}

/// An embedded switch: the ports that are plugged into it share one flow table, and rules may forward between them.
///
/// Packets are matched on the wire's side, before receive-side scaling: what a rule forwards comes out of another
/// port's [`MemWire::collect`](super::MemWire::collect), and no queue has seen it.
#[derive(Clone, Debug)]
pub struct MemSwitch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    /// Rules in force: as long as there are none, nobody takes the lock.
    live: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    config: FlowTableConfig,
    ports: Vec<Arc<Registers>>,
    rules: HashMap<(u16, Pattern), Rule>,
    /// Where a handle's rule is, and whose it is.
    handles: HashMap<u64, (u16, Pattern, u64)>,
    /// Which fields the rules of a port look at, most special first, and how many rules do.
    shapes: Vec<(Shape, usize)>,
    next_handle: u64,
    next_owner: u64,
    meters: HashMap<MeterId, Bucket>,
    /// With their owners.
    counters: HashMap<CounterId, (Counter, u64)>,
    next_object: u32,
    /// As it was told last.
    now: Nanos,
    offered: u64,
    /// Insertions that may still come at once, in billionths, and since when.
    tokens: u64,
    since: Nanos,
    broken: Option<Failure>,
}

#[derive(Debug)]
struct Rule {
    longest: u16,
    actions: Vec<Action>,
    /// What it marks frames with.
    mark: Option<Arc<Ledger>>,
    counts: Counter,
    /// In force from then on.
    from: Nanos,
}

/// Frames that left a port without having been in one of its queues, and the counters of what no queue has seen.
#[derive(Debug, Default)]
pub(super) struct Hairpin {
    pub frames: Mutex<VecDeque<MemFrame>>,
    pub rx: [AtomicU64; 2],
    pub tx: [AtomicU64; 2],
    pub lost: AtomicU64,
}

/// What becomes of a frame from the wire.
pub(super) enum Verdict {
    /// No rule: to a queue by receive-side scaling.
    Host(MemFrame),
    /// To this queue.
    Queue(MemFrame, u16),
    /// A rule has forwarded or dropped it.
    Gone,
}

impl MemSwitch {
    /// A switch without ports.
    pub fn new(config: FlowTableConfig) -> Self {
        let table = Table {
            tokens: u64::from(config.insertions_per_second) * Nanos::SECOND,
            config,
            ports: Vec::new(),
            rules: HashMap::new(),
            handles: HashMap::new(),
            shapes: Vec::new(),
            next_handle: 1,
            next_owner: 1,
            meters: HashMap::new(),
            counters: HashMap::new(),
            next_object: 1,
            now: Nanos(0),
            offered: 0,
            since: Nanos(0),
            broken: None,
        };
        Self { shared: Arc::new(Shared { live: AtomicUsize::new(0), table: Mutex::new(table) }) }
    }

    /// What the model can do: all but receive-side scaling by rule.
    pub fn features() -> Features {
        Features::all().without(Feature::Rss)
    }

    /// What time it is, for meters and delays: it has no clock. What it is told of the past changes nothing.
    pub fn set_time(&self, now: Nanos) {
        let mut table = self.lock();
        table.now = table.now.max(now);
    }

    /// Makes a NIC the switch's next port, from 0 on; [`Action::Port`] means these numbers. `None`, and nothing done: the NIC
    /// has a switch already.
    pub fn plug(&self, nic: &MemNic) -> Option<u16> {
        let mut table = self.lock();
        let (port, registers) = (table.ports.len() as u16, nic.registers());
        let plugged = registers.plug(Arc::clone(&self.shared), port);
        plugged.then(|| {
            table.ports.push(Arc::clone(registers));
            port
        })
    }

    /// The device as the user of one port sees it. Rules that are inserted through it match what comes in there.
    pub fn offload(&self, port: u16) -> MemOffload {
        let mut table = self.lock();
        table.next_owner += 1;
        MemOffload { shared: Arc::clone(&self.shared), port, owner: table.next_owner }
    }

    /// Rules in force.
    pub fn len(&self) -> usize {
        self.lock().rules.len()
    }

    /// Whether no rule is in force.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Meters that there are.
    pub fn meters(&self) -> usize {
        self.lock().meters.len()
    }

    /// Counters that there are beside the rules' own.
    pub fn counters(&self) -> usize {
        self.lock().counters.len()
    }

    /// Loses power for a moment: all rules and meters are gone, and their counters.
    pub fn reset(&self) {
        let mut table = self.lock();
        table.rules.clear();
        table.meters.clear();
        table.counters.clear();
        table.handles.clear();
        table.shapes.clear();
        self.shared.live.store(0, Ordering::Release);
    }

    /// From now on (or no longer) counters can't be read and rules can't be taken back; they stay in force.
    pub fn set_broken(&self, failure: Option<Failure>) {
        self.lock().broken = failure;
    }

    /// Another handle on the switch that a port knows.
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a frame can meet a rule.
    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire) != 0
    }

    /// Lets a frame that arrives at a port meet the rules.
    pub(super) fn handle(&self, port: u16, frame: MemFrame) -> Verdict {
        let Some(facts) = Facts::of(frame.bytes()) else { return Verdict::Host(frame) };
        self.lock().handle(port, frame, &facts)
    }
}

impl Table {
    fn handle(&mut self, port: u16, frame: MemFrame, facts: &Facts) -> Verdict {
        let found = self.shapes.iter().find_map(|(shape, _)| {
            let key = (port, shape.of(&facts.pattern)?);
            self.rules.get(&key).is_some_and(|rule| rule.from <= self.now).then_some(key)
        });
        let Some(rule) = found.and_then(|key| self.rules.get_mut(&key)) else { return Verdict::Host(frame) };
        if facts.len > usize::from(rule.longest) || !leaves(&self.ports, rule, &frame, facts) {
            return Verdict::Host(frame);
        }
        let (config, now) = (&self.config, self.now);
        let mut objects = Objects { config, now, meters: &mut self.meters, counters: &mut self.counters };
        run(&self.ports, port, rule, frame, facts, &mut objects)
    }

    fn insert(&mut self, owner: u64, port: u16, now: Nanos, rule: &FlowRule) -> Result<Handle, Refused> {
        self.now = self.now.max(now);
        if let Some(feature) = rule.lacks(self.config.features) {
            return Err(Refused::Unsupported(feature));
        }
        let missing = |action: &Action| match action {
            Action::Meter(meter) => !self.meters.contains_key(meter),
            Action::CountFor(counter) => !self.counters.contains_key(counter),
            _ => false,
        };
        if rule.actions.iter().any(missing) {
            return Err(Refused::Device("no such meter or counter".into()));
        }
        self.offered += 1;
        let every = u64::from(self.config.refuse_every);
        if every != 0 && self.offered.is_multiple_of(every) {
            return Err(Refused::Device("not in the mood".into()));
        }
        if self.rules.len() >= self.config.entries as usize {
            return Err(Refused::Full);
        }
        let key = (port, rule.pattern);
        if self.rules.contains_key(&key) {
            return Err(Refused::Exists);
        }
        if !self.take_token(now) {
            return Err(Refused::Busy);
        }
        let shape = Shape::of_pattern(&rule.pattern);
        if let Some((_, users)) = self.shapes.iter_mut().find(|(known, _)| *known == shape) {
            *users += 1;
        } else {
            self.shapes.push((shape, 1));
            self.shapes.sort_by_key(|(shape, _)| std::cmp::Reverse(shape.fields()));
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.handles.insert(handle, (port, rule.pattern, owner));
        let FlowRule { longest, ref actions, .. } = *rule;
        let mark = actions.iter().find_map(|action| match action {
            Action::Mark(mark) => Some(Ledger::of_mark(*mark)),
            _ => None,
        });
        let late = if self.config.disorder {
            scatter(handle) % (2 * self.config.delay + 1)
        } else {
            self.config.delay
        };
        let (actions, counts, from) = (actions.clone(), Counter::default(), self.now.plus(late));
        self.rules.insert(key, Rule { longest, actions, mark, counts, from });
        Ok(Handle(handle))
    }

    fn add_meter(&mut self, owner: u64, now: Nanos, config: MeterConfig) -> Result<MeterId, Refused> {
        self.now = self.now.max(now);
        if !self.config.features.has(Feature::Meter) {
            return Err(Refused::Unsupported(Feature::Meter));
        }
        if self.meters.len() >= self.config.meters as usize {
            return Err(Refused::Full);
        }
        let meter = MeterId(self.next_object);
        self.next_object += 1;
        self.meters.insert(meter, Bucket::new(config, owner, self.now));
        Ok(meter)
    }

    fn set_meter(&mut self, now: Nanos, meter: MeterId, config: MeterConfig) -> Result<(), Refused> {
        self.now = self.now.max(now);
        if let Some(failure) = &self.broken {
            return Err(Refused::Device(failure.to_string()));
        }
        if !self.config.meters_change {
            return Err(Refused::Unsupported(Feature::Meter));
        }
        let bucket = self.meters.get_mut(&meter).ok_or_else(|| Refused::Device("no such meter".into()))?;
        bucket.set(config, self.now);
        Ok(())
    }

    fn bucket(&mut self, meter: MeterId) -> Result<&mut Bucket, Failure> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        self.meters.get_mut(&meter).ok_or(Failure::Forgotten)
    }

    fn dropped(&mut self, meter: MeterId) -> Result<Counts, Failure> {
        let (config, now) = (self.config.clone(), self.now);
        self.bucket(meter).map(|bucket| bucket.dropped.read(now, &config))
    }

    fn remove_meter(&mut self, meter: MeterId) -> Result<Counts, Failure> {
        let dropped = self.bucket(meter)?.dropped.total();
        self.unused(&Action::Meter(meter))?;
        self.meters.remove(&meter);
        Ok(dropped)
    }

    fn unused(&self, action: &Action) -> Result<(), Failure> {
        let used = self.rules.values().any(|rule| rule.actions.contains(action));
        if used { Err(Failure::Device("a rule uses it".into())) } else { Ok(()) }
    }

    fn add_counter(&mut self, owner: u64) -> Result<CounterId, Refused> {
        if !self.config.features.has(Feature::SharedCount) {
            return Err(Refused::Unsupported(Feature::SharedCount));
        }
        let counter = CounterId(self.next_object);
        self.next_object += 1;
        self.counters.insert(counter, (Counter::default(), owner));
        Ok(counter)
    }

    fn counter(&mut self, counter: CounterId) -> Result<&mut Counter, Failure> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        self.counters.get_mut(&counter).map(|(counter, _)| counter).ok_or(Failure::Forgotten)
    }

    fn counted(&mut self, counter: CounterId) -> Result<Counts, Failure> {
        let (config, now) = (self.config.clone(), self.now);
        self.counter(counter).map(|counter| counter.read(now, &config))
    }

    fn remove_counter(&mut self, counter: CounterId) -> Result<Counts, Failure> {
        let counts = self.counter(counter)?.total();
        self.unused(&Action::CountFor(counter))?;
        self.counters.remove(&counter);
        Ok(counts)
    }

    fn take_token(&mut self, now: Nanos) -> bool {
        let rate = u64::from(self.config.insertions_per_second);
        if rate == 0 {
            return true;
        }
        let most = rate * Nanos::SECOND;
        let earned = now.since(self.since).saturating_mul(rate);
        self.tokens = self.tokens.saturating_add(earned).min(most);
        self.since = now;
        let taken = self.tokens.checked_sub(Nanos::SECOND);
        self.tokens = taken.unwrap_or(self.tokens);
        taken.is_some()
    }

    fn rule(&mut self, handle: Handle) -> Result<&mut Rule, Failure> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        let (port, pattern, _) = self.handles.get(&handle.0).ok_or(Failure::Forgotten)?;
        self.rules.get_mut(&(*port, *pattern)).ok_or(Failure::Forgotten)
    }

    fn counts(&mut self, handle: Handle) -> Result<Counts, Failure> {
        let (config, now) = (self.config.clone(), self.now);
        self.rule(handle).map(|rule| rule.counts.read(now, &config))
    }

    fn remove(&mut self, handle: Handle) -> Result<Counts, Failure> {
        let counts = self.rule(handle)?.counts.total();
        if let Some((port, pattern, _)) = self.handles.remove(&handle.0) {
            self.rules.remove(&(port, pattern));
            let shape = Shape::of_pattern(&pattern);
            if let Some(at) = self.shapes.iter().position(|(known, _)| *known == shape)
                && let Some((_, users)) = self.shapes.get_mut(at)
            {
                *users -= 1;
                if *users == 0 {
                    self.shapes.remove(at);
                }
            }
        }
        Ok(counts)
    }
}

/// A number that has nothing to do with its neighbours' (SplitMix64).
const fn scatter(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

/// Whether the frame may leave where the rule sends it: the link is up, and it isn't too long there.
fn leaves(ports: &[Arc<Registers>], rule: &Rule, frame: &MemFrame, facts: &Facts) -> bool {
    let mut length = frame.len();
    rule.actions.iter().all(|action| match action {
        Action::Decap => {
            length = facts.len;
            true
        }
        Action::Encap(headers) => {
            length += headers.len();
            frame.headroom() + facts.inner >= headers.len()
        }
        Action::Port(port) => ports
            .get(usize::from(*port))
            .is_some_and(|registers| registers.link_up() && length <= registers.longest),
        _ => true,
    })
}

/// What rules share.
struct Objects<'a> {
    config: &'a FlowTableConfig,
    now: Nanos,
    meters: &'a mut HashMap<MeterId, Bucket>,
    counters: &'a mut HashMap<CounterId, (Counter, u64)>,
}

/// Does what a rule says to a frame that [`leaves`].
fn run(
    ports: &[Arc<Registers>],
    port: u16,
    rule: &mut Rule,
    mut frame: MemFrame,
    facts: &Facts,
    objects: &mut Objects<'_>,
) -> Verdict {
    let arrived = frame.len() as u64;
    let came = |port: u16| {
        if let Some(registers) = ports.get(usize::from(port)) {
            add(&registers.hairpin.rx, arrived);
        }
    };
    let (mut inner, mut queue) = (facts.inner, None);
    for action in &rule.actions {
        match action {
            Action::Count => {
                rule.counts.count(frame.len(), objects.now, objects.config);
            }
            Action::CountFor(counter) => {
                if let Some((counts, _)) = objects.counters.get_mut(counter) {
                    counts.count(frame.len(), objects.now, objects.config);
                }
            }
            Action::Meter(meter) => {
                let bucket = objects.meters.get_mut(meter);
                if bucket.is_some_and(|bucket| !bucket.passes(frame.len(), objects.now, objects.config)) {
                    came(port);
                    return Verdict::Gone;
                }
            }
            Action::Mark(_) => {
                if let Some(mark) = &rule.mark {
                    match frame.marked(mark) {
                        Some(marked) => frame = marked,
                        None => return Verdict::Gone,
                    }
                }
            }
            Action::Decap => {
                frame.trim_front(inner);
                frame.truncate(facts.len);
                inner = 0;
            }
            Action::DecTtl => decrement_ttl(&mut frame, inner, facts.pattern.v6),
            Action::Encap(headers) => {
                if !encapsulate(&mut frame, headers) {
                    return Verdict::Gone;
                }
                inner += headers.len();
            }
            Action::Queue(number) => queue = Some(*number),
            Action::Port(to) => {
                came(port);
                if let Some(registers) = ports.get(usize::from(*to)) {
                    registers.hairpin.send(frame);
                }
                return Verdict::Gone;
            }
            Action::Rss { .. } => {}
        }
    }
    match queue {
        Some(queue) => Verdict::Queue(frame, queue),
        None => Verdict::Host(frame),
    }
}

fn add(counts: &[AtomicU64; 2], bytes: u64) {
    let [packets, octets] = counts;
    packets.fetch_add(1, Ordering::Relaxed);
    octets.fetch_add(bytes, Ordering::Relaxed);
}

impl Hairpin {
    fn send(&self, frame: MemFrame) {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if frames.len() < HAIRPIN {
            add(&self.tx, frame.len() as u64);
            frames.push_back(frame);
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Appends up to `max` frames to `into`.
    pub(super) fn collect(&self, into: &mut Vec<MemFrame>, max: usize) {
        let [packets, _] = &self.tx;
        if packets.load(Ordering::Relaxed) != 0 {
            let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
            let n = frames.len().min(max);
            into.extend(frames.drain(..n));
        }
    }
}

/// Which fields a pattern looks at: rules of one shape are found by one look-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    vlan: bool,
    /// In a tunnel, with or without a container.
    tunnel: Option<bool>,
    v6: bool,
    source: bool,
    destination: bool,
    protocol: bool,
    ports: bool,
    tos: Option<u8>,
}

impl Shape {
    fn of_pattern(pattern: &Pattern) -> Self {
        Self {
            vlan: pattern.vlan.is_some(),
            tunnel: pattern.tunnel.map(|tunnel| tunnel.container != Container::Absent),
            v6: pattern.v6,
            source: pattern.source.is_some(),
            destination: pattern.destination.is_some(),
            protocol: pattern.protocol.is_some(),
            ports: pattern.ports.is_some(),
            tos: pattern.tos.map(|(_, mask)| mask),
        }
    }

    fn fields(&self) -> u32 {
        let flags = [self.source, self.destination, self.protocol, self.ports];
        flags.into_iter().map(u32::from).sum::<u32>() + self.tos.map_or(0, u8::count_ones)
    }

    /// The pattern of this shape that a frame matches; `None`: it lacks a field.
    fn of(&self, full: &Pattern) -> Option<Pattern> {
        let has_container = |tunnel: &TunnelMatch| tunnel.container != Container::Absent;
        if self.v6 != full.v6
            || self.vlan != full.vlan.is_some()
            || self.tunnel != full.tunnel.as_ref().map(has_container)
            || (self.ports && full.ports.is_none())
        {
            return None;
        }
        Some(Pattern {
            source: full.source.filter(|_| self.source),
            destination: full.destination.filter(|_| self.destination),
            protocol: full.protocol.filter(|_| self.protocol),
            ports: full.ports.filter(|_| self.ports),
            tos: full.tos.and_then(|(tos, _)| self.tos.map(|mask| (tos & mask, mask))),
            ..*full
        })
    }
}

/// A port of a [`MemSwitch`] as the device behind [`FlowOffload`].
#[derive(Debug)]
pub struct MemOffload {
    shared: Arc<Shared>,
    port: u16,
    owner: u64,
}

impl MemOffload {
    fn change<R>(&self, work: impl FnOnce(&mut Table) -> R) -> R {
        let mut table = self.shared.lock();
        let result = work(&mut table);
        self.shared.live.store(table.rules.len(), Ordering::Release);
        result
    }
}

impl FlowOffload for MemOffload {
    fn capabilities(&self) -> Capabilities {
        let table = self.shared.lock();
        Capabilities { entries: Some(table.config.entries), features: table.config.features }
    }

    fn insert(&mut self, now: Nanos, rule: &FlowRule) -> Result<Handle, Refused> {
        self.change(|table| table.insert(self.owner, self.port, now, rule))
    }

    fn counts(&mut self, handle: Handle) -> Result<Counts, Failure> {
        self.shared.lock().counts(handle)
    }

    fn remove(&mut self, handle: Handle) -> Result<Counts, Failure> {
        self.change(|table| table.remove(handle))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.change(|table| {
            let own = table.handles.iter().filter(|(_, (_, _, owner))| *owner == self.owner);
            let own: Vec<_> = own.map(|(handle, _)| Handle(*handle)).collect();
            own.into_iter().try_for_each(|handle| table.remove(handle).map(drop))?;
            let own = table.meters.iter().filter(|(_, bucket)| bucket.owner == self.owner);
            let own: Vec<_> = own.map(|(meter, _)| *meter).collect();
            own.into_iter().try_for_each(|meter| table.remove_meter(meter).map(drop))?;
            let own = table.counters.iter().filter(|(_, (_, owner))| *owner == self.owner);
            let own: Vec<_> = own.map(|(counter, _)| *counter).collect();
            own.into_iter().try_for_each(|counter| table.remove_counter(counter).map(drop))
        })
    }

    fn add_counter(&mut self, _now: Nanos) -> Result<CounterId, Refused> {
        self.change(|table| table.add_counter(self.owner))
    }

    fn counted(&mut self, counter: CounterId) -> Result<Counts, Failure> {
        self.shared.lock().counted(counter)
    }

    fn remove_counter(&mut self, counter: CounterId) -> Result<Counts, Failure> {
        self.change(|table| table.remove_counter(counter))
    }

    fn add_meter(&mut self, now: Nanos, config: MeterConfig) -> Result<MeterId, Refused> {
        self.change(|table| table.add_meter(self.owner, now, config))
    }

    fn set_meter(&mut self, now: Nanos, meter: MeterId, config: MeterConfig) -> Result<(), Refused> {
        self.change(|table| table.set_meter(now, meter, config))
    }

    fn dropped(&mut self, meter: MeterId) -> Result<Counts, Failure> {
        self.shared.lock().dropped(meter)
    }

    fn remove_meter(&mut self, meter: MeterId) -> Result<Counts, Failure> {
        self.change(|table| table.remove_meter(meter))
    }
}
