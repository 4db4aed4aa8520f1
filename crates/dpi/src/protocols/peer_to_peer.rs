//! Exchange among peers, and their currencies.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{contains, is, is_name, perhaps, row, starts_with_any, until};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Bitcoin, TCP, &[8333, 18333, 8444], First::Any, Magic, bitcoin),
    row(Protocol::BitTorrent, TCP, &[6881, 6882, 6883, 6889, 51413], First::Of(b"\x13"), Magic, bittorrent),
    row(Protocol::BitTorrentDht, UDP, &[6881], First::Of(b"d"), Magic, dht),
    row(Protocol::BitTorrentLsd, UDP, &[6771], First::Of(b"B"), Magic, lsd),
    row(Protocol::BitTorrentTracker, UDP, &[], First::Of(b"\0"), Magic, tracker),
    row(Protocol::DirectConnect, Carriers::BOTH, &[411, 412], First::Of(b"$HIC"), Structure, direct_connect),
    row(Protocol::EDonkey, TCP, &[4661, 4662], First::Of(b"\xe3\xc5\xd4"), Structure, edonkey),
    row(Protocol::EDonkeyUdp, UDP, &[4665, 4672], First::Of(b"\xe3\xe4\xe5\xc5"), Shape, edonkey_udp),
    row(Protocol::Ethereum, TCP, &[30303], First::Of(b"\0\x01\x02"), Shape, rlpx),
    row(Protocol::EthereumDiscovery, UDP, &[30303, 30301], First::Any, Structure, discovery_v4)
        .having(97, 1, 6),
    row(Protocol::Gnutella, TCP, &[6346, 6347], First::Of(b"G"), Structure, gnutella),
    row(Protocol::Gnutella, UDP, &[6346, 6347], First::Any, Structure, gnutella).having(8, 0xff, 0xff),
    row(Protocol::Libp2p, TCP, &[4001], First::Of(b"\x13"), Magic, libp2p),
    row(Protocol::Mining, TCP, &[3333, 4444], First::Of(b"{"), Magic, mining),
    row(Protocol::Monero, TCP, &[18080], First::Of(b"\x01"), Magic, monero),
    row(Protocol::ResilioSync, UDP, &[3838], First::Of(b"B"), Magic, resilio),
    row(Protocol::Utp, UDP, &[], First::Of(b"\x01\x11\x21\x31\x41"), Structure, utp),
];

/// Its "Protocol documentation", "Message structure": a network's number, a command filled up with zeros, a length. What is derived from it begins
/// with "version", too.
fn bitcoin(m: &mut Message<'_>) -> Answer {
    is(|| {
        let command = m.bytes.get(4..16)?;
        let letters =
            command.iter().take_while(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit()).count();
        let zeros = command.iter().skip(letters).all(|octet| *octet == 0);
        let known = matches!(m.u32(0)?, 0xf9be_b4d9 | 0x0b11_0907 | 0x1c16_3f28 | 0x0a03_cf40 | 0xfabf_b5da);
        let begins = command.starts_with(b"version\0") && (80..400).contains(&m.u32_le(16)?);
        Some(letters >= 3 && zeros && (known || begins) && m.u32_le(16)? < 1 << 25)
    })
}

/// BEP 3: nineteen, and the protocol's name.
fn bittorrent(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"\x13BitTorrent protocol")))
}

/// BEP 5 "KRPC": a dictionary with an argument or an answer, and the number of a node of twenty octets; or an error.
fn dht(m: &mut Message<'_>) -> Answer {
    let begins: &[&[u8]] = &[
        b"d1:ad2:id20:",
        b"d1:rd2:id20:",
        b"d1:eli20",
        b"d2:ip6:",
        b"d2:ip18:",
        b"d1:rd5:token",
        b"d1:ad6:",
    ];
    is(|| Some(starts_with_any(m.bytes, begins) && m.bytes.ends_with(b"e") && m.len() > 20))
}

/// BEP 14: a search for everything.
fn lsd(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"BT-SEARCH * HTTP/1.1\r\n")))
}

/// BEP 15: a connection is asked for with a fixed number.
fn tracker(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0, 0, 0x04, 0x17, 0x27, 0x10, 0x19, 0x80]) && m.u32(8)? == 0 && m.len() == 16))
}

/// BEP 29: a type and version 1, extensions, a number of the connection; both sides' differ by one at most. The first one has seen no time yet.
fn utp(m: &mut Message<'_>) -> Answer {
    let other = m.other().first();
    let shaped = perhaps(|| {
        let extended = m.u8(1)?;
        let begins = m.u8(0)? != 0x41 || (m.u32(8)? == 0 && m.u16(18)? == 0);
        Some(m.len() >= 20 && extended <= 3 && begins && (m.u8(0)? != 0x21 || m.len() <= 60))
    });
    if shaped == Answer::No {
        return Answer::No;
    }
    if m.u8(0) == Some(0x01) && m.has(20, b"\x13BitTorrent protocol") {
        return Answer::Is;
    }
    // Both begin so, and one of them with a SYN.
    let alike = matches!(
        (m.own().first(), other),
        (_, [0x41, 0..=3, ..]) | ([0x41, 0..=3, ..], [0x21 | 0x01, 0..=3, ..])
    ) || (m.u8(0) == Some(0x41) && matches!(other, [0x21, 0..=3, ..]));
    let number = |bytes: &[u8]| Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?));
    let close = match (number(other), m.u16(2)) {
        (Some(theirs), Some(own)) => theirs.wrapping_sub(own).wrapping_add(1) <= 2,
        _ => false,
    };
    match (m.u8(0), alike && close) {
        (_, true) => Answer::Is,
        // A SYN alone: nothing is acknowledged, no time was measured.
        (Some(0x41), _) if other.is_empty() => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// NMDC and ADC: commands that begin with a dollar and end with a bar, or that begin with who they are for.
fn direct_connect(m: &mut Message<'_>) -> Answer {
    let old: &[&[u8]] =
        &[b"$Lock ", b"$MyNick ", b"$HubName ", b"$ValidateNick ", b"$Supports ", b"$SR ", b"$Search "];
    is(|| {
        let dollar = starts_with_any(m.bytes, old) && m.bytes.contains(&b'|');
        Some(
            dollar
                || starts_with_any(
                    m.bytes,
                    &[b"HSUP ADBAS", b"ISUP ADBAS", b"CSUP ADBAS", b"HSUP ADTIGR", b"HSUP AD"],
                ),
        )
    })
}

/// eDonkey and eMule: a protocol's octet, the length of what follows, and an operation.
fn edonkey(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u32_le(1)? as usize;
        let operation = m.u8(5)?;
        let known = matches!(operation, 0x01 | 0x02 | 0x14..=0x1a | 0x32..=0x38 | 0x40..=0x63 | 0x80..=0xa4);
        let hello = m.u8(0)? == 0xe3 && operation == 0x01 && m.u8(6)? == 16;
        Some(known && (length + 5 == m.len() || (hello && length < 1000)))
    })
}

/// Its datagrams: servers (0xe3), peers (0xc5) and Kademlia (0xe4), whose operations have their lengths.
fn edonkey_udp(m: &mut Message<'_>) -> Answer {
    let shaped = perhaps(|| {
        let operation = m.u8(1)?;
        Some(match (m.u8(0)?, m.len()) {
            (0xe3, 6) => matches!(operation, 0x96 | 0xa2),
            (0xe3, length) => matches!(operation, 0x97 | 0x98..=0x9b | 0xa3) && length > 6,
            (0xe4, 35) => matches!(operation, 0x20 | 0x21),
            (0xe4, 2) => matches!(operation, 0x01 | 0x60),
            (0xe4, length) => {
                matches!(
                    operation,
                    0x09 | 0x11 | 0x18 | 0x19 | 0x28 | 0x29 | 0x33 | 0x34 | 0x43 | 0x44 | 0x4b | 0x61
                ) && length > 18
            }
            (0xe5, length) => matches!(operation, 0x28 | 0x29 | 0x08) && length > 30,
            (_, length) => matches!(operation, 0x90..=0x95 | 0xfe | 0xff) && length >= 18,
        })
    });
    let alike =
        matches!(m.other().first(), [0xe3..=0xe5 | 0xc5, 0x01..=0x63 | 0x90..=0xa3 | 0xfe | 0xff, ..]);
    let usual = m.has_port(4672) || m.has_port(4665);
    if shaped == Answer::Perhaps && (usual || alike) { Answer::Is } else { Answer::No }
}

/// EIP-8: the first message of a connection has its length, and chance in everything else.
fn rlpx(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let length = usize::from(m.u16(0)?);
        Some(
            m.begins
                && m.has_port(30303)
                && m.is_from_client()
                && length + 2 == m.len()
                && (200..700).contains(&length),
        )
    })
}

/// Ethereum's discv4 "Wire protocol": a hash, a signature whose last octet is 0 or 1, a kind, and a list of RLP that ends with the payload.
fn discovery_v4(m: &mut Message<'_>) -> Answer {
    is(|| {
        let list = m.u8(98)?;
        let end = match list {
            0xc1..=0xf7 => 99 + usize::from(list - 0xc0),
            0xf8 => 100 + usize::from(m.u8(99)?),
            0xf9 => 101 + usize::from(m.u16(99)?),
            _ => return Some(false),
        };
        Some(
            m.u8(96)? <= 1
                && (1..=6).contains(&m.u8(97)?)
                && (end == m.len() || (end < m.len() && m.len() <= end + 40)),
        )
    })
}

/// Gnutella 0.6 §2: a connection in words; in datagrams a number of sixteen octets, of which two are fixed, a kind, hops, and a length.
fn gnutella(m: &mut Message<'_>) -> Answer {
    let begins: &[&[u8]] = &[b"GNUTELLA CONNECT/", b"GNUTELLA/0.", b"GNUTELLA OK"];
    if starts_with_any(m.bytes, begins) {
        return Answer::Is;
    }
    is(|| {
        let kind = matches!(m.u8(16)?, 0x00 | 0x01 | 0x31 | 0x40 | 0x41 | 0x80 | 0x81);
        let hops = m.u8(17)? <= 7 && m.u8(18)? <= 7 && m.u8(17)? + m.u8(18)? >= 1;
        let marked = m.u8(8)? == 0xff && m.u8(15)? <= 1;
        let udp = m.carrier == crate::classify::Carrier::Udp;
        Some(udp && kind && hops && marked && m.u32_le(19)? as usize + 23 == m.len())
    })
}

/// multistream-select: nineteen, and a path with its version.
fn libp2p(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"\x13/multistream/1.0.0\n")))
}

/// Stratum and getwork: calls in JSON with the methods of miners.
fn mining(m: &mut Message<'_>) -> Answer {
    is(|| {
        let said = |what| contains(m.bytes, what, 600);
        let stratum = said(b"\"mining.")
            || said(b"\"eth_submitLogin\"")
            || said(b"\"eth_getWork\"")
            || said(b"\"eth_submitWork\"");
        let login = said(b"\"login\"") && (said(b"\"agent\"") || said(b"\"pass\"")) && said(b"\"method\"");
        let job = said(b"\"method\":\"job\"") && said(b"\"blob\"");
        Some(stratum || login || job)
    })
}

/// Levin: a fixed number of eight octets.
fn monero(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, &[0x01, 0x21, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01])))
}

/// "BSYNC" and a dictionary.
fn resilio(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"BSYNC\0") && until(m.bytes.get(6..)?, b':', 8).is_some_and(is_name)))
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
    fn peers_are_known_by_how_they_begin() {
        let mut ping = vec![7; 96];
        ping.extend_from_slice(&[1, 1, 0xc4, 4, 0xc1, 0x80, 0x80]);
        let mut torn = ping.clone();
        torn[98] = 0xc5;
        check(&[
            (
                Protocol::Bitcoin,
                Tcp,
                8333,
                Client,
                b"\xf9\xbe\xb4\xd9verack\0\0\0\0\0\0\0\0\0\0\x5d\xf6\xe0\xe2",
                Is,
            ),
            (
                Protocol::Bitcoin,
                Tcp,
                9333,
                Client,
                b"\xfb\xc0\xb6\xdbversion\0\0\0\0\0\x55\0\0\0\x5d\xf6\xe0\xe2",
                Is,
            ),
            (
                Protocol::Bitcoin,
                Tcp,
                9333,
                Client,
                b"\xfb\xc0\xb6\xdbverack\0\0\0\0\0\0\0\0\0\0\x5d\xf6\xe0\xe2",
                No,
            ),
            (Protocol::BitTorrent, Tcp, 6881, Client, b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05", Is),
            (
                Protocol::BitTorrentDht,
                Udp,
                6881,
                Client,
                b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe",
                Is,
            ),
            (
                Protocol::BitTorrentDht,
                Udp,
                6881,
                Client,
                b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:q",
                No,
            ),
            (
                Protocol::BitTorrentLsd,
                Udp,
                6771,
                Client,
                b"BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\n",
                Is,
            ),
            (
                Protocol::BitTorrentTracker,
                Udp,
                6969,
                Client,
                b"\0\0\x04\x17\x27\x10\x19\x80\0\0\0\0\x12\x34\x56\x78",
                Is,
            ),
            (
                Protocol::BitTorrentTracker,
                Udp,
                6969,
                Client,
                b"\0\0\x04\x17\x27\x10\x19\x81\0\0\0\0\x12\x34\x56\x78",
                No,
            ),
            (Protocol::DirectConnect, Tcp, 411, Server, b"$Lock EXTENDEDPROTOCOL_hub Pk=example|", Is),
            (Protocol::EDonkey, Tcp, 4662, Client, b"\xe3\x05\0\0\0\x01\x10\x01\x02\x03", Is),
            (Protocol::EDonkey, Tcp, 4662, Client, b"\xe3\x06\0\0\0\x15\x10\x01\x02\x03", No),
            (Protocol::EDonkeyUdp, Udp, 4665, Client, b"\xe3\x96\x01\x02\x03\x04", Is),
            (Protocol::EDonkeyUdp, Udp, 5000, Client, b"\xe3\x96\x01\x02\x03\x04", No),
            (Protocol::EthereumDiscovery, Udp, 30303, Client, &ping, Is),
            (Protocol::EthereumDiscovery, Udp, 30303, Client, &torn, No),
            (Protocol::Gnutella, Tcp, 6346, Client, b"GNUTELLA CONNECT/0.6\r\n", Is),
            (
                Protocol::Gnutella,
                Udp,
                6346,
                Client,
                b"\x01\x02\x03\x04\x05\x06\x07\x08\xff\x0a\x0b\x0c\x0d\x0e\x0f\0\0\x01\0\0\0\0\0",
                Is,
            ),
            (
                Protocol::Gnutella,
                Udp,
                6346,
                Client,
                b"\x01\x02\x03\x04\x05\x06\x07\x08\xfe\x0a\x0b\x0c\x0d\x0e\x0f\0\0\x01\0\0\0\0\0",
                No,
            ),
            (Protocol::Libp2p, Tcp, 4001, Client, b"\x13/multistream/1.0.0\n", Is),
            (
                Protocol::Mining,
                Tcp,
                3333,
                Client,
                b"{\"id\": 1, \"method\": \"mining.subscribe\", \"params\": []}\n",
                Is,
            ),
            (Protocol::Mining, Tcp, 3333, Client, b"{\"id\": 1, \"method\": \"echo\", \"params\": []}\n", No),
            (Protocol::Monero, Tcp, 18080, Client, b"\x01\x21\x01\x01\x01\x01\x01\x01\x06\x01", Is),
            (Protocol::ResilioSync, Udp, 3838, Client, b"BSYNC\0d1:m4:ping", Is),
        ]);
    }

    #[test]
    fn numbers_of_a_connection_are_next_to_each_other() {
        let syn = b"\x41\0\x45\x67\xed\x63\x92\x96\0\0\0\0\0\x10\0\0\x23\xc6\0\0";
        let state = |low| {
            [0x21, 0, 0x45, low, 0xed, 0x63, 0x93, 0x41, 0, 0, 0, 0, 0, 0x10, 0, 0, 0x45, 0x67, 0x23, 0xc6]
        };
        let answers = |low| flow(Protocol::Utp, Udp, 6881, &[(Client, syn), (Server, &state(low))]).0;
        assert_eq!(answers(0x67), [Perhaps, Is]);
        assert_eq!(answers(0x66), [Perhaps, Is]);
        assert_eq!(answers(0x60), [Perhaps, No]);
        assert_eq!(flow(Protocol::Utp, Udp, 6881, &[(Client, &state(0))]).0, [No]);
    }
}
