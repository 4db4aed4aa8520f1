//! The thesis' Jetson Xavier, simulated: cores, one GPU with its worker, rings, and time.
//!
//! It is a discrete-event simulation: time goes from one end of a kernel or a packet to the next, and nothing is random. [`service`] says how long things take, [`power`] what they draw.
//! What the thesis' workers are like is taken from its chapter 4, and where it is silent from its figures:
//!
//! - A core's ring and its driver's ring have 128 places each, and a burst is on its way between them: Table 4.6 has the latency of 304 packets.
//! - The GPU's ring has 128 places; a batch has at most 128 packets.
//! - **A decoded batch comes out of its driver when the next one goes in** ([`Settings::holds`]), or after a while; in C1 it is then ciphered behind that one. The thesis doesn't say so. But in its
//!   low test packets take 69 ms: a batch of 128 fills in 42 ms, so a packet waits 21 ms for it to be full, another 42 ms for the next one, and 9 ms for the next one's decoding and its own
//!   ciphering: 72 ms. The same sum gives 32 ms in its medium test (35 ms there).
//!
//! Workers may become slower, stall and die at set times ([`Change`]).

pub mod power;
pub mod service;

use super::packet::{Chain, Step};
use super::run::Timed;
use super::worker::{Next, Queue, Worth};
use super::{BatchRecord, Class, Done, Job, NEVER, Platform, Report, Span, WorkerId};
use power::Activity;
use std::collections::VecDeque;
use tables::Nanos;

/// What the machine is like.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Cores that are workers.
    pub cpu_workers: usize,
    /// Who decides how often.
    pub chain: Chain,
    /// Jobs that wait for a core, for each step.
    pub cpu_ring: usize,
    /// Jobs that wait for the accelerator, for each step.
    pub accelerator_ring: usize,
    /// Jobs of a batch, at most.
    pub most: usize,
    /// Whether decoded batches come back when the next one is begun.
    pub holds: bool,
    /// Nanoseconds after which a held batch comes back anyway.
    pub holds_for: u64,
    /// What goes wrong, in the order of time.
    pub changes: Vec<Change>,
}

impl Settings {
    /// As in the thesis: two CPU workers, one GPU worker, rings of 128.
    pub fn thesis(chain: Chain) -> Self {
        Self {
            cpu_workers: 2,
            chain,
            cpu_ring: 272,
            accelerator_ring: 128,
            most: 128,
            holds: true,
            holds_for: 60_000_000,
            changes: Vec::new(),
        }
    }
}

/// Something that happens to a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// When.
    pub at: Nanos,
    /// To whom.
    pub worker: WorkerId,
    /// What.
    pub what: Fault,
}

/// What may happen to a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// From now on it takes so many times as long as [`service`] says.
    Slower(f64),
    /// It begins nothing for so many nanoseconds.
    Stalls(u64),
    /// It is gone, and all that it has.
    Dies,
}

/// What a worker is just doing.
#[derive(Debug)]
struct Running {
    step: Step,
    jobs: Vec<Job>,
    span: Span,
    /// In C1 the second step: when decoding was done.
    decoded: Span,
    /// What the jobs were handed over for.
    asked: Step,
}

#[derive(Debug)]
struct Worker {
    class: Class,
    queues: [Queue; 2],
    running: Option<Running>,
    /// For a core: jobs of the burst that it is in the middle of, next one last.
    burst: (Step, Vec<Job>),
    /// The step of the last burst or kernel.
    last: Step,
    /// What is decoded and hasn't come out of its driver yet, and since when: in C2 what is told then, in C1 what is ciphered then.
    held: (Vec<Report>, Option<Running>, Nanos),
    /// What is ciphered next.
    ready: VecDeque<Running>,
    slower: f64,
    stalls_until: Nanos,
    is_alive: bool,
}

impl Worker {
    fn holds(&self) -> bool {
        !self.held.0.is_empty() || self.held.1.is_some()
    }
}

/// The machine.
#[derive(Debug)]
pub struct Xavier {
    settings: Settings,
    classes: Vec<Class>,
    workers: Vec<Worker>,
    worth: Worth,
    now: Nanos,
    changes: std::vec::IntoIter<Change>,
    next_change: Option<Change>,
    reports: Vec<Report>,
    activity: Activity,
}

impl Xavier {
    /// A machine whose accelerator begins batches that are worth it.
    pub fn new(settings: Settings, worth: Worth) -> Self {
        let mut classes = vec![Class::Cpu; settings.cpu_workers];
        classes.push(Class::Accelerator);
        let worker = |&class: &Class| Worker {
            class,
            queues: Default::default(),
            running: None,
            burst: (Step::Decode, Vec::new()),
            last: Step::Cipher,
            held: (Vec::new(), None, Nanos(0)),
            ready: VecDeque::new(),
            slower: 1.0,
            stalls_until: Nanos(0),
            is_alive: true,
        };
        let mut changes = settings.changes.clone();
        changes.sort_by_key(|change| change.at);
        let mut changes = changes.into_iter();
        Self {
            workers: classes.iter().map(worker).collect(),
            classes,
            worth,
            now: Nanos(0),
            next_change: changes.next(),
            changes,
            reports: Vec::new(),
            activity: Activity::default(),
            settings,
        }
    }

    /// When something happens next by itself.
    fn event(&self) -> Nanos {
        let of_worker = |worker: &Worker| {
            if !worker.is_alive {
                return NEVER;
            }
            let held = if worker.holds() { worker.held.2.plus(self.settings.holds_for) } else { NEVER };
            let ends =
                worker.running.as_ref().map_or_else(|| self.begins(worker), |running| running.span.ended);
            held.min(ends)
        };
        let change = self.next_change.map_or(NEVER, |change| change.at);
        self.workers.iter().map(of_worker).min().unwrap_or(NEVER).min(change)
    }

    /// When a worker that does nothing begins something, if no more comes.
    fn begins(&self, worker: &Worker) -> Nanos {
        let wait = |queue: &Queue| match queue.next(worker.class, self.settings.most, self.worth, self.now) {
            Next::Begin(_) => self.now,
            Next::Wait(until) => until,
        };
        let of_queues = worker.queues.iter().map(wait).min().unwrap_or(NEVER);
        let first = if worker.ready.is_empty() { of_queues } else { self.now };
        if first == NEVER { NEVER } else { first.max(worker.stalls_until) }
    }

    /// Lets everything happen until `now`.
    fn pass_until(&mut self, now: Nanos) {
        loop {
            let next = self.event();
            if next > now {
                break;
            }
            self.pass(next);
            self.happen();
        }
        self.pass(now);
    }

    /// Time passes, in which each does what it does.
    fn pass(&mut self, now: Nanos) {
        let seconds = now.since(self.now) as f64 / Nanos::SECOND as f64;
        if seconds <= 0.0 {
            return;
        }
        let running = |class| {
            let of_class = self.workers.iter().filter(move |worker| worker.class == class);
            of_class.filter_map(|worker| worker.running.as_ref())
        };
        let is_kernel = running(Class::Accelerator).next().is_some();
        let decodes = running(Class::Cpu).any(|running| running.step == Step::Decode);
        self.activity.seconds += seconds;
        self.activity.kernel += if is_kernel { seconds } else { 0.0 };
        self.activity.decoding += if decodes { seconds } else { 0.0 };
        self.activity.polling += seconds * self.settings.cpu_workers as f64;
        self.now = now;
    }

    fn happen(&mut self) {
        while let Some(change) = self.next_change.filter(|change| change.at <= self.now) {
            self.next_change = self.changes.next();
            self.change(change);
        }
        for at in 0..self.workers.len() {
            self.end(at);
            let worker = &self.workers[at];
            if worker.holds() && worker.held.2.plus(self.settings.holds_for) <= self.now {
                self.let_out(at);
            }
            self.begin(at);
        }
    }

    /// What is decoded comes out of its driver.
    fn let_out(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        self.reports.append(&mut worker.held.0);
        worker.ready.extend(worker.held.1.take());
    }

    fn change(&mut self, Change { worker, what, .. }: Change) {
        let Some(worker) = self.workers.get_mut(worker.0) else { return };
        match what {
            Fault::Slower(times) => worker.slower = times.max(1e-3),
            Fault::Stalls(nanos) => {
                worker.stalls_until = self.now.plus(nanos);
                if let Some(running) = &mut worker.running {
                    running.span.ended = running.span.ended.plus(nanos);
                }
            }
            Fault::Dies => {
                worker.is_alive = false;
                (worker.running, worker.queues) = (None, Default::default());
                (worker.held, worker.burst.1) = Default::default();
                worker.ready.clear();
            }
        }
    }

    /// What a worker is doing is done.
    fn end(&mut self, at: usize) {
        let now = self.now;
        let worker = &mut self.workers[at];
        let Some(mut running) = worker.running.take_if(|running| running.span.ended <= now) else { return };
        let (id, class) = (WorkerId(at), worker.class);
        let octets = running.jobs.iter().map(|job| u64::from(job.packet.octets)).sum();
        let packets = running.jobs.len() as u32;
        let record = BatchRecord { worker: id, step: running.step, packets, octets, span: running.span };
        let holds = self.settings.holds && class == Class::Accelerator && running.step == Step::Decode;
        if self.settings.chain == Chain::Once && running.step == Step::Decode {
            self.reports.push(Report::Batch(record));
            running.decoded = running.span;
            if holds {
                (worker.held.1, worker.held.2) = (Some(running), now);
            } else {
                self.run(at, Step::Cipher, running);
            }
            return;
        }
        let mut spans = [running.decoded; 2];
        spans[running.step as usize] = running.span;
        if self.settings.chain == Chain::EachStep {
            spans[1 - running.step as usize] = Span::default();
        }
        let done = running
            .jobs
            .iter()
            .map(|&job| Report::Done(Done { job, worker: id, step: running.asked, spans }));
        if holds {
            worker.held.0.extend(done);
            worker.held.0.push(Report::Batch(record));
            worker.held.2 = now;
        } else {
            self.reports.extend(done);
            self.reports.push(Report::Batch(record));
        }
    }

    /// A worker that does nothing begins something, if there is something.
    fn begin(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.running.is_some() || !worker.is_alive || worker.stalls_until > self.now {
            return;
        }
        if let Some(job) = worker.burst.1.pop() {
            let step = worker.burst.0;
            return self.start(at, step, vec![job]);
        }
        if let Some(decoded) = worker.ready.pop_front() {
            return self.run(at, Step::Cipher, decoded);
        }
        // The other step's turn, if there is one.
        for step in if worker.last == Step::Decode { [Step::Cipher, Step::Decode] } else { Step::ALL } {
            let queue = &mut worker.queues[step as usize];
            if let Next::Begin(jobs) = queue.next(worker.class, self.settings.most, self.worth, self.now) {
                let mut jobs: Vec<Job> = queue.take(jobs).collect();
                if worker.class == Class::Accelerator {
                    if step == Step::Decode {
                        self.let_out(at);
                    }
                    return self.start(at, step, jobs);
                }
                jobs.reverse();
                let first = jobs.pop();
                worker.burst = (step, jobs);
                return self.start(at, step, first.into_iter().collect());
            }
        }
    }

    fn start(&mut self, at: usize, step: Step, jobs: Vec<Job>) {
        let running = Running { step, jobs, span: Span::default(), decoded: Span::default(), asked: step };
        self.run(at, step, running);
    }

    fn run(&mut self, at: usize, step: Step, running: Running) {
        let others = self.workers.iter().enumerate().filter(|&(other, worker)| {
            other != at
                && worker.class == Class::Cpu
                && worker.running.as_ref().is_some_and(|running| running.step == Step::Decode)
        });
        let beside = others.count();
        let worker = &mut self.workers[at];
        let octets = running.jobs.iter().map(|job| u64::from(job.packet.octets)).sum();
        let changes = worker.last != step;
        let nanos = service::nanos(worker.class, step, octets, changes, beside) * worker.slower;
        let span = Span { began: self.now, ended: self.now.plus((nanos as u64).max(1)) };
        worker.last = step;
        worker.running = Some(Running { step, span, ..running });
    }
}

impl Timed for Xavier {
    fn now(&self) -> Nanos {
        self.now
    }

    fn next_event(&mut self) -> Nanos {
        self.event()
    }

    fn go_on(&mut self, until: Nanos) -> Nanos {
        self.pass_until(until);
        self.now
    }

    fn take_activity(&mut self) -> Activity {
        std::mem::take(&mut self.activity)
    }
}

impl Platform for Xavier {
    fn workers(&self) -> &[Class] {
        &self.classes
    }

    fn is_alive(&self, worker: WorkerId) -> bool {
        self.workers.get(worker.0).is_some_and(|worker| worker.is_alive)
    }

    fn enqueue(&mut self, worker: WorkerId, step: Step, jobs: &mut Vec<Job>, launch_by: Nanos) {
        let Some(to) = self.workers.get_mut(worker.0).filter(|to| to.is_alive) else { return };
        let ring =
            if to.class == Class::Cpu { self.settings.cpu_ring } else { self.settings.accelerator_ring };
        let queue = &mut to.queues[step as usize];
        let fits = ring.saturating_sub(queue.len()).min(jobs.len());
        jobs.drain(..fits).for_each(|job| queue.push(job, launch_by));
        self.begin(worker.0);
    }

    fn dequeue(&mut self, reports: &mut Vec<Report>) {
        reports.append(&mut self.reports);
    }
}
