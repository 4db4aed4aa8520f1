//! QUIC.
//!
//! What names the server is in the client's first packets, ciphered with keys that everybody can make (RFC 9001 §5.2). A recogniser makes them, opens
//! the packet, and reads the ClientHello in it, however its parts are ordered and over however many packets.
//!
//! What can't be known: a packet with a short header says nothing of itself, so a connection that has moved to another address, or whose beginning
//! was not seen, is no more than a guess on QUIC's port.

mod google;
mod keys;
mod version;

pub use google::Hello;
use keys::TAG;
pub use keys::{Keys, LONGEST};
pub use version::Version;

use crate::Protocol;
use crate::classify::assembly::{Assembly, MOST};
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Sheet, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;
use crate::protocols::tls;
use version::{is_old_draft, is_old_google, is_reserved};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(
        Protocol::Quic,
        Carriers::UDP,
        &[443, 853, 8443],
        // Long headers; the short ones of connections that go on.
        First::Range(0x40, 0xff),
        Strength::Magic,
        quic,
    ),
    row(
        Protocol::Quic,
        Carriers::UDP,
        &[443, 80],
        // The public header of Google's versions up to Q043, with a version in it.
        // Servers leave the version out.
        First::Of(&[0x09, 0x0d, 0x19, 0x1d, 0x29, 0x2d, 0x39, 0x3d, 0x01, 0x05, 0x00, 0x08, 0x0c]),
        Strength::Magic,
        old_google,
    ),
];

/// A client's first datagrams have as many octets at least (RFC 9000 §14.1).
const SMALLEST: usize = 1200;
/// Packets in one datagram that are looked at.
const COALESCED: usize = 4;
/// Frames in one packet, padding not counted.
const FRAMES: usize = 128;

/// A variable-length integer (RFC 9000 §16).
fn varint(cursor: &mut Cursor<'_>) -> Option<u64> {
    let first = cursor.u8()?;
    let mut number = u64::from(first & 0x3f);
    for octet in cursor.take((1 << (first >> 6)) - 1)? {
        number = number << 8 | u64::from(*octet);
    }
    Some(number)
}

/// The octets that a length says.
fn vector<'b>(cursor: &mut Cursor<'b>) -> Option<&'b [u8]> {
    let length = varint(cursor)?;
    cursor.take(usize::try_from(length).ok()?)
}

/// What a packet with a long header is for, whichever number its version has for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It begins a connection.
    Initial,
    /// It has data already.
    ZeroRtt,
    /// It goes on with the handshake.
    Handshake,
    /// The client is asked to come back.
    Retry,
}

/// A packet with a long header (RFC 9000 §17.2).
#[derive(Clone, Copy, Debug)]
pub struct Long<'b> {
    /// What it is for.
    pub kind: Kind,
    /// The version that it is of.
    pub version: Version,
    /// Destination Connection ID.
    pub destination: &'b [u8],
    /// Source Connection ID.
    pub source: &'b [u8],
    /// Of an Initial.
    pub token: &'b [u8],
    /// All of the packet, without others that share its datagram.
    pub packet: &'b [u8],
    /// Where the packet number begins.
    pub number_at: usize,
}

/// Version and connection IDs, which look the same in all versions (RFC 8999 §5.1).
fn invariant<'b>(cursor: &mut Cursor<'b>) -> Option<(u8, u32, &'b [u8], &'b [u8])> {
    let (first, version) = (cursor.u8()?, cursor.u32()?);
    Some((first, version, cursor.vector8()?, cursor.vector8()?))
}

impl<'b> Long<'b> {
    /// The packet at the beginning of these octets, and what follows it.
    pub fn parse(bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let mut cursor = Cursor::new(bytes);
        let (first, number, destination, source) = invariant(&mut cursor)?;
        let version = Version::of(number)?;
        if first & 0xc0 != 0xc0 || destination.len() > 20 || source.len() > 20 {
            return None;
        }
        let kinds = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
        let kind = *kinds.get(usize::from((first >> 4).wrapping_sub(u8::from(version.is_second)) & 3))?;
        let token = if kind == Kind::Initial { vector(&mut cursor)? } else { &[] };
        let length = if kind == Kind::Retry { cursor.rest().len() } else { varint(&mut cursor)? as usize };
        let number_at = bytes.len() - cursor.rest().len();
        let _protected = cursor.take(length).filter(|it| it.len() >= 16)?;
        let packet = bytes.get(..number_at + length)?;
        Some((Self { kind, version, destination, source, token, packet, number_at }, cursor.rest()))
    }
}

/// A transport parameter that Chrome sends: what it is (Google's user_agent).
const USER_AGENT: u64 = 0x3129;

/// Transport parameters (RFC 9000 §18).
pub fn parameters(extension: &[u8]) -> impl Iterator<Item = (u64, &[u8])> + use<'_> {
    let mut cursor = Cursor::new(extension);
    std::iter::from_fn(move || Some((varint(&mut cursor)?, vector(&mut cursor)?)))
}

/// RFC 9000 §17.2, RFC 8999 §5.1: a version that is known, lengths that fit, and, of a client, a packet that its keys open.
fn quic(message: &mut Message<'_>) -> Answer {
    let bytes = message.bytes;
    let mut cursor = Cursor::new(bytes);
    match message.u8(0) {
        Some(first) if first & 0x80 == 0 => return short(message),
        Some(_) => {}
        None => return Answer::No,
    }
    let Some(number) = message.u32(1) else { return Answer::No };
    if Version::of(number).is_some() {
        return long(message);
    }
    if is_old_google(number) {
        return google_in_clear(message);
    }
    if is_old_draft(number) {
        return if bytes.len() >= SMALLEST && message.is_from_client() {
            Answer::Is
        } else {
            Answer::Perhaps
        };
    }
    let Some((_, _, destination, source)) = invariant(&mut cursor) else { return Answer::No };
    if destination.len() > 20 || source.len() > 20 {
        return Answer::No;
    }
    match number {
        0 => negotiation(cursor.rest()),
        // So that the server lists its versions; nothing else can be read.
        _ if is_reserved(number) && bytes.len() >= SMALLEST && message.is_from_client() => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// RFC 9000 §17.2.1: versions, one of which we know.
fn negotiation(versions: &[u8]) -> Answer {
    let (numbers, rest) = versions.as_chunks();
    let known = numbers.iter().map(|it| u32::from_be_bytes(*it));
    let mut known = known.filter(|it| Version::of(*it).is_some() || is_old_google(*it));
    if rest.is_empty() && known.next().is_some() { Answer::Is } else { Answer::No }
}

/// A short header has a fixed bit and nothing else (RFC 9000 §17.3.1): on QUIC's port, if both sides look so, it may be one.
fn short(message: &Message<'_>) -> Answer {
    let is_short = |bytes: &[u8]| matches!(bytes, [0x40..=0x7f, ..]);
    let other = message.other();
    if message.server.port != 443 || message.len() < 22 || (other.packets > 0 && !is_short(other.last())) {
        Answer::No
    } else if other.packets > 0 && other.last_length >= 22 {
        Answer::Perhaps
    } else {
        Answer::Next
    }
}

/// All that the packets in a datagram say.
fn long(message: &mut Message<'_>) -> Answer {
    let mut rest = message.bytes;
    let mut answer = Answer::No;
    for _ in 0..COALESCED {
        let Some((packet, following)) = Long::parse(rest) else { break };
        rest = following;
        let said = match packet.kind {
            Kind::Initial if message.is_from_client() => initial(message, &packet),
            // Only servers send it (RFC 9000 §17.2.5).
            Kind::Retry if message.is_from_client() => Answer::Perhaps,
            // The client begins anew, with other keys (RFC 9001 §5.2); its Initial may have been late, or lost.
            Kind::Retry | Kind::ZeroRtt => Answer::Open,
            _ if message.other().packets > 0 && !message.assembly.is_empty() => Answer::Open,
            _ => Answer::Is,
        };
        answer = match (answer, said) {
            (Answer::Is | Answer::Other(_), _) => return answer,
            (Answer::Open, Answer::Perhaps | Answer::No) => Answer::Open,
            _ => said,
        };
    }
    answer
}

/// A client's first packet, or one of them.
fn initial(message: &mut Message<'_>, packet: &Long<'_>) -> Answer {
    let mut room = [0; LONGEST];
    match open(packet, message.assembly, &mut room) {
        Some(content) => read(content, packet, message.assembly, message.sheet),
        // Lengths fit; the connection may be older than what was seen of it.
        None if message.assembly.is_empty() => Answer::Perhaps,
        None => Answer::Open,
    }
}

/// What is in a client's Initial: its frames. What was put together of another connection is forgotten.
fn open<'r>(packet: &Long<'_>, assembly: &mut Assembly, room: &'r mut [u8; LONGEST]) -> Option<&'r [u8]> {
    let mut open = |connection: &[u8]| -> Option<usize> {
        let keys = Keys::of_client(packet.version, connection);
        keys.open(packet.packet, packet.number_at, room).map(<[u8]>::len)
    };
    // Keys stay those of the first connection ID, also when the server has chosen another (RFC 9001 §5.2).
    let first = assembly.tag();
    let is_other = !first.is_empty() && first != packet.destination;
    let of_first = if is_other { open(first) } else { None };
    let length = of_first.or_else(|| open(packet.destination))?;
    if is_other && of_first.is_none() {
        // A connection of its own.
        assembly.clear();
    }
    let begins = packet.packet.len() - TAG - length;
    room.get(begins..begins + length)
}

/// Puts what a client's datagram has of its ClientHello to what came before. Whether it is whole; `None`: there is nothing of it in the datagram.
pub fn put_together(datagram: &[u8], assembly: &mut Assembly) -> Option<bool> {
    let (mut rest, mut any) = (datagram, None);
    for _ in 0..COALESCED {
        let Some((packet, following)) = Long::parse(rest) else { break };
        rest = following;
        let mut room = [0; LONGEST];
        if packet.kind != Kind::Initial || packet.version.has_tags {
            continue;
        }
        let Some(content) = open(&packet, assembly, &mut room) else { continue };
        collect(content, &packet, assembly).then_some(())?;
        let hello = tls::message(assembly.contiguous());
        any = Some(hello.is_some_and(|it| it.kind == tls::handshake::CLIENT_HELLO && it.is_whole()));
        if any == Some(true) {
            break;
        }
    }
    any
}

/// What the opened packet's frames say.
fn read(content: &[u8], packet: &Long<'_>, assembly: &mut Assembly, sheet: &mut Sheet) -> Answer {
    // Most clients send it in one piece.
    if assembly.is_empty()
        && let Some((0, piece)) = crypto_frames(content, packet.version).next()
        && let Some(answer) = hello(piece, packet.version, sheet)
    {
        return answer;
    }
    if !collect(content, packet, assembly) {
        return Answer::Is;
    }
    hello(assembly.contiguous(), packet.version, sheet).unwrap_or(Answer::Open)
}

/// Puts the pieces of the handshake in their places, and notes whose they are. False: there is too much of it.
fn collect(content: &[u8], packet: &Long<'_>, assembly: &mut Assembly) -> bool {
    for (at, piece) in crypto_frames(content, packet.version) {
        if usize::try_from(at).is_ok_and(|at| assembly.put(at, piece).is_ok()) {
            continue;
        }
        return false;
    }
    if assembly.tag().is_empty() {
        assembly.set_tag(packet.destination);
    }
    true
}

/// The pieces of the handshake among a packet's frames (RFC 9000 §12.4), with their places.
fn crypto_frames(content: &[u8], version: Version) -> impl Iterator<Item = (u64, &[u8])> + use<'_> {
    let mut cursor = Cursor::new(content);
    let mut frames = 0;
    std::iter::from_fn(move || {
        loop {
            match cursor.u8()? {
                // PADDING
                0 => continue,
                // PING
                1 => {}
                kind @ (2 | 3) => acknowledgement(&mut cursor, kind == 3)?,
                // CRYPTO, which has another number in Google's.
                6 if !version.is_google => return Some((varint(&mut cursor)?, vector(&mut cursor)?)),
                8 if version.is_google => return Some((varint(&mut cursor)?, vector(&mut cursor)?)),
                // CONNECTION_CLOSE
                0x1c => {
                    let (_error, _kind) = (varint(&mut cursor)?, varint(&mut cursor)?);
                    vector(&mut cursor)?;
                }
                _ => return None,
            }
            frames += 1;
            if frames > FRAMES {
                return None;
            }
        }
    })
}

/// Passes over an ACK frame (RFC 9000 §19.3).
fn acknowledgement(cursor: &mut Cursor<'_>, has_counts: bool) -> Option<()> {
    let (_largest, _delay, ranges, _first) =
        (varint(cursor)?, varint(cursor)?, varint(cursor)?, varint(cursor)?);
    let rest = ranges.checked_mul(2)?.checked_add(if has_counts { 3 } else { 0 })?;
    for _ in 0..rest {
        // As many as there are octets at most.
        varint(cursor)?;
    }
    Some(())
}

/// Reads the ClientHello, if it is whole.
fn hello(bytes: &[u8], version: Version, sheet: &mut Sheet) -> Option<Answer> {
    if version.has_tags {
        let hello = Hello::parse(bytes)?;
        hello.note(sheet);
        return Some(Answer::Is);
    }
    let message = tls::message(bytes)?;
    if message.kind != tls::handshake::CLIENT_HELLO {
        return Some(Answer::Is);
    }
    if !message.is_whole() && bytes.len() < MOST {
        return None;
    }
    let Some(hello) = tls::ClientHello::parse(message.body, false) else { return Some(Answer::Is) };
    tls::note(&hello, sheet);
    if message.is_whole() {
        tls::fingerprint(&hello, tls::ja4::Over::Quic, sheet);
    }
    let agent = hello.transport_parameters().and_then(|it| parameters(it).find(|(id, _)| *id == USER_AGENT));
    if let Some((_, agent)) = agent {
        sheet.agent.set(agent);
    }
    Some(if sheet.alpn.bytes() == b"doq" { Answer::Other(Protocol::Doq) } else { Answer::Is })
}

/// Q044 to Q049: a long header of its own, and everything in clear.
fn google_in_clear(message: &mut Message<'_>) -> Answer {
    match google::in_clear(message.bytes) {
        Some(hello) => {
            hello.note(message.sheet);
            Answer::Is
        }
        // Flags, version, and lengths of connection IDs of eight octets or none.
        None if matches!(message.u8(5), Some(0x05 | 0x50 | 0x55)) && message.len() > 30 => Answer::Is,
        None => Answer::No,
    }
}

/// Before: flags, a connection ID if they say so, and the version (Google's QUIC Wire Layout, 2016).
fn old_google(message: &mut Message<'_>) -> Answer {
    let Some(flags) = message.u8(0) else { return Answer::No };
    if flags & 1 == 0 {
        let is_server = !message.is_from_client() || message.client.port == 443;
        let said = if is_server { google::in_clear(message.bytes) } else { None };
        return said.map_or(Answer::No, |_| Answer::Is);
    }
    let at = if flags & 0x08 == 0 { 1 } else { 9 };
    if !message.u32(at).is_some_and(is_old_google) {
        return Answer::No;
    }
    if let Some(hello) = google::in_clear(message.bytes) {
        hello.note(message.sheet);
    }
    Answer::Is
}

#[cfg(test)]
pub(crate) mod tests;
