//! `buffers`: what a batch costs on its way to a device and back, by how many are under way at a time.
//!
//! A batch that is waited for costs the whole way. With several under way, the way of one is hidden behind the work on others, without any of them being larger:
//! Tseng and others, "Exploiting Integrated GPUs for Network Packet Processing Workloads", figure 2. As there, an item has 24 octets, and its answer is a number; the
//! task is a single hash. Time is the wall's, for the other side has a core of its own: this measures what an order from thread to thread costs,
//! and what the device does with it is next to nothing.

use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use accel::cpu::{Inline, Settings, Workers};
use accel::ring::{RingDevice, Shape, Thread};
use accel::task::{Batch, Hashes, Misfit, Task};
use accel::{Completion, Device, Failure, gpu};
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
}

impl BuffersConfig {
    /// From one batch to 144, of 32 to 256 packets.
    pub fn full() -> Self {
        Self {
            buffers: vec![1, 2, 4, 8, 16, 36, 72, 144],
            packets: vec![32, 64, 256],
            batches: 20_000,
            runs: 7,
        }
    }

    /// Fewer of all.
    pub fn quick() -> Self {
        Self { buffers: vec![1, 4, 16, 72], packets: vec![32, 256], batches: 4_000, runs: 3 }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BuffersError {
    /// A device failed.
    #[error("{device}: {failure}")]
    Device {
        /// Which one.
        device: &'static str,
        /// With what.
        failure: Failure,
    },
    /// A device refused a batch for another reason than that it was full.
    #[error("{device}: {why}")]
    Refused {
        /// Which one.
        device: &'static str,
        /// Why.
        why: accel::Refusal,
    },
    /// An answer is wrong: a defect.
    #[error("{0}: a wrong answer")]
    Answer(&'static str),
    /// A batch can't be made: a defect.
    #[error(transparent)]
    Batch(#[from] Misfit),
}

/// A device by the name that results have it under, with room for so many batches.
type Make = fn(usize, Tsc) -> Result<Box<dyn Device>, Failure>;

/// Room of a slot.
fn shape(buffers: usize) -> Result<Shape, Failure> {
    let none = Failure::OutOfMemory { octets: buffers * MOST_PACKETS * ITEM, what: "the ring" };
    Shape::new(buffers, MOST_PACKETS * ITEM, MOST_PACKETS * 4).ok_or(none)
}

const INLINE: (&str, Make) = ("cpu", |buffers, clock| Ok(Box::new(Inline::new(buffers, clock))));
const WORKER: (&str, Make) = ("cpu-worker", |in_flight, clock| {
    let settings = Settings { threads: 1, in_flight, look_for: 1_000_000 };
    Ok(Box::new(Workers::start(settings, &clock)?))
});
const RING: (&str, Make) = ("cpu-ring", |buffers, clock| {
    Ok(Box::new(RingDevice::start(Thread::new(clock), shape(buffers)?, MOST_PACKETS)?))
});
const CUDA_RING: (&str, Make) = ("cuda", |buffers, _| gpu::ring(0, shape(buffers)?, MOST_PACKETS, 0));
const CUDA_LAUNCH: (&str, Make) = ("cuda-launch", |in_flight, _| {
    let settings =
        gpu::Settings { in_flight, input: MOST_PACKETS * ITEM + 16, output: MOST_PACKETS * 4, tables: 0 };
    gpu::launching(0, settings)
});

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &BuffersConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, BuffersError> {
    let mut report = Report::new("buffers", &clock);
    let mut devices = vec![INLINE, WORKER, RING];
    match gpu::list() {
        Ok(gpus) => {
            report.notes.push(format!("cuda: {}", gpus.join(", ")));
            devices.extend([CUDA_RING, CUDA_LAUNCH]);
        }
        Err(why) => report.notes.push(format!("{why}: nothing is measured on a GPU")),
    }
    for &packets in &config.packets {
        for (name, make) in &devices {
            let mut one = 0.0;
            for &buffers in &config.buffers {
                progress.tell(&format!("{name}: {buffers} batches of {packets} packets"));
                let failed = |failure| BuffersError::Device { device: name, failure };
                let mut device = make(buffers, clock).map_err(failed)?;
                let mut round = || flood(device.as_mut(), name, config.batches, buffers, packets, clock);
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

/// Sends batches through a device, `buffers` at a time: nanoseconds for each, and microseconds until one was back, in the middle and of the 99th percentile.
fn flood(
    device: &mut dyn Device,
    name: &'static str,
    batches: usize,
    buffers: usize,
    packets: usize,
    clock: Tsc,
) -> Result<[f64; 3], BuffersError> {
    let task = Task::Hash(Hashes::new(1)?);
    let item: [u8; ITEM] = std::array::from_fn(|at| at as u8);
    let right = accel::hash::hash(&item, Hashes::new(1)?);
    let mut spare = Vec::with_capacity(buffers);
    for _ in 0..buffers {
        let mut batch = Batch::new(0, task);
        (0..packets).try_for_each(|_| batch.push(&item))?;
        spare.push(batch);
    }
    let (mut sent, mut back) = (0, 0);
    let mut ended: Vec<Completion> = Vec::with_capacity(buffers);
    let mut latencies = Vec::with_capacity(batches);
    let start = clock.now();
    while back < batches {
        while sent < batches
            && let Some(batch) = spare.pop()
        {
            match device.submit(batch, clock.now()) {
                Ok(()) => sent += 1,
                Err(rejected) if rejected.why.is_for_now() => {
                    spare.push(rejected.batch);
                    break;
                }
                Err(rejected) => return Err(BuffersError::Refused { device: name, why: rejected.why }),
            }
        }
        if device.poll(clock.now(), &mut ended) == 0 {
            std::hint::spin_loop();
        }
        for completion in ended.drain(..) {
            completion.outcome.map_err(|failure| BuffersError::Device { device: name, failure })?;
            latencies.push(clock.now().since(completion.times.submitted));
            // The last one: that all are looked at would be measured too.
            if completion.batch.number(packets - 1) != Some(right) {
                return Err(BuffersError::Answer(name));
            }
            back += 1;
            spare.push(completion.batch);
        }
    }
    let each = clock.now().since(start) as f64 / batches.max(1) as f64;
    latencies.sort_unstable();
    let at =
        |share: usize| latencies.get(latencies.len() * share / 100).map_or(0.0, |nanos| *nanos as f64 / 1e3);
    Ok([each, at(50), at(99)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn all_devices_that_are_here_are_measured_and_it_is_said_if_there_is_no_gpu() {
        let config = BuffersConfig { buffers: vec![1, 4], packets: vec![32], batches: 50, runs: 2 };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for device in ["cpu", "cpu-worker", "cpu-ring"] {
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
        let gpu = report.all("nanoseconds_per_batch", &[("device", "cuda".into())]).count();
        let none = report.notes.iter().any(|note| note.starts_with("no CUDA device: "));
        assert_eq!(gpu == 0, none);
    }
}
