//! Calls: ICE checks (RFC 8445, STUN of RFC 8489), then RTP (RFC 3550) both ways.

use super::{Length, Message, between, counted, random};
use crate::rng::SplitMix64;

/// RFC 8489 §5.
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut attribute = [&kind.to_be_bytes()[..], &counted(content)].concat();
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// With FINGERPRINT (RFC 8489 §14.7), as ICE wants it.
fn stun(kind: u16, transaction: &[u8], attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes = attributes.concat();
    let length = attributes.len() as u16 + 8;
    let mut message =
        [&kind.to_be_bytes()[..], &length.to_be_bytes(), &COOKIE, transaction, &attributes].concat();
    let sum = crc32fast::hash(&message) ^ 0x5354_554e;
    message.extend(attribute(0x8028, &sum.to_be_bytes()));
    message
}

fn check(rng: &mut SplitMix64) -> [Message; 2] {
    let transaction = random(rng, 12);
    let request = [
        attribute(0x0006, b"k3Qz:9fLw"),
        attribute(0x0024, &[0x6e, 0x7f, 0x1e, 0xff]),
        attribute(0x802a, &random(rng, 8)),
        attribute(0x0008, &random(rng, 20)),
    ];
    let answer =
        [attribute(0x0020, &[&[0, 1][..], &random(rng, 6)].concat()), attribute(0x0008, &random(rng, 20))];
    [
        Message::client(stun(0x0001, &transaction, &request)),
        Message::server(stun(0x0101, &transaction, &answer)),
    ]
}

/// One side's media.
struct Media {
    source: [u8; 4],
    sequence: u16,
    time: u32,
}

impl Media {
    fn new(rng: &mut SplitMix64) -> Self {
        let number = rng.next_u64();
        Self {
            source: (number as u32).to_be_bytes(),
            sequence: (number >> 32) as u16,
            time: (number >> 16) as u32,
        }
    }

    /// 20 ms of Opus (RFC 7587: a clock of 48 kHz).
    fn next(&mut self, rng: &mut SplitMix64) -> Vec<u8> {
        let length = between(rng, 60, 160) as usize;
        self.sequence = self.sequence.wrapping_add(1);
        self.time = self.time.wrapping_add(960);
        let fixed = [&[0x80, 111][..], &self.sequence.to_be_bytes(), &self.time.to_be_bytes(), &self.source];
        [fixed.concat(), random(rng, length)].concat()
    }
}

/// A call with voice.
pub(super) fn call(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    let mut messages = Vec::from(check(rng));
    messages.extend(check(rng));
    let (mut client, mut server) = (Media::new(rng), Media::new(rng));
    for _ in 0..4 + length.times(between(rng, 20, 60)) {
        messages.push(Message::client(client.next(rng)));
        messages.push(Message::server(server.next(rng)));
    }
    messages
}
