//! Schedulers on the simulated machine: nothing is lost, order is kept, workers may fail, and `adaptive` is what it is said to be.

use accel::sched::core::{Core, Source};
use accel::sched::packet::{Chain, FlowId, KindId, Packet, Step};
use accel::sched::q_learning::{Table, TableError};
use accel::sched::run::{RunError, SCHEDULERS, Settings, scheduler, simulate, simulate_with};
use accel::sched::traffic::{self, Load, Test};
use accel::sched::xavier::{Change, Fault};
use accel::sched::{BatchRecord, Class, Done, Job, Left, NEVER, Platform, Report, Span, WorkerId, oracle};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use tables::Nanos;

fn settings(test: Test, chain: Chain, seconds: u32) -> Settings {
    Settings { seconds, ..Settings::thesis(test, chain) }
}

#[test]
fn nothing_is_lost_by_any_scheduler_in_any_test() {
    for test in Test::ALL {
        for chain in Chain::ALL {
            for name in SCHEDULERS {
                let mut tags = HashSet::new();
                let settings = settings(test, chain, 3);
                let (outcome, _) =
                    simulate_with(scheduler(name, &settings).unwrap(), &settings, &mut |left| {
                        assert!(tags.insert(left.job.packet.tag), "a packet left twice");
                        assert!(left.spans[0].ended <= left.spans[1].began, "ciphered before it was decoded");
                        assert!(left.spans[0].nanos() > 0 && left.spans[1].nanos() > 0, "{left:?}");
                    });
                let lost_at_edge: u64 = outcome.edge.iter().map(|kind| kind.1).sum();
                assert_eq!(outcome.total.offered, outcome.counters.received + lost_at_edge);
                assert_eq!(outcome.counters.received, outcome.counters.sent, "{name} {test:?} {chain:?}");
                assert_eq!(tags.len() as u64, outcome.counters.sent);
                assert_eq!((outcome.counters.given_up, outcome.counters.duplicates), (0, 0));
            }
        }
    }
}

/// The figures that issue and docs claim, as far as they don't depend on a table's digits.
#[test]
fn adaptive_is_best_in_every_test_at_once() {
    for test in Test::ALL {
        let ours = simulate("adaptive", &settings(test, Chain::EachStep, 20)).unwrap();
        assert_eq!(ours.total.in_order, ours.total.ordered);
        for chain in Chain::ALL {
            for name in SCHEDULERS.into_iter().filter(|&name| name != "adaptive") {
                let other = simulate(name, &settings(test, chain, 20)).unwrap();
                let what = format!("{name} {} {}", test.name(), chain.name());
                assert!(ours.gbps() >= other.gbps(), "{what}: {} {}", ours.gbps(), other.gbps());
                assert!(ours.total.latency_ms() <= other.total.latency_ms(), "{what}");
                assert!(ours.total.missed_percent() <= other.total.missed_percent(), "{what}");
            }
        }
        match test {
            Test::Low => assert!(ours.total.late == 0 && ours.total.latency_ms() < 30.0),
            Test::Stress => assert!(ours.gbps() >= 0.130, "{}", ours.gbps()),
            _ => {}
        }
    }
}

fn changed(test: Test, chain: Chain, changes: &[(u64, usize, Fault)], seconds: u32) -> Settings {
    let mut settings = settings(test, chain, seconds);
    settings.xavier.changes = changes
        .iter()
        .map(|&(at, worker, what)| Change { at: Nanos(at * Nanos::SECOND), worker: WorkerId(worker), what })
        .collect();
    settings
}

const ACCELERATOR: usize = 2;

#[test]
fn a_worker_that_dies_takes_no_packet_along() {
    for chain in Chain::ALL {
        for name in SCHEDULERS {
            // A core; the accelerator would leave nothing that gets anywhere near what comes.
            let settings = changed(Test::Medium, chain, &[(2, 0, Fault::Dies)], 5);
            let outcome = simulate(name, &settings).unwrap();
            assert_eq!(outcome.counters.received, outcome.counters.sent, "{name} {chain:?}");
            assert_eq!(outcome.counters.given_up, 0);
            // It always has some.
            assert!(name != "round-robin" || outcome.counters.handed_over_again > 100, "{chain:?}");
        }
    }
}

#[test]
fn without_the_accelerator_cores_do_it_all() {
    for (name, chain) in SCHEDULERS.into_iter().flat_map(|name| Chain::ALL.map(|chain| (name, chain))) {
        let mut settings = changed(Test::Low, chain, &[(1, ACCELERATOR, Fault::Dies)], 3);
        settings.traffic.load = Load::Rates(vec![300]);
        let outcome = simulate(name, &settings).unwrap();
        let counters = outcome.counters;
        assert_eq!((counters.sent, counters.given_up), (outcome.total.offered, 0), "{name} {chain:?}");
        assert!(name != "adaptive" || outcome.total.in_order == outcome.total.ordered);
    }
}

#[test]
fn what_a_stalled_worker_brings_after_all_is_dropped() {
    let mut settings =
        changed(Test::Low, Chain::EachStep, &[(1, ACCELERATOR, Fault::Stalls(6 * Nanos::SECOND))], 4);
    settings.traffic.load = Load::Rates(vec![300]);
    settings.core.patience = Nanos::SECOND / 2;
    for name in ["adaptive", "round-robin"] {
        let mut tags = HashSet::new();
        let (outcome, _) = simulate_with(scheduler(name, &settings).unwrap(), &settings, &mut |left| {
            assert!(tags.insert(left.job.packet.tag), "a packet left twice");
        });
        let counters = outcome.counters;
        assert!(counters.stalled >= 1 && counters.handed_over_again > 0, "{name} {counters:?}");
        assert!(counters.sent + counters.given_up == counters.received, "{counters:?}");
        assert_eq!(counters.given_up, 0, "{name}");
    }
}

/// A worker that waits for its batch to become full doesn't stall: 100 ms, and 85 ms until a lone batch comes out again.
#[test]
fn who_waits_for_a_batch_does_not_stall() {
    let mut settings = settings(Test::Low, Chain::EachStep, 5);
    settings.traffic.load = Load::Rates(vec![20]);
    settings.core.patience = 95_000_000;
    let outcome = simulate("static", &settings).unwrap();
    assert_eq!((outcome.counters.stalled, outcome.counters.sent), (0, outcome.total.offered));
}

#[test]
fn beyond_capacity_the_edge_loses_of_all_kinds_alike() {
    for name in SCHEDULERS {
        let mut settings = settings(Test::Low, Chain::EachStep, 10);
        settings.traffic.load = Load::Rates(vec![60_000]);
        let outcome = simulate(name, &settings).unwrap();
        assert_eq!(outcome.counters.received, outcome.counters.sent);
        let shares: Vec<f64> = outcome.edge.iter().map(|&(came, lost)| lost as f64 / came as f64).collect();
        let (least, most) = shares
            .iter()
            .fold((1.0_f64, 0.0_f64), |(least, most), &share| (least.min(share), most.max(share)));
        assert!(least > 0.4 && most - least < 0.02, "{name}: {shares:?}");
    }
}

#[test]
fn deadlines_that_nobody_can_meet_are_counted_and_nothing_else() {
    let mut settings = settings(Test::Low, Chain::EachStep, 3);
    settings.core.table = accel::sched::packet::PacketTable::thesis(1000);
    // Where no deadline is ever met, all rewards of the thesis' equation are zero.
    assert!(matches!(simulate("q-learning", &settings), Err(RunError::Table(TableError::Untrained))));
    for name in SCHEDULERS.into_iter().filter(|&name| name != "q-learning") {
        let outcome = simulate(name, &settings).unwrap();
        assert_eq!(outcome.total.late, outcome.total.with_deadline, "{name}");
        assert_eq!((outcome.counters.sent, outcome.total.with_deadline > 500), (outcome.total.offered, true));
    }
}

#[test]
fn kinds_that_the_table_does_not_have_are_not_taken() {
    let mut settings = settings(Test::Low, Chain::Once, 1);
    let kinds = settings.core.table.kinds()[..4].to_vec();
    settings.core.table = accel::sched::packet::PacketTable::new(kinds).unwrap();
    let outcome = simulate("static", &settings).unwrap();
    assert!(outcome.counters.unknown_kind > 1000);
    assert_eq!(outcome.counters.received + outcome.counters.unknown_kind, outcome.total.offered);
}

/// The accelerator becomes three times slower, and recovers: no deadline is missed that could have been met, and a second later all is as if it had always been so.
#[test]
fn a_slower_accelerator_is_absorbed() {
    for chain in Chain::ALL {
        let changes = [(10, ACCELERATOR, Fault::Slower(3.0)), (20, ACCELERATOR, Fault::Slower(1.0))];
        let mut settings = changed(Test::Low, chain, &changes, 30);
        settings.traffic.load = Load::Rates(vec![4_000]);
        let mut judge = oracle::Oracle::new(&settings.xavier);
        let (outcome, _) =
            simulate_with(scheduler("adaptive", &settings).unwrap(), &settings, &mut |left| judge.saw(left));
        let verdict = judge.verdict();
        assert_eq!(verdict.regret(), 0, "{chain:?} {verdict:?}");
        assert_eq!(outcome.total.in_order, outcome.total.ordered);
        // What one second later is, is what it stays.
        let latency = |second: usize| outcome.seconds[second].latency_ms();
        let settled: f64 = (15..20).map(latency).sum::<f64>() / 5.0;
        assert!(latency(11) < settled * 1.25, "{chain:?}: {} {settled}", latency(11));
        assert!(latency(21) < latency(8) * 1.25, "{chain:?}: {} {}", latency(21), latency(8));
    }
}

#[test]
fn unknown_schedulers_are_named() {
    let error = simulate("clever", &settings(Test::Low, Chain::Once, 1)).unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no scheduler \"clever\"; there are round-robin, static, q-learning, adaptive"
    );
}

/// A platform that does what it is told by chance: whatever order, twice, never, dead.
struct Chaos {
    classes: Vec<Class>,
    chance: traffic::Chance,
    jobs: Vec<(WorkerId, Step, Job)>,
    alive: Vec<bool>,
    /// In a hundred: jobs that never come back, and that come back twice.
    never: u64,
    twice: u64,
    now: Nanos,
    chain: Chain,
    /// How often a job was handed over, by its number and step.
    handed_over: HashMap<(u64, Step), u64>,
}

impl Platform for Chaos {
    fn workers(&self) -> &[Class] {
        &self.classes
    }

    fn is_alive(&self, worker: WorkerId) -> bool {
        self.alive[worker.0]
    }

    fn enqueue(&mut self, worker: WorkerId, step: Step, jobs: &mut Vec<Job>, _launch_by: Nanos) {
        let fits = self.chance.below(jobs.len() as u64 + 1) as usize;
        for job in jobs.drain(..fits) {
            *self.handed_over.entry((job.number, step)).or_default() += 1;
            self.jobs.push((worker, step, job));
        }
    }

    fn dequeue(&mut self, reports: &mut Vec<Report>) {
        for _ in 0..self.chance.below(8) {
            if self.jobs.is_empty() {
                return;
            }
            let at = self.chance.below(self.jobs.len() as u64) as usize;
            let (worker, step, job) = self.jobs[at];
            let drawn = self.chance.below(100);
            if drawn >= self.twice {
                self.jobs.swap_remove(at);
            }
            if drawn >= 100 - self.never {
                continue;
            }
            let span = Span { began: self.now, ended: self.now };
            let mut spans = [span; 2];
            if self.chain == Chain::EachStep {
                spans[1 - step as usize] = Span::default();
            }
            reports.push(Report::Done(Done { job, worker, step, spans }));
            for done in Step::ALL.into_iter().filter(|&done| self.chain == Chain::Once || done == step) {
                let octets = u64::from(job.packet.octets);
                reports.push(Report::Batch(BatchRecord { worker, step: done, packets: 1, octets, span }));
            }
        }
    }
}

struct Packets(Vec<Packet>);

impl Source for Packets {
    fn receive(&mut self, most: usize, into: &mut Vec<Packet>) {
        let from = self.0.len() - most.min(self.0.len());
        into.extend(self.0.drain(from..).rev());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Whatever workers do, each packet leaves at most once, all that is inside is known, and if no job gets lost none is missing, and all are in order as far as the window goes.
    #[test]
    fn no_chaos_confuses_the_core(
        seed in any::<u64>(),
        name in prop::sample::select(&SCHEDULERS[..]),
        each in any::<bool>(),
        packets in 1_usize..600,
        never in prop::sample::select(&[0_u64, 0, 5, 30][..]),
        twice in prop::sample::select(&[0_u64, 10][..]),
        dies in prop::option::of(0_usize..3),
    ) {
        let chain = if each { Chain::EachStep } else { Chain::Once };
        let mut settings = Settings::thesis(Test::Low, chain);
        settings.core.patience = 20_000_000;
        settings.core.most_inside = 100;
        settings.learned = Some(Table::read(&format!("millrace q-table 1\nconfiguration {}\nworkers 3\n0 1\n", chain.name())).unwrap());
        settings.thresholds = Some(accel::sched::fixed::Thresholds::calibrated(&accel::sched::fixed::Measured {
            cpu_latency: 1, accelerator_latency: 1, accelerator_rate: 1.0,
        }));
        let mut chaos = Chaos {
            classes: vec![Class::Cpu, Class::Cpu, Class::Accelerator],
            chance: traffic::Chance::new(seed), jobs: Vec::new(), alive: vec![true; 3], never, twice, now: Nanos(0), chain, handed_over: HashMap::new(),
        };
        let mut core = Core::new(settings.core.clone(), scheduler(name, &settings).unwrap(), &chaos.classes);
        let mut source = Packets((0..packets as u64).rev().map(|tag| {
            let kind = (tag % 5) as u8;
            let octets = [243, 243, 486, 486, 1458][usize::from(kind)];
            Packet { tag, kind: KindId(kind), flow: FlowId(u32::from(kind)), octets, arrived: Nanos(tag) }
        }).collect());
        let mut left: Vec<Left> = Vec::new();
        let mut now = Nanos(0);
        for turn in 0..2_000_000_u64 {
            now = now.plus(20_000);
            chaos.now = now;
            if turn == 50 && let Some(dies) = dies {
                chaos.alive[dies] = false;
                chaos.jobs.retain(|(worker, ..)| worker.0 != dies);
            }
            core.turn(now, &mut chaos, &mut source, &mut |one| left.push(*one));
            prop_assert!(core.inside() <= 100);
            if source.0.is_empty() && core.inside() == 0 {
                break;
            }
        }
        let before = left.len();
        core.drain(now, &mut |one| left.push(*one));
        prop_assert_eq!(left.len(), before, "a packet waits for one that nobody brings");
        let counters = core.counters();
        let tags: HashSet<u64> = left.iter().map(|left| left.job.packet.tag).collect();
        prop_assert_eq!(tags.len(), left.len(), "a packet left twice");
        prop_assert_eq!(counters.sent, left.len() as u64);
        prop_assert_eq!(counters.received, packets as u64);
        prop_assert_eq!(counters.sent + counters.given_up, counters.received, "{:?} inside {}", counters, core.inside());
        if never == 0 && dies.is_none() {
            prop_assert_eq!(counters.given_up, 0, "{:?}", counters);
            prop_assert!(chaos.handed_over.values().all(|&times| times == 1), "done again without need");
        }
        prop_assert!(chaos.handed_over.values().all(|&times| times <= 2), "handed over again more than once");
        let mut highest: HashMap<FlowId, u64> = HashMap::new();
        for one in left.iter().filter(|one| one.job.sequence.is_some()) {
            let before = highest.entry(one.job.packet.flow).or_default();
            prop_assert_eq!(one.in_order, one.job.packet.tag >= *before);
            *before = one.job.packet.tag.max(*before);
        }
        prop_assert!(left.iter().all(|one| one.job.due == NEVER || one.is_late() == (one.at > one.job.due)));
    }
}

/// Two cores. The first one takes everything, the second one nothing.
struct OneTakes {
    taken: Vec<Job>,
    reports: Vec<Report>,
}

impl Platform for OneTakes {
    fn workers(&self) -> &[Class] {
        &[Class::Cpu, Class::Cpu]
    }

    fn is_alive(&self, _worker: WorkerId) -> bool {
        true
    }

    fn enqueue(&mut self, worker: WorkerId, _step: Step, jobs: &mut Vec<Job>, _launch_by: Nanos) {
        if worker == WorkerId(0) {
            self.taken.append(jobs);
        }
    }

    fn dequeue(&mut self, reports: &mut Vec<Report>) {
        reports.append(&mut self.reports);
    }
}

#[test]
fn what_is_brought_while_it_waits_for_another_worker_is_not_done_again() {
    let mut settings = Settings::thesis(Test::Low, Chain::Once);
    (settings.core.burst, settings.batching.burst, settings.core.patience) = (1, 1, Nanos::SECOND);
    let mut machine = OneTakes { taken: Vec::new(), reports: Vec::new() };
    let round_robin = scheduler("round-robin", &settings).unwrap();
    let mut core = Core::new(settings.core.clone(), round_robin, machine.workers().to_vec().as_slice());
    let packet = |tag| Packet { tag, kind: KindId(1), flow: FlowId(0), octets: 243, arrived: Nanos(0) };
    let mut left = Vec::new();
    let mut turn = |core: &mut Core, machine: &mut OneTakes, now: u64, packets: Vec<Packet>| {
        let mut source = Packets(packets);
        while core.turn(Nanos(now), machine, &mut source, &mut |one| left.push(one.job.packet.tag)).worked {}
    };
    // One is with the first core, one pending for the second.
    turn(&mut core, &mut machine, 1, vec![packet(1), packet(0)]);
    assert_eq!(machine.taken.len(), 1);
    // The first core stalls, and nobody has room for what it had.
    turn(&mut core, &mut machine, 1_100_000_000, vec![]);
    assert_eq!(core.counters().handed_over_again, 1);
    // Then it brings it after all, and the next packet gets its place in the books.
    let (job, span) = (machine.taken[0], Span { began: Nanos(1), ended: Nanos(2) });
    machine.reports.push(Report::Done(Done {
        job,
        worker: WorkerId(0),
        step: Step::Decode,
        spans: [span; 2],
    }));
    turn(&mut core, &mut machine, 1_100_000_001, vec![packet(2)]);
    let tags: Vec<u64> = machine.taken.iter().map(|job| job.packet.tag).collect();
    assert_eq!((left, tags), (vec![0], vec![0, 2]));
}
