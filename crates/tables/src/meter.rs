//! Enforcing a bit rate: single-rate token buckets.
//!
//! **Problem.** A QER's MBR (TS 29.244 §5.4.3) and a session's AMBR limit bytes per second for bursts of packets, for rates
//! from 1 kbit/s to hundreds of Gbit/s, at a cost of a few cycles and 24 bytes per meter.
//!
//! **Model.** A bucket of `burst_bytes` tokens that fills at the rate. It is kept as the generic cell rate algorithm
//! (ITU-T I.371 annex A, *virtual scheduling*) does: instead of tokens the meter remembers the time at which the bucket will be
//! full again. A packet moves that time ahead by `bytes * cost`; it conforms if the result is not further ahead of now than a
//! whole burst. The two are the same arithmetic, but in this form nothing is refilled, and an idle meter needs no attention
//! however long it idles.
//!
//! **Arithmetic.** Time is whole nanoseconds plus a fraction of `shift` bits, where `shift` (0 to 16) is chosen per meter so that the
//! cost of a byte in those units, `8e9 / rate * 2^shift`, is an integer of up to 32 bits: 1 kbit/s is 8,000,000 ns a byte with 9 bits of
//! fraction, 400 Gbit/s 0.02 ns with 16 bits, which is 1,311 units instead of 1,310.72. Rounding this one number is the only
//! error: below 0.04 % up to 400 Gbit/s, 1 % at 10 Tbit/s. No operation on the packet path rounds, divides or overflows.
//!
//! **Cost.** Two additions, a multiplication, three shifts and two comparisons.
//!
//! **When not to use it.** For colours and several rates at once (RFC 2697, RFC 2698), or for shaping: a meter polices,
//! it delays nothing. A packet longer than the burst never conforms: let the burst be at least the MTU.

use crate::time::Nanos;

/// What a meter enforces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeterConfig {
    /// Bits per second; 0 lets nothing through. Up to 10 Tbit/s, and down to 2 bit/s, the rate holds within 1 %.
    pub rate_bps: u64,
    /// Bytes that may pass at once after a pause.
    pub burst_bytes: u32,
}

impl MeterConfig {
    /// A rate with a burst worth `burst_nanos` of it, but of at least `least_bytes` (the MTU, or a few).
    pub const fn with_burst_time(rate_bps: u64, burst_nanos: u64, least_bytes: u32) -> Self {
        let bytes = (rate_bps as u128 * burst_nanos as u128) / (8 * Nanos::SECOND as u128);
        let bytes = if bytes > u32::MAX as u128 { u32::MAX } else { bytes as u32 };
        Self { rate_bps, burst_bytes: if bytes < least_bytes { least_bytes } else { bytes } }
    }
}

/// A token bucket in 24 bytes; see the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meter {
    /// When the bucket will be full, whole nanoseconds.
    full_at: u64,
    /// How far ahead of now that may be, in units of 2^-shift ns.
    tolerance: u64,
    /// A byte's worth of time, in the same units.
    cost: u32,
    /// The rest of `full_at` below a nanosecond, in the same units.
    fraction: u16,
    shift: u8,
}

/// Most fraction bits of a nanosecond.
const MAX_SHIFT: u8 = 16;

impl Meter {
    /// A meter with a full bucket.
    pub fn new(config: MeterConfig) -> Self {
        if config.rate_bps == 0 {
            return Self { full_at: 0, tolerance: 0, cost: u32::MAX, fraction: 0, shift: 0 };
        }
        let rate = u128::from(config.rate_bps);
        let cost = |shift: u8| (((8 * u128::from(Nanos::SECOND)) << shift) + rate / 2) / rate;
        let shift = (0..=MAX_SHIFT).rev().find(|shift| cost(*shift) <= u128::from(u32::MAX)).unwrap_or(0);
        let cost = u32::try_from(cost(shift)).unwrap_or(u32::MAX).max(1);
        // Half the range, so that the sum in `ahead` and `conforms` stays within 64 bits.
        let tolerance = (u64::from(cost) * u64::from(config.burst_bytes)).min(u64::MAX >> 1);
        Self { full_at: 0, tolerance, cost, fraction: 0, shift }
    }

    /// A meter that everything conforms to.
    pub const fn unlimited() -> Self {
        Self { full_at: 0, tolerance: 0, cost: 0, fraction: 0, shift: 0 }
    }

    /// Whether everything conforms.
    pub const fn is_unlimited(&self) -> bool {
        self.cost == 0
    }

    /// The same bucket under another rate and burst: the share of the burst that is used stays used, so that a changed QER
    /// doesn't hand out a fresh burst.
    #[must_use]
    pub fn reconfigured(&self, config: MeterConfig, now: Nanos) -> Self {
        let mut meter = Self::new(config);
        let used = u128::from(self.ahead(now).min(self.tolerance)) * u128::from(meter.tolerance);
        if let Some(used) = used.checked_div(u128::from(self.tolerance)) {
            meter.set_ahead(now, used as u64);
        }
        meter
    }

    /// How far ahead of now the bucket's full moment lies.
    #[inline(always)]
    const fn ahead(&self, now: Nanos) -> u64 {
        if self.full_at >= now.0 {
            // A clock that jumped back must not overflow the shift.
            let nanos = self.full_at - now.0;
            let cap = u64::MAX >> (1 + MAX_SHIFT);
            ((if nanos < cap { nanos } else { cap }) << self.shift) + self.fraction as u64
        } else {
            0
        }
    }

    #[inline(always)]
    const fn set_ahead(&mut self, now: Nanos, ahead: u64) {
        self.full_at = now.0.saturating_add(ahead >> self.shift);
        self.fraction = (ahead & ((1 << self.shift) - 1)) as u16;
    }

    /// Whether a packet of `bytes` may pass now. Takes its tokens if so; leaves all as it is if not.
    #[inline(always)]
    pub const fn conforms(&mut self, now: Nanos, bytes: u32) -> bool {
        let ahead = self.ahead(now).saturating_add(bytes as u64 * self.cost as u64);
        let conforms = ahead <= self.tolerance;
        if conforms {
            self.set_ahead(now, ahead);
        }
        conforms
    }

    /// What [`Self::conforms`] would answer, without taking tokens: ask all meters of a packet first, then charge all or none.
    #[inline(always)]
    pub const fn would_conform(&self, now: Nanos, bytes: u32) -> bool {
        self.ahead(now).saturating_add(bytes as u64 * self.cost as u64) <= self.tolerance
    }

    /// Takes a packet's tokens without asking, as far as the clock reaches.
    #[inline(always)]
    pub(crate) const fn charge(&mut self, now: Nanos, bytes: u32) {
        self.set_ahead(now, self.ahead(now).saturating_add(self.worth(bytes)));
    }

    /// A packet's worth of time, in units of 2^-shift ns.
    #[inline(always)]
    pub(crate) const fn worth(&self, bytes: u32) -> u64 {
        bytes as u64 * self.cost as u64
    }

    /// For how long the bucket has been full, in the same units.
    #[inline(always)]
    pub(crate) const fn spare(&self, now: Nanos) -> u64 {
        if self.full_at >= now.0 || self.cost == u32::MAX {
            return 0;
        }
        let nanos = now.0 - self.full_at;
        let cap = u64::MAX >> (1 + MAX_SHIFT);
        ((if nanos < cap { nanos } else { cap }) << self.shift) - self.fraction as u64
    }

    /// Forgets for how long the bucket has been full.
    #[inline(always)]
    pub(crate) const fn settle(&mut self, now: Nanos) {
        self.set_ahead(now, self.ahead(now));
    }

    /// How much of its burst is used, in units that meters of the same rate share: for whoever is to go on with it elsewhere.
    pub const fn used(&self, now: Nanos) -> u64 {
        self.ahead(now)
    }

    /// So much of its burst is used, as [`Self::used`] said of a meter of the same rate; more than there is of it is all.
    pub fn use_up(&mut self, now: Nanos, used: u64) {
        self.set_ahead(now, used.min(self.tolerance));
    }

    /// Bytes that would conform now.
    pub fn available(&self, now: Nanos) -> u64 {
        let left = self.tolerance.saturating_sub(self.ahead(now));
        left.checked_div(u64::from(self.cost)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A token bucket in exact arithmetic: tokens in units of 1 / (8e9) byte, so that a nanosecond is worth `rate` of them.
    struct Exact {
        tokens: u128,
        burst: u128,
        rate: u128,
        last: u64,
    }

    const BYTE: u128 = 8_000_000_000;

    impl Exact {
        fn new(rate: u64, burst: u32) -> Self {
            let burst = u128::from(burst) * BYTE;
            Self { tokens: burst, burst, rate: u128::from(rate), last: 0 }
        }

        fn refill(&mut self, now: Nanos) {
            let earned = u128::from(now.0 - self.last) * self.rate;
            self.tokens = (self.tokens + earned).min(self.burst);
            self.last = now.0;
        }

        fn conforms(&mut self, now: Nanos, bytes: u32) -> bool {
            self.refill(now);
            let cost = u128::from(bytes) * BYTE;
            let conforms = cost <= self.tokens;
            if conforms {
                self.tokens -= cost;
            }
            conforms
        }
    }

    /// The rates of the standard's range, evenly over its orders of magnitude.
    fn rates() -> impl Strategy<Value = u64> {
        (3.0_f64..11.61).prop_map(|exponent| 10_f64.powf(exponent) as u64)
    }

    fn sizes() -> impl Strategy<Value = Vec<u32>> {
        prop_oneof![
            prop::collection::vec(Just(64_u32), 1..8),
            prop::collection::vec(prop_oneof![Just(64_u32), Just(576), Just(1500)], 1..8),
            prop::collection::vec(40_u32..9000, 1..8),
        ]
    }

    proptest! {
        /// Offered more than the rate, in any mix and rhythm, what passes is the rate times the time, plus the burst.
        #[test]
        fn passes_its_rate_within_a_per_cent(rate in rates(), sizes in sizes(), overload in 1.1_f64..5.0, start in 0_u64..1 << 62) {
            let burst = 20_000;
            let mut meter = Meter::new(MeterConfig { rate_bps: rate, burst_bytes: burst });
            let mut passed = 0_u64;
            let mut end = start;
            let packets = 20_000;
            // A double holds 53 bits: keep the offset apart so that fast rates keep their fractions.
            let mut offset = 0.0_f64;
            for i in 0..packets {
                let size = sizes[i % sizes.len()];
                end = start + offset as u64;
                if meter.conforms(Nanos(end), size) {
                    passed += u64::from(size);
                }
                offset += f64::from(size) * 8e9 / rate as f64 / overload;
            }
            let earned = rate as f64 * (end - start) as f64 / 8e9;
            let spare = f64::from(burst) + 9_000.0;
            prop_assert!(passed as f64 <= earned * 1.01 + f64::from(burst) + 1.0, "{passed} of {earned}");
            prop_assert!(passed as f64 >= earned * 0.99 - spare + f64::from(burst), "{passed} of {earned}");
        }

        /// Decision by decision against exact tokens: they may differ only where the exact bucket is within
        /// the rounding error of the cost (a per mille of what has been metered since it was last full) of the packet.
        #[test]
        fn decides_as_exact_arithmetic_does(
            rate in rates(),
            burst in 1_500_u32..1 << 24,
            packets in prop::collection::vec((0_u32..9000, 0.0_f64..2.0), 1..200),
        ) {
            let mut meter = Meter::new(MeterConfig { rate_bps: rate, burst_bytes: burst });
            let mut exact = Exact::new(rate, burst);
            let mut now = Nanos(0);
            for (bytes, pace) in packets {
                now = now.plus((f64::from(bytes) * 8e9 / rate as f64 * pace) as u64);
                exact.refill(now);
                let before = exact.tokens;
                let cost = u128::from(bytes) * BYTE;
                let ours = meter.conforms(now, bytes);
                let theirs = exact.conforms(now, bytes);
                if ours != theirs {
                    let slack = exact.burst / 1_000 + BYTE;
                    prop_assert!(before.abs_diff(cost) <= slack, "{before} tokens, {cost} wanted");
                    // Follow the meter, or the two histories are no longer comparable.
                    exact.tokens = if ours { before.saturating_sub(cost) } else { before };
                }
                let available = u128::from(meter.available(now)) * BYTE;
                prop_assert!(available.abs_diff(exact.tokens) <= exact.burst / 500 + 400 * BYTE);
            }
        }

        /// Rates whose cost per byte is a whole number of units are exact, bit for bit.
        #[test]
        fn is_exact_where_the_cost_is_whole(
            rate in prop::sample::select(vec![1_000_u64, 8_000, 64_000, 1_000_000, 100_000_000, 1_000_000_000, 8_000_000_000]),
            burst in 0_u32..100_000,
            packets in prop::collection::vec((0_u32..9000, 0_u64..200_000_000), 1..100),
        ) {
            let mut meter = Meter::new(MeterConfig { rate_bps: rate, burst_bytes: burst });
            let mut exact = Exact::new(rate, burst);
            let mut now = Nanos(0);
            for (bytes, gap) in packets {
                now = now.plus(gap * 1_000_000 / rate);
                let would = meter.would_conform(now, bytes);
                let ours = meter.conforms(now, bytes);
                prop_assert_eq!(ours, would);
                prop_assert_eq!(ours, exact.conforms(now, bytes));
                prop_assert_eq!(u128::from(meter.available(now)), exact.tokens / BYTE);
            }
        }

        /// No values overflow or panic; zero bytes always conform.
        #[test]
        fn accepts_any_numbers(rate: u64, burst: u32, calls in prop::collection::vec((any::<u64>(), any::<u32>()), 0..20)) {
            let mut meter = Meter::new(MeterConfig { rate_bps: rate, burst_bytes: burst });
            for (now, bytes) in calls {
                meter.conforms(Nanos(now), bytes);
                meter.available(Nanos(now));
                meter = meter.reconfigured(MeterConfig { rate_bps: rate ^ now, burst_bytes: bytes }, Nanos(now));
            }
        }
    }

    #[test]
    fn cost_is_within_a_per_cent_over_the_whole_range() {
        for rate in
            [2, 1_000, 1_001, 999_999, 1_000_000_007, 400_000_000_000, 399_999_999_999, 5_000_000_000_000]
        {
            let meter = Meter::new(MeterConfig { rate_bps: rate, burst_bytes: 0 });
            let nanos = f64::from(meter.cost) / 2_f64.powi(meter.shift.into());
            let error = (nanos * rate as f64 / 8e9 - 1.0).abs();
            assert!(error < 0.01, "{rate}: {error}");
            assert!(rate > 400_000_000_000 || error < 0.0004, "{rate}: {error}");
        }
    }

    #[test]
    fn is_small_and_knows_its_extremes() {
        assert_eq!(size_of::<Meter>(), 24);
        let mut closed = Meter::new(MeterConfig { rate_bps: 0, burst_bytes: u32::MAX });
        assert!(!closed.conforms(Nanos(u64::MAX), 1));
        let mut open = Meter::unlimited();
        assert!((0..100).all(|_| open.conforms(Nanos(5), u32::MAX)) && open.is_unlimited());
        assert_eq!(open.available(Nanos(0)), u64::MAX);
    }

    #[test]
    fn a_long_pause_is_worth_one_burst_and_no_more() {
        let mut meter = Meter::new(MeterConfig { rate_bps: 1_000, burst_bytes: 3_000 });
        assert!(meter.conforms(Nanos(0), 3_000));
        assert!(!meter.conforms(Nanos(0), 1));
        for years in [1_u64, 100, 500] {
            let now = Nanos(years * 365 * 86_400 * Nanos::SECOND);
            assert!(meter.conforms(now, 1_500) && meter.conforms(now, 1_500) && !meter.conforms(now, 1));
            assert!(!meter.conforms(now.plus(7_999_999), 1) && meter.conforms(now.plus(8_000_000), 1));
        }
    }

    #[test]
    fn a_changed_rate_grants_no_new_burst() {
        let config = MeterConfig { rate_bps: 1_000_000, burst_bytes: 10_000 };
        let mut meter = Meter::new(config);
        assert!(meter.conforms(Nanos(0), 7_500));
        let faster = meter.reconfigured(MeterConfig { rate_bps: 2_000_000, burst_bytes: 20_000 }, Nanos(0));
        assert_eq!(faster.available(Nanos(0)), 5_000);
        assert_eq!(Meter::unlimited().reconfigured(config, Nanos(9)).available(Nanos(9)), 10_000);
    }

    #[test]
    fn bursts_by_time() {
        assert_eq!(MeterConfig::with_burst_time(80_000_000, 10_000_000, 9_000).burst_bytes, 100_000);
        assert_eq!(MeterConfig::with_burst_time(1_000, 10_000_000, 9_000).burst_bytes, 9_000);
        assert_eq!(MeterConfig::with_burst_time(u64::MAX, u64::MAX, 9_000).burst_bytes, u32::MAX);
    }
}
