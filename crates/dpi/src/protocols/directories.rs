//! Directories, and who may do what.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::{Ber, contains, fills, is, row};

use Strength::{Magic, Structure};

const UDP: Carriers = Carriers::UDP;
const TCP: Carriers = Carriers::TCP;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Cldap, UDP, &[389], First::Of(b"\x30"), Structure, cldap),
    row(Protocol::Diameter, Carriers::TCP_SCTP, &[3868], First::Of(b"\x01"), Structure, diameter),
    row(Protocol::DnsCrypt, UDP, &[], First::Any, Magic, dnscrypt).having(12, 1, 1),
    row(Protocol::DnsCrypt, UDP, &[], First::Of(b"r"), Magic, dnscrypt),
    row(Protocol::Kerberos, Carriers::BOTH, &[88, 464], First::Of(KERBEROS), Structure, kerberos),
    row(Protocol::Ldap, TCP, &[389, 3268], First::Of(b"\x30"), Structure, ldap),
    row(Protocol::Radius, UDP, &[1812, 1813, 1645, 1646, 3799], First::Range(1, 45), Structure, radius),
    row(Protocol::Tacacs, TCP, &[49], First::Of(b"\xc0\xc1"), Structure, tacacs),
];

/// The application tags of its messages (RFC 4120 §5.10), and the first octet of a length.
const KERBEROS: &[u8] = b"\0\x6a\x6b\x6c\x6d\x6e\x6f\x74\x75\x76\x7e";

/// RFC 4511 §4.1.1 in a datagram (MS-ADTS §6.3.3): how domain controllers are found.
fn cldap(m: &mut Message<'_>) -> Answer {
    is(|| Some(matches!(ldap_operation(m.bytes)?, 0x63..=0x65 | 0x50)))
}

/// RFC 6733 §3 and §4.1: version 1, lengths in fours, flags, a command, and an attribute that is no longer than the message.
fn diameter(m: &mut Message<'_>) -> Answer {
    is(|| {
        let length = m.u32(0)? & 0x00ff_ffff;
        let command = m.u32(4)? & 0x00ff_ffff;
        let known = matches!(command, 257..=330 | 0x80_0000..=0x80_0200);
        let attribute = m.u32(24)? & 0x00ff_ffff;
        let attributed = length == 20
            || (attribute >= 8
                && attribute + 20 <= length + 3
                && m.u8(24)?.trailing_zeros() >= 5
                && m.u32(20)? < 1 << 16);
        Some(
            length >= 20 && length.is_multiple_of(4) && m.u8(4)?.trailing_zeros() >= 4 && known && attributed,
        )
    })
}

/// "DNSCrypt version 2" §"Protocol flow": the certificate is asked for as text of a fixed name; what is answered begins with eight fixed octets.
fn dnscrypt(m: &mut Message<'_>) -> Answer {
    is(|| {
        let asked = m.has(12, b"\x012\x0ddnscrypt-cert") && m.u16(4)? == 1;
        Some(asked || (m.has(0, b"r6fnvWj8") && m.len() >= 48))
    })
}

/// RFC 4120 §5.10: an application tag, a sequence, and version 5 as its first value; over TCP after its length.
fn kerberos(m: &mut Message<'_>) -> Answer {
    is(|| {
        let bytes = match m.carrier {
            Carrier::Tcp => m.bytes.get(4..).filter(|_| (20..1 << 20).contains(&m.u32(0).unwrap_or(0)))?,
            _ => m.bytes,
        };
        let outer = Ber::new(bytes).value()?;
        if m.carrier == Carrier::Udp && outer.content.len() != outer.length {
            return Some(false);
        }
        let version = Ber::new(outer.content).inside(0x30)?.value()?;
        let known = match outer.tag {
            0x6a | 0x6c => version.tag == 0xa1,
            0x6b | 0x6d..=0x6f | 0x74..=0x76 | 0x7e => version.tag == 0xa0,
            _ => false,
        };
        Some(known && Ber::new(version.content).integer(0x02)? == 5)
    })
}

/// The tag of an LDAP message's operation: after a sequence's beginning and a number.
fn ldap_operation(bytes: &[u8]) -> Option<u8> {
    let mut message = Ber::new(bytes).inside(0x30)?;
    message.integer(0x02)?;
    let operation = message.value()?;
    match operation.tag {
        0x60 => matches!(Ber::new(operation.content).integer(0x02)?, 1..=3),
        0x42 | 0x50 => operation.length <= 4,
        0x4a => operation.length > 0,
        0x61 | 0x63..=0x69 | 0x6b..=0x6f | 0x73 | 0x77..=0x79 => operation.length >= 2,
        _ => false,
    }
    .then_some(operation.tag)
}

/// RFC 4511 §4.1.1: a sequence, a number, and an operation's tag. TLS is asked for by its OID (§4.14), and begins after the answer.
fn ldap(m: &mut Message<'_>) -> Answer {
    match ldap_operation(m.bytes) {
        None => Answer::No,
        Some(0x77) if contains(m.bytes, b"1.3.6.1.4.1.1466.20037", 80) => Answer::Open,
        Some(0x78) if contains(m.bytes, &[0x0a, 0x01, 0x00], 24) && m.other().last().contains(&0x77) => {
            Answer::Within(m.len())
        }
        Some(_) => Answer::Is,
    }
}

/// RFC 2865 §3 and §5: a code, the length of it all, and attributes that fill it; two or more of them where the port says nothing. On its port a
/// length that agrees is believed with attributes that don't, for who answers doesn't either.
fn radius(m: &mut Message<'_>) -> Answer {
    let usual = [1812, 1813, 1645, 1646, 3799].iter().any(|port| m.has_port(*port));
    let length = m.u16(2).map_or(0, usize::from);
    let known = matches!(m.u8(0), Some(1..=5 | 11..=13 | 21..=34 | 40..=45)) && length <= 4096;
    let Some(attributes) = m.bytes.get(20..length).filter(|_| known) else { return Answer::No };
    let attribute = |bytes: &[u8]| {
        let length = usize::from(*bytes.get(1)?);
        (length >= 2 && matches!(bytes.first()?, 1..=192 | 241..=246)).then_some(length)
    };
    let several = attribute(attributes).is_some_and(|first| first < attributes.len());
    match (usual, m.len() == length, fills(attributes, 64, attribute)) {
        (true, _, true) => Answer::Is,
        (true, true, false) => Answer::Perhaps,
        (false, true, true) if several => Answer::Is,
        _ => Answer::No,
    }
}

/// RFC 8907 §4.1: version, type, number, flags, session, and the length of what follows.
fn tacacs(m: &mut Message<'_>) -> Answer {
    is(|| {
        Some(
            (1..=3).contains(&m.u8(1)?)
                && m.u8(2)? != 0
                && m.u8(3)? & !5 == 0
                && m.u32(8)? as usize + 12 == m.len(),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::Answer::{Is, No, Open, Perhaps, Within};
    use crate::classify::Carrier::{Sctp, Tcp, Udp};
    use crate::classify::Side::{Client, Server};
    use crate::protocols::shape::cases::check;
    use crate::protocols::show::flow;

    #[test]
    fn directories_are_known_by_their_structure() {
        let capabilities = b"\x01\0\0\x2c\x80\0\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\x01\x08\x40\0\0\x0chost\0\0\x01\x28\x40\0\0\x0crealm...";
        let kerberos = b"\x6a\x11\x30\x0f\xa1\x03\x02\x01\x05\xa2\x03\x02\x01\x0a\xa3\x03\x02\x01\x01";
        let mut framed = vec![0, 0, 0, 19];
        framed.extend_from_slice(&kerberos[..]);
        framed.resize(23, 0);
        let mut radius = vec![1, 7, 0, 28];
        radius.resize(20, 9);
        radius.extend_from_slice(b"\x01\x08nobody");
        let mut unfilled = radius.clone();
        unfilled[21] = 9;
        check(&[
            (Protocol::Cldap, Udp, 389, Client, b"\x30\x09\x02\x01\x01\x63\x04\x04\x00\x0a\x01", Is),
            (Protocol::Diameter, Sctp, 3868, Client, capabilities, Is),
            (Protocol::Diameter, Tcp, 3868, Client, &capabilities[..27], No),
            (
                Protocol::DnsCrypt,
                Udp,
                443,
                Client,
                b"\x7f\x47\x01\0\0\x01\0\0\0\0\0\0\x012\x0ddnscrypt-cert\x03org\0\0\x10\0\x01",
                Is,
            ),
            (
                Protocol::DnsCrypt,
                Udp,
                443,
                Client,
                b"\x7f\x47\x01\0\0\x01\0\0\0\0\0\0\x012\x0ddnscrypt-cart\x03org\0\0\x10\0\x01",
                No,
            ),
            (Protocol::Kerberos, Udp, 88, Client, kerberos, Is),
            (Protocol::Kerberos, Tcp, 88, Client, &framed, No),
            (Protocol::Ldap, Tcp, 389, Client, b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\0\x80\0", Is),
            (Protocol::Ldap, Tcp, 389, Client, b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x04\x04\0\x80\0", No),
            (Protocol::Radius, Udp, 1812, Client, &radius, Is),
            (Protocol::Radius, Udp, 2000, Client, &radius, No),
            (Protocol::Radius, Udp, 1812, Client, &unfilled, Perhaps),
            (Protocol::Tacacs, Tcp, 49, Client, b"\xc0\x01\x01\0\x12\x34\x56\x78\0\0\0\x04body", Is),
            (Protocol::Tacacs, Tcp, 49, Client, b"\xc0\x01\x01\0\x12\x34\x56\x78\0\0\0\x05body", No),
        ]);
    }

    #[test]
    fn tls_may_begin_within_ldap() {
        let asked = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
        let agreed = b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\0\x04\0\x04\0";
        let answers = flow(Protocol::Ldap, Tcp, 389, &[(Client, asked), (Server, agreed)]).0;
        assert_eq!(answers, [Open, Within(14)]);
    }
}
