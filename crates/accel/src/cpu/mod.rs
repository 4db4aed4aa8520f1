//! The processor as a device: in the caller's thread ([`Inline`]), or in threads of its own ([`Workers`]).

mod execute;
mod workers;

pub use execute::Executor;
pub use workers::{Settings, Workers};

use crate::copies::{OnHost, TableId};
use crate::device::{Clock, Completion, Device, Failure, Limits, Refusal, Rejected, Times};
use crate::task::{Batch, MOST_OCTETS};
use ran::simd::Processor;
use std::collections::VecDeque;
use tables::Nanos;
use tables::image::{Changes, Image};

/// As much as a batch may be, and so many of them.
fn limits(in_flight: usize) -> Limits {
    Limits {
        kinds: Executor::KINDS.to_vec(),
        in_flight,
        items: u32::MAX as usize,
        input: 2 * MOST_OCTETS,
        output: MOST_OCTETS,
    }
}

/// Does a batch while it is submitted. What others are compared with, and the last resort: it can't be lost.
#[derive(Debug)]
pub struct Inline<C> {
    clock: C,
    limits: Limits,
    copies: OnHost,
    executor: Executor,
    done: VecDeque<Completion>,
}

impl<C: Clock> Inline<C> {
    /// With room for so many batches that were not fetched; `clock` says when one is done.
    pub fn new(in_flight: usize, clock: C) -> Self {
        Self::on(Processor::best(), in_flight, clock)
    }

    /// The same as on a processor that has these vectors and no others: what a core without vectors takes can be seen with it.
    pub fn on(processor: Processor, in_flight: usize, clock: C) -> Self {
        let copies = OnHost::default();
        let executor = Executor::on(processor).with(copies.shelf());
        Self { clock, limits: limits(in_flight), copies, executor, done: VecDeque::new() }
    }
}

impl<C: Clock> Device for Inline<C> {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&mut self, mut batch: Batch, now: Nanos) -> Result<(), Rejected> {
        if let Err(why) = self.accepts(&batch) {
            return Err(Rejected { batch, why });
        }
        if self.done.len() >= self.limits.in_flight {
            return Err(Rejected { batch, why: Refusal::Full });
        }
        let outcome = self.executor.execute(&mut batch);
        let times = Times { submitted: now, started: now, ended: self.clock.now().max(now) };
        self.done.push_back(Completion { batch, outcome, times, steady: true });
        Ok(())
    }

    fn poll(&mut self, _now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let found = self.done.len();
        ended.extend(self.done.drain(..));
        found
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.poll(now, ended);
    }

    fn revive(&mut self, _now: Nanos) -> Result<(), Failure> {
        Ok(())
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.copies.follow(table, image, changes)
    }
}
