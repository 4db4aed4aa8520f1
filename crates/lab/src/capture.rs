//! Captures of what passes on N3, N4 and N6, by Wireshark's `dumpcap` or by `tcpdump`.

use crate::process::{Process, is_there, tail};
use crate::topology::Namespaces;
use crate::{LabError, Tool};
use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a program may take to begin, and to write what it has.
const PATIENCE: Duration = Duration::from_secs(10);

/// The running captures; complete when dropped.
#[derive(Debug)]
pub(crate) struct Captures(Vec<Process>);

impl Captures {
    /// Begins to write `n3`, `n4` and `n6` into `directory`: pcapng files by dumpcap, pcap files by tcpdump. What the programs say
    /// goes to `logs`.
    pub fn start(namespaces: &Namespaces, directory: &Path, logs: &Path) -> Result<Self, LabError> {
        let file = |source| LabError::File { path: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(file)?;
        let dumpcap = is_there(Path::new("dumpcap"));
        if !dumpcap {
            Tool::TCPDUMP.demand()?;
        }
        let mut captures = Self(Vec::new());
        // On N3 and N6 at the far end: what arrives there is what Millrace sent.
        let points = [
            (&namespaces.ran, "n3", "n3", ""),
            (&namespaces.upf, "n4", "lo", "udp port 8805"),
            (&namespaces.dn, "n6", "n6", ""),
        ];
        for (namespace, name, interface, filter) in points {
            let extension = if dumpcap { "pcapng" } else { "pcap" };
            let path = directory.join(format!("{name}.{extension}"));
            // One from an earlier lab would look as if this one had begun.
            let _ = std::fs::remove_file(&path);
            let to = path.to_string_lossy();
            let log = logs.join(format!("capture-{name}.log"));
            let line: Vec<&str> = if dumpcap {
                let mut line = vec!["dumpcap", "-q", "-B", "32", "-i", interface, "-w", &to];
                if !filter.is_empty() {
                    line.extend(["-f", filter]);
                }
                line
            } else {
                vec!["tcpdump", "-q", "-U", "-Z", "root", "-B", "32768", "-i", interface, "-w", &to, filter]
            };
            captures.0.push(Process::start(namespace, &line, &log)?);
            captures.await_begin(&path, &log)?;
        }
        Ok(captures)
    }

    /// Waits until the newest capture has begun.
    fn await_begin(&mut self, path: &Path, log: &Path) -> Result<(), LabError> {
        let until = Instant::now() + PATIENCE;
        // Both write the file's header when the interface is open.
        while !path.metadata().is_ok_and(|meta| meta.len() > 0) {
            let ended = self.0.last_mut().and_then(Process::ended);
            if ended.is_some() || Instant::now() > until {
                let line = format!("capture to {}", path.display());
                return Err(LabError::Command { line, said: tail(log, 5) });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        for process in &mut self.0 {
            process.stop(Signal::INT, PATIENCE);
        }
    }
}
