//! Where everything is in the memory that both sides see, written once: here for Rust, and as [`CPP`] for the kernels.
//!
//! All of it is words of 64 bits. What one side writes and the other polls has a line of its own, as long as the widest transfer that hardware makes of
//! it, so that none of them is slowed down by what stands beside it:
//!
//! ```text
//! line 0               control      the host writes: COMMAND, SLOTS, INPUT_LINES, OUTPUT_LINES
//! then for each slot:
//!   line 0             doorbell     the host writes: SEQUENCE last, and before it TASK, ITEMS, INPUT, OUTPUT, TABLE
//!   line 1             done         the device writes: SEQUENCE last, and before it STATUS, STARTED, ENDED
//!   INPUT_LINES        input        the host writes: the items, and from the next multiple of 16 octets on the data
//!   OUTPUT_LINES       output       the device writes
//! ```

use crate::constants::constants;

constants! { "RING_", "src/ring/layout.rs";
    /// Words of a line.
    LINE = 16;
    /// Of the control line: what the device is to do, [`RUN`] or [`LEAVE`].
    COMMAND = 0;
    /// Of the control line: how many slots there are.
    SLOTS = 1;
    /// Of the control line: lines of a slot's input.
    INPUT_LINES = 2;
    /// Of the control line: lines of a slot's output.
    OUTPUT_LINES = 3;
    /// Of a doorbell and of a done line: the number of the batch that is in the slot, and of the batch that was done last.
    SEQUENCE = 0;
    /// Of a doorbell: the task's kind, and from bit 8 on what else there is to say of it.
    TASK = 1;
    /// Of a doorbell: how many items there are.
    ITEMS = 2;
    /// Of a doorbell: octets that went in.
    INPUT = 3;
    /// Of a doorbell: octets that are to come out.
    OUTPUT = 4;
    /// Of a doorbell: the address of the table's image, on the device.
    TABLE = 5;
    /// Of a done line: [`DONE`], or what was wrong with the batch.
    STATUS = 1;
    /// Of a done line: when work began, in nanoseconds of the device.
    STARTED = 2;
    /// Of a done line: when it ended.
    ENDED = 3;
    /// A command: serve.
    RUN = 0;
    /// A command: end what you have begun, begin nothing more, and go.
    LEAVE = 1;
    /// A status: as it should be.
    DONE = 0;
    /// A status: the device doesn't know the task.
    NO_TASK = 1;
    /// The most slots.
    MOST_SLOTS = 144;
}

/// Octets of a line.
pub const LINE_OCTETS: usize = LINE * 8;

/// How large a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    slots: usize,
    input_lines: usize,
    output_lines: usize,
}

impl Shape {
    /// A ring of so many slots with room for so many octets that go in, and that come out; or none, if it would have no slot, too many, or more octets than
    /// a gigabyte.
    pub fn new(slots: usize, input: usize, output: usize) -> Option<Self> {
        let shape = Self {
            slots,
            input_lines: input.div_ceil(LINE_OCTETS),
            output_lines: output.div_ceil(LINE_OCTETS),
        };
        let lines = shape.input_lines.checked_add(shape.output_lines)?.checked_add(2)?.checked_mul(slots)?;
        ((1..=MOST_SLOTS).contains(&slots) && lines < (1 << 30) / LINE_OCTETS).then_some(shape)
    }

    /// Slots.
    pub const fn slots(self) -> usize {
        self.slots
    }

    /// Octets of a slot's input.
    pub const fn input(self) -> usize {
        self.input_lines * LINE_OCTETS
    }

    /// Octets of a slot's output.
    pub const fn output(self) -> usize {
        self.output_lines * LINE_OCTETS
    }

    /// Words of all memory that the ring needs.
    pub const fn words(self) -> usize {
        LINE * (1 + self.slots * (2 + self.input_lines + self.output_lines))
    }

    /// The first word of a slot.
    pub(super) const fn slot(self, slot: usize) -> usize {
        LINE * (1 + slot * (2 + self.input_lines + self.output_lines))
    }

    /// As the control line has it.
    pub(super) const fn control(self) -> [(usize, u64); 3] {
        [
            (SLOTS, self.slots as u64),
            (INPUT_LINES, self.input_lines as u64),
            (OUTPUT_LINES, self.output_lines as u64),
        ]
    }

    /// As read from a control line.
    pub(super) fn read(word: impl Fn(usize) -> u64) -> Option<Self> {
        Self::new(
            word(SLOTS) as usize,
            (word(INPUT_LINES) as usize).checked_mul(LINE_OCTETS)?,
            (word(OUTPUT_LINES) as usize).checked_mul(LINE_OCTETS)?,
        )
    }
}
