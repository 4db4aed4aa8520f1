//! Messages and voices between people, by protocols that are no standard of telephony.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{
    contains, is, is_name, is_number, is_printed, perhaps, row, starts_like_any, starts_with_any, until,
};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Agora, UDP, &[8130], First::Of(b"\0"), Structure, agora),
    row(Protocol::Bfcp, Carriers::BOTH, &[], First::Of(b"\x20\x30\x40"), Shape, bfcp),
    row(Protocol::Discord, UDP, &[], First::Of(b"\x13\0"), Structure, discord),
    row(Protocol::Irc, TCP, &[6667, 6666, 6665, 194], First::Of(b"NnUuPpC:"), Structure, irc),
    row(Protocol::KakaoTalk, TCP, &[], First::Any, Structure, kakaotalk).having(17, 0, 0),
    row(Protocol::LineCall, UDP, &[], First::Range(0xd0, 0xdf), Structure, line_call),
    row(Protocol::MsnMessenger, TCP, &[1863], First::Of(b"V"), Magic, msn),
    row(Protocol::Msrp, TCP, &[2855], First::Of(b"M"), Magic, msrp),
    row(Protocol::Mumble, UDP, &[64738], First::Of(b"\0"), Structure, mumble),
    row(Protocol::Oscar, TCP, &[5190], First::Of(b"\x2a"), Structure, oscar),
    row(Protocol::Qq, UDP, &[8000, 8001], First::Of(b"\x02"), Structure, qq).at_home(),
    row(Protocol::TeamSpeak, UDP, &[9987], First::Of(b"T\xf4"), Magic, teamspeak),
    row(Protocol::Telegram, TCP, &[], First::Any, Structure, telegram),
    row(Protocol::Telegram, UDP, &[], First::Any, Structure, telegram).having(16, 0xff, 0xff),
    row(Protocol::Viber, UDP, &[5243, 7985, 7987, 9785], First::Any, Shape, viber).at_home(),
    row(Protocol::WeChat, TCP, &[], First::Of(b"\x15\x16\x17\x19"), Structure, wechat),
    row(Protocol::WhatsApp, TCP, &[5222, 5242], First::Of(b"EW"), Magic, whatsapp),
    row(Protocol::Xmpp, TCP, &[5222, 5269, 5223], First::Of(b"<"), Magic, xmpp),
    row(Protocol::YahooMessenger, TCP, &[5050], First::Of(b"Y"), Magic, yahoo),
    row(Protocol::Zoom, UDP, &[8801], First::Of(b"\x05\x1f"), Structure, zoom),
];

/// Agora's network: a handshake with the tags that Google's QUIC had once, and the name of an edge.
fn agora(m: &mut Message<'_>) -> Answer {
    let Some(at) = m.bytes.windows(4).take(40).position(|four| four == b"SNI\0") else { return Answer::No };
    // Its length, the lower octet first, then the name.
    let length = m.u16_le(at + 4).map_or(0, usize::from);
    let named = m.bytes.get(at + 6..).unwrap_or_default();
    let name = named.get(..length).unwrap_or_default();
    if !name.iter().all(|octet| octet.is_ascii_alphanumeric() || b".-".contains(octet)) {
        return Answer::No;
    }
    if contains(name, b"agora", 255) || contains(name, b"sd-rtn", 255) {
        m.sheet.host.set(name);
        return Answer::Is;
    }
    Answer::No
}

/// RFC 8855 §5.1: version 1 or 2, a primitive, the length of what follows in fours, a conference.
fn bfcp(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let length = usize::from(m.u16(2)?) * 4 + 12;
        let version = matches!(m.u8(0)?, 0x20 | 0x30 | 0x40);
        Some(
            version && (1..=18).contains(&m.u8(1)?) && length == m.len() && m.u32(4)? != 0 && m.u16(10)? != 0,
        )
    })
}

/// Voice: a fixed number and a counter keep it alive; addresses are discovered by 74 octets of a kind, a length and the source's number.
fn discord(m: &mut Message<'_>) -> Answer {
    is(|| {
        let alive = m.has(0, &[0x13, 0x37, 0xca, 0xfe]) && m.len() == 8;
        let asked =
            m.has(0, &[0, 1, 0, 70]) && m.len() == 74 && m.bytes.get(8..72)?.iter().all(|octet| *octet == 0);
        let address = || until(m.bytes.get(8..)?, 0, 64).map(|text| text.len() >= 7 && is_name(text));
        Some(alive || asked || (m.has(0, &[0, 2, 0, 70]) && m.len() == 74 && address()?))
    })
}

/// RFC 2812 §3 and IRCv3: names first, or what a server notices.
fn irc(m: &mut Message<'_>) -> Answer {
    let Some(line) = m.line(512).filter(|_| m.begins) else { return Answer::No };
    let after = m.bytes.get(line.len()..).unwrap_or_default();
    is(|| {
        let nick = |line: &[u8]| {
            let begins = starts_like_any(line, &[b"NICK "]);
            begins
                && line.get(5..).is_some_and(|nick| {
                    !nick.is_empty() && !nick.trim_ascii().contains(&b' ') && is_printed(nick)
                })
        };
        let user = |line: &[u8]| {
            starts_like_any(line, &[b"USER "])
                && line.split(|octet| *octet == b' ').count() >= 5
                && contains(line, b" :", 512)
        };
        let next = after.trim_ascii_start();
        let password =
            starts_like_any(line, &[b"PASS "]) && starts_like_any(next, &[b"NICK ", b"USER ", b"CAP "]);
        let able = starts_with_any(line, &[b"CAP LS", b"CAP REQ :"]);
        let noticed = line.first() == Some(&b':')
            && (contains(line, b" NOTICE ", 200)
                || contains(line, b" 001 ", 200)
                || contains(line, b" CAP * LS", 200));
        Some(
            nick(line)
                || user(line)
                || password
                || able
                || noticed
                || starts_with_any(line, &[b"NOTICE AUTH :", b"NOTICE * :"]),
        )
    })
}

/// LOCO: a number, a status, a method in eleven octets, a kind, and the length of what follows.
fn kakaotalk(m: &mut Message<'_>) -> Answer {
    is(|| {
        let method = m.bytes.get(6..17)?;
        let letters =
            method.iter().take_while(|octet| octet.is_ascii_uppercase() || octet.is_ascii_digit()).count();
        let zeros = method.iter().skip(letters).all(|octet| *octet == 0);
        Some(
            m.u16(4)? == 0
                && letters >= 4
                && zeros
                && m.u8(17)? == 0
                && m.u32_le(18)? as usize + 22 == m.len(),
        )
    })
}

/// What LINE's calls begin with, and go on with beside RTP (as seen; there is no description): 0b1101x0, the length of what follows after two more
/// octets in ten bits, and a number that is one more with each packet of a side.
fn line_call(m: &mut Message<'_>) -> Answer {
    let shaped = |begins: &[u8], length: usize| {
        let Some([first, second, ..]) = begins.first_chunk::<4>() else { return false };
        let said = usize::from(first & 3) << 8 | usize::from(*second);
        first & 0xf4 == 0xd0 && said >= 32 && said + 4 == length
    };
    if !shaped(m.bytes, m.len()) {
        return Answer::No;
    }
    let number = |begins: &[u8]| begins.get(2..4).map(|it| u16::from_be_bytes([it[0], it[1]]));
    let (own, other) = (m.own(), m.other());
    let goes_on = shaped(own.last(), own.last_length.into())
        && m.u16(2) == number(own.last()).map(|number| number.wrapping_add(1));
    if goes_on || shaped(other.first(), other.first_length.into()) { Answer::Is } else { Answer::Next }
}

/// The versions that a client speaks.
fn msn(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.line(200).is_some_and(|line| line.starts_with(b"VER ") && contains(line, b"MSNP", 40))))
}

/// RFC 4975 §7: a request or an answer of a session.
fn msrp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let line = m.line(120)?;
        let mut words = line.strip_prefix(b"MSRP ")?.split(|octet| *octet == b' ');
        let (name, what) = (words.next()?, words.next()?);
        Some(is_name(name) && (matches!(what, b"SEND" | b"REPORT") || (is_number(what) && what.len() == 3)))
    })
}

/// "Mumble protocol", "UDP ping": four zeros and a number; the answer has a version, the number, and three counts.
fn mumble(m: &mut Message<'_>) -> Answer {
    let other = m.other().first();
    match m.len() {
        12 if m.u32(0) == Some(0) && m.u32(4) != Some(0) => {
            if m.has_port(64738) {
                Answer::Is
            } else {
                Answer::Next
            }
        }
        24 if other.get(4..12).is_some_and(|number| m.has(4, number)) && other.starts_with(&[0; 4]) => {
            Answer::Is
        }
        _ => Answer::No,
    }
}

/// AIM and ICQ: a star, a channel, a sequence, the length of what follows; a connection begins with version 1.
fn oscar(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(4)?);
        let first = m.u8(1)? == 1 && m.u32(6)? == 1 && length >= 4;
        let data = m.u8(1)? == 2 && (1..=0x25).contains(&m.u16(6)?) && length >= 10 && m.has_port(5190);
        Some(length + 6 == m.len() && (first || data))
    })
}

/// QQ's datagrams: a two, a version, a command, a sequence, who it is, and a three at the end; on its ports.
fn qq(m: &mut Message<'_>) -> Answer {
    is(|| {
        let usual = m.has_port(8000) || m.has_port(8001);
        Some(usual && m.len() >= 20 && m.bytes.last() == Some(&3) && m.u32(7)? > 10_000 && m.u16(3)? < 0x0600)
    })
}

/// Version 3 begins with its name; version 2 with a number and a class.
fn teamspeak(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.has(0, b"TS3INIT1")
                || (m.has(0, &[0xf4, 0xbe]) && matches!(m.u16_le(2)?, 3 | 4 | 0x0104) && m.len() >= 16),
        )
    })
}

/// MTProto "Transports": one octet or four say how messages are framed; the first one has no key yet (eight zeros). Calls go by a reflector, which is
/// asked with a number of sixteen octets and twelve of ones.
fn telegram(m: &mut Message<'_>) -> Answer {
    if m.carrier == Carrier::Udp {
        return is(|| {
            Some(
                m.has(16, &[0xff; 12]) && matches!(m.len(), 32 | 40 | 64) && m.bytes.get(..16)? != [0xff; 16],
            )
        });
    }
    is(|| {
        let at = match m.bytes.first()? {
            0xef => 2,
            0xee if m.has(0, &[0xee; 4]) => 8,
            0xdd if m.has(0, &[0xdd; 4]) => 8,
            // Full: a length and number 0.
            _ if m.u32(4)? == 0 && m.u32_le(0)? as usize == m.len() => 8,
            _ => return Some(false),
        };
        // No key, then a number that is a time, and the length of the message.
        Some(
            m.begins
                && m.has(at, &[0; 8])
                && (4..2048).contains(&m.u32_le(at + 16)?)
                && at + 20 + m.u32_le(at + 16)? as usize <= m.len() + 16,
        )
    })
}

/// What Viber's calls have on its ports before media flow, by what other engines' public sources say of it: a number, then a kind, the lower octet first, which goes with
/// a length. It was not seen on real traffic.
fn viber(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        Some(match (m.u16_le(2)?, m.len()) {
            (3, 12) | (9, 20) | (0x19 | 0x1b, 34) => true,
            (1, 6..) => m.u16_le(4)? == 5,
            _ => false,
        })
    })
}

/// mmtls: records as TLS has them, of version 0xf103 or 0xf104.
fn wechat(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(3)?);
        Some(
            m.u8(1)? == 0xf1
                && matches!(m.u8(2)?, 3 | 4)
                && (length + 5 == m.len() || m.has(length + 6, &[0xf1])),
        )
    })
}

/// Noise with a prologue of two letters and a version; a client that knows its edge says so before.
fn whatsapp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let edge = m.has(0, &[b'E', b'D', 0, 1]);
        let plain = m.has(0, b"WA") && (1..=8).contains(&m.u8(2)?) && m.u8(3)? <= 5;
        Some(m.begins && (edge || plain))
    })
}

/// RFC 6120 §4: a stream of XML. It is followed to TLS (§5), or to what shows that there will be none.
fn xmpp(m: &mut Message<'_>) -> Answer {
    let said = |what: &[u8]| contains(m.bytes, what, 1024);
    if m.begins
        && (said(b"<stream:stream")
            || said(b"http://etherx.jabber.org/streams")
            || said(b"urn:ietf:params:xml:ns:xmpp-framing"))
    {
        let to = m.bytes.windows(4).take(512).position(|four| four == b" to=");
        if let Some(name) = to.and_then(|at| m.bytes.get(at + 5..)).filter(|_| m.is_from_client()) {
            let length = name
                .iter()
                .take_while(|octet| octet.is_ascii_alphanumeric() || b".-".contains(octet))
                .count();
            m.sheet.host.set(name.get(..length).unwrap_or_default());
        }
        return Answer::Open;
    }
    // What follows is shown to whoever said so of the beginning; the beginning of another thing in XML is none of it.
    if m.begins || !m.own().first().starts_with(b"<") {
        return Answer::No;
    }
    match m.bytes {
        [b'<', ..] if said(b"<proceed") => Answer::Within(m.len()),
        [b'<', ..] if said(b"<starttls") || said(b"<stream:features") => Answer::Open,
        _ => Answer::Is,
    }
}

/// "YMSG", a version, the length of what follows.
fn yahoo(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"YMSG") && usize::from(m.u16(8)?) + 20 <= m.len()))
}

/// Media by way of a server: five, a sequence, a direction, a kind of media, and RTP at the place that the kind has (Michel and others, IMC 2022). How members
/// of a meeting find a way without it: a kind, and their own address in words.
fn zoom(m: &mut Message<'_>) -> Answer {
    is(|| {
        if m.u8(0)? == 5 {
            let rtp = match m.u8(8)? {
                15 => 27,
                16 => 32,
                13 => 35,
                33 | 34 => 24,
                _ => return Some(false),
            };
            return Some(m.has_port(8801) && matches!(m.u8(7)?, 0 | 4) && m.u8(rtp)? >> 6 == 2);
        }
        let length = usize::from(m.u8(27)?);
        let address = m.bytes.get(28..28 + length)?;
        let worded = (7..=39).contains(&length)
            && address.iter().all(|octet| octet.is_ascii_hexdigit() || b".:".contains(octet));
        Some(matches!(m.u16(0)?, 0x1f01 | 0x1f02) && m.bytes.get(24..27)? == [0; 3] && worded)
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, Next, No, Open, Perhaps, Within};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;
    use crate::protocols::show::flow;

    #[test]
    fn messages_are_known_by_how_they_begin() {
        let mut asked = vec![0, 1, 0, 70, 1, 2, 3, 4];
        asked.resize(74, 0);
        let mut reflected = vec![7; 16];
        reflected.resize(28, 0xff);
        reflected.resize(40, 1);
        let mut media = vec![5, 0, 1, 0, 0, 0, 0, 0, 15];
        media.resize(27, 0);
        media.extend_from_slice(&[0x90, 112, 0, 1]);
        let mut keyless = vec![0xef, 10];
        keyless.resize(10, 0);
        keyless.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 20, 0, 0, 0]);
        keyless.resize(42, 9);
        check(&[
            (Protocol::Agora, Udp, 8130, Client, b"\0\x5a\x38\x4c\0\0\x21\0\0\0\0\0\x04SNI\0\x10\x0023.edge.agora.ioPDMD\0", Is),
            (Protocol::Bfcp, Tcp, 5070, Client, b"\x20\x03\0\x01\0\0\0\x01\0\x02\0\x05\x04\x20\0\0", Perhaps),
            (Protocol::Discord, Udp, 50004, Client, b"\x13\x37\xca\xfe\x0e\0\0\0", Is),
            (Protocol::Discord, Udp, 50004, Client, &asked, Is),
            (Protocol::Discord, Udp, 50004, Client, &asked[..73], No),
            (Protocol::Irc, Tcp, 6667, Client, b"NICK me\r\nUSER me 0 * :Me\r\n", Is),
            (Protocol::Irc, Tcp, 6667, Client, b"USER me\r\n", No),
            (Protocol::Irc, Tcp, 6667, Server, b":irc.example NOTICE * :*** Looking up your hostname\r\n", Is),
            (Protocol::KakaoTalk, Tcp, 995, Client, b"\x01\0\0\0\0\0CHECKIN\0\0\0\0\0\x02\0\0\0ab", Is),
            (Protocol::Viber, Udp, 7985, Client, b"\x12\x34\x03\0abcdefgh", Perhaps),
            (Protocol::Viber, Udp, 7985, Client, b"\x12\x34\x03\0abcdefghi", No),
            (Protocol::Viber, Udp, 7985, Client, b"\x12\x34\x01\0\x05\0ab", Perhaps),
            (Protocol::MsnMessenger, Tcp, 1863, Client, b"VER 1 MSNP18 CVR0\r\n", Is),
            (Protocol::Msrp, Tcp, 2855, Client, b"MSRP a786hjs2 SEND\r\nTo-Path: msrp://b\r\n", Is),
            (Protocol::Mumble, Udp, 64738, Client, b"\0\0\0\0\x03\xd7\x20\0\xfa\x76\x28\x7e", Is),
            (Protocol::Mumble, Udp, 64739, Client, b"\0\0\0\0\x03\xd7\x20\0\xfa\x76\x28\x7e", Next),
            (Protocol::Oscar, Tcp, 5190, Client, b"\x2a\x01\0\x01\0\x04\0\0\0\x01", Is),
            (Protocol::Qq, Udp, 8000, Client, b"\x02\x3b\x0b\0\x01\0\x17\x56\x1f\x0c\x7b\0\0\0\0\0\0\0\0\0\x03", Is),
            (Protocol::Qq, Udp, 9000, Client, b"\x02\x3b\x0b\0\x01\0\x17\x56\x1f\x0c\x7b\0\0\0\0\0\0\0\0\0\x03", No),
            (Protocol::TeamSpeak, Udp, 9987, Client, b"TS3INIT1\0\x65\0\0\x88", Is),
            (Protocol::Telegram, Udp, 521, Client, &reflected, Is),
            (Protocol::Telegram, Tcp, 443, Client, &keyless, Is),
            (Protocol::Telegram, Tcp, 443, Client, &keyless[1..], No),
            (Protocol::WeChat, Tcp, 80, Client, b"\x19\xf1\x03\0\x04abcd", Is),
            (Protocol::WhatsApp, Tcp, 5222, Client, b"ED\0\x01\0\0\x04\x08", Is),
            (Protocol::WhatsApp, Tcp, 443, Client, b"WA\x06\x03\0\0\x24", Is),
            (Protocol::YahooMessenger, Tcp, 5050, Client, b"YMSG\0\x0c\0\0\0\0\0\x57\0\0\0\0\0\0\0\0", Is),
            (Protocol::Zoom, Udp, 8801, Client, &media, Is),
            (Protocol::Zoom, Udp, 8802, Client, &media, No),
            (Protocol::Zoom, Udp, 41036, Client, b"\x1f\x02\x01\0\x08\0\x01\0\x04\0\x5c\x9b\x63\x7b\0\0\0\x64\0\0\0\x62\xa0\x4c\0\0\0\x09192.0.2.1", Is),
        ]);
    }

    #[test]
    fn calls_of_line_count_and_say_how_long_they_are() {
        let packet = |first: u8, number: u16, length: usize| {
            let begins = [first | (length >> 8) as u8, length as u8];
            [&begins[..], &number.to_be_bytes(), &vec![6; length]].concat()
        };
        let ask =
            |messages: &[(crate::classify::Side, &[u8])]| flow(Protocol::LineCall, Udp, 29070, messages).0;
        let (one, two, answer) = (packet(0xd8, 0xb9, 868), packet(0xd8, 0xba, 868), packet(0xd8, 0x66, 238));
        assert_eq!(ask(&[(Client, &one), (Client, &two)]), [Next, Is]);
        assert_eq!(ask(&[(Client, &one), (Server, &answer)]), [Next, Is]);
        assert_eq!(ask(&[(Client, &one), (Client, &one)]), [Next, Next], "the same number");
        assert_eq!(ask(&[(Client, &one[..871])]), [No], "another length");
        assert_eq!(ask(&[(Client, &packet(0xd4, 1, 868))]), [No]);
        for length in 0..40 {
            ask(&[(Client, &one[..length]), (Server, &one[..length])]);
        }
    }

    #[test]
    fn tls_may_begin_within_xmpp() {
        let stream =
            b"<?xml version='1.0'?><stream:stream xmlns='jabber:client' to='example.net' version='1.0'>";
        let (answers, sheet) = flow(Protocol::Xmpp, Tcp, 5222, &[(Client, stream)]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Open], &b"example.net"[..]));
        let answers = flow(
            Protocol::Xmpp,
            Tcp,
            5222,
            &[
                (Client, stream),
                (Server, b"<stream:stream from='example.net'><stream:features><starttls/>"),
                (Client, b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
                (Server, b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
            ],
        );
        assert_eq!(answers.0, [Open, Open, Open, Within(50)]);
    }
}
