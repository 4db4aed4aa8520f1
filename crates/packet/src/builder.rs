//! Building whole packets, layer by layer: for tests, load generators and other places where convenience counts more
//! than a few nanoseconds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::{self, Sum};
use crate::ethernet::VlanTag;
use crate::gtpu::{ExtensionType, MessageType};
use crate::icmpv4::{self, Echo};
use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;
use crate::pdu_session::PduSession;
use crate::tcp::TcpHeader;
use crate::wire::put16;
use crate::{EtherType, IpProtocol, MacAddr, Teid, ethernet, icmpv6, ipv4, ipv6, tcp, udp};

#[derive(Clone, Debug)]
enum Part {
    Ethernet { destination: MacAddr, source: MacAddr },
    Vlan(VlanTag),
    Ipv4 { header: Ipv4Header, options: Vec<u8> },
    Ipv6(Ipv6Header),
    Ipv6Extension { kind: IpProtocol, octets: Vec<u8> },
    Udp { source: u16, destination: u16, checksum: bool },
    Tcp { header: TcpHeader, options: Vec<u8> },
    Echo { version: u8, echo: Echo },
    Gtpu { kind: MessageType, teid: Teid, sequence: Option<u16>, extensions: Vec<(ExtensionType, Vec<u8>)> },
}

/// Builds a packet from the outside in; lengths, checksums and the fields that name the next layer are filled in.
///
/// ```
/// use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid, pdu_session};
///
/// let frame = PacketBuilder::new()
///     .ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
///     .ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
///     .udp(2152, 2152)
///     .gtpu(Teid(0x1234))
///     .pdu_session(&PduSession::Uplink(pdu_session::Uplink { qfi: Qfi::from_wire(9), ..Default::default() }))
///     .ipv4([10, 60, 0, 1].into(), [198, 51, 100, 7].into())
///     .udp(40000, 53)
///     .build(b"query");
/// assert_eq!(frame.len(), 14 + 20 + 8 + 16 + 20 + 8 + 5);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PacketBuilder {
    parts: Vec<Part>,
}

impl PacketBuilder {
    /// Nothing yet: begin with any layer.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// An Ethernet header.
    #[must_use]
    pub fn ethernet(self, destination: MacAddr, source: MacAddr) -> Self {
        self.with(Part::Ethernet { destination, source })
    }

    /// A VLAN tag, behind an Ethernet header or another tag.
    #[must_use]
    pub fn vlan(self, tag: VlanTag) -> Self {
        self.with(Part::Vlan(tag))
    }

    /// An IPv4 header with default fields.
    #[must_use]
    pub fn ipv4(self, source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        self.ipv4_header(Ipv4Header { source, destination, ..Ipv4Header::default() })
    }

    /// An IPv4 header; its protocol counts only if nothing that names itself follows.
    #[must_use]
    pub fn ipv4_header(self, header: Ipv4Header) -> Self {
        self.with(Part::Ipv4 { header, options: Vec::new() })
    }

    /// Options for the IPv4 header or TCP header just added, padded to words with zeros, cut at 40 octets; without
    /// effect elsewhere.
    #[must_use]
    pub fn options(mut self, content: &[u8]) -> Self {
        if let Some(Part::Ipv4 { options, .. } | Part::Tcp { options, .. }) = self.parts.last_mut() {
            *options = content.get(..40).unwrap_or(content).to_vec();
            options.resize(options.len().next_multiple_of(4), 0);
        }
        self
    }

    /// An IPv6 header with default fields.
    #[must_use]
    pub fn ipv6(self, source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        self.ipv6_header(Ipv6Header { source, destination, ..Ipv6Header::default() })
    }

    /// An IPv6 header; its next header counts only if nothing that names itself follows.
    #[must_use]
    pub fn ipv6_header(self, header: Ipv6Header) -> Self {
        self.with(Part::Ipv6(header))
    }

    /// An IPv4 or IPv6 header. Addresses of different families yield an IPv6 header with mapped addresses.
    #[must_use]
    pub fn ip(self, source: IpAddr, destination: IpAddr) -> Self {
        let mapped = |a| match a {
            IpAddr::V4(a) => a.to_ipv6_mapped(),
            IpAddr::V6(a) => a,
        };
        match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => self.ipv4(s, d),
            (s, d) => self.ipv6(mapped(s), mapped(d)),
        }
    }

    /// An IPv6 extension header of the usual form (next header, length in units of eight octets, content); the content
    /// is padded with zeros. For a Fragment header see [`PacketBuilder::ipv6_fragment`].
    #[must_use]
    pub fn ipv6_extension(self, kind: IpProtocol, content: &[u8]) -> Self {
        let mut octets = vec![0, 0];
        octets.extend(content);
        octets.resize(octets.len().next_multiple_of(8), 0);
        // The Authentication Header counts words, less two (RFC 4302 §2.2).
        let units = if kind == IpProtocol::AH { octets.len() / 4 - 2 } else { octets.len() / 8 - 1 };
        if let Some(length) = octets.get_mut(1) {
            *length = units as u8;
        }
        self.with(Part::Ipv6Extension { kind, octets })
    }

    /// A Fragment header; `offset` is a multiple of eight octets.
    #[must_use]
    pub fn ipv6_fragment(self, fragment: ipv4::Fragment) -> Self {
        let [o0, o1] = (fragment.offset as u16 & 0xfff8 | u16::from(fragment.more)).to_be_bytes();
        let mut octets = vec![0, 0, o0, o1];
        octets.extend(fragment.identification.to_be_bytes());
        self.with(Part::Ipv6Extension { kind: IpProtocol::FRAGMENT, octets })
    }

    /// A UDP header with checksum.
    #[must_use]
    pub fn udp(self, source: u16, destination: u16) -> Self {
        self.with(Part::Udp { source, destination, checksum: true })
    }

    /// A UDP header without checksum: legal over IPv4, and over IPv6 for tunnels (RFC 6935).
    #[must_use]
    pub fn udp_without_checksum(self, source: u16, destination: u16) -> Self {
        self.with(Part::Udp { source, destination, checksum: false })
    }

    /// A TCP header.
    #[must_use]
    pub fn tcp(self, header: TcpHeader) -> Self {
        self.with(Part::Tcp { header, options: Vec::new() })
    }

    /// An ICMP echo message for IPv4.
    #[must_use]
    pub fn icmpv4_echo(self, echo: Echo) -> Self {
        self.with(Part::Echo { version: 4, echo })
    }

    /// An ICMPv6 echo message.
    #[must_use]
    pub fn icmpv6_echo(self, echo: Echo) -> Self {
        self.with(Part::Echo { version: 6, echo })
    }

    /// The GTP-U header of a G-PDU.
    #[must_use]
    pub fn gtpu(self, teid: Teid) -> Self {
        self.gtpu_message(MessageType::G_PDU, teid)
    }

    /// The GTP-U header of any message.
    #[must_use]
    pub fn gtpu_message(self, kind: MessageType, teid: Teid) -> Self {
        self.with(Part::Gtpu { kind, teid, sequence: None, extensions: Vec::new() })
    }

    /// A sequence number for the GTP-U header just added; without effect elsewhere.
    #[must_use]
    pub fn gtpu_sequence(mut self, number: u16) -> Self {
        if let Some(Part::Gtpu { sequence, .. }) = self.parts.last_mut() {
            *sequence = Some(number);
        }
        self
    }

    /// An extension header for the GTP-U header just added; its content is padded with zeros to 4n - 2 octets.
    #[must_use]
    pub fn gtpu_extension(mut self, kind: ExtensionType, content: &[u8]) -> Self {
        if let Some(Part::Gtpu { extensions, .. }) = self.parts.last_mut() {
            let mut content = content.to_vec();
            content.resize((content.len() + 2).next_multiple_of(4) - 2, 0);
            extensions.push((kind, content));
        }
        self
    }

    /// A PDU Session Container for the GTP-U header just added.
    #[must_use]
    pub fn pdu_session(self, container: &PduSession) -> Self {
        let mut content = Vec::new();
        container.emit(&mut content);
        self.gtpu_extension(ExtensionType::PDU_SESSION_CONTAINER, &content)
    }

    /// The packet with this payload.
    pub fn build(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.build_into(&mut out, payload);
        out
    }

    /// Appends the packet with this payload.
    pub fn build_into(&self, out: &mut Vec<u8>, payload: &[u8]) {
        let mut starts = Vec::with_capacity(self.parts.len());
        for (i, part) in self.parts.iter().enumerate() {
            starts.push(out.len());
            push_header(out, part, self.parts.get(i + 1));
        }
        out.extend(payload);
        // Inner checksums first: outer ones cover them.
        let mut network = None;
        let fixes: Vec<_> = self
            .parts
            .iter()
            .zip(&starts)
            .map(|(part, &start)| {
                network = addresses(part).or(network);
                (part, start, network)
            })
            .collect();
        for (part, start, network) in fixes.into_iter().rev() {
            if let Some(bytes) = out.get_mut(start..) {
                complete(bytes, part, network);
            }
        }
    }
}

/// The addresses that the pseudo header of the layers inside needs.
fn addresses(part: &Part) -> Option<(IpAddr, IpAddr)> {
    match part {
        Part::Ipv4 { header, .. } => Some((header.source.into(), header.destination.into())),
        Part::Ipv6(header) => Some((header.source.into(), header.destination.into())),
        _ => None,
    }
}

fn ether_type(next: Option<&Part>) -> EtherType {
    match next {
        Some(Part::Vlan(tag)) => tag.tpid,
        Some(Part::Ipv6(_)) => EtherType::IPV6,
        _ => EtherType::IPV4,
    }
}

fn protocol(next: Option<&Part>, otherwise: IpProtocol) -> IpProtocol {
    match next {
        Some(Part::Udp { .. }) => IpProtocol::UDP,
        Some(Part::Tcp { .. }) => IpProtocol::TCP,
        Some(Part::Echo { version: 4, .. }) => IpProtocol::ICMPV4,
        Some(Part::Echo { .. }) => IpProtocol::ICMPV6,
        Some(Part::Ipv6Extension { kind, .. }) => *kind,
        _ => otherwise,
    }
}

/// Appends a header whose lengths and checksums are not known yet.
fn push_header(out: &mut Vec<u8>, part: &Part, next: Option<&Part>) {
    match part {
        Part::Ethernet { destination, source } => {
            let mut header = [0; ethernet::HEADER_LEN];
            ethernet::emit_header(&mut header, *destination, *source, ether_type(next));
            out.extend(header);
        }
        Part::Vlan(tag) => {
            out.extend(tag.tci().to_be_bytes());
            out.extend(ether_type(next).0.to_be_bytes());
        }
        Part::Ipv4 { header, options } => {
            let header = Ipv4Header { protocol: protocol(next, header.protocol), ..*header };
            let mut octets = [0; ipv4::HEADER_LEN];
            ipv4::emit_header(&mut octets, &header, 0);
            octets[0] += (options.len() / 4) as u8;
            out.extend(octets);
            out.extend(options);
        }
        Part::Ipv6(header) => {
            let header = Ipv6Header { next_header: protocol(next, header.next_header), ..*header };
            let mut octets = [0; ipv6::HEADER_LEN];
            ipv6::emit_header(&mut octets, &header, 0);
            out.extend(octets);
        }
        Part::Ipv6Extension { octets, .. } => {
            out.push(protocol(next, IpProtocol::NO_NEXT_HEADER).0);
            out.extend(octets.iter().skip(1));
        }
        Part::Udp { source, destination, .. } => {
            let mut header = [0; udp::HEADER_LEN];
            udp::emit_header(&mut header, *source, *destination, 0);
            out.extend(header);
        }
        Part::Tcp { header, options } => {
            let mut octets = [0; tcp::HEADER_LEN];
            tcp::emit_header(&mut octets, header);
            octets[12] += (options.len() as u8 / 4) << 4;
            out.extend(octets);
            out.extend(options);
        }
        Part::Echo { version, echo } => {
            let kind = match (version, echo.request) {
                (4, true) => icmpv4::kind::ECHO_REQUEST,
                (4, false) => icmpv4::kind::ECHO_REPLY,
                (_, true) => icmpv6::kind::ECHO_REQUEST,
                (_, false) => icmpv6::kind::ECHO_REPLY,
            };
            out.extend([kind, 0, 0, 0]);
            out.extend(echo.identifier.to_be_bytes());
            out.extend(echo.sequence.to_be_bytes());
        }
        Part::Gtpu { kind, teid, sequence, extensions } => {
            let flags = 0x30 | u8::from(!extensions.is_empty()) << 2 | u8::from(sequence.is_some()) << 1;
            out.extend([flags, kind.0, 0, 0]);
            out.extend(teid.0.to_be_bytes());
            if flags & 7 != 0 {
                out.extend(sequence.unwrap_or(0).to_be_bytes());
                out.push(0);
                for (kind, content) in extensions {
                    out.extend([kind.0, ((content.len() + 2) / 4) as u8]);
                    out.extend(content);
                }
                out.push(ExtensionType::NONE.0);
            }
        }
    }
}

/// Fills in length and checksum of the layer that `bytes` begin with; everything inside is complete.
fn complete(bytes: &mut [u8], part: &Part, network: Option<(IpAddr, IpAddr)>) {
    let len = bytes.len();
    let pseudo = |protocol| match network {
        Some((IpAddr::V4(s), IpAddr::V4(d))) => checksum::pseudo_v4(s, d, protocol, len as u16),
        Some((IpAddr::V6(s), IpAddr::V6(d))) => checksum::pseudo_v6(s, d, protocol, len as u32),
        _ => Sum::ZERO,
    };
    match part {
        Part::Ethernet { .. } | Part::Vlan(_) | Part::Ipv6Extension { .. } => {}
        Part::Ipv4 { options, .. } => {
            put16(bytes, 2, len as u16);
            if let Some(header) = bytes.get(..ipv4::HEADER_LEN + options.len()) {
                let sum = checksum::ipv4_header(header);
                put16(bytes, 10, sum);
            }
        }
        Part::Ipv6(_) => put16(bytes, 4, (len - ipv6::HEADER_LEN) as u16),
        Part::Udp { checksum, .. } => {
            put16(bytes, 4, len as u16);
            if *checksum {
                udp::fill_checksum(bytes, pseudo(IpProtocol::UDP));
            }
        }
        Part::Tcp { .. } => {
            tcp::fill_checksum(bytes, pseudo(IpProtocol::TCP));
        }
        Part::Echo { version, .. } => {
            let start = if *version == 4 { Sum::ZERO } else { pseudo(IpProtocol::ICMPV6) };
            let sum = start.bytes(bytes).finish();
            put16(bytes, 2, sum);
        }
        Part::Gtpu { .. } => put16(bytes, 2, (len - 8) as u16),
    }
}
