//! What ciphers NEA2's packets: instructions for AES, where this processor has any, and what they work on.

use std::fmt;

/// 16 octets: a block of AES, a key, a round key.
pub type Block = [u8; 16];

/// Rounds of AES-128 (FIPS 197 §5).
pub const ROUNDS: usize = 10;

/// Instructions for AES that code here is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CipherUnit {
    /// Plain code: the crate `aes`, packet by packet.
    Any,
    /// AES-NI: one block an instruction.
    Aes,
    /// VAES on 256 bits: two blocks an instruction.
    Vaes,
}

impl CipherUnit {
    /// All of them, the widest last.
    pub const ALL: [Self; 3] = [Self::Any, Self::Aes, Self::Vaes];

    /// Whether the machine that this runs on has it.
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Any => true,
            Self::Aes => is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.1"),
            Self::Vaes => {
                Self::Aes.is_here() && is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2")
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self == Self::Any;
    }

    /// Those that this machine has, the widest last.
    pub fn here() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.into_iter().filter(|unit| unit.is_here())
    }

    /// The widest that this machine has.
    pub fn best() -> Self {
        Self::here().next_back().unwrap_or(Self::Any)
    }
}

impl fmt::Display for CipherUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Any => "any",
            Self::Aes => "aes-ni",
            Self::Vaes => "vaes-256",
        })
    }
}

/// A packet's part in a batch.
pub struct Job<'a> {
    /// AES key.
    pub key: &'a Block,
    /// The first 64 bits of the counter's block; the others count from zero.
    pub prefix: u64,
    /// What is changed.
    pub data: &'a mut [u8],
}

/// A key's round keys, in the order in which they are used.
#[derive(Clone)]
pub struct Schedule(pub [Block; ROUNDS + 1]);

/// Asks for what the job will touch first: its key and two lines of its data.
#[inline(always)]
pub fn ask_ahead(key: &Block, data: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = data.as_ptr();
        // SAFETY: a prefetch reads nothing architecturally and raises no fault for any address; SSE is part of the x86-64 baseline.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(key.as_ptr().cast());
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (key, data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_code_is_always_there_and_the_best_unit_is_the_last_of_all() {
        assert_eq!(CipherUnit::here().next(), Some(CipherUnit::Any));
        assert_eq!(CipherUnit::here().last(), Some(CipherUnit::best()));
        assert!(CipherUnit::here().is_sorted());
    }
}
