//! All devices that every machine has, by the one body for devices; and what is special about some.

use accel::cpu::{Executor, Inline, Settings, Workers};
use accel::fake::{Fake, Fault};
use accel::{Batch, Clock, Device, Failure, Fallback, Kind, Limits, Refusal, Rejected, Times, conformance};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tables::{Nanos, Tsc};

/// A clock that goes on whenever it is looked at.
#[derive(Clone, Default)]
pub struct Ticking(Arc<AtomicU64>);

impl Clock for Ticking {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(100, Ordering::Relaxed))
    }
}

pub fn limits(in_flight: usize) -> Limits {
    Limits { kinds: Kind::ALL.to_vec(), in_flight, items: 64, input: 1 << 20, output: 1 << 20 }
}

pub fn batch(ticket: u64) -> Batch {
    let mut random = SmallRng::seed_from_u64(ticket);
    conformance::batch(Kind::Hash, ticket, 3, &mut || random.next_u64()).unwrap()
}

pub fn done(ticket: u64) -> Batch {
    let mut batch = batch(ticket);
    Executor::new().execute(&mut batch).unwrap();
    batch
}

fn conforms(device: &mut dyn Device, clock: &dyn Clock, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let report = conformance::run(device, clock, &mut || random.next_u64())
        .unwrap_or_else(|error| panic!("{}: {error}", device.name()));
    assert!(report.done > 12 && report.given_back > 0, "{report:?}");
}

#[test]
fn the_processor_in_the_callers_thread() {
    conforms(&mut Inline::new(3, Ticking::default()), &Ticking::default(), 1);
}

#[test]
fn threads_that_look_for_work_and_threads_that_sleep() {
    for (look_for, threads) in [(0, 1), (0, 3), (200_000, 2)] {
        let settings = Settings { threads, in_flight: 5, look_for };
        let mut workers = Workers::start(settings, &Tsc::process()).unwrap();
        conforms(&mut workers, &Tsc::process(), 2);
    }
}

#[test]
fn the_fake() {
    let mut fake = Fake::new(limits(4), 1500);
    fake.remote().heal(true);
    conforms(&mut fake, &Ticking::default(), 3);
}

#[test]
fn a_pair() {
    let fake = Fake::new(limits(4), 1500);
    fake.remote().heal(true);
    let settings = accel::fallback::Settings { patience: 1 << 40, retry_after: 100 };
    // Of whatever kind they are.
    let first: Box<dyn Device> = Box::new(fake);
    let mut pair = Fallback::new(first, Inline::new(4, Ticking::default()), settings);
    conforms(&mut pair, &Ticking::default(), 4);
    assert!(pair.counts().first > 0);
}

#[test]
fn a_full_queue_hands_the_batch_back_and_has_room_again_after_a_poll() {
    let mut devices: Vec<Box<dyn Device>> = vec![
        Box::new(Inline::new(2, Ticking::default())),
        Box::new(Workers::start(Settings { in_flight: 2, ..Settings::default() }, &Tsc::process()).unwrap()),
        Box::new(Fake::new(limits(2), 0)),
    ];
    for device in &mut devices {
        let now = Nanos(1);
        device.submit(batch(1), now).unwrap();
        device.submit(batch(2), now).unwrap();
        let Err(Rejected { batch: back, why: Refusal::Full }) = device.submit(batch(3), now) else {
            panic!("{} has no limit", device.name());
        };
        assert_eq!((back, device.in_flight()), (batch(3), 2));
        let mut ended = Vec::new();
        while ended.len() < 2 {
            device.poll(Tsc::process().now(), &mut ended);
        }
        assert_eq!(device.in_flight(), 0);
        device.submit(batch(3), now).unwrap();
    }
}

#[test]
fn work_on_a_batch_that_waits_starts_when_the_one_before_has_ended() {
    let mut workers =
        Workers::start(Settings { in_flight: 8, ..Settings::default() }, &Ticking::default()).unwrap();
    for ticket in 0..8 {
        workers.submit(batch(ticket), Nanos(0)).unwrap();
    }
    let mut ended = Vec::new();
    while ended.len() < 8 {
        workers.poll(Nanos(0), &mut ended);
    }
    for (at, completion) in ended.iter().enumerate() {
        assert_eq!(completion.batch, done(at as u64));
    }
    let order = |pair: &[accel::Completion]| pair[0].times.ended <= pair[1].times.started;
    assert!(ended.windows(2).all(order));
}

#[test]
fn a_fake_is_as_slow_as_it_is_told() {
    let mut fake = Fake::new(limits(4), 1000);
    fake.submit(batch(1), Nanos(50)).unwrap();
    let mut ended = Vec::new();
    assert_eq!(fake.poll(Nanos(1049), &mut ended), 0);
    assert_eq!(fake.poll(Nanos(1050), &mut ended), 1);
    let times = Times { submitted: Nanos(50), started: Nanos(50), ended: Nanos(1050) };
    assert_eq!((&ended[0].batch, ended[0].times), (&done(1), times));
}

#[test]
fn a_fake_fails_as_it_is_told() {
    let mut fake = Fake::new(limits(4), 0);
    let remote = fake.remote();
    let refusal = |fake: &mut Fake| fake.submit(batch(9), Nanos(0)).unwrap_err().why;
    let mut ended = Vec::new();

    remote.fail(Fault::OutOfMemory);
    assert!(matches!(refusal(&mut fake), Refusal::Broken(Failure::OutOfMemory { .. })));
    remote.fail(Fault::Full);
    assert_eq!(refusal(&mut fake), Refusal::Full);
    remote.fail(Fault::Status(7));
    fake.submit(batch(1), Nanos(0)).unwrap();
    fake.poll(Nanos(0), &mut ended);
    assert_eq!(ended[0].outcome, Err(Failure::Status(7)));
    assert_ne!(ended[0].batch, done(1));
    remote.fail(Fault::Silent);
    fake.submit(batch(2), Nanos(0)).unwrap();
    assert_eq!((fake.poll(Nanos(1 << 60), &mut ended), fake.in_flight()), (0, 1));
    remote.fail(Fault::Lost);
    assert_eq!(fake.poll(Nanos(0), &mut ended), 1);
    assert!(matches!(ended[1].outcome, Err(Failure::Lost(_))));
    assert!(matches!(refusal(&mut fake), Refusal::Failed(Failure::Lost(_))));
    assert!(fake.revive(Nanos(0)).is_err());
    remote.heal(true);
    assert!(fake.revive(Nanos(0)).is_ok() && fake.submit(batch(3), Nanos(0)).is_ok());
    assert_eq!(remote.revived(), 2);
}

/// What has no GPU says so, in words that people are shown.
#[test]
fn a_machine_without_a_gpu_says_that_there_is_none() {
    let shape = accel::ring::Shape::new(1, 64, 64).unwrap();
    let settings = accel::gpu::Settings::default();
    match accel::gpu::list() {
        Ok(gpus) => testing::skipped(format!("there is {}", gpus[0])),
        Err(why) => {
            assert!(why.to_string().starts_with("no CUDA device: "), "{why}");
            assert_eq!(accel::gpu::launching(0, settings).err(), Some(why.clone()));
            assert_eq!(accel::gpu::ring(0, shape, 1, 0).err(), Some(why.clone()));
            assert_eq!(accel::gpu::rings(0, 2, shape, 1, 0).err(), Some(why));
        }
    }
}
