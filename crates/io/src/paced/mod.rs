//! A benchmark's port with several receive queues: packets that come when they are due, by a redirection table.
//!
//! **Problem.** How much is lost, reordered or late while shards move between workers? A generator on another core would need a
//! core, and measure itself; [`crate::replay`] makes a packet whenever it is asked for one, so that nothing is ever late or lost.
//!
//! **Model.** [`Traffic`] is what arrives at one port: a [`Schedule`] says which entry of the redirection table the n-th packet
//! belongs to, and when it is due; both follow from its number alone. So each queue finds by itself, when it is polled, the
//! packets that came for it since: those due by now whose entry points at it. They join its virtual receive ring, and are
//! missed where that is full. A packet is written when it is taken. The last 16 octets of its payload say which flow it is of,
//! which number it has in it and when it was due, and the sink that the other port ends in reads them: packets per flow in order,
//! latency from due to sent. All is counted in buckets of time ([`Traffic::count`], [`Traffic::latency`]).
//!
//! **Redirection** takes effect at a packet's number: those before it come out of the old queue and those after out of the
//! new one, whenever either is polled (`redirect`). What hardware does within its pipeline, this does within some microseconds.
//! [`Traffic::outage`] is what a NIC does that must be stopped to be changed: what waits in its rings is lost, and what
//! comes meanwhile.
//!
//! **Cost.** Every queue looks at every packet's number, 2 to 3 ns each, whether it is its own or not. A taken packet costs what
//! [`crate::replay`] costs, and a division; a sent one, some loads and stores.
//!
//! **When not to use it.** For the highest rate of a packet path: [`crate::replay`] is leaner. With a hundred queues: each walks all
//! numbers. There is no PCIe, no DMA, no jitter of arrivals: packets of a step come at even distances.

mod ledger;
mod queue;
mod redirect;
mod schedule;
#[cfg(test)]
mod tests;

pub use ledger::{Counts, Latency};
pub use queue::{PacedPort, PacedRx, PacedTx};
pub use schedule::{Schedule, Step, Weights};

use crate::mem::FrameSize;
use crate::redirection::ENTRIES;
use crate::replay::{Patch, ReplayError, Stream};
use ledger::Ledger;
use redirect::Horizon;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tables::clock::Tsc;

/// A clock that ports read by themselves.
pub trait Ticks: Clone + Send + Sync + 'static {
    /// The time now, from an arbitrary start.
    fn ticks(&self) -> u64;
    /// Ticks in a second.
    fn hz(&self) -> u64;
}

impl Ticks for Tsc {
    fn ticks(&self) -> u64 {
        Self::ticks(self)
    }

    fn hz(&self) -> u64 {
        Self::hz(self)
    }
}

/// Why there is no such traffic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacedError {
    /// The template or its offsets.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A step has packets for an entry that no flow hashes to.
    #[error("entry {0} of the redirection table has a weight and no flow")]
    NoFlow(usize),
    /// A step with a rate has no entry with a weight, or weights whose sum is no cycle that could be kept.
    #[error("the weights of a step sum up to 1 to 1,048,576, not {0}")]
    Weights(u64),
    /// A rate or duration that is negative or not a number, or more packets than numbers.
    #[error("a schedule has finite steps and less than 2^32 packets")]
    Endless,
}

/// The last octets of each packet: its flow, its number in the flow, when it was due.
const STAMP: usize = 16;

/// What arrives at one port, and what became of it. Clones are handles on the same.
#[derive(Clone, Debug)]
pub struct Traffic<C = Tsc>(Arc<Inner<C>>);

#[derive(Debug)]
struct Inner<C> {
    clock: C,
    /// When the schedule begins, in ticks; 0: not yet.
    start: AtomicU64,
    schedule: Schedule,
    /// By entry: its first flow and how many it has.
    flows: Box<[(u32, u32)]>,
    stream: Stream,
    size: FrameSize,
    /// By flow: the number that its next packet should have. Written by whoever sends it: one worker at a time.
    expected: Box<[AtomicU32]>,
    horizon: Horizon,
    ledger: Ledger,
}

impl<C: Ticks> Traffic<C> {
    /// `template` with the words at `offsets` replaced as a flow's patch says; its hash names the flow's entry. The packets of
    /// an entry are of its flows in turn. `queues`: of the port that it arrives at, and of that it leaves by. Counts are kept in buckets of so
    /// many seconds; what comes after the schedule's last step and ten buckets is counted in the last one.
    pub fn new(
        template: &[u8],
        offsets: &[usize],
        mut flows: Vec<Patch>,
        schedule: Schedule,
        queues: u16,
        bucket: f64,
        clock: C,
    ) -> Result<Self, PacedError> {
        let end = template.len().saturating_sub(STAMP);
        if let Some(&offset) = offsets.iter().find(|offset| offset.saturating_add(4) > end) {
            return Err(ReplayError::Offset { offset, length: end }.into());
        }
        let entry = |patch: &Patch| patch.hash as usize % ENTRIES;
        flows.sort_by_key(entry);
        let mut of_entry = vec![(0, 0); ENTRIES].into_boxed_slice();
        for (number, patch) in flows.iter().enumerate() {
            if let Some((first, count)) = of_entry.get_mut(entry(patch)) {
                *first = if *count == 0 { number as u32 } else { *first };
                *count += 1;
            }
        }
        let empty = |entry: &usize| of_entry.get(*entry).is_none_or(|(_, count)| *count == 0);
        if let Some(entry) = schedule.entries().find(empty) {
            return Err(PacedError::NoFlow(entry));
        }
        let stream = Stream::new(template, offsets, flows)?;
        let expected = (0..stream.patches()).map(|_| AtomicU32::new(0)).collect();
        let ledger = Ledger::new(queues, schedule.seconds(), bucket, clock.hz());
        Ok(Self(Arc::new(Inner {
            horizon: Horizon::new(schedule.ahead()),
            clock,
            start: AtomicU64::new(0),
            schedule,
            flows: of_entry,
            size: stream.size(),
            stream,
            expected,
            ledger,
        })))
    }

    /// Begins the schedule at this tick (of the clock that it was made with). Only the first call counts.
    pub fn start(&self, tick: u64) {
        let _ = self.0.start.compare_exchange(0, tick.max(1), Ordering::Release, Ordering::Relaxed);
    }

    /// Packets in the whole schedule.
    pub fn packets(&self) -> u64 {
        self.0.schedule.packets()
    }

    /// The port is stopped for so long, from some microseconds on: what waits in its receive rings is lost, and what comes
    /// meanwhile. Says when it ends, in ticks, or nothing if the schedule isn't running.
    pub fn outage(&self, seconds: f64) -> Option<u64> {
        let inner = &*self.0;
        let start = inner.start.load(Ordering::Acquire);
        let ticks = (seconds.max(0.0) * inner.clock.hz() as f64) as u64;
        let number_after = |cut| {
            let until = inner.schedule.due(cut).saturating_add(ticks);
            (inner.schedule.number_at(until), until)
        };
        (start > 0).then(|| start + inner.horizon.outage(number_after))
    }

    /// What is counted, bucket by bucket: how many there are.
    pub fn buckets(&self) -> usize {
        self.0.ledger.buckets()
    }

    /// What one queue's worker saw in some buckets.
    pub fn count(&self, queue: u16, buckets: Range<usize>) -> Counts {
        self.0.ledger.count(queue, buckets)
    }

    /// What all saw.
    pub fn total(&self, buckets: Range<usize>) -> Counts {
        let queues = 0..self.0.ledger.queues();
        queues.map(|queue| self.count(queue, buckets.clone())).fold(Counts::default(), Counts::plus)
    }

    /// From due to sent, of the packets that were due in some buckets, by whichever queue they left.
    pub fn latency(&self, buckets: Range<usize>) -> Latency {
        self.0.ledger.latency(buckets)
    }
}

impl<C: Ticks> Inner<C> {
    /// Ticks since the start, if it has come.
    fn since_start(&self) -> Option<u64> {
        let start = self.start.load(Ordering::Relaxed);
        (start > 0).then(|| self.clock.ticks().checked_sub(start)).flatten()
    }
}
