//! What a worker's step costs, learned from what it has done: a fixed time, and a time for each octet. It is the line through what was seen of late, by weighted least squares.
//!
//! Under load all batches are alike, and say nothing of what smaller ones would take. So the slope is held to what it was, the more the less the batches differ (a ridge).
//! A worker that becomes slower or faster is noticed by two surprises in a row: then all that was seen is taken to have changed in the same proportion.

use tables::Nanos;

/// How much of what was seen is still worth after one more observation.
const KEEPS: f64 = 0.9;

/// A prediction that is off by this factor is a surprise.
const SURPRISE: f64 = 1.6;

/// How much the slope is held: as by batches that differ by this share of their size (squared).
const RIDGE: f64 = 1e-3;

/// What one worker takes for one step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Nanoseconds whatever there is to do.
    fixed: f64,
    /// Nanoseconds for each octet.
    octet: f64,
    /// The sum of weights, and of octets, nanoseconds, octets squared, and octets times nanoseconds with these weights.
    sums: [f64; 5],
    surprises: u8,
    last: Nanos,
}

impl Cost {
    /// Nanoseconds for so many octets. Of what was never seen, none: so it is tried.
    #[inline]
    pub fn predict(&self, octets: f64) -> f64 {
        self.fixed + self.octet * octets
    }

    /// Nanoseconds whatever there is to do.
    pub fn fixed(&self) -> f64 {
        self.fixed
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.sums[0] > 0.0
    }

    /// When something was seen last.
    pub fn last_seen(&self) -> Nanos {
        self.last
    }

    /// So many octets took so many nanoseconds.
    pub fn learn(&mut self, octets: f64, nanos: f64, now: Nanos) {
        let octets = octets.max(1.0);
        let expected = self.predict(octets);
        if !self.is_known() {
            // Half and half, until something else is seen.
            self.octet = nanos / octets / 2.0;
        } else if nanos > expected * SURPRISE || nanos * SURPRISE < expected {
            self.surprises += 1;
            if self.surprises >= 2 {
                let factor = nanos / expected.max(1.0);
                self.octet *= factor;
                self.sums[2] *= factor;
                self.sums[4] *= factor;
                self.surprises = 0;
            }
        } else {
            self.surprises = 0;
        }
        self.last = now;
        for (sum, one) in self.sums.iter_mut().zip([1.0, octets, nanos, octets * octets, octets * nanos]) {
            *sum = *sum * KEEPS + one;
        }
        let [weight, x, y, xx, xy] = self.sums;
        let (x, y) = (x / weight, y / weight);
        let (variance, covariance) = (xx / weight - x * x, xy / weight - x * y);
        let ridge = RIDGE * x * x;
        self.octet = ((covariance + ridge * self.octet) / (variance.max(0.0) + ridge)).clamp(0.0, y / x);
        self.fixed = y - self.octet * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::traffic::Chance;

    fn taught(cost: &mut Cost, fixed: f64, octet: f64, times: usize) {
        let mut chance = Chance::new(9);
        for at in 0..times {
            let octets = (1000 + chance.below(90_000)) as f64;
            cost.learn(octets, fixed + octet * octets, Nanos(at as u64));
        }
    }

    #[test]
    fn a_line_is_learned_in_a_few_batches() {
        let mut cost = Cost::default();
        assert!(!cost.is_known() && cost.predict(1e5) == 0.0);
        taught(&mut cost, 3.7e6, 24.0, 6);
        assert!((cost.predict(5e4) / (3.7e6 + 24.0 * 5e4) - 1.0).abs() < 0.01, "{cost:?}");
        assert!((cost.fixed() / 3.7e6 - 1.0).abs() < 0.05, "{cost:?}");
        assert!((cost.octet / 24.0 - 1.0).abs() < 0.05, "{cost:?}");
    }

    #[test]
    fn a_slower_machine_is_known_after_three_batches() {
        let mut cost = Cost::default();
        taught(&mut cost, 3.7e6, 24.0, 50);
        taught(&mut cost, 3.0 * 3.7e6, 3.0 * 24.0, 3);
        assert!((cost.predict(5e4) / (3.0 * (3.7e6 + 24.0 * 5e4)) - 1.0).abs() < 0.15, "{cost:?}");
    }

    #[test]
    fn batches_that_are_all_alike_spoil_nothing() {
        let mut cost = Cost::default();
        (0..100_000).for_each(|at| cost.learn(1e5, 6e6, Nanos(at)));
        assert!((cost.predict(1e5) / 6e6 - 1.0).abs() < 1e-3, "{cost:?}");
        assert!(cost.predict(2e4) > 0.0 && cost.predict(2e4) < 6e6, "{cost:?}");
        taught(&mut cost, 3.7e6, 24.0, 10);
        assert!((cost.predict(5e4) / (3.7e6 + 24.0 * 5e4) - 1.0).abs() < 0.05, "{cost:?}");
    }
}
