//! The box as its neighbours see it: a worker's thread between two in-memory NICs, and a generator on another thread.
//!
//! The generator paces packets of both directions by the clock, writes into each when it handed it to the NIC, and reads
//! that again when it collects it on the other side. It never waits for room: what finds a receive queue full is lost, as on a
//! wire. What it can't send in time because it was held up itself is not made up for, so that it never floods the box; it
//! counts as not offered. And while it is held up it doesn't collect: then the box finds its transmit ring full, which no cable's other
//! end would do to it. Such packets are lost like others, but a [`Trial`] says how many they were, and for how long either thread was kept from
//! running: what a machine did in a trial says nothing of the box.

use crate::arrivals::{Arrivals, DESCRIPTORS, nanos};
use crate::crew::{self, Member, PATIENCE};
use crate::flows;
use crate::jitter::{Away, Whom};
use crate::path::{self, MTU, Numbering, PathError, Subscriber};
use crate::progress::Progress;
use crate::scene::Scene;
use datapath::{Config, Reason};
use engine::placement::{available_cores, pin};
use engine::{Engine, EngineConfig, EngineError, IdlePolicy, WorkerReport};
use io::mem::{MemConfig, MemError, MemFrame, MemNic, MemWire, RssMode};
use io::replay::{ReplayRx, Stream};
use io::{BURST, Frame, RxQueue};
use loadgen::latency::Latencies;
use tables::clock::Tsc;

/// Packets that the generator may be late with before it gives them up.
const LATE: usize = BURST;
/// Packets handed over at once, at most.
const AT_ONCE: usize = 32;
/// How long the generator waits after a trial for packets that don't come back, in fractions of a second.
const STRAGGLERS: u64 = 5;
/// Packets on their way at leisure, at most: less than a quarter of a queue. With more, what protects known flows from new ones would drop some
/// where the worker gets no time for them.
const AT_LEISURE: u64 = DESCRIPTORS as u64 / 4 - 1;
/// Packets that are learned before it is said how far it is.
const PIECE: usize = 1 << 17;
/// The worker's threads.
const WORKER: &str = "worker-";

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
    /// What both threads may run on.
    cores: Vec<usize>,
    numbering: Numbering,
    scene: Scene,
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
    /// Of those, the ones that found the ring to the generator full.
    pub uncollected: u64,
    /// For how long generator or worker were kept from running, in seconds, as far as this machine tells: of either in all, over the
    /// trial, and of the generator its longest round.
    pub held_up: f64,
    /// From handing over to collecting.
    pub latencies: Latencies,
}

/// What the generator saw of a trial.
struct Seen {
    offered: u64,
    late: u64,
    lost: u64,
    /// Its longest round, in ticks.
    round: u64,
    /// For how long it was kept from running, in seconds.
    away: Option<f64>,
    latencies: Latencies,
}

impl Wire {
    /// Starts a worker and gives it so many sessions. The worker and the generator have a core each, if there are two.
    pub fn new(
        scene: Scene,
        sessions: usize,
        clock: Tsc,
        progress: &mut dyn Progress,
    ) -> Result<(Self, Vec<Subscriber>), WireError> {
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
        let mut network = scene.network().map_err(PathError::from)?;
        let mut config = Config { teids: path::teids(), ..Config::new(network.fib()) };
        flows::room_for(sessions * config.flows_per_session as usize, &mut config);
        let cores = available_cores();
        let (core, worker, cores) = match cores.as_slice() {
            [first, .., last] => (Some(*first), Some(*last), vec![*first, *last]),
            _ => (None, None, cores),
        };
        // On one core a worker that never sleeps would keep the generator from sending.
        let idle = if worker.is_some() { IdlePolicy::Busy } else { IdlePolicy::default() };
        let settings =
            EngineConfig { cores: vec![worker], idle, answer_within: PATIENCE, ..EngineConfig::default() };
        let engine = Engine::start(&mut [n3_port, n6_port], &settings, &config, clock)?;
        let mut wire =
            Self { engine, clock, ends: [n3, n6], core, cores, numbering: Numbering::default(), scene };
        let subscribers = wire.establish(sessions, progress)?;
        Ok((wire, subscribers))
    }

    fn establish(
        &mut self,
        sessions: usize,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Subscriber>, WireError> {
        let scene = self.scene;
        let members = Member::several_in(scene, &mut self.numbering, sessions);
        let rules = |place, tunnel, ue| flows::filtered(scene, place, tunnel, ue);
        crew::install(&mut self.engine, &members, rules, progress)?;
        Ok(members.iter().map(Member::subscriber).collect())
    }

    /// Sends every packet of both directions once, at leisure, so that its flow becomes known.
    pub fn learn(
        &mut self,
        packets: &[(Subscriber, u16)],
        progress: &mut dyn Progress,
    ) -> Result<(), WireError> {
        let before = self.learned()?;
        let (mut done, all) = (0, 2 * packets.len() as u64);
        for uplink in [true, false] {
            // In pieces, after each of which it can be said how far it is.
            for some in packets.chunks(PIECE) {
                progress.part(done, all);
                let stream = self.scene.stream(uplink, some.iter().copied()).map_err(PathError::from)?;
                let rx = ReplayRx::new(stream).limited(some.len() as u64);
                let lost = self.apart(|generator| generator.at_leisure(rx, usize::from(!uplink)))?;
                if lost > 0 {
                    return Err(WireError::Lost(lost));
                }
                done += some.len() as u64;
            }
        }
        let (expected, found) = (before + 2 * packets.len() as u64, self.learned()?);
        if expected == found { Ok(()) } else { Err(PathError::FlowsLost { expected, found }.into()) }
    }

    fn learned(&mut self) -> Result<u64, WireError> {
        Ok(self.engine.reports()?.iter().map(|report| report.counters.flows.learned).sum())
    }

    /// Offers both directions for so long. An error if the worker dropped packets for another reason than that the generator did not
    /// collect them.
    pub fn offer(&mut self, offers: [Offer; 2], seconds: f64) -> Result<Trial, WireError> {
        let full = uncollected(&self.settled()?)?;
        let cores = self.cores.iter().map(|core| Whom::Core(*core));
        let away = Away::begin(cores.chain([Whom::Named(WORKER)]));
        let seen = self.apart(|generator| generator.paced(offers, seconds))?;
        let round = seen.round as f64 / self.clock.hz() as f64;
        let told = away.seconds().into_iter().chain(seen.away);
        let held_up = told.fold(round, f64::max);
        // Reports that the packets caused.
        self.engine.drain(|_, _| ());
        let Seen { offered, late, lost, latencies, .. } = seen;
        let uncollected = uncollected(&self.engine.reports()?)? - full;
        Ok(Trial { offered, late, lost, uncollected, held_up, latencies })
    }

    /// What the worker counted once nothing is on its way any more: what was left in a ring would leave less room for what comes next.
    fn settled(&mut self) -> Result<Vec<WorkerReport>, WireError> {
        let mut collected = Vec::with_capacity(BURST);
        let came = |reports: &[WorkerReport]| -> u64 {
            reports.iter().flat_map(|report| &report.ports).map(|port| port.packets).sum()
        };
        let mut reports = self.engine.reports()?;
        loop {
            let mut some = 0;
            for wire in &mut self.ends {
                while wire.collect(&mut collected, BURST) > 0 {
                    some += collected.drain(..).count();
                }
            }
            // Between two answers the worker has been round all its queues.
            let now = self.engine.reports()?;
            if some == 0 && came(&now) == came(&reports) {
                return Ok(now);
            }
            reports = now;
        }
    }

    /// Stops the worker. An error if it dropped packets, likewise.
    pub fn stop(self) -> Result<(), WireError> {
        uncollected(&self.engine.stop()?).map(|_| ())
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

/// Packets that found the ring to the generator full so far. An error if others were dropped.
fn uncollected(reports: &[WorkerReport]) -> Result<u64, WireError> {
    let mut sum = 0;
    for (reason, packets) in reports.iter().flat_map(|report| report.counters.drops()) {
        if reason != Reason::TxQueueFull {
            return Err(PathError::Dropped { packets, reason: reason.label() }.into());
        }
        sum += packets;
    }
    Ok(sum)
}

/// Who sends and collects.
struct Generator<'a> {
    ends: &'a mut [MemWire; 2],
    clock: Tsc,
}

impl Generator<'_> {
    /// Sends all packets of a limited source to one end, never so many at once that anything hurries; says how many did not come back.
    fn at_leisure(&mut self, mut rx: ReplayRx, end: usize) -> u64 {
        let (mut frames, mut collected) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
        let (mut sent, mut back) = (0_u64, 0_u64);
        let mut last = self.clock.ticks();
        loop {
            let room = AT_LEISURE - (sent - back);
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
            } else if sent == back || now - last > self.clock.hz() * PATIENCE.as_secs() {
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
    fn paced(&mut self, offers: [Offer; 2], seconds: f64) -> Seen {
        let (mut frames, mut collected) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
        let away = Away::begin([Whom::Here]);
        let begin = self.clock.ticks();
        let end = begin + (seconds * self.clock.hz() as f64) as u64;
        let mut lanes = offers.map(|offer| {
            let arrivals = Arrivals::new(begin, offer.per_second, &self.clock, LATE);
            (ReplayRx::new(offer.stream), arrivals)
        });
        let mut numbers = Vec::with_capacity(BURST);
        let mut latencies = Latencies::new();
        let (mut offered, mut back, mut last) = (0, 0, begin);
        let (mut began, mut round) = (begin, 0);
        loop {
            // Read before anything is taken: who is held up past the end still counts all that was due until then.
            let now = self.clock.ticks();
            let over = now >= end;
            round = round.max(now - began);
            began = now;
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
                // One that was given up in the trial before may still come.
                if let Some(taken) = now.checked_sub(stamped(&frame)).filter(|taken| *taken <= now - begin) {
                    latencies.record(nanos(&self.clock, taken));
                    back += 1;
                }
            }
            if made + came as u64 > 0 || !over {
                last = now;
            } else if offered == back || now - last > self.clock.hz() / STRAGGLERS {
                break;
            }
        }
        let late = lanes.iter().map(|(_, arrivals)| arrivals.missed()).sum();
        Seen { offered, late, lost: offered - back, round, away: away.seconds(), latencies }
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
    use crate::progress::Silent;
    use io::{Port, TxQueue};

    #[test]
    fn every_packet_comes_back_and_says_when_it_left() {
        for scene in [Scene::SIMPLE, Scene::MANY6] {
            all_come_back(scene);
        }
    }

    fn all_come_back(scene: Scene) {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let (mut wire, subscribers) = Wire::new(scene, 4, clock, &mut Silent).unwrap();
        let packets = profiles::tuples(&subscribers);
        wire.learn(&packets, &mut Silent).unwrap();
        let (uplink, downlink) = profiles::streams(scene, (128, 8_250), &packets).unwrap();
        let offers = [uplink, downlink].map(|stream| Offer { stream, per_second: 2_000.0 });
        let trial = wire.offer(offers, 0.05).unwrap();
        assert!(trial.lost == 0 || trial.held_up > 0.1, "{trial:?}");
        assert!((trial.offered + trial.late).abs_diff(200) <= 2, "{trial:?}");
        let summary = trial.latencies.summary();
        assert_eq!(summary.packets, trial.offered - trial.lost);
        // Stamps that were not ours would be hours away.
        assert!(summary.min_ns > 0 && summary.max_ns < 2_000_000_000, "{summary:?}");
        assert_eq!(wire.learned().unwrap(), 2 * packets.len() as u64);
        wire.stop().unwrap();
    }

    /// However long the worker does not run: it is never in a hurry afterwards.
    #[test]
    fn at_leisure_no_queue_fills() {
        const PACKETS: u64 = 5_000;
        let nic = || MemNic::new(MemConfig { mtu: MTU, descriptors: DESCRIPTORS, ..MemConfig::default() });
        let ((mut n3, near), (mut n6, far)) = (nic().unwrap(), nic().unwrap());
        let ((mut rx, _), (_, mut tx)) = (n3.take_queue(0).unwrap(), n6.take_queue(0).unwrap());
        let packets = [(Subscriber { teid: packet::Teid(1), ue: [10, 0, 0, 1].into() }, 1)];
        let stream = Scene::SIMPLE.stream(true, packets.into_iter()).unwrap();
        let mut ends = [near, far];
        let mut generator = Generator { ends: &mut ends, clock: Tsc::process() };
        let source = ReplayRx::new(stream).limited(PACKETS);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| generator.at_leisure(source, 0));
            let (mut burst, mut came) = (Vec::new(), 0);
            while came < PACKETS {
                // Until no more comes.
                let mut before = 0;
                while before == 0 || rx.waiting() > before {
                    before = rx.waiting();
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                assert_eq!(rx.quarters(), Some(0), "{before} wait");
                came += rx.rx_burst(&mut burst, BURST) as u64;
                tx.tx_burst(&mut burst);
                assert!(burst.is_empty());
            }
            assert_eq!(sending.join().unwrap(), 0);
        });
    }

    /// The generator is away for longer than a ring lasts: that is no fault of the worker's.
    #[test]
    fn what_nobody_collects_is_told_and_no_error() {
        let _alone = crate::crew::alone();
        let (clock, scene) = (Tsc::process(), Scene::MANY);
        let (mut wire, subscribers) = Wire::new(scene, 4, clock, &mut Silent).unwrap();
        let packets = profiles::tuples(&subscribers);
        wire.learn(&packets, &mut Silent).unwrap();
        let (uplink, downlink) = profiles::streams(scene, (128, 128), &packets).unwrap();
        let mut rx = ReplayRx::new(uplink.clone());
        let mut frames = Vec::new();
        while uncollected(&wire.engine.reports().unwrap()).unwrap() == 0 {
            rx.rx_burst(&mut frames, BURST);
            wire.ends[0].inject(&mut frames);
            std::thread::yield_now();
        }
        // What is in the ring now was not sent in the next trial.
        let offers = [uplink, downlink].map(|stream| Offer { stream, per_second: 1_000.0 });
        let trial = wire.offer(offers, 0.05).unwrap();
        assert_eq!(trial.uncollected, 0, "{trial:?}");
        // A machine that is busy for longer than stragglers are waited for is told of.
        assert!(trial.lost == 0 || trial.held_up > 0.1, "{trial:?}");
        assert_eq!(trial.latencies.summary().packets, trial.offered - trial.lost);
        wire.stop().unwrap();
    }
}
