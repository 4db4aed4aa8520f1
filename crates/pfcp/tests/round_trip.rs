//! What is written is read as it was, and nothing that can be read panics.

#![allow(clippy::unwrap_used)]

use crate::support;
use pfcp::message::Message;
use pfcp::{Datagram, Header, Ies, MessageType, Seid, SequenceNumber};
use proptest::prelude::*;

fn written(message: &Message<'_>) -> Vec<u8> {
    let kind = message.message_type();
    let header = if kind.is_session() {
        Header::session(kind, Seid(7), SequenceNumber(9))
    } else {
        Header::node(kind, SequenceNumber(9))
    };
    let mut out = Vec::new();
    message.encode(header, &mut out).unwrap();
    out
}

/// Reads whatever can be read of these bytes, down to the last group.
fn read_all(bytes: &[u8]) {
    for message in Datagram::new(bytes).flatten() {
        let (header, body) = message;
        if let Some(Err(error)) = Message::decode_body(header.message_type, body) {
            assert!(error.offset <= body.len());
            assert!(!error.cause.is_success());
            let _ = error.to_string();
        }
        for ie in Ies::new(body).flatten() {
            for inner in ie.group().flatten() {
                assert!(inner.offset + 4 + inner.value.len() <= body.len());
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(message in support::message()) {
        let bytes = written(&message);
        let (header, read) = Message::decode(&bytes).unwrap();
        prop_assert_eq!(header.message_type, message.message_type());
        prop_assert_eq!(read, message);
    }

    #[test]
    fn unknown_ies_and_other_enterprises_change_nothing(
        message in support::message(),
        kind in prop_oneof![Just(258u16), Just(275), Just(152), 0x8000u16..],
        value in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut body = Vec::new();
        pfcp::encode_ie(&mut body, kind, |out| out.extend_from_slice(&value));
        message.encode_body(&mut body);
        pfcp::encode_ie(&mut body, kind, |out| out.extend_from_slice(&value));
        let read = Message::decode_body(message.message_type(), &body).unwrap();
        prop_assert_eq!(read, Ok(message));
    }

    #[test]
    fn damaged_messages_never_panic(
        message in support::message(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = written(&message);
        for (place, octet) in damages {
            let place = place.index(bytes.len());
            bytes[place] = octet;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all(&bytes);
    }

    #[test]
    fn damaged_bodies_never_panic_under_a_whole_header(
        message in support::session_message(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut body = Vec::new();
        message.encode_body(&mut body);
        for (place, octet) in damages {
            if !body.is_empty() {
                let place = place.index(body.len());
                body[place] = octet;
            }
        }
        for kind in 0..=60 {
            if let Some(Err(error)) = Message::decode_body(MessageType(kind), &body) {
                prop_assert!(error.offset <= body.len());
            }
        }
    }

    #[test]
    fn random_octets_never_panic(kind in 0u8..60, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_all(&body);
        let _ = Message::decode_body(MessageType(kind), &body);
    }

    #[test]
    fn every_cut_of_a_message_is_refused_or_read(message in support::session_message()) {
        let mut body = Vec::new();
        message.encode_body(&mut body);
        for length in 0..body.len() {
            let _ = Message::decode_body(message.message_type(), &body[..length]);
        }
    }
}
