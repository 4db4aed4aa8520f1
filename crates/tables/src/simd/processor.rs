//! What this processor's vectors can do.

use std::fmt;

/// A set of vector instructions that code here is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Processor {
    /// Plain code: what the compiler makes of it for any processor.
    Any,
    /// AVX2: 32 octets at once.
    Avx2,
    /// AVX-512 with its instructions for octets and 16-bit words (F, BW, VL): 64 octets at once.
    Avx512,
}

impl Processor {
    /// All of them, the widest last.
    pub const ALL: [Self; 3] = [Self::Any, Self::Avx2, Self::Avx512];

    /// Whether the machine that this runs on has it.
    #[inline]
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Any => true,
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self == Self::Any;
    }

    /// The instructions that it consists of, by Linux's names in `/proc/cpuinfo`: for machines other than this one.
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Any => &[],
            Self::Avx2 => &["avx2"],
            Self::Avx512 => &["avx512f", "avx512bw", "avx512vl"],
        }
    }

    /// Those that this machine has, the widest last.
    pub fn here() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.into_iter().filter(|processor| processor.is_here())
    }

    /// The widest that this machine has.
    pub fn best() -> Self {
        Self::here().next_back().unwrap_or(Self::Any)
    }

    /// Its name, as benchmarks have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_machine_has_is_always_there_and_the_best_is_the_last_of_all() {
        assert_eq!(Processor::here().next(), Some(Processor::Any));
        assert_eq!(Processor::here().last(), Some(Processor::best()));
        assert!(Processor::here().is_sorted());
    }
}
