//! What is told of single flows.

use super::*;
use datapath::export::{End, FlowRecord, Marks, Policy, Told};
use packet::IpProtocol;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

const ALL: Policy = Policy { sample: 1, per_second: 1_000_000, active: 0, marks: Marks::NONE };

/// A worker that tells of the flows of `with_flows`.
fn telling(policy: Policy, limits: impl FnOnce(&mut Config)) -> (Worker, impl Fn(u16) -> Vec<u8>) {
    with_flows(move |config| {
        config.export = Some(policy);
        limits(config);
    })
}

impl Worker {
    /// All timers that are due within some seconds, and what is told meanwhile.
    fn flows_told(&mut self, seconds: u64) -> Vec<FlowRecord> {
        let mut records = Vec::new();
        for _ in 0..=seconds * 100 {
            self.now = self.now.plus(Nanos::SECOND / 100);
            self.datapath.tick(self.now, &mut self.out, &mut self.pool);
            records.append(&mut self.records());
        }
        records
    }

    fn records(&mut self) -> Vec<FlowRecord> {
        let flows = |event| match event {
            Event::Flows(records) => Some(records.into_vec()),
            _ => None,
        };
        self.out.events.drain(..).filter_map(flows).flatten().collect()
    }

    /// What is told when it stops.
    fn closed(&mut self) -> Vec<FlowRecord> {
        while self.datapath.close_flows(self.now, &mut self.out.events) {}
        self.records()
    }
}

#[test]
fn a_flow_that_ends_is_told_with_all_that_it_carried() {
    let (mut worker, flow) = telling(ALL, |config| config.flow_idle = 2);
    let begun = worker.now;
    worker.process(1, &[flow(1000)]);
    worker.now = worker.now.plus(Nanos::SECOND);
    worker.process(1, &[flow(1000), flow(1000)]);
    let last = worker.now;
    assert!(worker.flows_told(1).is_empty(), "it lives");
    let records = worker.flows_told(2);
    let [record] = &records[..] else { panic!("{records:?}") };
    let tuple = record.tuple;
    assert_eq!((tuple.source, tuple.destination, tuple.ports), (HOST.into(), UE.into(), Some((1000, 2))));
    assert_eq!((tuple.protocol, tuple.qfi), (IpProtocol::UDP, None));
    assert_eq!((record.told, record.seid), (Told::Ended(End::IdleTimeout), place(UE).seid(1)));
    assert_eq!((record.pdr, record.uplink), (PdrId(2), false));
    assert_eq!((record.packets, record.bytes), (3, 3 * (64 + 28)));
    let near = |at: Nanos, what: Nanos| what.since(at) < 1 << 24 && at <= what;
    assert!(near(record.first, begun) && near(record.last, last), "{record:?}");
    let flows = worker.datapath.counters().flows;
    assert_eq!((flows.expired, flows.exported, flows.unexported, flows.live()), (1, 1, 0, 0));
}

#[test]
fn what_makes_room_is_told_and_what_lives_at_the_end_too() {
    let (mut worker, flow) = telling(ALL, |config| {
        config.flows = 8;
    });
    for port in 1..=20 {
        worker.process(1, &[flow(port)]);
        worker.now = worker.now.plus(Nanos::SECOND / 10);
    }
    let evicted = worker.flows_told(0);
    assert_eq!(evicted.len(), 12);
    assert!(evicted.iter().all(|record| record.told == Told::Ended(End::LackOfResources)));
    let closed = worker.closed();
    assert!(closed.iter().all(|record| record.told == Told::Ended(End::ForcedEnd)));
    let mut ports: Vec<_> =
        evicted.iter().chain(&closed).filter_map(|record| Some(record.tuple.ports?.0)).collect();
    ports.sort_unstable();
    assert_eq!(ports, (1..=20).collect::<Vec<_>>(), "each once");
    assert!(worker.closed().is_empty(), "each once");
    assert_eq!(worker.datapath.counters().flows.live(), 0);
    worker.datapath.abandon_flows();
    assert_eq!(worker.datapath.counters().flows.unexported, 0);
}

#[test]
fn a_worker_that_has_no_time_to_tell_says_of_how_many_flows() {
    let (mut worker, flow) = telling(ALL, |_| ());
    worker.process(1, &(1..=20).map(&flow).collect::<Vec<_>>());
    worker.datapath.abandon_flows();
    let flows = worker.datapath.counters().flows;
    assert_eq!((flows.closed, flows.unexported, flows.live()), (20, 20, 0));
    assert!(worker.closed().is_empty());
}

#[test]
fn a_session_that_is_gone_is_named_although_another_one_is_in_its_place() {
    let (mut worker, flow) = telling(ALL, |config| config.flow_idle = 2);
    worker.process(1, &[flow(1), flow(2)]);
    worker.apply(Command::Remove { token: Token(1), session: place(UE) });
    let mut next = (*rules(UE, to_gnb(78))).clone();
    next.seid = place(UE).seid(2);
    for pdr in next.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_none()) {
        pdr.id = PdrId(9);
        pdr.filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    }
    worker.install(&Arc::new(next), Transition::default());
    // One of the flows goes on: it is the new session's from now on, and a record for each says so.
    worker.process(1, &[flow(2), flow(2)]);
    let mut records = worker.flows_told(4);
    records.sort_by_key(|record| (record.tuple.ports, record.pdr.0));
    let brief: Vec<_> =
        records.iter().map(|r| (r.tuple.ports.unwrap().0, r.seid, r.pdr.0, r.packets)).collect();
    let (former, present) = (place(UE).seid(1), place(UE).seid(2));
    assert_eq!(brief, [(1, former, 2, 1), (2, former, 2, 1), (2, present, 9, 2)]);
    let ends: Vec<_> = records.iter().map(|record| record.told).collect();
    let (forced, idle) = (Told::Ended(End::ForcedEnd), Told::Ended(End::IdleTimeout));
    assert_eq!(ends, [forced, forced, idle]);
    let session = worker.datapath.shard(place(UE).shard).unwrap().session(0).unwrap();
    assert_eq!(session.flows, 0);
}

#[test]
fn records_have_a_rate_a_sample_and_a_limit() {
    let many: Vec<u16> = (1..=1000).collect();
    let run = |policy: Policy| {
        let (mut worker, flow) = telling(policy, |config| config.flow_idle = 1);
        for ports in many.chunks(50) {
            worker.process(1, &ports.iter().map(|port| flow(*port)).collect::<Vec<_>>());
        }
        let records = worker.flows_told(16);
        let flows = worker.datapath.counters().flows;
        assert_eq!(flows.expired, 1000);
        assert_eq!(flows.exported, records.len() as u64);
        assert_eq!(flows.exported + flows.unexported + flows.unsampled, 1000);
        flows
    };
    let slow = run(Policy { per_second: 100, ..ALL });
    assert!((10..990).contains(&slow.exported) && slow.unsampled == 0, "{slow:?}");
    let some = run(Policy { sample: 10, ..ALL });
    assert!((50..200).contains(&some.exported) && some.unexported == 0, "{some:?}");
    // More at once than may wait for a tick: flows that make room for others.
    let (mut worker, flow) = telling(ALL, |config| {
        (config.flows, config.flows_per_session) = (1, 10_000);
    });
    for port in 0..6000 {
        worker.process(1, &[flow(port)]);
    }
    let records = worker.flows_told(0);
    let flows = worker.datapath.counters().flows;
    assert_eq!((flows.evicted, flows.exported, records.len()), (5999, 4096, 4096));
    assert_eq!(flows.unexported, 5999 - 4096);
}

#[test]
fn a_watermark_is_told_once_and_one_that_is_set_late_at_once() {
    let marks = Marks { packets: 3, ..Marks::NONE };
    // Watermarks are beside the rate, and of all flows.
    let policy = Policy { marks, sample: 1_000_000, per_second: 1, ..ALL };
    let (mut worker, flow) = telling(policy, |config| config.flow_idle = 600);
    worker.process(1, &vec![flow(1); 10]);
    worker.process(1, &vec![flow(2); 2]);
    let brief = |records: Vec<FlowRecord>| {
        let mut brief: Vec<_> =
            records.iter().map(|r| (r.tuple.ports.unwrap().0, r.told, r.packets)).collect();
        brief.sort_by_key(|(port, ..)| *port);
        brief
    };
    assert_eq!(brief(worker.flows_told(1)), [(1, Told::Packets(3), 3)]);
    // Of bytes nobody was told yet, and both are beyond; of packets flow 1 was told, and flow 2 comes to it.
    worker.apply(Command::FlowMarks(Marks { bytes: 150, packets: 2 }));
    assert_eq!(
        brief(worker.flows_told(1)),
        [(1, Told::Bytes(150), 10), (2, Told::Bytes(150), 2), (2, Told::Packets(2), 2)]
    );
    worker.process(1, &[flow(1), flow(2), flow(3)]);
    assert!(worker.flows_told(1).is_empty());
    worker.process(1, &[flow(3)]);
    assert_eq!(brief(worker.flows_told(1)), [(3, Told::Bytes(150), 2), (3, Told::Packets(2), 2)]);
    let flows = worker.datapath.counters().flows;
    assert_eq!((flows.marked, flows.marked_late), (6, 3));
    // Without a mark nothing is told, and the first packet may reach one.
    worker.apply(Command::FlowMarks(Marks::NONE));
    worker.process(1, &vec![flow(4); 9]);
    worker.apply(Command::FlowMarks(Marks { packets: 1, ..Marks::NONE }));
    worker.process(1, &[flow(5)]);
    assert_eq!(brief(worker.flows_told(1)), [(4, Told::Packets(1), 9), (5, Told::Packets(1), 1)]);
}

#[test]
fn a_flow_that_goes_on_is_told_of_each_time_that_the_timeout_has_passed() {
    let (mut worker, flow) = telling(Policy { active: 10 * Nanos::SECOND, ..ALL }, |_| {});
    let mut records = Vec::new();
    for _ in 0..45 {
        worker.process(1, &(1..=20).map(&flow).collect::<Vec<_>>());
        records.append(&mut worker.flows_told(1));
    }
    for port in 1..=20 {
        let of: Vec<_> = records.iter().filter(|record| record.tuple.ports.unwrap().0 == port).collect();
        assert!((3..=5).contains(&of.len()), "flow {port}: {}", of.len());
        assert!(of.iter().all(|record| record.told == Told::Active));
        assert!(
            of.is_sorted_by(|a, b| a.packets < b.packets && a.first == b.first),
            "counts of the whole life"
        );
    }
    let closed = worker.closed();
    assert!(closed.len() == 20 && closed.iter().all(|record| record.packets == 45));
    assert_eq!(worker.datapath.counters().flows.interim, records.len() as u64);
}

/// Two rules, whose border moves; sessions that come and go in one place; flows that are evicted, expire and are told
/// of in between: what the ended flows carried and what the living ones have is what each rule has counted.
#[test]
fn ended_and_living_flows_add_up_to_what_rules_counted() {
    for seed in 0..20 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut worker, flow) = telling(Policy { active: Nanos::SECOND, ..ALL }, |config| {
            (config.flow_idle, config.flows) = (2, 12);
        });
        let version = |border: u16, generation: u32| {
            let mut rules = (*rules(UE, to_gnb(77))).clone();
            rules.seid = place(UE).seid(generation);
            let all = rules.pdrs.iter().find(|pdr| pdr.tunnel.is_none()).unwrap().clone();
            let low = SdfFilter { source_ports: [(1, border)].into(), ..SdfFilter::default() };
            let first = Pdr { id: PdrId(3), precedence: 10, filters: [low].into(), ..all };
            rules.pdrs = std::iter::once(first).chain(rules.pdrs.iter().cloned()).collect();
            Arc::new(rules)
        };
        let (mut counted, mut told) = (BTreeMap::new(), BTreeMap::new());
        let mut generation = 1;
        worker.install(&version(8, generation), Transition::default());
        let mut tell = |records: Vec<FlowRecord>| {
            for record in records.iter().filter(|record| matches!(record.told, Told::Ended(_))) {
                let sum: &mut (u64, u64) = told.entry((record.seid, record.pdr)).or_default();
                *sum = (sum.0 + record.packets, sum.1 + record.bytes);
            }
        };
        let mut count = |worker: &mut Worker| {
            worker.apply(Command::Inspect { token: Token(2), session: place(UE) });
            let events = worker.events();
            let mut others = Vec::new();
            for event in events {
                match event {
                    Event::Snapshot { session: Some(session), .. } => {
                        for (pdr, packets, bytes) in
                            session.pdrs.iter().filter(|(_, packets, _)| *packets > 0)
                        {
                            counted.insert((session.seid, *pdr), (*packets, *bytes));
                        }
                    }
                    other => others.push(other),
                }
            }
            worker.out.events = others;
        };
        for _ in 0..400 {
            match rng.random_range(0..20) {
                0 => {
                    let next = version(rng.random_range(1..16), generation);
                    worker.install(&next, Transition::default());
                }
                1 => {
                    count(&mut worker);
                    generation += 1;
                    if rng.random() {
                        worker.apply(Command::Remove { token: Token(1), session: place(UE) });
                    }
                    worker.install(&version(rng.random_range(1..16), generation), Transition::default());
                }
                2..5 => tell(worker.flows_told(rng.random_range(0..3))),
                _ => {
                    let packets = rng.random_range(1..20);
                    let packets: Vec<_> = (0..packets).map(|_| flow(rng.random_range(1..16))).collect();
                    worker.process(1, &packets);
                    worker.sent(0);
                }
            }
        }
        count(&mut worker);
        tell(worker.records());
        tell(worker.closed());
        assert_eq!(told, counted, "seed {seed}");
        let flows = worker.datapath.counters().flows;
        assert_eq!((flows.unexported, flows.refused), (0, 0));
        assert!(
            flows.evicted > 0 && flows.expired > 0 && flows.revised > 0 && flows.interim > 0,
            "{flows:?}"
        );
    }
}
