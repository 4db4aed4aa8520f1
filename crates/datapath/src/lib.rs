//! What happens to this burst?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod command;
pub mod net;
pub mod reason;

pub use reason::Reason;
