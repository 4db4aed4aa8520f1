//! What proves an application, and what doesn't: a name that is written, an address that was asked for, an address alone.
#![allow(clippy::unwrap_used)]

use dpi::classify::Evidence;
use dpi::signatures::{Bundle, Kind};
use dpi::{Category, Event, Inspector, Knowledge, Options, Packet};
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{IpPacket, PacketBuilder};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use tables::Nanos;

const UE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 53);
/// In networks of Google, Telegram and Meta, and in nobody's.
const GOOGLE: Ipv4Addr = Ipv4Addr::new(142, 250, 1, 1);
const TELEGRAM: Ipv4Addr = Ipv4Addr::new(149, 154, 167, 51);
const META: Ipv4Addr = Ipv4Addr::new(31, 13, 86, 48);
const NOBODY: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

fn udp(server: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    PacketBuilder::new().ipv4(UE, server).udp(40_000, port).build(payload)
}

fn tcp(server: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let header = TcpHeader {
        source_port: 40_000,
        destination_port: port,
        sequence: 1,
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    PacketBuilder::new().ipv4(UE, server).tcp(header).build(payload)
}

fn request(host: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// STUN's Binding, of which only the cookie is fixed.
const BINDING: &[u8] = b"\0\x01\0\0\x21\x12\xa4\x42abcdefghijkl";

/// The application of the last flow, and why.
fn last(bundle: Arc<Bundle>, packets: &[Vec<u8>]) -> Option<(String, Evidence)> {
    let options = Options { flows: 16, examinations: 16, subscribers: 4, ..Options::default() };
    let knowledge = Arc::new(Knowledge::new(bundle));
    let mut inspector = Inspector::with(options, Arc::clone(&knowledge), 3, Nanos(0));
    for (at, bytes) in packets.iter().enumerate() {
        let packet = Packet { ip: IpPacket::parse(bytes).unwrap(), bytes, tunnel: None };
        inspector.push(Nanos(at as u64 + 1), &packet);
    }
    let ends = {
        let bytes = packets.last().unwrap();
        inspector.ends(&Packet { ip: IpPacket::parse(bytes).unwrap(), bytes, tunnel: None })
    };
    while inspector.flush_one(Nanos(100)) {}
    let verdicts = std::iter::from_fn(|| inspector.poll()).filter_map(|it| match it {
        Event::Classified { flow, verdict } if flow.ends == ends => Some(verdict),
        _ => None,
    });
    let verdict = verdicts.last().unwrap();
    let application = knowledge.bundle.application(verdict.application?);
    Some((application.name.to_string(), verdict.evidence))
}

fn built_in(packets: &[Vec<u8>]) -> Option<(String, Evidence)> {
    last(Bundle::built_in(), packets)
}

fn is(name: &str, evidence: Evidence) -> (String, Evidence) {
    (name.to_owned(), evidence)
}

#[test]
fn a_companys_network_names_the_company_as_a_guess() {
    assert_eq!(built_in(&[tcp(GOOGLE, 443, b"")]), Some(is("google", Evidence::Address)));
    assert_eq!(built_in(&[tcp(GOOGLE, 80, &request("142.250.1.1"))]), Some(is("google", Evidence::Address)));
    assert_eq!(built_in(&[tcp(NOBODY, 443, b"")]), None);
}

#[test]
fn a_name_that_nobody_knows_counts_more_than_an_address() {
    assert_eq!(built_in(&[tcp(GOOGLE, 80, &request("www.nobodys-shop.example"))]), None);
    assert_eq!(
        built_in(&[tcp(GOOGLE, 80, &request("www.youtube.com"))]),
        Some(is("youtube", Evidence::Host))
    );
    // Nor does an address that was asked for under another name: delivery networks have many behind one.
    let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07youtube\x03com\0\0\x01\0\x01";
    let record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x1e\0\x04\xcb\0\x71\x09";
    let mut answer = [&question[..], record].concat();
    answer[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1]);
    let answer = PacketBuilder::new().ipv4(RESOLVER, UE).udp(53, 40_000).build(&answer);
    let asked = [udp(RESOLVER, 53, question), answer];
    let then = |packet: Vec<u8>| built_in(&[&asked[..], &[packet]].concat());
    assert_eq!(then(tcp(NOBODY, 80, b"")), Some(is("youtube", Evidence::Memory)));
    assert_eq!(then(tcp(NOBODY, 80, &request("www.nobodys-shop.example"))), None);
    assert_eq!(
        then(tcp(NOBODY, 80, &request("localhost"))),
        Some(is("youtube", Evidence::Memory)),
        "no name of a server"
    );
}

#[test]
fn of_calls_an_address_proves_nothing_but_where_calls_are_what_it_is_for() {
    assert_eq!(built_in(&[udp(GOOGLE, 19302, BINDING)]), None, "a server for everybody's calls");
    assert_eq!(built_in(&[udp(META, 3478, BINDING)]), None);
    assert_eq!(built_in(&[udp(TELEGRAM, 1400, BINDING)]), Some(is("telegram", Evidence::Address)));
    let allocate = [b"\0\x03\0\x08\x21\x12\xa4\x42abcdefghijkl\x40", &b"\x01\0\x04abcd"[..]].concat();
    assert_eq!(built_in(&[udp(NOBODY, 3478, &allocate)]), Some(is("whatsapp-call", Evidence::Pattern)));
}

#[test]
fn a_protocol_of_one_application_is_that_application() {
    let alive = b"\x13\x37\xca\xfe\x0e\0\0\0";
    assert_eq!(built_in(&[udp(NOBODY, 50_004, alive)]), Some(is("discord", Evidence::Pattern)));
}

/// What is built in, with an operator's own application that is known by this.
fn with_shop(test: &str, known_by: &str) -> Arc<Bundle> {
    let path = std::env::temp_dir().join(format!("{test}-{}.toml", std::process::id()));
    std::fs::write(&path, format!("[shop]\ncategory = 'shopping'\n{known_by}\n")).unwrap();
    let own = Arc::new(Bundle::built_in().with_files(&[Path::new(&path)]).unwrap().bundle);
    std::fs::remove_file(&path).unwrap();
    own
}

/// A ClientHello in a record (RFC 8446 §4.1.2, §5.1), with SNI, ALPN, groups and versions.
const HELLO: &[u8] = b"\x16\x03\x01\0\x62\x01\0\0\x5e\x03\x03abcdefghijklmnopqrstuvwxyz012345\0\0\x04\x13\x01\x13\x02\x01\0\0\x31\
    \0\0\0\x10\0\x0e\0\0\x0bexample.com\0\x10\0\x05\0\x03\x02h2\0\x0a\0\x04\0\x02\0\x1d\0\x2b\0\x03\x02\x03\x04\xff\x01\0\x01\0";

/// Two suites, five extensions, of which SNI and ALPN are left out of the last part; sums by `sha256sum`.
#[test]
fn a_client_is_known_by_its_hello() {
    let own = with_shop("ja4", "ja4s = ['t13d0205h2_62ed6f6ca7ad_48ac555ccf5e']");
    assert_eq!(last(own, &[tcp(NOBODY, 443, HELLO)]), Some(is("shop", Evidence::Fingerprint)));
    let other = with_shop("ja4-other", "ja4s = ['t13d0205h2_62ed6f6ca7ad_000000000000']");
    assert_eq!(last(other, &[tcp(NOBODY, 443, HELLO)]), None);
}

#[test]
fn names_of_certificates_count_for_names_of_servers() {
    let own = with_shop("certificate", "certificates = ['shop.example']");
    let shop = Some(is("shop", Evidence::Certificate));
    assert_eq!(last(own, &[tcp(NOBODY, 80, &request("www.shop.example"))]), shop);
}

#[test]
fn operators_know_their_own_networks() {
    let own = with_shop("own", "addresses = ['203.0.113.0/24']");
    let shop = Some(is("shop", Evidence::Address));
    assert_eq!(last(Arc::clone(&own), &[tcp(NOBODY, 80, &request("www.nobodys-shop.example"))]), shop);
    assert_eq!(last(own, &[udp(NOBODY, 3478, BINDING)]), shop);
}

/// Clouds and delivery networks carry everybody: no prefix of theirs is an application.
#[test]
fn no_cloud_is_known_by_its_addresses() {
    let bundle = Bundle::built_in();
    let by_address = bundle.rules().filter(|rule| rule.kind == Kind::Address);
    for rule in by_address {
        let application = bundle.application(rule.application);
        assert_ne!(application.category, Category::Cloud, "{}: {}", application.name, rule.text);
    }
    for address in [
        "3.5.1.1",
        "13.107.246.10",
        "20.50.1.1",
        "23.32.1.1",
        "34.90.1.1",
        "104.16.1.1",
        "151.101.1.1",
        "18.64.79.37",
    ] {
        assert_eq!(bundle.address(address.parse().unwrap()), None, "{address}");
    }
}
