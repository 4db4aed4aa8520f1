//! Who is where on the links: asked, heard, waited for and given up.

use super::*;
use packet::{ArpView, Icmpv6View, Ipv6View, arp, ndp};

#[test]
fn arp_is_answered_and_learned_from() {
    let mut worker = Worker::new(rib(false), |_| true);
    let mut request = [0; arp::LEN];
    arp::emit_request(&mut request, GNB, GNB_IP, N3_IP);
    let frame = [&[0xff; 6][..], &GNB.0, &[8, 6], &request].concat();
    worker.process(0, std::slice::from_ref(&frame));
    let sent = worker.sent(0);
    let ethernet = EthernetView::parse(&sent[0]).unwrap();
    assert_eq!((ethernet.destination(), ethernet.source()), (GNB, N3));
    let reply = ArpView::parse(ethernet.payload()).unwrap();
    assert_eq!(reply.operation(), arp::Operation::Reply);
    assert_eq!((reply.sender_mac(), reply.sender_ip(), reply.target_ip()), (N3, N3_IP, GNB_IP));
    let events = worker.events();
    assert!(events.is_empty(), "nobody asked for it: {events:?}");
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker.process(1, &[downlink(10)]);
    assert_eq!(tunnelled(&worker.sent(0)[0]).0, GNB_IP, "known");
    // Somebody else's business.
    arp::emit_request(&mut request, GNB, GNB_IP, Ipv4Addr::new(192, 0, 2, 99));
    worker.process(0, &[[&[0xff; 6][..], &GNB.0, &[8, 6], &request].concat()]);
    assert!(worker.sent(0).is_empty());
    assert_eq!(worker.datapath.counters().consumed, 1);
    // Who is not on the link is no neighbour, and hears nothing; nor is who claims an address of another link.
    for stranger in [HOST, ROUTER_IP] {
        arp::emit_request(&mut request, GNB, stranger, N3_IP);
        worker.process(0, &[[&[0xff; 6][..], &GNB.0, &[8, 6], &request].concat()]);
    }
    assert!(worker.sent(0).is_empty());
    assert_eq!(worker.dropped(Reason::ForeignNeighbour), 2);
}

/// The ARP frame in which a station answers us.
fn arp_answer(mac: MacAddr, address: Ipv4Addr, own: (MacAddr, Ipv4Addr)) -> Vec<u8> {
    let (mut request, mut answer) = ([0; arp::LEN], [0; arp::LEN]);
    arp::emit_request(&mut request, own.0, own.1, address);
    arp::emit_reply(&mut answer, mac, &ArpView::parse(&request).unwrap());
    [&own.0.0[..], &mac.0, &[8, 6], &answer].concat()
}

/// A tunnel's far end and the router are asked whether they are still there, and what is sent follows them.
#[test]
fn who_moves_without_a_word_is_found_again() {
    let mut worker = Worker::new(network(None), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let plain = PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, UE).udp(1, 2).build(&[7; 9]);
    let up = uplink(&inner(UE, HOST, 8), UE);
    worker.process(1, std::slice::from_ref(&plain));
    worker.process(0, std::slice::from_ref(&up));
    let moved = MacAddr([2, 9, 0, 0, 0, 0x55]);
    for mac in [(GNB, ROUTER), (moved, moved)] {
        // Asked alone at the old place, then on the whole link: a minute at most.
        let mut questions = [0; 2];
        for _ in 0..70 {
            for port in [0, 1] {
                let asked = worker.sent(port).iter().filter(|frame| frame[12..14] == [8, 6]).count();
                questions[port] += asked;
                let here = if port == 0 { mac.0 } else { mac.1 };
                let (address, own) = if port == 0 {
                    (GNB_IP, (N3, N3_IP))
                } else {
                    (ROUTER_IP, (N6, [203, 0, 113, 1].into()))
                };
                if asked > 0 && (mac.0 == GNB || questions[port] > 3) {
                    worker.process(port as u16, &[arp_answer(here, address, own)]);
                }
            }
            worker.tick(1);
        }
        assert!(questions.iter().all(|asked| (1..=8).contains(asked)), "{questions:?}");
        for port in [0, 1] {
            worker.sent(port);
        }
        worker.process(1, std::slice::from_ref(&plain));
        worker.process(0, std::slice::from_ref(&up));
        let to = |frames: Vec<Vec<u8>>| EthernetView::parse(&frames[0]).unwrap().destination();
        assert_eq!((to(worker.sent(0)), to(worker.sent(1))), mac);
    }
    assert_eq!(worker.datapath.counters().held, 0);
    assert_eq!(worker.dropped(Reason::NeighbourUnreachable), 0);
    // Nobody was told but by who answered.
    assert!(worker.events().iter().all(|event| !matches!(event, Event::NeighbourMoved { .. })));
}

/// A server on N6's own link: its flows are served like others', follow it to another MAC address, and wait when it is gone.
#[test]
fn a_host_on_the_link_is_served_like_one_behind_a_router() {
    let mut rib = network(None);
    rib.add_ue_pool("2001:db8:45::/48".parse().unwrap());
    rib.fix(0, GNB_IP.into(), GNB);
    let mut worker = Worker::new(rib, |_| true);
    let mut rules = (*rules(UE, to_gnb(77))).clone();
    rules.ue_ipv6 = Some("2001:db8:45::/64".parse().unwrap());
    // Looked up flow by flow, so that it is counted what a record served.
    rules.pdrs[0].filters = [SdfFilter { source_ports: [(1, 9)].into(), ..SdfFilter::default() }].into();
    worker.install(&Arc::new(rules), Transition::default());
    let server = Ipv4Addr::new(203, 0, 113, 77);
    let (server6, ue6): (Ipv6Addr, Ipv6Addr) =
        ("2001:db8:6::77".parse().unwrap(), "2001:db8:45::5".parse().unwrap());
    let up4 = uplink(&inner(UE, server, 8), UE);
    let up6 = uplink(&PacketBuilder::new().ipv6(ue6, server6).udp(1, 2).build(&[7; 8]), UE);
    worker.process(0, &[up4.clone(), up6.clone()]);
    assert_eq!(worker.sent(1).len(), 2, "two questions");
    let mac = MacAddr([2, 9, 0, 0, 0, 0x77]);
    let mut advertisement = Vec::new();
    let told = ndp::NeighbourAdvertisement { target: server6, router: false, solicited: true, replace: true };
    ndp::emit_neighbour_advertisement(&mut advertisement, "2001:db8:6::1".parse().unwrap(), mac, &told);
    let answer6 = [&N6.0[..], &mac.0, &[0x86, 0xdd], &advertisement].concat();
    let own = (N6, Ipv4Addr::new(203, 0, 113, 1));
    worker.process(1, &[arp_answer(mac, server, own), answer6]);
    assert_eq!(worker.sent(1).len(), 2);
    let to = |worker: &mut Worker, packet: &Vec<u8>| {
        worker.process(0, std::slice::from_ref(packet));
        let sent = worker.sent(1);
        assert_eq!(sent.len(), 1);
        EthernetView::parse(&sent[0]).unwrap().destination()
    };
    for _ in 0..10 {
        assert_eq!([&up4, &up6].map(|packet| to(&mut worker, packet)), [mac; 2]);
    }
    assert_eq!(worker.datapath.counters().flows.served, 20);
    // Both at the same address; it moves.
    worker.tick(2);
    worker.sent(1);
    let moved = MacAddr([2, 9, 0, 0, 0, 0x78]);
    worker.process(1, &[arp_answer(moved, server, own)]);
    assert_eq!([&up4, &up6].map(|packet| to(&mut worker, packet)), [moved, mac]);
    assert_eq!(worker.datapath.counters().flows.served, 22);
    // It is sent to all the time, by records alone, and so it is asked, and at last given up.
    let mut asked = 0;
    for _ in 0..60 {
        worker.process(0, std::slice::from_ref(&up4));
        worker.tick(1);
        asked += worker.sent(1).iter().filter(|frame| frame[12..14] == [8, 6]).count();
    }
    assert!(asked >= 4, "asked alone, then looked for: {asked}");
    worker.sent(1);
    worker.process(0, std::slice::from_ref(&up4));
    assert!(worker.sent(1).iter().all(|frame| frame[12..14] == [8, 6]));
}

#[test]
fn packets_wait_for_an_unknown_neighbour() {
    let mut worker = Worker::new(rib(false), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker.process(1, &[downlink(10), downlink(11)]);
    assert!(worker.events().iter().any(|e| matches!(e, Event::Unresolved { interface: 0, .. })));
    let asked = worker.sent(0);
    assert_eq!(asked.len(), 1, "one question for two packets");
    let question = ArpView::parse(&asked[0][14..]).unwrap();
    assert_eq!((question.target_ip(), question.sender_mac()), (GNB_IP, N3));
    assert_eq!(worker.datapath.counters().held, 2);
    // Nobody is at a group's address, at none, or at our own.
    for nobody in [MacAddr([0xff; 6]), MacAddr([1, 0, 0x5e, 0, 0, 1]), MacAddr::ZERO, N3] {
        worker.process(0, &[arp_answer(nobody, GNB_IP, (N3, N3_IP))]);
        assert!(worker.sent(0).is_empty(), "{nobody} was believed");
    }
    worker.process(0, &[arp_answer(GNB, GNB_IP, (N3, N3_IP))]);
    let sent = worker.sent(0);
    assert_eq!(sent.len(), 2);
    for (frame, size) in sent.iter().zip([10, 11]) {
        assert_eq!(EthernetView::parse(frame).unwrap().destination(), GNB);
        let (to, teid, kind, packet) = tunnelled(frame);
        assert_eq!((to, teid, kind, packet.len()), (GNB_IP, Teid(77), MessageType::G_PDU, 28 + size));
    }
    worker.process(1, &[downlink(12)]);
    assert_eq!(worker.sent(0).len(), 1, "known from now on");
}

#[test]
fn silence_drops_what_waited() {
    let mut worker = Worker::new(rib(false), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker.process(1, &vec![downlink(10); 40]);
    assert_eq!(worker.dropped(Reason::NeighbourPending), 37);
    for _ in 0..8 {
        worker.tick(1);
    }
    assert_eq!(worker.sent(0).len(), 3, "three questions");
    assert_eq!(worker.dropped(Reason::NeighbourUnreachable), 3);
    assert_eq!(worker.datapath.counters().held, 0);
}

#[test]
fn neighbour_solicitations_and_pings_are_answered() {
    let mut worker = Worker::new(rib(true), |_| true);
    let own: Ipv6Addr = "2001:db8:3::1".parse().unwrap();
    let asker: Ipv6Addr = "2001:db8:3::7".parse().unwrap();
    let mut solicitation = Vec::new();
    ndp::emit_neighbour_solicitation(&mut solicitation, asker, GNB, own);
    let group = ndp::multicast_mac(ndp::solicited_node(own));
    worker.process(0, &[[&group.0[..], &GNB.0, &[0x86, 0xdd], &solicitation].concat()]);
    let sent = worker.sent(0);
    let ip = Ipv6View::parse(&sent[0][14..]).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    assert!(icmp.checksum_ok(&ip));
    let Ok(Some(ndp::Message::NeighbourAdvertisement { neighbour, options })) = ndp::parse(&ip, &icmp) else {
        panic!("not an advertisement")
    };
    assert_eq!((neighbour.target, options.target_mac()), (own, Some(N3)));
    assert!(worker.events().is_empty(), "nobody asked");
    // From beyond the link nobody asks here.
    solicitation.clear();
    ndp::emit_neighbour_solicitation(&mut solicitation, "2001:db8:77::1".parse().unwrap(), GNB, own);
    worker.process(0, &[[&group.0[..], &GNB.0, &[0x86, 0xdd], &solicitation].concat()]);
    assert_eq!((worker.sent(0).len(), worker.dropped(Reason::ForeignNeighbour)), (0, 1));

    let echo = packet::icmpv4::Echo { request: true, identifier: 5, sequence: 6 };
    let ping = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).icmpv4_echo(echo).build(b"hello");
    worker.process(0, &[ping]);
    let sent = worker.sent(0);
    let ip = Ipv4View::parse(&sent[0][14..]).unwrap();
    assert_eq!((ip.source(), ip.destination()), (N3_IP, GNB_IP));
    let icmp = packet::Icmpv4View::parse(ip.payload()).unwrap();
    assert!(icmp.checksum_ok());
    assert_eq!(icmp.echo(), Some(packet::icmpv4::Echo { request: false, ..echo }));
}

/// Whoever asks us is a neighbour (RFC 4861 §7.2.3), if he is answered: a flood of questions turns over no table.
#[test]
fn a_flood_of_questions_makes_no_more_neighbours_than_it_gets_answers() {
    for v6 in [false, true] {
        let config = Config { icmp_rate: 100, ..Config::new(rib(true).fib()) };
        let mut worker = Worker::of(config, 2, |_| true);
        let question = |host: u16| {
            let mac = MacAddr([2, 9, 9, 9, (host >> 8) as u8, host as u8]);
            if v6 {
                let sender = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 7, host);
                let own = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
                let mut packet = Vec::new();
                ndp::emit_neighbour_solicitation(&mut packet, sender, mac, own);
                let group = ndp::multicast_mac(ndp::solicited_node(own));
                [&group.0[..], &mac.0, &[0x86, 0xdd], &packet].concat()
            } else {
                let mut request = [0; arp::LEN];
                arp::emit_request(&mut request, mac, Ipv4Addr::new(192, 0, 2, host as u8), N3_IP);
                [&[0xff; 6][..], &mac.0, &[8, 6], &request].concat()
            }
        };
        worker.process(0, &(10..110).map(question).collect::<Vec<_>>());
        assert_eq!(worker.sent(0).len(), 10, "a tenth of a second's answers");
        worker.apply(Command::Neighbours { token: Token(7), from: 0 });
        let Some(Event::Neighbours { seen, .. }) = worker.events().pop() else { panic!() };
        let made = seen.iter().filter(|seen| seen.mac.is_some_and(|mac| mac.0[1..4] == [9; 3])).count();
        assert_eq!(made, 10);
        assert_eq!(worker.dropped(Reason::ErrorRateLimited), 90);
    }
}
