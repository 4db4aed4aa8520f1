//! What is left of a worker that panicked, and who gets it.
//!
//! A panic on the packet path is a bug, and a packet that causes one comes again. Nevertheless a bug in one worker should not cost the
//! sessions of all its shards: they are whole memory, in a table that the panic has unwound past. So the dying thread packs its shards
//! and its receive queues, and control names an heir. A shard that is inherited and whose new owner dies too is not passed on a third
//! time, but begins anew without sessions: if one of its packets kills workers, that ends with the second.
//!
//! Where there is no heir (the default is one worker), nothing is inherited, and the process ends ([`crate::Engine::lost`]). A new thread
//! with the old shards is no way out: beside the shards a worker has tables that the panic may have left half changed (directory,
//! neighbours, far ends' templates, fragments, what it asked of the NIC), and an heir brings its own; to make them anew,
//! control would have to tell all it has told since the start. A supervisor's restart takes a second and leaves nothing half done, and SMFs
//! see it by the Recovery Time Stamp.

use crate::mesh::Boxed;
use crate::records::NAP;
use crate::worker::{Answer, Receive, Steered, Worker};
use datapath::Reason;
use io::Port;
use session::ShardId;
use std::sync::{Arc, Mutex, PoisonError};
use tables::Nanos;

/// One dead worker's.
pub(crate) struct Estate<P: Port> {
    worker: usize,
    shards: Vec<Boxed<P::Frame>>,
    queues: Vec<Receive<P::Rx>>,
    steered: Vec<Steered<P::Rx>>,
}

/// Of all workers that died and have not been inherited from yet.
pub(crate) struct Estates<P: Port>(Arc<Mutex<Vec<Estate<P>>>>);

impl<P: Port> Default for Estates<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P: Port> Clone for Estates<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Port> Worker<P> {
    /// After a panic: counts what is lost, and leaves the rest to an heir.
    pub(crate) fn bequeath(&mut self) {
        let waiting = self.under_way.as_mut().map_or(0, |under_way| under_way.abandon());
        self.datapath.counters_mut().lose_under_way(Reason::LostWithWorker, waiting as u64);
        let mut shards = self.leave_rings();
        shards.append(&mut self.packed);
        shards.extend(ShardId::all().filter_map(|id| self.datapath.release(id)));
        shards.retain(|shard| !self.owners.was_inherited(shard.id()));
        let estate = Estate {
            worker: self.number,
            shards,
            queues: std::mem::take(&mut self.queues),
            steered: std::mem::take(&mut self.steered),
        };
        self.estates.0.lock().unwrap_or_else(PoisonError::into_inner).push(estate);
        self.tell_overdue();
        self.backlog.push_back(Answer::Died);
        // Whoever waits for its counters may be control, which reads nothing meanwhile.
        self.publish_whole(self.clock.now());
        self.dial.set_answered(u64::MAX);
        // Control has to hear of it, however much it has not read yet.
        while !self.backlog.is_empty() && !self.answers.is_abandoned() {
            if self.answer() == 0 {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Takes over what a dead worker left: its queues, which nobody polls, and its shards.
    pub(crate) fn inherit(&mut self, now: Nanos, dead: usize) {
        let mut estates = self.estates.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = estates.iter().position(|estate| estate.worker == dead) else { return };
        let Estate { shards, queues, steered, .. } = estates.swap_remove(at);
        drop(estates);
        self.queues.extend(queues);
        self.steered.extend(steered);
        self.steered.sort_by_key(|queue| queue.load.duty);
        let inherited: Vec<ShardId> = shards.iter().map(|shard| shard.id()).collect();
        self.owners.set_inherited(&inherited, self.number);
        for shard in shards {
            self.datapath.adopt(shard);
        }
        // A move from the dead worker is over, and so is one to it: what it was to get is here.
        let parked = self.mover.abandon();
        (self.watching, self.mark) = (false, None);
        for shard in std::mem::take(&mut self.packed) {
            self.datapath.adopt(shard);
        }
        // What is left of the dead one's: shards of a move that are still here, and those that were not passed on. They begin anew,
        // empty; the SMF learns of it by error indications, or sets a session up again with its next change.
        let left: Vec<ShardId> = ShardId::all().filter(|id| self.owners.owner(*id) == dead).collect();
        for &id in &left {
            if !self.owns(id) {
                let anew = self.datapath.new_shard(id);
                self.datapath.adopt(anew);
            }
        }
        self.owners.set(&left, self.number);
        self.redirect(&inherited);
        self.redirect(&left);
        self.catch_up(now, parked);
    }
}
