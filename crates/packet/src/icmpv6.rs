//! ICMPv6 (RFC 4443): view, echo replies in place, and the errors that a router sends. Neighbour Discovery is in
//! [`crate::ndp`].

use std::net::Ipv6Addr;

use crate::checksum::{self, Sum};
use crate::icmpv4::Echo;
use crate::ipv6::{self, Ipv6Header, Ipv6View};
use crate::wire::put16;
use crate::{IpProtocol, Layer, Malformed};

/// Octets of an ICMPv6 header with the four octets that every type uses in its own way.
pub const HEADER_LEN: usize = 8;
/// The longest error message: the minimum MTU of IPv6 (RFC 4443 §2.4c).
pub const MAX_ERROR_LEN: usize = 1280;

/// Message types that Millrace handles.
pub mod kind {
    /// Destination Unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet Too Big.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time Exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter Problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo Request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo Reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Router Solicitation (RFC 4861 §4.1).
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router Advertisement (§4.2).
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbour Solicitation (§4.3).
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// Neighbour Advertisement (§4.4).
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
    /// Redirect (§4.5).
    pub const REDIRECT: u8 = 137;
}

/// An ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv6View<'a> {
    header: &'a [u8; HEADER_LEN],
    body: &'a [u8],
}

impl<'a> Icmpv6View<'a> {
    /// Reads a message that fills `data`.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Icmpv6))?;
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

    /// Whether the message adds up with the pseudo header of its packet.
    #[inline]
    pub fn checksum_ok(&self, packet: &Ipv6View<'_>) -> bool {
        packet
            .pseudo_header(IpProtocol::ICMPV6, HEADER_LEN + self.body.len())
            .bytes(self.header)
            .bytes(self.body)
            .is_valid()
    }

    /// The last four octets of the header.
    #[inline]
    pub const fn word(&self) -> u32 {
        let h = self.header;
        u32::from_be_bytes([h[4], h[5], h[6], h[7]])
    }

    /// Identifier and sequence number of an echo message.
    #[inline]
    pub const fn echo(&self) -> Option<Echo> {
        let request = match self.header[0] {
            kind::ECHO_REQUEST => true,
            kind::ECHO_REPLY => false,
            _ => return None,
        };
        let word = self.word();
        Some(Echo { request, identifier: (word >> 16) as u16, sequence: word as u16 })
    }

    /// The beginning of the packet that an error message is about (for [`Ipv6View::parse_quoted`]).
    #[inline]
    pub const fn quoted(&self) -> Option<&'a [u8]> {
        // The high bit tells errors from information (RFC 4443 §2.1).
        if self.header[0] < 128 { Some(self.body) } else { None }
    }

    /// The MTU that Packet Too Big tells.
    #[inline]
    pub const fn mtu(&self) -> Option<u32> {
        if self.header[0] == kind::PACKET_TOO_BIG { Some(self.word()) } else { None }
    }

    /// What follows the eight octets of the header.
    #[inline]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// Makes an echo request (a packet from its IPv6 header on) its own reply: exchanges the addresses, sets the hop limit
/// to 64 and the type, and carries the change into the checksum. False, and nothing changed, if it isn't an echo
/// request directly behind the fixed header.
pub fn echo_reply_in_place(packet: &mut [u8]) -> bool {
    let Ok(ip) = Ipv6View::parse(packet) else { return false };
    if ip.next_header() != IpProtocol::ICMPV6 {
        return false;
    }
    let Ok(icmp) = Icmpv6View::parse(ip.payload()) else { return false };
    if icmp.kind() != kind::ECHO_REQUEST {
        return false;
    }
    let code = u16::from(icmp.code());
    let (old, new) = (u16::from(kind::ECHO_REQUEST) << 8 | code, u16::from(kind::ECHO_REPLY) << 8 | code);
    let sum = checksum::update_u16(icmp.checksum(), old, new);
    if let Some(header) = packet.first_chunk_mut::<{ ipv6::HEADER_LEN }>() {
        header[7] = 64;
        let (source, destination) = header[8..].split_at_mut(16);
        source.swap_with_slice(destination);
    }
    put16(packet, ipv6::HEADER_LEN, new);
    put16(packet, ipv6::HEADER_LEN + 2, sum);
    true
}

/// What a router may have to say about a packet that it can't forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Icmpv6Error {
    /// No route to the destination.
    NoRoute,
    /// A filter forbids it.
    AdministrativelyProhibited,
    /// The last hop doesn't answer Neighbour Discovery.
    AddressUnreachable,
    /// Nobody listens at the port.
    PortUnreachable,
    /// The packet is longer than the MTU of the next link.
    PacketTooBig {
        /// That MTU.
        mtu: u32,
    },
    /// The hop limit ran out on the way.
    TimeExceeded,
}

impl Icmpv6Error {
    /// Type, code and the header's last four octets.
    const fn wire(self) -> (u8, u8, u32) {
        match self {
            Self::NoRoute => (kind::UNREACHABLE, 0, 0),
            Self::AdministrativelyProhibited => (kind::UNREACHABLE, 1, 0),
            Self::AddressUnreachable => (kind::UNREACHABLE, 3, 0),
            Self::PortUnreachable => (kind::UNREACHABLE, 4, 0),
            Self::PacketTooBig { mtu } => (kind::PACKET_TOO_BIG, 0, mtu),
            Self::TimeExceeded => (kind::TIME_EXCEEDED, 0, 0),
        }
    }
}

/// Whether this error about this packet may be sent: never about an ICMPv6 error or redirect, a later fragment, or a
/// source that isn't one host; about a multicast destination only Packet Too Big (RFC 4443 §2.4e).
pub fn may_answer(offending: &Ipv6View<'_>, error: Icmpv6Error) -> bool {
    let source = offending.source();
    if source.is_unspecified() || source.is_multicast() || source.is_loopback() {
        return false;
    }
    if offending.destination().is_multicast() && !matches!(error, Icmpv6Error::PacketTooBig { .. }) {
        return false;
    }
    let Ok(upper) = offending.upper_layer() else { return false };
    if upper.fragment.is_some_and(|f| !f.is_first()) {
        return false;
    }
    upper.protocol != IpProtocol::ICMPV6
        || upper.payload.first().is_some_and(|&k| k >= 128 && k != kind::REDIRECT)
}

/// Appends the IPv6 packet that tells the sender of `offending` (from its IPv6 header on) what went wrong, quoting as
/// much of it as fits in [`MAX_ERROR_LEN`]. False, and nothing appended, if no error may be sent about it.
pub fn emit_error(out: &mut Vec<u8>, source: Ipv6Addr, error: Icmpv6Error, offending: &[u8]) -> bool {
    let Ok(ip) = Ipv6View::parse_quoted(offending) else { return false };
    if !may_answer(&ip, error) {
        return false;
    }
    let whole = offending.get(..ip.total_len()).unwrap_or(offending);
    let quote = whole.get(..MAX_ERROR_LEN - ipv6::HEADER_LEN - HEADER_LEN).unwrap_or(whole);
    let (kind, code, word) = error.wire();
    let header = Ipv6Header { source, destination: ip.source(), ..Ipv6Header::default() };
    emit(out, header, [kind, code], word, quote);
    true
}

/// Appends an IPv6 packet with an ICMPv6 message of this type, code, word and body, checksum included. The next
/// header of `header` is set.
pub fn emit(out: &mut Vec<u8>, header: Ipv6Header, kind_code: [u8; 2], word: u32, body: &[u8]) {
    let header = Ipv6Header { next_header: IpProtocol::ICMPV6, ..header };
    let length = HEADER_LEN + body.len();
    let mut ip = [0; ipv6::HEADER_LEN];
    ipv6::emit_header(&mut ip, &header, length);
    let [w0, w1, w2, w3] = word.to_be_bytes();
    let mut icmp = [kind_code[0], kind_code[1], 0, 0, w0, w1, w2, w3];
    let pseudo: Sum =
        checksum::pseudo_v6(header.source, header.destination, IpProtocol::ICMPV6, length as u32);
    [icmp[2], icmp[3]] = pseudo.bytes(&icmp).bytes(body).finish().to_be_bytes();
    out.extend(ip);
    out.extend(icmp);
    out.extend(body);
}
