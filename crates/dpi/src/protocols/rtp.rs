//! What calls and conferences carry: RTP, RTCP and ZRTP.
//!
//! RTP has no mark of its own. One packet only may be it; two of one side that have the same source, a sequence that goes on and a clock that moves
//! sensibly are. SRTP has the same header (RFC 3711 §3.1), so it looks the same here.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Rtcp, Carriers::UDP, &[5005], First::Range(0x80, 0xbf), Strength::Structure, rtcp),
    row(Protocol::Rtp, Carriers::UDP, &[5004], First::Range(0x80, 0xbf), Strength::Structure, rtp),
    row(Protocol::Zrtp, Carriers::UDP, &[], First::Of(&[0x10]), Strength::Magic, zrtp),
];

/// A packet (RFC 3550 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'b> {
    /// M.
    pub marker: bool,
    /// Which codec, see [`codec`]; what is from 96 on was agreed on elsewhere.
    pub payload_type: u8,
    /// One more with each packet.
    pub sequence: u16,
    /// In units of the codec's clock.
    pub timestamp: u32,
    /// Who sends.
    pub source: u32,
    /// Without header, extension and padding.
    pub payload: &'b [u8],
}

impl<'b> Packet<'b> {
    /// Of a datagram.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let (first, second) = (cursor.u8()?, cursor.u8()?);
        let (sequence, timestamp, source) = (cursor.u16()?, cursor.u32()?, cursor.u32()?);
        if first >> 6 != 2 {
            return None;
        }
        cursor.take(usize::from(first & 15) * 4)?;
        if first & 0x10 != 0 {
            let (_profile, words) = (cursor.u16()?, cursor.u16()?);
            cursor.take(usize::from(words) * 4)?;
        }
        let rest = cursor.rest();
        let padding = if first & 0x20 == 0 { 0 } else { usize::from(*rest.last()?).max(1) };
        let payload = rest.get(..rest.len().checked_sub(padding)?)?;
        let (marker, payload_type) = (second & 0x80 != 0, second & 0x7f);
        Some(Self { marker, payload_type, sequence, timestamp, source, payload })
    }
}

/// Codecs with a number of their own, and their clocks (RFC 3551 §6).
pub const fn codec(payload_type: u8) -> Option<(&'static str, u32)> {
    Some(match payload_type {
        0 => ("PCMU", 8000),
        3 => ("GSM", 8000),
        4 => ("G723", 8000),
        5 | 6 => ("DVI4", 8000),
        7 => ("LPC", 8000),
        8 => ("PCMA", 8000),
        9 => ("G722", 8000),
        10 | 11 => ("L16", 44100),
        12 => ("QCELP", 8000),
        13 => ("CN", 8000),
        14 => ("MPA", 90000),
        15 => ("G728", 8000),
        16 | 17 => ("DVI4", 11025),
        18 => ("G729", 8000),
        25 => ("CelB", 90000),
        26 => ("JPEG", 90000),
        28 => ("nv", 90000),
        31 => ("H261", 90000),
        32 => ("MPV", 90000),
        33 => ("MP2T", 90000),
        34 => ("H263", 90000),
        _ => return None,
    })
}

/// How far sequence numbers of one side's packets may be apart: a few are lost or overtake each other.
const NEAR: u16 = 64;
/// Likewise for timestamps: a minute of a clock of 90 kHz.
const SOON: u32 = 60 * 90_000;

/// RFC 3550 §5.1: two packets of the same source, whose sequence numbers are near each other.
fn rtp(message: &mut Message<'_>) -> Answer {
    let Some(packet) = Packet::parse(message.bytes) else { return Answer::No };
    // RFC 3551 §6, and dynamic ones; 72 to 76 would be taken for RTCP.
    let possible = codec(packet.payload_type).is_some() || matches!(packet.payload_type, 35..=71 | 77..=127);
    if !possible || packet.payload.is_empty() {
        return Answer::No;
    }
    let past = message.own();
    let Some(former) = Packet::parse_header(past.last()).filter(|_| past.packets > 0) else {
        return Answer::Next;
    };
    let ahead = packet.sequence.wrapping_sub(former.sequence);
    let moved = packet.timestamp.wrapping_sub(former.timestamp);
    let is_near = ahead.cast_signed().unsigned_abs() <= NEAR && moved.cast_signed().unsigned_abs() <= SOON;
    if former.source != packet.source {
        // Another source may begin; what was another protocol's will not go on.
        return if message.own().packets < 4 { Answer::Next } else { Answer::No };
    }
    // The same again, or a clock that stands for long, may be anything.
    match (is_near, ahead, packet.source) {
        (true, 1..=NEAR, 1..) => Answer::Is,
        (true, ..) => Answer::Next,
        (false, ..) => Answer::No,
    }
}

impl Packet<'_> {
    /// Of the kept beginning of a packet, whose rest is not there any more.
    fn parse_header(begins: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(begins);
        let (first, second) = (cursor.u8()?, cursor.u8()?);
        let (sequence, timestamp, source) = (cursor.u16()?, cursor.u32()?, cursor.u32()?);
        let (marker, payload_type) = (second & 0x80 != 0, second & 0x7f);
        (first >> 6 == 2).then_some(Self { marker, payload_type, sequence, timestamp, source, payload: &[] })
    }
}

/// RFC 3550 §6.1: packets that follow each other to the datagram's end, the first of which is a report; SRTCP has something behind it (RFC 3711 §3.4).
fn rtcp(message: &mut Message<'_>) -> Answer {
    let mut cursor = Cursor::new(message.bytes);
    // Reports say how many blocks they have, and a ciphered one still does.
    let exact = match (message.u8(1), message.u16(2), usize::from(message.u8(0).unwrap_or(0) & 31)) {
        (Some(200), Some(words), blocks) => usize::from(words) == 6 + blocks * 6,
        (Some(201), Some(words), blocks) => usize::from(words) == 1 + blocks * 6,
        _ => false,
    };
    let otherwise = if exact { Answer::Perhaps } else { Answer::No };
    let mut at_first = true;
    for _ in 0..16 {
        if cursor.is_empty() {
            break;
        }
        let (Some(first), Some(kind), Some(words)) = (cursor.u8(), cursor.u8(), cursor.u16()) else {
            return if at_first { Answer::No } else { otherwise };
        };
        let Some(body) = cursor.take(usize::from(words) * 4) else {
            return if at_first { Answer::No } else { otherwise };
        };
        let blocks = usize::from(first & 31) * 24;
        let fits = match kind {
            200 => body.len() >= 24 + blocks,
            201 => body.len() >= 4 + blocks,
            204..=207 => body.len() >= 8,
            202 | 203 => true,
            _ => false,
        };
        // Reports stand first; feedback may stand alone (RFC 5506).
        if first >> 6 != 2 || (at_first && !matches!(kind, 200 | 201 | 205 | 206)) || !fits {
            return if at_first { Answer::No } else { otherwise };
        }
        at_first = false;
    }
    if cursor.is_empty() && !at_first { Answer::Is } else { Answer::No }
}

/// RFC 6189 §5: its cookie, and a length that fits.
fn zrtp(message: &mut Message<'_>) -> Answer {
    let is_message = message.has(4, b"ZRTP") && message.has(12, &[0x50, 0x5a]);
    if is_message && message.u16(14).is_some_and(|words| 12 + usize::from(words) * 4 + 4 == message.len()) {
        Answer::Is
    } else {
        Answer::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Carrier, Side};
    use crate::protocols::show::{client, flow};

    fn packet(sequence: u16, timestamp: u32, source: u32) -> Vec<u8> {
        let header =
            [&[0x80, 0][..], &sequence.to_be_bytes(), &timestamp.to_be_bytes(), &source.to_be_bytes()];
        [&header.concat()[..], &[0xd5; 160]].concat()
    }

    #[test]
    fn two_packets_that_follow_each_other_are_rtp() {
        let say = |a: &[u8], b: &[u8]| {
            flow(Protocol::Rtp, Carrier::Udp, 40_000, &[(Side::Client, a), (Side::Client, b)]).0
        };
        let first = packet(65_535, 1000, 77);
        assert_eq!(say(&first, &packet(0, 1160, 77)), [Answer::Next, Answer::Is]);
        assert_eq!(say(&first, &packet(0, 1160, 78)), [Answer::Next, Answer::Next], "another source");
        assert_eq!(say(&first, &packet(9000, 1160, 77)), [Answer::Next, Answer::No], "too far");
        assert_eq!(say(&first, &packet(0, 999_999_999, 77)), [Answer::Next, Answer::No], "too late");
        assert_eq!(say(&first, &first), [Answer::Next, Answer::Next], "the same");
        let zero = [&[0x80][..], &[0; 40]].concat();
        assert_eq!(say(&zero, &zero), [Answer::Next, Answer::Next]);
    }

    #[test]
    fn all_of_a_packet_can_be_read() {
        let bytes = b"\xb1\x88\0\x05\0\0\0\x09\0\0\0\x07CSRC\xbe\xde\0\x01extnabcd\0\x02";
        let packet = Packet::parse(bytes);
        let expected =
            Packet { marker: true, payload_type: 8, sequence: 5, timestamp: 9, source: 7, payload: b"abcd" };
        assert_eq!(packet, Some(expected));
        assert_eq!(codec(8), Some(("PCMA", 8000)));
        for length in 0..bytes.len() {
            let _ = Packet::parse(&bytes[..length]);
        }
    }

    #[test]
    fn reports_end_with_the_datagram() {
        let report = [&[0x81, 201, 0, 7][..], &[9; 28]].concat();
        let names = [0x81, 202, 0, 2, 0, 0, 0, 9, 1, 1, b'a', 0];
        let one = |bytes: &[u8]| client(Protocol::Rtcp, Carrier::Udp, 40_001, bytes);
        assert_eq!(one(&report), Answer::Is);
        assert_eq!(one(&[&report[..], &names].concat()), Answer::Is);
        assert_eq!(one(&[&report[..], &[5; 14]].concat()), Answer::Perhaps, "ciphered");
        let loose = [&[0x80, 201, 0, 7][..], &[9; 28], &[5; 14]].concat();
        assert_eq!(one(&loose), Answer::No, "no block, and yet so long");
        assert_eq!(one(&names), Answer::No, "no report");
        for length in 1..report.len() {
            assert_eq!(one(&report[..length]), Answer::No);
        }
    }

    #[test]
    fn zrtp_has_a_cookie() {
        let hello = [&b"\x10\0\0\x01ZRTP\0\0\0\x09\x50\x5a\0\x03Hello   "[..], &[0; 4]].concat();
        assert_eq!(client(Protocol::Zrtp, Carrier::Udp, 40_000, &hello), Answer::Is);
        assert_eq!(client(Protocol::Zrtp, Carrier::Udp, 40_000, &hello[..27]), Answer::No);
    }
}
