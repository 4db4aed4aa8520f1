//! How often something is told: each kind of thing once in a while, and all kinds together not too often.

use std::collections::HashMap;
use std::hash::Hash;
use tables::Nanos;

/// A kind is told at most once in this time.
const PERIOD: u64 = 60 * Nanos::SECOND;
/// Kinds that are remembered; beyond, the one that was told longest ago is forgotten.
const MAX_KINDS: usize = 128;

/// A limiter.
#[derive(Debug)]
pub(super) struct Rate<K> {
    kinds: HashMap<K, Held>,
    /// Lines in a period, of whatever kind.
    lines: u32,
    /// When the current period began.
    begun: Nanos,
    /// Lines told in it.
    told: u32,
}

/// A kind that was told, or would have been.
#[derive(Debug)]
struct Held {
    last: Nanos,
    /// Times that it was not told since.
    more: u64,
}

impl<K: Copy + Eq + Hash> Rate<K> {
    /// At most so many lines in a minute.
    pub fn new(lines: u32) -> Self {
        Self { kinds: HashMap::new(), lines, begun: Nanos(0), told: 0 }
    }

    /// Whether this is to be told now, and if so, how many of its kind were not told since the last one that was.
    pub fn may(&mut self, now: Nanos, kind: K) -> Option<u64> {
        if now.since(self.begun) >= PERIOD {
            (self.begun, self.told) = (now, 0);
        }
        let full = self.told >= self.lines;
        if let Some(held) = self.kinds.get_mut(&kind) {
            if full || now.since(held.last) < PERIOD {
                held.more += 1;
                return None;
            }
            self.told += 1;
            held.last = now;
            return Some(std::mem::take(&mut held.more));
        }
        if full {
            return None;
        }
        if self.kinds.len() >= MAX_KINDS
            && let Some(oldest) = self.kinds.iter().min_by_key(|(_, held)| held.last).map(|(kind, _)| *kind)
        {
            self.kinds.remove(&oldest);
        }
        self.told += 1;
        self.kinds.insert(kind, Held { last: now, more: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = Nanos::SECOND;

    #[test]
    fn each_kind_once_a_minute() {
        let mut rate = Rate::new(100);
        assert_eq!(rate.may(Nanos(0), 1), Some(0));
        for _ in 0..7 {
            assert_eq!(rate.may(Nanos(59 * SECOND), 1), None);
        }
        assert_eq!(rate.may(Nanos(59 * SECOND), 2), Some(0), "another kind");
        assert_eq!(rate.may(Nanos(60 * SECOND), 1), Some(7));
        assert_eq!(rate.may(Nanos(120 * SECOND), 1), Some(0));
    }

    #[test]
    fn all_kinds_together_and_what_is_remembered_of_them_are_bounded() {
        let mut rate = Rate::new(10);
        let told = (0..100_000).filter(|kind| rate.may(Nanos(SECOND), *kind).is_some()).count();
        assert_eq!((told, rate.kinds.len()), (10, 10));
        for minute in 1..100 {
            let now = Nanos(minute * 60 * SECOND + SECOND);
            let told = (0..100_000).filter(|kind| rate.may(now, minute * 1_000_000 + kind).is_some()).count();
            assert_eq!(told, 10);
        }
        assert_eq!(rate.kinds.len(), MAX_KINDS);
    }
}
