//! The loops of [`crate::transport_block`] over octets and LLRs, compiled for processors with vectors: the compiler knows how to move, spread and
//! add many at once.

use super::Processor;
use crate::transport_block::Modulation;
use crate::transport_block::rate_matching::{self, Circle};

/// A function of `transport_block::rate_matching`, compiled for any processor and for those with AVX2, of which this machine has one if it is asked for.
macro_rules! compiled {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $(#[$doc])*
        pub(crate) fn $name(processor: Processor, $($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            if processor != Processor::Any && Processor::Avx2.is_here() {
                #[target_feature(enable = "avx2")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    rate_matching::$name($($argument),*)
                }
                // SAFETY: the processor has AVX2.
                return unsafe { avx2($($argument),*) };
            }
            let _ = processor;
            rate_matching::$name($($argument),*)
        }
    };
}

compiled! {
    /// Interleaves `count` bits; `to` has room for eight octets more than these need.
    interleave(modulation: Modulation, from: &[u8], count: usize, to: &mut [u8])
}

compiled! {
    /// The inverse for LLRs.
    deinterleave(modulation: Modulation, from: &[i8], to: &mut [i8])
}

compiled! {
    /// Adds LLRs to those of the circle's bits, clipped. Where the last of these bits ends.
    combine(circle: &Circle, llrs: &[i8], soft: &mut [i8]) -> usize
}
