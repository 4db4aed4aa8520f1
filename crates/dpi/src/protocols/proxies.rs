//! Proxies: what is said to them, before another protocol is spoken through them.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Sheet, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Socks, Carriers::TCP, &[1080], First::Of(&[0, 1, 4, 5]), Strength::Structure, socks),
    row(Protocol::ProxyHeader, Carriers::TCP, &[], First::Of(b"P\r"), Strength::Magic, proxy_header),
];

/// A text on the stack, for addresses.
struct Written {
    octets: [u8; 48],
    length: usize,
}

impl Write for Written {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let place = self.octets.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

fn set_host(sheet: &mut Sheet, address: impl std::fmt::Display) {
    let mut written = Written { octets: [0; 48], length: 0 };
    if write!(written, "{address}").is_ok() {
        sheet.host.set(written.octets.get(..written.length).unwrap_or_default());
    }
}

/// SOCKS 5 (RFC 1928): the client offers methods, the server takes one, the client says where to, the server agrees. SOCKS 4 has only the last two.
fn socks(message: &mut Message<'_>) -> Answer {
    match (message.is_from_client(), message.bytes) {
        (true, [4, ..]) if message.begins => socks_4(message),
        (true, [5, count, methods @ ..]) if message.begins => {
            let fits = *count > 0 && methods.len() == usize::from(*count);
            // IANA's methods, and private ones.
            let known = methods.iter().all(|it| matches!(it, 0..=9 | 0x80..=0xfe));
            if fits && known { Answer::Next } else { Answer::No }
        }
        (true, _) if message.begins => Answer::No,
        (false, [5, method]) if message.begins && begins_with_5(message) => {
            if *method == 0xff {
                Answer::Is
            } else {
                Answer::Open
            }
        }
        (false, [0, code @ 0x5a..=0x5d, ..]) if message.begins && message.len() >= 8 => {
            match message.other().first() {
                [4, 1 | 2, ..] if *code == 0x5a => Answer::Within(8),
                [4, 1 | 2, ..] if message.len() == 8 => Answer::Is,
                _ => Answer::No,
            }
        }
        // A name and a password (RFC 1929), and that they are good.
        (true, [1, ..]) | (false, [1, _]) if is_socks_5(message) => Answer::Open,
        (true, [5, 1..=3, 0, rest @ ..]) if is_socks_5(message) => match destination(rest, message.sheet) {
            Some(_) => Answer::Open,
            None => Answer::No,
        },
        (false, [5, code @ 0..=8, 0, kind @ (1 | 3 | 4), rest @ ..]) if is_socks_5(message) => {
            // Where the proxy is bound: an address and a port (RFC 1928 §6).
            let bound = match (*kind, rest.first()) {
                (1, _) => 4,
                (4, _) => 16,
                (_, name) => 1 + name.map_or(0, |length| usize::from(*length)),
            };
            if *code == 0 { Answer::Within((4 + bound + 2).min(message.len())) } else { Answer::Is }
        }
        _ => Answer::No,
    }
}

fn begins_with_5(message: &Message<'_>) -> bool {
    matches!(message.other().first(), [5, 1..=255, ..])
}

/// Whether both sides have begun as in SOCKS 5.
fn is_socks_5(message: &Message<'_>) -> bool {
    let five = |side: &[u8]| side.first() == Some(&5);
    five(message.own().first()) && five(message.other().first())
}

/// Address type, address, port (RFC 1928 §5).
fn destination(bytes: &[u8], sheet: &mut Sheet) -> Option<u16> {
    let mut cursor = Cursor::new(bytes);
    match cursor.u8()? {
        1 => set_host(sheet, Ipv4Addr::from(cursor.u32()?)),
        3 => sheet.host.set(cursor.vector8()?),
        4 => set_host(sheet, Ipv6Addr::from(<[u8; 16]>::try_from(cursor.take(16)?).ok()?)),
        _ => return None,
    }
    cursor.u16()
}

/// SOCKS 4 and 4a: version, command, port, address, a user, and, if the address is 0.0.0.x, a name; each text ends with a zero.
fn socks_4(message: &mut Message<'_>) -> Answer {
    let mut cursor = Cursor::new(message.bytes);
    let (Some(_), Some(1 | 2), Some(port), Some(address)) =
        (cursor.u8(), cursor.u8(), cursor.u16(), cursor.u32())
    else {
        return Answer::No;
    };
    let Some(texts) = cursor.rest().strip_suffix(b"\0") else { return Answer::No };
    let is_text = |text: &[u8]| text.len() < 255 && text.iter().all(u8::is_ascii_graphic);
    let mut texts = texts.split(|octet| *octet == 0);
    let (user, name, more) = (texts.next().unwrap_or_default(), texts.next(), texts.next());
    if port == 0 || !is_text(user) || more.is_some() {
        return Answer::No;
    }
    match name {
        Some(name) if (1..256).contains(&address) && is_text(name) && name.contains(&b'.') => {
            message.sheet.host.set(name);
            Answer::Open
        }
        // The server's answer will tell.
        None if address > 255 => Answer::Next,
        _ => Answer::No,
    }
}

/// The PROXY protocol (HAProxy, The PROXY protocol, §2.1 and §2.2): a line, or a mark of twelve octets, before the stream of another client.
fn proxy_header(message: &mut Message<'_>) -> Answer {
    const MARK: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
    if !message.begins || !message.is_from_client() {
        return Answer::No;
    }
    let bytes = message.bytes;
    let end = if bytes.starts_with(b"PROXY ") {
        let Some(line) = message.line(108) else {
            return if bytes.len() < 108 { Answer::Longer } else { Answer::No };
        };
        let known: [&[u8]; 3] = [b"PROXY TCP4 ", b"PROXY TCP6 ", b"PROXY UNKNOWN"];
        if !known.iter().any(|it| line.starts_with(it)) {
            return Answer::No;
        }
        message.after(line)
    } else if bytes.starts_with(MARK) {
        match (message.u8(12), message.u16(14)) {
            (Some(0x20 | 0x21), Some(length)) => 16 + usize::from(length),
            (Some(0x20 | 0x21) | None, None) => return Answer::Longer,
            _ => return Answer::No,
        }
    } else {
        // Two octets may be anybody's empty line.
        let may_be = bytes.len() > 2 && (MARK.starts_with(bytes) || b"PROXY ".starts_with(bytes));
        return if may_be { Answer::Longer } else { Answer::No };
    };
    // All that version 2 says of the client may come in several segments, of which it has at most 536 octets (§2.2).
    if bytes.len() >= end { Answer::Within(end) } else { Answer::Longer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Carrier, Side};
    use crate::protocols::show::{client, flow};

    fn socks_flow(messages: &[(Side, &[u8])]) -> (Vec<Answer>, Sheet) {
        flow(Protocol::Socks, Carrier::Tcp, 9999, messages)
    }

    #[test]
    fn socks_5_leads_to_another_protocol() {
        let ask: &[u8] = b"\x05\x01\0\x03\x0bexample.org\x01\xbb";
        let hello: [(Side, &[u8]); 3] =
            [(Side::Client, &[5, 2, 0, 2]), (Side::Server, &[5, 0]), (Side::Client, ask)];
        let (answers, sheet) = socks_flow(&hello);
        assert_eq!(answers, [Answer::Next, Answer::Open, Answer::Open]);
        assert_eq!(sheet.host.bytes(), b"example.org");
        let agrees: (Side, &[u8]) = (Side::Server, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        let (answers, _) = socks_flow(&[&hello[..], &[agrees]].concat());
        assert_eq!(answers.last(), Some(&Answer::Within(10)));
        let named: (Side, &[u8]) = (Side::Server, b"\x05\0\0\x03\x03a.b\0\x50SSH-2.0-x\r\n");
        let (answers, _) = socks_flow(&[&hello[..], &[named]].concat());
        assert_eq!(answers.last(), Some(&Answer::Within(10)), "the server behind it speaks at once");
        let refuses: (Side, &[u8]) = (Side::Server, &[5, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
        let (answers, _) = socks_flow(&[&hello[..], &[refuses]].concat());
        assert_eq!(answers.last(), Some(&Answer::Is));
        let (_, sheet) =
            socks_flow(&[hello[0], hello[1], (Side::Client, &[5, 1, 0, 1, 192, 0, 2, 9, 0, 80])]);
        assert_eq!(sheet.host.bytes(), b"192.0.2.9");
    }

    #[test]
    fn a_password_may_stand_between() {
        let messages: [(Side, &[u8]); 4] = [
            (Side::Client, &[5, 1, 2]),
            (Side::Server, &[5, 2]),
            (Side::Client, b"\x01\x01a\x01b"),
            (Side::Server, &[1, 0]),
        ];
        assert_eq!(socks_flow(&messages).0, [Answer::Next, Answer::Open, Answer::Open, Answer::Open]);
    }

    #[test]
    fn socks_4_names_address_or_host() {
        let ask: &[u8] = b"\x04\x01\0\x50\xc0\0\x02\x01user\0";
        let answers = socks_flow(&[(Side::Client, ask), (Side::Server, &[0, 0x5a, 0, 0, 0, 0, 0, 0])]).0;
        assert_eq!(answers, [Answer::Next, Answer::Within(8)]);
        let named: &[u8] = b"\x04\x01\0\x50\0\0\0\x01\0example.org\0";
        let (answers, sheet) = socks_flow(&[(Side::Client, named)]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Answer::Open], &b"example.org"[..]));
        for length in 1..ask.len() {
            assert_eq!(client(Protocol::Socks, Carrier::Tcp, 1080, &ask[..length]), Answer::No);
        }
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        let one = |bytes: &[u8]| client(Protocol::Socks, Carrier::Tcp, 1080, bytes);
        assert_eq!(one(&[5, 0]), Answer::No);
        assert_eq!(one(&[5, 2, 0]), Answer::No);
        assert_eq!(one(&[5, 1, 0x20]), Answer::No);
        assert_eq!(one(&[4, 3, 0, 80, 1, 2, 3, 4, 0]), Answer::No);
        assert_eq!(socks_flow(&[(Side::Client, &[5, 1, 0]), (Side::Server, &[5, 0, 0])]).0[1], Answer::No);
    }

    #[test]
    fn a_proxys_header_stands_before_another_stream() {
        let one = |bytes: &[u8]| client(Protocol::ProxyHeader, Carrier::Tcp, 80, bytes);
        let line = b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n";
        assert_eq!(one(line), Answer::Within(line.len()));
        assert_eq!(one(&[&line[..], b"GET /"].concat()), Answer::Within(line.len()));
        assert_eq!(one(b"PROXY TCP9 x\r\n"), Answer::No);
        let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x10\0\0\x50";
        assert_eq!(one(header), Answer::Within(28));
        assert_eq!(one(&[&header[..], b"GET /"].concat()), Answer::Within(28));
        for length in 3..header.len() {
            assert_eq!(one(&header[..length]), Answer::Longer);
            assert_eq!(one(&line[..length]), Answer::Longer);
        }
        assert_eq!(one(b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c"), Answer::No);
    }
}
