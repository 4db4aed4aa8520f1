//! gNBs, UEs and a data network on one thread: the world that a UPF stands in.
//!
//! [`World::run`] sends both ways, receives, verifies and accounts. By default its load is a *closed window*: at most
//! [`WorldConfig::window`] packets of each direction are on their way at once, and the next is sent when one came
//! back. So the UPF is driven as fast as it goes, and nothing is lost because a generator overran a ring: what is lost,
//! the UPF lost. Latencies under a closed window are those of a full window (Little's law: window / rate), not of an
//! idle system; give a [`WorldConfig::rate`] to measure the latter.
//!
//! A packet that doesn't come back within [`WorldConfig::patience`] is written off, so that the window opens again; if
//! it comes after all, it isn't lost.

use crate::dn::DataNetworkSite;
use crate::facts::{Network, SessionFacts};
use crate::gnb::{GnbSite, GtpuCounts};
use crate::imix::{Family, SessionChoice, SessionPicker, SizeProfile, SizeSampler};
use crate::latency::LatencySummary;
use crate::link::Link;
use crate::payload::{Direction, Stamp, StreamId};
use crate::rng::SplitMix64;
use crate::station::{Reaction, Site};
use crate::traffic::{FlowError, Flows};
use crate::verify::{Account, Arrival, FaultRecord, Verifier, VerifierConfig};
use io::Frame;
use packet::MacAddr;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::ControlFlow;
use tables::Nanos;

/// Packets made, and received, at once.
const BURST: usize = 32;

/// What traffic to make.
#[derive(Clone, PartialEq, Debug)]
pub struct WorldConfig {
    /// Packet sizes.
    pub profile: SizeProfile,
    /// Whose packets.
    pub choice: SessionChoice,
    /// Send from UEs.
    pub uplink: bool,
    /// Send to UEs.
    pub downlink: bool,
    /// Packets of each direction on their way at most. Keep it below the UPF's receive descriptors of one queue.
    pub window: u32,
    /// Packets per second of each direction; `None`: as many as the window lets through.
    pub rate: Option<u64>,
    /// After so many nanoseconds without any arrival in a direction, what is on its way there is written off.
    pub patience: u64,
    /// Determines payloads and the order of sizes and sessions.
    pub seed: u64,
    /// What is checked.
    pub verifier: VerifierConfig,
    /// Nanoseconds between two calls of the progress function.
    pub progress_every: u64,
    /// The UPF's addresses on N6, which the data network's router asks for.
    pub upf_n6: Vec<IpAddr>,
}

impl Default for WorldConfig {
    /// Simple IMIX both ways, sessions in turn, 256 packets in flight each way, half a second of patience, progress every
    /// quarter of a second.
    fn default() -> Self {
        Self {
            profile: SizeProfile::simple_imix(),
            choice: SessionChoice::RoundRobin,
            uplink: true,
            downlink: true,
            window: 256,
            rate: None,
            patience: 500_000_000,
            seed: 1,
            verifier: VerifierConfig::default(),
            progress_every: 250_000_000,
            upf_n6: Vec::new(),
        }
    }
}

/// The world can't begin to turn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorldError {
    /// Sessions that can't be made into traffic.
    #[error(transparent)]
    Flows(#[from] FlowError),
    /// There is no session.
    #[error("no session to send traffic for")]
    NoSessions,
    /// The UPF's MAC address is not known, and no address is given to ask it for.
    #[error("the UPF's MAC address on N6 is unknown, and so is every address to ask it for")]
    NothingToAsk,
    /// The UPF did not say where it is.
    #[error("no answer to ARP or Neighbour Solicitation for {0}")]
    Unresolved(IpAddr),
}

/// One direction since the last look.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct LiveRate {
    /// Packets per second that arrived.
    pub packets_per_second: f64,
    /// Bits per second of their inner IP packets.
    pub bits_per_second: f64,
    /// Packets on their way, or lost and not written off yet.
    pub in_flight: u64,
    /// Packets written off so far.
    pub missing: u64,
    /// Faulty packets so far.
    pub faulty: u64,
}

/// What the progress function is told.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct Progress {
    /// Seconds since the start.
    pub seconds: f64,
    /// From UEs.
    pub uplink: LiveRate,
    /// To UEs.
    pub downlink: LiveRate,
}

/// One direction of a finished run.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct DirectionReport {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of their inner IP packets.
    pub sent_bytes: u64,
    /// What arrived.
    pub received: Account,
    /// Packets that never arrived.
    pub lost: u64,
    /// Packets per second that arrived.
    pub packets_per_second: f64,
    /// Bits per second of their inner IP packets.
    pub bits_per_second: f64,
    /// One-way latency.
    pub latency: LatencySummary,
}

/// A finished run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TrafficReport {
    /// Seconds from the first packet to the last arrival.
    pub seconds: f64,
    /// Sessions with traffic.
    pub sessions: u32,
    /// Packet sizes.
    pub profile: String,
    /// Repeats the run.
    pub seed: u64,
    /// From UEs.
    pub uplink: DirectionReport,
    /// To UEs.
    pub downlink: DirectionReport,
    /// What else came to gNBs.
    pub gtpu: GtpuCounts,
    /// The first faulty packets.
    pub faults: Vec<FaultRecord>,
}

impl TrafficReport {
    /// What went wrong, a line each; empty: every packet arrived once, in order and right.
    pub fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, direction) in [("uplink", &self.uplink), ("downlink", &self.downlink)] {
            let counts = [
                (direction.lost, "lost"),
                (direction.received.repeated, "repeated"),
                (direction.received.reordered, "out of order"),
                (direction.received.faulty, "faulty"),
            ];
            let wrong = counts.iter().filter(|(count, _)| *count > 0);
            lines.extend(wrong.map(|(count, what)| {
                format!("{name}: {count} of {} packets {what}", direction.sent_packets)
            }));
        }
        lines.extend(self.faults.iter().map(|fault| format!("{}: {}", fault.hex, fault.fault)));
        lines
    }
}

/// One direction's sending side.
#[derive(Debug)]
struct Sender<F> {
    direction: Direction,
    enabled: bool,
    picker: SessionPicker,
    sizes: SizeSampler,
    rng: SplitMix64,
    /// Made, but the link had no room.
    waiting: Vec<F>,
    packets: u64,
    bytes: u64,
    written_off: u64,
    last_arrival: Nanos,
}

/// gNBs and UEs on one link, a data network on another, and the UPF between them.
#[derive(Debug)]
pub struct World<R: Link, D: Link> {
    n3: R,
    n6: D,
    config: WorldConfig,
    flows: Flows,
    verifier: Verifier,
    gnbs: GnbSite,
    dn: DataNetworkSite,
    uplink: Sender<R::Frame>,
    downlink: Sender<D::Frame>,
    from_n3: Vec<R::Frame>,
    from_n6: Vec<D::Frame>,
}

impl<R: Link, D: Link> World<R, D> {
    /// Finds the UPF on both links (ARP, Neighbour Discovery) and prepares traffic for these sessions. Every gNB
    /// introduces itself, so that the UPF need not search for it with a user's packet in hand. If `network` has the UPF's
    /// MAC addresses already, nobody is asked.
    ///
    /// `clock` is read for time-outs; after three seconds without answer this gives up.
    pub fn new(
        mut n3: R,
        mut n6: D,
        facts: &[SessionFacts],
        network: &Network,
        config: WorldConfig,
        clock: &mut impl FnMut() -> Nanos,
    ) -> Result<Self, WorldError> {
        if facts.is_empty() {
            return Err(WorldError::NoSessions);
        }
        let mut network = network.clone();
        let mut gnbs = GnbSite::new(&network);
        let mut dn = DataNetworkSite::new(&network);
        if network.upf_n3_mac == MacAddr::ZERO {
            let tunnels: BTreeSet<_> = facts.iter().map(|facts| (facts.gnb, facts.upf_n3)).collect();
            let ask: Vec<_> = tunnels.into_iter().collect();
            network.upf_n3_mac = resolve(&mut n3, &mut gnbs, &ask, clock)?;
        }
        if network.upf_n6_mac == MacAddr::ZERO {
            let same_family =
                |to: &IpAddr| network.dn.gateways.iter().find(|from| from.is_ipv4() == to.is_ipv4());
            let ask: Vec<_> = config.upf_n6.iter().filter_map(|to| Some((*same_family(to)?, *to))).collect();
            network.upf_n6_mac = resolve(&mut n6, &mut dn, &ask, clock)?;
        }
        let flows = Flows::new(facts, &network, config.seed)?;
        let verifier = Verifier::new(config.verifier, flows.sessions());
        Ok(Self {
            uplink: Sender::new(Direction::Uplink, config.uplink, &config, flows.sessions()),
            downlink: Sender::new(Direction::Downlink, config.downlink, &config, flows.sessions()),
            n3,
            n6,
            flows,
            verifier,
            gnbs,
            dn,
            config,
            from_n3: Vec::with_capacity(BURST),
            from_n6: Vec::with_capacity(BURST),
        })
    }

    /// The streams, to follow sessions that move.
    pub const fn flows_mut(&mut self) -> &mut Flows {
        &mut self.flows
    }

    /// The links, N3 and N6.
    pub const fn links_mut(&mut self) -> (&mut R, &mut D) {
        (&mut self.n3, &mut self.n6)
    }

    /// The links, for another world.
    pub fn into_links(self) -> (R, D) {
        (self.n3, self.n6)
    }

    /// Sends for `nanos`, waits for what is on its way, and reports. `progress` is called now and then; it can end
    /// the run early. May be called again: accounts go on.
    pub fn run(
        &mut self,
        nanos: u64,
        clock: &mut impl FnMut() -> Nanos,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> TrafficReport {
        let start = clock();
        let before = self.snapshot();
        let sent_before = [self.uplink.packets, self.downlink.packets];
        let (mut last_look, mut last_seen) = (start, before);
        let mut last_busy = start;
        let mut sending = true;
        (self.uplink.last_arrival, self.downlink.last_arrival) = (start, start);
        loop {
            let now = clock();
            if sending && now.since(start) >= nanos {
                sending = false;
            }
            let mut work = 0;
            if sending {
                let due = |sent: u64, before: u64| {
                    self.config.rate.map(|rate| {
                        let due = u128::from(rate) * u128::from(now.since(start)) / u128::from(Nanos::SECOND);
                        (due as u64 + 1).saturating_sub(sent - before)
                    })
                };
                let up = due(self.uplink.packets, sent_before[0]);
                let down = due(self.downlink.packets, sent_before[1]);
                let flight = |this: &Self, direction| this.in_flight(direction);
                let (up_flight, down_flight) =
                    (flight(self, Direction::Uplink), flight(self, Direction::Downlink));
                work += self.uplink.send(&mut self.n3, &mut self.flows, &self.config, up_flight, up, now);
                work +=
                    self.downlink.send(&mut self.n6, &mut self.flows, &self.config, down_flight, down, now);
            } else {
                work += self.uplink.flush(&mut self.n3) + self.downlink.flush(&mut self.n6);
            }
            work += self.receive(clock);
            if work > 0 {
                last_busy = now;
            } else if now.since(last_busy) > 50_000 {
                // On a machine with fewer cores than threads, the UPF may be waiting for this one.
                std::thread::yield_now();
            }
            for direction in [Direction::Uplink, Direction::Downlink] {
                self.lose_patience(direction, now);
            }
            if now.since(last_look) >= self.config.progress_every {
                let seen = self.snapshot();
                let told = self.progress_since(&last_seen, &seen, now.since(last_look), now.since(start));
                (last_look, last_seen) = (now, seen);
                if progress(&told).is_break() {
                    sending = false;
                }
            }
            let outstanding = self.in_flight(Direction::Uplink) + self.in_flight(Direction::Downlink);
            if !sending && outstanding == 0 {
                break;
            }
        }
        let end = self.uplink.last_arrival.max(self.downlink.last_arrival);
        self.report(&before, end.since(start))
    }

    fn sender_state(&self, direction: Direction) -> (u64, u64, u64) {
        match direction {
            Direction::Uplink => (self.uplink.packets, self.uplink.bytes, self.uplink.written_off),
            Direction::Downlink => (self.downlink.packets, self.downlink.bytes, self.downlink.written_off),
        }
    }

    fn in_flight(&self, direction: Direction) -> u64 {
        let (packets, _, written_off) = self.sender_state(direction);
        packets.saturating_sub(self.verifier.account(direction).unique + written_off)
    }

    fn lose_patience(&mut self, direction: Direction, now: Nanos) {
        let stuck = self.in_flight(direction);
        let (written_off, last) = match direction {
            Direction::Uplink => (&mut self.uplink.written_off, &mut self.uplink.last_arrival),
            Direction::Downlink => (&mut self.downlink.written_off, &mut self.downlink.last_arrival),
        };
        if stuck > 0 && now.since(*last) > self.config.patience {
            *written_off += stuck;
            *last = now;
        }
    }

    fn receive(&mut self, clock: &mut impl FnMut() -> Nanos) -> usize {
        let (flows, verifier) = (&self.flows, &mut self.verifier);
        let (up_at, down_at) = (&mut self.uplink.last_arrival, &mut self.downlink.last_arrival);
        let (to_n3, to_n6) = (&mut self.uplink.waiting, &mut self.downlink.waiting);
        let from_n3 =
            hear_all(&mut self.n3, &mut self.gnbs, to_n3, &mut self.from_n3, clock, |frame, now| {
                if verifier.check_n3(flows, frame, now) != Arrival::Stray {
                    *down_at = now;
                }
            });
        let from_n6 = hear_all(&mut self.n6, &mut self.dn, to_n6, &mut self.from_n6, clock, |frame, now| {
            if verifier.check_n6(flows, frame, now) != Arrival::Stray {
                *up_at = now;
            }
        });
        from_n3 + from_n6
    }

    fn snapshot(&self) -> [Account; 2] {
        [*self.verifier.account(Direction::Uplink), *self.verifier.account(Direction::Downlink)]
    }

    fn progress_since(&self, before: &[Account; 2], now: &[Account; 2], span: u64, total: u64) -> Progress {
        let seconds = span.max(1) as f64 / 1e9;
        let live = |direction: Direction| {
            let (before, now) = (&before[direction as usize], &now[direction as usize]);
            let (_, _, written_off) = self.sender_state(direction);
            LiveRate {
                packets_per_second: (now.packets - before.packets) as f64 / seconds,
                bits_per_second: (now.bytes - before.bytes) as f64 * 8.0 / seconds,
                in_flight: self.in_flight(direction),
                missing: written_off,
                faulty: now.faulty,
            }
        };
        Progress {
            seconds: total as f64 / 1e9,
            uplink: live(Direction::Uplink),
            downlink: live(Direction::Downlink),
        }
    }

    fn report(&self, before: &[Account; 2], span: u64) -> TrafficReport {
        let seconds = span.max(1) as f64 / 1e9;
        let direction = |direction: Direction| {
            let (sent_packets, sent_bytes, _) = self.sender_state(direction);
            let received = *self.verifier.account(direction);
            let before = &before[direction as usize];
            DirectionReport {
                sent_packets,
                sent_bytes,
                received,
                lost: sent_packets.saturating_sub(received.unique),
                packets_per_second: (received.packets - before.packets) as f64 / seconds,
                bits_per_second: (received.bytes - before.bytes) as f64 * 8.0 / seconds,
                latency: self.verifier.latencies(direction).summary(),
            }
        };
        TrafficReport {
            seconds,
            sessions: self.flows.sessions(),
            profile: self.config.profile.to_string(),
            seed: self.config.seed,
            uplink: direction(Direction::Uplink),
            downlink: direction(Direction::Downlink),
            gtpu: *self.gnbs.counts(),
            faults: self.verifier.faults().to_vec(),
        }
    }
}

impl<F: Frame> Sender<F> {
    fn new(direction: Direction, enabled: bool, config: &WorldConfig, sessions: u32) -> Self {
        let seed = config.seed ^ direction as u64;
        Self {
            direction,
            enabled,
            picker: SessionPicker::new(config.choice, sessions, seed),
            sizes: config.profile.sampler(),
            rng: SplitMix64::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            waiting: Vec::with_capacity(BURST),
            packets: 0,
            bytes: 0,
            written_off: 0,
            last_arrival: Nanos(0),
        }
    }

    /// Makes a burst, as far as window and rate allow, and sends what the link takes.
    fn send(
        &mut self,
        link: &mut impl Link<Frame = F>,
        flows: &mut Flows,
        config: &WorldConfig,
        in_flight: u64,
        due: Option<u64>,
        now: Nanos,
    ) -> usize {
        if self.enabled && self.waiting.is_empty() {
            let room = u64::from(config.window).saturating_sub(in_flight);
            let burst = room.min(due.unwrap_or(u64::MAX)).min(BURST as u64);
            if in_flight == 0 {
                // Patience begins when something is on its way.
                self.last_arrival = now;
            }
            for _ in 0..burst {
                let Some(frame) = link.alloc() else { break };
                self.make(frame, flows, now);
            }
        }
        self.flush(link)
    }

    fn make(&mut self, mut frame: F, flows: &mut Flows, now: Nanos) {
        let session = self.picker.next_session();
        let family = match (flows.carries(session, Family::V4), flows.carries(session, Family::V6)) {
            (true, true) if self.rng.below(2) == 1 => Family::V6,
            (true, _) => Family::V4,
            _ => Family::V6,
        };
        let stream = StreamId::new(session, self.direction, family);
        let ip_len = self.sizes.next(family, &mut self.rng);
        let len = flows.frame_len(stream, ip_len);
        if !frame.append(len) {
            return;
        }
        let stamp = Stamp { stream, sequence: flows.made(stream), sent: now };
        if flows.write(stamp, ip_len, frame.bytes_mut()) {
            flows.next_sequence(stream);
            self.packets += 1;
            self.bytes += u64::from(ip_len);
            self.waiting.push(frame);
        }
    }

    fn flush(&mut self, link: &mut impl Link<Frame = F>) -> usize {
        if self.waiting.is_empty() { 0 } else { link.send(&mut self.waiting) }
    }
}

/// Queues a frame with these bytes.
fn push_bytes<L: Link>(link: &mut L, queue: &mut Vec<L::Frame>, bytes: &[u8]) {
    if let Some(mut frame) = link.alloc()
        && frame.append(bytes.len())
    {
        frame.bytes_mut().copy_from_slice(bytes);
        queue.push(frame);
    }
}

/// Receives a burst and reads the clock once for all of it: what concerns the site it hears and answers, the rest is
/// judged.
fn hear_all<L: Link, S: Site>(
    link: &mut L,
    site: &mut S,
    replies: &mut Vec<L::Frame>,
    arrived: &mut Vec<L::Frame>,
    clock: &mut impl FnMut() -> Nanos,
    mut judge: impl FnMut(&[u8], Nanos),
) -> usize {
    let n = link.receive(arrived, BURST);
    if n == 0 {
        return 0;
    }
    let now = clock();
    for frame in arrived.drain(..) {
        let reaction = if S::concerns(frame.bytes()) { site.hear(frame.bytes()) } else { Reaction::NotMine };
        match reaction {
            Reaction::Heard => {}
            Reaction::Reply(reply) => push_bytes(link, replies, &reply),
            Reaction::NotMine => judge(frame.bytes(), now),
        }
    }
    n
}

/// Asks from each source for its target, again every 200 ms, until all targets are known.
fn resolve<L: Link>(
    link: &mut L,
    site: &mut impl Site,
    ask: &[(IpAddr, IpAddr)],
    clock: &mut impl FnMut() -> Nanos,
) -> Result<MacAddr, WorldError> {
    const AGAIN: u64 = 200_000_000;
    const GIVE_UP: u64 = 3 * Nanos::SECOND;
    let &(_, first) = ask.first().ok_or(WorldError::NothingToAsk)?;
    let start = clock();
    let mut next = start;
    let mut queue = Vec::new();
    let mut arrived = Vec::new();
    loop {
        let now = clock();
        if now >= next {
            for frame in ask.iter().filter_map(|&(from, to)| site.station().solicit(from, to)) {
                push_bytes(link, &mut queue, &frame);
            }
            next = now.plus(AGAIN);
        }
        link.send(&mut queue);
        hear_all(link, site, &mut queue, &mut arrived, clock, |_, _| ());
        let unknown = ask.iter().find(|&&(_, to)| site.station().neighbour(to).is_none());
        match (unknown, site.station().neighbour(first)) {
            // All introductions must have left before traffic begins.
            (None, Some(mac)) if queue.is_empty() => return Ok(mac),
            (unknown, _) if now.since(start) > GIVE_UP => {
                return Err(WorldError::Unresolved(unknown.map_or(first, |&(_, to)| to)));
            }
            _ => std::thread::yield_now(),
        }
    }
}
