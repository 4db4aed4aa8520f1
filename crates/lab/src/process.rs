//! The programs that the lab starts.

use crate::LabError;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running program, killed when dropped. What it says goes to a file, not to the terminal.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts `ip netns exec NAMESPACE PROGRAM …` with its output at the end of `log`.
    ///
    /// It gets a process group of its own: Ctrl-C in the terminal is for the lab, which ends its programs in order.
    pub fn start(namespace: &str, program: &[&str], log: &Path) -> Result<Self, LabError> {
        let file = |source| LabError::File { path: log.to_owned(), source };
        let out = File::options().create(true).append(true).open(log).map_err(file)?;
        let err = out.try_clone().map_err(file)?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).args(program);
        for (name, _) in std::env::vars_os() {
            // What the caller sets for a UPF of their own is not for the lab's.
            if name.to_str().is_some_and(|name| name.starts_with("MILLRACE_") && name.contains("__")) {
                command.env_remove(name);
            }
        }
        let command = command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().map_err(|source| LabError::Tool { program: "ip", source })?;
        Ok(Self { child })
    }

    /// Becomes readable when the program has ended.
    pub fn watch(&self) -> Result<OwnedFd, LabError> {
        watch(&self.child)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end, and kills it if it takes longer than that.
    pub fn stop(&mut self, signal: Signal, patience: Duration) -> Option<ExitStatus> {
        send(&mut self.child, signal);
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Becomes readable when the child has ended.
pub(crate) fn watch(child: &Child) -> Result<OwnedFd, LabError> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH);
    pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())).map_err(|errno| LabError::Os(errno.into()))
}

/// Sends a signal, unless the child has ended (its number may be another's then).
pub(crate) fn send(child: &mut Child, signal: Signal) {
    if let (Ok(None), Some(pid)) = (child.try_wait(), i32::try_from(child.id()).ok().and_then(Pid::from_raw))
    {
        let _ = kill_process(pid, signal);
    }
}

/// The exit code that a shell would tell: 128 and the signal's number for a program that a signal ended.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Whether this program can be run: a path to an executable file, or a name in PATH.
pub fn is_there(program: &Path) -> bool {
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.components().count() > 1 || program.is_absolute() {
        return executable(program);
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| executable(&directory.join(program)))
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    const ENOUGH: u64 = 16 << 10;
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(ENOUGH)))?;
        let mut bytes = Vec::new();
        file.take(ENOUGH).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_can_be_run() {
        for there in ["sh", "/bin/sh"] {
            assert!(is_there(Path::new(there)), "{there}");
        }
        for missing in ["no-such-program-in-path", "/etc", "/proc/version", "./sh", ""] {
            assert!(!is_there(Path::new(missing)), "{missing}");
        }
    }

    #[test]
    fn tails_and_codes() {
        let log = std::env::temp_dir().join(format!("millrace-tail-{}", std::process::id()));
        let text = (0..5000).fold(String::new(), |text, line| text + &format!("line {line}\n"));
        std::fs::write(&log, text).unwrap();
        assert_eq!(tail(&log, 2), "line 4998\nline 4999");
        std::fs::write(&log, "one").unwrap();
        assert_eq!(tail(&log, 20), "one");
        std::fs::remove_file(&log).unwrap();
        assert_eq!(tail(&log, 20), "");
        let status = |script| code(Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!((status("exit 7"), status("kill -TERM $$")), (7, 143));
    }
}
