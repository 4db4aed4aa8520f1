//! Flows in NICs: from the configuration to the workers' policy, and from their reports to what is shown.

use api::{OffloadFlowLine, OffloadPortLine, OffloadStatus};
use config::{OffloadMode, OffloadSection};
use counters::Count;
use datapath::offload::{EntryReport, FlowReport, Mode, Policy};
use engine::WorkerReport;
use std::fmt::Write as _;
use tables::Nanos;

/// What workers are told; `None`: nothing is to be offloaded.
pub(super) fn policy(section: &OffloadSection, seed: u64) -> Option<Policy> {
    let mode = match section.mode {
        OffloadMode::Off => return None,
        // The engine puts in each worker's own queue.
        OffloadMode::Partial => Mode::Partial { queue: 0 },
        OffloadMode::Full => Mode::Full,
    };
    let seconds = |seconds: u16| u64::from(seconds) * Nanos::SECOND;
    Some(Policy {
        sample: u32::from(section.sample),
        packets_per_second: u64::from(section.packets_per_second),
        lifetime: seconds(section.lifetime_seconds),
        idle: seconds(section.idle_seconds),
        read_interval: u64::from(section.read_interval_ms) * Nanos::SECOND / 1000,
        margin: section.margin_bytes,
        seed,
        ..Policy::new(mode)
    })
}

/// What all workers' reports say together. `ports`: names, in the order of the configuration.
pub(super) fn describe(reports: &[WorkerReport], ports: &[String]) -> OffloadStatus {
    let (mut flows, mut some) = (0, Vec::new());
    let name = |port: u16| ports.get(usize::from(port)).cloned().unwrap_or_default();
    let mut lines: Vec<OffloadPortLine> = Vec::new();
    for (worker, report) in reports.iter().filter_map(|r| Some((r.worker, r.offload.as_ref()?))) {
        flows += report.entries as u64;
        some.extend(report.some.iter().map(|entry| flow(worker, name(entry.port), entry)));
        // The workers' handles are on the same devices.
        if lines.is_empty() {
            let line = |(port, device): (usize, &io::offload::Capabilities)| OffloadPortLine {
                port: name(port as u16),
                entries: device.entries,
                features: device.features.each().map(|feature| feature.label().to_owned()).collect(),
            };
            lines = report.devices.iter().enumerate().map(line).collect();
        }
    }
    let counters = super::sums::offload(reports).unwrap_or_default().lines();
    let counters = counters.iter().map(super::convert::counter);
    OffloadStatus { flows, some, ports: lines, counters: counters.collect() }
}

fn flow(worker: usize, port: String, entry: &EntryReport) -> OffloadFlowLine {
    OffloadFlowLine {
        worker: worker as u16,
        port,
        uplink: entry.uplink,
        flow: words(&entry.flow),
        packets: entry.counts.packets,
        packets_per_second: entry.rate,
    }
}

/// A flow for people: `TEID 0x00000101 qfi 9: 10.45.0.1:1000 -> 8.8.8.8:53 protocol 17`.
fn words(flow: &FlowReport) -> String {
    let mut text = String::new();
    if let Some(teid) = flow.teid {
        let _ = write!(text, "TEID {teid:#010x}");
        if let Some(qfi) = flow.qfi {
            let _ = write!(text, " qfi {qfi}");
        }
        text.push_str(": ");
    }
    let end = |address: Option<std::net::IpAddr>, port: Option<u16>| match (address, port) {
        (Some(address), Some(port)) => std::net::SocketAddr::new(address, port).to_string(),
        (Some(address), None) => address.to_string(),
        (None, _) => "any".into(),
    };
    text.push_str(&end(flow.source, flow.ports.map(|(source, _)| source)));
    text.push_str(" -> ");
    text.push_str(&end(flow.destination, flow.ports.map(|(_, destination)| destination)));
    if let Some(protocol) = flow.protocol {
        let _ = write!(text, " protocol {protocol}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::offload::{Container, Pattern, TunnelMatch};
    use packet::MacAddr;

    #[test]
    fn flows_in_words() {
        let plain = Pattern::new(MacAddr::ZERO).to([10, 45, 0, 1].into());
        assert_eq!(words(&(&plain).into()), "any -> 10.45.0.1");
        let tunnel =
            TunnelMatch { destination: [192, 0, 2, 1].into(), teid: 0x101, container: Container::Qfi(9) };
        let pattern = Pattern {
            tunnel: Some(tunnel),
            source: Some([10, 45, 0, 1].into()),
            protocol: Some(17),
            ports: Some((1000, 53)),
            ..plain.to([8, 8, 8, 8].into())
        };
        assert_eq!(
            words(&(&pattern).into()),
            "TEID 0x00000101 qfi 9: 10.45.0.1:1000 -> 8.8.8.8:53 protocol 17"
        );
    }

    #[test]
    fn off_is_no_policy() {
        assert!(policy(&OffloadSection::default(), 1).is_none());
        let section =
            OffloadSection { mode: OffloadMode::Full, idle_seconds: 7, ..OffloadSection::default() };
        let policy = policy(&section, 1);
        assert!(policy.is_some_and(|policy| policy.mode == Mode::Full && policy.idle == 7 * Nanos::SECOND));
    }
}
