//! Whose turn it is on the control thread: N4's and the workers', or that of those who ask.

use tables::Nanos;

/// Of the time in which N4 and workers have something to do, whoever asks gets one part in so many.
const SHARE: u64 = 20;

/// Readers come between: while there is nothing else to do at any time, else after a job's time nineteen times over.
#[derive(Debug, Default)]
pub(super) struct Turns {
    from: Nanos,
}

impl Turns {
    /// Whether a reader's job may begin; `busy`: N4 or a worker had something to do just now.
    pub const fn may(&self, now: Nanos, busy: bool) -> bool {
        !busy || now.0 >= self.from.0
    }

    /// A job was done.
    pub const fn spent(&mut self, begun: Nanos, ended: Nanos) {
        self.from = ended.plus(ended.since(begun).saturating_mul(SHARE - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_take_a_twentieth_of_a_busy_thread_and_all_of_an_idle_one() {
        let mut turns = Turns::default();
        let (mut now, mut read) = (Nanos(1_000), 0);
        while now.0 < 1_000_000_000 {
            if turns.may(now, true) {
                // Of all lengths: from a look at a counter to a bite of sessions.
                let took = 1_000 + now.0 % 1_000_000;
                turns.spent(now, now.plus(took));
                now = now.plus(took);
                read += took;
            }
            // A round of N4's.
            now = now.plus(50_000);
        }
        let share = read as f64 / now.0 as f64;
        assert!((0.04..=0.051).contains(&share), "{share}");
        turns.spent(now, now.plus(1_000_000));
        assert!(turns.may(now.plus(1_000_000), false) && !turns.may(now.plus(1_000_000), true));
    }
}
