//! What does each stage of a burst's way cost?
//!
//! Counted for a while when somebody asks ([`Command::CountStages`](crate::Command::CountStages)): then the time-stamp counter is read
//! behind each stage of each burst. Otherwise a stage's end costs a branch a burst. The datapath has no clock of its own: whoever
//! asks lends one.

use tables::Nanos;
use tables::clock::Tsc;

/// A stage, in the packet's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Headers are read.
    Parse,
    /// Public destinations become UEs'.
    TranslateIn,
    /// The session's record is found and fetched.
    Locate,
    /// The tunnel's sender is compared with who is known.
    CheckSource,
    /// The flow and its rule's record are found and fetched.
    LookCloser,
    /// Mappings of what leaves are fetched.
    TranslateOut,
    /// Records serve: checks, meters, counts, headers.
    Serve,
    /// What no record serves: judged by rules, answered, handed on or dropped.
    Judge,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Parse,
        Self::TranslateIn,
        Self::Locate,
        Self::CheckSource,
        Self::LookCloser,
        Self::TranslateOut,
        Self::Serve,
        Self::Judge,
    ];

    /// The name in reports.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::TranslateIn => "translate in",
            Self::Locate => "locate",
            Self::CheckSource => "check source",
            Self::LookCloser => "look closer",
            Self::TranslateOut => "translate out",
            Self::Serve => "serve",
            Self::Judge => "judge",
        }
    }
}

/// What was counted of the stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageCosts {
    /// Packets that were received or handed over. What those of our own making cost, which arise from them, is theirs.
    pub packets: u64,
    /// Their bursts.
    pub bursts: u64,
    /// Ticks of the clock, by stage in the order of [`Stage::ALL`].
    pub ticks: [u64; Stage::ALL.len()],
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
        if let Some(ticks) = self.costs.ticks.get_mut(stage as usize) {
            *ticks += now.saturating_sub(self.last);
        }
        self.last = now;
    }
}
