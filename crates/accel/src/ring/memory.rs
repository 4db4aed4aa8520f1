//! The words of a ring: what both sides may do with them.
//!
//! Data is written and read by *relaxed* operations, which cost what plain ones do; that makes it no undefined behaviour if a device that was given up still
//! writes. What orders them is the sequence: written by [`Word::release`], and read by [`Word::acquire`].

use std::sync::atomic::{AtomicU64, Ordering};

/// A word that both sides see.
pub trait Word {
    /// Reads it, in no order.
    fn get(&self) -> u64;
    /// Writes it, in no order.
    fn set(&self, value: u64);
    /// Reads it; who has seen what [`release`](Self::release) wrote sees all that was written before.
    fn acquire(&self) -> u64;
    /// Writes it after all that was written before.
    fn release(&self, value: u64);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn acquire(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
}

/// Memory that a ring may lie in.
pub trait Memory: Send {
    /// Its words.
    type Word: Word;

    /// All of them. They start as zeros.
    fn words(&self) -> &[Self::Word];
}

/// Memory of this process, for both sides in it.
impl<W: Word + Send + Sync> Memory for std::sync::Arc<[W]> {
    type Word = W;

    fn words(&self) -> &[W] {
        self
    }
}

/// Copies octets into words, as they lie in a little-endian machine's memory. What is left of the last word becomes zero.
pub(super) fn write<W: Word>(words: &[W], octets: &[u8]) {
    let (whole, rest) = octets.as_chunks();
    for (word, octets) in words.iter().zip(whole) {
        word.set(u64::from_le_bytes(*octets));
    }
    if let (false, Some(word)) = (rest.is_empty(), words.get(whole.len())) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        word.set(u64::from_le_bytes(last));
    }
}

/// Copies words into octets.
pub(super) fn read<W: Word>(words: &[W], octets: &mut [u8]) {
    let (whole, rest) = octets.as_chunks_mut();
    for (octets, word) in whole.iter_mut().zip(words) {
        *octets = word.get().to_le_bytes();
    }
    if let Some(word) = words.get(whole.len()) {
        let last = word.get().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}
