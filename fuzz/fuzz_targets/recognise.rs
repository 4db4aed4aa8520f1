//! One message, of any side, carrier, port and history, to every recogniser of a family, and to the parsers behind them.
//!
//! The input says which family; where the environment names one in `FAMILY`, it is always that one: `./x fuzz recognise/dns`.
#![no_main]

use dpi::classify::{Answer, Assembly, Carrier, End, History, Message, Recogniser, Sheet, Side};
use dpi::protocols::http::two;
use dpi::protocols::{FAMILIES, Family, dns, http, mail, quic, recognisers, rtp, sip, stun, tls};
use fuzz::{Input, messages};
use libfuzzer_sys::fuzz_target;
use quic::{Keys, Version};
use std::sync::LazyLock;

const Q050: u32 = u32::from_be_bytes(*b"Q050");
const T050: u32 = u32::from_be_bytes(*b"T050");
const T051: u32 = u32::from_be_bytes(*b"T051");

static ALONE: LazyLock<Option<&Family>> = LazyLock::new(|| {
    let name = std::env::var("FAMILY").ok()?;
    let found = FAMILIES.iter().find(|it| it.name == name);
    Some(found.unwrap_or_else(|| panic!("no family of recognisers: {name}")))
});

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let any = input.pick(FAMILIES);
    let family = ALONE.unwrap_or(&any);
    let carrier = input.pick(&[Carrier::Tcp, Carrier::Udp, Carrier::Sctp]);
    let side = input.pick(&[Side::Client, Side::Server]);
    let begins = input.flag();
    let client = End { address: [10, 0, 0, 1].into(), port: input.u16() };
    let server = End { address: [198, 51, 100, 1].into(), port: port(&mut input) };
    let mut history = History::default();
    for _ in 0..input.below(4) {
        let side = input.pick(&[Side::Client, Side::Server]);
        let said = if input.flag() { input.pick(messages::ALL) } else { input.counted() };
        history.sides[side as usize].note(said);
    }
    let message = match family.name {
        "quic" if input.flag() => initial(&mut input, side).unwrap_or_default(),
        _ => [if input.flag() { input.pick(messages::ALL) } else { &[] }, input.rest()].concat(),
    };
    for recogniser in family.recognisers {
        if recogniser.carriers.has(carrier) && message.first().is_some_and(|it| recogniser.first.allows(*it))
        {
            ask(recogniser, &message, begins, carrier, side, (client, server), &history);
        }
    }
    match family.name {
        "tls" => parse_tls(&message),
        "dns" => parse_dns(&message),
        "http" => parse_http(&message),
        "sip" => parse_sip(&message),
        "stun" => parse_stun(&message),
        "quic" => parse_quic(&message),
        "rtp" => _ = rtp::Packet::parse(&message),
        "mail" => _ = mail::announced(&message),
        _ => {}
    }
});

/// An Initial that opens, with what the input says in it (RFC 9000 §17.2.2, RFC 9369 §3.2).
fn initial(input: &mut Input<'_>, side: Side) -> Option<Vec<u8>> {
    const CONNECTION: &[u8; 8] = b"destined";
    let number = input.pick(&[1, 0x6b33_43cf, 0xff00_001d, 0xff00_0017, 0xff00_0016, Q050, T050, T051]);
    let version = Version::of(number)?;
    let keys = match side {
        Side::Client => Keys::of_client(version, CONNECTION),
        Side::Server => Keys::of_server(version, CONNECTION),
    };
    // A CRYPTO frame with a ClientHello before anything else.
    let hello = messages::TLS.get(5..)?;
    let frame = [&[6, 0, 0x40, hello.len() as u8][..], hello].concat();
    let content = [if input.flag() { &frame[..] } else { &[] }, input.rest()].concat();
    let first = if version.is_second { 0xd3 } else { 0xc3 };
    let length = (content.len() + 4 + 16) as u16 | 0x4000;
    let ids = [&[8][..], CONNECTION, &[0, 0]].concat();
    let header =
        [&[first][..], &number.to_be_bytes(), &ids, &length.to_be_bytes(), &0u32.to_be_bytes()].concat();
    keys.seal(&header, &content)
}

/// A usual one half of the time.
fn port(input: &mut Input<'_>) -> u16 {
    let ports = || recognisers().flat_map(|it| it.ports);
    let number = input.u16();
    if input.flag() {
        ports().nth(usize::from(number) % ports().count()).copied().unwrap_or(0)
    } else {
        number
    }
}

/// Twice, since the first time may have left something in the assembly. The same question has the same answer.
fn ask(
    recogniser: &Recogniser,
    bytes: &[u8],
    begins: bool,
    carrier: Carrier,
    side: Side,
    (client, server): (End, End),
    history: &History,
) {
    let (mut assembly, mut sheet) = (Assembly::default(), Sheet::default());
    let mut once = |assembly: &mut Assembly| {
        sheet.clear();
        let mut message =
            Message { bytes, begins, carrier, side, client, server, history, sheet: &mut sheet, assembly };
        let answer = (recogniser.probe)(&mut message);
        (answer, sheet)
    };
    let first = once(&mut assembly);
    assert!(assembly.memory() <= dpi::classify::assembly::LARGEST);
    once(&mut assembly);
    assert_eq!(once(&mut Assembly::default()), first, "{} changes its mind", recogniser.protocol.name());
    if first.0 == Answer::No {
        assert!(first.1.entries().all(|(_, text)| text.len() <= 255));
    }
}

// What lists say is no more than what octets there are.

fn parse_tls(bytes: &[u8]) {
    let most = bytes.len();
    for datagram in [false, true] {
        for body in [bytes, bytes.get(4..).unwrap_or_default(), bytes.get(9..).unwrap_or_default()] {
            if let Some(hello) = tls::ClientHello::parse(body, datagram) {
                assert_eq!(tls::ja4::ja4(&hello, tls::ja4::Over::Tcp).chars().count(), 36);
                assert!(hello.server_name().is_none_or(|it| it.len() <= most));
                assert!(
                    hello.key_shares().count() + hello.groups().count() + hello.versions().count() <= most
                );
                assert!(hello.cipher_suites().count() + hello.extensions().count() <= most);
                let parameters = hello.transport_parameters().map_or(0, |it| quic::parameters(it).count());
                assert!(parameters <= most);
                let _ = (hello.newest_version(), hello.has_encrypted_hello());
            }
            if let Some(hello) = tls::ServerHello::parse(body) {
                let _ = (hello.chosen_version(), hello.application_protocol(), hello.is_retry());
            }
        }
    }
    let mut room = Assembly::default();
    assert!(tls::joined(bytes, &mut room).len() <= most);
    let _ = (tls::message(bytes), tls::Fragment::parse(bytes));
    if let Some(names) = tls::certificate::Names::parse(bytes) {
        assert!(names.alternatives().count() <= most && names.host().is_none_or(|it| it.len() <= most));
    }
}

fn parse_dns(bytes: &[u8]) {
    let most = bytes.len();
    if let Some(message) = dns::Message::parse(bytes) {
        let mut room = [0; 255];
        assert!(message.questions().count() <= most && message.answers().count() <= most);
        for question in message.questions() {
            question.name.write(&mut room);
        }
        for record in message.answers() {
            record.name.write(&mut room);
            record.alias().map(|it| it.write(&mut room).is_some());
        }
        assert!(message.addresses().count() <= message.answers().count());
    }
}

fn parse_http(bytes: &[u8]) {
    let most = bytes.len();
    if let Some(request) = http::Request::parse(bytes) {
        assert!(request.fields.iter().count() <= most);
        let _ = (request.host(), request.path(), request.fields.body());
    }
    assert!(http::Response::parse(bytes).is_none_or(|it| it.fields.iter().count() <= most));
    assert!(two::frames(bytes).count() <= most);
    for frame in two::frames(bytes) {
        assert!(frame.header_block().is_none_or(|it| it.len() <= most));
    }
}

fn parse_sip(bytes: &[u8]) {
    let describe = |description: Option<sip::Sdp<'_>>| {
        if let Some(description) = description {
            assert!(description.media().count() <= bytes.len());
            let _ = (description.address(), description.codec(96));
        }
    };
    for message in [sip::Message::parse(bytes), sip::Message::parse_rtsp(bytes)].into_iter().flatten() {
        let _ = (message.from(), message.to(), message.call_id(), message.agent());
        describe(message.description());
    }
    describe(Some(sip::Sdp::new(bytes)));
}

fn parse_stun(bytes: &[u8]) {
    if let Some(message) = stun::Message::parse(bytes) {
        assert!(message.attributes().count() <= bytes.len());
        let _ = message.is_of_ice();
    }
}

fn parse_quic(bytes: &[u8]) {
    let most = bytes.len();
    let mut rest = bytes;
    while let Some((long, following)) = quic::Long::parse(rest) {
        assert!(long.packet.len() + following.len() == rest.len() && !long.packet.is_empty());
        rest = following;
    }
    assert!(quic::Hello::parse(bytes).is_none_or(|it| it.values().count() <= most));
    assert!(quic::parameters(bytes).count() <= most);
}
