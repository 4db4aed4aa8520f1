//! The flow table of the NIC in memory: what its rules do to packets, byte by byte, what it refuses, and what it leaves alone.
#![allow(clippy::unwrap_used, missing_docs)]

use io::mem::{FlowTableConfig, MemConfig, MemFrame, MemNic, MemOffload, MemRx, MemSwitch, MemWire};
use io::offload::{
    Action, Container, Counts, Failure, Feature, FlowOffload, FlowRule, MeterId, Pattern, Refused,
    TunnelMatch,
};
use io::{Frame, FramePool, Port, RxQueue, TxQueue};
use packet::ipv4::Ipv4Header;
use packet::{GtpuView, Ipv4View, MacAddr, PacketBuilder, Teid, UdpView};
use std::net::{IpAddr, Ipv4Addr};
use tables::{MeterConfig, Nanos};

const N3: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const N6: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const GNB: MacAddr = MacAddr([2, 9, 0, 0, 0, 7]);
const ROUTER: MacAddr = MacAddr([2, 9, 0, 0, 0, 9]);
const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);
const NOW: Nanos = Nanos(Nanos::SECOND);

/// A frame that left a wire, and which.
type Sent = (usize, Vec<u8>);

/// Two ports of one switch: N3 and N6.
struct Bench {
    switch: MemSwitch,
    wires: [MemWire; 2],
    rx: [Vec<MemRx>; 2],
    ports: [MemNic; 2],
}

impl Bench {
    fn new(config: FlowTableConfig) -> Self {
        let switch = MemSwitch::new(config);
        let make = |mac| {
            let (mut nic, wire) = MemNic::new(MemConfig { mac, queues: 2, ..MemConfig::default() }).unwrap();
            switch.plug(&nic).unwrap();
            let rx = (0..2).map(|queue| nic.take_queue(queue).unwrap().0).collect();
            (nic, wire, rx)
        };
        let ((n3, n3_wire, n3_rx), (n6, n6_wire, n6_rx)) = (make(N3), make(N6));
        Self { switch, wires: [n3_wire, n6_wire], rx: [n3_rx, n6_rx], ports: [n3, n6] }
    }

    fn offload(&self, port: u16) -> MemOffload {
        self.switch.offload(port)
    }

    /// What comes of a packet: out of a wire (by port), or into a queue (by port and number).
    fn send(&mut self, port: usize, packet: &[u8]) -> (Vec<Sent>, Vec<(usize, usize)>) {
        self.wires[port].inject(&mut vec![MemFrame::copy_of(packet).unwrap()]);
        let (mut out, mut queues, mut frames) = (Vec::new(), Vec::new(), Vec::new());
        for (port, wire) in self.wires.iter_mut().enumerate() {
            wire.collect(&mut frames, 64);
            out.extend(frames.drain(..).map(|frame| (port, frame.bytes().to_vec())));
        }
        for (port, rx) in self.rx.iter_mut().enumerate() {
            for (queue, rx) in rx.iter_mut().enumerate() {
                rx.rx_burst(&mut frames, 64);
                queues.extend(frames.drain(..).map(|_| (port, queue)));
            }
        }
        (out, queues)
    }
}

fn user(ttl: u8) -> Ipv4Header {
    Ipv4Header { source: UE, destination: HOST, ttl, ..Ipv4Header::default() }
}

fn uplink(teid: u32, ttl: u8) -> Vec<u8> {
    PacketBuilder::new()
        .ethernet(N3, GNB)
        .ipv4([192, 0, 2, 7].into(), [192, 0, 2, 1].into())
        .udp_without_checksum(2152, 2152)
        .gtpu(Teid(teid))
        .ipv4_header(user(ttl))
        .udp(1000, 53)
        .build(b"question")
}

fn downlink() -> Vec<u8> {
    PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, UE).udp(53, 1000).build(b"answer, padded")
}

fn header(destination: MacAddr, source: MacAddr) -> Vec<u8> {
    [&destination.0[..], &source.0, &[8, 0]].concat()
}

fn uplink_rule(teid: u32) -> FlowRule {
    let tunnel =
        TunnelMatch { destination: IpAddr::from([192, 0, 2, 1]), teid, container: Container::Absent };
    let pattern = Pattern {
        tunnel: Some(tunnel),
        source: Some(UE.into()),
        protocol: Some(17),
        ports: Some((1000, 53)),
        ..Pattern::new(N3).to(HOST.into())
    };
    let actions = vec![
        Action::Count,
        Action::Decap,
        Action::DecTtl,
        Action::Encap(header(ROUTER, N6).into()),
        Action::Port(1),
    ];
    FlowRule { pattern, longest: 1500, may_exceed: false, actions }
}

/// The headers of a tunnel to the gNB; lengths and checksum are the device's business.
fn downlink_rule() -> FlowRule {
    let mut front = header(GNB, N3);
    front.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 7]);
    front.extend([0x08, 0x68, 0x08, 0x68, 0, 0, 0, 0]);
    front.extend([0x34, 255, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0, 5, 0]);
    let actions =
        vec![Action::Count, Action::Decap, Action::DecTtl, Action::Encap(front.into()), Action::Port(0)];
    FlowRule { pattern: Pattern::new(N6).to(UE.into()), longest: 1456, may_exceed: true, actions }
}

#[test]
fn a_tunnel_is_taken_off_and_the_packet_leaves_without_a_queue() {
    let mut bench = Bench::new(FlowTableConfig::default());
    let mut device = bench.offload(0);
    let handle = device.insert(NOW, &uplink_rule(7)).unwrap();
    let packet = uplink(7, 64);
    let (out, queues) = bench.send(0, &packet);
    let expected =
        PacketBuilder::new().ethernet(ROUTER, N6).ipv4_header(user(63)).udp(1000, 53).build(b"question");
    assert_eq!((out, queues), (vec![(1, expected)], vec![]));
    let counted = Counts { packets: 1, bytes: packet.len() as u64 };
    assert_eq!(device.counts(handle), Ok(counted));
    // The ports' own counters have seen it.
    assert_eq!((bench.ports[0].stats().rx_packets, bench.ports[1].stats().tx_packets), (1, 1));
    assert_eq!(device.remove(handle), Ok(counted));
    assert_eq!(device.remove(handle), Err(Failure::Forgotten));
    assert_eq!(bench.send(0, &packet).1.len(), 1, "software's again");
    assert!(bench.switch.is_empty());
}

#[test]
fn a_tunnel_is_put_on_with_lengths_and_checksum() {
    let mut bench = Bench::new(FlowTableConfig::default());
    bench.offload(1).insert(NOW, &downlink_rule()).unwrap();
    let packet = downlink();
    let (out, _) = bench.send(1, &packet);
    let [(0, sent)] = &out[..] else { panic!("{out:?}") };
    let inner = packet.len() - 14;
    let ip = Ipv4View::parse(&sent[14..]).unwrap();
    assert!(ip.checksum_ok() && ip.total_len() == inner + 44);
    let udp = UdpView::parse(&sent[34..]).unwrap();
    assert_eq!(udp.len(), inner + 24);
    let gtpu = GtpuView::parse(&sent[42..]).unwrap();
    assert_eq!((gtpu.teid(), gtpu.payload().len()), (Teid(9), inner));
    let inside = Ipv4View::parse(gtpu.payload()).unwrap();
    assert!(inside.checksum_ok() && inside.ttl() == 63);
    assert_eq!(&gtpu.payload()[20..], &packet[34..], "what the UE is sent stays as it is");
}

#[test]
fn what_hardware_does_not_dare_goes_to_a_queue() {
    let mut bench = Bench::new(FlowTableConfig::default());
    bench.offload(0).insert(NOW, &uplink_rule(7)).unwrap();
    bench.offload(1).insert(NOW, &downlink_rule()).unwrap();
    let good = uplink(7, 64);
    let change = |at: usize, value: u8| {
        let mut packet = good.clone();
        packet[at] = value;
        packet
    };
    let mut longer = good.clone();
    longer.push(0);
    for (what, packet) in [
        ("another tunnel", uplink(8, 64)),
        ("one hop left", uplink(7, 1)),
        ("a wrong outer checksum", change(24, 1)),
        ("a wrong inner checksum", change(14 + 36 + 10, 1)),
        ("a sequence number", change(42, 0x32)),
        ("an echo request", change(43, 1)),
        ("a GTP-U length that lies", change(45, 1)),
        ("another station", change(5, 9)),
        ("another port", change(14 + 36 + 23, 54)),
        ("truncated", good[..60].to_vec()),
    ] {
        let (out, queues) = bench.send(0, &packet);
        assert!(out.is_empty() && queues.len() == 1, "{what}: {out:?} {queues:?}");
    }
    assert_eq!(bench.send(0, &longer).0.len(), 1, "padding of the frame is nothing");
    let big = PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, UE).udp(1, 2).build(&[0; 1457 - 28]);
    assert_eq!(bench.send(1, &big).0.len(), 0, "too long for the tunnel");
    let fits = PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, UE).udp(1, 2).build(&[0; 1456 - 28]);
    assert_eq!(bench.send(1, &fits).0.len(), 1);
}

#[test]
fn a_flow_is_steered_to_a_queue() {
    let mut bench = Bench::new(FlowTableConfig::default());
    let (_, hashed) = bench.send(1, &downlink());
    let other = 1 - hashed[0].1;
    let rule = FlowRule { actions: vec![Action::Count, Action::Queue(other as u16)], ..downlink_rule() };
    let mut device = bench.offload(1);
    let handle = device.insert(NOW, &rule).unwrap();
    assert_eq!(bench.send(1, &downlink()).1, [(1, other)]);
    // Past a lossless sender too.
    bench.wires[1].offer(&mut vec![MemFrame::copy_of(&downlink()).unwrap()]);
    let mut frames = Vec::new();
    assert_eq!(bench.rx[1][other].rx_burst(&mut frames, 9), 1);
    assert_eq!(device.counts(handle).unwrap().packets, 2);
    // A queue that doesn't exist is no reason to lose anything.
    device.flush().unwrap();
    device.insert(NOW, &FlowRule { actions: vec![Action::Queue(9)], ..rule }).unwrap();
    assert_eq!(bench.send(1, &downlink()).1.len(), 1);
}

#[test]
fn the_more_special_rule_wins() {
    let mut bench = Bench::new(FlowTableConfig::default());
    let mut device = bench.offload(1);
    let wide = FlowRule { actions: vec![Action::Count, Action::Queue(0)], ..downlink_rule() };
    let pattern = Pattern { protocol: Some(17), ports: Some((53, 1000)), ..wide.pattern };
    let narrow = FlowRule { pattern, actions: vec![Action::Count, Action::Queue(1)], ..wide.clone() };
    device.insert(NOW, &wide).unwrap();
    let narrow = device.insert(NOW, &narrow).unwrap();
    assert_eq!(bench.send(1, &downlink()).1, [(1, 1)]);
    device.remove(narrow).unwrap();
    assert_eq!(bench.send(1, &downlink()).1, [(1, 0)]);
    assert_eq!(device.insert(NOW, &wide), Err(Refused::Exists));
}

#[test]
fn refusals_are_typed() {
    let features = MemSwitch::features().without(Feature::Encap);
    let config = FlowTableConfig {
        entries: 3,
        insertions_per_second: 2,
        refuse_every: 4,
        features,
        ..FlowTableConfig::default()
    };
    let bench = Bench::new(config);
    let mut device = bench.offload(0);
    let rule = |teid| FlowRule { actions: vec![Action::Queue(0)], ..uplink_rule(teid) };
    let refused = |feature| Err(Refused::Unsupported(feature));
    assert_eq!(device.insert(NOW, &uplink_rule(1)), refused(Feature::Encap));
    let spread = Action::Rss { inner: true, source: true, queues: vec![0] };
    let spread = FlowRule { actions: vec![spread], ..rule(1) };
    assert_eq!(device.insert(NOW, &spread), refused(Feature::Rss));
    device.insert(NOW, &rule(1)).unwrap();
    device.insert(NOW, &rule(2)).unwrap();
    assert_eq!(device.insert(NOW, &rule(3)), Err(Refused::Busy));
    assert_eq!(device.insert(NOW, &rule(3)), Err(Refused::Device("not in the mood".into())));
    let later = NOW.plus(Nanos::SECOND / 2);
    device.insert(later, &rule(3)).unwrap();
    assert_eq!(device.insert(later.plus(Nanos::SECOND), &rule(4)), Err(Refused::Full));
    assert_eq!(device.capabilities().entries, Some(3));
}

#[test]
fn one_handle_flushes_its_own_rules_only() {
    let bench = Bench::new(FlowTableConfig::default());
    let (mut one, mut other) = (bench.offload(0), bench.offload(0));
    one.insert(NOW, &uplink_rule(1)).unwrap();
    let kept = other.insert(NOW, &uplink_rule(2)).unwrap();
    one.flush().unwrap();
    assert_eq!((bench.switch.len(), other.counts(kept).is_ok()), (1, true));
    bench.switch.reset();
    assert_eq!(other.counts(kept), Err(Failure::Forgotten));
}

#[test]
fn a_broken_device_keeps_its_rules_in_force() {
    let mut bench = Bench::new(FlowTableConfig::default());
    let mut device = bench.offload(0);
    let handle = device.insert(NOW, &uplink_rule(7)).unwrap();
    let failure = Failure::Device("firmware".into());
    bench.switch.set_broken(Some(failure.clone()));
    assert_eq!(device.counts(handle), Err(failure.clone()));
    assert_eq!(device.remove(handle), Err(failure.clone()));
    assert_eq!(device.flush(), Err(failure));
    assert_eq!(bench.send(0, &uplink(7, 64)).0.len(), 1);
    bench.switch.set_broken(None);
    device.flush().unwrap();
    assert!(bench.switch.is_empty());
}

#[test]
fn a_link_that_is_down_leaves_packets_to_software() {
    let mut bench = Bench::new(FlowTableConfig::default());
    bench.offload(0).insert(NOW, &uplink_rule(7)).unwrap();
    bench.ports[1].control().set_link(false);
    assert_eq!(bench.send(0, &uplink(7, 64)).1.len(), 1);
}

#[test]
fn rules_share_a_meter_that_drops_what_it_has_no_tokens_for() {
    let mut bench = Bench::new(FlowTableConfig { meters: 2, ..FlowTableConfig::default() });
    let mut device = bench.offload(0);
    let user = uplink(1, 64).len() - 14 - 36;
    // A byte a millisecond, and room for two of the user's packets.
    let config = MeterConfig { rate_bps: 8_000, burst_bytes: 2 * user as u32 };
    let meter = device.add_meter(NOW, config).unwrap();
    let metered = |teid, meter| {
        let mut rule = uplink_rule(teid);
        // What the meter drops isn't counted.
        rule.actions.remove(0);
        rule.actions.splice(1..1, [Action::Meter(meter), Action::Count]);
        rule
    };
    let unknown = Err(Refused::Device("no such meter or counter".into()));
    assert_eq!(device.insert(NOW, &metered(1, MeterId(77))), unknown);
    let (one, two) =
        (device.insert(NOW, &metered(1, meter)).unwrap(), device.insert(NOW, &metered(2, meter)).unwrap());
    let sent = |bench: &mut Bench, teid| {
        let (out, queues) = bench.send(0, &uplink(teid, 64));
        assert!(queues.is_empty(), "dropped, not brought to anyone");
        out.len()
    };
    assert_eq!([1, 2, 1, 2].map(|teid| sent(&mut bench, teid)), [1, 1, 0, 0]);
    let whole = user as u64 * 1_000_000;
    bench.switch.set_time(NOW.plus(whole - 1));
    assert_eq!(sent(&mut bench, 2), 0);
    bench.switch.set_time(NOW.plus(whole));
    // Time that has passed already brings nothing.
    bench.switch.set_time(NOW);
    assert_eq!([2, 2].map(|teid| sent(&mut bench, teid)), [1, 0]);
    let bytes = |packets: u64| Counts { packets, bytes: packets * user as u64 };
    assert_eq!((device.counts(one), device.counts(two)), (Ok(bytes(1)), Ok(bytes(2))));
    assert_eq!(device.dropped(meter), Ok(bytes(4)));
    // Twice the rate, and no present with it.
    device.set_meter(NOW, meter, MeterConfig { rate_bps: 16_000, burst_bytes: 4 * user as u32 }).unwrap();
    assert_eq!(sent(&mut bench, 1), 0);
    bench.switch.set_time(NOW.plus(whole + whole / 2));
    assert_eq!([1, 2].map(|teid| sent(&mut bench, teid)), [1, 0]);
    // A smaller one holds less.
    bench.switch.set_time(NOW.plus(3 * whole));
    device.set_meter(NOW, meter, config).unwrap();
    assert_eq!([1, 1, 1].map(|teid| sent(&mut bench, teid)), [1, 1, 0]);
    // It goes when nobody needs it any more.
    device.add_meter(NOW, config).unwrap();
    assert_eq!(device.add_meter(NOW, config), Err(Refused::Full));
    assert_eq!(device.remove_meter(meter), Err(Failure::Device("a rule uses it".into())));
    device.remove(one).unwrap();
    device.remove(two).unwrap();
    assert_eq!(device.remove_meter(meter), Ok(bytes(7)));
    assert_eq!(device.dropped(meter), Err(Failure::Forgotten));
    device.flush().unwrap();
    assert_eq!(bench.switch.meters(), 0);
    let config = FlowTableConfig { meters_change: false, ..FlowTableConfig::default() };
    let mut device = Bench::new(config).offload(0);
    let meter = device.add_meter(NOW, MeterConfig { rate_bps: 1, burst_bytes: 1 }).unwrap();
    let config = MeterConfig { rate_bps: 2, burst_bytes: 1 };
    assert_eq!(device.set_meter(NOW, meter, config), Err(Refused::Unsupported(Feature::Meter)));
}

#[test]
fn rules_share_a_counter_and_each_has_its_own() {
    let mut bench = Bench::new(FlowTableConfig::default());
    let mut device = bench.offload(0);
    let counter = device.add_counter(NOW).unwrap();
    let user = uplink(1, 64).len() - 14 - 36;
    let meter = device.add_meter(NOW, MeterConfig { rate_bps: 1, burst_bytes: user as u32 }).unwrap();
    let rule = |teid| {
        let mut rule = uplink_rule(teid);
        rule.actions.remove(0);
        rule.actions.splice(1..1, [Action::CountFor(counter), Action::Meter(meter), Action::Count]);
        rule
    };
    let handles = [1, 2].map(|teid| device.insert(NOW, &rule(teid)).unwrap());
    [1, 2, 2].into_iter().for_each(|teid| drop(bench.send(0, &uplink(teid, 64))));
    let bytes = |packets: u64| Counts { packets, bytes: packets * user as u64 };
    assert_eq!(device.counted(counter), Ok(bytes(3)), "all that came");
    assert_eq!(handles.map(|handle| device.counts(handle).unwrap()), [bytes(1), bytes(0)], "what passed");
    assert_eq!(device.remove_counter(counter), Err(Failure::Device("a rule uses it".into())));
    handles.into_iter().for_each(|handle| assert!(device.remove(handle).is_ok()));
    assert_eq!(device.remove_counter(counter), Ok(bytes(3)));
    assert_eq!(device.counted(counter), Err(Failure::Forgotten));
    device.add_counter(NOW).unwrap();
    device.flush().unwrap();
    assert_eq!((bench.switch.counters(), bench.switch.meters()), (0, 0));
}

#[test]
fn a_mark_goes_with_the_packet_to_its_queue_and_no_further() {
    let switch = MemSwitch::new(FlowTableConfig::default());
    let (mut nic, mut wire) = MemNic::new(MemConfig { mac: N3, queues: 2, ..MemConfig::default() }).unwrap();
    switch.plug(&nic).unwrap();
    let ((mut rx, mut tx), (mut other, _)) = (nic.take_queue(0).unwrap(), nic.take_queue(1).unwrap());
    let rule = FlowRule { actions: vec![Action::Mark(77), Action::Queue(0)], ..uplink_rule(7) };
    nic.offload().insert(NOW, &rule).unwrap();
    let mut own = nic.pool(0).alloc().unwrap();
    assert!(own.fill(&uplink(7, 64)));
    let [marked, plain] = [7, 8].map(|teid| MemFrame::copy_of(&uplink(teid, 64)).unwrap());
    wire.inject(&mut vec![own, marked, plain]);
    let mut received = Vec::new();
    rx.rx_burst(&mut received, 64);
    other.rx_burst(&mut received, 64);
    let marks = |frames: &[MemFrame]| frames.iter().map(Frame::mark).collect::<Vec<_>>();
    assert_eq!(marks(&received), [Some(77), Some(77), None]);
    assert_eq!(nic.pool_in_use(), 0, "a pool's frame has gone back to it");
    // Sent on, they come out of the wire as any others.
    tx.tx_burst(&mut received);
    wire.collect(&mut received, 64);
    assert_eq!(marks(&received), [None; 3]);
}

#[test]
fn rules_and_counters_may_be_late() {
    let delay = 1_000_000;
    let at = |n: u64| NOW.plus(n * delay);
    for disorder in [false, true] {
        let mut bench = Bench::new(FlowTableConfig { delay, disorder, ..FlowTableConfig::default() });
        let mut device = bench.offload(0);
        let handles: Vec<_> = (1..=8).map(|teid| device.insert(NOW, &uplink_rule(teid)).unwrap()).collect();
        // Which are in force after so many halves of the delay.
        let mut taken = Vec::new();
        for half in 0..=4 {
            bench.switch.set_time(NOW.plus(half * delay / 2));
            let forwards = |teid| u32::from(!bench.send(0, &uplink(teid, 64)).0.is_empty());
            taken.push((1..=8).map(forwards).sum::<u32>());
        }
        if disorder {
            assert!(taken.is_sorted() && taken[1] > 0 && taken[2] < 8 && taken[4] == 8, "{taken:?}");
        } else {
            assert_eq!(taken, [0, 0, 8, 8, 8]);
        }
        // What was counted shows later; what is taken back says all, at once.
        bench.switch.set_time(at(4));
        let shown = device.counts(handles[0]).unwrap().packets;
        bench.send(0, &uplink(1, 64));
        assert_eq!(device.counts(handles[0]).unwrap().packets, shown);
        bench.switch.set_time(at(5));
        assert_eq!(device.counts(handles[0]).unwrap().packets, shown + 1);
        bench.send(0, &uplink(1, 64));
        assert_eq!(device.remove(handles[0]).unwrap().packets, shown + 2);
        assert!(bench.send(0, &uplink(1, 64)).0.is_empty());
        // One that isn't in force yet never will be.
        let handle = device.insert(at(5), &uplink_rule(1)).unwrap();
        assert_eq!(device.remove(handle), Ok(Counts::default()));
        bench.switch.set_time(at(9));
        assert!(bench.send(0, &uplink(1, 64)).0.is_empty());
    }
}

#[test]
fn readings_may_be_torn() {
    let mut bench = Bench::new(FlowTableConfig { torn: true, ..FlowTableConfig::default() });
    let mut device = bench.offload(0);
    let handle = device.insert(NOW, &uplink_rule(7)).unwrap();
    let packet = uplink(7, 64);
    let length = packet.len() as u64;
    let mut read = || {
        bench.send(0, &packet);
        let counts = device.counts(handle).unwrap();
        (counts.packets, counts.bytes / length)
    };
    assert_eq!([read(), read(), read(), read()], [(1, 0), (1, 2), (3, 3), (4, 3)]);
    assert_eq!(device.remove(handle), Ok(Counts { packets: 4, bytes: 4 * length }));
}
