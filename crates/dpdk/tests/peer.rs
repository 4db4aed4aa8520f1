//! DPDK's look-up tables through the shim: they find what was put in, and nothing else.

use dpdk::peer::{Fib4, Fib6, Hash, Lpm4, Lpm6, PeerError, Peers, Way};
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::{Tuple4, Tuple6};

#[test]
fn peers_answer() {
    testing::in_process("peers_body");
}

#[test]
#[ignore = "run by `peers_answer` in a process of its own"]
fn peers_body() {
    let peers = Peers::new(1 << 30).unwrap();
    println!("{}", peers.version());
    hash(&peers, |n| Tuple4::new(n.into(), 9.into(), 6, 1, 2));
    hash(&peers, |n| Tuple6::new(u128::from(n).into(), 9.into(), 6, 1, 2));
    ipv4(&peers);
    ipv6(&peers);
}

fn hash<K: dpdk::peer::HashKey>(peers: &Peers, key: fn(u32) -> K) {
    let mut table = Hash::new(peers, 1024).unwrap();
    let positions: Vec<u32> = (0..900).map(|n| table.add(&key(n)).unwrap()).collect();
    let keys: Vec<K> = (0..1000).map(key).collect();
    let mut out = vec![7; 1000];
    table.find(&keys, &mut out);
    for (n, found) in out.iter().enumerate() {
        assert_eq!(u32::try_from(*found).ok(), positions.get(n).copied(), "{n}");
    }
}

fn ipv4(peers: &Peers) {
    let route = |text: &str, len, value| (text.parse::<Ipv4Addr>().unwrap(), len, value);
    let routes = [
        route("10.0.0.0", 8, 1),
        route("10.1.2.0", 24, 2),
        route("10.1.2.128", 25, 3),
        route("10.1.2.129", 32, 4),
    ];
    let asked = ["10.9.9.9", "10.1.2.3", "10.1.2.200", "10.1.2.129", "11.0.0.1"];
    let addresses: Vec<u32> = asked.iter().map(|text| text.parse::<Ipv4Addr>().unwrap().to_bits()).collect();
    let expected = [Some(1), Some(2), Some(3), Some(4), None];
    let lpm = Lpm4::new(peers, &routes, 4).unwrap();
    let mut out = [0; 5];
    lpm.find(&addresses, &mut out);
    assert_eq!(out.map(|found| (found >> 24 & 1 == 1).then_some(found & 0xff_ffff)), expected);
    // Not sorted by length; host bits; too few groups.
    let [a, b, ..] = routes;
    assert!(matches!(Lpm4::new(peers, &[b, a], 4), Err(PeerError::Refused { .. })));
    assert!(matches!(Lpm4::new(peers, &[route("10.0.0.1", 8, 1)], 4), Err(PeerError::Refused { .. })));
    assert!(matches!(Lpm4::new(peers, &routes, 0), Err(PeerError::Refused { .. })));
    for octets in [2, 4] {
        for way in [Way::Scalar, Way::Vector] {
            let Ok(mut fib) = Fib4::new(peers, 10, 4, octets, way) else {
                testing::skipped(format!("rte_fib: no look-up by {way:?} here"));
                continue;
            };
            routes.iter().for_each(|(prefix, len, value)| fib.add(*prefix, *len, *value).unwrap());
            let mut out = [0; 5];
            fib.find(&addresses, &mut out);
            assert_eq!(out, expected.map(|value| value.map_or(0, u64::from)), "{octets}, {way:?}");
        }
    }
}

fn ipv6(peers: &Peers) {
    let routes: [(Ipv6Addr, u8, u16); 3] =
        [("2001:db8::", 32, 1), ("2001:db8:1::", 48, 2), ("2001:db8:1::7", 128, 3)]
            .map(|(text, len, value)| (text.parse().unwrap(), len, value));
    let asked = ["2001:db8:9::1", "2001:db8:1::1", "2001:db8:1::7", "2001:db9::"];
    let addresses: Vec<[u8; 16]> =
        asked.iter().map(|text| text.parse::<Ipv6Addr>().unwrap().octets()).collect();
    let expected = [Some(1), Some(2), Some(3), None];
    let mut lpm = Lpm6::new(peers, 10, 64).unwrap();
    routes.iter().for_each(|(prefix, len, value)| lpm.add(*prefix, *len, *value).unwrap());
    let mut out = [0; 4];
    lpm.find(&addresses, &mut out);
    assert_eq!(out.map(|found| u32::try_from(found).ok()), expected);
    for way in [Way::Scalar, Way::Vector] {
        let Ok(mut fib) = Fib6::new(peers, 10, 64, way) else {
            testing::skipped(format!("rte_fib6: no look-up by {way:?} here"));
            continue;
        };
        routes.iter().for_each(|(prefix, len, value)| fib.add(*prefix, *len, *value).unwrap());
        let mut out = [0; 4];
        fib.find(&addresses, &mut out);
        assert_eq!(out, expected.map(|value| value.map_or(0, u64::from)), "{way:?}");
    }
}
