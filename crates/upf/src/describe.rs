//! The UPF's state as the control socket tells it.

use super::convert::dropped;
use super::view::View;
use super::{Backend, Upf, sums};
use api::{
    Answers, Config, CtlError, DropList, Drops, ErrorCode, InForce, LookupStatus, Lookups, Nat, NatPoolLine,
    NatStatus, Offload, OffloadStatus, PortList, Ports, Program, RecentLoad, SliceLine, SliceList, Slices,
    StageLine, Stages, StagesLine, StagesList, Stop, Stopping, Version, WorkerLine, WorkerList, Workers,
};
use config::SliceSection;
use counters::Count;
use datapath::{Command, SliceTraffic, Stage, StageCosts};
use engine::{Gauge, WorkerReport};
use std::time::Duration;
use tables::Nanos;

/// How long workers are watched for what they do at present.
const RECENT: Duration = Duration::from_secs(1);

impl Answers<Version> for Backend {
    fn answer(&self, _: Version) -> Result<Program, CtlError> {
        Ok(Program {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_seconds: self.view.started.elapsed().as_secs(),
            node_id: self.view.given().config.node_id.to_string(),
            sessions: self.view.control().sessions,
        })
    }
}

impl Answers<Config> for Backend {
    fn answer(&self, _: Config) -> Result<InForce, CtlError> {
        let failed = |error: toml::ser::Error| CtlError::new(ErrorCode::Unavailable, error.to_string());
        Ok(InForce { toml: self.view.given().config.to_toml().map_err(failed)? })
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
        Ok(PortList { ports: self.view.ports() })
    }
}

impl Answers<Drops> for Backend {
    fn answer(&self, _: Drops) -> Result<DropList, CtlError> {
        Ok(DropList { drops: self.view.counters().drops().map(dropped).collect() })
    }
}

impl Answers<Slices> for Backend {
    fn answer(&self, _: Slices) -> Result<SliceList, CtlError> {
        Ok(SliceList { slices: slices(&self.view) })
    }
}

fn slices(view: &View) -> Vec<SliceLine> {
    let given = view.given();
    let slices = &given.config.slices;
    let reports = view.reports();
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
    let lines = |(at, slice): (usize, &SliceSection)| {
        let [up, down] = sums::slice(&reports, at);
        [line(slice, true, &up), line(slice, false, &down)]
    };
    slices.iter().enumerate().flat_map(lines).collect()
}

impl Answers<Nat> for Backend {
    fn answer(&self, _: Nat) -> Result<NatStatus, CtlError> {
        Ok(nat(&self.view))
    }
}

fn nat(view: &View) -> NatStatus {
    let (counters, given) = (view.counters(), view.given());
    let plan = &given.nat;
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
    NatStatus {
        pools: plan.placed().map(line).collect(),
        drops: drops.map(dropped).collect(),
        log_lines_lost: view.control().bindings_lost,
    }
}

impl Answers<Offload> for Backend {
    fn answer(&self, _: Offload) -> Result<OffloadStatus, CtlError> {
        let given = self.view.given();
        let ports: Vec<_> = given.config.ports.iter().map(|port| port.name.clone()).collect();
        Ok(super::offload::describe(&self.view.reports(), &ports))
    }
}

impl Answers<Lookups> for Backend {
    fn answer(&self, _: Lookups) -> Result<LookupStatus, CtlError> {
        Ok(super::lookups::describe(&self.view.reports()))
    }
}

impl Answers<Workers> for Backend {
    fn answer(&self, _: Workers) -> Result<WorkerList, CtlError> {
        let before = self.view.reports();
        // This thread is the asker's own: nobody else waits.
        std::thread::sleep(RECENT);
        Ok(WorkerList { workers: workers(&self.view, &before) })
    }
}

/// How every worker's time went, and what it does at present: since `before`.
fn workers(view: &View, before: &[WorkerReport]) -> Vec<WorkerLine> {
    let hz = view.clock.hz() as f64;
    let (gauges, reports) = (view.gauges(), view.reports());
    let line = |((at, report), gauge): ((usize, &WorkerReport), &Gauge)| {
        let recent = before.get(at).map(|before| recent(report, before, hz));
        WorkerLine { recent, ..worker(report, *gauge, hz) }
    };
    reports.iter().enumerate().zip(&gauges).map(line).collect()
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
        Ok(StagesList { stages: stages(&self.view) })
    }
}

fn stages(view: &View) -> Vec<StagesLine> {
    let line = |report: &WorkerReport| {
        let StageCosts { packets, bursts, ticks } = report.stages;
        let stage = |(stage, ticks): (Stage, u64)| StageLine {
            stage: stage.label().into(),
            cycles_per_packet: (packets > 0).then(|| ticks as f64 / packets as f64),
        };
        let stages = ticks.iter().map(stage).collect();
        StagesLine { worker: report.worker as u16, packets, bursts, stages }
    };
    view.reports().iter().map(line).collect()
}

/// Packets that a worker was given.
const fn served(report: &WorkerReport) -> u64 {
    report.counters.received + report.counters.handed_in
}

fn cycles_per_packet(busy_nanos: u64, packets: u64, hz: f64) -> Option<f64> {
    (packets > 0).then(|| busy_nanos as f64 / Nanos::SECOND as f64 * hz / packets as f64)
}

/// Since an earlier look.
fn recent(report: &WorkerReport, before: &WorkerReport, hz: f64) -> RecentLoad {
    let served_before = served(before);
    let (load, before) = (&report.load, &before.load);
    let span = load.total_nanos.saturating_sub(before.total_nanos);
    let busy = load.busy_nanos.saturating_sub(before.busy_nanos);
    let asleep = load.asleep_nanos.saturating_sub(before.asleep_nanos);
    let packets = served(report).saturating_sub(served_before);
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
    use datapath::Counters;
    use engine::Load;

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
        let recent = recent(&now, &before, 1e9);
        assert_eq!((recent.seconds, recent.busy, recent.packets_per_second), (2.0, 0.25, 500_000.0));
        assert_eq!(recent.cycles_per_packet, Some(500.0));
        let line = worker(&now, Gauge::default(), 1e9);
        assert!(line.busy < 0.011 && line.cycles_per_packet == Some(1_750.0));
        let idle = super::recent(&now, &now, 1e9);
        assert_eq!((idle.cycles_per_packet, idle.packets_per_second), (None, 0.0));
    }
}
