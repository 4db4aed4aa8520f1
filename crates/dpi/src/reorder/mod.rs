//! TCP segments come in any order; what they carry is wanted in one.
//!
//! **Problem.** A message may be cut anywhere, its pieces may come twice, late, overlapping with other octets in them, or never where we
//! look. A reader wants octets in their order, and where some are missing, it wants to know that, and to go on.
//!
//! **Model.** Each direction of a connection has a [`Stream`], a few words that live wherever its flow lives. Segments are
//! [pushed](Reorder::push): what is in order comes right back and is not copied, what is ahead of a hole is kept in blocks that all streams share.
//! After each push the rest is [polled](Reorder::poll), until there is none: octets that became ready, gaps that are given up, the end.
//!
//! - The octets that came first win; what differs later is dropped and counted. What was handed on is never taken back.
//! - A hole is given up when what waits behind it takes too much, when too many packets or too much time have passed, or when the receiver
//!   acknowledges more than has been seen ([`Reorder::acknowledged`]): then it isn't a loss of theirs but of ours.
//! - If all blocks are taken, the stream that has waited for longest loses what it keeps. So a stream that is forgotten costs nothing for long.
//!
//! **Example.**
//! ```
//! use dpi::reorder::{Limits, Pushed, Ready, Reorder, Segment, Stream};
//! use packet::tcp::TcpFlags;
//! use tables::Nanos;
//!
//! let mut reorder = Reorder::new(Limits::default());
//! let mut stream = Stream::default();
//! let segment = |sequence, payload| Segment { sequence, flags: TcpFlags::ACK, payload, missing: 0 };
//! assert_eq!(reorder.push(&mut stream, &segment(100, &b"Hel"[..]), Nanos(0)), Pushed::InOrder(b"Hel"));
//! assert_eq!(reorder.push(&mut stream, &segment(105, b"world"), Nanos(1)), Pushed::Held);
//! assert_eq!(reorder.poll(&mut stream), None);
//! assert_eq!(reorder.push(&mut stream, &segment(103, b"lo"), Nanos(2)), Pushed::InOrder(b"lo"));
//! assert_eq!(reorder.poll(&mut stream), Some(Ready::Octets(b"world")));
//! assert_eq!(reorder.poll(&mut stream), None);
//! ```
//!
//! **Cost.** In order: a comparison. Else a walk along what the stream keeps, which is bounded, and a copy.
//!
//! **When not to use it.** Where only the first message counts and it is in one segment, as most are. It knows no windows of receivers: what is sent
//! beyond them, or with a wrong checksum, is taken for what it looks like.

mod blocks;
mod held;
#[cfg(test)]
mod tests;

use blocks::{Blocks, NONE};
use counters::By;
use held::Held;
use packet::TcpView;
use packet::tcp::TcpFlags;
use std::collections::VecDeque;
use tables::{Nanos, Slab};

/// Segments in a row that are too far ahead, after which they are believed: more was lost than can be waited for.
const CONVINCING: u8 = 16;

counters::labels! {
    /// Why a hole is not waited for any longer.
    pub enum Cause: "cause" {
        Memory = "memory", "What waits behind it takes too much.";
        Packets = "packets", "Too many packets came since.";
        Time = "time", "It lasts too long.";
        Acknowledged = "acknowledged", "The receiver has what is missing here.";
        Evicted = "evicted", "Other streams needed the blocks: what was kept is lost, too.";
        Far = "far", "What comes is far ahead.";
        Cut = "cut", "The packet was cut off.";
        End = "end", "Nothing more will come.";
    }
}

counters::counters! {
    /// What became of segments.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct ReorderCounters {
        /// Segments that were kept, for they came too early.
        pub held: u64 = "held", Counter of Packets;
        /// Segments with nothing new.
        pub old: u64 = "old", Counter of Packets;
        /// Segments that were dropped because they are too far ahead.
        pub beyond: u64 = "beyond", Counter of Packets;
        /// Octets that were dropped because there was no room.
        pub dropped: u64 = "dropped", Counter of Bytes;
        /// Segments that say something else about octets that are kept: somebody wants to deceive, or a middlebox has changed them.
        pub conflicts: u64 = "conflicts", Counter of Packets;
        /// Holes that were given up.
        pub gaps: By<Cause, { Cause::COUNT }> = "gaps", Counter;
        /// Octets in them.
        pub missing: u64 = "missing", Counter of Bytes;
    }
}

/// What streams may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Streams with holes.
    pub streams: u32,
    /// Octets of all of them, in whole blocks.
    pub octets: usize,
    /// Octets that one stream may keep before its hole is given up.
    pub octets_each: u32,
    /// Pieces that one stream may keep before its hole is given up; what is in its way later is walked over piece by piece.
    pub pieces: u16,
    /// Packets that may come after a hole before it is given up.
    pub packets: u16,
    /// How long a hole is waited for, in nanoseconds.
    pub patience: u64,
    /// How far ahead of what is expected a segment may be.
    pub reach: u32,
}

impl Limits {
    /// 4,096 streams with holes, 16 MiB; of each 256 KiB, 256 pieces or packets, two seconds; 4 MiB ahead.
    pub const USUAL: Self = Self {
        streams: 4096,
        octets: 16 << 20,
        octets_each: 256 << 10,
        pieces: 256,
        packets: 256,
        patience: 2 * Nanos::SECOND,
        reach: 4 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'s> {
    /// Its sequence number.
    pub sequence: u32,
    /// Its control bits.
    pub flags: TcpFlags,
    /// What it carries.
    pub payload: &'s [u8],
    /// Octets of payload that it has, but that are not here.
    pub missing: usize,
}

impl<'s> Segment<'s> {
    /// Of a segment of whose payload so many octets were cut off.
    pub const fn of(view: &TcpView<'s>, missing: usize) -> Self {
        Self { sequence: view.sequence(), flags: view.flags(), payload: view.payload(), missing }
    }
}

/// What became of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed<'s> {
    /// This much is new and in order; perhaps nothing (an acknowledgement).
    InOrder(&'s [u8]),
    /// Something before it is missing.
    Held,
    /// There is nothing new in it.
    Old,
    /// It is too far ahead to be believed.
    Beyond,
}

/// How a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// With FIN, and all before it was seen or given up.
    Fin,
    /// With RST.
    Reset,
}

/// What became ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready<'r> {
    /// The next octets.
    Octets(&'r [u8]),
    /// So many octets were never seen.
    Gap(u32),
    /// The stream is over.
    End(End),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing has come.
    #[default]
    New,
    Open,
    /// It is over, which is yet to be told.
    Ending(End),
    Over,
}

/// One direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// What comes next.
    next: u32,
    /// Where FIN is.
    fin: Option<u32>,
    /// A gap to be told, which `next` is beyond.
    gap: u32,
    state: State,
    /// Segments in a row that were too far ahead.
    beyond: u8,
    /// What it kept was given to others: the hole will not be filled.
    evicted: bool,
    /// What it keeps: index and generation.
    held: Option<(u32, u32)>,
}

impl Default for Stream {
    fn default() -> Self {
        Self { next: 0, fin: None, gap: 0, state: State::New, beyond: 0, evicted: false, held: None }
    }
}

impl Stream {
    /// The sequence number that comes next.
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// Whether segments wait behind a hole.
    pub const fn is_waiting(&self) -> bool {
        self.held.is_some()
    }
}

/// Puts streams in order.
#[derive(Debug)]
pub struct Reorder {
    limits: Limits,
    held: Slab<Held>,
    /// By the time they began: index and generation.
    order: VecDeque<(u32, u32)>,
    blocks: Blocks,
    /// The block whose octets were handed out last.
    lent: u32,
    counters: ReorderCounters,
}

/// How far `to` is ahead of `from`.
#[inline]
const fn ahead(to: u32, from: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

impl Reorder {
    /// Keeps nothing yet.
    pub fn new(mut limits: Limits) -> Self {
        // RFC 7323 §2.3: no window is larger.
        limits.reach = limits.reach.min(1 << 30);
        Self {
            limits,
            held: Slab::new(limits.streams),
            order: VecDeque::new(),
            blocks: Blocks::new(limits.octets),
            lent: NONE,
            counters: ReorderCounters::default(),
        }
    }

    /// What has been counted.
    pub const fn counters(&self) -> &ReorderCounters {
        &self.counters
    }

    /// Octets that were taken so far.
    pub fn memory(&self) -> usize {
        self.blocks.memory() + self.held.memory()
    }

    /// Takes a segment. To be followed by [`Self::poll`] until there is nothing.
    #[inline]
    pub fn push<'s>(&mut self, stream: &mut Stream, segment: &Segment<'s>, now: Nanos) -> Pushed<'s> {
        const SPECIAL: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        if stream.next == segment.sequence
            && stream.state == State::Open
            && segment.flags.0 & SPECIAL == 0
            && stream.held.is_none()
            && stream.fin.is_none()
            && segment.missing == 0
        {
            stream.next = stream.next.wrapping_add(segment.payload.len() as u32);
            stream.beyond = 0;
            return Pushed::InOrder(segment.payload);
        }
        self.push_rarely(stream, segment, now)
    }

    #[inline(never)]
    fn push_rarely<'s>(&mut self, stream: &mut Stream, segment: &Segment<'s>, now: Nanos) -> Pushed<'s> {
        self.take_back();
        let mut sequence = segment.sequence;
        if segment.flags.contains(TcpFlags::SYN) {
            // The first octet follows it. On a stream that is over it begins another one.
            sequence = sequence.wrapping_add(1);
            if matches!(stream.state, State::New | State::Over | State::Ending(_)) {
                self.close(stream);
                *stream = Stream { next: sequence, state: State::Open, ..Stream::default() };
            }
        }
        match stream.state {
            // Seen from its middle on.
            State::New => *stream = Stream { next: sequence, state: State::Open, ..Stream::default() },
            State::Open => {}
            State::Ending(_) | State::Over => return self.old(),
        }
        if stream.held.is_some() && self.of(stream).is_none() {
            (stream.held, stream.evicted) = (None, true);
        }
        if segment.flags.contains(TcpFlags::RST) {
            return self.reset(stream, sequence);
        }
        let mut payload = segment.payload;
        let end = sequence.wrapping_add((payload.len() + segment.missing) as u32);
        let reach = self.limits.reach.cast_signed();
        if segment.flags.contains(TcpFlags::FIN) && (0..=reach).contains(&ahead(end, stream.next)) {
            // The first one stands.
            stream.fin.get_or_insert(end);
        }
        if let Some(fin) = stream.fin {
            let room = ahead(fin, sequence).max(0) as usize;
            payload = payload.get(..room).unwrap_or(payload);
        }
        let mut distance = ahead(sequence, stream.next);
        if distance < 0 {
            let past = distance.unsigned_abs() as usize;
            payload = payload.get(past..).unwrap_or_default();
            (sequence, distance) = (stream.next, 0);
            if payload.is_empty() {
                return self.old();
            }
        }
        if distance == 0 {
            stream.beyond = 0;
            return Pushed::InOrder(self.in_order(stream, payload, segment.missing, now));
        }
        if payload.is_empty() {
            return self.old();
        }
        let mut due = std::mem::take(&mut stream.evicted).then_some(Cause::Evicted);
        if distance > reach {
            stream.beyond = stream.beyond.saturating_add(1);
            if stream.beyond < CONVINCING {
                self.counters.beyond += 1;
                return Pushed::Beyond;
            }
            due = Some(Cause::Far);
        }
        stream.beyond = 0;
        self.counters.held += 1;
        self.keep(stream, sequence, payload, now);
        if let Some(held) = self.of_mut(stream) {
            held.packets = held.packets.saturating_add(1);
            held.due = held.due.or(due);
        }
        self.judge(stream, now);
        Pushed::Held
    }

    fn old(&mut self) -> Pushed<'static> {
        self.counters.old += 1;
        Pushed::Old
    }

    /// Believed if it can be the next one (RFC 5961 §3.2), or if it is within reach: segments before it may be missing only here.
    fn reset(&mut self, stream: &mut Stream, sequence: u32) -> Pushed<'static> {
        if !(-1..=self.limits.reach.cast_signed()).contains(&ahead(sequence, stream.next)) {
            return self.old();
        }
        stream.state = State::Ending(End::Reset);
        self.flush(stream);
        Pushed::InOrder(&[])
    }

    /// The next octets; what is kept comes first where they overlap, so it isn't handed out here.
    fn in_order<'s>(
        &mut self,
        stream: &mut Stream,
        payload: &'s [u8],
        missing: usize,
        now: Nanos,
    ) -> &'s [u8] {
        let kept_from =
            self.of(stream).and_then(|held| self.blocks.get(held.first)).map(|piece| piece.sequence);
        let room = kept_from.map_or(usize::MAX, |from| ahead(from, stream.next).max(0) as usize);
        let (new, rest) = payload.split_at(payload.len().min(room));
        stream.next = stream.next.wrapping_add(new.len() as u32);
        if !rest.is_empty() {
            self.keep(stream, stream.next, rest, now);
        }
        if missing > 0 && rest.is_empty() {
            // Told by the next poll, behind what is handed out now.
            let octets = missing.min(room.saturating_sub(new.len())) as u32;
            self.gap(stream, octets, Cause::Cut);
            stream.gap = stream.gap.saturating_add(octets);
        }
        self.judge(stream, now);
        new
    }

    /// Tells that the receiver acknowledges all before `number`: if that is more than has been seen, it isn't waited for.
    pub fn acknowledged(&mut self, stream: &Stream, number: u32) {
        let beyond = ahead(number, stream.next);
        if (1..=self.limits.reach.cast_signed()).contains(&beyond)
            && let Some(held) = self.of_mut(stream)
        {
            held.due = held.due.or(Some(Cause::Acknowledged));
        }
    }

    /// Gives a hole up if it lasts too long: for streams on which nothing comes any more.
    pub fn expire(&mut self, stream: &Stream, now: Nanos) {
        self.judge(stream, now);
    }

    /// Nothing more will come: what is kept will be handed out, with its gaps.
    pub fn flush(&mut self, stream: &mut Stream) {
        if stream.state == State::Open {
            stream.state = State::Over;
        }
    }

    /// Drops what is kept.
    pub fn close(&mut self, stream: &mut Stream) {
        if self.of(stream).is_some()
            && let Some((index, _)) = stream.held
        {
            self.discard(index);
        }
        *stream = Stream { state: State::Over, ..Stream::default() };
    }

    /// What became ready.
    pub fn poll(&mut self, stream: &mut Stream) -> Option<Ready<'_>> {
        self.take_back();
        if stream.gap > 0 {
            return Some(Ready::Gap(std::mem::take(&mut stream.gap)));
        }
        while let Some(held) = self.of(stream).copied() {
            let Some(piece) = self.blocks.get(held.first).copied() else {
                if let Some((index, _)) = stream.held.take() {
                    self.discard(index);
                }
                break;
            };
            let distance = ahead(piece.sequence, stream.next);
            if distance > 0 {
                let cause = if stream.state == State::Open { held.due? } else { Cause::End };
                self.gap(stream, distance as u32, cause);
                if let Some(held) = self.of_mut(stream) {
                    // A hole that follows is a new one.
                    (held.due, held.packets, held.since) = (None, 0, held.last);
                }
                return Some(Ready::Gap(distance as u32));
            }
            if let Some(held) = self.of_mut(stream) {
                if piece.next == NONE {
                    held.last_piece = NONE;
                }
                held.first = piece.next;
                held.pieces -= 1;
                held.octets -= u32::from(piece.length);
            }
            let past = distance.unsigned_abs() as usize;
            if past >= usize::from(piece.length) {
                self.blocks.free(held.first);
                continue;
            }
            stream.next = piece.sequence.wrapping_add(u32::from(piece.length));
            self.lent = held.first;
            return Some(Ready::Octets(self.blocks.octets(held.first).get(past..).unwrap_or_default()));
        }
        stream.held = None;
        let left = stream.fin.map(|fin| ahead(fin, stream.next));
        let end = match (stream.state, left) {
            (State::Ending(end), _) => end,
            (_, Some(..=0)) => End::Fin,
            (State::Over, Some(left)) => {
                self.gap(stream, left as u32, Cause::End);
                return Some(Ready::Gap(left as u32));
            }
            _ => return None,
        };
        (stream.state, stream.fin) = (State::Over, None);
        Some(Ready::End(end))
    }

    fn gap(&mut self, stream: &mut Stream, octets: u32, cause: Cause) {
        stream.next = stream.next.wrapping_add(octets);
        self.counters.gaps.add(cause, 1);
        self.counters.missing += u64::from(octets);
    }

    fn take_back(&mut self) {
        self.blocks.free(std::mem::replace(&mut self.lent, NONE));
    }

    fn of(&self, stream: &Stream) -> Option<&Held> {
        stream.held.and_then(|(index, generation)| self.held.get_if(index, generation))
    }

    fn of_mut(&mut self, stream: &Stream) -> Option<&mut Held> {
        stream.held.and_then(|(index, generation)| self.held.get_mut_if(index, generation))
    }

    /// Whether the hole is still waited for.
    fn judge(&mut self, stream: &Stream, now: Nanos) {
        let limits = self.limits;
        if let Some(held) = self.of_mut(stream) {
            held.last = now;
            let cause = if held.octets > limits.octets_each || held.pieces > limits.pieces {
                Cause::Memory
            } else if held.packets > limits.packets {
                Cause::Packets
            } else if now.since(held.since) > limits.patience {
                Cause::Time
            } else {
                return;
            };
            held.due = held.due.or(Some(cause));
        }
    }
}
