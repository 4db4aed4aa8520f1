//! The keys that classify a user's packet: addresses, protocol, ports.

use std::net::IpAddr;

use crate::ipv4::{Fragment, Ipv4View};
use crate::ipv6::{self, Ipv6View};
use crate::{Dscp, IpProtocol, Layer, Malformed};

/// Source and destination port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

/// The 5-tuple of a packet. Only a transport protocol with ports has them, and of a fragmented datagram only the
/// first fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Where the packet comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The transport protocol.
    pub protocol: IpProtocol,
    /// Its ports.
    pub ports: Option<Ports>,
}

impl FlowKey {
    /// The key of the way back.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            ports: self.ports.map(|p| Ports { source: p.destination, destination: p.source }),
        }
    }
}

/// What the packet path wants to know of an IP packet, read once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpPacket {
    /// The 5-tuple.
    pub key: FlowKey,
    /// DSCP and ECN.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Octets of header and payload: what is beyond is padding.
    pub total_len: u16,
    /// Where the transport header (or a later fragment's data) begins.
    pub transport_offset: u16,
    /// Where it stands in a fragmented datagram.
    pub fragment: Option<Fragment>,
    /// IPv6 flow label; 0 for IPv4.
    pub flow_label: u32,
}

impl IpPacket {
    /// Reads an IPv4 or IPv6 packet: the version field says which.
    #[inline]
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        match data.first() {
            Some(octet) if octet >> 4 == 4 => Self::of_v4(&Ipv4View::parse(data)?),
            Some(octet) if octet >> 4 == 6 => Self::of_v6(&Ipv6View::parse(data)?),
            Some(_) => Err(Malformed::Version(Layer::Ipv4)),
            None => Err(Malformed::Truncated(Layer::Ipv4)),
        }
    }

    /// From an IPv4 packet.
    #[inline]
    pub fn of_v4(view: &Ipv4View<'_>) -> Result<Self, Malformed> {
        let fragment = view.fragment();
        let protocol = view.protocol();
        Ok(Self {
            key: FlowKey {
                source: view.source().into(),
                destination: view.destination().into(),
                protocol,
                ports: ports(protocol, fragment, view.payload())?,
            },
            tos: view.tos(),
            ttl: view.ttl(),
            total_len: view.total_len() as u16,
            transport_offset: view.header_len() as u16,
            fragment,
            flow_label: 0,
        })
    }

    /// From an IPv6 packet. Refuses one that is longer than 65,535 octets with its header.
    #[inline]
    pub fn of_v6(view: &Ipv6View<'_>) -> Result<Self, Malformed> {
        let upper = view.upper_layer()?;
        let total_len = u16::try_from(view.total_len()).map_err(|_| Malformed::TotalLength(Layer::Ipv6))?;
        Ok(Self {
            key: FlowKey {
                source: view.source().into(),
                destination: view.destination().into(),
                protocol: upper.protocol,
                ports: ports(upper.protocol, upper.fragment, upper.payload)?,
            },
            tos: view.traffic_class(),
            ttl: view.hop_limit(),
            total_len,
            transport_offset: (ipv6::HEADER_LEN + upper.extensions_len) as u16,
            fragment: upper.fragment,
            flow_label: view.flow_label(),
        })
    }

    /// The DiffServ code point.
    #[inline]
    pub const fn dscp(&self) -> Dscp {
        Dscp::from_tos(self.tos)
    }
}

/// The first four octets of a transport header that has ports. A packet, or a first fragment, that is too short to
/// have them evades every filter on ports and is refused (RFC 1858 §3, RFC 8200 §4.5).
#[inline]
fn ports(
    protocol: IpProtocol,
    fragment: Option<Fragment>,
    payload: &[u8],
) -> Result<Option<Ports>, Malformed> {
    if !protocol.has_ports() || fragment.is_some_and(|f| !f.is_first()) {
        return Ok(None);
    }
    match payload {
        &[a, b, c, d, ..] => {
            Ok(Some(Ports { source: u16::from_be_bytes([a, b]), destination: u16::from_be_bytes([c, d]) }))
        }
        _ => Err(Malformed::Truncated(match protocol {
            IpProtocol::TCP => Layer::Tcp,
            IpProtocol::UDP => Layer::Udp,
            _ => Layer::Transport,
        })),
    }
}
