//! Memory of the GPU, and of the host where the GPU can reach it.
//!
//! All of it is taken before anything runs: to take or give back memory waits for what runs, and the continuous kernel never ends by itself.

use super::driver::{Context, failure};
use crate::device::Failure;
use crate::ring::Memory;
use cudarc::driver::{result, sys};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: pinned for all contexts, and in the GPU's addresses.
const FLAGS: u32 = 1 | 2;

fn no_memory(octets: usize, what: &'static str) -> impl FnOnce(cudarc::driver::DriverError) -> Failure {
    move |error| match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Failure::OutOfMemory { octets, what },
        _ => failure("cuMemAlloc", error),
    }
}

/// Memory of the GPU.
#[derive(Debug)]
pub struct OnDevice {
    address: sys::CUdeviceptr,
    octets: usize,
    keep: bool,
    context: Arc<Context>,
}

impl OnDevice {
    /// So many octets for `what`, not initialised.
    pub fn new(context: &Arc<Context>, octets: usize, what: &'static str) -> Result<Self, Failure> {
        context.enter()?;
        // SAFETY: what is in it is written before it is read: by copies and kernels, which the owner orders.
        let address = unsafe { result::malloc_sync(octets.max(1)) }.map_err(no_memory(octets, what))?;
        Ok(Self { address, octets, keep: false, context: Arc::clone(context) })
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How much it is.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Doesn't give it back when it is dropped.
    pub fn keep_forever(&mut self) {
        self.keep = true;
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        if !self.keep && self.context.enter().is_ok() {
            // SAFETY: it was allocated by this, and its owner has seen to it that nothing uses it any more. A lost device keeps it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// Pinned memory of the host, which the GPU reaches by the same address. As words, it may be shared with what runs there; as octets, it is
/// copied in and out by its owner, and no reference to it exists.
#[derive(Debug)]
pub struct Pinned {
    start: NonNull<u64>,
    words: usize,
    context: Arc<Context>,
}

// SAFETY: it is memory, and owned by this alone; that the GPU may write to it is what atomic words and copies are for.
unsafe impl Send for Pinned {}
// SAFETY: shared, it can only be used as atomic words.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// So many words, all zero.
    pub fn new(context: &Arc<Context>, words: usize, what: &'static str) -> Result<Self, Failure> {
        context.enter()?;
        let octets = words.saturating_mul(8);
        // SAFETY: it is initialised below, before anybody sees it.
        let start = unsafe { result::malloc_host(octets.max(8), FLAGS) }.map_err(no_memory(octets, what))?;
        let start = NonNull::new(start.cast::<u64>()).ok_or(Failure::OutOfMemory { octets, what })?;
        // SAFETY: as many words were allocated, aligned to pages.
        unsafe { start.as_ptr().write_bytes(0, words) };
        Ok(Self { start, words, context: Arc::clone(context) })
    }

    /// Where it is, for the GPU too: host and device have one space of addresses.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Copies octets to the place `at`, as many as fit.
    pub fn write(&mut self, at: usize, octets: &[u8]) {
        let room = (self.words * 8).saturating_sub(at).min(octets.len());
        // SAFETY: `room` octets from `at` on are inside, and a slice of Rust's memory doesn't overlap them. If a device reads them at
        // the same time, it reads one thing or the other; no Rust code has a reference to them.
        unsafe {
            self.start.as_ptr().cast::<u8>().add(at.min(self.words * 8)).copy_from(octets.as_ptr(), room)
        };
    }

    /// Copies octets from the place `at`, as many as there are.
    pub fn read(&self, at: usize, octets: &mut [u8]) {
        let room = (self.words * 8).saturating_sub(at).min(octets.len());
        // SAFETY: as above, the other way round.
        unsafe {
            octets.as_mut_ptr().copy_from(self.start.as_ptr().cast::<u8>().add(at.min(self.words * 8)), room)
        };
    }
}

impl Memory for Arc<Pinned> {
    type Word = AtomicU64;

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the words are initialised, aligned, and live as long as `self`; shared memory is used through no other references than these.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it was allocated by this, and its owner has seen to it that nothing uses it any more.
            let _ = unsafe { result::free_host(self.start.as_ptr().cast()) };
        }
    }
}
