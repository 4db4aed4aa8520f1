//! The rings between workers: packets for their shards' owners, and words about shards.

use crate::moves::Word;
use datapath::Shard;
use io::{BURST, Frame};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;

/// A shard on its way: what moves is the pointer.
pub(crate) type Boxed<F> = Box<Shard<F>>;

/// What one worker passes to another.
#[derive(Debug)]
pub(crate) enum Passed<F: Frame> {
    /// A packet of a shard that the other one owns, with the port it arrived at.
    Packet(u16, F),
    /// A frame for the other one to send, and the port.
    Send(u16, F),
    /// About moves of shards.
    Word(Box<Word<Boxed<F>>>),
}

/// One worker's ends of the rings to and from all others.
pub(crate) struct Mesh<F: Frame> {
    /// By worker; none to itself.
    to: Vec<Option<Lane<F>>>,
    /// Shards that were given to a worker that died before it took them.
    returned: Vec<Boxed<F>>,
    from: Vec<Option<Consumer<Passed<F>>>>,
}

struct Lane<F: Frame> {
    ring: Producer<Passed<F>>,
    /// Packets of this round.
    staged: Vec<Passed<F>>,
    /// Words that found no room yet.
    words: VecDeque<Passed<F>>,
}

/// Packets and frames that did not find their way through the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// There was no room.
    pub full: u64,
    /// The other worker is dead.
    pub dead: u64,
}

impl<F: Frame> Default for Mesh<F> {
    fn default() -> Self {
        Self { to: Vec::new(), returned: Vec::new(), from: Vec::new() }
    }
}

impl<F: Frame> Mesh<F> {
    /// All workers' ends, with rings of so many entries.
    pub fn all(workers: usize, entries: usize) -> Vec<Self> {
        let mut ends: Vec<Self> = (0..workers).map(|_| Self::default()).collect();
        for a in 0..workers {
            for b in 0..workers {
                let (producer, consumer) = (a != b).then(|| RingBuffer::new(entries)).unzip();
                let lane = producer.map(|ring| Lane {
                    ring,
                    staged: Vec::with_capacity(4 * BURST),
                    words: VecDeque::new(),
                });
                if let Some(end) = ends.get_mut(a) {
                    end.to.push(lane);
                }
                if let Some(end) = ends.get_mut(b) {
                    end.from.push(consumer);
                }
            }
        }
        ends
    }

    /// Puts a packet or frame among those of this round. Returned: there is no ring to that worker.
    #[inline]
    pub fn stage(&mut self, worker: usize, passed: Passed<F>) -> Result<(), Passed<F>> {
        match self.to.get_mut(worker) {
            Some(Some(lane)) => {
                lane.staged.push(passed);
                Ok(())
            }
            _ => Err(passed),
        }
    }

    /// Says something, behind all packets staged so far. Never lost while the other one lives.
    pub fn tell(&mut self, worker: usize, word: Word<Boxed<F>>) {
        if let Some(Some(lane)) = self.to.get_mut(worker) {
            lane.words.push_back(Passed::Word(Box::new(word)));
        }
    }

    /// Passes on what was staged, then what was said. Says what is lost.
    pub fn publish(&mut self) -> Lost {
        let mut lost = Lost::default();
        for lane in self.to.iter_mut().flatten() {
            if lane.staged.is_empty() && lane.words.is_empty() {
                continue;
            }
            let room = if lane.ring.is_abandoned() { 0 } else { lane.ring.slots().min(lane.staged.len()) };
            if room > 0
                && let Ok(chunk) = lane.ring.write_chunk_uninit(room)
            {
                chunk.fill_from_iter(lane.staged.drain(..room));
            }
            let count = if lane.ring.is_abandoned() { &mut lost.dead } else { &mut lost.full };
            *count += lane.staged.drain(..).len() as u64;
            // Later packets may overtake a word that waits for room, which says nothing of them.
            while let Some(word) = lane.words.pop_front() {
                if lane.ring.is_abandoned() {
                    self.returned.extend(shards_in(word));
                } else if let Err(rtrb::PushError::Full(word)) = lane.ring.push(word) {
                    lane.words.push_front(word);
                    break;
                }
            }
        }
        lost
    }

    /// Shards that nobody took.
    pub fn returned(&mut self) -> Vec<Boxed<F>> {
        std::mem::take(&mut self.returned)
    }

    /// Whether words wait for room.
    pub fn has_words(&self) -> bool {
        self.to.iter().flatten().any(|lane| !lane.words.is_empty())
    }

    /// Appends what one worker passed, at most a burst, in order.
    pub fn take(&mut self, from: usize, into: &mut Vec<Passed<F>>) {
        let Some(Some(ring)) = self.from.get_mut(from) else { return };
        let available = ring.slots().min(BURST);
        if available > 0
            && let Ok(chunk) = ring.read_chunk(available)
        {
            into.extend(chunk);
        }
    }

    /// Whether nobody has passed anything.
    pub fn is_empty(&self) -> bool {
        self.from.iter().flatten().all(Consumer::is_empty)
    }

    /// How full the fullest ring to this worker is, 0 to 1.
    pub fn occupancy(&self) -> f32 {
        let share = |ring: &Consumer<_>| ring.slots() as f32 / ring.buffer().capacity() as f32;
        self.from.iter().flatten().map(share).fold(0.0, f32::max)
    }

    pub fn workers(&self) -> usize {
        self.from.len()
    }

    /// This worker ends, and others can tell: everything that is still in the rings to it, and words that it could not say.
    pub fn leave(&mut self) -> Vec<Passed<F>> {
        let mut left = Vec::new();
        for mut ring in std::mem::take(&mut self.from).into_iter().flatten() {
            while let Ok(passed) = ring.pop() {
                left.push(passed);
            }
        }
        for lane in self.to.iter_mut().flatten() {
            left.extend(lane.words.drain(..));
        }
        left
    }
}

/// The shards that are given with a word.
pub(crate) fn shards_in<F: Frame>(passed: Passed<F>) -> Vec<Boxed<F>> {
    match passed {
        Passed::Word(word) => match *word {
            Word::Given(_, shards, _) => shards,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
