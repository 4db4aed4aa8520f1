//! The whole of Millrace in one process: an SMF that speaks PFCP over loopback, gNBs, UEs and a data network on in-memory
//! NICs, and the UPF between them. Every packet is accounted for, and a sample of them compared byte by byte.

use crate::machine::Machine;
use crate::rig::{self, Rig, RigError};
use api::{Answers, DropLine, Drops};
use engine::WorkerReport;
use loadgen::facts::SessionMix;
use loadgen::habits::Shape;
use loadgen::imix::SizeProfile;
use loadgen::link::MemLink;
use loadgen::smf::{BatchReport, Smf, SmfConfig, SmfError};
use loadgen::world::{DirectionReport, Progress, TrafficReport, World, WorldConfig, WorldError};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tables::Nanos;
use tables::clock::Tsc;

/// gNBs that the sessions are spread over.
const GNBS: u16 = 8;

/// What to show.
#[derive(Clone, Debug)]
pub struct DemoConfig {
    /// Seconds of traffic.
    pub seconds: u64,
    /// PDU sessions.
    pub sessions: u32,
    /// Workers of the UPF.
    pub workers: u16,
    /// Packet sizes.
    pub profile: SizeProfile,
    /// Packets of each direction on their way at most.
    pub window: u32,
    /// Packets per second of each direction; `None`: as many as the window lets through.
    pub rate: Option<u64>,
    /// One packet of this many is compared byte by byte.
    pub sample_every: u32,
}

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// The UPF serves N4 here.
    Serving(SocketAddr),
    /// So many of so many sessions have been asked for.
    Establishing(u64, u64),
    /// Sessions stand.
    Established(&'a BatchReport),
    /// Traffic flows.
    Traffic(&'a Progress),
    /// So many of so many sessions are being deleted.
    Deleting(u64, u64),
}

/// How it went.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// Where.
    pub machine: Machine,
    /// Sessions established.
    pub establishment: BatchReport,
    /// What was sent and what arrived.
    pub traffic: TrafficReport,
    /// TSC cycles of the UPF per uplink packet: receive, process, send.
    pub uplink_cycles_per_packet: f64,
    /// Likewise downlink.
    pub downlink_cycles_per_packet: f64,
    /// Why the UPF dropped packets.
    pub drops: Vec<DropLine>,
    /// Sessions deleted at the end; none if it was ended early.
    pub deletion: Option<BatchReport>,
    /// Ended early, by whoever watched.
    pub interrupted: bool,
    /// What went wrong; empty: nothing was lost and nothing was wrong.
    pub failures: Vec<String>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The UPF.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The SMF model.
    #[error("SMF: {0}")]
    Smf(#[from] SmfError),
    /// gNBs, UEs and the data network.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Ended by whoever watched, before there was traffic.
    #[error(
        "interrupted when {established} of {sessions} sessions were established; there was no traffic yet"
    )]
    Interrupted {
        /// Sessions that stood.
        established: u64,
        /// Sessions that were wanted.
        sessions: u32,
    },
    /// The thread that answers the UPF's N4 requests.
    #[error("the SMF's thread died")]
    SmfDied,
}

/// Runs the demo. `tell` is called as it goes on, and can end it early. Then sessions that stand are not deleted, which may take as long as
/// it took to establish them: they end with the UPF.
pub fn run(
    config: &DemoConfig,
    clock: Tsc,
    mut tell: impl FnMut(Stage<'_>) -> ControlFlow<()>,
) -> Result<DemoReport, DemoError> {
    let (rig, wires) = Rig::start(config.workers, config.sessions.max(1))?;
    let mut interrupted = tell(Stage::Serving(rig.n4)).is_break();
    let network = rig::network(GNBS);
    let mut smf = Smf::bind(SmfConfig {
        mix: SessionMix::BALANCED,
        gnbs: network.gnbs.iter().map(|gnb| gnb.address).collect(),
        upf_n3: IpAddr::V4(rig::UPF_N3),
        shape: Shape { gnb_at_once: true, ..Shape::default() },
        ..SmfConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), rig.n4)
    })?;
    smf.associate()?;
    let wanted = u64::from(config.sessions);
    let establishment = smf.establish_while(config.sessions, &mut |asked| {
        interrupted = interrupted || tell(Stage::Establishing(asked, wanted)).is_break();
        if interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if interrupted {
        let (established, sessions) = (establishment.accepted, config.sessions);
        return Err(DemoError::Interrupted { established, sessions });
    }
    // This says that there is traffic now: who interrupts from here on interrupts that, which hears of it soon.
    let _ = tell(Stage::Established(&establishment));

    // The UPF sends heartbeats and usage reports at any time.
    let done = Arc::new(AtomicBool::new(false));
    let facts = smf.facts();
    let serving = serve(smf, done.clone());
    let world = WorldConfig {
        profile: config.profile.clone(),
        window: config.window,
        rate: config.rate,
        verifier: loadgen::verify::VerifierConfig {
            sample_every: config.sample_every,
            ..loadgen::verify::VerifierConfig::default()
        },
        upf_n6: rig::UPF_N6.to_vec(),
        ..WorldConfig::default()
    };
    let (n3, n6) = (MemLink::new(wires.n3, rig::MTU), MemLink::new(wires.n6, rig::MTU));
    let mut time = || clock.now();
    let mut world = World::new(n3, n6, &facts, &network, world, &mut time)?;
    let traffic = world.run(config.seconds * Nanos::SECOND, &mut time, |progress| {
        let answer = tell(Stage::Traffic(progress));
        interrupted |= answer.is_break();
        answer
    });

    done.store(true, Ordering::Relaxed);
    let mut smf = serving.join().map_err(|_| DemoError::SmfDied)??;
    // When all that was counted is published.
    let drops = rig.backend.reports().and_then(|_| rig.backend.answer(Drops {})).unwrap_or_default().drops;
    let standing = smf.established().len() as u64;
    let deletion = if interrupted {
        None
    } else {
        let deleted = smf.delete_while(&mut |asked| {
            interrupted |= tell(Stage::Deleting(asked, standing)).is_break();
            if interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Some(deleted).filter(|_| !interrupted)
    };
    if deletion.is_some() {
        smf.release()?;
    }
    // Whoever ended it early doesn't want to wait until everything is taken down: the process ends.
    let reports = if interrupted { rig.backend.reports().unwrap_or_default() } else { rig.stop()? };
    let mut failures = traffic.failures();
    for (what, batch) in [("established", Some(&establishment)), ("deleted", deletion.as_ref())] {
        if let Some(batch) = batch.filter(|batch| !batch.is_clean()) {
            let BatchReport { requests, accepted, .. } = batch;
            failures.push(format!("{accepted} of {requests} sessions were {what}: {:?}", batch.refusals));
        }
    }
    if !interrupted {
        failures.extend(imbalances(&reports));
    }
    Ok(DemoReport {
        machine: Machine::read(&clock),
        establishment,
        traffic,
        uplink_cycles_per_packet: cycles(&reports, 0, &clock),
        downlink_cycles_per_packet: cycles(&reports, 1, &clock),
        drops,
        deletion,
        interrupted,
        failures,
    })
}

fn serve(mut smf: Smf, done: Arc<AtomicBool>) -> std::thread::JoinHandle<Result<Smf, SmfError>> {
    std::thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            smf.serve(Duration::from_millis(100))?;
        }
        Ok(smf)
    })
}

/// Counters that don't add up.
fn imbalances(reports: &[WorkerReport]) -> impl Iterator<Item = String> + '_ {
    reports.iter().filter(|report| report.counters.balance() != 0).map(|report| {
        format!("worker {}: {} frames unaccounted for", report.worker, report.counters.balance())
    })
}

/// TSC cycles per packet of one port, over all workers.
fn cycles(reports: &[WorkerReport], port: usize, clock: &Tsc) -> f64 {
    let loads = || reports.iter().filter_map(|report| report.ports.get(port));
    let packets: u64 = loads().map(|load| load.packets).sum();
    let nanos: u64 = loads().map(|load| load.nanos).sum();
    nanos as f64 * clock.hz() as f64 / 1e9 / packets.max(1) as f64
}

/// A row of the table: what it shows of a direction.
type Figure<'a> = &'a dyn Fn(&DirectionReport) -> String;

impl fmt::Display for DemoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let traffic = &self.traffic;
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "{} sessions established at {:.0}/s over N4; {} for {:.1} s",
            self.establishment.accepted,
            self.establishment.requests_per_second,
            traffic.profile,
            traffic.seconds
        )?;
        writeln!(f)?;
        writeln!(f, "{:22} {:>14} {:>14}", "", "uplink", "downlink")?;
        let mut row = |name: &str, up: String, down: String| writeln!(f, "{name:22} {up:>14} {down:>14}");
        let both = |figure: &dyn Fn(&DirectionReport) -> String| {
            (figure(&traffic.uplink), figure(&traffic.downlink))
        };
        let rows: [(&str, Figure<'_>); 9] = [
            ("packets/s", &|d| format!("{:.0}", d.packets_per_second)),
            ("Gbit/s (inner IP)", &|d| format!("{:.2}", d.bits_per_second / 1e9)),
            ("packets sent", &|d| d.sent_packets.to_string()),
            ("lost", &|d| d.lost.to_string()),
            ("reordered", &|d| d.received.reordered.to_string()),
            ("wrong", &|d| d.received.faulty.to_string()),
            ("latency p50", &|d| micros(d.latency.p50_ns)),
            ("latency p99", &|d| micros(d.latency.p99_ns)),
            ("latency p99.9", &|d| micros(d.latency.p999_ns)),
        ];
        row(
            "cycles/packet",
            format!("{:.0}", self.uplink_cycles_per_packet),
            format!("{:.0}", self.downlink_cycles_per_packet),
        )?;
        for (name, figure) in rows {
            let (up, down) = both(figure);
            row(name, up, down)?;
        }
        writeln!(f)?;
        for drop in &self.drops {
            writeln!(f, "dropped as {}: {} packets. {}", drop.reason, drop.packets, drop.meaning)?;
        }
        if self.interrupted {
            writeln!(f, "Interrupted: these are the figures of the time until then.")?;
        }
        if self.failures.is_empty() {
            writeln!(f, "Nothing was lost, and every packet that was looked at was right.")
        } else {
            self.failures.iter().try_for_each(|failure| writeln!(f, "FAILED: {failure}"))
        }
    }
}

fn micros(nanos: u64) -> String {
    format!("{:.1} us", nanos as f64 / 1e3)
}
