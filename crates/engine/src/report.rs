//! What a worker tells of itself: all its counters, published now and then, and how busy it is.

use crate::egress::ClassCounters;
use crate::published::Published;
use counters::Words;
use datapath::offload::OffloadReport;
use datapath::{Counters, SliceTraffic, StageCosts};
use io::steering::Duty;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tables::Nanos;

/// A worker's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: usize,
    /// The moment.
    pub at: Nanos,
    /// It has ended, and this is its last.
    pub ended: bool,
    /// The core it is pinned to.
    pub core: Option<usize>,
    /// What happened to packets.
    pub counters: Counters,
    /// Frames that it may hold back at a time, see [`Counters::held`].
    pub held_limit: usize,
    /// Shards that it owns.
    pub shards: usize,
    /// Sessions in those shards.
    pub sessions: usize,
    /// How its time went.
    pub load: Load,
    /// What each stage of a burst cost, while somebody asked.
    pub stages: StageCosts,
    /// What packets of each port cost: receive, process, send.
    pub ports: Vec<PortLoad>,
    /// Its flows in hardware, if it may have any.
    pub offload: Option<OffloadReport>,
    /// What became of look-ups that a device was asked for, if it has one.
    pub lookups: Option<LookupCounters>,
    /// What waited to be sent, by port and by class in the order of the [plan](crate::egress::Plan).
    pub egress: Vec<Vec<ClassCounters>>,
    /// Receive queues that ports steer to ahead of RSS, in the order in which they are polled.
    pub steered: Vec<SteeredLoad>,
    /// What it counted of each slice: uplink, downlink. Of many slices, up to 64 ms after all others: they are written down in parts.
    pub slices: Vec<[SliceTraffic; 2]>,
}

// `Worker::begin_publication` writes the same.
counters::words!(WorkerReport {
    worker,
    at,
    ended,
    core,
    counters,
    held_limit,
    shards,
    sessions,
    load,
    stages,
    ports,
    offload,
    lookups,
    egress,
    steered,
    slices,
});

impl WorkerReport {
    /// Packets received from ports on another NUMA node: each crossed between nodes.
    pub fn remote_packets(&self) -> u64 {
        self.ports.iter().filter(|port| port.far).map(|port| port.packets).sum()
    }
}

/// What came through a receive queue that a port steers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeredLoad {
    /// The port's number.
    pub port: u16,
    /// What the queue is for.
    pub duty: Duty,
    /// Packets received.
    pub packets: u64,
}

counters::words!(SteeredLoad { port, duty, packets });

/// What the packets of one port cost a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLoad {
    /// Packets received.
    pub packets: u64,
    /// Nanoseconds spent on the bursts that they came in.
    pub nanos: u64,
    /// The port is on another NUMA node than the worker ([`crate::EngineConfig::far`]).
    pub far: bool,
}

counters::words!(PortLoad { packets, nanos, far });

counters::counters! {
    /// How a worker's time went, since it started.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Load {
        /// Rounds of its loop.
        pub polls: u64 = "polls", Counter;
        /// Rounds that found nothing to do.
        pub empty_polls: u64 = "empty-polls", Counter;
        /// Time spent in rounds that found something.
        pub busy_nanos: u64 = "busy", Counter of Nanoseconds;
        /// Time spent asleep, its processor free for others. What is left of the total is polling in vain.
        pub asleep_nanos: u64 = "asleep", Counter of Nanoseconds;
        /// Time since its start.
        pub total_nanos: u64 = "total", Counter of Nanoseconds;
        /// Packets passed to other workers, to be processed or sent.
        pub handed_off: u64 = "handed-off", Counter of Packets;
        /// Packets taken from other workers.
        pub taken_over: u64 = "taken-over", Counter of Packets;
        /// Changes of a port's redirection table that the port refused: those shards' packets are handed off.
        pub redirections_refused: u64 = "redirections-refused", Counter;
        /// Reports lost because control did not take them for a long time.
        pub events_lost: u64 = "events-lost", Counter;
    }
}

counters::counters! {
    /// What became of bursts whose look-ups were handed to a device (docs/device-lookups.md).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LookupCounters {
        /// Bursts whose look-ups were handed over.
        pub asked: u64 = "asked", Counter;
        /// Of these, bursts whose answers came in time.
        pub answered: u64 = "answered", Counter;
        /// Bursts that were looked up here because they had waited for long enough.
        pub late: u64 = "late", Counter;
        /// Bursts that were looked up here because an order, a timer or a move was due, or the load was gone.
        pub interrupted: u64 = "interrupted", Counter;
        /// Bursts that the device had no room for.
        pub refused: u64 = "refused", Counter;
        /// Times that the device was left alone for a while, because it was late again and again.
        pub pauses: u64 = "pauses", Counter;
        /// Devices that are lost.
        pub lost: u64 = "lost", Gauge;
        /// How long those that were answered waited.
        pub waited: u64 = "waited", Counter of Nanoseconds;
        /// Look-ups that were handed over.
        pub questions: u64 = "questions", Counter;
        /// Answers that were right.
        pub right: u64 = "right", Counter;
        /// Answers that were out of date or of something else.
        pub wrong: u64 = "wrong", Counter;
        /// Look-ups that the device knew nothing of, and that found something here.
        pub unknown: u64 = "unknown", Counter;
        /// Look-ups that the device knew nothing of, and that found nothing here either.
        pub nothing: u64 = "nothing", Counter;
        /// Results of look-ups that were passed on to the device.
        pub lessons: u64 = "lessons", Counter;
    }
}

/// How busy a worker is, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauge {
    /// Core load factor: how full the bursts are that it receives, 0 to 1, averaged over polls with weight
    /// 1/1,024 for the last. At 1, more arrives than the worker takes.
    pub load: f32,
    /// How full the fullest ring to it is, 0 to 1, sampled each millisecond.
    pub ring: f32,
    /// Grows as long as the worker runs.
    pub heartbeat: u64,
    /// It sleeps until somebody wakes it, or for some milliseconds.
    pub asleep: bool,
}

/// Where a worker writes its [`Gauge`], and anybody reads it without asking.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dial(Arc<Needles>);

/// Floats are kept as their bits.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Needles {
    load: AtomicU32,
    ring: AtomicU32,
    heartbeat: AtomicU64,
    asleep: AtomicBool,
    answered: AtomicU64,
}

impl Dial {
    pub fn show(&self, load: f32, ring: f32) {
        self.0.load.store(load.to_bits(), Ordering::Relaxed);
        self.0.ring.store(ring.to_bits(), Ordering::Relaxed);
        let heartbeat = &self.0.heartbeat;
        heartbeat.store(heartbeat.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Sleep is announced before the rings are looked at for the last time, so that whoever wakes a sleeper after it has put something
    /// into a ring isn't missed.
    pub fn set_asleep(&self, asleep: bool) {
        self.0.asleep.store(asleep, Ordering::SeqCst);
    }

    /// What was published last is later than all orders before the one of this number to publish.
    pub fn set_answered(&self, number: u64) {
        self.0.answered.store(number, Ordering::Release);
    }

    pub fn answered(&self) -> u64 {
        self.0.answered.load(Ordering::Acquire)
    }

    pub fn is_asleep(&self) -> bool {
        self.0.asleep.load(Ordering::SeqCst)
    }

    pub fn read(&self) -> Gauge {
        let float = |bits: &AtomicU32| f32::from_bits(bits.load(Ordering::Relaxed));
        Gauge {
            load: float(&self.0.load),
            ring: float(&self.0.ring),
            heartbeat: self.0.heartbeat.load(Ordering::Relaxed),
            asleep: self.is_asleep(),
        }
    }
}

/// What each worker has published last, for any thread. To read it takes nothing from the workers and waits for none; what a worker
/// published before it died or ended stays.
#[derive(Clone, Debug)]
pub struct Snapshots {
    workers: Arc<[(Published, Dial)]>,
}

impl Snapshots {
    pub(crate) fn new(workers: impl Iterator<Item = (Published, Dial)>) -> Self {
        Self { workers: workers.collect() }
    }

    /// All workers' counters, by number: each of one moment, in the last tenth of a second if the worker runs.
    pub fn read(&self) -> Vec<WorkerReport> {
        self.workers.iter().filter_map(|(published, _)| report(published)).collect()
    }

    /// How busy each worker is.
    pub fn gauges(&self) -> Vec<Gauge> {
        self.workers.iter().map(|(_, dial)| dial.read()).collect()
    }
}

/// The last one that was published.
pub(crate) fn report(published: &Published) -> Option<WorkerReport> {
    WorkerReport::take(&mut published.read()?.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapath::offload::OffloadReport;
    use datapath::{Reason, SliceTraffic, Traffic};

    #[test]
    fn a_report_is_passed_on_whole() {
        let mut counters = Counters { received: 7, ..Counters::default() };
        counters.drops.add(Reason::FarDrop, 3);
        counters.nat.resize(2, datapath::nat::PoolCounters::default());
        let traffic = Traffic { packets: 3, bytes: 400 };
        let report = WorkerReport {
            worker: 3,
            at: Nanos(17),
            ended: true,
            core: Some(5),
            counters,
            held_limit: 9,
            shards: 8,
            sessions: 1_000_000,
            load: Load { polls: 4, ..Load::default() },
            stages: StageCosts { bursts: 2, ..StageCosts::default() },
            ports: vec![PortLoad { packets: 1, nanos: 2, far: true }, PortLoad::default()],
            offload: Some(OffloadReport::default()),
            lookups: Some(LookupCounters { asked: 3, ..LookupCounters::default() }),
            slices: vec![[SliceTraffic { red: traffic, ..SliceTraffic::default() }; 2]],
            egress: vec![vec![ClassCounters { queued: traffic, ..ClassCounters::default() }; 3], Vec::new()],
            steered: [Duty::Control, Duty::Group(2)]
                .map(|duty| SteeredLoad { port: 1, duty, packets: 6 })
                .into(),
        };
        let mut words = Vec::new();
        report.put(&mut words);
        assert_eq!(WorkerReport::take(&mut words.as_slice()), Some(report));
    }

    #[test]
    fn numbers_are_named_added_and_passed_on() {
        counters::conformance::check::<Load>();
        counters::conformance::check::<LookupCounters>();
        counters::conformance::check::<ClassCounters>();
    }
}
