//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

/// N4's, whose SMF these ask with, too.
#[path = "../../n4/tests/bench/mod.rs"]
mod bench;
mod inspection;
mod metrics;
mod restart;
mod upf;
