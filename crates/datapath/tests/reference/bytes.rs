//! What is in a packet, octet by octet, and what may be done to it.

use packet::{Ipv4View, Ipv6View};
use session::rules::*;
use std::net::IpAddr;

/// What filters look at.
pub(super) struct Five {
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    ports: Option<(u16, u16)>,
    tos: u8,
}

impl Five {
    /// Of a packet without options, extension headers or fragments. `None`: it lacks ports that it should have.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let (protocol, transport) =
            if packet[0] >> 4 == 4 { (packet[9], &packet[20..]) } else { (packet[6], &packet[40..]) };
        let mut ports = None;
        if matches!(protocol, 6 | 17) {
            let [s0, s1, d0, d1] = *transport.first_chunk::<4>()?;
            ports = Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])));
        }
        let (source, destination) = addresses(packet);
        Some(Self { protocol, source, destination, ports, tos: tos(packet) })
    }
}

pub(super) fn filter_matches(filter: &SdfFilter, ip: &Five) -> bool {
    let ranges = |ranges: &[(u16, u16)], port: Option<u16>| {
        ranges.is_empty() || port.is_some_and(|port| ranges.iter().any(|r| r.0 <= port && port <= r.1))
    };
    filter.protocol.is_none_or(|p| p == ip.protocol)
        && filter.source.is_none_or(|p| p.contains(ip.source))
        && filter.destination.is_none_or(|p| p.contains(ip.destination))
        && ranges(&filter.source_ports, ip.ports.map(|p| p.0))
        && ranges(&filter.destination_ports, ip.ports.map(|p| p.1))
        && filter.tos.is_none_or(|(value, mask)| ip.tos & mask == value & mask)
}

/// Whether a rule is about nothing but groups.
pub(super) fn is_for_link(pdr: &Pdr) -> bool {
    let multicast = |prefix: Prefix| matches!(prefix, Prefix::V6(net) if net.network().is_multicast());
    !pdr.filters.is_empty() && pdr.filters.iter().all(|filter| filter.destination.is_some_and(multicast))
}

/// Whether a destination begins as those do that never leave a link.
pub(super) fn may_stay_on_link(destination: IpAddr) -> bool {
    matches!(destination, IpAddr::V6(address) if address.octets()[0] >= 0xfe)
}

pub(super) fn addresses(packet: &[u8]) -> (IpAddr, IpAddr) {
    if packet[0] >> 4 == 4 {
        let ip = Ipv4View::parse(packet).unwrap();
        (ip.source().into(), ip.destination().into())
    } else {
        let ip = Ipv6View::parse(packet).unwrap();
        (ip.source().into(), ip.destination().into())
    }
}

/// Addresses that no host has and no router sends on.
pub(super) fn is_no_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            // RFC 1122 §3.2.1.3 (a) and (b), (g), (c); class D; RFC 6890 §2.2.2, 240.0.0.0/4.
            let [first, ..] = address.octets();
            first == 0
                || address.is_loopback()
                || address.is_broadcast()
                || address.is_multicast()
                || first >= 240
        }
        IpAddr::V6(address) => {
            // RFC 4291 §2.5.2, §2.5.3, §2.7, §2.5.6, §2.5.5.
            address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || address.segments()[0] & 0xffc0 == 0xfe80
                || address.to_ipv4().is_some()
        }
    }
}

pub(super) fn ttl(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 { packet[8] } else { packet[7] }
}

pub(super) fn tos(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 { packet[1] } else { packet[0] << 4 | packet[1] >> 4 }
}

/// AF11, AF21, AF31 and AF41 become AF12, AF22, AF32 and AF42 (RFC 2597).
pub(super) fn lesser(tos: u8) -> u8 {
    match tos >> 2 {
        dscp @ (10 | 18 | 26 | 34) => (dscp + 2) << 2 | tos & 3,
        _ => tos,
    }
}

/// The packet without what is behind it.
pub(super) fn whole(data: &[u8]) -> Vec<u8> {
    let length = if data[0] >> 4 == 4 {
        Ipv4View::parse(data).unwrap().total_len()
    } else {
        Ipv6View::parse(data).unwrap().total_len()
    };
    data[..length].to_vec()
}

/// Fragments of a packet without options.
pub(super) fn cut(packet: &[u8], room: usize) -> Vec<Vec<u8>> {
    let step = (room - 20) / 8 * 8;
    let (header, payload) = packet.split_at(20);
    let chunks: Vec<&[u8]> = payload.chunks(step).collect();
    let count = chunks.len();
    let fragment = |(i, chunk): (usize, &&[u8])| {
        let mut fragment = header.to_vec();
        fragment.extend_from_slice(chunk);
        let total = fragment.len() as u16;
        fragment[2..4].copy_from_slice(&total.to_be_bytes());
        let more = if i + 1 < count { 0x2000 } else { 0 };
        fragment[6..8].copy_from_slice(&((i * step / 8) as u16 | more).to_be_bytes());
        fragment[10..12].fill(0);
        let sum = packet::checksum::ipv4_header(&fragment[..20]);
        fragment[10..12].copy_from_slice(&sum.to_be_bytes());
        fragment
    };
    chunks.iter().enumerate().map(fragment).collect()
}
