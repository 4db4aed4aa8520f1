//! What must happen to this subscriber?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod addresses;
mod change;
pub mod columns;
pub mod compile;
pub mod config;
pub mod ids;
pub mod model;
pub mod network_instance;
pub mod pool;
pub mod refusal;
pub mod rest;
pub mod rules;
pub mod sdf;
mod slots;
pub mod store;
pub mod teid;
pub mod timing;
pub mod usage;

pub use ids::{SHARDS, SessionRef, ShardId, TeidRef};
