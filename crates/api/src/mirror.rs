//! What is said about mirrors on the control socket.

use super::SeidText;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Something to do with mirrors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MirrorRequest {
    /// Begin one.
    Add(MirrorSelection),
    /// Tell all.
    List,
    /// End one.
    Remove {
        /// Which.
        id: u32,
    },
}

/// What is to be copied where to: the packets of one session or of all.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorSelection {
    /// A `[[mirror]]` of the configuration.
    pub to: String,
    /// The session of the UE with this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ue: Option<IpAddr>,
    /// The session with this UP SEID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seid: Option<SeidText>,
    /// All sessions.
    #[serde(default)]
    pub all: bool,
    /// Flow descriptions (TS 29.212 §5.4.2), as they are written for the downlink; each describes both directions. Empty:
    /// everything.
    #[serde(default)]
    pub filters: Vec<String>,
    /// Which way.
    #[serde(default)]
    pub direction: MirrorDirection,
}

/// Which packets of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MirrorDirection {
    /// From the UE.
    Up,
    /// To the UE.
    Down,
    /// Both.
    #[default]
    Both,
}

impl MirrorDirection {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
}

/// A mirror and what it did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MirrorLine {
    /// For [`MirrorRequest::Remove`].
    pub id: u32,
    /// The target's name.
    pub to: String,
    /// What the target is.
    pub target: String,
    /// The session; none: all.
    pub seid: Option<SeidText>,
    /// As given.
    pub filters: Vec<String>,
    /// As given.
    pub direction: MirrorDirection,
    /// One in so many packets.
    pub sample: u32,
    /// Bytes of each, at most.
    pub truncate: u16,
    /// Copies made.
    pub packets: u64,
    /// Bytes of the UE's packets in them.
    pub bytes: u64,
    /// Packets that matched and were passed over by sampling.
    pub sampled_out: u64,
    /// Copies that are shorter than their packet.
    pub truncated: u64,
    /// Copies that were not made: no packet buffer was free.
    pub no_buffer: u64,
    /// Copies that were not made: no way leads to the target.
    pub no_route: u64,
    /// Copies that did not get into the file: its writer didn't keep up, the file is at its limit, or the disk failed.
    pub not_written: u64,
    /// What went wrong with the file.
    pub error: Option<String>,
}
