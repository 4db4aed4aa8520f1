//! A mirror's pcapng file, written by a thread of its own: neither workers nor control wait for a disk.

use datapath::mirror::{CaptureRx, Captured};
use io::pcap::{CaptureWriter, Direction};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is written at once.
const BATCH: u64 = 64 << 10;
/// Copies taken from one worker before the next one's turn.
const TURN: usize = 256;
/// How long the thread sleeps when nothing has arrived. A worker's ring holds what comes meanwhile.
const NAP: Duration = Duration::from_millis(5);
/// Bytes that a packet's block has beside the packet: its header and flags.
const BLOCK: u64 = 44;

/// What the thread tells.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// Copies that are not in the file.
    lost: AtomicU64,
    error: Mutex<Option<String>>,
}

/// A file that is being written, until the workers' ends of its rings are gone.
#[derive(Debug)]
pub(super) struct CaptureFile {
    status: Arc<Status>,
    thread: JoinHandle<()>,
}

impl CaptureFile {
    /// Makes the file, which must not exist yet, readable for nobody else, and begins to write what comes. `epoch`: the
    /// workers' clock's zero in nanoseconds since 1970.
    pub fn start(
        path: &Path,
        max_bytes: u64,
        truncate: u16,
        epoch: u64,
        readers: Vec<CaptureRx>,
    ) -> std::io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut output = CaptureWriter::new(Blocks { file, pending: Vec::new(), whole: 0 })?;
        // Interfaces 0 and 1, as `Captured::uplink` chooses them.
        output.ip_interface("downlink", truncate)?;
        output.ip_interface("uplink", truncate)?;
        output.flush()?;
        let status = Arc::<Status>::default();
        let mut writer =
            Writer { output, flushed: 0, max_bytes, epoch, status: Arc::clone(&status), stopped: false };
        let thread = std::thread::Builder::new().name("capture".into()).spawn(move || writer.run(readers))?;
        Ok(Self { status, thread })
    }

    /// Copies that arrived and are not in the file.
    pub fn lost(&self) -> u64 {
        self.status.lost.load(Ordering::Relaxed)
    }

    /// Why, if the file failed or is full.
    pub fn error(&self) -> Option<String> {
        self.status.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether all is written, and the file closed.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for that.
    pub fn join(self) {
        // A panic has been reported by its hook.
        let _ = self.thread.join();
    }
}

/// A file that ends behind a whole block whatever happens: what could not be written whole is cut off again.
struct Blocks {
    file: File,
    pending: Vec<u8>,
    /// Bytes of the file that are whole blocks.
    whole: u64,
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let written = self.file.write_all(&self.pending);
        match written {
            Ok(()) => self.whole += self.pending.len() as u64,
            // The first error is the one that is told.
            Err(_) => {
                let _ = self.file.set_len(self.whole);
            }
        }
        self.pending.clear();
        written
    }
}

struct Writer {
    output: CaptureWriter<Blocks>,
    /// Of what was written, how much is in the file.
    flushed: u64,
    max_bytes: u64,
    epoch: u64,
    status: Arc<Status>,
    /// The file is full or failed: from now on copies are only counted.
    stopped: bool,
}

impl Writer {
    fn run(&mut self, mut readers: Vec<CaptureRx>) {
        let mut unflushed = 0;
        loop {
            // Asked first: what came before its sender left is read below.
            let over = readers.iter().all(CaptureRx::is_over);
            let mut taken = 0;
            for reader in &mut readers {
                for _ in 0..TURN {
                    let Some(copy) = reader.next_copy() else { break };
                    taken += 1;
                    unflushed += 1;
                    self.write(copy);
                }
            }
            if self.output.written() - self.flushed >= BATCH || taken == 0 {
                self.flush(unflushed);
                unflushed = 0;
            }
            if taken == 0 {
                if over {
                    return;
                }
                std::thread::sleep(NAP);
            }
        }
    }

    fn write(&mut self, copy: Captured<'_>) {
        let block = BLOCK + (copy.octets.len() as u64).next_multiple_of(4);
        if !self.stopped && self.output.written() + block > self.max_bytes {
            self.stop(format!("the file has reached its limit of {} bytes", self.max_bytes));
        }
        if self.stopped {
            self.status.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let direction = if copy.uplink { Direction::In } else { Direction::Out };
        let time = self.epoch.saturating_add(copy.time.0);
        let written =
            self.output.write_cut(copy.uplink.into(), time, direction, copy.octets, copy.length.into());
        if let Err(error) = written {
            self.status.lost.fetch_add(1, Ordering::Relaxed);
            self.stop(error.to_string());
        }
    }

    /// Brings what was written into the file; `copies` is how much that is.
    fn flush(&mut self, copies: u64) {
        if self.output.written() == self.flushed {
            return;
        }
        self.flushed = self.output.written();
        if let Err(error) = self.output.flush() {
            self.status.lost.fetch_add(copies, Ordering::Relaxed);
            self.stop(error.to_string());
        }
    }

    fn stop(&mut self, why: String) {
        tracing::warn!(why, "a mirror's file takes no more");
        self.stopped = true;
        *self.status.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU32;

    /// A file of its own for each test, removed with it.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            Self(
                std::env::temp_dir().join(format!("millrace-capture-{}-{number}.pcapng", std::process::id())),
            )
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn udp(size: usize) -> Vec<u8> {
        let packet = packet::PacketBuilder::new().ipv4([10, 45, 0, 1].into(), [8, 8, 8, 8].into());
        packet.udp(4000, 53).build(&vec![7; size])
    }

    /// A writer without thread, and these copies in its file. The status behind.
    fn write(blocks: Blocks, max_bytes: u64, copies: &[Captured<'_>]) -> (Writer, Option<String>) {
        let mut output = CaptureWriter::new(blocks).unwrap();
        output.ip_interface("downlink", 100).unwrap();
        output.ip_interface("uplink", 100).unwrap();
        let status = Arc::default();
        let mut writer = Writer { output, flushed: 0, max_bytes, epoch: 1_000, status, stopped: false };
        copies.iter().for_each(|copy| writer.write(*copy));
        writer.flush(copies.len() as u64);
        let error = writer.status.error.lock().unwrap().clone();
        (writer, error)
    }

    /// Interface, time, length and bytes of each packet of a file that has to consist of whole blocks.
    fn read(path: &Path) -> Vec<(u32, u64, u32, Vec<u8>)> {
        let file = std::fs::read(path).unwrap();
        let mut rest = &file[..];
        let mut packets = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
            let (kind, length) = (word(0), word(4) as usize);
            assert_eq!(word(length - 4) as usize, length, "a block's length is at both ends");
            if kind == 6 {
                let time = u64::from(word(12)) << 32 | u64::from(word(16));
                packets.push((word(8), time, word(24), rest[28..28 + word(20) as usize].to_vec()));
            }
            rest = &rest[length..];
        }
        packets
    }

    #[test]
    fn a_file_is_the_owners_alone_and_is_never_overwritten() {
        let temporary = Temporary::new();
        let start = || CaptureFile::start(&temporary.0, 1 << 20, 100, 0, Vec::new());
        let file = start().unwrap();
        assert_eq!(temporary.0.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(start().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        file.join();
    }

    #[test]
    fn what_is_captured_is_read_back() {
        let temporary = Temporary::new();
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary.0).unwrap();
        let whole = udp(10);
        let copies = [
            Captured { time: tables::Nanos(5), uplink: true, length: 38, octets: &whole },
            Captured { time: tables::Nanos(7), uplink: false, length: 38, octets: &whole[..30] },
        ];
        let (_, error) = write(Blocks { file, pending: Vec::new(), whole: 0 }, 1 << 20, &copies);
        assert_eq!(error, None);
        let read = read(&temporary.0);
        assert_eq!(read, [(1, 1_005, 38, whole.clone()), (0, 1_007, 38, whole[..30].to_vec())]);
        // A second opinion.
        let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.len", "-e", "frame.cap_len"];
        let more = ["-e", "frame.packet_flags_direction", "-e", "ip.dst", "-e", "_ws.malformed"];
        let mut tshark = std::process::Command::new("tshark");
        match tshark.arg("-r").arg(&temporary.0).args(fields).args(more).output() {
            Ok(output) => {
                let text = String::from_utf8(output.stdout).unwrap();
                let lines: Vec<_> = text.lines().map(|line| line.split('\t').collect::<Vec<_>>()).collect();
                assert_eq!(lines[0][..5], ["uplink", "38", "38", "0x00000001", "8.8.8.8"], "{text}");
                assert_eq!(lines[1][..5], ["downlink", "38", "30", "0x00000002", "8.8.8.8"], "{text}");
            }
            Err(error) => testing::skipped(format!("tshark can't be run: {error}")),
        }
    }

    #[test]
    fn a_full_file_stays_valid() {
        let temporary = Temporary::new();
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary.0).unwrap();
        let octets = udp(72);
        let copy = Captured { time: tables::Nanos(5), uplink: true, length: 100, octets: &octets };
        let (writer, error) = write(Blocks { file, pending: Vec::new(), whole: 0 }, 1_000, &[copy; 20]);
        assert_eq!(error.unwrap(), "the file has reached its limit of 1000 bytes");
        let kept = read(&temporary.0).len() as u64;
        assert!((3..=6).contains(&kept), "{kept}");
        assert_eq!(kept + writer.status.lost.load(Ordering::Relaxed), 20);
        assert!(temporary.0.metadata().unwrap().len() <= 1_000);
    }

    #[test]
    fn a_full_disk_is_told_and_counted() {
        // Every write to it fails as on a full disk.
        let Ok(file) = OpenOptions::new().write(true).open("/dev/full") else {
            return testing::skipped("there is no /dev/full");
        };
        let octets = udp(72);
        let copy = Captured { time: tables::Nanos(5), uplink: true, length: 100, octets: &octets };
        let (mut writer, error) = write(Blocks { file, pending: Vec::new(), whole: 0 }, 1 << 20, &[copy; 3]);
        assert!(error.unwrap().contains("No space left"));
        writer.write(copy);
        assert_eq!(writer.status.lost.load(Ordering::Relaxed), 4);
    }
}
