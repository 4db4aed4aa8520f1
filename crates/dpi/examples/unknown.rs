//! What does a datagram cost that nobody knows?
//!
//! `cargo run --release -p dpi --example unknown`: flows of one datagram each, of random octets and random ports, are looked into; how many
//! recognisers are asked about it, how many would be if only the first octet decided, and how long that takes. Nothing is asserted: it is to be
//! compared with another build on the same machine.

use dpi::Protocol;
use dpi::classify::{Carrier, Classifier, End, Examination, Limits, Room, Shown, Side};
use dpi::protocols::recognisers;
use std::time::Instant;
use tables::Nanos;

const FLOWS: usize = 20_000;
const OCTETS: usize = 200;

/// Xorshift.
struct Chance(u64);

impl Chance {
    const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn main() {
    let classifier = Classifier::new();
    let mut chance = Chance(0x5eed);
    let payloads: Vec<Vec<u8>> =
        (0..FLOWS).map(|_| (0..OCTETS).map(|_| chance.next() as u8).collect()).collect();
    let ports: Vec<u16> = (0..FLOWS).map(|_| 10_000 + (chance.next() % 50_000) as u16).collect();
    let look = |room: &mut Room| {
        let mut known = 0;
        for (payload, port) in payloads.iter().zip(&ports) {
            let client = End { address: [192, 0, 2, 1].into(), port: 40_000 };
            let server = End { address: [198, 51, 100, 1].into(), port: *port };
            let shown = Shown {
                now: Nanos(0),
                carrier: Carrier::Udp,
                side: Side::Client,
                client,
                server,
                segment: None,
                payload,
            };
            let mut examination = Examination::default();
            examination.step(&classifier, &Limits::USUAL, room, &shown);
            known += usize::from(examination.found().is_some());
            examination.give_back(room);
        }
        known
    };
    let mut traced = Room::new(16);
    traced.trace = Some(Vec::new());
    let known = look(&mut traced);
    let asked = traced.trace.map_or(0, |steps| steps.len());
    let by_octet = |octet: u8| {
        recognisers().filter(|it| it.carriers.has(Carrier::Udp) && it.first.allows(octet)).count()
    };
    let would: usize = payloads.iter().filter_map(|it| it.first()).map(|octet| by_octet(*octet)).sum();
    let mean = |count: usize| count as f64 / FLOWS as f64;
    println!("{} protocols; a datagram of {OCTETS} random octets, {FLOWS} of them", Protocol::ALL.len());
    println!("asked: {:.1}; by the first octet alone: {:.1}; known: {known}", mean(asked), mean(would));
    let mut room = Room::new(16);
    let mut times: Vec<u128> = (0..15)
        .map(|_| {
            let begun = Instant::now();
            look(&mut room);
            begun.elapsed().as_nanos() / FLOWS as u128
        })
        .collect();
    times.sort_unstable();
    println!("{} ns each (median of 15; {} to {})", times[7], times[0], times[14]);
}
