//! A link-layer station that has addresses: answers ARP, Neighbour Discovery and ping, and learns its neighbours.
//!
//! gNBs on N3 and the data network's router on N6 are both such stations ([`crate::gnb`], [`crate::dn`]).

use packet::ethernet::{self, EthernetView};
use packet::ndp::{self, NeighbourAdvertisement};
use packet::{ArpView, EtherType, Icmpv6View, IpProtocol, Ipv4View, Ipv6View, MacAddr, arp, icmpv4, icmpv6};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// What a station makes of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// Taken note of; nothing to send.
    Heard,
    /// This frame goes back.
    Reply(Vec<u8>),
    /// None of the station's business: user traffic, or something that has no business to come.
    NotMine,
}

/// One side of the UPF: its stations and what else it understands beside user traffic.
pub trait Site {
    /// The link layer.
    fn station(&self) -> &Station;
    /// Whether a frame must be shown to [`Site::hear`]: a look at a few bytes. All else is user traffic.
    fn concerns(bytes: &[u8]) -> bool;
    /// Looks at a frame that is not user traffic.
    fn hear(&mut self, bytes: &[u8]) -> Reaction;
}

/// Addresses with their MAC addresses, and the neighbours met so far.
#[derive(Clone, Debug, Default)]
pub struct Station {
    own: HashMap<IpAddr, MacAddr>,
    neighbours: HashMap<IpAddr, MacAddr>,
}

impl Station {
    /// A station with these addresses.
    pub fn new(own: impl IntoIterator<Item = (IpAddr, MacAddr)>) -> Self {
        Self { own: own.into_iter().collect(), neighbours: HashMap::new() }
    }

    /// Where a neighbour is, if it has been heard of.
    pub fn neighbour(&self, address: IpAddr) -> Option<MacAddr> {
        self.neighbours.get(&address).copied()
    }

    /// The MAC address that belongs to one of the station's own addresses.
    pub fn own_mac(&self, address: IpAddr) -> Option<MacAddr> {
        self.own.get(&address).copied()
    }

    /// A frame that asks for `target`, sent from `source`, which must be an own address of the same IP version: an ARP
    /// request (RFC 826) or a Neighbour Solicitation (RFC 4861 §4.3). Who answers learns of `source` by it.
    pub fn solicit(&self, source: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
        let mac = self.own_mac(source)?;
        match (source, target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let mut request = [0; arp::LEN];
                arp::emit_request(&mut request, mac, source, target);
                Some(frame(MacAddr::BROADCAST, mac, EtherType::ARP, &request))
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let mut packet = Vec::new();
                ndp::emit_neighbour_solicitation(&mut packet, source, mac, target);
                let group = ndp::multicast_mac(ndp::solicited_node(target));
                Some(frame(group, mac, EtherType::IPV6, &packet))
            }
            _ => None,
        }
    }

    /// Looks at a frame that arrived.
    pub fn hear(&mut self, bytes: &[u8]) -> Reaction {
        let Ok(ethernet) = EthernetView::parse(bytes) else { return Reaction::NotMine };
        match ethernet.ether_type() {
            EtherType::ARP => self.hear_arp(ethernet.payload()),
            EtherType::IPV4 => self.hear_ipv4(&ethernet),
            EtherType::IPV6 => self.hear_ipv6(&ethernet),
            _ => Reaction::NotMine,
        }
    }

    fn hear_arp(&mut self, payload: &[u8]) -> Reaction {
        let Ok(view) = ArpView::parse(payload) else { return Reaction::NotMine };
        self.neighbours.insert(view.sender_ip().into(), view.sender_mac());
        let wanted = self.own.get(&view.target_ip().into());
        let (arp::Operation::Request, Some(&mac)) = (view.operation(), wanted) else {
            return Reaction::Heard;
        };
        let mut reply = [0; arp::LEN];
        arp::emit_reply(&mut reply, mac, &view);
        Reaction::Reply(frame(view.sender_mac(), mac, EtherType::ARP, &reply))
    }

    fn hear_ipv4(&self, ethernet: &EthernetView<'_>) -> Reaction {
        let Ok(ip) = Ipv4View::parse(ethernet.payload()) else { return Reaction::NotMine };
        let Some(&mac) = self.own.get(&ip.destination().into()) else { return Reaction::NotMine };
        let mut packet = ethernet.payload().get(..ip.total_len()).unwrap_or_default().to_vec();
        if ip.protocol() == IpProtocol::ICMPV4 && icmpv4::echo_reply_in_place(&mut packet) {
            return Reaction::Reply(frame(ethernet.source(), mac, EtherType::IPV4, &packet));
        }
        Reaction::NotMine
    }

    fn hear_ipv6(&mut self, ethernet: &EthernetView<'_>) -> Reaction {
        let Ok(ip) = Ipv6View::parse(ethernet.payload()) else { return Reaction::NotMine };
        if ip.next_header() != IpProtocol::ICMPV6 {
            return Reaction::NotMine;
        }
        let Ok(icmp) = Icmpv6View::parse(ip.payload()) else { return Reaction::NotMine };
        match ndp::parse(&ip, &icmp) {
            Ok(Some(ndp::Message::NeighbourSolicitation { target, options })) => {
                if let Some(mac) = options.source_mac() {
                    self.neighbours.insert(ip.source().into(), mac);
                }
                let Some(&mac) = self.own.get(&target.into()) else { return Reaction::Heard };
                Reaction::Reply(advertise(ethernet.source(), ip.source(), mac, target))
            }
            Ok(Some(ndp::Message::NeighbourAdvertisement { neighbour, options })) => {
                let mac = options.target_mac().unwrap_or(ethernet.source());
                self.neighbours.insert(neighbour.target.into(), mac);
                Reaction::Heard
            }
            Ok(Some(_)) => Reaction::Heard,
            Ok(None) | Err(_) => {
                let Some(&mac) = self.own.get(&ip.destination().into()) else { return Reaction::NotMine };
                let mut packet = ethernet.payload().get(..ip.total_len()).unwrap_or_default().to_vec();
                if icmpv6::echo_reply_in_place(&mut packet) {
                    return Reaction::Reply(frame(ethernet.source(), mac, EtherType::IPV6, &packet));
                }
                Reaction::NotMine
            }
        }
    }
}

/// The answer to a solicitation; one from the unspecified address (duplicate address detection) goes to all nodes
/// (RFC 4861 §7.2.4).
fn advertise(to: MacAddr, asker: Ipv6Addr, mac: MacAddr, target: Ipv6Addr) -> Vec<u8> {
    const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let solicited = !asker.is_unspecified();
    let (to, asker) = if solicited { (to, asker) } else { (ndp::multicast_mac(ALL_NODES), ALL_NODES) };
    let mut packet = Vec::new();
    let neighbour = NeighbourAdvertisement { target, router: false, solicited, replace: true };
    ndp::emit_neighbour_advertisement(&mut packet, asker, mac, &neighbour);
    frame(to, mac, EtherType::IPV6, &packet)
}

/// An untagged frame.
pub(crate) fn frame(to: MacAddr, from: MacAddr, kind: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut header = [0; ethernet::HEADER_LEN];
    ethernet::emit_header(&mut header, to, from, kind);
    [&header[..], payload].concat()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use packet::PacketBuilder;
    use packet::icmpv4::Echo;
    use std::net::Ipv4Addr;

    const MAC_A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
    const MAC_B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);

    fn pair(v6: bool) -> (Station, Station, IpAddr, IpAddr) {
        let (a, b): (IpAddr, IpAddr) = if v6 {
            ("2001:db8::a".parse().unwrap(), "2001:db8::b".parse().unwrap())
        } else {
            (Ipv4Addr::new(192, 0, 2, 10).into(), Ipv4Addr::new(192, 0, 2, 11).into())
        };
        (Station::new([(a, MAC_A)]), Station::new([(b, MAC_B)]), a, b)
    }

    #[test]
    fn two_stations_find_each_other() {
        for v6 in [false, true] {
            let (mut left, mut right, a, b) = pair(v6);
            let Reaction::Reply(reply) = right.hear(&left.solicit(a, b).unwrap()) else {
                panic!("no answer")
            };
            assert_eq!(left.hear(&reply), Reaction::Heard);
            assert_eq!((left.neighbour(b), right.neighbour(a)), (Some(MAC_B), Some(MAC_A)), "v6 {v6}");
            assert_eq!(right.hear(&left.solicit(a, a).unwrap()), Reaction::Heard, "another's address");
            assert_eq!(left.solicit(b, a), None, "not an own address");
        }
    }

    #[test]
    fn ping_is_answered() {
        let (_, mut right, a, b) = pair(false);
        let (IpAddr::V4(a), IpAddr::V4(b)) = (a, b) else { panic!() };
        let echo = Echo { identifier: 1, sequence: 2, request: true };
        let ping = PacketBuilder::new().ethernet(MAC_B, MAC_A).ipv4(a, b).icmpv4_echo(echo).build(b"ping");
        let Reaction::Reply(reply) = right.hear(&ping) else { panic!("no answer") };
        let ethernet = EthernetView::parse(&reply).unwrap();
        assert_eq!((ethernet.destination(), ethernet.source()), (MAC_A, MAC_B));
        let ip = Ipv4View::parse(ethernet.payload()).unwrap();
        assert!(ip.checksum_ok() && ip.destination() == a);
        let not_ours =
            PacketBuilder::new().ethernet(MAC_B, MAC_A).ipv4(a, a).icmpv4_echo(echo).build(b"ping");
        assert_eq!(right.hear(&not_ours), Reaction::NotMine);
    }

    #[test]
    fn garbage_is_nobody_s() {
        let (mut left, ..) = pair(true);
        for len in 0..80 {
            for kind in [[8, 0], [8, 6], [0x86, 0xdd]] {
                let mut bytes = vec![0x60; len];
                if let Some(at) = bytes.get_mut(12..14) {
                    at.copy_from_slice(&kind);
                }
                assert_eq!(left.hear(&bytes), Reaction::NotMine);
            }
        }
    }
}
