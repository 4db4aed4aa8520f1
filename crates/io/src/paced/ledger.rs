//! What became of packets, by queue and by bucket of time. A queue's counters have one writer, so that plain loads and stores do.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Buckets after the schedule's end.
const MORE: usize = 10;
/// The most buckets that are kept.
const MOST: usize = 1 << 14;
/// Latencies below this many ticks are told apart; above, those whose first six binary digits differ.
const EXACT: u64 = 64;
/// Kinds of latencies, up to 2^36 ticks.
const KINDS: usize = 32 * 32 + 32;

/// What a queue's worker saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came to the queue, by the time at which they were due.
    pub arrived: u64,
    /// Of those, the ones that found the receive ring full.
    pub missed: u64,
    /// Of those, the ones that an empty ring would have missed, too, because it wasn't polled for so long: the machine kept the
    /// worker from running, or the worker had something else to do. Which of the two, nothing here tells.
    pub missed_in_gaps: u64,
    /// Of all, the ones that came while the port was stopped, or waited when it stopped.
    pub down: u64,
    /// Packets sent by the queue, by the time at which they were.
    pub sent: u64,
    /// Packets sent by the queue, by the time at which they had been due.
    pub delivered: u64,
    /// Packets sent after a later one of their flow.
    pub reordered: u64,
}

impl Counts {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            arrived: self.arrived + other.arrived,
            missed: self.missed + other.missed,
            missed_in_gaps: self.missed_in_gaps + other.missed_in_gaps,
            down: self.down + other.down,
            sent: self.sent + other.sent,
            delivered: self.delivered + other.delivered,
            reordered: self.reordered + other.reordered,
        }
    }

    /// Packets that were taken and never sent. Right for buckets that are over, when nothing is on its way any more.
    pub const fn lost_inside(&self) -> u64 {
        self.arrived.saturating_sub(self.missed + self.down + self.delivered)
    }

    /// All packets that came and were never sent, wherever they were lost. Right for buckets that are over, likewise.
    pub const fn lost(&self) -> u64 {
        self.missed + self.down + self.lost_inside()
    }
}

#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU32);

impl Cell {
    #[inline]
    pub fn add(&self, n: u32) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        u64::from(self.0.load(Ordering::Relaxed))
    }
}

/// What the receiving side counts.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub arrived: Cell,
    pub missed: Cell,
    pub missed_in_gaps: Cell,
    pub down: Cell,
}

/// What the sending side counts.
#[derive(Debug)]
pub(super) struct Departures {
    pub sent: Cell,
    pub delivered: Cell,
    pub reordered: Cell,
    latency: Box<[Cell]>,
    longest: AtomicU64,
}

impl Departures {
    fn new() -> Self {
        Self {
            sent: Cell::default(),
            delivered: Cell::default(),
            reordered: Cell::default(),
            latency: (0..KINDS).map(|_| Cell::default()).collect(),
            longest: AtomicU64::new(0),
        }
    }

    /// A packet was sent so long after it had been due.
    #[inline]
    pub fn record(&self, ticks: u64) {
        self.delivered.add(1);
        if let Some(cell) = self.latency.get(kind(ticks)) {
            cell.add(1);
        }
        if ticks > self.longest.load(Ordering::Relaxed) {
            self.longest.store(ticks, Ordering::Relaxed);
        }
    }
}

#[inline]
fn kind(ticks: u64) -> usize {
    if ticks < EXACT {
        return ticks as usize;
    }
    let shift = 58 - ticks.leading_zeros();
    (shift as usize * 32 + (ticks >> shift) as usize).min(KINDS - 1)
}

/// The shortest latency of a kind.
const fn shortest(kind: usize) -> u64 {
    if kind < EXACT as usize {
        return kind as u64;
    }
    let shift = kind / 32 - 1;
    ((kind % 32 + 32) as u64) << shift
}

/// One queue's side of a traffic.
#[derive(Debug)]
struct Row {
    arrivals: Box<[Arrivals]>,
    departures: Box<[Departures]>,
}

/// All queues'.
#[derive(Debug)]
pub(super) struct Ledger {
    rows: Box<[Row]>,
    buckets: usize,
    per_tick: f64,
    hz: u64,
}

impl Ledger {
    pub fn new(queues: u16, seconds: f64, bucket: f64, hz: u64) -> Self {
        let bucket = bucket.max(1e-4);
        let buckets = ((seconds / bucket).ceil() as usize + MORE).min(MOST);
        let row = |_| Row {
            arrivals: (0..buckets).map(|_| Arrivals::default()).collect(),
            departures: (0..buckets).map(|_| Departures::new()).collect(),
        };
        Self { rows: (0..queues).map(row).collect(), buckets, per_tick: 1.0 / (bucket * hz as f64), hz }
    }

    pub const fn buckets(&self) -> usize {
        self.buckets
    }

    pub fn queues(&self) -> u16 {
        self.rows.len() as u16
    }

    /// The bucket of a time, in ticks from the start.
    #[inline]
    fn bucket(&self, ticks: u64) -> usize {
        ((ticks as f64 * self.per_tick) as usize).min(self.buckets - 1)
    }

    #[inline]
    pub fn arrivals(&self, queue: u16, ticks: u64) -> Option<&Arrivals> {
        self.rows.get(usize::from(queue))?.arrivals.get(self.bucket(ticks))
    }

    #[inline]
    pub fn departures(&self, queue: u16, ticks: u64) -> Option<&Departures> {
        self.rows.get(usize::from(queue))?.departures.get(self.bucket(ticks))
    }

    pub fn count(&self, queue: u16, buckets: Range<usize>) -> Counts {
        let Some(row) = self.rows.get(usize::from(queue)) else { return Counts::default() };
        let wanted = buckets.len();
        let arrivals = row.arrivals.iter().skip(buckets.start).take(wanted).map(|bucket| Counts {
            arrived: bucket.arrived.get(),
            missed: bucket.missed.get(),
            missed_in_gaps: bucket.missed_in_gaps.get(),
            down: bucket.down.get(),
            ..Counts::default()
        });
        let departures = row.departures.iter().skip(buckets.start).take(wanted).map(|bucket| Counts {
            sent: bucket.sent.get(),
            delivered: bucket.delivered.get(),
            reordered: bucket.reordered.get(),
            ..Counts::default()
        });
        arrivals.chain(departures).fold(Counts::default(), Counts::plus)
    }

    pub fn latency(&self, buckets: Range<usize>) -> Latency {
        let mut sum = Latency { kinds: vec![0; KINDS], longest: 0, hz: self.hz };
        for row in &self.rows {
            for bucket in row.departures.iter().skip(buckets.start).take(buckets.len()) {
                for (sum, cell) in sum.kinds.iter_mut().zip(&bucket.latency) {
                    *sum += cell.get();
                }
                sum.longest = sum.longest.max(bucket.longest.load(Ordering::Relaxed));
            }
        }
        sum
    }
}

/// How long packets took, to three percent.
#[derive(Clone, Debug)]
pub struct Latency {
    kinds: Vec<u64>,
    longest: u64,
    hz: u64,
}

impl Latency {
    /// Of both; the clocks must be the same.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (sum, more) in self.kinds.iter_mut().zip(&other.kinds) {
            *sum += more;
        }
        self.longest = self.longest.max(other.longest);
        self
    }

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// What this share of the packets took at most, in nanoseconds; 1 is the longest. Zero without packets.
    pub fn nanos(&self, share: f64) -> f64 {
        let ticks = |ticks: u64| ticks as f64 * 1e9 / self.hz as f64;
        let wanted = share * self.packets() as f64;
        let mut seen = 0;
        let at = self.kinds.iter().position(|count| {
            seen += count;
            *count > 0 && seen as f64 >= wanted
        });
        // The middle of the kind, but never more than what was seen.
        let middle = |kind| (shortest(kind) + shortest(kind + 1) - 1) / 2;
        at.filter(|_| share < 1.0).map_or(ticks(self.longest), |kind| ticks(middle(kind).min(self.longest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_order_and_three_percent_wide() {
        let mut last = 0;
        for ticks in (0..100_000_u64).chain((17..36).map(|bit| 1 << bit)) {
            let kind = kind(ticks);
            assert!(kind >= last && shortest(kind) <= ticks, "{ticks}");
            assert!(ticks < shortest(kind + 1), "{ticks}");
            assert!(shortest(kind + 1) - shortest(kind) <= (ticks / 32).max(1), "{ticks}");
            last = kind;
        }
        assert_eq!(super::kind(u64::MAX), KINDS - 1);
    }

    #[test]
    fn percentiles_of_a_known_distribution() {
        let ledger = Ledger::new(2, 1.0, 0.5, 1_000_000_000);
        for ticks in 1..=100_000_u64 {
            if let Some(departures) = ledger.departures((ticks % 2) as u16, ticks) {
                departures.record(ticks);
            }
        }
        let latency = ledger.latency(0..1);
        for share in [0.5, 0.99, 0.999] {
            let (found, expected) = (latency.nanos(share), share * 1e5);
            assert!((found - expected).abs() < 0.02 * expected, "{share}: {found}");
        }
        assert_eq!((latency.packets(), latency.nanos(1.0) as u64), (100_000, 100_000));
        assert_eq!(ledger.latency(1..2).nanos(0.5) as u64, 0);
        assert_eq!(ledger.count(1, 0..1).delivered, 50_000);
    }
}
