//! GPUs that CUDA could run on. Whether CUDA starts on them, only CUDA can say; these are the signs of it in files.

use crate::files::{FileError, Files};
use crate::{clean, field, note};
use serde::Serialize;

/// A GPU that NVIDIA's driver has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// PCI address.
    pub address: String,
    /// Its model; empty if the driver doesn't say.
    pub model: String,
    /// NUMA node, if it is known.
    pub node: Option<usize>,
}

/// GPUs, and what CUDA needs beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gpus {
    /// Those of the driver, by address.
    pub gpus: Vec<Gpu>,
    /// The version of NVIDIA's kernel driver, if it is loaded.
    pub driver: Option<String>,
    /// Files `/dev/nvidia0`, `1`, …
    pub device_files: usize,
    /// The loader knows `libcuda.so.1`.
    pub libcuda: bool,
}

/// What the loader's cache calls CUDA's library.
const LIBCUDA: &[u8] = b"libcuda.so.1";
/// A loader's cache is some ten to some hundred kilobytes.
const MOST_CACHE: u64 = 4 << 20;

impl Gpus {
    /// Reads them below a root.
    pub fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Self {
        let folder = "proc/driver/nvidia/gpus";
        let mut gpus = Vec::new();
        for address in note(problems, files.names(folder)).into_iter().take(64) {
            let table =
                note(problems, files.table(&format!("{folder}/{address}/information"))).unwrap_or_default();
            let node = note(problems, files.number(&format!("sys/bus/pci/devices/{address}/numa_node")));
            gpus.push(Gpu { model: clean(field(&table, "Model").unwrap_or_default()), node, address });
        }
        let numbered = |name: &String| {
            let number = name.strip_prefix("nvidia").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        };
        let cache = note(problems, files.bytes("etc/ld.so.cache", MOST_CACHE)).unwrap_or_default();
        let version = note(problems, files.table("proc/driver/nvidia/version"));
        Self {
            gpus,
            driver: version.as_deref().and_then(|text| text.lines().next()).map(clean),
            device_files: note(problems, files.names("dev")).iter().filter(|name| numbered(name)).count(),
            libcuda: cache.windows(LIBCUDA.len()).any(|window| window == LIBCUDA),
        }
    }
}
