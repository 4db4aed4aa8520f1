//! Telephones, their gateways, and streams of pictures.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::{contains, is, is_number, row, starts_with_any};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::H323, Carriers::TCP, &[1720], First::Of(&[3]), Strength::Magic, h225),
    row(Protocol::H323, Carriers::UDP, &[1718, 1719], First::Range(0, 0x7f), Strength::Magic, ras),
    row(Protocol::Mgcp, Carriers::UDP, &[2427, 2727], First::Range(b'0', b'Z'), Strength::Magic, mgcp),
    row(Protocol::Megaco, Carriers::BOTH, &[2944, 2945], First::Of(b"M!"), Strength::Magic, megaco),
    row(Protocol::Skinny, Carriers::TCP, &[2000], First::Any, Strength::Structure, skinny),
    row(Protocol::Iax2, Carriers::UDP, &[4569], First::Range(0x80, 0xff), Strength::Structure, iax2),
    row(Protocol::Rtmp, Carriers::TCP, &[1935], First::Of(&[3]), Strength::Structure, rtmp),
    row(Protocol::MpegTs, Carriers::UDP, &[], First::Of(&[0x47]), Strength::Magic, mpeg_ts),
];

/// Identifies H.225's protocol in whatever version: 0.0.8.2250.0.
const H225: &[u8] = &[0x06, 0x00, 0x08, 0x91, 0x4a, 0x00];
/// H.245's: 0.0.8.245.
const H245: &[u8] = &[0x06, 0x00, 0x08, 0x81, 0x75];

/// ITU-T H.225.0 §7.2: a message of Q.931 in a TPKT (RFC 1006 §6), for calls; H.245's first message, for what is in them.
fn h225(message: &mut Message<'_>) -> Answer {
    if !message.begins || !message.has(0, &[3, 0]) {
        return Answer::No;
    }
    let Some(length) = message.u16(2).map(usize::from) else { return Answer::No };
    let fits = length <= 4 || length >= message.len() || message.has(length, &[3, 0]);
    // Discriminator, and a call reference of two octets; ALERTING to RELEASE COMPLETE, FACILITY, STATUS.
    let is_q931 = message.has(4, &[8, 2])
        && matches!(message.u8(8), Some(1 | 2 | 3 | 5 | 7 | 0x0d | 0x5a | 0x62 | 0x6e | 0x75 | 0x7b | 0x7d));
    let is_h245 = message.has(4, &[2, 0x70]) && contains(message.bytes, H245, 32);
    is(|| Some(fits && length > 8 && (is_q931 || is_h245)))
}

/// ITU-T H.225.0 §7.7: registration, admission and status say which version they are of.
fn ras(message: &mut Message<'_>) -> Answer {
    is(|| Some(contains(message.bytes, H225, 20)))
}

/// RFC 3435 §3.2.1, §3.3: a verb, a transaction, an endpoint, the version; or a code and a transaction.
fn mgcp(message: &mut Message<'_>) -> Answer {
    const VERBS: &[&[u8]] =
        &[b"EPCF ", b"CRCX ", b"MDCX ", b"DLCX ", b"RQNT ", b"NTFY ", b"AUEP ", b"AUCX ", b"RSIP ", b"MESG "];
    // Some end lines with CR alone.
    let Some(line) = message.bytes.split(|it| b"\r\n".contains(it)).next() else { return Answer::No };
    if starts_with_any(line, VERBS) {
        return is(|| Some(contains(line, b" MGCP 1.0", 512) || contains(line, b" MGCP 0.1", 512)));
    }
    let mut words = line.split(|it| *it == b' ');
    let (Some(code), Some(transaction)) = (words.next(), words.next()) else { return Answer::No };
    let is_port = message.has_port(2427) || message.has_port(2727);
    let fits =
        is_port && code.len() == 3 && is_number(code) && is_number(transaction) && transaction.len() < 10;
    if fits { Answer::Perhaps } else { Answer::No }
}

/// RFC 3525 §B.2: the text form begins with its name, or "!", and a version.
fn megaco(message: &mut Message<'_>) -> Answer {
    const BEGINNINGS: &[&[u8]] = &[b"MEGACO/1 ", b"MEGACO/2 ", b"MEGACO/3 ", b"!/1 ", b"!/2 ", b"!/3 "];
    let after = message.bytes.iter().position(|it| *it == b' ').and_then(|at| message.u8(at + 1));
    // Who says it: an address, a name, a device.
    let named = after.is_some_and(|it| b"[<".contains(&it) || it.is_ascii_alphanumeric());
    is(|| Some(message.begins && starts_with_any(message.bytes, BEGINNINGS) && named))
}

/// Cisco's Skinny Client Control Protocol: a length, a version, and a message's number, the lowest octet first, to the segment's end.
fn skinny(message: &mut Message<'_>) -> Answer {
    let mut cursor = Cursor::new(message.bytes);
    for count in 0..8 {
        if cursor.is_empty() {
            // Elsewhere a length, zeros and a small number may be anybody's.
            return match message.has_port(2000) {
                _ if count == 0 || !message.begins => Answer::No,
                true => Answer::Is,
                false => Answer::Perhaps,
            };
        }
        let mut little = || cursor.u32().map(u32::swap_bytes);
        let (Some(length), Some(version), Some(kind)) = (little(), little(), little()) else {
            return Answer::No;
        };
        let fits = (4..2048).contains(&length)
            && matches!(version, 0 | 0x0a..=0x16)
            && matches!(kind, 0..=0x60 | 0x81..=0x160)
            // A length and then nothing but zeros is anything.
            && (length > 4 || kind != 0 || message.has_port(2000));
        if !fits || cursor.take(length as usize - 4).is_none() {
            return Answer::No;
        }
    }
    Answer::Is
}

/// RFC 5456 §8.1.1: a full frame of the protocol's own type, whose elements end with the datagram.
fn iax2(message: &mut Message<'_>) -> Answer {
    let mut cursor = Cursor::new(message.bytes);
    let header = || -> Option<(u16, u16, u32, u8, u8, u8, u8)> {
        Some((
            cursor.u16()?,
            cursor.u16()?,
            cursor.u32()?,
            cursor.u8()?,
            cursor.u8()?,
            cursor.u8()?,
            cursor.u8()?,
        ))
    };
    let Some((source, _destination, _time, _out, _in, kind, subclass)) = { header }() else {
        return Answer::No;
    };
    // IAX control; commands up to FWDATA and TXREADY (§8.4.1).
    if source & 0x8000 == 0 || kind != 6 || !matches!(subclass, 1..=0x28) {
        return Answer::No;
    }
    let mut elements = 0;
    while !cursor.is_empty() {
        let (Some(1..=0x3b), Some(_)) = (cursor.u8(), cursor.vector8()) else { return Answer::No };
        elements += 1;
    }
    if elements > 0 { Answer::Is } else { Answer::Perhaps }
}

/// Octets of the first message of RTMP's handshake, without the version before it.
const GREETING: usize = 1536;

/// Adobe's RTMP §5.2: version 3 and 1,536 octets of either side, which the other side sends back.
fn rtmp(message: &mut Message<'_>) -> Answer {
    if !message.begins || message.u8(0) != Some(3) {
        return Answer::No;
    }
    if message.is_from_client() {
        // Zeros as the standard asks, or the version of a player.
        let fits = message.u32(5).is_some_and(|it| it == 0 || message.has_port(1935));
        let is_tpkt = message.u16(2) == u16::try_from(message.len()).ok();
        return if fits && !is_tpkt && message.len() <= GREETING + 1 { Answer::Next } else { Answer::No };
    }
    let Some(time) = message.other().first().strip_prefix(&[3]).and_then(|it| it.get(..4)) else {
        return Answer::No;
    };
    match message.bytes.get(GREETING + 1..GREETING + 5) {
        Some(again) if again == time => Answer::Is,
        Some(_) if message.has_port(1935) => Answer::Perhaps,
        Some(_) => Answer::No,
        None => Answer::Longer,
    }
}

/// ISO/IEC 13818-1 §2.4.3: packets of 188 octets that begin with 0x47.
fn mpeg_ts(message: &mut Message<'_>) -> Answer {
    if message.carrier != Carrier::Udp || !message.len().is_multiple_of(188) {
        return Answer::No;
    }
    // Its sync byte, no error, and something in it.
    let is_packet = |it: &[u8]| matches!(it, [0x47, 0..=0x7f, _, flags, ..] if flags & 0x30 != 0);
    match message.bytes.chunks(188).all(is_packet) {
        true if message.len() > 188 => Answer::Is,
        true => Answer::Perhaps,
        false => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Side;
    use crate::protocols::show::{client, flow};

    #[test]
    fn calls_of_h323_are_set_up_in_tpkts() {
        let setup = b"\x03\0\0\x10\x08\x02\0\x01\x05\x04\x03\x88\x93\xa5\x7e\0";
        assert_eq!(client(Protocol::H323, Carrier::Tcp, 9000, setup), Answer::Is);
        // RDP begins with a TPKT, too.
        let rdp = b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x03\0\0\0";
        assert_eq!(client(Protocol::H323, Carrier::Tcp, 1720, rdp), Answer::No);
        let ras = b"\x0e\x80\0\0\x06\0\x08\x91\x4a\0\x05\x80";
        assert_eq!(client(Protocol::H323, Carrier::Udp, 9000, ras), Answer::Is);
        assert_eq!(client(Protocol::H323, Carrier::Udp, 1719, &ras[..8]), Answer::No);
    }

    #[test]
    fn gateways_are_told_what_to_do_in_lines() {
        let ask = b"CRCX 1204 aaln/1@rgw.example.net MGCP 1.0\r\nC: 1\r\n";
        assert_eq!(client(Protocol::Mgcp, Carrier::Udp, 9000, ask), Answer::Is);
        assert_eq!(client(Protocol::Mgcp, Carrier::Udp, 2427, b"200 1204 OK\r\n"), Answer::Perhaps);
        assert_eq!(client(Protocol::Mgcp, Carrier::Udp, 9000, b"200 1204 OK\r\n"), Answer::No);
        assert_eq!(client(Protocol::Megaco, Carrier::Udp, 9000, b"MEGACO/1 [192.0.2.1]:55\nT"), Answer::Is);
        assert_eq!(client(Protocol::Megaco, Carrier::Udp, 9000, b"!/1 "), Answer::No);
    }

    #[test]
    fn telephones_of_cisco_have_lengths_and_numbers() {
        let register = [&[16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..], b"SEP001122334"].concat();
        assert_eq!(client(Protocol::Skinny, Carrier::Tcp, 2000, &register), Answer::Is);
        assert_eq!(client(Protocol::Skinny, Carrier::Tcp, 9000, &register), Answer::Perhaps);
        assert_eq!(client(Protocol::Skinny, Carrier::Tcp, 2000, &register[..20]), Answer::No);
        assert_eq!(
            client(Protocol::Skinny, Carrier::Tcp, 9000, &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Answer::No
        );
    }

    #[test]
    fn asterisks_frames_have_elements_to_their_end() {
        let new = b"\x80\x01\0\0\0\0\0\x03\0\0\x06\x01\x0b\x02\0\x02\x06\x01a";
        assert_eq!(client(Protocol::Iax2, Carrier::Udp, 9000, new), Answer::Is);
        assert_eq!(client(Protocol::Iax2, Carrier::Udp, 4569, &new[..17]), Answer::No);
        assert_eq!(client(Protocol::Iax2, Carrier::Udp, 4569, &new[..12]), Answer::Perhaps);
    }

    #[test]
    fn greetings_of_rtmp_are_sent_back() {
        let hello = [&[3, 0, 0, 1, 2, 0, 0, 0, 0][..], &[7; 1528]].concat();
        let answer = [&[3][..], &[5; 1536], &[0, 0, 1, 2], &[9; 1532]].concat();
        let messages = [(Side::Client, &hello[..]), (Side::Server, &answer[..])];
        assert_eq!(flow(Protocol::Rtmp, Carrier::Tcp, 9000, &messages).0, [Answer::Next, Answer::Is]);
        let part = [(Side::Client, &hello[..]), (Side::Server, &answer[..1400])];
        assert_eq!(flow(Protocol::Rtmp, Carrier::Tcp, 9000, &part).0, [Answer::Next, Answer::Longer]);
        let tpkt = b"\x03\0\0\x0b\x06\xe0\0\0\0\0\0";
        assert_eq!(client(Protocol::Rtmp, Carrier::Tcp, 9000, tpkt), Answer::No);
    }

    #[test]
    fn television_has_a_mark_every_188_octets() {
        let one = [&[0x47, 0x40, 0, 0x10][..], &[0xff; 184]].concat();
        assert_eq!(client(Protocol::MpegTs, Carrier::Udp, 9000, &one.repeat(7)), Answer::Is);
        assert_eq!(client(Protocol::MpegTs, Carrier::Udp, 9000, &one), Answer::Perhaps);
        assert_eq!(client(Protocol::MpegTs, Carrier::Udp, 9000, &one[1..]), Answer::No);
        let mut wrong = one.repeat(3);
        wrong[188] = 0x48;
        assert_eq!(client(Protocol::MpegTs, Carrier::Udp, 9000, &wrong), Answer::No);
    }
}
