//! What a port could not send at once: classes, bounds, and who is next.
//!
//! **The problem.** A burst that finds the transmit queue full has to wait or go. Waiting in one line, voice stands behind a
//! download, and the line's end decides who is dropped; and what answers an ARP request waits like everything else.
//!
//! **The model.** As long as the port takes all it is given, no frame is looked at. What it leaves behind goes to the port's
//! [`Scheduler`]: up to [`MAX_CLASSES`] classes ([`plan`]), each a bounded queue, chosen by the DSCP of the outermost IP header.
//! From then on, until it is empty, every frame for that port goes through it, so that a class keeps its order.
//!
//! - *Strict* classes come first, in order. One with a share stands back once it had that much of what
//!   the port sent, as long as others wait: it can't starve them.
//! - *Weighted* classes share the rest by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): in each round a
//!   class may send its weight times [`QUANTUM`] bytes.
//! - A queue takes green packets until it is full, yellow ones up to three quarters, red ones up to half of it
//!   (RFC 2597 §2); what it doesn't take is dropped and counted by class and precedence. Bounds count packets and bytes.
//!
//! A port says how much it takes only by taking it. So a batch is picked, offered, and what the port leaves goes back to the
//! heads of its queues, with the state of the turn as it was: frames leave in the very order in which they would one by one.
//!
//! **The cost.** None while the port keeps up: one comparison a flush. With a backlog some tens of cycles a frame. No memory is
//! taken after the start.
//!
//! **When not to use it.** To shape: a class sends as fast as the port lets it; QERs limit rates. And a worker schedules its own
//! transmit queue; between workers' queues the NIC decides.

pub mod plan;

pub use plan::{Class, ClassError, Kind, MAX_CLASSES, Plan};

use counters::Count;
use datapath::Traffic;
use io::{Frame, TxQueue};
use packet::DropPrecedence;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that a weighted class may send for each unit of its weight in a round: a full Ethernet frame.
pub const QUANTUM: u32 = 1_536;
/// Bytes that a class with a share may send ahead of it after a silence.
const AHEAD: i64 = 32 * QUANTUM as i64;
/// Frames offered to a port that was full a moment ago; doubled each time that it takes them all.
const FIRST_BATCH: usize = 4;
const GREATEST_BATCH: usize = 32;

counters::counters! {
    /// What a class has done on one port since start; frames that never waited are not in it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ClassCounters {
        /// Frames waiting now.
        pub queued: Traffic = "queued", Gauge;
        /// Frames sent after they waited.
        pub sent: Traffic = "sent";
        /// Frames not taken into the queue, or given up at the end.
        pub dropped: ByPrecedence = "dropped";
    }
}

counters::counters! {
    /// Frames by [`DropPrecedence`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ByPrecedence {
        /// Those to be dropped last.
        pub green: Traffic = "green";
        /// Those in between.
        pub yellow: Traffic = "yellow";
        /// Those to be dropped first.
        pub red: Traffic = "red";
    }
}

impl ByPrecedence {
    const fn of(&mut self, precedence: DropPrecedence) -> &mut Traffic {
        match precedence {
            DropPrecedence::Green => &mut self.green,
            DropPrecedence::Yellow => &mut self.yellow,
            DropPrecedence::Red => &mut self.red,
        }
    }

    /// All of them.
    pub fn sum(self) -> Traffic {
        self.green.plus(self.yellow).plus(self.red)
    }
}

/// Whose turn it is: all that picking a frame changes beside the queues.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Weighted: bytes that may still be sent in this round.
    deficit: [u32; MAX_CLASSES],
    /// Strict with a share: above zero, it goes first. In hundredths of bytes.
    credit: [i64; MAX_CLASSES],
    /// The weighted class that the round has come to.
    at: usize,
    /// Whether it has had its quantum.
    granted: bool,
}

/// A frame that was picked and may have to go back.
#[derive(Clone, Copy, Debug)]
struct Pick {
    class: usize,
    length: usize,
    before: Turn,
}

#[derive(Debug)]
struct Queue<F> {
    frames: VecDeque<F>,
    counters: ClassCounters,
}

/// The frames that wait for one port's transmit queue.
#[derive(Debug)]
pub struct Scheduler<F> {
    plan: Arc<Plan>,
    queues: Vec<Queue<F>>,
    turn: Turn,
    /// Frames in all queues.
    waiting: usize,
    /// Empty between calls.
    staged: Vec<F>,
    picks: Vec<Pick>,
}

impl<F: Frame> Scheduler<F> {
    /// Empty, with room for all that the plan admits.
    pub fn new(plan: Arc<Plan>) -> Self {
        let queue = |class: &Class| Queue {
            frames: VecDeque::with_capacity(class.packets as usize),
            counters: ClassCounters::default(),
        };
        let mut turn = Turn::default();
        for (credit, class) in turn.credit.iter_mut().zip(plan.classes()) {
            *credit = ahead(class.kind);
        }
        Self {
            queues: plan.classes().iter().map(queue).collect(),
            plan,
            turn,
            waiting: 0,
            staged: Vec::with_capacity(GREATEST_BATCH),
            picks: Vec::with_capacity(GREATEST_BATCH),
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Frames that wait.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// By class, in the plan's order.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = ClassCounters> + '_ {
        self.queues.iter().map(|queue| queue.counters)
    }

    /// By class: how many frames will have been sent when all that wait now are gone.
    pub(crate) fn mark(&self) -> Box<[u64]> {
        let counters = self.queues.iter().map(|queue| &queue.counters);
        counters.map(|counters| counters.sent.packets + counters.queued.packets).collect()
    }

    /// Whether all frames before a mark are gone.
    pub(crate) fn has_sent(&self, mark: &[u64]) -> bool {
        self.is_empty()
            || self.queues.iter().zip(mark).all(|(queue, mark)| queue.counters.sent.packets >= *mark)
    }

    /// Takes all of `frames` to their classes; says how many found no room and were dropped.
    pub fn put(&mut self, frames: &mut Vec<F>) -> u64 {
        let mut dropped = 0;
        for frame in frames.drain(..) {
            let (class, precedence) = self.plan.classify(frame.bytes());
            let (Some(queue), Some(class)) = (self.queues.get_mut(class), self.plan.classes().get(class))
            else {
                // A plan's table leads to its classes.
                dropped += 1;
                continue;
            };
            let (counters, length) = (&mut queue.counters, frame.len());
            if class.admits(counters.queued, length, precedence) {
                counters.queued.add(length);
                queue.frames.push_back(frame);
                self.waiting += 1;
            } else {
                dropped += 1;
                counters.dropped.of(precedence).add(length);
            }
        }
        dropped
    }

    /// Sends what the port takes, in order of turn; says how many frames.
    pub fn send(&mut self, tx: &mut impl TxQueue<Frame = F>) -> usize {
        let (mut sent, mut batch) = (0, FIRST_BATCH);
        while self.waiting > 0 {
            // Nobody is asked whose turn it is when nobody waits: the turn depends on what was sent, not on how.
            while self.staged.len() < batch
                && self.waiting > 0
                && let Some(frame) = self.pick()
            {
                self.staged.push(frame);
            }
            let offered = self.staged.len();
            tx.tx_burst(&mut self.staged);
            let taken = offered - self.staged.len();
            self.settle(taken);
            sent += taken;
            if taken < offered {
                break;
            }
            batch = (2 * batch).min(GREATEST_BATCH);
        }
        sent
    }

    /// Drops all that waits, counts it as dropped, and says how many frames that was.
    pub fn clear(&mut self) -> u64 {
        let dropped = self.waiting as u64;
        for queue in &mut self.queues {
            for frame in queue.frames.drain(..) {
                let (_, precedence) = self.plan.classify(frame.bytes());
                queue.counters.dropped.of(precedence).add(frame.len());
            }
            queue.counters.queued = Traffic::default();
        }
        self.waiting = 0;
        dropped
    }

    /// The first `taken` picks are gone; the others go back to where they came from, last first.
    fn settle(&mut self, taken: usize) {
        for pick in self.picks.iter().take(taken) {
            if let Some(queue) = self.queues.get_mut(pick.class) {
                queue.counters.sent.add(pick.length);
            }
        }
        let left = self.picks.iter().skip(taken).zip(self.staged.drain(..)).rev();
        for (pick, frame) in left {
            if let Some(queue) = self.queues.get_mut(pick.class) {
                queue.counters.queued.add(pick.length);
                queue.frames.push_front(frame);
                self.waiting += 1;
                self.turn = pick.before;
            }
        }
        self.picks.clear();
    }

    /// The next frame, noted in `picks`.
    fn pick(&mut self) -> Option<F> {
        let before = self.turn;
        let class = self.next_class()?;
        let queue = self.queues.get_mut(class)?;
        let frame = queue.frames.pop_front()?;
        let length = frame.len();
        let queued = &mut queue.counters.queued;
        *queued = Traffic {
            packets: queued.packets.saturating_sub(1),
            bytes: queued.bytes.saturating_sub(length as u64),
        };
        self.waiting -= 1;
        self.picks.push(Pick { class, length, before });
        Some(frame)
    }

    /// Whose turn it is, with the turn moved on as if its first frame were sent.
    fn next_class(&mut self) -> Option<usize> {
        let (plan, turn) = (&self.plan, &mut self.turn);
        // The length of a queue's first frame; `None`: it is empty.
        let first = |class: usize| self.queues.get(class)?.frames.front().map(F::len);
        let strict = || {
            let classes = plan.classes().iter().enumerate();
            classes.filter_map(|(at, class)| match class.kind {
                Kind::Strict { share } => Some((at, share, first(at)?)),
                Kind::Weighted { .. } => None,
            })
        };
        for (at, share, length) in strict() {
            if share.is_none() || turn.credit.get(at).is_some_and(|credit| *credit > 0) {
                turn.charge(plan, at, length);
                return Some(at);
            }
        }
        if let Some((at, length)) = turn.round(plan, first) {
            turn.charge(plan, at, length);
            return Some(at);
        }
        // Over its share, but nobody else waits: nothing is owed for that.
        strict().next().map(|(at, ..)| at)
    }
}

impl Turn {
    /// Deficit round robin among the weighted classes that have a frame.
    fn round(&mut self, plan: &Plan, first: impl Fn(usize) -> Option<usize>) -> Option<(usize, usize)> {
        let waits =
            |(at, class): (usize, &Class)| matches!(class.kind, Kind::Weighted { .. }) && first(at).is_some();
        if !plan.classes().iter().enumerate().any(waits) {
            // Whoever has nothing to send saves nothing up.
            self.deficit = [0; MAX_CLASSES];
            self.granted = false;
            return None;
        }
        loop {
            let class = plan.classes().get(self.at);
            if let (Some(Class { kind: Kind::Weighted { weight }, .. }), Some(deficit)) =
                (class, self.deficit.get_mut(self.at))
            {
                match first(self.at) {
                    Some(length) => {
                        if !self.granted {
                            *deficit += u32::from(*weight) * QUANTUM;
                            self.granted = true;
                        }
                        if *deficit as usize >= length {
                            *deficit -= length as u32;
                            return Some((self.at, length));
                        }
                    }
                    None => *deficit = 0,
                }
            }
            self.at = (self.at + 1) % plan.classes().len();
            self.granted = false;
        }
    }

    /// `length` bytes of class `sender` use up its own share, and add to the others' shares.
    fn charge(&mut self, plan: &Plan, sender: usize, length: usize) {
        for (at, (credit, class)) in self.credit.iter_mut().zip(plan.classes()).enumerate() {
            if let Kind::Strict { share: Some(share) } = class.kind {
                let share = i64::from(share);
                let change = if at == sender { share - 100 } else { share };
                *credit = (*credit + change * i64::from(length as u32)).min(ahead(class.kind));
            }
        }
    }
}

/// The most credit of a class.
const fn ahead(kind: Kind) -> i64 {
    match kind {
        Kind::Strict { share: Some(share) } => (100 - share as i64) * AHEAD,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
