#![allow(clippy::unwrap_used)]
use super::*;
use crate::frame::Frame;
use crate::mem::MemFrame;
use crate::port::{Port, RxQueue, TxQueue};
use crate::replay::WORDS;
use packet::MacAddr;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// A clock that is set by hand: a tick is a microsecond.
#[derive(Clone, Debug)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1)))
    }

    fn wait(&self, ticks: u64) {
        self.0.fetch_add(ticks, Ordering::Relaxed);
    }
}

impl Ticks for Hand {
    fn ticks(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn hz(&self) -> u64 {
        1_000_000
    }
}

fn weights(of: &[(usize, u16)]) -> Weights {
    let mut weights = [0; ENTRIES];
    of.iter().for_each(|(entry, weight)| weights[*entry] = *weight);
    weights
}

/// So many flows of each of these entries.
fn flows(entries: &[usize], each: u32) -> Vec<Patch> {
    let flow = |entry: &usize| {
        let hash = |n| *entry as u32 + n * ENTRIES as u32;
        (0..each)
            .map(move |n| Patch { words: [hash(n).to_be_bytes(); WORDS], hash: hash(n) })
            .collect::<Vec<_>>()
    };
    entries.iter().flat_map(flow).collect()
}

fn traffic<C: Ticks>(steps: &[Step], entries: &[usize], each: u32, queues: u16, clock: &C) -> Traffic<C> {
    let schedule = Schedule::new(steps, clock.hz()).unwrap();
    Traffic::new(&[7; 100], &[20], flows(entries, each), schedule, queues, 0.01, clock.clone()).unwrap()
}

fn port<C: Ticks>(traffic: &Traffic<C>, queues: u16, descriptors: usize) -> PacedPort<C> {
    let info = PacedPort::<C>::info("paced", MacAddr([2; 6]), 1_500, queues);
    PacedPort::new(info, traffic, traffic, queues, descriptors)
}

/// A packet's flow, number and due time.
fn stamp(frame: &MemFrame) -> (u32, u32, u64) {
    let whole = u128::from_ne_bytes(*frame.bytes().last_chunk().unwrap());
    ((whole >> 96) as u32, (whole >> 64) as u32, whole as u64)
}

#[test]
fn packets_come_when_they_are_due_in_the_proportion_of_their_weights() {
    let clock = Hand::new();
    let steps = [
        Step { seconds: 0.01, per_second: 10_000.0, weights: weights(&[(3, 1), (8, 3)]) },
        Step { seconds: 0.5, per_second: 0.0, weights: weights(&[]) },
        Step { seconds: 0.02, per_second: 1_000.0, weights: weights(&[(8, 1)]) },
    ];
    let traffic = traffic(&steps, &[8, 3], 2, 1, &clock);
    assert_eq!(traffic.packets(), 120);
    let (mut rx, mut tx) = port(&traffic, 1, 1_000).take_queue(0).unwrap();
    let mut frames = Vec::new();
    assert_eq!((rx.waiting(), rx.rx_burst(&mut frames, 1_000)), (0, 0), "not started");
    traffic.start(clock.ticks());
    clock.wait(99);
    assert_eq!(rx.rx_burst(&mut frames, 1_000), 0);
    clock.wait(1);
    assert_eq!(rx.rx_burst(&mut frames, 1_000), 1);
    assert_eq!(stamp(&frames[0]).2, 100);
    clock.wait(10_000);
    // Those that have come since the last poll, too.
    assert_eq!((rx.waiting(), rx.rx_burst(&mut frames, 10), rx.waiting()), (99, 10, 89));
    assert_eq!(rx.rx_burst(&mut frames, 1_000), 89);
    let dues: Vec<u64> = frames.iter().map(|frame| stamp(frame).2).collect();
    assert_eq!(dues, (1..=100).map(|n| n * 100).collect::<Vec<_>>());
    let of = |entry| frames.iter().filter(|f| f.rss_hash().unwrap() as usize % ENTRIES == entry).count();
    assert_eq!((of(3), of(8)), (25, 75));
    clock.wait(1_000_000);
    assert_eq!(rx.rx_burst(&mut frames, 1_000), 20);
    // The words are the flow's; the numbers of a flow follow each other.
    let mut next = HashMap::new();
    for frame in &frames {
        assert_eq!(
            (frame.len(), &frame.bytes()[20..24]),
            (100, &frame.rss_hash().unwrap().to_be_bytes()[..])
        );
        let expected = next.entry(frame.rss_hash().unwrap()).or_insert(0);
        assert_eq!(stamp(frame).1, *expected);
        *expected += 1;
    }
    assert_eq!(next.len(), 4);
    tx.tx_burst(&mut frames);
    let all = traffic.total(0..traffic.buckets());
    assert_eq!((all.arrived, all.delivered, all.reordered, all.lost_inside()), (120, 120, 0, 0));
    assert!(traffic.latency(0..1).nanos(1.0) > 1e9, "all waited to be sent");
}

#[test]
fn what_cant_be_is_refused() {
    let step = |seconds, per_second, of: &[(usize, u16)]| Step { seconds, per_second, weights: weights(of) };
    let endless =
        [step(f64::INFINITY, 1.0, &[(0, 1)]), step(1.0, -1.0, &[(0, 1)]), step(1e6, 1e6, &[(0, 1)])];
    for step in endless {
        assert_eq!(Schedule::new(&[step], 1).unwrap_err(), PacedError::Endless);
    }
    assert_eq!(Schedule::new(&[step(1.0, 2.0, &[])], 1).unwrap_err(), PacedError::Weights(0));
    let heavy: Vec<_> = (0..ENTRIES).map(|entry| (entry, u16::MAX)).collect();
    assert!(matches!(Schedule::new(&[step(1.0, 2.0, &heavy)], 1), Err(PacedError::Weights(_))));
    let made = |template: &[u8], offset, entries: &[usize]| {
        let schedule = Schedule::new(&[step(1.0, 2.0, &[(5, 1)])], 1_000_000).unwrap();
        Traffic::new(template, &[offset], flows(entries, 1), schedule, 1, 0.1, Hand::new()).map(|_| ())
    };
    assert_eq!(made(&[0; 60], 40, &[5]), Ok(()));
    assert_eq!(made(&[0; 60], 41, &[5]), Err(ReplayError::Offset { offset: 41, length: 44 }.into()));
    assert_eq!(
        made(&[0; 60], usize::MAX, &[5]),
        Err(ReplayError::Offset { offset: usize::MAX, length: 44 }.into())
    );
    assert_eq!(made(&[0; 60], 40, &[4]), Err(PacedError::NoFlow(5)));
}

#[test]
fn a_redirected_entry_s_older_packets_come_out_of_the_old_queue() {
    let clock = Hand::new();
    let steps = [Step { seconds: 0.1, per_second: 10_000.0, weights: weights(&[(0, 1), (1, 1)]) }];
    let traffic = traffic(&steps, &[0, 1], 1, 2, &clock);
    let mut port = port(&traffic, 2, 1_000);
    let (mut old, mut tx) = port.take_queue(0).unwrap();
    let (mut new, mut other) = port.take_queue(1).unwrap();
    assert!(port.take_queue(1).is_none() && port.take_queue(2).is_none());
    let mut table = port.redirection().unwrap();
    let (mut frames, mut later) = (Vec::new(), Vec::new());
    traffic.start(clock.ticks());
    clock.wait(10_000);
    old.rx_burst(&mut frames, 1);
    table.redirect(&[0, 600], 1).unwrap();
    assert!(table.redirect(&[0], 2).is_err());
    assert!(!table.settled(), "what comes next is dealt out already");
    clock.wait(10_000);
    assert!(table.settled());
    new.rx_burst(&mut later, 1_000);
    old.rx_burst(&mut frames, 1_000);
    // 200 packets, half of them of entry 0: of those, the first half and what was looked ahead came by the old queue.
    assert_eq!((frames.len(), later.len()), (51, 149));
    // Sent in the wrong order, those of the old queue are late; and so they are counted.
    other.tx_burst(&mut later);
    tx.tx_burst(&mut frames);
    let all = traffic.total(0..10);
    assert_eq!((all.sent, all.reordered), (200, 51));
    assert_eq!(traffic.count(1, 0..10).sent, 149);
    assert!(port.fixed(true).redirection().is_none(), "of a table that can't be changed");
}

#[test]
fn what_nobody_polled_for_is_told_from_what_nobody_could_take() {
    let clock = Hand::new();
    let steps = [Step { seconds: 1.0, per_second: 1_000.0, weights: weights(&[(0, 1)]) }];
    let traffic = traffic(&steps, &[0], 3, 1, &clock);
    let (mut rx, _) = port(&traffic, 1, 8).take_queue(0).unwrap();
    let mut frames = Vec::new();
    traffic.start(clock.ticks());
    let missed = || {
        let all = traffic.total(0..traffic.buckets());
        (all.missed, all.missed_in_gaps)
    };
    // Five come and one is taken; six more don't fit, though the ring was looked at in time.
    clock.wait(5_000);
    rx.rx_burst(&mut frames, 1);
    assert_eq!(missed(), (0, 0));
    clock.wait(6_000);
    rx.rx_burst(&mut frames, 8);
    assert_eq!(missed(), (2, 0));
    // Eleven come at once: an empty ring has room for eight.
    clock.wait(11_000);
    rx.rx_burst(&mut frames, 8);
    assert_eq!(missed(), (5, 3));
    // Three wait, and eleven come: no ring takes more than eight of these.
    clock.wait(3_000);
    rx.rx_burst(&mut frames, 0);
    clock.wait(11_000);
    rx.rx_burst(&mut frames, 0);
    assert_eq!(missed(), (11, 6));
}

#[test]
fn a_full_ring_misses_and_a_stopped_port_loses() {
    let clock = Hand::new();
    let steps = [Step { seconds: 1.0, per_second: 1_000.0, weights: weights(&[(0, 1)]) }];
    let traffic = traffic(&steps, &[0], 3, 1, &clock);
    let (mut rx, mut tx) = port(&traffic, 1, 8).take_queue(0).unwrap();
    let mut frames = Vec::new();
    assert_eq!(traffic.outage(0.1), None);
    traffic.start(clock.ticks());
    clock.wait(10_000);
    assert_eq!(rx.rx_burst(&mut frames, 3), 3);
    let all = |field: fn(&Counts) -> u64| field(&traffic.total(0..traffic.buckets()));
    assert_eq!((all(|c| c.arrived), all(|c| c.missed)), (10, 2));
    // Five wait, and one is dealt out ahead: it comes before the port stops, and waits too.
    let end = traffic.outage(0.1).unwrap();
    assert_eq!(end, 1 + 112_000);
    clock.wait(end - clock.ticks());
    assert_eq!(rx.rx_burst(&mut frames, 100), 0);
    assert_eq!(all(|c| c.down), 6 + 101);
    clock.wait(3_000);
    assert_eq!(rx.rx_burst(&mut frames, 100), 3);
    let taken = frames.len() as u64;
    tx.tx_burst(&mut frames);
    let all = traffic.total(0..traffic.buckets());
    assert_eq!((all.arrived, all.arrived - all.missed - all.down, all.reordered), (115, taken, 0));
    assert_eq!(all.lost_inside(), 0);
}

proptest! {
    /// Queues are polled and entries redirected at random, but a moved entry's old queue is drained before the new one is
    /// polled, as the engine does: then nothing is lost, doubled or out of order.
    #[test]
    fn every_packet_comes_once_and_in_order(
        moves in prop::collection::vec((0_u64..3_000, 0_u16..4, 0_u16..3, 1_usize..100), 1..40),
        rate in 5_000_u32..400_000,
        spread in prop::collection::vec(1_u16..5, 4),
    ) {
        let clock = Hand::new();
        let of: Vec<_> = spread.iter().copied().enumerate().collect();
        let step = |seconds, share| Step { seconds, per_second: f64::from(rate) * share, weights: weights(&of) };
        let traffic = traffic(&[step(0.02, 1.0), step(0.03, 0.3)], &[0, 1, 2, 3], 2, 3, &clock);
        let mut port = port(&traffic, 3, 1 << 20);
        let mut queues: Vec<_> = (0..3).map(|queue| port.take_queue(queue).unwrap()).collect();
        let mut table = port.redirection().unwrap();
        traffic.start(clock.ticks());
        let mut frames = Vec::new();
        let mut poll = |queues: &mut Vec<(PacedRx<Hand>, PacedTx<Hand>)>, queue: u16, most| {
            let (rx, tx) = &mut queues[usize::from(queue)];
            let n = rx.rx_burst(&mut frames, most);
            tx.tx_burst(&mut frames);
            n
        };
        let mut owners = [0, 1, 2, 0];
        for (wait, entry, queue, most) in moves {
            clock.wait(wait);
            (0..3).for_each(|queue| {
                poll(&mut queues, queue, most);
            });
            table.redirect(&[entry], queue).unwrap();
            while !table.settled() {
                clock.wait(1);
            }
            let old = std::mem::replace(&mut owners[usize::from(entry)], queue);
            for queue in [old, 0, 1, 2] {
                while poll(&mut queues, queue, 64) == 64 {}
            }
        }
        clock.wait(60_000);
        for queue in 0..3 {
            while poll(&mut queues, queue, 64) > 0 {}
        }
        let all = traffic.total(0..traffic.buckets());
        prop_assert_eq!(all.arrived, traffic.packets());
        prop_assert_eq!((all.missed, all.lost_inside(), all.reordered), (0, 0, 0));
        // Each flow's last number says that none was doubled.
        let last: u64 = traffic.0.expected.iter().map(|next| u64::from(next.load(Ordering::Relaxed))).sum();
        prop_assert_eq!(last, traffic.packets());
    }
}

#[test]
fn threads_that_poll_while_a_third_redirects_share_the_packets_out() {
    const ENTRIES_USED: usize = 8;
    let clock = Tsc::process();
    let of: Vec<_> = (0..ENTRIES_USED).map(|entry| (entry, 1)).collect();
    let entries: Vec<_> = (0..ENTRIES_USED).collect();
    let steps = [Step { seconds: 0.3, per_second: 400_000.0, weights: weights(&of) }];
    let traffic = traffic(&steps, &entries, 1, 2, &clock);
    let mut port = port(&traffic, 2, 1 << 20);
    let done = AtomicBool::new(false);
    let run = |mut rx: PacedRx| {
        let (mut frames, mut seen) = (Vec::new(), Vec::new());
        loop {
            let finished = done.load(Ordering::Acquire);
            let n = rx.rx_burst(&mut frames, 64);
            seen.extend(frames.drain(..).map(|frame| stamp(&frame)));
            if n == 0 && finished {
                return seen;
            }
            std::thread::yield_now();
        }
    };
    let (a, b) = (port.take_queue(0).unwrap().0, port.take_queue(1).unwrap().0);
    let mut table = port.redirection().unwrap();
    traffic.start(clock.ticks());
    let (first, second) = std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(|| run(a)), scope.spawn(|| run(b)));
        let end = clock.ticks() + clock.hz() * 32 / 100;
        let mut turn = 0_u16;
        while clock.ticks() < end {
            table.redirect(&[turn % ENTRIES_USED as u16], (turn / 3) % 2).unwrap();
            turn = turn.wrapping_add(1);
            std::thread::yield_now();
        }
        assert!(turn > 100, "{turn}");
        done.store(true, Ordering::Release);
        (a.join().unwrap(), b.join().unwrap())
    });
    assert!(!first.is_empty() && !second.is_empty());
    // A queue's packets come in the order in which they were due, and all of them once.
    assert!(first.is_sorted_by_key(|(_, _, due)| *due) && second.is_sorted_by_key(|(_, _, due)| *due));
    let mut numbers: Vec<_> =
        first.into_iter().chain(second).map(|(flow, number, _)| (flow, number)).collect();
    numbers.sort_unstable();
    let expected: Vec<_> =
        (0..ENTRIES_USED as u32).flat_map(|flow| (0..15_000).map(move |n| (flow, n))).collect();
    assert_eq!(numbers, expected);
}
