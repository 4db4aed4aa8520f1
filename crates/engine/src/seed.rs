//! How a worker comes to be: what it gets from outside, and what it makes for itself in its own thread.
//!
//! Linux lays a page on the NUMA node of the thread that touches it first. A worker's tables, shards and vectors are what it touches
//! with each packet, so its thread is pinned first and makes them afterwards. Made by the control thread, they would all lie on that
//! one's node, and half of the workers of a machine with two would reach across for every session.
//!
//! What is made outside is small or shared: queues belong to ports, rings to two workers. A port's packet buffers lie where the port
//! is. A shard that moves keeps its memory; only what is added to it later lies on its new worker's node.

use crate::control::{EngineConfig, EngineError};
use crate::egress::Scheduler;
use crate::estate::Estates;
use crate::idle::Idle;
use crate::mesh::Mesh;
use crate::moves::Mover;
use crate::overdue::Overdue;
use crate::owners::Owners;
use crate::placement::{available_cores, pin};
use crate::plan::ewma::Ewma;
use crate::published::{Published, Publisher};
use crate::report::{Load, PortLoad, SteeredLoad, WorkerReport};
use crate::supplier::Supplier;
use crate::under_way::{OpenLookups, UnderWay};
use crate::waker::{Roster, Waker};
use crate::worker::{Answer, CONTROL_BURST, Order, Receive, Seen, Steered, Transmit, Worker};
use datapath::offload::{Mode, Offload};
use datapath::{Burst, Config, Datapath, FlowMemory, Outbox, ShardLoads};
use io::offload::FlowOffload;
use io::steering::{Duty, Steering};
use io::{BURST, Port, Redirection};
use rtrb::{Consumer, Producer};
use session::ShardId;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use tables::Nanos;
use tables::clock::Tsc;

/// What a worker publishes, in words, if it isn't much: else it makes more room.
const WORDS: usize = 1_024;

/// A worker that runs.
pub(crate) struct Started {
    pub thread: JoinHandle<WorkerReport>,
    pub loads: ShardLoads,
    /// Where its counters are.
    pub published: Published,
}

/// A worker before it has a thread.
pub(crate) struct Seed<P: Port> {
    pub number: usize,
    pub core: Option<usize>,
    pub hand: Hand<P>,
    pub pool: P::Pool,
    /// The ports' tables, if its queues get what they say.
    pub redirections: Vec<Box<dyn Redirection>>,
    /// The ports' flow tables, by port; none if nothing is offloaded.
    pub devices: Vec<Box<dyn FlowOffload>>,
    /// What it owns at the start.
    pub shards: Vec<ShardId>,
    /// Who makes memory ready for its flow tables.
    pub supplier: Option<Supplier<FlowMemory>>,
    /// Who makes a device for its look-ups.
    pub lookups: Option<OpenLookups>,
    pub config: EngineConfig,
    pub datapath: Config,
    pub clock: Tsc,
    pub orders: Consumer<Order>,
    pub answers: Producer<Answer>,
    pub waker: Arc<Waker>,
    pub owners: Owners,
    pub roster: Roster,
    pub mesh: Mesh<P::Frame>,
    pub estates: Estates<P>,
}

impl<P> Seed<P>
where
    P: Port + 'static,
    P::Rx: 'static,
    P::Tx: 'static,
    P::Pool: 'static,
{
    /// Starts the thread, and waits until it is pinned and the worker is complete: a wrong core is an error here and not a surprise
    /// later.
    pub fn start(self) -> Result<Started, EngineError> {
        let (number, core) = (self.number, self.core);
        let (started, start) = mpsc::channel();
        let live = move || {
            if let Err(refused) = core.map_or(Ok(()), pin) {
                let _ = started.send(Err(refused));
                // Nobody asks for it.
                return WorkerReport::default();
            }
            let _guard = (self.config.on_thread_start)();
            let mut worker = self.grow();
            worker.roster.enter(number);
            worker.publish_whole(worker.clock.now());
            let _ = started.send(Ok((worker.datapath.shard_loads().clone(), worker.publisher.published())));
            if catch_unwind(AssertUnwindSafe(|| worker.run())).is_err() {
                worker.bequeath();
            }
            worker.last_report()
        };
        let thread = Builder::new().name(format!("worker-{number}")).spawn(live)?;
        match (start.recv(), core) {
            (Ok(Ok((loads, published))), _) => Ok(Started { thread, loads, published }),
            (Ok(Err(source)), Some(core)) => {
                Err(EngineError::Pin { worker: number, core, available: available_cores(), source })
            }
            _ => Err(EngineError::WorkerDead(number)),
        }
    }

    /// The worker, in memory of the calling thread's node.
    pub(crate) fn grow(self) -> Worker<P> {
        let Self { number, core, hand, pool, redirections, devices, shards, config, datapath, .. } = self;
        let (workers, ports) = (config.cores.len(), hand.transmit.len());
        let mut datapath = Datapath::new(datapath);
        for &shard in &shards {
            let shard = datapath.new_shard(shard);
            datapath.adopt(shard);
        }
        let offload = config.offload.map(|mut policy| {
            if let Mode::Partial { queue } = &mut policy.mode {
                *queue = number as u16;
            }
            // Other workers sample other packets.
            policy.seed = policy.seed.rotate_left(number as u32);
            Offload::new(policy, devices)
        });
        let scheduler = || Scheduler::new(config.egress.clone());
        let port_load = |port| PortLoad { far: config.far.contains(&(number, port)), ..PortLoad::default() };
        let transmit = hand.transmit.into_iter().map(|tx| Transmit { tx, waiting: scheduler(), given: 0 });
        let mut worker = Worker {
            number,
            core,
            owners: self.owners,
            queues: hand.queues,
            steered: hand.steered,
            transmit: transmit.collect(),
            sender: config.model.sender(number),
            redirections,
            pool,
            datapath,
            burst: Burst::new(),
            under_way: self
                .lookups
                .and_then(|open| open(number))
                .map(|device| Box::new(UnderWay::new(device))),
            supplier: self.supplier,
            offload,
            resting: config.resting,
            clock: self.clock,
            idle: Idle::new(config.idle),
            orders: self.orders,
            answers: self.answers,
            waker: self.waker,
            dial: self.roster.dial(number),
            roster: self.roster,
            mesh: self.mesh,
            mover: Mover::new(number, workers, config.parking, config.patience.as_nanos() as u64),
            watching: false,
            packed: Vec::new(),
            mark: None,
            flushes: Vec::new(),
            held: VecDeque::new(),
            estates: self.estates,
            out: Outbox::new(ports),
            backlog: VecDeque::new(),
            overdue: Overdue::default(),
            load: Load::default(),
            port_loads: (0..ports as u16).map(port_load).collect(),
            load_factor: Ewma::new(),
            publisher: Publisher::new(WORDS),
            slices_published: 0,
            published_at: Nanos(0),
            unpublished: false,
        };
        worker.redirect(&shards);
        worker
    }
}

/// One worker's queues.
pub(crate) struct Hand<P: Port> {
    queues: Vec<Receive<P::Rx>>,
    steered: Vec<Steered<P::Rx>>,
    /// By port.
    transmit: Vec<P::Tx>,
}

impl<P: Port> Default for Hand<P> {
    fn default() -> Self {
        Self { queues: Vec::new(), steered: Vec::new(), transmit: Vec::new() }
    }
}

/// All queues of all ports, by worker: each has its own transmit queues; receive queues are dealt out to those who poll.
pub(crate) fn deal_queues<P: Port>(
    ports: &mut [P],
    config: &EngineConfig,
) -> Result<std::vec::IntoIter<Hand<P>>, EngineError> {
    let workers = config.cores.len();
    let mut hands: Vec<Hand<P>> = (0..workers).map(|_| Hand::default()).collect();
    for (number, port) in (0..).zip(ports.iter_mut()) {
        for worker in 0..workers {
            let queue = worker as u16;
            let pair = port.take_queue(queue);
            let missing = || EngineError::NoQueue { port: port.info().name.clone(), queue };
            let (rx, tx) = pair.ok_or_else(missing)?;
            if let Some(hand) = hands.get_mut(worker) {
                hand.transmit.push(tx);
            }
            if let Some(hand) = hands.get_mut(config.model.poller(worker)) {
                hand.queues.push(Receive { rx, port: number, seen: Seen::Unwatched });
            }
        }
    }
    for worker in 0..workers {
        let steered = steered_queues(ports, worker)?;
        if let Some(hand) = hands.get_mut(config.model.poller(worker)) {
            hand.steered.extend(steered);
            hand.steered.sort_by_key(|queue| queue.load.duty);
        }
    }
    Ok(hands.into_iter())
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
            queues.push(Steered { rx, bursts, most, load, seen: Seen::Unwatched });
        }
    }
    Ok(queues)
}

/// What a worker has of a port's steering, with bursts in a round and frames in each.
fn duties(steering: &Steering, worker: usize) -> impl Iterator<Item = (Duty, u8, usize)> + '_ {
    let control = (worker == 0 && steering.control().is_some()).then_some((Duty::Control, 1, CONTROL_BURST));
    let groups = (0..).zip(steering.groups());
    control.into_iter().chain(groups.map(|(at, group)| (Duty::Group(at), group.bursts.max(1), BURST)))
}
