//! The sections of the file, as serde reads them. The documentation comments are the schema's descriptions, the
//! `range` attributes the bounds that the loader enforces.

use super::bond::BondSection;
use super::flow_log::FlowLogSection;
use super::forwarding::ForwardingPolicySection;
use super::inspection::InspectionSection;
use super::metrics::MetricsSection;
use super::mirrors::MirrorSection;
use super::n3::N3Section;
use super::nat::{NatLogSection, NatSection, NatStaticSection, Nptv6Section};
use super::offload::OffloadSection;
use super::qos::QosSection;
use super::scaling::ScalingSection;
use super::units::{self, BitRate, DeviceName, InterfaceAddress, NodeId, Text};
use engine::{Model, Sender};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::{Dscp, MacAddr};
use pfcp::ie::SNssai;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The configuration of a Millrace user plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    /// Who this UPF is.
    pub node: NodeSection,
    /// Where SMFs speak PFCP to it.
    pub n4: N4Section,
    /// The tunnels that come in by N3 and N9.
    pub n3: N3Section,
    /// The devices that packets come from and go to.
    pub port: Vec<PortSection>,
    /// What is reachable through them: N3, N6 and N9.
    pub interface: Vec<InterfaceSection>,
    /// Routes beyond the interfaces' own subnets.
    pub route: Vec<RouteSection>,
    /// Neighbours whose MAC address is set by hand, for links without ARP and ND.
    pub neighbour: Vec<NeighbourSection>,
    /// Addresses that this UPF may give to UEs itself (UE IP address allocation, TS 29.244 §5.21).
    pub pool: Vec<PoolSection>,
    /// Slices: sessions that are limited and counted together.
    pub slice: Vec<SliceSection>,
    /// How QFIs and DSCPs stand for each other.
    pub marking: Vec<MarkingSection>,
    /// Where copies of chosen packets can be sent (docs/mirroring.md).
    pub mirror: Vec<MirrorSection>,
    /// Ways out on N6 that SMFs may ask for by name.
    pub forwarding_policy: Vec<ForwardingPolicySection>,
    /// Pools of public IPv4 addresses that UEs share on N6.
    pub nat: Vec<NatSection>,
    /// Public addresses and ports that always lead to the same UE.
    pub nat_static: Vec<NatStaticSection>,
    /// IPv6 prefixes that are exchanged on N6.
    pub nptv6: Vec<Nptv6Section>,
    /// The log of bindings.
    pub nat_log: NatLogSection,
    /// What is told of single flows.
    pub flow_log: FlowLogSection,
    /// Which application is a flow of?
    pub inspection: InspectionSection,
    /// The threads that move packets.
    pub workers: WorkersSection,
    /// How many of them own shards, and whether shards move between them.
    pub scaling: ScalingSection,
    /// Who waits, and who is served first.
    pub qos: QosSection,
    /// Flows that NICs take off the workers' hands.
    pub offload: OffloadSection,
    /// What the UPF refuses to exceed.
    pub limits: Limits,
    /// The control socket that `millrace ctl` talks to.
    pub ctl: CtlSection,
    /// Where counters are served by HTTP.
    pub metrics: MetricsSection,
    /// What is logged.
    pub log: Log,
}

/// Who this UPF is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeSection {
    /// Node ID that SMFs know this UPF by (TS 29.244 §8.2.38): an IP address or a domain name. Default: the address that
    /// N4 listens on.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<NodeId>>")]
    pub id: Option<NodeId>,
    /// A name for logs and displays. Default: the Node ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where SMFs speak PFCP to this UPF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct N4Section {
    /// UDP address and port to listen on.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<SocketAddr>")]
    pub listen: SocketAddr,
    /// The SMFs' addresses as prefixes: datagrams from elsewhere are counted and not answered. Has to be given when
    /// `listen` is not a loopback address; default: loopback only.
    #[serde(with = "list_or_none", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Text<IpNet>>>")]
    pub peers: Option<Vec<IpNet>>,
    /// SMFs with which this UPF sets up the association itself (TS 29.244 §6.2.6.3); the others come to it.
    #[serde(with = "units::list")]
    #[schemars(with = "Vec<Text<SocketAddr>>")]
    pub associate_with: Vec<SocketAddr>,
    /// Time between two Heartbeat Requests to each peer; `0s`: none are sent.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub heartbeat_interval: Duration,
    /// T1: how long an answer is awaited before a request is sent again (TS 29.244 §6.4).
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub t1: Duration,
    /// N1: how many times a request is sent again before its peer counts as lost (TS 29.244 §6.4).
    #[schemars(range(min = 0, max = 20))]
    pub n1: u8,
    /// How long a UPF that is stopped waits for answers to the last usage reports of all sessions; `0s`: it sends none.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub last_reports: Duration,
}

impl Default for N4Section {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8805)),
            peers: None,
            associate_with: Vec::new(),
            heartbeat_interval: Duration::from_secs(10),
            t1: Duration::from_secs(3),
            n1: 3,
            // A lost answer is asked for again once (T1), and with five seconds for flows that are told of it is no more than the ten
            // that container runtimes give between SIGTERM and SIGKILL.
            last_reports: Duration::from_secs(5),
        }
    }
}

/// [`units::list`] for a list that may be absent.
mod list_or_none {
    use crate::units::{TextUnit, list};
    use serde::{Deserializer, Serializer};

    // serde calls it with a reference to the field.
    #[allow(clippy::ref_option)]
    pub(super) fn serialize<T: TextUnit, S: Serializer>(
        values: &Option<Vec<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        list::serialize(values.as_deref().unwrap_or_default(), serializer)
    }

    pub(super) fn deserialize<'de, T: TextUnit, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<T>>, D::Error> {
        list::deserialize(deserializer).map(Some)
    }
}

/// A kind of virtual device, for `driver`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// A kernel interface through AF_PACKET (needs CAP_NET_RAW and CAP_NET_ADMIN): works everywhere.
    AfPacket,
    /// A kernel interface through AF_XDP (needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_IPC_LOCK and CAP_SYS_ADMIN): faster.
    AfXdp,
    /// A TAP interface that is created with the name `iface`.
    Tap,
    /// A device that swallows what it is given and receives empty packets: for measurements.
    Null,
}

impl Driver {
    /// DPDK's name for it.
    pub const fn dpdk_name(self) -> &'static str {
        match self {
            Self::AfPacket => "net_af_packet",
            Self::AfXdp => "net_af_xdp",
            Self::Tap => "net_tap",
            Self::Null => "net_null",
        }
    }
}

/// A device that packets come from and go to, driven by DPDK.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortSection {
    /// The name that interfaces refer to.
    pub name: String,
    /// A PCI address (`0000:01:00.0`), or a DPDK virtual device with its arguments (`net_memif0,role=client,id=0`). For a
    /// kernel interface, `driver` and `iface` are shorter.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<DeviceName>>")]
    pub device: Option<DeviceName>,
    /// The kind of virtual device, instead of `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// The kernel interface that `driver` uses (for `tap`: creates).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iface: Option<String>,
    /// Several devices as one port (link aggregation), instead of `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<BondSection>,
    /// Pairs of receive and transmit queues. Default: one per worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub queues: Option<u16>,
    /// Largest layer-3 packet in bytes, GTP-U headers included.
    #[serde(default = "default_mtu")]
    #[schemars(range(min = 1280, max = 9600))]
    pub mtu: u16,
    /// Descriptors of each receive queue.
    #[serde(default = "default_descriptors")]
    #[schemars(range(min = 64, max = 32768))]
    pub rx_descriptors: u16,
    /// Descriptors of each transmit queue.
    #[serde(default = "default_descriptors")]
    #[schemars(range(min = 64, max = 32768))]
    pub tx_descriptors: u16,
}

const fn default_mtu() -> u16 {
    1500
}

const fn default_descriptors() -> u16 {
    1024
}

/// Which of the standard's reference points an interface serves (TS 23.501 §4.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Towards gNBs: GTP-U.
    N3,
    /// Towards the data network: plain IP.
    N6,
    /// Towards other UPFs: GTP-U.
    N9,
}

/// What is reachable through a port, or through one VLAN of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterfaceSection {
    /// The name that routes and neighbours refer to.
    pub name: String,
    /// The port's name.
    pub port: String,
    /// IEEE 802.1Q VLAN ID. Default: untagged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094))]
    pub vlan: Option<u16>,
    /// What it serves.
    pub roles: Vec<Role>,
    /// Addresses of our own, each with its subnet's prefix length.
    #[serde(with = "units::list")]
    #[schemars(with = "Vec<Text<InterfaceAddress>>")]
    pub addresses: Vec<InterfaceAddress>,
    /// Network Instances (TS 29.244 §8.2.4) that lead here; letter case does not matter. Empty: all of them.
    #[serde(default)]
    pub network_instances: Vec<String>,
    /// Largest layer-3 packet sent here. Default: the port's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1280, max = 9600))]
    pub mtu: Option<u16>,
}

/// A route beyond the interfaces' own subnets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteSection {
    /// Destination prefix; `0.0.0.0/0` or `::/0` for the default route.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<IpNet>")]
    pub to: IpNet,
    /// The next router's address, in the subnet of an interface.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<IpAddr>>")]
    pub via: Option<IpAddr>,
    /// The interface to send through. Default: the one whose subnet contains `via`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

/// A neighbour whose MAC address is set by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeighbourSection {
    /// The interface that it is behind.
    pub interface: String,
    /// Its address.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<IpAddr>")]
    pub address: IpAddr,
    /// Its MAC address.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<MacAddr>")]
    pub mac: MacAddr,
}

/// Addresses that this UPF may give to UEs itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PoolSection {
    /// The Network Instance (or DNN) whose sessions take from here; letter case does not matter. Empty: those that no other
    /// pool serves.
    pub network_instance: String,
    /// IPv4 prefixes; each UE gets one address. The first and last address of a prefix shorter than /31 stay unused.
    #[serde(with = "units::list")]
    #[schemars(with = "Vec<Text<Ipv4Net>>")]
    pub ipv4: Vec<Ipv4Net>,
    /// IPv6 prefixes; each UE gets a prefix of its own out of them.
    #[serde(with = "units::list")]
    #[schemars(with = "Vec<Text<Ipv6Net>>")]
    pub ipv6: Vec<Ipv6Net>,
    /// How long each UE's IPv6 prefix is: a /64 is one link, shorter ones are delegated whole.
    #[schemars(range(min = 48, max = 64))]
    pub ipv6_prefix_length: u8,
    /// Whether its UEs and other UEs reach each other by their addresses. If not, what they send each other is dropped.
    pub ue_to_ue: bool,
}

impl Default for PoolSection {
    fn default() -> Self {
        Self {
            network_instance: String::new(),
            ipv4: Vec::new(),
            ipv6: Vec::new(),
            ipv6_prefix_length: 64,
            ue_to_ue: true,
        }
    }
}

/// Sessions that are limited and counted together, whichever worker serves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SliceSection {
    /// The name that reports use.
    pub name: String,
    /// Sessions with this S-NSSAI belong to it (TS 29.244 §8.2.176).
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<SNssai>>")]
    pub s_nssai: Option<SNssai>,
    /// And sessions with one of these Network Instances or DNNs; letter case does not matter.
    #[serde(default)]
    pub network_instances: Vec<String>,
    /// What all its sessions may send together. Default: no limit.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<BitRate>>")]
    pub uplink: Option<BitRate>,
    /// Beyond this their packets are the first to be dropped further on. Default: `uplink`.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<BitRate>>")]
    pub uplink_guaranteed: Option<BitRate>,
    /// Beyond `uplink` this many bytes more may pass at once, as packets that are the first to be dropped further on (RFC 2697), instead of
    /// a guaranteed rate below it (RFC 2698).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_excess_burst: Option<u32>,
    /// What all its sessions may receive together. Default: no limit.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<BitRate>>")]
    pub downlink: Option<BitRate>,
    /// Beyond this their packets are the first to be dropped further on. Default: `downlink`.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<BitRate>>")]
    pub downlink_guaranteed: Option<BitRate>,
    /// As `uplink-excess-burst`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downlink_excess_burst: Option<u32>,
    /// Packets beyond what their own rules guarantee count as any other (colour-blind), instead of staying the first to be dropped
    /// (colour-aware).
    #[serde(default)]
    pub colour_blind: bool,
}

/// How a QFI and DSCPs stand for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MarkingSection {
    /// The QoS Flow Identifier.
    #[schemars(range(min = 0, max = 63))]
    pub qfi: u8,
    /// DSCP of outer headers of packets with this QFI, where the SMF asks for none (Transport Level Marking).
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Dscp>>")]
    pub outer: Option<Dscp>,
    /// DSCP of the UE's own packets with this QFI towards the data network. Default: they keep theirs.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Dscp>>")]
    pub inner: Option<Dscp>,
    /// Packets from the data network with one of these get this QFI, if their rules name none.
    #[serde(default, with = "units::list")]
    #[schemars(with = "Vec<Text<Dscp>>")]
    pub accept: Vec<Dscp>,
}

/// Where packet buffers live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Huge pages if the machine has free ones, else ordinary pages.
    #[default]
    Auto,
    /// Huge pages, or no start.
    HugePages,
    /// Ordinary pages: slower, and not every NIC's driver can use them.
    NoHuge,
}

/// Whether workers that are only counted are pinned to cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// To isolated cores, if there are enough for all of them; else the kernel decides.
    #[default]
    Auto,
    /// To the best cores that there are, or no start.
    Always,
    /// The kernel decides.
    Never,
}

/// Who looks up sessions and flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LookupBy {
    /// Workers themselves.
    #[default]
    Cpu,
    /// A CUDA device, or no start.
    Cuda,
    /// A CUDA device if there is one, else workers themselves.
    Auto,
}

impl LookupBy {
    /// As it is written.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Auto => "auto",
        }
    }
}

/// The threads that move packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkersSection {
    /// How many. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub count: Option<u16>,
    /// The cores, one worker each, instead of `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub cores: Option<Vec<u16>>,
    /// Whether, with `count`, they are pinned to cores that the program chooses (docs/workers.md).
    pub pin: Pin,
    /// The first so many only receive, and hand packets to the others: a pipeline. None: each worker receives its share.
    #[schemars(range(min = 0, max = 128))]
    pub dispatchers: u16,
    /// In a pipeline: dispatchers send, too, what the others have processed.
    pub dispatchers_send: bool,
    /// Packets that a worker can park while their shards are on their way to it. Default: 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_048_576))]
    pub parked_packets: Option<u32>,
    /// Where packet buffers live.
    pub memory: Memory,
    /// Who looks up sessions and flows while there is more to do than time (docs/device-lookups.md).
    pub lookup: LookupBy,
}

impl WorkersSection {
    /// The execution model.
    pub(super) fn model(&self) -> Model {
        match usize::from(self.dispatchers) {
            0 => Model::RunToCompletion,
            dispatchers => {
                let sender = if self.dispatchers_send { Sender::Dispatcher } else { Sender::Owner };
                Model::Pipeline { dispatchers, sender }
            }
        }
    }
}

/// What the UPF refuses to exceed. Reaching a limit is a named, counted refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// PFCP sessions, all peers together.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub sessions: u32,
    /// PFCP sessions of one peer.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub sessions_per_peer: u32,
    /// Associated SMFs.
    #[schemars(range(min = 1, max = 65_536))]
    pub peers: u32,
    /// Rules of one kind (PDRs, FARs, QERs or URRs) in one session.
    #[schemars(range(min = 1, max = 4_096))]
    pub rules_per_session: u32,
    /// SDF filters in one PDR.
    #[schemars(range(min = 1, max = 256))]
    pub filters_per_pdr: u32,
    /// Downlink packets that wait for their UE, all sessions together.
    #[schemars(range(min = 0, max = 16_777_216))]
    pub buffered_packets: u32,
    /// Downlink packets that wait for one UE.
    #[schemars(range(min = 0, max = 65_535))]
    pub buffered_packets_per_session: u32,
    /// Octets of answers kept for requests that are sent again, all peers together. Beyond, the oldest of the peer that has most
    /// are given up.
    #[schemars(range(min = 65_536, max = 2_147_483_647))]
    pub reply_octets: u32,
    /// Requests of our own that wait for an answer, all peers together.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub outstanding_requests: u32,
    /// Fragmented packets whose fragments are awaited, in one worker; beyond, the oldest are given up. All together hold no more than
    /// the worker's part of an eighth of the packet buffers.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub fragmented_packets: u32,
    /// Flow entries, all sessions together: 100 to 120 bytes each, taken as flows come. A worker may have as large a part of them as it
    /// has of the 512 shards. Beyond, one that was idle for long makes room, of a shard that has more than a 512th.
    #[schemars(range(min = 512, max = 134_217_728))]
    pub flows: u32,
    /// Flow entries whose memory is taken at the start, a 512th of them for each shard: no flow waits for memory until a shard has more.
    #[schemars(range(min = 0, max = 134_217_728))]
    pub flows_reserved: u32,
    /// Flow entries of one session. The packets of further flows are classified one by one.
    #[schemars(range(min = 0, max = 16_777_216))]
    pub flows_per_session: u32,
    /// Seconds without a packet after which a flow entry is forgotten.
    #[schemars(range(min = 1, max = 32_767))]
    pub flow_idle_seconds: u16,
    /// Packets of unknown flows that one burst of 64 may bring to their rules however full its port's receive queue is. While less than a
    /// quarter of the queue is full any number may, then 32, from a half on 8, from three quarters on this; the rest are dropped, so that
    /// known flows go on.
    #[schemars(range(min = 1, max = 64))]
    pub new_flows_in_overload: u32,
    /// Mappings of NAT, all UEs together, spread over 512 shards: about 120 bytes each, taken as they come.
    #[schemars(range(min = 512, max = 134_217_728))]
    pub nat_mappings: u32,
    /// Neighbours (ARP and ND) on each interface; beyond, those that nobody sends to make room.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub neighbours: u32,
    /// GTP-U Error Indications and ICMP errors that one worker sends in a second.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub errors_per_second: u32,
}

impl Limits {
    /// With parts that are no larger than the whole.
    pub(super) fn consistent(self) -> Self {
        Self {
            sessions_per_peer: self.sessions_per_peer.min(self.sessions),
            flows_reserved: self.flows_reserved.min(self.flows),
            buffered_packets_per_session: self.buffered_packets_per_session.min(self.buffered_packets),
            ..self
        }
    }

    /// As many packets for UEs as before, and for one UE no more than that.
    pub fn keep_buffered_packets(&mut self, before: &Self) {
        self.buffered_packets = before.buffered_packets;
        self.buffered_packets_per_session = self.buffered_packets_per_session.min(before.buffered_packets);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1_048_576,
            sessions_per_peer: 1_048_576,
            peers: 256,
            rules_per_session: 64,
            filters_per_pdr: 16,
            buffered_packets: 16_384,
            buffered_packets_per_session: 64,
            reply_octets: 160 << 20,
            outstanding_requests: 65_536,
            fragmented_packets: 4_096,
            flows: 4_194_304,
            flows_reserved: 0,
            flows_per_session: 4_096,
            flow_idle_seconds: 30,
            new_flows_in_overload: 1,
            nat_mappings: 4_194_304,
            neighbours: 16_384,
            errors_per_second: 1_000,
        }
    }
}

/// The control socket that `millrace ctl` talks to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CtlSection {
    /// Path of the Unix socket; only its owner can use it. Default: `/run/millrace/ctl.sock` for root, else
    /// `$XDG_RUNTIME_DIR/millrace/ctl.sock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
}

/// What is logged. `-v`, `-q` and the environment variable `MILLRACE_LOG` say otherwise for one start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Log {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`), or levels by module: `info,n4=debug`.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { filter: "info".into() }
    }
}

/// The file that a configuration was read from, with everything that the environment and arguments laid over it and the defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct Written(pub(super) Box<File>);

impl Written {
    /// Takes over the sections that a running UPF takes over whole from a file that is read anew.
    pub fn reload(&mut self, new: &Self) {
        let (old, new) = (&mut *self.0, &*new.0);
        old.route.clone_from(&new.route);
        old.neighbour.clone_from(&new.neighbour);
        old.forwarding_policy.clone_from(&new.forwarding_policy);
        old.nat.clone_from(&new.nat);
        old.nat_static.clone_from(&new.nat_static);
        old.nptv6.clone_from(&new.nptv6);
    }
}
