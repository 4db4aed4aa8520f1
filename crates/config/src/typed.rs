//! The configuration as the rest of the program takes it: examined, names resolved to positions, defaults filled in.

use super::bond::Bond;
use super::flow_log::FlowLogSection;
use super::forwarding::ForwardingPolicy;
use super::inspection::InspectionSection;
use super::metrics::MetricsSection;
use super::mirrors::Mirror;
use super::n3::N3Section;
use super::nat::Nat;
use super::offload::OffloadSection;
use super::qos::Qos;
use super::scaling::ScalingSection;
use super::sections::{Limits, Log, LookupBy, MarkingSection, Memory, Pin, Role, SliceSection, Written};
use super::units::{DeviceName, InterfaceAddress, NodeId};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::MacAddr;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// A UPF as it was asked to be. Positions in it are in range by construction.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// PFCP Node ID.
    pub node_id: NodeId,
    /// Name for logs and displays.
    pub name: String,
    /// The N4 side.
    pub n4: N4,
    /// From where tunnels' packets may come.
    pub n3: N3Section,
    /// Devices; names are unique. May be empty only where something else brings ports (tests, `lab`): the loader refuses
    /// it.
    pub ports: Vec<Port>,
    /// Interfaces; names, addresses and (port, VLAN) are unique, subnets do not overlap.
    pub interfaces: Vec<Interface>,
    /// Static routes; destinations are unique, next hops lie in the interface's subnets.
    pub routes: Vec<Route>,
    /// Static neighbours, in a subnet of their interface.
    pub neighbours: Vec<Neighbour>,
    /// UE address pools, which overlap neither each other nor our addresses.
    pub pools: Vec<Pool>,
    /// Slices; each has a name and something to know its sessions by.
    pub slices: Vec<SliceSection>,
    /// How QFIs and DSCPs stand for each other; each of them once.
    pub marking: Vec<MarkingSection>,
    /// Where copies of packets can be sent; names are unique.
    pub mirrors: Vec<Mirror>,
    /// Ways out on N6 by name; names are unique, next hops lie in subnets of interfaces with the N6 role.
    pub forwarding_policies: Vec<ForwardingPolicy>,
    /// What is translated on N6; [`Nat::plan`] succeeds.
    pub nat: Nat,
    /// What is told of single flows.
    pub flow_log: FlowLogSection,
    /// Who looks into packets.
    pub inspection: InspectionSection,
    /// Where workers run.
    pub workers: Placement,
    /// Whether workers that are only counted are pinned.
    pub pin: Pin,
    /// How packets come to workers.
    pub model: engine::Model,
    /// Packets that a worker can park while their shards are on their way to it; `None`: the engine's default.
    pub parked_packets: Option<u32>,
    /// How many workers own shards, and whether shards move; its thresholds don't swing.
    pub scaling: ScalingSection,
    /// Where packet buffers live.
    pub memory: Memory,
    /// Who looks up sessions and flows under load.
    pub lookup: LookupBy,
    /// Who waits, and who is served first.
    pub qos: Qos,
    /// What NICs do by themselves.
    pub offload: OffloadSection,
    /// What is refused to be exceeded.
    pub limits: Limits,
    /// The control socket's path; none: its usual one.
    pub socket: Option<PathBuf>,
    /// Where counters are served by HTTP.
    pub metrics: MetricsSection,
    /// What is logged.
    pub log: Log,
    /// What it was read from.
    pub written: Written,
}

impl Config {
    /// What is allowed and rarely meant, with the key and what would be safer.
    pub fn warnings(&self) -> Vec<String> {
        let everybody = self.n4.peers.iter().filter(|prefix| prefix.prefix_len() == 0);
        let warning = |prefix: &IpNet| {
            format!(
                "n4.peers: {prefix} lets everybody who reaches {} make and delete sessions; name the SMFs' addresses",
                self.n4.listen
            )
        };
        everybody.map(warning).collect()
    }
}

/// The N4 side.
#[derive(Clone, PartialEq, Debug)]
pub struct N4 {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Who may speak; never empty.
    pub peers: Vec<IpNet>,
    /// Whom to greet.
    pub associate_with: Vec<SocketAddr>,
    /// Between two heartbeats; `None`: send none.
    pub heartbeat_interval: Option<Duration>,
    /// Retransmission timer T1 (TS 29.244 §6.4).
    pub t1: Duration,
    /// Retransmissions N1 (§6.4).
    pub n1: u8,
    /// How long a stop waits for answers to the last usage reports; zero: it sends none.
    pub last_reports: Duration,
}

impl N4 {
    /// Whether a datagram from this address is to be looked at. An IPv4 address that arrives mapped into IPv6 is the IPv4
    /// address.
    pub fn allows(&self, source: IpAddr) -> bool {
        let source = source.to_canonical();
        self.peers.iter().any(|prefix| prefix.contains(&source))
    }
}

/// A device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name here.
    pub name: String,
    /// What DPDK is told to open; `driver` and `iface` have become a virtual device, and so has an aggregated port.
    pub device: DeviceName,
    /// What an aggregated port consists of.
    pub bond: Option<Bond>,
    /// Queue pairs.
    pub queues: u16,
    /// Largest layer-3 packet in bytes.
    pub mtu: u16,
    /// Descriptors per receive queue.
    pub rx_descriptors: u16,
    /// Descriptors per transmit queue.
    pub tx_descriptors: u16,
}

/// A port, or a VLAN of it, with our addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Position in [`Config::ports`].
    pub port: usize,
    /// VLAN ID, 1..=4094; `None`: untagged.
    pub vlan: Option<u16>,
    /// At least one, each once, in order.
    pub roles: Vec<Role>,
    /// At least one.
    pub addresses: Vec<InterfaceAddress>,
    /// Network Instances in lower case; empty: all.
    pub network_instances: Vec<String>,
    /// Largest layer-3 packet in bytes.
    pub mtu: u16,
}

/// A static route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destination, host bits zero.
    pub to: IpNet,
    /// Next router; `None`: the stations are on the link.
    pub via: Option<IpAddr>,
    /// Position in [`Config::interfaces`].
    pub interface: usize,
}

/// A static neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Position in [`Config::interfaces`].
    pub interface: usize,
    /// Address.
    pub address: IpAddr,
    /// A station's MAC address.
    pub mac: MacAddr,
}

/// Addresses to give to UEs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Network Instance in lower case; empty: those that no other pool serves.
    pub network_instance: String,
    /// IPv4 prefixes, host bits zero, at most /31.
    pub ipv4: Vec<Ipv4Net>,
    /// IPv6 prefixes, host bits zero, none longer than each UE's.
    pub ipv6: Vec<Ipv6Net>,
    /// Length of each UE's, from 48 to 64.
    pub ipv6_prefix_length: u8,
    /// Its UEs reach other UEs, and are reached by them.
    pub ue_to_ue: bool,
}

impl Pool {
    /// All prefixes.
    pub fn prefixes(&self) -> impl Iterator<Item = IpNet> + '_ {
        let v4 = self.ipv4.iter().copied().map(IpNet::V4);
        v4.chain(self.ipv6.iter().copied().map(IpNet::V6))
    }
}

/// Where workers run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// This many, pinned as [`Config::pin`] says.
    Count(u16),
    /// One on each of these cores.
    Cores(Vec<u16>),
}

impl Placement {
    /// How many workers.
    pub fn workers(&self) -> u16 {
        match self {
            Self::Count(count) => *count,
            Self::Cores(cores) => cores.len() as u16,
        }
    }
}
