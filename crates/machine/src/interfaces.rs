//! The kernel's network interfaces.

use crate::files::{FileError, Files};
use crate::{clean, note};
use serde::Serialize;

/// Interfaces that are looked at.
const MOST: usize = 1024;
/// `ARPHRD_LOOPBACK` of `<linux/if_arp.h>`.
const LOOPBACK: u64 = 772;
/// `IFF_UP` of `<linux/if.h>`.
const UP: u32 = 1;

/// An interface of this process's network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The driver of the device behind it; `None`: a virtual one.
    pub driver: Option<String>,
    /// Its largest layer-3 packet.
    pub mtu: Option<u64>,
    /// Somebody has set it up (`IFF_UP`).
    pub is_up: bool,
    /// Its state: `up`, `down`, `unknown`.
    pub state: String,
    /// Megabits a second; `None`: it doesn't say, or has no link.
    pub megabits: Option<u64>,
    /// Receive queues.
    pub rx_queues: usize,
    /// Transmit queues.
    pub tx_queues: usize,
}

/// Reads them below a root.
pub fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Vec<Interface> {
    let names = note(problems, files.names("sys/class/net"));
    let mut read = |name: String| {
        let of = |file: &str| format!("sys/class/net/{name}/{file}");
        if note(problems, files.count(&of("type"))) == Some(LOOPBACK) || !files.exists(&of("ifindex")) {
            return None;
        }
        let flags = note(problems, files.hexadecimal(&of("flags"))).unwrap_or_default();
        // An interface without a link says -1, or answers with an error.
        let speed = note(problems, files.text(&of("speed")));
        let queues = note(problems, files.names(&of("queues")));
        let count = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).count();
        Some(Interface {
            driver: files.link(&of("device/driver")),
            mtu: note(problems, files.count(&of("mtu"))),
            is_up: flags & UP != 0,
            state: clean(&note(problems, files.text(&of("operstate"))).unwrap_or_default()),
            megabits: speed.and_then(|speed| speed.parse().ok()).filter(|megabits| *megabits > 0),
            rx_queues: count("rx-"),
            tx_queues: count("tx-"),
            name,
        })
    };
    names.into_iter().take(MOST).filter_map(&mut read).collect()
}
