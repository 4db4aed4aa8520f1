//! `[flow-log]`: what is told of single flows, and where.

use super::findings::{Check, way};
use super::problem::Wrong;
use super::units::{self, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What is told of single flows (docs/flows.md): of sessions whose rules look past the tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowLogSection {
    /// A file that lines of JSON are appended to. Default: nothing is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The file's length in bytes at which it is renamed, with `.1` behind its name, and begun anew; 0: it grows.
    #[schemars(range(min = 0, max = 1_099_511_627_776u64))]
    pub max_bytes: u64,
    /// Records in a second, all workers together; further ones are counted. Watermarks are told beside.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub records_per_second: u32,
    /// Of one flow in so many; watermarks of all.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sample: u32,
    /// A flow that goes on for longer is told of each time that this has passed; `0s`: only when it ends.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub active_timeout: Duration,
    /// A flow that has carried so many bytes is told of at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 17_592_186_044_416u64))]
    pub watermark_bytes: Option<u64>,
    /// A flow that has carried so many packets is told of at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_000_000_000))]
    pub watermark_packets: Option<u32>,
}

impl Default for FlowLogSection {
    fn default() -> Self {
        Self {
            file: None,
            max_bytes: 1 << 30,
            records_per_second: 100_000,
            sample: 1,
            active_timeout: Duration::from_mins(30),
            watermark_bytes: None,
            watermark_packets: None,
        }
    }
}

impl Check<'_> {
    /// Without a file nothing is told, whatever the other keys say.
    pub(super) fn flow_log(&mut self, section: &FlowLogSection) {
        if section.file.is_some() {
            return;
        }
        let (section, needed) = ("[flow-log]", "file");
        for key in self.keys(&way!["flow-log"]) {
            let path = way!["flow-log", key.as_str()];
            self.wrong(&path, Wrong::NoEffect { key, section, needed });
        }
    }
}
