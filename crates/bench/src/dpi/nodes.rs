//! What it costs that a worker's memory is on another node than its core.
//!
//! **Where the machine has several nodes** it is measured: an inspector whose tables, and packets that, a thread on another node has made and touched first, beside
//! those of the worker's own node, in turn.
//!
//! **Elsewhere there is a model of remote latency**, and its figures are marked so (`how=model`). How much of memory's latency a packet waits for is measured
//! where latency can be changed: the same kind of packets are inspected three times, with packets and tables in the core's own caches; with packets
//! in memory; and with tables there, too. The difference in time, by the difference between the latencies of memory and of the cache (a chain of dependent
//! loads through as many bytes), is how many accesses a packet waits for in full (`exposed_accesses_per_packet`): those that were asked for ahead, or
//! overlap, count in part or not at all, as they take their time. A node that is farther away by so many nanoseconds makes each of them longer by these.
//!
//! **What the model leaves out.** An access that was asked for ahead in time for this node may come late from another: so the figures are rather too low.
//! The link between the nodes has room for everybody.

use super::{DpiConfig, DpiError, PACE, poll, push_burst, replay, spent};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use dpi::{Inspector, Knowledge, Options};
use engine::placement::{available_cores, pin, pin_to_any};
use loadgen::applications::{Length, Mix, Traffic};
use machine::topology::{SYSFS, Topology};
use std::hint::black_box;
use std::sync::Arc;
use tables::Nanos;

/// Packets of a piece that stays in a core's own cache, with all its flows, and flows under way in it.
const PIECE: (usize, usize) = (2_000, 80);
/// Bytes that such a piece takes, of what is looked at: about a core's second-level cache.
const NEAR: usize = 512 << 10;
/// Bytes that no cache has.
const FAR: usize = 512 << 20;
/// Loads of a chain.
const LOADS: usize = 2_000_000;
/// So many nanoseconds another node is farther away than the own one, in the model: two sockets that are linked directly, and those that aren't.
const FARTHER: [u64; 3] = [50, 100, 150];

/// Measures, or models, the other node.
pub fn run(
    report: &mut Report,
    config: &DpiConfig,
    knowledge: &Arc<Knowledge>,
    progress: &mut dyn Progress,
) -> Result<(), DpiError> {
    match Topology::read(SYSFS.as_ref()).ok().and_then(|topology| pair(&topology, &available_cores())) {
        Some(cores) => measured(report, config, knowledge, cores, progress),
        None => modelled(report, config, knowledge, progress),
    }
}

/// Two cores of different nodes, of those that may be used.
fn pair(topology: &Topology, usable: &[usize]) -> Option<(usize, usize)> {
    let node = |core: &usize| topology.core(*core)?.node;
    let own = usable.iter().find(|core| node(core).is_some())?;
    let other = usable.iter().find(|core| node(core).is_some_and(|other| Some(other) != node(own)))?;
    Some((*own, *other))
}

/// An inspector that has seen the packets once, and the packets, in memory of the core's node.
fn on(
    core: usize,
    config: &DpiConfig,
    knowledge: &Arc<Knowledge>,
) -> Result<(Traffic, Inspector, Nanos), DpiError> {
    let (config, knowledge) = (config.clone(), Arc::clone(knowledge));
    let make = move || {
        pin(core)?;
        let traffic = Traffic::new(Mix::ORDINARY, Length::Whole, config.packets, config.open, 13);
        let mut inspector = Inspector::with(Options::default(), knowledge, 0x5eed, Nanos(0));
        let mut now = Nanos(0);
        replay(&mut inspector, &mut now, &traffic.frames().collect::<Vec<_>>())?;
        Ok((traffic, inspector, now))
    };
    std::thread::Builder::new().spawn(make)?.join().map_err(|_| DpiError::Died)?
}

fn measured(
    report: &mut Report,
    config: &DpiConfig,
    knowledge: &Arc<Knowledge>,
    (own, other): (usize, usize),
    progress: &mut dyn Progress,
) -> Result<(), DpiError> {
    progress.tell("packets and tables on another node");
    let usable = available_cores();
    pin(own)?;
    let mut sides = [on(own, config, knowledge)?, on(other, config, knowledge)?];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..config.runs {
        for ((traffic, inspector, now), times) in sides.iter_mut().zip(&mut times) {
            let frames: Vec<&[u8]> = traffic.frames().collect();
            let began = spent();
            replay(inspector, now, &frames)?;
            times.push((spent() - began) * 1e9 / frames.len() as f64);
        }
    }
    pin_to_any(&usable)?;
    for (node, times) in ["own", "other"].into_iter().zip(&times) {
        told(report, (node, "measured", None), times);
    }
    progress.keep(report);
    Ok(())
}

fn told(report: &mut Report, (node, how, farther): (&'static str, &'static str, Option<u64>), times: &[f64]) {
    let mut params: Vec<(&'static str, Param)> =
        vec![("mix", Mix::ORDINARY.name.into()), ("node", node.into()), ("how", how.into())];
    params.extend(farther.map(|farther| ("farther_ns", farther.into())));
    report.results.push(Measured::of("nanoseconds_per_packet_on_node", "ns", &params, times));
}

fn modelled(
    report: &mut Report,
    config: &DpiConfig,
    knowledge: &Arc<Knowledge>,
    progress: &mut dyn Progress,
) -> Result<(), DpiError> {
    progress.tell("another node, by a model: making packets");
    let (packets, open) = PIECE;
    let seeds = 0..config.packets.div_ceil(packets) as u64;
    let pieces: Vec<Traffic> =
        seeds.map(|seed| Traffic::new(Mix::ORDINARY, Length::Whole, packets, open, 100 + seed)).collect();
    let all = Traffic::new(Mix::ORDINARY, Length::Whole, config.packets, config.open, 13);
    let (mut near, mut far) = (Near::new(knowledge), Near::new(knowledge));
    let chains = [NEAR, FAR].map(Chain::new);
    let mut runs = Vec::new();
    for run in 0..=config.runs {
        progress.tell("another node, by a model");
        progress.part(run as u64, config.runs as u64);
        let (mut times, mut counted) = ([0.0; 2], 0);
        for piece in &pieces {
            let frames: Vec<&[u8]> = piece.frames().collect();
            // They lie in memory at first, and in the cache when they come again.
            for time in &mut times {
                *time += near.pass(&frames)?;
            }
            counted += frames.len();
        }
        let frames: Vec<&[u8]> = all.frames().collect();
        let tables = far.pass(&frames)? * 1e9 / frames.len() as f64;
        let [packets, cached] = times.map(|time| time * 1e9 / counted as f64);
        let [cache, memory] = chains.each_ref().map(Chain::nanoseconds);
        if run > 0 {
            runs.push(Run { cached, packets, tables, cache, memory });
        }
    }
    let mut push = |name, unit, what: (&'static str, &'static str), of: fn(&Run) -> f64| {
        let values: Vec<f64> = runs.iter().map(of).collect();
        report.results.push(Measured::of(name, unit, &[(what.0, what.1.into())], &values));
    };
    push("nanoseconds_per_load", "ns", ("from", "cache"), |run| run.cache);
    push("nanoseconds_per_load", "ns", ("from", "memory"), |run| run.memory);
    push("nanoseconds_per_packet_from", "ns", ("from", "cache"), |run| run.cached);
    push("nanoseconds_per_packet_from", "ns", ("from", "cache, packets from memory"), |run| run.packets);
    push("nanoseconds_per_packet_from", "ns", ("from", "memory"), |run| run.tables);
    push("exposed_accesses_per_packet", "accesses", ("to", "packets"), Run::to_packets);
    push("exposed_accesses_per_packet", "accesses", ("to", "tables"), Run::to_tables);
    let own: Vec<f64> = runs.iter().map(|run| run.tables).collect();
    told(report, ("own", "measured", None), &own);
    for farther in FARTHER {
        let with = |run: &Run| run.tables + (run.to_packets() + run.to_tables()) * farther as f64;
        told(report, ("other", "model", Some(farther)), &runs.iter().map(with).collect::<Vec<_>>());
    }
    report.notes.push(
        "another node: this machine has one; how=model: what a packet waits for memory (measured by packets and tables in the cache and in memory), for \
         memory that is farther away by so many nanoseconds"
            .into(),
    );
    progress.keep(report);
    Ok(())
}

/// What one run found, in nanoseconds: a packet with all of it in the cache; with packets in memory; with tables there, too; a load from either.
struct Run {
    cached: f64,
    packets: f64,
    tables: f64,
    cache: f64,
    memory: f64,
}

impl Run {
    fn to_packets(&self) -> f64 {
        (self.packets - self.cached) / (self.memory - self.cache)
    }

    fn to_tables(&self) -> f64 {
        (self.tables - self.packets) / (self.memory - self.cache)
    }
}

/// An inspector whose flows are ended by hand, so that none is left.
struct Near {
    inspector: Inspector,
    now: Nanos,
}

impl Near {
    fn new(knowledge: &Arc<Knowledge>) -> Self {
        Self {
            inspector: Inspector::with(Options::default(), Arc::clone(knowledge), 0x5eed, Nanos(0)),
            now: Nanos(0),
        }
    }

    /// All packets, and the ends of all flows: seconds.
    fn pass(&mut self, frames: &[&[u8]]) -> Result<f64, DpiError> {
        let began = spent();
        let mut packets = Vec::with_capacity(super::BURST);
        for burst in frames.chunks(super::BURST) {
            self.now = self.now.plus(super::BURST as u64 * Nanos::SECOND / PACE);
            push_burst(&mut self.inspector, self.now, burst, &mut packets)?;
            poll(&mut self.inspector);
        }
        while self.inspector.flush_one(self.now) {
            poll(&mut self.inspector);
        }
        Ok(spent() - began)
    }
}

/// Loads each of which says where the next one is, in an order that nobody foresees.
struct Chain(Vec<[u32; 16]>);

impl Chain {
    /// Through so many bytes.
    fn new(bytes: usize) -> Self {
        let mut order: Vec<u32> = (0..(bytes / 64).max(2) as u32).collect();
        crate::path::shuffle(&mut order);
        let mut lines = vec![[0; 16]; order.len()];
        for (at, next) in order.iter().zip(order.iter().cycle().skip(1)) {
            if let Some([line, ..]) = lines.get_mut(*at as usize) {
                *line = *next;
            }
        }
        Self(lines)
    }

    /// What a load takes.
    fn nanoseconds(&self) -> f64 {
        let mut at = 0;
        let loads = LOADS.min(4 * self.0.len());
        // Once to have it where it fits.
        for counts in [false, true] {
            let began = spent();
            for _ in 0..loads {
                at = self.0.get(at as usize).map_or(0, |line| line[0]);
            }
            black_box(at);
            if counts {
                return (spent() - began) * 1e9 / loads as f64;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;
    use tables::clock::Tsc;

    #[test]
    fn a_chain_goes_through_all_lines() {
        let chain = Chain::new(64 * 100);
        let (mut at, mut seen) = (0, std::collections::HashSet::new());
        while seen.insert(at) {
            at = chain.0[at as usize][0];
        }
        assert_eq!((seen.len(), at), (100, 0));
    }

    #[test]
    fn a_pair_of_cores_is_of_two_nodes() {
        let root = testing::Directory::new("nodes");
        let file = |path: &str, text: &str| {
            let path = root.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("devices/system/cpu/online", "0-3\n");
        file("devices/system/node/online", "0-1\n");
        file("devices/system/node/node0/cpulist", "0-1\n");
        file("devices/system/node/node1/cpulist", "2-3\n");
        let topology = Topology::read(&root.0).unwrap();
        assert_eq!(pair(&topology, &[1, 0, 3]), Some((1, 3)));
        assert_eq!(pair(&topology, &[2, 1]), Some((2, 1)));
        assert_eq!(pair(&topology, &[0, 1]), None);
    }

    #[test]
    fn both_ways_say_what_another_node_costs() {
        let config = DpiConfig { packets: 4_000, open: 100, flows: 100, runs: 1 };
        let knowledge = Arc::new(Knowledge::new(dpi::signatures::Bundle::built_in()));
        let mut report = Report::new("dpi", &Tsc::process());
        modelled(&mut report, &config, &knowledge, &mut Silent).unwrap();
        let core = available_cores()[0];
        measured(&mut report, &config, &knowledge, (core, core), &mut Silent).unwrap();
        for (node, how) in [("other", "model"), ("own", "measured"), ("other", "measured")] {
            let params = [("node", node.into()), ("how", how.into())];
            assert!(report.median("nanoseconds_per_packet_on_node", &params).is_some(), "{node} {how}");
        }
    }
}
