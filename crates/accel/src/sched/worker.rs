//! How many jobs of its ring a worker does next: the rule that workers on all platforms follow.

use super::{Class, Job, NEVER};
use std::collections::VecDeque;
use tables::Nanos;

/// Jobs of one step that a core does before it looks for the other step's.
pub const CPU_BURST: usize = 32;

/// Jobs that a worker has received for one step, and hasn't begun.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: VecDeque<(Job, Nanos)>,
}

/// Which batches are worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worth {
    /// The fewest jobs for which a batch begins when it should.
    pub least: usize,
    /// Nanoseconds after which a batch of fewer begins, too.
    pub grace: u64,
}

impl Default for Worth {
    /// All are.
    fn default() -> Self {
        Self { least: 1, grace: 0 }
    }
}

/// What a worker may do next for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Begin so many jobs.
    Begin(usize),
    /// Wait until then, unless more come.
    Wait(Nanos),
}

impl Queue {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Adds one, which is to be begun by that time.
    pub fn push(&mut self, job: Job, launch_by: Nanos) {
        self.jobs.push_back((job, launch_by));
    }

    /// What comes next: a core does one job after the other, and looks at its other step's after a burst; an accelerator waits until `most` are there, or the first has to be begun.
    pub fn next(&self, class: Class, most: usize, worth: Worth, now: Nanos) -> Next {
        let waiting = self.jobs.len();
        if class == Class::Cpu {
            return if waiting > 0 { Next::Begin(waiting.min(CPU_BURST)) } else { Next::Wait(NEVER) };
        }
        if waiting >= most {
            return Next::Begin(most);
        }
        let Some(launch_by) = self.jobs.iter().map(|&(_, launch_by)| launch_by).min() else {
            return Next::Wait(NEVER);
        };
        let launch_by = launch_by.plus(if waiting < worth.least { worth.grace } else { 0 });
        if launch_by <= now { Next::Begin(waiting) } else { Next::Wait(launch_by) }
    }

    /// Takes the first of them.
    pub fn take(&mut self, jobs: usize) -> impl Iterator<Item = Job> {
        self.jobs.drain(..jobs.min(self.jobs.len())).map(|(job, _)| job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::packet::{FlowId, KindId, Packet};

    fn queue(jobs: usize, launch_by: u64) -> Queue {
        let packet = Packet { tag: 0, kind: KindId(0), flow: FlowId(0), octets: 243, arrived: Nanos(0) };
        let job = Job { place: 0, number: 0, packet, sequence: None, due: NEVER };
        let mut queue = Queue::default();
        (0..jobs).for_each(|_| queue.push(job, Nanos(launch_by)));
        queue
    }

    #[test]
    fn batches_begin_full_or_in_time_and_small_ones_later() {
        let worth = Worth { least: 16, grace: 20 };
        let next = |jobs, now| queue(jobs, 100).next(Class::Accelerator, 128, worth, Nanos(now));
        assert_eq!(next(0, 1000), Next::Wait(NEVER));
        assert_eq!(next(16, 99), Next::Wait(Nanos(100)));
        assert_eq!(next(16, 100), Next::Begin(16));
        assert_eq!(next(15, 100), Next::Wait(Nanos(120)));
        assert_eq!(next(15, 120), Next::Begin(15));
        assert_eq!(next(200, 0), Next::Begin(128));
    }

    #[test]
    fn a_core_looks_at_its_other_step_after_a_burst() {
        let next = |jobs| queue(jobs, 100).next(Class::Cpu, 128, Worth::default(), Nanos(0));
        assert_eq!((next(0), next(1), next(99)), (Next::Wait(NEVER), Next::Begin(1), Next::Begin(CPU_BURST)));
    }
}
