//! AVX2: 32 octets at once.

use super::{Lanes, Plan, Row};
use std::arch::x86_64::*;

processor!("avx2", __m256i);

impl Lanes for __m256i {
    const COUNT: usize = 32;
    #[inline(always)]
    unsafe fn load(from: *const i8) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut i8) {
        // SAFETY: as the caller promises.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn splat(octet: u8) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_set1_epi8(octet.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn table(octets: &[u8; 16]) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(octets.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_shuffle_epi8(table, self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn halves(self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_and_si256(_mm256_srli_epi16::<1>(self), _mm256_set1_epi8(0x7f)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_adds_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn subtract(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_subs_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn take(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_subs_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn magnitude(self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_abs_epi8(self) }
    }

    #[inline(always)]
    unsafe fn least(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_min_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn most(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_max_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn where_equal(self, other: Self, one: Self, another: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_blendv_epi8(another, one, _mm256_cmpeq_epi8(self, other)) }
    }

    #[inline(always)]
    unsafe fn signed(self, of: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_sign_epi8(self, _mm256_or_si256(of, _mm256_set1_epi8(1))) }
    }

    #[inline(always)]
    unsafe fn signs(self) -> u64 {
        // SAFETY: as the caller promises.
        unsafe { u64::from(_mm256_movemask_epi8(self).cast_unsigned()) }
    }

    #[inline(always)]
    unsafe fn choose(self, one: Self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm256_blendv_epi8(one, other, self) }
    }
}
