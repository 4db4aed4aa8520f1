//! NEA2 against the standard's test sets, and each unit against plain code.
#![allow(clippy::unwrap_used)]

use crate::shared_data::shared_data;
use proptest::prelude::*;
use ran::nea2::{self, Bearer, Count, Direction, Key, NoBearer, Packet, TooFewOctets};
use ran::simd::cipher::CipherUnit;

/// A test set of TS 33.401 Annex C.1, or one of its shape.
struct Set {
    name: String,
    key: Key,
    count: Count,
    bearer: Bearer,
    direction: Direction,
    bits: usize,
    plain: Vec<u8>,
    ciphered: Vec<u8>,
}

impl Set {
    fn all(text: &str) -> Vec<Self> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        lines.chunks(3).map(Self::read).collect()
    }

    fn read(lines: &[&str]) -> Self {
        let words: Vec<&str> = lines[0].split(' ').collect();
        let value = |name| words[words.iter().position(|word| *word == name).unwrap() + 1];
        let hex = |name| u32::from_str_radix(value(name), 16).unwrap();
        Self {
            name: value("set").into(),
            key: Key::new(octets(value("key")).try_into().unwrap()),
            count: Count(hex("count")),
            bearer: Bearer::new(hex("bearer") as u8).unwrap(),
            direction: if value("dir") == "1" { Direction::Downlink } else { Direction::Uplink },
            bits: value("bits").parse().unwrap(),
            plain: octets(lines[1].strip_prefix("pt ").unwrap()),
            ciphered: octets(lines[2].strip_prefix("ct ").unwrap()),
        }
    }

    fn packet<'a>(&'a self, data: &'a mut [u8]) -> Packet<'a> {
        Packet { key: &self.key, count: self.count, bearer: self.bearer, direction: self.direction, data }
    }
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Set 1 of TS 33.401 Annex C.1, so that something is compared where the file is absent.
const FIRST: &str = "\
set 1 key d3c5d592327fb11c4035c6680af8c6d1 count 398a59b4 bearer 15 dir 1 bits 253
pt 981ba6824c1bfb1ab485472029b71d808ce33e2cc3c0b5fc1f3de8a6dc66b1f0
ct e9fed8a63d155304d71df20bf3e82214b20ed7dad2f233dc3c22d7bdeeed8e78";

fn holds(sets: &[Set]) {
    for set in sets {
        for (from, to) in [(&set.plain, &set.ciphered), (&set.ciphered, &set.plain)] {
            let mut data = from.clone();
            nea2::apply_bits(set.packet(&mut data), set.bits).unwrap();
            assert_eq!(data, *to, "set {}", set.name);
        }
    }
    for unit in CipherUnit::here() {
        let mut data: Vec<Vec<u8>> = sets.iter().map(|set| set.plain.clone()).collect();
        let mut packets: Vec<Packet> =
            sets.iter().zip(&mut data).map(|(set, data)| set.packet(data)).collect();
        nea2::apply_all_by(unit, &mut packets);
        for (set, data) in sets.iter().zip(&data) {
            let whole = set.bits / 8;
            assert_eq!(data[..whole], set.ciphered[..whole], "set {} by {unit}", set.name);
        }
    }
}

#[test]
fn the_first_test_set_holds() {
    holds(&Set::all(FIRST));
}

#[test]
fn the_standard_s_test_sets_hold() {
    let Some(text) = shared_data("nea2-vectors.txt") else { return };
    let sets = Set::all(&text);
    assert!(sets.len() >= 8);
    holds(&sets);
}

#[test]
fn bits_behind_the_message_become_zero_and_octets_behind_it_stay() {
    let set = &Set::all(FIRST)[0];
    let mut data = set.plain.clone();
    *data.last_mut().unwrap() |= 0b111;
    data.extend([0xaa, 0x55]);
    nea2::apply_bits(set.packet(&mut data), set.bits).unwrap();
    assert_eq!(data[..32], set.ciphered);
    assert_eq!(data[32..], [0xaa, 0x55]);
}

#[test]
fn a_message_longer_than_its_octets_and_a_bearer_of_six_bits_are_refused() {
    let set = &Set::all(FIRST)[0];
    let mut data = [1, 2];
    assert_eq!(nea2::apply_bits(set.packet(&mut data), 17), Err(TooFewOctets { bits: 17, octets: 2 }));
    assert_eq!(data, [1, 2]);
    assert_eq!(Bearer::new(32), Err(NoBearer(32)));
    assert_eq!(Bearer::new(31).map(Bearer::number), Ok(31));
}

/// What a packet is made of, and where in memory its data begins.
#[derive(Debug, Clone)]
struct Made {
    key: [u8; 16],
    count: u32,
    bearer: u8,
    downlink: bool,
    data: Vec<u8>,
    skew: usize,
}

fn made() -> impl Strategy<Value = Made> {
    let length =
        prop_oneof![4 => 0_usize..100, 4 => 0_usize..600, 1 => 1400_usize..1600, 1 => 4050_usize..9100];
    (any::<[u8; 16]>(), any::<u32>(), 0_u8..32, any::<bool>(), length, any::<u8>(), 0_usize..64).prop_map(
        |(key, count, bearer, downlink, length, seed, skew)| {
            let data = (0..length).map(|at| (at as u8).wrapping_mul(seed | 1)).collect();
            Made { key, count, bearer, downlink, data, skew }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn each_unit_equals_plain_code_on_any_batch_at_any_alignment(all in prop::collection::vec(made(), 0..20)) {
        let keys: Vec<Key> = all.iter().map(|it| Key::new(it.key)).collect();
        let expanded: Vec<_> = keys.iter().map(Key::expand).collect();
        let buffers = || -> Vec<Vec<u8>> {
            all.iter().map(|it| [&vec![0xee; it.skew][..], &it.data, &[0xdd; 40]].concat()).collect()
        };
        let direction = |it: &Made| if it.downlink { Direction::Downlink } else { Direction::Uplink };
        let mut by_unit = Vec::new();
        for unit in CipherUnit::here() {
            for known in [false, true] {
                let mut memory = buffers();
                macro_rules! packets {
                    ($keys:expr) => {
                        all.iter().zip(&mut memory).zip($keys).map(|((it, data), key)| Packet {
                            key,
                            count: Count(it.count),
                            bearer: Bearer::new(it.bearer).unwrap(),
                            direction: direction(it),
                            data: &mut data[it.skew..][..it.data.len()],
                        }).collect::<Vec<_>>()
                    };
                }
                if known {
                    nea2::apply_all_expanded_by(unit, &mut packets!(&expanded));
                } else {
                    nea2::apply_all_by(unit, &mut packets!(&keys));
                }
                by_unit.push((unit, known, memory));
            }
        }
        for (unit, known, memory) in &by_unit {
            prop_assert_eq!(memory, &by_unit[0].2, "{} {}", unit, known);
        }
        for ((before, after), it) in buffers().iter().zip(&by_unit[0].2).zip(&all) {
            prop_assert_eq!(&before[..it.skew], &after[..it.skew]);
            prop_assert_eq!(&before[it.skew + it.data.len()..], &after[it.skew + it.data.len()..]);
        }
    }
}
