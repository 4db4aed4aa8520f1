//! Copies of tables: they say what the tables say, in Rust and in the kernels' code, also while they follow.

use crate::kernels::{numbers, run, twin};
use accel::copies::layout::{KINDS, NONE};
use accel::copies::{Follower, TableId, key_words};
use accel::cpu::{Inline, Settings, Workers};
use accel::ring::{RingDevice, Shape, Thread};
use accel::task::{Batch, Lookup, Task};
use accel::{Device, Failure, Fallback, conformance};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use tables::classify::{Flows4, Flows6, Tuple4, Tuple6};
use tables::image::{Changes, Image, Kind};
use tables::l2::{L2, L2Config, Station};
use tables::{Lookup as _, Memo, Nanos, Tsc, memo};

/// A copy's words.
pub fn words_of(image: &dyn Image) -> Vec<u32> {
    let mut follower = Follower::new(image, 3).unwrap();
    let mut words = vec![0; follower.words()];
    let all = Changes { generation: 1, all: true, lines: Vec::new() };
    let write = |at: usize, piece: &[u32]| {
        words[at..at + piece.len()].copy_from_slice(piece);
        Ok(())
    };
    follower.follow(image, &all, write).unwrap();
    words
}

/// Answers of the kernels' code, compiled for the host.
pub fn by_twin(program: &Path, words: &[u32], kind: usize, keys: &[u8]) -> Vec<u8> {
    let key = KINDS.into_iter().find(|of| *of as usize == kind).map_or(4, key_words);
    let header = numbers(&[words.len(), kind, keys.len() / 4 / key, key]);
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    run(program, "look_up", &[&header, &words, keys])
}

/// Looks `keys` up in a device's copy of `image`, in the kernels' code too, and holds them against what should be.
fn holds<const N: usize>(image: &dyn Image, keys: &[[u32; N]], right: &[Option<u32>]) {
    let kind = image.layout().kind;
    let mut device = Inline::new(1, || Nanos(0));
    let all = Changes { generation: 1, all: true, lines: Vec::new() };
    device.follow(TableId(1), image, &all).unwrap();
    let mut batch = Batch::new(1, Task::Lookup(Lookup { table: TableId(1), kind }));
    keys.iter().for_each(|key| batch.push_key(key).unwrap());
    let items = batch.items().to_vec();
    device.submit(batch, Nanos(0)).unwrap();
    let mut ended = Vec::new();
    device.poll(Nanos(0), &mut ended);
    assert_eq!((&ended[0].outcome, ended[0].steady), (&Ok(()), true));
    for (at, right) in right.iter().enumerate() {
        assert_eq!(
            ended[0].batch.number(at),
            Some(right.unwrap_or(NONE as u32)),
            "{kind:?} {:08x?}",
            keys[at]
        );
    }
    match twin() {
        Ok(program) => {
            let found = by_twin(program, &words_of(image), kind as usize, &items);
            assert_eq!(found, ended[0].batch.output(), "{kind:?}");
        }
        Err(why) => testing::skipped(why),
    }
}

fn flow4(random: &mut SmallRng) -> Tuple4 {
    let address = |random: &mut SmallRng| Ipv4Addr::from_bits(random.next_u32() % 4096);
    let ports = random.next_u32();
    Tuple4::new(address(random), address(random), ports as u8, (ports >> 8) as u16, (ports >> 16) as u16)
}

fn flow6(random: &mut SmallRng) -> Tuple6 {
    let address = |random: &mut SmallRng| Ipv6Addr::from_bits(u128::from(random.next_u64()) << 32 | 7);
    let ports = random.next_u32();
    Tuple6::new(address(random), address(random), ports as u8, (ports >> 8) as u16, (ports >> 16) as u16)
}

#[test]
fn flows_are_found_in_copies_of_all_sizes() {
    let mut random = SmallRng::seed_from_u64(21);
    for limit in [1, 4, 50, 5000] {
        let mut four = Flows4::new(random.next_u64(), limit).unwrap();
        let mut six = Flows6::new(random.next_u64(), limit).unwrap();
        let (mut model4, mut model6) = (HashMap::new(), HashMap::new());
        for at in 0..limit {
            let value = if at == 0 { Flows4::MAX_VALUE } else { random.next_u32() % Flows4::MAX_VALUE };
            let (key4, key6) = (flow4(&mut random), flow6(&mut random));
            four.insert(key4, value).unwrap();
            six.insert(key6, value << 7).unwrap();
            model4.insert(key4, value);
            model6.insert(key6, value << 7);
        }
        let keys: Vec<Tuple4> = model4.keys().copied().chain((0..100).map(|_| flow4(&mut random))).collect();
        let right: Vec<_> = keys.iter().map(|key| model4.get(key).copied()).collect();
        holds(&four, &keys.iter().map(Tuple4::words).collect::<Vec<_>>(), &right);
        let keys: Vec<Tuple6> = model6.keys().copied().chain((0..100).map(|_| flow6(&mut random))).collect();
        let right: Vec<_> = keys.iter().map(|key| model6.get(key).copied()).collect();
        holds(&six, &keys.iter().map(Tuple6::words).collect::<Vec<_>>(), &right);
    }
}

#[test]
fn stations_are_found_in_their_vlan_and_no_other() {
    let mut table = L2::new(9, L2Config::new(2000), Nanos(0)).unwrap();
    let mut random = SmallRng::seed_from_u64(25);
    let mut stations: Vec<Station> = Vec::new();
    for at in 0..2000_u32 {
        let [.., a, b, c, d] = random.next_u64().to_be_bytes();
        let station = Station::new([2, a, b, c, d, at as u8], (at % 4094) as u16 + 1);
        table.learn(station, (at % 500) as u16, Nanos(u64::from(at) << 31));
        stations.push(station);
    }
    table.pin(stations[7], 499).unwrap();
    stations.extend(stations.clone().iter().take(50).map(|one| Station::new(one.mac(), one.vlan() ^ 1)));
    let right: Vec<_> = stations.iter().map(|one| table.lookup(one)).collect();
    assert!(right[..2000].iter().all(Option::is_some) && right[2000..].iter().any(Option::is_none));
    holds(&table, &stations.iter().map(Station::words).collect::<Vec<_>>(), &right);
}

#[test]
fn what_was_last_heard_is_found_in_copies() {
    let mut random = SmallRng::seed_from_u64(26);
    for entries in [1, 200, 5_000] {
        let mut memo = Memo::new(entries);
        let keys: Vec<u64> =
            (0..800).map(|_| random.next_u64() >> [0, 24][random.next_u32() as usize % 2]).collect();
        for key in keys.iter().take(600) {
            memo.set(*key, [0, u32::MAX - 1, random.next_u32()][random.next_u32() as usize % 3]);
        }
        keys.iter().take(50).for_each(|key| memo.set(*key, Memo::NOTHING));
        let right: Vec<_> = keys.iter().map(|key| memo.lookup(key)).collect();
        // Few enough in a line to be known, and some that never were set.
        assert!(right.iter().flatten().count() >= entries.min(500) / 2 && right[600..].contains(&None));
        holds(&memo, &keys.iter().map(|key| memo::words(*key)).collect::<Vec<_>>(), &right);
    }
}

/// What a device is given: a table that isn't there as an object.
struct Made(Kind, [u32; 16], Vec<Vec<u32>>);

impl Image for Made {
    fn layout(&self) -> tables::image::Layout {
        tables::image::Layout { kind: self.0, parameters: self.1 }
    }
    fn regions(&self) -> Vec<&[u32]> {
        self.2.iter().map(Vec::as_slice).collect()
    }
    fn track(&mut self, _limit: usize) {}
    fn changes(&mut self, into: &mut Changes) {
        *into = Changes { generation: 1, all: true, lines: Vec::new() };
    }
}

/// Whatever stands in a copy, each look-up ends, and in both languages with the same answer; the sanitizer of the program sees to it that nothing is
/// read where nothing is.
#[test]
fn nonsense_in_a_copy_ends_in_some_answer() {
    let mut random = SmallRng::seed_from_u64(22);
    for kind in KINDS {
        for _ in 0..40 {
            let mut parameters: [u32; 16] = std::array::from_fn(|_| random.next_u32());
            parameters[0] = [random.next_u32() % 40, 16, 24, 0][random.next_u32() as usize % 4];
            let mut word = || match random.next_u32() % 4 {
                0 => 0,
                // Entries that lead on, not far away.
                1 => 0xc000_0000 + random.next_u32() % 8,
                2 => 0x8000_0000 + random.next_u32() % 8,
                _ => random.next_u32() >> (random.next_u32() % 32),
            };
            let lengths = match kind {
                Kind::Lpm6 => vec![256, 512, 64],
                Kind::Lpm4 => vec![256, 512],
                Kind::Flow6 => vec![64, 64],
                Kind::Flow4 | Kind::Link | Kind::Memo => vec![64],
            };
            let regions = lengths.into_iter().map(|length| (0..length).map(|_| word()).collect()).collect();
            let made = Made(kind, parameters, regions);
            let keys: Vec<u32> = (0..key_words(kind) * 20)
                .map(|_| random.next_u32() >> if random.next_u32() % 2 == 0 { 24 } else { 0 })
                .collect();
            let mut device = Inline::new(1, || Nanos(0));
            let all = Changes { generation: 1, all: true, lines: Vec::new() };
            device.follow(TableId(1), &made, &all).unwrap();
            let mut batch = Batch::new(1, Task::Lookup(Lookup { table: TableId(1), kind }));
            keys.chunks(key_words(kind)).for_each(|key| batch.push_key(key).unwrap());
            let items = batch.items().to_vec();
            device.submit(batch, Nanos(0)).unwrap();
            let mut ended = Vec::new();
            device.poll(Nanos(0), &mut ended);
            assert_eq!(ended[0].outcome, Ok(()));
            if let Ok(program) = twin() {
                let found = by_twin(program, &words_of(&made), kind as usize, &items);
                assert_eq!(found, ended[0].batch.output(), "{kind:?} {parameters:x?}");
            }
        }
    }
}

/// Routes by hand, as the layout has them: a root of 16 bits, one node below, and for IPv6 a node that is 16 bits further down.
#[test]
fn routes_are_walked_as_the_layout_says() {
    let answer = |length: u32, value: u32| 1 << 24 | length << 16 | value;
    let mut parameters = [0; 16];
    (parameters[0], parameters[1]) = (16, answer(0, 9));
    let mut root = vec![0; 1 << 16];
    root[0x0a01] = answer(16, 1);
    root[0x0a02] = 1 << 31;
    let mut node = vec![0; 512];
    node[3] = answer(24, 2);
    node[4] = 1 << 31 | 1;
    node[256 + 5] = answer(32, 3);
    let made = Made(Kind::Lpm4, parameters, vec![root.clone(), node.clone()]);
    let keys = [0x0a01_ffff, 0x0a02_0301, 0x0a02_0405, 0x0a02_0406, 0x0b00_0000].map(|key| [key]);
    holds(&made, &keys, &[Some(1), Some(2), Some(3), Some(9), Some(9)]);

    // The node decides bits 40 to 47 of 0a02:33../40; who parts before has 7.
    root[0x0a02] = 3 << 30;
    let branch = vec![0x0a02_3344, 0x5500_0000, 0, 0, 40, answer(16, 7), 0, 0];
    let made = Made(Kind::Lpm6, parameters, vec![root, node, branch]);
    let keys = [
        [0x0a02_3344, 0x5503_0000, 0, 1],
        [0x0a02_3345, 0x5503_0000, 0, 1],
        [0x0a02_3344, 0x55aa_0000, 0, 0],
    ];
    holds(&made, &keys, &[Some(2), Some(7), Some(9)]);
}

/// A device's answers while the table changes and its copy follows. What is asked for after the copy has followed is what the table says. What was asked for
/// before is not steady, unless it was answered before.
pub fn follows(device: &mut dyn Device, answers_at_once: bool) {
    let mut random = SmallRng::seed_from_u64(23);
    let mut flows = Flows4::new(1, 2000).unwrap();
    flows.track(300);
    let keys: Vec<Tuple4> = (0..2000).map(|_| flow4(&mut random)).collect();
    let (mut changes, clock, mut lines) = (Changes::default(), Tsc::process(), 0);
    for round in 0..60_u64 {
        // Sometimes more has changed than is noted.
        for _ in 0..if round % 20 == 7 { 900 } else { 40 } {
            let key = keys[random.next_u32() as usize % keys.len()];
            if random.next_u32() % 3 == 0 {
                flows.remove(&key);
            } else {
                flows.insert(key, random.next_u32() % 1000).unwrap();
            }
        }
        let asked: Vec<Tuple4> = (0..64).map(|_| keys[random.next_u32() as usize % keys.len()]).collect();
        let mut batch = Batch::new(0, Task::Lookup(Lookup { table: TableId(4), kind: Kind::Flow4 }));
        asked.iter().for_each(|key| batch.push_key(&key.words()).unwrap());
        let mut out = 1;
        // One is under way while lines are written.
        if round > 0 {
            device.submit(batch.clone(), clock.now()).unwrap();
            out += 1;
        }
        flows.changes(&mut changes);
        lines += changes.lines.len();
        device.follow(TableId(4), &flows, &changes).unwrap();
        batch.ticket = 1;
        device.submit(batch.clone(), clock.now()).unwrap();
        let mut ended = Vec::new();
        while out > 0 {
            device.poll(clock.now(), &mut ended);
            let Some(completion) = ended.pop() else { continue };
            completion.outcome.unwrap();
            let after = completion.batch.ticket == 1;
            assert!(after || completion.steady == answers_at_once);
            if after && !completion.steady {
                // Lines are on their way.
                device.submit(batch.clone(), clock.now()).unwrap();
                continue;
            }
            out -= 1;
            for (at, key) in asked.iter().enumerate().filter(|_| after) {
                let right = flows.get(key).unwrap_or(NONE as u32);
                assert_eq!(completion.batch.number(at), Some(right), "{round} {key:?}");
            }
        }
    }
    assert!(lines > 500, "{lines}");
}

#[test]
fn a_copy_follows_while_keys_are_looked_up() {
    follows(&mut Inline::new(4, Tsc::process()), true);
    follows(&mut Workers::start(Settings::default(), &Tsc::process()).unwrap(), false);
    let shape = Shape::new(4, 4096, 4096).unwrap();
    follows(&mut RingDevice::start(Thread::new(Tsc::process()), shape, 256).unwrap(), false);
}

#[test]
fn a_copy_that_has_missed_something_says_so_and_is_made_anew() {
    let mut flows = Flows4::new(1, 100).unwrap();
    let mut device = Inline::new(1, || Nanos(0));
    flows.track(10);
    let mut changes = Changes::default();
    flows.changes(&mut changes);
    device.follow(TableId(1), &flows, &changes).unwrap();
    for port in [1, 2] {
        flows.insert(Tuple4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, 6, port, 1), 1).unwrap();
        flows.changes(&mut changes);
    }
    let missed = device.follow(TableId(1), &flows, &changes);
    assert_eq!(missed, Err(Failure::Missed { have: 1, told: 3 }));
    changes.all = true;
    device.follow(TableId(1), &flows, &changes).unwrap();
    // Another table under the same number is none.
    let six = Flows6::new(1, 10).unwrap();
    assert!(matches!(device.follow(TableId(1), &six, &changes), Err(Failure::Call { .. })));
}

#[test]
fn a_table_that_grows_beyond_its_room_gets_a_larger_copy() {
    let made = |nodes: usize| {
        let mut root = vec![0; 256];
        root[1] = 1 << 31 | (nodes as u32 - 1);
        let mut parameters = [0; 16];
        parameters[0] = 8;
        let mut node = vec![0; 256 * nodes];
        node[256 * (nodes - 1) + 2] = 1 << 24 | 16 << 16 | nodes as u32;
        Made(Kind::Lpm4, parameters, vec![root, node])
    };
    let mut device = Inline::new(1, || Nanos(0));
    for (generation, nodes) in [1, 2, 50, 51].into_iter().enumerate() {
        let all = Changes { generation: generation as u64 + 1, all: true, lines: Vec::new() };
        device.follow(TableId(1), &made(nodes), &all).unwrap();
        let mut batch = Batch::new(1, Task::Lookup(Lookup { table: TableId(1), kind: Kind::Lpm4 }));
        batch.push_key(&[0x0102_0000]).unwrap();
        device.submit(batch, Nanos(0)).unwrap();
        let mut ended = Vec::new();
        device.poll(Nanos(0), &mut ended);
        assert_eq!(ended[0].batch.number(0), Some(nodes as u32));
    }
}

#[test]
fn without_a_copy_there_is_no_answer_and_the_one_who_has_one_gives_it() {
    let task = Task::Lookup(Lookup { table: conformance::TABLE, kind: Kind::Flow4 });
    let mut random = SmallRng::seed_from_u64(24);
    let mut batch = || conformance::batch_of(task, 1, 3, &mut || random.next_u64()).unwrap();
    let mut device = Inline::new(1, || Nanos(0));
    device.submit(batch(), Nanos(0)).unwrap();
    let mut ended = Vec::new();
    device.poll(Nanos(0), &mut ended);
    assert_eq!(ended[0].outcome, Err(Failure::NoTable(conformance::TABLE)));

    // The first can't follow: its copy is too small for a table of another kind.
    let shape = Shape::new(1, 4096, 4096).unwrap();
    let mut first = RingDevice::start(Thread::new(Tsc::process()), shape, 64).unwrap();
    first
        .follow(
            conformance::TABLE,
            &Flows6::new(1, 10).unwrap(),
            &Changes { generation: 1, all: true, lines: Vec::new() },
        )
        .unwrap();
    let mut pair = Fallback::new(first, Inline::new(2, || Nanos(0)), accel::fallback::Settings::default());
    conformance::follow(&mut pair).unwrap();
    pair.submit(batch(), Nanos(0)).unwrap();
    let mut ended = Vec::new();
    assert_eq!(pair.poll(Nanos(0), &mut ended), 1);
    assert_eq!((&ended[0].outcome, pair.counts().second), (&Ok(()), 1));
}
