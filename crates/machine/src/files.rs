//! Reading what the kernel tells in files: bounded, and with a name for everything that is not as it should be.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Cores and nodes are numbered below this; as many as an affinity mask holds.
pub const MAX_NUMBER: usize = rustix::thread::CpuSet::MAX_CPU;
/// The greatest file that is read: a list of 1,024 cores with none next to another has some 4,000 bytes.
const MAX_BYTES: u64 = 16 * 1024;
/// What an error repeats of a file.
const SHOWN: usize = 40;

/// What a file is read to that is not a value but a table, and of which the beginning is enough.
pub const TABLE_BYTES: u64 = 256 * 1024;
/// Names that are read of a directory: more than any machine has devices.
const MAX_ENTRIES: usize = 4096;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It can't be read.
    #[error("can't read {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is greater than any such file is, or no file.
    #[error("{path} is not there, no file, or greater than any such file is", path = path.display())]
    NoSuchFile {
        /// The file.
        path: PathBuf,
    },
    /// It says something else than it should.
    #[error("{path} says `{found}`, which is not {expected}", path = path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// Its beginning, control characters replaced.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// A directory that looks like `/`, or like `/sys`. Paths below it have no slash at their front.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a>(pub &'a Path);

impl Files<'_> {
    /// A file's text without white space around it; `None`: there is no such file.
    pub fn text(self, path: &str) -> Result<Option<String>, FileError> {
        let Some(bytes) = self.bytes(path, MAX_BYTES + 1)? else { return Ok(None) };
        let path = self.0.join(path);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(FileError::NoSuchFile { path });
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Err(unexpected(path, &text, "text"))
            }
        }
    }

    /// The beginning of a file of lines; `None`: there is no such file. What is no text in it is replaced.
    pub fn table(self, path: &str) -> Result<Option<String>, FileError> {
        let bytes = self.bytes(path, TABLE_BYTES)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// At most so many of a file's bytes.
    pub fn bytes(self, path: &str, most: u64) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.0.join(path);
        let io = |source| FileError::Io { path: path.clone(), source };
        match fs::metadata(&path) {
            // Opening a named pipe would wait for somebody.
            Ok(metadata) if !metadata.is_file() => return Err(FileError::NoSuchFile { path }),
            Ok(_) => {}
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(io(error)),
        }
        let mut bytes = Vec::new();
        let file = fs::File::open(&path).map_err(io)?;
        // Some files are there and answer with an error: a core without frequency scaling, an offline one.
        match file.take(most).read_to_end(&mut bytes) {
            Ok(_) => Ok(Some(bytes)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(io(error)),
        }
    }

    /// The names in a directory, in order; none if there is no such directory.
    pub fn names(self, path: &str) -> Result<Vec<String>, FileError> {
        let path = self.0.join(path);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(source) => return Err(FileError::Io { path, source }),
        };
        let clean = |name: &String| !name.contains(char::is_control);
        let names = entries.take(MAX_ENTRIES).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(clean).collect();
        names.sort();
        Ok(names)
    }

    /// The last part of where a link leads, as a device's `driver` does; `None`: there is no such link.
    pub fn link(self, path: &str) -> Option<String> {
        let target = fs::read_link(self.0.join(path)).ok()?;
        let name = target.file_name()?.to_str()?;
        (!name.contains(char::is_control)).then(|| name.to_owned())
    }

    /// Whether there is something of that name.
    pub fn exists(self, path: &str) -> bool {
        self.0.join(path).exists()
    }

    /// A number without bounds; `None`: there is no such file.
    pub fn count(self, path: &str) -> Result<Option<u64>, FileError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.not_that(path, &text, "a number"))
    }

    /// A number as hexadecimal digits behind `0x`; `None`: there is no such file.
    pub fn hexadecimal(self, path: &str) -> Result<Option<u32>, FileError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.map(Some).ok_or_else(|| self.not_that(path, &text, "a hexadecimal number"))
    }

    /// A list of numbers such as `0-3,8`; `None`: there is no such file.
    pub fn list(self, path: &str) -> Result<Option<BTreeSet<usize>>, FileError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        // What kernels say for a mask that was never set.
        if text == "(null)" {
            return Ok(Some(BTreeSet::new()));
        }
        match parse_list(&text) {
            Some(list) => Ok(Some(list)),
            None => Err(self.not_that(path, &text, "a list of numbers below 1024")),
        }
    }

    /// A number; `None`: there is no such file, or it says -1: not known.
    pub fn number(self, path: &str) -> Result<Option<usize>, FileError> {
        match self.text(path)?.as_deref() {
            None | Some("-1") => Ok(None),
            Some(text) => match parse_number(text) {
                Some(number) => Ok(Some(number)),
                None => Err(self.not_that(path, text, "a number below 1024")),
            },
        }
    }

    /// One word of letters, digits and underscores.
    pub fn word(self, path: &str) -> Result<Option<String>, FileError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let clean = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if (1..=32).contains(&text.len()) && text.bytes().all(clean) {
            Ok(Some(text))
        } else {
            Err(self.not_that(path, &text, "one word"))
        }
    }

    /// A file with something else in it.
    pub fn not_that(self, path: &str, text: &str, expected: &'static str) -> FileError {
        unexpected(self.0.join(path), text, expected)
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    use std::io::ErrorKind::{NotADirectory, NotFound};

    let number = Errno::from_io_error(error);
    matches!(error.kind(), NotFound | NotADirectory)
        || matches!(number, Some(Errno::NXIO | Errno::NODEV | Errno::INVAL | Errno::BUSY))
}

fn unexpected(path: PathBuf, text: &str, expected: &'static str) -> FileError {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    FileError::Unexpected { path, found: text.chars().take(SHOWN).map(shown).collect(), expected }
}

/// Plain digits below [`MAX_NUMBER`]: no sign, no space.
fn parse_number(text: &str) -> Option<usize> {
    let digits = (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten()?;
    (number < MAX_NUMBER).then_some(number)
}

/// The kernel's list format (`bitmap_print_list`): ranges in any order, nothing for an empty set.
pub(crate) fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut list = BTreeSet::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (parse_number(first)?, parse_number(last)?);
        if first > last {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

/// Writes a set of numbers, in ascending order, as the kernel does: `0-3,8`.
pub fn write_list(list: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in list {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists() {
        let list = |text| parse_list(text).map(|list| list.into_iter().collect::<Vec<_>>());
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("8,0-3,2-5"), Some(vec![0, 1, 2, 3, 4, 5, 8]));
        assert_eq!(list("1022-1023"), Some(vec![1022, 1023]));
        let wrong = [
            "-",
            "3-1",
            "1-",
            "-1",
            "1,,2",
            ",",
            "1 ,2",
            "a",
            "+1",
            "1024",
            "0-1024",
            "99999999999999999999",
            "0-31:1/2",
        ];
        for wrong in wrong {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(list in proptest::collection::btree_set(0..MAX_NUMBER, 0..200)) {
            prop_assert_eq!(parse_list(&write_list(list.iter().copied())), Some(list));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9,\\- ]{0,40}|\\PC{0,40}") {
            if let Some(list) = parse_list(&text) {
                prop_assert!(list.iter().all(|number| *number < MAX_NUMBER));
            }
        }
    }
}
