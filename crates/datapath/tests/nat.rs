//! Packets through the translation on N6, one by one: both ways, hairpin, errors, fragments, static entries, NPTv6, workers.
#![allow(clippy::unwrap_used)]

mod changed;
mod chosen;

use crate::rig::*;
use datapath::Rib;
use datapath::command::{Command, Event, Token, Transition};
use datapath::nat::{Plan, Protocol, Settings, Static, Told};
use datapath::{Burst, Config, Datapath, Reason};
use io::mem::MemFrame;
use packet::checksum::{self, Sum};
use packet::icmpv4::Echo;
use packet::ipv4::Ipv4Header;
use packet::{
    ArpView, GtpuView, Icmpv4View, IpProtocol, Ipv4View, Ipv6View, PacketBuilder, Teid, UdpView, arp, icmpv6,
};
use session::ShardId;
use session::rules::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::Nanos;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);
const PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const FORWARDED: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 70);

fn plan() -> Arc<Plan> {
    let settings = Settings::new(
        "internet",
        vec!["10.45.0.0/16".parse().unwrap()],
        // In the subnet of N6: asked for by ARP.
        vec!["203.0.113.64/28".parse().unwrap()],
    );
    let statics = [
        Static { outside: PUBLIC, inside: SERVER, port: None },
        Static { outside: FORWARDED, inside: UE2, port: Some((Protocol::Tcp, 8080, 80)) },
    ];
    let prefixes = [("fd00:45::/48".parse().unwrap(), "2001:db8:1::/48".parse().unwrap())];
    Arc::new(Plan::new(&[Settings { block_size: 512, ..settings }], &statics, &prefixes).unwrap())
}

fn rib() -> Rib {
    let mut rib = network(None);
    learn(&mut rib);
    rib.add_route("::/0".parse().unwrap(), 1, Some("2001:db8:6::fe".parse().unwrap())).unwrap();
    rib.add_ue_pool("fd00:45::/48".parse().unwrap());
    rib.fix(1, "2001:db8:6::fe".parse().unwrap(), ROUTER);
    rib.translate(plan());
    rib
}

impl Worker {
    fn translating(shards: impl Fn(ShardId) -> bool) -> Self {
        Self::of(Config::new(rib().fib()), 2, shards)
    }

    /// With sessions for all three UEs.
    fn ready() -> Self {
        let mut worker = Self::translating(|_| true);
        for (ue, tunnel) in [(UE, 77), (UE2, 78), (SERVER, 79)] {
            worker.install(&rules(ue, tunnel), Transition::default());
        }
        worker.out.events.clear();
        worker
    }

    /// A UE sends; what leaves on N6 (without Ethernet), if something does.
    fn up(&mut self, ue: Ipv4Addr, packet: &[u8]) -> Option<Vec<u8>> {
        self.process(0, &[uplink(ue, packet)]);
        let mut sent = self.sent(1);
        assert!(sent.len() <= 1);
        sent.pop().map(|frame| {
            assert!(is_sound(&frame[14..]), "{frame:02x?}");
            frame[14..].to_vec()
        })
    }

    /// A packet comes from N6; what the UE gets with which TEID, if something.
    fn down(&mut self, packet: &[u8]) -> Option<(Teid, Vec<u8>)> {
        self.process(1, &[ethernet(packet)]);
        self.received()
    }

    fn received(&mut self) -> Option<(Teid, Vec<u8>)> {
        let mut sent = self.sent(0);
        assert!(sent.len() <= 1);
        let frame = sent.pop()?;
        let (teid, packet) = tunnelled(&frame);
        assert!(is_sound(&packet), "{packet:02x?}");
        Some((teid, packet))
    }

    fn told(&mut self) -> Vec<Told> {
        let told = self.out.events.drain(..).filter_map(|event| match event {
            Event::Nat(told) => Some(told),
            _ => None,
        });
        told.collect()
    }
}

fn rules(ue: Ipv4Addr, tunnel: u32) -> Arc<Rules> {
    Arc::new(session_at(place(ue), Some(ue), to_gnb(tunnel)))
}

fn uplink(ue: Ipv4Addr, packet: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152);
    builder.gtpu(teid(ue)).build(packet)
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&N6.0[..], &ROUTER.0, &kind, packet].concat()
}

fn tunnelled(frame: &[u8]) -> (Teid, Vec<u8>) {
    let ip = Ipv4View::parse(&frame[14..]).unwrap();
    let udp = UdpView::parse(ip.payload()).unwrap();
    let gtpu = GtpuView::parse(udp.payload()).unwrap();
    (gtpu.teid(), gtpu.payload().to_vec())
}

/// Computes every checksum of a whole packet anew, quoted ones included as far as they can be.
fn is_sound(packet: &[u8]) -> bool {
    if packet[0] >> 4 == 6 {
        let ip = Ipv6View::parse(packet).unwrap();
        let length = ip.payload().len() as u32;
        let pseudo = checksum::pseudo_v6(ip.source(), ip.destination(), ip.next_header(), length);
        return pseudo.bytes(ip.payload()).is_valid();
    }
    let ip = Ipv4View::parse(packet).unwrap();
    if ip.fragment().is_some() {
        return ip.checksum_ok();
    }
    let length = ip.payload().len() as u16;
    let pseudo = checksum::pseudo_v4(ip.source(), ip.destination(), ip.protocol(), length);
    ip.checksum_ok()
        && match ip.protocol() {
            IpProtocol::UDP if ip.payload()[6..8] == [0, 0] => true,
            IpProtocol::ICMPV4 => {
                let icmp = Icmpv4View::parse(ip.payload()).unwrap();
                let quoted = icmp.quoted().map(|quoted| Ipv4View::parse_quoted(quoted).unwrap());
                Sum::ZERO.bytes(ip.payload()).is_valid() && quoted.is_none_or(|quoted| quoted.checksum_ok())
            }
            IpProtocol::UDP | IpProtocol::TCP => pseudo.bytes(ip.payload()).is_valid(),
            _ => true,
        }
}

/// Source, source port, destination, destination port.
fn ends(packet: &[u8]) -> (Ipv4Addr, u16, Ipv4Addr, u16) {
    let ip = Ipv4View::parse(packet).unwrap();
    let at = ip.header_len();
    let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    (ip.source(), port(at), ip.destination(), port(at + 2))
}

fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    PacketBuilder::new().ipv4(from.0, to.0).udp(from.1, to.1).build(b"payload")
}

fn tcp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), flags: u8) -> Vec<u8> {
    let header = packet::tcp::TcpHeader {
        source_port: from.1,
        destination_port: to.1,
        flags: packet::tcp::TcpFlags(flags),
        ..packet::tcp::TcpHeader::default()
    };
    PacketBuilder::new().ipv4(from.0, to.0).tcp(header).build(&[])
}

#[test]
fn a_flow_goes_out_and_comes_back() {
    let mut worker = Worker::ready();
    let first = worker.up(UE, &udp((UE, 4001), (HOST, 53))).unwrap();
    let (address, port, to, to_port) = ends(&first);
    assert!(u32::from(address) >> 4 == u32::from(Ipv4Addr::new(203, 0, 113, 64)) >> 4, "{address}");
    assert_eq!((to, to_port, port % 2), (HOST, 53, 1), "parity is kept");
    let told = worker.told();
    let [Told::Block { taken: true, inside: UE, outside, ports: (low, high), .. }] = told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((outside, high - low), (address, 511));
    assert!((low..=high).contains(&port));
    // The same endpoint for everybody, and by the fast path now.
    for host in [HOST, Ipv4Addr::new(1, 1, 1, 1)] {
        let sent = worker.up(UE, &udp((UE, 4001), (host, 99))).unwrap();
        assert_eq!(ends(&sent), (address, port, host, 99));
    }
    assert!(worker.told().is_empty());
    // Anybody may answer.
    let (teid, packet) = worker.down(&udp((Ipv4Addr::new(9, 9, 9, 9), 1), (address, port))).unwrap();
    assert_eq!((teid, ends(&packet)), (Teid(77), (Ipv4Addr::new(9, 9, 9, 9), 1, UE, 4001)));
    assert_eq!(worker.down(&udp((HOST, 1), (address, port ^ 2))), None);
    assert_eq!(worker.down(&udp((HOST, 1), (address, 80))), None);
    assert_eq!(worker.dropped(Reason::NatNoMapping), 2);
    assert_eq!(worker.down(&tcp((HOST, 1), (address, port), 2)), None);
    assert_eq!(worker.dropped(Reason::NatUnsolicited), 1);
    let nat = worker.datapath.counters().nat[0];
    assert_eq!((nat.mappings(), nat.blocks()), (1, 1));
    // Silence ends it.
    for _ in 0..400 {
        worker.now = worker.now.plus(Nanos::SECOND);
        for _ in 0..16 {
            worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
        }
    }
    assert!(matches!(worker.told()[..], [Told::Block { taken: false, inside: UE, .. }]));
    assert_eq!(worker.down(&udp((HOST, 1), (address, port))), None);
}

#[test]
fn ping_and_tcp_have_endpoints_of_their_own() {
    let mut worker = Worker::ready();
    let echo = Echo { request: true, identifier: 500, sequence: 3 };
    let ping = PacketBuilder::new().ipv4(UE, HOST).icmpv4_echo(echo).build(b"ping");
    let sent = worker.up(UE, &ping).unwrap();
    let ip = Ipv4View::parse(&sent).unwrap();
    let public = Icmpv4View::parse(ip.payload()).unwrap().echo().unwrap();
    assert_ne!(ip.source(), UE);
    let answer = Echo { request: false, ..public };
    let reply = PacketBuilder::new().ipv4(HOST, ip.source()).icmpv4_echo(answer).build(b"ping");
    let (_, packet) = worker.down(&reply).unwrap();
    let ip = Ipv4View::parse(&packet).unwrap();
    let received = Icmpv4View::parse(ip.payload()).unwrap().echo().unwrap();
    assert_eq!((ip.destination(), received), (UE, Echo { request: false, ..echo }));
    // A reply to nobody's question makes nothing.
    let stray = PacketBuilder::new().ipv4(UE, HOST).icmpv4_echo(Echo { identifier: 7, ..answer }).build(&[]);
    assert_eq!(worker.up(UE, &stray), None);
    assert_eq!(worker.up(UE, &tcp((UE, 500), (HOST, 80), 4)), None, "nor does a reset");
    assert_eq!(worker.dropped(Reason::NatNoMapping), 2);
    let (address, port, ..) = ends(&worker.up(UE, &tcp((UE, 500), (HOST, 80), 2)).unwrap());
    let (_, packet) = worker.down(&tcp((HOST, 80), (address, port), 0x12)).unwrap();
    assert_eq!(ends(&packet), (HOST, 80, UE, 500));
    let gre = Ipv4Header { source: UE, destination: HOST, protocol: IpProtocol(47), ..Default::default() };
    assert_eq!(worker.up(UE, &PacketBuilder::new().ipv4_header(gre).build(&[0; 8])), None);
    assert_eq!(worker.dropped(Reason::NatUnsupported), 1);
}

#[test]
fn ues_meet_by_their_public_endpoints() {
    let mut worker = Worker::ready();
    let (a1, p1, ..) = ends(&worker.up(UE, &udp((UE, 4000), (HOST, 53))).unwrap());
    let (a2, p2, ..) = ends(&worker.up(UE2, &udp((UE2, 5000), (HOST, 53))).unwrap());
    assert_eq!(worker.up(UE, &udp((UE, 4000), (a2, p2))), None, "nothing leaves on N6");
    let (teid, packet) = worker.received().unwrap();
    assert_eq!((teid, ends(&packet)), (Teid(78), (a1, p1, UE2, 5000)));
    worker.up(UE2, &udp((UE2, 5000), (a1, p1)));
    let (teid, packet) = worker.received().unwrap();
    assert_eq!((teid, ends(&packet)), (Teid(77), (a2, p2, UE, 4000)));
    // The TTL is used up: the error is about the packet as the UE sent it.
    let header = Ipv4Header { source: UE, destination: a2, ttl: 1, ..Default::default() };
    worker.up(UE, &PacketBuilder::new().ipv4_header(header).udp(4000, p2).build(b"short lived"));
    let (teid, packet) = worker.received().unwrap();
    assert_eq!((teid, Ipv4View::parse(&packet).unwrap().destination()), (Teid(77), UE));
    assert_eq!(ends(&packet[28..]), (UE, 4000, a2, p2));
}

#[test]
fn a_public_address_is_no_way_around_being_kept_apart() {
    let mut rib = rib();
    for pool in [format!("{UE2}/32"), "fd00:45:0:8::/64".to_owned()] {
        rib.isolate(pool.parse().unwrap());
    }
    let mut worker = Worker::of(Config::new(rib.fib()), 2, |_| true);
    for (ue, tunnel) in [(UE, 77), (UE2, 78)] {
        worker.install(&rules(ue, tunnel), Transition::default());
    }
    let (public, port, ..) = ends(&worker.up(UE2, &udp((UE2, 5000), (HOST, 53))).unwrap());
    assert_eq!(worker.up(UE, &udp((UE, 4000), (public, port))), None);
    assert_eq!((worker.received(), worker.dropped(Reason::UeToUe)), (None, 1));
    // By a port that is forwarded to it.
    assert_eq!(worker.up(UE, &tcp((UE, 4000), (FORWARDED, 8080), 2)), None);
    assert_eq!((worker.received(), worker.dropped(Reason::UeToUe)), (None, 2));
    // The data network reaches it so.
    assert!(worker.down(&udp((HOST, 53), (public, port))).is_some());

    let [ue, ue2]: [Ipv6Addr; 2] = ["fd00:45:0:7::1", "fd00:45:0:8::1"].map(|text| text.parse().unwrap());
    for (ue, tunnel) in [(ue, 80), (ue2, 81)] {
        let prefix = ipnet::Ipv6Net::new(ue, 64).unwrap().trunc();
        let session = session_at(place(ue), None, to_gnb(tunnel));
        worker.install(&Arc::new(Rules { ue_ipv6: Some(prefix), ..session }), Transition::default());
    }
    let up = |from: Ipv6Addr, to: Ipv6Addr| {
        let packet = PacketBuilder::new().ipv6(from, to).udp(1, 2).build(b"six");
        let builder = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152);
        builder.gtpu(tunnel_at(place(from)).teid).build(&packet)
    };
    worker.process(0, &[up(ue2, "2a00::1".parse().unwrap())]);
    let public = Ipv6View::parse(&worker.sent(1)[0][14..]).unwrap().source();
    worker.process(0, &[up(ue, public)]);
    assert_eq!((worker.received(), worker.dropped(Reason::UeToUe)), (None, 3));
}

/// A RST lets a mapping end within half a minute: not another UE's, where that one is kept apart.
#[test]
fn who_is_kept_apart_loses_no_mapping_to_another_ue() {
    for isolated in [false, true] {
        let mut rib = rib();
        if isolated {
            rib.isolate(format!("{UE2}/32").parse().unwrap());
        }
        let mut worker = Worker::of(Config::new(rib.fib()), 2, |_| true);
        for (ue, tunnel) in [(UE, 77), (UE2, 78)] {
            worker.install(&rules(ue, tunnel), Transition::default());
        }
        let (syn, ack, rst) = (2, 16, 4);
        let (public, port, ..) = ends(&worker.up(UE2, &tcp((UE2, 5000), (HOST, 80), syn)).unwrap());
        assert!(worker.down(&tcp((HOST, 80), (public, port), syn | ack)).is_some());
        assert!(worker.up(UE2, &tcp((UE2, 5000), (HOST, 80), ack)).is_some());
        // He has a mapping of his own.
        assert!(worker.up(UE, &tcp((UE, 4000), (HOST, 80), syn)).is_some());
        assert_eq!(worker.up(UE, &tcp((UE, 4000), (public, port), rst)), None);
        assert_eq!(
            (worker.received().is_none(), worker.dropped(Reason::UeToUe)),
            (isolated, isolated.into())
        );
        for _ in 0..60 {
            worker.now = worker.now.plus(Nanos::SECOND);
            worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
        }
        assert_eq!(worker.down(&tcp((HOST, 80), (public, port), ack)).is_some(), isolated);
    }
}

#[test]
fn who_shares_a_public_address_with_a_scanner_is_another_user() {
    let mut rib = rib();
    let settings =
        Settings::new("one", vec!["10.45.0.0/16".parse().unwrap()], vec!["203.0.113.64/32".parse().unwrap()]);
    rib.translate(Arc::new(Plan::new(&[Settings { block_size: 64, ..settings }], &[], &[]).unwrap()));
    let mut worker = Worker::of(Config::new(rib.fib()), 2, |_| true);
    for (ue, tunnel) in [(UE, 77), (UE2, 78)] {
        worker.install(&rules(ue, tunnel), Transition::default());
    }
    let asks = |worker: &mut Worker, ue, host| {
        worker.process(0, &[uplink(ue, &udp((ue, 4000), (Ipv4Addr::new(203, 0, 113, host), 53)))]);
        let sent = worker.sent(1);
        assert!(sent.iter().all(|frame| frame[12..14] == [8, 6]));
        sent.len()
    };
    let asked: usize = (100..=240).map(|host| asks(&mut worker, UE, host)).sum();
    assert_eq!(asked, 100, "new ones at once");
    assert_eq!(asks(&mut worker, UE2, 250), 1);
}

#[test]
fn errors_tell_of_packets_as_their_senders_know_them() {
    let mut worker = Worker::ready();
    let sent = worker.up(UE, &udp((UE, 4000), (HOST, 53))).unwrap();
    let (address, port, ..) = ends(&sent);
    let router = Ipv4Addr::new(7, 7, 7, 7);
    let mut error = Vec::new();
    packet::icmpv4::emit_error(&mut error, router, packet::icmpv4::Icmpv4Error::TimeExceeded, &sent);
    let (_, packet) = worker.down(&error).unwrap();
    assert_eq!(Ipv4View::parse(&packet).unwrap().source(), router);
    assert_eq!(ends(&packet[28..]), (UE, 4000, HOST, 53));
    // About somebody else's packet.
    let other = udp((Ipv4Addr::new(203, 0, 113, 79), port), (HOST, 53));
    error.clear();
    packet::icmpv4::emit_error(&mut error, router, packet::icmpv4::Icmpv4Error::TimeExceeded, &other);
    error[16..20].copy_from_slice(&address.octets());
    let sum = checksum::ipv4_header(&error[..20]);
    error[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(worker.down(&error), None);
    // The UE's port is closed.
    let (_, received) = worker.down(&udp((HOST, 53), (address, port))).unwrap();
    error.clear();
    packet::icmpv4::emit_error(
        &mut error,
        UE,
        packet::icmpv4::Icmpv4Error::FragmentationNeeded { mtu: 1300 },
        &received,
    );
    let sent = worker.up(UE, &error).unwrap();
    assert_eq!(Ipv4View::parse(&sent).unwrap().source(), address);
    let mut forged = Vec::new();
    let icmp = packet::icmpv4::Icmpv4Error::TimeExceeded;
    packet::icmpv4::emit_error(&mut forged, UE2, icmp, &received);
    assert_eq!(worker.up(UE2, &forged), None, "about another UE's packet");
    assert_eq!(ends(&sent[28..]), (HOST, 53, address, port));
    // Our own error about a packet to a UE.
    let header = Ipv4Header { source: HOST, destination: address, ttl: 1, ..Default::default() };
    let dying = PacketBuilder::new().ipv4_header(header).udp(53, port).build(b"too far");
    assert_eq!(worker.down(&dying), None);
    let sent = worker.sent(1);
    assert!(is_sound(&sent[0][14..]));
    assert_eq!(ends(&sent[0][14 + 28..]), (HOST, 53, address, port));
}

#[test]
fn fragments_follow_the_first() {
    let mut worker = Worker::ready();
    let long = |source, destination| {
        let header = Ipv4Header { source, destination, identification: 77, ..Ipv4Header::default() };
        PacketBuilder::new().ipv4_header(header)
    };
    let whole = long(UE, HOST).udp(4000, 53).build(&[7; 2000]);
    // Too long for N6: translated, then cut.
    let mut frames = Vec::new();
    for burst in 0..2 {
        worker.process(0, &[uplink(UE, &whole)]);
        frames = worker.sent(1);
        assert_eq!((frames.len(), burst < 2), (2, true));
    }
    let pieces: Vec<&[u8]> = frames.iter().map(|frame| &frame[14..]).collect();
    let (address, port, ..) = ends(pieces[0]);
    assert_eq!(Ipv4View::parse(pieces[1]).unwrap().source(), address);
    // The UE cuts by itself.
    let end = whole.len() - 20;
    assert_eq!(worker.up(UE, &cut(&whole, 1600..end)), None);
    assert_eq!(worker.dropped(Reason::FragmentWithoutFirst), 1);
    assert_eq!(ends(&worker.up(UE, &cut(&whole, 0..800)).unwrap()), (address, port, HOST, 53));
    for octets in [800..1600, 1600..end] {
        let sent = worker.up(UE, &cut(&whole, octets)).unwrap();
        assert_eq!(Ipv4View::parse(&sent).unwrap().source(), address);
    }
    // And so from the other side.
    let whole = long(HOST, address).udp(53, port).build(&[7; 2000]);
    assert_eq!(worker.down(&cut(&whole, 800..1600)), None);
    assert_eq!(ends(&worker.down(&cut(&whole, 0..800)).unwrap().1), (HOST, 53, UE, 4000));
    let (teid, packet) = worker.down(&cut(&whole, 800..1600)).unwrap();
    assert_eq!((teid, Ipv4View::parse(&packet).unwrap().destination()), (Teid(77), UE));
}

#[test]
fn static_entries_lead_both_ways() {
    let mut worker = Worker::ready();
    // A whole address, whatever the protocol.
    let (teid, packet) = worker.down(&udp((HOST, 1), (PUBLIC, 2))).unwrap();
    assert_eq!((teid, ends(&packet)), (Teid(79), (HOST, 1, SERVER, 2)));
    assert_eq!(ends(&worker.up(SERVER, &udp((SERVER, 2), (HOST, 1))).unwrap()), (PUBLIC, 2, HOST, 1));
    let gre =
        Ipv4Header { source: HOST, destination: PUBLIC, protocol: IpProtocol(47), ..Default::default() };
    assert!(worker.down(&PacketBuilder::new().ipv4_header(gre).build(&[0; 8])).is_some());
    // One port.
    let (teid, packet) = worker.down(&tcp((HOST, 4), (FORWARDED, 8080), 2)).unwrap();
    assert_eq!((teid, ends(&packet)), (Teid(78), (HOST, 4, UE2, 80)));
    assert_eq!(ends(&worker.up(UE2, &tcp((UE2, 80), (HOST, 4), 0x12)).unwrap()), (FORWARDED, 8080, HOST, 4));
    assert_eq!(worker.down(&tcp((HOST, 4), (FORWARDED, 8081), 2)), None);
    assert!(worker.told().is_empty(), "no ports are given for them");
    // From inside as well.
    assert_eq!(worker.up(UE, &tcp((UE, 9), (FORWARDED, 8080), 2)), None);
    let (teid, packet) = worker.received().unwrap();
    let (source, _, to, port) = ends(&packet);
    assert_eq!((teid, to, port), (Teid(78), UE2, 80));
    assert_ne!(source, UE);
}

#[test]
fn prefixes_are_exchanged() {
    let mut worker = Worker::translating(|_| true);
    let ue: Ipv6Addr = "fd00:45:0:7::1".parse().unwrap();
    let place = place(ue);
    worker.install(
        &Arc::new(Rules {
            ue_ipv6: Some("fd00:45:0:7::/64".parse().unwrap()),
            ..session_at(place, None, to_gnb(80))
        }),
        Transition::default(),
    );
    let host: Ipv6Addr = "2a00::1".parse().unwrap();
    let up = |packet: &[u8]| {
        let builder = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152);
        builder.gtpu(tunnel_at(place).teid).build(packet)
    };
    let mut public = Ipv6Addr::UNSPECIFIED;
    for ping in [false, true] {
        let echo = Echo { request: true, identifier: 1, sequence: 2 };
        let builder = PacketBuilder::new().ipv6(ue, host);
        let packet = if ping { builder.icmpv6_echo(echo) } else { builder.udp(1, 2) }.build(b"six");
        worker.process(0, &[up(&packet)]);
        let sent = worker.sent(1);
        assert!(is_sound(&sent[0][14..]));
        let ip = Ipv6View::parse(&sent[0][14..]).unwrap();
        assert_eq!(ip.source().segments()[..3], [0x2001, 0xdb8, 1]);
        public = ip.source();
        // The answer.
        worker.process(1, &[ethernet(&PacketBuilder::new().ipv6(host, public).udp(2, 1).build(b"answer"))]);
        let (teid, packet) = tunnelled(&worker.sent(0)[0]);
        assert!(is_sound(&packet));
        assert_eq!((teid, Ipv6View::parse(&packet).unwrap().destination()), (Teid(80), ue));
        // An error about it.
        let mut error = Vec::new();
        icmpv6::emit_error(&mut error, host, icmpv6::Icmpv6Error::TimeExceeded, &sent[0][14..]);
        worker.process(1, &[ethernet(&error)]);
        let (_, packet) = tunnelled(&worker.sent(0)[0]);
        assert!(is_sound(&packet));
        assert_eq!(Ipv6View::parse_quoted(&packet[48..]).unwrap().source(), ue);
    }
    let mut error = Vec::new();
    let received = PacketBuilder::new().ipv6(host, ue).udp(2, 1).build(b"answer");
    icmpv6::emit_error(&mut error, ue, icmpv6::Icmpv6Error::TimeExceeded, &received);
    worker.process(0, &[up(&error)]);
    let sent = worker.sent(1);
    assert!(is_sound(&sent[0][14..]));
    assert_eq!(Ipv6View::parse_quoted(&sent[0][14 + 48..]).unwrap().destination(), public);
    // Our own error names the address that the sender knows.
    let header =
        packet::ipv6::Ipv6Header { source: host, destination: public, hop_limit: 1, ..Default::default() };
    worker.process(1, &[ethernet(&PacketBuilder::new().ipv6_header(header).udp(2, 1).build(b"far"))]);
    let sent = worker.sent(1);
    assert!(is_sound(&sent[0][14..]));
    assert_eq!(Ipv6View::parse_quoted(&sent[0][14 + 48..]).unwrap().destination(), public);
}

#[test]
fn the_owner_of_the_port_translates() {
    let shard = Datapath::<MemFrame>::shard_of(UE.into());
    let mut owner = Worker::translating(|id| id == shard);
    let mut other = Worker::translating(|id| id != shard);
    owner.install(&rules(UE, 77), Transition::default());
    let (address, port, ..) = ends(&owner.up(UE, &udp((UE, 4000), (HOST, 53))).unwrap());
    assert_eq!(other.down(&udp((HOST, 53), (address, port))), None);
    let handed: Vec<_> = other.out.hand_off.drain().collect();
    assert!(handed.iter().all(|(id, _)| *id == shard));
    owner.datapath.process_handed_off(
        owner.now,
        handed.into_iter().map(|(_, packet)| packet),
        &mut Burst::new(),
        &mut owner.out,
        &mut owner.pool,
    );
    assert_eq!(ends(&owner.received().unwrap().1), (HOST, 53, UE, 4000));
    // The shard takes its translations along.
    let moved = owner.datapath.release(shard).unwrap();
    other.datapath.adopt(moved);
    let (_, packet) = other.down(&udp((HOST, 53), (address, port))).unwrap();
    assert_eq!(ends(&packet), (HOST, 53, UE, 4000));
    assert_eq!(other.datapath.counters().balance(), 0);
}

#[test]
fn the_end_of_a_session_ends_its_translations() {
    let mut worker = Worker::ready();
    let (address, port, ..) = ends(&worker.up(UE, &udp((UE, 4000), (HOST, 53))).unwrap());
    worker.install(&rules(UE, 90), Transition::default());
    assert!(worker.down(&udp((HOST, 53), (address, port))).is_some(), "a change of rules keeps them");
    worker.told();
    let command = Command::Remove { token: Token(1), session: place(UE) };
    worker.datapath.apply(worker.now, command, &mut worker.out, &mut worker.pool);
    assert!(matches!(worker.told()[..], [Told::Block { taken: false, inside: UE, .. }]));
    worker.install(&rules(UE, 91), Transition::default());
    assert_eq!(worker.down(&udp((HOST, 53), (address, port))), None, "who comes next isn't who was meant");
}

#[test]
fn public_addresses_on_the_link_are_answered_for() {
    let mut worker = Worker::ready();
    let router = Ipv4Addr::new(203, 0, 113, 254);
    for (target, answered) in [(FORWARDED, true), (PUBLIC, false), (Ipv4Addr::new(203, 0, 113, 80), false)] {
        let mut request = [0; arp::LEN];
        arp::emit_request(&mut request, ROUTER, router, target);
        worker.process(1, &[[&[0xff; 6][..], &ROUTER.0, &[8, 6], &request].concat()]);
        let sent = worker.sent(1);
        assert_eq!(sent.len(), usize::from(answered), "{target}");
        if let Some(frame) = sent.first() {
            let reply = ArpView::parse(&frame[14..]).unwrap();
            assert_eq!((reply.sender_mac(), reply.sender_ip()), (N6, target));
        }
    }
}
