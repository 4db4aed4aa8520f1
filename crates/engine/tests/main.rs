//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod deaths;
mod energy;
mod moves;
mod queues;
mod rig;
mod start;
mod times;
mod usage;
mod workers;
