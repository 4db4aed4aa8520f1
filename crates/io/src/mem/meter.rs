//! The meters of a [`MemSwitch`](super::MemSwitch): RFC 2697 without an excess burst, as the text tells it.
//!
//! In arithmetic of its own, exact and without a thought for speed: what it polices together with software is judged as a whole.

use super::counter::Counter;
use super::switch::FlowTableConfig;
use tables::{MeterConfig, Nanos};

/// A byte, in units of which a nanosecond brings as many as the rate has bits a second.
const BYTE: u128 = 8_000_000_000;

/// A token bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    config: MeterConfig,
    /// In the units of [`BYTE`].
    tokens: u128,
    filled: Nanos,
    /// What it had no tokens for.
    pub dropped: Counter,
    /// Whose it is.
    pub owner: u64,
}

impl Bucket {
    /// A full one.
    pub fn new(config: MeterConfig, owner: u64, now: Nanos) -> Self {
        let tokens = u128::from(config.burst_bytes) * BYTE;
        Self { config, tokens, filled: now, dropped: Counter::default(), owner }
    }

    fn fill(&mut self, now: Nanos) {
        let earned = u128::from(now.since(self.filled)) * u128::from(self.config.rate_bps);
        self.tokens = (self.tokens + earned).min(u128::from(self.config.burst_bytes) * BYTE);
        self.filled = self.filled.max(now);
    }

    /// Another rate and size, with the same tokens as far as there is room.
    pub fn set(&mut self, config: MeterConfig, now: Nanos) {
        self.fill(now);
        self.config = config;
        self.fill(now);
    }

    /// Takes a packet's tokens if they are there, and counts it if not.
    pub fn passes(&mut self, bytes: usize, now: Nanos, table: &FlowTableConfig) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(bytes as u128 * BYTE);
        if let Some(left) = left {
            self.tokens = left;
        } else {
            self.dropped.count(bytes, now, table);
        }
        left.is_some()
    }
}
