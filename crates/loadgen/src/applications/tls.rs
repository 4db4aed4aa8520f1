//! TLS 1.3 (RFC 8446), as a browser speaks it.

use super::{Length, Message, Subject, between, counted, random};
use crate::rng::SplitMix64;

/// Values that say nothing, so that nobody relies on what they have seen (RFC 8701).
fn grease(rng: &mut SplitMix64) -> [u8; 2] {
    [rng.below(16) as u8 * 16 + 0x0a; 2]
}

/// X25519MLKEM768, X25519.
const HYBRID: [u8; 2] = [0x11, 0xec];
const X25519: [u8; 2] = [0, 29];
/// Octets of a hybrid share: the client's (an encapsulation key), the server's (a ciphertext), each with 32 of X25519's.
const HYBRID_SHARES: (usize, usize) = (1184 + 32, 1088 + 32);

/// What differs between one ClientHello and another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hello<'n> {
    pub name: &'n str,
    pub protocols: &'n [&'n str],
    /// With a hybrid key share: it doesn't fit one packet.
    pub is_hybrid: bool,
    /// For QUIC: no session ID (RFC 9001 §8.4), and transport parameters.
    pub is_quic: bool,
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(content)].concat()
}

fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (body.len() as u32).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// A record (RFC 8446 §5.1).
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &counted(content)].concat()
}

/// The handshake message.
pub(super) fn client_hello(rng: &mut SplitMix64, hello: &Hello<'_>) -> Vec<u8> {
    let name = [&[0][..], &counted(hello.name.as_bytes())].concat();
    let protocols: Vec<u8> =
        hello.protocols.iter().flat_map(|it| [&[it.len() as u8], it.as_bytes()].concat()).collect();
    let (grouped, shared, versions) = (grease(rng), grease(rng), grease(rng));
    let mut groups = grouped.to_vec();
    let mut shares = [&grouped[..], &[0, 1, 0]].concat();
    if hello.is_hybrid {
        groups.extend(HYBRID);
        shares.extend(HYBRID);
        shares.extend(counted(&random(rng, HYBRID_SHARES.0)));
    }
    groups.extend([X25519, [0, 23], [0, 24]].concat());
    shares.extend(X25519);
    shares.extend(counted(&random(rng, 32)));
    let signatures = [4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6, 6, 1];
    let mut extensions = vec![
        extension(u16::from_be_bytes(shared), &[]),
        extension(0, &counted(&name)),
        extension(10, &counted(&groups)),
        extension(16, &counted(&protocols)),
        extension(5, &[1, 0, 0, 0, 0]),
        extension(13, &counted(&signatures)),
        extension(51, &counted(&shares)),
        extension(45, &[1, 1]),
        extension(43, &[&[6][..], &versions, &[3, 4, 3, 3]].concat()),
        extension(27, &[2, 0, 2]),
    ];
    if hello.is_quic {
        // RFC 9000 §18: idle timeout, data, data of a stream, streams, the connection ID that it has chosen.
        let parameters = [
            1, 4, 0x80, 0, 0x75, 0x30, 4, 4, 0x80, 0xf0, 0, 0, 5, 4, 0x80, 0x60, 0, 0, 8, 2, 0x40, 100, 15, 0,
        ];
        extensions.push(extension(57, &parameters));
    } else {
        extensions.extend([
            extension(23, &[]),
            extension(0xff01, &[0]),
            extension(11, &[1, 0]),
            extension(35, &[]),
            extension(18, &[]),
            // RFC 9849, as it is sent without a key: 32 octets of a share, and a ciphered hello.
            extension(
                0xfe0d,
                &[&[0, 0, 1, 0, 1, 7, 0, 32][..], &random(rng, 32), &counted(&random(rng, 176))].concat(),
            ),
        ]);
    }
    // Browsers send them in an order of their own each time.
    for place in (1..extensions.len()).rev() {
        extensions.swap(place, rng.below(place as u32 + 1) as usize);
    }
    let suites = [
        &grease(rng)[..],
        &[0x13, 1, 0x13, 2, 0x13, 3],
        if hello.is_quic {
            &[]
        } else {
            &[0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30, 0xcc, 0xa9, 0xcc, 0xa8, 0, 0x9c, 0, 0x2f]
        },
    ]
    .concat();
    let session = if hello.is_quic { Vec::new() } else { random(rng, 32) };
    let body = [
        &[3, 3][..],
        &random(rng, 32),
        &[session.len() as u8],
        &session,
        &counted(&suites),
        &[1, 0],
        &counted(&extensions.concat()),
    ];
    handshake(1, &body.concat())
}

/// The answer: version 1.3, a share of the group that the client has sent one of.
pub(super) fn server_hello(rng: &mut SplitMix64, is_hybrid: bool, session: usize) -> Vec<u8> {
    let (group, length) = if is_hybrid { (HYBRID, HYBRID_SHARES.1) } else { (X25519, 32) };
    let share = [&group[..], &counted(&random(rng, length))].concat();
    let extensions = [extension(43, &[3, 4]), extension(51, &share)].concat();
    let body = [
        &[3, 3][..],
        &random(rng, 32),
        &[session as u8],
        &random(rng, session),
        &[0x13, 1, 0],
        &counted(&extensions),
    ];
    handshake(2, &body.concat())
}

/// Records of ciphered data, of at most 2^14 octets and a tag.
fn data(rng: &mut SplitMix64, length: u32) -> Vec<u8> {
    let octets = random(rng, length as usize);
    octets.chunks(1 << 14).flat_map(|content| record(23, content)).collect()
}

/// Both sides' handshakes.
fn opening(rng: &mut SplitMix64, subject: &Subject<'_>) -> Vec<Message> {
    let is_hybrid = rng.below(2) == 0;
    let hello = Hello { name: subject.name, protocols: &["h2", "http/1.1"], is_hybrid, is_quic: false };
    let mut first = record(22, &client_hello(rng, &hello));
    // The record layer of a first ClientHello says 1.0 (RFC 8446 §5.1).
    first.splice(1..3, [3, 1]);
    let change = record(20, &[1]);
    let certificate = between(rng, 2200, 3200);
    let answer =
        [record(22, &server_hello(rng, is_hybrid, 32)), change.clone(), data(rng, certificate)].concat();
    let finished = [change, data(rng, 53), data(rng, 180)].concat();
    vec![Message::client(first), Message::server(answer), Message::client(finished)]
}

/// Requests and answers of some kilobytes.
pub(super) fn page(rng: &mut SplitMix64, subject: &Subject<'_>, length: Length) -> Vec<Message> {
    let mut messages = opening(rng, subject);
    messages.push(Message::server(data(rng, 60)));
    for _ in 0..length.times(between(rng, 3, 5)) {
        let (question, answer) = (between(rng, 60, 300), between(rng, 100, 1200));
        messages.extend([Message::client(data(rng, question)), Message::server(data(rng, answer))]);
    }
    messages
}

/// Segments of a film.
pub(super) fn film(rng: &mut SplitMix64, subject: &Subject<'_>, length: Length) -> Vec<Message> {
    let mut messages = opening(rng, subject);
    for _ in 0..length.times(2) {
        let (question, answer) = (between(rng, 200, 500), between(rng, 20_000, 40_000));
        messages.extend([Message::client(data(rng, question)), Message::server(data(rng, answer))]);
    }
    messages
}
