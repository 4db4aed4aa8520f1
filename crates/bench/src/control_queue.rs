//! `control`: whether a gNB's echo requests are answered while users send twice what can be served.
//!
//! A worker between two in-memory NICs; this thread is all that is on their wires. Every millisecond the gNB asks whether the path is
//! alive, while users' packets come at twice the rate of the bottleneck:
//!
//! - `worker`: uplink packets of many sessions, at twice the rate that the worker was just seen to forward: the receive queue
//!   overflows;
//! - `link`: downlink packets, at twice the rate that the gNB's link carries: the transmit queue overflows, and the
//!   answers leave through it.
//!
//! Each with what this project does about it (a control queue ahead of RSS, classes that wait for the port) and without (one
//! receive queue, one line), in turn.

use crate::forward::rules;
use crate::path::{self, GNB, Numbering, PathError, Subscriber, UPF_N3};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use datapath::{Command, Event, Token, Transition};
use engine::egress::{Class, ClassError, Kind, Plan};
use engine::{Engine, EngineConfig, EngineError};
use io::mem::{MemConfig, MemError, MemFrame, MemNic, MemWire, RssMode};
use io::replay::{ReplayRx, Stream};
use io::steering::{Control, Steering, SteeringError};
use io::{BURST, Frame, Port, RxQueue};
use loadgen::latency::Latencies;
use packet::gtpu::MessageType;
use packet::{GTP_U_PORT, PacketBuilder, Teid};
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;

/// Between two echo requests, in nanoseconds: far more often than TS 29.281 §7.2.1 allows, for percentiles' sake.
const ECHO_EVERY: u64 = 1_000_000;
/// What the gNB's link carries where it is the bottleneck.
const LINK_PACKETS_PER_SECOND: u64 = 200_000;
/// Sequence numbers, and so echoes that can be told apart.
const SEQUENCES: usize = 1 << 16;
/// Wait so long for the last answers.
const PATIENCE: u64 = 2 * Nanos::SECOND;
/// A generator that was held up for longer than this, in nanoseconds, doesn't make up for it.
const CATCH_UP: u64 = 2_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ControlConfig {
    /// Sessions whose packets come in turn.
    pub sessions: u32,
    /// Runs of each.
    pub runs: usize,
    /// Milliseconds of overload in each.
    pub milliseconds: u64,
}

impl ControlConfig {
    /// Ten seconds of each, five times.
    pub const fn full() -> Self {
        Self { sessions: 65_536, runs: 5, milliseconds: 10_000 }
    }

    /// Two seconds of each, three times.
    pub const fn quick() -> Self {
        Self { sessions: 65_536, runs: 3, milliseconds: 2_000 }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Sessions, or packets for them.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The workers.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An in-memory NIC.
    #[error("in-memory NIC: {0}")]
    Nic(#[from] MemError),
    /// The classes made here are wrong: a defect.
    #[error(transparent)]
    Classes(#[from] ClassError),
    /// The steering made here is wrong: a defect.
    #[error(transparent)]
    Steering(#[from] SteeringError),
    /// The frames made here are wrong: a defect.
    #[error("a frame is longer than a buffer")]
    Frame,
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bottleneck {
    Worker,
    Link,
}

/// What came of one run.
#[derive(Debug)]
struct Outcome {
    asked: u64,
    lost: u64,
    latencies: Latencies,
    offered: u64,
    served: u64,
    /// The longest that this thread was away from the wires, in nanoseconds.
    away: u64,
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &ControlConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, ControlError> {
    let mut report = Report::new("control", &clock);
    for (bottleneck, name) in [(Bottleneck::Worker, "worker"), (Bottleneck::Link, "link")] {
        let mut outcomes = [Vec::new(), Vec::new()];
        for run in 1..=config.runs {
            for (outcomes, (queue, word)) in outcomes.iter_mut().zip([(true, "with"), (false, "without")]) {
                progress.tell(&format!("{name}: {word} a control queue, {run} of {}", config.runs));
                let mut rig = Rig::start(config.sessions, bottleneck, queue, clock)?;
                let outcome = rig.overload(config.milliseconds * 1_000_000)?;
                rig.engine.stop()?;
                outcomes.push(outcome);
            }
        }
        for (outcomes, queue) in outcomes.iter().zip(["yes", "no"]) {
            add(&mut report, name, queue, outcomes);
        }
        progress.keep(&report);
    }
    report.notes.push(
        "latency_us is from the wire to the wire, over the echoes that were answered (percentile 100: the longest); generator_pause_us is the longest \
         that the thread on the wires was held up meanwhile: no latency can be trusted below it"
            .into(),
    );
    Ok(report)
}

fn add(report: &mut Report, bottleneck: &'static str, queue: &'static str, outcomes: &[Outcome]) {
    let params = [("bottleneck", bottleneck.into()), ("control_queue", queue.into())];
    let mut of = |name, unit, figure: &dyn Fn(&Outcome) -> f64| {
        let runs: Vec<f64> = outcomes.iter().map(figure).collect();
        report.results.push(Measured::of(name, unit, &params, &runs));
    };
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    of("offered_percent", "%", &|o| percent(o.offered, o.served));
    of("data_dropped_percent", "%", &|o| percent(o.offered.saturating_sub(o.served), o.offered));
    of("asked", "echoes", &|o| o.asked as f64);
    of("lost", "echoes", &|o| o.lost as f64);
    of("generator_pause_us", "us", &|o| o.away as f64 / 1e3);
    for (percentile, figure) in [
        (50, (|s| s.p50_ns) as fn(loadgen::latency::LatencySummary) -> u64),
        (99, |s| s.p99_ns),
        (100, |s| s.max_ns),
    ] {
        let [bottleneck, queue] = params.clone();
        let params = [bottleneck, queue, ("percentile", u64::into(percentile))];
        let runs: Vec<f64> = outcomes.iter().map(|o| figure(o.latencies.summary()) as f64 / 1e3).collect();
        report.results.push(Measured::of("latency_us", "us", &params, &runs));
    }
}

/// The UPF, and what is on its wires.
struct Rig {
    engine: Engine,
    ports: Vec<MemNic>,
    n3: MemWire,
    n6: MemWire,
    source: ReplayRx,
    bottleneck: Bottleneck,
    clock: Tsc,
}

impl Rig {
    fn start(sessions: u32, bottleneck: Bottleneck, queue: bool, clock: Tsc) -> Result<Self, ControlError> {
        let own = [UPF_N3.into()];
        let (steering, plan) = if queue {
            (Steering::new(Some(Control::new(own)), Vec::new())?, Plan::standard(own))
        } else {
            let line = Class::new("all", [], Kind::Weighted { weight: 1 }, 1_024);
            (Steering::default(), Plan::new(vec![line], own)?)
        };
        // What is in a transmit ring can't be overtaken: a slow link wants it short.
        let descriptors = if bottleneck == Bottleneck::Link { 256 } else { 2_048 };
        let nic = |mac| {
            let steering = steering.clone();
            MemNic::new(MemConfig {
                mac,
                rss: RssMode::Preset,
                descriptors,
                steering,
                ..MemConfig::default()
            })
        };
        let ((n3_port, n3), (n6_port, n6)) = (nic(path::N3_MAC)?, nic(path::N6_MAC)?);
        let mut ports = vec![n3_port, n6_port];
        let config = EngineConfig { egress: Arc::new(plan), ..EngineConfig::default() };
        let network = path::network().map_err(PathError::Rib)?.fib();
        let mut engine = Engine::start(&mut ports, &config, &datapath::Config::new(network), clock)?;
        let source = ReplayRx::new(establish(&mut engine, sessions, bottleneck)?);
        Ok(Self { engine, ports, n3, n6, source, bottleneck, clock })
    }

    /// The wire that users' packets come from, and the one that they leave to.
    const fn data(&mut self) -> (&mut MemWire, &mut MemWire) {
        match self.bottleneck {
            Bottleneck::Worker => (&mut self.n3, &mut self.n6),
            Bottleneck::Link => (&mut self.n6, &mut self.n3),
        }
    }

    /// What the bottleneck lets through in a second.
    fn capacity(&mut self) -> u64 {
        if self.bottleneck == Bottleneck::Link {
            return LINK_PACKETS_PER_SECOND;
        }
        let (begin, before) =
            (self.clock.now(), self.ports.iter().map(|port| port.stats().tx_packets).sum::<u64>());
        let (mut frames, mut out) = (Vec::with_capacity(BURST), Vec::new());
        let mut elapsed = 0;
        while elapsed < Nanos::SECOND / 4 {
            if frames.is_empty() {
                self.source.rx_burst(&mut frames, BURST);
            }
            let (to, from) = self.data();
            to.offer(&mut frames);
            from.collect(&mut out, 4 * BURST);
            out.clear();
            elapsed = self.clock.now().since(begin);
        }
        let sent = self.ports.iter().map(|port| port.stats().tx_packets).sum::<u64>() - before;
        (sent * Nanos::SECOND / elapsed).max(1)
    }

    /// Twice the capacity for so many nanoseconds, and echo requests with it.
    fn overload(&mut self, nanos: u64) -> Result<Outcome, ControlError> {
        let rate = 2 * self.capacity();
        let echo = echo_request();
        let mut asked: Vec<Option<Nanos>> = vec![None; SEQUENCES];
        let (mut sequence, mut answered) = (0usize, 0u64);
        let mut latencies = Latencies::new();
        let (mut frames, mut out) = (Vec::with_capacity(4 * BURST), Vec::with_capacity(4 * BURST));
        let begin = self.clock.now();
        let (mut last, mut next_echo) = (begin, begin);
        let (mut paced, mut carried) = (begin, begin);
        let (mut offered, mut served, mut away) = (0, 0, 0);
        loop {
            let now = self.clock.now();
            let over = now.since(begin) >= nanos;
            if over && (answered == sequence as u64 || now.since(begin) >= nanos + PATIENCE) {
                break;
            }
            away = away.max(now.since(last));
            last = now;
            if !over {
                let due = due(now, &mut paced, rate, 4 * BURST);
                if due > 0 {
                    self.source.rx_burst(&mut frames, due);
                    offered += due as u64;
                    self.data().0.inject(&mut frames);
                }
                if now >= next_echo && sequence < SEQUENCES {
                    next_echo = now.plus(ECHO_EVERY);
                    let mut frame = MemFrame::copy_of(&echo).ok_or(ControlError::Frame)?;
                    if let Some(place) = frame.bytes_mut().get_mut(SEQUENCE_AT..SEQUENCE_AT + 2) {
                        place.copy_from_slice(&(sequence as u16).to_be_bytes());
                    }
                    if let Some(place) = asked.get_mut(sequence) {
                        *place = Some(self.clock.now());
                    }
                    sequence += 1;
                    frames.push(frame);
                    self.n3.inject(&mut frames);
                }
            }
            // The gNB's link carries so much and no more; otherwise both take all.
            let carries = match self.bottleneck {
                Bottleneck::Link => due(now, &mut carried, LINK_PACKETS_PER_SECOND, 4 * BURST),
                Bottleneck::Worker => 4 * BURST,
            };
            self.n3.collect(&mut out, carries);
            let back = out.len();
            self.n6.collect(&mut out, 4 * BURST);
            served += out.len() as u64;
            let now = self.clock.now();
            for frame in out.drain(..).take(back) {
                if let Some(sequence) = echo_response(frame.bytes()) {
                    served -= 1;
                    if let Some(sent) = asked.get_mut(usize::from(sequence)).and_then(Option::take) {
                        answered += 1;
                        latencies.record(now.since(sent));
                    }
                }
            }
        }
        let asked = sequence as u64;
        Ok(Outcome { asked, lost: asked - answered, latencies, offered, served, away })
    }
}

/// Packets that are due at a rate since `paced`, at most so many; what a pause left undone beyond [`CATCH_UP`] is forgotten.
fn due(now: Nanos, paced: &mut Nanos, rate: u64, most: usize) -> usize {
    if now.since(*paced) > CATCH_UP {
        *paced = Nanos(now.0 - CATCH_UP);
    }
    let packets = (now.since(*paced) * rate / Nanos::SECOND).min(most as u64);
    *paced = paced.plus(packets * Nanos::SECOND / rate);
    packets as usize
}

/// Installs the sessions; packets of all of them, in shuffled order.
fn establish(engine: &mut Engine, sessions: u32, bottleneck: Bottleneck) -> Result<Stream, ControlError> {
    let mut numbering = Numbering::default();
    let mut subscribers = Vec::with_capacity(sessions as usize);
    let mut applied = 0;
    for number in 0..sessions {
        let (place, tunnel, ue) = numbering.assign_to(std::net::IpAddr::from);
        let (shard, rules) = (place.shard, Arc::new(rules(place, tunnel, ue)));
        let (token, transition, query) = (Token(number.into()), Transition::default(), Box::default());
        engine.post(shard, Command::Install { token, rules, transition, query });
        subscribers.push((Subscriber { teid: tunnel.teid, ue }, UE_PORT));
    }
    while applied < sessions {
        engine.flush();
        let mut refused = None;
        engine.drain(|_, event| match event {
            Event::Applied { .. } => applied += 1,
            Event::Refused { .. } => refused = Some(()),
            _ => {}
        });
        if refused.is_some() {
            return Err(PathError::NotInstalled(pfcp::Seid(u64::from(applied))).into());
        }
        std::thread::yield_now();
    }
    path::shuffle(&mut subscribers);
    let uplink = bottleneck == Bottleneck::Worker;
    Ok(path::stream(uplink, subscribers.into_iter()).map_err(PathError::Replay)?)
}

/// The UEs' port.
const UE_PORT: u16 = 40_000;
/// Where GTP-U begins behind Ethernet, IPv4 and UDP headers.
const GTP_AT: usize = 14 + 20 + 8;
/// Where the sequence number is: behind flags, type, length and TEID (TS 29.281 §5.1).
const SEQUENCE_AT: usize = GTP_AT + 8;

fn echo_request() -> Vec<u8> {
    PacketBuilder::new()
        .ethernet(path::N3_MAC, path::GNB_MAC)
        .ipv4(GNB, UPF_N3)
        .udp_without_checksum(GTP_U_PORT, GTP_U_PORT)
        .gtpu_message(MessageType::ECHO_REQUEST, Teid(0))
        .gtpu_sequence(0)
        .build(&[])
}

/// The sequence number, if it is an echo response.
fn echo_response(frame: &[u8]) -> Option<u16> {
    let gtp = frame.get(GTP_AT..)?;
    let response = gtp.get(1) == Some(&MessageType::ECHO_RESPONSE.0);
    let sequence = frame.get(SEQUENCE_AT..)?.first_chunk()?;
    response.then_some(u16::from_be_bytes(*sequence))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn with_a_control_queue_no_echo_is_lost_to_overload() {
        let _alone = crate::crew::alone();
        for bottleneck in [Bottleneck::Worker, Bottleneck::Link] {
            let mut rig = Rig::start(256, bottleneck, true, Tsc::process()).unwrap();
            let outcome = rig.overload(200_000_000).unwrap();
            assert!(outcome.asked > 0 && outcome.lost == 0, "{outcome:?}");
            assert_eq!(outcome.latencies.summary().packets, outcome.asked);
            if bottleneck == Bottleneck::Link {
                assert!(outcome.served < outcome.offered, "{outcome:?}");
            }
            for report in rig.engine.stop().unwrap() {
                assert_eq!(report.counters.balance(), 0);
            }
        }
    }

    #[test]
    fn the_report_sets_both_ways_side_by_side() {
        let _alone = crate::crew::alone();
        let config = ControlConfig { sessions: 64, runs: 1, milliseconds: 100 };
        let report = run(&config, Tsc::process(), &mut crate::progress::Silent).unwrap();
        let picture = crate::compose::figure(&report);
        let titles: Vec<&str> = picture.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["worker", "link"]);
        for bottleneck in ["worker", "link"] {
            let figure = |name, queue: &'static str| {
                let params = [("bottleneck", bottleneck.into()), ("control_queue", queue.into())];
                report.median(name, &params).unwrap()
            };
            assert!(figure("lost", "yes") < 1.0);
            assert!(figure("latency_us", "yes") > 0.0 && figure("asked", "no") > 0.0);
        }
        let link = [("bottleneck", "link".into())];
        assert!(report.median("data_dropped_percent", &link).unwrap() > 0.0);
        println!("{report}");
    }

    #[test]
    fn paces() {
        let _alone = crate::crew::alone();
        let mut paced = Nanos(0);
        let total: usize = (1..=1_000).map(|step| due(Nanos(step * 10_000), &mut paced, 3_000_000, 64)).sum();
        assert!((29_900..=30_000).contains(&total), "{total} in 10 ms at 3 million a second");
        assert_eq!(due(Nanos(Nanos::SECOND), &mut paced, 1_000, usize::MAX), 2, "a pause is forgotten");
    }
}
