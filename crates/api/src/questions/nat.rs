//! Translation on N6.

use super::{DropLine, Question};
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show the translation on N6: pools, blocks of ports, mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Nat {}

impl Question for Nat {
    const NAME: &'static str = "nat";
    const SEE: &'static str = "nat.md";
    type Answer = NatStatus;

    fn show(&self, told: &NatStatus) -> Page {
        if told.pools.is_empty() && told.drops.is_empty() {
            return Page::text("Nothing is translated port by port.\n");
        }
        let mut page = Page::table(&told.pools);
        page.part(&told.drops);
        if told.log_lines_lost > 0 {
            page.say(format!("\n{} lines of the log of bindings were lost.\n", told.log_lines_lost));
        }
        page
    }
}

/// The state of the translation on N6, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NatStatus {
    /// In the configuration's order.
    pub pools: Vec<NatPoolLine>,
    /// Packets dropped because they could not be translated; reasons that occurred.
    pub drops: Vec<DropLine>,
    /// Lines of the log of bindings that could not be written.
    pub log_lines_lost: u64,
}

/// A pool of public addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NatPoolLine {
    /// Its name.
    pub pool: String,
    /// Blocks of ports that it has.
    pub blocks: u64,
    /// Blocks that UEs have now.
    pub blocks_used: u64,
    /// Mappings now.
    pub mappings: u64,
    /// Mappings made since the process started.
    pub mappings_made: u64,
}

columns!(NatPoolLine, |pool| {
    "POOL" Left pool.pool,
    "BLOCKS" Right pool.blocks,
    "USED" Right pool.blocks_used,
    "FREE" Right pool.blocks.saturating_sub(pool.blocks_used),
    "MAPPINGS" Right pool.mappings,
    "MADE" Right pool.mappings_made,
});
