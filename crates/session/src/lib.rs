//! What must happen to this subscriber?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod ids;
pub mod rules;
pub mod usage;

pub use ids::{SHARDS, SessionRef, ShardId, TeidRef};
