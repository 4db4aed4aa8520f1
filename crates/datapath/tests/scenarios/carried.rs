//! What applications' traffic comes to, beside a naive sum of the packets that were sent.

use super::inspected::{OF_ONE, PLENTY, asked, asking, back, inspecting, towards};
use super::*;
use counters::Count;
use datapath::carried::{ApplicationCounters, ApplicationSum};
use datapath::inspect::{Direction, Finding, Inspection, Inspector, Payload, Verdict, Why};
use datapath::{ApplicationFlows, Traffic};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use session::applications::Lineage;
use std::collections::BTreeMap;

type Sums = BTreeMap<Option<Application>, ApplicationCounters>;

/// Traffic of so many packets of 32 octets: those of [`towards`] and [`back`].
const fn of(packets: u64) -> Traffic {
    Traffic { packets, bytes: 32 * packets }
}

const ONE: Option<Application> = Some(Application(1));
const TWO: Option<Application> = Some(Application(2));

impl Worker {
    /// What it has counted, if it tells of flows as they were then or later.
    fn told_of_carried(&mut self, then: Nanos) -> Option<Sums> {
        let told = |event| match event {
            Event::Carried { at, sums, .. } if at >= then => Some(sums),
            _ => None,
        };
        let last = self.events().into_iter().filter_map(told).next_back()?;
        Some(last.iter().map(|ApplicationSum { application, counters }| (*application, *counters)).collect())
    }

    /// What it has counted by now, as whoever asks hears it.
    fn carried(&mut self) -> Sums {
        self.apply(Command::CountCarried);
        let asked = self.now;
        for _ in 0..20 {
            self.now = self.now.plus(1);
            self.tick(0);
            if let Some(sums) = self.told_of_carried(asked) {
                return sums;
            }
        }
        panic!("nothing is told")
    }

    /// Until all flows have ended.
    fn idle(&mut self) {
        for _ in 0..60 {
            self.tick(2);
        }
        assert_eq!(self.datapath.inspected().conversations, 0);
    }
}

#[test]
fn what_came_before_the_verdict_is_its_applications() {
    let mut worker = asked(inspecting(PLENTY, 10));
    // It was taken for 2 meanwhile, and its first packets went by two other rules.
    worker.process(1, &[1, 2, 1, 2, 2].map(|third| towards(1000, Some(third))));
    let mut sums = worker.carried();
    let one = ApplicationCounters { conversations: 1, downlink: of(5), ..ApplicationCounters::default() };
    assert_eq!(sums, [(ONE, one)].into());
    // It is counted while it lives, and whoever asks again hears the same.
    assert_eq!(worker.carried(), sums);
    worker.process(1, &[towards(1000, Some(1))]);
    sums.get_mut(&ONE).unwrap().downlink = of(6);
    assert_eq!(worker.carried(), sums);
    // Nobody's, and one that is under question still: as long as it is, nothing of it is counted.
    worker.process(1, &[0, 0, 3, 0].map(|third| towards(1001, Some(third))));
    worker.process(1, &[1, 2].map(|third| towards(1002, Some(third))));
    sums.insert(
        None,
        ApplicationCounters { conversations: 1, downlink: of(4), ..ApplicationCounters::default() },
    );
    assert_eq!(worker.carried(), sums);
    worker.idle();
    sums.insert(
        TWO,
        ApplicationCounters { conversations: 1, downlink: of(2), ..ApplicationCounters::default() },
    );
    sums.values_mut().for_each(|sum| sum.over = 1);
    assert_eq!(worker.carried(), sums, "what it was taken for is its verdict");
}

#[test]
fn both_directions_are_one_conversation_of_their_application() {
    let mut worker = asked(inspecting(PLENTY, 10));
    worker.process(0, &[back(1000, 2)]);
    worker.process(1, &[2; 3].map(|third| towards(1000, Some(third))));
    worker.process(0, &[back(1000, 2), back(1000, 2)]);
    // Of what is discarded nothing was carried, and a conversation of which nothing passes is none.
    worker.process(0, &[back(1001, 1), back(1001, 1), back(1001, 1)]);
    let two = ApplicationCounters { conversations: 1, uplink: of(3), downlink: of(3), over: 0 };
    let sums = worker.carried();
    assert_eq!(sums[&TWO], two);
    worker.idle();
    let sums = worker.carried();
    assert_eq!(sums[&TWO], ApplicationCounters { over: 1, ..two });
    assert_eq!(sums[&ONE].both(), of(1), "the first packet, before it was known");
}

#[test]
fn what_is_counted_is_told_unasked_now_and_then() {
    let mut worker = asked(inspecting(PLENTY, 10));
    worker.process(1, &[1; 4].map(|third| towards(1000, Some(third))));
    let told = (0..50).filter_map(|_| {
        worker.now = worker.now.plus(Nanos::SECOND / 2);
        worker.tick(0);
        worker.told_of_carried(Nanos(0))
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 1, "what isn't new is not told again");
    assert_eq!(told[0][&ONE].downlink, of(4));
}

#[test]
fn where_nobody_inspects_whoever_asks_is_answered() {
    let mut worker = asked(Config::new(rib(true).fib()));
    worker.process(1, &[1; 4].map(|third| towards(1000, Some(third))));
    assert_eq!(worker.carried(), Sums::new());
}

#[test]
fn a_session_tells_what_its_live_flows_have_carried() {
    let mut worker = asked(inspecting(PLENTY, 10));
    worker.install(&rules(UE2, to_gnb(99)), Transition::default());
    worker.process(1, &[1, 1, 1, 1].map(|third| towards(1000, Some(third))));
    worker.process(0, &[back(1002, 2), back(1002, 2), back(1002, 2)]);
    worker.process(1, &[1, 1, 1].map(|third| towards(1003, Some(third))));
    worker.process(1, &[2, 2].map(|third| towards(1001, Some(third))));
    let told = |worker: &mut Worker, ue| {
        worker.events();
        worker.apply(Command::Inspect { token: Token(5), session: place(ue) });
        let event = worker.events().pop();
        let Some(Event::Snapshot { session: Some(session), .. }) = event else { panic!("{event:?}") };
        assert!(session.all_applications);
        session.applications
    };
    let known = |application, open| Finding { application, open, why: Why(0) };
    let zero = of(0);
    let flows = |finding, flows, uplink, downlink| ApplicationFlows { finding, flows, uplink, downlink };
    let mut lines = told(&mut worker, UE);
    lines.sort_by_key(|line| line.finding.open);
    lines[..2].sort_by_key(|line| line.finding.application);
    // A flow whose rule became another one has counted from then on.
    let expected = [
        flows(known(ONE, false), 2, zero, of(5)),
        flows(known(TWO, false), 1, of(3), zero),
        flows(known(TWO, true), 1, zero, of(1)),
    ];
    assert_eq!(lines, expected);
    assert_eq!(told(&mut worker, UE2), []);
    // Nor of another session in the same shard, before it has some of its own.
    let shard = place(UE).shard;
    let other =
        (3..u32::MAX).map(|nth| Ipv4Addr::from(u32::from(UE) + nth)).find(|ue| place(*ue).shard == shard);
    let beside = session::SessionRef { shard, slot: 1 };
    let mut rules = Rules { ue_ipv4: other, place: beside, seid: beside.seid(1), ..asking() };
    rules.pdrs = rules.pdrs.iter().filter(|pdr| pdr.tunnel.is_none()).cloned().collect();
    worker.install(&Arc::new(rules), Transition::default());
    let lines = |worker: &mut Worker| {
        worker.apply(Command::Inspect { token: Token(5), session: beside });
        let Some(Event::Snapshot { session: Some(session), .. }) = worker.events().pop() else { panic!() };
        session.applications
    };
    assert_eq!(lines(&mut worker), []);
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let packet =
        PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, other.unwrap()).udp(443, 1000);
    worker.process(1, &[packet.build(&[9, 9, 1, 9])]);
    assert_eq!(lines(&mut worker), [flows(known(None, true), 1, zero, of(1))]);
}

/// Knows from the first packet on what a conversation is, by the UE's port, and is sure of it after the third.
#[derive(Debug)]
struct ByPort;

fn application_of(port: u16) -> Option<Application> {
    (port % 4 != 3).then_some(Application(port % 4))
}

impl Inspector for ByPort {
    type State = u32;
    type Room = ();

    fn room(&self, _: u64) {}

    fn step(
        &self,
        (): &mut (),
        packets: &mut u32,
        payload: &Payload<'_>,
        to: Direction,
        _: Nanos,
    ) -> Verdict {
        *packets += 1;
        let ports = payload.ip.key.ports.unwrap();
        let known = application_of(if to == Direction::Uplink { ports.source } else { ports.destination });
        match known {
            _ if *packets < 3 => Verdict::SoFar(Lineage::of(known)),
            Some(application) => Verdict::Is(application.into()),
            None => Verdict::None,
        }
    }
}

/// The first UE's port, in its tunnel, with a QFI or without: of these, each makes a flow of its own in the same conversation.
fn with_qfi(port: u16, qfi: Option<u8>) -> Vec<u8> {
    let inner = PacketBuilder::new().ipv4(UE, HOST).udp(port, 443).build(&[9; 4]);
    let packet = gtpu(MessageType::G_PDU, teid(UE));
    let Some(qfi) = qfi else { return packet.build(&inner) };
    let container = pdu_session::Uplink { qfi: Qfi::from_wire(qfi), ..Default::default() };
    packet.pdu_session(&PduSession::Uplink(container)).build(&inner)
}

/// Packets both ways, silences, changes of rules, sessions that end and come back, and shards that go from one worker to the other and back.
/// However that goes, each packet that was forwarded is in one sum, once.
#[test]
fn each_packet_is_counted_once_whatever_happens() {
    let mut kinds = [0; 6];
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let config = |flows| {
            let mut inspection = Inspection::new(ByPort, PLENTY, Places::new(1_000));
            inspection.of_all = true;
            Config { inspection: Some(inspection), flows, flow_idle: 5, ..Config::new(rib(true).fib()) }
        };
        // Sometimes there is little room, and flows make room for others.
        let flows = if seed % 3 == 0 { 4 * 512 } else { 1 << 20 };
        let mut workers = [Worker::of(config(flows), 2, |_| true), Worker::of(config(flows), 2, |_| false)];
        let mut at = 0;
        workers[at].install(&Arc::new(asking()), Transition::default());
        let mut naive = BTreeMap::<Option<Application>, [u64; 2]>::new();
        let mut before = Sums::new();
        for step in 0..300 {
            let port = 1000 + random.random_range(0..12_u16);
            let what = random.random_range(0..100);
            let worker = &mut workers[at];
            match what {
                0..80 => {
                    let uplink = what % 2 == 0;
                    let frame = if uplink {
                        with_qfi(port, [None, Some(1), Some(2)][random.random_range(0..3)])
                    } else {
                        towards(port, Some(9))
                    };
                    worker.process(u16::from(!uplink), &vec![frame; random.random_range(1..5)]);
                    let sent = worker.sent(usize::from(uplink)).len() as u64;
                    naive.entry(application_of(port)).or_default()[usize::from(uplink)] += sent;
                    kinds[0] += sent;
                }
                80..88 => workers.iter_mut().for_each(|worker| worker.tick(2)),
                88..92 => {
                    let mut rules = asking();
                    if random.random_bool(0.5) {
                        rules.pdrs[1].filters =
                            [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
                    }
                    if random.random_bool(0.3) {
                        rules.pdrs = rules.pdrs[3..].into();
                    }
                    worker.install(&Arc::new(rules), Transition::default());
                    kinds[1] += 1;
                }
                92..95 => {
                    worker.apply(Command::Remove { token: Token(9), session: place(UE) });
                    if random.random_bool(0.5) {
                        worker.tick(0);
                    }
                    let next = Rules { seid: place(UE).seid(step + 2), ..asking() };
                    worker.install(&Arc::new(next), Transition::default());
                    kinds[2] += 1;
                }
                95..98 => {
                    let shard = worker.datapath.release(place(UE).shard).unwrap();
                    at = 1 - at;
                    workers[at].datapath.adopt(shard);
                    kinds[3] += 1;
                }
                _ => {
                    let mut sums = Sums::new();
                    for (application, counters) in workers.iter_mut().flat_map(Worker::carried) {
                        sums.entry(application).or_default().merge(&counters);
                    }
                    for (application, sum) in &sums {
                        let was = before.get(application).copied().unwrap_or_default();
                        let [down, up] = naive.get(application).copied().unwrap_or_default();
                        assert!(
                            was.uplink.packets <= sum.uplink.packets && sum.uplink.packets <= up,
                            "{seed}: {application:?}: {was:?}, {sum:?}, {up} carried"
                        );
                        assert!(
                            was.downlink.packets <= sum.downlink.packets && sum.downlink.packets <= down,
                            "{seed}: {application:?}: {was:?}, {sum:?}, {down} carried"
                        );
                    }
                    before = sums;
                    kinds[4] += 1;
                }
            }
            workers.iter_mut().for_each(|worker| drop(worker.sent(0)));
        }
        kinds[5] += workers.iter().map(|worker| worker.datapath.counters().flows.evicted).sum::<u64>();
        let mut sums = Sums::new();
        for worker in &mut workers {
            worker.idle();
            for (application, counters) in worker.carried() {
                sums.entry(application).or_default().merge(&counters);
            }
        }
        for (application, sum) in &sums {
            let [down, up] = naive.remove(application).unwrap_or_default();
            assert_eq!((sum.uplink, sum.downlink), (of(up), of(down)), "{seed}: {application:?}");
            assert_eq!(sum.live(), 0, "{seed}: {application:?}: {sum:?}");
        }
        assert!(naive.values().all(|carried| *carried == [0, 0]), "{seed}: {naive:?} is in no sum");
    }
    assert!(kinds.iter().all(|many| *many > 50), "{kinds:?}");
}

/// Where applications matter to some rules only, the flows of others take the way that they always took.
#[test]
fn sessions_that_ask_for_nothing_pay_nothing() {
    let plain = rules(UE, to_gnb(OF_ONE));
    let mut filtered = (*plain).clone();
    filtered.pdrs[1].filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    for rules in [plain, Arc::new(filtered)] {
        let mut workers = [inspecting(PLENTY, 10), Config::new(rib(true).fib())]
            .map(|config| Worker::of(config, 2, |_| true));
        for worker in &mut workers {
            worker.install(&rules, Transition::default());
            assert_eq!(worker.leave_into(&vec![towards(1000, Some(1)); 6]), [OF_ONE; 6]);
            worker.process(0, &vec![back(1000, 1); 3]);
            assert_eq!(worker.datapath.inspected(), datapath::inspect::Inspected::default());
            assert_eq!(worker.datapath.counters().inspection, datapath::InspectionCounters::default());
            worker.idle();
            assert_eq!(worker.carried(), Sums::new());
        }
        let [with, without] = workers.map(|worker| worker.datapath.counters().clone());
        assert_eq!(with, without, "all counters, of flows, too");
    }
}
