//! Which deadlines could have been met, by somebody who knew everything beforehand.
//!
//! It sees all packets with a deadline, and when workers became slower. A miss is *unavoidable* if not even a machine that did nothing else for that packet could have been in time: both steps on the worker
//! that would be done first, at the best speed that it had between the packet's arrival and its deadline, without any ring, change of kernel, or other packet in its way. So it errs to the side that
//! makes schedulers look worse: what it calls avoidable may have been impossible because of all other packets, and what it calls unavoidable was impossible. The difference between the misses of a
//! scheduler and these is its *regret*.

use super::packet::Step;
use super::xavier::{Fault, Settings, service};
use super::{Class, Left, NEVER, WorkerId};
use tables::Nanos;

/// What it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Packets that had a deadline.
    pub with_deadline: u64,
    /// Those that left behind it.
    pub missed: u64,
    /// Of all with a deadline, those that nobody could have let go in time.
    pub unavoidable: u64,
}

impl Verdict {
    /// Misses that could have been avoided, as far as the oracle knows.
    pub fn regret(&self) -> u64 {
        self.missed.saturating_sub(self.unavoidable)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Oracle {
    /// By worker: its class, and from when on it was how many times slower.
    workers: Vec<(Class, Vec<(Nanos, f64)>)>,
    verdict: Verdict,
}

impl Oracle {
    /// For a machine.
    pub fn new(machine: &Settings) -> Self {
        let classes = std::iter::repeat_n(Class::Cpu, machine.cpu_workers).chain([Class::Accelerator]);
        let speeds = |at: usize| {
            let own = machine.changes.iter().filter(move |change| change.worker == WorkerId(at));
            let mut speeds = vec![(Nanos(0), 1.0)];
            for change in own {
                match change.what {
                    Fault::Slower(times) => speeds.push((change.at, times)),
                    Fault::Stalls(nanos) => {
                        let before = speeds.last().map_or(1.0, |&(_, times)| times);
                        speeds.extend([(change.at, f64::INFINITY), (change.at.plus(nanos), before)]);
                    }
                    Fault::Dies => speeds.push((change.at, f64::INFINITY)),
                }
            }
            speeds.sort_by_key(|&(at, _)| at);
            speeds
        };
        let workers = classes.enumerate().map(|(at, class)| (class, speeds(at))).collect();
        Self { workers, verdict: Verdict::default() }
    }

    /// A packet has left.
    pub fn saw(&mut self, left: &Left) {
        if left.job.due == NEVER {
            return;
        }
        let (arrived, due) = (left.job.packet.arrived, left.job.due);
        let octets = u64::from(left.job.packet.octets);
        // Each step by whoever is best at it.
        let nanos: f64 = Step::ALL
            .into_iter()
            .map(|step| {
                let of_worker = |(class, speeds): &(Class, Vec<(Nanos, f64)>)| {
                    service::nanos(*class, step, octets, false, 0) * best(speeds, arrived, due)
                };
                self.workers.iter().map(of_worker).fold(f64::INFINITY, f64::min)
            })
            .sum();
        self.verdict.with_deadline += 1;
        self.verdict.missed += u64::from(left.is_late());
        self.verdict.unavoidable += u64::from(nanos > due.since(arrived) as f64);
    }

    /// What it has come to.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// The least factor between two times.
fn best(speeds: &[(Nanos, f64)], from: Nanos, to: Nanos) -> f64 {
    let before = speeds.iter().rfind(|&&(at, _)| at <= from);
    let within = speeds.iter().filter(|&&(at, _)| at > from && at <= to);
    before.into_iter().chain(within).map(|&(_, times)| times).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::packet::{Chain, FlowId, KindId, Packet};
    use crate::sched::xavier::Change;
    use crate::sched::{Job, Span};

    fn left(within: u64) -> Left {
        let (arrived, packet) = (Nanos(1000), |arrived| Packet {
            tag: 0,
            kind: KindId(0),
            flow: FlowId(0),
            octets: 243,
            arrived,
        });
        let job =
            Job { place: 0, number: 0, packet: packet(arrived), sequence: None, due: arrived.plus(within) };
        let (workers, spans) = ([WorkerId(0); 2], [Span::default(); 2]);
        Left { job, workers, spans, at: arrived.plus(Nanos::SECOND), in_order: true }
    }

    #[test]
    fn what_the_best_worker_alone_could_do_was_avoidable() {
        let mut machine = Settings::thesis(Chain::EachStep);
        let unavoidable = |machine: &Settings, within| {
            let mut oracle = Oracle::new(machine);
            oracle.saw(&left(within));
            oracle.verdict().unavoidable
        };
        // A core takes 0.42 ms for both steps of 243 octets, the accelerator ten times as long.
        assert_eq!([300_000, 500_000].map(|within| unavoidable(&machine, within)), [1, 0]);
        let slower = |worker| Change { at: Nanos(0), worker: WorkerId(worker), what: Fault::Slower(10.0) };
        machine.changes = vec![slower(0)];
        assert_eq!(unavoidable(&machine, 500_000), 0, "the other core");
        machine.changes.push(slower(1));
        assert_eq!(unavoidable(&machine, 500_000), 1);
        // It was well again in time.
        machine.changes.push(Change { at: Nanos(400_000), worker: WorkerId(1), what: Fault::Slower(1.0) });
        assert_eq!(unavoidable(&machine, 500_000), 0);
        let mut oracle = Oracle::new(&machine);
        oracle.saw(&left(500_000));
        assert_eq!((oracle.verdict().missed, oracle.verdict().regret()), (1, 1));
    }
}
