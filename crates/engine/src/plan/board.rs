//! Who carries what: the state that plans are made on.

use session::SHARDS;

/// Loads are scaled so that together they are about this: whole numbers compare exactly, and their products with
/// capacities fit 64 bits.
const TOTAL: f64 = (1u64 << 40) as f64;
/// Of a mean shard's load: what an idle shard counts for when shards are dealt out. It may not stay idle.
const IDLE_SHARD: f64 = 1.0 / 16.0;

/// One worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worker {
    /// Its weight; 0: it may not own shards.
    pub capacity: u64,
    /// What its shards come to.
    pub load: u64,
    /// What it should not exceed; see [`Board::set_ceilings`].
    pub ceiling: u64,
}

impl Worker {
    /// What it carries too much.
    pub fn excess(&self) -> u64 {
        self.load.saturating_sub(self.ceiling)
    }

    /// What it could carry beside.
    pub fn room(&self) -> u64 {
        if self.capacity == 0 { 0 } else { self.ceiling.saturating_sub(self.load) }
    }
}

/// Loads and owners of all shards. Every owner is a position in `workers`.
#[derive(Clone)]
pub(super) struct Board {
    /// Scaled, by shard.
    pub load: [u64; SHARDS],
    /// By shard.
    pub owner: [u8; SHARDS],
    /// Shards that stay where they are.
    pub pinned: [bool; SHARDS],
    /// By number.
    pub workers: Vec<Worker>,
}

/// A shard that alone is more than a worker's part of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heavy {
    pub shard: usize,
    /// Where it is best off.
    pub seat: usize,
    /// Its load in parts of what its seat carries if all is level.
    pub share: f64,
}

impl Board {
    /// The board as it is. A worker without an entry in `capacities` may not own shards; what is no load counts as none.
    pub fn new(loads: &[f64; SHARDS], owners: &[u8; SHARDS], capacities: &[u16]) -> Self {
        let load = |shard: usize| {
            let load = loads[shard];
            if load.is_finite() { load.max(0.0) } else { 0.0 }
        };
        let total: f64 = (0..SHARDS).map(load).sum();
        let factor = if total > 0.0 { TOTAL / total } else { 0.0 };
        Self::scaled(&std::array::from_fn(|shard| (load(shard) * factor) as u64), owners, capacities)
    }

    /// As [`Self::new`], with a little added for every shard, so that idle ones are dealt out evenly too.
    pub fn padded(loads: &[f64; SHARDS], owners: &[u8; SHARDS], capacities: &[u16]) -> Self {
        let plain = Self::new(loads, owners, capacities);
        let idle = (TOTAL / SHARDS as f64 * IDLE_SHARD) as u64;
        Self::scaled(&plain.load.map(|load| load + idle), owners, capacities)
    }

    fn scaled(load: &[u64; SHARDS], owners: &[u8; SHARDS], capacities: &[u16]) -> Self {
        let last = owners.iter().copied().max().unwrap_or(0);
        let count = capacities.len().min(usize::from(u8::MAX) + 1).max(usize::from(last) + 1);
        let capacity = |worker| u64::from(capacities.get(worker).copied().unwrap_or(0));
        let mut workers: Vec<_> =
            (0..count).map(|worker| Worker { capacity: capacity(worker), ..Worker::default() }).collect();
        for (load, owner) in load.iter().zip(owners) {
            workers[usize::from(*owner)].load += load;
        }
        Self { load: *load, owner: *owners, pinned: [false; SHARDS], workers }
    }

    /// The owner of a shard.
    pub fn owner(&self, shard: usize) -> usize {
        usize::from(self.owner[shard])
    }

    /// Gives a shard to a worker.
    pub fn give(&mut self, shard: usize, to: usize) {
        let from = self.owner(shard);
        self.workers[from].load -= self.load[shard];
        self.workers[to].load += self.load[shard];
        self.owner[shard] = to as u8;
    }

    /// The shards of a worker that have load and may move.
    pub fn movable(&self, worker: usize) -> impl Iterator<Item = usize> + '_ {
        (0..SHARDS)
            .filter(move |&shard| self.owner(shard) == worker && self.load[shard] > 0 && !self.pinned[shard])
    }

    /// How many shards are elsewhere than in `start`.
    pub fn moves_from(&self, start: &[u8; SHARDS]) -> usize {
        self.owner.iter().zip(start).filter(|(now, then)| now != then).count()
    }

    /// What all workers together carry above their ceilings: if those were what a core can do, what would be dropped.
    pub fn overload(&self) -> u64 {
        self.workers.iter().map(Worker::excess).sum()
    }

    /// The worker that is furthest above its ceiling for its capacity, among those that `passes` lets through.
    pub fn worst(&self, passes: impl Fn(usize) -> bool) -> Option<usize> {
        let over = self.workers.iter().enumerate().filter(|(number, w)| w.excess() > 0 && passes(*number));
        // a/b > c/d as ad > cb; who may own nothing comes first.
        let heavier = |a: &Worker, b: &Worker| {
            (a.excess() * b.capacity).cmp(&(b.excess() * a.capacity)).then(b.capacity.cmp(&a.capacity))
        };
        // The first of equals: `max_by` takes the last.
        over.rev().max_by(|(_, a), (_, b)| heavier(a, b)).map(|(number, _)| number)
    }

    /// The worker with the most room, the first of equals.
    pub fn roomiest(&self, except: usize) -> Option<usize> {
        let others = self.workers.iter().enumerate().filter(|(number, w)| *number != except && w.room() > 0);
        others.rev().max_by_key(|(_, w)| w.room()).map(|(number, _)| number)
    }

    /// The heaviest worker's load, for its capacity, in parts of the mean; 1 if there is none.
    pub fn peak(&self) -> f64 {
        let able = || self.workers.iter().filter(|w| w.capacity > 0);
        let mean =
            able().map(|w| w.load).sum::<u64>() as f64 / able().map(|w| w.capacity).sum::<u64>() as f64;
        let greatest = able().map(|w| w.load as f64 / w.capacity as f64).fold(0.0, f64::max);
        if mean > 0.0 { greatest / mean } else { 1.0 }
    }

    /// Sets each worker's ceiling to its part of the load and `tolerance` of that more.
    ///
    /// A shard that alone is more than a worker's part can't be made to fit. It is given a seat: a worker that it has to
    /// itself, its owner if that is as good as any. Its load is the seat's ceiling, and the part of the other workers is
    /// reckoned without both. There are always fewer seats than workers: the heaviest of what is left for one worker is
    /// no more than all that is left.
    pub fn set_ceilings(&mut self, tolerance: f64) -> Vec<Heavy> {
        let mut by_load: Vec<usize> = (0..SHARDS).filter(|&shard| self.load[shard] > 0).collect();
        by_load.sort_by_key(|&shard| std::cmp::Reverse(self.load[shard]));
        let mut free: Vec<bool> = self.workers.iter().map(|w| w.capacity > 0).collect();
        let mut seated = vec![0; self.workers.len()];
        let mut rest: u64 = self.workers.iter().filter(|w| w.capacity > 0).map(|w| w.load).sum();
        let mut capacity: u64 = self.workers.iter().map(|w| w.capacity).sum();
        let mut heavy = Vec::new();
        for shard in by_load {
            let (load, owner) = (self.load[shard], self.owner(shard));
            let open = |free: &[bool], worker: usize| free.get(worker).copied().unwrap_or(false);
            let able = self.workers.iter().enumerate().filter(|(number, _)| open(&free, *number));
            let Some(greatest) = able.clone().map(|(_, w)| w.capacity).max() else { break };
            if load * capacity <= rest * greatest {
                break;
            }
            let stays = open(&free, owner) && self.workers[owner].capacity == greatest;
            let best = able.filter(|(_, w)| w.capacity == greatest).min_by_key(|(_, w)| w.load);
            let seat = if stays || self.pinned[shard] { owner } else { best.map_or(owner, |(n, _)| n) };
            rest = rest.saturating_sub(load);
            if std::mem::replace(&mut free[seat], false) {
                capacity -= self.workers[seat].capacity;
            }
            seated[seat] += load;
            heavy.push(Heavy { shard, seat, share: 0.0 });
        }
        let level = if capacity > 0 { rest as f64 / capacity as f64 } else { 0.0 };
        for (worker, seated) in self.workers.iter_mut().zip(seated) {
            worker.ceiling = ((level * (1.0 + tolerance) * worker.capacity as f64).ceil() as u64).max(seated);
        }
        for heavy in &mut heavy {
            let part = level * self.workers[heavy.seat].capacity as f64;
            heavy.share = if part > 0.0 { self.load[heavy.shard] as f64 / part } else { f64::INFINITY };
        }
        heavy
    }
}
