//! Sizes, times and directions of a flow's packets.

use crate::behaviour::opening::{FEWEST, Opening};
use crate::classify::{Carrier, Side};
use tables::Nanos;

/// Such a payload fills a packet, or nearly.
const LARGE: u16 = 1000;
/// Pauses between bursts, in milliseconds: of pictures, 14 to 60 a second.
const FRAME: std::ops::RangeInclusive<u16> = 8..=70;
/// Ciphers that pad do it to so many octets.
const BLOCK: u16 = 16;

/// What one side has sent. Times are milliseconds (of 2^20 ns).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Way {
    /// When its last packet came.
    last: u32,
    /// Between the first packet and the last one; stops at a minute.
    time: u16,
    /// By how much each gap differs from the mean before it, summed up.
    deviation: u16,
    /// The smallest and the largest payload, and all together.
    pub min: u16,
    pub max: u16,
    octets: u16,
    pub packets: u8,
    /// Payloads that fill a packet.
    pub large: u8,
    /// Bursts that followed each other like pictures.
    pub frames: u8,
    pub opening: Opening,
}

/// What a flow's packets look like from outside; see the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shape {
    pub(super) ways: [Way; 2],
    /// Times that the other side spoke.
    pub(super) turns: u8,
    last: Option<Side>,
    /// What a payload's size leaves over, by blocks of 16; and whether all leave that.
    over: u8,
    is_ragged: bool,
}

const _: () = assert!(size_of::<Shape>() <= 48, "with the rest of an examination, 256 bytes");

impl Shape {
    /// A packet with a payload. `begins`: a datagram, or the first octets of a connection that was seen from its SYN on.
    pub fn note(&mut self, carrier: Carrier, side: Side, begins: bool, payload: &[u8], now: Nanos) {
        let size = payload.len().min(usize::from(u16::MAX)) as u16;
        let over = (size % BLOCK) as u8;
        self.is_ragged |= self.last.is_some() && over != self.over;
        self.over = over;
        self.turns = self.turns.saturating_add(u8::from(self.last.is_some_and(|last| last != side)));
        self.last = Some(side);
        let Some(way) = self.ways.get_mut(side as usize) else { return };
        // A datagram may be too short to tell; then the next long one does.
        let is_asked = way.packets == 0 || carrier != Carrier::Tcp && payload.len() >= FEWEST;
        if begins && is_asked && way.opening == Opening::Unsaid {
            way.opening = Opening::of(payload);
        }
        way.note(size, (now.0 >> 20) as u32);
    }

    /// What this side has sent.
    pub(super) const fn of(&self, side: Side) -> &Way {
        &self.ways[side as usize]
    }

    /// Packets of both sides.
    pub fn packets(&self) -> u16 {
        self.ways.iter().map(|way| u16::from(way.packets)).sum()
    }

    /// All payloads leave the same over when cut into blocks.
    pub(super) const fn is_padded(&self) -> bool {
        !self.is_ragged
    }
}

impl Way {
    fn note(&mut self, size: u16, now: u32) {
        if self.packets > 0 {
            // A capture may go back in time; then no time has passed.
            let since = now.wrapping_sub(self.last);
            let gap = if since > u32::MAX / 2 { 0 } else { since.min(u16::MAX.into()) as u16 };
            if self.packets > 1 {
                self.deviation = self.deviation.saturating_add(gap.abs_diff(self.gap()));
            }
            self.time = self.time.saturating_add(gap);
            self.frames = self.frames.saturating_add(u8::from(FRAME.contains(&gap)));
        }
        self.last = now;
        self.min = if self.packets == 0 { size } else { self.min.min(size) };
        self.max = self.max.max(size);
        self.octets = self.octets.saturating_add(size);
        self.large = self.large.saturating_add(u8::from(size >= LARGE));
        self.packets = self.packets.saturating_add(1);
    }

    /// The mean time between packets.
    pub fn gap(&self) -> u16 {
        self.time.checked_div(u16::from(self.packets.saturating_sub(1))).unwrap_or(0)
    }

    /// How much of the mean gap a gap differs from it on average, in percent.
    pub fn jitter(&self) -> u32 {
        (u32::from(self.deviation) * 100).checked_div(u32::from(self.time)).unwrap_or(0)
    }

    /// The mean payload.
    pub fn size(&self) -> u16 {
        self.octets.checked_div(u16::from(self.packets)).unwrap_or(0)
    }
}
