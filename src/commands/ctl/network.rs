//! The network around the UPF: `ctl routes`, `neighbours`, `gnbs` and `pools`.

use super::words::{ago, or_dash};
use crate::table::Side::{Left, Right};
use crate::table::Table;
use api::{GnbLine, NeighbourLine, PoolLine, RouteLine};

/// Where packets go.
pub fn routes(routes: &[RouteLine]) -> String {
    let mut table = Table::new(&[("TO", Left), ("INTERFACE", Left), ("NEXT ROUTER", Left), ("MAC", Left)]);
    for route in routes {
        table.row([
            route.to.clone(),
            route.interface.clone(),
            route.via.map_or_else(|| "on the link".into(), |via| via.to_string()),
            or_dash(route.mac.as_ref()),
        ]);
    }
    table.to_string()
}

/// Neighbours, and what is known of them.
pub fn neighbours(neighbours: &[NeighbourLine]) -> String {
    let mut table = Table::new(&[
        ("INTERFACE", Left),
        ("ADDRESS", Left),
        ("MAC", Left),
        ("FROM", Left),
        ("STATE", Left),
        ("HEARD", Left),
        ("USERS", Right),
    ]);
    for line in neighbours {
        let from = if line.configured { "configuration" } else { "ARP or ND" };
        table.row([
            line.interface.clone(),
            line.address.to_string(),
            or_dash(line.mac.as_ref()),
            from.into(),
            or_dash(line.state.as_ref()),
            or_dash(line.heard_seconds.map(|seconds| format!("{} ago", ago(seconds))).as_ref()),
            line.users.to_string(),
        ]);
    }
    table.to_string()
}

/// Far ends of tunnels.
pub fn gnbs(gnbs: &[GnbLine]) -> String {
    let mut table = Table::new(&[
        ("ADDRESS", Left),
        ("INTERFACE", Left),
        ("FARS", Right),
        ("ERROR INDICATIONS", Right),
        ("LAST", Left),
    ]);
    for gnb in gnbs {
        table.row([
            gnb.address.to_string(),
            gnb.interface.clone().unwrap_or_else(|| "no route".into()),
            gnb.rules.to_string(),
            gnb.error_indications.to_string(),
            or_dash(gnb.last_error.as_ref()),
        ]);
    }
    table.to_string()
}

/// Pools of UE addresses.
pub fn pools(pools: &[PoolLine]) -> String {
    let mut table = Table::new(&[
        ("NETWORK", Left),
        ("PREFIXES", Left),
        ("IPV4 USED", Right),
        ("SIZE", Right),
        ("IPV6 USED", Right),
        ("SIZE", Right),
    ]);
    for pool in pools {
        let network = &pool.network_instance;
        table.row([
            if network.is_empty() { "any other".into() } else { network.clone() },
            pool.prefixes.join(", "),
            pool.ipv4_used.to_string(),
            pool.ipv4_size.to_string(),
            pool.ipv6_used.to_string(),
            pool.ipv6_size.to_string(),
        ]);
    }
    table.to_string()
}
