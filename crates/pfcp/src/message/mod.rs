//! Messages as typed values: what each request and response says, in both directions.
//!
//! Each has `decode(body)` and `encode(out)`, both for the body alone: whoever handles a message knows its
//! header already. [`Message::decode`] and [`Message::encode`] do the whole for those who don't care which
//! message it is: tools, tests, traces.

mod establishment;
mod far;
mod group;
mod modification;
mod node;
mod pdr;
mod pfd;
mod qer;
mod report;
mod rules;
mod session;
mod urr;

pub use crate::encode::encode_message;
pub use group::MAX_RULES_PER_MESSAGE;
pub use node::*;
pub use pfd::*;
pub use rules::*;
pub use session::*;

use crate::encode::TooLong;
use crate::error::DecodeError;
use crate::header::{Header, HeaderError};
use crate::message_type::MessageType;

/// Why bytes are no message that this crate knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// The header can't be read.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The header can, its message type means nothing here.
    #[error("unknown {}", .0.message_type)]
    UnknownType(Header),
    /// The body is refused.
    #[error("{}: {error}", .header.message_type)]
    Body {
        /// What was refused.
        header: Header,
        /// Why.
        error: DecodeError,
    },
}

macro_rules! messages {
    ($($variant:ident($type:ty) = $kind:ident;)*) => {
        /// Any message.
        // A message is looked at and gone; a box for the larger ones would cost more than it saves.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $(#[doc = concat!("See [`", stringify!($variant), "`].")] $variant($type),)*
            /// Version Not Supported Response (§7.4.4.7), which has no IEs.
            VersionNotSupported,
        }

        impl<'a> Message<'a> {
            /// Reads a body of this type; `None` for a type that is not known.
            pub fn decode_body(kind: MessageType, body: &'a [u8]) -> Option<Result<Self, DecodeError>> {
                Some(match kind {
                    $(MessageType::$kind => <$type>::decode(body).map(Self::$variant),)*
                    MessageType::VERSION_NOT_SUPPORTED_RESPONSE => Ok(Self::VersionNotSupported),
                    _ => return None,
                })
            }

            /// What its header says it is.
            pub const fn message_type(&self) -> MessageType {
                match self {
                    $(Self::$variant(_) => MessageType::$kind,)*
                    Self::VersionNotSupported => MessageType::VERSION_NOT_SUPPORTED_RESPONSE,
                }
            }

            /// Appends the body.
            pub fn encode_body(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant(message) => message.encode(out),)*
                    Self::VersionNotSupported => {}
                }
            }
        }

        $(impl<'a> From<$type> for Message<'a> {
            fn from(message: $type) -> Self {
                Self::$variant(message)
            }
        })*
    };
}

messages! {
    HeartbeatRequest(HeartbeatRequest) = HEARTBEAT_REQUEST;
    HeartbeatResponse(HeartbeatResponse) = HEARTBEAT_RESPONSE;
    PfdManagementRequest(PfdManagementRequest<'a>) = PFD_MANAGEMENT_REQUEST;
    PfdManagementResponse(PfdManagementResponse) = PFD_MANAGEMENT_RESPONSE;
    AssociationSetupRequest(AssociationSetupRequest) = ASSOCIATION_SETUP_REQUEST;
    AssociationSetupResponse(AssociationSetupResponse) = ASSOCIATION_SETUP_RESPONSE;
    AssociationUpdateRequest(AssociationUpdateRequest) = ASSOCIATION_UPDATE_REQUEST;
    AssociationUpdateResponse(AssociationUpdateResponse) = ASSOCIATION_UPDATE_RESPONSE;
    AssociationReleaseRequest(AssociationReleaseRequest) = ASSOCIATION_RELEASE_REQUEST;
    AssociationReleaseResponse(AssociationReleaseResponse) = ASSOCIATION_RELEASE_RESPONSE;
    NodeReportRequest(NodeReportRequest<'a>) = NODE_REPORT_REQUEST;
    NodeReportResponse(NodeReportResponse) = NODE_REPORT_RESPONSE;
    SessionSetDeletionRequest(SessionSetDeletionRequest<'a>) = SESSION_SET_DELETION_REQUEST;
    SessionSetDeletionResponse(SessionSetDeletionResponse) = SESSION_SET_DELETION_RESPONSE;
    SessionEstablishmentRequest(SessionEstablishmentRequest<'a>) = SESSION_ESTABLISHMENT_REQUEST;
    SessionEstablishmentResponse(SessionEstablishmentResponse) = SESSION_ESTABLISHMENT_RESPONSE;
    SessionModificationRequest(SessionModificationRequest<'a>) = SESSION_MODIFICATION_REQUEST;
    SessionModificationResponse(SessionModificationResponse) = SESSION_MODIFICATION_RESPONSE;
    SessionDeletionRequest(SessionDeletionRequest) = SESSION_DELETION_REQUEST;
    SessionDeletionResponse(SessionDeletionResponse) = SESSION_DELETION_RESPONSE;
    SessionReportRequest(SessionReportRequest) = SESSION_REPORT_REQUEST;
    SessionReportResponse(SessionReportResponse) = SESSION_REPORT_RESPONSE;
}

impl<'a> Message<'a> {
    /// Reads the first message of a datagram. [`Datagram`](crate::Datagram) with [`Message::decode_body`]
    /// reads all that are bundled in one.
    pub fn decode(datagram: &'a [u8]) -> Result<(Header, Self), MessageError> {
        let (header, body, _rest) = Header::decode(datagram)?;
        match Self::decode_body(header.message_type, body) {
            None => Err(MessageError::UnknownType(header)),
            Some(Ok(message)) => Ok((header, message)),
            Some(Err(error)) => Err(MessageError::Body { header, error }),
        }
    }

    /// Appends the message. The header's message type is set to this message's.
    pub fn encode(&self, header: Header, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let header = Header { message_type: self.message_type(), ..header };
        encode_message(&header, out, |out| self.encode_body(out))
    }
}
