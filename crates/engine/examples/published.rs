//! What it costs a worker to publish its counters, and a reader to read them: `cargo run --release -p engine --example published`.

use counters::Words;
use datapath::{Counters, InterfaceCounters, SliceTraffic};
use engine::egress::ClassCounters;
use engine::{PortLoad, Publisher, WorkerReport};
use std::hint::black_box;
use tables::clock::Tsc;

const ROUNDS: usize = 2_001;
/// Slices that a worker writes down at once.
const AT_ONCE: usize = 64;

/// A worker's with so many ports, of eight classes each, and slices.
fn report(ports: usize, slices: usize) -> WorkerReport {
    WorkerReport {
        counters: Counters { interfaces: vec![InterfaceCounters::default(); ports], ..Counters::default() },
        ports: vec![PortLoad::default(); ports],
        egress: vec![vec![ClassCounters::default(); 8]; ports],
        slices: vec![[SliceTraffic::default(); 2]; slices],
        ..WorkerReport::default()
    }
}

fn ticks(clock: &Tsc, mut what: impl FnMut()) -> u64 {
    let begin = clock.ticks();
    what();
    clock.ticks() - begin
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let clock = Tsc::process();
    println!("medians of {ROUNDS}, in cycles");
    println!("ports slices  words   longest part  all parts     read");
    for (ports, slices) in [(2, 0), (4, 16), (16, 64), (16, 4_096)] {
        // As a worker does: the first slices at once, the others some at a time.
        let mut first = report(ports, slices);
        let others = first.slices.split_off(slices.min(AT_ONCE));
        let mut one = Vec::new();
        [SliceTraffic::default(); 2].put(&mut one);
        let mut publisher = Publisher::new(1_024);
        let published = publisher.published();
        let (mut longest, mut all, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut parts = vec![ticks(&clock, || {
                publisher.begin(|words| {
                    black_box(&first).put(words);
                    // It says how many slices there are, with those that follow.
                    let at = words.len() - first.slices.len() * one.len() - 1;
                    words.get_mut(at).into_iter().for_each(|length| *length = slices as u64);
                    others.len() * one.len()
                });
            })];
            for some in others.chunks(AT_ONCE) {
                let put = |words: &mut Vec<u64>| black_box(some).iter().for_each(|slice| slice.put(words));
                parts.push(ticks(&clock, || publisher.go_on(put)));
            }
            longest.push(parts.iter().copied().max().unwrap_or_default());
            all.push(parts.iter().sum());
            read.push(ticks(&clock, || {
                let words = published.read().unwrap_or_default();
                black_box(WorkerReport::take(&mut words.as_slice()));
            }));
        }
        let words = published.read().unwrap_or_default().len();
        let [longest, all, read] = [longest, all, read].map(median);
        println!("{ports:>5} {slices:>6} {words:>6} {longest:>14} {all:>10} {read:>8}");
    }
}
