//! Logs: lines on standard error, at a level that the command line, the environment or the configuration sets.

use crate::exit::{Exit, Failure};
use clap::{ArgAction, Args};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The environment variable that sets the level, or levels by module.
const VARIABLE: &str = "MILLRACE_LOG";

/// `-v` and `-q`.
#[derive(Args, Clone, Copy)]
pub struct Verbosity {
    /// Log more: -v debug, -vv trace.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
    /// Log less: -q warnings and errors, -qq errors only.
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "verbose")]
    quiet: u8,
}

impl Verbosity {
    /// The level that the flags ask for; `None` without flags.
    const fn level(self) -> Option<&'static str> {
        match (self.verbose, self.quiet) {
            (0, 0) => None,
            (0, 1) => Some("warn"),
            (0, _) => Some("error"),
            (1, _) => Some("debug"),
            _ => Some("trace"),
        }
    }
}

/// Changes what is logged, while it is: that of a running UPF.
#[cfg_attr(not(feature = "dpdk"), expect(dead_code))]
pub struct Levels {
    set: Box<dyn Fn(EnvFilter) -> Result<(), String> + Send>,
    /// What comes before the configuration, and is there.
    fixed: Option<&'static str>,
}

#[cfg(feature = "dpdk")]
impl Levels {
    /// The configuration says this now. What comes before it still does: then that is returned.
    ///
    /// Errors: it is not a filter.
    pub fn configure(&self, filter: &str) -> Result<Option<&'static str>, String> {
        let filter = EnvFilter::try_new(filter).map_err(|error| error.to_string())?;
        match self.fixed {
            Some(fixed) => Ok(Some(fixed)),
            None => (self.set)(filter).map(|()| None),
        }
    }
}

/// Starts logging. Flags come before `MILLRACE_LOG`, that before the configuration, that before `info`.
pub fn start(verbosity: Verbosity, configured: Option<&str>) -> Result<(), Failure> {
    start_with_levels(verbosity, configured).map(drop)
}

/// The same; the level can be changed.
pub fn start_with_levels(verbosity: Verbosity, configured: Option<&str>) -> Result<Levels, Failure> {
    let environment = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty());
    let (source, filter) = match (verbosity.level(), &environment, configured) {
        (Some(level), _, _) => ("-v or -q", level),
        (None, Some(value), _) => (VARIABLE, value.as_str()),
        (None, None, Some(filter)) => ("log.filter", filter),
        (None, None, None) => ("the default", "info"),
    };
    let fixed = (verbosity.level().is_some() || environment.is_some()).then_some(source);
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::new(Exit::Usage, format!("{source} is not a log filter: {error}")))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_filter_reloading();
    let handle = subscriber.reload_handle();
    subscriber
        .try_init()
        .map_err(|error| Failure::new(Exit::Failed, format!("can't start logging: {error}")))?;
    let set = move |filter| handle.reload(filter).map_err(|error| error.to_string());
    Ok(Levels { set: Box::new(set), fixed })
}
