//! UEs with more than a /64: all of their links are one shard's, on the fast path, and nobody else's.

use super::*;
use ipnet::{IpNet, Ipv6Net};
use packet::Ipv6View;
use session::config::PoolConfig;
use session::{PrefixLength, PrefixLengths, SessionRef};

const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 9);

fn lengths() -> PrefixLengths {
    PrefixLengths::of(&[PoolConfig {
        ipv6: vec!["2001:db8:56::/48".parse().unwrap()],
        ipv6_length: PrefixLength::new(56).unwrap(),
        ..PoolConfig::default()
    }])
}

/// A worker with these shards.
fn worker(shards: impl Fn(ShardId) -> bool) -> Worker {
    let mut rib = rib(true);
    rib.add_ue_pool("2001:db8:56::/48".parse().unwrap());
    rib.fix(1, HOST6.into(), MacAddr([2, 9, 0, 0, 0, 8]));
    Worker::of(Config { prefixes: lengths(), ..Config::new(rib.fib()) }, 2, shards)
}

/// Where the session with this prefix is.
fn home(prefix: Ipv6Net) -> SessionRef {
    SessionRef { shard: session::addresses::shard_of_ipv6(&lengths(), prefix), slot: 0 }
}

fn rules_of(prefix: Ipv6Net, place: SessionRef, filtered: bool) -> Arc<Rules> {
    let mut rules = session_at(place, None, to_gnb(77));
    rules.ue_ipv6 = Some(prefix);
    if filtered {
        for pdr in &mut rules.pdrs {
            pdr.filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
        }
    }
    Arc::new(rules)
}

/// What the UE sends from an address, and what is sent to it there; always with the same ports and the same end of the address.
fn from(place: SessionRef, address: Ipv6Addr) -> Vec<u8> {
    let packet = PacketBuilder::new().ipv6(address, HOST6).udp(1, 2).build(&[7; 64]);
    gtpu(MessageType::G_PDU, tunnel_at(place).teid).build(&packet)
}

fn to(address: Ipv6Addr) -> Vec<u8> {
    let tag = packet::VlanTag::customer(packet::VlanId::new(100).unwrap());
    PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag).ipv6(HOST6, address).udp(1, 2).build(&[7; 64])
}

fn link(prefix: Ipv6Net, number: u128) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.network().to_bits() | number << 64 | 5)
}

#[test]
fn all_links_of_a_delegated_prefix_are_one_workers() {
    let prefix: Ipv6Net = "2001:db8:56:1200::/56".parse().unwrap();
    let place = home(prefix);
    let mut mine = worker(|shard| shard == place.shard);
    let mut other = worker(|shard| shard != place.shard);
    mine.install(&rules_of(prefix, place, false), Transition::default());
    let links = [0, 1, 0x80, 0xff].map(|number| link(prefix, number));
    // No directory was told of anything.
    mine.process(0, &links.map(|address| from(place, address)));
    mine.process(1, &links.map(to));
    let sent = mine.sent(1);
    let sources: Vec<_> = sent.iter().map(|frame| Ipv6View::parse(&frame[18..]).unwrap().source()).collect();
    assert_eq!(sources, links);
    let sent = mine.sent(0);
    let packets = sent.iter().map(|frame| tunnelled(frame).3);
    let destinations: Vec<_> =
        packets.map(|packet| Ipv6View::parse(&packet).unwrap().destination()).collect();
    assert_eq!(destinations, links);
    // What comes to the other worker is handed over, uplink and downlink.
    other.process(0, &links.map(|address| from(place, address)));
    other.process(1, &links.map(to));
    assert_eq!(other.out.hand_off.len(), 8);
    assert!(other.out.hand_off.shards().all(|shard| shard == place.shard));
}

#[test]
fn a_neighbours_prefix_is_a_neighbours() {
    let prefix: Ipv6Net = "2001:db8:56:1200::/56".parse().unwrap();
    let place = home(prefix);
    for filtered in [false, true] {
        let mut worker = worker(|_| true);
        worker.install(&rules_of(prefix, place, filtered), Transition::default());
        let strangers =
            ["2001:db8:56:1300::5", "2001:db8:56:11ff::5", "2001:db8:56::5", "2001:db8:57:1200::5"];
        let strangers = strangers.map(|address| address.parse().unwrap());
        for (times, expected) in [(1, 4), (2, 8)] {
            worker.process(0, &strangers.map(|address| from(place, address)));
            assert_eq!(worker.dropped(Reason::SpoofedSource), expected, "{times}");
        }
        worker.process(1, &strangers.map(to)[..3]);
        assert_eq!(worker.dropped(Reason::UnknownUe), 3);
        assert!(worker.sent(0).is_empty() && worker.sent(1).is_empty());
        // It is gone with its session.
        worker.process(1, &[to(link(prefix, 9))]);
        assert_eq!(worker.sent(0).len(), 1);
        worker.apply(Command::Remove { token: Token(2), session: place });
        worker.process(1, &[to(link(prefix, 9))]);
        assert_eq!(worker.dropped(Reason::UnknownUe), 4);
    }
}

#[test]
fn a_flow_is_of_one_link() {
    let prefix: Ipv6Net = "2001:db8:56:1200::/56".parse().unwrap();
    let place = home(prefix);
    let mut worker = worker(|_| true);
    worker.install(&rules_of(prefix, place, true), Transition::default());
    let links = [0, 1, 0xff].map(|number| link(prefix, number));
    let flows = |worker: &Worker| {
        let flows = worker.datapath.counters().flows;
        (flows.learned, flows.served)
    };
    worker.process(0, &links.map(|address| from(place, address)));
    worker.process(1, &links.map(to));
    assert_eq!(flows(&worker), (6, 0), "they differ in the link alone");
    for _ in 0..2 {
        worker.process(0, &links.map(|address| from(place, address)));
        worker.process(1, &links.map(to));
    }
    assert_eq!(flows(&worker), (6, 12), "each is found again, and served by its rule's record");
    assert_eq!((worker.sent(0).len(), worker.sent(1).len()), (9, 9));
}

/// A prefix of another length than its pool's UEs have is found by the directory, wherever it hashes to, and judged by its session.
#[test]
fn another_length_than_the_pools_is_an_exception() {
    for (prefix, inside, outside) in [
        ("2001:db8:56:1242::/64", "2001:db8:56:1242::5", "2001:db8:56:1243::5"),
        ("2001:db8:56:1240::/60", "2001:db8:56:124f::5", "2001:db8:56:1250::5"),
        ("2001:db8:56:1000::/52", "2001:db8:56:1fff::5", "2001:db8:56:2000::5"),
    ] {
        let prefix: Ipv6Net = prefix.parse().unwrap();
        let [inside, outside]: [Ipv6Addr; 2] = [inside, outside].map(|address| address.parse().unwrap());
        let place = SessionRef { shard: ShardId::from_hash(3), slot: 4 };
        for filtered in [false, true] {
            let mut worker = worker(|_| true);
            worker.install(&rules_of(prefix, place, filtered), Transition::default());
            worker.process(1, &[to(inside)]);
            assert_eq!(worker.dropped(Reason::UnknownUe), 1, "{prefix}: nobody said where it is");
            worker.apply(Command::AddressDirectory { prefix: IpNet::V6(prefix), session: Some(place) });
            for _ in 0..2 {
                worker.process(0, &[from(place, inside), from(place, outside)]);
                worker.process(1, &[to(inside), to(outside)]);
            }
            assert_eq!((worker.sent(1).len(), worker.sent(0).len()), (2, 2), "{prefix}");
            assert_eq!(worker.dropped(Reason::SpoofedSource), 2, "{prefix}");
            assert_eq!(worker.dropped(Reason::UnknownUe), 3, "{prefix}");
            worker.apply(Command::AddressDirectory { prefix: IpNet::V6(prefix), session: None });
            worker.process(1, &[to(inside)]);
            assert_eq!(worker.dropped(Reason::UnknownUe), 4, "{prefix}");
        }
    }
}
