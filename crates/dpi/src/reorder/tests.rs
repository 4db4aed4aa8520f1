//! Streams that come in order, out of order, twice, in part or not at all.
#![allow(clippy::unwrap_used)]

use super::blocks::BLOCK;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags(TcpFlags::ACK.0 | TcpFlags::FIN.0);

/// What a reader sees.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Seen {
    Octets(Vec<u8>),
    Gap(u32),
    End(End),
}

/// A stream, and what was seen of it; octets in a row are one.
struct Reader {
    stream: Stream,
    seen: Vec<Seen>,
}

impl Reader {
    fn new() -> Self {
        Self { stream: Stream::default(), seen: Vec::new() }
    }

    fn see(&mut self, octets: &[u8]) {
        match self.seen.last_mut() {
            _ if octets.is_empty() => {}
            Some(Seen::Octets(before)) => before.extend(octets),
            _ => self.seen.push(Seen::Octets(octets.to_vec())),
        }
    }

    fn push(&mut self, reorder: &mut Reorder, segment: &Segment<'_>, now: u64) -> &'static str {
        let pushed = reorder.push(&mut self.stream, segment, Nanos(now));
        if let Pushed::InOrder(octets) = pushed {
            self.see(octets);
        }
        self.poll(reorder);
        match pushed {
            Pushed::InOrder(_) => "in order",
            Pushed::Held => "held",
            Pushed::Old => "old",
            Pushed::Beyond => "beyond",
        }
    }

    fn poll(&mut self, reorder: &mut Reorder) {
        while let Some(ready) = reorder.poll(&mut self.stream) {
            match ready {
                Ready::Octets(octets) => {
                    let octets = octets.to_vec();
                    self.see(&octets);
                }
                Ready::Gap(octets) => self.seen.push(Seen::Gap(octets)),
                Ready::End(end) => self.seen.push(Seen::End(end)),
            }
        }
    }

    fn flush(&mut self, reorder: &mut Reorder) {
        reorder.flush(&mut self.stream);
        self.poll(reorder);
    }
}

fn octets(text: &str) -> Seen {
    Seen::Octets(text.as_bytes().to_vec())
}

fn segment(sequence: u32, text: &str) -> Segment<'_> {
    Segment { sequence, flags: ACK, payload: text.as_bytes(), missing: 0 }
}

/// Pushes these, a millisecond apart; what became of each, and what was seen.
fn run(limits: Limits, segments: &[Segment<'_>]) -> (Vec<&'static str>, Vec<Seen>, ReorderCounters) {
    let (mut reorder, mut reader) = (Reorder::new(limits), Reader::new());
    let became = segments
        .iter()
        .zip(0..)
        .map(|(segment, at)| reader.push(&mut reorder, segment, at * 1_000_000))
        .collect();
    (became, reader.seen, *reorder.counters())
}

#[test]
fn what_is_in_order_comes_right_back_and_the_rest_when_the_hole_is_filled() {
    let syn = Segment { flags: TcpFlags::SYN, ..segment(99, "") };
    let fin = Segment { flags: FIN, ..segment(112, "") };
    let segments = [
        syn,
        segment(100, "ab"),
        segment(106, "ghi"),
        segment(104, "ef"),
        fin,
        segment(102, "cd"),
        segment(109, "jkl"),
    ];
    let (became, seen, _) = run(Limits::default(), &segments);
    assert_eq!(became, ["in order", "in order", "held", "held", "old", "in order", "in order"]);
    assert_eq!(seen, [octets("abcdefghijkl"), Seen::End(End::Fin)]);
}

#[test]
fn retransmissions_are_trimmed_and_the_first_octets_win() {
    let segments = [
        segment(100, "abcd"),
        segment(98, "XXXX"),
        segment(98, "XXXXXXef"),
        segment(110, "klm"),
        // Around what is kept: only what is new of it counts.
        segment(108, "ijXXXn"),
        segment(106, "ghXXXXXXop"),
    ];
    let (became, seen, counters) = run(Limits::default(), &segments);
    assert_eq!(became, ["in order", "old", "in order", "held", "held", "in order"]);
    assert_eq!(seen, [octets("abcdefghijklmnop")]);
    assert_eq!((counters.conflicts, counters.old), (2, 1));
}

#[test]
fn numbers_wrap() {
    let start = u32::MAX - 2;
    let segments = [segment(start, "ab"), segment(1, "ef"), segment(start.wrapping_add(2), "cd")];
    let (_, seen, _) = run(Limits::default(), &segments);
    assert_eq!(seen, [octets("abcdef")]);
}

#[test]
fn holes_are_given_up_by_each_limit() {
    let lost = |limits| {
        let segments = [segment(0, "a"), segment(3, "d"), segment(5, "f"), segment(6, "g")];
        let (_, seen, counters) = run(limits, &segments);
        let cause = counters.gaps.iter().find(|it| it.1 > 0).map(|it| it.0);
        (cause, seen, counters.missing)
    };
    let none = Limits::default();
    assert_eq!(lost(none), (None, vec![octets("a")], 0));
    let first = vec![octets("a"), Seen::Gap(2), octets("d")];
    assert_eq!(lost(Limits { packets: 2, ..none }), (Some(Cause::Packets), first.clone(), 2));
    assert_eq!(lost(Limits { pieces: 2, ..none }), (Some(Cause::Memory), first.clone(), 2));
    assert_eq!(lost(Limits { octets_each: 2, ..none }), (Some(Cause::Memory), first.clone(), 2));
    assert_eq!(lost(Limits { patience: 1_500_000, ..none }), (Some(Cause::Time), first, 2));
}

#[test]
fn a_hole_that_the_receiver_has_is_ours() {
    let (mut reorder, mut reader) = (Reorder::new(Limits::default()), Reader::new());
    reader.push(&mut reorder, &segment(0, "a"), 0);
    reader.push(&mut reorder, &segment(3, "d"), 0);
    reorder.acknowledged(&reader.stream, 1);
    reader.poll(&mut reorder);
    assert_eq!(reader.seen, [octets("a")]);
    reorder.acknowledged(&reader.stream, 4);
    reader.poll(&mut reorder);
    assert_eq!(reader.seen, [octets("a"), Seen::Gap(2), octets("d")]);
    assert!(!reader.stream.is_waiting());
}

#[test]
fn a_silent_stream_is_given_up_in_time_or_flushed() {
    for flush in [false, true] {
        let (mut reorder, mut reader) = (Reorder::new(Limits::default()), Reader::new());
        reader.push(&mut reorder, &segment(0, "a"), 0);
        reader.push(&mut reorder, &Segment { flags: FIN, ..segment(3, "d") }, 0);
        if flush {
            reader.flush(&mut reorder);
        } else {
            reorder.expire(&reader.stream, Nanos(3 * Nanos::SECOND));
            reader.poll(&mut reorder);
        }
        assert_eq!(reader.seen, [octets("a"), Seen::Gap(2), octets("d"), Seen::End(End::Fin)]);
        assert_eq!(reorder.blocks.used(), 0);
    }
}

#[test]
fn what_lies_before_a_fin_that_was_seen_is_a_gap_when_nothing_more_comes() {
    let (mut reorder, mut reader) = (Reorder::new(Limits::default()), Reader::new());
    reader.push(&mut reorder, &segment(0, "a"), 0);
    reader.push(&mut reorder, &Segment { flags: FIN, ..segment(3, "") }, 0);
    reader.flush(&mut reorder);
    assert_eq!(reader.seen, [octets("a"), Seen::Gap(2), Seen::End(End::Fin)]);
}

#[test]
fn a_reset_ends_a_stream_and_a_syn_begins_another() {
    let (mut reorder, mut reader) = (Reorder::new(Limits::default()), Reader::new());
    let reset = |sequence| Segment { flags: TcpFlags::RST, ..segment(sequence, "") };
    reader.push(&mut reorder, &segment(1_000_000_000, "a"), 0);
    // Far from anything that could come: somebody guesses.
    assert_eq!(reader.push(&mut reorder, &reset(5), 0), "old");
    reader.push(&mut reorder, &segment(1_000_000_003, "d"), 0);
    reader.push(&mut reorder, &reset(1_000_000_004), 0);
    assert_eq!(reader.push(&mut reorder, &segment(1_000_000_004, "e"), 0), "old");
    let syn = Segment { flags: TcpFlags::SYN, ..segment(7, "") };
    reader.push(&mut reorder, &syn, 0);
    reader.push(&mut reorder, &segment(8, "new"), 0);
    assert_eq!(reader.seen, [octets("a"), Seen::Gap(2), octets("d"), Seen::End(End::Reset), octets("new")]);
}

#[test]
fn data_behind_fin_is_no_data() {
    let segments = [segment(0, "a"), Segment { flags: FIN, ..segment(1, "b") }, segment(2, "nonsense")];
    let (_, seen, _) = run(Limits::default(), &segments);
    assert_eq!(seen, [octets("ab"), Seen::End(End::Fin)]);
}

#[test]
fn a_segment_far_ahead_is_not_believed_but_many_are() {
    let limits = Limits { reach: 1000, ..Limits::default() };
    let (mut reorder, mut reader) = (Reorder::new(limits), Reader::new());
    reader.push(&mut reorder, &segment(0, "a"), 0);
    assert_eq!(reader.push(&mut reorder, &segment(5000, "x"), 0), "beyond");
    assert_eq!(reader.push(&mut reorder, &segment(1, "b"), 0), "in order");
    for at in 1..u32::from(CONVINCING) {
        assert_eq!(reader.push(&mut reorder, &segment(5000 + at, "x"), 0), "beyond");
    }
    assert_eq!(reader.push(&mut reorder, &segment(6000, "y"), 0), "held");
    assert_eq!(reader.seen, [octets("ab"), Seen::Gap(5998), octets("y")]);
}

#[test]
fn what_was_cut_off_is_a_gap_at_once() {
    let segments = [Segment { missing: 3, ..segment(0, "ab") }, segment(5, "fg"), segment(3, "de")];
    let (became, seen, counters) = run(Limits::default(), &segments);
    assert_eq!(became, ["in order", "in order", "old"]);
    assert_eq!(seen, [octets("ab"), Seen::Gap(3), octets("fg")]);
    assert_eq!(counters.gaps.get(Cause::Cut), 1);
}

#[test]
fn a_closed_stream_leaves_nothing() {
    let (mut reorder, mut reader) = (Reorder::new(Limits::default()), Reader::new());
    reader.push(&mut reorder, &segment(0, "a"), 0);
    reader.push(&mut reorder, &segment(5, "d"), 0);
    reorder.close(&mut reader.stream);
    assert_eq!((reorder.blocks.used(), reorder.held.len()), (0, 0));
}

#[test]
fn a_stream_whose_blocks_were_taken_goes_on_behind_a_gap() {
    let limits = Limits { octets: 2 * BLOCK, ..Limits::default() };
    let mut reorder = Reorder::new(limits);
    let (mut one, mut two) = (Reader::new(), Reader::new());
    one.push(&mut reorder, &segment(0, "a"), 0);
    two.push(&mut reorder, &segment(0, "a"), 0);
    one.push(&mut reorder, &segment(5, "f"), 0);
    two.push(&mut reorder, &segment(5, "f"), 0);
    two.push(&mut reorder, &segment(7, "h"), 0);
    one.push(&mut reorder, &segment(6, "g"), 0);
    assert_eq!(one.seen, [octets("a"), Seen::Gap(5), octets("g")]);
    // Now it was the other one's turn.
    two.push(&mut reorder, &segment(8, "i"), 0);
    assert_eq!(two.seen, [octets("a"), Seen::Gap(7), octets("i")]);
}

/// The octet at a place, as the `version`th sender has it.
fn octet(place: usize, version: u8) -> u8 {
    (place as u8).wrapping_mul(37) ^ (place >> 8) as u8 ^ version
}

fn payload(from: usize, length: usize, version: u8) -> Vec<u8> {
    (from..from + length).map(|place| octet(place, version)).collect()
}

proptest! {
    #[test]
    fn every_order_gives_what_came_first_of_each_octet(
        start in prop_oneof![any::<u32>(), (0..5000u32).prop_map(|it| 0u32.wrapping_sub(it))],
        parts in prop::collection::vec((0..6000usize, 1..2500usize, 0..3u8), 1..60),
    ) {
        let mut reorder = Reorder::new(Limits::default());
        let mut reader = Reader::new();
        let syn = Segment { flags: TcpFlags::SYN, ..segment(start, "") };
        reader.push(&mut reorder, &syn, 0);
        let mut model: BTreeMap<usize, u8> = BTreeMap::new();
        for (from, length, version) in parts {
            let content = payload(from, length, version);
            for (place, octet) in (from..).zip(&content) {
                model.entry(place).or_insert(*octet);
            }
            let sequence = start.wrapping_add(1).wrapping_add(from as u32);
            reader.push(&mut reorder, &Segment { sequence, flags: ACK, payload: &content, missing: 0 }, 0);
        }
        reader.flush(&mut reorder);
        let (mut expected, mut at) = (Reader::new(), 0);
        for (place, octet) in model {
            if place > at {
                expected.seen.push(Seen::Gap((place - at) as u32));
            }
            expected.see(&[octet]);
            at = place + 1;
        }
        prop_assert_eq!(reader.seen, expected.seen);
        prop_assert_eq!(reorder.blocks.used(), 0);
        prop_assert!(reorder.held.is_empty());
    }

    #[test]
    fn many_streams_within_little_memory_never_say_anything_false(
        parts in prop::collection::vec((0..6usize, 0..30_000usize, 1..4000usize, 0..40u8), 1..300),
        acknowledged in prop::collection::vec((0..6usize, 0..30_000u32), 0..20),
    ) {
        let limits = Limits {
            streams: 4, octets: 12 * BLOCK, octets_each: 6000, pieces: 6, packets: 20, patience: 50_000, reach: 20_000,
        };
        let mut reorder = Reorder::new(limits);
        let most = 12 * (BLOCK + 64) * 2 + 16 * (size_of::<Held>() + 32);
        let mut readers: Vec<Reader> = (0..6).map(|_| Reader::new()).collect();
        for (at, (which, from, length, flags)) in parts.into_iter().enumerate() {
            let content = payload(from, length, 0);
            // Few of them have FIN or RST.
            let flags = match flags { 0 => FIN, 1 => TcpFlags::RST, _ => ACK };
            let segment = Segment { sequence: from as u32, flags, payload: &content, missing: 0 };
            let reader = &mut readers[which];
            if reader.stream.state == State::New {
                let syn = Segment { sequence: u32::MAX, flags: TcpFlags::SYN, payload: &[], missing: 0 };
                reader.push(&mut reorder, &syn, 0);
            }
            reader.push(&mut reorder, &segment, at as u64 * 1000);
            if let Some((which, number)) = acknowledged.get(at) {
                let reader = &mut readers[*which];
                reorder.acknowledged(&reader.stream, *number);
                reader.poll(&mut reorder);
            }
            prop_assert!(reorder.memory() <= most, "{} > {most}", reorder.memory());
        }
        for reader in &mut readers {
            reader.flush(&mut reorder);
            let mut at = 0;
            for seen in &reader.seen {
                match seen {
                    Seen::Gap(octets) => at += *octets as usize,
                    Seen::Octets(octets) => {
                        prop_assert_eq!(octets, &payload(at, octets.len(), 0));
                        at += octets.len();
                    }
                    Seen::End(_) => {}
                }
            }
            prop_assert!(reader.seen.iter().filter(|seen| matches!(seen, Seen::End(_))).count() <= 1);
        }
        prop_assert_eq!(reorder.blocks.used(), 0);
    }
}

const _: () = assert!(size_of::<Stream>() <= 40);
