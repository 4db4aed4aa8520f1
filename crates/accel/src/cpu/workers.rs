//! Threads that do batches.
//!
//! They share one queue, so that a batch that takes long holds nobody up but the thread that has it. The queue is a list under a lock: a batch
//! of 32 packets at least costs a hundred times what the lock does. A thread that finds nothing looks again for a while before it sleeps,
//! because to wake one takes longer than most batches.

use super::{Executor, limits};
use crate::copies::{OnHost, Shelf, TableId};
use crate::device::{Clock, Completion, Device, Failure, Limits, Refusal, Rejected, Times};
use crate::task::Batch;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tables::Nanos;
use tables::image::{Changes, Image};

/// How a device of threads is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Threads; one at least is started.
    pub threads: usize,
    /// Batches in flight.
    pub in_flight: usize,
    /// Nanoseconds for which an idle thread looks for work before it sleeps.
    pub look_for: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { threads: 1, in_flight: 64, look_for: 50_000 }
    }
}

/// A batch, when it was submitted, and of which version its table's copy was then.
type Waiting = (Batch, Nanos, Option<u64>);

#[derive(Debug, Default)]
struct Queues {
    waiting: VecDeque<Waiting>,
    done: Vec<(Completion, Option<u64>)>,
    /// Threads that sleep.
    asleep: usize,
    stop: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queues: Mutex<Queues>,
    work: Condvar,
}

impl Shared {
    /// Nothing that is done under the lock can leave it half done, so a panic elsewhere is no reason to give up.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch, or none if there is an end.
    fn next(&self, clock: &impl Clock, look_for: u64) -> Option<Waiting> {
        let since = clock.now();
        loop {
            let mut queues = self.lock();
            loop {
                if queues.stop {
                    return None;
                }
                if let Some(next) = queues.waiting.pop_front() {
                    return Some(next);
                }
                if clock.now().since(since) < look_for {
                    break;
                }
                queues.asleep += 1;
                queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
                queues.asleep -= 1;
            }
            drop(queues);
            std::thread::yield_now();
        }
    }
}

/// Threads of this processor, as a device.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    limits: Limits,
    in_flight: usize,
    copies: OnHost,
}

impl Workers {
    /// Starts the threads; each gets a clock to say when it did what.
    pub fn start<C: Clock + Clone + 'static>(settings: Settings, clock: &C) -> Result<Self, Failure> {
        let mut workers = Self {
            shared: Arc::default(),
            threads: Vec::new(),
            limits: limits(settings.in_flight),
            in_flight: 0,
            copies: OnHost::default(),
        };
        for at in 0..settings.threads.max(1) {
            let (shared, clock) = (Arc::clone(&workers.shared), clock.clone());
            let shelf = workers.copies.shelf();
            let thread = std::thread::Builder::new()
                .name(format!("accel-cpu{at}"))
                .spawn(move || serve(&shared, &clock, settings.look_for, &shelf))
                .map_err(|error| Failure::Call { call: "thread", why: error.to_string() })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }
}

fn serve(shared: &Shared, clock: &impl Clock, look_for: u64, shelf: &Shelf) {
    let mut executor = Executor::new().with(shelf.clone());
    while let Some((mut batch, submitted, version)) = shared.next(clock, look_for) {
        let started = clock.now().max(submitted);
        let outcome = catch_unwind(AssertUnwindSafe(|| executor.execute(&mut batch))).unwrap_or_else(|_| {
            // Whatever it had in hand, another has not.
            executor = Executor::new().with(shelf.clone());
            Err(Failure::Panicked)
        });
        let times = Times { submitted, started, ended: clock.now().max(started) };
        shared.lock().done.push((Completion { batch, outcome, times, steady: true }, version));
    }
}

impl Device for Workers {
    fn name(&self) -> &'static str {
        "cpu-workers"
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        if let Err(why) = self.accepts(&batch) {
            return Err(Rejected { batch, why });
        }
        if self.in_flight >= self.limits.in_flight {
            return Err(Rejected { batch, why: Refusal::Full });
        }
        let version = self.copies.versions().of_task(batch.task());
        let mut queues = self.shared.lock();
        queues.waiting.push_back((batch, now, version));
        let wake = queues.asleep > 0;
        drop(queues);
        if wake {
            self.shared.work.notify_one();
        }
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, _now: Nanos, ended: &mut Vec<Completion>) -> usize {
        if self.in_flight == 0 {
            return 0;
        }
        let mut queues = self.shared.lock();
        let found = queues.done.len();
        ended.extend(queues.done.drain(..).map(|(mut completion, version)| {
            completion.steady = version == self.copies.versions().of_task(completion.batch.task());
            completion
        }));
        self.in_flight -= found;
        found
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// What waits comes back; what a thread has in hand is waited for, since it ends.
    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        let waiting = std::mem::take(&mut self.shared.lock().waiting);
        self.in_flight -= waiting.len();
        ended.extend(
            waiting
                .into_iter()
                .map(|(batch, submitted, _)| Completion::failed(batch, Failure::Abandoned, submitted, now)),
        );
        while self.in_flight > 0 {
            if self.poll(now, ended) == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn revive(&mut self, _now: Nanos) -> Result<(), Failure> {
        Ok(())
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.copies.follow(table, image, changes)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of the thread itself has been said by the panic's own message.
            let _ = thread.join();
        }
    }
}
