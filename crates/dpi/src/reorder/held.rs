//! What streams keep until holes are filled.

use super::blocks::{BLOCK, NONE};
use super::{Cause, Reorder, Stream, ahead};
use tables::Nanos;

/// What a stream keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The first of its pieces, which are in order.
    pub first: u32,
    /// The last one.
    pub last_piece: u32,
    pub pieces: u16,
    pub octets: u32,
    /// Packets since the hole.
    pub packets: u16,
    pub since: Nanos,
    /// When the last segment came.
    pub last: Nanos,
    /// The hole is not waited for.
    pub due: Option<Cause>,
}

impl Reorder {
    /// Keeps those octets of a segment that are not kept yet.
    pub(super) fn keep(&mut self, stream: &mut Stream, mut sequence: u32, mut payload: &[u8], now: Nanos) {
        let Some(index) = self.begin(stream, now) else {
            self.counters.dropped += payload.len() as u64;
            return;
        };
        let (mut before, mut conflict) = (NONE, false);
        let mut at = self.held.get(index).map_or(NONE, |held| held.first);
        // Most often it follows all that is kept.
        if let Some(held) = self.held.get(index)
            && let Some(last) = self.blocks.get(held.last_piece)
            && ahead(sequence, last.sequence.wrapping_add(last.length.into())) >= 0
        {
            (before, at) = (held.last_piece, NONE);
        }
        while !payload.is_empty() {
            let Some(piece) = self.blocks.get(at).copied() else { break };
            // What is new before this piece.
            let room = ahead(piece.sequence, sequence).max(0) as usize;
            let (new, rest) = payload.split_at(payload.len().min(room));
            if !self.insert(index, &mut before, sequence, new) {
                return;
            }
            sequence = sequence.wrapping_add(new.len() as u32);
            // What this piece has already.
            let from = ahead(sequence, piece.sequence).max(0) as usize;
            let kept = self.blocks.octets(at).get(from..).unwrap_or_default();
            let (same, rest) = rest.split_at(rest.len().min(kept.len()));
            conflict |= !kept.starts_with(same);
            sequence = sequence.wrapping_add(same.len() as u32);
            payload = rest;
            (before, at) = (at, piece.next);
        }
        self.counters.conflicts += u64::from(conflict);
        self.insert(index, &mut before, sequence, payload);
    }

    /// Puts octets behind a piece (or first), in as many pieces as it takes; false if there is no room.
    fn insert(&mut self, index: u32, before: &mut u32, mut sequence: u32, octets: &[u8]) -> bool {
        for part in octets.chunks(BLOCK) {
            let full =
                self.held.get(index).is_none_or(|held| held.pieces >= self.limits.pieces.saturating_mul(2));
            let block = if full { None } else { self.block(index) };
            let Some(block) = block else {
                self.counters.dropped += part.len() as u64;
                if let Some(held) = self.held.get_mut(index) {
                    held.due = held.due.or(Some(Cause::Memory));
                }
                return false;
            };
            let next = match self.blocks.get(*before) {
                Some(piece) => piece.next,
                None => self.held.get(index).map_or(NONE, |held| held.first),
            };
            self.blocks.fill(block, sequence, part, next);
            if !self.blocks.lead(*before, block)
                && let Some(held) = self.held.get_mut(index)
            {
                held.first = block;
            }
            if let Some(held) = self.held.get_mut(index) {
                if next == NONE {
                    held.last_piece = block;
                }
                held.pieces += 1;
                held.octets += part.len() as u32;
            }
            sequence = sequence.wrapping_add(part.len() as u32);
            *before = block;
        }
        true
    }

    /// Where this stream keeps what it keeps.
    fn begin(&mut self, stream: &mut Stream, now: Nanos) -> Option<u32> {
        if self.of(stream).is_none() {
            if self.held.len() >= self.limits.streams as usize
                && let Some(oldest) = self.oldest(NONE)
            {
                self.discard(oldest);
            }
            let held = Held {
                first: NONE,
                last_piece: NONE,
                pieces: 0,
                octets: 0,
                packets: 0,
                since: now,
                last: now,
                due: None,
            };
            let index = self.held.insert(held).ok()?;
            let name = (index, self.held.generation(index));
            stream.held = Some(name);
            self.order.push_back(name);
        }
        stream.held.map(|(index, _)| index)
    }

    /// A block for this one, if need be of the one that has waited for longest.
    fn block(&mut self, index: u32) -> Option<u32> {
        loop {
            if let Some(block) = self.blocks.take() {
                return Some(block);
            }
            // Each turn takes one away, so this ends.
            let oldest = self.oldest(index)?;
            self.discard(oldest);
        }
    }

    /// The one that began first, but not this one.
    fn oldest(&mut self, but: u32) -> Option<u32> {
        while let Some((index, generation)) = self.order.front()
            && self.held.get_if(*index, *generation).is_none()
        {
            self.order.pop_front();
        }
        let known = |it: &&(u32, u32)| it.0 != but && self.held.get_if(it.0, it.1).is_some();
        self.order.iter().find(known).map(|it| it.0)
    }

    pub(super) fn discard(&mut self, index: u32) {
        if let Some(held) = self.held.remove(index) {
            let mut at = held.first;
            while let Some(piece) = self.blocks.get(at).copied() {
                self.blocks.free(at);
                at = piece.next;
            }
        }
        self.tidy();
    }

    /// What is gone must not pile up in the order.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.held.len() + 64 {
            let held = &self.held;
            self.order.retain(|(index, generation)| held.get_if(*index, *generation).is_some());
        }
    }
}
