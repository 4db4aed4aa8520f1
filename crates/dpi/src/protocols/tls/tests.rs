#![allow(clippy::unwrap_used)]

use super::*;
use crate::classify::{Carrier, Side};
use crate::protocols::show::{client, flow, server};

/// A ClientHello that a client of this kind might send: handshake message, without records.
pub fn client_hello(name: Option<&str>, protocols: &[&str], padding: usize) -> Vec<u8> {
    let mut extensions = vec![0x0a, 0x0a, 0, 0]; // GREASE
    let mut add = |kind: u16, data: Vec<u8>| {
        extensions.extend(kind.to_be_bytes());
        extensions.extend((data.len() as u16).to_be_bytes());
        extensions.extend(data);
    };
    add(51, [vec![4, 0xc4, 0x11, 0xec, 4, 0xc0], vec![7; 1216]].concat());
    add(43, vec![6, 0x2a, 0x2a, 3, 4, 3, 3]);
    add(13, vec![0, 4, 4, 3, 8, 4]);
    if let Some(name) = name {
        let length = name.len() as u16;
        let mut data = (length + 3).to_be_bytes().to_vec();
        data.push(0);
        data.extend(length.to_be_bytes());
        data.extend(name.as_bytes());
        add(0, data);
    }
    let mut list = vec![2, 0x1a, 0x1a];
    for protocol in protocols {
        list.push(protocol.len() as u8);
        list.extend(protocol.as_bytes());
    }
    if !protocols.is_empty() {
        add(16, [(list.len() as u16).to_be_bytes().to_vec(), list].concat());
    }
    add(21, vec![0; padding]);
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.push(0);
    body.extend([0, 6, 0x3a, 0x3a, 0x13, 1, 0xc0, 0x2f, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    handshake_message(1, &body)
}

fn handshake_message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
    message.extend(body);
    message
}

/// As records of at most `most` octets.
pub fn records(message: &[u8], most: usize) -> Vec<u8> {
    let one = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    message.chunks(most).flat_map(one).collect()
}

fn tls_flow(port: u16, messages: &[(Side, &[u8])]) -> (Vec<Answer>, Sheet) {
    flow(Protocol::Tls, Carrier::Tcp, port, messages)
}

#[test]
fn a_client_hello_names_the_server_and_what_is_spoken() {
    let hello = records(&client_hello(Some("www.example.org"), &["h2", "http/1.1"], 0), 16384);
    let (answers, sheet) = tls_flow(8000, &[(Side::Client, &hello)]);
    assert_eq!(answers, [Answer::Is]);
    assert_eq!(sheet.host.bytes(), b"www.example.org");
    assert_eq!(sheet.alpn.bytes(), b"h2", "GREASE is not a protocol");
}

#[test]
fn a_hello_in_several_records_is_read_as_one() {
    for most in [1200, 600, 130] {
        let hello = records(&client_hello(Some("www.example.org"), &["h2"], 0), most);
        let (answers, sheet) = tls_flow(443, &[(Side::Client, &hello)]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Answer::Is], &b"www.example.org"[..]), "{most}");
    }
}

#[test]
fn cut_off_anywhere_more_is_asked_for() {
    let whole = records(&client_hello(Some("www.example.org"), &["h2"], 100), 900);
    for length in 1..whole.len() {
        let answer = client(Protocol::Tls, Carrier::Tcp, 443, &whole[..length]);
        assert_eq!(answer, Answer::Longer, "{length} octets");
    }
}

#[test]
fn what_is_longer_than_is_put_together_counts_as_it_is() {
    let hello = records(&client_hello(Some("www.example.org"), &["h2"], 20_000), 16384);
    let (answers, sheet) = tls_flow(443, &[(Side::Client, &hello[..MOST])]);
    assert_eq!((answers, sheet.host.bytes()), (vec![Answer::Is], &b"www.example.org"[..]));
}

#[test]
fn mail_names_and_files_have_their_ports_and_names() {
    let hello = records(&client_hello(Some("mail.example.org"), &[], 0), 16384);
    for (port, protocol) in [(465, Protocol::Smtps), (993, Protocol::Imaps), (853, Protocol::Dot)] {
        assert_eq!(client(Protocol::Tls, Carrier::Tcp, port, &hello), Answer::Other(protocol));
    }
    let hello = records(&client_hello(Some("dns.example.org"), &["dot"], 0), 16384);
    assert_eq!(client(Protocol::Tls, Carrier::Tcp, 443, &hello), Answer::Other(Protocol::Dot));
}

/// A certificate that holds what RFC 5280 §4.1 asks for, by its shape only.
fn certificate(common: &str, alternative: &str) -> Vec<u8> {
    let der = |tag: u8, parts: &[&[u8]]| {
        let content = parts.concat();
        [&[tag, 0x82][..], &(content.len() as u16).to_be_bytes(), &content].concat()
    };
    let name =
        der(0x30, &[&der(0x31, &[&der(0x30, &[&[6, 3, 0x55, 4, 3], &der(0x0c, &[common.as_bytes()])])])]);
    let names = der(0x30, &[&der(0x82, &[alternative.as_bytes()])]);
    let extension = der(0x30, &[&[6, 3, 0x55, 0x1d, 0x11], &[1, 1, 0xff], &der(4, &[&names])]);
    let version = [0xa0, 3, 2, 1, 2];
    let extensions = der(0xa3, &[&der(0x30, &[&extension])]);
    let empty = der(0x30, &[]);
    let fields = der(0x30, &[&version, &[2, 1, 5], &empty, &empty, &empty, &name, &empty, &extensions]);
    der(0x30, &[&fields, &empty, &[3, 1, 0]])
}

pub fn server_flight(version: u8, common: &str, alternative: &str) -> Vec<u8> {
    let hello =
        [&[3, version][..], &[8; 32], &[0, 0xc0, 0x2f, 0, 0, 9, 0, 16, 0, 5, 0, 3, 2, b'h', b'2']].concat();
    let one = certificate(common, alternative);
    let length = |it: &[u8]| (it.len() as u32).to_be_bytes()[1..].to_vec();
    let list = [length(&one), one].concat();
    let list = [length(&list), list].concat();
    [handshake_message(2, &hello), handshake_message(11, &list)].concat()
}

#[test]
fn without_a_name_the_certificate_tells() {
    let hello = records(&client_hello(None, &[], 0), 16384);
    for (common, alternative, host) in [
        ("*.example.org", "", "example.org"),
        ("Some Unit", "api.example.net", "api.example.net"),
        ("host", "x", ""),
    ] {
        let flight = records(&server_flight(3, common, alternative), 300);
        let messages = [(Side::Client, &hello[..]), (Side::Server, &flight[..])];
        let (answers, sheet) = tls_flow(443, &messages);
        assert_eq!(answers, [Answer::Open, Answer::Is]);
        assert_eq!((sheet.host.bytes(), sheet.alpn.bytes()), (host.as_bytes(), &b"h2"[..]));
    }
}

#[test]
fn a_servers_flight_is_asked_for_until_its_certificate_is_there() {
    let flight = records(&server_flight(3, "www.example.org", ""), 16384);
    let end = 5 + 4 + 38 + 9 + 2;
    for length in 1..flight.len() {
        let answer = server(Protocol::Tls, Carrier::Tcp, 443, &flight[..length]);
        assert!(
            answer == Answer::Longer || (length > end + 20 && answer == Answer::Is),
            "{length} octets: {answer:?}"
        );
    }
    assert_eq!(server(Protocol::Tls, Carrier::Tcp, 443, &flight), Answer::Is);
}

#[test]
fn tls_1_3_shows_no_certificate() {
    let hello = [&[3, 3][..], &[8; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat();
    let flight = records(&handshake_message(2, &hello), 16384);
    assert_eq!(server(Protocol::Tls, Carrier::Tcp, 443, &flight), Answer::Is);
}

#[test]
fn amid_a_connection_records_that_follow_each_other_tell() {
    let is = |bytes: &[u8]| client(Protocol::Tls, Carrier::Tcp, 443, bytes);
    assert_eq!(is(&[23, 3, 3, 0, 2, 9, 9]), Answer::Is);
    assert_eq!(is(&[21, 3, 3, 0, 2, 2, 40]), Answer::Is);
    assert_eq!(is(&[23, 3, 3, 0, 2, 9, 9, 23, 3, 3, 1, 0, 5]), Answer::Is);
    assert_eq!(is(&[23, 3, 3, 0, 9, 9, 9]), Answer::Perhaps);
    assert_eq!(is(&[23, 3, 9, 0, 2, 9, 9]), Answer::No, "no such version");
    assert_eq!(is(&[22, 3, 1, 0xff, 0, 1, 0, 0, 9, 3]), Answer::No, "too long");
}

#[test]
fn ssl_2_clients_asked_for_tls() {
    let hello = [&[0x80, 9 + 3 + 16, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 0x2f][..], &[7; 16]].concat();
    assert_eq!(client(Protocol::Tls, Carrier::Tcp, 443, &hello), Answer::Is);
    let mut wrong = hello.clone();
    wrong[6] = 4;
    assert_eq!(client(Protocol::Tls, Carrier::Tcp, 443, &wrong), Answer::No, "lengths don't fit");
    for length in 1..11 {
        assert_eq!(client(Protocol::Tls, Carrier::Tcp, 443, &hello[..length]), Answer::No);
    }
}

#[test]
fn all_of_a_hello_can_be_read() {
    let bytes = client_hello(Some("a.example"), &["h2", "http/1.1"], 0);
    let hello = ClientHello::parse(message(&bytes).unwrap().body, false).unwrap();
    assert_eq!(hello.server_name(), Some(&b"a.example"[..]));
    assert_eq!(hello.application_protocols().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert_eq!(hello.versions().collect::<Vec<_>>(), [0x0304, 0x0303]);
    assert_eq!(hello.newest_version(), 0x0304);
    assert_eq!(hello.key_shares().collect::<Vec<_>>(), [(0x11ec, 1216)]);
    assert_eq!(hello.signature_schemes().collect::<Vec<_>>(), [0x0403, 0x0804]);
    assert!(!hello.has_encrypted_hello() && hello.transport_parameters().is_none());
}

/// Chrome's, as the description of JA4 has it.
#[test]
fn ja4_is_as_its_description_says() {
    let suites = "1301 1302 1303 c02b c02f c02c c030 cca9 cca8 c013 c014 009c 009d 002f 0035";
    let hex = |text: &str| -> Vec<u8> {
        let number = |it| u16::from_str_radix(it, 16).unwrap().to_be_bytes();
        text.split_whitespace().flat_map(number).collect()
    };
    let mut extensions = Vec::new();
    let kinds = "001b 0000 0033 0010 4469 0017 002d 000d 0005 0023 0012 002b ff01 000b 000a 0015";
    for kind in hex(&format!("2a2a {kinds}")).chunks(2) {
        let data = match (kind[0], kind[1]) {
            (0, 0) => vec![0, 4, 0, 0, 1, b'a'],
            (0, 0x10) => [&[0, 3, 2][..], b"h2"].concat(),
            (0, 0x0d) => [vec![0, 16], hex("0403 0804 0401 0503 0805 0501 0806 0601")].concat(),
            (0, 0x2b) => [vec![6], hex("dada 0304 0303")].concat(),
            _ => vec![],
        };
        extensions.extend(kind);
        extensions.extend((data.len() as u16).to_be_bytes());
        extensions.extend(data);
    }
    let body = [&[3, 3][..], &[9; 32], &[0, 0, 32], &hex(&format!("5a5a {suites}")), &[1, 0]].concat();
    let body = [&body[..], &(extensions.len() as u16).to_be_bytes(), &extensions].concat();
    let hello = ClientHello::parse(&body, false).unwrap();
    assert_eq!(ja4::ja4(&hello, ja4::Over::Tcp), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    assert!(ja4::ja4(&hello, ja4::Over::Quic).starts_with('q'));
}

/// A ClientHello of DTLS 1.2, as records with pieces of at most `most` octets each.
pub fn datagrams(most: usize) -> Vec<Vec<u8>> {
    let mut body = vec![0xfe, 0xfd];
    body.extend([9; 32]);
    body.extend([0, 3, 1, 2, 3, 0, 2, 0xc0, 0x2b, 1, 0, 0, 18, 0, 0, 0, 14, 0, 12, 0, 0, 9]);
    body.extend(b"a.example");
    let length = (body.len() as u32).to_be_bytes();
    let mut at = 0_u32;
    let mut all = Vec::new();
    for part in body.chunks(most) {
        let size = (part.len() as u32).to_be_bytes();
        let piece = [&[1][..], &length[1..], &[0, 0], &at.to_be_bytes()[1..], &size[1..], part].concat();
        let header = [22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
        all.push([&header[..], &(piece.len() as u16).to_be_bytes(), &piece].concat());
        at += part.len() as u32;
    }
    all
}

#[test]
fn dtls_is_known_by_its_records_and_pieces_are_put_together() {
    let whole = datagrams(500);
    let (answers, sheet) = flow(Protocol::Dtls, Carrier::Udp, 4433, &[(Side::Client, &whole[0])]);
    assert_eq!((answers, sheet.host.bytes()), (vec![Answer::Is], &b"a.example"[..]));
    let pieces = datagrams(30);
    let messages: Vec<_> = pieces.iter().rev().map(|it| (Side::Client, &it[..])).collect();
    let (answers, sheet) = flow(Protocol::Dtls, Carrier::Udp, 4433, &messages);
    assert_eq!(answers.last(), Some(&Answer::Is));
    assert_eq!(sheet.host.bytes(), b"a.example");
    assert!(answers[..answers.len() - 1].iter().all(|it| *it == Answer::Open));
    for length in 1..whole[0].len() {
        assert_eq!(client(Protocol::Dtls, Carrier::Udp, 443, &whole[0][..length]), Answer::No);
    }
}

#[test]
fn dtls_that_is_ciphered_ends_with_its_datagram() {
    let data = [23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2, 7, 7];
    assert_eq!(server(Protocol::Dtls, Carrier::Udp, 443, &data), Answer::Is);
    assert_eq!(server(Protocol::Dtls, Carrier::Udp, 443, &[&data[..], &[1]].concat()), Answer::No);
    assert_eq!(server(Protocol::Dtls, Carrier::Udp, 443, &[20, 0xfe, 0xff, 9, 9]), Answer::No);
}
