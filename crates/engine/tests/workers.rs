//! Two workers on in-memory NICs that know nothing of GTP-U: every uplink packet reaches one worker, and leaves through the
//! owner of its session.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{
    N3_MAC, N6_MAC, ROUTER_MAC, SESSIONS, install, install_all, network, packet, rules, to_port, tunnel, ue,
    wait,
};
use counters::Count;
use datapath::command::{Command, Token, Transition};
use datapath::lookups::{LookupDevice, Model as Device, Trouble};
use datapath::offload::{Mode, Policy, TakenBack};
use datapath::{Counters, Reason};
use engine::{Engine, EngineConfig, EngineError, Model, Sender, WorkerReport};
use io::Frame;
use io::mem::{FlowTableConfig, MemConfig, MemFrame, MemNic, MemSwitch, MemWire, RssMode};
use packet::{MacAddr, Teid};
use session::rules::{SdfFilter, Tunnel};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tables::Nanos;
use tables::clock::Tsc;

fn nic(mac: MacAddr, queues: u16) -> (MemNic, MemWire) {
    let rss = RssMode::Outer;
    MemNic::new(MemConfig { mac, queues, rss, mtu: 9_000, ..MemConfig::default() }).unwrap()
}

fn start(workers: usize, queues: u16) -> (Result<Engine, EngineError>, Vec<MemNic>, MemWire, MemWire) {
    start_with(workers, queues, None)
}

/// With a switch, NICs are its ports, and the workers make use of it.
fn start_with(
    workers: usize,
    queues: u16,
    offload: Option<(&MemSwitch, Mode)>,
) -> (Result<Engine, EngineError>, Vec<MemNic>, MemWire, MemWire) {
    let ((n3, n3_wire), (n6, n6_wire)) = (nic(N3_MAC, queues), nic(N6_MAC, queues));
    let mut ports = vec![n3, n6];
    let mut config = EngineConfig { cores: vec![None; workers], ..EngineConfig::default() };
    if let Some((switch, mode)) = offload {
        for port in &ports {
            switch.plug(port).unwrap();
        }
        let idle = 3600 * Nanos::SECOND;
        let eager = Policy { packets_per_second: 10, lifetime: 0, sample: 1, idle, ..Policy::new(mode) };
        config.offload = Some(eager);
        // Whoever isn't running doesn't answer.
        config.patience = Duration::from_secs(20);
        config.scaling.rebalance = None;
    }
    let datapath = datapath::Config::new(network().fib());
    (Engine::start(&mut ports, &config, &datapath, Tsc::process()), ports, n3_wire, n6_wire)
}

#[test]
fn packets_reach_the_owner_of_their_session_in_order_and_none_is_lost() {
    let (engine, _ports, mut n3, mut n6) = start(2, 2);
    let mut engine = engine.unwrap();
    install(&mut engine, SESSIONS);
    // The NIC hashes the gNB's address only: all packets arrive at one worker, half of the sessions belong to the other.
    let (mut sent, mut arrived) = (0, 0);
    let mut received = vec![Vec::new(); SESSIONS as usize];
    let mut waiting: Vec<MemFrame> = Vec::new();
    let mut out: Vec<MemFrame> = Vec::new();
    let total = 20_000;
    wait("packets", || {
        while waiting.len() < 32 && sent < total && sent < arrived + 512 {
            let index = sent % SESSIONS;
            waiting.push(packet(tunnel(index).teid, ue(index), sent));
            sent += 1;
        }
        n3.offer(&mut waiting);
        n6.collect(&mut out, 64);
        for frame in out.drain(..) {
            let bytes = frame.bytes();
            assert_eq!((&bytes[..6], &bytes[6..12]), (&ROUTER_MAC.0[..], &N6_MAC.0[..]));
            let source = u32::from_be_bytes(bytes[26..30].try_into().unwrap());
            let number = u32::from_be_bytes(bytes[42..46].try_into().unwrap());
            received[(source - u32::from(ue(0))) as usize].push(number);
            arrived += 1;
        }
        arrived == total
    });
    for numbers in &received {
        assert!(numbers.is_sorted(), "packets of one session were reordered");
    }
    let live = engine.reports().unwrap();
    assert_eq!(live.iter().map(|report| report.sessions).sum::<usize>(), SESSIONS as usize);
    let reports = engine.stop().unwrap();
    let mut sum = Counters::default();
    for report in &reports {
        assert_eq!(report.counters.balance(), 0);
        sum.merge(&report.counters);
    }
    assert_eq!((sum.received, sum.sent, sum.dropped_total()), (total.into(), total.into(), 0));
    let handed_off: u64 = reports.iter().map(|report| report.load.handed_off).sum();
    let taken_over: u64 = reports.iter().map(|report| report.load.taken_over).sum();
    assert_eq!(handed_off, taken_over);
    assert!(handed_off > u64::from(total) / 4, "only {handed_off} packets were handed off");
}

/// The worker that has nothing to do ends at once; the other goes on for a while, with packets for both.
#[test]
fn no_worker_is_said_to_have_died_when_all_are_told_to_stop() {
    for _ in 0..3 {
        let (engine, _ports, mut n3, mut n6) = start(2, 2);
        let mut engine = engine.unwrap();
        install(&mut engine, SESSIONS);
        let stopped = AtomicBool::new(false);
        let reports = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut waiting, mut out, mut number) = (Vec::<MemFrame>::new(), Vec::new(), 0);
                while !stopped.load(Ordering::Relaxed) {
                    while waiting.len() < 32 {
                        let index = number % SESSIONS;
                        waiting.push(packet(tunnel(index).teid, ue(index), number));
                        number += 1;
                    }
                    n3.offer(&mut waiting);
                    n6.collect(&mut out, 64);
                    out.clear();
                    std::thread::yield_now();
                }
            });
            let reports = engine.stop().unwrap();
            stopped.store(true, Ordering::Relaxed);
            reports
        });
        for report in &reports {
            assert_eq!(report.counters.dropped(Reason::LostWithWorker), 0, "worker {}", report.worker);
            assert_eq!(report.counters.balance(), 0);
        }
    }
}

/// TEIDs that don't say where their session is, on packets that arrive at one worker and belong to both.
#[test]
fn after_a_fence_every_worker_knows_the_directory() {
    let (engine, _ports, mut n3, mut n6) = start(2, 2);
    let mut engine = engine.unwrap();
    let chosen = |index| Teid(0xff00_0000 + index);
    for index in 0..SESSIONS {
        let mut rules = rules(index);
        let tunnel = Tunnel { teid: chosen(index), ..tunnel(index) };
        rules.pdrs[0].tunnel = Some(tunnel);
        let rules = Arc::new(rules);
        let (token, transition, query) = (Token(index.into()), Transition::default(), Box::default());
        engine.broadcast(|| Command::Directory { teid: tunnel.teid, place: Some(tunnel.place) });
        engine.post(rules.place.shard, Command::Install { token, rules, transition, query });
    }
    let fence = engine.fence();
    engine.drain(|_, _| {});
    assert!(!engine.passed(fence), "nothing was handed over yet");
    wait("the fence", || {
        engine.flush();
        engine.drain(|_, _| {});
        engine.passed(fence)
    });
    let later = engine.fence();
    assert!(engine.passed(fence) && !engine.passed(later));
    let mut waiting: Vec<MemFrame> = (0..SESSIONS).map(|i| packet(chosen(i), ue(i), i)).collect();
    let mut out: Vec<MemFrame> = Vec::new();
    wait("packets", || {
        n3.offer(&mut waiting);
        n6.collect(&mut out, 64);
        out.len() == SESSIONS as usize
    });
    let reports = engine.stop().unwrap();
    assert_eq!(reports.iter().map(|report| report.counters.dropped_total()).sum::<u64>(), 0);
    assert!(reports.iter().map(|report| report.load.handed_off).sum::<u64>() > u64::from(SESSIONS) / 4);
}

/// Flows of eight sessions that all arrive at one worker, with a NIC that can take them off the workers' hands.
struct Flows {
    switch: MemSwitch,
    engine: Engine,
    _ports: Vec<MemNic>,
    n3: MemWire,
    n6: MemWire,
    sent: u64,
    arrived: u64,
    out: Vec<MemFrame>,
}

impl Flows {
    fn new(mode: Mode) -> Self {
        let switch = MemSwitch::new(FlowTableConfig::default());
        let (engine, ports, n3, n6) = start_with(2, 2, Some((&switch, mode)));
        let mut engine = engine.unwrap();
        install(&mut engine, 8);
        Self { switch, engine, _ports: ports, n3, n6, sent: 0, arrived: 0, out: Vec::new() }
    }

    /// Some packets of each, all of which arrive.
    fn round(&mut self) {
        let mut packets = (0..40).map(|i| packet(tunnel(i % 8).teid, ue(i % 8), i)).collect();
        let Self { n3, n6, sent, arrived, out, engine, .. } = self;
        *sent += n3.offer(&mut packets) as u64;
        wait("packets", || {
            engine.flush();
            engine.drain(|_, event| panic!("unexpected: {event:?}"));
            out.clear();
            *arrived += n6.collect(out, 64) as u64;
            arrived == sent
        });
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Until `done` says so, and then once more.
fn until(
    mode: Mode,
    mut done: impl FnMut(&MemSwitch, &[WorkerReport]) -> bool,
) -> (Vec<WorkerReport>, Vec<WorkerReport>, u64) {
    let mut flows = Flows::new(mode);
    wait("the NIC", || {
        flows.round();
        done(&flows.switch, &flows.engine.reports().unwrap())
    });
    let before = flows.engine.reports().unwrap();
    (0..20).for_each(|_| flows.round());
    let after = flows.engine.stop().unwrap();
    assert!(flows.switch.is_empty(), "the workers took everything back");
    (before, after, flows.sent)
}

fn sum(reports: &[WorkerReport], what: impl Fn(&WorkerReport) -> u64) -> u64 {
    reports.iter().map(what).sum()
}

#[test]
fn heavy_flows_leave_the_workers_and_their_counters_come_back() {
    let (before, after, total) = until(Mode::Full, |switch, _| switch.len() == 8);
    let received = |report: &WorkerReport| report.counters.received;
    assert_eq!(sum(&after, received), sum(&before, received), "no worker saw the last packets");
    assert_eq!(sum(&after, |report| report.counters.uplink.packets), total);
    let handled = |report: &WorkerReport| report.offload.as_ref().unwrap().counters.packets;
    assert_eq!(sum(&after, handled) + sum(&after, received), total);
}

/// The rules of a shard's flows go before the shard does, and what they counted goes with it.
#[test]
fn a_shard_that_moves_leaves_no_rule_behind() {
    let mut flows = Flows::new(Mode::Full);
    let back = |reports: &[WorkerReport]| {
        sum(reports, |report| report.offload.as_ref().unwrap().counters.taken_back.get(TakenBack::Asked))
    };
    for to in [0, 1, 0] {
        wait("the NIC", || {
            flows.round();
            flows.switch.len() == 8
        });
        // The NIC alone forwards and counts these.
        (0..5).for_each(|_| flows.round());
        let reports = flows.engine.reports().unwrap();
        let held = reports[1 - to].offload.as_ref().unwrap().entries as u64;
        flows.engine.move_shards((0..8).map(|index| tunnel(index).place.shard), to).unwrap();
        wait("the moves", || {
            flows.round();
            flows.engine.moves().outstanding == 0
        });
        let after = flows.engine.reports().unwrap();
        assert_eq!(back(&after) - back(&reports), held, "from worker {}", 1 - to);
        assert_eq!(after[1 - to].offload.as_ref().unwrap().entries, 0);
    }
    let moves = flows.engine.moves();
    assert!(moves.moves > 0 && moves.given_up == 0, "{moves:?}");
    let reports = flows.engine.stop().unwrap();
    assert!(flows.switch.is_empty());
    assert_eq!(sum(&reports, |report| report.counters.uplink.packets), flows.sent, "each is in the books");
}

#[test]
fn heavy_flows_are_steered_to_their_worker() {
    let handed_off = |report: &WorkerReport| report.load.handed_off;
    // All packets arrive at one worker; the sessions of the other are handed to it until their flows are steered.
    let mut last = 0;
    let (before, after, total) = until(Mode::Partial { queue: 0 }, |switch, reports| {
        let now = sum(reports, handed_off);
        now == std::mem::replace(&mut last, now) && !switch.is_empty()
    });
    assert!(sum(&before, handed_off) > 0);
    assert_eq!(sum(&after, handed_off), sum(&before, handed_off), "nothing was handed over any more");
    assert_eq!(sum(&after, |report| report.counters.received), total);
    assert_eq!(sum(&after, |report| report.counters.uplink.packets), total);
}

#[test]
fn more_workers_than_queues_is_an_error_that_says_so() {
    let (engine, ..) = start(2, 1);
    match engine {
        Err(error @ EngineError::NoQueue { queue: 1, .. }) => {
            assert!(error.to_string().contains("as many queues"));
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
    let (engine, ..) = start(0, 1);
    assert!(matches!(engine, Err(EngineError::Workers(_))));
}

/// Only for workers that have tables: a dispatcher has none.
#[test]
fn memory_for_new_flows_is_made_ready_beside_the_worker() {
    let ((n3, mut n3_wire), (n6, mut n6_wire)) = (nic(N3_MAC, 2), nic(N6_MAC, 2));
    let model = Model::Pipeline { dispatchers: 1, sender: Sender::Owner };
    let config = EngineConfig { cores: vec![None; 2], model, ..EngineConfig::default() };
    let flows_per_session = u32::from(u16::MAX);
    let datapath = datapath::Config {
        flow_supply: 1 << 20,
        flows_per_session,
        ..datapath::Config::new(network().fib())
    };
    let mut engine = Engine::start(&mut [n3, n6], &config, &datapath, Tsc::process()).unwrap();
    let threads: Vec<_> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok())
        .filter(|name| name.starts_with("memory-"))
        .collect();
    assert_eq!(threads, ["memory-1\n"]);
    // Each port is a flow of its own.
    let mut rules = rules(0);
    rules.pdrs[0].filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    install_all(&mut engine, [rules]);
    let (mut port, mut out) = (0, Vec::new());
    wait("memory", || {
        assert!(port < u16::MAX - 32, "the table has grown to {port} flows by itself");
        let burst = 1 + port..=32 + port;
        n3_wire.offer(&mut burst.map(|port| to_port(tunnel(0).teid, ue(0), port)).collect());
        wait("packets", || {
            n6_wire.collect(&mut out, 64);
            out.len() == 32
        });
        out.clear();
        port += 32;
        // Workers look about themselves every millisecond, and the table grows only so often.
        std::thread::sleep(Duration::from_millis(1));
        let flows = engine.reports().unwrap()[1].counters.flows;
        assert_eq!(flows.live(), port.into());
        flows.memory.supplied > 0
    });
    engine.stop().unwrap();
}

/// More than a worker writes down at once: what is read is whole all the same, and goes on being told.
#[test]
fn many_slices_are_published_in_parts() {
    const SLICES: usize = 200;
    let ((n3, _n3_wire), (n6, _n6_wire)) = (nic(N3_MAC, 1), nic(N6_MAC, 1));
    let slices = vec![datapath::Slice::default(); SLICES];
    let datapath = datapath::Config { slices, ..datapath::Config::new(network().fib()) };
    let config = EngineConfig::default();
    let engine = Engine::start(&mut [n3, n6], &config, &datapath, Tsc::process()).unwrap();
    let snapshots = engine.snapshots();
    let mut last = Nanos(0);
    for _ in 0..3 {
        wait("a publication", || {
            let told = snapshots.read();
            assert_eq!((told.len(), told[0].slices.len()), (1, SLICES));
            let is_new = told[0].at > last;
            last = told[0].at;
            is_new
        });
    }
    assert_eq!(engine.stop().unwrap()[0].slices.len(), SLICES);
}

/// Bursts that waited in full queues are looked up by a device, in another thread's time: none is lost, none overtaken, also when the device is lost.
#[test]
fn bursts_that_a_device_looks_up_leave_in_order() {
    let ((n3, mut n3_wire), (n6, mut n6_wire)) = (nic(N3_MAC, 2), nic(N6_MAC, 2));
    let mut ports = vec![n3, n6];
    let trouble = Arc::new(Trouble::default());
    trouble.latency.store(20_000, Ordering::Relaxed);
    let device = Arc::clone(&trouble);
    let open = move |_| -> Option<Box<dyn LookupDevice>> {
        Some(Box::new(Device::new(1 << 12, 32, Arc::clone(&device))))
    };
    let config = EngineConfig {
        cores: vec![None; 2],
        resting: true,
        lookups: Some(Arc::new(open)),
        ..EngineConfig::default()
    };
    let datapath = datapath::Config::new(network().fib());
    let mut engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
    // With flows, so that uplink packets are asked about, too.
    install_all(
        &mut engine,
        (0..SESSIONS).map(|index| {
            let mut rules = rules(index);
            rules.pdrs.iter_mut().for_each(|pdr| pdr.filters = [SdfFilter::default()].into());
            rules
        }),
    );
    // All that comes while they rest is there when they wake: full bursts.
    let mut waiting: Vec<MemFrame> = (0..600)
        .map(|number| packet(tunnel(number % SESSIONS).teid, ue(number % SESSIONS), number))
        .collect();
    assert_eq!(n3_wire.offer(&mut waiting), 600);
    engine.wake();
    engine.flush();
    let (mut sent, mut arrived) = (600, 0);
    let mut next = vec![0; SESSIONS as usize];
    let mut out: Vec<MemFrame> = Vec::new();
    let total = 40_000;
    wait("packets", || {
        while waiting.len() < 256 && sent < total && sent < arrived + 900 {
            waiting.push(packet(tunnel(sent % SESSIONS).teid, ue(sent % SESSIONS), sent));
            sent += 1;
        }
        n3_wire.offer(&mut waiting);
        n6_wire.collect(&mut out, 64);
        for frame in out.drain(..) {
            let bytes = frame.bytes();
            let session = u32::from_be_bytes(bytes[26..30].try_into().unwrap()) - u32::from(ue(0));
            let number = u32::from_be_bytes(bytes[42..46].try_into().unwrap());
            let next = &mut next[session as usize];
            assert_eq!(number, *next * SESSIONS + session, "lost or overtaken");
            *next += 1;
            arrived += 1;
        }
        trouble.lost.store(arrived > total / 2, Ordering::Relaxed);
        engine.flush();
        engine.drain(|_, _| {});
        arrived == total
    });
    let reports = engine.stop().unwrap();
    let mut lookups = engine::LookupCounters::default();
    for report in &reports {
        assert_eq!((report.counters.balance(), report.counters.under_way), (0, 0));
        assert_eq!(report.counters.dropped_total(), 0);
        lookups = lookups.plus(report.lookups.unwrap());
    }
    assert!(lookups.asked > 0 && lookups.questions > 0, "{lookups:?}");
}
