//! Flows from their first packet on: whole ones, and as many as begin beside known ones.

use super::feed::{Came, Feed, Kind, Newcomers, Took};
use super::plane::{Divided, Looks, Plane, room};
use super::steady::conversations;
use super::{InspectionConfig, InspectionError};
use crate::path::{Numbering, PathError, Subscriber, shuffle};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::scene::Scene;
use datapath::{Counters, Reason};
use io::Frame;
use io::mem::MemFrame;
use loadgen::applications::{Application, Length, Mix, Traffic};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tables::clock::Tsc;

/// Flows under way at a time.
const OPEN: usize = 20_000;
/// Ports that UEs have, and how far they move when the same packets come again.
const PORTS: std::ops::Range<u32> = 32_768..60_768;
const STEP: u32 = 7_919;
/// Percent of the core that known flows take beside those that begin.
const STEADY: [u64; 2] = [50, 0];
/// The search for the highest rate ends where what was lossless and what wasn't are as near as this.
const NEAR: f64 = 1.04;
/// New connections a second where it begins.
const FIRST: f64 = 20_000.0;

/// One kind alone.
const ALONE: [Mix; 3] = [
    Mix::only("tls", &[(Application::Tls, 1)]),
    Mix::only("quic", &[(Application::Quic, 1)]),
    Mix::only("dns", &[(Application::Dns, 1)]),
];

/// Packets as they arrive, of traffic between subscribers who have sessions here.
struct Script {
    octets: Vec<u8>,
    /// Where a frame ends, where in it the UE's port is, and where it arrives.
    frames: Vec<(usize, u16, u16)>,
    flows: usize,
    addresses: Vec<IpAddr>,
}

impl Script {
    fn new(scene: Scene, traffic: &Traffic) -> Self {
        // As sessions will be established.
        let mut numbering = Numbering::default();
        let addresses: Vec<IpAddr> = traffic.addresses().collect();
        let subscribers: Vec<Subscriber> = (0..)
            .zip(&addresses)
            .map(|(number, address)| {
                let (_, tunnel) = numbering.assign(*address);
                Subscriber { teid: tunnel.teid, ue: Ipv4Addr::from(number) }
            })
            .collect();
        let mut this =
            Self { octets: Vec::new(), frames: Vec::new(), flows: traffic.flows().len(), addresses };
        for packet in traffic.packets() {
            let Some(subscriber) = subscribers.get(packet.subscriber as usize) else { continue };
            let frame = scene.frame(packet.uplink, *subscriber, packet.octets);
            let is_v6 = packet.octets.first().is_some_and(|octet| octet >> 4 == 6);
            let before = frame.len() - packet.octets.len() + if is_v6 { 40 } else { 20 };
            let port = before + if packet.uplink { 0 } else { 2 };
            this.octets.extend(frame);
            this.frames.push((this.octets.len(), port as u16, u16::from(!packet.uplink)));
        }
        this
    }

    /// Packets of each flow.
    fn packets_of_each(&self) -> f64 {
        self.frames.len() as f64 / self.flows.max(1) as f64
    }

    /// Sessions of all subscribers: the first ones of this plane.
    fn establish(&self, plane: &mut Plane) -> Result<(), PathError> {
        for (number, address) in (0..).zip(&self.addresses) {
            plane.establish_for(number, *address)?;
        }
        Ok(())
    }
}

/// A script that is gone through over and over, each time between other ports.
struct Player {
    script: Arc<Script>,
    at: usize,
    pass: u32,
}

impl Newcomers for Player {
    fn next(&mut self) -> Option<(MemFrame, u16)> {
        let begin =
            self.at.checked_sub(1).and_then(|at| self.script.frames.get(at)).map_or(0, |frame| frame.0);
        let (end, port, arrives) = *self.script.frames.get(self.at)?;
        let mut frame = MemFrame::copy_of(self.script.octets.get(begin..end)?)?;
        if let Some(port) =
            frame.bytes_mut().get_mut(usize::from(port)..).and_then(|rest| rest.first_chunk_mut())
        {
            let moved = u32::from(u16::from_be_bytes(*port)).wrapping_sub(PORTS.start) + self.pass * STEP;
            *port = ((PORTS.start + moved % (PORTS.end - PORTS.start)) as u16).to_be_bytes();
        }
        self.at += 1;
        if self.at == self.script.frames.len() {
            (self.at, self.pass) = (0, self.pass + 1);
        }
        Some((frame, arrives))
    }
}

/// A plane with what comes to it.
struct Stage {
    plane: Plane,
    feed: Feed<Player>,
    clock: Tsc,
}

impl Stage {
    /// Sessions of the script's subscribers, and known flows of others.
    fn new(
        scene: Scene,
        (looks, script): (Looks, &Arc<Script>),
        config: &InspectionConfig,
        known: usize,
        clock: Tsc,
        progress: &mut dyn Progress,
    ) -> Result<Self, InspectionError> {
        let mut plane = Plane::new(scene, looks, Divided::Classified, room(config), clock)?;
        script.establish(&mut plane)?;
        let mut conversations = conversations(&mut plane, known.max(2), progress)?;
        shuffle(&mut conversations);
        let side =
            |uplink| scene.stream(uplink, conversations.iter().copied()).map(|stream| scene.receive(&stream));
        let sides = side(true).and_then(|uplink| Ok([uplink, side(false)?])).map_err(PathError::from)?;
        let player = Player { script: Arc::clone(script), at: 0, pass: 0 };
        Ok(Self { plane, feed: Feed::new(sides, player, clock), clock })
    }

    fn counters(&self) -> Counters {
        self.plane.path.datapath.counters().clone()
    }

    fn without_end(&mut self, kind: Kind, packets: usize) -> Took {
        self.feed.without_end(&mut self.plane, kind, packets as u64, &self.clock).1
    }

    /// Both at a pace.
    fn trial(&mut self, rates: [f64; 2], seconds: f64) -> Result<Trial, InspectionError> {
        let before = self.counters();
        let (came, took) = self.feed.paced(&mut self.plane, rates, seconds, &self.clock);
        let trial = Trial { came, took, before, after: self.counters() };
        let (offered, accounted) = (came.offered.iter().sum(), trial.accounted());
        if offered == accounted {
            Ok(trial)
        } else {
            Err(InspectionError::Unaccounted { offered, accounted })
        }
    }
}

/// What became of a paced run's packets.
struct Trial {
    came: Came,
    took: Took,
    before: Counters,
    after: Counters,
}

impl Trial {
    fn dropped(&self, reason: Reason) -> u64 {
        self.after.dropped(reason) - self.before.dropped(reason)
    }

    fn all_dropped(&self) -> u64 {
        self.after.dropped_total() - self.before.dropped_total()
    }

    fn missed(&self) -> u64 {
        self.came.missed.iter().sum()
    }

    fn lost(&self) -> u64 {
        self.missed() + self.all_dropped()
    }

    fn accounted(&self) -> u64 {
        self.after.sent - self.before.sent + self.lost()
    }

    /// Conversations that were looked into from the beginning to a verdict, and those of which that is not so.
    fn verdicts(&self) -> (u64, u64) {
        let of = |counters: &Counters| {
            let it = counters.inspection;
            (it.recognised + it.unknown, it.exhausted + it.given_up + it.refused)
        };
        let (before, after) = (of(&self.before), of(&self.after));
        (after.0 - before.0, after.1 - before.1)
    }

    fn busy(&self) -> f64 {
        100.0 * self.took.busy as f64 / self.took.passed.max(1) as f64
    }
}

/// All packets of flows, from the first to the last: what they cost in each variant.
pub fn whole(
    report: &mut Report,
    config: &InspectionConfig,
    scene: Scene,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), InspectionError> {
    progress.tell("whole flows: making packets");
    let script =
        Arc::new(Script::new(scene, &Traffic::new(Mix::ORDINARY, Length::Whole, config.made, OPEN, 21)));
    let mut stages = Vec::new();
    for looks in Looks::ALL {
        stages.push(Stage::new(scene, (looks, &script), config, 2, clock, progress)?);
    }
    let mut costs = [const { Vec::new() }; Looks::ALL.len()];
    for pass in 0..=config.passes {
        progress.tell("whole flows");
        progress.part(pass as u64, config.passes as u64);
        for turn in 0..stages.len() {
            let at = (turn + pass) % stages.len();
            let (Some(stage), Some(own)) = (stages.get_mut(at), costs.get_mut(at)) else { continue };
            let before = stage.counters();
            let took = stage.without_end(Kind::New, script.frames.len());
            stage.plane.path.no_drops()?;
            let received = stage.counters().received - before.received;
            if pass > 0 {
                own.push(took.busy as f64 / received.max(1) as f64);
            }
        }
    }
    let off = costs.first().cloned().unwrap_or_default();
    for (looks, own) in Looks::ALL.into_iter().zip(&costs) {
        let params: [(&'static str, Param); 4] = [
            ("inspection", looks.name().into()),
            ("ip", "both".into()),
            ("rules", Divided::Classified.name().into()),
            ("traffic", "whole".into()),
        ];
        report.results.push(Measured::of("mean_cycles_per_packet", "cycles", &params, own));
        let ratios: Vec<f64> = off.iter().zip(own).map(|(off, own)| off / own).collect();
        report.results.push(Measured::of("throughput_to_off", "x", &params, &ratios));
    }
    report.notes.push(format!("whole: {:.1} packets a flow", script.packets_of_each()));
    progress.keep(report);
    Ok(())
}

/// Connections that begin beside known flows.
pub fn beside(
    report: &mut Report,
    config: &InspectionConfig,
    scene: Scene,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), InspectionError> {
    progress.tell("new flows: making packets");
    for mix in std::iter::once(Mix::OPENINGS).chain(ALONE) {
        let script = Arc::new(Script::new(scene, &Traffic::new(mix, Length::Opening, config.made, OPEN, 22)));
        report.notes.push(format!("{}: {:.1} packets a new flow", mix.name, script.packets_of_each()));
        progress.tell(&format!("new flows ({}): learning known ones", mix.name));
        let mut stage = Stage::new(scene, (Looks::Asked, &script), config, config.flows, clock, progress)?;
        // What a known packet takes alone, in full bursts; the first pass warms up.
        let known = config.packets.max(config.flows);
        let cycles: Vec<f64> = (0..4)
            .map(|_| stage.without_end(Kind::Known, known).busy as f64 / known as f64)
            .skip(1)
            .collect();
        let cycles = Measured::of("cycles_per_packet", "cycles", &[("traffic", "steady".into())], &cycles);
        let capacity = clock.hz() as f64 / cycles.median;
        let is_all = mix == Mix::OPENINGS;
        if is_all {
            report.results.push(cycles);
        }
        for steady in STEADY.into_iter().filter(|steady| is_all || *steady == 0) {
            let known = capacity * steady as f64 / 100.0;
            let rates = |flows: f64| [known, flows * script.packets_of_each()];
            if is_all && steady > 0 {
                for &rate in &config.rates {
                    progress.tell(&format!("{rate} new flows a second beside {steady} % of known ones"));
                    // One to begin with: memory is taken, and flows end as they begin.
                    stage.trial(rates(rate as f64), f64::from(config.idle) + 0.5)?;
                    let trials: Vec<Trial> = (0..config.passes.div_ceil(3))
                        .map(|_| stage.trial(rates(rate as f64), config.seconds))
                        .collect::<Result<_, _>>()?;
                    tell(report, (rate, steady), config, &trials);
                    progress.keep(report);
                }
            }
            progress
                .tell(&format!("new flows ({}) beside {steady} % of known ones: the highest rate", mix.name));
            let most = (0..3)
                .map(|_| most(&mut stage, rates, config.seconds / 3.0))
                .collect::<Result<Vec<_>, _>>()?;
            let params = [("mix", mix.name.into()), ("steady", steady.into())];
            report.results.push(Measured::of("flows_per_second_at_most", "1/s", &params, &most));
            progress.keep(report);
        }
        // What a connection that begins takes, all of its packets together, where nothing else comes: as many flows end. Known ones are forgotten over it,
        // so that it comes last.
        let taken: Vec<f64> = (0..=config.passes)
            .map(|_| stage.without_end(Kind::New, script.frames.len()).busy as f64 / script.flows as f64)
            .skip(1)
            .collect();
        report.results.push(Measured::of(
            "cycles_per_new_flow",
            "cycles",
            &[("mix", mix.name.into())],
            &taken,
        ));
        progress.keep(report);
    }
    Ok(())
}

/// The highest rate of new flows at which nothing is lost.
fn most(stage: &mut Stage, rates: impl Fn(f64) -> [f64; 2], seconds: f64) -> Result<f64, InspectionError> {
    let mut lossless = |rate: f64| stage.trial(rates(rate), seconds).map(|trial| trial.lost() == 0);
    let (mut good, mut bad) = (0.0, FIRST);
    while lossless(bad)? {
        (good, bad) = (bad, bad * 2.0);
    }
    while good == 0.0 || bad / good > NEAR {
        let middle = if good == 0.0 { bad / 2.0 } else { (good * bad).sqrt() };
        if middle < 100.0 {
            return Ok(0.0);
        }
        if lossless(middle)? { good = middle } else { bad = middle }
    }
    Ok(good)
}

/// What became of newcomers at a rate.
fn tell(report: &mut Report, (rate, steady): (u64, u64), config: &InspectionConfig, trials: &[Trial]) {
    let mut push = |name, unit, more: Option<(&'static str, Param)>, of: &dyn Fn(&Trial) -> f64| {
        let mut params = vec![("new_flows", rate.into()), ("steady", steady.into())];
        params.extend(more);
        let values: Vec<f64> = trials.iter().map(of).collect();
        report.results.push(Measured::of(name, unit, &params, &values));
    };
    for (kind, name) in [(Kind::Known, "steady"), (Kind::New, "new")] {
        let at = |packets: [u64; 2]| packets.get(kind as usize).copied().unwrap_or_default() as f64;
        let is_new = kind == Kind::New;
        let lost =
            |trial: &Trial| at(trial.came.missed) + if is_new { trial.all_dropped() as f64 } else { 0.0 };
        let traffic = Some(("traffic", name.into()));
        push("packets_per_second", "1/s", traffic.clone(), &|trial| at(trial.came.offered) / config.seconds);
        push("loss_percent", "%", traffic, &|trial| 100.0 * lost(trial) / at(trial.came.offered).max(1.0));
    }
    push("packets_lost", "packets", Some(("reason", "receive-queue".into())), &|trial| trial.missed() as f64);
    for reason in Reason::ALL.iter().filter(|reason| trials.iter().any(|trial| trial.dropped(**reason) > 0)) {
        push("packets_lost", "packets", Some(("reason", reason.label().into())), &|trial| {
            trial.dropped(*reason) as f64
        });
    }
    push("busy_percent", "%", None, &Trial::busy);
    push("verdicts_per_second", "1/s", None, &|trial| trial.verdicts().0 as f64 / config.seconds);
    push("not_looked_into_to_the_end", "conversations", None, &|trial| trial.verdicts().1 as f64);
    push("held_up_percent", "%", None, &|trial| {
        100.0 * trial.took.held_up as f64 / trial.took.passed.max(1) as f64
    });
    push("away_percent", "%", None, &|trial| {
        100.0 * trial.took.away as f64 / trial.took.passed.max(1) as f64
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    fn config() -> InspectionConfig {
        InspectionConfig { flows: 320, made: 2_000, ..InspectionConfig::quick() }
    }

    fn stage(mix: Mix) -> (Arc<Script>, Stage) {
        let script = Arc::new(Script::new(Scene::MANY, &Traffic::new(mix, Length::Opening, 2_000, 200, 3)));
        let stage =
            Stage::new(Scene::MANY, (Looks::Asked, &script), &config(), 320, Tsc::process(), &mut Silent);
        (script, stage.unwrap())
    }

    #[test]
    fn every_new_flow_is_looked_into_and_has_a_verdict() {
        let (script, mut stage) = stage(Mix::OPENINGS);
        let before = stage.counters();
        stage.feed.without_end(&mut stage.plane, Kind::New, script.frames.len() as u64, &stage.clock);
        let after = stage.counters();
        stage.plane.path.no_drops().unwrap();
        let (before, after) = (before.inspection, after.inspection);
        let begun = after.recognised + after.unknown + after.exhausted
            - before.recognised
            - before.unknown
            - before.exhausted;
        let open = stage.plane.path.datapath.inspected().open as u64;
        // The last burst goes a little beyond the script's end.
        assert!(
            (begun + open).abs_diff(script.flows as u64) <= 130,
            "{begun} and {open} of {}",
            script.flows
        );
        assert!(after.recognised - before.recognised > script.flows as u64 / 20, "{after:?}");
        assert_eq!((after.refused, after.given_up), (0, 0));
    }

    #[test]
    fn packets_that_come_are_sent_missed_or_dropped() {
        let _alone = crate::crew::alone();
        let (_, mut stage) = stage(Mix::OPENINGS);
        let idle = stage.trial([2_000.0, 2_000.0], 0.05).unwrap();
        // The last one may be due with the end.
        assert!(
            idle.lost() == 0 && idle.came.offered.iter().all(|came| came.abs_diff(100) <= 1),
            "{:?}",
            idle.came
        );
        // More than any build can do.
        let trial = stage.trial([60e6, 60e6], 0.005).unwrap();
        assert!(trial.lost() > 0 && trial.missed() > 0, "{:?}", trial.came);
    }
}
