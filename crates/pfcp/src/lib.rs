//! What did the SMF say?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod cause;
pub mod ids;
pub mod ie;
pub mod message;

pub use cause::{Cause, RuleId};
pub use ids::{BarId, FarId, PdrId, QerId, Seid, SequenceNumber, UrrId};
