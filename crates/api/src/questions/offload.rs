//! Flows in NICs.

use super::{CounterLine, Question};
use crate::table::{Page, columns};
use crate::words::counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show flows that NICs forward by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Offload {
    /// Also counters that are 0.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
}

impl Question for Offload {
    const NAME: &'static str = "offload";
    const SEE: &'static str = "offload.md";
    type Answer = OffloadStatus;

    fn show(&self, told: &OffloadStatus) -> Page {
        if told.ports.is_empty() {
            return Page::text("Nothing is to be offloaded (offload.mode).\n");
        }
        let mut page = Page::table(&told.ports);
        match (told.some.len() as u64, told.flows) {
            (_, 0) => page.say("\nNo flow is in a NIC.\n"),
            (some, all) if some == all => page.part(&told.some),
            (some, all) => {
                page.part(&told.some);
                page.say(format!("{some} of {all} flows are shown.\n"));
            }
        }
        page.say(format!("\n{}", counters(told.counters.iter(), self.all)));
        page
    }
}

/// What NICs do by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OffloadStatus {
    /// Flows in NICs now.
    pub flows: u64,
    /// Some of them: a few of each worker's.
    pub some: Vec<OffloadFlowLine>,
    /// In the order of the configuration; empty if nothing is to be offloaded.
    pub ports: Vec<OffloadPortLine>,
    /// All workers together, in the order of the documentation.
    pub counters: Vec<CounterLine>,
}

/// A flow in a NIC.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OffloadFlowLine {
    /// The worker that it belongs to.
    pub worker: u16,
    /// The port that it arrives at.
    pub port: String,
    /// Whether it comes from the UE.
    pub uplink: bool,
    /// Its packets.
    pub flow: String,
    /// How many the NIC has handled.
    pub packets: u64,
    /// How many a second, lately.
    pub packets_per_second: u64,
}

/// What a port's NIC can.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OffloadPortLine {
    /// The port.
    pub port: String,
    /// Flows that fit, if the NIC says so.
    pub entries: Option<u32>,
    /// What its rules may contain; empty: it takes none.
    pub features: Vec<String>,
}

columns!(OffloadPortLine, |port| {
    "PORT" Left port.port,
    "ENTRIES" Right port.entries,
    "ITS RULES MAY CONTAIN" Left port.features,
});

columns!(OffloadFlowLine, |flow| {
    "WORKER" Right flow.worker,
    "PORT" Left flow.port,
    "DIRECTION" Left if flow.uplink { "uplink" } else { "downlink" },
    "PACKETS" Right flow.packets,
    "PER SECOND" Right flow.packets_per_second,
    "FLOW" Left flow.flow,
});
