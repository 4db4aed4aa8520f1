//! Schedulers with real threads and real work: what comes out is right, nothing is lost, order is kept, and workers may fail. No test asserts a time: whoever waits, waits long.

use accel::sched::core::{self, Core, Source};
use accel::sched::host::material::Channel;
use accel::sched::host::{
    Accelerator, Host, HostSettings, Settings, StartError, Vectors, descriptor, in_one_thread,
};
use accel::sched::packet::{Chain, FlowId, KindId, Packet, PacketTable};
use accel::sched::q_learning::Table;
use accel::sched::run::{self, Machine, RunError, SCHEDULERS, Timed, run_on_host, scheduler_on};
use accel::sched::traffic::{Load, Test};
use accel::sched::xavier::{Change, Fault};
use accel::sched::{Job, Left, WorkerId};
use ran::nea2::{self, Key};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use tables::Nanos;

const SIZES: [u32; 3] = [40, 260, 1030];
/// Nanoseconds after which a test gives up: nothing is that slow.
const FOREVER: u64 = 120 * Nanos::SECOND;
const CORE: WorkerId = WorkerId(0);
const ACCELERATOR: WorkerId = WorkerId(1);

fn host() -> Settings {
    Settings { cpu_workers: 1, accelerator: Accelerator::Thread, ..Settings::default() }
}

/// A test of the thesis' schedulers with small packets, so many a second, for a second; nobody's patience ends.
fn settings(chain: Chain, rate: u32) -> run::Settings {
    let mut settings = run::Settings { seconds: 1, ..run::Settings::thesis(Test::Low, chain) };
    settings.traffic.load = Load::Rates(vec![rate]);
    settings.traffic.sizes = SIZES.map(|octets| (octets, 2)).to_vec();
    settings.core.patience = FOREVER;
    settings.thresholds = Some(accel::sched::fixed::Thresholds {
        cpu_octets: 255,
        cpu_latency: 0,
        accelerator_latency: 0,
        rate: 0.0,
        rates: [0.0, 10.0, 1e9],
    });
    let table = format!("millrace q-table 1\nconfiguration {}\nworkers 2\n0 1\n", chain.name());
    settings.learned = Some(Table::read(&table).unwrap());
    settings
}

/// Packets of all sizes, as fast as they are taken.
struct Packets {
    left: u64,
    now: Nanos,
}

impl Source for Packets {
    fn receive(&mut self, most: usize, into: &mut Vec<Packet>) {
        let most = self.left.min(most as u64);
        into.extend((0..most).map(|at| {
            let tag = self.left - at;
            let kind = tag % 5;
            let octets = [SIZES[0], SIZES[0], SIZES[1], SIZES[1], SIZES[2]][kind as usize];
            Packet { tag, kind: KindId(kind as u8), flow: FlowId(kind as u32), octets, arrived: self.now }
        }));
        self.left -= most;
    }
}

type Results = Arc<Mutex<Vec<(Job, Vec<u8>)>>>;

/// A core, its host, and what has come of it.
struct Bench {
    core: Core,
    host: Host,
    packets: Packets,
    left: Vec<Left>,
    results: Results,
}

impl Bench {
    fn new(name: &str, settings: &run::Settings, host: &Settings, packets: u64) -> Self {
        let scheduler = scheduler_on(host, name, settings).unwrap();
        let (core, worth) = (&settings.core, scheduler.worth());
        let mut host = Host::start(host, core.chain, worth, &SIZES, core.most_inside).unwrap();
        let results = Results::default();
        let seen = Arc::clone(&results);
        host.show(Box::new(move |job, octets| seen.lock().unwrap().push((*job, octets.to_vec()))));
        let classes = accel::sched::Platform::workers(&host).to_vec();
        let core = Core::new(core.clone(), scheduler, &classes);
        let packets = Packets { left: packets, now: Nanos(0) };
        Self { core, host, packets, left: Vec::new(), results }
    }

    fn run_until(&mut self, is_enough: impl Fn(&core::Counters, usize) -> bool) {
        let began = self.host.now();
        while !is_enough(&self.core.counters(), self.packets.left as usize + self.core.inside()) {
            let now = self.host.now();
            assert!(now.since(began) < FOREVER, "nothing more happens: {:?}", self.core.counters());
            self.packets.now = now;
            let left = &mut self.left;
            let turn = self.core.turn(now, &mut self.host, &mut self.packets, &mut |one| left.push(*one));
            if !turn.worked {
                self.host.go_on(now.plus(10_000_000).min(turn.look_again));
            }
        }
        let left = &mut self.left;
        self.core.drain(self.host.now(), &mut |one| left.push(*one));
    }

    /// All that came left, once each.
    fn nothing_is_lost(&self, packets: u64) {
        let tags: HashSet<u64> = self.left.iter().map(|left| left.job.packet.tag).collect();
        let counters = self.core.counters();
        assert_eq!(
            (self.left.len(), tags.len() as u64),
            (tags.len(), packets - counters.given_up),
            "{counters:?}"
        );
    }

    fn all_is_in_order(&self) {
        let mut last = HashMap::new();
        for left in self.left.iter().filter(|left| left.job.sequence.is_some()) {
            let before = last.insert(left.job.packet.flow, left.job.sequence);
            assert!(before.unwrap_or(None) < left.job.sequence, "{left:?} behind {before:?}");
        }
    }
}

#[test]
fn what_comes_out_is_what_one_thread_makes_of_it() {
    for chain in Chain::ALL {
        for name in ["adaptive", "round-robin"] {
            let settings = settings(chain, 0);
            let mut bench = Bench::new(name, &settings, &host(), 400);
            bench.run_until(|_, inside| inside == 0);
            bench.nothing_is_lost(400);
            let blocks = bench.host.blocks();
            assert_eq!((blocks.packets, blocks.decoded), (400, 400), "{blocks:?}");
            assert!(blocks.iterations > blocks.decoded, "the channel is no channel: {blocks:?}");
            assert!(blocks.held_percent() > 95.0 && blocks.right >= blocks.checks_hold, "{blocks:?}");
            let mut results = bench.results.lock().unwrap();
            results.sort_by_key(|(job, _)| job.number);
            let jobs: Vec<Job> = results.iter().map(|(job, _)| *job).collect();
            let most_inside = settings.core.most_inside;
            // Plain code and vectors are to make the same of it.
            for cpu in [Vectors::Plain, Vectors::Best] {
                let alone = in_one_thread(&Settings { cpu, ..host() }, &SIZES, most_inside, &jobs).unwrap();
                assert_eq!(alone.len(), 400);
                for ((job, octets), alone) in results.iter().zip(&alone) {
                    assert_eq!(octets.len(), job.packet.octets as usize);
                    assert!(
                        octets == alone,
                        "{chain:?} {name}: packet {} isn't what it should be",
                        job.number
                    );
                }
            }
        }
    }
}

#[test]
fn the_cipher_is_nea2_of_the_packet() {
    let mut bench = Bench::new("round-robin", &settings(Chain::EachStep, 0), &host(), 64);
    bench.run_until(|_, inside| inside == 0);
    let mut plain = HashMap::new();
    for (job, octets) in bench.results.lock().unwrap().iter() {
        let packet = descriptor(job).unwrap();
        let mut octets = octets.clone();
        let key = Key::new(packet.key);
        let (count, bearer, direction) = (packet.count, packet.bearer, packet.direction);
        nea2::apply(nea2::Packet { key: &key, count, bearer, direction, data: &mut octets });
        // Packets that stand for the same one were the same before: their tags are as many apart as there are different ones.
        let variant = (job.packet.octets, job.packet.tag % Channel::default().variants as u64);
        let first = plain.entry(variant).or_insert_with(|| octets.clone());
        assert!(*first == octets, "packet {} was another", job.number);
    }
    assert!(plain.len() > 8);
}

fn all_schedulers(chain: Chain) {
    for name in SCHEDULERS {
        let settings = settings(chain, 1_500);
        let mut tags = HashSet::new();
        let host = host();
        let (outcome, _) = host
            .run(scheduler_on(&host, name, &settings).unwrap(), &settings, &mut |left| {
                assert!(tags.insert(left.job.packet.tag), "a packet left twice");
                assert!(left.spans[0].began <= left.spans[0].ended, "{left:?}");
                assert!(
                    left.spans[0].ended <= left.spans[1].began,
                    "ciphered before it was decoded: {left:?}"
                );
                assert!(left.job.packet.arrived <= left.spans[0].began, "{left:?}");
            })
            .unwrap();
        let lost: u64 = outcome.edge.iter().map(|kind| kind.1).sum();
        let counters = outcome.counters;
        assert!(outcome.total.offered >= 1_499, "{}", outcome.total.offered);
        assert_eq!(outcome.total.offered, counters.received + lost);
        assert_eq!((counters.received, counters.given_up), (counters.sent, 0), "{name} {chain:?}");
        assert_eq!(tags.len() as u64, counters.sent);
        let activity = outcome.total.activity;
        assert!(activity.seconds >= 1.0 && activity.kernel + activity.polling > 0.0, "{activity:?}");
        assert!(activity.decoding <= activity.seconds, "{activity:?}");
        if name == "adaptive" {
            assert_eq!(outcome.total.ordered, outcome.total.in_order);
        }
    }
}

#[test]
fn all_schedulers_with_one_decision() {
    all_schedulers(Chain::Once);
}

#[test]
fn all_schedulers_with_a_decision_for_each_step() {
    all_schedulers(Chain::EachStep);
}

#[test]
fn what_a_dead_worker_had_is_done_by_another() {
    for chain in Chain::ALL {
        for worker in [CORE, ACCELERATOR] {
            // It stalls first, so that it has something when it dies.
            let change = |at, what| Change { at: Nanos(at), worker, what };
            let changes = vec![change(0, Fault::Stalls(FOREVER)), change(300_000_000, Fault::Dies)];
            let host = Settings { changes, ..host() };
            let mut bench = Bench::new("round-robin", &settings(chain, 0), &host, 300);
            bench.run_until(|counters, inside| inside == 0 && counters.handed_over_again > 0);
            bench.nothing_is_lost(300);
            let counters = bench.core.counters();
            assert_eq!((counters.given_up, counters.duplicates), (0, 0), "{counters:?}");
            assert!(!accel::sched::Platform::is_alive(&bench.host, worker));
            assert_eq!(bench.host.failure(worker).unwrap(), "what computes the batch has panicked");
            let results = bench.results.lock().unwrap();
            assert_eq!(results.iter().map(|(job, _)| job.number).collect::<HashSet<_>>().len(), 300);
        }
    }
}

#[test]
fn adaptive_keeps_the_order_when_the_accelerator_dies() {
    for chain in Chain::ALL {
        let change = |at, what| Change { at: Nanos(at), worker: ACCELERATOR, what };
        let changes = vec![change(0, Fault::Stalls(FOREVER)), change(200_000_000, Fault::Dies)];
        let mut bench = Bench::new("adaptive", &settings(chain, 0), &Settings { changes, ..host() }, 300);
        bench.run_until(|counters, inside| inside == 0 && counters.handed_over_again > 0);
        bench.nothing_is_lost(300);
        bench.all_is_in_order();
    }
}

#[test]
fn a_worker_that_stalls_is_replaced_and_what_it_brings_later_is_dropped() {
    for worker in [CORE, ACCELERATOR] {
        let changes = vec![Change { at: Nanos(0), worker, what: Fault::Stalls(1_500_000_000) }];
        let mut settings = settings(Chain::Once, 0);
        settings.core.patience = 700_000_000;
        let mut bench = Bench::new("round-robin", &settings, &Settings { changes, ..host() }, 200);
        bench.run_until(|counters, inside| inside == 0 && counters.duplicates > 0);
        bench.nothing_is_lost(200);
        let counters = bench.core.counters();
        assert!(counters.handed_over_again > 0 && counters.stalled > 0, "{counters:?}");
        assert!(counters.duplicates <= counters.handed_over_again, "{counters:?}");
        assert!(accel::sched::Platform::is_alive(&bench.host, worker));
    }
}

#[test]
fn a_slower_worker_still_does_what_it_has() {
    let changes = vec![Change { at: Nanos(0), worker: ACCELERATOR, what: Fault::Slower(5.0) }];
    let mut bench =
        Bench::new("adaptive", &settings(Chain::EachStep, 0), &Settings { changes, ..host() }, 300);
    bench.run_until(|_, inside| inside == 0);
    bench.nothing_is_lost(300);
    bench.all_is_in_order();
}

/// Ten times what any machine does: rings stay bounded, only the edge loses, and it loses as much of each kind.
#[test]
fn under_overload_only_the_edge_loses_and_it_is_fair() {
    for name in ["adaptive", "static"] {
        let mut settings = settings(Chain::EachStep, 200_000);
        (settings.core.most_inside, settings.traffic.ring) = (128, 64);
        let host = Settings { accelerator_ring: 32, most: 32, cpu_ring: 32, ..host() };
        let scheduler = scheduler_on(&host, name, &settings).unwrap();
        let (outcome, _) = host.run(scheduler, &settings, &mut |_| {}).unwrap();
        let counters = outcome.counters;
        assert_eq!((counters.sent, counters.given_up), (counters.received, 0));
        let (offered, lost) = outcome.edge.iter().fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
        assert_eq!(offered - lost, counters.received);
        let share = lost as f64 / offered as f64;
        assert!(share > 0.1, "{lost} of {offered}");
        for (kind, (offered, lost)) in outcome.edge.into_iter().enumerate() {
            // Whether a packet is lost depends on those before it, not on its kind: six standard deviations.
            let deviation = (offered as f64 * share * (1.0 - share)).sqrt();
            let off = (lost as f64 - offered as f64 * share).abs();
            assert!(
                off <= 6.0 * deviation.max(1.0),
                "{name}, kind {kind}: {lost} of {offered}, of all {share}"
            );
        }
    }
}

#[test]
fn what_can_not_be_run_is_refused() {
    let settings = HostSettings { test: settings(Chain::Once, 100), host: host() };
    let error = run_on_host("best", &settings).unwrap_err().to_string();
    assert!(error.starts_with("there is no scheduler \"best\""), "{error}");
    let channel = Channel { rate: 2.0, ..Channel::default() };
    let silent = HostSettings { host: Settings { channel, ..host() }, ..settings.clone() };
    let error = run_on_host("adaptive", &silent).unwrap_err();
    assert!(matches!(error, RunError::Host(StartError::Material(_))), "{error}");
    let foreign = Table::read("millrace q-table 1\nconfiguration C1\nworkers 3\n0 1\n").unwrap();
    let test = run::Settings { learned: Some(foreign), ..settings.test };
    let error = run_on_host("q-learning", &HostSettings { test, ..settings }).unwrap_err();
    assert!(matches!(error, RunError::Table(_)), "{error}");
}

/// Deadlines that nobody can meet: all are served, and counted.
#[test]
fn impossible_deadlines_are_served_best_effort() {
    let mut settings = settings(Chain::Once, 500);
    settings.core.table = PacketTable::thesis(1);
    let outcome = run_on_host("adaptive", &HostSettings { test: settings, host: host() }).unwrap();
    let total = outcome.total;
    assert!(total.with_deadline > 0 && total.late == total.with_deadline, "{total:?}");
    assert_eq!(outcome.counters.received, outcome.counters.sent);
}
