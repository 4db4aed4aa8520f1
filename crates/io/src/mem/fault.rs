//! A wire that loses, repeats, damages and reorders frames, the same way each time for a seed.

use super::frame::MemFrame;
use crate::frame::Frame;

/// How often each fault happens, in frames per million. All zero by default: a perfect wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Frames lost.
    pub drop_ppm: u32,
    /// Frames that arrive twice.
    pub duplicate_ppm: u32,
    /// Frames with one bit flipped.
    pub corrupt_ppm: u32,
    /// Frames held back until after the next one.
    pub reorder_ppm: u32,
}

impl Faults {
    /// Whether the wire is perfect.
    pub const fn is_none(self) -> bool {
        self.drop_ppm == 0 && self.duplicate_ppm == 0 && self.corrupt_ppm == 0 && self.reorder_ppm == 0
    }
}

/// What a faulty wire has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Frames lost.
    pub dropped: u64,
    /// Extra copies made.
    pub duplicated: u64,
    /// Frames damaged.
    pub corrupted: u64,
    /// Frames that came after a later one.
    pub reordered: u64,
}

/// One direction of a faulty wire.
#[derive(Debug)]
pub(crate) struct FaultyWire {
    faults: Faults,
    counts: FaultCounts,
    random: SplitMix64,
    held: Option<MemFrame>,
}

impl FaultyWire {
    pub(crate) fn new(faults: Faults, seed: u64) -> Self {
        Self { faults, counts: FaultCounts::default(), random: SplitMix64(seed), held: None }
    }

    pub(crate) fn set(&mut self, faults: Faults, seed: u64) {
        self.faults = faults;
        self.random = SplitMix64(seed);
    }

    pub(crate) const fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// True while frames just pass.
    pub(crate) const fn is_transparent(&self) -> bool {
        self.faults.is_none() && self.held.is_none()
    }

    /// Puts one frame on the wire; what arrives at the other end is appended to `out`.
    pub(crate) fn pass(&mut self, mut frame: MemFrame, out: &mut Vec<MemFrame>) {
        if self.random.hits(self.faults.drop_ppm) {
            self.counts.dropped += 1;
            return;
        }
        if self.random.hits(self.faults.corrupt_ppm) && !frame.is_empty() {
            let bit = self.random.next() % (frame.len() as u64 * 8);
            if let Some(byte) = frame.bytes_mut().get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
            self.counts.corrupted += 1;
        }
        if self.held.is_none() && self.random.hits(self.faults.reorder_ppm) {
            self.held = Some(frame);
            return;
        }
        let copy = if self.random.hits(self.faults.duplicate_ppm) { frame.duplicate() } else { None };
        out.push(frame);
        if let Some(copy) = copy {
            self.counts.duplicated += 1;
            out.push(copy);
        }
        if let Some(late) = self.held.take() {
            self.counts.reordered += 1;
            out.push(late);
        }
    }

    /// Lets go a frame that still waits for a later one to overtake it.
    pub(crate) fn flush(&mut self) -> Option<MemFrame> {
        self.held.take()
    }
}

/// Steele, Lea and Flood's SplitMix64: tiny, and good enough to place faults.
#[derive(Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn hits(&mut self, ppm: u32) -> bool {
        ppm != 0 && self.next() % 1_000_000 < u64::from(ppm)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(faults: Faults, seed: u64, frames: u32) -> (Vec<Vec<u8>>, FaultCounts) {
        let mut wire = FaultyWire::new(faults, seed);
        let mut out = Vec::new();
        for i in 0..frames {
            wire.pass(MemFrame::copy_of(&i.to_be_bytes()).unwrap(), &mut out);
        }
        out.extend(wire.flush());
        (out.iter().map(|frame| frame.bytes().to_vec()).collect(), wire.counts())
    }

    #[test]
    fn the_counts_explain_what_arrived() {
        let faults =
            Faults { drop_ppm: 100_000, duplicate_ppm: 50_000, corrupt_ppm: 20_000, reorder_ppm: 30_000 };
        let (out, counts) = run(faults, 7, 10_000);
        assert_eq!(out.len() as u64, 10_000 - counts.dropped + counts.duplicated);
        for (count, expected) in [
            (counts.dropped, 1000),
            (counts.duplicated, 450),
            (counts.corrupted, 180),
            (counts.reordered, 270),
        ] {
            assert!((expected / 2..expected * 2).contains(&count), "{counts:?}");
        }
        assert_eq!(run(faults, 7, 10_000), (out, counts), "the same seed gives the same wire");
        assert_ne!(run(faults, 8, 10_000).1, counts);
    }

    #[test]
    fn reordering_swaps_neighbours_and_loses_nothing() {
        let (out, counts) = run(Faults { reorder_ppm: 1_000_000, ..Faults::default() }, 1, 6);
        let order: Vec<u8> = out.iter().map(|bytes| bytes[3]).collect();
        assert_eq!(order, [1, 0, 3, 2, 5, 4]);
        assert_eq!(counts.reordered, 3);
    }

    #[test]
    fn a_perfect_wire_changes_nothing() {
        let (out, counts) = run(Faults::default(), 3, 100);
        assert_eq!(counts, FaultCounts::default());
        assert!(out.iter().enumerate().all(|(i, bytes)| *bytes == (i as u32).to_be_bytes()));
    }
}
