//! Two devices as one: what the first one can't do, or does not end, the second one does.
//!
//! The first is what may fail: a GPU, a card. The second is the processor. Whatever happens to the first, each batch that was taken comes back exactly
//! once, and those of one [`Caller`] in the order in which they were handed in.
//!
//! - A batch that the first refuses for good (a task that it hasn't got, a batch too large for its memory) goes to the second. If the first is just full,
//!   so is the pair: whoever submits is to slow down, or to choose another device.
//! - A batch that comes back failed goes to the second. If the failure is the device's and not the batch's, the device is given up: all that it has in flight
//!   comes back at once and goes to the second too.
//! - A device that doesn't answer for longer than its *patience* is given up in the same way.
//! - A device that was given up is tried again after a while, for as long as it takes.
//!
//! That something is redone is safe because no task changes anything but its output ([`crate::task`]).

use crate::copies::TableId;
use crate::device::{Completion, Device, Failure, Limits, Refusal, Rejected};
use crate::task::{Batch, Caller, Task};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use tables::Nanos;
use tables::image::{Changes, Image};

/// How long one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Nanoseconds after which a device that hasn't ended a batch is given up.
    pub patience: u64,
    /// Nanoseconds after which a device that was given up is tried again.
    pub retry_after: u64,
}

impl Default for Settings {
    /// A tenth of a second, which no batch takes, and a second.
    fn default() -> Self {
        Self { patience: Nanos::SECOND / 10, retry_after: Nanos::SECOND }
    }
}

/// What has become of batches, and of the first device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Batches that the first device has done.
    pub first: u64,
    /// Batches that the second device has done.
    pub second: u64,
    /// Of these, those that the first device had taken before.
    pub redone: u64,
    /// Times that the first device was given up.
    pub given_up: u64,
    /// Times that it came back.
    pub revived: u64,
    /// Batches that a device has given back though it hadn't them. They were dropped.
    pub strays: u64,
}

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Second,
    /// It waits for room in the second device.
    Between,
}

/// What is known of a batch in flight.
#[derive(Debug, Clone, Copy)]
struct Known {
    ticket: u64,
    submitted: Nanos,
    place: Place,
    /// Whether the first device had it.
    again: bool,
    /// Its caller, and its number among the caller's.
    turn: Option<(Caller, u64)>,
}

/// What a caller has in flight.
#[derive(Debug, Default)]
struct Line {
    /// The number of the next batch that is handed in.
    next: u64,
    /// The number of the next batch that is given back.
    due: u64,
    /// What came back before its turn.
    early: BTreeMap<u64, Completion>,
}

/// The pair.
#[derive(Debug)]
pub struct Fallback<A, B> {
    name: String,
    first: A,
    second: B,
    settings: Settings,
    /// Batches in flight.
    most: usize,
    /// What the first device has failed with, and when it was last tried.
    failed: Option<(Failure, Nanos)>,
    /// By a number of our own, which batches carry as their ticket while they are out.
    known: BTreeMap<u64, Known>,
    next: u64,
    between: VecDeque<Batch>,
    lines: HashMap<Caller, Line>,
    ready: Vec<Completion>,
    /// Tables that the first device has no copy of, or none that is up to date.
    without: BTreeSet<TableId>,
    counts: Counts,
    scratch: Vec<Completion>,
}

impl<A: Device, B: Device> Fallback<A, B> {
    /// `first` as long as it works, and else `second`.
    pub fn new(first: A, second: B, settings: Settings) -> Self {
        Self {
            name: format!("{} or {}", first.name(), second.name()),
            most: first.limits().in_flight + second.limits().in_flight,
            first,
            second,
            settings,
            failed: None,
            known: BTreeMap::new(),
            next: 0,
            between: VecDeque::new(),
            lines: HashMap::new(),
            ready: Vec::new(),
            without: BTreeSet::new(),
            counts: Counts::default(),
            scratch: Vec::new(),
        }
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the first device has failed with, while it is given up.
    pub fn failure(&self) -> Option<&Failure> {
        self.failed.as_ref().map(|(failure, _)| failure)
    }

    /// The first device.
    pub fn first(&mut self) -> &mut A {
        &mut self.first
    }

    fn give_up(&mut self, why: Failure, now: Nanos) {
        if self.failed.is_none() {
            self.counts.given_up += 1;
        }
        self.failed = Some((why, now));
        let mut back = std::mem::take(&mut self.scratch);
        self.first.abandon(now, &mut back);
        back.drain(..).for_each(|completion| self.back_from_first(completion));
        self.scratch = back;
    }

    /// Takes what the first device gives back; what it hasn't done waits for the second one.
    fn back_from_first(&mut self, completion: Completion) {
        let number = completion.batch.ticket;
        let known = self.known.get_mut(&number).filter(|known| known.place == Place::First);
        let Some(known) = known else {
            self.counts.strays += 1;
            return;
        };
        if completion.outcome.is_ok() {
            self.counts.first += 1;
            self.settle(completion);
        } else {
            known.place = Place::Between;
            known.again = true;
            self.between.push_back(completion.batch);
        }
    }

    fn back_from_second(&mut self, completion: Completion) {
        let known = self.known.get(&completion.batch.ticket).filter(|known| known.place == Place::Second);
        let Some(known) = known else {
            self.counts.strays += 1;
            return;
        };
        self.counts.second += 1;
        self.counts.redone += u64::from(known.again);
        self.settle(completion);
    }

    /// A batch is back for good: it is given back when its turn comes.
    fn settle(&mut self, mut completion: Completion) {
        let Some(known) = self.known.remove(&completion.batch.ticket) else { return };
        completion.batch.ticket = known.ticket;
        completion.times.submitted = known.submitted;
        let Some((caller, turn)) = known.turn else {
            self.ready.push(completion);
            return;
        };
        let line = self.lines.entry(caller).or_default();
        line.early.insert(turn, completion);
        while let Some(completion) = line.early.remove(&line.due) {
            line.due += 1;
            self.ready.push(completion);
        }
        if line.due == line.next {
            self.lines.remove(&caller);
        }
    }

    /// Gives what waits to the second device, as far as that has room.
    fn move_on(&mut self, now: Nanos) {
        while let Some(batch) = self.between.pop_front() {
            let number = batch.ticket;
            match self.second.submit(batch, now) {
                Ok(()) => {
                    if let Some(known) = self.known.get_mut(&number) {
                        known.place = Place::Second;
                    }
                }
                Err(Rejected { batch, why }) if why.is_for_now() => {
                    self.between.push_front(batch);
                    return;
                }
                Err(Rejected { batch, why }) => {
                    // Neither has done it. That is told as the batch's outcome.
                    let failure = match why {
                        Refusal::Failed(failure) | Refusal::Broken(failure) => failure,
                        other => Failure::Call { call: "submit", why: other.to_string() },
                    };
                    self.settle(Completion::failed(batch, failure, now, now));
                }
            }
        }
    }

    /// Whether a batch may go to the first device now. If that is to be tried again, it is.
    fn first_is_well(&mut self, now: Nanos) -> bool {
        let Some((failure, since)) = &mut self.failed else { return true };
        if now.since(*since) < self.settings.retry_after {
            return false;
        }
        match self.first.revive(now) {
            Ok(()) => {
                self.counts.revived += 1;
                self.failed = None;
                true
            }
            Err(why) => {
                (*failure, *since) = (why, now);
                false
            }
        }
    }
}

/// Whether a failure says that the device is no good any more, and not only for this batch.
fn is_for_good(failure: &Failure) -> bool {
    match failure {
        Failure::Absent { .. } | Failure::Lost(_) | Failure::Abandoned | Failure::Call { .. } => true,
        Failure::OutOfMemory { .. }
        | Failure::Compile { .. }
        | Failure::Panicked
        | Failure::Status(_)
        | Failure::NoTable(_)
        | Failure::Missed { .. } => false,
    }
}

impl<A: Device, B: Device> Device for Fallback<A, B> {
    fn name(&self) -> &str {
        &self.name
    }

    /// What either takes. As many are in flight as both take together; those count that wait for their turn.
    fn limits(&self) -> Limits {
        let (mut both, second) = (self.first.limits(), self.second.limits());
        both.kinds.extend(second.kinds);
        both.kinds.sort_unstable();
        both.kinds.dedup();
        both.in_flight += second.in_flight;
        both.items = both.items.max(second.items);
        both.input = both.input.max(second.input);
        both.output = both.output.max(second.output);
        both
    }

    fn accepts(&self, batch: &Batch) -> Result<(), Refusal> {
        if self.failed.is_none() && self.first.accepts(batch).is_ok() {
            return Ok(());
        }
        self.second.accepts(batch)
    }

    fn submit(&mut self, mut batch: Batch, now: Nanos) -> Result<(), Rejected> {
        if let Err(why) = self.accepts(&batch) {
            return Err(Rejected { batch, why });
        }
        if self.in_flight() >= self.most {
            return Err(Rejected { batch, why: Refusal::Full });
        }
        let (number, ticket, caller) = (self.next, batch.ticket, batch.caller);
        batch.ticket = number;
        let mut place = Place::First;
        let knows = !matches!(batch.task(), Task::Lookup(lookup) if self.without.contains(&lookup.table));
        let mut sent = if knows && self.first_is_well(now) {
            self.first.submit(batch, now)
        } else {
            Err(Rejected { batch, why: Refusal::Failed(Failure::Abandoned) })
        };
        if let Err(Rejected { batch, why }) = sent {
            sent = if why.is_for_now() {
                Err(Rejected { batch, why })
            } else {
                if let Refusal::Broken(failure) = why
                    && is_for_good(&failure)
                {
                    self.give_up(failure, now);
                }
                // Who came earlier comes first.
                self.move_on(now);
                place = Place::Second;
                if self.between.is_empty() {
                    self.second.submit(batch, now)
                } else {
                    Err(Rejected { batch, why: Refusal::Full })
                }
            };
        }
        if let Err(mut rejected) = sent {
            rejected.batch.ticket = ticket;
            return Err(rejected);
        }
        self.next += 1;
        let turn = caller.map(|caller| {
            let line = self.lines.entry(caller).or_default();
            line.next += 1;
            (caller, line.next - 1)
        });
        self.known.insert(number, Known { ticket, submitted: now, place, again: false, turn });
        Ok(())
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let mut back = std::mem::take(&mut self.scratch);
        self.first.poll(now, &mut back);
        let mut failure = None;
        for completion in back.drain(..) {
            if let Err(why) = &completion.outcome
                && is_for_good(why)
            {
                failure = Some(why.clone());
            }
            self.back_from_first(completion);
        }
        let oldest = self.known.values().find(|known| known.place == Place::First);
        if failure.is_none()
            && oldest.is_some_and(|oldest| now.since(oldest.submitted) > self.settings.patience)
        {
            failure = Some(Failure::Abandoned);
        }
        self.scratch = back;
        if let Some(failure) = failure {
            self.give_up(failure, now);
        }
        self.move_on(now);
        let mut back = std::mem::take(&mut self.scratch);
        self.second.poll(now, &mut back);
        back.drain(..).for_each(|completion| self.back_from_second(completion));
        self.scratch = back;
        self.move_on(now);
        let found = self.ready.len();
        ended.append(&mut self.ready);
        found
    }

    fn in_flight(&self) -> usize {
        self.known.len() + self.ready.len() + self.lines.values().map(|line| line.early.len()).sum::<usize>()
    }

    /// Gives both up. What they haven't done comes back as failed, in its order.
    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.give_up(Failure::Abandoned, now);
        let mut back = std::mem::take(&mut self.scratch);
        self.second.abandon(now, &mut back);
        back.drain(..).for_each(|completion| self.back_from_second(completion));
        self.scratch = back;
        for batch in std::mem::take(&mut self.between) {
            self.settle(Completion::failed(batch, Failure::Abandoned, now, now));
        }
        ended.append(&mut self.ready);
    }

    fn revive(&mut self, now: Nanos) -> Result<(), Failure> {
        self.second.revive(now)?;
        self.failed = self.failed.take().map(|(failure, _)| (failure, Nanos(0)));
        self.first_is_well(now);
        Ok(())
    }

    /// Both follow. What the first one can't keep, its look-ups are for the second one; only what that says counts.
    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.without.remove(&table);
        if self.first.follow(table, image, changes).is_err() {
            self.without.insert(table);
        }
        self.second.follow(table, image, changes)
    }
}
