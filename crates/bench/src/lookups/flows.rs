//! `flow4` and `flow6`: which flow has this 5-tuple?

use super::{
    Contest, LookupConfig, LookupError, MODES, Order, Own, inserted, note_pages, on_device, peers, published,
    tell,
};
use crate::devices::Gpus;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use accel::task::{Batch, Misfit};
use tables::clock::Tsc;
use tables::hash::mix;
use tables::image::Image;
use tables::{CuckooError, Flows4, Flows6, Lookup, Processor, Tuple4, Tuple6};

/// What both tables do.
trait Table: Lookup<Key: peers::HashKey, Value = u32> + Image + Sized {
    const NAME: &'static str;
    fn made(limit: u32) -> Result<Self, CuckooError>;
    fn on(self, processor: Processor) -> Self;
    fn key(number: u64) -> Self::Key;
    /// Enters keys with their numbers, from `first` on: group by group, each asked for before.
    fn enter(&mut self, first: u32, keys: &[Self::Key]) -> Result<(), CuckooError>;
    /// Likewise, one by one.
    fn enter_singly(&mut self, first: u32, keys: &[Self::Key]) -> Result<(), CuckooError>;
    fn bytes(&self) -> usize;
    /// Adds a key to a batch for a device.
    fn push(batch: &mut Batch, key: &Self::Key) -> Result<(), Misfit>;
}

/// A flow's first word of ports and hosts: no two flows have the same, and nothing about it is regular.
fn scattered(number: u64) -> u64 {
    mix(number ^ 0x6a09_e667_f3bc_c908, 0x9e37_79b9_7f4a_7c15)
}

/// Keys whose lines are asked for together.
const GROUP: usize = 16;

macro_rules! table {
    ($table:ty, $key:ty, $name:literal, $of:expr) => {
        impl Table for $table {
            const NAME: &'static str = $name;

            fn made(limit: u32) -> Result<Self, CuckooError> {
                Self::new(0x5eed, limit)
            }

            fn on(self, processor: Processor) -> Self {
                self.with_processor(processor)
            }

            fn key(number: u64) -> $key {
                let of: fn(u64, u64) -> $key = $of;
                of(number, scattered(number))
            }

            fn enter(&mut self, first: u32, keys: &[$key]) -> Result<(), CuckooError> {
                let mut number = first;
                for keys in keys.chunks(GROUP) {
                    let mut probes = [Default::default(); GROUP];
                    probes.iter_mut().zip(keys).for_each(|(probe, key)| *probe = self.expect(key));
                    for (probe, key) in probes.iter().zip(keys) {
                        self.enter(*probe, *key, number)?;
                        number += 1;
                    }
                }
                Ok(())
            }

            fn enter_singly(&mut self, first: u32, keys: &[$key]) -> Result<(), CuckooError> {
                keys.iter().zip(first..).try_for_each(|(key, number)| self.insert(*key, number).map(|_| ()))
            }

            fn bytes(&self) -> usize {
                self.memory()
            }

            fn push(batch: &mut Batch, key: &$key) -> Result<(), Misfit> {
                batch.push_key(&key.words())
            }
        }
    };
}

table!(Flows4, Tuple4, "flow4", |number, bits| Tuple4::new(
    ((bits >> 32) as u32).into(),
    (number as u32).into(),
    if bits & 1 == 0 { 6 } else { 17 },
    (bits >> 16) as u16,
    443
));
table!(Flows6, Tuple6, "flow6", |number, bits| Tuple6::new(
    (0x2001_0db8 << 96 | u128::from(bits)).into(),
    (0x2a00_1450 << 96 | u128::from(number)).into(),
    if bits & 1 == 0 { 6 } else { 17 },
    (bits >> 16) as u16,
    443
));

/// `flow4`.
pub fn run4(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    run::<Flows4>(config, clock, progress)
}

/// `flow6`.
pub fn run6(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    run::<Flows6>(config, clock, progress)
}

fn refused(error: CuckooError) -> LookupError {
    LookupError::Table(error.to_string())
}

fn run<T: Table>(
    config: &LookupConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Report, LookupError> {
    let mut report = Report::new(T::NAME, &clock);
    let peers = peers::start(&mut report)?;
    let mut gpus = Gpus::look(&config.gpus, clock);
    for log in &config.slots {
        let entries = (1_u64 << log) * 9 / 10;
        measure::<T>(config, clock, entries, peers.as_ref(), &mut gpus, &mut report, progress)?;
    }
    gpus.note(&mut report);
    report.notes.push(format!(
        "one core, random hits in an order of its own through all flows, and misses; 90 % of all slots taken; the seed's text has {}",
        if T::NAME == "flow4" {
            format!(
                "{:.0} M/s on two cores as a pipeline at 1 M flows, {:.1} M/s with its integrated GPU",
                published::FLOW4_PIPELINE / 1e6,
                published::FLOW4_INTEGRATED / 1e6
            )
        } else {
            format!(
                "{:.0} M/s with its integrated GPU, {:.2} M/s with a discrete one",
                published::FLOW6_INTEGRATED / 1e6,
                published::FLOW6_DISCRETE / 1e6
            )
        }
    ));
    Ok(report)
}

fn measure<T: Table>(
    config: &LookupConfig,
    clock: Tsc,
    entries: u64,
    peers: Option<&peers::Peers>,
    gpus: &mut Gpus<'_>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LookupError> {
    let what = format!("{entries} flows");
    tell(progress, report, &format!("{what}: entering"));
    // As many in all, in several tables where they are small.
    const BLOCK: usize = 1 << 16;
    let repeats = (1_000_000 / entries).clamp(1, 400);
    let (mut grouped, mut singly) = (Vec::new(), Vec::new());
    let mut table = T::made(entries as u32).map_err(refused)?;
    for repeat in 0..repeats.max(3) {
        if entries > 2_000_000 && repeat > 0 {
            break;
        }
        for (single, rates) in [(true, &mut singly), (false, &mut grouped)] {
            if single && entries > 2_000_000 {
                continue;
            }
            table = T::made(entries as u32).map_err(refused)?;
            let mut time = 0.0;
            for first in (0..entries).step_by(BLOCK) {
                let keys: Vec<_> = (first..entries.min(first + BLOCK as u64)).map(T::key).collect();
                let rate = inserted(keys.len(), || {
                    let table = &mut table;
                    let done = if single {
                        table.enter_singly(first as u32, &keys)
                    } else {
                        table.enter(first as u32, &keys)
                    };
                    done.map_err(refused)
                })?;
                time += keys.len() as f64 / rate;
            }
            rates.push(entries as f64 / time);
        }
    }
    let size: [(&'static str, Param); 2] = [("entries", entries.into()), ("device", "cpu".into())];
    for (group, rates) in [(1_u64, &singly), (GROUP as u64, &grouped)] {
        if !rates.is_empty() {
            let params = [&size[..], &[("engine", "millrace".into()), ("group", group.into())]].concat();
            report.results.push(Measured::of("inserts_per_second", "1/s", &params, rates));
        }
    }
    let bytes = [table.bytes() as f64 / entries as f64];
    report.results.push(Measured::of("bytes_per_entry", "bytes", &size, &bytes));
    tell(progress, report, &format!("{what}: entering into rte_hash"));
    let mut peer = peers::hash::<T::Key>(peers, entries)?;
    if let Some(peer) = &mut peer {
        let mut time = 0.0;
        for first in (0..entries).step_by(BLOCK) {
            let keys: Vec<_> = (first..entries.min(first + BLOCK as u64)).map(T::key).collect();
            time += keys.len() as f64 / inserted(keys.len(), || peer.add(&keys))?;
        }
        let params = [&size[..], &[("engine", "rte_hash".into())]].concat();
        report.results.push(Measured::of("inserts_per_second", "1/s", &params, &[entries as f64 / time]));
    }
    note_pages(report, &what);
    for hits in [true, false] {
        let mut order = Order::new(entries);
        let mut keys = |count: usize| -> on_device::Keys<T::Key> {
            let numbers = order.by_ref().take(count);
            let of = |number: u64| {
                let number = if hits { number } else { number + entries };
                (T::key(number), hits.then_some(number as u32))
            };
            numbers.map(of).unzip()
        };
        let params = [&size[..], &[("hits", if hits { "all" } else { "none" }.into())]].concat();
        // One processor after the other has the table; each contest has all peers.
        for processor in Processor::here() {
            table = table.on(processor);
            let mut contest = Contest::new(clock);
            let is_best = processor == Processor::best();
            let modes: &[_] = if is_best { &[MODES[0], MODES[1], (1024, 0), MODES[2]] } else { &MODES[..1] };
            let own = vec![("engine", "millrace".into()), ("processor", processor.name().into())];
            contest.add(Box::new(Own::new(&table)), modes, own);
            if let Some(peer) = peer.as_ref().filter(|_| is_best) {
                contest.add(Box::new(peer.engine()), &MODES, vec![("engine", "rte_hash".into())]);
            }
            tell(progress, report, &format!("{what}: {processor}, hits: {hits}"));
            let (first, expected) = keys(config.lookups);
            contest.verify(&first, &expected)?;
            for round in 0..=config.runs {
                let (keys, _) = keys(config.lookups);
                contest.round(&keys, round > 0);
            }
            contest.report(report, &params);
        }
        on_device::measure(gpus, &table, T::push, &mut keys, &params, report, progress)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::devices::Effort;
    use crate::progress::Silent;

    #[test]
    fn every_engine_and_processor_is_measured() {
        let gpus = Effort::of_tests();
        let config = LookupConfig { slots: vec![8], lookups: 500, runs: 2, gpus, ..LookupConfig::quick() };
        for (report, name) in [
            (run4(&config, Tsc::process(), &mut Silent).unwrap(), "flow4"),
            (run6(&config, Tsc::process(), &mut Silent).unwrap(), "flow6"),
        ] {
            assert_eq!(report.scenario, name);
            for processor in Processor::here() {
                for hits in ["all", "none"] {
                    let params = [("processor", processor.name().into()), ("hits", hits.into())];
                    let found = report.find("lookups_per_second", &params).unwrap();
                    assert!(found.runs == 2 && found.min > 0.0, "{found:?}");
                }
            }
            assert!(report.find("inserts_per_second", &[("group", 16.into())]).unwrap().min > 0.0);
            // Hits and misses, launched in two ways with copies and without, and by the ring.
            for (device, rates) in [("cuda", 8), ("cuda-ring", 2)] {
                assert_eq!(report.all("lookups_per_second", &[("device", device.into())]).count(), rates);
                assert_eq!(report.all("ratio_to_cpu", &[("device", device.into())]).count(), rates);
            }
        }
    }
}
