//! STUN and TURN: how clients behind translators find each other, before every call.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message as Shown, Recogniser, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    // Messages have two zero bits at their beginning, channels 0b01 (RFC 8489 §5, RFC 8656 §12).
    row(Protocol::Stun, Carriers::BOTH, &[3478, 19302], First::Range(0, 0x4f), Strength::Magic, stun),
];

/// RFC 8489 §5.
const COOKIE: u32 = 0x2112_a442;
/// Octets of a header.
const HEADER: usize = 20;
/// Attributes that are read.
const ATTRIBUTES: usize = 32;

/// Attribute types (RFC 8489 §18.3, RFC 8445 §16.1).
pub mod attribute {
    /// Two parts with a colon between them, in ICE.
    pub const USERNAME: u16 = 0x0006;
    /// Proves that the sender knows the password.
    pub const MESSAGE_INTEGRITY: u16 = 0x0008;
    /// Whose password is asked for.
    pub const REALM: u16 = 0x0014;
    /// Of ICE.
    pub const PRIORITY: u16 = 0x0024;
    /// What the sender is.
    pub const SOFTWARE: u16 = 0x8022;
}

/// A message (RFC 8489 §5).
#[derive(Clone, Copy, Debug)]
pub struct Message<'b> {
    /// Class and method, as they are mixed.
    pub kind: u16,
    /// It has the cookie, which those before RFC 5389 had not.
    pub has_cookie: bool,
    attributes: &'b [u8],
    /// What follows it.
    pub rest: &'b [u8],
}

impl<'b> Message<'b> {
    /// At the beginning of these octets; all of it must be there.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let (kind, length, cookie) = (cursor.u16()?, cursor.u16()?, cursor.u32()?);
        let _transaction = cursor.take(12)?;
        let attributes = cursor.take(length.into())?;
        let fits = kind < 0x4000 && length.is_multiple_of(4);
        fits.then_some(Self { kind, has_cookie: cookie == COOKIE, attributes, rest: cursor.rest() })
    }

    /// Without the class: 1 is Binding, 3 Allocate.
    pub const fn method(&self) -> u16 {
        self.kind & 0x000f | (self.kind & 0x00e0) >> 1 | (self.kind & 0x3e00) >> 2
    }

    /// Types and values.
    pub fn attributes(&self) -> impl Iterator<Item = (u16, &'b [u8])> + use<'b> {
        let mut cursor = Cursor::new(self.attributes);
        std::iter::from_fn(move || {
            let (kind, value) = (cursor.u16()?, cursor.vector16()?);
            // Values are padded to four octets.
            let _padding = cursor.take_most(value.len().wrapping_neg() & 3);
            Some((kind, value))
        })
    }

    /// Whether it checks a way between two peers (RFC 8445 §7.2.2, §7.2.5): that is what calls do first. Servers of the public ask for no password.
    pub fn is_of_ice(&self) -> bool {
        let of_ice = |kind| matches!(kind, attribute::PRIORITY | attribute::MESSAGE_INTEGRITY);
        self.attributes().take(ATTRIBUTES).any(|(kind, _)| of_ice(kind))
    }
}

/// RFC 8489 §5: zero bits, a length that fits, and the cookie. What came before the cookie (RFC 3489 §11.1) had a few types and attributes.
fn stun(message: &mut Shown<'_>) -> Answer {
    if !message.begins && message.carrier == Carrier::Tcp {
        return Answer::No;
    }
    let mut bytes = message.bytes;
    // Over TCP between peers it has a length before it (RFC 4571 §2).
    if message.carrier == Carrier::Tcp
        && message.u32(6) == Some(COOKIE)
        && message.u16(0).is_some_and(|it| it >= 20)
    {
        bytes = bytes.get(2..).unwrap_or_default();
    }
    let Some(found) = Message::parse(bytes) else { return not_whole(message) };
    if found.has_cookie {
        if message.carrier == Carrier::Udp && !found.rest.is_empty() {
            return Answer::No;
        }
        for (kind, value) in found.attributes().take(ATTRIBUTES) {
            match kind {
                attribute::SOFTWARE => message.sheet.agent.set(value),
                attribute::REALM if value.contains(&b'.') => message.sheet.host.set(value),
                _ => {}
            }
        }
        // Allocate to ChannelBind, and what RFC 6062 adds for TCP.
        let is_relay = matches!(found.method(), 3 | 4 | 6..=12);
        return match is_relay {
            true if !message.sheet.host.is_empty() => Answer::Other(Protocol::Turn),
            // A relay asks who the client is before it serves, and says then whose it is.
            true => Answer::Open,
            // What follows may show a relay, or a call.
            false if message.carrier == Carrier::Udp => Answer::Open,
            false => Answer::Is,
        };
    }
    let is_old =
        matches!(found.kind, 0x0001 | 0x0101 | 0x0111 | 0x0002 | 0x0102 | 0x0112) && found.rest.is_empty();
    if !is_old || message.carrier != Carrier::Udp {
        return Answer::No;
    }
    // RFC 3489 §11.2, and what is sent to old servers all the same.
    let known = |kind: u16| matches!(kind, 1..=11 | 0x8020 | 0x8022 | 0x8028);
    let length: usize = found.attributes().map(|(_, value)| 4 + value.len().next_multiple_of(4)).sum();
    if length + HEADER != message.len() {
        Answer::No
    } else if length > 0 && found.attributes().take(ATTRIBUTES).all(|(kind, _)| known(kind)) {
        Answer::Is
    } else {
        // None, or some of a maker's own.
        Answer::Perhaps
    }
}

/// A beginning of a stream, or what may come on a flow that began with STUN.
fn not_whole(message: &Shown<'_>) -> Answer {
    let is_known = message.has(4, &COOKIE.to_be_bytes());
    match (message.carrier, message.bytes) {
        (Carrier::Tcp, [0 | 1, ..]) if is_known && message.len() < 2048 => Answer::Longer,
        (Carrier::Udp, _) => after(message),
        _ => Answer::No,
    }
}

/// A call of a browser goes on with DTLS on the same ports (RFC 8827 §6.5); other calls have RTP, or channels of their relay.
fn after(message: &Shown<'_>) -> Answer {
    let began = |side: &[u8]| side.get(4..8) == Some(&COOKIE.to_be_bytes());
    let is_known = began(message.own().first()) || began(message.other().first());
    match message.bytes {
        [20..=26, 0xfe, 0xff | 0xfd | 0xfc, ..] if is_known => Answer::Other(Protocol::WebRtc),
        // RTP, and reports about it; of calls that agreed on their keys it is ciphered.
        [0x80..=0xbf, ..] if is_known && message.len() > 12 => Answer::Other(Protocol::Srtp),
        [0x40..=0x4f, ..] => {
            let length = message.u16(2).map_or(0, usize::from);
            let fits = (length + 4..length + 8).contains(&message.len());
            match (is_known, fits && message.has_port(3478)) {
                (true, _) => Answer::Open,
                (false, true) => Answer::Perhaps,
                (false, false) => Answer::No,
            }
        }
        _ if is_known => Answer::Open,
        _ => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Side;
    use crate::protocols::show::{client, flow};

    fn binding(kind: u16, attributes: &[u8]) -> Vec<u8> {
        let length = attributes.len() as u16;
        [&kind.to_be_bytes()[..], &length.to_be_bytes(), &COOKIE.to_be_bytes(), &[7; 12], attributes].concat()
    }

    #[test]
    fn the_cookie_tells_and_a_length_that_fits() {
        let bytes = binding(1, b"\x80\x22\0\x05agent\0\0\0\0\x14\0\x05a.org\0\0\0");
        let (answers, sheet) = flow(Protocol::Stun, Carrier::Udp, 5000, &[(Side::Client, &bytes)]);
        assert_eq!(answers, [Answer::Open]);
        assert_eq!((sheet.agent.bytes(), sheet.host.bytes()), (&b"agent"[..], &b"a.org"[..]));
        for length in 0..bytes.len() {
            assert_eq!(client(Protocol::Stun, Carrier::Udp, 5000, &bytes[..length]), Answer::No);
        }
        assert_eq!(client(Protocol::Stun, Carrier::Tcp, 5000, &bytes[..10]), Answer::Longer);
        assert_eq!(client(Protocol::Stun, Carrier::Tcp, 5000, &bytes), Answer::Is);
        let framed = [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat();
        assert_eq!(client(Protocol::Stun, Carrier::Tcp, 5000, &framed), Answer::Is);
    }

    #[test]
    fn turn_is_told_by_its_methods() {
        let refused = binding(0x0113, b"\0\x14\0\x05a.org\0\0\0");
        let messages = [(Side::Client, &binding(3, &[])[..]), (Side::Server, &refused[..])];
        let (answers, sheet) = flow(Protocol::Stun, Carrier::Udp, 3478, &messages);
        assert_eq!(answers, [Answer::Open, Answer::Other(Protocol::Turn)]);
        assert_eq!(sheet.host.bytes(), b"a.org");
    }

    #[test]
    fn a_call_of_a_browser_is_ice_then_dtls() {
        let ice = binding(1, b"\0\x06\0\x03a:b\0\0\x24\0\x04\x6e\0\x1e\xff");
        let dtls = [22, 0xfe, 0xff, 0, 0];
        let messages = [(Side::Client, &ice[..]), (Side::Client, &dtls[..])];
        let (answers, _) = flow(Protocol::Stun, Carrier::Udp, 5000, &messages);
        assert_eq!(answers, [Answer::Open, Answer::Other(Protocol::WebRtc)]);
        assert_eq!(client(Protocol::Stun, Carrier::Udp, 5000, &dtls), Answer::No);
    }

    #[test]
    fn without_the_cookie_attributes_must_fit() {
        let mut bytes = binding(1, &[0, 3, 0, 4, 0, 0, 0, 2]);
        bytes[4] = 9;
        assert_eq!(client(Protocol::Stun, Carrier::Udp, 3478, &bytes), Answer::Is);
        bytes[21] = 0x77;
        assert_eq!(client(Protocol::Stun, Carrier::Udp, 3478, &bytes), Answer::Perhaps);
        bytes[23] = 5;
        assert_eq!(client(Protocol::Stun, Carrier::Udp, 3478, &bytes), Answer::No);
        let mut empty = binding(1, &[]);
        empty[4] = 9;
        assert_eq!(client(Protocol::Stun, Carrier::Udp, 3478, &empty), Answer::Perhaps);
        assert_eq!(client(Protocol::Stun, Carrier::Udp, 3478, &[0; 20]), Answer::No);
    }
}
