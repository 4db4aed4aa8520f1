//! The program itself: `version`, `config` and `stop`.

use super::Question;
use crate::table::Page;
use crate::words::ago;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which program runs, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Version {}

impl Question for Version {
    const NAME: &'static str = "version";
    type Answer = Program;

    fn show(&self, told: &Program) -> Page {
        let Program { version, pid, uptime_seconds, node_id, sessions } = told;
        let up = ago(*uptime_seconds);
        Page::text(format!(
            "millrace {version}, node {node_id}, process {pid}, up {up}, {sessions} sessions\n"
        ))
    }
}

/// The program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// `millrace`'s version.
    pub version: String,
    /// Its process ID.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_seconds: u64,
    /// Its Node ID.
    pub node_id: String,
    /// Its sessions.
    pub sessions: u64,
}

/// Print the configuration in force, defaults filled in, as a file that can be read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Config {}

impl Question for Config {
    const NAME: &'static str = "config";
    const SEE: &'static str = "configuration.md";
    type Answer = InForce;

    fn show(&self, told: &InForce) -> Page {
        Page::text(told.toml.clone())
    }
}

/// The configuration in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// A file that could be read again.
    pub toml: String,
}

/// Stop the UPF, as SIGTERM does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Stop {}

impl Question for Stop {
    const NAME: &'static str = "stop";
    const ANSWER: &'static str = "stopping";
    type Answer = Stopping;

    fn show(&self, _: &Stopping) -> Page {
        Page::text("It stops.\n")
    }
}

/// It will.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {}
