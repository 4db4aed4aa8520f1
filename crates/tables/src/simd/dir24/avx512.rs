//! With AVX-512: sixteen entries are gathered at once.

use super::{Kernel, LANES, Routes, body};
use crate::simd::processor::Processor;
use std::arch::x86_64::*;
use std::net::Ipv4Addr;

/// See the module's documentation. Its function is inlined into the one below, which is compiled for AVX-512.
struct Avx512;

/// As [`super::bulk`], on a processor that has AVX-512 (or else it does nothing).
pub(super) fn bulk(routes: Routes<'_>, addresses: &[Ipv4Addr], out: &mut [Option<u16>]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn compiled(routes: Routes<'_>, addresses: &[Ipv4Addr], out: &mut [Option<u16>]) {
        body::<Avx512>(routes, addresses, out);
    }
    if Processor::Avx512.is_here() && routes.root.len() == 1 << 24 {
        // SAFETY: the processor has these instructions, and the root all entries that 24 bits can name.
        unsafe { compiled(routes, addresses, out) }
    }
}

impl Kernel for Avx512 {
    #[inline(always)]
    fn read(root: &[u32], addresses: &[Ipv4Addr; LANES], into: &mut [u32; LANES]) {
        // SAFETY: this is inlined into a function that is compiled for AVX-512, runs where it is, and has checked the root's length: indices of
        // 24 bits are inside. The other load and store are of 64 bytes borrowed here; an `Ipv4Addr` is four octets (asserted).
        unsafe {
            const { assert!(size_of::<Ipv4Addr>() == 4) }
            let octets = _mm512_loadu_si512(addresses.as_ptr().cast());
            let swap = _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203);
            let index = _mm512_srli_epi32::<8>(_mm512_shuffle_epi8(octets, swap));
            let entries = _mm512_i32gather_epi32::<4>(index, root.as_ptr().cast());
            _mm512_storeu_si512(into.as_mut_ptr().cast(), entries);
        }
    }
}
