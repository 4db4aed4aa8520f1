//! The NIC's wire side: what a traffic generator in another thread holds.

use super::fault::{FaultCounts, Faults, FaultyWire};
use super::frame::MemFrame;
use super::nic::Registers;
use super::rss::RssMode;
use super::switch::Verdict;
use crate::frame::Frame;
use crate::steering::Steering;
use rtrb::{Consumer, Producer};
use std::sync::Arc;

/// What lies on the cable's other end: frames put in here come out of the NIC's receive queues, and what its transmit
/// queues send is collected here.
#[derive(Debug)]
pub struct MemWire {
    rss: RssMode,
    steering: Steering,
    registers: Arc<Registers>,
    to_host: Vec<Lane>,
    from_host: Vec<Consumer<MemFrame>>,
    next: usize,
    faults_in: FaultyWire,
    faults_out: FaultyWire,
    /// Frames on their way through the fault injector; empty between calls.
    passing: Vec<MemFrame>,
    /// Where the frames of an offer go; empty between calls.
    queues: Vec<u16>,
    lost: u64,
}

/// One receive queue as the wire sees it: the ring, and what this call has for it.
#[derive(Debug)]
struct Lane {
    ring: Producer<MemFrame>,
    staged: Vec<MemFrame>,
    /// Ring entries free when the call began.
    free: usize,
    /// Of those, promised to frames that are still in the caller's hands.
    reserved: usize,
    bytes: u64,
    missed: u64,
    errors: u64,
}

impl MemWire {
    pub(super) fn new(
        rss: RssMode,
        steering: Steering,
        registers: Arc<Registers>,
        to_host: Vec<Producer<MemFrame>>,
        from_host: Vec<Consumer<MemFrame>>,
    ) -> Self {
        let to_host = to_host.into_iter().map(Lane::new).collect();
        Self {
            rss,
            steering,
            registers,
            to_host,
            from_host,
            next: 0,
            faults_in: FaultyWire::new(Faults::default(), 1),
            faults_out: FaultyWire::new(Faults::default(), 2),
            passing: Vec::new(),
            queues: Vec::new(),
            lost: 0,
        }
    }

    /// Sends all of `frames` to the NIC, as a wire does: what finds its queue full is lost and counted as missed, and
    /// with the link down all is lost. Says how many reached a queue, or were forwarded by a rule of the
    /// NIC's flow table. A call with no frames lets go the frame that a
    /// reordering wire holds back.
    pub fn inject(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        if !self.registers.link_up() {
            self.lost += frames.len() as u64;
            frames.clear();
            return 0;
        }
        let mut passing = std::mem::take(&mut self.passing);
        if frames.is_empty() {
            passing.extend(self.faults_in.flush());
        } else if self.faults_in.is_transparent() {
            passing.append(frames);
        } else {
            for frame in frames.drain(..) {
                self.faults_in.pass(frame, &mut passing);
            }
        }
        self.open();
        let mut forwarded = 0;
        for frame in passing.drain(..) {
            forwarded += usize::from(!self.receive(frame));
        }
        self.passing = passing;
        self.close() + forwarded
    }

    /// Sends from the front of `frames` until one meets a full queue; the rest stays. For senders that want no loss
    /// but what the NIC's user causes; faults don't apply. Says how many were taken.
    pub fn offer(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        if !self.registers.link_up() {
            return 0;
        }
        self.open();
        let mut queues = std::mem::take(&mut self.queues);
        for frame in frames.iter_mut() {
            let queue = self.steer(frame);
            match self.to_host.get_mut(queue) {
                Some(lane) if lane.reserved < lane.free => lane.reserved += 1,
                _ => break,
            }
            queues.push(queue as u16);
        }
        let taken = queues.len();
        if self.registers.switch().is_some() {
            // A queue has room for each even if no rule takes it; one that a rule steers may still find its queue full.
            queues.clear();
            for frame in frames.drain(..taken) {
                self.receive(frame);
            }
        }
        for (frame, queue) in frames.drain(..queues.len()).zip(queues.drain(..)) {
            if let Some(lane) = self.to_host.get_mut(usize::from(queue)) {
                lane.put(frame, self.registers.longest);
            }
        }
        self.queues = queues;
        self.close();
        taken
    }

    /// Sends from the front of `frames` to one receive queue, past RSS and faults, until it is full; the rest stays.
    /// Says how many were taken.
    pub fn offer_to(&mut self, queue: u16, frames: &mut Vec<MemFrame>) -> usize {
        if !self.registers.link_up() || usize::from(queue) >= self.to_host.len() {
            return 0;
        }
        self.open();
        let mut taken = 0;
        if let Some(lane) = self.to_host.get_mut(usize::from(queue)) {
            taken = lane.free.min(frames.len());
            for frame in frames.drain(..taken) {
                lane.put(frame, self.registers.longest);
            }
        }
        self.close();
        taken
    }

    /// Appends up to `max` frames that the NIC has sent to `into`, from its queues in turn, each queue's in order. Says
    /// how many.
    pub fn collect(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let before = into.len();
        let queues = self.from_host.len();
        let mut taken = 0;
        for step in 0..queues {
            let queue = (self.next + step) % queues;
            taken += self.drain_queue(queue, into, max - taken);
        }
        self.next = (self.next + 1) % queues.max(1);
        taken += self.drain_hairpin(into, max - taken);
        if taken == 0 {
            // Nothing will overtake it soon: the frame held back for reordering arrives now.
            into.extend(self.faults_out.flush());
        }
        into.len() - before
    }

    /// Like [`MemWire::collect`] from one transmit queue.
    pub fn collect_from(&mut self, queue: u16, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let before = into.len();
        self.drain_queue(usize::from(queue), into, max);
        into.len() - before
    }

    /// Takes up to `max` frames from a ring; through the faulty wire that can be fewer, or more by duplicates.
    fn drain_queue(&mut self, queue: usize, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let Some(ring) = self.from_host.get_mut(queue) else { return 0 };
        let n = ring.slots().min(max);
        let Ok(chunk) = ring.read_chunk(n) else { return 0 };
        let before = into.len();
        if self.faults_out.is_transparent() {
            into.extend(chunk);
        } else {
            for frame in chunk {
                self.faults_out.pass(frame, into);
            }
        }
        // A mark is the NIC's that gave it.
        into.iter_mut().skip(before).for_each(MemFrame::unmark);
        n
    }

    /// Takes up to `max` frames that rules of the flow table have sent out of this port.
    fn drain_hairpin(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let mut frames = Vec::new();
        self.registers.hairpin.collect(&mut frames, max);
        let n = frames.len();
        if self.faults_out.is_transparent() {
            into.append(&mut frames);
        } else {
            for frame in frames {
                self.faults_out.pass(frame, into);
            }
        }
        n
    }

    /// Makes both directions of the wire faulty from now on. The same seed places the same faults.
    pub fn set_faults(&mut self, to_nic: Faults, from_nic: Faults, seed: u64) {
        self.faults_in.set(to_nic, seed);
        self.faults_out.set(from_nic, seed ^ u64::MAX);
    }

    /// What the faulty wire did, towards the NIC and from it.
    pub const fn fault_counts(&self) -> (FaultCounts, FaultCounts) {
        (self.faults_in.counts(), self.faults_out.counts())
    }

    /// Frames sent while the link was down.
    pub const fn lost_link_down(&self) -> u64 {
        self.lost
    }

    /// Whether the NIC's queues have all been dropped.
    pub fn is_abandoned(&self) -> bool {
        self.to_host.iter().all(|lane| lane.ring.is_abandoned())
    }

    /// What the NIC does with a frame: its flow table first, then receive-side scaling. False: a rule has forwarded it.
    fn receive(&mut self, frame: MemFrame) -> bool {
        let verdict = match self.registers.switch() {
            Some((switch, port)) if frame.len() <= self.registers.longest => switch.handle(*port, frame),
            _ => Verdict::Host(frame),
        };
        let (mut frame, chosen) = match verdict {
            Verdict::Host(frame) => (frame, None),
            Verdict::Queue(frame, queue) => (frame, Some(usize::from(queue))),
            Verdict::Gone => return false,
        };
        let hashed = self.steer(&mut frame);
        let queue = chosen.filter(|queue| *queue < self.to_host.len()).unwrap_or(hashed);
        if let Some(lane) = self.to_host.get_mut(queue) {
            lane.put(frame, self.registers.longest);
        }
        true
    }

    /// The receive queue for a frame. The hash stays in the frame, as in a NIC's descriptor.
    fn steer(&self, frame: &mut MemFrame) -> usize {
        if self.rss != RssMode::Preset {
            let hash = self.rss.hash(frame.bytes());
            frame.set_rss_hash(hash.unwrap_or(0));
        }
        let queue = frame.rss_hash().map_or(0, |hash| self.registers.queue_of(hash));
        if self.steering.is_none() {
            return queue;
        }
        self.steering.place(self.steering.duty(frame.bytes()), queue, self.registers.queues)
    }

    fn open(&mut self) {
        self.registers.deal();
        for lane in &mut self.to_host {
            lane.free = lane.ring.slots();
            lane.reserved = 0;
        }
    }

    /// Publishes what the lanes have staged, one ring operation per queue, and counts it.
    fn close(&mut self) -> usize {
        let mut sent = 0;
        for (queue, lane) in self.to_host.iter_mut().enumerate() {
            let n = lane.staged.len();
            if n > 0
                && let Ok(chunk) = lane.ring.write_chunk_uninit(n)
            {
                chunk.fill_from_iter(lane.staged.drain(..));
            }
            if n as u64 | lane.missed | lane.errors != 0 {
                self.registers.count_rx(queue, n as u64, lane.bytes, lane.missed, lane.errors);
            }
            sent += n;
            (lane.bytes, lane.missed, lane.errors) = (0, 0, 0);
        }
        self.registers.dealt();
        sent
    }
}

impl Lane {
    fn new(ring: Producer<MemFrame>) -> Self {
        Self { ring, staged: Vec::new(), free: 0, reserved: 0, bytes: 0, missed: 0, errors: 0 }
    }

    fn put(&mut self, frame: MemFrame, longest: usize) {
        if frame.len() > longest {
            self.errors += 1;
        } else if self.staged.len() >= self.free {
            self.missed += 1;
        } else {
            self.bytes += frame.len() as u64;
            self.staged.push(frame);
        }
    }
}
