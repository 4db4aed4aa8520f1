//! Meters as their standards tell them: buckets of tokens, in exact arithmetic and without a thought for speed. What the datapath
//! has instead is judged by them, so nothing is shared.

use tables::{Colour, Nanos};

/// A byte in units of which a nanosecond brings as many as the rate has bits a second: 8 bits, for 10^9 nanoseconds.
const BYTE: i128 = 8_000_000_000;

/// Tokens that flow in at a rate, up to a size.
#[derive(Clone, Copy)]
struct Bucket {
    rate: u64,
    size: i128,
    tokens: i128,
    at: Nanos,
}

impl Bucket {
    /// A full one.
    fn new(rate: u64, size: i128, now: Nanos) -> Self {
        Self { rate, size, tokens: size, at: now }
    }

    fn of_bytes(rate: u64, bytes: u32, now: Nanos) -> Self {
        // A rate of nothing lets nothing through, its burst included.
        Self::new(rate, if rate == 0 { 0 } else { i128::from(bytes) * BYTE }, now)
    }

    fn fill(&mut self, now: Nanos) {
        self.tokens = self.size.min(self.tokens + i128::from(now.0 - self.at.0) * i128::from(self.rate));
        self.at = now;
    }

    fn has(&self, bytes: u64) -> bool {
        self.tokens >= i128::from(bytes) * BYTE
    }

    fn take(&mut self, bytes: u64) {
        self.tokens -= i128::from(bytes) * BYTE;
    }

    /// What is used of its burst is used of another one's.
    fn pass_on(mut self, mut to: Self, now: Nanos) -> Self {
        self.fill(now);
        if self.size > 0 {
            to.tokens = to.size - (self.size - self.tokens) * to.size / self.size;
        }
        to
    }
}

/// A maximum bit rate: packets pass while the bucket isn't overdrawn, the last of them may overdraw it. Its depth is a time.
#[derive(Clone, Copy)]
pub struct Maximum {
    bucket: Bucket,
    /// As long as there is no rate: when the bucket would be full.
    full_at: i128,
}

impl Maximum {
    pub fn new(rate: Option<u64>, depth: u64, now: Nanos) -> Self {
        let rate = rate.unwrap_or(0);
        Self { bucket: Bucket::new(rate, i128::from(rate) * i128::from(depth), now), full_at: 0 }
    }

    /// Another rate: what was overdrawn is settled as late as it would have been.
    pub fn changed(mut self, rate: Option<u64>, depth: u64, now: Nanos) -> Self {
        self.bucket.fill(now);
        if self.bucket.rate > 0 {
            let (lacks, rate) = (self.bucket.size - self.bucket.tokens, i128::from(self.bucket.rate));
            assert_eq!(lacks % rate, 0, "rates here take whole nanoseconds for a byte");
            self.full_at = i128::from(now.0) + lacks / rate;
        }
        let mut next = Self::new(rate, depth, now);
        let lacks = (self.full_at - i128::from(now.0)).max(0);
        next.bucket.tokens -= lacks * i128::from(next.bucket.rate);
        next.full_at = self.full_at;
        next
    }

    pub fn conforms(&mut self, now: Nanos) -> bool {
        self.bucket.fill(now);
        self.bucket.tokens >= 0
    }

    pub fn take(&mut self, bytes: u64) {
        self.bucket.take(bytes);
    }
}

/// A two-rate three-colour marker (RFC 2698 §3), colour-aware.
#[derive(Clone, Copy)]
pub struct TwoRate {
    committed: Bucket,
    peak: Bucket,
}

impl TwoRate {
    /// Each rate with its burst in bytes. No more is promised than is allowed.
    pub fn new(committed: (u64, u32), peak: (u64, u32), now: Nanos) -> Self {
        let committed = (committed.0.min(peak.0), committed.1);
        Self {
            committed: Bucket::of_bytes(committed.0, committed.1, now),
            peak: Bucket::of_bytes(peak.0, peak.1, now),
        }
    }

    pub fn changed(self, to: Self, now: Nanos) -> Self {
        Self { committed: self.committed.pass_on(to.committed, now), peak: self.peak.pass_on(to.peak, now) }
    }

    pub fn colour(&mut self, now: Nanos, bytes: u64, before: Colour) -> Colour {
        self.committed.fill(now);
        self.peak.fill(now);
        if before == Colour::Red || !self.peak.has(bytes) {
            Colour::Red
        } else if before == Colour::Yellow || !self.committed.has(bytes) {
            Colour::Yellow
        } else {
            Colour::Green
        }
    }

    pub fn charge(&mut self, bytes: u64, colour: Colour) {
        if colour != Colour::Red {
            self.peak.take(bytes);
        }
        if colour == Colour::Green {
            self.committed.take(bytes);
        }
    }
}

/// A rate with a burst of so long, of at least so many bytes.
pub fn burst(rate: u64, nanos: u64, least: u32) -> (u64, u32) {
    let bytes = u128::from(rate) * u128::from(nanos) / BYTE as u128;
    (rate, u32::try_from(bytes).unwrap_or(u32::MAX).max(least))
}

/// One direction of a slice, with one worker that draws on it: it takes a tenth of a millisecond of the peak rate at a time (64 KiB and a
/// quarter of the burst at most), or else what the packet needs, and spends it as it likes.
#[derive(Clone, Copy)]
pub struct Slice {
    marker: TwoRate,
    lease: u64,
    /// Taken and not spent.
    green: u64,
    yellow: u64,
}

impl Slice {
    pub fn new(committed: (u64, u32), peak: (u64, u32)) -> Self {
        let lease = (peak.0 / 8 / 10_000).min(65_536).min(u64::from(peak.1) / 4);
        Self { marker: TwoRate::new(committed, peak, Nanos(0)), lease, green: 0, yellow: 0 }
    }

    /// The colour of a packet that all others let pass, which is spent.
    pub fn spend(&mut self, now: Nanos, bytes: u64, before: Colour) -> Colour {
        let colour = if before == Colour::Green && self.green >= bytes {
            Colour::Green
        } else if before != Colour::Red && self.yellow >= bytes {
            Colour::Yellow
        } else {
            self.renew(now, bytes, before)
        };
        match colour {
            Colour::Green => self.green -= bytes,
            Colour::Yellow => self.yellow -= bytes,
            Colour::Red => {}
        }
        colour
    }

    fn renew(&mut self, now: Nanos, bytes: u64, before: Colour) -> Colour {
        for wanted in [self.lease.max(bytes), bytes] {
            let colour = self.marker.colour(now, wanted, before);
            self.marker.charge(wanted, colour);
            match colour {
                Colour::Green => self.green += wanted,
                Colour::Yellow => self.yellow += wanted,
                Colour::Red => continue,
            }
            return colour;
        }
        Colour::Red
    }
}
