//! Datagrams: each is a message, but for hellos that take several.

use super::vocabulary::{ClientHello, Decoded, Names, Over, Sip};
use super::{Conversation, Desk, Piece, Shared};
use crate::Protocol;
use crate::classify::Side;
use crate::classify::assembly::{Assembly, LARGEST, MOST};
use crate::protocols::tls::{dtls, handshake, message};
use crate::protocols::{dns, quic, sip, tls};

/// Reads one.
pub(super) fn read(
    desk: &mut Desk,
    conversation: &mut Conversation,
    piece: &Piece<'_>,
    payload: &[u8],
    known: Option<Protocol>,
) {
    let Conversation { shared, hello, has_hello, .. } = conversation;
    match (known, payload.first()) {
        (Some(Protocol::Dns | Protocol::Mdns | Protocol::Llmnr), _) => {
            if let Some(message) = dns::Message::parse(payload) {
                Names::of(&message, |decoded| desk.tell(shared, decoded));
            }
        }
        (None | Some(Protocol::Sip), Some(b'A'..=b'Z')) => {
            if let Some(message) = sip::Message::parse(payload) {
                desk.tell(shared, Decoded::Sip(Box::new(Sip::of(&message))));
            }
        }
        (None | Some(Protocol::Quic | Protocol::Doq), Some(0xc0..))
            if piece.side == Side::Client && !*has_hello =>
        {
            collect(desk, shared, hello, has_hello, |assembly| {
                (quic::put_together(payload, assembly) == Some(true)).then_some(Over::Quic)
            });
        }
        (_, Some(22)) if piece.side == Side::Client && !*has_hello => {
            let Some(first) = dtls::in_clear(payload) else { return };
            if first.kind == handshake::CLIENT_HELLO && first.length <= MOST {
                let whole = first.length;
                collect(desk, shared, hello, has_hello, |assembly| {
                    let taken = assembly.put(first.at, first.body).is_ok();
                    (taken && assembly.contiguous().len() >= whole).then_some(Over::Dtls)
                });
            }
        }
        _ => {}
    }
}

/// Puts one more piece of a hello to the others; once it is whole, it is told, and the room given back.
fn collect(
    desk: &mut Desk,
    shared: &mut Shared,
    held: &mut Option<Box<Assembly>>,
    has_hello: &mut bool,
    put: impl FnOnce(&mut Assembly) -> Option<Over>,
) {
    if held.is_none() && !desk.hold(LARGEST) {
        desk.counters.given_up += 1;
        *has_hello = true;
        return;
    }
    let assembly = held.get_or_insert_default();
    let over = put(assembly);
    if over.is_none() && !assembly.is_empty() {
        return;
    }
    let said = assembly.contiguous();
    let body = match over {
        Some(Over::Dtls) => Some(said),
        _ => message(said).map(|it| it.body),
    };
    let hello = body.and_then(|it| tls::ClientHello::parse(it, over == Some(Over::Dtls)));
    if let (Some(hello), Some(over)) = (hello, over) {
        *has_hello = true;
        let decoded = Decoded::ClientHello(ClientHello::of(&hello, over));
        desk.tell(shared, decoded);
    }
    *held = None;
    desk.give_back(LARGEST);
}
