//! AVX-512: 64 octets at once.

use super::{Lanes, Plan, Row};
use std::arch::x86_64::*;

processor!("avx512f,avx512bw,avx512vl", __m512i);

impl Lanes for __m512i {
    const COUNT: usize = 64;
    #[inline(always)]
    unsafe fn load(from: *const i8) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut i8) {
        // SAFETY: as the caller promises.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn splat(octet: u8) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_set1_epi8(octet.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn table(octets: &[u8; 16]) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(octets.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_shuffle_epi8(table, self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn halves(self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_and_si512(_mm512_srli_epi16::<1>(self), _mm512_set1_epi8(0x7f)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_adds_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn subtract(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_subs_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn take(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_subs_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn magnitude(self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_abs_epi8(self) }
    }

    #[inline(always)]
    unsafe fn least(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_min_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn most(self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_max_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn where_equal(self, other: Self, one: Self, another: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_mask_blend_epi8(_mm512_cmpeq_epi8_mask(self, other), another, one) }
    }

    #[inline(always)]
    unsafe fn signed(self, of: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_mask_sub_epi8(self, _mm512_movepi8_mask(of), _mm512_setzero_si512(), self) }
    }

    #[inline(always)]
    unsafe fn signs(self) -> u64 {
        // SAFETY: as the caller promises.
        unsafe { _mm512_movepi8_mask(self) }
    }

    #[inline(always)]
    unsafe fn choose(self, one: Self, other: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { _mm512_mask_blend_epi8(_mm512_movepi8_mask(self), one, other) }
    }
}
