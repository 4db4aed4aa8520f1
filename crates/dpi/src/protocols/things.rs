//! Devices of the internet of things: homes, lights, trackers.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{contains, is, is_printed, perhaps, row, starts_with_any, until};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::ArtNet, UDP, &[6454], First::Of(b"A"), Magic, art_net),
    row(Protocol::Coap, UDP, &[5683, 5684], First::Range(0x40, 0x78), Structure, coap),
    row(Protocol::Dhip, Carriers::BOTH, &[37777, 37810], First::Of(b"\x20"), Magic, dhip),
    row(Protocol::Gt06, TCP, &[], First::Of(b"\x78\x79"), Structure, gt06),
    row(Protocol::Lifx, UDP, &[56700], First::Any, Shape, lifx).having(2, 0, 0),
    row(Protocol::MerakiCloud, UDP, &[7351], First::Of(b"\xfe"), Magic, meraki),
    row(Protocol::MiIo, UDP, &[54321], First::Of(b"\x21"), Structure, mi_io),
    row(Protocol::Nmea, Carriers::BOTH, &[10110], First::Of(b"$!"), Structure, nmea),
    row(Protocol::Osc, UDP, &[], First::Of(b"/#"), Structure, osc),
    row(Protocol::Sacn, UDP, &[5568], First::Of(b"\0"), Magic, sacn),
    row(Protocol::TpLinkShp, Carriers::BOTH, &[9999], First::Of(b"\xd0\0"), Structure, tp_link),
    row(Protocol::Tuya, Carriers::BOTH, &[6666, 6667, 6668], First::Of(b"\0"), Structure, tuya),
    row(Protocol::Weave, TCP, &[11095], First::Any, Structure, weave),
    row(Protocol::Weave, UDP, &[11095], First::Any, Structure, weave).having(1, 0x10, 0x1f),
];

/// Art-Net 4: a name with a zero.
fn art_net(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"Art-Net\0") && m.len() >= 10))
}

/// RFC 7252 §3: version 1, a token of up to eight octets, a code, and options that can be read; off its port only with a path in letters.
fn coap(m: &mut Message<'_>) -> Answer {
    let usual = m.has_port(5683);
    is(|| {
        let token = usize::from(m.u8(0)? & 0x0f);
        let code = m.u8(1)?;
        let known =
            matches!(code, 0..=7 | 0x41..=0x45 | 0x5f | 0x80..=0x89 | 0x8c..=0x8f | 0x9d | 0xa0..=0xa5);
        if m.u8(0)? >> 6 != 1 || token > 8 || !known || (code == 0 && (m.len() != 4 || token != 0)) {
            return Some(false);
        }
        let mut rest = m.bytes.get(4 + token..)?;
        let (mut number, mut named) = (0_usize, false);
        for _ in 0..24 {
            let Some((first, after)) = rest.split_first() else { break };
            if *first == 0xff {
                return Some(!after.is_empty() && (usual || named));
            }
            let (delta, after) = extended(first >> 4, after)?;
            let (length, after) = extended(first & 0x0f, after)?;
            number += delta;
            let value = after.get(..length)?;
            if !usual
                && !matches!(number, 1 | 3..=9 | 11 | 12 | 14..=17 | 20 | 23 | 27 | 28 | 35 | 39 | 60 | 258 | 292)
            {
                return Some(false);
            }
            if number == 11 {
                named |= length > 0 && is_printed(value) && (1..=7).contains(&code);
            }
            rest = after.get(length..)?;
        }
        Some(usual || named)
    })
}

/// RFC 7252 §3.1: a number in half an octet; 13 and 14 say that it goes on in one octet or two.
fn extended(half: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    match half {
        0..=12 => Some((usize::from(half), rest)),
        13 => Some((usize::from(*rest.first()?) + 13, rest.get(1..)?)),
        14 => Some((usize::from(u16::from_be_bytes(*rest.first_chunk()?)) + 269, rest.get(2..)?)),
        _ => None,
    }
}

/// Dahua's cameras: a length of 32 and their name.
fn dhip(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"\x20\0\0\0DHIP")))
}

/// Trackers of GT06's kind: two letters twice, a length, a kind, and CR LF.
fn gt06(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (at, length) =
            if m.u8(0)? == 0x78 { (3, usize::from(m.u8(2)?)) } else { (4, usize::from(m.u16(2)?)) };
        let ends = m.has(at + length, b"\r\n") && m.len() >= at + length + 2;
        Some(m.u8(0)? == m.u8(1)? && length >= 5 && ends)
    })
}

/// LIFX's header: the size of it all with the lowest octet first, protocol 1024.
fn lifx(m: &mut Message<'_>) -> Answer {
    let headed = perhaps(|| {
        Some(usize::from(m.u16_le(0)?) == m.len() && m.u16_le(2)? & 0x0fff == 1024 && m.len() >= 36)
    });
    if headed == Answer::Perhaps && m.has_port(56700) { Answer::Is } else { headed }
}

/// Cisco Meraki's devices and their cloud: a fixed beginning.
fn meraki(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0xfe, 0xf7, 0x28, 0x91]) && m.len() >= 16))
}

/// Xiaomi's miIO: 0x2131, and the length of it all.
fn mi_io(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.u16(0)? == 0x2131 && usize::from(m.u16(2)?) == m.len() && m.len() >= 32))
}

/// NMEA 0183: a talker and a sentence, and a sum after a star.
fn nmea(m: &mut Message<'_>) -> Answer {
    is(|| {
        let line = until(m.bytes, b'\n', 128).unwrap_or(m.bytes).trim_ascii_end();
        let tag = line.get(1..6)?;
        let sum = line.get(line.len().checked_sub(3)?..)?;
        let talker = starts_with_any(tag, &[b"GP", b"GN", b"GL", b"AI", b"II", b"GA", b"BD", b"GB"]);
        let summed = sum.first() == Some(&b'*') && sum.iter().skip(1).all(u8::is_ascii_hexdigit);
        Some(
            talker
                && tag.iter().all(u8::is_ascii_uppercase)
                && line.get(6) == Some(&b',')
                && summed
                && is_printed(line),
        )
    })
}

/// OSC 1.0: an address, filled up to fours by zeros, then types after a comma; or a bundle of these.
fn osc(m: &mut Message<'_>) -> Answer {
    is(|| {
        if m.has(0, b"#bundle\0") {
            return Some(m.len() >= 16);
        }
        let address = until(m.bytes, 0, 200)?;
        let at = (address.len() + 1).next_multiple_of(4);
        let types = until(m.bytes.get(at..)?, 0, 64)?;
        Some(
            m.len().is_multiple_of(4)
                && is_printed(address)
                && types.first() == Some(&b',')
                && is_printed(types),
        )
    })
}

/// ANSI E1.31 §5: a preamble of 16 octets, and the packet's name.
fn sacn(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0, 0x10, 0, 0]) && m.has(4, b"ASC-E1.17\0\0\0")))
}

/// TP-Link's plugs: an object whose every octet is mixed with the one before, the first one with 171; over TCP after its length.
fn tp_link(m: &mut Message<'_>) -> Answer {
    is(|| {
        let at = if m.carrier == Carrier::Tcp { 4 } else { 0 };
        if at == 4 && m.u32(0)? as usize + 4 < m.len() {
            return Some(false);
        }
        let hidden = m.bytes.get(at..)?.get(..12)?;
        let mut key = 171;
        let mut clear = [0; 12];
        for (to, octet) in clear.iter_mut().zip(hidden) {
            (*to, key) = (octet ^ key, *octet);
        }
        Some(clear.starts_with(b"{\"") && is_printed(&clear))
    })
}

/// Tuya's: 0x55aa, a sequence, a command, the length of what follows, and 0xaa55 at the end; 0x6699 and 0x9966 since version 3.5.
fn tuya(m: &mut Message<'_>) -> Answer {
    is(|| {
        let end = m.bytes.get(m.len().checked_sub(4)?..)?;
        Some(match m.u32(0)? {
            0x55aa => m.u32(12)? as usize + 16 == m.len() && end == [0, 0, 0xaa, 0x55],
            0x6699 => end == [0, 0, 0x99, 0x66] && m.len() >= 22,
            _ => false,
        })
    })
}

/// Weave: the numbers of Nest's devices begin with its company's (18-B4-30); over TCP there is a length before.
fn weave(m: &mut Message<'_>) -> Answer {
    is(|| {
        let at = if m.carrier == Carrier::Tcp { 2 } else { 0 };
        if at == 2 && usize::from(m.u16_le(0)?) + 2 > m.len() {
            return Some(false);
        }
        Some(
            m.u8(at + 1)? >> 4 == 1
                && m.has(at + 11, &[0x30, 0xb4, 0x18])
                && contains(m.bytes, &[0x30, 0xb4, 0x18], 32),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No, Perhaps};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::Client;
    use crate::protocols::shape::cases::check;

    #[test]
    fn things_are_known_by_their_headers() {
        let mut key = 171;
        let hidden: Vec<u8> = b"{\"system\":{\"get_sysinfo\":{}}}"
            .iter()
            .map(|octet| {
                key ^= octet;
                key
            })
            .collect();
        let mut light = vec![36, 0, 0, 0x34];
        light.resize(36, 0);
        check(&[
            (Protocol::ArtNet, Udp, 6454, Client, b"Art-Net\0\0\x20\0\x0e", Is),
            (Protocol::Coap, Udp, 5683, Client, b"\x40\x01\x12\x34\xbbtemperature", Is),
            (Protocol::Coap, Udp, 9999, Client, b"\x40\x01\x12\x34\xbbtemperature", Is),
            (Protocol::Coap, Udp, 9999, Client, b"\x40\x01\x12\x34\xbbtemp\0rature", No),
            (Protocol::Coap, Udp, 5683, Client, b"\x49\x01\x12\x34\xbbtemperature", No),
            (Protocol::Dhip, Tcp, 37777, Client, b"\x20\0\0\0DHIP\0\0\0\0", Is),
            (
                Protocol::Gt06,
                Tcp,
                5023,
                Client,
                b"\x78\x78\x0d\x01\x01\x23\x45\x67\x89\x01\x23\x45\0\x01\x8c\xdd\r\n",
                Is,
            ),
            (
                Protocol::Gt06,
                Tcp,
                5023,
                Client,
                b"\x78\x78\x0c\x01\x01\x23\x45\x67\x89\x01\x23\x45\0\x01\x8c\xdd\r\n",
                No,
            ),
            (Protocol::Lifx, Udp, 56700, Client, &light, Is),
            (Protocol::Lifx, Udp, 56701, Client, &light, Perhaps),
            (
                Protocol::MerakiCloud,
                Udp,
                7351,
                Client,
                b"\xfe\xf7\x28\x91\x0d\x01\0\x70\x06\x8a\x1b\x4e\0\0\0\0",
                Is,
            ),
            (Protocol::Nmea, Udp, 10110, Client, b"$GPGLL,4916.45,N,12311.12,W,225444,A*31\r\n", Is),
            (Protocol::Nmea, Udp, 10110, Client, b"$GPGLL,4916.45,N,12311.12,W,225444,A\r\n", No),
            (Protocol::Osc, Udp, 8000, Client, b"/mix/1\0\0,f\0\0\x3f\x80\0\0", Is),
            (Protocol::Sacn, Udp, 5568, Client, b"\0\x10\0\0ASC-E1.17\0\0\0\x72", Is),
            (Protocol::TpLinkShp, Udp, 9999, Client, &hidden, Is),
            (Protocol::TpLinkShp, Udp, 9999, Client, b"\xd0\xf2\x81\xf8\x8b\xff\x9a\xf7\xd5\xef\x94\x36", No),
            (
                Protocol::Tuya,
                Udp,
                6667,
                Client,
                b"\0\0\x55\xaa\0\0\0\0\0\0\0\x13\0\0\0\x08crc \0\0\xaa\x55",
                Is,
            ),
            (
                Protocol::Tuya,
                Udp,
                6667,
                Client,
                b"\0\0\x55\xaa\0\0\0\0\0\0\0\x13\0\0\0\x09crc \0\0\xaa\x55",
                No,
            ),
            (
                Protocol::Weave,
                Tcp,
                11095,
                Client,
                b"\x14\0\0\x13\x08\x03\0\0\x36\x9e\x27\0\0\x30\xb4\x18\0\0\0\0\0\x30",
                Is,
            ),
        ]);
    }
}
