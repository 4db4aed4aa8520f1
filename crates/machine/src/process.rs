//! What this process may do.

use crate::files::{FileError, Files, parse_list};
use crate::{field, note};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// A capability of the kernel's that some port needs (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum Capability {
    /// Sets up interfaces: MAC address, promiscuous mode, TAP.
    NetAdmin,
    /// Opens raw and packet sockets.
    NetRaw,
    /// UDP and TCP ports below 1024.
    NetBindService,
    /// Locks memory beyond RLIMIT_MEMLOCK.
    IpcLock,
    /// What has no capability of its own: BPF programs on older kernels.
    SysAdmin,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::NetAdmin, Self::NetRaw, Self::NetBindService, Self::IpcLock, Self::SysAdmin];

    /// Its number, as in `<linux/capability.h>`.
    const fn number(self) -> u32 {
        match self {
            Self::NetBindService => 10,
            Self::NetAdmin => 12,
            Self::NetRaw => 13,
            Self::IpcLock => 14,
            Self::SysAdmin => 21,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::NetBindService => "CAP_NET_BIND_SERVICE",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysAdmin => "CAP_SYS_ADMIN",
        }
    }
}

impl From<Capability> for &'static str {
    fn from(capability: Capability) -> Self {
        capability.name()
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// This process's rights and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Capabilities in effect, of those that some port needs; `None`: the kernel doesn't say.
    pub capabilities: Option<Vec<Capability>>,
    /// Cores that its threads run on unless they are pinned to others; isolated ones are not among them. `None`: not known.
    pub cores: Option<BTreeSet<usize>>,
    /// RLIMIT_MEMLOCK in bytes; `u64::MAX`: any; `None`: not known.
    pub locked_memory: Option<u64>,
    /// RLIMIT_NOFILE; the same.
    pub open_files: Option<u64>,
}

impl Process {
    /// Reads it below a root.
    pub fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Self {
        let status = note(problems, files.table("proc/self/status")).unwrap_or_default();
        let effective = field(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let held =
            |mask: u64| Capability::ALL.into_iter().filter(|one| mask >> one.number() & 1 == 1).collect();
        let limits = note(problems, files.table("proc/self/limits")).unwrap_or_default();
        let soft = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            match line.split_whitespace().next()? {
                "unlimited" => Some(u64::MAX),
                number => number.parse().ok(),
            }
        };
        Self {
            capabilities: effective.map(held),
            cores: field(&status, "Cpus_allowed_list").and_then(parse_list),
            locked_memory: soft("Max locked memory"),
            open_files: soft("Max open files"),
        }
    }

    /// Those of these that it lacks; none if that is not known.
    pub fn lacks(&self, needed: &[Capability]) -> Vec<Capability> {
        let Some(held) = &self.capabilities else { return Vec::new() };
        needed.iter().copied().filter(|one| !held.contains(one)).collect()
    }
}
