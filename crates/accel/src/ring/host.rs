//! The host's side of a ring.

use super::data_from;
use super::layout::{
    COMMAND, ENDED, INPUT, ITEMS, LEAVE, LINE, OUTPUT, RUN, SEQUENCE, STARTED, STATUS, Shape, TABLE, TASK,
};
use super::memory::{Memory, Word, read, write};

/// A batch as it goes into a slot.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The task's kind, and what else there is to say of it.
    pub task: u64,
    /// How many items there are.
    pub items: u64,
    /// The table's address on the device, or zero.
    pub table: u64,
    /// The items' octets.
    pub octets: &'a [u8],
    /// The data's.
    pub data: &'a [u8],
    /// Octets that are to come out.
    pub output: usize,
}

/// What a done line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// [`DONE`](super::layout::DONE) or what was wrong.
    pub status: u64,
    /// Nanoseconds that the device worked at it.
    pub worked: u64,
}

/// The host's side: it rings doorbells and looks whether batches are done.
#[derive(Debug)]
pub struct Host<M> {
    memory: M,
    shape: Shape,
    /// By slot, the number that was last rung.
    rung: Vec<u64>,
}

impl<M: Memory> Host<M> {
    /// Lays a ring out in `memory`; none if that is too small.
    pub fn new(memory: M, shape: Shape) -> Option<Self> {
        if memory.words().len() < shape.words() {
            return None;
        }
        for (at, word) in shape.control() {
            memory.words()[at].set(word);
        }
        Some(Self { memory, shape, rung: vec![0; shape.slots()] })
    }

    /// How large it is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Whether the batch goes into a slot.
    pub fn fits(&self, items: usize, data: usize) -> bool {
        data_from(items) + data <= self.shape.input()
    }

    /// Puts a batch into a slot whose last batch is done, and rings. It does nothing, and says so, if there is no such slot, or the batch doesn't fit.
    pub fn ring(&mut self, slot: usize, order: Order) -> bool {
        if slot >= self.shape.slots()
            || !self.is_idle(slot)
            || !self.fits(order.octets.len(), order.data.len())
            || order.output > self.shape.output()
        {
            return false;
        }
        let words = self.memory.words();
        let base = self.shape.slot(slot);
        let input = base + 2 * LINE;
        write(&words[input..], order.octets);
        let data = data_from(order.octets.len());
        write(&words[input + data / 8..], order.data);
        for (at, word) in [
            (TASK, order.task),
            (ITEMS, order.items),
            (INPUT, (data + order.data.len()) as u64),
            (OUTPUT, order.output as u64),
            (TABLE, order.table),
        ] {
            words[base + at].set(word);
        }
        self.rung[slot] += 1;
        words[base + SEQUENCE].release(self.rung[slot]);
        true
    }

    /// Whether the slot's last batch is done.
    pub fn is_idle(&self, slot: usize) -> bool {
        self.memory.words()[self.shape.slot(slot) + LINE + SEQUENCE].acquire() == self.rung[slot]
    }

    /// What has become of the slot's last batch, if it is done; `output` gets what came out, as much as it has room for.
    pub fn fetch(&self, slot: usize, output: &mut [u8]) -> Option<Done> {
        if !self.is_idle(slot) {
            return None;
        }
        let words = self.memory.words();
        let done = self.shape.slot(slot) + LINE;
        let from = done + LINE + self.shape.input() / 8;
        let room = output.len().min(self.shape.output());
        read(&words[from..], &mut output[..room]);
        let worked = words[done + ENDED].get().wrapping_sub(words[done + STARTED].get());
        Some(Done { status: words[done + STATUS].get(), worked })
    }

    /// Tells the device to serve, before it is started; or to go. What it had not begun then waits until it is started again.
    pub fn command(&self, run: bool) {
        self.memory.words()[COMMAND].release(if run { RUN } else { LEAVE } as u64);
    }

    /// Forgets all batches that are not done. The device must have gone, and be started again only after this.
    pub fn forget(&mut self) {
        let words = self.memory.words();
        for (slot, rung) in self.rung.iter().enumerate() {
            words[self.shape.slot(slot) + LINE + SEQUENCE].set(*rung);
        }
    }
}
