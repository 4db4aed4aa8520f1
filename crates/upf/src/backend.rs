//! Questions to the UPF from other threads: jobs that the control thread carries out between two rounds.

use super::Upf;
use super::server::Responder;
use super::view::View;
use api::{CtlError, ErrorCode, Request, Told};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Something for the control thread to do.
pub(super) type Job = Box<dyn FnOnce(&mut Upf) + Send>;

/// A question that is not answered within this time gets an error.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Orders are carried out within microseconds, or a worker hangs.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

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

    pub fn backend(&self, view: View) -> Backend {
        Backend { sender: Mutex::new(self.sender.clone()), event: self.event.clone(), view }
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

/// Another thread's end: what the control socket asks. What is counted it sees by itself; the rest it asks the control thread. How each question is answered is said where its topic is ([`Answers`](api::Answers)).
#[derive(Debug)]
pub struct Backend {
    sender: Mutex<Sender<Job>>,
    event: Arc<OwnedFd>,
    pub(super) view: View,
}

impl Backend {
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Upf) -> Result<T, CtlError> + Send + 'static,
    ) -> Result<T, CtlError> {
        let gone = || CtlError::new(ErrorCode::Unavailable, "the UPF is stopping");
        let (answer, answered) = channel();
        // Whoever comes first: the control thread does it, or the asker gives it up.
        let settled = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&settled);
        let job: Job = Box::new(move |upf| {
            if !begins.swap(true, Ordering::AcqRel) {
                // The asker waits.
                let _ = answer.send(question(upf));
            }
        });
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(job).map_err(|_| gone())?;
        // WouldBlock: the counter is full of wake-ups already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        match answered.recv_timeout(ANSWER_WITHIN) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) if !settled.swap(true, Ordering::AcqRel) => {
                let message = "the UPF is too busy to answer: nothing was done";
                Err(CtlError::new(ErrorCode::Unavailable, message))
            }
            // It is being done just now.
            Err(RecvTimeoutError::Timeout) => answered.recv().map_err(|_| gone())?,
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }
}

impl Backend {
    /// What the workers have counted, with all that has happened until now: waits until each has published. For tests, and for whoever
    /// has to be exact.
    ///
    /// Errors: a worker hangs.
    pub fn reports(&self) -> Result<Vec<engine::WorkerReport>, CtlError> {
        self.view.after_now()
    }

    /// Waits until all workers have carried out what they were ordered. One that doesn't is told of elsewhere, and not waited for for
    /// long.
    pub(super) fn settle(&self) -> Result<(), CtlError> {
        let fence = self.ask(|upf| {
            let fence = upf.engine.fence();
            upf.engine.flush();
            Ok(fence)
        })?;
        let until = Instant::now() + SETTLED_WITHIN;
        while Instant::now() < until && !self.ask(move |upf| Ok(upf.engine.passed(fence)))? {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }
}

impl Responder for Backend {
    fn respond(&self, request: Request) -> Result<Told, CtlError> {
        request.answered(self)
    }
}
