//! Workers driven by hand, of which some ask a device, and the same ones that ask nobody: the same frames leave them in the same order.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::control::EngineConfig;
use crate::estate::Estates;
use crate::mesh::Mesh;
use crate::moves::Move;
use crate::owners::Owners;
use crate::placement::ShardMap;
use crate::seed::{Seed, deal_queues};
use crate::waker::{Roster, Waker};
use crate::worker::{BURSTS_TAKEN_OVER, Order};
use counters::Count;
use datapath::command::{Command, Token, Transition};
use datapath::lookups::{Model, Trouble};
use datapath::{Counters, Reason};
use io::Frame;
use io::mem::{MemConfig, MemFrame, MemNic, MemWire, RssMode};
use packet::MacAddr;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rig::{N3_MAC, N6_MAC, SESSIONS, downlink, network, packet, rules, tunnel, ue};
use rtrb::{Consumer, Producer, RingBuffer};
use session::rules::{Rules, SdfFilter};
use std::sync::atomic::{AtomicBool, Ordering};
use tables::clock::Tsc;

#[allow(dead_code, unused_imports)]
#[path = "../../tests/rig/mod.rs"]
mod rig;

/// Workers without threads.
struct Hands {
    workers: Vec<Worker<MemNic>>,
    orders: Vec<Producer<Order>>,
    answers: Vec<Consumer<Answer>>,
    _ports: Vec<MemNic>,
    wires: [MemWire; 2],
    /// What came out of ports.
    out: [Vec<MemFrame>; 2],
    /// Pauses last no longer.
    paused_until: Nanos,
    /// Why devices were lost.
    lost: Vec<String>,
    moved: u64,
}

impl Hands {
    fn new(workers: usize, rss: RssMode, device: Option<&Arc<Trouble>>) -> Self {
        let nic = |mac: MacAddr| {
            let config = MemConfig { mac, queues: workers as u16, rss, mtu: 9_000, ..MemConfig::default() };
            MemNic::new(config).unwrap()
        };
        let ((n3, n3_wire), (n6, n6_wire)) = (nic(N3_MAC), nic(N6_MAC));
        let mut ports = vec![n3, n6];
        let mut config = EngineConfig { cores: vec![None; workers], ..EngineConfig::default() };
        if let Some(trouble) = device {
            let trouble = Arc::clone(trouble);
            config.lookups =
                Some(Arc::new(move |_| Some(Box::new(Model::new(1 << 14, 12, Arc::clone(&trouble))))));
        }
        let map = ShardMap::round_robin(workers, 0..workers).unwrap();
        let (owners, roster, estates) = (Owners::new(&map), Roster::new(workers), Estates::default());
        let waker = Arc::new(Waker::new().unwrap());
        let mut meshes = Mesh::all(workers, 4_096).into_iter();
        let mut hands = deal_queues(&mut ports, &config).unwrap();
        let often = 1 << 30;
        let datapath = datapath::Config {
            error_rate: often,
            icmp_rate: often,
            ..datapath::Config::new(network().fib())
        };
        let (mut all, mut orders, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..workers {
            let (order, order_rx) = RingBuffer::new(1_024);
            let (answer_tx, answer) = RingBuffer::new(4_096);
            let seed = Seed {
                number,
                core: None,
                hand: hands.next().unwrap(),
                pool: ports[0].pool(number as u16),
                redirections: ports.iter_mut().filter_map(Port::redirection).collect(),
                devices: Vec::new(),
                shards: map.shards_of(number).collect(),
                supplier: None,
                lookups: config.lookups.clone(),
                config: config.clone(),
                datapath: datapath.clone(),
                clock: Tsc::process(),
                orders: order_rx,
                answers: answer_tx,
                waker: Arc::clone(&waker),
                owners: owners.clone(),
                roster: roster.clone(),
                mesh: meshes.next().unwrap(),
                estates: estates.clone(),
            };
            all.push(seed.grow());
            orders.push(order);
            answers.push(answer);
        }
        let wires = [n3_wire, n6_wire];
        let out = [Vec::new(), Vec::new()];
        Self {
            workers: all,
            orders,
            answers,
            _ports: ports,
            wires,
            out,
            paused_until: Nanos(0),
            lost: Vec::new(),
            moved: 0,
        }
    }

    /// The worker that owns a session now.
    fn owner(&self, index: u32) -> usize {
        let shard = tunnel(index).place.shard;
        self.workers.iter().position(|worker| worker.owns(shard)).unwrap()
    }

    fn order(&mut self, worker: usize, command: Command) {
        self.orders[worker].push(Order::Do(command)).unwrap();
    }

    /// One round of each worker, with or without a tick.
    fn round(&mut self, ticks: bool) -> usize {
        let mut packets = 0;
        for worker in &mut self.workers {
            let began = worker.clock.now();
            if let Some(under_way) = &mut worker.under_way {
                // How long a pause is on this machine is no matter here.
                under_way.paused_until = under_way.paused_until.min(self.paused_until);
            }
            let mut next_tick = if ticks { Nanos(0) } else { Nanos(u64::MAX) };
            packets += worker.round(began, &mut next_tick, &mut false).0;
            if let Some(under_way) = &worker.under_way {
                assert!(under_way.waiting.len() < MOST);
                assert!(!ticks || under_way.waiting.is_empty(), "a tick comes between two bursts");
            }
            let counters = worker.datapath.counters();
            let waiting = worker.under_way.iter().flat_map(|it| &it.waiting).map(|it| it.burst.in_work());
            assert_eq!((counters.balance(), counters.under_way), (0, waiting.sum::<usize>() as u64));
        }
        for (wire, out) in self.wires.iter_mut().zip(&mut self.out) {
            while wire.collect(out, 256) > 0 {}
        }
        for answers in &mut self.answers {
            while let Ok(answer) = answers.pop() {
                match answer {
                    Answer::LookupsLost(why) => self.lost.push(why),
                    Answer::Moved(_) => self.moved += 1,
                    _ => {}
                }
            }
        }
        packets
    }

    fn offer(&mut self, port: usize, frames: &[MemFrame]) {
        let mut frames: Vec<_> =
            frames.iter().map(|frame| MemFrame::copy_of(frame.bytes()).unwrap()).collect();
        self.wires[port].offer(&mut frames);
        assert!(frames.is_empty(), "no queue is ever full here");
    }

    fn collect(&mut self) -> [Vec<Vec<u8>>; 2] {
        self.out.each_mut().map(|out| out.drain(..).map(|frame| frame.bytes().to_vec()).collect())
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.workers.iter().for_each(|worker| sum.merge(worker.datapath.counters()));
        sum
    }

    fn lookups(&self) -> LookupCounters {
        let each = self.workers.iter().filter_map(|worker| worker.under_way.as_ref());
        each.fold(LookupCounters::default(), |sum, under_way| sum.plus(*under_way.counters()))
    }
}

/// Rules with a filter, so that flows are looked up, or without.
fn rules_of(index: u32, filtered: bool) -> Rules {
    let mut rules = rules(index);
    if filtered {
        for pdr in &mut *rules.pdrs {
            pdr.filters = [SdfFilter::default()].into();
        }
    }
    rules
}

fn install(index: u32, filtered: bool) -> Command {
    let (token, transition, query) = (Token(0), Transition::default(), Box::default());
    Command::Install { token, rules: Arc::new(rules_of(index, filtered)), transition, query }
}

/// A packet of a session, one way or the other.
fn frame(port: usize, index: u32, number: u32) -> MemFrame {
    if port == 0 { packet(tunnel(index).teid, ue(index), number) } else { downlink(ue(index), number) }
}

/// What a script of rounds does to both.
struct Twins {
    alone: Hands,
    asking: Hands,
    trouble: Arc<Trouble>,
    rng: StdRng,
    number: u32,
}

impl Twins {
    fn new(seed: u64, workers: usize, rss: RssMode) -> Self {
        let trouble = Arc::new(Trouble::default());
        let (alone, asking) = (Hands::new(workers, rss, None), Hands::new(workers, rss, Some(&trouble)));
        let mut twins = Self { alone, asking, trouble, rng: StdRng::seed_from_u64(seed), number: 0 };
        for index in 0..SESSIONS {
            let filtered = index % 3 == 0;
            twins.order(index, || install(index, filtered));
        }
        (0..SESSIONS).for_each(|_| twins.round(true));
        twins
    }

    fn order(&mut self, index: u32, command: impl Fn() -> Command) {
        for hands in [&mut self.alone, &mut self.asking] {
            let owner = hands.owner(index);
            hands.order(owner, command());
        }
    }

    fn offer(&mut self, port: usize, packets: usize) {
        let frames: Vec<_> = (0..packets)
            .map(|_| {
                self.number += 1;
                frame(port, self.rng.random_range(0..SESSIONS), self.number)
            })
            .collect();
        self.alone.offer(port, &frames);
        self.asking.offer(port, &frames);
    }

    fn round(&mut self, ticks: bool) {
        self.alone.round(ticks);
        self.asking.round(ticks);
    }

    /// The device is well, or isn't.
    fn mood(&mut self) {
        let Trouble { stuck, full, lies, deaf, latency, .. } = &*self.trouble;
        let mut is = |flag: &AtomicBool, percent| {
            flag.store(self.rng.random_range(0..100) < percent, Ordering::Relaxed)
        };
        is(stuck, 30);
        is(full, 10);
        is(deaf, 10);
        lies.store([0, 0, 0, 30][self.rng.random_range(0..4)], Ordering::Relaxed);
        latency.store([0, 0, 5_000, 20_000][self.rng.random_range(0..4)], Ordering::Relaxed);
    }

    /// Rounds without load, until nothing is left.
    fn rest(&mut self) {
        for hands in [&mut self.alone, &mut self.asking] {
            while hands.round(false) > 0 {}
            hands.round(true);
        }
    }
}

/// Sessions are installed, changed and removed, questions asked and timers due, while bursts wait for a device that is late, full, forgetful and wrong.
#[test]
fn one_worker_sends_what_it_would_have_sent_alone() {
    let mut sum = LookupCounters::default();
    for seed in 0..12 {
        let mut twins = Twins::new(seed, 1, RssMode::InnerIp);
        let mut sent = 0;
        for _ in 0..250 {
            if twins.rng.random_range(0..10) == 0 {
                twins.mood();
            }
            for port in 0..2 {
                let packets = match twins.rng.random_range(0..12) {
                    0 => 0,
                    1 => twins.rng.random_range(1..BURST),
                    _ => BURST,
                };
                twins.offer(port, packets);
            }
            if twins.rng.random_range(0..5) == 0 {
                let index = twins.rng.random_range(0..SESSIONS);
                let session = rules(index).place;
                let (token, urrs) = (Token(1), Box::<[pfcp::UrrId]>::default());
                match twins.rng.random_range(0..4) {
                    0 => twins.order(index, || Command::Remove { token, session }),
                    1 => {
                        let trigger = session::usage::Trigger::Immediate;
                        twins.order(index, || Command::Query { token, session, urrs: urrs.clone(), trigger });
                    }
                    kind => twins.order(index, || install(index, kind == 2)),
                }
            }
            let ticks = twins.rng.random_range(0..8) == 0;
            twins.round(ticks);
            if twins.asking.workers[0].under_way.as_ref().unwrap().waiting.is_empty() {
                let (alone, asking) = (twins.alone.collect(), twins.asking.collect());
                sent += alone.iter().map(Vec::len).sum::<usize>();
                assert!(alone == asking, "seed {seed}: other frames, or another order");
                assert_eq!(twins.alone.counters(), twins.asking.counters(), "seed {seed}");
            }
        }
        twins.rest();
        assert!(twins.alone.collect() == twins.asking.collect(), "seed {seed}");
        assert_eq!(twins.alone.counters(), twins.asking.counters(), "seed {seed}");
        assert!(sent > 10_000 && twins.asking.lost.is_empty());
        sum = sum.plus(twins.asking.lookups());
    }
    let LookupCounters {
        asked, answered, late, interrupted, refused, right, wrong, unknown, nothing, ..
    } = sum;
    for (count, least) in [
        (asked, 1_000),
        (answered, 500),
        (late, 20),
        (interrupted, 20),
        (refused, 50),
        (right, 10_000),
        (wrong, 100),
        (unknown, 100),
        (nothing, 10),
    ] {
        assert!(count >= least, "{sum:?}");
    }
}

/// What left, by session and direction, without what a worker numbers of its own.
fn by_session(frames: &[Vec<Vec<u8>>; 2]) -> Vec<Vec<Vec<u8>>> {
    let mut sessions = vec![Vec::new(); 2 * SESSIONS as usize];
    for (direction, at) in [(0, 14 + 36 + 16), (1, 26)] {
        for frame in &frames[direction] {
            let address = u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
            let index = address - u32::from(ue(0)) + direction as u32 * SESSIONS;
            let mut frame = frame.clone();
            if direction == 0 {
                frame[18..20].fill(0);
                frame[24..26].fill(0);
            }
            sessions[index as usize].push(frame);
        }
    }
    sessions
}

/// Shards go from worker to worker while bursts wait, whether the NIC follows or all is handed off.
#[test]
fn shards_move_while_bursts_wait() {
    for (seed, rss) in [(1, RssMode::InnerIp), (2, RssMode::Outer)] {
        let mut twins = Twins::new(seed, 3, rss);
        let mut number = 0;
        for step in 0..1_600 {
            if twins.rng.random_range(0..10) == 0 {
                twins.mood();
            }
            // More than a round takes, and then nothing more until that is served.
            if step % 8 == 0 {
                for port in 0..2 {
                    let packets = twins.rng.random_range(0..8) * BURST;
                    twins.offer(port, packets);
                }
            }
            let is_over = number == twins.alone.moved && number == twins.asking.moved;
            if is_over && step % 4 == 0 {
                number += 1;
                let shard = tunnel(twins.rng.random_range(0..SESSIONS)).place.shard;
                let from = twins.alone.workers.iter().position(|worker| worker.owns(shard)).unwrap();
                let to = (from + twins.rng.random_range(1..3)) % 3;
                for hands in [&mut twins.alone, &mut twins.asking] {
                    assert!(hands.workers[from].owns(shard));
                    let order = Arc::new(Move { number, from, to, shards: Box::new([shard]) });
                    hands.orders[to].push(Order::Take(order)).unwrap();
                }
            }
            let ticks = twins.rng.random_range(0..8) == 0;
            twins.round(ticks);
        }
        while number != twins.alone.moved || number != twins.asking.moved {
            twins.round(false);
        }
        twins.rest();
        let (alone, asking) = (twins.alone.collect(), twins.asking.collect());
        assert!(by_session(&alone) == by_session(&asking), "{rss:?}");
        let (counters, counted) = (twins.alone.counters(), twins.asking.counters());
        assert_eq!((counted.received, counted.sent), (u64::from(twins.number), u64::from(twins.number)));
        assert_eq!((counters.uplink, counters.downlink), (counted.uplink, counted.downlink));
        assert_eq!(counted.dropped_total(), 0);
        let lookups = twins.asking.lookups();
        assert!(
            number > 20 && lookups.answered > 100 && lookups.right > 1_000,
            "{number} moves, {lookups:?}"
        );
    }
}

/// Bursts that only wait, and how many frames they have.
fn waiting(seed: u64) -> (Twins, u64) {
    let mut twins = Twins::new(seed, 1, RssMode::InnerIp);
    twins.trouble.stuck.store(true, Ordering::Relaxed);
    for _ in 0..4 {
        twins.offer(1, BURST);
        twins.round(false);
    }
    let waiting = twins.asking.counters().under_way;
    (twins, waiting)
}

#[test]
fn a_device_that_is_lost_takes_no_packet_along() {
    let (mut twins, under_way) = waiting(1);
    assert!(under_way > 0);
    twins.trouble.lost.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        twins.offer(1, BURST);
        twins.round(false);
        assert_eq!(twins.asking.counters().under_way, 0);
        assert!(twins.alone.collect() == twins.asking.collect());
    }
    assert_eq!(twins.asking.lost.len(), 1, "it is told once");
    let lookups = twins.asking.lookups();
    assert_eq!((lookups.lost, lookups.asked), (1, 4));
    assert_eq!(twins.alone.counters(), twins.asking.counters());
}

#[test]
fn without_load_nobody_waits() {
    let (mut twins, under_way) = waiting(2);
    assert!(under_way > 0);
    // Behind those that wait.
    twins.offer(1, 1);
    twins.round(false);
    assert_eq!(twins.asking.counters().under_way, 0);
    let asked = twins.asking.lookups().asked;
    twins.offer(0, BURST - 1);
    twins.offer(1, 3);
    twins.round(false);
    assert!(twins.alone.collect() == twins.asking.collect());
    assert_eq!(twins.asking.lookups().asked, asked);
}

#[test]
fn a_device_that_is_late_again_and_again_is_left_alone() {
    let (mut twins, _) = waiting(3);
    let mut rounds = 0;
    while twins.asking.lookups().pauses == 0 {
        twins.offer(1, BURST);
        twins.round(false);
        rounds += 1;
        assert!(rounds < 1_000, "{:?}", twins.asking.lookups());
    }
    twins.asking.workers[0].under_way.as_mut().unwrap().paused_until = Nanos(u64::MAX);
    twins.asking.paused_until = Nanos(u64::MAX);
    twins.rest();
    let asked = twins.asking.lookups().asked;
    twins.offer(1, 3 * BURST);
    twins.round(false);
    assert_eq!((twins.asking.lookups().asked, twins.asking.counters().under_way), (asked, 0));
    twins.rest();
    assert!(twins.alone.collect() == twins.asking.collect());
}

/// A device that was stuck while its room filled is asked again when it has recovered.
#[test]
fn what_comes_too_late_makes_room() {
    let (mut twins, _) = waiting(5);
    while twins.asking.lookups().refused == 0 {
        twins.offer(1, BURST);
        twins.round(false);
        twins.rest();
    }
    twins.trouble.stuck.store(false, Ordering::Relaxed);
    let answered = twins.asking.lookups().answered;
    twins.offer(1, 2 * BURST);
    twins.round(false);
    twins.round(false);
    assert_eq!(twins.asking.lookups().answered, answered + 2);
    twins.rest();
    assert!(twins.alone.collect() == twins.asking.collect());
}

/// What was passed on before others came to rest is served before a fence is answered: nothing may be under way when the session is written down.
#[test]
fn who_rests_keeps_nobody_waiting() {
    let mut twins = Twins::new(5, 2, RssMode::Outer);
    twins.trouble.stuck.store(true, Ordering::Relaxed);
    let round = |worker: &mut Worker<MemNic>| {
        let began = worker.clock.now();
        worker.round(began, &mut Nanos(u64::MAX), &mut false).0
    };
    // The NIC leads all to one queue, whichever it is.
    twins.offer(0, BURST);
    let from = usize::from(round(&mut twins.asking.workers[0]) == 0);
    let to = 1 - from;
    for _ in 0..3 {
        twins.offer(0, 4 * BURST);
        (0..8).for_each(|_| _ = round(&mut twins.asking.workers[from]));
    }
    let Hands { workers, orders, .. } = &mut twins.asking;
    // A full burst more than the round takes over before it looks at its orders: only a full one waits.
    assert!(workers[to].mesh.waiting(from) >= (BURSTS_TAKEN_OVER + 1) * BURST);
    orders[to].push(Order::Rest).unwrap();
    orders[to].push(Order::Fence(1)).unwrap();
    round(&mut workers[to]);
    assert!(workers[to].mesh.is_empty());
    assert_eq!(workers[to].datapath.counters().under_way, 0);
}

#[test]
fn frames_under_way_are_lost_by_name_with_their_worker() {
    let (mut twins, under_way) = waiting(4);
    assert!(under_way > 0);
    twins.asking.workers[0].bequeath();
    let counters = twins.asking.counters();
    assert_eq!((counters.dropped(Reason::LostWithWorker), counters.under_way), (under_way, 0));
}
