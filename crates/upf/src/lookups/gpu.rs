//! Look-ups on a GPU: a ring for each worker, which a continuous kernel polls.
//!
//! A launch for each burst would cost as much as the burst is worth. So each worker has a ring of its own, and nobody waits for another worker's. All are on
//! the first GPU, and made at the start: kernels are compiled, memory is taken and copies are brought there before any worker serves.

use super::{Accelerated, FindLookups, Unfit};
use accel::ring::Shape;
use accel::{Device, Failure};
use config::Config;
use datapath::lookups::{Batch, LookupDevice};
use engine::OpenLookups;
use std::sync::{Arc, Mutex, PoisonError};
use tables::Memo;

/// Octets of what devices know, of all workers together; as much again is the workers' master copies.
pub const MOST_OCTETS: usize = 1 << 30;

/// Bursts that a ring has room for: those that wait, and as many that nobody waits for any more.
const SLOTS: usize = 2 * engine::MOST_UNDER_WAY;

/// Octets beside a copy's lines: its header.
const BESIDE: usize = 4096;

/// The GPUs of this machine, in words, or why there is none.
pub fn list() -> Result<Vec<String>, String> {
    accel::gpu::list().map_err(reason)
}

/// Finds a GPU for the workers of a configuration.
pub fn finder(config: &Config) -> FindLookups {
    let workers = usize::from(config.workers.workers().max(1));
    let entries = entries(u64::from(config.limits.sessions) + u64::from(config.limits.flows), workers);
    Arc::new(move || {
        let shape = Shape::new(SLOTS, 8 * Batch::QUESTIONS, 4 * Batch::QUESTIONS);
        let shape = shape.ok_or_else(|| "no ring has room for bursts".to_owned())?;
        let tables = Memo::octets(entries) + BESIDE;
        let rings = accel::gpu::rings(0, workers, shape, Batch::QUESTIONS, tables).map_err(reason)?;
        deal(rings, entries).map_err(|unfit| unfit.to_string())
    })
}

/// What one of so many workers has a device know: its share of all sessions and flows that there may be, within [`MOST_OCTETS`].
fn entries(all: u64, workers: usize) -> usize {
    let mut entries = usize::try_from(all).unwrap_or(usize::MAX).div_ceil(workers);
    while Memo::octets(entries) > MOST_OCTETS / workers && entries > 1 {
        entries /= 2;
    }
    entries
}

/// A device for each worker, by its number.
fn deal(devices: Vec<Box<dyn Device>>, entries: usize) -> Result<OpenLookups, Unfit> {
    let open = |device| Accelerated::open(device, entries).map(Some);
    let devices = Mutex::new(devices.into_iter().map(open).collect::<Result<Vec<_>, Unfit>>()?);
    Ok(Arc::new(move |worker| {
        let mut devices = devices.lock().unwrap_or_else(PoisonError::into_inner);
        let device = devices.get_mut(worker).and_then(Option::take);
        if device.is_none() {
            tracing::warn!(worker, "no device is left for this worker: it looks up by itself");
        }
        device.map(|device| Box::new(device) as Box<dyn LookupDevice>)
    }))
}

/// Why there is no GPU, for those who say themselves that there is none.
fn reason(failure: Failure) -> String {
    match failure {
        Failure::Absent { why, .. } => why,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use accel::fake::{Fake, Fault};
    use accel::{Kind, Limits};
    use tables::Nanos;

    #[test]
    fn each_worker_gets_its_own_device() {
        let limits =
            Limits { kinds: Kind::ALL.to_vec(), in_flight: 4, items: 128, input: 1 << 12, output: 1 << 12 };
        let fakes = [0, 1].map(|_| Fake::new(limits.clone(), 0));
        let remotes = fakes.each_ref().map(Fake::remote);
        let open = deal(fakes.into_iter().map(|fake| Box::new(fake) as _).collect(), 1_000).unwrap();
        assert!(open(2).is_none());
        let mut second = open(1).unwrap();
        assert!(open(1).is_none(), "one for each, and no more");
        let mut first = open(0).unwrap();
        let takes = |device: &mut dyn LookupDevice| {
            device.submit(Nanos(0), Batch { keys: vec![1], ..Batch::new() }).is_ok()
        };
        remotes[1].fail(Fault::Full);
        assert_eq!((takes(&mut *first), takes(&mut *second)), (true, false));
    }

    #[test]
    fn a_memo_has_the_workers_share_and_all_have_a_limit() {
        for (all, workers) in [(0, 1), (1_000, 3), (5 << 20, 2), (u64::MAX, 1), (u64::MAX, 5), (1 << 33, 128)]
        {
            let entries = entries(all, workers);
            assert!(workers * Memo::octets(entries) <= MOST_OCTETS, "{all} {workers} {entries}");
            let most = MOST_OCTETS / workers;
            assert!(
                workers as u64 * entries as u64 >= all || Memo::octets(2 * entries) > most / 2,
                "{all} {workers}"
            );
        }
        assert_eq!(Memo::octets(entries(5 << 20, 1)), 64 << 20);
    }

    #[test]
    fn where_there_is_no_gpu_the_reason_is_accels() {
        let config = config::parse("example", config::EXAMPLE, &[], &[]);
        let config = config.unwrap_or_else(|report| panic!("{report}"));
        match list() {
            Ok(gpus) => testing::skipped(format!("there is {}", gpus[0])),
            Err(why) => {
                assert_eq!(accel::gpu::list().unwrap_err().to_string(), format!("no CUDA device: {why}"));
                assert_eq!(finder(&config)().err(), Some(why));
            }
        }
    }
}
