//! How many workers should own shards.
//!
//! # The problem
//! A worker that polls costs a core's energy whether packets come or not, and packets are lost when too few poll. The number
//! follows the load, then; but each change moves shards, and figures are jumpy. What is wanted is a number that
//! rises quickly, falls slowly, and doesn't swing.
//!
//! # The model
//! A worker's *pressure* is the greater of its core load factor ([`Ewma`](super::ewma::Ewma)) and the occupancy of the rings into it: a worker of
//! a pipeline polls no port, and its ring tells (seed S1 §5.2.5 samples that one every millionth packet). A worker that sleeps
//! has none. From the pressure of all workers that own shards:
//! - **up**, when their mean has been above `high` for [`Policy::hold_up`]: to as many workers as bring it to the middle
//!   of both thresholds, at least one more. A full worker counts as 1 however much it drops, so the number may go up again
//!   after that; it grows by a factor each time.
//! - **down**, when the mean has been below `low` for the whole of [`Policy::hold_down`]: likewise, at least one less.
//!   `low` is less than half of `high`, so that no step up by itself leads below `low`, and no step down above `high`.
//! - **not at all** within [`Policy::cool_down`] of a change, or while one is going on.
//! - **Regret**: core load factors are not linear, so that a step down can overload those that stay. If a step up
//!   follows within `hold_down`, the next step down has to wait twice as long, up to 32 times; each such time
//!   without a change halves it again.
//!
//! **By hand.** [`Scaler::request`] sets the number until [`Scaler::release`]. Of several requests, and of those that come while
//! shards move, the last one counts; it is answered by [`Scaler::decide`] when the move has ended, without holds and cool-down. A number
//! outside of the bounds is an error and changes nothing.
//!
//! # When not to use it
//! It looks at the mean: one overloaded worker among idle ones is the [`Planner`](super::Planner)'s.

use std::fmt;
use std::time::Duration;
use tables::Nanos;

/// What a worker that may own shards looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Core load factor, 0 to 1.
    pub load: f32,
    /// How full the rings into it are, 0 to 1.
    pub ring: f32,
    /// It sleeps: its load factor stands still.
    pub asleep: bool,
}

impl Sample {
    /// The greater of both; nothing asleep, or of what is no number.
    fn pressure(&self) -> f64 {
        let clean = |value: f32| if value.is_finite() { f64::from(value.clamp(0.0, 1.0)) } else { 0.0 };
        if self.asleep { clean(self.ring) } else { clean(self.load).max(clean(self.ring)) }
    }
}

/// Bounds, thresholds and times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The fewest workers that own shards.
    pub min: usize,
    /// The most: those that were started and may own shards.
    pub max: usize,
    /// Mean pressure above which there are too few.
    pub high: f32,
    /// Mean pressure below which there are too many; less than half of `high`.
    pub low: f32,
    /// How long it must have been high.
    pub hold_up: Duration,
    /// How long it must have been low.
    pub hold_down: Duration,
    /// After a change nothing is changed for so long, except by hand.
    pub cool_down: Duration,
    /// Whether the number follows the load; if not, only requests change it.
    pub automatic: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min: 1,
            max: 1,
            high: 0.8,
            low: 0.3,
            hold_up: Duration::from_millis(100),
            hold_down: Duration::from_secs(10),
            cool_down: Duration::from_secs(1),
            automatic: false,
        }
    }
}

/// Why there is no such policy, or no such number of workers.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ScalerError {
    /// No number is in the bounds.
    #[error("at least {min} and at most {max} workers can't be")]
    Bounds {
        /// The fewest.
        min: usize,
        /// The most.
        max: usize,
    },
    /// Thresholds between which the number would swing.
    #[error(
        "`low` is {low} and `high` {high}: 0 < low < high / 2 and high < 1 keep the number from swinging"
    )]
    Thresholds {
        /// As given.
        low: f32,
        /// As given.
        high: f32,
    },
    /// A request for too many or too few.
    #[error("{asked} workers asked for; possible are {min} to {max}")]
    OutOfBounds {
        /// How many.
        asked: usize,
        /// The fewest.
        min: usize,
        /// The most.
        max: usize,
    },
}

/// Why the number changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// Somebody asked for it.
    Asked,
    /// The mean pressure was above `high` for long enough.
    Overload(f32),
    /// The mean pressure was below `low` for long enough.
    Idle(f32),
    /// The number was outside of the bounds.
    Bounds,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("asked for"),
            Self::Overload(mean) => write!(f, "workers are {:.0} % busy", mean * 100.0),
            Self::Idle(mean) => write!(f, "workers are only {:.0} % busy", mean * 100.0),
            Self::Bounds => f.write_str("out of bounds"),
        }
    }
}

/// Another number of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// How many are to own shards; not how many do.
    pub workers: usize,
    /// Why.
    pub why: Why,
}

/// Chooses the number of workers.
#[derive(Clone, Debug)]
pub struct Scaler {
    policy: Policy,
    asked: Option<usize>,
    /// Since when the mean has been on the same side outside of the thresholds.
    outside: Option<(Side, Nanos)>,
    /// When the last change was seen to end.
    changed: Option<Nanos>,
    /// When the last step down was decided.
    fell: Option<Nanos>,
    /// Steps down wait for `hold_down` times two to this power.
    regret: u32,
    /// From when on a time without a change lessens it.
    calm: Nanos,
    was_moving: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    High,
    Low,
}

/// The longest wait for a step down: `hold_down` times two to this power.
const MOST_REGRET: u32 = 5;

impl Scaler {
    /// Errors: bounds or thresholds that make no sense.
    pub fn new(policy: Policy) -> Result<Self, ScalerError> {
        let Policy { min, max, low, high, .. } = policy;
        if min == 0 || min > max {
            return Err(ScalerError::Bounds { min, max });
        }
        if !(low > 0.0 && low < high / 2.0 && high < 1.0) {
            return Err(ScalerError::Thresholds { low, high });
        }
        Ok(Self {
            policy,
            asked: None,
            outside: None,
            changed: None,
            fell: None,
            regret: 0,
            calm: Nanos(0),
            was_moving: false,
        })
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The number that was asked for, until it is released.
    pub fn asked(&self) -> Option<usize> {
        self.asked
    }

    /// Sets the number by hand; the last request counts.
    pub fn request(&mut self, workers: usize) -> Result<(), ScalerError> {
        let Policy { min, max, .. } = self.policy;
        if !(min..=max).contains(&workers) {
            return Err(ScalerError::OutOfBounds { asked: workers, min, max });
        }
        self.asked = Some(workers);
        Ok(())
    }

    /// Leaves the number to the load again; if the policy is not automatic it stays as it is.
    pub fn release(&mut self) {
        self.asked = None;
        self.outside = None;
    }

    /// Another number of workers, if there should be one. `active`: how many own shards, or will when the change that is going
    /// on (`moving`) has ended. `samples`: those workers. To be called every some milliseconds; times between calls may
    /// vary.
    pub fn decide(
        &mut self,
        now: Nanos,
        active: usize,
        samples: &[Sample],
        moving: bool,
    ) -> Option<Decision> {
        if moving {
            // What is measured now is neither the old state nor the new one.
            self.was_moving = true;
            self.outside = None;
            return None;
        }
        if std::mem::take(&mut self.was_moving) {
            self.changed = Some(now);
        }
        if let Some(asked) = self.asked {
            self.outside = None;
            return (asked != active).then(|| self.decided(now, asked, Why::Asked));
        }
        let Policy { min, max, automatic, .. } = self.policy;
        if !(min..=max).contains(&active) {
            return Some(self.decided(now, active.clamp(min, max), Why::Bounds));
        }
        if !automatic || samples.is_empty() {
            return None;
        }
        self.forgive(now);
        let sum: f64 = samples.iter().map(Sample::pressure).sum();
        let mean = sum / samples.len() as f64;
        let side = self.side(mean);
        let since = match (self.outside, side) {
            (Some((was, since)), Some(is)) if was == is => since,
            _ => now,
        };
        self.outside = side.map(|side| (side, since));
        let cool = self.changed.is_none_or(|changed| now.since(changed) >= nanos(self.policy.cool_down));
        if !cool {
            return None;
        }
        let wanted = (sum / self.middle()).ceil() as usize;
        match side? {
            Side::High if active < max && now.since(since) >= nanos(self.policy.hold_up) => {
                let patience = self.patience();
                if self.fell.take().is_some_and(|fell| now.since(fell) <= patience) {
                    self.regret = (self.regret + 1).min(MOST_REGRET);
                }
                let workers = wanted.clamp(active + 1, max);
                Some(self.decided(now, workers, Why::Overload(mean as f32)))
            }
            Side::Low if active > min && now.since(since) >= self.patience() => {
                let workers = wanted.clamp(min, active - 1);
                self.fell = Some(now);
                Some(self.decided(now, workers, Why::Idle(mean as f32)))
            }
            _ => None,
        }
    }

    fn decided(&mut self, now: Nanos, workers: usize, why: Why) -> Decision {
        self.outside = None;
        self.changed = Some(now);
        self.calm = now;
        Decision { workers, why }
    }

    fn side(&self, mean: f64) -> Option<Side> {
        if mean > f64::from(self.policy.high) {
            Some(Side::High)
        } else if mean < f64::from(self.policy.low) {
            Some(Side::Low)
        } else {
            None
        }
    }

    /// The pressure that a change aims at.
    fn middle(&self) -> f64 {
        f64::from(self.policy.low + self.policy.high) / 2.0
    }

    /// How long it must have been low.
    fn patience(&self) -> u64 {
        nanos(self.policy.hold_down).saturating_mul(1 << self.regret)
    }

    /// Regret fades.
    fn forgive(&mut self, now: Nanos) {
        if self.regret > 0 && now.since(self.calm) >= self.patience().saturating_mul(2) {
            self.regret -= 1;
            self.calm = now;
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn policy() -> Policy {
        Policy { max: 8, automatic: true, ..Policy::default() }
    }

    /// A scaler, the time and the workers that it decided on.
    struct Rig {
        scaler: Scaler,
        now: u64,
        active: usize,
        /// (ms, workers)
        changes: Vec<(u64, usize)>,
    }

    impl Rig {
        fn new(policy: Policy, active: usize) -> Self {
            Self { scaler: Scaler::new(policy).unwrap(), now: 0, active, changes: Vec::new() }
        }

        /// `pressure` by number of workers, for so many ms in steps of 10; changes happen at once.
        fn run(&mut self, ms: u64, pressure: impl Fn(usize) -> f32) {
            for _ in 0..ms / 10 {
                self.now += 10;
                let sample = Sample { load: pressure(self.active), ..Sample::default() };
                let samples = vec![sample; self.active];
                let decision = self.scaler.decide(Nanos(self.now * MS), self.active, &samples, false);
                if let Some(decision) = decision {
                    assert_ne!(decision.workers, self.active);
                    self.active = decision.workers;
                    self.changes.push((self.now, self.active));
                }
            }
        }
    }

    /// What a demand in cores looks like to so many workers.
    fn demand(cores: f32) -> impl Fn(usize) -> f32 {
        move |workers| (cores / workers as f32).min(1.0)
    }

    #[test]
    fn rises_at_once_and_falls_late() {
        let mut rig = Rig::new(policy(), 1);
        rig.run(1_000, demand(0.79));
        assert_eq!(rig.changes, []);
        rig.run(6_000, demand(4.0));
        // Full workers hide how much is wanted: 1, 2, 4 and then what 4 cores are at 55 %.
        assert_eq!(rig.changes, [(1_110, 2), (2_110, 4), (3_110, 8)]);
        rig.run(60_000, demand(2.0));
        assert_eq!((rig.active, rig.changes.len()), (4, 4));
        assert!(rig.changes[3].0 >= 17_000);
        rig.run(60_000, demand(2.0));
        assert_eq!(rig.changes.len(), 4);
        rig.run(60_000, demand(0.0));
        assert_eq!(rig.active, 1);
    }

    #[test]
    fn bursts_and_lulls_change_nothing() {
        let mut rig = Rig::new(policy(), 2);
        for _ in 0..100 {
            rig.run(90, demand(2.0));
            rig.run(9_000, demand(0.1));
            rig.run(10, demand(1.0));
        }
        assert_eq!(rig.changes, []);
    }

    #[test]
    fn figures_that_are_not_linear_swing_ever_less() {
        // One worker finds its bursts full, two find them nearly empty.
        let mut rig = Rig::new(policy(), 1);
        rig.run(3_600_000, |workers| if workers == 1 { 0.95 } else { 0.05 });
        let naive = 3_600_000 / (10_000 + 1_200) * 2;
        assert!(
            rig.changes.len() < naive as usize / 10,
            "{} changes, without regret {naive}",
            rig.changes.len()
        );
        assert!(rig.changes.len() > 4);
    }

    #[test]
    fn a_pipelines_ring_counts_and_a_sleepers_load_does_not() {
        let mut scaler = Scaler::new(policy()).unwrap();
        let full = Sample { load: 0.1, ring: 0.9, asleep: false };
        assert_eq!(scaler.decide(Nanos(0), 1, &[full], false), None);
        let decision = scaler.decide(Nanos(100 * MS), 1, &[full], false).unwrap();
        assert_eq!((decision.workers, decision.why), (2, Why::Overload(0.9)));
        assert_eq!(decision.why.to_string(), "workers are 90 % busy");
        let asleep = Sample { load: 0.9, ring: 0.0, asleep: true };
        assert_eq!(scaler.decide(Nanos(2_000 * MS), 2, &[asleep; 2], false), None);
        let decision = scaler.decide(Nanos(12_000 * MS), 2, &[asleep; 2], false).unwrap();
        assert_eq!((decision.workers, decision.why), (1, Why::Idle(0.0)));
    }

    #[test]
    fn of_requests_the_last_one_counts() {
        let mut scaler = Scaler::new(Policy { automatic: false, ..policy() }).unwrap();
        let decide = |scaler: &mut Scaler, ms, active, moving| {
            scaler.decide(Nanos(ms * MS), active, &[Sample { load: 1.0, ..Sample::default() }], moving)
        };
        assert_eq!(decide(&mut scaler, 0, 2, false), None);
        scaler.request(4).unwrap();
        scaler.request(3).unwrap();
        assert_eq!(decide(&mut scaler, 10, 2, false), Some(Decision { workers: 3, why: Why::Asked }));
        // While shards move towards 3, somebody wants 8, then 1, then too many.
        scaler.request(8).unwrap();
        assert_eq!(decide(&mut scaler, 20, 3, true), None);
        scaler.request(1).unwrap();
        let most = ScalerError::OutOfBounds { asked: 9, min: 1, max: 8 };
        assert_eq!(scaler.request(9), Err(most));
        assert_eq!(scaler.request(0), Err(ScalerError::OutOfBounds { asked: 0, min: 1, max: 8 }));
        assert_eq!(decide(&mut scaler, 30, 3, true), None);
        assert_eq!(decide(&mut scaler, 40, 3, false), Some(Decision { workers: 1, why: Why::Asked }));
        assert_eq!((decide(&mut scaler, 50, 1, false), scaler.asked()), (None, Some(1)));
        scaler.release();
        assert_eq!(decide(&mut scaler, 60_000, 1, false), None);
    }

    #[test]
    fn a_request_holds_against_the_load_until_released() {
        let mut rig = Rig::new(policy(), 4);
        rig.scaler.request(2).unwrap();
        rig.run(60_000, demand(8.0));
        assert_eq!(rig.changes, [(10, 2)]);
        rig.scaler.release();
        rig.run(1_000, demand(8.0));
        assert_eq!(rig.changes[1], (60_110, 4));
    }

    #[test]
    fn nothing_is_decided_from_figures_of_a_move() {
        let mut scaler = Scaler::new(policy()).unwrap();
        let busy = [Sample { load: 1.0, ..Sample::default() }];
        for ms in (0..500).step_by(10) {
            assert_eq!(scaler.decide(Nanos(ms * MS), 1, &busy, true), None);
        }
        // It ends at 500 ms: cool-down and hold begin.
        let decided =
            (500..3_000).step_by(10).find(|ms| scaler.decide(Nanos(ms * MS), 1, &busy, false).is_some());
        assert_eq!(decided, Some(1_500));
    }

    #[test]
    fn policies_that_make_no_sense_are_refused() {
        let refused = |change: fn(&mut Policy)| {
            let mut policy = policy();
            change(&mut policy);
            Scaler::new(policy).unwrap_err()
        };
        assert_eq!(refused(|p| p.min = 0), ScalerError::Bounds { min: 0, max: 8 });
        assert_eq!(refused(|p| p.min = 9), ScalerError::Bounds { min: 9, max: 8 });
        assert_eq!(refused(|p| p.low = 0.4), ScalerError::Thresholds { low: 0.4, high: 0.8 });
        assert_eq!(refused(|p| p.high = 1.0), ScalerError::Thresholds { low: 0.3, high: 1.0 });
        assert!(matches!(refused(|p| p.low = f32::NAN), ScalerError::Thresholds { .. }));
        assert!(matches!(refused(|p| p.low = 0.0), ScalerError::Thresholds { .. }));
        // More workers own shards than may: of a configuration before.
        let mut scaler = Scaler::new(policy()).unwrap();
        let decision = scaler.decide(Nanos(0), 12, &[], false).unwrap();
        assert_eq!(decision, Decision { workers: 8, why: Why::Bounds });
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

        /// Whatever the load does: the number is in its bounds, two steps are at least a cool-down apart, and a
        /// constant demand that suits some number is answered by one within them, for good.
        #[test]
        fn comes_to_rest(max in 1usize..64, loads in proptest::collection::vec(0f32..64.0, 0..20), last in 0f32..64.0) {
            let mut rig = Rig::new(Policy { max, ..policy() }, 1);
            for cores in loads {
                rig.run(2_000, demand(cores));
            }
            // Six doublings; and a regret of 32 times 10 s.
            rig.run(700_000, demand(last));
            let settled = rig.changes.len();
            rig.run(60_000, demand(last));
            prop_assert_eq!(rig.changes.len(), settled);
            let mean = last / rig.active as f32;
            prop_assert!(mean <= 0.8 || rig.active == max);
            prop_assert!(mean >= 0.3 || rig.active == 1);
            prop_assert!(rig.changes.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 1_000));
            prop_assert!(rig.changes.iter().all(|(_, workers)| (1..=max).contains(workers)));
        }

        #[test]
        fn no_figures_confuse_it(samples in proptest::collection::vec((any::<f32>(), any::<f32>(), any::<bool>()), 0..9),
                                 times: Vec<u64>, active: usize, moving: Vec<bool>) {
            let mut scaler = Scaler::new(policy()).unwrap();
            let samples: Vec<_> = samples.into_iter().map(|(load, ring, asleep)| Sample { load, ring, asleep }).collect();
            for (now, moving) in times.into_iter().zip(moving) {
                if let Some(decision) = scaler.decide(Nanos(now), active, &samples, moving) {
                    prop_assert!(decision.workers != active && (1..=8).contains(&decision.workers));
                }
            }
        }
    }
}
