//! Colouring packets by two rates, or by one rate and two bursts: RFC 2698 and RFC 2697.
//!
//! **Problem.** A meter with one rate only says yes or no. A guaranteed bit rate beside a maximum one (TS 23.501 §5.7.2.5), or a slice
//! that may lend what it doesn't use, need a third answer: let the packet pass, but first in line to be dropped further on.
//!
//! **Model.** A [`Marker`] colours each packet [`Colour::Green`], [`Colour::Yellow`] or [`Colour::Red`]:
//!
//! - *Two-rate* (RFC 2698): red beyond the peak rate, yellow between committed and peak rate, green below.
//! - *Single-rate* (RFC 2697): green while the committed burst lasts, yellow while the excess burst does, which is filled by what
//!   the committed one has no room for.
//!
//! Both are *colour-aware*: a packet never leaves better than it came. A colour-blind marker is one that is told that every packet
//! comes green. A packet of several markers is judged by all before any is charged: [`Marker::colour`], then [`Marker::charge`] with
//! its answer; [`Marker::mark`] is both for one.
//!
//! **Arithmetic** is [`Meter`]'s, and as exact. The excess burst of a single-rate marker is kept as what it lacks, which shrinks by
//! the time during which the committed bucket is full.
//!
//! **Cost.** Two meters', in one cache line.
//!
//! **When not to use it.** Where nothing asks for the colour, a [`Meter`] says the same for half the price.

use crate::meter::{Meter, MeterConfig};
use crate::time::Nanos;

/// What a marker thinks of a packet; a worse one is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Colour {
    /// Within what was promised.
    #[default]
    Green,
    /// More than was promised, less than is allowed.
    Yellow,
    /// More than is allowed.
    Red,
}

/// What a marker enforces. Bursts should hold the longest packet: a longer one is never green, or yellow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkerConfig {
    /// RFC 2697.
    SingleRate {
        /// Committed information rate (CIR), bit/s; 0 refills nothing.
        committed_bps: u64,
        /// Committed burst size (CBS), bytes.
        committed_burst: u32,
        /// Excess burst size (EBS), bytes.
        excess_burst: u32,
    },
    /// RFC 2698. A committed rate above the peak rate is taken as the peak rate.
    TwoRate {
        /// Committed information rate (CIR) and burst size (CBS).
        committed: MeterConfig,
        /// Peak information rate (PIR) and burst size (PBS).
        peak: MeterConfig,
    },
}

impl MarkerConfig {
    /// The committed bucket.
    fn committed(self) -> MeterConfig {
        match self {
            Self::SingleRate { committed_bps, committed_burst, .. } => {
                MeterConfig { rate_bps: committed_bps, burst_bytes: committed_burst }
            }
            Self::TwoRate { committed, peak } => {
                MeterConfig { rate_bps: committed.rate_bps.min(peak.rate_bps), ..committed }
            }
        }
    }
}

/// A three-colour marker in 64 bytes; see the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Marker {
    committed: Meter,
    other: Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Other {
    /// The excess bucket's size, and what it lacked when the committed bucket was last charged; in the meter's units of time.
    Excess {
        size: u64,
        lacks: u64,
    },
    Peak(Meter),
}

const _: () = assert!(size_of::<Marker>() == 64, "a marker is one cache line");

impl Default for Marker {
    /// Everything is green.
    fn default() -> Self {
        Self { committed: Meter::unlimited(), other: Other::Peak(Meter::unlimited()) }
    }
}

impl Marker {
    /// A marker with full buckets.
    pub fn new(config: MarkerConfig) -> Self {
        let committed = Meter::new(config.committed());
        let other = match config {
            MarkerConfig::SingleRate { excess_burst, .. } => {
                Other::Excess { size: committed.worth(excess_burst), lacks: 0 }
            }
            MarkerConfig::TwoRate { peak, .. } => Other::Peak(Meter::new(peak)),
        };
        Self { committed, other }
    }

    /// The same marker under other rates and bursts, with as much of its bursts used as before. One of another kind begins
    /// with an excess or peak burst that is full.
    #[must_use]
    pub fn reconfigured(&self, config: MarkerConfig, now: Nanos) -> Self {
        let mut marker = Self::new(config);
        marker.committed = self.committed.reconfigured(config.committed(), now);
        match (&mut marker.other, self.settled(now), config) {
            (Other::Peak(to), Other::Peak(from), MarkerConfig::TwoRate { peak, .. }) => {
                *to = from.reconfigured(peak, now);
            }
            (Other::Excess { size, lacks }, Other::Excess { size: before, lacks: used }, _) => {
                let used = u128::from(*size) * u128::from(used.min(before));
                *lacks = used.checked_div(u128::from(before)).map_or(0, |used| used as u64);
            }
            _ => {}
        }
        marker
    }

    /// How much of both bursts is used, as [`Meter::used`] says it.
    pub const fn used(&self, now: Nanos) -> (u64, u64) {
        let other = match self.settled(now) {
            Other::Peak(peak) => peak.used(now),
            Other::Excess { lacks, .. } => lacks,
        };
        (self.committed.used(now), other)
    }

    /// So much of both bursts is used, as [`Self::used`] said of a marker of the same kind and rates.
    pub fn use_up(&mut self, now: Nanos, (committed, other): (u64, u64)) {
        self.committed.use_up(now, committed);
        match &mut self.other {
            Other::Peak(peak) => peak.use_up(now, other),
            Other::Excess { size, lacks } => *lacks = other.min(*size),
        }
    }

    /// The other bucket as it is now.
    #[inline(always)]
    const fn settled(&self, now: Nanos) -> Other {
        match self.other {
            Other::Excess { size, lacks } => {
                Other::Excess { size, lacks: lacks.saturating_sub(self.committed.spare(now)) }
            }
            peak @ Other::Peak(_) => peak,
        }
    }

    /// The colour that a packet of `bytes` gets which comes as `before`. Takes no tokens: see [`Self::charge`].
    #[inline(always)]
    pub const fn colour(&self, now: Nanos, bytes: u32, before: Colour) -> Colour {
        let green = matches!(before, Colour::Green) && self.committed.would_conform(now, bytes);
        let within = match (before, self.settled(now)) {
            (Colour::Red, _) => false,
            (_, Other::Peak(peak)) => {
                if !peak.would_conform(now, bytes) {
                    return Colour::Red;
                }
                true
            }
            (_, Other::Excess { size, lacks }) => lacks.saturating_add(self.committed.worth(bytes)) <= size,
        };
        if green {
            Colour::Green
        } else if within {
            Colour::Yellow
        } else {
            Colour::Red
        }
    }

    /// Takes a packet's tokens from the buckets that its colour says.
    #[inline(always)]
    pub const fn charge(&mut self, now: Nanos, bytes: u32, colour: Colour) {
        self.other = self.settled(now);
        let green = matches!(colour, Colour::Green);
        if matches!(colour, Colour::Red) {
            // What the excess bucket gained is entered: the committed one must not count as full from then on twice.
            self.committed.settle(now);
            return;
        }
        let worth = self.committed.worth(bytes);
        match &mut self.other {
            Other::Peak(peak) => peak.charge(now, bytes),
            Other::Excess { lacks, .. } if !green => *lacks = lacks.saturating_add(worth),
            Other::Excess { .. } => {}
        }
        if green {
            self.committed.charge(now, bytes);
        } else {
            self.committed.settle(now);
        }
    }

    /// [`Self::colour`] and [`Self::charge`] in one.
    #[inline(always)]
    pub const fn mark(&mut self, now: Nanos, bytes: u32, before: Colour) -> Colour {
        let colour = self.colour(now, bytes, before);
        self.charge(now, bytes, colour);
        colour
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One byte in units of which a nanosecond is worth `rate`.
    const BYTE: u128 = 8_000_000_000;

    /// A bucket in exact arithmetic.
    #[derive(Clone, Copy)]
    struct Bucket {
        tokens: u128,
        size: u128,
    }

    impl Bucket {
        fn full(bytes: u32) -> Self {
            Self { tokens: u128::from(bytes) * BYTE, size: u128::from(bytes) * BYTE }
        }

        /// Adds tokens, and says how many found no room.
        fn fill(&mut self, tokens: u128) -> u128 {
            let sum = self.tokens + tokens;
            self.tokens = sum.min(self.size);
            sum - self.tokens
        }
    }

    /// The RFCs' text, step by step.
    struct Exact {
        config: MarkerConfig,
        committed: Bucket,
        other: Bucket,
        last: u64,
    }

    impl Exact {
        fn new(config: MarkerConfig) -> Self {
            let (committed, other) = match config {
                MarkerConfig::SingleRate { committed_burst, excess_burst, .. } => {
                    (committed_burst, excess_burst)
                }
                MarkerConfig::TwoRate { committed, peak } => (committed.burst_bytes, peak.burst_bytes),
            };
            Self { config, committed: Bucket::full(committed), other: Bucket::full(other), last: 0 }
        }

        fn refill(&mut self, now: Nanos) {
            let nanos = u128::from(now.0 - self.last);
            self.last = now.0;
            match self.config {
                MarkerConfig::SingleRate { committed_bps, .. } => {
                    let over = self.committed.fill(nanos * u128::from(committed_bps));
                    self.other.fill(over);
                }
                MarkerConfig::TwoRate { committed, peak } => {
                    self.committed.fill(nanos * u128::from(committed.rate_bps));
                    self.other.fill(nanos * u128::from(peak.rate_bps));
                }
            }
        }

        fn colour(&self, bytes: u32, before: Colour) -> Colour {
            let cost = u128::from(bytes) * BYTE;
            match self.config {
                MarkerConfig::SingleRate { .. } => {
                    if before == Colour::Green && self.committed.tokens >= cost {
                        Colour::Green
                    } else if before != Colour::Red && self.other.tokens >= cost {
                        Colour::Yellow
                    } else {
                        Colour::Red
                    }
                }
                MarkerConfig::TwoRate { .. } => {
                    if before == Colour::Red || self.other.tokens < cost {
                        Colour::Red
                    } else if before == Colour::Yellow || self.committed.tokens < cost {
                        Colour::Yellow
                    } else {
                        Colour::Green
                    }
                }
            }
        }

        fn charge(&mut self, bytes: u32, colour: Colour) {
            let cost = u128::from(bytes) * BYTE;
            let single = matches!(self.config, MarkerConfig::SingleRate { .. });
            if colour == Colour::Green {
                self.committed.tokens = self.committed.tokens.saturating_sub(cost);
            }
            if colour == Colour::Yellow || (colour == Colour::Green && !single) {
                self.other.tokens = self.other.tokens.saturating_sub(cost);
            }
        }
    }

    fn colours() -> impl Strategy<Value = Colour> {
        prop_oneof![4 => Just(Colour::Green), 1 => Just(Colour::Yellow), 1 => Just(Colour::Red)]
    }

    /// 64 kbit/s to 100 Gbit/s, evenly over the orders of magnitude.
    fn rates() -> impl Strategy<Value = u64> {
        (4.806_f64..11.0).prop_map(|exponent| 10_f64.powf(exponent) as u64)
    }

    fn configs(rate: impl Strategy<Value = u64> + Clone) -> impl Strategy<Value = MarkerConfig> {
        let single = (rate.clone(), 1_500_u32..1 << 22, 0_u32..1 << 22).prop_map(
            |(committed_bps, committed_burst, excess_burst)| MarkerConfig::SingleRate {
                committed_bps,
                committed_burst,
                excess_burst,
            },
        );
        let two =
            (rate, 1_u64..8, 1_500_u32..1 << 22, 1_500_u32..1 << 22).prop_map(|(rate, ratio, cbs, pbs)| {
                MarkerConfig::TwoRate {
                    committed: MeterConfig { rate_bps: rate, burst_bytes: cbs },
                    peak: MeterConfig { rate_bps: rate * ratio, burst_bytes: pbs },
                }
            });
        prop_oneof![single, two]
    }

    /// Rates whose cost per byte is a whole number of nanoseconds or of their 65,536th parts.
    fn whole_rates() -> impl Strategy<Value = u64> + Clone {
        prop::sample::select(vec![
            1_000_u64,
            8_000,
            64_000,
            1_000_000,
            100_000_000,
            1_000_000_000,
            8_000_000_000,
        ])
    }

    fn rate_of(config: MarkerConfig) -> u64 {
        match config {
            MarkerConfig::SingleRate { committed_bps, .. } => committed_bps,
            MarkerConfig::TwoRate { committed, .. } => committed.rate_bps,
        }
    }

    proptest! {
        /// Where the arithmetic is exact, every packet gets the colour that the RFC's text gives it.
        #[test]
        fn colours_as_the_text_does(
            config in configs(whole_rates()),
            packets in prop::collection::vec((0_u32..9000, 0_u64..150_000_000, colours()), 1..200),
        ) {
            // A peak rate that is a multiple of these need not be whole.
            prop_assume!(!matches!(config, MarkerConfig::TwoRate { peak, .. } if 8_000_000_000 % peak.rate_bps != 0));
            let (mut marker, mut exact) = (Marker::new(config), Exact::new(config));
            let mut now = Nanos(0);
            for (bytes, gap, before) in packets {
                now = now.plus(gap * 1_000_000 / rate_of(config));
                exact.refill(now);
                let colour = marker.colour(now, bytes, before);
                prop_assert_eq!(colour, exact.colour(bytes, before));
                prop_assert!(colour >= before, "never better than it came");
                exact.charge(bytes, colour);
                marker.charge(now, bytes, colour);
            }
        }

        /// Over time, at any rate and with any mix of sizes, green is the committed rate and green with yellow the peak rate (two
        /// rates), or the committed one (one rate), within a per cent.
        #[test]
        fn colours_its_rates_within_a_per_cent(
            committed in rates(),
            ratio in 1.0_f64..3.0,
            single: bool,
            sizes in prop::collection::vec(40_u32..9000, 1..8),
            start in 0_u64..1 << 62,
        ) {
            let burst = 20_000;
            let peak = (committed as f64 * ratio) as u64;
            let config = if single {
                MarkerConfig::SingleRate { committed_bps: committed, committed_burst: burst, excess_burst: burst }
            } else {
                MarkerConfig::TwoRate {
                    committed: MeterConfig { rate_bps: committed, burst_bytes: burst },
                    peak: MeterConfig { rate_bps: peak, burst_bytes: burst },
                }
            };
            let mut marker = Marker::new(config);
            let (mut green, mut yellow, mut offset, mut end) = (0_u64, 0_u64, 0.0_f64, start);
            for at in 0..20_000 {
                let size = sizes[at % sizes.len()];
                end = start + offset as u64;
                match marker.mark(Nanos(end), size, Colour::Green) {
                    Colour::Green => green += u64::from(size),
                    Colour::Yellow => yellow += u64::from(size),
                    Colour::Red => {}
                }
                // Four times the committed rate is more than any peak rate here.
                offset += f64::from(size) * 8e9 / committed as f64 / 4.0;
            }
            let seconds = (end - start) as f64 / 8e9;
            let spare = f64::from(burst) + 9_000.0;
            let near = |bytes: u64, rate: u64, bursts: f64| {
                let earned = rate as f64 * seconds;
                bytes as f64 <= earned * 1.01 + bursts + 1.0 && bytes as f64 >= earned * 0.99 - spare
            };
            prop_assert!(near(green, committed, f64::from(burst)), "{green} green");
            let all = if single { committed } else { peak };
            prop_assert!(near(green + yellow, all, 2.0 * f64::from(burst)), "{green} + {yellow}");
        }

        /// Charged or not, in any order of times: nothing overflows, and red stays red.
        #[test]
        fn accepts_any_numbers(
            rate: u64, cbs: u32, ebs: u32, single: bool,
            calls in prop::collection::vec((any::<u64>(), any::<u32>(), colours()), 0..20),
        ) {
            let make = |rate: u64, burst_bytes: u32| if single {
                MarkerConfig::SingleRate { committed_bps: rate, committed_burst: burst_bytes, excess_burst: ebs }
            } else {
                let meter = MeterConfig { rate_bps: rate, burst_bytes };
                MarkerConfig::TwoRate { committed: meter, peak: MeterConfig { rate_bps: rate / 2, ..meter } }
            };
            let mut marker = Marker::new(make(rate, cbs));
            for (now, bytes, before) in calls {
                let colour = marker.mark(Nanos(now), bytes, before);
                prop_assert!(colour >= before);
                marker = marker.reconfigured(make(rate ^ now, bytes), Nanos(now));
            }
        }
    }

    #[test]
    fn the_excess_bucket_gets_what_the_committed_one_has_no_room_for() {
        // 8,000 bit/s: a byte a millisecond.
        let config =
            MarkerConfig::SingleRate { committed_bps: 8_000, committed_burst: 100, excess_burst: 50 };
        let mut marker = Marker::new(config);
        let at = |millis: u64| Nanos(millis * 1_000_000);
        assert_eq!(marker.mark(at(0), 100, Colour::Green), Colour::Green);
        assert_eq!(marker.mark(at(0), 50, Colour::Green), Colour::Yellow);
        assert_eq!(marker.mark(at(0), 1, Colour::Green), Colour::Red);
        // 100 ms fill the committed bucket alone; a packet that is yellow already may not have of it.
        assert_eq!(marker.mark(at(100), 1, Colour::Yellow), Colour::Red);
        // 20 ms more go to the excess bucket, asked about or not.
        assert_eq!(marker.colour(at(120), 21, Colour::Yellow), Colour::Red);
        assert_eq!(marker.mark(at(120), 20, Colour::Yellow), Colour::Yellow);
        assert_eq!(marker.mark(at(120), 100, Colour::Green), Colour::Green);
        assert_eq!(marker.mark(at(120), 1, Colour::Green), Colour::Red);
    }

    #[test]
    fn two_rates_have_two_limits() {
        let meter = |rate_bps, burst_bytes| MeterConfig { rate_bps, burst_bytes };
        let config = MarkerConfig::TwoRate { committed: meter(8_000, 100), peak: meter(16_000, 150) };
        let mut marker = Marker::new(config);
        assert_eq!(marker.mark(Nanos(0), 100, Colour::Green), Colour::Green);
        assert_eq!(marker.mark(Nanos(0), 50, Colour::Green), Colour::Yellow);
        assert_eq!(marker.mark(Nanos(0), 1, Colour::Green), Colour::Red);
        let later = Nanos(10_000_000);
        assert_eq!(marker.mark(later, 10, Colour::Green), Colour::Green);
        assert_eq!(marker.mark(later, 10, Colour::Green), Colour::Yellow);
        assert_eq!(marker.mark(later, 1, Colour::Green), Colour::Red);
        // A committed rate above the peak's is the peak's.
        let config = MarkerConfig::TwoRate { committed: meter(u64::MAX, 100), peak: meter(8_000, 100) };
        let mut marker = Marker::new(config);
        assert_eq!(marker.mark(Nanos(0), 100, Colour::Green), Colour::Green);
        assert_eq!(marker.mark(later, 10, Colour::Green), Colour::Green);
        assert_eq!(Marker::default().mark(later, u32::MAX, Colour::Green), Colour::Green);
    }

    #[test]
    fn new_rates_grant_no_new_bursts() {
        let config = |rate, burst| MarkerConfig::SingleRate {
            committed_bps: rate,
            committed_burst: burst,
            excess_burst: burst,
        };
        let mut marker = Marker::new(config(8_000, 100));
        assert_eq!(marker.mark(Nanos(0), 50, Colour::Green), Colour::Green);
        assert_eq!(marker.mark(Nanos(0), 80, Colour::Yellow), Colour::Yellow);
        let after = marker.reconfigured(config(16_000, 1_000), Nanos(0));
        assert_eq!(after.colour(Nanos(0), 500, Colour::Green), Colour::Green);
        assert_eq!(after.colour(Nanos(0), 501, Colour::Green), Colour::Red);
        assert_eq!(after.colour(Nanos(0), 200, Colour::Yellow), Colour::Yellow);
        assert_eq!(after.colour(Nanos(0), 201, Colour::Yellow), Colour::Red);
    }
}
