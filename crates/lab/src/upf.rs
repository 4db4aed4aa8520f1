//! The UPF: `millrace run` in a namespace.

use crate::LabError;
use crate::process::{Process, tail};
use rustix::process::Signal;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long the UPF may take to open its control socket: EAL takes a second or two on a busy machine.
const START: Duration = Duration::from_secs(30);
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(5);
/// Lines of its log that an error shows.
const LINES: usize = 20;

/// A running UPF, asked to stop when dropped. One that writes down its sessions and stops is followed by another one.
#[derive(Debug)]
pub(crate) struct Upf {
    process: Process,
    binary: PathBuf,
    namespace: String,
    config: PathBuf,
    state: PathBuf,
    log: PathBuf,
}

impl Upf {
    /// Starts it; `binary` is `millrace`, and `directory` has `upf.toml`.
    pub fn start(binary: &Path, namespace: &str, directory: &Path, log: &Path) -> Result<Self, LabError> {
        // Another lab's.
        let _ = std::fs::remove_file(log);
        let (config, state) = (directory.join("upf.toml"), directory.join("state"));
        let process = run(binary, namespace, &config, &state, log)?;
        let (binary, namespace, log) = (binary.to_owned(), namespace.to_owned(), log.to_owned());
        Ok(Self { process, binary, namespace, config, state, log })
    }

    /// Waits until its control socket is there: then its workers poll, and N4 listens. `interrupted` is asked meanwhile.
    pub fn await_ready(&mut self, socket: &Path, interrupted: impl Fn() -> bool) -> Result<(), LabError> {
        let until = Instant::now() + START;
        while !socket.exists() {
            self.check()?;
            if interrupted() {
                return Err(LabError::Interrupted);
            }
            if Instant::now() > until {
                return Err(LabError::Upf { how: format!("not ready within {START:?}"), log: self.tail() });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// An error if it has ended, and left nothing to go on with.
    pub fn check(&mut self) -> Result<(), LabError> {
        match self.process.ended() {
            None => Ok(()),
            Some(status) if status.success() && self.state.exists() => {
                let Self { binary, namespace, config, state, log, .. } = &*self;
                self.process = run(binary, namespace, config, state, log)?;
                Ok(())
            }
            Some(status) => Err(self.failure(status)),
        }
    }

    /// Becomes readable when it has ended.
    pub fn watch(&self) -> Result<OwnedFd, LabError> {
        self.process.watch()
    }

    /// Stops it; an error if it had ended before, or does not end as it should.
    pub fn stop(&mut self) -> Result<(), LabError> {
        self.check()?;
        match self.process.stop(Signal::TERM, STOP) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.failure(status)),
            None => Ok(()),
        }
    }

    fn failure(&self, status: ExitStatus) -> LabError {
        LabError::Upf { how: status.to_string(), log: self.tail() }
    }

    fn tail(&self) -> String {
        tail(&self.log, LINES)
    }
}

fn run(binary: &Path, namespace: &str, config: &Path, state: &Path, log: &Path) -> Result<Process, LabError> {
    let [binary, config, state] = [binary, config, state].map(|path| path.to_string_lossy().into_owned());
    Process::start(namespace, &[&binary, "run", "--config", &config, "--restore", &state], log)
}

impl Drop for Upf {
    fn drop(&mut self) {
        // Who wants to know how it went has called `stop` before.
        let _ = self.stop();
    }
}
