//! What may be asked of a running UPF?
//!
//! Questions and answers as types, about sessions, ports, drops, workers and peers: what the UPF that answers and those that ask have in common, and
//! nothing of what is inside it. On the control socket, a Unix socket, they are a line of JSON each way: a [`Request`] in, a [`Told`] out, as many as the client likes, in order. So a shell can
//! speak it as well as `millrace ctl`:
//!
//! ```text
//! $ echo '{"ask":"drops"}' | socat - UNIX-CONNECT:/run/millrace/ctl.sock
//! {"answer":"drops","drops":[{"reason":"malformed","meaning":"…","packets":3}]}
//! ```
//!
//! [`CtlClient`] asks; the side that answers is in `upf`.
//!
//! **Bounds.** A request has at most [`MAX_REQUEST_BYTES`], a page of sessions at most [`MAX_PAGE`] entries; there are
//! at most [`MAX_CONNECTIONS`] connections.
//!
//! Numbers that exceed 53 bits (SEIDs) and those that people read in hexadecimal (TEIDs) are strings such as
//! `"0x0000000200000001"`, so that `jq` and JavaScript don't round them.
#![forbid(unsafe_code)]

mod client;
mod hex;
mod protocol;
pub mod questions;
mod socket;
pub mod table;
mod words;

pub use client::{CtlClient, CtlClientError};
pub use hex::{SeidText, TeidText};
pub use protocol::{
    CtlError, ErrorCode, MAX_ANSWER_BYTES, MAX_CONNECTIONS, MAX_PAGE, MAX_REQUEST_BYTES, Named, Told,
};
pub use questions::*;
pub use socket::{default_socket, distrust};
