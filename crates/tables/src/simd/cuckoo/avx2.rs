//! With AVX2: four keys are hashed at once, and two slots compared.

use super::{Inline, Kernel, Places, body};
use crate::cuckoo::{ROUNDS, Secrets};
use crate::image::Line;
use std::arch::x86_64::*;

/// See the module's documentation. Its functions are inlined into those below, which are compiled for AVX2.
struct Avx2;

/// As [`super::bulk`], on a processor that has AVX2 (or else it does nothing).
pub(super) fn bulk(table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
    #[target_feature(enable = "avx2")]
    fn compiled(table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
        body::<Avx2>(table, keys, out);
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { compiled(table, keys, out) }
    }
}

/// As [`super::places`], likewise.
pub(super) fn places(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
    #[target_feature(enable = "avx2")]
    fn compiled(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
        Avx2::places(secrets, buckets, keys, into);
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { compiled(secrets, buckets, keys, into) }
    }
}

/// Both halves of the products of the lanes' lower halves, folded into these.
#[target_feature(enable = "avx2")]
#[inline]
fn fold(x: __m256i, round: u32, multiplier: u32) -> __m256i {
    let sum = _mm256_add_epi32(x, _mm256_set1_epi64x(i64::from(round)));
    let product = _mm256_mul_epu32(sum, _mm256_set1_epi64x(i64::from(multiplier)));
    _mm256_xor_si256(product, _mm256_srli_epi64::<32>(product))
}

/// The sums of two keys, each in both halves of its 128 bits.
#[target_feature(enable = "avx2")]
#[inline]
fn sums(keys: __m256i, add: __m256i) -> __m256i {
    let x = _mm256_add_epi32(keys, add);
    let product = _mm256_mul_epu32(x, _mm256_srli_epi64::<32>(x));
    _mm256_add_epi64(product, _mm256_shuffle_epi32::<0b01_00_11_10>(product))
}

/// The places of four keys.
#[target_feature(enable = "avx2")]
#[inline]
fn four(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]; 4]) -> (__m128i, __m128i) {
    // SAFETY: 64 bytes of keys and 16 of secrets are read without alignment, all of them borrowed.
    let (low, high, add) = unsafe {
        (
            _mm256_loadu_si256(keys.as_ptr().cast()),
            _mm256_loadu_si256(keys.as_ptr().add(2).cast()),
            _mm256_broadcastsi128_si256(_mm_loadu_si128(secrets.add.as_ptr().cast())),
        )
    };
    // Lane by lane: keys 0, 2, 1, 3.
    let sum = _mm256_blend_epi32::<0b11_00_11_00>(sums(low, add), sums(high, add));
    let (mut a, mut b) = (sum, _mm256_srli_epi64::<32>(sum));
    b = _mm256_xor_si256(b, fold(a, secrets.round[0], ROUNDS[0]));
    a = _mm256_xor_si256(a, fold(b, secrets.round[1], ROUNDS[1]));
    b = _mm256_xor_si256(b, fold(a, secrets.round[2], ROUNDS[2]));
    let n = _mm256_set1_epi64x(i64::from(buckets));
    let order = _mm256_setr_epi32(1, 5, 3, 7, 1, 5, 3, 7);
    let place = |hash| {
        let scaled = _mm256_mul_epu32(hash, n);
        _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(scaled, order))
    };
    (place(a), place(b))
}

/// Of two slots, a bit for each word that is the key's; of a vacant slot not for its last.
#[target_feature(enable = "avx2")]
#[inline]
fn same(slots: __m256i, key: __m256i, mask: __m256i) -> u32 {
    // Bits 8 to 31 of word 3 of both slots.
    let taken = _mm256_setr_epi32(0, 0, 0, -256, 0, 0, 0, -256);
    let zero = _mm256_setzero_si256();
    let same = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_xor_si256(slots, key), mask), zero);
    let vacant = _mm256_cmpeq_epi32(_mm256_and_si256(slots, taken), zero);
    // `vacant` holds for all words but the last of a slot: these count anyway.
    let counts = _mm256_andnot_si256(_mm256_and_si256(vacant, taken), same);
    _mm256_movemask_ps(_mm256_castsi256_ps(counts)).cast_unsigned()
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn places(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places) {
        let (fours, rest) = keys.as_chunks::<4>();
        let (homes, _) = into.home.as_chunks_mut::<4>();
        let (others, _) = into.other.as_chunks_mut::<4>();
        for ((keys, home), other) in fours.iter().zip(homes).zip(others) {
            // SAFETY: this is inlined into functions that are compiled for AVX2 and run where it is. 16 bytes are written to each array of four.
            unsafe {
                let (a, b) = four(secrets, buckets, keys);
                _mm_storeu_si128(home.as_mut_ptr().cast(), a);
                _mm_storeu_si128(other.as_mut_ptr().cast(), b);
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
            let key = _mm256_broadcastsi128_si256(_mm_loadu_si128(key.as_ptr().cast()));
            let mask = _mm256_broadcastsi128_si256(_mm_loadu_si128(mask.as_ptr().cast()));
            let low = same(_mm256_load_si256(line.0.as_ptr().cast()), key, mask);
            let high = same(_mm256_load_si256(line.0.as_ptr().add(8).cast()), key, mask);
            let bits = low | high << 8;
            let all = bits & bits >> 1 & bits >> 2 & bits >> 3 & 0x1111;
            // Bit 16 stands for none.
            ((all | 1 << 16).trailing_zeros() / 4) as usize
        }
    }
}
