//! Packet buffers in ordinary memory, recycled without going to the allocator.
//!
//! A buffer that is dropped goes to a list of the dropping thread; a thread that needs one takes from its own list.
//! In a model with a generator and workers on different threads, buffers travel in one direction more than in the
//! other at times. So a list that has grown past two *magazines* (Bonwick's term: a fixed batch of free buffers)
//! leaves one at a process-wide depot, and an empty list fetches one from there: one lock per 256 buffers, and
//! otherwise no shared memory is touched.

use crate::frame::{Frame, FramePool};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tables::prefetch::{prefetch_headers, prefetch_lines_to_write};

/// Bytes kept free before a packet, for headers that grow.
pub const HEADROOM: usize = 128;
/// The longest packet in a standard buffer.
pub const STANDARD_ROOM: usize = 2048;
/// The longest packet in a jumbo buffer: a 9,000 B layer-3 packet with tunnel, VLAN and Ethernet headers to spare.
pub const JUMBO_ROOM: usize = 9600;

const STANDARD: usize = HEADROOM + STANDARD_ROOM;
const JUMBO: usize = HEADROOM + JUMBO_ROOM;

/// The two buffer sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameSize {
    /// Up to [`STANDARD_ROOM`] bytes of packet.
    #[default]
    Standard,
    /// Up to [`JUMBO_ROOM`] bytes of packet.
    Jumbo,
}

impl FrameSize {
    /// The smaller size that holds an Ethernet frame around a layer-3 packet of `mtu` bytes.
    pub const fn for_mtu(mtu: u16) -> Self {
        // Room for two VLAN tags, the GTP-U tunnel over IPv6 (40 + 8 + 16) and slack in the standard size.
        if mtu as usize + 14 + 8 + 64 <= STANDARD_ROOM { Self::Standard } else { Self::Jumbo }
    }

    /// The longest packet that fits behind [`HEADROOM`].
    pub const fn room(self) -> usize {
        match self {
            Self::Standard => STANDARD_ROOM,
            Self::Jumbo => JUMBO_ROOM,
        }
    }
}

/// Free buffers that change threads at once.
const MAGAZINE: usize = 256;
/// Magazines of one size that the depot keeps (at most 36 MB of standard buffers); the rest is freed.
const DEPOT: usize = 64;

type Buffer = Box<[u8]>;

/// Full magazines of one buffer size, for any thread.
static STANDARD_DEPOT: Mutex<Vec<Vec<Buffer>>> = Mutex::new(Vec::new());
static JUMBO_DEPOT: Mutex<Vec<Vec<Buffer>>> = Mutex::new(Vec::new());

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache { standard: Vec::new(), jumbo: Vec::new() }) };
}

/// A thread's own free buffers.
pub(crate) struct Cache {
    standard: Vec<Buffer>,
    jumbo: Vec<Buffer>,
}

impl Cache {
    /// Runs `work` with the calling thread's cache: one thread-local access for a whole burst. `None` while the
    /// thread is being torn down, or within another such call.
    #[inline]
    pub(crate) fn with<R>(work: impl FnOnce(&mut Self) -> R) -> Option<R> {
        CACHE.try_with(|cache| cache.try_borrow_mut().ok().map(|mut cache| work(&mut cache))).ok().flatten()
    }

    #[inline]
    fn take(&mut self, size: FrameSize) -> Buffer {
        let list = match size {
            FrameSize::Standard => &mut self.standard,
            FrameSize::Jumbo => &mut self.jumbo,
        };
        match list.pop() {
            Some(buffer) => buffer,
            None => refill(list, size),
        }
    }

    #[inline]
    fn put(&mut self, buffer: Buffer) {
        let (list, depot) = match buffer.len() {
            STANDARD => (&mut self.standard, &STANDARD_DEPOT),
            JUMBO => (&mut self.jumbo, &JUMBO_DEPOT),
            _ => return,
        };
        list.push(buffer);
        if list.len() >= 2 * MAGAZINE {
            spill(list, depot);
        }
    }

    /// An empty frame of the process's unlimited store.
    #[inline]
    pub(crate) fn alloc(&mut self, size: FrameSize) -> MemFrame {
        MemFrame { buffer: self.take(size), ledger: None, start: HEADROOM as u16, len: 0, hash: 0 }
    }

    /// What dropping `frame` does, without looking for the thread's cache again.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, mut frame: MemFrame) {
        // The drop that follows finds an empty buffer and has only the ledger to settle.
        self.put(std::mem::take(&mut frame.buffer));
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // A thread that ends leaves its buffers to the others.
        for (list, depot) in [(&mut self.standard, &STANDARD_DEPOT), (&mut self.jumbo, &JUMBO_DEPOT)] {
            let rest = std::mem::take(list);
            if rest.is_empty() {
                continue;
            }
            let mut depot = depot.lock().unwrap_or_else(PoisonError::into_inner);
            if depot.len() < DEPOT {
                depot.push(rest);
            }
        }
    }
}

#[cold]
fn refill(list: &mut Vec<Buffer>, size: FrameSize) -> Buffer {
    let (depot, bytes) = match size {
        FrameSize::Standard => (&STANDARD_DEPOT, STANDARD),
        FrameSize::Jumbo => (&JUMBO_DEPOT, JUMBO),
    };
    if let Some(mut magazine) = depot.lock().unwrap_or_else(PoisonError::into_inner).pop() {
        list.append(&mut magazine);
    }
    list.pop().unwrap_or_else(|| vec![0; bytes].into_boxed_slice())
}

#[cold]
fn spill(list: &mut Vec<Buffer>, depot: &Mutex<Vec<Vec<Buffer>>>) {
    // The buffers used last stay: they are the ones in this core's cache.
    let rest = list.split_off(MAGAZINE);
    let magazine = std::mem::replace(list, rest);
    let mut depot = depot.lock().unwrap_or_else(PoisonError::into_inner);
    if depot.len() < DEPOT {
        depot.push(magazine);
    }
}

/// How many frames of a limited pool are out; or, of a frame from the wire, the mark that a rule gave it.
#[derive(Debug)]
pub(super) struct Ledger {
    out: AtomicUsize,
    limit: usize,
    mark: Option<u32>,
}

impl Ledger {
    /// A mark, for any number of frames.
    pub(super) fn of_mark(mark: u32) -> Arc<Self> {
        Arc::new(Self { out: AtomicUsize::new(0), limit: 0, mark: Some(mark) })
    }
}

/// A packet in a buffer of ordinary memory.
///
/// 32 bytes that own the buffer; moving a frame moves no packet data.
#[derive(Debug)]
pub struct MemFrame {
    buffer: Buffer,
    /// Set for frames of a limited [`MemPool`] and for marked ones; `None` on the fast path. A mark of its own would make each
    /// frame larger.
    ledger: Option<Arc<Ledger>>,
    start: u16,
    len: u16,
    /// Zero: not computed. A hash that happens to be zero is computed again by whoever needs it.
    hash: u32,
}

impl MemFrame {
    /// An empty frame of the given size, from the thread's free list.
    #[inline]
    pub fn new(size: FrameSize) -> Self {
        Cache::with(|cache| cache.alloc(size)).unwrap_or_else(|| Self {
            buffer: vec![0; HEADROOM + size.room()].into_boxed_slice(),
            ledger: None,
            start: HEADROOM as u16,
            len: 0,
            hash: 0,
        })
    }

    /// A frame that holds a copy of `packet`, in the smaller buffer that fits; `None` above [`JUMBO_ROOM`] bytes.
    #[inline]
    pub fn copy_of(packet: &[u8]) -> Option<Self> {
        let size = match packet.len() {
            0..=STANDARD_ROOM => FrameSize::Standard,
            len if len <= JUMBO_ROOM => FrameSize::Jumbo,
            _ => return None,
        };
        let mut frame = Self::new(size);
        frame.fill(packet).then_some(frame)
    }

    /// Replaces the content by a copy of `packet` behind the standard headroom; false, and nothing done, if it
    /// doesn't fit.
    #[inline]
    pub fn fill(&mut self, packet: &[u8]) -> bool {
        let Some(room) = self.buffer.get_mut(HEADROOM..HEADROOM + packet.len()) else { return false };
        room.copy_from_slice(packet);
        self.start = HEADROOM as u16;
        self.len = packet.len() as u16;
        self.hash = 0;
        true
    }

    /// Replaces the content by `len` bytes that begin with `blocks`, copied in whole 64-byte blocks: for a packet of
    /// known shape that is cheaper than a copy of exact length. What lies beyond the blocks is whatever the buffer had
    /// there. Says which bytes were written; `None`, and nothing done, if it doesn't fit.
    #[inline]
    pub(crate) fn fill_blocks(&mut self, blocks: &[[u8; 64]], len: usize, hash: u32) -> Option<&mut [u8]> {
        let room = self.buffer.get_mut(HEADROOM..).filter(|room| room.len() >= len)?;
        let (room, _) = room.as_chunks_mut::<64>();
        let room = room.get_mut(..blocks.len())?;
        for (to, from) in room.iter_mut().zip(blocks) {
            *to = *from;
        }
        self.start = HEADROOM as u16;
        self.len = len as u16;
        self.hash = hash;
        let room = room.as_flattened_mut();
        let written = len.min(room.len());
        room.get_mut(..written)
    }

    /// Says what the NIC's RSS hash is; a sender that knows it spares the model from computing it
    /// ([`RssMode::Preset`](super::RssMode::Preset)).
    #[inline]
    pub fn set_rss_hash(&mut self, hash: u32) {
        self.hash = hash;
    }

    /// This frame with a mark; a pool's frame goes back to it, and a copy takes its place. `None`: there is no such long frame.
    pub(super) fn marked(mut self, mark: &Arc<Ledger>) -> Option<Self> {
        if self.ledger.as_ref().is_some_and(|ledger| ledger.mark.is_none()) {
            self = self.duplicate()?;
        }
        mark.out.fetch_add(1, Ordering::Relaxed);
        if let Some(before) = self.ledger.replace(Arc::clone(mark)) {
            before.out.fetch_sub(1, Ordering::Relaxed);
        }
        Some(self)
    }

    /// Without a mark: it has left the NIC that gave it one.
    pub(super) fn unmark(&mut self) {
        if self.mark().is_some()
            && let Some(ledger) = self.ledger.take()
        {
            ledger.out.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A second frame with the same content.
    pub fn duplicate(&self) -> Option<Self> {
        let mut copy = Self::copy_of(self.bytes())?;
        copy.hash = self.hash;
        Some(copy)
    }
}

impl Drop for MemFrame {
    #[inline]
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            let buffer = std::mem::take(&mut self.buffer);
            // During the thread's teardown the buffer just goes to the allocator.
            Cache::with(|cache| cache.put(buffer));
        }
        if let Some(ledger) = &self.ledger {
            ledger.out.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Frame for MemFrame {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        let start = self.start as usize;
        self.buffer.get(start..start + self.len as usize).unwrap_or_default()
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.start as usize;
        self.buffer.get_mut(start..start + self.len as usize).unwrap_or_default()
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    fn headroom(&self) -> usize {
        self.start as usize
    }

    #[inline(always)]
    fn tailroom(&self) -> usize {
        self.buffer.len() - self.start as usize - self.len as usize
    }

    #[inline(always)]
    fn prepend(&mut self, n: usize) -> bool {
        let fits = n <= self.headroom();
        if fits {
            self.start -= n as u16;
            self.len += n as u16;
        }
        fits
    }

    #[inline(always)]
    fn trim_front(&mut self, n: usize) {
        let n = n.min(self.len());
        self.start += n as u16;
        self.len -= n as u16;
    }

    #[inline(always)]
    fn append(&mut self, n: usize) -> bool {
        let fits = n <= self.tailroom();
        if fits {
            self.len += n as u16;
        }
        fits
    }

    #[inline(always)]
    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len.min(usize::from(u16::MAX)) as u16);
    }

    #[inline(always)]
    fn prefetch(&self, grows: bool) {
        let first = self.buffer.as_ptr().wrapping_add(self.start as usize);
        prefetch_headers(first.wrapping_sub(if grows { 64 } else { 0 }));
    }

    #[inline(always)]
    fn prefetch_from_afar(&self, grows: bool) {
        let start = (self.start as usize).saturating_sub(if grows { 64 } else { 0 });
        prefetch_lines_to_write(self.buffer.get(start..).unwrap_or_default(), 2);
    }

    #[inline(always)]
    fn rss_hash(&self) -> Option<u32> {
        (self.hash != 0).then_some(self.hash)
    }

    fn mark(&self) -> Option<u32> {
        self.ledger.as_ref()?.mark
    }
}

/// Frames for a worker's own making, at most a fixed number of which exist at a time.
///
/// The limit is what makes a leak visible and what bounds a worker that answers more than the port can send. It costs
/// two uncontended atomic operations per frame, which packets that merely pass through don't pay.
#[derive(Clone, Debug)]
pub struct MemPool {
    ledger: Arc<Ledger>,
    size: FrameSize,
}

impl MemPool {
    /// A pool of at most `limit` frames.
    pub fn new(limit: usize, size: FrameSize) -> Self {
        Self { ledger: Arc::new(Ledger { out: AtomicUsize::new(0), limit, mark: None }), size }
    }

    /// Frames of this pool that may exist at a time.
    pub fn limit(&self) -> usize {
        self.ledger.limit
    }

    /// Frames of this pool that exist now.
    pub fn in_use(&self) -> usize {
        self.ledger.out.load(Ordering::Relaxed)
    }
}

impl FramePool for MemPool {
    type Frame = MemFrame;

    fn alloc(&mut self) -> Option<MemFrame> {
        let ledger = &self.ledger;
        if ledger.out.fetch_add(1, Ordering::Relaxed) >= ledger.limit {
            ledger.out.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut frame = MemFrame::new(self.size);
        frame.ledger = Some(Arc::clone(ledger));
        Some(frame)
    }

    fn capacity(&self) -> usize {
        self.size.room()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_and_shrinks_at_both_ends() {
        let mut frame = MemFrame::copy_of(b"payload").unwrap();
        assert_eq!((frame.headroom(), frame.tailroom()), (HEADROOM, STANDARD_ROOM - 7));
        assert!(frame.prepend(3));
        frame.bytes_mut()[..3].copy_from_slice(b"in:");
        assert!(frame.append(1));
        *frame.bytes_mut().last_mut().unwrap() = b'!';
        assert_eq!(frame.bytes(), b"in:payload!");
        frame.trim_front(3);
        frame.truncate(4);
        assert_eq!(frame.bytes(), b"payl");
        assert!(!frame.prepend(HEADROOM + 1) && !frame.append(STANDARD_ROOM - 3));
        assert_eq!(frame.bytes(), b"payl");
        assert!(frame.prepend(HEADROOM) && frame.append(STANDARD_ROOM - 4));
        assert_eq!(frame.len(), STANDARD);
        frame.trim_front(usize::MAX);
        assert!(frame.is_empty());
        frame.truncate(usize::MAX);
        assert_eq!(frame.headroom(), STANDARD);
    }

    #[test]
    fn sizes_follow_the_packet() {
        assert!(MemFrame::copy_of(&[0; JUMBO_ROOM + 1]).is_none());
        assert_eq!(MemFrame::copy_of(&[7; 9014]).unwrap().bytes(), &[7; 9014]);
        assert_eq!(FrameSize::for_mtu(1500), FrameSize::Standard);
        assert_eq!(FrameSize::for_mtu(9000), FrameSize::Jumbo);
        let mut frame = MemFrame::new(FrameSize::Standard);
        assert!(!frame.fill(&[0; STANDARD_ROOM + 1]) && frame.fill(&[1; STANDARD_ROOM]));
    }

    #[test]
    fn a_dropped_buffer_is_the_next_one() {
        let frame = MemFrame::copy_of(b"first").unwrap();
        let at = frame.bytes().as_ptr();
        drop(frame);
        assert_eq!(MemFrame::copy_of(b"second").unwrap().bytes().as_ptr(), at);
    }

    #[test]
    fn buffers_dropped_on_another_thread_come_back_through_the_depot() {
        // More than two magazines cross, so the other thread must leave some; none is lost and none is shared.
        for _ in 0..4 {
            let frames: Vec<_> =
                (0..3 * MAGAZINE as u32).map(|i| MemFrame::copy_of(&i.to_be_bytes()).unwrap()).collect();
            for (i, frame) in frames.iter().enumerate() {
                assert_eq!(frame.bytes(), (i as u32).to_be_bytes());
            }
            std::thread::spawn(move || drop(frames)).join().unwrap();
        }
        assert!(STANDARD_DEPOT.lock().unwrap().len() <= DEPOT);
    }

    #[test]
    fn a_limited_pool_runs_dry_and_recovers() {
        let mut pool = MemPool::new(2, FrameSize::Standard);
        let (one, two) = (pool.alloc().unwrap(), pool.alloc().unwrap());
        assert!(pool.alloc().is_none());
        assert_eq!(pool.in_use(), 2);
        drop(one);
        let three = pool.alloc().unwrap();
        assert!(three.is_empty() && three.headroom() >= 128 && three.tailroom() >= pool.capacity());
        drop((two, three));
        // Recycling in bulk pays the ledger back as well.
        let four = pool.alloc().unwrap();
        Cache::with(|cache| cache.recycle(four));
        assert_eq!(pool.in_use(), 0);
    }
}
