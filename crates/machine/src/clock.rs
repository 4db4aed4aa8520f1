//! What tells the time.

use crate::files::{FileError, Files};
use crate::processor::Processor;
use crate::{clean, note};
use serde::Serialize;

/// Clock sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// What the kernel reads: `tsc`, `kvm-clock`, `hpet`, …; `None`: it doesn't say.
    pub source: Option<String>,
    /// What it could read instead.
    pub available: Vec<String>,
    /// The time-stamp counter runs at one rate in all states of the processor (`constant_tsc`, `nonstop_tsc`).
    pub invariant_counter: bool,
}

impl Clock {
    /// Reads it below a root.
    pub fn read(files: Files<'_>, processor: &Processor, problems: &mut Vec<FileError>) -> Self {
        let folder = "sys/devices/system/clocksource/clocksource0";
        let mut text = |name: &str| note(problems, files.text(&format!("{folder}/{name}")));
        let available = text("available_clocksource").unwrap_or_default();
        Self {
            source: text("current_clocksource").filter(|text| !text.is_empty()).map(|text| clean(&text)),
            available: available.split_whitespace().take(16).map(clean).collect(),
            invariant_counter: processor.has(&["constant_tsc", "nonstop_tsc"]),
        }
    }

    /// Whether the kernel trusts the time-stamp counter: it watches it, and gives it up when it jumps or differs between cores.
    pub fn counter_is_trusted(&self) -> bool {
        self.source.as_deref() == Some("tsc") || self.available.iter().any(|source| source == "tsc")
    }
}
