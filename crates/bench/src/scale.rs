//! `scale`: a worker joins and another leaves while packets come: throughput and latency around each launch.
//!
//! Three ways to do it: run-to-completion and pipeline with live moves of shards, and, for contrast, the thesis' own method for
//! run-to-completion: stop the port, program its hash for one more queue, start it again, which took 400 ms.
//!
//! **Whole run**: the load grows by steps and falls again, and the policy decides when a worker joins or leaves. **One launch**: 80 % of
//! what one worker forwards; a second worker joins after one second and leaves after two, by order. The half second from there on is
//! a phase of its own, and so is the one before. What a shared machine can do changes from one second to the next: so that is measured
//! anew before each launch, and a launch before whose first order packets were lost, at 80 %, says nothing of launches and is
//! repeated (`ATTEMPTS`).

use crate::chart::{Figure, Illustrated, Panel, Point, Series};
use crate::crew::{CrewError, Member, Model, Team};
use crate::path::Numbering;
use crate::progress::Progress;
use crate::published;
use crate::report::{Measured, Param, Report};
use crate::timeline::{self, Played, STOPPED, Timeline};
use engine::Change;
use engine::placement::available_cores;
use engine::plan::scaler::Policy;
use io::paced::{Counts, Step};
use std::ops::Range;
use std::time::Duration;
use tables::clock::Tsc;

/// The load of one launch, in parts of what one worker forwards.
const LOAD: f64 = 0.8;
/// How often a launch is tried until none is lost before it.
const ATTEMPTS: usize = 3;
/// When a worker joins, when it leaves, and when all ends, in seconds.
const JOINS: f64 = 1.0;
const LEAVES: f64 = 2.0;
const ENDS: f64 = 3.0;
/// How long before and after are compared.
const PHASE: f64 = 0.5;
/// The resolution of everything, in seconds.
const BUCKET: f64 = 0.005;
/// The steps of the whole run, in parts of what one worker forwards.
const STEPS: [f64; 6] = [0.3, 0.6, 0.95, 1.1, 0.6, 0.2];
/// When a worker joins and leaves in the whole run: sooner than by default, for the run is short.
const POLICY: Policy = Policy {
    min: 1,
    max: 1,
    high: 0.8,
    low: 0.3,
    hold_up: Duration::from_millis(100),
    hold_down: Duration::from_millis(400),
    cool_down: Duration::from_millis(200),
    automatic: true,
};

/// What to measure.
#[derive(Clone, Debug)]
pub struct ScaleConfig {
    /// Sessions, all of them active.
    pub sessions: usize,
    /// Times that one launch is repeated.
    pub launches: usize,
    /// Seconds of each step of the whole run.
    pub seconds: f64,
}

impl ScaleConfig {
    /// Several launches.
    pub const fn full() -> Self {
        Self { sessions: 4_096, launches: 5, seconds: 3.0 }
    }

    /// One.
    pub const fn quick() -> Self {
        Self { sessions: 4_096, launches: 1, seconds: 1.0 }
    }
}

/// A way to add a worker.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    model: Model,
    /// The port is stopped meanwhile.
    stops: bool,
}

const VARIANTS: &[Variant] = &[
    Variant { name: "rtc", model: Model::Rtc, stops: false },
    Variant { name: "pipeline", model: Model::Pipeline, stops: false },
    Variant { name: "rtc-stopping", model: Model::Rtc, stops: true },
];

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &ScaleConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("scale", &clock);
    let members = Member::several(&mut Numbering::default(), config.sessions);
    let mut panels = Vec::new();
    for variant in VARIANTS {
        let team = team(variant.model).starting_with(1);
        progress.tell(&format!("{}: capacity of one worker", variant.name));
        let capacity = timeline::capacity(&team, &members, clock)?;
        report.results.push(Measured::of(
            "packets_per_second",
            "1/s",
            &[("model", variant.name.into()), ("workers", 1.into())],
            &[capacity],
        ));
        progress.tell(&format!("{}: {} steps", variant.name, STEPS.len()));
        panels.extend(whole_run(config, &team, &members, variant, capacity, &mut report, clock)?);
        progress.keep(&report);
        progress.draw(figure(&report, &panels));
        let mut runs = Vec::with_capacity(config.launches);
        let mut repeated = 0;
        for launch in 0..config.launches {
            let mut attempt = 1;
            let seen = loop {
                progress.tell(&format!("{}: launch {}, attempt {attempt}", variant.name, launch + 1));
                let capacity = timeline::capacity(&team, &members, clock)?;
                let seen = watch(&team, &members, variant, capacity * LOAD, clock)?;
                if attempt == ATTEMPTS || seen.lost_before() == 0 {
                    break seen;
                }
                attempt += 1;
            };
            repeated += attempt - 1;
            if runs.is_empty() {
                panels.extend(around_a_launch(variant, &team, &seen.played));
            }
            let mut run = Report::new("scale", &clock);
            seen.summarise(&mut run, variant);
            runs.push(run);
        }
        report.add_runs(runs);
        let params = [("model", variant.name.into())];
        report.results.push(Measured::of("launches_repeated", "times", &params, &[repeated as f64]));
        progress.keep(&report);
        progress.draw(figure(&report, &panels));
    }
    report.notes.push(format!(
        "{} sessions, 64 B of payload, half of the packets from each side, together {:.0} % of what one worker forwards; phases of {PHASE} s: \
         before a second worker joins, while it joins, while it leaves; rtc-stopping: the port is stopped for {STOPPED} s at each change, \
         as in the thesis; launches_repeated: because packets were lost before anything was changed",
        config.sessions,
        LOAD * 100.0
    ));
    report.notes.push(
        "reconfiguration_us: from the order to the last shard's arrival (rtc-stopping: or until the port is started again); pause_us: \
         how long packets of moved shards waited at most, by moves of up to some shards"
            .into(),
    );
    let figure = figure(&report, &panels);
    Ok(Illustrated { report, figure })
}

/// Two workers at least, whatever the machine has.
fn team(model: Model) -> Team {
    let cores = available_cores().len();
    let dispatchers = Team::new(model, 1).dispatchers();
    Team::new(model, cores.saturating_sub(dispatchers).max(2))
}

/// The load grows and falls by steps, and the number of workers follows.
fn whole_run(
    config: &ScaleConfig,
    team: &Team,
    members: &[Member],
    variant: &Variant,
    capacity: f64,
    report: &mut Report,
    clock: Tsc,
) -> Result<[Panel; 2], CrewError> {
    let weights = timeline::even(members);
    let step = |part: f64| Step { seconds: config.seconds, per_second: capacity * part, weights };
    let team = team.clone().following_the_load(POLICY);
    let timeline = Timeline::start(&team, members, &STEPS.map(step), BUCKET, clock)?;
    let played = timeline.stopping(variant.stops).play(&mut |_, _| Ok(()))?;
    let all = 0.0..config.seconds * STEPS.len() as f64;
    let params = [("model", variant.name.into()), ("phase", "steps".into())];
    played.summarise(report, &params, 0.0..all.end + PHASE);
    let changes = played.changes.iter().filter(|(_, change)| matches!(change, Change::Scaled { .. })).count();
    report.results.push(Measured::of("changes", "times", &params, &[changes as f64]));
    let step = played.whole_buckets(config.seconds / 20.0);
    Ok(panels_of(&format!("{}, steps", variant.name), &team, &played, all, step))
}

/// One launch, seen.
struct Seen {
    played: Played,
    /// From an order until it was carried out, in seconds: joining, leaving.
    took: [Option<f64>; 2],
    /// Pauses of moved shards by percentile, in nanoseconds.
    pauses: [(&'static str, u64); 3],
}

/// A second worker joins and leaves again while so many packets come a second.
fn watch(
    team: &Team,
    members: &[Member],
    variant: &Variant,
    per_second: f64,
    clock: Tsc,
) -> Result<Seen, CrewError> {
    let steps = [Step { seconds: ENDS, per_second, weights: timeline::even(members) }];
    let timeline = Timeline::start(team, members, &steps, BUCKET, clock)?.stopping(variant.stops);
    let orders = [(JOINS, 2), (LEAVES, 1)];
    let mut took = [None; 2];
    let mut given = 0;
    let mut pauses = [("50", 0), ("99", 0), ("100", 0)];
    let played = timeline.play(&mut |engine, at| {
        if let Some(&(due, workers)) = orders.get(given)
            && at >= due
            && took.iter().take(given).all(Option::is_some)
        {
            engine.scale(workers)?;
            given += 1;
            // It is carried out when this returns.
            return Ok(());
        }
        let Some(last) = given.checked_sub(1) else { return Ok(()) };
        if let (Some(took), Some((due, _))) =
            (took.get_mut(last).filter(|took| took.is_none()), orders.get(last))
        {
            let moves = engine.moves();
            if moves.outstanding == 0 {
                *took = Some((at - due).max(if variant.stops { STOPPED } else { 0.0 }));
                for ((_, pause), share) in pauses.iter_mut().zip([0.5, 0.99, 1.0]) {
                    *pause = moves.pause(share);
                }
            }
        }
        Ok(())
    })?;
    Ok(Seen { played, took, pauses })
}

impl Seen {
    /// Packets lost in the phase before the first change. What is lost when packets begin to come doesn't count: the sessions' first ones
    /// cost as much as ten others, and a ring overflows.
    fn lost_before(&self) -> u64 {
        self.played.counts(JOINS - PHASE..JOINS).lost()
    }

    fn summarise(&self, report: &mut Report, variant: &Variant) {
        let model = ("model", variant.name.into());
        let phases: [(&'static str, Range<f64>); 4] = [
            ("before", JOINS - PHASE..JOINS),
            ("joining", JOINS..JOINS + PHASE),
            ("leaving", LEAVES..LEAVES + PHASE),
            ("all", 0.0..ENDS + PHASE),
        ];
        for (phase, span) in phases {
            self.played.summarise(report, &[model.clone(), ("phase", phase.into())], span);
        }
        for (phase, took) in ["joining", "leaving"].into_iter().zip(self.took) {
            let Some(took) = took else {
                report.notes.push(format!("{}: {phase} was not over when the run ended", variant.name));
                continue;
            };
            let params = [model.clone(), ("phase", phase.into())];
            report.results.push(Measured::of("reconfiguration_us", "us", &params, &[took * 1e6]));
        }
        for (percentile, pause) in self.pauses {
            let params = [model.clone(), ("percentile", percentile.into())];
            report.results.push(Measured::of("pause_us", "us", &params, &[pause as f64 / 1e3]));
        }
        self.played.tell_drops(report, variant.name);
    }
}

/// Throughput and latency of one launch, and of what is around it.
fn around_a_launch(variant: &Variant, team: &Team, played: &Played) -> [Panel; 2] {
    let span = JOINS - 0.2..ENDS - PHASE;
    panels_of(&format!("{}, one launch", variant.name), team, played, span, BUCKET)
}

fn panels_of(name: &str, team: &Team, played: &Played, span: Range<f64>, step: f64) -> [Panel; 2] {
    let throughput = vec![
        Series::measured("due", played.mpps(span.clone(), step, None, |counts| counts.arrived)),
        Series::measured("sent", played.mpps(span.clone(), step, None, |counts| counts.sent)),
        Series::measured("lost", played.mpps(span.clone(), step, None, Counts::lost)),
    ];
    let late = played.latencies(&span, step);
    let workers = played.workers(team.active, &span);
    [
        Panel::lines(name, ("seconds", "millions of packets a second"), throughput).under(workers.clone()),
        Panel::lines(format!("{name}: latency"), ("seconds", "microseconds"), late)
            .logarithmic()
            .under(workers),
    ]
}

/// What was measured over time, and what it all came to beside what was published.
fn figure(report: &Report, panels: &[Panel]) -> Figure {
    let names: Vec<String> = VARIANTS.iter().map(|variant| variant.name.to_owned()).collect();
    let bars = |result: &'static str, label: &str, extra: &[(&'static str, Param)], phase: &'static str| {
        let bar = |(place, variant): (usize, &Variant)| {
            let params = [&[("model", variant.name.into()), ("phase", phase.into())], extra].concat();
            Point::of(place as f64, report.find(result, &params), 1e-3)
        };
        Series::measured(label, VARIANTS.iter().enumerate().map(bar))
    };
    let place = |name: &str| VARIANTS.iter().position(|variant| variant.name == name).map(|at| at as f64);
    let read = |values: &[(&str, f64)]| {
        let known = values.iter().filter_map(|(name, seconds)| Some((place(name)?, seconds * 1e3)));
        Series::published("", published::READ, known.collect::<Vec<_>>())
    };
    let took = |phase| bars("reconfiguration_us", phase, &[], phase);
    let late = |phase| bars("latency_us", phase, &[("percentile", "100".into())], phase);
    // Theirs is the way of rtc-stopping.
    let stopping = "rtc-stopping";
    let reconfiguration =
        [(stopping, published::RECONFIGURATION_RTC), ("pipeline", published::RECONFIGURATION_PIPELINE)];
    let mut panels = panels.to_vec();
    for (title, series) in [
        (
            "how long a worker takes to join and leave",
            vec![took("joining"), took("leaving"), read(&reconfiguration)],
        ),
        (
            "the longest latency of the half second from then on",
            vec![late("joining"), late("leaving"), read(&[(stopping, published::LATENCY_RTC)])],
        ),
    ] {
        panels.push(Panel::bars(title, ("model", "milliseconds"), names.clone(), series).logarithmic());
    }
    Figure { title: "A worker joins and leaves".into(), panels }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crew::drops;

    #[test]
    fn a_worker_joins_and_leaves_without_loss_and_a_stopped_port_loses() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let members = Member::several(&mut Numbering::default(), 1_024);
        for variant in VARIANTS {
            let team = team(variant.model).starting_with(1).unhurried(60_000);
            let seen = watch(&team, &members, variant, 20_000.0, clock).unwrap();
            let all = seen.played.counts(0.0..10.0);
            assert_eq!(all.arrived, 60_000, "{variant:?}");
            assert_eq!((all.reordered, drops(&seen.played.reports)), (0, vec![]), "{variant:?}");
            assert_eq!(all.lost_inside(), 0, "{variant:?} {all:?}");
            assert!(seen.took.iter().all(Option::is_some), "{variant:?}");
            if variant.stops {
                // And what waited in the rings when the port was stopped.
                let meanwhile = 2.0 * STOPPED * 20_000.0;
                assert!(all.down as f64 > 0.95 * meanwhile, "{all:?}");
            } else {
                assert_eq!(all.down, 0);
                // The second worker took part, and only while it was to.
                let second = team.dispatchers() + 1;
                assert_eq!(seen.played.of_thread(second, 0.0..JOINS).sent, 0);
                assert!(seen.played.of_thread(second, JOINS..ENDS).sent > 0);
                let left = LEAVES + seen.took[1].unwrap() + BUCKET;
                assert_eq!(seen.played.of_thread(second, left..ENDS.max(left)).sent, 0);
            }
            let mut report = Report::new("scale", &clock);
            seen.summarise(&mut report, variant);
            let joining = [("model", variant.name.into()), ("phase", "joining".into())];
            assert!(report.median("reconfiguration_us", &joining).unwrap() > 0.0);
            let lost = report.median("packets_lost", &joining).unwrap();
            assert!(!variant.stops || lost > 1_000.0, "{lost}");
        }
    }
}
