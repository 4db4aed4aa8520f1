//! A two-rate marker that many owners draw on: the rate of a slice, whose subscribers live in many shards.
//!
//! **Problem.** A [`crate::Marker`] has one owner. What limits all the subscribers of a slice together (TS 23.501 §5.15) has as many
//! as there are workers, and a bucket that all of them write for every packet would travel between their caches for every packet.
//!
//! **Model.** The buckets of a [`SharedMarker`] are single atomic numbers, the time at which each will be full again (ITU-T I.371 annex
//! A). Nobody takes a packet's bytes out of them: an owner takes a *lease* of many packets' bytes, green or yellow as the buckets say,
//! and spends it by itself ([`Lease`]). So the rate is exact over time, whoever uses it and however unevenly; at any moment each owner
//! may hold one lease of each colour that it hasn't spent yet, which is how much the bursts may be exceeded.
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

    /// Takes bytes out, if they are there.
    fn take(&self, now: Nanos, bytes: u32) -> bool {
        if self.price == u64::MAX {
            return bytes == 0;
        }
        let now = now.0.saturating_mul(1 << FRACTION);
        let cost = ((u128::from(self.price) * u128::from(bytes)) >> PRICE) as u64;
        let limit = now.saturating_add(self.depth);
        let taken = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            let next = full_at.max(now).saturating_add(cost);
            (next <= limit).then_some(next)
        });
        taken.is_ok()
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct SharedMarker {
    committed: Bucket,
    peak: Bucket,
    /// Bytes of a lease.
    lease: u32,
}

impl SharedMarker {
    /// With full buckets. A committed rate above the peak rate is taken as the peak rate.
    pub fn new(committed: MeterConfig, peak: MeterConfig) -> Self {
        let lease = (peak.rate_bps / 8 / PER_SECOND).min(LARGEST).min(u64::from(peak.burst_bytes) / 4);
        let committed = MeterConfig { rate_bps: committed.rate_bps.min(peak.rate_bps), ..committed };
        Self { committed: Bucket::new(committed), peak: Bucket::new(peak), lease: lease as u32 }
    }
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
        // Near the limit a whole lease may be more than there is.
        let wanted = [marker.lease.max(bytes), bytes];
        let Some(granted) = wanted.into_iter().find(|bytes| marker.peak.take(now, *bytes)) else {
            return Colour::Red;
        };
        if before == Colour::Green && marker.committed.take(now, granted) {
            self.green = self.green.saturating_add(granted);
            Colour::Green
        } else {
            self.yellow = self.yellow.saturating_add(granted);
            Colour::Yellow
        }
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

        /// Any numbers: nothing overflows, and a packet never leaves better than it came.
        #[test]
        fn accepts_any_numbers(cir: u64, pir: u64, cbs: u32, pbs: u32, calls in prop::collection::vec((any::<u64>(), any::<u32>(), 0_u8..3), 0..20)) {
            let marker = SharedMarker::new(
                MeterConfig { rate_bps: cir, burst_bytes: cbs },
                MeterConfig { rate_bps: pir, burst_bytes: pbs },
            );
            let mut lease = Lease::default();
            for (now, bytes, before) in calls {
                let before = [Colour::Green, Colour::Yellow, Colour::Red][usize::from(before)];
                let colour = lease.colour(&marker, Nanos(now), bytes, before);
                prop_assert!(colour >= before);
                lease.spend(bytes, colour);
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
