//! The branches beside the fast path, one by one, with their bytes: ARP, neighbours, GTP-U control, fragments, buffering,
//! hand-off between workers, and shards that move.
#![allow(clippy::unwrap_used)]

mod carried;
mod costs;
mod delegated;
mod detected;
mod export;
mod feeder;
mod flows;
mod held;
mod inspected;
mod limits;
mod neighbours;
mod policies;
mod room;
mod walls;

use crate::rig::*;
use datapath::command::{Command, Event, Token, Transition};
use datapath::{Burst, Config, Datapath, Places, Reason, Refusal};
use datapath::{Interface, Rib, Roles};
use flows::with_flows;
use io::mem::MemFrame;
use packet::gtpu::MessageType;
use packet::{
    EthernetView, GtpuView, Ipv4View, MacAddr, PacketBuilder, PduSession, Qfi, Teid, UdpView, pdu_session,
};
use pfcp::{FarId, PdrId, UrrId};
use session::ShardId;
use session::rules::*;
use session::usage::{Trigger, Volume};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::Nanos;

/// N6 is a VLAN.
fn rib(neighbours: bool) -> Rib {
    let mut rib = network(Some(100));
    if neighbours {
        learn(&mut rib);
    }
    rib
}

impl Worker {
    fn new(mut rib: Rib, shards: impl Fn(ShardId) -> bool) -> Self {
        Self::of(Config::new(rib.fib()), 2, shards)
    }

    fn tick(&mut self, seconds: u64) {
        self.now = self.now.plus(seconds * Nanos::SECOND);
        self.datapath.tick(self.now, &mut self.out, &mut self.pool);
        assert_eq!(self.datapath.counters().balance(), 0);
    }

    fn events(&mut self) -> Vec<Event> {
        self.out.events.drain(..).collect()
    }
}

fn rules(ue: Ipv4Addr, downlink: Action) -> Arc<Rules> {
    Arc::new(session_at(place(ue), Some(ue), downlink))
}

fn gtpu(kind: MessageType, teid: Teid) -> PacketBuilder {
    PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152).gtpu_message(kind, teid)
}

fn inner(source: Ipv4Addr, destination: Ipv4Addr, size: usize) -> Vec<u8> {
    PacketBuilder::new().ipv4(source, destination).udp(1, 2).build(&vec![7; size])
}

fn downlink(size: usize) -> Vec<u8> {
    downlink_from(HOST.into(), UE.into(), size)
}

fn downlink_from(source: IpAddr, destination: IpAddr, size: usize) -> Vec<u8> {
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let packet = PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ip(source, destination).udp(1, 2);
    packet.build(&vec![7; size])
}

fn tunnelled(frame: &[u8]) -> (Ipv4Addr, Teid, MessageType, Vec<u8>) {
    let ip = Ipv4View::parse(&frame[14..]).unwrap();
    assert!(ip.checksum_ok());
    let udp = UdpView::parse(ip.payload()).unwrap();
    let gtpu = GtpuView::parse(udp.payload()).unwrap();
    (ip.destination(), gtpu.teid(), gtpu.message_type(), gtpu.payload().to_vec())
}

/// What a UE sends, in its session's tunnel.
fn uplink(inner: &[u8], ue: Ipv4Addr) -> Vec<u8> {
    gtpu(MessageType::G_PDU, teid(ue)).build(inner)
}

/// A user's datagram that is itself a G-PDU, for another user's tunnel.
fn forged(source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let packet = PacketBuilder::new().ip(source, destination).udp(packet::GTP_U_PORT, packet::GTP_U_PORT);
    packet.gtpu(Teid(0x8000_0001)).build(&inner(HOST, UE2, 8))
}

/// A header's checksum is over its options, too: of user's packets on N6 and of tunnels' on N3.
#[test]
fn options_are_in_a_headers_checksum() {
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let options = [0x94, 4, 0, 0, 7, 7, 4, 1, 2, 3, 4, 0];
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let plain = PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, UE).options(&options);
    let tunnel = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).options(&options);
    let tunnel = tunnel.udp(2152, 2152).gtpu_message(MessageType::G_PDU, teid(UE));
    let frames = [(1, 18, plain.udp(1, 2).build(b"hello")), (0, 14, tunnel.build(&inner(UE, HOST, 10)))];
    for (port, l3, frame) in frames {
        worker.process(port, std::slice::from_ref(&frame));
        assert_eq!(worker.sent((1 - port).into()).len(), 1);
        for at in l3 + 20..l3 + 32 {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x10;
            let before = worker.dropped(Reason::Malformed);
            worker.process(port, &[damaged]);
            assert_eq!(worker.dropped(Reason::Malformed), before + 1, "octet {at}");
        }
    }
}

/// N3's subnet, a network behind a router on N3, and N9: of all of them the stations are known, and tunnels lead there.
#[test]
fn a_users_packet_leaves_through_n6_only() {
    let mut rib = rib(true);
    let n9 = Interface {
        name: "n9".into(),
        port: 2,
        vlan: None,
        mac: MacAddr([2, 0, 0, 0, 0, 3]),
        mtu: 1500,
        roles: Roles { n9: true, ..Roles::default() },
        addresses: vec!["198.51.100.1/24".parse().unwrap(), "2001:db8:9::1/64".parse().unwrap()],
        network_instances: Vec::new(),
    };
    rib.add_interface(n9).unwrap();
    rib.add_route("192.88.0.0/16".parse().unwrap(), 0, Some(GNB_IP.into())).unwrap();
    rib.add_route("2001:db8:33::/48".parse().unwrap(), 0, Some("2001:db8:3::7".parse().unwrap())).unwrap();
    rib.add_route("::/0".parse().unwrap(), 1, Some("2001:db8:6::fe".parse().unwrap())).unwrap();
    rib.fix(0, "2001:db8:3::7".parse().unwrap(), GNB);
    rib.fix(1, "2001:db8:6::fe".parse().unwrap(), ROUTER);
    rib.fix(2, "198.51.100.7".parse().unwrap(), GNB);
    rib.fix(2, "2001:db8:9::7".parse().unwrap(), GNB);
    let mut worker = Worker::of(Config::new(rib.fib()), 3, |_| true);
    let ue6: Ipv6Addr = "2001:db8:45::5".parse().unwrap();
    // Served by its record; and (with a filter) judged by its rules.
    for filtered in [false, true] {
        let mut rules = (*rules(UE, to_gnb(77))).clone();
        rules.ue_ipv6 = Some("2001:db8:45::/64".parse().unwrap());
        if filtered {
            let any = SdfFilter { tos: Some((0, 0)), ..SdfFilter::default() };
            rules.pdrs[0].filters = [any].into();
        }
        worker.install(&Arc::new(rules), Transition::default());
        let before = worker.dropped(Reason::NotTowardsN6);
        let closed = [
            "192.0.2.7",
            "192.0.2.200",
            "192.88.4.4",
            "198.51.100.7",
            "2001:db8:3::7",
            "2001:db8:33::4",
            "2001:db8:9::7",
        ];
        for destination in closed.map(|address| address.parse::<IpAddr>().unwrap()) {
            let source = if destination.is_ipv4() { UE.into() } else { ue6.into() };
            worker.process(0, &[uplink(&forged(source, destination), UE)]);
            for port in [0, 1, 2] {
                assert!(worker.sent(port).is_empty(), "{destination} was reached through port {port}");
            }
        }
        assert_eq!(worker.dropped(Reason::NotTowardsN6) - before, closed.len() as u64);
        // Tunnels lead there, and users' packets to the data network.
        worker.process(1, &[downlink(10)]);
        assert_eq!(worker.sent(0).len(), 1);
        worker.process(
            0,
            &[
                uplink(&forged(UE.into(), HOST.into()), UE),
                uplink(&forged(ue6.into(), "2a00::8".parse().unwrap()), UE),
            ],
        );
        assert_eq!(worker.sent(1).len(), 2);
    }
    assert_eq!(worker.datapath.counters().held, 0);
}

/// Two data networks: a FAR that names one of them is never routed into the other.
#[test]
fn a_users_packet_leaves_into_the_network_instance_that_its_far_names() {
    let mut rib = network(None);
    learn(&mut rib);
    let other = Interface {
        name: "ims".into(),
        port: 2,
        vlan: None,
        mac: MacAddr([2, 0, 0, 0, 0, 3]),
        mtu: 1500,
        roles: Roles { n6: true, ..Roles::default() },
        addresses: vec!["198.51.100.1/24".parse().unwrap()],
        network_instances: Vec::new(),
    };
    rib.add_interface(other).unwrap();
    rib.add_route("8.0.0.0/8".parse().unwrap(), 2, Some("198.51.100.9".parse().unwrap())).unwrap();
    rib.fix(2, "198.51.100.9".parse().unwrap(), ROUTER);
    rib.serve(1, 1);
    rib.serve(2, 2);
    let mut worker = Worker::of(Config::new(rib.fib()), 3, |_| true);
    for filtered in [false, true] {
        // The default leaves by any interface, an instance only by its own: destinations on port 1, and on port 2.
        for (instance, leaves) in [(0, [1, 1]), (1, [1, 0]), (2, [0, 1])] {
            let mut rules = (*rules(UE, to_gnb(77))).clone();
            if let Action::Forward(forward) = &mut rules.fars[0].action {
                forward.instance = instance;
            }
            if filtered {
                let any = SdfFilter { tos: Some((0, 0)), ..SdfFilter::default() };
                rules.pdrs[0].filters = [any].into();
            }
            worker.install(&Arc::new(rules), Transition::default());
            let before = worker.dropped(Reason::NotTowardsN6);
            let far: Ipv4Addr = "9.9.9.9".parse().unwrap();
            worker.process(0, &[uplink(&inner(UE, far, 8), UE), uplink(&inner(UE, HOST, 8), UE)]);
            assert_eq!([worker.sent(1).len(), worker.sent(2).len()], leaves, "instance {instance}");
            let dropped = 2 - leaves.iter().sum::<usize>() as u64;
            assert_eq!(worker.dropped(Reason::NotTowardsN6) - before, dropped);
        }
    }
}

#[test]
fn gtpu_control_messages() {
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker.events();
    worker.process(0, &[gtpu(MessageType::ECHO_REQUEST, Teid(0)).gtpu_sequence(0x1234).build(&[])]);
    let sent = worker.sent(0);
    let ip = Ipv4View::parse(&sent[0][14..]).unwrap();
    let udp = UdpView::parse(ip.payload()).unwrap();
    assert_eq!((udp.source_port(), udp.destination_port()), (2152, 3333));
    assert_eq!(udp.payload(), [0x32, 2, 0, 6, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 14, 0]);

    // An extension header that must be understood and isn't.
    let strange =
        gtpu(MessageType::G_PDU, teid(UE)).gtpu_extension(packet::gtpu::ExtensionType(0x99), &[1, 2]);
    worker.process(0, &[strange.build(&inner(UE, HOST, 5))]);
    assert_eq!(worker.dropped(Reason::GtpuUnknownExtension), 1);
    let sent = worker.sent(0);
    assert_eq!(tunnelled(&sent[0]).2, MessageType::SUPPORTED_EXTENSION_HEADERS);
    assert_eq!(worker.sent(1).len(), 0);
}

#[test]
fn a_path_switch_sends_one_end_marker_and_only_if_the_tunnel_changed() {
    let mut worker = Worker::new(rib(true), |_| true);
    let marking = |far| Transition { end_markers: [FarId(far)].into(), drop_buffered: false };
    worker.install(&rules(UE, to_gnb(77)), marking(2));
    worker.install(&rules(UE, to_gnb(77)), marking(2));
    assert!(worker.sent(0).is_empty());
    worker.install(&rules(UE, to_gnb(78)), marking(2));
    let sent = worker.sent(0);
    assert_eq!(sent.len(), 1);
    assert_eq!(tunnelled(&sent[0]), (GNB_IP, Teid(77), MessageType::END_MARKER, Vec::new()));
}

#[test]
fn only_the_far_that_was_asked_to_sends_an_end_marker() {
    let mut worker = Worker::new(rib(true), |_| true);
    let with = |first, second| {
        let mut rules = Rules::clone(&rules(UE, to_gnb(first)));
        rules.fars =
            rules.fars.iter().cloned().chain([Far { id: FarId(3), action: to_gnb(second) }]).collect();
        Arc::new(rules)
    };
    worker.install(&with(77, 87), Transition::default());
    // Both tunnels move; one FAR carries SNDEM.
    worker.install(&with(78, 88), Transition { end_markers: [FarId(3)].into(), drop_buffered: false });
    let sent = worker.sent(0);
    assert_eq!(sent.iter().map(|frame| tunnelled(frame).1).collect::<Vec<_>>(), [Teid(87)]);
    worker.install(&with(79, 89), Transition::default());
    assert!(worker.sent(0).is_empty());
}

#[test]
fn a_quota_of_nothing_lets_nothing_pass() {
    let mut worker = Worker::new(rib(true), |_| true);
    let with = |quota, quota_generation| {
        let mut rules = Rules::clone(&rules(UE, to_gnb(77)));
        rules.pdrs[1].urrs = [0].into();
        let quota = VolumeLimit { total: Some(quota), ..VolumeLimit::default() };
        rules.urrs = [Urr { quota, quota_generation, ..Urr::counting(UrrId(1)) }].into();
        Arc::new(rules)
    };
    worker.install(&with(0, 0), Transition::default());
    assert!(matches!(worker.events()[..], [Event::Applied { .. }]));
    worker.process(1, &[downlink(10), downlink(20)]);
    assert!(worker.sent(0).is_empty());
    assert_eq!(worker.dropped(Reason::QuotaExhausted), 2);
    // The first packet says that there is traffic that wants some.
    let events = worker.events();
    let [Event::Usage { usage, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((usage[0].trigger, usage[0].volume), (Trigger::VolumeQuota, Volume::default()));
    // A quota, then nothing again, in place of a used one.
    worker.install(&with(1_000, 1), Transition::default());
    worker.process(1, &[downlink(10)]);
    assert_eq!(worker.sent(0).len(), 1);
    worker.install(&with(0, 2), Transition::default());
    worker.process(1, &[downlink(10)]);
    assert!(worker.sent(0).is_empty());
    assert_eq!(worker.dropped(Reason::QuotaExhausted), 3);
}

#[test]
fn buffered_packets_leave_in_order_and_the_smf_is_told_once() {
    let mut worker = Worker::new(rib(true), |_| true);
    let buffer = Action::Buffer { notify: true, packets: 3 };
    worker.install(&rules(UE, buffer), Transition::default());
    worker.events();
    worker.process(1, &[downlink(1), downlink(2), downlink(3), downlink(4)]);
    assert!(matches!(worker.events()[..], [Event::DownlinkData { pdr: PdrId(2), .. }]));
    assert_eq!(worker.datapath.counters().buffered, 3);
    assert_eq!(worker.dropped(Reason::BufferFull), 1);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let sizes: Vec<usize> = worker.sent(0).iter().map(|f| tunnelled(f).3.len() - 28).collect();
    assert_eq!(sizes, [1, 2, 3]);
    assert_eq!(worker.datapath.counters().buffered, 0);
}

#[test]
fn ue_to_ue_across_two_workers() {
    let mine = place(UE).shard;
    let mut first = Worker::new(rib(true), |id| id == mine);
    let mut second = Worker::new(rib(true), |id| id != mine);
    first.install(&rules(UE, to_gnb(77)), Transition::default());
    second.install(&rules(UE2, to_gnb(88)), Transition::default());
    assert_ne!(place(UE2).shard, mine);
    let container = PduSession::Uplink(pdu_session::Uplink { qfi: Qfi::from_wire(5), ..Default::default() });
    let frame = gtpu(MessageType::G_PDU, teid(UE)).pdu_session(&container).build(&inner(UE, UE2, 9));
    // It arrives at the wrong worker, goes to the sender's, and from there to the receiver's.
    second.process(0, &[frame]);
    let (shard, handed) = second.out.hand_off.drain().next().unwrap();
    assert_eq!(shard, mine);
    first.datapath.process_handed_off(
        first.now,
        [handed],
        &mut Burst::new(),
        &mut first.out,
        &mut first.pool,
    );
    let (shard, handed) = first.out.hand_off.drain().next().unwrap();
    assert_eq!(shard, place(UE2).shard);
    second.datapath.process_handed_off(
        second.now,
        [handed],
        &mut Burst::new(),
        &mut second.out,
        &mut second.pool,
    );
    let sent = second.sent(0);
    let (to, teid, _, packet) = tunnelled(&sent[0]);
    assert_eq!((to, teid), (GNB_IP, Teid(88)));
    let ip = Ipv4View::parse(&packet).unwrap();
    assert_eq!((ip.source(), ip.destination(), ip.ttl()), (UE, UE2, 63));
    assert_eq!(first.datapath.counters().balance(), 0);
    assert_eq!(second.datapath.counters().balance(), 0);
    // Nobody can pretend to be another worker from the wire.
    let forged = [&[2, b'M', b'I', b'L', b'L', b'R'][..], &GNB.0, &[8, 0], &inner(UE, UE2, 9)].concat();
    second.process(0, &[forged]);
    assert_eq!(second.dropped(Reason::NotForUs), 1);
}

#[test]
fn a_workers_own_packets_and_others_are_told_apart_in_order() {
    let mine = place(UE).shard;
    let mut first = Worker::new(rib(true), |id| id == mine);
    let mut second = Worker::new(rib(true), |id| id != mine);
    first.install(&rules(UE, to_gnb(77)), Transition::default());
    second.install(&rules(UE2, to_gnb(88)), Transition::default());
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let echo = packet::icmpv4::Echo { request: true, identifier: 5, sequence: 6 };
    let own = Ipv4Addr::new(203, 0, 113, 1);
    assert_ne!(Datapath::<MemFrame>::shard_of(own.into()), mine, "by its address, somebody else's");
    let ping =
        PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, own).icmpv4_echo(echo).build(b"me");
    let (is_mine, of) = (|n: &usize| n.is_multiple_of(3), |n| if n % 3 == 0 { UE } else { UE2 });
    let sizes = |frames: &[Vec<u8>], front: usize| frames.iter().map(|f| f.len() - front).collect::<Vec<_>>();
    let (kept, gone): (Vec<_>, Vec<_>) = (1..40).partition(is_mine);
    // The first of mixed bursts is told apart behind the look-ups, those after it before them.
    let mut burst = Burst::new();
    for _ in 0..3 {
        for (port, front) in [(0, 18 + 28), (1, 14 + 20 + 8 + 8 + 28)] {
            let packet = |n| match port {
                0 => uplink(&inner(of(n), HOST, n), of(n)),
                _ => downlink_from(HOST.into(), of(n).into(), n),
            };
            burst.frames.extend((1..40).map(|n| MemFrame::copy_of(&packet(n)).unwrap()));
            if port == 1 {
                burst.frames.insert(20, MemFrame::copy_of(&ping).unwrap());
            }
            first.datapath.process(first.now, port, &mut burst, &mut first.out, &mut first.pool);
            assert_eq!(sizes(&first.sent(1 - usize::from(port)), front), kept);
            assert_eq!(first.sent(usize::from(port)).len(), usize::from(port), "the answer to the ping");
            let (shards, handed): (Vec<_>, Vec<_>) = first.out.hand_off.drain().unzip();
            assert!(shards.iter().all(|shard| *shard == place(UE2).shard));
            second.datapath.process_handed_off(
                second.now,
                handed,
                &mut Burst::new(),
                &mut second.out,
                &mut second.pool,
            );
            assert_eq!(sizes(&second.sent(1 - usize::from(port)), front), gone);
        }
    }
    assert_eq!((first.datapath.counters().balance(), second.datapath.counters().balance()), (0, 0));
}

#[test]
fn a_shard_moves_with_its_sessions_and_their_packets() {
    let mut first = Worker::new(rib(true), |_| true);
    let mut second = Worker::new(rib(true), |_| false);
    first.install(&rules(UE, Action::Buffer { notify: false, packets: 9 }), Transition::default());
    first.process(1, &[downlink(1), downlink(2)]);
    let id = place(UE).shard;
    let shard = first.datapath.release(id).unwrap();
    assert!(!first.datapath.owns(id));
    assert!(second.datapath.adopt(shard).is_none());
    assert_eq!(first.datapath.counters().balance(), 0);
    assert_eq!((first.datapath.counters().buffered, second.datapath.counters().buffered), (0, 2));
    second.install(&rules(UE, to_gnb(77)), Transition::default());
    assert_eq!(second.sent(0).len(), 2);
    first.install(&rules(UE, to_gnb(77)), Transition::default());
    assert!(first.events().iter().any(|e| matches!(e, Event::Refused { refusal: Refusal::NotOwned, .. })));
}

#[test]
fn however_shards_move_no_more_packets_wait_than_may() {
    let config = Config { buffered: Places::new(3), ..Config::new(rib(true).fib()) };
    let mut workers = [true, false].map(|owns| Worker::of(config.clone(), 2, move |_| owns));
    let buffer = rules(UE, Action::Buffer { notify: false, packets: 9 });
    workers[0].install(&buffer, Transition::default());
    let id = place(UE).shard;
    let mut waiting = 0;
    for round in 0..4 {
        let (from, to) = (round % 2, (round + 1) % 2);
        workers[from].process(1, &[downlink(1), downlink(2)]);
        let shard = workers[from].datapath.release(id).unwrap();
        assert!(workers[to].datapath.adopt(shard).is_none());
        waiting = workers[to].datapath.counters().buffered;
        assert!(waiting <= 3, "{waiting} packets wait");
    }
    let refused: u64 = workers.iter().map(|worker| worker.dropped(Reason::BufferExhausted)).sum();
    assert_eq!((waiting, refused), (3, 5));
    // What has left, made room.
    workers[0].install(&rules(UE, to_gnb(77)), Transition::default());
    assert_eq!(workers[0].sent(0).len(), 3);
    workers[0].install(&buffer, Transition::default());
    workers[0].process(1, &[downlink(1), downlink(2), downlink(3), downlink(4)]);
    assert_eq!(workers[0].datapath.counters().buffered, 3);
}

#[test]
fn a_new_view_changes_the_way_out() {
    let mut network = rib(false);
    let mut worker = Worker::new(rib(false), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker.process(1, &[downlink(1)]);
    worker.sent(0);
    network.fix(0, GNB_IP.into(), GNB);
    worker.apply(Command::Fib(network.fib()));
    assert_eq!(worker.sent(0).len(), 1, "what waited leaves");
    worker.process(1, &[downlink(1)]);
    assert_eq!(EthernetView::parse(&worker.sent(0)[0]).unwrap().destination(), GNB);
}

#[test]
fn any_bytes_whatever_are_survived() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let mut rng = StdRng::seed_from_u64(3);
    let container = PduSession::Uplink(pdu_session::Uplink { qfi: Qfi::from_wire(5), ..Default::default() });
    let seeds = [
        gtpu(MessageType::G_PDU, teid(UE)).pdu_session(&container).build(&inner(UE, HOST, 30)),
        gtpu(MessageType::ERROR_INDICATION, Teid(0)).build(&[16, 0, 0, 0, 77, 133, 0, 4, 192, 0, 2, 7]),
        gtpu(MessageType::END_MARKER, teid(UE)).build(&[]),
        downlink(30),
    ];
    for _ in 0..30_000 {
        let mut frame = seeds[rng.random_range(0..seeds.len())].clone();
        for _ in 0..rng.random_range(0..4) {
            let at = rng.random_range(0..frame.len());
            frame[at] = rng.random();
        }
        if rng.random_range(0..4) == 0 {
            frame.truncate(rng.random_range(1..frame.len()));
        }
        if frame.len() > 34 && frame[12..14] == [8, 0] {
            // Past the checksum, where the interesting mistakes are.
            frame[24..26].fill(0);
            let sum = packet::checksum::ipv4_header(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        worker.now = worker.now.plus(1_000_000);
        worker.process(rng.random_range(0..3), &[frame]);
        worker.tick(0);
        worker.out.transmit.iter_mut().for_each(Vec::clear);
        worker.out.events.clear();
    }
    assert!(worker.datapath.counters().dropped_total() > 1000);
}

#[test]
fn a_ue_may_not_lie_about_its_address_where_a_tunnel_serves_both_directions() {
    let mut worker = Worker::new(rib(true), |_| true);
    let mut both = (*rules(UE, to_gnb(77))).clone();
    // The first rule of the tunnel is a downlink one that this packet doesn't match.
    let mut from_core = both.pdrs[0].clone();
    from_core.id = PdrId(3);
    from_core.precedence = 0;
    from_core.source = Source::Core;
    from_core.far = 1;
    from_core.filters = [SdfFilter { protocol: Some(6), ..SdfFilter::default() }].into();
    both.pdrs = [from_core, both.pdrs[0].clone(), both.pdrs[1].clone()].into();
    worker.install(&Arc::new(both), Transition::default());
    let send = |source| gtpu(MessageType::G_PDU, teid(UE)).build(&inner(source, HOST, 20));
    worker.process(0, &[send(Ipv4Addr::new(10, 45, 0, 99))]);
    assert_eq!(worker.dropped(Reason::SpoofedSource), 1);
    worker.process(0, &[send(UE)]);
    assert_eq!(worker.sent(1).len(), 1);
}

#[test]
fn nobody_who_calls_himself_us_is_answered() {
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let echo = packet::icmpv4::Echo { request: true, identifier: 5, sequence: 6 };
    let other_own = Ipv4Addr::new(203, 0, 113, 1);
    let ping = PacketBuilder::new().ethernet(N3, GNB).ipv4(other_own, N3_IP).icmpv4_echo(echo).build(b"me");
    worker.process(0, &[ping]);
    assert_eq!(worker.dropped(Reason::MartianSource), 1);
    // A packet for a UE on its last hop, first from a host, then from what calls itself us: only the host hears of it.
    for (source, answers) in [(HOST, 1), (N3_IP, 0)] {
        let mut last_hop = downlink(64);
        last_hop[26] = 1;
        last_hop[30..34].copy_from_slice(&source.octets());
        last_hop[28..30].fill(0);
        let sum = packet::checksum::ipv4_header(&last_hop[18..38]);
        last_hop[28..30].copy_from_slice(&sum.to_be_bytes());
        worker.process(1, &[last_hop]);
        assert_eq!(worker.sent(1).len(), answers, "{source}");
    }
    assert_eq!((worker.dropped(Reason::TtlExpired), worker.dropped(Reason::MartianSource)), (1, 2));
}

/// Ten thousand changes in a second of traffic: each packet meets the rules that were in force when it came, whole, and
/// all are counted.
#[test]
fn rules_that_change_under_traffic_are_never_mixed_and_nothing_is_lost() {
    const CHANGES: u32 = 10_000;
    let mut worker = Worker::new(rib(true), |_| true);
    let mut ues: Vec<Ipv4Addr> = Vec::new();
    for host in 1..=255 {
        let ue = Ipv4Addr::new(10, 45, 1, host);
        if ues.len() < 8 && !ues.iter().any(|known| place(*known) == place(ue)) {
            ues.push(ue);
        }
    }
    // TEID and DSCP change together. Each third version has no filter: its packets take no flow.
    let tos = |version: u32| (version % 61) as u8 * 4;
    let versions = |ue: Ipv4Addr, version: u32| {
        let outer = OuterHeader { teid: Teid(version), peer: GNB_IP.into() };
        let forward = Action::Forward(Forward {
            transport_marking: Some(packet::Dscp::from_tos(tos(version))),
            ..Forward::to(Destination::Access, Some(outer))
        });
        let mut rules = (*rules(ue, forward)).clone();
        for pdr in rules.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_none() && !version.is_multiple_of(3)) {
            let ports = [(1, 2 + (version % 3) as u16)].into();
            pdr.filters = [SdfFilter { source_ports: ports, ..SdfFilter::default() }].into();
        }
        Arc::new(rules)
    };
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let packets: Vec<Vec<u8>> = ues
        .iter()
        .flat_map(|ue| (1..=3).map(move |port| (ue, port)))
        .map(|(ue, port)| {
            let plain = PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, *ue);
            plain.udp(port, 2).build(&[7; 64])
        })
        .collect();
    let mut in_force = vec![0; ues.len()];
    for version in 1..=CHANGES {
        let at = version as usize % ues.len();
        worker.install(&versions(ues[at], version), Transition::default());
        in_force[at] = version;
        worker.now = worker.now.plus(Nanos::SECOND / u64::from(CHANGES));
        worker.process(1, &packets);
        let sent = worker.sent(0);
        let known = in_force.iter().filter(|version| **version > 0).count();
        assert_eq!(sent.len(), known * 3);
        for frame in sent {
            let teid = tunnelled(&frame).1;
            let ue =
                Ipv4Addr::from(*frame.last_chunk::<{ 64 + 8 + 4 }>().unwrap().first_chunk::<4>().unwrap());
            let place = ues.iter().position(|known| *known == ue).unwrap();
            assert_eq!((teid.0, frame[15]), (in_force[place], tos(in_force[place])));
        }
    }
    let counters = worker.datapath.counters().clone();
    let missing: u64 = (1..8).map(|early| (8 - early) * 3).sum();
    assert_eq!(counters.downlink.packets + missing, u64::from(CHANGES) * packets.len() as u64);
    assert!(counters.flows.served > 10_000 && counters.flows.revised > 1000, "{:?}", counters.flows);
    let mut counted = 0;
    for ue in &ues {
        worker.apply(Command::Inspect { token: Token(2), session: place(*ue) });
        let Some(Event::Snapshot { session: Some(session), .. }) = worker.events().pop() else { panic!() };
        counted += session.pdrs.iter().map(|(_, packets, _)| packets).sum::<u64>();
    }
    assert_eq!(counted, counters.downlink.packets);
}
