//! The encoder of [`crate::ldpc`], compiled for processors with vectors: it only moves, shifts and adds octets, and the compiler knows
//! how to do that to many at once.

use super::Processor;
use crate::ldpc::{Copies, Plan};

/// As [`Plan::encode`], for a processor that this machine has.
pub(crate) fn encode(processor: Processor, plan: &Plan, copies: &mut Copies, info: &[u8], coded: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if processor != Processor::Any && Processor::Avx2.is_here() {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2(plan, copies, info, coded) };
    }
    let _ = processor;
    plan.encode(copies, info, coded);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(plan: &Plan, copies: &mut Copies, info: &[u8], coded: &mut [u8]) {
    plan.encode(copies, info, coded);
}
