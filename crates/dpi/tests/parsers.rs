//! Whatever comes, parsers end, and don't panic: of random octets, and of good messages that were cut off or changed.

use dpi::protocols::http::two;
use dpi::protocols::{dns, http, mail, quic, rtp, sip, stun, tls};
use proptest::prelude::*;
use std::hint::black_box;

/// The ClientHello of RFC 9001 §A.2.
const HELLO: &[u8] = b"\x01\0\0\xed\x03\x03\xeb\xf8\xfa\x56\xf1\x29\x39\xb9\x58\x4a\x38\x96\x47\x2e\xc4\x0b\xb8\x63\xcf\xd3\xe8\
    \x68\x04\xfe\x3a\x47\xf0\x6a\x2b\x69\x48\x4c\0\0\x04\x13\x01\x13\x02\x01\0\0\xc0\0\0\0\x10\0\x0e\0\0\x0bexample.com\xff\x01\
    \0\x01\0\0\x0a\0\x08\0\x06\0\x1d\0\x17\0\x18\0\x10\0\x07\0\x05\x04alpn\0\x05\0\x05\x01\0\0\0\0\0\x33\0\x26\0\x24\0\x1d\0\x20\
    \x93\x70\xb2\xc9\xca\xa4\x7f\xba\xba\xf4\x55\x9f\xed\xba\x75\x3d\xe1\x71\xfa\x71\xf5\x0f\x1c\xe1\x5d\x43\xe9\x94\xec\x74\xd7\
    \x48\0\x2b\0\x03\x02\x03\x04\0\x0d\0\x10\0\x0e\x04\x03\x05\x03\x06\x03\x02\x03\x08\x04\x08\x05\x08\x06\0\x2d\0\x02\x01\x01\0\
    \x1c\0\x02\x40\x01\0\x39\0\x32\x04\x08\xff\xff\xff\xff\xff\xff\xff\xff\x05\x04\x80\0\xff\xff\x07\x04\x80\0\xff\xff\x08\x01\x10\
    \x01\x04\x80\0\x75\x30\x09\x01\x10\x0f\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\x06\x04\x80\0\xff\xff";
/// A certificate as far as its names are concerned.
const CERTIFICATE: &[u8] = b"\x30\x51\x30\x4a\xa0\x03\x02\x01\x02\x02\x01\x05\x30\0\x30\0\x30\0\x30\x14\x31\x12\x30\x10\x06\x03\x55\x04\
    \x03\x0c\x09a.example\x30\0\xa3\x22\x30\x20\x30\x1e\x06\x03\x55\x1d\x11\x01\x01\xff\x04\x14\x30\x12\x82\x09b.example\x82\x05\
    c.org\x30\0\x03\x01\0";
const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x03\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01\xc0\x0c\0\x05\0\x01\0\0\0\
    \x3c\0\x06\x03cdn\xc0\x10\xc0\x2d\0\x01\0\x01\0\0\0\x1e\0\x04\xc0\0\x02\x07\xc0\x2d\0\x1c\0\x01\0\0\0\x1e\0\x10\x20\x01\x0d\
    \xb8\0\0\0\0\0\0\0\0\0\0\0\x09";
const REQUEST: &[u8] =
    b"GET http://a.example/b?c HTTP/1.1\r\nHost: a.example:80\r\nUser-Agent: x\r\n\r\nbody";
const INVITE: &[u8] = b"INVITE sip:b@b.example SIP/2.0\r\nf: <sip:a@a.example>;tag=1\r\nt: b\r\ni: 1\r\nc: application/sdp\r\n\r\n\
    v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 0 96\r\na=rtpmap:96 opus/48000\r\n";
const BINDING: &[u8] = b"\0\x01\0\x0c\x21\x12\xa4\x42abcdefghijkl\0\x06\0\x03a:b\0\0\x24\0\0";
const MEDIA: &[u8] = b"\xb1\x88\0\x05\0\0\0\x09\0\0\0\x07CSRC\xbe\xde\0\x01extnabcd\0\x02";
const HEADERS: &[u8] =
    b"\0\0\x11\x01\x0c\0\0\0\x01\x01\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4";
const PASSIVE: &[u8] = b"227 Entering Passive Mode (192,0,2,1,4,1).";
const LONG: &[u8] = b"\xc0\0\0\0\x01\x08abcdefgh\x02ij\x01t\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

const GOOD: &[&[u8]] = &[HELLO, CERTIFICATE, ANSWER, REQUEST, INVITE, BINDING, MEDIA, HEADERS, PASSIVE, LONG];

/// All that parsers find in these octets, whatever they are.
fn read(bytes: &[u8]) {
    for datagram in [false, true] {
        for body in [bytes, bytes.get(4..).unwrap_or_default()] {
            if let Some(hello) = tls::ClientHello::parse(body, datagram) {
                black_box(tls::ja4::ja4(&hello, tls::ja4::Over::Tcp));
                black_box((hello.server_name(), hello.newest_version(), hello.has_encrypted_hello()));
                black_box((hello.key_shares().count(), hello.groups().count(), hello.versions().count()));
                black_box(hello.transport_parameters().map(|it| quic::parameters(it).count()));
            }
        }
    }
    black_box(
        tls::ServerHello::parse(bytes).map(|it| (it.chosen_version(), it.application_protocol().is_some())),
    );
    black_box((tls::message(bytes), tls::Fragment::parse(bytes)));
    if let Some(names) = tls::certificate::Names::parse(bytes) {
        black_box((names.host(), names.alternatives().count()));
    }
    if let Some(message) = dns::Message::parse(bytes) {
        let mut room = [0; 255];
        for question in message.questions() {
            black_box(question.name.write(&mut room));
        }
        for record in message.answers() {
            black_box(record.alias().map(|it| it.write(&mut room).is_some()));
        }
        black_box(message.addresses().count());
    }
    if let Some(request) = http::Request::parse(bytes) {
        black_box((request.host(), request.path(), request.fields.iter().count(), request.fields.body()));
    }
    black_box(http::Response::parse(bytes).map(|it| it.fields.iter().count()));
    for frame in two::frames(bytes) {
        black_box(frame.header_block());
    }
    for message in [sip::Message::parse(bytes), sip::Message::parse_rtsp(bytes)].into_iter().flatten() {
        black_box((message.from(), message.to(), message.call_id(), message.agent()));
        black_box(message.description().map(|it| (it.address(), it.media().count(), it.codec(96))));
    }
    let description = sip::Sdp::new(bytes);
    black_box((description.address(), description.media().count(), description.codec(96)));
    black_box(stun::Message::parse(bytes).map(|it| (it.method(), it.attributes().count(), it.is_of_ice())));
    black_box((rtp::Packet::parse(bytes), mail::announced(bytes), quic::Long::parse(bytes).is_some()));
    black_box(quic::Hello::parse(bytes).map(|it| it.values().count()));
    black_box(quic::parameters(bytes).count());
}

#[test]
fn good_messages_are_read_and_cut_off_anywhere_they_do_no_harm() {
    assert!(
        tls::ClientHello::parse(&HELLO[4..], false)
            .is_some_and(|it| it.server_name() == Some(b"example.com"))
    );
    assert!(tls::certificate::Names::parse(CERTIFICATE).is_some_and(|it| it.host() == Some(b"a.example")));
    assert!(dns::Message::parse(ANSWER).is_some_and(|it| it.addresses().count() == 2));
    assert!(sip::Message::parse(INVITE).and_then(|it| it.description()).is_some());
    assert!(rtp::Packet::parse(MEDIA).is_some() && quic::Long::parse(LONG).is_some());
    for good in GOOD {
        for length in 0..=good.len() {
            read(&good[..length]);
        }
    }
}

proptest! {
    #[test]
    fn random_octets_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
    }

    #[test]
    fn changed_messages_do_no_harm(
        which in 0..GOOD.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = GOOD[which].to_vec();
        for (at, with) in changes {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        read(&bytes);
        read(&bytes[..cut.index(bytes.len())]);
    }
}
