//! `hash`: how many packets' keys does one core hash a second, with one hash to four each?

use super::{LookupConfig, LookupError, inserted, published};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use tables::clock::Tsc;
use tables::cuckoo::KeyedHash;
use tables::{Processor, Tuple4};

/// Keys that are hashed again and again: as many as lie in a first-level cache.
const KEYS: usize = 1024;

/// Measures all.
pub fn run(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    let mut report = Report::new("hash", &clock);
    let key = |n: u32| Tuple4::new(n.wrapping_mul(0x9e37_79b1).into(), 9.into(), 6, n as u16, 443);
    let keys: Vec<Tuple4> = (0..KEYS as u32).map(key).collect();
    let hashes: Vec<KeyedHash> = (0..4).map(KeyedHash::new).collect();
    let mut out = vec![(0, 0); KEYS];
    let times = (config.lookups / KEYS).max(1);
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
    }
    report.notes.push(format!(
        "one core, keys of 13 octets in the first-level cache, both words of the hash; the seed's figure 1 has no numbers, its text says that its GPU does four hashes a packet {:.0} times as fast as a core",
        published::HASH_FACTOR
    ));
    Ok(report)
}
