//! Workers with sessions, on ports that make their own packets: what scenarios of several cores share.
//!
//! The only place that knows how a model of execution is set up: everything else varies [`Model`] as a parameter.

use crate::forward;
use crate::path::{self, Numbering, PathError, Subscriber};
use crate::progress::Progress;
use crate::scene::Scene;
use crate::svg::SvgError;
use datapath::{Command, Config, Event, Token, Transition};
use engine::placement::available_cores;
use engine::plan::scaler::{Policy, ScalerError};
use engine::{
    Engine, EngineConfig, EngineError, IdlePolicy, MoveError, OpenLookups, Scaling, Sender, WorkerReport,
};
use io::Port;
use io::paced::PacedError;
use io::replay::ReplayError;
use session::rules::{Rules, Tunnel};
use session::{SessionRef, ShardId};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tables::clock::Tsc;

/// Sessions installed before the answers are awaited.
const ORDERS: usize = 1_024;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// The packets or the network made here are wrong, or packets were dropped.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The workers.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// There can't be so many workers.
    #[error(transparent)]
    Scale(#[from] ScalerError),
    /// Shards can't go there: a defect.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// The schedule made here is wrong: a defect.
    #[error("schedule: {0}")]
    Paced(#[from] PacedError),
    /// A picture can't be written.
    #[error(transparent)]
    Draw(#[from] SvgError),
    /// A page can't be written.
    #[error("can't write {path}: {source}")]
    Write {
        /// Where.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Workers forwarded nothing at all.
    #[error("nothing was forwarded")]
    Nothing,
}

impl From<ReplayError> for CrewError {
    fn from(error: ReplayError) -> Self {
        PathError::from(error).into()
    }
}

/// How packets reach the owner of their shard, and leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each worker polls its own queue, and sends.
    Rtc,
    /// A dispatcher polls, and workers send.
    Pipeline,
    /// A dispatcher polls and sends, as in the thesis.
    PipelineReturning,
}

impl Model {
    /// The two that are compared everywhere.
    pub const BOTH: [Self; 2] = [Self::Rtc, Self::Pipeline];
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rtc, Self::Pipeline, Self::PipelineReturning];

    /// As results name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rtc => "rtc",
            Self::Pipeline => "pipeline",
            Self::PipelineReturning => "pipeline-returning",
        }
    }

    /// What the engine calls it.
    const fn of_engine(self) -> engine::Model {
        match self {
            Self::Rtc => engine::Model::RunToCompletion,
            Self::Pipeline => engine::Model::Pipeline { dispatchers: 1, sender: Sender::Owner },
            Self::PipelineReturning => engine::Model::Pipeline { dispatchers: 1, sender: Sender::Dispatcher },
        }
    }

    /// Threads that only pass packets on.
    const fn dispatchers(self) -> usize {
        match self {
            Self::Rtc => 0,
            Self::Pipeline | Self::PipelineReturning => 1,
        }
    }
}

/// Threads, what they do and where.
#[derive(Clone)]
pub struct Team {
    /// How packets reach workers.
    pub model: Model,
    /// Threads that may own shards.
    pub workers: usize,
    /// Of those, how many own any in the beginning.
    pub active: usize,
    /// When their number changes, and shards move.
    scaling: Scaling,
    /// Where each thread runs.
    cores: Vec<Option<usize>>,
    /// Ports' redirection tables can't be changed.
    fixed: bool,
    /// How long workers are waited for: by one that gives shards away, and where packets are still on their way in the end.
    patience: Duration,
    /// Packets in each ring between two workers, and packets that a worker can park.
    room: [usize; 2],
    /// Who answers look-ups for workers.
    lookups: Option<OpenLookups>,
}

/// How long a worker is waited for: where threads have less than a core each, some wait for long.
pub const PATIENCE: Duration = Duration::from_mins(1);

impl Team {
    /// A thread has a core of its own if there are enough; if not, the kernel shares them out.
    pub fn new(model: Model, workers: usize) -> Self {
        Self::on(model, workers, &available_cores())
    }

    /// Likewise, with these cores.
    pub fn on(model: Model, workers: usize, cores: &[usize]) -> Self {
        let threads = workers + model.dispatchers();
        let own = threads <= cores.len();
        let cores = (0..threads).map(|thread| cores.get(thread).copied().filter(|_| own)).collect();
        // Nothing moves unless a scenario says so.
        let scaling = Scaling { rebalance: None, ..Scaling::default() };
        let EngineConfig { patience, hand_off_ring, parking, .. } = EngineConfig::default();
        let room = [hand_off_ring, parking];
        Self { model, workers, active: workers, scaling, cores, fixed: false, patience, room, lookups: None }
    }

    /// Begins with so many workers that own shards.
    #[must_use]
    pub const fn starting_with(mut self, active: usize) -> Self {
        self.active = active;
        self
    }

    /// Workers ask such a device for look-ups.
    #[must_use]
    pub fn asking(mut self, lookups: Option<OpenLookups>) -> Self {
        self.lookups = lookups;
        self
    }

    /// Shards are levelled, as by default.
    #[must_use]
    pub fn rebalancing(mut self) -> Self {
        self.scaling.rebalance = Scaling::default().rebalance;
        self
    }

    /// The number of workers that own shards follows the load.
    #[must_use]
    pub fn following_the_load(mut self, policy: Policy) -> Self {
        self.scaling.policy = Policy { automatic: true, max: self.workers, ..policy };
        self
    }

    /// Ports' redirection tables stay as they are: packets of a shard that is elsewhere are handed off.
    #[must_use]
    pub const fn with_fixed_tables(mut self, fixed: bool) -> Self {
        self.fixed = fixed;
        self
    }

    /// Whether they do.
    pub const fn has_fixed_tables(&self) -> bool {
        self.fixed
    }

    /// How long workers are waited for.
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// For tests, which have more threads than processors: whoever isn't running doesn't answer, and isn't given up for it; and what comes
    /// for it meanwhile, `packets` at most, finds room.
    #[cfg(test)]
    #[must_use]
    pub const fn unhurried(mut self, packets: usize) -> Self {
        self.patience = Duration::from_secs(20);
        self.room = [packets; 2];
        self
    }

    /// Threads that only pass packets on. They come before the workers.
    pub const fn dispatchers(&self) -> usize {
        self.model.dispatchers()
    }

    /// All threads.
    pub const fn threads(&self) -> usize {
        self.cores.len()
    }

    /// Whether each thread has a core of its own.
    pub fn is_pinned(&self) -> bool {
        self.cores.iter().all(Option::is_some)
    }

    /// Receive queues that packets come by: those of the first threads.
    pub const fn receivers(&self) -> usize {
        match self.dispatchers() {
            0 => self.workers,
            dispatchers => dispatchers,
        }
    }

    /// What the engine is told.
    fn settings(&self) -> EngineConfig {
        // Threads that share a core must let each other run.
        let idle = if self.is_pinned() { IdlePolicy::Busy } else { IdlePolicy::default() };
        EngineConfig {
            cores: self.cores.clone(),
            model: self.model.of_engine(),
            active: Some(self.active),
            scaling: self.scaling.clone(),
            patience: self.patience,
            answer_within: PATIENCE,
            hand_off_ring: self.room[0],
            parking: self.room[1],
            idle,
            lookups: self.lookups.clone(),
            ..EngineConfig::default()
        }
    }
}

/// A session's places and names, before it is installed.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Where it is.
    pub place: SessionRef,
    /// Its tunnel.
    pub tunnel: Tunnel,
    /// Its address.
    pub ue: Ipv4Addr,
}

impl Member {
    /// So many more.
    pub fn several(numbering: &mut Numbering, sessions: usize) -> Vec<Self> {
        Self::several_in(Scene::SIMPLE, numbering, sessions)
    }

    /// Likewise, with the addresses that UEs have in this scene.
    pub fn several_in(scene: Scene, numbering: &mut Numbering, sessions: usize) -> Vec<Self> {
        let next = |_| {
            let (place, tunnel, ue) = numbering.assign_to(|ue| scene.ue(ue));
            Self { place, tunnel, ue }
        };
        (0..sessions).map(next).collect()
    }

    /// Whom its packets are made for.
    pub const fn subscriber(&self) -> Subscriber {
        Subscriber { teid: self.tunnel.teid, ue: self.ue }
    }
}

/// Has the workers install these sessions, and waits until all are.
pub fn install(
    engine: &mut Engine,
    members: &[Member],
    rules: impl Fn(SessionRef, Tunnel, Ipv4Addr) -> Rules,
    progress: &mut dyn Progress,
) -> Result<(), PathError> {
    for (number, some) in members.chunks(ORDERS).enumerate() {
        progress.part((number * ORDERS) as u64, members.len() as u64);
        for Member { place, tunnel, ue } in some {
            let install = Command::Install {
                token: Token(0),
                rules: Arc::new(rules(*place, *tunnel, *ue)),
                transition: Transition::default(),
                query: Box::default(),
            };
            engine.post(place.shard, install);
        }
        let fence = engine.fence();
        let mut applied = 0;
        while !engine.passed(fence) {
            engine.flush();
            engine.drain(|_, event| applied += usize::from(matches!(event, Event::Applied { .. })));
            std::thread::yield_now();
        }
        if applied < some.len() {
            return Err(PathError::NotInstalled(pfcp::Seid(0)));
        }
    }
    Ok(())
}

/// Workers with everyday sessions.
pub struct Crew {
    /// The threads.
    pub engine: Engine,
}

impl Crew {
    /// Starts the threads, which take the ports' queues, and gives them sessions with the rules of `forward`.
    pub fn start<P>(
        ports: &mut [P],
        team: &Team,
        members: &[Member],
        clock: Tsc,
        progress: &mut dyn Progress,
    ) -> Result<Self, CrewError>
    where
        P: Port + 'static,
        P::Rx: 'static,
        P::Tx: 'static,
        P::Pool: 'static,
    {
        let mut network = path::network().map_err(PathError::from)?;
        let config = Config { teids: path::teids(), ..Config::new(network.fib()) };
        let mut engine = Engine::start(ports, &team.settings(), &config, clock)?;
        install(&mut engine, members, forward::rules, progress)?;
        Ok(Self { engine })
    }

    /// Moves every shard to the worker that `owner` says of its number, and waits until all are there.
    pub fn place(&mut self, owner: impl Fn(usize) -> usize) -> Result<(), CrewError> {
        let map = self.engine.shard_map();
        let way = |shard: ShardId| (map.owner(shard), owner(shard.index()), shard);
        let mut moves: Vec<_> = ShardId::all().map(way).filter(|(from, to, _)| from != to).collect();
        // Those with one way go together.
        moves.sort_unstable();
        for (_, to, shard) in moves {
            self.engine.move_shards([shard], to)?;
        }
        while self.engine.is_moving() {
            self.engine.flush();
            self.engine.drain(|_, _| ());
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Stops the threads; what they counted.
    pub fn stop(self) -> Result<Vec<WorkerReport>, CrewError> {
        Ok(self.engine.stop()?)
    }
}

/// Why workers dropped packets, and how many, all together.
pub fn drops(reports: &[WorkerReport]) -> Vec<(&'static str, u64)> {
    let mut sums: Vec<(&'static str, u64)> = Vec::new();
    for (reason, packets) in reports.iter().flat_map(|report| report.counters.drops()) {
        match sums.iter_mut().find(|(known, _)| *known == reason.label()) {
            Some((_, sum)) => *sum += packets,
            None => sums.push((reason.label(), packets)),
        }
    }
    sums
}

/// Held by a test whose workers want all cores to themselves: two such tests would make each other lose packets.
#[cfg(test)]
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
