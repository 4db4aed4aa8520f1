//! The box as its neighbours see it: a worker's thread between two in-memory NICs, and a generator on another thread.
//!
//! The generator paces packets of both directions by the clock, writes into each when it handed it to the NIC, and reads
//! that again when it collects it on the other side. It never waits for room: what finds a receive queue full is lost, as on a
//! wire. What it can't send in time because it was held up itself is not made up for, so that it never floods the box; it
//! counts as not offered.

use crate::arrivals::{Arrivals, DESCRIPTORS, nanos};
use crate::crew::{self, Member};
use crate::flows;
use crate::path::{self, MTU, Numbering, PathError, Subscriber};
use datapath::Config;
use engine::placement::{available_cores, pin};
use engine::{Engine, EngineConfig, EngineError, IdlePolicy};
use io::mem::{MemConfig, MemError, MemFrame, MemNic, MemWire, RssMode};
use io::replay::{ReplayRx, Stream};
use io::{BURST, Frame, RxQueue};
use loadgen::latency::Latencies;
use tables::clock::Tsc;

/// Packets that the generator may be late with before it gives them up.
const LATE: usize = BURST;
/// Packets handed over at once, at most.
const AT_ONCE: usize = 32;
/// How long the generator waits for packets that don't come back, in fractions of a second.
const PATIENCE: u64 = 5;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The packets or the network made here are wrong, or packets were dropped.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The worker.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An in-memory NIC could not be made.
    #[error("in-memory NIC: {0}")]
    Nic(#[from] MemError),
    /// The generator's thread died.
    #[error("the generator died")]
    Died,
    /// Packets were lost while nothing hurried.
    #[error("{0} packets were lost at leisure")]
    Lost(u64),
}

/// A worker with sessions, and the free ends of its cables.
pub struct Wire {
    engine: Engine,
    clock: Tsc,
    /// To the radio side, and to the data network.
    ends: [MemWire; 2],
    /// The generator's core.
    core: Option<usize>,
    numbering: Numbering,
}

/// One direction of a trial: what arrives at a port, and when.
pub struct Offer {
    /// The packets.
    pub stream: Stream,
    /// How many a second.
    pub per_second: f64,
}

/// What became of a trial's packets.
#[derive(Debug)]
pub struct Trial {
    /// Handed to the NICs.
    pub offered: u64,
    /// Given up because the generator was late.
    pub late: u64,
    /// Never collected.
    pub lost: u64,
    /// From handing over to collecting.
    pub latencies: Latencies,
}

impl Wire {
    /// Starts a worker and gives it so many sessions. The worker and the generator have a core each, if there are two.
    pub fn new(sessions: usize, clock: Tsc) -> Result<(Self, Vec<Subscriber>), WireError> {
        let nic = |name: &str| {
            MemNic::new(MemConfig {
                name: name.into(),
                mtu: MTU,
                descriptors: DESCRIPTORS,
                // One queue: nobody needs the hash.
                rss: RssMode::Preset,
                ..MemConfig::default()
            })
        };
        let ((n3_port, n3), (n6_port, n6)) = (nic("n3")?, nic("n6")?);
        let mut network = path::network().map_err(PathError::from)?;
        let mut config = Config { teids: path::teids(), ..Config::new(network.view()) };
        flows::room_for(sessions * config.flows_per_session as usize, &mut config);
        let cores = available_cores();
        let (core, worker) = match cores.as_slice() {
            [first, .., last] => (Some(*first), Some(*last)),
            _ => (None, None),
        };
        // On one core a worker that never sleeps would keep the generator from sending.
        let idle = if worker.is_some() { IdlePolicy::Busy } else { IdlePolicy::default() };
        let settings = EngineConfig { cores: vec![worker], idle, ..EngineConfig::default() };
        let engine = Engine::start(&mut [n3_port, n6_port], &settings, &config, clock)?;
        let mut wire = Self { engine, clock, ends: [n3, n6], core, numbering: Numbering::default() };
        let subscribers = wire.establish(sessions)?;
        Ok((wire, subscribers))
    }

    fn establish(&mut self, sessions: usize) -> Result<Vec<Subscriber>, WireError> {
        let members = Member::several(&mut self.numbering, sessions);
        crew::install(&mut self.engine, &members, flows::filtered)?;
        Ok(members.iter().map(Member::subscriber).collect())
    }

    /// Sends every packet of both directions once, at leisure, so that its flow becomes known.
    pub fn learn(&mut self, packets: &[(Subscriber, u16)]) -> Result<(), WireError> {
        let before = self.learned()?;
        for uplink in [true, false] {
            let stream = path::stream(uplink, packets.iter().copied()).map_err(PathError::from)?;
            let rx = ReplayRx::new(stream).limited(packets.len() as u64);
            let lost = self.apart(|generator| generator.at_leisure(rx, usize::from(!uplink)))?;
            if lost > 0 {
                return Err(WireError::Lost(lost));
            }
        }
        let (expected, found) = (before + 2 * packets.len() as u64, self.learned()?);
        if expected == found { Ok(()) } else { Err(PathError::FlowsLost { expected, found }.into()) }
    }

    fn learned(&mut self) -> Result<u64, WireError> {
        Ok(self.engine.reports()?.iter().map(|report| report.counters.flows.learned).sum())
    }

    /// Offers both directions for so long.
    pub fn offer(&mut self, offers: [Offer; 2], seconds: f64) -> Result<Trial, WireError> {
        let trial = self.apart(|generator| generator.paced(offers, seconds));
        // Reports that the packets caused.
        self.engine.drain(|_, _| ());
        trial
    }

    /// Stops the worker. An error if it dropped packets.
    pub fn stop(self) -> Result<(), WireError> {
        let reports = self.engine.stop()?;
        let drop = reports.iter().find_map(|report| report.counters.drops().next());
        match drop {
            Some((reason, packets)) => Err(PathError::Dropped { packets, reason: reason.label() }.into()),
            None => Ok(()),
        }
    }

    /// Runs the generator on a thread of its own.
    fn apart<T: Send>(&mut self, work: impl FnOnce(&mut Generator<'_>) -> T + Send) -> Result<T, WireError> {
        let mut generator = Generator { ends: &mut self.ends, clock: self.clock };
        let core = self.core;
        let run = || {
            // A generator that can't be pinned measures a little worse.
            let _ = core.map(pin);
            work(&mut generator)
        };
        std::thread::scope(|scope| scope.spawn(run).join()).map_err(|_| WireError::Died)
    }
}

/// Who sends and collects.
struct Generator<'a> {
    ends: &'a mut [MemWire; 2],
    clock: Tsc,
}

impl Generator<'_> {
    /// Sends all packets of a limited source to one end, never more at once than the queue holds; says how many did not come back.
    fn at_leisure(&mut self, mut rx: ReplayRx, end: usize) -> u64 {
        let (mut frames, mut collected) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
        let (mut sent, mut back) = (0_u64, 0_u64);
        let mut last = self.clock.ticks();
        loop {
            let room = DESCRIPTORS as u64 / 2 - (sent - back);
            let made = if room >= BURST as u64 { rx.rx_burst(&mut frames, BURST) } else { 0 };
            if let Some(wire) = self.ends.get_mut(end) {
                sent += made as u64;
                wire.inject(&mut frames);
            }
            let came = self.collect(1 - end, &mut collected);
            collected.clear();
            back += came as u64;
            let now = self.clock.ticks();
            if made + came > 0 {
                last = now;
            } else if sent == back || now - last > self.clock.hz() / PATIENCE {
                return sent - back;
            } else {
                // The worker may be waiting for this core.
                std::thread::yield_now();
            }
        }
    }

    fn collect(&mut self, end: usize, into: &mut Vec<MemFrame>) -> usize {
        self.ends.get_mut(end).map_or(0, |wire| wire.collect(into, BURST))
    }

    /// Sends both directions at their rates for so long.
    fn paced(&mut self, offers: [Offer; 2], seconds: f64) -> Trial {
        let begin = self.clock.ticks();
        let end = begin + (seconds * self.clock.hz() as f64) as u64;
        let mut lanes = offers.map(|offer| {
            let arrivals = Arrivals::new(begin, offer.per_second, &self.clock, LATE);
            (ReplayRx::new(offer.stream), arrivals)
        });
        let (mut frames, mut collected) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
        let mut numbers = Vec::with_capacity(BURST);
        let mut latencies = Latencies::new();
        let (mut offered, mut back, mut last) = (0, 0, begin);
        loop {
            // Read before anything is taken: who is held up past the end still counts all that was due until then.
            let over = self.clock.ticks() >= end;
            let mut made = 0;
            for ((rx, arrivals), wire) in lanes.iter_mut().zip(self.ends.iter_mut()) {
                arrivals.advance(self.clock.ticks().min(end));
                numbers.clear();
                let n = arrivals.take(AT_ONCE, &mut numbers);
                if n == 0 {
                    continue;
                }
                rx.rx_burst(&mut frames, n);
                let now = self.clock.ticks();
                frames.iter_mut().for_each(|frame| stamp(frame, now));
                made += n as u64;
                wire.inject(&mut frames);
            }
            offered += made;
            let came = self.collect(0, &mut collected) + self.collect(1, &mut collected);
            let now = self.clock.ticks();
            for frame in collected.drain(..) {
                latencies.record(nanos(&self.clock, now.saturating_sub(stamped(&frame))));
            }
            back += came as u64;
            if made + came as u64 > 0 || !over {
                last = now;
            } else if offered == back || now - last > self.clock.hz() / PATIENCE {
                break;
            }
        }
        let late = lanes.iter().map(|(_, arrivals)| arrivals.missed()).sum();
        Trial { offered, late, lost: offered - back, latencies }
    }
}

/// Writes a time where the payload ends.
fn stamp(frame: &mut MemFrame, ticks: u64) {
    if let Some(place) = frame.bytes_mut().last_chunk_mut::<8>() {
        *place = ticks.to_ne_bytes();
    }
}

fn stamped(frame: &MemFrame) -> u64 {
    frame.bytes().last_chunk::<8>().map_or(0, |place| u64::from_ne_bytes(*place))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::profiles;

    #[test]
    fn every_packet_comes_back_and_says_when_it_left() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let (mut wire, subscribers) = Wire::new(4, clock).unwrap();
        let packets = profiles::tuples(&subscribers);
        wire.learn(&packets).unwrap();
        let (uplink, downlink) = profiles::streams((128, 8_250), &packets).unwrap();
        let offers = [uplink, downlink].map(|stream| Offer { stream, per_second: 2_000.0 });
        let trial = wire.offer(offers, 0.05).unwrap();
        assert_eq!(trial.lost, 0);
        assert!((trial.offered + trial.late).abs_diff(200) <= 2, "{trial:?}");
        let summary = trial.latencies.summary();
        assert_eq!(summary.packets, trial.offered);
        // Stamps that were not ours would be hours away.
        assert!(summary.min_ns > 0 && summary.max_ns < 2_000_000_000, "{summary:?}");
        assert_eq!(wire.learned().unwrap(), 2 * packets.len() as u64);
        wire.stop().unwrap();
    }
}
