//! With AVX-512: eight keys are hashed at once, and a line is compared as a whole.

use super::{Inline, Kernel, Places, body};
use crate::cuckoo::{ROUNDS, Secrets};
use crate::image::Line;
use crate::simd::processor::Processor;
use std::arch::x86_64::*;

/// See the module's documentation. Its functions are inlined into those below, which are compiled for AVX-512.
struct Avx512;

/// As [`super::bulk`], on a processor that has AVX-512 (or else it does nothing).
pub(super) fn bulk(table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn compiled(table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
        body::<Avx512>(table, keys, out);
    }
    if Processor::Avx512.is_here() {
        // SAFETY: the processor has these instructions.
        unsafe { compiled(table, keys, out) }
    }
}

/// As [`super::places`], likewise.
pub(super) fn places(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn compiled(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
        Avx512::places(secrets, buckets, keys, into);
    }
    if Processor::Avx512.is_here() {
        // SAFETY: the processor has these instructions.
        unsafe { compiled(secrets, buckets, keys, into) }
    }
}

/// Both halves of the products of the lanes' lower halves, folded into these.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn fold(x: __m512i, round: u32, multiplier: u32) -> __m512i {
    let sum = _mm512_add_epi32(x, _mm512_set1_epi64(i64::from(round)));
    let product = _mm512_mul_epu32(sum, _mm512_set1_epi64(i64::from(multiplier)));
    _mm512_xor_si512(product, _mm512_srli_epi64::<32>(product))
}

/// The sums of four keys, each in both halves of its 128 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn sums(keys: __m512i, add: __m512i) -> __m512i {
    let x = _mm512_add_epi32(keys, add);
    let product = _mm512_mul_epu32(x, _mm512_srli_epi64::<32>(x));
    _mm512_add_epi64(product, _mm512_shuffle_epi32::<0b01_00_11_10>(product))
}

/// The places of eight keys.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn eight(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]; 8]) -> (__m256i, __m256i) {
    // SAFETY: 128 bytes of keys and 16 of secrets are read without alignment, all of them borrowed.
    let (low, high, add) = unsafe {
        (
            _mm512_loadu_si512(keys.as_ptr().cast()),
            _mm512_loadu_si512(keys.as_ptr().add(4).cast()),
            _mm512_broadcast_i32x4(_mm_loadu_si128(secrets.add.as_ptr().cast())),
        )
    };
    // Lane by lane: keys 0, 4, 1, 5, 2, 6, 3, 7.
    let sum = _mm512_mask_blend_epi64(0b1010_1010, sums(low, add), sums(high, add));
    let (mut a, mut b) = (sum, _mm512_srli_epi64::<32>(sum));
    b = _mm512_xor_si512(b, fold(a, secrets.round[0], ROUNDS[0]));
    a = _mm512_xor_si512(a, fold(b, secrets.round[1], ROUNDS[1]));
    b = _mm512_xor_si512(b, fold(a, secrets.round[2], ROUNDS[2]));
    let n = _mm512_set1_epi64(i64::from(buckets));
    let order = _mm512_setr_epi32(1, 5, 9, 13, 3, 7, 11, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    let place = |hash| {
        let scaled = _mm512_mul_epu32(hash, n);
        _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, scaled))
    };
    (place(a), place(b))
}

impl Kernel for Avx512 {
    #[inline(always)]
    fn places(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
        let (eights, rest) = keys.as_chunks::<8>();
        let (homes, _) = into.home.as_chunks_mut::<8>();
        let (others, _) = into.other.as_chunks_mut::<8>();
        for ((keys, home), other) in eights.iter().zip(homes).zip(others) {
            // SAFETY: this is inlined into functions that are compiled for AVX-512 and run where it is. 32 bytes are written to each array of eight.
            unsafe {
                let (a, b) = eight(secrets, buckets, keys);
                _mm256_storeu_si256(home.as_mut_ptr().cast(), a);
                _mm256_storeu_si256(other.as_mut_ptr().cast(), b);
            }
        }
        let done = keys.len() - rest.len();
        let left = into.home.iter_mut().zip(&mut into.other).skip(done);
        for (key, (home, other)) in rest.iter().zip(left) {
            let hash = secrets.hash(key);
            (*home, *other) = (crate::cuckoo::scale(hash.a, buckets), crate::cuckoo::scale(hash.b, buckets));
        }
    }

    #[inline(always)]
    fn find(line: &Line, key: &[u32; 4], mask: &[u32; 4]) -> usize {
        // SAFETY: as above; the loads read the 64 bytes of the line, and 16 each of key and mask.
        unsafe {
            let slots = _mm512_load_si512(line.0.as_ptr().cast());
            let key = _mm512_broadcast_i32x4(_mm_loadu_si128(key.as_ptr().cast()));
            let mask = _mm512_broadcast_i32x4(_mm_loadu_si128(mask.as_ptr().cast()));
            let same = _mm512_testn_epi32_mask(_mm512_xor_si512(slots, key), mask);
            // Word 3 of a slot that is taken is 256 or more; of the other words nothing is asked.
            let counts = same & (_mm512_cmpge_epu32_mask(slots, _mm512_set1_epi32(256)) | 0x7777);
            let all = u32::from(counts & counts >> 1 & counts >> 2 & counts >> 3) & 0x1111;
            // Bit 16 stands for none.
            ((all | 1 << 16).trailing_zeros() / 4) as usize
        }
    }
}
