//! What leaves, and what must hold of it.

use crate::frames::{GNB_MAC, N3_MAC, N6_MAC, ROUTER_MAC};
use crate::requests::{GNB, N3, N3_IPV6};
use crate::translation::{Bindings, Scheme};
use crate::user_plane::{FARTHER, N4, N6, N6_IPV6, Passing, WAIT};
use crate::witness;
use datapath::nat::Protocol;
use ipnet::IpNet;
use packet::arp::Operation;
use packet::gtpu::MessageType;
use packet::ndp::{self, Message};
use packet::{
    ArpView, EtherType, EthernetView, GTP_U_PORT, GtpuView, Icmpv6View, IpPacket, IpProtocol, Ipv4View,
    Ipv6View, MacAddr, UdpView,
};
use session::rules::{Action, Far, Forward, Pdr, Rules, is_link_local};
use session::store::Store;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use tables::Nanos;

/// What is known of the world when frames leave it.
pub struct Judge<'a> {
    /// What the SMFs were told.
    pub store: &'a Store,
    /// Rules by which packets may leave that waited.
    pub passing: &'a [Passing],
    /// What is translated, as each worker was told.
    pub schemes: &'a [&'a Scheme],
    /// And as one was told until lately: what waited for a neighbour left by that.
    pub former: &'a [&'a Scheme],
    /// What UEs were given of public endpoints.
    pub bindings: &'a Bindings,
    /// The time.
    pub now: Nanos,
    /// Where UEs' addresses are.
    pub pools: &'a [IpNet],
    /// Whether all that was done since frames were looked at last was that some came from the data network.
    pub from_outside: bool,
}

impl Judge<'_> {
    /// A frame that leaves is well formed, and whose it is, is whose tunnel it is in. Says the public endpoint that it comes from,
    /// if it does.
    pub fn sent(&self, port: usize, frame: &[u8]) -> Option<(IpProtocol, Ipv4Addr, u16)> {
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
            assert!(!is_own(destination), "{source} reached {destination}");
            self.left_on_n6(ethernet.destination(), source, destination);
            let ours = is_own(source) || is_local(source);
            return if ours { None } else { self.left_translated((source, destination), protocol, payload) };
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
        assert!(
            owners.any(|rules| {
                is_ues(rules, from)
                    || is_ues(rules, to)
                    || is_local(from)
                    || is_local(to)
                    || fed(rules).next().is_some()
                    || is_for_anybody(rules)
            }),
            "a packet from {from} to {to} was sent into the tunnel {teid:?} to {peer} of another session",
        );
        None
    }

    fn in_force(&self) -> impl Iterator<Item = &Rules> {
        let told = self.store.iter().map(|session| &**session.rules());
        told.chain(self.passing.iter().map(|passing| &*passing.rules))
    }

    /// A UE's packet leaves on N6 by what is translated, and by nobody else's public endpoint. Says which, if it does.
    fn left_translated(
        &self,
        (source, destination): (IpAddr, IpAddr),
        protocol: IpProtocol,
        payload: &[u8],
    ) -> Option<(IpProtocol, Ipv4Addr, u16)> {
        let waited = is_on_n6(destination);
        let former = self.former.iter().filter(|_| waited);
        let mut schemes = self.schemes.iter().chain(former);
        let is_icmp = protocol == IpProtocol::ICMPV4;
        let is_echo = matches!(payload, [0 | 8, ..]);
        let rules: Vec<&Rules> = self.in_force().collect();
        assert!(
            schemes.any(|scheme| scheme.lets_leave(source, is_icmp && !is_echo, &rules)),
            "a packet from {source} to {destination} has left, by {:?}",
            self.schemes
        );
        let IpAddr::V4(source) = source else { return None };
        let at = if is_icmp { 4 } else { 0 };
        let port = payload.get(at..).and_then(|rest| rest.first_chunk::<2>())?;
        let port = u16::from_be_bytes(*port);
        let known = Protocol::of(protocol.0).filter(|_| !is_icmp || is_echo);
        let since = if waited { Nanos(self.now.0.saturating_sub(WAIT)) } else { self.now };
        let outside = SocketAddrV4::new(source, port);
        assert!(
            known.is_none_or(|protocol| self.bindings.let_leave(self.schemes, protocol, outside, since)),
            "{outside} is nobody's, and a packet left from there to {destination}"
        );
        let is_public = self.schemes.iter().any(|scheme| scheme.is_public(source.into()));
        is_public.then_some((protocol, source, port))
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
        assert!(
            is_on_n6(destination) || mac == ROUTER_MAC,
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
        let public = self.schemes.iter().all(|scheme| scheme.is_public(source));
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

/// Whether the address is on N6's own link, where packets may wait until somebody says that it is there.
fn is_on_n6(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == N6.octets()[..3],
        IpAddr::V6(address) => address.octets()[..8] == N6_IPV6.octets()[..8],
    }
}

/// Whether the address is the session's UE's, or behind it.
pub fn is_ues(rules: &Rules, address: IpAddr) -> bool {
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

/// Whether nobody has said whose the session is, as for indirect forwarding (TS 23.502 §4.9.1.3): what comes in its tunnels leaves in its
/// tunnels, from whomever it says it is.
const fn is_for_anybody(rules: &Rules) -> bool {
    rules.ue_ipv4.is_none() && rules.ue_ipv6.is_none()
}

/// Where another UPF sends into a tunnel of the session (N9): what comes there is the session's by its TEID, from whomever. That UPF has
/// looked at the addresses.
fn fed(rules: &Rules) -> impl Iterator<Item = &Pdr> {
    rules.pdrs.iter().filter(|pdr| pdr.tunnel.is_some() && !pdr.source.is_uplink())
}

/// Whether such packets leave without a tunnel.
pub fn passes_on(rules: &Rules) -> bool {
    let is_plain = |far: &Far| matches!(far.action, Action::Forward(Forward { outer_header: None, .. }));
    fed(rules).any(|pdr| rules.fars.get(usize::from(pdr.far)).is_some_and(is_plain))
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
