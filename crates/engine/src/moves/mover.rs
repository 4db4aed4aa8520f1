//! One worker's part in moves.

use super::{Move, Word};
use session::{SHARDS, ShardId};
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Nanos;

/// What the worker has to do next.
#[derive(Debug)]
pub(crate) enum Step<S> {
    /// Tell one worker.
    Tell(usize, Word<S>),
    /// Giver: the queues are to be watched from now on; [`Mover::queues_are_empty`] when all that waited in them is served.
    WatchQueues,
    /// Giver: take the shards out of the datapath, so that whatever comes now goes to the receiver; what was sent before is to be on the
    /// wire: [`Mover::is_sent`] when it is.
    Pack(Arc<Move>),
    /// Giver: [`Mover::give`] the shards, packed or, if patience has ended, not packed yet.
    Give(Arc<Move>),
}

/// The receiver's view of a move that has ended well.
#[derive(Debug)]
pub(crate) struct Taken<P, S> {
    pub order: Arc<Move>,
    pub shards: Vec<S>,
    /// To be served before anything else, in this order.
    pub parked: VecDeque<P>,
    /// When the first was parked.
    pub since: Option<Nanos>,
    /// Packets that found no room.
    pub overflowed: u64,
    /// The giver's patience ended.
    pub hurried: bool,
}

#[derive(Debug)]
struct Taking<P> {
    order: Arc<Move>,
    parked: VecDeque<P>,
    since: Option<Nanos>,
    overflowed: u64,
    /// The NIC's change has settled, and the giver knows.
    settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Others may still have packets for us.
    Hearing,
    /// Our queues may.
    Emptying,
    /// What we sent may not be on the wire.
    Sending,
    /// It is time.
    Ready,
}

#[derive(Debug)]
struct Giving {
    order: Arc<Move>,
    since: Nanos,
    stage: Stage,
    /// By worker: has said that nothing comes any more.
    heard: Box<[bool]>,
    hurried: bool,
}

/// A worker's part in the move that runs, if it has one. `P` is a packet that can be parked.
#[derive(Debug)]
pub(crate) struct Mover<P> {
    me: usize,
    workers: usize,
    taking: Option<Taking<P>>,
    giving: Option<Giving>,
    /// Who has said already, of moves that this worker has not heard of yet, that nothing comes any more: rings are not in step.
    early: Vec<(u64, usize)>,
    /// Shards that packets are parked for: what [`Mover::parks`] reads.
    expected: Box<[bool]>,
    /// Packets that can be parked.
    room: usize,
    /// How long the giver waits for others, in nanoseconds.
    patience: u64,
}

impl<P> Mover<P> {
    pub fn new(me: usize, workers: usize, room: usize, patience: u64) -> Self {
        let expected = vec![false; SHARDS].into_boxed_slice();
        Self { me, workers, taking: None, giving: None, early: Vec::new(), expected, room, patience }
    }

    /// Whether a move needs this worker's attention.
    pub const fn is_busy(&self) -> bool {
        self.taking.is_some() || self.giving.is_some()
    }

    /// Whether shards are on their way to this worker.
    pub const fn is_taking(&self) -> bool {
        self.taking.is_some()
    }

    /// Receiver: the order has come. From now on packets are parked; the caller changes the tables, then [`Mover::switched_all`].
    pub fn take(&mut self, order: Arc<Move>) {
        for shard in &order.shards {
            if let Some(expected) = self.expected.get_mut(shard.index()) {
                *expected = true;
            }
        }
        self.taking =
            Some(Taking { order, parked: VecDeque::new(), since: None, overflowed: 0, settled: false });
    }

    /// Receiver: the tables are changed. What to tell whom.
    pub fn switched_all<S>(&self) -> impl Iterator<Item = Step<S>> + '_ {
        let order = self.taking.as_ref().map(|taking| &taking.order);
        let others = (0..self.workers).filter(|&worker| worker != self.me);
        others.filter_map(move |worker| Some(Step::Tell(worker, Word::Switched(Arc::clone(order?)))))
    }

    /// Receiver: the NIC says that its change has settled.
    pub fn settled<S>(&mut self) -> Option<Step<S>> {
        let taking = self.taking.as_mut().filter(|taking| !taking.settled)?;
        taking.settled = true;
        Some(Step::Tell(taking.order.from, Word::Drained(taking.order.number)))
    }

    /// Receiver: whether it waits for its NIC.
    pub fn is_settling(&self) -> bool {
        self.taking.as_ref().is_some_and(|taking| !taking.settled)
    }

    /// Whether packets of this shard are to be parked.
    #[inline]
    pub fn parks(&self, shard: ShardId) -> bool {
        self.expected.get(shard.index()).is_some_and(|expected| *expected)
    }

    /// Parks a packet; returns it if there is no room.
    pub fn park(&mut self, now: Nanos, packet: P) -> Result<(), P> {
        let Some(taking) = &mut self.taking else { return Err(packet) };
        taking.since.get_or_insert(now);
        if taking.parked.len() >= self.room {
            taking.overflowed += 1;
            return Err(packet);
        }
        taking.parked.push_back(packet);
        Ok(())
    }

    /// Something was said. `from`: by whom. What is to be done about it.
    pub fn hear<S>(&mut self, now: Nanos, from: usize, word: Word<S>) -> Heard<P, S> {
        match word {
            Word::Switched(order) if order.from == self.me => {
                let early = std::mem::take(&mut self.early);
                let has_said = |worker| worker == self.me || early.contains(&(order.number, worker));
                let heard = (0..self.workers).map(has_said).collect();
                self.giving =
                    Some(Giving { order, since: now, stage: Stage::Hearing, heard, hurried: false });
                self.all_heard()
            }
            Word::Switched(order) => Heard::Step(Step::Tell(order.from, Word::Drained(order.number))),
            Word::Drained(number) => {
                match &mut self.giving {
                    Some(giving) if giving.order.number == number => {
                        if let Some(heard) = giving.heard.get_mut(from) {
                            *heard = true;
                        }
                    }
                    _ => {
                        // One move runs at a time: what was said of others is of no use any more.
                        self.early.retain(|(other, _)| *other == number);
                        self.early.push((number, from));
                    }
                }
                self.all_heard()
            }
            Word::Given(number, shards, hurried) => {
                let Some(taking) = self.taking.take_if(|taking| taking.order.number == number) else {
                    // Nobody gives without being asked; a shard is never thrown away.
                    return Heard::Stray(shards);
                };
                self.expected.fill(false);
                let Taking { order, parked, since, overflowed, .. } = taking;
                Heard::Taken(Taken { order, shards, parked, since, overflowed, hurried })
            }
            Word::Flush(_) | Word::Flushed(_) => Heard::Nothing,
        }
    }

    fn all_heard<S>(&mut self) -> Heard<P, S> {
        match &mut self.giving {
            Some(giving) if giving.stage == Stage::Hearing && giving.heard.iter().all(|heard| *heard) => {
                giving.stage = Stage::Emptying;
                Heard::Step(Step::WatchQueues)
            }
            _ => Heard::Nothing,
        }
    }

    /// Giver: what waited in its queues at [`Step::WatchQueues`] is served.
    pub fn queues_are_empty<S>(&mut self) -> Option<Step<S>> {
        let giving = self.giving.as_mut().filter(|giving| giving.stage == Stage::Emptying)?;
        giving.stage = Stage::Sending;
        Some(Step::Pack(Arc::clone(&giving.order)))
    }

    /// Giver: all that it had sent at [`Step::Pack`] is on the wire.
    pub fn is_sent(&mut self, number: u64) {
        if let Some(giving) = &mut self.giving
            && (giving.stage, giving.order.number) == (Stage::Sending, number)
        {
            giving.stage = Stage::Ready;
        }
    }

    /// Giver: whether it is time to give. Patience has an end.
    pub fn is_due<S>(&mut self, now: Nanos) -> Option<Step<S>> {
        let giving = self.giving.as_mut()?;
        if giving.stage != Stage::Ready {
            if now.since(giving.since) < self.patience {
                return None;
            }
            giving.hurried = true;
        }
        Some(Step::Give(Arc::clone(&giving.order)))
    }

    /// Giver: the shards, taken out of the datapath.
    pub fn give<S>(&mut self, shards: Vec<S>) -> Option<Step<S>> {
        let Giving { order, hurried, .. } = self.giving.take()?;
        Some(Step::Tell(order.to, Word::Given(order.number, shards, hurried)))
    }

    /// The worker ends: what it has parked.
    pub fn abandon(&mut self) -> VecDeque<P> {
        self.expected.fill(false);
        self.giving = None;
        self.taking.take().map(|taking| taking.parked).unwrap_or_default()
    }
}

/// What came of a word.
#[derive(Debug)]
pub(crate) enum Heard<P, S> {
    Nothing,
    Step(Step<S>),
    Taken(Taken<P, S>),
    Stray(Vec<S>),
}
