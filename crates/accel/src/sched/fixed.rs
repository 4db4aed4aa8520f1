//! `static`: rules that don't change, with thresholds from measured latencies (thesis §4.9, Algorithms 1 to 3).
//!
//! - C1: the accelerator does all, but small packets that may wait and needn't be in order go to cores when much comes.
//! - C2: the accelerator decodes all. Above three rates ever more is ciphered by cores: small packets without an order, all without an order, all; those with an order by one
//!   core, so that they stay in order.
//!
//! What doesn't find room where it should go, goes to the next worker that has some, unless that would make it late or mix up its order. The thesis doesn't print its thresholds;
//! [`Thresholds::calibrated`] says how they follow from what was measured.

use super::batching::Batching;
use super::packet::{Chain, Step};
use super::worker::Worth;
use super::{Class, Job, Pending, Release, Scheduler, View, WorkerId, WorkerView};

/// What is measured before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Nanoseconds that a core's queue holds a small packet, when it is full.
    pub cpu_latency: u64,
    /// Nanoseconds that a packet is with the accelerator, when there are always more.
    pub accelerator_latency: u64,
    /// Packets per second through both steps on the accelerator.
    pub accelerator_rate: f64,
}

/// What the rules compare with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Octets of a packet that a core may have.
    pub cpu_octets: u32,
    /// Nanoseconds that a packet must have for a core.
    pub cpu_latency: u64,
    /// Nanoseconds: a packet that has less waits for the accelerator instead of going to a core.
    pub accelerator_latency: u64,
    /// C1: packets per second above which cores get some.
    pub rate: f64,
    /// C2: packets per second above which cores cipher small packets without an order, all without an order, all.
    pub rates: [f64; 3],
}

impl Thresholds {
    /// What follows from measurements: a core is for packets that can wait as long as its full queue takes; one that can't wait twice as long as the accelerator takes stays with
    /// it. Cores help from 60 % of what the accelerator can do (in the thesis's medium test, which is 56 %, they get 6 %), and in C2 from 50, 75 and 120 %.
    pub fn calibrated(measured: &Measured) -> Self {
        let share = |share: f64| measured.accelerator_rate * share;
        Self {
            cpu_octets: 255,
            cpu_latency: measured.cpu_latency,
            accelerator_latency: measured.cpu_latency.max(2 * measured.accelerator_latency),
            rate: share(0.6),
            rates: [share(0.5), share(0.75), share(1.2)],
        }
    }
}

/// The scheduler.
#[derive(Debug)]
pub struct Fixed {
    batching: Batching,
    thresholds: Thresholds,
    /// By step: whose turn it is.
    next: [usize; 2],
}

impl Fixed {
    /// With these thresholds.
    pub fn new(batching: Batching, thresholds: Thresholds) -> Self {
        Self { batching, thresholds, next: [0; 2] }
    }

    /// The next of these workers that has room.
    fn next<'a>(
        &mut self,
        step: Step,
        workers: impl Iterator<Item = (WorkerId, &'a WorkerView)> + Clone,
    ) -> Option<WorkerId> {
        let count = workers.clone().count();
        let next = &mut self.next[step as usize];
        let mut order = workers.cycle().skip(*next % count.max(1)).take(count);
        let (found, _) = order.find(|(_, worker)| worker.has_room(step))?;
        *next += 1;
        Some(found)
    }

    fn core(&mut self, step: Step, view: &View<'_>) -> Option<WorkerId> {
        self.next(step, view.of_class(Class::Cpu))
    }

    fn any(&mut self, step: Step, view: &View<'_>) -> Option<WorkerId> {
        self.next(step, view.workers.iter().enumerate().map(|(at, worker)| (WorkerId(at), worker)))
    }

    fn accelerator(step: Step, view: &View<'_>) -> Option<WorkerId> {
        view.of_class(Class::Accelerator).map(|(id, _)| id).find(|&id| view.has_room(id, step))
    }

    /// Algorithm 1.
    fn both_steps(&mut self, job: &Job, view: &View<'_>) -> Option<WorkerId> {
        let thresholds = self.thresholds;
        let (has_order, latency) = (job.sequence.is_some(), job.due.since(job.packet.arrived));
        let first = if job.packet.octets <= thresholds.cpu_octets
            && latency > thresholds.cpu_latency
            && view.rate > thresholds.rate
            && !has_order
        {
            self.core(Step::Decode, view)
        } else {
            Self::accelerator(Step::Decode, view)
        };
        let has_to_wait = latency < thresholds.accelerator_latency || has_order;
        first.or_else(|| if has_to_wait { None } else { self.any(Step::Decode, view) })
    }

    /// Algorithm 3.
    fn cipher(&mut self, job: &Job, view: &View<'_>) -> Option<WorkerId> {
        let step = Step::Cipher;
        let [least, medium, most] = self.thresholds.rates;
        let has_order = job.sequence.is_some();
        let first = if view.rate > most && has_order {
            view.of_class(Class::Cpu)
                .find(|(_, worker)| worker.is_usable)
                .filter(|(_, worker)| worker.has_room(step))
                .map(|(id, _)| id)
        } else if !has_order
            && (view.rate > medium || view.rate > least && job.packet.octets <= self.thresholds.cpu_octets)
        {
            self.core(step, view)
        } else {
            Self::accelerator(step, view)
        };
        let has_to_wait = view.rate < least || view.rate > medium && view.rate < most && has_order;
        first.or_else(|| if has_to_wait { None } else { self.any(step, view) })
    }
}

impl Scheduler for Fixed {
    fn name(&self) -> &'static str {
        "static"
    }

    fn place(&mut self, job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId> {
        // The algorithms take it for granted.
        if !view.has_usable(Class::Accelerator) {
            return self.core(step, view);
        }
        match (view.chain, step) {
            (Chain::Once, _) => self.both_steps(job, view),
            // Algorithm 2.
            (Chain::EachStep, Step::Decode) => Self::accelerator(step, view),
            (Chain::EachStep, Step::Cipher) => self.cipher(job, view),
        }
    }

    fn release(&mut self, worker: WorkerId, _step: Step, pending: &Pending, view: &View<'_>) -> Release {
        self.batching.release(worker, pending, view)
    }

    fn worth(&self) -> Worth {
        self.batching.worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::packet::{FlowId, KindId, Packet};
    use crate::sched::{NEVER, StepView};
    use tables::Nanos;

    const ACCELERATOR: Option<WorkerId> = Some(WorkerId(2));

    /// Where a packet of so many octets goes at a rate, with or without an order, if the accelerator has room or hasn't.
    fn placed(
        chain: Chain,
        step: Step,
        rate: f64,
        octets: u32,
        has_order: bool,
        room: usize,
    ) -> Option<WorkerId> {
        let measured = Measured { cpu_latency: 100, accelerator_latency: 20, accelerator_rate: 1000.0 };
        let mut rules = Fixed::new(Batching::default(), Thresholds::calibrated(&measured));
        let worker = |class, room| WorkerView {
            class,
            is_usable: true,
            steps: [StepView { room, pending: 0, inside: 0 }; 2],
        };
        let workers = [worker(Class::Cpu, 9), worker(Class::Cpu, 9), worker(Class::Accelerator, room)];
        let packet = Packet { tag: 0, kind: KindId(0), flow: FlowId(0), octets, arrived: Nanos(0) };
        let sequence = has_order.then_some(0);
        let job = Job { place: 0, number: 0, packet, sequence, due: NEVER };
        rules.place(&job, step, &View { now: Nanos(0), chain, rate, workers: &workers })
    }

    #[test]
    fn algorithm_1() {
        let placed =
            |rate, octets, has_order, room| placed(Chain::Once, Step::Decode, rate, octets, has_order, room);
        assert_eq!(placed(601.0, 243, false, 9), Some(WorkerId(0)));
        for (rate, octets, has_order) in [(599.0, 243, false), (601.0, 486, false), (601.0, 243, true)] {
            assert_eq!(placed(rate, octets, has_order, 9), ACCELERATOR, "{rate} {octets} {has_order}");
        }
        // Without room there, only what has an order waits.
        assert_eq!((placed(1.0, 1458, true, 0), placed(1.0, 1458, false, 0)), (None, Some(WorkerId(0))));
    }

    #[test]
    fn algorithms_2_and_3() {
        let each = Chain::EachStep;
        assert_eq!(placed(each, Step::Decode, 9e9, 243, false, 9), ACCELERATOR);
        assert_eq!(placed(each, Step::Decode, 9e9, 243, false, 0), None);
        let cipher = |rate, octets, has_order| placed(each, Step::Cipher, rate, octets, has_order, 9);
        // 50, 75 and 120 % of what the accelerator can do.
        for (rate, small, large, ordered) in [
            (499.0, false, false, false),
            (501.0, true, false, false),
            (751.0, true, true, false),
            (1201.0, true, true, true),
        ] {
            let is_core = |found: Option<WorkerId>| found == Some(WorkerId(0));
            let found = [cipher(rate, 243, false), cipher(rate, 1458, false), cipher(rate, 243, true)];
            assert_eq!(found.map(is_core), [small, large, ordered], "{rate}");
        }
    }
}
