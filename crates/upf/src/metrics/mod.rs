//! Counters for Prometheus and its like, and whether the UPF is healthy, by HTTP.
//!
//! **The problem.** Who watches many machines asks each of them for everything, every few seconds, and in a format of his own.
//!
//! **The model.** `/metrics` tells what [`View`] sees: what workers and control have published, as [`text`]. What there is comes from `counters!`:
//! a new counter needs nothing here. No label grows with subscribers: workers, ports, interfaces, classes, slices, pools and reasons have some, and so
//! have the 64 applications that were largest when they were first seen; all others have one together. Mirrors, which may be of
//! subscribers, have the name of their target and one of 64 slots, which a later one gets again.
//! `/healthz` says 200 if all workers and N4 have published lately, else 503 and why. [`server`] is a thread beside all others.
//!
//! **The cost.** None for workers and N4. A scrape reads pages of memory; of ports it asks the devices.

mod server;
mod text;

pub(super) use server::MetricsServer;

use super::sums;
use super::view::View;
use api::PortLine;
use counters::Count;
use engine::WorkerReport;
use tables::Nanos;
use text::{Format, Text};

/// Who publishes ten times a second and hasn't for so long is not well.
const STALE: u64 = 2 * Nanos::SECOND;

counters::counters! {
    /// What a worker has now.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct WorkerState {
        /// Shards that it owns.
        pub shards: u64 = "shards", Gauge;
        /// Sessions in them.
        pub sessions: u64 = "sessions", Gauge;
    }
}

counters::counters! {
    /// What N4 has now.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct N4State {
        /// Sessions.
        pub sessions: u64 = "sessions", Gauge;
        /// Associations with SMFs.
        pub associations: u64 = "associations", Gauge;
    }
}

counters::counters! {
    /// A port's own counters.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct PortCounters {
        /// Whether it has a link: 1, or 0.
        pub link: u64 = "link-up", Gauge;
        /// Frames received.
        pub received_packets: u64 = "received-packets", Counter of Packets;
        /// Their bytes.
        pub received_bytes: u64 = "received-bytes", Counter of Bytes;
        /// Frames lost for want of a queue entry or buffer.
        pub missed: u64 = "missed", Counter of Packets;
        /// Frames received with an error.
        pub errors: u64 = "received-errors", Counter of Packets;
        /// Frames sent.
        pub sent_packets: u64 = "sent-packets", Counter of Packets;
        /// Their bytes.
        pub sent_bytes: u64 = "sent-bytes", Counter of Bytes;
        /// Frames that failed to be sent.
        pub sent_errors: u64 = "sent-errors", Counter of Packets;
    }
}

impl From<&PortLine> for PortCounters {
    fn from(port: &PortLine) -> Self {
        Self {
            link: port.link_up.into(),
            received_packets: port.rx_packets,
            received_bytes: port.rx_bytes,
            missed: port.rx_missed,
            errors: port.rx_errors,
            sent_packets: port.tx_packets,
            sent_bytes: port.tx_bytes,
            sent_errors: port.tx_errors,
        }
    }
}

/// All that is counted.
fn metrics(view: &View, format: Format) -> String {
    let (reports, control, given) = (view.reports(), view.control(), view.given());
    let config = &given.config;
    let mut text = Text::new(format);
    text.info("build", "The program.", &[("version", env!("CARGO_PKG_VERSION"))]);
    text.add("", &[], &N4State { sessions: control.sessions, associations: control.associations }.lines());
    text.add("pfcp", &[], &control.node.lines());
    text.add("n4", &[], &control.n4.lines());
    for (given, port) in config.ports.iter().zip(view.ports()) {
        text.add("port", &[("port", &given.name)], &PortCounters::from(&port).lines());
    }
    for report in &reports {
        let worker = report.worker.to_string();
        let (shards, sessions) = (report.shards as u64, report.sessions as u64);
        let labels = [("worker", worker.as_str())];
        text.add("worker", &labels, &WorkerState { shards, sessions }.lines());
        text.add("worker_loop", &labels, &report.load.lines());
        text.add("worker", &labels, &report.counters.lines());
    }
    let sum = sums::counters(&reports);
    for (interface, counters) in config.interfaces.iter().zip(&sum.interfaces) {
        text.add("interface", &[("interface", &interface.name)], &counters.lines());
    }
    for (number, port) in config.ports.iter().enumerate() {
        for (at, class) in config.qos.egress.classes().iter().enumerate() {
            let counters = sums::class(&reports, number, at);
            text.add("queue", &[("port", &port.name), ("class", &class.name)], &counters.lines());
        }
    }
    for (at, slice) in config.slices.iter().enumerate() {
        for (direction, traffic) in ["uplink", "downlink"].into_iter().zip(sums::slice(&reports, at)) {
            text.add("slice", &[("slice", &slice.name), ("direction", direction)], &traffic.lines());
        }
    }
    for (at, settings) in given.nat.placed() {
        let pool = sum.nat.get(at).copied().unwrap_or_default();
        text.add("nat", &[("pool", &settings.name)], &pool.lines());
    }
    for mirror in &given.mirrors {
        let slot = mirror.number.to_string();
        text.add("mirror", &[("to", &mirror.to), ("slot", &slot)], &sums::mirror(&reports, mirror).lines());
    }
    for (application, counters) in view.applications.charted() {
        text.add("application", &[("application", &application)], &counters.lines());
    }
    if let Some(counters) = sums::offload(&reports) {
        text.add("offload", &[], &counters.lines());
    }
    if let Some(counters) = sums::lookups(&reports) {
        text.add("lookups", &[], &counters.lines());
    }
    if let Some(log) = control.flow_log {
        text.add("flow", &[], &log.lines());
    }
    text.end()
}

/// What is not well, one line each; nothing: all is.
fn ailments(now: Nanos, reports: &[WorkerReport], control: Nanos) -> Vec<String> {
    let mut lines = Vec::new();
    let silent = |at: Nanos| now.since(at) >= STALE;
    for report in reports {
        let worker = report.worker;
        if report.ended {
            lines.push(format!("worker {worker} has died"));
        } else if silent(report.at) {
            lines.push(format!(
                "worker {worker} has told nothing of itself for {} s",
                now.since(report.at) / Nanos::SECOND
            ));
        }
    }
    if silent(control) {
        lines.push(format!("N4 has told nothing of itself for {} s", now.since(control) / Nanos::SECOND));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_added_and_passed_on() {
        counters::conformance::check::<WorkerState>();
        counters::conformance::check::<N4State>();
        counters::conformance::check::<PortCounters>();
    }

    #[test]
    fn whoever_is_silent_or_dead_is_not_well() {
        let at = |seconds: u64| Nanos(seconds * Nanos::SECOND);
        let report = |worker, seconds, ended| WorkerReport {
            worker,
            at: at(seconds),
            ended,
            ..WorkerReport::default()
        };
        let well = [report(0, 99, false), report(1, 100, false)];
        assert!(ailments(at(100), &well, at(99)).is_empty());
        let ill = [report(0, 90, false), report(1, 100, true)];
        assert_eq!(
            ailments(at(100), &ill, at(97)),
            [
                "worker 0 has told nothing of itself for 10 s",
                "worker 1 has died",
                "N4 has told nothing of itself for 3 s"
            ]
        );
        // A worker's clock may be read a moment after ours.
        assert!(ailments(at(99), &well, at(100)).is_empty());
    }
}
