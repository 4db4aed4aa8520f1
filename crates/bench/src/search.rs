//! A search for the highest rate at which nothing is lost, on a machine that others use too (RFC 2544 §26.1).
//!
//! Halving: a rate is good if no packet was lost in a trial. A trial that fails says something of the box only if the machine let it
//! run. One in which it did not is void and repeated, up to `VOID` times; one that failed for no reason that the machine tells of is
//! repeated once, since a host doesn't tell everything. All of them are counted.

use crate::report::{Measured, Report};
use loadgen::latency::LatencySummary;

/// A trial in which the generator offered less than this share of what it should is none.
pub const KEPT_UP: f64 = 0.95;
/// Void trials of one rate, until it is given up.
const VOID: u64 = 5;
/// Trials that failed for no reason that the machine tells of, likewise.
const FAILED: u64 = 2;

/// What came of a trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Packets a second that were really offered.
    pub per_second: f64,
    /// Packets.
    pub lost: u64,
    /// The machine kept a thread from running for longer than a receive queue lasts, in all.
    pub held_up: bool,
    /// Of the packets that got through.
    pub latency: LatencySummary,
}

/// How many trials there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trials {
    /// Nothing was lost.
    pub passed: u64,
    /// Packets were lost, or not all offered, and the machine tells of nothing that it did.
    pub failed: u64,
    /// Likewise, and it does.
    pub void: u64,
    /// Rates of which no trial was anything else.
    pub unknown: u64,
}

impl Trials {
    /// Adds those of another search.
    pub const fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.void += other.void;
        self.unknown += other.unknown;
    }

    /// As results of a way to offer packets, and what a reader must know of them.
    pub fn report(&self, report: &mut Report, mode: &'static str) {
        let Self { passed, failed, void, unknown } = *self;
        for (became, trials) in [("passed", passed), ("failed", failed), ("void", void)] {
            let params = [("became", became.into()), ("mode", mode.into())];
            report.results.push(Measured::of("trials", "trials", &params, &[trials as f64]));
        }
        if void > 0 {
            report.notes.push(format!(
                "{mode}: {void} of {} trials are void, because threads were kept from running, in all, over the trial, for longer than a receive queue lasts",
                passed + failed + void
            ));
        }
        if unknown > 0 {
            report.notes.push(format!(
                "{mode}: of {unknown} rates each trial was void, {VOID} times in a row; they count as not passed, so that the zero-loss rates \
                 above are what this machine let through and not the box's limit"
            ));
        }
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// The highest rate that was really offered without loss; zero: none.
    pub per_second: f64,
    /// What it took to find it.
    pub trials: Trials,
}

impl Found {
    /// The outcome of a trial of this rate that passed, if there is one.
    fn attempt<E>(
        &mut self,
        rate: f64,
        offer: &mut impl FnMut(f64) -> Result<Outcome, E>,
    ) -> Result<Option<Outcome>, E> {
        let (mut failed, mut void) = (0, 0);
        let mut passed = None;
        while passed.is_none() && failed < FAILED && void < VOID {
            let outcome = offer(rate)?;
            if outcome.lost == 0 && outcome.per_second >= rate * KEPT_UP {
                passed = Some(outcome);
            } else if outcome.held_up {
                void += 1;
            } else {
                failed += 1;
            }
        }
        let unknown = passed.is_none() && failed == 0;
        let (passes, unknown) = (u64::from(passed.is_some()), u64::from(unknown));
        self.trials.add(Trials { passed: passes, failed, void, unknown });
        Ok(passed)
    }
}

/// Halves the interval from nothing to `most` until it is no wider than `width`.
pub fn search<E>(
    most: f64,
    width: f64,
    mut offer: impl FnMut(f64) -> Result<Outcome, E>,
) -> Result<Found, E> {
    let (mut good, mut bad) = (0.0, most);
    let mut found = Found::default();
    while bad - good > width {
        let rate = f64::midpoint(good, bad);
        match found.attempt(rate, &mut offer)? {
            Some(outcome) => (good, found.per_second) = (rate, outcome.per_second),
            None => bad = rate,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tables::clock::Tsc;

    fn ideal(limit: f64) -> impl FnMut(f64) -> Result<Outcome, ()> {
        move |rate| Ok(Outcome { per_second: rate, lost: u64::from(rate > limit), ..Outcome::default() })
    }

    #[test]
    fn the_search_ends_just_below_the_limit() {
        let _alone = crate::crew::alone();
        for limit in [1.0, 17.0, 40.0, 99.0, 124.0] {
            let found = search(125.0, 0.5, ideal(limit)).unwrap();
            assert!(found.per_second <= limit && found.per_second > limit - 0.5, "{found:?} of {limit}");
        }
        assert_eq!(
            search(125.0, 1.0, ideal(0.0)).unwrap().per_second.total_cmp(&0.0),
            std::cmp::Ordering::Equal
        );
    }

    #[test]
    fn one_loss_is_forgiven_and_counted_two_are_not() {
        let _alone = crate::crew::alone();
        let mut trials = 0;
        let once = |rate: f64| -> Result<Outcome, ()> {
            trials += 1;
            Ok(Outcome { per_second: rate, lost: u64::from(trials == 1), ..Outcome::default() })
        };
        let found = search(100.0, 1.0, once).unwrap();
        assert!(found.per_second > 98.0 && found.trials.failed == 1, "{found:?}");
        // A generator that offers less than it should proves nothing.
        let slow = |rate: f64| -> Result<Outcome, ()> {
            Ok(Outcome { per_second: rate.min(30.0), ..Outcome::default() })
        };
        let found = search(100.0, 1.0, slow).unwrap();
        assert!(found.per_second <= 30.0 && found.per_second > 28.0, "{found:?}");
    }

    #[test]
    fn what_the_machine_did_is_void_and_not_held_against_the_box() {
        // Whatever is offered, the first four trials of a rate are disturbed.
        let (mut last, mut times) = (0.0, 0);
        let shared = |rate: f64| -> Result<Outcome, ()> {
            times = if rate.total_cmp(&last).is_eq() { times + 1 } else { 0 };
            last = rate;
            Ok(Outcome {
                per_second: rate,
                lost: u64::from(times < 4 || rate > 50.0),
                held_up: times < 4,
                ..Outcome::default()
            })
        };
        let found = search(100.0, 1.0, shared).unwrap();
        assert!(found.per_second > 49.0 && found.per_second <= 50.0, "{found:?}");
        let Trials { passed, failed, void, unknown } = found.trials;
        // Seven rates: each four times for nothing, and then once or twice.
        assert_eq!((passed + failed / 2, void, unknown), (7, 28, 0), "{found:?}");
        // A machine that never lets it run says nothing of the box, and that is no error either.
        let never =
            |_: f64| -> Result<Outcome, ()> { Ok(Outcome { lost: 1, held_up: true, ..Outcome::default() }) };
        let found = search(100.0, 1.0, never).unwrap();
        assert_eq!(found.trials, Trials { void: 35, unknown: 7, ..Trials::default() });
        let mut report = Report::new("ndr", &Tsc::process());
        found.trials.report(&mut report, "wire");
        assert_eq!(report.median("trials", &[("became", "void".into())]), Some(35.0));
        assert!(report.notes.iter().any(|note| note.contains("not the box's limit")), "{report}");
    }
}
