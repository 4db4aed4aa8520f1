//! Levelling: moves and exchanges that bring workers under their ceilings, as long as one helps by itself.

use super::board::Board;
use session::SHARDS;

/// Moves one shard at a time, from the worker that is furthest above its ceiling to the one with the most room: the shard
/// that lowers the overload most, of equals the lightest. Ends when no single move lowers the overload, which is
/// answered by `true`, or when the next one would be the `most`-and-first shard that is not where `start` has it.
///
/// A worker that stays above its ceiling is above it by less than its lightest shard that may move: otherwise that one
/// would have gone to a worker that has room.
pub(super) fn shed(board: &mut Board, start: &[u8; SHARDS], most: usize) -> bool {
    let mut stuck = vec![false; board.workers.len()];
    while let Some(worst) = board.worst(|worker| !stuck[worker]) {
        let Some((shard, to)) = best_move(board, worst) else {
            stuck[worst] = true;
            continue;
        };
        board.give(shard, to);
        if board.moves_from(start) > most {
            board.give(shard, worst);
            return false;
        }
        // Where a shard left, there may be room now.
        stuck.fill(false);
    }
    true
}

/// By how much the overload falls if `load` goes from a worker with `excess` to one with `room`.
fn relief(load: u64, excess: u64, room: u64) -> i64 {
    load.min(excess).cast_signed() - load.saturating_sub(room).cast_signed()
}

fn best_move(board: &Board, worst: usize) -> Option<(usize, usize)> {
    let to = board.roomiest(worst)?;
    let (excess, room) = (board.workers[worst].excess(), board.workers[to].room());
    let value = |shard: usize| {
        let load = board.load[shard];
        (relief(load, excess, room), std::cmp::Reverse(load))
    };
    let shard = board.movable(worst).max_by_key(|&shard| value(shard))?;
    (value(shard).0 > 0).then_some((shard, to))
}

/// Exchanges two shards at a time where no single move helps: one of a worker above its ceiling for a lighter one of a
/// worker with room. As [`shed`], which it calls after each exchange.
pub(super) fn exchange(board: &mut Board, start: &[u8; SHARDS], most: usize) -> bool {
    let mut stuck = vec![false; board.workers.len()];
    while let Some(worst) = board.worst(|worker| !stuck[worker]) {
        let Some((given, taken)) = best_exchange(board, worst) else {
            stuck[worst] = true;
            continue;
        };
        let other = board.owner(taken);
        board.give(given, other);
        board.give(taken, worst);
        if board.moves_from(start) > most {
            board.give(given, worst);
            board.give(taken, other);
            return false;
        }
        if !shed(board, start, most) {
            return false;
        }
        stuck.fill(false);
    }
    true
}

fn best_exchange(board: &Board, worst: usize) -> Option<(usize, usize)> {
    let excess = board.workers[worst].excess();
    let mut best = None;
    let mut value = (0, std::cmp::Reverse(0));
    for given in board.movable(worst) {
        for taken in (0..SHARDS).filter(|&shard| board.load[shard] > 0 && !board.pinned[shard]) {
            let room = board.workers[board.owner(taken)].room();
            let Some(difference) = board.load[given].checked_sub(board.load[taken]) else { continue };
            if difference == 0 || room == 0 {
                continue;
            }
            let found = (relief(difference, excess, room), std::cmp::Reverse(difference));
            if found > value && found.0 > 0 {
                (best, value) = (Some((given, taken)), found);
            }
        }
    }
    best
}
