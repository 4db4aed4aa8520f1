//! The forwarding information base: the network as all workers forward by it, compiled and immutable. The control side makes it of its
//! [`Rib`](crate::rib::Rib) and replaces it whole, by command, so that nothing on the packet path is shared that changes.

use crate::nat::Plan;
use crate::network::interface::Interface;
use ipnet::IpNet;
use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::{Lookup, Lpm4, Lpm6};

/// Where packets to a prefix go: an index into [`Fib::hops`].
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

/// What is made of all but neighbours, and shared by FIBs that differ in these only.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) interfaces: Box<[Interface]>,
    pub(super) hops: Box<[Hop]>,
    pub(super) routes4: Lpm4,
    pub(super) routes6: Lpm6,
    pub(super) own: Box<[IpAddr]>,
    /// Whether an interface serves an instance: for each instance in turn, one for each interface.
    pub(super) serving: Box<[bool]>,
    /// Next hops of Forwarding Policies, for IPv4 and IPv6, in the order of their numbers from 1.
    pub(super) steering: Box<[[Option<HopId>; 2]]>,
    /// UE pools and public addresses.
    pub(super) ues: Box<[IpNet]>,
    pub(super) isolated: Box<[IpNet]>,
    pub(super) nat: Option<Arc<Plan>>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Fib {
    pub(super) version: u64,
    pub(super) compiled: Arc<Compiled>,
    pub(super) neighbours: Box<[(u16, IpAddr, MacAddr)]>,
}

impl Fib {
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

    /// Where a packet goes that a route leads here, if its Forwarding Policy has a next hop of its own for such packets. What doesn't leave on N6
    /// never does so by a policy: what is for us, for a UE, for nobody, or for tunnels' links.
    #[inline(always)]
    pub fn steered(&self, policy: u16, routed: HopId, v6: bool) -> Option<HopId> {
        if policy == 0 { None } else { self.steer(policy, routed, v6) }
    }

    #[inline(never)]
    fn steer(&self, policy: u16, routed: HopId, v6: bool) -> Option<HopId> {
        let [of_v4, of_v6] = *self.compiled.steering.get(usize::from(policy.checked_sub(1)?))?;
        let hop = if v6 { of_v6 } else { of_v4 }?;
        let leaves = match self.hop(routed) {
            Hop::Own | Hop::Ue | Hop::Martian => false,
            Hop::Unreachable => true,
            Hop::OnLink { interface } | Hop::Gateway { interface, .. } => {
                self.interface(interface).is_some_and(|interface| interface.roles.n6)
            }
        };
        leaves.then_some(hop)
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
