//! What `ctl nat` tells.

use super::DropLine;
use serde::{Deserialize, Serialize};

/// The state of the translation on N6, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NatStatus {
    /// In the configuration's order.
    pub pools: Vec<NatPoolLine>,
    /// Packets dropped because they could not be translated; reasons that occurred.
    pub drops: Vec<DropLine>,
    /// Lines of the log of bindings that could not be written.
    pub log_lines_lost: u64,
}

/// A pool of public addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
