//! Lines of JSON appended to a file: what the log of bindings and the log of flows have in common.
//!
//! A thread of its own writes, behind a queue of limited length: a full disk or a slow one costs lines, which are counted,
//! and stops nothing. The file may be renamed while in use (`logrotate` without more ado): once a second, if there is something to
//! write, the thread looks whether the path still leads to the file that it has open, and otherwise opens it anew. A file that
//! may not grow beyond a limit is renamed by the thread itself, to its name with `.1` behind it, in place of the last such one.

use pfcp::calendar::utc_millis;
use serde::Serialize;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes from which on a batch of lines is written.
const BATCH: usize = 256 << 10;
/// How often the path is looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// What is written, and how.
pub(super) trait Lines: Send + 'static {
    /// What is told at a time.
    type Entry: Send + 'static;
    /// How many lines that makes.
    fn count(entry: &Self::Entry) -> u64;
    /// These lines, each with its newline.
    fn write(&self, time: SystemTime, entry: &Self::Entry, text: &mut Vec<u8>);
}

/// A line with the time in front.
#[derive(Serialize)]
struct Timed<'a, L> {
    time: &'a str,
    #[serde(flatten)]
    line: L,
}

/// Appends a line.
pub(super) fn line(time: SystemTime, line: impl Serialize, text: &mut Vec<u8>) {
    let time = utc_millis(time.duration_since(UNIX_EPOCH).unwrap_or_default());
    // Writing to memory can't fail, and these types have no keys that JSON doesn't know.
    let _ = serde_json::to_writer(&mut *text, &Timed { time: &time, line });
    text.push(b'\n');
}

/// So many lines should be here and are not.
#[derive(Serialize)]
#[serde(tag = "event", rename = "lines-lost")]
struct LinesLost {
    lines: u64,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
}

/// See the module's documentation. Dropping it writes what waits, and ends the thread.
pub(super) struct Journal<L: Lines> {
    queue: Option<SyncSender<(SystemTime, L::Entry)>>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Lines> Journal<L> {
    /// Opens the file, or creates it, so that a path that can't be written is known at once. `limit`: of the file in bytes;
    /// `waiting`: entries that wait to be written, at most.
    pub(super) fn open(
        thread: &str,
        path: &Path,
        limit: Option<u64>,
        waiting: usize,
        lines: L,
    ) -> std::io::Result<Self> {
        let file = append_to(path)?;
        let (queue, entries) = sync_channel(waiting);
        let counts = Arc::<Counts>::default();
        let writer = Writer {
            path: path.to_owned(),
            file: Some(file),
            looked: Instant::now(),
            limit: limit.unwrap_or(u64::MAX),
            lines,
            counts: Arc::clone(&counts),
            told: 0,
            text: Vec::new(),
            failing: false,
            error: None,
        };
        let thread = std::thread::Builder::new().name(thread.into()).spawn(move || writer.run(&entries))?;
        Ok(Self { queue: Some(queue), counts, thread: Some(thread) })
    }

    /// Puts something into the queue, if there is room.
    pub(super) fn tell(&self, entry: L::Entry) {
        let lines = L::count(&entry);
        let queued =
            self.queue.as_ref().is_some_and(|queue| queue.try_send((SystemTime::now(), entry)).is_ok());
        if !queued {
            self.counts.lost.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// The same, and waits for room.
    pub(super) fn tell_patiently(&self, entry: L::Entry) {
        let lines = L::count(&entry);
        let queued = self.queue.as_ref().is_some_and(|queue| queue.send((SystemTime::now(), entry)).is_ok());
        if !queued {
            self.counts.lost.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// Lines that were written.
    pub(super) fn written(&self) -> u64 {
        self.counts.written.load(Ordering::Relaxed)
    }

    /// Lines that were not written.
    pub(super) fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::Relaxed)
    }
}

impl<L: Lines> Drop for Journal<L> {
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

struct Writer<L: Lines> {
    path: PathBuf,
    file: Option<File>,
    looked: Instant,
    limit: u64,
    lines: L,
    counts: Arc<Counts>,
    /// How many of the lines that were lost the file tells of.
    told: u64,
    text: Vec<u8>,
    /// The last batch was not written, and the log says so.
    failing: bool,
    /// Why.
    error: Option<std::io::Error>,
}

impl<L: Lines> Writer<L> {
    fn run(mut self, entries: &Receiver<(SystemTime, L::Entry)>) {
        while let Ok((time, entry)) = entries.recv() {
            self.text.clear();
            let lost = self.counts.lost.load(Ordering::Relaxed);
            if lost > self.told {
                line(time, LinesLost { lines: lost - self.told }, &mut self.text);
            }
            let mut count = L::count(&entry);
            self.lines.write(time, &entry, &mut self.text);
            while self.text.len() < BATCH
                && let Ok((time, entry)) = entries.try_recv()
            {
                count += L::count(&entry);
                self.lines.write(time, &entry, &mut self.text);
            }
            let written = self.write();
            self.tell(written);
            if written {
                self.told = lost;
                self.counts.written.fetch_add(count, Ordering::Relaxed);
            } else {
                self.counts.lost.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Whether this is another outcome than the last one.
    const fn turned(&self, written: bool) -> bool {
        written == self.failing
    }

    /// Says in the log when lines begin to be lost, and when they no longer are.
    fn tell(&mut self, written: bool) {
        let error = self.error.take();
        if !self.turned(written) {
            return;
        }
        self.failing = !written;
        let path = self.path.display();
        if written {
            tracing::warn!(%path, "lines are written again; the file says how many are missing");
        } else {
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            tracing::warn!(%path, error, "lines can't be written, and are lost until they can");
        }
    }

    /// Writes the batch whole, or, as far as can be helped, none of it.
    fn write(&mut self) -> bool {
        if self.file.is_none() || self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            let open = self.file.as_ref().and_then(|file| file.metadata().ok());
            let there = std::fs::metadata(&self.path).ok();
            let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
            if !open.zip(there).is_some_and(|(open, there)| same(&open, &there)) {
                self.file = append_to(&self.path).map_err(|error| self.error = Some(error)).ok();
            }
        }
        let Some(file) = &mut self.file else { return false };
        let mut before = file.metadata().map(|metadata| metadata.len());
        if let Ok(length) = before
            && length > 0
            && length.saturating_add(self.text.len() as u64) > self.limit
        {
            // What can't be renamed doesn't grow.
            let mut to = self.path.clone().into_os_string();
            to.push(".1");
            match std::fs::rename(&self.path, to).and_then(|()| append_to(&self.path)) {
                Ok(next) => *file = next,
                Err(error) => {
                    self.error = Some(error);
                    return false;
                }
            }
            before = Ok(0);
        }
        match file.write_all(&self.text) {
            Ok(()) => return true,
            Err(error) => self.error = Some(error),
        }
        // Half a line would spoil the next one. A pipe or device can't be cut, nor need it be.
        if let Ok(before) = before {
            let _ = file.set_len(before);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Numbers;

    #[derive(Serialize)]
    struct Number {
        number: u32,
    }

    impl Lines for Numbers {
        type Entry = Vec<u32>;
        fn count(entry: &Vec<u32>) -> u64 {
            entry.len() as u64
        }
        fn write(&self, time: SystemTime, entry: &Vec<u32>, text: &mut Vec<u8>) {
            entry.iter().for_each(|number| line(time, Number { number: *number }, text));
        }
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        text.lines().map(|line| value(line)["number"].as_u64().unwrap()).collect()
    }

    #[test]
    fn a_file_at_its_limit_is_followed_by_another_one() {
        let directory = std::env::temp_dir().join(format!("millrace-journal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, former) = (directory.join("log"), directory.join("log.1"));
        let journal = Journal::open("numbers", &path, Some(500), 4, Numbers).unwrap();
        for batch in 0..6_u64 {
            // 40 octets a line: three batches of four fill a file.
            let first = batch as u32 * 4;
            journal.tell_patiently((first..first + 4).collect());
            while journal.written() + journal.lost() < (batch + 1) * 4 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!((journal.written(), journal.lost()), (24, 0));
        drop(journal);
        let (first, second) = (numbers(&former), numbers(&path));
        assert!([&former, &path].iter().all(|path| std::fs::metadata(path).unwrap().len() <= 500));
        let all: Vec<_> = first.iter().chain(&second).copied().collect();
        assert!(!second.is_empty() && first.len().is_multiple_of(4) && first.len() >= 8);
        assert_eq!(all, (24 - all.len() as u64..24).collect::<Vec<_>>(), "nothing between is missing");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn lines_that_were_lost_are_told_when_there_is_room_again() {
        let directory = std::env::temp_dir().join(format!("millrace-journal-lost-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let journal = Journal::open("numbers", &path, None, 4, Numbers).unwrap();
        journal.tell(vec![1, 2, 3]);
        let begun = Instant::now();
        while journal.lost() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::remove_file(&path).unwrap();
        std::thread::sleep(LOOK + Duration::from_millis(50));
        journal.tell(vec![4]);
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap();
        let (lost, number) = text.split_once('\n').unwrap();
        assert!(lost.ends_with("\"event\":\"lines-lost\",\"lines\":3}"), "{lost}");
        assert!(number.ends_with("\"number\":4}\n"), "{number}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A disk that is full is told of once, and once when there is room again.
    #[test]
    fn a_file_that_cannot_be_written_is_told_of() {
        let directory = std::env::temp_dir().join(format!("millrace-journal-told-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let counts = Arc::<Counts>::default();
        let mut writer = Writer {
            file: Some(append_to(&path).unwrap()),
            path,
            looked: Instant::now(),
            limit: u64::MAX,
            lines: Numbers,
            counts,
            told: 0,
            text: b"a line\n".to_vec(),
            failing: false,
            error: None,
        };
        for _ in 0..3 {
            let written = writer.write();
            assert_eq!((written, writer.turned(written)), (false, !writer.failing));
            writer.tell(written);
            assert!(writer.failing && writer.error.is_none());
        }
        writer.file = Some(append_to(&directory.join("room")).unwrap());
        writer.looked = Instant::now() + LOOK;
        let written = writer.write();
        assert!(written && writer.turned(written));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
