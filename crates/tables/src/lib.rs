//! How do I find it fast?
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod clock;
pub mod hash;
pub mod meter;
#[allow(unsafe_code)]
pub mod prefetch;
#[allow(unsafe_code)]
mod simd;
pub mod time;

pub use clock::Tsc;
pub use hash::{BulkMap, Full, Probe, TableKey};
pub use meter::{Meter, MeterConfig};
pub use time::Nanos;
