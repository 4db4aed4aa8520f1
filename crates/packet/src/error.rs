//! Why bytes are not the packet they claim to be.

use std::fmt;

/// The protocol whose rules the bytes break.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Layer {
    /// Ethernet II.
    Ethernet,
    /// IEEE 802.1Q or 802.1ad tag.
    Vlan,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// IPv4 header or options.
    Ipv4,
    /// IPv6 fixed header.
    Ipv6,
    /// IPv6 extension header chain.
    Ipv6Extension,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// The port numbers of another transport protocol (SCTP, DCCP, UDP-Lite).
    Transport,
    /// ICMP for IPv4.
    Icmpv4,
    /// ICMPv6.
    Icmpv6,
    /// Neighbour Discovery message or option.
    Ndp,
    /// GTP-U header.
    Gtpu,
    /// GTP-U extension header chain.
    GtpuExtension,
    /// GTP-U information element.
    GtpuElement,
    /// PDU Session Container.
    PduSession,
    /// Generic Routing Encapsulation.
    Gre,
    /// ERSPAN type III.
    Erspan,
}

impl Layer {
    /// The protocol's usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN tag",
            Self::Arp => "ARP",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Ipv6Extension => "IPv6 extension header",
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Transport => "transport header",
            Self::Icmpv4 => "ICMP",
            Self::Icmpv6 => "ICMPv6",
            Self::Ndp => "Neighbour Discovery",
            Self::Gtpu => "GTP-U",
            Self::GtpuExtension => "GTP-U extension header",
            Self::GtpuElement => "GTP-U information element",
            Self::PduSession => "PDU Session Container",
            Self::Gre => "GRE",
            Self::Erspan => "ERSPAN",
        }
    }
}

/// What is wrong with the bytes. Two octets, `Copy`: cheap to return from the packet path and to count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Malformed {
    /// There are fewer bytes than the header has.
    Truncated(Layer),
    /// The version field names another version than the one expected.
    Version(Layer),
    /// The header's own length field is below the minimum or beyond the packet.
    HeaderLength(Layer),
    /// The length of the whole message is below the header's or beyond the bytes that are there.
    TotalLength(Layer),
    /// A field has a value that this protocol doesn't allow, or that no one could process.
    Field(Layer),
    /// A chain of headers or elements is longer than the bound that protects the packet path.
    TooMany(Layer),
}

impl Malformed {
    /// The protocol whose rules were broken.
    pub const fn layer(self) -> Layer {
        match self {
            Self::Truncated(l)
            | Self::Version(l)
            | Self::HeaderLength(l)
            | Self::TotalLength(l)
            | Self::Field(l)
            | Self::TooMany(l) => l,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Truncated(_) => "is cut short",
            Self::Version(_) => "has another version",
            Self::HeaderLength(_) => "has an impossible header length",
            Self::TotalLength(_) => "has a length that contradicts the packet",
            Self::Field(_) => "has a field with an impossible value",
            Self::TooMany(_) => "chain is too long",
        };
        write!(f, "{} {what}", self.layer().name())
    }
}

impl std::error::Error for Malformed {}
