//! One worker: a thread that polls its queues and runs the datapath on what it finds.

use crate::egress::Scheduler;
use crate::estate::Estates;
use crate::idle::Idle;
use crate::mesh::{Boxed, Lost, Mesh, Passed, shards_in};
use crate::moves::{Move, Moved, Mover};
use crate::overdue::Overdue;
use crate::owners::Owners;
use crate::plan::ewma::Ewma;
use crate::published::Publisher;
use crate::records;
use crate::report::{Dial, Load, PortLoad, SteeredLoad, WorkerReport, report};
use crate::sending::{Flush, SendMark};
use crate::supplier::Supplier;
use crate::under_way::UnderWay;
use crate::waker::{Roster, Waker};
use counters::{Words, put_all};
use datapath::command::{Command, Event};
use datapath::offload::Offload;
use datapath::{Burst, Datapath, FlowMemory, HandedOff, Outbox, Reason};
use io::{BURST, Port, Redirection, RxQueue, TxQueue};
use rtrb::{Consumer, Producer};
use session::ShardId;
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;

/// Frames taken from a control queue in one round: a flood of them leaves most of the round to users.
pub(crate) const CONTROL_BURST: usize = BURST / 4;
/// When a worker is told to stop, a port has this long to go on taking frames, and to stop giving any, in nanoseconds.
const LINGER: u64 = 10_000_000;
/// Orders taken in one round, so that a flood of N4 requests does not hold up packets.
const ORDERS_PER_LOOP: usize = 32;
/// Likewise while packets wait: a round brings a burst or more of them. To install a session takes as long as tens of packets, and 32 of them as long as
/// a receive ring lasts at high rates. Two a round are still more than N4 asks for.
const ORDERS_BESIDE_BURSTS: usize = 2;
/// Bursts taken from the ring of one other worker in one round. More than one: what another has received already comes before what
/// still waits in the queues, else a ring that is once full stays full, and loses what a queue could have kept.
pub(crate) const BURSTS_TAKEN_OVER: usize = 4;
/// How often a worker that rests looks at all rings before a fence, at most: those that still pass it packets come to rest themselves.
const LAST_LOOKS: usize = 64;
/// How often the datapath's timers run.
const TICK: u64 = 1_000_000;
/// Events that wait for room in the ring to control; beyond, usage is kept ([`Overdue`]), and other reports that packets caused are
/// dropped and counted. Answers to orders are never dropped: control bounds the number of orders outstanding.
const EVENT_BACKLOG: usize = 65_536;
/// How often a worker publishes its counters, whatever it does.
const PUBLISH: u64 = 100_000_000;
/// Slices that are written down at once, so that packets need not wait for thousands of them: those of 64 ticks are more than there can be.
pub(crate) const SLICES_AT_ONCE: usize = datapath::slice::MAX_SLICES / 64;
/// What a poll of a full queue yields.
const FULL: u32 = BURST as u32;

/// Flows in hardware that a report names, at most.
const FLOWS_REPORTED: usize = 16;

/// What control asks of a worker.
#[derive(Debug)]
pub(crate) enum Order {
    /// For the datapath.
    Do(Command),
    /// Publish counters, and say that it was this order.
    Publish(u64),
    /// Say that all orders before this one are carried out.
    Fence(u64),
    /// Take these shards over from their owner.
    Take(Arc<Move>),
    /// Take what this worker left when it died.
    Inherit(usize),
    /// Take no more packets from ports; go on with everything else.
    Rest,
    /// Take packets from ports again.
    Wake,
    /// Finish: send what is pending, then end.
    Stop,
}

/// What a worker answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// From the datapath.
    Event(Event),
    /// All orders before this fence are carried out.
    Fence(u64),
    /// Shards have come.
    Moved(Moved),
    /// It has panicked, and left this many shards.
    Died,
    /// The device that answered its look-ups is lost, and why.
    LookupsLost(String),
}

/// A receive queue of its own.
pub(crate) struct Receive<R> {
    pub rx: R,
    pub port: u16,
    pub seen: Seen,
}

/// A receive queue that a port steers to.
pub(crate) struct Steered<R> {
    pub rx: R,
    /// Bursts in a round, and frames in each.
    pub bursts: u8,
    pub most: usize,
    pub load: SteeredLoad,
    pub seen: Seen,
}

/// Whether all frames that waited in a queue when the worker began to watch it have been received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// Nobody asks.
    Unwatched,
    /// So many are left, if no call yields less than was asked for: under load a queue may not run empty for long.
    Left(usize),
    /// All.
    All,
}

impl Seen {
    /// Begins now.
    pub fn watch(queue: &mut impl RxQueue) -> Self {
        match queue.waiting() {
            0 => Self::All,
            waiting => Self::Left(waiting),
        }
    }

    #[inline]
    const fn receive(&mut self, frames: usize, asked: usize) {
        if let Self::Left(left) = *self {
            *self = if frames < asked || frames >= left { Self::All } else { Self::Left(left - frames) };
        }
    }

    pub const fn is_all(self) -> bool {
        matches!(self, Self::All)
    }
}

/// What became of packets and frames for other workers.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    passed: u64,
    full: u64,
    dead: u64,
    nowhere: u64,
}

impl Passage {
    #[inline(always)]
    const fn count(&mut self, result: Result<(), Lost>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(Lost::Full) => self.full += 1,
            Err(Lost::Dead) => self.dead += 1,
            Err(Lost::NoRing) => self.nowhere += 1,
        }
    }
}

/// A transmit queue.
pub(crate) struct Transmit<T, F> {
    pub tx: T,
    /// What waits for it.
    pub waiting: Scheduler<F>,
    /// Frames that it has taken.
    pub given: u64,
}

/// Everything that one worker has.
pub(crate) struct Worker<P: Port> {
    pub number: usize,
    pub core: Option<usize>,
    pub owners: Owners,
    /// None if packets come from dispatchers.
    pub queues: Vec<Receive<P::Rx>>,
    /// Polled before those, in this order.
    pub steered: Vec<Steered<P::Rx>>,
    /// By port.
    pub transmit: Vec<Transmit<P::Tx, P::Frame>>,
    /// The dispatcher that sends for it, if it doesn't itself.
    pub sender: Option<usize>,
    /// The ports' tables, if its queues get what they say.
    pub redirections: Vec<Box<dyn Redirection>>,
    pub pool: P::Pool,
    pub datapath: Datapath<P::Frame>,
    /// What it is working on; empty between calls.
    pub burst: Burst<P::Frame>,
    /// Those that wait for a device, if it has one.
    pub under_way: Option<Box<UnderWay<P::Frame>>>,
    pub supplier: Option<Supplier<FlowMemory>>,
    pub offload: Option<Offload>,
    /// Takes no packets from ports any more.
    pub resting: bool,
    pub clock: Tsc,
    pub idle: Idle,
    pub orders: Consumer<Order>,
    pub answers: Producer<Answer>,
    pub waker: Arc<Waker>,
    pub roster: Roster,
    pub mesh: Mesh<P::Frame>,
    pub mover: Mover<HandedOff<P::Frame>>,
    /// Its queues are watched until each has been [`Seen::All`].
    pub watching: bool,
    /// Shards that are to be given away.
    pub packed: Vec<Boxed<P::Frame>>,
    /// What is to be on the wire before shards are given away.
    pub mark: Option<(u64, SendMark)>,
    /// What others want to be on the wire.
    pub flushes: Vec<Flush>,
    /// Orders that wait for shards to come.
    pub held: VecDeque<Order>,
    pub estates: Estates<P>,
    pub out: Outbox<P::Frame>,
    pub backlog: VecDeque<Answer>,
    pub overdue: Overdue,
    pub load: Load,
    pub port_loads: Vec<PortLoad>,
    pub dial: Dial,
    pub load_factor: Ewma,
    pub publisher: Publisher,
    /// Slices that are in the publication that was begun last.
    pub slices_published: usize,
    /// When it published last, and whether it has done anything since.
    pub published_at: Nanos,
    pub unpublished: bool,
}

impl<P: Port> Worker<P> {
    /// Runs until control says stop or disappears.
    pub fn run(&mut self) {
        let started = self.clock.now();
        let mut next_tick = started;
        let mut stopping = false;
        let mut last_work = started;
        let mut told_to_stop = None;
        loop {
            let began = self.clock.now();
            self.load.total_nanos = began.since(started);
            let (packets, work) = self.round(began, &mut next_tick, &mut stopping);
            let after = self.clock.now();
            // Traffic doesn't end because a worker does: what comes for longer than this stays in the queues.
            let is_late = stopping && after.since(*told_to_stop.get_or_insert(after)) >= LINGER;
            if work > 0 && !is_late {
                last_work = after;
                self.unpublished = true;
                self.load.busy_nanos += after.since(began);
                // Only packets keep a worker awake: control wakes it for orders, and needs the processor more where there are few.
                if packets > 0 {
                    self.idle.busy();
                }
                continue;
            }
            self.load.empty_polls += 1;
            let waiting = self.transmit.iter().any(|transmit| !transmit.waiting.is_empty());
            let has_to_wait = waiting && after.since(last_work) < LINGER;
            if is_late || (stopping || self.answers.is_abandoned()) && !has_to_wait {
                self.finish_under_way(after);
                if let Some(offload) = &mut self.offload {
                    offload.stop(after, &mut self.datapath, &mut self.out);
                }
                self.tell_overdue();
                self.close_flows();
                self.finish();
                return;
            }
            // Who falls asleep leaves nothing untold.
            let rests = self.unpublished && self.idle.is_long() && self.publisher.is_whole();
            if rests && after.since(self.published_at) >= TICK {
                self.publish_counters(after);
            }
            let slept = if self.mover.is_busy() {
                self.idle.pause();
                false
            } else if self.idle.is_long() && self.has_nothing_to_wait_for() {
                self.sleep();
                true
            } else {
                self.idle.wait()
            };
            if slept {
                self.load.asleep_nanos += self.clock.now().since(after);
            }
        }
    }

    /// One round of its loop: packets, orders, moves, timers, answers. Says how many packets there were, and how much work in all.
    #[inline]
    pub(crate) fn round(
        &mut self,
        began: Nanos,
        next_tick: &mut Nanos,
        stopping: &mut bool,
    ) -> (usize, usize) {
        let mut now = began;
        let received = if self.resting { 0 } else { self.receive(&mut now) };
        let packets = received + self.take_over(now) + self.send_waiting();
        self.go_on(now);
        let orders = if packets < BURST { ORDERS_PER_LOOP } else { ORDERS_BESIDE_BURSTS };
        let mut work = packets + self.obey(now, orders, stopping);
        if self.mover.is_busy() || !self.flushes.is_empty() || self.mesh.has_words() {
            work += self.relocate(now);
        }
        if now >= *next_tick {
            *next_tick = now.plus(TICK);
            self.tick(now);
        }
        work += self.answer();
        self.load.polls += 1;
        (packets, work)
    }

    /// Timers, and the needles of the dial.
    fn tick(&mut self, now: Nanos) {
        self.finish_under_way(now);
        // First: counters are read before flows age.
        if let Some(offload) = self.offload.as_mut().filter(|_| !self.resting) {
            offload.tick(now, &mut self.datapath, &mut self.out);
        }
        self.datapath.tick(now, &mut self.out, &mut self.pool);
        self.flush(now);
        if let Some(supplier) = &mut self.supplier {
            supplier.serve(&mut self.datapath, Datapath::stock, Datapath::wish);
        }
        self.dial.show(self.load_factor.value(), self.mesh.occupancy());
        if !self.publisher.is_whole() {
            self.go_on_publishing();
        } else if now.since(self.published_at) >= PUBLISH {
            self.publish_counters(now);
        }
    }

    /// Begins to let others see what it has counted: all but slices beyond the first ones, which follow with each tick.
    pub(crate) fn publish_counters(&mut self, now: Nanos) {
        self.begin_publication(now, SLICES_AT_ONCE, false);
    }

    /// Lets others see all of it at once.
    pub(crate) fn publish_whole(&mut self, now: Nanos) {
        self.begin_publication(now, usize::MAX, false);
    }

    /// It has ended: what it counted in all.
    pub(crate) fn last_report(&mut self) -> WorkerReport {
        self.begin_publication(self.clock.now(), usize::MAX, true);
        self.dial.set_answered(u64::MAX);
        // What was written can be read.
        report(&self.publisher.published()).unwrap_or_default()
    }

    /// Writes down what a [`WorkerReport`] is read from, with so many slices at most. No report is made here: that would take memory.
    fn begin_publication(&mut self, now: Nanos, slices: usize, ended: bool) {
        let Self { publisher, datapath, .. } = self;
        let (port_loads, steered, transmit) = (&self.port_loads, &self.steered, &self.transmit);
        let offload = self.offload.as_ref().map(|offload| offload.report(FLOWS_REPORTED));
        let lookups = self.under_way.as_ref().map(|under_way| *under_way.counters());
        publisher.begin(|words| {
            (self.number, now).put(words);
            (ended, self.core).put(words);
            datapath.counters().put(words);
            datapath.held_limit().put(words);
            (datapath.owned(), datapath.sessions()).put(words);
            (self.load, datapath.stage_costs()).put(words);
            port_loads.put(words);
            offload.put(words);
            lookups.put(words);
            transmit.len().put(words);
            transmit.iter().for_each(|transmit| put_all(transmit.waiting.counters(), words));
            put_all(steered.iter().map(|queue| queue.load), words);
            let all = datapath.slices().len();
            all.put(words);
            let (before, first) = (words.len(), all.min(slices));
            datapath.slices().take(first).for_each(|slice| slice.put(words));
            let each = (words.len() - before) / first.max(1);
            each * (all - first)
        });
        (self.published_at, self.unpublished, self.slices_published) = (now, false, slices);
    }

    /// Some of the slices that follow.
    fn go_on_publishing(&mut self) {
        let Self { publisher, datapath, slices_published, .. } = self;
        publisher.go_on(|words| {
            let some = datapath.slices().skip(*slices_published).take(SLICES_AT_ONCE);
            some.for_each(|slice| slice.put(words));
        });
        *slices_published += SLICES_AT_ONCE;
    }

    /// A few bursts from each queue that ports steer to, the most urgent first, then one burst from each port.
    fn receive(&mut self, now: &mut Nanos) -> usize {
        let mut work = 0;
        for at in 0..self.steered.len() {
            let bursts = self.steered.get(at).map_or(0, |queue| queue.bursts);
            for _ in 0..bursts {
                let Some(queue) = self.steered.get_mut(at) else { break };
                let received = queue.rx.rx_burst(&mut self.burst.frames, queue.most);
                queue.load.packets += received as u64;
                let (port, more) = (queue.load.port, received == queue.most);
                queue.seen.receive(received, queue.most);
                work += received;
                self.process(now, port, true);
                if !more {
                    break;
                }
            }
        }
        for at in 0..self.queues.len() {
            let Some(queue) = self.queues.get_mut(at) else { continue };
            let received = queue.rx.rx_burst(&mut self.burst.frames, BURST);
            queue.seen.receive(received, BURST);
            let port = queue.port;
            work += received;
            if received == BURST {
                self.datapath.queue_fills(port, queue.rx.quarters());
            }
            self.load_factor.sample(received as u32, FULL);
            self.process(now, port, false);
        }
        work
    }

    /// What a port gave, if anything, and whether it steered it.
    ///
    /// `now` is when this begins, and becomes when it ended: the next burst may hold answers to what left here, which are
    /// later than it (captures tell the order of packets by their times).
    fn process(&mut self, now: &mut Nanos, port: u16, steered: bool) {
        let received = self.burst.frames.len();
        if received == 0 {
            return;
        }
        let began = *now;
        if let Some(offload) = &mut self.offload {
            offload.sight(began, &self.datapath, port, &self.burst.frames);
        }
        let mut handed_over = None;
        if !steered && self.waits(began, received) {
            self.datapath.read(began, port, &mut self.burst, &mut self.out);
            self.hand_over(began, Some(port));
            // What others cost that are finished now is counted with them.
            handed_over = Some(self.clock.now());
            self.finish_answered(began);
        } else {
            if steered {
                self.datapath.begin_steered(began, port, &mut self.burst, &mut self.out);
            } else {
                self.datapath.begin(began, port, &mut self.burst, &mut self.out);
            }
            self.datapath.finish(began, &mut self.burst, &mut self.out, &mut self.pool);
            self.recheck(began);
            self.flush(began);
        }
        *now = self.clock.now();
        if let Some(load) = self.port_loads.get_mut(usize::from(port)) {
            load.packets += received as u64;
            load.nanos += handed_over.unwrap_or(*now).since(began);
        }
    }

    /// Some bursts from each other worker.
    fn take_over(&mut self, now: Nanos) -> usize {
        let mut work = 0;
        for other in 0..self.mesh.workers() {
            for _ in 0..BURSTS_TAKEN_OVER {
                let came = self.take_burst_over(now, other);
                work += came;
                if came < BURST {
                    break;
                }
            }
        }
        if self.queues.is_empty() {
            self.load_factor.sample(work as u32, FULL);
        }
        work
    }

    /// One burst: packets to process, frames to send, words about moves, in the order in which they were passed.
    fn take_burst_over(&mut self, now: Nanos, other: usize) -> usize {
        let came = self.mesh.waiting(other).min(BURST);
        let mut left = came;
        while left > 0 {
            if let Some(packets) = self.mesh.packets(other, left) {
                self.datapath.arrive_handed_off(now, packets, &mut self.burst);
            }
            let packets = self.burst.frames.len();
            if packets > 0 {
                left -= packets;
                self.load.taken_over += packets as u64;
                self.process_arrived(now);
                continue;
            }
            left -= 1;
            match self.mesh.next(other) {
                Some(Passed::Send(port, frame)) => {
                    if let Some(frames) = self.out.transmit.get_mut(usize::from(port)) {
                        self.load.taken_over += 1;
                        self.datapath.counters_mut().sent_for_another(1);
                        frames.push(frame);
                    }
                }
                Some(Passed::Word(word)) => {
                    // It says something of what came before it.
                    self.finish_under_way(now);
                    self.flush(now);
                    self.hear(now, other, *word);
                }
                Some(Passed::Packet(_)) | None => {}
            }
        }
        if came > 0 {
            self.flush(now);
        }
        came
    }

    /// What other workers handed over, and what is to be sent for them.
    pub(crate) fn process_arrived(&mut self, now: Nanos) {
        if let Some(offload) = &mut self.offload {
            offload.sight_handed_off(now, &self.datapath, &self.burst);
        }
        let waits = self.waits(now, self.burst.frames.len());
        let Self { datapath, burst, out, pool, .. } = self;
        if waits {
            datapath.read_arrived(now, burst, out);
            self.hand_over(now, None);
            self.finish_answered(now);
            return;
        }
        datapath.process_arrived(now, burst, out, pool);
        self.recheck(now);
        self.flush(now);
    }

    /// Packets may have told where a neighbour is now: then no flow in hardware goes on to where it was.
    pub(crate) fn recheck(&mut self, now: Nanos) {
        if let Some(offload) = &mut self.offload {
            offload.check(now, &mut self.datapath, &mut self.out);
        }
    }

    /// So many orders at most.
    fn obey(&mut self, now: Nanos, most: usize, stopping: &mut bool) -> usize {
        let mut work = 0;
        while work < most
            && let Ok(order) = self.orders.pop()
        {
            work += 1;
            self.finish_under_way(now);
            match order {
                Order::Stop => *stopping = true,
                Order::Rest => self.rest(now),
                Order::Wake => self.resting = false,
                Order::Take(order) => self.take_shards(order),
                Order::Inherit(dead) => self.inherit(now, dead),
                // They may be about shards that are on their way, and their order counts.
                Order::Do(_) | Order::Fence(_) if self.mover.is_taking() => self.held.push_back(order),
                Order::Do(_) | Order::Fence(_) | Order::Publish(_) => self.carry_out(now, order),
            }
        }
        work
    }

    pub(crate) fn carry_out(&mut self, now: Nanos, order: Order) {
        match order {
            Order::Do(command) => {
                if !self.overdue.is_empty() {
                    self.backlog.extend(self.overdue.take_before(&command).into_iter().map(Answer::Event));
                }
                // What is in hardware comes back before it would be wrong.
                if let Some(offload) = &mut self.offload {
                    offload.before(now, &mut self.datapath, &command, &mut self.out);
                }
                self.datapath.apply(now, command, &mut self.out, &mut self.pool);
                self.recheck(now);
                self.flush(now);
            }
            Order::Publish(number) => {
                self.publish_whole(now);
                self.dial.set_answered(number);
            }
            Order::Fence(number) => {
                if self.resting {
                    self.finish_taken(now);
                }
                self.backlog.push_back(Answer::Fence(number));
            }
            Order::Take(_) | Order::Inherit(_) | Order::Rest | Order::Wake | Order::Stop => {}
        }
    }

    /// From now on nothing more comes from ports, and NICs forward nothing by themselves.
    fn rest(&mut self, now: Nanos) {
        self.resting = true;
        if let Some(offload) = &mut self.offload {
            offload.stop(now, &mut self.datapath, &mut self.out);
        }
        self.flush(now);
    }

    /// What others had passed on before they came to rest is served too.
    fn finish_taken(&mut self, now: Nanos) {
        for _ in 0..LAST_LOOKS {
            if self.mesh.is_empty() {
                break;
            }
            self.take_over(now);
        }
        self.finish_under_way(now);
    }

    /// Sends what the datapath put into the outbox: packets to ports, packets to other workers, events.
    pub(crate) fn flush(&mut self, now: Nanos) {
        let hands_off = !self.out.hand_off.is_empty();
        if let Some(sender) = self.sender {
            self.pass_to_sender(sender);
        } else {
            for (frames, transmit) in self.out.transmit.iter_mut().zip(&mut self.transmit) {
                if frames.is_empty() {
                    continue;
                }
                let Transmit { tx, waiting, given } = transmit;
                if waiting.is_empty() {
                    *given += tx.tx_burst(frames) as u64;
                    if !frames.is_empty() {
                        self.datapath.counters_mut().lost_at_port(waiting.put(frames));
                    }
                } else {
                    // Behind or before those that wait, as their classes say.
                    self.datapath.counters_mut().lost_at_port(waiting.put(frames));
                    *given += waiting.send(tx) as u64;
                }
            }
        }
        if hands_off {
            self.hand_off(now);
        }
        for event in self.out.events.drain(..) {
            if let Event::Flows(records) = &event
                && !records::have_room(&self.answers, &self.backlog, 1)
            {
                self.datapath.counters_mut().lost_records(records.len() as u64);
                continue;
            }
            let is_answer = matches!(
                event,
                Event::Applied { .. }
                    | Event::Refused { .. }
                    | Event::Snapshot { .. }
                    | Event::Exported { .. }
                    | Event::Restored { .. }
                    | Event::Neighbours { .. }
                    | Event::MirrorsEnded { .. }
            );
            if is_answer || self.backlog.len() < EVENT_BACKLOG {
                self.backlog.push_back(Answer::Event(event));
            } else if let Event::Usage { seid, usage } = event {
                self.overdue.keep(seid, usage);
            } else {
                self.load.events_lost += 1;
            }
        }
    }

    /// Passes frames to the dispatcher that sends them.
    fn pass_to_sender(&mut self, sender: usize) {
        let Self { out, mesh, .. } = self;
        let mut passage = Passage::default();
        for (port, frames) in (0..).zip(&mut out.transmit) {
            for frame in frames.drain(..) {
                passage.count(mesh.pass(sender, Passed::Send(port, frame)));
            }
        }
        let Passage { passed, full, dead, nowhere } = passage;
        self.datapath.counters_mut().left_to_sender(passed + full + dead + nowhere);
        self.settle_passage(passage);
    }

    /// Passes packets to the owners of their shards, or parks them if the shards are on their way here.
    fn hand_off(&mut self, now: Nanos) {
        let Self { out, mesh, mover, owners, number, .. } = self;
        let mut passage = Passage::default();
        let mut parking_full = 0;
        for (shard, packet) in out.hand_off.drain() {
            if mover.parks(shard) {
                parking_full += u64::from(mover.park(now, packet).is_err());
                continue;
            }
            let owner = owners.owner(shard);
            let is_other = owner != *number;
            passage.count(if is_other {
                mesh.pass(owner, Passed::Packet(packet))
            } else {
                Err(Lost::NoRing)
            });
        }
        self.datapath.counters_mut().lost_in_hand_off(Reason::MoveParkingFull, parking_full);
        self.settle_passage(passage);
    }

    /// Counts what became of packets and frames for other workers.
    fn settle_passage(&mut self, Passage { passed, full, dead, nowhere }: Passage) {
        self.load.handed_off += passed;
        let gone = self.gone();
        let counters = self.datapath.counters_mut();
        counters.lost_in_hand_off(Reason::HandOffRingFull, full);
        counters.lost_in_hand_off(gone, dead);
        counters.lost_in_hand_off(Reason::NotOwned, nowhere);
    }

    /// Offers what waits to the ports again; says how many frames they took.
    fn send_waiting(&mut self) -> usize {
        let mut sent = 0;
        for Transmit { tx, waiting, given } in self.transmit.iter_mut().filter(|one| !one.waiting.is_empty())
        {
            let taken = waiting.send(tx);
            *given += taken as u64;
            sent += taken;
        }
        sent
    }

    /// Gives up what the ports don't take, and what waits for shards that won't come.
    fn finish(&mut self) {
        let now = self.clock.now();
        self.flush(now);
        // Shards on their way end with the workers.
        self.leave_rings();
        let lost = self.transmit.iter_mut().map(|transmit| transmit.waiting.clear()).sum();
        self.datapath.counters_mut().lost_at_port(lost);
    }

    /// Nobody passes anything to this worker from now on: what is parked or in the rings is lost, but for shards.
    pub(crate) fn leave_rings(&mut self) -> Vec<Boxed<P::Frame>> {
        let mut lost = self.mover.abandon().len() as u64;
        let mut shards = Vec::new();
        for passed in self.mesh.leave() {
            lost += u64::from(!matches!(passed, Passed::Word(_)));
            shards.extend(shards_in(passed));
        }
        shards.append(&mut self.mesh.returned());
        let gone = self.gone();
        let counters = self.datapath.counters_mut();
        counters.handed_in += lost;
        counters.lose(gone, lost);
        shards
    }

    /// The worker ends: whatever usage waits is to be told.
    pub(crate) fn tell_overdue(&mut self) {
        while let Some(event) = self.overdue.take_any() {
            self.backlog.push_back(Answer::Event(event));
        }
    }

    /// Why packets are lost that were on their way to a worker that is not there any more.
    fn gone(&self) -> Reason {
        if self.roster.is_ending() { Reason::LeftAtStop } else { Reason::LostWithWorker }
    }

    /// Passes answers and events to control.
    pub(crate) fn answer(&mut self) -> usize {
        let mut work = 0;
        while let Some(answer) = self.backlog.pop_front() {
            if let Err(rtrb::PushError::Full(answer)) = self.answers.push(answer) {
                self.backlog.push_front(answer);
                break;
            }
            work += 1;
        }
        while !self.overdue.is_empty()
            && self.backlog.len() < EVENT_BACKLOG
            && let Some(event) = self.overdue.take_any()
        {
            self.backlog.push_back(Answer::Event(event));
        }
        if work > 0 {
            self.waker.wake();
        }
        work
    }

    /// No shard here, none coming, and no queue that packets could reach.
    fn has_nothing_to_wait_for(&self) -> bool {
        let reachable = !self.queues.is_empty() && self.redirections.len() < self.queues.len();
        // Worker 0 gets what no hash can be computed of.
        self.number != 0 && !reachable && self.backlog.is_empty() && self.datapath.owned() == 0
    }

    fn sleep(&mut self) {
        self.dial.set_asleep(true);
        if self.orders.is_empty() && self.mesh.is_empty() {
            self.idle.sleep();
        }
        self.dial.set_asleep(false);
    }

    /// Whether a shard is here.
    pub(crate) fn owns(&self, shard: ShardId) -> bool {
        self.datapath.owns(shard)
    }
}
