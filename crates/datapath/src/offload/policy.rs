//! What devices are asked to do, and when.

use tables::Nanos;

/// What devices are asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Bring heavy flows that arrive at other workers to this worker's own queue.
    Partial {
        /// The worker's queue, on every port.
        queue: u16,
    },
    /// Forward heavy flows.
    Full,
}

/// When a flow goes down, and when it comes back.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What devices are asked to do.
    pub mode: Mode,
    /// One packet in so many is looked at.
    pub sample: u32,
    /// Flows watched at a time.
    pub watched: usize,
    /// How long rates are measured, in nanoseconds.
    pub window: u64,
    /// A flow of fewer packets a second stays in software.
    pub packets_per_second: u64,
    /// Nanoseconds that a flow must have lived.
    pub lifetime: u64,
    /// Rules inserted in one tick, at most.
    pub insertions: u32,
    /// Rules whose counters are read in one tick, at most.
    pub reads: u32,
    /// Nanoseconds between two readings of a rule's counters.
    pub read_interval: u64,
    /// Nanoseconds without a packet after which a rule is taken back.
    pub idle: u64,
    /// Bytes before a volume limit from which on software counts.
    pub margin: u64,
    /// On a full device, a flow takes another's place only if it is so many times heavier.
    pub heavier: u64,
    /// Nanoseconds for which a flow isn't considered again that was refused or taken back.
    pub rest: u64,
    /// Nanoseconds before a device that failed is tried again; doubles each time, up to 64 times.
    pub retry: u64,
    /// Where samples lie.
    pub seed: u64,
}

impl Policy {
    /// Sensible values: flows of 1,000 packets a second that have lived for a second; readings five times a second.
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode,
            sample: 32,
            watched: 4096,
            window: Nanos::SECOND / 10,
            packets_per_second: 1000,
            lifetime: Nanos::SECOND,
            insertions: 8,
            reads: 64,
            read_interval: Nanos::SECOND / 5,
            idle: 5 * Nanos::SECOND,
            margin: 16 << 20,
            heavier: 2,
            rest: 2 * Nanos::SECOND,
            retry: Nanos::SECOND,
            seed: 0x6f66_666c_6f61_6421,
        }
    }
}
