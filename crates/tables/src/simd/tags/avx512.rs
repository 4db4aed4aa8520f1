//! With AVX-512: eight tags at once, and a key in one comparison.

use super::{Kernel, Tagged, body};
use crate::classify::Tuple6;
use crate::image::Line;
use crate::simd::processor::Processor;
use std::arch::x86_64::*;

/// See the module's documentation. Its functions are inlined into the one below, which is compiled for AVX-512.
struct Avx512;

/// As [`super::bulk`], on a processor that has AVX-512 (or else it does nothing).
pub(super) fn bulk(table: Tagged<'_>, keys: &[Tuple6], out: &mut [Option<u32>]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn compiled(table: Tagged<'_>, keys: &[Tuple6], out: &mut [Option<u32>]) {
        body::<Avx512>(table, keys, out);
    }
    if Processor::Avx512.is_here() {
        // SAFETY: the processor has these instructions.
        unsafe { compiled(table, keys, out) }
    }
}

impl Kernel for Avx512 {
    #[inline(always)]
    fn find(line: &Line, tag: u32) -> u32 {
        // SAFETY: this is inlined into functions that are compiled for AVX-512 and run where it is; the aligned loads read both halves of the line.
        unsafe {
            let tags = _mm256_load_si256(line.0.as_ptr().cast());
            let numbers = _mm256_load_si256(line.0.as_ptr().add(8).cast());
            let same = _mm256_cmpeq_epi32_mask(tags, _mm256_set1_epi32(tag.cast_signed()));
            let mask = _mm256_mask_test_epi32_mask(same, numbers, numbers);
            if mask == 0 { 0 } else { line.0[8 + (mask.trailing_zeros() & 7) as usize] }
        }
    }

    #[inline(always)]
    fn holds(line: &Line, key: &Tuple6) -> bool {
        // SAFETY: as above; of the line all is read, of the key its ten words.
        unsafe {
            const TEN: __mmask16 = 0x3ff;
            let key = _mm512_maskz_loadu_epi32(TEN, key.words.as_ptr().cast());
            _mm512_mask_cmpneq_epi32_mask(TEN, _mm512_load_si512(line.0.as_ptr().cast()), key) == 0
        }
    }
}
