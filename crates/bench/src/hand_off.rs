//! `hand-off`: what it costs that packets come to another worker than their shard's owner.
//!
//! Two workers at least run to completion, and each receive queue always has a full burst ([`crate::saturated`]). None, a quarter, half or
//! all of the packets in each queue are of shards that the next worker owns. The packets are the same all along: between two windows
//! it is the shards that move, for such a port's queues know of no table. In every round each share is measured once, so that
//! what the host does to one it does to its neighbours, and a share's figure is its ratio to none in the same round.

use crate::axis::grouped;
use crate::chart::{Figure, Illustrated, Panel, Point, Series};
use crate::crew::{CrewError, Member, Model, Team};
use crate::path::{self, Numbering, PAYLOAD};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::saturated::{Saturated, Sizes};
use engine::placement::available_cores;
use tables::clock::Tsc;

/// Packets of others' shards, in percent: none comes first, the others are compared with it.
const SHARES: [u64; 4] = [0, 25, 50, 100];

/// What to measure.
#[derive(Clone, Debug)]
pub struct HandOffConfig {
    /// Numbers of sessions, all of them active.
    pub sessions: Vec<usize>,
    /// Rounds.
    pub rounds: usize,
    /// Seconds of each window.
    pub seconds: f64,
}

impl HandOffConfig {
    /// Few sessions, whose packets find everything in cache, and as many as elsewhere.
    pub fn full() -> Self {
        Self { sessions: vec![4_096, 65_536], rounds: 9, seconds: 0.25 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { rounds: 5, seconds: 0.08, ..Self::full() }
    }
}

fn params(sessions: usize, uplink: bool, share: u64, workers: usize) -> Vec<(&'static str, Param)> {
    vec![
        ("direction", if uplink { "uplink" } else { "downlink" }.into()),
        ("handed_off", share.into()),
        ("payload", (PAYLOAD as u64).into()),
        ("sessions", (sessions as u64).into()),
        ("workers", (workers as u64).into()),
    ]
}

/// The owner of a shard, when each worker owns all shards whose packets come to its queue but for this share in percent, which is the
/// next one's.
const fn owner(shard: usize, share: u64, workers: usize) -> usize {
    let (queue, nth) = (shard % workers, (shard / workers) as u64);
    if nth * share % 100 < share { (queue + 1) % workers } else { queue }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(
    config: &HandOffConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("hand-off", &clock);
    let team = Team::new(Model::Rtc, available_cores().len().max(2));
    for &sessions in &config.sessions {
        progress.tell(&format!("{sessions} sessions: establishing"));
        let members = Member::several(&mut Numbering::default(), sessions);
        let mut active = members.clone();
        path::shuffle(&mut active);
        let mut saturated =
            Saturated::start(&team, &members, &active, Sizes::Payload(PAYLOAD), clock, progress)?;
        for uplink in [true, false] {
            progress.tell(&format!("{sessions} sessions, {}", if uplink { "uplink" } else { "downlink" }));
            measure(&mut report, config, &mut saturated, sessions, uplink, &team, clock)?;
            progress.keep(&report);
            progress.draw(figure(&report, config, team.workers));
        }
        saturated.stop()?;
    }
    report.notes.push(format!(
        "{} workers, always full receive queues replayed from memory on the thread that polls them; handed_off: percent of each queue's \
         packets that are of the next worker's shards; rate_to_none: in each round, the rate by the one with none handed off",
        team.workers
    ));
    let figure = figure(&report, config, team.workers);
    Ok(Illustrated { report, figure })
}

/// All shares of one direction, in turn.
fn measure(
    report: &mut Report,
    config: &HandOffConfig,
    saturated: &mut Saturated,
    sessions: usize,
    uplink: bool,
    team: &Team,
    clock: Tsc,
) -> Result<(), CrewError> {
    // By share: packets a second for each worker, the ratio, and shares handed off and dropped.
    let mut found = SHARES.map(|_| [const { Vec::new() }; 4]);
    for _ in 0..config.rounds {
        let mut none = 0.0;
        for (share, found) in SHARES.into_iter().zip(&mut found) {
            saturated.place(|shard| owner(shard, share, team.workers))?;
            let flood = saturated.flood(uplink, config.seconds, 1, clock)?;
            let rate = flood.rates.iter().sum::<f64>() / team.workers as f64;
            none = if share == 0 { rate } else { none };
            let [handed_off, dropped] = flood.shares().map(|share| share * 100.0);
            let figures = [rate, rate / f64::max(none, 1.0), handed_off, dropped];
            found.iter_mut().zip(figures).for_each(|(list, figure)| list.push(figure));
        }
    }
    for (share, [rates, ratios, handed_off, dropped]) in SHARES.into_iter().zip(found) {
        let params = params(sessions, uplink, share, team.workers);
        for (name, unit, runs) in [
            ("packets_per_second_per_core", "1/s", rates),
            ("rate_to_none", "x", ratios),
            ("handed_off_percent", "%", handed_off),
            ("dropped_percent", "%", dropped),
        ] {
            report.results.push(Measured::of(name, unit, &params, &runs));
        }
    }
    Ok(())
}

/// Bars by share.
fn figure(report: &Report, config: &HandOffConfig, workers: usize) -> Figure {
    let names = SHARES.map(|share| format!("{share} %")).to_vec();
    let mut panels = Vec::new();
    for &sessions in &config.sessions {
        for (name, axis, scale) in [
            ("packets_per_second_per_core", "millions of packets a second", 1e-6),
            ("rate_to_none", "of the rate with none handed off", 1.0),
        ] {
            let series = [true, false].map(|uplink| {
                let bar = |(place, share): (usize, u64)| {
                    let found = report.find(name, &params(sessions, uplink, share, workers));
                    Point::of(place as f64, found, scale)
                };
                let bars = SHARES.into_iter().enumerate().map(bar);
                Series::measured(if uplink { "uplink" } else { "downlink" }, bars)
            });
            let title = format!("{} sessions, each of {workers} workers", grouped(&sessions.to_string()));
            panels.push(Panel::bars(title, ("handed off", axis), names.clone(), series.into()));
        }
    }
    Figure { title: "Packets that come to another worker than their owner, 64 B".into(), panels }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn the_share_that_is_handed_off_is_what_it_is_called() {
        let _alone = crate::crew::alone();
        let config = HandOffConfig { sessions: vec![2_048], rounds: 2, seconds: 0.02 };
        let found = run(&config, Tsc::process(), &mut Silent).unwrap();
        let workers = available_cores().len().max(2);
        for uplink in [true, false] {
            for share in SHARES {
                let of = |name| found.report.median(name, &params(2_048, uplink, share, workers)).unwrap();
                assert!(of("packets_per_second_per_core") > 0.0);
                // A busy machine's rings overflow: what was dropped was not handed off.
                let seen = of("handed_off_percent");
                assert!(seen < share as f64 + 3.0, "{share}: {seen}");
                assert!(seen + of("dropped_percent") > share as f64 - 3.0, "{share}: {seen}");
                assert_eq!(of("handed_off_percent") > 0.0, share > 0);
            }
            assert_eq!(found.report.median("rate_to_none", &params(2_048, uplink, 0, workers)), Some(1.0));
        }
        assert!(found.figure.svg().contains("50 %"));
    }

    #[test]
    fn shards_that_are_elsewhere_are_spread_evenly() {
        for workers in [2, 3, 4] {
            for share in SHARES {
                let away = |shard: &usize| owner(*shard, share, workers) != shard % workers;
                let count = (0..session::SHARDS).filter(away).count() as f64;
                let expected = session::SHARDS as f64 * share as f64 / 100.0;
                assert!((count - expected).abs() <= 2.0 * workers as f64, "{workers} {share}: {count}");
            }
        }
    }
}
