//! The lab: the UPF between a radio side and a data network, in namespaces of this machine.
#![forbid(unsafe_code)]

pub mod reaper;
pub mod topology;
pub mod web;

use std::path::PathBuf;

/// Why the lab did not start or a command could not be run in it.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The name can't be part of a namespace's name.
    #[error("`{0}` can't name a lab: use 1 to 32 letters, digits and hyphens")]
    Name(String),
    /// Somebody uses the namespace.
    #[error("the network namespace `{0}` exists already: another lab may be running; choose a name with --name, or remove it with `ip netns delete {0}`")]
    Exists(String),
    /// A file of /run/netns or /etc/netns.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A program is missing.
    #[error("can't run {program}: {source}; `./x test` installs what the lab needs (iproute2, ethtool, iputils-ping)")]
    Tool {
        /// Which.
        program: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A program failed.
    #[error("`{line}` failed: {said}")]
    Command {
        /// What was run.
        line: String,
        /// What it said.
        said: String,
    },
}
