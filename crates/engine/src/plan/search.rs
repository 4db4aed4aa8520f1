//! Branch and bound: the least overload, and the fewest moves to it, where few shards matter.
//!
//! Whatever plan relieves a worker above its ceiling has that worker give away a shard. So the search takes the worker that is
//! furthest above, tries each of its shards with each receiver, or leaves the worker as it is, and goes on with the
//! next. A shard moves once at most; a receiver that is now above its own ceiling gives in its turn, which is how
//! exchanges and rings are found. A branch ends where it can't become better than the best plan so far: as much
//! overload has been left already, or each worker's greatest shards would not suffice in the moves that remain.
//!
//! **The bound.** At most [`MOVES`] moves deep and [`STEPS`] steps wide, each a pass over the workers. Within these the result is
//! the best there is; a search that runs out of steps returns the best that it met, and does the same when it is
//! asked again.

use super::board::Board;

/// The most moves of a plan that is found here.
pub(super) const MOVES: usize = 8;
/// Moves tried in one search.
pub(super) const STEPS: u32 = 8_192;

/// A plan's worth: what is left above ceilings, then the number of moves.
type Cost = (u64, usize);

/// The moves (shard, to) of a plan that is better than `best`: less overload, or as little in fewer moves.
pub(super) fn better(board: &Board, best: Cost) -> Option<Vec<(usize, usize)>> {
    let shards = (0..board.workers.len()).map(|worker| {
        let mut shards: Vec<usize> = board.movable(worker).collect();
        shards.sort_by_key(|&shard| std::cmp::Reverse(board.load[shard]));
        shards
    });
    let mut search = Search {
        shards: shards.collect(),
        left: vec![false; board.workers.len()],
        board: board.clone(),
        path: Vec::with_capacity(MOVES),
        best,
        found: None,
        steps: STEPS,
    };
    if search.least_moves() < best.1 || best.0 > 0 {
        search.descend();
    }
    search.found
}

struct Search {
    board: Board,
    /// The shards of each worker at the start that may move, heaviest first.
    shards: Vec<Vec<usize>>,
    /// Workers that are left above their ceilings.
    left: Vec<bool>,
    path: Vec<(usize, usize)>,
    best: Cost,
    found: Option<Vec<(usize, usize)>>,
    steps: u32,
}

impl Search {
    fn has_moved(&self, shard: usize) -> bool {
        self.path.iter().any(|(moved, _)| *moved == shard)
    }

    /// Moves without which workers that are not left stay above their ceilings.
    fn least_moves(&self) -> usize {
        let needed = |worker: usize| {
            let mut excess = self.board.workers[worker].excess();
            let mut moves = 0;
            for &shard in self.shards[worker].iter().filter(|&&shard| !self.has_moved(shard)) {
                if excess == 0 {
                    break;
                }
                excess = excess.saturating_sub(self.board.load[shard]);
                moves += 1;
            }
            // Its shards don't suffice: no number of moves does.
            if excess > 0 { usize::MAX / 2 } else { moves }
        };
        let over = (0..self.left.len()).filter(|&w| !self.left[w] && self.board.workers[w].excess() > 0);
        over.map(needed).fold(0, usize::saturating_add)
    }

    fn record(&mut self, overload: u64) {
        if (overload, self.path.len()) < self.best {
            self.best = (overload, self.path.len());
            self.found = Some(self.path.clone());
        }
    }

    fn descend(&mut self) {
        let excess = |worker: usize| self.board.workers[worker].excess();
        let left: u64 = (0..self.left.len()).filter(|&worker| self.left[worker]).map(excess).sum();
        let moves = self.path.len();
        if (left, moves) >= self.best {
            return;
        }
        let Some(worst) = self.board.worst(|worker| !self.left[worker]) else {
            self.record(left);
            return;
        };
        if moves == MOVES {
            self.record(self.board.overload());
            return;
        }
        // As much is left as in the best plan: the others have to be relieved, in fewer moves than it has.
        if left == self.best.0 && moves.saturating_add(self.least_moves()) >= self.best.1 {
            return;
        }
        let mut tried = None;
        for at in 0..self.shards[worst].len() {
            let shard = self.shards[worst][at];
            let load = self.board.load[shard];
            // Of shards with the same load one is as good as another.
            if self.has_moved(shard) || tried.replace(load) == Some(load) {
                continue;
            }
            for fits in [true, false] {
                // Who has no room has to give something in turn.
                if !fits && moves + 2 > MOVES {
                    break;
                }
                if !self.try_receivers(shard, worst, fits) {
                    return;
                }
            }
        }
        self.left[worst] = true;
        self.descend();
        self.left[worst] = false;
    }

    /// Each worker that has room for the shard, or each that has not; false: there are no steps left.
    fn try_receivers(&mut self, shard: usize, from: usize, fits: bool) -> bool {
        let load = self.board.load[shard];
        let mut empty = None;
        for to in 0..self.board.workers.len() {
            let worker = self.board.workers[to];
            if to == from || worker.capacity == 0 || (worker.room() >= load) != fits {
                continue;
            }
            // Of empty workers of the same capacity one is as good as another.
            let kind = (worker.load == 0).then_some((worker.capacity, worker.ceiling));
            if kind.is_some() && std::mem::replace(&mut empty, kind) == kind {
                continue;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            self.board.give(shard, to);
            self.path.push((shard, to));
            self.descend();
            self.path.pop();
            self.board.give(shard, from);
        }
        true
    }
}
