//! What `ctl n4` tells.

use super::SeidText;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// N4 as it stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct N4Status {
    /// In order of Node ID.
    pub peers: Vec<N4PeerLine>,
    /// Every counter, in the order of the documentation.
    pub counters: Vec<N4CounterLine>,
}

/// An association.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct N4PeerLine {
    /// Node ID.
    pub node_id: String,
    /// Where its requests come from.
    pub address: SocketAddr,
    /// Since when the association stands: UTC as in RFC 3339.
    pub associated_since: String,
    /// Its Recovery Time Stamp: when it says that it started, likewise.
    pub recovery: String,
    /// Its sessions.
    pub sessions: u64,
    /// Requests of ours that it has not answered yet.
    pub outstanding: u64,
}

/// Which part of N4 counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum N4Layer {
    /// The PFCP node: messages and associations.
    Node,
    /// Sessions and reports.
    Sessions,
}

/// A counter of N4.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct N4CounterLine {
    /// Who counts.
    pub layer: N4Layer,
    /// Its label.
    pub counter: String,
    /// What it means.
    pub meaning: String,
    /// Since the process started.
    pub value: u64,
}

impl N4CounterLine {
    /// From what `each` of the counters tells.
    pub fn new(layer: N4Layer, (label, meaning, value): (&str, &str, u64)) -> Self {
        Self { layer, counter: label.into(), meaning: meaning.trim().into(), value }
    }
}

/// Which of the last requests and refusals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct N4LogQuery {
    /// Refusals only. They are kept, and numbered, by themselves.
    pub refused: bool,
    /// From the one with this number on, as the last answer's `next` said; none: the last ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The most to tell.
    pub limit: u32,
}

impl Default for N4LogQuery {
    fn default() -> Self {
        Self { refused: false, from: None, limit: 100 }
    }
}

/// Some of the last requests and refusals.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct N4Log {
    /// In order of time.
    pub entries: Vec<N4LogLine>,
    /// For the next question's `from`.
    pub next: u64,
    /// Entries that were asked for and were pushed out by later ones.
    pub missed: u64,
}

/// A message of an SMF and what became of it, or something that happened to an association.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct N4LogLine {
    /// When: UTC as in RFC 3339.
    pub time: String,
    /// The SMF's Node ID; empty: it has no association.
    pub smf: String,
    /// Where it came from.
    pub address: Option<SocketAddr>,
    /// The message's name; none: no message.
    pub message: Option<String>,
    /// UP SEID.
    pub seid: Option<SeidText>,
    /// CP SEID.
    pub cp_seid: Option<SeidText>,
    /// Cause of the answer.
    pub cause: Option<u8>,
    /// The Cause in the standard's words.
    pub cause_name: Option<String>,
    /// Offending IE.
    pub offending_ie: Option<u16>,
    /// Its name.
    pub offending_ie_name: Option<String>,
    /// Failed Rule ID, such as `PDR 5`.
    pub failed_rule: Option<String>,
    /// Why, as a sentence; empty: nothing is to be said.
    pub why: String,
}
