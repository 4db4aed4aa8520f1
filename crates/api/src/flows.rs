//! What is asked about flows beside their counters.

use serde::{Deserialize, Serialize};

/// Other watermarks for single flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowMarksRequest {
    /// In bytes; none: no flow is told of for its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// In packets; likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
}
