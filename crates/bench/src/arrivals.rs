//! Packets that arrive when they are due, on the thread that serves them.
//!
//! **Problem.** A generator on another thread measures two threads, the rings between them and its own batches. How long a
//! packet takes through the box, and which rate the box survives, should not depend on it.
//!
//! **Model.** Nobody sends. [`Arrivals`] says which packets have come by now on the clock's own time: the n-th is due at a time
//! that follows from its number and the rate. Before each poll the queue is brought up to date: what is due joins it, as far as
//! there are descriptors, and is missed beyond. A packet is written only when it is received, as by any replay port. Its latency
//! is the time at which its burst has been sent, less the time at which it was due: whatever held up the thread meanwhile, be it
//! another burst, a timer or the host, is in it.
//!
//! **When not to use it.** To say what two threads with a ring between them do: `ndr` measures that beside it.

use crate::path::{Path, PathError};
use datapath::Burst;
use io::port::quarters;
use io::replay::ReplayRx;
use io::{BURST, RxQueue};
use loadgen::latency::Latencies;
use std::collections::VecDeque;
use std::ops::Range;
use tables::clock::Tsc;

/// Descriptors of a receive queue: the most that common NICs have.
pub const DESCRIPTORS: usize = 4_096;
/// How often a worker's timers run, in fractions of a second.
const TICKS_PER_SECOND: u64 = 1_000;
/// Bursts whose times one trial keeps; how long later packets took is not measured.
const BURSTS: usize = 1 << 20;

/// A receive queue at which packets arrive at a constant rate.
#[derive(Clone, Debug)]
pub struct Arrivals {
    start: u64,
    ticks_per_packet: f64,
    descriptors: u64,
    /// Packets that have come so far, the missed ones included.
    came: u64,
    /// Numbers of those that wait.
    waiting: VecDeque<Range<u64>>,
    backlog: u64,
    missed: u64,
}

impl Arrivals {
    /// Packets from tick `start` on.
    pub fn new(start: u64, per_second: f64, clock: &Tsc, descriptors: usize) -> Self {
        Self {
            start,
            ticks_per_packet: clock.hz() as f64 / per_second.max(1e-3),
            descriptors: descriptors as u64,
            came: 0,
            waiting: VecDeque::with_capacity(64),
            backlog: 0,
            missed: 0,
        }
    }

    /// When a packet arrives, in ticks.
    pub fn due(&self, packet: u64) -> u64 {
        self.start + ((packet + 1) as f64 * self.ticks_per_packet) as u64
    }

    /// What has come by now joins the queue, or is missed where that is full.
    pub fn advance(&mut self, now: u64) {
        let due = (now.saturating_sub(self.start) as f64 / self.ticks_per_packet) as u64;
        let new = due.saturating_sub(self.came);
        let joins = new.min(self.descriptors - self.backlog);
        if joins > 0 {
            match self.waiting.back_mut() {
                Some(last) if last.end == self.came => last.end += joins,
                _ => self.waiting.push_back(self.came..self.came + joins),
            }
        }
        self.backlog += joins;
        self.missed += new - joins;
        self.came += new;
    }

    /// Up to so many of those that wait longest, by their numbers; says how many.
    pub fn take(&mut self, most: usize, taken: &mut Vec<Range<u64>>) -> usize {
        let mut left = most as u64;
        while left > 0
            && let Some(first) = self.waiting.front_mut()
        {
            let n = left.min(first.end - first.start);
            taken.push(first.start..first.start + n);
            first.start += n;
            if first.is_empty() {
                self.waiting.pop_front();
            }
            left -= n;
        }
        let n = most as u64 - left;
        self.backlog -= n;
        n as usize
    }

    /// How full the queue is, in quarters.
    pub fn quarters(&self) -> u8 {
        quarters(self.backlog as usize, self.descriptors as usize)
    }

    /// Packets that wait.
    pub const fn waiting(&self) -> u64 {
        self.backlog
    }

    /// Packets that have come so far.
    pub const fn came(&self) -> u64 {
        self.came
    }

    /// Of those, the ones that found the queue full.
    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

/// A port of the box: its packets, and when they come.
pub struct Lane {
    /// The port's number.
    pub port: u16,
    /// What arrives.
    pub rx: ReplayRx,
    /// When.
    pub arrivals: Arrivals,
}

/// Packets that arrived one after the other and were sent together.
#[derive(Clone, Default)]
struct Sent {
    first: u64,
    at: u64,
    packets: u32,
    lane: u32,
}

/// When packets were sent: noted while they are, evaluated afterwards.
pub struct Trace(Vec<Sent>);

impl Default for Trace {
    /// All memory is touched now, so that no page is missing later.
    fn default() -> Self {
        Self(vec![Sent { packets: 1, ..Sent::default() }; BURSTS])
    }
}

impl Trace {
    fn note(&mut self, lane: usize, packets: &Range<u64>, at: u64) {
        if self.0.len() < self.0.capacity() {
            let count = (packets.end - packets.start) as u32;
            self.0.push(Sent { first: packets.start, at, packets: count, lane: lane as u32 });
        }
    }

    /// From due to sent, of each packet.
    pub fn latencies(&self, clock: &Tsc, lanes: &[Lane]) -> Latencies {
        let mut latencies = Latencies::new();
        for burst in &self.0 {
            let Some(lane) = lanes.get(burst.lane as usize) else { continue };
            for packet in burst.first..burst.first + u64::from(burst.packets) {
                latencies.record(nanos(clock, burst.at.saturating_sub(lane.arrivals.due(packet))));
            }
        }
        latencies
    }
}

/// Polls the lanes in turn, as a worker does its ports, until everything that came in so many seconds has been sent, and notes when
/// it was. Whether any were dropped is in the lanes and the datapath's counters.
pub fn serve(path: &mut Path, clock: &Tsc, lanes: &mut [Lane], seconds: f64, trace: &mut Trace) {
    trace.0.clear();
    // Not now: whoever was held up since then would let more come than in so many seconds.
    let begin = lanes.iter().map(|lane| lane.arrivals.start).min().unwrap_or_else(|| clock.ticks());
    let end = begin + (seconds * clock.hz() as f64) as u64;
    let tick = clock.hz() / TICKS_PER_SECOND;
    let mut next_tick = begin + tick;
    let mut burst = Burst::new();
    let mut taken = Vec::with_capacity(BURST);
    loop {
        let now = clock.ticks();
        let mut work = 0;
        for (number, lane) in lanes.iter_mut().enumerate() {
            lane.arrivals.advance(clock.ticks().min(end));
            let n = lane.arrivals.take(BURST, &mut taken);
            if n == 0 {
                continue;
            }
            work += n;
            lane.rx.rx_burst(&mut burst.frames, n);
            path.process(lane.port, Some(lane.arrivals.quarters()), &mut burst);
            let at = clock.ticks();
            taken.drain(..).for_each(|packets| trace.note(number, &packets, at));
        }
        if now >= end && work == 0 {
            break;
        }
        if now >= next_tick {
            next_tick = now + tick;
            path.tick();
        }
    }
}

/// Ticks as nanoseconds.
pub fn nanos(clock: &Tsc, ticks: u64) -> u64 {
    (ticks as f64 * 1e9 / clock.hz() as f64) as u64
}

/// An error if packets were dropped, and packets that found a queue full.
pub fn missed(path: &Path, lanes: &[Lane]) -> Result<u64, PathError> {
    path.no_drops()?;
    Ok(lanes.iter().map(|lane| lane.arrivals.missed()).sum())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A queue that holds what came one by one.
    #[derive(Default)]
    struct Naive {
        waiting: VecDeque<u64>,
        came: u64,
        missed: u64,
    }

    proptest! {
        #[test]
        fn agrees_with_a_queue_of_numbers(
            steps in prop::collection::vec((0_u64..5_000, 0_usize..80), 1..60),
            descriptors in 1_usize..300,
            packets_per_kilotick in 1_u64..400,
        ) {
            let clock = Tsc::process();
            let rate = clock.hz() as f64 * packets_per_kilotick as f64 / 1_000.0;
            let mut arrivals = Arrivals::new(7_000, rate, &clock, descriptors);
            let (mut naive, mut now) = (Naive::default(), 7_000);
            for (wait, most) in steps {
                now += wait;
                arrivals.advance(now);
                let due = ((now - 7_000) as f64 / arrivals.ticks_per_packet) as u64;
                while naive.came < due {
                    if naive.waiting.len() < descriptors {
                        naive.waiting.push_back(naive.came);
                    } else {
                        naive.missed += 1;
                    }
                    naive.came += 1;
                }
                let mut taken = Vec::new();
                let n = arrivals.take(most, &mut taken);
                let expected: Vec<u64> = naive.waiting.drain(..most.min(naive.waiting.len())).collect();
                prop_assert_eq!(n, expected.len());
                prop_assert_eq!(taken.into_iter().flatten().collect::<Vec<_>>(), expected.clone());
                prop_assert_eq!((arrivals.came(), arrivals.missed()), (naive.came, naive.missed));
                for packet in expected {
                    // A tick more or less is rounding.
                    prop_assert!(arrivals.due(packet) <= now + 1);
                }
            }
        }
    }

    #[test]
    fn a_full_queue_misses_the_last_ones() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let mut arrivals = Arrivals::new(0, clock.hz() as f64 / 10.0, &clock, 4);
        arrivals.advance(105);
        assert_eq!((arrivals.came(), arrivals.missed()), (10, 6));
        let mut taken = Vec::new();
        assert_eq!(arrivals.take(3, &mut taken), 3);
        arrivals.advance(120);
        assert_eq!(arrivals.take(64, &mut taken), 3);
        assert_eq!(taken, [0..3, 3..4, 10..12]);
        assert_eq!(arrivals.due(0), 10);
    }
}
