//! Forwarding Policies: packets that leave by a router of their own.

use super::*;

const LAN: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);
const SERVICE: MacAddr = MacAddr([2, 9, 0, 0, 0, 40]);
const SERVICES: [&str; 2] = ["198.18.7.9", "2001:db8:7::9"];
const UE6: &str = "2001:db8:45::5";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Beside N6, a link with a router for chosen traffic: the one of policy 1 for both families, of policy 2 for IPv4. `known`: where it is.
fn steering(known: bool) -> Rib {
    let mut rib = network(None);
    learn(&mut rib);
    let lan = Interface {
        name: "lan".into(),
        port: 2,
        vlan: None,
        mac: LAN,
        mtu: 1400,
        roles: Roles { n6: true, ..Roles::default() },
        addresses: vec!["198.18.7.1/24".parse().unwrap(), "2001:db8:7::1/64".parse().unwrap()],
        network_instances: Vec::new(),
    };
    rib.add_interface(lan).unwrap();
    rib.add_route("::/0".parse().unwrap(), 1, Some(address("2001:db8:6::fe"))).unwrap();
    rib.fix(1, address("2001:db8:6::fe"), ROUTER);
    rib.fix(1, address("203.0.113.9"), ROUTER);
    rib.add_ue_pool("2001:db8:45::/48".parse().unwrap());
    rib.serve(1, 1);
    rib.serve(2, 2);
    let [v4, v6] = SERVICES.map(|service| Some((2, address(service))));
    rib.steer(vec![[v4, v6], [v4, None]]).unwrap();
    for service in SERVICES.into_iter().filter(|_| known) {
        rib.fix(2, address(service), SERVICE);
    }
    rib
}

/// A session whose packets to the data network have this policy. `filtered`: they are looked into.
fn session(policy: u16, filtered: bool) -> Arc<Rules> {
    let mut rules = (*rules(UE, to_gnb(77))).clone();
    rules.ue_ipv6 = Some("2001:db8:45::/64".parse().unwrap());
    // The FAR's own instance is that of the other link.
    let forward = Forward { policy, instance: 1, ..Forward::to(Destination::Core, None) };
    rules.fars[0].action = Action::Forward(forward);
    if filtered {
        let any = SdfFilter { tos: Some((0, 0)), ..SdfFilter::default() };
        rules.pdrs[0].filters = [any].into();
    }
    Arc::new(rules)
}

fn to(destination: &str) -> Vec<u8> {
    let destination = address(destination);
    let source = if destination.is_ipv4() { UE.into() } else { address(UE6) };
    uplink(&PacketBuilder::new().ip(source, destination).udp(1, 2).build(&[7; 40]), UE)
}

fn worker(mut rib: Rib) -> Worker {
    Worker::of(Config::new(rib.fib()), 3, |_| true)
}

#[test]
fn a_policys_packets_leave_by_its_router() {
    for filtered in [false, true] {
        let mut worker = worker(steering(true));
        for (policy, v4, v6) in [(0, 1, 1), (1, 2, 2), (2, 2, 1), (9, 1, 1)] {
            worker.install(&session(policy, filtered), Transition::default());
            // Behind a router, and on the link; judged, and then served by what was found.
            for (destination, port) in [("8.8.8.8", v4), ("203.0.113.9", v4), ("2a00::8", v6)] {
                for _ in 0..2 {
                    worker.process(0, &[to(destination)]);
                    let sent = worker.sent(port);
                    let [frame] = &sent[..] else { panic!("{destination}, policy {policy}: {sent:?}") };
                    let (mac, next) = if port == 2 { (LAN, SERVICE) } else { (N6, ROUTER) };
                    let ethernet = EthernetView::parse(frame).unwrap();
                    assert_eq!((ethernet.source(), ethernet.destination()), (mac, next));
                    let ip = packet::IpPacket::parse(ethernet.payload()).unwrap();
                    assert_eq!(ip.key.destination, address(destination));
                    assert!(worker.sent(3 - port).is_empty());
                }
            }
        }
    }
}

/// A policy says by which router packets leave on N6, not which packets do.
#[test]
fn what_does_not_leave_on_n6_does_so_by_no_policy() {
    for filtered in [false, true] {
        let mut worker = worker(steering(true));
        worker.install(&session(1, filtered), Transition::default());
        worker.install(&rules(UE2, to_gnb(88)), Transition::default());
        let refused = [
            ("192.0.2.7", Reason::NotTowardsN6),
            ("2001:db8:3::7", Reason::NotTowardsN6),
            ("198.18.7.1", Reason::OwnAddress),
            ("240.0.0.1", Reason::MartianDestination),
        ];
        for (destination, reason) in refused {
            let before = worker.dropped(reason);
            worker.process(0, &[to(destination)]);
            assert_eq!(worker.dropped(reason), before + 1, "{destination}");
        }
        worker.process(0, &[to("10.45.0.2")]);
        assert_eq!(worker.sent(0).len(), 1, "another UE");
        assert!([1, 2].iter().all(|port| worker.sent(*port).is_empty()));
    }
}

/// Downlink packets leave in their tunnel, whatever policy their FAR has; without one, they would come back for ever.
#[test]
fn a_policy_has_no_say_towards_the_ue() {
    let mut worker = worker(steering(true));
    let mut rules = (*session(1, false)).clone();
    let Action::Forward(forward) = &mut rules.fars[1].action else { panic!() };
    forward.policy = 1;
    let (prefix, place) = ("2001:db8:45::/64".parse().unwrap(), Some(rules.place));
    worker.apply(Command::AddressDirectory { prefix, session: place });
    worker.install(&Arc::new(rules.clone()), Transition::default());
    let frames =
        [(HOST.into(), UE.into()), (address("2a00::8"), address(UE6))].map(|(from, ue): (IpAddr, IpAddr)| {
            PacketBuilder::new().ethernet(N6, ROUTER).ip(from, ue).udp(1, 2).build(&[7; 40])
        });
    worker.process(1, &frames);
    let teids: Vec<_> = worker.sent(0).iter().map(|frame| tunnelled(frame).1.0).collect();
    assert_eq!(teids, [77, 77]);
    rules.fars[1].action = Action::Forward(Forward { policy: 1, ..Forward::to(Destination::N6Lan, None) });
    worker.install(&Arc::new(rules), Transition::default());
    worker.process(1, &frames);
    assert_eq!(worker.dropped(Reason::NoRoute), 2);
    assert!((0..3).all(|port| worker.sent(port).is_empty()));
}

/// The router is looked for as any other one; a packet too long for its link is not sent there; and with the next FIB the policy may be gone.
#[test]
fn a_policys_router_is_a_router_as_any() {
    let mut rib = steering(false);
    let mut worker = worker(rib.clone());
    worker.install(&session(1, false), Transition::default());
    worker.process(0, &[to("8.8.8.8")]);
    let asked = worker.sent(2);
    assert_eq!((asked.len(), worker.datapath.counters().held), (1, 1));
    assert_eq!(EthernetView::parse(&asked[0]).unwrap().ether_type(), packet::EtherType::ARP);
    rib.fix(2, address(SERVICES[0]), SERVICE);
    worker.apply(Command::Fib(rib.fib()));
    assert_eq!((worker.sent(2).len(), worker.datapath.counters().held), (1, 0), "what has waited");
    let long = PacketBuilder::new().ipv4_header(packet::ipv4::Ipv4Header {
        source: UE,
        destination: HOST,
        dont_fragment: true,
        ..Default::default()
    });
    worker.process(0, &[uplink(&long.udp(1, 2).build(&[7; 1400]), UE)]);
    assert_eq!(worker.dropped(Reason::PacketTooBig), 1);
    rib.steer(Vec::new()).unwrap();
    worker.apply(Command::Fib(rib.fib()));
    worker.sent(0);
    worker.process(0, &[to("8.8.8.8")]);
    assert_eq!(
        worker.dropped(Reason::NotTowardsN6),
        0,
        "the route's interface serves the FAR's own instance"
    );
    assert_eq!((worker.sent(1).len(), worker.sent(2).len()), (1, 0));
}

#[test]
fn a_router_has_its_familys_place() {
    let mut rib = steering(false);
    let [v4, v6] = SERVICES.map(|service| Some((2, address(service))));
    assert!(rib.steer(vec![[v6, v4]]).is_err());
    assert!(rib.steer(vec![[v4, None], [Some((7, address(SERVICES[0]))), None]]).is_err());
    assert!(rib.steer(vec![[None, v6]]).is_ok());
}
