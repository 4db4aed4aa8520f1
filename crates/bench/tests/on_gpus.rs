//! The way of benchmarks to a GPU, with a driver that isn't NVIDIA's (`crates/accel/tests/fake_cuda.cpp`): that all of them take it, answers are compared, and figures come
//! of it. What these are says nothing, and is kept nowhere.

use crate::stand_in::with_a_fake;
use bench::buffers::{self, BuffersConfig};
use bench::devices::{DeviceError, Effort, Lender};
use bench::lookups::{LookupConfig, LookupError, flows, hash, link, lpm};
use bench::progress::Silent;
use bench::radio::ldpc::{self, LdpcConfig};
use bench::radio::nea2::{self, Nea2Config, Nea2Error};
use bench::radio::{Rounds, Size};
use bench::report::Report;
use tables::clock::Tsc;

const GPUS: Effort = Effort { lender: Lender::CUDA, runs: 1, seconds: 0.0, most_items: 3, keys: 40 };

const ROUNDS: Rounds = Rounds { runs: 1, seconds: 0.0 };

fn look_ups() -> LookupConfig {
    let (routes, gpus) = (1_000, GPUS);
    LookupConfig { slots: vec![8], routes4: routes, routes6: routes, lookups: 500, runs: 1, gpus }
}

#[test]
fn all_benchmarks_find_the_gpu() {
    with_a_fake("all_benchmarks_find_the_gpu_body", &[]);
}

#[test]
#[ignore = "run by `all_benchmarks_find_the_gpu` in a process of its own"]
fn all_benchmarks_find_the_gpu_body() {
    let (clock, progress, look_ups) = (Tsc::process(), &mut Silent, look_ups());
    // Look-ups, hashes and packets go by the ring, too.
    let measured = |report: &Report, rate: &str, devices: &[&'static str]| {
        let fake = "cuda: Fake (sm_90, 16 GiB, 2 multiprocessors)";
        assert!(report.notes.iter().any(|note| note == fake), "{report}");
        assert!(!report.notes.iter().any(|note| note.starts_with("not measured")), "{report}");
        for device in devices {
            let of = [("device", (*device).into())];
            assert!(report.all(rate, &of).count() > 0, "{report}");
            assert!(report.all(rate, &of).all(|rate| rate.median > 0.0), "{report}");
            let ratios = report.all("ratio_to_cpu", &of).count();
            assert_eq!(ratios, report.all(rate, &of).count(), "{report}");
        }
    };
    let both = ["cuda", "cuda-ring"];
    measured(&hash::run(&look_ups, clock, progress).unwrap(), "packets_per_second", &both);
    for run in [link::run, flows::run4, flows::run6, lpm::run4, lpm::run6] {
        measured(&run(&look_ups, clock, progress).unwrap(), "lookups_per_second", &both);
    }
    let config = Nea2Config { rounds: ROUNDS, gpus: GPUS, ..Nea2Config::quick() };
    let report = nea2::run(&config, clock, progress).unwrap();
    measured(&report, "bits_per_second", &both);
    // Each of the GPU's five figures beside both of the seed's.
    let size = Size::ALL[1].param();
    assert_eq!(report.all("ratio_to_seed", &[("size", size.clone()), ("device", "cuda".into())]).count(), 8);
    assert_eq!(report.all("ratio_to_seed", &[("size", size), ("device", "cuda-ring".into())]).count(), 2);
    let gpus = Effort { most_items: 1, ..GPUS };
    let config = LdpcConfig { rounds: ROUNDS, iterations: vec![1], sizes: vec![Size::ALL[1]], gpus };
    measured(&ldpc::run(&config, clock, progress).unwrap(), "bits_per_second", &["cuda"]);
    let (buffers, packets) = (vec![1, 4], vec![32]);
    let config = BuffersConfig { buffers, packets, batches: 20, runs: 1, ..BuffersConfig::quick() };
    let report = buffers::run(&config, clock, progress).unwrap();
    for device in both {
        assert_eq!(report.all("nanoseconds_per_batch", &[("device", device.into())]).count(), 2);
    }
}

#[test]
fn a_gpu_that_is_wrong_has_no_figure() {
    with_a_fake("a_gpu_that_is_wrong_has_no_figure_body", &[("FAKE_WRONG", "1")]);
}

#[test]
#[ignore = "run by `a_gpu_that_is_wrong_has_no_figure` in a process of its own"]
fn a_gpu_that_is_wrong_has_no_figure_body() {
    let config = Nea2Config { rounds: ROUNDS, gpus: GPUS, ..Nea2Config::quick() };
    let wrong = nea2::run(&config, Tsc::process(), &mut Silent).unwrap_err();
    assert!(matches!(wrong, Nea2Error::Device(DeviceError::Wrong { device: "cuda", octet: 0 })), "{wrong}");
    let wrong = flows::run4(&look_ups(), Tsc::process(), &mut Silent).unwrap_err();
    assert!(matches!(wrong, LookupError::Device(DeviceError::Wrong { .. })), "{wrong}");
}

#[test]
fn a_gpu_without_enough_memory_leaves_the_processor_s_figures() {
    let settings = [("FAKE_MEMORY", "1000")];
    with_a_fake("a_gpu_without_enough_memory_leaves_the_processor_s_figures_body", &settings);
}

#[test]
#[ignore = "run by `a_gpu_without_enough_memory_leaves_the_processor_s_figures` in a process of its own"]
fn a_gpu_without_enough_memory_leaves_the_processor_s_figures_body() {
    let report = flows::run4(&look_ups(), Tsc::process(), &mut Silent).unwrap();
    assert!(report.all("lookups_per_second", &[("device", "cpu".into())]).count() > 0);
    assert_eq!(report.all("lookups_per_second", &[("device", "cuda".into())]).count(), 0);
    let note = "not measured from here on: cuda: the device has no ";
    assert!(report.notes.iter().any(|line| line.starts_with(note)), "{report}");
}
