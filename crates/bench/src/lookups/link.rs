//! `l2`: behind which port is this MAC address?

use super::{
    Contest, LookupConfig, LookupError, MODES, Order, Own, inserted, note_pages, on_device, peers, published,
    tell,
};
use crate::devices::Gpus;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use accel::task::Batch;
use tables::clock::Tsc;
use tables::hash::mix;
use tables::l2::{L2, L2Config, Learnt, Station};
use tables::{Nanos, Processor};

/// Ports of the switch.
const PORTS: u64 = 48;

/// Stations of a few makers, in 16 VLANs.
fn station(number: u64) -> Station {
    let bits = mix(number, 0x9e37_79b9_7f4a_7c15);
    let [.., d, e, f] = (number as u32).to_be_bytes();
    Station::new([2, (bits % 7) as u8, (number >> 24) as u8, d, e, f], (bits >> 32) as u16 % 16)
}

/// Measures all.
pub fn run(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    let mut report = Report::new("l2", &clock);
    let peers = peers::start(&mut report)?;
    let mut gpus = Gpus::look(&config.gpus, clock);
    for log in &config.slots {
        let entries = (1_u64 << log) * 9 / 10;
        measure(config, clock, entries, peers.as_ref(), &mut gpus, &mut report, progress)?;
    }
    gpus.note(&mut report);
    report.notes.push(format!(
        "one core, 90 % of all slots taken; a frame of a switch is one learning and one look-up; I/O of {} TSC cycles a packet as in the seed, whose figure 5 has no number for it in its text",
        published::IO_CYCLES
    ));
    Ok(report)
}

fn measure(
    config: &LookupConfig,
    clock: Tsc,
    entries: u64,
    peers: Option<&peers::Peers>,
    gpus: &mut Gpus<'_>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LookupError> {
    tell(progress, report, &format!("{entries} stations: learning"));
    let limits = L2Config { per_port: u32::MAX, per_vlan: u32::MAX, ..L2Config::new(entries as u32) };
    let made = L2::new(0x5eed, limits, Nanos(0)).map_err(|error| LookupError::Table(error.to_string()))?;
    let mut table = made;
    let size: [(&'static str, Param); 2] = [("entries", entries.into()), ("device", "cpu".into())];
    let port = |number: u64| (number % PORTS) as u16;
    // First all are new, then all are where they were, half a minute later.
    for (name, expected, now) in [
        ("inserts_per_second", Learnt::New, Nanos(0)),
        ("learnings_per_second", Learnt::Same, Nanos(30 * Nanos::SECOND)),
    ] {
        let mut time = 0.0;
        let numbers: Vec<u64> = Order::new(entries).take(entries as usize).collect();
        for numbers in numbers.chunks(1 << 16) {
            let stations: Vec<_> = numbers.iter().map(|number| (station(*number), port(*number))).collect();
            time += stations.len() as f64
                / inserted(stations.len(), || {
                    for group in stations.chunks(16) {
                        let mut probes = [tables::cuckoo::slots::SlotProbe::default(); 16];
                        for (probe, (station, _)) in probes.iter_mut().zip(group) {
                            *probe = table.expect(station);
                        }
                        for (probe, (station, port)) in probes.iter().zip(group) {
                            let learnt = table.learn_prepared(*probe, *station, *port, now);
                            if learnt != expected {
                                return Err(LookupError::Table(format!("{learnt:?}")));
                            }
                        }
                    }
                    Ok(())
                })?;
        }
        let params = [&size[..], &[("engine", "millrace".into())]].concat();
        report.results.push(Measured::of(name, "1/s", &params, &[entries as f64 / time]));
    }
    let bytes = [table.memory() as f64 / entries as f64];
    report.results.push(Measured::of("bytes_per_entry", "bytes", &size, &bytes));
    let mut peer = peers::hash::<Station>(peers, entries)?;
    if let Some(peer) = &mut peer {
        let mut time = 0.0;
        for first in (0..entries).step_by(1 << 16) {
            let keys: Vec<_> = (first..entries.min(first + (1 << 16))).map(station).collect();
            time += keys.len() as f64 / inserted(keys.len(), || peer.add(&keys))?;
        }
        let params = [&size[..], &[("engine", "rte_hash".into())]].concat();
        report.results.push(Measured::of("inserts_per_second", "1/s", &params, &[entries as f64 / time]));
    }
    note_pages(report, &format!("{entries} stations"));
    for hits in [true, false] {
        let mut order = Order::new(entries);
        let mut keys = |count: usize| -> Vec<u64> {
            order.by_ref().take(count).map(|number| if hits { number } else { number + entries }).collect()
        };
        let stations = |numbers: &[u64]| -> Vec<Station> { numbers.iter().copied().map(station).collect() };
        let params = [&size[..], &[("hits", if hits { "all" } else { "none" }.into())]].concat();
        for processor in Processor::here() {
            table = table.with_processor(processor);
            tell(progress, report, &format!("{entries} stations: {processor}"));
            let mut contest = Contest::new(clock);
            let own = vec![("engine", "millrace".into()), ("processor", processor.name().into())];
            contest.add(Box::new(Own::new(&table)), &MODES, own);
            let numbers = keys(config.lookups);
            let expected = |number: &u64| hits.then(|| u32::from(port(*number)));
            contest.verify(&stations(&numbers), &numbers.iter().map(expected).collect::<Vec<_>>())?;
            // The peer says whose number it is, not where it is: it is measured in the same rounds, and held to its own answers.
            let mut beside = Contest::new(clock);
            if let Some(peer) = peer.as_ref().filter(|_| processor == Processor::best()) {
                beside.add(Box::new(peer.engine()), &MODES, vec![("engine", "rte_hash".into())]);
                let expected = |number: &u64| hits.then_some(*number as u32);
                beside.verify(&stations(&numbers), &numbers.iter().map(expected).collect::<Vec<_>>())?;
            }
            for round in 0..=config.runs {
                let stations = stations(&keys(config.lookups));
                contest.round(&stations, round > 0);
                beside.round(&stations, round > 0);
            }
            contest.report(report, &params);
            beside.report(report, &params);
        }
        let mut known = |count| {
            let of = |number| (station(number), hits.then(|| u32::from(port(number))));
            keys(count).into_iter().map(of).unzip()
        };
        let push = |batch: &mut Batch, station: &Station| batch.push_key(&station.words());
        on_device::measure(gpus, &table, push, &mut known, &params, report, progress)?;
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
    fn learning_and_looking_up_are_measured() {
        let gpus = Effort::of_tests();
        let config = LookupConfig { slots: vec![8], lookups: 500, runs: 2, gpus, ..LookupConfig::quick() };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for name in ["inserts_per_second", "learnings_per_second"] {
            assert!(report.find(name, &[("engine", "millrace".into())]).unwrap().min > 0.0);
        }
        for hits in ["all", "none"] {
            assert_eq!(report.find("lookups_per_second", &[("hits", hits.into())]).unwrap().runs, 2);
            // Launched in two ways with copies and without, and by the ring.
            for (device, rates) in [("cuda", 4), ("cuda-ring", 1)] {
                let of = [("hits", hits.into()), ("device", device.into())];
                assert_eq!(report.all("ratio_to_cpu", &of).count(), rates);
            }
        }
    }
}
