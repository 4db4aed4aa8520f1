//! `cores`: packets a second by number of workers, with small packets and with a mix, for both models of execution.
//!
//! Measured with as many threads as there are cores. Beside them run as many independent copies of one worker, which share nothing but
//! the machine: what they come to together is what the host can give, and two threads of one core give less than two
//! cores. Beyond, and dashed in the picture, is arithmetic:
//!
//! - run-to-completion: what one worker did when all cores were busy, times the workers;
//! - pipeline with one dispatcher: the lesser of what the dispatcher can pass on, and what one worker can take, times the workers,
//!   each as measured per second in which the thread had something to do.
//!
//! The arithmetic knows nothing of caches and memory that more cores would share.

use crate::chart::{self, Figure, Illustrated, Panel, Series};
use crate::crew::{CrewError, Member, Model, Team};
use crate::path::{self, Numbering};
use crate::payload_size::{self, Point};
use crate::progress::Progress;
use crate::published::{self, LINK};
use crate::report::{Measured, Param, Report};
use crate::saturated::{Flood, Saturated, Sizes};
use engine::placement::available_cores;
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct CoresConfig {
    /// Sessions, all of them active.
    pub sessions: usize,
    /// Sizes of packets.
    pub sizes: Vec<Sizes>,
    /// Workers up to which is calculated what can't be measured.
    pub workers: usize,
    /// Windows of each point.
    pub windows: usize,
    /// Seconds of each window.
    pub seconds: f64,
}

impl CoresConfig {
    /// As published, with shorter runs.
    pub fn full() -> Self {
        let sizes = vec![Sizes::Payload(64), Sizes::Imix];
        Self { sessions: 65_536, sizes, workers: 6, windows: 9, seconds: 0.5 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { windows: 5, seconds: 0.1, ..Self::full() }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &CoresConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("cores", &clock);
    let members = Member::several(&mut Numbering::default(), config.sessions);
    let mut active = members.clone();
    path::shuffle(&mut active);
    let cores = available_cores();
    for &sizes in &config.sizes {
        for model in Model::BOTH {
            for workers in 1..=config.workers {
                let team = Team::new(model, workers);
                // A single worker is measured whatever the machine has: there is nothing to calculate from otherwise.
                if team.threads() > cores.len() && workers > 1 {
                    break;
                }
                progress.tell(&format!("{}, {workers} workers", model.name()));
                let mut saturated = Saturated::start(&team, &members, &active, sizes, clock, progress)?;
                for uplink in [true, false] {
                    let flood = saturated.flood(uplink, config.seconds, config.windows, clock)?;
                    let point = Point { model, workers, uplink, sizes, active: active.len() };
                    payload_size::push(&mut report, &point, &team, &flood.rates);
                    let next = Team::new(model, workers + 1);
                    if next.threads() > cores.len() {
                        extrapolate(&mut report, config, &point, &flood);
                    }
                }
                saturated.stop()?;
                progress.keep(&report);
                progress.draw(figure(&report, config, cores.len()));
            }
        }
        progress.tell("independent copies");
        copies(&mut report, config, (&members, &active), sizes, &cores, clock, progress)?;
        progress.keep(&report);
    }
    speedups(&mut report);
    report.notes.push(format!(
        "{} sessions, all active; always full receive queues replayed from memory on the thread that polls them; model copies: as many \
         independent single workers at once as there are cores, the host's own ceiling",
        config.sessions
    ));
    report.notes.push(
        "calculated=yes: not measured but arithmetic from what one thread did while all cores were busy (run-to-completion: times the \
         workers; pipeline: the lesser of one dispatcher and the workers); it knows nothing of shared caches, memory or links"
            .into(),
    );
    let figure = figure(&report, config, cores.len());
    Ok(Illustrated { report, figure })
}

/// What more workers than can be measured would come to.
fn extrapolate(report: &mut Report, config: &CoresConfig, measured: &Point, flood: &Flood) {
    let middle = Measured::of("", "", &[], &flood.rates).median;
    let dispatchers = Team::new(measured.model, measured.workers).dispatchers();
    for workers in measured.workers + 1..=config.workers {
        let rate = match dispatchers {
            0 => Some(middle / measured.workers as f64 * workers as f64),
            dispatchers => flood
                .limit(0)
                .zip(flood.limit(dispatchers))
                .map(|(dispatcher, worker)| (dispatcher * dispatchers as f64).min(worker * workers as f64)),
        };
        let mut params = Point { workers, ..*measured }.params();
        params.push(("calculated", "yes".into()));
        report.results.extend(rate.map(|rate| Measured::of("packets_per_second", "1/s", &params, &[rate])));
    }
}

/// One worker on each core, each with ports and sessions of its own.
fn copies(
    report: &mut Report,
    config: &CoresConfig,
    (members, active): (&[Member], &[Member]),
    sizes: Sizes,
    cores: &[usize],
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), CrewError> {
    let mut copies = Vec::with_capacity(cores.len());
    for core in cores {
        let team = Team::on(Model::Rtc, 1, &[*core]);
        copies.push(Saturated::start(&team, members, active, sizes, clock, progress)?);
    }
    for uplink in [true, false] {
        let mut sums = vec![0.0; config.windows];
        for watched in 0..copies.len() {
            copies.iter().for_each(|copy| copy.open(uplink));
            if let Some(copy) = copies.get_mut(watched) {
                let flood = copy.flood(uplink, config.seconds, config.windows, clock)?;
                sums.iter_mut().zip(flood.rates).for_each(|(sum, rate)| *sum += rate);
            }
        }
        copies.iter().for_each(Saturated::close);
        let point = Point { model: Model::Rtc, workers: cores.len(), uplink, sizes, active: active.len() };
        let mut params = point.params();
        params.iter_mut().filter(|(key, _)| *key == "model").for_each(|(_, model)| *model = "copies".into());
        report.results.push(Measured::of("packets_per_second", "1/s", &params, &sums));
    }
    copies.into_iter().try_for_each(|copy| copy.stop().map(|_| ()))
}

/// How many times one worker's rate more of them came to, and copies.
fn speedups(report: &mut Report) {
    let name = "packets_per_second";
    let measured = |result: &&Measured| result.name == name && !result.params.contains_key("calculated");
    let ratios: Vec<Measured> = report
        .results
        .iter()
        .filter(measured)
        .filter(|result| result.params.get("workers") != Some(&1.into()))
        .filter_map(|result| {
            let mut wanted = result.params.clone();
            wanted.insert("workers", 1.into());
            if result.params.get("model") == Some(&"copies".into()) {
                wanted.insert("model", "rtc".into());
            }
            let one = report.median(name, &wanted.into_iter().collect::<Vec<_>>())?;
            let params: Vec<(&'static str, Param)> = result.params.clone().into_iter().collect();
            (one > 0.0).then(|| Measured::of("speedup", "x", &params, &[result.median / one]))
        })
        .collect();
    report.results.extend(ratios);
}

/// Gigabits a second over workers.
fn figure(report: &Report, config: &CoresConfig, cores: usize) -> Figure {
    let mut panels = Vec::new();
    for &sizes in &config.sizes {
        for uplink in [true, false] {
            let gigabit = 8e-9 * sizes.octets(!uplink);
            let mut series = Vec::new();
            for model in Model::BOTH {
                let line = |calculated: bool| {
                    let found = (1..=config.workers).filter_map(|workers| {
                        let params =
                            Point { model, workers, uplink, sizes, active: config.sessions }.params();
                        let mut results = report.all("packets_per_second", &params);
                        let result =
                            results.find(|result| result.params.contains_key("calculated") == calculated)?;
                        Some(chart::Point::of(workers as f64, Some(result), gigabit))
                    });
                    found.collect::<Vec<_>>()
                };
                let (measured, mut calculated) = (line(false), line(true));
                // It goes on from where measuring ended.
                let last = measured.last().map(|point| chart::Point { spread: None, ..*point });
                if !calculated.is_empty() {
                    calculated.splice(0..0, last);
                }
                series.push(Series::measured(model.name(), measured));
                series.push(Series::calculated(model.name(), calculated));
                let filled = published::cores_for_link(model, sizes, uplink).map(|n| (n as f64, LINK));
                series.push(Series::published(model.name(), published::READ, filled));
            }
            let copies = Point { model: Model::Rtc, workers: cores, uplink, sizes, active: config.sessions };
            let mut params = copies.params();
            params
                .iter_mut()
                .filter(|(key, _)| *key == "model")
                .for_each(|(_, model)| *model = "copies".into());
            if let Some(found) = report.find("packets_per_second", &params) {
                let point = chart::Point::of(cores as f64, Some(found), gigabit);
                series.push(Series::measured("independent single workers at once", [point]));
            }
            let link = [(1.0, LINK), (config.workers as f64, LINK)];
            series.push(Series::published("the link", published::READ, link));
            let kind = match sizes {
                Sizes::Payload(payload) => format!("{payload} B"),
                Sizes::Imix => "IMIX".into(),
            };
            let direction = if uplink { "uplink" } else { "downlink" };
            let axes = ("workers", "Gbit/s, headers included");
            panels.push(Panel::lines(format!("{kind}, {direction}"), axes, series).whole());
        }
    }
    Figure { title: "Throughput by number of workers".into(), panels }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn measured_and_calculated_are_told_apart() {
        let _alone = crate::crew::alone();
        let config = CoresConfig {
            sessions: 64,
            sizes: vec![Sizes::Payload(64)],
            workers: 4,
            windows: 1,
            seconds: 0.01,
        };
        let found = run(&config, Tsc::process(), &mut Silent).unwrap();
        let of =
            |workers| Point { model: Model::Rtc, workers, uplink: true, sizes: config.sizes[0], active: 64 };
        let named =
            |name: &'static str| found.report.results.iter().filter(move |result| result.name == name);
        for workers in 1..=4 {
            assert!(found.report.median("packets_per_second", &of(workers).params()).unwrap() > 0.0);
        }
        let cores = available_cores().len().min(4);
        let calculated = |result: &&Measured| {
            result.params.contains_key("calculated") && result.params.get("model") == Some(&"rtc".into())
        };
        assert_eq!(named("packets_per_second").filter(calculated).count(), 2 * (4 - cores));
        let copies = |result: &&Measured| result.params.get("model") == Some(&"copies".into());
        assert_eq!(named("packets_per_second").filter(copies).count(), 2);
        assert_eq!(found.figure.panels.len(), 2);
        assert!(found.figure.svg().contains("rtc (calculated)") == (cores < 4));
    }
}
