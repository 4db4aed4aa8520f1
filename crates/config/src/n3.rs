//! The section of the file that says whom tunnels are fed by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From where tunnels' packets may come (docs/security.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckSource {
    /// From anywhere: whoever knows the TEID.
    #[default]
    Off,
    /// From the far ends that the session names, and from who was heard first, until he has been silent for 30 seconds or the session
    /// names others.
    Learn,
    /// From the far ends that the session names, as long as it names any.
    Strict,
}

/// The tunnels that come in by N3 and N9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct N3Section {
    /// From where tunnels' packets may come; others are dropped as `foreign-far-end`. Forged sources pass: that takes IPsec.
    pub check_source: CheckSource,
}
