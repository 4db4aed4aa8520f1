//! HTTP/2 without TLS: with prior knowledge, between services, and gRPC.

use super::{of_path, of_type, without_port};
use crate::Protocol;
use crate::classify::assembly::MOST;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Sheet, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;

pub(super) const RECOGNISER: Recogniser =
    row(Protocol::Http2, Carriers::TCP, &[80, 8080, 50051], First::Of(b"P\0"), Strength::Magic, http2);

/// RFC 9113 §3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Frames that are looked at.
const FRAMES: usize = 32;
/// Header fields that are read.
const FIELDS: usize = 64;

/// Frame types (RFC 9113 §6).
mod frame {
    pub const HEADERS: u8 = 1;
    pub const SETTINGS: u8 = 4;
}

/// A frame (RFC 9113 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'b> {
    /// What it is.
    pub kind: u8,
    /// By its type.
    pub flags: u8,
    /// Which stream it is of; 0 is the connection.
    pub stream: u32,
    /// All of it.
    pub payload: &'b [u8],
}

/// The frames that are whole.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut cursor = Cursor::new(bytes);
    std::iter::from_fn(move || {
        let (length, kind, flags, stream) = (cursor.u24()?, cursor.u8()?, cursor.u8()?, cursor.u32()?);
        Some(Frame { kind, flags, stream: stream & 0x7fff_ffff, payload: cursor.take(length)? })
    })
}

impl<'b> Frame<'b> {
    /// The header block in HEADERS, without padding and priority (RFC 9113 §6.2).
    pub fn header_block(&self) -> Option<&'b [u8]> {
        let mut cursor = Cursor::new(self.payload);
        let padding = if self.flags & 0x08 == 0 { 0 } else { cursor.u8()? };
        if self.flags & 0x20 != 0 {
            cursor.take(5)?;
        }
        let rest = cursor.rest();
        rest.get(..rest.len().checked_sub(padding.into())?)
    }
}

/// A client begins with the preface, a server with SETTINGS on stream 0; both have a length that is a multiple of six.
fn http2(message: &mut Message<'_>) -> Answer {
    if !message.begins {
        return Answer::No;
    }
    let bytes = message.bytes;
    if message.u8(0) == Some(0) {
        let first = frames(bytes).next();
        let is_settings = |it: &Frame<'_>| {
            it.kind == frame::SETTINGS
                && it.flags == 0
                && it.stream == 0
                && it.payload.len().is_multiple_of(6)
        };
        return if !message.is_from_client() && first.is_some_and(|it| is_settings(&it)) {
            Answer::Is
        } else {
            Answer::No
        };
    }
    let Some(rest) = bytes.strip_prefix(PREFACE) else {
        return if PREFACE.starts_with(bytes) { Answer::Longer } else { Answer::No };
    };
    let mut request = frames(rest).take(FRAMES).filter(|it| it.kind == frame::HEADERS);
    let Some(block) = request.next().and_then(|it| it.header_block()) else {
        return if bytes.len() < MOST { Answer::Longer } else { Answer::Is };
    };
    note(block, message.sheet);
    let (content, path) = (message.sheet.content.bytes(), message.sheet.path.bytes());
    if content.starts_with(b"application/grpc") {
        Answer::Other(Protocol::Grpc)
    } else {
        of_type(content).or_else(|| of_path(path)).map_or(Answer::Is, Answer::Other)
    }
}

/// Notes what a request's header block says. What it takes from the dynamic table is passed over: in a first request that is empty.
fn note(block: &[u8], sheet: &mut Sheet) {
    let mut cursor = Cursor::new(block);
    for _ in 0..FIELDS {
        if field(&mut cursor, sheet).is_none() {
            return;
        }
    }
}

/// Places in the static table (RFC 7541 §A).
mod place {
    pub const AUTHORITY: usize = 1;
    pub const PATH: usize = 4;
    pub const INDEX_PATH: usize = 5;
    pub const CONTENT_TYPE: usize = 31;
    pub const HOST: usize = 38;
    pub const USER_AGENT: usize = 58;
}

/// One field (RFC 7541 §6).
fn field(cursor: &mut Cursor<'_>, sheet: &mut Sheet) -> Option<()> {
    let first = cursor.u8()?;
    let prefix = match first {
        0x80.. => {
            match integer(cursor, first, 7)? {
                place::PATH => sheet.path.set(b"/"),
                place::INDEX_PATH => sheet.path.set(b"/index.html"),
                _ => {}
            }
            return Some(());
        }
        0x40..=0x7f => 6,
        // The table's size.
        0x20..=0x3f => return integer(cursor, first, 5).map(|_| ()),
        0..=0x1f => 4,
    };
    let (mut name_room, mut value_room) = ([0; 32], [0; 255]);
    let place = match integer(cursor, first, prefix)? {
        0 => match text(cursor, &mut name_room)? {
            b":authority" => place::AUTHORITY,
            b":path" => place::PATH,
            b"content-type" => place::CONTENT_TYPE,
            b"user-agent" => place::USER_AGENT,
            b"host" => place::HOST,
            _ => 0,
        },
        place => place,
    };
    let value = text(cursor, &mut value_room)?;
    match place {
        place::AUTHORITY => sheet.host.set(without_port(value)),
        place::HOST if sheet.host.is_empty() => sheet.host.set(without_port(value)),
        place::PATH | place::INDEX_PATH => sheet.path.set(value),
        place::CONTENT_TYPE => sheet.content.set(value),
        place::USER_AGENT => sheet.agent.set(value),
        _ => {}
    }
    Some(())
}

/// RFC 7541 §5.1.
fn integer(cursor: &mut Cursor<'_>, first: u8, prefix: u8) -> Option<usize> {
    let most = (1_u8 << prefix) - 1;
    let mut number = usize::from(first & most);
    if number < usize::from(most) {
        return Some(number);
    }
    for shift in [0, 7, 14] {
        let octet = cursor.u8()?;
        number += usize::from(octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// RFC 7541 §5.2; what is too long for the room, or has unusual characters, is cut off there.
fn text<'r, const N: usize>(cursor: &mut Cursor<'_>, room: &'r mut [u8; N]) -> Option<&'r [u8]> {
    let first = cursor.u8()?;
    let length = integer(cursor, first, 7)?;
    let octets = cursor.take(length)?;
    let mut at = 0;
    let mut put = |octet: u8| -> Option<()> {
        *room.get_mut(at)? = octet;
        at += 1;
        Some(())
    };
    if first & 0x80 == 0 {
        let _ = octets.iter().try_for_each(|octet| put(*octet));
    } else {
        let _ = unpack(octets, &mut put);
    }
    room.get(..at)
}

/// The code of RFC 7541 §B, as far as texts have use for it: how many bits, and which characters have a code of so many, in the order of their
/// codes. Of each length the codes follow each other, and begin where the shorter ones end.
const CODE: &[(u32, &[u8])] = &[
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b"!\"()?"),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\0$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
];

/// Characters, until they end or one is not of [`CODE`].
fn unpack(octets: &[u8], put: &mut impl FnMut(u8) -> Option<()>) -> Option<()> {
    let bits = octets.len() * 8;
    let mut at = 0;
    while at < bits {
        // Sixteen bits from here; what fills the last octet is ones (RFC 7541 §5.2).
        let octet = |place: usize| u32::from(octets.get(place).copied().unwrap_or(0xff));
        let word = octet(at / 8) << 16 | octet(at / 8 + 1) << 8 | octet(at / 8 + 2);
        let ahead = word << (at % 8) & 0x00ff_ffff;
        let (mut code, mut length) = (0, 0);
        let found = CODE.iter().find_map(|(size, characters)| {
            code <<= size - length;
            length = *size;
            let place = (ahead >> (24 - size)).checked_sub(code)? as usize;
            code += characters.len() as u32;
            characters.get(place).map(|it| (*it, *size as usize))
        });
        let (character, size) = found?;
        at += size;
        if at <= bits {
            put(character)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Carrier, Side};
    use crate::protocols::show::{client, flow, server};

    const SETTINGS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];

    fn request(block: &[u8]) -> Vec<u8> {
        let headers = [&[0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1], block].concat();
        [PREFACE, SETTINGS, &headers].concat()
    }

    /// RFC 7541 §C.4.1: GET, http, /, and www.example.com in Huffman's code.
    const BLOCK: &[u8] = &[
        0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
    ];

    #[test]
    fn a_request_names_the_server() {
        let (answers, sheet) = flow(Protocol::Http2, Carrier::Tcp, 80, &[(Side::Client, &request(BLOCK))]);
        assert_eq!(answers, [Answer::Is]);
        assert_eq!((sheet.host.bytes(), sheet.path.bytes()), (&b"www.example.com"[..], &b"/"[..]));
    }

    #[test]
    fn grpc_is_told_by_its_content_type() {
        let block = b"\x83\x86\x44\x04/a/b\x41\x05a.org\x5f\x10application/grpc\x40\x0auser-agent\x04grpc";
        let (answers, sheet) = flow(Protocol::Http2, Carrier::Tcp, 80, &[(Side::Client, &request(block))]);
        assert_eq!(answers, [Answer::Other(Protocol::Grpc)]);
        assert_eq!((sheet.path.bytes(), sheet.agent.bytes()), (&b"/a/b"[..], &b"grpc"[..]));
    }

    /// RFC 7541 §C.4.3, §C.6.1.
    #[test]
    fn huffmans_code_is_as_its_standard_has_it() {
        for (octets, expected) in [
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf][..], &b"custom-value"[..]),
            (&[0x64, 0x02], b"302"),
            (
                &[
                    0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81,
                    0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
                ],
                b"Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (
                &[
                    0x9d, 0x29, 0xad, 0x17, 0x18, 0x63, 0xc7, 0x8f, 0x0b, 0x97, 0xc8, 0xe9, 0xae, 0x82, 0xae,
                    0x43, 0xd3,
                ],
                b"https://www.example.com",
            ),
        ] {
            let mut text = Vec::new();
            let _ = unpack(octets, &mut |octet| {
                text.push(octet);
                Some(())
            });
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn cut_off_anywhere_more_is_asked_for() {
        let whole = request(BLOCK);
        for length in 1..whole.len() {
            assert_eq!(
                client(Protocol::Http2, Carrier::Tcp, 80, &whole[..length]),
                Answer::Longer,
                "{length}"
            );
        }
        assert_eq!(client(Protocol::Http2, Carrier::Tcp, 80, b"PRI * HTTP/3"), Answer::No);
        assert_eq!(server(Protocol::Http2, Carrier::Tcp, 80, SETTINGS), Answer::Is);
        assert_eq!(server(Protocol::Http2, Carrier::Tcp, 80, &[0; 15]), Answer::No);
        for length in 0..BLOCK.len() {
            note(&BLOCK[..length], &mut Sheet::default());
        }
    }
}
