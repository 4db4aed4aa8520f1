//! How do I find it fast?
//!
//! **Problem.** Between the bytes of a packet and what must happen to it lie look-ups: of a session by address or tunnel, of a
//! next hop by prefix, of the time and of what a meter has left. At ten million packets a second a core has 200 to 300 cycles for all
//! of a packet, and one access to DRAM that it waits for costs 300 to 440. The same access among twenty that are under way
//! together costs 41 to 60. So these tables are built for two things: to read one cache line per look-up, and to say early which.
//!
//! **Model.** Every table has an owner and no locks: it belongs to one shard, and a shard to one worker. Look-ups come in phases or
//! in bulk, behind one trait ([`lookup`]); a single one is the special case. Time and randomness (hash seeds) are arguments, so that the same code runs
//! in a worker, a replay and a test. Everything that grows has a limit, or is bounded by something that has.
//!
//! | module | answers | cost |
//! |---|---|---|
//! | [`lookup`] | how does a caller ask all of these, and a device that answers later? | nothing |
//! | [`hash`] | which value has this key? | one line, hit or miss; 10 to 20 bytes an entry |
//! | [`classify`] | which flow of a fixed number has this 5-tuple? | one line or two (IPv4), two or three (IPv6); 18 and 73 bytes a flow |
//! | [`l2`] | behind which port is this MAC address? | one line or two; 18 bytes an entry |
//! | [`cuckoo`] | (how are these and MAC addresses hashed, and how does a full bucket get room?) | |
//! | [`image`] | what does a device's copy of a table look like, and what has changed? | a bit and a word per changed line |
//! | [`flow`] | what is known of this flow? | two lines; 96 to 120 bytes a flow |
//! | [`lpm`] | which route contains this address? | one to three entries (IPv4; with a root of 64 MiB one or two), five for an IPv6 /48 |
//! | [`memo`] | what was last heard of this key? | one line; 8 bytes an entry |
//! | [`meter`] | is this packet within the rate? | a dozen instructions, 24 bytes |
//! | [`marker`] | how far within its rates is this packet? | two meters, 64 bytes |
//! | [`shared`] | the same, of many owners | a comparison, and two atomic exchanges a lease |
//! | [`limiter`] | may this event happen again already? | as a meter |
//! | [`wheel`] | what is due? | constant per timer set, moved or cancelled |
//! | [`slab`] | which record has this number? | two bounds checks |
//! | [`supply`] | where does a growing table's memory come from? | nothing per packet |
//! | [`clock`] | what time is it? | a counter, a multiplication |
//! | [`prefetch`] | (may I have this line soon?) | one instruction |
//! | [`conformance`] | does a table answer as [`lookup`] says? | for tests |
//!
//! **Example.** A burst against many maps at once, in phases:
//!
//! ```
//! use tables::{BulkMap, Lookup};
//! let mut shards: Vec<BulkMap<u32, u32>> = (0..512).map(|shard| BulkMap::new(0x5eed ^ shard)).collect();
//! for address in 0x0a00_0000..0x0a00_1000_u32 {
//!     shards[address as usize % 512].insert(address, address & 0xfff)?;
//! }
//! let burst = [0x0a00_0007_u32, 0x0a00_0abc, 0x0a01_0000];
//! let shard = |address: u32| &shards[address as usize % 512];
//! let probes = burst.map(|address| shard(address).prepare(&address));
//! let slots: Vec<_> = burst.iter().zip(probes).map(|(key, probe)| shard(*key).finish(probe, key)).collect();
//! assert_eq!(slots, [Some(7), Some(0xabc), None]);
//! # Ok::<(), tables::Full>(())
//! ```
//!
//! **When not to use it.** For control-side bookkeeping that no packet waits for: std's maps are simpler, and safe for
//! keys of any kind. For anything shared between threads, but for [`shared`].
//!
//! **Unsafe code** is confined to `simd` (vectors), [`prefetch`] and [`clock`]; the compiler refuses it elsewhere.
#![deny(unsafe_code)]

mod chunks;
pub mod classify;
#[allow(unsafe_code)]
pub mod clock;
pub mod conformance;
pub mod cuckoo;
mod dial;
pub mod flow;
pub mod hash;
pub mod image;
pub mod l2;
pub mod limiter;
pub mod lookup;
pub mod lpm;
pub mod marker;
pub mod memo;
pub mod meter;
#[allow(unsafe_code)]
pub mod prefetch;
mod segments;
pub mod shared;
#[allow(unsafe_code)]
mod simd;
pub mod slab;
pub mod supply;
pub mod time;
pub mod wheel;

pub use classify::{Flows4, Flows6, Tuple4, Tuple6};
pub use clock::Tsc;
pub use cuckoo::CuckooError;
pub use flow::{FlowError, FlowId, FlowKey, FlowProbe, FlowTable, FlowValue};
pub use hash::{BulkMap, Full, Probe, TableKey};
pub use image::Image;
pub use l2::L2;
pub use limiter::RateLimiter;
pub use lookup::Lookup;
pub use lpm::{Dir24, Lpm4, Lpm6, LpmError};
pub use marker::{Colour, Marker, MarkerConfig};
pub use memo::Memo;
pub use meter::{Meter, MeterConfig};
pub use shared::{Lease, SharedMarker};
pub use simd::Processor;
pub use slab::Slab;
pub use supply::{Piece, Supply, SupplyCounters, Wish};
pub use time::Nanos;
pub use wheel::{TimerId, Wheel};
