//! The adapter over devices that are slow, full, wrong and lost on command, and over a ring.
#![allow(clippy::unwrap_used)]

use super::*;
use accel::fake::{Fake, Fault, Remote};
use accel::ring::{RingDevice, Shape, Thread};
use accel::{Kind, Limits};
use datapath::lookups::Lesson;
use std::sync::{Arc, Mutex};
use tables::Tsc;
use tables::hash::mix;

fn limits() -> Limits {
    Limits { kinds: Kind::ALL.to_vec(), in_flight: 4, items: 100, input: 1 << 12, output: 1 << 12 }
}

fn faked(limits: Limits, latency: u64) -> (Accelerated, Remote) {
    let fake = Fake::new(limits, latency);
    let remote = fake.remote();
    (Accelerated::open(Box::new(fake), 10_000).unwrap(), remote)
}

fn key(number: u64) -> u64 {
    mix(mix(number ^ 0x5eed, 0x9e37_79b9_7f4a_7c15), 0x3c6e_f372_fe94_f82b)
}

fn batch(number: u64, keys: impl IntoIterator<Item = u64>, lessons: &[(u64, u32)]) -> Batch {
    let mut batch = Batch::new();
    batch.number = number;
    batch.keys.extend(keys.into_iter().map(key));
    batch.lessons.extend(lessons.iter().map(|&(number, value)| Lesson { key: key(number), value }));
    batch
}

/// The next one, and what it says.
fn answers(device: &mut Accelerated, now: u64) -> Option<(u64, Vec<u32>)> {
    device.poll(Nanos(now)).unwrap().map(|batch| (batch.number, batch.answers))
}

#[test]
fn it_answers_late_and_in_order_what_it_was_taught() {
    let (mut device, remote) = faked(limits(), 1_000);
    device.submit(Nanos(0), batch(7, [1, 2], &[(1, 11), (2, u32::MAX - 1)])).unwrap();
    // The second is back first.
    remote.take(10);
    device.submit(Nanos(5), batch(9, [2, 3, 1], &[(1, UNKNOWN), (3, 0)])).unwrap();
    assert_eq!(answers(&mut device, 8), None);
    device.submit(Nanos(9), batch(10, [], &[(4, 4)])).unwrap();
    remote.take(1_000);
    assert_eq!(answers(&mut device, 999), None, "the first is not back");
    // The fake looks up when it is asked for what has ended: both see all that was taught until then, and neither is steady.
    assert_eq!(answers(&mut device, 1_005), Some((7, vec![UNKNOWN, u32::MAX - 1])));
    assert_eq!(answers(&mut device, 1_005), Some((9, vec![u32::MAX - 1, 0, UNKNOWN])));
    assert_eq!(answers(&mut device, 1_005), Some((10, vec![])));
    assert_eq!(answers(&mut device, 9_000), None);
    device.submit(Nanos(9_000), batch(11, [4], &[])).unwrap();
    assert_eq!(answers(&mut device, 19_000), Some((11, vec![4])), "taught by a batch without questions");
}

#[test]
fn what_is_more_than_the_device_takes_is_not_known() {
    let (mut device, _) = faked(limits(), 0);
    let lessons: Vec<_> = (0..128).map(|number| (number, number as u32)).collect();
    device.submit(Nanos(0), batch(1, 0..128, &lessons)).unwrap();
    assert_eq!(answers(&mut device, 0), Some((1, (0..100).collect())));
    for unfit in [
        Limits { items: 0, ..limits() },
        Limits { input: 7, ..limits() },
        Limits { output: 3, ..limits() },
        Limits { in_flight: 0, ..limits() },
        Limits { kinds: vec![Kind::Hash], ..limits() },
    ] {
        let refused = Accelerated::open(Box::new(Fake::new(unfit, 0)), 1);
        assert_eq!(refused.unwrap_err(), Unfit::Incapable("fake".into()));
    }
}

#[test]
fn who_is_full_or_has_no_memory_gives_the_batch_back() {
    let (mut device, remote) = faked(limits(), 1_000);
    for number in 0..4 {
        device.submit(Nanos(0), batch(number, [number], &[(number, 1)])).unwrap();
    }
    let Err(Refused::Full(back)) = device.submit(Nanos(0), batch(4, [4, 5], &[])) else { panic!("not full") };
    assert_eq!(back, batch(4, [4, 5], &[]));
    assert_eq!(answers(&mut device, 1_000), Some((0, vec![1])));
    device.submit(Nanos(1_000), back).unwrap();
    while answers(&mut device, 5_000).is_some() {}
    for fault in [Fault::Full, Fault::OutOfMemory] {
        remote.fail(fault);
        assert!(matches!(device.submit(Nanos(6_000), batch(5, [4], &[(4, 9)])), Err(Refused::Full(_))));
    }
    remote.fail(Fault::None);
    device.submit(Nanos(6_000), batch(6, [4], &[])).unwrap();
    assert_eq!(answers(&mut device, 7_000), Some((6, vec![9])), "lessons of those that were refused count");
}

#[test]
fn who_never_answers_is_full_in_the_end() {
    let (mut device, remote) = faked(limits(), 0);
    remote.fail(Fault::Silent);
    let taken =
        (0..100).filter(|number| device.submit(Nanos(*number), batch(*number, [1], &[(1, 1)])).is_ok());
    assert_eq!(taken.count(), 4);
    assert_eq!(answers(&mut device, 1 << 60), None);
    // All that were taken come back, in order, if it awakes.
    remote.fail(Fault::None);
    for number in 0..4 {
        assert_eq!(answers(&mut device, 1 << 60), Some((number, vec![1])));
    }
}

#[test]
fn a_batch_that_fails_comes_back_without_answers_and_one_that_comes_twice_once() {
    let (mut device, remote) = faked(limits(), 10);
    for (fault, right) in [(Fault::Status(3), vec![]), (Fault::Twice, vec![5]), (Fault::None, vec![5])] {
        remote.fail(fault);
        for number in 0..3 {
            device.submit(Nanos(0), batch(number, [1], &[(1, 5)])).unwrap();
        }
        for number in 0..3 {
            assert_eq!(answers(&mut device, 10), Some((number, right.clone())), "{fault:?}");
        }
        assert_eq!(answers(&mut device, 1_000), None);
    }
}

#[test]
fn who_is_lost_stays_lost_and_gives_what_was_back() {
    let (mut device, remote) = faked(limits(), 10);
    device.submit(Nanos(0), batch(1, [1], &[(1, 5)])).unwrap();
    device.submit(Nanos(5), batch(2, [1], &[])).unwrap();
    // The first is back, the second isn't.
    assert!(matches!(device.submit(Nanos(10), batch(3, [1], &[])), Ok(())));
    remote.fail(Fault::Lost);
    assert_eq!(answers(&mut device, 10), Some((1, vec![5])));
    let lost = Lost("the device is lost: as it was told".into());
    assert_eq!(device.poll(Nanos(10)), Err(lost.clone()));
    remote.heal(true);
    remote.fail(Fault::None);
    assert_eq!(device.poll(Nanos(100)), Err(lost.clone()));
    assert!(matches!(device.submit(Nanos(100), batch(4, [1], &[])), Err(Refused::Lost(why)) if why == lost));
    assert_eq!(remote.revived(), 0);
    // Lost when it is given something.
    let (mut device, remote) = faked(limits(), 10);
    remote.fail(Fault::Lost);
    assert!(matches!(device.submit(Nanos(0), batch(1, [1], &[])), Err(Refused::Lost(_))));
}

/// What a [`Crooked`] does that no device may, or that a [`Fake`] doesn't.
#[derive(Debug, Default)]
struct Habits {
    /// How often a copy may still follow its table.
    follows: u32,
    /// How often it was asked what has ended.
    polls: u32,
    /// What batches end with.
    ends_with: Option<Failure>,
    /// Each batch comes once more with what ends next, this way.
    echo: Option<Result<(), Failure>>,
}

struct Crooked {
    fake: Fake,
    habits: Arc<Mutex<Habits>>,
    echoes: Vec<Completion>,
}

impl Crooked {
    fn new(follows: u32) -> (Self, Arc<Mutex<Habits>>) {
        let habits = Arc::new(Mutex::new(Habits { follows, ..Habits::default() }));
        let device = Self { fake: Fake::new(limits(), 10), habits: Arc::clone(&habits), echoes: Vec::new() };
        (device, habits)
    }

    fn opened() -> (Accelerated, Arc<Mutex<Habits>>) {
        let (device, habits) = Self::new(u32::MAX);
        (Accelerated::open(Box::new(device), 100).unwrap(), habits)
    }
}

impl Device for Crooked {
    fn name(&self) -> &str {
        self.fake.name()
    }
    fn limits(&self) -> Limits {
        self.fake.limits()
    }
    fn submit(&mut self, batch: accel::Batch, now: Nanos) -> Result<(), Rejected> {
        self.fake.submit(batch, now)
    }
    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let mut habits = self.habits.lock().unwrap();
        habits.polls += 1;
        let before = ended.len();
        if self.fake.poll(now, ended) > 0 {
            let last = std::mem::take(&mut self.echoes);
            if let Some(outcome) = &habits.echo {
                let again = |one: &Completion| Completion {
                    batch: one.batch.clone(),
                    outcome: outcome.clone(),
                    times: one.times,
                    steady: one.steady,
                };
                self.echoes.extend(ended[before..].iter().map(again));
            }
            if let Some(failure) = &habits.ends_with {
                ended[before..].iter_mut().for_each(|one| one.outcome = Err(failure.clone()));
            }
            ended.extend(last);
        }
        ended.len() - before
    }
    fn in_flight(&self) -> usize {
        self.fake.in_flight()
    }
    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.fake.abandon(now, ended);
    }
    fn revive(&mut self, now: Nanos) -> Result<(), Failure> {
        self.fake.revive(now)
    }
    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        let mut habits = self.habits.lock().unwrap();
        let left = habits.follows.checked_sub(1);
        habits.follows = left.ok_or(Failure::OutOfMemory { octets: 64, what: "a table" })?;
        self.fake.follow(table, image, changes)
    }
}

#[test]
fn a_copy_that_does_not_follow_is_none() {
    let open = |follows| Accelerated::open(Box::new(Crooked::new(follows).0), 100);
    assert!(matches!(open(0), Err(Unfit::Failed(Failure::OutOfMemory { .. }))));
    let mut device = open(1).unwrap();
    device.submit(Nanos(0), batch(1, [1], &[])).unwrap();
    assert_eq!(answers(&mut device, 10), Some((1, vec![UNKNOWN])));
    let Err(Refused::Lost(lost)) = device.submit(Nanos(0), batch(1, [1], &[(1, 1)])) else { panic!("taken") };
    assert_eq!(lost.0, "the device has no 64 octets of memory for a table");
}

#[test]
fn answers_go_to_their_own_batch_while_others_come_and_go() {
    let (mut device, _) = faked(limits(), 10);
    let lessons: Vec<_> = (0..40).map(|number| (number, 100 + number as u32)).collect();
    device.submit(Nanos(0), batch(0, [], &lessons)).unwrap();
    assert_eq!(answers(&mut device, 0), Some((0, vec![])));
    // One more every 5, each under way for 10.
    for number in 1..40 {
        let mut next = batch(number, [number], &[]);
        next.answers.push(7);
        device.submit(Nanos(5 * number), next).unwrap();
        let back = (number > 2).then(|| (number - 2, vec![100 + number as u32 - 2]));
        assert_eq!(answers(&mut device, 5 * number), back);
    }
}

#[test]
fn what_nobody_has_taken_takes_room() {
    let (mut device, _) = faked(Limits { in_flight: 1_000, ..limits() }, 0);
    let taken = (0..100).filter(|number| device.submit(Nanos(0), batch(*number, [1], &[])).is_ok());
    assert_eq!(taken.count(), MOST);
    for number in 0..MOST as u64 {
        assert_eq!(answers(&mut device, 0), Some((number, vec![UNKNOWN])));
    }
    // Who is full isn't told anything, and who is told too much learns a part.
    let (mut device, _) = faked(limits(), 0);
    let lessons: Vec<_> = (0..=Batch::LESSONS as u64).map(|number| (number, number as u32)).collect();
    device.submit(Nanos(0), batch(0, [], &lessons)).unwrap();
    for number in 1..4 {
        device.submit(Nanos(0), batch(number, [1], &[])).unwrap();
    }
    assert!(matches!(device.submit(Nanos(0), batch(4, [1], &[(1_000, 1)])), Err(Refused::Full(_))));
    while answers(&mut device, 0).is_some() {}
    let last = Batch::LESSONS as u64;
    device.submit(Nanos(0), batch(5, [1_000, last - 1, last], &[])).unwrap();
    assert_eq!(answers(&mut device, 0), Some((5, vec![UNKNOWN, last as u32 - 1, UNKNOWN])));
}

/// Batches for the device are as many as it has room for, whatever happens.
#[test]
fn batches_are_used_again() {
    let (mut device, remote) = faked(limits(), 0);
    assert_eq!(device.spare.len(), 4);
    for fault in [Fault::Full, Fault::OutOfMemory, Fault::Twice, Fault::Status(1), Fault::None] {
        remote.fail(fault);
        for number in 0..10 {
            _ = device.submit(Nanos(0), batch(number, [1], &[]));
            _ = device.submit(Nanos(0), batch(number, [], &[]));
            while answers(&mut device, 0).is_some() {}
            assert_eq!((device.spare.len(), device.taken.len()), (4, 0), "{fault:?}");
        }
    }
}

#[test]
fn a_batch_that_had_no_memory_fails_alone_and_another_failure_is_the_device_s() {
    let (mut device, habits) = Crooked::opened();
    for number in 0..3 {
        device.submit(Nanos(0), batch(number, [1], &[(1, 5)])).unwrap();
    }
    habits.lock().unwrap().ends_with = Some(Failure::OutOfMemory { octets: 1, what: "a batch" });
    for number in 0..3 {
        assert_eq!(answers(&mut device, 10), Some((number, vec![])));
    }
    device.submit(Nanos(20), batch(3, [1], &[])).unwrap();
    habits.lock().unwrap().ends_with = Some(Failure::Panicked);
    let lost = Lost("what computes the batch has panicked".into());
    assert_eq!(device.poll(Nanos(30)), Err(lost.clone()));
    // It is not called any more.
    let calls = || {
        let habits = habits.lock().unwrap();
        (habits.polls, habits.follows)
    };
    let before = calls();
    assert_eq!(device.poll(Nanos(40)), Err(lost.clone()));
    assert!(
        matches!(device.submit(Nanos(40), batch(4, [1], &[(1, 6)])), Err(Refused::Lost(why)) if why == lost)
    );
    assert_eq!(calls(), before);
}

#[test]
fn what_comes_again_later_is_nobody_s() {
    for echo in [Ok(()), Err(Failure::Panicked)] {
        let (mut device, habits) = Crooked::opened();
        habits.lock().unwrap().echo = Some(echo.clone());
        let lessons: Vec<_> = (0..40).map(|number| (number, 100 + number as u32)).collect();
        device.submit(Nanos(0), batch(0, [0], &lessons)).unwrap();
        assert_eq!(answers(&mut device, 10), Some((0, vec![100])));
        // With each that ends comes the one before it, whose place others have by now; two are under way.
        for number in 1..40 {
            device.submit(Nanos(20 + 5 * number), batch(number, [number], &[])).unwrap();
            let back = (number > 2).then(|| (number - 2, vec![100 + number as u32 - 2]));
            assert_eq!(answers(&mut device, 20 + 5 * number), back, "{echo:?}");
        }
    }
}

/// A thread plays the GPU. What it says may be older than what it was told last, but never wrong for a key that was never told anything else, and in the
/// end it is all that it was told.
#[test]
fn a_ring_answers_what_the_memo_has() {
    let shape = Shape::new(8, 1024, 512).unwrap();
    let ring = RingDevice::start(Thread::new(Tsc::process()), shape, Batch::QUESTIONS).unwrap();
    let mut device = Accelerated::open(Box::new(ring), 1 << 14).unwrap();
    let clock = Tsc::process();
    let (mut asked, mut back, mut known, mut full) = (0_u64, 0_u64, 0, 0);
    // Half of them never change: their value is their number.
    let value = |number: u64, round: u64| {
        (if number.is_multiple_of(2) { number } else { round << 16 | number }) as u32
    };
    while back < 2_000 {
        if asked < 2_000 {
            let of = |at: u64| mix(asked << 8 | at, 0x9e37_79b9_7f4a_7c15) % 4_000;
            let lessons: Vec<_> = (0..128).map(|at| (of(at), value(of(at), asked))).collect();
            match device.submit(clock.now(), batch(asked, (0..128).map(of), &lessons)) {
                Ok(()) => asked += 1,
                Err(Refused::Full(_)) => full += 1,
                Err(Refused::Lost(lost)) => panic!("{lost}"),
            }
        }
        while let Some(found) = device.poll(clock.now()).unwrap() {
            assert_eq!((found.number, found.answers.len()), (back, 128));
            let of = |at: u64| mix(back << 8 | at, 0x9e37_79b9_7f4a_7c15) % 4_000;
            for (at, answer) in (0..).zip(found.answers).filter(|(at, _)| of(*at).is_multiple_of(2)) {
                known += u32::from(answer == of(at) as u32);
            }
            back += 1;
        }
    }
    assert!(known > 60_000, "{known} of 128,000; full {full}");
    // Nothing changes any more.
    for number in (0..4_000).step_by(100) {
        device.submit(clock.now(), batch(number, number..number + 100, &[])).unwrap();
        let found = loop {
            if let Some(found) = device.poll(clock.now()).unwrap() {
                break found;
            }
        };
        let right = found.keys.iter().map(|key| tables::Lookup::lookup(&device.memo, key).unwrap_or(UNKNOWN));
        assert_eq!(found.answers, right.collect::<Vec<_>>());
    }
}
