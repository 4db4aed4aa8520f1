//! The network around the UPF as the control socket tells of it: all of it is known to the control thread.

use super::Upf;
use super::calendar::utc;
use crate::ctl::{GnbLine, MAX_PAGE, NeighbourLine, PoolLine, RouteLine};
use datapath::net::Hop;
use packet::MacAddr;
use std::net::IpAddr;

fn interface(upf: &Upf, number: u16) -> String {
    let interface = upf.net.interfaces().get(usize::from(number));
    interface.map(|interface| interface.name.clone()).unwrap_or_default()
}

fn mac(upf: &Upf, number: u16, address: IpAddr) -> Option<MacAddr> {
    upf.net.neighbours().find(|known| (known.0, known.1) == (number, address)).map(|known| known.2)
}

/// Subnets of interfaces, and routes of the configuration.
pub(super) fn routes(upf: &Upf) -> Vec<RouteLine> {
    let line = |(to, number, via): (ipnet::IpNet, u16, Option<IpAddr>)| RouteLine {
        to: to.to_string(),
        interface: interface(upf, number),
        via,
        mac: via.and_then(|via| mac(upf, number, via)).map(|mac| mac.to_string()),
    };
    let subnets = upf.net.interfaces().iter().enumerate().flat_map(|(number, interface)| {
        interface.addresses.iter().map(move |address| (address.trunc(), number as u16, None))
    });
    let mut routes: Vec<_> = subnets.chain(upf.net.routes()).collect();
    routes.sort_unstable();
    routes.dedup();
    routes.into_iter().map(line).collect()
}

pub(super) fn neighbours(upf: &Upf) -> Vec<NeighbourLine> {
    let configured = |number: u16, address| {
        let given = &upf.config.neighbours;
        given.iter().any(|known| known.interface as u16 == number && known.address == address)
    };
    let line = |(number, address, mac): (u16, IpAddr, MacAddr)| NeighbourLine {
        interface: interface(upf, number),
        address,
        mac: mac.to_string(),
        configured: configured(number, address),
    };
    upf.net.neighbours().take(MAX_PAGE as usize).map(line).collect()
}

pub(super) fn gnbs(upf: &mut Upf) -> Vec<GnbLine> {
    let view = upf.net.view();
    let wall = upf.n4.wall();
    let leads = |address| match view.hop(view.route(address)) {
        Hop::OnLink { interface: number } | Hop::Gateway { interface: number, .. } => {
            Some(interface(upf, number))
        }
        _ => None,
    };
    let mut lines: Vec<_> = upf
        .n4
        .far_ends()
        .map(|far_end| GnbLine {
            address: far_end.address,
            rules: far_end.rules.into(),
            interface: leads(far_end.address),
            error_indications: far_end.error_indications,
            last_error: far_end.last_error.map(|at| utc(wall.ntp(at).0)),
        })
        .collect();
    lines.sort_unstable_by_key(|line| line.address);
    lines
}

pub(super) fn pools(upf: &Upf) -> Vec<PoolLine> {
    let pools = upf.config.pools.iter().zip(upf.n4.store().pools());
    let line = |(pool, usage): (&crate::config::Pool, session::addresses::PoolUsage)| {
        let ipv4 = pool.ipv4.iter().map(ToString::to_string);
        PoolLine {
            network_instance: pool.network_instance.clone(),
            prefixes: ipv4.chain(pool.ipv6.iter().map(ToString::to_string)).collect(),
            ipv4_used: usage.ipv4.0.into(),
            ipv4_size: usage.ipv4.1.into(),
            ipv6_used: usage.ipv6.0.into(),
            ipv6_size: usage.ipv6.1.into(),
        }
    };
    pools.map(line).collect()
}
