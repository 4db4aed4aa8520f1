//! How many flows there may be, and whose make room.

use super::*;
use datapath::FlowMemory;
use datapath::export::{End, Policy, Told};

/// UEs of different shards.
fn strangers(number: usize) -> Vec<Ipv4Addr> {
    let mut ues: Vec<Ipv4Addr> = vec![UE];
    for ue in (1..=255).map(|host| Ipv4Addr::new(10, 45, 9, host)) {
        if ues.len() < number && ues.iter().all(|known| place(*known).shard != place(ue).shard) {
            ues.push(ue);
        }
    }
    ues
}

/// Rules by which a UE's downlink packets are classified flow by flow.
fn filtered(ue: Ipv4Addr) -> Arc<Rules> {
    let mut rules = (*rules(ue, to_gnb(77))).clone();
    for pdr in rules.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_none()) {
        pdr.qfis = Box::default();
        pdr.filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    }
    Arc::new(rules)
}

fn flow(ue: Ipv4Addr, port: u16) -> Vec<u8> {
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, ue).udp(port, 2).build(&[7; 64])
}

fn known(worker: &Worker, ue: Ipv4Addr) -> u32 {
    worker.datapath.shard(place(ue).shard).unwrap().session(place(ue).slot).unwrap().flows
}

#[test]
fn one_subscriber_may_use_what_others_leave_and_gives_way_when_they_come() {
    // Four for each shard, and 2,048 in all.
    let (mut worker, _) = with_flows(|config| (config.flows, config.flows_per_session) = (2048, 2000));
    let [_, first, second] = strangers(3)[..] else { panic!() };
    worker.install(&filtered(first), Transition::default());
    worker.install(&filtered(second), Transition::default());
    let open = |worker: &mut Worker, ue, ports: std::ops::RangeInclusive<u16>| {
        for port in ports {
            worker.process(1, &[flow(ue, port)]);
        }
        worker.now = worker.now.plus(1_000_000);
    };
    open(&mut worker, UE, 1..=150);
    assert_eq!((known(&worker, UE), worker.datapath.counters().flows.evicted), (150, 0));
    open(&mut worker, UE, 151..=2000);
    // The limit of a session, and what is left for another one.
    open(&mut worker, UE, 2001..=2010);
    let flows = worker.datapath.counters().flows;
    assert_eq!((known(&worker, UE), flows.evicted, flows.refused), (2000, 0, 10));
    open(&mut worker, first, 1..=48);
    assert_eq!((known(&worker, first), worker.datapath.counters().flows.evicted), (48, 0));
    // All places are taken: who has fewer than four gets them from who has more, and keeps them.
    open(&mut worker, second, 1..=4);
    assert_eq!(known(&worker, second), 4);
    open(&mut worker, first, 100..=2000);
    assert_eq!((known(&worker, second), known(&worker, UE) + known(&worker, first)), (4, 2044));
    // Who has them all evicts its own.
    open(&mut worker, second, 5..=50);
    assert_eq!(known(&worker, second), 4);
    let flows = worker.datapath.counters().flows;
    assert_eq!((flows.live(), flows.refused), (2048, 10));
    assert_eq!(flows.learned, 2048 + flows.evicted);
}

#[test]
fn a_shard_takes_its_part_of_the_room_along() {
    let (mut worker, _) = with_flows(|config| config.flows = 2048);
    worker.process(1, &(1..=40).map(|port| flow(UE, port)).collect::<Vec<_>>());
    // Eight shards are left, with room for 32.
    let mut gone = Vec::new();
    for id in ShardId::all().filter(|id| *id != place(UE).shard).skip(7) {
        gone.extend(worker.datapath.release(id));
    }
    worker.process(1, &[flow(UE, 41)]);
    assert_eq!(known(&worker, UE), 39, "two go for one that comes");
    for port in 42..=60 {
        worker.process(1, &[flow(UE, port)]);
    }
    assert_eq!(known(&worker, UE), 32);
    for shard in gone {
        worker.datapath.adopt(shard);
    }
    worker.process(1, &(61..=160).map(|port| flow(UE, port)).collect::<Vec<_>>());
    assert_eq!(known(&worker, UE), 132);
}

#[test]
fn flows_end_with_their_session() {
    let all = Policy { sample: 1, per_second: 1_000_000, active: 0, marks: datapath::export::Marks::NONE };
    let (mut worker, _) = with_flows(|config| {
        (config.export, config.flow_idle, config.flows, config.flows_per_session) =
            (Some(all), 600, 8000, 8000);
    });
    let [_, other] = strangers(2)[..] else { panic!() };
    worker.install(&filtered(other), Transition::default());
    worker.process(1, &[flow(other, 1), flow(other, 2)]);
    // Some of a former classification.
    worker.process(1, &(1..=10).map(|port| flow(UE, port)).collect::<Vec<_>>());
    let mut next = (*filtered(UE)).clone();
    for pdr in next.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_none()) {
        pdr.filters = [SdfFilter { source_ports: [(2, 9)].into(), ..SdfFilter::default() }].into();
    }
    worker.install(&Arc::new(next), Transition::default());
    worker.process(1, &[flow(UE, 2), flow(UE, 3)]);
    worker.apply(Command::Remove { token: Token(1), session: place(UE) });
    let counters = worker.datapath.counters().flows;
    assert_eq!((counters.deleted, counters.live()), (10, 2), "at once");
    let shard = worker.datapath.shard(place(UE).shard).unwrap();
    assert!(shard.is_empty());
    worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
    let mut records = Vec::new();
    for event in worker.out.events.drain(..) {
        if let Event::Flows(batch) = event {
            records.extend(batch);
        }
    }
    // Two whose rule is the same one went on, with all that they had counted.
    let sum: u64 = records.iter().map(|record| record.packets).sum();
    assert_eq!((records.len(), sum), (10, 12));
    assert!(records.iter().all(|r| r.told == Told::Ended(End::ForcedEnd) && r.seid == place(UE).seid(1)));
    // The next one in the same place isn't told of them, and many take some milliseconds.
    worker.install(&filtered(UE), Transition::default());
    for port in 1..=5000 {
        worker.process(1, &[flow(UE, port)]);
    }
    assert_eq!((known(&worker, UE), worker.datapath.counters().flows.live()), (5000, 5002));
    let mut after = (*filtered(UE)).clone();
    after.seid = place(UE).seid(2);
    worker.install(&Arc::new(after), Transition::default());
    let at_once = worker.datapath.counters().flows.deleted - 10;
    assert!((1..200).contains(&at_once), "{at_once}: a bounded number at a time");
    worker.process(1, &[flow(UE, 1), flow(UE, 6000)]);
    for _ in 0..1000 {
        worker.now = worker.now.plus(1_000_000);
        worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
    }
    let counters = worker.datapath.counters().flows;
    assert_eq!((known(&worker, UE), counters.live()), (2, 4));
    // One of the old flows went on as the new session's.
    assert_eq!((counters.deleted, counters.revised), (10 + 4999, 2 + 1));
    assert_eq!(worker.datapath.counters().balance(), 0);
}

#[test]
fn memory_that_is_ready_is_what_flows_grow_into() {
    let supplied = |budget, makes: bool| {
        let (mut worker, _) = with_flows(|config| config.flow_supply = budget);
        for port in 1..=3000 {
            worker.process(1, &[flow(UE, port)]);
            while makes && let Some(wish) = worker.datapath.wish() {
                worker.datapath.stock(FlowMemory::make(wish));
                assert!(worker.datapath.flow_memory() > budget / 64);
            }
        }
        worker.tick(1);
        let flows = worker.datapath.counters().flows;
        assert_eq!((known(&worker, UE), flows.live(), flows.refused), (3000, 3000, 0));
        (worker, flows.memory)
    };
    let (mut worker, memory) = supplied(1 << 20, true);
    assert!(memory.supplied > 10 && memory.missed == 0, "{memory:?}");
    let (mut waiting, memory) = supplied(1 << 20, false);
    assert!(memory.supplied == 0 && memory.missed > 10, "{memory:?}");
    assert_eq!(supplied(0, true).1, tables::SupplyCounters::default());
    // A shard that goes needs nothing here any more, and where it comes it does.
    let here = worker.datapath.flow_memory();
    let shard = worker.datapath.release(place(UE).shard).unwrap();
    assert!(worker.datapath.flow_memory() < here - 64 * 3000 && worker.datapath.wish().is_none());
    waiting.datapath.release(place(UE).shard);
    assert!(waiting.datapath.wish().is_none());
    waiting.datapath.adopt(shard);
    assert!(waiting.datapath.wish().is_some());
}
