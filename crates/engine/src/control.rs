//! The control side's handle on the workers.

use crate::egress::Plan;
use crate::estate::Estates;
use crate::idle::IdlePolicy;
use crate::mesh::Mesh;
use crate::model::Model;
use crate::moves::{Director, Move, MoveCounters};
use crate::owners::Owners;
use crate::placement::{InvalidWorkerCount, ShardMap};
use crate::plan::scaler::ScalerError;
use crate::published::Published;
use crate::regulate::{Regulator, Scaling};
use crate::report::{Dial, Gauge, Snapshots, WorkerReport};
use crate::seed::{Seed, Started, deal_queues};
use crate::supplier::Neighbourhood;
use crate::under_way::OpenLookups;
use crate::waker::{Roster, Waker};
use crate::worker::{Answer, Order};
use datapath::command::{Command, Event};
use datapath::offload::Policy;
use datapath::{Config, ShardLoads};
use io::Port;
use rtrb::{Consumer, Producer, RingBuffer};
use session::ShardId;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tables::clock::Tsc;

/// Orders that wait for one worker, at most, for another worker's news to be added.
const NEWS: usize = 4_096;

/// Runs first in each worker's thread; what it returns is dropped when the thread ends.
pub type OnThreadStart = Arc<dyn Fn() -> Box<dyn std::any::Any> + Send + Sync>;

/// How many workers, where, and how they wait.
#[derive(Clone)]
pub struct EngineConfig {
    /// One entry per worker: the core that it is pinned to, or `None` to leave it to the kernel.
    pub cores: Vec<Option<usize>>,
    /// Workers and ports, by number, that are on different NUMA nodes: what such a worker receives from such a port is told
    /// apart ([`crate::PortLoad::far`]).
    pub far: Vec<(usize, u16)>,
    /// How packets come to the workers that own their shards.
    pub model: Model,
    /// Workers that own shards at the start; `None`: all that may.
    pub active: Option<usize>,
    /// When the number of workers changes, and shards move.
    pub scaling: Scaling,
    /// Packets of moving shards that a worker can park.
    pub parking: usize,
    /// How long a worker that gives shards away waits for others that don't answer. The giver itself is waited for twice as long:
    /// then there is no move.
    pub patience: Duration,
    /// How long [`Engine::reports`] waits for a worker's answer.
    pub answer_within: Duration,
    /// What a worker does when there is nothing to do.
    pub idle: IdlePolicy,
    /// Entries of each order and answer ring.
    pub control_ring: usize,
    /// Packets in each ring between two workers.
    pub hand_off_ring: usize,
    /// How what a port can't send at once waits.
    pub egress: Arc<Plan>,
    /// DPDK wants its threads registered.
    pub on_thread_start: OnThreadStart,
    /// Workers begin at rest: they carry out orders, and take no packets from ports until [`Engine::wake`].
    pub resting: bool,
    /// Whether, and when, flows go to the ports' flow tables; a partial mode's queue is each worker's own.
    pub offload: Option<Policy>,
    /// Who answers look-ups for workers that own shards; `None`: they do it themselves.
    pub lookups: Option<OpenLookups>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            cores: vec![None],
            far: Vec::new(),
            model: Model::default(),
            active: None,
            scaling: Scaling::default(),
            parking: 4_096,
            // Longer than a scheduler or a host keeps a worker from running (12 ms were seen), for impatience costs order; shorter than
            // what calls a worker stalled.
            patience: Duration::from_millis(100),
            answer_within: Duration::from_secs(1),
            idle: IdlePolicy::default(),
            control_ring: 4_096,
            hand_off_ring: 1_024,
            egress: Arc::new(Plan::standard([])),
            on_thread_start: Arc::new(|| Box::new(())),
            resting: false,
            offload: None,
            lookups: None,
        }
    }
}

/// Why the engine did not start, or a worker is lost.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The number of workers is impossible.
    #[error(transparent)]
    Workers(#[from] InvalidWorkerCount),
    /// Bounds or thresholds of scaling make no sense.
    #[error("scaling: {0}")]
    Scaling(#[from] ScalerError),
    /// A worker can't be pinned.
    #[error("worker {worker} can't run on core {core}: {source}; choose from the cores {available:?}")]
    Pin {
        /// Which worker.
        worker: usize,
        /// The core asked for.
        core: usize,
        /// The cores that this process may use.
        available: Vec<usize>,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A port has fewer queues than there are workers.
    #[error("port {port} has no queue {queue}: give it as many queues as there are workers")]
    NoQueue {
        /// The port's name.
        port: String,
        /// The queue that is missing.
        queue: u16,
    },
    /// There is nothing to poll.
    #[error("no port is configured")]
    NoPorts,
    /// The operating system refused a thread or a file descriptor.
    #[error("can't start a worker: {0}")]
    Os(#[from] std::io::Error),
    /// A worker's thread ended by itself.
    #[error("worker {0} is dead")]
    WorkerDead(usize),
    /// A worker did not answer in time.
    #[error("worker {0} does not answer")]
    NoAnswer(usize),
}

/// Shards can't go to this worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shards can't go to worker {worker}: those that may own shards are {} to {}, if they are alive", owning.start, owning.end - 1)]
pub struct MoveError {
    /// The worker.
    pub worker: usize,
    /// Those that may.
    pub owning: Range<usize>,
}

struct Seat {
    orders: Producer<Order>,
    answers: Consumer<Answer>,
    /// Orders for which the ring had no room yet.
    waiting: VecDeque<Order>,
    /// The last move that its worker may begin: others wait, with all orders behind them.
    may_take: u64,
    thread: Option<JoinHandle<WorkerReport>>,
    /// Of a worker that died.
    last: Option<WorkerReport>,
    dial: Dial,
    loads: ShardLoads,
    published: Published,
    /// The last fence that it passed.
    passed: u64,
}

impl Seat {
    const fn is_alive(&self) -> bool {
        self.last.is_none()
    }

    /// Whether the next order that waits here is one to take shards that another worker has to part with first.
    fn is_held_up(&self) -> bool {
        matches!(self.waiting.front(), Some(Order::Take(order)) if order.number > self.may_take)
    }

    /// A command behind all that waits. A FIB that its worker has not got yet is out of date when there is a newer one;
    /// and a worker that is far behind asks for neighbours itself when it needs them.
    fn wait(&mut self, command: Command) {
        match command {
            Command::Fib(_) => self.waiting.retain(|order| !matches!(order, Order::Do(Command::Fib(_)))),
            Command::Neighbour { .. } if self.waiting.len() >= NEWS => return,
            _ => {}
        }
        self.waiting.push_back(Order::Do(command));
    }

    fn push_waiting(&mut self) {
        while !self.is_held_up()
            && let Some(order) = self.waiting.pop_front()
        {
            if let Err(rtrb::PushError::Full(order)) = self.orders.push(order) {
                self.waiting.push_front(order);
                break;
            }
        }
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Its worker has died: what it counted.
    fn end(&mut self) -> Option<WorkerReport> {
        if let Some(thread) = self.thread.take() {
            self.last = thread.join().ok();
        }
        self.waiting.clear();
        self.last.clone()
    }
}

/// A point in the orders of all workers; see [`Engine::fence`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fence(u64);

/// The running workers, as the control thread sees them.
pub struct Engine {
    /// Where orders go: ahead of the workers' own table while a move is being prepared.
    pub(crate) map: ShardMap,
    /// Workers that may own shards; the first `active` of them are meant to.
    pub(crate) owning: Range<usize>,
    pub(crate) active: usize,
    pub(crate) director: Director,
    pub(crate) regulator: Regulator,
    seats: Vec<Seat>,
    waker: Arc<Waker>,
    roster: Roster,
    last_fence: u64,
    last_publish: u64,
    answer_within: Duration,
    /// A worker that died and that no other can follow.
    lost: Option<usize>,
    clock: Tsc,
}

impl Engine {
    /// Takes one queue pair of each port per worker and starts the workers, one after the other: they change the ports' tables.
    pub fn start<P>(
        ports: &mut [P],
        config: &EngineConfig,
        datapath: &Config,
        clock: Tsc,
    ) -> Result<Self, EngineError>
    where
        P: Port + 'static,
        P::Rx: 'static,
        P::Tx: 'static,
        P::Pool: 'static,
    {
        let workers = config.cores.len();
        let owning = config.model.owners(workers)?;
        let (most, least) = (owning.len(), config.scaling.policy.min);
        let active = config.active.unwrap_or(most).clamp(least.min(most), most).max(1);
        let map = ShardMap::round_robin(workers, owning.start..owning.start + active)?;
        let owners = Owners::new(&map);
        let roster = Roster::new(workers);
        let estates = Estates::<P>::default();
        let mut meshes = Mesh::all(workers, config.hand_off_ring).into_iter();
        let mut engine = Self {
            map,
            owning,
            active,
            seats: Vec::with_capacity(workers),
            waker: Arc::new(Waker::new()?),
            roster: roster.clone(),
            director: Director::new(2 * config.patience),
            regulator: Regulator::new(&config.scaling, most)?,
            last_fence: 0,
            last_publish: 0,
            answer_within: config.answer_within,
            lost: None,
            clock,
        };
        let mut hands = deal_queues(ports, config)?;
        // Read once, and only where there is something to make.
        let neighbourhood = (datapath.flow_supply > 0).then(|| Neighbourhood::of(&config.cores));
        for (number, &core) in config.cores.iter().enumerate() {
            let (orders, order_rx) = RingBuffer::new(config.control_ring);
            let (answer_tx, answers) = RingBuffer::new(config.control_ring);
            // Who never owns a shard has no tables.
            let owns = engine.owning.contains(&number);
            let beside = neighbourhood.as_ref().filter(|_| owns);
            let seed = Seed {
                number,
                core,
                hand: hands.next().unwrap_or_default(),
                pool: ports.first_mut().ok_or(EngineError::NoPorts)?.pool(number as u16),
                // Dispatchers get what there is, whatever the NIC's table says.
                redirections: match config.model {
                    Model::RunToCompletion => ports.iter_mut().filter_map(Port::redirection).collect(),
                    Model::Pipeline { .. } => Vec::new(),
                },
                devices: match config.offload {
                    Some(_) => ports.iter_mut().map(Port::offload).collect(),
                    None => Vec::new(),
                },
                shards: engine.map.shards_of(number).collect(),
                supplier: beside.and_then(|beside| beside.supplier(number, core)),
                lookups: config.lookups.clone().filter(|_| owns),
                config: config.clone(),
                datapath: datapath.clone(),
                clock,
                orders: order_rx,
                answers: answer_tx,
                waker: engine.waker.clone(),
                owners: owners.clone(),
                roster: roster.clone(),
                mesh: meshes.next().unwrap_or_default(),
                estates: estates.clone(),
            };
            let Started { thread, loads, published } = seed.start()?;
            engine.seats.push(Seat {
                orders,
                answers,
                waiting: VecDeque::new(),
                may_take: 0,
                thread: Some(thread),
                last: None,
                dial: roster.dial(number),
                loads,
                published,
                passed: 0,
            });
        }
        Ok(engine)
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.seats.len()
    }

    /// The clock that the workers use.
    pub fn clock(&self) -> &Tsc {
        &self.clock
    }

    /// Readable when a worker has an event, if [`Engine::about_to_sleep`] said that nobody would look otherwise.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Announces that control is going to block on [`Engine::waker`]; false if it must not, since there are events already.
    pub fn about_to_sleep(&self) -> bool {
        self.waker.announce_sleep();
        self.seats.iter().all(|seat| {
            // What is held up is so until a worker answers, which wakes control.
            seat.answers.is_empty() && (seat.waiting.is_empty() || seat.is_held_up())
        })
    }

    /// Sends a command to the owner of the shard. Never blocks: what finds no room waits here, in order. Whoever posts bounds how much
    /// that is, by the answers that it waits for.
    pub fn post(&mut self, shard: ShardId, command: Command) {
        let owner = self.map.owner(shard);
        if let Some(seat) = self.seats.get_mut(owner).filter(|seat| seat.is_alive()) {
            seat.waiting.push_back(Order::Do(command));
        }
    }

    /// Sends a command to every worker, in order with what was posted before.
    pub fn broadcast(&mut self, command: impl Fn() -> Command) {
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive()) {
            seat.wait(command());
        }
    }

    /// Marks this point in the orders of every worker. [`Engine::passed`] tells when all of them have carried out what was posted
    /// and broadcast before it.
    pub fn fence(&mut self) -> Fence {
        self.last_fence += 1;
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive()) {
            seat.waiting.push_back(Order::Fence(self.last_fence));
        }
        Fence(self.last_fence)
    }

    /// Whether all workers have passed a fence, as far as [`Engine::drain`] has heard.
    pub fn passed(&self, fence: Fence) -> bool {
        self.seats.iter().all(|seat| !seat.is_alive() || seat.passed >= fence.0)
    }

    /// Workers are to take no more packets from ports, and go on with everything else: what they have counted when a third
    /// [`Engine::fence`] is passed is all that they will count. (Before the first, the last packets are handed to the owners of their
    /// shards; before the second, these are served, and those for other sessions of ours handed on; before the third, those are.)
    pub fn rest(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive()) {
            seat.waiting.push_back(Order::Rest);
        }
    }

    /// Workers take packets from ports again, after all that was posted before.
    pub fn wake(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive()) {
            seat.waiting.push_back(Order::Wake);
        }
    }

    /// Hands over what was posted. Call it once per round: waking a worker costs a system call if it sleeps.
    pub fn flush(&mut self) {
        self.direct();
        for seat in &mut self.seats {
            if !seat.waiting.is_empty() {
                seat.push_waiting();
            }
        }
    }

    /// Goes on with moves: the next begins when none runs, its receiver is told when the giver is ready.
    fn direct(&mut self) {
        let seats = &mut self.seats;
        if let Some(order) = self.director.give_up_late() {
            take_back(seats, &mut self.map, &order);
        }
        let passed = |worker: usize| seats.get(worker).map_or(0, |seat| seat.passed);
        if let Some(order) = self.director.ready(passed)
            && let Some(seat) = seats.get_mut(order.to)
        {
            seat.may_take = order.number;
            seat.push_waiting();
        }
        let able = |worker: usize| seats.get(worker).is_some_and(Seat::is_alive);
        if let Some(order) = self.director.next(&self.map, able) {
            self.last_fence += 1;
            self.map.set(&order.shards, order.to);
            if let Some(seat) = self.seats.get_mut(order.from) {
                seat.waiting.push_back(Order::Fence(self.last_fence));
                seat.push_waiting();
            }
            if let Some(seat) = self.seats.get_mut(order.to) {
                seat.waiting.push_back(Order::Take(Arc::clone(&order)));
            }
            self.director.begin(order, self.last_fence);
        }
    }

    /// A worker has died: another inherits, or what it had is lost.
    fn bury(&mut self, dead: usize) {
        let running = self.director.give_up_with(dead);
        if let Some(order) = &running
            && order.to == dead
        {
            take_back(&mut self.seats, &mut self.map, order);
        }
        let Some(seat) = self.seats.get_mut(dead) else { return };
        seat.end();
        // The other one of the move that it took part in: that one has the shards of the move, or is to get them.
        let other = running.as_ref().map(|order| if order.to == dead { order.from } else { order.to });
        let alive = |worker: &usize| self.is_alive(*worker);
        // A dispatcher's heir is a dispatcher, if there is another: it has no shards, but queues.
        let owns = |worker: usize| self.owning.contains(&worker);
        let alike = (0..self.seats.len()).filter(|&worker| owns(worker) == owns(dead));
        let Some(heir) = other.into_iter().chain(alike).chain(self.owning.clone()).find(alive) else {
            tracing::error!(worker = dead, "a worker died, and there is none left to take over what it had");
            self.lost = Some(dead);
            return;
        };
        let orphans: Vec<_> = self.map.shards_of(dead).collect();
        let shards = orphans.len();
        tracing::error!(
            worker = dead,
            heir,
            shards,
            "a worker died; another takes its shards and queues over"
        );
        self.map.set(&orphans, heir);
        if let Some(seat) = self.seats.get_mut(heir) {
            seat.waiting.retain(|order| {
                !matches!((order, &running), (Order::Take(take), Some(running)) if take.number == running.number)
            });
            seat.waiting.push_front(Order::Inherit(dead));
            seat.push_waiting();
        }
    }

    /// Wants these shards to be this worker's. Returns at once; [`Engine::moves`] tells how it goes.
    ///
    /// Errors: there is no such worker, it may not own shards, or it is dead.
    pub fn move_shards(
        &mut self,
        shards: impl IntoIterator<Item = ShardId>,
        to: usize,
    ) -> Result<(), MoveError> {
        if !self.is_alive(to) || !self.owning.contains(&to) {
            return Err(MoveError { worker: to, owning: self.owning.clone() });
        }
        self.director.want(shards.into_iter().map(|shard| (shard, to)));
        self.direct();
        Ok(())
    }

    /// How moves went, and whether any are outstanding.
    pub fn moves(&self) -> MoveCounters {
        self.director.counters()
    }

    /// Whether any are outstanding.
    pub fn is_moving(&self) -> bool {
        !self.director.is_idle()
    }

    /// How busy each worker is, without asking it.
    pub fn gauges(&self) -> Vec<Gauge> {
        self.seats.iter().map(|seat| seat.dial.read()).collect()
    }

    /// About how many packets of a shard each worker has had so far.
    pub fn shard_loads(&self) -> impl Iterator<Item = &ShardLoads> {
        self.seats.iter().map(|seat| &seat.loads)
    }

    /// The owner of each shard, as it will be when the move that runs is over.
    pub const fn shard_map(&self) -> &ShardMap {
        &self.map
    }

    /// Workers that may own shards.
    pub fn owning(&self) -> Range<usize> {
        self.owning.clone()
    }

    /// A worker that died, and whose shards and queues no other took over: no packet of theirs is served any more, and no order carried
    /// out. What is left to do is to stop.
    pub const fn lost(&self) -> Option<usize> {
        self.lost
    }

    /// Whether a worker runs.
    pub fn is_alive(&self, worker: usize) -> bool {
        self.seats.get(worker).is_some_and(Seat::is_alive)
    }

    /// Takes all events that have arrived.
    pub fn drain(&mut self, mut take: impl FnMut(usize, Event)) {
        let mut died = Vec::new();
        for (worker, seat) in self.seats.iter_mut().enumerate() {
            while let Ok(answer) = seat.answers.pop() {
                match answer {
                    Answer::Event(event) => take(worker, event),
                    Answer::Fence(number) => seat.passed = number,
                    Answer::Moved(moved) => self.director.moved(moved),
                    Answer::Died => died.push(worker),
                    Answer::LookupsLost(why) => {
                        tracing::warn!(
                            worker,
                            why,
                            "the device for look-ups is lost; the worker does them itself"
                        );
                    }
                }
            }
            // It ended without a word: the panic came while it packed what it had. Abandoned first: after that nothing is said any more.
            if seat.is_alive()
                && seat.answers.is_abandoned()
                && seat.answers.is_empty()
                && !died.contains(&worker)
                && self.lost.is_none()
            {
                tracing::error!(worker, "a worker died, and what it had died with it");
                self.lost = Some(worker);
            }
        }
        for worker in died {
            self.bury(worker);
        }
        self.direct();
    }

    /// Every worker's counters, as published, for any thread.
    pub fn snapshots(&self) -> Snapshots {
        let of_seat = |seat: &Seat| (seat.published.clone(), seat.dial.clone());
        Snapshots::new(self.seats.iter().map(of_seat))
    }

    /// Every worker's counters, after all orders so far: they are told to publish, and this thread waits until they have. For tests,
    /// benchmarks and whoever has nothing else to do; all others read [`Engine::snapshots`].
    ///
    /// Errors: a worker is dead and left nothing, or did not answer [in time](EngineConfig::answer_within).
    pub fn reports(&mut self) -> Result<Vec<WorkerReport>, EngineError> {
        self.last_publish += 1;
        let number = self.last_publish;
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive()) {
            // This doesn't wait for a move.
            let moves = seat.waiting.iter().position(|order| matches!(order, Order::Take(_)));
            seat.waiting.insert(moves.unwrap_or(seat.waiting.len()), Order::Publish(number));
            seat.push_waiting();
        }
        let deadline = Instant::now() + self.answer_within;
        for (worker, seat) in self.seats.iter_mut().enumerate() {
            while seat.dial.answered() < number {
                if seat.thread.as_ref().is_none_or(JoinHandle::is_finished) && seat.dial.answered() < number {
                    return Err(EngineError::WorkerDead(worker));
                }
                if Instant::now() > deadline {
                    return Err(EngineError::NoAnswer(worker));
                }
                seat.push_waiting();
                std::thread::yield_now();
            }
        }
        Ok(self.snapshots().read())
    }

    /// Stops the workers and returns their final counters.
    ///
    /// Errors: a worker died (panicked) before; the others are stopped all the same.
    pub fn stop(self) -> Result<Vec<WorkerReport>, EngineError> {
        self.stop_with(|_, _| {})
    }

    /// The same, and hands over what workers tell meanwhile, to the last event.
    pub fn stop_with(mut self, mut take: impl FnMut(usize, Event)) -> Result<Vec<WorkerReport>, EngineError> {
        let mut empty = |worker: usize, seat: &mut Seat| {
            while let Ok(answer) = seat.answers.pop() {
                if let Answer::Event(event) = answer {
                    take(worker, event);
                }
            }
        };
        // Behind the order to take shards, which is held back until the giver has answered, the last order would wait for ever.
        if let Some(order) = self.director.give_up_unbegun() {
            take_back(&mut self.seats, &mut self.map, &order);
        }
        self.roster.end();
        for seat in self.seats.iter_mut().filter(|seat| seat.is_alive()) {
            seat.waiting.push_back(Order::Stop);
        }
        // They end side by side. A full ring drains while its worker lives, and answers must not hold it up, so this ends.
        let mut running = true;
        while running {
            running = false;
            for (worker, seat) in self.seats.iter_mut().enumerate() {
                seat.push_waiting();
                empty(worker, seat);
                running |= seat.thread.as_ref().is_some_and(|thread| !thread.is_finished());
            }
            if running {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        let (mut reports, mut dead) = (Vec::with_capacity(self.seats.len()), None);
        for (worker, mut seat) in std::mem::take(&mut self.seats).into_iter().enumerate() {
            if let Some(last) = seat.last.take() {
                reports.push(last);
                continue;
            }
            let Some(thread) = seat.thread.take() else { continue };
            match thread.join() {
                Ok(report) => reports.push(report),
                Err(_) => dead = Some(worker),
            }
            empty(worker, &mut seat);
        }
        dead.map_or(Ok(reports), |worker| Err(EngineError::WorkerDead(worker)))
    }
}

/// A move that was prepared is not to be: orders that wait for it go to the giver.
fn take_back(seats: &mut [Seat], map: &mut ShardMap, order: &Move) {
    map.set(&order.shards, order.from);
    let Some(receiver) = seats.get_mut(order.to) else { return };
    receiver.waiting.retain(|waiting| !matches!(waiting, Order::Take(take) if take.number == order.number));
    let is_of_the_move = |waiting: &Order| match waiting {
        Order::Do(command) => command.shard().is_some_and(|shard| order.shards.contains(&shard)),
        _ => false,
    };
    let (orders, others): (VecDeque<_>, _) =
        std::mem::take(&mut receiver.waiting).into_iter().partition(is_of_the_move);
    receiver.waiting = others;
    if let Some(giver) = seats.get_mut(order.from) {
        giver.waiting.extend(orders);
    }
}
