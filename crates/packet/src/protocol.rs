//! Numbers that name the next layer, and well-known ports.

use std::fmt;

/// UDP port of GTP-U (TS 29.281 §4.4.2).
pub const GTP_U_PORT: u16 = 2152;
/// UDP port of PFCP (TS 29.244 §4.2.2).
pub const PFCP_PORT: u16 = 8805;

/// What follows an Ethernet header or a VLAN tag (IEEE 802 numbers).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// IEEE 802.1Q customer tag.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// IEEE 802.1ad service tag.
    pub const QINQ: Self = Self(0x88a8);
    /// ERSPAN type III, in GRE (draft-foschiano-erspan-03 §4.3).
    pub const ERSPAN_III: Self = Self(0x22eb);

    /// Whether a VLAN tag follows.
    #[inline]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::QINQ)
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// What follows an IP header (IANA protocol numbers; IPv6 calls it Next Header).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 Hop-by-Hop Options (RFC 8200 §4.3).
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4.
    pub const ICMPV4: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// DCCP.
    pub const DCCP: Self = Self(33);
    /// IPv6 Routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 Fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// Generic Routing Encapsulation (RFC 2784).
    pub const GRE: Self = Self(47);
    /// IPsec Encapsulating Security Payload.
    pub const ESP: Self = Self(50);
    /// IPsec Authentication Header.
    pub const AH: Self = Self(51);
    /// ICMPv6.
    pub const ICMPV6: Self = Self(58);
    /// Nothing follows (RFC 8200 §4.7).
    pub const NO_NEXT_HEADER: Self = Self(59);
    /// IPv6 Destination Options.
    pub const DESTINATION_OPTIONS: Self = Self(60);
    /// SCTP.
    pub const SCTP: Self = Self(132);
    /// UDP-Lite.
    pub const UDP_LITE: Self = Self(136);

    /// Whether the first four octets of its header are source and destination port.
    #[inline]
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::DCCP | Self::SCTP | Self::UDP_LITE)
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ICMPV4 => f.write_str("icmp"),
            Self::TCP => f.write_str("tcp"),
            Self::UDP => f.write_str("udp"),
            Self::ESP => f.write_str("esp"),
            Self::ICMPV6 => f.write_str("icmpv6"),
            Self::SCTP => f.write_str("sctp"),
            Self(other) => write!(f, "{other}"),
        }
    }
}
