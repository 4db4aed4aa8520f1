//! Where a change of the redirection table takes effect.
//!
//! Queues are walked by different threads, each when it is polled, and all must agree on the packet from which on a change
//! holds. So there is one word with the number of changes so far and a *horizon*: packets before it are dealt out by these
//! changes and no others. A queue that wants to walk beyond moves the horizon first, by compare-and-swap, and a change is made
//! at the horizon, by compare-and-swap too: it finds nobody beyond. Queues move it some microseconds ahead of the clock, so that most
//! polls only read the word.

use super::schedule::Schedule;
use crate::redirection::{ENTRIES, RedirectError};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bits of the word that hold the horizon: numbers of packets are below 2^32.
const BITS: u32 = 40;
const MASK: u64 = (1 << BITS) - 1;
/// The most changes that the word can count.
const MOST: usize = (1 << (64 - BITS)) - 1;

/// What happens to a port from a packet on.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// These entries lead to this queue.
    Redirect(Arc<[u16]>, u16),
    /// The port is stopped until this packet.
    Outage(u64),
}

/// The word, and the changes that it counts.
#[derive(Debug)]
pub(super) struct Horizon {
    word: AtomicU64,
    ahead: u64,
    /// Each with the packet from which on it holds, in order.
    changes: Mutex<Vec<(u64, Change)>>,
}

const fn changes(word: u64) -> usize {
    (word >> BITS) as usize
}

impl Horizon {
    pub fn new(ahead: u64) -> Self {
        Self { word: AtomicU64::new(0), ahead, changes: Mutex::new(Vec::new()) }
    }

    /// A queue that knows `known` changes wants to walk to a packet. What it doesn't know yet goes to `news`.
    #[inline]
    pub fn reach(&self, target: u64, known: &mut usize, news: &mut VecDeque<(u64, Change)>) {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if changes(word) != *known {
                let all = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
                news.extend(all.iter().skip(*known).cloned());
                *known = all.len();
                drop(all);
                word = self.word.load(Ordering::Acquire);
                continue;
            }
            if word & MASK >= target {
                return;
            }
            let further = (word & !MASK) | ((target + self.ahead) & MASK);
            match self.word.compare_exchange_weak(word, further, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Makes a change that may depend on where it takes effect; says where. `None`: there were too many.
    fn make(&self, change: impl Fn(u64) -> Change) -> Option<u64> {
        let mut all = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            return None;
        }
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let cut = word & MASK;
            let counted = (all.len() as u64 + 1) << BITS | cut;
            match self.word.compare_exchange_weak(word, counted, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // Whoever sees the new count waits for the lock.
                    all.push((cut, change(cut)));
                    return Some(cut);
                }
                Err(found) => word = found,
            }
        }
    }

    /// Points entries at a queue; says from which packet on.
    pub fn redirect(&self, entries: &[u16], queue: u16) -> Result<u64, RedirectError> {
        let entries: Arc<[u16]> = entries.iter().copied().filter(|e| usize::from(*e) < ENTRIES).collect();
        self.make(|_| Change::Redirect(entries.clone(), queue))
            .ok_or_else(|| RedirectError::Device(format!("it was changed {MOST} times already")))
    }

    /// Stops the port until the packet that `until` says for the one at which it stops; passes on what it says beside.
    pub fn outage(&self, until: impl Fn(u64) -> (u64, u64)) -> u64 {
        self.make(|cut| Change::Outage(until(cut).0)).map_or(0, |cut| until(cut).1)
    }
}

/// Where a queue is in the schedule, and what it knows of the table.
#[derive(Debug)]
pub(super) struct Walker {
    queue: u16,
    /// The next packet to look at, and its phase.
    at: u64,
    phase: usize,
    /// By entry: whether it leads here.
    mine: [bool; ENTRIES],
    entries: usize,
    /// Stopped until this packet.
    down_until: u64,
    known: usize,
    news: VecDeque<(u64, Change)>,
}

/// What a queue meets on its way.
pub(super) enum Met {
    /// A packet for it: when it is due, its entry, its number among the entry's.
    Packet {
        /// Ticks from the start.
        due: u64,
        entry: u16,
        nth: u32,
        /// While the port is stopped.
        down: bool,
    },
    /// The port stops: what waits is lost.
    Stop,
}

impl Walker {
    /// For a queue, when entries are dealt out in turn to so many.
    pub fn new(queue: u16, dealt: u16) -> Self {
        let mine: [bool; ENTRIES] = std::array::from_fn(|entry| entry as u16 % dealt.max(1) == queue);
        Self {
            queue,
            at: 0,
            phase: 0,
            entries: mine.iter().filter(|mine| **mine).count(),
            mine,
            down_until: 0,
            known: 0,
            news: VecDeque::new(),
        }
    }

    /// Walks to a packet, and shows what is met on the way.
    #[inline]
    pub fn walk(&mut self, schedule: &Schedule, horizon: &Horizon, target: u64, mut meet: impl FnMut(Met)) {
        if target <= self.at {
            return;
        }
        horizon.reach(target, &mut self.known, &mut self.news);
        while self.at < target {
            while let Some((_, change)) = self.news.pop_front_if(|(cut, _)| *cut <= self.at) {
                self.apply(change, &mut meet);
            }
            let stop = self.news.front().map_or(target, |(cut, _)| target.min(*cut));
            if self.entries == 0 {
                self.at = stop;
                continue;
            }
            let Some((number, phase)) = schedule.phase(self.at, self.phase) else {
                self.at = target;
                return;
            };
            self.phase = number;
            let stop = stop.min(phase.end);
            let length = (phase.round.len() as u64).max(1);
            let mut rounds = ((self.at - phase.first) / length) as u32;
            let mut place = ((self.at - phase.first) % length) as usize;
            while self.at < stop {
                let left = (stop - self.at).min(length - place as u64) as usize;
                let slots = phase.round.get(place..place + left).unwrap_or_default();
                for (number, &slot) in (self.at..).zip(slots) {
                    if self.mine.get(usize::from(slot.entry)) == Some(&true) {
                        let (due, nth) = (phase.due(number), phase.before(rounds, slot));
                        meet(Met::Packet { due, entry: slot.entry, nth, down: number < self.down_until });
                    }
                }
                self.at += left as u64;
                (place, rounds) = (0, rounds + 1);
            }
        }
    }

    fn apply(&mut self, change: Change, meet: &mut impl FnMut(Met)) {
        match change {
            Change::Redirect(entries, queue) => {
                for &entry in entries.iter() {
                    if let Some(mine) = self.mine.get_mut(usize::from(entry)) {
                        *mine = queue == self.queue;
                    }
                }
                self.entries = self.mine.iter().filter(|mine| **mine).count();
            }
            Change::Outage(until) => {
                self.down_until = self.down_until.max(until);
                meet(Met::Stop);
            }
        }
    }
}
