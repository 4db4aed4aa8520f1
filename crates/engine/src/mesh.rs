//! The rings between workers: packets for their shards' owners, and words about shards.

use crate::moves::Word;
use datapath::{HandedOff, Shard};
use io::Frame;
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;

/// A shard on its way: what moves is the pointer.
pub(crate) type Boxed<F> = Box<Shard<F>>;

/// What one worker passes to another.
#[derive(Debug)]
pub(crate) enum Passed<F: Frame> {
    /// A packet of a shard that the other one owns.
    Packet(HandedOff<F>),
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
    /// Words that found no room yet.
    words: VecDeque<Passed<F>>,
}

/// Why a packet or frame was not passed, and is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// There was no room.
    Full,
    /// The other worker is dead.
    Dead,
    /// There is no ring to that worker.
    NoRing,
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
                let lane = producer.map(|ring| Lane { ring, words: VecDeque::new() });
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

    /// Passes a packet or frame on; or it is lost.
    #[inline(always)]
    pub fn pass(&mut self, worker: usize, passed: Passed<F>) -> Result<(), Lost> {
        let Some(Some(lane)) = self.to.get_mut(worker) else { return Err(Lost::NoRing) };
        if lane.ring.is_abandoned() {
            return Err(Lost::Dead);
        }
        lane.ring.push(passed).map_err(|_| Lost::Full)
    }

    /// Says something, behind all packets passed so far. Never lost while the other one lives.
    pub fn tell(&mut self, worker: usize, word: Word<Boxed<F>>) {
        if let Some(Some(lane)) = self.to.get_mut(worker) {
            lane.words.push_back(Passed::Word(Box::new(word)));
        }
    }

    /// Passes on what was said.
    pub fn speak(&mut self) {
        for lane in self.to.iter_mut().flatten() {
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
    }

    /// Shards that nobody took.
    pub fn returned(&mut self) -> Vec<Boxed<F>> {
        std::mem::take(&mut self.returned)
    }

    /// Whether words wait for room.
    pub fn has_words(&self) -> bool {
        self.to.iter().flatten().any(|lane| !lane.words.is_empty())
    }

    /// How much one worker has passed and is still there.
    pub fn waiting(&self, from: usize) -> usize {
        self.from.get(from).and_then(Option::as_ref).map_or(0, Consumer::slots)
    }

    /// What one worker passed next, of so many as [are waiting](Self::waiting): all packets up to what isn't one.
    pub fn packets(&mut self, from: usize, waiting: usize) -> Option<impl Iterator<Item = HandedOff<F>>> {
        let ring = self.from.get_mut(from)?.as_mut()?;
        let waits = ring.read_chunk(waiting).ok()?;
        let (first, second) = waits.as_slices();
        let packets = first.iter().chain(second).take_while(|passed| matches!(passed, Passed::Packet(_)));
        let count = packets.count();
        let packets = ring.read_chunk(count).ok().filter(|_| count > 0)?;
        Some(packets.into_iter().filter_map(|passed| match passed {
            Passed::Packet(packet) => Some(packet),
            _ => None,
        }))
    }

    /// What one worker passed next.
    pub fn next(&mut self, from: usize) -> Option<Passed<F>> {
        self.from.get_mut(from)?.as_mut()?.pop().ok()
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
