//! `round-robin`: the next worker that has room (thesis §4.8). Nothing but room counts, and no deadline begins a batch.

use super::batching::Batching;
use super::packet::Step;
use super::worker::Worth;
use super::{Job, Pending, Release, Scheduler, View, WorkerId};

/// The scheduler.
#[derive(Debug)]
pub struct RoundRobin {
    batching: Batching,
    /// By step: whose turn it is.
    next: [usize; 2],
}

impl RoundRobin {
    /// With such bursts.
    pub fn new(batching: Batching) -> Self {
        Self { batching: Batching { heeds_deadlines: false, ..batching }, next: [0; 2] }
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new(Batching::default())
    }
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn place(&mut self, _job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId> {
        let workers = view.workers.len();
        let next = &mut self.next[step as usize];
        let found = (0..workers)
            .map(|ahead| (*next + ahead) % workers)
            .find(|&at| view.workers[at].has_room(step))?;
        *next = (found + 1) % workers;
        Some(WorkerId(found))
    }

    fn release(&mut self, worker: WorkerId, _step: Step, pending: &Pending, view: &View<'_>) -> Release {
        self.batching.release(worker, pending, view)
    }

    fn worth(&self) -> Worth {
        self.batching.worth
    }
}
