//! Routes, neighbours, and what controls switches.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{fills, is, perhaps, row};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Babel, UDP, &[6696], First::Of(b"\x2a"), Structure, babel),
    row(Protocol::Bfd, UDP, &[3784, 3785, 4784, 6784], First::Range(0, 0x3f), Structure, bfd).at_home(),
    row(Protocol::Bgp, TCP, &[179], First::Of(b"\xff"), Magic, bgp),
    row(Protocol::Bmp, TCP, &[1790, 11019], First::Of(b"\x03"), Shape, bmp),
    row(Protocol::Ccp, UDP, &[8116], First::Of(b"\x1a"), Shape, check_point),
    row(Protocol::Dlep, Carriers::BOTH, &[854], First::Of(b"D\0"), Structure, dlep),
    row(Protocol::Glbp, UDP, &[3222], First::Of(b"\x01"), Shape, glbp),
    row(Protocol::Hsrp, UDP, &[1985, 2029], First::Range(0, 4), Structure, hsrp).at_home(),
    row(Protocol::Ldp, Carriers::BOTH, &[646], First::Of(b"\0"), Structure, ldp),
    row(Protocol::LispControl, Carriers::BOTH, &[4342], First::Range(0, 0x8f), Structure, lisp),
    row(Protocol::Msdp, TCP, &[639], First::Range(1, 7), Shape, msdp),
    row(Protocol::Olsr, UDP, &[698], First::Any, Structure, olsr).at_home(),
    row(Protocol::OpenFlow, TCP, &[6633, 6653], First::Range(1, 6), Structure, openflow),
    row(Protocol::Pcep, TCP, &[4189], First::Of(b"\x20"), Structure, pcep),
    row(Protocol::Rip, UDP, &[520, 521], First::Of(b"\x01\x02"), Structure, rip),
];

/// RFC 8966 §4.2: 42, version 2, the length of what follows.
fn babel(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[42, 2]) && usize::from(m.u16(2)?) + 4 <= m.len() && m.has_port(6696)))
}

/// RFC 5880 §4.1: version 1, a multiplier, the length of it all, a discriminator; on one of its ports. What is echoed (RFC 5881 §4) is up to who sends it.
fn bfd(m: &mut Message<'_>) -> Answer {
    if m.has_port(3785) {
        return Answer::Perhaps;
    }
    is(|| {
        let usual = [3784, 4784, 6784].iter().any(|port| m.has_port(*port));
        let sized = usize::from(m.u8(3)?) == m.len() && m.len() >= 24;
        Some(usual && m.u8(0)? >> 5 == 1 && m.u8(2)? > 0 && sized && m.u32(4)? != 0)
    })
}

/// RFC 4271 §4.1: sixteen octets of ones, a length, a type.
fn bgp(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0xff; 16]) && (19..=4096).contains(&m.u16(16)?) && (1..=5).contains(&m.u8(18)?)))
}

/// RFC 7854 §4.1: version 3, a length, a type.
fn bmp(m: &mut Message<'_>) -> Answer {
    perhaps(|| Some(m.begins && matches!(m.u8(5)?, 4) && (6..4096).contains(&m.u32(1)?) && m.u16(6)? <= 2))
}

/// Check Point's clusters: a number at the beginning, a version, a kind.
fn check_point(m: &mut Message<'_>) -> Answer {
    perhaps(|| Some(m.has_port(8116) && m.u16(0)? == 0x1a90 && m.len() >= 20))
}

/// RFC 8175 §11.1 and §11.2: signals begin with "DLEP"; messages have a type, the length of what follows, and items that fill it.
fn dlep(m: &mut Message<'_>) -> Answer {
    let item = |bytes: &[u8]| Some(usize::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?)) + 4);
    is(|| {
        if m.has(0, b"DLEP") {
            return Some(m.u16(4)? <= 2 && usize::from(m.u16(6)?) + 8 == m.len());
        }
        let filled = fills(m.bytes.get(4..)?, 32, item) && usize::from(m.u16(2)?) + 4 == m.len();
        Some(m.carrier == Carrier::Tcp && m.has_port(854) && m.u16(0)? <= 16 && filled)
    })
}

/// Cisco's GLBP: version 1, a reserved octet, a group; values of type and length follow.
fn glbp(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let value = |bytes: &[u8]| bytes.get(1).map(|length| usize::from(*length));
        Some(m.has_port(3222) && m.has(0, &[1, 0]) && fills(m.bytes.get(12..)?, 8, value) && m.len() > 12)
    })
}

/// RFC 2281 §5 (version 0, twenty octets); version 2 has values of type and length that fill the message.
fn hsrp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let usual = m.has_port(1985) || m.has_port(2029);
        let first = m.len() >= 20
            && m.u8(0)? == 0
            && m.u8(1)? <= 3
            && matches!(m.u8(2)?, 0 | 1 | 2 | 4 | 8 | 16)
            && m.u8(7)? == 0;
        let value = |bytes: &[u8]| {
            let length = usize::from(*bytes.get(1)?);
            ((1..=4).contains(bytes.first()?) && length >= 4).then_some(length + 2)
        };
        Some(usual && (first || fills(m.bytes, 8, value)))
    })
}

/// RFC 5036 §3.1 and §3.5: version 1, the length of what follows, an identifier, a message of its list.
fn ldp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(2)?);
        let known = matches!(m.u16(10)? & 0x7fff, 1 | 0x100 | 0x200..=0x202 | 0x300 | 0x301 | 0x400..=0x405);
        let whole = length + 4 == m.len() || (m.carrier == Carrier::Tcp && length + 4 < m.len());
        Some(
            m.has_port(646)
                && m.u16(0)? == 1
                && length >= 14
                && whole
                && known
                && usize::from(m.u16(12)?) + 10 <= length + 4,
        )
    })
}

/// RFC 9301 §5: a type in half an octet, on its port; over TCP a message ends with a fixed number.
fn lisp(m: &mut Message<'_>) -> Answer {
    if m.carrier == Carrier::Tcp {
        return is(|| {
            let length = usize::from(m.u16(2)?);
            Some(length >= 12 && m.has(length.checked_sub(4)?, &[0x9f, 0xac, 0xad, 0xe9]))
        });
    }
    is(|| {
        let known = match m.u8(0)? >> 4 {
            1..=4 | 7 => (1..=64).contains(&m.u8(3)?),
            8 => matches!(m.u8(4)? >> 4, 4 | 6),
            _ => false,
        };
        Some(m.has_port(4342) && known && m.len() >= 16)
    })
}

/// RFC 3618 §12: a type, and the length of a message that is no longer than what is there.
fn msdp(m: &mut Message<'_>) -> Answer {
    perhaps(|| Some(m.has_port(639) && (3..=1400).contains(&m.u16(1)?) && usize::from(m.u16(1)?) <= m.len()))
}

/// RFC 3626 §3.3: the length of the packet, a sequence, and messages whose sizes fill it.
fn olsr(m: &mut Message<'_>) -> Answer {
    is(|| {
        let message = |bytes: &[u8]| Some(usize::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?)));
        Some(
            m.has_port(698)
                && usize::from(m.u16(0)?) == m.len()
                && m.len() > 4
                && fills(m.bytes.get(4..)?, 16, message),
        )
    })
}

/// OpenFlow 1.3.5 §A.1 and §A.5.1: both sides begin with a version, HELLO (0), and its length.
fn openflow(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.u8(1)? == 0 && matches!(m.u16(2)?, 8 | 16) && usize::from(m.u16(2)?) == m.len()))
}

/// RFC 5440 §6.1: version 1, a type, the length of it all in fours.
fn pcep(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u16(2)?;
        Some(
            m.has_port(4189)
                && (1..=13).contains(&m.u8(1)?)
                && length.is_multiple_of(4)
                && usize::from(length) <= m.len()
                && length >= 4,
        )
    })
}

/// RFC 2453 §4 and RFC 2080 §2.1: a question or an answer, a version, a zero, and entries of twenty octets.
fn rip(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (version, entries) = (m.u8(1)?, m.len().checked_sub(4)?);
        let family = m.u16(4)?;
        let old =
            m.has_port(520) && matches!(version, 1 | 2) && matches!(family, 0 | 2 | 0xffff) && entries <= 520;
        Some(
            (old || (m.has_port(521) && version == 1))
                && m.u16(2)? == 0
                && entries.is_multiple_of(20)
                && entries > 0,
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No, Perhaps};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;

    #[test]
    fn routes_are_known_by_their_headers() {
        let mut open = vec![0xff; 16];
        open.extend_from_slice(&[0, 29, 1, 4, 0, 1, 0, 180, 1, 2, 3, 4, 0]);
        let mut unmarked = open.clone();
        unmarked[15] = 0xfe;
        let bfd = b"\x20\x40\x03\x18\0\0\0\x01\0\0\0\0\0\x0f\x42\x40\0\x0f\x42\x40\0\0\xa1\x20";
        let hello = b"\0\x01\0\x1e\x0a\0\0\x01\0\0\x01\0\0\x14\0\0\0\0\x04\0\0\x04\0\x0f\0\0\x04\x01\0\x04\x0a\0\0\x01";
        let rip = b"\x02\x01\0\0\0\x02\0\0\xc0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\x01";
        check(&[
            (Protocol::Babel, Udp, 6696, Client, b"\x2a\x02\0\x02\0\0", Is),
            (Protocol::Bfd, Udp, 3784, Client, bfd, Is),
            (Protocol::Bfd, Udp, 3784, Client, &bfd[..23], No),
            (Protocol::Bfd, Udp, 3000, Client, bfd, No),
            (Protocol::Bfd, Udp, 3785, Client, &[0; 12], Perhaps),
            (Protocol::Bgp, Tcp, 179, Client, &open, Is),
            (Protocol::Bgp, Tcp, 179, Client, &unmarked, No),
            (Protocol::Dlep, Udp, 854, Client, b"DLEP\0\x01\0\x04\0\x04\0\0", Is),
            (Protocol::Dlep, Udp, 854, Client, b"DLEP\0\x01\0\x05\0\x04\0\0", No),
            (Protocol::Hsrp, Udp, 2029, Client, b"\x02\x04\0\0\0\x01", Is),
            (Protocol::Hsrp, Udp, 2029, Client, b"\x02\x05\0\0\0\x01", No),
            (Protocol::Ldp, Udp, 646, Client, hello, Is),
            (Protocol::LispControl, Tcp, 4342, Server, b"\0\x14\0\x0f\0\0\0\0\0\0\0\x9f\xac\xad\xe9", Is),
            (Protocol::LispControl, Tcp, 4342, Server, b"\0\x14\0\x0f\0\0\0\0\0\0\0\x9f\xac\xad\xea", No),
            (Protocol::Msdp, Tcp, 639, Client, b"\x04\0\x03", Perhaps),
            (Protocol::OpenFlow, Tcp, 6653, Client, b"\x04\0\0\x10\0\0\0\x01\0\x01\0\x08\0\0\0\x10", Is),
            (Protocol::OpenFlow, Tcp, 6653, Client, b"\x04\x01\0\x10\0\0\0\x01\0\x01\0\x08\0\0\0\x10", No),
            (Protocol::Pcep, Tcp, 4189, Client, b"\x20\x02\0\x04", Is),
            (Protocol::Rip, Udp, 520, Client, rip, Is),
            (Protocol::Rip, Udp, 520, Client, &rip[..23], No),
        ]);
    }
}
