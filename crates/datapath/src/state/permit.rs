//! How many packets wait for their UEs in the whole process.
//!
//! Shards move between workers with the packets that wait in their sessions. Were the limit divided among the workers, each could fill its part
//! anew after its packets have left with a shard, and nothing would bound the sum. So there is one account for all; it is drawn on where a packet is
//! buffered, which is far from the fast path. A packet gives its place back by being dropped, wherever that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places for packets that wait, see the module's documentation.
#[derive(Debug)]
pub struct Places {
    most: AtomicUsize,
    taken: AtomicUsize,
}

impl Places {
    /// So many.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.into(), taken: AtomicUsize::new(0) })
    }

    /// As many as there are of the others from now on. Those that are taken stay so.
    pub(crate) fn resize(&self, like: &Self) {
        self.most.store(like.most.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// A place, if one is free.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Permit> {
        let most = self.most.load(Ordering::Relaxed);
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Permit(Arc::clone(self)))
    }
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Places>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let places = Places::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        drop(first);
        let third = places.take();
        assert!(third.is_some() && places.take().is_none());
        assert!(Places::new(0).take().is_none());
        // Fewer than are taken, and then more.
        places.resize(&Places::new(1));
        drop(third);
        assert!(places.take().is_none());
        places.resize(&Places::new(3));
        let more = [places.take(), places.take(), places.take()];
        assert_eq!(more.iter().flatten().count(), 2);
    }
}
