//! `[metrics]`: where counters are served by HTTP.

use super::findings::{Check, way};
use super::problem::Wrong;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Counters for Prometheus and its like, and whether the UPF is healthy (docs/counters.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MetricsSection {
    /// The address and port of `/metrics` and `/healthz`. Default: there is no such server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// `listen` may be an address that other machines reach: whoever reaches it may read.
    pub beyond_loopback: bool,
}

impl Check<'_> {
    /// Nobody is asked for a password, so others than this machine's users read only where the file says so in as many words.
    pub(super) fn metrics(&mut self, section: MetricsSection) {
        if let Some(listen) = section.listen
            && !listen.ip().is_loopback()
            && !section.beyond_loopback
        {
            self.wrong(&way!["metrics", "listen"], Wrong::BeyondLoopback { listen });
        }
    }
}
