//! Messages, cut and mixed in all ways.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::protocols::tls::tests::{client_hello, records, server_flight};
use crate::reorder::Segment;
use packet::tcp::TcpFlags;
use proptest::prelude::*;

/// A flow that is decoded.
struct Flow {
    decoder: Decoder,
    conversation: Conversation,
    server_port: u16,
    sequences: [u32; 2],
}

impl Flow {
    fn new(server_port: u16) -> Self {
        Self::with(server_port, Limits::USUAL, None)
    }

    fn with(server_port: u16, limits: Limits, mask: Option<Mask>) -> Self {
        let decoder = Decoder::new(limits, mask);
        Self { decoder, conversation: Conversation::default(), server_port, sequences: [1, 1] }
    }

    fn segment(&mut self, side: Side, sequence: u32, flags: TcpFlags, payload: &[u8]) {
        let segment = Segment { sequence, flags, payload, missing: 0 };
        let piece = Piece::segment(side, self.server_port, segment);
        self.decoder.push(&mut self.conversation, &piece, Nanos(0));
    }

    /// The next octets of this side, in segments of so many.
    fn says(&mut self, side: Side, octets: &[u8], most: usize) -> Vec<Decoded> {
        let mut all = Vec::new();
        for piece in octets.chunks(most) {
            let sequence = self.sequences[side as usize];
            self.segment(side, sequence, TcpFlags::ACK, piece);
            self.sequences[side as usize] = sequence.wrapping_add(piece.len() as u32);
            all.extend(std::iter::from_fn(|| self.decoder.poll()));
        }
        all
    }

    fn client(&mut self, octets: &[u8]) -> Vec<Decoded> {
        self.says(Side::Client, octets, usize::MAX)
    }

    fn server(&mut self, octets: &[u8]) -> Vec<Decoded> {
        self.says(Side::Server, octets, usize::MAX)
    }

    fn datagram(&mut self, side: Side, payload: &[u8], known: Option<Protocol>) -> Vec<Decoded> {
        let piece = Piece::datagram(side, self.server_port, payload, known);
        self.decoder.push(&mut self.conversation, &piece, Nanos(0));
        std::iter::from_fn(|| self.decoder.poll()).collect()
    }

    /// Nothing is held after the end.
    fn ends(mut self) {
        self.decoder.close(&mut self.conversation);
        assert_eq!(self.decoder.desk.held, 0);
    }
}

fn lines(all: &[Decoded]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

const GET: &[u8] = b"GET /a?b HTTP/1.1\r\nHost: www.example.org:8080\r\nUser-Agent: test 1\r\n\r\n";

#[test]
fn all_requests_of_a_connection_are_told_however_they_are_cut() {
    let asked = [
        GET,
        b"POST /b HTTP/1.1\r\nhost: x.example\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nGET /",
        b"POST /c HTTP/1.1\r\nHost: x.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4;x=y\r\nabcd\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
        b"\r\nHEAD /d HTTP/1.1\r\nHost: x.example\r\n\r\n",
        b"GET /e HTTP/1.0\r\n\r\n",
    ]
    .concat();
    let answered = [
        &b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 17\r\nServer: s\r\n\r\nHTTP/1.1 404 No\r\n"[..],
        b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHTTP/\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.0 302 Found\r\n\r\nHTTP/1.1 500 is a body to the end\r\n\r\n",
    ]
    .concat();
    for most in [1, 2, 3, 7, 50, usize::MAX] {
        let mut flow = Flow::new(8080);
        let said = lines(&flow.says(Side::Client, &asked, most));
        assert_eq!(
            said,
            [
                "http-request number=1 method=GET url=http://www.example.org:8080/a?b host=www.example.org agent=\"test 1\"",
                "http-request number=2 method=POST url=http://x.example/b host=x.example content=text/plain",
                "http-request number=3 method=POST url=http://x.example/c host=x.example",
                "http-request number=4 method=HEAD url=http://x.example/d host=x.example",
                "http-request number=5 method=GET url=/e",
            ],
            "{most}"
        );
        let said = lines(&flow.says(Side::Server, &answered, most));
        assert_eq!(
            said,
            [
                "http-response number=1 status=100",
                "http-response number=1 status=200 content=text/html length=17 server=s",
                "http-response number=2 status=204 length=7",
                "http-response number=3 status=200",
                "http-response number=4 status=200 length=1000",
                "http-response number=5 status=302",
            ],
            "{most}"
        );
        assert_eq!(flow.decoder.counters().given_up, 0);
        flow.ends();
    }
}

#[test]
fn segments_in_any_order_say_the_same() {
    let mut flow = Flow::new(80);
    let (first, rest) = GET.split_at(20);
    let (second, third) = rest.split_at(20);
    flow.segment(Side::Client, 0, TcpFlags::SYN, b"");
    flow.segment(Side::Client, 41, TcpFlags::ACK, third);
    flow.segment(Side::Client, 21, TcpFlags::ACK, second);
    assert_eq!(flow.decoder.poll(), None);
    flow.segment(Side::Client, 1, TcpFlags::ACK, first);
    assert_eq!(std::iter::from_fn(|| flow.decoder.poll()).count(), 1);
    // Again, it is nothing new.
    flow.segment(Side::Client, 1, TcpFlags::ACK, GET);
    assert_eq!(flow.decoder.poll(), None);
    flow.ends();
}

#[test]
fn a_gap_in_a_body_costs_nothing_and_one_in_a_header_that_message() {
    let mut flow = Flow::new(80);
    flow.says(Side::Server, b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nxxxx", usize::MAX);
    let segment = |missing, sequence, payload| Segment { sequence, flags: TcpFlags::ACK, payload, missing };
    let next = flow.sequences[1];
    let cut = Piece::segment(Side::Server, 80, segment(4996, next, &b""[..]));
    flow.decoder.push(&mut flow.conversation, &cut, Nanos(0));
    flow.sequences[1] = next + 4996;
    let said = flow.server(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(lines(&said), ["http-response status=404 length=0"]);
    assert_eq!(flow.decoder.counters().gaps, 0);
    // Now the next one's header is cut: what follows it in the segment is lost, the next segment begins anew.
    let next = flow.sequences[1];
    let cut = Piece::segment(Side::Server, 80, segment(10, next, &b"HTTP/1.1 "[..]));
    flow.decoder.push(&mut flow.conversation, &cut, Nanos(0));
    flow.sequences[1] = next + 19;
    assert_eq!(flow.server(b"whatever\r\n\r\n"), []);
    assert_eq!(flow.server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").len(), 1);
    assert_eq!(flow.decoder.counters().gaps, 1);
    flow.ends();
}

#[test]
fn what_the_receiver_has_is_not_waited_for() {
    let mut flow = Flow::new(80);
    // A sign of life, one octet behind, is no beginning.
    flow.segment(Side::Client, 99, TcpFlags::ACK, b"");
    flow.segment(Side::Client, 100, TcpFlags::ACK, GET);
    assert!(flow.decoder.poll().is_some());
    // The next request was lost on the way to us, but not to the server.
    let next = 100 + GET.len() as u32;
    flow.segment(Side::Client, next + 50, TcpFlags::ACK, GET);
    assert_eq!(flow.decoder.poll(), None);
    let segment = Segment { sequence: 1, flags: TcpFlags::ACK, payload: b"", missing: 0 };
    let answer = Piece::segment(Side::Server, 80, segment).acknowledging(next + 50);
    flow.decoder.push(&mut flow.conversation, &answer, Nanos(0));
    let told = flow.decoder.poll();
    assert!(matches!(&told, Some(Decoded::Request(it)) if it.host == "www.example.org"), "{told:?}");
    flow.ends();
}

#[test]
fn so_many_messages_of_a_flow_are_decoded() {
    let mut flow = Flow::with(80, Limits { messages: 7, ..Limits::USUAL }, None);
    let mut count = 0;
    for _ in 0..20 {
        count += flow.client(GET).len();
    }
    assert_eq!(count, 7);
    assert!(flow.conversation.ways[0].reader.is_over());
    flow.ends();
    // However many are in one segment, or in datagrams, which know of no end.
    let mut flow = Flow::with(80, Limits { messages: 7, ..Limits::USUAL }, None);
    assert_eq!(flow.client(&GET.repeat(20)).len(), 7);
    assert_eq!(flow.decoder.counters().lost, 13);
    let mut flow = Flow::with(53, Limits { messages: 7, ..Limits::USUAL }, None);
    let told: usize = (0..20).map(|_| flow.datagram(Side::Client, QUESTION, Some(Protocol::Dns)).len()).sum();
    assert_eq!(told, 7);
    flow.ends();
}

#[test]
fn what_is_held_is_bounded_for_each_stream_and_for_all() {
    let mut flow = Flow::new(80);
    let long = [b"GET / HTTP/1.1\r\nX: ", &[b'x'; HELD][..]].concat();
    flow.says(Side::Client, &long, 1000);
    assert_eq!((flow.decoder.desk.held, flow.decoder.counters().given_up), (0, 1));
    let mut flow = Flow::with(80, Limits { octets: 300, ..Limits::USUAL }, None);
    let mut others: Vec<_> = (0..10).map(|_| Conversation::default()).collect();
    for other in &mut others {
        let segment = Segment { sequence: 1, flags: TcpFlags::ACK, payload: &long[..100], missing: 0 };
        flow.decoder.push(other, &Piece::segment(Side::Client, 80, segment), Nanos(0));
    }
    assert_eq!((flow.decoder.desk.held, flow.decoder.counters().given_up), (300, 7));
    for other in &mut others {
        flow.decoder.close(other);
    }
    flow.ends();
}

#[test]
fn hellos_and_certificates_are_told() {
    let hello = client_hello(Some("www.example.org"), &["h2", "http/1.1"], 900);
    for (most_record, most) in [(16384, 1400), (300, 100), (16384, 1)] {
        let mut flow = Flow::new(443);
        let said = flow.says(Side::Client, &records(&hello, most_record), most);
        let [Decoded::ClientHello(told)] = &said[..] else { panic!("{said:?}") };
        assert_eq!((told.host.as_str(), told.version), ("www.example.org", 0x0304));
        assert_eq!(told.protocols, ["h2", "http/1.1"]);
        assert!(told.ja4.starts_with("t13d0206h2_"), "{}", told.ja4);
        let flight = server_flight(3, "*.example.org", "example.net");
        let said = lines(&flow.says(Side::Server, &records(&flight, most_record), most));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("server-hello version=\"TLS 1.2\" cipher=0x"), "{said:?}");
        assert_eq!(said[1], "certificate name=*.example.org names=example.net");
        // What follows is ciphered, and of no use.
        assert!(flow.conversation.ways.iter().all(|it| it.reader.is_over()));
        flow.ends();
    }
}

#[test]
fn tls_is_found_where_it_begins_later() {
    let hello = records(&client_hello(Some("mail.example.org"), &[], 0), 16384);
    for before in [&b"EHLO me\r\n"[..], b"CONNECT mail.example.org:443 HTTP/1.1\r\n\r\n", &[5, 1, 0]] {
        let mut flow = Flow::new(25);
        flow.client(before);
        flow.client(b"STARTTLS\r\n");
        let said = flow.client(&hello);
        assert!(matches!(&said[..], [Decoded::ClientHello(it)] if it.host == "mail.example.org"), "{said:?}");
        flow.ends();
    }
    // Not for ever.
    let mut flow = Flow::new(25);
    for _ in 0..100 {
        flow.client(b"nonsense\r\n");
    }
    assert_eq!(flow.client(&hello), []);
}

/// RFC 1035 §4.1: a question for www.example.org, and an answer with an alias and an address.
const QUESTION: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x02\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01\
    \xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01a\xc0\x10\xc0\x2d\0\x01\0\x01\0\0\0\x1e\0\x04\xc6\x33\x64\x07";

#[test]
fn names_are_told_over_datagrams_and_streams() {
    let told = [
        "dns-question id=4660 name=www.example.org type=A",
        "dns-answer id=4660 name=www.example.org type=A code=NOERROR answers=a.example.org,198.51.100.7 ttl=30",
    ];
    let mut flow = Flow::new(53);
    let mut said = flow.datagram(Side::Client, QUESTION, Some(Protocol::Dns));
    said.extend(flow.datagram(Side::Server, ANSWER, Some(Protocol::Dns)));
    assert_eq!(lines(&said), told);
    // Nobody knows yet that these are names.
    assert_eq!(flow.datagram(Side::Client, QUESTION, None), []);
    let framed = |message: &[u8]| [&(message.len() as u16).to_be_bytes(), message].concat();
    for most in [1, 5, usize::MAX] {
        let mut flow = Flow::new(53);
        let mut said = flow.says(Side::Client, &[framed(QUESTION), framed(QUESTION)].concat(), most);
        assert_eq!(said.len(), 2);
        said.truncate(1);
        said.extend(flow.says(Side::Server, &framed(ANSWER), most));
        assert_eq!(lines(&said), told, "{most}");
        flow.ends();
    }
}

const INVITE: &str = "INVITE sip:+12015550123@b.example;user=phone SIP/2.0\r\nVia: SIP/2.0/UDP x\r\n\
    From: \"A 4915123456789\" <sip:4915123456789@a.example>;tag=1\r\nt: <tel:+1-201-555-0123;phone-context=+49>\r\n\
    i: 4915123456789-7@192.0.2.1\r\nCSeq: 1 INVITE\r\nUser-Agent: phone 4915123456789\r\nc: application/sdp\r\n";
const SDP: &str = "v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 49172 RTP/AVP 0 96\r\na=rtpmap:96 opus/48000/2\r\n";

fn invite() -> String {
    format!("{INVITE}l: {}\r\n\r\n{SDP}", SDP.len())
}

#[test]
fn calls_are_told_over_datagrams_and_streams() {
    let told = "sip method=INVITE from=sip:4915123456789@a.example to=tel:+1-201-555-0123 \
                call=4915123456789-7@192.0.2.1 agent=\"phone 4915123456789\" media=audio 192.0.2.1:49172 0 96:opus/48000/2";
    let mut flow = Flow::new(5060);
    assert_eq!(lines(&flow.datagram(Side::Client, invite().as_bytes(), None)), [told]);
    let busy = b"SIP/2.0 486 Busy Here\r\nCSeq: 1 INVITE\r\nCall-ID: x\r\n\r\n";
    let said = flow.datagram(Side::Server, busy, Some(Protocol::Sip));
    assert_eq!(lines(&said), ["sip method=INVITE status=486 call=x"]);
    for most in [1, 100, usize::MAX] {
        let mut flow = Flow::new(5060);
        let two = [invite(), "\r\n\r\n".to_owned(), invite()].concat();
        assert_eq!(lines(&flow.says(Side::Client, two.as_bytes(), most)), [told, told], "{most}");
        flow.ends();
    }
}

#[test]
fn frames_between_messages_of_rtsp_are_passed_over() {
    let mut flow = Flow::new(554);
    let said = [
        &b"PLAY rtsp://cam.example/a RTSP/1.0\r\nCSeq: 1\r\n\r\n$\0\0\x04abcd$\x01\0\0"[..],
        b"TEARDOWN rtsp://cam.example/a RTSP/1.0\r\nCSeq: 2\r\n\r\n",
    ]
    .concat();
    for most in [1, 10, usize::MAX] {
        let told = lines(&Flow::new(554).says(Side::Client, &said, most));
        assert_eq!(told.len(), 2, "{most}: {told:?}");
        assert_eq!(told[1], "rtsp method=TEARDOWN url=rtsp://cam.example/a");
    }
    assert_eq!(lines(&flow.server(b"RTSP/1.0 200 OK\r\nServer: s\r\n\r\n")), ["rtsp status=200 agent=s"]);
}

#[test]
fn behind_a_mask_no_digit_of_a_party_is_left() {
    let mask = Mask::new(0x5eed);
    let mut flow = Flow::with(5060, Limits::USUAL, Some(mask.clone()));
    let said = lines(&flow.datagram(Side::Client, invite().as_bytes(), None));
    let [line] = &said[..] else { panic!("{said:?}") };
    for digits in ["4915", "123456", "2015", "201-555", "0123"] {
        assert!(!line.contains(digits), "{digits} in {line}");
    }
    assert!(line.contains("@a.example") && line.contains("192.0.2.1:49172"), "{line}");
    // The same party is the same, and others are others; another mask says something else.
    assert_eq!(mask.party("sip:1@a.example"), mask.party("sip:1;x=y@a.example"));
    assert_ne!(mask.party("sip:1@a.example"), mask.party("sip:2@a.example"));
    assert_ne!(mask.party("sip:1@a.example"), Mask::new(1).party("sip:1@a.example"));
    for party in [
        "4915",
        "tel:4915",
        "sip:4915",
        "sip:4915:secret@a.example",
        "A 4915",
        "sip:+4915;user=phone",
        "x:4915",
    ] {
        let hidden = mask.party(party);
        assert!(!hidden.bytes().any(|it| it.is_ascii_digit()), "{party}: {hidden}");
    }
    assert_eq!(mask.party("sip:192.0.2.1:5060"), "sip:192.0.2.1:5060");
    for (url, hidden) in [
        ("http://a.example/x?msisdn=4915123456789&y=12", "http://a.example/x?msisdn=*&y=12"),
        ("/x/4915123", "/x/*"),
        ("http://4915123456789.a.example/", "http://*.a.example/"),
    ] {
        assert_eq!(mask.url(url), hidden);
    }
    for url in ["http://4915:pw@a.example/", "rtsp://49:15@cam.example/4915123456", "sip:4915@x", "tel:4915"]
    {
        let hidden = mask.url(url);
        assert!(!hidden.bytes().any(|it| it.is_ascii_digit()), "{url}: {hidden}");
    }
    for name in ["4915123", "9.8.7.6.5.4.9.4.e164.arpa", "+49-15"] {
        assert!(!mask.name(name).starts_with(['4', '9', '+']), "{name}");
    }
    assert_eq!((mask.name("a1.example"), mask.name("192.0.2.1")), ("a1.example".into(), "192.0.2.1".into()));
    flow.ends();
}

#[test]
fn a_hello_in_several_datagrams_is_told_once() {
    let mut flow = Flow::new(443);
    let datagrams = crate::protocols::tls::tests::datagrams(30);
    assert!(datagrams.len() > 1);
    let mut said = Vec::new();
    for datagram in datagrams.iter().chain(&datagrams) {
        said.extend(flow.datagram(Side::Client, datagram, Some(Protocol::Dtls)));
    }
    let [Decoded::ClientHello(told)] = &said[..] else { panic!("{said:?}") };
    assert_eq!(told.over, Over::Dtls);
    flow.ends();
    // In two Initials, the later one first.
    let mut flow = Flow::new(443);
    let [first, second] = crate::protocols::quic::tests::two_initials("www.example.org");
    assert_eq!(flow.datagram(Side::Client, &second, None), []);
    let said = flow.datagram(Side::Client, &first, None);
    let [Decoded::ClientHello(told)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((told.over, told.host.as_str()), (Over::Quic, "www.example.org"));
    assert!(told.ja4.starts_with("q13d"), "{}", told.ja4);
    assert_eq!(flow.datagram(Side::Client, &first, None), []);
    flow.ends();
}

proptest! {
    #[test]
    fn whatever_comes_is_read_without_a_panic_and_nothing_is_left(
        parts in prop::collection::vec((any::<bool>(), 0..12_usize, prop::collection::vec(any::<u8>(), 0..40), any::<u8>()), 0..30),
        port in prop::sample::select(vec![53, 80, 443, 554, 5060]),
    ) {
        let mut flow = Flow::with(port, Limits { octets: 20_000, ..Limits::USUAL }, Some(Mask::new(1)));
        let pieces: [&[u8]; 12] = [
            GET, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"ffffffffffffffff\r\n", b"HTTP/1.1 200 OK\r\n",
            b"Content-Length: 99999999999999999999\r\n\r\n", b"\r\n\r\n", &[22, 3, 1, 0x48, 0, 1, 0], b"$\0\xff\xff", QUESTION, ANSWER,
            b"SIP/2.0 200 OK\r\nl: 18446744073709551615\r\n\r\n", b"",
        ];
        for (client, piece, noise, gap) in parts {
            let side = if client { Side::Client } else { Side::Server };
            let octets = [pieces[piece], &noise].concat();
            if gap % 5 == 0 {
                flow.sequences[side as usize] = flow.sequences[side as usize].wrapping_add(gap.into());
            }
            flow.says(side, &octets, usize::from(gap % 60) + 1);
            flow.datagram(side, &octets, [None, Some(Protocol::Dns), Some(Protocol::Sip)][piece % 3]);
            prop_assert!(flow.decoder.desk.held <= 20_000);
        }
        flow.ends();
    }
}
