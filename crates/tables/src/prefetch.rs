//! Asking memory for a line before it is needed.
//!
//! **Problem.** A dependent DRAM access stalls a core for hundreds of cycles, but the core can have ten or more
//! of them under way at a time. A burst that first prefetches what all its packets will read, and reads it
//! in a second pass, pays the latency about once instead of once a packet.
//!
//! **Cost.** One load-port slot per prefetch; a prefetch never faults and changes no observable state, which is why
//! these wrappers are safe functions. On processors other than x86-64 they do nothing.

pub(crate) mod pages;

/// Asks for the first cache line of `value` in every cache level.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_pointer(std::ptr::from_ref(value));
}

/// Asks for the first cache line of `slice[index]`; does nothing when `index` is out of bounds.
#[inline(always)]
pub fn prefetch_slice_at<T>(slice: &[T], index: usize) {
    if let Some(value) = slice.get(index) {
        prefetch(value);
    }
}

/// Asks for the first `most` cache lines (of 64 bytes) that `values` lie in.
#[inline(always)]
pub fn prefetch_lines<T>(values: &[T], most: usize) {
    lines(values, most).for_each(prefetch_pointer);
}

/// Asks for a packet's headers: the cache line of its first byte and the next one, whether they are the packet's or not.
#[inline(always)]
pub fn prefetch_headers(first: *const u8) {
    prefetch_pointer(first);
    prefetch_pointer(first.wrapping_add(64));
}

/// As [`prefetch_lines`], for lines that are to be written and that another core has written last: they come for good. Asked for to be
/// read they would come as a copy, and the first write would have to ask the other core once more.
#[inline(always)]
pub fn prefetch_lines_to_write<T>(values: &[T], most: usize) {
    for line in lines(values, most) {
        // Miri knows no assembler.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: PREFETCHW is a hint: it reads and changes nothing architecturally and raises no fault for any address; a processor that
        // doesn't know it takes it for a no-operation (Intel SDM volume 2, PREFETCHW).
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags));
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        let _ = line;
    }
}

/// Where the first `most` cache lines that `values` lie in are.
#[inline(always)]
fn lines<T>(values: &[T], most: usize) -> impl Iterator<Item = *const u8> {
    let bytes = values.as_ptr().cast::<u8>();
    // The last byte's line counts, too, where the values don't begin with one.
    let end = (bytes.addr() % 64 + size_of_val(values)).div_ceil(64).min(most);
    (0..end).map(move |line| bytes.wrapping_add(64 * line))
}

/// Asks for the cache line in which the next element of a vector begins, if there is room for it.
#[inline(always)]
pub fn prefetch_end<T>(values: &Vec<T>) {
    if values.len() < values.capacity() {
        prefetch_pointer(values.as_ptr().wrapping_add(values.len()));
    }
}

#[inline(always)]
fn prefetch_pointer<T>(pointer: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 is a hint: it reads nothing architecturally and raises no fault for any address (Intel SDM
    // volume 2, PREFETCHh); SSE, which it belongs to, is part of the x86-64 baseline.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(pointer.cast::<i8>());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = pointer;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetching_changes_nothing_and_accepts_any_index() {
        let values = [1_u64, 2, 3];
        prefetch(&values[0]);
        prefetch_slice_at(&values, 2);
        prefetch_slice_at(&values, usize::MAX);
        prefetch_slice_at::<u64>(&[], 0);
        prefetch_lines(&values, 9);
        prefetch_lines::<u64>(&[], 9);
        prefetch_lines_to_write(&values, 9);
        prefetch_lines_to_write::<u64>(&[], 9);
        let mut list = Vec::with_capacity(1);
        prefetch_end(&list);
        list.push(values);
        prefetch_end(&list);
        assert_eq!(list, [[1, 2, 3]]);
        assert_eq!(values, [1, 2, 3]);
    }
}
