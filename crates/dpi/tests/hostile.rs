//! What bad input gets: bounded work for each packet, bounded memory whatever comes, and a verdict with a reason in the end.
#![allow(clippy::unwrap_used)]

use dpi::classify::{Confidence, Limits, Reason, assembly};
use dpi::protocols::http::two;
use dpi::protocols::{dns, quic, recognisers, sip, stun, tls};
use dpi::signatures::Bundle;
use dpi::track::Flow;
use dpi::{By, Cause, Event, Inspector, Knowledge, Options, Packet, Protocol, Verdict};
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{IpPacket, PacketBuilder};
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use tables::Nanos;

static KNOWLEDGE: LazyLock<Arc<Knowledge>> = LazyLock::new(|| Arc::new(Knowledge::new(Bundle::built_in())));

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const UE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Questions that one packet may cause. The most that is seen here is 63.
const QUESTIONS: usize = 80;
/// Packets that are looked into of a flow that begins anew as often as it may, under another protocol each time.
const LOOKED_INTO: u64 = 5 * 20;

fn inspector(options: Options) -> Inspector {
    Inspector::with(options, KNOWLEDGE.clone(), 0x5eed, Nanos(0))
}

fn small() -> Options {
    Options { flows: 64, examinations: 16, subscribers: 16, ..Options::default() }
}

fn udp(ue: Ipv4Addr, port: u16, server: Ipv4Addr, server_port: u16, payload: &[u8]) -> Vec<u8> {
    PacketBuilder::new().ipv4(ue, server).udp(port, server_port).build(payload)
}

/// From the subscriber if `up`.
fn tcp(ports: (u16, u16), up: bool, sequence: u32, flags: TcpFlags, payload: &[u8]) -> Vec<u8> {
    let ((source, source_port), (destination, destination_port)) =
        if up { ((UE, ports.0), (SERVER, ports.1)) } else { ((SERVER, ports.1), (UE, ports.0)) };
    let header = TcpHeader { source_port, destination_port, sequence, flags, ..TcpHeader::default() };
    PacketBuilder::new().ipv4(source, destination).tcp(header).build(payload)
}

fn view(bytes: &[u8]) -> Packet<'_> {
    Packet { ip: IpPacket::parse(bytes).unwrap(), bytes, tunnel: None }
}

fn push(inspector: &mut Inspector, now: u64, bytes: &[u8]) {
    inspector.push(Nanos(now), &view(bytes));
}

fn verdicts(inspector: &mut Inspector) -> Vec<Verdict> {
    let events = std::iter::from_fn(|| inspector.poll());
    events
        .filter_map(|it| if let Event::Classified { verdict, .. } = it { Some(verdict) } else { None })
        .collect()
}

/// All flows end; what was known of them, of each once.
fn finish(inspector: &mut Inspector) -> Vec<Verdict> {
    let mut all = verdicts(inspector);
    while inspector.flush_one(Nanos(u64::MAX / 2)) {
        all.extend(verdicts(inspector));
    }
    assert_eq!((inspector.flows(), inspector.assemblies()), ((0, 0), 0));
    all
}

/// Xorshift.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn octets(&mut self, most: usize) -> Vec<u8> {
        let count = self.next() as usize % most + 1;
        (0..count).map(|_| self.next() as u8).collect()
    }
}

#[test]
fn a_packet_causes_so_many_questions_at_most() {
    let mut inspector = inspector(small());
    inspector.explain();
    let ports: Vec<u16> = recognisers().flat_map(|it| it.ports.iter().copied()).collect();
    let (mut chance, mut most) = (Chance(7), 0);
    for flow in 0..4000_u64 {
        let server = ports[chance.next() as usize % ports.len()];
        let client =
            if chance.next() % 4 == 0 { ports[chance.next() as usize % ports.len()] } else { 40_000 };
        let ports = (client, server);
        let (mut sequences, beginning) = ([1, 1], chance.octets(8));
        for _ in 0..chance.next() % 16 {
            // Those who said "perhaps" are asked again, so the same beginning comes again.
            let mut payload = if chance.next() % 2 == 0 { beginning.clone() } else { Vec::new() };
            let longest = [1, 8, 64, 600][chance.next() as usize % 4];
            payload.extend(chance.octets(longest));
            let up = chance.next() % 2 == 0;
            let packet = if flow % 2 == 0 {
                let sequence = &mut sequences[usize::from(up)];
                let packet = tcp(ports, up, *sequence, TcpFlags::ACK, &payload);
                *sequence += payload.len() as u32;
                packet
            } else if up {
                udp(UE, ports.0, SERVER, ports.1, &payload)
            } else {
                udp(SERVER, ports.1, UE, ports.0, &payload)
            };
            push(&mut inspector, flow, &packet);
            let asked = inspector.asked();
            most = most.max(asked.len());
            assert!(asked.len() <= QUESTIONS, "{} of {payload:02x?}", asked.len());
            assert!(asked.iter().all(|it| it.octets <= payload.len().max(assembly::MOST)));
        }
        finish(&mut inspector);
    }
    assert!(most > 40, "{most}: the bound says nothing any more");
}

#[test]
fn a_stream_of_single_octets_is_looked_at_as_long_as_any() {
    let hello = [&b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"[..], &[7; 200]].concat();
    let wanted = [&b"GET /"[..], &[b'x'; 300]].concat();
    for stream in [hello, wanted, vec![0; 300], vec![0x80; 300]] {
        let mut inspector = inspector(small());
        inspector.explain();
        push(&mut inspector, 0, &tcp((40_000, 9999), true, 6, TcpFlags::SYN, b""));
        let mut packets_asked_about = 0;
        for (at, octet) in (7..).zip(&stream) {
            push(&mut inspector, 1, &tcp((40_000, 9999), true, at, TcpFlags::ACK, &[*octet]));
            let asked = inspector.asked().len();
            assert!(asked <= QUESTIONS);
            packets_asked_about += u8::from(asked > 0);
        }
        assert!(packets_asked_about <= Limits::USUAL.packets);
        let found = verdicts(&mut inspector);
        assert_eq!(found.len(), 1, "a verdict after so many packets");
        assert!(inspector.counters().looked_into <= u64::from(Limits::USUAL.behaviour));
        assert_eq!(inspector.assemblies(), 0);
    }
}

#[test]
fn a_stream_that_begins_anew_for_ever_has_an_end() {
    // SOCKS in SOCKS (RFC 1928), STARTTLS again and again (RFC 3207), a proxy behind a proxy.
    let socks: &[(bool, &[u8])] = &[
        (true, b"\x05\x01\0"),
        (false, b"\x05\0"),
        (true, b"\x05\x01\0\x01\xc6\x33\x64\x01\x01\xbb"),
        (false, b"\x05\0\0\x01\0\0\0\0\0\0"),
    ];
    let connect: &[(bool, &[u8])] = &[
        (true, b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        (false, b"HTTP/1.1 200 Connection established\r\n\r\n"),
    ];
    let mail: &[(bool, &[u8])] = &[
        (false, b"220 mail.example ESMTP\r\n"),
        (true, b"EHLO client.example\r\n"),
        (false, b"250-mail.example\r\n250 STARTTLS\r\n"),
        (true, b"STARTTLS\r\n"),
        (false, b"220 go on\r\n"),
    ];
    for (port, script) in [(1080, socks), (8080, connect), (25, mail)] {
        let mut inspector = inspector(small());
        let mut sequences = [1, 1];
        for _ in 0..200 {
            for (up, said) in script {
                let sequence = &mut sequences[usize::from(*up)];
                push(&mut inspector, 1, &tcp((40_000, port), *up, *sequence, TcpFlags::ACK, said));
                *sequence += said.len() as u32;
            }
        }
        assert!(inspector.counters().looked_into <= LOOKED_INTO, "{}", inspector.counters().looked_into);
        let [verdict] = verdicts(&mut inspector)[..] else { panic!("one verdict") };
        assert!(verdict.protocol.is_some() && verdict.over.is_some(), "{verdict:?}");
    }
}

#[test]
fn lists_in_messages_are_walked_once_and_end() {
    // Names that point to themselves, to each other, and back through the whole message (RFC 1035 §4.1.4).
    let mut room = [0; 255];
    let mut answer = b"\0\x07\x81\x80\0\0\xff\xff\0\0\0\0".to_vec();
    for at in 0..1000_u16 {
        let back = if at < 2 { 12 } else { answer.len() as u16 - 14 };
        answer.extend((0xc000 | (back & 0x3fff)).to_be_bytes());
        answer.extend(b"\0\x05\0\x01\0\0\0\0\0\x02");
        answer.extend((0xc000 | ((answer.len() as u16) & 0x3fff)).to_be_bytes());
    }
    let message = dns::Message::parse(&answer).unwrap();
    assert!(message.answers().count() <= 256);
    for record in message.answers() {
        assert!(record.alias().is_none_or(|it| it.write(&mut room).is_none()), "it leads to itself");
        assert_eq!(record.name.write(&mut room), None, "no name, however far back");
    }

    // Extensions without content, as many as fit; and shares of keys.
    let many = [0xab, 0xcd, 0, 0].repeat(16_000);
    let hello =
        [&b"\x03\x03"[..], &[7; 32], b"\0\0\x02\x13\x01\x01\0", &(many.len() as u16).to_be_bytes(), &many]
            .concat();
    let hello = tls::ClientHello::parse(&hello, false).unwrap();
    assert_eq!((hello.extensions().count(), hello.server_name()), (16_000, None));
    assert_eq!(tls::ja4::ja4(&hello, tls::ja4::Over::Tcp).len(), 36);

    // DER in DER in DER: lengths that say more than there is, and names without end (X.690 §8.1.3).
    let nested: Vec<u8> = (0..4000_u16)
        .rev()
        .flat_map(|left| [&[0x30, 0x82][..], &(left * 4).to_be_bytes()].concat())
        .collect();
    assert!(tls::certificate::Names::parse(&nested).is_none());
    assert!(tls::certificate::Names::parse(&[0x30, 0x80, 0x30, 0x80]).is_none(), "indefinite");
    assert!(tls::certificate::Names::parse(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).is_none());

    // Empty frames (RFC 9113 §4.1), attributes (RFC 8489 §14), transport parameters, packets that share a datagram.
    assert_eq!(two::frames(&[0; 9 * 1000]).count(), 1000);
    let attributes = [&b"\0\x01\x0f\xa0\x21\x12\xa4\x42abcdefghijkl"[..], &[0; 4000]].concat();
    assert!(stun::Message::parse(&attributes).is_none_or(|it| it.attributes().count() <= 1000));
    assert_eq!(quic::parameters(&[0; 4000]).count(), 2000);
    assert!(sip::Sdp::new(&b"m=".repeat(4000)).media().count() <= 4000);
}

#[test]
fn header_fields_whose_length_never_ends_name_nobody() {
    // RFC 7541 §5.1: numbers of more than five octets, strings longer than the block, Huffman padding only.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let blocks = [
        vec![0xff; 2000],
        [vec![0x41, 0x7f], vec![0xff; 1000]].concat(),
        [vec![0x41, 0xff], vec![0x80; 900]].concat(),
        vec![0x3f; 900],
    ];
    for block in blocks {
        let mut inspector = inspector(Options { tells_names: true, ..small() });
        let frame = [&[0][..], &(block.len() as u16).to_be_bytes(), &[1, 5, 0, 0, 0, 1], &block].concat();
        push(&mut inspector, 1, &tcp((40_000, 80), true, 1, TcpFlags::ACK, &[&preface[..], &frame].concat()));
        let events: Vec<_> = std::iter::from_fn(|| inspector.poll()).collect();
        assert!(!events.iter().any(|it| matches!(it, Event::Found { sheet, .. } if !sheet.host.is_empty())));
        assert_eq!(inspector.flows().0, 1);
    }
}

/// How many half-open flows.
const FLOOD: u32 = 1_000_000;

#[test]
fn half_open_flows_stay_within_what_the_options_say() {
    let options =
        Options { flows: 1 << 15, examinations: 1 << 12, subscribers: 1 << 10, ..Options::default() };
    let (flows, examinations, most) =
        (options.flows as usize, options.examinations as usize, options.most_memory());
    let mut inspector = inspector(options);
    let (mut known, mut classified, mut ended) = (HashMap::<Flow, Verdict>::new(), 0_u64, 0_u64);
    let mut causes = HashSet::new();
    let mut take = |inspector: &mut Inspector| {
        while let Some(event) = inspector.poll() {
            match event {
                Event::Classified { flow, verdict } => {
                    assert_eq!(known.insert(flow, verdict), None, "told twice: {flow:?}");
                    classified += 1;
                }
                Event::Ended { flow, verdict, cause, .. } => {
                    assert_eq!(known.remove(&flow), Some(verdict));
                    assert!([Reason::Port, Reason::Silent].contains(&verdict.reason), "{verdict:?}");
                    causes.insert(cause);
                    ended += 1;
                }
                Event::Found { .. } | Event::Decoded { .. } | Event::Measured { .. } => {}
            }
        }
        (classified, ended)
    };
    let syn = |number: u32| {
        let ue = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + number % 1000);
        let header = TcpHeader {
            source_port: (number / 1000) as u16,
            destination_port: if number.is_multiple_of(2) { 443 } else { 9999 },
            flags: TcpFlags::SYN,
            ..TcpHeader::default()
        };
        PacketBuilder::new().ipv4(ue, SERVER).tcp(header).build(b"")
    };
    for number in 0..FLOOD {
        // A hundred thousand a second.
        push(&mut inspector, u64::from(number) * 10_000, &syn(number));
        take(&mut inspector);
        if number % 1024 == 0 {
            assert!(inspector.memory() <= most, "{} of {most}", inspector.memory());
        }
    }
    let (kept, examined) = inspector.flows();
    let counters = *inspector.counters();
    assert_eq!((kept, examined), (flows, examinations));
    assert_eq!((counters.flows, counters.untracked, counters.lost_results), (FLOOD.into(), 0, 0));
    assert_eq!(counters.evicted, u64::from(FLOOD) - flows as u64);
    assert_eq!(counters.cut_short, u64::from(FLOOD) - examinations as u64, "the oldest first, all by then");
    // Of those that are left, the newest are looked into: the oldest went first.
    while inspector.flush_one(Nanos(u64::from(FLOOD) * 10_000)) {
        take(&mut inspector);
    }
    assert_eq!(take(&mut inspector), (FLOOD.into(), FLOOD.into()));
    assert_eq!(causes, HashSet::from([Cause::Evicted, Cause::Flushed]));
    assert!(inspector.memory() <= most);
}

#[test]
fn the_oldest_makes_room_and_its_verdict_has_a_reason() {
    let mut inspector = inspector(Options { flows: 8, ..small() });
    for port in 1..=9 {
        push(&mut inspector, u64::from(port) * Nanos::SECOND, &tcp((port, 443), true, 1, TcpFlags::SYN, b""));
    }
    let events: Vec<_> = std::iter::from_fn(|| inspector.poll()).collect();
    let [Event::Classified { verdict, .. }, Event::Ended { flow, cause: Cause::Evicted, .. }] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (flow.ends.subscriber_port, verdict.protocol, verdict.reason),
        (1, Some(Protocol::Tls), Reason::Port)
    );
    assert_eq!(verdict.reason.confidence(), Confidence::Guess);
}

/// A question for www.youtube.com.
const QUESTION: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07youtube\x03com\0\0\x01\0\x01";

/// An answer that says where www.youtube.com is.
fn answer(address: Ipv4Addr) -> Vec<u8> {
    let front = b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x03www\x07youtube\x03com\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\0\x1e\0\x04";
    [&front[..], &address.octets()].concat()
}

#[test]
fn what_one_subscriber_does_pushes_out_nothing_that_others_have_asked_for() {
    let mut inspector =
        inspector(Options { flows: 256, examinations: 64, subscribers: 4, ..Options::default() });
    let other = Ipv4Addr::new(10, 0, 0, 2);
    let video = Ipv4Addr::new(203, 0, 113, 9);
    push(&mut inspector, 1, &udp(other, 40_000, SERVER, 53, QUESTION));
    push(&mut inspector, 2, &udp(SERVER, 53, other, 40_000, &answer(video)));
    // All ports to all ports, and as many names as anybody can ask for.
    for number in 0..20_000_u32 {
        let now = 3 + u64::from(number);
        push(&mut inspector, now, &tcp((number as u16, 443), true, 1, TcpFlags::SYN, b""));
        let address = Ipv4Addr::from(0xc800_0000 + number);
        push(&mut inspector, now, &udp(UE, number as u16, SERVER, 53, QUESTION));
        push(&mut inspector, now, &udp(SERVER, 53, UE, number as u16, &answer(address)));
        while inspector.poll().is_some() {}
    }
    let header =
        TcpHeader { source_port: 1, destination_port: 443, flags: TcpFlags::SYN, ..TcpHeader::default() };
    push(&mut inspector, 30_000, &PacketBuilder::new().ipv4(other, video).tcp(header).build(b""));
    let verdict = finish(&mut inspector).into_iter().find(|it| it.application.is_some());
    let application = verdict.and_then(|it| it.application).unwrap();
    assert_eq!(&*KNOWLEDGE.bundle.application(application).name, "youtube");
}

/// What a first packet to `video` is taken for, after these packets.
fn foreseen(before: &[Vec<u8>], video: Ipv4Addr) -> Option<String> {
    let mut inspector = inspector(small());
    for (at, bytes) in before.iter().enumerate() {
        push(&mut inspector, at as u64 + 1, bytes);
    }
    let header =
        TcpHeader { source_port: 1, destination_port: 9999, flags: TcpFlags::SYN, ..TcpHeader::default() };
    push(&mut inspector, 100, &PacketBuilder::new().ipv4(UE, video).tcp(header).build(b""));
    let verdicts = finish(&mut inspector);
    let syn = verdicts.iter().find(|it| it.protocol != Some(Protocol::Dns)).unwrap();
    syn.application.map(|it| KNOWLEDGE.bundle.application(it).name.to_string())
}

/// RFC 5452 §9.1: whoever sends an answer must know the question, its number, and both ends.
#[test]
fn forged_answers_teach_nothing() {
    let video = Ipv4Addr::new(203, 0, 113, 9);
    let question = udp(UE, 40_000, SERVER, 53, QUESTION);
    let answered = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = answer(video);
        change(&mut bytes);
        udp(SERVER, 53, UE, 40_000, &bytes)
    };
    let good = answered(&|_| {});
    let with = |answer: Vec<u8>| foreseen(&[question.clone(), answer], video);
    assert_eq!(with(good.clone()).as_deref(), Some("youtube"));
    assert_eq!(foreseen(std::slice::from_ref(&good), video), None, "nobody has asked");
    assert_eq!(with(answered(&|it| it[0] ^= 1)), None, "another number");
    assert_eq!(
        with(answered(&|it| it[16..23].copy_from_slice(b"\x07youtube"[1..].as_ref()))),
        None,
        "no name"
    );
    assert_eq!(with(answered(&|it| it[30] = 28)), None, "another type was asked for");
    assert_eq!(with(answered(&|it| it[5] = 0)), None, "without the question");
    assert_eq!(with(udp(SERVER, 53, UE, 40_001, &answer(video))), None, "to another port");
    assert_eq!(
        with(udp([198, 51, 100, 8].into(), 53, UE, 40_000, &answer(video))),
        None,
        "from another server"
    );
    assert_eq!(with(udp(UE, 40_000, SERVER, 53, &answer(video))), None, "by the subscriber itself");
    let other = Ipv4Addr::new(203, 0, 113, 10);
    let second = udp(SERVER, 53, UE, 40_000, &answer(other));
    assert_eq!(foreseen(&[question, good, second], other), None, "an answer after the answer");
}

#[test]
fn results_that_nobody_polls_are_counted() {
    let options = Options { tells_names: true, ..small() };
    let most = options.most_memory();
    let mut inspector = inspector(options);
    for number in 0..20_000_u32 {
        let payload = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
        push(&mut inspector, u64::from(number), &udp(UE, number as u16, SERVER, 53, payload));
    }
    let memory = inspector.memory();
    assert!(memory <= most, "{memory} of {most}");
    let told = std::iter::from_fn(|| inspector.poll()).count() as u64;
    let lost = inspector.counters().lost_results;
    assert!(told <= 4096 && lost > 30_000, "{told} told, {lost} lost");
    let (flows, counters) = (inspector.flows(), *inspector.counters());
    // Found, classified, ended: of every flow, except that those that are left have not ended, nor all a verdict.
    let due = counters.flows + (counters.flows - flows.1 as u64) + counters.evicted;
    assert!(due.abs_diff(told + lost) <= flows.1 as u64, "{due} due, {told} told, {lost} lost");
}

#[test]
fn what_is_decoded_and_measured_stays_within_what_the_options_say() {
    let options = Options { decodes: true, measures: true, watched: 64, flows: 4096, ..small() };
    let most = options.most_memory();
    let mut inspector = inspector(options);
    // Headers that never end, holes that are never filled, and questions; nobody polls.
    let header = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 1000]].concat();
    for round in 0..4_u32 {
        for port in 0..2000 {
            let sequence = 1 + round * 1020;
            push(&mut inspector, round.into(), &tcp((port, 80), true, sequence, TcpFlags::ACK, &header));
            push(&mut inspector, round.into(), &tcp((port, 80), false, sequence * 2, TcpFlags::ACK, &header));
            let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
            push(&mut inspector, round.into(), &udp(UE, port, SERVER, 53, question));
        }
        let memory = inspector.memory();
        assert!(memory <= most, "{memory} of {most}");
    }
    let told: Vec<_> = std::iter::from_fn(|| inspector.poll()).collect();
    assert!(told.iter().any(|it| matches!(it, Event::Decoded { .. })));
    assert!(told.iter().any(|it| matches!(it, Event::Measured { .. })), "those who had to go are told");
    let mut measured = 0;
    while inspector.flush_one(Nanos(9)) {
        measured +=
            std::iter::from_fn(|| inspector.poll()).filter(|it| matches!(it, Event::Measured { .. })).count();
    }
    assert_eq!(measured, 64, "each that is left, once");
}

#[test]
fn messages_in_pieces_share_few_assemblies() {
    let options = Options { flows: 4096, examinations: 4096, ..small() };
    let most = options.most_memory();
    let mut inspector = inspector(options);
    // The beginning of a long ClientHello, of which the rest never comes; as it grows, it is put together.
    let hello = [&b"\x16\x03\x01\x3f\0\x01\0\x3e\xfc\x03\x03"[..], &[7; 700]].concat();
    for round in 0..9_u32 {
        for port in 0..2000 {
            let packet = tcp((port, 443), true, 1 + round * hello.len() as u32, TcpFlags::ACK, &hello);
            push(&mut inspector, u64::from(round), &packet);
        }
        while inspector.poll().is_some() {}
        assert!(inspector.assemblies() <= 32, "{} for {most} octets", inspector.assemblies());
        assert!(inspector.memory() <= most);
    }
    finish(&mut inspector);
}

#[test]
fn a_table_without_room_forgets_whom_it_did_not_take() {
    let mut inspector = inspector(Options { flows: 0, subscribers: 2, ..small() });
    for last in 0..200 {
        let packet = udp([10, 0, 0, last].into(), 1, SERVER, 53, b"x");
        push(&mut inspector, last.into(), &packet);
    }
    assert_eq!((inspector.counters().untracked, inspector.flows()), (200, (0, 0)));
    assert!(inspector.subscribers().len() <= 2);
    inspector.tick(Nanos(3600 * Nanos::SECOND));
    assert_eq!(inspector.subscribers().len(), 0, "nobody stays who has no flow");
}

#[test]
fn in_a_burst_nobody_gets_another_ones_number() {
    let mut inspector = inspector(Options { subscribers: 1, ..small() });
    let (first, second) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    push(&mut inspector, 1, &udp(first, 7, SERVER, 9999, b"hello"));
    finish(&mut inspector);
    // The first one is known, and has no flow: the second one takes its place before its packet is served.
    let packets = [udp(second, 7, SERVER, 9999, b"hello"), udp(first, 7, SERVER, 9999, b"other")];
    inspector.push_burst(Nanos(2), &[view(&packets[0]), view(&packets[1])]);
    assert_eq!(inspector.counters().untracked, 1, "there is no room for the first one any more");
    while inspector.flush_one(Nanos(3)) {}
    let ended: Vec<_> = std::iter::from_fn(|| inspector.poll())
        .filter_map(|it| {
            if let Event::Ended { flow, summary, .. } = it {
                Some((flow.ends.subscriber, summary.packets))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(ended, [(second.into(), [1, 0])]);
}

#[test]
fn by_tunnel_the_limits_are_the_same() {
    let options = Options { by: By::Tunnel, ..small() };
    let most = options.most_memory();
    let mut inspector = inspector(options);
    for number in 0..2000_u32 {
        let bytes = udp(UE, 40_000, SERVER, 9999, b"\x01\x02\x03");
        inspector.push(Nanos(number.into()), &Packet { tunnel: Some(number), ..view(&bytes) });
        assert!(inspector.memory() <= most);
        while inspector.poll().is_some() {}
    }
    assert!(inspector.subscribers().len() <= 16);
    assert_eq!(inspector.counters().flows + inspector.counters().untracked, 2000);
}
