//! `flow-table` and `flow-insert`: what packets cost whose sessions are classified flow by flow, and what a new flow costs.
//!
//! Sessions have filters in both directions (three PDRs each, of which the second matches), a maximum bit rate that the PDRs
//! share, and a URR: each packet finds its session, its flow, its rule and its meter. Thirty-two flows a session, as in the
//! flow offload paper's scenario of 131,072 subscribers with two bearers of 32 flows.

use crate::forward::rules;
use crate::path::{self, PAYLOAD, Path, PathError, SERVER, SERVER_PORT, Subscriber};
use crate::report::{Measured, Report};
use datapath::Config;
use io::BURST;
use io::replay::ReplayRx;
use packet::IpProtocol;
use pfcp::PdrId;
use rand::SeedableRng;
use rand::distr::Distribution;
use rand_distr::Zipf;
use session::SessionRef;
use session::rules::{Pdr, Prefix, Rules, SdfFilter, Tunnel};
use std::net::Ipv4Addr;
use tables::Nanos;
use tables::clock::Tsc;
use tables::flow::{FlowKey, FlowTable, FlowValue};
use tables::hash::mix;

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

/// What to measure.
#[derive(Clone, Debug)]
pub struct FlowsConfig {
    /// Numbers of flows.
    pub flows: Vec<usize>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run.
    pub packets: usize,
}

impl FlowsConfig {
    /// From a thousand flows to sixteen million.
    pub fn full() -> Self {
        Self { flows: vec![1 << 10, 1 << 16, 1 << 20, 8_388_608, 1 << 24], runs: 5, packets: 4_000_000 }
    }

    /// The smaller sizes, briefly.
    pub fn quick() -> Self {
        Self { flows: vec![1 << 10, 1 << 16, 1 << 20], runs: 3, packets: 1_000_000 }
    }
}

/// Runs `flow-table`; `tell` is told what is being measured.
pub fn run_table(config: &FlowsConfig, clock: Tsc, tell: &mut dyn FnMut(&str)) -> Result<Report, PathError> {
    let mut report = Report::new("flow-table", &clock);
    for &flows in &config.flows {
        for uplink in [true, false] {
            let direction = if uplink { "uplink" } else { "downlink" };
            tell(&format!("{flows} flows: {direction}: learning"));
            let (mut path, packets) = prepare(flows, clock)?;
            learn(&mut path, uplink, &packets)?;
            let live = path.datapath.counters().flows.live();
            for distribution in ["uniform", "zipf"] {
                tell(&format!("{flows} flows: {direction}: {distribution}"));
                let sequence = match distribution {
                    "zipf" => skewed(&packets),
                    _ => packets.clone(),
                };
                let source = path::stream(uplink, sequence.into_iter())?;
                let (mut whole, mut port) = (Vec::new(), Vec::new());
                for run in 0..=config.runs {
                    let own = path.port_alone(ReplayRx::new(source.clone()), config.packets);
                    let rx = ReplayRx::new(source.clone());
                    let cycles = path.forward(rx, u16::from(!uplink), config.packets)?;
                    if run > 0 {
                        whole.push(cycles);
                        port.push(own);
                    }
                }
                let params = [
                    ("direction", direction.into()),
                    ("distribution", distribution.into()),
                    ("flows", (flows as u64).into()),
                    ("payload", (PAYLOAD as u64).into()),
                ];
                report.results.push(Measured::of("cycles_per_packet", "cycles", &params, &whole));
                report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &port));
            }
            // Whatever was measured was measured on known flows.
            let now = path.datapath.counters().flows;
            if now.live() != live || now.refused > 0 {
                return Err(PathError::FlowsLost { expected: live, found: now.live() });
            }
            let bytes = path.datapath.flow_memory() as f64 / live as f64;
            let params = [("direction", direction.into()), ("flows", (flows as u64).into())];
            report.results.push(Measured::of("bytes_per_flow", "bytes", &params, &[bytes]));
        }
    }
    report.notes.push(
        "one flow entry a direction; cycles are TSC ticks, the port's own (port_cycles_per_packet) included"
            .into(),
    );
    Ok(report)
}

/// Runs `flow-insert`.
pub fn run_insert(config: &FlowsConfig, clock: Tsc, tell: &mut dyn FnMut(&str)) -> Result<Report, PathError> {
    let mut report = Report::new("flow-insert", &clock);
    let rate = |operations: usize, ticks: u64| operations as f64 * clock.hz() as f64 / ticks.max(1) as f64;
    for &flows in &config.flows {
        let params = |operation: &'static str, forwarding: &'static str| {
            [
                ("flows", (flows as u64).into()),
                ("forwarding", forwarding.into()),
                ("operation", operation.into()),
            ]
        };
        tell(&format!("{flows} flows: tables alone"));
        let (mut inserted, mut deleted, mut stalls) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..config.runs.min(3) {
            let mut tables: Vec<FlowTable<Plain, Idle>> =
                (0..TABLES as u64).map(|at| FlowTable::new(at ^ 0x5eed, u32::MAX >> 4, Nanos(0))).collect();
            let begin = clock.ticks();
            let (mut last, mut worst) = (begin, 0);
            for flow in 0..flows {
                if let Some(table) = tables.get_mut(flow % TABLES) {
                    let _ = table.insert(Plain::number(flow), Idle::default());
                }
                let now = clock.ticks();
                worst = worst.max(now - last);
                last = now;
            }
            inserted.push(rate(flows, last - begin));
            stalls.push(worst as f64 * 1e6 / clock.hz() as f64);
            let begin = clock.ticks();
            for flow in 0..flows {
                if let Some(table) = tables.get_mut(flow % TABLES) {
                    table.remove(&Plain::number(flow));
                }
            }
            deleted.push(rate(flows, clock.ticks() - begin));
        }
        let name = "operations_per_second";
        report.results.push(Measured::of(name, "1/s", &params("insert", "no"), &inserted));
        report.results.push(Measured::of("worst_stall_us", "us", &params("insert", "no"), &stalls));
        report.results.push(Measured::of(name, "1/s", &params("delete", "no"), &deleted));

        tell(&format!("{flows} flows: through the slow path"));
        let (mut learned, mut mixed, mut stalls) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..config.runs.min(3) {
            let (mut path, packets) = prepare(flows, clock)?;
            let (ticks, worst) = learn(&mut path, true, &packets)?;
            learned.push(rate(flows, ticks));
            stalls.push(worst as f64 * 1e6 / clock.hz() as f64);
            // Half of the packets are of flows that are known, half of new ones.
            let new = packets.iter().map(|(subscriber, port)| (*subscriber, port + FLOWS_PER_SESSION as u16));
            let both: Vec<_> =
                packets.iter().copied().zip(new).flat_map(|(known, new)| [known, new]).collect();
            let (ticks, _) = learn(&mut path, true, &both)?;
            mixed.push(rate(flows, ticks));
        }
        report.results.push(Measured::of(name, "1/s", &params("learn", "no"), &learned));
        report.results.push(Measured::of("worst_stall_us", "us", &params("learn", "no"), &stalls));
        report.results.push(Measured::of(name, "1/s", &params("learn", "half"), &mixed));
    }
    report.notes.push(
        "insert and delete: 512 tables alone, from empty; learn: a flow's first packet, received, classified, entered and \
         forwarded; half: every other packet is of a known flow; worst_stall_us: the longest time that one insertion, or \
         one burst of 64 packets, took, whatever the host did in it"
            .into(),
    );
    Ok(report)
}

/// Sessions for so many flows, and their packets in the order in which they come.
fn prepare(flows: usize, clock: Tsc) -> Result<(Path, Vec<(Subscriber, u16)>), PathError> {
    let tune = |config: &mut Config| {
        // Whatever comes is entered, and stays.
        config.flows_per_shard = u32::MAX >> 4;
        config.flows_per_session = u32::MAX;
        config.flows_per_burst = BURST as u32;
        config.new_flows_in_overload = BURST as u32;
        config.flow_idle = u16::MAX;
    };
    let mut path = Path::new(clock, tune)?;
    let mut packets = Vec::with_capacity(flows);
    for _ in 0..flows.div_ceil(FLOWS_PER_SESSION) {
        let subscriber = path.add_session(filtered)?;
        packets.extend((FIRST_PORT..).take(FLOWS_PER_SESSION).map(|port| (subscriber, port)));
    }
    packets.truncate(flows);
    path::shuffle(&mut packets);
    Ok((path, packets))
}

/// Sends each packet once: the ticks that it took, and those of the longest burst.
fn learn(path: &mut Path, uplink: bool, packets: &[(Subscriber, u16)]) -> Result<(u64, u64), PathError> {
    let source = path::stream(uplink, packets.iter().copied())?;
    path.once(ReplayRx::new(source).limited(packets.len() as u64), u16::from(!uplink))
}

/// Draws packets so that the most frequent flow has rank one of Zipf's law.
fn skewed(packets: &[(Subscriber, u16)]) -> Vec<(Subscriber, u16)> {
    let mut random = rand::rngs::StdRng::seed_from_u64(1);
    let Ok(ranks) = Zipf::new(packets.len() as f64, ZIPF) else { return Vec::new() };
    let draw = |_| packets.get(ranks.sample(&mut random) as usize - 1).copied();
    (0..SEQUENCE).filter_map(draw).collect()
}

/// An ordinary session's rules, with filters: TCP first, then what the packets are, then the rest.
fn filtered(place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    let mut rules = rules(place, tunnel, ue);
    let server = Prefix::V4(ipnet::Ipv4Net::from(SERVER));
    let filter = |protocol: IpProtocol, uplink: bool| SdfFilter {
        protocol: Some(protocol.0),
        source: (!uplink).then_some(server),
        destination: uplink.then_some(server),
        source_ports: if uplink { Box::default() } else { [(SERVER_PORT, SERVER_PORT)].into() },
        destination_ports: if uplink { [(SERVER_PORT, SERVER_PORT)].into() } else { Box::default() },
        ..SdfFilter::default()
    };
    let mut pdrs = Vec::new();
    for pdr in &rules.pdrs {
        let uplink = pdr.tunnel.is_some();
        let numbered = |nth: u16, filters: Box<[SdfFilter]>| Pdr {
            id: PdrId(pdr.id.0 + 2 * nth),
            precedence: u32::from(nth),
            filters,
            ..pdr.clone()
        };
        pdrs.push(numbered(0, [filter(IpProtocol::TCP, uplink)].into()));
        pdrs.push(numbered(1, [filter(IpProtocol::UDP, uplink)].into()));
        pdrs.push(numbered(2, Box::default()));
    }
    pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
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
        for uplink in [true, false] {
            let (mut path, packets) = prepare(1000, Tsc::process()).unwrap();
            learn(&mut path, uplink, &packets).unwrap();
            learn(&mut path, uplink, &skewed(&packets)[..4000]).unwrap();
            let counters = path.datapath.counters();
            assert_eq!((counters.flows.learned, counters.flows.live()), (1000, 1000));
            assert_eq!((counters.sent, counters.dropped_total()), (5000, 0));
            assert!(path.datapath.flow_memory() > 64_000);
        }
    }
}
