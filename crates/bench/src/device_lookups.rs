//! `device-lookups`: what it costs that bursts wait for a device which looks up their sessions.
//!
//! One worker runs to completion on a receive queue that always has a full burst of downlink packets ([`crate::saturated`]), whose UE
//! addresses are looked up. It does that by itself, or asks a device in memory ([`Device`]), whose answers are there at once or so many
//! microseconds later. In every round each is measured once, and its figure is the ratio to the worker by itself in the same round.
//!
//! The model answers in the worker's own thread. So what it costs at latency 0 is questions, answers, and verifying these; what it
//! costs more with latency is the waiting. What an accelerator would bring is not in it.

use crate::crew::{CrewError, Member, Model, Team};
use crate::path::{self, Numbering, PAYLOAD};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::saturated::{Saturated, Sizes};
use datapath::lookups::{Model as Device, Trouble};
use engine::{MOST_UNDER_WAY, OpenLookups};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tables::clock::Tsc;

/// Microseconds until an answer is there, by name.
const LATENCIES: [(u64, &str); 3] = [(0, "0"), (5, "5"), (20, "20")];

/// What to measure.
#[derive(Clone, Debug)]
pub struct DeviceLookupsConfig {
    /// Numbers of sessions, all of them active.
    pub sessions: Vec<usize>,
    /// Rounds.
    pub rounds: usize,
    /// Seconds of each window.
    pub seconds: f64,
}

impl DeviceLookupsConfig {
    /// Sessions that fit the cache, and ever fewer of which do.
    pub fn full() -> Self {
        Self { sessions: vec![4_096, 65_536, 1_000_000], rounds: 7, seconds: 0.5 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { sessions: vec![65_536], rounds: 3, seconds: 0.2 }
    }
}

fn params(sessions: usize, latency: Option<(u64, &'static str)>) -> Vec<(&'static str, Param)> {
    vec![
        ("direction", "downlink".into()),
        ("latency_us", latency.map_or("none", |(_, name)| name).into()),
        ("payload", (PAYLOAD as u64).into()),
        ("sessions", (sessions as u64).into()),
    ]
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(
    config: &DeviceLookupsConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Report, CrewError> {
    let mut report = Report::new("device-lookups", &clock);
    let devices = || std::iter::once(None).chain(LATENCIES.map(Some));
    for &sessions in &config.sessions {
        let members = Member::several(&mut Numbering::default(), sessions);
        let mut active = members.clone();
        path::shuffle(&mut active);
        // By device: packets a second, the ratio to none, percent of bursts that were answered, and how long these waited.
        let mut found = vec![[const { Vec::new() }; 4]; devices().count()];
        for round in 1..=config.rounds {
            let mut none = 0.0;
            for (latency, found) in devices().zip(&mut found) {
                progress.tell(&format!(
                    "{sessions} sessions, round {round}, latency {}",
                    latency.map_or("none", |(_, name)| name)
                ));
                let open = latency.map(|(latency, _)| -> OpenLookups {
                    let latency = AtomicU64::new(latency * 1_000);
                    let trouble = Arc::new(Trouble { latency, ..Trouble::default() });
                    let room = 2 * MOST_UNDER_WAY;
                    Arc::new(move |_| Some(Box::new(Device::new(2 * sessions, room, Arc::clone(&trouble)))))
                });
                let team = Team::new(Model::Rtc, 1).asking(open);
                let sizes = Sizes::Payload(PAYLOAD);
                let mut saturated = Saturated::start(&team, &members, &active, sizes, clock, progress)?;
                let flood = saturated.flood(false, config.seconds, 1, clock)?;
                let rate = flood.rates.iter().sum::<f64>();
                none = if latency.is_none() { rate } else { none };
                let reports = saturated.stop()?;
                let of = reports.first().and_then(|report| report.lookups).unwrap_or_default();
                let bursts = (of.answered + of.late + of.interrupted + of.refused).max(1) as f64;
                let wait = of.waited as f64 / 1_000.0 / of.answered.max(1) as f64;
                let figures = [rate, rate / f64::max(none, 1.0), of.answered as f64 * 100.0 / bursts, wait];
                found.iter_mut().zip(figures).for_each(|(list, figure)| list.push(figure));
            }
        }
        for (latency, [rates, ratios, answered, waits]) in devices().zip(found) {
            let params = params(sessions, latency);
            report.results.push(Measured::of("packets_per_second", "1/s", &params, &rates));
            report.results.push(Measured::of("rate_to_none", "x", &params, &ratios));
            if latency.is_some() {
                report.results.push(Measured::of("answered_percent", "%", &params, &answered));
                report.results.push(Measured::of("wait_us", "us", &params, &waits));
            }
        }
        progress.keep(&report);
    }
    report.notes.push(
        "one worker, always a full receive queue replayed from memory; latency_us: none, the worker looks up by itself; else a device in \
         memory answers so much later, in the worker's own thread"
            .into(),
    );
    Ok(report)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn a_worker_forwards_whoever_looks_up() {
        let _alone = crate::crew::alone();
        let config = DeviceLookupsConfig { sessions: vec![1_024], rounds: 1, seconds: 0.02 };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for latency in std::iter::once(None).chain(LATENCIES.map(Some)) {
            assert!(report.median("packets_per_second", &params(1_024, latency)).unwrap() > 0.0);
        }
        assert_eq!(report.median("rate_to_none", &params(1_024, None)), Some(1.0));
    }
}
