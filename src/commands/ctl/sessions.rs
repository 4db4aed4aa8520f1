//! `ctl sessions` and `ctl session`.

use super::traffic::drops;
use super::words::{joined, or_dash, printable, rate};
use crate::table::Side::{Left, Right};
use crate::table::Table;
use api::{SeidText, SessionDetail, SessionPage, SessionSelector, TeidText, UrrLine};
use std::fmt::Write;
use std::net::IpAddr;

/// Which session is shown.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// Its UP SEID, as `sessions` prints it.
    seid: Option<SeidText>,
    /// The one of the UE with this address.
    #[arg(long, value_name = "ADDRESS")]
    ue: Option<IpAddr>,
    /// The one with this tunnel of the UPF.
    #[arg(long)]
    teid: Option<TeidText>,
    /// The one of this user: IMSI, MSISDN, NAI, …
    #[arg(long, value_name = "ID")]
    user: Option<String>,
}

impl Which {
    /// What the UPF is asked.
    pub fn selector(&self) -> SessionSelector {
        SessionSelector { seid: self.seid, ue: self.ue, teid: self.teid, user: self.user.clone() }
    }
}

/// A page of sessions.
pub fn page(page: &SessionPage) -> String {
    if page.sessions.is_empty() {
        return format!("No session to show; {} match.\n", page.total);
    }
    let mut table = Table::new(&[
        ("SEID", Left),
        ("UE IPV4", Left),
        ("UE IPV6", Left),
        ("USER", Left),
        ("DNN", Left),
        ("NETWORK", Left),
        ("SMF", Left),
        ("CP SEID", Left),
        ("SHARD", Right),
        ("PDR", Right),
        ("FAR", Right),
        ("QER", Right),
        ("URR", Right),
    ]);
    for line in &page.sessions {
        table.row([
            line.seid.to_string(),
            or_dash(line.ue_ipv4.as_ref()),
            or_dash(line.ue_ipv6.as_ref()),
            or_dash(line.user.as_ref()),
            or_dash(line.dnn.as_ref()),
            if line.network_instance.is_empty() { "-".into() } else { line.network_instance.clone() },
            line.peer.clone(),
            line.cp_seid.to_string(),
            line.shard.to_string(),
            line.rules.pdrs.to_string(),
            line.rules.fars.to_string(),
            line.rules.qers.to_string(),
            line.rules.urrs.to_string(),
        ]);
    }
    let last = page.offset + page.sessions.len() as u64;
    let more = if last < page.total { format!("; --offset {last} goes on") } else { String::new() };
    format!("{table}{} to {last} of {}{more}\n", page.offset + 1, page.total)
}

/// All about a session.
pub fn detail(detail: &SessionDetail) -> String {
    let line = &detail.session;
    let mut text = format!(
        "Session {}  (SMF {}, its SEID {}, shard {})\nUE {} {}  network instance {:?}  {} packets buffered\n",
        line.seid,
        printable(&line.peer),
        line.cp_seid,
        line.shard,
        or_dash(line.ue_ipv4.as_ref()),
        printable(&or_dash(line.ue_ipv6.as_ref())),
        line.network_instance,
        detail.buffered
    );
    let user = if detail.identities.is_empty() { "-".into() } else { detail.identities.join(" ") };
    let (dnn, slice) = (or_dash(line.dnn.as_ref()), or_dash(line.s_nssai.as_ref()));
    // Writing to a string doesn't fail.
    let _ =
        writeln!(text, "User {}  DNN {}  S-NSSAI {}", printable(&user), printable(&dnn), printable(&slice));
    if let Some(seconds) = detail.inactivity_timer {
        let _ = writeln!(text, "Reported as inactive after {seconds} s without a packet");
    }
    let mut part = |table: Table, empty: bool| {
        if !empty {
            // Writing to a string doesn't fail.
            let _ = write!(text, "\n{table}");
        }
    };
    let mut table = Table::new(&[
        ("PDR", Right),
        ("PRECEDENCE", Right),
        ("SOURCE", Left),
        ("TEID", Left),
        ("QFIS", Left),
        ("FAR", Right),
        ("QERS", Left),
        ("URRS", Left),
        ("PACKETS", Right),
        ("BYTES", Right),
        ("FILTERS", Left),
    ]);
    for pdr in &detail.pdrs {
        let from = pdr.heard.map_or_else(String::new, |from| format!(" from {from}"));
        table.row([
            pdr.id.to_string(),
            pdr.precedence.to_string(),
            pdr.source.clone(),
            or_dash(pdr.teid.as_ref()) + &from,
            joined(&pdr.qfis),
            pdr.far.to_string(),
            joined(&pdr.qers),
            joined(&pdr.urrs),
            pdr.packets.to_string(),
            pdr.bytes.to_string(),
            if pdr.filters.is_empty() { "any".into() } else { pdr.filters.join("; ") },
        ]);
    }
    part(table, detail.pdrs.is_empty());
    let mut table = Table::new(&[("FAR", Right), ("ACTION", Left), ("TOWARDS", Left), ("TUNNEL", Left)]);
    for far in &detail.fars {
        let tunnel = far.tunnel.map(|tunnel| format!("{} at {}", tunnel.teid, tunnel.peer));
        table.row([
            far.id.to_string(),
            far.action.clone(),
            or_dash(far.destination.as_ref()),
            or_dash(tunnel.as_ref()),
        ]);
    }
    part(table, detail.fars.is_empty());
    let mut table = Table::new(&[
        ("QER", Right),
        ("QFI", Right),
        ("UL GATE", Left),
        ("DL GATE", Left),
        ("UL MBR", Right),
        ("DL MBR", Right),
        ("UL GBR", Right),
        ("DL GBR", Right),
    ]);
    let gate = |open| if open { "open" } else { "closed" }.to_owned();
    for qer in &detail.qers {
        table.row([
            qer.id.to_string(),
            or_dash(qer.qfi.as_ref()),
            gate(qer.uplink_open),
            gate(qer.downlink_open),
            rate(qer.uplink_mbr),
            rate(qer.downlink_mbr),
            rate(qer.uplink_gbr),
            rate(qer.downlink_gbr),
        ]);
    }
    part(table, detail.qers.is_empty());
    let mut table = Table::new(&[
        ("URR", Right),
        ("UL SINCE REPORT", Right),
        ("DL SINCE REPORT", Right),
        ("THRESHOLD", Left),
        ("QUOTA", Left),
        ("QUOTA LEFT", Left),
        ("TIMES", Left),
    ]);
    for urr in &detail.urrs {
        let left = limits(urr.left, urr.uplink_left, urr.downlink_left);
        table.row([
            urr.id.to_string(),
            urr.uplink_bytes.to_string(),
            urr.downlink_bytes.to_string(),
            limits(urr.threshold, urr.uplink_threshold, urr.downlink_threshold),
            limits(urr.quota, urr.uplink_quota, urr.downlink_quota),
            if urr.used_up { "used up".into() } else { left },
            times(urr),
        ]);
    }
    part(table, detail.urrs.is_empty());
    if !detail.drops.is_empty() {
        text.push('\n');
        text.push_str(&drops(&detail.drops));
    }
    text
}

/// Bytes in both directions together, and in each.
fn limits(total: Option<u64>, uplink: Option<u64>, downlink: Option<u64>) -> String {
    let named = [("", total), ("UL ", uplink), ("DL ", downlink)];
    let given: Vec<_> =
        named.iter().filter_map(|(name, bytes)| Some(format!("{name}{}", (*bytes)?))).collect();
    if given.is_empty() { "-".into() } else { given.join(", ") }
}

/// What of a URR time drives.
fn times(urr: &UrrLine) -> String {
    let named = [
        ("every", urr.period),
        ("threshold", urr.time_threshold),
        ("quota", urr.time_quota),
        ("valid", urr.quota_validity),
        ("held", urr.quota_holding),
    ];
    let given: Vec<_> =
        named.iter().filter_map(|(name, time)| Some(format!("{name} {} s", (*time)?))).collect();
    if given.is_empty() { "-".into() } else { given.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::*;

    fn line() -> SessionLine {
        SessionLine {
            seid: SeidText(0x2_0000_0001),
            cp_seid: SeidText(7),
            peer: "smf\x1b[2J.example.org".into(),
            ue_ipv4: Some([10, 45, 0, 2].into()),
            ue_ipv6: Some("2001:db8:45:2::/64".into()),
            user: Some("imsi-001010000000001".into()),
            dnn: Some("internet".into()),
            s_nssai: Some("1-00007b".into()),
            network_instance: "internet".into(),
            shard: 311,
            rules: RuleCounts { pdrs: 2, fars: 2, qers: 1, urrs: 1 },
        }
    }

    #[test]
    fn a_page_of_sessions() {
        let page = SessionPage { total: 12, offset: 10, sessions: vec![line()] };
        insta::assert_snapshot!(super::page(&page));
        assert_eq!(
            super::page(&SessionPage { total: 3, offset: 9, sessions: vec![] }),
            "No session to show; 3 match.\n"
        );
    }

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
                FarLine { id: 1, action: "forward".into(), destination: Some("core".into()), tunnel: None },
                FarLine {
                    id: 2,
                    action: "forward".into(),
                    destination: Some("access".into()),
                    tunnel: Some(TunnelEnd { teid: TeidText(9), peer: [198, 51, 100, 9].into() }),
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
        };
        insta::assert_snapshot!(super::detail(&detail));
    }
}
