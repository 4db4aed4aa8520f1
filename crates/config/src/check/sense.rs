//! What is well formed, and refers to something, and still can't be meant.

use super::{File, InterfaceAddress, IpNet, Step, Wrong, overlap};
use crate::findings::{Check, way};
use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Ports that DPDK has room for, aggregated ones and their members counted each (its `RTE_MAX_ETHPORTS`).
const MAX_DEVICES: usize = 32;
/// What a Unix socket's address holds (`sun_path`, 108 bytes with the zero at the end), less what the socket is called until it is
/// ready: a dot and the process's number.
const MAX_SOCKET_PATH: usize = 107 - 8;

impl Check<'_> {
    /// Looks at the whole file. What has been found wrong already is not found wrong again.
    pub(super) fn sense(&mut self, file: &File) {
        self.ourselves(file);
        self.pools_of_ues(file);
        self.mirrors_to_ues(file);
        self.logs(file);
        self.devices(file);
        self.socket(file);
    }

    /// Whether something is wrong with the value at the path.
    fn told(&self, path: &[Step]) -> bool {
        let place = self.root.place(path);
        self.problems.iter().any(|problem| problem.place == place)
    }

    /// Nobody is his own next hop, neighbour or probe.
    fn ourselves(&mut self, file: &File) {
        let vias = file
            .route
            .iter()
            .enumerate()
            .filter_map(|(i, route)| Some(("next hop", route.via?, way!["route", i, "via"].to_vec())));
        let neighbours =
            file.neighbour.iter().enumerate().map(|(i, neighbour)| {
                ("neighbour", neighbour.address, way!["neighbour", i, "address"].to_vec())
            });
        let mirrors = file.mirror.iter().enumerate().filter_map(|(i, mirror)| {
            Some(("mirror's far end", mirror.destination?, way!["mirror", i, "destination"].to_vec()))
        });
        let policies = file.forwarding_policy.iter().enumerate().flat_map(|(i, policy)| {
            let at = move |p| way!["forwarding-policy", i, "next-hop", p].to_vec();
            policy.next_hop.iter().enumerate().map(move |(p, address)| ("next hop", *address, at(p)))
        });
        for (what, address, path) in vias.chain(neighbours).chain(mirrors).chain(policies) {
            let own = file.interface.iter().enumerate().find_map(|(i, interface)| {
                let at = interface.addresses.iter().position(|own| own.address() == address)?;
                Some(way!["interface", i, "addresses", at])
            });
            if let Some(own) = own {
                self.wrong_with(&path, Wrong::Ourselves { what, address }, &own, "the address");
            }
        }
    }

    /// UEs have addresses that can be routed, and none of a link's, where everybody would look for them in vain.
    fn pools_of_ues(&mut self, file: &File) {
        for (prefix, path) in pool_prefixes(file) {
            if self.told(&path) {
                continue;
            }
            if let Some(what) = not_for_ues(prefix) {
                self.wrong(&path, Wrong::PoolOfNobody { prefix, what });
                continue;
            }
            let subnets = file.interface.iter().enumerate().flat_map(|(i, interface)| {
                let addresses = interface.addresses.iter().map(InterfaceAddress::subnet).enumerate();
                addresses.map(move |(p, subnet)| (subnet, way!["interface", i, "addresses", p]))
            });
            let other = subnets.into_iter().find(|(subnet, _)| overlap(*subnet, prefix));
            if let Some((subnet, other)) = other {
                let wrong = Wrong::Overlap { what: "the subnet and the pool", first: subnet, second: prefix };
                self.wrong_with(&path, wrong, &other, "the subnet");
            }
        }
    }

    /// A UE is no place for copies: they would travel in its own session, and be copied.
    fn mirrors_to_ues(&mut self, file: &File) {
        for (index, address) in
            file.mirror.iter().enumerate().filter_map(|(i, mirror)| Some((i, mirror.destination?)))
        {
            let pool = pool_prefixes(file).find(|(prefix, _)| prefix.contains(&address));
            if let Some((pool, other)) = pool {
                let wrong = Wrong::MirrorToUe { address, pool };
                self.wrong_with(&way!["mirror", index, "destination"], wrong, &other, "the pool");
            }
        }
    }

    /// Two logs in one file are none.
    fn logs(&mut self, file: &File) {
        let (Some(flows), Some(bindings)) = (&file.flow_log.file, &file.nat_log.file) else { return };
        // As paths compare: `a//b` and `a/./b` are one.
        if flows.components().collect::<PathBuf>() == bindings.components().collect::<PathBuf>() {
            let wrong = Wrong::OneFile { file: flows.display().to_string() };
            self.wrong_with(&way!["flow-log", "file"], wrong, &way!["nat-log", "file"], "the other log");
        }
    }

    fn devices(&mut self, file: &File) {
        let mut count = 0;
        for (index, port) in file.port.iter().enumerate() {
            count += 1 + port.bond.as_ref().map_or(0, |bond| bond.members.len());
            if count > MAX_DEVICES {
                self.wrong(&way!["port", index], Wrong::TooManyDevices { most: MAX_DEVICES });
                return;
            }
        }
    }

    fn socket(&mut self, file: &File) {
        let Some(socket) = &file.ctl.socket else { return };
        let bytes = socket.as_os_str().len();
        if !(1..=MAX_SOCKET_PATH).contains(&bytes) {
            self.wrong(&way!["ctl", "socket"], Wrong::SocketPath { bytes, most: MAX_SOCKET_PATH });
        }
    }
}

/// All pools' prefixes, and where they stand.
fn pool_prefixes(file: &File) -> impl Iterator<Item = (IpNet, [Step; 4])> + '_ {
    file.pool.iter().enumerate().flat_map(|(index, pool)| {
        let ipv4 = pool.ipv4.iter().map(|net| IpNet::V4(*net)).enumerate();
        let ipv6 = pool.ipv6.iter().map(|net| IpNet::V6(*net)).enumerate();
        let ipv4 = ipv4.map(move |(p, net)| (net, way!["pool", index, "ipv4", p]));
        ipv4.chain(ipv6.map(move |(p, net)| (net, way!["pool", index, "ipv6", p])))
    })
}

/// What a prefix has in it that no UE can be given (RFC 6890), if so.
fn not_for_ues(prefix: IpNet) -> Option<&'static str> {
    let v4 = |a, b, length| IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, 0, 0), length));
    let v6 =
        |first, length| IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0), length));
    [
        (v4(0, 0, 8), "addresses of \"this network\""),
        (v4(127, 0, 8), "loopback addresses"),
        (v4(169, 254, 16), "link-local addresses"),
        (v4(224, 0, 4), "multicast addresses"),
        (v6(0, 8), "loopback and mapped addresses"),
        (v6(0xfe80, 10), "link-local addresses"),
        (v6(0xff00, 8), "multicast addresses"),
    ]
    .into_iter()
    .find_map(|(special, what)| overlap(special, prefix).then_some(what))
}
