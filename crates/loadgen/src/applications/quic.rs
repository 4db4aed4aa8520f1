//! QUIC version 1 (RFC 9000), whose first packets open with the keys of their connection ID (RFC 9001 §5.2).

use super::tls::{Hello, client_hello, server_hello};
use super::{Length, Message, Subject, between, random};
use crate::rng::SplitMix64;
use dpi::protocols::quic::{Keys, Version};

/// The version that is spoken.
const NUMBER: u32 = 1;
/// A datagram with an Initial is at least as long (RFC 9000 §14.1).
const LEAST: usize = 1200;
const TAG: usize = 16;

/// Of a number of two octets (RFC 9000 §16).
fn two(number: usize) -> [u8; 2] {
    (number as u16 | 0x4000).to_be_bytes()
}

fn crypto(at: usize, piece: &[u8]) -> Vec<u8> {
    [&[6][..], &two(at), &two(piece.len()), piece].concat()
}

/// Who sends to whom.
struct Connection {
    client: Vec<u8>,
    server: Vec<u8>,
    /// What the client has sent its first packet to.
    first: Vec<u8>,
}

/// A long header (RFC 9000 §17.2), up to a packet number of one octet. `kind`: 0 for an Initial, 2 for a Handshake packet.
fn header(kind: u8, destination: &[u8], source: &[u8], content: usize, number: u8) -> Vec<u8> {
    let token: &[u8] = if kind == 0 { &[0] } else { &[] };
    [
        &[0xc0 | kind << 4][..],
        &NUMBER.to_be_bytes(),
        &[destination.len() as u8],
        destination,
        &[source.len() as u8],
        source,
        token,
        &two(content + 1 + TAG),
        &[number],
    ]
    .concat()
}

/// An Initial; padded so that its datagram is long enough with `beside` more octets.
fn initial(keys: &Keys, to: &[u8], from: &[u8], number: u8, frames: &[u8], beside: usize) -> Vec<u8> {
    let overhead = header(0, to, from, 0, 0).len() + TAG + beside;
    let mut content = frames.to_vec();
    content.resize(content.len().max(LEAST.saturating_sub(overhead)), 0);
    // The content is never too short to be sealed.
    keys.seal(&header(0, to, from, content.len(), number), &content).unwrap_or_default()
}

/// A short header (RFC 9000 §17.3), and random octets.
fn short(rng: &mut SplitMix64, destination: &[u8], length: u32) -> Vec<u8> {
    let first = 0x40 | rng.below(64) as u8;
    [&[first][..], destination, &random(rng, length as usize)].concat()
}

/// Both sides' handshakes.
fn opening(rng: &mut SplitMix64, subject: &Subject<'_>, connection: &Connection) -> Vec<Message> {
    let is_hybrid = rng.below(2) == 0;
    let hello = Hello { name: subject.name, protocols: &["h3"], is_hybrid, is_quic: true };
    let hello = client_hello(rng, &hello);
    let Some(version) = Version::of(NUMBER) else { return Vec::new() };
    let keys = Keys::of_client(version, &connection.first);
    let Connection { client, server, first } = connection;
    // In pieces, in a part of the cases the later first; what doesn't fit goes into a second datagram.
    let (front, back) = hello.split_at(hello.len().min(1000));
    let mut pieces = if rng.below(2) == 0 || front.len() < 200 {
        vec![crypto(0, front)]
    } else {
        let (a, b) = front.split_at(front.len() / 3);
        vec![[crypto(a.len(), b), vec![1], crypto(0, a)].concat()]
    };
    if !back.is_empty() {
        pieces.push(crypto(front.len(), back));
    }
    // One of four comes in the wrong order.
    if rng.below(4) == 0 {
        pieces.reverse();
    }
    let mut messages: Vec<Message> = (0..)
        .zip(&pieces)
        .map(|(number, frames)| Message::client(initial(&keys, first, client, number, frames, 0)))
        .collect();
    let of_server = Keys::of_server(version, first);
    let ack = [2, 0, 0, 0, 0];
    let answer = [&ack[..], &crypto(0, &server_hello(rng, is_hybrid, 0))].concat();
    let content = 700 + rng.below(200) as usize;
    let rest = [header(2, client, server, content, 0), random(rng, content + TAG)].concat();
    let is_short = answer.len() < 300;
    let mut coalesced =
        initial(&of_server, client, server, 0, &answer, if is_short { rest.len() } else { 0 });
    if is_short {
        coalesced.extend(&rest);
        messages.push(Message::server(coalesced));
    } else {
        messages.extend([coalesced, rest].map(Message::server));
    }
    let content = 60;
    let finished = [header(2, server, client, content, 0), random(rng, content + TAG)].concat();
    let beside = finished.len();
    messages.push(Message::client([initial(&keys, server, client, 7, &ack, beside), finished].concat()));
    messages
}

/// Requests and answers.
pub(super) fn page(rng: &mut SplitMix64, subject: &Subject<'_>, length: Length) -> Vec<Message> {
    let connection = Connection { client: Vec::new(), server: random(rng, 8), first: random(rng, 8) };
    let mut messages = opening(rng, subject, &connection);
    for _ in 0..length.times(between(rng, 3, 7)) {
        let (question, answer) = (between(rng, 40, 300), between(rng, 100, 1100));
        messages.extend([
            Message::client(short(rng, &connection.server, question)),
            Message::server(short(rng, &connection.client, answer)),
            Message::client(short(rng, &connection.server, 24)),
        ]);
    }
    messages
}
