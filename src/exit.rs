//! How the program ends. `docs/cli.md` tells users the same.

use config::LoadError;
use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// What was asked for is done; also: a UPF was asked to stop, and stopped.
    Done = 0,
    /// It was tried, and failed.
    Failed = 1,
    /// The arguments or the configuration are wrong; nothing was tried.
    Usage = 2,
    /// The user may not do that: a capability, a file's owner or root is missing.
    Privilege = 3,
    /// A port's device can't be opened, or failed; or there is no device for look-ups where there has to be one.
    Device = 4,
    /// A worker of a UPF died, and there was none to take over its sessions: SMFs were told, and the process ended. A supervisor
    /// starts it again.
    WorkerLost = 5,
    /// A signal ended the work before it was done; that SIGINT or SIGTERM ends a running UPF is [`Exit::Done`].
    Interrupted = 130,
}

impl Exit {
    /// Every code, in order.
    const ALL: [Self; 7] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Privilege,
        Self::Device,
        Self::WorkerLost,
        Self::Interrupted,
    ];

    /// What it means, in brief.
    const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "wrong arguments or configuration",
            Self::Privilege => "missing privilege",
            Self::Device => "a device failed",
            Self::WorkerLost => "a worker died",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One line for the end of the help.
pub fn summary() -> String {
    let codes: Vec<String> =
        Exit::ALL.iter().map(|exit| format!("{} {}", *exit as u8, exit.meaning())).collect();
    format!("Exit codes: {}.", codes.join(", "))
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub struct Failure {
    /// The code to end with.
    pub exit: Exit,
    /// What to tell.
    pub why: Why,
}

/// What to tell about a [`Failure`].
#[derive(Debug)]
pub enum Why {
    /// One sentence.
    Sentence(String),
    /// A configuration with its problems.
    Configuration(Box<config::Report>),
    /// Nothing: it has been told already, before the results.
    Told,
}

impl Failure {
    /// A failure that one sentence tells.
    pub fn new(exit: Exit, why: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self { exit, why: Why::Sentence(why.into().to_string()) }
    }
}

impl From<Exit> for Failure {
    /// What has been told already.
    fn from(exit: Exit) -> Self {
        Self { exit, why: Why::Told }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Invalid(report) => Self { exit: Exit::Usage, why: Why::Configuration(report) },
            LoadError::Read { ref source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Self::new(Exit::Privilege, error)
            }
            LoadError::Read { .. } => Self::new(Exit::Usage, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_code() {
        let page = include_str!("../docs/cli.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {}", exit as u8, exit.meaning());
            assert!(page.contains(&row), "docs/cli.md lacks `{row}`");
        }
    }
}
