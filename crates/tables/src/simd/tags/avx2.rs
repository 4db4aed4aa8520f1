//! With AVX2: eight tags at once, and a key in two comparisons.

use super::{Kernel, Tagged, body};
use crate::classify::Tuple6;
use crate::image::Line;
use std::arch::x86_64::*;

/// See the module's documentation. Its functions are inlined into the one below, which is compiled for AVX2.
pub(super) struct Avx2;

/// As [`super::bulk`], on a processor that has AVX2 (or else it does nothing).
pub(super) fn bulk(table: Tagged<'_>, keys: &[Tuple6], out: &mut [Option<u32>]) {
    #[target_feature(enable = "avx2")]
    fn compiled(table: Tagged<'_>, keys: &[Tuple6], out: &mut [Option<u32>]) {
        body::<Avx2>(table, keys, out);
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { compiled(table, keys, out) }
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn find(line: &Line, tag: u32) -> u32 {
        // SAFETY: this is inlined into functions that are compiled for AVX2 and run where it is; the aligned loads read both halves of the line.
        unsafe {
            let tags = _mm256_load_si256(line.0.as_ptr().cast());
            let numbers = _mm256_load_si256(line.0.as_ptr().add(8).cast());
            let same = _mm256_cmpeq_epi32(tags, _mm256_set1_epi32(tag.cast_signed()));
            let taken = _mm256_andnot_si256(_mm256_cmpeq_epi32(numbers, _mm256_setzero_si256()), same);
            let mask = _mm256_movemask_ps(_mm256_castsi256_ps(taken)).cast_unsigned();
            if mask == 0 { 0 } else { line.0[8 + (mask.trailing_zeros() & 7) as usize] }
        }
    }

    #[inline(always)]
    fn holds(line: &Line, key: &Tuple6) -> bool {
        // SAFETY: as above; of the key its first 32 bytes and its last 8 are read, of the line the same.
        unsafe {
            let (own, words) = (line.0.as_ptr(), key.words.as_ptr());
            let low = _mm256_xor_si256(_mm256_load_si256(own.cast()), _mm256_loadu_si256(words.cast()));
            let high =
                _mm_xor_si128(_mm_loadl_epi64(own.add(8).cast()), _mm_loadl_epi64(words.add(8).cast()));
            let differs = _mm256_or_si256(low, _mm256_zextsi128_si256(high));
            _mm256_testz_si256(differs, differs) == 1
        }
    }
}
