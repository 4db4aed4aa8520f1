//! What workers do with packets: batches for a device, and what comes out of them.
//!
//! A packet's octets lie in a slot of its own, by its place in the core's books: whoever decodes writes them there, and whoever ciphers reads them. A slot knows whose octets it has. A worker
//! that comes with a packet which another has done since, and whose place is another packet's now, finds that and leaves it alone.

use super::material::Material;
use super::thread::Since;
use crate::device::{Completion, Device, Failure};
use crate::sched::{Job, Span};
use crate::task::{Batch, Packet, Task};
use ran::nea2::{Bearer, Count, Direction, NoBearer};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::Nanos;

/// What has come of blocks so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocks {
    /// Code blocks that were decoded.
    pub decoded: u64,
    /// Of these, those whose parity checks hold.
    pub checks_hold: u64,
    /// Iterations of all of them.
    pub iterations: u64,
    /// Packets that were decoded.
    pub packets: u64,
    /// Of these, those whose octets are what was sent.
    pub right: u64,
}

impl Blocks {
    /// Blocks whose checks hold, of all.
    pub fn held_percent(&self) -> f64 {
        if self.decoded == 0 { 100.0 } else { self.checks_hold as f64 / self.decoded as f64 * 100.0 }
    }
}

#[derive(Debug, Default)]
struct Slot {
    number: Option<u64>,
    plain: Vec<u8>,
    ciphered: Vec<u8>,
}

/// What all workers share: what there is to decode, slots, and counters.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) material: Material,
    slots: Vec<Mutex<Slot>>,
    /// The fields of [`Blocks`].
    counts: [AtomicU64; 5],
}

impl Shared {
    pub(super) fn new(material: Material, places: usize) -> Self {
        let slots = (0..places).map(|_| Mutex::default()).collect();
        Self { material, slots, counts: Default::default() }
    }

    pub(super) fn blocks(&self) -> Blocks {
        let [decoded, checks_hold, iterations, packets, right] =
            self.counts.each_ref().map(|count| count.load(Relaxed));
        Blocks { decoded, checks_hold, iterations, packets, right }
    }

    fn count(&self, blocks: &Blocks) {
        let Blocks { decoded, checks_hold, iterations, packets, right } = *blocks;
        for (count, more) in self.counts.iter().zip([decoded, checks_hold, iterations, packets, right]) {
            count.fetch_add(more, Relaxed);
        }
    }

    /// A slot is written as a whole or not at all, so a panic elsewhere spoils nothing.
    fn slot(&self, job: &Job) -> Option<MutexGuard<'_, Slot>> {
        let slot = self.slots.get(job.place as usize)?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The slot if it is this job's.
    fn own(&self, job: &Job) -> Option<MutexGuard<'_, Slot>> {
        self.slot(job).filter(|slot| slot.number == Some(job.number))
    }

    /// What has become of a packet, while it is inside.
    pub(super) fn with_ciphered(&self, job: &Job, see: &mut dyn FnMut(&Job, &[u8])) {
        if let Some(slot) = self.own(job) {
            see(job, &slot.ciphered);
        }
    }
}

/// Whose key a packet has, and its number: a key for each flow, a bearer for each kind.
pub fn descriptor(job: &Job) -> Result<Packet, NoBearer> {
    let mut key = [0x5c; 16];
    key[..4].copy_from_slice(&job.packet.flow.0.to_le_bytes());
    let bearer = Bearer::new(job.packet.kind.0 % 32)?;
    Ok(Packet { key, count: Count(job.number as u32), bearer, direction: Direction::Downlink })
}

/// Nanoseconds after which a device that has a batch is given up.
const PATIENCE: u64 = 10 * Nanos::SECOND;

/// A worker's device, and its buffers.
pub(super) struct Work {
    shared: Arc<Shared>,
    device: Box<dyn Device>,
    clock: Since,
    /// Batches that aren't used just now.
    spare: Vec<Batch>,
    ended: Vec<Completion>,
}

impl Work {
    pub(super) fn new(shared: Arc<Shared>, device: Box<dyn Device>, clock: Since) -> Self {
        Self { shared, device, clock, spare: Vec::new(), ended: Vec::new() }
    }

    /// Which of the packets of its size a job stands for.
    fn variant(job: &Job, of: usize) -> usize {
        (job.packet.tag % of as u64) as usize
    }

    fn batch(&mut self, ticket: u64, task: Task) -> Batch {
        let Some(mut batch) = self.spare.pop() else { return Batch::new(ticket, task) };
        batch.clear(ticket, task);
        batch
    }

    /// Decodes the blocks of packets.
    pub(super) fn decode(&mut self, jobs: &[Job]) -> Result<Span, Failure> {
        let shared = Arc::clone(&self.shared);
        let material = &shared.material;
        let began = self.clock.time();
        // Blocks of a batch are of one code: there is one for each size that occurs.
        let mut batches: Vec<Option<Batch>> = (0..material.sizes()).map(|_| None).collect();
        for job in jobs {
            let place = material.place(job.packet.octets);
            let of_size = material.at(place);
            let task = Task::LdpcDecode(of_size.decoding);
            let batch = batches[place].get_or_insert_with(|| self.batch(place as u64, task));
            for llrs in &of_size.packets[Self::variant(job, of_size.packets.len())].llrs {
                batch.push_llrs(llrs).map_err(misfit)?;
            }
        }
        let batches = self.run(batches.into_iter().flatten().collect())?;
        let mut blocks = Blocks::default();
        let mut next = vec![0; material.sizes()];
        for job in jobs {
            let place = material.place(job.packet.octets);
            let of_size = material.at(place);
            let Some(batch) = batches.iter().find(|batch| batch.ticket == place as u64) else { continue };
            let packet = &of_size.packets[Self::variant(job, of_size.packets.len())];
            let own = next[place]..next[place] + packet.llrs.len();
            next[place] = own.end;
            for verdict in own.clone().filter_map(|at| batch.verdict(at)) {
                blocks.decoded += 1;
                blocks.checks_hold += u64::from(verdict.checks_hold);
                blocks.iterations += u64::from(verdict.iterations);
            }
            let parts = own.filter_map(|at| batch.answer(at)?.get(..of_size.payload));
            let octets = parts.flatten().copied().take(job.packet.octets as usize);
            let Some(mut slot) = shared.slot(job) else { continue };
            // A later packet's place by now: this one has left.
            if slot.number.is_some_and(|number| number > job.number) {
                continue;
            }
            slot.number = Some(job.number);
            slot.plain.clear();
            slot.plain.extend(octets);
            blocks.packets += 1;
            blocks.right += u64::from(packet.octets.starts_with(&slot.plain));
        }
        shared.count(&blocks);
        self.spare.extend(batches);
        Ok(Span { began, ended: self.clock.time() })
    }

    /// Ciphers what was decoded.
    pub(super) fn cipher(&mut self, jobs: &[Job]) -> Result<Span, Failure> {
        let shared = Arc::clone(&self.shared);
        let began = self.clock.time();
        let mut batch = self.batch(0, Task::Nea2);
        for job in jobs {
            let slot = shared.own(job);
            let octets = slot.as_ref().map_or(&[][..], |slot| &slot.plain);
            batch.push_packet(descriptor(job).map_err(misfit)?, octets).map_err(misfit)?;
        }
        let batches = self.run(vec![batch])?;
        if let Some(batch) = batches.first() {
            for (job, done) in jobs.iter().zip(batch.descriptors()) {
                let octets = batch.output().get(done.place..done.place + done.length);
                if let (Some(mut slot), Some(octets)) = (shared.own(job), octets) {
                    slot.ciphered.clear();
                    slot.ciphered.extend_from_slice(octets);
                }
            }
        }
        self.spare.extend(batches);
        Ok(Span { began, ended: self.clock.time() })
    }

    /// Gives batches to the device, and waits for all of them.
    fn run(&mut self, batches: Vec<Batch>) -> Result<Vec<Batch>, Failure> {
        let began = self.clock.time();
        let mut waiting = batches.into_iter();
        let mut back = Vec::with_capacity(waiting.len());
        let mut next = waiting.next();
        while next.is_some() || self.device.in_flight() > 0 {
            let now = self.clock.time();
            if let Some(batch) = next.take() {
                next = match self.device.submit(batch, now) {
                    Ok(()) => waiting.next(),
                    Err(rejected) if rejected.why.is_for_now() => Some(rejected.batch),
                    Err(rejected) => {
                        return Err(Failure::Call { call: "submit", why: rejected.why.to_string() });
                    }
                };
            }
            if self.device.poll(now, &mut self.ended) == 0 {
                if now.since(began) > PATIENCE {
                    self.device.abandon(now, &mut self.ended);
                    return Err(Failure::Abandoned);
                }
                std::thread::yield_now();
            }
            for Completion { batch, outcome, .. } in self.ended.drain(..) {
                outcome?;
                back.push(batch);
            }
        }
        Ok(back)
    }
}

/// Blocks are as long as their own task has them; if they weren't, it is told like any other failure.
fn misfit(why: impl std::fmt::Display) -> Failure {
    Failure::Call { call: "batch", why: why.to_string() }
}
