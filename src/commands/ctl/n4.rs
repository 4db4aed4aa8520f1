//! `ctl peers` and `ctl n4`.

use super::words::{ago, counters, or_dash};
use crate::exit::Failure;
use crate::output;
use crate::table::Side::{Left, Right};
use crate::table::Table;
use api::{Answer, CtlClient, N4Layer, N4Log, N4LogLine, N4LogQuery, N4Status, PeerLine, Request};
use std::time::Duration;

/// How often a UPF is asked for what is new.
const EVERY: Duration = Duration::from_millis(500);
/// The most entries that are asked for at once.
const MOST: u32 = 1024;

/// Arguments of `ctl n4`.
#[derive(clap::Args)]
pub struct Args {
    /// Show the last requests of SMFs, and what became of them.
    #[arg(long)]
    log: bool,
    /// Show the last requests that were refused, and why.
    #[arg(long, conflicts_with = "log")]
    refused: bool,
    /// Go on with what comes, until interrupted; without --refused everything.
    #[arg(long)]
    follow: bool,
    /// Show at most so many of the last ones (up to 1024).
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    limit: u32,
    /// Also counters that are 0.
    #[arg(long, conflicts_with_all = ["log", "refused", "follow"])]
    all: bool,
}

impl Args {
    /// What the UPF is asked.
    pub const fn request(&self) -> Request {
        if self.log || self.refused || self.follow { Request::N4Log(self.query()) } else { Request::N4 }
    }

    /// The first question of many.
    pub fn follow(&self) -> Option<N4LogQuery> {
        self.follow.then(|| self.query())
    }

    const fn query(&self) -> N4LogQuery {
        N4LogQuery { refused: self.refused, from: None, limit: self.limit }
    }

    /// Whether counters that are 0 are shown.
    pub const fn all(&self) -> bool {
        self.all
    }
}

/// Shows what comes, until somebody ends it or the reader goes away: as rows of a table, or as a line of JSON each.
pub fn follow(client: &mut CtlClient, mut query: N4LogQuery, json: bool) -> Result<(), Failure> {
    let mut first = true;
    loop {
        let Answer::N4Log(log) = client.ask(&Request::N4Log(query))? else { return Ok(()) };
        let new = if json {
            log.entries.iter().map(output::line).collect::<Result<String, _>>()?
        } else if first {
            self::log(&log)
        } else if log.entries.is_empty() && log.missed == 0 {
            String::new()
        } else {
            self::log(&log).split_once('\n').map_or_else(String::new, |(_, rows)| rows.into())
        };
        if !output::more(&new)? {
            return Ok(());
        }
        first = false;
        query = N4LogQuery { from: Some(log.next), limit: MOST, ..query };
        std::thread::sleep(EVERY);
    }
}

/// The last requests, or refusals.
pub fn log(log: &N4Log) -> String {
    let mut table = Table::new(&[
        ("TIME", Left),
        ("SMF", Left),
        ("SEID", Left),
        ("MESSAGE", Left),
        ("CAUSE", Right),
        ("IE", Left),
        ("RULE", Left),
        ("WHAT BECAME OF IT", Left),
    ]);
    for line in &log.entries {
        let ie = line.offending_ie.map(|ie| match &line.offending_ie_name {
            Some(name) => format!("{name} ({ie})"),
            None => ie.to_string(),
        });
        let message = line.message.as_deref().map(|name| name.strip_suffix(" Request").unwrap_or(name));
        table.row([
            line.time.clone(),
            smf(line),
            or_dash(line.seid.as_ref()),
            message.unwrap_or("-").into(),
            or_dash(line.cause.as_ref()),
            or_dash(ie.as_ref()),
            or_dash(line.failed_rule.as_ref()),
            outcome(line),
        ]);
    }
    let missed = match log.missed {
        0 => String::new(),
        missed => format!("{missed} before these were pushed out by later ones.\n"),
    };
    format!("{table}{missed}")
}

/// Its name, or where it is.
fn smf(line: &N4LogLine) -> String {
    match &line.address {
        Some(address) if line.smf.is_empty() => address.to_string(),
        _ => line.smf.clone(),
    }
}

fn outcome(line: &N4LogLine) -> String {
    match (&line.cause_name, line.why.as_str()) {
        (Some(cause), "") => cause.clone(),
        (Some(cause), why) => format!("{cause}: {why}"),
        (None, why) => why.into(),
    }
}

/// Associations.
pub fn peers(peers: &[PeerLine]) -> String {
    let mut table = Table::new(&[
        ("NODE ID", Left),
        ("ADDRESS", Left),
        ("STATE", Left),
        ("ASSOCIATED", Right),
        ("SESSIONS", Right),
        ("REQUESTS", Right),
        ("REFUSED", Right),
        ("REPEATED", Right),
        ("RETRANSMITTED", Right),
    ]);
    for peer in peers {
        table.row([
            peer.node_id.clone(),
            peer.address.to_string(),
            if peer.alive { "alive" } else { "silent" }.into(),
            ago(peer.associated_seconds),
            peer.sessions.to_string(),
            peer.requests.to_string(),
            peer.refused.to_string(),
            peer.repeated.to_string(),
            peer.retransmitted.to_string(),
        ]);
    }
    table.to_string()
}

/// Associations and counters.
pub fn status(status: &N4Status, all: bool) -> String {
    let mut peers = Table::new(&[
        ("NODE ID", Left),
        ("ADDRESS", Left),
        ("ASSOCIATED SINCE", Left),
        ("STARTED", Left),
        ("SESSIONS", Right),
        ("OUTSTANDING", Right),
    ]);
    for peer in &status.peers {
        peers.row([
            peer.node_id.clone(),
            peer.address.to_string(),
            peer.associated_since.clone(),
            peer.recovery.clone(),
            peer.sessions.to_string(),
            peer.outstanding.to_string(),
        ]);
    }
    let of = |layer: N4Layer, heading: &str| {
        let lines = status.counters.iter().filter(|line| line.layer == layer);
        let text = counters(lines.map(|line| (line.value, &*line.counter, &*line.meaning)), all);
        if text.is_empty() { text } else { format!("\n{heading}\n{text}") }
    };
    let peers = if status.peers.is_empty() { "No SMF is associated.\n".into() } else { peers.to_string() };
    let (node, sessions) = (of(N4Layer::Node, "Messages:"), of(N4Layer::Sessions, "Sessions and reports:"));
    format!("{peers}{node}{sessions}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{N4CounterLine, SeidText};

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
        let counters =
            counters.map(|(layer, name, value)| N4CounterLine::new(layer, (name, "A meaning.", value)));
        let status = N4Status { peers: Vec::new(), counters: counters.into() };
        let both = [false, true].map(|all| super::status(&status, all)).concat();
        insta::assert_snapshot!(peers(&[peer]) + &both);
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
        let log = N4Log { entries: vec![accepted, refused, stranger], next: 3, missed: 2 };
        insta::assert_snapshot!(super::log(&log));
    }
}
