//! How often Millrace answers: a limit for each kind of answer, so that a flood of packets that ask for one never becomes
//! a flood of answers.

use tables::Nanos;

/// So many a second, in bursts of up to a tenth of a second's worth.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    per_second: u64,
    /// In units of one answer times a second of nanoseconds: what elapsed time earns without a division.
    tokens: u64,
    last: Nanos,
}

impl Limiter {
    /// A full bucket.
    pub const fn new(per_second: u32) -> Self {
        let mut limiter = Self { per_second: per_second as u64, tokens: 0, last: Nanos(0) };
        limiter.tokens = limiter.depth();
        limiter
    }

    const fn depth(&self) -> u64 {
        let tenth = self.per_second * (Nanos::SECOND / 10);
        if self.per_second > 0 && tenth < Nanos::SECOND { Nanos::SECOND } else { tenth }
    }

    /// Whether one more may be sent; counts it if so.
    pub const fn allow(&mut self, now: Nanos) -> bool {
        let elapsed = now.since(self.last);
        // More than a second fills the bucket anyway, and could overflow.
        let elapsed = if elapsed > Nanos::SECOND { Nanos::SECOND } else { elapsed };
        let earned = self.tokens + elapsed * self.per_second;
        let depth = self.depth();
        self.tokens = if earned > depth { depth } else { earned };
        if now.0 > self.last.0 {
            self.last = now;
        }
        if self.tokens < Nanos::SECOND {
            return false;
        }
        self.tokens -= Nanos::SECOND;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_said() {
        let mut limiter = Limiter::new(100);
        let start = Nanos(7 * Nanos::SECOND);
        let sent = (0..100_000u64).filter(|i| limiter.allow(start.plus(i * 20_000))).count();
        assert!((200..=211).contains(&sent), "{sent} in two seconds");
        let mut never = Limiter::new(0);
        assert!(!never.allow(start));
        let mut rare = Limiter::new(1);
        assert!(rare.allow(start));
        assert!(!rare.allow(start.plus(Nanos::SECOND / 2)));
        assert!(rare.allow(start.plus(Nanos::SECOND)));
    }
}
