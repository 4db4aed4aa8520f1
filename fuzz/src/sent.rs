//! What leaves, and what must hold of it.

use crate::frames::{GNB_MAC, N3_MAC, N6_MAC, ROUTER_MAC};
use crate::requests::{DIRECT, FIXED, GNB, N3, N3_IPV6};
use crate::user_plane::{FARTHER, N4, N6, N6_IPV6, Passing};
use crate::witness;
use datapath::nat::Plan;
use ipnet::IpNet;
use packet::arp::Operation;
use packet::gtpu::MessageType;
use packet::ndp::{self, Message};
use packet::{
    ArpView, EtherType, EthernetView, GTP_U_PORT, GtpuView, Icmpv6View, IpPacket, IpProtocol, Ipv4View,
    Ipv6View, MacAddr, UdpView,
};
use session::rules::{Action, Far, Rules, is_link_local};
use session::store::Store;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// What is known of the world when frames leave it.
pub struct Judge<'a> {
    /// What the SMFs were told.
    pub store: &'a Store,
    /// Rules by which packets may leave that waited.
    pub passing: &'a [Passing],
    /// What is translated.
    pub plan: Option<&'a Plan>,
    /// Where UEs' addresses are.
    pub pools: &'a [IpNet],
    /// Whether all that was done since frames were looked at last was that some came from the data network.
    pub from_outside: bool,
}

/// Public addresses of those whose rule asks for them.
pub const FIXED_ADDRESSES: [&str; 2] = ["198.51.100.65/32", "192.0.2.65/32"];

impl Judge<'_> {
    /// A frame that leaves is well formed, and whose it is, is whose tunnel it is in. Says the public endpoint that it comes from,
    /// if it does.
    pub fn sent(&self, port: usize, frame: &[u8]) -> Option<(IpProtocol, Ipv4Addr, u16)> {
        let plan = self.plan;
        let ethernet = EthernetView::parse(frame).expect("an Ethernet frame");
        let packet = ethernet.payload();
        let (source, destination, protocol, payload) = match ethernet.ether_type() {
            EtherType::IPV4 => {
                let ip = Ipv4View::parse(packet).expect("an IPv4 packet");
                // A user's own is left as it came: within a tunnel nobody but the receiver looks at it.
                assert!(ip.checksum_ok() || !is_own(ip.source().into()));
                let payload = if ip.fragment().is_some() { &[] } else { ip.payload() };
                (IpAddr::from(ip.source()), IpAddr::from(ip.destination()), ip.protocol(), payload)
            }
            EtherType::IPV6 => {
                let ip = Ipv6View::parse(packet).expect("an IPv6 packet");
                let whole = ip.upper_layer().ok().filter(|upper| upper.fragment.is_none());
                let (protocol, payload) =
                    whole.map_or((IpProtocol(255), &[][..]), |u| (u.protocol, u.payload));
                (IpAddr::from(ip.source()), IpAddr::from(ip.destination()), protocol, payload)
            }
            other => {
                assert_eq!(other, EtherType::ARP);
                return None;
            }
        };
        if port == 1 {
            let public = plan.is_some_and(|plan| plan.public().iter().any(|net| net.contains(&source)));
            let private = plan.is_some_and(|plan| {
                plan.pools().any(|pool| pool.inside.iter().any(|net| source_in(*net, source)))
            });
            let is_said = |rules: &Rules, policy| {
                let leaves_by =
                    |far: &Far| matches!(far.action, Action::Forward(forward) if forward.policy == policy);
                rules.fars.iter().any(leaves_by)
            };
            let direct = || self.in_force().any(|rules| is_ues(rules, source) && is_said(rules, DIRECT));
            assert!(!private || direct(), "{source} left untranslated: {packet:02x?}");
            let fixed = FIXED_ADDRESSES.iter().any(|net| net.split('/').next() == Some(&*source.to_string()));
            // An error is about a packet that came by a mapping, which may be older than the rules.
            assert!(
                !fixed
                    || protocol == IpProtocol::ICMPV4
                    || self.in_force().any(|rules| is_said(rules, FIXED)),
                "{source} is for packets whose rule says so: {packet:02x?}"
            );
            let known = || self.in_force().any(|rules| is_ues(rules, source));
            assert!(
                is_own(source) || is_local(source) || public || known(),
                "{source} has no session: {packet:02x?}"
            );
            assert!(!is_own(destination), "{source} reached {destination}");
            self.left_on_n6(ethernet.destination(), source, destination);
            let IpAddr::V4(source) = source else { return None };
            let at = if protocol == IpProtocol::ICMPV4 { 4 } else { 0 };
            let port = payload.get(at..).and_then(|rest| rest.first_chunk::<2>())?;
            return public.then_some((protocol, source, u16::from_be_bytes(*port)));
        }
        // Whatever a user sends, here it leaves in a tunnel, which is from us; else there is only what we say ourselves.
        assert!(
            is_own(source) || source == IpAddr::V6(link_local(N3_MAC)),
            "{source} reached N3: {packet:02x?}"
        );
        let udp = UdpView::parse(payload).ok()?;
        if protocol != IpProtocol::UDP || udp.destination_port() != GTP_U_PORT || payload.is_empty() {
            return None;
        }
        assert!(is_own(source), "a tunnel from {source}");
        let gtpu = GtpuView::parse(udp.payload()).expect("a GTP-U message");
        if gtpu.message_type() != MessageType::G_PDU {
            return None;
        }
        let inner = IpPacket::parse(gtpu.payload()).ok()?;
        let (from, to) = (inner.key.source, inner.key.destination);
        let (teid, peer) = (gtpu.teid(), destination);
        self.entered_a_tunnel(ethernet.destination(), peer, from);
        let mut owners = self
            .in_force()
            .filter(|rules| rules.tunnels().any(|outer| (outer.teid, outer.peer) == (teid, peer)));
        // What another UPF sends into a session's tunnel (N9) is the session's by its TEID: that UPF has looked at the addresses.
        let fed =
            |rules: &Rules| rules.pdrs.iter().any(|pdr| pdr.tunnel.is_some() && !pdr.source.is_uplink());
        assert!(
            owners.any(|rules| {
                is_ues(rules, from) || is_ues(rules, to) || is_local(from) || is_local(to) || fed(rules)
            }),
            "a packet from {from} to {to} was sent into the tunnel {teid:?} to {peer} of another session",
        );
        None
    }

    fn in_force(&self) -> impl Iterator<Item = &Arc<Rules>> {
        self.store
            .iter()
            .map(|session| session.rules())
            .chain(self.passing.iter().map(|passing| &passing.rules))
    }

    /// To hosts only, and to where the network was configured to have them.
    fn left_on_n6(&self, mac: MacAddr, source: IpAddr, destination: IpAddr) {
        let ours = is_own(source) || source == IpAddr::V6(link_local(N6_MAC));
        // Our own words on the link: neighbour discovery.
        assert!(
            !is_nobodys(destination) || (ours && is_local(destination)),
            "{source} reached {destination}, which is nobody's"
        );
        if ours {
            return;
        }
        assert!(!mac.is_multicast() && mac != N6_MAC, "{destination} was sent to {mac}");
        let on_link = match destination {
            IpAddr::V4(address) => address.octets()[..3] == N6.octets()[..3],
            IpAddr::V6(address) => address.octets()[..8] == N6_IPV6.octets()[..8],
        };
        assert!(
            on_link || mac == ROUTER_MAC,
            "{destination} was sent to {mac}: who said that it is the router?"
        );
    }

    /// To a far end where it was configured to be, and from those who may talk to UEs.
    fn entered_a_tunnel(&self, mac: MacAddr, peer: IpAddr, source: IpAddr) {
        let configured = match peer {
            IpAddr::V4(GNB | FARTHER) => Some(GNB_MAC),
            IpAddr::V4(witness::GNB) => Some(witness::GNB_MAC),
            _ => None,
        };
        assert!(
            configured.is_none_or(|known| known == mac),
            "{peer} was sent to {mac}: who said that it is there?"
        );
        assert!(!mac.is_multicast() && mac != N3_MAC, "{peer} was sent to {mac}");
        let public = self.plan.is_some_and(|plan| plan.public().iter().any(|net| net.contains(&source)));
        let ues = public || self.pools.iter().any(|pool| pool.contains(&source));
        assert!(
            !self.from_outside || !(ues || is_own(source) || is_nobodys(source)),
            "{source} reached a UE from outside"
        );
    }
}

/// Whom a frame asks for, if it does.
pub fn asked(frame: &[u8]) -> Option<IpAddr> {
    let ethernet = EthernetView::parse(frame).ok()?;
    match ethernet.ether_type() {
        EtherType::ARP => {
            let message = ArpView::parse(ethernet.payload()).ok()?;
            (message.operation() == Operation::Request).then(|| message.target_ip().into())
        }
        EtherType::IPV6 => {
            let ip = Ipv6View::parse(ethernet.payload()).ok().filter(|ip| is_own_link(ip.source()))?;
            let icmp = Icmpv6View::parse(ip.payload()).ok()?;
            match ndp::parse(&ip, &icmp) {
                Ok(Some(Message::NeighbourSolicitation { target, .. })) => Some(target.into()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the address is no host's: this network, loopback, multicast, reserved, and everybody on our links (RFC 1122 §3.2.1.3, RFC 6890
/// §2.2.2, RFC 2644); unspecified, loopback, those that stand for IPv4 addresses, link-local, multicast (RFC 4291 §2.5, §2.7).
fn is_nobodys(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let everybody = [[198, 51, 100], [192, 168, 10]]
                .iter()
                .any(|link| address.octets()[..3] == *link && matches!(address.octets()[3], 0 | 255));
            everybody || matches!(address.octets()[0], 0 | 127 | 224..)
        }
        IpAddr::V6(address) => {
            is_link_local(address)
                || address.is_multicast()
                || matches!(address.segments(), [0, 0, 0, 0, 0, 0 | 0xffff, ..])
        }
    }
}

fn is_own_link(address: Ipv6Addr) -> bool {
    is_own(address.into()) || [N3_MAC, N6_MAC].map(link_local).contains(&address)
}

fn source_in(net: ipnet::Ipv4Net, source: IpAddr) -> bool {
    matches!(source, IpAddr::V4(source) if net.contains(&source))
}

/// Whether the address is the session's UE's, or behind it.
fn is_ues(rules: &Rules, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            rules.ue_ipv4 == Some(address) || rules.framed_ipv4.iter().any(|net| net.contains(&address))
        }
        IpAddr::V6(address) => {
            rules.ue_ipv6.is_some_and(|net| net.contains(&address))
                || rules.framed_ipv6.iter().any(|net| net.contains(&address))
        }
    }
}

/// The address that an interface has beside its own (RFC 4291, appendix A).
fn link_local(MacAddr([a, b, c, d, e, f]): MacAddr) -> Ipv6Addr {
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

fn is_own(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => [N3, N4, N6].contains(&address),
        IpAddr::V6(address) => [N3_IPV6, N6_IPV6].contains(&address),
    }
}

/// Of either end of the tunnel's link only: neighbour and router discovery.
fn is_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if is_link_local(address) || address.is_multicast())
}
