//! Copies of tables in the GPU's memory. Room for all of them is taken at the start, since none can be taken while the continuous kernel runs.

use super::driver::Context;
use super::memory::{OnDevice, Pinned};
use super::program::{Mark, Stream};
use crate::copies::layout::LINE;
use crate::copies::{Follower, TableId, Versions};
use crate::device::Failure;
use crate::task::Task;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tables::image::{Changes, Image};

/// Octets that are on their way at a time.
const STAGE: usize = 8 << 20;

/// How long one waits for lines to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Octets of a line.
const LINE_OCTETS: usize = 4 * LINE;

/// The copies.
#[derive(Debug)]
pub(super) struct Tables {
    /// First, for what is in it still uses the memory.
    stream: Stream,
    stage: Pinned,
    /// Octets of the stage that are on their way.
    staged: usize,
    memory: OnDevice,
    used: usize,
    /// By table, where its copy is.
    copies: BTreeMap<TableId, (usize, Follower)>,
    versions: Versions,
    /// Tables whose lines are on their way.
    writing: Vec<TableId>,
}

impl Tables {
    pub(super) fn new(context: &Arc<Context>, octets: usize) -> Result<Self, Failure> {
        Ok(Self {
            stream: Stream::new(context)?,
            stage: Pinned::new(context, if octets > 0 { STAGE / 8 } else { 1 }, "tables' changes")?,
            staged: 0,
            memory: OnDevice::new(context, octets, "tables")?,
            used: 0,
            copies: BTreeMap::new(),
            versions: Versions::default(),
            writing: Vec::new(),
        })
    }

    /// Leaves the memory where it is, for what still reads it.
    pub(super) fn keep_forever(&mut self) {
        self.memory.keep_forever();
    }

    /// Where a table's copy is, for the GPU.
    pub(super) fn address(&self, table: TableId) -> Option<u64> {
        self.copies.get(&table).map(|(at, _)| self.memory.address() + *at as u64)
    }

    /// Of which version the copy is that a task reads.
    pub(super) fn version(&self, task: &Task) -> Option<u64> {
        self.versions.of_task(task)
    }

    /// Whether no line of that copy was written or on its way since it was of that version.
    pub(super) fn is_steady(&self, task: &Task, version: Option<u64>) -> bool {
        let writing = matches!(task, Task::Lookup(lookup) if self.writing.contains(&lookup.table));
        !writing && self.version(task) == version
    }

    /// Looks whether the lines that were on their way have arrived: with that, copies are of another version once more, so that no look-up that ran in between
    /// counts as steady.
    pub(super) fn settle(&mut self) {
        if !self.writing.is_empty() && self.stream.has_passed(Mark::Ended) == Ok(true) {
            self.writing.drain(..).for_each(|table| self.versions.write(table));
            self.staged = 0;
        }
    }

    pub(super) fn follow(
        &mut self,
        table: TableId,
        image: &dyn Image,
        changes: &Changes,
    ) -> Result<(), Failure> {
        self.stream.context().enter()?;
        self.settle();
        if !self.copies.contains_key(&table) {
            let follower = Follower::on_gpu(image)?;
            let octets = follower.words() * 4;
            if octets > self.memory.octets() - self.used {
                return Err(Failure::OutOfMemory { octets, what: "a table" });
            }
            self.copies.insert(table, (self.used, follower));
            self.used += octets.next_multiple_of(LINE_OCTETS);
        }
        let Some((at, mut follower)) = self.copies.remove(&table) else { return Ok(()) };
        self.versions.write(table);
        let base = self.memory.address() + at as u64;
        let (stream, stage, staged) = (&self.stream, &mut self.stage, &mut self.staged);
        let outcome =
            follower.follow(image, changes, |word, words| write(stream, stage, staged, base, word, words));
        self.copies.insert(table, (at, follower));
        self.stream.mark(Mark::Ended)?;
        if !self.writing.contains(&table) {
            self.writing.push(table);
        }
        outcome
    }
}

/// Puts words on their way; when the stage is full, it waits for those before.
fn write(
    stream: &Stream,
    stage: &mut Pinned,
    staged: &mut usize,
    base: u64,
    word: usize,
    words: &[u32],
) -> Result<(), Failure> {
    let mut to = base + 4 * word as u64;
    for piece in words.chunks(STAGE / 4) {
        if *staged + 4 * piece.len() > STAGE {
            stream.mark(Mark::Ended)?;
            let since = Instant::now();
            while !stream.has_passed(Mark::Ended)? {
                if since.elapsed() > PATIENCE {
                    return Err(Failure::Lost("a table's lines don't arrive".into()));
                }
                std::thread::yield_now();
            }
            *staged = 0;
        }
        let octets: Vec<u8> = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
        stage.write(*staged, &octets);
        // SAFETY: the octets were just put there, and stay until the stream has passed its mark; a follower writes inside the copy's words.
        unsafe { stream.copy_in(to, stage.address() + *staged as u64, octets.len())? };
        *staged += octets.len().next_multiple_of(8);
        to += octets.len() as u64;
    }
    Ok(())
}
