//! Frames as gNBs, UEs and a data network send them.

use packet::icmpv4::Echo;
use packet::pdu_session::{Downlink, Timestamps, Uplink};
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{GTP_U_PORT, MacAddr, PacketBuilder, PduSession, Qfi, Teid};
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
    let kind: [u8; 2] =
        if inner.first().is_some_and(|octet| octet >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] };
    [&N6_MAC.0[..], &ROUTER_MAC.0, &kind, inner].concat()
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
