//! Rings of one GPU that run at the same time.
//!
//! Whoever takes or gives back memory of a GPU waits for all that runs on it, and continuous kernels don't end. So rings that are to run beside each other are made
//! before the first of their kernels is launched; and of those that are dropped, kernels go at once, and memory with the last one.

use super::cache::Cache;
use super::continuous::Continuous;
use super::driver::Context;
use crate::copies::TableId;
use crate::device::{Completion, Device, Failure, Limits, Refusal, Rejected};
use crate::ring::{RingDevice, Shape};
use crate::task::Batch;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};
use tables::Nanos;
use tables::image::{Changes, Image};

/// What was dropped, until nobody is left.
type Remains = Arc<Mutex<Vec<RingDevice<Continuous>>>>;

/// One of them.
#[derive(Debug)]
pub struct Together {
    ring: ManuallyDrop<RingDevice<Continuous>>,
    remains: Remains,
}

impl Together {
    /// So many rings of that shape, for batches of at most so many items, each with so many octets for copies of tables and its share of the GPU.
    pub fn start(
        context: &Arc<Context>,
        cache: Option<&Cache>,
        number: usize,
        shape: Shape,
        items: usize,
        tables: usize,
    ) -> Result<Vec<Self>, Failure> {
        let remains = Remains::default();
        let ring = |_| {
            let behind = Continuous::new(context, cache, shape, tables, number)?;
            let ring = ManuallyDrop::new(RingDevice::prepare(behind, shape, items)?);
            Ok(Self { ring, remains: Arc::clone(&remains) })
        };
        let mut rings = (0..number).map(ring).collect::<Result<Vec<_>, Failure>>()?;
        for together in &mut rings {
            together.ring.take_back()?;
        }
        Ok(rings)
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        self.ring.lend();
        // SAFETY: the ring is taken once, here, and nothing uses it afterwards.
        let ring = unsafe { ManuallyDrop::take(&mut self.ring) };
        self.remains.lock().unwrap_or_else(PoisonError::into_inner).push(ring);
    }
}

impl Device for Together {
    fn name(&self) -> &str {
        self.ring.name()
    }

    fn limits(&self) -> Limits {
        self.ring.limits()
    }

    fn accepts(&self, batch: &Batch) -> Result<(), Refusal> {
        self.ring.accepts(batch)
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        self.ring.submit(batch, now)
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        self.ring.poll(now, ended)
    }

    fn in_flight(&self) -> usize {
        self.ring.in_flight()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.ring.abandon(now, ended);
    }

    fn revive(&mut self, now: Nanos) -> Result<(), Failure> {
        self.ring.revive(now)
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.ring.follow(table, image, changes)
    }
}
