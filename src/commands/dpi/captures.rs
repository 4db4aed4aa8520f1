//! Captures, one after the other.

use crate::exit::{Exit, Failure};
use crate::output::is_stdout;
use std::cell::Cell;
use std::fs::File;
use std::io::{ErrorKind, Read, Result};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A capture; what is read of it is counted.
pub struct Capture {
    input: Box<dyn Read>,
    done: Rc<Cell<u64>>,
}

impl Read for Capture {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.input.read(buffer)?;
        self.done.set(self.done.get() + count as u64);
        Ok(count)
    }
}

/// All that are to be read.
pub struct Captures {
    files: Vec<Capture>,
    /// Octets of all; those of standard input are not known before.
    pub length: u64,
    /// Octets that were read.
    pub done: Rc<Cell<u64>>,
}

impl Captures {
    /// Opens all of them, so that one that isn't there is told before hours of work; `-` is standard input.
    pub fn open(paths: &[PathBuf]) -> std::result::Result<Self, Failure> {
        let (done, mut length) = (Rc::new(Cell::new(0)), 0);
        let mut files = Vec::new();
        for path in paths {
            let input: Box<dyn Read> = if is_stdout(path) {
                Box::new(std::io::stdin().lock())
            } else {
                let file = File::open(path).map_err(|error| not_opened(path, &error))?;
                length += file.metadata().map_or(0, |it| it.len());
                Box::new(file)
            };
            files.push(Capture { input, done: Rc::clone(&done) });
        }
        files.reverse();
        Ok(Self { files, length, done })
    }

    /// The next one.
    pub fn next(&mut self) -> Option<Capture> {
        self.files.pop()
    }
}

fn not_opened(path: &Path, error: &std::io::Error) -> Failure {
    let denied = error.kind() == ErrorKind::PermissionDenied;
    let exit = if denied { Exit::Privilege } else { Exit::Usage };
    Failure::new(exit, format!("can't read {}: {error}", path.display()))
}
