//! How much workers forward when more comes than they can take: every receive queue always has a full burst.
//!
//! Each receive queue replays packets from memory on its worker's own core ([`io::replay`]), so that no core is spent on a
//! generator, and the port itself never loses anything.

use crate::crew::{Crew, CrewError, Member, Team};
use crate::path::{self, MTU, N3_MAC, N6_MAC};
use crate::progress::Progress;
use engine::WorkerReport;
use io::Port;
use io::replay::{ReplayPort, ReplayRx, SinkTx};
use packet::MacAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tables::clock::Tsc;

/// The UEs' port.
const UE_PORT: u16 = 40_000;

/// Sizes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All carry so many octets of UDP payload.
    Payload(usize),
    /// Seven packets of 40 octets (IP header to payload), four of 576, one of 1,500.
    Imix,
}

impl Sizes {
    /// Payloads, and the order in which they come.
    const fn payloads(&self) -> (&[usize], &'static [u8]) {
        match self {
            Self::Payload(payload) => (std::slice::from_ref(payload), &[0]),
            Self::Imix => (&[40 - 28, 576 - 28, 1500 - 28], &[0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0]),
        }
    }

    /// Octets that the mean packet takes on a line: Ethernet header to frame check sequence, preamble and gap. `tunnel`: where it has
    /// a GTP-U header.
    pub fn octets(&self, tunnel: bool) -> f64 {
        let (payloads, order) = self.payloads();
        let sum: usize = order.iter().filter_map(|size| payloads.get(usize::from(*size))).sum();
        sum as f64 / order.len() as f64 + 28.0 + 14.0 + 24.0 + if tunnel { 44.0 } else { 0.0 }
    }

    /// What arrives at a queue of one direction's port.
    fn packets(&self, uplink: bool, members: &[&Member]) -> Result<ReplayRx, CrewError> {
        let Some(_) = members.first() else {
            // A queue that nobody sends to.
            let nobody = path::Subscriber { teid: packet::Teid(1), ue: std::net::Ipv4Addr::UNSPECIFIED };
            let stream = path::stream(uplink, [(nobody, UE_PORT)].into_iter())?;
            return Ok(ReplayRx::new(stream).limited(0));
        };
        let (payloads, order) = self.payloads();
        let stream = |payload: &usize| {
            let packets = members.iter().map(|member| (member.subscriber(), UE_PORT));
            path::stream_of_payload(uplink, *payload, packets)
        };
        let streams: Vec<_> = payloads.iter().map(stream).collect::<Result<_, _>>()?;
        // Different sizes don't march in step, or a session's three packets would follow each other.
        let parts = streams.len();
        let apart =
            |(part, stream): (usize, io::replay::Stream)| stream.starting_at(members.len() * part / parts);
        Ok(ReplayRx::mixed(streams.into_iter().enumerate().map(apart).collect(), order.to_vec())?)
    }
}

/// The longest time to warm up, in seconds.
const WARM_UP: f64 = 30.0;
/// How long nothing may be forwarded, in seconds, until that is the result.
const PATIENCE: f64 = 2.0;

/// Workers whose queues are always full.
pub struct Saturated {
    crew: Crew,
    ports: [ReplayPort; 2],
    /// Uplink, downlink.
    gates: [Arc<AtomicBool>; 2],
    /// Sessions that packets are of.
    active: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Flood {
    /// Packets forwarded a second, in each window.
    pub rates: Vec<f64>,
    /// What each thread counted before and after.
    reports: [Vec<WorkerReport>; 2],
}

impl Flood {
    /// Packets a second that a thread could take if it were never idle.
    pub fn limit(&self, thread: usize) -> Option<f64> {
        let [before, after] = [&self.reports[0], &self.reports[1]].map(|reports| reports.get(thread));
        let (before, after) = (before?, after?);
        let packets = |report: &WorkerReport| {
            report.load.taken_over + report.ports.iter().map(|port| port.packets).sum::<u64>()
        };
        let busy = (after.load.busy_nanos - before.load.busy_nanos) as f64 / 1e9;
        (busy > 0.0).then(|| (packets(after) - packets(before)) as f64 / busy)
    }

    /// By how much a figure of all threads has grown.
    fn grown(&self, figure: impl Fn(&WorkerReport) -> u64) -> u64 {
        let [before, after] = &self.reports;
        let sum = |reports: &[WorkerReport]| reports.iter().map(&figure).sum::<u64>();
        sum(after).saturating_sub(sum(before))
    }

    /// Of the packets that came, the share that was handed off, and the one that was dropped.
    pub fn shares(&self) -> [f64; 2] {
        let came = self.grown(|report| report.ports.iter().map(|port| port.packets).sum()).max(1) as f64;
        let handed_off = self.grown(|report| report.load.handed_off);
        let dropped = self.grown(|report| report.counters.dropped_total());
        [handed_off, dropped].map(|packets| packets as f64 / came)
    }
}

impl Saturated {
    /// Installs all members, and makes packets for the active ones in their order.
    pub fn start(
        team: &Team,
        members: &[Member],
        active: &[Member],
        sizes: Sizes,
        clock: Tsc,
        progress: &mut dyn Progress,
    ) -> Result<Self, CrewError> {
        let gates = [false, false].map(|open| Arc::new(AtomicBool::new(open)));
        let port = |name: &str, mac: MacAddr, uplink: bool, gate| -> Result<ReplayPort, CrewError> {
            let mut sources = Vec::with_capacity(team.threads());
            for queue in 0..team.threads() {
                let own: Vec<&Member> = active
                    .iter()
                    .filter(|member| {
                        queue < team.receivers() && member.place.shard.index() % team.receivers() == queue
                    })
                    .collect();
                sources.push((sizes.packets(uplink, &own)?.gated(gate), SinkTx::new()));
            }
            Ok(ReplayPort::new(name, mac, MTU, sources))
        };
        let mut ports = [port("n3", N3_MAC, true, &gates[0])?, port("n6", N6_MAC, false, &gates[1])?];
        let crew = Crew::start(&mut ports, team, members, clock, progress)?;
        Ok(Self { crew, ports, gates, active: active.len() as u64 })
    }

    /// Moves every shard to the worker that `owner` says of its number. Its packets go on coming to the same queue.
    pub fn place(&mut self, owner: impl Fn(usize) -> usize) -> Result<(), CrewError> {
        self.crew.place(owner)
    }

    /// Opens the gates of one direction.
    pub fn open(&self, uplink: bool) {
        self.gates[usize::from(!uplink)].store(true, Ordering::Relaxed);
    }

    /// Closes them, and waits until nothing is on its way.
    pub fn close(&self) {
        self.gates.iter().for_each(|gate| gate.store(false, Ordering::Relaxed));
        std::thread::sleep(Duration::from_millis(2));
    }

    /// Packets sent by either port so far.
    fn sent(&self) -> u64 {
        self.ports.iter().map(|port| port.stats().tx_packets).sum()
    }

    /// A session's first packet opens its books, and costs as much as ten others: a million sessions need seconds for that.
    fn warm_up(&self, window: Duration) {
        let (begin, before) = (Instant::now(), self.sent());
        loop {
            std::thread::sleep(window);
            let sent = self.sent() - before;
            let patience = if sent == 0 { PATIENCE } else { WARM_UP };
            // Twice, for no queue is as fast as another.
            if sent >= 2 * self.active || begin.elapsed().as_secs_f64() > patience {
                return;
            }
        }
    }

    /// Packets forwarded of one direction, in so many windows of so many seconds, after one to warm up or until each session had packets.
    pub fn flood(
        &mut self,
        uplink: bool,
        seconds: f64,
        windows: usize,
        clock: Tsc,
    ) -> Result<Flood, CrewError> {
        self.open(uplink);
        let window = Duration::from_secs_f64(seconds);
        self.warm_up(window);
        let before = self.crew.engine.reports()?;
        let mut rates = Vec::with_capacity(windows);
        for _ in 0..windows {
            let (begin, sent) = (clock.ticks(), self.sent());
            let seconds = || (clock.ticks() - begin) as f64 / clock.hz() as f64;
            std::thread::sleep(window);
            // Where others want the workers' processors too, a short window may pass before they have run at all.
            while self.sent() == sent && seconds() < PATIENCE {
                std::thread::sleep(window);
            }
            let took = seconds();
            rates.push((self.sent() - sent) as f64 / took);
            // Reports that the packets caused.
            self.crew.engine.drain(|_, _| ());
        }
        let after = self.crew.engine.reports()?;
        self.close();
        if rates.iter().all(|rate| *rate <= 0.0) {
            return Err(CrewError::Nothing);
        }
        Ok(Flood { rates, reports: [before, after] })
    }

    /// Stops the threads.
    pub fn stop(self) -> Result<Vec<WorkerReport>, CrewError> {
        self.crew.stop()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crew::{Model, drops};
    use crate::path::Numbering;
    use crate::progress::Silent;

    #[test]
    fn every_queue_s_packets_are_forwarded_by_its_own_worker() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let members = Member::several(&mut Numbering::default(), 64);
        let team = Team::new(Model::Rtc, 2);
        let mut saturated =
            Saturated::start(&team, &members, &members[..32], Sizes::Imix, clock, &mut Silent).unwrap();
        for uplink in [true, false] {
            let flood = saturated.flood(uplink, 0.02, 2, clock).unwrap();
            assert!(flood.rates.iter().all(|rate| *rate > 1_000.0), "{flood:?}");
            assert!(flood.limit(1).unwrap() > 1_000.0 && flood.limit(2).is_none());
        }
        let reports = saturated.stop().unwrap();
        assert_eq!(drops(&reports), []);
        assert!(reports.iter().all(|report| report.load.handed_off == 0));
    }

    #[test]
    fn the_mean_packet_of_a_mix() {
        assert!((Sizes::Payload(64).octets(false) - (64.0 + 28.0 + 14.0 + 24.0)).abs() < 1e-9);
        let mean = (7.0 * 40.0 + 4.0 * 576.0 + 1_500.0) / 12.0;
        assert!((Sizes::Imix.octets(true) - (mean + 14.0 + 24.0 + 44.0)).abs() < 1e-9);
    }
}
