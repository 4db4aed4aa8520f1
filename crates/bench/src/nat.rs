//! `nat`: what translation on N6 adds to the packet path, by direction and number of mappings, and how fast mappings are made.
//!
//! The sessions are those of `forward --simple`, each with up to sixteen UDP endpoints. With and without a NAT the same packets of the same
//! sessions are forwarded in the same order; they carry no UDP checksum. A mapping is made by the first packet of an endpoint,
//! which takes the slow path.

use crate::forward;
use crate::path::{self, Costs, Mix, PAYLOAD, Path, PathError, Subscriber};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use datapath::nat::{Logging, Plan, PlanError, Protocol, Settings};
use io::mem::MemFrame;
use io::replay::ReplayRx;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use tables::clock::Tsc;

/// Endpoints of one UE, at most.
const ENDPOINTS: usize = 16;
/// The UEs' ports begin here.
const FIRST_PORT: u16 = 40_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct NatConfig {
    /// Numbers of mappings.
    pub mappings: Vec<usize>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run.
    pub packets: usize,
}

impl NatConfig {
    /// From one mapping to a million.
    pub fn full() -> Self {
        Self { mappings: vec![1, 65_536, 1_000_000], runs: 7, packets: 4_000_000 }
    }

    /// The same, briefly.
    pub fn quick() -> Self {
        Self { runs: 3, packets: 1_000_000, ..Self::full() }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// See there.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The pool made here is wrong: a defect.
    #[error("pool: {0}")]
    Plan(#[from] PlanError),
    /// An endpoint has no mapping after its first packet: a defect.
    #[error("{0} is not translated")]
    NotMapped(SocketAddrV4),
}

impl From<io::replay::ReplayError> for NatError {
    fn from(error: io::replay::ReplayError) -> Self {
        Self::Path(error.into())
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &NatConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, NatError> {
    let mut report = Report::new("nat", &clock);
    for &mappings in &config.mappings {
        progress.tell(&format!("{mappings} mappings: establishing"));
        let mut rates = Vec::new();
        let mut plain = prepare(mappings, clock, false, progress)?;
        let mut translated = prepare(mappings, clock, true, progress)?;
        progress.tell(&format!("{mappings} mappings: making them"));
        rates.push(translated.open(clock, progress)?);
        for uplink in [true, false] {
            let direction = if uplink { "uplink" } else { "downlink" };
            progress.tell(&format!("{mappings} mappings: {direction}"));
            // Mappings lie in memory in the order in which they were made; packets come in another, and go on where the last run ended.
            plain.shuffle();
            translated.shuffle();
            let port = u16::from(!uplink);
            let [mut first, mut second] = [plain.source(uplink)?, translated.source(uplink)?]
                .map(|source| Mix::of(ReplayRx::new(source), port));
            let packets = config.packets.max(mappings);
            let (mut without, mut with) = (Costs::default(), Costs::default());
            // One run to warm up; with and without in turn, so that both meet the same neighbours on the machine.
            for run in 0..=config.runs {
                let a = plain.path.forward(&mut first, packets)?;
                let b = translated.path.forward(&mut second, packets)?;
                if run > 0 {
                    without.push(a);
                    with.push(b);
                }
            }
            for (nat, figures) in [("no", without), ("yes", with)] {
                let params = [
                    ("direction", direction.into()),
                    ("mappings", (mappings as u64).into()),
                    ("nat", nat.into()),
                    ("payload", (PAYLOAD as u64).into()),
                ];
                figures.report(&mut report, &params);
            }
            progress.keep(&report);
        }
        drop((plain, translated));
        if mappings > 1 {
            progress.tell(&format!("{mappings} mappings: making them"));
            for _ in 1..config.runs {
                rates.push(prepare(mappings, clock, true, progress)?.open(clock, progress)?);
            }
            let params = [("mappings", (mappings as u64).into())];
            report.results.push(Measured::of("mappings_per_second", "1/s", &params, &rates));
            progress.keep(&report);
        }
    }
    report.notes.push("cycles are TSC ticks and include the port's own cost; UDP without checksums".into());
    Ok(report)
}

/// A datapath and its UEs' endpoints in the order in which packets come.
struct Bench {
    path: Path,
    endpoints: Vec<(Subscriber, u16)>,
    nat: bool,
}

fn prepare(mappings: usize, clock: Tsc, nat: bool, progress: &mut dyn Progress) -> Result<Bench, NatError> {
    let mut rib = path::network().map_err(PathError::Rib)?;
    if nat {
        // One public address for each shard, with 1,008 blocks.
        let inside = vec![ipnet::Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8)];
        let outside = vec![ipnet::Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 23)];
        let settings =
            Settings { block_size: 64, logging: Logging::Nothing, ..Settings::new("bench", inside, outside) };
        rib.translate(Arc::new(Plan::new(&[settings], &[], &[])?));
    }
    let fib = rib.fib();
    let mut path = Path::new(clock, |config| {
        config.fib = fib;
        config.mappings_per_shard = (mappings as u32 / 256).max(1 << 13);
    })?;
    let sessions = mappings.div_ceil(ENDPOINTS);
    let mut endpoints = Vec::with_capacity(mappings);
    for subscriber in path.add_sessions(sessions, forward::rules, progress)? {
        let ports = FIRST_PORT..FIRST_PORT + ENDPOINTS as u16;
        endpoints.extend(ports.map(|port| (subscriber, port)).take(mappings - endpoints.len()));
    }
    path::shuffle(&mut endpoints);
    Ok(Bench { path, endpoints, nat })
}

impl Bench {
    /// Sends the first packet of each endpoint; says how many mappings were made in a second.
    fn open(&mut self, clock: Tsc, progress: &mut dyn Progress) -> Result<f64, NatError> {
        let stream = path::stream(true, self.endpoints.iter().copied())?;
        let all = self.endpoints.len() as u64;
        let (ticks, _) = self.path.once(&stream, 0, all, &mut |done| progress.part(done, all))?;
        Ok(self.endpoints.len() as f64 * clock.hz() as f64 / ticks as f64)
    }

    /// Another order.
    fn shuffle(&mut self) {
        path::shuffle(&mut self.endpoints);
    }

    /// Packets of all endpoints: downlink, to where a host of the data network would send them.
    fn source(&self, uplink: bool) -> Result<io::replay::Stream, NatError> {
        let mut packets = self.endpoints.clone();
        if self.nat && !uplink {
            for (subscriber, port) in &mut packets {
                let inside = SocketAddrV4::new(subscriber.ue, *port);
                let shard = datapath::Datapath::<MemFrame>::shard_of(subscriber.ue.into());
                let shard = self.path.datapath.shard(shard);
                let public = shard.and_then(|shard| shard.public_of(Protocol::Udp, inside));
                let public = public.ok_or(NatError::NotMapped(inside))?;
                (subscriber.ue, *port) = (*public.ip(), public.port());
            }
        }
        Ok(path::stream(uplink, packets.into_iter())?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::{Parts, Silent};

    #[test]
    fn many_mappings_are_not_made_in_silence() {
        let mut parts = Parts::default();
        let mut bench = prepare(1 << 15, Tsc::process(), true, &mut parts).unwrap();
        bench.open(Tsc::process(), &mut parts).unwrap();
        assert!(parts.0 > 0);
    }

    #[test]
    fn every_packet_is_translated_both_ways() {
        let mut bench = prepare(1000, Tsc::process(), true, &mut Silent).unwrap();
        assert!(bench.open(Tsc::process(), &mut Silent).unwrap() > 0.0);
        for uplink in [true, false] {
            let source = bench.source(uplink).unwrap();
            bench.path.forward(&mut Mix::of(ReplayRx::new(source), u16::from(!uplink)), 2560).unwrap();
        }
        let counters = bench.path.datapath.counters();
        assert_eq!((counters.uplink.packets, counters.downlink.packets), (3560, 2560));
        assert_eq!((counters.nat[0].mappings(), counters.nat[0].blocks()), (1000, 63));
    }
}
