//! What the NIC in memory reads of a frame, and how it rewrites one: the two halves of a flow rule in hardware.
//!
//! Written apart from the datapath, and in a plainer way (checksums are computed anew, not adjusted), so that the two can
//! be held against each other.

use crate::frame::Frame;
use crate::offload::{Container, Pattern, TunnelMatch, outer};
use packet::checksum::{Sum, pseudo_v6};
use packet::{GTP_U_PORT, IpProtocol, MacAddr};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A frame that hardware dares to handle, and the most special pattern that it matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// With every field set that the frame has.
    pub pattern: Pattern,
    /// Where the user's packet begins.
    pub inner: usize,
    /// How long it is.
    pub len: usize,
}

impl Facts {
    /// Reads a frame. `None`: it is software's, or nobody's.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let mac = MacAddr(*frame.first_chunk::<6>()?);
        let (vlan, l3) = match frame.get(12..14)? {
            [0x81, 0x00] => (Some(u16::from_be_bytes(*frame.get(14..)?.first_chunk()?) & 0x0fff), 18),
            _ => (None, 14),
        };
        let v6 = match frame.get(l3 - 2..l3)? {
            [0x08, 0x00] => false,
            [0x86, 0xdd] => true,
            _ => return None,
        };
        let outer = Ip::of(frame.get(l3..)?, v6)?;
        let (tunnel, inner, ip) = match g_pdu(&outer) {
            GPdu::None => (None, l3, outer),
            GPdu::Odd => return None,
            GPdu::Packet { teid, container, at } => {
                let at = l3 + outer.header + at;
                let packet = frame.get(at..l3 + outer.len)?;
                let ip = Ip::of(packet, packet.first()? >> 4 == 6)?;
                // Padding behind the user's packet within the tunnel is unheard of.
                if ip.len != packet.len() {
                    return None;
                }
                (Some(TunnelMatch { destination: outer.destination, teid, container }), at, ip)
            }
        };
        let pattern = Pattern {
            mac,
            vlan,
            tunnel,
            v6: ip.v6,
            source: Some(ip.source),
            destination: Some(ip.destination),
            protocol: Some(ip.protocol),
            ports: ip.ports(),
            tos: Some((ip.tos, 0xff)),
        };
        (ip.ttl > 1).then_some(Self { pattern, inner, len: ip.len })
    }
}

struct Ip<'a> {
    v6: bool,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    tos: u8,
    ttl: u8,
    header: usize,
    len: usize,
    payload: &'a [u8],
}

impl<'a> Ip<'a> {
    /// A whole packet without options that isn't a fragment, and whose header checksum is right.
    fn of(packet: &'a [u8], v6: bool) -> Option<Self> {
        if v6 {
            let (header, _) = packet.split_first_chunk::<40>()?;
            let len = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
            let octets = |at: usize| header.get(at..)?.first_chunk::<16>().copied().map(Ipv6Addr::from);
            (header[0] >> 4 == 6).then_some(())?;
            return Some(Self {
                v6,
                source: octets(8)?.into(),
                destination: octets(24)?.into(),
                protocol: header[6],
                tos: header[0] << 4 | header[1] >> 4,
                ttl: header[7],
                header: 40,
                len,
                payload: packet.get(40..len)?,
            });
        }
        let (header, _) = packet.split_first_chunk::<20>()?;
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let octets = |at: usize| header.get(at..)?.first_chunk::<4>().copied().map(Ipv4Addr::from);
        (header[0] == 0x45 && fragment == 0 && Sum::ZERO.bytes(header).is_valid()).then_some(())?;
        Some(Self {
            v6,
            source: octets(12)?.into(),
            destination: octets(16)?.into(),
            protocol: header[9],
            tos: header[1],
            ttl: header[8],
            header: 20,
            len,
            payload: packet.get(20..len)?,
        })
    }

    fn ports(&self) -> Option<(u16, u16)> {
        let (source, rest) = self.payload.split_first_chunk::<2>()?;
        let with_ports = matches!(IpProtocol(self.protocol), IpProtocol::TCP | IpProtocol::UDP);
        let destination = rest.first_chunk::<2>()?;
        with_ports.then(|| (u16::from_be_bytes(*source), u16::from_be_bytes(*destination)))
    }
}

enum GPdu {
    /// Something else.
    None,
    /// GTP-U that hardware leaves alone.
    Odd,
    Packet {
        teid: u32,
        container: Container,
        /// Where the user's packet begins, from the UDP header on.
        at: usize,
    },
}

fn g_pdu(ip: &Ip<'_>) -> GPdu {
    if ip.protocol != 17 || ip.ports().is_none_or(|(_, to)| to != GTP_U_PORT) {
        return GPdu::None;
    }
    let Some((&[_, _, _, _, u0, u1, _, _, flags, kind, g0, g1, t0, t1, t2, t3], rest)) =
        ip.payload.split_first_chunk::<16>()
    else {
        return GPdu::Odd;
    };
    let (udp, gtpu) = (usize::from(u16::from_be_bytes([u0, u1])), usize::from(u16::from_be_bytes([g0, g1])));
    let container = match (flags, rest.first_chunk::<8>()) {
        (0x30, _) => Container::Absent,
        (0x34, Some(&[_, _, _, 0x85, 1, _, qfi, 0])) => Container::Qfi(qfi & 0x3f),
        _ => return GPdu::Odd,
    };
    if kind != 255 || udp != ip.payload.len() || gtpu + 16 != udp {
        return GPdu::Odd;
    }
    GPdu::Packet { teid: u32::from_be_bytes([t0, t1, t2, t3]), container, at: 8 + container.header() }
}

/// One hop less in the packet at `at`.
pub(super) fn decrement_ttl<F: Frame>(frame: &mut F, at: usize, v6: bool) {
    let packet = frame.bytes_mut().get_mut(at..).unwrap_or_default();
    if v6 {
        if let Some([.., limit]) = packet.first_chunk_mut::<8>() {
            *limit -= 1;
        }
    } else if let Some(header) = packet.first_chunk_mut::<20>() {
        header[8] -= 1;
        finish_ipv4(header);
    }
}

fn finish_ipv4(header: &mut [u8; 20]) {
    [header[10], header[11]] = [0, 0];
    [header[10], header[11]] = Sum::ZERO.bytes(header).finish().to_be_bytes();
}

/// Puts headers in front of the frame's content, with lengths and checksums filled in. False, and nothing done: no room.
pub(super) fn encapsulate<F: Frame>(frame: &mut F, headers: &[u8]) -> bool {
    if !frame.prepend(headers.len()) {
        return false;
    }
    let bytes = frame.bytes_mut();
    if let Some(front) = bytes.get_mut(..headers.len()) {
        front.copy_from_slice(headers);
    }
    let Some((l2, v6)) = outer(headers) else { return true };
    let Some(packet) = bytes.get_mut(l2..) else { return true };
    let total = packet.len() as u16;
    let header = if v6 { 40 } else { 20 };
    if let Some(datagram) = packet.get_mut(header..) {
        let length = datagram.len() as u16;
        if let Some([_, _, _, _, l0, l1, c0, c1, _, _, g0, g1]) = datagram.first_chunk_mut::<12>() {
            [*l0, *l1] = length.to_be_bytes();
            [*c0, *c1] = [0, 0];
            // What follows the eight octets that every GTP-U header has.
            [*g0, *g1] = (length - 16).to_be_bytes();
        }
    }
    if v6 {
        let length = total - 40;
        let Some((ip, datagram)) = packet.split_first_chunk_mut::<40>() else { return true };
        [ip[4], ip[5]] = length.to_be_bytes();
        let address = |at: usize| ip.get(at..).and_then(|rest| rest.first_chunk::<16>()).copied();
        if let (Some(source), Some(destination)) = (address(8), address(24)) {
            let pseudo = pseudo_v6(source.into(), destination.into(), IpProtocol::UDP, u32::from(length));
            let sum = pseudo.bytes(datagram).finish_udp();
            if let Some([_, _, _, _, _, _, c0, c1]) = datagram.first_chunk_mut::<8>() {
                [*c0, *c1] = sum.to_be_bytes();
            }
        }
    } else if let Some(ip) = packet.first_chunk_mut::<20>() {
        [ip[2], ip[3]] = total.to_be_bytes();
        finish_ipv4(ip);
    }
    true
}
