//! Terminals and desktops elsewhere.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{contains, is, is_number, is_printed, perhaps, row, starts_with_any, until};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Adb, TCP, &[5555], First::Of(b"C"), Magic, adb),
    row(Protocol::Citrix, TCP, &[1494, 2598], First::Of(b"\x7f\x1a"), Magic, citrix),
    row(Protocol::NoMachine, TCP, &[4000], First::Of(b"N"), Magic, nomachine),
    row(Protocol::Radmin, TCP, &[4899], First::Of(b"\x01"), Structure, radmin),
    row(Protocol::Rdp, TCP, &[3389], First::Of(b"\x03"), Structure, rdp),
    row(Protocol::RdpUdp, UDP, &[3389], First::Of(b"\xff"), Structure, rdp_udp),
    row(Protocol::Rlogin, TCP, &[513], First::Of(b"\0"), Shape, rlogin),
    row(Protocol::Rsh, TCP, &[514], First::Of(b"0123456789"), Shape, rsh),
    row(Protocol::Spice, TCP, &[5930], First::Of(b"R"), Magic, spice),
    row(Protocol::Ssh, TCP, &[22], First::Of(b"S"), Magic, ssh),
    row(Protocol::TeamViewer, Carriers::BOTH, &[5938], First::Of(b"\0\x17\x11"), Shape, teamviewer),
    row(Protocol::Telnet, TCP, &[23], First::Of(b"\xff"), Structure, telnet),
    row(Protocol::VmwareAuth, TCP, &[902, 903], First::Of(b"2"), Magic, vmware),
    row(Protocol::Vnc, TCP, &[5900, 5901], First::Of(b"R"), Magic, vnc),
    row(Protocol::X11, TCP, &[6000, 6001], First::Of(b"Bl"), Structure, x11),
    row(Protocol::Xdmcp, UDP, &[177], First::Of(b"\0"), Structure, xdmcp),
];

/// Android's `protocol.txt`: "CNXN", version, size, length, sum, and the command's bits turned over.
fn adb(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"CNXN") && m.has(20, &[0xbc, 0xb1, 0xa7, 0xb1])))
}

/// ICA's greeting, or the one of what carries it (CGP).
fn citrix(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && starts_with_any(m.bytes, &[b"\x7f\x7fICA\0", b"\x1aCGP/01"])))
}

/// Both sides begin with its name and the version.
fn nomachine(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.begins
                && starts_with_any(m.bytes, &[b"NXSH-", b"NXD-", b"NXSSH-"])
                && m.line(64).is_some_and(is_printed),
        )
    })
}

/// A one, a length, a sum of the octets that follow, and these.
fn radmin(m: &mut Message<'_>) -> Answer {
    is(|| {
        let body = m.bytes.get(9..)?;
        let length = m.u32(1)? as usize;
        Some(
            m.begins
                && m.len() < 1400
                && !body.is_empty()
                && length == body.len()
                && m.u16(5)? == 0
                && body.first()? & 0xc0 == 0,
        )
    })
}

/// MS-RDPBCGR §2.2.1.1: a TPKT, a connection is asked for with a cookie or with what it can be secured by; the answer likewise.
fn rdp(m: &mut Message<'_>) -> Answer {
    let headed = || {
        let length = usize::from(m.u16(2)?);
        Some(m.has(0, &[3, 0]) && length == m.len() && usize::from(m.u8(4)?) + 5 == length && m.u16(6)? == 0)
    };
    if headed() != Some(true) {
        return Answer::No;
    }
    let negotiates = |kind: u8| {
        m.len() >= 19 && {
            let at = m.len() - 8;
            m.has(at, &[kind]) && m.has(at + 2, &[8, 0])
        }
    };
    match m.u8(5) {
        Some(0xe0) if m.has(11, b"Cookie: mstshash=") || m.has(11, b"Cookie: msts=") || negotiates(1) => {
            Answer::Is
        }
        Some(0xe0) if m.len() == 11 && m.server.port == 3389 => Answer::Is,
        Some(0xd0) if negotiates(2) || negotiates(3) => Answer::Is,
        _ => Answer::No,
    }
}

/// MS-RDPEUDP §2.2.2: nothing is acknowledged yet, SYN, a number, and the largest datagrams both ways; filled up to 1232 octets.
fn rdp_udp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let syn = m.u16(6)?;
        let sizes = (1132..=1232).contains(&m.u16(12)?) && (1132..=1232).contains(&m.u16(14)?);
        Some(m.u32(0)? == 0xffff_ffff && syn & 1 != 0 && syn & 0xe002 == 0 && sizes && m.len() >= 1132)
    })
}

/// RFC 1282: a zero, two users, a terminal and its speed, each with a zero at its end.
fn rlogin(m: &mut Message<'_>) -> Answer {
    is(|| {
        let mut words = m.bytes.get(1..)?.split(|octet| *octet == 0);
        let (own, other, terminal) = (words.next()?, words.next()?, words.next()?);
        let speed = terminal.split(|octet| *octet == b'/').nth(1)?;
        let users = [own, other].iter().all(|user| !user.is_empty() && is_printed(user));
        Some(m.begins && users && is_number(speed) && words.next()? == b"" && words.next().is_none())
    })
}

/// rcmd(3): the port for errors, then two users and a command, each with a zero at its end. It is believed on the port.
fn rsh(m: &mut Message<'_>) -> Answer {
    is(|| {
        let port = until(m.bytes, 0, 6)?;
        let rest = m.bytes.get(port.len() + 1..)?;
        let words = rest.split(|octet| *octet == 0);
        let said = rest.is_empty()
            || (rest.ends_with(&[0]) && words.clone().count() == 4 && words.clone().all(is_printed));
        Some(m.begins && is_number(port) && said && (!rest.is_empty() || m.server.port == 514))
    })
}

/// "REDQ" and version 1 or 2.
fn spice(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"REDQ") && matches!(m.u32_le(4)?, 1 | 2)))
}

/// RFC 4253 §4.2: both sides begin with "SSH-", the version, and what they are.
fn ssh(message: &mut Message<'_>) -> Answer {
    if !message.begins || !message.has(0, b"SSH-") {
        return Answer::No;
    }
    if message.is_from_client()
        && let Some(line) = message.line(255)
    {
        message.sheet.agent.set(line);
    }
    Answer::Is
}

/// Two octets for each of its formats, and a command; both sides begin so.
fn teamviewer(m: &mut Message<'_>) -> Answer {
    let begins = |bytes: &[u8]| starts_with_any(bytes, &[&[0x17, 0x24], &[0x11, 0x30]]);
    if m.carrier == Carrier::Udp {
        return is(|| Some(m.u8(0)? == 0 && m.has(11, &[0x17, 0x24]) && m.has_port(5938)));
    }
    if !m.begins || !begins(m.bytes) || m.u8(2).is_none_or(|command| command > 0x80) {
        return Answer::No;
    }
    if m.has_port(5938) || begins(m.other().first()) { Answer::Is } else { Answer::Perhaps }
}

/// RFC 854 and 855: it begins with two options that are asked for or refused, or with one alone.
fn telnet(m: &mut Message<'_>) -> Answer {
    let option =
        |at: usize| Some(m.u8(at)? == 0xff && (0xfb..=0xfe).contains(&m.u8(at + 1)?) && m.u8(at + 2)? <= 49);
    if option(0) != Some(true) {
        return Answer::No;
    }
    let suboption = m.has(3, &[0xff, 0xfa]);
    if m.len() == 3 || option(3) == Some(true) || suboption || m.has_port(23) {
        Answer::Is
    } else {
        Answer::Perhaps
    }
}

/// The daemon says what it is.
fn vmware(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"220 VMware Authentication Daemon")))
}

/// RFC 6143 §7.1.1: both sides begin with "RFB", and a version of three digits, twice.
fn vnc(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (major, minor) = (m.bytes.get(4..7)?, m.bytes.get(8..11)?);
        Some(
            m.begins
                && m.has(0, b"RFB ")
                && is_number(major)
                && is_number(minor)
                && m.has(7, b".")
                && m.has(11, b"\n"),
        )
    })
}

/// X Window System Protocol §8: the order of octets, version 11.0, and lengths of two texts that fill it.
fn x11(m: &mut Message<'_>) -> Answer {
    is(|| {
        let number = |at| if m.bytes.first() == Some(&b'l') { m.u16_le(at) } else { m.u16(at) };
        let (name, data) = (usize::from(number(6)?), usize::from(number(8)?));
        let filled = 12 + name.next_multiple_of(4) + data.next_multiple_of(4);
        Some(
            m.begins
                && number(2)? == 11
                && number(4)? == 0
                && (filled == m.len() || contains(m.bytes, b"MIT-MAGIC-COOKIE-1", 40)),
        )
    })
}

/// XDMCP §"Packets": version 1, an operation, and the length of what follows.
fn xdmcp(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        Some(
            m.u16(0)? == 1
                && (1..=14).contains(&m.u16(2)?)
                && usize::from(m.u16(4)?) + 6 == m.len()
                && m.has_port(177),
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
    use crate::protocols::show::{client, server};

    #[test]
    fn ssh_is_known_by_its_first_line_of_either_side() {
        assert_eq!(client(Protocol::Ssh, Tcp, 2222, b"SSH-2.0-OpenSSH_9.2\r\n"), Is);
        assert_eq!(server(Protocol::Ssh, Tcp, 22, b"SSH-1.99-Cisco-1.25\n"), Is);
        assert_eq!(client(Protocol::Ssh, Tcp, 22, b"SSH"), No);
    }

    #[test]
    fn terminals_and_desktops_are_known_by_how_they_begin() {
        let mut syn = vec![0xff, 0xff, 0xff, 0xff, 0, 0x40, 0, 0x01, 1, 2, 3, 4, 0x04, 0xd0, 0x04, 0xd0];
        syn.resize(1232, 0);
        let x11 = b"l\0\x0b\0\0\0\x12\0\x10\0\0\0MIT-MAGIC-COOKIE-1\0\0sixteen octets..";
        check(&[
            (
                Protocol::Adb,
                Tcp,
                5555,
                Client,
                b"CNXN\0\0\0\x01\0\0\x10\0\x07\0\0\0\x32\x02\0\0\xbc\xb1\xa7\xb1host::\0",
                Is,
            ),
            (Protocol::Citrix, Tcp, 1494, Server, b"\x7f\x7fICA\0\x7f\x7fICA\0", Is),
            (Protocol::Radmin, Tcp, 4899, Client, b"\x01\0\0\0\x01\0\0\0\x08\x08", Is),
            (Protocol::Radmin, Tcp, 4899, Client, b"\x01\0\0\0\x02\0\0\0\x08\x08", No),
            (Protocol::Rdp, Tcp, 3389, Client, b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x0b\0\0\0", Is),
            (
                Protocol::Rdp,
                Tcp,
                3389,
                Server,
                b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x08\0\0\0",
                Is,
            ),
            (
                Protocol::Rdp,
                Tcp,
                102,
                Client,
                b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02",
                No,
            ),
            (Protocol::RdpUdp, Udp, 3389, Client, &syn, Is),
            (Protocol::RdpUdp, Udp, 3389, Client, &syn[..1000], No),
            (Protocol::Rlogin, Tcp, 513, Client, b"\0me\0you\0xterm/38400\0", Is),
            (Protocol::Rsh, Tcp, 514, Client, b"1022\0", Is),
            (Protocol::Rsh, Tcp, 513, Client, b"1022\0", No),
            (Protocol::Spice, Tcp, 5900, Client, b"REDQ\x02\0\0\0\x02\0\0\0", Is),
            (Protocol::TeamViewer, Tcp, 5938, Client, b"\x17\x24\x0a\x20\0\0\0\0", Is),
            (Protocol::TeamViewer, Tcp, 80, Client, b"\x17\x24\x0a\x20\0\0\0\0", Perhaps),
            (Protocol::Telnet, Tcp, 23, Server, b"\xff\xfd\x18\xff\xfd\x20", Is),
            (Protocol::Telnet, Tcp, 23, Server, b"\xff\xd8\xff\xe0", No),
            (
                Protocol::VmwareAuth,
                Tcp,
                902,
                Server,
                b"220 VMware Authentication Daemon Version 1.10: SSL Required\r\n",
                Is,
            ),
            (Protocol::Vnc, Tcp, 5900, Server, b"RFB 003.008\n", Is),
            (Protocol::Vnc, Tcp, 5900, Server, b"RFB 003008\n\n", No),
            (Protocol::X11, Tcp, 6000, Client, x11, Is),
            (Protocol::Xdmcp, Udp, 177, Client, b"\0\x01\0\x02\0\x01\0", Perhaps),
        ]);
    }
}
