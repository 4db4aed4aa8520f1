//! Which shards keep a worker busy: for those who deal shards out, who must not hold up the worker by asking.

use session::{SHARDS, ShardId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A worker's packets by shard, since it started. Sampled: one packet of each burst counts for all of it, so that busy shards are
/// exact within a few percent after some hundred bursts. One worker writes, anybody reads.
#[derive(Clone, Debug)]
pub struct ShardLoads(Arc<[AtomicU64]>);

impl Default for ShardLoads {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl ShardLoads {
    /// Counts packets. The only writer: a plain load and store are enough.
    #[inline(always)]
    pub(crate) fn add(&self, shard: u16, packets: u64) {
        if let Some(count) = self.0.get(shard as usize) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(packets), Ordering::Relaxed);
        }
    }

    /// Packets of the shard so far, about.
    pub fn packets(&self, shard: ShardId) -> u64 {
        self.0.get(shard.index()).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
