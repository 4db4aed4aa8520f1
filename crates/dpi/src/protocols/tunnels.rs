//! Private networks, and what carries other networks' packets.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{fills, is, perhaps, row};

use Strength::{Magic, Shape, Structure};

const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Esp, UDP, &[4500], First::Any, Shape, esp).at_home(),
    row(Protocol::Geneve, UDP, &[6081], First::Range(0, 0x3f), Shape, geneve).at_home(),
    row(Protocol::GtpC, UDP, &[2123], First::Range(0x30, 0x5f), Structure, gtp_c),
    row(Protocol::GtpPrime, UDP, &[3386], First::Range(0x0e, 0x4f), Structure, gtp_prime),
    row(Protocol::GtpU, UDP, &[2152], First::Range(0x30, 0x37), Structure, gtp_u).at_home(),
    // Its version (RFC 7296 §3.1); in UDP of NATs four zeros stand before it (RFC 3948 §2.2).
    row(Protocol::Ike, UDP, &[500, 4500], First::Any, Structure, ike).having(17, 0x10, 0x21),
    row(Protocol::Ike, UDP, &[4500], First::Of(b"\0"), Structure, ike).having(21, 0x10, 0x21),
    row(Protocol::L2tp, UDP, &[1701], First::Any, Structure, l2tp).having(1, 2, 3),
    row(Protocol::LispData, UDP, &[4341], First::Any, Shape, lisp_data).at_home(),
    row(Protocol::Nebula, UDP, &[4242], First::Of(b"\x10"), Structure, nebula),
    row(Protocol::OpenVpn, Carriers::BOTH, &[1194], First::Of(b"\0\x01\x02\x38\x40\x50"), Structure, openvpn),
    row(Protocol::Pfcp, UDP, &[8805], First::Range(0x20, 0x27), Structure, pfcp),
    row(Protocol::Pptp, Carriers::TCP, &[1723], First::Of(b"\0"), Magic, pptp),
    row(Protocol::Tailscale, UDP, &[41641], First::Of(b"T"), Magic, tailscale),
    row(Protocol::Teredo, UDP, &[3544], First::Of(b"\0\x60"), Structure, teredo),
    row(Protocol::Vxlan, UDP, &[4789, 8472], First::Of(b"\x08"), Shape, vxlan),
    row(Protocol::WireGuard, UDP, &[51820], First::Range(1, 4), Structure, wireguard),
];

/// RFC 3948 §2: an association that isn't 0 to 255, a number from the beginning of its range; or one octet that keeps the translation alive.
fn esp(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let alive = m.bytes == [0xff];
        Some(m.has_port(4500) && (alive || (m.u32(0)? > 255 && m.u32(4)? < 1 << 24 && m.len() >= 30)))
    })
}

/// RFC 8926 §3.4: version 0, no reserved bits, a protocol, and again no reserved octet.
fn geneve(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let ethernet = matches!(m.u16(2)?, 0x6558 | 0x0800 | 0x86dd);
        Some(
            m.has_port(6081)
                && m.u8(0)? >> 6 == 0
                && m.u8(1)?.trailing_zeros() >= 6
                && ethernet
                && m.u8(7)? == 0
                && m.len() > 8,
        )
    })
}

/// TS 29.060 §6 and §7.1, TS 29.274 §5.1 and §6.1: version, a known message, a length that ends with the payload, and in version 2 elements that
/// fill it; version 1 is believed on its port.
fn gtp_c(m: &mut Message<'_>) -> Answer {
    let element = |bytes: &[u8]| Some(usize::from(u16::from_be_bytes(*bytes.get(1..)?.first_chunk()?)) + 4);
    is(|| {
        let (first, kind, length) = (m.u8(0)?, m.u8(1)?, usize::from(m.u16(2)?));
        Some(match first >> 5 {
            1 => {
                let known = matches!(kind, 1..=7 | 16..=37 | 48..=61 | 70 | 96..=105 | 128..=131 | 240 | 241);
                known && m.has_port(2123) && length + 8 == m.len()
            }
            2 => {
                let known = matches!(kind, 1..=3 | 25..=41 | 64..=74 | 95..=103 | 128..=171 | 176 | 177 | 179 | 200 | 201 | 211 | 212 | 231..=236);
                let piggybacked = first & 0x10 != 0 && length + 4 < m.len();
                let elements = m.bytes.get(if first & 8 == 0 { 8 } else { 12 }..length + 4)?;
                let ends = length + 4 == m.len() || piggybacked;
                known
                    && first.trailing_zeros() >= 3
                    && ends
                    && !elements.is_empty()
                    && fills(elements, 32, element)
            }
            _ => false,
        })
    })
}

/// TS 32.295 §6.1.1: GTP' has no TEID, so its header has 6 octets, or 20 of old.
fn gtp_prime(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (first, length) = (m.u8(0)?, usize::from(m.u16(2)?));
        let header = if first >> 5 == 0 && first & 1 == 0 { 20 } else { 6 };
        let known = matches!(m.u8(1)?, 1..=7 | 240 | 241);
        Some(
            first & 0x1e == 0x0e
                && first >> 5 <= 2
                && known
                && length + header == m.len()
                && (m.has_port(3386) || length > 4),
        )
    })
}

/// TS 29.281 §5.1 and §6.1: version 1, a message of its list, and a length that ends with the payload.
fn gtp_u(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.has_port(2152)
                && matches!(m.u8(1)?, 1 | 2 | 26 | 31 | 253..=255)
                && usize::from(m.u16(2)?) + 8 == m.len(),
        )
    })
}

/// RFC 7296 §3.1 and RFC 2408 §3.1: two SPIs, a payload, version 1 or 2, an exchange, and the length; on port 4500 after four zeros.
fn ike(m: &mut Message<'_>) -> Answer {
    let at = if m.has(0, &[0; 4]) { 4 } else { 0 };
    is(|| {
        let length = m.u32(at + 24)? as usize;
        let known = match m.u8(at + 17)? {
            0x10 => matches!(m.u8(at + 18)?, 1..=6 | 32 | 33) && m.u8(at + 19)? <= 7,
            0x20 | 0x21 => matches!(m.u8(at + 18)?, 34..=44) && m.u8(at + 19)? & 0xc7 == 0,
            _ => false,
        };
        // A payload's number, of either version; those that are longer than their first fragment end later.
        let ends = at + length == m.len() || (at + length > m.len() && length < 65_536 && m.len() > 1000);
        Some(known && ends && length >= 28 && m.bytes.get(at..at + 8)? != [0; 8])
    })
}

/// RFC 2661 §3.1 and RFC 3931 §3.2.1: version 2 or 3, and a length that ends with the payload; data are believed on the port.
fn l2tp(m: &mut Message<'_>) -> Answer {
    let Some(flags) = m.u16(0) else { return Answer::No };
    let length = m.u16(2).map(usize::from);
    match (flags & 0xf0ff, length) {
        // Control: type, length and sequence are there, nothing else.
        (0xc002 | 0xc003, Some(length)) if flags & 0x0800 != 0 && length == m.len() && length >= 12 => {
            Answer::Is
        }
        (0x4002 | 0x4003, Some(length)) if length == m.len() && flags & 0x0400 == 0 => Answer::Perhaps,
        (0x0002 | 0x0003, _) if m.has_port(1701) && flags & 0x0400 == 0 && m.len() >= 8 => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// RFC 9300 §5.1: bits of eight, then a packet of IPv4 or IPv6 whose length ends with the payload.
fn lisp_data(m: &mut Message<'_>) -> Answer {
    perhaps(|| Some(m.has_port(4341) && ends_as_ip(m, 8)?))
}

/// Whether a packet of IPv4 or IPv6 is there, and ends where the payload ends.
fn ends_as_ip(m: &Message<'_>, at: usize) -> Option<bool> {
    Some(match m.u8(at)? >> 4 {
        4 => usize::from(m.u16(at + 2)?) + at == m.len() && m.u8(at)? & 0x0f >= 5,
        6 => usize::from(m.u16(at + 4)?) + at + 40 == m.len(),
        _ => false,
    })
}

/// Slack's `header.go`: version 1 and a handshake (0), nothing reserved; the first message has no index, and the number 1.
fn nebula(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0x10, 0, 0, 0]) && m.u32(8)? == 0 && matches!(m.u32(12)?, 1 | 2) && m.len() > 64))
}

/// OpenVPN's `ssl_pkt.h`: an operation in five bits and key 0, a session; what is reset has acknowledged nothing, or there is a sum, a number and
/// a time before (tls-auth, tls-crypt). Over TCP after its length.
fn openvpn(m: &mut Message<'_>) -> Answer {
    let at = if m.carrier == Carrier::Tcp { 2 } else { 0 };
    if at == 2 && m.u16(0).is_none_or(|length| usize::from(length) + 2 > m.len()) {
        return Answer::No;
    }
    // From 2009 to 2080: a clock, after the number 1, of which early negotiation takes the upper octets.
    let stamped = |number: usize| {
        Some(
            m.u16(number + 2)? == 1
                && (m.u16(number)? == 0 || m.u8(number)? <= 0x0f)
                && (0x4a00_0000..0xd000_0000).contains(&m.u32(number + 4)?),
        )
    };
    let length = m.len() - at;
    is(|| {
        Some(match m.u8(at)? {
            // P_CONTROL_HARD_RESET_CLIENT_V2.
            0x38 => {
                let nothing = m.bytes.ends_with(&[0; 5]);
                let plain = length == 14;
                let tls_auth = matches!(length, 38 | 42 | 50 | 54 | 70 | 86) && stamped(m.len() - 13)?;
                let tls_crypt = length == 54 && stamped(at + 9)?;
                (nothing && (plain || tls_auth)) || tls_crypt
            }
            // P_CONTROL_HARD_RESET_CLIENT_V3: tls-crypt-v2.
            0x50 => length > 54 && stamped(at + 9)?,
            // P_CONTROL_HARD_RESET_SERVER_V2 after one of these, with the client's session near its end, or ciphered (tls-crypt).
            0x40 => {
                let reset = m.other().first();
                let session = reset.get(at + 1..at + 9)?;
                let echoed = m.bytes.get(m.len().checked_sub(12)?..m.len() - 4)? == session;
                matches!(reset.get(at)?, 0x38 | 0x50) && length >= 26 && (echoed || stamped(at + 9)?)
            }
            _ => false,
        })
    })
}

/// TS 29.244 §7.2.2 and §8.1.1: version 1, a message of its list, a length that ends with the payload, and elements that fill it.
fn pfcp(m: &mut Message<'_>) -> Answer {
    let element = |bytes: &[u8]| {
        let (kind, length) =
            (u16::from_be_bytes(*bytes.first_chunk()?), u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?));
        (kind != 0).then_some(usize::from(length) + 4)
    };
    is(|| {
        let known = matches!(m.u8(1)?, 1..=16 | 50..=57 | 99);
        let end = usize::from(m.u16(2)?) + 4;
        let elements = m.bytes.get(if m.u8(0)? & 1 == 0 { 8 } else { 16 }..end)?;
        let ends = end == m.len() || (m.u8(0)? & 4 != 0 && end < m.len());
        Some(known && ends && (m.has_port(8805) || !elements.is_empty()) && fills(elements, 32, element))
    })
}

/// RFC 2637 §2: a length, type 1, and a fixed number.
fn pptp(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.u16(2)? == 1 && m.u32(4)? == 0x1a2b_3c4d))
}

/// Tailscale's `disco`: a fixed beginning of six octets.
fn tailscale(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac])))
}

/// RFC 4380 §5.1.1: a packet of IPv6, before which there may be an authentication (0, 1), and where it came from (0, 0).
fn teredo(m: &mut Message<'_>) -> Answer {
    is(|| {
        let mut at = 0;
        if m.has(at, &[0, 1]) {
            at += 4 + usize::from(m.u8(2)?) + usize::from(m.u8(3)?) + 9;
        }
        if m.has(at, &[0, 0]) {
            at += 8;
        }
        let usual =
            m.has_port(3544) || (m.has(at + 8, &[0x20, 0x01, 0, 0]) || m.has(at + 24, &[0x20, 0x01, 0, 0]));
        Some(m.u8(at)? >> 4 == 6 && usual && ends_as_ip(m, at)?)
    })
}

/// RFC 7348 §5: one flag, and octets that are reserved.
fn vxlan(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        Some(
            m.has(0, &[8, 0, 0, 0])
                && m.u8(7)? == 0
                && m.len() >= 22
                && (m.has_port(4789) || m.has_port(8472)),
        )
    })
}

/// WireGuard §5.4: a type with three reserved octets; both handshakes have fixed lengths, data are in sixteens.
fn wireguard(m: &mut Message<'_>) -> Answer {
    if !m.has(1, &[0, 0, 0]) {
        return Answer::No;
    }
    let alike = |first: &[u8]| first.len() >= 8 && matches!(first, [1..=4, 0, 0, 0, ..]);
    match (m.u8(0), m.len()) {
        (Some(1), 148) | (Some(2), 92) => Answer::Is,
        (Some(3), 64) => Answer::Perhaps,
        (Some(4), 32..) if m.len().is_multiple_of(16) => {
            // A counter, the lowest octet first: no key lives to see its upper half.
            if m.u32_le(12) != Some(0) {
                return Answer::No;
            }
            if alike(m.other().first()) { Answer::Is } else { Answer::Perhaps }
        }
        _ => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No, Perhaps};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;
    use crate::protocols::show::flow;

    #[test]
    fn tunnels_are_known_by_their_headers() {
        let mut ike =
            vec![1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 33, 0x20, 34, 8, 0, 0, 0, 0, 0, 0, 0, 32];
        ike.resize(32, 0);
        let mut behind = vec![0; 4];
        behind.extend_from_slice(&ike);
        let mut longer = ike.clone();
        longer.push(0);
        let initiation = |length| {
            let mut bytes = vec![1, 0, 0, 0];
            bytes.resize(length, 9);
            bytes
        };
        let mut tls_auth = vec![0x38, 1, 2, 3, 4, 5, 6, 7, 8];
        tls_auth.resize(29, 7);
        tls_auth.extend_from_slice(&[0, 0, 0, 1, 0x5e, 0x3e, 0x7b, 0x98, 0, 0, 0, 0, 0]);
        let mut framed = vec![0, 42];
        framed.extend_from_slice(&tls_auth);
        let mut router = vec![0x60, 0, 0, 0, 0, 4, 0x3a, 0xff];
        router.resize(44, 0);
        check(&[
            (Protocol::Esp, Udp, 4500, Client, b"\xff", Perhaps),
            (Protocol::GtpC, Udp, 2123, Client, b"\x40\x01\0\x09\x12\x34\x56\0\x03\0\x01\0\x07", Is),
            (Protocol::GtpC, Udp, 2123, Client, b"\x40\x01\0\x08\x12\x34\x56\0\x03\0\x01\0\x07", No),
            (Protocol::GtpPrime, Udp, 3386, Client, b"\x4e\x01\0\0\0\x01", Is),
            (Protocol::GtpU, Udp, 2152, Client, b"\x32\x01\0\x04\0\0\0\0\0\x01\0\0", Is),
            (Protocol::Ike, Udp, 500, Client, &ike, Is),
            (Protocol::Ike, Udp, 4500, Client, &behind, Is),
            (Protocol::Ike, Udp, 500, Client, &longer, No),
            (Protocol::L2tp, Udp, 1701, Client, b"\xc8\x02\0\x0c\0\x01\0\0\0\0\0\0", Is),
            (Protocol::L2tp, Udp, 1701, Client, b"\xc8\x02\0\x0d\0\x01\0\0\0\0\0\0", No),
            (Protocol::OpenVpn, Udp, 1194, Client, b"\x38\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0", Is),
            (Protocol::OpenVpn, Udp, 1194, Client, b"\x38\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\x01", No),
            (Protocol::OpenVpn, Udp, 443, Client, &tls_auth, Is),
            (Protocol::OpenVpn, Tcp, 443, Client, &framed, Is),
            (Protocol::Pfcp, Udp, 8805, Client, b"\x20\x01\0\x0c\0\0\x01\0\0\x60\0\x04\xe0\0\0\0", Is),
            (Protocol::Pfcp, Udp, 8805, Client, b"\x20\x01\0\x0d\0\0\x01\0\0\x60\0\x04\xe0\0\0\0", No),
            (Protocol::Pptp, Tcp, 1723, Client, b"\0\x9c\0\x01\x1a\x2b\x3c\x4d\0\x01\0\0", Is),
            (Protocol::Tailscale, Udp, 41641, Client, b"TS\xf0\x9f\x92\xac\x01\x02", Is),
            (Protocol::Teredo, Udp, 3544, Client, &router, Is),
            (Protocol::Teredo, Udp, 3545, Client, &router, No),
            (Protocol::Vxlan, Udp, 4789, Client, b"\x08\0\0\0\0\0\x2a\0abcdefabcdef\x08\0", Perhaps),
            (Protocol::WireGuard, Udp, 51820, Client, &initiation(148), Is),
            (Protocol::WireGuard, Udp, 51820, Client, &initiation(149), No),
        ]);
    }

    #[test]
    fn a_server_is_reset_after_its_client() {
        let client = [0x38, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0];
        let server = [0x40, 9, 9, 9, 9, 9, 9, 9, 9, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];
        let mut others = server;
        others[14] = 7;
        assert_eq!(flow(Protocol::OpenVpn, Udp, 1194, &[(Client, &client), (Server, &server)]).0, [Is, Is]);
        assert_eq!(flow(Protocol::OpenVpn, Udp, 1194, &[(Client, &server), (Server, &server)]).0, [No, No]);
        assert_eq!(flow(Protocol::OpenVpn, Udp, 1194, &[(Client, &client), (Server, &others)]).0, [Is, No]);
    }
}
