//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod identity;
mod node;
mod round_trip;
mod rs_pfcp;
mod smfs;
mod support;
