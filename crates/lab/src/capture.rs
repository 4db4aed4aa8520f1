//! Captures of what passes on N3, N4 and N6, by Wireshark's `dumpcap` or by `tcpdump`.
//!
//! Both read the kernel's ring now and then, and a signal ends them with what they have read: the last packets of a lab, the answers to
//! deletion and release, would be missing. So each capture is ended by a packet of our own, [a datagram](MARK) to UDP port 9
//! (discard, RFC 863), and stopped when that is in the file, and so all that came before.

use crate::process::{Process, is_there, tail};
use crate::topology::{Namespaces, address};
use crate::{LabError, Tool};
use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a program may take to begin, and to write what it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the last datagram of each capture says.
const MARK: &[u8] = b"millrace lab: this capture ends here";
/// The port that discards (RFC 863).
const DISCARD: u16 = 9;

/// One of them.
#[derive(Debug)]
struct Capture {
    process: Process,
    path: PathBuf,
    /// Where its last packet is sent, and to whom.
    namespace: String,
    end: Ipv4Addr,
}

/// The running captures; complete when dropped.
#[derive(Debug)]
pub(crate) struct Captures(Vec<Capture>);

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
        let on_link = |host: Ipv4Addr| {
            let [a, b, c, _] = host.octets();
            Ipv4Addr::new(a, b, c, 255)
        };
        let points = [
            (&namespaces.ran, "n3", "n3", "", on_link(address::GNB)),
            (&namespaces.upf, "n4", "lo", "udp port 8805 or udp dst port 9", address::SMF_N4),
            (&namespaces.dn, "n6", "n6", "", on_link(address::DN)),
        ];
        for (namespace, name, interface, filter, end) in points {
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
            let process = Process::start(namespace, &line, &log)?;
            let mut capture = Capture { process, path, namespace: namespace.clone(), end };
            capture.await_begin(&log)?;
            captures.0.push(capture);
        }
        Ok(captures)
    }
}

impl Capture {
    /// Waits until it has begun.
    fn await_begin(&mut self, log: &Path) -> Result<(), LabError> {
        let until = Instant::now() + PATIENCE;
        // Both write the file's header when the interface is open.
        while !self.path.metadata().is_ok_and(|meta| meta.len() > 0) {
            if self.process.ended().is_some() || Instant::now() > until {
                let line = format!("capture to {}", self.path.display());
                return Err(LabError::Command { line, said: tail(log, 5) });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Sends the last packet.
    fn mark(&self) -> std::io::Result<()> {
        let send = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.set_broadcast(true)?;
            socket.send_to(MARK, SocketAddrV4::new(self.end, DISCARD)).map(drop)
        };
        Namespaces::inside(&self.namespace, send).map_err(std::io::Error::other)?
    }

    /// Whether the last packet is in the file. Few come after it.
    fn is_marked(&self) -> std::io::Result<bool> {
        const ENOUGH: u64 = 1 << 18;
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(ENOUGH)))?;
        let mut end = Vec::new();
        file.take(ENOUGH).read_to_end(&mut end)?;
        Ok(end.windows(MARK.len()).any(|window| window == MARK))
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        // Where nothing can be sent, nothing is waited for.
        let marked: Vec<bool> = self.0.iter().map(|capture| capture.mark().is_ok()).collect();
        for (capture, marked) in self.0.iter_mut().zip(marked) {
            while marked
                && capture.process.ended().is_none()
                && !capture.is_marked().unwrap_or(true)
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            capture.process.stop(Signal::INT, PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What passes just before the end is in the file, though no reader was in a hurry.
    #[test]
    fn the_last_packets_are_captured() {
        if let Some(what) = crate::topology::tests::lacking() {
            return testing::skipped(what);
        }
        if !is_there(Path::new("dumpcap")) && !is_there(Path::new("tcpdump")) {
            return testing::skipped("there is neither dumpcap nor tcpdump");
        }
        let names = Namespaces::named(Some(&format!("c{}", std::process::id())), 1).unwrap();
        let directory = std::env::temp_dir().join(format!("millrace-capture-{}", std::process::id()));
        let capture = || -> Result<Vec<u8>, LabError> {
            names.create(false, |_| Ok(()))?;
            let captures = Captures::start(&names, &directory, &directory)?;
            Namespaces::inside(&names.upf, || {
                let socket = UdpSocket::bind((address::SMF_N4, 0)).unwrap();
                for number in 0..20 {
                    let said = format!("request {number} of twenty");
                    socket.send_to(said.as_bytes(), (address::UPF_N4, 8805)).unwrap();
                }
            })?;
            let path = captures.0.iter().map(|capture| capture.path.clone()).nth(1).unwrap();
            drop(captures);
            Ok(std::fs::read(path).unwrap())
        };
        let captured = capture();
        names.each().into_iter().for_each(Namespaces::remove);
        let _ = std::fs::remove_dir_all(&directory);
        let captured = String::from_utf8_lossy(&captured.unwrap()).into_owned();
        for number in 0..20 {
            assert!(captured.contains(&format!("request {number} of twenty")), "{number}");
        }
    }
}
