//! Slices: what limits and counts the packets of many sessions together (TS 23.501 §5.15, TS 28.541 "dLThptPerSlice").
//!
//! A slice's subscribers live in all shards and on all workers. Its rates are [`SharedMarker`]s, of which each worker holds a lease; its
//! counters are each worker's own, and whoever shows them adds them up. To a rule the slice is one more meter.

use crate::counters::Traffic;
use counters::Count;
use std::sync::Arc;
use tables::{Colour, Lease, Nanos, SharedMarker};

/// Slices of a process, at most.
pub const MAX_SLICES: usize = 1 << 12;

/// A slice's rates, shared by all workers; `None`: not limited, only counted.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// From the UEs.
    pub uplink: Option<Arc<SharedMarker>>,
    /// To the UEs.
    pub downlink: Option<Arc<SharedMarker>>,
}

counters::counters! {
    /// What a slice's packets came to, in one direction.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SliceTraffic {
        /// Forwarded, within what is guaranteed.
        pub green: Traffic = "green";
        /// Forwarded beyond that.
        pub yellow: Traffic = "yellow";
        /// Dropped beyond the maximum.
        pub red: Traffic = "red";
    }
}

/// One direction of a slice, as a worker has it.
#[derive(Clone, Debug, Default)]
pub struct Share {
    marker: Option<Arc<SharedMarker>>,
    lease: Lease,
    /// What this worker counted.
    pub traffic: SliceTraffic,
}

impl Share {
    /// A worker's shares of slices: uplink and downlink of each in turn.
    pub fn of(slices: &[Slice]) -> Vec<Self> {
        let both = slices.iter().take(MAX_SLICES).flat_map(|slice| [&slice.uplink, &slice.downlink]);
        both.map(|marker| Self { marker: marker.clone(), ..Self::default() }).collect()
    }

    /// Whether it is only counted.
    pub const fn is_unlimited(&self) -> bool {
        self.marker.is_none()
    }

    /// Counts packets that a device has forwarded.
    pub fn count(&mut self, traffic: Traffic) {
        self.traffic.green = self.traffic.green.plus(traffic);
    }

    /// The colour of a packet that comes as `before`. Spends nothing yet; counts one that is refused for good.
    #[inline]
    pub fn colour(&mut self, now: Nanos, bytes: u16, before: Colour, last_word: bool) -> Colour {
        match &self.marker {
            Some(marker) => {
                let colour = self.lease.colour(marker, now, bytes.into(), before);
                if last_word && colour == Colour::Red && before != Colour::Red {
                    self.traffic.red.add(bytes.into());
                }
                colour
            }
            None => before,
        }
    }

    /// Spends a packet's bytes in the colour that it got, and counts it.
    #[inline]
    pub const fn spend(&mut self, bytes: u16, colour: Colour) {
        if self.marker.is_some() {
            self.lease.spend(bytes as u32, colour);
        }
        match colour {
            Colour::Green => self.traffic.green.add(bytes as usize),
            Colour::Yellow => self.traffic.yellow.add(bytes as usize),
            Colour::Red => {}
        }
    }
}
