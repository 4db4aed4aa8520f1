//! This machine: threads that decode and cipher, and a clock that nobody sets.
//!
//! - **Cores** ([`Class::Cpu`]) are threads that do one packet after the other. [`Vectors::Plain`] lets them do so as a core without vectors would: plain code decodes, and the crate `aes` ciphers. That makes
//!   them slower than an accelerator by what the Jetson's cores are, and is what stands for itself; [`Vectors::Best`] lets them do what they can.
//! - **The accelerator** ([`Class::Accelerator`]) does batches. It is a GPU where [`gpu::list`] has one. Where there is none, it is one more thread, which takes a batch at a time and does it
//!   with the widest vectors: lanes hold the checks of a row, so one block fills them, and a batch is done block by block.
//!
//! What is done is real: [`Material`](material::Channel) made of real code blocks goes through [`Batch`](crate::task::Batch)es to [`Device`]s, decoded octets are compared with those that were sent, and
//! they are what is ciphered. [`Host::blocks`] counts what came of it.
//!
//! All that happens to a worker may be asked for, as on [`xavier`](super::xavier): it may be slower, stall, or die. A thread whose device fails or whose work panics is dead: what it has isn't
//! told, and the core gives it to others.

pub mod material;
mod meter;
mod scale;
mod thread;
mod work;

pub use scale::{HostSettings, JETSON_RATE, Scale};
pub use work::{Blocks, descriptor};

use super::packet::{Chain, Step};
use super::run::{Machine, Outcome, Timed, drive};
use super::worker::{Queue, Worth};
use super::xavier::Change;
use super::xavier::power::Activity;
use super::{Class, Done, Job, Left, NEVER, Platform, Report, Scheduler, WorkerId, run};
use crate::cpu::Inline;
use crate::device::{Device, Failure};
use crate::gpu;
use material::{Channel, Material, MaterialError};
use meter::{Energy, Meter};
use ran::simd::Processor;
use rtrb::{Consumer, Producer, RingBuffer};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use tables::{Nanos, Tsc};
use thread::{Control, Since, Worker, idle};
use work::{Shared, Work};

/// What a core's worker computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vectors {
    /// Nothing but what every core has.
    Plain,
    /// The widest that this processor has.
    Best,
}

impl Vectors {
    /// By its name in settings: `plain` or `best`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::Plain),
            "best" => Some(Self::Best),
            _ => None,
        }
    }

    fn processor(self) -> Processor {
        match self {
            Self::Plain => Processor::Any,
            Self::Best => Processor::best(),
        }
    }
}

/// What the accelerator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accelerator {
    /// The first GPU, if there is one, else a thread.
    GpuOrThread,
    /// A thread, also where there is a GPU.
    Thread,
}

/// How the host's workers are.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Threads that are cores.
    pub cpu_workers: usize,
    /// What these compute with.
    pub cpu: Vectors,
    /// What the accelerator is.
    pub accelerator: Accelerator,
    /// Jobs that wait for a core, for each step.
    pub cpu_ring: usize,
    /// Jobs that wait for the accelerator, for each step.
    pub accelerator_ring: usize,
    /// Jobs of a batch, at most.
    pub most: usize,
    /// Through what packets have come.
    pub channel: Channel,
    /// Seconds of each measurement for what `static` goes by.
    pub calibration: u32,
    /// Seconds for which `q-learning` is trained if it has no table.
    pub training: u32,
    /// What goes wrong, in the order of time.
    pub changes: Vec<Change>,
}

impl Default for Settings {
    /// The accelerator needs a core of its own if it is a thread: the others are workers, one at least. Rings as on [`xavier`](super::xavier).
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cpu_workers: cores.saturating_sub(1).clamp(1, super::q_learning::MOST_WORKERS - 1),
            cpu: Vectors::Plain,
            accelerator: Accelerator::GpuOrThread,
            cpu_ring: 272,
            accelerator_ring: 128,
            most: 128,
            channel: Channel::default(),
            calibration: 2,
            training: 20,
            changes: Vec::new(),
        }
    }
}

/// Why there are no workers.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing to decode could be made.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// A thread didn't start.
    #[error("no thread for a worker: {0}")]
    Thread(#[from] std::io::Error),
    /// A device doesn't start, or doesn't do what it is given.
    #[error(transparent)]
    Device(#[from] Failure),
}

/// A worker as the core has it.
struct Handle {
    control: Arc<Control>,
    jobs: [Producer<(Job, Nanos)>; 2],
    reports: Consumer<Report>,
    thread: Option<JoinHandle<()>>,
    /// Jobs handed over and not told.
    inside: usize,
    ring: usize,
}

impl Handle {
    fn is_alive(&self) -> bool {
        !self.control.is_dead.load(Ordering::Acquire)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Sees what has become of a packet's octets: called for each packet that was ciphered.
pub type See = Box<dyn FnMut(&Job, &[u8]) + Send>;

/// Workers that are threads. It belongs to the thread that starts it, which workers wake when there is something to hear.
pub struct Host {
    clock: Since,
    chain: Chain,
    classes: Vec<Class>,
    workers: Vec<Handle>,
    changes: std::iter::Peekable<std::vec::IntoIter<Change>>,
    shared: Arc<Shared>,
    meter: Arc<Meter>,
    energy: Energy,
    /// Until when activity has been taken.
    taken: Nanos,
    see: Option<See>,
    accelerator: String,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("accelerator", &self.accelerator)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Starts workers for packets of these sizes, of which at most so many are inside.
    pub fn start(
        settings: &Settings,
        chain: Chain,
        worth: Worth,
        sizes: &[u32],
        most_inside: usize,
    ) -> Result<Self, StartError> {
        let material = Material::new(sizes, &settings.channel)?;
        let accelerator = accelerator(settings, &material)?;
        let shared = Arc::new(Shared::new(material, most_inside));
        let mut changes = settings.changes.clone();
        changes.sort_by_key(|change| change.at);
        let mut host = Self {
            clock: Since::now(),
            chain,
            classes: Vec::new(),
            workers: Vec::new(),
            changes: changes.into_iter().peekable(),
            shared,
            meter: Arc::default(),
            energy: Energy::below(Path::new("/sys/class/powercap")),
            taken: Nanos(0),
            see: None,
            accelerator: accelerator.name().to_owned(),
        };
        for _ in 0..settings.cpu_workers {
            let device = Inline::on(settings.cpu.processor(), 1, Tsc::process());
            host.add(Class::Cpu, settings, worth, Box::new(device))?;
        }
        host.add(Class::Accelerator, settings, worth, accelerator)?;
        Ok(host)
    }

    fn add(
        &mut self,
        class: Class,
        settings: &Settings,
        worth: Worth,
        device: Box<dyn Device>,
    ) -> Result<(), StartError> {
        let id = WorkerId(self.workers.len());
        let (ring, name) = match class {
            Class::Cpu => (settings.cpu_ring.max(1), format!("sched-cpu{}", id.0)),
            Class::Accelerator => {
                (settings.accelerator_ring.max(settings.most).max(1), "sched-accel".to_owned())
            }
        };
        let control: Arc<Control> = Arc::default();
        let [(decode, to_decode), (cipher, to_cipher)] = [RingBuffer::new(ring), RingBuffer::new(ring)];
        // All that can be inside, each with a record of its own: the core is never waited for, unless it sleeps for long.
        let (reports, told) = RingBuffer::new(8 * ring);
        let worker = Worker {
            id,
            class,
            chain: self.chain,
            most: settings.most.max(1),
            worth,
            clock: self.clock,
            control: Arc::clone(&control),
            meter: Arc::clone(&self.meter),
            jobs: [to_decode, to_cipher],
            reports,
            core: std::thread::current(),
            work: Work::new(Arc::clone(&self.shared), device, self.clock),
            queues: <[Queue; 2]>::default(),
            last: Step::Cipher,
            slower: 1.0,
            told: Nanos(0),
        };
        let thread = std::thread::Builder::new().name(name).spawn(move || worker.serve())?;
        let jobs = [decode, cipher];
        self.workers.push(Handle { control, jobs, reports: told, thread: Some(thread), inside: 0, ring });
        self.classes.push(class);
        Ok(())
    }

    /// What came of blocks so far.
    pub fn blocks(&self) -> Blocks {
        self.shared.blocks()
    }

    /// What the accelerator is: `cpu` for a thread.
    pub fn accelerator(&self) -> &str {
        &self.accelerator
    }

    /// Why a worker is dead, if it is.
    pub fn failure(&self, worker: WorkerId) -> Option<String> {
        self.workers.get(worker.0)?.control.failure()
    }

    /// Lets someone see the octets of packets that are done.
    pub fn show(&mut self, see: See) {
        self.see = Some(see);
    }

    fn go_wrong(&mut self) {
        let now = self.clock.time();
        while let Some(change) = self.changes.next_if(|change| change.at <= now) {
            if let Some(worker) = self.workers.get(change.worker.0) {
                worker.control.fault(change.what);
                worker.wake();
            }
        }
    }
}

/// The accelerator's device.
fn accelerator(settings: &Settings, material: &Material) -> Result<Box<dyn Device>, StartError> {
    if settings.accelerator == Accelerator::GpuOrThread && gpu::list().is_ok() {
        let octets = settings.most * (material.most_llrs() + super::packet::MOST_OCTETS as usize);
        let default = gpu::Settings::default();
        let (input, output) = (octets.max(default.input), octets.max(default.output));
        // Tables are none of its tasks.
        return Ok(gpu::launching(0, gpu::Settings { input, output, tables: 1 << 20, ..default })?);
    }
    // A batch for each size.
    Ok(Box::new(Inline::on(Processor::best(), material.sizes(), Tsc::process())))
}

/// Does both steps of jobs in the caller's thread, one after the other, and gives the octets of each: what workers are held to. The jobs' places are below so many.
pub fn in_one_thread(
    settings: &Settings,
    sizes: &[u32],
    most_inside: usize,
    jobs: &[Job],
) -> Result<Vec<Vec<u8>>, StartError> {
    let shared = Arc::new(Shared::new(Material::new(sizes, &settings.channel)?, most_inside));
    let device = Inline::on(settings.cpu.processor(), 1, Tsc::process());
    let mut work = Work::new(Arc::clone(&shared), Box::new(device), Since::now());
    let mut all = Vec::with_capacity(jobs.len());
    for job in jobs {
        work.decode(&[*job])?;
        work.cipher(&[*job])?;
        shared.with_ciphered(job, &mut |_, octets| all.push(octets.to_vec()));
    }
    Ok(all)
}

impl Platform for Host {
    fn workers(&self) -> &[Class] {
        &self.classes
    }

    fn is_alive(&self, worker: WorkerId) -> bool {
        self.workers.get(worker.0).is_some_and(Handle::is_alive)
    }

    fn enqueue(&mut self, worker: WorkerId, step: Step, jobs: &mut Vec<Job>, launch_by: Nanos) {
        let Some(to) = self.workers.get_mut(worker.0).filter(|to| to.is_alive()) else { return };
        let waiting = &to.control.waiting[step as usize];
        let fits = to.ring.saturating_sub(waiting.load(Ordering::Acquire)).min(jobs.len());
        waiting.fetch_add(fits, Ordering::Relaxed);
        for job in jobs.drain(..fits) {
            // What waits is no more than the ring has places, also while the worker has taken it out and not begun.
            let pushed = to.jobs[step as usize].push((job, launch_by));
            debug_assert!(pushed.is_ok());
        }
        to.inside += fits;
        if fits > 0 {
            to.wake();
        }
    }

    fn dequeue(&mut self, reports: &mut Vec<Report>) {
        self.go_wrong();
        for worker in &mut self.workers {
            while let Ok(report) = worker.reports.pop() {
                if let Report::Done(Done { job, step, .. }) = &report {
                    worker.inside = worker.inside.saturating_sub(1);
                    let is_ciphered = self.chain == Chain::Once || *step == Step::Cipher;
                    if let Some(see) = self.see.as_mut().filter(|_| is_ciphered) {
                        self.shared.with_ciphered(job, see);
                    }
                }
                reports.push(report);
            }
        }
    }
}

impl Timed for Host {
    fn now(&self) -> Nanos {
        self.clock.time()
    }

    /// Threads don't say when they will be done: there may be something at any time while one has something.
    fn next_event(&mut self) -> Nanos {
        let may_come = self.workers.iter().any(|worker| worker.inside > 0 && worker.is_alive());
        let change = self.changes.peek().map_or(NEVER, |change| change.at);
        if may_come { self.now().plus(Nanos::SECOND / 100).min(change) } else { change }
    }

    fn go_on(&mut self, until: Nanos) -> Nanos {
        let workers = &self.workers;
        idle(&self.clock, until, || workers.iter().any(|worker| !worker.reports.is_empty()));
        self.now()
    }

    fn take_activity(&mut self) -> Activity {
        let now = self.clock.time();
        let seconds = now.since(self.taken) as f64 / Nanos::SECOND as f64;
        self.taken = now;
        Activity { seconds, ..self.meter.take() }
    }

    fn take_joules(&mut self) -> Option<f64> {
        self.energy.take()
    }
}

impl Machine for Settings {
    type Error = StartError;

    fn workers(&self, _: &run::Settings) -> usize {
        self.cpu_workers + 1
    }

    fn calibration(&self) -> u32 {
        self.calibration
    }

    fn training(&self) -> u32 {
        self.training
    }

    fn run(
        &self,
        scheduler: Box<dyn Scheduler>,
        settings: &run::Settings,
        watch: &mut dyn FnMut(&Left),
    ) -> Result<(Outcome, Box<dyn Scheduler>), StartError> {
        let sizes: Vec<u32> = settings.traffic.sizes.iter().map(|&(octets, _)| octets).collect();
        let core = &settings.core;
        let most_inside = core.most_inside.max(core.burst);
        let mut host = Host::start(self, core.chain, scheduler.worth(), &sizes, most_inside)?;
        Ok(drive(&mut host, scheduler, settings, watch))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.control.stop.store(true, Ordering::Release);
            worker.wake();
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // What goes wrong in it, it has caught.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::fake::{Fake, Fault};
    use crate::sched::packet::{FlowId, KindId, Packet};
    use crate::{Kind, Limits};

    #[test]
    fn a_worker_whose_device_fails_is_dead_and_says_why() {
        let settings = Settings { cpu_workers: 0, accelerator: Accelerator::Thread, ..Settings::default() };
        let mut host = Host::start(&settings, Chain::Once, Worth::default(), &[40], 4).unwrap();
        let limits =
            Limits { kinds: Kind::ALL.to_vec(), in_flight: 4, items: 64, input: 1 << 20, output: 1 << 20 };
        let fake = Fake::new(limits, 0);
        fake.remote().fail(Fault::Status(7));
        host.add(Class::Cpu, &settings, Worth::default(), Box::new(fake)).unwrap();
        let (id, now) = (WorkerId(1), host.now());
        let packet = Packet { tag: 0, kind: KindId(0), flow: FlowId(0), octets: 40, arrived: now };
        let mut jobs = vec![Job { place: 0, number: 0, packet, sequence: None, due: NEVER }];
        host.enqueue(id, Step::Decode, &mut jobs, now);
        assert!(jobs.is_empty());
        while host.is_alive(id) {
            host.go_on(host.now().plus(1_000_000));
        }
        let mut reports = Vec::new();
        host.dequeue(&mut reports);
        assert!(reports.is_empty(), "{reports:?}");
        assert!(host.failure(id).is_some() && host.failure(WorkerId(0)).is_none());
        assert!(host.is_alive(WorkerId(0)) && host.next_event() == NEVER);
    }
}
