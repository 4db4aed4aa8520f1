//! What machine a figure was measured on, so that it can be read later and elsewhere.

use serde::Serialize;
use std::fmt;
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
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let meminfo = read("/proc/meminfo");
        let field = |text: &str, name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let number =
            |text: String| text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0u64);
        Self {
            cpu: field(&cpuinfo, "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            tsc_hz: clock.hz(),
            memory: number(field(&meminfo, "MemTotal")) * 1024,
            huge_pages: number(field(&meminfo, "HugePages_Total")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
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
