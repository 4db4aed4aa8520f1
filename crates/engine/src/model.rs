//! How packets come to the worker that owns their shard: by the NIC's hash, or by workers that do nothing else.

use crate::placement::{InvalidWorkerCount, MAX_WORKERS};
use std::ops::Range;

/// The execution model: who polls, who owns shards, who sends. Everything else is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Each worker polls its own queue of each port, owns shards, and sends. A packet that reaches another worker than its shard's owner is
    /// handed off.
    #[default]
    RunToCompletion,
    /// The first workers are dispatchers: they poll all queues, and hand users' packets to the owners of their shards. What is
    /// not a user's packet (ARP, ICMP, GTP-U echo, fragments) they serve themselves.
    Pipeline {
        /// How many; at least one other worker has to be left.
        dispatchers: usize,
        /// Who sends what owners have processed.
        sender: Sender,
    },
}

/// Who sends, in a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sender {
    /// The worker that has processed the packet, through its own transmit queue.
    #[default]
    Owner,
    /// A dispatcher, which gets it back through a ring: for ports with few transmit queues.
    Dispatcher,
}

impl Model {
    /// The workers that may own shards.
    pub(crate) fn owners(self, workers: usize) -> Result<Range<usize>, InvalidWorkerCount> {
        let first = match self {
            Self::RunToCompletion => 0,
            Self::Pipeline { dispatchers, .. } => dispatchers.max(1),
        };
        if first >= workers || workers > MAX_WORKERS {
            return Err(InvalidWorkerCount { workers, least: first + 1 });
        }
        Ok(first..workers)
    }

    /// Who polls the receive queue that has this worker's number.
    pub(crate) const fn poller(self, worker: usize) -> usize {
        match self {
            Self::RunToCompletion => worker,
            Self::Pipeline { dispatchers: 0 | 1, .. } => 0,
            Self::Pipeline { dispatchers, .. } => worker % dispatchers,
        }
    }

    /// Who sends for this worker, if it does not itself.
    pub(crate) const fn sender(self, worker: usize) -> Option<usize> {
        match self {
            Self::Pipeline { dispatchers, sender: Sender::Dispatcher } => {
                let dispatchers = if dispatchers == 0 { 1 } else { dispatchers };
                if worker < dispatchers { None } else { Some(worker % dispatchers) }
            }
            _ => None,
        }
    }
}
