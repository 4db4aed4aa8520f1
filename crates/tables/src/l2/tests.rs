#![allow(clippy::unwrap_used)]

use super::*;
use crate::image::{Image, Replica};
use proptest::prelude::*;
use std::collections::HashMap;

fn station(number: u32, vlan: u16) -> Station {
    let [a, b, c, d] = number.to_be_bytes();
    Station::new([2, 0, a, b, c, d], vlan)
}

const SECOND: u64 = Nanos::SECOND;

#[test]
fn stations_have_their_address_and_vlan() {
    let station = Station::new([2, 0x34, 0x56, 0x78, 0x9a, 0xbc], 0xf123);
    assert_eq!((station.mac(), station.vlan()), ([2, 0x34, 0x56, 0x78, 0x9a, 0xbc], 0x123));
    assert_eq!(station.words(), [0x5678_9abc, 0x0123_0234, 0, 0]);
    for (mac, sends) in
        [([0; 6], false), ([1, 0, 0x5e, 0, 0, 1], false), ([0xff; 6], false), ([0, 0, 0, 0, 0, 1], true)]
    {
        assert_eq!(Station::new(mac, 5).is_sender(), sends, "{mac:?}");
    }
}

#[test]
fn senders_are_learnt_by_vlan_move_and_age() {
    let mut table = L2::new(1, L2Config::new(100), Nanos(SECOND)).unwrap();
    let at = |seconds: u64| Nanos(seconds * SECOND);
    assert_eq!(table.learn(station(1, 1), 3, at(1)), Learnt::New);
    assert_eq!(table.learn(station(1, 2), 4, at(1)), Learnt::New);
    assert_eq!(table.learn(station(1, 1), 3, at(100)), Learnt::Same);
    assert_eq!(table.lookup(&station(1, 1)), Some(3));
    assert_eq!(table.lookup(&station(1, 2)), Some(4));
    assert_eq!(table.lookup(&station(1, 3)), None);
    assert_eq!(table.learn(station(1, 2), 9, at(101)), Learnt::Moved { from: 4 });
    assert_eq!((table.of_port(4), table.of_port(9), table.of_vlan(2)), (0, 1, 1));
    let mut gone = Vec::new();
    let all = u32::MAX;
    table.age(at(380), all, &mut |station, port| gone.push((station, port)));
    assert_eq!(gone, [], "each was seen within five minutes");
    assert_eq!(table.learn(station(1, 2), 9, at(380)), Learnt::Same);
    table.age(at(420), all, &mut |station, port| gone.push((station, port)));
    assert_eq!(gone, [(station(1, 1), 3)]);
    assert_eq!((table.len(), table.of_port(3), table.of_vlan(1)), (1, 0, 0));
}

/// A part of the table a call: after one round all of it was looked at.
#[test]
fn ageing_goes_round_within_its_budget() {
    let mut table =
        L2::new(1, L2Config { per_port: 2000, per_vlan: 2000, ..L2Config::new(1000) }, Nanos(0)).unwrap();
    for number in 0..1000 {
        assert_eq!(table.learn(station(number, 1), 1, Nanos(0)), Learnt::New);
    }
    let mut rounds = 0;
    while !table.is_empty() {
        let before = table.len();
        table.age(Nanos(400 * SECOND), 10, &mut |_, _| {});
        assert!(before - table.len() <= 40, "ten buckets of four");
        rounds += 1;
    }
    assert!(rounds <= table.slots.buckets().div_ceil(10));
}

#[test]
fn static_entries_stay_and_win() {
    let mut table = L2::new(1, L2Config::new(100), Nanos(0)).unwrap();
    table.learn(station(1, 1), 3, Nanos(0));
    assert_eq!(table.pin(station(1, 1), 7), Ok(Some(3)));
    assert_eq!((table.of_port(3), table.of_port(7)), (0, 0), "static entries are not counted");
    assert_eq!(table.learn(station(1, 1), 3, Nanos(0)), Learnt::Refused(Refusal::Static));
    assert_eq!(table.learn(station(1, 1), 7, Nanos(0)), Learnt::Same);
    table.learn(station(2, 1), 7, Nanos(0));
    table.age(Nanos(1000 * SECOND), u32::MAX, &mut |station, _| assert_eq!(station.words[0], 2));
    assert_eq!((table.flush_vlan(1), table.flush_port(7), table.len()), (0, 0, 1));
    assert_eq!(table.lookup(&station(1, 1)), Some(7));
    assert_eq!(table.remove(&station(1, 1)), Some(7));
    assert!(table.is_empty());
}

#[test]
fn floods_fill_their_own_share() {
    let config = L2Config { limit: 1000, per_port: 300, per_vlan: 500, ageing: SECOND };
    let mut table = L2::new(1, config, Nanos(0)).unwrap();
    assert_eq!(table.learn(station(1, 1), 1, Nanos(0)), Learnt::New);
    let flood = |table: &mut L2, port: u16, vlan: u16, from: u32| {
        let learn = |number| table.learn(station(from + number, vlan), port, Nanos(0));
        let outcome: Vec<_> = (0..10_000).map(learn).collect();
        let new = outcome.iter().filter(|learnt| **learnt == Learnt::New).count();
        (new, *outcome.last().unwrap())
    };
    assert_eq!(flood(&mut table, 2, 1, 1000), (300, Learnt::Refused(Refusal::Port)));
    assert_eq!(flood(&mut table, 3, 1, 100_000), (199, Learnt::Refused(Refusal::Vlan)));
    assert_eq!(flood(&mut table, 3, 2, 200_000), (101, Learnt::Refused(Refusal::Port)));
    assert_eq!(flood(&mut table, 4, 3, 300_000), (300, Learnt::Refused(Refusal::Port)));
    assert_eq!(flood(&mut table, 5, 4, 400_000), (99, Learnt::Refused(Refusal::Full)));
    assert_eq!((table.len(), table.lookup(&station(1, 1))), (1000, Some(1)), "who was there is there");
    // A port at its limit can't take others' stations over, either.
    assert_eq!(table.learn(station(1, 1), 2, Nanos(0)), Learnt::Refused(Refusal::Port));
    assert_eq!(table.learn(Station::new([1; 6], 1), 9, Nanos(0)), Learnt::Refused(Refusal::NoSender));
    assert_eq!(table.flush_port(2), 300);
    assert_eq!(table.flush_vlan(1), 200);
    assert_eq!((table.of_port(2), table.of_vlan(1), table.len()), (0, 0, 500));
}

/// What a table should hold: port, when it was seen, and whether it is static.
type Model = HashMap<Station, (u16, u64, bool)>;

proptest! {
    /// Everything that can happen, against a map that does it plainly; a copy follows.
    #[test]
    fn equals_a_map(
        ops in prop::collection::vec((0_u8..12, 0_u32..40, 0_u16..3, 0_u16..4, 0_u64..20), 0..300),
    ) {
        const AGEING: u64 = 60 * (1 << UNIT);
        let config = L2Config { limit: 60, per_port: 20, per_vlan: 30, ageing: AGEING };
        let mut table = L2::new(5, config, Nanos(0)).unwrap();
        let mut model = Model::new();
        let (mut copy, mut now) = (Replica::default(), 0_u64);
        table.track(50);
        for (op, number, vlan, port, later) in ops {
            let key = station(number, vlan);
            let dynamic = |model: &Model, which: &dyn Fn(&Station, u16) -> bool| {
                model.iter().filter(|(key, (port, _, fixed))| !fixed && which(key, *port)).count()
            };
            match op {
                0..=6 => {
                    now += later;
                    let of_port = dynamic(&model, &|_, own| own == port) >= 20;
                    let of_vlan = dynamic(&model, &|key, _| key.vlan() == vlan) >= 30;
                    let room = model.len() < 60;
                    let expected = match model.get_mut(&key) {
                        Some((own, _, true)) if *own == port => Learnt::Same,
                        Some((_, _, true)) => Learnt::Refused(Refusal::Static),
                        Some((own, seen, _)) if *own == port => { *seen = now; Learnt::Same }
                        _ if of_port => Learnt::Refused(Refusal::Port),
                        Some((own, seen, _)) => {
                            let from = std::mem::replace(own, port);
                            *seen = now;
                            Learnt::Moved { from }
                        }
                        None if of_vlan => Learnt::Refused(Refusal::Vlan),
                        None if !room => Learnt::Refused(Refusal::Full),
                        None => { model.insert(key, (port, now, false)); Learnt::New }
                    };
                    prop_assert_eq!(table.learn(key, port, Nanos(now << UNIT)), expected);
                }
                7 => prop_assert_eq!(table.remove(&key), model.remove(&key).map(|(port, ..)| port)),
                8 if model.len() < 60 || model.contains_key(&key) => {
                    let before = model.insert(key, (port, 0, true)).map(|(port, ..)| port);
                    prop_assert_eq!(table.pin(key, port), Ok(before));
                }
                9 => {
                    let count = model.len();
                    model.retain(|key, (_, _, fixed)| *fixed || key.vlan() != vlan);
                    prop_assert_eq!(table.flush_vlan(vlan) as usize, count - model.len());
                }
                10 => {
                    let count = model.len();
                    model.retain(|_, (own, _, fixed)| *fixed || *own != port);
                    prop_assert_eq!(table.flush_port(port) as usize, count - model.len());
                }
                _ => {
                    let mut gone = 0;
                    table.age(Nanos(now << UNIT), u32::MAX, &mut |_, _| gone += 1);
                    let count = model.len();
                    model.retain(|_, (_, seen, fixed)| *fixed || now - *seen <= 60);
                    prop_assert_eq!(gone, count - model.len());
                }
            }
            prop_assert_eq!(table.len(), model.len());
            for port in 0..4 {
                prop_assert_eq!(table.of_port(port) as usize, dynamic(&model, &|_, own| own == port));
            }
            copy.follow(&mut table);
        }
        let keys: Vec<_> = (0..40).flat_map(|number| (0..3).map(move |vlan| station(number, vlan))).collect();
        for processor in Processor::here() {
            table = table.with_processor(processor);
            let mut out = vec![None; keys.len()];
            table.lookup_bulk(&keys, &mut out);
            for (key, out) in keys.iter().zip(out) {
                prop_assert_eq!(out, model.get(key).map(|(port, ..)| u32::from(*port)));
            }
        }
        prop_assert!(copy.regions.iter().zip(table.regions()).all(|(own, words)| own == words));
    }
}
