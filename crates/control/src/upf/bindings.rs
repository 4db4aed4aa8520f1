//! The log of bindings: who had which public ports at which time, as lines of JSON appended to a file.
//!
//! A thread of its own writes, behind a queue of limited length: a full disk or a slow one costs lines, which are counted,
//! and stops nothing. The file may be renamed while in use (`logrotate` without more ado): once a second, if there is something to
//! write, the thread looks whether the path still leads to the file that it has open, and otherwise opens it anew.

use super::calendar::{NTP_AT_1970, utc};
use datapath::nat::{Protocol, Told};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines that wait to be written, at most.
const QUEUE: usize = 1 << 16;
/// Lines that are written at once, at most.
const BATCH: u64 = 1024;
/// How often the path is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// A line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    BlockAllocated(Block<'a>),
    BlockReleased(Block<'a>),
    MappingCreated(Mapping<'a>),
    MappingEnded(Mapping<'a>),
    /// So many lines should be here and are not.
    LinesLost {
        lines: u64,
    },
}

#[derive(Serialize)]
struct Block<'a> {
    pool: &'a str,
    ue: Ipv4Addr,
    public: Ipv4Addr,
    first_port: u16,
    last_port: u16,
}

#[derive(Serialize)]
struct Mapping<'a> {
    pool: &'a str,
    protocol: &'static str,
    ue: SocketAddrV4,
    public: SocketAddrV4,
}

#[derive(Serialize)]
struct Timed<'a> {
    time: &'a str,
    #[serde(flatten)]
    line: Line<'a>,
}

/// See the module's documentation. Dropping it writes what waits, and ends the thread.
pub(super) struct Bindings {
    queue: Option<SyncSender<(SystemTime, Told)>>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Bindings {
    /// Opens the file, or creates it, so that a path that can't be written is known at once.
    pub(super) fn open(path: &Path, pools: Vec<String>) -> std::io::Result<Self> {
        let file = append_to(path)?;
        let (queue, lines) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            path: path.to_owned(),
            file: Some(file),
            looked: Instant::now(),
            pools,
            lost: Arc::clone(&lost),
            told: 0,
            text: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("nat-log".into()).spawn(move || writer.run(&lines))?;
        Ok(Self { queue: Some(queue), lost, thread: Some(thread) })
    }

    /// Puts an event into the queue.
    pub(super) fn tell(&self, told: Told) {
        let queued =
            self.queue.as_ref().is_some_and(|queue| queue.try_send((SystemTime::now(), told)).is_ok());
        if !queued {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were not written.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Bindings {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // Its end is all that is wanted.
            let _ = thread.join();
        }
    }
}

fn append_to(path: &Path) -> std::io::Result<File> {
    // Who used which address when is nobody's business but the operator's.
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

struct Writer {
    path: PathBuf,
    file: Option<File>,
    looked: Instant,
    pools: Vec<String>,
    lost: Arc<AtomicU64>,
    /// How much of `lost` the file tells.
    told: u64,
    text: Vec<u8>,
}

impl Writer {
    fn run(mut self, lines: &Receiver<(SystemTime, Told)>) {
        while let Ok((time, told)) = lines.recv() {
            self.text.clear();
            let lost = self.lost.load(Ordering::Relaxed);
            if lost > self.told {
                self.line(time, Line::LinesLost { lines: lost - self.told });
            }
            self.told(time, told);
            let mut count = 1;
            while count < BATCH
                && let Ok((time, told)) = lines.try_recv()
            {
                self.told(time, told);
                count += 1;
            }
            if self.write() {
                self.told = lost;
            } else {
                self.lost.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Writes the batch whole, or, as far as can be helped, none of it.
    fn write(&mut self) -> bool {
        if self.file.is_none() || self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            let open = self.file.as_ref().and_then(|file| file.metadata().ok());
            let there = std::fs::metadata(&self.path).ok();
            let same =
                |a: &std::fs::Metadata, b: &std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
            if !open.zip(there).is_some_and(|(open, there)| same(&open, &there)) {
                self.file = append_to(&self.path).ok();
            }
        }
        let Some(file) = &mut self.file else { return false };
        let before = file.metadata().map(|metadata| metadata.len());
        if file.write_all(&self.text).is_ok() {
            return true;
        }
        // Half a line would spoil the next one. A pipe or device can't be cut, nor need it be.
        if let Ok(before) = before {
            let _ = file.set_len(before);
        }
        false
    }

    fn told(&mut self, time: SystemTime, told: Told) {
        let pools = std::mem::take(&mut self.pools);
        let name = |pool: u8| pools.get(usize::from(pool)).map_or("", String::as_str);
        let mapping = |pool, protocol: Protocol, ue, public| Mapping {
            pool: name(pool),
            protocol: protocol.label(),
            ue,
            public,
        };
        let line = match told {
            Told::Block { pool, taken, inside, outside, ports: (first_port, last_port) } => {
                let block = Block { pool: name(pool), ue: inside, public: outside, first_port, last_port };
                if taken { Line::BlockAllocated(block) } else { Line::BlockReleased(block) }
            }
            Told::Mapped { pool, protocol, inside, outside } => {
                Line::MappingCreated(mapping(pool, protocol, inside, outside))
            }
            Told::Unmapped { pool, protocol, inside, outside } => {
                Line::MappingEnded(mapping(pool, protocol, inside, outside))
            }
        };
        self.line(time, line);
        self.pools = pools;
    }

    fn line(&mut self, time: SystemTime, line: Line<'_>) {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut text = utc((NTP_AT_1970 + since.as_secs()) as u32);
        text.pop();
        let time = format!("{text}.{:03}Z", since.subsec_millis());
        // Writing to memory can't fail, and these types have no keys that JSON doesn't know.
        let _ = serde_json::to_writer(&mut self.text, &Timed { time: &time, line });
        self.text.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn block(taken: bool) -> Told {
        Told::Block {
            pool: 0,
            taken,
            inside: [10, 45, 0, 1].into(),
            outside: [203, 0, 113, 128].into(),
            ports: (1024, 1279),
        }
    }

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn lines_are_json_and_survive_rotation() {
        let directory = std::env::temp_dir().join(format!("millrace-nat-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, rotated) = (directory.join("nat.jsonl"), directory.join("nat.jsonl.1"));
        let log = Bindings::open(&path, vec!["internet".into()]).unwrap();
        log.tell(block(true));
        let endpoint = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
        let (inside, outside) = (endpoint([10, 45, 0, 1], 4000), endpoint([203, 0, 113, 128], 1030));
        log.tell(Told::Mapped { pool: 0, protocol: Protocol::Tcp, inside, outside });
        while std::fs::metadata(&path).unwrap().len() < 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::rename(&path, &rotated).unwrap();
        std::thread::sleep(LOOK + Duration::from_millis(50));
        log.tell(block(false));
        drop(log);
        let (first, second) = (lines(&rotated), lines(&path));
        assert_eq!((first.len(), second.len()), (2, 1));
        assert_eq!(
            (&first[0]["event"], &second[0]["event"]),
            (&"block-allocated".into(), &"block-released".into())
        );
        let mut expected = serde_json::json!({
            "event": "block-allocated", "pool": "internet", "ue": "10.45.0.1", "public": "203.0.113.128",
            "first_port": 1024, "last_port": 1279
        });
        expected["time"] = first[0]["time"].clone();
        assert_eq!(first[0], expected);
        assert_eq!((&first[1]["ue"], &first[1]["protocol"]), (&"10.45.0.1:4000".into(), &"tcp".into()));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let log = Bindings::open(Path::new("/dev/full"), vec!["internet".into()]).unwrap();
        for _ in 0..10 {
            log.tell(block(true));
        }
        let begun = Instant::now();
        while log.lost() < 10 {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
