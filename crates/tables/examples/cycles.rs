//! Cycles per look-up of this crate's tables, against std's and against alternatives, in one run:
//! `cargo run --release -p tables --example cycles`.
#![allow(clippy::unwrap_used)]

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::{BulkMap, Lookup, Lpm4, Lpm6, Meter, MeterConfig, Nanos, TableKey, Tsc, Wheel};

/// Look-ups per measurement, and measurements of which the least disturbed counts.
const LOOKUPS: usize = 1 << 20;
const RUNS: usize = 9;
const BURST: usize = 64;

/// Cycles per item of `body`, called with every item.
fn each<T: Copy>(items: &[T], mut body: impl FnMut(T)) -> f64 {
    cycles(items.len(), || {
        for item in items {
            body(*item);
        }
    })
}

/// Cycles per item of `body`, called with bursts of them.
fn bursts<T>(items: &[T], mut body: impl FnMut(&[T])) -> f64 {
    cycles(items.len(), || {
        for burst in items.chunks(BURST) {
            body(burst);
        }
    })
}

/// Cycles per item of a body that handles `items`.
fn cycles(items: usize, mut body: impl FnMut()) -> f64 {
    let clock = Tsc::process();
    body();
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let began = clock.ticks();
        body();
        least = least.min((clock.ticks() - began) as f64 / items as f64);
    }
    least
}

fn exact_match() {
    println!("exact match u32 -> u32, uniform, cycles per look-up");
    println!(
        "{:>10} {:>7} {:>7} {:>7} {:>7} {:>9} {:>7} {:>9}",
        "entries", "bulk", "missing", "single", "std", "insert", "bytes", "stall us"
    );
    let clock = Tsc::process();
    for entries in [1_000_u32, 65_536, 1_000_000, 16_000_000] {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut map: BulkMap<u32, u32> = BulkMap::new(rng.random());
        let mut peer = HashMap::new();
        let mut insert = 0;
        let mut stall = 0;
        for i in 0..entries {
            let key = i.wrapping_mul(0x9e37_79b1);
            let began = clock.ticks();
            map.insert(key, i).unwrap();
            let took = clock.ticks() - began;
            insert += took;
            stall = stall.max(took);
            peer.insert(key, i);
        }
        let mut pick = |from: u32| {
            (0..LOOKUPS)
                .map(|_| rng.random_range(from..from + entries).wrapping_mul(0x9e37_79b1))
                .collect::<Vec<u32>>()
        };
        let keys = pick(0);
        let absent = pick(entries);
        let mut out = [None; BURST];
        let mut bulk = |keys: &[u32]| {
            bursts(keys, |burst| {
                map.lookup_bulk(burst, &mut out);
                black_box(&out);
            })
        };
        let (hits, missing) = (bulk(&keys), bulk(&absent));
        let single = each(&keys, |key| {
            black_box(map.get(&key));
        });
        let std = each(&keys, |key| {
            black_box(peer.get(&key));
        });
        println!(
            "{entries:>10} {hits:>7.1} {missing:>7.1} {single:>7.1} {std:>7.1} {:>9.1} {:>7.1} {:>9.1}",
            insert as f64 / entries as f64,
            map.memory() as f64 / entries as f64,
            stall as f64 * 1e6 / clock.hz() as f64,
        );
    }
}

/// The packet path's use: a map per shard, two steps, 64 packets a burst.
fn sharded<K: TableKey, const WAYS: usize>(name: &str, key: impl Fn(u32) -> K) {
    println!("\n512 maps, {name} -> u32, prepare and finish over bursts of {BURST}, cycles per look-up");
    println!("{:>10} {:>7} {:>7} {:>9}", "entries", "cycles", "bytes", "stall us");
    let clock = Tsc::process();
    for entries in [1_000_u32, 65_536, 1_000_000, 16_000_000] {
        let mut rng = SmallRng::seed_from_u64(2);
        let mut maps: Vec<BulkMap<K, u32, WAYS>> = (0..512).map(|_| BulkMap::new(rng.random())).collect();
        let shard = |index: u32| (index.wrapping_mul(0x9e37_79b1) >> 23) as usize;
        let mut stall = 0;
        for index in 0..entries {
            let began = clock.ticks();
            maps[shard(index)].insert(key(index), index).unwrap();
            stall = stall.max(clock.ticks() - began);
        }
        let chosen: Vec<u32> = (0..LOOKUPS).map(|_| rng.random_range(0..entries)).collect();
        let mut probes = [maps[0].prepare(&key(0)); BURST];
        let result = cycles(LOOKUPS, || {
            for burst in chosen.chunks(BURST) {
                for (probe, index) in probes.iter_mut().zip(burst) {
                    *probe = maps[shard(*index)].prepare(&key(*index));
                }
                for (probe, index) in probes.iter().zip(burst) {
                    black_box(maps[shard(*index)].finish(*probe, &key(*index)));
                }
            }
        });
        let bytes: usize = maps.iter().map(BulkMap::memory).sum();
        let stall = stall as f64 * 1e6 / clock.hz() as f64;
        println!("{entries:>10} {result:>7.1} {:>7.1} {stall:>9.1}", bytes as f64 / f64::from(entries));
    }
}

/// The classic two-level table that `lpm` is measured against: 2^24 entries, then 256 each.
struct Dir24 {
    first: Vec<u16>,
    second: Vec<[u16; 256]>,
}

impl Dir24 {
    /// Flattens a table's answers.
    fn of(routes: &Lpm4) -> Self {
        let mut flat = Self { first: vec![0; 1 << 24], second: Vec::new() };
        let mut sorted: Vec<_> = routes.iter().collect();
        sorted.sort_by_key(|(_, len, _)| *len);
        for (prefix, len, value) in sorted {
            let prefix = prefix.to_bits();
            if len <= 24 {
                flat.first[prefix as usize >> 8..][..1 << (24 - len)].fill(value + 1);
            } else {
                let entry = &mut flat.first[prefix as usize >> 8];
                if *entry < 1 << 15 {
                    flat.second.push([*entry; 256]);
                    *entry = 1 << 15 | (flat.second.len() - 1) as u16;
                }
                let block = &mut flat.second[*entry as usize & 0x7fff];
                block[prefix as usize & 0xff..][..1 << (32 - len)].fill(value + 1);
            }
        }
        flat
    }

    fn lookup_bulk(&self, addresses: &[Ipv4Addr], out: &mut [Option<u16>]) {
        for address in addresses {
            tables::prefetch::prefetch_slice_at(&self.first, address.to_bits() as usize >> 8);
        }
        for (address, out) in addresses.iter().zip(out) {
            let mut entry = self.first[address.to_bits() as usize >> 8];
            if entry >= 1 << 15 {
                entry = self.second[entry as usize & 0x7fff][address.to_bits() as usize & 0xff];
            }
            *out = entry.checked_sub(1);
        }
    }
}

fn routes() {
    println!("\nlongest prefix match, uniform over routes, bursts of {BURST}, cycles per look-up");
    println!("{:>10} {:>7} {:>8} {:>7} {:>8}", "IPv4", "bulk", "single", "DIR-24", "KiB");
    for count in [1_usize, 10, 10_000, 1_000_000] {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut table = Lpm4::new(1 << 20);
        table.insert(Ipv4Addr::UNSPECIFIED, 0, 1).unwrap();
        let mut prefixes = vec![(Ipv4Addr::UNSPECIFIED, 0)];
        while table.len() < count {
            // Roughly the Internet's: mostly /24, some shorter, few longer; the first octets below 224.
            let len = [24, 24, 24, 24, 24, 24, 23, 22, 22, 20, 19, 16][rng.random_range(0..12)];
            let len = if rng.random_ratio(1, 500) { 28 } else { len };
            let prefix = Ipv4Addr::from_bits(rng.random_range(0x0100_0000..0xe000_0000));
            table.insert(prefix, len, rng.random_range(0..1000)).unwrap();
            prefixes.push((prefix, len));
        }
        let addresses: Vec<Ipv4Addr> = (0..LOOKUPS)
            .map(|_| {
                let (prefix, len) = prefixes[rng.random_range(0..prefixes.len())];
                let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
                Ipv4Addr::from_bits(prefix.to_bits() & !host | rng.random::<u32>() & host)
            })
            .collect();
        let flat = Dir24::of(&table);
        let mut out = [None; BURST];
        let mut check = [None; BURST];
        let bulk = bursts(&addresses, |burst| table.lookup_bulk(burst, &mut out));
        let single = each(&addresses, |address| {
            black_box(table.lookup(&address));
        });
        let dir = bursts(&addresses, |burst| flat.lookup_bulk(burst, &mut check));
        assert_eq!(out, check);
        println!("{:>10} {bulk:>7.1} {single:>8.1} {dir:>7.1} {:>8}", table.len(), 256 + table.nodes());
    }
    println!("{:>10} {:>7} {:>8} {:>7} {:>8}", "IPv6", "bulk", "single", "", "KiB");
    for count in [1_usize, 10, 10_000, 200_000] {
        let mut rng = SmallRng::seed_from_u64(4);
        let mut table = Lpm6::new(1 << 20);
        table.insert(Ipv6Addr::UNSPECIFIED, 0, 1).unwrap();
        let mut prefixes = vec![(Ipv6Addr::UNSPECIFIED, 0)];
        while table.len() < count {
            let len = [48, 48, 48, 48, 32, 32, 32, 44, 40, 36, 29, 64][rng.random_range(0..12)];
            // 60,000 networks of /32, as many more-specifics as needed.
            let prefix = (0x2001_0000 + rng.random_range(0..60_000_u128)) << 96 | rng.random::<u128>() >> 32;
            let prefix = Ipv6Addr::from_bits(prefix);
            table.insert(prefix, len, rng.random_range(0..1000)).unwrap();
            prefixes.push((prefix, len));
        }
        let addresses: Vec<Ipv6Addr> = (0..LOOKUPS)
            .map(|_| {
                let (prefix, len) = prefixes[rng.random_range(0..prefixes.len())];
                let host = u128::MAX.checked_shr(len.into()).unwrap_or(0);
                Ipv6Addr::from_bits(prefix.to_bits() & !host | rng.random::<u128>() & host)
            })
            .collect();
        let mut out = [None; BURST];
        let bulk = bursts(&addresses, |burst| table.lookup_bulk(burst, &mut out));
        let single = each(&addresses, |address| {
            black_box(table.lookup(&address));
        });
        println!("{:>10} {bulk:>7.1} {single:>8.1} {:>7} {:>8}", table.len(), "", 256 + table.nodes());
    }
}

fn the_rest() {
    println!("\ncycles per operation");
    let clock = Tsc::process();
    let reading = cycles(LOOKUPS, || {
        for _ in 0..LOOKUPS {
            black_box(clock.now());
        }
    });
    println!("{:>24} {reading:>7.1}", "clock.now");
    let mut meter = Meter::new(MeterConfig { rate_bps: 1_000_000_000, burst_bytes: 100_000 });
    let mut now = 0;
    let metering = cycles(LOOKUPS, || {
        for _ in 0..LOOKUPS {
            now += 10_000;
            black_box(meter.conforms(Nanos(now), black_box(1_000)));
        }
    });
    println!("{:>24} {metering:>7.1}", "meter.conforms");
    let mut wheel = Wheel::new(Nanos(0), 1 << 20, u32::MAX);
    let mut rng = SmallRng::seed_from_u64(5);
    let mut now = Nanos(0);
    let timing = cycles(LOOKUPS, || {
        // A timer set per 10 us, each due within 10 s: a million of them at any time.
        for _ in 0..LOOKUPS {
            now = now.plus(10_000);
            wheel.insert(now.plus(rng.random_range(0..10 * Nanos::SECOND)), ()).unwrap();
            wheel.advance(now, &mut |()| ());
        }
    });
    println!("{:>24} {timing:>7.1}   ({} set)", "wheel insert + fire", wheel.len());
}

fn main() {
    println!("counter {} MHz, invariant: {}", Tsc::process().hz() / 1_000_000, Tsc::process().is_counter());
    exact_match();
    sharded::<u32, 7>("u32", |index| 0x0a00_0000 + index);
    sharded::<u64, 5>("u64", |index| 0x2001_0db8_0000_0000 + u64::from(index));
    routes();
    the_rest();
}
