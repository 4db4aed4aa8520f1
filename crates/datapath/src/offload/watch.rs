//! Which flows are heavy? Sample and hold: one packet in some dozens is looked at, and what is met again is counted.

use super::sight::{FlowName, Sighting};
use std::collections::HashMap;
use tables::Nanos;

/// A flow that was met in the present window.
#[derive(Clone, Copy, Debug)]
struct Watched {
    sighting: Sighting,
    /// Samples in this window, and the bytes of the user's packets in them.
    hits: u32,
    bytes: u64,
    /// When it was met first.
    since: Nanos,
    /// Windows in a row in which it was heavy.
    streak: u32,
}

/// A flow that is worth a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub sighting: Sighting,
    /// Packets a second.
    pub rate: u64,
    /// Bytes a second.
    pub bytes: u64,
}

/// See the module's documentation. At most `limit` flows are watched: what is met when all places are taken is met again later.
#[derive(Debug)]
pub(super) struct Watch {
    flows: HashMap<FlowName, Watched>,
    limit: usize,
    /// One packet in so many.
    every: u32,
    /// Packets until the next sample.
    countdown: u32,
    random: u64,
    began: Nanos,
}

impl Watch {
    pub fn new(limit: usize, every: u32, seed: u64) -> Self {
        let every = every.max(1);
        Self { flows: HashMap::new(), limit, every, countdown: every, random: seed | 1, began: Nanos(0) }
    }

    /// The position of the next sample in a burst of `n` packets, from `from` on. The distance between two is random: in traffic
    /// that repeats itself a fixed one would always meet the same flows.
    pub fn sample(&mut self, from: usize, n: usize) -> Option<usize> {
        let left = n.saturating_sub(from) as u32;
        if self.countdown > left {
            self.countdown -= left;
            return None;
        }
        let at = from + self.countdown as usize - 1;
        // Xorshift64 (Marsaglia).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.countdown = 1 + (self.random >> 32) as u32 % (2 * self.every - 1);
        Some(at)
    }

    /// A sample belongs to this flow.
    pub fn met(&mut self, now: Nanos, sighting: &Sighting) {
        let full = self.flows.len() >= self.limit;
        let name = sighting.name();
        if let Some(watched) = self.flows.get_mut(&name) {
            watched.hits += 1;
            watched.bytes += u64::from(sighting.len);
            watched.sighting = *sighting;
        } else if !full {
            let watched = Watched {
                sighting: *sighting,
                hits: 1,
                bytes: u64::from(sighting.len),
                since: now,
                streak: 0,
            };
            self.flows.insert(name, watched);
        }
    }

    /// Whether a window of this length has passed.
    pub const fn is_over(&self, now: Nanos, window: u64) -> bool {
        now.since(self.began) >= window
    }

    /// Ends a window: forgets flows that weren't heavy in it, and says which of the others were so in two windows in a row
    /// and have lived long enough, the heaviest first.
    pub fn turn(&mut self, now: Nanos, threshold: u64, lifetime: u64) -> Vec<Candidate> {
        let length = now.since(self.began).max(1);
        self.began = now;
        let per_second = |n: u64| {
            (u128::from(n) * u128::from(self.every) * u128::from(Nanos::SECOND) / u128::from(length)) as u64
        };
        let mut candidates = Vec::new();
        self.flows.retain(|_, watched| {
            let (rate, bytes) = (per_second(u64::from(watched.hits)), per_second(watched.bytes));
            if rate < threshold {
                return false;
            }
            watched.streak += 1;
            (watched.hits, watched.bytes) = (0, 0);
            if watched.streak >= 2 && now.since(watched.since) >= lifetime {
                candidates.push(Candidate { sighting: watched.sighting, rate, bytes });
            }
            true
        });
        candidates.sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.rate));
        candidates
    }

    /// No longer of interest: a rule takes care of it, or none can.
    pub fn forget(&mut self, name: &FlowName) {
        self.flows.remove(name);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.flows.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use io::offload::Pattern;
    use packet::MacAddr;

    fn flow(number: u8) -> Sighting {
        let pattern = Pattern::new(MacAddr::ZERO).to([10, 0, 0, number].into());
        Sighting { pattern, interface: 0, port: 0, shard: 0, slot: 0, key: None, len: 1000 }
    }

    #[test]
    fn samples_are_as_many_as_they_should_be() {
        let mut watch = Watch::new(10, 32, 7);
        let (mut n, mut before) = (0, [0; 64]);
        for _ in 0..20_000 {
            let mut from = 0;
            while let Some(at) = watch.sample(from, 64) {
                n += 1;
                before[at] += 1;
                from = at + 1;
            }
        }
        assert!((38_000..42_000).contains(&n), "{n} of 1,280,000 packets, one in 32");
        assert!(before.iter().all(|&n| n > 400), "every place in a burst is met: {before:?}");
        assert_eq!(watch.sample(0, 0), None);
        let mut all = Watch::new(10, 1, 7);
        assert!((0..64).all(|at| all.sample(at, 64) == Some(at)));
        assert_eq!(all.sample(64, 64), None);
    }

    #[test]
    fn only_what_stays_heavy_is_a_candidate() {
        let mut watch = Watch::new(2, 10, 1);
        let at = |tenths: u64| Nanos(tenths * Nanos::SECOND / 10);
        watch.turn(at(10), 1000, 0);
        for tenth in 10..16 {
            // 10,000 packets a second by the samples, 2,000 in the first window only, and one that finds no place.
            (0..100).for_each(|_| watch.met(at(tenth), &flow(1)));
            (0..if tenth == 10 { 20 } else { 1 }).for_each(|_| watch.met(at(tenth), &flow(2)));
            watch.met(at(tenth), &flow(3));
            let found = watch.turn(at(tenth + 1), 1000, 3 * Nanos::SECOND / 10);
            if tenth + 1 < 13 {
                assert!(found.is_empty(), "too young");
            } else {
                assert_eq!(found.len(), 1);
                assert_eq!((found[0].rate, found[0].bytes), (10_000, 10_000_000));
                assert_eq!(found[0].sighting.pattern, flow(1).pattern);
            }
        }
        watch.forget(&flow(1).name());
        assert!(watch.turn(at(20), 1, 0).is_empty());
    }
}
