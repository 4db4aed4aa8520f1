//! Tunnels, and what nobody knows.

use super::tls::{Hello, client_hello};
use super::{Length, Message, Subject, between, counted, random};
use crate::rng::SplitMix64;

/// As many ciphered packets each way, of what `wrap` makes of them.
fn carried(
    rng: &mut SplitMix64,
    times: u32,
    mut wrap: impl FnMut(u32, &mut SplitMix64, usize) -> Vec<u8>,
) -> Vec<Message> {
    let mut messages = Vec::new();
    for number in 0..times {
        let (up, down) = (between(rng, 4, 20) as usize * 16, between(rng, 4, 84) as usize * 16);
        messages.push(Message::client(wrap(number, rng, up)));
        messages.push(Message::server(wrap(number, rng, down)));
    }
    messages
}

/// Initiation, response, data (the paper's §5.4).
pub(super) fn wireguard(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    let initiation = [vec![1, 0, 0, 0], random(rng, 128), vec![0; 16]].concat();
    let response = [vec![2, 0, 0, 0], random(rng, 72), vec![0; 16]].concat();
    let receiver = random(rng, 4);
    let mut messages = vec![Message::client(initiation), Message::server(response)];
    messages.extend(carried(rng, 1 + length.times(12), |number, rng, size| {
        [&[4, 0, 0, 0][..], &receiver, &u64::from(number).to_le_bytes(), &random(rng, size + 16)].concat()
    }));
    messages
}

/// Resets, the hello of TLS in a control packet, data.
pub(super) fn openvpn(rng: &mut SplitMix64, subject: &Subject<'_>, length: Length) -> Vec<Message> {
    let (client, server) = (random(rng, 8), random(rng, 8));
    let hello = Hello { name: subject.name, protocols: &[], is_hybrid: false, is_quic: false };
    let hello = client_hello(rng, &hello);
    let record = [&[22, 3, 1][..], &counted(&hello)].concat();
    let mut messages = vec![
        Message::client([&[7 << 3][..], &client, &[0], &[0; 4]].concat()),
        Message::server([&[8 << 3][..], &server, &[1], &[0; 4], &client, &[0; 4]].concat()),
        Message::client([&[5 << 3][..], &client, &[1], &[0; 4], &server].concat()),
        Message::client([&[4 << 3][..], &client, &[0], &[0, 0, 0, 1], &record].concat()),
    ];
    messages.extend(carried(rng, 1 + length.times(10), |number, rng, size| {
        [&[9 << 3, 0, 0, 0][..], &number.to_be_bytes(), &random(rng, size + 16)].concat()
    }));
    messages
}

/// IKE_SA_INIT (RFC 7296 §1.2): a proposal, a key, a nonce.
pub(super) fn ike(rng: &mut SplitMix64) -> Vec<Message> {
    let payload = |next: u8, content: &[u8]| {
        [&[next, 0][..], &(content.len() as u16 + 4).to_be_bytes(), content].concat()
    };
    let transforms = [[1_u8, 0, 20], [2, 0, 5], [4, 0, 31]];
    let proposal: Vec<u8> = (0..)
        .zip(transforms)
        .flat_map(|(place, [kind, high, low])| [if place == 2 { 0 } else { 3 }, 0, 0, 8, kind, 0, high, low])
        .collect();
    let proposal =
        [&[0, 0][..], &(proposal.len() as u16 + 8).to_be_bytes(), &[1, 1, 0, 3], &proposal].concat();
    let (initiator, responder) = (random(rng, 8), random(rng, 8));
    let mut message = |flags: u8, responder: &[u8]| {
        let key = [&[0, 31, 0, 0][..], &random(rng, 32)].concat();
        let payloads = [payload(34, &proposal), payload(40, &key), payload(0, &random(rng, 32))].concat();
        let length = payloads.len() as u32 + 28;
        let head = [33, 0x20, 34, flags, 0, 0, 0, 0];
        [&initiator[..], responder, &head, &length.to_be_bytes(), &payloads].concat()
    };
    vec![Message::client(message(0x08, &[0; 8])), Message::server(message(0x20, &responder))]
}

/// ESP in UDP (RFC 3948): an index that isn't zero, a number.
pub(super) fn esp(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    let index = (rng.next_u64() as u32 | 0x0100_0000).to_be_bytes();
    carried(rng, 2 + length.times(12), |number, rng, size| {
        [&index[..], &(number + 1).to_be_bytes(), &random(rng, size + 16)].concat()
    })
}

/// Nothing that could be known.
pub(super) fn noise(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    carried(rng, 2 + length.times(6), |_, rng, size| random(rng, size))
}
