//! Examines a file that could be read as a whole, and turns it into a [`Config`].

use super::findings::{Check, way};
use super::problem::{Step, Wrong};
use super::report::Problem;
use super::sections::{Driver, File, InterfaceSection, NodeSection, PortSection, Role, Written};
use super::tree::Node;
use super::typed::{Config, Interface, N4, Neighbour, Placement, Pool, Port, Route};
use super::units::{DeviceName, InterfaceAddress, NodeId};
use ipnet::IpNet;
use packet::MacAddr;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

/// The configuration, or everything that is wrong with it.
pub(crate) fn check(file: &File, root: &Node) -> Result<Config, Vec<Problem>> {
    let mut check = Check::of(root);
    let workers = check.workers(file);
    check.scaling(&file.scaling, file.workers.dispatchers, workers.workers());
    let ports = check.ports(file, workers.workers());
    let interfaces = check.interfaces(file);
    let routes = check.routes(file);
    let neighbours = check.neighbours(file);
    let pools = check.pools(file);
    let mirrors = check.mirrors(file);
    let forwarding_policies = check.forwarding_policies(file);
    let nat = check.nat(file);
    check.flow_log(&file.flow_log);
    check.inspection(&file.inspection);
    let n4 = check.n4(file);
    let node_id = check.node_id(file);
    check.slices(file);
    let qos = check.qos(file);
    check.marking(file);
    check.limits(file);
    check.log(file);
    check.metrics(file.metrics);
    check.sense(file);
    if !check.problems.is_empty() {
        return Err(check.problems);
    }
    Ok(Config {
        name: file.node.name.clone().unwrap_or_else(|| node_id.to_string()),
        node_id,
        n4,
        n3: file.n3,
        ports,
        interfaces,
        routes,
        neighbours,
        pools,
        slices: file.slice.clone(),
        marking: file.marking.clone(),
        mirrors,
        forwarding_policies,
        nat,
        flow_log: file.flow_log.clone(),
        inspection: file.inspection.clone(),
        workers,
        pin: file.workers.pin,
        model: file.workers.model(),
        parked_packets: file.workers.parked_packets,
        scaling: file.scaling.clone(),
        memory: file.workers.memory,
        lookup: file.workers.lookup,
        qos,
        offload: file.offload,
        limits: file.limits.consistent(),
        socket: file.ctl.socket.clone(),
        metrics: file.metrics,
        log: file.log.clone(),
        written: Written(Box::new(file.clone())),
    })
}

mod qos;
mod sense;

impl Check<'_> {
    /// Names are names, and each is there once.
    pub(super) fn names<'n>(&mut self, kind: &'static str, names: impl Iterator<Item = &'n str>) {
        let mut seen = HashMap::new();
        for (index, name) in names.enumerate() {
            let path = way![kind, index, "name"];
            let characters = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            // Overrides take a number for a position and a name for a name.
            let number = name.bytes().all(|b| b.is_ascii_digit());
            if name.len() > 32 || number || !name.bytes().all(characters) {
                self.wrong(&path, Wrong::BadName { kind, name: name.to_owned() });
            } else if let Some(first) = seen.insert(name, index) {
                let wrong = Wrong::DuplicateName { kind, name: name.to_owned() };
                self.wrong_with(&path, wrong, &way![kind, first, "name"], "the other");
            }
        }
    }

    fn workers(&mut self, file: &File) -> Placement {
        let section = &file.workers;
        match (&section.cores, section.count) {
            (Some(_), Some(_)) => {
                let wrong = Wrong::Exclusive { first: "count", second: "cores" };
                self.wrong_with(&way!["workers", "count"], wrong, &way!["workers", "cores"], "`cores`");
                Placement::Count(1)
            }
            (Some(cores), None) => {
                let mut seen = HashSet::new();
                for (index, core) in cores.iter().enumerate() {
                    if !seen.insert(core) {
                        self.wrong(&way!["workers", "cores", index], Wrong::DuplicateCore { core: *core });
                    }
                }
                Placement::Cores(cores.clone())
            }
            (None, count) => Placement::Count(count.unwrap_or(1)),
        }
    }

    fn ports(&mut self, file: &File, workers: u16) -> Vec<Port> {
        self.names("port", file.port.iter().map(|port| port.name.as_str()));
        let mut devices = HashMap::new();
        let mut ports = Vec::new();
        for (index, section) in file.port.iter().enumerate() {
            let queues = section.queues.unwrap_or(workers);
            let device = match device(section, index, queues) {
                Ok(device) => device,
                Err(wrong) => {
                    let key = if section.device.is_some() { "device" } else { "driver" };
                    self.wrong(&way!["port", index, key], wrong);
                    continue;
                }
            };
            let bond = section.bond.as_ref().map(super::bond::BondSection::examined).transpose();
            let bond = bond.unwrap_or_else(|(what, help)| {
                let wrong = Wrong::Device { port: section.name.clone(), what, help };
                self.wrong(&way!["port", index, "bond"], wrong);
                None
            });
            // Two names of one kernel interface are one device: what counts is what is opened.
            let identity = |device: &DeviceName| match device {
                DeviceName::Vdev { name, .. } => name.clone(),
                DeviceName::Pci(address) => address.to_string(),
            };
            let members = bond.iter().flat_map(|bond| &bond.members);
            let opened = std::iter::once(&device).chain(members).map(identity);
            for identity in section.iface.iter().cloned().chain(opened) {
                if let Some(first) = devices.insert(identity.clone(), index) {
                    let wrong = Wrong::DuplicateDevice { device: identity };
                    self.wrong_with(&way!["port", index], wrong, &way!["port", first], "the other port");
                }
            }
            ports.push(Port {
                name: section.name.clone(),
                device,
                bond,
                queues,
                mtu: section.mtu,
                rx_descriptors: section.rx_descriptors,
                tx_descriptors: section.tx_descriptors,
            });
        }
        ports
    }

    fn interfaces(&mut self, file: &File) -> Vec<Interface> {
        self.names("interface", file.interface.iter().map(|interface| interface.name.as_str()));
        self.roles(&file.interface);
        self.addresses(&file.interface);
        let mut attached = HashMap::new();
        let mut interfaces = Vec::new();
        for (index, section) in file.interface.iter().enumerate() {
            if let Some(first) = attached.insert((&section.port, section.vlan), index) {
                let vlan = section.vlan.map_or("without a VLAN".into(), |vlan| format!("and VLAN {vlan}"));
                let wrong = Wrong::DuplicateAttachment { port: section.port.clone(), vlan };
                self.wrong_with(&way!["interface", index], wrong, &way!["interface", first], "the other");
            }
            let Some(port) = file.port.iter().position(|port| port.name == section.port) else {
                let known = file.port.iter().map(|port| port.name.clone()).collect();
                let wrong = Wrong::UnknownName { kind: "port", name: section.port.clone(), known };
                self.wrong(&way!["interface", index, "port"], wrong);
                continue;
            };
            let limit = file.port.get(port).map_or(u16::MAX, |port| port.mtu);
            let mtu = section.mtu.unwrap_or(limit);
            if mtu > limit {
                let wrong = Wrong::MtuAbovePort { mtu, port: section.port.clone(), limit };
                self.wrong_with(
                    &way!["interface", index, "mtu"],
                    wrong,
                    &way!["port", port, "mtu"],
                    "the port's",
                );
            }
            let mut roles = section.roles.clone();
            roles.sort_unstable();
            roles.dedup();
            interfaces.push(Interface {
                name: section.name.clone(),
                port,
                vlan: section.vlan,
                roles,
                addresses: section.addresses.clone(),
                network_instances: section.network_instances.iter().map(|n| n.to_lowercase()).collect(),
                mtu,
            });
        }
        interfaces
    }

    /// A UPF has a radio side, or is in the middle of a chain; and it has a network side, or hands on to another UPF.
    fn roles(&mut self, interfaces: &[InterfaceSection]) {
        for (index, interface) in interfaces.iter().enumerate() {
            for (empty, key, what) in [
                (interface.roles.is_empty(), "roles", "role"),
                (interface.addresses.is_empty(), "addresses", "address"),
            ] {
                if empty {
                    let wrong = Wrong::EmptyInterface { interface: interface.name.clone(), what };
                    self.wrong(&way!["interface", index, key], wrong);
                }
            }
        }
        let any = |roles: &[Role]| interfaces.iter().any(|i| i.roles.iter().any(|role| roles.contains(role)));
        if !any(&[Role::N3, Role::N9]) {
            self.missing(Wrong::RoleMissing {
                roles: "`n3` or `n9`",
                purpose: "gNBs reach the UPF through `n3`, other UPFs through `n9`: add one to an [[interface]]",
            });
        }
        if !any(&[Role::N6, Role::N9]) {
            self.missing(Wrong::RoleMissing {
                roles: "`n6` or `n9`",
                purpose: "the data network is behind `n6`, another UPF behind `n9`: add one to an [[interface]]",
            });
        }
    }

    fn addresses(&mut self, interfaces: &[InterfaceSection]) {
        let mut seen: HashMap<IpAddr, (usize, usize)> = HashMap::new();
        let mut subnets: Vec<(IpNet, usize, usize)> = Vec::new();
        for (index, interface) in interfaces.iter().enumerate() {
            for (position, own) in interface.addresses.iter().enumerate() {
                let path = way!["interface", index, "addresses", position];
                let (address, subnet) = (own.address(), own.subnet());
                if let Some(what) = not_a_host(own.0) {
                    self.wrong(&path, Wrong::NotAHost { address, what });
                    continue;
                }
                if let Some((i, p)) = seen.insert(address, (index, position)) {
                    let other = way!["interface", i, "addresses", p];
                    self.wrong_with(&path, Wrong::DuplicateAddress { address }, &other, "the first time");
                    continue;
                }
                // Every link has the same link-local subnet.
                if matches!(address, IpAddr::V6(a) if a.is_unicast_link_local()) {
                    continue;
                }
                let other = subnets.iter().find(|(net, i, _)| *i != index && overlap(*net, subnet));
                if let Some(&(first, i, p)) = other {
                    let wrong = Wrong::Overlap { what: "the subnets", first, second: subnet };
                    self.wrong_with(&path, wrong, &way!["interface", i, "addresses", p], "the other");
                }
                subnets.push((subnet, index, position));
            }
        }
    }

    /// The position of the interface that is named at the path.
    fn interface(&mut self, file: &File, name: &str, path: &[Step]) -> Option<usize> {
        let position = file.interface.iter().position(|interface| interface.name == name);
        if position.is_none() {
            let known = file.interface.iter().map(|interface| interface.name.clone()).collect();
            self.wrong(path, Wrong::UnknownName { kind: "interface", name: name.to_owned(), known });
        }
        position
    }

    fn routes(&mut self, file: &File) -> Vec<Route> {
        let mut seen = HashMap::new();
        let mut routes = Vec::new();
        for (index, section) in file.route.iter().enumerate() {
            let to = section.to;
            if to != to.trunc() {
                self.wrong(&way!["route", index, "to"], Wrong::HostBits { prefix: to });
            } else if let Some(first) = seen.insert(to, index) {
                let wrong = Wrong::DuplicateRoute { to };
                self.wrong_with(&way!["route", index, "to"], wrong, &way!["route", first, "to"], "the other");
            }
            let via_path = way!["route", index, "via"];
            if let Some(via) = section.via
                && via.is_ipv4() != to.addr().is_ipv4()
            {
                self.wrong(&via_path, Wrong::RouteFamily { to, via });
                continue;
            }
            let interface = match (&section.interface, section.via) {
                (None, None) => {
                    self.wrong(&way!["route", index], Wrong::RouteNowhere { to });
                    None
                }
                (None, Some(via)) => {
                    let found = file.interface.iter().position(|interface| reaches(interface, via));
                    if found.is_none() {
                        let wrong = Wrong::NotConnected { address: via, scope: "any interface".into() };
                        self.wrong(&via_path, wrong);
                    }
                    found
                }
                (Some(name), via) => {
                    let found = self.interface(file, name, &way!["route", index, "interface"]);
                    if let (Some(interface), Some(via)) = (found.and_then(|i| file.interface.get(i)), via)
                        && !reaches(interface, via)
                    {
                        let scope = format!("interface `{name}`");
                        self.wrong(&via_path, Wrong::NotConnected { address: via, scope });
                    }
                    found
                }
            };
            if let Some(interface) = interface {
                self.default_route(file, index, to, interface);
                routes.push(Route { to, via: section.via, interface });
            }
        }
        routes
    }

    /// Where a UE's packets have no route but the default one, and that leads out of an interface that they may not leave
    /// through, they all end there. Routes to gNBs and other UPFs that are behind a router are as right as ever.
    fn default_route(&mut self, file: &File, index: usize, to: IpNet, interface: usize) {
        let serves = |section: &InterfaceSection| {
            let family = |own: &InterfaceAddress| own.address().is_ipv4() == to.addr().is_ipv4();
            section.roles.contains(&Role::N6) && section.addresses.iter().any(family)
        };
        let Some(out) = file.interface.get(interface) else { return };
        if to.prefix_len() == 0
            && !out.roles.contains(&Role::N6)
            && let Some(n6) = file.interface.iter().find(|section| serves(section))
        {
            let wrong = Wrong::DefaultRoute { to, interface: out.name.clone(), n6: n6.name.clone() };
            self.wrong(&way!["route", index, "to"], wrong);
        }
    }

    fn neighbours(&mut self, file: &File) -> Vec<Neighbour> {
        let mut seen = HashMap::new();
        let mut neighbours = Vec::new();
        for (index, section) in file.neighbour.iter().enumerate() {
            let (address, mac) = (section.address, section.mac);
            let path = way!["neighbour", index, "address"];
            if mac.is_multicast() || mac == MacAddr::ZERO {
                self.wrong(&way!["neighbour", index, "mac"], Wrong::NotAStation { mac: mac.to_string() });
            }
            let name = &section.interface;
            let Some(position) = self.interface(file, name, &way!["neighbour", index, "interface"]) else {
                continue;
            };
            if file.interface.get(position).is_some_and(|interface| !reaches(interface, address)) {
                let scope = format!("interface `{name}`");
                self.wrong(&path, Wrong::NotConnected { address, scope });
            }
            if let Some(first) = seen.insert((position, address), index) {
                let other = way!["neighbour", first, "address"];
                self.wrong_with(&path, Wrong::DuplicateAddress { address }, &other, "the first time");
            }
            neighbours.push(Neighbour { interface: position, address, mac });
        }
        neighbours
    }

    fn pools(&mut self, file: &File) -> Vec<Pool> {
        let mut seen: Vec<(IpNet, [Step; 4])> = Vec::new();
        let mut pools = Vec::new();
        for (index, section) in file.pool.iter().enumerate() {
            if section.ipv4.is_empty() && section.ipv6.is_empty() {
                self.wrong(&way!["pool", index], Wrong::EmptyPool);
            }
            let ipv4 = section.ipv4.iter().map(|net| IpNet::V4(*net)).enumerate();
            let ipv6 = section.ipv6.iter().map(|net| IpNet::V6(*net)).enumerate();
            let all = ipv4.map(|(p, net)| (net, way!["pool", index, "ipv4", p]));
            for (prefix, path) in all.chain(ipv6.map(|(p, net)| (net, way!["pool", index, "ipv6", p]))) {
                self.pool_prefix(file, prefix, section.ipv6_prefix_length, &path);
                if let Some((first, other)) = seen.iter().find(|(net, _)| overlap(*net, prefix)) {
                    let wrong = Wrong::Overlap { what: "the pools", first: *first, second: prefix };
                    let other = other.clone();
                    self.wrong_with(&path, wrong, &other, "the other");
                }
                seen.push((prefix, path));
            }
            pools.push(Pool {
                network_instance: section.network_instance.to_lowercase(),
                ipv4: section.ipv4.clone(),
                ipv6: section.ipv6.clone(),
                ipv6_prefix_length: section.ipv6_prefix_length,
                ue_to_ue: section.ue_to_ue,
            });
        }
        pools
    }

    /// A pool's prefix on its own: its size, its bits, and none of our own addresses in it.
    fn pool_prefix(&mut self, file: &File, prefix: IpNet, of_ue: u8, path: &[Step]) {
        let size = match prefix {
            IpNet::V4(net) if net.prefix_len() < 8 => Some("a pool is a /8 or smaller"),
            IpNet::V6(net) if net.prefix_len() > of_ue => {
                Some("each UE gets a prefix of `ipv6-prefix-length` out of it, so it is no longer than that")
            }
            IpNet::V6(net) if net.prefix_len() + 26 < of_ue => {
                Some("a pool is for 2^26 UEs at most: of /64s it is a /38 or smaller, of /56s a /30")
            }
            _ => None,
        };
        if let Some(why) = size {
            self.wrong(path, Wrong::PoolSize { prefix, why });
            return;
        }
        if prefix != prefix.trunc() {
            self.wrong(path, Wrong::HostBits { prefix });
            return;
        }
        self.pool_prefix_addresses(file, prefix, path);
    }

    /// None of our own addresses, and no next hop, is in a prefix that others are given addresses of.
    pub(super) fn pool_prefix_addresses(&mut self, file: &File, prefix: IpNet, path: &[Step]) {
        for (i, interface) in file.interface.iter().enumerate() {
            for (p, own) in interface.addresses.iter().enumerate() {
                if prefix.contains(&own.address()) {
                    let wrong = Wrong::PoolHasOwnAddress {
                        pool: prefix,
                        owner: "this UPF's own address",
                        address: own.address(),
                    };
                    self.wrong_with(path, wrong, &way!["interface", i, "addresses", p], "the address");
                }
            }
        }
        for (i, peers) in file.n4.peers.iter().flatten().enumerate() {
            // Everybody is let in on purpose, which is warned of.
            if peers.prefix_len() > 0 && (prefix.contains(peers) || peers.contains(&prefix)) {
                let wrong = Wrong::PoolHasPeers { pool: prefix, peers: *peers };
                self.wrong_with(path, wrong, &way!["n4", "peers", i], "who may speak N4");
            }
        }
        if prefix.contains(&file.n4.listen.ip()) {
            let wrong = Wrong::PoolHasOwnAddress {
                pool: prefix,
                owner: "the N4 address",
                address: file.n4.listen.ip(),
            };
            self.wrong_with(path, wrong, &way!["n4", "listen"], "the address");
        }
        for (i, via) in file.route.iter().enumerate().filter_map(|(i, route)| Some((i, route.via?))) {
            if prefix.contains(&via) {
                let wrong = Wrong::PoolHasOwnAddress { pool: prefix, owner: "the next hop", address: via };
                self.wrong_with(path, wrong, &way!["route", i, "via"], "the route");
            }
        }
    }

    fn n4(&mut self, file: &File) -> N4 {
        let section = &file.n4;
        let loopback = [
            IpNet::from(ipnet::Ipv4Net::new_assert([127, 0, 0, 0].into(), 8)),
            IpNet::from(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)),
        ];
        let peers = match &section.peers {
            Some(peers) => peers.clone(),
            None if section.listen.ip().is_loopback() => loopback.to_vec(),
            None => Vec::new(),
        };
        if peers.is_empty() {
            let wrong = Wrong::PeersMissing { listen: section.listen.to_string() };
            let key = if section.peers.is_some() { "peers" } else { "listen" };
            self.wrong(&way!["n4", key], wrong);
        }
        for (index, prefix) in section.peers.iter().flatten().enumerate() {
            if *prefix != prefix.trunc() {
                self.wrong(&way!["n4", "peers", index], Wrong::HostBits { prefix: *prefix });
            }
        }
        let millisecond = Duration::from_millis(1);
        let hour = Duration::from_hours(1);
        if !(100 * millisecond..=Duration::from_mins(1)).contains(&section.t1) {
            let wrong = Wrong::DurationOutOfRange { key: "t1", least: "100ms", greatest: "60s" };
            self.wrong(&way!["n4", "t1"], wrong);
        }
        let heartbeat = section.heartbeat_interval;
        if !heartbeat.is_zero() && !(1000 * millisecond..=hour).contains(&heartbeat) {
            let (least, greatest) = ("1s (or 0s: none)", "1h");
            let wrong = Wrong::DurationOutOfRange { key: "heartbeat-interval", least, greatest };
            self.wrong(&way!["n4", "heartbeat-interval"], wrong);
        }
        if section.last_reports > hour {
            let wrong = Wrong::DurationOutOfRange { key: "last-reports", least: "0s", greatest: "1h" };
            self.wrong(&way!["n4", "last-reports"], wrong);
        }
        N4 {
            listen: section.listen,
            peers,
            associate_with: section.associate_with.clone(),
            heartbeat_interval: (!heartbeat.is_zero()).then_some(heartbeat),
            t1: section.t1,
            n1: section.n1,
            last_reports: section.last_reports,
        }
    }

    fn node_id(&mut self, file: &File) -> NodeId {
        let NodeSection { id, .. } = &file.node;
        let listen = file.n4.listen.ip();
        if id.is_none() && listen.is_unspecified() {
            self.wrong(&way!["n4", "listen"], Wrong::NodeIdMissing);
        }
        id.clone().unwrap_or_else(|| listen.into())
    }

    /// Slices are told apart, by their names and by what their sessions have.
    fn slices(&mut self, file: &File) {
        self.names("slice", file.slice.iter().map(|slice| slice.name.as_str()));
        let mut known = HashMap::new();
        for (index, slice) in file.slice.iter().enumerate() {
            let whole = vec![Step::from("slice"), index.into()];
            let key = |name: &str| [&whole[..], &[Step::from(name)]].concat();
            if slice.s_nssai.is_none() && slice.network_instances.is_empty() {
                self.wrong(&whole, Wrong::SliceOfNobody { name: slice.name.clone() });
            }
            let nssai = slice.s_nssai.map(|nssai| (format!("S-NSSAI {nssai}"), key("s-nssai")));
            let names = slice
                .network_instances
                .iter()
                .map(|name| (format!("Network Instance {}", name.to_lowercase()), key("network-instances")));
            for (what, path) in nssai.into_iter().chain(names) {
                if let Some(first) = known.insert(what.clone(), path.clone()) {
                    self.wrong_with(&path, Wrong::TwoSlices { what }, &first, "the other");
                }
            }
            for (excess, maximum, guaranteed, name) in [
                (slice.uplink_excess_burst, slice.uplink, slice.uplink_guaranteed, "uplink-excess-burst"),
                (
                    slice.downlink_excess_burst,
                    slice.downlink,
                    slice.downlink_guaranteed,
                    "downlink-excess-burst",
                ),
            ] {
                if excess.is_some() && (maximum.is_none() || guaranteed.is_some()) {
                    self.wrong(&key(name), Wrong::ExcessOfNoSingleRate { key: name });
                }
            }
            for (guaranteed, maximum, name) in [
                (slice.uplink_guaranteed, slice.uplink, "uplink-guaranteed"),
                (slice.downlink_guaranteed, slice.downlink, "downlink-guaranteed"),
            ] {
                if guaranteed.is_some_and(|guaranteed| maximum.is_none_or(|maximum| guaranteed > maximum)) {
                    self.wrong(&key(name), Wrong::GuaranteeBeyondMaximum { key: name });
                }
            }
        }
    }

    /// A QFI has one section, and a DSCP stands for one QFI.
    fn marking(&mut self, file: &File) {
        let (mut qfis, mut dscps) = (HashMap::new(), HashMap::new());
        for (index, section) in file.marking.iter().enumerate() {
            let path = vec![Step::from("marking"), index.into(), "qfi".into()];
            if let Some(first) = qfis.insert(section.qfi, path.clone()) {
                let what = format!("QFI {}", section.qfi);
                self.wrong_with(&path, Wrong::MarkedTwice { what }, &first, "the first time");
            }
            for (at, dscp) in section.accept.iter().enumerate() {
                let path = vec![Step::from("marking"), index.into(), "accept".into(), at.into()];
                if let Some(first) = dscps.insert(*dscp, path.clone()) {
                    let what = format!("DSCP {dscp}");
                    self.wrong_with(&path, Wrong::MarkedTwice { what }, &first, "the first time");
                }
            }
        }
    }

    fn limits(&mut self, file: &File) {
        let limits = &file.limits;
        for (part, value, whole, limit) in [
            ("sessions-per-peer", limits.sessions_per_peer, "sessions", limits.sessions),
            ("flows-reserved", limits.flows_reserved, "flows", limits.flows),
            (
                "buffered-packets-per-session",
                limits.buffered_packets_per_session,
                "buffered-packets",
                limits.buffered_packets,
            ),
        ] {
            // A part that nobody wrote down follows the whole, see `Limits::consistent`.
            let written = self.root.get(&way!["limits", part]).is_some();
            if written && value > limit {
                self.wrong(&way!["limits", part], Wrong::LimitOrder { part, value, whole, limit });
            }
        }
    }

    fn log(&mut self, file: &File) {
        let filter = &file.log.filter;
        if !is_log_filter(filter) {
            self.wrong(
                &way!["log", "filter"],
                Wrong::LogFilter { filter: filter.chars().take(80).collect() },
            );
        }
    }
}

/// `level` or `module=level`, separated by commas.
fn is_log_filter(filter: &str) -> bool {
    filter.split(',').map(str::trim).all(|directive| {
        let (module, level) = directive.rsplit_once('=').map_or((None, directive), |(m, l)| (Some(m), l));
        let module_fits = module.is_none_or(|m| {
            !m.is_empty() && m.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
        });
        module_fits
            && ["off", "error", "warn", "info", "debug", "trace"]
                .contains(&level.to_ascii_lowercase().as_str())
    })
}

/// What DPDK is told to open for a port.
fn device(section: &PortSection, index: usize, queues: u16) -> Result<DeviceName, Wrong> {
    let port = section.name.clone();
    let wrong = |what, help| Err(Wrong::Device { port, what, help });
    if section.bond.is_some() {
        return if section.device.is_some() || section.driver.is_some() || section.iface.is_some() {
            wrong("its device twice", "keep either `bond`, or `device`, or `driver` and `iface`")
        } else {
            Ok(DeviceName::Vdev { name: format!("net_bonding{index}"), arguments: String::new() })
        };
    }
    let driver = match (&section.device, section.driver) {
        (Some(_), Some(_)) => {
            return wrong("its device twice", "keep either `device`, or `driver` and `iface`");
        }
        (Some(_), None) if section.iface.is_some() => {
            return wrong("a device and an `iface`", "`iface` belongs to `driver`: drop one of the two");
        }
        (Some(device), None) => return Ok(device.clone()),
        (None, None) => {
            return wrong(
                "no device",
                "add device = \"0000:01:00.0\", or bond, or driver = \"af_packet\" and iface = \"eth1\"",
            );
        }
        (None, Some(driver)) => driver,
    };
    let iface = match (driver, &section.iface) {
        (Driver::Null, None) => "",
        (Driver::Null, Some(_)) => return wrong("an `iface` for the null device", "drop `iface`"),
        (_, None) => return wrong("a driver without an interface", "add iface = \"eth1\""),
        // IFNAMSIZ counts the terminating zero; a comma would end DPDK's argument.
        (_, Some(iface)) => {
            let clean = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b',';
            if !(1..16).contains(&iface.len()) || !iface.bytes().all(clean) {
                return wrong(
                    "no kernel interface",
                    "`iface` is the name that `ip link` shows, at most 15 characters",
                );
            }
            iface
        }
    };
    let arguments = match driver {
        // How its rings are laid out follows from the port's other keys, for `device` as well.
        Driver::AfPacket | Driver::Tap => format!("iface={iface}"),
        Driver::AfXdp => format!("iface={iface},start_queue=0,queue_count={queues}"),
        Driver::Null => String::new(),
    };
    Ok(DeviceName::Vdev { name: format!("{}{index}", driver.dpdk_name()), arguments })
}

/// Whether one prefix contains the other.
fn overlap(a: IpNet, b: IpNet) -> bool {
    a.contains(&b) || b.contains(&a)
}

/// Whether a station with this address can be on the interface's link.
fn reaches(interface: &InterfaceSection, address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.is_unicast_link_local())
        || interface.addresses.iter().any(|own| own.subnet().contains(&address))
}

/// Why the address can't be a station's, if so.
fn not_a_host(net: IpNet) -> Option<&'static str> {
    let address = net.addr();
    if address.is_unspecified() {
        return Some("the unspecified address");
    }
    if address.is_multicast() {
        return Some("a multicast address");
    }
    if address.is_loopback() {
        return Some("a loopback address");
    }
    match net {
        // RFC 3021: a /31 has two hosts and no broadcast address.
        IpNet::V4(net) if net.prefix_len() < 31 && net.addr() == net.network() => {
            Some("the subnet's own address")
        }
        IpNet::V4(net) if net.prefix_len() < 31 && net.addr() == net.broadcast() => {
            Some("the subnet's broadcast address")
        }
        _ => None,
    }
}
