//! Storage that grows without moving what it holds.
//!
//! **Problem.** A vector that is full moves all of its elements, and a table of a million of them stalls for as long as that takes.
//!
//! **Layout.** Chunks of 4, then 8, then 16 ... elements, [`PER_DOUBLING`] of each size. An element's chunk
//! and its place in it follow from the position of its number's highest bit and the two below it. What is reserved ahead is at most a
//! quarter of what is held and four more, and it isn't touched before it is needed. The directory of chunks
//! is a vector: four of them more with every doubling, so moving it costs nothing worth a name, and three quarters of all elements
//! are found through three of its lines: of hundreds of sequences these stay in a core's cache.
//!
//! **Cost.** An access: two bounds checks, and one more line that is normally cached. Chunks are never given back before
//! the whole is.

use crate::prefetch::{prefetch, prefetch_end, prefetch_lines};
use std::mem::MaybeUninit;

/// Logarithm of the number of chunks of one size, which is that of the first chunk's length, too.
const DETAIL: u32 = 2;
/// Chunks of one size.
pub(crate) const PER_DOUBLING: usize = 1 << DETAIL;

/// What the system gives at a time, at least.
const PAGE: usize = 4096;

/// The chunk of an element and its place there.
#[inline(always)]
const fn place(index: u32) -> (usize, usize) {
    // The first size counts as 4 chunks of 4 that come after 4 times 4 elements that don't exist.
    let shifted = index as u64 + (1 << (2 * DETAIL));
    let shift = shifted.ilog2() - DETAIL;
    let chunk = ((shift - DETAIL) << DETAIL) as usize + (shifted >> shift) as usize - PER_DOUBLING;
    (chunk, (shifted & ((1 << shift) - 1)) as usize)
}

/// Elements of a chunk.
const fn length(chunk: usize) -> usize {
    1 << (chunk / PER_DOUBLING + DETAIL as usize)
}

/// Writes to each page that a vector has reserved, so that the system gives the memory now.
fn touch<T>(vector: &mut Vec<T>) {
    let step = (PAGE / size_of::<T>().max(1)).max(1);
    for place in vector.spare_capacity_mut().iter_mut().step_by(step) {
        *place = MaybeUninit::zeroed();
    }
}

/// A vector with room for so many elements, in memory that was written to; without any if there is none.
pub(crate) fn touched<T>(length: usize) -> Vec<T> {
    let mut vector = Vec::new();
    if vector.try_reserve_exact(length).is_ok() {
        touch(&mut vector);
    }
    vector
}

/// A sequence that grows and shrinks at its end, and whose elements stay where they are.
#[derive(Clone, Debug)]
pub(crate) struct Chunks<T> {
    /// All full up to the one that `len` lies in; those behind it are empty.
    chunks: Vec<Vec<T>>,
    len: u32,
}

impl<T> Chunks<T> {
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// Reserves the chunks of the first `count` elements.
    pub fn reserve(&mut self, count: u32) {
        if let Some(last) = count.checked_sub(1) {
            for chunk in self.chunks.len()..=place(last).0 {
                self.chunks.push(Vec::with_capacity(length(chunk)));
            }
        }
    }

    /// Likewise, and writes to each page of them, so that the system has given the memory when the first element comes.
    pub fn occupy(&mut self, count: u32) {
        self.reserve(count);
        self.chunks.iter_mut().for_each(touch);
    }

    /// The length of the chunk that the next element needs; `None` while there is room.
    pub fn needs(&self) -> Option<usize> {
        let (chunk, _) = place(self.len);
        (chunk == self.chunks.len()).then(|| length(chunk))
    }

    /// The length of the chunk that will be needed when all there are are full.
    pub fn next(&self) -> usize {
        length(self.chunks.len())
    }

    /// Elements for which there is room, those that are there included.
    pub fn room(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }

    /// Adds a chunk as long as [`Self::next`], which somebody has made.
    pub fn add(&mut self, chunk: Vec<T>) {
        if chunk.is_empty() && chunk.capacity() >= self.next() {
            self.chunks.push(chunk);
        }
    }

    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Bytes reserved, without those of `self`.
    pub fn memory(&self) -> usize {
        self.chunks.capacity() * size_of::<Vec<T>>()
            + self.chunks.iter().map(Vec::capacity).sum::<usize>() * size_of::<T>()
    }

    /// Appends an element; its number was [`Self::len`].
    pub fn push(&mut self, value: T) {
        let (chunk, _) = place(self.len);
        if chunk == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(length(chunk)));
        }
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.push(value);
            self.len += 1;
        }
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let value = self.chunks.get_mut(place(last).0)?.pop()?;
        self.len = last;
        Some(value)
    }

    /// Removes an element; the last one gets its number.
    pub fn swap_remove(&mut self, index: u32) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let last = self.pop()?;
        match self.get_mut(index) {
            Some(hole) => Some(std::mem::replace(hole, last)),
            None => Some(last),
        }
    }

    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<&T> {
        let (chunk, at) = place(index);
        self.chunks.get(chunk)?.get(at)
    }

    #[inline(always)]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (chunk, at) = place(index);
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    /// Asks for the first line of an element.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        if let Some(value) = self.get(index) {
            prefetch(value);
        }
    }

    /// Asks for all lines of an element.
    #[inline(always)]
    pub fn prefetch_whole(&self, index: u32) {
        if let Some(value) = self.get(index) {
            prefetch_lines(std::slice::from_ref(value), usize::MAX);
        }
    }

    /// Asks for the line that [`Self::push`] writes next, if its chunk is there.
    pub fn prefetch_next(&self) {
        if let Some(chunk) = self.chunks.get(place(self.len).0) {
            prefetch_end(chunk);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_follow_each_other_and_chunks_grow_by_a_quarter() {
        let (mut chunk, mut at, mut reserved) = (0, 0, length(0));
        for index in 0..100_000 {
            assert_eq!(place(index), (chunk, at), "{index}");
            assert!(reserved - index as usize <= index as usize / PER_DOUBLING + PER_DOUBLING);
            at += 1;
            if at == length(chunk) {
                chunk += 1;
                at = 0;
                reserved += length(chunk);
            }
        }
    }

    #[test]
    fn the_last_number_has_a_place() {
        let (chunk, at) = place(u32::MAX);
        let before: u64 = (0..chunk).map(|chunk| length(chunk) as u64).sum();
        assert_eq!(before + at as u64, u32::MAX.into());
        assert!(at < length(chunk));
    }

    #[test]
    fn elements_stay_where_they_are() {
        let mut chunks = Chunks::new();
        chunks.push(0_u32);
        let first = std::ptr::from_ref(chunks.get(0).unwrap());
        for value in 1..50_000 {
            chunks.push(value);
        }
        assert_eq!(std::ptr::from_ref(chunks.get(0).unwrap()), first);
    }

    proptest! {
        #[test]
        fn equals_a_vector(ops in prop::collection::vec((0_u8..8, 0_u32..300), 0..600), reserved in 0_u32..300) {
            let mut chunks = Chunks::new();
            if reserved % 2 == 0 { chunks.reserve(reserved) } else { chunks.occupy(reserved) }
            prop_assert!(chunks.memory() >= reserved as usize * size_of::<u32>());
            let mut model = Vec::new();
            for (op, index) in ops {
                match op {
                    0 => prop_assert_eq!(chunks.pop(), model.pop()),
                    1 => {
                        let expected = ((index as usize) < model.len()).then(|| model.swap_remove(index as usize));
                        prop_assert_eq!(chunks.swap_remove(index), expected);
                    }
                    2 => prop_assert_eq!(chunks.get_mut(index), model.get_mut(index as usize)),
                    _ => {
                        chunks.push(index);
                        model.push(index);
                    }
                }
                prop_assert_eq!(chunks.len() as usize, model.len());
            }
            prop_assert_eq!(chunks.iter().copied().collect::<Vec<_>>(), model.clone());
            prop_assert_eq!(chunks.iter_mut().map(|value| *value).collect::<Vec<_>>(), model.clone());
            for index in 0..310 {
                prop_assert_eq!(chunks.get(index), model.get(index as usize));
            }
        }
    }
}
