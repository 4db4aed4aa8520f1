//! One worker: a thread that polls its queues and runs the datapath on what it finds.

use crate::egress::{ClassCounters, Scheduler};
use crate::idle::Idle;
use crate::placement::ShardMap;
use crate::records;
use crate::waker::Waker;
use datapath::command::{Command, Event};
use datapath::offload::{Offload, OffloadReport};
use datapath::{Counters, Datapath, Outbox, SliceTraffic};
use io::steering::Duty;
use io::{BURST, Port, RxQueue, TxQueue};
use rtrb::{Consumer, Producer};
use session::ShardId;
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;

/// Frames taken from a control queue in one round: a flood of them leaves most of the round to users.
pub(crate) const CONTROL_BURST: usize = BURST / 4;
/// When a worker is told to stop, a port has this long to go on taking frames, in nanoseconds.
const LINGER: u64 = 10_000_000;
/// Orders taken between two bursts, so that a flood of N4 requests does not hold up packets.
const ORDERS_PER_LOOP: usize = 32;
/// How often the datapath's timers run.
const TICK: u64 = 1_000_000;
/// Events that wait for room in the ring to control; beyond, reports that packets caused are dropped and counted.
/// Answers to orders are never dropped: control bounds the number of orders outstanding.
const EVENT_BACKLOG: usize = 65_536;

/// Flows in hardware that a report names, at most.
const FLOWS_REPORTED: usize = 16;

/// What control asks of a worker.
#[derive(Debug)]
pub(crate) enum Order {
    /// For the datapath.
    Do(Command),
    /// Report counters.
    Report,
    /// Say that all orders before this one are carried out.
    Fence(u64),
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
    /// Counters, as asked.
    Report(Box<WorkerReport>),
}

/// A packet on its way to the owner of its shard, with the port it arrived at.
pub(crate) type HandedOff<F> = (u16, F);

/// A worker's counters at one moment.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: usize,
    /// The core it is pinned to.
    pub core: Option<usize>,
    /// What happened to packets.
    pub counters: Counters,
    /// Shards that it owns.
    pub shards: usize,
    /// Sessions in those shards.
    pub sessions: usize,
    /// How its time went.
    pub load: Load,
    /// What packets of each port cost: receive, process, send.
    pub ports: Vec<PortLoad>,
    /// Its flows in hardware, if it may have any.
    pub offload: Option<OffloadReport>,
    /// What it counted of each slice: uplink, downlink.
    pub slices: Vec<[SliceTraffic; 2]>,
    /// What waited to be sent, by port and by class in the order of the [plan](crate::egress::Plan).
    pub egress: Vec<Vec<ClassCounters>>,
    /// Receive queues that ports steer to ahead of RSS, in the order in which they are polled.
    pub steered: Vec<SteeredLoad>,
}

/// What came through a receive queue that a port steers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeredLoad {
    /// The port's number.
    pub port: u16,
    /// What the queue is for.
    pub duty: Duty,
    /// Packets received.
    pub packets: u64,
}

/// What the packets of one port cost a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLoad {
    /// Packets received.
    pub packets: u64,
    /// Nanoseconds spent on the bursts that they came in.
    pub nanos: u64,
}

/// How a worker's time went, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Rounds of its loop.
    pub polls: u64,
    /// Rounds that found nothing to do.
    pub empty_polls: u64,
    /// Nanoseconds spent in rounds that found something.
    pub busy_nanos: u64,
    /// Nanoseconds since start.
    pub total_nanos: u64,
    /// Packets passed to other workers.
    pub handed_off: u64,
    /// Packets taken from other workers.
    pub taken_over: u64,
    /// Reports lost because control did not take them for a long time.
    pub events_lost: u64,
}

/// A receive queue that a port steers to.
pub(crate) struct Steered<R> {
    pub rx: R,
    /// Bursts in a round, and frames in each.
    pub bursts: u8,
    pub most: usize,
    pub load: SteeredLoad,
}

/// Everything that one worker has.
pub(crate) struct Worker<P: Port> {
    pub number: usize,
    pub core: Option<usize>,
    pub map: ShardMap,
    pub queues: Vec<(P::Rx, P::Tx)>,
    /// Polled before those, in this order.
    pub steered: Vec<Steered<P::Rx>>,
    /// What waits for each port's transmit queue.
    pub egress: Vec<Scheduler<P::Frame>>,
    pub pool: P::Pool,
    pub datapath: Datapath<P::Frame>,
    pub offload: Option<Offload>,
    pub clock: Tsc,
    pub idle: Idle,
    pub orders: Consumer<Order>,
    pub answers: Producer<Answer>,
    pub waker: Arc<Waker>,
    /// To and from every other worker, by its number; `None` at the worker's own.
    pub to: Vec<Option<Producer<HandedOff<P::Frame>>>>,
    pub from: Vec<Option<Consumer<HandedOff<P::Frame>>>>,
    /// Packets just taken from another worker.
    pub taken: Vec<HandedOff<P::Frame>>,
    pub out: Outbox<P::Frame>,
    pub backlog: VecDeque<Answer>,
    pub load: Load,
    pub port_loads: Vec<PortLoad>,
}

impl<P: Port> Worker<P> {
    /// Runs until control says stop or disappears. Returns the final counters.
    pub fn run(mut self) -> WorkerReport {
        let mut burst: Vec<P::Frame> = Vec::with_capacity(BURST);
        let started = self.clock.now();
        let mut next_tick = started;
        let mut stopping = false;
        let mut last_work = started;
        loop {
            let now = self.clock.now();
            let packets = self.receive(now, &mut burst) + self.take_over(now) + self.send_waiting();
            let mut work = packets + self.obey(now, &mut stopping);
            if now >= next_tick {
                next_tick = now.plus(TICK);
                // First: counters are read before flows age.
                if let Some(offload) = &mut self.offload {
                    offload.tick(now, &mut self.datapath, &mut self.out);
                }
                self.datapath.tick(now, &mut self.out, &mut self.pool);
                self.flush();
            }
            work += self.answer();
            self.load.polls += 1;
            let after = self.clock.now();
            self.load.total_nanos = after.since(started);
            if work > 0 {
                last_work = after;
                self.load.busy_nanos += after.since(now);
                // Only packets keep a worker awake: control wakes it for orders, and needs the processor more where there are few.
                if packets > 0 {
                    self.idle.busy();
                }
                continue;
            }
            self.load.empty_polls += 1;
            let waiting = self.egress.iter().any(|scheduler| !scheduler.is_empty());
            if (stopping || self.answers.is_abandoned()) && !(waiting && after.since(last_work) < LINGER) {
                if let Some(offload) = &mut self.offload {
                    offload.stop(now, &mut self.datapath, &mut self.out);
                }
                self.close_flows();
                self.finish();
                return self.report();
            }
            self.idle.wait();
        }
    }

    /// A few bursts from each queue that ports steer to, the most urgent first, then one burst from each port.
    fn receive(&mut self, now: Nanos, burst: &mut Vec<P::Frame>) -> usize {
        let mut work = 0;
        let mut before = now;
        for at in 0..self.steered.len() {
            let bursts = self.steered.get(at).map_or(0, |queue| queue.bursts);
            for _ in 0..bursts {
                let Some(queue) = self.steered.get_mut(at) else { break };
                let received = queue.rx.rx_burst(burst, queue.most);
                queue.load.packets += received as u64;
                let (port, more) = (queue.load.port, received == queue.most);
                work += received;
                self.process(now, port, true, burst, &mut before);
                if !more {
                    break;
                }
            }
        }
        for port in 0..self.queues.len() {
            let Some((rx, _)) = self.queues.get_mut(port) else { continue };
            work += rx.rx_burst(burst, BURST);
            self.process(now, port as u16, false, burst, &mut before);
        }
        work
    }

    /// What a port gave, if anything, and whether it steered it. `before`: when the last such work ended.
    fn process(
        &mut self,
        now: Nanos,
        port: u16,
        steered: bool,
        burst: &mut Vec<P::Frame>,
        before: &mut Nanos,
    ) {
        let received = burst.len();
        if received == 0 {
            return;
        }
        if let Some(offload) = &mut self.offload {
            offload.sight(now, &self.datapath, port, burst);
        }
        if steered {
            self.datapath.process_steered(now, port, burst, &mut self.out, &mut self.pool);
        } else {
            self.datapath.process(now, port, burst, &mut self.out, &mut self.pool);
        }
        self.recheck(now);
        self.flush();
        let after = self.clock.now();
        if let Some(load) = self.port_loads.get_mut(usize::from(port)) {
            load.packets += received as u64;
            load.nanos += after.since(*before);
        }
        *before = after;
    }

    /// One burst from each other worker.
    fn take_over(&mut self, now: Nanos) -> usize {
        let mut work = 0;
        for ring in self.from.iter_mut().flatten() {
            let available = ring.slots().min(BURST);
            let Ok(chunk) = ring.read_chunk(available) else { continue };
            if available == 0 {
                continue;
            }
            self.taken.extend(chunk);
            self.load.taken_over += available as u64;
            work += available;
            if let Some(offload) = &mut self.offload {
                offload.sight_handed_off(now, &self.datapath, &self.taken);
            }
            self.datapath.process_handed_off(now, &mut self.taken, &mut self.out, &mut self.pool);
        }
        if work > 0 {
            self.recheck(now);
            self.flush();
        }
        work
    }

    /// Packets may have told where a neighbour is now: then no flow in hardware goes on to where it was.
    fn recheck(&mut self, now: Nanos) {
        if let Some(offload) = &mut self.offload {
            offload.check(now, &mut self.datapath, &mut self.out);
        }
    }

    /// A bounded number of orders.
    fn obey(&mut self, now: Nanos, stopping: &mut bool) -> usize {
        let mut work = 0;
        while work < ORDERS_PER_LOOP
            && let Ok(order) = self.orders.pop()
        {
            work += 1;
            match order {
                Order::Do(command) => {
                    // What is in hardware comes back before it would be wrong.
                    if let Some(offload) = &mut self.offload {
                        offload.before(now, &mut self.datapath, &command, &mut self.out);
                    }
                    self.datapath.apply(now, command, &mut self.out, &mut self.pool);
                    self.recheck(now);
                    self.flush();
                }
                Order::Report => {
                    let report = self.report();
                    self.backlog.push_back(Answer::Report(Box::new(report)));
                }
                Order::Fence(number) => self.backlog.push_back(Answer::Fence(number)),
                Order::Stop => *stopping = true,
            }
        }
        work
    }

    /// Sends what the datapath put into the outbox: packets to ports, packets to other workers, events.
    pub(crate) fn flush(&mut self) {
        let ports = self.out.transmit.iter_mut().zip(&mut self.queues).zip(&mut self.egress);
        for ((frames, (_, tx)), waiting) in ports {
            if frames.is_empty() {
                continue;
            }
            if waiting.is_empty() {
                tx.tx_burst(frames);
                if !frames.is_empty() {
                    self.datapath.counters_mut().lost_at_port(waiting.put(frames));
                }
            } else {
                // Behind or before those that wait, as their classes say.
                self.datapath.counters_mut().lost_at_port(waiting.put(frames));
                waiting.send(tx);
            }
        }
        for (shard, port, frame) in self.out.hand_off.drain(..) {
            let owner = self.map.owner(shard);
            let ring = self.to.get_mut(owner).and_then(Option::as_mut);
            match ring.map(|ring| ring.push((port, frame))) {
                Some(Ok(())) => self.load.handed_off += 1,
                _ => self.datapath.counters_mut().lost_in_hand_off(1),
            }
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
                    | Event::MirrorsEnded { .. }
            );
            if is_answer || self.backlog.len() < EVENT_BACKLOG {
                self.backlog.push_back(Answer::Event(event));
            } else {
                self.load.events_lost += 1;
            }
        }
    }

    /// Offers what waits to the ports again; says how many frames they took.
    fn send_waiting(&mut self) -> usize {
        let ports = self.queues.iter_mut().zip(&mut self.egress);
        ports.filter(|(_, waiting)| !waiting.is_empty()).map(|((_, tx), waiting)| waiting.send(tx)).sum()
    }

    /// Gives up what the ports don't take.
    fn finish(&mut self) {
        self.flush();
        let lost = self.egress.iter_mut().map(Scheduler::clear).sum();
        self.datapath.counters_mut().lost_at_port(lost);
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
        if work > 0 {
            self.waker.wake();
        }
        work
    }

    /// Ends without having run.
    pub fn abandon(self) -> WorkerReport {
        self.report()
    }

    fn report(&self) -> WorkerReport {
        WorkerReport {
            worker: self.number,
            core: self.core,
            counters: self.datapath.counters().clone(),
            shards: ShardId::all().filter(|&shard| self.datapath.owns(shard)).count(),
            sessions: self.datapath.sessions(),
            load: self.load,
            ports: self.port_loads.clone(),
            slices: self.datapath.slices(),
            egress: self.egress.iter().map(|scheduler| scheduler.counters().collect()).collect(),
            steered: self.steered.iter().map(|queue| queue.load).collect(),
            offload: self.offload.as_ref().map(|offload| offload.report(FLOWS_REPORTED)),
        }
    }
}
