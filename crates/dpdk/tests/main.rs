//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod af_packet;
mod backends;
mod common;
mod crypto;
mod flow;
mod peer;
mod steer;
