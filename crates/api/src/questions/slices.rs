//! What slices' packets came to.

use super::Question;
use crate::table::{Page, columns};
use crate::words::rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show what each slice's packets came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Slices {}

impl Question for Slices {
    const NAME: &'static str = "slices";
    const SEE: &'static str = "meters.md";
    type Answer = SliceList;

    fn show(&self, SliceList { slices }: &SliceList) -> Page {
        if slices.is_empty() { Page::text("No slices are configured.\n") } else { Page::table(slices) }
    }
}

/// All slices.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SliceList {
    /// In the order of the configuration, uplink before downlink.
    pub slices: Vec<SliceLine>,
}

/// One direction of a slice, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SliceLine {
    /// Its name.
    pub name: String,
    /// `uplink` or `downlink`.
    pub direction: String,
    /// What is guaranteed, in bit/s; `None`: no limit.
    pub guaranteed: Option<u64>,
    /// The maximum, in bit/s.
    pub maximum: Option<u64>,
    /// Packets forwarded, of either colour.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, packets beyond what is guaranteed.
    pub yellow_packets: u64,
    /// Their bytes.
    pub yellow_bytes: u64,
    /// Packets dropped beyond the maximum.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}

columns!(SliceLine, |line| {
    "SLICE" Left line.name,
    "DIRECTION" Left line.direction,
    "GUARANTEED" Right rate(line.guaranteed),
    "MAXIMUM" Right rate(line.maximum),
    "PACKETS" Right line.packets,
    "BYTES" Right line.bytes,
    "BEYOND GUARANTEE" Right line.yellow_packets,
    "DROPPED" Right line.dropped_packets,
});
