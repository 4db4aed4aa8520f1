//! Every kernel compiles for GPUs. That needs NVRTC, but no GPU; `./x kernels` installs it and runs these.

use accel::Failure;
use accel::cuda::Cache;
use accel::cuda::compile::{Arch, compile, version};
use accel::kernels::{PROGRAMS, Source};

#[test]
fn every_kernel_compiles_for_two_architectures_and_spills_nothing() {
    if let Err(why) = version() {
        return testing::skipped(why);
    }
    let mut names = Vec::new();
    for arch in [Arch(80), Arch(90)] {
        for program in PROGRAMS {
            let cubin = compile(program, arch).unwrap_or_else(|failure| panic!("{arch} {failure}"));
            assert_eq!(cubin.octets[..4], *b"\x7fELF");
            for function in cubin.functions() {
                assert!(function.registers > 0 && function.spilled == 0, "{arch} {function}");
                names.push(function.name);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    let expected = ["continuous", "hash", "ldpc_decode", "ldpc_encode", "look_up_flow4", "look_up_flow6"];
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], ["look_up_link", "look_up_lpm4", "look_up_lpm6", "look_up_memo", "nea2"]);
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_with_the_compilers_words() {
    if let Err(why) = version() {
        return testing::skipped(why);
    }
    let source =
        Source { name: "wrong.cu", text: "#include \"common.cuh\"\n__global__ void k() { nothing(); }" };
    let Err(Failure::Compile { kernel: "wrong.cu", log }) = compile(&source, Arch(90)) else {
        panic!("it compiles")
    };
    assert!(log.contains("nothing") && log.contains("wrong.cu(2)"), "{log}");
    let none = Source { name: "none.cu", text: "" };
    assert!(matches!(compile(&none, Arch(1)), Err(Failure::Compile { .. })));
}

#[test]
fn what_was_compiled_once_is_read_from_disk() {
    if let Err(why) = version() {
        return testing::skipped(why);
    }
    let directory = testing::Directory::new("kernels");
    let cache = Cache::at(directory.0.join("cache"));
    let first = cache.get(&PROGRAMS[0], Arch(90)).unwrap();
    assert!(!first.log.is_empty());
    let second = cache.get(&PROGRAMS[0], Arch(90)).unwrap();
    // Nobody has compiled it, so there is nothing to be said.
    assert_eq!((second.octets, second.log.as_str()), (first.octets, ""));
    assert!(!cache.get(&PROGRAMS[0], Arch(80)).unwrap().log.is_empty());
}
