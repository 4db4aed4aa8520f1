//! The counters of a [`MemSwitch`](super::MemSwitch), as hardware shows them: late, and not always whole.

use super::switch::FlowTableConfig;
use crate::offload::Counts;
use tables::Nanos;

/// Packets and bytes, and what is shown of them.
#[derive(Debug, Default)]
pub(super) struct Counter {
    counts: Counts,
    /// As they were when the device looked last.
    shown: Counts,
    looked: Nanos,
    /// What the last reading said.
    told: Counts,
    readings: u32,
}

impl Counter {
    pub fn count(&mut self, bytes: usize, now: Nanos, config: &FlowTableConfig) {
        self.look(now, config);
        self.counts.packets += 1;
        self.counts.bytes += bytes as u64;
    }

    /// The device copies its counters now and then.
    fn look(&mut self, now: Nanos, config: &FlowTableConfig) {
        if now.since(self.looked) >= config.delay {
            (self.shown, self.looked) = (self.counts, now);
        }
    }

    /// What a reading says: where readings are torn, of two in three one number is the last reading's.
    pub fn read(&mut self, now: Nanos, config: &FlowTableConfig) -> Counts {
        self.look(now, config);
        self.readings += 1;
        let before = self.told;
        self.told = match self.readings % 3 {
            1 if config.torn => Counts { bytes: before.bytes, ..self.shown },
            2 if config.torn => Counts { packets: before.packets, ..self.shown },
            _ => self.shown,
        };
        self.told
    }

    /// What was counted in all: whoever takes it back waits for that.
    pub const fn total(&self) -> Counts {
        self.counts
    }
}
