//! Control's part in moves: which comes next, and how they went.

use super::{BATCH, Move};
use crate::placement::ShardMap;
use session::ShardId;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Moves in a row that don't begin for want of an answer, and whose shards are still wanted elsewhere.
const RETRIES: u32 = 5;
/// Pauses that percentiles are taken of: the last so many.
const REMEMBERED: usize = 4_096;

/// How a move went, as its receiver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub number: u64,
    pub shards: usize,
    pub parked: u64,
    pub overflowed: u64,
    pub hurried: bool,
    /// How long the first parked packet waited, in nanoseconds.
    pub pause: u64,
}

/// How all moves went so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveCounters {
    /// Moves that ended well.
    pub moves: u64,
    /// Shards that they moved.
    pub shards: u64,
    /// Packets parked in between.
    pub parked: u64,
    /// Packets that found no room to park: dropped as `move-parking-full`.
    pub overflowed: u64,
    /// Moves in which a worker did not answer in time, so that packets may have been overtaken.
    pub hurried: u64,
    /// Moves that did not begin, because the giver did not answer.
    pub given_up: u64,
    /// Moves that wait or run now, in shards.
    pub outstanding: usize,
    /// How long packets of moved shards waited at most, in nanoseconds, of the last moves: sorted.
    pub pauses: Vec<u64>,
}

impl MoveCounters {
    /// The pause that `share` (0 to 1) of the last moves did not exceed, in nanoseconds; 0 if there were none.
    pub fn pause(&self, share: f64) -> u64 {
        let last = self.pauses.len().saturating_sub(1);
        self.pauses.get((share.clamp(0.0, 1.0) * last as f64).round() as usize).copied().unwrap_or(0)
    }
}

#[derive(Debug)]
struct Current {
    order: Arc<Move>,
    /// The giver's fence that comes first; `None`: it was passed, and the receiver has its order.
    fence: Option<u64>,
    since: Instant,
}

/// The moves that are wanted, one after the other.
#[derive(Debug)]
pub(crate) struct Director {
    /// The giver has so long to carry out the orders before a move; else there is no move.
    patience: Duration,
    wanted: VecDeque<(ShardId, usize)>,
    current: Option<Current>,
    last: u64,
    /// Moves in a row that were given up because the giver did not answer.
    late: u32,
    counters: MoveCounters,
    pauses: VecDeque<u64>,
}

impl Director {
    /// No moves. A giver that does not answer is waited for so long.
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            wanted: VecDeque::new(),
            current: None,
            last: 0,
            late: 0,
            counters: MoveCounters::default(),
            pauses: VecDeque::new(),
        }
    }

    /// Wants shards elsewhere. What was wanted of them before is forgotten.
    pub fn want(&mut self, shards: impl IntoIterator<Item = (ShardId, usize)>) {
        for (shard, to) in shards {
            self.wanted.retain(|(other, _)| *other != shard);
            self.wanted.push_back((shard, to));
        }
    }

    /// The next move, if none runs: shards that go from one worker to another, as many as are next to each other and as may go at once.
    /// Shards that are where they are wanted, and receivers that are not `able`, are left out.
    pub fn next(&mut self, map: &ShardMap, able: impl Fn(usize) -> bool) -> Option<Arc<Move>> {
        if self.current.is_some() {
            return None;
        }
        let mut shards = Vec::new();
        let mut way = None;
        while let Some(&(shard, to)) = self.wanted.front() {
            let from = map.owner(shard);
            if from != to && able(to) && able(from) {
                if shards.len() == BATCH || *way.get_or_insert((from, to)) != (from, to) {
                    break;
                }
                shards.push(shard);
            }
            self.wanted.pop_front();
        }
        let (from, to) = way?;
        self.last += 1;
        Some(Arc::new(Move { number: self.last, from, to, shards: shards.into() }))
    }

    /// A move begins as soon as the giver has passed this fence.
    pub fn begin(&mut self, order: Arc<Move>, fence: u64) {
        self.current = Some(Current { order, fence: Some(fence), since: Instant::now() });
    }

    /// The move whose receiver may have its order now, `passed` being the last fence that a worker has passed.
    pub fn ready(&mut self, passed: impl Fn(usize) -> u64) -> Option<Arc<Move>> {
        let current = self.current.as_mut()?;
        if passed(current.order.from) < current.fence? {
            return None;
        }
        current.fence = None;
        Some(Arc::clone(&current.order))
    }

    /// The move that is not to be, because its giver does not answer. A worker that was kept from running for a moment is asked again,
    /// after all others; one that doesn't run at all isn't asked for ever.
    pub fn give_up_late(&mut self) -> Option<Arc<Move>> {
        let patience = self.patience;
        let order = self.give_up(|current| current.fence.is_some() && current.since.elapsed() > patience)?;
        self.late += 1;
        if self.late <= RETRIES {
            for &shard in &order.shards {
                if self.wanted.iter().all(|(other, _)| *other != shard) {
                    self.wanted.push_back((shard, order.to));
                }
            }
        }
        Some(order)
    }

    /// The move that can't go on, because this worker took part in it and is dead.
    pub fn give_up_with(&mut self, dead: usize) -> Option<Arc<Move>> {
        self.give_up(|current| dead == current.order.to || dead == current.order.from)
    }

    /// The move whose receiver does not have its order yet: everything ends.
    pub fn give_up_unbegun(&mut self) -> Option<Arc<Move>> {
        self.give_up(|current| current.fence.is_some())
    }

    fn give_up(&mut self, whether: impl Fn(&Current) -> bool) -> Option<Arc<Move>> {
        let current = self.current.take_if(|current| whether(current))?;
        self.counters.given_up += 1;
        Some(current.order)
    }

    /// The receiver reports.
    pub fn moved(&mut self, moved: Moved) {
        self.current.take_if(|current| current.order.number == moved.number);
        self.late = 0;
        let counters = &mut self.counters;
        counters.moves += 1;
        counters.shards += moved.shards as u64;
        counters.parked += moved.parked;
        counters.overflowed += moved.overflowed;
        counters.hurried += u64::from(moved.hurried);
        if self.pauses.len() == REMEMBERED {
            self.pauses.pop_front();
        }
        self.pauses.push_back(moved.pause);
    }

    /// Whether a move runs or is wanted.
    pub fn is_idle(&self) -> bool {
        self.current.is_none() && self.wanted.is_empty()
    }

    pub fn counters(&self) -> MoveCounters {
        let mut counters = self.counters.clone();
        counters.outstanding =
            self.wanted.len() + self.current.as_ref().map_or(0, |current| current.order.shards.len());
        counters.pauses = self.pauses.iter().copied().collect();
        counters.pauses.sort_unstable();
        counters
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Longer than any machine takes between two lines.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Lets the current move be late.
    fn give_up(director: &mut Director) -> Option<Arc<Move>> {
        director.current.as_mut()?.since -= PATIENCE + Duration::from_millis(1);
        director.give_up_late()
    }

    #[test]
    fn shards_of_a_late_giver_are_wanted_again_but_not_for_ever() {
        let map = ShardMap::round_robin(2, 0..2).unwrap();
        let [first, second] = [0, 2].map(ShardId::from_hash);
        let mut director = Director::new(PATIENCE);
        director.want([(first, 1), (second, 1)]);
        for attempt in 0..=RETRIES {
            let order = director.next(&map, |_| true).unwrap();
            assert_eq!((&*order.shards, order.from, order.to), (&[first, second][..], 0, 1), "{attempt}");
            director.begin(order, 1);
            assert!(director.give_up_late().is_none(), "not yet");
            assert!(give_up(&mut director).is_some());
        }
        assert!(director.next(&map, |_| true).is_none() && director.is_idle());
        assert_eq!(director.counters().given_up, u64::from(RETRIES) + 1);

        // What is wanted since counts; and a move that ends well makes up for those that did not begin.
        director.want([(first, 1), (second, 1)]);
        let order = director.next(&map, |_| true).unwrap();
        let moved =
            Moved { number: order.number, shards: 2, parked: 0, overflowed: 0, hurried: false, pause: 0 };
        director.begin(order, 2);
        director.moved(moved);
        director.want([(first, 1), (second, 1)]);
        let order = director.next(&map, |_| true).unwrap();
        director.begin(order, 3);
        director.want([(second, 0)]);
        assert!(give_up(&mut director).is_some());
        let order = director.next(&map, |_| true).unwrap();
        assert_eq!((&*order.shards, order.to), (&[first][..], 1));
    }
}
