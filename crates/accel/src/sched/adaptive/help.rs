//! Does it pay that cores decode when there is more to do than anybody can?
//!
//! By the costs it always does: what a core does, the accelerator needn't. But cores may take from the accelerator what no cost tells: memory, caches, or, where there are more threads than
//! cores, the time of the thread that serves it. So it is tried: for some time cores help, for some time they don't, and what pays is kept. It is a bandit with two arms, whose reward is the
//! number of octets that come back in a second. Only times in which packets had to wait outside count: else as much comes back as comes in, and there is no question.

use tables::Nanos;

/// Nanoseconds of a trial.
const TRIAL: u64 = Nanos::SECOND / 10;

/// Decisions of a trial that found no worker, from which on there is more to do than anybody can.
const REFUSALS: u32 = 20;

/// Of so many trials one is for the arm that seems to pay less.
const EXPLORES: u32 = 16;

/// How much of what was seen before is worth after one more trial.
const KEEPS: f64 = 0.7;

/// See the [module](self).
#[derive(Debug, Clone)]
pub struct Help {
    /// Octets a second without and with help.
    rates: [Option<f64>; 2],
    helps: bool,
    since: Nanos,
    octets: f64,
    refusals: u32,
    trials: u32,
}

impl Default for Help {
    fn default() -> Self {
        Self { rates: [None; 2], helps: true, since: Nanos(0), octets: 0.0, refusals: 0, trials: 0 }
    }
}

impl Help {
    /// So many octets are decoded.
    pub fn came_back(&mut self, octets: u32) {
        self.octets += f64::from(octets);
    }

    /// A packet found no worker.
    pub fn refused(&mut self) {
        self.refusals += 1;
    }

    /// Whether cores help now.
    pub fn may(&mut self, now: Nanos) -> bool {
        let gone = now.since(self.since);
        if gone >= TRIAL {
            self.end(gone, now);
        }
        self.helps
    }

    fn end(&mut self, gone: u64, now: Nanos) {
        let rate = self.octets / gone as f64;
        let is_saturated = self.refusals >= REFUSALS && gone < 2 * TRIAL;
        if is_saturated {
            let known = &mut self.rates[usize::from(self.helps)];
            *known = Some(known.map_or(rate, |known| known * KEEPS + rate * (1.0 - KEEPS)));
            self.trials += 1;
        }
        self.helps = match self.rates {
            _ if !is_saturated => true,
            [_, None] => true,
            [None, _] => false,
            [Some(without), Some(with)] => (with >= without) != self.trials.is_multiple_of(EXPLORES),
        };
        (self.since, self.octets, self.refusals) = (now, 0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seconds in which help is worth this factor; the share of time in which there was help.
    fn helped(help: &mut Help, from: u64, seconds: u64, worth: f64) -> f64 {
        let (mut with, steps) = (0, seconds * 1000);
        for step in 0..steps {
            help.refused();
            let may = help.may(Nanos(from * Nanos::SECOND + step * 1_000_000));
            with += u64::from(may);
            help.came_back(if may { (10_000.0 * worth) as u32 } else { 10_000 });
        }
        with as f64 / steps as f64
    }

    #[test]
    fn what_pays_is_done_and_what_does_not_is_left() {
        let mut help = Help::default();
        assert!(helped(&mut help, 0, 20, 1.03) > 0.9);
        // It changes, and that is seen.
        helped(&mut help, 20, 10, 0.9);
        assert!(helped(&mut help, 30, 20, 0.9) < 0.1);
        helped(&mut help, 50, 10, 1.1);
        assert!(helped(&mut help, 60, 20, 1.1) > 0.9);
        // With little to do, help is never in question.
        (0..20).for_each(|tenth| assert!(tenth < 2 || help.may(Nanos(90 * Nanos::SECOND + tenth * TRIAL))));
    }
}
