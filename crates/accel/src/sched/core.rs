//! The scheduler's core: the way of a packet from the receive ring to a worker, back, and out again in its order.
//!
//! It is one thread's, or one of a simulation: [`Core::turn`] does what there is to do and says when there may be more. Where something is full, packets stay where they
//! are and are tried again in the next turn (thesis §4.7), so none is lost; how many are inside is bounded, and beyond that none is received.
//!
//! A worker that gets on with nothing for longer than [`Settings::patience`] gets no more jobs until it tells something, or for twice that long, and twice as long again the next time; one that has died gets none. What it has is handed to another worker, once. Should the
//! first one bring it after all, that is known by the books, and is dropped. What its second worker doesn't bring back either is given up, and counted.

use super::packet::{Chain, FlowId, Packet, PacketTable, Step};
use super::reorder::{self, Window};
use super::{
    Class, Done, Job, Left, NEVER, Pending, Platform, Release, Report, Scheduler, Span, StepView, View,
    WorkerId, WorkerView,
};
use std::collections::{HashMap, VecDeque};
use tables::Nanos;

/// How a core is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What kinds of packets there are.
    pub table: PacketTable,
    /// Who decides how often.
    pub chain: Chain,
    /// Packets received at a time, and jobs pending for a worker's step.
    pub burst: usize,
    /// Packets inside, at most.
    pub most_inside: usize,
    /// Sequence numbers of a flow's window.
    pub window: usize,
    /// Flows whose order is kept, at most; of others it isn't, and they are counted.
    pub most_flows: usize,
    /// Nanoseconds for which a worker with jobs may tell nothing.
    pub patience: u64,
}

impl Settings {
    /// For so many workers, as in the thesis: bursts of 32. It doesn't give the window; 512 numbers give its shares of packets in order.
    pub fn thesis(chain: Chain) -> Self {
        Self {
            table: PacketTable::default(),
            chain,
            burst: 32,
            most_inside: 4096,
            window: 512,
            most_flows: 1024,
            patience: 2 * Nanos::SECOND,
        }
    }
}

/// A worker that stalls again and again is left alone for at most 64 times the patience.
const MOST_DOUBLINGS: u32 = 6;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets taken in.
    pub received: u64,
    /// Packets that left.
    pub sent: u64,
    /// Of these, those with a deadline.
    pub with_deadline: u64,
    /// Of these, those that left behind it.
    pub late: u64,
    /// Jobs handed over again, to another worker.
    pub handed_over_again: u64,
    /// Jobs that came back a second time.
    pub duplicates: u64,
    /// Packets that neither of two workers brought back.
    pub given_up: u64,
    /// Times that a worker was found to get on with nothing.
    pub stalled: u64,
    /// Packets of a kind that the table doesn't have: not taken.
    pub unknown_kind: u64,
    /// Packets whose order wasn't kept because there were too many flows.
    pub flows_too_many: u64,
}

/// Where packets come from.
pub trait Source {
    /// Adds packets, so many at most.
    fn receive(&mut self, most: usize, into: &mut Vec<Packet>);
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whether something was done, so that there may be more.
    pub worked: bool,
    /// When there is something to be done at the latest, without anything coming from outside.
    pub look_again: Nanos,
}

/// A packet inside.
#[derive(Debug, Clone, Copy)]
struct Inside {
    job: Job,
    /// What is to be done, or is being done.
    step: Step,
    /// With whom it is.
    with: Option<WorkerId>,
    workers: [WorkerId; 2],
    spans: [Span; 2],
    /// Whether it was handed over again.
    is_again: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: Vec<Job>,
    since: Nanos,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Core {
    settings: Settings,
    scheduler: Box<dyn Scheduler>,
    /// By place: what is inside.
    books: Vec<Option<Inside>>,
    free: Vec<u32>,
    /// Jobs that have no worker yet, oldest first, by step.
    unplaced: [VecDeque<Job>; 2],
    /// By worker and step: placed, but not yet in a ring.
    pending: Vec<[Waiting; 2]>,
    view: Vec<WorkerView>,
    /// By worker: when it told something last, or got a job while it had none; and until when it may wait for a batch to become full.
    heard: Vec<Nanos>,
    may_wait_until: Vec<Nanos>,
    /// By worker: how often it got on with nothing since it told something last, and when it gets jobs again.
    stalls: Vec<(u32, Nanos)>,
    flows: HashMap<FlowId, (u64, Window<Left>)>,
    rate: Rate,
    counters: Counters,
    number: u64,
    received: Vec<Packet>,
    reports: Vec<Report>,
}

impl Core {
    /// A core for workers of those classes.
    pub fn new(settings: Settings, scheduler: Box<dyn Scheduler>, workers: &[Class]) -> Self {
        let most_inside = settings.most_inside.max(settings.burst);
        let step = StepView { room: settings.burst, pending: 0, inside: 0 };
        let view = |&class: &Class| WorkerView { class, is_usable: true, steps: [step; 2] };
        Self {
            books: vec![None; most_inside],
            free: (0..most_inside as u32).rev().collect(),
            unplaced: Default::default(),
            pending: workers.iter().map(|_| Default::default()).collect(),
            view: workers.iter().map(view).collect(),
            heard: vec![Nanos(0); workers.len()],
            may_wait_until: vec![Nanos(0); workers.len()],
            stalls: vec![(0, Nanos(0)); workers.len()],
            flows: HashMap::new(),
            rate: Rate::default(),
            counters: Counters::default(),
            number: 0,
            received: Vec::new(),
            reports: Vec::new(),
            settings,
            scheduler,
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What became of packets whose order counts.
    pub fn order(&self) -> reorder::Counters {
        self.flows
            .values()
            .map(|(_, window)| window.counters())
            .fold(reorder::Counters::default(), reorder::Counters::plus)
    }

    /// Packets inside.
    pub fn inside(&self) -> usize {
        self.books.len() - self.free.len()
    }

    /// Ends it.
    pub fn into_scheduler(self) -> Box<dyn Scheduler> {
        self.scheduler
    }

    /// Does all that there is to do.
    pub fn turn(
        &mut self,
        now: Nanos,
        platform: &mut dyn Platform,
        source: &mut dyn Source,
        leave: &mut dyn FnMut(&Left),
    ) -> Turn {
        let mut worked = self.hear(now, platform, leave);
        worked |= self.watch(now, platform, leave);
        worked |= self.place_all(now, Step::Cipher, platform);
        worked |= self.place_all(now, Step::Decode, platform);
        while self.unplaced[0].is_empty() && self.receive(now, source) {
            worked = true;
            self.place_all(now, Step::Decode, platform);
        }
        Turn { worked, look_again: self.release(now, platform).min(self.next_watch(now)) }
    }

    /// What came back.
    fn hear(&mut self, now: Nanos, platform: &mut dyn Platform, leave: &mut dyn FnMut(&Left)) -> bool {
        let mut reports = std::mem::take(&mut self.reports);
        platform.dequeue(&mut reports);
        let worked = !reports.is_empty();
        for report in reports.drain(..) {
            match report {
                Report::Batch(record) => {
                    self.heard_of(record.worker, now);
                    self.scheduler.worked(&record);
                }
                Report::Done(done) => {
                    self.heard_of(done.worker, now);
                    self.come_back(now, &done, leave);
                }
            }
        }
        self.reports = reports;
        worked
    }

    /// Who tells something, gets on.
    fn heard_of(&mut self, worker: WorkerId, now: Nanos) {
        if let (Some(heard), Some(stalls)) = (self.heard.get_mut(worker.0), self.stalls.get_mut(worker.0)) {
            (*heard, *stalls) = (now, (0, now));
        }
    }

    fn come_back(&mut self, now: Nanos, done: &Done, leave: &mut dyn FnMut(&Left)) {
        let &Done { job, worker, step, .. } = done;
        let entry = self.books.get_mut(job.place as usize).and_then(Option::as_mut);
        let Some(inside) = entry.filter(|inside| inside.job.number == job.number && inside.step == step)
        else {
            self.counters.duplicates += 1;
            return;
        };
        // With nobody is what was taken from a worker that has brought it after all, before another had room for it.
        if let Some(with) = inside.with.take() {
            if with != worker {
                // The first one was faster after all; what the second brings will be a duplicate.
                self.forget_pending(with, step, job.number);
            }
            let view = &mut self.view[with.0].steps[step as usize];
            view.inside = view.inside.saturating_sub(1);
        }
        self.go_on(now, done, leave);
    }

    /// A job that a worker has got twice needs not go into its ring any more.
    fn forget_pending(&mut self, worker: WorkerId, step: Step, number: u64) {
        let waiting = &mut self.pending[worker.0][step as usize].jobs;
        let before = waiting.len();
        waiting.retain(|job| job.number != number);
        let view = &mut self.view[worker.0].steps[step as usize];
        view.pending = waiting.len();
        // It was counted as pending, not as inside.
        view.inside += before - waiting.len();
        view.room = self.settings.burst.saturating_sub(waiting.len());
    }

    /// To the next step, or out.
    fn go_on(&mut self, now: Nanos, done: &Done, leave: &mut dyn FnMut(&Left)) {
        let &Done { job, worker, step, spans } = done;
        self.scheduler.came_back(done, now);
        let Some(inside) = self.books[job.place as usize].as_mut() else { return };
        match (self.settings.chain, step) {
            (Chain::Once, _) => (inside.workers, inside.spans) = ([worker; 2], spans),
            (Chain::EachStep, step) => {
                inside.workers[step as usize] = worker;
                inside.spans[step as usize] = spans[step as usize];
            }
        }
        if (self.settings.chain, step) == (Chain::EachStep, Step::Decode) {
            (inside.step, inside.is_again) = (Step::Cipher, false);
            self.unplaced[Step::Cipher as usize].push_back(job);
            return;
        }
        let left = Left { job, workers: inside.workers, spans: inside.spans, at: now, in_order: true };
        self.strike(job.place);
        self.order_and_send(now, left, leave);
    }

    /// Out of the books.
    fn strike(&mut self, place: u32) {
        self.books[place as usize] = None;
        self.free.push(place);
    }

    /// Through the flow's window, if it has one.
    fn order_and_send(&mut self, now: Nanos, left: Left, leave: &mut dyn FnMut(&Left)) {
        let Self { flows, scheduler, counters, .. } = self;
        let mut go = exit(now, scheduler, counters, leave);
        let window = flows.get_mut(&left.job.packet.flow);
        match (left.job.sequence, window) {
            (Some(sequence), Some((_, window))) => window.take(sequence, left, &mut go),
            _ => go(left, true),
        }
    }

    /// Workers that don't get on.
    fn watch(&mut self, now: Nanos, platform: &dyn Platform, leave: &mut dyn FnMut(&Left)) -> bool {
        let mut worked = false;
        for at in 0..self.view.len() {
            let id = WorkerId(at);
            let is_alive = platform.is_alive(id);
            let steps = &self.view[at].steps;
            let is_gone = !is_alive && steps.iter().any(|step| step.inside + step.pending > 0);
            if steps.iter().all(|step| step.inside == 0) {
                self.heard[at] = now;
            }
            if is_gone || now >= self.has_until(at) {
                worked = true;
                let times = (self.stalls[at].0 + 1).min(MOST_DOUBLINGS);
                self.stalls[at] = (times, now.plus(self.settings.patience << times));
                self.take_away(now, id, leave);
            }
            self.view[at].is_usable = is_alive && now >= self.stalls[at].1;
        }
        worked
    }

    /// All that a worker has goes to others, or is given up if it had been handed over again before.
    fn take_away(&mut self, now: Nanos, worker: WorkerId, leave: &mut dyn FnMut(&Left)) {
        self.counters.stalled += 1;
        self.scheduler.failed(worker);
        for (step, view) in Step::ALL.into_iter().zip(&mut self.view[worker.0].steps) {
            self.pending[worker.0][step as usize].jobs.clear();
            *view = StepView { room: self.settings.burst, pending: 0, inside: 0 };
        }
        let of_worker = |inside: &&mut Inside| inside.with == Some(worker);
        let mut jobs: Vec<(Job, Step, bool)> = Vec::new();
        for inside in self.books.iter_mut().flatten().filter(of_worker) {
            inside.with = None;
            jobs.push((inside.job, inside.step, std::mem::replace(&mut inside.is_again, true)));
        }
        jobs.sort_unstable_by_key(|(job, ..)| std::cmp::Reverse(job.number));
        for (job, step, was_again) in jobs {
            if was_again {
                self.give_up(now, job, leave);
            } else {
                self.counters.handed_over_again += 1;
                self.unplaced[step as usize].push_front(job);
            }
        }
    }

    /// Nobody brings that packet back: nobody waits for it either.
    fn give_up(&mut self, now: Nanos, job: Job, leave: &mut dyn FnMut(&Left)) {
        self.counters.given_up += 1;
        self.strike(job.place);
        let Self { flows, scheduler, counters, .. } = self;
        if let (Some(sequence), Some((_, window))) = (job.sequence, flows.get_mut(&job.packet.flow)) {
            window.give_up(sequence, &mut exit(now, scheduler, counters, leave));
        }
    }

    /// When a worker that has jobs has told nothing for too long.
    fn has_until(&self, at: usize) -> Nanos {
        if self.view[at].steps.iter().all(|step| step.inside == 0) {
            return NEVER;
        }
        self.heard[at].max(self.may_wait_until[at]).plus(self.settings.patience)
    }

    fn next_watch(&self, now: Nanos) -> Nanos {
        // Not those that have died.
        let back = self.stalls.iter().map(|&(_, back)| back).filter(|&back| back > now);
        (0..self.view.len()).map(|at| self.has_until(at)).chain(back).min().unwrap_or(NEVER)
    }

    /// A burst from outside, as far as there is room inside.
    fn receive(&mut self, now: Nanos, source: &mut dyn Source) -> bool {
        let most = self.settings.burst.min(self.free.len());
        if most == 0 {
            return false;
        }
        let mut received = std::mem::take(&mut self.received);
        source.receive(most, &mut received);
        self.rate.count(now, received.len());
        let worked = !received.is_empty();
        for packet in received.drain(..) {
            self.enter(packet);
        }
        self.received = received;
        worked
    }

    fn enter(&mut self, packet: Packet) {
        let Some(&kind) = self.settings.table.kind(packet.kind) else {
            self.counters.unknown_kind += 1;
            return;
        };
        let Some(place) = self.free.pop() else { return };
        self.counters.received += 1;
        let sequence = if kind.ordered { self.number_in_flow(packet.flow) } else { None };
        let due = kind.within.map_or(NEVER, |within| packet.arrived.plus(within));
        let job = Job { place, number: self.number, packet, sequence, due };
        self.number += 1;
        let nobody = [WorkerId(usize::MAX); 2];
        self.books[place as usize] = Some(Inside {
            job,
            step: Step::Decode,
            with: None,
            workers: nobody,
            spans: [Span::default(); 2],
            is_again: false,
        });
        self.unplaced[Step::Decode as usize].push_back(job);
    }

    fn number_in_flow(&mut self, flow: FlowId) -> Option<u64> {
        let is_full = self.flows.len() >= self.settings.most_flows;
        if is_full && !self.flows.contains_key(&flow) {
            self.counters.flows_too_many += 1;
            return None;
        }
        let window = self.settings.window;
        let (next, _) = self.flows.entry(flow).or_insert_with(|| (0, Window::new(window)));
        *next += 1;
        Some(*next - 1)
    }

    /// Places jobs of a step, oldest first, until one finds no worker.
    fn place_all(&mut self, now: Nanos, step: Step, platform: &mut dyn Platform) -> bool {
        let mut worked = false;
        while let Some(&job) = self.unplaced[step as usize].front() {
            let entry = self.books[job.place as usize].as_ref();
            let waits =
                |inside: &Inside| (inside.job.number, inside.step, inside.with) == (job.number, step, None);
            if !entry.is_some_and(waits) {
                // It was brought after all.
                self.unplaced[step as usize].pop_front();
                continue;
            }
            let view =
                View { now, chain: self.settings.chain, rate: self.rate.now(now), workers: &self.view };
            let placed = self.scheduler.place(&job, step, &view);
            let Some(worker) = placed.filter(|&worker| view.has_room(worker, step)) else { break };
            self.unplaced[step as usize].pop_front();
            worked = true;
            if let Some(inside) = &mut self.books[job.place as usize] {
                inside.with = Some(worker);
            }
            let pending = &mut self.pending[worker.0][step as usize];
            if pending.jobs.is_empty() {
                pending.since = now;
            }
            pending.jobs.push(job);
            let view = &mut self.view[worker.0].steps[step as usize];
            view.pending += 1;
            view.room -= 1;
            if view.room == 0 {
                self.release_one(now, worker, step, platform);
            }
        }
        worked
    }

    /// Jobs into rings, as the scheduler says.
    fn release(&mut self, now: Nanos, platform: &mut dyn Platform) -> Nanos {
        let mut look_again = NEVER;
        for at in 0..self.pending.len() {
            for step in Step::ALL {
                if !self.pending[at][step as usize].jobs.is_empty() {
                    look_again = look_again.min(self.release_one(now, WorkerId(at), step, platform));
                }
            }
        }
        look_again
    }

    fn release_one(
        &mut self,
        now: Nanos,
        worker: WorkerId,
        step: Step,
        platform: &mut dyn Platform,
    ) -> Nanos {
        let pending = &self.pending[worker.0][step as usize];
        let due = pending.jobs.iter().map(|job| job.due).min().unwrap_or(NEVER);
        let pending = Pending { jobs: pending.jobs.len(), since: pending.since, due };
        let view = View { now, chain: self.settings.chain, rate: self.rate.now(now), workers: &self.view };
        match self.scheduler.release(worker, step, &pending, &view) {
            Release::Wait(until) if until > now => until,
            Release::Wait(_) => self.hand_over(worker, step, now, platform),
            Release::Go(launch_by) => self.hand_over(worker, step, launch_by, platform),
        }
    }

    /// What the ring doesn't take stays; whoever empties it tells something, and then is the next time to try.
    fn hand_over(
        &mut self,
        worker: WorkerId,
        step: Step,
        launch_by: Nanos,
        platform: &mut dyn Platform,
    ) -> Nanos {
        let waiting = &mut self.pending[worker.0][step as usize].jobs;
        let before = waiting.len();
        platform.enqueue(worker, step, waiting, launch_by);
        let view = &mut self.view[worker.0].steps[step as usize];
        view.inside += before - waiting.len();
        view.pending = waiting.len();
        view.room = self.settings.burst.saturating_sub(waiting.len());
        let may_wait = &mut self.may_wait_until[worker.0];
        *may_wait = launch_by.max(*may_wait);
        NEVER
    }

    /// Lets go whatever waits for others in windows: at the end, when all is done.
    pub fn drain(&mut self, now: Nanos, leave: &mut dyn FnMut(&Left)) {
        let Self { flows, scheduler, counters, .. } = self;
        let mut go = exit(now, scheduler, counters, leave);
        flows.values_mut().for_each(|(_, window)| window.drain(&mut go));
    }
}

/// How packets leave, with whether they are in order: all are counted, and the scheduler learns of them.
fn exit(
    now: Nanos,
    scheduler: &mut Box<dyn Scheduler>,
    counters: &mut Counters,
    leave: &mut dyn FnMut(&Left),
) -> impl FnMut(Left, bool) {
    move |mut left, in_order| {
        (left.at, left.in_order) = (now, in_order);
        counters.sent += 1;
        if left.job.due != NEVER {
            counters.with_deadline += 1;
            counters.late += u64::from(left.is_late());
        }
        scheduler.left(&left);
        leave(&left);
    }
}

/// Packets per second of late: a tenth of a second at a time, half of it new.
#[derive(Debug, Default)]
struct Rate {
    since: Nanos,
    count: u64,
    rate: f64,
    /// Whether one span is over.
    is_known: bool,
}

impl Rate {
    const SPAN: u64 = Nanos::SECOND / 10;

    fn count(&mut self, now: Nanos, packets: usize) {
        self.now(now);
        self.count += packets as u64;
    }

    fn now(&mut self, now: Nanos) -> f64 {
        let gone = now.since(self.since);
        if gone >= Self::SPAN {
            let of_span = self.count as f64 * Nanos::SECOND as f64 / gone as f64;
            self.rate = if self.is_known { f64::midpoint(self.rate, of_span) } else { of_span };
            (self.since, self.count, self.is_known) = (now, 0, true);
        } else if !self.is_known && gone > 0 {
            self.rate = self.count as f64 * Nanos::SECOND as f64 / gone.max(Self::SPAN / 10) as f64;
        }
        self.rate
    }
}
