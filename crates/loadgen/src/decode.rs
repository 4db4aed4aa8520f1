//! What came out of the UPF, read strictly: a field that the standards fix must have its value, or it is a fault.
//!
//! Like [`crate::traffic`], this reads bytes by hand rather than with crate `packet`, so that the judge is independent.

use crate::traffic::{ETHERNET, GTPU_PORT, fold, sum_bytes, sum_v6};
use packet::{MacAddr, Qfi, Teid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is wrong with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The frame ends within a header, or before the length that a header states.
    #[error("{layer}: {need} bytes needed, {have} there")]
    Truncated {
        /// Which header.
        layer: Layer,
        /// Bytes it needs or states.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// A length field disagrees with the bytes that are there.
    #[error("{layer}: length field says {said}, {have} bytes are there")]
    Length {
        /// Which header.
        layer: Layer,
        /// What it says.
        said: usize,
        /// What is there.
        have: usize,
    },
    /// The destination MAC address is not the next hop's.
    #[error("Ethernet destination {found}, expected {expected}")]
    EthernetDestination {
        /// The station that should get it.
        expected: MacAddr,
        /// Who got it.
        found: MacAddr,
    },
    /// The source MAC address is not the UPF's.
    #[error("Ethernet source {found}, expected {expected}")]
    EthernetSource {
        /// The UPF.
        expected: MacAddr,
        /// What the frame says.
        found: MacAddr,
    },
    /// Not IPv4 or IPv6, or not the version that the packet inside has.
    #[error("EtherType {0:#06x} does not fit the packet")]
    EtherType(u16),
    /// A header's fixed field has another value than the standard fixes.
    #[error("{layer}: {field} is {found:#x}")]
    Field {
        /// Which header.
        layer: Layer,
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: u32,
    },
    /// A checksum does not verify.
    #[error("{layer}: wrong checksum")]
    Checksum {
        /// Which header.
        layer: Layer,
    },
    /// An outer address is not that of the tunnel's end.
    #[error("outer address {found}, expected {expected}")]
    OuterAddress {
        /// The tunnel's end.
        expected: IpAddr,
        /// What the packet says.
        found: IpAddr,
    },
    /// The tunnel belongs to another session, or to none.
    #[error("TEID {found}, expected {expected}")]
    Teid {
        /// The session's.
        expected: Teid,
        /// The packet's.
        found: Teid,
    },
    /// Another QoS flow than the session's.
    #[error("QFI {}, expected {}", found.get(), expected.get())]
    Qfi {
        /// The session's.
        expected: Qfi,
        /// The packet's.
        found: Qfi,
    },
    /// A downlink G-PDU without PDU session container (TS 38.415).
    #[error("no PDU session container")]
    NoContainer,
    /// The payload carries no stamp of this run.
    #[error("not a packet of this run")]
    NotOurs,
    /// The stamp names a stream that doesn't exist, or that travels the other way.
    #[error("stream {0:#x} does not come out here")]
    WrongStream(u32),
    /// The stamp's number was not given out yet.
    #[error("sequence number {0} was never sent")]
    NeverSent(u32),
    /// The packet has another length than when it was sent.
    #[error("payload of {found} bytes, sent with {sent}")]
    Resized {
        /// Bytes of payload sent.
        sent: usize,
        /// Bytes of payload received.
        found: usize,
    },
    /// TTL or hop limit is not what forwarding makes of it.
    #[error("TTL or hop limit {found}, sent with {sent}")]
    Hops {
        /// What was sent.
        sent: u8,
        /// What arrived.
        found: u8,
    },
    /// The packet inside differs from what was sent.
    #[error("byte {offset} of the inner packet is {found:#04x}, sent {expected:#04x}")]
    Content {
        /// Offset from the start of the inner IP header.
        offset: usize,
        /// What was sent (TTL and header checksum aside).
        expected: u8,
        /// What arrived.
        found: u8,
    },
}

/// A header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// Ethernet.
    Ethernet,
    /// The tunnel's IP header.
    OuterIp,
    /// The tunnel's UDP header.
    OuterUdp,
    /// GTP-U with its extension headers.
    Gtpu,
    /// The UE's IP header.
    InnerIp,
    /// The UE's UDP header.
    InnerUdp,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::OuterIp => "outer IP",
            Self::OuterUdp => "outer UDP",
            Self::Gtpu => "GTP-U",
            Self::InnerIp => "inner IP",
            Self::InnerUdp => "inner UDP",
        })
    }
}

/// The Ethernet header of an untagged frame, and what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ethernet<'a> {
    pub(crate) destination: MacAddr,
    pub(crate) source: MacAddr,
    pub(crate) ethertype: u16,
    pub(crate) payload: &'a [u8],
}

pub(crate) fn ethernet(frame: &[u8]) -> Result<Ethernet<'_>, Fault> {
    let short = Fault::Truncated { layer: Layer::Ethernet, need: ETHERNET, have: frame.len() };
    let (&[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, high, low], payload) =
        frame.split_first_chunk::<ETHERNET>().ok_or(short)?;
    Ok(Ethernet {
        destination: MacAddr([d0, d1, d2, d3, d4, d5]),
        source: MacAddr([s0, s1, s2, s3, s4, s5]),
        ethertype: u16::from_be_bytes([high, low]),
        payload,
    })
}

/// An IP packet without options or extension headers that carries UDP: what we send, and what a UPF should wrap it in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpUdp<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) hops: u8,
    pub(crate) destination_port: u16,
    /// The whole IP packet, padding cut off.
    pub(crate) packet: &'a [u8],
    pub(crate) udp_at: usize,
    /// What the UDP header carries.
    pub(crate) payload: &'a [u8],
}

impl IpUdp<'_> {
    /// Verifies the IPv4 header checksum and the UDP checksum; the latter may be absent over IPv4, and over IPv6 for
    /// a tunnel's own header (RFC 6935).
    pub(crate) fn check_sums(&self, ip: Layer, udp: Layer) -> Result<(), Fault> {
        let (header, datagram) = self.packet.split_at_checked(self.udp_at).unwrap_or_default();
        let pseudo = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                if fold(sum_bytes(header)) != 0xffff {
                    return Err(Fault::Checksum { layer: ip });
                }
                sum_bytes(&source.octets()) + sum_bytes(&destination.octets())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                sum_v6(source.to_bits()) + sum_v6(destination.to_bits())
            }
            _ => return Err(Fault::Checksum { layer: ip }),
        };
        let absent = datagram.get(6..8) == Some(&[0, 0]);
        if absent && (self.source.is_ipv4() || udp == Layer::OuterUdp) {
            return Ok(());
        }
        let sum = pseudo + 17 + datagram.len() as u32 + sum_bytes(datagram);
        if absent || fold(sum) != 0xffff { Err(Fault::Checksum { layer: udp }) } else { Ok(()) }
    }
}

/// Reads IP and UDP. `padding`: bytes may follow the packet (an Ethernet frame's minimum).
pub(crate) fn ip_udp(bytes: &[u8], ip: Layer, udp: Layer, padding: bool) -> Result<IpUdp<'_>, Fault> {
    let truncated = |layer, need| Fault::Truncated { layer, need, have: bytes.len() };
    let field = |layer, field, found| Err(Fault::Field { layer, field, found });
    let version = bytes.first().ok_or(truncated(ip, 20))? >> 4;
    let (source, destination, hops, said, udp_at) = match version {
        4 => {
            let header: &[u8; 20] = bytes.first_chunk().ok_or(truncated(ip, 20))?;
            let &[first, _, l0, l1, _, _, f0, f1, hops, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
                header;
            if first != 0x45 {
                return field(ip, "version and header length", u32::from(first));
            }
            let fragment = u16::from_be_bytes([f0, f1]);
            if fragment & 0xbfff != 0 {
                return field(ip, "fragment field", u32::from(fragment));
            }
            if protocol != 17 {
                return field(ip, "protocol", u32::from(protocol));
            }
            let source = Ipv4Addr::new(s0, s1, s2, s3);
            let destination = Ipv4Addr::new(d0, d1, d2, d3);
            let said = usize::from(u16::from_be_bytes([l0, l1]));
            (IpAddr::V4(source), IpAddr::V4(destination), hops, said, 20)
        }
        6 => {
            let header: &[u8; 40] = bytes.first_chunk().ok_or(truncated(ip, 40))?;
            let &[_, _, _, _, l0, l1, next, hops, ..] = header;
            if next != 17 {
                return field(ip, "next header", u32::from(next));
            }
            let address = |at: usize| {
                let octets =
                    header.get(at..).and_then(|rest| rest.first_chunk::<16>()).copied().unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            (address(8), address(24), hops, 40 + usize::from(u16::from_be_bytes([l0, l1])), 40)
        }
        _ => return field(ip, "version", u32::from(version)),
    };
    let packet = bytes.get(..said).ok_or(truncated(ip, said))?;
    if !padding && packet.len() != bytes.len() {
        return Err(Fault::Length { layer: ip, said, have: bytes.len() });
    }
    let datagram = packet.get(udp_at..).ok_or(truncated(udp, udp_at))?;
    let short = Fault::Truncated { layer: udp, need: 8, have: datagram.len() };
    let (&[_, _, d0, d1, l0, l1, _, _], payload) = datagram.split_first_chunk::<8>().ok_or(short)?;
    let said = usize::from(u16::from_be_bytes([l0, l1]));
    if said != datagram.len() {
        return Err(Fault::Length { layer: udp, said, have: datagram.len() });
    }
    Ok(IpUdp {
        source,
        destination,
        hops,
        destination_port: u16::from_be_bytes([d0, d1]),
        packet,
        udp_at,
        payload,
    })
}

/// A downlink G-PDU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunnelled<'a> {
    pub(crate) teid: Teid,
    pub(crate) qfi: Qfi,
    pub(crate) inner: &'a [u8],
}

/// Reads a G-PDU (TS 29.281 §5.1) with a downlink PDU session container (TS 38.415 §5.5.2.1); any other extension
/// header is a fault, since a UPF has none to send to a gNB.
pub(crate) fn gtpu<'a>(outer: &IpUdp<'a>) -> Result<Tunnelled<'a>, Fault> {
    let field = |field, found| Err(Fault::Field { layer: Layer::Gtpu, field, found });
    if outer.destination_port != GTPU_PORT {
        return Err(Fault::Field {
            layer: Layer::OuterUdp,
            field: "destination port",
            found: u32::from(outer.destination_port),
        });
    }
    let bytes = outer.payload;
    let truncated = |need| Fault::Truncated { layer: Layer::Gtpu, need, have: bytes.len() };
    let (&[flags, kind, l0, l1, t0, t1, t2, t3], rest) =
        bytes.split_first_chunk::<8>().ok_or(truncated(8))?;
    // Version 1, protocol type GTP, spare bit zero; an N-PDU number has no meaning on N3.
    if flags & 0xf9 != 0x30 {
        return field("version and flags", u32::from(flags));
    }
    if kind != 255 {
        return field("message type", u32::from(kind));
    }
    let said = usize::from(u16::from_be_bytes([l0, l1]));
    if said != rest.len() {
        return Err(Fault::Length { layer: Layer::Gtpu, said, have: rest.len() });
    }
    if flags & 4 == 0 {
        return Err(Fault::NoContainer);
    }
    let (&[_, _, _, mut next], mut rest) = rest.split_first_chunk::<4>().ok_or(truncated(12))?;
    let mut qfi = None;
    while next != 0 {
        if next != 0x85 || qfi.is_some() {
            return field("extension header type", u32::from(next));
        }
        let words = rest.first().copied().unwrap_or(0);
        let len = usize::from(words) * 4;
        let (extension, after) =
            rest.split_at_checked(len).ok_or(truncated(bytes.len() - rest.len() + len))?;
        let &[_, pdu_type, octet, .., last] = extension else {
            return field("extension header length", u32::from(words));
        };
        if pdu_type >> 4 != 0 {
            return field("PDU type of the container", u32::from(pdu_type >> 4));
        }
        // QMP, SNP, MSNP and PPP announce fields for which one word has no room.
        if words == 1 && (pdu_type & 0x0f != 0 || octet & 0x80 != 0) {
            return field("length of the container", 1);
        }
        qfi = Some(Qfi::from_wire(octet));
        (next, rest) = (last, after);
    }
    let teid = Teid(u32::from_be_bytes([t0, t1, t2, t3]));
    Ok(Tunnelled { teid, qfi: qfi.ok_or(Fault::NoContainer)?, inner: rest })
}
