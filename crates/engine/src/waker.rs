//! How a worker wakes the control thread: an eventfd that is written only when control sleeps.
//!
//! The protocol is the usual one for a consumer that blocks: control announces that it is going to sleep, then looks at
//! the rings once more, then blocks. A worker pushes first and looks at the announcement afterwards. With sequentially
//! consistent accesses one of the two sees the other, so that no event waits for a time-out.

use crate::report::Dial;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Shared by all workers and the control thread.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
    asleep: AtomicBool,
}

impl Waker {
    /// Errors: the process is out of file descriptors.
    pub fn new() -> std::io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, asleep: AtomicBool::new(false) })
    }

    /// Control: "I am about to block". Look at the rings once more afterwards.
    pub fn announce_sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Control: "I am awake"; forgets wake-ups so far.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        let mut count = [0; 8];
        // WouldBlock: nobody woke us. Anything else can't happen to an eventfd.
        let _ = rustix::io::read(&self.event, &mut count);
    }

    /// Worker: wakes control if it sleeps. Call it after pushing.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // WouldBlock: the counter is full of wake-ups already.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// The workers' threads, for whoever has something for one that sleeps, and whether they are all to end.
#[derive(Clone, Debug)]
pub(crate) struct Roster {
    threads: Arc<[(Dial, OnceLock<Thread>)]>,
    ending: Arc<AtomicBool>,
}

impl Roster {
    pub fn new(workers: usize) -> Self {
        let threads = (0..workers).map(|_| (Dial::default(), OnceLock::new())).collect();
        Self { threads, ending: Arc::default() }
    }

    /// Control: all are about to be told to stop. Those that end first are not dead.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Whether a worker that is not there has been told to end.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// The worker's own dial.
    pub fn dial(&self, worker: usize) -> Dial {
        self.threads.get(worker).map(|(dial, _)| dial.clone()).unwrap_or_default()
    }

    /// The calling thread is this worker.
    pub fn enter(&self, worker: usize) {
        if let Some((_, thread)) = self.threads.get(worker) {
            let _ = thread.set(std::thread::current());
        }
    }

    /// Wakes all that sleep. Call it after something was put into their rings.
    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for (dial, thread) in self.threads.iter() {
            if let Some(thread) = thread.get()
                && dial.is_asleep()
            {
                thread.unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn readable(waker: &Waker) -> bool {
        let mut fds = [PollFd::new(waker, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn wakes_only_a_sleeper_and_only_once() {
        let waker = Waker::new().unwrap();
        waker.wake();
        assert!(!readable(&waker), "nobody slept");
        waker.announce_sleep();
        waker.wake();
        waker.wake();
        assert!(readable(&waker));
        waker.awake();
        assert!(!readable(&waker));
    }

    #[test]
    fn no_wake_up_is_lost() {
        let waker = std::sync::Arc::new(Waker::new().unwrap());
        let (mut producer, mut consumer) = rtrb::RingBuffer::<u32>::new(4);
        let other = waker.clone();
        let pushing = std::thread::spawn(move || {
            for value in 0..20_000 {
                while producer.push(value).is_err() {
                    std::thread::yield_now();
                }
                other.wake();
            }
        });
        let mut expected = 0;
        while expected < 20_000 {
            waker.announce_sleep();
            if consumer.is_empty() {
                let mut fds = [PollFd::new(&*waker, PollFlags::IN)];
                let ten_seconds = Timespec { tv_sec: 10, tv_nsec: 0 };
                assert_eq!(poll(&mut fds, Some(&ten_seconds)).unwrap(), 1, "slept through a push");
            }
            waker.awake();
            while let Ok(value) = consumer.pop() {
                assert_eq!(value, expected);
                expected += 1;
            }
        }
        pushing.join().unwrap();
    }
}
