//! Workers that panic: what they owned goes on elsewhere, and what is lost has a name.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{Fronted, N3_MAC, N6_MAC, SESSIONS, install, network, packet, tunnel, ue, wait};
use counters::Count;
use datapath::{Counters, Reason};
use engine::{Engine, EngineConfig, WorkerReport};
use io::mem::{MemConfig, MemFrame, MemNic, MemRx, MemWire};
use io::{Frame, RxQueue};
use packet::MacAddr;
use tables::clock::Tsc;

/// A frame that a defect in the worker doesn't survive.
const POISON: [u8; 16] = [0xde; 16];

/// A driver that panics at the sight of poison.
struct Fragile(MemRx);

impl RxQueue for Fragile {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let received = self.0.rx_burst(into, max);
        assert!(!into.iter().any(|frame| frame.bytes() == POISON), "poisoned, as the test wants it");
        received
    }
}

/// A queue that is never empty.
struct Endless;

impl RxQueue for Endless {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        into.extend((0..max).map(|_| MemFrame::copy_of(&[0; 60]).unwrap()));
        max
    }
}

fn nic(mac: MacAddr, workers: u16) -> (Fronted<Fragile>, MemWire) {
    let (nic, wire) = MemNic::new(MemConfig { mac, queues: workers, ..MemConfig::default() }).unwrap();
    (Fronted::new(nic, Fragile), wire)
}

/// Sends one packet of each session; says of which it comes out, within a while.
fn served(engine: &mut Engine, n3: &mut MemWire, n6: &mut MemWire) -> Vec<u32> {
    let mut frames: Vec<MemFrame> = (0..SESSIONS).map(|i| packet(tunnel(i).teid, ue(i), 7)).collect();
    let (mut out, mut found, mut quiet) = (Vec::new(), Vec::new(), 0);
    while quiet < 2_000 && found.len() < SESSIONS as usize {
        n3.offer(&mut frames);
        n6.collect(&mut out, 64);
        quiet = if out.is_empty() { quiet + 1 } else { 0 };
        for frame in out.drain(..) {
            let source = u32::from_be_bytes(frame.bytes()[26..30].try_into().unwrap());
            found.push(source - u32::from(ue(0)));
        }
        engine.flush();
        engine.drain(|_, _| {});
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    found.sort_unstable();
    found
}

fn kill(engine: &mut Engine, n3: &mut MemWire, worker: usize) {
    let mut poison = vec![MemFrame::copy_of(&POISON).unwrap()];
    n3.offer_to(worker as u16, &mut poison);
    wait("the worker's end", || {
        engine.flush();
        engine.drain(|_, _| {});
        !engine.is_alive(worker)
    });
}

fn sum(reports: &[WorkerReport]) -> Counters {
    let mut sum = Counters::default();
    reports.iter().for_each(|report| sum.merge(&report.counters));
    sum
}

#[test]
fn the_shards_of_a_worker_that_died_go_on_and_those_that_killed_two_end() {
    let ((n3_nic, mut n3), (n6_nic, mut n6)) = (nic(N3_MAC, 3), nic(N6_MAC, 3));
    let mut ports = vec![n3_nic, n6_nic];
    let config = EngineConfig { cores: vec![None; 3], ..EngineConfig::default() };
    let datapath = datapath::Config::new(network().fib());
    let mut engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
    install(&mut engine, SESSIONS);
    let all: Vec<u32> = (0..SESSIONS).collect();
    assert_eq!(served(&mut engine, &mut n3, &mut n6), all);
    let first: Vec<u32> =
        (0..SESSIONS).filter(|&index| engine.shard_map().owner(tunnel(index).place.shard) == 1).collect();
    assert!(!first.is_empty());

    kill(&mut engine, &mut n3, 1);
    assert_eq!(served(&mut engine, &mut n3, &mut n6), all, "an heir serves them");
    assert_eq!(engine.shard_map().shards_of(1).count(), 0);
    let reports = engine.reports().unwrap();
    assert_eq!(reports.iter().map(|report| report.shards).collect::<Vec<_>>()[1], 0);
    assert_eq!(reports.iter().map(|report| report.sessions).sum::<usize>(), SESSIONS as usize);
    assert!(engine.move_shards([tunnel(0).place.shard], 1).is_err(), "the dead own nothing");

    // The heir, worker 0, dies as well: what it had from the first one is gone, its own goes on.
    kill(&mut engine, &mut n3, 0);
    let left: Vec<u32> = all.iter().copied().filter(|index| !first.contains(index)).collect();
    assert_eq!(served(&mut engine, &mut n3, &mut n6), left);
    let reports = engine.stop().unwrap();
    assert_eq!(reports.len(), 3);
    let counters = sum(&reports);
    assert_eq!(counters.dropped(Reason::UnknownTeid), first.len() as u64);
}

#[test]
fn a_last_worker_that_died_is_lost_and_what_is_ordered_since_waits_for_nobody() {
    let ((n3_nic, mut n3), (n6_nic, mut n6)) = (nic(N3_MAC, 1), nic(N6_MAC, 1));
    let mut ports = vec![n3_nic, n6_nic];
    // Answers that control has not read fill the ring: the worker's last one is heard all the same.
    let config = EngineConfig { control_ring: 16, ..EngineConfig::default() };
    let datapath = datapath::Config::new(network().fib());
    let mut engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
    install(&mut engine, SESSIONS);
    assert_eq!(served(&mut engine, &mut n3, &mut n6).len(), SESSIONS as usize);
    assert_eq!(engine.lost(), None);
    for _ in 0..100 {
        engine.fence();
        engine.flush();
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    n3.offer_to(0, &mut vec![MemFrame::copy_of(&POISON).unwrap()]);
    wait("its shards to be packed", || engine.snapshots().read()[0].shards == 0);
    assert!(engine.is_alive(0), "nobody has read that it died");
    let reports = engine.reports().unwrap();
    assert!(reports[0].counters.sent >= u64::from(SESSIONS), "what it counted is known");
    wait("the worker's end", || {
        engine.drain(|_, _| {});
        !engine.is_alive(0)
    });
    assert_eq!(engine.lost(), Some(0), "nobody is left to take over");
    let fence = engine.fence();
    assert!(engine.passed(fence), "nobody is left to wait for");
    assert!(engine.about_to_sleep(), "no order waits for the dead");
    let reports = engine.stop().unwrap();
    assert_eq!(reports.len(), 1, "what it counted is known");
    assert!(reports[0].counters.sent >= u64::from(SESSIONS));
}

#[test]
fn workers_stop_while_packets_keep_coming() {
    let mut ports = [N3_MAC, N6_MAC].map(|mac| {
        let nic = MemNic::new(MemConfig { mac, queues: 2, ..MemConfig::default() }).unwrap().0;
        Fronted::new(nic, |_| Endless)
    });
    let config = EngineConfig { cores: vec![None; 2], ..EngineConfig::default() };
    let datapath = datapath::Config::new(network().fib());
    let engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let counters = sum(&engine.stop().unwrap());
    assert!(counters.received > 0);
    assert_eq!(counters.balance(), 0);
}
