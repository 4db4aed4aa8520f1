//! How many flows a worker may know, in whichever of its shards they are.
//!
//! **Problem.** The limit is one of memory, which a worker has one of. Divided among 512 shards it would refuse a UE its hundredth
//! flow while there is room for a million; not divided at all, the first who opens flows without end would leave none for others.
//!
//! **Model.** Each shard brings its part of the limit to the worker that has it, and takes it along when it moves. Shards draw on
//! what there is. When that is used up, a shard that has its part or more makes room itself; one that has less takes from one
//! that has more, the next in turn. So whoever has few flows gets them whatever others do. Within a shard the limit of a session
//! ([`crate::Config::flows_per_session`]) does the same.

use session::{SHARDS, ShardId};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Room {
    /// Of all shards together.
    limit: u32,
    /// Shards that are here.
    shards: u32,
    /// Flows that are known here.
    flows: u64,
    /// Of them those of each shard, side by side: all are looked at sooner than one shard.
    by_shard: Box<[u32]>,
    /// The shard that is looked at next for one that has more than its part.
    hand: usize,
}

impl Room {
    /// No shard is here.
    pub fn new(limit: u32) -> Self {
        Self { limit, shards: 0, flows: 0, by_shard: vec![0; SHARDS].into(), hand: 0 }
    }

    /// Another limit from now on.
    pub const fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// A shard with so many flows comes.
    pub fn come(&mut self, shard: ShardId, flows: usize) {
        self.shards += 1;
        self.flows += flows as u64;
        if let Some(known) = self.by_shard.get_mut(shard.index()) {
            *known = flows as u32;
        }
    }

    /// It goes.
    pub fn go(&mut self, shard: ShardId) {
        self.shards = self.shards.saturating_sub(1);
        if let Some(known) = self.by_shard.get_mut(shard.index()) {
            self.flows = self.flows.saturating_sub(u64::from(std::mem::take(known)));
        }
    }

    /// A flow was entered.
    pub fn entered(&mut self, shard: ShardId) {
        self.flows += 1;
        if let Some(known) = self.by_shard.get_mut(shard.index()) {
            *known += 1;
        }
    }

    /// One is no more.
    pub fn left(&mut self, shard: ShardId) {
        self.flows = self.flows.saturating_sub(1);
        if let Some(known) = self.by_shard.get_mut(shard.index()) {
            *known = known.saturating_sub(1);
        }
    }

    /// Flows that must go before another one comes.
    pub const fn lacks(&self) -> u64 {
        let limit = self.limit as u64 * self.shards as u64 / SHARDS as u64;
        (self.flows + 1).saturating_sub(limit)
    }

    /// Whose flow makes room for one of a shard. `None`: nobody has one.
    pub fn giver(&mut self, shard: ShardId) -> Option<ShardId> {
        let part = self.limit / SHARDS as u32;
        let of = |at: usize| self.by_shard.get(at).copied().unwrap_or(0);
        let own = of(shard.index());
        if own > 0 && own >= part {
            return Some(shard);
        }
        let from_hand = (self.hand..SHARDS).chain(0..self.hand);
        if let Some(richer) = from_hand.into_iter().find(|at| of(*at) > part) {
            // It gives until it has no more than its part.
            self.hand = richer;
            return Some(ShardId::from_hash(richer as u32));
        }
        (own > 0).then_some(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(number: usize) -> ShardId {
        ShardId::from_hash(number as u32)
    }

    #[test]
    fn shards_bring_their_part_and_take_it_along() {
        let mut room = Room::new(1000);
        assert_eq!((room.lacks(), room.giver(shard(1))), (1, None), "without a shard there is none");
        for number in 0..SHARDS / 2 {
            room.come(shard(number), 2);
        }
        room.go(shard(7));
        // 255 of 512 shards, 510 flows where there is room for 498.
        assert_eq!(room.lacks(), 510 + 1 - 498);
        for number in 100..113 {
            room.left(shard(number));
        }
        assert_eq!(room.lacks(), 0);
        room.entered(shard(9));
        assert_eq!(room.lacks(), 1);
    }

    #[test]
    fn who_has_more_than_its_part_gives_in_turn_and_nobody_else() {
        let mut room = Room::new(SHARDS as u32 * 4);
        for (number, flows) in [(3, 6), (5, 5), (SHARDS - 1, 4), (9, 1)] {
            room.come(shard(number), flows);
        }
        let mut gave = Vec::new();
        for _ in 0..3 {
            let giver = room.giver(shard(9)).map(ShardId::index);
            giver.into_iter().for_each(|at| room.left(shard(at)));
            gave.extend(giver);
        }
        assert_eq!(gave, [3, 3, 5]);
        assert_eq!(room.giver(shard(9)), Some(shard(9)), "nobody has more: its own");
        assert_eq!(room.giver(shard(8)), None, "it has none");
        assert_eq!(
            room.giver(shard(SHARDS - 1)),
            Some(shard(SHARDS - 1)),
            "who has its part makes room itself"
        );
    }
}
