//! What servers say to servers behind the web, in offices, hospitals and banks; films and measurements.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{contains, is, is_name, is_number, is_printed, row, starts_with_any, until};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Ajp, TCP, &[8009], First::Of(b"\x12A"), Structure, ajp),
    row(Protocol::Alibaba, TCP, &[8999], First::Of(b"\xce"), Magic, alibaba),
    row(Protocol::Avast, TCP, &[], First::Of(b"N"), Magic, avast),
    row(Protocol::FastCgi, TCP, &[9000], First::Of(b"\x01"), Structure, fastcgi),
    row(Protocol::Fix, TCP, &[], First::Of(b"8"), Magic, fix),
    row(Protocol::Hl7, TCP, &[2575], First::Of(b"\x0b"), Magic, hl7),
    row(Protocol::Kismet, TCP, &[2501], First::Of(b"*"), Magic, kismet),
    row(Protocol::Mpd, TCP, &[6600], First::Of(b"O"), Magic, mpd),
    row(Protocol::Ookla, TCP, &[8080, 5060], First::Of(b"H"), Structure, ookla),
    row(Protocol::Scgi, TCP, &[], First::Range(b'0', b'9'), Magic, scgi),
    row(Protocol::SpotifyAp, TCP, &[4070], First::Of(b"\0"), Structure, spotify),
    row(Protocol::Srt, UDP, &[], First::Of(b"\x80"), Structure, srt),
    row(Protocol::Uwsgi, TCP, &[3031], First::Of(b"\0"), Structure, uwsgi),
    // What carries signalling among the elements of mobile networks
    row(Protocol::E1ap, Carriers::SCTP, &[38462], First::Of(PER), Structure, e1ap),
    row(Protocol::F1ap, Carriers::SCTP, &[38472], First::Of(PER), Structure, f1ap),
    row(Protocol::M3ua, Carriers::TCP_SCTP, &[2905], First::Of(b"\x01"), Structure, m3ua),
    row(Protocol::Ngap, Carriers::SCTP, &[38412], First::Of(PER), Structure, ngap),
    row(Protocol::S1ap, Carriers::SCTP, &[36412], First::Of(PER), Structure, s1ap),
    row(Protocol::Smpp, TCP, &[2775], First::Of(b"\0"), Structure, smpp),
    row(Protocol::X2ap, Carriers::SCTP, &[36422], First::Of(PER), Structure, x2ap),
    row(Protocol::XnAp, Carriers::SCTP, &[38422], First::Of(PER), Shape, xnap),
];

/// Apache's AJP 1.3: 0x1234 from the web server, "AB" from the container, and a length.
fn ajp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(2)?);
        let asked = m.u16(0)? == 0x1234
            && (length + 4 == m.len() || (m.u8(4)? == 2 && length < 8192))
            && matches!(m.u8(4)?, 2 | 7 | 8 | 10);
        let answered = m.has(0, b"AB") && matches!(m.u8(4)?, 3..=6 | 9) && length + 4 <= m.len();
        Some(asked || answered)
    })
}

/// Alibaba's cloud agents: a fixed number of four octets and a length, both with the lowest octet first; both sides begin so.
fn alibaba(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, &[0xce, 0xfa, 0xbe, 0xba]) && (8..65_536).contains(&m.u32_le(4)?)))
}

/// Avast's cloud: four letters and a length.
fn avast(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"NOSA") && usize::from(m.u16(4)?) == m.len()))
}

/// FastCGI 1.0 §3.3 and §5.1: version 1, BEGIN_REQUEST (1) of eight octets with a role and five zeros.
fn fastcgi(m: &mut Message<'_>) -> Answer {
    is(|| {
        let begins = m.has(0, &[1, 1])
            && m.u16(4)? == 8
            && m.u8(7)? == 0
            && (1..=3).contains(&m.u16(8)?)
            && m.u8(10)? <= 1;
        Some(begins && m.bytes.get(11..16)? == [0; 5])
    })
}

/// FIX 4.4 volume 2 "Standard header": version, length and kind, in this order.
fn fix(m: &mut Message<'_>) -> Answer {
    is(|| {
        let version = until(m.bytes.strip_prefix(b"8=")?, 1, 16)?;
        let rest = m.bytes.get(version.len() + 3..)?.strip_prefix(b"9=")?;
        let length = until(rest, 1, 10)?;
        Some(
            is_printed(version)
                && is_number(length)
                && (rest.get(length.len() + 1..)?.starts_with(b"35=") || version.starts_with(b"FIX")),
        )
    })
}

/// HL7's lower layer: a vertical tab, and a message's header.
fn hl7(m: &mut Message<'_>) -> Answer {
    is(|| Some(starts_with_any(m.bytes.get(1..)?, &[b"MSH|", b"BHS|", b"FHS|"])))
}

/// Its server says what it is.
fn kismet(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"*KISMET: ")))
}

/// Music Player Daemon greets with its version.
fn mpd(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"OK MPD 0.")))
}

/// A test of throughput: a client greets with its number, a server with its version.
fn ookla(m: &mut Message<'_>) -> Answer {
    is(|| {
        let line = m.line(120)?;
        let client =
            line == b"HI" || line.strip_prefix(b"HI ").is_some_and(|id| id.len() == 36 && is_name(id));
        Some(
            m.begins
                && (client && (line.len() > 2 || m.has_port(8080))
                    || line.strip_prefix(b"HELLO 2.").is_some_and(|rest| contains(rest, b"20", 80))),
        )
    })
}

/// Its specification: a string with its length, which begins with CONTENT_LENGTH.
fn scgi(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = until(m.bytes, b':', 6)?;
        Some(is_number(length) && m.has(length.len() + 1, b"CONTENT_LENGTH\0"))
    })
}

/// Spotify's access points: a client begins with 0 and 4, the length of it all, and a message of protobuf whose field 10 comes first.
fn spotify(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.begins
                && m.has(0, &[0, 4])
                && m.u32(2)? as usize == m.len()
                && m.u8(6)? == 0x52
                && m.len() > 32,
        )
    })
}

/// SRT (and UDT before) "Handshake": a control packet of kind 0, with version 4 or 5, and a maximum segment that a network has.
fn srt(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.u32(0)? == 0x8000_0000
                && m.u32(4)? == 0
                && matches!(m.u32(16)?, 4 | 5)
                && (576..=9000).contains(&m.u32(28)?)
                && m.len() >= 64,
        )
    })
}

/// uWSGI: no modifier, a length with the lower octet first, and variables.
fn uwsgi(m: &mut Message<'_>) -> Answer {
    is(|| {
        let named = contains(m.bytes, b"REQUEST_METHOD", 200) || contains(m.bytes, b"QUERY_STRING", 200);
        Some(usize::from(m.u16_le(1)?) + 4 <= m.len() && m.u8(3)? == 0 && named)
    })
}

/// What aligned PER begins with: which of three kinds, with nothing added.
const PER: &[u8] = &[0x00, 0x20, 0x40];

/// Procedure, criticality, and the length that ends with the message: TS 38.413 §9.4.3 and its like. Which one it is is told by its port alone.
fn application_part(m: &Message<'_>, port: u16) -> Answer {
    is(|| {
        let criticality = matches!(m.u8(2)?, 0x00 | 0x40 | 0x80);
        let first = usize::from(m.u8(3)?);
        let length = if first < 0x80 { first + 4 } else { (usize::from(m.u16(3)?) & 0x3fff) + 5 };
        Some(m.has_port(port) && criticality && length == m.len())
    })
}

/// TS 38.413: between a base station and the AMF.
fn ngap(m: &mut Message<'_>) -> Answer {
    application_part(m, 38412)
}

/// TS 36.413: between a base station and the MME.
fn s1ap(m: &mut Message<'_>) -> Answer {
    application_part(m, 36412)
}

/// TS 36.423: between base stations of LTE.
fn x2ap(m: &mut Message<'_>) -> Answer {
    application_part(m, 36422)
}

/// TS 38.423: between base stations of NR.
fn xnap(m: &mut Message<'_>) -> Answer {
    application_part(m, 38422)
}

/// TS 38.473: between a base station's halves.
fn f1ap(m: &mut Message<'_>) -> Answer {
    application_part(m, 38472)
}

/// TS 37.483: between a base station's control and user planes.
fn e1ap(m: &mut Message<'_>) -> Answer {
    application_part(m, 38462)
}

/// RFC 4666 §3.1: version 1, a reserved octet, a class and a type, the length of it all.
fn m3ua(m: &mut Message<'_>) -> Answer {
    is(|| {
        let class = matches!((m.u8(2)?, m.u8(3)?), (0 | 2 | 3 | 9, 0..=6) | (1, 1) | (4, 1..=4));
        Some(m.u8(1)? == 0 && class && m.u32(4)? as usize == m.len() && m.len().is_multiple_of(4))
    })
}

/// SMPP 3.4 §3.2: the length of it all, a command, a status, a sequence.
fn smpp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (length, command, status) = (m.u32(0)? as usize, m.u32(4)?, m.u32(8)?);
        let known = matches!(command & 0x7fff_ffff, 1..=9 | 0x0b | 0x15 | 0x21 | 0x102 | 0x103 | 0x111..=0x113)
            || command == 0x8000_0000;
        let quiet = status == 0 || command & 0x8000_0000 != 0;
        Some(
            (16..4096).contains(&length)
                && length <= m.len()
                && known
                && quiet
                && status < 0x500
                && m.u32(12)? > 0,
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No};
    use crate::classify::Carrier::{Sctp, Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;

    #[test]
    fn services_are_known_by_how_they_begin() {
        let mut hello = vec![0, 4, 0, 0, 0, 40, 0x52];
        hello.resize(40, 1);
        let mut handshake = vec![
            0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 1, 2, 3, 4, 0, 0,
            0x05, 0xdc,
        ];
        handshake.resize(64, 0);
        check(&[
            (Protocol::Ajp, Tcp, 8009, Client, b"\x12\x34\0\x01\x0a", Is),
            (Protocol::Ajp, Tcp, 8009, Client, b"\x12\x34\0\x01\x0b", No),
            (Protocol::Avast, Tcp, 80, Server, b"NOSA\0\x10\x01\x02\0\0\0\0\xe8\xe6\x7a\x0c", Is),
            (Protocol::FastCgi, Tcp, 9000, Client, b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0", Is),
            (Protocol::FastCgi, Tcp, 9000, Client, b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\x01", No),
            (Protocol::Fix, Tcp, 4000, Client, b"8=FIX.4.4\x019=65\x0135=A\x0149=ME\x01", Is),
            (Protocol::Fix, Tcp, 4000, Client, b"8=FIX.4.4 and so on", No),
            (Protocol::Hl7, Tcp, 2575, Client, b"\x0bMSH|^~\\&|APP|PLACE|", Is),
            (Protocol::Ookla, Tcp, 8080, Client, b"HI 8e17cb65-c6b5-4b39-adcc-97006a1e4537\n", Is),
            (Protocol::SpotifyAp, Tcp, 4070, Client, &hello, Is),
            (Protocol::SpotifyAp, Tcp, 4070, Client, &hello[..39], No),
            (Protocol::Scgi, Tcp, 4000, Client, b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0", Is),
            (Protocol::Srt, Udp, 9000, Client, &handshake, Is),
            (Protocol::Srt, Udp, 9000, Client, &handshake[..63], No),
        ]);
    }

    #[test]
    fn signalling_is_known_by_its_lengths() {
        check(&[
            (Protocol::Ngap, Sctp, 38412, Client, b"\0\x15\0\x04\0\0\x01\0", Is),
            (Protocol::Ngap, Sctp, 38412, Client, b"\0\x15\0\x05\0\0\x01\0", No),
            (Protocol::S1ap, Sctp, 36412, Client, b"\0\x11\0\x04\0\0\x01\0", Is),
            (Protocol::M3ua, Sctp, 2905, Client, b"\x01\0\x03\x01\0\0\0\x08", Is),
            (Protocol::M3ua, Sctp, 2905, Client, b"\x01\0\x05\x01\0\0\0\x08", No),
            (Protocol::Smpp, Tcp, 2775, Client, b"\0\0\0\x10\0\0\0\x15\0\0\0\0\0\0\0\x02", Is),
            (Protocol::Smpp, Tcp, 2775, Client, b"\0\0\0\x10\0\0\0\x16\0\0\0\0\0\0\0\x02", No),
        ]);
    }
}
