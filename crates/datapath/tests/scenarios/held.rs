//! Fragments, and all frames that strangers make a worker hold: never so many that users' packets find no buffer.

use super::{downlink, gtpu, inner, rib, rules};
use crate::rig::*;
use datapath::command::Transition;
use datapath::{Burst, Config, Reason};
use io::mem::{FrameSize, MemFrame, MemPool};
use io::{Frame, FramePool};
use packet::gtpu::MessageType;
use packet::ipv4::Ipv4Header;
use packet::{Fragment, Ipv4View, MacAddr, PacketBuilder, VlanTag};
use session::rules::SdfFilter;
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;

/// Buffers that there are.
const FRAMES: usize = 256;
/// Of them, so many may be held.
const BUDGET: usize = FRAMES / 8;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A worker that knows its neighbours and has a session, and whose packets come from the same pool as its own.
fn worker() -> Worker {
    let config = Config { held_frames: BUDGET, ..Config::new(rib(true).fib()) };
    let mut worker = Worker::of(config, 2, |_| true);
    worker.pool = MemPool::new(FRAMES, FrameSize::Standard);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker
}

/// A burst that arrives in buffers of the pool, as a port's do. What finds none is lost; says how much.
fn arrive(worker: &mut Worker, port: u16, packets: &[Vec<u8>]) -> usize {
    let mut burst: Vec<MemFrame> = Vec::new();
    for packet in packets {
        let Some(mut frame) = worker.pool.alloc() else { continue };
        assert!(frame.append(packet.len()));
        frame.bytes_mut().copy_from_slice(packet);
        burst.push(frame);
    }
    let lost = packets.len() - burst.len();
    worker.datapath.process(worker.now, port, &mut Burst::of(burst), &mut worker.out, &mut worker.pool);
    assert_eq!(worker.datapath.counters().balance(), 0);
    lost
}

/// The `n`th of seven pieces of a packet that never ends.
pub(super) fn piece(port: u16, v6: bool, identification: u32, n: u16) -> Vec<u8> {
    let (mac, from, to) = match (port, v6) {
        (0, false) => (N3, ip("192.0.2.66"), ip("192.0.2.1")),
        (0, true) => (N3, ip("2001:db8:3::66"), ip("2001:db8:3::1")),
        (_, false) => (N6, ip("198.51.100.66"), ip("203.0.113.1")),
        (_, true) => (N6, ip("2001:db8:66::66"), ip("2001:db8:6::1")),
    };
    let tag = (port == 1).then(|| VlanTag::customer(packet::VlanId::new(100).unwrap()));
    let builder = PacketBuilder::new().ethernet(mac, MacAddr([2, 9, 0, 0, 0, 0x66]));
    let builder = match tag {
        Some(tag) => builder.vlan(tag),
        None => builder,
    };
    let builder = if let (IpAddr::V4(source), IpAddr::V4(destination)) = (from, to) {
        builder.ipv4_header(Ipv4Header {
            source,
            destination,
            identification: identification as u16,
            more_fragments: true,
            fragment_offset: 3 * n,
            ..Ipv4Header::default()
        })
    } else {
        let fragment = Fragment { offset: 24 * u32::from(n), more: true, identification };
        builder.ip(from, to).ipv6_fragment(fragment)
    };
    builder.udp(1, 2).build(&[0x5a; 16])
}

/// A user's packets pass both ways, whatever else came just before.
fn serves(worker: &mut Worker) {
    for port in 0..2 {
        worker.sent(port);
    }
    let uplink = gtpu(MessageType::G_PDU, teid(UE)).build(&inner(UE, HOST, 30));
    assert_eq!(arrive(worker, 0, &[uplink]), 0, "no buffer for the user's packet");
    assert_eq!(arrive(worker, 1, &[downlink(30)]), 0, "no buffer for the user's packet");
    assert_eq!((worker.sent(0).len(), worker.sent(1).len()), (1, 1));
}

#[test]
fn outer_fragments_are_put_together() {
    let mut worker = Worker::new(rib(true), |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    let whole = gtpu(MessageType::G_PDU, teid(UE)).build(&inner(UE, HOST, 1400));
    let (link, packet) = whole.split_at(14);
    let piece = |octets| [link, &cut(packet, octets)].concat();
    let (a, b, c) = (piece(0..800), piece(800..1200), piece(1200..packet.len() - 20));
    worker.process(0, &[c.clone(), a.clone()]);
    assert_eq!(worker.datapath.counters().held, 2);
    worker.process(0, std::slice::from_ref(&b));
    let sent = worker.sent(1);
    assert_eq!(sent.len(), 1);
    assert_eq!(&sent[0][12..16], [0x81, 0, 0, 100], "N6 has a VLAN");
    assert_eq!(Ipv4View::parse(&sent[0][18..]).unwrap().total_len(), 1428);
    // Overlapping ones spoil the packet; lonely ones expire.
    worker.process(0, &[a.clone(), piece(400..1200)]);
    assert_eq!(worker.dropped(Reason::FragmentOverlap), 2);
    worker.process(0, &[a]);
    worker.tick(5);
    assert_eq!(worker.dropped(Reason::FragmentTimeout), 1);
    assert_eq!(worker.datapath.counters().held, 0);
}

#[test]
fn later_fragments_of_a_filtered_session_follow_the_first() {
    let mut worker = Worker::new(rib(true), |_| true);
    let mut filtered = (*rules(UE, to_gnb(77))).clone();
    filtered.pdrs[1].filters =
        [SdfFilter { protocol: Some(17), source_ports: [(1, 1)].into(), ..SdfFilter::default() }].into();
    worker.install(&Arc::new(filtered), Transition::default());
    let whole = downlink(136);
    let (link, packet) = whole.split_at(18);
    let fragment = |octets| [link, &cut(packet, octets)].concat();
    worker.process(1, &[fragment(72..144)]);
    assert_eq!(worker.dropped(Reason::FragmentWithoutFirst), 1);
    worker.process(1, &[fragment(0..72), fragment(72..144)]);
    assert_eq!(worker.sent(0).len(), 2);
}

#[test]
fn fragments_are_put_together_only_where_there_are_tunnels() {
    for v6 in [false, true] {
        let mut worker = worker();
        arrive(&mut worker, 1, &(0..7).map(|n| piece(1, v6, 1, n)).collect::<Vec<_>>());
        assert_eq!(worker.dropped(Reason::FragmentToUs), 7);
        arrive(&mut worker, 0, &(0..7).map(|n| piece(0, v6, 1, n)).collect::<Vec<_>>());
        assert_eq!((worker.dropped(Reason::FragmentToUs), worker.datapath.counters().held), (7, 7));
    }
}

#[test]
fn a_flood_of_fragments_takes_no_more_than_its_share_of_the_pool() {
    for (port, v6) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut worker = worker();
        // Seven pieces each, 64,000 a second for longer than fragments wait.
        let mut pieces = (1u32..).flat_map(|id| (0..7).map(move |n| piece(port, v6, id, n)));
        for _ in 0..2500 {
            worker.now = worker.now.plus(Nanos::SECOND / 1000);
            let burst: Vec<_> = pieces.by_ref().take(64).collect();
            assert_eq!(arrive(&mut worker, port, &burst), 0, "the pool is empty");
            assert!(worker.pool.in_use() <= BUDGET, "{} frames are held", worker.pool.in_use());
            serves(&mut worker);
            worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
        }
        let (given_up, refused) =
            (worker.dropped(Reason::FragmentLimit), worker.dropped(Reason::FragmentToUs));
        assert_eq!((given_up > 0, refused > 0), (port == 0, port == 1));
    }
}

#[test]
fn in_a_flood_of_fragments_a_tunnels_are_put_together() {
    let mut worker = worker();
    let whole = gtpu(MessageType::G_PDU, teid(UE)).build(&inner(UE, HOST, 1200));
    let (link, packet) = whole.split_at(14);
    let part = |octets| [link, &cut(packet, octets)].concat();
    let mut pieces = (1u32..).flat_map(|id| (0..7).map(move |n| piece(0, false, id, n)));
    for _ in 0..100 {
        arrive(&mut worker, 0, &pieces.by_ref().take(100).collect::<Vec<_>>());
        arrive(&mut worker, 0, &[part(0..800)]);
        // Those that came before it are older.
        arrive(&mut worker, 0, &pieces.by_ref().take(BUDGET / 2).collect::<Vec<_>>());
        arrive(&mut worker, 0, &[part(800..packet.len() - 20)]);
        assert_eq!(worker.sent(1).len(), 1);
    }
}

#[test]
fn the_oldest_of_too_many_fragmented_packets_gives_way() {
    let config = Config { reassemblies: 4, ..Config::new(rib(true).fib()) };
    let mut worker = Worker::of(config, 2, |_| true);
    worker.process(0, &(1..=6).map(|id| piece(0, false, id, 0)).collect::<Vec<_>>());
    assert_eq!((worker.dropped(Reason::FragmentLimit), worker.datapath.counters().held), (2, 4));
    // The first is gone, the last is there: the same piece again is a repetition.
    worker.process(0, &[piece(0, false, 6, 0)]);
    assert_eq!(worker.dropped(Reason::FragmentOverlap), 1);
    worker.process(0, &[piece(0, false, 1, 0)]);
    assert_eq!((worker.dropped(Reason::FragmentLimit), worker.dropped(Reason::FragmentOverlap)), (3, 1));
    worker.tick(3);
    assert_eq!((worker.dropped(Reason::FragmentTimeout), worker.datapath.counters().held), (4, 0));
}

/// What a user sends who looks for somebody on the data network's link: the `n`th address.
fn scan(n: u32) -> Vec<u8> {
    let source = ip("2001:db8:45:1::5");
    let destination =
        IpAddr::V6(std::net::Ipv6Addr::from((0x2001_0db8_0006u128 << 80) | (u128::from(n) + 0x1000)));
    let packet = PacketBuilder::new().ip(source, destination).udp(1, 2).build(b"anybody?");
    gtpu(MessageType::G_PDU, teid(UE)).build(&packet)
}

fn scanning_worker() -> Worker {
    let mut worker = worker();
    let mut both = (*rules(UE, to_gnb(77))).clone();
    both.ue_ipv6 = Some("2001:db8:45:1::/64".parse().unwrap());
    worker.install(&Arc::new(both), Transition::default());
    worker
}

#[test]
fn a_user_who_scans_a_link_takes_no_more_than_the_share_of_the_pool() {
    // Few packets an address or many, as many addresses as there are places or more.
    for packets_each in [1, 32] {
        let mut worker = scanning_worker();
        let mut scans = (0u32..).flat_map(|n| (0..packets_each).map(move |_| scan(n)));
        for _ in 0..2500 {
            worker.now = worker.now.plus(Nanos::SECOND / 1000);
            let burst: Vec<_> = scans.by_ref().take(64).collect();
            assert_eq!(arrive(&mut worker, 0, &burst), 0, "the pool is empty");
            serves(&mut worker);
            assert!(worker.pool.in_use() <= BUDGET, "{} frames are held", worker.pool.in_use());
            worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
        }
        assert!(worker.dropped(Reason::NeighbourPending) > 0);
        assert_eq!(worker.dropped(Reason::NoBuffer), 0);
    }
}

#[test]
fn a_user_who_scans_a_link_makes_us_ask_at_a_bounded_rate_and_others_are_asked_for() {
    let mut worker = scanning_worker();
    let questions =
        |worker: &mut Worker| worker.sent(1).iter().filter(|frame| frame[..2] == [0x33, 0x33]).count();
    let (mut asked, seconds) = (0, 3);
    let mut scans = (0u32..).map(scan);
    for _ in 0..seconds * 1000 {
        worker.now = worker.now.plus(Nanos::SECOND / 1000);
        arrive(&mut worker, 0, &scans.by_ref().take(50).collect::<Vec<_>>());
        worker.datapath.tick(worker.now, &mut worker.out, &mut worker.pool);
        asked += questions(&mut worker);
    }
    // A hundred new ones a second, and a hundred at once; each is asked for three times at most.
    assert!((100 * seconds..=100 * (seconds + 1) * 3).contains(&asked), "{asked} questions");
    // Another user of the same worker finds whom it looks for.
    let packet = PacketBuilder::new().ip(IpAddr::V4(UE), ip("203.0.113.77")).udp(1, 2).build(b"and you?");
    arrive(&mut worker, 0, &[gtpu(MessageType::G_PDU, teid(UE)).build(&packet)]);
    assert_eq!(worker.sent(1).len(), 1, "a question");
}

#[test]
fn fragments_and_frames_for_neighbours_draw_on_one_budget_and_the_oldest_goes() {
    let mut worker = scanning_worker();
    // Half of it is fragments', the other half waits for neighbours; then fragments take all of it, and give it back.
    let half = BUDGET as u32 / 2;
    arrive(&mut worker, 0, &(1..=half).map(|id| piece(0, false, id, 0)).collect::<Vec<_>>());
    worker.now = worker.now.plus(1000);
    arrive(&mut worker, 0, &(1..=half).map(scan).collect::<Vec<_>>());
    assert_eq!(worker.datapath.counters().held, BUDGET as u64);
    for (given_up, first) in [(Reason::FragmentLimit, true), (Reason::NeighbourPending, false)] {
        worker.now = worker.now.plus(1000);
        let base = if first { 1000 } else { 2000 };
        let more = (0..half).map(|id| piece(0, false, base + id, 0)).collect::<Vec<_>>();
        arrive(&mut worker, 0, &more);
        assert_eq!(worker.dropped(given_up), u64::from(half));
    }
    assert_eq!(worker.dropped(Reason::FragmentLimit), u64::from(half));
    assert_eq!(worker.datapath.counters().held, BUDGET as u64);
    serves(&mut worker);
}

#[test]
fn an_exhausted_pool_is_counted() {
    let mut worker = worker();
    worker.pool = MemPool::new(0, FrameSize::Standard);
    let echo = gtpu(MessageType::ECHO_REQUEST, packet::Teid(0)).gtpu_sequence(1).build(&[]);
    worker.process(0, &[echo, gtpu(MessageType::G_PDU, packet::Teid(9)).build(&inner(UE, HOST, 5))]);
    assert!(worker.sent(0).is_empty());
    assert_eq!(worker.dropped(Reason::NoBuffer), 2);
}
