//! DTLS: the same over datagrams (RFC 6347, RFC 9147).

use super::ja4::Over;
use super::{ClientHello, LONGEST, content, fingerprint, handshake, note};
use crate::Protocol;
use crate::classify::assembly::MOST;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;

pub(super) const RECOGNISER: Recogniser = row(
    Protocol::Dtls,
    Carriers::UDP,
    &[443, 853, 4433, 5684],
    // RFC 7983 §7: what is neither STUN, ZRTP, a channel nor RTP.
    First::Range(content::CIPHER, 26),
    Strength::Magic,
    dtls,
);

/// A record in clear, or one whose number of the epoch says that it is ciphered (RFC 6347 §4.1).
struct Record<'b> {
    kind: u8,
    epoch: u16,
    body: &'b [u8],
}

fn record<'b>(cursor: &mut Cursor<'b>) -> Option<Record<'b>> {
    let (kind, version, epoch) = (cursor.u8()?, cursor.u16()?, cursor.u16()?);
    let _sequence = cursor.take(6)?;
    let body = cursor.vector16().filter(|it| !it.is_empty() && it.len() <= usize::from(LONGEST))?;
    let fits = matches!(kind, content::CIPHER..=26) && is_version(version);
    fits.then_some(Record { kind, epoch, body })
}

/// 1.0, 1.2, 1.3 by its place in the list, and what OpenSSL said before there was a standard.
const fn is_version(version: u16) -> bool {
    matches!(version, 0xfeff | 0xfefd | 0xfefc | 0x0100)
}

/// A handshake message, or a piece of one (RFC 6347 §4.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment<'b> {
    /// See [`handshake`].
    pub kind: u8,
    /// Length of the whole message.
    pub length: usize,
    /// Its number.
    pub sequence: u16,
    /// Where this piece belongs.
    pub at: usize,
    /// The piece.
    pub body: &'b [u8],
}

impl<'b> Fragment<'b> {
    /// Of a record of the handshake.
    pub fn parse(body: &'b [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body);
        let (kind, length, sequence, at) = (cursor.u8()?, cursor.u24()?, cursor.u16()?, cursor.u24()?);
        let body = cursor.vector24()?;
        (at + body.len() <= length).then_some(Self { kind, length, sequence, at, body })
    }
}

/// What the first record of a datagram has of the handshake, if that is in clear.
pub fn in_clear(datagram: &[u8]) -> Option<Fragment<'_>> {
    let first = record(&mut Cursor::new(datagram))?;
    if (first.kind, first.epoch) == (content::HANDSHAKE, 0) { Fragment::parse(first.body) } else { None }
}

/// RFC 6347 §4.1, §4.2.2: a record of a possible version that fits into the datagram, and if it isn't ciphered, a message in it that fits, too.
/// What follows a first record must be one.
fn dtls(message: &mut Message<'_>) -> Answer {
    let mut cursor = Cursor::new(message.bytes);
    let Some(first) = record(&mut cursor) else { return Answer::No };
    if !cursor.is_empty() && record(&mut cursor).is_none() && !matches!(cursor.rest(), [0x20..=0x3f, ..]) {
        return Answer::No;
    }
    match (first.kind, first.epoch) {
        (content::HANDSHAKE, 0) => match Fragment::parse(first.body) {
            Some(it) if it.kind == handshake::CLIENT_HELLO => client_hello(message, it),
            Some(it) if matches!(it.kind, 0 | 2..=4 | 11..=16 | 20..=24) => Answer::Is,
            _ => Answer::No,
        },
        (content::ALERT, 0) if matches!(first.body, [1 | 2, _]) => Answer::Is,
        (content::CIPHER, 0) if first.body == [1] => Answer::Is,
        (_, 0) => Answer::No,
        // Nobody has come this far after so few packets.
        (_, epoch) if epoch < 64 => Answer::Is,
        _ => Answer::Perhaps,
    }
}

fn client_hello(message: &mut Message<'_>, piece: Fragment<'_>) -> Answer {
    let whole = piece.body.len() == piece.length;
    let body = if whole {
        piece.body
    } else if piece.length > MOST || message.assembly.put(piece.at, piece.body).is_err() {
        return Answer::Is;
    } else {
        message.assembly.contiguous()
    };
    let Some(hello) = ClientHello::parse(body, true) else {
        return if whole { Answer::No } else { Answer::Open };
    };
    if !is_version(hello.version) {
        return Answer::No;
    }
    note(&hello, message.sheet);
    if body.len() < piece.length {
        return Answer::Open;
    }
    fingerprint(&hello, Over::Dtls, message.sheet);
    Answer::Is
}
