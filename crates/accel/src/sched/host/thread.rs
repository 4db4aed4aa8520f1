//! A worker's thread: jobs come in by one ring for each step, reports go out by another.
//!
//! What it does next is [`Queue`]'s to say, as on all platforms. A thread that finds nothing looks again for some microseconds, lets others run for some more, and then sleeps until it is woken
//! or something is due. It never waits for the core, but where its ring out is full.

use super::meter::Meter;
use super::work::Work;
use crate::device::Failure;
use crate::sched::packet::{Chain, Step};
use crate::sched::worker::{Next, Queue, Worth};
use crate::sched::xavier::Fault;
use crate::sched::{BatchRecord, Class, Done, Job, Report, Span, WorkerId};
use rtrb::{Consumer, Producer, PushError};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;
use tables::{Nanos, Tsc};

/// Nanoseconds for which nothing but looking is done.
const SPINS_FOR: u64 = 2_000;

/// Nanoseconds until it sleeps; before, it lets others run.
const YIELDS_FOR: u64 = 20_000;

/// Nanoseconds of sleep, at most: nobody is forgotten.
const MOST_SLEEP: u64 = 5_000_000;

/// Nanoseconds that packets which are done wait for others of their burst, until the core is told.
const TELLS_AFTER: u64 = 20_000;

/// A clock that begins with a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    clock: Tsc,
    start: Nanos,
}

impl Since {
    pub(super) fn now() -> Self {
        let clock = Tsc::process();
        Self { clock, start: clock.now() }
    }

    pub(super) fn time(&self) -> Nanos {
        Nanos(self.clock.now().since(self.start))
    }
}

/// Waits until something is ready or it is late, politely.
pub(super) fn idle(clock: &Since, until: Nanos, is_ready: impl Fn() -> bool) {
    let began = clock.time();
    loop {
        let now = clock.time();
        if is_ready() || now >= until {
            return;
        }
        match now.since(began) {
            0..SPINS_FOR => std::hint::spin_loop(),
            SPINS_FOR..YIELDS_FOR => std::thread::yield_now(),
            _ => std::thread::park_timeout(Duration::from_nanos(until.since(now).min(MOST_SLEEP))),
        }
    }
}

/// What the core and a worker have in common, but for the rings.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) stop: AtomicBool,
    /// Whether it is over with it, and why.
    pub(super) is_dead: AtomicBool,
    failure: Mutex<Option<String>>,
    /// By step: jobs handed over and not begun.
    pub(super) waiting: [AtomicUsize; 2],
    /// What is to go wrong.
    faults: Mutex<Vec<Fault>>,
    has_faults: AtomicBool,
}

impl Control {
    pub(super) fn fault(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
        self.has_faults.store(true, Ordering::Release);
    }

    fn faults(&self) -> Vec<Fault> {
        if !self.has_faults.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fail(&self, failure: &Failure) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.to_string());
        self.is_dead.store(true, Ordering::Release);
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// A worker as its thread has it.
pub(super) struct Worker {
    pub(super) id: WorkerId,
    pub(super) class: Class,
    pub(super) chain: Chain,
    pub(super) most: usize,
    pub(super) worth: Worth,
    pub(super) clock: Since,
    pub(super) control: Arc<Control>,
    pub(super) meter: Arc<Meter>,
    pub(super) jobs: [Consumer<(Job, Nanos)>; 2],
    pub(super) reports: Producer<Report>,
    pub(super) core: Thread,
    pub(super) work: Work,
    pub(super) queues: [Queue; 2],
    /// The step of the last burst or batch.
    pub(super) last: Step,
    pub(super) slower: f64,
    /// When the core was told something last.
    pub(super) told: Nanos,
}

/// Why a worker doesn't go on.
enum End {
    Stop,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Worker {
    /// Works until it is told to stop, or something goes wrong: then nobody hears of what it has.
    pub(super) fn serve(mut self) {
        let control = Arc::clone(&self.control);
        let core = self.core.clone();
        let ended = catch_unwind(AssertUnwindSafe(move || {
            loop {
                match self.turn() {
                    Ok(()) => {}
                    Err(End::Stop) => return None,
                    Err(End::Failed(failure)) => return Some(failure),
                }
            }
        }));
        if let Some(failure) = ended.unwrap_or(Some(Failure::Panicked)) {
            control.fail(&failure);
        }
        core.unpark();
    }

    /// Does what is to be done next, or waits for it.
    fn turn(&mut self) -> Result<(), End> {
        self.check()?;
        for (ring, queue) in self.jobs.iter_mut().zip(&mut self.queues) {
            while let Ok((job, launch_by)) = ring.pop() {
                queue.push(job, launch_by);
            }
        }
        let mut until = Nanos(u64::MAX);
        let now = self.clock.time();
        // The other step's turn, if there is one.
        for step in if self.last == Step::Decode { [Step::Cipher, Step::Decode] } else { Step::ALL } {
            let queue = &mut self.queues[step as usize];
            match queue.next(self.class, self.most, self.worth, now) {
                Next::Begin(jobs) => {
                    let jobs: Vec<Job> = queue.take(jobs).collect();
                    self.control.waiting[step as usize].fetch_sub(jobs.len(), Ordering::Release);
                    self.last = step;
                    return self.work(step, &jobs);
                }
                Next::Wait(time) => until = until.min(time),
            }
        }
        let (control, jobs) = (&self.control, &self.jobs);
        let is_ready = || {
            jobs.iter().any(|ring| !ring.is_empty())
                || control.stops()
                || control.has_faults.load(Ordering::Acquire)
        };
        idle(&self.clock, until, is_ready);
        Ok(())
    }

    fn check(&mut self) -> Result<(), End> {
        for fault in self.control.faults() {
            match fault {
                Fault::Slower(times) => self.slower = times,
                Fault::Stalls(nanos) => self.pause(self.clock.time().plus(nanos)),
                // As if what it works with had gone wrong; without the message, since it was asked for.
                Fault::Dies => resume_unwind(Box::new("told to die")),
            }
        }
        if self.control.stops() { Err(End::Stop) } else { Ok(()) }
    }

    /// A core does one packet after the other, the accelerator all at once.
    fn work(&mut self, step: Step, jobs: &[Job]) -> Result<(), End> {
        if self.class == Class::Accelerator {
            self.together(step, jobs)?;
        } else {
            for job in jobs {
                self.check()?;
                self.together(step, std::slice::from_ref(job))?;
                if self.clock.time().since(self.told) >= TELLS_AFTER {
                    self.tell();
                }
            }
        }
        self.tell();
        Ok(())
    }

    /// A step of some jobs, and in C1 the other one behind it.
    fn together(&mut self, step: Step, jobs: &[Job]) -> Result<(), End> {
        let mut spans = [Span::default(); 2];
        spans[step as usize] = self.step(step, jobs)?;
        self.record(step, jobs, spans[step as usize])?;
        let second = (self.chain == Chain::Once && step == Step::Decode).then_some(Step::Cipher);
        if let Some(second) = second {
            spans[second as usize] = self.step(second, jobs)?;
        }
        for &job in jobs {
            self.report(Report::Done(Done { job, worker: self.id, step, spans }))?;
        }
        if let Some(second) = second {
            self.record(second, jobs, spans[second as usize])?;
        }
        Ok(())
    }

    fn step(&mut self, step: Step, jobs: &[Job]) -> Result<Span, Failure> {
        self.meter.begins(self.class, step, self.clock.time());
        let span = match step {
            Step::Decode => self.work.decode(jobs),
            Step::Cipher => self.work.cipher(jobs),
        };
        let span = span.map(|Span { began, ended }| {
            if self.slower <= 1.0 {
                return Span { began, ended };
            }
            self.pause(began.plus((ended.since(began) as f64 * self.slower) as u64));
            Span { began, ended: self.clock.time() }
        });
        self.meter.ends(self.class, step, span.as_ref().map_or(0, |span| span.nanos()), self.clock.time());
        span
    }

    /// Does nothing until then, unless it is told to stop, or worse.
    fn pause(&self, until: Nanos) {
        idle(&self.clock, until, || self.control.stops() || self.control.has_faults.load(Ordering::Acquire));
    }

    fn record(&mut self, step: Step, jobs: &[Job], span: Span) -> Result<(), End> {
        let octets = jobs.iter().map(|job| u64::from(job.packet.octets)).sum();
        let packets = jobs.len() as u32;
        self.report(Report::Batch(BatchRecord { worker: self.id, step, packets, octets, span }))
    }

    fn report(&mut self, report: Report) -> Result<(), End> {
        let mut report = report;
        while let Err(PushError::Full(back)) = self.reports.push(report) {
            report = back;
            self.tell();
            if self.control.stops() {
                return Err(End::Stop);
            }
            std::thread::park_timeout(Duration::from_nanos(YIELDS_FOR));
        }
        Ok(())
    }

    fn tell(&mut self) {
        self.core.unpark();
        self.told = self.clock.time();
    }
}
