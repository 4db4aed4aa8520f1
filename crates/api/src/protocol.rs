//! What goes over the wire: lines of JSON, and how long they may be.

use crate::Question;
use serde::{Deserialize, Serialize};

/// The longest request line in bytes, its newline included.
pub const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// The longest answer line in bytes that a client takes.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// The most sessions in one page.
pub const MAX_PAGE: u32 = 10_000;
/// The most connections at once: a room full of dashboards. Each has a thread.
pub const MAX_CONNECTIONS: usize = 64;

/// Why a question has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CtlError {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

impl CtlError {
    /// An error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Kinds of [`CtlError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The line is not a request.
    BadRequest,
    /// The line is longer than [`MAX_REQUEST_BYTES`].
    TooLong,
    /// There are [`MAX_CONNECTIONS`] already.
    Busy,
    /// The connection took too long over a request.
    TimedOut,
    /// No such session.
    NotFound,
    /// A worker did not answer in time.
    Unavailable,
    /// It was tried, and did not work; the message says why.
    Failed,
}

/// An answer with its name, as it goes over the wire.
#[derive(Debug, Serialize)]
pub struct Named<'a, A> {
    answer: &'static str,
    #[serde(flatten)]
    told: &'a A,
}

impl<'a, A> Named<'a, A> {
    /// An answer to a question of this kind.
    pub const fn new<Q: Question<Answer = A>>(told: &'a A) -> Self {
        Self { answer: Q::ANSWER, told }
    }
}

/// What an answer that is none is called.
pub(crate) const ERROR: &str = "error";

/// A line that answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told(Vec<u8>);

impl Told {
    /// An answer to a question of this kind.
    pub fn new<Q: Question>(answer: &Q::Answer) -> Result<Self, CtlError> {
        let failed = |error: serde_json::Error| CtlError::new(ErrorCode::Unavailable, error.to_string());
        serde_json::to_vec(&Named::new::<Q>(answer)).map(Self::ended).map_err(failed)
    }

    /// There is no answer, and why.
    pub fn refused(error: &CtlError) -> Self {
        // A code and a text can always be written.
        Self::ended(serde_json::to_vec(&Named { answer: ERROR, told: error }).unwrap_or_default())
    }

    fn ended(mut line: Vec<u8>) -> Self {
        line.push(b'\n');
        Self(line)
    }

    /// The line, with its end.
    pub fn line(&self) -> &[u8] {
        &self.0
    }
}
