//! What a UPF is, in a file.

use super::Question;
use crate::table::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Write associations and sessions to a file, for `millrace run --restore`.
///
/// The UPF goes on, and what happens afterwards is not in the file. With `--stop` it is the last thing that the UPF does: no request is taken
/// and no packet received from then on, and SMFs are not told that it stops.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Dump {
    /// The file. What is there is replaced when the new one is whole.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    pub file: String,
    /// Stop when the file is written, without a word to SMFs: another process is to go on with it.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub stop: bool,
}

impl Question for Dump {
    const NAME: &'static str = "dump";
    const ANSWER: &'static str = "dumped";
    const SEE: &'static str = "restart.md";
    type Answer = Dumped;

    fn show(&self, told: &Dumped) -> Page {
        let Dumped { file, sessions, bytes, milliseconds, stopped } = told;
        let seconds = *milliseconds as f64 / 1_000.0;
        let size = *bytes as f64 / 1e6;
        let next = if *stopped {
            format!("The UPF stops. To go on: millrace run --config ... --restore {file}\n")
        } else {
            "The UPF goes on; what happens from now on is not in the file.\n".to_owned()
        };
        Page::text(format!("{sessions} sessions in {file} ({size:.1} MB, {seconds:.1} s).\n{next}"))
    }
}

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dumped {
    /// The file.
    pub file: String,
    /// Sessions in it.
    pub sessions: u64,
    /// Its length.
    pub bytes: u64,
    /// How long it took.
    pub milliseconds: u64,
    /// Whether the UPF stops.
    pub stopped: bool,
}
