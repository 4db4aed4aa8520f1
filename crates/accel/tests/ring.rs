//! The ring: its protocol in all orders, under load, and with a device that comes and goes.

use crate::devices::{batch, done};
use accel::copies::TableId;
use accel::cpu::Inline;
use accel::fallback::Settings;
use accel::ring::layout::{CPP, DONE, LINE_OCTETS, MOST_SLOTS};
use accel::ring::{Behind, Host, Look, Memory, Order, RingDevice, Rung, Serving, Shape, Thread, Word};
use accel::task::{Hashes, Task};
use accel::{Device, Failure, Fallback, Kind, Refusal, conformance};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tables::image::{Changes, Image};
use tables::{Nanos, Tsc};

fn memory(shape: Shape) -> Arc<[AtomicU64]> {
    (0..shape.words()).map(|_| AtomicU64::new(0)).collect()
}

fn order(number: u64, octets: &[u8]) -> Order<'_> {
    Order { task: number, items: number + 1, table: number + 2, octets, data: &[], output: octets.len() }
}

/// Loom's words: each load may see any write that the memory model lets it see.
struct Loom(loom::sync::atomic::AtomicU64);

impl Word for Loom {
    fn get(&self) -> u64 {
        self.0.load(loom::sync::atomic::Ordering::Relaxed)
    }
    fn set(&self, value: u64) {
        self.0.store(value, loom::sync::atomic::Ordering::Relaxed);
    }
    fn acquire(&self) -> u64 {
        self.0.load(loom::sync::atomic::Ordering::Acquire)
    }
    fn release(&self, value: u64) {
        self.0.store(value, loom::sync::atomic::Ordering::Release);
    }
}

struct LoomMemory(loom::sync::Arc<Vec<Loom>>);

impl Memory for LoomMemory {
    type Word = Loom;

    fn words(&self) -> &[Loom] {
        &self.0
    }
}

/// What the device makes of a batch: it has seen all that the host wrote before it rang, if that comes out.
fn twice(rung: &Rung, input: &[u8], output: &mut [u8]) -> usize {
    assert_eq!((rung.items, rung.table), (rung.task + 1, rung.task + 2));
    output.iter_mut().zip(input).for_each(|(to, from)| *to = 2 * from);
    DONE
}

/// Two batches through one slot, while the device leaves and comes back.
#[test]
fn whatever_the_order_each_side_sees_what_the_other_wrote_before() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shape = Shape::new(1, 8, 8).unwrap();
        let words: Vec<Loom> =
            (0..shape.words()).map(|_| Loom(loom::sync::atomic::AtomicU64::new(0))).collect();
        let words = loom::sync::Arc::new(words);
        let mut host = Host::new(LoomMemory(words.clone()), shape).unwrap();
        host.command(true);
        let serve = |words: &loom::sync::Arc<Vec<Loom>>| {
            let mut serving = Serving::new(LoomMemory(words.clone())).unwrap();
            loom::thread::spawn(move || {
                loop {
                    match serving.look(|| 0, twice) {
                        Look::Leave => return,
                        Look::Served(_) | Look::Idle => loom::thread::yield_now(),
                    }
                }
            })
        };
        let device = serve(&words);
        let mut output = [0; 2];
        assert!(host.ring(0, order(1, &[3, 4])));
        while host.fetch(0, &mut output).is_none() {
            loom::thread::yield_now();
        }
        assert_eq!(output, [6, 8]);
        // Told to go, it may still take the next batch, or leave it to whoever comes after.
        host.command(false);
        assert!(host.ring(0, order(2, &[5, 6])));
        device.join().unwrap();
        host.command(true);
        let device = serve(&words);
        while host.fetch(0, &mut output).is_none() {
            loom::thread::yield_now();
        }
        assert_eq!(output, [10, 12]);
        host.command(false);
        device.join().unwrap();
    });
}

#[test]
fn a_slot_in_use_is_not_rung_and_what_does_not_fit_is_not_written() {
    let shape = Shape::new(2, 100, 8).unwrap();
    assert_eq!((shape.input(), shape.output(), shape.slots()), (LINE_OCTETS, LINE_OCTETS, 2));
    let memory = memory(shape);
    let mut host = Host::new(Arc::clone(&memory), shape).unwrap();
    let before: Vec<u64> = memory.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert!(!host.ring(2, order(1, &[1])));
    assert!(!host.ring(0, order(1, &[1; LINE_OCTETS + 1])));
    assert!(!host.ring(0, Order { data: &[1; LINE_OCTETS - 15], ..order(1, &[1]) }));
    assert!(!host.ring(0, Order { output: LINE_OCTETS + 1, ..order(1, &[1]) }));
    let after: Vec<u64> = memory.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert_eq!(before, after);
    assert!(host.ring(0, Order { data: &[1; LINE_OCTETS - 16], ..order(1, &[1]) }));
    assert!(!host.ring(0, order(1, &[1])) && host.ring(1, order(1, &[1])));
    assert_eq!(host.fetch(0, &mut []), None);
}

#[test]
fn a_ring_has_a_slot_and_not_too_many_and_its_memory_is_large_enough() {
    for (slots, input) in [(0, 8), (MOST_SLOTS + 1, 8), (1, usize::MAX), (144, 1 << 24)] {
        assert_eq!(Shape::new(slots, input, 8), None, "{slots} {input}");
    }
    let shape = Shape::new(3, 8, 8).unwrap();
    let small: Arc<[AtomicU64]> = (1..shape.words()).map(|_| AtomicU64::new(0)).collect();
    assert!(Host::new(Arc::clone(&small), shape).is_none());
    // Nobody has laid one out: what stands there is no ring.
    assert!(Serving::new(small).is_none());
    assert!(Serving::new(memory(shape)).is_none());
    let none: Arc<[AtomicU64]> = Arc::new([]);
    assert!(Serving::new(none).is_none());
}

#[test]
fn a_doorbell_that_asks_for_more_than_a_slot_has_reads_no_further() {
    let shape = Shape::new(1, 8, 8).unwrap();
    let memory = memory(shape);
    let mut host = Host::new(Arc::clone(&memory), shape).unwrap();
    let mut serving = Serving::new(Arc::clone(&memory)).unwrap();
    assert!(host.ring(0, order(1, &[1])));
    for at in [3, 4] {
        memory[16 + at].store(u64::MAX, Ordering::Relaxed);
    }
    let look = serving.look(
        || 0,
        |_, input, output| {
            assert_eq!((input.len(), output.len()), (LINE_OCTETS, LINE_OCTETS));
            DONE
        },
    );
    assert_eq!(look, Look::Served(1));
}

#[test]
fn the_layout_for_cpp_has_the_same_numbers() {
    for (name, value) in [("LINE", 16), ("OUTPUT_LINES", 3), ("ENDED", 3), ("MOST_SLOTS", MOST_SLOTS)] {
        assert!(CPP.contains(&format!("#define RING_{name} {value}\n")), "{CPP}");
    }
}

fn ring(slots: usize) -> RingDevice<Thread<Tsc>> {
    let shape = Shape::new(slots, 64 << 10, 64 << 10).unwrap();
    RingDevice::start(Thread::new(Tsc::process()), shape, 256).unwrap()
}

#[test]
fn a_thread_that_serves_a_ring_is_a_device_as_others_are() {
    for (slots, seed) in [(1, 1), (7, 2), (144, 3)] {
        let mut random = SmallRng::seed_from_u64(seed);
        let report = conformance::run(&mut ring(slots), &Tsc::process(), &mut || random.next_u64());
        assert!(report.unwrap().done > 12);
    }
}

#[test]
fn one_buffer_to_144_of_32_to_256_packets_each_right() {
    for (slots, items) in [(1, 256), (16, 32), (144, 64)] {
        let mut device = ring(slots);
        let mut random = SmallRng::seed_from_u64(items as u64);
        let clock = Tsc::process();
        let (mut sent, mut back, mut ended) = (0, 0, Vec::new());
        let task = Task::Hash(Hashes::new(1).unwrap());
        while back < 1000 {
            if sent < 1000 {
                let batch = conformance::batch_of(task, sent, items, &mut || random.next_u64()).unwrap();
                match device.submit(batch, clock.now()) {
                    Ok(()) => sent += 1,
                    Err(rejected) => assert_eq!(rejected.why, Refusal::Full),
                }
            }
            device.poll(clock.now(), &mut ended);
            for completion in ended.drain(..) {
                completion.outcome.unwrap();
                let batch = completion.batch;
                for (at, item) in batch.items().as_chunks().0.iter().enumerate() {
                    let right = accel::hash::hash(item, Hashes::new(1).unwrap());
                    assert_eq!(batch.number(at), Some(right));
                }
                back += 1;
            }
        }
        assert_eq!(device.in_flight(), 0);
    }
}

#[test]
fn while_it_is_lent_batches_wait_and_then_they_are_done() {
    let (mut device, clock) = (ring(4), Tsc::process());
    device.lend();
    while !device.is_lent().unwrap() {
        std::thread::yield_now();
    }
    (0..4).for_each(|ticket| device.submit(batch(ticket), clock.now()).unwrap());
    assert_eq!(device.submit(batch(4), clock.now()).unwrap_err().why, Refusal::Full);
    let mut ended = Vec::new();
    assert_eq!((device.poll(clock.now(), &mut ended), device.in_flight()), (0, 4));
    while !device.take_back().unwrap() {
        std::thread::yield_now();
    }
    assert!(!device.is_lent().unwrap());
    while ended.len() < 4 {
        device.poll(clock.now(), &mut ended);
    }
    assert!(ended.iter().all(|one| one.outcome.is_ok() && one.batch == done(one.batch.ticket)));
}

/// Serves by a thread, until it is told to fail.
struct Breaking(Thread<Tsc>, Arc<AtomicU64>);

impl Behind for Breaking {
    type Memory = Arc<[AtomicU64]>;

    fn name(&self) -> &'static str {
        "breaking"
    }
    fn kinds(&self) -> Vec<Kind> {
        self.0.kinds()
    }
    fn memory(&mut self, words: usize) -> Result<Self::Memory, Failure> {
        self.0.memory(words)
    }
    fn start(&mut self, memory: &Self::Memory) -> Result<(), Failure> {
        if self.1.load(Ordering::Relaxed) == 0 { self.0.start(memory) } else { Ok(()) }
    }
    fn has_gone(&mut self) -> Result<bool, Failure> {
        match self.1.load(Ordering::Relaxed) {
            2 => Err(Failure::Lost("unplugged".into())),
            _ => self.0.has_gone(),
        }
    }
    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.0.follow(table, image, changes)
    }
    fn table(&self, table: TableId) -> Option<u64> {
        self.0.table(table)
    }
    fn version(&self, task: &Task) -> Option<u64> {
        self.0.version(task)
    }
}

#[test]
fn a_ring_that_nobody_serves_any_more_is_found_out_and_its_batches_are_done_elsewhere() {
    let broken = Arc::new(AtomicU64::new(1));
    let shape = Shape::new(4, 4096, 4096).unwrap();
    let behind = Breaking(Thread::new(Tsc::process()), Arc::clone(&broken));
    // Nobody has ever started to serve it.
    let ring = RingDevice::start(behind, shape, 64).unwrap();
    let settings = Settings { patience: u64::MAX, retry_after: 10 };
    let mut pair = Fallback::new(ring, Inline::new(4, || Nanos(0)), settings);
    let mut ended = Vec::new();
    pair.submit(batch(1), Nanos(0)).unwrap();
    assert_eq!(pair.poll(Nanos(1_000_000), &mut ended), 0);
    assert_eq!(pair.poll(Nanos(9_000_000), &mut ended), 1);
    assert!(matches!(pair.failure(), Some(Failure::Lost(_))));
    // Its driver says that it is lost.
    broken.store(2, Ordering::Relaxed);
    pair.submit(batch(2), Nanos(9_000_020)).unwrap();
    assert_eq!(pair.poll(Nanos(9_000_020), &mut ended), 1);
    assert_eq!(pair.failure(), Some(&Failure::Lost("unplugged".into())));
    // It is back.
    broken.store(0, Ordering::Relaxed);
    pair.submit(batch(3), Nanos(9_000_040)).unwrap();
    while pair.poll(Nanos(9_000_040), &mut ended) == 0 {}
    let counts = pair.counts();
    assert_eq!((counts.first, counts.redone, counts.second, counts.revived), (1, 1, 2, 1));
    assert!(ended.iter().all(|one| one.outcome.is_ok() && one.batch == done(one.batch.ticket)));
}
