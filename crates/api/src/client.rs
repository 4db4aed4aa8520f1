//! The side that asks.

use crate::protocol::{CtlError, ERROR, MAX_ANSWER_BYTES};
use crate::questions::{Question, Request};
use crate::socket::distrust;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A connection to a running UPF.
#[derive(Debug)]
pub struct CtlClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

/// Why a client has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CtlClientError {
    /// There is no socket at the path.
    #[error(
        "no UPF is running here: there is no socket {path} (start one with `millrace run --config FILE`, or \
         name another socket with --socket PATH)", path = path.display()
    )]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// There is a socket, and nobody listens.
    #[error(
        "no UPF is running here: {path} was left behind by one that has ended (start one with `millrace run \
         --config FILE`)", path = path.display()
    )]
    NobodyListens {
        /// The path.
        path: PathBuf,
    },
    /// The socket belongs to someone else.
    #[error("{path} belongs to another user: ask as the user that runs the UPF, or as root", path = path.display())]
    Permission {
        /// The path.
        path: PathBuf,
    },
    /// Another user may have put it there.
    #[error("{path} is not asked: {why}", path = path.display())]
    Distrusted {
        /// The path.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The conversation broke off.
    #[error("the UPF behind {path} does not answer: {source}", path = path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What came back is not an answer to what was asked.
    #[error("what listens on {path} is not this version of Millrace: {what}", path = path.display())]
    Protocol {
        /// The path.
        path: PathBuf,
        /// What came.
        what: String,
    },
    /// The UPF refused.
    #[error(transparent)]
    Refused(#[from] CtlError),
}

impl CtlClient {
    /// Connects. `timeout` is for each write and each read.
    pub fn connect(path: &Path, timeout: Duration) -> Result<Self, CtlClientError> {
        let path = path.to_owned();
        if let Some(why) = distrust(&path) {
            return Err(CtlClientError::Distrusted { path, why });
        }
        let stream = match UnixStream::connect(&path) {
            Ok(stream) => stream,
            Err(error) => {
                return Err(match error.kind() {
                    ErrorKind::NotFound => CtlClientError::NoSocket { path },
                    ErrorKind::ConnectionRefused => CtlClientError::NobodyListens { path },
                    ErrorKind::PermissionDenied => CtlClientError::Permission { path },
                    _ => CtlClientError::Io { path, source: error },
                });
            }
        };
        let timed = stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout)));
        match timed {
            Ok(()) => Ok(Self { stream: BufReader::new(stream), path }),
            Err(source) => Err(CtlClientError::Io { path, source }),
        }
    }

    /// Asks and waits for the answer; a refusal is an error.
    pub fn ask<Q: Question>(&mut self, question: &Q) -> Result<Q::Answer, CtlClientError> {
        let request: Request = question.clone().into();
        let mut line = serde_json::to_vec(&request).map_err(|error| self.unexpected(&error.to_string()))?;
        line.push(b'\n');
        // A server that is full answers and closes without reading: its answer tells more than the broken pipe.
        let sent = self.stream.get_mut().write_all(&line);
        let mut answer = Vec::new();
        let received = (&mut self.stream).take(MAX_ANSWER_BYTES as u64).read_until(b'\n', &mut answer);
        let failed = |source| CtlClientError::Io { path: self.path.clone(), source };
        if answer.last() != Some(&b'\n') {
            sent.map_err(failed)?;
            received.map_err(failed)?;
            return Err(failed(ErrorKind::UnexpectedEof.into()));
        }
        match self.read::<Answered>(&answer)?.answer.as_str() {
            name if name == Q::ANSWER => self.read(&answer),
            ERROR => Err(self.read::<CtlError>(&answer)?.into()),
            _ => Err(self.unexpected("an answer to another question")),
        }
    }

    fn read<T: DeserializeOwned>(&self, line: &[u8]) -> Result<T, CtlClientError> {
        serde_json::from_slice(line).map_err(|error| self.unexpected(&error.to_string()))
    }

    fn unexpected(&self, what: &str) -> CtlClientError {
        CtlClientError::Protocol { path: self.path.clone(), what: what.to_owned() }
    }
}

/// What a line answers.
#[derive(Deserialize)]
struct Answered {
    answer: String,
}
