//! Where a generator is plugged in: the far end of an in-memory wire, or a port of its own.

use io::mem::{FrameSize, MemFrame, MemWire};
use io::{Frame, FramePool, RxQueue, TxQueue};

/// One cable's end.
pub trait Link {
    /// The buffers that travel.
    type Frame: Frame;
    /// An empty frame, or `None` if there is none now.
    fn alloc(&mut self) -> Option<Self::Frame>;
    /// Sends from the front of `frames` what can be sent now, in order; the rest stays.
    fn send(&mut self, frames: &mut Vec<Self::Frame>) -> usize;
    /// Appends up to `max` frames that arrived to `into`.
    fn receive(&mut self, into: &mut Vec<Self::Frame>, max: usize) -> usize;
}

/// The wire side of an in-memory NIC. Waits for room in the NIC's receive queues instead of overrunning them.
#[derive(Debug)]
pub struct MemLink {
    wire: MemWire,
    size: FrameSize,
}

impl MemLink {
    /// For a wire whose packets are at most `mtu` bytes of layer 3.
    pub fn new(wire: MemWire, mtu: u16) -> Self {
        Self { wire, size: FrameSize::for_mtu(mtu) }
    }

    /// The wire, to make it faulty or read its counters.
    pub const fn wire_mut(&mut self) -> &mut MemWire {
        &mut self.wire
    }
}

impl Link for MemLink {
    type Frame = MemFrame;

    fn alloc(&mut self) -> Option<MemFrame> {
        Some(MemFrame::new(self.size))
    }

    fn send(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        self.wire.offer(frames)
    }

    fn receive(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        self.wire.collect(into, max)
    }
}

/// One queue pair of any port, for a generator on hardware or on a kernel interface.
#[derive(Debug)]
pub struct PortLink<R, T, P> {
    rx: R,
    tx: T,
    pool: P,
}

impl<R, T, P> PortLink<R, T, P> {
    /// What [`io::Port::take_queue`] and [`io::Port::pool`] give.
    pub const fn new(rx: R, tx: T, pool: P) -> Self {
        Self { rx, tx, pool }
    }
}

impl<F, R, T, P> Link for PortLink<R, T, P>
where
    F: Frame,
    R: RxQueue<Frame = F>,
    T: TxQueue<Frame = F>,
    P: FramePool<Frame = F>,
{
    type Frame = F;

    fn alloc(&mut self) -> Option<F> {
        self.pool.alloc()
    }

    fn send(&mut self, frames: &mut Vec<F>) -> usize {
        self.tx.tx_burst(frames)
    }

    fn receive(&mut self, into: &mut Vec<F>, max: usize) -> usize {
        self.rx.rx_burst(into, max)
    }
}
