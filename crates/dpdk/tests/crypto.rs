//! NEA2 by a cryptodev, held against `ran` and the standard's test sets.

use crate::common::start;
use accel::task::{Batch, Packet, Task};
use accel::{Device, Failure, Fallback, Refusal, conformance};
use dpdk::DpdkError;
use dpdk::crypto::{CryptoDevice, KEYS};
use ran::nea2::{Bearer, Count, Direction};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use tables::{Nanos, Tsc};

/// Set 1 of TS 33.401 Annex C.1: key, COUNT, BEARER, DIRECTION, plain, ciphered.
const FIRST: &str = "\
set 1 key d3c5d592327fb11c4035c6680af8c6d1 count 398a59b4 bearer 15 dir 1 bits 253
pt 981ba6824c1bfb1ab485472029b71d808ce33e2cc3c0b5fc1f3de8a6dc66b1f0
ct e9fed8a63d155304d71df20bf3e82214b20ed7dad2f233dc3c22d7bdeeed8e78";

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn cryptodev() {
    testing::in_process("cryptodev_body");
}

#[test]
#[ignore = "run by `cryptodev` in a process of its own"]
fn cryptodev_body() {
    let eal = start(&[]);
    let nothing = CryptoDevice::open(&eal, "crypto_nothing0").unwrap_err();
    assert!(matches!(nothing, DpdkError::Probe { .. }), "{nothing}");
    let mut device = match CryptoDevice::open(&eal, "crypto_aesni_mb0") {
        Ok(device) => device,
        Err(why) => return testing::skipped(why),
    };
    let clock = Tsc::process();
    let mut random = SmallRng::seed_from_u64(31);
    let report = conformance::run(&mut device, &clock, &mut || random.next_u64()).unwrap();
    assert!(report.done >= 9 && report.given_back > 0, "{report:?}");

    the_standards_sets(&mut device);
    more_keys_than_sessions(&mut device, &mut random);

    let mut long = Batch::new(1, Task::Nea2);
    let packet = Packet {
        key: [1; 16],
        count: Count(1),
        bearer: Bearer::new(1).unwrap(),
        direction: Direction::Uplink,
    };
    long.push_packet(packet, &[0; 9217]).unwrap();
    let refused = device.submit(long.clone(), Nanos(0)).unwrap_err();
    assert!(matches!(refused.why, Refusal::TooLarge { given: 9217, most: 9216, .. }));
    assert_eq!(refused.batch, long);

    // Given up, the processor goes on.
    let mut pair = Fallback::new(
        device,
        accel::cpu::Inline::new(4, Tsc::process()),
        accel::fallback::Settings::default(),
    );
    pair.submit(long, clock.now()).unwrap();
    let mut ended = Vec::new();
    while pair.poll(clock.now(), &mut ended) == 0 {}
    assert_eq!((ended[0].outcome.clone(), pair.counts().second), (Ok(()), 1));
    pair.first().abandon(clock.now(), &mut ended);
    let batch = conformance::batch(accel::Kind::Nea2, 1, 3, &mut || random.next_u64()).unwrap();
    let refused = pair.first().submit(batch, clock.now()).unwrap_err();
    assert_eq!(refused.why, Refusal::Failed(Failure::Abandoned));
}

/// The published sets, as far as they end with an octet; of set 1 all octets but the last, of which NEA2 uses some bits.
fn the_standards_sets(device: &mut CryptoDevice) {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let file = above.map(|folder| folder.join("shared/data/nea2-vectors.txt")).find(|path| path.is_file());
    let text = file.map_or(FIRST.into(), |path| std::fs::read_to_string(path).unwrap());
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut batch = Batch::new(7, Task::Nea2);
    let mut expected = Vec::new();
    for set in lines.chunks(3) {
        let words: Vec<&str> = set[0].split(' ').collect();
        let value = |name| words[words.iter().position(|word| *word == name).unwrap() + 1];
        let number = |name| u32::from_str_radix(value(name), 16).unwrap();
        let packet = Packet {
            key: octets(value("key")).try_into().unwrap(),
            count: Count(number("count")),
            bearer: Bearer::new(number("bearer") as u8).unwrap(),
            direction: if value("dir") == "1" { Direction::Downlink } else { Direction::Uplink },
        };
        let whole = value("bits").parse::<usize>().unwrap() / 8;
        let plain = octets(set[1].strip_prefix("pt ").unwrap());
        batch.push_packet(packet, &plain[..whole]).unwrap();
        expected.push(octets(set[2].strip_prefix("ct ").unwrap())[..whole].to_vec());
    }
    device.submit(batch, Nanos(0)).unwrap();
    let mut ended = Vec::new();
    while device.poll(Nanos(0), &mut ended) == 0 {}
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(ended[0].batch.packet(at), Some(&expected[..]), "set {at}");
    }
}

/// Keys that have no session any more get one again.
fn more_keys_than_sessions(device: &mut CryptoDevice, random: &mut SmallRng) {
    let mut second = accel::cpu::Inline::new(1, || Nanos(0));
    for number in 0..(KEYS as u64 / 256 + 3) {
        let batch = conformance::batch_of(Task::Nea2, number, 256, &mut || random.next_u64()).unwrap();
        second.submit(batch.clone(), Nanos(0)).unwrap();
        device.submit(batch, Nanos(0)).unwrap();
        let (mut found, mut right) = (Vec::new(), Vec::new());
        second.poll(Nanos(0), &mut right);
        while device.poll(Nanos(0), &mut found) == 0 {}
        assert!(found[0].outcome.is_ok() && found[0].batch.output() == right[0].batch.output(), "{number}");
    }
}
