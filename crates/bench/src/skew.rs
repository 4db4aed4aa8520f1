//! `skew`: one worker's load is stepped up while the others' stays: what is received, sent and dropped, over time.
//!
//! Loads are parts of what one worker forwards when all are busy, measured before with each model. The entries of the redirection table
//! that lead to worker 0 in the beginning are hot, all of them alike: no single subscriber is too heavy. Without rebalancing the
//! hot worker loses what it can't take while its neighbours idle; with it, nothing should be lost until the sum of all
//! capacities is reached ([`fits`]). With two workers the last step is more than that; more workers can take every step.

use crate::chart::{Figure, Illustrated, Panel, Series, Strip};
use crate::crew::{CrewError, Member, Model, Team};
use crate::path::Numbering;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::timeline::{self, Played, Timeline};
use engine::placement::available_cores;
use io::paced::{Counts, Step};
use std::ops::Range;
use tables::clock::Tsc;

/// A unit of load, in parts of a worker's capacity: weights are whole numbers of it.
const UNIT: f64 = 0.05;
/// The resolution, in seconds.
const BUCKET: f64 = 0.02;
/// Units of every worker but the hot one.
const OTHERS: u16 = 6;

/// What to measure.
#[derive(Clone, Debug)]
pub struct SkewConfig {
    /// Sessions, all of them active.
    pub sessions: usize,
    /// Workers; 0: as many as cores.
    pub workers: usize,
    /// The hot worker's load in each step, in units of 5 % of a worker's capacity.
    pub steps: Vec<u16>,
    /// Seconds of each step.
    pub seconds: f64,
}

impl SkewConfig {
    /// Steps of several seconds.
    pub fn full() -> Self {
        Self { sessions: 4_096, workers: 0, steps: vec![5, 10, 15, 20, 25, 30, 40], seconds: 3.0 }
    }

    /// Shorter ones.
    pub fn quick() -> Self {
        Self { seconds: 1.0, ..Self::full() }
    }
}

/// A model, and whether shards move.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    model: Model,
    rebalances: bool,
}

const VARIANTS: &[Variant] = &[
    Variant { name: "rtc", model: Model::Rtc, rebalances: false },
    Variant { name: "rtc-rebalancing", model: Model::Rtc, rebalances: true },
    Variant { name: "pipeline-rebalancing", model: Model::Pipeline, rebalances: true },
];

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &SkewConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("skew", &clock);
    let workers = if config.workers == 0 { available_cores().len().max(2) } else { config.workers };
    let members = Member::several(&mut Numbering::default(), config.sessions);
    let mut panels = Vec::new();
    for variant in VARIANTS {
        let team = Team::new(variant.model, workers);
        progress.tell(&format!("{}: capacity", variant.name));
        let capacity = timeline::capacity(&team, &members, clock)?;
        report.results.push(Measured::of(
            "packets_per_second",
            "1/s",
            &[("model", variant.name.into()), ("workers", (workers as u64).into())],
            &[capacity],
        ));
        let unit = capacity / workers as f64 * UNIT;
        let steps = config.steps.iter().map(|&hot| {
            let units = f64::from(hot) + f64::from(OTHERS) * (workers - 1) as f64;
            let of = |shard: usize| if shard.is_multiple_of(workers) { hot } else { OTHERS };
            Step {
                seconds: config.seconds,
                per_second: units * unit,
                weights: timeline::weighted(&members, of),
            }
        });
        progress.tell(&format!("{}: {} steps", variant.name, config.steps.len()));
        let team = if variant.rebalances { team.rebalancing() } else { team };
        let timeline = Timeline::start(&team, &members, &steps.collect::<Vec<_>>(), BUCKET, clock)?;
        let played = timeline.play(&mut |_, _| Ok(()))?;
        summarise(&mut report, config, variant, &team, &played);
        progress.keep(&report);
        panels.extend(panels_of(config, variant, &team, &played));
        progress.draw(figure(workers, &panels));
    }
    report.notes.push(format!(
        "{} sessions, 64 B of payload, half of the packets from each side; phase: the hot worker's load in percent of what one worker \
         forwards when all are busy; every other worker has {} %; {} threads have a core each where there are as many, and share \
         cores otherwise; receive rings of {} descriptors",
        config.sessions,
        percent(OTHERS),
        workers,
        timeline::DESCRIPTORS
    ));
    Ok(Illustrated { report, figure: figure(workers, &panels) })
}

fn figure(workers: usize, panels: &[Panel]) -> Figure {
    let title = format!("One of {workers} workers' load is stepped up (marks below it: shards are moved)");
    Figure { title, panels: panels.to_vec() }
}

/// What each step came to, and who did the work in its last half.
fn summarise(report: &mut Report, config: &SkewConfig, variant: &Variant, team: &Team, played: &Played) {
    for (step, hot) in config.steps.iter().enumerate() {
        let begin = step as f64 * config.seconds;
        let end = begin + config.seconds;
        let params: [(&'static str, Param); 2] =
            [("model", variant.name.into()), ("phase", percent(*hot).into())];
        played.summarise(report, &params, begin..end);
        let last = begin + config.seconds / 2.0..end;
        let all = played.counts(last.clone()).sent.max(1) as f64;
        for worker in 0..team.workers {
            let sent = played.of_thread(team.dispatchers() + worker, last.clone()).sent as f64;
            let params =
                params.iter().cloned().chain([("worker", (worker as u64).into())]).collect::<Vec<_>>();
            report.results.push(Measured::of("sent_percent", "%", &params, &[100.0 * sent / all]));
        }
    }
    played.tell_drops(report, variant.name);
}

/// What came and went, and how late it was.
fn panels_of(config: &SkewConfig, variant: &Variant, team: &Team, played: &Played) -> [Panel; 2] {
    let all = 0.0..config.seconds * config.steps.len() as f64;
    let step = played.whole_buckets(config.seconds / 20.0);
    let sent = |workers: Range<usize>| {
        let of = |worker: usize| {
            played.mpps(all.clone(), step, Some(team.dispatchers() + worker), |counts| counts.sent)
        };
        let add = |mut sum: Vec<(f64, f64)>, more: Vec<(f64, f64)>| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| sum.1 += more.1);
            sum
        };
        workers.map(of).reduce(add).unwrap_or_default()
    };
    let series = vec![
        Series::measured("due", played.mpps(all.clone(), step, None, |counts| counts.arrived)),
        Series::measured("sent by the hot worker", sent(0..1)),
        Series::measured("sent by all others", sent(1..team.workers)),
        Series::measured("lost", played.mpps(all.clone(), step, None, Counts::lost)),
    ];
    let late = played.latencies(&all, step);
    let hot = |(number, hot): (usize, &u16)| {
        let begin = number as f64 * config.seconds;
        (begin, begin + config.seconds, format!("{} %", percent(*hot)))
    };
    let strip = Strip {
        label: "hot load".into(),
        spans: config.steps.iter().enumerate().map(hot).collect(),
        ticks: played.rebalances(&all),
    };
    let throughput = ("seconds", "millions of packets a second");
    [
        Panel::lines(variant.name, throughput, series).under(strip.clone()),
        Panel::lines(format!("{}: latency", variant.name), ("seconds", "microseconds"), late)
            .logarithmic()
            .under(strip),
    ]
}

/// Whether so many workers can take it all when the hot one's load is so many percent of what one of them can take.
pub fn fits(hot: u64, workers: u64) -> bool {
    hot + percent(OTHERS) * workers.saturating_sub(1) <= 100 * workers
}

/// A load in percent of what one worker forwards.
fn percent(units: u16) -> u64 {
    (f64::from(units) * UNIT * 100.0).round() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn only_two_workers_get_more_than_they_can_take() {
        let all = |workers| {
            SkewConfig::full()
                .steps
                .into_iter()
                .map(percent)
                .filter(|hot| fits(*hot, workers))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(2), [25, 50, 75, 100, 125, 150]);
        assert_eq!(all(3), [25, 50, 75, 100, 125, 150, 200]);
        assert_eq!((fits(170, 2), fits(171, 2)), (true, false));
    }

    #[test]
    fn every_step_is_accounted_for_and_drawn() {
        let _alone = crate::crew::alone();
        let config = SkewConfig { sessions: 512, workers: 2, steps: vec![6, 12], seconds: 0.1 };
        let found = run(&config, Tsc::process(), &mut Silent).unwrap();
        for variant in VARIANTS {
            for phase in [30, 60] {
                let params = [("model", variant.name.into()), ("phase", Param::Number(phase))];
                let figure = |name| found.report.median(name, &params).unwrap();
                assert!(figure("packets_offered") > 0.0);
                assert!(figure("packets_lost") >= figure("packets_missed"));
                assert!(figure("packets_reordered") < 1.0);
                // Who sends how much depends on which worker the machine lets run; together they send everything, if it lets any.
                let sent = |worker: u64| {
                    let of_worker = [params.as_slice(), &[("worker", worker.into())]].concat();
                    found.report.median("sent_percent", &of_worker).unwrap()
                };
                let (first, second) = (sent(0), sent(1));
                let nothing = first + second < 1e-6;
                assert!(nothing || (first + second - 100.0).abs() < 1e-6, "{first} {second}");
            }
        }
        assert_eq!(found.figure.panels.len(), 2 * VARIANTS.len());
        let svg = found.figure.svg();
        assert!(svg.contains("sent by the hot worker") && svg.contains(">60 %</text>"), "{svg}");
    }
}
