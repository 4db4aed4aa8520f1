//! The port, its queues and its sinks.

use super::redirect::{Met, Walker};
use super::{Inner, STAMP, Ticks, Traffic};
use crate::frame::Frame;
use crate::mem::{Cache, FrameSize, MemFrame, MemPool};
use crate::port::{Port, PortInfo, PortStats, RxQueue, TxQueue, quarters};
use crate::redirection::{RedirectError, Redirection};
use packet::MacAddr;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tables::clock::Tsc;

/// How long after the packet at which a redirection takes effect it counts as settled, in seconds: more than clocks of two cores differ.
const SETTLES: f64 = 1e-6;

/// A packet that waits in a receive ring.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: u64,
    flow: u32,
    number: u32,
}

/// A receive queue that makes its packets.
#[derive(Debug)]
pub struct PacedRx<C: Ticks = Tsc> {
    inner: Arc<Inner<C>>,
    queue: u16,
    walker: Walker,
    ring: VecDeque<Waiting>,
    descriptors: usize,
}

impl<C: Ticks> PacedRx<C> {
    fn new(traffic: &Traffic<C>, queue: u16, dealt: u16, descriptors: usize) -> Self {
        Self {
            inner: Arc::clone(&traffic.0),
            queue,
            walker: Walker::new(queue, dealt),
            ring: VecDeque::with_capacity(descriptors),
            descriptors,
        }
    }

    /// What has come until now joins the ring.
    fn catch_up(&mut self, now: u64) {
        let Self { inner, queue, walker, ring, descriptors } = self;
        let arrivals = |ticks| inner.ledger.arrivals(*queue, ticks);
        let mut came = 0;
        walker.walk(&inner.schedule, &inner.horizon, inner.schedule.number_at(now), |met| match met {
            Met::Packet { due, entry, nth, down } => {
                let Some(counts) = arrivals(due) else { return };
                counts.arrived.add(1);
                came += usize::from(!down);
                if down {
                    counts.down.add(1);
                } else if ring.len() >= *descriptors {
                    counts.missed.add(1);
                    counts.missed_in_gaps.add(u32::from(came > *descriptors));
                } else if let Some(&(first, flows)) = inner.flows.get(usize::from(entry))
                    && flows > 0
                {
                    ring.push_back(Waiting { due, flow: first + nth % flows, number: nth / flows });
                }
            }
            Met::Stop => ring.drain(..).for_each(|lost| {
                if let Some(counts) = arrivals(lost.due) {
                    counts.down.add(1);
                }
            }),
        });
    }
}

impl<C: Ticks> RxQueue for PacedRx<C> {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let Some(now) = self.inner.since_start() else { return 0 };
        self.catch_up(now);
        let before = into.len();
        let n = self.ring.len().min(max);
        let inner = &self.inner;
        Cache::with(|cache| {
            into.extend(self.ring.drain(..n).map(|Waiting { due, flow, number }| {
                let mut frame = cache.alloc(inner.size);
                inner.stream.make(flow as usize, &mut frame);
                if let Some(stamp) = frame.bytes_mut().last_chunk_mut::<STAMP>() {
                    let whole = u128::from(flow) << 96 | u128::from(number) << 64 | u128::from(due);
                    *stamp = whole.to_ne_bytes();
                }
                frame
            }));
        });
        into.len() - before
    }

    fn waiting(&mut self) -> usize {
        if let Some(now) = self.inner.since_start() {
            self.catch_up(now);
        }
        self.ring.len()
    }

    fn quarters(&mut self) -> Option<u8> {
        Some(quarters(self.ring.len(), self.descriptors))
    }
}

/// A sink that reads what the packets of a [`Traffic`] say of themselves.
#[derive(Debug)]
pub struct PacedTx<C: Ticks = Tsc> {
    inner: Arc<Inner<C>>,
    queue: u16,
}

impl<C: Ticks> TxQueue for PacedTx<C> {
    type Frame = MemFrame;

    fn tx_burst(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        let inner = &*self.inner;
        if let Some(now) = inner.since_start() {
            let mut sent = 0;
            let mut reordered = 0;
            for frame in frames.iter() {
                let Some(stamp) = frame.bytes().last_chunk::<STAMP>() else { continue };
                let whole = u128::from_ne_bytes(*stamp);
                let (flow, number, due) = ((whole >> 96) as usize, (whole >> 64) as u32, whole as u64);
                // A packet of the worker's own making carries no stamp.
                let Some(expected) = inner.expected.get(flow) else { continue };
                sent += 1;
                if number < expected.load(Ordering::Relaxed) {
                    reordered += 1;
                } else {
                    expected.store(number + 1, Ordering::Relaxed);
                }
                if let Some(departures) = inner.ledger.departures(self.queue, due) {
                    departures.record(now.saturating_sub(due));
                }
            }
            if let Some(departures) = inner.ledger.departures(self.queue, now) {
                departures.sent.add(sent);
                departures.reordered.add(reordered);
            }
        }
        let n = frames.len();
        Cache::with(|cache| frames.drain(..).for_each(|frame| cache.recycle(frame)));
        frames.clear();
        n
    }
}

/// A port with a queue pair for each worker.
#[derive(Debug)]
pub struct PacedPort<C: Ticks = Tsc> {
    info: PortInfo,
    arriving: Traffic<C>,
    leaving: Traffic<C>,
    /// Queues that the redirection table deals entries to in the beginning.
    dealt: u16,
    descriptors: usize,
    /// Queues that were taken.
    taken: Vec<bool>,
    /// The redirection table stays as it is.
    fixed: bool,
    pool: MemPool,
}

impl<C: Ticks> PacedPort<C> {
    /// What arrives here, and what arrived elsewhere and leaves here. The redirection table starts as `entry % dealt`. Receive
    /// rings have so many descriptors.
    pub fn new(
        info: PortInfo,
        arriving: &Traffic<C>,
        leaving: &Traffic<C>,
        dealt: u16,
        descriptors: usize,
    ) -> Self {
        let taken = vec![false; usize::from(info.queues)];
        let pool = MemPool::new(8192, FrameSize::for_mtu(info.mtu));
        let (arriving, leaving) = (arriving.clone(), leaving.clone());
        Self { info, arriving, leaving, dealt, descriptors, taken, fixed: false, pool }
    }

    /// As a device whose redirection table can't be changed, or not for what is inside tunnels: nobody gets a handle on it.
    #[must_use]
    pub const fn fixed(mut self, fixed: bool) -> Self {
        self.fixed = fixed;
        self
    }

    /// What a port of this kind says of itself.
    pub fn info(name: &str, mac: MacAddr, mtu: u16, queues: u16) -> PortInfo {
        PortInfo { name: name.into(), mac, mtu, queues, driver: "paced".into() }
    }
}

impl<C: Ticks> Port for PacedPort<C> {
    type Frame = MemFrame;
    type Rx = PacedRx<C>;
    type Tx = PacedTx<C>;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn take_queue(&mut self, queue: u16) -> Option<(PacedRx<C>, PacedTx<C>)> {
        let taken = self.taken.get_mut(usize::from(queue)).filter(|taken| !**taken)?;
        *taken = true;
        let rx = PacedRx::new(&self.arriving, queue, self.dealt, self.descriptors);
        Some((rx, PacedTx { inner: Arc::clone(&self.leaving.0), queue }))
    }

    fn pool(&mut self, _queue: u16) -> MemPool {
        self.pool.clone()
    }

    fn frames(&self) -> Option<usize> {
        Some(self.pool.limit())
    }

    fn link_up(&self) -> bool {
        true
    }

    fn stats(&self) -> PortStats {
        let (rx, tx) =
            (self.arriving.total(0..self.arriving.buckets()), self.leaving.total(0..self.leaving.buckets()));
        PortStats {
            rx_packets: rx.arrived - rx.missed - rx.down,
            rx_missed: rx.missed + rx.down,
            tx_packets: tx.sent,
            ..PortStats::default()
        }
    }

    fn redirection(&mut self) -> Option<Box<dyn Redirection>> {
        let inner = Arc::clone(&self.arriving.0);
        (!self.fixed).then(|| -> Box<dyn Redirection> {
            Box::new(PacedRedirection { inner, queues: self.info.queues, settles: 0 })
        })
    }
}

/// A handle on a traffic's redirection table.
#[derive(Debug)]
struct PacedRedirection<C> {
    inner: Arc<Inner<C>>,
    queues: u16,
    /// Ticks from the start.
    settles: u64,
}

impl<C: Ticks> Redirection for PacedRedirection<C> {
    fn redirect(&mut self, entries: &[u16], queue: u16) -> Result<(), RedirectError> {
        if queue >= self.queues {
            return Err(RedirectError::Queue { queue, queues: self.queues });
        }
        let cut = self.inner.horizon.redirect(entries, queue)?;
        let margin = (SETTLES * self.inner.clock.hz() as f64) as u64 + 1;
        self.settles = if cut == 0 { 0 } else { self.inner.schedule.due(cut) + margin };
        Ok(())
    }

    fn settled(&mut self) -> bool {
        self.inner.since_start().is_none_or(|now| now >= self.settles)
    }
}
