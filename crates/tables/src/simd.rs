//! Vectors: what processors do for many keys, or many parts of one, at a time.
//!
//! [`cuckoo`], [`tags`] and [`dir24`] are bulk look-ups of one table each, with a file for each processor, chosen at run time ([`Processor`]); `words` is how
//! tables are seen as flat words. What is here compares the keys of one bucket of a [`crate::BulkMap`]:
//!
//! SSE2 belongs to the x86-64 baseline, so these kernels are inlined into the lookup without a run-time choice; a
//! wider AVX2 compare behind one would cost a call that cannot be inlined, which is more than it saves on seven keys.
//! [`find_portable`] is the twin that other processors run, and that the tests hold the kernel to.

pub(crate) mod cuckoo;
pub(crate) mod dir24;
pub(crate) mod processor;
pub(crate) mod tags;
pub(crate) mod words;

pub use processor::Processor;

/// The bit mask of the positions (bit *i* for `keys[i]`) that equal `key`.
// The loads are the unaligned ones.
#[allow(clippy::cast_ptr_alignment)]
#[inline(always)]
pub(crate) fn find_u32x7(keys: &[u32; 7], key: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps, _mm_set1_epi32,
        };
        // SAFETY: SSE2 is part of the x86-64 baseline. The two unaligned 16-byte loads read keys[0..4] and
        // keys[3..7], both inside the array; they overlap in keys[3], whose bit both masks set alike.
        unsafe {
            let wanted = _mm_set1_epi32(key.cast_signed());
            let low = _mm_loadu_si128(keys.as_ptr().cast::<__m128i>());
            let high = _mm_loadu_si128(keys.as_ptr().add(3).cast::<__m128i>());
            let low = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(low, wanted)));
            let high = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(high, wanted)));
            (low | high << 3).cast_unsigned()
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    find_portable(keys, key)
}

/// The bit mask of the positions (bit *i* for `keys[i]`) that equal `key`.
// The loads are the unaligned ones.
#[allow(clippy::cast_ptr_alignment)]
#[inline(always)]
pub(crate) fn find_u64x5(keys: &[u64; 5], key: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps,
            _mm_set1_epi64x, _mm_shuffle_epi32, _mm_shuffle_ps,
        };
        // SAFETY: SSE2 is part of the x86-64 baseline. The two unaligned 16-byte loads read keys[0..2] and
        // keys[2..4], both inside the array.
        let four = unsafe {
            let wanted = _mm_set1_epi64x(key.cast_signed());
            let low = _mm_cmpeq_epi32(_mm_loadu_si128(keys.as_ptr().cast::<__m128i>()), wanted);
            let high = _mm_cmpeq_epi32(_mm_loadu_si128(keys.as_ptr().add(2).cast::<__m128i>()), wanted);
            // SSE2 compares halves: a key is equal where both of its are.
            let low = _mm_and_si128(low, _mm_shuffle_epi32::<0b10_11_00_01>(low));
            let high = _mm_and_si128(high, _mm_shuffle_epi32::<0b10_11_00_01>(high));
            _mm_movemask_ps(_mm_shuffle_ps::<0b10_00_10_00>(_mm_castsi128_ps(low), _mm_castsi128_ps(high)))
        };
        four.cast_unsigned() | u32::from(keys[4] == key) << 4
    }
    #[cfg(not(target_arch = "x86_64"))]
    find_portable(keys, key)
}

/// What the kernels compute, for any number of keys of any kind, in plain Rust.
#[inline(always)]
pub(crate) fn find_portable<K: Copy + PartialEq, const N: usize>(keys: &[K; N], key: K) -> u32 {
    keys.iter().enumerate().fold(0, |mask, (i, k)| mask | u32::from(*k == key) << i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn kernel_equals_its_twin(keys: [u32; 7], key: u32) {
            prop_assert_eq!(find_u32x7(&keys, key), find_portable(&keys, key));
        }

        #[test]
        fn kernel_equals_its_twin_on_few_values(keys in prop::array::uniform7(0_u32..3), key in 0_u32..3) {
            prop_assert_eq!(find_u32x7(&keys, key), find_portable(&keys, key));
        }

        /// Halves that agree where the whole doesn't are what the 64-bit kernel could get wrong.
        #[test]
        fn wide_kernel_equals_its_twin(halves in prop::array::uniform6((0_u64..3, 0_u64..3)), any: [u64; 5], at in 0_usize..5) {
            let [keys @ .., key] = halves.map(|(high, low)| high << 32 | low);
            prop_assert_eq!(find_u64x5(&keys, key), find_portable(&keys, key));
            prop_assert_eq!(find_u64x5(&any, any[at]), find_portable(&any, any[at]));
        }
    }
}
