//! Latency by percentile.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::fmt;

/// Above this (10 s), a latency is recorded as this.
const MAX_NANOS: u64 = 10_000_000_000;

/// Latencies of one direction: three significant digits from 1 ns to 10 s.
#[derive(Clone)]
pub struct Latencies {
    histogram: Option<Histogram<u64>>,
}

impl Latencies {
    /// An empty record.
    pub fn new() -> Self {
        // The bounds are constants that the crate accepts (low >= 1, high >= 2 * low, digits <= 5).
        Self { histogram: Histogram::new_with_bounds(1, MAX_NANOS, 3).ok() }
    }

    /// Counts one packet.
    pub fn record(&mut self, nanos: u64) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(nanos);
        }
    }

    /// The percentiles so far.
    pub fn summary(&self) -> LatencySummary {
        let Some(histogram) = self.histogram.as_ref().filter(|histogram| !histogram.is_empty()) else {
            return LatencySummary::default();
        };
        LatencySummary {
            packets: histogram.len(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if let Some(histogram) = &mut self.histogram {
            // `clear` would keep the longest.
            histogram.reset();
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary().fmt(f)
    }
}

/// Percentiles of one-way latency in nanoseconds, from the making of a packet to its arrival at the verifier.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct LatencySummary {
    /// Packets measured.
    pub packets: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::Latencies;

    #[test]
    fn percentiles_of_a_known_distribution() {
        let mut latencies = Latencies::new();
        (1..=100_000).for_each(|n| latencies.record(n));
        let summary = latencies.summary();
        let near = |found: u64, expected: u64| found.abs_diff(expected) * 1000 <= expected;
        assert!(near(summary.p50_ns, 50_000), "{summary:?}");
        assert!(near(summary.p99_ns, 99_000), "{summary:?}");
        assert!(near(summary.p999_ns, 99_900), "{summary:?}");
        assert_eq!((summary.packets, summary.min_ns), (100_000, 1));
        latencies.record(u64::MAX);
        assert_eq!(latencies.summary().packets, 100_001, "saturates");
        latencies.clear();
        assert_eq!(latencies.summary(), super::LatencySummary::default());
        latencies.record(70);
        assert_eq!((latencies.summary().min_ns, latencies.summary().max_ns), (70, 70));
    }
}
