//! Which worker should own which shard, and how many workers there should be.
//!
//! # The problem
//! Shards are dealt out evenly, traffic is not: a few subscribers carry most of it, and they hash where they hash. A worker
//! with more than its part drops packets while others idle. Moving a shard mends that, and costs a pause of its
//! packets and work on two cores; so a plan should move few shards, and none for the sake of noise. When all are
//! busy another worker is wanted, when most idle one less.
//!
//! # The model
//! Policy only: plain numbers and times in, moves and numbers out. No thread, no clock, no atomics, so the same code runs
//! in the engine, in a simulation of 64 workers and in a property test. The mechanism that moves a shard is elsewhere.
//! - [`Planner`]: given the load of each of the 512 shards, their owners and the workers' capacities, the fewest moves
//!   that level the workers.
//! - [`vacate`], [`occupy`], [`scale`]: the moves that take all shards off a worker, or give a new one its part.
//! - [`Scaler`](scaler::Scaler): how many workers, from how busy they are.
//! - [`Ewma`](ewma::Ewma): how busy a worker is, cheap enough for every poll.
//!
//! **Level.** Each worker has a *ceiling*: its part of the load by capacity, and [`Limits::settle`] of it more. What workers
//! carry above their ceilings, in sum, is the *overload*; a plan brings it to zero, or as low as it can. A shard that is
//! more than a worker's part by itself gets a worker to itself; what the others have is levelled without the two, and
//! the shard is reported ([`TooHeavy`]), since neither moves nor workers help it.
//!
//! **Fewest moves.** Greedy first: the worker furthest above its ceiling gives the shard that relieves most to the worker
//! with the most room, until all fit; then exchanges of two shards where no single move helps. That is at most some passes
//! over 512 shards for each move. Then, if fewer moves or less overload are possible, branch and bound
//! over plans of up to eight moves, with a fixed number of steps; within these the plan is the best there is.
//!
//! **Stable.** Nothing moves until a worker is [`Limits::imbalance`] above its part (and a plan gains
//! [`Limits::gain`]), then all are brought to within [`Limits::settle`], so that the next small change moves nothing.
//! Loads are averaged over rounds, and a shard that moved stays for some. A plan that was carried out and is made again from the same loads is
//! empty, if the first one was [complete](Plan::complete): planning goes on from its own result until there is nothing more to gain.
//!
//! # Example
//! ```
//! use engine::plan::{Limits, Planner};
//!
//! // Two workers with 256 shards each; shards 0 to 3, all of worker 0, carry everything.
//! let owners: [u8; 512] = std::array::from_fn(|shard| (shard >= 256) as u8);
//! let loads: [u64; 512] = std::array::from_fn(|shard| if shard < 4 { 10_000 } else { 0 });
//! let mut planner = Planner::new(Limits::default());
//! planner.observe(&loads);
//! let plan = planner.plan(&owners, &[1, 1]);
//! assert_eq!(plan.moves.len(), 2);
//! assert_eq!((plan.before, plan.after), (2.0, 1.0));
//! ```
//!
//! # Beside RSS++
//! RSS++ (Barbette et al., CoNEXT 2019) moves buckets of the NIC's indirection table between cores, and is what this is to be
//! measured by. It counts packets by bucket, splits each core's measured load among its buckets by their counts, and looks for an
//! assignment with a small squared imbalance and few transfers; an exact solver takes too long, so it
//! passes buckets from overloaded to underloaded cores by a heuristic, several times per second or less often when all is level,
//! and adds or removes a core by the mean load. Flow state is kept by bucket and follows it. What differs here:
//! - *What moves is a shard with all state of its subscribers*, both directions and every port together: a bucket there is of
//!   one port's hash, and uplink and downlink of a flow are two buckets. So one plan serves all ports, and also a NIC without a
//!   table, behind which workers hand packets on.
//! - *The goal is a bound, not a square.* Below a core's ceiling balance has no value, and each move has a price: a squared
//!   imbalance goes on improving by moves that nobody notices. Here the first goal is that nobody is above, the
//!   second is few moves, and it is known when the number of moves is the least possible.
//! - *A heavy shard doesn't spoil the rest.* One bucket above the mean makes every assignment look bad; here it is set aside
//!   with its worker, and the others are levelled among themselves.
//! - *Capacities*: a worker may weigh less than another, or nothing (it leaves, or it dispatches); scaling is the same
//!   calculation.
//! - *Hysteresis in both directions*, and plans that are at rest once they have been carried out, are properties that tests
//!   check.
//!
//! # The cost
//! [`Planner::observe`] is a pass over 512 numbers. [`Planner::plan`] is another when all is level; else bounded as said
//! above. It allocates some lists. Control calls it a few times per second; no worker does.
//!
//! # When not to use it
//! With one worker there is nothing to plan. Where single subscribers outgrow a core, plans don't help: see [`TooHeavy`].

mod board;
mod level;
mod search;

pub mod ewma;
pub mod meter;
pub mod scaler;

use board::Board;
use session::{SHARDS, ShardId};

/// A shard changes its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub shard: ShardId,
    /// The worker that owns it.
    pub from: usize,
    /// The worker that will.
    pub to: usize,
}

/// A shard that is more than a worker can or should carry: nobody else is on its worker, and still it is above the others.
/// Its subscribers are too many or one of them is too heavy; no move and no further worker helps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TooHeavy {
    /// Which.
    pub shard: ShardId,
    /// Its load in the unit of [`Planner::observe`], averaged.
    pub load: u64,
    /// Its load in parts of what its worker carries when all others are level; more than 1.
    pub share: f32,
}

/// What to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Each shard once at most; the most urgent first.
    pub moves: Vec<Move>,
    /// The heaviest worker's load before the moves, for its capacity, in parts of the mean: 1 is level.
    pub before: f32,
    /// The same after the moves.
    pub after: f32,
    /// Shards that can't be levelled.
    pub too_heavy: Vec<TooHeavy>,
    /// There is no more to gain with these loads. False: [`Limits::moves`] or the bound on planning ended it, and the next
    /// round goes on.
    pub complete: bool,
}

/// When to move shards, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The most moves of a round, those off workers that may own none not counted.
    pub moves: usize,
    /// By how much a worker must exceed its part, in parts of that, before anything is moved.
    pub imbalance: f32,
    /// By how much workers may exceed their parts after the moves; at most `imbalance`.
    pub settle: f32,
    /// What a plan must take off overloaded workers to be worth it, in parts of one worker's part.
    pub gain: f32,
    /// Total load below which nothing is moved, in the unit of [`Planner::observe`]: the workers are idle, or the samples
    /// too few to tell.
    pub least: u64,
    /// What the average keeps of earlier rounds, 0 (nothing) to 0.99.
    pub memory: f32,
    /// Rounds ([`Planner::observe`]) that a shard stays after it was moved.
    pub rest: u8,
    /// What a worker of capacity 1 can carry, in the unit of [`Planner::observe`], where that is known: then only heavier
    /// shards are [`TooHeavy`]. Else those that exceed their worker's part by `imbalance`.
    pub core: Option<u64>,
}

impl Default for Limits {
    /// For counts of sampled packets and some rounds per second.
    fn default() -> Self {
        Self {
            moves: 64,
            imbalance: 0.10,
            settle: 0.02,
            gain: 0.02,
            least: 1_000,
            memory: 0.5,
            rest: 4,
            core: None,
        }
    }
}

/// Levels the load of workers by moving shards.
#[derive(Clone, Debug)]
pub struct Planner {
    limits: Limits,
    /// Averaged load by shard; `None` before the first round.
    loads: Option<Box<[f64; SHARDS]>>,
    /// Rounds that each shard stays where it is.
    resting: Box<[u8; SHARDS]>,
}

/// Plans that go on from their own result; each lowers the overload.
const PASSES: usize = 3;

impl Planner {
    /// Limits outside of their ranges are brought into them.
    pub fn new(limits: Limits) -> Self {
        let clean = |value: f32, most: f32| if value.is_finite() { value.clamp(0.0, most) } else { 0.0 };
        let imbalance = clean(limits.imbalance, 1e3);
        let limits = Limits {
            imbalance,
            settle: clean(limits.settle, imbalance),
            gain: clean(limits.gain, 1e3),
            memory: clean(limits.memory, 0.99),
            ..limits
        };
        Self { limits, loads: None, resting: Box::new([0; SHARDS]) }
    }

    /// A round: the load of each shard since the last one, in any unit that is the same every time.
    pub fn observe(&mut self, loads: &[u64; SHARDS]) {
        let memory = f64::from(self.limits.memory);
        match &mut self.loads {
            None => self.loads = Some(Box::new(loads.map(|load| load as f64))),
            Some(average) => {
                for (average, load) in average.iter_mut().zip(loads) {
                    *average = *average * memory + *load as f64 * (1.0 - memory);
                }
            }
        }
        self.resting.iter_mut().for_each(|rounds| *rounds = rounds.saturating_sub(1));
    }

    /// Forgets all rounds: the loads that come are of another kind, or long after.
    pub fn forget(&mut self) {
        self.loads = None;
        self.resting.fill(0);
    }

    /// The loads that [`Self::plan`] would go by: averaged, in the unit of [`Self::observe`]; zero before the first round.
    pub fn loads(&self) -> [u64; SHARDS] {
        self.loads.as_ref().map_or([0; SHARDS], |loads| loads.map(|load| load as u64))
    }

    /// The moves that are worth it now. `owners` holds each shard's worker, `capacities` each worker's weight, equal ones
    /// for equal cores; a worker of capacity 0, or without an entry, may own nothing, and what it owns moves first.
    /// Nothing moves if no worker has a capacity.
    ///
    /// Shards in the plan count as moved: they stay for [`Limits::rest`] rounds.
    pub fn plan(&mut self, owners: &[u8; SHARDS], capacities: &[u16]) -> Plan {
        let none = [0.0; SHARDS];
        let loads = self.loads.as_deref().unwrap_or(&none);
        if capacities.iter().all(|capacity| *capacity == 0) {
            return Plan {
                moves: Vec::new(),
                before: 1.0,
                after: 1.0,
                too_heavy: Vec::new(),
                complete: true,
            };
        }
        let before = Board::new(loads, owners, capacities).peak();
        let mut padded = Board::padded(loads, owners, capacities);
        let mut order = evacuate(&mut padded);
        let start = padded.owner;
        let mut board = Board::new(loads, &start, capacities);
        board.pinned = std::array::from_fn(|shard| self.resting[shard] > 0);
        let (mut too_heavy, mut complete) = (Vec::new(), true);
        let total: f64 = loads.iter().sum();
        if total > 0.0 && total >= self.limits.least as f64 {
            too_heavy = self.too_heavy(&mut board, loads);
            let (changed, done) = self.level(&mut board);
            complete = done;
            order.extend(changed);
        }
        let after = board.peak() as f32;
        let moves = moves(owners, &board.owner, &order);
        for moved in &moves {
            self.resting[moved.shard.index()] = self.limits.rest;
        }
        Plan { moves, before: before as f32, after, too_heavy, complete }
    }

    /// Levels the board; the shards in the order of urgency, and whether there is nothing more to gain.
    fn level(&self, board: &mut Board) -> (Vec<usize>, bool) {
        let limits = &self.limits;
        let start = board.owner;
        board.set_ceilings(f64::from(limits.imbalance));
        if board.overload() == 0 {
            return (Vec::new(), true);
        }
        board.set_ceilings(f64::from(limits.settle));
        let untouched = board.clone();
        let overload = board.overload();
        let mut complete = false;
        for _ in 0..PASSES {
            let best = improve(board, &start, limits.moves);
            complete = best.complete;
            let better = (best.board.overload(), best.board.moves_from(&start))
                < (board.overload(), board.moves_from(&start));
            if !better {
                break;
            }
            *board = best.board;
            if board.overload() == 0 || !complete {
                break;
            }
            // Seats may be found elsewhere, now that shards are.
            board.set_ceilings(f64::from(limits.settle));
            complete = false;
        }
        let workers = board.workers.iter().filter(|w| w.capacity > 0).count().max(1);
        let part = board.workers.iter().map(|w| w.load).sum::<u64>() as f64 / workers as f64;
        let gained = overload.saturating_sub(board.overload()) as f64;
        if gained == 0.0 || gained < f64::from(limits.gain) * part {
            *board = untouched;
            return (Vec::new(), true);
        }
        let mut changed: Vec<usize> =
            (0..SHARDS).filter(|&shard| board.owner[shard] != start[shard]).collect();
        changed.sort_by_key(|&shard| std::cmp::Reverse(board.load[shard]));
        (changed, complete)
    }

    fn too_heavy(&self, board: &mut Board, loads: &[f64; SHARDS]) -> Vec<TooHeavy> {
        let capacities: Vec<u64> = board.workers.iter().map(|w| w.capacity).collect();
        let heavy = board.set_ceilings(0.0).into_iter();
        let exceeds = |found: &board::Heavy| match self.limits.core {
            Some(core) => loads[found.shard] > core as f64 * capacities[found.seat] as f64,
            None => found.share > 1.0 + f64::from(self.limits.imbalance),
        };
        let report = |found: board::Heavy| TooHeavy {
            shard: ShardId::from_hash(found.shard as u32),
            load: loads[found.shard] as u64,
            share: found.share as f32,
        };
        heavy.filter(exceeds).map(report).collect()
    }
}

/// The board after the best plan that was found from it.
struct Improved {
    board: Board,
    complete: bool,
}

/// Greedy moves, then exchanges if they don't do, then the search. No more than `most` shards are then elsewhere than in
/// `start`.
fn improve(board: &Board, start: &[u8; SHARDS], most: usize) -> Improved {
    let mut greedy = board.clone();
    let complete = level::shed(&mut greedy, start, most) && level::exchange(&mut greedy, start, most);
    let moves = greedy.moves_from(&board.owner);
    let mut best = Improved { board: greedy, complete };
    if let Some(path) = search::better(board, (best.board.overload(), moves)) {
        let mut found = board.clone();
        path.into_iter().for_each(|(shard, to)| found.give(shard, to));
        if found.moves_from(start) <= most {
            best = Improved { board: found, complete: true };
        } else {
            // There is more to gain, but not in so few moves.
            best.complete = false;
        }
    }
    best
}

/// Takes every shard off workers that may own none: the heaviest first, each to the worker that is then the lightest.
/// The shards, in that order.
fn evacuate(board: &mut Board) -> Vec<usize> {
    let homeless = |&shard: &usize| board.workers[board.owner(shard)].capacity == 0;
    let mut homeless: Vec<usize> = (0..SHARDS).filter(homeless).collect();
    homeless.sort_by_key(|&shard| std::cmp::Reverse(board.load[shard]));
    for &shard in &homeless {
        let load = board.load[shard];
        let able = board.workers.iter().enumerate().filter(|(_, w)| w.capacity > 0);
        // a/b < c/d as ad < cb.
        let lightest =
            able.min_by(|(_, a), (_, b)| ((a.load + load) * b.capacity).cmp(&((b.load + load) * a.capacity)));
        if let Some((to, _)) = lightest {
            board.give(shard, to);
        }
    }
    homeless
}

/// The shards whose owner changed, in this order.
fn moves(from: &[u8; SHARDS], to: &[u8; SHARDS], order: &[usize]) -> Vec<Move> {
    let mut said = [false; SHARDS];
    let first = |shard: &usize| !std::mem::replace(&mut said[*shard], true);
    let order: Vec<usize> = order.iter().copied().filter(first).collect();
    let changed = order.into_iter().filter(|&shard| from[shard] != to[shard]);
    let made = changed.map(|shard| Move {
        shard: ShardId::from_hash(shard as u32),
        from: from[shard].into(),
        to: to[shard].into(),
    });
    made.collect()
}

/// All shards off the workers whose capacity is 0, the heaviest first, each to the worker that is then the lightest for
/// its capacity: to scale down. An idle shard counts a little, so that idle ones are dealt out evenly. Empty if no worker
/// has a capacity.
pub fn vacate(loads: &[u64; SHARDS], owners: &[u8; SHARDS], capacities: &[u16]) -> Vec<Move> {
    let loads = loads.map(|load| load as f64);
    let mut board = Board::padded(&loads, owners, capacities);
    let order = evacuate(&mut board);
    moves(owners, &board.owner, &order)
}

/// Brings workers that own nothing, or too little, to their part, whatever [`Limits`] say: to scale up. The fewest
/// moves, found as by [`Planner::plan`], that level all workers to within 5 %, or a quarter of what the new ones are due; with
/// idle shards as in [`vacate`]. Each has one at least. Shards of workers whose capacity is 0 stay.
pub fn occupy(loads: &[u64; SHARDS], owners: &[u8; SHARDS], capacities: &[u16]) -> Vec<Move> {
    let loads = loads.map(|load| load as f64);
    let board = settled(Board::padded(&loads, owners, capacities));
    let mut order: Vec<usize> = (0..SHARDS).collect();
    order.sort_by_key(|&shard| std::cmp::Reverse(board.load[shard]));
    moves(owners, &board.owner, &order)
}

/// [`vacate`], then [`occupy`]: exactly the workers that have a capacity own shards, about as much load each, whatever
/// unfinished change there was before. Each shard moves once at most.
pub fn scale(loads: &[u64; SHARDS], owners: &[u8; SHARDS], capacities: &[u16]) -> Vec<Move> {
    let loads = loads.map(|load| load as f64);
    let mut board = Board::padded(&loads, owners, capacities);
    let mut order = evacuate(&mut board);
    let board = settled(board);
    let mut rest: Vec<usize> = (0..SHARDS).collect();
    rest.sort_by_key(|&shard| std::cmp::Reverse(board.load[shard]));
    order.extend(rest);
    moves(owners, &board.owner, &order)
}

/// By how much workers may exceed their parts after a change of their number, at most.
const SETTLED: f64 = 0.05;

/// Levels all workers that have a capacity; each owns a shard then.
fn settled(mut board: Board) -> Board {
    let start = board.owner;
    for shard in 0..SHARDS {
        board.pinned[shard] = board.workers[board.owner(shard)].capacity == 0;
    }
    let empty = |board: &Board, worker: usize| !board.owner.iter().any(|owner| usize::from(*owner) == worker);
    let capacity = |board: &Board, all: bool| -> u64 {
        let counted = board.workers.iter().enumerate().filter(|(number, _)| all || empty(board, *number));
        counted.map(|(_, worker)| worker.capacity).sum()
    };
    // What others may keep beyond their parts comes off those of the new ones: a quarter at most.
    let (new, all) = (capacity(&board, false), capacity(&board, true));
    let mut tolerance = if new > 0 { (new as f64 / all as f64 / 4.0).min(SETTLED) } else { SETTLED };
    for _ in 0..PASSES {
        board.set_ceilings(tolerance);
        let best = improve(&board, &start, SHARDS).board;
        let (before, after) = (board.overload(), best.overload());
        if after < before {
            board = best;
        } else if tolerance >= SETTLED {
            break;
        }
        tolerance = SETTLED;
    }
    // Of a worker that weighs next to nothing, or among shards of very different loads: one shard is its part.
    for worker in 0..board.workers.len() {
        if board.workers[worker].capacity > 0 && empty(&board, worker) {
            let shards =
                |worker: usize| board.owner.iter().filter(|owner| usize::from(**owner) == worker).count();
            let richest = (0..board.workers.len())
                .filter(|&w| board.workers[w].capacity > 0)
                .max_by_key(|&w| shards(w));
            let own = (0..SHARDS).filter(|&shard| Some(board.owner(shard)) == richest);
            if let Some(lightest) = own.min_by_key(|&shard| board.load[shard]) {
                board.give(lightest, worker);
            }
        }
    }
    board
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
