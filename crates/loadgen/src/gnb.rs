//! The radio side on N3: gNB addresses on one wire, and the GTP-U messages that aren't user traffic.

use crate::facts::Network;
use crate::station::{Reaction, Site, Station, frame};
use crate::traffic::{ETHERNET, GTPU_PORT};
use packet::gtpu::{GtpuView, MessageType};
use packet::{EthernetView, IpProtocol, Ipv4View, Ipv6View, UdpView, gtpu_message};
use std::net::IpAddr;

/// GTP-U messages that gNBs received beside G-PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct GtpuCounts {
    /// Echo requests, all answered (TS 29.281 §7.2.1).
    pub echo_requests: u64,
    /// Echo responses.
    pub echo_responses: u64,
    /// Error indications: the UPF did not know a TEID.
    pub error_indications: u64,
    /// End markers: a tunnel was given up for another.
    pub end_markers: u64,
    /// Anything else, supported extension headers notifications included.
    pub others: u64,
}

/// All gNBs of a network.
#[derive(Clone, Debug)]
pub struct GnbSite {
    station: Station,
    counts: GtpuCounts,
}

impl GnbSite {
    /// The gNBs of this network.
    pub fn new(network: &Network) -> Self {
        let own = network.gnbs.iter().map(|gnb| (gnb.address, gnb.mac));
        Self { station: Station::new(own), counts: GtpuCounts::default() }
    }

    /// What they received beside user traffic.
    pub const fn counts(&self) -> &GtpuCounts {
        &self.counts
    }

    fn hear_gtpu(&mut self, bytes: &[u8]) -> Reaction {
        let Ok(ethernet) = EthernetView::parse(bytes) else { return Reaction::NotMine };
        let payload = bytes.get(ETHERNET..).unwrap_or_default();
        let (source, destination, datagram): (IpAddr, IpAddr, &[u8]) =
            match payload.first().map(|first| first >> 4) {
                Some(4) => match Ipv4View::parse(payload) {
                    Ok(ip) if ip.protocol() == IpProtocol::UDP && ip.fragment().is_none() => {
                        (ip.source().into(), ip.destination().into(), ip.payload())
                    }
                    _ => return Reaction::NotMine,
                },
                Some(6) => match Ipv6View::parse(payload) {
                    Ok(ip) if ip.next_header() == IpProtocol::UDP => {
                        (ip.source().into(), ip.destination().into(), ip.payload())
                    }
                    _ => return Reaction::NotMine,
                },
                _ => return Reaction::NotMine,
            };
        let Some(mac) = self.station.own_mac(destination) else { return Reaction::NotMine };
        let Ok(udp) = UdpView::parse(datagram) else { return Reaction::NotMine };
        let (GTPU_PORT, Ok(message)) = (udp.destination_port(), GtpuView::parse(udp.payload())) else {
            return Reaction::NotMine;
        };
        match message.message_type() {
            MessageType::G_PDU => return Reaction::NotMine,
            MessageType::ECHO_REQUEST => {
                self.counts.echo_requests += 1;
                let mut response = Vec::new();
                gtpu_message::emit_echo_response(&mut response, message.sequence().unwrap_or(0));
                let packet = packet::PacketBuilder::new()
                    .ip(destination, source)
                    .udp(GTPU_PORT, udp.source_port())
                    .build(&response);
                return Reaction::Reply(frame(ethernet.source(), mac, ethernet.ether_type(), &packet));
            }
            MessageType::ECHO_RESPONSE => self.counts.echo_responses += 1,
            MessageType::ERROR_INDICATION => self.counts.error_indications += 1,
            MessageType::END_MARKER => self.counts.end_markers += 1,
            _ => self.counts.others += 1,
        }
        Reaction::Heard
    }
}

impl Site for GnbSite {
    fn station(&self) -> &Station {
        &self.station
    }

    fn concerns(bytes: &[u8]) -> bool {
        let octet = |at: usize| bytes.get(at).copied();
        match bytes.get(12..14) {
            Some([0x08, 0x00]) => octet(23) != Some(17) || octet(43) != Some(255),
            Some([0x86, 0xdd]) => octet(20) != Some(17) || octet(63) != Some(255),
            _ => true,
        }
    }

    fn hear(&mut self, bytes: &[u8]) -> Reaction {
        match self.hear_gtpu(bytes) {
            Reaction::NotMine => self.station.hear(bytes),
            reaction => reaction,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use packet::{MacAddr, PacketBuilder, Teid, gtpu};
    use std::net::Ipv4Addr;

    const UPF: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const UPF_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);

    fn site() -> (GnbSite, Ipv4Addr, MacAddr) {
        let servers = (Ipv4Addr::LOCALHOST, std::net::Ipv6Addr::LOCALHOST);
        let network = Network::new(Ipv4Addr::new(192, 0, 2, 10).into(), 2, &[], servers);
        let IpAddr::V4(gnb) = network.gnbs[1].address else { panic!() };
        (GnbSite::new(&network), gnb, network.gnbs[1].mac)
    }

    #[test]
    fn echo_is_answered_and_the_rest_is_counted() {
        let (mut site, gnb, mac) = site();
        let send = |message: &[u8]| {
            PacketBuilder::new().ethernet(mac, UPF_MAC).ipv4(UPF, gnb).udp(3333, 2152).build(message)
        };
        let mut message = Vec::new();
        gtpu_message::emit_echo_request(&mut message, 77);
        let request = send(&message);
        assert!(GnbSite::concerns(&request));
        let Reaction::Reply(reply) = site.hear(&request) else { panic!("no echo response") };
        let ip = Ipv4View::parse(&reply[14..]).unwrap();
        let udp = UdpView::parse(ip.payload()).unwrap();
        assert_eq!((ip.destination(), udp.destination_port()), (UPF, 3333));
        let response = GtpuView::parse(udp.payload()).unwrap();
        assert_eq!((response.message_type(), response.sequence()), (MessageType::ECHO_RESPONSE, Some(77)));

        let mut marker = [0; gtpu::HEADER_LEN];
        gtpu::emit_end_marker(&mut marker, Teid(5));
        assert_eq!(site.hear(&send(&marker)), Reaction::Heard);
        let mut indication = Vec::new();
        let unknown = gtpu_message::ErrorIndication { teid: Teid(5), peer: UPF.into() };
        gtpu_message::emit_error_indication(&mut indication, 1, &unknown, Some(2152));
        assert_eq!(site.hear(&send(&indication)), Reaction::Heard);
        let counts = *site.counts();
        assert_eq!(
            (counts.echo_requests, counts.end_markers, counts.error_indications, counts.others),
            (1, 1, 1, 0)
        );
    }

    #[test]
    fn user_traffic_passes_by() {
        let (mut site, gnb, mac) = site();
        let gpdu = PacketBuilder::new()
            .ethernet(mac, UPF_MAC)
            .ipv4(UPF, gnb)
            .udp(2152, 2152)
            .gtpu(Teid(1))
            .build(&[0; 40]);
        assert!(!GnbSite::concerns(&gpdu));
        assert_eq!(site.hear(&gpdu), Reaction::NotMine);
    }
}
