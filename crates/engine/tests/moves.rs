//! Shards move between running workers under traffic: every packet of every session carries a number, and all come out, in order.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{N3_MAC, N6_MAC, SESSIONS, downlink, install, network, packet, tunnel, ue, wait};
use counters::Count;
use datapath::{Counters, Reason};
use engine::{Engine, EngineConfig, Model, Scaling, Sender, WorkerReport};
use io::Frame;
use io::mem::{MemConfig, MemFrame, MemNic, MemWire, RssMode};
use packet::MacAddr;
use session::ShardId;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tables::clock::Tsc;

fn nic(mac: MacAddr, queues: u16, rss: RssMode) -> (MemNic, MemWire) {
    MemNic::new(MemConfig { mac, queues, rss, mtu: 9_000, ..MemConfig::default() }).unwrap()
}

/// One lab at a time: its threads are more than the processors of a small machine already.
static ALONE: Mutex<()> = Mutex::new(());

struct Lab {
    _alone: MutexGuard<'static, ()>,
    engine: Engine,
    _ports: Vec<MemNic>,
    n3: MemWire,
    n6: MemWire,
    /// By direction and session: packets sent; the number of the next one that should arrive.
    sent: [Vec<u32>; 2],
    next: [Vec<u32>; 2],
    waiting: [Vec<MemFrame>; 2],
    out: Vec<MemFrame>,
}

impl Lab {
    fn new(workers: usize, rss: RssMode, change: impl FnOnce(&mut EngineConfig)) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let ((n3_nic, n3), (n6_nic, n6)) =
            (nic(N3_MAC, workers as u16, rss), nic(N6_MAC, workers as u16, rss));
        let mut ports = vec![n3_nic, n6_nic];
        let mut config = EngineConfig {
            cores: vec![None; workers],
            scaling: Scaling { rebalance: None, ..Scaling::default() },
            // Three workers on two processors: who isn't running doesn't answer.
            patience: Duration::from_secs(20),
            ..EngineConfig::default()
        };
        change(&mut config);
        let datapath = datapath::Config::new(network().fib());
        let mut engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
        install(&mut engine, SESSIONS);
        let none = || [vec![0; SESSIONS as usize], vec![0; SESSIONS as usize]];
        let (sent, next, waiting) = (none(), none(), [Vec::new(), Vec::new()]);
        Self { _alone: alone, engine, _ports: ports, n3, n6, sent, next, waiting, out: Vec::new() }
    }

    /// Sends up to 32 packets each way, of sessions in turn, and takes what comes out; no more than 700 are under way.
    fn traffic(&mut self) {
        for direction in 0..2 {
            while self.waiting[direction].len() < 32 && self.under_way() < 700 {
                let total: u32 = self.sent[direction].iter().sum();
                let index = total % SESSIONS;
                let number = self.sent[direction][index as usize];
                self.sent[direction][index as usize] += 1;
                self.waiting[direction].push(match direction {
                    0 => packet(tunnel(index).teid, ue(index), number),
                    _ => downlink(ue(index), number),
                });
            }
        }
        self.n3.offer(&mut self.waiting[0]);
        self.n6.offer(&mut self.waiting[1]);
        self.collect();
        self.engine.flush();
        self.engine.drain(|_, event| panic!("unexpected: {event:?}"));
    }

    fn collect(&mut self) {
        // Uplink: the UE's address is the source of the packet that leaves. Downlink: behind 36 octets of tunnel (without
        // container), it is the destination.
        for (direction, at) in [(0, 26), (1, 14 + 36 + 16)] {
            let wire = if direction == 0 { &mut self.n6 } else { &mut self.n3 };
            wire.collect(&mut self.out, 64);
            for frame in self.out.drain(..) {
                let bytes = frame.bytes();
                let address = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
                let start = if direction == 0 { 14 } else { 14 + 36 } + 28;
                let number = u32::from_be_bytes(bytes[start..start + 4].try_into().unwrap());
                let next = &mut self.next[direction][(address - u32::from(ue(0))) as usize];
                assert_eq!(number, *next, "direction {direction}: lost or overtaken");
                *next += 1;
            }
        }
    }

    fn under_way(&self) -> u32 {
        let sum = |counts: &[Vec<u32>; 2]| counts.iter().flatten().sum::<u32>();
        sum(&self.sent) - sum(&self.next)
    }

    /// Goes on until all moves that were wanted are done.
    fn settle(&mut self) {
        let deadline = Instant::now() + Duration::from_mins(3);
        while self.engine.moves().outstanding > 0 {
            assert!(Instant::now() < deadline, "moves don't end: {:?}", self.engine.moves());
            self.traffic();
        }
    }

    /// Waits for all packets; nothing was lost on the way.
    fn finish(mut self) -> Vec<WorkerReport> {
        let deadline = Instant::now() + Duration::from_mins(3);
        while self.under_way() > 0 {
            assert!(Instant::now() < deadline, "{} packets are missing", self.under_way());
            self.n3.offer(&mut self.waiting[0]);
            self.n6.offer(&mut self.waiting[1]);
            self.collect();
        }
        let reports = self.engine.stop().unwrap();
        let mut sum = Counters::default();
        for report in &reports {
            assert_eq!(report.counters.balance(), 0, "worker {}", report.worker);
            sum.merge(&report.counters);
        }
        assert_eq!(sum.dropped_total(), 0);
        assert_eq!(sum.handed_in, sum.handed_out);
        reports
    }
}

/// Random shards to random workers, as fast as they go, for a while.
fn shuffle(mut lab: Lab, moves: u64) {
    let mut random = 7u64;
    let owning = lab.engine.owning();
    let deadline = Instant::now() + Duration::from_mins(3);
    while lab.engine.moves().moves < moves {
        assert!(Instant::now() < deadline, "{:?}", lab.engine.moves());
        if lab.engine.moves().outstanding == 0 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // A session's shard: the others have no packets.
            let shard = tunnel((random >> 40) as u32 % SESSIONS).place.shard;
            let to = owning.start + (random >> 33) as usize % owning.len();
            lab.engine.move_shards([shard], to).unwrap();
        }
        lab.traffic();
    }
    lab.settle();
    let counters = lab.engine.moves();
    assert_eq!((counters.overflowed, counters.hurried, counters.given_up), (0, 0, 0));
    assert!(counters.pauses.is_sorted() && counters.pause(1.0) >= counters.pause(0.5));
    lab.finish();
}

#[test]
fn shards_move_under_traffic_where_the_nic_follows() {
    shuffle(Lab::new(3, RssMode::InnerIp, |_| {}), 400);
}

#[test]
fn shards_move_under_traffic_where_all_is_handed_off() {
    shuffle(Lab::new(3, RssMode::Outer, |_| {}), 400);
}

#[test]
fn shards_move_in_a_pipeline_whoever_sends() {
    for sender in [Sender::Owner, Sender::Dispatcher] {
        let model = Model::Pipeline { dispatchers: 1, sender };
        shuffle(Lab::new(3, RssMode::InnerIp, |config| config.model = model), 200);
    }
}

#[test]
fn workers_come_and_go_under_traffic() {
    let mut lab = Lab::new(3, RssMode::InnerIp, |config| config.active = Some(1));
    let shards = |lab: &mut Lab| -> Vec<usize> {
        lab.engine.reports().unwrap().iter().map(|report| report.shards).collect()
    };
    assert_eq!(shards(&mut lab), [512, 0, 0]);
    wait("idle workers to sleep", || lab.engine.gauges()[2].asleep);
    for workers in [3, 1, 2, 3, 2, 1] {
        lab.engine.scale(workers).unwrap();
        let deadline = Instant::now() + Duration::from_mins(3);
        loop {
            lab.engine.regulate(|_| {});
            lab.traffic();
            if lab.engine.active() == workers && lab.engine.moves().outstanding == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{:?}", lab.engine.moves());
        }
        for _ in 0..50 {
            lab.traffic();
        }
        let owned = shards(&mut lab);
        assert!(owned.iter().take(workers).all(|owned| *owned > 0), "{owned:?}");
        assert_eq!(owned.iter().take(workers).sum::<usize>(), 512);
    }
    assert!(lab.engine.scale(4).is_err() && lab.engine.scale(0).is_err());
    lab.finish();
}

#[test]
fn a_request_during_a_move_replaces_what_was_wanted() {
    let mut lab = Lab::new(2, RssMode::InnerIp, |_| {});
    for round in 0..20 {
        lab.engine.move_shards(ShardId::all(), round % 2).unwrap();
        lab.traffic();
    }
    lab.settle();
    assert_eq!(lab.engine.shard_map().shards_of(1).count(), 512);
    assert!(lab.engine.move_shards(ShardId::all(), 2).is_err());
    lab.finish();
}

/// All packets belong to one worker's shards; the other one gets some of them.
#[test]
fn skewed_load_is_levelled() {
    let rebalance = Some(Duration::from_millis(20));
    let limits = engine::plan::Limits { least: 1, ..Default::default() };
    let scaling = Scaling { rebalance, limits, ..Scaling::default() };
    let mut lab = Lab::new(2, RssMode::InnerIp, |config| config.scaling = scaling);
    lab.engine.move_shards((0..SESSIONS).map(|index| tunnel(index).place.shard), 0).unwrap();
    lab.settle();
    let owned = |lab: &Lab| {
        let owner = |index| lab.engine.shard_map().owner(tunnel(index).place.shard);
        (0..SESSIONS).filter(|index| owner(*index) == 1).count() as u32
    };
    assert_eq!(owned(&lab), 0);
    let deadline = Instant::now() + Duration::from_mins(3);
    while !(SESSIONS / 4..=3 * SESSIONS / 4).contains(&owned(&lab)) {
        assert!(Instant::now() < deadline, "worker 1 has {} of {SESSIONS}", owned(&lab));
        lab.engine.regulate(|_| {});
        lab.traffic();
    }
    lab.settle();
    lab.finish();
}

/// Where there is no room to park, packets are lost by name, and the move goes on.
#[test]
fn a_full_parking_place_is_counted() {
    let mut lab = Lab::new(2, RssMode::InnerIp, |config| config.parking = 0);
    let deadline = Instant::now() + Duration::from_mins(3);
    let mut frames = Vec::new();
    let mut number = 0;
    while lab.engine.moves().overflowed == 0 {
        assert!(Instant::now() < deadline, "{:?}", lab.engine.moves());
        if lab.engine.moves().outstanding == 0 {
            number += 1;
            lab.engine.move_shards(ShardId::all(), number % 2).unwrap();
        }
        frames.extend((0..32).map(|index| packet(tunnel(index).teid, ue(index), 0)));
        lab.n3.offer(&mut frames);
        lab.n6.collect(&mut lab.out, 1_000);
        lab.out.clear();
        lab.engine.flush();
        lab.engine.drain(|_, _| {});
    }
    let overflowed = |reports: &[WorkerReport]| -> u64 {
        reports.iter().map(|report| report.counters.dropped(Reason::MoveParkingFull)).sum()
    };
    wait("the moves", || {
        lab.n6.collect(&mut lab.out, 1_000);
        lab.out.clear();
        lab.engine.flush();
        lab.engine.drain(|_, _| {});
        lab.engine.moves().outstanding == 0
    });
    let reports = lab.engine.stop().unwrap();
    assert!(overflowed(&reports) > 0);
    assert!(reports.iter().all(|report| report.counters.balance() == 0));
}

/// A dispatcher that sends for others counts what its port does not take; the others have left it to it.
#[test]
fn frames_that_a_dispatcher_can_not_send_are_its_losses() {
    let model = Model::Pipeline { dispatchers: 1, sender: Sender::Dispatcher };
    let mut lab = Lab::new(2, RssMode::InnerIp, |config| config.model = model);
    let mut sent = 0;
    // Nobody collects: the port's ring fills, then what waits for it, then packets are lost.
    while sent < 40_000 {
        let mut frames: Vec<_> = (0..32).map(|index| packet(tunnel(index).teid, ue(index), 0)).collect();
        while !frames.is_empty() {
            let before = frames.len();
            lab.n3.offer(&mut frames);
            sent += before - frames.len();
        }
    }
    wait("the dispatcher", || lab.engine.reports().unwrap()[0].counters.received == sent as u64);
    let reports = lab.engine.stop().unwrap();
    let mut sum = Counters::default();
    for report in &reports {
        assert_eq!(report.counters.balance(), 0, "worker {}", report.worker);
        sum.merge(&report.counters);
    }
    assert!(reports[0].counters.dropped(Reason::TxQueueFull) > 0);
    assert_eq!(reports[1].counters.sent, 0);
    assert_eq!(sum.handed_in, sum.handed_out);
}

/// A move whose receiver waits for the giver does not hold up the end.
#[test]
fn an_engine_stops_before_a_move_has_begun() {
    let mut lab = Lab::new(2, RssMode::InnerIp, |_| {});
    lab.engine.move_shards(ShardId::all(), 1).unwrap();
    let Lab { engine, .. } = lab;
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(engine.stop().map(|reports| reports.len())));
    let workers = end.recv_timeout(Duration::from_mins(1)).expect("the engine does not stop").unwrap();
    assert_eq!(workers, 2);
}
