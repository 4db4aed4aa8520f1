//! IPv4 (RFC 791): view, header emission, in-place changes with incremental checksum.

use std::net::Ipv4Addr;

use crate::checksum::{self, Sum};
use crate::{Dscp, IpProtocol, Layer, Malformed};

/// Octets of a header without options.
pub const HEADER_LEN: usize = 20;
/// Octets of the longest header.
pub const MAX_HEADER_LEN: usize = 60;

/// Where a packet stands in a fragmented datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Offset of this fragment's payload in the datagram, in octets.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// What the fragments of one datagram have in common (16 bits in IPv4, 32 in IPv6).
    pub identification: u32,
}

impl Fragment {
    /// Whether the transport header is in this fragment.
    #[inline]
    pub const fn is_first(self) -> bool {
        self.offset == 0
    }
}

/// An IPv4 packet: a header that is consistent with itself, and the payload it claims.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Reads a packet; what lies behind its total length (Ethernet padding) is cut off. The header checksum is not
    /// looked at: see [`Ipv4View::checksum_ok`].
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let view = Self::parse_quoted(data)?;
        if view.total_len() > view.header_len() + view.payload.len() {
            return Err(Malformed::TotalLength(Layer::Ipv4));
        }
        Ok(view)
    }

    /// Reads the beginning of a packet, as ICMP errors quote it: the payload may be shorter than the header says.
    #[inline]
    pub fn parse_quoted(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Ipv4))?;
        if header[0] >> 4 != 4 {
            return Err(Malformed::Version(Layer::Ipv4));
        }
        let header_len = usize::from(header[0] & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let options_len = header_len.checked_sub(HEADER_LEN).ok_or(Malformed::HeaderLength(Layer::Ipv4))?;
        let (options, rest) =
            rest.split_at_checked(options_len).ok_or(Malformed::HeaderLength(Layer::Ipv4))?;
        let claimed = total.checked_sub(header_len).ok_or(Malformed::TotalLength(Layer::Ipv4))?;
        Ok(Self { header, options, payload: rest.get(..claimed).unwrap_or(rest) })
    }

    /// Octets of the header with its options.
    #[inline]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// Octets of header and payload, as the header says.
    #[inline]
    pub const fn total_len(&self) -> usize {
        u16::from_be_bytes([self.header[2], self.header[3]]) as usize
    }

    /// The ToS octet: DSCP and ECN.
    #[inline]
    pub const fn tos(&self) -> u8 {
        self.header[1]
    }

    /// The DiffServ code point.
    #[inline]
    pub const fn dscp(&self) -> Dscp {
        Dscp::from_tos(self.header[1])
    }

    /// Explicit congestion notification, 0..=3 (RFC 3168 §5).
    #[inline]
    pub const fn ecn(&self) -> u8 {
        self.header[1] & 3
    }

    /// What the fragments of one datagram have in common.
    #[inline]
    pub const fn identification(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    /// Whether routers must not fragment it.
    #[inline]
    pub const fn dont_fragment(&self) -> bool {
        self.header[6] & 0x40 != 0
    }

    /// Where it stands in a fragmented datagram; `None` if it is whole.
    #[inline]
    pub const fn fragment(&self) -> Option<Fragment> {
        let field = u16::from_be_bytes([self.header[6], self.header[7]]);
        let (more, offset) = (field & 0x2000 != 0, field & 0x1fff);
        if more || offset != 0 {
            Some(Fragment { offset: offset as u32 * 8, more, identification: self.identification() as u32 })
        } else {
            None
        }
    }

    /// Time to live.
    #[inline]
    pub const fn ttl(&self) -> u8 {
        self.header[8]
    }

    /// What the payload is.
    #[inline]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.header[9])
    }

    /// The header checksum as received.
    #[inline]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[10], self.header[11]])
    }

    /// Whether the header adds up.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        Sum::ZERO.bytes(self.header).bytes(self.options).is_valid()
    }

    /// Where it comes from.
    #[inline]
    pub const fn source(&self) -> Ipv4Addr {
        let h = self.header;
        Ipv4Addr::new(h[12], h[13], h[14], h[15])
    }

    /// Where it goes.
    #[inline]
    pub const fn destination(&self) -> Ipv4Addr {
        let h = self.header;
        Ipv4Addr::new(h[16], h[17], h[18], h[19])
    }

    /// The options, uninterpreted.
    #[inline]
    pub const fn options(&self) -> &'a [u8] {
        self.options
    }

    /// What the header carries, no more than it claims.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The pseudo header of the transport protocol inside, for its checksum.
    #[inline]
    pub fn pseudo_header(&self) -> Sum {
        let length = (self.total_len() - self.header_len()) as u16;
        checksum::pseudo_v4(self.source(), self.destination(), self.protocol(), length)
    }
}

/// A header to be written. The default is a whole UDP packet with TTL 64 that may be fragmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Where it comes from.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// What the payload is.
    pub protocol: IpProtocol,
    /// DSCP and ECN.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// What the fragments of one datagram have in common.
    pub identification: u16,
    /// Forbid fragmentation.
    pub dont_fragment: bool,
    /// More fragments follow.
    pub more_fragments: bool,
    /// Offset in the datagram in units of eight octets, 0..=8191.
    pub fragment_offset: u16,
}

impl Default for Ipv4Header {
    fn default() -> Self {
        Self {
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            protocol: IpProtocol::UDP,
            tos: 0,
            ttl: 64,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
        }
    }
}

/// Writes a header without options in front of `payload_len` octets, checksum included. The total length is cut to
/// 16 bits: the caller bounds the payload by its MTU.
#[inline]
pub fn emit_header(out: &mut [u8; HEADER_LEN], header: &Ipv4Header, payload_len: usize) {
    let [t0, t1] = ((HEADER_LEN + payload_len) as u16).to_be_bytes();
    let [i0, i1] = header.identification.to_be_bytes();
    let [f0, f1] = ((header.dont_fragment as u16) << 14
        | (header.more_fragments as u16) << 13
        | header.fragment_offset & 0x1fff)
        .to_be_bytes();
    let [s0, s1, s2, s3] = header.source.octets();
    let [d0, d1, d2, d3] = header.destination.octets();
    *out = [
        0x45,
        header.tos,
        t0,
        t1,
        i0,
        i1,
        f0,
        f1,
        header.ttl,
        header.protocol.0,
        0,
        0,
        s0,
        s1,
        s2,
        s3,
        d0,
        d1,
        d2,
        d3,
    ];
    let [c0, c1] = Sum::ZERO.bytes(out).finish().to_be_bytes();
    out[10] = c0;
    out[11] = c1;
}

/// Replaces the 16-bit word at `at` (even, constant) and carries the change into the header checksum.
#[inline(always)]
fn replace_word(header: &mut [u8; HEADER_LEN], at: usize, new: u16) {
    let old = u16::from_be_bytes([header[at], header[at + 1]]);
    let sum = checksum::update_u16(u16::from_be_bytes([header[10], header[11]]), old, new);
    [header[at], header[at + 1]] = new.to_be_bytes();
    [header[10], header[11]] = sum.to_be_bytes();
}

/// Sets the time to live.
#[inline]
pub fn set_ttl(header: &mut [u8; HEADER_LEN], ttl: u8) {
    let word = u16::from_be_bytes([ttl, header[9]]);
    replace_word(header, 8, word);
}

/// Takes one hop off the time to live, as every router does; `None`, and nothing changed, if the packet may go no
/// further (RFC 1812 §5.3.1).
#[inline]
pub fn decrement_ttl(header: &mut [u8; HEADER_LEN]) -> Option<u8> {
    let ttl = header[8].checked_sub(1).filter(|&t| t > 0)?;
    set_ttl(header, ttl);
    Some(ttl)
}

/// Sets the DiffServ code point and leaves ECN alone.
#[inline]
pub fn set_dscp(header: &mut [u8; HEADER_LEN], dscp: Dscp) {
    let word = u16::from_be_bytes([header[0], dscp.to_tos() | header[1] & 3]);
    replace_word(header, 0, word);
}

/// Sets the total length (header and payload).
#[inline]
pub fn set_total_len(header: &mut [u8; HEADER_LEN], total: u16) {
    replace_word(header, 2, total);
}

/// Sets the identification.
#[inline]
pub fn set_identification(header: &mut [u8; HEADER_LEN], identification: u16) {
    replace_word(header, 4, identification);
}
