//! What may be asked of a running UPF?
//!
//! Questions and answers as types, about sessions, ports, drops, workers and peers: what the UPF that answers and those that ask have in common, and
//! nothing of what is inside it. On the control socket, a Unix socket, they are a line of JSON each way: a [`Request`] in, an [`Answer`] out, as many as the client likes, in order. So a shell can
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
mod flows;
mod mirror;
mod n4;
mod nat;
mod network;
mod offload;
mod protocol;
mod qos;
mod scale;
mod sessions;
mod socket;

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
pub use sessions::*;
pub use socket::{default_socket, distrust};
