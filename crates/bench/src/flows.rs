//! `flow-table` and `flow-insert`: what packets cost whose sessions are classified flow by flow, and what a new flow costs.
//!
//! Sessions have filters in both directions (three PDRs each, of which the second matches), a maximum bit rate that the PDRs
//! share, and a URR: each packet finds its session, its flow, its rule and its meter. Thirty-two flows a session, as in the
//! flow offload paper's scenario of 131,072 subscribers with two bearers of 32 flows.

use crate::forward::rules;
use crate::machine;
use crate::path::{self, Costs, Mix, PAYLOAD, Path, PathError, SERVER_PORT, Subscriber};
use crate::progress::{Progress, Silent};
use crate::report::{Measured, Report};
use crate::scene::Scene;
use datapath::Config;
use engine::Supplier;
use io::BURST;
use packet::IpProtocol;
use pfcp::PdrId;
use rand::SeedableRng;
use rand::distr::Distribution;
use rand_distr::Zipf;
use session::SessionRef;
use session::classifier::Classifier;
use session::rules::{Pdr, Prefix, Rules, SdfFilter, Tunnel};
use std::net::Ipv4Addr;
use tables::clock::Tsc;
use tables::flow::{FlowKey, FlowTable, FlowValue};
use tables::hash::mix;
use tables::{Lookup, Nanos, Piece, Supply, SupplyCounters, Wish};

/// Flows of each session.
const FLOWS_PER_SESSION: usize = 32;
/// The UE's port of a session's first flow.
const FIRST_PORT: u16 = 10_000;
/// Exponent of the skewed distribution.
const ZIPF: f64 = 1.1;
/// Packets of a skewed sequence, before it is repeated.
const SEQUENCE: usize = 1 << 22;
/// Tables that `flow-insert` spreads flows over: as many as there are shards.
const TABLES: usize = session::SHARDS;

/// Where a table's memory comes from: taken from the system as flows come; made ready meanwhile by a thread of its own, as workers
/// have one; or all taken before.
const MEMORY: [&str; 3] = ["grown", SUPPLIED, RESERVED];
const SUPPLIED: &str = "supplied";
const RESERVED: &str = "reserved";
/// Bytes that are kept ready: as much as a worker keeps.
pub const SUPPLY: usize = 64 << 20;
/// Bursts between two visits of the supplier: about as often as a worker's ticks.
const VISIT: usize = 16;

/// What to measure.
#[derive(Clone, Debug)]
pub struct FlowsConfig {
    /// Numbers of flows.
    pub flows: Vec<usize>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run; at least one of each flow.
    pub packets: usize,
    /// Where flows are measured that are known, or learned.
    pub scenes: Vec<Scene>,
}

impl FlowsConfig {
    /// From a thousand flows to sixteen million.
    pub fn full() -> Self {
        let flows = vec![1 << 10, 1 << 16, 1 << 20, 8_388_608, 1 << 24];
        Self { flows, runs: 5, packets: 4_000_000, scenes: vec![Scene::MANY, Scene::MANY6] }
    }

    /// The smaller sizes, briefly.
    pub fn quick() -> Self {
        let flows = vec![1 << 10, 1 << 16, 1 << 20];
        Self { flows, runs: 3, packets: 1_000_000, scenes: vec![Scene::MANY, Scene::MANY6] }
    }
}

/// Runs `flow-table`; `progress` is told what is being measured, and what came of it.
pub fn run_table(config: &FlowsConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("flow-table", &clock);
    // First of all, while nothing that was freed lies about.
    if let Some(&most) = config.flows.iter().max() {
        resident_together(most, clock, &mut report, progress)?;
    }
    for &scene in &config.scenes {
        for &flows in &config.flows {
            for uplink in [true, false] {
                known(&mut report, config, scene, (flows, uplink), clock, progress)?;
            }
        }
    }
    report.notes.push(
        "one flow entry a direction; cycles are TSC ticks, the port's own (port_cycles_per_packet) included; settings as shipped, but \
         that there is room for all flows and none becomes idle"
            .into(),
    );
    Ok(report)
}

/// So many known flows in one direction.
fn known(
    report: &mut Report,
    config: &FlowsConfig,
    scene: Scene,
    (flows, uplink): (usize, bool),
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), PathError> {
    let direction = if uplink { "uplink" } else { "downlink" };
    let what = format!("IPv{}, {flows} flows: {direction}", scene.ip());
    progress.tell(&format!("{what}: learning"));
    let (mut path, mut packets) = prepare(scene, flows, (0, 0), clock, progress)?;
    learn(&mut path, uplink, &packets, progress)?;
    // Flows lie in memory in the order in which they were learned; packets come in another.
    path::shuffle(&mut packets);
    let live = path.datapath.counters().flows.live();
    for distribution in ["uniform", "zipf"] {
        progress.tell(&format!("{what}: {distribution}"));
        let sequence = match distribution {
            "zipf" => skewed(&packets, SEQUENCE),
            _ => packets.clone(),
        };
        let each = config.packets.max(sequence.len().min(flows));
        let source = scene.stream(uplink, sequence.into_iter())?;
        // Each run goes on where the last one ended.
        let mix = || Mix::of(scene.receive(&source), u16::from(!uplink));
        let (mut through, mut back) = (mix(), mix());
        let (mut whole, mut port) = (Costs::default(), Vec::new());
        for run in 0..=config.runs {
            let own = path.port_alone(&mut back, each);
            let cost = path.forward(&mut through, each)?;
            if run > 0 {
                whole.push(cost);
                port.push(own);
            }
        }
        let params = [
            ("direction", direction.into()),
            ("distribution", distribution.into()),
            ("flows", (flows as u64).into()),
            ("ip", scene.ip().into()),
            ("payload", (PAYLOAD as u64).into()),
            ("scene", scene.name.into()),
            ("servers", scene.place().into()),
        ];
        whole.report(report, &params);
        report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &port));
        progress.keep(report);
    }
    // Whatever was measured was measured on known flows.
    let now = path.datapath.counters().flows;
    if now.live() != live || now.refused > 0 {
        return Err(PathError::FlowsLost { expected: live, found: now.live() });
    }
    let bytes = path.datapath.flow_memory() as f64 / live as f64;
    let params = [
        ("direction", direction.into()),
        ("flows", (flows as u64).into()),
        ("ip", scene.ip().into()),
        ("scene", scene.name.into()),
    ];
    report.results.push(Measured::of("bytes_per_flow", "bytes", &params, &[bytes]));
    progress.keep(report);
    Ok(())
}

/// What so many flows take together with all that they need: sessions, their rules, and a meter for each sixteen flows.
fn resident_together(
    flows: usize,
    clock: Tsc,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), PathError> {
    // Half of a session's flows are of each direction, whose rules share a meter.
    let tuples = FLOWS_PER_SESSION / 2;
    let sessions = flows.div_ceil(FLOWS_PER_SESSION);
    progress.tell(&format!("{flows} flows and {} meters: learning", 2 * sessions));
    let before = machine::resident();
    let mut path = Path::new(clock, |config| room_for(flows, config))?;
    let mut subscribers = establish(&mut path, sessions, progress)?;
    path::shuffle(&mut subscribers);
    let mut learned = 0;
    for port in (FIRST_PORT..).take(tuples) {
        // In pieces, so that little of the memory that is counted is that of the packets.
        for some in subscribers.chunks(1 << 14) {
            let packets: Vec<_> = some.iter().map(|subscriber| (*subscriber, port)).collect();
            for uplink in [true, false] {
                learn(&mut path, uplink, &packets, &mut Silent)?;
                learned += packets.len();
                progress.part(learned as u64, (sessions * FLOWS_PER_SESSION) as u64);
            }
        }
    }
    let all = machine::resident().saturating_sub(before);
    let (expected, found) = ((sessions * FLOWS_PER_SESSION) as u64, path.datapath.counters().flows.live());
    if expected != found {
        return Err(PathError::FlowsLost { expected, found });
    }
    for (part, bytes) in [("all", all), ("flows", path.datapath.flow_memory() as u64)] {
        let params =
            [("flows", found.into()), ("meters", (2 * sessions as u64).into()), ("part", part.into())];
        report.results.push(Measured::of("resident_bytes", "bytes", &params, &[bytes as f64]));
    }
    progress.keep(report);
    report.notes.push(
        "resident_bytes: growth of the process's resident memory with sessions, rules, a meter for each session and direction, \
         and flows of both directions; part flows: entries, index and timers"
            .into(),
    );
    Ok(())
}

/// Runs `flow-insert`.
pub fn run_insert(
    config: &FlowsConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Report, PathError> {
    let mut report = Report::new("flow-insert", &clock);
    let rate = |operations: usize, ticks: u64| operations as f64 * clock.hz() as f64 / ticks.max(1) as f64;
    for &flows in &config.flows {
        let name = "operations_per_second";
        for memory in MEMORY {
            progress.tell(&format!("{flows} flows: tables alone, memory {memory}"));
            let (mut inserted, mut deleted) = (Vec::new(), Vec::new());
            let (mut worst, mut long, mut host) = (Vec::new(), Vec::new(), Vec::new());
            let mut missed = Vec::new();
            for _ in 0..config.runs.min(3) {
                let reserved = if memory == RESERVED { flows.div_ceil(TABLES) as u32 } else { 0 };
                let mut tables = empty_tables(reserved);
                let (ticks, stalls) = insert_all(&mut tables, flows, memory == SUPPLIED, &clock)?;
                inserted.push(rate(flows, ticks));
                worst.push(stalls.worst as f64 * 1e6 / clock.hz() as f64);
                long.push(stalls.long as f64);
                missed.push(stalls.memory.missed as f64);
                // What the host does to a loop that only reads the clock, in as much time.
                let begin = clock.ticks();
                let mut idle = Stalls::begin(&clock);
                while clock.ticks() - begin < ticks {
                    idle.note(&clock);
                }
                host.push(idle.long as f64);
                let begin = clock.ticks();
                for flow in 0..flows {
                    if let Some(table) = tables.get_mut(table_of(flow)) {
                        table.remove(&Plain::number(flow));
                    }
                }
                deleted.push(rate(flows, clock.ticks() - begin));
            }
            let params = |operation: &'static str| {
                [
                    ("flows", (flows as u64).into()),
                    ("forwarding", "no".into()),
                    ("memory", memory.into()),
                    ("operation", operation.into()),
                ]
            };
            report.results.push(Measured::of(name, "1/s", &params("insert"), &inserted));
            report.results.push(Measured::of("worst_stall_us", "us", &params("insert"), &worst));
            report.results.push(Measured::of("stalls_over_50_us", "stalls", &params("insert"), &long));
            report.results.push(Measured::of("stalls_over_50_us", "stalls", &params("nothing"), &host));
            if memory == SUPPLIED {
                report.results.push(Measured::of("pieces_missed", "pieces", &params("insert"), &missed));
            }
            report.results.push(Measured::of(name, "1/s", &params("delete"), &deleted));
            progress.keep(&report);
        }

        for &scene in &config.scenes {
            for memory in MEMORY {
                learning(&mut report, config, scene, (flows, memory), clock, progress)?;
            }
        }
    }
    report.notes.push(
        "insert and delete: 512 tables alone, from empty, 64 at a time as a worker learns them; memory grown: taken as flows \
         come, supplied: made ready meanwhile on another thread, as a worker has it (pieces_missed: what was not ready), reserved: before; stalls_over_50_us of nothing: a loop that only reads the clock, for as long as the insertions took; learn: a flow's first packet, received as in the scene, classified, entered and \
         forwarded; half: every other packet is of a known flow; worst_stall_us: the longest time that one insertion, or \
         one burst of 64 packets, took, whatever the host did in it; learn and half with settings as shipped, overload \
         protection among them, but that there is room for all flows and none becomes idle; packets come when they are asked for, and \
         not one may be dropped: what a flood at a pace does is in bench flood"
            .into(),
    );
    Ok(report)
}

/// So many flows' first packets, with memory from there.
fn learning(
    report: &mut Report,
    config: &FlowsConfig,
    scene: Scene,
    (flows, memory): (usize, &'static str),
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), PathError> {
    progress.tell(&format!("IPv{}, {flows} flows: through the slow path, memory {memory}", scene.ip()));
    let rate = |ticks: u64| flows as f64 * clock.hz() as f64 / ticks.max(1) as f64;
    let (mut learned, mut mixed, mut stalls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..config.runs.min(3) {
        // Twice as many, for those that come later; and subscribers don't fill all shards alike.
        let reserved = if memory == RESERVED { 3 * flows.div_ceil(TABLES) } else { 0 };
        let supply = if memory == SUPPLIED { SUPPLY } else { 0 };
        let (mut path, packets) = prepare(scene, flows, (reserved as u32, supply), clock, progress)?;
        let (ticks, worst) = learn(&mut path, true, &packets, progress)?;
        learned.push(rate(ticks));
        stalls.push(worst as f64 * 1e6 / clock.hz() as f64);
        // Half of the packets are of flows that are known, half of new ones.
        let new = packets.iter().map(|(subscriber, port)| (*subscriber, port + FLOWS_PER_SESSION as u16));
        let both: Vec<_> = packets.iter().copied().zip(new).flat_map(|(known, new)| [known, new]).collect();
        let (ticks, _) = learn(&mut path, true, &both, progress)?;
        mixed.push(rate(ticks));
    }
    let params = |forwarding: &'static str| {
        [
            ("flows", (flows as u64).into()),
            ("forwarding", forwarding.into()),
            ("ip", scene.ip().into()),
            ("memory", memory.into()),
            ("operation", "learn".into()),
            ("scene", scene.name.into()),
            ("servers", scene.place().into()),
        ]
    };
    let name = "operations_per_second";
    report.results.push(Measured::of(name, "1/s", &params("no"), &learned));
    report.results.push(Measured::of("worst_stall_us", "us", &params("no"), &stalls));
    report.results.push(Measured::of(name, "1/s", &params("half"), &mixed));
    progress.keep(report);
    Ok(())
}

/// Readings of the clock that were long apart.
struct Stalls {
    last: u64,
    /// The longest, in ticks.
    worst: u64,
    /// How many were longer than 50 us.
    long: u64,
    /// Where tables' memory came from meanwhile.
    memory: SupplyCounters,
}

impl Stalls {
    fn begin(clock: &Tsc) -> Self {
        Self { last: clock.ticks(), worst: 0, long: 0, memory: SupplyCounters::default() }
    }

    fn note(&mut self, clock: &Tsc) {
        let now = clock.ticks();
        let ticks = now - self.last;
        self.worst = self.worst.max(ticks);
        self.long += u64::from(ticks > clock.hz() / 20_000);
        self.last = now;
    }
}

/// Tables as the shards have them, each with memory for so many flows.
fn empty_tables(reserved: u32) -> Vec<FlowTable<Plain, Idle>> {
    let table = |at| {
        let mut table = FlowTable::new(at ^ 0x5eed, u32::MAX >> 4, Nanos(0));
        table.reserve(reserved);
        table
    };
    (0..TABLES as u64).map(table).collect()
}

/// The table of a flow: as by the hash of a subscriber's address. They grow at the same pace, but not in step.
const fn table_of(flow: usize) -> usize {
    mix(flow as u64 ^ 0x5eed, 0x9e37_79b9_7f4a_7c15) as usize % TABLES
}

/// Enters flows as a worker learns them: those of a burst are looked up together. The ticks that it took, and the stalls from
/// one insertion to the next.
fn insert_all(
    tables: &mut [FlowTable<Plain, Idle>],
    flows: usize,
    supplied: bool,
    clock: &Tsc,
) -> Result<(u64, Stalls), PathError> {
    let mut probes = Vec::with_capacity(BURST);
    let mut supply = Supply::new(if supplied { SUPPLY } else { 0 });
    let make: fn(Wish) -> Piece<Plain, Idle> = Wish::make;
    let mut supplier = supplied.then(|| Supplier::start("memory".into(), None, make)).transpose()?;
    tables.iter_mut().for_each(|table| table.join(&mut supply));
    let mut stalls = Stalls::begin(clock);
    let begin = stalls.last;
    for (number, first) in (0..flows).step_by(BURST).enumerate() {
        let burst = first..flows.min(first + BURST);
        probes.clear();
        for flow in burst.clone() {
            probes.extend(tables.get(table_of(flow)).map(|table| table.prepare(&Plain::number(flow))));
        }
        for (flow, probe) in burst.clone().zip(&probes) {
            if let Some(table) = tables.get(table_of(flow)) {
                table.expect(*probe);
            }
        }
        for (flow, probe) in burst.zip(&probes) {
            if let Some(table) = tables.get_mut(table_of(flow)) {
                let _ = table.enter_from(&mut supply, *probe, Plain::number(flow), Idle::default());
            }
            stalls.note(clock);
        }
        if let Some(supplier) = supplier.as_mut().filter(|_| number.is_multiple_of(VISIT)) {
            supplier.serve(&mut supply, Supply::stock, Supply::wish);
            stalls.note(clock);
        }
    }
    stalls.memory = supply.counters();
    tables.iter_mut().for_each(|table| table.leave(&mut supply));
    Ok((stalls.last - begin, stalls))
}

/// Sessions for so many flows, and their packets in the order in which they come.
fn prepare(
    scene: Scene,
    flows: usize,
    (reserved_per_shard, supply): (u32, usize),
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(Path, Vec<(Subscriber, u16)>), PathError> {
    let mut path = Path::within(scene, clock, |config| {
        // Twice as many: `flow-insert` has others come later.
        room_for(2 * flows, config);
        config.flows_reserved_per_shard = reserved_per_shard;
        config.flow_supply = supply;
    })?;
    let subscribers = establish(&mut path, flows.div_ceil(FLOWS_PER_SESSION), progress)?;
    let mut packets = each_flow(&subscribers, FLOWS_PER_SESSION);
    packets.truncate(flows);
    path::shuffle(&mut packets);
    Ok((path, packets))
}

/// Room for this many flows (`limits.flows`), which stay however long the run takes (`limits.flow-idle-seconds`), as an operator with
/// as many would configure. All else is as shipped: limits of a session, and what protects known flows from new ones.
pub fn room_for(flows: usize, config: &mut Config) {
    config.flows = config.flows.max(flows as u32);
    config.flow_idle = 32_767;
}

/// So many [`filtered`] sessions.
pub fn establish(
    path: &mut Path,
    sessions: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<Subscriber>, PathError> {
    let servers = path.scene().servers();
    path.add_sessions(sessions, |place, tunnel, ue| filtered_for(servers, place, tunnel, ue), progress)
}

/// A packet of each of so many flows of these subscribers.
pub fn each_flow(subscribers: &[Subscriber], flows: usize) -> Vec<(Subscriber, u16)> {
    let of = |subscriber: &Subscriber| {
        let subscriber = *subscriber;
        (FIRST_PORT..).take(flows).map(move |port| (subscriber, port))
    };
    subscribers.iter().flat_map(of).collect()
}

/// Sends each packet once: the ticks that it took, and those of the longest burst.
pub fn learn(
    path: &mut Path,
    uplink: bool,
    packets: &[(Subscriber, u16)],
    progress: &mut dyn Progress,
) -> Result<(u64, u64), PathError> {
    let (source, all) = (path.scene().stream(uplink, packets.iter().copied())?, packets.len() as u64);
    path.once(&source, u16::from(!uplink), all, &mut |done| progress.part(done, all))
}

/// Draws so many packets, so that the most frequent flow has rank one of Zipf's law.
pub fn skewed(packets: &[(Subscriber, u16)], draws: usize) -> Vec<(Subscriber, u16)> {
    let mut random = rand::rngs::StdRng::seed_from_u64(1);
    let Ok(ranks) = Zipf::new(packets.len() as f64, ZIPF) else { return Vec::new() };
    let draw = |_| packets.get(ranks.sample(&mut random) as usize - 1).copied();
    (0..draws).filter_map(draw).collect()
}

/// An ordinary session's rules as they are in this scene, with filters: TCP first, then what the packets are, then the rest.
pub fn filtered(scene: Scene, place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    scene.adapt(filtered_for(scene.servers(), place, tunnel, ue), ue)
}

fn filtered_for(servers: Prefix, place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    divided(rules(place, tunnel, ue), |uplink| filters(servers, uplink))
}

/// Of a direction's three PDRs: TCP to a server's port, UDP to it, and the rest.
pub fn filters(servers: Prefix, uplink: bool) -> Vec<Box<[SdfFilter]>> {
    let server = |protocol| [remote(uplink, protocol, servers, (SERVER_PORT, SERVER_PORT))].into();
    vec![server(IpProtocol::TCP), server(IpProtocol::UDP), Box::default()]
}

/// A filter for what comes from these addresses and ports, or (uplink) goes there.
pub fn remote(uplink: bool, protocol: IpProtocol, network: Prefix, ports: (u16, u16)) -> SdfFilter {
    let (network, ports) = (Some(network), [ports].into());
    let filter = SdfFilter { protocol: Some(protocol.0), ..SdfFilter::default() };
    if uplink {
        SdfFilter { destination: network, destination_ports: ports, ..filter }
    } else {
        SdfFilter { source: network, source_ports: ports, ..filter }
    }
}

/// Puts several PDRs in the place of each, one for each list of filters that `filters` says for its direction (from the UE or
/// not), in order of precedence.
pub fn divided(mut rules: Rules, filters: impl Fn(bool) -> Vec<Box<[SdfFilter]>>) -> Rules {
    let step = rules.pdrs.len() as u16;
    let parts = |pdr: &Pdr| -> Vec<Pdr> {
        let part = |(nth, filters): (u16, Box<[SdfFilter]>)| Pdr {
            id: PdrId(pdr.id.0 + step * nth),
            precedence: u32::from(nth),
            filters,
            ..pdr.clone()
        };
        (0..).zip(filters(pdr.tunnel.is_some())).map(part).collect()
    };
    let mut pdrs: Vec<Pdr> = rules.pdrs.iter().flat_map(parts).collect();
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    rules.classifier = Classifier::new(&pdrs);
    rules.pdrs = pdrs.into();
    rules
}

/// A key of the size that the datapath's have.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Plain([u32; 9]);

impl Plain {
    const fn number(flow: usize) -> Self {
        Self([flow as u32, (flow >> 9) as u32, 7, 7, 7, 7, 7, 7, 7])
    }
}

impl FlowKey for Plain {
    fn hash(&self, seed: u64) -> u64 {
        let [a, b, ..] = self.0;
        mix(mix(a as u64 ^ seed, 0x9e37_79b9_7f4a_7c15), b as u64 ^ seed.rotate_left(31) | 1)
    }
}

/// A value of the size that the datapath's have, that is never idle for too long.
#[derive(Clone, Copy, Default)]
struct Idle([u32; 7]);

impl FlowValue for Idle {
    fn deadline(&self) -> Nanos {
        Nanos(u64::from(self.0[0]) + (1 << 46))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_flow_is_learned_once_and_then_known() {
        for (scene, uplink) in
            [(Scene::SIMPLE, true), (Scene::SIMPLE, false), (Scene::MANY6, true), (Scene::MANY6, false)]
        {
            let (mut path, packets) = prepare(scene, 1000, (0, SUPPLY), Tsc::process(), &mut Silent).unwrap();
            learn(&mut path, uplink, &packets, &mut Silent).unwrap();
            learn(&mut path, uplink, &skewed(&packets, 4000), &mut Silent).unwrap();
            let counters = path.datapath.counters();
            assert_eq!((counters.flows.learned, counters.flows.live()), (1000, 1000));
            assert_eq!((counters.sent, counters.dropped_total()), (5000, 0));
            assert!(path.datapath.flow_memory() > 64_000);
        }
    }

    #[test]
    fn first_packets_come_as_the_scene_has_them() {
        let config =
            FlowsConfig { flows: vec![1000], runs: 1, packets: 0, scenes: vec![Scene::SIMPLE, Scene::MANY6] };
        let report = run_insert(&config, Tsc::process(), &mut Silent).unwrap();
        assert_eq!(crate::compose::figure(&report).panels.len(), 1);
        for (scene, ip) in [("simple", 4), ("many", 6)] {
            for forwarding in ["no", "half"] {
                let params = [
                    ("operation", "learn".into()),
                    ("scene", scene.into()),
                    ("ip", ip.into()),
                    ("forwarding", forwarding.into()),
                    ("memory", RESERVED.into()),
                ];
                assert!(report.median("operations_per_second", &params).unwrap() > 0.0, "{report}");
            }
        }
    }

    #[test]
    fn what_is_resident_together_is_all_there() {
        let clock = Tsc::process();
        let mut report = Report::new("flow-table", &clock);
        resident_together(1024, clock, &mut report, &mut Silent).unwrap();
        let bytes = |part: &'static str| {
            let params = [("part", part.into()), ("flows", 1024.into()), ("meters", 64.into())];
            report.median("resident_bytes", &params)
        };
        assert!(bytes("flows").unwrap() > 64.0 * 1024.0 && bytes("all").is_some());
    }
}
