//! What became of flows.

use super::Question;
use crate::table::Page;
use crate::words::counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show what became of flows, known, learned, evicted, and of the flow log; or set other watermarks.
#[cfg(feature = "clap")]
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FlowsCommand {
    /// Log flows when they have carried this many bytes. A watermark that isn't named is removed.
    #[arg(long, value_name = "BYTES")]
    watermark_bytes: Option<u64>,
    /// Log flows when they have carried this many packets.
    #[arg(long, value_name = "PACKETS")]
    watermark_packets: Option<u32>,
    /// Take both watermarks back.
    #[arg(long, conflicts_with_all = ["watermark_bytes", "watermark_packets"])]
    no_watermarks: bool,
    /// Also counters that are 0.
    #[arg(long)]
    all: bool,
}

#[cfg(feature = "clap")]
impl From<FlowsCommand> for super::Request {
    fn from(command: FlowsCommand) -> Self {
        match command {
            FlowsCommand { watermark_bytes: None, watermark_packets: None, no_watermarks: false, all } => {
                Flows { all }.into()
            }
            FlowsCommand { watermark_bytes: bytes, watermark_packets: packets, all, .. } => {
                FlowMarks { bytes, packets, all }.into()
            }
        }
    }
}

/// What became of flows, known, learned, evicted, and of the flow log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// Counters that are 0 are shown too. They are always told.
    #[serde(skip)]
    pub all: bool,
}

impl Question for Flows {
    const NAME: &'static str = "flows";
    const SEE: &'static str = "counters.md#flows";
    type Answer = FlowCounterList;

    fn show(&self, FlowCounterList { flows }: &FlowCounterList) -> Page {
        Page::text(counters(flows.iter(), self.all))
    }
}

/// Set other watermarks of single flows. One that isn't named is taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlowMarks {
    /// In bytes; none: no flow is told of for its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// In packets; likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Counters that are 0 are shown too.
    #[serde(skip)]
    pub all: bool,
}

impl Question for FlowMarks {
    const NAME: &'static str = "flow-marks";
    const ANSWER: &'static str = Flows::ANSWER;
    const SEE: &'static str = "flows.md#watermarks";
    type Answer = FlowCounterList;

    fn show(&self, told: &FlowCounterList) -> Page {
        Flows { all: self.all }.show(told)
    }
}

/// Counters of flows and of the flow log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowCounterList {
    /// In the order of the documentation.
    pub flows: Vec<CounterLine>,
}

/// A counter, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CounterLine {
    /// Its name.
    pub counter: String,
    /// `counter`: it only grows, from 0 when the process started. `gauge`: it goes up and down.
    pub kind: String,
    /// What it counts, where its name doesn't say it: `packets`, `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What it means.
    pub meaning: String,
    /// How many.
    pub value: u64,
}
