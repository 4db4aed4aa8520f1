//! `adaptive`: the project's own scheduler. It learns while it runs what each worker takes ([`cost`]), predicts when each could let a packet go, and takes the one that costs least.
//!
//! What a worker costs a packet is the time until it would leave, and:
//!
//! - **order**: it doesn't leave before those of its flow that are already on their way, so nothing is gained by a worker that would be done earlier;
//! - **deadlines**: behind its deadline it is worth almost nothing;
//! - **power**: a core that decodes draws more than the accelerator does for a packet more in its batch. A millijoule is worth [`Settings::thrift`] milliseconds.
//!
//! **Batch economics.** To begin a batch costs a fixed time and energy, and to wait costs every packet that waits. The wait that makes the sum of both least is the square
//! root of twice the one by the other: the economic order quantity (Harris 1913). Packets that come faster make it shorter; no deadline is waited past.
//!
//! **Queues.** A core gets no more than it does in [`Settings::most_backlog`], the accelerator no more than one batch behind the one it does. What doesn't fit waits outside, where it can still go
//! to whoever is free first.
//!
//! **Help.** By the costs it always pays that cores decode, too, when there is more to do than anybody can. Whether it does is [tried](help).
//!
//! **Exploration.** A worker of which nothing is known, or nothing recent, is tried with one packet that has neither deadline nor order.

pub mod cost;
pub mod help;

use super::packet::{Chain, FlowId, Step};
use super::{
    BatchRecord, Class, Done, Job, Left, NEVER, Pending, Release, Scheduler, View, WorkerId, WorkerView,
};
use cost::Cost;
use help::Help;
use std::collections::HashMap;
use tables::Nanos;

/// What it heeds. Each ingredient can be left out, to see what it is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Milliseconds of waiting that a millijoule is worth; zero: power doesn't matter.
    pub thrift: f64,
    /// Watts more while the accelerator works.
    pub accelerator_watts: f64,
    /// Watts more while a core works at something heavy.
    pub cpu_watts: f64,
    /// Jobs of a batch, at most.
    pub most: usize,
    /// Nanoseconds of work at a core, at most.
    pub most_backlog: f64,
    /// Nanoseconds for which a batch waits, at most.
    pub most_wait: f64,
    /// Nanoseconds after which a worker is tried again.
    pub stale_after: u64,
    /// Whether queues count.
    pub heeds_queues: bool,
    /// Whether deadlines count.
    pub heeds_deadlines: bool,
    /// Whether a flow's order counts.
    pub heeds_order: bool,
    /// Whether a batch waits as long as pays; else it begins as soon as it can.
    pub economises: bool,
    /// Whether what is learned changes after the first second.
    pub goes_on_learning: bool,
}

impl Default for Settings {
    /// With the Jetson's watts.
    fn default() -> Self {
        Self {
            thrift: 30.0,
            accelerator_watts: 2.4,
            cpu_watts: 0.97,
            most: 128,
            most_backlog: 1e6,
            most_wait: 20e6,
            stale_after: Nanos::SECOND / 2,
            heeds_queues: true,
            heeds_deadlines: true,
            heeds_order: true,
            economises: true,
            goes_on_learning: true,
        }
    }
}

/// How many times the average delay of promises is heeded.
const SAFETY: f64 = 4.0;

/// Nanoseconds that a missed deadline costs.
const MISSED: f64 = 1e9;

/// What is known of a worker.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    costs: [Cost; 2],
    /// Nanoseconds of work that it has, as predicted when it was placed.
    backlog: f64,
    /// By step: jobs placed and not come back, and their octets.
    inside: [(u32, f64); 2],
    /// An accelerator: when it will have done what it is thought to be doing.
    busy_until: Nanos,
    /// By step: what is thought to wait for the next batch, and when that begins.
    waiting: [(u32, f64, Nanos); 2],
    /// Nanoseconds from the begin of work until the core hears that it is done, but for the work.
    lag: [f64; 2],
    /// Nanoseconds by which jobs come back later than was promised, on average over those that do and those that don't.
    slip: [f64; 2],
}

/// What was promised for a job.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    worker: usize,
    nanos: f64,
    /// When the job would be back.
    back: Nanos,
    is_open: bool,
}

/// The scheduler.
#[derive(Debug)]
pub struct Adaptive {
    settings: Settings,
    workers: Vec<Known>,
    /// By a job's place and step.
    promises: Vec<[Promise; 2]>,
    /// When what was placed last of a flow will be back.
    flows: HashMap<FlowId, Nanos>,
    started: Option<Nanos>,
    /// By step: nanoseconds that a packet with a deadline still takes when it is back.
    rest: [f64; 2],
    help: Help,
}

impl Adaptive {
    /// That heeds what it is told to.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            workers: Vec::new(),
            promises: Vec::new(),
            flows: HashMap::new(),
            started: None,
            rest: [0.0; 2],
            help: Help::default(),
        }
    }

    /// What a worker is thought to take for a job.
    fn nanos(&self, at: usize, chain: Chain, step: Step, octets: f64) -> f64 {
        let known = &self.workers[at];
        match chain {
            Chain::Once => known.costs[0].predict(octets) + known.costs[1].predict(octets),
            Chain::EachStep => known.costs[step as usize].predict(octets),
        }
    }

    /// How long a batch of the accelerator waits for more to come, in nanoseconds.
    fn wait(&self, at: usize, step: Step, rate: f64) -> f64 {
        let Settings { thrift, accelerator_watts, most_wait, economises, .. } = self.settings;
        if !economises {
            return 0.0;
        }
        // Joules are watts * seconds; a packet that waits costs seconds.
        let seconds = self.workers[at].costs[step as usize].fixed() / 1e9;
        let worth = thrift * accelerator_watts * seconds;
        ((2.0 * worth / rate.max(1.0)).sqrt() * 1e9).min(most_wait)
    }

    /// The batch that waits begins as soon as nothing else runs, and its time has come.
    fn settle(&mut self, at: usize, chain: Chain, now: Nanos) {
        for step in Step::ALL {
            let (jobs, octets, begins) = self.workers[at].waiting[step as usize];
            let begin = if jobs as usize >= self.settings.most { now.min(begins) } else { begins };
            let begin = begin.max(self.workers[at].busy_until);
            if jobs > 0 && begin <= now {
                let nanos = self.nanos(at, chain, step, octets);
                let known = &mut self.workers[at];
                known.busy_until = begin.plus(nanos as u64);
                known.waiting[step as usize] = (0, 0.0, NEVER);
            }
        }
    }

    /// Whether enough is known of a core to give it more than one job to try.
    fn is_known(&self, at: usize, chain: Chain, step: Step) -> bool {
        let [decode, cipher] = &self.workers[at].costs;
        match (chain, step) {
            (Chain::Once, _) => decode.is_known() && cipher.is_known(),
            (Chain::EachStep, Step::Decode) => decode.is_known(),
            (Chain::EachStep, Step::Cipher) => cipher.is_known(),
        }
    }

    /// When a worker would have done the job; none if it doesn't take it.
    fn finish(&self, at: usize, class: Class, job: &Job, step: Step, view: &View<'_>) -> Option<Nanos> {
        let known = &self.workers[at];
        let octets = f64::from(job.packet.octets);
        let lag = known.lag[step as usize];
        match class {
            Class::Cpu => {
                let own = self.nanos(at, view.chain, step, octets);
                let backlog = if self.settings.heeds_queues { known.backlog } else { 0.0 };
                let fits = known.backlog <= 0.0
                    || known.backlog + own <= self.settings.most_backlog
                    || step == Step::Cipher;
                fits.then(|| view.now.plus((backlog + own + lag) as u64))
            }
            Class::Accelerator => {
                let (jobs, waiting, begins) = known.waiting[step as usize];
                if jobs as usize >= self.settings.most {
                    return None;
                }
                let begins =
                    if jobs > 0 { begins } else { view.now.plus(self.wait(at, step, view.rate) as u64) };
                let busy_until = if self.settings.heeds_queues { known.busy_until } else { view.now };
                let nanos = self.nanos(at, view.chain, step, waiting + octets);
                Some(begins.max(busy_until).plus((nanos + lag) as u64))
            }
        }
    }

    /// What a worker costs a job, in nanoseconds from now, and when the job would leave.
    fn price(&self, at: usize, class: Class, job: &Job, step: Step, view: &View<'_>) -> Option<(f64, Nanos)> {
        if class == Class::Cpu && !self.is_known(at, view.chain, step) {
            // One at a time, and only if there is nobody who is known better.
            let is_free = self.workers[at].inside.iter().all(|&(jobs, _)| jobs == 0);
            if view.has_usable(Class::Accelerator) || !is_free {
                return None;
            }
        }
        let mut leaves = self.finish(at, class, job, step, view)?;
        if self.settings.heeds_order && job.sequence.is_some() {
            let before = self.flows.get(&job.packet.flow).copied().unwrap_or(Nanos(0));
            leaves = leaves.max(before);
        }
        let octets = f64::from(job.packet.octets);
        let known = &self.workers[at];
        let (nanos, watts) = match class {
            Class::Cpu => (self.nanos(at, view.chain, step, octets), self.settings.cpu_watts),
            // What it takes more for one more in the batch.
            Class::Accelerator => {
                let waiting = known.waiting[step as usize].1;
                let before = if waiting > 0.0 { self.nanos(at, view.chain, step, waiting) } else { 0.0 };
                let more = self.nanos(at, view.chain, step, waiting + octets) - before;
                (more, self.settings.accelerator_watts)
            }
        };
        // Nanoseconds * watts are nanojoules; a millijoule is worth so many milliseconds: the same factor.
        let mut price = leaves.since(view.now) as f64 + nanos * watts * self.settings.thrift;
        if self.settings.heeds_deadlines && leaves.plus(self.margin(at, step) as u64) > job.due {
            price += MISSED;
        }
        Some((price, leaves))
    }

    /// Nanoseconds that a packet would take that waits until an accelerator that is full has room again: until the batch that waits there is done, and the next one.
    fn wait_for_room(&self, step: Step, view: &View<'_>) -> f64 {
        let waits = |(id, worker): (WorkerId, &WorkerView)| {
            let known = &self.workers[id.0];
            let (jobs, octets, _) = known.waiting[step as usize];
            let is_full = worker.is_usable
                && jobs > 0
                && (jobs as usize >= self.settings.most || !worker.has_room(step));
            let batch = self.nanos(id.0, view.chain, step, octets);
            is_full.then(|| known.busy_until.since(view.now) as f64 + 2.0 * batch + known.lag[step as usize])
        };
        view.of_class(Class::Accelerator).filter_map(waits).fold(f64::INFINITY, f64::min)
    }

    /// Nanoseconds that a packet needs from the time at which it should be back on: what is still to be done then, and what promises are worth.
    fn margin(&self, at: usize, step: Step) -> f64 {
        self.rest[step as usize] + SAFETY * self.workers[at].slip[step as usize]
    }

    /// Whether a worker is to be tried with this job because nothing recent is known of it.
    fn is_unknown(&self, at: usize, job: &Job, step: Step, now: Nanos) -> bool {
        let known = &self.workers[at];
        let cost = &known.costs[step as usize];
        let is_free = known.inside[0].0 == 0 && known.inside[1].0 == 0;
        let is_harmless = job.due == NEVER && job.sequence.is_none();
        is_free
            && is_harmless
            && (!cost.is_known() || now.since(cost.last_seen()) > self.settings.stale_after)
    }

    fn promise(&mut self, job: &Job, step: Step) -> &mut Promise {
        let place = job.place as usize;
        if self.promises.len() <= place {
            self.promises.resize(place + 1, [Promise::default(); 2]);
        }
        &mut self.promises[place][step as usize]
    }

    /// A job isn't with its worker any more.
    fn close(&mut self, job: &Job, step: Step) {
        let promise = self.promise(job, step);
        if !std::mem::replace(&mut promise.is_open, false) {
            return;
        }
        let Promise { worker, nanos, .. } = *promise;
        if let Some(known) = self.workers.get_mut(worker) {
            known.backlog = (known.backlog - nanos).max(0.0);
            let (jobs, octets) = &mut known.inside[step as usize];
            *jobs = jobs.saturating_sub(1);
            *octets = (*octets - f64::from(job.packet.octets)).max(0.0);
            if *jobs == 0 {
                *octets = 0.0;
            }
            if known.inside.iter().all(|&(jobs, _)| jobs == 0) {
                known.backlog = 0.0;
            }
        }
    }

    fn open(&mut self, at: usize, job: &Job, step: Step, view: &View<'_>, class: Class, leaves: Nanos) {
        // Handed over again: it isn't with the first one any more.
        self.close(job, step);
        let octets = f64::from(job.packet.octets);
        let nanos = self.nanos(at, view.chain, step, octets);
        *self.promise(job, step) = Promise { worker: at, nanos, back: leaves, is_open: true };
        let begins = view.now.plus(self.wait(at, step, view.rate) as u64);
        let known = &mut self.workers[at];
        known.inside[step as usize].0 += 1;
        known.inside[step as usize].1 += octets;
        known.backlog += nanos;
        if class == Class::Accelerator {
            let (jobs, waiting, first) = &mut known.waiting[step as usize];
            *first = if *jobs == 0 { begins } else { *first };
            (*jobs, *waiting) = (*jobs + 1, *waiting + octets);
        }
        if job.sequence.is_some() {
            self.flows.insert(job.packet.flow, leaves);
        }
    }

    /// The cheapest worker, which has the job from now on.
    fn choose(&mut self, job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId> {
        self.workers.resize(view.workers.len(), Known::default());
        self.started.get_or_insert(view.now);
        let may_help = step != Step::Decode || self.help.may(view.now);
        let mut best: Option<(f64, Nanos, usize, Class)> = None;
        for (at, worker) in view.workers.iter().enumerate().filter(|(_, worker)| worker.has_room(step)) {
            if worker.class == Class::Accelerator {
                self.settle(at, view.chain, view.now);
            }
            // Nothing is tried with those that have to be in time.
            if worker.class == Class::Cpu && !may_help && job.due == NEVER {
                continue;
            }
            if self.is_unknown(at, job, step, view.now) {
                best = Some((0.0, view.now, at, worker.class));
                break;
            }
            if let Some((price, leaves)) = self.price(at, worker.class, job, step, view)
                && best.is_none_or(|(least, ..)| price < least)
            {
                best = Some((price, leaves, at, worker.class));
            }
        }
        let (_, leaves, at, class) = best?;
        // Where there is too much to do, power is no reason to wait.
        if class == Class::Cpu
            && step == Step::Decode
            && leaves.since(view.now) as f64 > self.wait_for_room(step, view)
        {
            return None;
        }
        self.open(at, job, step, view, class, leaves);
        Some(WorkerId(at))
    }
}

impl Scheduler for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn place(&mut self, job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId> {
        let chosen = self.choose(job, step, view);
        if chosen.is_none() && step == Step::Decode {
            self.help.refused();
        }
        chosen
    }

    fn release(&mut self, worker: WorkerId, step: Step, pending: &Pending, view: &View<'_>) -> Release {
        let Some(known) = self.workers.get(worker.0) else { return Release::Go(view.now) };
        if view.worker(worker).is_none_or(|worker| worker.class == Class::Cpu) {
            return Release::Go(view.now);
        }
        let (_, octets, begins) = known.waiting[step as usize];
        let mut begins = if begins == NEVER { view.now } else { begins };
        if self.settings.heeds_deadlines && pending.due != NEVER {
            let nanos = self.nanos(worker.0, view.chain, step, octets) + known.lag[step as usize];
            let needs = nanos + self.margin(worker.0, step);
            // For what comes too late anyway no batch begins early: it would only make the next ones late, too.
            if view.now.max(known.busy_until).plus(nanos as u64) <= pending.due {
                begins = begins.min(Nanos(pending.due.0.saturating_sub(needs as u64)));
            }
        }
        Release::Go(begins.max(view.now))
    }

    fn worked(&mut self, record: &BatchRecord) {
        let is_over = self.started.is_some_and(|started| record.span.ended.since(started) > Nanos::SECOND);
        let Some(known) = self.workers.get_mut(record.worker.0) else { return };
        if self.settings.goes_on_learning || !is_over {
            let cost = &mut known.costs[record.step as usize];
            cost.learn(record.octets as f64, record.span.nanos() as f64, record.span.ended);
        }
        // What is inside and doesn't wait is being done from now on.
        let doing = |step: Step| {
            let octets = (known.inside[step as usize].1 - known.waiting[step as usize].1).max(0.0);
            if octets > 0.0 { known.costs[step as usize].predict(octets) } else { 0.0 }
        };
        let nanos = doing(Step::Decode) + doing(Step::Cipher);
        known.busy_until = record.span.ended.plus(nanos as u64);
    }

    fn came_back(&mut self, done: &Done, now: Nanos) {
        let Done { job, worker, step, spans } = *done;
        if step == Step::Decode {
            self.help.came_back(job.packet.octets);
        }
        let back = self.promise(&job, step).back;
        self.close(&job, step);
        if let Some(known) = self.workers.get_mut(worker.0) {
            let slip = &mut known.slip[step as usize];
            *slip += (now.since(back) as f64 - *slip) / 64.0;
            // From the begin of its work on, in C1 of both steps: all that wasn't work.
            let work: u64 = spans.iter().map(|span| span.nanos()).sum();
            let waited = now.since(spans[step as usize].began).saturating_sub(work);
            let lag = &mut known.lag[step as usize];
            *lag += (waited as f64 - *lag) / 32.0;
        }
    }

    fn left(&mut self, left: &Left) {
        if left.job.due == NEVER {
            return;
        }
        for (rest, span) in self.rest.iter_mut().zip(left.spans) {
            *rest += (left.at.since(span.ended) as f64 - *rest) / 64.0;
        }
    }

    fn failed(&mut self, worker: WorkerId) {
        let open = self.promises.iter_mut().flatten().filter(|promise| promise.worker == worker.0);
        open.for_each(|promise| promise.is_open = false);
        if let Some(known) = self.workers.get_mut(worker.0) {
            *known = Known { costs: known.costs, lag: known.lag, ..Known::default() };
        }
    }
}
