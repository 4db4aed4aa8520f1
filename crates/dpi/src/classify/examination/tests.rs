//! With recognisers that are made up, so that each answer's consequences are seen alone.

use super::*;
use crate::classify::{Carriers, First, Recogniser, Strength};
use proptest::prelude::*;

/// Begins with an L and says how long it is; complete only then. Writes the rest down.
fn long(message: &mut Message<'_>) -> Answer {
    if !message.begins || message.u8(0) != Some(b'L') {
        return Answer::No;
    }
    let Some(length) = message.u8(1) else { return Answer::Longer };
    match message.bytes.get(2..2 + usize::from(length)) {
        Some(text) => {
            message.sheet.host.set(text);
            Answer::Is
        }
        None => Answer::Longer,
    }
}

/// Two of them, and another one speaks.
fn twice(message: &mut Message<'_>) -> Answer {
    match message.bytes {
        [b'N'] if message.begins => Answer::Longer,
        [b'N', b'N', ..] if message.begins => Answer::Within(2),
        _ => Answer::No,
    }
}

/// Two texts with a dot between them, each written down as soon as it is there; and one who writes before he says no.
fn texts(message: &mut Message<'_>) -> Answer {
    let Some(said) = message.bytes.strip_prefix(b"T").filter(|_| message.begins) else {
        message.sheet.host.set(b"nobody");
        return Answer::No;
    };
    let dot = said.iter().position(|octet| *octet == b'.');
    if let Some(dot) = dot {
        message.sheet.host.set(&said[..dot]);
    }
    match said.get(3..5) {
        Some(agent) => {
            message.sheet.agent.set(agent);
            Answer::Is
        }
        None => Answer::Longer,
    }
}

/// Somebody who says P looks like it.
fn perhaps(message: &mut Message<'_>) -> Answer {
    if message.has(0, b"P") { Answer::Perhaps } else { Answer::No }
}

/// After a W, another one speaks.
fn within(message: &mut Message<'_>) -> Answer {
    if message.has(0, b"W") { Answer::Within(1) } else { Answer::No }
}

/// Goes on after an O, until a dot.
fn open(message: &mut Message<'_>) -> Answer {
    let has_begun = message.history.of(Side::Client).first() == b"O";
    match message.u8(0) {
        Some(b'.') if has_begun => Answer::Is,
        Some(b'O') => Answer::Open,
        _ if has_begun => Answer::Open,
        _ => Answer::No,
    }
}

/// A pair of datagrams: the first one's text is kept for the second one.
fn pair(message: &mut Message<'_>) -> Answer {
    let Some(rest) = message.bytes.strip_prefix(b"D") else { return Answer::No };
    let at = message.assembly.contiguous().len();
    if message.assembly.put(at, rest).is_err() {
        return Answer::No;
    }
    if at == 0 {
        return Answer::Next;
    }
    message.sheet.host.set(message.assembly.contiguous());
    Answer::Is
}

const fn row(
    protocol: Protocol,
    carriers: Carriers,
    ports: &'static [u16],
    probe: fn(&mut Message<'_>) -> Answer,
) -> Recogniser {
    crate::protocols::shape::row(protocol, carriers, ports, First::Any, Strength::Shape, probe)
}

static FAKES: [Recogniser; 7] = [
    row(Protocol::Tls, Carriers::TCP, &[443], long),
    row(Protocol::Ssh, Carriers::BOTH, &[22], perhaps),
    row(Protocol::Http, Carriers::TCP, &[80], within),
    row(Protocol::Dns, Carriers::TCP, &[53], open),
    row(Protocol::Dtls, Carriers::UDP, &[], pair),
    row(Protocol::Imap, Carriers::TCP, &[], twice),
    row(Protocol::Pop3, Carriers::TCP, &[], texts),
];

struct Flow {
    classifier: Classifier,
    room: Room,
    examination: Examination,
    carrier: Carrier,
    port: u16,
}

impl Flow {
    fn new(carrier: Carrier, port: u16) -> Self {
        let classifier = Classifier::of(FAKES.iter().collect());
        Self { classifier, room: Room::new(4), examination: Examination::default(), carrier, port }
    }

    fn show(&mut self, side: Side, segment: Option<Segment>, payload: &[u8]) -> Progress {
        let client = End { address: [192, 0, 2, 1].into(), port: 40_000 };
        let server = End { address: [198, 51, 100, 1].into(), port: self.port };
        let shown = Shown { now: Nanos(0), carrier: self.carrier, side, client, server, segment, payload };
        let limits = Limits { behaviour: 0, ..Limits::USUAL };
        self.examination.step(&self.classifier, &limits, &mut self.room, &shown)
    }

    fn segment(&mut self, side: Side, sequence: u32, payload: &[u8]) -> Progress {
        self.show(side, Some(Segment { sequence, is_syn: false }), payload)
    }

    fn conclude(&mut self) -> (Option<Protocol>, Reason) {
        let verdict = self.examination.conclude(&self.classifier, &mut self.room, self.carrier, self.port);
        assert_eq!(self.room.lent, 0, "what was lent has come back");
        (verdict.protocol, verdict.reason)
    }
}

#[test]
fn a_message_that_was_never_whole_is_what_it_began_as() {
    let mut flow = Flow::new(Carrier::Tcp, 8443);
    assert_eq!(flow.segment(Side::Client, 7, b"L\x09abc"), Progress::Goes);
    assert_eq!(flow.conclude(), (Some(Protocol::Tls), Reason::Begins));
}

#[test]
fn a_shape_counts_on_its_port_and_from_both_sides() {
    let mut usual = Flow::new(Carrier::Udp, 22);
    assert_eq!(usual.show(Side::Client, None, b"P"), Progress::Ends);
    assert_eq!(usual.conclude(), (Some(Protocol::Ssh), Reason::UsualShape));
    let mut alone = Flow::new(Carrier::Udp, 5000);
    assert_eq!(alone.show(Side::Client, None, b"P"), Progress::Goes);
    assert_eq!(alone.conclude(), (Some(Protocol::Ssh), Reason::Shape));
    let mut both = Flow::new(Carrier::Udp, 5000);
    assert_eq!(both.show(Side::Client, None, b"P"), Progress::Goes);
    assert_eq!(both.show(Side::Server, None, b"P"), Progress::Ends);
    assert_eq!(both.conclude(), (Some(Protocol::Ssh), Reason::BothSides));
}

#[test]
fn what_is_carried_inside_is_looked_at_anew() {
    let mut flow = Flow::new(Carrier::Tcp, 5000);
    assert_eq!(flow.segment(Side::Client, 100, b"W"), Progress::Goes);
    assert_eq!(flow.segment(Side::Client, 101, b"L\x03ab"), Progress::Goes);
    assert_eq!(flow.segment(Side::Client, 105, b"c"), Progress::Ends);
    assert_eq!(flow.room.desk.sheet.host.bytes(), b"abc");
    let verdict = flow.examination.conclude(&flow.classifier, &mut flow.room, Carrier::Tcp, 5000);
    assert_eq!((verdict.protocol, verdict.over), (Some(Protocol::Tls), Some(Protocol::Http)));
    let mut silent = Flow::new(Carrier::Tcp, 5000);
    silent.segment(Side::Client, 100, b"W");
    assert_eq!(silent.conclude().0, Some(Protocol::Http), "what carries it is known at least");
}

/// However segments are cut, and whatever lies in each other, the same is found.
#[test]
fn what_is_carried_inside_may_begin_in_the_same_segment() {
    let stream = b"WWL\x05abcde";
    for first in 1..stream.len() {
        for second in first..stream.len() {
            let mut flow = Flow::new(Carrier::Tcp, 5000);
            let mut progress = Progress::Goes;
            let mut at = 0;
            for end in [first, second, stream.len()] {
                if end > at {
                    assert_eq!(progress, Progress::Goes);
                    progress = flow.segment(Side::Client, 100 + at as u32, &stream[at..end]);
                }
                at = end;
            }
            assert_eq!((progress, flow.room.desk.sheet.host.bytes()), (Progress::Ends, &b"abcde"[..]));
            let verdict = flow.examination.conclude(&flow.classifier, &mut flow.room, Carrier::Tcp, 5000);
            assert_eq!((verdict.protocol, verdict.over), (Some(Protocol::Tls), Some(Protocol::Http)));
            assert_eq!(flow.room.lent, 0);
        }
    }
}

/// What lies behind a beginning that came in pieces, of which the last one has more.
#[test]
fn what_follows_a_beginning_in_pieces_is_looked_at_too() {
    let mut flow = Flow::new(Carrier::Tcp, 5000);
    assert_eq!(flow.segment(Side::Client, 1, b"N"), Progress::Goes);
    assert_eq!(flow.segment(Side::Client, 2, b"NL\x02a"), Progress::Goes);
    assert_eq!(flow.examination.history.of(Side::Client).first(), b"L\x02a", "of the inner one's");
    assert_eq!(flow.segment(Side::Client, 6, b"b"), Progress::Ends);
    assert_eq!(flow.room.desk.sheet.host.bytes(), b"ab");
    assert_eq!(flow.conclude().0, Some(Protocol::Tls));
}

#[test]
fn what_never_ends_to_begin_anew_ends() {
    let mut flow = Flow::new(Carrier::Tcp, 5000);
    flow.room.trace = Some(Vec::new());
    assert_eq!(flow.segment(Side::Client, 1, &[b'W'; 1000]), Progress::Ends);
    let answers = flow.room.trace.take().unwrap_or_default();
    let within = answers.iter().filter(|it| matches!(it.answer, Answer::Within(_))).count();
    assert_eq!(within, usize::from(DEPTH) + 1);
    assert_eq!(flow.conclude().0, Some(Protocol::Http));
}

/// Each once, whether it was there before the message was whole or not; and not what one wrote who says no.
#[test]
fn what_is_written_is_told_once() {
    let stream = b"Tab.cd";
    for cut in 1..stream.len() {
        let mut flow = Flow::new(Carrier::Tcp, 5000);
        let mut told = Vec::new();
        for (at, piece) in [(0, &stream[..cut]), (cut, &stream[cut..])] {
            flow.segment(Side::Client, 9 + at as u32, piece);
            let entries = flow.room.desk.sheet.entries();
            told.extend(entries.map(|(what, text)| (what, String::from_utf8_lossy(text).into_owned())));
        }
        told.sort();
        let expected = [("agent", "cd"), ("host", "ab")].map(|(what, text)| (what, text.to_owned()));
        assert_eq!(told, expected, "cut at {cut}");
    }
    let mut flow = Flow::new(Carrier::Tcp, 5000);
    flow.segment(Side::Client, 9, b"Xab");
    assert!(flow.room.desk.sheet.is_empty(), "who says no has written it");
}

#[test]
fn who_is_open_is_asked_alone_until_it_is_done() {
    let mut flow = Flow::new(Carrier::Tcp, 5000);
    flow.room.trace = Some(Vec::new());
    assert_eq!(flow.segment(Side::Client, 1, b"O"), Progress::Goes);
    flow.room.trace = Some(Vec::new());
    assert_eq!(flow.segment(Side::Server, 1, b"L\x01a"), Progress::Goes);
    assert_eq!(flow.room.trace.as_ref().map(Vec::len), Some(1));
    assert_eq!(flow.segment(Side::Client, 2, b"."), Progress::Ends);
    assert_eq!(flow.conclude(), (Some(Protocol::Dns), Reason::Parser));
}

#[test]
fn datagrams_that_belong_together_share_an_assembly() {
    let mut flow = Flow::new(Carrier::Udp, 5000);
    assert_eq!(flow.show(Side::Client, None, b"Dab"), Progress::Goes);
    assert_eq!(flow.show(Side::Client, None, b"Dcd"), Progress::Ends);
    assert_eq!(flow.room.desk.sheet.host.bytes(), b"abcd");
    assert_eq!(flow.conclude(), (Some(Protocol::Dtls), Reason::Parser));
    // What one flow left is not in the next one's.
    let room = std::mem::take(&mut flow.room);
    let mut next = Flow::new(Carrier::Udp, 5000);
    next.room = room;
    assert_eq!(next.show(Side::Client, None, b"Dxy"), Progress::Goes);
    assert_eq!(next.examination.assembly.as_ref().map(|it| it.contiguous()), Some(&b"xy"[..]));
}

#[test]
fn a_flow_that_nobody_knows_ends_and_so_does_an_endless_message() {
    let mut unknown = Flow::new(Carrier::Tcp, 5000);
    let mut sequence = 1;
    let packets = (0..100).position(|number| {
        let side = if number % 2 == 0 { Side::Client } else { Side::Server };
        sequence += 4;
        unknown.segment(side, sequence, b"\0\0\0\0") == Progress::Ends
    });
    assert_eq!(packets, Some(3), "both sides have begun like nothing known");
    assert_eq!(unknown.conclude(), (None, Reason::Unlike));
    let mut endless = Flow::new(Carrier::Tcp, 5000);
    endless.segment(Side::Client, 1, b"L\xff");
    let packets =
        (0..100).position(|number| endless.segment(Side::Client, 3 + number, b"x") == Progress::Ends);
    assert!(packets.is_some_and(|it| it < usize::from(Limits::default().packets)));
    assert_eq!(endless.conclude(), (Some(Protocol::Tls), Reason::Begins));
}

#[test]
fn without_room_a_message_must_come_whole() {
    let mut flow = Flow::new(Carrier::Tcp, 5000);
    flow.room.most_assemblies = 0;
    flow.segment(Side::Client, 1, b"L\x03a");
    assert_eq!(flow.room.refused, 1);
    assert_eq!(flow.conclude(), (Some(Protocol::Tls), Reason::Begins));
}

proptest! {
    /// Pieces in any order, some of them twice, overlapping, across the wrap of sequence numbers: the message is the same.
    #[test]
    fn a_stream_is_put_together_however_it_comes(
        text in prop::collection::vec(any::<u8>(), 3..120),
        mut cuts in prop::collection::vec(0_usize..120, 0..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        overlap in 0_usize..4,
        origin in prop_oneof![Just(u32::MAX - 20), any::<u32>()],
    ) {
        let stream: Vec<u8> = [&[b'L', text.len() as u8], &text[..]].concat();
        cuts.extend([0, stream.len()]);
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(stream.len()));
        cuts.sort_unstable();
        cuts.dedup();
        let mut pieces: Vec<_> = cuts.windows(2)
            .map(|ends| (ends[0], &stream[ends[0]..(ends[1] + overlap).min(stream.len())]))
            .collect();
        for (number, place) in order.iter().enumerate() {
            if pieces.len() > 1 {
                let place = place.index(pieces.len());
                let from = number % pieces.len();
                pieces.swap(from, place);
            }
        }
        let mut flow = Flow::new(Carrier::Tcp, 5000);
        let syn = Segment { sequence: origin, is_syn: true };
        prop_assert_eq!(flow.show(Side::Client, Some(syn), b""), Progress::Goes);
        let mut ended = false;
        for (at, piece) in &pieces {
            let sequence = origin.wrapping_add(*at as u32);
            ended = flow.segment(Side::Client, sequence, piece) == Progress::Ends;
            if ended {
                break;
            }
            // A repetition changes nothing.
            ended = flow.segment(Side::Client, sequence, piece) == Progress::Ends;
            if ended {
                break;
            }
        }
        prop_assert!(ended);
        prop_assert_eq!(flow.room.desk.sheet.host.bytes(), &text[..]);
        prop_assert_eq!(flow.conclude(), (Some(Protocol::Tls), Reason::Parser));
    }
}
