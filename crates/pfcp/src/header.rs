//! The message header (TS 29.244 §7.2.2).
//!
//! Octet 1 holds the version and three flags: S (a SEID follows), MP (a message priority is in the last
//! octet) and FO (another message follows in the same datagram, §7.2.1A). The length counts what comes after
//! the fourth octet. A datagram of several messages is walked with [`Datagram`].

use crate::ids::{Seid, SequenceNumber};
use crate::message_type::MessageType;

/// The version this crate speaks (§7.2.2.1).
pub const VERSION: u8 = 1;
/// Messages that one datagram may bundle before the rest is refused. The standard sets no limit; a peer that
/// bundles more than this has not been seen.
pub const MAX_BUNDLED_MESSAGES: usize = 64;

const FLAG_SEID: u8 = 1;
const FLAG_PRIORITY: u8 = 1 << 1;
const FLAG_FOLLOW_ON: u8 = 1 << 2;

/// A message's header, apart from what follows from the message itself (version, length).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// What it is.
    pub message_type: MessageType,
    /// S: the session at the receiver. Session messages have one; 0 on the first request of a session.
    pub seid: Option<Seid>,
    /// Pairs a response with its request; 24 bits.
    pub sequence: SequenceNumber,
    /// MP: 0 (most urgent) to 15. Only meaningful with a SEID; elsewhere the octet is spare.
    pub priority: Option<u8>,
    /// FO: another message follows in this datagram.
    pub follow_on: bool,
}

/// Why no message could be read from these bytes. There is nothing to answer to, except a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// Fewer octets than a header has.
    #[error("{0} octets are too few for a PFCP header")]
    Short(usize),
    /// Another version: answered with Version Not Supported (§7.6.2) where the sequence number could be read.
    #[error("PFCP version {version} is not supported")]
    Version {
        /// The version of the sender.
        version: u8,
        /// What to put in the answer.
        sequence: Option<SequenceNumber>,
    },
    /// The length field says more than was received, or less than a header needs (§7.6.3).
    #[error("the header's length field says {declared}, the datagram holds {available}")]
    Length {
        /// The length field.
        declared: usize,
        /// Octets after the fourth.
        available: usize,
    },
    /// More than [`MAX_BUNDLED_MESSAGES`] in one datagram.
    #[error("more than {MAX_BUNDLED_MESSAGES} messages in one datagram")]
    Bundle,
}

impl Header {
    /// A header of a node message.
    pub const fn node(message_type: MessageType, sequence: SequenceNumber) -> Self {
        Self { message_type, seid: None, sequence, priority: None, follow_on: false }
    }

    /// A header of a session message: `seid` is the receiver's.
    pub const fn session(message_type: MessageType, seid: Seid, sequence: SequenceNumber) -> Self {
        Self { message_type, seid: Some(seid), sequence, priority: None, follow_on: false }
    }

    /// Octets this header takes.
    pub const fn encoded_length(&self) -> usize {
        if self.seid.is_some() { 16 } else { 8 }
    }

    /// Splits bytes into the first message's header, its body, and what follows it.
    ///
    /// What follows is empty unless FO is set: octets after the last message are padding, not a message.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8], &[u8]), HeaderError> {
        let Some((&[flags, message_type, high, low], after)) = bytes.split_first_chunk::<4>() else {
            return Err(HeaderError::Short(bytes.len()));
        };
        let has_seid = flags & FLAG_SEID != 0;
        let version = flags >> 5;
        if version != VERSION {
            let skip = if has_seid { 8 } else { 0 };
            let sequence = after.get(skip..).and_then(|rest| rest.split_first_chunk::<3>());
            return Err(HeaderError::Version {
                version,
                sequence: sequence.map(|(&octets, _)| sequence_number(octets)),
            });
        }
        let declared = usize::from(u16::from_be_bytes([high, low]));
        let length_error = HeaderError::Length { declared, available: after.len() };
        let (message, rest) = after.split_at_checked(declared).ok_or(length_error)?;
        let (seid, message) = if has_seid {
            let (seid, message) = message.split_first_chunk::<8>().ok_or(length_error)?;
            (Some(Seid(u64::from_be_bytes(*seid))), message)
        } else {
            (None, message)
        };
        let (&[a, b, c, last], body) = message.split_first_chunk::<4>().ok_or(length_error)?;
        let follow_on = flags & FLAG_FOLLOW_ON != 0;
        let header = Self {
            message_type: MessageType(message_type),
            seid,
            sequence: sequence_number([a, b, c]),
            priority: (has_seid && flags & FLAG_PRIORITY != 0).then_some(last >> 4),
            follow_on,
        };
        Ok((header, body, if follow_on { rest } else { &[] }))
    }

    /// Appends the header with a length of zero, to be set when the body stands.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let priority = if self.seid.is_some() { self.priority } else { None };
        let mut flags = VERSION << 5;
        if self.seid.is_some() {
            flags |= FLAG_SEID;
        }
        if priority.is_some() {
            flags |= FLAG_PRIORITY;
        }
        if self.follow_on {
            flags |= FLAG_FOLLOW_ON;
        }
        out.extend_from_slice(&[flags, self.message_type.0, 0, 0]);
        if let Some(seid) = self.seid {
            out.extend_from_slice(&seid.0.to_be_bytes());
        }
        let [_, a, b, c] = self.sequence.0.to_be_bytes();
        out.extend_from_slice(&[a, b, c, priority.unwrap_or(0) << 4]);
    }
}

fn sequence_number([a, b, c]: [u8; 3]) -> SequenceNumber {
    SequenceNumber(u32::from_be_bytes([0, a, b, c]))
}

/// The messages of one datagram, in order: one, or several where FO bundles them (§7.2.1A).
///
/// After an error the walk is over, for the place of the next message is unknown.
#[derive(Clone, Debug)]
pub struct Datagram<'a> {
    rest: Option<&'a [u8]>,
    left: usize,
}

impl<'a> Datagram<'a> {
    /// Walks these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: Some(bytes), left: MAX_BUNDLED_MESSAGES }
    }
}

impl<'a> Iterator for Datagram<'a> {
    type Item = Result<(Header, &'a [u8]), HeaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.rest.take()?;
        let Some(left) = self.left.checked_sub(1) else {
            return Some(Err(HeaderError::Bundle));
        };
        self.left = left;
        Some(Header::decode(bytes).map(|(header, body, rest)| {
            self.rest = header.follow_on.then_some(rest);
            (header, body)
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::encode::encode_message;
    use proptest::prelude::*;

    const HEARTBEAT: [u8; 16] = [0x20, 1, 0, 12, 0, 0, 7, 0, 0, 96, 0, 4, 1, 2, 3, 4];

    #[test]
    fn a_node_message() {
        let (header, body, rest) = Header::decode(&HEARTBEAT).unwrap();
        assert_eq!(header, Header::node(MessageType::HEARTBEAT_REQUEST, SequenceNumber(7)));
        assert_eq!(body, &HEARTBEAT[8..]);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_session_message_with_priority() {
        let bytes = [0x23, 54, 0, 12, 0, 0, 0, 0, 0, 0, 0, 9, 0xab, 0xcd, 0xef, 0xc0];
        let (header, body, _) = Header::decode(&bytes).unwrap();
        assert_eq!(header.seid, Some(Seid(9)));
        assert_eq!(header.sequence, SequenceNumber(0x00ab_cdef));
        assert_eq!(header.priority, Some(12));
        assert!(body.is_empty());
        let mut out = Vec::new();
        encode_message(&header, &mut out, |_| ()).unwrap();
        assert_eq!(out, bytes);
    }

    #[test]
    fn octets_after_the_message_are_padding_without_fo_and_a_message_with_it() {
        let mut two = HEARTBEAT.to_vec();
        two.extend_from_slice(&HEARTBEAT);
        assert_eq!(Datagram::new(&two).count(), 1);
        two[0] |= FLAG_FOLLOW_ON;
        assert!(Datagram::new(&two).all(|message| message.is_ok()));
        assert_eq!(Datagram::new(&two).count(), 2);
        // FO promises a message; that there is none is told.
        two.truncate(16);
        assert_eq!(Datagram::new(&two).nth(1), Some(Err(HeaderError::Short(0))));
    }

    #[test]
    fn a_bundle_has_an_end() {
        let one = [0x24, 1, 0, 4, 0, 0, 7, 0];
        let many = one.repeat(MAX_BUNDLED_MESSAGES + 9);
        assert_eq!(Datagram::new(&many).count(), MAX_BUNDLED_MESSAGES + 1);
        assert_eq!(Datagram::new(&many).last(), Some(Err(HeaderError::Bundle)));
    }

    #[test]
    fn lengths_that_lie() {
        assert_eq!(Header::decode(&[0x20, 1, 0]), Err(HeaderError::Short(3)));
        assert_eq!(
            Header::decode(&[0x20, 1, 0, 5, 0, 0, 0, 0]),
            Err(HeaderError::Length { declared: 5, available: 4 })
        );
        // Eight octets are enough for a node message, not for S.
        assert!(matches!(
            Header::decode(&[0x21, 50, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]),
            Err(HeaderError::Length { .. })
        ));
    }

    #[test]
    fn another_version_keeps_its_sequence_number() {
        assert_eq!(
            Header::decode(&[0x40, 1, 0, 4, 0, 0, 7, 0]),
            Err(HeaderError::Version { version: 2, sequence: Some(SequenceNumber(7)) })
        );
        assert_eq!(
            Header::decode(&[0x40, 1, 0, 4]),
            Err(HeaderError::Version { version: 2, sequence: None })
        );
    }

    proptest! {
        #[test]
        fn round_trip(
            kind: u8, seid: Option<u64>, sequence in 0u32..1 << 24, priority in proptest::option::of(0u8..16),
            body in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let header = Header {
                message_type: MessageType(kind),
                seid: seid.map(Seid),
                sequence: SequenceNumber(sequence),
                priority: if seid.is_some() { priority } else { None },
                follow_on: false,
            };
            let mut out = vec![1, 2, 3];
            encode_message(&header, &mut out, |out| out.extend_from_slice(&body)).unwrap();
            prop_assert_eq!(out.len(), 3 + header.encoded_length() + body.len());
            let (decoded, decoded_body, rest) = Header::decode(&out[3..]).unwrap();
            prop_assert_eq!(decoded, header);
            prop_assert_eq!(decoded_body, body.as_slice());
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            for message in Datagram::new(&bytes) {
                let _ = message;
            }
        }
    }
}
