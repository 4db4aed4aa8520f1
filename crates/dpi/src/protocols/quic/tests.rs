#![allow(clippy::unwrap_used)]

use super::keys::tests::example;
use super::*;
use crate::classify::Reason;
use crate::classify::{Carrier, Side};
use crate::protocols::show::{client, flow, server};
use crate::protocols::tls::tests::client_hello;
use crate::{Event, Inspector, Knowledge, Options, Packet, Verdict};
use ::packet::{IpPacket, PacketBuilder};
use proptest::prelude::*;
use std::sync::Arc;
use tables::Nanos;

const NUMBER: u32 = 1;
const FIRST_ID: &[u8] = b"first-id";

/// A client's Initial to this connection ID, ciphered with the keys of `FIRST_ID`.
fn packet(destination: &[u8], number: u8, frames: &[u8]) -> Vec<u8> {
    sealed(&Keys::of_client(Version::of(NUMBER).unwrap(), FIRST_ID), destination, number, frames)
}

fn sealed(keys: &Keys, destination: &[u8], number: u8, frames: &[u8]) -> Vec<u8> {
    sealed_as(NUMBER, keys, destination, number, frames)
}

/// Of another version.
fn sealed_as(version: u32, keys: &Keys, destination: &[u8], number: u8, frames: &[u8]) -> Vec<u8> {
    let mut content = frames.to_vec();
    content.resize(content.len().max(1100), 0);
    let length = (content.len() + 17) as u16 | 0x4000;
    // RFC 9369 §3.2: an Initial of version 2 has another number.
    let first = if Version::of(version).unwrap().is_second { 0xd0 } else { 0xc0 };
    let mut header = [&[first][..], &version.to_be_bytes(), &[destination.len() as u8], destination].concat();
    header.extend([4, 5, 5, 5, 5, 0]);
    header.extend(length.to_be_bytes());
    header.push(number);
    keys.seal(&header, &content).unwrap()
}

/// A ClientHello in two Initials.
pub fn two_initials(name: &str) -> [Vec<u8>; 2] {
    let hello = client_hello(Some(name), &["h3"], 0);
    let (begins, rest) = hello.split_at(700);
    [packet(FIRST_ID, 0, &crypto(0, begins)), packet(FIRST_ID, 1, &crypto(700, rest))]
}

fn crypto(at: usize, piece: &[u8]) -> Vec<u8> {
    let number = |it: usize| (it as u16 | 0x4000).to_be_bytes();
    [&[6][..], &number(at), &number(piece.len()), piece].concat()
}

fn quic_flow(messages: &[(Side, &[u8])]) -> (Vec<Answer>, Sheet) {
    flow(Protocol::Quic, Carrier::Udp, 4433, messages)
}

fn host(messages: &[(Side, &[u8])]) -> (Vec<Answer>, Vec<u8>) {
    let (answers, sheet) = quic_flow(messages);
    (answers, sheet.host.bytes().to_vec())
}

#[test]
fn the_examples_of_the_standards_name_their_server() {
    let first = example(1, "c300000001088394c8f03e5157080000449e00000002");
    let second = example(0x6b33_43cf, "d36b3343cf088394c8f03e5157080000449e00000002");
    for packet in [first, second] {
        let (answers, sheet) = quic_flow(&[(Side::Client, &packet)]);
        assert_eq!(answers, [Answer::Is]);
        assert_eq!((sheet.host.bytes(), sheet.alpn.bytes()), (&b"example.com"[..], &b"alpn"[..]));
        let mut wrong = packet.clone();
        wrong[600] ^= 1;
        assert_eq!(host(&[(Side::Client, &wrong)]), (vec![Answer::Perhaps], vec![]), "its tag doesn't fit");
    }
}

#[test]
fn pieces_come_in_any_order_and_over_several_packets() {
    let hello = client_hello(Some("www.example.org"), &["h3"], 0);
    let (a, b) = hello.split_at(700);
    let (c, d) = b.split_at(300);
    let expected = b"www.example.org".to_vec();

    // In one packet, the last first, a PING and an ACK between them.
    let ack = [2, 5, 0, 1, 2, 0, 0];
    let mixed = [crypto(1000, d), vec![1], crypto(0, a), ack.to_vec(), crypto(700, c)].concat();
    let found = host(&[(Side::Client, &packet(FIRST_ID, 0, &mixed))]);
    assert_eq!(found, (vec![Answer::Is], expected.clone()));

    // In two, the later one first; the server answers in between, and its connection ID is used from then on.
    let late = packet(FIRST_ID, 1, &[crypto(1000, d), crypto(700, c)].concat());
    let early = packet(b"other", 2, &crypto(0, a));
    let found = host(&[(Side::Client, &late), (Side::Client, &early)]);
    assert_eq!(found, (vec![Answer::Open, Answer::Is], expected.clone()));
    let answer = packet(b"", 0, &crypto(0, b"\x02\0\0\0"));
    let found = host(&[(Side::Client, &late), (Side::Server, &answer), (Side::Client, &early)]);
    assert_eq!(found, (vec![Answer::Open, Answer::Open, Answer::Is], expected.clone()));

    // Both in one datagram.
    let both = [late, packet(FIRST_ID, 0, &crypto(0, a))].concat();
    assert_eq!(host(&[(Side::Client, &both)]), (vec![Answer::Is], expected));
}

#[test]
fn after_a_retry_the_keys_are_others() {
    let hello = client_hello(Some("www.example.org"), &["h3"], 0);
    let first = packet(FIRST_ID, 0, &crypto(0, &hello[..900]));
    let retry = [&[0xf0][..], &1_u32.to_be_bytes(), &[4, 5, 5, 5, 5, 3, b'n', b'e', b'w'], &[7; 40]].concat();
    let keys = Keys::of_client(Version::of(1).unwrap(), b"new");
    let parts = [crypto(0, &hello[..900]), crypto(900, &hello[900..])];
    let (again, rest) = (sealed(&keys, b"new", 1, &parts[0]), sealed(&keys, b"new", 2, &parts[1]));
    let messages = [
        (Side::Client, &first[..]),
        (Side::Server, &retry[..]),
        (Side::Client, &again[..]),
        (Side::Client, &rest[..]),
    ];
    let (answers, name) = host(&messages);
    assert_eq!(answers, [Answer::Open, Answer::Open, Answer::Open, Answer::Is]);
    assert_eq!(name, b"www.example.org");
}

#[test]
fn dns_over_quic_says_so() {
    let hello = client_hello(Some("dns.example.org"), &["doq"], 0);
    let answer = host(&[(Side::Client, &packet(FIRST_ID, 0, &crypto(0, &hello)))]);
    assert_eq!(answer.0, [Answer::Other(Protocol::Doq)]);
}

#[test]
fn a_server_is_known_by_versions_and_lengths() {
    let list = [&[0x80, 0, 0, 0, 0, 4, 1, 2, 3, 4, 0][..], &[0x1a, 0x2a, 0x3a, 0x4a, 0, 0, 0, 1]].concat();
    assert_eq!(server(Protocol::Quic, Carrier::Udp, 443, &list), Answer::Is);
    assert_eq!(server(Protocol::Quic, Carrier::Udp, 443, &list[..14]), Answer::No);
    let handshake = [&[0xe5, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0, 0x40, 20][..], &[9; 20]].concat();
    assert_eq!(server(Protocol::Quic, Carrier::Udp, 443, &handshake), Answer::Is);
    assert_eq!(server(Protocol::Quic, Carrier::Udp, 443, &handshake[..32]), Answer::No);
}

#[test]
fn a_short_header_alone_is_a_guess_on_quics_port() {
    let packet = [&[0x44][..], &[9; 40]].concat();
    let both = [(Side::Client, &packet[..]), (Side::Server, &packet[..])];
    assert_eq!(flow(Protocol::Quic, Carrier::Udp, 443, &both).0, [Answer::Next, Answer::Perhaps]);
    assert_eq!(client(Protocol::Quic, Carrier::Udp, 444, &packet), Answer::No);
}

#[test]
fn googles_old_hello_is_in_clear() {
    let name = b"www.example.org";
    let end = name.len() as u32;
    let hello =
        [&b"CHLO\x02\0\0\0SNI\0"[..], &end.to_le_bytes(), b"UAID", &(end + 6).to_le_bytes(), name, b"Chrome"]
            .concat();
    let old =
        [&b"\x0d\x01\x02\x03\x04\x05\x06\x07\x08Q043\x01"[..], &[5; 12], &[0xa0, 1, 0, 4], &hello].concat();
    let newer =
        [&b"\xc3Q046\x50\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x01"[..], &[5; 12], &[0xa0, 1, 0, 4], &hello]
            .concat();
    for (bytes, place) in [(&old, 1), (&newer, 0)] {
        let recogniser = RECOGNISERS[place];
        assert!(recogniser.first.allows(bytes[0]));
    }
    assert_eq!(host(&[(Side::Client, &newer)]), (vec![Answer::Is], name.to_vec()));
    let found = google::in_clear(&old).unwrap();
    let mut sheet = Sheet::default();
    found.note(&mut sheet);
    assert_eq!((sheet.host.bytes(), sheet.agent.bytes()), (&name[..], &b"Chrome"[..]));
    for length in 0..newer.len() {
        host(&[(Side::Client, &newer[..length])]);
    }
}

proptest! {
    /// Whatever was changed, no name is found that nobody sent.
    #[test]
    fn what_was_changed_on_the_way_names_nobody(at in 0_usize..1200, with in 1_u8..) {
        let mut changed = example(1, "c300000001088394c8f03e5157080000449e00000002");
        changed[at] ^= with;
        let (answers, sheet) = quic_flow(&[(Side::Client, &changed)]);
        prop_assert!(sheet.host.is_empty() && !answers.contains(&Answer::Is), "{:?}", answers);
    }

    /// A hello in pieces, over packets in any order, of any version, perhaps after a Retry, with ACKs and PINGs: its server is found.
    /// What is changed before it is sealed reaches the parser, which does no harm, and names nobody who isn't written there.
    #[test]
    fn what_is_sealed_is_read_however_it_is_cut_and_changed(
        version in prop::sample::select(vec![1, 0x6b33_43cf, 0xff00_0022, 0xff00_0020, 0xff00_001d, 0xff00_001b, 0xff00_0017, 0xff00_0016, 0xface_b002]),
        mut cuts in prop::collection::vec(1_usize..1500, 0..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        packets in 1_usize..4,
        is_retried in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 0..4),
    ) {
        let hello = client_hello(Some("www.example.org"), &["h3"], 0);
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(hello.len()));
        cuts.extend([0, hello.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut pieces: Vec<_> = cuts.windows(2).map(|ends| crypto(ends[0], &hello[ends[0]..ends[1]])).collect();
        for (number, place) in order.iter().enumerate() {
            let (from, to) = (number % pieces.len(), place.index(pieces.len()));
            pieces.swap(from, to);
        }
        let mut contents: Vec<Vec<u8>> = vec![vec![]; packets];
        for (number, piece) in pieces.iter().enumerate() {
            let content = &mut contents[number * packets / pieces.len()];
            content.extend_from_slice(if number % 2 == 0 { &[1] } else { &[2, 5, 0, 1, 2, 0, 0] });
            content.extend_from_slice(piece);
        }
        for (at, with) in &changes {
            let content = &mut contents[with.trailing_zeros() as usize % packets];
            if !content.is_empty() {
                let at = at.index(content.len());
                content[at] ^= with;
            }
        }
        let number = Version::of(version).unwrap();
        let mut said: Vec<(Side, Vec<u8>)> = vec![];
        let id = if is_retried {
            let keys = Keys::of_client(number, FIRST_ID);
            said.push((Side::Client, sealed_as(version, &keys, FIRST_ID, 0, &crypto(0, &hello[..700]))));
            let first = if number.is_second { 0xc0 } else { 0xf0 };
            let ids = [4, 5, 5, 5, 5, 3, b'n', b'e', b'w'];
            said.push((Side::Server, [&[first][..], &version.to_be_bytes(), &ids, &[7; 40]].concat()));
            &b"new"[..]
        } else {
            FIRST_ID
        };
        let keys = Keys::of_client(number, id);
        said.extend((1..).zip(&contents).map(|(at, content)| (Side::Client, sealed_as(version, &keys, id, at, content))));
        let server = Keys::of_server(number, id);
        said.push((Side::Server, sealed_as(version, &server, b"", 0, contents.last().unwrap())));
        let mut name = Vec::new();
        for end in 1..=said.len() {
            let shown: Vec<_> = said[..end].iter().map(|(side, bytes)| (*side, &bytes[..])).collect();
            let (answers, sheet) = quic_flow(&shown);
            prop_assert!(answers.iter().all(|it| *it != Answer::No), "{:?}", answers);
            if name.is_empty() {
                name = sheet.host.bytes().to_vec();
            }
        }
        if changes.is_empty() {
            prop_assert_eq!(name, b"www.example.org");
        } else {
            let mut all: Vec<u8> = hello.clone();
            all.extend(contents.concat());
            // A name may be cut in two, and each half be changed: each octet was written somewhere.
            prop_assert!(name.iter().all(|octet| all.contains(octet)), "{:?}", name);
        }
    }

    /// Packets of which only the header is QUIC's.
    #[test]
    fn random_octets_behind_a_good_header_name_nobody(octets in prop::collection::vec(any::<u8>(), 1182)) {
        let mut bytes = example(1, "c300000001088394c8f03e5157080000449e00000002");
        bytes.truncate(18);
        bytes.extend(octets);
        let (answers, sheet) = quic_flow(&[(Side::Client, &bytes)]);
        prop_assert_eq!(answers, [Answer::Perhaps]);
        prop_assert!(sheet.host.is_empty() && sheet.agent.is_empty());
    }
}

/// What an inspector says of a flow of these datagrams of a client, which ends then.
fn inspected(port: u16, datagrams: &[impl AsRef<[u8]>]) -> Verdict {
    let options = Options { flows: 4, examinations: 4, subscribers: 4, ..Options::default() };
    let knowledge = Arc::new(Knowledge::new(Arc::default()));
    let mut inspector = Inspector::with(options, knowledge, 1, Nanos(0));
    for payload in datagrams {
        let builder = PacketBuilder::new().ipv4([10, 0, 0, 1].into(), [198, 51, 100, 1].into());
        let bytes = builder.udp(40_000, port).build(payload.as_ref());
        inspector
            .push(Nanos(1), &Packet { ip: IpPacket::parse(&bytes).unwrap(), bytes: &bytes, tunnel: None });
    }
    inspector.flush_one(Nanos(2));
    assert_eq!((inspector.flows(), inspector.assemblies()), ((0, 0), 0));
    let events: Vec<_> = std::iter::from_fn(|| inspector.poll()).collect();
    let [Event::Classified { verdict, .. }, Event::Ended { .. }] = events[..] else { panic!("{events:?}") };
    verdict
}

/// Nothing that wasn't proved is certain: where the shape fits, it is a guess, on QUIC's port more than that.
#[test]
fn first_packets_that_no_key_opens_get_a_verdict_with_its_reason() {
    let example = example(1, "c300000001088394c8f03e5157080000449e00000002");
    let certain = inspected(4433, &[&example]);
    assert_eq!((certain.protocol, certain.reason), (Some(Protocol::Quic), Reason::Parser));

    // Its tag, its content, its connection ID: the keys don't fit.
    for at in [6, 20, 600, 1199] {
        let mut wrong = example.clone();
        wrong[at] ^= 1;
        let verdict = inspected(4433, &[&wrong; 3]);
        assert!(verdict.reason >= Reason::Shape, "octet {at}: {verdict:?}");
        let verdict = inspected(443, &[&wrong; 3]);
        assert_eq!(
            (verdict.protocol, verdict.reason),
            (Some(Protocol::Quic), Reason::UsualShape),
            "octet {at}"
        );
    }
    // A version that nobody has; one that has other keys.
    for version in [0x0102_0304_u32, 0x6b33_43cf, u32::MAX, 0xff00_001d] {
        let mut wrong = example.clone();
        wrong[1..5].copy_from_slice(&version.to_be_bytes());
        let verdict = inspected(4433, &[&wrong; 3]);
        assert!(verdict.reason >= Reason::Shape, "version {version:x}: {verdict:?}");
    }
    // Lengths that lie: of the connection IDs, of the token, of the packet.
    for (at, with) in
        [(5, 0), (5, 21), (5, 255), (14, 255), (15, 0x7f), (15, 0xff), (16, 0x40), (16, 0x7f), (17, 0)]
    {
        let mut wrong = example.clone();
        wrong[at] = with;
        let verdict = inspected(4433, &[&wrong; 3]);
        assert!(verdict.reason >= Reason::Shape, "octet {at} as {with:x}: {verdict:?}");
    }
}

#[test]
fn first_packets_cut_off_anywhere_are_never_certain() {
    let example = example(1, "c300000001088394c8f03e5157080000449e00000002");
    for length in 0..example.len() {
        let verdict = inspected(4433, &[&example[..length]]);
        assert!(verdict.reason >= Reason::Shape, "{length} octets: {verdict:?}");
    }
}
