//! What became of packets: `ctl drops`, `flows`, `slices`, `qos`, `nat` and `offload`.

use super::words::{self, counters, joined, or_dash, rate};
use crate::table::Side::{Left, Right};
use crate::table::Table;
use api::{DropLine, FlowCounterLine, NatStatus, OffloadStatus, QosReport, SliceLine};
use std::fmt::Write;

/// Dropped packets by reason.
pub fn drops(drops: &[DropLine]) -> String {
    let mut table = Table::new(&[("DROPPED", Right), ("REASON", Left), ("MEANING", Left)]);
    for drop in drops {
        table.row([drop.packets.to_string(), drop.reason.clone(), drop.meaning.clone()]);
    }
    table.to_string()
}

/// Counters of flows.
pub fn flows(lines: &[FlowCounterLine], all: bool) -> String {
    counters(lines.iter().map(|line| (line.value, &*line.counter, &*line.meaning)), all)
}

/// What slices came to.
pub fn slices(lines: &[SliceLine]) -> String {
    if lines.is_empty() {
        return "No slices are configured.\n".into();
    }
    let mut table = Table::new(&[
        ("SLICE", Left),
        ("DIRECTION", Left),
        ("GUARANTEED", Right),
        ("MAXIMUM", Right),
        ("PACKETS", Right),
        ("BYTES", Right),
        ("BEYOND GUARANTEE", Right),
        ("DROPPED", Right),
    ]);
    for line in lines {
        table.row([
            line.name.clone(),
            line.direction.clone(),
            rate(line.guaranteed),
            rate(line.maximum),
            line.packets.to_string(),
            line.bytes.to_string(),
            line.yellow_packets.to_string(),
            line.dropped_packets.to_string(),
        ]);
    }
    table.to_string()
}

/// Queues.
pub fn qos(report: &QosReport) -> String {
    let mut classes = Table::new(&[
        ("PORT", Left),
        ("CLASS", Left),
        ("KIND", Left),
        ("WAITING", Right),
        ("BYTES WAITING", Right),
        ("SENT AFTER WAITING", Right),
        ("BYTES SENT", Right),
        ("DROPPED GREEN", Right),
        ("DROPPED YELLOW", Right),
        ("DROPPED RED", Right),
    ]);
    for line in &report.classes {
        classes.row([
            line.port.clone(),
            line.class.clone(),
            line.kind.clone(),
            line.queued_packets.to_string(),
            line.queued_bytes.to_string(),
            line.sent_packets.to_string(),
            line.sent_bytes.to_string(),
            line.dropped_green.to_string(),
            line.dropped_yellow.to_string(),
            line.dropped_red.to_string(),
        ]);
    }
    if report.receive.is_empty() {
        return format!("{classes}\nNo port steers ahead of RSS.\n");
    }
    let mut receive = Table::new(&[("PORT", Left), ("RECEIVE QUEUE", Left), ("PACKETS", Right)]);
    for line in &report.receive {
        receive.row([line.port.clone(), line.queue.clone(), line.packets.to_string()]);
    }
    format!("{classes}\n{receive}")
}

/// Translation on N6.
pub fn nat(status: &NatStatus) -> String {
    if status.pools.is_empty() && status.drops.is_empty() {
        return "Nothing is translated port by port.\n".into();
    }
    let mut table = Table::new(&[
        ("POOL", Left),
        ("BLOCKS", Right),
        ("USED", Right),
        ("FREE", Right),
        ("MAPPINGS", Right),
        ("MADE", Right),
    ]);
    for pool in &status.pools {
        table.row([
            pool.pool.clone(),
            pool.blocks.to_string(),
            pool.blocks_used.to_string(),
            pool.blocks.saturating_sub(pool.blocks_used).to_string(),
            pool.mappings.to_string(),
            pool.mappings_made.to_string(),
        ]);
    }
    let mut text = table.to_string();
    if !status.drops.is_empty() {
        text.push('\n');
        text.push_str(&drops(&status.drops));
    }
    if status.log_lines_lost > 0 {
        let _ = writeln!(text, "\n{} lines of the log of bindings were lost.", status.log_lines_lost);
    }
    text
}

/// Flows in NICs.
pub fn offload(status: &OffloadStatus, all: bool) -> String {
    let mut ports = Table::new(&[("PORT", Left), ("ENTRIES", Right), ("ITS RULES MAY CONTAIN", Left)]);
    for port in &status.ports {
        ports.row([port.port.clone(), or_dash(port.entries.as_ref()), joined(&port.features)]);
    }
    let mut flows = Table::new(&[
        ("WORKER", Right),
        ("PORT", Left),
        ("DIRECTION", Left),
        ("PACKETS", Right),
        ("PER SECOND", Right),
        ("FLOW", Left),
    ]);
    for flow in &status.some {
        flows.row([
            flow.worker.to_string(),
            flow.port.clone(),
            if flow.uplink { "uplink".into() } else { "downlink".into() },
            flow.packets.to_string(),
            flow.packets_per_second.to_string(),
            flow.flow.clone(),
        ]);
    }
    let counters = status.counters.iter().map(|line| (line.value, &*line.counter, &*line.meaning));
    let counters = words::counters(counters, all);
    let shown = match (status.some.len() as u64, status.flows) {
        (_, 0) => "No flow is in a NIC.\n".into(),
        (some, all) if some == all => flows.to_string(),
        (some, all) => format!("{flows}{some} of {all} flows are shown.\n"),
    };
    format!("{ports}\n{shown}\n{counters}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{ClassLine, ReceiveLine};

    #[test]
    fn queues() {
        let class = ClassLine {
            port: "access".into(),
            class: "voice".into(),
            kind: "strict to 60 %".into(),
            queued_packets: 12,
            dropped_green: 3,
            ..ClassLine::default()
        };
        let receive = ReceiveLine { port: "access".into(), queue: "control".into(), packets: 77 };
        let mut report = QosReport { classes: vec![class], receive: Vec::new() };
        assert_eq!(
            qos(&report),
            "PORT    CLASS  KIND            WAITING  BYTES WAITING  SENT AFTER WAITING  BYTES SENT  DROPPED GREEN  \
             DROPPED YELLOW  DROPPED RED\n\
             access  voice  strict to 60 %       12              0                   0           0              3               0            0\n\n\
             No port steers ahead of RSS.\n"
        );
        report.receive.push(receive);
        assert!(qos(&report).ends_with("access  control             77\n"));
    }
}
