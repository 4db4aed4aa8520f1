//! N4: `peers` and `n4`, and what SMFs asked for lately.

use super::{CounterLine, Question};
use crate::SeidText;
use crate::table::{Page, columns};
use crate::words::{ago, counters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Show SMFs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Peers {}

impl Question for Peers {
    const NAME: &'static str = "peers";
    const SEE: &'static str = "n4.md";
    type Answer = PeerList;

    fn show(&self, PeerList { peers }: &PeerList) -> Page {
        if peers.is_empty() { Page::text("No SMF is associated.\n") } else { Page::table(peers) }
    }
}

/// Associated SMFs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PeerList {
    /// In order of Node ID.
    pub peers: Vec<PeerLine>,
}

/// An SMF.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PeerLine {
    /// Node ID.
    pub node_id: String,
    /// Where its requests come from.
    pub address: SocketAddr,
    /// Whether its last heartbeat was answered.
    pub alive: bool,
    /// Seconds since the association was set up.
    pub associated_seconds: u64,
    /// Its sessions.
    pub sessions: u64,
    /// Requests that it sent.
    pub requests: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that it sent again.
    pub repeated: u64,
    /// Our own requests that were sent again.
    pub retransmitted: u64,
}

columns!(PeerLine, |peer| {
    "NODE ID" Left peer.node_id,
    "ADDRESS" Left peer.address,
    "STATE" Left if peer.alive { "alive" } else { "silent" },
    "ASSOCIATED" Right ago(peer.associated_seconds),
    "SESSIONS" Right peer.sessions,
    "REQUESTS" Right peer.requests,
    "REFUSED" Right peer.refused,
    "REPEATED" Right peer.repeated,
    "RETRANSMITTED" Right peer.retransmitted,
});

/// Show associations and what N4 counts; or what SMFs asked for lately, and why it was refused.
#[cfg(feature = "clap")]
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct N4Command {
    /// Show the last requests of SMFs, and what became of them.
    #[arg(long)]
    log: bool,
    /// Show the last requests that were refused, and why.
    #[arg(long, conflicts_with = "log")]
    refused: bool,
    /// Go on with what comes, until interrupted; without --refused everything.
    #[arg(long)]
    follow: bool,
    /// How many of the last ones to show (up to 1024).
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(N4Log::MOST)))]
    limit: u32,
    /// Also counters that are 0.
    #[arg(long, conflicts_with_all = ["log", "refused", "follow"])]
    all: bool,
}

#[cfg(feature = "clap")]
impl N4Command {
    /// The first question of many, if what comes is to be followed.
    pub fn follow(self) -> Option<N4Log> {
        self.follow.then_some(self.query())
    }

    const fn query(self) -> N4Log {
        N4Log { refused: self.refused, from: None, limit: self.limit }
    }
}

#[cfg(feature = "clap")]
impl From<N4Command> for super::Request {
    fn from(command: N4Command) -> Self {
        let N4Command { log, refused, follow, all, .. } = command;
        if log || refused || follow { command.query().into() } else { N4 { all }.into() }
    }
}

/// What N4 counts, and the state of each association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct N4 {
    /// Counters that are 0 are shown too. They are always told.
    #[serde(skip)]
    pub all: bool,
}

impl Question for N4 {
    const NAME: &'static str = "n4";
    const SEE: &'static str = "counters.md";
    type Answer = N4Status;

    fn show(&self, told: &N4Status) -> Page {
        let mut page = if told.peers.is_empty() {
            Page::text("No SMF is associated.\n")
        } else {
            Page::table(&told.peers)
        };
        for (layer, heading) in [(N4Layer::Node, "Messages:"), (N4Layer::Sessions, "Sessions and reports:")] {
            let lines = told.counters.iter().filter(|line| line.layer == layer);
            let text = counters(lines.map(|line| &line.line), self.all);
            if !text.is_empty() {
                page.say(format!("\n{heading}\n{text}"));
            }
        }
        page
    }
}

/// N4 as it stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct N4Status {
    /// In order of Node ID.
    pub peers: Vec<N4PeerLine>,
    /// Every counter, in the order of the documentation.
    pub counters: Vec<N4CounterLine>,
}

/// An association.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum N4Layer {
    /// The PFCP node: messages and associations.
    Node,
    /// Sessions and reports.
    Sessions,
}

/// A counter of N4.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct N4CounterLine {
    /// Who counts.
    pub layer: N4Layer,
    /// What.
    #[serde(flatten)]
    pub line: CounterLine,
}

columns!(N4PeerLine, |peer| {
    "NODE ID" Left peer.node_id,
    "ADDRESS" Left peer.address,
    "ASSOCIATED SINCE" Left peer.associated_since,
    "STARTED" Left peer.recovery,
    "SESSIONS" Right peer.sessions,
    "OUTSTANDING" Right peer.outstanding,
});

/// What SMFs asked for lately and what became of it, or what of it was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct N4Log {
    /// Refusals only. They are kept, and numbered, by themselves.
    pub refused: bool,
    /// From the one with this number on, as the last answer's `next` said; none: the last ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The most to tell, at most 1,024.
    pub limit: u32,
}

impl Default for N4Log {
    fn default() -> Self {
        Self { refused: false, from: None, limit: 100 }
    }
}

impl N4Log {
    /// The most entries that are told at once.
    pub const MOST: u32 = 1024;
}

impl Question for N4Log {
    const NAME: &'static str = "n4-log";
    const SEE: &'static str = "n4.md#why-something-was-refused";
    type Answer = N4Entries;

    fn show(&self, told: &N4Entries) -> Page {
        let mut page = Page::table(&told.entries);
        if told.missed > 0 {
            page.say(format!("{} before these were pushed out by later ones.\n", told.missed));
        }
        page
    }
}

/// Some of the last requests and refusals.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct N4Entries {
    /// In order of time.
    pub entries: Vec<N4LogLine>,
    /// For the next question's `from`.
    pub next: u64,
    /// Entries that were asked for and were pushed out by later ones.
    pub missed: u64,
}

/// A message of an SMF and what became of it, or something that happened to an association.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
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

columns!(N4LogLine, |line| {
    "TIME" Left line.time,
    "SMF" Left smf(line),
    "SEID" Left line.seid,
    "MESSAGE" Left line.message.as_deref().map(|name| name.strip_suffix(" Request").unwrap_or(name)),
    "CAUSE" Right line.cause,
    "IE" Left ie(line),
    "RULE" Left line.failed_rule,
    "WHAT BECAME OF IT" Left outcome(line),
});

/// Its name, or where it is.
fn smf(line: &N4LogLine) -> String {
    match &line.address {
        Some(address) if line.smf.is_empty() => address.to_string(),
        _ => line.smf.clone(),
    }
}

fn ie(line: &N4LogLine) -> Option<String> {
    let ie = line.offending_ie?;
    Some(line.offending_ie_name.as_ref().map_or_else(|| ie.to_string(), |name| format!("{name} ({ie})")))
}

fn outcome(line: &N4LogLine) -> String {
    match (&line.cause_name, line.why.as_str()) {
        (Some(cause), "") => cause.clone(),
        (Some(cause), why) => format!("{cause}: {why}"),
        (None, why) => why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn associations_and_counters() {
        let peer = PeerLine {
            node_id: "smf.example.org".into(),
            address: ([192, 0, 2, 10], 8805).into(),
            alive: true,
            associated_seconds: 90_061,
            sessions: 5,
            requests: 12,
            refused: 1,
            repeated: 0,
            retransmitted: 0,
        };
        let counters = [(N4Layer::Node, "timeouts", 0), (N4Layer::Sessions, "requests-refused", 3)];
        let counters = counters.map(|(layer, name, value)| {
            let (counter, meaning) = (name.into(), "A meaning.".into());
            N4CounterLine { layer, line: CounterLine { counter, meaning, value, ..CounterLine::default() } }
        });
        let status = N4Status { peers: Vec::new(), counters: counters.into() };
        let both = [false, true].map(|all| N4 { all }.show(&status).to_string()).concat();
        let peers = Peers {}.show(&PeerList { peers: vec![peer] }).to_string();
        insta::assert_snapshot!(peers + &both);
    }

    #[test]
    fn requests_and_what_became_of_them() {
        let accepted = N4LogLine {
            time: "2026-11-22T13:40:16Z".into(),
            smf: "smf\x1b[2J".into(),
            message: Some("Session Establishment Request".into()),
            seid: Some(SeidText(0x2_0000_0001)),
            cause: Some(1),
            cause_name: Some("Request accepted".into()),
            ..N4LogLine::default()
        };
        let refused = N4LogLine {
            cause: Some(73),
            cause_name: Some("Rule creation/modification Failure".into()),
            offending_ie: Some(23),
            offending_ie_name: Some("SDF Filter".into()),
            failed_rule: Some("PDR 5".into()),
            why: "PDR 5 has an SDF Filter that can't be used".into(),
            ..accepted.clone()
        };
        let stranger = N4LogLine {
            time: "2026-11-22T13:40:18Z".into(),
            address: Some(([192, 0, 2, 66], 8805).into()),
            why: "its address is not in n4.peers, so it gets no answer".into(),
            ..N4LogLine::default()
        };
        let log = N4Entries { entries: vec![accepted, refused, stranger], next: 3, missed: 2 };
        insta::assert_snapshot!(N4Log::default().show(&log));
    }
}
