//! Ports and their queues: what a worker polls.

use crate::frame::{Frame, FramePool};
use crate::offload::{FlowOffload, NoOffload};
use crate::redirection::Redirection;
use crate::steering::{Duty, Steering};
use packet::MacAddr;

/// The most packets a worker takes from a queue at once.
pub const BURST: usize = 64;

/// One receive queue, polled by one worker.
pub trait RxQueue: Send {
    /// The buffers received.
    type Frame: Frame;
    /// Appends up to `max` received frames to `into` and says how many. Never blocks. The caller reserves room.
    fn rx_burst(&mut self, into: &mut Vec<Self::Frame>, max: usize) -> usize;
    /// How many frames wait in it at most: after so many have been received, all that wait now are among them. `usize::MAX`: not
    /// known.
    fn waiting(&mut self) -> usize {
        usize::MAX
    }
    /// How full it is: so many whole quarters of what it can hold wait to be received. `None`: not known. Cheap enough to be asked
    /// after each burst that was full.
    fn quarters(&mut self) -> Option<u8> {
        None
    }
}

/// What [`RxQueue::quarters`] says of so many frames where there is room for `room`.
pub fn quarters(waiting: usize, room: usize) -> u8 {
    (waiting.min(room) * 4 / room.max(1)) as u8
}

/// One transmit queue, fed by one worker.
pub trait TxQueue: Send {
    /// The buffers sent.
    type Frame: Frame;
    /// Takes from the front of `frames` what can be sent now, in order, and says how many; the rest stays. Never blocks.
    fn tx_burst(&mut self, frames: &mut Vec<Self::Frame>) -> usize;
    /// Frames taken that are not on the wire yet, as far as the device tells; those of a device that can't tell count as sent.
    /// What another queue takes while this is zero leaves later.
    fn unsent(&self) -> usize {
        0
    }
}

/// What is known of a port before traffic starts.
#[derive(Clone, Debug)]
pub struct PortInfo {
    /// The name given in the configuration.
    pub name: String,
    /// The port's own MAC address.
    pub mac: MacAddr,
    /// Largest layer-3 packet that can be sent, in bytes (an Ethernet frame is 14 longer, 18 with a VLAN tag).
    pub mtu: u16,
    /// Pairs of receive and transmit queues.
    pub queues: u16,
    /// The driver, as users know it (`memory`, `net_af_packet`, …).
    pub driver: String,
}

/// What the port itself counted, whole device, since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received (without FCS).
    pub rx_bytes: u64,
    /// Packets that arrived and were lost because no queue entry or buffer was free.
    pub rx_missed: u64,
    /// Packets received with an error (not among `rx_packets`).
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent (without FCS).
    pub tx_bytes: u64,
    /// Packets that the device failed to send.
    pub tx_errors: u64,
}

/// One of the devices that are one port together (link aggregation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The device.
    pub name: String,
    /// Whether its link is up.
    pub link_up: bool,
    /// Whether packets go out by it: its link is up, it is not just a stand-in, and, with LACP, the other end agrees.
    pub active: bool,
    /// Its link's speed in Mbit/s, if known.
    pub mbps: Option<u32>,
    /// The system at the other end, as LACP heard of it (IEEE 802.1AX §6.3.2).
    pub partner: Option<MacAddr>,
}

/// A network port that has been configured and started.
///
/// Queues and pools are taken out once each and moved to the worker that polls them; the port itself stays with
/// the control side for information, statistics and shutdown.
pub trait Port: Send {
    /// The buffers of this port's queues.
    type Frame: Frame;
    /// Receive queues.
    type Rx: RxQueue<Frame = Self::Frame>;
    /// Transmit queues.
    type Tx: TxQueue<Frame = Self::Frame>;
    /// Pools for frames of a worker's own making.
    type Pool: FramePool<Frame = Self::Frame>;

    /// Name, address, sizes.
    fn info(&self) -> &PortInfo;
    /// Takes queue pair `queue` (0-based); `None` if it doesn't exist or was taken already.
    fn take_queue(&mut self, queue: u16) -> Option<(Self::Rx, Self::Tx)>;
    /// How it steers ahead of RSS; `None`: not at all.
    fn steering(&self) -> Option<&Steering> {
        None
    }
    /// Takes a queue that steering leads to: of a group, queue `queue`; the control queue is queue 0 of its duty. `None`
    /// if it doesn't exist or was taken already.
    fn take_steered(&mut self, duty: Duty, queue: u16) -> Option<Self::Rx> {
        let _ = (duty, queue);
        None
    }
    /// A pool for the worker that polls `queue`.
    fn pool(&mut self, queue: u16) -> Self::Pool;
    /// Buffers that its pools have, all together; `None`: as many as there is memory for.
    fn frames(&self) -> Option<usize> {
        None
    }
    /// Whether the link is up.
    fn link_up(&self) -> bool;
    /// The devices that are this port together; empty: it is one.
    fn members(&self) -> Vec<Member> {
        Vec::new()
    }
    /// For people: what the device does of what it was asked to, and what it doesn't and why.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
    /// The device's own counters.
    fn stats(&self) -> PortStats;
    /// A handle on the device's redirection table, if it hashes the subscriber's address, so that an entry is a shard, and can
    /// change the table while traffic runs. Each worker takes one; `None`: packets reach their shard's owner by software.
    fn redirection(&mut self) -> Option<Box<dyn Redirection>> {
        None
    }
    /// A handle on the device's flow table, for rules on what arrives here. Each worker takes one; most ports have none.
    fn offload(&mut self) -> Box<dyn FlowOffload> {
        Box::new(NoOffload)
    }
}
