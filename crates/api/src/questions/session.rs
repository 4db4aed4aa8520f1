//! All about one session.

use super::{DropLine, Question, SessionLine};
use crate::table::{Cell, Page, columns};
use crate::words::rate;
use crate::{SeidText, TeidText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::net::IpAddr;

/// Show all about a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(required = true, multiple = false))]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Its UP SEID, as `sessions` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seid: Option<SeidText>,
    /// The one of the UE with this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ADDRESS"))]
    pub ue: Option<IpAddr>,
    /// The one with this tunnel of the UPF.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub teid: Option<TeidText>,
    /// The one of this user: IMSI, MSISDN, NAI, …
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub user: Option<String>,
}

impl Question for Session {
    const NAME: &'static str = "session";
    type Answer = SessionDetail;

    fn show(&self, told: &SessionDetail) -> Page {
        let line = &told.session;
        let mut text = format!(
            "Session {}  (SMF {}, its SEID {}, shard {})\nUE {} {}  network instance {:?}  {} packets buffered\n",
            line.seid,
            line.peer,
            line.cp_seid,
            line.shard,
            line.ue_ipv4.cell(),
            line.ue_ipv6.cell(),
            line.network_instance,
            told.buffered
        );
        let user = if told.identities.is_empty() { "-".into() } else { told.identities.join(" ") };
        let (dnn, slice) = (line.dnn.cell(), line.s_nssai.cell());
        // Writing to a string doesn't fail.
        let _ = writeln!(text, "User {user}  DNN {dnn}  S-NSSAI {slice}");
        if let Some(seconds) = told.inactivity_timer {
            let _ = writeln!(text, "Reported as inactive after {seconds} s without a packet");
        }
        let mut page = Page::text(text);
        page.part(&told.pdrs);
        page.part(&told.fars);
        page.part(&told.qers);
        page.part(&told.urrs);
        page.part(&told.applications);
        if told.more_applications {
            page.say("There may be more: this shard has too many flows to look at all of them.\n");
        }
        page.part(&told.drops);
        page
    }
}

/// All about a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetail {
    /// In brief.
    pub session: SessionLine,
    /// All identities of the user.
    #[serde(default)]
    pub identities: Vec<String>,
    /// User Plane Inactivity Timer in seconds.
    #[serde(default)]
    pub inactivity_timer: Option<u32>,
    /// Packet Detection Rules, in the order in which they are tried.
    pub pdrs: Vec<PdrLine>,
    /// Forwarding Action Rules.
    pub fars: Vec<FarLine>,
    /// QoS Enforcement Rules.
    pub qers: Vec<QerLine>,
    /// Usage Reporting Rules.
    pub urrs: Vec<UrrLine>,
    /// Why packets of this session were dropped; reasons that occurred only.
    pub drops: Vec<DropLine>,
    /// Packets that wait for the UE.
    pub buffered: u32,
    /// Flows that live and are looked into, by what is known of them, those with the most bytes first.
    #[serde(default)]
    pub applications: Vec<SessionApplication>,
    /// There may be more of these: there are too many flows to look at all of them.
    #[serde(default)]
    pub more_applications: bool,
}

/// Flows that live of a session, of which the same is known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionApplication {
    /// The application, or what they are taken for so far; none: none that is known.
    pub application: Option<String>,
    /// They are under question: it may be another one.
    pub under_question: bool,
    /// What that rests on.
    pub by: Option<String>,
    /// How sure it is: `certain`, `likely`, `guess`.
    pub confidence: Option<String>,
    /// How many there are. A flow has one direction: a connection is two.
    pub flows: u32,
    /// Packets from the UE. A flow counts anew where its rule becomes another one.
    pub uplink_packets: u64,
    /// Their bytes.
    pub uplink_bytes: u64,
    /// Packets to the UE.
    pub downlink_packets: u64,
    /// Their bytes.
    pub downlink_bytes: u64,
}

columns!(SessionApplication, |line| {
    "APPLICATION" Left format!(
        "{}{}",
        line.application.as_deref().unwrap_or("(unknown)"),
        if line.under_question { " (so far)" } else { "" }
    ),
    "FLOWS" Right line.flows,
    "UL PACKETS" Right line.uplink_packets,
    "UL BYTES" Right line.uplink_bytes,
    "DL PACKETS" Right line.downlink_packets,
    "DL BYTES" Right line.downlink_bytes,
    "CONFIDENCE" Left line.confidence,
    "BY" Left line.by,
});

/// A PDR.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PdrLine {
    /// PDR ID.
    pub id: u16,
    /// Lower is tried first.
    pub precedence: u32,
    /// Source Interface: `access`, `core`, `n6-lan`, `cp-function`.
    pub source: String,
    /// The tunnel that its packets come from.
    pub teid: Option<TeidText>,
    /// From where the tunnel's packets came last, while sources are checked.
    #[serde(default)]
    pub heard: Option<IpAddr>,
    /// QFIs that its packets carry; empty: any, or none.
    #[serde(default)]
    pub qfis: Vec<u8>,
    /// Its filters as text, written for the packet's own direction.
    pub filters: Vec<String>,
    /// Application ID: its packets are this application's.
    #[serde(default)]
    pub application: Option<String>,
    /// Nobody looks for that application, so no packet matches.
    #[serde(default)]
    pub undetected: bool,
    /// FAR ID.
    pub far: u32,
    /// QER IDs.
    pub qers: Vec<u32>,
    /// URR IDs.
    pub urrs: Vec<u32>,
    /// Packets that matched and were forwarded.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

columns!(PdrLine, |pdr| {
    "PDR" Right pdr.id,
    "PRECEDENCE" Right pdr.precedence,
    "SOURCE" Left pdr.source,
    "TEID" Left pdr.teid.cell() + &pdr.heard.map_or_else(String::new, |from| format!(" from {from}")),
    "QFIS" Left pdr.qfis,
    "FAR" Right pdr.far,
    "QERS" Left pdr.qers,
    "URRS" Left pdr.urrs,
    "PACKETS" Right pdr.packets,
    "BYTES" Right pdr.bytes,
    "APPLICATION" Left pdr
        .application
        .as_ref()
        .map(|name| format!("{name}{}", if pdr.undetected { " (not detected)" } else { "" })),
    "FILTERS" Left if pdr.filters.is_empty() { "any".to_owned() } else { pdr.filters.join("; ") },
});

/// A FAR.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FarLine {
    /// FAR ID.
    pub id: u32,
    /// `forward`, `drop`, `buffer`, `buffer and notify`.
    pub action: String,
    /// Destination Interface, if it forwards.
    pub destination: Option<String>,
    /// The tunnel that it forwards into.
    pub tunnel: Option<TunnelEnd>,
    /// The URL that the UE's HTTP requests are redirected to.
    #[serde(default)]
    pub redirect: Option<String>,
}

/// The far end of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TunnelEnd {
    /// Its TEID.
    pub teid: TeidText,
    /// Its address.
    pub peer: IpAddr,
}

columns!(FarLine, |far| {
    "FAR" Right far.id,
    "ACTION" Left far.action,
    "TOWARDS" Left far.destination,
    "TUNNEL" Left far.tunnel.map(|tunnel| format!("{} at {}", tunnel.teid, tunnel.peer)),
    "REDIRECTED TO" Left far.redirect,
});

/// A QER.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct QerLine {
    /// QER ID.
    pub id: u32,
    /// Uplink gate open.
    pub uplink_open: bool,
    /// Downlink gate open.
    pub downlink_open: bool,
    /// Maximum bit rate uplink in bit/s; none: not limited.
    pub uplink_mbr: Option<u64>,
    /// Maximum bit rate downlink in bit/s.
    pub downlink_mbr: Option<u64>,
    /// Guaranteed bit rate uplink in bit/s.
    #[serde(default)]
    pub uplink_gbr: Option<u64>,
    /// Guaranteed bit rate downlink in bit/s.
    #[serde(default)]
    pub downlink_gbr: Option<u64>,
    /// QoS Flow Identifier.
    pub qfi: Option<u8>,
}

columns!(QerLine, |qer| {
    "QER" Right qer.id,
    "QFI" Right qer.qfi,
    "UL GATE" Left gate(qer.uplink_open),
    "DL GATE" Left gate(qer.downlink_open),
    "UL MBR" Right rate(qer.uplink_mbr),
    "DL MBR" Right rate(qer.downlink_mbr),
    "UL GBR" Right rate(qer.uplink_gbr),
    "DL GBR" Right rate(qer.downlink_gbr),
});

const fn gate(open: bool) -> &'static str {
    if open { "open" } else { "closed" }
}

/// A URR with what it measured since its last report.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct UrrLine {
    /// URR ID.
    pub id: u32,
    /// Bytes from the UE since the last report.
    pub uplink_bytes: u64,
    /// Bytes to the UE since the last report.
    pub downlink_bytes: u64,
    /// Report at these bytes in total since the last report.
    pub threshold: Option<u64>,
    /// Report at these bytes from the UE.
    #[serde(default)]
    pub uplink_threshold: Option<u64>,
    /// Report at these bytes to the UE.
    #[serde(default)]
    pub downlink_threshold: Option<u64>,
    /// Stop at these bytes in total since the quota was given.
    pub quota: Option<u64>,
    /// Stop at these bytes from the UE.
    #[serde(default)]
    pub uplink_quota: Option<u64>,
    /// Stop at these bytes to the UE.
    #[serde(default)]
    pub downlink_quota: Option<u64>,
    /// Bytes that are left of `quota`.
    #[serde(default)]
    pub left: Option<u64>,
    /// Bytes that are left of `uplink_quota`.
    #[serde(default)]
    pub uplink_left: Option<u64>,
    /// Bytes that are left of `downlink_quota`.
    #[serde(default)]
    pub downlink_left: Option<u64>,
    /// A quota, of volume or of time, is used up: its packets are dropped.
    #[serde(default)]
    pub used_up: bool,
    /// Seconds between two reports.
    #[serde(default)]
    pub period: Option<u32>,
    /// Report after this many seconds.
    #[serde(default)]
    pub time_threshold: Option<u32>,
    /// Stop after this many seconds.
    #[serde(default)]
    pub time_quota: Option<u32>,
    /// The quota lapses after this many seconds.
    #[serde(default)]
    pub quota_validity: Option<u32>,
    /// The quota lapses when it was not used for this many seconds.
    #[serde(default)]
    pub quota_holding: Option<u32>,
}

columns!(UrrLine, |urr| {
    "URR" Right urr.id,
    "UL SINCE REPORT" Right urr.uplink_bytes,
    "DL SINCE REPORT" Right urr.downlink_bytes,
    "THRESHOLD" Left limits(urr.threshold, urr.uplink_threshold, urr.downlink_threshold),
    "QUOTA" Left limits(urr.quota, urr.uplink_quota, urr.downlink_quota),
    "QUOTA LEFT" Left left(urr),
    "TIMES" Left times(urr),
});

/// What is left of the quotas.
fn left(urr: &UrrLine) -> Option<String> {
    let left = limits(urr.left, urr.uplink_left, urr.downlink_left);
    if urr.used_up { Some("used up".to_owned()) } else { left }
}

/// Bytes in both directions together, and in each.
fn limits(total: Option<u64>, uplink: Option<u64>, downlink: Option<u64>) -> Option<String> {
    let named = [("", total), ("UL ", uplink), ("DL ", downlink)];
    let given: Vec<_> =
        named.iter().filter_map(|(name, bytes)| Some(format!("{name}{}", (*bytes)?))).collect();
    (!given.is_empty()).then(|| given.join(", "))
}

/// What of a URR time drives.
fn times(urr: &UrrLine) -> Option<String> {
    let named = [
        ("every", urr.period),
        ("threshold", urr.time_threshold),
        ("quota", urr.time_quota),
        ("valid", urr.quota_validity),
        ("held", urr.quota_holding),
    ];
    let given: Vec<_> =
        named.iter().filter_map(|(name, time)| Some(format!("{name} {} s", (*time)?))).collect();
    (!given.is_empty()).then(|| given.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::sessions::tests::line;
    use super::*;

    #[test]
    fn a_session() {
        let pdr = |id, source: &str, teid| PdrLine {
            id,
            precedence: 255,
            source: source.into(),
            teid,
            heard: teid.map(|_| [198, 51, 100, 10].into()),
            qfis: vec![9; usize::from(id) - 1],
            filters: vec!["udp from any to 198.51.100.0/24".into(); usize::from(id) - 1],
            application: (id == 2).then(|| "video".into()),
            undetected: id == 2,
            far: id.into(),
            qers: vec![1, 2],
            urrs: vec![],
            packets: 10,
            bytes: 12345,
        };
        let detail = SessionDetail {
            session: line(),
            identities: vec!["imsi-001010000000001".into(), "msisdn-49171\x1b[2J".into()],
            inactivity_timer: Some(600),
            pdrs: vec![pdr(1, "access", Some(TeidText(0x0100_8001))), pdr(2, "core", None)],
            fars: vec![
                FarLine {
                    id: 1,
                    action: "forward".into(),
                    destination: Some("core".into()),
                    tunnel: None,
                    redirect: Some("http://portal.example/".into()),
                },
                FarLine {
                    id: 2,
                    action: "forward".into(),
                    destination: Some("access".into()),
                    tunnel: Some(TunnelEnd { teid: TeidText(9), peer: [198, 51, 100, 9].into() }),
                    redirect: None,
                },
            ],
            qers: vec![QerLine {
                id: 1,
                uplink_open: true,
                downlink_mbr: Some(1_500_000),
                downlink_gbr: Some(500_000),
                qfi: Some(9),
                ..QerLine::default()
            }],
            urrs: vec![
                UrrLine {
                    id: 1,
                    uplink_bytes: 5,
                    uplink_threshold: Some(500_000),
                    downlink_threshold: Some(600_000),
                    quota: Some(1_000),
                    left: Some(995),
                    period: Some(30),
                    ..UrrLine::default()
                },
                UrrLine { id: 2, quota: Some(3_000), left: Some(0), used_up: true, ..UrrLine::default() },
            ],
            drops: vec![DropLine {
                reason: "gate".into(),
                meaning: "A QER's gate is closed.".into(),
                packets: 4,
            }],
            buffered: 3,
            applications: vec![
                SessionApplication {
                    application: Some("youtube".into()),
                    by: Some("the name of the server in a message".into()),
                    confidence: Some("certain".into()),
                    flows: 2,
                    uplink_packets: 7,
                    uplink_bytes: 700,
                    downlink_packets: 20,
                    downlink_bytes: 25_000,
                    ..SessionApplication::default()
                },
                SessionApplication { under_question: true, flows: 1, ..SessionApplication::default() },
            ],
            more_applications: true,
        };
        insta::assert_snapshot!(Session::default().show(&detail));
    }
}
