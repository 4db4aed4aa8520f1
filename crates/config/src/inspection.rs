//! `[inspection]`: who looks into packets, and how much.

use super::findings::{Check, way};
use super::problem::Wrong;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which application is a flow of (docs/dpi.md)? Looked for only where a rule's Application ID asks for it, unless `always` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct InspectionSection {
    /// Whether packets are looked into at all. Without, rules with an Application ID and PFDs are refused.
    pub enabled: bool,
    /// All flows of all sessions are looked into, not just those whose rule depends on it: each costs an entry in the flow table then.
    pub always: bool,
    /// Packets of a conversation that are looked into at most.
    #[schemars(range(min = 1, max = 1_000))]
    pub packets: u32,
    /// Octets of these packets.
    #[schemars(range(min = 1_000, max = 10_000_000))]
    pub octets: u32,
    /// Conversations that are looked into at a time, all workers together; beyond, the oldest gets the verdict that it has so far.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub conversations: u32,
    /// Files with signatures of your own (docs/signatures.md), laid over those that are built in, each over those before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<PathBuf>,
}

impl Default for InspectionSection {
    fn default() -> Self {
        Self {
            enabled: true,
            always: false,
            packets: 32,
            octets: 65_536,
            conversations: 65_536,
            signatures: Vec::new(),
        }
    }
}

impl Check<'_> {
    /// Without inspection nothing else in its section has an effect.
    pub(super) fn inspection(&mut self, section: &InspectionSection) {
        if section.enabled {
            return;
        }
        let (section, needed) = ("[inspection]", "enabled");
        for key in self.keys(&way!["inspection"]).into_iter().filter(|key| key != needed) {
            let path = way!["inspection", key.as_str()];
            self.wrong(&path, Wrong::NoEffect { key, section, needed });
        }
    }
}
