//! What it costs a worker to publish its counters, and a reader to read them: `cargo run --release -p engine --example published`.

use counters::Words;
use datapath::{Counters, InterfaceCounters, SliceTraffic};
use engine::egress::ClassCounters;
use engine::{PortLoad, Publisher, WorkerReport};
use std::hint::black_box;
use tables::clock::Tsc;

const ROUNDS: u64 = 2_000;

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

fn main() {
    let clock = Tsc::process();
    println!("ports slices  words  publish (cycles)  read (cycles)");
    for (ports, slices) in [(2, 0), (4, 16), (16, 64), (16, 4_096)] {
        let report = report(ports, slices);
        let mut publisher = Publisher::new(1_024);
        let published = publisher.published();
        let begin = clock.ticks();
        for _ in 0..ROUNDS {
            // As a worker does: it makes a report first.
            let report = black_box(&report).clone();
            publisher.publish(|words| report.put(words));
        }
        let publishing = (clock.ticks() - begin) / ROUNDS;
        let begin = clock.ticks();
        for _ in 0..ROUNDS {
            let words = published.read().unwrap_or_default();
            black_box(WorkerReport::take(&mut words.as_slice()));
        }
        let reading = (clock.ticks() - begin) / ROUNDS;
        let words = published.read().unwrap_or_default().len();
        println!("{ports:>5} {slices:>6} {words:>6} {publishing:>17} {reading:>14}");
    }
}
