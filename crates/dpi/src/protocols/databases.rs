//! Databases and caches.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{
    contains, is, is_after, is_number, is_printed, perhaps, row, starts_with_any, until,
};

use Strength::{Magic, Structure};

const TCP: Carriers = Carriers::TCP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Bolt, TCP, &[7687], First::Of(b"\x60"), Magic, bolt),
    row(Protocol::Cassandra, TCP, &[9042, 7000], First::Of(&CQL_VERSIONS), Structure, cassandra),
    row(Protocol::ClickHouse, TCP, &[9000], First::Of(b"\0"), Magic, clickhouse),
    row(Protocol::Drda, TCP, &[446, 50000], First::Any, Structure, drda),
    row(Protocol::Elasticsearch, TCP, &[9300], First::Of(b"E"), Magic, elasticsearch),
    row(Protocol::Firebird, TCP, &[3050], First::Of(b"\0"), Structure, firebird),
    row(Protocol::Memcached, TCP, &[11211], First::Of(b"sgaripcdVSND\x80\x81"), Structure, memcached),
    row(Protocol::Memcached, Carriers::UDP, &[11211], First::Any, Structure, memcached).having(5, 1, 1),
    row(Protocol::MongoDb, TCP, &[27017, 27018, 27019], First::Any, Structure, mongodb),
    row(Protocol::MySql, TCP, &[3306], First::Any, Structure, mysql),
    row(Protocol::Oracle, TCP, &[1521, 1525, 1526], First::Range(0, 0x20), Structure, oracle),
    row(Protocol::PostgreSql, TCP, &[5432, 6432], First::Of(b"\0RNSEQpBPX"), Structure, postgresql),
    row(Protocol::Redis, TCP, &[6379], First::Of(b"*+-$"), Structure, redis),
    row(Protocol::Tds, TCP, &[1433, 1434], First::Range(1, 0x12), Structure, tds),
    row(Protocol::ZooKeeper, TCP, &[2181], First::Of(b"\0"), Structure, zookeeper),
];

/// Neo4j's manual, "Bolt handshake": a fixed number of four octets, then four versions of four.
fn bolt(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(0, &[0x60, 0x60, 0xb0, 0x17]) && m.len() >= 20))
}

/// The versions that requests and responses begin with; bit 7 says that it is a response. Nodes begin with a number of their own.
const CQL_VERSIONS: [u8; 11] = [1, 2, 3, 4, 5, 0x81, 0x82, 0x83, 0x84, 0x85, 0xca];

/// CQL binary protocol §2: version, flags, stream, an opcode that fits who says it, and a length that ends with the payload.
fn cassandra(m: &mut Message<'_>) -> Answer {
    is(|| {
        if m.has(0, &[0xca, 0x55, 0x2d, 0xfa]) {
            return Some(m.begins);
        }
        let version = m.u8(0)?;
        let header = if version & 0x7f < 3 { 8 } else { 9 };
        let (opcode, length) = (m.u8(header - 5)?, m.u32(header - 4)?);
        let fits = if version & 0x80 == 0 {
            matches!(opcode, 0x01 | 0x04 | 0x05 | 0x07 | 0x09 | 0x0a | 0x0b | 0x0d | 0x0f)
        } else {
            matches!(opcode, 0x00 | 0x02 | 0x03 | 0x06 | 0x08 | 0x0c | 0x0e | 0x10)
        };
        let whole = m.len() == header + length as usize && opcode != 1 && (opcode != 5 || length == 0);
        Some(m.u8(1)? <= 0x1f && fits && (whole || (opcode == 1 && contains(m.bytes, b"CQL_VERSION", 64))))
    })
}

/// Its native protocol: Hello (0) with the client's name, which begins so with its own ones; the server's begins with its name.
fn clickhouse(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && usize::from(m.u8(1)?) >= 10 && m.has(2, b"ClickHouse")))
}

/// DDM §"DSS": length, 0xd0, format, correlation; then an object whose length is six less.
fn drda(m: &mut Message<'_>) -> Answer {
    is(|| {
        let (whole, object) = (m.u16(0)?, m.u16(6)?);
        let format = m.u8(3)?;
        let known = matches!(
            m.u16(8)?,
            0x1041 | 0x106d | 0x106e | 0x1443 | 0x14ac | 0x1219 | 0x2001 | 0x2414 | 0x220d
        );
        Some(m.u8(2)? == 0xd0 && matches!(format & 0x0f, 1..=5) && whole == object.checked_add(6)? && known)
    })
}

/// "ES", the length of what follows, a request's number, its status and the version.
fn elasticsearch(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(m.has(0, b"ES") && m.u8(2)? < 2 && m.u32(2)? >= 13 && m.u8(14)? < 0x20 && m.u32(15)? >> 24 == 0)
    })
}

/// op_connect (1), op_attach (19), the version of the connection's description (2 or 3), and the architecture.
fn firebird(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(m.begins && m.u32(0)? == 1 && m.u32(4)? == 19 && matches!(m.u32(8)?, 2 | 3) && m.u32(12)? <= 40)
    })
}

/// Its `protocol.txt`; over UDP after a header of eight octets. The binary one has a header of 24 (`BinaryProtocolRevamped`).
fn memcached(m: &mut Message<'_>) -> Answer {
    if m.carrier == crate::classify::Carrier::Udp {
        let headed = m.u16(4) == Some(1) && m.u16(2) == Some(0) && m.u16(6) == Some(0);
        let text = m.bytes.get(8..).unwrap_or_default();
        return is(|| Some(headed && (memcached_line(text)? || starts_with_any(text, &[b"get ", b"gets "]))));
    }
    if matches!(m.u8(0), Some(0x80 | 0x81)) {
        return is(|| {
            let (key, extras, body) = (u32::from(m.u16(2)?), u32::from(m.u8(4)?), m.u32(8)?);
            let whole = m.len() == 24 + body as usize;
            Some(
                m.u8(1)? <= 0x60
                    && m.u8(5)? == 0
                    && extras <= 20
                    && key + extras <= body
                    && key <= 250
                    && whole,
            )
        });
    }
    match memcached_line(m.bytes) {
        Some(true) => Answer::Is,
        _ => perhaps(|| {
            let key = m.line(256)?.strip_prefix(b"get ")?;
            Some(is_printed(key) && m.bytes.ends_with(b"\r\n"))
        }),
    }
}

/// A line that nobody else says: commands with their numbers, and what is answered.
fn memcached_line(bytes: &[u8]) -> Option<bool> {
    let line = until(bytes, b'\n', 300)?.strip_suffix(b"\r")?;
    let mut words = line.split(|octet| *octet == b' ');
    Some(match words.next()? {
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
            let key = words.next()?;
            !key.is_empty()
                && is_number(words.next()?)
                && is_number(words.next()?)
                && is_number(words.next()?)
        }
        b"VALUE" => !words.next()?.is_empty() && is_number(words.next()?) && is_number(words.next()?),
        b"STAT" => is_printed(words.next()?) && words.next().is_some(),
        b"stats" => words.next().is_none_or(|of| matches!(of, b"items" | b"slabs" | b"sizes" | b"settings")),
        b"incr" | b"decr" => !words.next()?.is_empty() && is_number(words.next()?) && words.next().is_none(),
        b"STORED" | b"NOT_STORED" | b"NOT_FOUND" | b"DELETED" => {
            words.next().is_none() && bytes.len() == line.len() + 2
        }
        _ => false,
    })
}

/// Its wire protocol: length, numbers of request and of what is answered, an operation; all with the lowest octet first. What follows is
/// checked as far as its operation has something fixed.
fn mongodb(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u32_le(0)? as usize;
        let fits = match length {
            0..=20 => false,
            _ if length == m.len() => true,
            _ if length < m.len() => m.u32_le(length + 12)? == m.u32_le(12)?,
            _ => m.len() >= 500 && length <= 48_000_000,
        };
        let (answers, flags) = (m.u32_le(8)?, m.u32_le(16)?);
        Some(
            fits && match m.u32_le(12)? {
                1 => answers != 0 && flags <= 0x0f,
                2001 | 2002 | 2005 | 2006 => answers == 0 && (flags == 0 || m.u8(16)? > 0x20),
                2004 => answers == 0 && flags <= 0xff && contains(m.bytes.get(20..)?, b".", 120),
                2007 => answers == 0 && flags == 0,
                2010..=2012 => true,
                2013 => flags & 0xfffe_fffc == 0 && m.u8(20)? <= 1,
                _ => false,
            },
        )
    })
}

/// "Connection phase": the server greets with version 10, its name and 13 fixed octets; the client answers with 23 zeros after what it can,
/// or with what it can alone, and TLS follows.
fn mysql(m: &mut Message<'_>) -> Answer {
    let Some([a, b, c, sequence]) = m.bytes.first_chunk().copied() else { return Answer::No };
    let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
    if length > 4096 || length + 4 > m.len() {
        return Answer::No;
    }
    let Some(packet) = m.bytes.get(4..4 + length) else { return Answer::No };
    match sequence {
        0 if m.begins && length + 4 == m.len() && packet.first() == Some(&10) => {
            let version = until(packet.get(1..).unwrap_or_default(), 0, 80).unwrap_or_default();
            let salted = packet.get(version.len() + 14) == Some(&0);
            if version.len() >= 3 && is_printed(version) && salted { Answer::Open } else { Answer::No }
        }
        0 | 1 if packet.first() == Some(&0xff) && length + 4 == m.len() => perhaps(|| {
            let code = u16::from_le_bytes(*packet.get(1..)?.first_chunk()?);
            Some((1000..=4000).contains(&code) && is_printed(packet.get(3..)?) && length > 12)
        }),
        1 if packet.get(9..32).is_some_and(|reserved| reserved.get(..19) == Some(&[0; 19])) => {
            let capabilities = m.u32_le(4).unwrap_or_default();
            let tls = length == 32 && capabilities & 0x800 != 0 && capabilities & 0x200 != 0;
            match (tls, capabilities & 0x200 != 0) {
                (true, _) => Answer::Within(length + 4),
                (false, true) => Answer::Is,
                _ => Answer::No,
            }
        }
        _ => Answer::No,
    }
}

/// TNS: length, checksum (0), type, flags, checksum of the header (0). A CONNECT says its version and what it wants in words.
fn oracle(m: &mut Message<'_>) -> Answer {
    let headed = || {
        let whole = usize::from(m.u16(0)?) == m.len() || (m.u16(0)? == 0 && m.u16(2)? as usize == m.len());
        Some(whole && m.u16(6)? == 0 && (m.u16(2)? == 0 || m.u16(0)? == 0))
    };
    if m.u8(4) == Some(1) {
        return is(|| {
            let named = contains(m.bytes, b"(DESCRIPTION", 400) || contains(m.bytes, b"(CONNECT_DATA", 400);
            let length = usize::from(m.u16(24)?) + usize::from(m.u16(26)?);
            Some(
                m.begins
                    && (300..=330).contains(&m.u16(8)?)
                    && m.u16(6)? == 0
                    && (named || length == m.len()),
            )
        });
    }
    is_after(
        m,
        |first| first.get(4) == Some(&1) && first.get(8) == Some(&1),
        || {
            let kind = m.u8(4)?;
            Some(headed()? && matches!(kind, 2 | 4 | 5 | 11) && (kind != 11 || m.len() == 8))
        },
    )
}

/// "Message formats": a startup message has its version or a code in place of it; TLS is asked for first, and answered with one letter.
fn postgresql(m: &mut Message<'_>) -> Answer {
    const TLS: u32 = 80_877_103;
    const GSS: u32 = 80_877_104;
    const CANCEL: u32 = 80_877_102;
    let asked = |first: &[u8]| matches!(first, [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f | 0x30]);
    match m.bytes {
        [0, ..] if m.begins => match (m.u32(0), m.u32(4)) {
            (Some(8), Some(TLS | GSS)) => Answer::Open,
            (Some(16), Some(CANCEL)) if m.len() == 16 => Answer::Is,
            (Some(length), Some(0x0003_0000 | 0x0003_0002)) => {
                let named = starts_with_any(
                    m.bytes.get(8..).unwrap_or_default(),
                    &[b"user\0", b"database\0", b"replication\0"],
                );
                if length as usize == m.len() && (named || m.bytes.ends_with(&[0, 0])) {
                    Answer::Is
                } else {
                    Answer::No
                }
            }
            _ => Answer::No,
        },
        [b'S'] if asked(m.other().last()) => Answer::Within(1),
        [b'N'] if asked(m.other().last()) => Answer::Is,
        [b'R', ..] => is(|| {
            let (length, code) = (m.u32(1)?, m.u32(5)?);
            Some(match code {
                0 | 2 | 3 | 7 | 9 => length == 8,
                5 => length == 12,
                8 | 10..=12 => (8..2048).contains(&length),
                _ => false,
            })
        }),
        [b'E', ..] => is(|| {
            let severe = starts_with_any(m.bytes.get(5..)?, &[b"SERROR\0", b"SFATAL\0", b"SPANIC\0"]);
            Some(severe && m.u32(1)? as usize <= m.len())
        }),
        [b'Q', ..] => perhaps(|| {
            Some(
                m.u32(1)? as usize + 1 == m.len()
                    && m.bytes.ends_with(&[0])
                    && is_printed(m.bytes.get(5..8)?),
            )
        }),
        _ => Answer::No,
    }
}

/// RESP: an array's size, then its first element; what is answered counts only after such a request.
fn redis(m: &mut Message<'_>) -> Answer {
    let Some(line) = m.line(40) else { return Answer::No };
    match line.split_first() {
        Some((b'*', size)) => is(|| {
            let element = m.bytes.get(line.len() + 2..)?;
            let ended = m.has(line.len(), b"\r\n") && is_number(size) && size.len() <= 7;
            Some(
                ended
                    && b"$*:+%".contains(element.first()?)
                    && (element.get(1)?.is_ascii_alphanumeric() || element.get(1)? == &b'-'),
            )
        }),
        Some((b'+' | b'-' | b'$', _))
            if m.other().first().starts_with(b"*") && m.has(line.len(), b"\r\n") =>
        {
            Answer::Is
        }
        _ => Answer::No,
    }
}

/// MS-TDS §2.2.3.1: type, status, length, SPID, number, window (0). PRELOGIN is a table of options.
fn tds(m: &mut Message<'_>) -> Answer {
    is(|| {
        let kind = m.u8(0)?;
        let length = usize::from(m.u16(2)?);
        let options = kind != 0x12 || (m.u8(8)? <= 6 && usize::from(m.u16(9)?) < length) || m.u8(8)? == 0x16;
        // The last packet of a message ends with it; the others are as large as was agreed.
        let large =
            matches!(length, 512 | 1024 | 2048 | 4096 | 8000 | 8192 | 16384 | 32767) && m.len() >= 512;
        let fits = if m.u8(1)? & 1 == 1 { length == m.len() } else { large && m.u8(6)? <= 2 };
        Some(
            matches!(kind, 1..=4 | 6..=8 | 0x0e | 0x10..=0x12)
                && m.u8(1)? <= 0x1f
                && m.u8(7)? == 0
                && length > 8
                && fits
                && options,
        )
    })
}

/// ConnectRequest: its length, version 0, the last transaction, a timeout, a session and a password of 16 octets.
fn zookeeper(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            m.begins
                && matches!(m.u32(0)?, 44 | 45)
                && m.u32(4)? == 0
                && m.u32(28)? == 16
                && (1000..600_000).contains(&m.u32(16)?),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No, Open, Perhaps, Within};
    use crate::classify::Carrier::{Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;
    use crate::protocols::show::flow;

    #[test]
    fn databases_are_known_by_their_headers() {
        let tns = |version: u16| {
            let mut bytes = vec![0, 0x5a, 0, 0, 1, 0, 0, 0];
            bytes.extend_from_slice(&version.to_be_bytes());
            bytes.resize(58, 0);
            bytes.extend_from_slice(b"(DESCRIPTION=(CONNECT_DATA=(SID");
            bytes
        };
        let mut login = vec![32, 0, 0, 1, 0x85, 0xa2, 0x0f, 0, 0, 0, 0, 1, 33];
        login.resize(36, 0);
        let mut secure = login.clone();
        secure[5] |= 0x08;
        check(&[
            (
                Protocol::Bolt,
                Tcp,
                7687,
                Client,
                b"\x60\x60\xb0\x17\0\0\x04\x04\0\0\0\x04\0\0\0\x03\0\0\0\0",
                Is,
            ),
            (Protocol::Cassandra, Tcp, 9042, Client, b"\x04\0\0\0\x05\0\0\0\0", Is),
            (Protocol::Cassandra, Tcp, 9042, Client, b"\x04\0\0\0\x06\0\0\0\0", No),
            (Protocol::Cassandra, Tcp, 9042, Client, b"\x04\0\0\0\x05\0\0\0\x01", No),
            (Protocol::ClickHouse, Tcp, 9000, Client, b"\0\x11ClickHouse client\x01", Is),
            (
                Protocol::Elasticsearch,
                Tcp,
                9300,
                Server,
                b"ES\0\0\0\x13\0\0\0\0\0\0\0\x01\x09\0\x5c\xc6\x63\0\0\0\0\0\0",
                Is,
            ),
            (Protocol::Elasticsearch, Tcp, 9300, Server, b"ESMTP is something else, which does not fit", No),
            (Protocol::Memcached, Tcp, 11211, Client, b"set key 0 60 5\r\nvalue\r\n", Is),
            (Protocol::Memcached, Tcp, 11211, Client, b"set key to value\r\n", No),
            (Protocol::Memcached, Tcp, 11211, Client, b"get some:key\r\n", Perhaps),
            (Protocol::Memcached, Udp, 11211, Client, b"\x12\x34\0\0\0\x01\0\0stats\r\n", Is),
            (
                Protocol::MySql,
                Tcp,
                3306,
                Server,
                b"\x1b\0\0\0\x0a5.7.1\0\x08\0\0\0saltsalt\0\xff\xf7\x08\x02\0\0\0",
                Open,
            ),
            (Protocol::MySql, Tcp, 3306, Client, &login, Is),
            (Protocol::MySql, Tcp, 3306, Client, &secure, Within(36)),
            (Protocol::Oracle, Tcp, 1521, Client, &tns(0x013a), Is),
            (Protocol::Oracle, Tcp, 1521, Client, &tns(0x113a), No),
            (Protocol::PostgreSql, Tcp, 5432, Client, b"\0\0\0\x08\x04\xd2\x16\x2f", Open),
            (Protocol::PostgreSql, Tcp, 5432, Client, b"\0\0\0\x12\0\x03\0\0user\0you\0\0", Is),
            (Protocol::PostgreSql, Tcp, 5432, Server, b"R\0\0\0\x0c\0\0\0\x05salt", Is),
            (Protocol::PostgreSql, Tcp, 5432, Server, b"N", No),
            (Protocol::Redis, Tcp, 6379, Client, b"*1\r\n$4\r\nPING\r\n", Is),
            (Protocol::Redis, Tcp, 6379, Client, b"* OK IMAP4rev1\r\n", No),
            (Protocol::Redis, Tcp, 6379, Server, b"+OK\r\n", No),
            (Protocol::Tds, Tcp, 1433, Client, b"\x12\x01\0\x0f\0\0\x01\0\0\0\x06\0\x01\xff\0", Is),
            (Protocol::Tds, Tcp, 1433, Client, b"\x12\x01\0\x10\0\0\x01\0\0\0\x06\0\x01\xff\0", No),
        ]);
    }

    #[test]
    fn what_is_answered_counts_after_what_was_asked() {
        let asked =
            flow(Protocol::PostgreSql, Tcp, 5432, &[(Client, b"\0\0\0\x08\x04\xd2\x16\x2f"), (Server, b"S")])
                .0;
        assert_eq!(asked, [Open, Within(1)]);
        let redis =
            flow(Protocol::Redis, Tcp, 7000, &[(Client, b"*1\r\n$4\r\nPING\r\n"), (Server, b"+PONG\r\n")]).0;
        assert_eq!(redis, [Is, Is]);
    }

    #[test]
    fn mongodb_has_a_length_and_an_operation() {
        let message = |operation: u32, length: u32| {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(&operation.to_le_bytes());
            bytes.extend_from_slice(&[0, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
            bytes
        };
        check(&[
            (Protocol::MongoDb, Tcp, 27017, Client, &message(2013, 26), Is),
            (Protocol::MongoDb, Tcp, 27017, Client, &message(2013, 27), No),
            (Protocol::MongoDb, Tcp, 27017, Client, &message(2100, 26), No),
        ]);
    }
}
