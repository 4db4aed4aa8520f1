//! `restart`: how fast sessions leave a process and come back in another one, and what they take in the file.
//!
//! Sessions are established and have packets both ways, so that there is something to write down. Then the UPF is dumped and stopped, and
//! another one restores; that again for each run. After each restart packets of the same sessions pass once more, and are verified.
//! Both processes are this one, one after the other: what a program and its devices take to start is not in it.

use crate::progress::Progress;
use crate::report::{Measured, Report};
use crate::rig::{self, Rig, RigError, Wires};
use api::{Answers, CtlError, Drops, Dump};
use loadgen::facts::{Network, SessionFacts, SessionMix};
use loadgen::habits::Shape;

use loadgen::link::MemLink;
use loadgen::smf::{Smf, SmfConfig, SmfError};
use loadgen::world::{World, WorldConfig, WorldError};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tables::Nanos;
use tables::clock::Tsc;
use upf::{FileError, Saved};

/// Sessions that are sure to have had packets in a second of traffic, on the slowest of machines.
const VISITED_A_SECOND: u32 = 100_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct RestartConfig {
    /// Sessions.
    pub sessions: Vec<u32>,
    /// Restarts.
    pub runs: usize,
    /// Workers before and after.
    pub workers: u16,
    /// Where the file is written: a directory.
    pub directory: PathBuf,
}

impl RestartConfig {
    /// Up to a million sessions.
    pub fn full() -> Self {
        Self { sessions: vec![10_000, 100_000, 1_000_000], runs: 5, ..Self::quick() }
    }

    /// A hundred thousand.
    pub fn quick() -> Self {
        Self { sessions: vec![100_000], runs: 3, workers: 1, directory: std::env::temp_dir() }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// The UPF.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The SMF model.
    #[error("SMF: {0}")]
    Smf(#[from] SmfError),
    /// Traffic.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The dump.
    #[error(transparent)]
    Dump(#[from] CtlError),
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Sessions or packets were lost.
    #[error("after a restart: {0}")]
    Lost(String),
}

/// A file that is gone afterwards.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Each of them is there only while nobody has restored the other.
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(used(&self.0));
    }
}

fn used(path: &Path) -> PathBuf {
    let mut used = path.as_os_str().to_owned();
    used.push(".restored");
    used.into()
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &RestartConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, RestartError> {
    let mut report = Report::new("restart", &clock);
    for &sessions in &config.sessions {
        measure(config, sessions, clock, progress, &mut report)?;
        progress.keep(&report);
    }
    report.notes.push("2 PDR, 2 FAR, 1 QER, 1 URR a session, all of which have had packets".into());
    report.notes.push("dump: from the question to the answer, when the file is on the disk; restore: from the start of a UPF until it receives packets".into());
    Ok(report)
}

fn measure(
    config: &RestartConfig,
    sessions: u32,
    clock: Tsc,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<(), RestartError> {
    let (mut rig, mut wires) = Rig::start(config.workers, sessions)?;
    let network = rig::network(8);
    let mut smf = Smf::bind(SmfConfig {
        mix: SessionMix::BALANCED,
        gnbs: network.gnbs.iter().map(|gnb| gnb.address).collect(),
        upf_n3: IpAddr::V4(rig::UPF_N3),
        shape: Shape { gnb_at_once: true, mbr_kbps: Some((100_000, 100_000)), ..Shape::default() },
        ..SmfConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), rig.n4)
    })?;
    smf.associate()?;
    progress.tell(&format!("{sessions} sessions: establishing"));
    let established = smf.establish_while(sessions, &mut |done| {
        progress.part(done, sessions.into());
        ControlFlow::Continue(())
    })?;
    let all = |what: &str, count: u64| {
        let lost = || RestartError::Lost(format!("{count} of {sessions} sessions {what}"));
        (count == u64::from(sessions)).then_some(()).ok_or_else(lost)
    };
    all("were established", established.accepted)?;
    let facts = smf.facts();
    let path = config.directory.join(format!("millrace-bench-{}.state", std::process::id()));
    let scratch = Scratch(path);
    let file = scratch.0.display().to_string();
    let [mut dumps, mut restores, mut sizes] = [const { Vec::new() }; 3];
    for run in 0..config.runs {
        progress.tell(&format!("{sessions} sessions: traffic before restart {} of {}", run + 1, config.runs));
        traffic(&rig, &facts, wires, &network, clock, run > 0)?;
        progress.tell(&format!("{sessions} sessions: restart {} of {}", run + 1, config.runs));
        let n4 = rig.n4;
        let asked = Instant::now();
        let dumped = rig.backend.answer(Dump { file: file.clone(), stop: true })?;
        let seconds = asked.elapsed().as_secs_f64();
        all("were written", dumped.sessions)?;
        rig.end()?;
        dumps.push(f64::from(sessions) / seconds);
        sizes.push(dumped.bytes as f64 / f64::from(sessions));
        let begun = Instant::now();
        let saved = Saved::open(&scratch.0)?;
        (rig, wires) = Rig::restored(config.workers, sessions, n4, saved)?;
        restores.push(f64::from(sessions) / begun.elapsed().as_secs_f64());
        all("came back", rig.backend.answer(api::Version {})?.sessions)?;
    }
    progress.tell(&format!("{sessions} sessions: traffic afterwards"));
    traffic(&rig, &facts, wires, &network, clock, true)?;
    // The SMF still knows its sessions, and is known.
    let deleted = smf.delete_all()?;
    all("were deleted", deleted.accepted)?;
    let params = [("sessions", u64::from(sessions).into()), ("workers", u64::from(config.workers).into())];
    for (direction, rates) in [("dump", &dumps), ("restore", &restores)] {
        let params = [params[0].clone(), params[1].clone(), ("direction", direction.into())];
        report.results.push(Measured::of("sessions_per_second", "1/s", &params, rates));
    }
    report.results.push(Measured::of("bytes_per_session", "bytes", &params, &sizes));
    rig.stop()?;
    Ok(())
}

/// Packets of all sessions both ways, each of which has to arrive as it was sent. `met`: all workers know the neighbours, also those of
/// an earlier process; else a few packets, some of which may be lost, are first.
fn traffic(
    rig: &Rig,
    facts: &[SessionFacts],
    wires: Wires,
    network: &Network,
    clock: Tsc,
    met: bool,
) -> Result<(), RestartError> {
    let mut links = (MemLink::new(wires.n3, rig::MTU), MemLink::new(wires.n6, rig::MTU));
    let mut time = || clock.now();
    let config = WorldConfig { upf_n6: rig::UPF_N6.to_vec(), ..WorldConfig::default() };
    if !met {
        let slow = WorldConfig { rate: Some(1_000), ..config.clone() };
        let mut world = World::new(links.0, links.1, facts, network, slow, &mut time)?;
        world.run(Nanos::SECOND / 4, &mut time, |_| ControlFlow::Continue(()));
        links = world.into_links();
    }
    let mut world = World::new(links.0, links.1, facts, network, config, &mut time)?;
    let seconds = 1 + facts.len() as u64 / u64::from(VISITED_A_SECOND);
    let report = world.run(seconds * Nanos::SECOND, &mut time, |_| ControlFlow::Continue(()));
    let Some(failure) = report.failures().first().cloned() else { return Ok(()) };
    rig.backend.reports()?;
    let drops = rig.backend.answer(Drops {})?.drops;
    let drops: Vec<_> = drops.iter().map(|line| format!("{} {}", line.packets, line.reason)).collect();
    Err(RestartError::Lost(format!("{failure} ({})", drops.join(", "))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn sessions_come_back_and_their_packets_pass() {
        let config = RestartConfig { sessions: vec![300], runs: 2, workers: 2, ..RestartConfig::quick() };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        assert_eq!(report.results.len(), 3);
        assert!(report.results.iter().all(|result| result.median > 0.0));
    }
}
