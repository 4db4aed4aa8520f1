//! The queues of a DPDK port.

use crate::bond::{Pump, Turn};
use crate::device::Device;
use crate::ffi;
use crate::mbuf::Mbuf;
use crate::unsent::Unsent;
use io::{RxQueue, TxQueue};
use std::sync::Arc;
use tables::clock::Tsc;

/// Frames that DPDK's drivers take out of descriptors at once, at most: 32 in those that keep some for the next call (ixgbe, i40e, ice).
const STAGED: usize = 32;

/// A receive queue of a [`DpdkPort`](crate::DpdkPort).
#[derive(Debug)]
pub struct DpdkRx {
    device: Arc<Device>,
    queue: u16,
    capacity: usize,
    /// Descriptors a quarter of the queue further on each, if the driver tells whether a packet waits in one.
    marks: Option<[u16; 4]>,
    /// Queue 0's of an aggregated port that speaks LACP.
    pump: Option<Pump>,
}

impl DpdkRx {
    /// Queue `queue` of a port that has started. Nobody else has it.
    pub(crate) fn new(device: Arc<Device>, queue: u16, pump: Option<Pump>) -> Self {
        let capacity = device.rx_capacity(queue).unwrap_or(usize::MAX);
        // SAFETY: the port has started, with this queue.
        let tells = unsafe { ffi::mr_rx_done(device.port(), queue, 0) } >= 0;
        let marks = u16::try_from(capacity).ok().filter(|_| tells).map(quarter_marks);
        Self { device, queue, capacity, marks, pump }
    }
}

impl RxQueue for DpdkRx {
    type Frame = Mbuf;

    #[inline]
    fn rx_burst(&mut self, into: &mut Vec<Mbuf>, max: usize) -> usize {
        if let Some(pump) = &mut self.pump {
            pump.look(self.device.port(), self.queue);
        }
        let max = max.min(usize::from(u16::MAX));
        into.reserve(max);
        let mut lost = 0;
        // SAFETY: `Mbuf` is a transparent non-null pointer, the vector has room for `max` of them, and the shim writes
        // that many at most, each owned by us from now on. `&mut self` is the only user of this queue.
        let n = unsafe {
            let end = into.as_mut_ptr().add(into.len());
            let n = ffi::mr_rx(self.device.port(), self.queue, end.cast(), max as u16, &raw mut lost);
            into.set_len(into.len() + usize::from(n));
            usize::from(n)
        };
        if lost != 0 {
            self.device.count_lost(lost);
        }
        n
    }

    /// As many as the queue of a NIC has descriptors, and as a driver may have taken out of them already. Drivers that count what waits leave
    /// the latter out. Where a queue is the kernel's or another process's, frames wait in places that nobody counts.
    fn waiting(&mut self) -> usize {
        self.capacity.saturating_add(STAGED)
    }

    /// Looks at one descriptor for each quarter that is full, and one more: to count what waits, drivers read them all.
    fn quarters(&mut self) -> Option<u8> {
        let (port, queue) = (self.device.port(), self.queue);
        // SAFETY: the port has started, with this queue, and only we poll it.
        let done = |mark: &&u16| unsafe { ffi::mr_rx_done(port, queue, **mark) } == 1;
        self.marks.map(|marks| marks.iter().take_while(done).count() as u8)
    }
}

/// The descriptors in which packets wait when so many quarters of a queue do. The last are a driver's own: it gives them back
/// in groups.
fn quarter_marks(descriptors: u16) -> [u16; 4] {
    [1, 2, 3, 4].map(|quarter| {
        let full = (u32::from(descriptors) * quarter / 4) as u16;
        full.min(descriptors.saturating_sub(2 * STAGED as u16)).saturating_sub(1)
    })
}

/// A transmit queue of a [`DpdkPort`](crate::DpdkPort).
#[derive(Debug)]
pub struct DpdkTx {
    device: Arc<Device>,
    queue: u16,
    /// Where the receive half transmits too.
    turn: Option<Turn>,
    unsent: Unsent,
}

impl DpdkTx {
    /// Likewise.
    pub(crate) fn new(device: Arc<Device>, queue: u16, turn: Option<Turn>) -> Self {
        let unsent = Unsent::new(&device, queue);
        Self { device, queue, turn, unsent }
    }
}

impl TxQueue for DpdkTx {
    type Frame = Mbuf;

    #[inline]
    fn tx_burst(&mut self, frames: &mut Vec<Mbuf>) -> usize {
        let len = frames.len();
        let offered = len.min(usize::from(u16::MAX)) as u16;
        if offered == 0 {
            return 0;
        }
        if let Some(turn) = &self.turn {
            turn.take();
        }
        // SAFETY: `offered` pointers to live mbufs. DPDK owns the first `n` afterwards, so the vector forgets them
        // without dropping and moves the rest to the front.
        let sent = unsafe {
            let at = frames.as_mut_ptr();
            let n = ffi::mr_tx(self.device.port(), self.queue, at.cast(), offered);
            let n = usize::from(n).min(len);
            frames.set_len(0);
            std::ptr::copy(at.add(n), at, len - n);
            frames.set_len(len - n);
            n
        };
        if let Some(turn) = &self.turn {
            turn.give();
        }
        if sent > 0 {
            self.unsent.sent();
        }
        sent
    }

    /// One for any number.
    fn unsent(&self) -> usize {
        usize::from(self.unsent.waits(|| Tsc::process().now()))
    }
}
