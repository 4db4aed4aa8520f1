//! All that is said to NVIDIA's driver, against one that isn't NVIDIA's (`fake_cuda.cpp`): memory, copies, launches, the ring, tables, and all that goes
//! wrong. What a GPU would make of it, this doesn't show. Each body has a process of its own, in which that library is found first.

use crate::stand_in::with_a_fake;
use accel::cuda::{Cache, Context, Continuous, Launching};
use accel::gpu::{self, Settings};
use accel::ring::{RingDevice, Shape};
use accel::{Device, Failure, Fallback, Kind, conformance, cpu::Inline};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use tables::Tsc;

const SETTINGS: Settings = Settings { in_flight: 3, input: 1 << 20, output: 1 << 20, tables: 1 << 20 };

fn launching() -> Launching {
    Launching::start(&Context::open(0).unwrap(), Cache::of_user().as_ref(), SETTINGS).unwrap()
}

fn ring(slots: usize) -> RingDevice<Continuous> {
    let shape = Shape::new(slots, 64 << 10, 64 << 10).unwrap();
    let context = Context::open(0).unwrap();
    let behind = Continuous::new(&context, Cache::of_user().as_ref(), shape, 1 << 20, 1).unwrap();
    RingDevice::start(behind, shape, 256).unwrap()
}

#[test]
fn both_devices() {
    with_a_fake("both_devices_body", &[]);
    // Shared memory that no code block fits into: they lie in the GPU's memory.
    with_a_fake("both_devices_body", &[("FAKE_SHARED", "256")]);
}

#[test]
#[ignore = "run by `both_devices` in a process of its own"]
fn both_devices_body() {
    assert_eq!(gpu::list().unwrap(), ["Fake (sm_90, 16 GiB, 2 multiprocessors)"]);
    let mut random = SmallRng::seed_from_u64(41);
    let mut random = || random.next_u64();
    let clock = Tsc::process();
    let report = conformance::run(&mut launching(), &clock, &mut random).unwrap();
    assert!(report.done > 40 && report.given_back > 0, "{report:?}");
    for slots in [1, 144] {
        let report = conformance::run(&mut ring(slots), &clock, &mut random).unwrap();
        assert!(report.done > 20, "{report:?}");
    }
    crate::copies::follows(&mut launching(), false);
    crate::copies::follows(&mut ring(4), false);
    // Several at the same time, of which one goes before the others.
    let shape = Shape::new(2, 64 << 10, 64 << 10).unwrap();
    let mut rings = gpu::rings(0, 3, shape, 256, 1 << 20).unwrap();
    for _ in 0..3 {
        for ring in &mut rings {
            crate::copies::follows(ring, false);
        }
        rings.pop();
    }
    assert!(
        gpu::rings(0, 1000, shape, 256, 0).err().unwrap().to_string().contains("1000 continuous kernels")
    );
    // Lent and taken back, it goes on.
    let mut ring = ring(2);
    ring.lend();
    while !ring.is_lent().unwrap() {}
    ring.submit(crate::devices::batch(1), clock.now()).unwrap();
    while !ring.take_back().unwrap() {}
    let mut ended = Vec::new();
    while ring.poll(clock.now(), &mut ended) == 0 {}
    assert_eq!(ended[0].batch, crate::devices::done(1));
    // Compiled once, and kept.
    let kept = Path::new(&std::env::var("XDG_CACHE_HOME").unwrap()).join("millrace/kernels");
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 3);
}

#[test]
fn a_gpu_that_is_lost_mid_run() {
    with_a_fake("a_gpu_that_is_lost_mid_run_body", &[("FAKE_LAUNCHES", "20")]);
}

#[test]
#[ignore = "run by `a_gpu_that_is_lost_mid_run` in a process of its own"]
fn a_gpu_that_is_lost_mid_run_body() {
    let clock = Tsc::process();
    let mut pair = Fallback::new(launching(), Inline::new(8, clock), accel::fallback::Settings::default());
    let (mut ended, mut random) = (Vec::new(), SmallRng::seed_from_u64(42));
    let mut sent = 0;
    while ended.len() < 60 {
        if sent < 60 {
            let batch = conformance::batch(Kind::Nea2, sent, 5, &mut || random.next_u64()).unwrap();
            sent += u64::from(pair.submit(batch, clock.now()).is_ok());
        }
        pair.poll(clock.now(), &mut ended);
    }
    assert!(matches!(pair.failure(), Some(Failure::Lost(why)) if why.contains("launch failed")));
    let counts = pair.counts();
    assert!(counts.first <= 20 && counts.first + counts.second == 60 && counts.given_up == 1, "{counts:?}");
    assert!(ended.iter().all(|one| one.outcome.is_ok()));
}

#[test]
fn a_gpu_that_does_not_answer() {
    with_a_fake("a_gpu_that_does_not_answer_body", &[("FAKE_HANGS", "1")]);
}

#[test]
#[ignore = "run by `a_gpu_that_does_not_answer` in a process of its own"]
fn a_gpu_that_does_not_answer_body() {
    let clock = Tsc::process();
    let settings = accel::fallback::Settings { patience: 1_000_000, retry_after: 0 };
    let mut pair = Fallback::new(launching(), Inline::new(8, clock), settings);
    let mut ended = Vec::new();
    pair.submit(crate::devices::batch(1), clock.now()).unwrap();
    while pair.poll(clock.now(), &mut ended) == 0 {}
    assert_eq!((&ended[0].outcome, pair.failure()), (&Ok(()), Some(&Failure::Abandoned)));
    // Its buffers are still its own: as long as it hangs, it isn't used again.
    pair.submit(crate::devices::batch(2), clock.now()).unwrap();
    while pair.poll(clock.now(), &mut ended) == 0 {}
    assert_eq!((pair.counts().second, pair.counts().revived), (2, 0));
    // Nor does a ring's kernel go: what it may still write to is left to it.
    let mut ring = ring(2);
    ring.abandon(clock.now(), &mut ended);
    assert_eq!(ring.revive(clock.now()), Err(Failure::Abandoned));
}

#[test]
fn what_is_not_there_or_too_small_is_said() {
    with_a_fake("no_gpu_body", &[("FAKE_GPUS", "0")]);
    with_a_fake("old_driver_body", &[("FAKE_VERSION", "12020")]);
    with_a_fake("no_memory_body", &[("FAKE_MEMORY", "1000000")]);
    with_a_fake("nothing_compiles_body", &[("FAKE_COMPILE", "fails")]);
}

#[test]
#[ignore = "run by `what_is_not_there_or_too_small_is_said` in a process of its own"]
fn no_gpu_body() {
    assert_eq!(gpu::list().unwrap_err().to_string(), "no CUDA device: the driver finds no GPU");
}

#[test]
#[ignore = "run by `what_is_not_there_or_too_small_is_said` in a process of its own"]
fn old_driver_body() {
    let why = gpu::launching(0, SETTINGS).err().unwrap().to_string();
    assert_eq!(why, "no CUDA device: the driver is for CUDA 12.2; 13.0 is needed");
}

#[test]
#[ignore = "run by `what_is_not_there_or_too_small_is_said` in a process of its own"]
fn no_memory_body() {
    let failure = gpu::launching(0, SETTINGS).err().unwrap();
    assert!(matches!(failure, Failure::OutOfMemory { octets: 1_052_672, .. }), "{failure}");
    assert!(matches!(Context::open(1), Err(Failure::Absent { .. })));
    // A table larger than the room for tables: the device is as it was.
    let small = Settings { in_flight: 1, input: 1 << 14, output: 1 << 14, tables: 0 };
    let mut device = gpu::launching(0, small).unwrap();
    assert!(conformance::follow(device.as_mut()).is_err());
    let mut random = SmallRng::seed_from_u64(43);
    let batch = conformance::batch(Kind::Lookup, 1, 3, &mut || random.next_u64()).unwrap();
    let refused = device.submit(batch, Tsc::process().now()).unwrap_err();
    assert_eq!(refused.why, accel::Refusal::NoTable);
}

#[test]
#[ignore = "run by `what_is_not_there_or_too_small_is_said` in a process of its own"]
fn nothing_compiles_body() {
    let failure = gpu::launching(0, SETTINGS).err().unwrap();
    assert_eq!(failure, Failure::Compile { kernel: "batch.cu", log: "nothing compiles".into() });
}
