//! How many unknown neighbours each user may make us ask for.
//!
//! A packet to a host of a link whom nobody has asked for yet is a question to the whole link, by ARP or neighbour discovery: a UE that scans
//! a /64 makes us shout as fast as it sends, and what we shout costs us and everybody there more than its packets. One limit for all would
//! do the scanner's work: nobody else's new neighbours would be found. So users have limits of their own, as many as a table of a fixed size
//! tells apart; who shares one with a scanner waits for new neighbours, not for known ones. A user is an IPv4 address or an IPv6 /64, before
//! any translation: who shares a public address with a scanner is another one. Routers and tunnels' far ends, which the configuration and
//! SMFs name, are asked for without it.

use tables::hash::mix;
use tables::{Nanos, RateLimiter};

/// Users who are told apart, at best.
const USERS: usize = 256;
/// New neighbours of one user in a second, and at once.
const RATE: u32 = 100;

/// See the module's documentation.
#[derive(Debug)]
pub struct Askers {
    seed: u64,
    limits: Box<[RateLimiter]>,
}

impl Askers {
    /// Nobody has asked. `seed`: random.
    pub fn new(seed: u64) -> Self {
        Self { seed, limits: (0..USERS).map(|_| RateLimiter::new(RATE, RATE)).collect() }
    }

    /// Whether this user's packet may make us ask for somebody new.
    pub fn may_ask(&mut self, user: u64, now: Nanos) -> bool {
        let place = (mix(user ^ self.seed, self.seed.rotate_left(23) | 1) >> 32) as usize % USERS;
        self.limits.get_mut(place).is_none_or(|limit| limit.allow(now))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_scans_uses_up_his_own_questions() {
        let mut askers = Askers::new(0x9e37_79b9_7f4a_7c15);
        for scanner in [0x0a00_0001, 0x2001_0db8_0001_0000] {
            let asked = (0..100_000).filter(|n| askers.may_ask(scanner, Nanos(n * 20_000))).count();
            // Two seconds, and what may be at once.
            assert!((290..=310).contains(&asked), "{asked}");
        }
        let now = Nanos(2 * Nanos::SECOND);
        let others = (2..=101).filter(|host| askers.may_ask(0x0a00_0000 + host, now)).count();
        assert!(others >= 95, "{others}");
    }
}
