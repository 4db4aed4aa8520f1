//! Plants, power grids, buildings and vehicles.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{Ber, contains, fills, is, perhaps, row};

use Strength::{Magic, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;
const BOTH: Carriers = Carriers::BOTH;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Ads, TCP, &[48898], First::Of(b"\0"), Structure, ads),
    row(Protocol::Atg, TCP, &[10001], First::Of(b"\x01"), Structure, atg),
    row(Protocol::Bacnet, UDP, &[47808], First::Of(b"\x81"), Structure, bacnet),
    row(Protocol::C1222, BOTH, &[1153], First::Of(b"\x60"), Structure, c1222),
    row(Protocol::C37118, BOTH, &[4712, 4713], First::Of(b"\xaa"), Structure, c37_118),
    row(Protocol::CanOverUdp, UDP, &[11898], First::Of(b"I"), Magic, can),
    row(Protocol::CipIo, UDP, &[2222], First::Of(b"\x02\x03\x04"), Structure, cip_io),
    row(Protocol::CnpIp, UDP, &[1628, 1629], First::Of(b"\0\x01\x02"), Structure, cnp_ip),
    row(Protocol::Dlms, BOTH, &[4059], First::Of(b"\x7e\0"), Structure, dlms),
    row(Protocol::Dnp3, BOTH, &[20000], First::Of(b"\x05"), Structure, dnp3),
    row(Protocol::DoIp, BOTH, &[13400], First::Of(b"\x01\x02\x03\xff"), Structure, doip),
    row(Protocol::Egd, UDP, &[18246], First::Of(b"\x0d"), Structure, egd),
    row(
        Protocol::EtherNetIp,
        BOTH,
        &[44818],
        First::Of(b"\x01\x04\x63\x64\x65\x66\x6f\x70\x72\x73"),
        Structure,
        ethernet_ip,
    ),
    row(Protocol::EtherSBus, UDP, &[5050], First::Of(b"\0"), Structure, ether_s_bus),
    row(Protocol::Fins, BOTH, &[9600], First::Of(b"F\x80\x81\xc0\xc1"), Structure, fins),
    row(Protocol::Fox, TCP, &[1911], First::Of(b"f"), Magic, fox),
    row(Protocol::HartIp, BOTH, &[5094], First::Of(b"\x01\x02"), Structure, hart_ip),
    row(Protocol::HiSlip, TCP, &[4880], First::Of(b"H"), Structure, hislip),
    row(Protocol::Iec104, TCP, &[2404], First::Of(b"\x68"), Structure, iec_104),
    row(Protocol::KnxNetIp, BOTH, &[3671], First::Of(b"\x06"), Structure, knxnet_ip),
    row(Protocol::Mms, TCP, &[], First::Of(b"\x03"), Structure, mms),
    row(Protocol::Modbus, TCP, &[502], First::Any, Structure, modbus),
    row(Protocol::OpcUa, TCP, &[4840], First::Of(b"HAOMCER"), Magic, opc_ua),
    row(Protocol::S7Comm, TCP, &[102], First::Of(b"\x03"), Structure, s7),
    row(Protocol::Slmp, BOTH, &[5007], First::Of(b"\x50\x54\xd0\xd4"), Structure, slmp),
    row(Protocol::SomeIp, BOTH, &[30490], First::Any, Structure, some_ip).having(12, 1, 1),
];

/// Beckhoff's AMS: two zeros, the length of what follows; in it flags, and the length of the data.
fn ads(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (length, data) = (m.u32_le(2)? as usize, m.u32_le(26)? as usize);
        let command = m.u16_le(22)?;
        Some(
            m.u16(0)? == 0
                && length + 6 == m.len()
                && data.checked_add(32)? == length
                && command <= 9
                && m.u16_le(24)? & 0xff00 == 0,
        )
    })
}

/// Veeder-Root's gauges of tanks: SOH, a letter and five digits.
fn atg(m: &mut Message<'_>) -> Answer {
    is(|| {
        let digits = m.bytes.get(2..7)?;
        Some(
            m.begins
                && matches!(m.u8(1)?, b'I' | b'i' | b'S' | b's')
                && digits.iter().all(u8::is_ascii_hexdigit)
                && m.len() < 64,
        )
    })
}

/// ANSI/ASHRAE 135 annex J.2: type, function, length; and version 1 of what is carried (§6.2).
fn bacnet(m: &mut Message<'_>) -> Answer {
    is(|| {
        let function = m.u8(1)?;
        let carried = match function {
            0x04 => m.u8(10)? == 1,
            0x09..=0x0b => m.u8(4)? == 1,
            _ => true,
        };
        Some(function <= 0x0c && usize::from(m.u16(2)?) == m.len() && carried)
    })
}

/// ANSI C12.22 §5.3: an application's value of ACSE that fills the payload, with a title first.
fn c1222(m: &mut Message<'_>) -> Answer {
    is(|| {
        let outer = Ber::new(m.bytes).value()?;
        let mut inner = Ber::new(outer.content);
        let (first, second) = (inner.value()?, inner.value()?);
        let titles =
            matches!(first.tag, 0xa1 | 0xa2 | 0xa4 | 0xa6) && matches!(second.tag, 0xa2 | 0xa4 | 0xa6..=0xa8);
        Some(titles && outer.length == outer.content.len() && (m.len() - outer.length) <= 4)
    })
}

/// IEEE C37.118.2 §6.2: 0xaa, a kind and a version, the size of the frame.
fn c37_118(m: &mut Message<'_>) -> Answer {
    is(|| {
        let kind = m.u8(1)?;
        let size = usize::from(m.u16(2)?);
        let whole = size == m.len() || (m.carrier == Carrier::Tcp && size < m.len() && m.u8(size)? == 0xaa);
        Some(kind >> 4 <= 5 && matches!(kind & 0x0f, 1 | 2) && size >= 16 && whole)
    })
}

/// Frames of CAN, after the number of the standard.
fn can(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"ISO11898") && m.len() > 10))
}

/// CIP volume 2 §2-6: two items or more; the first one is an address with a sequence, the second are data.
fn cip_io(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            (2..=4).contains(&m.u16_le(0)?)
                && m.u16_le(2)? == 0x8002
                && m.u16_le(4)? == 8
                && m.u16_le(14)? == 0x00b1,
        )
    })
}

/// EIA-852 §6: length, version 1, a kind of packet.
fn cnp_ip(m: &mut Message<'_>) -> Answer {
    is(|| {
        let known = matches!(m.u8(3)?, 1 | 3 | 4 | 6..=8 | 0x60..=0x68 | 0x70..=0x72);
        Some(
            (m.has_port(1628) || m.has_port(1629))
                && usize::from(m.u16(0)?) == m.len()
                && m.u8(2)? == 1
                && known,
        )
    })
}

/// IEC 62056-46 §6.4 (HDLC between flags, with its length) and 62056-47 §7.3 (version 1, two ports, a length).
fn dlms(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(1)? & 0x07ff);
        let framed = m.u8(0)? == 0x7e && m.u8(1)? & 0xf0 == 0xa0 && m.u8(length + 1)? == 0x7e && length >= 7;
        let wrapped =
            m.u16(0)? == 1 && m.has_port(4059) && usize::from(m.u16(6)?) + 8 == m.len() && m.len() > 8;
        Some(framed || wrapped)
    })
}

/// IEEE 1815 §9.2: 0x0564, a length, and the check of the header's eight octets.
fn dnp3(m: &mut Message<'_>) -> Answer {
    is(|| {
        let header = m.bytes.get(..8)?;
        let crc = header.iter().fold(0_u16, |crc, octet| {
            (0..8).fold(
                crc ^ u16::from(*octet),
                |crc, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xa6bc },
            )
        });
        Some(m.u16(0)? == 0x0564 && m.u8(2)? >= 5 && m.u16_le(8)? == !crc)
    })
}

/// ISO 13400-2 §9.2: version and its bits turned over, a type, the length of what follows.
fn doip(m: &mut Message<'_>) -> Answer {
    is(|| {
        let known = matches!(m.u16(2)?, 0..=8 | 0x4001..=0x4004 | 0x8001..=0x8003);
        Some(m.u8(0)? == !m.u8(1)? && known && m.u32(4)? as usize + 8 == m.len())
    })
}

/// Ethernet Global Data: type 13, version 1; 32 octets before the data, of which the last four are zero.
fn egd(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(m.has(0, &[0x0d, 0x01]) && m.u32(28)? == 0 && m.u32_le(16)? < 1_000_000_000 && m.len() <= 1432)
    })
}

/// CIP volume 2 §2-3: a command, the length of what follows the 24 octets, a status, no options.
fn ethernet_ip(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16_le(2)?);
        let whole = length + 24 == m.len()
            || (m.carrier == Carrier::Tcp && length + 24 < m.len() && m.u16_le(length + 46)? < 0x80);
        Some(
            m.u8(1)? == 0
                && whole
                && m.u32_le(8)? <= 0x6a
                && m.u32(20)? == 0
                && (length > 0 || m.has_port(44818)),
        )
    })
}

/// Saia's: length in four octets, version, no type, a sequence, an attribute; and a check of it all (CRC-16 of X.25's polynomial, from 0).
fn ether_s_bus(m: &mut Message<'_>) -> Answer {
    is(|| {
        let headed = m.u32(0)? as usize == m.len() && m.u8(4)? <= 1 && m.u8(5)? <= 1 && m.u8(8)? <= 2;
        if !headed || !(11..=1500).contains(&m.len()) {
            return Some(false);
        }
        let checked = m.bytes.get(..m.len() - 2)?;
        let crc = checked.iter().fold(0_u16, |crc, octet| {
            let crc = crc ^ u16::from(*octet) << 8;
            (0..8).fold(crc, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
        });
        Some(m.u16(m.len() - 2)? == crc)
    })
}

/// Omron's W227: "FINS" and a length over TCP; in datagrams a header of ten octets and two of a command, on the port.
fn fins(m: &mut Message<'_>) -> Answer {
    if m.carrier == Carrier::Tcp {
        return is(|| Some(m.has(0, b"FINS") && m.u32(4)? as usize + 8 <= m.len() && m.u32(8)? <= 6));
    }
    is(|| {
        let headed = m.u8(0)? & 0x3e == 0 && m.u8(0)? & 0x80 != 0 && m.u8(1)? == 0 && m.u8(2)? <= 7;
        Some(m.has_port(9600) && headed && (1..=0x26).contains(&m.u8(10)?) && m.u8(11)? <= 0x40)
    })
}

/// Niagara's Fox: both sides say its name and a number.
fn fox(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"fox a ") && m.u8(6)?.is_ascii_digit()))
}

/// HCF_SPEC-085 §10.3: version, a kind, an operation, a status, a sequence, and the length of it all.
fn hart_ip(m: &mut Message<'_>) -> Answer {
    let headed = perhaps(|| {
        let kind = matches!(m.u8(1)?, 0..=2 | 15);
        Some(kind && m.u8(2)? <= 4 && usize::from(m.u16(6)?) == m.len() && m.len() >= 8)
    });
    if headed == Answer::Perhaps && m.has_port(5094) { Answer::Is } else { headed }
}

/// IVI-6.1 §6.1: "HS", a kind, and a length in eight octets.
fn hislip(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"HS") && m.u8(2)? <= 29 && m.u32(8)? == 0 && m.u32(12)? < 1 << 24))
}

/// IEC 60870-5-104 §5: 0x68 and lengths that fill the payload; one of the three formats; what is sent has a type and a cause.
fn iec_104(m: &mut Message<'_>) -> Answer {
    let unit = |bytes: &[u8]| {
        let length = usize::from(*bytes.get(1)?);
        (bytes.first()? == &0x68 && (4..=253).contains(&length)).then_some(length + 2)
    };
    // The last one may be cut off where a segment ends.
    let first = unit(m.bytes).unwrap_or(0);
    let filled = fills(m.bytes, 16, unit) || (first > 0 && m.len() > 1000);
    let usual = m.has_port(2404);
    let alike = m.other().first().starts_with(&[0x68]);
    let answer = |sure: bool| match (filled, sure || usual) {
        (true, true) => Answer::Is,
        (true, false) if alike => Answer::Perhaps,
        _ => Answer::No,
    };
    match (m.u8(1), m.u8(2), m.u8(3)) {
        (Some(4), Some(0x07 | 0x0b | 0x13 | 0x23 | 0x43 | 0x83), Some(0)) => answer(m.u16(4) == Some(0)),
        (Some(4), Some(1), Some(0)) => answer(false),
        (Some(10..), Some(number), _) if number & 1 == 0 => {
            let known = matches!(m.u8(6), Some(1..=40 | 45..=64 | 70 | 100..=107 | 110..=113 | 120..=127));
            let cause = m.u8(8).is_some_and(|cause| (1..=47).contains(&(cause & 0x3f)));
            if known && cause { answer(m.u8(9).is_some_and(|origin| origin == 0)) } else { Answer::No }
        }
        _ => Answer::No,
    }
}

/// EN 13321-2 §2.3: a header of six octets, version 1.0, a service of its list, and the length of it all.
fn knxnet_ip(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(4)?);
        let known = matches!(m.u16(2)?, 0x0201..=0x020c | 0x0310 | 0x0311 | 0x0420..=0x0425 | 0x0530..=0x0533 | 0x0740..=0x0743 | 0x0950..=0x0954);
        let whole = length == m.len()
            || (m.carrier == Carrier::Tcp && length < m.len() && m.has(length, &[0x06, 0x10]));
        Some(m.has(0, &[0x06, 0x10]) && known && whole)
    })
}

/// What ISO transport carries over TCP (RFC 1006 §6, X.224 §13): how it begins, or data.
enum Transport<'m> {
    Connects,
    Data(&'m [u8]),
}

fn transport<'m>(m: &Message<'m>) -> Option<Transport<'m>> {
    let length = usize::from(m.u16(2)?);
    if !m.has(0, &[3, 0]) || length < 7 || length > m.len() {
        return None;
    }
    let header = usize::from(m.u8(4)?);
    match m.u8(5)? {
        0xe0 | 0xd0 if header + 5 == length && header >= 6 => Some(Transport::Connects),
        0xf0 if header == 2 => Some(Transport::Data(m.bytes.get(7..length)?)),
        _ => None,
    }
}

/// ISO 9506 over ISO 8327 and 8823: a session begins (0x0d, 0x0e), with the abstract syntax of MMS (1.0.9506.2.1) in it.
fn mms(m: &mut Message<'_>) -> Answer {
    match transport(m) {
        Some(Transport::Connects) if m.has_port(102) => Answer::Next,
        Some(Transport::Data([0x0d | 0x0e, ..])) if contains(m.bytes, &[0x28, 0xca, 0x22, 0x02], 300) => {
            Answer::Is
        }
        Some(Transport::Data([0x01, 0x00, 0x01, 0x00, 0x61, ..])) => Answer::Is,
        _ => Answer::No,
    }
}

/// "MODBUS Messaging on TCP/IP" §3.1.3: a number, protocol 0, the length of what follows, and a function; off its port also the length that the
/// function has.
fn modbus(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = usize::from(m.u16(4)?);
        let function = m.u8(7)?;
        let counted =
            |at: usize, more: usize| m.u8(at).is_some_and(|octets| usize::from(octets) + more == length);
        let known = match function {
            _ if m.has_port(502) => matches!(function & 0x7f, 1..=8 | 11 | 12 | 15..=17 | 20..=24 | 43 | 90),
            1..=4 => length == 6 || counted(8, 3),
            5 | 6 => length == 6,
            15 | 16 => length == 6 || counted(12, 7),
            _ => false,
        };
        // One follows another, with the same unit.
        let whole =
            length + 6 == m.len() || (length + 6 < m.len() && m.u16(length + 8)? == 0 && m.has_port(502));
        Some(m.u16(2)? == 0 && (2..=260).contains(&length) && whole && known)
    })
}

/// OPC 10000-6 §7.1.2: three letters, a chunk, and the length of the message.
fn opc_ua(m: &mut Message<'_>) -> Answer {
    is(|| {
        let known =
            matches!(m.bytes.first_chunk()?, b"HEL" | b"ACK" | b"ERR" | b"RHE" | b"OPN" | b"MSG" | b"CLO");
        Some(known && matches!(m.u8(3)?, b'F' | b'C' | b'A') && (8..1 << 24).contains(&m.u32_le(4)?))
    })
}

/// Siemens' programming over ISO transport: data begin with 0x32, or with 0x72 in newer ones, whose names are of SIMATIC.
fn s7(m: &mut Message<'_>) -> Answer {
    match transport(m) {
        Some(Transport::Connects) if contains(m.bytes, b"SIMATIC-ROOT", 80) => {
            Answer::Other(Protocol::S7CommPlus)
        }
        Some(Transport::Connects) if m.has_port(102) => Answer::Next,
        Some(Transport::Data([0x32, 1..=3 | 7, ..])) => Answer::Is,
        Some(Transport::Data([0x72, 1..=3 | 0xfe, ..])) => Answer::Other(Protocol::S7CommPlus),
        _ => Answer::No,
    }
}

/// Mitsubishi's SLMP (frames 3E and 4E): a subheader, where to, and the length of what follows.
fn slmp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let at = if matches!(m.u16(0)?, 0x5400 | 0xd400) { 6 } else { 2 };
        let headed = matches!(m.u16(0)?, 0x5000 | 0x5400 | 0xd000 | 0xd400) && (at == 2 || m.u16(4)? == 0);
        Some(headed && m.u16_le(at + 2)? == 0x03ff && usize::from(m.u16_le(at + 5)?) + at + 7 == m.len())
    })
}

/// AUTOSAR's PRS_SOMEIPProtocol §4.1.2: a service and a method, the length of what follows, protocol version 1, a kind, a return code.
fn some_ip(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u32(4)? as usize;
        let kind =
            matches!(m.u8(14)?, 0..=2 | 0x20..=0x22 | 0x40..=0x42 | 0x80 | 0x81 | 0xa0 | 0xa1 | 0xc0 | 0xc1);
        let whole = length.checked_add(8)? == m.len() || (length + 24 <= m.len() && m.u8(length + 20)? == 1);
        Some(length >= 8 && whole && m.u8(12)? == 1 && kind && m.u8(15)? <= 0x5e && m.u16(0)? != 0)
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, Next, No, Other};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;
    use crate::protocols::show::flow;

    #[test]
    fn plants_are_known_by_their_headers() {
        let io = b"\x02\0\x02\x80\x08\0\x01\0\0\0\x02\0\0\0\xb1\0\x02\0\0\0";
        let session = b"\x65\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0";
        let mut ads = vec![0, 0, 0x20, 0, 0, 0];
        ads.resize(22, 1);
        ads.extend_from_slice(&[4, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
        check(&[
            (Protocol::Ads, Tcp, 48898, Client, &ads, Is),
            (Protocol::Atg, Tcp, 10001, Client, b"\x01I20100\r\n", Is),
            (Protocol::Bacnet, Udp, 47808, Client, b"\x81\x0a\0\x0c\x01\x20\xff\xff\0\xff\x10\x08", Is),
            (Protocol::Bacnet, Udp, 47808, Client, b"\x81\x0a\0\x0d\x01\x20\xff\xff\0\xff\x10\x08", No),
            (Protocol::C37118, Tcp, 4712, Client, b"\xaa\x41\0\x12\0\xf1\0\0\0\0\0\0\0\0\0\x05\xd7\xd0", Is),
            (Protocol::CanOverUdp, Udp, 11898, Client, b"ISO11898\x01\x02\x6a", Is),
            (Protocol::CipIo, Udp, 2222, Client, io, Is),
            (Protocol::CnpIp, Udp, 1628, Client, b"\0\x0c\x01\x01\0\0\0\0\x6b\x8b\x45\x67", Is),
            (Protocol::Dlms, Tcp, 4059, Client, b"\x7e\xa0\x07\x03\x21\x93\x0f\x01\x7e", Is),
            (Protocol::Dlms, Tcp, 4059, Client, b"\x7e\xa0\x08\x03\x21\x93\x0f\x01\x7e", No),
            (
                Protocol::Dnp3,
                Tcp,
                20000,
                Client,
                b"\x05\x64\x08\xc4\x04\0\x03\0\xb4\xb8\xc0\xd7\0\x7a\xce",
                Is,
            ),
            (
                Protocol::Dnp3,
                Tcp,
                20000,
                Client,
                b"\x05\x64\x08\xc4\x04\0\x03\0\xb4\xb9\xc0\xd7\0\x7a\xce",
                No,
            ),
            (Protocol::DoIp, Udp, 13400, Client, b"\x02\xfd\0\x01\0\0\0\0", Is),
            (Protocol::EtherNetIp, Tcp, 44818, Client, session, Is),
            (Protocol::EtherNetIp, Tcp, 44818, Client, &session[..27], No),
            (Protocol::EtherSBus, Udp, 5050, Client, b"\0\0\0\x0d\x01\0\0\x01\0\x0a\x20\x53\x18", Is),
            (Protocol::Fins, Udp, 9600, Client, b"\x80\0\x02\0\0\0\0\0\0\x7a\x01\x01\0", Is),
            (Protocol::Fins, Udp, 9601, Client, b"\x80\0\x02\0\0\0\0\0\0\x7a\x01\x01\0", No),
            (Protocol::Fins, Tcp, 9600, Client, b"FINS\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0", Is),
            (Protocol::Fox, Tcp, 1911, Client, b"fox a 1 -1 fox hello\n{", Is),
            (Protocol::HartIp, Udp, 5094, Client, b"\x01\0\0\0\0\x02\0\x0d\x01\0\0\x75\x30", Is),
            (Protocol::HiSlip, Tcp, 4880, Client, b"HS\0\0\x01\0RS\0\0\0\0\0\0\0\x07hislip0", Is),
            (Protocol::Iec104, Tcp, 2404, Client, b"\x68\x04\x07\0\0\0", Is),
            (Protocol::Iec104, Tcp, 2405, Client, b"\x68\x04\x01\0\x02\0", No),
            (Protocol::Iec104, Tcp, 2404, Client, b"\x68\x05\x07\0\0\0", No),
            (
                Protocol::KnxNetIp,
                Udp,
                3671,
                Client,
                b"\x06\x10\x02\x01\0\x0e\x08\x01\xc0\0\x02\x01\xe1\x7f",
                Is,
            ),
            (
                Protocol::KnxNetIp,
                Udp,
                3671,
                Client,
                b"\x06\x10\x02\x01\0\x0f\x08\x01\xc0\0\x02\x01\xe1\x7f",
                No,
            ),
            (Protocol::Modbus, Tcp, 502, Client, b"\0\xd1\0\0\0\x06\x01\x03\0\x01\0\x01", Is),
            (Protocol::Modbus, Tcp, 502, Client, b"\0\xd1\0\x01\0\x06\x01\x03\0\x01\0\x01", No),
            (Protocol::OpcUa, Tcp, 4840, Client, b"HELF\x20\0\0\0\0\0\0\0", Is),
            (Protocol::Slmp, Tcp, 5007, Client, b"\x50\0\0\xff\xff\x03\0\x04\0\x10\0\x01\x04", Is),
            (Protocol::SomeIp, Udp, 30490, Client, b"\xff\xff\x81\0\0\0\0\x08\0\0\0\x01\x01\x01\x02\0", Is),
            (Protocol::SomeIp, Udp, 30490, Client, b"\xff\xff\x81\0\0\0\0\x09\0\0\0\x01\x01\x01\x02\0", No),
        ]);
    }

    #[test]
    fn iso_transport_is_followed_to_what_it_carries() {
        let connect = b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02";
        let s7 = b"\x03\0\0\x19\x02\xf0\x80\x32\x01\0\0\x02\0\0\x08\0\0\xf0\0\0\x01\0\x01\x01\xe0";
        let plus = b"\x03\0\0\x0b\x02\xf0\x80\x72\x01\0\0";
        let mms = b"\x03\0\0\x11\x02\xf0\x80\x0d\x06\x06\x05\x28\xca\x22\x02\x01\0";
        let of = |protocol, data: &[u8]| flow(protocol, Tcp, 102, &[(Client, connect), (Server, data)]).0;
        assert_eq!(of(Protocol::S7Comm, s7), [Next, Is]);
        assert_eq!(of(Protocol::S7Comm, plus), [Next, Other(Protocol::S7CommPlus)]);
        assert_eq!(of(Protocol::S7Comm, mms), [Next, No]);
        assert_eq!(of(Protocol::Mms, mms), [Next, Is]);
        assert_eq!(of(Protocol::Mms, s7), [Next, No]);
    }
}
