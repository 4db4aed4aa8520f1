//! Compiles all kernels for architectures that are named (`sm_80 sm_90` if none are), and prints what each needs: `./x kernels`.
//! A kernel that spills registers is as wrong as one that doesn't compile.

use accel::cuda::compile::{Arch, compile, version};
use accel::kernels::PROGRAMS;
use std::process::ExitCode;

fn main() -> ExitCode {
    let named: Vec<u32> =
        std::env::args().skip(1).filter_map(|name| name.trim_start_matches("sm_").parse().ok()).collect();
    let archs = if named.is_empty() { vec![80, 90] } else { named };
    match version() {
        Ok((major, minor)) => println!("NVRTC {major}.{minor}"),
        Err(failure) => {
            eprintln!("{failure}");
            return ExitCode::from(2);
        }
    }
    let mut failed = false;
    for arch in archs.into_iter().map(Arch) {
        for program in PROGRAMS {
            match compile(program, arch) {
                Ok(cubin) => {
                    println!("{arch} {}: {} octets", program.name, cubin.octets.len());
                    for function in cubin.functions() {
                        failed |= function.spilled > 0;
                        println!("    {function}");
                    }
                }
                Err(failure) => {
                    failed = true;
                    eprintln!("{arch} {failure}");
                }
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
