//! ICMP for IPv4 (RFC 792): view, echo replies in place, and the errors that a router sends (RFC 1812 §4.3).

use std::net::Ipv4Addr;

use crate::checksum::{self, Sum};
use crate::ipv4::{self, Ipv4Header, Ipv4View};
use crate::wire::put16;
use crate::{IpProtocol, Layer, Malformed};

/// Octets of an ICMP header.
pub const HEADER_LEN: usize = 8;
/// The longest error message, IP header included (RFC 1812 §4.3.2.3).
pub const MAX_ERROR_LEN: usize = 576;

/// Message types that Millrace handles.
pub mod kind {
    /// Echo Reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination Unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo Request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time Exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter Problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
}

/// An echo message of either version of ICMP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Whether it is the request or the reply.
    pub request: bool,
    /// What the messages of one ping have in common.
    pub identifier: u16,
    /// Counts them.
    pub sequence: u16,
}

/// An ICMP message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv4View<'a> {
    header: &'a [u8; HEADER_LEN],
    body: &'a [u8],
}

impl<'a> Icmpv4View<'a> {
    /// Reads a message that fills `data`.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Icmpv4))?;
        Ok(Self { header, body })
    }

    /// The message type, see [`kind`].
    #[inline]
    pub const fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code within the type.
    #[inline]
    pub const fn code(&self) -> u8 {
        self.header[1]
    }

    /// The checksum as received.
    #[inline]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// Whether the message adds up.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        Sum::ZERO.bytes(self.header).bytes(self.body).is_valid()
    }

    /// Identifier and sequence number of an echo message.
    #[inline]
    pub const fn echo(&self) -> Option<Echo> {
        let request = match self.header[0] {
            kind::ECHO_REQUEST => true,
            kind::ECHO_REPLY => false,
            _ => return None,
        };
        let h = self.header;
        Some(Echo {
            request,
            identifier: u16::from_be_bytes([h[4], h[5]]),
            sequence: u16::from_be_bytes([h[6], h[7]]),
        })
    }

    /// The beginning of the packet that an error message is about (for [`Ipv4View::parse_quoted`]).
    #[inline]
    pub const fn quoted(&self) -> Option<&'a [u8]> {
        if is_error(self.header[0]) { Some(self.body) } else { None }
    }

    /// The next hop's MTU that "fragmentation needed" tells (RFC 1191 §4); 0 if the router doesn't know.
    #[inline]
    pub const fn mtu(&self) -> Option<u16> {
        match self.header {
            [kind::UNREACHABLE, 4, _, _, _, _, a, b] => Some(u16::from_be_bytes([*a, *b])),
            _ => None,
        }
    }

    /// What follows the eight octets of the header.
    #[inline]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// Errors, of which none may be answered with an error (RFC 1122 §3.2.2). Type 4 is the deprecated Source Quench.
const fn is_error(kind: u8) -> bool {
    matches!(kind, kind::UNREACHABLE | 4 | kind::REDIRECT | kind::TIME_EXCEEDED | kind::PARAMETER_PROBLEM)
}

/// Makes an echo request (a packet from its IPv4 header on) its own reply: exchanges the addresses, sets the TTL to
/// 64, changes the type, and carries the changes into both checksums, so that a damaged request yields a damaged
/// reply. False, and nothing changed, if it isn't a whole echo request.
pub fn echo_reply_in_place(packet: &mut [u8]) -> bool {
    let Ok(ip) = Ipv4View::parse(packet) else { return false };
    if ip.protocol() != IpProtocol::ICMPV4 || ip.fragment().is_some() {
        return false;
    }
    let Ok(icmp) = Icmpv4View::parse(ip.payload()) else { return false };
    if icmp.kind() != kind::ECHO_REQUEST {
        return false;
    }
    let at = ip.header_len();
    let word = u16::from(icmp.code());
    let sum = checksum::update_u16(icmp.checksum(), u16::from(kind::ECHO_REQUEST) << 8 | word, word);
    if let Some(header) = packet.first_chunk_mut::<{ ipv4::HEADER_LEN }>() {
        let (source, destination) = header[12..].split_at_mut(4);
        source.swap_with_slice(destination);
        ipv4::set_ttl(header, 64);
    }
    put16(packet, at, word);
    put16(packet, at + 2, sum);
    true
}

/// What a router may have to say about a packet that it can't forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Icmpv4Error {
    /// No route to the network.
    NetworkUnreachable,
    /// The last hop doesn't answer ARP.
    HostUnreachable,
    /// Nobody listens at the port.
    PortUnreachable,
    /// The packet is longer than the MTU of the next link and must not be fragmented (RFC 1191).
    FragmentationNeeded {
        /// That MTU.
        mtu: u16,
    },
    /// A filter forbids it.
    AdministrativelyProhibited,
    /// The time to live ran out on the way.
    TimeExceeded,
}

impl Icmpv4Error {
    /// Type, code, and the second half of the header's last four octets.
    const fn wire(self) -> (u8, u8, u16) {
        match self {
            Self::NetworkUnreachable => (kind::UNREACHABLE, 0, 0),
            Self::HostUnreachable => (kind::UNREACHABLE, 1, 0),
            Self::PortUnreachable => (kind::UNREACHABLE, 3, 0),
            Self::FragmentationNeeded { mtu } => (kind::UNREACHABLE, 4, mtu),
            Self::AdministrativelyProhibited => (kind::UNREACHABLE, 13, 0),
            Self::TimeExceeded => (kind::TIME_EXCEEDED, 0, 0),
        }
    }
}

/// Whether an error about this packet may be sent: never about an ICMP error, a later fragment, a multicast or
/// broadcast destination, or a source that isn't one host (RFC 1812 §4.3.2.7).
pub fn may_answer(offending: &Ipv4View<'_>) -> bool {
    let (source, destination) = (offending.source(), offending.destination());
    if source.is_unspecified()
        || source.is_loopback()
        || source.is_multicast()
        || source.is_broadcast()
        || destination.is_multicast()
        || destination.is_broadcast()
        || offending.fragment().is_some_and(|f| !f.is_first())
    {
        return false;
    }
    offending.protocol() != IpProtocol::ICMPV4 || offending.payload().first().is_some_and(|&k| !is_error(k))
}

/// Appends the IPv4 packet that tells the sender of `offending` (from its IPv4 header on) what went wrong, quoting as
/// much of it as fits in [`MAX_ERROR_LEN`]. False, and nothing appended, if no error may be sent about it.
pub fn emit_error(out: &mut Vec<u8>, source: Ipv4Addr, error: Icmpv4Error, offending: &[u8]) -> bool {
    let Ok(ip) = Ipv4View::parse_quoted(offending) else { return false };
    if !may_answer(&ip) {
        return false;
    }
    let whole = offending.get(..ip.total_len()).unwrap_or(offending);
    let quote = whole.get(..MAX_ERROR_LEN - ipv4::HEADER_LEN - HEADER_LEN).unwrap_or(whole);
    let (kind, code, word) = error.wire();
    let [w0, w1] = word.to_be_bytes();
    let mut header = [0; ipv4::HEADER_LEN];
    let fields = Ipv4Header {
        source,
        destination: ip.source(),
        protocol: IpProtocol::ICMPV4,
        // RFC 1812 §4.3.2.5: precedence 6, Internetwork Control.
        tos: 0xc0,
        ..Ipv4Header::default()
    };
    ipv4::emit_header(&mut header, &fields, HEADER_LEN + quote.len());
    let mut icmp = [kind, code, 0, 0, 0, 0, w0, w1];
    [icmp[2], icmp[3]] = Sum::ZERO.bytes(&icmp).bytes(quote).finish().to_be_bytes();
    out.extend(header);
    out.extend(icmp);
    out.extend(quote);
    true
}
