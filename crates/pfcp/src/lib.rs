//! What did the SMF say?
//!
//! # The problem
//!
//! An SMF programs a UPF over PFCP (TS 29.244): requests and responses in UDP datagrams, made of type, length
//! and value triples, some of them groups of others. What arrives is to be trusted in nothing: lengths lie,
//! parts are missing, come twice or in any order, and each SMF has its own idea of what may be left out. What
//! can't be taken must be answered with the reason and the place, so that the other side's authors find it.
//!
//! # The model
//!
//! - [`Header`] and [`Datagram`] split a datagram into messages; [`Ies`] walks a body or a group; both are
//!   bounded and never look beyond what was received.
//! - [`message`] has a struct for each message, with `decode` and `encode` for its body, and [`ie`] one for
//!   each information element that a UPF acts upon. Names and texts stay slices of the datagram.
//! - A refusal is a [`DecodeError`]: Cause, Offending IE, failed rule and octet, ready for the answer.
//! - Writing appends to a `Vec<u8>` that the caller keeps; lengths are set when what they count stands.
//!
//! Both directions stand for every message, so that a UPF and the model of an SMF that tests it share them.
//!
//! What the standard leaves to the receiver is decided so:
//!
//! | what comes | what is made of it |
//! |---|---|
//! | an unknown IE, or another enterprise's | ignored (§7.6.4) |
//! | a second IE where one is meant | ignored: the first counts |
//! | an optional IE of no length | as if absent; a Network Instance or APN is kept as empty |
//! | an IE longer than known | the rest is a later release's, ignored |
//! | an IE shorter than its flags promise | refused, "Invalid length", were it optional: a filter that is not understood must not become one that matches more |
//! | the same rule ID created twice | both are handed on, in order |
//! | more than [`tlv::MAX_IES_PER_MESSAGE`] IEs, [`message::MAX_RULES_PER_MESSAGE`] rules of a kind, [`ie::MAX_LIST`] values of a list | refused, "No resources available" |
//!
//! Whether rules make sense together is not asked here but by the session layer: only what can be seen in one
//! group is (a FAR that forwards has Forwarding Parameters).
//!
//! # Example
//!
//! ```
//! use pfcp::ie::{NodeId, RecoveryTimeStamp, UpFunctionFeatures};
//! use pfcp::message::{AssociationSetupRequest, Message};
//! use pfcp::{Cause, Header, MessageType, SequenceNumber};
//!
//! // A UPF asks an SMF for an association.
//! let request = AssociationSetupRequest {
//!     node_id: NodeId::Ip("10.0.0.2".parse()?),
//!     recovery: RecoveryTimeStamp(3_900_000_000),
//!     up_features: Some(UpFunctionFeatures(UpFunctionFeatures::FTUP | UpFunctionFeatures::EMPU)),
//!     cp_features: None,
//!     session_retention: false,
//! };
//! let header = Header::node(MessageType::ASSOCIATION_SETUP_REQUEST, SequenceNumber(1));
//! let mut datagram = Vec::new();
//! pfcp::encode_message(&header, &mut datagram, |out| request.encode(out))?;
//!
//! // The SMF reads it.
//! let (header, message) = Message::decode(&datagram)?;
//! assert_eq!(header.sequence, SequenceNumber(1));
//! assert_eq!(message, request.into());
//!
//! // Had the time stamp been left out, the answer would know.
//! let error = AssociationSetupRequest::decode(&[0, 60, 0, 5, 0, 10, 0, 0, 2]).unwrap_err();
//! assert_eq!((error.cause, error.offending_ie), (Cause::MANDATORY_IE_MISSING, Some(96)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it costs
//!
//! One pass over the datagram; one allocation for each kind of rule and each list that is not empty, none for
//! texts. `cargo run --release -p pfcp --example codec_speed` prints nanoseconds for the usual establishment
//! (2 PDRs, 2 FARs, 1 QER, 1 URR).
//!
//! # When not to use it
//!
//! To keep every IE of every release, for a trace or a proxy: IEs that a UPF does not act upon are dropped
//! on the way. Walk them with [`Ies`] instead, or take `rs-pfcp`, which the tests use as a judge.
#![forbid(unsafe_code)]

pub mod calendar;
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
