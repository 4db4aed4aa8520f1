//! Energy follows load: a worker without shards leaves its processor to others, one that polls does not.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{N3_MAC, N6_MAC, network, wait};
use engine::{Engine, EngineConfig, IdlePolicy, WorkerReport};
use io::mem::{MemConfig, MemNic};
use packet::MacAddr;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tables::clock::Tsc;

/// Threads by the workers' names.
type Threads = Arc<Mutex<BTreeMap<String, i32>>>;

fn nic(mac: MacAddr) -> MemNic {
    MemNic::new(MemConfig { mac, queues: 2, ..MemConfig::default() }).unwrap().0
}

/// Two workers that wait as told, and their threads.
fn start(idle: IdlePolicy) -> (Engine, [i32; 2]) {
    let threads = Threads::default();
    let theirs = threads.clone();
    let config = EngineConfig {
        cores: vec![None; 2],
        idle,
        on_thread_start: Arc::new(move || {
            let name = std::thread::current().name().unwrap().to_owned();
            theirs.lock().unwrap().insert(name, rustix::thread::gettid().as_raw_nonzero().get());
            Box::new(())
        }),
        ..EngineConfig::default()
    };
    let datapath = datapath::Config::new(network().fib());
    let mut ports = [nic(N3_MAC), nic(N6_MAC)];
    let engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
    let threads = threads.lock().unwrap();
    (engine, ["worker-0", "worker-1"].map(|name| threads[name]))
}

/// Nanoseconds that a thread of this process has run on a processor; `None`: this kernel doesn't count them.
fn ran(thread: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

fn scale(engine: &mut Engine, workers: usize) {
    engine.scale(workers).unwrap();
    wait("the moves", || {
        engine.regulate(|_| {});
        engine.flush();
        engine.drain(|_, _| {});
        engine.active() == workers && engine.moves().outstanding == 0
    });
}

/// Share of the time between two reports that a worker slept.
fn slept(before: &WorkerReport, after: &WorkerReport) -> f64 {
    let (before, after) = (before.load, after.load);
    let asleep = after.asleep_nanos - before.asleep_nanos;
    asleep as f64 / (after.total_nanos - before.total_nanos) as f64
}

#[test]
fn a_worker_without_shards_sleeps_whatever_the_policy() {
    let (mut engine, threads) = start(IdlePolicy::Busy);
    // Both own shards: both poll.
    wait("time to pass", || engine.reports().unwrap()[1].load.total_nanos > 20_000_000);
    assert!(engine.gauges().iter().all(|gauge| !gauge.asleep));
    assert!(engine.reports().unwrap().iter().all(|report| report.load.asleep_nanos == 0));
    scale(&mut engine, 1);
    wait("worker 1 to sleep", || engine.gauges()[1].asleep);
    let before = engine.reports().unwrap();
    if let [Some(polling), Some(sleeping)] = threads.map(ran) {
        // However busy the machine is: the one has every processor time that it can get, the other hardly any.
        wait("the polling one to run ten times as long", || {
            std::thread::sleep(Duration::from_millis(20));
            let polled = ran(threads[0]).unwrap() - polling;
            polled > 100_000_000 && polled > 10 * (ran(threads[1]).unwrap() - sleeping)
        });
    } else {
        testing::skipped("this kernel does not count threads' time on processors");
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = engine.reports().unwrap();
    assert!(slept(&before[1], &after[1]) > 0.5, "{:?}", after[1].load);
    assert_eq!(after[0].load.asleep_nanos, 0, "it polls");
    for report in &after {
        let load = report.load;
        assert!(load.busy_nanos + load.asleep_nanos <= load.total_nanos, "{load:?}");
    }
    // With shards it is awake again.
    scale(&mut engine, 2);
    wait("worker 1 to wake", || !engine.gauges()[1].asleep);
    let before = engine.reports().unwrap();
    assert!(before[1].shards > 0);
    std::thread::sleep(Duration::from_millis(20));
    let after = engine.stop().unwrap();
    assert_eq!(after[1].load.asleep_nanos, before[1].load.asleep_nanos);
}

/// With the default policy a worker with shards naps between polls when there is nothing to do, and is not called asleep.
#[test]
fn naps_between_polls_count_too() {
    let (mut engine, _) = start(IdlePolicy::default());
    let mut first = None;
    wait("naps", || {
        let report = engine.reports().unwrap().swap_remove(0);
        first.get_or_insert_with(|| report.clone()).load.total_nanos + 50_000_000 < report.load.total_nanos
            && slept(first.as_ref().unwrap(), &report) > 0.1
    });
    assert!(!engine.gauges()[0].asleep);
    engine.stop().unwrap();
}
