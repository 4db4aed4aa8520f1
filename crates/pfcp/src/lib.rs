//! What did the SMF say?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod ids;

pub use ids::{BarId, FarId, PdrId, QerId, Seid, SequenceNumber, UrrId};
