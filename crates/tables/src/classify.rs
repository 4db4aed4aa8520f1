//! Flows by their 5-tuple, in flat tables that devices can have copies of.
//!
//! **Problem.** To which of sixteen million flows does a packet belong? The key has 13 bytes (IPv4) or 37 (IPv6), the table is in DRAM, and so
//! each line that is read counts, as does how many reads are under way at once.
//!
//! **Layout.** Cuckoo hashing in buckets of a line ([`crate::cuckoo`]), word by word in [`crate::image`]:
//!
//! - [`Flows4`]: a bucket is four slots of 16 bytes, each with the whole key and a value of 24 bits. A hit at home (four in five, where 90 % of
//!   all slots are taken) reads one line, another hit two. A miss mostly reads one: which keys may be elsewhere is noted beside the lines (`cuckoo::strays`).
//! - [`Flows6`]: a bucket is eight tags of 32 bits with the numbers of their records; a record is a line with the whole key and a value of 32 bits. A
//!   hit reads two lines, or three, a miss two.
//!
//! **Bulks** go through both phases in groups of sixteen, hashed and compared with the widest vectors that the processor has, each group while the next
//! one's lines are on their way.
//!
//! ```
//! use tables::classify::{Flows4, Tuple4};
//! use tables::Lookup;
//! let key = |port| Tuple4::new("10.0.0.1".parse().unwrap(), "192.0.2.9".parse().unwrap(), 17, port, 53);
//! let mut flows = Flows4::new(0x5eed, 1_000_000)?;
//! flows.insert(key(4000), 7)?;
//! let mut found = [None; 2];
//! flows.lookup_bulk(&[key(4000), key(4001)], &mut found);
//! assert_eq!(found, [Some(7), None]);
//! # Ok::<(), tables::CuckooError>(())
//! ```
//!
//! **Cost.** 19.2 bytes a flow for IPv4, 73 for IPv6, taken when the table is made. `docs/lookups.md` has look-ups and insertions per second.
//!
//! **When not to use it.** Where flows age, carry state or grow from nothing: that is [`crate::FlowTable`], which the user plane uses.

mod six;

use crate::cuckoo::slots::{Short, Slot, Slots};
use crate::image::Kind;
pub use six::{Flows6, TagProbe, Tuple6};
pub(crate) use six::{VALUE, opposite};
use std::net::Ipv4Addr;

/// The slots of [`Flows4`].
#[derive(Clone, Copy, Debug)]
pub enum Flow4 {}

impl Slot for Flow4 {
    const MASK: [u32; 4] = [u32::MAX, u32::MAX, u32::MAX, 0xff];
    const KIND: Kind = Kind::Flow4;
}

/// An IPv4 5-tuple.
pub type Tuple4 = Short<Flow4>;

impl Tuple4 {
    /// Of these addresses, protocol and ports.
    pub const fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        source_port: u16,
        destination_port: u16,
    ) -> Self {
        let ports = (source_port as u32) << 16 | destination_port as u32;
        Self::of([source.to_bits(), destination.to_bits(), ports, protocol as u32])
    }
}

/// IPv4 flows, each with a value of up to [`Slots::MAX_VALUE`]; see the module's documentation.
pub type Flows4 = Slots<Flow4>;

#[cfg(test)]
mod tests;
