//! Whose other bucket is worth a look: what look-ups in memory know beside the image.
//!
//! **Problem.** A key that isn't in its home bucket may be in its other one, and so each miss would wait for two lines of DRAM, one after the other.
//!
//! **Model.** An entry that is not at home is a *stray*. Each bucket has an octet of marks for the strays whose home it is, a bit for each of eight
//! *sorts* (three bits of the hash): where the bit of a key's sort is clear, the key is at home or nowhere. Where 90 % of the slots are taken, one key in
//! twelve that isn't there finds its bit set. The marks of sixteen million flows are 4 MB, which the cache has; so it's known which lines a look-up needs before
//! any of them has come, and they are asked for together. The marks have to be asked for as well, and read when they have come.
//!
//! **Exact.** A mark goes when the last stray of its sort does: strays are counted in four bits each. A count that has been 15 stays, and its mark with it:
//! that costs a look too many, and no answer. Whoever doesn't know the seed can't bring it about.
//!
//! **Cost.** 5 bytes a bucket. Copies on devices don't have it: they read both buckets.

use super::CuckooError;
use crate::image;

/// The strays of each bucket.
pub(crate) struct Strays {
    /// Bit *i*: there are strays of sort *i*.
    marks: Vec<u8>,
    /// How many, in bits `4i` to `4i+3`.
    counts: Vec<u32>,
}

/// Where a count stays.
const MOST: u32 = 15;

impl Strays {
    /// None, of so many buckets.
    pub(crate) fn new(buckets: usize) -> Result<Self, CuckooError> {
        let mut marks = image::on_large_pages(buckets).ok_or(CuckooError::Full)?;
        let mut counts = image::on_large_pages(buckets).ok_or(CuckooError::Full)?;
        marks.resize(buckets, 0);
        counts.resize(buckets, 0);
        Ok(Self { marks, counts })
    }

    /// The marks, by bucket.
    #[inline(always)]
    pub(crate) fn marks(&self) -> &[u8] {
        &self.marks
    }

    /// Whether a key of this home and sort may be a stray.
    #[inline(always)]
    pub(crate) fn may_be(&self, home: u32, sort: u32) -> bool {
        is_marked(&self.marks, home, sort)
    }

    /// A stray more.
    pub(crate) fn add(&mut self, home: u32, sort: u32) {
        self.change(home, sort, |count| (count + 1).min(MOST));
    }

    /// A stray less.
    pub(crate) fn remove(&mut self, home: u32, sort: u32) {
        self.change(home, sort, |count| if count == MOST { MOST } else { count.saturating_sub(1) });
    }

    fn change(&mut self, home: u32, sort: u32, to: impl Fn(u32) -> u32) {
        let (Some(counts), Some(marks)) =
            (self.counts.get_mut(home as usize), self.marks.get_mut(home as usize))
        else {
            return;
        };
        let (sort, shift) = (sort % 8, sort % 8 * 4);
        let count = to(*counts >> shift & MOST);
        *counts = *counts & !(MOST << shift) | count << shift;
        *marks = *marks & !(1 << sort) | u8::from(count > 0) << sort;
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.marks.capacity() + self.counts.capacity() * size_of::<u32>()
    }

    /// How many of a sort.
    #[cfg(test)]
    pub(crate) fn count(&self, home: u32, sort: u32) -> u32 {
        self.counts[home as usize] >> (sort % 8 * 4) & MOST
    }
}

/// Whether the mark of a sort is set.
#[inline(always)]
pub(crate) fn is_marked(marks: &[u8], home: u32, sort: u32) -> bool {
    marks.get(home as usize).is_some_and(|marks| *marks >> (sort % 8) & 1 != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_mark_goes_with_the_last_stray_of_its_sort_and_stays_with_too_many() {
        let mut strays = Strays::new(2).unwrap();
        for sort in 0..8 {
            strays.add(1, sort);
            strays.add(1, sort);
            strays.remove(1, sort);
            assert!(strays.may_be(1, sort) && strays.count(1, sort) == 1);
        }
        strays.remove(1, 3);
        assert_eq!(strays.marks(), [0, 0b1111_0111]);
        // More than can be counted: it isn't known when they are all gone.
        (0..20).for_each(|_| strays.add(0, 7));
        (0..20).for_each(|_| strays.remove(0, 7));
        assert_eq!((strays.marks()[0], strays.count(0, 7)), (0x80, MOST));
        // Nowhere, nothing.
        strays.add(2, 0);
        assert!(!strays.may_be(2, 0));
    }
}
