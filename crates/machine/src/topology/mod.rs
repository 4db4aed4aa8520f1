//! Which cores there are, and which of them workers should run on.
//!
//! # The problem
//! Where a worker runs decides what it can do. On a core that the kernel uses for others it pauses when they run. On the second
//! hyperthread of a core that another worker has, both do little more than one. On another socket than its NIC, each packet
//! crosses between sockets. A core that saves energy wakes late. None of that is an error, and nobody sees it.
//!
//! # The model
//! [`Topology::read`] reads what the kernel says about cores: NUMA node, hyperthreads, isolation (`isolcpus`, `nohz_full`), frequency
//! governor and the wake-up latency that may be had; [`Topology::port_node`] says where a port is. [`Topology::choose`] picks cores for
//! workers and says of each why; [`Topology::warnings`] says what is not as it should be, of chosen cores as of
//! configured ones.
//!
//! The order of preference: isolated cores first; of a physical core's hyperthreads one first; cores of the ports' nodes first;
//! core 0 and its other hyperthreads last, since the kernel does its own work there; then by number.
//!
//! **Sysfs is a directory** that is given, `/sys` or a test's. A file that is missing leaves out what it would have said; one
//! that says something strange is a [`FileError`] among [`Topology::problems`], and counts as missing. Only without a list of
//! cores that are online there is no topology. Reading is bounded in bytes and in files.
//!
//! # Example
//! ```no_run
//! use machine::topology::{Topology, Wish};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let topology = Topology::read("/sys".as_ref())?;
//! let node = topology.port_node(&"0000:3b:00.0".parse()?)?;
//! let wish = Wish { workers: 4, usable: &[0, 1, 2, 3], nodes: &[node] };
//! for chosen in topology.choose(&wish)? {
//!     println!("core {}: {}", chosen.core, chosen.why);
//! }
//! # Ok(()) }
//! ```
//!
//! # When not to use it
//! On a machine that is shared with other programs of equal rank, leave threads to the kernel: two programs that choose by
//! the same rule choose the same cores.

mod choose;

pub use choose::{Chosen, NotEnoughCores, PortPlace, Warning, Why, Wish};

use crate::files::{FileError, Files};
use crate::note;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the kernel's is.
pub const SYSFS: &str = "/sys";

/// A core that is online: a hyperthread, where there are such.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Core {
    /// NUMA node.
    pub node: Option<usize>,
    /// Socket.
    pub package: Option<usize>,
    /// Cores that share a physical core, itself included.
    pub siblings: BTreeSet<usize>,
    /// The scheduler puts nothing here by itself (`isolcpus`).
    pub isolated: bool,
    /// No timer interrupts while one thread runs (`nohz_full`).
    pub tickless: bool,
    /// How its frequency follows its load (`performance`, `powersave`, `schedutil`, …).
    pub governor: Option<String>,
    /// The longest wake-up from idle that is allowed, in microseconds (PM QoS); `None`: any.
    pub wake_up_us: Option<u32>,
}

/// A device that a port is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortDevice {
    /// A PCI function: `0000:3b:00.0`.
    Pci(String),
    /// A kernel interface: `eth1`.
    Interface(String),
}

/// It is neither a PCI address nor an interface's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a PCI address such as 0000:3b:00.0 nor the name of a kernel interface")]
pub struct NotADevice(String);

impl FromStr for PortDevice {
    type Err = NotADevice;

    /// Names become parts of paths: what could leave the directory is refused.
    fn from_str(text: &str) -> Result<Self, NotADevice> {
        let refused = || NotADevice(text.chars().take(32).collect());
        let parts: Vec<&str> = text.split([':', '.']).collect();
        let hex = |part: &&str| part.bytes().all(|b| b.is_ascii_hexdigit());
        let widths = parts.iter().map(|part| part.len()).eq([4, 2, 2, 1]);
        let marks = text.chars().filter(|c| !c.is_ascii_hexdigit()).eq([':', ':', '.']);
        if widths && marks && parts.iter().all(hex) {
            return Ok(Self::Pci(text.to_ascii_lowercase()));
        }
        // IFNAMSIZ counts the terminating zero.
        let clean = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b':';
        if (1..16).contains(&text.len()) && text.bytes().all(clean) && text != "." && text != ".." {
            return Ok(Self::Interface(text.to_owned()));
        }
        Err(refused())
    }
}

impl fmt::Display for PortDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(name) | Self::Interface(name) => f.write_str(name),
        }
    }
}

/// The machine's cores.
#[derive(Debug, Serialize)]
pub struct Topology {
    #[serde(skip)]
    root: PathBuf,
    cores: BTreeMap<usize, Core>,
    #[serde(skip)]
    problems: Vec<FileError>,
}

impl Topology {
    /// Reads it from a directory like `/sys`.
    ///
    /// Errors: there is no list of cores that are online, or it can't be read.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        let sysfs = Files(root);
        let online = "devices/system/cpu/online";
        let numbers = sysfs.list(online)?.filter(|list| !list.is_empty());
        let numbers = numbers.ok_or_else(|| FileError::NoSuchFile { path: root.join(online) })?;
        let mut problems = Vec::new();
        let isolated = note(&mut problems, sysfs.list("devices/system/cpu/isolated")).unwrap_or_default();
        let tickless = note(&mut problems, sysfs.list("devices/system/cpu/nohz_full")).unwrap_or_default();
        let mut nodes = BTreeMap::new();
        for node in note(&mut problems, sysfs.list("devices/system/node/online")).unwrap_or_default() {
            let cores = sysfs.list(&format!("devices/system/node/node{node}/cpulist"));
            nodes.extend(note(&mut problems, cores).unwrap_or_default().into_iter().map(|core| (core, node)));
        }
        let mut cores = BTreeMap::new();
        for number in numbers {
            let of = |file: &str| format!("devices/system/cpu/cpu{number}/{file}");
            let siblings = note(&mut problems, sysfs.list(&of("topology/thread_siblings_list")));
            let core = Core {
                node: nodes.get(&number).copied(),
                package: note(&mut problems, sysfs.number(&of("topology/physical_package_id"))),
                siblings: siblings.unwrap_or_default().into_iter().chain([number]).collect(),
                isolated: isolated.contains(&number),
                tickless: tickless.contains(&number),
                governor: note(&mut problems, sysfs.word(&of("cpufreq/scaling_governor"))),
                wake_up_us: note(&mut problems, wake_up(sysfs, &of("power/pm_qos_resume_latency_us"))),
            };
            cores.insert(number, core);
        }
        Ok(Self { root: root.to_owned(), cores, problems })
    }

    /// Cores that are online, by number.
    pub fn cores(&self) -> impl Iterator<Item = (usize, &Core)> {
        self.cores.iter().map(|(number, core)| (*number, core))
    }

    /// One of them.
    pub fn core(&self, number: usize) -> Option<&Core> {
        self.cores.get(&number)
    }

    /// Files that could not be understood.
    pub fn problems(&self) -> &[FileError] {
        &self.problems
    }

    /// The same, taken out of it.
    pub fn take_problems(&mut self) -> Vec<FileError> {
        std::mem::take(&mut self.problems)
    }

    /// The NUMA nodes that cores are on.
    pub fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        let nodes: BTreeSet<usize> = self.cores.values().filter_map(|core| core.node).collect();
        nodes.into_iter()
    }

    /// The NUMA node that a device is on, if it is known: virtual devices have none, nor has any device of a machine with
    /// one node.
    pub fn port_node(&self, device: &PortDevice) -> Result<Option<usize>, FileError> {
        let path = match device {
            PortDevice::Pci(address) => format!("bus/pci/devices/{address}/numa_node"),
            PortDevice::Interface(name) => format!("class/net/{name}/device/numa_node"),
        };
        Files(&self.root).number(&path)
    }
}

/// The file says `0` for any latency, `n/a` for none at all, else microseconds.
fn wake_up(sysfs: Files<'_>, path: &str) -> Result<Option<u32>, FileError> {
    match sysfs.text(path)?.as_deref() {
        None | Some("0") => Ok(None),
        Some("n/a") => Ok(Some(0)),
        Some(text) => match text.parse() {
            Ok(micros) => Ok(Some(micros)),
            Err(_) => Err(sysfs.not_that(path, text, "a number of microseconds")),
        },
    }
}

#[cfg(test)]
mod tests;
