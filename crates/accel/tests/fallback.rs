//! Whatever a device does: nothing is lost, nothing comes twice, and each caller's batches come in order.

use crate::devices::{Ticking, batch, done, limits};
use accel::cpu::Inline;
use accel::fake::{Fake, Fault, Remote};
use accel::fallback::{Counts, Settings};
use accel::task::Caller;
use accel::{Device, Failure, Fallback, Kind, Limits, Refusal, Rejected};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tables::Nanos;

type Pair = Fallback<Fake, Inline<Ticking>>;

const SETTINGS: Settings = Settings { patience: 10_000, retry_after: 50_000 };

fn pair(latency: u64) -> (Pair, Remote) {
    let fake = Fake::new(limits(4), latency);
    let remote = fake.remote();
    (Fallback::new(fake, Inline::new(2, Ticking::default()), SETTINGS), remote)
}

/// Tickets of what has come back by `now`, all of it right.
fn back(pair: &mut Pair, now: u64) -> Vec<u64> {
    let mut ended = Vec::new();
    pair.poll(Nanos(now), &mut ended);
    ended
        .iter()
        .map(|completion| {
            assert_eq!(completion.outcome, Ok(()));
            assert_eq!(completion.batch.output(), done(completion.batch.ticket).output());
            completion.batch.ticket
        })
        .collect()
}

#[test]
fn as_long_as_the_first_works_it_does_all() {
    let (mut pair, _) = pair(100);
    (0..4).for_each(|ticket| pair.submit(batch(ticket), Nanos(ticket)).unwrap());
    assert_eq!(back(&mut pair, 102), [0, 1, 2]);
    assert_eq!((back(&mut pair, 103), pair.in_flight()), (vec![3], 0));
    assert_eq!(pair.counts(), Counts { first: 4, ..Counts::default() });
}

#[test]
fn a_device_lost_mid_run_loses_nothing() {
    let (mut pair, remote) = pair(100);
    (0..4).for_each(|ticket| pair.submit(batch(ticket), Nanos(ticket)).unwrap());
    assert_eq!(back(&mut pair, 100), [0]);
    remote.fail(Fault::Lost);
    // The second has room for two.
    assert_eq!(back(&mut pair, 101), [1, 2]);
    assert!(matches!(pair.failure(), Some(Failure::Lost(_))));
    assert_eq!(back(&mut pair, 102), [3]);
    pair.submit(batch(9), Nanos(103)).unwrap();
    assert_eq!(back(&mut pair, 103), [9]);
    let expected = Counts { first: 1, second: 4, redone: 3, given_up: 1, ..Counts::default() };
    assert_eq!((pair.counts(), pair.in_flight()), (expected, 0));
}

#[test]
fn a_device_that_does_not_answer_is_given_up_and_tried_again_later() {
    let (mut pair, remote) = pair(100);
    remote.fail(Fault::Silent);
    pair.submit(batch(1), Nanos(0)).unwrap();
    assert_eq!(back(&mut pair, SETTINGS.patience), []);
    assert_eq!(back(&mut pair, SETTINGS.patience + 1), [1]);
    assert_eq!(pair.failure(), Some(&Failure::Abandoned));
    // Not before its time.
    let later = SETTINGS.patience + 1 + SETTINGS.retry_after;
    pair.submit(batch(2), Nanos(later - 1)).unwrap();
    assert_eq!((back(&mut pair, later - 1), remote.revived()), (vec![2], 0));
    // It is tried, in vain, and then not at once again.
    pair.submit(batch(3), Nanos(later)).unwrap();
    pair.submit(batch(4), Nanos(later + 1)).unwrap();
    assert_eq!((back(&mut pair, later + 1), remote.revived()), (vec![3, 4], 1));
    remote.heal(true);
    pair.submit(batch(5), Nanos(later + SETTINGS.retry_after)).unwrap();
    assert_eq!((back(&mut pair, later + SETTINGS.retry_after + 100), pair.failure()), (vec![5], None));
    let expected = Counts { first: 1, second: 4, redone: 1, given_up: 1, revived: 1, ..Counts::default() };
    assert_eq!(pair.counts(), expected);
}

#[test]
fn a_device_without_memory_keeps_what_it_has_and_the_processor_does_the_rest() {
    let (mut pair, remote) = pair(100);
    pair.submit(batch(1), Nanos(0)).unwrap();
    remote.fail(Fault::OutOfMemory);
    pair.submit(batch(2), Nanos(0)).unwrap();
    assert_eq!(back(&mut pair, 99), [2]);
    assert_eq!((back(&mut pair, 100), pair.failure()), (vec![1], None));
    assert_eq!(pair.counts(), Counts { first: 1, second: 1, ..Counts::default() });
}

#[test]
fn a_batch_with_a_bad_status_is_done_again() {
    let (mut pair, remote) = pair(0);
    remote.fail(Fault::Status(3));
    pair.submit(batch(1), Nanos(0)).unwrap();
    assert_eq!((back(&mut pair, 0), pair.failure()), (vec![1], None));
    assert_eq!(pair.counts(), Counts { second: 1, redone: 1, ..Counts::default() });
}

#[test]
fn what_comes_a_second_time_is_dropped() {
    let (mut pair, remote) = pair(0);
    remote.fail(Fault::Twice);
    pair.submit(batch(1), Nanos(0)).unwrap();
    pair.submit(batch(2), Nanos(0)).unwrap();
    assert_eq!(back(&mut pair, 0), [1, 2]);
    assert_eq!(pair.counts(), Counts { first: 2, strays: 2, ..Counts::default() });
}

#[test]
fn what_a_device_gives_back_after_it_was_given_up_is_dropped() {
    let (mut pair, remote) = pair(0);
    remote.fail(Fault::Late);
    (1..4).for_each(|ticket| pair.submit(batch(ticket), Nanos(0)).unwrap());
    // Of three, the second has room for two at a time.
    assert_eq!(back(&mut pair, SETTINGS.patience + 1), [1, 2]);
    assert_eq!(back(&mut pair, SETTINGS.patience + 1), [3]);
    let expected = Counts { second: 3, redone: 3, given_up: 1, strays: 3, ..Counts::default() };
    assert_eq!((pair.counts(), pair.in_flight()), (expected, 0));
}

#[test]
fn what_only_the_second_can_do_goes_there() {
    let small = Limits { kinds: vec![Kind::Nea2], ..limits(4) };
    let second = Inline::new(2, Ticking::default());
    let mut pair: Pair = Fallback::new(Fake::new(small, 0), second, SETTINGS);
    pair.submit(batch(1), Nanos(0)).unwrap();
    assert_eq!(back(&mut pair, 0), [1]);
    let tiny = Limits { input: 10, ..limits(4) };
    let second = Inline::new(2, Ticking::default());
    let mut pair: Pair = Fallback::new(Fake::new(tiny, 0), second, SETTINGS);
    pair.submit(batch(1), Nanos(0)).unwrap();
    assert_eq!((back(&mut pair, 0), pair.counts().second), (vec![1], 1));
}

#[test]
fn a_full_device_is_back_pressure_and_no_reason_to_use_the_processor() {
    let (mut pair, remote) = pair(0);
    remote.fail(Fault::Full);
    let Err(Rejected { batch: same, why: Refusal::Full }) = pair.submit(batch(7), Nanos(0)) else {
        panic!("it was taken");
    };
    assert_eq!((same, pair.in_flight()), (batch(7), 0));
}

#[test]
fn a_caller_gets_batches_in_order_and_others_do_not_wait_for_it() {
    let (mut pair, remote) = pair(100);
    let of = |ticket, caller| {
        let mut batch = batch(ticket);
        batch.caller = caller;
        batch
    };
    pair.submit(of(0, Some(Caller(1))), Nanos(0)).unwrap();
    remote.fail(Fault::OutOfMemory);
    // These the processor does at once.
    pair.submit(of(1, Some(Caller(1))), Nanos(0)).unwrap();
    pair.submit(of(2, Some(Caller(2))), Nanos(0)).unwrap();
    assert_eq!(back(&mut pair, 50), [2]);
    pair.submit(of(3, None), Nanos(0)).unwrap();
    assert_eq!((back(&mut pair, 60), pair.in_flight()), (vec![3], 2));
    assert_eq!((back(&mut pair, 100), pair.in_flight()), (vec![0, 1], 0));
}

#[test]
fn both_given_up_all_comes_back_in_order() {
    let (mut pair, remote) = pair(100);
    for ticket in 0..4 {
        let mut batch = batch(ticket);
        batch.caller = Some(Caller(0));
        pair.submit(batch, Nanos(0)).unwrap();
    }
    remote.fail(Fault::Silent);
    let mut ended = Vec::new();
    pair.abandon(Nanos(1), &mut ended);
    assert_eq!(ended.iter().map(|one| one.batch.ticket).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(ended.iter().all(|one| one.outcome == Err(Failure::Abandoned)));
    assert_eq!(pair.in_flight(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Submit(Option<u32>),
    Poll,
    Wait(u64),
    Fail(Fault),
    Heal(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop::sample::select(vec![
        Fault::None,
        Fault::None,
        Fault::Lost,
        Fault::Silent,
        Fault::OutOfMemory,
        Fault::Full,
        Fault::Status(1),
        Fault::Twice,
        Fault::Late,
    ]);
    prop_oneof![
        8 => prop::option::of(0..3u32).prop_map(Step::Submit),
        4 => Just(Step::Poll),
        3 => (0..30_000u64).prop_map(Step::Wait),
        1 => fault.prop_map(Step::Fail),
        1 => any::<bool>().prop_map(Step::Heal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_lost_nothing_comes_twice_and_callers_have_their_order(
        steps in prop::collection::vec(step(), 1..200),
        latency in 0..20_000u64,
    ) {
        let (mut pair, remote) = pair(latency);
        let (mut now, mut ticket) = (0, 0);
        // What is out, and each caller's next ticket.
        let mut out: BTreeMap<u64, Option<u32>> = BTreeMap::new();
        let check = |pair: &mut Pair, out: &mut BTreeMap<u64, Option<u32>>, now: u64| {
            let tickets = back(pair, now);
            for ticket in tickets {
                let caller = out.remove(&ticket).expect("known, and not back before");
                let earlier = out.iter().any(|(other, of)| *other < ticket && of.is_some() && *of == caller);
                assert!(!earlier, "{ticket} came before its turn");
            }
            assert_eq!(pair.in_flight(), out.len());
        };
        for step in steps {
            match step {
                Step::Submit(caller) => {
                    let mut one = batch(ticket);
                    one.caller = caller.map(Caller);
                    match pair.submit(one, Nanos(now)) {
                        Ok(()) => { out.insert(ticket, caller); }
                        Err(Rejected { batch: same, why }) => {
                            prop_assert_eq!(why, Refusal::Full);
                            prop_assert_eq!(same.ticket, ticket);
                        }
                    }
                    ticket += 1;
                }
                Step::Poll => check(&mut pair, &mut out, now),
                Step::Wait(nanos) => now += nanos,
                Step::Fail(fault) => remote.fail(fault),
                Step::Heal(heals) => remote.heal(heals),
            }
            prop_assert!(pair.in_flight() <= pair.limits().in_flight);
        }
        // However it ended, all comes back within the device's patience and a few polls.
        now += SETTINGS.patience + 1;
        for _ in 0..8 {
            check(&mut pair, &mut out, now);
        }
        prop_assert!(out.is_empty(), "{out:?}");
    }
}
