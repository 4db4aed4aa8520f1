//! When a batch begins, by the thesis' rule (§4.5): full, or the tightest deadline in it would else be missed, or it has waited long enough. A batch that is very small doesn't begin for
//! a deadline: "single packets slowed the scheduler greatly and cascaded into more minimal batches".

use super::worker::Worth;
use super::{Class, Pending, Release, View, WorkerId};
use tables::Nanos;

/// The rule's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// Jobs that go into a ring together, at most.
    pub burst: usize,
    /// Nanoseconds after which fewer go, too.
    pub flush_after: u64,
    /// Which batches begin for a deadline.
    pub worth: Worth,
    /// Nanoseconds from a batch's begin until its packets leave, as predicted.
    pub ahead: u64,
    /// Nanoseconds that a packet waits for others, at most.
    pub patience: u64,
    /// Whether deadlines count.
    pub heeds_deadlines: bool,
}

impl Default for Batching {
    /// Bursts of 32; a batch of 16 begins 25 ms before its deadline (a batch of the thesis' longest packets takes 12 ms, and the one before it as long).
    fn default() -> Self {
        Self {
            burst: 32,
            flush_after: 10_000_000,
            worth: Worth { least: 16, grace: 20_000_000 },
            ahead: 25_000_000,
            patience: 100_000_000,
            heeds_deadlines: true,
        }
    }
}

impl Batching {
    /// Whether what is pending for a worker goes into its ring.
    pub fn release(&self, worker: WorkerId, pending: &Pending, view: &View<'_>) -> Release {
        let now = view.now;
        let batches = view.worker(worker).is_some_and(|worker| worker.class == Class::Accelerator);
        let begin_by = self.begin_by(pending);
        let flush_by = pending.since.plus(self.flush_after).min(begin_by);
        if pending.jobs >= self.burst || now >= flush_by {
            return Release::Go(if batches { begin_by } else { now });
        }
        Release::Wait(flush_by)
    }

    fn begin_by(&self, pending: &Pending) -> Nanos {
        let at_last = pending.since.plus(self.patience);
        if self.heeds_deadlines {
            at_last.min(Nanos(pending.due.0.saturating_sub(self.ahead)))
        } else {
            at_last
        }
    }
}
