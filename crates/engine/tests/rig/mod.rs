//! In-memory NICs, a network, sessions and packets for the engine's tests.

use datapath::Datapath;
use datapath::command::{Command, Event, Token, Transition};
use datapath::{Interface, Rib, Roles};
use engine::Engine;
use io::mem::{MemFrame, MemNic, MemPool, MemRx, MemTx};
use io::{Port, PortInfo, PortStats, Redirection, RxQueue};
use packet::gtpu::MessageType;
use packet::ipv4::Ipv4Header;
use packet::{Dscp, IpProtocol, MacAddr, PacketBuilder, Teid};
use pfcp::{FarId, PdrId};
use session::rules::{Action, Destination, Far, Forward, OuterHeader, Pdr, Rules, Source, Tunnel};
use session::{SessionRef, TeidRef};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
pub const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
pub const GNB_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 2]);
pub const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 2]);
pub const UPF: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
pub const SESSIONS: u32 = 64;

pub fn network() -> Rib {
    let mut rib = Rib::new();
    let interface = |name: &str, port, mac, address: &str, roles| Interface {
        name: name.into(),
        port,
        vlan: None,
        mac,
        mtu: 9_000,
        roles,
        addresses: vec![address.parse().unwrap()],
        network_instances: Vec::new(),
    };
    let (n3, n6) = (Roles { n3: true, ..Roles::default() }, Roles { n6: true, ..Roles::default() });
    rib.add_interface(interface("n3", 0, N3_MAC, "192.0.2.1/24", n3)).unwrap();
    rib.add_interface(interface("n6", 1, N6_MAC, "203.0.113.1/24", n6)).unwrap();
    rib.add_route("0.0.0.0/0".parse().unwrap(), 1, Some("203.0.113.254".parse().unwrap())).unwrap();
    rib.fix(0, "192.0.2.2".parse().unwrap(), GNB_MAC);
    rib.fix(1, "203.0.113.254".parse().unwrap(), ROUTER_MAC);
    rib
}

/// A NIC with something of the test's own before its receive queues.
pub struct Fronted<R> {
    nic: MemNic,
    front: Box<dyn FnMut(MemRx) -> R + Send>,
}

impl<R> Fronted<R> {
    pub fn new(nic: MemNic, front: impl FnMut(MemRx) -> R + Send + 'static) -> Self {
        Self { nic, front: Box::new(front) }
    }
}

impl<R: RxQueue<Frame = MemFrame>> Port for Fronted<R> {
    type Frame = MemFrame;
    type Rx = R;
    type Tx = MemTx;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        self.nic.info()
    }
    fn take_queue(&mut self, queue: u16) -> Option<(R, MemTx)> {
        self.nic.take_queue(queue).map(|(rx, tx)| ((self.front)(rx), tx))
    }
    fn pool(&mut self, queue: u16) -> MemPool {
        self.nic.pool(queue)
    }
    fn link_up(&self) -> bool {
        self.nic.link_up()
    }
    fn stats(&self) -> PortStats {
        self.nic.stats()
    }
    fn redirection(&mut self) -> Option<Box<dyn Redirection>> {
        self.nic.redirection()
    }
}

pub fn ue(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a2d_0001 + index)
}

pub fn tunnel(index: u32) -> Tunnel {
    let shard = Datapath::<MemFrame>::shard_of(IpAddr::V4(ue(index)));
    let place = TeidRef { shard, slot: index as u16 };
    Tunnel { teid: place.teid(1), place }
}

pub fn rules(index: u32) -> Rules {
    let tunnel = tunnel(index);
    let place = SessionRef { shard: tunnel.place.shard, slot: index };
    let pdr = |id: u16, source, tunnel| Pdr { precedence: 1, ..Pdr::all(PdrId(id), source, tunnel, id - 1) };
    let far = |id, destination, outer_header| Far {
        id: FarId(id),
        action: Action::Forward(Forward::to(destination, outer_header)),
    };
    let gnb = OuterHeader { teid: Teid(0x8000_0000 + index), peer: IpAddr::V4(GNB) };
    Rules::of(
        place,
        Some(ue(index)),
        [pdr(1, Source::Access, Some(tunnel)), pdr(2, Source::Core, None)],
        [far(1, Destination::Core, None), far(2, Destination::Access, Some(gnb))],
    )
}

/// Installs the first sessions.
pub fn install(engine: &mut Engine, sessions: u32) {
    install_all(engine, (0..sessions).map(rules));
}

/// Installs sessions with these rules.
pub fn install_all(engine: &mut Engine, sessions: impl IntoIterator<Item = Rules>) {
    let (mut asked, mut applied) = (0, 0);
    for rules in sessions {
        let (token, transition, query) = (Token(asked), Transition::default(), Box::default());
        engine.post(rules.place.shard, Command::Install { token, rules: Arc::new(rules), transition, query });
        asked += 1;
    }
    wait("sessions", || {
        engine.flush();
        engine.drain(|_, event| applied += u64::from(matches!(event, Event::Applied { .. })));
        applied == asked
    });
}

fn from_gnb() -> PacketBuilder {
    PacketBuilder::new().ethernet(N3_MAC, GNB_MAC).ipv4(GNB, UPF)
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, dscp: Dscp) -> Ipv4Header {
    let (tos, protocol) = (dscp.to_tos(), IpProtocol::UDP);
    Ipv4Header { source, destination, protocol, tos, ..Ipv4Header::default() }
}

pub fn packet(teid: Teid, source: Ipv4Addr, number: u32) -> MemFrame {
    uplink(teid, source, Dscp::CS0, number)
}

/// A UE's packet with a code point, as the gNB sends it; the payload begins with a number.
pub fn uplink(teid: Teid, source: Ipv4Addr, dscp: Dscp, number: u32) -> MemFrame {
    let outer = from_gnb().udp_without_checksum(2152, 2152).gtpu(teid);
    let inner = outer.ipv4_header(ipv4(source, SERVER, dscp)).udp(1_000, 2_000);
    MemFrame::copy_of(&inner.build(&number.to_be_bytes())).unwrap()
}

/// A UE's packet to this port.
pub fn to_port(teid: Teid, source: Ipv4Addr, port: u16) -> MemFrame {
    let outer = from_gnb().udp_without_checksum(2152, 2152).gtpu(teid);
    MemFrame::copy_of(&outer.ipv4(source, SERVER).udp(1_000, port).build(&[0; 4])).unwrap()
}

/// A packet of the data network to a UE.
pub fn downlink(destination: Ipv4Addr, number: u32) -> MemFrame {
    let builder = PacketBuilder::new().ethernet(N6_MAC, ROUTER_MAC);
    let builder = builder.ipv4_header(ipv4(SERVER, destination, Dscp::CS0)).udp(2_000, 1_000);
    MemFrame::copy_of(&builder.build(&number.to_be_bytes())).unwrap()
}

/// The gNB asks whether the path is alive.
pub fn echo_request(sequence: u16) -> MemFrame {
    let message = from_gnb().udp(2152, 2152).gtpu_message(MessageType::ECHO_REQUEST, Teid(0));
    MemFrame::copy_of(&message.gtpu_sequence(sequence).build(&[])).unwrap()
}

/// Waits until `done` says so; a minute is more than a loaded machine needs.
pub fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !done() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::yield_now();
    }
}
