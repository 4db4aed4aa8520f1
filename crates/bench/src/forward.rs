//! `forward`: what the UPF's packet path costs on one core, by direction and number of sessions.
//!
//! Sessions have what an ordinary one has: a PDR, a FAR, a QER with a maximum bit rate and a URR with a volume threshold in each
//! direction. Packets carry 64 bytes of UDP payload; sessions come in shuffled order, so that neighbours in a burst are not
//! neighbours in memory. The port replays packets from memory on the same core, and its own cost is measured in the same run
//! by sending the packets back as they are.

use crate::report::{Measured, Report};
use datapath::net::{Interface, Net, NetError, Roles};
use datapath::{Command, Config, Datapath, Outbox, Token, Transition};
use io::mem::{FrameSize, MemFrame, MemPool};
use io::replay::{Patch, ReplayError, ReplayRx, SinkTx, Stream};
use io::{BURST, RxQueue, TxQueue};
use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid, pdu_session};
use pfcp::{FarId, PdrId, QerId, UrrId};
use session::rules::{
    Action, Destination, Far, Forward, OuterHeader, Pdr, Qer, Rules, Source, Tunnel, Urr, VolumeLimit,
};
use session::{SHARDS, SessionRef, ShardId, TeidRef};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tables::clock::Tsc;

const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
const GNB_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 2]);
const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 2]);
const UPF_N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ROUTER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 254);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The first UE; a million and more follow.
const FIRST_UE: u32 = 0x0a00_0001;
/// Bytes of UDP payload.
const PAYLOAD: usize = 64;
/// Packets between two readings of the clock: short, so that one preemption spoils few readings.
const SLICE: usize = 4 * BURST;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ForwardConfig {
    /// Numbers of sessions.
    pub sessions: Vec<usize>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run.
    pub packets: usize,
}

impl ForwardConfig {
    /// From one session to a million.
    pub fn full() -> Self {
        Self { sessions: vec![1, 1_000, 16_384, 65_536, 262_144, 1_000_000], runs: 7, packets: 4_000_000 }
    }

    /// The three sizes that have a target, briefly.
    pub fn quick() -> Self {
        Self { sessions: vec![1_000, 65_536, 1_000_000], runs: 3, packets: 1_000_000 }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The network made here is wrong: a defect.
    #[error("network: {0}")]
    Net(#[from] NetError),
    /// The packets made here are wrong: a defect.
    #[error("replay: {0}")]
    Replay(#[from] ReplayError),
    /// A shard refused a session: a defect.
    #[error("session {0} was not installed")]
    NotInstalled(usize),
    /// Packets were dropped, so that the figures would not be those of forwarding.
    #[error("{packets} packets were dropped as {reason}")]
    Dropped {
        /// How many.
        packets: u64,
        /// Why.
        reason: &'static str,
    },
}

/// Measures all; `tell` is told what is being measured.
pub fn run(config: &ForwardConfig, clock: Tsc, mut tell: impl FnMut(&str)) -> Result<Report, ForwardError> {
    let mut report = Report::new("forward", &clock);
    for &sessions in &config.sessions {
        tell(&format!("{sessions} sessions: establishing"));
        let mut bench = Bench::new(sessions, clock)?;
        for uplink in [true, false] {
            let direction = if uplink { "uplink" } else { "downlink" };
            tell(&format!("{sessions} sessions: {direction}"));
            let source = bench.source(uplink)?;
            let (mut whole, mut port, mut rate) = (Vec::new(), Vec::new(), Vec::new());
            // One run to warm up; port and whole in turn, so that both meet the same neighbours on the machine.
            for run in 0..=config.runs {
                let cycles =
                    bench.forward(ReplayRx::new(source.clone()), u16::from(!uplink), config.packets)?;
                let own = bench.port_alone(ReplayRx::new(source.clone()), config.packets);
                if run > 0 {
                    whole.push(cycles);
                    port.push(own);
                    rate.push(clock.hz() as f64 / cycles);
                }
            }
            let params = [
                ("direction", direction.into()),
                ("payload", (PAYLOAD as u64).into()),
                ("sessions", (sessions as u64).into()),
            ];
            report.results.push(Measured::of("cycles_per_packet", "cycles", &params, &whole));
            report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &port));
            report.results.push(Measured::of("packets_per_second", "1/s", &params, &rate));
        }
    }
    report.notes.push(
        "cycles are TSC ticks; cycles_per_packet includes the port's own cost, which port_cycles_per_packet states".into(),
    );
    Ok(report)
}

/// A datapath with sessions, and the packets for them.
struct Bench {
    datapath: Datapath<MemFrame>,
    out: Outbox<MemFrame>,
    pool: MemPool,
    sink: SinkTx,
    clock: Tsc,
    /// In the order in which packets come.
    sessions: Vec<(Teid, Ipv4Addr)>,
}

impl Bench {
    fn new(sessions: usize, clock: Tsc) -> Result<Self, ForwardError> {
        let mut datapath = Datapath::new(Config::new(network()?));
        for id in ShardId::all() {
            let shard = datapath.new_shard(id);
            datapath.adopt(shard);
        }
        let mut bench = Self {
            datapath,
            out: Outbox::new(2),
            pool: MemPool::new(1 << 12, FrameSize::Standard),
            sink: SinkTx::new(),
            clock,
            sessions: Vec::with_capacity(sessions),
        };
        let mut next = [0u32; SHARDS];
        for index in 0..sessions {
            let ue = Ipv4Addr::from(FIRST_UE + index as u32);
            let shard = Datapath::<MemFrame>::shard_of(ue.into());
            let slot = next.get_mut(shard.index()).map_or(0, |next| std::mem::replace(next, *next + 1));
            let place = TeidRef { shard, slot: slot as u16 };
            let tunnel = Tunnel { teid: place.teid(1), place };
            let install = Command::Install {
                token: Token(index as u64),
                rules: Arc::new(rules(SessionRef { shard, slot }, tunnel, ue)),
                transition: Transition::default(),
                query: Box::default(),
            };
            bench.datapath.apply(clock.now(), install, &mut bench.out, &mut bench.pool);
            if !matches!(bench.out.events.pop(), Some(datapath::Event::Applied { .. })) {
                return Err(ForwardError::NotInstalled(index));
            }
            bench.sessions.push((tunnel.teid, ue));
        }
        shuffle(&mut bench.sessions);
        Ok(bench)
    }

    fn source(&self, uplink: bool) -> Result<Stream, ReplayError> {
        let build = |&(teid, ue): &(Teid, Ipv4Addr)| {
            if uplink { uplink_packet(teid, ue) } else { downlink_packet(ue) }
        };
        // Uplink: TEID; inner TTL to checksum; inner source; UDP length and checksum. Downlink: the same of the only IP header.
        let offsets: &[usize] = if uplink { &[46, 66, 70, 82] } else { &[22, 30, 38] };
        let patch = |session| {
            let packet = build(session);
            let mut words = [[0; 4]; io::replay::WORDS];
            for (word, at) in words.iter_mut().zip(offsets) {
                *word = packet.get(*at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
            }
            Patch { words, hash: 0 }
        };
        let template = self.sessions.first().map(build).unwrap_or_default();
        Stream::new(&template, offsets, self.sessions.iter().map(patch).collect::<Vec<_>>())
    }

    /// Cycles per packet of receiving, processing and sending: the median over slices of the run.
    fn forward(&mut self, mut rx: ReplayRx, port: u16, packets: usize) -> Result<f64, ForwardError> {
        let mut burst = Vec::with_capacity(BURST);
        let slices = (packets / SLICE).max(1);
        let mut taken = Vec::with_capacity(slices);
        for _ in 0..slices {
            let begin = self.clock.ticks();
            for _ in 0..SLICE / BURST {
                rx.rx_burst(&mut burst, BURST);
                let now = self.clock.now();
                self.datapath.process(now, port, &mut burst, &mut self.out, &mut self.pool);
                for queue in &mut self.out.transmit {
                    self.sink.tx_burst(queue);
                }
                self.out.events.clear();
            }
            taken.push((self.clock.ticks() - begin) as f64 / SLICE as f64);
        }
        match self.datapath.counters().drops().next() {
            Some((reason, packets)) => Err(ForwardError::Dropped { packets, reason: reason.label() }),
            None => Ok(median(taken)),
        }
    }

    /// Cycles per packet of receiving and sending alone.
    fn port_alone(&mut self, mut rx: ReplayRx, packets: usize) -> f64 {
        port_cost(&mut rx, &mut self.sink, &self.clock, packets)
    }
}

/// Cycles per packet of a port that sends back what it receives: the median over slices of the run.
pub fn port_cost<R: RxQueue<Frame = F>, T: TxQueue<Frame = F>, F: io::Frame>(
    rx: &mut R,
    tx: &mut T,
    clock: &Tsc,
    packets: usize,
) -> f64 {
    let mut burst = Vec::with_capacity(BURST);
    let slices = (packets / SLICE).max(1);
    let mut taken = Vec::with_capacity(slices);
    for _ in 0..slices {
        let begin = clock.ticks();
        let mut moved = 0;
        for _ in 0..SLICE / BURST {
            moved += rx.rx_burst(&mut burst, BURST);
            tx.tx_burst(&mut burst);
            burst.clear();
        }
        if moved > 0 {
            taken.push((clock.ticks() - begin) as f64 / moved as f64);
        }
    }
    median(taken)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Fisher-Yates with a fixed linear congruential generator (Knuth's MMIX): the same order in every run.
fn shuffle<T>(list: &mut [T]) {
    let mut state = 12_345_u64;
    for index in (1..list.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(index, (state >> 33) as usize % (index + 1));
    }
}

fn network() -> Result<Arc<datapath::net::NetView>, NetError> {
    let interface = |name: &str, port, mac, own: Ipv4Addr, roles| Interface {
        name: name.into(),
        port,
        vlan: None,
        mac,
        mtu: 1_600,
        roles,
        addresses: vec![ipnet::Ipv4Net::new_assert(own, 24).into()],
        network_instances: Vec::new(),
    };
    let mut net = Net::new();
    let n3 = net.add_interface(interface("n3", 0, N3_MAC, UPF_N3, Roles { n3: true, ..Roles::default() }))?;
    let own = Ipv4Addr::new(203, 0, 113, 1);
    let n6 = net.add_interface(interface("n6", 1, N6_MAC, own, Roles { n6: true, ..Roles::default() }))?;
    net.add_route(ipnet::Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0).into(), n6, Some(ROUTER.into()))?;
    net.add_ue_pool(ipnet::Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8).into());
    net.learn(n3, GNB.into(), GNB_MAC);
    net.learn(n6, ROUTER.into(), ROUTER_MAC);
    Ok(net.view())
}

fn rules(place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    let pdr = |id, source, tunnel: Option<Tunnel>, index: u16| Pdr {
        id: PdrId(id),
        precedence: 255,
        source,
        tunnel,
        qfis: Box::default(),
        filters: Box::default(),
        outer_header_removal: tunnel.is_some(),
        far: index,
        qers: [0].into(),
        urrs: [index].into(),
    };
    let far = |id, destination, outer_header| Far {
        id: FarId(id),
        action: Action::Forward(Forward { destination, outer_header, transport_marking: None }),
    };
    let urr = |id| Urr {
        id: UrrId(id),
        before_enforcement: false,
        threshold: VolumeLimit { total: Some(100 << 20), ..VolumeLimit::default() },
        quota: VolumeLimit::default(),
        quota_generation: 0,
        blocked: false,
        start_of_traffic: false,
        inactive: false,
    };
    let gnb = OuterHeader { teid: Teid(0x8000_0000 | u32::from(ue)), peer: IpAddr::V4(GNB) };
    Rules {
        place,
        seid: place.seid(1),
        ue_ipv4: Some(ue),
        ue_ipv6: None,
        framed_ipv4: Box::default(),
        framed_ipv6: Box::default(),
        pdrs: [pdr(1, Source::Access, Some(tunnel), 0), pdr(2, Source::Core, None, 1)].into(),
        fars: [far(1, Destination::Core, None), far(2, Destination::Access, Some(gnb))].into(),
        qers: [Qer {
            id: QerId(1),
            uplink_open: true,
            downlink_open: true,
            // More than one core can send, so that every packet is metered and none is dropped.
            uplink_mbr: Some(100_000_000_000),
            downlink_mbr: Some(100_000_000_000),
            qfi: Some(Qfi::from_wire(9)),
            reflective: false,
            paging_policy: None,
        }]
        .into(),
        urrs: [urr(1), urr(2)].into(),
    }
}

fn uplink_packet(teid: Teid, ue: Ipv4Addr) -> Vec<u8> {
    let container = pdu_session::Uplink { qfi: Qfi::from_wire(9), ..pdu_session::Uplink::default() };
    PacketBuilder::new()
        .ethernet(N3_MAC, GNB_MAC)
        .ipv4(GNB, UPF_N3)
        .udp_without_checksum(packet::GTP_U_PORT, packet::GTP_U_PORT)
        .gtpu(teid)
        .pdu_session(&PduSession::Uplink(container))
        .ipv4(ue, SERVER)
        .udp(40_000, 443)
        .build(&[0; PAYLOAD])
}

fn downlink_packet(ue: Ipv4Addr) -> Vec<u8> {
    PacketBuilder::new().ethernet(N6_MAC, ROUTER_MAC).ipv4(SERVER, ue).udp(443, 40_000).build(&[0; PAYLOAD])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn forwards_every_packet_of_every_session() {
        let clock = Tsc::process();
        let mut bench = Bench::new(100, clock).unwrap();
        for uplink in [true, false] {
            let source = bench.source(uplink).unwrap();
            bench.forward(ReplayRx::new(source), u16::from(!uplink), 10 * SLICE).unwrap();
        }
        let counters = bench.datapath.counters();
        assert_eq!(counters.sent, 20 * SLICE as u64);
        assert_eq!(
            (counters.uplink.packets, counters.downlink.packets),
            (10 * SLICE as u64, 10 * SLICE as u64)
        );
    }
}
