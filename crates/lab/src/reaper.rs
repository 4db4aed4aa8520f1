//! Cleans up after the lab, even when the lab was killed.
//!
//! The lab starts this as a child of its own and keeps the writing end of a pipe to it. What the lab makes it claims: one
//! line into the pipe, at once. However the lab ends, the kernel closes that end; the reaper then reads end of file and removes what
//! was claimed, with all that runs in it. What was never claimed is somebody else's, and stays.

use crate::LabError;
use crate::topology::Namespaces;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The hidden subcommand that runs [`wait_and_reap`]: `millrace lab reap`.
pub const SUBCOMMAND: &str = "reap";

const NAMESPACE: &str = "namespace ";
const DIRECTORY: &str = "directory ";

/// The lab's end of the pipe, and the reaper.
#[derive(Debug)]
pub struct Reaper {
    pipe: Option<ChildStdin>,
    child: Child,
}

impl Reaper {
    /// Starts the reaper; `binary` is the `millrace` that has the subcommand.
    pub fn start(binary: &Path) -> Result<Self, LabError> {
        let mut command = Command::new(binary);
        command.args(["lab", SUBCOMMAND]);
        // A group of its own: Ctrl-C in the terminal ends the lab, and must leave the reaper alive.
        let started = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = started.map_err(|source| LabError::Tool { program: "millrace", source })?;
        Ok(Self { pipe: child.stdin.take(), child })
    }

    /// Has this network namespace removed in the end.
    pub fn claim_namespace(&mut self, name: &str) -> Result<(), LabError> {
        self.claim(&format!("{NAMESPACE}{name}\n"))
    }

    /// Has this directory removed in the end.
    pub fn claim_directory(&mut self, path: &Path) -> Result<(), LabError> {
        self.claim(&format!("{DIRECTORY}{}\n", path.display()))
    }

    fn claim(&mut self, line: &str) -> Result<(), LabError> {
        let written = self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(line.as_bytes()));
        written.map_err(LabError::Os)
    }
}

impl Drop for Reaper {
    /// Closes the pipe and waits until all is clean.
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

/// The reaper's whole life.
pub fn wait_and_reap() {
    reap(std::io::stdin().lock());
}

fn reap(claims: impl BufRead) {
    let (mut namespaces, mut directories) = (Vec::new(), Vec::new());
    for line in claims.lines().map_while(Result::ok) {
        if let Some(name) = line.strip_prefix(NAMESPACE) {
            namespaces.push(name.to_owned());
        } else if let Some(path) = line.strip_prefix(DIRECTORY) {
            directories.push(path.to_owned());
        }
    }
    for name in &namespaces {
        Namespaces::remove(name);
    }
    for path in directories {
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_claimed_goes_and_the_rest_stays() {
        let base = std::env::temp_dir().join(format!("millrace-reaper-{}", std::process::id()));
        let (ours, theirs) = (base.join("our own"), base.join("theirs"));
        std::fs::create_dir_all(ours.join("deep")).unwrap();
        std::fs::create_dir_all(&theirs).unwrap();
        let claims = format!("{DIRECTORY}{}\nnonsense {}\n", ours.display(), theirs.display());
        reap(claims.as_bytes());
        assert!(!ours.exists() && theirs.exists());
        std::fs::remove_dir_all(base).unwrap();
    }
}
