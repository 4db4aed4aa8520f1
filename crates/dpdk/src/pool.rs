//! Mempools that outlive every buffer taken from them.
//!
//! An [`Mbuf`](crate::Mbuf) is a bare pointer, so that bursts need no conversion; it can't keep its pool alive. Instead a pool is given back
//! only when all its buffers are in it. If one is still held somewhere when the last handle goes, the pool stays until
//! the process ends, and so does EAL, whose clean-up would unmap it.

use crate::eal::Eal;
use crate::error::{DpdkError, cause};
use crate::ffi::{self, RteMempool};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that DPDK leaves free before a received packet (`RTE_PKTMBUF_HEADROOM`).
pub(crate) const HEADROOM: u16 = 128;
/// Buffers that each registered thread keeps for itself.
const CACHE: u32 = 256;

#[derive(Debug)]
struct Inner {
    pool: NonNull<RteMempool>,
    frames: u32,
    room: u16,
    eal: Eal,
}

// SAFETY: a mempool may be used from any thread; the multi-producer, multi-consumer ring behind it is the default.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// Shared ownership of a mempool.
#[derive(Clone, Debug)]
pub(crate) struct PoolHandle(Arc<Inner>);

impl PoolHandle {
    /// Buffers in it.
    pub(crate) fn frames(&self) -> u32 {
        self.0.frames
    }

    /// A pool of `frames` buffers for packets of up to `room` bytes.
    pub(crate) fn create(eal: &Eal, frames: u32, room: u16, socket: i32) -> Result<Self, DpdkError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("millrace{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).map_err(|_| DpdkError::Device("pool name".into()))?;
        let mut errno = 0;
        // Caches may not take more than two thirds of a small pool (rte_mempool_create's own rule).
        let cache = CACHE.min(frames / 3);
        // SAFETY: the name is a C string, EAL runs as long as `eal` lives, and `errno` is written before return.
        let pool = unsafe {
            ffi::mr_pool_create(name.as_ptr(), frames, cache, room + HEADROOM, socket, &raw mut errno)
        };
        let pool = NonNull::new(pool).ok_or_else(|| DpdkError::Pool {
            frames,
            room,
            cause: cause(errno),
            remedy: "use fewer descriptors or queues, or raise the memory given to DPDK",
        })?;
        Ok(Self(Arc::new(Inner { pool, frames, room, eal: eal.clone() })))
    }

    pub(crate) fn raw(&self) -> *mut RteMempool {
        self.0.pool.as_ptr()
    }

    /// The longest packet behind the headroom.
    pub(crate) fn capacity(&self) -> usize {
        self.0.room as usize
    }

    /// Buffers held by queues and packets now.
    pub(crate) fn in_use(&self) -> u32 {
        // SAFETY: the pool is alive.
        unsafe { ffi::mr_pool_in_use(self.raw()) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: no handle is left to allocate from it, and the shim frees it only if every buffer is back.
        if unsafe { ffi::mr_pool_free(self.pool.as_ptr()) } == 0 {
            self.eal.keep_forever();
        }
    }
}
