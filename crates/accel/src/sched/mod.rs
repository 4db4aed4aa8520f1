//! Which worker does a packet's steps?
//!
//! **Problem.** Every packet has to be decoded (LDPC) and then ciphered (NEA2). Some processors' cores can do either, packet by packet; one accelerator does many packets at a time,
//! faster but later. Packets come at a rate that nobody knows, some have a deadline, some must keep their order. Who does what, and how many wait for each other?
//!
//! **Model.** A [`Core`](core::Core) takes packets in, asks a [`Scheduler`] for each where it goes, hands bursts to workers by bounded rings, and lets packets go again in
//! their order. It neither knows threads nor clocks: what workers are is a [`Platform`], and the same core runs on
//!
//! - [`xavier`]: a simulation of the NVIDIA Jetson on which the master thesis LIU-IDA/LITH-EX-A--19/092--SE measured its schedulers;
//! - [`host`]: threads of this machine, with real work, and its GPU if it has one.
//!
//! | module | what stands there |
//! |---|---|
//! | [`packet`] | the packet table, steps, configurations C1 and C2 |
//! | [`core`] | the way of a packet: in, out to a worker, back, in order, away |
//! | [`round_robin`], [`fixed`], [`q_learning`], [`adaptive`] | the schedulers |
//! | [`batching`] | when a batch is begun |
//! | [`reorder`] | the sliding window |
//! | [`xavier`], [`host`] | the platforms |
//! | [`traffic`], [`trace`] | what packets come when; the same as files |
//! | [`run`] | one test from begin to end, and its figures second by second |
//! | [`oracle`] | which deadlines could have been met at all |
//!
//! **Nothing is lost inside.** Where a ring is full, packets wait, and where too many wait, no more are taken in; only the receive ring at the edge loses, and counts.
//!
//! **Example.** The thesis' low test, simulated:
//!
//! ```
//! use accel::sched::packet::Chain;
//! use accel::sched::run::{Settings, simulate};
//! use accel::sched::traffic::Test;
//!
//! let settings = Settings { seconds: 2, ..Settings::thesis(Test::Low, Chain::EachStep) };
//! let outcome = simulate("adaptive", &settings)?;
//! assert_eq!(outcome.total.missed_percent(), 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod adaptive;
pub mod batching;
pub mod core;
pub mod fixed;
pub mod host;
pub mod oracle;
pub mod packet;
pub mod q_learning;
pub mod reorder;
pub mod round_robin;
pub mod run;
pub mod trace;
pub mod traffic;
pub mod worker;
pub mod xavier;

use packet::{Chain, Packet, Step};
use std::fmt::Debug;
use tables::Nanos;

/// A worker of a platform, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub usize);

/// What a worker is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A core that does one packet after the other.
    Cpu,
    /// An accelerator that does many at a time.
    Accelerator,
}

/// A packet inside, until it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Its place in the books of the core: unique among those inside.
    pub place: u32,
    /// Counts all packets that have ever come.
    pub number: u64,
    /// The packet.
    pub packet: Packet,
    /// Its number in its flow, if the order counts.
    pub sequence: Option<u64>,
    /// When it has to leave; [`NEVER`] if that doesn't matter.
    pub due: Nanos,
}

/// A deadline that nothing misses.
pub const NEVER: Nanos = Nanos(u64::MAX);

/// When something was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Its begin.
    pub began: Nanos,
    /// Its end.
    pub ended: Nanos,
}

impl Span {
    /// Nanoseconds that it took.
    pub fn nanos(self) -> u64 {
        self.ended.since(self.began)
    }
}

/// What a worker has done at a time: a batch, or a single packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRecord {
    /// Who.
    pub worker: WorkerId,
    /// What.
    pub step: Step,
    /// To how many packets.
    pub packets: u32,
    /// Octets of all of them.
    pub octets: u64,
    /// From when to when it worked at it; waiting isn't in it.
    pub span: Span,
}

/// A packet that is back from a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Which.
    pub job: Job,
    /// Whose.
    pub worker: WorkerId,
    /// What it was handed over for; in configuration C1 the other step is done, too.
    pub step: Step,
    /// When decoding was done, and ciphering. What wasn't done by this worker is zero.
    pub spans: [Span; 2],
}

/// What workers tell the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A packet is back.
    Done(Done),
    /// Work of a worker, after its packets.
    Batch(BatchRecord),
}

/// Workers, and the rings to and from them.
pub trait Platform {
    /// What workers there are.
    fn workers(&self) -> &[Class];

    /// Whether a worker still lives.
    fn is_alive(&self, worker: WorkerId) -> bool;

    /// Hands over jobs for a step, as many as the ring takes from the front; the others stay. Whoever batches begins by `launch_by`, if that makes a batch
    /// that is [worth it](worker::Worth).
    fn enqueue(&mut self, worker: WorkerId, step: Step, jobs: &mut Vec<Job>, launch_by: Nanos);

    /// Adds what workers have told since.
    fn dequeue(&mut self, reports: &mut Vec<Report>);
}

/// Jobs for a worker that aren't in its ring yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// How many.
    pub jobs: usize,
    /// When the first of them came there.
    pub since: Nanos,
    /// The first deadline among them.
    pub due: Nanos,
}

/// What to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// They go on waiting, until then at most.
    Wait(Nanos),
    /// They go into the ring. A batch of them has to begin by that time.
    Go(Nanos),
}

/// What is known of a worker's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepView {
    /// How many more jobs can be placed there.
    pub room: usize,
    /// Jobs placed that aren't in the ring yet.
    pub pending: usize,
    /// Jobs in the ring, or being done, or done and not yet told.
    pub inside: usize,
}

/// What is known of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerView {
    /// What it is like.
    pub class: Class,
    /// Whether it is alive and gets on.
    pub is_usable: bool,
    /// By step.
    pub steps: [StepView; 2],
}

impl WorkerView {
    /// What is known of a step.
    pub fn step(&self, step: Step) -> &StepView {
        &self.steps[step as usize]
    }

    /// Whether a job for that step can be placed here now.
    pub fn has_room(&self, step: Step) -> bool {
        self.is_usable && self.step(step).room > 0
    }
}

/// What a scheduler decides by.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The time.
    pub now: Nanos,
    /// Who decides how often.
    pub chain: Chain,
    /// Packets that come in a second, of late.
    pub rate: f64,
    /// All workers.
    pub workers: &'a [WorkerView],
}

impl<'a> View<'a> {
    /// Those of a class, in their order.
    pub fn of_class(
        &self,
        class: Class,
    ) -> impl Iterator<Item = (WorkerId, &'a WorkerView)> + Clone + use<'a> {
        let all = self.workers.iter().enumerate().map(|(at, worker)| (WorkerId(at), worker));
        all.filter(move |(_, worker)| worker.class == class)
    }

    /// Whether any of a class gets on.
    pub fn has_usable(&self, class: Class) -> bool {
        self.of_class(class).any(|(_, worker)| worker.is_usable)
    }

    /// A worker.
    pub fn worker(&self, id: WorkerId) -> Option<&'a WorkerView> {
        self.workers.get(id.0)
    }

    /// Whether a job for that step can be placed there now.
    pub fn has_room(&self, id: WorkerId, step: Step) -> bool {
        self.worker(id).is_some_and(|worker| worker.has_room(step))
    }
}

/// How a packet left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The packet.
    pub job: Job,
    /// Who did each step; the same one in configuration C1.
    pub workers: [WorkerId; 2],
    /// When each step was done.
    pub spans: [Span; 2],
    /// When it left.
    pub at: Nanos,
    /// Whether none with a higher number of its flow had left; true where the order doesn't count.
    pub in_order: bool,
}

impl Left {
    /// Nanoseconds from its arrival.
    pub fn latency(&self) -> u64 {
        self.at.since(self.job.packet.arrived)
    }

    /// Whether it had a deadline, and left behind it.
    pub fn is_late(&self) -> bool {
        self.at > self.job.due
    }
}

/// Who decides where a packet's steps are done, and how long batches wait. All times come as arguments, and all that it learns from are reports.
pub trait Scheduler: Debug + Send {
    /// Its name, as on the command line.
    fn name(&self) -> &'static str;

    /// The worker that is to do a step; none if all that come into question are full: then it is asked again later. In configuration C1 only [`Step::Decode`] is asked
    /// for. A worker without room for it is taken for none.
    fn place(&mut self, job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId>;

    /// Whether jobs that were placed go into the worker's ring now.
    fn release(&mut self, worker: WorkerId, step: Step, pending: &Pending, view: &View<'_>) -> Release;

    /// Which batches are worth it.
    fn worth(&self) -> worker::Worth {
        worker::Worth::default()
    }

    /// A worker has worked.
    fn worked(&mut self, _record: &BatchRecord) {}

    /// A packet came back from a worker.
    fn came_back(&mut self, _done: &Done, _now: Nanos) {}

    /// A worker died or got on with nothing: whatever it had is taken away from it.
    fn failed(&mut self, _worker: WorkerId) {}

    /// A packet has left.
    fn left(&mut self, _left: &Left) {}

    /// What was learned, of one that is being trained.
    fn learned(&self) -> Option<q_learning::Table> {
        None
    }
}
