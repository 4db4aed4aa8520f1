//! A port at which packets arrive at a steady rate while something else is measured.
//!
//! **Problem.** What N4 or questions take from forwarding, and forwarding from them, shows only while packets come. A generator on a
//! thread of its own would take a processor from all of them.
//!
//! **Model.** As in [`arrivals`](crate::arrivals) nobody sends: the worker that polls the queue finds what was due, and what found the queue full is missed.
//! Whose packets they are, and at which rate they come, is said while the UPF runs ([`Traffic`]): its sessions are established first.
//!
//! Where others run on the worker's core, its queue overflows meanwhile, and that says nothing of the worker. So what is missed then is told apart, by
//! the processor's time that its thread had.

use crate::arrivals::{Arrivals, DESCRIPTORS};
use io::mem::{FrameSize, MemFrame, MemPool};
use io::replay::{ReplayRx, SinkTx, Stream};
use io::{Port, PortInfo, PortStats, RxQueue};
use packet::MacAddr;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tables::Nanos;
use tables::clock::Tsc;

/// Packets wait in so many buffers between being written and being received: they have left the core's caches by then.
const BUFFERS: usize = 1 << 15;

/// What arrives at one port. Clones are handles on the same.
#[derive(Clone, Debug)]
pub struct Traffic(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Tsc,
    stream: OnceLock<Stream>,
    /// Packets a second, as the bits of a float.
    rate: AtomicU64,
    came: AtomicU64,
    missed: AtomicU64,
    missed_away: AtomicU64,
}

impl Traffic {
    /// None yet.
    pub fn new(clock: Tsc) -> Self {
        Self(Arc::new(Shared {
            clock,
            stream: OnceLock::new(),
            rate: AtomicU64::new(0),
            came: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            missed_away: AtomicU64::new(0),
        }))
    }

    /// Whose packets come. Only the first call counts.
    pub fn set_stream(&self, stream: Stream) {
        let _ = self.0.stream.set(stream);
    }

    /// From now on so many come in a second.
    pub fn set_rate(&self, per_second: f64) {
        self.0.rate.store(per_second.to_bits(), Ordering::Relaxed);
    }

    /// Packets that have come.
    pub fn came(&self) -> u64 {
        self.0.came.load(Ordering::Relaxed)
    }

    /// Of those, the ones that found the queue full.
    pub fn missed(&self) -> u64 {
        self.0.missed.load(Ordering::Relaxed)
    }

    /// Of these, the ones that came while the worker's thread was kept from running, or made up for it.
    pub fn missed_away(&self) -> u64 {
        self.0.missed_away.load(Ordering::Relaxed)
    }
}

/// When a thread was kept from running.
#[derive(Clone, Copy, Debug, Default)]
struct Attendance {
    /// When it was looked at last, and what processor's time the thread had had by then; in nanoseconds.
    looked: (u64, u64),
    /// Until then the thread makes up for what it was kept from.
    late_until: u64,
}

impl Attendance {
    /// More often isn't looked: it is a system call.
    const LOOKS: u64 = 500_000;
    /// For less than this, in nanoseconds, a queue needn't overflow.
    const SHORT: u64 = 200_000;
    /// A worker at half of its load makes up for a pause in as much time again; twice that is enough.
    const MAKES_UP: u64 = 2;

    fn look(&mut self, now: u64) {
        if now < self.looked.0 + Self::LOOKS {
            return;
        }
        let time = clock_gettime(ClockId::ThreadCPUTime);
        self.update(now, time.tv_sec as u64 * Nanos::SECOND + time.tv_nsec as u64);
    }

    fn update(&mut self, now: u64, own: u64) {
        let away = (now - self.looked.0).saturating_sub(own - self.looked.1);
        if self.looked != (0, 0) && away > Self::SHORT {
            self.late_until = now + Self::MAKES_UP * away;
        }
        self.looked = (now, own);
    }
}

/// The port's receive queue.
#[derive(Debug)]
pub struct SteadyRx {
    shared: Arc<Shared>,
    source: Option<ReplayRx>,
    /// As it was when `arrivals` began.
    rate: u64,
    arrivals: Option<Arrivals>,
    attendance: Attendance,
    taken: Vec<std::ops::Range<u64>>,
}

impl SteadyRx {
    /// At another rate packets are numbered anew. What waits is served first, so that none is forgotten.
    fn follow_the_rate(&mut self) {
        let rate = self.shared.rate.load(Ordering::Relaxed);
        if rate == self.rate || self.arrivals.as_ref().is_some_and(|arrivals| arrivals.waiting() > 0) {
            return;
        }
        let per_second = f64::from_bits(rate);
        if per_second > 0.0 {
            let Some(stream) = self.shared.stream.get() else { return };
            self.source.get_or_insert_with(|| ReplayRx::new(stream.clone()).cold(BUFFERS)).fill();
        }
        self.rate = rate;
        let begin = self.shared.clock.ticks();
        self.arrivals =
            (per_second > 0.0).then(|| Arrivals::new(begin, per_second, &self.shared.clock, DESCRIPTORS));
    }
}

impl RxQueue for SteadyRx {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let changes = self.rate != self.shared.rate.load(Ordering::Relaxed);
        if changes {
            self.follow_the_rate();
        }
        let (Some(arrivals), Some(source)) = (&mut self.arrivals, &mut self.source) else { return 0 };
        if self.rate == self.shared.rate.load(Ordering::Relaxed) {
            let (came, missed) = (arrivals.came(), arrivals.missed());
            let now = self.shared.clock.now().0;
            self.attendance.look(now);
            arrivals.advance(self.shared.clock.ticks());
            // Only this queue writes.
            let add =
                |sum: &AtomicU64, more| sum.store(sum.load(Ordering::Relaxed) + more, Ordering::Relaxed);
            add(&self.shared.came, arrivals.came() - came);
            let missed = arrivals.missed() - missed;
            add(&self.shared.missed, missed);
            if now < self.attendance.late_until {
                add(&self.shared.missed_away, missed);
            }
        }
        let n = arrivals.take(max, &mut self.taken);
        self.taken.clear();
        if n == 0 { 0 } else { source.rx_burst(into, n) }
    }

    fn quarters(&mut self) -> Option<u8> {
        Some(self.arrivals.as_ref().map_or(0, Arrivals::quarters))
    }
}

/// A port for one worker.
#[derive(Debug)]
pub struct SteadyPort {
    info: PortInfo,
    pair: Option<(SteadyRx, SinkTx)>,
    pool: MemPool,
}

impl SteadyPort {
    /// What comes is said by `traffic`; what leaves is counted and forgotten.
    pub fn new(name: &str, mac: MacAddr, mtu: u16, traffic: &Traffic) -> Self {
        let shared = Arc::clone(&traffic.0);
        let rx = SteadyRx {
            shared,
            source: None,
            rate: 0,
            arrivals: None,
            attendance: Attendance::default(),
            taken: Vec::new(),
        };
        let info = PortInfo { name: name.into(), mac, mtu, queues: 1, driver: "steady".into() };
        let pool = MemPool::new(8_192, FrameSize::for_mtu(mtu));
        Self { info, pair: Some((rx, SinkTx::new())), pool }
    }
}

impl Port for SteadyPort {
    type Frame = MemFrame;
    type Rx = SteadyRx;
    type Tx = SinkTx;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn take_queue(&mut self, queue: u16) -> Option<(SteadyRx, SinkTx)> {
        (queue == 0).then(|| self.pair.take()).flatten()
    }

    fn pool(&mut self, _queue: u16) -> MemPool {
        self.pool.clone()
    }

    fn link_up(&self) -> bool {
        true
    }

    /// What comes and leaves is counted by traffic and worker.
    fn stats(&self) -> PortStats {
        PortStats::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::path;
    use io::BURST;

    #[test]
    fn who_was_kept_from_running_is_late_for_as_long_again() {
        let mut attendance = Attendance::default();
        // It has had more of the processor before than there was time since the clock's start.
        attendance.update(1_000_000, 7_000_000);
        assert_eq!(attendance.late_until, 0);
        // All the time; then for half of it, which is three milliseconds.
        attendance.update(2_000_000, 8_000_000);
        assert_eq!(attendance.late_until, 0);
        attendance.update(8_000_000, 11_000_000);
        assert_eq!(attendance.late_until, 8_000_000 + 2 * 3_000_000);
    }

    #[test]
    fn what_came_is_taken_or_missed_at_every_rate() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let traffic = Traffic::new(clock);
        let mut port = SteadyPort::new("n3", path::N3_MAC, path::MTU, &traffic);
        let (mut rx, _) = port.take_queue(0).unwrap();
        assert!(port.take_queue(0).is_none());
        let (mut frames, mut taken) = (Vec::new(), 0);
        let mut poll = |rx: &mut SteadyRx| {
            frames.clear();
            rx.rx_burst(&mut frames, BURST) as u64
        };
        // Nobody has said whose packets come.
        traffic.set_rate(1e6);
        assert_eq!(poll(&mut rx), 0);
        let nobody = path::Subscriber { teid: packet::Teid(1), ue: std::net::Ipv4Addr::UNSPECIFIED };
        traffic.set_stream(path::stream(true, [(nobody, 1)].into_iter()).unwrap());
        while traffic.missed() == 0 {
            traffic.set_rate(1e9);
            taken += poll(&mut rx);
        }
        traffic.set_rate(0.0);
        loop {
            let more = poll(&mut rx);
            taken += more;
            if more == 0 {
                break;
            }
        }
        assert_eq!(traffic.came(), taken + traffic.missed());
        let came = traffic.came();
        assert_eq!((poll(&mut rx), traffic.came()), (0, came), "it stands still");
        traffic.set_rate(1e6);
        while traffic.came() == came {
            poll(&mut rx);
        }
    }
}
