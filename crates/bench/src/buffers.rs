//! `buffers`: what a batch costs on its way to a device and back, by how many are under way at a time.
//!
//! A batch that is waited for costs the whole way. With several under way, the way of one is hidden behind the work on others, without any of them being larger:
//! Tseng and others, "Exploiting Integrated GPUs for Network Packet Processing Workloads", figure 2. As there, an item has 24 octets, and its answer is a number; the
//! task is a single hash. Time is the wall's, for the other side has a core of its own: this measures what an order from thread to thread costs,
//! and what the device does with it is next to nothing.

use crate::devices::{self, DeviceError, Job, Lender, Lent, Load, Measuring};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use accel::cpu::{Executor, Inline, Settings, Workers};
use accel::gpu;
use accel::task::{Batch, Hashes, Task};
use tables::clock::Tsc;

/// Octets of an item.
const ITEM: usize = accel::task::HASHED;

/// The most packets of a batch.
const MOST_PACKETS: usize = 256;

/// How long to measure.
#[derive(Clone, Debug)]
pub struct BuffersConfig {
    /// Batches under way.
    pub buffers: Vec<usize>,
    /// Packets of each.
    pub packets: Vec<usize>,
    /// Batches of a round.
    pub batches: usize,
    /// Rounds.
    pub runs: usize,
    /// Where GPUs come from.
    pub lender: Lender,
}

impl BuffersConfig {
    /// From one batch to 144, of 32 to 256 packets.
    pub fn full() -> Self {
        Self {
            buffers: vec![1, 2, 4, 8, 16, 36, 72, 144],
            packets: vec![32, 64, 256],
            batches: 20_000,
            runs: 7,
            lender: Lender::CUDA,
        }
    }

    /// Fewer of all.
    pub fn quick() -> Self {
        Self { buffers: vec![1, 4, 16, 72], packets: vec![32, 256], batches: 4_000, runs: 3, ..Self::full() }
    }
}

/// A device by the name that results have it under, with room for so many batches.
type Make = fn(&Lender, usize, Tsc) -> Lent;

/// Octets of the largest batch, in and out.
const OCTETS: (usize, usize) = (MOST_PACKETS * ITEM, MOST_PACKETS * 4);

const INLINE: (&str, Make) = ("cpu", |_, buffers, clock| Ok(Box::new(Inline::new(buffers, clock))));
const WORKER: (&str, Make) = ("cpu-worker", |_, in_flight, clock| {
    let settings = Settings { threads: 1, in_flight, look_for: 1_000_000 };
    Ok(Box::new(Workers::start(settings, &clock)?))
});
const RING: (&str, Make) = ("cpu-ring", |_, buffers, clock| {
    devices::thread_ring(devices::shape(buffers, OCTETS)?, MOST_PACKETS, clock)
});
const CUDA_RING: (&str, Make) = ("cuda-ring", |lender, buffers, clock| {
    (lender.ring)(devices::shape(buffers, OCTETS)?, MOST_PACKETS, 0, clock)
});
const CUDA_LAUNCH: (&str, Make) = ("cuda", |lender, in_flight, clock| {
    let settings = gpu::Settings { in_flight, input: OCTETS.0 + 16, output: OCTETS.1, tables: 0 };
    (lender.launching)(settings, clock)
});

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &BuffersConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, DeviceError> {
    let mut report = Report::new("buffers", &clock);
    let mut devices = vec![INLINE, WORKER, RING];
    let gpus = (config.lender.list)();
    report.notes.push(devices::found(&gpus));
    if gpus.is_ok() {
        devices.extend([CUDA_RING, CUDA_LAUNCH]);
    }
    for &packets in &config.packets {
        for (name, make) in &devices {
            let mut one = 0.0;
            for &buffers in &config.buffers {
                progress.tell(&format!("{name}: {buffers} batches of {packets} packets"));
                let failed = |failure| DeviceError::Failed { device: name, failure };
                let mut device = make(&config.lender, buffers, clock).map_err(failed)?;
                let mut it = Measuring::new(device.as_mut(), name, clock);
                let mut load = load(buffers, packets)?;
                it.verify(&mut load)?;
                let mut round = || -> Result<_, DeviceError> {
                    let flood = it.flood(&mut load, buffers, config.batches, 0.0)?;
                    Ok([flood.each(), flood.latency(50), flood.latency(99)])
                };
                round()?;
                let mut found = [const { Vec::new() }; 3];
                for _ in 0..config.runs {
                    let figures = round()?;
                    found.iter_mut().zip(figures).for_each(|(list, figure)| list.push(figure));
                }
                let params: Vec<(&'static str, Param)> = vec![
                    ("buffers", (buffers as u64).into()),
                    ("device", (*name).into()),
                    ("packets", (packets as u64).into()),
                ];
                let [each, middle, late] = found;
                let each = Measured::of("nanoseconds_per_batch", "ns", &params, &each);
                one = if one == 0.0 { each.median } else { one };
                let ratio = one / each.median.max(1.0);
                report.results.push(each);
                report.results.push(Measured::of("gain_over_first", "x", &params, &[ratio]));
                for (percentile, runs) in [(50_u64, middle), (99, late)] {
                    let mut params = params.clone();
                    params.push(("percentile", percentile.into()));
                    report.results.push(Measured::of("latency_us", "us", &params, &runs));
                }
                progress.keep(&report);
            }
        }
    }
    report.notes.push(
        "nanoseconds_per_batch: wall time by batches, submitting and fetching in one thread; latency_us: from submission until it was fetched; \
         gain_over_first: against the fewest buffers. The paper's integrated GPU: 3 us for one batch of 32, a 17th of it from 16 buffers on"
            .into(),
    );
    Ok(report)
}

/// So many batches of so many items.
fn load(buffers: usize, packets: usize) -> Result<Load, DeviceError> {
    let item: [u8; ITEM] = std::array::from_fn(|at| at as u8);
    let mut batch = Batch::new(0, Task::Hash(Hashes::new(1)?));
    (0..packets).try_for_each(|_| batch.push(&item))?;
    let job = Job::done_here(batch, &mut Executor::new())?;
    Ok((0..buffers).map(|_| job.clone()).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    fn report(lender: Lender) -> Report {
        let config = BuffersConfig { buffers: vec![1, 4], packets: vec![32], batches: 50, runs: 2, lender };
        run(&config, Tsc::process(), &mut Silent).unwrap()
    }

    #[test]
    fn all_devices_that_are_here_are_measured() {
        let report = report(Lender::THREADS);
        for device in ["cpu", "cpu-worker", "cpu-ring", "cuda-ring", "cuda"] {
            for buffers in [1_u64, 4] {
                let params =
                    [("buffers", buffers.into()), ("device", device.into()), ("packets", 32_u64.into())];
                assert!(report.median("nanoseconds_per_batch", &params).unwrap() > 0.0);
                assert!(report.median("latency_us", &params).unwrap() > 0.0);
                assert_eq!(report.all("latency_us", &params).count(), 2);
            }
            let first = [("buffers", 1_u64.into()), ("device", device.into())];
            assert_eq!(report.median("gain_over_first", &first), Some(1.0));
        }
    }

    #[test]
    fn it_is_said_if_there_is_no_gpu() {
        let lender = Lender {
            list: || Err(accel::Failure::Absent { device: "CUDA", why: "none".into() }),
            ..Lender::THREADS
        };
        let report = report(lender);
        assert_eq!(report.all("nanoseconds_per_batch", &[("device", "cuda".into())]).count(), 0);
        assert!(report.notes.iter().any(|note| note.starts_with("no CUDA device: ")));
    }
}
