//! Files, disks and backups elsewhere, and the calls that carry some of them.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{
    contains, is, is_name, is_printed, perhaps, row, starts_like_any, starts_with_any, until,
};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;
const UDP: Carriers = Carriers::UDP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Afp, TCP, &[548], First::Of(b"\0\x01"), Structure, afp),
    row(Protocol::AfsRx, UDP, &[7000, 7001, 7002, 7003, 7004, 7005, 7007], First::Any, Structure, afs_rx)
        .having(20, 1, 13),
    row(Protocol::Bacula, TCP, &[9101, 9102, 9103], First::Of(b"\0"), Magic, bacula),
    row(Protocol::Ceph, TCP, &[3300, 6789], First::Of(b"c"), Magic, ceph),
    row(Protocol::Cvs, TCP, &[2401], First::Of(b"B"), Magic, cvs),
    row(Protocol::DceRpc, Carriers::BOTH, &[135, 593, 34964], First::Of(b"\x04\x05"), Structure, dce_rpc),
    row(Protocol::Dicom, TCP, &[104, 11112], First::Of(b"\x01\x02"), Structure, dicom),
    row(Protocol::Git, TCP, &[9418], First::Of(b"0"), Magic, git),
    row(Protocol::Iscsi, TCP, &[3260], First::Of(b"\x03\x43\x23"), Structure, iscsi),
    row(Protocol::Nbd, TCP, &[10809], First::Of(b"N"), Magic, nbd),
    row(Protocol::Ndmp, TCP, &[], First::Of(b"\x80"), Structure, ndmp),
    row(Protocol::NetbiosDatagram, UDP, &[138], First::Range(0x10, 0x16), Structure, netbios_datagram),
    row(Protocol::NetbiosName, UDP, &[137], First::Any, Structure, netbios_name).having(4, 0, 0),
    row(Protocol::NetbiosSession, TCP, &[139], First::Of(b"\x81\x82\x83"), Structure, netbios_session),
    row(Protocol::Nfs, TCP, &[2049], First::Any, Structure, nfs),
    row(Protocol::Nfs, UDP, &[2049], First::Any, Structure, nfs).having(7, 0, 1),
    row(Protocol::NineP, TCP, &[564], First::Any, Structure, nine_p),
    // A call or a reply (RFC 5531 §9).
    row(Protocol::OncRpc, TCP, &[111], First::Any, Structure, onc_rpc),
    row(Protocol::OncRpc, UDP, &[111], First::Any, Structure, onc_rpc).having(7, 0, 1),
    row(Protocol::Rsync, TCP, &[873], First::Of(b"@"), Magic, rsync),
    row(Protocol::Smb1, TCP, &[], First::Of(b"\0"), Magic, smb1),
    row(Protocol::Smb2, TCP, &[445], First::Of(b"\0"), Magic, smb2),
    row(Protocol::Svn, TCP, &[3690], First::Of(b"("), Magic, svn),
    row(Protocol::Tftp, UDP, &[69], First::Of(b"\0"), Structure, tftp),
    row(Protocol::Uftp, UDP, &[1044], First::Of(b"\x40\x50"), Shape, uftp),
    row(Protocol::Z3950, TCP, &[210], First::Of(b"\xb4\xb5"), Structure, z3950),
];

/// DSI (Apple Filing Protocol over TCP): request or reply, a command, its number, an offset, a length, and a reserved zero.
fn afp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let command = matches!(m.u8(1)?, 1..=6 | 8);
        Some(
            command
                && m.u32(12)? == 0
                && m.u32(8)? as usize + 16 == m.len()
                && (m.u8(0)? == 1 || m.u32(4)? <= 512),
        )
    })
}

/// Rx of AFS: epoch, connection, call, sequence, serial, a type, flags, and a class of security; both sides say the same epoch and connection.
fn afs_rx(m: &mut Message<'_>) -> Answer {
    let other = m.other().first();
    let same = other.len() >= 12 && m.has(0, other.get(..8).unwrap_or_default());
    let usual = (7000..=7009).any(|port| m.has_port(port));
    let shaped = perhaps(|| {
        let begins = m.u32(8)? <= 64 && m.u32(12)? <= 64 && m.u32(16)? <= 64 && m.u32(16)? >= 1;
        let kind = matches!(m.u8(20)?, 1..=9 | 13);
        Some(
            m.len() >= 28 && m.u32(0)? > 1 << 24 && begins && kind && m.u8(21)? & 0xc0 == 0 && m.u8(23)? <= 3,
        )
    });
    if shaped == Answer::Perhaps && same && usual { Answer::Is } else { shaped }
}

/// Bacula and Bareos: a length, then a greeting.
fn bacula(m: &mut Message<'_>) -> Answer {
    let greetings: &[&[u8]] =
        &[b"Hello Director", b"Hello *UserAgent*", b"Hello Start Job", b"Hello Storage"];
    is(|| Some(m.u16(0)? == 0 && starts_with_any(m.bytes.get(4..)?, greetings)))
}

/// Its banner: "ceph v2" and a line's end, or "ceph v027" and the like before.
fn ceph(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, b"ceph v") && matches!(m.u8(6)?, b'0' | b'2')))
}

/// "Client/server protocol" of CVS: passwords first.
fn cvs(m: &mut Message<'_>) -> Answer {
    let begins: &[&[u8]] =
        &[b"BEGIN AUTH REQUEST\n", b"BEGIN VERIFICATION REQUEST\n", b"BEGIN GSSAPI REQUEST\n"];
    is(|| Some(starts_with_any(m.bytes, begins)))
}

/// C706 §12.6.3 (TCP: version 5, a type, how numbers are written, the length) and §12.5.1 (UDP: version 4); PROFINET's objects are known.
fn dce_rpc(m: &mut Message<'_>) -> Answer {
    if m.carrier == Carrier::Udp {
        let written = m.u8(4).unwrap_or(0xff) & !0x10;
        let length = if m.u8(4).unwrap_or(0) & 0x10 != 0 { m.u16_le(74) } else { m.u16(74) };
        let fits = length.is_some_and(|length| usize::from(length) + 80 == m.len());
        if !fits || written != 0 || m.u8(0) != Some(4) || m.u8(1).is_none_or(|kind| kind > 10) {
            return Answer::No;
        }
        let profinet = m.has(12, &[0x6c, 0x97, 0x11, 0xd1, 0x82, 0x71])
            || m.has(12, &[0x97, 0x6c, 0xd1, 0x11, 0x82, 0x71]);
        return if profinet { Answer::Other(Protocol::ProfinetCm) } else { Answer::Is };
    }
    is(|| {
        let little = m.u8(4)? & 0x10 != 0;
        let (length, secrets) = if little { (m.u16_le(8)?, m.u16_le(10)?) } else { (m.u16(8)?, m.u16(10)?) };
        let written = m.u8(4)? & !0x11 == 0 && m.u8(5)? <= 3 && m.u16(6)? == 0;
        Some(m.u8(0)? == 5 && m.u8(1)? <= 1 && m.u8(2)? <= 20 && written && length >= 16 && secrets < length)
    })
}

/// DICOM PS3.8 §9.3.2: A-ASSOCIATE-RQ and -AC have a length, version 1 and the names of both.
fn dicom(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u32(2)? as usize;
        let named = is_printed(m.bytes.get(10..42)?);
        Some(
            m.begins
                && m.u8(1)? == 0
                && (68..1 << 20).contains(&length)
                && m.u16(6)? == 1
                && m.u16(8)? == 0
                && named,
        )
    })
}

/// git-protocol(5): a line with its length in four hexadecimal digits, and what is wanted.
fn git(m: &mut Message<'_>) -> Answer {
    is(|| {
        let counted = m.bytes.get(..4)?.iter().all(u8::is_ascii_hexdigit);
        Some(
            counted
                && starts_with_any(
                    m.bytes.get(4..)?,
                    &[b"git-upload-pack ", b"git-receive-pack ", b"git-upload-archive "],
                ),
        )
    })
}

/// RFC 7143 §11.12 and §11.13: a login has its stages, versions of 0, no additional header, and keys in words.
fn iscsi(m: &mut Message<'_>) -> Answer {
    is(|| {
        let staged = m.u8(1)? & 0x30 == 0 && m.u8(2)? == 0 && m.u8(3)? == 0 && m.u8(4)? == 0;
        let length = m.u32(4)? & 0x00ff_ffff;
        let text = m.bytes.get(48..)?;
        let keyed = until(text, b'=', 40).is_some_and(is_name);
        Some(staged && length < 65_536 && (keyed || (m.u8(0)? == 0x23 && length == 0 && m.len() == 48)))
    })
}

/// "NBDMAGIC" and "IHAVEOPT", or what was in its place.
fn nbd(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.begins
                && m.has(0, b"NBDMAGIC")
                && (m.has(8, b"IHAVEOPT") || m.has(8, &[0, 0, 0x42, 0x02, 0x81, 0x86, 0x12, 0x53])),
        )
    })
}

/// NDMP 4 §3.1: a record's mark, a sequence, a time, request or reply, a message from its lists, no error.
fn ndmp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let marked = (m.u32(0)? & 0x7fff_ffff) as usize + 4 == m.len();
        Some(
            marked
                && m.u32(12)? <= 1
                && matches!(m.u32(16)?, 0x100..=0x109 | 0x500..=0x507 | 0x900..=0x903)
                && m.u32(24)? <= 0x18,
        )
    })
}

/// RFC 1002 §4.4.1: a type, the sender's address and port, a length; names in half-octets where there are some.
fn netbios_datagram(m: &mut Message<'_>) -> Answer {
    let answer = is(|| {
        let named =
            m.u8(0)? == 0x13 || is_netbios_name(m.bytes.get(if m.u8(0)? <= 0x12 { 14 } else { 10 }..)?);
        Some(named && (m.has_port(138) || usize::from(m.u16(10)?) + 14 == m.len()))
    });
    if answer == Answer::Is && m.u8(0).is_some_and(|kind| kind <= 0x12) {
        write_netbios_name(m, 14);
    }
    answer
}

/// RFC 1001 §14.1: two letters an octet; 15 octets, filled with blanks, and one that says what it is the name of.
fn write_netbios_name(m: &mut Message<'_>, at: usize) {
    let letters = m.bytes.get(at + 1..at + 33).unwrap_or_default();
    let mut name = [0; 15];
    for (octet, pair) in name.iter_mut().zip(letters.chunks_exact(2)) {
        let half = |place: usize| pair.get(place).map_or(0, |letter| letter.wrapping_sub(b'A') & 15);
        *octet = half(0) << 4 | half(1);
    }
    let end = name.iter().rposition(|octet| !matches!(octet, b' ' | 0)).map_or(0, |last| last + 1);
    m.sheet.host.set(name.get(..end).unwrap_or_default());
}

/// RFC 1001 §14.1: a label of 32 letters from A to P.
fn is_netbios_name(bytes: &[u8]) -> bool {
    let letters = bytes.get(1..33).unwrap_or_default();
    bytes.first() == Some(&32)
        && letters.len() == 32
        && letters.iter().all(|letter| (b'A'..=b'P').contains(letter))
}

/// RFC 1002 §4.2.1: as in DNS, with names in half-octets, and one question or one answer.
fn netbios_name(m: &mut Message<'_>) -> Answer {
    let answer = is(|| {
        let counts = (m.u16(4)?, m.u16(6)?, m.u16(8)?, m.u16(10)?);
        let one = matches!(counts, (1, 0, 0, 0 | 1) | (0, 1, 0, _) | (0, 0, 1, _) | (0, 0, 0, 0));
        Some(one && is_netbios_name(m.bytes.get(12..)?) && (m.has_port(137) || m.u8(2)? & 0x78 != 0))
    });
    if answer == Answer::Is {
        write_netbios_name(m, 12);
    }
    answer
}

/// RFC 1002 §4.3.2: a session is asked for by two names, and agreed to, or not.
fn netbios_session(m: &mut Message<'_>) -> Answer {
    is(|| {
        let flags = m.u8(1)? <= 1;
        Some(
            flags
                && m.begins
                && match m.u8(0)? {
                    0x81 => {
                        m.u16(2)? == 68
                            && is_netbios_name(m.bytes.get(4..)?)
                            && is_netbios_name(m.bytes.get(38..)?)
                    }
                    0x82 => m.len() == 4 && m.u16(2)? == 0 && m.other().first().starts_with(&[0x81]),
                    _ => m.len() == 5 && m.u16(2)? == 1 && m.u8(4)? >= 0x80,
                },
        )
    })
}

/// What RFC 5531 §9 says of a call or a reply: the number of the program, or 0 for a reply.
fn rpc_program(m: &Message<'_>) -> Option<u32> {
    let at = match m.carrier {
        Carrier::Tcp
            if m.u32(0)? & 0x8000_0000 != 0 && (24..1 << 21).contains(&(m.u32(0)? & 0x7fff_ffff)) =>
        {
            4
        }
        Carrier::Tcp => return None,
        _ => 0,
    };
    let secret = |at: usize| {
        Some((m.u32(at)? <= 6 || (390_003..=390_005).contains(&m.u32(at)?)) && m.u32(at + 4)? <= 400)
    };
    match m.u32(at + 4)? {
        0 => {
            let (program, version, procedure) = (m.u32(at + 12)?, m.u32(at + 16)?, m.u32(at + 20)?);
            let known = (100_000..0x6000_0000).contains(&program) && version <= 40 && procedure <= 1000;
            (m.u32(at + 8)? == 2 && known && secret(at + 24)?).then_some(program)
        }
        1 => {
            let asked = m.other().last();
            let same = asked.get(at..at + 4).is_some_and(|number| m.has(at, number));
            let accepted = m.u32(at + 8)? == 0 && secret(at + 12)? && m.u32(at + 20)? <= 5;
            let denied = m.u32(at + 8)? == 1 && m.u32(at + 12)? <= 1;
            (same && (accepted || denied)).then_some(0)
        }
        _ => None,
    }
}

/// RFC 1813 §2 and §5: calls of the programs NFS, mount and its locks.
fn nfs(m: &mut Message<'_>) -> Answer {
    is(|| Some(matches!(rpc_program(m)?, 100_003 | 100_005 | 100_021 | 100_227)))
}

/// RFC 5531 §9: a call of another program, or a reply with the number of the call.
fn onc_rpc(m: &mut Message<'_>) -> Answer {
    is(|| {
        let program = rpc_program(m)?;
        Some(program != 0 || !m.has_port(2049))
    })
}

/// 9P's version(5): length with the lowest octet first, Tversion or Rversion, no tag, a size, and "9P2000".
fn nine_p(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.u32_le(0)? as usize == m.len()
                && matches!(m.u8(4)?, 100 | 101)
                && m.u16(5)? == 0xffff
                && m.has(13, b"9P"),
        )
    })
}

/// Both sides begin with "@RSYNCD: " and a version.
fn rsync(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.has(0, b"@RSYNCD: ")
                && (m.u8(9)?.is_ascii_digit()
                    || m.has(9, b"OK")
                    || m.has(9, b"AUTHREQD")
                    || m.has(9, b"EXIT")),
        )
    })
}

/// MS-CIFS §2.2.3.1: 0xff and "SMB" after a session's header.
fn smb1(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(4, b"\xffSMB") && m.u8(1)? <= 1))
}

/// MS-SMB2 §2.2.1: 0xfe and "SMB"; ciphered 0xfd, compressed 0xfc.
fn smb2(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(5, b"SMB") && matches!(m.u8(4)?, 0xfc..=0xfe) && m.u16(0)? <= 0xff))
}

/// Subversion's `protocol`: lists in brackets, of which the first ones are known.
fn svn(m: &mut Message<'_>) -> Answer {
    is(|| {
        let greeted = m.has(0, b"( success ( ");
        let answered =
            m.has(0, b"( 2 ( edit-pipeline") || (m.has(0, b"( 2 ( ") && contains(m.bytes, b"svn", 200));
        Some(m.begins && (greeted || answered))
    })
}

/// RFC 1350 §5: a name and a mode are asked for. What follows comes from another port, and has a number and up to 512 octets.
fn tftp(m: &mut Message<'_>) -> Answer {
    match m.u16(0) {
        Some(1 | 2) => is(|| {
            let name = until(m.bytes.get(2..)?, 0, 500)?;
            let mode = m.bytes.get(name.len() + 3..)?;
            Some(
                is_printed(name)
                    && !name.is_empty()
                    && starts_like_any(mode, &[b"octet\0", b"netascii\0", b"mail\0"]),
            )
        }),
        Some(3) => perhaps(|| Some(m.len() == 516 && m.u16(2)? == 1)),
        Some(4) => perhaps(|| Some(m.len() == 4 && m.u16(2)? <= 1)),
        Some(5) => perhaps(|| {
            let text = m.bytes.get(4..)?.strip_suffix(&[0])?;
            Some(m.u16(2)? <= 8 && is_printed(text) && (text.len() > 3 || m.has_port(69)))
        }),
        Some(6) => is(|| {
            let name = until(m.bytes.get(2..)?, 0, 20)?;
            Some(
                starts_like_any(name, &[b"blksize", b"tsize", b"timeout", b"windowsize"])
                    && m.bytes.ends_with(&[0]),
            )
        }),
        _ => Answer::No,
    }
}

/// UFTP 4 and 5: version, a function, numbers of both ends; then the same function again, and the length of its header in fours.
fn uftp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let header = usize::from(m.u8(17)?) * 4;
        Some(
            matches!(m.u8(1)?, 1..=18)
                && m.u8(16)? == m.u8(1)?
                && m.u8(15)? == 0
                && header >= 4
                && header + 16 <= m.len(),
        )
    })
}

/// Z39.50-2003 §4: initRequest and initResponse, with version and options as bits.
fn z3950(m: &mut Message<'_>) -> Answer {
    is(|| {
        let mut first = crate::protocols::shape::Ber::new(m.bytes);
        let mut values = crate::protocols::shape::Ber::new(first.value()?.content);
        let mut version = values.value()?;
        if version.tag == 0x82 {
            version = values.value()?;
        }
        let options = values.value()?;
        Some(
            version.tag == 0x83
                && version.length == 2
                && options.tag == 0x84
                && (2..=4).contains(&options.length),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No, Other, Perhaps};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;
    use crate::protocols::show::flow;

    const NAME: &[u8] = b" FHFAEBEECACACACACACACACACACACAAA\0";

    #[test]
    fn files_are_known_by_their_headers() {
        let mut question = b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0".to_vec();
        question.extend_from_slice(NAME);
        question.extend_from_slice(b"\0\x20\0\x01");
        let mut session = b"\x81\0\0\x44".to_vec();
        session.extend_from_slice(NAME);
        session.extend_from_slice(NAME);
        let mut login = vec![0x43, 0x87, 0, 0, 0, 0, 0, 20];
        login.resize(48, 0);
        login.extend_from_slice(b"InitiatorName=iqn.a\0");
        let mut object =
            vec![4, 0, 0x20, 0, 0x10, 0, 0, 0, 0, 0, 0xa0, 0xde, 0x97, 0x6c, 0xd1, 0x11, 0x82, 0x71];
        object.resize(74, 0);
        object.extend_from_slice(&[4, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        check(&[
            (Protocol::Afp, Tcp, 548, Client, b"\0\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0\0", Is),
            (Protocol::Afp, Tcp, 548, Client, b"\0\x03\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0", No),
            (Protocol::Ceph, Tcp, 3300, Server, b"ceph v2\n\x10\0", Is),
            (Protocol::Cvs, Tcp, 2401, Client, b"BEGIN AUTH REQUEST\n/cvsroot\n", Is),
            (Protocol::DceRpc, Tcp, 135, Client, b"\x05\0\x0b\x03\x10\0\0\0\x48\0\0\0\x01\0\0\0", Is),
            (Protocol::DceRpc, Tcp, 135, Client, b"\x05\0\x0b\x03\x10\0\0\0\x08\0\0\0\x01\0\0\0", No),
            (Protocol::DceRpc, Udp, 34964, Client, &object, Other(Protocol::ProfinetCm)),
            (Protocol::Git, Tcp, 9418, Client, b"0033git-upload-pack /project.git\0host=example\0", Is),
            (Protocol::Git, Tcp, 9418, Client, b"003xgit-upload-pack /project.git\0host=example\0", No),
            (Protocol::Iscsi, Tcp, 3260, Client, &login, Is),
            (Protocol::Nbd, Tcp, 10809, Server, b"NBDMAGICIHAVEOPT\0\x03", Is),
            (Protocol::NetbiosName, Udp, 137, Client, &question, Is),
            (Protocol::NetbiosSession, Tcp, 139, Client, &session, Is),
            (Protocol::NineP, Tcp, 564, Client, b"\x13\0\0\0\x64\xff\xff\0\x20\0\0\x06\x009P2000", Is),
            (Protocol::NineP, Tcp, 564, Client, b"\x14\0\0\0\x64\xff\xff\0\x20\0\0\x06\x009P2000", No),
            (Protocol::Rsync, Tcp, 873, Server, b"@RSYNCD: 31.0\n", Is),
            (Protocol::Smb1, Tcp, 445, Client, b"\0\0\0\x2f\xffSMB\x72", Is),
            (Protocol::Smb2, Tcp, 445, Client, b"\0\0\0\x2f\xfeSMB\x40", Is),
            (Protocol::Smb2, Tcp, 445, Client, b"\0\0\0\x2f\xffSMB\x72", No),
            (Protocol::Svn, Tcp, 3690, Server, b"( success ( 2 2 ( ) ( edit-pipeline ) ) ) ", Is),
            (Protocol::Tftp, Udp, 69, Client, b"\0\x01boot.img\0octet\0", Is),
            (Protocol::Tftp, Udp, 69, Client, b"\0\x01boot.img\0octal\0", No),
            (Protocol::Tftp, Udp, 1069, Client, b"\0\x04\0\x01", Perhaps),
            (
                Protocol::Uftp,
                Udp,
                1044,
                Client,
                b"\x40\x04\0\x07\x0a\0\0\x01\x96\xf4\xc3\x04\0\x6a\x18\0\x04\x01\0\0\x0a\0\0\x02",
                Is,
            ),
            (Protocol::Z3950, Tcp, 210, Client, b"\xb4\x0a\x83\x02\0\xe0\x84\x03\0\xc1\xa2\x00", Is),
        ]);
    }

    #[test]
    fn a_reply_has_the_number_of_its_call() {
        let call = |program: u8| {
            let mut bytes = vec![1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, program, 0, 0, 0, 3];
            bytes.resize(40, 0);
            bytes
        };
        let reply = [1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let of = |protocol, program| flow(protocol, Udp, 2049, &[(Client, &call(program))]).0;
        assert_eq!(of(Protocol::Nfs, 0xa3), [Is]);
        assert_eq!(of(Protocol::Nfs, 0xa0), [No]);
        let answers =
            |reply: &[u8]| flow(Protocol::OncRpc, Udp, 111, &[(Client, &call(0xa0)), (Server, reply)]).0;
        assert_eq!(answers(&reply), [Is, Is]);
        let mut other = reply;
        other[3] = 5;
        assert_eq!(answers(&other), [Is, No]);
    }

    #[test]
    fn a_netbios_name_is_written_down_as_people_know_it() {
        let question = [b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0", NAME, b"\0\x20\0\x01"].concat();
        let (answers, sheet) = flow(Protocol::NetbiosName, Udp, 137, &[(Client, &question)]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Is], &b"WPAD"[..]));
    }
}
