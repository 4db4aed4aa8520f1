//! Throughput.

use tables::Nanos;

/// Seconds that count in the smoothed rate: each has 1/4, those before what is left.
const SHARE: u64 = 4;
/// After so many seconds of silence nothing is left.
const FORGOTTEN: u64 = 64;

/// Octets per second, by whole seconds of the clock it is told.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rate {
    second: u64,
    octets: u64,
    best: u64,
    smoothed: u64,
}

impl Rate {
    /// More octets.
    pub const fn push(&mut self, octets: u64, now: Nanos) {
        self.turn(now);
        self.octets = self.octets.saturating_add(octets);
    }

    /// Octets of the best second that is over.
    pub const fn best(&mut self, now: Nanos) -> u64 {
        self.turn(now);
        self.best
    }

    /// Octets per second, smoothed: the last second that is over has a quarter, the one before a quarter of the rest, and so on.
    pub const fn smoothed(&mut self, now: Nanos) -> u64 {
        self.turn(now);
        self.smoothed
    }

    const fn turn(&mut self, now: Nanos) {
        // From one on: a clock may begin at nothing. The first second has none before it, and time that goes back is none.
        let second = now.0 / Nanos::SECOND + 1;
        let past = if self.second == 0 { 0 } else { second.saturating_sub(self.second) };
        if past > 0 {
            if self.octets > self.best {
                self.best = self.octets;
            }
            self.smoothed = self.smoothed - self.smoothed / SHARE + self.octets / SHARE;
            self.octets = 0;
            let mut silent = if past - 1 < FORGOTTEN { past - 1 } else { FORGOTTEN };
            while silent > 0 {
                self.smoothed -= self.smoothed.div_ceil(SHARE);
                silent -= 1;
            }
        }
        if second > self.second {
            self.second = second;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000;

    fn at(second: u64) -> Nanos {
        Nanos((START + second) * Nanos::SECOND)
    }

    #[test]
    fn the_best_second_and_a_smoothed_rate() {
        let mut rate = Rate::default();
        for (second, octets) in [(0, 400), (0, 400), (1, 1600), (2, 100)] {
            rate.push(octets, at(second));
        }
        // The third second is not over.
        assert_eq!((rate.best(at(2)), rate.smoothed(at(2))), (1600, 800 / 4 * 3 / 4 + 1600 / 4));
        assert_eq!(rate.smoothed(at(3)), 550 - 137 + 25);
        assert_eq!((rate.best(at(3)), rate.smoothed(at(1000))), (1600, 0));
    }

    #[test]
    fn a_clock_may_begin_at_nothing() {
        let mut rate = Rate::default();
        rate.push(100, Nanos(0));
        rate.push(300, Nanos(Nanos::SECOND));
        assert_eq!((rate.best(Nanos(Nanos::SECOND)), rate.best(Nanos(2 * Nanos::SECOND))), (100, 300));
    }

    #[test]
    fn time_that_goes_back_is_harmless() {
        let mut rate = Rate::default();
        rate.push(5, at(10));
        rate.push(5, at(3));
        assert_eq!(rate.best(at(11)), 10);
    }
}
