//! The kernel, and what it has for sockets.

use crate::files::{FileError, Files};
use crate::{clean, note};
use serde::Serialize;

/// The kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Its release; empty if it doesn't say.
    pub release: String,
    /// Words of its command line; empty if it doesn't say.
    pub command_line: Vec<String>,
    /// It has AF_PACKET sockets; `None`: it doesn't say.
    pub af_packet: Option<bool>,
    /// It has AF_XDP sockets; `None`: it doesn't say.
    pub af_xdp: Option<bool>,
    /// It makes TAP interfaces (`/dev/net/tun`).
    pub tun: bool,
    /// The largest receive buffer that a socket may ask for, in bytes.
    pub rmem_max: Option<u64>,
    /// The largest send buffer.
    pub wmem_max: Option<u64>,
    /// The first UDP and TCP port that needs no privilege.
    pub unprivileged_port_start: Option<u64>,
}

impl Kernel {
    /// Reads it below a root.
    pub fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Self {
        let protocols = note(problems, files.table("proc/net/protocols"));
        // A kernel whose AF_PACKET is a module that nobody has asked for yet doesn't list it.
        let has = |name: &str| {
            let mut names = protocols.as_ref()?.lines().filter_map(|line| line.split_whitespace().next());
            Some(names.any(|protocol| protocol == name))
        };
        let release = note(problems, files.text("proc/sys/kernel/osrelease")).unwrap_or_default();
        let command_line = note(problems, files.table("proc/cmdline")).unwrap_or_default();
        let mut limit = |name: &str| note(problems, files.count(&format!("proc/sys/net/{name}")));
        Self {
            release: clean(&release),
            command_line: command_line.split_whitespace().take(256).map(clean).collect(),
            af_packet: has("PACKET"),
            af_xdp: has("XDP"),
            tun: files.exists("dev/net/tun"),
            rmem_max: limit("core/rmem_max"),
            wmem_max: limit("core/wmem_max"),
            unprivileged_port_start: limit("ipv4/ip_unprivileged_port_start"),
        }
    }
}
