//! A device that isn't there, for tests: it answers after a latency of one's choice, and fails on command.
//!
//! Its time is that of its callers: a batch is done as soon as `poll` is told a time that lies its latency behind the submission. What it answers is right, for
//! [`Executor`] makes it.

use crate::copies::{OnHost, TableId};
use crate::cpu::Executor;
use crate::device::{Completion, Device, Failure, Limits, Refusal, Rejected, Times};
use crate::task::Batch;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::Nanos;
use tables::image::{Changes, Image};

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It is lost: what is in flight comes back undone, and nothing more is taken.
    Lost,
    /// It is lost, and does not even say so: it takes batches, but nothing comes back. Also [`Device::revive`] fails.
    Silent,
    /// It has no memory for new batches. Those in flight are done.
    OutOfMemory,
    /// It takes nothing, as if it were full.
    Full,
    /// Each batch comes back with a bad status, and spoilt output.
    Status(u64),
    /// Each batch comes back twice: what no device may do.
    Twice,
    /// Given up, it gives back what it had, and yet goes on with it: what no device may do either.
    Late,
}

#[derive(Debug, Default)]
struct Orders {
    fault: Fault,
    latency: u64,
    /// Whether reviving succeeds.
    heals: bool,
    revived: u64,
}

/// What tells a [`Fake`] from afar how to behave.
#[derive(Debug, Clone, Default)]
pub struct Remote(Arc<Mutex<Orders>>);

impl Remote {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this goes wrong.
    pub fn fail(&self, fault: Fault) {
        self.orders().fault = fault;
    }

    /// From now on batches take so many nanoseconds.
    pub fn take(&self, latency: u64) {
        self.orders().latency = latency;
    }

    /// Whether the device will be well again when somebody tries to revive it.
    pub fn heal(&self, heals: bool) {
        self.orders().heals = heals;
    }

    /// How often somebody has revived it.
    pub fn revived(&self) -> u64 {
        self.orders().revived
    }
}

/// The device.
#[derive(Debug)]
pub struct Fake {
    remote: Remote,
    limits: Limits,
    executor: Executor,
    copies: OnHost,
    /// What was taken, when, and of which version its table's copy was.
    taken: VecDeque<(Batch, Nanos, Option<u64>)>,
    failed: Option<Failure>,
}

impl Fake {
    /// With such limits; batches take `latency` nanoseconds.
    pub fn new(limits: Limits, latency: u64) -> Self {
        let remote = Remote::default();
        remote.take(latency);
        let copies = OnHost::default();
        let executor = Executor::new().with(copies.shelf());
        Self { remote, limits, executor, copies, taken: VecDeque::new(), failed: None }
    }

    /// What it can be told by, also when it is somebody else's.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Gives back all that is in flight, undone.
    fn give_back(&mut self, why: &Failure, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let found = self.taken.len();
        ended.extend(self.taken.drain(..).map(|(mut batch, submitted, _)| {
            spoil(&mut batch);
            Completion::failed(batch, why.clone(), submitted, now)
        }));
        found
    }
}

/// What a device that has failed may have left in the output.
fn spoil(batch: &mut Batch) {
    batch.parts().2.fill(0xa5);
}

impl Device for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        let fault = self.remote.orders().fault;
        let why = match (&self.failed, fault, self.accepts(&batch)) {
            (_, _, Err(why)) => why,
            (Some(failure), _, _) => Refusal::Failed(failure.clone()),
            (None, Fault::Lost, _) => {
                let failure = Failure::Lost("as it was told".into());
                self.failed = Some(failure.clone());
                Refusal::Broken(failure)
            }
            (None, Fault::OutOfMemory, _) => {
                Refusal::Broken(Failure::OutOfMemory { octets: batch.input_octets(), what: "a batch" })
            }
            (None, Fault::Full, _) => Refusal::Full,
            _ if self.taken.len() >= self.limits.in_flight => Refusal::Full,
            _ => {
                let version = self.copies.versions().of_task(batch.task());
                self.taken.push_back((batch, now, version));
                return Ok(());
            }
        };
        Err(Rejected { batch, why })
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let (fault, latency) = {
            let orders = self.remote.orders();
            (orders.fault, orders.latency)
        };
        match fault {
            Fault::Silent => return 0,
            Fault::Late if self.failed.is_none() => return 0,
            Fault::Lost => {
                let failure = Failure::Lost("as it was told".into());
                self.failed = Some(failure.clone());
                return self.give_back(&failure, now, ended);
            }
            _ => {}
        }
        let before = ended.len();
        while let Some((mut batch, submitted, version)) =
            self.taken.pop_front_if(|(_, submitted, _)| now.since(*submitted) >= latency)
        {
            let steady = version == self.copies.versions().of_task(batch.task());
            let times = Times { submitted, started: submitted, ended: submitted.plus(latency) };
            let outcome = match fault {
                Fault::Status(status) => {
                    spoil(&mut batch);
                    Err(Failure::Status(status))
                }
                _ => self.executor.execute(&mut batch),
            };
            if fault == Fault::Twice {
                let (batch, outcome) = (batch.clone(), outcome.clone());
                ended.push(Completion { batch, outcome, times, steady });
            }
            ended.push(Completion { batch, outcome, times, steady });
        }
        ended.len() - before
    }

    fn in_flight(&self) -> usize {
        self.taken.len()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.failed.get_or_insert(Failure::Abandoned);
        let goes_on =
            if self.remote.orders().fault == Fault::Late { self.taken.clone() } else { VecDeque::new() };
        self.give_back(&Failure::Abandoned, now, ended);
        self.taken = goes_on;
    }

    fn revive(&mut self, _now: Nanos) -> Result<(), Failure> {
        let mut orders = self.remote.orders();
        orders.revived += 1;
        if orders.heals {
            orders.fault = Fault::None;
            self.failed = None;
            Ok(())
        } else {
            Err(self.failed.clone().unwrap_or(Failure::Abandoned))
        }
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.copies.follow(table, image, changes)
    }
}
