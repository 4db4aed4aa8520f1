//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod copies;
#[cfg(feature = "cuda")]
mod cuda;
mod devices;
mod fallback;
mod kernels;
#[cfg(feature = "cuda")]
mod nvrtc;
mod ring;
mod sched;
mod sched_host;
mod stand_in;
mod tasks;
