//! Who makes memory ready for flow tables that grow.
//!
//! The system clears memory when a page is first written to, 60 to 150 us for one of 2 MiB. [`tables::supply`] says what a worker's
//! tables will need; a thread beside the worker takes it, writes to it, and passes it on. It sleeps while there is nothing to make,
//! and the worker never waits for it: what isn't ready the worker takes itself.
//!
//! Linux lays a page on the node of the core that writes to it first. So the thread runs on cores of the worker's node that no
//! worker is pinned to; where there are none there is no supplier, for it would take the core from packets, or lay flows far away.

use crate::placement::{available_cores, pin_to_any};
use datapath::FlowMemory;
use machine::topology::{SYSFS, Topology};
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::thread::{Builder, JoinHandle, park};
use tables::Wish;

/// Pieces that are being made at a time.
const RING: usize = 64;

/// A thread that makes pieces `P`, from the side that needs them.
pub struct Supplier<P> {
    /// `None` once it is to end.
    wishes: Option<Producer<Wish>>,
    pieces: Consumer<P>,
    /// Wished for and not taken yet: there is room for them in both rings.
    outstanding: usize,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> Supplier<P> {
    /// Starts the thread, on these cores or on those of the caller.
    pub fn start(name: String, cores: Option<Vec<usize>>, make: fn(Wish) -> P) -> io::Result<Self> {
        let (wishes, mut orders) = RingBuffer::new(RING);
        let (mut made, pieces) = RingBuffer::new(RING);
        let work = move || {
            // Elsewhere it would do more harm than good.
            if cores.is_some_and(|cores| pin_to_any(&cores).is_err()) {
                return;
            }
            while !orders.is_abandoned() {
                match orders.pop() {
                    // As many as there is room for were wished for.
                    Ok(wish) => {
                        let _ = made.push(make(wish));
                    }
                    Err(_) => park(),
                }
            }
        };
        let thread = Some(Builder::new().name(name).spawn(work)?);
        Ok(Self { wishes: Some(wishes), pieces, outstanding: 0, thread })
    }

    /// Brings what is ready, and takes new wishes. Every millisecond or so.
    pub fn serve<C>(
        &mut self,
        customer: &mut C,
        stock: fn(&mut C, P),
        mut wish: impl FnMut(&mut C) -> Option<Wish>,
    ) {
        while let Ok(piece) = self.pieces.pop() {
            self.outstanding -= 1;
            stock(customer, piece);
        }
        let before = self.outstanding;
        while self.outstanding < RING
            && let Some(wishes) = &mut self.wishes
            && let Some(wish) = wish(customer)
            && wishes.push(wish).is_ok()
        {
            self.outstanding += 1;
        }
        if self.outstanding > before
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl<P> Drop for Supplier<P> {
    /// Waits for the piece that is being made, at most.
    fn drop(&mut self) {
        self.wishes = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It ends by itself, or has panicked, which it has no reason to.
            let _ = thread.join();
        }
    }
}

impl<P> std::fmt::Debug for Supplier<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supplier").field("outstanding", &self.outstanding).finish_non_exhaustive()
    }
}

/// The cores that workers are pinned to, and what lies beside them.
pub(crate) struct Neighbourhood {
    workers: Vec<Option<usize>>,
    available: Vec<usize>,
    /// `None`: not known, or not needed since no worker is pinned.
    topology: Option<Topology>,
}

impl Neighbourhood {
    /// Of these workers, as the machine and the calling thread's affinity are.
    pub fn of(workers: &[Option<usize>]) -> Self {
        let are_pinned = workers.iter().any(Option::is_some);
        let read = || Topology::read(SYSFS.as_ref()).ok();
        Self {
            workers: workers.to_vec(),
            available: available_cores(),
            topology: are_pinned.then(read).flatten(),
        }
    }

    /// Who makes memory ready for a worker, if there is a core for it, and the system has a thread for it.
    pub fn supplier(&self, worker: usize, core: Option<usize>) -> Option<Supplier<FlowMemory>> {
        let cores = core.map(|core| self.beside(core));
        let have_room = cores.as_ref().is_none_or(|cores| !cores.is_empty());
        have_room.then(|| Supplier::start(format!("memory-{worker}"), cores, FlowMemory::make).ok()).flatten()
    }

    /// The cores on which memory can be made ready for a worker on `core`: those of its node that the process may run on and no worker
    /// is pinned to.
    fn beside(&self, core: usize) -> Vec<usize> {
        let node = |core: usize| self.topology.as_ref()?.core(core)?.node;
        let beside = |other: &usize| !self.workers.contains(&Some(*other)) && node(*other) == node(core);
        self.available.iter().copied().filter(beside).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::thread::yield_now;
    use tables::supply::Supply;
    use tables::{FlowKey, FlowTable, FlowValue, Lookup, Nanos, Piece};

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Key([u32; 9]);

    impl FlowKey for Key {
        fn hash(&self, seed: u64) -> u64 {
            tables::hash::mix(u64::from(self.0[0]) ^ seed, 0x9e37_79b9_7f4a_7c15)
        }
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Value([u32; 7]);

    impl FlowValue for Value {
        fn deadline(&self) -> Nanos {
            Nanos(1 << 40)
        }
    }

    #[test]
    fn what_a_table_needs_is_ready_if_it_waits_for_it_and_the_thread_ends_with_its_user() {
        let mut supply: Supply<Key, Value> = Supply::new(1 << 20);
        let make: fn(Wish) -> Piece<Key, Value> = Wish::make;
        let mut supplier = Supplier::start("memory-test".into(), None, make).unwrap();
        let mut table = FlowTable::new(1, 1 << 20, Nanos(0));
        table.join(&mut supply);
        for flow in 0..20_000 {
            let key = Key([flow; 9]);
            let probe = table.prepare(&key);
            table.enter_from(&mut supply, probe, key, Value([flow; 7])).unwrap();
            supplier.serve(&mut supply, Supply::stock, Supply::wish);
            while supplier.outstanding > 0 {
                supplier.serve(&mut supply, Supply::stock, Supply::wish);
                yield_now();
            }
        }
        let counters = supply.counters();
        assert!(counters.supplied > 20, "{counters:?}");
        assert_eq!(counters.missed, 0);
        assert!((0..20_000).all(|flow| table.get(&Key([flow; 9])) == Some(&Value([flow; 7]))));
        table.leave(&mut supply);
        assert_eq!(supply.memory(), 0, "what nobody claims is let go");
        let name = || {
            std::fs::read_dir("/proc/self/task").unwrap().flatten().any(|thread| {
                std::fs::read_to_string(thread.path().join("comm"))
                    .is_ok_and(|name| name.trim() == "memory-test")
            })
        };
        assert!(name());
        drop(supplier);
        assert!(!name());
    }

    #[test]
    fn a_supplier_that_is_left_with_work_ends() {
        let mut wishes = 0..10_000;
        let wish = {
            let mut supply: Supply<Key, Value> = Supply::new(1 << 20);
            let mut table: FlowTable<Key, Value> = FlowTable::new(1, 1 << 20, Nanos(0));
            for flow in 0..300 {
                table.insert(Key([flow; 9]), Value([flow; 7])).unwrap();
            }
            table.join(&mut supply);
            supply.wish().unwrap()
        };
        let make: fn(Wish) -> Piece<Key, Value> = Wish::make;
        let mut supplier = Supplier::start("memory-left".into(), None, make).unwrap();
        supplier.serve(&mut wishes, |_, _| (), |wishes| wishes.next().map(|_| wish));
        assert_eq!(supplier.outstanding, RING);
        drop(supplier);
    }

    #[test]
    fn memory_is_made_beside_workers_on_their_node() {
        let cores = available_cores();
        let first = *cores.first().unwrap();
        let all: Vec<_> = cores.iter().copied().map(Some).collect();
        let full = Neighbourhood::of(&all);
        assert!(
            full.beside(first).is_empty() && full.supplier(0, Some(first)).is_none(),
            "every core is a worker's"
        );
        assert!(full.supplier(0, None).is_some(), "the kernel finds it one");
        let beside = Neighbourhood::of(&[Some(first)]).beside(first);
        assert!(!beside.contains(&first) && beside.iter().all(|core| cores.contains(core)));
    }
}
