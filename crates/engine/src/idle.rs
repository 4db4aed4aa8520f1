//! What a worker does when there is nothing to do.

use std::time::Duration;

/// How a worker waits for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePolicy {
    /// Poll without pause: least latency, a whole core. For cores that the worker has to itself.
    Busy,
    /// Poll, then yield, then sleep for at most this long between polls: for machines that do other work too.
    Adaptive {
        /// Longest sleep; a packet that arrives at an idle worker waits at most this long (plus the kernel's timer slack).
        sleep: Duration,
    },
}

impl Default for IdlePolicy {
    fn default() -> Self {
        Self::Adaptive { sleep: Duration::from_micros(50) }
    }
}

/// Empty polls in a row before a worker yields, and before it sleeps.
const POLLS_BEFORE_YIELD: u32 = 256;
const POLLS_BEFORE_SLEEP: u32 = 2_048;

/// How long a worker that nobody sends packets to sleeps, if nobody wakes it.
const SLEEP: Duration = Duration::from_millis(5);

/// Counts empty polls and waits accordingly.
#[derive(Debug)]
pub struct Idle {
    policy: IdlePolicy,
    empty: u32,
}

impl Idle {
    /// A worker that has just been busy.
    pub const fn new(policy: IdlePolicy) -> Self {
        Self { policy, empty: 0 }
    }

    /// The last poll found something.
    pub fn busy(&mut self) {
        self.empty = 0;
    }

    /// Whether nothing was found for so long that a worker may sleep.
    pub const fn is_long(&self) -> bool {
        self.empty > POLLS_BEFORE_SLEEP
    }

    /// Others have to act first, and will at once if they have a processor: gives them this one, if it may be shared.
    pub fn pause(&self) {
        match self.policy {
            IdlePolicy::Busy => std::hint::spin_loop(),
            IdlePolicy::Adaptive { .. } => std::thread::yield_now(),
        }
    }

    /// There is nothing to poll: sleeps whatever the policy, until it is unparked or some milliseconds have passed.
    pub fn sleep(&mut self) {
        std::thread::park_timeout(SLEEP);
    }

    /// The last poll found nothing: wait as the policy says. An unparked thread returns at once. Says whether this was sleep.
    pub fn wait(&mut self) -> bool {
        self.empty = self.empty.saturating_add(1);
        match self.policy {
            IdlePolicy::Adaptive { sleep } if self.empty > POLLS_BEFORE_SLEEP => {
                std::thread::park_timeout(sleep);
                return true;
            }
            IdlePolicy::Adaptive { .. } if self.empty > POLLS_BEFORE_YIELD => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
        false
    }
}
