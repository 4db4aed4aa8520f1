//! Where a batch runs: a [`Device`].

use crate::copies::TableId;
use crate::task::{Batch, Kind};
use std::fmt;
use tables::Nanos;
use tables::image::{Changes, Image};

/// Something that takes batches and gives them back done.
///
/// The queue is bounded. A batch that finds no room comes back in [`Rejected`]: the caller decides whether to wait, to drop it or to go elsewhere,
/// and nothing waits inside. A batch that was taken comes back exactly once, from [`poll`](Self::poll) or [`abandon`](Self::abandon), done
/// or with a [`Failure`], and in no promised order.
///
/// That is the shape of DPDK's cryptodev and bbdev (enqueue and dequeue of bursts, limits by capability) and of a ring that a kernel on a GPU
/// polls, so each of them can stand behind it. A device belongs to one thread, which submits and polls; behind it there may be others.
pub trait Device: Send {
    /// What people call it: `cpu`, `cuda0`, `crypto_openssl0`.
    fn name(&self) -> &str;

    /// How much it takes.
    fn limits(&self) -> Limits;

    /// Whether it would take such a batch if it had room, and if not, why.
    fn accepts(&self, batch: &Batch) -> Result<(), Refusal> {
        let limits = self.limits();
        if batch.is_empty() {
            return Err(Refusal::Empty);
        }
        if !limits.kinds.contains(&batch.task().kind()) {
            return Err(Refusal::Unsupported(batch.task().kind()));
        }
        for (given, most, unit) in [
            (batch.len(), limits.items, Unit::Items),
            (batch.input_octets(), limits.input, Unit::InputOctets),
            (batch.output().len(), limits.output, Unit::OutputOctets),
        ] {
            if given > most {
                return Err(Refusal::TooLarge { given, most, unit });
            }
        }
        Ok(())
    }

    /// Hands a batch over. It never waits.
    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected>;

    /// Fetches what has ended, and says how many these are. It never waits.
    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize;

    /// How many batches were taken and have not come back.
    fn in_flight(&self) -> usize;

    /// Gives the device up: all that is in flight comes back, what had not ended with [`Failure::Abandoned`]. Whatever the device still writes, it doesn't
    /// write to these. Until it is [revived](Self::revive), it refuses all.
    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>);

    /// Tries to bring it back after a failure.
    fn revive(&mut self, now: Nanos) -> Result<(), Failure>;

    /// Brings its copy of a table up to date, or makes one, while look-ups run. `changes` are what the table has told of; see [`crate::copies`].
    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        let _ = (image, changes);
        Err(Failure::NoTable(table))
    }
}

/// A device of whatever kind, as it was chosen at run time.
impl<D: Device + ?Sized> Device for Box<D> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn limits(&self) -> Limits {
        (**self).limits()
    }

    fn accepts(&self, batch: &Batch) -> Result<(), Refusal> {
        (**self).accepts(batch)
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        (**self).submit(batch, now)
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        (**self).poll(now, ended)
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        (**self).abandon(now, ended);
    }

    fn revive(&mut self, now: Nanos) -> Result<(), Failure> {
        (**self).revive(now)
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        (**self).follow(table, image, changes)
    }
}

/// How much a device takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// What it can do.
    pub kinds: Vec<Kind>,
    /// Batches in flight.
    pub in_flight: usize,
    /// Items of a batch.
    pub items: usize,
    /// Octets that go in with a batch: items and data.
    pub input: usize,
    /// Octets that come out of it.
    pub output: usize,
}

/// A batch that was not taken, unchanged.
#[derive(Debug)]
pub struct Rejected {
    /// The batch.
    pub batch: Batch,
    /// Why.
    pub why: Refusal,
}

/// What of a batch is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Its items.
    Items,
    /// What goes in.
    InputOctets,
    /// What comes out.
    OutputOctets,
    /// A packet of it.
    PacketOctets,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Items => "items",
            Self::InputOctets => "octets of input",
            Self::OutputOctets => "octets of output",
            Self::PacketOctets => "octets in a packet",
        })
    }
}

/// Why a device doesn't take a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// As many are in flight as may be: poll, and try again.
    #[error("as many batches are in flight as may be")]
    Full,
    /// There is nothing to do.
    #[error("the batch has no items")]
    Empty,
    /// It can't do that.
    #[error("the device has no {0:?}")]
    Unsupported(Kind),
    /// It is too large.
    #[error("the batch has {given} {unit}, the device takes {most}")]
    TooLarge {
        /// As many as there are.
        given: usize,
        /// As many as may be.
        most: usize,
        /// Of what.
        unit: Unit,
    },
    /// It has no copy of the table.
    #[error("the device has no copy of the table")]
    NoTable,
    /// The device has failed before, and has not been revived.
    #[error("the device has failed: {0}")]
    Failed(Failure),
    /// The device failed when it was given this batch.
    #[error("{0}")]
    Broken(Failure),
}

impl Refusal {
    /// Whether another try at the same device may succeed later without anything being done about it.
    pub fn is_for_now(&self) -> bool {
        matches!(self, Self::Full)
    }
}

/// What can go wrong with a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no such device on this machine.
    #[error("no {device} device: {why}")]
    Absent {
        /// What kind of device.
        device: &'static str,
        /// What was found instead.
        why: String,
    },
    /// The device is gone: unplugged, reset, or its driver has given up.
    #[error("the device is lost: {0}")]
    Lost(String),
    /// The device has too little memory.
    #[error("the device has no {octets} octets of memory for {what}")]
    OutOfMemory {
        /// How much was asked for.
        octets: usize,
        /// For what.
        what: &'static str,
    },
    /// A kernel doesn't compile for this device.
    #[error("{kernel} doesn't compile: {log}")]
    Compile {
        /// The kernel's file.
        kernel: &'static str,
        /// What the compiler says.
        log: String,
    },
    /// The batch was still under way when its device was given up.
    #[error("the device was given up while it had the batch")]
    Abandoned,
    /// What computes has ended in a panic.
    #[error("what computes the batch has panicked")]
    Panicked,
    /// The device says that the batch is wrong.
    #[error("the device has ended the batch with status {0}")]
    Status(u64),
    /// It has no copy of that table.
    #[error("the device has no copy of table {}", .0.0)]
    NoTable(TableId),
    /// A copy can't follow its table, for it was not told of all changes before: it needs all of the table.
    #[error("the copy of a table is of generation {have}, and was told what is new in generation {told}")]
    Missed {
        /// The copy's generation.
        have: u64,
        /// The table's.
        told: u64,
    },
    /// A call of the device's library has failed in another way.
    #[error("{call}: {why}")]
    Call {
        /// What was called.
        call: &'static str,
        /// What it says.
        why: String,
    },
}

/// When things happened to a batch. From `started` to `ended` is what it was worked on: of a GPU the kernel's time, by its own clock, without the copies
/// there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// When it was submitted.
    pub submitted: Nanos,
    /// When work on it began.
    pub started: Nanos,
    /// When work on it ended.
    pub ended: Nanos,
}

/// A batch that came back.
#[derive(Debug)]
pub struct Completion {
    /// The batch. If it failed, its input is as it was, and its output is worth nothing.
    pub batch: Batch,
    /// Whether it was done.
    pub outcome: Result<(), Failure>,
    /// When.
    pub times: Times,
    /// Of a look-up: whether the table's copy stayed as it was all the while. If not, what was found is right, but something may not have been found.
    pub steady: bool,
}

impl Completion {
    /// A batch that was not done.
    pub fn failed(batch: Batch, failure: Failure, submitted: Nanos, now: Nanos) -> Self {
        let times = Times { submitted, started: now, ended: now };
        Self { batch, outcome: Err(failure), times, steady: true }
    }
}

/// Where devices that have threads of their own get the time from.
pub trait Clock: Send {
    /// The time.
    fn now(&self) -> Nanos;
}

impl Clock for tables::Tsc {
    fn now(&self) -> Nanos {
        tables::Tsc::now(self)
    }
}

impl<F: Fn() -> Nanos + Send> Clock for F {
    fn now(&self) -> Nanos {
        self()
    }
}
