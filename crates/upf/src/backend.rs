//! Questions to the UPF from other threads: jobs that the control thread carries out between two rounds.

use super::describe_sessions::{self, Search};
use super::{Upf, describe, describe_n4, describe_network, describe_qos, flow_log, mirrors, scale};
use crate::CtlBackend;
use api::{
    CtlError, DropLine, ErrorCode, FlowCounterLine, FlowMarksRequest, GnbLine, MirrorLine, MirrorRequest,
    N4Log, N4LogQuery, N4Status, NatStatus, NeighbourLine, OffloadStatus, PeerLine, PoolLine, PortLine,
    QosReport, RouteLine, ScaleRequest, ScaleStatus, SessionDetail, SessionPage, SessionQuery,
    SessionSelector, SliceLine, StagesLine, Version, WorkerLine,
};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Something for the control thread to do.
pub(super) type Job = Box<dyn FnOnce(&mut Upf) + Send>;

/// A question that is not answered within this time gets an error: longer than [`super::INSPECT_WITHIN`].
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// How long workers are watched for what they do at present.
const RECENT: Duration = Duration::from_secs(1);

/// The control thread's end.
#[derive(Debug)]
pub(super) struct Jobs {
    receiver: Receiver<Job>,
    sender: Sender<Job>,
    event: Arc<OwnedFd>,
}

impl Jobs {
    pub fn new() -> std::io::Result<Self> {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (sender, receiver) = channel();
        Ok(Self { receiver, sender, event })
    }

    pub fn backend(&self) -> Backend {
        Backend { sender: Mutex::new(self.sender.clone()), event: self.event.clone() }
    }

    pub fn next(&self) -> Option<Job> {
        self.receiver.try_recv().ok()
    }

    /// Forgets wake-ups so far.
    pub fn awake(&self) {
        let mut count = [0; 8];
        // WouldBlock: there was none.
        let _ = rustix::io::read(&self.event, &mut count);
    }
}

impl AsFd for Jobs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Another thread's end: what the control socket asks.
#[derive(Debug)]
pub struct Backend {
    sender: Mutex<Sender<Job>>,
    event: Arc<OwnedFd>,
}

impl Backend {
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Upf) -> Result<T, CtlError> + Send + 'static,
    ) -> Result<T, CtlError> {
        let gone = || CtlError::new(ErrorCode::Unavailable, "the UPF is stopping");
        let (answer, answered) = channel();
        let job: Job = Box::new(move |upf| {
            // Whoever asked may have given up.
            let _ = answer.send(question(upf));
        });
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(job).map_err(|_| gone())?;
        // WouldBlock: the counter is full of wake-ups already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        answered.recv_timeout(ANSWER_WITHIN).map_err(|_| gone())?
    }
}

impl Backend {
    /// What the workers have counted so far.
    pub fn reports(&self) -> Result<Vec<engine::WorkerReport>, CtlError> {
        self.ask(describe::reports)
    }
}

impl CtlBackend for Backend {
    fn version(&self) -> Result<Version, CtlError> {
        self.ask(|upf| Ok(describe::version(upf)))
    }

    fn sessions(&self, query: &SessionQuery) -> Result<SessionPage, CtlError> {
        let mut search = Search::new(query.clone());
        while !search.is_done() {
            search = self.ask(move |upf| {
                search.go_on(upf);
                Ok(search)
            })?;
        }
        Ok(search.page)
    }

    fn session(&self, selector: &SessionSelector) -> Result<SessionDetail, CtlError> {
        let SessionSelector { seid, ue, teid, user } = selector.clone();
        let seid = match (seid, ue.is_some() || teid.is_some() || user.is_some()) {
            (Some(seid), _) => seid,
            (None, false) => {
                let message = "which session? Name it by seid, ue, teid or user";
                return Err(CtlError::new(ErrorCode::BadRequest, message));
            }
            (None, true) => {
                let page =
                    self.sessions(&SessionQuery { limit: 2, ue, teid, user, ..SessionQuery::default() })?;
                match page.sessions.as_slice() {
                    [] => return Err(CtlError::new(ErrorCode::NotFound, "there is no such session")),
                    [one] => one.seid,
                    [..] => {
                        let total = page.total;
                        let message =
                            format!("{total} sessions are like that: list them, and choose one by its SEID");
                        return Err(CtlError::new(ErrorCode::BadRequest, message));
                    }
                }
            }
        };
        self.ask(move |upf| describe_sessions::session(upf, pfcp::Seid(seid.0)))
    }

    fn ports(&self) -> Result<Vec<PortLine>, CtlError> {
        self.ask(|upf| Ok((upf.ports)()))
    }

    fn drops(&self) -> Result<Vec<DropLine>, CtlError> {
        self.ask(describe::drops)
    }

    fn workers(&self) -> Result<Vec<WorkerLine>, CtlError> {
        let before = self.ask(describe::loads)?;
        // This thread is the asker's own: nobody else waits.
        std::thread::sleep(RECENT);
        self.ask(move |upf| describe::workers(upf, &before))
    }

    fn stages(&self) -> Result<Vec<StagesLine>, CtlError> {
        self.ask(|upf| {
            describe::count_stages(upf);
            Ok(())
        })?;
        std::thread::sleep(RECENT);
        self.ask(describe::stages)
    }

    fn peers(&self) -> Result<Vec<PeerLine>, CtlError> {
        self.ask(|upf| Ok(describe_n4::peers(upf)))
    }

    fn flows(&self) -> Result<Vec<FlowCounterLine>, CtlError> {
        self.ask(flow_log::counters)
    }

    fn flow_marks(&self, request: &FlowMarksRequest) -> Result<Vec<FlowCounterLine>, CtlError> {
        let request = *request;
        self.ask(move |upf| flow_log::mark(upf, &request))
    }

    fn slices(&self) -> Result<Vec<SliceLine>, CtlError> {
        self.ask(describe::slices)
    }

    fn qos(&self) -> Result<QosReport, CtlError> {
        self.ask(describe_qos::report)
    }

    fn scale(&self, request: &ScaleRequest) -> Result<ScaleStatus, CtlError> {
        let request = *request;
        self.ask(move |upf| scale::handle(upf, request))
    }

    fn nat(&self) -> Result<NatStatus, CtlError> {
        self.ask(describe::nat)
    }

    fn offload(&self) -> Result<OffloadStatus, CtlError> {
        self.ask(describe::offload)
    }

    fn n4(&self) -> Result<N4Status, CtlError> {
        self.ask(|upf| Ok(describe_n4::status(upf)))
    }

    fn n4_log(&self, query: &N4LogQuery) -> Result<N4Log, CtlError> {
        let query = *query;
        self.ask(move |upf| Ok(describe_n4::log(upf, query)))
    }

    fn mirror(&self, request: &MirrorRequest) -> Result<Vec<MirrorLine>, CtlError> {
        let request = request.clone();
        self.ask(move |upf| mirrors::handle(upf, &request))
    }

    fn routes(&self) -> Result<Vec<RouteLine>, CtlError> {
        self.ask(|upf| Ok(describe_network::routes(upf)))
    }

    fn neighbours(&self) -> Result<Vec<NeighbourLine>, CtlError> {
        let mut lines = self.ask(|upf| Ok(describe_network::known(upf)))?;
        // In bites, so that SMFs are answered in between.
        let mut from = Some(0);
        while let Some(place) = from {
            (lines, from) = self.ask(move |upf| {
                let mut lines = lines;
                let next = describe_network::seen(upf, place, &mut lines);
                Ok((lines, next))
            })?;
        }
        Ok(lines.into_values().map(|(_, line)| line).collect())
    }

    fn gnbs(&self) -> Result<Vec<GnbLine>, CtlError> {
        self.ask(|upf| Ok(describe_network::gnbs(upf)))
    }

    fn pools(&self) -> Result<Vec<PoolLine>, CtlError> {
        self.ask(|upf| Ok(describe_network::pools(upf)))
    }

    fn config(&self) -> Result<String, CtlError> {
        let config = self.ask(|upf| Ok(upf.config.clone()))?;
        // On the asker's own thread.
        config.to_toml().map_err(|error| CtlError::new(ErrorCode::Unavailable, error.to_string()))
    }

    fn stop(&self) -> Result<(), CtlError> {
        self.ask(|upf| {
            upf.stopping = true;
            Ok(())
        })
    }
}
