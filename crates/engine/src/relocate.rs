//! A worker's steps in moves of shards: what [`crate::moves::Mover`] decides is done here, on queues, rings and the datapath.

use crate::mesh::Boxed;
use crate::moves::{Heard, Move, Moved, Step, Taken, Word};
use crate::sending::Flush;
use crate::worker::{Answer, Seen, Worker};
use datapath::HandedOff;
use io::{BURST, Port};
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Nanos;

impl<P: Port> Worker<P> {
    /// Receiver: begins.
    pub(crate) fn take_shards(&mut self, order: Arc<Move>) {
        let shards = Arc::clone(&order);
        self.mover.take(order);
        self.owners.set(&shards.shards, self.number);
        self.redirect(&shards.shards);
        let steps: Vec<_> = self.mover.switched_all().collect();
        for step in steps {
            self.step(step);
        }
        self.mesh.speak();
        self.roster.wake_all();
    }

    /// Packets of these shards are to come to this worker's queues. A port that refuses goes on as before: its packets are
    /// handed off.
    pub(crate) fn redirect(&mut self, shards: &[session::ShardId]) {
        if self.redirections.is_empty() {
            return;
        }
        let entries: Vec<u16> = shards.iter().map(|shard| shard.index() as u16).collect();
        for redirection in &mut self.redirections {
            if redirection.redirect(&entries, self.number as u16).is_err() {
                self.load.redirections_refused += 1;
            }
        }
    }

    /// The move that runs goes on, as far as it is this worker's turn. Says whether there was anything to do.
    pub(crate) fn relocate(&mut self, now: Nanos) -> usize {
        let mut work = 0;
        self.finish_under_way(now);
        // One step after the other, each as soon as the one before allows: packets wait for these shards.
        if self.mover.is_settling() && self.redirections.iter_mut().all(|table| table.settled()) {
            let step = self.mover.settled();
            work += self.act(step);
        }
        if self.watching && self.have_seen_all() {
            self.watching = false;
            let step = self.mover.queues_are_empty();
            work += self.act(step);
        }
        if let Some((number, mut mark)) = self.mark.take() {
            if self.has_sent(&mut mark) {
                self.mover.is_sent(number);
            } else {
                self.mark = Some((number, mark));
            }
        }
        let step = self.mover.is_due(now);
        work += self.act(step);
        let mut flushes = std::mem::take(&mut self.flushes);
        flushes.retain_mut(|flush| {
            let sent = self.has_sent(&mut flush.mark);
            if sent {
                self.mesh.tell(flush.worker, Word::Flushed(flush.number));
            }
            !sent
        });
        self.flushes = flushes;
        self.mesh.speak();
        // Given to a worker that is no more: they stay.
        for shard in self.mesh.returned() {
            self.owners.set(&[shard.id()], self.number);
            self.redirect(&[shard.id()]);
            self.datapath.adopt(shard);
        }
        work
    }

    fn act(&mut self, step: Option<Step<Boxed<P::Frame>>>) -> usize {
        let work = usize::from(step.is_some());
        step.into_iter().for_each(|step| self.step(step));
        work
    }

    fn have_seen_all(&self) -> bool {
        self.queues.iter().all(|queue| queue.seen.is_all())
            && self.steered.iter().all(|queue| queue.seen.is_all())
    }

    fn step(&mut self, step: Step<Boxed<P::Frame>>) {
        match step {
            Step::Tell(worker, word) => self.mesh.tell(worker, word),
            Step::WatchQueues => {
                self.watching = true;
                // Where no NIC follows, these shards' packets go on coming here, and are handed on in order: nothing to wait for.
                let follows = !self.redirections.is_empty();
                let watch = |rx: &mut P::Rx| if follows { Seen::watch(rx) } else { Seen::All };
                self.queues.iter_mut().for_each(|queue| queue.seen = watch(&mut queue.rx));
                self.steered.iter_mut().for_each(|queue| queue.seen = watch(&mut queue.rx));
            }
            Step::Pack(order) => {
                self.pack(&order);
                match self.sender {
                    Some(sender) => self.mesh.tell(sender, Word::Flush(order.number)),
                    None => self.mark = Some((order.number, self.send_mark())),
                }
            }
            Step::Give(order) => self.give(&order),
        }
    }

    /// Giver: takes the shards out of the datapath.
    fn pack(&mut self, order: &Move) {
        let now = self.clock.now();
        for &id in &order.shards {
            if let Some(offload) = &mut self.offload {
                offload.withdraw_shard(now, &mut self.datapath, id, &mut self.out);
            }
            self.packed.extend(self.datapath.release(id));
        }
        self.flush(now);
        // The new owner answers for these sessions, and may be quicker.
        for &id in &order.shards {
            self.backlog.extend(self.overdue.take_shard(id).map(Answer::Event));
        }
    }

    /// Giver: parts with them.
    fn give(&mut self, order: &Move) {
        (self.watching, self.mark) = (false, None);
        if self.packed.is_empty() {
            // Patience ended before it came to that.
            self.pack(order);
        }
        let shards = std::mem::take(&mut self.packed);
        if let Some(step) = self.mover.give(shards) {
            self.step(step);
        }
        self.mesh.speak();
        self.roster.wake_all();
    }

    /// Another worker said something.
    pub(crate) fn hear(&mut self, now: Nanos, from: usize, word: Word<Boxed<P::Frame>>) {
        match word {
            Word::Flush(number) => {
                let mark = self.send_mark();
                self.flushes.push(Flush { worker: from, number, mark });
            }
            Word::Flushed(number) => self.mover.is_sent(number),
            word => match self.mover.hear(now, from, word) {
                Heard::Nothing => {}
                Heard::Step(step) => self.step(step),
                Heard::Taken(taken) => self.settle_in(now, taken),
                Heard::Stray(shards) => {
                    for shard in shards {
                        self.owners.set(&[shard.id()], self.number);
                        self.datapath.adopt(shard);
                    }
                }
            },
        }
        self.mesh.speak();
    }

    /// Receiver: the shards are here.
    fn settle_in(&mut self, now: Nanos, taken: Taken<HandedOff<P::Frame>, Boxed<P::Frame>>) {
        let Taken { order, shards, parked, since, overflowed, hurried } = taken;
        let moved = shards.len();
        for shard in shards {
            self.datapath.adopt(shard);
        }
        let pause = since.map_or(0, |since| self.clock.now().since(since));
        let packets = parked.len() as u64;
        self.catch_up(now, parked);
        self.backlog.push_back(Answer::Moved(Moved {
            number: order.number,
            shards: moved,
            parked: packets,
            overflowed,
            hurried,
            pause,
        }));
    }

    /// Shards that were on their way are here: what waited for them, orders first.
    pub(crate) fn catch_up(&mut self, now: Nanos, mut parked: VecDeque<HandedOff<P::Frame>>) {
        while let Some(order) = self.held.pop_front() {
            self.carry_out(now, order);
        }
        while !parked.is_empty() {
            let packets = parked.drain(..parked.len().min(BURST));
            self.datapath.arrive_handed_off(now, packets, &mut self.burst);
            self.process_arrived(now);
        }
    }
}
