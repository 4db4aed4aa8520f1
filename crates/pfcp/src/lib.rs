//! What did the SMF say?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod cause;
pub mod encode;
pub mod error;
pub mod header;
pub mod ids;
pub mod ie;
pub mod ie_type;
pub mod message;
pub mod message_type;
pub mod node;
pub mod tlv;

pub use cause::{Cause, RuleId};
pub use encode::{TooLong, encode_ie, encode_message};
pub use error::DecodeError;
pub use header::{Datagram, Header, HeaderError};
pub use ids::{BarId, FarId, PdrId, QerId, Seid, SequenceNumber, UrrId};
pub use message_type::MessageType;
pub use tlv::{Ie, Ies};
