//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod n4;
mod n4_applications;
mod n4_cores;
mod n4_history;
mod n4_leaving;
mod n4_peers;
mod n4_policies;
mod n4_redirect;
mod n4_reports;
mod portable;
