//! The routing information base: what the control side knows of the network around the UPF, configured and learned. That is more than routes:
//! interfaces, neighbours, UEs' pools, and what is translated. Workers forward by what is made of it, the [`Fib`].
//!
//! ```
//! use datapath::{Interface, Rib, Roles};
//! use packet::MacAddr;
//!
//! let mut rib = Rib::new();
//! let n3 = rib.add_interface(Interface {
//!     name: "n3".into(),
//!     port: 0,
//!     vlan: None,
//!     mac: MacAddr([2, 0, 0, 0, 0, 1]),
//!     mtu: 1500,
//!     roles: Roles { n3: true, n6: false, n9: false },
//!     addresses: vec!["198.51.100.1/24".parse()?],
//!     network_instances: vec!["access".into()],
//! })?;
//! rib.add_route("0.0.0.0/0".parse()?, n3, Some("198.51.100.254".parse()?))?;
//! rib.add_ue_pool("10.45.0.0/16".parse()?);
//! let fib = rib.fib();
//! assert_eq!(fib.interfaces().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::nat::Plan;
use crate::network::fib::{Compiled, Fib, Hop, HopId};
use crate::network::interface::Interface;
use ipnet::IpNet;
use packet::MacAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use tables::{Lpm4, Lpm6};

/// Interfaces, at most. The worker's counters and caches have one entry for each.
pub const MAX_INTERFACES: usize = 256;
/// Next hops, at most (each route through a gateway, and each connected network, is one; each Forwarding Policy two).
pub const MAX_NEXT_HOPS: usize = 1 << 15;
/// Neighbours of an interface that the control side remembers of those that workers learned, at most: the latest.
pub const MAX_NEIGHBOURS: usize = 1 << 14;

/// What was wrong with a change of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RibError {
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

impl std::fmt::Display for RibError {
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

impl std::error::Error for RibError {}

/// What was configured and what was learned. Every change makes the next [`Rib::fib`] differ.
#[derive(Clone, Debug, Default)]
pub struct Rib {
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
    /// Next hops of Forwarding Policies.
    steering: Vec<NextHops>,
    nat: Option<Arc<Plan>>,
    /// Built with the routes, and used again by FIBs that differ in neighbours only.
    compiled: Option<Arc<Compiled>>,
}

/// Routers on links for packets of IPv4 and of IPv6: interface, address.
pub type NextHops = [Option<(u16, IpAddr)>; 2];

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

impl Rib {
    /// No interfaces, no routes.
    pub fn new() -> Self {
        Self::default()
    }

    fn changed(&mut self) {
        self.version += 1;
        self.compiled = None;
    }

    /// Adds an interface, with its connected networks, and says its index.
    pub fn add_interface(&mut self, interface: Interface) -> Result<u16, RibError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(RibError::TooManyInterfaces);
        }
        if interface.vlan.is_some_and(|vlan| !(1..=4094).contains(&vlan)) {
            return Err(RibError::InvalidVlan);
        }
        if interface.mtu < 1280 {
            return Err(RibError::MtuTooSmall);
        }
        if self.interfaces.iter().any(|i| (i.port, i.vlan) == (interface.port, interface.vlan)) {
            return Err(RibError::DuplicateInterface);
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
    ) -> Result<(), RibError> {
        if interface as usize >= self.interfaces.len() {
            return Err(RibError::UnknownInterface);
        }
        if gateway.is_some_and(|g| g.is_ipv4() != destination.addr().is_ipv4()) {
            return Err(RibError::FamilyMismatch);
        }
        if self.routes.len() + self.interfaces.len() + 2 * self.steering.len() + 8 >= MAX_NEXT_HOPS {
            return Err(RibError::TooManyNextHops);
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

    /// Where packets of Forwarding Policies go in place of where their routes lead, in the order of the policies' numbers, from 1.
    pub fn steer(&mut self, policies: Vec<NextHops>) -> Result<(), RibError> {
        let families = policies.iter().flat_map(|[v4, v6]| [(true, v4), (false, v6)]);
        for (is_v4, next) in families {
            let Some((interface, address)) = *next else { continue };
            if usize::from(interface) >= self.interfaces.len() {
                return Err(RibError::UnknownInterface);
            }
            if address.is_ipv4() != is_v4 {
                return Err(RibError::FamilyMismatch);
            }
        }
        if self.routes.len() + self.interfaces.len() + 2 * policies.len() + 8 >= MAX_NEXT_HOPS {
            return Err(RibError::TooManyNextHops);
        }
        self.steering = policies;
        self.changed();
        Ok(())
    }

    /// What is translated on N6. Its public addresses are routed as UEs' are, so that UEs reach each other by them. A plan that workers have
    /// is followed by one that comes after it ([`Plan::succeeded_by`]).
    pub fn translate(&mut self, plan: Arc<Plan>) {
        self.nat = (!plan.is_empty()).then_some(plan);
        self.changed();
    }

    /// Likewise, for whoever has no FIB at hand: the plan that there is.
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
    /// [`crate::command::Command::Neighbour`]: they know best what they know, and FIBs say nothing of it.
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

    /// One neighbour's MAC address.
    pub fn neighbour(&self, interface: u16, address: IpAddr) -> Option<MacAddr> {
        let key = (interface, address);
        self.fixed.get(&key).or_else(|| self.heard.by_address.get(&key).map(|(mac, _)| mac)).copied()
    }

    /// A snapshot for the workers. Routes are compiled anew only when something else than neighbours changed.
    pub fn fib(&mut self) -> Arc<Fib> {
        let compiled = self.compiled.take().unwrap_or_else(|| Arc::new(self.compile()));
        self.compiled = Some(Arc::clone(&compiled));
        let fixed = self.fixed.iter();
        let neighbours = fixed.map(|((interface, address), mac)| (*interface, *address, *mac)).collect();
        Arc::new(Fib { version: self.version, compiled, neighbours })
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
        let mut by_policy = |next: &Option<(u16, IpAddr)>| {
            next.map(|(interface, address)| id(Hop::Gateway { interface, address }))
        };
        let steering: Box<[_]> =
            self.steering.iter().map(|[v4, v6]| [by_policy(v4), by_policy(v6)]).collect();
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
            steering,
            serving: serving.map(|(instance, interface)| serves(instance, interface)).collect(),
            ues: ues.into(),
            isolated: self.isolated.clone().into(),
            nat: self.nat.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::network::interface::Roles;
    use std::net::Ipv4Addr;

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
        let mut rib = Rib::new();
        let n3 = rib.add_interface(interface(0, None, "192.0.2.1/24")).unwrap();
        let n6 = rib.add_interface(interface(1, Some(7), "203.0.113.1/24")).unwrap();
        assert_eq!(rib.add_interface(interface(1, Some(7), "10.0.0.1/8")), Err(RibError::DuplicateInterface));
        rib.add_route("0.0.0.0/0".parse().unwrap(), n6, Some("203.0.113.254".parse().unwrap())).unwrap();
        rib.add_route("::/0".parse().unwrap(), n6, Some("fe80::1".parse().unwrap())).unwrap();
        rib.add_ue_pool("10.45.0.0/16".parse().unwrap());
        rib.add_ue_pool("2001:db8::/32".parse().unwrap());
        rib.protect("10.45.0.1".parse().unwrap());
        let fib = rib.fib();
        let hop = |address: &str| fib.hop(fib.route(address.parse().unwrap()));
        assert_eq!(hop("192.0.2.7"), Hop::OnLink { interface: n3 });
        assert_eq!(hop("192.0.2.1"), Hop::Own);
        assert_eq!(hop("10.45.0.1"), Hop::Own);
        assert_eq!(hop("10.45.0.2"), Hop::Ue);
        assert_eq!(hop("2001:db8:7::1"), Hop::Ue);
        let gateway = "203.0.113.254".parse().unwrap();
        assert_eq!(hop("8.8.8.8"), Hop::Gateway { interface: n6, address: gateway });
        assert_eq!(hop("2a00::1"), Hop::Gateway { interface: n6, address: "fe80::1".parse().unwrap() });
        assert!(fib.is_own("fe80::ff:fe00:1".parse().unwrap()));
        assert!(rib.remove_route("0.0.0.0/0".parse().unwrap()));
        let newer = rib.fib();
        assert_eq!(newer.hop(newer.route("8.8.8.8".parse().unwrap())), Hop::Unreachable);
        assert!(newer.version() > fib.version());
    }

    #[test]
    fn a_configured_neighbour_does_not_compile_routes_again_and_is_where_it_is_said_to_be() {
        let mut rib = Rib::new();
        rib.add_interface(interface(0, None, "192.0.2.1/24")).unwrap();
        let before = rib.fib();
        let mac = MacAddr([2; 6]);
        rib.fix(0, "192.0.2.9".parse().unwrap(), mac);
        rib.learn(0, "192.0.2.9".parse().unwrap(), MacAddr([4; 6]));
        let after = rib.fib();
        assert!(Arc::ptr_eq(&before.compiled, &after.compiled));
        assert_eq!(after.neighbours(), [(0, "192.0.2.9".parse().unwrap(), mac)]);
        assert_eq!(rib.neighbours().count(), 1);
    }

    #[test]
    fn of_those_that_workers_learned_the_latest_of_each_interface_are_remembered() {
        let mut rib = Rib::new();
        let mac = MacAddr([2; 6]);
        let router = "203.0.113.254".parse().unwrap();
        rib.learn(1, router, mac);
        let many = |n: u32| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n));
        for n in 0..=MAX_NEIGHBOURS as u32 {
            rib.learn(0, many(n), mac);
            rib.learn(0, many(7), mac);
        }
        let known: Vec<IpAddr> = rib.neighbours().map(|(_, address, _)| address).collect();
        for (interface, address, mac) in rib.neighbours() {
            assert_eq!(rib.neighbour(interface, address), Some(mac));
            assert_eq!(rib.neighbour(interface + 7, address), None);
        }
        assert_eq!(known.len(), MAX_NEIGHBOURS + 1);
        assert!(known.contains(&router) && known.contains(&many(7)) && !known.contains(&many(0)));
        assert!(rib.fib().neighbours().is_empty(), "workers know best what they know");
    }
}
