//! IPv6 (RFC 8200): view, bounded walk over extension headers, header emission, in-place changes.

use std::net::Ipv6Addr;

use crate::checksum::{self, Sum};
use crate::ipv4::Fragment;
use crate::{Dscp, IpProtocol, Layer, Malformed};

/// Octets of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Octets of a Fragment header.
pub const FRAGMENT_HEADER_LEN: usize = 8;
/// Extension headers that [`Ipv6View::upper_layer`] walks before it gives up. RFC 8200 §4.1 foresees seven at most;
/// a longer chain is an attack on the packet path.
pub const MAX_EXTENSION_HEADERS: usize = 8;

/// An IPv6 packet: a header that is consistent with itself, and the payload it claims.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Ipv6View<'a> {
    /// Reads a packet; what lies behind its payload length (Ethernet padding) is cut off. Jumbograms (RFC 2675) are
    /// not understood: their payload length of zero is taken at its word.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let view = Self::parse_quoted(data)?;
        if view.payload_len() > view.payload.len() {
            return Err(Malformed::TotalLength(Layer::Ipv6));
        }
        Ok(view)
    }

    /// Reads the beginning of a packet, as ICMPv6 errors quote it: the payload may be shorter than the header says.
    #[inline]
    pub fn parse_quoted(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Ipv6))?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Version(Layer::Ipv6));
        }
        let claimed = usize::from(u16::from_be_bytes([header[4], header[5]]));
        Ok(Self { header, payload: rest.get(..claimed).unwrap_or(rest) })
    }

    /// The Traffic Class octet: DSCP and ECN.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        self.header[0] << 4 | self.header[1] >> 4
    }

    /// The DiffServ code point.
    #[inline]
    pub const fn dscp(&self) -> Dscp {
        Dscp::from_tos(self.traffic_class())
    }

    /// Explicit congestion notification, 0..=3 (RFC 3168 §5).
    #[inline]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// The flow label, 20 bits.
    #[inline]
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.header[1] & 0xf, self.header[2], self.header[3]])
    }

    /// Octets behind the fixed header, as the header says.
    #[inline]
    pub const fn payload_len(&self) -> usize {
        u16::from_be_bytes([self.header[4], self.header[5]]) as usize
    }

    /// Octets of fixed header and payload, as the header says.
    #[inline]
    pub const fn total_len(&self) -> usize {
        HEADER_LEN + self.payload_len()
    }

    /// What follows the fixed header: an extension header or the upper layer.
    #[inline]
    pub const fn next_header(&self) -> IpProtocol {
        IpProtocol(self.header[6])
    }

    /// Hops that are left.
    #[inline]
    pub const fn hop_limit(&self) -> u8 {
        self.header[7]
    }

    /// Where it comes from.
    #[inline]
    pub fn source(&self) -> Ipv6Addr {
        address(self.header, 8)
    }

    /// Where it goes.
    #[inline]
    pub fn destination(&self) -> Ipv6Addr {
        address(self.header, 24)
    }

    /// Extension headers and upper layer, no more than the header claims.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Walks the extension headers to the upper layer.
    #[inline]
    pub fn upper_layer(&self) -> Result<UpperLayer<'a>, Malformed> {
        let protocol = self.next_header();
        if is_extension(protocol) {
            return walk(protocol, self.payload);
        }
        Ok(UpperLayer {
            protocol,
            payload: self.payload,
            extensions_len: 0,
            fragment: None,
            segments_left: false,
        })
    }

    /// The pseudo header of an upper layer of `length` octets, for its checksum. A packet that still has a Routing
    /// header to follow is summed with its final destination (RFC 8200 §8.1), which this does not look for.
    #[inline]
    pub fn pseudo_header(&self, protocol: IpProtocol, length: usize) -> Sum {
        checksum::pseudo_v6(self.source(), self.destination(), protocol, length as u32)
    }
}

#[inline]
fn address(header: &[u8; HEADER_LEN], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&header[at..at + 16]);
    Ipv6Addr::from(octets)
}

/// What lies behind the extension headers.
#[derive(Clone, Copy, Debug)]
pub struct UpperLayer<'a> {
    /// The upper layer; ESP and "no next header" count as one. In a later fragment it is what the fragmented part
    /// begins with, possibly an extension header.
    pub protocol: IpProtocol,
    /// The upper layer's octets.
    pub payload: &'a [u8],
    /// Octets of all extension headers: the upper layer begins at 40 plus this.
    pub extensions_len: usize,
    /// Where the packet stands in a fragmented one. An "atomic fragment" (offset 0, none follow; RFC 6946) is whole.
    pub fragment: Option<Fragment>,
    /// Whether a Routing header still has segments to visit: the destination address is not the final one.
    pub segments_left: bool,
}

#[inline]
const fn is_extension(protocol: IpProtocol) -> bool {
    matches!(
        protocol,
        IpProtocol::HOP_BY_HOP
            | IpProtocol::ROUTING
            | IpProtocol::FRAGMENT
            | IpProtocol::AH
            | IpProtocol::DESTINATION_OPTIONS
    )
}

/// Out of line: hardly any packet has extension headers.
#[cold]
fn walk(first: IpProtocol, payload: &[u8]) -> Result<UpperLayer<'_>, Malformed> {
    const LAYER: Layer = Layer::Ipv6Extension;
    let mut protocol = first;
    let mut rest = payload;
    let mut fragment = None;
    let mut segments_left = false;
    let mut seen = 0;
    while is_extension(protocol) {
        if seen == MAX_EXTENSION_HEADERS {
            return Err(Malformed::TooMany(LAYER));
        }
        if protocol == IpProtocol::HOP_BY_HOP && seen > 0 {
            // Only directly behind the fixed header (RFC 8200 §4.1).
            return Err(Malformed::Field(LAYER));
        }
        seen += 1;
        // Every extension header has at least eight octets.
        let head = *rest.first_chunk::<8>().ok_or(Malformed::Truncated(LAYER))?;
        let len = match protocol {
            IpProtocol::FRAGMENT => FRAGMENT_HEADER_LEN,
            IpProtocol::AH => (usize::from(head[1]) + 2) * 4, // RFC 4302 §2.2
            _ => (usize::from(head[1]) + 1) * 8,
        };
        rest = rest.get(len..).ok_or(Malformed::HeaderLength(LAYER))?;
        let current = protocol;
        protocol = IpProtocol(head[0]);
        match current {
            IpProtocol::ROUTING => segments_left = head[3] != 0,
            IpProtocol::FRAGMENT => {
                if fragment.is_some() {
                    return Err(Malformed::Field(LAYER));
                }
                let field = u16::from_be_bytes([head[2], head[3]]);
                let here = Fragment {
                    offset: u32::from(field & 0xfff8),
                    more: field & 1 != 0,
                    identification: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
                };
                if !here.is_first() {
                    fragment = Some(here);
                    break;
                }
                if here.more {
                    fragment = Some(here);
                }
            }
            _ => {}
        }
    }
    Ok(UpperLayer {
        protocol,
        payload: rest,
        extensions_len: payload.len() - rest.len(),
        fragment,
        segments_left,
    })
}

/// A header to be written. The default carries UDP with hop limit 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Where it comes from.
    pub source: Ipv6Addr,
    /// Where it goes.
    pub destination: Ipv6Addr,
    /// What follows.
    pub next_header: IpProtocol,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// 20 bits.
    pub flow_label: u32,
    /// Hops that are left.
    pub hop_limit: u8,
}

impl Default for Ipv6Header {
    fn default() -> Self {
        Self {
            source: Ipv6Addr::UNSPECIFIED,
            destination: Ipv6Addr::UNSPECIFIED,
            next_header: IpProtocol::UDP,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
        }
    }
}

/// Writes a fixed header in front of `payload_len` octets (extension headers included). The length is cut to 16 bits:
/// the caller bounds the payload by its MTU.
#[inline]
pub fn emit_header(out: &mut [u8; HEADER_LEN], header: &Ipv6Header, payload_len: usize) {
    let word = 6 << 28 | u32::from(header.traffic_class) << 20 | header.flow_label & 0xf_ffff;
    out[..4].copy_from_slice(&word.to_be_bytes());
    out[4..6].copy_from_slice(&(payload_len as u16).to_be_bytes());
    out[6] = header.next_header.0;
    out[7] = header.hop_limit;
    out[8..24].copy_from_slice(&header.source.octets());
    out[24..].copy_from_slice(&header.destination.octets());
}

/// Takes one hop off; `None`, and nothing changed, if the packet may go no further (RFC 8200 §3).
#[inline]
pub fn decrement_hop_limit(header: &mut [u8; HEADER_LEN]) -> Option<u8> {
    header[7] = header[7].checked_sub(1).filter(|&h| h > 0)?;
    Some(header[7])
}

/// Sets the DiffServ code point and leaves ECN alone.
#[inline]
pub fn set_dscp(header: &mut [u8; HEADER_LEN], dscp: Dscp) {
    let ecn = header[1] >> 4 & 3;
    let class = dscp.to_tos() | ecn;
    header[0] = 0x60 | class >> 4;
    header[1] = class << 4 | header[1] & 0xf;
}

/// Sets the payload length.
#[inline]
pub fn set_payload_len(header: &mut [u8; HEADER_LEN], payload_len: u16) {
    [header[4], header[5]] = payload_len.to_be_bytes();
}
