//! The log of flows: which ended, which go on, which have carried much, as lines of JSON in a [journal](super::journal).

use super::journal::{Journal, Lines, line};
use super::labels::{Label, Names};
use super::view::View;
use super::{Backend, Upf, convert};
use api::{Answers, CtlError, ErrorCode, FlowCounterList, FlowMarks, Flows, SeidText};
use config::FlowLogSection;
use counters::Count;
use datapath::command::Command;
use datapath::export::{FlowRecord, Marks, Policy, Told};
use n4::WallClock;
use pfcp::calendar::utc_millis;
use serde::Serialize;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tables::Nanos;

/// Batches of records that wait to be written, at most: a quarter of a million lines.
const QUEUE: usize = 1 << 10;
/// A shorter active timeout is taken as this.
const LEAST_ACTIVE: Duration = Duration::from_secs(1);

/// What each of so many workers is told; `None`: nothing is to be told of flows.
pub(super) fn policy(section: &FlowLogSection, workers: usize) -> Option<Policy> {
    section.file.as_ref()?;
    let active = section.active_timeout;
    let active = if active.is_zero() { active } else { active.max(LEAST_ACTIVE) };
    Some(Policy {
        sample: section.sample,
        per_second: section.records_per_second.div_ceil(workers.max(1) as u32),
        active: active.as_nanos().min(u128::from(u64::MAX)) as u64,
        marks: Marks {
            bytes: section.watermark_bytes.unwrap_or(Marks::NONE.bytes),
            packets: section.watermark_packets.unwrap_or(Marks::NONE.packets),
        },
    })
}

/// A record, as it is written.
#[derive(Serialize)]
struct Line {
    event: &'static str,
    /// flowEndReason (IPFIX information element 136).
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// What was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    watermark: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    seid: SeidText,
    pdr: u16,
    direction: &'static str,
    protocol: u8,
    source: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_port: Option<u16>,
    destination: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    qfi: Option<u8>,
    /// applicationName (IPFIX information element 96).
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<String>,
    /// What is known, of flows that are looked into.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    /// What that rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict_by: Option<&'static str>,
    packets: u64,
    bytes: u64,
    first: String,
    last: String,
}

/// The lines that records make. An entry has the system's clock beside it, as it was when control heard of the records, and the names of
/// applications.
pub(super) struct FlowLines;

/// See the module's documentation.
pub(super) type FlowLog = Journal<FlowLines>;

/// Opens the log.
pub(super) fn open(path: &Path, max_bytes: u64) -> std::io::Result<FlowLog> {
    let limit = (max_bytes > 0).then_some(max_bytes);
    Journal::open("flow-log", path, limit, QUEUE, FlowLines)
}

impl FlowLines {
    fn line(wall: WallClock, names: &Names, record: &FlowRecord) -> Line {
        let (event, reason, watermark, at) = match record.told {
            Told::Ended(end) => ("flow-ended", Some(end.label()), None, None),
            Told::Active => ("flow-active", Some("active-timeout"), None, None),
            Told::Bytes(at) => ("flow-watermark", None, Some("bytes"), Some(at)),
            Told::Packets(at) => ("flow-watermark", None, Some("packets"), Some(at.into())),
        };
        let label = record.finding.map(|finding| Label::of(finding, names));
        let verdict = |label: Label<'_>| match label {
            Label { open: true, .. } => "open",
            Label { application: Some(_), .. } => "known",
            Label { .. } => "unknown",
        };
        let when = |at: Nanos| utc_millis(wall.since_1970(at));
        let tuple = &record.tuple;
        Line {
            event,
            reason,
            watermark,
            at,
            seid: convert::seid(record.seid),
            pdr: record.pdr.0,
            direction: if record.uplink { "uplink" } else { "downlink" },
            protocol: tuple.protocol.0,
            source: tuple.source,
            source_port: tuple.ports.map(|(source, _)| source),
            destination: tuple.destination,
            destination_port: tuple.ports.map(|(_, destination)| destination),
            qfi: tuple.qfi.map(packet::Qfi::get),
            application: label.and_then(|label| label.application.map(Into::into)),
            verdict: label.map(verdict),
            verdict_by: label.and_then(|label| label.by.map(|(by, _)| by)),
            packets: record.packets,
            bytes: record.bytes,
            first: when(record.first),
            last: when(record.last),
        }
    }
}

impl Lines for FlowLines {
    type Entry = (WallClock, Names, Box<[FlowRecord]>);

    fn count((_, _, records): &Self::Entry) -> u64 {
        records.len() as u64
    }

    fn write(&self, time: SystemTime, (wall, names, records): &Self::Entry, text: &mut Vec<u8>) {
        for record in records {
            line(time, Self::line(*wall, names, record), text);
        }
    }
}

impl Answers<Flows> for Backend {
    fn answer(&self, _: Flows) -> Result<FlowCounterList, CtlError> {
        Ok(counters(&self.view))
    }
}

impl Answers<FlowMarks> for Backend {
    fn answer(&self, request: FlowMarks) -> Result<FlowCounterList, CtlError> {
        self.ask(move |upf| mark(upf, request))?;
        // What arrives after the answer is counted against them.
        self.settle()?;
        Ok(counters(&self.view))
    }
}

counters::counters! {
    /// What became of the flow log's lines.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct FlowLogCounters {
        /// Lines written to the flow log.
        pub written: u64 = "log-lines", Counter;
        /// Lines not written: the disk is full, or too slow.
        pub lost: u64 = "log-lines-lost", Counter;
    }
}

impl FlowLogCounters {
    pub(super) fn of(log: &FlowLog) -> Self {
        Self { written: log.written(), lost: log.lost() }
    }
}

/// What became of flows, and of what was told of them.
fn counters(view: &View) -> FlowCounterList {
    let mut lines = view.counters().flows.lines();
    if let Some(log) = view.control().flow_log {
        lines.extend(log.lines());
    }
    FlowCounterList { flows: lines.iter().map(convert::counter).collect() }
}

/// Sets other watermarks.
fn mark(upf: &mut Upf, request: FlowMarks) -> Result<(), CtlError> {
    if upf.flow_log.is_none() {
        let message = "nothing is told of flows: there is no flow log (flow-log.file)";
        return Err(CtlError::new(ErrorCode::BadRequest, message));
    }
    let bytes = request.bytes.unwrap_or(Marks::NONE.bytes);
    let packets = request.packets.unwrap_or(Marks::NONE.packets);
    let within = (1..=Marks::NONE.bytes).contains(&bytes) && (1..=Marks::NONE.packets).contains(&packets);
    if !within {
        let Marks { bytes, packets } = Marks::NONE;
        let message = format!("a watermark is from 1 to {bytes} bytes or {packets} packets");
        return Err(CtlError::new(ErrorCode::BadRequest, message));
    }
    upf.engine.broadcast(|| Command::FlowMarks(Marks { bytes, packets }));
    upf.engine.flush();
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use datapath::export::{End, Tuple};
    use datapath::inspect::{Finding, Why};
    use packet::{IpProtocol, Qfi};
    use pfcp::{PdrId, Seid};
    use session::applications::Applications;

    fn record(told: Told) -> FlowRecord {
        let tuple = Tuple {
            source: [10, 45, 0, 1].into(),
            destination: [8, 8, 8, 8].into(),
            ports: Some((4000, 53)),
            protocol: IpProtocol::UDP,
            qfi: Some(Qfi::from_wire(9)),
        };
        let (first, last) = (Nanos(2 * Nanos::SECOND), Nanos(3 * Nanos::SECOND));
        FlowRecord {
            told,
            tuple,
            seid: Seid(0x2a),
            pdr: PdrId(7),
            uplink: true,
            packets: 3,
            bytes: 300,
            first,
            last,
            finding: None,
        }
    }

    #[test]
    fn a_record_is_a_line() {
        let wall = WallClock::new(Nanos(0), Duration::from_secs(1_000_000_000));
        let told = [Told::Ended(End::IdleTimeout), Told::Bytes(1 << 20)];
        let mut text = Vec::new();
        FlowLines.write(
            SystemTime::UNIX_EPOCH,
            &(wall, Names::default(), told.map(record).into()),
            &mut text,
        );
        let text = String::from_utf8(text).unwrap();
        let rest = r#""seid":"0x000000000000002a","pdr":7,"direction":"uplink","protocol":17,"source":"10.45.0.1","source_port":4000,"destination":"8.8.8.8","destination_port":53,"qfi":9,"packets":3,"bytes":300,"first":"2001-09-09T01:46:42.000Z","last":"2001-09-09T01:46:43.000Z"}"#;
        let ended = r#"{"time":"1970-01-01T00:00:00.000Z","event":"flow-ended","reason":"idle-timeout","#;
        let mark = r#"{"time":"1970-01-01T00:00:00.000Z","event":"flow-watermark","watermark":"bytes","at":1048576,"#;
        assert_eq!(text, format!("{ended}{rest}\n{mark}{rest}\n"));
        assert_eq!(FlowLines::count(&(wall, Names::default(), told.map(record).into())), 2);
    }

    #[test]
    fn a_line_says_what_is_known_of_the_application() {
        let wall = WallClock::new(Nanos(0), Duration::ZERO);
        let (mut applications, mut names) = (Applications::default(), Names::default());
        let video = applications.number(b"video");
        names.learn(&applications);
        let said = |finding| {
            let record = FlowRecord { finding, ..record(Told::Active) };
            let line = serde_json::to_value(FlowLines::line(wall, &names, &record)).unwrap();
            ["application", "verdict", "verdict_by"]
                .map(|key| line.get(key).and_then(|it| it.as_str()).map(str::to_owned))
        };
        let finding = |application, open| Some(Finding { application, open, why: Why(0) });
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(said(None), [None, None, None]);
        assert_eq!(said(finding(None, true)), [None, text("open"), None]);
        assert_eq!(said(finding(None, false)), [None, text("unknown"), None]);
        let by = text("the name of the server in a message");
        assert_eq!(said(finding(Some(video), true)), [text("video"), text("open"), by.clone()]);
        assert_eq!(said(finding(Some(video), false)), [text("video"), text("known"), by]);
    }

    #[test]
    fn without_a_file_nothing_is_told_and_workers_share_the_rate() {
        assert_eq!(policy(&FlowLogSection::default(), 1), None);
        let section = FlowLogSection {
            file: Some("/var/log/flows".into()),
            active_timeout: Duration::from_millis(1),
            watermark_packets: Some(5),
            records_per_second: 10,
            ..FlowLogSection::default()
        };
        let policy = policy(&section, 3).unwrap();
        assert_eq!((policy.per_second, policy.active), (4, Nanos::SECOND));
        assert_eq!(policy.marks, Marks { packets: 5, ..Marks::NONE });
    }
}
