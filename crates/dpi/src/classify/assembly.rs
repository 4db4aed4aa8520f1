//! A message that comes in pieces, put together.
//!
//! A ClientHello takes several segments, and QUIC's CRYPTO frames come in any order and over several packets (RFC 9000 §7.5). What is put together is
//! always a message's beginning, which is short: so an assembly has a hard bound, and what lies beyond is not kept.

use crate::classify::message::{Sums, Text};

/// Octets that are put together at most. A ClientHello with post-quantum key shares has under 2,000; one with a large ticket some more.
pub const MOST: usize = 8 * 1024;
/// Octets that most messages fit into: an assembly has room for so many, or for [`MOST`].
const USUAL: usize = 2 * 1024;
/// Gaps between pieces, at most.
const PIECES: usize = 32;

/// What one takes, at most.
pub const LARGEST: usize = size_of::<Assembly>() + MOST + PIECES * size_of::<(u16, u16)>();

/// What was put together so far, and how far it reaches.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    octets: Vec<u8>,
    /// Pieces, from and to, in order, apart from each other.
    pieces: Vec<(u16, u16)>,
    tag: Text<20>,
    /// Sums of what recognisers have written of it so far.
    pub(crate) told: Sums,
}

/// Why a piece was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMuch;

impl Assembly {
    /// Puts a piece in its place. Where octets are there already, the earlier ones stand.
    pub fn put(&mut self, at: usize, piece: &[u8]) -> Result<(), TooMuch> {
        let end = at.checked_add(piece.len()).filter(|end| *end <= MOST).ok_or(TooMuch)?;
        if piece.is_empty() {
            return Ok(());
        }
        let (from, to) = (at as u16, end as u16);
        // Pieces that the new one touches or overlaps become one with it.
        let first = self.pieces.partition_point(|it| it.1 < from);
        let last = self.pieces.partition_point(|it| it.0 <= to);
        let touched = self.pieces.get(first..last).unwrap_or_default();
        if touched.is_empty() && self.pieces.len() >= PIECES {
            return Err(TooMuch);
        }
        if self.octets.len() < end {
            let room = if end > USUAL { MOST } else { USUAL };
            self.octets.reserve_exact(room - self.octets.len());
            self.octets.resize(end, 0);
        }
        // Only the gaps among what is there are filled.
        let mut free = from;
        for &(begins, ends) in touched {
            copy(&mut self.octets, piece, from, free, begins);
            free = free.max(ends);
        }
        copy(&mut self.octets, piece, from, free, to);
        let from = touched.first().map_or(from, |it| it.0.min(from));
        let to = touched.last().map_or(to, |it| it.1.max(to));
        self.pieces.splice(first..last, [(from, to)]);
        Ok(())
    }

    /// What is there without a gap from the beginning.
    pub fn contiguous(&self) -> &[u8] {
        match self.pieces.first() {
            Some((0, to)) => self.octets.get(..usize::from(*to)).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Bytes of memory: [`LARGEST`] at most.
    pub const fn memory(&self) -> usize {
        size_of::<Self>() + self.octets.capacity() + self.pieces.capacity() * size_of::<(u16, u16)>()
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A note for whoever puts together: what it needs for the next piece (QUIC: the connection ID that keys are made of).
    pub fn tag(&self) -> &[u8] {
        self.tag.bytes()
    }

    /// Sets the note.
    pub fn set_tag(&mut self, tag: &[u8]) {
        self.tag.set(tag);
    }

    /// As new; its memory is kept for the next one.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.pieces.clear();
        self.tag.clear();
        self.told = Sums::default();
    }
}

/// Copies what of `piece`, which begins at `origin`, lies between `from` and `to`.
fn copy(octets: &mut [u8], piece: &[u8], origin: u16, from: u16, to: u16) {
    if from < to {
        let (from, to, origin) = (usize::from(from), usize::from(to), usize::from(origin));
        if let (Some(place), Some(source)) =
            (octets.get_mut(from..to), piece.get(from - origin..(to - origin).min(piece.len())))
            && place.len() == source.len()
        {
            place.copy_from_slice(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against one octet at a time: the first one that came to a place stands.
        #[test]
        fn pieces_in_any_order_give_what_came_first(
            pieces in prop::collection::vec((0_usize..200, prop::collection::vec(any::<u8>(), 0..60)), 0..24)
        ) {
            let mut model = vec![None; 300];
            let mut assembly = Assembly::default();
            for (at, piece) in &pieces {
                prop_assert_eq!(assembly.put(*at, piece), Ok(()));
                for (place, octet) in model.iter_mut().skip(*at).zip(piece) {
                    place.get_or_insert(*octet);
                }
                let expected: Vec<u8> = model.iter().map_while(|it| *it).collect();
                prop_assert_eq!(assembly.contiguous(), expected);
                prop_assert!(assembly.memory() <= size_of::<Assembly>() + USUAL + PIECES * 4);
            }
        }
    }

    #[test]
    fn it_is_bounded_in_octets_and_in_gaps() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.put(MOST - 1, b"ab"), Err(TooMuch));
        assert_eq!(assembly.put(usize::MAX, b"ab"), Err(TooMuch));
        for piece in 0..PIECES {
            assert_eq!(assembly.put(piece * 2, b"x"), Ok(()));
            assert!(assembly.memory() <= LARGEST);
        }
        assert_eq!(assembly.put(PIECES * 2, b"x"), Err(TooMuch));
        assert_eq!(assembly.put(1, b"y"), Ok(()), "one that closes a gap is taken");
        assert_eq!(assembly.contiguous(), b"xyx");
        assembly.clear();
        assert!(assembly.is_empty() && assembly.contiguous().is_empty());
    }

    /// What a table's budget counts for one is what it takes, octet by octet, whatever is put in.
    #[test]
    fn its_memory_is_never_more_than_the_largest() {
        const { assert!(LARGEST == size_of::<Assembly>() + 8 * 1024 + 128, "a worker's memory is made of these") };
        for step in [1, 7, 1000, 1460, USUAL, MOST] {
            let mut assembly = Assembly::default();
            for at in (0..MOST).step_by(step) {
                assert_eq!(assembly.put(at, &vec![1; step.min(MOST - at)]), Ok(()));
                assert!(assembly.memory() <= LARGEST, "{step} at a time, at {at}: {}", assembly.memory());
            }
            assert_eq!(assembly.contiguous().len(), MOST);
            assembly.clear();
            assert!(assembly.memory() <= LARGEST, "kept for the next one");
            for at in (0..PIECES).map(|it| MOST - 1 - 2 * it) {
                assert_eq!(assembly.put(at, b"x"), Ok(()));
                assert!(assembly.memory() <= LARGEST);
            }
        }
    }
}
