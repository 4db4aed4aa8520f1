//! `millrace run`: the UPF that a configuration describes.

use super::config::{Overrides, confirm, load};
use crate::exit::{Exit, Failure};
use crate::log::{self, Verbosity};
use std::path::PathBuf;

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Args {
    /// The TOML file (`millrace config example` prints one).
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    overrides: Overrides,
    /// Check the configuration and end.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    let config = load(&args.config, &args.overrides)?;
    log::start(verbosity, Some(&config.log.filter))?;
    if args.check {
        return confirm(&args.config, &config);
    }
    Err(Failure::new(Exit::Failed, "this build can't forward packets yet: only `run --check` is there"))
}
