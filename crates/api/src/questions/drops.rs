//! Packets that were not forwarded, and why.

use super::Question;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show dropped packets by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Drops {}

impl Question for Drops {
    const NAME: &'static str = "drops";
    const SEE: &'static str = "drop-reasons.md";
    type Answer = DropList;

    fn show(&self, DropList { drops }: &DropList) -> Page {
        if drops.is_empty() { Page::text("Nothing was dropped.\n") } else { Page::table(drops) }
    }
}

/// Why packets were dropped, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DropList {
    /// Reasons that occurred, in the order of the documentation.
    pub drops: Vec<DropLine>,
}

/// A reason and how many packets were dropped for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DropLine {
    /// Its label.
    pub reason: String,
    /// What it means.
    pub meaning: String,
    /// Packets.
    pub packets: u64,
}

columns!(DropLine, |line| {
    "DROPPED" Right line.packets,
    "REASON" Left line.reason,
    "MEANING" Left line.meaning,
});
