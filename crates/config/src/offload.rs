//! The section of the file that says what NICs do by themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What NICs are asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OffloadMode {
    /// Nothing: workers forward everything.
    #[default]
    Off,
    /// Bring heavy flows to the queue of the worker that owns them, where the NIC's own hash brings them to another.
    Partial,
    /// Forward heavy flows without any worker seeing them.
    Full,
}

/// Flows that NICs take off the workers' hands (docs/offload.md). What a NIC can't do stays in software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OffloadSection {
    /// What NICs are asked to do.
    pub mode: OffloadMode,
    /// Flows of fewer packets a second stay in software.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub packets_per_second: u32,
    /// Seconds that a flow must have lived.
    #[schemars(range(min = 0, max = 3_600))]
    pub lifetime_seconds: u16,
    /// Seconds without a packet after which a flow comes back.
    #[schemars(range(min = 1, max = 3_600))]
    pub idle_seconds: u16,
    /// Milliseconds between two readings of a flow's counters.
    #[schemars(range(min = 10, max = 10_000))]
    pub read_interval_ms: u16,
    /// Bytes before a volume threshold or quota from which on software forwards and counts.
    #[schemars(range(min = 0, max = 1_099_511_627_776u64))]
    pub margin_bytes: u64,
    /// Rates are estimated from one packet in so many.
    #[schemars(range(min = 1, max = 65_535))]
    pub sample: u16,
}

impl Default for OffloadSection {
    fn default() -> Self {
        Self {
            mode: OffloadMode::Off,
            packets_per_second: 1000,
            lifetime_seconds: 1,
            idle_seconds: 5,
            read_interval_ms: 200,
            margin_bytes: 16 << 20,
            sample: 32,
        }
    }
}
