//! What does this machine offer?
//!
//! # The problem
//! Whether a UPF is fast, or starts at all, is decided by the machine under it: vectors, cores, huge pages, the driver that a NIC is
//! bound to, capabilities. The kernel tells all of that in files, in a hundred places and as many formats. Some are missing in a
//! container, some are unreadable for users, and what stands in them need not be true.
//!
//! # The model
//! [`Machine::read`] reads them below a root directory: `/`, a copy of another machine's files, or a test's. Each fact has a
//! module with its own type. What is not there is left out; what can't be read or understood is a [`FileError`] among
//! [`Machine::problems`], and counts as missing. **Nothing but files is read**, no file is read beyond a bound, and none needs root.
//!
//! What the facts mean for Millrace is not said here: the crate `doctor` does that.
//!
//! # Example
//! ```
//! let machine = machine::Machine::read("/".as_ref());
//! println!("{} with {} huge pages", machine.processor.model, machine.memory.huge.iter().map(|pages| pages.total).sum::<u64>());
//! ```
//!
//! # Cost
//! Some hundred small files: milliseconds. It is for starts and reports, not for the packet path.
#![forbid(unsafe_code)]

pub mod clock;
pub mod files;
pub mod gpu;
pub mod interfaces;
pub mod kernel;
pub mod memory;
pub mod nics;
pub mod process;
pub mod processor;
pub mod topology;

use files::{FileError, Files};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// All facts.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Where they were read.
    pub root: PathBuf,
    /// The processor and its instructions.
    pub processor: processor::Processor,
    /// What tells the time.
    pub clock: clock::Clock,
    /// Cores; `None`: the machine doesn't list them.
    pub topology: Option<topology::Topology>,
    /// Memory and its pages.
    pub memory: memory::Memory,
    /// The kernel, and what it has for sockets.
    pub kernel: kernel::Kernel,
    /// What this process may do.
    pub process: process::Process,
    /// NICs on PCI, and what it takes to hand them to DPDK.
    pub nics: nics::Nics,
    /// The kernel's network interfaces, without loopback.
    pub interfaces: Vec<interfaces::Interface>,
    /// GPUs.
    pub gpus: gpu::Gpus,
    /// Files that can't be read or understood.
    #[serde(serialize_with = "as_texts")]
    pub problems: Vec<FileError>,
}

impl Machine {
    /// Reads what stands below a directory that looks like `/`.
    pub fn read(root: &Path) -> Self {
        let files = Files(root);
        let mut problems = Vec::new();
        let (topology, mut said) = match topology::Topology::read(&root.join("sys")) {
            Ok(mut topology) => {
                let said = topology.take_problems();
                (Some(topology), said)
            }
            Err(problem) => (None, vec![problem]),
        };
        let processor = processor::Processor::read(files, &mut problems);
        let clock = clock::Clock::read(files, &processor, &mut problems);
        let nodes = topology.iter().flat_map(topology::Topology::nodes).collect();
        let memory = memory::Memory::read(files, &nodes, &mut problems);
        let kernel = kernel::Kernel::read(files, &mut problems);
        let process = process::Process::read(files, &mut problems);
        let nics = nics::Nics::read(files, &mut problems);
        let interfaces = interfaces::read(files, &mut problems);
        let gpus = gpu::Gpus::read(files, &mut problems);
        problems.append(&mut said);
        let root = root.to_owned();
        Self { root, processor, clock, topology, memory, kernel, process, nics, interfaces, gpus, problems }
    }
}

/// What was read; a problem is put aside.
pub(crate) fn note<T: Default>(problems: &mut Vec<FileError>, read: Result<T, FileError>) -> T {
    read.unwrap_or_else(|problem| {
        problems.push(problem);
        T::default()
    })
}

/// What stands behind a name and a colon, in the first line that begins with them: `model name : AMD EPYC`.
pub(crate) fn field<'a>(table: &'a str, name: &str) -> Option<&'a str> {
    table.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.trim_start().strip_prefix(':')?;
        Some(value.trim())
    })
}

/// A text of somebody else's, bounded and without what could steer a terminal.
pub(crate) fn clean(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(120).map(shown).collect()
}

/// For JSON.
fn as_texts<S: serde::Serializer>(problems: &[FileError], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(problems.iter().map(ToString::to_string))
}

#[cfg(test)]
mod tests;
