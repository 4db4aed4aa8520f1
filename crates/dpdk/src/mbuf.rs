//! A packet in a DPDK buffer.

use crate::ffi::{self, RX_MARK, RX_RSS_HASH, RteMbuf};
use crate::pool::PoolHandle;
use io::{Frame, FramePool};
use std::ptr::NonNull;
use tables::prefetch::prefetch_headers;

/// One `rte_mbuf` that holds a whole packet, owned.
///
/// Never `Clone`: dropping it frees the buffer. A burst of them is, in memory, the array of pointers that DPDK's burst
/// functions want.
#[repr(transparent)]
pub struct Mbuf(NonNull<RteMbuf>);

// SAFETY: an mbuf belongs to one holder at a time, and mempools take buffers back from any thread.
unsafe impl Send for Mbuf {}

impl std::fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mbuf").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Mbuf {
    #[inline(always)]
    fn raw(&self) -> &RteMbuf {
        // SAFETY: the pointer came from DPDK, is live until drop frees it, and only this holder writes through it.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn raw_mut(&mut self) -> &mut RteMbuf {
        // SAFETY: as in `raw`, and `&mut self` makes this the only reference.
        unsafe { self.0.as_mut() }
    }

    #[inline(always)]
    fn data(&self) -> *mut u8 {
        let raw = self.raw();
        // SAFETY: data_off never exceeds buf_len: DPDK sets it so, and every change below keeps
        // `data_off + data_len <= buf_len`.
        unsafe { raw.buf_addr.add(raw.data_off as usize) }
    }

    fn set_len(&mut self, len: u16) {
        let raw = self.raw_mut();
        raw.data_len = len;
        raw.pkt_len = u32::from(len);
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this was the only owner, and pools outlive their buffers (see `pool`).
        unsafe { ffi::mr_free(self.0.as_ptr()) }
    }
}

impl Frame for Mbuf {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        // SAFETY: `data_off + data_len <= buf_len`, the buffer is initialised memory of the mempool (zeroed when it was
        // mapped), and the borrow keeps it.
        unsafe { std::slice::from_raw_parts(self.data(), self.len()) }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.raw().data_len as usize
    }

    #[inline(always)]
    fn headroom(&self) -> usize {
        self.raw().data_off as usize
    }

    #[inline(always)]
    fn tailroom(&self) -> usize {
        let raw = self.raw();
        raw.buf_len as usize - raw.data_off as usize - raw.data_len as usize
    }

    #[inline(always)]
    fn prepend(&mut self, n: usize) -> bool {
        let fits = n <= self.headroom();
        if fits {
            let len = self.raw().data_len + n as u16;
            self.raw_mut().data_off -= n as u16;
            self.set_len(len);
        }
        fits
    }

    #[inline(always)]
    fn trim_front(&mut self, n: usize) {
        let n = n.min(self.len()) as u16;
        let len = self.raw().data_len - n;
        self.raw_mut().data_off += n;
        self.set_len(len);
    }

    #[inline(always)]
    fn append(&mut self, n: usize) -> bool {
        let fits = n <= self.tailroom();
        if fits {
            let len = self.raw().data_len + n as u16;
            self.set_len(len);
        }
        fits
    }

    #[inline(always)]
    fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.set_len(len as u16);
        }
    }

    #[inline(always)]
    fn rss_hash(&self) -> Option<u32> {
        let raw = self.raw();
        (raw.ol_flags & RX_RSS_HASH != 0).then_some(raw.rss)
    }

    #[inline]
    fn mark(&self) -> Option<u32> {
        let raw = self.raw();
        (raw.ol_flags & RX_MARK != 0).then_some(raw.mark)
    }

    #[inline(always)]
    fn prefetch(&self, grows: bool) {
        prefetch_headers(self.data().wrapping_sub(if grows { 64 } else { 0 }));
    }
}

/// Frames of a port's mempool, for a worker's own making.
#[derive(Clone, Debug)]
pub struct MempoolPool {
    pub(crate) pool: PoolHandle,
}

impl FramePool for MempoolPool {
    type Frame = Mbuf;

    #[inline]
    fn alloc(&mut self) -> Option<Mbuf> {
        // SAFETY: the handle keeps the pool alive; a null result means it is empty.
        NonNull::new(unsafe { ffi::mr_alloc(self.pool.raw()) }).map(Mbuf)
    }

    fn capacity(&self) -> usize {
        self.pool.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;

    #[test]
    fn what_the_nic_says_of_a_packet_is_said_only_if_it_did() {
        // SAFETY: numbers, and pointers that nobody follows.
        let mut raw: Box<RteMbuf> = Box::new(unsafe { std::mem::zeroed() });
        (raw.rss, raw.mark) = (5, 77);
        for (flags, hash, mark) in
            [(0, None, None), (RX_RSS_HASH, Some(5), None), (RX_RSS_HASH | RX_MARK, Some(5), Some(77))]
        {
            raw.ol_flags = flags;
            // The buffer is no pool's.
            let mbuf = ManuallyDrop::new(Mbuf(NonNull::from(&mut *raw)));
            assert_eq!((mbuf.rss_hash(), mbuf.mark()), (hash, mark));
        }
    }
}
