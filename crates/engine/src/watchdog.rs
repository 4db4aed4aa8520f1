//! Which worker has stopped working?
//!
//! # The problem
//! A worker that hangs (an endless loop, a page fault that never ends, a host that took its core away) drops every packet of its
//! shards, and nothing says so: its counters just stand still.
//!
//! # The model
//! Each worker counts its loops, its *heartbeat*, where others can read it. [`Watchdog::check`] is told all of them with the time
//! and says who [stalled](Sight::Stalled): awake, and not one loop in [`Watchdog::new`]'s threshold; and who
//! [recovered](Sight::Recovered). Each is said once. A worker that sleeps on purpose doesn't stall; it has
//! a full threshold again from when it was last seen asleep. No thread, no clock: whoever calls is not stalled, and
//! if *that* was late, it is not held against the workers: a pause between two checks counts for half of the threshold at
//! most, so that a process that was stopped, or a suspended machine, accuses nobody.
//!
//! # The cost
//! A comparison for each worker and check. The worker's part is a store for each loop.

use tables::Nanos;

/// A worker's sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Changes with every loop.
    pub beat: u64,
    /// It sleeps, or waits to be woken.
    pub asleep: bool,
}

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It is awake and does nothing.
    Stalled {
        /// Its number.
        worker: usize,
        /// For how many nanoseconds so far; those of pauses between checks not counted.
        nanos: u64,
    },
    /// It goes on.
    Recovered {
        /// Its number.
        worker: usize,
        /// After how many nanoseconds.
        nanos: u64,
    },
}

/// Watches heartbeats.
#[derive(Clone, Debug)]
pub struct Watchdog {
    threshold: u64,
    workers: Vec<Watched>,
    before: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    beat: u64,
    /// Nanoseconds without a beat.
    silent: u64,
    stalled: bool,
}

impl Watchdog {
    /// `threshold`: so many nanoseconds without a beat are a stall. Check several times in it.
    pub const fn new(threshold: u64) -> Self {
        Self { threshold, workers: Vec::new(), before: None }
    }

    /// Whether this worker stalled and has not recovered.
    pub fn is_stalled(&self, worker: usize) -> bool {
        self.workers.get(worker).is_some_and(|watched| watched.stalled)
    }

    /// Takes the heartbeats of all workers, by number; tells what is new.
    pub fn check(&mut self, now: Nanos, heartbeats: &[Heartbeat], mut tell: impl FnMut(Sight)) {
        let passed = self.before.map_or(0, |before| now.since(before)).min(self.threshold / 2);
        self.before = Some(now);
        self.workers.truncate(heartbeats.len());
        let known = self.workers.len();
        let new = heartbeats.iter().skip(known);
        self.workers.extend(new.map(|heartbeat| Watched { beat: heartbeat.beat, silent: 0, stalled: false }));
        let seen = self.workers.iter_mut().zip(heartbeats).enumerate().take(known);
        for (worker, (watched, heartbeat)) in seen {
            let silent = watched.silent.saturating_add(passed);
            if watched.beat != heartbeat.beat || heartbeat.asleep {
                if std::mem::take(&mut watched.stalled) {
                    tell(Sight::Recovered { worker, nanos: silent });
                }
                (watched.beat, watched.silent) = (heartbeat.beat, 0);
                continue;
            }
            watched.silent = silent;
            if silent >= self.threshold && !std::mem::replace(&mut watched.stalled, true) {
                tell(Sight::Stalled { worker, nanos: silent });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// What is told when all `beats` are seen at this time.
    fn told(watchdog: &mut Watchdog, ms: u64, beats: &[(u64, bool)]) -> Vec<Sight> {
        let heartbeats: Vec<_> = beats.iter().map(|&(beat, asleep)| Heartbeat { beat, asleep }).collect();
        let mut sights = Vec::new();
        watchdog.check(Nanos(ms * MS), &heartbeats, |sight| sights.push(sight));
        sights
    }

    #[test]
    fn a_stall_and_its_end_are_told_once() {
        let mut watchdog = Watchdog::new(100 * MS);
        for ms in (0..100).step_by(10) {
            assert_eq!(told(&mut watchdog, ms, &[(ms, false), (7, false)]), []);
        }
        let stalled = Sight::Stalled { worker: 1, nanos: 100 * MS };
        assert_eq!(told(&mut watchdog, 100, &[(100, false), (7, false)]), [stalled]);
        assert!(watchdog.is_stalled(1) && !watchdog.is_stalled(0) && !watchdog.is_stalled(9));
        for ms in (110..300).step_by(10) {
            assert_eq!(told(&mut watchdog, ms, &[(ms, false), (7, false)]), []);
        }
        let recovered = Sight::Recovered { worker: 1, nanos: 300 * MS };
        assert_eq!(told(&mut watchdog, 300, &[(300, false), (8, false)]), [recovered]);
        assert!(!watchdog.is_stalled(1));
        assert_eq!(told(&mut watchdog, 310, &[(310, false), (8, false)]), []);
    }

    #[test]
    fn who_sleeps_does_not_stall() {
        let mut watchdog = Watchdog::new(100 * MS);
        for ms in (0..10_000).step_by(10) {
            assert_eq!(told(&mut watchdog, ms, &[(3, true)]), []);
        }
        // It woke up and has its time again from then on.
        for ms in (10_000..10_090).step_by(10) {
            assert_eq!(told(&mut watchdog, ms, &[(3, false)]), []);
        }
        assert_eq!(told(&mut watchdog, 10_090, &[(3, false)]).len(), 1);
        // That it falls asleep is a sign of life.
        let recovered = Sight::Recovered { worker: 0, nanos: 110 * MS };
        assert_eq!(told(&mut watchdog, 10_100, &[(3, true)]), [recovered]);
    }

    #[test]
    fn a_late_check_accuses_nobody() {
        let mut watchdog = Watchdog::new(100 * MS);
        assert_eq!(told(&mut watchdog, 0, &[(1, false)]), []);
        // The process was stopped for an hour.
        assert_eq!(told(&mut watchdog, 3_600_000, &[(1, false)]), []);
        assert_eq!(told(&mut watchdog, 3_600_010, &[(2, false)]), []);
        // Time that goes back is no time.
        assert_eq!(told(&mut watchdog, 5, &[(2, false)]), []);
    }

    #[test]
    fn workers_come_and_go() {
        let mut watchdog = Watchdog::new(20 * MS);
        assert_eq!(told(&mut watchdog, 0, &[(1, false)]), []);
        assert_eq!(told(&mut watchdog, 10, &[(2, false), (0, false)]), []);
        assert_eq!(told(&mut watchdog, 20, &[(3, false), (0, false)]), []);
        assert_eq!(told(&mut watchdog, 30, &[(4, false), (0, false)]).len(), 1);
        assert_eq!(told(&mut watchdog, 40, &[(5, false)]), []);
        assert_eq!(told(&mut watchdog, 50, &[(6, false), (0, false)]), []);
        assert!(!watchdog.is_stalled(1));
    }

    proptest! {
        /// Against the plain rule: a worker is stalled when it was awake and silent in all checks of the last 100 ms.
        #[test]
        fn says_what_a_plain_rule_says(steps in proptest::collection::vec((any::<bool>(), 0u8..8), 1..200)) {
            let mut watchdog = Watchdog::new(100 * MS);
            let (mut beat, mut since, mut stalled) = (0, 0, false);
            for (step, (beats, sleeps)) in steps.into_iter().enumerate() {
                let (ms, asleep) = (step as u64 * 10, sleeps == 0);
                let alive = (beats && sleeps < 3 || asleep) && step > 0;
                beat += u64::from(alive && !asleep);
                let sights = told(&mut watchdog, ms, &[(beat, asleep)]);
                let mut expected = Vec::new();
                if alive {
                    if std::mem::take(&mut stalled) {
                        expected.push(Sight::Recovered { worker: 0, nanos: (ms - since) * MS });
                    }
                    since = ms;
                } else if ms - since >= 100 && !std::mem::replace(&mut stalled, true) {
                    expected.push(Sight::Stalled { worker: 0, nanos: (ms - since) * MS });
                }
                prop_assert_eq!(sights, expected);
                prop_assert_eq!(watchdog.is_stalled(0), stalled);
            }
        }
    }
}
