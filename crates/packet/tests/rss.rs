//! The published verification vectors of receive side scaling, and what shards rely on.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use packet::Ports;
use packet::rss::{self, MICROSOFT_KEY, SYMMETRIC_KEY, Toeplitz, UE_KEY};
use proptest::prelude::*;

/// Destination, its port, source, its port, hash of addresses, hash of addresses and ports (Microsoft, "Verifying the
/// RSS Hash Calculation").
const VECTORS: [(&str, u16, &str, u16, u32, u32); 8] = [
    ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178),
    ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea),
    ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a),
    ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f),
    ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2),
    ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d),
    ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf),
    ("fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985, 0x02d1feef),
];

#[test]
fn published_vectors() {
    let toeplitz: Toeplitz = Toeplitz::new(&MICROSOFT_KEY);
    for (destination, dport, source, sport, addresses, tuple) in VECTORS {
        let (s, d): (IpAddr, IpAddr) = (source.parse().unwrap(), destination.parse().unwrap());
        assert_eq!(toeplitz.hash_addresses(s, d), addresses, "{source} {destination}");
        let ports = Ports { source: sport, destination: dport };
        assert_eq!(toeplitz.hash_5tuple(s, d, ports), tuple, "{source} {destination}");
    }
}

/// The definition, bit by bit.
fn naive(key: &[u8], input: &[u8]) -> u32 {
    let mut window = u32::from_be_bytes(key[..4].try_into().unwrap());
    let mut hash = 0;
    for (i, octet) in input.iter().enumerate() {
        for bit in 0..8 {
            if octet & 0x80 >> bit != 0 {
                hash ^= window;
            }
            window = window << 1 | u32::from(key[i + 4] >> (7 - bit) & 1);
        }
    }
    hash
}

#[test]
fn any_block_of_512_addresses_fills_512_shards() {
    for base in [[10, 60, 0, 0], [100, 64, 2, 0], [172, 16, 254, 0]] {
        let base = u32::from_be_bytes(base);
        let shards: HashSet<_> =
            (0..512).map(|i| rss::ue_hash_ipv4(Ipv4Addr::from_bits(base + i)) & 511).collect();
        assert_eq!(shards.len(), 512);
    }
    let shards: HashSet<_> =
        (0..512).map(|i| rss::ue_hash_prefix64(0x2001_0db8_0060_0000 + i) & 511).collect();
    assert_eq!(shards.len(), 512);
}

proptest! {
    #[test]
    fn tables_agree_with_the_definition(key: [u8; 40], input: [u8; 36], len in 0..=36usize) {
        let toeplitz: Toeplitz = Toeplitz::new(&key);
        prop_assert_eq!(toeplitz.hash(&input[..len]), naive(&key, &input[..len]));
    }

    #[test]
    fn ue_hash_is_toeplitz_wherever_the_address_lies(address: u32, prefix: u64, words in 0..16usize) {
        let four = address.to_be_bytes();
        prop_assert_eq!(rss::ue_hash_ipv4(address.into()), naive(&UE_KEY, &four));
        prop_assert_eq!(rss::ue_hash_prefix64(prefix), naive(&UE_KEY, &prefix.to_be_bytes()));
        let mut elsewhere = [0; 36];
        elsewhere[2 * words..2 * words + 4].copy_from_slice(&four);
        prop_assert_eq!(rss::ue_hash(IpAddr::V4(address.into())), naive(&UE_KEY, &elsewhere));
        let ue: Toeplitz<8> = Toeplitz::new(&UE_KEY);
        prop_assert_eq!(ue.hash_ipv4(address.into()), rss::ue_hash_ipv4(address.into()));
        prop_assert_eq!(ue.hash_prefix64(prefix), rss::ue_hash_prefix64(prefix));
    }

    #[test]
    fn symmetric_key_hashes_both_directions_alike(s: IpAddr, d: IpAddr, source: u16, destination: u16) {
        let toeplitz: Toeplitz = Toeplitz::new(&SYMMETRIC_KEY);
        let there = toeplitz.hash_5tuple(s, d, Ports { source, destination });
        let back = toeplitz.hash_5tuple(d, s, Ports { source: destination, destination: source });
        prop_assert!(s.is_ipv4() != d.is_ipv4() || there == back);
    }
}
