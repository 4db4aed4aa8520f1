//! A file with what a UPF is: associations, answers that are kept, sessions, neighbours.
//!
//! ```text
//! "millrace", version (2 octets)
//! a block:  kind (1 octet), length (4), octets, CRC-32 of all of these (4)
//! ...
//! the end:  a block with the number of sessions
//! ```
//!
//! Numbers are little-endian. The first block is N4's header ([`n4::Header`]). Each other block holds many records of one kind, whose parts
//! have their length before them. An answer is one part; a session two: N4's record and what packets have counted
//! ([`datapath::Event::Exported`]); a neighbour three: the name of the interface, the address, the MAC address.
//!
//! **A file is whole or it isn't there.** It is written beside its place, forced to the disk and then moved: a full disk or a crash leaves what
//! was there before. Whoever reads looks through all of it first. A file that is cut off or damaged is refused as a whole.
//!
//! **It is as secret as its UPF's memory**: it names subscribers, and has the key of the TEIDs. So nobody else may read it.

use api::{CtlError, ErrorCode};
use n4::Header;
use session::packed::{count, counted};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of the blocks; what is in them has its own.
const VERSION: u16 = 1;
const MAGIC: [u8; 8] = *b"millrace";
/// A longer block is damage.
const MOST: usize = 64 << 20;
/// A block of answers or sessions is written when it is so long.
const BLOCK: usize = 256 << 10;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Header = 1,
    Replies = 2,
    Sessions = 3,
    Neighbours = 4,
    End = 0xff,
}

impl Kind {
    fn of(octet: u8) -> Option<Self> {
        [Self::Header, Self::Replies, Self::Sessions, Self::Neighbours, Self::End]
            .into_iter()
            .find(|kind| *kind as u8 == octet)
    }

    /// Of each record.
    const fn parts(self) -> usize {
        match self {
            Self::Header | Self::Replies | Self::End => 1,
            Self::Sessions => 2,
            Self::Neighbours => 3,
        }
    }
}

/// Why a file can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses.
    #[error("can't {what} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is no dump of a UPF's state (`millrace ctl dump` writes one)", path = path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Another version of Millrace wrote it.
    #[error(
        "{path} was written by another version of Millrace, whose sessions this one can't go on with; move it away to \
         start without sessions", path = path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
    },
    /// It ends too early.
    #[error(
        "{path} is cut off after {at} bytes: it was not copied whole; move it away to start without sessions",
        path = path.display()
    )]
    Torn {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        at: u64,
    },
    /// It is not what was written.
    #[error("{path} is damaged in the block at byte {at}; move it away to start without sessions", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the block begins.
        at: u64,
    },
}

impl FileError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

impl From<FileError> for CtlError {
    fn from(error: FileError) -> Self {
        Self::new(ErrorCode::Failed, error.to_string())
    }
}

/// A file that is being written, beside its place. Dropped, it was never there.
pub(super) struct Draft {
    path: PathBuf,
    beside: PathBuf,
    file: Option<BufWriter<File>>,
    written: u64,
    sessions: u64,
}

impl Draft {
    /// Begins with the header.
    pub fn create(path: &Path, header: &[u8]) -> Result<Self, FileError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".part");
        let beside = PathBuf::from(beside);
        // What is left there of an earlier one is not worth keeping, and may have had other permissions.
        let _ = std::fs::remove_file(&beside);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let file = file.map_err(FileError::io("make", &beside))?;
        let file = Some(BufWriter::with_capacity(1 << 20, file));
        let mut draft = Self { path: path.to_owned(), beside, file, written: 0, sessions: 0 };
        draft.put(&MAGIC)?;
        draft.put(&VERSION.to_le_bytes())?;
        draft.block(Kind::Header, header)?;
        Ok(draft)
    }

    /// So many records more.
    pub fn add(&mut self, kind: Kind, records: &Records) -> Result<(), FileError> {
        if kind == Kind::Sessions {
            self.sessions += records.count;
        }
        records.blocks.iter().filter(|block| !block.is_empty()).try_for_each(|block| self.block(kind, block))
    }

    fn block(&mut self, kind: Kind, octets: &[u8]) -> Result<(), FileError> {
        let head = head(kind, octets);
        self.put(&head)?;
        self.put(octets)?;
        self.put(&checksum(&head, octets).to_le_bytes())
    }

    fn put(&mut self, octets: &[u8]) -> Result<(), FileError> {
        self.written += octets.len() as u64;
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(octets).map_err(FileError::io("write", &self.beside))
    }

    /// Now it is there. Says how long it is.
    pub fn finish(mut self) -> Result<u64, FileError> {
        self.block(Kind::End, &self.sessions.to_le_bytes())?;
        let written = self.written;
        if let Some(file) = self.file.take() {
            let kept = file
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)
                .and_then(|file| file.sync_all());
            let moved = kept.and_then(|()| std::fs::rename(&self.beside, &self.path));
            if let Err(error) = moved {
                let _ = std::fs::remove_file(&self.beside);
                return Err(FileError::io("write", &self.path)(error));
            }
            // The name is to be there after a crash, too; not every file system can be asked for that.
            let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let _ =
                File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
        }
        Ok(written)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

fn head(kind: Kind, octets: &[u8]) -> [u8; 5] {
    let [a, b, c, d] = (octets.len() as u32).to_le_bytes();
    [kind as u8, a, b, c, d]
}

fn checksum(head: &[u8], octets: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(octets);
    hasher.finalize()
}

/// Records on their way into a file.
#[derive(Debug, Default)]
pub(super) struct Records {
    blocks: Vec<Vec<u8>>,
    pub count: u64,
}

impl Records {
    /// One more, of these parts.
    pub fn push(&mut self, parts: &[&[u8]]) {
        if self.blocks.last().is_none_or(|block| block.len() >= BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK + BLOCK / 8));
        }
        if let Some(block) = self.blocks.last_mut() {
            parts.iter().for_each(|part| count(part, block));
        }
        self.count += 1;
    }
}

/// A file that was looked through: it is whole, and its header can be read.
#[derive(Clone, Debug)]
pub struct Saved {
    path: PathBuf,
    file: Arc<File>,
    pub(super) header: Header,
    pub(super) sessions: u64,
    bytes: u64,
}

impl Saved {
    /// Looks through a file. `None`: there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, FileError> {
        let file = match File::open(path) {
            Ok(file) => Arc::new(file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io("open", path)(error)),
        };
        let mut blocks = Blocks::new(path, file.clone())?;
        let damaged = |at| FileError::Damaged { path: path.to_owned(), at };
        let at = blocks.at;
        let Some((Kind::Header, octets)) = blocks.next()? else { return Err(damaged(at)) };
        let header = Header::read(octets).ok_or_else(|| FileError::Version { path: path.to_owned() })?;
        let mut sessions = 0;
        loop {
            let at = blocks.at;
            match blocks.next()? {
                Some((kind @ (Kind::Replies | Kind::Sessions | Kind::Neighbours), octets)) => {
                    let count = records(kind, octets).ok_or_else(|| damaged(at))?.len() as u64;
                    sessions += if kind == Kind::Sessions { count } else { 0 };
                }
                Some((Kind::End, octets)) if *octets == sessions.to_le_bytes() => break,
                Some((Kind::Header | Kind::End, _)) => return Err(damaged(at)),
                None => return Err(FileError::Torn { path: path.to_owned(), at }),
            }
        }
        if !blocks.is_at_end()? {
            return Err(damaged(blocks.at));
        }
        let bytes = blocks.at;
        Ok(Some(Self { path: path.to_owned(), file, header, sessions, bytes }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it begins with.
    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    /// Sessions in it.
    pub const fn sessions(&self) -> u64 {
        self.sessions
    }

    /// How long it is.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its blocks after the header, from the beginning.
    pub(super) fn blocks(&self) -> Result<Blocks, FileError> {
        let mut blocks = Blocks::new(&self.path, self.file.clone())?;
        blocks.next()?;
        Ok(blocks)
    }
}

/// The records of a block, in parts; `None`: it is damaged.
pub(super) fn records(kind: Kind, mut octets: &[u8]) -> Option<Vec<Vec<&[u8]>>> {
    let from = &mut octets;
    let mut records = Vec::new();
    while !from.is_empty() {
        records.push((0..kind.parts()).map(|_| counted(from)).collect::<Option<Vec<_>>>()?);
    }
    Some(records)
}

/// A reader of its own on a file that others may read, too.
struct Positioned(Arc<File>, u64);

impl Read for Positioned {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read_at(to, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

/// Reads a file block by block.
pub(super) struct Blocks {
    path: PathBuf,
    from: BufReader<Positioned>,
    octets: Vec<u8>,
    /// Where the next block begins.
    at: u64,
}

impl Blocks {
    fn new(path: &Path, file: Arc<File>) -> Result<Self, FileError> {
        let from = BufReader::with_capacity(1 << 20, Positioned(file, 0));
        let mut blocks = Self { path: path.to_owned(), from, octets: Vec::new(), at: 0 };
        let mut head = [0; 10];
        let read = blocks.fill(&mut head)?;
        let (magic, version) = head.split_at(MAGIC.len());
        if read < head.len() || *magic != MAGIC {
            return Err(FileError::NotOurs { path: path.to_owned() });
        }
        if *version != VERSION.to_le_bytes() {
            return Err(FileError::Version { path: path.to_owned() });
        }
        blocks.at = head.len() as u64;
        Ok(blocks)
    }

    /// As much as there is.
    fn fill(&mut self, to: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        while let Some(rest) = to.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.from.read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::io("read", &self.path)(error)),
            }
        }
        Ok(filled)
    }

    fn is_at_end(&mut self) -> Result<bool, FileError> {
        Ok(self.fill(&mut [0])? == 0)
    }

    /// The next one; `None`: the file is cut off here.
    pub fn next(&mut self) -> Result<Option<(Kind, &[u8])>, FileError> {
        let mut head = [0; 5];
        if self.fill(&mut head)? < head.len() {
            return Ok(None);
        }
        let damaged = FileError::Damaged { path: self.path.clone(), at: self.at };
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        let Some(kind) = Kind::of(kind).filter(|_| length <= MOST) else { return Err(damaged) };
        // Not before there is so much: a length may be damaged, too.
        let mut octets = std::mem::take(&mut self.octets);
        octets.clear();
        let mut part = (&mut self.from).take(length as u64 + 4);
        let read = part.read_to_end(&mut octets).map_err(FileError::io("read", &self.path))?;
        self.octets = octets;
        if read < length + 4 {
            return Ok(None);
        }
        let Some((octets, sum)) = self.octets.split_at_checked(length) else { return Err(damaged) };
        if *sum != checksum(&head, octets).to_le_bytes() {
            return Err(damaged);
        }
        self.at += (head.len() + length + sum.len()) as u64;
        Ok(Some((kind, octets)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use n4::{N4, WallClock};
    use pfcp::ie::{NodeId, RecoveryTimeStamp};
    use pfcp::node::{NodeConfig, Role};
    use session::store::Store;
    use std::time::Duration;
    use tables::Nanos;
    use testing::Directory;

    fn files(place: &Directory) -> usize {
        std::fs::read_dir(&place.0).unwrap().count()
    }

    fn header() -> Vec<u8> {
        let node = NodeConfig::new(Role::Up, NodeId::Fqdn("upf.test".into()), RecoveryTimeStamp(7));
        let store = Store::new(session::config::Config::default()).unwrap();
        let wall = WallClock::new(Nanos(0), Duration::from_secs(1_700_000_000));
        N4::new(Nanos(5), node, store, [192, 0, 2, 1].into(), &[], 1, wall).header(Nanos(5))
    }

    fn some(count: u8) -> Records {
        let mut records = Records::default();
        (0..count).for_each(|octet| records.push(&[&[octet; 40], &[octet; 9]]));
        records
    }

    fn written(path: &Path, sessions: u8) -> u64 {
        let mut draft = Draft::create(path, &header()).unwrap();
        let mut replies = Records::default();
        replies.push(&[b"a reply"]);
        draft.add(Kind::Replies, &replies).unwrap();
        draft.add(Kind::Sessions, &some(sessions)).unwrap();
        draft.add(Kind::Sessions, &Records::default()).unwrap();
        draft.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        use std::os::unix::fs::PermissionsExt;
        let place = Directory::new("whole");
        let path = place.0.join("state");
        assert!(Saved::open(&path).unwrap().is_none());
        let bytes = written(&path, 3);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "it has secrets");
        let saved = Saved::open(&path).unwrap().unwrap();
        assert_eq!((saved.sessions(), saved.bytes()), (3, bytes));
        assert_eq!(saved.header().node_id, NodeId::Fqdn("upf.test".into()));
        // More than once.
        for _ in 0..2 {
            let mut blocks = saved.blocks().unwrap();
            let (kind, octets) = blocks.next().unwrap().unwrap();
            assert_eq!((kind, records(kind, octets).unwrap()), (Kind::Replies, vec![vec![&b"a reply"[..]]]));
            let (kind, octets) = blocks.next().unwrap().unwrap();
            let all = records(kind, octets).unwrap();
            assert_eq!((kind, all.len(), all[2].concat()), (Kind::Sessions, 3, vec![2; 49]));
        }
        assert_eq!(files(&place), 1);
    }

    /// Cut off anywhere, or with any octet changed, it is no file to go on with; nor with something behind it.
    #[test]
    fn what_is_torn_or_damaged_is_refused() {
        let place = Directory::new("damaged");
        let path = place.0.join("state");
        written(&path, 2);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = Saved::open(&path).unwrap_err();
            let begun = length >= 10;
            assert_eq!(matches!(error, FileError::NotOurs { .. }), !begun, "{length}: {error}");
            let torn = matches!(error, FileError::Torn { .. } | FileError::Damaged { .. });
            assert_eq!(torn, begun, "{length}: {error}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&path, damaged).unwrap();
            let error = Saved::open(&path).unwrap_err();
            assert!(!matches!(error, FileError::Io { .. }), "{at}: {error}");
        }
        std::fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
        assert!(
            matches!(Saved::open(&path).unwrap_err(), FileError::Damaged { at, .. } if at == whole.len() as u64)
        );
        std::fs::write(&path, [&MAGIC[..], &2_u16.to_le_bytes(), &whole[10..]].concat()).unwrap();
        assert!(matches!(Saved::open(&path).unwrap_err(), FileError::Version { .. }));
    }

    #[test]
    fn what_could_not_be_written_leaves_what_was_there() {
        let place = Directory::new("full");
        let path = place.0.join("state");
        let before = written(&path, 2);
        // A disk that is full.
        let mut draft = Draft::create(&path, &header()).unwrap();
        draft.file = Some(BufWriter::new(OpenOptions::new().write(true).open("/dev/full").unwrap()));
        draft.add(Kind::Sessions, &some(9)).unwrap();
        let error = draft.finish().unwrap_err();
        assert!(error.to_string().contains("No space left on device"), "{error}");
        // Whoever wrote gave up.
        drop(Draft::create(&path, &header()).unwrap());
        assert_eq!((Saved::open(&path).unwrap().unwrap().bytes(), files(&place)), (before, 1));
    }

    #[test]
    fn blocks_are_bounded() {
        let mut records = Records::default();
        (0..100_000).for_each(|_| records.push(&[&[7; 50], &[]]));
        assert!(records.blocks.len() > 10 && records.blocks.iter().all(|block| block.len() < BLOCK + 100));
    }
}
