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
    /// VAES on 512 bits, with AVX-512: four blocks an instruction.
    Vaes512,
}

impl CipherUnit {
    /// All of them, the widest last.
    pub const ALL: [Self; 4] = [Self::Any, Self::Aes, Self::Vaes, Self::Vaes512];

    /// Whether the machine that this runs on has it.
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Any => true,
            Self::Aes => is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.1"),
            Self::Vaes => {
                Self::Aes.is_here() && is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2")
            }
            Self::Vaes512 => {
                Self::Vaes.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self == Self::Any;
    }

    /// The instructions that it consists of, by Linux's names in `/proc/cpuinfo`: for machines other than this one.
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Any => &[],
            Self::Aes => &["aes", "sse4_1"],
            Self::Vaes => &["aes", "sse4_1", "vaes", "avx2"],
            Self::Vaes512 => &["aes", "sse4_1", "vaes", "avx2", "avx512f", "avx512bw"],
        }
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
            Self::Vaes512 => "vaes-512",
        })
    }
}

/// A key's round keys, in the order in which they are used.
#[derive(Clone)]
pub struct Schedule(pub [Block; ROUNDS + 1]);

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
