//! Whom workers asked for: what tells an answer to another worker's question from one that nobody asked for.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use tables::hash::mix;

/// Whom workers have asked for lately: shared, so that each knows an answer to any other's question from one that nobody asked for.
/// A keyed tag for each, which a later one may overwrite: then the next question puts it back.
#[derive(Debug)]
pub struct Asked {
    seed: u64,
    tags: Box<[AtomicU64]>,
}

impl Default for Asked {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Asked {
    /// Nobody was asked. `seed`: random.
    pub fn new(seed: u64) -> Self {
        Self { seed, tags: (0..8192).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Where its tag is, and which.
    fn place(&self, interface: u16, address: IpAddr) -> (Option<&AtomicU64>, u64) {
        let bits = match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let kind = u64::from(interface) << 1 | u64::from(address.is_ipv6());
        let [a, b, c] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let halves = mix(bits as u64 ^ self.seed ^ a, (bits >> 64) as u64 ^ self.seed.rotate_left(31) ^ b);
        let tag = mix(halves, kind ^ self.seed.rotate_left(17) ^ c).max(1);
        (self.tags.get((tag >> 32) as usize % self.tags.len()), tag)
    }

    /// Somebody asks.
    pub(crate) fn ask(&self, interface: u16, address: IpAddr) {
        if let (Some(place), tag) = self.place(interface, address) {
            place.store(tag, Ordering::Relaxed);
        }
    }

    /// Whether somebody asked; from now on nobody did.
    pub(crate) fn answered(&self, interface: u16, address: IpAddr) -> bool {
        let (place, tag) = self.place(interface, address);
        place
            .is_some_and(|place| place.compare_exchange(tag, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok())
    }
}
