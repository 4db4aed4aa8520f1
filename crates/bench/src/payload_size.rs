//! `payload-size`: packets a second by size of payload, both directions, for both models of execution.
//!
//! What a model costs shows in packets a second **per core used**: a pipeline's dispatcher takes a core too. The published
//! experiment counts a single worker core and leaves the master core out; the note gives both ratios.

use crate::axis::grouped;
use crate::chart::{self, Figure, Illustrated, Panel, Series};
use crate::crew::{CrewError, Member, Model, Team};
use crate::path::{self, Numbering};
use crate::progress::Progress;
use crate::published;
use crate::report::{Measured, Param, Report};
use crate::saturated::{Saturated, Sizes};
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct PayloadSizeConfig {
    /// Sessions installed, and those that have packets.
    pub sessions: usize,
    /// Of those, the ones that packets come for.
    pub active: usize,
    /// Octets of UDP payload.
    pub payloads: Vec<usize>,
    /// Windows of each point.
    pub windows: usize,
    /// Seconds of each window.
    pub seconds: f64,
}

impl PayloadSizeConfig {
    /// As published, with shorter runs.
    pub fn full() -> Self {
        let payloads = vec![64, 128, 256, 512, 768, 1_024];
        Self { sessions: 100_000, active: 65_536, payloads, windows: 9, seconds: 0.5 }
    }

    /// Three sizes, briefly.
    pub fn quick() -> Self {
        Self { payloads: vec![64, 256, 1_024], windows: 5, seconds: 0.1, ..Self::full() }
    }
}

/// What one point is of.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// How packets reach workers.
    pub model: Model,
    /// Threads that own shards.
    pub workers: usize,
    /// Direction.
    pub uplink: bool,
    /// Sizes.
    pub sizes: Sizes,
    /// Sessions that packets come for.
    pub active: usize,
}

impl Point {
    /// As results name it.
    pub fn params(&self) -> Vec<(&'static str, Param)> {
        let payload = match self.sizes {
            Sizes::Payload(payload) => (payload as u64).into(),
            Sizes::Imix => "imix".into(),
        };
        vec![
            ("direction", if self.uplink { "uplink" } else { "downlink" }.into()),
            ("model", self.model.name().into()),
            ("payload", payload),
            ("sessions", (self.active as u64).into()),
            ("workers", (self.workers as u64).into()),
        ]
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(
    config: &PayloadSizeConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("payload-size", &clock);
    let members = Member::several(&mut Numbering::default(), config.sessions);
    let mut active = members.clone();
    path::shuffle(&mut active);
    active.truncate(config.active);
    for &payload in &config.payloads {
        for model in Model::ALL {
            let team = Team::new(model, 1);
            progress.tell(&format!("{payload} B, {}: establishing", model.name()));
            let sizes = Sizes::Payload(payload);
            let mut saturated = Saturated::start(&team, &members, &active, sizes, clock, progress)?;
            for uplink in [true, false] {
                progress.tell(&format!("{payload} B, {}", model.name()));
                let flood = saturated.flood(uplink, config.seconds, config.windows, clock)?;
                let point = Point { model, workers: 1, uplink, sizes, active: active.len() };
                push(&mut report, &point, &team, &flood.rates);
                progress.keep(&report);
                progress.draw(figure(&report, config));
            }
            saturated.stop()?;
        }
    }
    compare(&mut report, "payload");
    report.notes.push(format!(
        "one worker, always full receive queues replayed from memory on the thread that polls them; {} sessions installed, {} of \
         them active in shuffled order; a pipeline has a dispatcher's thread beside its worker, which sends itself, or returns packets to be \
         sent (pipeline-returning)",
        config.sessions, config.active
    ));
    let figure = figure(&report, config);
    Ok(Illustrated { report, figure })
}

/// What one point came to: all packets a second, and for each core.
pub fn push(report: &mut Report, point: &Point, team: &Team, rates: &[f64]) {
    let params = point.params();
    report.results.push(Measured::of("packets_per_second", "1/s", &params, rates));
    let per_core: Vec<f64> = rates.iter().map(|rate| rate / team.threads() as f64).collect();
    report.results.push(Measured::of("packets_per_second_per_core", "1/s", &params, &per_core));
}

/// How many times what a pipeline does run-to-completion does, for each core used, where both were measured.
pub fn compare(report: &mut Report, varies: &'static str) {
    let name = "packets_per_second_per_core";
    let is_of = |result: &&Measured, model: Model| result.params.get("model") == Some(&model.name().into());
    let ratio = |pipeline: &Measured| {
        let mut wanted: Vec<_> = pipeline.params.clone().into_iter().collect();
        wanted.iter_mut().filter(|(key, _)| *key == "model").for_each(|(_, model)| *model = "rtc".into());
        let rtc = report.median(name, &wanted)?;
        let kept = |(key, _): &(&&'static str, &Param)| ["direction", "model", varies].contains(*key);
        let params: Vec<_> =
            pipeline.params.iter().filter(kept).map(|(key, value)| (*key, value.clone())).collect();
        (pipeline.median > 0.0)
            .then(|| Measured::of("rtc_to_pipeline", "x", &params, &[rtc / pipeline.median]))
    };
    let others = report.results.iter().filter(|result| result.name == name && !is_of(result, Model::Rtc));
    let ratios: Vec<Measured> = others.filter_map(ratio).collect();
    report.results.extend(ratios);
}

/// Bars by size: millions of packets, and gigabits with headers, a second, and what run-to-completion does of what pipelines do.
fn figure(report: &Report, config: &PayloadSizeConfig) -> Figure {
    let names: Vec<String> = config.payloads.iter().map(|payload| grouped(&payload.to_string())).collect();
    let point = |model, payload, uplink| Point {
        model,
        workers: 1,
        uplink,
        sizes: Sizes::Payload(payload),
        active: config.active,
    };
    let places = || config.payloads.iter().enumerate().map(|(place, &payload)| (place as f64, payload));
    let mut panels = Vec::new();
    for (unit, axis) in [("Mpps", "millions of packets a second"), ("Gbps", "Gbit/s, headers included")] {
        for uplink in [true, false] {
            let of = |model: Model| {
                let bar = |(place, payload)| {
                    // As they leave: a tunnel downlink.
                    let octets = Sizes::Payload(payload).octets(!uplink);
                    let scale = if unit == "Mpps" { 1e-6 } else { 8e-9 * octets };
                    let found = report.find("packets_per_second", &point(model, payload, uplink).params());
                    chart::Point::of(place, found, scale)
                };
                Series::measured(model.name(), places().map(bar))
            };
            let mut series: Vec<Series> = Model::ALL.into_iter().map(of).collect();
            if unit == "Gbps" {
                let full = places().filter(|(_, payload)| *payload == published::FULL_LINK);
                series.push(Series::published(
                    "the link",
                    published::READ,
                    full.map(|(place, _)| (place, published::LINK)),
                ));
            }
            let direction = if uplink { "uplink" } else { "downlink" };
            panels.push(Panel::bars(direction, ("octets of payload", axis), names.clone(), series));
        }
    }
    for uplink in [true, false] {
        let rate =
            |model, payload| report.median("packets_per_second", &point(model, payload, uplink).params());
        let of = |pipeline: Model| {
            let ratio = |(place, payload)| {
                let ratio = rate(Model::Rtc, payload).zip(rate(pipeline, payload).filter(|rate| *rate > 0.0));
                (place, ratio.map(|(rtc, pipeline)| rtc / pipeline))
            };
            Series::measured(pipeline.name(), places().map(ratio))
        };
        let (least, most) = published::RTC_TO_PIPELINE;
        let read = places().map(|(place, _)| chart::Point::between(place, least, most));
        let series = vec![
            of(Model::Pipeline),
            of(Model::PipelineReturning),
            Series::published("", published::READ, read),
        ];
        let direction = if uplink { "uplink" } else { "downlink" };
        let title = format!("{direction}: rtc by pipelines, per worker (a dispatcher isn't counted)");
        panels.push(Panel::bars(title, ("octets of payload", "times the packets"), names.clone(), series));
    }
    Figure { title: "Throughput by payload size, one worker".into(), panels }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_point_has_its_figures_and_its_bars() {
        let _alone = crate::crew::alone();
        let config =
            PayloadSizeConfig { sessions: 100, active: 64, payloads: vec![1_024], windows: 1, seconds: 0.15 };
        let found = run(&config, Tsc::process(), &mut Silent).unwrap();
        for model in Model::ALL {
            for uplink in [true, false] {
                for sizes in [1_024].map(Sizes::Payload) {
                    let point = Point { model, workers: 1, uplink, sizes, active: 64 };
                    let rate = found.report.median("packets_per_second", &point.params()).unwrap();
                    let per_core =
                        found.report.median("packets_per_second_per_core", &point.params()).unwrap();
                    assert!(rate >= per_core && per_core > 0.0);
                }
            }
        }
        assert_eq!(found.figure.panels.len(), 6);
        assert!(found.figure.svg().contains("1,024"));
    }

    #[test]
    fn the_ratio_is_of_cores() {
        let clock = Tsc::process();
        let mut report = Report::new("payload-size", &clock);
        for (model, rate) in [("rtc", 3.0), ("pipeline", 1.5)] {
            let params = [("model", model.into()), ("direction", "uplink".into()), ("payload", 64.into())];
            report.results.push(Measured::of("packets_per_second_per_core", "1/s", &params, &[rate]));
        }
        compare(&mut report, "payload");
        let ratio =
            report.median("rtc_to_pipeline", &[("payload", 64.into()), ("direction", "uplink".into())]);
        assert_eq!(ratio, Some(2.0));
    }
}
