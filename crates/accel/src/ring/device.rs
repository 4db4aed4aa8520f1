//! A ring as a [`Device`], whatever serves it.

use super::behind::Behind;
use super::layout::DONE;
use super::{Host, Order, Shape, data_from, encode};
use crate::copies::TableId;
use crate::device::{Completion, Device, Failure, Limits, Refusal, Rejected, Times, Unit};
use crate::task::{Batch, Task};
use std::collections::VecDeque;
use tables::Nanos;
use tables::image::{Changes, Image};

/// Nanoseconds after which one asks whether there is still somebody who serves: longer than a batch takes.
const SUSPICIOUS: u64 = 2_000_000;

/// A batch in a slot.
#[derive(Debug)]
struct Out {
    slot: usize,
    batch: Batch,
    submitted: Nanos,
    /// Of which version its table's copy was then.
    version: Option<u64>,
}

/// Whether the other side is there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Serving,
    /// It was told to go, or has gone, and is to come back.
    Lent,
    Failed(Failure),
}

/// The device.
#[derive(Debug)]
pub struct RingDevice<B: Behind> {
    host: Host<B::Memory>,
    limits: Limits,
    /// Slots without a batch. The one that was free longest is used next, so that neighbours in time are in slots that different
    /// parts of the device serve.
    free: VecDeque<usize>,
    out: Vec<Out>,
    state: State,
    behind: B,
}

impl<B: Behind> RingDevice<B> {
    /// A ring of that shape, served by `behind`, for batches of at most so many items.
    pub fn start(behind: B, shape: Shape, items: usize) -> Result<Self, Failure> {
        let mut ring = Self::prepare(behind, shape, items)?;
        ring.take_back()?;
        Ok(ring)
    }

    /// The same as if it were lent: nobody serves it until it is [taken back](Self::take_back).
    pub fn prepare(mut behind: B, shape: Shape, items: usize) -> Result<Self, Failure> {
        let memory = behind.memory(shape.words())?;
        let short = Failure::OutOfMemory { octets: shape.words() * 8, what: "the ring" };
        let host = Host::new(memory, shape).ok_or(short)?;
        let limits = Limits {
            kinds: behind.kinds(),
            in_flight: shape.slots(),
            items,
            input: shape.input(),
            output: shape.output(),
        };
        let free = (0..shape.slots()).collect();
        Ok(Self { host, limits, free, out: Vec::new(), state: State::Lent, behind })
    }

    /// Has the other side go, so that others can use what it runs on. Batches may still be submitted, as many as there are slots; they wait.
    pub fn lend(&mut self) {
        if self.state == State::Serving {
            self.state = State::Lent;
            self.host.command(false);
        }
    }

    /// Whether the other side has gone after [`lend`](Self::lend).
    pub fn is_lent(&mut self) -> Result<bool, Failure> {
        Ok(self.state == State::Lent && self.behind.has_gone()?)
    }

    /// Has the other side come back. If it has not gone yet, it says so by `false`, and is to be tried again.
    pub fn take_back(&mut self) -> Result<bool, Failure> {
        match &self.state {
            State::Serving => Ok(true),
            State::Failed(failure) => Err(failure.clone()),
            State::Lent if !self.behind.has_gone()? => Ok(false),
            State::Lent => {
                self.host.command(true);
                self.behind.start(self.host.memory())?;
                self.state = State::Serving;
                Ok(true)
            }
        }
    }

    /// What serves it.
    pub fn behind(&mut self) -> &mut B {
        &mut self.behind
    }
}

impl<B: Behind> Device for RingDevice<B> {
    fn name(&self) -> &str {
        self.behind.name()
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        if let Err(why) = self.accepts(&batch) {
            return Err(Rejected { batch, why });
        }
        if let State::Failed(failure) = &self.state {
            return Err(Rejected { batch, why: Refusal::Failed(failure.clone()) });
        }
        // Between items and data there may be a gap.
        let (items, data) = (batch.items().len(), batch.data().len());
        if !self.host.fits(items, data) {
            let given = data_from(items) + data;
            let why = Refusal::TooLarge { given, most: self.limits.input, unit: Unit::InputOctets };
            return Err(Rejected { batch, why });
        }
        let Some(task) = encode(batch.task()) else {
            let why = Refusal::Unsupported(batch.task().kind());
            return Err(Rejected { batch, why });
        };
        let table = match batch.task() {
            Task::Lookup(lookup) => match self.behind.table(lookup.table) {
                Some(table) => table,
                None => return Err(Rejected { batch, why: Refusal::NoTable }),
            },
            _ => 0,
        };
        let Some(slot) = self.free.pop_front() else {
            return Err(Rejected { batch, why: Refusal::Full });
        };
        let order = Order {
            task,
            items: batch.len() as u64,
            table,
            octets: batch.items(),
            data: batch.data(),
            output: batch.output().len(),
        };
        if !self.host.ring(slot, order) {
            // A free slot is idle, and the batch fits.
            let why = Refusal::Broken(Failure::Lost("a slot that is free is in use".into()));
            return Err(Rejected { batch, why });
        }
        let version = self.behind.version(batch.task());
        self.out.push(Out { slot, batch, submitted: now, version });
        Ok(())
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let before = ended.len();
        self.behind.look();
        let (host, free, behind) = (&self.host, &mut self.free, &self.behind);
        for mut out in self.out.extract_if(.., |out| host.is_idle(out.slot)) {
            let Some(done) = host.fetch(out.slot, out.batch.parts().2) else { continue };
            free.push_back(out.slot);
            let outcome = if done.status == DONE as u64 { Ok(()) } else { Err(Failure::Status(done.status)) };
            // The other side's clock isn't ours: what it tells is how long it worked.
            let started = Nanos(now.0.saturating_sub(done.worked)).max(out.submitted);
            let times = Times { submitted: out.submitted, started, ended: now };
            let steady = behind.is_steady(out.batch.task(), out.version);
            ended.push(Completion { batch: out.batch, outcome, times, steady });
        }
        // Where nothing comes back, it may be because there is nobody any more. To ask costs more than to look.
        let oldest = self.out.first().map(|out| out.submitted);
        if self.state == State::Serving && oldest.is_some_and(|oldest| now.since(oldest) > SUSPICIOUS) {
            let failure = match self.behind.has_gone() {
                Ok(false) => return ended.len() - before,
                Ok(true) => Failure::Lost("what serves the ring has gone by itself".into()),
                Err(failure) => failure,
            };
            ended.extend(
                self.out
                    .drain(..)
                    .map(|out| Completion::failed(out.batch, failure.clone(), out.submitted, now)),
            );
            self.state = State::Failed(failure);
        }
        ended.len() - before
    }

    fn in_flight(&self) -> usize {
        self.out.len()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.host.command(false);
        self.poll(now, ended);
        ended.extend(
            self.out
                .drain(..)
                .map(|out| Completion::failed(out.batch, Failure::Abandoned, out.submitted, now)),
        );
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Failed(Failure::Abandoned);
        }
    }

    /// Starts again with an empty ring, once the other side has gone. As long as it hasn't, it may still write, so it isn't to be told anything new.
    fn revive(&mut self, _now: Nanos) -> Result<(), Failure> {
        if !matches!(self.state, State::Failed(_)) {
            return Ok(());
        }
        self.host.command(false);
        if !self.behind.has_gone()? {
            return Err(Failure::Abandoned);
        }
        self.host.forget();
        self.free = (0..self.host.shape().slots()).collect();
        self.host.command(true);
        self.behind.start(self.host.memory())?;
        self.state = State::Serving;
        Ok(())
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.behind.follow(table, image, changes)
    }
}

impl<B: Behind> Drop for RingDevice<B> {
    /// Whoever serves the ring is told to go. The memory is shared with it, so nothing has to be waited for.
    fn drop(&mut self) {
        self.host.command(false);
    }
}
