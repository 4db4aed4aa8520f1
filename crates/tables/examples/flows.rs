//! What the table of flows costs: cycles per look-up, bytes per flow, and how long its worst insertion takes, in one run:
//! `cargo run --release -p tables --example flows` (or with two numbers at the end: so many tables, so many flows). Takes 6 GiB.
//!
//! On a shared machine the longest of 16 million short intervals is always an interruption, see what "nothing" takes at worst. So
//! the same insertions are made three times, and of each the shortest time counts: what is the table's own doing takes long
//! every time. First writes to pages, of which only the first round has many, are printed by themselves.
#![allow(clippy::unwrap_used)]

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::hint::black_box;
use tables::hash::mix;
use tables::{FlowKey, FlowTable, FlowValue, Lookup, Nanos, Tsc};

const LOOKUPS: usize = 1 << 20;
const RUNS: usize = 9;
const BURST: usize = 64;
/// Rounds of the same insertions.
const ROUNDS: usize = 3;

/// A 5-tuple with what else decides, 36 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key([u32; 9]);

impl Key {
    fn of(index: u32) -> Self {
        Self([
            0x2001_0db8,
            index >> 8,
            0,
            index,
            0x0a00_0000 | index >> 4,
            0,
            index << 16 | 0x01bb,
            index >> 4,
            17,
        ])
    }
}

impl FlowKey for Key {
    #[inline(always)]
    fn hash(&self, seed: u64) -> u64 {
        let [a, b, c, d, e, f, g, h, i] = self.0;
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let one = mix(word(a, b) ^ seed, word(c, d) ^ seed.rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15);
        let other = mix(word(e, f) ^ seed.rotate_left(41), word(g, h) ^ seed ^ 0x3c6e_f372_fe94_f82b);
        mix(one ^ u64::from(i), other ^ seed.rotate_left(11))
    }
}

/// Counters and an age, 28 bytes.
#[derive(Clone, Copy)]
struct Value {
    last: [u32; 2],
    counts: [u32; 5],
}

impl FlowValue for Value {
    #[inline(always)]
    fn deadline(&self) -> Nanos {
        let [low, high] = self.last;
        Nanos(u64::from(low) | u64::from(high) << 32).plus(30 * Nanos::SECOND)
    }
}

impl Value {
    fn new(now: u64) -> Self {
        Self { last: [now as u32, (now >> 32) as u32], counts: [0; 5] }
    }
}

type Table = FlowTable<Key, Value>;

fn shard(index: u32, tables: usize) -> usize {
    ((u64::from(index.wrapping_mul(0x9e37_79b1)) * tables as u64) >> 32) as usize
}

/// Times in ticks of the clock: their worst, and the one that only one in ten thousand exceeds, in microseconds.
fn worst(times: &mut [u32]) -> String {
    let hz = Tsc::process().hz() as f64;
    times.sort_unstable();
    let us = |ticks: u32| f64::from(ticks) * 1e6 / hz;
    let over = |limit: f64| times.len() - times.partition_point(|ticks| us(*ticks) <= limit);
    format!(
        "max {:>8.1} us, p99.99 {:>6.1} us, above 50 us {:>4}",
        us(times.last().copied().unwrap_or(0)),
        us(times.get(times.len() * 9999 / 10000).copied().unwrap_or(0)),
        over(50.0),
    )
}

/// Fills tables with flows that come 2 us apart; returns them with the time of each insertion.
fn fill(tables: usize, flows: u32, limit: u32) -> (Vec<Table>, Vec<u32>) {
    let mut rng = SmallRng::seed_from_u64(2);
    let mut tables: Vec<Table> = (0..tables).map(|_| Table::new(rng.random(), limit, Nanos(0))).collect();
    let mut times = vec![1; flows as usize];
    let clock = Tsc::process();
    let count = tables.len();
    for index in 0..flows {
        let table = &mut tables[shard(index, count)];
        let (key, value) = (Key::of(index), Value::new(u64::from(index) * 2000));
        let began = clock.ticks();
        let done = table.insert(key, value);
        times[index as usize] = (clock.ticks() - began) as u32;
        let _ = black_box(done);
    }
    (tables, times)
}

fn report(tables: usize, flows: u32) {
    let (first, mut once) = fill(tables, flows, u32::MAX);
    let mut times = once.clone();
    // Tables that are given back would leave the allocator with work for the next.
    let mut kept = vec![first];
    for _ in 1..ROUNDS {
        let (next, others) = fill(tables, flows, u32::MAX);
        kept.push(next);
        for (time, other) in times.iter_mut().zip(others) {
            *time = (*time).min(other);
        }
    }
    let Some(mut tables) = kept.pop() else { return };
    let count = tables.len();
    let hz = Tsc::process().hz() as f64;
    let bytes: usize = tables.iter().map(Table::memory).sum();
    let kept: usize = tables.iter().map(Table::len).sum();
    let total: u64 = once.iter().map(|ticks| u64::from(*ticks)).sum();
    let mut late: Vec<(u32, usize)> = times.iter().copied().zip(0..).collect();
    late.sort_unstable_by(|a, b| b.cmp(a));
    late.truncate(6);
    println!("{flows} flows in {count} tables: {kept} kept, {:.1} bytes each", bytes as f64 / kept as f64);
    println!(
        "  insert: {:.0} cycles, {:.2} M/s, {}",
        total as f64 / f64::from(flows),
        hz / 1e6 / (total as f64 / f64::from(flows)),
        worst(&mut once)
    );
    println!("  least of {ROUNDS} rounds: {}", worst(&mut times));
    let late: Vec<String> =
        late.iter().map(|(ticks, index)| format!("{:.0} at {index}", f64::from(*ticks) * 1e6 / hz)).collect();
    println!("  worst, us at which flow: {}", late.join(", "));
    let mut rng = SmallRng::seed_from_u64(3);
    for (name, from) in [("look-up", 0), ("absent", flows)] {
        let chosen: Vec<(Key, usize)> = (0..LOOKUPS)
            .map(|_| {
                let index = rng.random_range(from..from + flows);
                (Key::of(index), shard(index, count))
            })
            .collect();
        let mut probes = [tables[0].prepare(&Key::of(0)); BURST];
        let mut least = f64::INFINITY;
        for _ in 0..=RUNS {
            let began = Tsc::process().ticks();
            for burst in chosen.chunks(BURST) {
                for (probe, (key, table)) in probes.iter_mut().zip(burst) {
                    *probe = tables[*table].prepare(key);
                }
                for (probe, (key, table)) in probes.iter_mut().zip(burst) {
                    tables[*table].step(probe, key);
                }
                for (probe, (key, table)) in probes.iter().zip(burst) {
                    if let Some(value) = tables[*table].confirm(*probe, key) {
                        value.counts[0] += 1;
                    }
                }
            }
            least = least.min((Tsc::process().ticks() - began) as f64 / LOOKUPS as f64);
        }
        println!("  {name}: {least:.1} cycles in bursts of {BURST}");
    }
    if flows < 1_000_000 {
        return;
    }
    // All idle: how long is the longest call that forgets some?
    let (mut ended, mut times) = (0_u32, Vec::with_capacity(flows as usize));
    let began = Tsc::process().ticks();
    for tick in 0.. {
        let now = Nanos(30 * Nanos::SECOND + tick * 1_000_000);
        for table in &mut tables {
            let began = Tsc::process().ticks();
            table.expire(now, &mut |_, value| ended += 1 + value.counts[1]);
            times.push((Tsc::process().ticks() - began) as u32);
        }
        if ended as usize == kept {
            break;
        }
    }
    let cycles = (Tsc::process().ticks() - began) as f64 / kept as f64;
    println!("  expire: {cycles:.0} cycles a flow, {} calls, {}", times.len(), worst(&mut times));
}

/// Insertions into tables that are at their limit.
fn evictions() {
    let (mut tables, _) = fill(512, 4_000_000, 4_000);
    let mut times = vec![1; 4_000_000];
    let mut evicted = 0;
    for index in 4_000_000..8_000_000_u32 {
        let table = &mut tables[shard(index, 512)];
        let (key, value) = (Key::of(index), Value::new(u64::from(index) * 2000));
        let began = Tsc::process().ticks();
        let left = table.insert(key, value);
        times[index as usize - 4_000_000] = (Tsc::process().ticks() - began) as u32;
        evicted += usize::from(left.is_ok_and(|left| left.is_some()));
    }
    let total: u64 = times.iter().map(|ticks| u64::from(*ticks)).sum();
    println!(
        "4000000 insertions at the limit of 512 tables of 4000: {evicted} evictions, {:.0} cycles each, {}",
        total as f64 / times.len() as f64,
        worst(&mut times)
    );
}

/// What the machine does by itself: pauses in doing nothing, and first writes to pages.
fn machine() {
    let clock = Tsc::process();
    let mut times = vec![1; 16_000_000];
    for time in &mut times {
        let began = clock.ticks();
        for turn in 0..100 {
            black_box(turn);
        }
        *time = (clock.ticks() - began) as u32;
    }
    println!("16000000 times nothing: {}", worst(&mut times));
    let mut fresh: Vec<u8> = Vec::with_capacity(2 << 30);
    let mut times = vec![1; (2 << 30) / 4096];
    for time in &mut times {
        let began = clock.ticks();
        fresh.resize(fresh.len() + 4096, 1);
        *time = (clock.ticks() - began) as u32;
    }
    println!("{} first writes to a page: {}", times.len(), worst(&mut times));
}

fn main() {
    let arguments: Vec<u32> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    match arguments[..] {
        [tables, flows] => report(tables as usize, flows),
        [0] => evictions(),
        [1] => machine(),
        _ => {
            println!(
                "counter {} MHz, invariant: {}",
                Tsc::process().hz() / 1_000_000,
                Tsc::process().is_counter()
            );
            // Each in a process of its own, so that none finds the heap that another left.
            for arguments in ["1", "512 1000", "512 1000000", "512 16000000", "1 16000000", "0"] {
                let program = std::env::current_exe().unwrap();
                std::process::Command::new(program).args(arguments.split(' ')).status().unwrap();
            }
        }
    }
}
