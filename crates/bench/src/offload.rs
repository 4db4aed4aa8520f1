//! `offload`: what a NIC with a flow table takes off a worker's hands, on the in-memory switch.
//!
//! Sessions are those of [`crate::forward`], in the simple scene, each with an AMBR of 1 Gbit/s and four flows, whose packets come by Zipf's law; all shipped
//! settings ([`Policy::new`]). Time is simulated, a millisecond a round, so that how long a flow takes until it is in the device doesn't
//! depend on the machine; cycles are the worker's alone: receiving, looking, processing, sending, timers, and the management of
//! the device. What the model of the NIC costs is not ours to measure.

use crate::flows::skewed;
use crate::forward::rules;
use crate::path::{
    self, Costs, MTU, N3_MAC, N6_MAC, Numbering, PAYLOAD, PathError, Subscriber, network, teids,
};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use datapath::offload::{Mode, Offload, OffloadReport, Policy};
use datapath::{Burst, Command, Config, Datapath, Event, Outbox, Token, Transition};
use io::mem::{
    FlowTableConfig, FrameSize, MemConfig, MemFrame, MemNic, MemPool, MemRx, MemSwitch, MemTx, MemWire,
    RssMode,
};
use io::replay::ReplayRx;
use io::{BURST, Port, RxQueue, TxQueue};
use packet::MacAddr;
use session::ShardId;
use session::rules::Rules;
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;

/// Flows of a session: their UE's ports.
const PORTS: u16 = 4;
/// The first of them.
const FIRST_PORT: u16 = 40_000;
/// Each session's aggregate maximum bit rate, each way.
const AMBR: u64 = 1_000_000_000;
/// Packets drawn before the sequence repeats itself.
const SEQUENCE: usize = 1 << 20;
/// A round.
const ROUND: u64 = 1_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct OffloadConfig {
    /// Sessions.
    pub sessions: usize,
    /// Rules that fit in the device; 0: nothing is offloaded.
    pub entries: Vec<u32>,
    /// Packets a millisecond.
    pub packets: usize,
    /// Simulated milliseconds: until the device is filled, and measured then.
    pub before: u32,
    /// See [`Self::before`].
    pub measured: u32,
    /// Runs of each case.
    pub runs: usize,
}

impl OffloadConfig {
    /// A million packets a second.
    pub fn full() -> Self {
        let entries = vec![0, 16, 256, 4096];
        Self { sessions: 16_384, entries, packets: 1_000, before: 3_000, measured: 500, runs: 3 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        let entries = vec![0, 16, 256];
        Self { sessions: 4_096, entries, packets: 1_000, before: 2_000, measured: 200, runs: 1 }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &OffloadConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("offload", &clock);
    for uplink in [true, false] {
        let direction = if uplink { "uplink" } else { "downlink" };
        for &entries in &config.entries {
            let (mut cycles, mut offered, mut shares) = (Costs::default(), Vec::new(), Vec::new());
            let (mut heaviest, mut filled, mut rules) = (Vec::new(), Vec::new(), Vec::new());
            for run in 1..=config.runs {
                progress.tell(&format!("{direction}, {entries} rules, run {run}"));
                let mut world = World::new(config, uplink, entries, clock)?;
                let found = world.measure(config, progress)?;
                cycles.medians.push(found.median);
                cycles.means.push(found.cycles as f64 / found.worker.max(1) as f64);
                offered.push(found.cycles as f64 / found.offered as f64);
                shares.push((found.offered - found.worker) as f64 * 100.0 / found.offered as f64);
                heaviest.extend(found.heaviest.map(f64::from));
                filled.extend(found.filled.map(f64::from));
                rules.push(found.rules as f64);
            }
            let params = [
                ("direction", direction.into()),
                ("entries", u64::from(entries).into()),
                ("flows", (config.sessions as u64 * u64::from(PORTS)).into()),
                ("payload", (PAYLOAD as u64).into()),
            ];
            let mut add = |name, unit, runs: &[f64]| {
                report.results.push(Measured::of(name, unit, &params, runs));
            };
            add("offloaded_percent", "%", &shares);
            add("rules", "rules", &rules);
            // Of runs in which it didn't come to that there is no time, and the middle of the others would flatter.
            let mut notes = Vec::new();
            for (name, what, runs) in [
                ("offloaded_after_ms", "the heaviest flow was not offloaded", heaviest),
                ("filled_after_ms", "nothing was offloaded", filled),
            ] {
                let without = config.runs - runs.len();
                if entries > 0 && without == 0 {
                    add(name, "ms", &runs);
                } else if entries > 0 {
                    notes.push(format!(
                        "{direction}, {entries} rules: {what} within {} ms in {without} of {} runs",
                        config.before, config.runs
                    ));
                }
            }
            add("cycles_per_offered_packet", "cycles", &offered);
            report.notes.extend(notes);
            cycles.report(&mut report, &params);
            progress.keep(&report);
        }
    }
    report.notes.push(
        "cycles are the worker's alone, the management of the device included: per packet that it handled, or that was offered; \
         milliseconds are simulated time since the first packet, with the shipped settings (docs/offload.md)"
            .into(),
    );
    Ok(report)
}

/// What a run came to.
struct Found {
    /// Cycles per packet of the middle round.
    median: f64,
    /// All of the worker's.
    cycles: u64,
    /// Packets that it handled, of so many.
    worker: u64,
    offered: u64,
    /// Rules in the device at the end.
    rules: usize,
    /// When the heaviest flow was in the device, and when nine in ten of those rules were, in simulated milliseconds.
    heaviest: Option<u32>,
    filled: Option<u32>,
}

/// A worker, its ports, and who sends.
struct World {
    datapath: Datapath<MemFrame>,
    offload: Option<Offload>,
    switch: MemSwitch,
    queues: Vec<(MemRx, MemTx)>,
    wires: Vec<MemWire>,
    out: Outbox<MemFrame>,
    pool: MemPool,
    clock: Tsc,
    now: Nanos,
    source: ReplayRx,
    uplink: bool,
    heaviest: (Subscriber, u16),
    sent: u64,
    arrived: u64,
}

impl World {
    fn new(config: &OffloadConfig, uplink: bool, entries: u32, clock: Tsc) -> Result<Self, PathError> {
        let datapath_config = Config { teids: teids(), ..Config::new(network()?.fib()) };
        let mut datapath = Datapath::new(datapath_config);
        for id in ShardId::all() {
            let shard = datapath.new_shard(id);
            datapath.adopt(shard);
        }
        let table = FlowTableConfig { entries, meters: 2 * entries, ..FlowTableConfig::default() };
        let switch = MemSwitch::new(table);
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for mac in [N3_MAC, N6_MAC] {
            let (nic, wire) = port(mac, config.packets)?;
            switch.plug(&nic);
            ports.push(nic);
            wires.push(wire);
        }
        let mut pool = MemPool::new(1 << 12, FrameSize::for_mtu(MTU));
        let devices = ports.iter_mut().map(Port::offload).collect();
        let offload = (entries > 0).then(|| Offload::new(Policy::new(Mode::Full), devices));
        let queues = ports.iter_mut().filter_map(|nic| nic.take_queue(0)).collect();
        let now = Nanos(Nanos::SECOND);
        let mut out = Outbox::new(2);
        let (mut numbering, mut flows) = (Numbering::default(), Vec::new());
        for _ in 0..config.sessions {
            let (place, tunnel, ue) = numbering.assign_to(IpAddr::from);
            let rules = limited(rules(place, tunnel, ue));
            let seid = rules.seid;
            let (token, transition, query) = (Token(0), Transition::default(), Box::default());
            let install = Command::Install { token, rules: Arc::new(rules), transition, query };
            datapath.apply(now, install, &mut out, &mut pool);
            let Some(Event::Applied { .. }) = out.events.pop() else {
                return Err(PathError::NotInstalled(seid));
            };
            let subscriber = Subscriber { teid: tunnel.teid, ue };
            flows.extend((0..PORTS).map(|port| (subscriber, FIRST_PORT + port)));
        }
        path::shuffle(&mut flows);
        let heaviest = *flows.first().ok_or(PathError::Short(0))?;
        let source = ReplayRx::new(path::stream(uplink, skewed(&flows, SEQUENCE).into_iter())?);
        let (sent, arrived) = (0, 0);
        Ok(Self {
            datapath,
            offload,
            switch,
            queues,
            wires,
            out,
            pool,
            clock,
            now,
            source,
            uplink,
            heaviest,
            sent,
            arrived,
        })
    }

    fn measure(&mut self, config: &OffloadConfig, progress: &mut dyn Progress) -> Result<Found, PathError> {
        let mut by_round = Vec::new();
        let mut heaviest = None;
        let all = config.before + config.measured;
        for round in 0..config.before {
            self.round(config.packets);
            let report = self.report();
            by_round.push(report.entries);
            if heaviest.is_none() && self.is_heaviest_in(&report) {
                heaviest = Some(round + 1);
            }
            if round.is_multiple_of(64) {
                progress.part(round.into(), all.into());
            }
        }
        let (mut costs, mut cycles, mut worker) = (Vec::new(), 0, 0);
        let begin = self.sent;
        for _ in 0..config.measured {
            let (taken, handled) = self.round(config.packets);
            (cycles, worker) = (cycles + taken, worker + handled);
            costs.push(taken as f64 / handled.max(1) as f64);
        }
        self.nothing_lost()?;
        let rules = self.report().entries;
        let nearly = (rules * 9).div_ceil(10);
        let filled = by_round.iter().position(|entries| rules > 0 && *entries >= nearly);
        costs.sort_by(f64::total_cmp);
        Ok(Found {
            median: costs.get(costs.len() / 2).copied().unwrap_or_default(),
            cycles,
            worker,
            offered: self.sent - begin,
            rules,
            heaviest,
            filled: filled.map(|round| round as u32 + 1),
        })
    }

    /// A millisecond: cycles that the worker took, and packets that it handled.
    fn round(&mut self, packets: usize) -> (u64, u64) {
        let (mut cycles, mut handled, mut left) = (0, 0, packets);
        let (mut frames, mut burst) = (Vec::with_capacity(BURST), Burst::new());
        let port = usize::from(!self.uplink);
        while left > 0 {
            self.source.rx_burst(&mut frames, BURST.min(left));
            left -= frames.len();
            self.sent += frames.len() as u64;
            if let Some(wire) = self.wires.get_mut(port) {
                wire.inject(&mut frames);
            }
            let begin = self.clock.ticks();
            while let Some((rx, _)) = self.queues.get_mut(port)
                && rx.rx_burst(&mut burst.frames, BURST) > 0
            {
                handled += burst.frames.len() as u64;
                if let Some(offload) = &mut self.offload {
                    offload.sight(self.now, &self.datapath, port as u16, &burst.frames);
                }
                self.datapath.process(self.now, port as u16, &mut burst, &mut self.out, &mut self.pool);
                if let Some(offload) = &mut self.offload {
                    offload.check(self.now, &mut self.datapath, &mut self.out);
                }
                self.send();
            }
            cycles += self.clock.ticks() - begin;
            for wire in &mut self.wires {
                self.arrived += wire.collect(&mut frames, usize::MAX) as u64;
                frames.clear();
            }
        }
        self.now = self.now.plus(ROUND);
        self.switch.set_time(self.now);
        let begin = self.clock.ticks();
        if let Some(offload) = &mut self.offload {
            offload.tick(self.now, &mut self.datapath, &mut self.out);
        }
        self.datapath.tick(self.now, &mut self.out, &mut self.pool);
        self.send();
        (cycles + self.clock.ticks() - begin, handled)
    }

    fn send(&mut self) {
        for (frames, (_, tx)) in self.out.transmit.iter_mut().zip(&mut self.queues) {
            tx.tx_burst(frames);
        }
        self.out.events.clear();
    }

    fn report(&self) -> OffloadReport {
        self.offload.as_ref().map(|offload| offload.report(usize::MAX)).unwrap_or_default()
    }

    fn is_heaviest_in(&self, report: &OffloadReport) -> bool {
        let (Subscriber { ue, .. }, port) = self.heaviest;
        let ue = Some(IpAddr::from(ue));
        report.some.iter().any(|entry| {
            let flow = &entry.flow;
            if self.uplink {
                flow.source == ue && flow.ports.is_some_and(|(own, _)| own == port)
            } else {
                flow.destination == ue
            }
        })
    }

    /// Whoever forwarded them, all packets have left.
    fn nothing_lost(&mut self) -> Result<(), PathError> {
        let lost = self.sent - self.arrived;
        let reason =
            self.datapath.counters().drops().next().map_or("in the device", |(reason, _)| reason.label());
        if lost > 0 { Err(PathError::Dropped { packets: lost, reason }) } else { Ok(()) }
    }
}

/// An ordinary session's rules, with its AMBR.
fn limited(mut rules: Rules) -> Rules {
    for qer in &mut rules.qers {
        (qer.uplink_mbr, qer.downlink_mbr) = (Some(AMBR), Some(AMBR));
    }
    rules
}

fn port(mac: MacAddr, packets: usize) -> Result<(MemNic, MemWire), PathError> {
    let config = MemConfig { mac, mtu: MTU, rss: RssMode::Preset, ..MemConfig::default() };
    MemNic::new(config).map_err(|_| PathError::Short(packets))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn a_table_takes_the_heavy_flows_and_nothing_is_lost() {
        let config = OffloadConfig {
            sessions: 16,
            entries: vec![0, 4],
            packets: 100,
            before: 1_350,
            measured: 50,
            runs: 1,
        };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        assert_eq!(crate::compose::figure(&report).panels.len(), 2);
        for direction in ["uplink", "downlink"] {
            let of = |name, entries: u64| {
                report.median(name, &[("direction", direction.into()), ("entries", entries.into())])
            };
            assert_eq!((of("offloaded_percent", 0), of("rules", 0)), (Some(0.0), Some(0.0)));
            assert_eq!(of("offloaded_after_ms", 0), None);
            assert!(!report.notes.iter().any(|note| note.contains("not offloaded")), "{report}");
            assert_eq!(of("rules", 4), Some(4.0));
            assert!(of("offloaded_percent", 4).unwrap() > 25.0, "{report}");
            // Two windows, and the second that a flow must have lived.
            let after = of("offloaded_after_ms", 4).unwrap();
            assert!((1_000.0..1_300.0).contains(&after), "{after}");
        }
    }

    #[test]
    fn what_never_got_in_took_no_time_and_is_told() {
        // Less than the second that a flow must have lived.
        let config = OffloadConfig {
            sessions: 16,
            entries: vec![0, 4],
            packets: 100,
            before: 200,
            measured: 50,
            runs: 2,
        };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for name in ["offloaded_after_ms", "filled_after_ms"] {
            assert_eq!(report.find(name, &[]), None, "{report}");
        }
        let note = "uplink, 4 rules: the heaviest flow was not offloaded within 200 ms in 2 of 2 runs";
        assert!(report.notes.iter().any(|told| told == note), "{report}");
        assert!(!report.notes.iter().any(|told| told.contains(" 0 rules")), "{report}");
    }
}
