//! Look-ups by a device of `accel`.
//!
//! **Problem.** Workers ask questions and tell what they have learned ([`datapath::lookups`]); a device looks keys up in a copy of a table, and knows
//! nothing of either ([`accel`]).
//!
//! **Model.** The table is a [`Memo`]. The worker's thread has it in memory, as the master copy: lessons go into it, and the lines that they change go to the
//! device's copy while look-ups run there. Nobody looks up in the master. A question is a key of two words.
//!
//! - **Steady or not**: an answer that was worked out while lines were on their way may be missing or belong to a neighbour. As a hint it is as good as any.
//! - **Order**: the device gives batches back in any; here each waits until those before it are back.
//! - **What the device doesn't do** (a batch that it returns as failed, questions beyond its limits) comes back without an answer. What it does twice counts once.
//! - **Work of a call** is bounded: a batch's lessons, a line for each, and the batch. Nothing waits. Nothing is allocated here for a burst: batches and lists are used again.
//!   (The devices of `accel` allocate small things: the list of their limits with each batch, that of a table's regions when a copy follows.)
//!
//! **When it is lost**, it is lost for good: [`accel::Device::revive`] may wait for a driver, and workers don't.

use accel::copies::TableId;
use accel::copies::layout::NONE;
use accel::task::{Lookup, Task};
use accel::{Completion, Device, Failure, Refusal, Rejected};
use datapath::lookups::{Batch, LookupDevice, Lost, Refused, UNKNOWN};
use std::collections::VecDeque;
use tables::image::{Changes, Image, Kind};
use tables::{Memo, Nanos, memo};

/// The one table of a device.
const TABLE: TableId = TableId(1);
const TASK: Task = Task::Lookup(Lookup { table: TABLE, kind: Kind::Memo });
/// Batches under way, at most, however many the device would take.
const MOST: usize = 64;

const _: () = assert!(NONE as u32 == UNKNOWN);

/// Why a device can't be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfit {
    /// It can't do it, or not for a single question at a time.
    #[error("{0} looks nothing up")]
    Incapable(String),
    /// The master copy has no room.
    #[error("there are no {0} octets of memory for what a device is to know")]
    NoMemory(usize),
    /// It doesn't take the copy.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A batch that was taken.
struct Taken {
    batch: Batch,
    is_back: bool,
}

/// See the module's documentation.
pub struct Accelerated {
    device: Box<dyn Device>,
    memo: Memo,
    changes: Changes,
    /// Batches under way, at most.
    room: usize,
    /// Of a batch, as many as the device takes.
    questions: usize,
    /// Oldest first.
    taken: VecDeque<Taken>,
    /// The oldest one's ticket; those behind it have the next ones.
    first: u64,
    /// For those that come.
    spare: Vec<accel::Batch>,
    ended: Vec<Completion>,
    lost: Option<Lost>,
}

impl Accelerated {
    /// Has a device know about so many entries. All of the copy is brought to it now, which may take a while; later only what changes.
    pub fn open(mut device: Box<dyn Device>, entries: usize) -> Result<Self, Unfit> {
        let limits = device.limits();
        let questions =
            [limits.items, limits.input / TASK.item_octets(), limits.output / TASK.answer_octets()];
        let questions = questions.into_iter().fold(Batch::QUESTIONS, usize::min);
        let room = limits.in_flight.min(MOST);
        if questions == 0 || room == 0 || !limits.kinds.contains(&TASK.kind()) {
            return Err(Unfit::Incapable(device.name().to_owned()));
        }
        let memo = Memo::on_large_pages(entries);
        let mut memo = memo.map_err(|_| Unfit::NoMemory(Memo::octets(entries)))?;
        let mut changes = Changes::default();
        memo.track(Batch::LESSONS);
        memo.changes(&mut changes);
        device.follow(TABLE, &memo, &changes)?;
        changes.lines.reserve_exact(Batch::LESSONS);
        let spare = || {
            let mut batch = accel::Batch::new(0, TASK);
            (0..questions).try_for_each(|_| batch.push_key(&memo::words(0))).ok().map(|()| batch)
        };
        Ok(Self {
            spare: (0..room).filter_map(|_| spare()).collect(),
            device,
            memo,
            changes,
            room,
            questions,
            taken: VecDeque::with_capacity(room),
            first: 0,
            ended: Vec::with_capacity(room),
            lost: None,
        })
    }

    /// What is said from now on. Nothing is asked of the device any more, so it is lost but once.
    fn lose(&mut self, why: &dyn ToString) -> Lost {
        self.lost.insert(Lost(why.to_string())).clone()
    }

    /// Puts what the worker has learned into the master, and on its way to the copy.
    fn learn(&mut self, batch: &Batch) -> Result<(), Failure> {
        for lesson in batch.lessons.iter().take(Batch::LESSONS) {
            self.memo.set(lesson.key, lesson.value);
        }
        self.memo.changes(&mut self.changes);
        if self.changes.is_empty() {
            return Ok(());
        }
        self.device.follow(TABLE, &self.memo, &self.changes)
    }

    /// Hands the questions to the device; whether there was one.
    fn ask(&mut self, now: Nanos, keys: &[u64]) -> Result<bool, Refusal> {
        let mut asks = self.spare.pop().unwrap_or_else(|| accel::Batch::new(0, TASK));
        asks.clear(self.first + self.taken.len() as u64, TASK);
        let asked = keys.iter().take(self.questions).try_for_each(|key| asks.push_key(&memo::words(*key)));
        if asked.is_err() || asks.is_empty() {
            self.spare.push(asks);
            return Ok(false);
        }
        self.device.submit(asks, now).map(|()| true).map_err(|Rejected { batch, why }| {
            self.spare.push(batch);
            why
        })
    }

    /// Takes what the device has ended.
    fn fetch(&mut self, now: Nanos) {
        self.device.poll(now, &mut self.ended);
        let mut gone = None;
        for Completion { batch: asks, outcome, .. } in self.ended.drain(..) {
            let place = asks.ticket.checked_sub(self.first).map(|place| place as usize);
            // What comes back a second time, and whatever was never handed over, is nobody's.
            let taken = place.and_then(|place| self.taken.get_mut(place)).filter(|taken| !taken.is_back);
            match (outcome, taken) {
                (Ok(()), Some(Taken { batch, is_back })) => {
                    let answers = asks.output().as_chunks().0.iter();
                    batch.answers.extend(answers.map(|octets| u32::from_le_bytes(*octets)));
                    *is_back = true;
                }
                // This batch alone.
                (Err(Failure::Status(_) | Failure::OutOfMemory { .. }), Some(taken)) => taken.is_back = true,
                (Err(failure), Some(_)) => gone = Some(failure),
                (_, None) => {}
            }
            if self.spare.len() < self.room {
                self.spare.push(asks);
            }
        }
        if let Some(failure) = gone {
            self.lose(&failure);
        }
    }
}

impl LookupDevice for Accelerated {
    fn submit(&mut self, now: Nanos, mut batch: Batch) -> Result<(), Refused> {
        // What is lost or full is told nothing: what changes would pile up on the way to it.
        if self.lost.is_none() {
            self.fetch(now);
        }
        if let Some(lost) = &self.lost {
            return Err(Refused::Lost(lost.clone()));
        }
        if self.taken.len() >= self.room {
            return Err(Refused::Full(batch));
        }
        self.learn(&batch).map_err(|failure| Refused::Lost(self.lose(&failure)))?;
        batch.answers.clear();
        match self.ask(now, &batch.keys) {
            Ok(is_asked) => {
                self.taken.push_back(Taken { batch, is_back: !is_asked });
                Ok(())
            }
            Err(Refusal::Full | Refusal::Broken(Failure::OutOfMemory { .. })) => Err(Refused::Full(batch)),
            Err(why) => Err(Refused::Lost(self.lose(&why))),
        }
    }

    fn poll(&mut self, now: Nanos) -> Result<Option<Batch>, Lost> {
        if self.lost.is_none() {
            self.fetch(now);
        }
        match (self.taken.pop_front_if(|taken| taken.is_back), &self.lost) {
            (Some(Taken { batch, .. }), _) => {
                self.first += 1;
                Ok(Some(batch))
            }
            (None, Some(lost)) => Err(lost.clone()),
            (None, None) => Ok(None),
        }
    }
}

impl std::fmt::Debug for Accelerated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accelerated")
            .field("device", &self.device.name())
            .field("memo", &self.memo)
            .field("taken", &self.taken.len())
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
