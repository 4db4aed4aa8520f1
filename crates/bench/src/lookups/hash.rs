//! `hash`: how many packets' keys does one core hash a second, with one hash to four each?
//!
//! What tables hash with is for processors: a GPU is measured by a hash of the same few instructions on both ([`accel::hash`]), and beside it a core
//! with that.

use super::{BURST, LookupConfig, LookupError, inserted, published};
use crate::devices::{DeviceError, Gpus, Job, Sending, Subject, here, launched, rung};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use accel::cpu::Executor;
use accel::task::{Batch, HASHED, Hashes, Task};
use tables::clock::Tsc;
use tables::cuckoo::KeyedHash;
use tables::{Processor, Tuple4};

/// Keys that are hashed again and again: as many as lie in a first-level cache.
const KEYS: usize = 1024;

/// A core first, with which a GPU is compared.
const SENDINGS: [Sending; 5] =
    [here(256), launched(256, 8), launched(1 << 16, 4), rung(BURST, 16), rung(256, 16)];

/// Measures all.
pub fn run(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    let mut report = Report::new("hash", &clock);
    let key = |n: u32| Tuple4::new(n.wrapping_mul(0x9e37_79b1).into(), 9.into(), 6, n as u16, 443);
    let keys: Vec<Tuple4> = (0..KEYS as u32).map(key).collect();
    let hashes: Vec<KeyedHash> = (0..4).map(KeyedHash::new).collect();
    let mut out = vec![(0, 0); KEYS];
    let times = (config.lookups / KEYS).max(1);
    let mut gpus = Gpus::look(&config.gpus, clock);
    for count in 1..=4_usize {
        let mut rates = vec![Vec::new(); Processor::ALL.len()];
        progress.tell(&format!("{count} hashes a packet"));
        for round in 0..=config.runs {
            for (processor, rates) in Processor::here().zip(&mut rates) {
                let rate = inserted(KEYS * times, || {
                    for _ in 0..times {
                        for hash in hashes.iter().take(count) {
                            hash.places(processor, 1 << 20, &keys, &mut out);
                            std::hint::black_box(&mut out);
                        }
                    }
                    Ok(())
                })?;
                if round > 0 {
                    rates.push(rate);
                }
            }
        }
        for (processor, rates) in Processor::here().zip(&rates) {
            let params = [
                ("hashes", (count as u64).into()),
                ("device", "cpu".into()),
                ("processor", processor.name().into()),
            ];
            report.results.push(Measured::of("packets_per_second", "1/s", &params, rates));
        }
        progress.keep(&report);
        on_gpus(&mut gpus, count as u8, &mut report, progress)?;
    }
    gpus.note(&mut report);
    report.notes.push(format!(
        "one core, keys of 13 octets in the first-level cache, both words of the hash; the seed's figure 1 has no numbers, its text says that its GPU does four hashes a packet {:.0} times as fast as a core",
        published::HASH_FACTOR
    ));
    Ok(report)
}

/// The hash that a GPU is measured by, so many times on top of each other.
fn on_gpus(
    gpus: &mut Gpus<'_>,
    hashes: u8,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LookupError> {
    let task = Task::Hash(Hashes::new(hashes).map_err(DeviceError::from)?);
    let (mut executor, mut number) = (Executor::new(), 0_u64);
    let mut make = |items| {
        let mut batch = Batch::new(0, task);
        for _ in 0..items {
            number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut item = [0x33; HASHED];
            item[..8].copy_from_slice(&number.to_le_bytes());
            batch.push(&item)?;
        }
        Ok((Job::done_here(batch, &mut executor)?, items as f64))
    };
    let subject = Subject {
        rate: "packets_per_second",
        unit: "1/s",
        params: vec![("hashes", u64::from(hashes).into()), ("octets", (HASHED as u64).into())],
        items: "burst",
        sendings: &SENDINGS,
        image: None,
        make: &mut make,
        cpu: None,
    };
    gpus.measure(report, subject, progress)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::devices::Effort;
    use crate::progress::Silent;

    #[test]
    fn cores_and_gpus_are_measured() {
        let config =
            LookupConfig { lookups: 2 * KEYS, runs: 2, gpus: Effort::of_tests(), ..LookupConfig::quick() };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for hashes in 1..=4_u64 {
            let of = |device: &'static str| [("hashes", hashes.into()), ("device", device.into())];
            let own = Processor::here().count();
            assert_eq!(report.all("packets_per_second", &of("cpu")).count(), own + 1);
            // Launched in two ways with copies and without, and by the ring.
            assert_eq!(report.all("ratio_to_cpu", &of("cuda")).count(), 4);
            assert_eq!(report.all("ratio_to_cpu", &of("cuda-ring")).count(), 1);
        }
    }
}
