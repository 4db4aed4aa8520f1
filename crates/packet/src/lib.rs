//! What is in these bytes?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod units;

pub use units::{Dscp, MacAddr, Qfi, Teid};
