//! `dpi`: what it costs to know which application each flow is of, on one core.
//!
//! Frames lie in memory in the order in which they come, tens of thousands of flows are under way at a time, and a run's flows are new to the inspector. What
//! is counted is all that a worker does: preparation, the tables, classification, results that are polled, and the ends of all
//! flows. One inspector is used for all runs of a mix, so its tables have the size that they need after the first one, which isn't counted.

mod nodes;

use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use dpi::inspector::BURST;
use dpi::prepare::{Link, Tunnels, prepare};
use dpi::{Event, Inspector, Knowledge, Options, Packet};
use loadgen::applications::{Application, Length, Mix, Traffic};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;
use tables::prefetch::prefetch_headers;

/// What to measure.
#[derive(Clone, Debug)]
pub struct DpiConfig {
    /// Packets of each mix.
    pub packets: usize,
    /// Flows that are under way at a time.
    pub open: usize,
    /// Flows of one protocol, where these are measured alone.
    pub flows: usize,
    /// Runs of each.
    pub runs: usize,
}

impl DpiConfig {
    /// More flows at a time than a cache holds.
    pub fn full() -> Self {
        Self { packets: 800_000, open: 40_000, flows: 50_000, runs: 20 }
    }

    /// The same, with fewer runs.
    pub fn quick() -> Self {
        Self { runs: 5, ..Self::full() }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum DpiError {
    /// A frame that was made here can't be read: a defect.
    #[error("no packet in a frame: {0:?}")]
    Frame(dpi::prepare::Why),
    /// Not every flow has ended with one result: a defect.
    #[error("{ended} results of {flows} flows")]
    Results {
        /// Flows that were told to have ended.
        ended: u64,
        /// Flows that there were.
        flows: u64,
    },
    /// Threads, or where they run.
    #[error("thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A thread that made packets panicked.
    #[error("a thread died")]
    Died,
}

/// One protocol, alone.
const ALONE: [(&str, Mix); 4] = [
    ("tls", Mix::only("tls", &[(Application::Tls, 1)])),
    ("quic", Mix::only("quic", &[(Application::Quic, 1)])),
    ("dns", Mix::only("dns", &[(Application::Dns, 1)])),
    ("http", Mix::only("http", &[(Application::Http, 1)])),
];

/// Packets a second at which time passes for the inspector.
const PACE: u64 = 2_000_000;

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &DpiConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, DpiError> {
    let mut report = Report::new("dpi", &clock);
    let knowledge = Arc::new(Knowledge::new(dpi::signatures::Bundle::built_in()));
    for mix in Mix::ALL {
        progress.tell(&format!("{}: making packets", mix.name));
        let traffic = Traffic::new(mix, Length::Whole, config.packets, config.open, 11);
        progress.tell(mix.name);
        let times = measure(&traffic, config, &knowledge)?;
        let (packets, bits) = (traffic.frames().len() as f64, traffic.octets() as f64 * 8.0);
        let params = [("mix", mix.name.into())];
        push(&mut report, "nanoseconds_per_packet", "ns", &params, &times, |it| it * 1e9 / packets);
        push(&mut report, "bits_per_second", "bit/s", &params, &times, |it| bits / it);
        let flows = traffic.flows().len() as f64;
        report.notes.push(format!(
            "{}: {packets} packets of {:.0} octets, {:.1} a flow",
            mix.name,
            traffic.octets() as f64 / packets,
            packets / flows
        ));
        progress.keep(&report);
    }
    let beginnings = [("new", Mix::BEGINNINGS)];
    for (name, mix) in ALONE.into_iter().chain(beginnings) {
        progress.tell(&format!("{name}: making packets"));
        // A flow that has just begun has some ten packets, one that asks for a name two.
        let packets = config.flows * if name == "dns" { 2 } else { 8 };
        let traffic = Traffic::new(mix, Length::Opening, packets, config.open / 4, 12);
        progress.tell(name);
        let times = measure(&traffic, config, &knowledge)?;
        let flows = traffic.flows().len() as f64;
        if name == "new" {
            let params = [("mix", name.into())];
            push(&mut report, "flows_per_second", "1/s", &params, &times, |it| flows / it);
        } else {
            let params = [("protocol", name.into())];
            push(&mut report, "microseconds_per_flow", "us", &params, &times, |it| it * 1e6 / flows);
        }
        progress.keep(&report);
    }
    nodes::run(&mut report, config, &knowledge, progress)?;
    report.notes.push(format!(
        "one core, from memory, time of the thread alone, in bursts of {BURST}: preparation, tables, classification, results polled, ends of all flows; {} flows under way at \
         a time, {} where flows only begin (all that is needed to know them, and the packets around it)",
        config.open,
        config.open / 4
    ));
    Ok(report)
}

fn push(
    report: &mut Report,
    name: &'static str,
    unit: &'static str,
    params: &[(&'static str, Param)],
    times: &[f64],
    of: impl Fn(f64) -> f64,
) {
    let values: Vec<f64> = times.iter().map(|time| of(*time)).collect();
    report.results.push(Measured::of(name, unit, params, &values));
}

/// How long all packets take, run by run, in seconds.
fn measure(traffic: &Traffic, config: &DpiConfig, knowledge: &Arc<Knowledge>) -> Result<Vec<f64>, DpiError> {
    let frames: Vec<&[u8]> = traffic.frames().collect();
    let mut inspector = Inspector::with(Options::default(), knowledge.clone(), 0x5eed, Nanos(0));
    let mut now = Nanos(0);
    let mut times = Vec::new();
    for run in 0..=config.runs {
        let began = spent();
        let ended = replay(&mut inspector, &mut now, &frames)?;
        let time = spent() - began;
        let flows = traffic.flows().len() as u64;
        // Two flows between the same ends may be one, or two.
        if ended > flows || ended * 100 < flows * 99 {
            return Err(DpiError::Results { ended, flows });
        }
        if run > 0 {
            times.push(time);
        }
    }
    Ok(times)
}

/// The thread's own time, in seconds: what others do on the same core meanwhile doesn't count.
pub(crate) fn spent() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// All packets once, until all flows have ended: how many have.
fn replay(inspector: &mut Inspector, now: &mut Nanos, frames: &[&[u8]]) -> Result<u64, DpiError> {
    let mut ended = 0;
    let mut packets = Vec::with_capacity(BURST);
    for burst in frames.chunks(BURST) {
        *now = now.plus(BURST as u64 * Nanos::SECOND / PACE);
        push_burst(inspector, *now, burst, &mut packets)?;
        inspector.tick(*now);
        ended += poll(inspector);
    }
    while inspector.flows().0 > 0 {
        *now = now.plus(Nanos::SECOND / 100);
        inspector.tick(*now);
        ended += poll(inspector);
    }
    Ok(ended)
}

/// A burst, which is prepared into `packets`.
fn push_burst<'f>(
    inspector: &mut Inspector,
    now: Nanos,
    burst: &[&'f [u8]],
    packets: &mut Vec<Packet<'f>>,
) -> Result<(), DpiError> {
    packets.clear();
    // As whoever takes packets from a port does.
    burst.iter().for_each(|frame| prefetch_headers(frame.as_ptr()));
    for frame in burst {
        let prepared =
            prepare(Link::Ethernet, frame, Tunnels::USUAL).map_err(|no| DpiError::Frame(no.why))?;
        packets.push(Packet { ip: prepared.ip, bytes: prepared.packet, tunnel: None });
    }
    inspector.push_burst(now, packets);
    Ok(())
}

/// Takes the results: how many flows have ended.
fn poll(inspector: &mut Inspector) -> u64 {
    let mut ended = 0;
    while let Some(event) = inspector.poll() {
        ended += u64::from(matches!(event, Event::Ended { .. }));
    }
    ended
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_mix_and_protocol_has_its_figure() {
        let config = DpiConfig { packets: 2_000, open: 100, flows: 100, runs: 2 };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for mix in Mix::ALL {
            assert!(report.median("nanoseconds_per_packet", &[("mix", mix.name.into())]).unwrap() > 0.0);
            assert!(report.median("bits_per_second", &[("mix", mix.name.into())]).unwrap() > 0.0);
        }
        for (name, _) in ALONE {
            assert!(report.median("microseconds_per_flow", &[("protocol", name.into())]).unwrap() > 0.0);
        }
        assert!(report.median("flows_per_second", &[("mix", "new".into())]).unwrap() > 0.0);
    }
}
