//! TLS and DTLS.
//!
//! What they say in clear is in the first message of each side: the client's names the server, and in TLS 1.2 the server's shows its certificate.
//! [`ClientHello`] is also what QUIC sends (RFC 9001 §4).

pub mod certificate;
pub mod dtls;
pub mod hello;
pub mod ja4;
mod tor;

pub use dtls::Fragment;
pub use hello::{ClientHello, ServerHello};

use crate::Protocol;
use crate::classify::assembly::{Assembly, MOST};
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Sheet, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;
use hello::extension;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(
        Protocol::Tls,
        Carriers::TCP,
        &[443, 8443],
        First::Of(&[content::CIPHER, content::ALERT, content::HANDSHAKE, content::DATA, 0x80, 0x81]),
        Strength::Magic,
        tls,
    ),
    dtls::RECOGNISER,
    on_port(Protocol::Smtps, &[465]),
    on_port(Protocol::Nntps, &[563]),
    on_port(Protocol::Dot, &[853]),
    on_port(Protocol::Ftps, &[990]),
    on_port(Protocol::Imaps, &[993]),
    on_port(Protocol::Pop3s, &[995]),
];

/// The same hello; what it is for is said by its port, see [`INSIDE`].
const fn on_port(protocol: Protocol, ports: &'static [u16]) -> Recogniser {
    let first = First::Of(&[content::ALERT, content::HANDSHAKE, content::DATA, 0x80, 0x81]);
    row(protocol, Carriers::TCP, ports, first, Strength::Magic, inside).at_home()
}

/// On its usual port [`tls`] tells by itself what is inside.
fn inside(message: &mut Message<'_>) -> Answer {
    let is_usual =
        INSIDE.iter().any(|(port, ..)| *port == message.server.port || *port == message.client.port);
    if is_usual { tls(message) } else { Answer::No }
}

/// ContentType (RFC 8446 §5.1).
pub mod content {
    /// Ciphers are changed.
    pub const CIPHER: u8 = 20;
    /// Something is wrong, or the end.
    pub const ALERT: u8 = 21;
    /// Hellos and what follows them.
    pub const HANDSHAKE: u8 = 22;
    /// What the application says.
    pub const DATA: u8 = 23;
    /// RFC 6520.
    pub const HEARTBEAT: u8 = 24;
}

/// HandshakeType (RFC 8446 §4).
pub mod handshake {
    /// The client begins.
    pub const CLIENT_HELLO: u8 = 1;
    /// The server chooses.
    pub const SERVER_HELLO: u8 = 2;
    /// A DTLS server wants to see that the address is the client's.
    pub const HELLO_VERIFY: u8 = 3;
    /// Who the server is.
    pub const CERTIFICATE: u8 = 11;
}

/// What people call a version; `None`: it is unknown.
pub const fn version_name(version: u16) -> Option<&'static str> {
    Some(match version {
        0x0002 => "SSL 2.0",
        0x0300 => "SSL 3.0",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        0xfeff => "DTLS 1.0",
        0xfefd => "DTLS 1.2",
        0xfefc => "DTLS 1.3",
        _ => return None,
    })
}

/// A record is at most as long as this, ciphered (RFC 5246 §6.2.3).
const LONGEST: u16 = 0x4800;
/// Records that are looked at in a row.
const RECORDS: usize = 16;

/// What is spoken inside, where port or ALPN say it.
const INSIDE: &[(u16, &[u8], Protocol)] = &[
    (465, b"smtp", Protocol::Smtps),
    (563, b"nntp", Protocol::Nntps),
    (853, b"dot", Protocol::Dot),
    (990, b"ftp", Protocol::Ftps),
    (993, b"imap", Protocol::Imaps),
    (995, b"pop3", Protocol::Pop3s),
];

/// One record (RFC 8446 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'b> {
    /// See [`content`].
    pub kind: u8,
    /// In its old place.
    pub version: u16,
    /// Its length as it says itself.
    pub length: u16,
    /// What of it is there.
    pub body: &'b [u8],
}

impl<'b> Record<'b> {
    /// The record at the beginning; `None` if there is none, or its header isn't whole.
    pub fn parse(cursor: &mut Cursor<'b>) -> Option<Self> {
        let (kind, version, length) = (cursor.u8()?, cursor.u16()?, cursor.u16()?);
        let fits = matches!(kind, content::CIPHER..=content::HEARTBEAT)
            && matches!(version, 0x0300..=0x0304)
            && (1..=LONGEST).contains(&length);
        fits.then(|| Self { kind, version, length, body: cursor.take_most(length.into()) })
    }

    /// Whether all of it is there.
    pub fn is_whole(&self) -> bool {
        self.body.len() == usize::from(self.length)
    }
}

/// What the handshake records at the beginning of a stream say: the octets of one where they are, those of several put together in `room`.
pub fn joined<'b>(stream: &'b [u8], room: &'b mut Assembly) -> &'b [u8] {
    let mut cursor = Cursor::new(stream);
    let first = Record::parse(&mut cursor).filter(|it| it.kind == content::HANDSHAKE);
    let Some(first) = first else { return &[] };
    let mut ahead = cursor;
    let is_another = |it: &Record<'_>| it.kind == content::HANDSHAKE;
    if message(first.body).is_some_and(|it| it.is_whole() && it.kind == handshake::CLIENT_HELLO)
        || !Record::parse(&mut ahead).is_some_and(|it| is_another(&it))
    {
        return first.body;
    }
    room.clear();
    let mut at = 0;
    let mut record = Some(first);
    for _ in 0..RECORDS {
        let Some(Record { body, .. }) = record.filter(is_another) else { break };
        if room.put(at, body.get(..MOST.saturating_sub(at)).unwrap_or(body)).is_err() {
            break;
        }
        at += body.len();
        record = Record::parse(&mut cursor);
    }
    room.contiguous()
}

/// One handshake message (RFC 8446 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handshake<'b> {
    /// See [`handshake`].
    pub kind: u8,
    /// Its length as it says itself.
    pub length: usize,
    /// What of it is there.
    pub body: &'b [u8],
    /// What follows it.
    pub rest: &'b [u8],
}

impl Handshake<'_> {
    /// Whether all of it is there.
    pub const fn is_whole(&self) -> bool {
        self.body.len() == self.length
    }
}

/// The handshake message at the beginning.
pub fn message(bytes: &[u8]) -> Option<Handshake<'_>> {
    let mut cursor = Cursor::new(bytes);
    let (kind, length) = (cursor.u8()?, cursor.u24()?);
    let body = cursor.take_most(length);
    Some(Handshake { kind, length, body, rest: cursor.rest() })
}

/// Notes what a ClientHello says about the application: one walk over its extensions.
pub fn note(hello: &ClientHello<'_>, sheet: &mut Sheet) {
    for it in hello.extensions() {
        match it.kind {
            extension::SERVER_NAME => {
                if let Some(name) = hello::server_name(it.data) {
                    sheet.host.set(name);
                }
            }
            extension::ALPN => {
                if let Some(first) = hello::application_protocols(it.data).next() {
                    sheet.alpn.set(first);
                }
            }
            _ => {}
        }
    }
}

/// Notes the fingerprint of a whole ClientHello, if it is sought.
pub fn fingerprint(hello: &ClientHello<'_>, over: ja4::Over, sheet: &mut Sheet) {
    if sheet.seeks_ja4 {
        sheet.ja4.set(ja4::ja4(hello, over).as_bytes());
    }
}

/// RFC 8446 §5.1, §4.1.2, §4.1.3: a record whose version and length are possible, and in it a hello that has one, too. Also in the middle of a
/// connection, by records that follow each other; and SSL 2's hello (RFC 5246 §E.2).
fn tls(message: &mut Message<'_>) -> Answer {
    if let Some(answer) = tor::measure(message) {
        return answer;
    }
    if !message.begins {
        return Answer::No;
    }
    if message.u8(0).is_some_and(|first| first >= 0x80) {
        return old_hello(message);
    }
    // The record's header and the first message's, as far as they are there.
    let may_be = |(place, octet): (usize, &u8)| match place {
        0 => *octet == content::HANDSHAKE,
        1 => *octet == 3,
        2 => *octet <= 4,
        3 => *octet <= (LONGEST >> 8) as u8,
        5 => matches!(*octet, handshake::CLIENT_HELLO | handshake::SERVER_HELLO),
        6 => *octet == 0,
        _ => true,
    };
    let is_hello = message.bytes.iter().take(7).enumerate().all(may_be);
    match message.u8(5) {
        _ if !is_hello => amid(message.bytes),
        _ if message.len() < 7 => Answer::Longer,
        Some(handshake::CLIENT_HELLO) => client_hello(message),
        _ => server_hello(message),
    }
}

fn client_hello(message: &mut Message<'_>) -> Answer {
    let said = joined(message.bytes, message.assembly);
    let Some(first) = self::message(said) else { return Answer::Longer };
    if !matches!(first.body, [] | [3] | [3, 0..=4, ..]) {
        return Answer::No;
    }
    let Some(hello) = ClientHello::parse(first.body, false) else {
        return if first.is_whole() || message.bytes.len() >= MOST { Answer::No } else { Answer::Longer };
    };
    note(&hello, message.sheet);
    if !first.is_whole() && message.bytes.len() < MOST {
        return Answer::Longer;
    }
    if first.is_whole() {
        fingerprint(&hello, ja4::Over::Tcp, message.sheet);
    }
    let port = message.server.port;
    let inside = INSIDE.iter().find(|(usual, name, _)| *usual == port || *name == message.sheet.alpn.bytes());
    match inside {
        Some((_, _, protocol)) => Answer::Other(*protocol),
        None if message.sheet.alpn.is_empty() && tor::is_name(message.sheet.host.bytes()) => {
            tor::suspect(message)
        }
        // The server's certificate may still tell.
        None if message.sheet.host.is_empty() && hello.newest_version() < 0x0305 => Answer::Open,
        None => Answer::Is,
    }
}

fn server_hello(message: &mut Message<'_>) -> Answer {
    let said = joined(message.bytes, message.assembly);
    let Some(first) = self::message(said) else { return Answer::Longer };
    let Some(hello) = ServerHello::parse(first.body) else {
        let may_be = !first.is_whole() && matches!(first.body, [] | [3] | [3, 0..=4, ..]);
        return if may_be { Answer::Longer } else { Answer::No };
    };
    if hello.version >> 8 != 3 {
        return Answer::No;
    }
    if let Some(name) = hello.application_protocol() {
        message.sheet.alpn.set(name);
    }
    if hello.chosen_version() >= 0x0304 {
        return Answer::Is;
    }
    // Up to TLS 1.2 the certificate follows in clear (RFC 5246 §7.4.2), unless a session goes on.
    match self::message(first.rest) {
        None if message.bytes.len() < MOST && ends_with_handshake(message.bytes) => Answer::Longer,
        Some(next) if next.kind == handshake::CERTIFICATE => {
            let mut list = Cursor::new(next.body);
            let _length = list.u24();
            let names = list.vector24().and_then(certificate::Names::parse);
            match names {
                Some(names) => {
                    if let Some(host) = names.host() {
                        message.sheet.host.set(host);
                    }
                    Answer::Is
                }
                None if !next.is_whole() && message.bytes.len() < MOST => Answer::Longer,
                None => Answer::Is,
            }
        }
        _ => Answer::Is,
    }
}

/// Whether all records that are there are of the handshake, so that more of it may follow.
fn ends_with_handshake(stream: &[u8]) -> bool {
    let mut cursor = Cursor::new(stream);
    (0..RECORDS).map_while(|_| Record::parse(&mut cursor)).all(|it| it.kind == content::HANDSHAKE)
}

/// Records that follow each other, or one that ends with the packet.
fn amid(bytes: &[u8]) -> Answer {
    let mut cursor = Cursor::new(bytes);
    for count in 0..RECORDS {
        match Record::parse(&mut cursor) {
            Some(it) if it.is_whole() && cursor.is_empty() => return Answer::Is,
            Some(it) if it.is_whole() => {}
            Some(_) if count == 0 => return Answer::Perhaps,
            Some(_) => return Answer::Is,
            None if count == 0 => return Answer::No,
            // A header that is cut off, or another thing.
            None => return if cursor.rest().len() < 5 { Answer::Is } else { Answer::Perhaps },
        }
    }
    Answer::Is
}

/// SSL 2's hello, by which old clients asked for TLS: lengths that fit together.
fn old_hello(message: &Message<'_>) -> Answer {
    let mut cursor = Cursor::new(message.bytes);
    let (Some(length), Some(kind), Some(version)) = (cursor.u16(), cursor.u8(), cursor.u16()) else {
        return Answer::No;
    };
    let (Some(suites), Some(session), Some(challenge)) = (cursor.u16(), cursor.u16(), cursor.u16()) else {
        return Answer::No;
    };
    let fits = kind == handshake::CLIENT_HELLO
        && matches!(version, 2 | 0x0300..=0x0304)
        && suites > 0
        && suites.is_multiple_of(3)
        && matches!(session, 0 | 16)
        && (16..=32).contains(&challenge)
        && u32::from(length & 0x7fff) == 9 + u32::from(suites) + u32::from(session) + u32::from(challenge);
    if fits && message.is_from_client() { Answer::Is } else { Answer::No }
}

#[cfg(test)]
pub(crate) mod tests;
