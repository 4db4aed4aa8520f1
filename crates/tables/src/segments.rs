//! Arrays that are filled from one end and given back piece by piece.
//!
//! **Problem.** An array of many megabytes that a table has outgrown takes the allocator milliseconds to give back to the system, in
//! the midst of one insertion.
//!
//! **Layout.** The first 512 KiB (of buckets of a line) are a vector that is reserved whole: a small table has no other, and
//! looks at nothing else. Beyond it there are segments of the same size, each reserved when it is reached and given back when it
//! has been left.

use crate::hash::Full;

/// Logarithm of the buckets in a segment; fewer in this crate's own tests, so that small tables have many.
const LOG: u32 = if cfg!(test) { 7 } else { 13 };
/// Elements of a segment.
const LENGTH: usize = 1 << LOG;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Segments<T> {
    first: Vec<T>,
    rest: Option<Box<[Vec<T>]>>,
}

impl<T> Segments<T> {
    pub const fn new() -> Self {
        Self { first: Vec::new(), rest: None }
    }

    /// Room for `count` elements, a power of two.
    pub fn with_capacity(count: usize) -> Result<Self, Full> {
        Self::within(Vec::new(), count)
    }

    /// Likewise, in a vector that may have room for the first segment.
    pub fn within(mut first: Vec<T>, count: usize) -> Result<Self, Full> {
        first.clear();
        first.try_reserve_exact(Self::first(count)).map_err(|_| Full)?;
        let mut rest = Vec::new();
        let segments = (count / LENGTH).saturating_sub(1);
        rest.try_reserve_exact(segments).map_err(|_| Full)?;
        rest.resize_with(segments, Vec::new);
        Ok(Self { first, rest: (segments > 0).then(|| rest.into_boxed_slice()) })
    }

    /// Elements of the first segment, if there is room for `count`.
    pub fn first(count: usize) -> usize {
        count.min(LENGTH)
    }

    /// Whether nothing was ever put in.
    pub const fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Elements reserved.
    pub fn capacity(&self) -> usize {
        self.first.capacity() + self.rest.iter().flatten().map(Vec::capacity).sum::<usize>()
    }

    /// Bytes that the directory of segments takes.
    pub fn directory(&self) -> usize {
        self.rest.as_deref().map_or(0, size_of_val)
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.first.get(index) {
            Some(element) => Some(element),
            None => self.rest.as_deref()?.get((index >> LOG).wrapping_sub(1))?.get(index % LENGTH),
        }
    }

    #[inline(always)]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.first.get_mut(index) {
            Some(element) => Some(element),
            None => {
                self.rest.as_deref_mut()?.get_mut((index >> LOG).wrapping_sub(1))?.get_mut(index % LENGTH)
            }
        }
    }

    /// Makes sure that the elements `index` and `index + 1`, which come next, can be pushed. `index` is even.
    pub fn reserve_pair(&mut self, index: usize) -> Result<(), Full> {
        let segment = self.segment(index).ok_or(Full)?;
        if segment.capacity() == 0 && index >= LENGTH {
            segment.try_reserve_exact(LENGTH).map_err(|_| Full)?;
        }
        Ok(())
    }

    /// Appends an element, whose number is `index`.
    pub fn push(&mut self, index: usize, element: T) {
        if let Some(segment) = self.segment(index) {
            segment.push(element);
        }
    }

    /// The elements up to this one are not needed any more; whole segments of them are given back.
    pub fn leave(&mut self, index: usize) {
        if (index + 1).is_multiple_of(LENGTH)
            && let Some(segment) = self.segment(index)
        {
            *segment = Vec::new();
        }
    }

    /// All elements that are there.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flatten().flatten())
    }

    fn segment(&mut self, index: usize) -> Option<&mut Vec<T>> {
        match (index >> LOG).checked_sub(1) {
            None => Some(&mut self.first),
            Some(segment) => self.rest.as_deref_mut()?.get_mut(segment),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_there_until_it_is_left() {
        for count in [1, 2, LENGTH / 2, LENGTH, 2 * LENGTH, 8 * LENGTH] {
            let mut segments = Segments::with_capacity(count).unwrap();
            assert!(segments.is_empty() && segments.get(0).is_none());
            for index in 0..count {
                assert!(index % 2 != 0 || segments.reserve_pair(index).is_ok());
                assert!(segments.get(index).is_none());
                segments.push(index, index);
                assert_eq!(segments.get(index), Some(&index));
                assert!(segments.capacity() <= (index + 1).next_multiple_of(LENGTH).min(count));
            }
            assert!(segments.get(count).is_none() && segments.reserve_pair(LENGTH.max(count)).is_err());
            assert!(segments.iter().copied().eq(0..count));
            for index in 0..count {
                *segments.get_mut(index).unwrap() += 1;
                assert_eq!(segments.get(index), Some(&(index + 1)));
                segments.leave(index);
                assert!(
                    count < LENGTH || segments.capacity() <= (count - index - 1).next_multiple_of(LENGTH)
                );
            }
            assert!(count < LENGTH || segments.capacity() == 0);
        }
    }
}
