//! What the node is configured with, as far as sessions care.

use crate::applications::Applications;
use crate::ids::Epoch;
use crate::network_instance::Name;
use crate::pool::{Pool, PoolError};
use crate::prefixes::{PrefixLength, PrefixLengths, upper_half};
use crate::rules::Source;
use crate::sdf::SdfLimits;
use crate::teid_key::TeidKey;
use ipnet::{Ipv4Net, Ipv6Net};
use pfcp::ie::SNssai;
use pfcp::message::SessionEstablishmentRequest;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Everything that [`crate::store::Store`] is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where gNBs send: the default for F-TEIDs of uplink PDRs.
    pub n3: LocalAddresses,
    /// Where other UPFs send; empty: as N3.
    pub n9: LocalAddresses,
    /// Where the SMF sends user packets (router advertisements); empty: as N3.
    pub cp: LocalAddresses,
    /// Network Instances with addresses of their own. A name that isn't here means the default.
    pub instances: Vec<Instance>,
    /// Forwarding Policies, in an order that stays: rules name them by their place.
    pub policies: Vec<Policy>,
    /// Applications that rules may ask for.
    pub applications: Applications,
    /// Slices that are known here: limited or counted as a whole.
    pub slices: Vec<Slice>,
    /// UE address pools. The first is the default.
    pub pools: Vec<PoolConfig>,
    /// Addresses that no UE may have: the node's own.
    pub own: Vec<IpAddr>,
    /// Bounds.
    pub limits: Limits,
    /// Where generations of TEIDs and SEIDs begin: random in production, so that a restarted process hands out other ones.
    pub seed: u32,
    /// The life that this process is of what came before: any, or the next one of whoever left a record.
    pub epoch: Epoch,
    /// Hides from strangers what TEIDs say. The workers have the same.
    pub teids: TeidKey,
}

/// Local addresses of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LocalAddresses {
    /// IPv4.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6.
    pub ipv6: Option<Ipv6Addr>,
}

impl LocalAddresses {
    /// Neither family.
    pub const fn is_empty(self) -> bool {
        self.ipv4.is_none() && self.ipv6.is_none()
    }

    const fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

/// A Network Instance (TS 29.244 §5.3.1): a name and what it has of its own.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// The name; both spellings of it are understood (docs/interop.md rule f).
    pub name: Name,
    /// N3 addresses; empty: the node's.
    pub n3: LocalAddresses,
    /// N9 addresses; empty: the node's.
    pub n9: LocalAddresses,
}

/// A Forwarding Policy that is predefined in the UP function (TS 29.244 §8.2.23).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Its identifier, octet by octet.
    pub id: Box<[u8]>,
    /// Whether new rules may name it.
    pub in_force: bool,
    /// Network Instance that takes the place of a FAR's, by its number ([`Config::instance`]).
    pub instance: Option<u16>,
}

/// A network slice (TS 23.501 §5.15), or what an operator treats as one.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Sessions with this S-NSSAI belong to it;
    pub s_nssai: Option<SNssai>,
    /// and sessions with one of these Network Instances or DNNs.
    pub names: Vec<Name>,
}

impl Config {
    /// The slice that a new session belongs to: the first one that its S-NSSAI names, or else the first that its DNN or one of its
    /// Network Instances does.
    pub fn slice(&self, request: &SessionEstablishmentRequest) -> Option<u16> {
        if self.slices.is_empty() {
            return None;
        }
        let by_nssai = request
            .s_nssai
            .and_then(|asked| self.slices.iter().position(|slice| slice.s_nssai == Some(asked)));
        let pdrs = request.create_pdrs.iter().filter_map(|pdr| pdr.pdi.network_instance);
        let by_name = || {
            let mut names = request.apn_dnn.into_iter().chain(pdrs);
            names.find_map(|asked| {
                self.slices.iter().position(|slice| slice.names.iter().any(|name| name.is(asked)))
            })
        };
        by_nssai.or_else(by_name).map(|at| at as u16)
    }

    /// How much of an IPv6 address names a UE.
    pub fn prefix_lengths(&self) -> PrefixLengths {
        PrefixLengths::of(&self.pools)
    }

    /// The index of a Network Instance: 0 is the default, which an unknown name means too. The SMF's name for the N6 side is
    /// often a DNN that the node needn't distinguish.
    pub fn instance(&self, name: &[u8]) -> u16 {
        self.instances.iter().position(|instance| instance.name.is(name)).map_or(0, |at| at as u16 + 1)
    }

    /// The number of a Forwarding Policy in rules, from 1; 0 for an empty identifier, which takes a policy away. `None`: nobody knows it.
    pub fn policy(&self, id: &[u8]) -> Option<u16> {
        if id.is_empty() {
            return Some(0);
        }
        let known = self.policies.iter().position(|policy| policy.in_force && *policy.id == *id)?;
        Some(known as u16 + 1)
    }

    /// The Network Instance that packets leave by whose FAR has this one, and a policy with this number.
    pub fn instance_by(&self, policy: u16, of_far: u16) -> u16 {
        let named = usize::from(policy).checked_sub(1).and_then(|at| self.policies.get(at));
        named.and_then(|policy| policy.instance).unwrap_or(of_far)
    }

    /// The local addresses that packets of a PDR are sent to.
    pub fn tunnel_addresses(&self, instance: u16, source: Source) -> LocalAddresses {
        let own = (instance as usize).checked_sub(1).and_then(|at| self.instances.get(at));
        match source {
            Source::Access => own.map(|own| own.n3).unwrap_or_default().or(self.n3),
            Source::Core | Source::N6Lan => own.map(|own| own.n9).unwrap_or_default().or(self.n9).or(self.n3),
            Source::CpFunction => self.cp.or(self.n3),
        }
    }
}

/// A UE address pool.
#[derive(Clone, Debug, Default)]
pub struct PoolConfig {
    /// The DNNs, Network Instances and pool identities that it serves; the first pool serves all that no other does.
    pub names: Vec<Name>,
    /// IPv4 addresses.
    pub ipv4: Vec<Ipv4Range>,
    /// Prefixes out of which every UE gets one of its own.
    pub ipv6: Vec<Ipv6Net>,
    /// How long each UE's is.
    pub ipv6_length: PrefixLength,
    /// Addresses that are not given out: gateways, servers.
    pub excluded: Vec<IpAddr>,
}

/// A range of IPv4 addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv4Range {
    /// A network, less its own and its broadcast address if it is of /30 or shorter.
    Net(Ipv4Net),
    /// From the first to the last, both included.
    Range(Ipv4Addr, Ipv4Addr),
}

impl PoolConfig {
    /// The IPv4 pool, if there are ranges.
    pub fn build_ipv4(&self, hash: fn(u64) -> u32) -> Result<Option<Pool>, PoolError> {
        let number = |address: Ipv4Addr| u32::from(address) as u64;
        let mut ranges = Vec::new();
        let mut excluded: Vec<u64> = Vec::new();
        for range in &self.ipv4 {
            match range {
                Ipv4Range::Net(net) => {
                    ranges.push((number(net.network()), number(net.broadcast())));
                    if net.prefix_len() <= 30 {
                        excluded.extend([number(net.network()), number(net.broadcast())]);
                    }
                }
                Ipv4Range::Range(first, last) => ranges.push((number(*first), number(*last))),
            }
        }
        excluded.extend(self.excluded.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(number(*address)),
            IpAddr::V6(_) => None,
        }));
        if ranges.is_empty() { Ok(None) } else { Pool::new(&ranges, excluded, hash).map(Some) }
    }

    /// The pool of IPv6 prefixes, if there are any: its numbers are the bits that all UEs' prefixes have.
    pub fn build_ipv6(&self, hash: fn(u64) -> u32) -> Result<Option<Pool>, PoolError> {
        let number = |address: Ipv6Addr| upper_half(address) >> self.ipv6_length.delegated();
        let mut ranges = Vec::new();
        for net in &self.ipv6 {
            if net.prefix_len() > self.ipv6_length.get() {
                return Err(PoolError::PrefixTooLong);
            }
            ranges.push((number(net.network()), number(net.broadcast())));
        }
        let excluded = self.excluded.iter().filter_map(|address| match address {
            IpAddr::V6(address) => Some(number(*address)),
            IpAddr::V4(_) => None,
        });
        if ranges.is_empty() { Ok(None) } else { Pool::new(&ranges, excluded, hash).map(Some) }
    }
}

/// Bounds, so that nothing grows at a stranger's will. Reaching one is a refusal with Cause "No resources available".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Sessions in all.
    pub sessions: usize,
    /// Sessions of one association.
    pub sessions_per_peer: usize,
    /// PDRs of one session.
    pub pdrs: usize,
    /// FARs of one session.
    pub fars: usize,
    /// QERs of one session.
    pub qers: usize,
    /// URRs of one session.
    pub urrs: usize,
    /// BARs of one session.
    pub bars: usize,
    /// SDF filters of one PDR.
    pub filters: usize,
    /// QFIs of one PDR.
    pub qfis: usize,
    /// Framed routes of one PDR.
    pub framed_routes: usize,
    /// Of one SDF filter.
    pub sdf: SdfLimits,
    /// Most packets that a FAR buffers, and how many if the SMF doesn't say.
    pub buffered_packets: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1 << 21,
            sessions_per_peer: 1 << 21,
            pdrs: 64,
            fars: 64,
            qers: 64,
            urrs: 64,
            bars: 16,
            filters: 16,
            qfis: 64,
            framed_routes: 16,
            sdf: SdfLimits::default(),
            buffered_packets: 64,
        }
    }
}
