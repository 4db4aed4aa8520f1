//! Two workers are told the same and sent the same. One has NICs with a flow table and an offload manager, the other has
//! neither: what leaves their wires, what their books say and what they report must agree.
#![allow(clippy::unwrap_used)]

mod limits;
mod returns;
mod rig;

use crate::rig::{GNB_IP, HOST, N3_IP};
use datapath::command::{Command, Event, Token};
use datapath::offload::{Mode, Offload, Policy, TakenBack};
use datapath::{CheckSource, Config};
use io::Port;
use io::mem::{FlowTableConfig, MemSwitch};
use io::offload::{Failure, Feature, FlowOffload, NoOffload, WhyRefused};
use packet::MacAddr;
use pfcp::UrrId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rig::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::Nanos;

#[test]
fn a_heavy_flow_leaves_the_worker_and_its_books_go_on() {
    let mut side = one_session(&Kind { teid: 9, ..Kind::default() }, &FlowTableConfig::default());
    let (up, down) = (PLAIN.uplink(), PLAIN.downlink());
    warm(&mut side, &[(0, up.clone()), (1, down.clone())], 2);
    let before = (side.seen, side.snapshot(place(1)).unwrap().pdrs);
    side.collect();
    for _ in 0..10 {
        side.send(0, std::slice::from_ref(&up));
        side.send(1, std::slice::from_ref(&down));
    }
    assert_eq!(side.seen, before.0, "no worker has seen them");
    assert_eq!(side.collect().len(), 20);
    let after = side.snapshot(place(1)).unwrap();
    for ((_, packets, bytes), (_, packets0, bytes0)) in after.pdrs.iter().zip(&before.1) {
        assert_eq!((packets - packets0, bytes - bytes0), (10, 10 * 128));
    }
    assert_eq!(after.last_packet.0 >> 24, (side.now.0 >> 24) + 1, "the session is active");
    let counters = side.report().counters;
    assert_eq!((counters.packets, counters.bytes), (20, 20 * 128));
}

#[test]
fn light_flows_stay_and_so_do_those_of_rates_too_low_to_be_shared() {
    let policy = Policy { packets_per_second: 2000, ..eager() };
    let mut side = Side::new(Some(&FlowTableConfig::default()), policy);
    side.install(&rules(1, &Kind { teid: 9, ..Kind::default() }));
    side.install(&rules(2, &Kind { teid: 10, mbr: Some(5_000_000), ..Kind::default() }));
    for _ in 0..30 {
        side.send(0, &[PLAIN.uplink()]);
        side.send(0, &vec![Packet { ue: 2, ..PLAIN }.uplink(); 4]);
        side.tick(MILLI);
    }
    let report = side.report();
    assert_eq!((report.entries, side.switch.len(), side.switch.meters()), (0, 0, 0));
    assert!(report.counters.ineligible.get(datapath::offload::Ineligible::Metered) > 0);
}

#[test]
fn where_sources_are_checked_tunnels_packets_stay() {
    let config = Config { check_source: CheckSource::Learn, ..Config::new(rib().fib()) };
    let mut side = Side::of(config, Some(&FlowTableConfig::default()), eager());
    side.install(&rules(1, &Kind { teid: 9, ..Kind::default() }));
    for _ in 0..30 {
        side.send(0, &[PLAIN.uplink(), PLAIN.uplink()]);
        side.tick(MILLI);
    }
    assert_eq!((side.report().entries, side.switch.len()), (0, 0));
    // Downlink is forwarded by the device all the same.
    warm(&mut side, &[(1, PLAIN.downlink())], 1);
    // Not checked, they leave software; and come back at once when they are.
    let change = |side: &mut Side, check_source| {
        let config = Config { check_source, ..Config::new(rib().fib()) };
        side.apply(Command::Limits(Arc::new(config)));
    };
    change(&mut side, CheckSource::Off);
    warm(&mut side, &[(0, PLAIN.uplink())], 2);
    change(&mut side, CheckSource::Strict);
    assert_eq!((side.switch.len(), side.taken_back(TakenBack::Network)), (1, 1));
}

#[test]
fn old_rules_are_gone_before_an_order_is_answered() {
    let mut side = one_session(&Kind { teid: 9, ..Kind::default() }, &FlowTableConfig::default());
    let down = PLAIN.downlink();
    warm(&mut side, &[(1, down.clone())], 1);
    side.collect();
    // A path switch: the very next packet takes the new tunnel, and it is software that sends it.
    side.install(&rules(1, &Kind { teid: 10, ..Kind::default() }));
    assert!(side.switch.is_empty());
    side.send(1, std::slice::from_ref(&down));
    let sent = side.collect();
    assert_eq!(&sent[0].1[46..50], &10u32.to_be_bytes());
    assert_eq!(side.taken_back(TakenBack::Session), 1);
    // And with the session everything goes.
    warm(&mut side, &[(1, down.clone())], 1);
    side.apply(Command::Remove { token: Token(3), session: place(1) });
    assert!(side.switch.is_empty());
    side.collect();
    side.send(1, &[down]);
    assert_eq!(side.collect(), []);
}

#[test]
fn a_neighbour_that_moves_takes_the_rules_with_it() {
    let mut side = one_session(&Kind { teid: 9, ..Kind::default() }, &FlowTableConfig::default());
    // Configured no longer, but known still.
    side.apply(Command::Fib(rib_with(None).fib()));
    warm(&mut side, &[(1, PLAIN.downlink())], 1);
    let moved = MacAddr([2, 9, 0, 0, 0, 8]);
    let mut reply = [0; packet::arp::LEN];
    packet::arp::emit_request(&mut reply, moved, GNB_IP, N3_IP);
    side.send(0, &[[&[0xff; 6][..], &moved.0, &[8, 6], &reply].concat()]);
    assert!(side.switch.is_empty());
    assert_eq!(side.taken_back(TakenBack::Network), 1);
    side.collect();
    side.send(1, &[PLAIN.downlink()]);
    assert_eq!(side.collect()[0].1[..6], moved.0);
    // The same neighbour heard again changes nothing.
    warm(&mut side, &[(1, PLAIN.downlink())], 1);
    side.send(0, &[[&[0xff; 6][..], &moved.0, &[8, 6], &reply].concat()]);
    assert_eq!(side.switch.len(), 1);
    // A new FIB takes back what it changes, and nothing else.
    side.apply(Command::Fib(rib_with(Some(moved)).fib()));
    assert_eq!(side.switch.len(), 1);
    side.apply(Command::Fib(rib().fib()));
    assert!(side.switch.is_empty());
}

#[test]
fn a_volume_limit_is_met_to_the_packet() {
    for (kind, delay) in [
        (Kind { teid: 9, quota: Some(2_000_000), ..Kind::default() }, 0),
        (Kind { teid: 9, threshold: Some(1_000_000), ..Kind::default() }, 0),
        (Kind { teid: 9, quota: Some(2_000_000), ..Kind::default() }, 2 * MILLI),
        (Kind { teid: 9, threshold: Some(1_000_000), ..Kind::default() }, 2 * MILLI),
    ] {
        let table =
            FlowTableConfig { delay, torn: delay > 0, disorder: delay > 0, ..FlowTableConfig::default() };
        let mut hard = one_session(&kind, &table);
        let mut soft = Side::new(None, eager());
        soft.install(&rules(1, &kind));
        let packets = vec![Packet { size: 1000, ..PLAIN }.uplink(); 20];
        let mut offloaded = 0;
        for _ in 0..150 {
            for side in [&mut hard, &mut soft] {
                side.send(0, &packets);
                side.tick(MILLI);
            }
            offloaded = offloaded.max(hard.report().counters.packets);
            let (a, b) = (hard.collect(), soft.collect());
            assert_eq!(a.len(), b.len());
            assert!(a == b);
        }
        assert!(offloaded > 500, "{offloaded}");
        assert!(hard.taken_back(TakenBack::Credit) > 0);
        let (a, b) = (hard.reported(), soft.reported());
        assert!(!a.is_empty());
        assert_eq!(a, b);
    }
}

/// Nobody said when to come back: what the rules carry does. Of a limit that is measured before the rate is enforced it is what arrives
/// that counts, far more here than what the meter lets pass.
#[test]
fn software_counts_again_as_early_as_what_rules_carry_asks_for() {
    let policy = Policy { margin: 0, ..eager() };
    let plain = Kind { teid: 9, quota: Some(2_000_000), ..Kind::default() };
    let metered = Kind { teid: 9, before: Some(10_000_000), mbr: Some(40_000_000), ..Kind::default() };
    for (kind, urr, packets) in [(plain, UrrId(1), 20), (metered, UrrId(2), 80)] {
        let config = || Config { flow_idle: 1, ..Config::new(rib().fib()) };
        let mut hard = Side::of(config(), Some(&FlowTableConfig::default()), policy.clone());
        let mut soft = Side::of(config(), None, policy.clone());
        let packets = vec![Packet { size: 1000, ..PLAIN }.uplink(); packets];
        for side in [&mut hard, &mut soft] {
            side.install(&rules(1, &kind));
        }
        for _ in 0..1000 {
            for side in [&mut hard, &mut soft] {
                side.send(0, &packets);
                side.tick(MILLI);
                side.collect();
            }
        }
        let counters = hard.report().counters;
        assert!(counters.packets > 500 && hard.taken_back(TakenBack::Credit) > 0, "{counters:?}");
        let of = |side: &mut Side| -> Vec<_> {
            side.reported().into_iter().filter(|(_, of, ..)| *of == urr).collect()
        };
        let (hard, soft) = (of(&mut hard), of(&mut soft));
        assert!(!soft.is_empty());
        assert_eq!(hard, soft);
    }
}

#[test]
fn a_flow_that_only_hardware_sees_does_not_age() {
    let mut side =
        one_session(&Kind { teid: 9, filters: true, ..Kind::default() }, &FlowTableConfig::default());
    let up = Packet { tos: 0x20, ..PLAIN }.uplink();
    warm(&mut side, &[(0, up.clone())], 1);
    let learned = side.datapath.counters().flows.learned;
    // Flows are forgotten after a second.
    for _ in 0..40 {
        side.send(0, std::slice::from_ref(&up));
        (0..100).for_each(|_| side.tick(MILLI));
    }
    assert_eq!(side.switch.len(), 1);
    let flows = side.datapath.counters().flows;
    assert_eq!((flows.learned, flows.expired), (learned, 0));
    assert_eq!(side.snapshot(place(1)).unwrap().pdrs[0].1, side.seen + 40);
    // Silence: the rule goes first, the flow follows.
    (0..300).for_each(|_| side.tick(MILLI));
    assert!(side.switch.is_empty());
    assert_eq!(side.taken_back(TakenBack::Idle), 1);
    (0..2000).for_each(|_| side.tick(MILLI));
    assert_eq!(side.datapath.counters().flows.expired, 1);
}

#[test]
fn a_full_device_keeps_the_heaviest() {
    let table = FlowTableConfig { entries: 2, ..FlowTableConfig::default() };
    let mut side = one_session(&Kind { teid: 9, ..Kind::default() }, &table);
    let flow = |port: u16| Packet { ports: (port, 53), ..PLAIN }.uplink();
    warm(&mut side, &[(0, flow(1)), (0, flow(2))], 2);
    // Half as heavy again is no reason to change anything; five times is.
    let round = |side: &mut Side, times: usize| {
        for _ in 0..30 {
            side.send(0, &[flow(1), flow(1), flow(2), flow(2)]);
            side.send(0, &vec![flow(3); times]);
            side.tick(MILLI);
        }
    };
    round(&mut side, 3);
    assert_eq!(side.taken_back(TakenBack::Lighter), 0);
    assert!(side.report().counters.refused.get(WhyRefused::Full) > 0, "{:?}", side.report().counters);
    round(&mut side, 10);
    assert_eq!(side.taken_back(TakenBack::Lighter), 1);
    let ports: Vec<_> = side.report().some.iter().map(|entry| entry.flow.ports.unwrap().0).collect();
    assert!(ports.contains(&3) && ports.len() == 2, "{ports:?}");
}

#[test]
fn refusals_are_counted_and_software_goes_on() {
    let table = FlowTableConfig { refuse_every: 2, insertions_per_second: 20, ..FlowTableConfig::default() };
    let mut side = one_session(&Kind { teid: 9, ..Kind::default() }, &table);
    let flows: Vec<_> = (1..60).map(|port| Packet { ports: (port, 53), ..PLAIN }.uplink()).collect();
    for _ in 0..50 {
        side.send(0, &flows);
        side.tick(MILLI);
        assert_eq!(side.collect().len(), flows.len());
    }
    let report = side.report();
    assert!(report.entries >= 10 && report.entries <= 22, "{report:?}");
    let refused = |why| report.counters.refused.get(why);
    let (busy, device) = (refused(WhyRefused::Busy), refused(WhyRefused::Device));
    assert_eq!(report.counters.refused.sum(), busy + device);
    assert!(busy > 0 && device >= 10, "{report:?}");
    // Busy means a pause, not a hail of questions.
    assert!(busy < 30, "{busy}");
}

#[test]
fn a_device_that_fails_loses_everything_and_is_tried_again() {
    let mut side = one_session(&Kind { teid: 9, ..Kind::default() }, &FlowTableConfig::default());
    let packets = [(0, PLAIN.uplink()), (1, PLAIN.downlink())];
    warm(&mut side, &packets, 2);
    // A reset: the rules are gone, and it is noticed at the next reading.
    side.switch.reset();
    (0..10).for_each(|_| side.tick(MILLI));
    assert_eq!((side.report().entries, side.report().down), (0, 2));
    let failed = |side: &mut Side| {
        let events = side.events.drain(..);
        events.filter(|event| matches!(event, Event::OffloadFailed { .. })).count()
    };
    assert_eq!(failed(&mut side), 2, "one for each port");
    side.collect();
    packets.iter().for_each(|(port, packet)| side.send(*port, std::slice::from_ref(packet)));
    assert_eq!(side.collect().len(), 2, "software forwards");
    warm(&mut side, &packets, 2);
    // A device that doesn't even forget: its rules stay in force until it does.
    side.switch.set_broken(Some(Failure::Device("firmware".into())));
    side.tick(5 * MILLI);
    assert_eq!((side.report().entries, side.switch.len(), side.report().down), (0, 2, 2));
    assert_eq!(failed(&mut side), 2);
    side.switch.set_broken(None);
    side.tick(200 * MILLI);
    assert!(side.switch.is_empty(), "the first thing asked of it");
    assert_eq!(side.report().counters.lost, 4);
    warm(&mut side, &packets, 2);
    // The end.
    let Side { offload, datapath, out, now, .. } = &mut side;
    offload.as_mut().unwrap().stop(*now, datapath, out);
    assert!(side.switch.is_empty());
}

#[test]
fn without_a_device_nothing_happens() {
    let devices: Vec<Box<dyn FlowOffload>> = vec![Box::new(NoOffload), Box::new(NoOffload)];
    let mut side = Side::new(None, eager());
    side.offload = Some(Offload::new(eager(), devices));
    side.install(&rules(1, &Kind { teid: 9, ..Kind::default() }));
    for _ in 0..30 {
        side.send(0, &[PLAIN.uplink()]);
        side.tick(MILLI);
    }
    assert_eq!(side.collect().len(), 30);
    let counters = side.report().counters;
    assert!(counters.refused.get(WhyRefused::Unsupported) > 0 && counters.inserted == 0);
    assert_eq!(side.ports.len(), 2);
}

/// A flow is brought to the queue of the worker that owns it; the worker goes on accounting for it.
#[test]
fn partial_offload_steers() {
    let policy = Policy { mode: Mode::Partial { queue: 0 }, ..eager() };
    let mut side = Side::new(Some(&FlowTableConfig::default()), policy);
    side.install(&rules(1, &Kind { teid: 9, ..Kind::default() }));
    for _ in 0..20 {
        // What arrives here is steered well already.
        side.send(0, &[Packet { ports: (5, 5), ..PLAIN }.uplink()]);
        side.take_over(&PLAIN.uplink());
        side.tick(MILLI);
    }
    assert_eq!(side.switch.len(), 1);
    let before = side.snapshot(place(1)).unwrap().pdrs[0].1;
    side.send(0, &[PLAIN.uplink()]);
    assert_eq!(side.snapshot(place(1)).unwrap().pdrs[0].1, before + 1, "once, by the worker");
    assert_eq!(side.report().counters.packets, 1);
}

/// Where a device doesn't count, the marks that it sets are read back: a flow that is steered isn't taken for idle.
#[test]
fn a_mark_tells_that_a_steered_flow_lives() {
    let policy = Policy { mode: Mode::Partial { queue: 0 }, ..eager() };
    let without = |features: &[Feature]| {
        let features = features.iter().fold(MemSwitch::features(), |all, feature| all.without(*feature));
        FlowTableConfig { features, ..FlowTableConfig::default() }
    };
    for (table, kept) in [(without(&[Feature::Count]), 1), (without(&[Feature::Count, Feature::Mark]), 0)] {
        let mut side = Side::new(Some(&table), policy.clone());
        side.install(&rules(1, &Kind { teid: 9, ..Kind::default() }));
        for _ in 0..20 {
            side.take_over(&PLAIN.uplink());
            side.tick(MILLI);
        }
        assert_eq!(side.switch.len(), 1);
        // Longer than a silence may last.
        for _ in 0..50 {
            side.send(0, &[PLAIN.uplink()]);
            (0..5).for_each(|_| side.tick(MILLI));
        }
        assert_eq!((side.switch.len(), side.taken_back(TakenBack::Idle)), (kept, 1 - kept as u64));
        (0..210).for_each(|_| side.tick(MILLI));
        assert!(side.switch.is_empty(), "silence ends it");
    }
}

/// On a full device that doesn't count: who is heavier gets the place, is marked as himself, and keeps it from who is lighter.
#[test]
fn who_takes_a_place_is_marked_as_himself() {
    let policy = Policy { mode: Mode::Partial { queue: 0 }, ..eager() };
    let features = MemSwitch::features().without(Feature::Count);
    let table = FlowTableConfig { entries: 1, features, ..FlowTableConfig::default() };
    let mut side = Side::new(Some(&table), policy);
    side.install(&rules(1, &Kind { teid: 9, ..Kind::default() }));
    let flow = |port: u16| Packet { ports: (port, 53), ..PLAIN }.uplink();
    let round = |side: &mut Side, first: usize, second: usize| {
        for _ in 0..50 {
            for (port, times) in [(1, first), (2, second)] {
                // Once it is steered, it comes here.
                let here = side.report().some.iter().any(|entry| entry.flow.ports.unwrap().0 == port);
                for _ in 0..times {
                    if here { side.send(0, &[flow(port)]) } else { side.take_over(&flow(port)) }
                }
            }
            side.tick(MILLI);
            side.collect();
        }
    };
    let steered =
        |side: &Side| side.report().some.iter().map(|entry| entry.flow.ports.unwrap().0).collect::<Vec<_>>();
    round(&mut side, 4, 0);
    assert_eq!(steered(&side), [1]);
    round(&mut side, 4, 2);
    assert_eq!((steered(&side), side.taken_back(TakenBack::Lighter)), (vec![1], 0));
    round(&mut side, 4, 40);
    assert_eq!((steered(&side), side.taken_back(TakenBack::Lighter)), (vec![2], 1));
    // For longer than a silence may last.
    (0..6).for_each(|_| round(&mut side, 0, 40));
    assert_eq!((steered(&side), side.taken_back(TakenBack::Idle)), (vec![2], 0));
}

/// Everything at once.
#[test]
fn hardware_and_software_agree() {
    for seed in 0..12 {
        let mut rng = StdRng::seed_from_u64(seed);
        let table = FlowTableConfig {
            entries: rng.random_range(4..40),
            insertions_per_second: [0, 500][rng.random_range(0..2)],
            refuse_every: [0, 5][rng.random_range(0..2)],
            delay: [0, 2 * MILLI][rng.random_range(0..2)],
            disorder: rng.random(),
            torn: rng.random(),
            ..FlowTableConfig::default()
        };
        let (mut hard, mut soft) = (Side::new(Some(&table), eager()), Side::new(None, eager()));
        let mut kinds: BTreeMap<u8, Kind> = BTreeMap::new();
        let mut left = 0;
        for step in 0..400 {
            if step % 40 == 0 || rng.random_range(0..40) == 0 {
                let number = rng.random_range(1..4);
                if kinds.contains_key(&number) && rng.random_range(0..6) == 0 {
                    kinds.remove(&number);
                    for side in [&mut hard, &mut soft] {
                        side.apply(Command::Remove { token: Token(3), session: place(number) });
                    }
                } else {
                    let kind = Kind {
                        filters: rng.random(),
                        qfi: rng.random::<bool>().then(|| rng.random_range(1..60)),
                        marking: rng.random::<bool>().then(|| rng.random_range(1..60)),
                        peer6: rng.random_range(0..4) == 0,
                        quota: (rng.random_range(0..3) == 0).then_some(3_000_000),
                        threshold: (rng.random_range(0..3) == 0).then_some(700_000),
                        teid: rng.random_range(1..1000),
                        mbr: (rng.random_range(0..3) == 0).then_some(1_000_000_000),
                        slice: rng.random_range(0..4) == 0,
                        before: (rng.random_range(0..3) == 0).then_some(900_000),
                    };
                    for side in [&mut hard, &mut soft] {
                        side.install(&rules(number, &kind));
                        let prefix = format!("2001:db8:45:{number:x}::/64").parse().unwrap();
                        let session = Some(place(number));
                        side.apply(Command::AddressDirectory { prefix, session });
                    }
                    kinds.insert(number, kind);
                }
            }
            let mut bursts = [Vec::new(), Vec::new()];
            for _ in 0..rng.random_range(5..40) {
                let packet = Packet {
                    ue: rng.random_range(1..4),
                    v6: rng.random_range(0..3) == 0,
                    tcp: rng.random_range(0..4) == 0,
                    ports: (rng.random_range(1000..1003), rng.random_range(52..55)),
                    tos: [0, 0x20, 0x28][rng.random_range(0..3)],
                    ttl: [64, 64, 64, 64, 2, 1, 0][rng.random_range(0..7)],
                    size: [20, 100, 100, 1380, 1428, 1430, 1440, 1472][rng.random_range(0..8)],
                    qfi: [None, Some(5), Some(5), Some(6)][rng.random_range(0..4)],
                    fragment: rng.random_range(0..20) == 0,
                    df: rng.random(),
                };
                if rng.random() {
                    let size = packet.size.min(1390);
                    bursts[0].push(Packet { size, ..packet }.uplink());
                } else {
                    bursts[1].push(packet.downlink());
                }
            }
            // Now and then something is broken on its way: but not the length of an IPv6 packet from the data network, which
            // would turn part of it into padding, and that is counted by a device that counts frames; and not the ECN field of an
            // outer header, which devices don't look at (a mark on it would be a drop: the packets in it are none that can be marked).
            for packet in bursts.iter_mut().flatten() {
                if rng.random_range(0..30) == 0 {
                    let at = rng.random_range(0..packet.len().min(90));
                    let at = if at == 15 || (22..24).contains(&at) { 21 } else { at };
                    packet[at] ^= 1 << rng.random_range(0..8);
                }
            }
            for side in [&mut hard, &mut soft] {
                side.send(0, &bursts[0]);
                side.send(1, &bursts[1]);
                side.tick(MILLI);
            }
            let (a, b) = (hard.collect(), soft.collect());
            left += a.len();
            assert_eq!(a.len(), b.len(), "seed {seed}, step {step}");
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(a, b, "seed {seed}, step {step}");
            }
            // What a device shows late is in the books when the rules have come back.
            let late = table.delay > 0 || table.torn;
            if rng.random_range(0..20) == 0 && !late {
                let number = rng.random_range(1..4);
                let (a, b) = (hard.snapshot(place(number)), soft.snapshot(place(number)));
                assert_eq!(a.is_some(), b.is_some());
                if let (Some(a), Some(b)) = (a, b) {
                    assert_eq!(
                        (a.pdrs, a.urrs, a.drops),
                        (b.pdrs, b.urrs, b.drops),
                        "seed {seed}, step {step}"
                    );
                }
            }
        }
        // Reports may come in another order where a reading covers several packets, never with other volumes.
        let (mut a, mut b) = (hard.reported(), soft.reported());
        a.sort_by_key(|report| format!("{report:?}"));
        b.sort_by_key(|report| format!("{report:?}"));
        let differ: Vec<_> = a.iter().zip(&b).filter(|(a, b)| a != b).collect();
        assert!(a.len() == b.len() && differ.is_empty(), "seed {seed}, {table:?}: {differ:?}");
        let Side { offload, datapath, out, now, .. } = &mut hard;
        offload.as_mut().unwrap().stop(*now, datapath, out);
        for number in kinds.keys() {
            let (a, b) = (hard.snapshot(place(*number)).unwrap(), soft.snapshot(place(*number)).unwrap());
            assert_eq!((a.pdrs, a.urrs, a.drops), (b.pdrs, b.urrs, b.drops), "seed {seed}");
        }
        let counters = hard.report().counters;
        assert!(counters.packets > 300 && left > 3000, "seed {seed}: {counters:?} of {left}");
        assert!(hard.datapath.slices().eq(soft.datapath.slices()), "seed {seed}");
        let (a, b) = (hard.datapath.counters(), soft.datapath.counters());
        assert_eq!((a.uplink, a.downlink, a.drops), (b.uplink, b.downlink, b.drops));
    }
}
