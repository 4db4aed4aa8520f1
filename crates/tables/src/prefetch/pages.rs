//! Asking the system for large pages.
//!
//! Random reads of a table of many megabytes miss the TLB as well as the cache: with pages of 2 MB instead of 4 KB they are up to twice as fast. Linux
//! gives them to whoever asks for a range before writing to it (`madvise`, with transparent huge pages enabled or on request).

use std::mem::MaybeUninit;

/// Below this a table's pages are few, and half of a large one would stay empty.
const LEAST: usize = 4 << 20;

/// Asks for large pages for memory that nobody has written to. A wish: without it all works as well, and is slower.
pub(crate) fn huge<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(memory);
    if bytes < LEAST {
        return;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 2 << 20;
        let first = memory.as_mut_ptr().cast::<u8>();
        // Whole large pages only: what lies around is somebody else's.
        let skipped = first.addr().next_multiple_of(PAGE) - first.addr();
        let length = (bytes - skipped) / PAGE * PAGE;
        // SAFETY: the range lies within `memory`, which is borrowed for good here (LEAST is two pages, so `skipped < bytes`). MADV_HUGEPAGE
        // changes no content and no mapping, only which pages the kernel backs the range with (madvise(2)).
        let _ = unsafe { madvise(first.add(skipped).cast(), length, Advice::LinuxHugepage) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_changes_nothing() {
        // Miri takes minutes for millions of words.
        let few = if cfg!(miri) { 8 } else { 20 };
        for length in [0, 1 << few, 3 << few] {
            let mut memory: Vec<u32> = Vec::with_capacity(length);
            huge(memory.spare_capacity_mut());
            memory.resize(length, 7);
            assert!(memory.iter().all(|word| *word == 7));
        }
    }
}
