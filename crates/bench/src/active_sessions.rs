//! `sessions`: packets a second by the number of sessions, from one to a million, for both models of execution.
//!
//! All sessions are active, in shuffled order: with a thousand everything is in cache, with a million every packet waits for memory.

use crate::axis::grouped;
use crate::chart::{self, Figure, Illustrated, Panel, Series};
use crate::crew::{CrewError, Member, Model, Team};
use crate::path::{self, Numbering, PAYLOAD};
use crate::payload_size::{self, Point};
use crate::progress::Progress;
use crate::report::Report;
use crate::saturated::{Saturated, Sizes};
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct SessionsConfig {
    /// Numbers of sessions.
    pub sessions: Vec<usize>,
    /// Windows of each point.
    pub windows: usize,
    /// Seconds of each window.
    pub seconds: f64,
}

impl SessionsConfig {
    /// From one to a million.
    pub fn full() -> Self {
        Self { sessions: vec![1, 1_000, 16_384, 65_536, 262_144, 1_000_000], windows: 9, seconds: 0.5 }
    }

    /// Fewer, briefly.
    pub fn quick() -> Self {
        Self { sessions: vec![1, 1_000, 65_536, 1_000_000], windows: 5, seconds: 0.1 }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(
    config: &SessionsConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("sessions", &clock);
    for &sessions in &config.sessions {
        let members = Member::several(&mut Numbering::default(), sessions);
        let mut active = members.clone();
        path::shuffle(&mut active);
        for model in Model::BOTH {
            let team = Team::new(model, 1);
            progress.tell(&format!("{sessions} sessions, {}: establishing", model.name()));
            let sizes = Sizes::Payload(PAYLOAD);
            let mut saturated = Saturated::start(&team, &members, &active, sizes, clock, progress)?;
            for uplink in [true, false] {
                progress.tell(&format!("{sessions} sessions, {}", model.name()));
                let flood = saturated.flood(uplink, config.seconds, config.windows, clock)?;
                let point = Point { model, workers: 1, uplink, sizes, active: sessions };
                payload_size::push(&mut report, &point, &team, &flood.rates);
                progress.keep(&report);
                progress.draw(figure(&report, config));
            }
            saturated.stop()?;
        }
    }
    payload_size::compare(&mut report, "sessions");
    report.notes.push(
        "one worker, always full receive queues replayed from memory on the thread that polls them; all sessions are active, in \
         shuffled order; a pipeline has a dispatcher's thread beside its worker"
            .into(),
    );
    let figure = figure(&report, config);
    Ok(Illustrated { report, figure })
}

/// Bars by number of sessions.
fn figure(report: &Report, config: &SessionsConfig) -> Figure {
    let names: Vec<String> = config.sessions.iter().map(|sessions| grouped(&sessions.to_string())).collect();
    let panel = |uplink| {
        let of = |model: Model| {
            let bar = |(place, &active): (usize, &usize)| {
                let point = Point { model, workers: 1, uplink, sizes: Sizes::Payload(PAYLOAD), active };
                chart::Point::of(place as f64, report.find("packets_per_second", &point.params()), 1e-6)
            };
            Series::measured(model.name(), config.sessions.iter().enumerate().map(bar))
        };
        let direction = if uplink { "uplink" } else { "downlink" };
        let axes = ("active sessions", "millions of packets a second");
        Panel::bars(direction, axes, names.clone(), Model::BOTH.into_iter().map(of).collect())
    };
    Figure {
        title: "Throughput by active sessions, 64 B, one worker".into(),
        panels: vec![panel(true), panel(false)],
    }
}
