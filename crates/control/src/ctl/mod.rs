//! What is this running UPF doing?
//!
//! A Unix socket on which a running UPF answers questions: its sessions, ports, drops, workers and peers. The protocol is a
//! line of JSON each way: a [`Request`] in, an [`Answer`] out, as many as the client likes, in order. So a shell can
//! speak it as well as `millrace ctl`:
//!
//! ```text
//! $ echo '{"ask":"drops"}' | socat - UNIX-CONNECT:/run/millrace/ctl.sock
//! {"answer":"drops","drops":[{"reason":"malformed","meaning":"…","packets":3}]}
//! ```
//!
//! [`CtlServer`] owns the socket, with a thread of its own and one per connection; what it tells comes from a
//! [`CtlBackend`], which the owner of the sessions implements. [`CtlClient`] is the other side.
//!
//! **Who may ask.** The socket file belongs to the user that runs the UPF and has mode 0600: whoever can open it may
//! ask. There is no other authentication, and the socket is not for the network.
//!
//! **Bounds.** A request has at most [`MAX_REQUEST_BYTES`], a page of sessions at most [`MAX_PAGE`] entries; there are
//! at most [`MAX_CONNECTIONS`] connections, and one that takes longer than its time over a request or an answer
//! is closed. None of it touches the packet path: a backend asks workers by message.
//!
//! Numbers that exceed 53 bits (SEIDs) and those that people read in hexadecimal (TEIDs) are strings such as
//! `"0x0000000200000001"`, so that `jq` and JavaScript don't round them.

mod client;
pub(crate) mod directory;
mod flows;
mod mirror;
mod n4;
mod nat;
mod network;
mod offload;
mod protocol;
mod qos;
mod scale;
mod server;
mod sessions;

pub use client::{CtlClient, CtlClientError};
pub use flows::FlowMarksRequest;
pub use mirror::{MirrorDirection, MirrorLine, MirrorRequest, MirrorSelection};
pub use n4::{N4CounterLine, N4Layer, N4Log, N4LogLine, N4LogQuery, N4PeerLine, N4Status};
pub use nat::{NatPoolLine, NatStatus};
pub use network::{GnbLine, NeighbourLine, PoolLine, RouteLine};
pub use offload::*;
pub use protocol::*;
pub use qos::{ClassLine, QosReport, ReceiveLine};
pub use scale::{ScaleRequest, ScaleStatus};
pub use server::{CtlBackend, CtlBindError, CtlServer, Timeouts};
pub use sessions::*;

#[cfg(test)]
mod tests;
