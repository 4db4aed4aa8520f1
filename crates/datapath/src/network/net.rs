//! The network around the UPF: interfaces, routes, neighbours. The control side owns the master copy ([`Net`]);
//! every worker has its own view ([`NetView`]), replaced by command, so that nothing on the packet path is shared.
//!
//! ```
//! use datapath::net::{Interface, Net, Roles};
//! use packet::MacAddr;
//!
//! let mut net = Net::new();
//! let n3 = net.add_interface(Interface {
//!     name: "n3".into(),
//!     port: 0,
//!     vlan: None,
//!     mac: MacAddr([2, 0, 0, 0, 0, 1]),
//!     mtu: 1500,
//!     roles: Roles { n3: true, n6: false, n9: false },
//!     addresses: vec!["198.51.100.1/24".parse()?],
//!     network_instances: vec!["access".into()],
//! })?;
//! net.add_route("0.0.0.0/0".parse()?, n3, Some("198.51.100.254".parse()?))?;
//! net.add_ue_pool("10.45.0.0/16".parse()?);
//! let view = net.view();
//! assert_eq!(view.interfaces().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::nat::Plan;
use ipnet::IpNet;
use packet::MacAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::{Lookup, Lpm4, Lpm6};

/// Interfaces, at most. The worker's counters and caches have one entry for each.
pub const MAX_INTERFACES: usize = 256;
/// Next hops, at most (each route through a gateway, and each connected network, is one).
pub const MAX_NEXT_HOPS: usize = 1 << 15;
/// Neighbours of an interface that the control side remembers of those that workers learned, at most: the latest.
pub const MAX_NEIGHBOURS: usize = 1 << 14;

/// What an interface may carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// GTP-U with gNBs.
    pub n3: bool,
    /// Plain IP with the data network.
    pub n6: bool,
    /// GTP-U with other UPFs.
    pub n9: bool,
}

impl Roles {
    /// Whether GTP-U may arrive.
    pub const fn tunnels(self) -> bool {
        self.n3 || self.n9
    }
}

/// A layer-3 interface: a port, or one VLAN of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name in configuration and reports.
    pub name: String,
    /// Index of the port.
    pub port: u16,
    /// 802.1Q VLAN ID (1..=4094); `None`: untagged.
    pub vlan: Option<u16>,
    /// The MAC address we answer to.
    pub mac: MacAddr,
    /// Largest IP packet that may be sent, in bytes.
    pub mtu: u16,
    /// What it may carry.
    pub roles: Roles,
    /// Own addresses, each with the prefix that is on-link there.
    pub addresses: Vec<IpNet>,
    /// Network instances (DNN, or an operator's name for N3) that it serves; for the control side.
    pub network_instances: Vec<String>,
}

impl Interface {
    /// The first own IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|net| match net {
            IpNet::V4(net) => Some(net.addr()),
            IpNet::V6(_) => None,
        })
    }

    /// The first own IPv6 address beside the link-local one.
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.addresses.iter().find_map(|net| match net {
            IpNet::V6(net) => Some(net.addr()),
            IpNet::V4(_) => None,
        })
    }

    /// The link-local address made from the MAC address (RFC 4291, appendix A).
    pub fn link_local(&self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.mac.0;
        Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// Whether the address is this interface's own.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.addr() == address) || address == IpAddr::V6(self.link_local())
    }
}

/// What was wrong with a change of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetError {
    /// More than [`MAX_INTERFACES`].
    TooManyInterfaces,
    /// More than [`MAX_NEXT_HOPS`].
    TooManyNextHops,
    /// Another interface has this port and VLAN.
    DuplicateInterface,
    /// A VLAN ID outside 1..=4094.
    InvalidVlan,
    /// An MTU below 1,280, the least that IPv6 allows (RFC 8200 §5).
    MtuTooSmall,
    /// No interface has this index.
    UnknownInterface,
    /// Destination and gateway are of different families.
    FamilyMismatch,
}

impl std::fmt::Display for NetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooManyInterfaces => "too many interfaces (at most 256)",
            Self::TooManyNextHops => "too many next hops (at most 32,768)",
            Self::DuplicateInterface => "another interface has this port and VLAN",
            Self::InvalidVlan => "a VLAN ID is a number from 1 to 4094",
            Self::MtuTooSmall => "the MTU must be at least 1,280 bytes",
            Self::UnknownInterface => "no such interface",
            Self::FamilyMismatch => "destination and gateway are of different address families",
        })
    }
}

impl std::error::Error for NetError {}

/// Where packets to a prefix go: an index into [`NetView::hops`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct HopId(pub u16);

/// What a route leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Hop {
    /// Nowhere.
    Unreachable,
    /// To Millrace itself.
    Own,
    /// To an address that a UE may hold.
    Ue,
    /// To nobody: an address that is no host's (RFC 6890, RFC 4291), or a subnet's broadcast address.
    Martian,
    /// To a host on this interface's link.
    OnLink {
        /// Index of the interface.
        interface: u16,
    },
    /// To this router.
    Gateway {
        /// Index of the interface.
        interface: u16,
        /// The router's address on that link.
        address: IpAddr,
    },
}

impl HopId {
    /// No route.
    pub const UNREACHABLE: Self = Self(0);
    /// Our own address.
    pub const OWN: Self = Self(1);
    /// An address of a UE pool.
    pub const UE: Self = Self(2);
    /// An address that is no host's.
    pub const MARTIAN: Self = Self(3);
}

/// The master copy: what was configured and what was learned. Every change makes the next [`Net::view`] differ.
#[derive(Clone, Debug, Default)]
pub struct Net {
    version: u64,
    interfaces: Vec<Interface>,
    routes: BTreeMap<IpNet, (u16, Option<IpAddr>)>,
    pools: Vec<IpNet>,
    isolated: Vec<IpNet>,
    protected: Vec<IpAddr>,
    /// Network instances that interfaces serve: interface, instance.
    serving: BTreeSet<(u16, u16)>,
    /// Neighbours whose MAC address is configured.
    fixed: BTreeMap<(u16, IpAddr), MacAddr>,
    heard: Heard,
    nat: Option<Arc<Plan>>,
    /// Built with the routes, and used again by views that differ in neighbours only.
    compiled: Option<Arc<Compiled>>,
}

/// Neighbours that workers learned of, the latest of each interface.
#[derive(Clone, Debug, Default)]
struct Heard {
    by_address: BTreeMap<(u16, IpAddr), (MacAddr, u64)>,
    /// Interface and number of what was heard of each last.
    by_age: BTreeMap<(u16, u64), IpAddr>,
    /// How many of each interface.
    counts: BTreeMap<u16, usize>,
    numbers: u64,
}

impl Heard {
    fn learn(&mut self, interface: u16, address: IpAddr, mac: MacAddr) {
        self.numbers += 1;
        let before = self.by_address.insert((interface, address), (mac, self.numbers));
        self.by_age.insert((interface, self.numbers), address);
        if let Some((_, number)) = before {
            self.by_age.remove(&(interface, number));
            return;
        }
        let count = self.counts.entry(interface).or_default();
        *count += 1;
        if *count > MAX_NEIGHBOURS
            && let Some((&(_, number), &oldest)) = self.by_age.range((interface, 0)..).next()
        {
            *count -= 1;
            self.by_age.remove(&(interface, number));
            self.by_address.remove(&(interface, oldest));
        }
    }
}

#[derive(Debug)]
struct Compiled {
    interfaces: Box<[Interface]>,
    hops: Box<[Hop]>,
    routes4: Lpm4,
    routes6: Lpm6,
    own: Box<[IpAddr]>,
    /// Whether an interface serves an instance: for each instance in turn, one for each interface.
    serving: Box<[bool]>,
    /// UE pools and public addresses.
    ues: Box<[IpNet]>,
    isolated: Box<[IpNet]>,
    nat: Option<Arc<Plan>>,
}

impl Net {
    /// No interfaces, no routes.
    pub fn new() -> Self {
        Self::default()
    }

    fn changed(&mut self) {
        self.version += 1;
        self.compiled = None;
    }

    /// Adds an interface, with its connected networks, and says its index.
    pub fn add_interface(&mut self, interface: Interface) -> Result<u16, NetError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(NetError::TooManyInterfaces);
        }
        if interface.vlan.is_some_and(|vlan| !(1..=4094).contains(&vlan)) {
            return Err(NetError::InvalidVlan);
        }
        if interface.mtu < 1280 {
            return Err(NetError::MtuTooSmall);
        }
        if self.interfaces.iter().any(|i| (i.port, i.vlan) == (interface.port, interface.vlan)) {
            return Err(NetError::DuplicateInterface);
        }
        let index = self.interfaces.len() as u16;
        self.interfaces.push(interface);
        self.changed();
        Ok(index)
    }

    /// Adds or replaces a route. Without a gateway its destinations are on the interface's link.
    pub fn add_route(
        &mut self,
        destination: IpNet,
        interface: u16,
        gateway: Option<IpAddr>,
    ) -> Result<(), NetError> {
        if interface as usize >= self.interfaces.len() {
            return Err(NetError::UnknownInterface);
        }
        if gateway.is_some_and(|g| g.is_ipv4() != destination.addr().is_ipv4()) {
            return Err(NetError::FamilyMismatch);
        }
        if self.routes.len() + self.interfaces.len() + 8 >= MAX_NEXT_HOPS {
            return Err(NetError::TooManyNextHops);
        }
        self.routes.insert(destination.trunc(), (interface, gateway));
        self.changed();
        Ok(())
    }

    /// Removes a route; says whether it was there.
    pub fn remove_route(&mut self, destination: IpNet) -> bool {
        let there = self.routes.remove(&destination.trunc()).is_some();
        if there {
            self.changed();
        }
        there
    }

    /// UEs may hold addresses of this prefix: packets to it look for a session instead of a route.
    pub fn add_ue_pool(&mut self, prefix: IpNet) {
        self.pools.push(prefix.trunc());
        self.changed();
    }

    /// UEs with addresses of this prefix reach no other UE, and none reaches them.
    pub fn isolate(&mut self, prefix: IpNet) {
        self.isolated.push(prefix.trunc());
        self.changed();
    }

    /// A pool is no longer used; says whether it was there.
    pub fn remove_ue_pool(&mut self, prefix: IpNet) -> bool {
        let place = self.pools.iter().position(|pool| *pool == prefix.trunc());
        if let Some(place) = place {
            self.pools.swap_remove(place);
            self.changed();
        }
        place.is_some()
    }

    /// What is translated on N6. Its public addresses are routed as UEs' are, so that UEs reach each other by them. A plan that workers have
    /// is followed by one that comes after it ([`Plan::succeeded_by`]).
    pub fn translate(&mut self, plan: Arc<Plan>) {
        self.nat = (!plan.is_empty()).then_some(plan);
        self.changed();
    }

    /// Likewise, for whoever has no workers' view at hand: the plan that there is.
    pub const fn nat(&self) -> Option<&Arc<Plan>> {
        self.nat.as_ref()
    }

    /// An address beside the interfaces' that UEs must not reach: the N4 address. Whether they could before.
    pub fn protect(&mut self, address: IpAddr) -> bool {
        let new = !self.protected.contains(&address);
        if new {
            self.protected.push(address);
            self.changed();
        }
        new
    }

    /// Packets whose rule names this network instance (by its index, from 1) may leave through this interface. One of which
    /// nothing is said serves all.
    pub fn serve(&mut self, interface: u16, instance: u16) {
        if self.serving.insert((interface, instance)) {
            self.changed();
        }
    }

    /// A neighbour's MAC address is this one, whatever the neighbour says.
    pub fn fix(&mut self, interface: u16, address: IpAddr, mac: MacAddr) {
        self.fixed.insert((interface, address), mac);
        self.version += 1;
    }

    /// It is where it says from now on: until workers have asked it, where it was. Says whether it was fixed.
    pub fn unfix(&mut self, interface: u16, address: IpAddr) -> bool {
        let fixed = self.fixed.remove(&(interface, address)).is_some();
        self.version += u64::from(fixed);
        fixed
    }

    /// A worker learned where a neighbour is ([`crate::command::Event::Neighbour`]). Workers are told by
    /// [`crate::command::Command::Neighbour`]: they know best what they know, and views say nothing of it.
    pub fn learn(&mut self, interface: u16, address: IpAddr, mac: MacAddr) {
        if !self.fixed.contains_key(&(interface, address)) {
            self.heard.learn(interface, address, mac);
        }
    }

    /// The interfaces in order of their index.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Routes: destination, interface, gateway.
    pub fn routes(&self) -> impl Iterator<Item = (IpNet, u16, Option<IpAddr>)> + '_ {
        self.routes.iter().map(|(destination, (interface, gateway))| (*destination, *interface, *gateway))
    }

    /// Neighbours: interface, address, MAC address. Those that are configured, and those that workers learned of lately.
    pub fn neighbours(&self) -> impl Iterator<Item = (u16, IpAddr, MacAddr)> + '_ {
        let heard = self.heard.by_address.iter().map(|(key, (mac, _))| (key, mac));
        self.fixed.iter().chain(heard).map(|((interface, address), mac)| (*interface, *address, *mac))
    }

    /// A snapshot for the workers. Routes are compiled anew only when something else than neighbours changed.
    pub fn view(&mut self) -> Arc<NetView> {
        let compiled = self.compiled.take().unwrap_or_else(|| Arc::new(self.compile()));
        self.compiled = Some(Arc::clone(&compiled));
        let fixed = self.fixed.iter();
        let neighbours = fixed.map(|((interface, address), mac)| (*interface, *address, *mac)).collect();
        Arc::new(NetView { version: self.version, compiled, neighbours })
    }

    fn compile(&self) -> Compiled {
        let mut hops = vec![Hop::Unreachable, Hop::Own, Hop::Ue, Hop::Martian];
        let mut id = |hop: Hop| -> HopId {
            if let Some(place) = hops.iter().position(|known| *known == hop) {
                return HopId(place as u16);
            }
            hops.push(hop);
            HopId((hops.len() - 1) as u16)
        };
        // Later entries of the same prefix win: what is nobody's, connected networks, routes, pools, and own addresses above
        // all.
        let mut table: BTreeMap<IpNet, HopId> = BTreeMap::new();
        table.extend(crate::network::sources::nobodys().map(|net| (net, HopId::MARTIAN)));
        for (index, interface) in self.interfaces.iter().enumerate() {
            for net in &interface.addresses {
                table.insert(net.trunc(), id(Hop::OnLink { interface: index as u16 }));
                let everybody = crate::network::sources::everybody(net).into_iter().flatten();
                table.extend(everybody.map(|all| (IpNet::from(IpAddr::V4(all)), HopId::MARTIAN)));
            }
        }
        for (destination, interface, gateway) in self.routes() {
            let hop = match gateway {
                Some(address) => Hop::Gateway { interface, address },
                None => Hop::OnLink { interface },
            };
            table.insert(destination, id(hop));
        }
        let mut ues = self.pools.clone();
        ues.extend(self.nat.iter().flat_map(|plan| plan.public()));
        table.extend(ues.iter().map(|pool| (*pool, HopId::UE)));
        let mut own: Vec<IpAddr> = self.protected.clone();
        for interface in &self.interfaces {
            own.extend(interface.addresses.iter().map(IpNet::addr));
            own.push(IpAddr::V6(interface.link_local()));
        }
        own.sort_unstable();
        own.dedup();
        for address in &own {
            table.insert(IpNet::from(*address), HopId::OWN);
        }
        let count = self.serving.iter().map(|(_, instance)| usize::from(*instance) + 1).max().unwrap_or(0);
        let serves = |instance: usize, interface: usize| {
            let mut served = self.serving.iter().filter(|(at, _)| usize::from(*at) == interface).peekable();
            instance == 0
                || served.peek().is_none()
                || served.any(|(_, served)| usize::from(*served) == instance)
        };
        let serving = (0..count)
            .flat_map(|instance| (0..self.interfaces.len()).map(move |interface| (instance, interface)));
        // A prefix needs at most two nodes, and there are no others: no insertion is refused.
        let (mut routes4, mut routes6) = (Lpm4::new(2 * table.len()), Lpm6::new(2 * table.len()));
        for (prefix, HopId(hop)) in table {
            let inserted = match prefix {
                IpNet::V4(prefix) => routes4.insert(prefix.network(), prefix.prefix_len(), hop),
                IpNet::V6(prefix) => routes6.insert(prefix.network(), prefix.prefix_len(), hop),
            };
            debug_assert!(inserted.is_ok());
        }
        Compiled {
            interfaces: self.interfaces.clone().into(),
            hops: hops.into(),
            routes4,
            routes6,
            own: own.into(),
            serving: serving.map(|(instance, interface)| serves(instance, interface)).collect(),
            ues: ues.into(),
            isolated: self.isolated.clone().into(),
            nat: self.nat.clone(),
        }
    }
}

/// A worker's immutable view of the network.
#[derive(Debug)]
pub struct NetView {
    version: u64,
    compiled: Arc<Compiled>,
    neighbours: Box<[(u16, IpAddr, MacAddr)]>,
}

impl NetView {
    /// Grows with every change of the master copy.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The interfaces in order of their index.
    pub fn interfaces(&self) -> &[Interface] {
        &self.compiled.interfaces
    }

    /// The interface with this index.
    pub fn interface(&self, index: u16) -> Option<&Interface> {
        self.compiled.interfaces.get(index as usize)
    }

    /// All next hops; a [`HopId`] is an index into them.
    pub fn hops(&self) -> &[Hop] {
        &self.compiled.hops
    }

    /// What is behind the index.
    pub fn hop(&self, id: HopId) -> Hop {
        self.compiled.hops.get(id.0 as usize).copied().unwrap_or(Hop::Unreachable)
    }

    /// Longest-prefix match.
    #[inline(always)]
    pub fn route4(&self, destination: u32) -> HopId {
        self.compiled.routes4.lookup(&Ipv4Addr::from_bits(destination)).map_or(HopId::UNREACHABLE, HopId)
    }

    /// Longest-prefix match.
    #[inline(always)]
    pub fn route6(&self, destination: u128) -> HopId {
        self.compiled.routes6.lookup(&Ipv6Addr::from_bits(destination)).map_or(HopId::UNREACHABLE, HopId)
    }

    /// Longest-prefix match for either family.
    pub fn route(&self, destination: IpAddr) -> HopId {
        match destination {
            IpAddr::V4(address) => self.route4(address.into()),
            IpAddr::V6(address) => self.route6(address.into()),
        }
    }

    /// Whether the address is our own (any interface's, or protected).
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.compiled.own.binary_search(&address).is_ok()
    }

    /// Whether packets of this network instance may leave through the interface. All serve the default one, and those
    /// that no interface is said to serve.
    #[inline(always)]
    pub fn serves(&self, interface: u16, instance: u16) -> bool {
        let at = instance as usize * self.compiled.interfaces.len() + interface as usize;
        instance == 0 || self.compiled.serving.get(at).is_none_or(|serves| *serves)
    }

    /// Our own addresses: the interfaces', and those that are protected.
    pub fn own(&self) -> &[IpAddr] {
        &self.compiled.own
    }

    /// Where UEs' addresses are, public ones included.
    pub fn ues(&self) -> &[IpNet] {
        &self.compiled.ues
    }

    /// Whether an address is of a UE that has nothing to do with other UEs.
    pub fn is_isolated(&self, address: IpAddr) -> bool {
        self.compiled.isolated.iter().any(|net| net.contains(&address))
    }

    /// What is translated on N6.
    pub fn nat(&self) -> Option<&Arc<Plan>> {
        self.compiled.nat.as_ref()
    }

    /// Neighbours whose MAC address is configured.
    pub fn neighbours(&self) -> &[(u16, IpAddr, MacAddr)] {
        &self.neighbours
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn interface(port: u16, vlan: Option<u16>, address: &str) -> Interface {
        Interface {
            name: format!("if{port}"),
            port,
            vlan,
            mac: MacAddr([2, 0, 0, 0, 0, port as u8]),
            mtu: 1500,
            roles: Roles::default(),
            addresses: vec![address.parse().unwrap()],
            network_instances: Vec::new(),
        }
    }

    #[test]
    fn the_longest_prefix_wins_and_own_addresses_above_all() {
        let mut net = Net::new();
        let n3 = net.add_interface(interface(0, None, "192.0.2.1/24")).unwrap();
        let n6 = net.add_interface(interface(1, Some(7), "203.0.113.1/24")).unwrap();
        assert_eq!(net.add_interface(interface(1, Some(7), "10.0.0.1/8")), Err(NetError::DuplicateInterface));
        net.add_route("0.0.0.0/0".parse().unwrap(), n6, Some("203.0.113.254".parse().unwrap())).unwrap();
        net.add_route("::/0".parse().unwrap(), n6, Some("fe80::1".parse().unwrap())).unwrap();
        net.add_ue_pool("10.45.0.0/16".parse().unwrap());
        net.add_ue_pool("2001:db8::/32".parse().unwrap());
        net.protect("10.45.0.1".parse().unwrap());
        let view = net.view();
        let hop = |address: &str| view.hop(view.route(address.parse().unwrap()));
        assert_eq!(hop("192.0.2.7"), Hop::OnLink { interface: n3 });
        assert_eq!(hop("192.0.2.1"), Hop::Own);
        assert_eq!(hop("10.45.0.1"), Hop::Own);
        assert_eq!(hop("10.45.0.2"), Hop::Ue);
        assert_eq!(hop("2001:db8:7::1"), Hop::Ue);
        let gateway = "203.0.113.254".parse().unwrap();
        assert_eq!(hop("8.8.8.8"), Hop::Gateway { interface: n6, address: gateway });
        assert_eq!(hop("2a00::1"), Hop::Gateway { interface: n6, address: "fe80::1".parse().unwrap() });
        assert!(view.is_own("fe80::ff:fe00:1".parse().unwrap()));
        assert!(net.remove_route("0.0.0.0/0".parse().unwrap()));
        let newer = net.view();
        assert_eq!(newer.hop(newer.route("8.8.8.8".parse().unwrap())), Hop::Unreachable);
        assert!(newer.version() > view.version());
    }

    #[test]
    fn a_configured_neighbour_does_not_compile_routes_again_and_is_where_it_is_said_to_be() {
        let mut net = Net::new();
        net.add_interface(interface(0, None, "192.0.2.1/24")).unwrap();
        let before = net.view();
        let mac = MacAddr([2; 6]);
        net.fix(0, "192.0.2.9".parse().unwrap(), mac);
        net.learn(0, "192.0.2.9".parse().unwrap(), MacAddr([4; 6]));
        let after = net.view();
        assert!(Arc::ptr_eq(&before.compiled, &after.compiled));
        assert_eq!(after.neighbours(), [(0, "192.0.2.9".parse().unwrap(), mac)]);
        assert_eq!(net.neighbours().count(), 1);
    }

    #[test]
    fn of_those_that_workers_learned_the_latest_of_each_interface_are_remembered() {
        let mut net = Net::new();
        let mac = MacAddr([2; 6]);
        let router = "203.0.113.254".parse().unwrap();
        net.learn(1, router, mac);
        let many = |n: u32| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n));
        for n in 0..=MAX_NEIGHBOURS as u32 {
            net.learn(0, many(n), mac);
            net.learn(0, many(7), mac);
        }
        let known: Vec<IpAddr> = net.neighbours().map(|(_, address, _)| address).collect();
        assert_eq!(known.len(), MAX_NEIGHBOURS + 1);
        assert!(known.contains(&router) && known.contains(&many(7)) && !known.contains(&many(0)));
        assert!(net.view().neighbours().is_empty(), "workers know best what they know");
    }
}
