//! What any thread sees of a running UPF without asking its control thread: what workers and control have published, and the
//! configuration. Whoever looks, however often, takes no time from N4.

use super::Upf;
use super::applications::Sums;
use super::bindings::Bindings;
use super::flow_log::FlowLogCounters;
use super::mirrors::Slot;
use super::sums;
use api::{CtlError, ErrorCode, PortLine};
use config::Config;
use counters::Words;
use datapath::Counters;
use datapath::nat::Plan;
use engine::{Gauge, Published, Publisher, Snapshots, WorkerReport};
use n4::N4Counters;
use pfcp::node::NodeCounters;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tables::Nanos;
use tables::clock::Tsc;

/// How often the control thread publishes, whatever it does.
const PUBLISH: u64 = Nanos::SECOND / 10;
/// What it publishes, in words, at most.
const WORDS: usize = 64;
/// [`View::after_now`] waits so long for workers: they publish ten times a second.
const PATIENCE: Duration = Duration::from_secs(1);
/// And looks so often: each time at all that they say.
const NAP: Duration = Duration::from_millis(2);

/// What the control thread has counted at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ControlReport {
    /// The moment.
    pub at: Nanos,
    pub node: NodeCounters,
    pub n4: N4Counters,
    /// Sessions now.
    pub sessions: u64,
    /// Associations now.
    pub associations: u64,
    /// Of the flow log, if there is one.
    pub flow_log: Option<FlowLogCounters>,
    /// Lines of the log of bindings that could not be written.
    pub bindings_lost: u64,
}

counters::words!(ControlReport { at, node, n4, sessions, associations, flow_log, bindings_lost });

/// What there is, as configured and ordered.
#[derive(Debug)]
pub(super) struct Given {
    pub config: Config,
    pub nat: Arc<Plan>,
    /// Mirrors that are in force.
    pub mirrors: Vec<Slot>,
}

/// The control thread's end.
#[derive(Debug)]
pub(super) struct Post {
    publisher: Publisher,
    at: Nanos,
    given: Arc<Mutex<Arc<Given>>>,
}

/// Describes the ports, for one asker at a time. It holds them open, and is the UPF's alone: whoever looks for longer than that runs must
/// not keep a device from being closed.
pub(super) type Ports = Mutex<dyn Fn() -> Vec<PortLine> + Send>;

/// Everybody else's.
#[derive(Clone)]
pub(super) struct View {
    snapshots: Snapshots,
    control: Published,
    given: Arc<Mutex<Arc<Given>>>,
    ports: Weak<Ports>,
    /// What applications' traffic came to.
    pub applications: Sums,
    pub clock: Tsc,
    pub started: Instant,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("snapshots", &self.snapshots).finish_non_exhaustive()
    }
}

impl View {
    pub fn new(snapshots: Snapshots, given: Given, ports: &Arc<Ports>, clock: Tsc) -> (Self, Post) {
        let publisher = Publisher::new(WORDS);
        let given = Arc::new(Mutex::new(Arc::new(given)));
        let view = Self {
            snapshots,
            control: publisher.published(),
            given: given.clone(),
            ports: Arc::downgrade(ports),
            applications: Sums::default(),
            clock,
            started: Instant::now(),
        };
        (view, Post { publisher, at: Nanos(0), given })
    }

    /// What workers have published last.
    pub fn reports(&self) -> Vec<WorkerReport> {
        self.snapshots.read()
    }

    /// All workers' counters.
    pub fn counters(&self) -> Counters {
        sums::counters(&self.reports())
    }

    /// What workers publish from now on: all that has happened before is in it.
    ///
    /// Errors: a worker hangs.
    pub fn after_now(&self) -> Result<Vec<WorkerReport>, CtlError> {
        let (now, until) = (self.clock.now(), Instant::now() + PATIENCE);
        loop {
            let reports = self.reports();
            match reports.iter().find(|report| report.at <= now && !report.ended) {
                None => return Ok(reports),
                Some(late) if Instant::now() > until => {
                    let message = format!("worker {} has told nothing of itself for a second", late.worker);
                    return Err(CtlError::new(ErrorCode::Unavailable, message));
                }
                Some(_) => std::thread::sleep(NAP),
            }
        }
    }

    pub fn gauges(&self) -> Vec<Gauge> {
        self.snapshots.gauges()
    }

    /// What control has published last.
    pub fn control(&self) -> ControlReport {
        let words = self.control.read().unwrap_or_default();
        ControlReport::take(&mut words.as_slice()).unwrap_or_default()
    }

    /// What there is, as configured and ordered.
    pub fn given(&self) -> Arc<Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What there is to say of the ports; of a UPF that has ended, nothing.
    pub fn ports(&self) -> Vec<PortLine> {
        self.ports
            .upgrade()
            .map_or_else(Vec::new, |ports| (ports.lock().unwrap_or_else(PoisonError::into_inner))())
    }
}

impl Upf {
    /// Publishes what control has counted, if it is time; `idle`: or if it has nothing to do.
    pub(super) fn publish(&mut self, now: Nanos, idle: bool) {
        if !idle && now.since(self.post.at) < PUBLISH {
            return;
        }
        let report = ControlReport {
            at: now,
            node: *self.n4.node().counters(),
            n4: *self.n4.counters(),
            sessions: self.n4.store().counts().sessions as u64,
            associations: self.n4.node().peers().count() as u64,
            flow_log: self.flow_log.as_ref().map(FlowLogCounters::of),
            bindings_lost: self.bindings.as_ref().map_or(0, Bindings::lost),
        };
        self.post.publisher.publish(|words| report.put(words));
        self.post.at = now;
    }

    /// What there is has changed.
    pub(super) fn publish_given(&self) {
        let given = Given {
            config: self.config.clone(),
            nat: self.rib.nat().cloned().unwrap_or_default(),
            mirrors: self.mirrors.slots(),
        };
        *self.post.given.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_passed_on_whole() {
        let report = ControlReport {
            at: Nanos(5),
            sessions: 7,
            flow_log: Some(FlowLogCounters { written: 3, lost: 1 }),
            ..ControlReport::default()
        };
        let mut words = Vec::new();
        report.put(&mut words);
        assert_eq!(ControlReport::take(&mut words.as_slice()), Some(report));
    }
}
