//! Changing addresses and ports of a packet in place: network address translation, one endpoint at a time.
//!
//! Every function takes a packet from its IP header on, and carries the change into the header checksum and into the
//! checksum of TCP, UDP, UDP-Lite or ICMPv6 (which sum the addresses) by RFC 1624. A later fragment has no transport
//! header: there only the IP header changes. Encapsulated packets inside are not looked into.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum;
use crate::flow::Ports;
use crate::ipv4::{self, Ipv4View};
use crate::ipv6::{self, Ipv6View};
use crate::wire::{get16, put, put16};
use crate::{IpProtocol, Layer, Malformed};

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Source address or port.
    Source,
    /// Destination address or port.
    Destination,
}

/// Where the transport header of this packet is, if it has one: protocol and offset.
fn transport(packet: &[u8]) -> Result<Option<(IpProtocol, usize)>, Malformed> {
    match packet.first().map(|v| v >> 4) {
        Some(4) => {
            let ip = Ipv4View::parse(packet)?;
            let first = ip.fragment().is_none_or(crate::Fragment::is_first);
            Ok(first.then(|| (ip.protocol(), ip.header_len())))
        }
        Some(6) => {
            let upper = Ipv6View::parse(packet)?.upper_layer()?;
            let first = upper.fragment.is_none_or(crate::Fragment::is_first);
            Ok(first.then_some((upper.protocol, ipv6::HEADER_LEN + upper.extensions_len)))
        }
        Some(_) => Err(Malformed::Version(Layer::Ipv4)),
        None => Err(Malformed::Truncated(Layer::Ipv4)),
    }
}

/// Where in its header a protocol has its Internet checksum. SCTP's is a CRC over the packet without addresses.
const fn checksum_offset(protocol: IpProtocol) -> Option<usize> {
    match protocol {
        IpProtocol::TCP => Some(16),
        IpProtocol::UDP | IpProtocol::UDP_LITE | IpProtocol::DCCP => Some(6),
        IpProtocol::ICMPV6 | IpProtocol::ICMPV4 => Some(2),
        _ => None,
    }
}

/// Whether the checksum covers the addresses.
const fn sums_addresses(protocol: IpProtocol) -> bool {
    !matches!(protocol, IpProtocol::ICMPV4)
}

/// Applies `update` to the transport checksum at `at`.
fn fix(packet: &mut [u8], protocol: IpProtocol, at: usize, update: impl Fn(u16) -> u16) {
    let Some(at) = checksum_offset(protocol).map(|o| at + o) else { return };
    let Some(before) = get16(packet, at) else { return };
    let after = update(before);
    let after = if protocol == IpProtocol::UDP { checksum::keep_udp_rules(before, after) } else { after };
    put16(packet, at, after);
}

/// Sets an address of an IPv4 packet.
pub fn set_ipv4(packet: &mut [u8], side: Side, address: Ipv4Addr) -> Result<(), Malformed> {
    let ip = Ipv4View::parse(packet)?;
    let (at, old) = match side {
        Side::Source => (12, ip.source()),
        Side::Destination => (16, ip.destination()),
    };
    let header_sum = checksum::update_u32(ip.checksum(), old.to_bits(), address.to_bits());
    let transport = transport(packet)?;
    put(packet, at, &address.octets());
    put16(packet, 10, header_sum);
    if let Some((protocol, offset)) = transport.filter(|t| sums_addresses(t.0)) {
        fix(packet, protocol, offset, |c| checksum::update_u32(c, old.to_bits(), address.to_bits()));
    }
    Ok(())
}

/// Sets an address of an IPv6 packet. A destination that a Routing header will replace is not in the transport
/// checksum (RFC 8200 §8.1), and is refused.
pub fn set_ipv6(packet: &mut [u8], side: Side, address: Ipv6Addr) -> Result<(), Malformed> {
    let ip = Ipv6View::parse(packet)?;
    let (at, old) = match side {
        Side::Source => (8, ip.source()),
        Side::Destination => (24, ip.destination()),
    };
    if side == Side::Destination && ip.upper_layer()?.segments_left {
        return Err(Malformed::Field(Layer::Ipv6Extension));
    }
    let transport = transport(packet)?;
    put(packet, at, &address.octets());
    if let Some((protocol, offset)) = transport.filter(|t| sums_addresses(t.0)) {
        fix(packet, protocol, offset, |c| checksum::update_u128(c, old.to_bits(), address.to_bits()));
    }
    Ok(())
}

/// Sets a port, or the identifier of an ICMP echo (either side), which plays the part of one in NAT (RFC 5508 §3.1).
/// Says whether it did: not without such a field, and not for SCTP, whose CRC covers the ports and the whole packet (its
/// endpoints are told apart by address and verification tag instead, RFC 4960 §8.5).
pub fn set_port(packet: &mut [u8], side: Side, port: u16) -> Result<bool, Malformed> {
    let Some((protocol, offset)) = transport(packet)? else { return Ok(false) };
    let at = match (protocol, side) {
        (IpProtocol::SCTP, _) => return Ok(false),
        (p, Side::Source) if p.has_ports() => offset,
        (p, Side::Destination) if p.has_ports() => offset + 2,
        (IpProtocol::ICMPV4, _) if matches!(packet.get(offset), Some(0 | 8)) => offset + 4,
        (IpProtocol::ICMPV6, _) if matches!(packet.get(offset), Some(128 | 129)) => offset + 4,
        _ => return Ok(false),
    };
    let Some(old) = get16(packet, at) else { return Err(Malformed::Truncated(Layer::Transport)) };
    put16(packet, at, port);
    fix(packet, protocol, offset, |c| checksum::update_u16(c, old, port));
    Ok(true)
}

/// The ports of a packet, or the identifier of an ICMP echo as both: what NAT keeps in its table.
pub fn ports(packet: &[u8]) -> Result<Option<Ports>, Malformed> {
    let Some((protocol, offset)) = transport(packet)? else { return Ok(None) };
    let (source, destination) = match protocol {
        p if p.has_ports() => (offset, offset + 2),
        IpProtocol::ICMPV4 if matches!(packet.get(offset), Some(0 | 8)) => (offset + 4, offset + 4),
        IpProtocol::ICMPV6 if matches!(packet.get(offset), Some(128 | 129)) => (offset + 4, offset + 4),
        _ => return Ok(None),
    };
    match (get16(packet, source), get16(packet, destination)) {
        (Some(source), Some(destination)) => Ok(Some(Ports { source, destination })),
        _ => Err(Malformed::Truncated(Layer::Transport)),
    }
}

/// Writes the ToS octet (IPv4) or traffic class (IPv6), DSCP and ECN together (RFC 2474 §3, RFC 3168 §5).
pub fn set_tos(packet: &mut [u8], tos: u8) -> Result<(), Malformed> {
    let v6 = packet.first().is_some_and(|v| v >> 4 == 6);
    let before = get16(packet, 0).ok_or(Malformed::Truncated(Layer::Ipv4))?;
    if v6 {
        Ipv6View::parse(packet)?;
        put16(packet, 0, before & 0xf00f | u16::from(tos) << 4);
    } else {
        let checksum = Ipv4View::parse(packet)?.checksum();
        let after = before & 0xff00 | u16::from(tos);
        put16(packet, 0, after);
        put16(packet, 10, checksum::update_u16(checksum, before, after));
    }
    Ok(())
}

/// Takes one hop off a packet of either version; `None`, and nothing changed, if it may go no further.
#[inline]
pub fn decrement_ttl(packet: &mut [u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => ipv4::decrement_ttl(packet.first_chunk_mut()?),
        6 => ipv6::decrement_hop_limit(packet.first_chunk_mut()?),
        _ => None,
    }
}
