//! What a survey shows.

use crate::calls::CallLine;
use crate::quality::{KpiLine, Quality};
use crate::reading::Totals;
use crate::survey::Lists;
use api::table::Page;
use dpi::decode::{Decoded, Value};
use dpi::track::{Flow, Summary};
use dpi::{Knowledge, Protocol, Verdict};
use packet::IpProtocol;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::net::{IpAddr, SocketAddr};

/// How much.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Volume {
    /// Flows.
    pub flows: u64,
    /// Packets.
    pub packets: u64,
    /// Octets, with IP headers.
    pub octets: u64,
}

impl Volume {
    pub(crate) fn add(&mut self, other: Self) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// How fast, with IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Throughput {
    /// Bits per second from the first packet to the last one.
    pub bits_per_second: u64,
    /// Bits in the best second.
    pub best_bits_per_second: u64,
}

/// A message that was decoded. As JSON: `at`, `kind`, and what it says.
#[derive(Clone, PartialEq, Debug)]
pub struct MessageLine {
    /// Seconds after the first packet of the capture.
    pub at: f64,
    /// What it says.
    pub decoded: Decoded,
}

impl Serialize for MessageLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry("kind", self.decoded.kind())?;
        for (name, value) in self.decoded.fields() {
            match value {
                Value::Text(text) => map.serialize_entry(name, &text)?,
                Value::Number(number) => map.serialize_entry(name, &number)?,
                Value::List(all) => map.serialize_entry(name, &all)?,
            }
        }
        map.end()
    }
}

/// What a port has counted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PortLine {
    /// The port, as it was asked for.
    pub port: String,
    /// Packets that it received.
    pub received: u64,
    /// Packets that arrived, and were lost since nobody took them in time.
    pub missed: u64,
    /// Packets that came wrong, or too long.
    pub errors: u64,
}

/// A protocol's share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProtocolLine {
    /// Its name, or "unknown".
    pub protocol: &'static str,
    /// What it is for.
    pub category: &'static str,
    /// How much.
    #[serde(flatten)]
    pub volume: Volume,
    /// Of all octets, 0 to 1.
    pub share: f64,
}

/// An application's share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ApplicationLine {
    /// Its name, or "unknown".
    pub application: String,
    /// What it is for.
    pub category: &'static str,
    /// How much.
    #[serde(flatten)]
    pub volume: Volume,
    /// Of all octets, 0 to 1.
    pub share: f64,
    /// How fast; of the best second, octets count from the verdict on.
    #[serde(flatten)]
    pub throughput: Throughput,
}

/// A subscriber's share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SubscriberLine {
    /// Its address.
    pub subscriber: IpAddr,
    /// Flows.
    pub flows: u64,
    /// Packets from it.
    pub packets_up: u64,
    /// Packets to it.
    pub packets_down: u64,
    /// Octets from it.
    pub octets_up: u64,
    /// Octets to it.
    pub octets_down: u64,
    /// The application that most of its octets belong to.
    pub most: Option<String>,
    /// How fast.
    #[serde(flatten)]
    pub throughput: Throughput,
}

/// A server's name.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NameLine {
    /// As it was written.
    pub name: String,
    /// How much.
    #[serde(flatten)]
    pub volume: Volume,
}

/// A flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowLine {
    /// Its number, in the order of first packets; `--explain` takes it.
    pub flow: u64,
    /// Seconds after the first packet of the capture.
    pub began: f64,
    /// Seconds from its first packet to its last one.
    pub lasted: f64,
    /// What carries it.
    pub transport: String,
    /// Who began.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// The tunnel that told its subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u32>,
    /// What it speaks.
    pub protocol: &'static str,
    /// What carries that, if it began as something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<&'static str>,
    /// What it is used for.
    pub application: Option<String>,
    /// The application's category, or else the protocol's.
    pub category: &'static str,
    /// The server's name, as it was written.
    pub host: String,
    /// What the client says of itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// How sure this is.
    pub confidence: &'static str,
    /// Why this protocol.
    pub reason: &'static str,
    /// Why this application.
    pub evidence: &'static str,
    /// Packets from the client.
    pub packets_up: u64,
    /// Packets to the client.
    pub packets_down: u64,
    /// Octets from the client.
    pub octets_up: u64,
    /// Octets to the client.
    pub octets_down: u64,
    /// How it fares.
    #[serde(flatten)]
    pub quality: Option<Quality>,
    /// What was decoded, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageLine>,
}

fn transport(protocol: IpProtocol) -> String {
    match protocol {
        IpProtocol::TCP => "tcp".to_owned(),
        IpProtocol::UDP => "udp".to_owned(),
        IpProtocol::SCTP => "sctp".to_owned(),
        IpProtocol(number) => number.to_string(),
    }
}

impl FlowLine {
    pub(crate) fn new(
        flow: &Flow,
        verdict: &Verdict,
        summary: &Summary,
        host: String,
        agent: String,
        knowledge: &Knowledge,
    ) -> Self {
        let ends = &flow.ends;
        let subscriber = SocketAddr::new(ends.subscriber, ends.subscriber_port);
        let peer = SocketAddr::new(ends.peer, ends.peer_port);
        let ([up, down], [octets_up, octets_down]) = (summary.packets, summary.octets);
        let is_client = summary.subscriber_is_client;
        let turn = |pair: (u64, u64)| if is_client { pair } else { (pair.1, pair.0) };
        let (client, server) = if is_client { (subscriber, peer) } else { (peer, subscriber) };
        let (packets_up, packets_down) = turn((up, down));
        let (octets_up, octets_down) = turn((octets_up, octets_down));
        let application = verdict.application.map(|id| knowledge.bundle.application(id));
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        Self {
            flow: 0,
            began: seconds(summary.first.0),
            lasted: seconds(summary.last.0.saturating_sub(summary.first.0)),
            transport: transport(ends.protocol),
            client,
            server,
            tunnel: flow.tunnel,
            protocol: verdict.protocol.map_or("unknown", Protocol::name),
            over: verdict.over.map(Protocol::name),
            application: application.map(|it| it.name.to_string()),
            category: application
                .map(|it| it.category)
                .or(verdict.protocol.map(Protocol::category))
                .map_or("-", |it| it.name()),
            host,
            agent,
            confidence: verdict.reason.confidence().name(),
            reason: verdict.reason.text(),
            evidence: verdict.evidence.text(),
            packets_up,
            packets_down,
            octets_up,
            octets_down,
            quality: None,
            messages: Vec::new(),
        }
    }

    fn label(&self) -> String {
        match self.over {
            Some(over) => format!("{} in {over}", self.protocol),
            None => self.protocol.to_owned(),
        }
    }
}

/// In Mbit/s.
fn megabits(bits: u64) -> String {
    format!("{:.2}", bits as f64 / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

api::columns!(ProtocolLine, |it| {
    "PROTOCOL" Left it.protocol,
    "CATEGORY" Left it.category,
    "FLOWS" Right it.volume.flows,
    "PACKETS" Right it.volume.packets,
    "OCTETS" Right it.volume.octets,
    "SHARE" Right percent(it.share),
});

api::columns!(ApplicationLine, |it| {
    "APPLICATION" Left it.application,
    "CATEGORY" Left it.category,
    "FLOWS" Right it.volume.flows,
    "PACKETS" Right it.volume.packets,
    "OCTETS" Right it.volume.octets,
    "SHARE" Right percent(it.share),
    "MBIT/S" Right megabits(it.throughput.bits_per_second),
    "BEST" Right megabits(it.throughput.best_bits_per_second),
});

api::columns!(SubscriberLine, |it| {
    "SUBSCRIBER" Left it.subscriber,
    "FLOWS" Right it.flows,
    "PACKETS UP" Right it.packets_up,
    "DOWN" Right it.packets_down,
    "OCTETS UP" Right it.octets_up,
    "DOWN" Right it.octets_down,
    "MBIT/S" Right megabits(it.throughput.bits_per_second),
    "BEST" Right megabits(it.throughput.best_bits_per_second),
    "MOST OF IT" Left it.most,
});

api::columns!(NameLine, |it| {
    "NAME" Left it.name,
    "FLOWS" Right it.volume.flows,
    "PACKETS" Right it.volume.packets,
    "OCTETS" Right it.volume.octets,
});

api::columns!(FlowLine, |it| {
    "FLOW" Right it.flow,
    "BEGAN" Right format!("{:.1}", it.began),
    "OVER" Left it.transport,
    "CLIENT" Left it.client,
    "SERVER" Left it.server,
    "PROTOCOL" Left it.label(),
    "APPLICATION" Left it.application,
    "PACKETS" Right it.packets_up + it.packets_down,
    "OCTETS" Right it.octets_up + it.octets_down,
    "SURE" Left it.confidence,
    "NAME" Left it.host,
    "FARES" Left it.quality.as_ref().map(Quality::words).filter(|it| !it.is_empty()),
});

/// A message, for people.
struct Said<'l> {
    flow: u64,
    message: &'l MessageLine,
}

api::columns!(Said<'_>, |it| {
    "AT" Right format!("{:.3}", it.message.at),
    "FLOW" Right it.flow,
    "MESSAGE" Left it.message.decoded.to_string(),
});

/// A survey's result. As JSON, all of it; for people, what fits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Version of the signatures.
    pub signatures: String,
    /// What was read.
    pub totals: Totals,
    /// All flows.
    pub total: Volume,
    /// By protocol.
    pub protocols: Vec<ProtocolLine>,
    /// By application.
    pub applications: Vec<ApplicationLine>,
    /// By subscriber.
    pub subscribers: Vec<SubscriberLine>,
    /// By the server's name.
    pub names: Vec<NameLine>,
    /// How flows fare.
    pub kpis: Vec<KpiLine>,
    /// Calls, by when they began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallLine>,
    /// Each flow, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowLine>,
    /// What is listed one by one.
    #[serde(skip)]
    pub lists: Lists,
    /// Of a live port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortLine>,
    /// Lines that were left out, since there were too many.
    pub beyond: u64,
}

impl Report {
    /// For people: the largest `top` of each kind, or each flow if they were listed.
    pub fn page(&self, top: usize) -> Page {
        let Totals { frames, packets, without_packet, unreadable, untracked, nanos, .. } = self.totals;
        let mut page = Page::text(format!(
            "{frames} frames in {:.1} s: {packets} packets of {} flows of {} subscribers; signatures {}\n",
            nanos as f64 / 1e9,
            self.total.flows,
            self.subscribers.len(),
            self.signatures,
        ));
        for (count, what) in [
            (without_packet, "frames have no IP packet inside"),
            (unreadable, "frames are of a link that can't be read"),
            (untracked, "packets belong to no flow, since there were too many flows"),
            (self.beyond, "lines were left out, since there were too many; the sums hold"),
        ] {
            if count > 0 {
                page.say(format!("{count} {what}\n"));
            }
        }
        if let Some(PortLine { port, received, missed, errors }) = &self.port {
            page.say(format!(
                "port {port}: {received} packets received, {missed} missed, {errors} with errors\n"
            ));
        }
        if self.lists.messages {
            page.part(&self.messages());
        } else if self.lists.flows {
            page.part(&self.flows);
        } else {
            page.part(first(&self.protocols, top));
            page.part(first(&self.applications, top));
            page.part(first(&self.subscribers, top));
            page.part(first(&self.names, top));
            page.part(first(&self.calls, top));
            page.part(&self.kpis);
        }
        page
    }

    /// Messages of all flows, in their order.
    fn messages(&self) -> Vec<Said<'_>> {
        let of = |it| -> (u64, &Vec<MessageLine>) {
            let it: &FlowLine = it;
            (it.flow, &it.messages)
        };
        let all = self.flows.iter().map(of);
        let mut all: Vec<_> = all
            .flat_map(|(flow, messages)| messages.iter().map(move |message| Said { flow, message }))
            .collect();
        all.sort_by(|a, b| a.message.at.total_cmp(&b.message.at).then(a.flow.cmp(&b.flow)));
        all
    }

    /// The first `top` lines of each kind, without flows.
    #[must_use]
    pub fn cut(mut self, top: usize) -> Self {
        self.protocols.truncate(top);
        self.applications.truncate(top);
        self.subscribers.truncate(top);
        self.names.truncate(top);
        self.calls.truncate(top);
        self
    }

    /// Messages or flows as CSV (RFC 4180), with a header; without these, protocols.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let mut line = |fields: &[String]| {
            let quoted: Vec<_> = fields.iter().map(|field| quote(field)).collect();
            text.push_str(&quoted.join(","));
            text.push_str("\r\n");
        };
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        if self.lists.messages {
            line(&words(&["at", "flow", "kind", "message"]));
            for Said { flow, message } in self.messages() {
                let MessageLine { at, decoded } = message;
                line(&[format!("{at:.6}"), flow.to_string(), decoded.kind().to_owned(), decoded.to_string()]);
            }
            return text;
        }
        if !self.lists.flows {
            line(&words(&["protocol", "category", "flows", "packets", "octets"]));
            for it in &self.protocols {
                let Volume { flows, packets, octets } = it.volume;
                line(&[
                    it.protocol.to_owned(),
                    it.category.to_owned(),
                    flows.to_string(),
                    packets.to_string(),
                    octets.to_string(),
                ]);
            }
            return text;
        }
        line(&words(&[
            "flow",
            "began",
            "lasted",
            "transport",
            "client",
            "client_port",
            "server",
            "server_port",
            "protocol",
            "over",
            "application",
            "category",
            "host",
            "confidence",
            "packets_up",
            "packets_down",
            "octets_up",
            "octets_down",
            "best_bits_up",
            "best_bits_down",
            "handshake_ms",
            "client_ms",
            "server_ms",
            "retransmissions",
            "out_of_order",
            "zero_windows",
            "codec",
            "lost_percent",
            "jitter_ms",
            "mos",
            "video_bits_per_second",
            "video_resolution",
        ]));
        for it in &self.flows {
            let mut fields = vec![
                it.flow.to_string(),
                format!("{:.3}", it.began),
                format!("{:.3}", it.lasted),
                it.transport.clone(),
                it.client.ip().to_string(),
                it.client.port().to_string(),
                it.server.ip().to_string(),
                it.server.port().to_string(),
                it.protocol.to_owned(),
                it.over.unwrap_or_default().to_owned(),
                it.application.clone().unwrap_or_default(),
                it.category.to_owned(),
                it.host.clone(),
                it.confidence.to_owned(),
                it.packets_up.to_string(),
                it.packets_down.to_string(),
                it.octets_up.to_string(),
                it.octets_down.to_string(),
            ];
            fields.extend(it.quality.as_ref().map_or_else(|| [const { String::new() }; 14], measured));
            line(&fields);
        }
        text
    }
}

/// The columns of CSV for what is measured; of several media streams, the one with the most packets.
fn measured(quality: &Quality) -> [String; 14] {
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map(|it| it.to_string()).unwrap_or_default()
    }
    let tcp = quality.tcp.as_ref();
    let media = quality.media.iter().max_by_key(|it| it.packets);
    let video = quality.video.as_ref();
    [
        quality.best_bits_up.to_string(),
        quality.best_bits_down.to_string(),
        text(tcp.and_then(|it| it.handshake_ms)),
        text(tcp.and_then(|it| it.client_ms)),
        text(tcp.and_then(|it| it.server_ms)),
        text(tcp.map(|it| it.retransmissions_up + it.retransmissions_down)),
        text(tcp.map(|it| it.out_of_order_up + it.out_of_order_down)),
        text(tcp.map(|it| it.zero_windows_up + it.zero_windows_down)),
        text(media.and_then(|it| it.codec)),
        text(media.map(|it| it.lost_percent)),
        text(media.and_then(|it| it.jitter_ms)),
        text(media.and_then(|it| it.mos)),
        text(video.map(|it| it.bits_per_second)),
        text(video.map(|it| it.resolution)),
    ]
}

/// A field of CSV. What a spreadsheet would take for a formula is made a text: names come from strangers.
fn quote(field: &str) -> String {
    let steers = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = if steers { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\r', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

fn first<T>(lines: &[T], top: usize) -> &[T] {
    lines.get(..top).unwrap_or(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_would_break_its_line_or_steer_a_spreadsheet_is_quoted() {
        assert_eq!(quote("a,b"), "\"a,b\"");
        assert_eq!(quote("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(quote("=1+1"), "'=1+1");
        assert_eq!(quote("plain.example"), "plain.example");
    }
}
