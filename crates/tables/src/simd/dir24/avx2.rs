//! With AVX2: eight entries are gathered at once.

use super::{Kernel, LANES, Routes, body};
use std::arch::x86_64::*;
use std::net::Ipv4Addr;

/// See the module's documentation. Its function is inlined into the one below, which is compiled for AVX2.
struct Avx2;

/// As [`super::bulk`], on a processor that has AVX2 (or else it does nothing).
pub(super) fn bulk(routes: Routes<'_>, addresses: &[Ipv4Addr], out: &mut [Option<u16>]) {
    #[target_feature(enable = "avx2")]
    fn compiled(routes: Routes<'_>, addresses: &[Ipv4Addr], out: &mut [Option<u16>]) {
        body::<Avx2>(routes, addresses, out);
    }
    if is_x86_feature_detected!("avx2") && routes.root.len() == 1 << 24 {
        // SAFETY: the processor has AVX2, and the root all entries that 24 bits can name.
        unsafe { compiled(routes, addresses, out) }
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn read(root: &[u32], addresses: &[Ipv4Addr; LANES], into: &mut [u32; LANES]) {
        // SAFETY: this is inlined into a function that is compiled for AVX2, runs where it is, and has checked the root's length: indices of 24
        // bits are inside. The other loads and stores are of 64 bytes borrowed here; an `Ipv4Addr` is four octets (asserted).
        unsafe {
            const { assert!(size_of::<Ipv4Addr>() == 4) }
            let swap = _mm256_setr_epi8(
                3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8,
                15, 14, 13, 12,
            );
            for at in [0, 8] {
                let octets = _mm256_loadu_si256(addresses.as_ptr().add(at).cast());
                let index = _mm256_srli_epi32::<8>(_mm256_shuffle_epi8(octets, swap));
                let entries = _mm256_i32gather_epi32::<4>(root.as_ptr().cast(), index);
                _mm256_storeu_si256(into.as_mut_ptr().add(at).cast(), entries);
            }
        }
    }
}
