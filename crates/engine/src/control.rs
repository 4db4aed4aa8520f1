//! The control side's handle on the workers.

use crate::egress::{Plan, Scheduler};
use crate::idle::{Idle, IdlePolicy};
use crate::placement::{InvalidWorkerCount, ShardMap, pin};
use crate::waker::Waker;
use crate::worker::{
    Answer, CONTROL_BURST, HandedOff, Load, Order, PortLoad, Steered, SteeredLoad, Worker, WorkerReport,
};
use datapath::command::{Command, Event};
use datapath::offload::{Mode, Offload, Policy};
use datapath::{Config, Datapath, Outbox};
use io::steering::{Duty, Steering};
use io::{BURST, Port};
use rtrb::{Consumer, Producer, RingBuffer};
use session::ShardId;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tables::clock::Tsc;

/// Runs first in each worker's thread; what it returns is dropped when the thread ends.
pub type OnThreadStart = Arc<dyn Fn() -> Box<dyn std::any::Any> + Send + Sync>;

/// How many workers, where, and how they wait.
#[derive(Clone)]
pub struct EngineConfig {
    /// One entry per worker: the core that it is pinned to, or `None` to leave it to the kernel.
    pub cores: Vec<Option<usize>>,
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
    /// Whether, and when, flows go to the ports' flow tables; a partial mode's queue is each worker's own.
    pub offload: Option<Policy>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            cores: vec![None],
            idle: IdlePolicy::default(),
            control_ring: 4_096,
            hand_off_ring: 1_024,
            egress: Arc::new(Plan::standard([])),
            on_thread_start: Arc::new(|| Box::new(())),
            offload: None,
        }
    }
}

/// Why the engine did not start, or a worker is lost.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The number of workers is impossible.
    #[error(transparent)]
    Workers(#[from] InvalidWorkerCount),
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

struct Seat {
    orders: Producer<Order>,
    answers: Consumer<Answer>,
    /// Orders for which the ring had no room yet.
    waiting: VecDeque<Order>,
    thread: Option<JoinHandle<WorkerReport>>,
    /// The last fence that it passed.
    passed: u64,
}

impl Seat {
    fn push_waiting(&mut self) {
        while let Some(order) = self.waiting.pop_front() {
            if let Err(rtrb::PushError::Full(order)) = self.orders.push(order) {
                self.waiting.push_front(order);
                break;
            }
        }
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// A point in the orders of all workers; see [`Engine::fence`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fence(u64);

/// The running workers, as the control thread sees them.
pub struct Engine {
    map: ShardMap,
    seats: Vec<Seat>,
    waker: Arc<Waker>,
    /// Events met while waiting for reports.
    early: VecDeque<(usize, Event)>,
    last_fence: u64,
    clock: Tsc,
}

impl Engine {
    /// Takes one queue pair of each port per worker and starts the workers.
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
        let map = ShardMap::round_robin(workers)?;
        let waker = Arc::new(Waker::new()?);
        let (mut to, mut from) = hand_off_mesh::<P::Frame>(workers, config.hand_off_ring);
        let mut engine = Self {
            map,
            seats: Vec::with_capacity(workers),
            waker,
            early: VecDeque::new(),
            last_fence: 0,
            clock,
        };
        for (number, &core) in config.cores.iter().enumerate() {
            let queue = number as u16;
            let mut queues = Vec::with_capacity(ports.len());
            for port in ports.iter_mut() {
                let pair = port.take_queue(queue);
                queues.push(
                    pair.ok_or_else(|| EngineError::NoQueue { port: port.info().name.clone(), queue })?,
                );
            }
            let steered = steered_queues(ports, number)?;
            let pool = ports.first_mut().ok_or(EngineError::NoPorts)?.pool(queue);
            let mut state = Datapath::new(datapath.clone());
            for shard in engine.map.shards_of(number) {
                let shard = state.new_shard(shard);
                state.adopt(shard);
            }
            let offload = config.offload.clone().map(|mut policy| {
                if let Mode::Partial { queue: own } = &mut policy.mode {
                    *own = queue;
                }
                // Other workers sample other packets.
                policy.seed = policy.seed.rotate_left(u32::from(queue));
                Offload::new(policy, ports.iter_mut().map(Port::offload).collect())
            });
            let (order_tx, order_rx) = RingBuffer::new(config.control_ring);
            let (answer_tx, answer_rx) = RingBuffer::new(config.control_ring);
            let worker = Worker::<P> {
                number,
                core,
                map: engine.map.clone(),
                taken: Vec::with_capacity(io::BURST),
                out: Outbox::new(ports.len()),
                egress: ports.iter().map(|_| Scheduler::new(config.egress.clone())).collect(),
                queues,
                steered,
                pool,
                datapath: state,
                offload,
                clock,
                idle: Idle::new(config.idle),
                orders: order_rx,
                answers: answer_tx,
                waker: engine.waker.clone(),
                to: to.get_mut(number).map(std::mem::take).unwrap_or_default(),
                from: from.get_mut(number).map(std::mem::take).unwrap_or_default(),
                backlog: VecDeque::new(),
                load: Load::default(),
                port_loads: vec![PortLoad::default(); ports.len()],
            };
            let thread = spawn(worker, config.on_thread_start.clone())?;
            engine.seats.push(Seat {
                orders: order_tx,
                answers: answer_rx,
                waiting: VecDeque::new(),
                thread: Some(thread),
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
        self.early.is_empty()
            && self.seats.iter().all(|seat| seat.answers.is_empty() && seat.waiting.is_empty())
    }

    /// Sends a command to the owner of the shard. Never blocks: what finds no room waits here, in order.
    pub fn post(&mut self, shard: ShardId, command: Command) {
        let owner = self.map.owner(shard);
        if let Some(seat) = self.seats.get_mut(owner) {
            seat.waiting.push_back(Order::Do(command));
        }
    }

    /// Sends a command to every worker, in order with what was posted before.
    pub fn broadcast(&mut self, command: impl Fn() -> Command) {
        for seat in &mut self.seats {
            seat.waiting.push_back(Order::Do(command()));
        }
    }

    /// Marks this point in the orders of every worker. [`Engine::passed`] tells when all of them have carried out what was posted
    /// and broadcast before it.
    pub fn fence(&mut self) -> Fence {
        self.last_fence += 1;
        for seat in &mut self.seats {
            seat.waiting.push_back(Order::Fence(self.last_fence));
        }
        Fence(self.last_fence)
    }

    /// Whether all workers have passed a fence, as far as [`Engine::drain`] has heard.
    pub fn passed(&self, fence: Fence) -> bool {
        self.seats.iter().all(|seat| seat.passed >= fence.0)
    }

    /// Hands over what was posted. Call it once per round: waking a worker costs a system call if it sleeps.
    pub fn flush(&mut self) {
        for seat in &mut self.seats {
            if !seat.waiting.is_empty() {
                seat.push_waiting();
            }
        }
    }

    /// Takes all events that have arrived.
    pub fn drain(&mut self, mut take: impl FnMut(usize, Event)) {
        for (worker, event) in self.early.drain(..) {
            take(worker, event);
        }
        for (worker, seat) in self.seats.iter_mut().enumerate() {
            while let Ok(answer) = seat.answers.pop() {
                match answer {
                    Answer::Event(event) => take(worker, event),
                    Answer::Fence(number) => seat.passed = number,
                    // Came too late for [`Engine::reports`].
                    Answer::Report(_) => {}
                }
            }
        }
    }

    /// Every worker's counters, now. Waits for the answers; events that arrive meanwhile are kept for [`Engine::drain`].
    ///
    /// Errors: a worker is dead, or did not answer within a second.
    pub fn reports(&mut self) -> Result<Vec<WorkerReport>, EngineError> {
        for seat in &mut self.seats {
            seat.waiting.push_back(Order::Report);
            seat.push_waiting();
        }
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut reports = Vec::with_capacity(self.seats.len());
        for (worker, seat) in self.seats.iter_mut().enumerate() {
            loop {
                match seat.answers.pop() {
                    Ok(Answer::Report(report)) => {
                        reports.push(*report);
                        break;
                    }
                    Ok(Answer::Event(event)) => self.early.push_back((worker, event)),
                    Ok(Answer::Fence(number)) => seat.passed = number,
                    Err(_) if seat.answers.is_abandoned() => return Err(EngineError::WorkerDead(worker)),
                    Err(_) if Instant::now() > deadline => return Err(EngineError::NoAnswer(worker)),
                    Err(_) => {
                        seat.push_waiting();
                        std::thread::yield_now();
                    }
                }
            }
        }
        Ok(reports)
    }

    /// Stops the workers and returns their final counters.
    ///
    /// Errors: a worker died (panicked) before; the others are stopped all the same.
    pub fn stop(self) -> Result<Vec<WorkerReport>, EngineError> {
        self.stop_with(|_, _| {})
    }

    /// The same, and hands over what workers tell meanwhile, to the last event.
    pub fn stop_with(mut self, mut take: impl FnMut(usize, Event)) -> Result<Vec<WorkerReport>, EngineError> {
        for (worker, event) in self.early.drain(..) {
            take(worker, event);
        }
        let mut empty = |worker: usize, seat: &mut Seat| {
            while let Ok(answer) = seat.answers.pop() {
                if let Answer::Event(event) = answer {
                    take(worker, event);
                }
            }
        };
        for seat in &mut self.seats {
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

/// A worker's queues ahead of RSS: the ports' control queues, which are worker 0's, then the most urgent group of each port,
/// and so on.
fn steered_queues<P: Port>(ports: &mut [P], worker: usize) -> Result<Vec<Steered<P::Rx>>, EngineError> {
    let mut queues = Vec::new();
    for (number, port) in ports.iter_mut().enumerate() {
        let Some(steering) = port.steering().cloned() else { continue };
        for (duty, bursts, most) in duties(&steering, worker) {
            let rx = port.take_steered(duty, worker as u16).ok_or_else(|| EngineError::NoQueue {
                port: port.info().name.clone(),
                queue: worker as u16,
            })?;
            let load = SteeredLoad { port: number as u16, duty, packets: 0 };
            queues.push(Steered { rx, bursts, most, load });
        }
    }
    queues.sort_by_key(|queue| queue.load.duty);
    Ok(queues)
}

/// What a worker has of a port's steering, with bursts in a round and frames in each.
fn duties(steering: &Steering, worker: usize) -> impl Iterator<Item = (Duty, u8, usize)> + '_ {
    let control = (worker == 0 && steering.control().is_some()).then_some((Duty::Control, 1, CONTROL_BURST));
    let groups = (0..).zip(steering.groups());
    control.into_iter().chain(groups.map(|(at, group)| (Duty::Group(at), group.bursts.max(1), BURST)))
}

/// `to[a][b]` and `from[b][a]` are the two ends of the ring from worker `a` to worker `b`.
type Mesh<F> = (Vec<Vec<Option<Producer<HandedOff<F>>>>>, Vec<Vec<Option<Consumer<HandedOff<F>>>>>);

fn hand_off_mesh<F>(workers: usize, entries: usize) -> Mesh<F> {
    let mut to: Vec<Vec<_>> = (0..workers).map(|_| Vec::with_capacity(workers)).collect();
    let mut from: Vec<Vec<_>> = (0..workers).map(|_| Vec::with_capacity(workers)).collect();
    for (a, to) in to.iter_mut().enumerate() {
        for (b, from) in from.iter_mut().enumerate() {
            let (producer, consumer) = (a != b).then(|| RingBuffer::new(entries)).unzip();
            to.push(producer);
            from.push(consumer);
        }
    }
    (to, from)
}

/// Starts the thread and waits until it is pinned, so that a wrong core is an error here and not a surprise later.
fn spawn<P>(worker: Worker<P>, on_start: OnThreadStart) -> Result<JoinHandle<WorkerReport>, EngineError>
where
    P: Port + 'static,
    P::Rx: 'static,
    P::Tx: 'static,
    P::Pool: 'static,
{
    let (number, core) = (worker.number, worker.core);
    let (started, start) = mpsc::channel();
    let thread = std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        let pinned = core.map_or(Ok(()), pin);
        let guard = on_start();
        let failed = pinned.is_err();
        let _ = started.send(pinned);
        if failed {
            return worker.abandon();
        }
        let report = worker.run();
        drop(guard);
        report
    })?;
    match (start.recv(), core) {
        (Ok(Ok(())), _) => Ok(thread),
        (Ok(Err(source)), Some(core)) => Err(EngineError::Pin {
            worker: number,
            core,
            available: crate::placement::available_cores(),
            source,
        }),
        _ => Err(EngineError::WorkerDead(number)),
    }
}
