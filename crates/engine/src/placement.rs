//! Which worker owns which shard, and which core a worker runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use session::{SHARDS, ShardId};
use std::ops::Range;

/// The most workers in a process: a shard is owned by one worker, and a worker's number is kept in a byte.
pub const MAX_WORKERS: usize = 128;

/// The owner of every shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap([u8; SHARDS]);

impl ShardMap {
    /// Deals the shards out in turn to these of `workers` workers, so that each has the same number give or take one.
    ///
    /// Errors: there are none, or more than [`MAX_WORKERS`].
    pub fn round_robin(workers: usize, owning: Range<usize>) -> Result<Self, InvalidWorkerCount> {
        if owning.is_empty() || owning.end > workers || workers > MAX_WORKERS {
            return Err(InvalidWorkerCount { workers, least: owning.start + 1 });
        }
        Ok(Self(std::array::from_fn(|shard| (owning.start + shard % owning.len()) as u8)))
    }

    /// These shards are this worker's.
    pub fn set(&mut self, shards: &[ShardId], worker: usize) {
        for shard in shards {
            if let Some(place) = self.0.get_mut(shard.index()) {
                *place = worker as u8;
            }
        }
    }

    /// The worker that owns the shard.
    #[inline]
    pub fn owner(&self, shard: ShardId) -> usize {
        self.0[shard.index() % SHARDS] as usize
    }

    /// The owner of each shard by its number.
    pub const fn as_bytes(&self) -> [u8; SHARDS] {
        self.0
    }

    /// The shards of one worker.
    pub fn shards_of(&self, worker: usize) -> impl Iterator<Item = ShardId> + '_ {
        ShardId::all().filter(move |&shard| self.owner(shard) == worker)
    }
}

/// There is no such number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{workers} workers asked for; possible are {least} to {MAX_WORKERS}")]
pub struct InvalidWorkerCount {
    /// How many were asked for.
    pub workers: usize,
    /// How many it takes, with a pipeline's dispatchers.
    pub least: usize,
}

/// The cores that this process may run on.
pub fn available_cores() -> Vec<usize> {
    sched_getaffinity(None)
        .map_or_else(|_| vec![0], |set| (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Pins the calling thread to one core.
pub fn pin(core: usize) -> std::io::Result<()> {
    pin_to_any(&[core])
}

/// Lets the calling thread run on these cores only.
pub fn pin_to_any(cores: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU {
            return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
        }
        set.set(core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_shard_has_one_owner_and_loads_are_level() {
        for workers in 1..=MAX_WORKERS {
            let map = ShardMap::round_robin(workers, 0..workers).unwrap();
            let counts: Vec<_> = (0..workers).map(|worker| map.shards_of(worker).count()).collect();
            assert_eq!(counts.iter().sum::<usize>(), SHARDS);
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
        assert_eq!(ShardMap::round_robin(0, 0..0), Err(InvalidWorkerCount { workers: 0, least: 1 }));
        assert!(ShardMap::round_robin(129, 0..129).is_err());
        let map = ShardMap::round_robin(4, 1..3).unwrap();
        assert_eq!(
            (map.shards_of(0).count(), map.shards_of(1).count(), map.shards_of(3).count()),
            (0, 256, 0)
        );
    }

    #[test]
    fn pins_to_a_core_that_it_has() {
        std::thread::spawn(|| {
            let core = *available_cores().last().unwrap();
            pin(core).unwrap();
            assert_eq!(available_cores(), [core]);
            assert!(pin(usize::MAX).is_err());
        })
        .join()
        .unwrap();
    }
}
