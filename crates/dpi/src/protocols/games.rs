//! Games, consoles, and what carries them.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{contains, fills, is, is_name, is_printed, row, starts_with_any, varint};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Demonware, UDP, &[3074], First::Of(b"\x0c\x0d"), Shape, demonware),
    row(Protocol::ENet, UDP, &[], First::Of(b"\x8f\x0f\x80\xcf\xbf\xff\x9f\xaf"), Structure, enet),
    row(Protocol::GameSpy, UDP, &[], First::Of(b"\xfe"), Structure, gamespy),
    row(Protocol::Kcp, UDP, &[], First::Any, Structure, kcp).having(4, 0x51, 0x54),
    row(Protocol::Minecraft, TCP, &[25565], First::Range(6, 0x7f), Structure, minecraft),
    row(Protocol::NetcodeIo, UDP, &[40000], First::Of(b"\0"), Magic, netcode),
    row(Protocol::Photon, UDP, &[5055, 5056, 5058], First::Any, Structure, photon).having(2, 0, 2),
    row(Protocol::PlayStation, UDP, &[987, 9302], First::Of(b"SHW"), Magic, playstation),
    row(Protocol::PlayStation, UDP, &[9296, 9297], First::Of(b"\0"), Structure, takion).having(13, 1, 2),
    row(Protocol::PlayStation, TCP, &[9295], First::Of(b"G"), Magic, remote_play),
    row(Protocol::Quake, UDP, &[27960, 27910], First::Of(b"\xff"), Magic, quake),
    row(
        Protocol::RakNet,
        UDP,
        &[19132, 19133],
        First::Of(&[0x01, 0x02, 0x05, 0x06, 0x07, 0x08, 0x1c, 0x1d]),
        Magic,
        raknet,
    ),
    row(Protocol::Samp, UDP, &[7777], First::Of(b"S"), Magic, samp),
    row(Protocol::SourceEngine, UDP, &[27015, 27016], First::Of(b"\xff"), Magic, source),
    row(Protocol::Steam, UDP, &[27036], First::Of(b"\xffV"), Magic, steam),
    row(Protocol::SteamDatagramRelay, UDP, &[], First::Of(b"\x01"), Magic, steam_relay),
    row(Protocol::Teeworlds, UDP, &[8303], First::Of(b"\xff"), Magic, teeworlds),
    row(Protocol::WarcraftLan, UDP, &[6112], First::Of(b"\xf7"), Structure, warcraft),
    row(Protocol::WorldOfWarcraft, TCP, &[3724, 8085], First::Any, Magic, wow).having(2, b'W', b'W'),
    row(Protocol::XboxLive, UDP, &[3074], First::Of(b"\0\x60"), Structure, xbox_live).at_home(),
    row(Protocol::XboxSmartGlass, UDP, &[5050], First::Of(b"\xdd\xcc"), Structure, smartglass),
];

/// A query of NAT that Call of Duty's consoles send, and its answer: 29 octets each, of which both have the same but the first.
fn demonware(m: &mut Message<'_>) -> Answer {
    let other = m.other().first();
    let shaped = matches!(m.bytes, [0x0c | 0x0d, 2, 0, ..]) && m.len() == 29;
    match other.get(1..16) {
        Some(same) if shaped && matches!(other, [0x0c | 0x0d, ..]) && m.has(1, same) => Answer::Is,
        _ if shaped && m.has_port(3074) => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// "Protocol" of ENet: CONNECT (2) or VERIFY_CONNECT (3) to or from a peer without a number, with a time and without a checksum.
fn enet(m: &mut Message<'_>) -> Answer {
    is(|| {
        let peer = m.u16(0)? & 0x8fff;
        let command = m.u8(4)?;
        let connects = command == 0x82
            && peer == 0x8fff
            && (44..=60).contains(&m.len())
            && (576..=4096).contains(&m.u32(12)?);
        let agrees = command == 0x83
            && peer & 0x8000 != 0
            && (40..=60).contains(&m.len())
            && (576..=4096).contains(&m.u32(12)?);
        Some(m.u8(5)? == 0xff && m.u16(6)? == 1 && (connects || agrees))
    })
}

/// Its queries of version 2 and after: two octets, a kind, a number of four.
fn gamespy(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0xfe, 0xfd]) && matches!((m.u8(2)?, m.len()), (9, 7) | (0, 10 | 11 | 15))))
}

/// "Protocol Layout" of KCP: segments of 24 octets and their length, of one conversation, that fill the datagram.
fn kcp(m: &mut Message<'_>) -> Answer {
    let Some(conversation) = m.bytes.first_chunk::<4>() else { return Answer::No };
    let segment = |bytes: &[u8]| {
        let length = u32::from_le_bytes(*bytes.get(20..)?.first_chunk()?);
        let command = *bytes.get(4)?;
        let pushes = command == 0x51 || length == 0;
        (bytes.starts_with(conversation) && (0x51..=0x54).contains(&command) && pushes && length < 2000)
            .then_some(length as usize + 24)
    };
    is(|| Some(m.u8(4)? & 0xf0 == 0x50 && *conversation != [0; 4] && fills(m.bytes, 64, segment)))
}

/// wiki.vg "Handshake": a length, packet 0, a version, a server's name and its port, and what comes next.
fn minecraft(m: &mut Message<'_>) -> Answer {
    let Some((length, at)) = varint(m.bytes) else { return Answer::No };
    let name = || {
        let rest = m.bytes.get(at + 1..)?;
        let (_, octets) = varint(rest)?;
        let (name, more) = varint(rest.get(octets..)?)?;
        let begin = octets + more;
        let next = *rest.get(begin + name + 2)?;
        let whole = length == 1 + begin + name + 3 && at + length <= m.len();
        (m.begins && m.u8(at)? == 0 && (1..=3).contains(&next) && whole)
            .then_some(rest.get(begin..begin + name)?)
    };
    match name() {
        Some(name) if is_name(name.split(|octet| *octet == 0).next().unwrap_or_default()) => {
            m.sheet.host.set(name.split(|octet| *octet == 0).next().unwrap_or_default());
            Answer::Is
        }
        _ => Answer::No,
    }
}

/// netcode.io's standard: a request has its version in words.
fn netcode(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(1, b"NETCODE 1.")))
}

/// Photon's datagrams: a peer, flags, how many commands, two times; commands with their lengths, so many as are said, that fill it.
fn photon(m: &mut Message<'_>) -> Answer {
    is(|| {
        let count = usize::from(m.u8(3)?);
        let command = |bytes: &[u8]| {
            let length = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
            ((1..=16).contains(bytes.first()?) && (12..=1400).contains(&length)).then_some(length)
        };
        let mut at = 12;
        for _ in 0..count.min(32) {
            at += command(m.bytes.get(at..)?)?;
        }
        Some((1..=32).contains(&count) && at == m.len() && m.u8(2)? <= 2)
    })
}

/// Consoles are searched, woken, and answer as HTTP does.
fn playstation(m: &mut Message<'_>) -> Answer {
    is(|| {
        let asked =
            starts_with_any(m.bytes, &[b"SRCH * HTTP/1.1", b"WAKEUP * HTTP/1.1", b"LAUNCH * HTTP/1.1"]);
        let answered = starts_with_any(m.bytes, &[b"HTTP/1.1 620 Server Standby", b"HTTP/1.1 200 Ok\n"]);
        Some((asked || answered) && contains(m.bytes, b"device-discovery-protocol-version", 400))
    })
}

/// Remote Play's stream begins as SCTP does (chiaki, "takion"): a kind of packet, a tag, a check and a place of a key, all zero as there is no key yet; INIT
/// with a tag that is also its first number, a window and two counts of streams; the answer repeats the tag and has a cookie of 32 octets.
fn takion(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (kind, length) = (m.u8(13)?, usize::from(m.u16(15)?));
        let keyless = m.u32(5)? == 0 && m.u32(9)? == 0 && m.u8(14)? == 0 && length + 13 == m.len();
        let (window, streams) = (m.u32(21)?, [m.u16(25)?, m.u16(27)?]);
        let possible = window >= 1 << 16 && streams.iter().all(|it| (1..=1024).contains(it));
        let begins = kind == 1 && length == 20 && m.u32(1)? == 0 && m.u32(17)? == m.u32(29)?;
        let answers = kind == 2 && length == 52 && m.u32(1)? != 0;
        Some(keyless && possible && (begins || answers))
    })
}

/// Remote Play is asked for by HTTP, with a path of its own for each console.
fn remote_play(m: &mut Message<'_>) -> Answer {
    let paths: &[&[u8]] = &[b"GET /sce/rp/", b"GET /sie/ps4/rp/", b"GET /sie/ps5/rp/"];
    is(|| Some(m.begins && starts_with_any(m.bytes, paths)))
}

/// Out of band: four of ones and a command.
fn quake(m: &mut Message<'_>) -> Answer {
    let commands: &[&[u8]] = &[
        b"getinfo",
        b"getstatus",
        b"getservers",
        b"getchallenge",
        b"statusResponse\n",
        b"infoResponse\n",
        b"challengeResponse",
        b"connectResponse",
        b"connect \"",
        b"rcon ",
    ];
    is(|| Some(m.has(0, &[0xff; 4]) && starts_with_any(m.bytes.get(4..)?, commands)))
}

/// "Unconnected" messages: a fixed number of sixteen octets, behind a kind and what some kinds have.
fn raknet(m: &mut Message<'_>) -> Answer {
    const MAGIC: [u8; 16] =
        [0, 0xff, 0xff, 0, 0xfe, 0xfe, 0xfe, 0xfe, 0xfd, 0xfd, 0xfd, 0xfd, 0x12, 0x34, 0x56, 0x78];
    is(|| Some([1, 9, 17].iter().any(|at| m.has(*at, &MAGIC))))
}

/// San Andreas Multiplayer: four letters, an address, a port, a question.
fn samp(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"SAMP") && matches!(m.u8(10)?, b'i' | b'r' | b'c' | b'd' | b'p' | b'x')))
}

/// Valve's "Server queries": four of ones (or a two less, where it is split), a kind, and what that kind has.
fn source(m: &mut Message<'_>) -> Answer {
    is(|| {
        let question = m.bytes.get(5..)?;
        Some(
            m.has(0, &[0xff; 4])
                && match m.u8(4)? {
                    b'T' => question.starts_with(b"Source Engine Query\0"),
                    b'U' | b'V' | b'A' => m.len() == 9,
                    b'W' | b'i' => m.len() == 5,
                    // Protocol, then the server's name, map and folder.
                    b'I' => {
                        question.split(|octet| *octet == 0).take(3).all(|name| name.len() < 256)
                            && question.contains(&0)
                            && m.len() > 20
                            && contains(question, b"\0", 200)
                    }
                    b'D' => m.u8(6)? == 0 && m.len() > 6,
                    b'E' => m.u16_le(5)? < 512 && is_name(question.get(2..4)?),
                    _ => false,
                },
        )
    })
}

/// Clients within a network: a fixed number of eight octets; and what carries the client's own messages.
fn steam(m: &mut Message<'_>) -> Answer {
    is(|| {
        let network = m.has(0, &[0xff, 0xff, 0xff, 0xff, 0x21, 0x4c, 0x5f, 0xa0]);
        Some(network || (m.has(0, b"VS01") && usize::from(m.u16_le(4)?) + 36 == m.len()))
    })
}

/// Its relays are measured before they are used.
fn steam_relay(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(2, b"sdping") && m.len() >= 32))
}

/// Ten of ones and a question of four letters.
fn teeworlds(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.has(0, &[0xff; 10])
                && starts_with_any(
                    m.bytes.get(10..)?,
                    &[b"gie3", b"gief", b"inf3", b"inf2", b"req2", b"list", b"lis2"],
                ),
        )
    })
}

/// Warcraft III within a network: 0xf7, a kind, the length of it all.
fn warcraft(m: &mut Message<'_>) -> Answer {
    is(|| Some(matches!(m.u8(1)?, 0x2f..=0x33) && usize::from(m.u16_le(2)?) == m.len() && m.len() >= 8))
}

/// Both sides greet in words, after a length.
fn wow(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(2, b"WORLD OF WARCRAFT CONNECTION - ")))
}

/// Between consoles, on port 3074. Xbox One and later: IPv6 by Teredo (RFC 4380 §5.2.3; Microsoft, "Xbox One: technical information on P2P networking
/// behavior", 2013), which prefers this port. Xbox 360: four zeros, a kind, an X, another kind, and three zeros before what is ciphered.
fn xbox_live(m: &mut Message<'_>) -> Answer {
    const TEREDO: [u8; 4] = [0x20, 0x01, 0, 0];
    is(|| {
        let old = m.u32(0)? == 0 && m.u8(5)? == b'X' && m.bytes.get(7..10)? == [0; 3] && m.len() > 12;
        // What the relay saw of the sender's address may stand before (RFC 4380 §5.1.1).
        let at = if m.u16(0)? == 0 { 8 } else { 0 };
        let tunnelled = m.u8(at)? >> 4 == 6
            && usize::from(m.u16(at + 4)?) + at + 40 == m.len()
            && (m.has(at + 8, &TEREDO) || m.has(at + 24, &TEREDO));
        Some(old || tunnelled)
    })
}

/// "SmartGlass protocol": discovery (0xdd) or a connection (0xcc), a kind, and lengths of what is open and what is ciphered.
fn smartglass(m: &mut Message<'_>) -> Answer {
    is(|| {
        let known = matches!(m.u16(0)?, 0xdd00..=0xdd02 | 0xcc00 | 0xcc01);
        let open = usize::from(m.u16(2)?);
        let at = if m.u16(0)? >= 0xdd00 { 6 } else { 8 };
        Some(
            known
                && open > 0
                && open + at <= m.len()
                && (m.has_port(5050) || is_printed(m.bytes.get(m.len().checked_sub(4)?..)?)),
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
    use crate::protocols::show::{client, flow, one};

    #[test]
    fn games_are_known_by_how_they_begin() {
        let magic = b"\0\xff\xff\0\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78";
        let mut ping = vec![1, 0, 0, 0, 0, 0, 0, 0, 9];
        ping.extend_from_slice(magic);
        let mut connect = vec![0x8f, 0xff, 0, 1, 0x82, 0xff, 0, 1, 0, 0, 0xff, 0xff, 0, 0, 4, 0xb0];
        connect.resize(52, 0);
        let mut photon = vec![0xff, 0xff, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 2, 0xff, 1, 4, 0, 0, 0, 20];
        photon.resize(32, 0);
        let mut teredo = b"\x60\0\0\0\0\x04\x32\x40\x20\x01\0\0".to_vec();
        teredo.resize(44, 5);
        let mut segment = vec![0x0a, 0, 0, 0, 0x51, 0, 0x80, 0];
        segment.resize(20, 0);
        segment.extend_from_slice(&[2, 0, 0, 0, 7, 7]);
        check(&[
            (Protocol::Demonware, Udp, 3074, Client, &[0x0d; 29], No),
            (Protocol::ENet, Udp, 20021, Client, &connect, Is),
            (Protocol::GameSpy, Udp, 6500, Client, b"\xfe\xfd\x09\x01\x02\x03\x04", Is),
            (Protocol::Kcp, Udp, 8000, Client, &segment, Is),
            (Protocol::Kcp, Udp, 8000, Client, &segment[..25], No),
            (Protocol::Minecraft, Tcp, 25565, Client, b"\x12\0\xfb\x05\x0bexample.net\x63\xdd\x01", Is),
            (Protocol::Minecraft, Tcp, 25565, Client, b"\x12\0\xfb\x05\x0bexample net\x63\xdd\x01", No),
            (Protocol::NetcodeIo, Udp, 40000, Client, b"\0NETCODE 1.02\0", Is),
            (Protocol::Photon, Udp, 5055, Client, &photon, Is),
            (Protocol::Photon, Udp, 5055, Client, &photon[..31], No),
            (
                Protocol::PlayStation,
                Udp,
                987,
                Client,
                b"SRCH * HTTP/1.1\ndevice-discovery-protocol-version:00020020\n",
                Is,
            ),
            (Protocol::PlayStation, Tcp, 9295, Client, b"GET /sie/ps5/rp/sess/init HTTP/1.1\r\n", Is),
            (Protocol::PlayStation, Tcp, 9295, Client, b"GET /sie/ps6/", No),
            (Protocol::XboxLive, Udp, 3074, Client, b"\0\0\0\0\x0cX\x76\0\0\0\x09\x08\x07", Is),
            (Protocol::XboxLive, Udp, 3074, Client, b"\0\0\0\0\x0cX\x76\0\x01\0\x09\x08\x07", No),
            (Protocol::XboxLive, Udp, 3074, Client, &teredo, Is),
            (Protocol::XboxLive, Udp, 3074, Client, &[&[0; 8][..], &teredo].concat(), Is),
            (Protocol::XboxLive, Udp, 3074, Client, &teredo[..teredo.len() - 1], No),
            (Protocol::Quake, Udp, 27960, Client, b"\xff\xff\xff\xffgetstatus", Is),
            (Protocol::RakNet, Udp, 19132, Client, &ping, Is),
            (Protocol::Samp, Udp, 7777, Client, b"SAMP\xc0\0\x02\x01\x61\x1ei", Is),
            (Protocol::SourceEngine, Udp, 27015, Client, b"\xff\xff\xff\xffTSource Engine Query\0", Is),
            (Protocol::SourceEngine, Udp, 27015, Client, b"\xff\xff\xff\xffTSource Engine Query", No),
            (Protocol::Steam, Udp, 27036, Client, b"\xff\xff\xff\xff\x21\x4c\x5f\xa0\x16\0\0\0", Is),
            (
                Protocol::SteamDatagramRelay,
                Udp,
                27045,
                Client,
                b"\x01\x81sdping and what is measured with it",
                Is,
            ),
            (Protocol::Teeworlds, Udp, 8303, Client, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffgie3\x05", Is),
            (
                Protocol::WarcraftLan,
                Udp,
                6112,
                Client,
                b"\xf7\x2f\x10\0\x50\x58\x33\x57\x18\0\0\0\0\0\0\0",
                Is,
            ),
            (
                Protocol::WorldOfWarcraft,
                Tcp,
                3724,
                Server,
                b"\0\x30WORLD OF WARCRAFT CONNECTION - SERVER TO CLIENT",
                Is,
            ),
            (Protocol::XboxSmartGlass, Udp, 5050, Client, b"\xdd\0\0\x0a\0\0\0\0\0\0\0\x03\0\0\0\x02", Is),
        ]);
    }

    #[test]
    fn remote_play_begins_as_sctp_does() {
        let streams = b"\0\x01\x90\0\0\x64\0\x64";
        let begins = [&[0; 13][..], b"\x01\0\0\x14", b"abcd", streams, b"abcd"].concat();
        let answers = [b"\0abcd", &[0; 8][..], b"\x02\0\0\x34", b"efgh", streams, b"efgh", &[9; 32]].concat();
        let ask = |bytes: &[u8]| client(Protocol::PlayStation, Udp, 9296, bytes);
        for good in [&begins, &answers] {
            assert_eq!(takion_of(good), Is);
            for at in (5..17).chain([25, 27]) {
                let mut changed = good.clone();
                changed[at] ^= 0x40;
                assert_eq!(takion_of(&changed), No, "octet {at}");
            }
            for end in 0..good.len() {
                assert_eq!(takion_of(&good[..end]), No);
            }
        }
        assert_eq!(ask(&begins), No, "the first of its recognisers is that of its discovery");
    }

    fn takion_of(bytes: &[u8]) -> crate::classify::Answer {
        one(super::takion, Udp, 9296, bytes)
    }

    #[test]
    fn what_is_answered_has_the_same_octets() {
        let mut query = [7; 29];
        query[..3].copy_from_slice(&[0x0d, 2, 0]);
        let mut answer = query;
        answer[0] = 0x0c;
        assert_eq!(
            flow(Protocol::Demonware, Udp, 3074, &[(Client, &query), (Server, &answer)]).0,
            [Perhaps, Is]
        );
        assert_eq!(flow(Protocol::Demonware, Udp, 4000, &[(Client, &query), (Server, &answer)]).0, [No, Is]);
    }

    #[test]
    fn minecraft_writes_down_the_server() {
        let handshake = b"\x12\0\xfb\x05\x0bexample.net\x63\xdd\x01";
        let (answers, sheet) = flow(Protocol::Minecraft, Tcp, 25565, &[(Client, &handshake[..])]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Is], &b"example.net"[..]));
    }
}
