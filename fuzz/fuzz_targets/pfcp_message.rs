//! PFCP datagrams: every message in them, decoded whole. What was decoded is encoded and decoded to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pfcp::header::MAX_BUNDLED_MESSAGES;
use pfcp::message::{Message, MessageError};
use pfcp::tlv::MAX_IES_PER_MESSAGE;
use pfcp::{Datagram, Header, Ies};

fuzz_target!(|data: &[u8]| {
    let mut messages = 0;
    for message in Datagram::new(data) {
        messages += 1;
        match message {
            Ok((header, body)) => one(header, body),
            Err(error) => drop(error.to_string()),
        }
    }
    assert!((1..=MAX_BUNDLED_MESSAGES + 1).contains(&messages));
    match Message::decode(data) {
        Ok(_) => {}
        Err(error @ (MessageError::Header(_) | MessageError::UnknownType(_) | MessageError::Body { .. })) => {
            let _ = error.to_string();
        }
    }
});

fn one(header: Header, body: &[u8]) {
    assert!(Ies::new(body).count() <= MAX_IES_PER_MESSAGE + 1);
    let Some(decoded) = Message::decode_body(header.message_type, body) else { return };
    let message = match decoded {
        Ok(message) => message,
        Err(error) => {
            assert!(error.offset <= body.len(), "{error:?}");
            assert!(!error.cause.is_success(), "{error:?}");
            let _ = error.to_string();
            return;
        }
    };
    assert_eq!(message.message_type(), header.message_type);
    let mut again = Vec::new();
    // What was read may take more room than it came in: addresses that were left out are written.
    if message.encode(Header { follow_on: false, ..header }, &mut again).is_err() {
        assert!(body.len() > 16_384, "{} octets became too many", body.len());
        return;
    }
    let (header_again, body_again, rest) = Header::decode(&again).expect("what we wrote is a message");
    assert_eq!((header_again, rest), (Header { follow_on: false, ..header }, &[][..]));
    let second = Message::decode_body(header.message_type, body_again).expect("its type is known");
    assert_eq!(second.as_ref(), Ok(&message));
}
