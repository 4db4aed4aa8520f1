//! Results go to standard output; a reader that has gone away (`| head`) is not an error.

use crate::exit::{Exit, Failure};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Prints a text as it is.
pub fn text(text: &str) -> Result<(), Failure> {
    more(text).map(drop)
}

/// Prints some more of a text without end. Whether anybody still reads it.
pub fn more(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(Exit::Failed, format!("can't write the result: {error}"))),
    }
}

/// Prints a value as JSON, indented.
pub fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    text(&ended(serde_json::to_string_pretty(value))?)
}

/// Whether this path stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes a value as JSON, indented, to a file or standard output.
pub fn report<T: Serialize>(value: &T, path: &Path) -> Result<(), Failure> {
    if is_stdout(path) {
        return json(value);
    }
    written(&ended(serde_json::to_string_pretty(value))?, path)
}

/// Writes a text to a file or standard output.
pub fn written(contents: &str, path: &Path) -> Result<(), Failure> {
    if is_stdout(path) {
        return text(contents);
    }
    let failed = |error| Failure::new(Exit::Failed, format!("can't write {}: {error}", path.display()));
    std::fs::write(path, contents).map_err(failed)
}

/// An error if nothing can be written there. What is there stays as it is.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if is_stdout(path) {
        return Ok(());
    }
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Failure::new(Exit::Usage, format!("can't write {}: {error}", path.display())))?;
    if is_new {
        // It would look like a result.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// A value as one line of JSON.
pub fn line<T: Serialize>(value: &T) -> Result<String, Failure> {
    ended(serde_json::to_string(value))
}

/// JSON with the end of its last line.
fn ended(json: serde_json::Result<String>) -> Result<String, Failure> {
    let failed = |error| Failure::new(Exit::Failed, format!("can't write the result: {error}"));
    json.map(|json| json + "\n").map_err(failed)
}
