//! `moves`: shards move between busy workers as often as they are told to: how long their packets wait, and what others notice.
//!
//! Two workers at least run to completion while packets come at a share of what they forwarded just before ([`crate::timeline`]).
//! Control moves random shards, one or a batch at a time, from whoever has the most to whoever has the fewest, so that the load stays
//! even. The next move is ordered when it is due and the one before is over: a rate that can't be kept shows in
//! `moves_per_second`. Beside each rate stands the same load without moves.
//!
//! Two kinds of NICs: one whose redirection table **follows**, so that packets come to their new owner; and one whose table is
//! **fixed**, as where it can't hash inside GTP-U, so that packets of a shard that is elsewhere are handed off, half of all.
//!
//! **What a pause contains.** The protocol's way, some loops of each of the two workers; and whatever takes the processor away from
//! either meanwhile: the host, control's thread where there is no core for it, other programs. So loops that do nothing are watched on
//! the same cores in the same run, alone and beside a thread that wakes up as often as control does; and the kernel is asked how long
//! workers could have run and did not.

use crate::axis::grouped;
use crate::chart::{Figure, Illustrated, Panel, Series};
use crate::crew::{CrewError, Member, Model, Team};
use crate::jitter::{Away, Jitter, Whom};
use crate::path::Numbering;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::timeline::{self, Played, Timeline};
use engine::placement::available_cores;
use engine::{Engine, MoveCounters};
use io::paced::Step;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use session::ShardId;
use std::ops::Range;
use std::time::Duration;
use tables::clock::Tsc;

/// Packets come for so long before the first move, in seconds.
const BEFORE: f64 = 0.1;
/// The resolution, in seconds.
const BUCKET: f64 = 0.05;
/// Shards in a batch: the most that move at once.
const BATCH: usize = 32;
/// How often control looks after workers at least.
const TEND: Duration = Duration::from_millis(10);

/// What to measure.
#[derive(Clone, Debug)]
pub struct MovesConfig {
    /// Sessions, all of them active.
    pub sessions: usize,
    /// Loads, in percent of what the workers forward.
    pub loads: Vec<u64>,
    /// Moves a second.
    pub rates: Vec<u64>,
    /// Seconds of each phase.
    pub seconds: f64,
}

impl MovesConfig {
    /// Two loads, three rates.
    pub fn full() -> Self {
        Self { sessions: 4_096, loads: vec![50, 80], rates: vec![10, 100, 1_000], seconds: 4.0 }
    }

    /// Two rates, briefly: ten moves a second are too few to be told apart in a second.
    pub fn quick() -> Self {
        Self { rates: vec![100, 1_000], seconds: 1.0, ..Self::full() }
    }
}

/// Moves that are ordered all through a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// Of each move.
    shards: usize,
    /// Moves.
    per_second: u64,
}

/// What is the same for a whole phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// The redirection tables are fixed.
    fixed: bool,
    load: u64,
    /// None: nothing moves.
    pace: Option<Pace>,
}

impl Phase {
    fn params(&self) -> Vec<(&'static str, Param)> {
        vec![
            ("nic", nic(self.fixed).into()),
            ("load", self.load.into()),
            ("shards", self.pace.map_or(0, |pace| pace.shards as u64).into()),
            ("rate", self.pace.map_or(0, |pace| pace.per_second).into()),
        ]
    }
}

/// As results name it.
const fn nic(fixed: bool) -> &'static str {
    if fixed { "fixed" } else { "follows" }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &MovesConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Illustrated, CrewError> {
    let mut report = Report::new("moves", &clock);
    let members = Member::several(&mut Numbering::default(), config.sessions);
    for waking in [None, config.rates.iter().max().map(|&rate| interval(rate))] {
        progress.tell("the machine's own stalls");
        stalls(&mut report, config.seconds, waking, &clock);
        progress.keep(&report);
    }
    for fixed in [false, true] {
        let team = team().with_fixed_tables(fixed);
        for &load in &config.loads {
            // Each time: what a shared machine has left changes from minute to minute.
            progress.tell(&format!("table {}: capacity", nic(fixed)));
            let capacity = timeline::capacity(&team, &members, clock)?;
            let params = [
                ("nic", nic(fixed).into()),
                ("load", load.into()),
                ("workers", (team.workers as u64).into()),
            ];
            report.results.push(Measured::of("packets_per_second", "1/s", &params, &[capacity]));
            let per_second = capacity * load as f64 / 100.0;
            for pace in paces(config) {
                let phase = Phase { fixed, load, pace };
                let ordered = pace.map_or("no moves".into(), |Pace { shards, per_second }| {
                    format!("{shards} shards {per_second} times a second")
                });
                progress.tell(&format!("table {}, {load} %: {ordered}", nic(fixed)));
                watch(&team, &members, &phase, per_second, config.seconds, clock)?
                    .summarise(&mut report, &phase);
                progress.keep(&report);
                progress.draw(figure(&report, config));
            }
        }
    }
    report.notes.push(format!(
        "{} sessions, 64 B of payload, half of the packets from each side; load: percent of what the workers forwarded just before; \
         shards, rate: how many move at once, and how often they were to; nic=follows: the redirection table leads packets to the new \
         owner; nic=fixed: it can't be changed, and half of the packets are handed off",
        config.sessions
    ));
    report.notes.push(
        "pause_us: from the first packet that waits for its shard until the shard is there; it contains what the machine's stalls do to two \
         workers: host_wait_us is what a moment's work would have waited in loops that do nothing on the same cores (waking: beside a \
         thread that wakes up so often a second), kept_waiting_percent the time in which workers could have run and the kernel had others \
         run on their cores"
            .into(),
    );
    let figure = figure(&report, config);
    Ok(Illustrated { report, figure })
}

/// Two workers at least, whatever the machine has.
fn team() -> Team {
    Team::new(Model::Rtc, available_cores().len().max(2))
}

/// No moves, then all others.
fn paces(config: &MovesConfig) -> impl Iterator<Item = Option<Pace>> + '_ {
    let of = |shards| config.rates.iter().map(move |&per_second| Some(Pace { shards, per_second }));
    std::iter::once(None).chain([1, BATCH].into_iter().flat_map(of))
}

/// Between two moves.
fn interval(per_second: u64) -> Duration {
    Duration::from_secs(1) / u32::try_from(per_second).unwrap_or(u32::MAX).max(1)
}

/// What loops that do nothing wait for.
fn stalls(report: &mut Report, seconds: f64, waking: Option<Duration>, clock: &Tsc) {
    let seen = Jitter::of_cores(&available_cores(), clock, seconds, waking);
    let waking = waking.map_or(0, |every| (1.0 / every.as_secs_f64()).round() as u64);
    let micros = |ticks: f64| ticks * 1e6 / clock.hz() as f64;
    let waits =
        [("50", 0.5), ("99", 0.99), ("99.9", 0.999)].map(|(name, share)| (name, seen.percentile(share)));
    for (percentile, ticks) in waits.into_iter().chain([("100", seen.longest() as f64)]) {
        let params = [("percentile", percentile.into()), ("waking", waking.into())];
        report.results.push(Measured::of("host_wait_us", "us", &params, &[micros(ticks)]));
    }
}

/// Orders moves when they are due.
struct Orders {
    pace: Pace,
    /// From when to when.
    span: Range<f64>,
    given: u64,
    random: StdRng,
}

impl Orders {
    fn new(pace: Pace, span: Range<f64>) -> Self {
        Self { pace, span, given: 0, random: StdRng::seed_from_u64(1) }
    }

    /// The next move, if it is due and none runs.
    fn give(&mut self, engine: &mut Engine, at: f64) -> Result<(), CrewError> {
        let due = ((at - self.span.start) * self.pace.per_second as f64) as u64;
        if !self.span.contains(&at) || self.given > due || engine.is_moving() {
            return Ok(());
        }
        self.given += 1;
        let map = engine.shard_map();
        let shards = |worker: &usize| map.shards_of(*worker).count();
        let (most, fewest) = (engine.owning().max_by_key(shards), engine.owning().min_by_key(shards));
        let (Some(giver), Some(receiver)) = (most, fewest) else { return Ok(()) };
        let mut own: Vec<ShardId> = map.shards_of(giver).collect();
        let (chosen, _) = own.partial_shuffle(&mut self.random, self.pace.shards);
        Ok(engine.move_shards(chosen.iter().copied(), receiver)?)
    }
}

/// One phase, seen.
struct Seen {
    played: Played,
    span: Range<f64>,
    moves: MoveCounters,
    /// Seconds for which the workers could have run and did not.
    kept_waiting: Option<f64>,
    workers: usize,
}

/// Packets come, and shards move.
fn watch(
    team: &Team,
    members: &[Member],
    phase: &Phase,
    per_second: f64,
    seconds: f64,
    clock: Tsc,
) -> Result<Seen, CrewError> {
    let span = BEFORE..BEFORE + seconds;
    let steps = [Step { seconds: span.end, per_second, weights: timeline::even(members) }];
    let mut timeline = Timeline::start(team, members, &steps, BUCKET, clock)?;
    let mut orders = phase.pace.map(|pace| Orders::new(pace, span.clone()));
    if let Some(pace) = phase.pace {
        timeline = timeline.tended_every(interval(pace.per_second).min(TEND));
    }
    // What is known at the beginning of the span, and at its end.
    let (mut away, mut kept_waiting, mut over) = (None, None, false);
    let mut before = None;
    let mut moves = MoveCounters::default();
    let played = timeline.play(&mut |engine, at| {
        let begun = before.get_or_insert_with(|| engine.moves()).moves;
        if at >= span.start {
            away.get_or_insert_with(|| Away::begin([Whom::Named("worker-")]));
        }
        if !over && at >= span.end && !engine.is_moving() {
            over = true;
            kept_waiting = away.as_ref().and_then(Away::seconds);
            moves = engine.moves();
            // Of moves before the first packet, none had to wait: they are the least pauses.
            moves.moves -= begun;
            moves.pauses.drain(..moves.pauses.len().min(begun as usize));
        }
        orders.as_mut().map_or(Ok(()), |orders| orders.give(engine, at))
    })?;
    Ok(Seen { played, span, moves, kept_waiting, workers: team.workers })
}

impl Seen {
    fn summarise(&self, report: &mut Report, phase: &Phase) {
        let params = phase.params();
        let seconds = self.span.end - self.span.start;
        // To the end of all: what was on its way when the last packet was due.
        let all = self.span.start..self.span.end + 1.0;
        let mut say =
            |name, unit, figure: f64| report.results.push(Measured::of(name, unit, &params, &[figure]));
        let counts = self.played.counts(all.clone());
        say("packets_per_second", "1/s", counts.sent as f64 / seconds);
        say("packets_lost_inside", "packets", counts.lost_inside() as f64);
        if let Some(waited) = self.kept_waiting {
            say("kept_waiting_percent", "%", waited / seconds / self.workers as f64 * 100.0);
        }
        if phase.pace.is_some() {
            say("moves_per_second", "1/s", self.moves.moves as f64 / seconds);
            say("moves_hurried", "moves", self.moves.hurried as f64);
            say("packets_parked", "packets", self.moves.parked as f64);
            for (percentile, share) in [("50", 0.5), ("90", 0.9), ("99", 0.99), ("100", 1.0)] {
                let with =
                    params.iter().cloned().chain([("percentile", percentile.into())]).collect::<Vec<_>>();
                let micros = self.moves.pause(share) as f64 / 1e3;
                report.results.push(Measured::of("pause_us", "us", &with, &[micros]));
            }
        }
        self.played.summarise(report, &params, all);
        self.played.tell_drops(report, &described(&params));
        if self.moves.given_up > 0 {
            report.notes.push(format!("{}: {} moves did not begin", described(&params), self.moves.given_up));
        }
    }
}

fn described(params: &[(&'static str, Param)]) -> String {
    params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Pause and latency against moves a second: a row for each NIC and load.
fn figure(report: &Report, config: &MovesConfig) -> Figure {
    let mut panels = Vec::new();
    for fixed in [false, true] {
        for &load in &config.loads {
            let line = |name: &'static str, shards: usize, percentile: &'static str| {
                // Where nothing moves is the left end of both lines of latency.
                let still = Phase { fixed, load, pace: None };
                let moving = config
                    .rates
                    .iter()
                    .map(|&per_second| Phase { pace: Some(Pace { shards, per_second }), ..still });
                let points = std::iter::once(still).chain(moving).enumerate().map(|(place, phase)| {
                    let mut params = phase.params();
                    params.push(("percentile", percentile.into()));
                    (place as f64, report.median(name, &params))
                });
                let moves =
                    if shards == 1 { "1 shard at once".into() } else { format!("{shards} shards at once") };
                let which = if percentile == "50" { "median" } else { "99 %" };
                Series::measured(format!("{moves}: {which}"), points)
            };
            let rates = || {
                let named = config.rates.iter().map(|rate| grouped(&rate.to_string()));
                std::iter::once("none".to_owned()).chain(named).collect::<Vec<_>>()
            };
            let panel = |name, what: &str| {
                let series = [1, BATCH].into_iter().flat_map(|shards| [(shards, "50"), (shards, "99")]);
                let series = series.map(|(shards, percentile)| line(name, shards, percentile)).collect();
                let title = format!("table {}, {load} % load: {what}", nic(fixed));
                Panel::bars(title, ("moves a second, as ordered", "microseconds"), rates(), series)
                    .logarithmic()
            };
            panels.push(panel("pause_us", "pause of moved shards"));
            panels.push(panel("latency_us", "latency of all packets"));
        }
    }
    Figure { title: "Shards move under traffic".into(), panels }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crew::drops;

    #[test]
    fn nothing_is_lost_or_reordered_while_shards_move() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let members = Member::several(&mut Numbering::default(), 1_024);
        let config = MovesConfig { sessions: 1_024, loads: vec![50], rates: vec![200], seconds: 0.4 };
        let mut report = Report::new("moves", &clock);
        for fixed in [false, true] {
            let team = team().with_fixed_tables(fixed).unhurried(10_000);
            for pace in paces(&config) {
                let phase = Phase { fixed, load: 50, pace };
                let seen = watch(&team, &members, &phase, 20_000.0, config.seconds, clock).unwrap();
                let all = seen.played.counts(0.0..10.0);
                assert_eq!(all.arrived, 10_000, "{phase:?}");
                assert_eq!((all.reordered, drops(&seen.played.reports)), (0, vec![]), "{phase:?}");
                assert_eq!(all.lost_inside(), 0, "{phase:?} {all:?}");
                let handed_off: u64 = seen.played.reports.iter().map(|report| report.load.handed_off).sum();
                assert_eq!(handed_off > 2_000, fixed, "{phase:?}: {handed_off}");
                let moves = &seen.moves;
                assert_eq!((moves.overflowed, moves.hurried, moves.given_up), (0, 0, 0), "{phase:?}");
                seen.summarise(&mut report, &phase);
                let of_phase = |name| report.median(name, &phase.params());
                match pace {
                    Some(_) => {
                        // No more than are ordered; how many there is time for, the machine says.
                        assert!((1..=81).contains(&moves.moves), "{phase:?}: {moves:?}");
                        assert!(of_phase("moves_per_second").unwrap() > 0.0);
                        assert_eq!(of_phase("packets_parked"), Some(moves.parked as f64));
                        assert!(of_phase("pause_us").is_some());
                    }
                    None => assert_eq!((moves.moves, of_phase("pause_us")), (0, None)),
                }
                assert!(of_phase("latency_us").unwrap() > 0.0);
            }
        }
        stalls(&mut report, 0.01, Some(interval(1_000)), &clock);
        assert!(report.median("host_wait_us", &[("waking", 1_000.into())]).is_some());
        let svg = figure(&report, &config).svg();
        assert!(svg.contains("32 shards at once: 99 %") && svg.contains("table fixed"), "{svg}");
    }
}
