//! One packet in one contiguous buffer, owned by whoever holds it.

/// A packet buffer with room before and after the packet.
///
/// Dropping a frame gives the buffer back to where it came from; a frame is never cloned. The bytes are
/// contiguous: a backend that receives chained buffers linearises them or drops the packet with a counter.
pub trait Frame: Sized + Send + 'static {
    /// The packet, from the first byte of the Ethernet header.
    fn bytes(&self) -> &[u8];
    /// The packet, writable.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// The packet's length in bytes.
    fn len(&self) -> usize;
    /// Whether the packet has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes that [`Frame::prepend`] can still add.
    fn headroom(&self) -> usize;
    /// Bytes that [`Frame::append`] can still add.
    fn tailroom(&self) -> usize;
    /// Grows the packet by `n` bytes at the front (their content is unspecified). False, and nothing done, if
    /// there is not that much headroom.
    #[must_use]
    fn prepend(&mut self, n: usize) -> bool;
    /// Removes `n` bytes at the front; removes all if there are fewer.
    fn trim_front(&mut self, n: usize);
    /// Grows the packet by `n` bytes at the end (their content is unspecified). False, and nothing done, if
    /// there is not that much tailroom.
    #[must_use]
    fn append(&mut self, n: usize) -> bool;
    /// Shortens the packet to `len` bytes; no effect if it is that short already.
    fn truncate(&mut self, len: usize);
    /// The RSS hash that the NIC computed, if it did. Over which fields is the port's affair: it names the subscriber's
    /// shard only where the port was set up to hash the subscriber's address with `packet::rss::UE_KEY`.
    fn rss_hash(&self) -> Option<u32>;
    /// The number that a rule of the NIC gave the packet ([`Action::Mark`](crate::offload::Action::Mark)), if one did.
    fn mark(&self) -> Option<u32> {
        None
    }
    /// Hints that the packet's headers are needed soon: two cache lines from its first byte on, or, of a packet that will grow at the
    /// front, the first of them and the one before it.
    fn prefetch(&self, grows: bool);
    /// As [`Frame::prefetch`], for a packet that another core has had, and whose headers are to be changed.
    fn prefetch_from_afar(&self, grows: bool) {
        self.prefetch(grows);
    }
}

/// Where a worker gets an empty frame from, for packets of its own making (ARP, echo, ICMP, end marker, fragments).
pub trait FramePool: Send {
    /// The buffers handed out.
    type Frame: Frame;
    /// An empty frame (length 0) with at least 128 bytes of headroom, or `None` if the pool is exhausted.
    fn alloc(&mut self) -> Option<Self::Frame>;
    /// The greatest packet length that a frame of this pool can hold behind its headroom.
    fn capacity(&self) -> usize;
}
