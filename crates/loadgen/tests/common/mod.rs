//! A UPF of a hundred lines that does everything right, built with crate `packet`: what the generator sends must be
//! readable to it, and what it makes must satisfy the verifier.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use loadgen::facts::{DataNetwork, Network, PduType, SessionFacts, SessionMix, UePools};
use loadgen::imix::Family;
use packet::ethernet::{self, EthernetView};
use packet::gtpu::{self, GtpuView, MessageType};
use packet::ipv4::{self, Ipv4Header, Ipv4View};
use packet::ipv6::{self, Ipv6Header, Ipv6View};
use packet::pdu_session::PduSession;
use packet::udp::{self, UdpView};
use packet::{EtherType, IpProtocol};
use packet::{MacAddr, Qfi, Teid};
use pfcp::Seid;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const UPF_N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
pub const UPF_N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);

pub fn network(outer_v6: bool) -> Network {
    let first: IpAddr =
        if outer_v6 { "2001:db8:3::10".parse().unwrap() } else { "192.0.2.10".parse().unwrap() };
    let gateways = ["198.51.100.1".parse().unwrap(), "2001:db8:6::1".parse().unwrap()];
    let servers = (Ipv4Addr::new(203, 0, 113, 1), "2001:db8:dd::1".parse().unwrap());
    let mut network = Network::new(first, 4, &gateways, servers);
    network.upf_n3_mac = UPF_N3_MAC;
    network.upf_n6_mac = UPF_N6_MAC;
    network.dn = DataNetwork { servers: 5, ..network.dn };
    network
}

pub fn facts(network: &Network, mix: SessionMix, sessions: u32) -> Vec<SessionFacts> {
    let pools = UePools::default();
    let upf_n3 = match network.gnbs[0].address {
        IpAddr::V4(_) => "192.0.2.1".parse().unwrap(),
        IpAddr::V6(_) => "2001:db8:3::1".parse().unwrap(),
    };
    (0..sessions)
        .map(|index| {
            let kind = mix.pdu_type(index);
            SessionFacts {
                cp_seid: Seid(u64::from(index) + 1),
                up_seid: Seid(u64::from(index) + 0x1_0000_0001),
                upf_n3,
                ul_teid: Teid(0x0100_0000 + index),
                gnb: network.gnbs[index as usize % network.gnbs.len()].address,
                dl_teid: Teid(0xd000_0000 + index),
                qfi: Qfi::from_wire(index as u8 % 63 + 1),
                ue_ipv4: if kind.has(Family::V4) { pools.ipv4_of(index) } else { None },
                ue_ipv6: if kind.has(Family::V6) { pools.ipv6_of(index) } else { None },
            }
        })
        .collect()
}

pub const ALL_TYPES: [PduType; 3] = [PduType::Ipv4, PduType::Ipv6, PduType::Ipv4v6];

pub struct PerfectUpf {
    network: Network,
    by_teid: HashMap<(IpAddr, u32), SessionFacts>,
    by_address: HashMap<IpAddr, SessionFacts>,
}

impl PerfectUpf {
    pub fn new(network: &Network, facts: &[SessionFacts]) -> Self {
        let mut by_address = HashMap::new();
        for facts in facts {
            if let Some(address) = facts.ue_ipv4 {
                by_address.insert(IpAddr::V4(address), facts.clone());
            }
            if let Some(address) = facts.ue_ipv6_address() {
                by_address.insert(IpAddr::V6(address), facts.clone());
            }
        }
        let by_teid = facts.iter().map(|facts| ((facts.upf_n3, facts.ul_teid.0), facts.clone())).collect();
        Self { network: network.clone(), by_teid, by_address }
    }

    /// N3 to N6. Panics on anything that a gNB may not send.
    pub fn uplink(&self, frame: &[u8]) -> Vec<u8> {
        let ethernet = EthernetView::parse(frame).unwrap();
        assert_eq!(ethernet.destination(), UPF_N3_MAC);
        let (source, destination, datagram, pseudo) = ip(ethernet.ether_type(), ethernet.payload());
        let udp = UdpView::parse(datagram).unwrap();
        assert!(udp.checksum_ok(pseudo));
        assert_eq!((udp.destination_port(), udp.len()), (2152, datagram.len()));
        let gtpu = GtpuView::parse(udp.payload()).unwrap();
        assert_eq!(gtpu.message_type(), MessageType::G_PDU);
        assert_eq!(gtpu.header_len() + gtpu.payload().len(), udp.payload().len());
        let facts = &self.by_teid[&(destination, gtpu.teid().0)];
        assert_eq!(facts.gnb, source);
        let Some(PduSession::Uplink(container)) = gtpu.pdu_session().unwrap() else {
            panic!("no UL container")
        };
        assert_eq!(container.qfi, facts.qfi);

        let mut inner = gtpu.payload().to_vec();
        let (kind, inner_source) = forward(&mut inner);
        assert!(self.by_address[&inner_source] == *facts);
        let mut out = vec![0; 14];
        ethernet::emit_header(out.first_chunk_mut().unwrap(), self.network.dn.mac, UPF_N6_MAC, kind);
        out.extend(inner);
        out
    }

    /// N6 to N3.
    pub fn downlink(&self, frame: &[u8]) -> Vec<u8> {
        let ethernet = EthernetView::parse(frame).unwrap();
        assert_eq!((ethernet.destination(), ethernet.source()), (UPF_N6_MAC, self.network.dn.mac));
        let (_, destination, ..) = ip(ethernet.ether_type(), ethernet.payload());
        let facts = &self.by_address[&destination];
        let mut inner = ethernet.payload().to_vec();
        forward(&mut inner);

        let gnb_mac = self.network.gnbs.iter().find(|gnb| gnb.address == facts.gnb).unwrap().mac;
        let mut header = [0; gtpu::PSC_HEADER_LEN];
        gtpu::emit_gpdu_downlink(&mut header, facts.dl_teid, facts.qfi, false, inner.len());
        let mut datagram = vec![0; udp::HEADER_LEN];
        udp::emit_header(datagram.first_chunk_mut().unwrap(), 2152, 2152, header.len() + inner.len());
        datagram.extend(header);
        datagram.extend(inner);
        let mut out = vec![0; 14];
        match (facts.upf_n3, facts.gnb) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ethernet::emit_header(out.first_chunk_mut().unwrap(), gnb_mac, UPF_N3_MAC, EtherType::IPV4);
                let mut ip = [0; ipv4::HEADER_LEN];
                ipv4::emit_header(
                    &mut ip,
                    &Ipv4Header { source, destination, ..Ipv4Header::default() },
                    datagram.len(),
                );
                out.extend(ip);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ethernet::emit_header(out.first_chunk_mut().unwrap(), gnb_mac, UPF_N3_MAC, EtherType::IPV6);
                let mut ip = [0; ipv6::HEADER_LEN];
                ipv6::emit_header(
                    &mut ip,
                    &Ipv6Header { source, destination, ..Ipv6Header::default() },
                    datagram.len(),
                );
                let pseudo = Ipv6View::parse(&[&ip[..], &datagram].concat())
                    .unwrap()
                    .pseudo_header(IpProtocol::UDP, datagram.len());
                udp::fill_checksum(&mut datagram, pseudo);
                out.extend(ip);
            }
            _ => panic!("mixed tunnel"),
        }
        out.extend(datagram);
        out
    }
}

/// Whether a frame on N3 is a user's packet in an undamaged tunnel. On a wire that damages frames a gNB also answers what it took for
/// something else; a packet that should have been one of these is missed by the account of packets.
pub fn is_g_pdu(frame: &[u8]) -> bool {
    let Some((ethernet, packet)) = frame.split_first_chunk::<14>() else { return false };
    let kind = EtherType(u16::from_be_bytes([ethernet[12], ethernet[13]]));
    let intact = match kind {
        EtherType::IPV4 => Ipv4View::parse(packet).is_ok_and(|ip| {
            ip.checksum_ok() && ip.protocol() == IpProtocol::UDP && ip.total_len() == packet.len()
        }),
        EtherType::IPV6 => Ipv6View::parse(packet)
            .is_ok_and(|ip| ip.next_header() == IpProtocol::UDP && ip.total_len() == packet.len()),
        _ => false,
    };
    let header = if kind == EtherType::IPV4 { ipv4::HEADER_LEN } else { ipv6::HEADER_LEN };
    intact && packet.get(header + udp::HEADER_LEN + 1) == Some(&0xff)
}

fn ip(kind: EtherType, bytes: &[u8]) -> (IpAddr, IpAddr, &[u8], packet::checksum::Sum) {
    if kind == EtherType::IPV4 {
        let ip = Ipv4View::parse(bytes).unwrap();
        assert!(ip.checksum_ok() && ip.protocol() == IpProtocol::UDP && ip.total_len() == bytes.len());
        (ip.source().into(), ip.destination().into(), ip.payload(), ip.pseudo_header())
    } else {
        assert_eq!(kind, EtherType::IPV6);
        let ip = Ipv6View::parse(bytes).unwrap();
        assert!(ip.next_header() == IpProtocol::UDP && ip.total_len() == bytes.len());
        let pseudo = ip.pseudo_header(IpProtocol::UDP, ip.payload_len());
        (ip.source().into(), ip.destination().into(), ip.payload(), pseudo)
    }
}

/// Verifies an inner packet with its UDP checksum and takes one hop off.
fn forward(inner: &mut [u8]) -> (EtherType, IpAddr) {
    let kind = if inner[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
    let (source, _, datagram, pseudo) = ip(kind, inner);
    let udp = UdpView::parse(datagram).unwrap();
    assert!(udp.checksum() != 0 && udp.checksum_ok(pseudo));
    if kind == EtherType::IPV4 {
        ipv4::decrement_ttl(inner.first_chunk_mut().unwrap()).unwrap();
    } else {
        ipv6::decrement_hop_limit(inner.first_chunk_mut().unwrap()).unwrap();
    }
    (kind, source)
}

pub fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}
