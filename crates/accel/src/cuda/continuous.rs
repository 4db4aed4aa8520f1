//! The continuous kernel: what serves a ring on a GPU.

use super::cache::Cache;
use super::driver::Context;
use super::memory::Pinned;
use super::program::{Argument, Kernel, Mark, Program, Spread, Stream};
use super::tables::Tables;
use crate::copies::TableId;
use crate::device::Failure;
use crate::ring::{Behind, Shape};
use crate::task::{Kind, Task};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tables::image::{Changes, Image};

/// Threads of a block, as in the kernel's source.
const THREADS: usize = 256;

/// How long its owner waits for the kernel to go, when it is dropped.
const GOODBYE: Duration = Duration::from_secs(2);

/// A GPU behind a ring.
#[derive(Debug)]
pub struct Continuous {
    name: String,
    context: Arc<Context>,
    kernel: Kernel,
    stream: Stream,
    tables: Tables,
    /// Blocks of threads: each serves some slots.
    blocks: usize,
    running: bool,
    /// Kept until the kernel has gone, whoever else drops it.
    memory: Option<Arc<Pinned>>,
}

impl Continuous {
    /// On that GPU, for a ring of that shape, with so many octets for copies of tables. As many blocks are launched as there are slots, if so many can run at
    /// a time beside those of other rings (`rings`, with this one); those that couldn't would never be reached.
    pub fn new(
        context: &Arc<Context>,
        cache: Option<&Cache>,
        shape: Shape,
        tables: usize,
        rings: usize,
    ) -> Result<Self, Failure> {
        let kernel = Program::load(context, cache, "continuous.cu")?.kernel("continuous")?;
        let resident = kernel.resident(THREADS)?;
        let blocks = shape.slots().min(resident / rings.max(1));
        if blocks == 0 {
            let why = format!("{rings} continuous kernels don't run beside each other: {resident} blocks do");
            return Err(Failure::Call { call: "cuOccupancyMaxActiveBlocksPerMultiprocessor", why });
        }
        Ok(Self {
            name: format!("cuda{}-ring", context.gpu().number),
            kernel,
            stream: Stream::new(context)?,
            tables: Tables::new(context, tables)?,
            blocks,
            running: false,
            memory: None,
            context: Arc::clone(context),
        })
    }

    /// Whether the kernel has ended.
    fn has_ended(&self) -> Result<bool, Failure> {
        self.context.enter()?;
        self.stream.has_passed(Mark::Ended)
    }
}

impl Behind for Continuous {
    type Memory = Arc<Pinned>;

    fn name(&self) -> &str {
        &self.name
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Hash, Kind::Nea2, Kind::Lookup]
    }

    fn memory(&mut self, words: usize) -> Result<Self::Memory, Failure> {
        Ok(Arc::new(Pinned::new(&self.context, words, "the ring")?))
    }

    fn start(&mut self, memory: &Self::Memory) -> Result<(), Failure> {
        self.context.enter()?;
        self.memory = Some(Arc::clone(memory));
        let spread = Spread { blocks: self.blocks, threads: THREADS, shared: 0 };
        let arguments = [Argument::Long(memory.address())];
        // SAFETY: `continuous(ring)`: a ring is laid out in the memory, which is kept until the kernel has gone. What the doorbells lead to (copies of tables) lives as
        // long as this, and this waits for the kernel when it is dropped, or leaves all of it where it is.
        unsafe { self.kernel.launch(&self.stream, spread, &arguments)? };
        self.stream.mark(Mark::Ended)?;
        self.running = true;
        Ok(())
    }

    fn has_gone(&mut self) -> Result<bool, Failure> {
        if self.running && self.has_ended()? {
            self.running = false;
        }
        Ok(!self.running)
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.tables.follow(table, image, changes)
    }

    fn table(&self, table: TableId) -> Option<u64> {
        self.tables.address(table)
    }

    fn version(&self, task: &Task) -> Option<u64> {
        self.tables.version(task)
    }

    fn is_steady(&self, task: &Task, version: Option<u64>) -> bool {
        self.tables.is_steady(task, version)
    }

    fn look(&mut self) {
        self.tables.settle();
    }
}

impl Drop for Continuous {
    /// The ring has told the kernel to go. If it doesn't, all that it uses stays where it is, until the process ends.
    fn drop(&mut self) {
        let since = Instant::now();
        while self.running && since.elapsed() < GOODBYE {
            match self.has_ended() {
                Ok(true) | Err(_) => self.running = false,
                Ok(false) => std::thread::sleep(Duration::from_micros(50)),
            }
        }
        if self.running {
            std::mem::forget(self.memory.take());
            self.tables.keep_forever();
        }
    }
}
