//! Queues, streams of events, and calls between programs.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{
    is, is_after, is_name, is_printed, perhaps, row, starts_with_any, until, varint,
};

use Strength::{Magic, Shape, Structure};

const TCP: Carriers = Carriers::TCP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Amqp, TCP, &[5672, 5671], First::Of(b"A\0\x01\x02\x03\x08"), Structure, amqp),
    row(Protocol::Beanstalk, TCP, &[11300], First::Of(b"pruIRW"), Structure, beanstalk),
    row(Protocol::Gearman, TCP, &[4730], First::Of(b"\0"), Magic, gearman),
    row(Protocol::Giop, Carriers::BOTH, &[2809, 683], First::Of(b"GMZ"), Magic, giop),
    row(Protocol::IbmMq, TCP, &[1414], First::Of(b"T\xe3"), Magic, ibm_mq),
    row(Protocol::JavaRmi, TCP, &[1099], First::Of(b"J"), Magic, java_rmi),
    row(Protocol::JsonRpc, TCP, &[], First::Of(b"{"), Structure, json_rpc),
    row(Protocol::Kafka, TCP, &[9092], First::Of(b"\0"), Structure, kafka),
    row(Protocol::Mqtt, TCP, &[1883, 8883], First::Range(0x10, 0xe0), Structure, mqtt),
    row(Protocol::MqttSn, Carriers::UDP, &[1883, 10000], First::Any, Shape, mqtt_sn).having(1, 4, 4),
    row(Protocol::Nats, TCP, &[4222], First::Of(b"ICPMS"), Magic, nats),
    row(Protocol::Nsq, TCP, &[4150], First::Of(b" "), Magic, nsq),
    row(Protocol::OpenWire, TCP, &[61616], First::Of(b"\0"), Magic, openwire),
    row(Protocol::Rtps, Carriers::BOTH, &[7400, 7401, 7410, 7411], First::Of(b"R"), Magic, rtps),
    row(Protocol::Stomp, TCP, &[61613], First::Of(b"CS"), Magic, stomp),
    row(Protocol::Thrift, Carriers::BOTH, &[9090], First::Of(b"\0\x80\x82"), Structure, thrift),
    row(Protocol::Zmtp, TCP, &[5555], First::Of(b"\xff"), Magic, zmtp),
];

/// AMQP 0-9-1 §4.2.2 and 1.0 §2.2: "AMQP", then four octets of version; or frames: 0-9 ends them with 0xce, 1.0 describes their body.
fn amqp(m: &mut Message<'_>) -> Answer {
    if m.u8(0) == Some(b'A') {
        return is(|| {
            let version = m.bytes.get(4..8)?;
            Some(
                m.has(0, b"AMQP")
                    && matches!(version, [0, 0, 9, 0 | 1] | [0, 0 | 2 | 3, 1, 0] | [1, 1, 0 | 8 | 9, _]),
            )
        });
    }
    is(|| {
        let size = m.u32(3)? as usize;
        let class = m.u16(7)?;
        let known = m.u8(0)? != 1 || (class <= 120 && class.is_multiple_of(10));
        let ended = matches!(m.u8(0)?, 1 | 2 | 3 | 8)
            && size < 1 << 20
            && m.u8(size.checked_add(7)?)? == 0xce
            && known;
        let heartbeat = m.u8(0)? == 8 && size != 0;
        let described = m.u8(4)? == 2
            && m.u8(5)? <= 1
            && m.has(8, &[0, 0x53])
            && matches!(m.u8(10)?, 0x10..=0x18 | 0x40..=0x44);
        Some((ended && !heartbeat) || (described && m.u32(0)? as usize <= m.len()))
    })
}

/// Its `protocol.txt`: a few verbs with numbers, and what they are answered.
fn beanstalk(m: &mut Message<'_>) -> Answer {
    is(|| {
        let line = m.line(64)?;
        let numbers = |rest: &[u8], count: usize| {
            let mut words = rest.split(|octet| *octet == b' ');
            words.clone().count() == count && words.all(crate::protocols::shape::is_number)
        };
        Some(
            line == b"reserve"
                || line.strip_prefix(b"put ").is_some_and(|rest| numbers(rest, 4))
                || line.strip_prefix(b"INSERTED ").is_some_and(|rest| numbers(rest, 1))
                || line.strip_prefix(b"RESERVED ").is_some_and(|rest| numbers(rest, 2))
                || line.strip_prefix(b"WATCHING ").is_some_and(|rest| numbers(rest, 1)),
        )
    })
}

/// Its PROTOCOL file: a zero and "REQ" or "RES", a type, a length.
fn gearman(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            (m.has(0, b"\0REQ") || m.has(0, b"\0RES"))
                && (1..=42).contains(&m.u32(4)?)
                && m.u32(8)? < 1 << 24,
        )
    })
}

/// CORBA 3 part 2 §9.4: "GIOP" with version 1 and a type up to 7; "ZIOP" where it is compressed, "MIOP" in multicasts.
fn giop(m: &mut Message<'_>) -> Answer {
    is(|| match m.bytes.first_chunk()? {
        b"GIOP" | b"ZIOP" => Some(m.u8(4)? == 1 && m.u8(5)? <= 3 && m.u8(7)? <= 7),
        b"MIOP" => Some(m.u8(4)? == 0x10),
        _ => Some(false),
    })
}

/// A segment begins with "TSH" in ASCII or EBCDIC and a letter, and its length.
fn ibm_mq(m: &mut Message<'_>) -> Answer {
    is(|| {
        let named = m.has(0, b"TSH") && matches!(m.u8(3)?, b' ' | b'C' | b'M');
        let coded = m.has(0, &[0xe3, 0xe2, 0xc8]) && matches!(m.u8(3)?, 0x40 | 0xc3 | 0xd4);
        Some((named || coded) && (28..1 << 24).contains(&m.u32(4)?))
    })
}

/// "RMI Wire Protocol" §10.2: "JRMI", a version, and how it is carried.
fn java_rmi(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(0, b"JRMI\0") && matches!(m.u8(6)?, 0x4b..=0x4d)))
}

/// JSON-RPC 2.0 §4: an object whose member "jsonrpc" is "2.0" and which has a method or a result.
fn json_rpc(m: &mut Message<'_>) -> Answer {
    let said = |what| crate::protocols::shape::contains(m.bytes, what, 1024);
    is(|| {
        Some(
            (said(b"\"jsonrpc\":\"2.0\"") || said(b"\"jsonrpc\": \"2.0\""))
                && (said(b"\"method\"") || said(b"\"result\"")),
        )
    })
}

/// "Kafka protocol guide": length, key of the call, its version, a number, and the client's name; what is answered has the same number.
fn kafka(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u32(0)? as usize;
        if !(4..1 << 24).contains(&length) {
            return Some(false);
        }
        let begun = length + 4 >= m.len() || m.u16(length + 4)? == 0;
        let asked = m.other().last().get(8..12);
        let answered = asked.is_some_and(|number| m.has(4, number)) && m.other().last().starts_with(&[0]);
        if answered && length + 4 == m.len() && m.len() > 8 {
            return Some(
                m.other().last().get(4) == Some(&0) && m.other().last().get(5).is_some_and(|key| *key <= 92),
            );
        }
        let name = m.u16(12)? as usize;
        let client = m.bytes.get(14..14 + name)?;
        Some(m.u16(4)? <= 92 && m.u16(6)? <= 20 && begun && is_name(client))
    })
}

/// MQTT 3.1.1 §3.1: CONNECT with the protocol's name. Others (§2.2) have the length that is left, and believe their port or the other side.
fn mqtt(m: &mut Message<'_>) -> Answer {
    let Some((left, octets)) = m.bytes.get(1..).and_then(varint) else { return Answer::No };
    let at = 1 + octets;
    match m.bytes.first() {
        Some(0x10) => {
            is(|| Some((m.has(at, b"\0\x04MQTT") && m.u8(at + 6)? <= 5) || m.has(at, b"\0\x06MQIsdp\x03")))
        }
        Some(0x20) => is_after(
            m,
            |first| first.starts_with(&[0x10]),
            || {
                Some(
                    at + left == m.len()
                        && left >= 2
                        && m.u8(at)? <= 1
                        && (m.u8(at + 1)? <= 5 || m.u8(at + 1)? >= 0x80),
                )
            },
        ),
        Some(kind @ (0x30..=0x3d)) => perhaps(|| {
            let name = m.u16(at)? as usize;
            let topic = m.bytes.get(at + 2..at + 2 + name)?;
            Some(kind & 6 != 6 && name > 0 && is_printed(topic) && at + left >= m.len() && left >= name + 2)
        }),
        Some(0x82) => perhaps(|| {
            let name = m.u16(at + 2)? as usize;
            let topic = m.bytes.get(at + 4..at + 4 + name)?;
            Some(at + left <= m.len() && name > 0 && is_printed(topic))
        }),
        Some(0xc0 | 0xd0) if left == 0 && m.len() == 2 && m.has_port(1883) => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// MQTT-SN 1.2 §5.4: CONNECT has its length, 4, flags, version 1, a duration and a name of up to 23 letters.
fn mqtt_sn(m: &mut Message<'_>) -> Answer {
    perhaps(|| {
        let name = m.bytes.get(6..)?;
        Some(
            usize::from(m.u8(0)?) == m.len()
                && m.u8(1)? == 4
                && m.u8(2)? & 0xf3 == 0
                && m.u8(3)? == 1
                && is_name(name)
                && name.len() <= 23,
        )
    })
}

/// "NATS client protocol": INFO and CONNECT have an object each.
fn nats(m: &mut Message<'_>) -> Answer {
    let begins: &[&[u8]] = &[b"INFO {\"server_id\"", b"CONNECT {\"", b"INFO {"];
    is(|| Some(starts_with_any(m.bytes, begins) && m.begins))
}

/// A client begins with two spaces and the version.
fn nsq(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && (m.has(0, b"  V2IDENTIFY\n") || (m.has(0, b"  V2") && m.len() == 4))))
}

/// ActiveMQ's WIREFORMAT_INFO (1): after a length.
fn openwire(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.has(4, b"\x01ActiveMQ") && (13..65_536).contains(&m.u32(0)?)))
}

/// DDSI-RTPS 2.2 §9.4.4: "RTPS", version 2.
fn rtps(m: &mut Message<'_>) -> Answer {
    is(|| Some((m.has(0, b"RTPS") || m.has(0, b"RTPX")) && m.u8(4)? == 2 && m.u8(5)? <= 10 && m.len() >= 20))
}

/// STOMP 1.2: a command, then headers with colons.
fn stomp(m: &mut Message<'_>) -> Answer {
    is(|| {
        let line = m.line(16)?;
        let end = m.bytes.iter().position(|octet| *octet == b'\n')? + 1;
        let header = until(m.bytes.get(end..)?, b'\n', 200)?;
        Some(m.begins && matches!(line, b"CONNECT" | b"STOMP" | b"CONNECTED") && header.contains(&b':'))
    })
}

/// Thrift's binary and compact protocols: a version, a kind of call, and a name; in frames there is a length before.
fn thrift(m: &mut Message<'_>) -> Answer {
    is(|| {
        let at = if m.carrier == Carrier::Tcp && m.u8(0)? == 0 {
            if m.u32(0)? as usize + 4 != m.len() {
                return Some(false);
            }
            4
        } else {
            0
        };
        let name = match m.u8(at)? {
            0x80 if m.u16(at)? == 0x8001 && m.u8(at + 2)? == 0 && (1..=4).contains(&m.u8(at + 3)?) => {
                let length = m.u32(at + 4)? as usize;
                m.bytes.get(at + 8..(at + 8).checked_add(length)?)?
            }
            0x82 if m.u8(at + 1)? & 0x1f == 1 && (1..=4).contains(&(m.u8(at + 1)? >> 5)) => {
                let (_, octets) = varint(m.bytes.get(at + 2..)?)?;
                let (length, more) = varint(m.bytes.get(at + 2 + octets..)?)?;
                let begin = at + 2 + octets + more;
                m.bytes.get(begin..begin + length)?
            }
            _ => return Some(false),
        };
        Some(name.len() < 256 && is_name(name))
    })
}

/// ZMTP 3.1 §3: 0xff, eight octets, 0x7f, and the version.
fn zmtp(m: &mut Message<'_>) -> Answer {
    is(|| Some(m.begins && m.has(1, &[0; 7]) && m.u8(8)? <= 1 && m.u8(9)? == 0x7f))
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
    fn queues_are_known_by_how_they_begin() {
        check(&[
            (Protocol::Amqp, Tcp, 5672, Client, b"AMQP\0\0\x09\x01", Is),
            (Protocol::Amqp, Tcp, 5672, Client, b"AMQP\0\0\x09\x07", No),
            (Protocol::Amqp, Tcp, 5672, Server, b"\x01\0\0\0\0\0\x04\0\x0a\0\x0b\xce", Is),
            (Protocol::Amqp, Tcp, 5672, Server, b"\x01\0\0\0\0\0\x04\0\x0a\0\x0b\xcd", No),
            (Protocol::Amqp, Tcp, 5672, Client, b"\0\0\0\x10\x02\0\0\0\0\x53\x10\xc0\x03\x01\xa1\0", Is),
            (Protocol::Beanstalk, Tcp, 11300, Client, b"put 0 0 60 5\r\nhello\r\n", Is),
            (Protocol::Beanstalk, Tcp, 11300, Client, b"put a file\r\n", No),
            (Protocol::Gearman, Tcp, 4730, Client, b"\0REQ\0\0\0\x01\0\0\0\x02wc", Is),
            (Protocol::Gearman, Tcp, 4730, Client, b"\0REQ\0\0\0\0\0\0\0\x02wc", No),
            (Protocol::Giop, Tcp, 2809, Client, b"GIOP\x01\x02\0\0\0\0\0\xd8", Is),
            (Protocol::Giop, Tcp, 2809, Client, b"GIOP\x02\x02\0\0\0\0\0\xd8", No),
            (Protocol::IbmMq, Tcp, 1414, Client, b"TSH \0\0\x01\x0c\x02\x01", Is),
            (Protocol::JavaRmi, Tcp, 1099, Client, b"JRMI\0\x02K", Is),
            (Protocol::JsonRpc, Tcp, 8080, Client, b"{\"jsonrpc\": \"2.0\", \"method\": \"echo\"}", Is),
            (Protocol::Kafka, Tcp, 9092, Client, b"\0\0\0\x0e\0\x12\0\0\0\0\0\x01\0\x04test", Is),
            (Protocol::Kafka, Tcp, 9092, Client, b"\0\0\0\x0e\0\x12\0\0\0\0\0\x01\0\x04\x01est", No),
            (Protocol::Mqtt, Tcp, 1883, Client, b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04test", Is),
            (Protocol::Mqtt, Tcp, 1883, Client, b"\x10\x10\0\x04MQTX\x04\x02\0\x3c\0\x04test", No),
            (Protocol::Mqtt, Tcp, 1883, Client, b"\x30\x07\0\x03a/bhi", Perhaps),
            (Protocol::MqttSn, Udp, 1883, Client, b"\x0a\x04\x04\x01\0\x3cname", Perhaps),
            (Protocol::Nats, Tcp, 4222, Server, b"INFO {\"server_id\":\"N\"}\r\n", Is),
            (Protocol::Nsq, Tcp, 4150, Client, b"  V2", Is),
            (Protocol::OpenWire, Tcp, 61616, Client, b"\0\0\0\xda\x01ActiveMQ\0\0\0\x0a", Is),
            (Protocol::Rtps, Udp, 7400, Client, b"RTPS\x02\x02\x01\x10abcdefghijkl", Is),
            (Protocol::Rtps, Udp, 7400, Client, b"RTPS\x03\x02\x01\x10abcdefghijkl", No),
            (Protocol::Stomp, Tcp, 61613, Client, b"CONNECT\naccept-version:1.2\n\n\0", Is),
            (Protocol::Stomp, Tcp, 61613, Client, b"CONNECT example.com:443 HTTP/1.1\r\n", No),
            (Protocol::Thrift, Tcp, 9090, Client, b"\x80\x01\0\x01\0\0\0\x04ping\0\0\0\0\0", Is),
            (Protocol::Thrift, Tcp, 9090, Client, b"\x80\x01\0\x05\0\0\0\x04ping\0\0\0\0\0", No),
            (Protocol::Thrift, Udp, 6831, Client, b"\x82\x81\xb2\x01\x09emitBatch\x1c", Is),
            (Protocol::Zmtp, Tcp, 5555, Client, b"\xff\0\0\0\0\0\0\0\x01\x7f\x03", Is),
        ]);
    }

    #[test]
    fn what_is_answered_has_the_number_of_what_was_asked() {
        let request = b"\0\0\0\x0e\0\x12\0\0\0\0\0\x07\0\x04test";
        let answer =
            flow(Protocol::Kafka, Tcp, 9092, &[(Client, request), (Server, b"\0\0\0\x06\0\0\0\x07\0\0")]).0;
        assert_eq!(answer, [Is, Is]);
        let other =
            flow(Protocol::Kafka, Tcp, 9092, &[(Client, request), (Server, b"\0\0\0\x06\0\0\0\x08\0\0")]).0;
        assert_eq!(other, [Is, No]);
        let mqtt = flow(
            Protocol::Mqtt,
            Tcp,
            9000,
            &[(Client, b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0"), (Server, b"\x20\x02\0\0")],
        )
        .0;
        assert_eq!(mqtt, [Is, Is]);
    }
}
