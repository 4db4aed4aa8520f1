//! Frames as gNBs, UEs and a data network send them.

use crate::requests::{N3, N3_IPV6};
use crate::user_plane;
use packet::arp::{self, Operation};
use packet::icmpv4::Echo;
use packet::ipv4::Ipv4Header;
use packet::ndp::{self, NeighbourAdvertisement};
use packet::pdu_session::{Downlink, Timestamps, Uplink};
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{Fragment, GTP_U_PORT, IpProtocol, MacAddr, PacketBuilder, PduSession, Qfi, Teid};
use std::net::IpAddr;

/// The UPF's port towards gNBs.
pub const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);
/// The UPF's port towards the data network.
pub const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 6]);
/// The gNB's.
pub const GNB_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 3]);
/// The data network's router.
pub const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 6]);

/// What a user sends.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// A datagram.
    Udp(u16, u16, &'a [u8]),
    /// A segment.
    Tcp(u16, u16, &'a [u8]),
    /// A ping.
    Echo(&'a [u8]),
}

/// A user's packet. Both addresses are of one family.
pub fn user_packet(from: IpAddr, to: IpAddr, payload: Payload<'_>) -> Vec<u8> {
    let builder = PacketBuilder::new().ip(from, to);
    match payload {
        Payload::Udp(source, destination, data) => builder.udp(source, destination).build(data),
        Payload::Tcp(source_port, destination_port, data) => {
            let header =
                TcpHeader { source_port, destination_port, flags: TcpFlags(2), ..TcpHeader::default() };
            builder.tcp(header).build(data)
        }
        Payload::Echo(data) => {
            let echo = Echo { request: true, identifier: 7, sequence: 1 };
            if from.is_ipv4() {
                builder.icmpv4_echo(echo).build(data)
            } else {
                builder.icmpv6_echo(echo).build(data)
            }
        }
    }
}

/// The user's packet as it comes from a gNB.
pub fn uplink(from: IpAddr, to: IpAddr, teid: Teid, container: Option<PduSession>, inner: &[u8]) -> Vec<u8> {
    tunnelled(from, to, teid, container.as_ref()).build(inner)
}

fn tunnelled(from: IpAddr, to: IpAddr, teid: Teid, container: Option<&PduSession>) -> PacketBuilder {
    let builder =
        PacketBuilder::new().ethernet(N3_MAC, GNB_MAC).ip(from, to).udp(GTP_U_PORT, GTP_U_PORT).gtpu(teid);
    match container {
        Some(container) => builder.pdu_session(container),
        None => builder,
    }
}

/// The user's packet as it comes from the data network.
pub fn downlink(inner: &[u8]) -> Vec<u8> {
    ethernet(N6_MAC, ROUTER_MAC, inner)
}

/// An IP packet on a link.
pub fn ethernet(to: MacAddr, from: MacAddr, packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] =
        if packet.first().is_some_and(|octet| octet >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] };
    [&to.0[..], &from.0, &kind, packet].concat()
}

/// The `n`th piece of a datagram of which more follows. Both addresses are of one family.
pub fn piece(from: IpAddr, to: IpAddr, identification: u32, n: u16) -> Vec<u8> {
    let data = [0x5a; 16];
    match (from, to) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = Ipv4Header {
                source,
                destination,
                protocol: IpProtocol::UDP,
                identification: identification as u16,
                more_fragments: true,
                fragment_offset: 2 * n,
                ..Ipv4Header::default()
            };
            PacketBuilder::new().ipv4_header(header).build(&data)
        }
        _ => {
            let fragment = Fragment { offset: 16 * u32::from(n), more: true, identification };
            PacketBuilder::new().ip(from, to).ipv6_fragment(fragment).build(&data)
        }
    }
}

/// Why somebody says where somebody is.
#[derive(Clone, Copy, Debug)]
pub enum Speech {
    /// We are believed to have asked.
    Answer,
    /// All are to know.
    Unasked,
    /// For an answer of ours.
    Question,
}

/// "`address` is at `mac`", as it comes to a port, in the way of its family (RFC 826, RFC 4861).
pub fn neighbour(port: u16, address: IpAddr, mac: MacAddr, speech: Speech) -> Vec<u8> {
    let (ours, own4, own6) =
        if port == 0 { (N3_MAC, N3, N3_IPV6) } else { (N6_MAC, user_plane::N6, user_plane::N6_IPV6) };
    match address {
        IpAddr::V4(address) => {
            let (operation, target) = match speech {
                Speech::Answer => (Operation::Reply, (ours, own4)),
                Speech::Unasked => (Operation::Request, (MacAddr::ZERO, address)),
                Speech::Question => (Operation::Request, (MacAddr::ZERO, own4)),
            };
            let mut message = [0; arp::LEN];
            arp::emit(&mut message, operation, (mac, address), target);
            [&ours.0[..], &mac.0, &[8, 6], &message].concat()
        }
        IpAddr::V6(address) => {
            let mut message = Vec::new();
            match speech {
                Speech::Question => ndp::emit_neighbour_probe(&mut message, address, mac, own6),
                _ => {
                    let solicited = matches!(speech, Speech::Answer);
                    let told =
                        NeighbourAdvertisement { target: address, router: false, solicited, replace: true };
                    ndp::emit_neighbour_advertisement(&mut message, own6, mac, &told);
                }
            }
            ethernet(ours, mac, &message)
        }
    }
}

/// A signalling message to our N3 address.
pub fn signalling(from: IpAddr, to: IpAddr, message: &[u8]) -> Vec<u8> {
    PacketBuilder::new().ethernet(N3_MAC, GNB_MAC).ip(from, to).udp(GTP_U_PORT, GTP_U_PORT).build(message)
}

/// The shortest uplink container with this QFI.
pub fn uplink_container(qfi: u8) -> PduSession {
    PduSession::Uplink(Uplink { qfi: Qfi::from_wire(qfi), ..Uplink::default() })
}

/// Containers of both directions, short and long.
pub fn containers() -> Vec<PduSession> {
    let qfi = Qfi::from_wire(9);
    vec![
        uplink_container(9),
        PduSession::Downlink(Downlink { qfi, rqi: true, ppi: Some(3), ..Downlink::default() }),
        PduSession::Uplink(Uplink {
            qfi,
            times: Some(Timestamps { downlink_sent: 1, downlink_received: 2, uplink_sent: 3 }),
            downlink_delay: Some(4),
            uplink_delay: Some(5),
            sequence: Some(6),
            n3n9_delay: Some(7),
            d1_pdcp_delay: None,
        }),
        PduSession::Downlink(Downlink {
            qfi,
            sending_time: Some(8),
            sequence: Some(9),
            ..Downlink::default()
        }),
    ]
}
