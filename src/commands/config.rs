//! `millrace config`: check a configuration, print its schema or an example.

use crate::exit::Failure;
use crate::{output, report};
use clap::Subcommand;
use config::{self, Config};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Arguments of `config`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what is wrong with a configuration, all of it, and end with 2; or that nothing is.
    Check {
        /// The TOML file.
        file: PathBuf,
        #[command(flatten)]
        set: Overrides,
    },
    /// Print the JSON Schema of the file, for editors.
    Schema,
    /// Print a complete example with comments.
    Example,
}

/// What comes over the file.
#[derive(clap::Args, Clone)]
pub struct Overrides {
    /// Set a value, such as n4.listen=192.0.2.1:8805 or port.0.mtu=9000. Comes over the file and the environment
    /// (MILLRACE_N4__LISTEN=192.0.2.1:8805).
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

/// Loads a file with the environment and overrides over it.
pub fn load(file: &Path, overrides: &Overrides) -> Result<Config, Failure> {
    Ok(config::load(file, &environment(), &overrides.set)?)
}

/// Says that a value of it can't be.
#[cfg(feature = "dpdk")]
pub fn object(file: &Path, overrides: &Overrides, key: &[&str], wrong: config::Wrong) -> Failure {
    config::object(file, &environment(), &overrides.set, key, wrong).into()
}

/// A variable that is not text can't be one of ours.
fn environment() -> Vec<(String, String)> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

/// Says that a configuration is right, and what it amounts to.
pub fn confirm(file: &Path, config: &Config) -> Result<(), Failure> {
    config.warnings().iter().for_each(|warning| report::warn(warning));
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    output::text(&format!(
        "{} is right: node {}, {}, {}, {}, {}, {}\n",
        file.display(),
        config.node_id,
        count(config.ports.len(), "port"),
        count(config.interfaces.len(), "interface"),
        count(config.routes.len(), "route"),
        count(config.pools.len(), "pool"),
        count(config.workers.workers().into(), "worker"),
    ))
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Check { file, set } => confirm(file, &load(file, set)?),
        Command::Schema => output::json(&config::schema()),
        Command::Example => output::text(config::EXAMPLE),
    }
}
