//! N4 as the control socket tells of it.

use super::{Backend, Upf, convert};
use api::{
    Answers, CtlError, N4, N4CounterLine, N4Entries, N4Layer, N4Log, N4LogLine, N4PeerLine, N4Status,
    PeerLine, PeerList, Peers, PfdLine, PfdList, Pfds,
};
use counters::Count;
use n4::{Entry, MAX_ENTRIES};
use pfcp::calendar::utc;
use session::pfd::PfdRule;
use std::sync::Arc;
use tables::Nanos;

impl Answers<Peers> for Backend {
    fn answer(&self, _: Peers) -> Result<PeerList, CtlError> {
        self.ask(|upf| Ok(PeerList { peers: peers(upf) }))
    }
}

fn peers(upf: &Upf) -> Vec<PeerLine> {
    let now = upf.clock.now();
    let mut lines: Vec<_> = upf
        .n4
        .node()
        .peers()
        .map(|peer| PeerLine {
            node_id: peer.node_id.to_string(),
            address: peer.address,
            alive: peer.alive,
            associated_seconds: now.since(peer.since) / Nanos::SECOND,
            sessions: upf.n4.sessions_of(peer.id) as u64,
            requests: peer.requests,
            refused: upf.n4.refused_of(peer.id),
            repeated: peer.repeated,
            retransmitted: peer.retransmitted,
        })
        .collect();
    lines.sort_by(|a, b| a.node_id.cmp(&b.node_id));
    lines
}

impl Answers<Pfds> for Backend {
    fn answer(&self, question: Pfds) -> Result<PfdList, CtlError> {
        // What there is never changes, so the thread of whoever asks reads it.
        let (pfds, wall) = self.ask(|upf| Ok((Arc::clone(upf.n4.pfds()), upf.n4.wall())))?;
        let is_asked =
            |name: &[u8]| question.application.as_ref().is_none_or(|asked| asked.as_bytes() == name);
        let asked = pfds.iter().filter(|(name, _)| is_asked(name));
        let lines = asked.flat_map(|(name, described)| {
            described.rules.iter().map(move |rule| {
                let (kind, protocol, text) = match rule {
                    PfdRule::Flow { text, .. } => ("flow", None, text.to_string()),
                    PfdRule::Url(text) => ("url", None, text.to_string()),
                    PfdRule::Domain { name, protocol } => {
                        ("domain", protocol.map(|protocol| protocol.name().into()), name.to_string())
                    }
                    PfdRule::Custom(content) => ("custom", None, content.escape_ascii().to_string()),
                };
                PfdLine {
                    application: String::from_utf8_lossy(name).into_owned(),
                    smf: described.by.to_string(),
                    since: utc(wall.ntp(described.at).0),
                    kind: kind.into(),
                    protocol,
                    text,
                }
            })
        });
        Ok(PfdList { pfds: lines.collect() })
    }
}

impl Answers<N4> for Backend {
    fn answer(&self, _: N4) -> Result<N4Status, CtlError> {
        self.ask(|upf| Ok(status(upf)))
    }
}

fn status(upf: &Upf) -> N4Status {
    let (node, wall) = (upf.n4.node(), upf.n4.wall());
    let line = |peer: &pfcp::node::Peer| N4PeerLine {
        node_id: peer.node_id.to_string(),
        address: peer.address,
        associated_since: utc(wall.ntp(peer.since).0),
        recovery: utc(peer.recovery.0),
        sessions: upf.n4.sessions_of(peer.id) as u64,
        outstanding: node.outstanding_to(peer.id) as u64,
    };
    let mut peers: Vec<_> = node.peers().map(line).collect();
    peers.sort_by(|a, b| a.node_id.cmp(&b.node_id));
    let of = |layer, lines: Vec<counters::Line>| {
        lines.into_iter().map(move |line| N4CounterLine { layer, line: convert::counter(&line) })
    };
    let of_node = of(N4Layer::Node, node.counters().lines());
    let of_n4 = of(N4Layer::Sessions, upf.n4.counters().lines());
    N4Status { peers, counters: of_node.chain(of_n4).collect() }
}

impl Answers<N4Log> for Backend {
    fn answer(&self, query: N4Log) -> Result<N4Entries, CtlError> {
        self.ask(move |upf| Ok(log(upf, query)))
    }
}

fn log(upf: &Upf, query: N4Log) -> N4Entries {
    let wall = upf.n4.wall();
    let excerpt = upf.n4.excerpt(query.refused, query.from, (query.limit as usize).min(MAX_ENTRIES));
    let line = |entry: Entry| N4LogLine {
        time: utc(wall.ntp(entry.at).0),
        smf: entry.smf.to_string(),
        address: entry.address,
        message: entry.message.map(|message| message.to_string()),
        seid: entry.seid.map(convert::seid),
        cp_seid: entry.cp_seid.map(convert::seid),
        cause: entry.cause.map(|cause| cause.0),
        cause_name: entry.cause.map(|cause| cause.to_string()),
        offending_ie: entry.offending_ie,
        offending_ie_name: entry.offending_ie.and_then(pfcp::ie_type::name).map(Into::into),
        failed_rule: entry.failed_rule.map(|rule| rule.to_string()),
        why: entry.why.to_string(),
    };
    let (next, missed) = (excerpt.next, excerpt.missed);
    N4Entries { entries: excerpt.entries.into_iter().map(line).collect(), next, missed }
}
