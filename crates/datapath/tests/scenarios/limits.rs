//! Limits that change while packets flow.

use super::*;

/// Other limits, as control sends them.
fn change(worker: &mut Worker, limits: impl FnOnce(&mut Config)) {
    let mut config = Config::new(rib(true).fib());
    limits(&mut config);
    worker.apply(Command::Limits(Arc::new(config)));
}

#[test]
fn flows_beyond_a_lower_limit_go_as_others_come() {
    let (mut worker, flow) = with_flows(|config| (config.flows, config.flows_per_session) = (2048, 2000));
    let live = |worker: &Worker| worker.datapath.counters().flows.live();
    let open = |worker: &mut Worker, ports: std::ops::Range<u16>| {
        for port in ports {
            worker.process(1, &[flow(port)]);
            assert_eq!(worker.sent(0).len(), 1);
        }
    };
    open(&mut worker, 0..150);
    assert_eq!(live(&worker), 150);
    change(&mut worker, |config| (config.flows, config.flows_per_session) = (100, 2000));
    assert_eq!(live(&worker), 150, "no packet waits for the clearing of a table");
    open(&mut worker, 1000..1001);
    assert_eq!(live(&worker), 148, "several go for one that comes");
    open(&mut worker, 1001..1100);
    assert_eq!(live(&worker), 100);
    change(&mut worker, |config| (config.flows, config.flows_per_session) = (2048, 120));
    open(&mut worker, 2000..2200);
    assert_eq!(live(&worker), 120);
    change(&mut worker, |config| (config.flow_idle, config.flows_per_session) = (600, 2000));
    open(&mut worker, 3000..3010);
    // Flows that were there keep their time of 30 seconds, new ones have theirs.
    for _ in 0..200 {
        worker.tick(1);
    }
    assert_eq!(live(&worker), 10);
}

/// What was made for few at the start is made for more.
#[test]
fn more_flows_than_there_was_room_for_at_the_start() {
    let (mut worker, flow) = with_flows(|config| (config.flows, config.flows_per_session) = (100, 2000));
    let open = |worker: &mut Worker, ports: std::ops::Range<u16>| {
        for port in ports {
            worker.process(1, &[flow(port)]);
        }
        worker.datapath.counters().flows.live()
    };
    assert_eq!(open(&mut worker, 0..300), 100);
    change(&mut worker, |config| (config.flows, config.flows_per_session) = (2048, 2000));
    assert_eq!(open(&mut worker, 1000..1900), 1000);
    // A shard that comes from elsewhere has the limits of here.
    let shard = place(UE).shard;
    drop(worker.datapath.release(shard).unwrap());
    let mut other = with_flows(|config| (config.flows, config.flows_per_session) = (100, 2000)).0;
    assert!(worker.datapath.adopt(other.datapath.release(shard).unwrap()).is_none());
    let learned = |worker: &Worker| worker.datapath.counters().flows.learned;
    let before = (learned(&worker), worker.datapath.counters().flows.evicted);
    open(&mut worker, 3000..3500);
    assert_eq!((learned(&worker), worker.datapath.counters().flows.evicted), (before.0 + 500, before.1));
}

#[test]
fn more_neighbours_are_remembered() {
    let mut config = Config::new(rib(true).fib());
    config.neighbours = 8;
    let mut worker = Worker::of(config, 2, |_| true);
    let remembered = |worker: &mut Worker| {
        // All of them are answered.
        worker.now = worker.now.plus(Nanos::SECOND);
        for host in 10..60 {
            let mut request = [0; packet::arp::LEN];
            let mac = MacAddr([2, 9, 9, 9, 9, host]);
            packet::arp::emit_request(&mut request, mac, Ipv4Addr::new(192, 0, 2, host), N3_IP);
            worker.process(0, &[[&[0xff; 6][..], &mac.0, &[8, 6], &request].concat()]);
        }
        worker.sent(0);
        worker.apply(Command::Neighbours { token: Token(7), from: 0 });
        let Some(Event::Neighbours { seen, .. }) = worker.events().pop() else { panic!() };
        seen.iter().filter(|seen| seen.interface == 0).count()
    };
    assert_eq!(remembered(&mut worker), 8);
    change(&mut worker, |config| config.neighbours = 30);
    assert_eq!(remembered(&mut worker), 30);
    change(&mut worker, |config| config.neighbours = 20);
    assert_eq!(remembered(&mut worker), 20);
}

#[test]
fn rates_of_answers_change() {
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let strange = gtpu(MessageType::G_PDU, Teid(0x1234)).build(&inner(UE, HOST, 10));
    let mut answered = |error_rate| {
        change(&mut worker, |config| config.error_rate = error_rate);
        worker.process(0, &vec![strange.clone(); 50]);
        worker.sent(0).len()
    };
    assert_eq!([100, 1000, 20].map(&mut answered), [10, 50, 2]);
    // The same limits once more don't fill the bucket.
    assert_eq!(answered(20), 0);
    let echo = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).icmpv4_echo(packet::icmpv4::Echo {
        request: true,
        identifier: 7,
        sequence: 1,
    });
    let echo = echo.build(b"are you there?");
    let mut answered = |icmp_rate| {
        change(&mut worker, |config| config.icmp_rate = icmp_rate);
        worker.process(0, &vec![echo.clone(); 50]);
        worker.sent(0).len()
    };
    assert_eq!([100, 1000, 20].map(&mut answered), [10, 50, 2]);
}

#[test]
fn more_new_flows_may_come_in_overload() {
    let (mut worker, flow) = with_flows(|_| ());
    let mut next = 0;
    let mut learned = |most| {
        change(&mut worker, |config| config.new_flows_in_overload = most);
        // A full queue, burst after burst.
        for _ in 0..20 {
            let burst: Vec<_> = (next..next + 64).map(&flow).collect();
            next += 64;
            worker.datapath.queue_fills(1, Some(4));
            worker.process(1, &burst);
        }
        worker.process(1, &[flow(next)]);
        next += 1;
        worker.sent(0).len()
    };
    let [few, many, few_again] = [1, 20, 1].map(&mut learned);
    assert!(few == few_again && many >= few + 12 * 19, "{few} {many} {few_again}");
}

#[test]
fn more_or_fewer_packets_may_wait() {
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, Action::Buffer { notify: false, packets: 100 }), Transition::default());
    let mut waiting = |packets| {
        change(&mut worker, |config| config.buffered = Places::new(packets));
        worker.process(1, &vec![downlink(10); 10]);
        worker.datapath.counters().buffered
    };
    assert_eq!([4, 9, 2].map(&mut waiting), [4, 9, 9], "what waits goes on waiting");
    assert_eq!(worker.dropped(Reason::BufferExhausted), 6 + 5 + 10);
}

#[test]
fn fewer_fragmented_packets_may_wait() {
    let mut worker = Worker::new(rib(true), |_| true);
    let begin = |worker: &mut Worker, identification| {
        worker.process(0, &[held::piece(0, false, identification, 0)]);
        worker.datapath.counters().held
    };
    for n in 0..8 {
        begin(&mut worker, n);
    }
    change(&mut worker, |config| config.reassemblies = 3);
    assert_eq!([8, 9, 10, 11, 12, 13].map(|n| begin(&mut worker, n)), [7, 6, 5, 4, 3, 3]);
    change(&mut worker, |config| config.reassemblies = 5);
    assert_eq!([14, 15, 16].map(|n| begin(&mut worker, n)), [4, 5, 5]);
}
