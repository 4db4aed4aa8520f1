//! What devices of a network say of themselves, and how they are found and printed on.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{
    contains, fills, is, is_printed, perhaps, row, starts_like_any, starts_with_any, until,
};

use Strength::{Magic, Shape, Structure};

const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Bjnp, UDP, &[8611, 8612, 8613, 8614], First::Of(b"BM"), Magic, bjnp),
    row(Protocol::DropboxLan, UDP, &[17500], First::Of(b"{"), Magic, dropbox),
    row(Protocol::Gvcp, UDP, &[3956], First::Of(b"\x42\0"), Shape, gvcp),
    row(Protocol::HdHomeRun, UDP, &[65001], First::Of(b"\0"), Shape, hdhomerun),
    row(Protocol::HpJetDirect, Carriers::TCP, &[9100], First::Of(b"\x1b@"), Magic, jetdirect),
    row(Protocol::Lpd, Carriers::TCP, &[515], First::Range(1, 5), Shape, lpd),
    row(Protocol::Mndp, UDP, &[5678], First::Of(b"\0"), Structure, mndp),
    row(Protocol::NatPmp, UDP, &[5350, 5351], First::Of(b"\0\x02"), Structure, nat_pmp),
    row(Protocol::Sap, UDP, &[9875], First::Range(0x20, 0x3f), Magic, sap),
    row(Protocol::Slp, Carriers::BOTH, &[427], First::Of(b"\x01\x02"), Structure, slp),
    row(Protocol::SpotifyLan, UDP, &[57621], First::Of(b"S"), Magic, spotify),
    row(Protocol::Ssdp, UDP, &[1900], First::Of(b"MNH"), Magic, ssdp),
    row(Protocol::Syncthing, UDP, &[21027], First::Of(b"\x2e"), Magic, syncthing),
    row(Protocol::TivoConnect, Carriers::BOTH, &[2190], First::Of(b"T"), Magic, tivo),
    row(Protocol::UbiquitiDiscovery, UDP, &[10001], First::Of(b"\x01\x02"), Structure, ubiquiti),
    row(Protocol::WsDiscovery, UDP, &[3702], First::Of(b"<"), Magic, ws_discovery),
];

/// Canon's printers and scanners: "BJNP", "MFNP" and the like, a kind, a command, and a length that ends with the payload.
fn bjnp(m: &mut Message<'_>) -> Answer {
    let names: &[&[u8]] = &[b"BJNP", b"BJNB", b"MFNP", b"MFNB"];
    is(|| Some(starts_with_any(m.bytes, names) && m.len() >= 16 && m.u32(12)? as usize <= m.len() - 16))
}

/// Its members of the local network: an object with a version and a port.
fn dropbox(m: &mut Message<'_>) -> Answer {
    is(|| {
        let said = |what| contains(m.bytes, what, 600);
        Some(said(b"\"host_int\"") && said(b"\"namespaces\""))
    })
}

/// GigE Vision: a key (or a status), a command of its list, the length that follows, and a number.
fn gvcp(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let known =
            matches!(m.u16(2)?, 0x0002..=0x0005 | 0x0040 | 0x0041 | 0x0080..=0x0087 | 0x00c0 | 0x00c1);
        Some(m.has_port(3956) && known && usize::from(m.u16(4)?) + 8 == m.len())
    })
}

/// SiliconDust's: discovery asked (2) or answered (3), a length, and a sum at the end.
fn hdhomerun(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        Some(m.has_port(65001) && (2..=5).contains(&m.u16(0)?) && usize::from(m.u16(2)?) + 8 == m.len())
    })
}

/// PJL: printers are told to listen to a language by "universal exit".
fn jetdirect(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && starts_with_any(m.bytes, &[b"\x1b%-12345X", b"@PJL "])))
}

/// RFC 1179 §5: a command, a queue's name, a line's end. The port is believed.
fn lpd(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let queue = m.line(128)?;
        Some(
            m.begins
                && m.server.port == 515
                && queue.len() > 1
                && queue.len() + 1 == m.len()
                && is_printed(queue.get(1..)?),
        )
    })
}

/// MikroTik's discovery: a sequence, then values of type and length that fill it.
fn mndp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let value = |bytes: &[u8]| {
            let (kind, length) = (
                u16::from_be_bytes(*bytes.first_chunk()?),
                u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?),
            );
            (1..=20).contains(&kind).then_some(usize::from(length) + 4)
        };
        let asked = m.len() == 4 && m.u32(0)? == 0;
        let filled = m.len() >= 18 && m.u16(4)? == 1 && m.u16(6)? == 6 && fills(m.bytes.get(4..)?, 32, value);
        Some(m.has_port(5678) && (asked || filled))
    })
}

/// RFC 6886 §3.2 and §3.3 (version 0), RFC 6887 §7 (PCP, version 2): each operation has its length.
fn nat_pmp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let version = m.u8(0)?;
        Some(
            (m.has_port(5351) || m.has_port(5350))
                && match (version, m.u8(1)?, m.len()) {
                    (0, 0, 2) | (0, 1 | 2, 12) => true,
                    (0, 128, 12) | (0, 129 | 130, 16) => m.u16(2)? <= 5,
                    (2, operation, length @ 24..=1100) => {
                        operation & 0x7f <= 4 && length.is_multiple_of(4) && m.u8(2)? == 0
                    }
                    _ => false,
                },
        )
    })
}

/// RFC 2974 §6: version 1, an authentication's length, a hash, a source, and what is announced: a session as SDP has it.
fn sap(m: &mut Message<'_>) -> Answer {
    is(|| {
        let address = if m.u8(0)? & 0x10 == 0 { 4 } else { 16 };
        let payload = m.bytes.get(4 + address + usize::from(m.u8(1)?) * 4..)?;
        Some(starts_with_any(payload, &[b"application/sdp\0v=0", b"v=0\r\n", b"v=0\n"]))
    })
}

/// RFC 2608 §8 (version 2) and RFC 2165 §4 (version 1): a function, a length that ends with the payload, a language.
fn slp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let known = (1..=11).contains(&m.u8(1)?);
        let language = |bytes: Option<&[u8]>| {
            bytes.is_some_and(|tag| tag.iter().all(|octet| octet.is_ascii_alphanumeric() || *octet == b'-'))
        };
        Some(
            known
                && if m.u8(0)? == 2 {
                    let length = (m.u32(1)? & 0x00ff_ffff) as usize;
                    let tag = usize::from(m.u16(12)?);
                    let ends = length == m.len()
                        || (m.has_port(427) && length <= m.len())
                        || (m.carrier == Carrier::Tcp && length > m.len());
                    ends && m.u16(5)?.trailing_zeros() >= 13
                        && (1..=8).contains(&tag)
                        && language(m.bytes.get(14..14 + tag))
                } else {
                    usize::from(m.u16(2)?) == m.len() && m.u8(5)? == 0 && language(m.bytes.get(6..8))
                },
        )
    })
}

/// What clients of a local network say to each other.
fn spotify(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"SpotUdp")))
}

/// UPnP Device Architecture §1: requests of HTTP for everything, and what is answered to them, in datagrams.
fn ssdp(m: &mut Message<'_>) -> Answer {
    if starts_with_any(m.bytes, &[b"M-SEARCH * HTTP/1.1", b"NOTIFY * HTTP/1.1"]) {
        let mut rest = m.bytes;
        // A user agent may tell the application.
        for _ in 0..16 {
            let Some(line) = until(rest, b'\n', 300) else { break };
            if starts_like_any(line, &[b"User-Agent:"]) {
                m.sheet.agent.set(line.get(11..).unwrap_or_default().trim_ascii());
            }
            if starts_like_any(line, &[b"Host:"]) {
                m.sheet.host.set(line.get(5..).unwrap_or_default().trim_ascii());
            }
            rest = rest.get(line.len() + 1..).unwrap_or_default();
        }
        return Answer::Is;
    }
    let answered = starts_with_any(m.bytes, &[b"HTTP/1.1 200 OK\r\n"])
        && (contains(m.bytes, b"\nUSN:", 600) || contains(m.bytes, b"\nST:", 600));
    if answered { Answer::Is } else { Answer::No }
}

/// "Local Discovery Protocol v4": a fixed number.
fn syncthing(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0x2e, 0xa7, 0xd9, 0x0b]) && m.len() > 8))
}

/// A recorder's name and what it has.
fn tivo(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"TiVoConnect=")))
}

/// Ubiquiti's discovery: version 1 or 2, a command, a length; then values of type and length that fill it.
fn ubiquiti(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(2)?);
        let value = |bytes: &[u8]| Some(usize::from(u16::from_be_bytes(*bytes.get(1..)?.first_chunk()?)) + 3);
        let asked = m.has_port(10001) && m.len() == 4 && length == 0 && m.u8(1)? == 0;
        let filled =
            length + 4 == m.len() && length > 8 && m.u8(1)? <= 0x10 && fills(m.bytes.get(4..)?, 32, value);
        Some(asked || filled)
    })
}

/// WS-Discovery 1.1 §1.7: an envelope in XML with its namespace.
fn ws_discovery(m: &mut Message<'_>) -> Answer {
    is(|| {
        let said = |what| contains(m.bytes, what, 800);
        let old = said(b"schemas.xmlsoap.org/ws/2005/04/discovery");
        Some(old || said(b"docs.oasis-open.org/ws-dd/ns/discovery"))
    })
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
    fn devices_are_known_by_what_they_say() {
        check(&[
            (Protocol::Bjnp, Udp, 8611, Client, b"BJNP\x01\x01\0\0\0\x01\0\0\0\0\0\0", Is),
            (
                Protocol::DropboxLan,
                Udp,
                17500,
                Client,
                b"{\"version\": [2, 0], \"host_int\": 1, \"namespaces\": [1]}",
                Is,
            ),
            (Protocol::HpJetDirect, Tcp, 9100, Client, b"\x1b%-12345X@PJL INFO ID\r\n", Is),
            (Protocol::Lpd, Tcp, 515, Client, b"\x02lp\n", Perhaps),
            (Protocol::Mndp, Udp, 5678, Client, b"\0\0\0\0\0\x01\0\x06abcdef\0\x05\0\x04name", Is),
            (Protocol::Mndp, Udp, 5678, Client, b"\0\0\0\0\0\x01\0\x06abcdef\0\x05\0\x05name", No),
            (Protocol::NatPmp, Udp, 5351, Client, b"\0\0", Is),
            (Protocol::NatPmp, Udp, 5351, Client, b"\0\0\0", No),
            (Protocol::NatPmp, Udp, 5352, Client, b"\0\0", No),
            (Protocol::Sap, Udp, 9875, Client, b"\x20\0\x12\x34\xc0\0\x02\x01application/sdp\0v=0\r\n", Is),
            (
                Protocol::Slp,
                Udp,
                427,
                Client,
                b"\x02\x09\0\0\x1d\0\0\0\0\0\0\x01\0\x02en\0\0\xff\xff\0\x07DEFAULT",
                Is,
            ),
            (
                Protocol::Slp,
                Udp,
                427,
                Client,
                b"\x02\x09\0\0\x1e\0\0\0\0\0\0\x01\0\x02en\0\0\xff\xff\0\x07DEFAULT",
                No,
            ),
            (Protocol::SpotifyLan, Udp, 57621, Client, b"SpotUdp0\x12", Is),
            (
                Protocol::Ssdp,
                Udp,
                1900,
                Client,
                b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n\r\n",
                Is,
            ),
            (Protocol::Ssdp, Udp, 1900, Server, b"HTTP/1.1 200 OK\r\nST: upnp:rootdevice\r\n\r\n", Is),
            (Protocol::Ssdp, Udp, 1900, Server, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", No),
            (Protocol::Syncthing, Udp, 21027, Client, b"\x2e\xa7\xd9\x0b\x0a\x20abc", Is),
            (Protocol::TivoConnect, Udp, 2190, Client, b"TiVoConnect=1\n", Is),
            (
                Protocol::UbiquitiDiscovery,
                Udp,
                10001,
                Client,
                b"\x02\x06\0\x0c\x02\0\x04abcd\x01\0\x02ab",
                Is,
            ),
            (
                Protocol::UbiquitiDiscovery,
                Udp,
                10001,
                Client,
                b"\x02\x06\0\x0c\x02\0\x04abcd\x01\0\x03ab",
                No,
            ),
            (
                Protocol::WsDiscovery,
                Udp,
                3702,
                Client,
                b"<?xml?><e:Envelope xmlns:d=\"http://schemas.xmlsoap.org/ws/2005/04/discovery\">",
                Is,
            ),
        ]);
    }

    #[test]
    fn ssdp_writes_down_who_asks() {
        let message =
            b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nUser-Agent: Chromium/90 Linux\r\n\r\n";
        let sheet = flow(Protocol::Ssdp, Udp, 1900, &[(Client, message)]).1;
        assert_eq!(sheet.agent.bytes(), b"Chromium/90 Linux");
        assert_eq!(sheet.host.bytes(), b"239.255.255.250:1900");
    }
}
