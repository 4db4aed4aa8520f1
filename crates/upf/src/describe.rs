//! The UPF's state as the control socket tells it.

use super::bindings::Bindings;
use super::convert::dropped;
use super::{Backend, Upf};
use api::{
    Answers, Config, CtlError, DropList, Drops, ErrorCode, InForce, Nat, NatPoolLine, NatStatus, Offload,
    OffloadStatus, PortList, Ports, Program, RecentLoad, SliceLine, SliceList, Slices, StageLine, Stages,
    StagesLine, StagesList, Stop, Stopping, Version, WorkerLine, WorkerList, Workers,
};
use config::SliceSection;
use counters::Count;
use datapath::{Command, Counters, SliceTraffic, Stage, StageCosts};
use engine::{Gauge, Load, WorkerReport};
use std::time::Duration;
use tables::Nanos;

/// How long workers are watched for what they do at present.
const RECENT: Duration = Duration::from_secs(1);

impl Answers<Version> for Backend {
    fn answer(&self, _: Version) -> Result<Program, CtlError> {
        self.ask(|upf| {
            Ok(Program {
                version: env!("CARGO_PKG_VERSION").into(),
                pid: std::process::id(),
                uptime_seconds: upf.started.elapsed().as_secs(),
                node_id: upf.config.node_id.to_string(),
                sessions: upf.n4.store().counts().sessions as u64,
            })
        })
    }
}

impl Answers<Config> for Backend {
    fn answer(&self, _: Config) -> Result<InForce, CtlError> {
        let config = self.ask(|upf| Ok(upf.config.clone()))?;
        // On the asker's own thread.
        let failed = |error: toml::ser::Error| CtlError::new(ErrorCode::Unavailable, error.to_string());
        Ok(InForce { toml: config.to_toml().map_err(failed)? })
    }
}

impl Answers<Stop> for Backend {
    fn answer(&self, _: Stop) -> Result<Stopping, CtlError> {
        self.ask(|upf| {
            upf.stopping = true;
            Ok(Stopping {})
        })
    }
}

impl Answers<Ports> for Backend {
    fn answer(&self, _: Ports) -> Result<PortList, CtlError> {
        self.ask(|upf| Ok(PortList { ports: (upf.ports)() }))
    }
}

pub(super) fn reports(upf: &mut Upf) -> Result<Vec<WorkerReport>, CtlError> {
    upf.engine.reports().map_err(|error| CtlError::new(ErrorCode::Unavailable, error.to_string()))
}

/// All workers' counters.
pub(super) fn counters(upf: &mut Upf) -> Result<Counters, CtlError> {
    let mut sum = Counters::default();
    for report in reports(upf)? {
        sum.merge(&report.counters);
    }
    Ok(sum)
}

impl Answers<Drops> for Backend {
    fn answer(&self, _: Drops) -> Result<DropList, CtlError> {
        self.ask(|upf| Ok(DropList { drops: counters(upf)?.drops().map(dropped).collect() }))
    }
}

impl Answers<Slices> for Backend {
    fn answer(&self, _: Slices) -> Result<SliceList, CtlError> {
        self.ask(|upf| Ok(SliceList { slices: slices(upf)? }))
    }
}

fn slices(upf: &mut Upf) -> Result<Vec<SliceLine>, CtlError> {
    let mut sums = vec![[SliceTraffic::default(); 2]; upf.config.slices.len()];
    for report in reports(upf)? {
        for (sum, both) in sums.iter_mut().zip(&report.slices) {
            for (sum, traffic) in sum.iter_mut().zip(both) {
                *sum = sum.plus(*traffic);
            }
        }
    }
    let line = |slice: &SliceSection, uplink: bool, traffic: &SliceTraffic| {
        let (guaranteed, maximum) = if uplink {
            (slice.uplink_guaranteed, slice.uplink)
        } else {
            (slice.downlink_guaranteed, slice.downlink)
        };
        let forwarded = traffic.green.plus(traffic.yellow);
        SliceLine {
            name: slice.name.clone(),
            direction: if uplink { "uplink" } else { "downlink" }.into(),
            guaranteed: guaranteed.or(maximum).map(|rate| rate.0),
            maximum: maximum.map(|rate| rate.0),
            packets: forwarded.packets,
            bytes: forwarded.bytes,
            yellow_packets: traffic.yellow.packets,
            yellow_bytes: traffic.yellow.bytes,
            dropped_packets: traffic.red.packets,
            dropped_bytes: traffic.red.bytes,
        }
    };
    let slices = upf.config.slices.iter().zip(&sums);
    Ok(slices.flat_map(|(slice, [up, down])| [line(slice, true, up), line(slice, false, down)]).collect())
}

impl Answers<Nat> for Backend {
    fn answer(&self, _: Nat) -> Result<NatStatus, CtlError> {
        self.ask(nat)
    }
}

fn nat(upf: &mut Upf) -> Result<NatStatus, CtlError> {
    let counters = counters(upf)?;
    let plan = upf.net.nat().cloned().unwrap_or_default();
    let line = |(at, settings): (usize, &datapath::nat::Settings)| {
        let counted = counters.nat.get(at).copied().unwrap_or_default();
        NatPoolLine {
            pool: settings.name.clone(),
            blocks: u64::from(plan.blocks(at)),
            blocks_used: counted.blocks(),
            mappings: counted.mappings(),
            mappings_made: counted.mappings_made,
        }
    };
    let drops = counters.drops().filter(|(reason, _)| reason.label().starts_with("nat-"));
    Ok(NatStatus {
        pools: plan.placed().map(line).collect(),
        drops: drops.map(dropped).collect(),
        log_lines_lost: upf.bindings.as_ref().map_or(0, Bindings::lost),
    })
}

impl Answers<Offload> for Backend {
    fn answer(&self, _: Offload) -> Result<OffloadStatus, CtlError> {
        self.ask(|upf| {
            let ports: Vec<_> = (upf.ports)().into_iter().map(|port| port.name).collect();
            Ok(super::offload::describe(&reports(upf)?, &ports))
        })
    }
}

impl Answers<Workers> for Backend {
    fn answer(&self, _: Workers) -> Result<WorkerList, CtlError> {
        let before = self.ask(loads)?;
        // This thread is the asker's own: nobody else waits.
        std::thread::sleep(RECENT);
        self.ask(move |upf| Ok(WorkerList { workers: workers(upf, &before)? }))
    }
}

/// How every worker's time went so far, and what it served: for [`workers`], some time later.
fn loads(upf: &mut Upf) -> Result<Vec<(Load, u64)>, CtlError> {
    Ok(reports(upf)?.iter().map(|report| (report.load, served(report))).collect())
}

fn workers(upf: &mut Upf, before: &[(Load, u64)]) -> Result<Vec<WorkerLine>, CtlError> {
    let hz = upf.clock.hz() as f64;
    // First: being asked wakes them.
    let gauges = upf.engine.gauges();
    let reports = reports(upf)?;
    let line = |((at, report), gauge): ((usize, &WorkerReport), &Gauge)| {
        let recent = before.get(at).map(|before| recent(report, before, hz));
        WorkerLine { recent, ..worker(report, *gauge, hz) }
    };
    Ok(reports.iter().enumerate().zip(&gauges).map(line).collect())
}

/// So long stages are counted after the last who asked, in nanoseconds.
const STAGES_COUNTED: u64 = 2 * Nanos::SECOND;

/// From now on what each stage costs is counted.
fn count_stages(upf: &mut Upf) {
    let (clock, until) = (upf.clock, upf.clock.now().plus(STAGES_COUNTED));
    upf.engine.broadcast(|| Command::CountStages { clock, until });
    upf.engine.flush();
}

impl Answers<Stages> for Backend {
    fn answer(&self, _: Stages) -> Result<StagesList, CtlError> {
        self.ask(|upf| {
            count_stages(upf);
            Ok(())
        })?;
        std::thread::sleep(RECENT);
        self.ask(|upf| Ok(StagesList { stages: stages(upf)? }))
    }
}

fn stages(upf: &mut Upf) -> Result<Vec<StagesLine>, CtlError> {
    let line = |report: &WorkerReport| {
        let StageCosts { packets, bursts, ticks } = report.stages;
        let stage = |(stage, ticks): (Stage, u64)| StageLine {
            stage: stage.label().into(),
            cycles_per_packet: (packets > 0).then(|| ticks as f64 / packets as f64),
        };
        let stages = ticks.iter().map(stage).collect();
        StagesLine { worker: report.worker as u16, packets, bursts, stages }
    };
    Ok(reports(upf)?.iter().map(line).collect())
}

/// Packets that a worker was given.
const fn served(report: &WorkerReport) -> u64 {
    report.counters.received + report.counters.handed_in
}

fn cycles_per_packet(busy_nanos: u64, packets: u64, hz: f64) -> Option<f64> {
    (packets > 0).then(|| busy_nanos as f64 / Nanos::SECOND as f64 * hz / packets as f64)
}

/// Since an earlier look.
fn recent(report: &WorkerReport, (before, served_before): &(Load, u64), hz: f64) -> RecentLoad {
    let load = &report.load;
    let span = load.total_nanos.saturating_sub(before.total_nanos);
    let busy = load.busy_nanos.saturating_sub(before.busy_nanos);
    let asleep = load.asleep_nanos.saturating_sub(before.asleep_nanos);
    let packets = served(report).saturating_sub(*served_before);
    let share = |nanos: u64| nanos as f64 / span.max(1) as f64;
    let seconds = span as f64 / Nanos::SECOND as f64;
    RecentLoad {
        seconds,
        busy: share(busy),
        asleep: share(asleep),
        packets_per_second: if span > 0 { packets as f64 / seconds } else { 0.0 },
        cycles_per_packet: cycles_per_packet(busy, packets, hz),
    }
}

/// `hz`: cycles in a second.
pub(super) fn worker(report: &WorkerReport, gauge: Gauge, hz: f64) -> WorkerLine {
    let (counters, load) = (&report.counters, &report.load);
    let share = |nanos: u64| nanos as f64 / load.total_nanos.max(1) as f64;
    WorkerLine {
        worker: report.worker as u16,
        core: report.core.map(|core| core as u16),
        shards: report.shards as u16,
        received: counters.received,
        remote: report.remote_packets(),
        sent: counters.sent,
        handed_off: load.handed_off,
        dropped: counters.dropped_total(),
        held: counters.held,
        held_limit: report.held_limit as u64,
        busy: share(load.busy_nanos),
        asleep: share(load.asleep_nanos),
        sleeping: gauge.asleep,
        cycles_per_packet: cycles_per_packet(load.busy_nanos, served(report), hz),
        recent: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_does_at_present_is_told_from_what_it_did_since_it_started() {
        let report = |busy_nanos, total_nanos, received| {
            let load = Load { busy_nanos, asleep_nanos: 0, total_nanos, ..Load::default() };
            WorkerReport {
                load,
                counters: Counters { received, ..Counters::default() },
                ..WorkerReport::default()
            }
        };
        let before = report(10 * Nanos::SECOND, 1_000 * Nanos::SECOND, 5_000_000);
        let now = report(10 * Nanos::SECOND + Nanos::SECOND / 2, 1_002 * Nanos::SECOND, 6_000_000);
        let recent = recent(&now, &(before.load, served(&before)), 1e9);
        assert_eq!((recent.seconds, recent.busy, recent.packets_per_second), (2.0, 0.25, 500_000.0));
        assert_eq!(recent.cycles_per_packet, Some(500.0));
        let line = worker(&now, Gauge::default(), 1e9);
        assert!(line.busy < 0.011 && line.cycles_per_packet == Some(1_750.0));
        let idle = super::recent(&now, &(now.load, served(&now)), 1e9);
        assert_eq!((idle.cycles_per_packet, idle.packets_per_second), (None, 0.0));
    }
}
