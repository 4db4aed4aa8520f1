//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used)]

mod mirrors;
mod neighbours;
#[cfg(feature = "cuda")]
mod on_gpus;
#[cfg(feature = "cuda")]
#[path = "../../accel/tests/stand_in.rs"]
mod stand_in;
