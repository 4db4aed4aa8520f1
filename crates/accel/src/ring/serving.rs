//! The device's side of a ring, as a thread of the host plays it. `kernels/ring.cuh` is the same for a GPU.

use super::layout::{
    COMMAND, DONE, ENDED, INPUT, ITEMS, LEAVE, LINE, OUTPUT, SEQUENCE, STARTED, STATUS, Shape, TABLE, TASK,
};
use super::memory::{Memory, Word, read, write};

/// A batch that a doorbell was rung for.
#[derive(Debug)]
pub struct Rung {
    /// The task's kind, and what else there is to say of it.
    pub task: u64,
    /// How many items there are.
    pub items: u64,
    /// The table's address, or zero.
    pub table: u64,
}

/// What a look at all slots came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// So many batches were done.
    Served(usize),
    /// There was none.
    Idle,
    /// The host wants the device to go.
    Leave,
}

/// The device's side.
#[derive(Debug)]
pub struct Serving<M> {
    memory: M,
    shape: Shape,
    /// By slot, the number of the batch that was last done.
    last: Vec<u64>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl<M: Memory> Serving<M> {
    /// Begins to serve a ring that a host has laid out. A batch that was not done when the device last left is still to be done: that is all it has to know.
    pub fn new(memory: M) -> Option<Self> {
        let words = memory.words();
        let shape = Shape::read(|at| words.get(at).map_or(0, Word::get))?;
        if words.len() < shape.words() {
            return None;
        }
        let last = (0..shape.slots()).map(|slot| words[shape.slot(slot) + LINE + SEQUENCE].get()).collect();
        Some(Self { last, input: vec![0; shape.input()], output: vec![0; shape.output()], memory, shape })
    }

    /// Looks at each slot once and does what was rung for. `now` is the device's time; `work` gets what goes in, and where what comes out is to go, and says
    /// how it ended.
    pub fn look(
        &mut self,
        now: impl Fn() -> u64,
        mut work: impl FnMut(&Rung, &[u8], &mut [u8]) -> usize,
    ) -> Look {
        let mut served = 0;
        for slot in 0..self.shape.slots() {
            let words = self.memory.words();
            if words[COMMAND].acquire() == LEAVE as u64 {
                return Look::Leave;
            }
            let base = self.shape.slot(slot);
            let sequence = words[base + SEQUENCE].acquire();
            if sequence == self.last[slot] {
                continue;
            }
            let started = now();
            let word = |at: usize| words[base + at].get();
            let rung = Rung { task: word(TASK), items: word(ITEMS), table: word(TABLE) };
            // Whoever wrote the doorbell may be wrong; what is read then is short.
            let input = self.input.len().min(word(INPUT) as usize);
            let output = self.output.len().min(word(OUTPUT) as usize);
            let (input, output) = (&mut self.input[..input], &mut self.output[..output]);
            let from = base + 2 * LINE;
            read(&words[from..], input);
            let status = work(&rung, input, output);
            if status == DONE {
                write(&words[from + self.shape.input() / 8..], output);
            }
            let done = &words[base + LINE..];
            done[STATUS].set(status as u64);
            done[STARTED].set(started);
            done[ENDED].set(now());
            done[SEQUENCE].release(sequence);
            self.last[slot] = sequence;
            served += 1;
        }
        if served > 0 { Look::Served(served) } else { Look::Idle }
    }
}
