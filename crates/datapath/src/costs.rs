//! What does each stage of a burst's way cost?
//!
//! Counted for a while when somebody asks ([`Command::CountStages`](crate::Command::CountStages)): then the time-stamp counter is read
//! behind each stage of each burst. Otherwise a stage's end costs a branch a burst. The datapath has no clock of its own: whoever
//! asks lends one.

use counters::By;
use tables::Nanos;
use tables::clock::Tsc;

counters::labels! {
    /// A stage, in the packet's order.
    pub enum Stage: "stage" {
        Parse = "parse", "Headers are read.";
        TranslateIn = "translate in", "Public destinations become UEs'.";
        Locate = "locate", "The session's record is found and fetched.";
        CheckSource = "check source", "The tunnel's sender is compared with who is known.";
        LookCloser = "look closer", "The flow and its rule's record are found and fetched.";
        TranslateOut = "translate out", "Mappings of what leaves are fetched.";
        Serve = "serve", "Records serve: checks, meters, counts, headers.";
        Judge = "judge", "What no record serves: judged by rules, answered, handed on or dropped.";
    }
}

counters::counters! {
    /// What was counted of the stages.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct StageCosts {
        /// Packets that were received or handed over. What those of our own making cost, which arise from them, is theirs.
        pub packets: u64 = "packets", Counter of Packets;
        /// Their bursts.
        pub bursts: u64 = "bursts", Counter;
        /// Ticks of the clock that a stage took.
        pub ticks: By<Stage, { Stage::COUNT }> = "ticks", Counter of Ticks;
    }
}

/// Counts while somebody asks.
#[derive(Debug)]
pub(crate) struct Laps {
    clock: Tsc,
    until: Nanos,
    last: u64,
    costs: StageCosts,
}

impl Laps {
    /// Until then.
    pub fn new(clock: Tsc, until: Nanos) -> Self {
        Self { clock, until, last: clock.ticks(), costs: StageCosts::default() }
    }

    /// Whether it is too late.
    pub const fn is_over(&self, now: Nanos) -> bool {
        now.0 > self.until.0
    }

    /// Goes on for longer.
    pub fn extend(&mut self, until: Nanos) {
        self.until = self.until.max(until);
    }

    /// What was counted.
    pub const fn costs(&self) -> StageCosts {
        self.costs
    }

    /// A burst of so many packets begins.
    pub fn begin(&mut self, packets: usize) {
        self.costs.packets += packets as u64;
        self.costs.bursts += 1;
        self.resume();
    }

    /// What lies between is no stage's.
    pub fn resume(&mut self) {
        self.last = self.clock.ticks();
    }

    /// A stage has ended.
    pub fn end(&mut self, stage: Stage) {
        let now = self.clock.ticks();
        self.costs.ticks.add(stage, now.saturating_sub(self.last));
        self.last = now;
    }
}
