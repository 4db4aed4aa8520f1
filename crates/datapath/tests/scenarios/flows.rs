//! Flows: learned, followed, protected from floods of new ones, limited.

use super::*;

#[test]
fn a_flow_follows_its_rule_and_is_classified_anew_with_new_filters() {
    let mut worker = Worker::new(rib(true), |_| true);
    let with_filter = |protocol: u8, teid: u32| {
        let mut rules = (*rules(UE, to_gnb(teid))).clone();
        let filter = SdfFilter { protocol: Some(protocol), ..SdfFilter::default() };
        for pdr in rules.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_none()) {
            pdr.filters = [filter.clone()].into();
        }
        Arc::new(rules)
    };
    let flows = |worker: &Worker| {
        let flows = worker.datapath.counters().flows;
        (flows.learned, flows.served, flows.revised)
    };
    let into = |worker: &mut Worker| worker.sent(0).iter().map(|f| tunnelled(f).1.0).collect::<Vec<_>>();
    worker.install(&with_filter(17, 77), Transition::default());
    worker.process(1, &[downlink(64)]);
    assert_eq!((flows(&worker), into(&mut worker)), ((1, 0, 0), vec![77]));
    worker.process(1, &[downlink(64), downlink(64)]);
    assert_eq!((flows(&worker), into(&mut worker)), ((1, 2, 0), vec![77, 77]));
    // A path switch touches no flow.
    worker.install(&with_filter(17, 78), Transition::default());
    worker.process(1, &[downlink(64)]);
    assert_eq!((flows(&worker), into(&mut worker)), ((1, 3, 0), vec![78]));
    // Now the filter asks for TCP: no rule is left for the packet, whatever its flow was.
    worker.install(&with_filter(6, 78), Transition::default());
    worker.process(1, &[downlink(64)]);
    assert_eq!((flows(&worker), into(&mut worker)), ((1, 3, 0), vec![]));
    assert_eq!(worker.dropped(Reason::NoRule), 1);
    // And for UDP again: the flow is found where it was.
    worker.install(&with_filter(17, 79), Transition::default());
    worker.process(1, &[downlink(64)]);
    worker.process(1, &[downlink(64)]);
    assert_eq!((flows(&worker), into(&mut worker)), ((1, 4, 1), vec![79, 79]));
    // Silence ends it; another session in the same place begins with nothing.
    for _ in 0..40 {
        worker.tick(2);
    }
    assert_eq!(worker.datapath.counters().flows.live(), 0);
}

/// A worker whose UE's downlink packets are classified flow by flow, with these limits; and the packets of its flows.
pub(super) fn with_flows(limits: impl FnOnce(&mut Config)) -> (Worker, impl Fn(u16) -> Vec<u8>) {
    let mut config = Config::new(rib(true).fib());
    limits(&mut config);
    let mut worker = Worker::of(config, 2, |_| true);
    let mut filtered = (*rules(UE, to_gnb(77))).clone();
    for pdr in filtered.pdrs.iter_mut().filter(|pdr| pdr.tunnel.is_none()) {
        pdr.qfis = Box::default();
        pdr.filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    }
    worker.install(&Arc::new(filtered), Transition::default());
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    let flow = move |port: u16| {
        PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv4(HOST, UE).udp(port, 2).build(&[7; 64])
    };
    (worker, flow)
}

#[test]
fn known_flows_go_on_in_a_flood_of_new_ones() {
    let (mut worker, flow) = with_flows(|_| ());
    worker.process(1, &[flow(1)]);
    assert_eq!(worker.sent(0).len(), 1);
    // Every burst is full: 62 new flows, and twice the known one.
    let mut next = 2;
    let mut full = |worker: &mut Worker, quarters| {
        let mut burst: Vec<_> = (next..next + 62).map(&flow).collect();
        next += 62;
        burst.extend([flow(1), flow(1)]);
        worker.datapath.queue_fills(1, quarters);
        worker.process(1, &burst);
        worker.sent(0).len()
    };
    // A worker that keeps up, however busy, takes all new flows: nobody loses by it.
    let forwarded: Vec<_> = (0..40).map(|_| full(&mut worker, Some(0))).collect();
    assert_eq!(forwarded, [64; 40], "full bursts are no overload");
    // The fuller the queue, the fewer; the known flow always goes on.
    let forwarded = [1, 2, 3, 4, 0].map(|quarters| full(&mut worker, Some(quarters)));
    assert_eq!(forwarded, [32 + 2, 8 + 2, 1 + 2, 1 + 2, 64]);
    assert_eq!(worker.dropped(Reason::NewFlowInOverload), 30 + 54 + 61 + 61);
    // The queue was emptied: whoever comes is welcome, and a burst of load is no overload.
    worker.process(1, &[flow(60_000), flow(60_001)]);
    assert_eq!(worker.sent(0).len(), 2);
    let forwarded: Vec<_> = (0..7).map(|_| full(&mut worker, Some(4))).collect();
    assert_eq!(forwarded, [64; 7]);
    // Nothing is known of the queue: it is taken as full when it was not emptied for long.
    worker.process(1, &[flow(1)]);
    worker.sent(0);
    let forwarded: Vec<_> = (0..40).map(|_| full(&mut worker, None)).collect();
    assert_eq!((&forwarded[..31], &forwarded[31..]), (&[64; 31][..], &[16 + 2; 9][..]));
    assert_eq!(worker.datapath.counters().balance(), 0);
}

#[test]
fn flows_have_limits_and_packets_beyond_them_are_forwarded_all_the_same() {
    let (mut worker, flow) = with_flows(|config| {
        (config.flows, config.flows_per_session) = (8, 6);
    });
    let all: Vec<_> = (1..=10).map(flow).collect();
    for (burst, (learned, refused)) in [(6, 4), (6, 8), (6, 12)].into_iter().enumerate() {
        worker.process(1, &all);
        assert_eq!(worker.sent(0).len(), 10, "burst {burst}");
        let flows = worker.datapath.counters().flows;
        assert_eq!((flows.learned, flows.refused), (learned, refused), "burst {burst}");
    }
}
