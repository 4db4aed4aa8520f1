//! Bursts that wait for a device to answer their look-ups, and how long they do.
//!
//! **Problem.** A device ([`datapath::lookups`]) answers some microseconds later, in which a worker could have served several bursts. So it goes
//! on with the next ones, and keeps those that wait. But a burst that waits is packets that are late, buffers that nobody else has, and
//! state that must not change under it.
//!
//! **Model.** [`UnderWay`] is a worker's queue of such bursts, and [`Worker::go_on`] its one rule: the oldest is finished as soon as its answers are
//! there, and none before it.
//!
//! - **A burst waits only under load.** One is handed over if its queue yielded a full burst: then there are more packets than time. In the first round
//!   that yields none, all are finished at once. So without load nobody waits for a device, nor for other bursts.
//! - **As many wait as it takes.** Each round takes bursts in and finishes those that are answered, so that there are as many as come within the device's
//!   latency; at most [`MOST`], and none for longer than [`PATIENCE`]. Beyond either, the oldest is looked up here.
//! - **Everything else comes between two bursts**, as it always did: orders, ticks, words about moves, the end. Before any of these
//!   all bursts are finished ([`Worker::finish_under_way`]), by the answers that are there, or else without. A thousand times a second
//!   that costs a few bursts their answers, and no rule has to be thought of twice.
//! - **Order.** Bursts from queues and from other workers wait in one queue. Only those from a queue that a port steers to (control, urgent
//!   groups) don't wait: they come ahead of others in the port, too.
//! - **A device that is full** is asked again with the next burst. **One that is late** or full for [`MISSES`] bursts in a row is left alone for [`PAUSE`]. **One
//!   that is lost** is not asked any more. In each case the packets go the way that they would have gone without it.

use crate::report::LookupCounters;
use crate::worker::{Answer, Worker};
use datapath::Burst;
use datapath::lookups::{Batch, Lesson, LookupDevice, Lost, Refused, Worth};
use io::{BURST, Port};
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Nanos;

/// Makes the device of the worker with this number, in its thread. `None`: it does its look-ups itself.
pub type OpenLookups = Arc<dyn Fn(usize) -> Option<Box<dyn LookupDevice>> + Send + Sync>;

/// Bursts of one worker that are under way at a time, at most. At ten million packets a second they come within 100 us.
pub const MOST: usize = 16;
/// How long a burst waits at most, in nanoseconds.
const PATIENCE: u64 = 200_000;
/// So many bursts in a row have waited in vain, or were refused: the device isn't asked for a while.
const MISSES: u32 = 32;
/// That while, in nanoseconds.
const PAUSE: u64 = 100_000_000;
/// Lessons that wait for a batch to take them along, at most.
const LESSONS: usize = 4 * Batch::LESSONS;

/// Of whom a burst waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// Nobody: there was nothing to ask, or the device didn't take it.
    Nobody,
    /// The device, by the batch of this number.
    Device(u64),
}

impl Asked {
    const fn number(self) -> Option<u64> {
        match self {
            Self::Nobody => None,
            Self::Device(number) => Some(number),
        }
    }
}

struct Waiting<F> {
    burst: Burst<F>,
    asked: Asked,
    since: Nanos,
    /// Where it came from, if that was a port.
    port: Option<u16>,
}

/// See the module's documentation.
pub(crate) struct UnderWay<F> {
    /// `None` once it is lost.
    device: Option<Box<dyn LookupDevice>>,
    /// Oldest first.
    waiting: VecDeque<Waiting<F>>,
    /// The answers of the oldest one that waits.
    back: Option<Batch>,
    /// For those that come.
    bursts: Vec<Burst<F>>,
    batches: Vec<Batch>,
    lessons: VecDeque<Lesson>,
    /// The last batch's.
    number: u64,
    /// A queue yielded a full burst in this round.
    is_loaded: bool,
    /// Bursts that waited in vain or were refused, in a row.
    misses: u32,
    paused_until: Nanos,
    counters: LookupCounters,
}

impl<F: io::Frame> UnderWay<F> {
    pub fn new(device: Box<dyn LookupDevice>) -> Self {
        Self {
            device: Some(device),
            waiting: VecDeque::with_capacity(MOST + 1),
            back: None,
            bursts: (0..=MOST).map(|_| Burst::new()).collect(),
            batches: (0..=MOST).map(|_| Batch::new()).collect(),
            lessons: VecDeque::with_capacity(LESSONS),
            number: 0,
            is_loaded: false,
            misses: 0,
            paused_until: Nanos(0),
            counters: LookupCounters::default(),
        }
    }

    /// What happened so far.
    pub const fn counters(&self) -> &LookupCounters {
        &self.counters
    }

    /// Whether a burst of so many packets has to wait.
    fn takes(&mut self, now: Nanos, packets: usize) -> bool {
        let is_full = packets == BURST;
        self.is_loaded |= is_full;
        !self.waiting.is_empty() || is_full && self.may_ask(now)
    }

    fn may_ask(&self, now: Nanos) -> bool {
        self.device.is_some() && now >= self.paused_until
    }

    /// An empty batch, with lessons.
    fn batch(&mut self) -> Batch {
        let mut batch = self.batches.pop().unwrap_or_default();
        batch.clear();
        self.number += 1;
        batch.number = self.number;
        let lessons = self.lessons.len().min(Batch::LESSONS);
        batch.lessons.extend(self.lessons.drain(..lessons));
        batch
    }

    fn keep_batch(&mut self, batch: Batch) {
        if self.batches.len() <= MOST {
            self.batches.push(batch);
        }
    }

    /// Hands a batch over. Lessons of a batch that is not taken are forgotten: who is asked in vain is taught again.
    fn submit(&mut self, now: Nanos, batch: Batch) -> (Asked, Option<Lost>) {
        // What came too late takes room there until it is taken back.
        let asked = self.waiting.iter().find_map(|waiting| waiting.asked.number());
        if let Err(lost) = self.poll(now, asked.unwrap_or(batch.number)) {
            return (Asked::Nobody, Some(lost));
        }
        let nothing = batch.keys.is_empty();
        let Some(device) = self.device.as_mut().filter(|_| !nothing && now >= self.paused_until) else {
            self.keep_batch(batch);
            return (Asked::Nobody, None);
        };
        let (number, questions, lessons) =
            (batch.number, batch.keys.len() as u64, batch.lessons.len() as u64);
        match device.submit(now, batch) {
            Ok(()) => {
                self.counters.asked += 1;
                self.counters.questions += questions;
                self.counters.lessons += lessons;
                (Asked::Device(number), None)
            }
            Err(Refused::Full(batch)) => {
                self.counters.refused += 1;
                self.miss(now);
                self.keep_batch(batch);
                (Asked::Nobody, None)
            }
            Err(Refused::Lost(lost)) => (Asked::Nobody, Some(lost)),
        }
    }

    /// Takes what is back, up to the batch of this number. Those before it come too late.
    fn poll(&mut self, now: Nanos, number: u64) -> Result<(), Lost> {
        while self.back.as_ref().is_none_or(|back| back.number < number) {
            if let Some(late) = self.back.take() {
                self.keep_batch(late);
            }
            let Some(device) = &mut self.device else { break };
            let Some(batch) = device.poll(now)? else { break };
            self.back = Some(batch);
        }
        Ok(())
    }

    /// The answers of a batch, if they are there.
    fn answers(&mut self, number: u64) -> Option<Batch> {
        self.back.take_if(|back| back.number == number)
    }

    /// One more burst without an answer that should have had one.
    fn miss(&mut self, now: Nanos) {
        self.misses += 1;
        if self.misses >= MISSES {
            (self.misses, self.paused_until) = (0, now.plus(PAUSE));
            self.counters.pauses += 1;
        }
    }

    /// Nothing comes back any more.
    fn lose(&mut self) {
        self.device = None;
        self.counters.lost = 1;
    }

    /// A burst is through: what it has to say, and its memory.
    fn keep(&mut self, mut burst: Burst<F>, batch: Option<Batch>) {
        let Worth { right, wrong, unknown, nothing } = burst.take_worth();
        let counters = &mut self.counters;
        counters.right += right;
        counters.wrong += wrong;
        counters.unknown += unknown;
        counters.nothing += nothing;
        let room = LESSONS - self.lessons.len();
        self.lessons.extend(burst.take_lessons().take(room));
        self.bursts.push(burst);
        if let Some(batch) = batch {
            self.keep_batch(batch);
        }
    }

    /// Whoever waits waits no longer, and is lost: so many frames.
    pub fn abandon(&mut self) -> usize {
        self.waiting.drain(..).map(|waiting| waiting.burst.in_work()).sum()
    }
}

/// What a burst heard of its device.
enum Heard {
    /// As much as it will: the answers, if it has asked for any.
    All(Option<Batch>),
    /// Nothing yet.
    Nothing,
}

/// Why the oldest burst is finished now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Because {
    /// It has its answers, if it asked for any.
    Answered,
    /// It has waited for long enough.
    Late,
    /// Something else has to happen.
    Interrupted,
}

impl<P: Port> Worker<P> {
    /// Whether a burst of so many packets is to wait for a device, or behind others that do.
    #[inline]
    pub(crate) fn waits(&mut self, now: Nanos, packets: usize) -> bool {
        self.under_way.as_mut().is_some_and(|under_way| under_way.takes(now, packets))
    }

    /// Hands over the look-ups of the burst in work, which was read, and puts it behind those that wait. [`Self::finish_answered`] has to
    /// follow, so that these are not too many.
    pub(crate) fn hand_over(&mut self, now: Nanos, port: Option<u16>) {
        let Some(under_way) = &mut self.under_way else { return };
        let mut batch = under_way.batch();
        self.datapath.question(&mut self.burst, &mut batch);
        let (asked, lost) = under_way.submit(now, batch);
        let next = under_way.bursts.pop().unwrap_or_default();
        let burst = self.burst.give_way_to(next);
        under_way.waiting.push_back(Waiting { burst, asked, since: now, port });
        if let Some(lost) = lost {
            self.lose_device(now, &lost);
        }
    }

    /// All queues were looked at: those that wait go on, as long as there is load.
    #[inline]
    pub(crate) fn go_on(&mut self, now: Nanos) {
        let Some(under_way) = &mut self.under_way else { return };
        if std::mem::take(&mut under_way.is_loaded) {
            self.finish_answered(now);
        } else {
            self.finish_under_way(now);
        }
    }

    /// Finishes bursts, oldest first, as far as they have waited enough.
    pub(crate) fn finish_answered(&mut self, now: Nanos) {
        while let Some(under_way) = &mut self.under_way
            && let Some(&Waiting { asked, since, .. }) = under_way.waiting.front()
        {
            let count = under_way.waiting.len();
            match self.hear_device(now, asked) {
                Heard::All(batch) => self.finish_oldest(now, batch, Because::Answered),
                Heard::Nothing if count >= MOST || now.since(since) >= PATIENCE => {
                    self.finish_oldest(now, None, Because::Late);
                }
                Heard::Nothing => break,
            }
        }
    }

    /// Finishes all bursts that are under way, with their answers or without.
    #[inline]
    pub(crate) fn finish_under_way(&mut self, now: Nanos) {
        while let Some(under_way) = &mut self.under_way
            && let Some(&Waiting { asked, .. }) = under_way.waiting.front()
        {
            match self.hear_device(now, asked) {
                Heard::All(batch) => self.finish_oldest(now, batch, Because::Answered),
                Heard::Nothing => self.finish_oldest(now, None, Because::Interrupted),
            }
        }
    }

    /// Whether the oldest burst has what it waited for.
    fn hear_device(&mut self, now: Nanos, asked: Asked) -> Heard {
        let (Some(number), Some(under_way)) = (asked.number(), &mut self.under_way) else {
            return Heard::All(None);
        };
        match under_way.poll(now, number) {
            Ok(()) => under_way.answers(number).map_or(Heard::Nothing, |batch| Heard::All(Some(batch))),
            Err(lost) => {
                self.lose_device(now, &lost);
                Heard::Nothing
            }
        }
    }

    fn finish_oldest(&mut self, now: Nanos, batch: Option<Batch>, because: Because) {
        let Self { under_way, datapath, out, pool, .. } = self;
        let Some(under_way) = under_way else { return };
        let Some(Waiting { mut burst, asked, since, port }) = under_way.waiting.pop_front() else { return };
        let counters = &mut under_way.counters;
        match because {
            Because::Answered if asked != Asked::Nobody => {
                counters.answered += 1;
                counters.waited += now.since(since);
                under_way.misses = 0;
            }
            Because::Answered => {}
            Because::Interrupted => counters.interrupted += 1,
            Because::Late => {
                counters.late += 1;
                under_way.miss(now);
            }
        }
        datapath.finish_answered(now, &mut burst, batch.as_ref(), out, pool);
        under_way.keep(burst, batch);
        self.recheck(now);
        self.flush(now);
        if let Some(load) = port.and_then(|port| self.port_loads.get_mut(usize::from(port))) {
            load.nanos += self.clock.now().since(now);
        }
    }

    /// The device is gone: those that wait for it are told so by the next look at them.
    fn lose_device(&mut self, now: Nanos, lost: &Lost) {
        if let Some(under_way) = &mut self.under_way {
            under_way.lose();
        }
        self.backlog.push_back(Answer::LookupsLost(lost.0.clone()));
        self.finish_under_way(now);
    }
}

#[cfg(test)]
mod tests;
