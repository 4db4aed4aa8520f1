//! Packets that come to a worker while its clock runs, and the clock.
//!
//! **Problem.** A benchmark that writes real packets on the worker's core charges it for what a NIC does, and one that writes them on another core needs
//! one. And where others run on the core now and then, a queue overflows that would not have.
//!
//! **Model.** The worker's clock is advanced by what its work took, as the processor's counter says: a burst through the datapath, a millisecond's
//! timers. Meanwhile packets have become due, by two rates: known flows' and newcomers'. They join the queue of their port, or are missed if it
//! is full. If nothing waits, the clock jumps to the next arrival. Packets are written long before they come out, into buffers that have
//! left the core's nearest caches by then; that takes none of the worker's time. If a burst took long, and the thread was kept from running
//! meanwhile, that is taken off.
//!
//! **When not to use it.** For latency: arrivals are regular, and the clock knows nothing of polls that found nothing.

use super::plane::Plane;
use crate::arrivals::{DESCRIPTORS, nanos};
use datapath::Burst;
use io::mem::MemFrame;
use io::port::quarters;
use io::replay::ReplayRx;
use io::{BURST, RxQueue};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use tables::Nanos;
use tables::clock::Tsc;

/// Whose a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Known flows.
    Known,
    /// Flows that begin, from their first packet on.
    New,
}

/// Where newcomers' packets come from, in their order: the frame, and the port where it arrives. Without end.
pub trait Newcomers {
    /// The next one.
    fn next(&mut self) -> Option<(MemFrame, u16)>;
}

/// Newcomers' packets lie so many packets long between being written and arriving.
const AHEAD: usize = 1 << 13;
/// A burst that took longer, in seconds, may have been interrupted.
const LONG: f64 = 400e-6;
/// A burst that took longer by the thread's own clock, in seconds, was held up by what that doesn't see: the machine under a virtual one. Ten times as long as
/// 64 first packets take.
const LONGEST: f64 = 2e-3;
/// A worker's ticks come so often a second.
const TICKS_PER_SECOND: u64 = 1_000;

/// What came, and what became of it before the worker saw it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Came {
    /// Packets that arrived, by [`Kind`].
    pub offered: [u64; 2],
    /// Of these, those that found the queue full.
    pub missed: [u64; 2],
}

/// What it took.
#[derive(Clone, Copy, Default, Debug)]
pub struct Took {
    /// Ticks of work.
    pub busy: u64,
    /// Ticks that passed.
    pub passed: u64,
    /// Ticks that others had.
    pub away: u64,
    /// Ticks of work beyond `LONGEST`, which are not counted either.
    pub held_up: u64,
}

impl Took {
    const fn since(self, before: Self) -> Self {
        Self {
            busy: self.busy - before.busy,
            passed: self.passed - before.passed,
            away: self.away - before.away,
            held_up: self.held_up - before.held_up,
        }
    }
}

/// Arrivals of both kinds.
pub struct Feed<N> {
    known: [ReplayRx; 2],
    /// The port of the next packet of a known flow.
    turn: usize,
    new: N,
    ahead: VecDeque<(MemFrame, u16)>,
    queues: [VecDeque<MemFrame>; 2],
    scratch: Vec<MemFrame>,
    /// When the next one of each kind is due, and ticks from one to the next.
    due: [f64; 2],
    gap: [f64; 2],
    came: Came,
    /// The worker's clock, and when its timers ran.
    now: u64,
    ticked: u64,
    origin: Option<Nanos>,
    watch: Watch,
}

impl<N: Newcomers> Feed<N> {
    /// Known flows' packets by port, and newcomers'.
    pub fn new(known: [ReplayRx; 2], new: N, clock: Tsc) -> Self {
        Self {
            known,
            turn: 0,
            new,
            ahead: VecDeque::with_capacity(AHEAD + 1),
            queues: [const { VecDeque::new() }; 2],
            scratch: Vec::with_capacity(1),
            due: [0.0; 2],
            gap: [0.0; 2],
            came: Came::default(),
            now: 0,
            ticked: 0,
            origin: None,
            watch: Watch::new(clock),
        }
    }

    /// The next packet of this kind arrives.
    fn arrive(&mut self, kind: Kind) {
        let packet = match kind {
            Kind::Known => {
                let port = self.turn;
                self.turn = 1 - self.turn;
                if let Some(rx) = self.known.get_mut(port) {
                    rx.rx_burst(&mut self.scratch, 1);
                }
                self.scratch.pop().map(|frame| (frame, port as u16))
            }
            Kind::New => {
                while self.ahead.len() <= AHEAD
                    && let Some(next) = self.new.next()
                {
                    self.ahead.push_back(next);
                }
                self.ahead.pop_front()
            }
        };
        let Some((frame, port)) = packet else { return };
        let Some(queue) = self.queues.get_mut(usize::from(port)) else { return };
        if let Some(offered) = self.came.offered.get_mut(kind as usize) {
            *offered += 1;
        }
        if queue.len() < DESCRIPTORS {
            queue.push_back(frame);
        } else if let Some(missed) = self.came.missed.get_mut(kind as usize) {
            *missed += 1;
        }
    }

    /// What has become due arrives. Says when the next one is due.
    fn advance(&mut self) -> f64 {
        loop {
            let [known, new] = self.due;
            let (kind, due) = if known <= new { (Kind::Known, known) } else { (Kind::New, new) };
            if due > self.now as f64 {
                return due;
            }
            self.arrive(kind);
            if let (Some(due), Some(gap)) = (self.due.get_mut(kind as usize), self.gap.get(kind as usize)) {
                *due += gap;
            }
        }
    }

    fn time(&mut self, clock: &Tsc) -> Nanos {
        self.origin.get_or_insert_with(|| clock.now()).plus(nanos(clock, self.now))
    }

    /// A burst of a port, if anything waits there. False: nothing does.
    fn serve(&mut self, plane: &mut Plane, port: usize, burst: &mut Burst<MemFrame>, clock: &Tsc) -> bool {
        let now = self.time(clock);
        let Some(queue) = self.queues.get_mut(port).filter(|queue| !queue.is_empty()) else { return false };
        self.watch.look();
        let begin = clock.ticks();
        burst.frames.extend(queue.drain(..queue.len().min(BURST)));
        let quarters = quarters(queue.len(), DESCRIPTORS);
        plane.path.process_at(now, port as u16, Some(quarters), burst);
        self.work(begin);
        true
    }

    fn took(&self) -> Took {
        let Watch { busy, away, held_up, .. } = self.watch;
        Took { busy, passed: self.now, away, held_up }
    }

    fn work(&mut self, begin: u64) {
        let spent = self.watch.since(begin);
        self.now += spent;
        self.watch.busy += spent;
    }

    fn tick(&mut self, plane: &mut Plane, clock: &Tsc) {
        if self.now - self.ticked < clock.hz() / TICKS_PER_SECOND {
            return;
        }
        self.ticked = self.now;
        let now = self.time(clock);
        self.watch.look();
        let begin = clock.ticks();
        plane.path.tick_at(now);
        plane.path.supply();
        self.work(begin);
    }

    /// So many packets of a kind, in full bursts without end.
    pub fn without_end(&mut self, plane: &mut Plane, kind: Kind, packets: u64, clock: &Tsc) -> (Came, Took) {
        let mut burst = Burst::new();
        let before = self.took();
        self.came = Came::default();
        while self.came.offered.iter().sum::<u64>() < packets {
            for _ in 0..2 * BURST {
                self.arrive(kind);
            }
            for port in [0, 1] {
                while self.queues.get(port).is_some_and(|queue| queue.len() >= BURST) {
                    self.serve(plane, port, &mut burst, clock);
                }
            }
            self.tick(plane, clock);
        }
        while self.serve(plane, 0, &mut burst, clock) || self.serve(plane, 1, &mut burst, clock) {}
        (self.came, self.took().since(before))
    }

    /// So many packets a second of each kind, for so many seconds of the worker's clock.
    pub fn paced(&mut self, plane: &mut Plane, rates: [f64; 2], seconds: f64, clock: &Tsc) -> (Came, Took) {
        let mut burst = Burst::new();
        let before = self.took();
        self.came = Came::default();
        self.gap = rates.map(|rate| if rate > 0.0 { clock.hz() as f64 / rate } else { f64::INFINITY });
        self.due = self.gap.map(|gap| self.now as f64 + gap);
        let end = self.now + (seconds * clock.hz() as f64) as u64;
        while self.now < end {
            let next = self.advance();
            let mut worked = self.serve(plane, 0, &mut burst, clock);
            self.advance();
            worked |= self.serve(plane, 1, &mut burst, clock);
            self.tick(plane, clock);
            if !worked {
                let due = next.min((self.ticked + clock.hz() / TICKS_PER_SECOND) as f64);
                self.now = self.now.max(due.min(end as f64).ceil() as u64);
            }
        }
        while self.serve(plane, 0, &mut burst, clock) || self.serve(plane, 1, &mut burst, clock) {}
        (self.came, self.took().since(before))
    }
}

/// What a thread had of the processor.
struct Watch {
    clock: Tsc,
    /// The processor's time that it had had, when it was looked at last.
    seen: (u64, u64),
    looks: u32,
    busy: u64,
    away: u64,
    held_up: u64,
}

impl Watch {
    /// It is looked at before each of so many sections of work: it is a system call.
    const LOOKS: u32 = 32;

    fn new(clock: Tsc) -> Self {
        Self { clock, seen: (clock.ticks(), own(&clock)), looks: 0, busy: 0, away: 0, held_up: 0 }
    }

    fn look(&mut self) {
        self.looks += 1;
        if self.looks.is_multiple_of(Self::LOOKS) {
            self.seen = (self.clock.ticks(), own(&self.clock));
        }
    }

    /// Ticks that the thread has worked since then.
    fn since(&mut self, begin: u64) -> u64 {
        let spent = self.clock.ticks() - begin;
        if (spent as f64) < LONG * self.clock.hz() as f64 {
            return spent;
        }
        let now = (self.clock.ticks(), own(&self.clock));
        let away = (now.0 - self.seen.0).saturating_sub(now.1 - self.seen.1).min(spent);
        self.seen = now;
        self.away += away;
        let own = (spent - away).min((LONGEST * self.clock.hz() as f64) as u64);
        self.held_up += spent - away - own;
        own
    }
}

/// The thread's own time, in ticks.
fn own(clock: &Tsc) -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    ((time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9) * clock.hz() as f64) as u64
}
