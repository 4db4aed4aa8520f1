//! `flood`: what flows that never repeat cost those that are established.
//!
//! Every packet of the flood is a flow of its own: looked up in vain, classified, perhaps entered. That takes several times as
//! long as serving a known flow, so that a share of packets says little of the share of time. Two questions are asked:
//!
//! - **What does an established packet itself cost beside a flood?** Bursts without end in which a share of the packets is the
//!   flood's, less what flood packets cost alone: `cycles_per_packet`. What is more than without a flood is lost caches.
//! - **What arrives?** Established flows offer a fixed rate that takes so many percent of the core, and the flood comes on top, through the
//!   same receive queue, paced by the clock (see [`crate::arrivals`]). Where the core can't keep up, the queue overflows and loses packets of both kinds
//!   alike, unless the datapath gives up new flows sooner than known ones: `packets_per_second` of both kinds, and
//!   `loss_percent` of what the established flows offered.
//!
//! The flood comes from subscribers of its own, fresh ones in each run, so that none of its flows is known by any chance. What
//! protects known flows from new ones is as shipped, and so are all limits but that of flows in all.

use crate::arrivals::{self, Arrivals, DESCRIPTORS, Lane, Trace};
use crate::flows;
use crate::path::{self, Mix, Path, PathError, Subscriber};
use crate::progress::{Progress, Silent};
use crate::report::{Measured, Param, Report};
use datapath::{Config, Counters};
use io::replay::{ReplayRx, Stream};
use tables::clock::Tsc;

/// Flows of each established session.
const FLOWS_PER_SESSION: usize = 32;
/// Flows of one of the flood's sessions: one for each port.
const PORTS: usize = 1 << 16;
/// Flows that there is room for: none of those that are established may go because others come.
const ROOM: u32 = 1 << 26;
/// Sessions of the flood, at most.
const MOST_SOURCES: usize = 256;

/// What to measure.
#[derive(Clone, Debug)]
pub struct FloodConfig {
    /// Established flows.
    pub flows: usize,
    /// Percentages of the packets that are the flood's.
    pub shares: Vec<u64>,
    /// Percentages of the core that established flows take by themselves.
    pub offered: Vec<u64>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run in bursts without end.
    pub packets: usize,
    /// Seconds of each paced run.
    pub seconds: f64,
}

impl FloodConfig {
    /// A million flows, at three loads.
    pub fn full() -> Self {
        Self {
            flows: 1 << 20,
            shares: vec![0, 10, 50, 90],
            offered: vec![10, 50, 80],
            runs: 3,
            packets: 2_000_000,
            seconds: 1.0,
        }
    }

    /// Fewer flows at one load.
    pub fn quick() -> Self {
        Self { flows: 1 << 16, offered: vec![50], packets: 200_000, seconds: 0.2, ..Self::full() }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &FloodConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("flood", &clock);
    progress.tell(&format!("{} flows: learning", config.flows));
    let mut rig = Rig::new(config.flows, clock, progress)?;
    let alone = costs(config, &mut rig, &mut report, progress)?;
    progress.keep(&report);
    for &offered in &config.offered {
        let rate = clock.hz() as f64 / alone * offered as f64 / 100.0;
        for &share in &config.shares {
            progress.tell(&format!("established at {offered} % of the core, flood {share} % of the packets"));
            let trials = (0..config.runs).map(|_| rig.offer(rate, share, config.seconds));
            let trials: Vec<Trial> = trials.collect::<Result<_, _>>()?;
            let with = |mut extra: Vec<(&'static str, Param)>| {
                extra.extend([("flood_share", share.into()), ("offered", offered.into())]);
                extra
            };
            let figures = |of: &dyn Fn(&Trial) -> f64| trials.iter().map(of).collect::<Vec<_>>();
            for (traffic, runs) in [
                ("established", figures(&|trial| trial.served as f64 / config.seconds)),
                ("flood", figures(&|trial| trial.flood as f64 / config.seconds)),
            ] {
                let params = with(vec![("traffic", traffic.into())]);
                report.results.push(Measured::of("packets_per_second", "1/s", &params, &runs));
            }
            let params = with(vec![("traffic", "established".into())]);
            report.results.push(Measured::of("loss_percent", "%", &params, &figures(&Trial::loss)));
            let missed = figures(&|trial| trial.missed as f64);
            let params = with(vec![("reason", "receive-queue".into())]);
            report.results.push(Measured::of("packets_lost", "packets", &params, &missed));
            for reason in datapath::Reason::ALL {
                let lost = figures(&|trial| trial.dropped(*reason) as f64);
                if lost.iter().any(|lost| *lost > 0.0) {
                    let params = with(vec![("reason", reason.label().into())]);
                    report.results.push(Measured::of("packets_lost", "packets", &params, &lost));
                }
            }
            progress.keep(&report);
        }
    }
    report.notes.push(format!(
        "{} established flows, uplink; cycles_per_packet of established beside a flood: all cycles less those that flood packets \
         take alone, the port's own included; \
         offered: percent of the core that established packets take without a flood; one \
         receive queue of {DESCRIPTORS} descriptors for both, {} s a run; loss_percent: of the established packets offered",
        config.flows, config.seconds
    ));
    Ok(report)
}

/// Bursts without end: what packets of both kinds cost; says what an established one costs alone.
fn costs(
    config: &FloodConfig,
    rig: &mut Rig,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<f64, PathError> {
    let mut push = |traffic: &'static str, share: u64, runs: &[f64]| {
        let params = [("flood_share", share.into()), ("traffic", traffic.into())];
        report.results.push(Measured::of("cycles_per_packet", "cycles", &params, runs));
        report.results.last().map_or(0.0, |measured| measured.median)
    };
    let mut all = |rig: &mut Rig, share| -> Result<Vec<f64>, PathError> {
        progress.tell(&format!("bursts without end, flood {share} % of the packets"));
        (0..=config.runs).map(|_| rig.without_end(share, config.packets)).skip(1).collect()
    };
    let flood = push("flood", 100, &all(rig, 100)?);
    let mut alone = 0.0;
    for &share in &config.shares {
        let part = share as f64 / 100.0;
        let own: Vec<f64> = all(rig, share)?
            .iter()
            .map(|cycles| (cycles - part * flood) / (1.0 - part).max(f64::MIN_POSITIVE))
            .collect();
        let median = push("established", share, &own);
        if share == 0 {
            alone = median;
        }
    }
    if alone <= 0.0 {
        // Nobody asked for it, but the loads are percentages of it.
        let mut own = rig.without_end(0, config.packets)?;
        own = own.min(rig.without_end(0, config.packets)?);
        alone = own;
    }
    Ok(alone)
}

/// What became of one run's packets.
#[derive(Debug)]
struct Trial {
    /// Established packets that came.
    offered: f64,
    /// Of those, forwarded.
    served: u64,
    /// The flood's packets forwarded.
    flood: u64,
    /// Packets of both kinds that found the receive queue full.
    missed: u64,
    before: Counters,
    after: Counters,
}

impl Trial {
    /// Percent of the established packets that did not leave.
    fn loss(&self) -> f64 {
        100.0 * (1.0 - self.served as f64 / self.offered.max(1.0)).max(0.0)
    }

    fn dropped(&self, reason: datapath::Reason) -> u64 {
        self.after.dropped(reason) - self.before.dropped(reason)
    }
}

/// Established flows, and who floods.
struct Rig {
    path: Path,
    clock: Tsc,
    established: Stream,
    trace: Trace,
}

impl Rig {
    fn new(flows: usize, clock: Tsc, progress: &mut dyn Progress) -> Result<Self, PathError> {
        // As shipped, but for room for the flows of all runs.
        let mut path = Path::new(clock, |config: &mut Config| {
            config.flows = ROOM.max(2 * flows as u32);
        })?;
        let subscribers = flows::establish(&mut path, flows.div_ceil(FLOWS_PER_SESSION), progress)?;
        let mut packets = flows::each_flow(&subscribers, FLOWS_PER_SESSION);
        packets.truncate(flows);
        path::shuffle(&mut packets);
        let established = path::stream(true, packets.into_iter())?;
        let all = flows as u64;
        path.once(&established, 0, all, &mut |done| progress.part(done, all))?;
        let (expected, found) = (flows as u64, path.datapath.counters().flows.live());
        if expected == found {
            Ok(Self { path, clock, established, trace: Trace::default() })
        } else {
            Err(PathError::FlowsLost { expected, found })
        }
    }

    /// Fresh subscribers with at least so many flows in all (as far as memory allows), a packet of each; neighbours are of different
    /// subscribers. Says how many flows.
    fn sources(&mut self, flows: usize) -> Result<(Stream, u64), PathError> {
        let sources = flows.div_ceil(PORTS).clamp(1, MOST_SOURCES);
        let subscribers: Vec<Subscriber> = flows::establish(&mut self.path, sources, &mut Silent)?;
        let ports = flows.div_ceil(sources).min(PORTS);
        let packets = (0..ports).flat_map(|port| subscribers.iter().map(move |of| (*of, port as u16)));
        Ok((path::stream(true, packets)?, (ports * sources) as u64))
    }

    /// A source in which this share of the packets is the flood's, and how many flows that has.
    fn mixed(&mut self, share: u64, packets: f64) -> Result<(ReplayRx, u64), PathError> {
        let (flood, flows) = self.sources((packets * share as f64 / 100.0) as usize + 1)?;
        // Of a hundred packets those on which the flood's share passes a whole number.
        let schedule = (0..100).map(|n| u8::from((n + 1) * share / 100 > n * share / 100)).collect();
        Ok((ReplayRx::mixed(vec![self.established.clone(), flood], schedule)?, flows))
    }

    /// Cycles per packet of full bursts.
    fn without_end(&mut self, share: u64, packets: usize) -> Result<f64, PathError> {
        let (rx, flows) = self.mixed(share, packets as f64)?;
        let before = self.path.datapath.counters().clone();
        let cycles = self.path.forward_lossy(&mut Mix::of(rx, 0), packets).median;
        self.expect_no_repetition(&before, packets as u64 * share / 100, flows)?;
        Ok(cycles)
    }

    /// Established packets at this rate, and a flood on top that has this share of all packets.
    fn offer(&mut self, rate: f64, share: u64, seconds: f64) -> Result<Trial, PathError> {
        let all = rate / (1.0 - share.min(99) as f64 / 100.0);
        let (rx, flows) = self.mixed(share, all * seconds)?;
        let before = self.path.datapath.counters().clone();
        let arrivals = Arrivals::new(self.clock.ticks(), all, &self.clock, DESCRIPTORS);
        let mut lanes = [Lane { port: 0, rx, arrivals }];
        arrivals::serve(&mut self.path, &self.clock, &mut lanes, seconds, &mut self.trace);
        let [Lane { arrivals, .. }] = lanes;
        let after = self.path.datapath.counters().clone();
        let received = after.received - before.received;
        self.expect_no_repetition(&before, received * share / 100, flows)?;
        let served = after.flows.served - before.flows.served;
        Ok(Trial {
            offered: arrivals.came() as f64 * (100 - share) as f64 / 100.0,
            served,
            flood: after.sent - before.sent - served,
            missed: arrivals.missed(),
            before,
            after,
        })
    }

    /// An error if a flow of the flood came twice, or an established one was forgotten.
    fn expect_no_repetition(&self, before: &Counters, sent: u64, flows: u64) -> Result<(), PathError> {
        let now = self.path.datapath.counters();
        if sent > flows + 1 || now.flows.evicted > before.flows.evicted {
            return Err(PathError::FlowsLost { expected: sent, found: flows });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_flood_has_its_share_and_none_of_its_flows_is_known() {
        let _alone = crate::crew::alone();
        let mut rig = Rig::new(500, Tsc::process(), &mut Silent).unwrap();
        for share in [0, 10, 50, 90] {
            let before = rig.path.datapath.counters().clone();
            rig.without_end(share, 2_560).unwrap();
            let after = rig.path.datapath.counters();
            let new =
                (after.flows.learned + after.flows.refused) - (before.flows.learned + before.flows.refused);
            let lost = after.dropped_total() - before.dropped_total();
            let served = after.flows.served - before.flows.served;
            assert_eq!(new + lost + served, 2_560, "{share}");
            // The schedule's last hundred is not whole.
            assert!((new + lost).abs_diff(2_560 * share / 100) <= share, "{new} and {lost} of {share} %");
        }
    }

    #[test]
    fn what_comes_is_served_or_missed_or_dropped() {
        let _alone = crate::crew::alone();
        let mut rig = Rig::new(200, Tsc::process(), &mut Silent).unwrap();
        // More than a build for tests can do: the queue overflows.
        let trial = rig.offer(20_000_000.0, 50, 0.02).unwrap();
        assert!(trial.missed > 0 && trial.loss() > 0.0 && trial.loss() <= 100.0);
        let received = trial.after.received - trial.before.received;
        let dropped = trial.after.dropped_total() - trial.before.dropped_total();
        assert_eq!(received, trial.served + trial.flood + dropped);
        assert_eq!((trial.offered * 2.0) as u64, received + trial.missed);
        let idle = rig.offer(1_000.0, 0, 0.02).unwrap();
        assert_eq!((idle.flood, idle.missed), (0, 0));
    }
}
