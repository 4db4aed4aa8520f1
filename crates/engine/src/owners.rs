//! Who owns which shard, as every worker sees it at once.

use crate::placement::ShardMap;
use session::{SHARDS, ShardId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// One byte a shard, read by whoever has a packet of another worker's shard. Written by the worker that takes a shard over, before it
/// tells the others ([`crate::moves`]).
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    owners: Arc<[AtomicU8]>,
    /// Whether a shard has been inherited from a worker that died.
    inherited: Arc<[AtomicBool]>,
}

impl Owners {
    pub fn new(map: &ShardMap) -> Self {
        Self {
            owners: ShardId::all().map(|shard| AtomicU8::new(map.owner(shard) as u8)).collect(),
            inherited: ShardId::all().map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The worker that packets of this shard go to.
    #[inline]
    pub fn owner(&self, shard: ShardId) -> usize {
        self.owners.get(shard.index() % SHARDS).map_or(0, |owner| usize::from(owner.load(Ordering::Acquire)))
    }

    /// From now on packets of these shards go to this worker.
    pub fn set(&self, shards: &[ShardId], worker: usize) {
        for place in shards.iter().filter_map(|shard| self.owners.get(shard.index())) {
            place.store(worker as u8, Ordering::Release);
        }
    }

    /// As [`Owners::set`], for shards of a dead worker.
    pub fn set_inherited(&self, shards: &[ShardId], worker: usize) {
        for place in shards.iter().filter_map(|shard| self.inherited.get(shard.index())) {
            place.store(true, Ordering::Relaxed);
        }
        self.set(shards, worker);
    }

    /// Whether the shard has survived a worker already.
    pub fn was_inherited(&self, shard: ShardId) -> bool {
        self.inherited.get(shard.index()).is_some_and(|inherited| inherited.load(Ordering::Relaxed))
    }
}
