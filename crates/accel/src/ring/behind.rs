//! What serves a ring: a thread of this process, or whatever else can.

use super::layout::{DONE, NO_TASK};
use super::memory::{Memory, Word};
use super::{Look, Rung, Serving, data_from, decode};
use crate::copies::{OnHost, Shelf, TableId};
use crate::cpu::Executor;
use crate::device::{Clock, Failure};
use crate::task::{Kind, Task};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use tables::image::{Changes, Image};

/// Whatever serves a ring. The ring tells it to go; it says whether it has.
pub trait Behind: Send {
    /// The memory that the ring lies in.
    type Memory: Memory;

    /// What people call it.
    fn name(&self) -> &str;

    /// What it can do.
    fn kinds(&self) -> Vec<Kind>;

    /// Memory for a ring of so many words, all of them zero.
    fn memory(&mut self, words: usize) -> Result<Self::Memory, Failure>;

    /// Begins to serve the ring in that memory. It has gone before, if it was ever there.
    fn start(&mut self, memory: &Self::Memory) -> Result<(), Failure>;

    /// Whether it has gone, as it was told to. It never waits. An error says that it is lost.
    fn has_gone(&mut self) -> Result<bool, Failure>;

    /// Brings its copy of a table up to date.
    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure>;

    /// What a doorbell says for a table; none if there is no copy.
    fn table(&self, table: TableId) -> Option<u64>;

    /// Of which version the copy is that a task reads.
    fn version(&self, task: &Task) -> Option<u64>;

    /// Whether no line of that copy was written or on its way since it was of that version.
    fn is_steady(&self, task: &Task, version: Option<u64>) -> bool {
        self.version(task) == version
    }

    /// Called whenever the ring is looked at, for what has to be looked after besides.
    fn look(&mut self) {}
}

/// How long an idle thread goes on looking before it pauses, in looks.
const LOOKS: u32 = 2_000;

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

/// A thread that plays a GPU's part: the protocol without one.
#[derive(Debug)]
pub struct Thread<C> {
    clock: C,
    thread: Option<JoinHandle<()>>,
    copies: OnHost,
}

impl<C: Clock + Clone + 'static> Thread<C> {
    /// It goes by such a clock.
    pub fn new(clock: C) -> Self {
        Self { clock, thread: None, copies: OnHost::default() }
    }
}

impl<C: Clock + Clone + 'static> Behind for Thread<C> {
    type Memory = Arc<[AtomicU64]>;

    fn name(&self) -> &'static str {
        "cpu-ring"
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Hash, Kind::Nea2, Kind::Lookup]
    }

    fn memory(&mut self, words: usize) -> Result<Self::Memory, Failure> {
        Ok((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn start(&mut self, memory: &Self::Memory) -> Result<(), Failure> {
        let call = |why: String| Failure::Call { call: "accel-ring", why };
        let serving = Serving::new(Arc::clone(memory)).ok_or_else(|| call("no ring is laid out".into()))?;
        let (clock, shelf) = (self.clock.clone(), self.copies.shelf());
        let thread = std::thread::Builder::new()
            .name("accel-ring".into())
            .spawn(move || serve(serving, &clock, shelf))
            .map_err(|error| call(error.to_string()))?;
        self.thread = Some(thread);
        Ok(())
    }

    fn has_gone(&mut self) -> Result<bool, Failure> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().map(|()| true).map_err(|_| Failure::Panicked),
            None => Ok(self.thread.is_none()),
        }
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.copies.follow(table, image, changes)
    }

    /// The doorbell has the table's number, for the thread finds it by that.
    fn table(&self, table: TableId) -> Option<u64> {
        self.copies.shelf().has(table).then_some(u64::from(table.0))
    }

    fn version(&self, task: &Task) -> Option<u64> {
        self.copies.versions().of_task(task)
    }
}

/// Serves until it is told to go. What it does when there is nothing to do is what the kernel does: it looks again at once for a while, and then pauses,
/// longer and longer.
fn serve<M: Memory<Word = W>, W: Word>(mut serving: Serving<M>, clock: &impl Clock, shelf: Shelf) {
    let mut executor = Executor::new().with(shelf);
    let mut idle = 0;
    loop {
        match serving.look(|| clock.now().0, |rung, input, output| work(&mut executor, rung, input, output)) {
            Look::Leave => return,
            Look::Served(_) => idle = 0,
            Look::Idle => {
                idle += 1;
                if idle > LOOKS {
                    let pause = Duration::from_micros(u64::from(idle - LOOKS)).min(LONGEST_PAUSE);
                    std::thread::sleep(pause);
                } else {
                    std::thread::yield_now();
                }
            }
        }
    }
}

fn work(executor: &mut Executor, rung: &Rung, input: &[u8], output: &mut [u8]) -> usize {
    let Some(task) = decode(rung.task, rung.table) else { return NO_TASK };
    let items = task.item_octets().saturating_mul(rung.items as usize);
    let Some(octets) = input.get(..items) else { return NO_TASK };
    let data = input.get(data_from(items)..).unwrap_or_default();
    match executor.execute_parts(task, (octets, data, output)) {
        Ok(()) => DONE,
        Err(_) => NO_TASK,
    }
}
