//! The vocabulary of rules: what they match, and what they do.

use packet::MacAddr;
use std::net::IpAddr;

/// Something that a device may or may not be able to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Feature {
    /// Any rule at all.
    Rules,
    /// A pattern on an Ethernet or VLAN header.
    Ethernet,
    /// A pattern on an IPv4, IPv6, UDP or TCP header.
    Addresses,
    /// A pattern on a GTP-U header.
    Tunnels,
    /// A pattern on a PDU session container.
    Containers,
    /// A pattern on what is inside a tunnel.
    Inner,
    /// Comparing a packet's length ([`FlowRule::longest`]).
    Lengths,
    /// [`Action::Count`].
    Count,
    /// [`Action::CountFor`].
    SharedCount,
    /// [`Action::Mark`].
    Mark,
    /// [`Action::Queue`].
    Queue,
    /// [`Action::Rss`].
    Rss,
    /// [`Action::Meter`].
    Meter,
    /// [`Action::Decap`].
    Decap,
    /// [`Action::DecTtl`].
    DecTtl,
    /// [`Action::Encap`].
    Encap,
    /// [`Action::Encap`] with an outer IPv6 header, whose UDP checksum covers the whole packet.
    EncapIpv6,
    /// [`Action::Port`].
    Port,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Rules,
        Self::Ethernet,
        Self::Addresses,
        Self::Tunnels,
        Self::Containers,
        Self::Inner,
        Self::Lengths,
        Self::Count,
        Self::SharedCount,
        Self::Mark,
        Self::Queue,
        Self::Rss,
        Self::Meter,
        Self::Decap,
        Self::DecTtl,
        Self::Encap,
        Self::EncapIpv6,
        Self::Port,
    ];

    /// Its name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Ethernet => "ethernet",
            Self::Addresses => "addresses",
            Self::Tunnels => "tunnels",
            Self::Containers => "containers",
            Self::Inner => "inner",
            Self::Lengths => "lengths",
            Self::Count => "count",
            Self::SharedCount => "shared-count",
            Self::Mark => "mark",
            Self::Queue => "queue",
            Self::Rss => "rss",
            Self::Meter => "meter",
            Self::Decap => "decap",
            Self::DecTtl => "dec-ttl",
            Self::Encap => "encap",
            Self::EncapIpv6 => "encap-ipv6",
            Self::Port => "port",
        }
    }
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

impl counters::Words for Features {
    fn put(&self, to: &mut Vec<u64>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        counters::Words::take(from).map(Self)
    }
}

impl Features {
    /// These.
    pub fn of(features: &[Feature]) -> Self {
        features.iter().copied().fold(Self::default(), Self::with)
    }

    /// All that there are.
    pub fn all() -> Self {
        Self::of(&Feature::ALL)
    }

    /// And this one.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | 1 << feature as u8)
    }

    /// But not this one.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !(1 << feature as u8))
    }

    /// Whether this one is among them.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u8 != 0
    }

    /// Each of them, in order.
    pub fn each(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.has(*feature))
    }
}

impl std::fmt::Debug for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.each()).finish()
    }
}

/// The PDU session container (TS 38.415) of G-PDUs. Each choice means one length of the GTP-U header, so that a device
/// can cut it off.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Container {
    /// No optional fields at all: a header of 8 octets.
    Absent,
    /// A container of 4 octets with this QFI and nothing else: a header of 16 octets.
    Qfi(u8),
}

impl Container {
    /// Length of the GTP-U header, in octets.
    pub const fn header(self) -> usize {
        match self {
            Self::Absent => 8,
            Self::Qfi(_) => 16,
        }
    }
}

/// Packets of one tunnel: G-PDUs (TS 29.281) over UDP port 2152.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TunnelMatch {
    /// The outer destination address: ours.
    pub destination: IpAddr,
    /// The TEID.
    pub teid: u32,
    /// The PDU session container.
    pub container: Container,
}

/// Which packets a rule is for. `None` is any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// The frame's destination MAC address: the interface's own.
    pub mac: MacAddr,
    /// Its VLAN; `None`: the frame has no tag.
    pub vlan: Option<u16>,
    /// The tunnel that the user's packet is in; `None`: it is in none.
    pub tunnel: Option<TunnelMatch>,
    /// Whether the user's packet is IPv6.
    pub v6: bool,
    /// Its source address.
    pub source: Option<IpAddr>,
    /// Its destination address.
    pub destination: Option<IpAddr>,
    /// Its protocol (for IPv6, the next header).
    pub protocol: Option<u8>,
    /// Its source and destination ports; with protocol 6 or 17 only.
    pub ports: Option<(u16, u16)>,
    /// Bits of its ToS octet or traffic class: value and mask.
    pub tos: Option<(u8, u8)>,
}

impl Pattern {
    /// All IPv4 packets, outside of tunnels, of an untagged interface.
    pub const fn new(mac: MacAddr) -> Self {
        Self {
            mac,
            vlan: None,
            tunnel: None,
            v6: false,
            source: None,
            destination: None,
            protocol: None,
            ports: None,
            tos: None,
        }
    }

    /// Only packets to this address.
    #[must_use]
    pub const fn to(self, destination: IpAddr) -> Self {
        Self { v6: destination.is_ipv6(), destination: Some(destination), ..self }
    }

    /// What a device must be able to match.
    pub fn needs(&self) -> Features {
        let mut needs = Features::of(&[Feature::Rules, Feature::Ethernet, Feature::Addresses]);
        if let Some(tunnel) = self.tunnel {
            needs = needs.with(Feature::Tunnels).with(Feature::Inner);
            if tunnel.container != Container::Absent {
                needs = needs.with(Feature::Containers);
            }
        }
        needs
    }
}

/// A meter in a device, which rules may share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MeterId(pub u32);

/// A counter in a device, which rules may share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CounterId(pub u32);

/// What is done with a packet, in the order given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Count it, with the length that it has when its turn comes.
    Count,
    /// Count it, in the same way, for this counter of the device as well, which rules may share.
    CountFor(CounterId),
    /// Give it this number on its way to a worker, who finds it in [`Frame::mark`](crate::Frame::mark).
    Mark(u32),
    /// Bring it to this receive queue.
    Queue(u16),
    /// Spread such packets over receive queues by the hash of one address.
    Rss {
        /// Of the innermost packet, otherwise of the outermost one.
        inner: bool,
        /// Hash the source address alone; otherwise the destination address alone.
        source: bool,
        /// The queues.
        queues: Vec<u16>,
    },
    /// Drop it if this meter of the device has no tokens for the length that it has when its turn comes.
    Meter(MeterId),
    /// Cut off everything in front of the user's packet, and what follows it.
    Decap,
    /// One hop less in the user's packet.
    DecTtl,
    /// Put these headers in front: Ethernet, perhaps a VLAN tag, perhaps IP, UDP and GTP-U. The device fills in lengths and
    /// checksums (the UDP checksum over IPv4 stays 0).
    Encap(Box<[u8]>),
    /// Send it out of this port, by its number in the configuration.
    Port(u16),
}

impl Action {
    /// What a device must be able to do.
    pub fn needs(&self) -> Feature {
        match self {
            Self::Count => Feature::Count,
            Self::CountFor(_) => Feature::SharedCount,
            Self::Mark(_) => Feature::Mark,
            Self::Queue(_) => Feature::Queue,
            Self::Rss { .. } => Feature::Rss,
            Self::Meter(_) => Feature::Meter,
            Self::Decap => Feature::Decap,
            Self::DecTtl => Feature::DecTtl,
            Self::Encap(headers) if outer(headers).is_some_and(|(_, v6)| v6) => Feature::EncapIpv6,
            Self::Encap(_) => Feature::Encap,
            Self::Port(_) => Feature::Port,
        }
    }
}

/// The offset of the IP header in the headers of an [`Action::Encap`], and whether it is IPv6; `None`: there is only layer 2.
pub(crate) fn outer(headers: &[u8]) -> Option<(usize, bool)> {
    let l2 = if matches!(headers.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8])) { 18 } else { 14 };
    (headers.len() > l2).then(|| (l2, headers.get(l2 - 2..l2) == Some(&[0x86, 0xdd])))
}

/// A rule for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRule {
    /// Which packets.
    pub pattern: Pattern,
    /// Length of the longest user's packet that it is for, from its IP header on; longer ones are software's.
    pub longest: u16,
    /// Whether longer ones can arrive at all. If not, the device needn't compare lengths.
    pub may_exceed: bool,
    /// What is done with them.
    pub actions: Vec<Action>,
}

impl FlowRule {
    /// All that a device must be able to do.
    pub fn needs(&self) -> Features {
        let mut needs = self.pattern.needs();
        if self.may_exceed {
            needs = needs.with(Feature::Lengths);
        }
        self.actions.iter().fold(needs, |needs, action| needs.with(action.needs()))
    }

    /// The first feature that it needs and `features` lacks.
    pub fn lacks(&self, features: Features) -> Option<Feature> {
        self.needs().each().find(|feature| !features.has(*feature))
    }
}
