//! The NIC's host side: the port, its queues, and the handle that plays the part of its registers.

use super::frame::{FrameSize, MemFrame, MemPool};
use super::rss::{RETA_SIZE, RssMode};
use super::switch::{Hairpin, MemSwitch, Shared};
use super::wire::MemWire;
use crate::frame::Frame;
use crate::offload::{FlowOffload, NoOffload};
use crate::port::{Port, PortInfo, PortStats, RxQueue, TxQueue, quarters};
use crate::redirection::{RedirectError, Redirection};
use crate::steering::{Duty, Steering};
use packet::MacAddr;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// How a [`MemNic`] is built.
#[derive(Clone, Debug)]
pub struct MemConfig {
    /// The port's name.
    pub name: String,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Largest layer-3 packet, in bytes. Longer frames from the wire are counted as errors, as a NIC does.
    pub mtu: u16,
    /// Pairs of receive and transmit queues.
    pub queues: u16,
    /// Descriptors per queue and direction.
    pub descriptors: usize,
    /// How a frame from the wire finds its receive queue.
    pub rss: RssMode,
    /// What comes ahead of RSS, and adds receive queues to the pairs.
    pub steering: Steering,
    /// The most frames that all [`Port::pool`]s together hand out.
    pub pool_frames: usize,
}

impl Default for MemConfig {
    fn default() -> Self {
        Self {
            name: "mem0".into(),
            mac: MacAddr([0x02, 0, 0, 0, 0, 0x01]),
            mtu: 1500,
            queues: 1,
            descriptors: 1024,
            rss: RssMode::InnerIp,
            steering: Steering::default(),
            pool_frames: 8192,
        }
    }
}

/// Why a [`MemNic`] can't be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemError {
    /// No queue, or more than a redirection table can name.
    #[error("a memory NIC has 1 to {RETA_SIZE} queues, not {0}")]
    Queues(u16),
    /// A ring that can't hold a burst, or absurdly large.
    #[error("a memory NIC's rings have 1 to 1,048,576 descriptors, not {0}")]
    Descriptors(usize),
    /// An MTU below what IPv4 requires (RFC 791 §3.1), or above the largest buffer.
    #[error("a memory NIC's MTU is 68 to 9,500 bytes, not {0}")]
    Mtu(u16),
    /// A redirection table entry names a queue that doesn't exist.
    #[error("redirection table entry {entry} names queue {queue}, but there are {queues}")]
    Reta {
        /// The entry.
        entry: usize,
        /// The queue it names.
        queue: u16,
        /// How many queues there are.
        queues: u16,
    },
}

/// One writer, any reader: a plain load and store is enough, no locked instruction.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the wire side counts of a queue.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WireCounts {
    packets: Count,
    bytes: Count,
    missed: Count,
    errors: Count,
}

/// What the queue's worker counts.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounts {
    packets: Count,
    bytes: Count,
    errors: Count,
}

/// What one queue pair counted since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets put into the receive ring.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Packets lost because the receive ring was full.
    pub rx_missed: u64,
    /// Packets refused because they were longer than the MTU allows.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets lost because the link was down or the wire's other end was gone, or longer than the MTU allows.
    pub tx_errors: u64,
}

/// The registers: shared by the port, its queues, the wire and every [`MemControl`].
#[derive(Debug)]
pub(super) struct Registers {
    reta: Box<[AtomicU16]>,
    /// Odd while the wire deals out frames by the table, and another number each time.
    dealing: AtomicU64,
    pub(super) queues: u16,
    /// Longest Ethernet frame carried: the MTU, the Ethernet header and two VLAN tags.
    pub(super) longest: usize,
    link: AtomicBool,
    rx: Box<[WireCounts]>,
    tx: Box<[WorkerCounts]>,
    /// The switch that it is a port of, and which.
    switch: OnceLock<(Arc<Shared>, u16)>,
    pub(super) hairpin: Hairpin,
}

impl Registers {
    pub(super) fn link_up(&self) -> bool {
        self.link.load(Ordering::Relaxed)
    }

    /// Becomes a port of a switch. False: it is one already.
    pub(super) fn plug(&self, switch: Arc<Shared>, port: u16) -> bool {
        self.switch.set((switch, port)).is_ok()
    }

    /// The switch that may have rules for frames from the wire.
    pub(super) fn switch(&self) -> Option<&(Arc<Shared>, u16)> {
        self.switch.get().filter(|(switch, _)| switch.is_live())
    }

    /// The wire begins to deal out frames.
    pub(super) fn deal(&self) {
        self.dealing.store(self.dealing.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        // Either a redirection sees this, or what follows sees the redirection.
        fence(Ordering::SeqCst);
    }

    /// All of them are in their queues.
    pub(super) fn dealt(&self) {
        self.dealing.store(self.dealing.load(Ordering::Relaxed).wrapping_add(1) & !1, Ordering::Release);
    }

    /// The queue that the redirection table names for a hash.
    pub(super) fn queue_of(&self, hash: u32) -> usize {
        self.reta.get(hash as usize % RETA_SIZE).map_or(0, |queue| usize::from(queue.load(Ordering::Relaxed)))
    }

    pub(super) fn count_rx(&self, queue: usize, packets: u64, bytes: u64, missed: u64, errors: u64) {
        if let Some(counts) = self.rx.get(queue) {
            counts.packets.add(packets);
            counts.bytes.add(bytes);
            counts.missed.add(missed);
            counts.errors.add(errors);
        }
    }

    fn queue_stats(&self, queue: u16) -> Option<QueueStats> {
        let rx = self.rx.get(usize::from(queue))?;
        // A queue that steering adds only receives.
        let none = WorkerCounts::default();
        let tx = self.tx.get(usize::from(queue)).unwrap_or(&none);
        Some(QueueStats {
            rx_packets: rx.packets.get(),
            rx_bytes: rx.bytes.get(),
            rx_missed: rx.missed.get(),
            rx_errors: rx.errors.get(),
            tx_packets: tx.packets.get(),
            tx_bytes: tx.bytes.get(),
            tx_errors: tx.errors.get(),
        })
    }

    fn stats(&self) -> PortStats {
        let mut sum = PortStats::default();
        for queue in (0..self.rx.len()).filter_map(|queue| self.queue_stats(queue as u16)) {
            sum.rx_packets += queue.rx_packets;
            sum.rx_bytes += queue.rx_bytes;
            sum.rx_missed += queue.rx_missed;
            sum.rx_errors += queue.rx_errors;
            sum.tx_packets += queue.tx_packets;
            sum.tx_bytes += queue.tx_bytes;
            sum.tx_errors += queue.tx_errors;
        }
        let ([rx_packets, rx_bytes], [tx_packets, tx_bytes]) = (&self.hairpin.rx, &self.hairpin.tx);
        sum.rx_packets += rx_packets.load(Ordering::Relaxed);
        sum.rx_bytes += rx_bytes.load(Ordering::Relaxed);
        sum.tx_packets += tx_packets.load(Ordering::Relaxed);
        sum.tx_bytes += tx_bytes.load(Ordering::Relaxed);
        sum.tx_errors += self.hairpin.lost.load(Ordering::Relaxed);
        sum
    }
}

/// The part of the NIC that may change while traffic runs; clone it freely.
#[derive(Clone, Debug)]
pub struct MemControl {
    registers: Arc<Registers>,
}

impl MemControl {
    /// Plugs the cable in or pulls it. Down, frames from the wire are lost unseen and frames sent are errors.
    pub fn set_link(&self, up: bool) {
        self.registers.link.store(up, Ordering::Relaxed);
    }

    /// The redirection table: the queue for each value of `hash % 512`.
    pub fn reta(&self) -> Vec<u16> {
        self.registers.reta.iter().map(|entry| entry.load(Ordering::Relaxed)).collect()
    }

    /// Changes the table from entry 0 on, as long as `table` is; entries beyond 512 are ignored. Nothing is changed on
    /// error. Frames already in a ring stay there, as in hardware: order across the change is the engine's task.
    pub fn set_reta(&self, table: &[u16]) -> Result<(), MemError> {
        let queues = self.registers.queues;
        if let Some((entry, &queue)) = table.iter().enumerate().find(|&(_, &queue)| queue >= queues) {
            return Err(MemError::Reta { entry, queue, queues });
        }
        for (entry, &queue) in self.registers.reta.iter().zip(table) {
            entry.store(queue, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The counters of one queue pair, or of a receive queue that steering adds ([`Steering::place`]); `None` if it
    /// doesn't exist.
    pub fn queue_stats(&self, queue: u16) -> Option<QueueStats> {
        self.registers.queue_stats(queue)
    }

    /// The sum over all queues.
    pub fn stats(&self) -> PortStats {
        self.registers.stats()
    }
}

/// Changes the table of a NIC whose hash is the subscriber's.
#[derive(Debug)]
struct MemRedirection {
    registers: Arc<Registers>,
    /// What the wire was dealing when the table changed; even: nothing.
    dealing: u64,
}

impl Redirection for MemRedirection {
    fn redirect(&mut self, entries: &[u16], queue: u16) -> Result<(), RedirectError> {
        let queues = self.registers.queues;
        if queue >= queues {
            return Err(RedirectError::Queue { queue, queues });
        }
        for entry in entries.iter().filter_map(|&entry| self.registers.reta.get(usize::from(entry))) {
            entry.store(queue, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.dealing = self.registers.dealing.load(Ordering::Acquire);
        Ok(())
    }

    fn settled(&mut self) -> bool {
        self.dealing.is_multiple_of(2) || self.registers.dealing.load(Ordering::Acquire) != self.dealing
    }
}

/// A receive queue of a [`MemNic`].
#[derive(Debug)]
pub struct MemRx {
    ring: Consumer<MemFrame>,
}

impl RxQueue for MemRx {
    type Frame = MemFrame;

    #[inline]
    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let n = self.ring.slots().min(max);
        match self.ring.read_chunk(n) {
            Ok(chunk) if n > 0 => {
                into.extend(chunk);
                n
            }
            _ => 0,
        }
    }

    fn waiting(&mut self) -> usize {
        self.ring.slots()
    }

    fn quarters(&mut self) -> Option<u8> {
        Some(quarters(self.ring.slots(), self.ring.buffer().capacity()))
    }
}

/// A transmit queue of a [`MemNic`].
#[derive(Debug)]
pub struct MemTx {
    ring: Producer<MemFrame>,
    queue: usize,
    registers: Arc<Registers>,
}

impl TxQueue for MemTx {
    type Frame = MemFrame;

    #[inline]
    fn tx_burst(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        let Some(counts) = self.registers.tx.get(self.queue) else { return 0 };
        if self.ring.is_abandoned() || !self.registers.link_up() {
            let n = frames.len();
            counts.errors.add(n as u64);
            frames.clear();
            return n;
        }
        let n = self.ring.slots().min(frames.len());
        if n == 0 {
            return 0;
        }
        let (mut packets, mut bytes) = (0u64, 0u64);
        let longest = self.registers.longest;
        if let Ok(chunk) = self.ring.write_chunk_uninit(n) {
            chunk.fill_from_iter(frames.drain(..n).filter(|frame| {
                let fits = frame.len() <= longest;
                packets += u64::from(fits);
                bytes += if fits { frame.len() as u64 } else { 0 };
                fits
            }));
        }
        counts.packets.add(packets);
        counts.bytes.add(bytes);
        if packets != n as u64 {
            counts.errors.add(n as u64 - packets);
        }
        n
    }

    fn unsent(&self) -> usize {
        if self.ring.is_abandoned() { 0 } else { self.ring.buffer().capacity() - self.ring.slots() }
    }
}

/// A NIC in memory: queue pairs on this side, a [`MemWire`] on the other.
#[derive(Debug)]
pub struct MemNic {
    info: PortInfo,
    registers: Arc<Registers>,
    rss: RssMode,
    pairs: Vec<Option<(MemRx, MemTx)>>,
    steering: Steering,
    /// In the order of [`Steering::place`].
    steered: Vec<Option<MemRx>>,
    pool: MemPool,
}

impl MemNic {
    /// The NIC and the wire that is plugged into it. The redirection table starts as `entry % queues`.
    pub fn new(config: MemConfig) -> Result<(Self, MemWire), MemError> {
        let MemConfig { name, mac, mtu, queues, descriptors, rss, steering, pool_frames } = config;
        if queues == 0 || usize::from(queues) > RETA_SIZE {
            return Err(MemError::Queues(queues));
        }
        if !(1..=1 << 20).contains(&descriptors) {
            return Err(MemError::Descriptors(descriptors));
        }
        if !(68..=9500).contains(&mtu) {
            return Err(MemError::Mtu(mtu));
        }
        let receive_queues = usize::from(queues) + steering.extra_queues(queues);
        let registers = Arc::new(Registers {
            dealing: AtomicU64::new(0),
            reta: (0..RETA_SIZE as u16).map(|entry| AtomicU16::new(entry % queues)).collect(),
            queues,
            longest: usize::from(mtu) + 14 + 8,
            link: AtomicBool::new(true),
            rx: (0..receive_queues).map(|_| WireCounts::default()).collect(),
            tx: (0..queues).map(|_| WorkerCounts::default()).collect(),
            switch: OnceLock::new(),
            hairpin: Hairpin::default(),
        });
        let mut pairs = Vec::new();
        let (mut to_host, mut from_host) = (Vec::new(), Vec::new());
        for queue in 0..usize::from(queues) {
            let (rx_in, rx_out) = RingBuffer::new(descriptors);
            let (tx_in, tx_out) = RingBuffer::new(descriptors);
            to_host.push(rx_in);
            from_host.push(tx_out);
            let tx = MemTx { ring: tx_in, queue, registers: Arc::clone(&registers) };
            pairs.push(Some((MemRx { ring: rx_out }, tx)));
        }
        let mut steered = Vec::new();
        for _ in usize::from(queues)..receive_queues {
            let (rx_in, rx_out) = RingBuffer::new(descriptors);
            to_host.push(rx_in);
            steered.push(Some(MemRx { ring: rx_out }));
        }
        let wire = MemWire::new(rss, steering.clone(), Arc::clone(&registers), to_host, from_host);
        let pool = MemPool::new(pool_frames, FrameSize::for_mtu(mtu));
        let info = PortInfo { name, mac, mtu, queues, driver: "memory".into() };
        Ok((Self { info, registers, rss, pairs, steering, steered, pool }, wire))
    }

    /// The registers, for whoever turns the knobs while workers own the queues.
    pub fn control(&self) -> MemControl {
        MemControl { registers: Arc::clone(&self.registers) }
    }

    pub(super) const fn registers(&self) -> &Arc<Registers> {
        &self.registers
    }

    /// Frames of the port's pools that exist now.
    pub fn pool_in_use(&self) -> usize {
        self.pool.in_use()
    }
}

impl Port for MemNic {
    type Frame = MemFrame;
    type Rx = MemRx;
    type Tx = MemTx;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn take_queue(&mut self, queue: u16) -> Option<(MemRx, MemTx)> {
        self.pairs.get_mut(usize::from(queue))?.take()
    }

    fn steering(&self) -> Option<&Steering> {
        (!self.steering.is_none()).then_some(&self.steering)
    }

    fn take_steered(&mut self, duty: Duty, queue: u16) -> Option<MemRx> {
        let queues = self.info.queues;
        let exists = match duty {
            Duty::Control => queue == 0 && self.steering.control().is_some(),
            Duty::Group(group) => queue < queues && usize::from(group) < self.steering.groups().len(),
        };
        let place = self.steering.place(Some(duty), usize::from(queue), queues);
        self.steered.get_mut(place - usize::from(queues)).filter(|_| exists)?.take()
    }

    fn pool(&mut self, _queue: u16) -> MemPool {
        self.pool.clone()
    }

    fn frames(&self) -> Option<usize> {
        Some(self.pool.limit())
    }

    fn link_up(&self) -> bool {
        self.registers.link_up()
    }

    fn stats(&self) -> PortStats {
        self.registers.stats()
    }

    fn redirection(&mut self) -> Option<Box<dyn Redirection>> {
        let registers = Arc::clone(&self.registers);
        (self.rss == RssMode::InnerIp).then(|| Box::new(MemRedirection { registers, dealing: 0 }) as _)
    }

    fn offload(&mut self) -> Box<dyn FlowOffload> {
        match self.registers.switch.get() {
            Some((shared, port)) => Box::new(MemSwitch::of(shared).offload(*port)),
            None => Box::new(NoOffload),
        }
    }
}
