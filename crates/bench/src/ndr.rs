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
//! good if no packet was lost in a trial. RFC 2544 asks for trials of 60 seconds; these are shorter, as stated.
//!
//! **What the machine did** is not the box's. A receive queue of 4,096 packets lasts for less than a millisecond at five million a second, and a
//! shared machine takes a core away for longer. A trial with losses in which a thread was kept from running, in all, for longer than a queue
//! lasts (by the kernel's account, by what the host stole of a core in use), in which a round of the generator took as long, or in which
//! the generator did not collect what was sent to it, says nothing: it is void, and repeated ([`crate::search`]). A rate whose trials were
//! all void is told: it was not found out about.
//!
//! **The host's part.** Before each latency trial, the same thread does nothing but read the clock ([`crate::jitter`]):
//! `host_jitter_us` is what packets would have waited in a box that takes no time.

use crate::arrivals::{self, Arrivals, DESCRIPTORS, Lane, Trace};
use crate::jitter::{Away, Jitter, Whom};
use crate::path::{Mix, Path, PathError, Subscriber};
use crate::profiles::{self, PROFILES, Profile, Sizes};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::scene::Scene;
use crate::search::{KEPT_UP, Outcome, Trials, search};
use crate::wire::{Offer, Trial, Wire, WireError};
use engine::placement::available_cores;
use io::replay::Stream;
use tables::clock::Tsc;

/// 5-tuples of a session, both ways: two flow entries each.
const ENTRIES_PER_SESSION: usize = 32;
/// Parts of the zero-loss rate at which latency is measured, in percent.
const LOADS: [u64; 3] = [10, 50, 90];

/// What to measure.
#[derive(Clone, Debug)]
pub struct NdrConfig {
    /// Flow entries.
    pub flows: usize,
    /// Where they are measured.
    pub scenes: Vec<Scene>,
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
            scenes: vec![Scene::MANY, Scene::MANY6],
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
            scenes: vec![Scene::MANY, Scene::MANY6],
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
    let mut jitter = Jitter::default();
    let (mut box_trials, mut wire_trials) = (Trials::default(), Trials::default());
    let (mut limited, mut uncollected) = (0, 0);
    let wired = available_cores().len() >= 2;
    for &scene in &config.scenes {
        let mut inside = Inside::new(scene, config.flows, jitter, clock, progress)?;
        let mut most = Vec::with_capacity(config.points.len());
        for &(profile, sizes) in &config.points {
            progress.tell(&title("box", scene, &profile, sizes));
            let (uplink, downlink) = profiles::streams(scene, sizes, &inside.packets)?;
            let point = Point { scene, profile, sizes, streams: [uplink, downlink], most: 0.0 };
            let point = Point { most: inside.most(&point)?, ..point };
            measure(&mut inside, config, &point, &mut report, &mut box_trials)?;
            progress.keep(&report);
            most.push(point.most);
        }
        // The memory of the one is for the other.
        jitter = inside.jitter;
        if !wired {
            continue;
        }
        let mut outside = Outside::new(scene, config.flows, clock, progress)?;
        // What full bursts forward is where the search begins here too.
        for (&(profile, sizes), most) in config.points.iter().zip(most) {
            progress.tell(&title("wire", scene, &profile, sizes));
            let (uplink, downlink) = profiles::streams(scene, sizes, &outside.packets)?;
            let point = Point { scene, profile, sizes, streams: [uplink, downlink], most };
            measure(&mut outside, config, &point, &mut report, &mut wire_trials)?;
            progress.keep(&report);
        }
        limited += outside.limited;
        uncollected += outside.uncollected;
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
    for (mode, trials) in [("box", box_trials), ("wire", wire_trials)] {
        trials.report(&mut report, mode);
    }
    if !wired {
        report.notes.push("no wire: that takes two cores".into());
    }
    if limited > 0 {
        report.notes.push(format!(
            "wire: in {limited} trials the generator itself could not offer the rate; they count as not passed, so that such a \
             zero-loss rate is the generator's limit and the box's is at least that"
        ));
    }
    if uncollected > 0 {
        report.notes.push(format!(
            "wire: {uncollected} packets found the ring to the generator full, because it did not run; the trials are void"
        ));
    }
    report.notes.push(format!(
        "zero loss: no packet lost in {} s; resolution {} % of what full bursts forward; receive queues of {DESCRIPTORS} descriptors",
        config.trial,
        config.resolution * 100.0
    ));
    report.notes.push(format!(
        "{} flow entries; size: octets of arriving frames; bits count {} octets between frames; mode box: arrivals scheduled on the \
         serving thread, latency from due to sent; mode wire: worker and generator on a core each, latency from one NIC to the other, \
         the generator's rounds included; load: percent of the zero-loss rate; scenes are those of forward",
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

/// What is being measured, for those who wait.
fn title(mode: &str, scene: Scene, profile: &Profile, (uplink, downlink): Sizes) -> String {
    format!("{mode}, IPv{}, profile {}: {uplink} B up, {downlink} B down", scene.ip(), profile.number)
}

/// A profile and size with its packets.
struct Point {
    scene: Scene,
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

/// Whether a thread that was kept from running for so long in all, over a trial, may have let a receive queue overflow.
fn overflows(held_up: f64, point: &Point, per_second: f64) -> bool {
    let busiest = point.rates(per_second).into_iter().fold(0.0, f64::max);
    held_up * busiest >= DESCRIPTORS as f64
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

/// The zero-loss rate of a point, and latency at parts of it.
fn measure(
    tester: &mut dyn Tester,
    config: &NdrConfig,
    point: &Point,
    report: &mut Report,
    trials: &mut Trials,
) -> Result<(), WireError> {
    let (most, width) = (point.most * 1.25, point.most * config.resolution);
    let found = search(most, width, |rate| tester.offer(point, rate, config.trial))?;
    trials.add(found.trials);
    let mode = tester.mode();
    let with = |extra: &[(&'static str, Param)]| {
        let own = profiles::params(point.scene, &point.profile, point.sizes).into_iter();
        own.chain([("mode", mode.into())]).chain(extra.iter().cloned()).collect::<Vec<_>>()
    };
    let rate = found.per_second;
    let bits = rate * point.profile.bits_per_packet(point.sizes);
    report.results.push(Measured::of("zero_loss_packets_per_second", "1/s", &with(&[]), &[rate]));
    report.results.push(Measured::of("bits_per_second", "bit/s", &with(&[]), &[bits]));
    if rate <= 0.0 {
        let (profile, size) = (point.profile.number, point.sizes.0);
        report.notes.push(format!(
            "{mode}, IPv{}, profile {profile}, size {size}: no rate passed, so that there is no latency below it",
            point.scene.ip()
        ));
        return Ok(());
    }
    for load in LOADS {
        tester.rest(config.latency);
        let outcome = tester.offer(point, rate * load as f64 / 100.0, config.latency)?;
        let lost = outcome.lost as f64;
        report.results.push(Measured::of(
            "packets_lost",
            "packets",
            &with(&[("load", load.into())]),
            &[lost],
        ));
        let latency = outcome.latency;
        for (percentile, ns) in [("50", latency.p50_ns), ("99", latency.p99_ns), ("99.9", latency.p999_ns)] {
            let params = with(&[("load", load.into()), ("percentile", percentile.into())]);
            report.results.push(Measured::of("latency_us", "us", &params, &[ns as f64 / 1e3]));
        }
    }
    Ok(())
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
    cores: Vec<usize>,
}

impl Inside {
    fn new(
        scene: Scene,
        flows: usize,
        jitter: Jitter,
        clock: Tsc,
        progress: &mut dyn Progress,
    ) -> Result<Self, PathError> {
        let (path, packets) = profiles::prepare(scene, flows, clock, progress)?;
        Ok(Self { path, clock, packets, trace: Trace::default(), jitter, cores: available_cores() })
    }

    /// Packets a second that full bursts forward.
    fn most(&mut self, point: &Point) -> Result<f64, PathError> {
        let mix = || {
            let [uplink, downlink] = point.streams.each_ref().map(|stream| point.scene.receive(stream));
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
        let [uplink, downlink] = point.streams.each_ref().map(|stream| point.scene.receive(stream));
        let [up, down] = point.rates(per_second);
        // This thread may run on any of them.
        let away = Away::begin(self.cores.iter().map(|core| Whom::Core(*core)).chain([Whom::Here]));
        let start = self.clock.ticks();
        let lane = |port, rx, rate| {
            let arrivals = Arrivals::new(start, rate, &self.clock, DESCRIPTORS);
            Lane { port, rx, arrivals }
        };
        let mut lanes = [lane(0, uplink, up), lane(1, downlink, down)];
        arrivals::serve(&mut self.path, &self.clock, &mut lanes, seconds, &mut self.trace);
        let held_up = away.seconds().unwrap_or_default();
        let came: u64 = lanes.iter().map(|lane| lane.arrivals.came()).sum();
        Ok(Outcome {
            per_second: came as f64 / seconds,
            lost: arrivals::missed(&self.path, &lanes)?,
            held_up: overflows(held_up, point, per_second),
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
    /// Trials in which the generator was too slow.
    limited: u64,
    /// Packets that it did not collect in time.
    uncollected: u64,
}

impl Outside {
    fn new(scene: Scene, flows: usize, clock: Tsc, progress: &mut dyn Progress) -> Result<Self, WireError> {
        progress.tell(&format!("wire, IPv{}, {flows} flows: establishing their sessions", scene.ip()));
        let (mut wire, subscribers) = Wire::new(scene, flows.div_ceil(ENTRIES_PER_SESSION), clock, progress)?;
        let packets = profiles::tuples(&subscribers);
        progress.tell(&format!("wire, IPv{}, {flows} flows: learning", scene.ip()));
        wire.learn(&packets, progress)?;
        Ok(Self { wire, packets, limited: 0, uncollected: 0 })
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
        let Trial { offered, late, lost, uncollected, held_up, latencies } =
            self.wire.offer(offers, seconds)?;
        self.limited += u64::from(late as f64 > (1.0 - KEPT_UP) * (offered + late) as f64);
        self.uncollected += uncollected;
        let held_up = uncollected > 0 || overflows(held_up, point, per_second);
        Ok(Outcome { per_second: offered as f64 / seconds, lost, held_up, latency: latencies.summary() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::path;

    /// Somebody's packets, three quarters of them downlink.
    fn point(scene: Scene) -> Point {
        let profile = PROFILES[0];
        let stream = || {
            let packets = [(Subscriber { teid: packet::Teid(1), ue: [10, 0, 0, 1].into() }, 1)];
            path::stream(true, packets.into_iter()).unwrap()
        };
        Point { scene, profile, sizes: profile.sizes[0], streams: [stream(), stream()], most: 0.0 }
    }

    #[test]
    fn a_pause_counts_if_a_queue_overflows_in_it() {
        let point = point(Scene::SIMPLE);
        // Three quarters of four million a second come to the busier queue: it lasts for 1.4 ms.
        assert!(!overflows(0.001, &point, 4e6) && overflows(0.0014, &point, 4e6));
        assert!(!overflows(0.01, &point, 4e5));
    }

    #[test]
    fn a_slow_rate_is_served_whole_in_its_mix() {
        for scene in [Scene::SIMPLE, Scene::MANY6] {
            served_whole(scene);
        }
    }

    fn served_whole(scene: Scene) {
        let _alone = crate::crew::alone();
        let mut inside =
            Inside::new(scene, 64, Jitter::default(), Tsc::process(), &mut crate::progress::Silent).unwrap();
        let profile = PROFILES[0];
        let sizes = profile.sizes[0];
        let (uplink, downlink) = profiles::streams(scene, sizes, &inside.packets).unwrap();
        let point = Point { scene, profile, sizes, streams: [uplink, downlink], most: 0.0 };
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

    #[test]
    fn what_is_lost_below_the_zero_loss_rate_is_told() {
        /// Loses nothing in short trials, and more the higher the rate in long ones.
        struct Leaky;
        impl Tester for Leaky {
            fn mode(&self) -> &'static str {
                "box"
            }

            fn offer(&mut self, _: &Point, per_second: f64, seconds: f64) -> Result<Outcome, WireError> {
                let lost = if seconds > 1.0 { (per_second / 10.0).round() as u64 } else { 0 };
                Ok(Outcome { per_second, lost, ..Outcome::default() })
            }
        }
        let config = NdrConfig { trial: 0.1, latency: 2.0, resolution: 0.5, ..NdrConfig::quick() };
        let point = Point { most: 80.0, ..point(Scene::SIMPLE) };
        let mut report = Report::new("ndr", &Tsc::process());
        measure(&mut Leaky, &config, &point, &mut report, &mut Trials::default()).unwrap();
        let rate = report.median("zero_loss_packets_per_second", &[]).unwrap();
        for load in LOADS {
            let lost = report.median("packets_lost", &[("load", load.into()), ("mode", "box".into())]);
            assert_eq!(lost, Some((rate * load as f64 / 1e3).round()), "{report}");
        }
    }
}
