//! What machine a figure was measured on, so that it can be read later and elsewhere.

use machine::files::Files;
use machine::kernel::Kernel;
use machine::processor::Processor;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts that the kernel tells.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Time stamp counter frequency in Hz: "cycles" in reports are its ticks.
    pub tsc_hz: u64,
    /// Memory in bytes.
    pub memory: u64,
    /// Huge pages of 2 MB reserved.
    pub huge_pages: u64,
    /// Kernel release.
    pub kernel: String,
    /// Seconds since 1970 when the report was made.
    pub time: u64,
    /// Version of Millrace.
    pub millrace: &'static str,
}

impl Machine {
    /// Reads this machine's facts; one that the kernel doesn't tell is empty or zero.
    pub fn read(clock: &tables::clock::Tsc) -> Self {
        let (files, unread) = (Files(Path::new("/")), &mut Vec::new());
        let memory = machine::memory::Memory::read(files, &BTreeSet::new(), unread);
        let of_2_mb = memory.huge.iter().find(|pages| pages.bytes == 2 << 20);
        Self {
            cpu: Processor::read(files, unread).model,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            tsc_hz: clock.hz(),
            memory: memory.total.unwrap_or_default(),
            huge_pages: of_2_mb.map_or(0, |pages| pages.total),
            kernel: Kernel::read(files, unread).release,
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            millrace: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, TSC {:.2} GHz, {} GiB, kernel {}",
            self.cpu,
            self.cores,
            self.tsc_hz as f64 / 1e9,
            self.memory >> 30,
            self.kernel
        )
    }
}

/// Resident memory of this process in bytes.
pub fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
