//! Flows that are made up: of each behaviour, and of those that behave nearly so.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Protocol;
use crate::classify::{
    Carrier, Classifier, End, Examination, Limits, Progress, Reason, Room, Segment, Shown, Side, Verdict,
};
use proptest::prelude::*;
use tables::Nanos;

const MS: u64 = 1_000_000;

/// Octets by chance (xorshift64).
fn chance(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Who sends, when (in milliseconds), and what.
type Sent = (Side, u64, Vec<u8>);

fn up(at: u64, payload: Vec<u8>) -> Sent {
    (Side::Client, at, payload)
}

fn down(at: u64, payload: Vec<u8>) -> Sent {
    (Side::Server, at, payload)
}

/// What the shape alone says of datagrams.
fn of(mut sent: Vec<Sent>) -> Option<Protocol> {
    sent.sort_by_key(|it| it.1);
    let mut shape = Shape::default();
    for (side, at, payload) in &sent {
        shape.note(Carrier::Udp, *side, true, payload, Nanos(at * MS));
    }
    shape.behaviour(Carrier::Udp)
}

/// What a whole examination says, and after how many packets.
fn examined(carrier: Carrier, port: u16, has_syn: bool, sent: &[Sent]) -> (Verdict, usize) {
    let classifier = Classifier::default();
    let (mut room, mut examination) = (Room::new(4), Examination::default());
    let mut sequences = [1000_u32, 5000];
    let mut packets = 0;
    let client = End { address: [192, 0, 2, 1].into(), port: 40_000 };
    let server = End { address: [198, 51, 100, 1].into(), port };
    let mut show = |side: Side, at: u64, is_syn: bool, payload: &[u8]| {
        let sequence = sequences[side as usize];
        sequences[side as usize] += payload.len() as u32;
        let segment = (carrier == Carrier::Tcp).then_some(Segment { sequence, is_syn });
        let shown = Shown { now: Nanos(at * MS), carrier, side, client, server, segment, payload };
        examination.step(&classifier, &Limits::default(), &mut room, &shown)
    };
    if has_syn {
        show(Side::Client, 0, true, b"");
        show(Side::Server, 0, true, b"");
    }
    for (side, at, payload) in sent {
        packets += 1;
        if show(*side, *at, false, payload) == Progress::Ends {
            break;
        }
    }
    (examination.conclude(&classifier, &mut room, carrier, port), packets)
}

fn verdict(carrier: Carrier, sent: &[Sent]) -> (Option<Protocol>, Reason) {
    let (verdict, _) = examined(carrier, 20_443, true, sent);
    (verdict.protocol, verdict.reason)
}

#[test]
fn octets_have_their_kinds() {
    let by_chance = (0..1000).filter(|seed| Opening::of(&chance(200, *seed)) == Opening::Chance).count();
    assert!(by_chance >= 985, "{by_chance} of 1000: some begin with printable octets or a length");
    let with = |begin: &[u8]| Opening::of(&[begin, &chance(200, 7)].concat());
    assert_eq!(Opening::of(b""), Opening::Unsaid);
    assert_eq!(Opening::of(&chance(63, 7)), Opening::Unsaid, "too short to tell");
    assert_eq!(Opening::of(&chance(64, 7)), Opening::Chance);
    assert_eq!(Opening::of(&[0; 100]), Opening::Structure);
    assert_eq!(Opening::of(&[0x0f; 100]), Opening::Structure, "balanced, but always the same");
    assert_eq!((with(b"\x1f\x8b\x08"), with(b"\0\0\0\x20ftyp")), (Opening::File, Opening::File));
    assert_eq!((with(b"SECRET"), with(b"\x80 a text in the midst ")), (Opening::Text, Opening::Text));
    assert_eq!(Opening::of("plain text, ".repeat(20).as_bytes()), Opening::Text);
    for length in
        [&[0xca, 0][..], &[0, 0xca], &[0, 0xc8], &[0xcc, 0, 0, 0], &[0, 0, 0, 0xc8], &[7, 7, 0, 0xc8]]
    {
        let filled = if length.len() == 2 && length.contains(&0xca) { 200 } else { 204 - length.len() };
        let message = [length, &chance(filled, 3)].concat();
        let is = Opening::of(&message);
        let told = match (length, message.len()) {
            ([0xca, 0] | [0, 0xca], 202) | ([0xcc, 0, 0, 0] | [0, 0, 0, 0xc8] | [7, 7, 0, 0xc8], 204) => true,
            ([0, 0xc8], 204) => false,
            other => panic!("{other:?}"),
        };
        assert_eq!(is == Opening::Structure, told, "{length:?}");
    }
    // A question for a name, and a record of TLS.
    let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
    assert_ne!(Opening::of(question), Opening::Chance);
    assert_eq!(with(b"\x17\x03\x03\0\xc8"), Opening::Chance, "that is for its recogniser to know");
}

#[test]
fn what_is_chance_from_both_sides_is_fully_encrypted() {
    let hello =
        [up(1, chance(300, 1)), down(30, chance(120, 2)), up(31, chance(80, 3)), down(60, chance(900, 4))];
    let (verdict, packets) = examined(Carrier::Tcp, 8388, true, &hello);
    assert_eq!((verdict.protocol, verdict.reason), (Some(Protocol::FullyEncrypted), Reason::Behaviour));
    assert_eq!(packets, 4, "nothing more would make it clearer");
    // In the midst of a connection it may be anything: TLS, a file.
    assert_eq!(examined(Carrier::Tcp, 8388, false, &hello).0.protocol, None);
    // One side has a structure, sends a file, writes a text, or says nothing.
    for other in [b"\0\x01\0\0\x02ok".to_vec(), b"welcome to it\r\n".repeat(8), vec![7; 90]] {
        let sent = [up(1, chance(300, 1)), down(30, other), up(31, chance(80, 3)), down(60, chance(900, 4))];
        assert_eq!(verdict_of(&sent), None);
    }
    let file = [b"\x1f\x8b\x08".to_vec(), chance(1300, 5)].concat();
    assert_eq!(
        verdict_of(&[up(1, file), down(30, chance(300, 1)), up(31, chance(80, 3)), down(60, chance(90, 4))]),
        None
    );
    assert_eq!(verdict_of(&[up(1, chance(300, 1))]), None);
}

fn verdict_of(sent: &[Sent]) -> Option<Protocol> {
    verdict(Carrier::Tcp, sent).0
}

/// A side's frames: one every so often, of these sizes.
fn frames(side: Side, every: u64, sizes: &[usize]) -> impl Iterator<Item = Sent> {
    (0..20_u64).map(move |number| {
        let jitter = number * 7 % 5;
        let size = sizes[number as usize % sizes.len()];
        // No RTP: its version would be in the first octet.
        let mut payload = chance(size, number + 9);
        payload[0] = 0x07;
        (side, number * every + jitter + side as u64, payload)
    })
}

fn both(every: u64, sizes: &[usize], every_other: u64, other: &[usize]) -> Vec<Sent> {
    frames(Side::Client, every, sizes).chain(frames(Side::Server, every_other, other)).collect()
}

#[test]
fn small_packets_by_a_clock_are_a_call_or_a_game() {
    assert_eq!(of(both(20, &[172], 20, &[172])), Some(Protocol::Call));
    assert_eq!(of(both(20, &[70, 80, 110, 75], 20, &[90, 100])), Some(Protocol::Call), "a variable rate");
    assert_eq!(of(both(60, &[50], 60, &[60])), Some(Protocol::Call));
    // Sizes that vary much, or that are not alike: what happens in a world.
    assert_eq!(of(both(33, &[40, 60, 200, 45], 50, &[120, 500, 90])), Some(Protocol::Game));
    // Faster than a codec, slower than a clock, one way only, text, far too little for a frame.
    assert_eq!(of(both(2, &[172], 2, &[172])), None);
    assert_eq!(of(both(500, &[172], 500, &[172])), None);
    assert_eq!(of(frames(Side::Client, 20, &[172]).collect()), None);
    assert_ne!(of(both(20, &[20, 28], 20, &[32])), Some(Protocol::Call));
    let text = |side| (0..20).map(move |at| (side, at * 20, b"a measure of something ".repeat(6)));
    assert_eq!(of(text(Side::Client).chain(text(Side::Server)).collect()), None);
    // By no clock: 1, 2, 4, 8 ... ms apart.
    let irregular = |side| (0..14).map(move |at| (side, 1 << (at % 9) | at << 7, chance(172, at)));
    assert_eq!(of(irregular(Side::Client).chain(irregular(Side::Server)).collect()), None);
}

#[test]
fn what_is_known_is_not_guessed() {
    // RTP, PCMU, each 20 ms: a recogniser knows it.
    let media = |side: Side| {
        (0..20_u32).map(move |number| {
            let sequence = (number as u16 + 9).to_be_bytes();
            let stamp = (number * 160).to_be_bytes();
            let header = [&[0x80, 0][..], &sequence, &stamp, &[1, 2, 3, side as u8]].concat();
            (side, u64::from(number) * 20, [header, chance(160, number.into())].concat())
        })
    };
    let mut sent: Vec<_> = media(Side::Client).chain(media(Side::Server)).collect();
    sent.sort_by_key(|it| it.1);
    assert_eq!(of(sent.clone()), Some(Protocol::Call), "the shape is a call's");
    let (verdict, packets) = examined(Carrier::Udp, 20_444, false, &sent);
    assert!(verdict.protocol == Some(Protocol::Rtp) && packets < 12, "{verdict:?}");
    // SSH, whose key exchange is followed by chance.
    let mut session = vec![up(1, b"SSH-2.0-a\r\n".to_vec()), down(2, b"SSH-2.0-b\r\n".to_vec())];
    session.extend((0..30).map(|at| up(at * 300, chance(52, at))));
    assert_eq!(examined(Carrier::Tcp, 20_445, true, &session).0.protocol, Some(Protocol::Ssh));
    // One question and one answer of nobody's protocol are no behaviour.
    let question = [up(0, vec![9; 40]), down(30, vec![8; 300])];
    assert_eq!(of(question.to_vec()), None);
}

/// What a tunnel makes of packets inside: 32 octets more, and filled up to blocks if it pads.
fn wrapped(inner: usize, pads: bool, seed: u64) -> Vec<u8> {
    let filled = if pads { inner.next_multiple_of(16) } else { inner };
    chance(filled + 32, seed)
}

#[test]
fn packets_in_packets_are_a_tunnel() {
    let download = |pads: bool, least: usize| {
        (0..36_u64).map(move |number| match number % 3 {
            0 => up(number * 3, wrapped(least + number as usize % 13, pads, number)),
            _ => down(number * 3, wrapped(if number < 6 { 600 } else { 1380 }, pads, number)),
        })
    };
    assert_eq!(of(download(true, 52).collect()), Some(Protocol::Tunnel));
    // Without padding, one way alone proves nothing: acknowledgements of QUIC are small, too.
    assert_ne!(of(download(false, 52).collect()), Some(Protocol::Tunnel));
    assert_ne!(of(download(true, 3).collect()), Some(Protocol::Tunnel), "nothing inside is so small");
    let mutual = (0..36_u64).map(|number| {
        let side = if number / 2 % 2 == 0 { Side::Client } else { Side::Server };
        (side, number * 3, wrapped(if number % 4 == 1 { 70 } else { 1380 }, false, number))
    });
    assert_eq!(of(mutual.collect()), Some(Protocol::Tunnel));
}

#[test]
fn full_packets_are_pictures_or_bulk() {
    let pictures = (0..8_u64).flat_map(|picture| {
        let parts = (0..4).map(move |part| down(100 + picture * 33, chance(1100, picture * 4 + part)));
        parts.chain([up(110 + picture * 33, chance(60, picture))])
    });
    assert_eq!(of(pictures.collect()), Some(Protocol::LiveVideo));
    let file = |side: Side| {
        let parts = (0..32_u64).map(move |at| (side, at / 8, chance(1400, at)));
        parts.chain((0..4).map(move |at| (side.other(), at, vec![1; 30])))
    };
    assert_eq!(of(file(Side::Server).collect()), Some(Protocol::Bulk));
    assert_eq!(of(file(Side::Client).collect()), Some(Protocol::Bulk));
    assert_eq!(of(file(Side::Client).take(15).collect()), None, "too few");
    let pages =
        (0..36_u64).map(|at| if at % 3 == 0 { up(at, vec![1; 400]) } else { down(at, chance(1400, at)) });
    assert_eq!(of(pages.collect()), None);
}

#[test]
fn little_at_a_persons_pace_is_interactive() {
    let pauses = [90, 400, 130, 900, 110, 200, 1500, 95];
    let typed = |pauses: [u64; 8]| {
        let mut at = 0;
        let keys = (0..20_usize).flat_map(move |number| {
            at += pauses[number % pauses.len()];
            [up(at, vec![0xf1, number as u8, 3]), down(at + 30, vec![0xf2; 5 + number])]
        });
        keys.collect::<Vec<_>>()
    };
    let (verdict, packets) = examined(Carrier::Tcp, 20_446, true, &typed(pauses));
    assert_eq!((verdict.protocol, verdict.reason), (Some(Protocol::Interactive), Reason::Behaviour));
    assert_eq!(packets, 40, "all that may be counted");
    // A machine asks like a clock, or as fast as it can.
    assert_eq!(verdict_of(&typed([500; 8])), None);
    assert_eq!(verdict_of(&typed(pauses.map(|it| it / 50))), None);
}

#[test]
fn who_is_not_known_is_let_go() {
    let silent: Vec<_> = (0..100).map(|at| up(at * 9000, vec![0xf1; 30])).collect();
    assert_eq!(examined(Carrier::Udp, 20_447, false, &silent).1, usize::from(Limits::USUAL.behaviour));
}

proptest! {
    /// Whatever comes, whenever it comes: it does no harm, and a few packets bring no behaviour but one.
    #[test]
    fn any_flow_does_no_harm(
        packets in prop::collection::vec(
            (any::<bool>(), any::<u64>(), any::<bool>(), 0_usize..3000, any::<u8>()), 0..300),
    ) {
        for carrier in [Carrier::Tcp, Carrier::Udp, Carrier::Sctp] {
            let mut shape = Shape::default();
            for (number, (is_client, now, begins, length, octet)) in packets.iter().enumerate() {
                let side = if *is_client { Side::Client } else { Side::Server };
                shape.note(carrier, side, *begins, &vec![*octet; *length], Nanos(*now));
                let behaviour = shape.behaviour(carrier);
                prop_assert!(number >= 15 || behaviour.is_none(), "{behaviour:?} after {number}");
            }
        }
    }

    /// A capture that goes back in time has no gaps there: neither a panic, nor hours.
    #[test]
    fn time_that_goes_back_is_no_time(times in prop::collection::vec(0_u64..4000, 2..60)) {
        let mut shape = Shape::default();
        for at in &times {
            shape.note(Carrier::Udp, Side::Client, true, &[1; 20], Nanos(at * MS));
        }
        prop_assert!(shape.of(Side::Client).gap() <= 4000);
    }

    #[test]
    fn any_octets_have_a_kind(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for length in 0..bytes.len().min(70) {
            Opening::of(&bytes[..length]);
        }
        Opening::of(&bytes);
    }
}
