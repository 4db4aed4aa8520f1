//! Workers that ask a device of `accel` for their look-ups, through the adapter that a UPF has, beside workers that ask nobody: the same packets leave both in the
//! same order, and the same is counted.
//!
//! The engine's own twins have a device in memory, and no threads. Here workers are threads, time is real, and the device is either a fake that fails on
//! command or a ring that a further thread serves.

use crate::rig::{N3_MAC, N6_MAC, SESSIONS, downlink, network, packet, rules, tunnel, ue, wait};
use accel::fake::{Fake, Fault, Remote};
use accel::ring::{RingDevice, Shape, Thread};
use accel::{Device, Kind, Limits};
use datapath::command::{Command, Event, Token, Transition};
use datapath::lookups::{Batch, LookupDevice, Lost, Refused};
use engine::{Engine, EngineConfig, LookupCounters, WorkerReport};
use io::mem::{MemConfig, MemFrame, MemNic, MemWire};
use io::{BURST, Frame};
use packet::MacAddr;
use session::ShardId;
use session::rules::{Rules, SdfFilter};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tables::hash::mix;
use tables::{Nanos, Tsc};
use upf::lookups::Accelerated;

/// Frames that a port is offered at a time: whole bursts, so that all of them wait.
const OFFERED: usize = 8 * BURST;

/// Sessions that come and go.
const FLEETING: u32 = SESSIONS / 4;

/// An engine of one worker between two wires.
struct Side {
    engine: Engine,
    _ports: Vec<MemNic>,
    wires: [MemWire; 2],
}

/// What one side did in a step.
#[derive(PartialEq, Eq)]
struct Done {
    frames: [Vec<Vec<u8>>; 2],
    report: Counted,
}

/// What both sides must have counted alike.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    counters: datapath::Counters,
    sessions: usize,
}

impl Side {
    fn new(device: Option<Box<dyn LookupDevice>>) -> Self {
        let nic = |mac: MacAddr| MemNic::new(MemConfig { mac, mtu: 9_000, ..MemConfig::default() }).unwrap();
        let ((n3, n3_wire), (n6, n6_wire)) = (nic(N3_MAC), nic(N6_MAC));
        let mut ports = vec![n3, n6];
        let mut config = EngineConfig { answer_within: Duration::from_mins(1), ..EngineConfig::default() };
        if let Some(device) = device {
            let device = Mutex::new(Some(device));
            config.lookups = Some(Arc::new(move |_| device.lock().unwrap().take()));
        }
        let datapath = datapath::Config::new(network().fib());
        let engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
        Self { engine, _ports: ports, wires: [n3_wire, n6_wire] }
    }

    /// Waits until the worker has carried out all that was posted.
    fn settle(&mut self) {
        let fence = self.engine.fence();
        wait("a fence", || {
            self.engine.flush();
            self.engine.drain(|_, _: Event| ());
            self.engine.passed(fence)
        });
    }

    /// Both ports' queues are filled while the worker rests, so that it finds as much as it can take. Then it carries out orders in between.
    fn step(
        &mut self,
        offered: &[Vec<MemFrame>; 2],
        orders: impl IntoIterator<Item = (ShardId, Command)>,
    ) -> Done {
        self.engine.rest();
        self.settle();
        for (wire, frames) in self.wires.iter_mut().zip(offered) {
            let mut frames = frames.iter().map(|it| MemFrame::copy_of(it.bytes()).unwrap()).collect();
            wire.offer(&mut frames);
            assert!(frames.is_empty(), "queues have room for all");
        }
        self.engine.wake();
        for (shard, order) in orders {
            self.engine.post(shard, order);
        }
        self.settle();
        let mut out = [Vec::new(), Vec::new()];
        wait("packets", || {
            for (wire, out) in self.wires.iter_mut().zip(&mut out) {
                wire.collect(out, OFFERED);
            }
            out.iter().map(Vec::len).sum::<usize>() == offered.iter().map(Vec::len).sum::<usize>()
        });
        let WorkerReport { counters, sessions, .. } = self.report();
        assert_eq!((counters.balance(), counters.under_way), (0, 0));
        let frames = out.map(|frames| frames.iter().map(|frame| frame.bytes().to_vec()).collect());
        Done { frames, report: Counted { counters, sessions } }
    }

    fn report(&mut self) -> WorkerReport {
        self.engine.reports().unwrap().remove(0)
    }
}

/// Sessions that know flows, and sessions that don't. In every other version a session is in another slot, so that what was told of it is wrong.
fn rules_of(index: u32, version: u32) -> Rules {
    let mut rules = rules(index);
    rules.place.slot += SESSIONS * (version % 2);
    if (index + version).is_multiple_of(3) {
        for pdr in &mut *rules.pdrs {
            pdr.filters = [SdfFilter::default()].into();
        }
    }
    rules
}

fn install(index: u32, version: u32) -> (ShardId, Command) {
    let (token, transition, query) = (Token(0), Transition::default(), Box::default());
    let rules = Arc::new(rules_of(index, version));
    (rules.place.shard, Command::Install { token, rules, transition, query })
}

fn remove(index: u32, version: u32) -> (ShardId, Command) {
    let session = rules_of(index, version).place;
    (session.shard, Command::Remove { token: Token(0), session })
}

struct Twins {
    alone: Side,
    asking: Side,
    number: u32,
    round: u32,
}

impl Twins {
    fn new(device: impl LookupDevice + 'static) -> Self {
        let mut twins =
            Self { alone: Side::new(None), asking: Side::new(Some(Box::new(device))), number: 0, round: 0 };
        for side in [&mut twins.alone, &mut twins.asking] {
            for index in 0..SESSIONS {
                let (shard, order) = install(index, 0);
                side.engine.post(shard, order);
            }
            side.settle();
        }
        twins
    }

    /// Full queues on both ports, while every other fleeting session is replaced; its packets come in the next step.
    fn step(&mut self) {
        self.round += 1;
        let round = self.round;
        let is_replaced = |index: u32| index < FLEETING && index % 2 == round % 2;
        let offered = [0, 1].map(|port| {
            let frames = std::iter::repeat_with(|| {
                self.number += 1;
                let index = (mix(u64::from(self.number), 0x9e37_79b9_7f4a_7c15) % u64::from(SESSIONS)) as u32;
                let frame = || match port {
                    0 => packet(tunnel(index).teid, ue(index), self.number),
                    _ => downlink(ue(index), self.number),
                };
                (!is_replaced(index)).then(frame)
            });
            frames.flatten().take(OFFERED).collect()
        });
        // A session's first version was installed at the start, its next ones in every other step.
        let orders = || {
            let replaced = (0..FLEETING).filter(|index| is_replaced(*index));
            replaced.flat_map(|index| {
                let version = round.div_ceil(2);
                [remove(index, version - 1), install(index, version)]
            })
        };
        let (alone, asking) = (self.alone.step(&offered, orders()), self.asking.step(&offered, orders()));
        assert_eq!(alone.report, asking.report);
        assert!(alone.frames == asking.frames, "round {}: other frames, or another order", self.round);
    }

    fn lookups(&mut self) -> LookupCounters {
        self.asking.report().lookups.unwrap()
    }

    /// Goes on until the device has come to something; a minute is more than a loaded machine needs.
    fn until(&mut self, what: &str, mut is_enough: impl FnMut(LookupCounters) -> bool) {
        wait(what, || {
            self.step();
            is_enough(self.lookups())
        });
    }
}

fn faked(latency: u64) -> (Accelerated, Remote) {
    let limits = Limits {
        kinds: Kind::ALL.to_vec(),
        in_flight: 12,
        items: Batch::QUESTIONS,
        input: 8 * Batch::QUESTIONS,
        output: 4 * Batch::QUESTIONS,
    };
    let fake = Fake::new(limits, latency);
    let remote = fake.remote();
    (opened(Box::new(fake)), remote)
}

fn opened(device: Box<dyn Device>) -> Accelerated {
    Accelerated::open(device, 1 << 14).unwrap()
}

#[test]
fn a_fake_that_fails_on_command_changes_no_packet() {
    let (device, remote) = faked(0);
    let mut twins = Twins::new(device);
    twins.until("hints", |lookups| lookups.right > 2_000 && lookups.answered > 50);
    // Sooner or later than bursts wait, and after that as it should be, which a device that was left alone is asked again to show.
    for latency in [2_000, 20_000, 200_000, 1_000_000, 0] {
        remote.take(latency);
        (0..10).for_each(|_| twins.step());
    }
    // What shows that each of them was met.
    type Count = fn(LookupCounters) -> u64;
    let faults: [(Fault, Count, u64); 5] = [
        (Fault::Status(3), |it| it.unknown, 1_000),
        (Fault::Twice, |it| it.answered, 10),
        (Fault::Full, |it| it.refused, 10),
        (Fault::OutOfMemory, |it| it.refused, 10),
        (Fault::Silent, |it| it.late + it.interrupted, 10),
    ];
    for (fault, count, least) in faults {
        let before = count(twins.lookups());
        remote.fail(fault);
        twins.until("a fault", |lookups| count(lookups) >= before + least);
        remote.fail(Fault::None);
        let right = twins.lookups().right;
        twins.until("hints after a fault", |lookups| lookups.right > right + 500);
    }
    remote.fail(Fault::Lost);
    twins.until("the loss", |lookups| lookups.lost == 1);
    let asked = twins.lookups().asked;
    (0..3).for_each(|_| twins.step());
    assert_eq!(twins.lookups().asked, asked, "who is lost is not asked");
}

/// Who waits for answers most of the time, as no device does: on a machine with few processors the ring's thread may not run while bursts wait.
#[derive(Debug)]
struct Awaited {
    device: Accelerated,
    under_way: usize,
    polls: u32,
}

impl LookupDevice for Awaited {
    fn submit(&mut self, now: Nanos, batch: Batch) -> Result<(), Refused> {
        self.device.submit(now, batch)?;
        self.under_way += 1;
        Ok(())
    }

    fn poll(&mut self, now: Nanos) -> Result<Option<Batch>, Lost> {
        self.polls += 1;
        loop {
            let found = self.device.poll(now)?;
            self.under_way -= usize::from(found.is_some());
            if found.is_some() || self.under_way == 0 || self.polls.is_multiple_of(4) {
                return Ok(found);
            }
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_ring_that_a_thread_serves_changes_no_packet() {
    let shape = Shape::new(2 * engine::MOST_UNDER_WAY, 8 * Batch::QUESTIONS, 4 * Batch::QUESTIONS).unwrap();
    let ring = RingDevice::start(Thread::new(Tsc::process()), shape, Batch::QUESTIONS).unwrap();
    let mut twins = Twins::new(Awaited { device: opened(Box::new(ring)), under_way: 0, polls: 0 });
    (0..50).for_each(|_| twins.step());
    twins.until("hints", |lookups| lookups.right > 1_000 && lookups.answered > 100);
    assert_eq!(twins.lookups().lost, 0);
}
