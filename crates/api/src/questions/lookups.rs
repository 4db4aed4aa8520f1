//! Look-ups that a device does for workers.

use super::{CounterLine, Question};
use crate::table::{Page, columns};
use crate::words::counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show what a device looks up for workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Lookups {
    /// Also counters that are 0.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
}

impl Question for Lookups {
    const NAME: &'static str = "lookups";
    const SEE: &'static str = "device-lookups.md";
    type Answer = LookupStatus;

    fn show(&self, told: &LookupStatus) -> Page {
        if told.workers.is_empty() {
            return Page::text("Workers look up by themselves (workers.lookup).\n");
        }
        let mut page = Page::table(&told.workers);
        page.say(format!("\n{}", counters(told.counters.iter(), self.all)));
        page
    }
}

/// What became of look-ups.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LookupStatus {
    /// Workers that have a device; none if all of them look up by themselves.
    pub workers: Vec<LookupWorkerLine>,
    /// All workers together, in the order of the documentation.
    pub counters: Vec<CounterLine>,
}

/// A worker that has a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LookupWorkerLine {
    /// The worker.
    pub worker: u16,
    /// Whether the device is lost: the worker looks up by itself from then on.
    pub lost: bool,
    /// Bursts that were handed over.
    pub asked: u64,
    /// Bursts that were answered in time.
    pub answered: u64,
    /// How long these waited in the mean.
    pub mean_wait_us: u64,
}

columns!(LookupWorkerLine, |line| {
    "WORKER" Right line.worker,
    "DEVICE" Left if line.lost { "lost" } else { "answers" },
    "BURSTS ASKED" Right line.asked,
    "ANSWERED" Right line.answered,
    "MEAN WAIT US" Right line.mean_wait_us,
});
