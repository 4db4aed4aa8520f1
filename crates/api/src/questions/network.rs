//! The network around the UPF: `routes`, `neighbours`, `gnbs` and `pools`.

use super::Question;
use crate::table::{Page, columns};
use crate::words::ago;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Show where packets go: interfaces' subnets and routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Routes {}

impl Question for Routes {
    const NAME: &'static str = "routes";
    type Answer = RouteList;

    fn show(&self, told: &RouteList) -> Page {
        let mut page = Page::table(&told.routes);
        page.part(&told.policies);
        page
    }
}

/// All routes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RouteList {
    /// In order of destination.
    pub routes: Vec<RouteLine>,
    /// Forwarding Policies that SMFs may name, in the order of the configuration.
    #[serde(default)]
    pub policies: Vec<PolicyLine>,
}

/// A Forwarding Policy: what packets do that a FAR sends out by it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PolicyLine {
    /// Its identifier.
    pub policy: String,
    /// Routers that they go to, whatever routes say; none of a family: as routes say.
    pub next_hops: Vec<IpAddr>,
    /// The Network Instance that takes the place of the FAR's; none: the FAR's.
    pub network_instance: Option<String>,
    /// Pools of public addresses that ask for it.
    pub nat: Vec<String>,
}

columns!(PolicyLine, |line| {
    "FORWARDING POLICY" Left line.policy,
    "NEXT ROUTERS" Left line.next_hops.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    "NETWORK INSTANCE" Left line.network_instance,
    "NAT" Left line.nat.join(", "),
});

/// Where packets without a tunnel go, and tunnels' packets to their far ends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
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

columns!(RouteLine, |route| {
    "TO" Left route.to,
    "INTERFACE" Left route.interface,
    "NEXT ROUTER" Left route.via.map_or_else(|| "on the link".to_owned(), |via| via.to_string()),
    "MAC" Left route.mac,
});

/// Show neighbours whose MAC address is known, or that are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Neighbours {}

impl Question for Neighbours {
    const NAME: &'static str = "neighbours";
    type Answer = NeighbourList;

    fn show(&self, told: &NeighbourList) -> Page {
        let lines = &told.neighbours;
        if lines.is_empty() { Page::text("No neighbour is known.\n") } else { Page::table(lines) }
    }
}

/// Neighbours.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourList {
    /// In order of interface and address; at most 10,000.
    pub neighbours: Vec<NeighbourLine>,
}

/// A neighbour: one whose MAC address is known, or that is looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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

columns!(NeighbourLine, |line| {
    "INTERFACE" Left line.interface,
    "ADDRESS" Left line.address,
    "MAC" Left line.mac,
    "FROM" Left if line.configured { "configuration" } else { "ARP or ND" },
    "STATE" Left line.state,
    "HEARD" Left line.heard_seconds.map(|seconds| format!("{} ago", ago(seconds))),
    "USERS" Right line.users,
});

/// Show gNBs and other UPFs that sessions send to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Gnbs {}

impl Question for Gnbs {
    const NAME: &'static str = "gnbs";
    type Answer = GnbList;

    fn show(&self, GnbList { gnbs }: &GnbList) -> Page {
        if gnbs.is_empty() {
            return Page::text("No session sends to a gNB or another UPF.\n");
        }
        Page::table(gnbs)
    }
}

/// Far ends of tunnels.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GnbList {
    /// In order of address.
    pub gnbs: Vec<GnbLine>,
}

/// A gNB, or another UPF, that sessions send to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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

columns!(GnbLine, |gnb| {
    "ADDRESS" Left gnb.address,
    "INTERFACE" Left gnb.interface.clone().unwrap_or_else(|| "no route".to_owned()),
    "FARS" Right gnb.rules,
    "ERROR INDICATIONS" Right gnb.error_indications,
    "LAST" Left gnb.last_error,
});

/// Show pools of UE addresses and how full they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Pools {}

impl Question for Pools {
    const NAME: &'static str = "pools";
    type Answer = PoolList;

    fn show(&self, PoolList { pools }: &PoolList) -> Page {
        if pools.is_empty() {
            return Page::text("There are no pools: SMFs name UE addresses.\n");
        }
        Page::table(pools)
    }
}

/// All pools of UE addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PoolList {
    /// In the order of the configuration.
    pub pools: Vec<PoolLine>,
}

/// A pool of UE addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
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

columns!(PoolLine, |pool| {
    "NETWORK" Left if pool.network_instance.is_empty() { "any other" } else { &pool.network_instance },
    "PREFIXES" Left pool.prefixes.join(", "),
    "IPV4 USED" Right pool.ipv4_used,
    "SIZE" Right pool.ipv4_size,
    "IPV6 USED" Right pool.ipv6_used,
    "SIZE" Right pool.ipv6_size,
});
