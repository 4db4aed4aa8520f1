//! Results go to standard output; a reader that has gone away (`| head`) is not an error.

use crate::exit::{Exit, Failure};
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Prints a text as it is.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failed, format!("can't write the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON, indented.
pub fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let mut json = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(Exit::Failed, format!("can't write the result: {error}")))?;
    json.push('\n');
    text(&json)
}
