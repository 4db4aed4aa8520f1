//! What does a shape behave like?

use crate::Protocol;
use crate::behaviour::Opening;
use crate::behaviour::shape::{Shape, Way};
use crate::classify::{Carrier, Side};

type Rule = fn(&Shape) -> bool;

/// Each with what may carry it; the first one that fits is it.
const RULES: &[(Protocol, Carrier, Rule)] = &[
    (Protocol::FullyEncrypted, Carrier::Tcp, is_fully_encrypted),
    (Protocol::Tunnel, Carrier::Udp, is_tunnel),
    (Protocol::Call, Carrier::Udp, is_call),
    (Protocol::Game, Carrier::Udp, is_game),
    (Protocol::LiveVideo, Carrier::Udp, is_live_video),
    (Protocol::Bulk, Carrier::Udp, is_bulk),
    (Protocol::Bulk, Carrier::Tcp, is_bulk),
    (Protocol::Interactive, Carrier::Tcp, is_interactive),
];

impl Shape {
    /// What it behaves like, as far as was seen.
    pub fn behaviour(&self, carrier: Carrier) -> Option<Protocol> {
        let mut rules = RULES.iter().filter(|(_, of, _)| *of == carrier);
        rules.find(|(_, _, rule)| rule(self)).map(|it| it.0)
    }

    /// Further packets won't make it clearer.
    pub fn is_clear(&self, carrier: Carrier) -> bool {
        carrier == Carrier::Tcp && is_fully_encrypted(self)
    }

    fn both(&self, holds: impl Fn(&Way) -> bool) -> bool {
        self.ways.iter().all(holds)
    }
}

/// Both sides begin with chance. A compressed upload has an answer in clear, or none.
fn is_fully_encrypted(shape: &Shape) -> bool {
    shape.both(|way| way.opening == Opening::Chance)
}

/// Whole packets inside, both ways, behind the same few octets: the largest fill a packet, and the smallest are no smaller than an IP packet (IP and TCP have
/// 40 octets) with a key's number and a proof of who sent it (24 at least). Either both ways carry large ones, or all are padded to blocks.
fn is_tunnel(shape: &Shape) -> bool {
    let largest = shape.ways.iter().map(|way| way.max).max().unwrap_or(0);
    let whole = shape.both(|way| way.packets >= 6 && way.min >= 64 && way.opening == Opening::Chance);
    let mutual = shape.both(|way| way.large >= 3 && way.max >= 1280);
    shape.packets() >= 24 && whole && largest >= 1280 && (mutual || shape.is_padded())
}

/// A codec's clock: 10 to 60 ms, with the network's jitter; frames of nearly the same size, both ways alike. The smallest usual frame has 20 octets (G.729,
/// 20 ms), behind a header of 12; games have smaller packets.
fn is_call(shape: &Shape) -> bool {
    let [one, other] = shape.ways.each_ref().map(Way::size);
    shape.both(|way| {
        way.packets >= 10
            && way.min >= 32
            && way.max <= 400
            && way.max <= way.min.saturating_mul(2)
            && (9..=65).contains(&way.gap())
            && way.jitter() <= 50
            && way.opening != Opening::Text
    }) && one <= other.saturating_mul(2)
        && other <= one.saturating_mul(2)
}

/// Small datagrams by the clock of a client that draws pictures, and of a server that reckons a world; sizes as much as there is to say.
fn is_game(shape: &Shape) -> bool {
    shape.both(|way| {
        way.packets >= 14
            && way.max <= 700
            && way.size() <= 300
            && (7..=110).contains(&way.gap())
            && way.jitter() <= 40
            && way.opening != Opening::Text
    })
}

/// Pictures: a few full packets at once, then a pause, again and again; and little against them.
fn is_live_video(shape: &Shape) -> bool {
    let (up, down) = (shape.of(Side::Client), shape.of(Side::Server));
    down.packets >= 20
        && u16::from(down.large) * 4 >= u16::from(down.packets) * 3
        && down.frames >= 5
        && u16::from(down.frames) * 2 <= u16::from(down.packets)
        && down.gap() <= 30
        && up.packets > 0
        && up.large == 0
        && up.size() <= 200
}

/// One side sends full packets, the other one next to nothing.
fn is_bulk(shape: &Shape) -> bool {
    let is = |sends: &Way, hears: &Way| {
        sends.packets >= 20
            && u16::from(sends.large) * 10 >= u16::from(sends.packets) * 9
            && u16::from(hears.packets) * 4 <= u16::from(sends.packets)
            && hears.large == 0
    };
    let [client, server] = &shape.ways;
    is(client, server) || is(server, client)
}

/// Somebody types, and sees what it does: little each way, turn by turn, at a person's pace, which is no clock's. What asks a machine now and then looks the
/// same, so that this is no claim that there is a person.
fn is_interactive(shape: &Shape) -> bool {
    let (up, down) = (shape.of(Side::Client), shape.of(Side::Server));
    up.packets >= 8
        && down.packets >= 8
        && up.max <= 200
        && up.size() <= 96
        && down.size() <= 400
        && (60..=3000).contains(&up.gap())
        && up.jitter() >= 30
        && u16::from(shape.turns) * 4 >= shape.packets() * 3
}
