//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

/// N4's, whose SMF these ask with, too.
#[path = "../../n4/tests/bench/mod.rs"]
mod bench;
mod device_twins;
mod inspection;
mod metrics;
mod restart;
/// The engine's: NICs in memory, sessions, packets.
#[allow(dead_code)]
#[path = "../../engine/tests/rig/mod.rs"]
mod rig;
mod upf;
