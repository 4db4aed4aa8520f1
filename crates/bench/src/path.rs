//! A datapath on this thread with sessions, and packets for them from memory: what scenarios of the packet path share.

use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::scene::Scene;
use datapath::rib::RibError;
use datapath::{Burst, Command, Config, Datapath, Event, FlowMemory, Outbox, Rib, Token, Transition};
use engine::Supplier;
use io::mem::{FrameSize, MemFrame, MemPool};
use io::replay::{Patch, ReplayError, ReplayRx, SinkTx, Stream};
use io::{BURST, RxQueue, TxQueue};
use packet::{MacAddr, Teid};
use session::rules::{Rules, Tunnel};
use session::{SHARDS, SessionRef, ShardId, TeidKey, TeidRef};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;

/// The UPF's N3 port.
pub const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
/// The UPF's N6 port.
pub const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
/// The gNB's port.
pub const GNB_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 2]);
/// The router's port.
pub const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 2]);
/// The UPF's address on N3.
pub const UPF_N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The gNB.
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The host in the data network.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The first UE; a million and more follow.
pub const FIRST_UE: u32 = 0x0a00_0001;
/// Bytes of UDP payload.
pub const PAYLOAD: usize = 64;
/// The MTU of both interfaces: jumbo frames.
pub const MTU: u16 = 9_000;
/// Octets of a packet that are written anew each time where packets are long: all headers, and what follows in their lines.
pub const HEADERS: usize = 128;
/// After so many packets or sessions it is said how far work has come.
const TOLD_EVERY: u64 = 1 << 14;
/// Packets between two readings of the clock: short, so that one preemption spoils few readings.
const SLICE: usize = 4 * BURST;

/// The server's port.
pub const SERVER_PORT: u16 = 443;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The network made here is wrong: a defect.
    #[error("network: {0}")]
    Rib(#[from] RibError),
    /// The system has no thread for what is measured.
    #[error("can't start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The packets made here are wrong: a defect.
    #[error("replay: {0}")]
    Replay(#[from] ReplayError),
    /// A shard refused a session: a defect.
    #[error("session {0:?} was not installed")]
    NotInstalled(pfcp::Seid),
    /// Flows were forgotten, or not entered, so that the figures would not be those of known flows.
    #[error("{found} flows are known instead of {expected}")]
    FlowsLost {
        /// Flows that there should be.
        expected: u64,
        /// Flows that there are.
        found: u64,
    },
    /// Shorter than its headers and the payload's time stamp: a defect.
    #[error("no packet can be made of {0} octets")]
    Short(usize),
    /// Packets were dropped, so that the figures would not be those of forwarding.
    #[error("{packets} packets were dropped as {reason}")]
    Dropped {
        /// How many.
        packets: u64,
        /// Why.
        reason: &'static str,
    },
}

/// A session that packets are made for.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber {
    /// Its tunnel's TEID.
    pub teid: Teid,
    /// Its address.
    pub ue: Ipv4Addr,
}

/// TEIDs are sealed as in service: opening them is part of what a packet costs.
pub fn teids() -> TeidKey {
    TeidKey::new([0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x2545_f491_4f6c_dd1d])
}

/// Places, tunnels and addresses for sessions, one after the other.
#[derive(Debug)]
pub struct Numbering {
    /// Slots taken, by shard.
    taken: [u32; SHARDS],
    /// Sessions so far.
    sessions: u32,
}

impl Default for Numbering {
    fn default() -> Self {
        Self { taken: [0; SHARDS], sessions: 0 }
    }
}

impl Numbering {
    /// For the next session, whose UE has the address that `address` says of its number.
    pub fn assign_to(&mut self, address: impl Fn(Ipv4Addr) -> IpAddr) -> (SessionRef, Tunnel, Ipv4Addr) {
        let ue = Ipv4Addr::from(FIRST_UE + self.sessions);
        self.sessions += 1;
        let (place, tunnel) = self.assign(address(ue));
        (place, tunnel, ue)
    }

    /// For a session whose UE has this address, which is none of those that have numbers.
    pub fn assign(&mut self, address: IpAddr) -> (SessionRef, Tunnel) {
        let shard = Datapath::<MemFrame>::shard_of(address);
        let taken = self.taken.get_mut(shard.index());
        let slot = taken.map_or(0, |next| std::mem::replace(next, *next + 1));
        let place = TeidRef { shard, slot: slot as u16 };
        (SessionRef { shard, slot }, Tunnel { teid: teids().seal(place.teid(1)), place })
    }
}

/// Cycles per packet of a run.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The middle one of short slices: what a packet costs if nothing interrupts.
    pub median: f64,
    /// All cycles by all packets, whatever the machine and the timers did meanwhile.
    pub mean: f64,
}

/// What several runs cost, as figures of a report.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// Medians of slices.
    pub medians: Vec<f64>,
    /// Means.
    pub means: Vec<f64>,
}

impl Costs {
    /// One more run.
    pub fn push(&mut self, cost: Cost) {
        self.medians.push(cost.median);
        self.means.push(cost.mean);
    }

    /// `cycles_per_packet`, and its mean.
    pub fn report(&self, report: &mut Report, params: &[(&'static str, Param)]) {
        report.results.push(Measured::of("cycles_per_packet", "cycles", params, &self.medians));
        report.results.push(Measured::of("mean_cycles_per_packet", "cycles", params, &self.means));
    }
}

/// A datapath with all shards, two ports, and sessions.
pub struct Path {
    /// What is measured.
    pub datapath: Datapath<MemFrame>,
    out: Outbox<MemFrame>,
    pool: MemPool,
    sink: SinkTx,
    clock: Tsc,
    numbering: Numbering,
    scene: Scene,
    /// When timers ran.
    ticked: u64,
    /// Who makes memory ready for flow tables, if the datapath is to have any.
    supplier: Option<Supplier<FlowMemory>>,
}

impl Path {
    /// In the simple scene, without sessions yet; `tune` changes what the datapath is told.
    pub fn new(clock: Tsc, tune: impl FnOnce(&mut Config)) -> Result<Self, PathError> {
        Self::within(Scene::SIMPLE, clock, tune)
    }

    /// Likewise in another scene.
    pub fn within(scene: Scene, clock: Tsc, tune: impl FnOnce(&mut Config)) -> Result<Self, PathError> {
        let mut config = Config { teids: teids(), ..Config::new(scene.network()?.fib()) };
        tune(&mut config);
        let start = || Supplier::start("memory".into(), None, FlowMemory::make);
        let supplier = (config.flow_supply > 0).then(start).transpose()?;
        let mut datapath = Datapath::new(config);
        for id in ShardId::all() {
            let shard = datapath.new_shard(id);
            datapath.adopt(shard);
        }
        Ok(Self {
            datapath,
            out: Outbox::new(2),
            pool: MemPool::new(1 << 12, FrameSize::for_mtu(MTU)),
            sink: SinkTx::new(),
            clock,
            numbering: Numbering::default(),
            scene,
            ticked: 0,
            supplier,
        })
    }

    /// Where it stands.
    pub const fn scene(&self) -> Scene {
        self.scene
    }

    /// Installs the next session, whose rules `make` says, as far as the scene leaves them.
    pub fn add_session(
        &mut self,
        make: impl FnOnce(SessionRef, Tunnel, Ipv4Addr) -> Rules,
    ) -> Result<Subscriber, PathError> {
        let scene = self.scene;
        let (place, tunnel, ue) = self.numbering.assign_to(|ue| scene.ue(ue));
        self.install(scene.adapt(make(place, tunnel, ue), ue))?;
        Ok(Subscriber { teid: tunnel.teid, ue })
    }

    /// A place and a tunnel for a session that is installed as it is, whose UE has this address.
    pub fn assign(&mut self, address: IpAddr) -> (SessionRef, Tunnel) {
        self.numbering.assign(address)
    }

    /// So many of them.
    pub fn add_sessions(
        &mut self,
        sessions: usize,
        make: impl Fn(SessionRef, Tunnel, Ipv4Addr) -> Rules,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Subscriber>, PathError> {
        let mut subscribers = Vec::with_capacity(sessions);
        for number in 0..sessions as u64 {
            if number > 0 && number.is_multiple_of(TOLD_EVERY) {
                progress.part(number, sessions as u64);
            }
            subscribers.push(self.add_session(&make)?);
        }
        Ok(subscribers)
    }

    /// Installs a session's rules.
    pub fn install(&mut self, rules: Rules) -> Result<(), PathError> {
        let seid = rules.seid;
        let install = Command::Install {
            token: Token(0),
            rules: Arc::new(rules),
            transition: Transition::default(),
            query: Box::default(),
        };
        self.datapath.apply(self.clock.now(), install, &mut self.out, &mut self.pool);
        match self.out.events.pop() {
            Some(Event::Applied { .. }) => Ok(()),
            _ => Err(PathError::NotInstalled(seid)),
        }
    }

    /// Carries out an order whose answer is of no interest.
    pub fn apply(&mut self, command: Command) {
        self.datapath.apply(self.clock.now(), command, &mut self.out, &mut self.pool);
        self.out.events.clear();
    }

    /// One burst of so many packets at most through the datapath; says of how many.
    fn burst(&mut self, rx: &mut ReplayRx, port: u16, most: usize, burst: &mut Burst<MemFrame>) -> usize {
        let received = rx.rx_burst(&mut burst.frames, most);
        self.process(port, rx.quarters(), burst);
        received
    }

    /// What was received at a port through the datapath, and out. So many quarters of the port's queue are full.
    pub fn process(&mut self, port: u16, quarters: Option<u8>, burst: &mut Burst<MemFrame>) {
        self.process_at(self.clock.now(), port, quarters, burst);
    }

    /// Likewise, at a time of the caller's own.
    pub fn process_at(&mut self, now: Nanos, port: u16, quarters: Option<u8>, burst: &mut Burst<MemFrame>) {
        self.datapath.queue_fills(port, quarters);
        self.datapath.process(now, port, burst, &mut self.out, &mut self.pool);
        self.send();
    }

    /// What a worker does every millisecond.
    pub fn tick(&mut self) {
        self.tick_at(self.clock.now());
    }

    /// Likewise, at a time of the caller's own.
    pub fn tick_at(&mut self, now: Nanos) {
        self.datapath.tick(now, &mut self.out, &mut self.pool);
        self.send();
    }

    fn send(&mut self) {
        for queue in &mut self.out.transmit {
            self.sink.tx_burst(queue);
        }
        self.out.events.clear();
    }

    /// What receiving, processing and sending cost, timers included.
    pub fn forward(&mut self, mix: &mut Mix, packets: usize) -> Result<Cost, PathError> {
        let cost = self.forward_lossy(mix, packets);
        self.no_drops()?;
        Ok(cost)
    }

    /// Likewise, whatever becomes of the packets.
    pub fn forward_lossy(&mut self, mix: &mut Mix, packets: usize) -> Cost {
        let mut burst = Burst::new();
        let slices = (packets / SLICE).max(1);
        let mut taken = Vec::with_capacity(slices);
        let start = self.clock.ticks();
        for _ in 0..slices {
            let begin = self.clock.ticks();
            for _ in 0..SLICE / BURST {
                if let Some((rx, port)) = mix.turn() {
                    self.burst(rx, *port, BURST, &mut burst);
                }
            }
            let end = self.clock.ticks();
            taken.push((end - begin) as f64 / SLICE as f64);
            // As a worker does each millisecond.
            if end - self.ticked > self.clock.hz() / 1_000 {
                self.ticked = end;
                self.tick();
            }
        }
        let all = self.clock.ticks() - start;
        Cost { median: median(taken), mean: all as f64 / (slices * SLICE) as f64 }
    }

    /// So many packets of a stream, received as the scene has it: the ticks that they took, and those that the longest burst took. `told` is
    /// told now and then how many have gone through; the time that it takes doesn't count, and neither does what the port did before the
    /// first packet.
    pub fn once(
        &mut self,
        stream: &Stream,
        port: u16,
        packets: u64,
        told: &mut dyn FnMut(u64),
    ) -> Result<(u64, u64), PathError> {
        let mut rx = self.scene.receive(stream);
        rx.fill();
        let mut burst = Burst::new();
        let (mut done, mut next) = (0, TOLD_EVERY);
        let (mut last, mut taken, mut worst) = (self.clock.ticks(), 0, 0);
        for number in 0_u64.. {
            let most = packets.saturating_sub(done).min(BURST as u64) as usize;
            let came = self.burst(&mut rx, port, most, &mut burst) as u64;
            if came == 0 {
                break;
            }
            // As often as a worker's ticks come.
            if number.is_multiple_of(16) {
                self.supply();
            }
            let now = self.clock.ticks();
            taken += now - last;
            worst = worst.max(now - last);
            last = now;
            done += came;
            if done >= next {
                told(done);
                next = done + TOLD_EVERY;
                last = self.clock.ticks();
            }
        }
        self.no_drops()?;
        Ok((taken, worst))
    }

    /// What a worker does with each tick if it has somebody who makes memory ready: takes some, and says how much more it wants.
    pub fn supply(&mut self) {
        if let Some(supplier) = &mut self.supplier {
            supplier.serve(&mut self.datapath, Datapath::stock, Datapath::wish);
        }
    }

    /// An error if any packet was dropped so far.
    pub fn no_drops(&self) -> Result<(), PathError> {
        match self.datapath.counters().drops().next() {
            Some((reason, packets)) => Err(PathError::Dropped { packets, reason: reason.label() }),
            None => Ok(()),
        }
    }

    /// Cycles per packet of receiving and sending alone.
    pub fn port_alone(&mut self, mix: &mut Mix, packets: usize) -> f64 {
        port_cost(mix, &mut self.sink, &self.clock, packets)
    }
}

/// Bursts from several ports in a fixed order, over and over.
pub struct Mix {
    sources: Vec<(ReplayRx, u16)>,
    order: Vec<usize>,
    at: usize,
}

impl Mix {
    /// One port.
    pub fn of(rx: ReplayRx, port: u16) -> Self {
        Self { sources: vec![(rx, port)], order: vec![0], at: 0 }
    }

    /// Both: of four bursts so many from the radio side (at most four).
    pub fn both(uplink: ReplayRx, downlink: ReplayRx, quarters: usize) -> Self {
        // Spread, so that a quarter's burst stands among those of the other side.
        let order = match quarters {
            0 => vec![1],
            1 => vec![1, 0, 1, 1],
            2 => vec![0, 1],
            3 => vec![0, 1, 0, 0],
            _ => vec![0],
        };
        Self { sources: vec![(uplink, 0), (downlink, 1)], order, at: 0 }
    }

    /// Whose turn it is.
    fn turn(&mut self) -> Option<&mut (ReplayRx, u16)> {
        let source = *self.order.get(self.at)?;
        self.at = if self.at + 1 == self.order.len() { 0 } else { self.at + 1 };
        self.sources.get_mut(source)
    }
}

impl RxQueue for Mix {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        self.turn().map_or(0, |(rx, _)| rx.rx_burst(into, max))
    }
}

/// Packets of these subscribers and ports in turn, over and over.
pub fn stream(uplink: bool, packets: impl Iterator<Item = (Subscriber, u16)>) -> Result<Stream, ReplayError> {
    let (template, offsets, patches) = patches(uplink, PAYLOAD, packets);
    Stream::new(&template, offsets, patches)
}

/// Likewise, with so many octets of UDP payload.
pub fn stream_of_payload(
    uplink: bool,
    payload: usize,
    packets: impl Iterator<Item = (Subscriber, u16)>,
) -> Result<Stream, ReplayError> {
    let (template, offsets, patches) = patches(uplink, payload, packets);
    Ok(Stream::new(&template, offsets, patches)?.writing_first(HEADERS))
}

/// The first of these packets, and what sets each apart from it: the words at some offsets.
pub fn patches(
    uplink: bool,
    payload: usize,
    packets: impl Iterator<Item = (Subscriber, u16)>,
) -> (Vec<u8>, &'static [usize], Vec<Patch>) {
    Scene::SIMPLE.patches(uplink, payload, packets)
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

/// The middle figure.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Fisher-Yates with a fixed linear congruential generator (Knuth's MMIX): the same order in every run.
pub fn shuffle<T>(list: &mut [T]) {
    let mut state = 12_345_u64;
    for index in (1..list.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(index, (state >> 33) as usize % (index + 1));
    }
}

/// The network of the simple scene.
pub fn network() -> Result<Rib, RibError> {
    Scene::SIMPLE.network()
}
