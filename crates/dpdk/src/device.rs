//! A device's port, as long as anything of it is in use.

use crate::af_packet;
use crate::bond::Bonded;
use crate::eal::{Eal, alone};
use crate::ffi::{self, RawPortInfo};
use crate::pool::PoolHandle;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};

/// A port of an attached device; closes it when the last queue is gone.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) port: u16,
    /// As configured; the device may have more.
    pub(crate) rx_descriptors: u16,
    pub(crate) tx_descriptors: u16,
    /// Whether its queues, and its members', are those of NICs.
    pub(crate) hardware: bool,
    /// Of an aggregated port.
    pub(crate) bonded: Option<Bonded>,
    pub(crate) chained_lost: AtomicU64,
    /// Receive queues take buffers from it: it goes after the port is closed.
    pub(crate) _pool: PoolHandle,
    pub(crate) eal: Eal,
}

impl Device {
    /// DPDK's number of the port.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Frames that a receive queue holds, if that is known: its descriptors, and those of the same queue of each member.
    pub(crate) fn rx_capacity(&self, queue: u16) -> Option<usize> {
        let of = |port| {
            // SAFETY: the port has started, with this queue.
            match unsafe { ffi::mr_rx_descriptors(port, queue, self.rx_descriptors) } {
                0 => None,
                told @ 1.. => Some(told.unsigned_abs() as usize),
                set_up => self.hardware.then(|| set_up.unsigned_abs() as usize),
            }
        };
        match &self.bonded {
            Some(bonded) => bonded.ports().map(of).sum(),
            None => of(self.port),
        }
    }

    /// What the kernel lost on the way into the rings of this port and its members.
    pub(crate) fn lost(&self) -> af_packet::Lost {
        let members = self.bonded.iter().flat_map(Bonded::ports);
        std::iter::once(self.port).chain(members).map(af_packet::lost).sum()
    }

    /// Frames that came in pieces and could not be put together.
    pub(crate) fn count_lost(&self, frames: u64) {
        self.chained_lost.fetch_add(frames, Ordering::Relaxed);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Its drop ends the watch over the members, which looks at ports.
        let members: Vec<u16> = self.bonded.take().iter().flat_map(Bonded::ports).collect();
        alone(|| {
            for port in std::iter::once(self.port).chain(members) {
                // SAFETY: the port was attached by us and no queue is left that could be polled.
                unsafe { ffi::mr_port_close(port) };
            }
        });
    }
}

/// What the shim was doing.
pub(crate) fn step(step: *const c_char) -> String {
    if step.is_null() {
        return String::from("starting it");
    }
    // SAFETY: the shim points to string constants.
    unsafe { CStr::from_ptr(step) }.to_string_lossy().into_owned()
}

pub(crate) fn raw_info(port: u16) -> Result<RawPortInfo, i32> {
    let mut raw = std::mem::MaybeUninit::zeroed();
    // SAFETY: room for one struct; all-zero is a valid value of it.
    match unsafe { ffi::mr_port_info(port, raw.as_mut_ptr()) } {
        // SAFETY: zeroed, and filled by the call.
        0 => Ok(unsafe { raw.assume_init() }),
        errno => Err(errno),
    }
}
