//! Mirrored packets, byte for byte: what each target gets, which packets are chosen, and that users' packets don't change.
#![allow(clippy::unwrap_used)]

use crate::rig::*;
use datapath::Rib;
use datapath::command::{Command, Event, Token, Transition};
use datapath::inspect::{Budget, Inspection};
use datapath::mirror::{
    CaptureRx, MAX_MIRRORS, Mirror, MirrorCounters, NETWORK_MAC, Order, Scope, Target, UE_MAC, capture,
};
use datapath::{Config, Places, Reason};
use io::mem::{FrameSize, MemPool};
use packet::erspan::{Direction, Erspan, Granularity};
use packet::gtpu::MessageType;
use packet::{
    ErspanView, EtherType, EthernetView, GreView, GtpuView, IpProtocol, Ipv4View, Ipv6View, MacAddr,
    PacketBuilder, Teid, UdpView,
};
use pfcp::PdrId;
use session::rules::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::Nanos;

const PROBE: MacAddr = MacAddr([2, 9, 0, 0, 0, 5]);
const TAP: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);
const N6_IP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const PROBE_IP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
/// The port that copies leave through.
const TAP_PORT: u16 = 2;

fn probe6() -> Ipv6Addr {
    "2001:db8:6::5".parse().unwrap()
}

fn rib(probes: bool) -> Rib {
    let mut rib = network(None);
    learn(&mut rib);
    if probes {
        rib.fix(1, PROBE_IP.into(), PROBE);
        rib.fix(1, probe6().into(), PROBE);
    }
    rib
}

impl Worker {
    fn mirroring(probes: bool) -> Self {
        let mut worker = Self::of(Config::new(rib(probes).fib()), 3, |_| true);
        worker.establish(&rules(UE, 1, false));
        worker.establish(&rules(UE2, 1, false));
        worker
    }

    fn establish(&mut self, rules: &Rules) {
        self.install(&Arc::new(rules.clone()), Transition::default());
        assert!(self.out.events.drain(..).any(|event| matches!(event, Event::Applied { .. })));
    }

    fn add(&mut self, mirror: Mirror) {
        assert!(mirror.target != Target::Capture);
        self.apply(Command::Mirror(Order::Add { mirror: Arc::new(mirror), capture: None }));
    }

    fn add_capture(&mut self, mirror: Mirror, octets: usize) -> CaptureRx {
        let (sender, reader) = capture(octets);
        self.apply(Command::Mirror(Order::Add { mirror: Arc::new(mirror), capture: Some(sender) }));
        reader
    }

    fn remove(&mut self, number: u16) {
        self.apply(Command::Mirror(Order::Remove { number }));
    }

    fn counted(&self, number: u16) -> MirrorCounters {
        self.datapath.counters().mirrors[number as usize]
    }

    fn ended(&mut self) -> Vec<u16> {
        let ended = self.out.events.drain(..).filter_map(|event| match event {
            Event::MirrorsEnded { numbers } => Some(numbers),
            _ => None,
        });
        ended.flatten().collect()
    }
}

/// A session, the `generation`th in its place. `flows`: a second pair of rules with filters makes it look into packets.
fn rules(ue: Ipv4Addr, generation: u32, flows: bool) -> Rules {
    let place = place(ue);
    let mut rules = session_at(place, Some(ue), to_gnb(77));
    rules.seid = place.seid(generation);
    if flows {
        let dns = SdfFilter { protocol: Some(17), ..SdfFilter::default() };
        let first = |id, pdr: &Pdr| Pdr {
            id: PdrId(id),
            precedence: 100,
            filters: [dns.clone()].into(),
            ..pdr.clone()
        };
        let [up, down] = [&rules.pdrs[0], &rules.pdrs[1]];
        rules.pdrs = [first(3, up), first(4, down), up.clone(), down.clone()].into();
    }
    rules
}

fn of_ue(ue: Ipv4Addr) -> Scope {
    Scope::Session { place: place(ue), seid: place(ue).seid(1) }
}

fn mirror(number: u16, target: Target) -> Mirror {
    Mirror {
        number,
        scope: of_ue(UE),
        uplink: Some(Box::default()),
        downlink: Some(Box::default()),
        applications: [].into(),
        sample: 1,
        truncate: u16::MAX,
        target,
    }
}

fn to_port() -> Target {
    Target::Port { port: TAP_PORT, vlan: None, source: TAP, destination: PROBE, mtu: 1500 }
}

fn uplink(ue: Ipv4Addr, to: u16, size: usize) -> Vec<u8> {
    let inner = PacketBuilder::new().ipv4(ue, HOST).udp(4000, to).build(&vec![7; size]);
    let outer = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152);
    outer.gtpu_message(MessageType::G_PDU, teid(ue)).build(&inner)
}

fn downlink(ue: Ipv4Addr, from: u16, size: usize) -> Vec<u8> {
    PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, ue).udp(from, 4000).build(&vec![9; size])
}

/// The UE's packet as it leaves: one hop further.
fn left(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let header = packet.first_chunk_mut::<20>().unwrap();
    packet::ipv4::decrement_ttl(header).unwrap();
    packet
}

fn inner_uplink(size: usize) -> Vec<u8> {
    left(&PacketBuilder::new().ipv4(UE, HOST).udp(4000, 53).build(&vec![7; size]))
}

fn inner_downlink(size: usize) -> Vec<u8> {
    left(&PacketBuilder::new().ipv4(HOST, UE).udp(53, 4000).build(&vec![9; size]))
}

#[test]
fn a_port_gets_both_directions() {
    for flows in [false, true] {
        let mut worker = Worker::mirroring(true);
        worker.establish(&rules(UE, 1, flows));
        worker.add(mirror(0, to_port()));
        // Twice: the first packet of a flow goes another way than those that follow.
        for _ in 0..2 {
            worker.process(0, &[uplink(UE, 53, 10), uplink(UE2, 53, 10)]);
            worker.process(1, &[downlink(UE2, 53, 12), downlink(UE, 53, 12)]);
            let header = [&PROBE.0[..], &TAP.0, &[8, 0]].concat();
            let copies =
                [[&header[..], &inner_uplink(10)].concat(), [&header[..], &inner_downlink(12)].concat()];
            assert_eq!(worker.sent(TAP_PORT.into()), copies);
        }
        assert_eq!((worker.counted(0).copied.packets, worker.counted(0).copied.bytes), (4, 2 * (38 + 40)));
        assert_eq!(worker.datapath.counters().originated, 4);
        worker.remove(0);
        worker.process(0, &[uplink(UE, 53, 10)]);
        assert!(worker.sent(TAP_PORT.into()).is_empty());
    }
}

#[test]
fn a_port_may_want_a_vlan_tag_and_must_exist() {
    let mut worker = Worker::mirroring(true);
    let tagged = |port| Target::Port { port, vlan: Some(7), source: TAP, destination: PROBE, mtu: 1500 };
    worker.add(mirror(0, tagged(TAP_PORT)));
    worker.add(mirror(1, tagged(9)));
    worker.process(0, &[uplink(UE, 53, 10)]);
    let header = [&PROBE.0[..], &TAP.0, &[0x81, 0, 0, 7, 8, 0]].concat();
    assert_eq!(worker.sent(TAP_PORT.into()), [[&header[..], &inner_uplink(10)].concat()]);
    assert_eq!((worker.counted(1).no_route, worker.counted(1).copied.packets), (1, 0));
    assert_eq!(worker.sent(1).len(), 1, "the user's packet goes its way");
}

/// The payload of the outer IP packet, whose header is checked.
fn outer(frame: &[u8], v6: bool, protocol: IpProtocol) -> Vec<u8> {
    let ethernet = EthernetView::parse(frame).unwrap();
    assert_eq!((ethernet.destination(), ethernet.source()), (PROBE, N6));
    if v6 {
        let ip = Ipv6View::parse(ethernet.payload()).unwrap();
        let own: Ipv6Addr = "2001:db8:6::1".parse().unwrap();
        assert_eq!((ip.source(), ip.destination()), (own, probe6()));
        let walked = ip.next_header();
        assert_eq!(walked, protocol);
        ip.payload().to_vec()
    } else {
        let ip = Ipv4View::parse(ethernet.payload()).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!((ip.source(), ip.destination(), ip.protocol()), (N6_IP, PROBE_IP, protocol));
        ip.payload().to_vec()
    }
}

/// What leaves towards the probe, beside the user's own packet.
fn to_probe(worker: &mut Worker) -> Vec<Vec<u8>> {
    worker.sent(0);
    let mut sent = worker.sent(1);
    sent.retain(|frame| frame[..6] == PROBE.0);
    sent
}

#[test]
fn tunnels_carry_the_packet() {
    for (v6, destination) in [(false, IpAddr::V4(PROBE_IP)), (true, IpAddr::V6(probe6()))] {
        for flows in [false, true] {
            let mut worker = Worker::mirroring(true);
            worker.establish(&rules(UE, 1, flows));
            worker.add(mirror(0, Target::Gtpu { destination, teid: Teid(0xabcd) }));
            worker.add(mirror(1, Target::Gre { destination, key: Some(99) }));
            worker.add(mirror(2, Target::Gre { destination, key: None }));
            worker.add(mirror(3, Target::Erspan { destination, session: 0x155 }));
            for (round, uplinks) in [true, false, true].into_iter().enumerate() {
                let packet = if uplinks {
                    worker.process(0, &[uplink(UE, 53, 10)]);
                    inner_uplink(10)
                } else {
                    worker.process(1, &[downlink(UE, 53, 12)]);
                    inner_downlink(12)
                };
                let copies = to_probe(&mut worker);
                let [gtpu, keyed, plain, erspan] = &copies[..] else { panic!("{}", copies.len()) };
                let gtpu = outer(gtpu, v6, IpProtocol::UDP);
                let udp = UdpView::parse(&gtpu).unwrap();
                assert_eq!((udp.source_port(), udp.destination_port()), (2152, 2152));
                let gtpu = GtpuView::parse(udp.payload()).unwrap();
                assert_eq!((gtpu.teid(), gtpu.message_type()), (Teid(0xabcd), MessageType::G_PDU));
                assert_eq!((gtpu.header_len(), gtpu.payload()), (8, &packet[..]));
                let keyed = outer(keyed, v6, IpProtocol::GRE);
                assert_eq!(keyed, [&[0x20, 0, 8, 0, 0, 0, 0, 99][..], &packet].concat());
                assert_eq!(outer(plain, v6, IpProtocol::GRE), [&[0, 0, 8, 0][..], &packet].concat());
                let erspan = outer(erspan, v6, IpProtocol::GRE);
                let gre = GreView::parse(&erspan).unwrap();
                assert_eq!((gre.protocol(), gre.key()), (EtherType::ERSPAN_III, None));
                assert_eq!(gre.sequence(), Some(round as u32));
                let erspan = ErspanView::parse(gre.payload()).unwrap();
                let header = Erspan {
                    session: 0x155,
                    truncated: false,
                    direction: if uplinks { Direction::Ingress } else { Direction::Egress },
                    granularity: Granularity::Nanos100,
                    timestamp: (Nanos::SECOND / 100) as u32,
                };
                assert_eq!(erspan.header(), header);
                let (to, from) = if uplinks { (NETWORK_MAC, UE_MAC) } else { (UE_MAC, NETWORK_MAC) };
                assert_eq!(erspan.payload(), [&to.0[..], &from.0, &[8, 0], &packet].concat());
            }
        }
    }
}

/// A second opinion of what leaves in tunnels.
#[test]
fn tshark_agrees() {
    let mut worker = Worker::mirroring(true);
    let destination = PROBE_IP.into();
    worker.add(mirror(0, Target::Gtpu { destination, teid: Teid(0xabcd) }));
    worker.add(mirror(1, Target::Gre { destination, key: Some(99) }));
    worker.add(Mirror { truncate: 30, ..mirror(2, Target::Erspan { destination, session: 0x155 }) });
    worker.process(0, &[uplink(UE, 9999, 10)]);
    let mut copies = to_probe(&mut worker);
    worker.process(1, &[downlink(UE, 9999, 10)]);
    copies.extend(to_probe(&mut worker));
    let path = std::env::temp_dir().join(format!("millrace-mirrors-{}.pcapng", std::process::id()));
    let mut capture = io::pcap::CaptureWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
    let interface = capture.interface("probe").unwrap();
    copies.iter().for_each(|copy| capture.write(interface, 1, None, copy, None).unwrap());
    drop(capture);
    let mut tshark = std::process::Command::new("tshark");
    let fields = "ip.src gtp.teid gre.proto gre.key gre.sequence_number erspan.spanid erspan.truncated \
                  erspan.direction erspan.gra erspan.timestamp eth.src";
    tshark.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=;", "-o", "ip.check_checksum:TRUE"]);
    let output = tshark.args(fields.split_whitespace().flat_map(|field| ["-e", field])).output();
    let _ = std::fs::remove_file(&path);
    let output = match output {
        Ok(output) => output,
        Err(error) => return testing::skipped(format!("tshark can't be run: {error}")),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let (up, down) = ("203.0.113.1,10.45.0.1", "203.0.113.1,8.8.8.8");
    let n6 = "02:00:00:00:00:02";
    let expected = [
        format!("{up};0x0000abcd;;;;;;;;;{n6}"),
        format!("{up};;0x0800;0x00000063;;;;;;;{n6}"),
        format!("{up};;0x22eb;;0;341;1;0;1;10000000;{n6},02:4d:49:4c:55:45"),
        format!("{down};0x0000abcd;;;;;;;;;{n6}"),
        format!("{down};;0x0800;0x00000063;;;;;;;{n6}"),
        format!("{down};;0x22eb;;1;341;1;1;1;10000000;{n6},02:4d:49:4c:44:4e"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn copies_are_cut_to_what_was_asked_for_and_to_what_fits() {
    let mut worker = Worker::mirroring(true);
    let destination = PROBE_IP.into();
    worker.add(Mirror { truncate: 60, ..mirror(0, Target::Erspan { destination, session: 1 }) });
    worker.add(mirror(1, Target::Erspan { destination, session: 1 }));
    worker.add(mirror(2, Target::Gtpu { destination, teid: Teid(1) }));
    worker.add(mirror(3, Target::Gre { destination, key: None }));
    worker.add(mirror(4, to_port()));
    worker.process(0, &[uplink(UE, 53, 20)]);
    assert_eq!(to_probe(&mut worker).len(), 4);
    assert!((0..5).all(|number| worker.counted(number).truncated == 0));
    worker.sent(TAP_PORT.into());
    worker.process(0, &[uplink(UE, 53, 1472)]);
    let packet = inner_uplink(1472);
    assert_eq!(packet.len(), 1500);
    let copies = to_probe(&mut worker);
    let [asked, erspan, gtpu, gre] = &copies[..] else { panic!("{}", copies.len()) };
    for (frame, octets) in [(asked, 60), (erspan, 1500 - 20 - 8 - 12 - 14)] {
        let outer = outer(frame, false, IpProtocol::GRE);
        let erspan = ErspanView::parse(GreView::parse(&outer).unwrap().payload()).unwrap();
        assert!(erspan.header().truncated);
        assert_eq!(erspan.payload()[14..], packet[..octets]);
    }
    assert_eq!(outer(gtpu, false, IpProtocol::UDP)[16..], packet[..1500 - 36]);
    assert_eq!(outer(gre, false, IpProtocol::GRE)[4..], packet[..1500 - 24]);
    assert!(copies.iter().all(|copy| copy.len() <= 1514));
    assert_eq!(worker.sent(TAP_PORT.into())[0][14..], packet);
    let truncated: Vec<_> = (0..5).map(|number| worker.counted(number).truncated).collect();
    assert_eq!(truncated, [1, 1, 1, 1, 0]);
    assert_eq!(worker.counted(0).copied.bytes, 48 + 60);
}

#[test]
fn one_in_so_many_is_copied() {
    let mut worker = Worker::mirroring(true);
    worker.add(Mirror { sample: 3, ..mirror(0, to_port()) });
    let sizes: Vec<_> = (0..10).collect();
    worker.process(0, &sizes.iter().map(|size| uplink(UE, 53, *size)).collect::<Vec<_>>());
    let copied: Vec<_> = worker.sent(TAP_PORT.into()).iter().map(|frame| frame.len() - 14 - 28).collect();
    assert_eq!(copied, [0, 3, 6, 9]);
    assert_eq!((worker.counted(0).copied.packets, worker.counted(0).sampled_out), (4, 6));
}

#[test]
fn direction_and_filters_choose() {
    let dns = |source: u16, destination: u16| -> Option<Box<[SdfFilter]>> {
        let ports = |port: u16| if port == 0 { Box::default() } else { [(port, port)].into() };
        let (source_ports, destination_ports) = (ports(source), ports(destination));
        let filter =
            SdfFilter { protocol: Some(17), source_ports, destination_ports, ..SdfFilter::default() };
        Some([filter].into())
    };
    let mut worker = Worker::mirroring(true);
    worker.add(Mirror { downlink: None, ..mirror(0, to_port()) });
    worker.add(Mirror { uplink: None, truncate: 20, ..mirror(1, to_port()) });
    worker.add(Mirror { uplink: dns(0, 53), downlink: dns(53, 0), truncate: 24, ..mirror(2, to_port()) });
    worker.process(0, &[uplink(UE, 53, 10), uplink(UE, 80, 10)]);
    worker.process(1, &[downlink(UE, 53, 10), downlink(UE, 80, 10)]);
    let copied: Vec<_> = (0..3).map(|number| worker.counted(number).copied.packets).collect();
    assert_eq!(copied, [2, 2, 2]);
    assert_eq!(worker.sent(TAP_PORT.into()).len(), 6);
    // A later fragment has no ports; it goes with the flow that its addresses and protocol allow.
    let mut fragment = PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, UE).udp(1, 2).build(&[1; 16]);
    fragment[14 + 6..14 + 8].copy_from_slice(&[0, 4]);
    fragment[14 + 10..14 + 12].fill(0);
    let sum = packet::checksum::ipv4_header(&fragment[14..34]);
    fragment[14 + 10..14 + 12].copy_from_slice(&sum.to_be_bytes());
    worker.process(1, &[fragment]);
    assert_eq!(worker.counted(2).copied.packets, 3);
}

/// Those of an application, from the packet on by which it is taken for it.
#[test]
fn applications_choose() {
    let inspection = Some(Inspection::new(ThirdOctet, Budget { packets: 9, bytes: 9_000 }, Places::new(9)));
    let mut worker = Worker::of(Config { inspection, ..Config::new(rib(true).fib()) }, 3, |_| true);
    let mut asking = rules(UE, 1, false);
    let first = Pdr { precedence: 1, application: Some(Application(2)), ..asking.pdrs[1].clone() };
    asking.pdrs = [Pdr { id: PdrId(9), ..first }, asking.pdrs[0].clone(), asking.pdrs[1].clone()].into();
    worker.establish(&asking);
    worker.establish(&rules(UE2, 1, false));
    let of = |numbers: &[u16]| numbers.iter().map(|number| Application(*number)).collect::<Box<[_]>>();
    worker.add(Mirror { applications: of(&[1]), ..mirror(0, to_port()) });
    worker.add(Mirror { applications: of(&[3, 2]), scope: Scope::All, ..mirror(1, to_port()) });
    // What is known is not known of the first packet, and changes with the third.
    let frame = |port, third| {
        PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, UE).udp(port, 4000).build(&[9, 9, third])
    };
    let copied = |worker: &Worker| [0, 1].map(|number| worker.counted(number).copied.packets);
    worker.process(1, &[1, 2, 1].map(|third| frame(443, third)));
    assert_eq!(copied(&worker), [1, 1]);
    worker.process(1, &[2, 2, 2].map(|third| frame(443, third)));
    assert_eq!(copied(&worker), [4, 1], "its flow's, too");
    // Uplink, nothing depends on an application: packets make no flows there, and whose they are isn't known.
    let inner = PacketBuilder::new().ipv4(UE, HOST).udp(4000, 443).build(b"abc");
    let outer = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152);
    worker.process(0, &[outer.gtpu_message(MessageType::G_PDU, teid(UE)).build(&inner)]);
    assert_eq!(copied(&worker), [4, 1]);
    worker.process(1, &[2; 4].map(|third| frame(444, third)));
    worker.process(1, &[downlink(UE2, 53, 9)]);
    assert_eq!(copied(&worker), [4, 4]);
    assert_eq!([0, 1].map(|number| worker.counted(number).sampled_out), [0, 0]);
}

#[test]
fn all_sessions_at_once() {
    let mut worker = Worker::mirroring(true);
    worker.add(Mirror { scope: Scope::All, ..mirror(0, to_port()) });
    worker.process(0, &[uplink(UE, 53, 1), uplink(UE2, 53, 2)]);
    worker.process(1, &[downlink(UE2, 53, 3)]);
    assert_eq!(worker.sent(TAP_PORT.into()).len(), 3);
    // From one UE to another: once for each.
    let inner = PacketBuilder::new().ipv4(UE, UE2).udp(1, 2).build(&[7; 10]);
    let frame = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(3333, 2152);
    worker.process(0, &[frame.gtpu_message(MessageType::G_PDU, teid(UE)).build(&inner)]);
    assert_eq!(worker.sent(TAP_PORT.into()).len(), 2);
    worker.remove(0);
    worker.process(0, &[uplink(UE, 53, 1), uplink(UE2, 53, 2)]);
    assert!(worker.sent(TAP_PORT.into()).is_empty());
}

#[test]
fn what_is_dropped_or_waits_is_not_copied() {
    let mut worker = Worker::mirroring(true);
    let mut buffering = rules(UE, 1, false);
    buffering.fars[1].action = Action::Buffer { notify: false, packets: 5 };
    worker.establish(&buffering);
    worker.add(mirror(0, to_port()));
    worker.process(1, &[downlink(UE, 53, 1), downlink(UE, 53, 2)]);
    assert!(worker.sent(TAP_PORT.into()).is_empty());
    // Still mirrored behind the change of rules that lets them go.
    worker.establish(&rules(UE, 1, false));
    assert_eq!(worker.sent(TAP_PORT.into()).len(), 2);
    let mut dropping = rules(UE, 1, false);
    dropping.fars[0].action = Action::Drop;
    worker.establish(&dropping);
    worker.process(0, &[uplink(UE, 53, 1)]);
    assert!(worker.sent(TAP_PORT.into()).is_empty());
    assert_eq!(worker.datapath.counters().dropped(Reason::FarDrop), 1);
}

#[test]
fn a_mirror_ends_with_its_session() {
    let mut worker = Worker::mirroring(true);
    let destination = PROBE_IP.into();
    worker.add(mirror(0, to_port()));
    worker.add(mirror(5, Target::Gre { destination, key: None }));
    assert!(worker.ended().is_empty());
    worker.apply(Command::Remove { token: Token(2), session: place(UE) });
    assert_eq!(worker.ended(), [0, 5]);
    worker.remove(0);
    worker.remove(5);
    assert!(worker.ended().is_empty());
    // The next session in the place is another's.
    worker.establish(&rules(UE, 2, false));
    worker.process(0, &[uplink(UE, 53, 1)]);
    assert!(worker.sent(TAP_PORT.into()).is_empty());
    worker.add(mirror(1, to_port()));
    assert_eq!(worker.ended(), [1], "its session is gone");
    // One that replaces another without removal takes no mirror over.
    let seid = place(UE).seid(2);
    worker.add(Mirror { scope: Scope::Session { place: place(UE), seid }, ..mirror(2, to_port()) });
    worker.apply(Command::Install {
        token: Token(1),
        rules: Arc::new(rules(UE, 3, false)),
        transition: Transition::default(),
        query: Box::default(),
    });
    assert_eq!(worker.ended(), [2]);
    worker.process(0, &[uplink(UE, 53, 1)]);
    assert!(worker.sent(TAP_PORT.into()).is_empty());
    worker.add(Mirror { scope: Scope::All, ..mirror(MAX_MIRRORS, to_port()) });
    assert_eq!(worker.ended(), [MAX_MIRRORS], "a number that is none");
}

#[test]
fn a_mirror_moves_with_its_shard() {
    let mut worker = Worker::mirroring(true);
    worker.add(mirror(0, to_port()));
    let mut other = Worker::mirroring(true);
    let shard = other.datapath.release(place(UE).shard).unwrap();
    drop(shard);
    other.add(mirror(0, to_port()));
    assert!(other.ended().is_empty(), "another worker knows the session");
    let shard = worker.datapath.release(place(UE).shard).unwrap();
    other.datapath.adopt(shard);
    other.process(0, &[uplink(UE, 53, 1)]);
    assert_eq!(other.sent(TAP_PORT.into()).len(), 1);
}

#[test]
fn what_keeps_a_copy_from_being_made_is_counted() {
    let mut worker = Worker::mirroring(true);
    worker.add(mirror(0, to_port()));
    worker.add(mirror(1, Target::Gre { destination: Ipv6Addr::LOCALHOST.into(), key: None }));
    worker.pool = MemPool::new(0, FrameSize::Jumbo);
    worker.process(0, &[uplink(UE, 53, 1)]);
    assert_eq!(worker.sent(1).len(), 1, "the user's packet goes its way");
    assert_eq!((worker.counted(0).no_buffer, worker.counted(1).no_route), (1, 1));
    assert_eq!((worker.counted(0).lost(), worker.counted(0).copied.packets), (1, 0));
    worker.add(mirror(0, to_port()));
    assert_eq!(worker.counted(0), MirrorCounters::default(), "another mirror begins at zero");
}

#[test]
fn copies_wait_for_the_probes_address_like_others() {
    let mut worker = Worker::mirroring(false);
    let destination = PROBE_IP.into();
    worker.add(mirror(0, Target::Erspan { destination, session: 1 }));
    worker.add(mirror(1, Target::Gtpu { destination, teid: Teid(1) }));
    worker.process(0, &vec![uplink(UE, 53, 1); 20]);
    let sent = worker.sent(1);
    assert_eq!(sent.iter().filter(|frame| frame[..6] == ROUTER.0).count(), 20);
    assert_eq!(sent.len(), 21, "and one question");
    assert_eq!(worker.datapath.counters().held, 3);
    assert_eq!(worker.datapath.counters().dropped(Reason::NeighbourPending), 37);
    let mut request = [0; packet::arp::LEN];
    packet::arp::emit_request(&mut request, PROBE, PROBE_IP, N6_IP);
    worker.process(1, &[[&N6.0[..], &PROBE.0, &[8, 6], &request].concat()]);
    assert_eq!(to_probe(&mut worker).len(), 3 + 1, "with the answer");
    // From now on without waiting.
    worker.process(0, &[uplink(UE, 53, 1)]);
    assert_eq!(to_probe(&mut worker).len(), 2);
}

#[test]
fn a_capture_gets_time_direction_and_lengths() {
    let mut worker = Worker::mirroring(true);
    let mut reader = worker.add_capture(Mirror { truncate: 30, ..mirror(0, Target::Capture) }, 200);
    worker.process(0, &[uplink(UE, 53, 10)]);
    worker.now = Nanos(5_000_000_123);
    worker.process(1, &[downlink(UE, 53, 1)]);
    let first = reader.next_copy().unwrap();
    assert_eq!((first.time, first.uplink, first.length), (Nanos(Nanos::SECOND), true, 38));
    assert_eq!(first.octets, &inner_uplink(10)[..30]);
    let second = reader.next_copy().unwrap();
    assert_eq!((second.time, second.uplink, second.length), (Nanos(5_000_000_123), false, 29));
    assert_eq!(second.octets, inner_downlink(1));
    assert!(reader.next_copy().is_none());
    // 200 octets are four copies of 46.
    worker.process(0, &vec![uplink(UE, 53, 10); 6]);
    assert_eq!((worker.counted(0).copied.packets, worker.counted(0).backlog), (6, 2));
    assert_eq!(worker.sent(1).len(), 7, "users don't wait for the reader");
    assert!(!reader.is_over());
    worker.remove(0);
    assert!(reader.is_over());
    assert_eq!(std::iter::from_fn(|| reader.next_copy().map(|_| ())).count(), 4);
}

#[test]
fn users_packets_are_the_same_with_and_without() {
    let destination = PROBE_IP.into();
    let targets =
        [to_port(), Target::Gtpu { destination, teid: Teid(1) }, Target::Gre { destination, key: None }];
    let traffic: Vec<_> = (0..200usize)
        .map(|i| {
            let ue = if i % 3 == 0 { UE2 } else { UE };
            (i % 2 == 0, (i * 37) % 1400, if i % 5 == 0 { 53 } else { 80 }, ue)
        })
        .collect();
    for flows in [false, true] {
        let run = |mirrors: &[Mirror]| {
            let mut worker = Worker::mirroring(true);
            worker.establish(&rules(UE, 1, flows));
            mirrors.iter().for_each(|mirror| worker.add(mirror.clone()));
            for up in [true, false] {
                let of_direction = traffic.iter().filter(|packet| packet.0 == up);
                let frames: Vec<_> = of_direction
                    .map(
                        |(_, size, port, ue)| {
                            if up { uplink(*ue, *port, *size) } else { downlink(*ue, *port, *size) }
                        },
                    )
                    .collect();
                frames.chunks(64).for_each(|burst| worker.process(u16::from(!up), burst));
            }
            let mut n6 = worker.sent(1);
            n6.retain(|frame| frame[..6] != PROBE.0);
            let n3 = worker.sent(0);
            let counters = worker.datapath.counters();
            (n3, n6, counters.uplink, counters.downlink, counters.dropped_total())
        };
        let without = run(&[]);
        assert_eq!((without.0.len(), without.1.len()), (100, 100));
        let one: Vec<_> = targets.iter().zip(0..).map(|(target, number)| mirror(number, *target)).collect();
        assert!(without == run(&one));
        let all: Vec<_> = one.into_iter().map(|mirror| Mirror { scope: Scope::All, ..mirror }).collect();
        assert!(without == run(&all));
    }
}
