//! `ctl ports`, `ctl workers` and `ctl scale`.

use super::words::or_dash;
use crate::table::Side::{Left, Right};
use crate::table::Table;
use api::{PortLine, ScaleStatus, StagesLine, WorkerLine};
use std::fmt::Write;

/// Ports, their devices and what these do.
pub fn ports(ports: &[PortLine]) -> String {
    let mut table = Table::new(&[
        ("PORT", Left),
        ("DRIVER", Left),
        ("MAC", Left),
        ("MTU", Right),
        ("QUEUES", Right),
        ("LINK", Left),
        ("RX PACKETS", Right),
        ("RX BYTES", Right),
        ("MISSED", Right),
        ("ERRORS", Right),
        ("TX PACKETS", Right),
        ("TX BYTES", Right),
        ("ERRORS", Right),
    ]);
    for port in ports {
        table.row([
            port.name.clone(),
            port.driver.clone(),
            port.mac.clone(),
            port.mtu.to_string(),
            port.queues.to_string(),
            if port.link_up { "up" } else { "down" }.into(),
            port.rx_packets.to_string(),
            port.rx_bytes.to_string(),
            port.rx_missed.to_string(),
            port.rx_errors.to_string(),
            port.tx_packets.to_string(),
            port.tx_bytes.to_string(),
            port.tx_errors.to_string(),
        ]);
    }
    let mut text = table.to_string();
    if ports.iter().any(|port| !port.members.is_empty()) {
        let _ = write!(text, "\n{}", members(ports));
    }
    if ports.iter().any(|port| !port.remarks.is_empty()) {
        let mut table = Table::new(&[("PORT", Left), ("WHAT ITS DEVICE DOES", Left)]);
        for (port, remark) in ports.iter().flat_map(|port| port.remarks.iter().map(move |r| (port, r))) {
            table.row([port.name.clone(), remark.clone()]);
        }
        let _ = write!(text, "\n{table}");
    }
    text
}

/// The devices of aggregated ports.
fn members(ports: &[PortLine]) -> Table {
    let mut table = Table::new(&[
        ("PORT", Left),
        ("DEVICE", Left),
        ("LINK", Left),
        ("MBIT/S", Right),
        ("CARRIES", Left),
        ("PARTNER", Left),
    ]);
    for port in ports {
        for member in &port.members {
            table.row([
                port.name.clone(),
                member.device.clone(),
                if member.link_up { "up" } else { "down" }.into(),
                member.mbps.map_or("-".into(), |mbps| mbps.to_string()),
                if member.active { "yes" } else { "no" }.into(),
                member.partner.clone().unwrap_or_else(|| "-".into()),
            ]);
        }
    }
    table
}

/// Workers and their load.
pub fn workers(workers: &[WorkerLine]) -> String {
    let mut table = Table::new(&[
        ("WORKER", Right),
        ("CORE", Right),
        ("SHARDS", Right),
        ("RECEIVED", Right),
        ("REMOTE", Right),
        ("SENT", Right),
        ("HANDED OFF", Right),
        ("DROPPED", Right),
        ("HELD", Right),
        ("NOW", Left),
        ("PACKETS/S", Right),
        ("BUSY", Right),
        ("ASLEEP", Right),
        ("CYCLES/PACKET", Right),
        ("BUSY SINCE START", Right),
        ("CYCLES/PACKET", Right),
    ]);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let cycles = |cycles: Option<f64>| or_dash(cycles.map(|cycles| format!("{cycles:.0}")).as_ref());
    let mut seconds = None;
    for worker in workers {
        let recent = worker.recent.clone().unwrap_or_default();
        seconds = seconds.or(worker.recent.as_ref().map(|recent| recent.seconds));
        table.row([
            worker.worker.to_string(),
            or_dash(worker.core.as_ref()),
            worker.shards.to_string(),
            worker.received.to_string(),
            worker.remote.to_string(),
            worker.sent.to_string(),
            worker.handed_off.to_string(),
            worker.dropped.to_string(),
            worker.held.to_string(),
            if worker.sleeping { "asleep" } else { "awake" }.into(),
            format!("{:.0}", recent.packets_per_second),
            percent(recent.busy),
            percent(recent.asleep),
            cycles(recent.cycles_per_packet),
            percent(worker.busy),
            cycles(worker.cycles_per_packet),
        ]);
    }
    let watched = seconds.map_or_else(String::new, |seconds| {
        format!("PACKETS/S to the first CYCLES/PACKET: of the last {seconds:.1} s.\n")
    });
    format!(
        "{table}{watched}Busy is time in which there was something to do, with system calls and what else the kernel ran on the core; \
         polling in vain is not.\n"
    )
}

/// What the stages of a packet's way cost each worker.
pub fn stages(workers: &[StagesLine]) -> String {
    let columns =
        [("WORKER", Right), ("PACKETS", Right), ("STAGE", Left), ("CYCLES/PACKET", Right), ("SHARE", Right)];
    let mut table = Table::new(&columns);
    for StagesLine { worker, packets, stages, .. } in workers {
        let all: Option<f64> = stages.iter().map(|stage| stage.cycles_per_packet).sum();
        let mut row = |name: &str, cycles: Option<f64>| {
            let share = cycles.zip(all).map(|(part, all)| format!("{:.1} %", part / all.max(1e-9) * 100.0));
            table.row([
                worker.to_string(),
                packets.to_string(),
                name.into(),
                or_dash(cycles.map(|cycles| format!("{cycles:.1}")).as_ref()),
                or_dash(share.as_ref()),
            ]);
        };
        for stage in stages {
            row(&stage.stage, stage.cycles_per_packet);
        }
        row("all", all);
    }
    format!(
        "{table}Counted for a second, of all packets alike: a stage that few of them take costs those few more. Receiving and sending \
         are not in it (see `ctl workers`).\n"
    )
}

/// How many workers own shards, and how moves went.
pub fn scale(status: &ScaleStatus) -> String {
    let ScaleStatus { model, workers, dispatchers, active, .. } = status;
    let mut text = format!("model        {model}, {workers} threads");
    if *dispatchers > 0 {
        let _ = write!(text, ", {dispatchers} of them dispatchers");
    }
    let why = match (status.asked, status.automatic) {
        (Some(asked), _) => format!("{asked} asked for"),
        (None, true) => "following the load".into(),
        (None, false) => "until asked".into(),
    };
    let _ = writeln!(text, "\nactive       {active} ({why})\nmoving       {} shards", status.moving);
    let ScaleStatus { moves, shards, parked, .. } = status;
    let _ =
        writeln!(text, "moved        {shards} shards in {moves} moves; {parked} packets parked meanwhile");
    let ScaleStatus { pause_p50_us, pause_p99_us, pause_max_us, .. } = status;
    let _ = writeln!(
        text,
        "pause        {pause_p50_us:.1} us median, {pause_p99_us:.1} us p99, {pause_max_us:.1} us at most"
    );
    let ScaleStatus { overflowed, hurried, given_up, .. } = status;
    let _ = writeln!(
        text,
        "not so well  {overflowed} packets found no room to park, {hurried} moves were hurried, {given_up} not begun"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::*;

    #[test]
    fn ports_and_workers() {
        let port = PortLine {
            name: "access".into(),
            driver: "net_ice".into(),
            mtu: 9000,
            link_up: true,
            members: vec![
                MemberLine {
                    device: "0000:01:00.0".into(),
                    mbps: Some(100_000),
                    link_up: true,
                    ..MemberLine::default()
                },
                MemberLine {
                    device: "0000:01:00.1".into(),
                    active: true,
                    link_up: true,
                    partner: Some("02:00:00:00:00:bb".into()),
                    ..MemberLine::default()
                },
            ],
            remarks: vec!["its redirection table can't be changed".into()],
            ..PortLine::default()
        };
        let worker = WorkerLine {
            core: Some(2),
            shards: 512,
            received: 1_000,
            remote: 250,
            held: 7,
            held_limit: 3_400,
            busy: 0.375,
            asleep: 0.5,
            sleeping: true,
            cycles_per_packet: Some(171.2),
            recent: Some(RecentLoad {
                seconds: 1.01,
                busy: 0.75,
                packets_per_second: 4_000_000.0,
                cycles_per_packet: Some(140.4),
                ..RecentLoad::default()
            }),
            ..WorkerLine::default()
        };
        insta::assert_snapshot!(ports(&[port]) + &workers(&[worker]));
    }
}
