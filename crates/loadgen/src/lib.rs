//! The other side.
#![forbid(unsafe_code)]

mod decode;
pub mod dn;
pub mod facts;
pub mod gnb;
pub mod habits;
pub mod imix;
pub mod latency;
pub mod link;
pub mod payload;
pub mod rng;
pub mod station;
pub mod traffic;
pub mod verify;
mod wire;
pub mod world;
