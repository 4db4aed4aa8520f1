//! `n4`: how many session requests a second the UPF carries out, with many sessions standing, and what a session costs in memory.
//!
//! An SMF model in this process speaks PFCP over loopback UDP with a window of outstanding requests. It needs a processor of its
//! own: its share of each request is part of what is measured here on two cores.

use crate::machine::resident;
use crate::progress::Progress;
use crate::report::{Measured, Report};
use crate::rig::{self, Rig, RigError};
use loadgen::habits::Shape;
use loadgen::smf::{Smf, SmfConfig, SmfError};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct N4Config {
    /// Sessions that stand meanwhile.
    pub kept: Vec<u32>,
    /// Requests of each kind in each run.
    pub requests: u32,
    /// Runs.
    pub runs: usize,
    /// Requests outstanding.
    pub window: usize,
}

impl N4Config {
    /// Up to a million sessions.
    pub fn full() -> Self {
        Self { kept: vec![1_000, 100_000, 1_000_000], requests: 50_000, runs: 5, window: 64 }
    }

    /// A hundred thousand.
    pub fn quick() -> Self {
        Self { kept: vec![100_000], requests: 20_000, runs: 3, window: 64 }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum N4Error {
    /// The UPF.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The SMF model.
    #[error("SMF: {0}")]
    Smf(#[from] SmfError),
    /// Requests were refused or lost, so that the figures would not be those of success.
    #[error("only {accepted} of {requests} requests were accepted: {refusals:?}")]
    NotClean {
        /// Accepted.
        accepted: u64,
        /// Sent.
        requests: u64,
        /// The first refusals.
        refusals: Vec<(u32, String)>,
    },
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &N4Config, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, N4Error> {
    let mut report = Report::new("n4", &clock);
    let most = config.kept.iter().copied().max().unwrap_or(0) + config.requests;
    for &kept in &config.kept {
        // A UPF of its own, so that memory is that of these sessions.
        let (rig, _wires) = Rig::start(1, most)?;
        let mut smf = Smf::bind(SmfConfig {
            gnbs: rig::network(8).gnbs.iter().map(|gnb| gnb.address).collect(),
            upf_n3: IpAddr::V4(rig::UPF_N3),
            shape: Shape { gnb_at_once: true, mbr_kbps: Some((100_000, 100_000)), ..Shape::default() },
            window: config.window,
            ..SmfConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), rig.n4)
        })?;
        smf.associate()?;
        progress.tell(&format!("{kept} sessions: establishing"));
        let before = resident();
        let numbers_before = smf.memory();
        let filled = smf.establish_while(kept, &mut |done| {
            progress.part(done, kept.into());
            ControlFlow::Continue(())
        })?;
        clean(&filled)?;
        let ours = resident().saturating_sub(before).saturating_sub(smf.memory() - numbers_before);
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for run in 0..config.runs {
            progress.tell(&format!("{kept} sessions: run {} of {}", run + 1, config.runs));
            let figures = smf.measure(kept, config.requests)?;
            for (rates, batch) in rates.iter_mut().zip([&figures.establish, &figures.modify, &figures.delete])
            {
                clean(batch)?;
                rates.push(batch.requests_per_second);
            }
        }
        for (request, rates) in ["establish", "modify", "delete"].into_iter().zip(&rates) {
            let params = [
                ("kept", u64::from(kept).into()),
                ("outstanding", (config.window as u64).into()),
                ("request", request.into()),
            ];
            report.results.push(Measured::of("requests_per_second", "1/s", &params, rates));
        }
        let per_session = ours as f64 / f64::from(kept.max(1));
        let params = [("sessions", u64::from(kept).into())];
        report.results.push(Measured::of("bytes_per_session", "bytes", &params, &[per_session]));
        progress.keep(&report);
        drop(smf);
        rig.stop()?;
    }
    report.notes.push("2 PDR, 2 FAR, 1 QER, 1 URR a session; modify moves a session to another gNB".into());
    report.notes.push(
        "bytes_per_session is the growth of the process' resident memory less the SMF model's own tables"
            .into(),
    );
    Ok(report)
}

/// An error unless all requests were accepted.
pub(crate) fn clean(batch: &loadgen::smf::BatchReport) -> Result<(), N4Error> {
    if batch.is_clean() {
        return Ok(());
    }
    Err(N4Error::NotClean {
        accepted: batch.accepted,
        requests: batch.requests,
        refusals: batch.refusals.clone(),
    })
}
