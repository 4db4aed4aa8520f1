//! The other side.
#![forbid(unsafe_code)]

mod answers;
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
mod shapes;
pub mod smf;
pub mod station;
pub mod traffic;
pub mod verify;
mod wire;
pub mod world;
