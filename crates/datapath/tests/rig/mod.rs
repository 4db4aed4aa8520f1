//! One worker between a gNB and a router, and an everyday session: what tests of the packet path share.
#![allow(clippy::unwrap_used)]

pub mod asked;

use datapath::command::{Command, Token, Transition};
use datapath::inspect::{Direction, Inspector, Payload, Verdict};
use datapath::{Burst, Config, Datapath, Outbox, Reason};
use datapath::{Interface, Rib, Roles};
use io::Frame;
use io::mem::{FrameSize, MemFrame, MemPool};
use packet::ipv4::Ipv4Header;
use packet::{Ipv4View, MacAddr, PacketBuilder, Teid};
use pfcp::{FarId, PdrId};
use session::applications::Lineage;
use session::rules::*;
use session::{SessionRef, ShardId, TeidRef};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::Arc;
use tables::Nanos;

pub const N3: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub const N6: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
pub const GNB: MacAddr = MacAddr([2, 9, 0, 0, 0, 7]);
pub const ROUTER: MacAddr = MacAddr([2, 9, 0, 0, 0, 9]);
pub const N3_IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const GNB_IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub const ROUTER_IP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 254);
pub const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);
pub const UE2: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);
pub const HOST: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);

/// N3 on port 0, N6 on port 1, and a router there for all that is not near. Nobody's MAC address is known.
pub fn network(n6_vlan: Option<u16>) -> Rib {
    let mut rib = Rib::new();
    let interface = |port, vlan, mac, addresses: [&str; 2], roles| Interface {
        name: format!("if{port}"),
        port,
        vlan,
        mac,
        mtu: 1500,
        roles,
        addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        network_instances: Vec::new(),
    };
    let n3 = Roles { n3: true, ..Roles::default() };
    let n6 = Roles { n6: true, ..Roles::default() };
    rib.add_interface(interface(0, None, N3, ["192.0.2.1/24", "2001:db8:3::1/64"], n3)).unwrap();
    rib.add_interface(interface(1, n6_vlan, N6, ["203.0.113.1/24", "2001:db8:6::1/64"], n6)).unwrap();
    rib.add_route("0.0.0.0/0".parse().unwrap(), 1, Some(ROUTER_IP.into())).unwrap();
    rib.add_ue_pool("10.45.0.0/16".parse().unwrap());
    rib
}

/// Makes gNB and router known.
pub fn learn(rib: &mut Rib) {
    rib.fix(0, GNB_IP.into(), GNB);
    rib.fix(1, ROUTER_IP.into(), ROUTER);
}

/// A datapath with these shards.
pub fn datapath_of(config: Config, shards: impl Fn(ShardId) -> bool) -> Datapath<MemFrame> {
    let mut datapath = Datapath::new(config);
    for id in ShardId::all().filter(|id| shards(*id)) {
        let shard = datapath.new_shard(id);
        datapath.adopt(shard);
    }
    datapath
}

pub struct Worker {
    pub datapath: Datapath<MemFrame>,
    pub out: Outbox<MemFrame>,
    pub pool: MemPool,
    pub now: Nanos,
}

impl Worker {
    /// After every step no frame is lost.
    pub fn of(config: Config, ports: usize, shards: impl Fn(ShardId) -> bool) -> Self {
        let pool = MemPool::new(1000, FrameSize::Jumbo);
        Self {
            datapath: datapath_of(config, shards),
            out: Outbox::new(ports),
            pool,
            now: Nanos(Nanos::SECOND),
        }
    }

    pub fn process(&mut self, port: u16, frames: &[Vec<u8>]) {
        let mut burst = Burst::of(frames.iter().map(|f| MemFrame::copy_of(f).unwrap()).collect());
        self.datapath.process(self.now, port, &mut burst, &mut self.out, &mut self.pool);
        assert_eq!(self.datapath.counters().balance(), 0);
    }

    pub fn apply(&mut self, command: Command) {
        self.datapath.apply(self.now, command, &mut self.out, &mut self.pool);
        assert_eq!(self.datapath.counters().balance(), 0);
    }

    pub fn install(&mut self, rules: &Arc<Rules>, transition: Transition) {
        let command =
            Command::Install { token: Token(1), rules: Arc::clone(rules), transition, query: Box::default() };
        self.apply(command);
    }

    pub fn sent(&mut self, port: usize) -> Vec<Vec<u8>> {
        self.out.transmit[port].drain(..).map(|frame| frame.bytes().to_vec()).collect()
    }

    pub fn dropped(&self, reason: Reason) -> u64 {
        self.datapath.counters().dropped(reason)
    }
}

/// Says after three packets of a conversation what it is: the third octet of the payload, modulo four; 3 stands for nothing that is known. After
/// two it has a first guess, and whoever has no third octet is asked again. The next two bits say that it is a part of that: the application
/// that is ten more, or twenty more, or both in this order.
#[derive(Debug)]
pub struct ThirdOctet;

impl Inspector for ThirdOctet {
    type State = u32;
    type Room = ();

    fn room(&self, _: u64) {}

    fn step(&self, (): &mut (), packets: &mut u32, payload: &Payload<'_>, _: Direction, _: Nanos) -> Verdict {
        *packets += 1;
        let guess = payload.bytes().get(2).map(|octet| (u16::from(octet % 4), octet & 4 > 0, octet & 8 > 0));
        let lineage = |(number, is_part, is_inner): (u16, bool, bool)| {
            let parts = [is_inner.then_some(number + 20), is_part.then_some(number + 10), Some(number)];
            Lineage::of(parts.into_iter().flatten().map(Application))
        };
        match guess {
            Some((3, ..)) if *packets >= 3 => Verdict::None,
            Some(guess) if *packets >= 3 => Verdict::Is(lineage(guess)),
            Some(guess) if *packets == 2 => Verdict::SoFar(lineage(guess)),
            _ => Verdict::SoFar(Lineage::NONE),
        }
    }
}

/// Where a UE's session is.
pub fn place(ue: impl Into<IpAddr>) -> SessionRef {
    SessionRef { shard: Datapath::<MemFrame>::shard_of(ue.into()), slot: 0 }
}

/// The tunnel of the session in a place.
pub fn tunnel_at(place: SessionRef) -> Tunnel {
    let at = TeidRef { shard: place.shard, slot: 3 };
    Tunnel { teid: at.teid(1), place: at }
}

pub fn teid(ue: Ipv4Addr) -> Teid {
    tunnel_at(place(ue)).teid
}

pub fn forward(destination: Destination, outer: Option<(u32, IpAddr)>) -> Action {
    let outer_header = outer.map(|(teid, peer)| OuterHeader { teid: Teid(teid), peer });
    Action::Forward(Forward::to(destination, outer_header))
}

pub fn to_gnb(teid: u32) -> Action {
    forward(Destination::Access, Some((teid, GNB_IP.into())))
}

/// A rule for all packets of a direction.
pub fn pdr(id: u16, source: Source, tunnel: Option<Tunnel>, far: u16) -> Pdr {
    Pdr::all(PdrId(id), source, tunnel, far)
}

/// A session in a place: uplink to the data network by PDR 1 and FAR 1, downlink as FAR 2 says by PDR 2.
pub fn session_at(place: SessionRef, ue_ipv4: Option<Ipv4Addr>, downlink: Action) -> Rules {
    let pdrs = [pdr(1, Source::Access, Some(tunnel_at(place)), 0), pdr(2, Source::Core, None, 1)];
    let uplink = forward(Destination::Core, None);
    Rules::of(
        place,
        ue_ipv4,
        pdrs,
        [Far { id: FarId(1), action: uplink }, Far { id: FarId(2), action: downlink }],
    )
}

/// The piece of an IPv4 packet without options that has these octets of its payload.
pub fn cut(packet: &[u8], octets: Range<usize>) -> Vec<u8> {
    let whole = Ipv4View::parse(packet).unwrap();
    let header = Ipv4Header {
        source: whole.source(),
        destination: whole.destination(),
        protocol: whole.protocol(),
        tos: whole.tos(),
        ttl: whole.ttl(),
        identification: whole.identification(),
        more_fragments: octets.end < whole.payload().len(),
        fragment_offset: (octets.start / 8) as u16,
        ..Ipv4Header::default()
    };
    PacketBuilder::new().ipv4_header(header).build(&whole.payload()[octets])
}
