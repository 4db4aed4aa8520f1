//! `ndr`: the highest rate at which nothing is lost (RFC 2544 §26.1), and how long packets take at parts of it (§26.2).
//!
//! The six profiles of [`crate::profiles`], each measured in two ways:
//!
//! - `box`: packets arrive when they are due on the thread that serves them ([`crate::arrivals`]). A packet's latency is the time
//!   at which its burst was sent less the time at which it was due. This is the box itself: queueing, bursts, timers.
//! - `wire`: a worker's thread between in-memory NICs, and a generator on another thread ([`crate::wire`]). A packet's latency goes
//!   from handing it to one NIC to collecting it from the other, the generator's own rounds included.
//!
//! **Search.** Halving, from nothing to a quarter more than what full bursts forward, until the interval is as narrow as the resolution. A rate is
//! good if no packet was lost in a trial; a trial that failed is repeated once, since on a shared machine the host takes a core
//! away for longer than a receive queue lasts (4,096 packets are less than a millisecond at five million a second), and the
//! number of repetitions is stated. RFC 2544 asks for trials of 60 seconds; these are shorter, as stated.
//!
//! **The host's part.** Before each latency trial, the same thread does nothing but read the clock ([`crate::jitter`]):
//! `host_jitter_us` is what packets would have waited in a box that takes no time.

use crate::arrivals::{self, Arrivals, DESCRIPTORS, Lane, Trace};
use crate::jitter::Jitter;
use crate::path::{Mix, Path, PathError, Subscriber};
use crate::profiles::{self, PROFILES, Profile, Sizes};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::wire::{Offer, Trial, Wire, WireError};
use engine::placement::available_cores;
use io::replay::{ReplayRx, Stream};
use loadgen::latency::LatencySummary;
use tables::clock::Tsc;

/// 5-tuples of a session, both ways: two flow entries each.
const ENTRIES_PER_SESSION: usize = 32;
/// Parts of the zero-loss rate at which latency is measured, in percent.
const LOADS: [u64; 3] = [10, 50, 90];
/// A trial in which the generator offered less than this share of what it should is none.
const KEPT_UP: f64 = 0.95;

/// What to measure.
#[derive(Clone, Debug)]
pub struct NdrConfig {
    /// Flow entries.
    pub flows: usize,
    /// Profiles and sizes.
    pub points: Vec<(Profile, Sizes)>,
    /// Seconds of each trial of the search.
    pub trial: f64,
    /// Seconds of each latency measurement.
    pub latency: f64,
    /// Width of the interval at which the search ends, as a share of what full bursts forward.
    pub resolution: f64,
}

impl NdrConfig {
    /// All profiles and sizes.
    pub fn full() -> Self {
        let sizes =
            |profile: &Profile| profile.sizes.iter().map(|sizes| (*profile, *sizes)).collect::<Vec<_>>();
        Self {
            flows: 8_388_608,
            points: PROFILES.iter().flat_map(sizes).collect(),
            trial: 1.0,
            latency: 2.0,
            resolution: 0.01,
        }
    }

    /// The smallest and the largest size of two profiles.
    pub fn quick() -> Self {
        let ends = |profile: &Profile| {
            let (first, last) = (profile.sizes.first().copied(), profile.sizes.last().copied());
            [first, last].into_iter().flatten().map(|sizes| (*profile, sizes)).collect::<Vec<_>>()
        };
        let halves = PROFILES.iter().filter(|profile| profile.uplink_quarters == 2);
        Self {
            flows: 1 << 16,
            points: halves.flat_map(ends).collect(),
            trial: 0.15,
            latency: 0.3,
            resolution: 0.04,
        }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &NdrConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, WireError> {
    let mut report = Report::new("ndr", &clock);
    let mut retried = 0;
    let mut point_of = |tester: &mut dyn Tester, report: &mut Report, point: &Point| {
        measure(tester, config, point, report).map(|found| retried += found.retried)
    };
    progress.tell(&format!("{} flows: learning", config.flows));
    let mut inside = Inside::new(config.flows, clock, progress)?;
    let packets = inside.packets.clone();
    // What full bursts forward, for the search of both kinds to begin with.
    let mut points = Vec::with_capacity(config.points.len());
    for &(profile, sizes) in &config.points {
        progress.tell(&format!("box, profile {}: {} B up, {} B down", profile.number, sizes.0, sizes.1));
        let (uplink, downlink) = profiles::streams(sizes, &packets)?;
        let point = Point { profile, sizes, streams: [uplink, downlink], most: 0.0 };
        let point = Point { most: inside.most(&point)?, ..point };
        point_of(&mut inside, &mut report, &point)?;
        progress.keep(&report);
        points.push(point.most);
    }
    let mut jitter = std::mem::take(&mut inside.jitter);
    drop(inside);
    if available_cores().len() < 2 {
        report.notes.push("no wire: that takes two cores".into());
    } else {
        progress.tell(&format!("{} flows: learning through the wire", config.flows));
        let mut outside = Outside::new(config.flows, clock)?;
        for (&(profile, sizes), most) in config.points.iter().zip(points) {
            progress.tell(&format!("wire, profile {}: {} B up, {} B down", profile.number, sizes.0, sizes.1));
            let (uplink, downlink) = profiles::streams(sizes, &outside.packets)?;
            let point = Point { profile, sizes, streams: [uplink, downlink], most };
            point_of(&mut outside, &mut report, &point)?;
            progress.keep(&report);
        }
        let (limited, trials) = (outside.limited, outside.trials);
        if limited > 0 {
            report.notes.push(format!(
                "wire: in {limited} of {trials} trials the generator itself could not offer the rate; they count as not passed, so \
                 that such a zero-loss rate is the generator's limit and the box's is at least that"
            ));
        }
        outside.wire.stop()?;
    }
    jitter.watch(&clock, config.latency);
    for (percentile, share) in [("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)] {
        push_micros(
            &mut report,
            "host_jitter_us",
            &[("percentile", percentile.into())],
            &clock,
            jitter.percentile(share),
        );
    }
    let longest = jitter.longest() as f64;
    push_micros(&mut report, "host_jitter_us", &[("percentile", "100".into())], &clock, longest);
    report.notes.push(format!(
        "zero loss: no packet lost in {} s; a trial that failed was repeated once before its rate was given up, {retried} times in \
         all; resolution {} % of what full bursts forward; receive queues of {DESCRIPTORS} descriptors",
        config.trial,
        config.resolution * 100.0
    ));
    report.notes.push(format!(
        "{} flow entries; size: octets of arriving frames; bits count {} octets between frames; mode box: arrivals scheduled on the \
         serving thread, latency from due to sent; mode wire: worker and generator on a core each, latency from one NIC to the other, \
         the generator's rounds included; load: percent of the zero-loss rate",
        config.flows,
        profiles::BETWEEN
    ));
    report.notes.push(
        "host_jitter_us: what packets would wait for a loop on the same thread that only reads the clock, between the latency trials of \
         mode box; percentile 100 is the longest gap"
            .into(),
    );
    Ok(report)
}

/// A profile and size with its packets.
struct Point {
    profile: Profile,
    sizes: Sizes,
    /// From the radio side, and from the data network.
    streams: [Stream; 2],
    /// Packets a second that full bursts forward.
    most: f64,
}

impl Point {
    /// What each port is offered of so many packets a second.
    fn rates(&self, per_second: f64) -> [f64; 2] {
        let uplink = self.profile.uplink_quarters as f64 / 4.0;
        [per_second * uplink, per_second * (1.0 - uplink)]
    }
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Packets a second that were really offered.
    per_second: f64,
    lost: u64,
    latency: LatencySummary,
}

/// One of the two ways to offer packets.
trait Tester {
    /// How it is named.
    fn mode(&self) -> &'static str;
    /// Offers a point's packets at this rate for so long.
    fn offer(&mut self, point: &Point, per_second: f64, seconds: f64) -> Result<Outcome, WireError>;
    /// Called before each latency measurement, which takes so long.
    fn rest(&mut self, _seconds: f64) {}
}

/// What a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Found {
    /// The highest rate that was really offered without loss; zero: none.
    per_second: f64,
    /// Trials that were repeated.
    retried: u64,
}

/// Halves the interval from nothing to `most` until it is no wider than `width`.
fn search<E>(most: f64, width: f64, mut offer: impl FnMut(f64) -> Result<Outcome, E>) -> Result<Found, E> {
    let (mut good, mut bad) = (0.0, most);
    let mut found = Found::default();
    while bad - good > width {
        let rate = f64::midpoint(good, bad);
        let passed = |outcome: &Outcome| outcome.lost == 0 && outcome.per_second >= rate * KEPT_UP;
        let mut outcome = offer(rate)?;
        if !passed(&outcome) {
            found.retried += 1;
            outcome = offer(rate)?;
        }
        if passed(&outcome) {
            (good, found.per_second) = (rate, outcome.per_second);
        } else {
            bad = rate;
        }
    }
    Ok(found)
}

/// The zero-loss rate of a point, and latency at parts of it.
fn measure(
    tester: &mut dyn Tester,
    config: &NdrConfig,
    point: &Point,
    report: &mut Report,
) -> Result<Found, WireError> {
    let (most, width) = (point.most * 1.25, point.most * config.resolution);
    let found = search(most, width, |rate| tester.offer(point, rate, config.trial))?;
    let mode = tester.mode();
    let with = |extra: &[(&'static str, Param)]| {
        let own = profiles::params(&point.profile, point.sizes).into_iter();
        own.chain([("mode", mode.into())]).chain(extra.iter().cloned()).collect::<Vec<_>>()
    };
    let rate = found.per_second;
    let bits = rate * point.profile.bits_per_packet(point.sizes);
    report.results.push(Measured::of("zero_loss_packets_per_second", "1/s", &with(&[]), &[rate]));
    report.results.push(Measured::of("bits_per_second", "bit/s", &with(&[]), &[bits]));
    if rate <= 0.0 {
        let (profile, size) = (point.profile.number, point.sizes.0);
        report.notes.push(format!(
            "{mode}, profile {profile}, size {size}: no rate passed, so that there is no latency below it"
        ));
        return Ok(found);
    }
    for load in LOADS {
        tester.rest(config.latency);
        let outcome = tester.offer(point, rate * load as f64 / 100.0, config.latency)?;
        let latency = outcome.latency;
        for (percentile, ns) in [("50", latency.p50_ns), ("99", latency.p99_ns), ("99.9", latency.p999_ns)] {
            let params = with(&[("load", load.into()), ("percentile", percentile.into())]);
            report.results.push(Measured::of("latency_us", "us", &params, &[ns as f64 / 1e3]));
        }
    }
    Ok(found)
}

fn push_micros(
    report: &mut Report,
    name: &'static str,
    params: &[(&'static str, Param)],
    clock: &Tsc,
    ticks: f64,
) {
    report.results.push(Measured::of(name, "us", params, &[ticks * 1e6 / clock.hz() as f64]));
}

/// The box on this thread.
struct Inside {
    path: Path,
    clock: Tsc,
    packets: Vec<(Subscriber, u16)>,
    trace: Trace,
    jitter: Jitter,
}

impl Inside {
    fn new(flows: usize, clock: Tsc, progress: &mut dyn Progress) -> Result<Self, PathError> {
        let (path, packets) = profiles::prepare(flows, clock, progress)?;
        Ok(Self { path, clock, packets, trace: Trace::default(), jitter: Jitter::default() })
    }

    /// Packets a second that full bursts forward.
    fn most(&mut self, point: &Point) -> Result<f64, PathError> {
        let mix = || {
            let [uplink, downlink] = point.streams.clone().map(ReplayRx::new);
            Mix::both(uplink, downlink, point.profile.uplink_quarters)
        };
        // Once to warm up.
        self.path.forward(&mut mix(), 100_000)?;
        Ok(self.clock.hz() as f64 / self.path.forward(&mut mix(), 100_000)?.median)
    }
}

impl Tester for Inside {
    fn mode(&self) -> &'static str {
        "box"
    }

    fn offer(&mut self, point: &Point, per_second: f64, seconds: f64) -> Result<Outcome, WireError> {
        let [uplink, downlink] = point.streams.clone().map(ReplayRx::new);
        let [up, down] = point.rates(per_second);
        let start = self.clock.ticks();
        let lane = |port, rx, rate| {
            let arrivals = Arrivals::new(start, rate, &self.clock, DESCRIPTORS);
            Lane { port, rx, arrivals }
        };
        let mut lanes = [lane(0, uplink, up), lane(1, downlink, down)];
        arrivals::serve(&mut self.path, &self.clock, &mut lanes, seconds, &mut self.trace);
        let came: u64 = lanes.iter().map(|lane| lane.arrivals.came()).sum();
        Ok(Outcome {
            per_second: came as f64 / seconds,
            lost: arrivals::missed(&self.path, &lanes)?,
            latency: self.trace.latencies(&self.clock, &lanes).summary(),
        })
    }

    fn rest(&mut self, seconds: f64) {
        self.jitter.watch(&self.clock, seconds);
    }
}

/// The box on another thread.
struct Outside {
    wire: Wire,
    packets: Vec<(Subscriber, u16)>,
    trials: u64,
    /// Trials in which the generator was too slow.
    limited: u64,
}

impl Outside {
    fn new(flows: usize, clock: Tsc) -> Result<Self, WireError> {
        let (mut wire, subscribers) = Wire::new(flows.div_ceil(ENTRIES_PER_SESSION), clock)?;
        let packets = profiles::tuples(&subscribers);
        wire.learn(&packets)?;
        Ok(Self { wire, packets, trials: 0, limited: 0 })
    }
}

impl Tester for Outside {
    fn mode(&self) -> &'static str {
        "wire"
    }

    fn offer(&mut self, point: &Point, per_second: f64, seconds: f64) -> Result<Outcome, WireError> {
        let [up, down] = point.rates(per_second);
        let [uplink, downlink] = point.streams.clone();
        let offers = [Offer { stream: uplink, per_second: up }, Offer { stream: downlink, per_second: down }];
        let Trial { offered, late, lost, latencies } = self.wire.offer(offers, seconds)?;
        self.trials += 1;
        self.limited += u64::from(late as f64 > (1.0 - KEPT_UP) * (offered + late) as f64);
        Ok(Outcome { per_second: offered as f64 / seconds, lost, latency: latencies.summary() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ideal(limit: f64) -> impl FnMut(f64) -> Result<Outcome, ()> {
        move |rate| {
            Ok(Outcome {
                per_second: rate,
                lost: u64::from(rate > limit),
                latency: LatencySummary::default(),
            })
        }
    }

    #[test]
    fn the_search_ends_just_below_the_limit() {
        let _alone = crate::crew::alone();
        for limit in [1.0, 17.0, 40.0, 99.0, 124.0] {
            let found = search(125.0, 0.5, ideal(limit)).unwrap();
            assert!(found.per_second <= limit && found.per_second > limit - 0.5, "{found:?} of {limit}");
        }
        assert_eq!(
            search(125.0, 1.0, ideal(0.0)).unwrap().per_second.total_cmp(&0.0),
            std::cmp::Ordering::Equal
        );
    }

    #[test]
    fn one_loss_is_forgiven_and_counted_two_are_not() {
        let _alone = crate::crew::alone();
        let mut trials = 0;
        let once = |rate: f64| -> Result<Outcome, ()> {
            trials += 1;
            Ok(Outcome { per_second: rate, lost: u64::from(trials == 1), ..Outcome::default() })
        };
        let found = search(100.0, 1.0, once).unwrap();
        assert!(found.per_second > 98.0 && found.retried == 1, "{found:?}");
        // A generator that offers less than it should proves nothing.
        let slow = |rate: f64| -> Result<Outcome, ()> {
            Ok(Outcome { per_second: rate.min(30.0), ..Outcome::default() })
        };
        let found = search(100.0, 1.0, slow).unwrap();
        assert!(found.per_second <= 30.0 && found.per_second > 28.0, "{found:?}");
    }

    #[test]
    fn a_slow_rate_is_served_whole_in_its_mix() {
        let _alone = crate::crew::alone();
        let mut inside = Inside::new(64, Tsc::process(), &mut crate::progress::Silent).unwrap();
        let profile = PROFILES[0];
        let sizes = profile.sizes[0];
        let (uplink, downlink) = profiles::streams(sizes, &inside.packets).unwrap();
        let point = Point { profile, sizes, streams: [uplink, downlink], most: 0.0 };
        let before = inside.path.datapath.counters().clone();
        let outcome = inside.offer(&point, 40_000.0, 0.05).unwrap();
        let after = inside.path.datapath.counters();
        let (up, down) =
            (after.uplink.packets - before.uplink.packets, after.downlink.packets - before.downlink.packets);
        assert_eq!(outcome.lost, 0);
        assert!((outcome.per_second - 40_000.0).abs() < 100.0, "{outcome:?}");
        assert!(up.abs_diff(500) <= 1 && down.abs_diff(1_500) <= 1, "{up} {down}");
        assert!(outcome.latency.packets == up + down && outcome.latency.p50_ns > 0);
    }
}
