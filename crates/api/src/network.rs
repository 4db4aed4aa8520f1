//! What `ctl routes`, `neighbours`, `gnbs` and `pools` tell.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where packets without a tunnel go, and tunnels' packets to their far ends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RouteLine {
    /// Destination prefix.
    pub to: String,
    /// The interface's name.
    pub interface: String,
    /// The next router; none: the destination is on the link.
    pub via: Option<IpAddr>,
    /// The next router's MAC address, if it is known.
    pub mac: Option<String>,
}

/// A neighbour: one whose MAC address is known, or that is looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NeighbourLine {
    /// The interface's name.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address, if it is known.
    pub mac: Option<String>,
    /// It is in the configuration; else it was heard.
    pub configured: bool,
    /// RFC 4861's state, in the worker that knows it best: `incomplete`, `stale`, `delay`, `probe` or `reachable`; `fixed` where it is
    /// configured. None: no worker knows it any more, or they don't answer.
    #[serde(default)]
    pub state: Option<String>,
    /// Seconds since a worker last heard where it is.
    #[serde(default)]
    pub heard_seconds: Option<u64>,
    /// Routes and far ends of tunnels that lead to it, in the worker that has most.
    #[serde(default)]
    pub users: u64,
}

/// A gNB, or another UPF, that sessions send to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GnbLine {
    /// Its address.
    pub address: IpAddr,
    /// FARs that send to it.
    pub rules: u64,
    /// The interface that leads to it; none: no route does.
    pub interface: Option<String>,
    /// Error Indications that came from it: it did not know the tunnel of a session.
    pub error_indications: u64,
    /// When the last of them came: UTC as in RFC 3339.
    pub last_error: Option<String>,
}

/// A pool of UE addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PoolLine {
    /// The Network Instance or DNN that it serves; empty: all that no other pool does.
    pub network_instance: String,
    /// Its prefixes.
    pub prefixes: Vec<String>,
    /// IPv4 addresses that UEs have.
    pub ipv4_used: u64,
    /// IPv4 addresses in all.
    pub ipv4_size: u64,
    /// IPv6 prefixes that UEs have.
    pub ipv6_used: u64,
    /// IPv6 prefixes in all.
    pub ipv6_size: u64,
}
