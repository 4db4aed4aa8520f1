//! Flows under question: what they go by until it is known what they are, and who remembers it.

use super::*;
use crate::rig::ThirdOctet;
use datapath::export::{End, Marks, Policy, Told};
use datapath::inspect::{Budget, Inspected, Inspection};

/// Where packets of application 1 are sent, by the TEID of their tunnel; all others go into 77.
pub(super) const OF_ONE: u32 = 71;
const OF_TWO: u32 = 72;
const OTHERS: u32 = 77;

/// Downlink packets of applications 1 and 2 have tunnels of their own; uplink packets of application 1 are discarded.
pub(super) fn asking() -> Rules {
    let place = place(UE);
    let tunnel = Some(tunnel_at(place));
    let of = |id, precedence, application, source, tunnel, far| Pdr {
        precedence,
        application: Some(Application(application)),
        ..pdr(id, source, tunnel, far)
    };
    let pdrs = [
        of(11, 10, 1, Source::Access, tunnel, 4),
        of(21, 10, 1, Source::Core, None, 2),
        of(22, 11, 2, Source::Core, None, 3),
        pdr(1, Source::Access, tunnel, 0),
        pdr(2, Source::Core, None, 1),
    ];
    let actions =
        [forward(Destination::Core, None), to_gnb(OTHERS), to_gnb(OF_ONE), to_gnb(OF_TWO), Action::Drop];
    let fars = (1..).zip(actions).map(|(id, action)| Far { id: FarId(id), action });
    Rules::of(place, Some(UE), pdrs, fars.collect::<Vec<_>>())
}

/// A budget that no conversation of these tests comes to the end of.
pub(super) const PLENTY: Budget = Budget { packets: 100, bytes: 1_000_000 };

pub(super) fn inspecting(budget: Budget, places: usize) -> Config {
    let inspection = Some(Inspection::new(ThirdOctet, budget, Places::new(places)));
    Config { inspection, ..Config::new(rib(true).fib()) }
}

pub(super) fn asked(config: Config) -> Worker {
    let mut worker = Worker::of(config, 2, |_| true);
    worker.install(&Arc::new(asking()), Transition::default());
    worker
}

/// A packet to the UE's port, with this third octet; none: it is too short.
pub(super) fn towards(port: u16, third: Option<u8>) -> Vec<u8> {
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let packet = PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, UE).udp(443, port);
    third.map_or_else(|| packet.clone().build(b"xx"), |third| packet.clone().build(&[9, 9, third, 9]))
}

/// A packet of the same conversation the other way.
pub(super) fn back(port: u16, third: u8) -> Vec<u8> {
    uplink(&PacketBuilder::new().ipv4(UE, HOST).udp(port, 443).build(&[9, 9, third, 9]), UE)
}

impl Worker {
    /// The tunnel that each of these packets, one after the other, leaves in.
    pub(super) fn leave_into(&mut self, frames: &[Vec<u8>]) -> Vec<u32> {
        let one = |frame: &Vec<u8>| {
            self.process(1, std::slice::from_ref(frame));
            self.sent(0).iter().map(|frame| tunnelled(frame).1.0).collect::<Vec<_>>()
        };
        frames.iter().flat_map(one).collect()
    }

    /// Conversations that are remembered, and those of them that are under question: as many flows go by a rule so far in these tests, or fewer.
    fn known(&self) -> (usize, usize) {
        let Inspected { conversations, open, flows } = self.datapath.inspected();
        assert!(flows >= open && flows <= conversations, "{flows} of {conversations}");
        (conversations, open)
    }

    fn shown(&self) -> u64 {
        self.datapath.counters().inspection.shown
    }
}

#[test]
fn a_verdict_changes_the_rule_of_a_live_flow_between_two_packets() {
    let mut worker = asked(inspecting(PLENTY, 10));
    // So far nothing is known; the first guess is 2; it is 1. Thereafter nobody is asked any more, and the flow serves its packets.
    let thirds = [1, 2, 1, 2, 2, 3];
    let frames = thirds.map(|third| towards(1000, Some(third)));
    assert_eq!(worker.leave_into(&frames), [OTHERS, OF_TWO, OF_ONE, OF_ONE, OF_ONE, OF_ONE]);
    assert_eq!((worker.shown(), worker.datapath.counters().flows.served), (3, 3));
    assert_eq!(worker.known(), (1, 0));
    // In one burst it is the same.
    worker.process(1, &thirds.map(|third| towards(1001, Some(third))));
    let into: Vec<_> = worker.sent(0).iter().map(|frame| tunnelled(frame).1.0).collect();
    assert_eq!(into, [OTHERS, OF_TWO, OF_ONE, OF_ONE, OF_ONE, OF_ONE]);
    // What the inspector knows nothing of goes by the other rule for good.
    assert_eq!(worker.leave_into(&[0, 0, 3, 1, 1].map(|third| towards(1002, Some(third)))), [OTHERS; 5]);
    let inspection = worker.datapath.counters().inspection;
    assert_eq!((inspection.recognised, inspection.unknown, inspection.shown), (2, 1, 9));
    // The flows end after a silence, and what was known of them.
    for _ in 0..40 {
        worker.tick(2);
    }
    assert_eq!((worker.datapath.counters().flows.live(), worker.known()), (0, (0, 0)));
}

#[test]
fn both_directions_are_one_conversation() {
    let mut worker = asked(inspecting(PLENTY, 10));
    worker.process(0, &[back(1000, 1)]);
    assert_eq!(worker.leave_into(&[towards(1000, Some(0))]), [OTHERS], "the second packet: 0 is nobody's");
    worker.process(0, &[back(1000, 1)]);
    assert_eq!(worker.sent(1).len(), 1, "the first one");
    assert_eq!(worker.dropped(Reason::FarDrop), 1, "the third one was found to be 1, which may not leave");
    assert_eq!(worker.leave_into(&[towards(1000, Some(0)), towards(1000, Some(0))]), [OF_ONE; 2]);
    assert_eq!(worker.shown(), 3);
    // Another port is another conversation, and so is another UE's.
    assert_eq!(worker.leave_into(&[towards(1001, Some(0))]), [OTHERS]);
    assert_eq!(worker.known(), (2, 1));
}

#[test]
fn who_wants_to_see_more_than_there_is_gets_no_more() {
    for (budget, shown) in
        [(Budget { packets: 4, ..PLENTY }, 4), (Budget { bytes: 3 * 30 - 1, ..PLENTY }, 3), (PLENTY, 8)]
    {
        let mut worker = asked(inspecting(budget, 10));
        // Too short to say anything, each of 30 octets.
        assert_eq!(worker.leave_into(&vec![towards(1000, None); 8]), [OTHERS; 8]);
        let exhausted = u64::from(shown < 8);
        assert_eq!((worker.shown(), worker.datapath.counters().inspection.exhausted), (shown, exhausted));
        assert_eq!(worker.datapath.counters().flows.served, 7, "all but the first are served by their flow");
    }
}

#[test]
fn who_has_been_asked_about_for_longest_makes_room() {
    let mut worker = asked(inspecting(PLENTY, 2));
    assert_eq!(worker.leave_into(&[1000, 1001, 1002].map(|port| towards(port, Some(1)))), [OTHERS; 3]);
    assert_eq!(worker.known(), (3, 2));
    assert_eq!(worker.datapath.counters().inspection.given_up, 1);
    // The first one's rule is what it was so far; the others are found out.
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 4]), [OTHERS; 4]);
    assert_eq!(worker.leave_into(&vec![towards(1002, Some(1)); 2]), [OF_ONE; 2]);
    assert_eq!(worker.leave_into(&vec![towards(1001, Some(1)); 2]), [OF_ONE; 2]);
    // With no places at all, nobody is asked, and packets are forwarded all the same.
    let mut worker = asked(inspecting(PLENTY, 0));
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 4]), [OTHERS; 4]);
    let inspection = worker.datapath.counters().inspection;
    assert_eq!((inspection.refused, worker.known()), (1, (0, 0)));
    // Nor where nobody inspects.
    let mut worker = asked(Config::new(rib(true).fib()));
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 4]), [OTHERS; 4]);
    assert_eq!(worker.datapath.counters().flows.served, 3);
}

#[test]
fn a_question_outlives_new_rules_but_not_its_session() {
    let mut worker = asked(inspecting(PLENTY, 10));
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 2]), [OTHERS, OF_ONE]);
    // Other rules come in its midst, with other filters: the third packet is the third one all the same.
    let mut rules = asking();
    rules.pdrs[1].filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    worker.install(&Arc::new(rules.clone()), Transition::default());
    assert_eq!(worker.leave_into(&[towards(1000, Some(1))]), [OF_ONE]);
    assert_eq!((worker.shown(), worker.known()), (3, (1, 0)));
    // And what was found out is remembered when they change again.
    worker.install(&Arc::new(asking()), Transition::default());
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(2)); 2]), [OF_ONE; 2]);
    assert_eq!(worker.shown(), 3);
    // Also where they ask for other applications in the same order, and nothing else is new.
    let mut others = asking();
    (others.pdrs[1].application, others.pdrs[2].application) = (Some(Application(2)), Some(Application(1)));
    worker.install(&Arc::new(others), Transition::default());
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(2)); 2]), [OF_TWO; 2]);
    assert_eq!(worker.shown(), 3);
    // Rules that ask for nothing forget it with the flow's next packet.
    let plain = Rules::of(rules.place, Some(UE), rules.pdrs[3..].to_vec(), rules.fars.to_vec());
    let mut filtered = plain.clone();
    filtered.pdrs[1].filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    worker.install(&Arc::new(filtered), Transition::default());
    assert_eq!(worker.leave_into(&[towards(1000, Some(1))]), [OTHERS]);
    assert_eq!(worker.known(), (0, 0));
    // A session that comes to the same place knows nothing of the one that was there.
    worker.install(&Arc::new(asking()), Transition::default());
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 2]), [OTHERS, OF_ONE]);
    let next = Rules { seid: rules.place.seid(2), ..asking() };
    worker.install(&Arc::new(next), Transition::default());
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 3]), [OTHERS, OF_ONE, OF_ONE]);
    worker.apply(Command::Remove { token: Token(9), session: rules.place });
    assert_eq!(worker.known(), (0, 0));
}

#[test]
fn a_question_moves_with_its_shard() {
    let (mut here, mut there) =
        (asked(inspecting(PLENTY, 10)), Worker::of(inspecting(PLENTY, 10), 2, |_| false));
    assert_eq!(here.leave_into(&vec![towards(1000, Some(1)); 2]), [OTHERS, OF_ONE]);
    let shard = here.datapath.release(place(UE).shard).unwrap();
    assert_eq!(here.known(), (0, 0));
    there.datapath.adopt(shard);
    assert_eq!(there.known(), (1, 1));
    assert_eq!(there.leave_into(&vec![towards(1000, Some(1)); 3]), [OF_ONE; 3]);
    assert_eq!((there.shown(), there.known()), (1, (1, 0)));
}

#[test]
fn what_makes_room_or_is_dropped_is_forgotten_with_its_question() {
    let config = Config { flows: 2, ..inspecting(PLENTY, 10) };
    let mut worker = asked(config);
    assert_eq!(worker.leave_into(&[1000, 1001, 1002].map(|port| towards(port, Some(1)))), [OTHERS; 3]);
    assert_eq!((worker.datapath.counters().flows.evicted, worker.known()), (1, (2, 2)));
    // A conversation of which nothing passes is begun again by each of its packets.
    let mut worker = asked(inspecting(PLENTY, 10));
    let mut closed = asking();
    closed.fars[1].action = Action::Drop;
    worker.install(&Arc::new(closed), Transition::default());
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 5]), []);
    assert_eq!((worker.shown(), worker.known()), (5, (0, 0)));
    // Fragments are never shown.
    let mut worker = asked(inspecting(PLENTY, 10));
    let whole = PacketBuilder::new().ipv4(HOST, UE).udp(443, 1000).build(&[1; 64]);
    for octets in [0..32, 32..72] {
        let header = [&N6.0[..], &ROUTER.0, &[0x81, 0, 0, 100, 8, 0]].concat();
        worker.process(1, &[[header, cut(&whole, octets)].concat()]);
    }
    assert_eq!((worker.sent(0).len(), worker.shown()), (2, 0));
}

#[test]
fn all_flows_are_shown_where_somebody_wants_to_know() {
    let mut inspection = Inspection::new(ThirdOctet, PLENTY, Places::new(10));
    inspection.of_all = true;
    let config = Config { inspection: Some(inspection), ..Config::new(rib(true).fib()) };
    let mut worker = Worker::of(config, 2, |_| true);
    // A session without filters, whose flows need no looking at.
    worker.install(&rules(UE, to_gnb(OTHERS)), Transition::default());
    assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 6]), [OTHERS; 6]);
    let inspection = worker.datapath.counters().inspection;
    assert_eq!((inspection.shown, inspection.recognised), (3, 1));
    assert_eq!(worker.datapath.counters().flows.served, 3);
}

#[test]
fn a_flow_is_told_under_the_rule_that_it_went_by() {
    let policy = Policy { sample: 1, per_second: 1_000_000, active: 0, marks: Marks::NONE };
    let mut worker = asked(Config { export: Some(policy), ..inspecting(PLENTY, 10) });
    assert_eq!(
        worker.leave_into(&[1, 1, 2, 2].map(|third| towards(1000, Some(third)))),
        [OTHERS, OF_ONE, OF_TWO, OF_TWO]
    );
    let mut told = Vec::new();
    for _ in 0..20 {
        worker.tick(3);
        for event in worker.events() {
            let Event::Flows(records) = event else { continue };
            told.extend(records.iter().map(|record| (record.pdr, record.packets, record.told)));
        }
    }
    let (changed, idle) = (Told::Ended(End::ForcedEnd), Told::Ended(End::IdleTimeout));
    assert_eq!(told, [(PdrId(2), 1, changed), (PdrId(21), 1, changed), (PdrId(22), 2, idle)]);
}

/// Two UEs whose addresses differ in their prefixes only, in one shard, talk to the same server with the same ports.
#[test]
fn conversations_of_two_sessions_are_two() {
    let mut config = inspecting(PLENTY, 10);
    let mut rib = rib(true);
    rib.add_ue_pool("2001:db8:45::/48".parse().unwrap());
    rib.add_route("::/0".parse().unwrap(), 1, Some("2001:db8:6::fe".parse().unwrap())).unwrap();
    rib.fix(1, "2001:db8:6::fe".parse().unwrap(), ROUTER);
    config.fib = rib.fib();
    let mut worker = Worker::of(config, 2, |_| true);
    let prefix =
        |nth: u16| ipnet::Ipv6Net::new(Ipv6Addr::new(0x2001, 0xdb8, 0x45, nth, 0, 0, 0, 0), 64).unwrap();
    let shard = |nth| place(IpAddr::from(prefix(nth).addr())).shard;
    let second = (2..=u16::MAX).find(|nth| shard(*nth) == shard(1)).unwrap();
    let mut ues = Vec::new();
    for (slot, nth) in [(0, 1), (1, second)] {
        let place = session::SessionRef { shard: shard(nth), slot };
        let mut rules = asking();
        let at = session::TeidRef { shard: place.shard, slot: 3 + slot as u16 };
        let tunnel = Tunnel { teid: at.teid(1), place: at };
        for pdr in rules.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_some()) {
            pdr.tunnel = Some(tunnel);
        }
        let rules = Rules { place, seid: place.seid(1), ue_ipv4: None, ue_ipv6: Some(prefix(nth)), ..rules };
        worker.install(&Arc::new(rules), Transition::default());
        ues.push(Ipv6Addr::from(u128::from(prefix(nth).addr()) | 7));
    }
    let host: Ipv6Addr = "2a00::8".parse().unwrap();
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let to = |ue: Ipv6Addr, third| {
        let packet = PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv6(host, ue).udp(443, 1000);
        packet.build(&[9, 9, third, 9])
    };
    let both = [to(ues[0], 1), to(ues[1], 2)];
    assert_eq!(worker.leave_into(&both), [OTHERS; 2]);
    assert_eq!(worker.known(), (2, 2));
    assert_eq!(worker.leave_into(&both), [OF_ONE, OF_TWO]);
    assert_eq!(worker.leave_into(&both), [OF_ONE, OF_TWO]);
    assert_eq!((worker.known(), worker.shown()), ((2, 0), 6));
}

/// What has been found out of a flow was paid for, and would be lost with its packets.
#[test]
fn in_overload_flows_under_question_go_on_in_place_of_new_ones() {
    let mut worker = asked(inspecting(PLENTY, 200));
    // Busy for long with a flow that has been asked about enough.
    for _ in 0..40 {
        worker.datapath.queue_fills(1, Some(0));
        worker.process(1, &vec![towards(999, None); 64]);
    }
    let before = worker.shown();
    worker.sent(0);
    let of = |ports: std::ops::Range<u16>| ports.map(|port| towards(port, Some(1))).collect::<Vec<_>>();
    let (begun, others) = (of(1000..1064), of(1064..1128));
    let mut full = |burst: &[Vec<u8>], quarters| {
        worker.datapath.queue_fills(1, Some(quarters));
        worker.process(1, burst);
        (worker.sent(0).len(), worker.shown() - before)
    };
    assert_eq!(full(&begun, 0), (64, 64));
    assert_eq!(full(&begun, 4), (64, 128));
    assert_eq!(full(&others, 2), (8, 136));
    assert_eq!(full(&others, 4), (8, 144), "eight go on, in place of the one that could begin");
    assert_eq!(full(&of(1128..1192), 2), (8, 152), "nobody is under question: eight begin");
    assert_eq!(full(&of(1132..1196), 2), (8, 160), "four go on, so four begin");
    assert_eq!(full(&begun, 4), (64, 224));
    assert_eq!(full(&begun, 4), (64, 224), "they were found out");
    assert_eq!(worker.dropped(Reason::NewFlowInOverload), 4 * 56);
}
