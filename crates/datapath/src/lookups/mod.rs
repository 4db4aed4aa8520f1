//! Look-ups that somebody else does while a worker goes on with other bursts.
//!
//! **Problem.** A packet waits for memory twice before its session's record is there (a bucket of the index, then the record), and twice more for its
//! flow's. A device with fast memory of its own could read the first of each two lines. But it answers some microseconds later, and what it knows is
//! older than the shard: sessions come, go and move to other workers while the question is on its way.
//!
//! **Model.** What a device says is a **hint**. [`Datapath::question`](crate::Datapath::question) makes a question of each look-up of a burst: 64 bits, a
//! keyed hash of everything that leads to the session or the flow. A hint is 32 bits: the session's slot, or the flow's line. When it comes back,
//! [`Datapath::finish_answered`](crate::Datapath::finish_answered) reads the record or the line that it names, which has to be read in any case, and
//! that says whether the hint is right. Where it isn't, or where there is none, the worker looks the packet up itself, as if nobody had been
//! asked. So a burst comes out the same whatever the device says, and a device may be late, lose everything or lie.
//!
//! **What a device knows** it learns from the worker: of each look-up that a hint did not settle, the result is a [`Lesson`]. Lessons may be
//! lost, and the device may forget; then the question is answered without a hint once more. Nothing else has to be told when a session or a flow
//! comes, goes or moves. What keeps the lessons is a map from 64 bits to 32, as a [`tables::Memo`] is.
//!
//! **Who does what.** This crate knows the questions. Who runs the device implements [`LookupDevice`], and the engine keeps the bursts that wait.
//! [`Model`] is a device in memory, with latency and faults on command.
//!
//! **What isn't asked.** Who owns a packet: the shard is in the TEID or in the hash of the address, and exceptions from that
//! are in directories that may change with each order. Longest prefixes: routes change under the same questions, and nothing that is read later would
//! tell a wrong one.

mod model;

pub use model::{Model, Trouble};

use tables::{Lookup, Memo, Nanos};

/// The answer of who knows nothing.
pub const UNKNOWN: u32 = Memo::NOTHING;

/// What is to be said to a question from now on; [`UNKNOWN`]: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lesson {
    /// The question.
    pub key: u64,
    /// The answer.
    pub value: u32,
}

/// A burst's questions, on their way to a device and back. It has no part in the burst's frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// Whose it is: chosen by who asks.
    pub number: u64,
    /// At most [`Batch::QUESTIONS`].
    pub keys: Vec<u64>,
    /// One for each of these, filled in by the device; fewer: nothing is known of the others.
    pub answers: Vec<u32>,
    /// What the device is to learn first: at most [`Batch::LESSONS`].
    pub lessons: Vec<Lesson>,
}

impl Batch {
    /// A session and a flow for each packet of a burst.
    pub const QUESTIONS: usize = 2 * io::BURST;
    /// As much as a burst may have asked in vain.
    pub const LESSONS: usize = Self::QUESTIONS;

    /// An empty one that has room for all.
    pub fn new() -> Self {
        Self {
            number: 0,
            keys: Vec::with_capacity(Self::QUESTIONS),
            answers: Vec::with_capacity(Self::QUESTIONS),
            lessons: Vec::with_capacity(Self::LESSONS),
        }
    }

    /// What a device does with it: learns the lessons, then answers the questions.
    pub fn answer_by(&mut self, memo: &mut Memo) {
        for lesson in &self.lessons {
            memo.set(lesson.key, lesson.value);
        }
        let mut found = [None; Self::QUESTIONS];
        memo.lookup_bulk(&self.keys, &mut found);
        let found = self.keys.iter().zip(found).map(|(_, found)| found.unwrap_or(UNKNOWN));
        self.answers.clear();
        self.answers.extend(found);
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.answers.clear();
        self.lessons.clear();
    }
}

/// The device doesn't answer any more: what was handed over doesn't come back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the device for look-ups is lost: {0}")]
pub struct Lost(pub String);

/// Why a batch was not taken.
#[derive(Debug)]
pub enum Refused {
    /// As many are under way as there is room for.
    Full(Batch),
    /// For good.
    Lost(Lost),
}

/// Who answers batches, one worker's own. Nothing here may block: it is called between bursts.
pub trait LookupDevice: Send + std::fmt::Debug {
    /// Takes a batch, to learn its lessons and then answer its questions.
    fn submit(&mut self, now: Nanos, batch: Batch) -> Result<(), Refused>;

    /// The next batch that is back. They come in the order in which they were taken.
    fn poll(&mut self, now: Nanos) -> Result<Option<Batch>, Lost>;
}

/// What a burst's hints were worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Worth {
    /// Those that were right.
    pub right: u64,
    /// Those that were not.
    pub wrong: u64,
    /// Questions without one, whose look-up found something.
    pub unknown: u64,
    /// Questions without one, with nothing to be found.
    pub nothing: u64,
}
