//! A marker that many owners draw on: the rates of a slice, whose subscribers live in many shards.
//!
//! **Problem.** A [`crate::Marker`] has one owner. What limits all the subscribers of a slice together (TS 23.501 §5.15) has as many
//! as there are workers, and a bucket that all of them write for every packet would travel between their caches for every packet.
//!
//! **Model.** The buckets of a [`SharedMarker`] are single atomic numbers, the time at which each will be full again (ITU-T I.371 annex
//! A). Nobody takes a packet's bytes out of them: an owner takes a *lease* of many packets' bytes, green or yellow as the buckets say,
//! and spends it by itself ([`Lease`]). So the rate is exact over time, whoever uses it and however unevenly; at any moment each owner
//! may hold one lease of each colour that it hasn't spent yet, which is how much the bursts may be exceeded.
//!
//! One rate with two bursts (RFC 2697) is the same but for the other bucket, which gets what the committed one has no room for: the
//! time during which that was full. Whoever moves the committed bucket's number on from before now learns how long that was, and nobody
//! else does; so it is entered once.
//!
//! Markers are colour-aware (RFC 2697 and 2698 §3): a packet never leaves better than it came, unless the marker was made blind.
//!
//! **Cost.** A comparison and a subtraction a packet; two atomic exchanges a lease, which is worth a tenth of a millisecond of the
//! rate, between a packet and 64 KiB.
//!
//! **When not to use it.** With one owner.

use crate::marker::Colour;
use crate::meter::MeterConfig;
use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest lease, in bytes.
const LARGEST: u64 = 1 << 16;
/// What part of a second's bytes a lease is.
const PER_SECOND: u64 = 10_000;

/// Time is counted in units of 2^-6 ns: enough for 290 years, and fine enough for Tbit/s with leases of a packet or more.
const FRACTION: u32 = 6;
/// And the price of a byte in units of 2^-16 of those.
const PRICE: u32 = 16;

#[derive(Debug)]
struct Bucket {
    full_at: AtomicU64,
    /// A byte's time.
    price: u64,
    /// How far ahead of now `full_at` may be.
    depth: u64,
}

impl Bucket {
    fn new(config: MeterConfig) -> Self {
        // Below 1 kbit/s, PFCP's unit, a rate is as good as closed.
        let price = match u128::from(config.rate_bps) {
            0..1000 => u64::MAX,
            rate => ((8 * u128::from(Nanos::SECOND)) << (FRACTION + PRICE)).div_ceil(rate) as u64,
        };
        let depth = (u128::from(price) * u128::from(config.burst_bytes)) >> PRICE;
        let closed = price == u64::MAX;
        Self { full_at: AtomicU64::new(0), price, depth: if closed { 0 } else { depth as u64 } }
    }

    /// Takes bytes out, if they are there: for how long the bucket had been full, then.
    fn take(&self, now: Nanos, bytes: u32) -> Option<u64> {
        if self.price == u64::MAX {
            return (bytes == 0).then_some(0);
        }
        let now = now.0.saturating_mul(1 << FRACTION);
        let cost = self.cost(bytes);
        let limit = now.saturating_add(self.depth);
        let taken = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            let next = full_at.max(now).saturating_add(cost);
            (next <= limit).then_some(next)
        });
        taken.ok().map(|full_at| now.saturating_sub(full_at))
    }

    /// For how long it has been full; from now on it counts as full since now.
    fn settle(&self, now: Nanos) -> u64 {
        let now = now.0.saturating_mul(1 << FRACTION);
        now.saturating_sub(self.full_at.fetch_max(now, Ordering::Relaxed))
    }

    /// The time that so many bytes take.
    fn cost(&self, bytes: u32) -> u64 {
        ((u128::from(self.price) * u128::from(bytes)) >> PRICE) as u64
    }
}

/// What passes beyond what is committed.
#[derive(Debug)]
enum Other {
    /// A second rate.
    Peak(Bucket),
    /// A second burst: its size, and what it lacks, in the committed bucket's units of time.
    Excess { size: u64, lacks: AtomicU64 },
}

/// See the module's documentation.
#[derive(Debug)]
pub struct SharedMarker {
    committed: Bucket,
    other: Other,
    /// Bytes of a lease.
    lease: u32,
    blind: bool,
}

impl SharedMarker {
    /// Two rates (RFC 2698), with full buckets. A committed rate above the peak rate is taken as the peak rate.
    pub fn new(committed: MeterConfig, peak: MeterConfig) -> Self {
        let committed = MeterConfig { rate_bps: committed.rate_bps.min(peak.rate_bps), ..committed };
        let other = Other::Peak(Bucket::new(peak));
        Self { committed: Bucket::new(committed), other, lease: lease(peak), blind: false }
    }

    /// One rate and two bursts (RFC 2697), both full.
    pub fn single_rate(committed: MeterConfig, excess_burst: u32) -> Self {
        let bucket = Bucket::new(committed);
        let size = if bucket.price == u64::MAX { 0 } else { bucket.cost(excess_burst) };
        let other = Other::Excess { size, lacks: AtomicU64::new(0) };
        Self { committed: bucket, other, lease: lease(committed), blind: false }
    }

    /// Yellow packets are judged as green ones are: colour-blind.
    #[must_use]
    pub fn blind(self, blind: bool) -> Self {
        Self { blind, ..self }
    }

    /// Takes up to `wanted` bytes, at least `least`, for packets that come as `before`; says how many of which colour.
    fn take(&self, now: Nanos, [wanted, least]: [u32; 2], before: Colour) -> Option<(u32, Colour)> {
        let green = before == Colour::Green;
        match &self.other {
            Other::Peak(peak) => {
                // Near the limit a whole lease may be more than there is.
                let granted = [wanted, least].into_iter().find(|bytes| peak.take(now, *bytes).is_some())?;
                let committed = green && self.committed.take(now, granted).is_some();
                Some((granted, if committed { Colour::Green } else { Colour::Yellow }))
            }
            Other::Excess { size, lacks } => {
                let regain = |spare: u64| {
                    // Most packets find nothing to be regained.
                    if spare > 0 {
                        let regained = |lacks: u64| Some(lacks.saturating_sub(spare));
                        let _ = lacks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, regained);
                    }
                };
                for bytes in [wanted, least] {
                    if green && let Some(spare) = self.committed.take(now, bytes) {
                        regain(spare);
                        return Some((bytes, Colour::Green));
                    }
                }
                regain(self.committed.settle(now));
                for bytes in [wanted, least] {
                    let more = |lacks: u64| {
                        lacks.checked_add(self.committed.cost(bytes)).filter(|lacks| lacks <= size)
                    };
                    if lacks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
                        return Some((bytes, Colour::Yellow));
                    }
                }
                None
            }
        }
    }
}

/// Bytes of a lease.
fn lease(of: MeterConfig) -> u32 {
    (of.rate_bps / 8 / PER_SECOND).min(LARGEST).min(u64::from(of.burst_bytes) / 4) as u32
}

/// What an owner has taken and not spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    green: u32,
    yellow: u32,
}

impl Lease {
    /// The colour of a packet of `bytes` that comes as `before`; takes a lease if what is left doesn't do. Spends nothing: see
    /// [`Self::spend`].
    #[inline]
    pub fn colour(&mut self, marker: &SharedMarker, now: Nanos, bytes: u32, before: Colour) -> Colour {
        let before = if marker.blind && before == Colour::Yellow { Colour::Green } else { before };
        if before == Colour::Green && self.green >= bytes {
            return Colour::Green;
        }
        if before != Colour::Red && self.yellow >= bytes {
            return Colour::Yellow;
        }
        self.renew(marker, now, bytes, before)
    }

    #[cold]
    fn renew(&mut self, marker: &SharedMarker, now: Nanos, bytes: u32, before: Colour) -> Colour {
        if before == Colour::Red {
            return Colour::Red;
        }
        let Some((granted, colour)) = marker.take(now, [marker.lease.max(bytes), bytes], before) else {
            return Colour::Red;
        };
        let kept = if colour == Colour::Green { &mut self.green } else { &mut self.yellow };
        *kept = kept.saturating_add(granted);
        colour
    }

    /// Spends a packet's bytes in the colour that it got.
    #[inline]
    pub const fn spend(&mut self, bytes: u32, colour: Colour) {
        match colour {
            Colour::Green => self.green = self.green.saturating_sub(bytes),
            Colour::Yellow => self.yellow = self.yellow.saturating_sub(bytes),
            Colour::Red => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whoever sends how much, at any rate: green is the committed rate and all that passes the peak rate, within a per cent and
        /// what the bursts and the leases are worth.
        #[test]
        fn the_rate_is_exact_however_it_is_shared(
            committed in (4.806_f64..11.0).prop_map(|exponent| 10_f64.powf(exponent) as u64),
            ratio in 1.0_f64..3.0,
            owners in 1_usize..6,
            sizes in prop::collection::vec(40_u32..9000, 1..8),
            picks in prop::collection::vec(any::<usize>(), 1..50),
        ) {
            let peak = (committed as f64 * ratio) as u64;
            let burst = |rate: u64| MeterConfig::with_burst_time(rate, 1_000_000, 50_000);
            let marker = SharedMarker::new(burst(committed), burst(peak));
            let mut leases = vec![Lease::default(); owners];
            let (mut green, mut all, mut at) = (0_u64, 0_u64, 0.0_f64);
            let start = 1_u64 << 40;
            for packet in 0..20_000 {
                let size = sizes[packet % sizes.len()];
                let lease = &mut leases[picks[packet % picks.len()] % owners];
                let now = Nanos(start + at as u64);
                let colour = lease.colour(&marker, now, size, Colour::Green);
                lease.spend(size, colour);
                green += if colour == Colour::Green { u64::from(size) } else { 0 };
                all += if colour == Colour::Red { 0 } else { u64::from(size) };
                at += f64::from(size) * 8e9 / committed as f64 / 4.0;
            }
            let held = owners as f64 * 2.0 * f64::from(marker.lease + 9_000);
            let near = |bytes: u64, rate: u64| {
                let earned = rate as f64 * at / 8e9;
                let slack = f64::from(burst(rate).burst_bytes) + held;
                bytes as f64 <= earned * 1.01 + slack && bytes as f64 >= earned * 0.99 - slack
            };
            prop_assert!(near(green, committed), "{green} green");
            prop_assert!(near(all, peak), "{all} in all");
        }

        /// RFC 2697 step by step in exact arithmetic, one owner, rates at which a byte takes whole nanoseconds and leases of a packet.
        #[test]
        fn one_rate_and_two_bursts_are_as_rfc_2697_says(
            rate in prop::sample::select(vec![8_000_u64, 64_000, 100_000]),
            cbs in 1_500_u32..20_000,
            ebs in 0_u32..40_000,
            blind: bool,
            packets in prop::collection::vec((0_u64..200_000_000, 40_u32..1500, 0_u8..3), 1..300),
        ) {
            let marker = SharedMarker::single_rate(MeterConfig { rate_bps: rate, burst_bytes: cbs }, ebs).blind(blind);
            let mut lease = Lease::default();
            const BYTE: u128 = 8_000_000_000;
            let (sizes, mut tokens) = ([u128::from(cbs) * BYTE, u128::from(ebs) * BYTE], [0_u128; 2]);
            tokens.copy_from_slice(&sizes);
            let mut now = Nanos(1 << 40);
            for (gap, size, before) in packets {
                now = now.plus(gap);
                let before = [Colour::Green, Colour::Yellow, Colour::Red][usize::from(before)];
                let mut more = u128::from(gap) * u128::from(rate);
                for (tokens, size) in tokens.iter_mut().zip(sizes) {
                    let room = more.min(size - *tokens);
                    (*tokens, more) = (*tokens + room, more - room);
                }
                let cost = u128::from(size) * BYTE;
                let seen = if blind && before == Colour::Yellow { Colour::Green } else { before };
                let expected = if seen == Colour::Green && tokens[0] >= cost {
                    tokens[0] -= cost;
                    Colour::Green
                } else if seen != Colour::Red && tokens[1] >= cost {
                    tokens[1] -= cost;
                    Colour::Yellow
                } else {
                    Colour::Red
                };
                let colour = lease.colour(&marker, now, size, before);
                lease.spend(size, colour);
                prop_assert_eq!(colour, expected);
            }
        }

        /// Any numbers: nothing overflows, and a packet never leaves better than it came.
        #[test]
        fn accepts_any_numbers(cir: u64, pir: u64, cbs: u32, pbs: u32, calls in prop::collection::vec((any::<u64>(), any::<u32>(), 0_u8..3), 0..20)) {
            let committed = MeterConfig { rate_bps: cir, burst_bytes: cbs };
            let two = SharedMarker::new(committed, MeterConfig { rate_bps: pir, burst_bytes: pbs });
            for marker in [two, SharedMarker::single_rate(committed, pbs)] {
                let mut lease = Lease::default();
                for (now, bytes, before) in &calls {
                    let before = [Colour::Green, Colour::Yellow, Colour::Red][usize::from(*before)];
                    let colour = lease.colour(&marker, Nanos(*now), *bytes, before);
                    prop_assert!(colour >= before);
                    lease.spend(*bytes, colour);
                }
            }
        }
    }

    #[test]
    fn threads_share_what_there_is() {
        // Nothing flows in: the bursts are all there is, and it is handed out once.
        let config = MeterConfig { rate_bps: 1_000_000, burst_bytes: 1_000_000 };
        let marker = SharedMarker::new(MeterConfig { burst_bytes: 500_000, ..config }, config);
        let now = Nanos(1 << 50);
        let passed = |_| {
            let mut lease = Lease::default();
            let mut sum = [0_u64; 3];
            for _ in 0..10_000 {
                let colour = lease.colour(&marker, now, 100, Colour::Green);
                lease.spend(100, colour);
                sum[colour as usize] += 100;
            }
            sum
        };
        let sums: Vec<[u64; 3]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || passed(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let total = |colour: usize| sums.iter().map(|sum| sum[colour]).sum::<u64>();
        // A lease is an eightieth of the burst; what is left of the last ones is not spent.
        assert!((499_000..=500_000).contains(&total(0)), "{sums:?}");
        assert!((999_000..=1_000_000).contains(&(total(0) + total(1))), "{sums:?}");
    }
}
