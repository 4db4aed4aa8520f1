//! Time, configuration, logs, and what watches over networks and computers.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{
    Ber, contains, fills, is, is_number, is_printed, perhaps, row, starts_with_any, until,
};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Capwap, UDP, &[5246, 5247], First::Of(b"\0\x01"), Structure, capwap),
    row(Protocol::CheckMk, TCP, &[6556], First::Of(b"<"), Magic, check_mk),
    row(Protocol::Collectd, UDP, &[25826], First::Of(b"\0\x02"), Structure, collectd),
    row(Protocol::Dhcp, UDP, &[67, 68], First::Of(b"\x01\x02"), Magic, dhcp),
    row(Protocol::Dhcpv6, UDP, &[546, 547], First::Range(1, 23), Structure, dhcpv6).at_home(),
    row(Protocol::Ganglia, UDP, &[8649], First::Of(b"\0"), Shape, ganglia),
    row(Protocol::Ipmi, UDP, &[623], First::Of(b"\x06"), Structure, ipmi),
    row(Protocol::Lwapp, UDP, &[12222, 12223], First::Any, Shape, lwapp).at_home(),
    row(Protocol::Munin, TCP, &[4949], First::Of(b"#"), Magic, munin),
    row(Protocol::NetFlow, UDP, &[2055, 2056, 9995, 9996, 4739], First::Of(b"\0"), Structure, netflow),
    row(Protocol::Nrpe, TCP, &[5666], First::Of(b"\0"), Structure, nrpe),
    row(Protocol::Ntp, UDP, &[123], First::Any, Structure, ntp).at_home(),
    row(Protocol::Ptp, UDP, &[319, 320], First::Range(0, 0x1d), Structure, ptp).at_home(),
    row(Protocol::Roughtime, UDP, &[2002], First::Of(b"R\x02\x03\x04\x05\x06\x07\x08"), Structure, roughtime),
    row(Protocol::SFlow, UDP, &[6343], First::Of(b"\0"), Structure, sflow),
    row(Protocol::Snmp, UDP, &[161, 162], First::Of(b"\x30"), Structure, snmp),
    row(Protocol::StatsD, UDP, &[8125], First::Range(b'0', b'z'), Structure, statsd),
    row(Protocol::Syslog, Carriers::BOTH, &[514, 601, 6514], First::Of(b"<0123456789"), Structure, syslog),
    row(Protocol::Time, UDP, &[37], First::Any, Shape, time).at_home(),
    row(Protocol::Whois, TCP, &[43, 4343], First::Any, Shape, whois),
    row(Protocol::Zabbix, TCP, &[10050, 10051], First::Of(b"Z"), Magic, zabbix),
];

/// RFC 5415 §4.3: a preamble of version 0; in the header its length, no reserved bits, and a control message of a known number.
fn capwap(m: &mut Message<'_>) -> Answer {
    if m.u8(0) == Some(1) {
        return is(|| Some(m.has(1, &[0, 0, 0]) && m.u8(4)? == 22 && m.u8(5)? == 0xfe));
    }
    perhaps(|| {
        let header = usize::from(m.u8(1)? >> 3) * 4;
        let message = m.u32(header)?;
        let element = usize::from(m.u16(header + 5)?) + header + 5;
        let control =
            m.has_port(5246) && (1..=26).contains(&message) && element < m.len() + 4 && element + 8 > m.len();
        let data = m.has_port(5247) && header >= 8 && m.len() > header;
        Some(
            (8..=64).contains(&header)
                && m.u8(3)?.trailing_zeros() >= 3
                && m.u16(6)?.trailing_zeros() >= 3
                && (control || data),
        )
    })
}

/// An agent says all it knows in sections, of which this is the first.
fn check_mk(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"<<<check_mk>>>")))
}

/// collectd's "Binary protocol": parts of type and length; the first one is the name of a host, the time or a signature.
fn collectd(m: &mut Message<'_>) -> Answer {
    is(|| {
        let known = match m.u16(0)? {
            0 => {
                let text = m.bytes.get(4..usize::from(m.u16(2)?))?;
                text.len() > 1 && text.last() == Some(&0) && is_printed(text.get(..text.len() - 1)?)
            }
            0x0200 => m.u16(2)? == 36 + 4 + 4,
            0x0210 => {
                let name = usize::from(m.u16(4)?);
                usize::from(m.u16(2)?) == m.len() && name > 0 && is_printed(m.bytes.get(6..6 + name)?)
            }
            _ => false,
        };
        let part = |bytes: &[u8]| {
            let kind = u16::from_be_bytes(*bytes.first_chunk()?);
            let length = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
            (kind <= 9 || matches!(kind, 0x100 | 0x101 | 0x200 | 0x210))
                .then_some(usize::from(length))
                .filter(|length| *length > 4)
        };
        Some(known && (m.u16(0)? == 0x0210 || fills(m.bytes, 6, part)))
    })
}

/// RFC 2131 §2 and 3: a request or a reply over Ethernet or so, and the cookie before the options; older ones (BOOTP) have none.
fn dhcp(m: &mut Message<'_>) -> Answer {
    let answer = is(|| {
        Some(matches!(m.u8(0)?, 1 | 2) && m.u8(2)? <= 16 && m.u8(3)? <= 16 && m.u32(236)? == 0x6382_5363)
    });
    if answer == Answer::Is
        && let Some(name) = dhcp_host_name(m.bytes.get(240..).unwrap_or_default())
    {
        m.sheet.host.set(name);
    }
    answer
}

/// RFC 2132 §3.14: what the client calls itself, among the first options.
fn dhcp_host_name(mut options: &[u8]) -> Option<&[u8]> {
    for _ in 0..64 {
        let code = *options.first()?;
        if code == 0 {
            options = options.get(1..)?;
            continue;
        }
        let length = usize::from(*options.get(1)?);
        if code == 12 {
            return options.get(2..2 + length);
        }
        options = options.get(2 + length..)?;
    }
    None
}

/// RFC 8415 §8 and §9: a type, then options that end with the message.
fn dhcpv6(m: &mut Message<'_>) -> Answer {
    is(|| {
        let relay = matches!(m.u8(0)?, 12 | 13);
        let options = m.bytes.get(if relay { 34 } else { 4 }..)?;
        let option = |bytes: &[u8]| {
            let (code, length) = (
                u16::from_be_bytes(*bytes.first_chunk()?),
                u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?),
            );
            (1..=160).contains(&code).then_some(usize::from(length) + 4)
        };
        let client = (m.client.port, m.server.port);
        let usual = matches!(client, (546 | 547, _) | (_, 546 | 547));
        Some((1..=23).contains(&m.u8(0)?) && !options.is_empty() && usual && fills(options, 64, option))
    })
}

/// gmond's XDR: kinds of messages from 128 on, then the name of a host.
fn ganglia(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let length = m.u32(4)? as usize;
        Some(
            (128..=136).contains(&m.u32(0)?)
                && (1..256).contains(&length)
                && is_printed(m.bytes.get(8..8 + length)?),
        )
    })
}

/// DSP0136 §3.2 (RMCP): version 6, no number in an acknowledged sequence, class ASF or IPMI; then a session or ASF's number of its enterprise.
fn ipmi(m: &mut Message<'_>) -> Answer {
    is(|| {
        let headed = m.u8(0)? == 6 && m.u8(1)? == 0;
        Some(
            headed
                && match m.u8(3)? & 0x7f {
                    6 => m.u32(4)? == 4542 && usize::from(m.u8(11)?) + 12 == m.len(),
                    7 => match m.u8(4)? {
                        0..=5 => {
                            let at = if m.u8(4)? == 0 { 13 } else { 29 };
                            let rest = m.len().checked_sub(usize::from(m.u8(at)?) + at + 1)?;
                            rest <= 1
                        }
                        6 => usize::from(m.u16_le(14)?) + 16 <= m.len(),
                        _ => false,
                    },
                    _ => false,
                },
        )
    })
}

/// RFC 5412 §3: on its ports, a header of version 0 whose length ends with the payload; an address of the access point may be before it.
fn lwapp(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let ends = |at: usize| Some(m.u8(at)? >> 6 == 0 && usize::from(m.u16(at + 2)?) + at + 6 == m.len());
        Some((m.has_port(12222) || m.has_port(12223)) && (ends(0)? || ends(6)?))
    })
}

/// A node greets with its name.
fn munin(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"# munin node at ")))
}

/// RFC 3954 §5.1 and RFC 7011 §3.1: version, how many records (1, 5, 7), or sets that fill it (9), or the length (10); and a clock.
fn netflow(m: &mut Message<'_>) -> Answer {
    // From 2000 to 2100: nobody's clock is before or after.
    let clock = |at| Some((946_684_800..4_102_444_800).contains(&m.u32(at)?));
    is(|| {
        let count = usize::from(m.u16(2)?);
        Some(match m.u16(0)? {
            1 => count > 0 && m.len() == 16 + 52 * count && clock(8)?,
            5 => count > 0 && m.len() == 24 + 48 * count && clock(8)?,
            7 => count > 0 && m.len() == 24 + 52 * count && clock(8)?,
            9 => {
                let set = u16::from_be_bytes(*m.bytes.get(20..)?.first_chunk()?);
                let length = usize::from(m.u16(22)?);
                count > 0 && clock(8)? && (set <= 1 || set >= 256) && length >= 4 && 20 + length <= m.len()
            }
            10 => {
                let length = usize::from(m.u16(18)?);
                count == m.len()
                    && clock(4)?
                    && (m.u16(16)? == 2 || m.u16(16)? == 3 || m.u16(16)? >= 256)
                    && 16 + length <= count
            }
            _ => false,
        })
    })
}

/// NRPE 2 to 4: version, query or answer, a checksum; the rest has a fixed size, or the one that it says.
fn nrpe(m: &mut Message<'_>) -> Answer {
    is(|| {
        let kind = m.u16(2)?;
        let sized =
            m.len() == 1036 || m.u32(12)? as usize + 16 == m.len() || m.u32(12)? as usize + 19 == m.len();
        Some(m.begins && matches!(m.u16(0)?, 2..=4) && matches!(kind, 1 | 2) && sized)
    })
}

/// RFC 5905 §7.3: version and mode; on its port, or with values that a clock has. Modes 6 and 7 are its control.
fn ntp(m: &mut Message<'_>) -> Answer {
    let (Some(first), usual) = (m.u8(0), m.has_port(123)) else { return Answer::No };
    let (version, mode) = (first >> 3 & 7, first & 7);
    if !(1..=4).contains(&version) || mode == 0 || !usual {
        return Answer::No;
    }
    match mode {
        6 => is(|| Some(m.len() >= 12 && usize::from(m.u16(10)?) + 12 < m.len() + 4)),
        7 => is(|| Some(m.len() >= 8 && m.u8(2)? <= 3)),
        _ => is(|| Some(m.len() >= 48 && (m.len() - 48).is_multiple_of(4) && m.u8(1)? <= 16)),
    }
}

/// IEEE 1588 §13.3: a known type, version 1 or 2, the length of the message, on its ports.
fn ptp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (kind, version, length) = (m.u8(0)? & 0x0f, m.u8(1)?, usize::from(m.u16(2)?));
        let second = version & 0x0f == 2
            && matches!(kind, 0..=3 | 8..=13)
            && (34..=m.len()).contains(&length)
            && length + 2 >= m.len();
        let first = m.u16(0)? == 1 && m.u16(2)? == 1 && m.len() >= 100;
        Some((m.has_port(319) || m.has_port(320)) && (second || first))
    })
}

/// Roughtime §5: "ROUGHTIM" and a length; before, tags of which the nonce's is always there.
fn roughtime(m: &mut Message<'_>) -> Answer {
    is(|| {
        let framed = m.has(0, b"ROUGHTIM") && m.u32_le(8)? as usize + 12 == m.len();
        let tags = m.u32_le(0)? as usize;
        let plain = (2..=8).contains(&tags)
            && m.len() >= 1024
            && contains(m.bytes, b"NONC", 64)
            && contains(m.bytes, b"PAD\xff", 64);
        Some(framed || plain)
    })
}

/// sFlow 5: version, kind of address, and a number of samples; versions 2 and 4 begin alike.
fn sflow(m: &mut Message<'_>) -> Answer {
    is(|| {
        let agent = match m.u32(4)? {
            1 => 4,
            2 => 16,
            _ => return Some(false),
        };
        let at = if m.u32(0)? == 5 { 8 + agent + 12 } else { 8 + agent + 8 };
        let (samples, kind) = (m.u32(at)?, m.u32(at + 4)?);
        Some(
            matches!(m.u32(0)?, 2 | 4 | 5)
                && (1..=200).contains(&samples)
                && (kind & 0xfff <= 4 || kind >> 12 != 0),
        )
    })
}

/// RFC 1157 §4, RFC 3416 §3, RFC 3412 §6: a sequence of version and community and PDU; in version 3 of the header's four values.
fn snmp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let mut outer = Ber::new(m.bytes);
        let whole = outer.value()?;
        let mut message = Ber::new(whole.content);
        Some(
            whole.tag == 0x30
                && match message.integer(0x02)? {
                    0 | 1 => {
                        let community = message.value()?;
                        let pdu = message.value()?;
                        community.tag == 0x04 && community.length <= 255 && matches!(pdu.tag, 0xa0..=0xa8)
                    }
                    2 => {
                        let community = message.value()?;
                        matches!(community.tag, 0x04 | 0xa1 | 0xa2)
                    }
                    3 => {
                        let mut header = message.inside(0x30)?;
                        header.integer(0x02)?;
                        let size = header.integer(0x02)?;
                        let flags = header.value()?;
                        size >= 484 && flags.tag == 0x04 && flags.length == 1
                    }
                    _ => false,
                },
        )
    })
}

/// A name, a colon, a number, a bar and the kind of measure.
fn statsd(m: &mut Message<'_>) -> Answer {
    is(|| {
        let name = until(m.bytes, b':', 200)?;
        let rest = m.bytes.get(name.len() + 1..)?;
        let value = until(rest, b'|', 32)?;
        let kind = rest.get(value.len() + 1..)?;
        let named = name.len() >= 2
            && name.iter().all(|octet| octet.is_ascii_alphanumeric() || b"._-,=/".contains(octet));
        let numeric =
            value.iter().all(|octet| octet.is_ascii_digit() || b"+-.e".contains(octet)) && !value.is_empty();
        let ended = |length: usize| kind.get(length).is_none_or(|octet| b"\n|".contains(octet));
        let known = (kind.starts_with(b"ms") && ended(2))
            || (kind.first().is_some_and(|kind| b"cgshd".contains(kind)) && ended(1));
        Some(named && numeric && known)
    })
}

/// RFC 5424 §6.2.1 and RFC 3164 §4.1: a priority up to 191 in angle brackets; over TCP a length may be before (RFC 6587 §3.4.1).
fn syslog(m: &mut Message<'_>) -> Answer {
    is(|| {
        let counted = m.bytes.first()? != &b'<';
        let text = if counted {
            let count = until(m.bytes, b' ', 6)?;
            if m.carrier != crate::classify::Carrier::Tcp || !is_number(count) {
                return Some(false);
            }
            m.bytes.get(count.len() + 1..)?
        } else {
            m.bytes
        };
        let priority = until(text.strip_prefix(b"<")?, b'>', 4)?;
        let number =
            priority.iter().fold(0, |number, digit| number * 10 + u32::from(digit.wrapping_sub(b'0')));
        let next = text.get(priority.len() + 2)?;
        Some(is_number(priority) && number <= 191 && (0x20..0x7f).contains(next) && *next != b'<')
    })
}

/// RFC 868: an empty question, and seconds since 1900 in four octets.
fn time(m: &mut Message<'_>) -> Answer {
    perhaps(|| Some(m.len() == 4 && m.has_port(37) && m.u32(0)? > 0xd000_0000))
}

/// RFC 3912 §2: one line is asked; nothing else is known of it but the port.
fn whois(m: &mut Message<'_>) -> Answer {
    if m.server.port != 43 || !m.begins {
        return Answer::No;
    }
    perhaps(|| {
        let line = m.line(128)?;
        let asked = m.is_from_client() && line.len() + 2 == m.len() && is_printed(line) && !line.is_empty();
        let answered = starts_with_any(
            m.bytes,
            &[b"% IANA WHOIS", b"   Domain Name: ", b"Domain Name: ", b"% This is the RIPE"],
        );
        Some(asked || answered)
    })
}

/// "Header" in its manual: "ZBXD", flags (1: plain, 2: compressed, 4: large), lengths.
fn zabbix(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"ZBXD") && (1..=7).contains(&m.u8(4)?)))
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
    fn what_watches_is_known_by_its_structure() {
        let mut dhcp = vec![1, 1, 6, 0];
        dhcp.resize(236, 0);
        dhcp.extend_from_slice(&[0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255]);
        let mut bootp = dhcp.clone();
        bootp[239] = 0;
        let mut ntp = vec![0x23, 2, 6, 0xec];
        ntp.resize(48, 7);
        let mut flows = vec![0, 5, 0, 1, 0, 0, 0, 1, 0x60, 0, 0, 0];
        flows.resize(72, 0);
        let announce = {
            let mut bytes = vec![0x0b, 0x02, 0, 64];
            bytes.resize(64, 0);
            bytes
        };
        check(&[
            (Protocol::CheckMk, Tcp, 6556, Server, b"<<<check_mk>>>\nVersion: 2", Is),
            (
                Protocol::Collectd,
                Udp,
                25826,
                Client,
                b"\0\0\0\x09host\0\0\x08\0\x0c\x18\xaa\x87\x48\x08\x81\x8d\xf4",
                Is,
            ),
            (
                Protocol::Collectd,
                Udp,
                25826,
                Client,
                b"\0\0\0\x09host\0\0\x18\0\x0c\x18\xaa\x87\x48\x08\x81\x8d\xf4",
                No,
            ),
            (Protocol::Dhcp, Udp, 67, Client, &dhcp, Is),
            (Protocol::Dhcp, Udp, 67, Client, &bootp, No),
            (Protocol::Dhcpv6, Udp, 547, Client, b"\x01\x12\x34\x56\0\x08\0\x02\0\0\0\x0e\0\0", Is),
            (Protocol::Dhcpv6, Udp, 547, Client, b"\x01\x12\x34\x56\0\x08\0\x03\0\0\0\x0e\0\0", No),
            (Protocol::Ipmi, Udp, 623, Client, b"\x06\0\xff\x06\0\0\x11\xbe\x80\0\0\0", Is),
            (
                Protocol::Ipmi,
                Udp,
                623,
                Client,
                b"\x06\0\xff\x07\0\0\0\0\0\0\0\0\0\x09\x20\x18\xc8\x81\0\x38\x8e\x04\xb5",
                Is,
            ),
            (
                Protocol::Ipmi,
                Udp,
                623,
                Client,
                b"\x06\0\xff\x08\0\0\0\0\0\0\0\0\0\x09\x20\x18\xc8\x81\0\x38\x8e\x04\xb5",
                No,
            ),
            (Protocol::Munin, Tcp, 4949, Server, b"# munin node at example\n", Is),
            (Protocol::NetFlow, Udp, 2055, Client, &flows, Is),
            (Protocol::NetFlow, Udp, 2055, Client, &flows[..71], No),
            (Protocol::Ntp, Udp, 123, Client, &ntp, Is),
            (Protocol::Ntp, Udp, 124, Client, &ntp, No),
            (Protocol::Ptp, Udp, 320, Client, &announce, Is),
            (Protocol::Ptp, Udp, 321, Client, &announce, No),
            (Protocol::Snmp, Udp, 161, Client, b"\x30\x0f\x02\x01\x01\x04\x06public\xa0\x02\x02\0", Is),
            (Protocol::Snmp, Udp, 161, Client, b"\x30\x0f\x02\x01\x01\x04\x06public\x60\x02\x02\0", No),
            (Protocol::StatsD, Udp, 8125, Client, b"api.calls:1|c", Is),
            (Protocol::StatsD, Udp, 8125, Client, b"time:12|o'clock", No),
            (Protocol::Syslog, Udp, 514, Client, b"<34>1 2003-10-11T22:14:15.003Z host su - - -", Is),
            (Protocol::Syslog, Tcp, 601, Client, b"18 <34>Oct 11 a b: c", Is),
            (Protocol::Syslog, Udp, 514, Client, b"<192>Oct 11 22:14:15 host", No),
            (Protocol::Whois, Tcp, 43, Client, b"example.com\r\n", Perhaps),
            (Protocol::Whois, Tcp, 44, Client, b"example.com\r\n", No),
            (Protocol::Zabbix, Tcp, 10051, Client, b"ZBXD\x01\x0a\0\0\0\0\0\0\0proc.num[]", Is),
        ]);
    }

    #[test]
    fn what_a_dhcp_client_calls_itself_is_written_down() {
        let mut request = vec![1, 1, 6, 0];
        request.resize(236, 0);
        request.extend_from_slice(b"\x63\x82\x53\x63\x35\x01\x01\0\x0c\x05phone\xff");
        let sheet = flow(Protocol::Dhcp, Udp, 67, &[(Client, &request)]).1;
        assert_eq!(sheet.host.bytes(), b"phone");
        // One that promises more than there is.
        request.truncate(request.len() - 3);
        let (answers, sheet) = flow(Protocol::Dhcp, Udp, 67, &[(Client, &request)]);
        assert_eq!((answers, sheet.host.is_empty()), (vec![Is], true));
    }
}
