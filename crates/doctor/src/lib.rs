//! What will Millrace make of this machine?
//!
//! # The problem
//! A UPF that forwards half of what it could says nothing about it: the cores are shared, the huge pages are missing, the NIC is on the
//! other socket. One that does not start says one reason, and the next one after that. Both are known in advance.
//!
//! # The model
//! [`examine`] holds facts ([`machine::Machine`]) against what each part of Millrace needs, and against a configuration if there is one.
//! Each [`Finding`] says what was found, what Millrace makes of it and why, a [`Verdict`], and the remedy where there is one: the
//! command to run, as root where it begins with `#`.
//!
//! **A verdict of "won't work"** is said only of what hinders `millrace run`: altogether, or with the configuration that was given. Without a
//! configuration nobody knows which NIC or which capability is wanted.
//!
//! It is a function: no file is read but those of the machine's root, and what only the running program knows comes as [`Program`].
//!
//! # Example
//! ```
//! let machine = machine::Machine::read("/".as_ref());
//! let program = doctor::Program { dpdk: None, gpus: None, pinnable: |cores| cores, remarks: |_| Vec::new() };
//! let report = doctor::examine(&machine, &program, None);
//! assert!(report.to_string().contains("PROCESSOR"));
//! ```
//!
//! # When not to use it
//! For what a running UPF meets: `millrace ctl` asks it.
#![forbid(unsafe_code)]

mod cores;
mod finding;
mod fit;
mod gpus;
mod memory;
mod network;
mod ports;
mod processor;

pub use finding::{Area, Finding, Report, Verdict};

use config::Config;
use machine::Machine;

/// What the running program knows beside the machine's files.
#[derive(Clone, Debug)]
pub struct Program {
    /// DPDK, if it is built in.
    pub dpdk: Option<Dpdk>,
    /// GPUs that the driver has told it of, or why there is none; `None`: the driver can't be asked about this machine.
    pub gpus: Option<Result<Vec<String>, String>>,
    /// Which of these cores a thread of the process may be pinned to.
    pub pinnable: fn(Vec<usize>) -> Vec<usize>,
    /// What is to say of a kernel interface that a port is made of: each with its remedy behind the last colon.
    pub remarks: fn(&str) -> Vec<String>,
}

/// DPDK as it is built in.
#[derive(Clone, Debug)]
pub struct Dpdk {
    /// Its version.
    pub version: String,
    /// Drivers by their names without numbers; `None`: those of the installation.
    pub drivers: Option<Vec<&'static str>>,
}

/// Examines a machine, and whether a configuration fits it.
pub fn examine(machine: &Machine, program: &Program, config: Option<&Config>) -> Report {
    let mut findings = Vec::new();
    processor::examine(machine, program, &mut findings);
    cores::examine(machine, config, &mut findings);
    memory::examine(machine, config, &mut findings);
    network::examine(machine, &mut findings);
    ports::examine(machine, program, &mut findings);
    gpus::examine(machine, program, &mut findings);
    if let Some(config) = config {
        fit::examine(machine, program, config, &mut findings);
    }
    Report::new(findings, machine.problems.iter().map(ToString::to_string).collect())
}

/// Whole gigabytes or megabytes, rounded to the nearest tenth.
fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes >= GIB {
        format!("{:.1} GiB", bytes as f64 / GIB as f64)
    } else {
        format!("{} MiB", bytes >> 20)
    }
}

#[cfg(test)]
mod tests;
