//! Cleans up after the lab, even when the lab was killed.
//!
//! The lab starts this as a child of its own and keeps the writing end of a pipe to it. However the lab ends, the kernel closes
//! that end; the reaper then reads end of file and removes the namespaces with all that runs in them.

use crate::LabError;
use crate::topology::Namespaces;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The hidden subcommand that runs [`wait_and_reap`]: `millrace lab reap [NAME]`.
pub const SUBCOMMAND: &str = "reap";

/// The lab's end of the pipe, and the reaper.
#[derive(Debug)]
pub struct Reaper {
    pipe: Option<ChildStdin>,
    child: Child,
}

impl Reaper {
    /// Starts the reaper for a lab of this name.
    pub fn start(binary: &Path, name: Option<&str>) -> Result<Self, LabError> {
        let mut command = Command::new(binary);
        command.args(["lab", SUBCOMMAND]);
        if let Some(name) = name {
            command.args(["--name", name]);
        }
        // A group of its own: Ctrl-C in the terminal ends the lab, and must leave the reaper alive.
        let started = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = started.map_err(|source| LabError::Tool { program: "millrace lab reap", source })?;
        Ok(Self { pipe: child.stdin.take(), child })
    }

    /// Closes the pipe and waits until all is clean.
    pub fn reap(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.reap();
    }
}

/// The reaper's whole life.
pub fn wait_and_reap(namespaces: &Namespaces) {
    let mut nothing = [0; 64];
    while matches!(std::io::stdin().read(&mut nothing), Ok(1..)) {}
    namespaces.remove();
}
