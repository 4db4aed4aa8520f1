//! What arrives: frames of sessions that are there, right and damaged, and those of attackers.

use crate::frames::{self, GNB_MAC, N3_MAC, N6_MAC, Payload, ROUTER_MAC};
use crate::requests::{GNB, GNB_IPV6, N3, N3_IPV6};
use crate::user_plane::{FARTHER, FARTHER_IPV6, N4, N6, N6_IPV6, SERVER, SERVER_IPV6, UE_POOLS, UserPlane};
use crate::{Input, witness};
use packet::{GTP_U_PORT, IpProtocol, MacAddr, Teid, gtpu_message, icmpv4};
use session::rules::Rules;
use session::store::Store;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Some frames: of sessions that are there, with a few octets changed, or of nobody.
pub fn traffic(input: &mut Input<'_>, store: &Store, plane: &mut UserPlane) {
    let (worker, count) = (input.below(2), 1 + input.below(3));
    let port = u16::from(input.flag());
    let public: Vec<_> = plane.public.iter().copied().collect();
    let one = |input: &mut Input<'_>| {
        if !public.is_empty() && input.flag() {
            to_public(input, store, port, &public)
        } else {
            frame(input, store, port)
        }
    };
    let packets: Vec<Vec<u8>> = (0..count).map(|_| damaged(input, one)).collect();
    plane.receive(worker, port, &packets);
}

/// To a public endpoint that was seen, from the data network or from a UE.
fn to_public(
    input: &mut Input<'_>,
    store: &Store,
    port: u16,
    public: &[(IpProtocol, Ipv4Addr, u16)],
) -> Vec<u8> {
    let (protocol, address, number) = public[input.below(public.len())];
    let data = [0x5a; 40];
    let payload = match protocol {
        IpProtocol::TCP => Payload::Tcp(443, number, &data),
        IpProtocol::UDP => Payload::Udp(53, number, &data),
        _ => Payload::Echo(&data),
    };
    if port == 1 {
        return frames::downlink(&frames::user_packet(SERVER.into(), address.into(), payload));
    }
    let (ue, teid) = sender(input, store, false);
    from_gnb(teid, &frames::user_packet(ue, address.into(), payload))
}

/// What `make` makes, mostly.
fn damaged<'a>(input: &mut Input<'a>, make: impl FnOnce(&mut Input<'a>) -> Vec<u8>) -> Vec<u8> {
    let mut packet = make(input);
    if input.one_in(4) {
        for _ in 0..input.below(3) {
            let at = usize::from(input.u8());
            if let Some(octet) = packet.get_mut(at) {
                *octet = input.u8();
            }
        }
        if input.one_in(4) {
            packet.truncate(usize::from(input.u8()));
        }
    }
    packet
}

fn frame(input: &mut Input<'_>, store: &Store, port: u16) -> Vec<u8> {
    let (rules, other) = (rules(input, store), rules(input, store));
    let v6 = input.flag();
    let ue = address(input, rules.as_deref(), v6);
    let far = match input.below(10) {
        0..=4 if v6 => SERVER_IPV6.into(),
        0..=4 => SERVER.into(),
        5 => address(input, other.as_deref(), v6),
        6 if v6 => input.pick(&[N3_IPV6, N6_IPV6, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2)]).into(),
        6 => input.pick(&[N3, N4, N6]).into(),
        // gNBs, known and not, and what is behind one of them.
        7 if v6 => {
            input.pick(&[GNB_IPV6, Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0x99), FARTHER_IPV6]).into()
        }
        7 => input.pick(&[GNB, Ipv4Addr::new(192, 168, 10, 99), FARTHER]).into(),
        // A host on N6's own link.
        8 if v6 => Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, u16::from(input.u8())).into(),
        8 => Ipv4Addr::new(198, 51, 100, input.u8()).into(),
        _ if v6 => Ipv6Addr::from(u128::from(input.u64()) << 64 | 1).into(),
        _ => Ipv4Addr::from(input.u32()).into(),
    };
    let size = match input.u8() {
        0xff => 1380,
        octet => usize::from(octet) % 64,
    };
    let data = vec![0x5a; size];
    let payload = match input.below(5) {
        4 => Payload::Udp(GTP_U_PORT, GTP_U_PORT, &[0x30, 0xff, 0, 0, 0, 0, 0, 1]),
        0 => Payload::Tcp(1000, 443, &data),
        1 => Payload::Echo(&data),
        2 => Payload::Udp(53, 1000, &data),
        _ => Payload::Udp(1000, 5060, &data),
    };
    if port == 1 {
        return match input.u8() {
            0xff => input.counted().to_vec(),
            _ => frames::downlink(&frames::user_packet(far, ue, payload)),
        };
    }
    let (gnb, own) = match input.u8() % 8 {
        0 | 4 => (GNB_IPV6.into(), N3_IPV6.into()),
        // A gNB that no session sends to.
        5 => (Ipv4Addr::new(192, 168, 10, 98).into(), IpAddr::from(N3)),
        _ => (GNB.into(), IpAddr::from(N3)),
    };
    let tunnels: Vec<Teid> = rules
        .iter()
        .flat_map(|rules| &rules.pdrs)
        .filter_map(|pdr| pdr.tunnel)
        .map(|tunnel| tunnel.teid)
        .collect();
    let teid = match input.u8() {
        octet if octet < 0xf0 && !tunnels.is_empty() => tunnels[usize::from(octet) % tunnels.len()],
        _ => Teid(input.u32()),
    };
    match input.below(16) {
        0 => {
            let mut message = Vec::new();
            match input.below(3) {
                0 => gtpu_message::emit_echo_request(&mut message, input.u16()),
                1 => {
                    let teid = Teid(u32::from(input.u8()));
                    let error = gtpu_message::ErrorIndication { teid, peer: gnb };
                    gtpu_message::emit_error_indication(&mut message, 1, &error, None);
                }
                _ => message = vec![0x30, input.u8(), 0, 0, 0, 0, 0, input.u8()],
            }
            frames::signalling(gnb, own, &message)
        }
        1 => input.counted().to_vec(),
        _ => {
            let containers = frames::containers();
            let container = input.maybe(|input| match input.below(6) {
                at if at < containers.len() => containers[at],
                _ => frames::uplink_container(input.u8()),
            });
            // From the UE, or to it from another UPF or the SMF.
            let (from, to) = if input.one_in(6) { (far, ue) } else { (ue, far) };
            frames::uplink(gnb, own, teid, container, &frames::user_packet(from, to, payload))
        }
    }
}

/// An address of a session's UE, if it has one of this family.
fn address(input: &mut Input<'_>, rules: Option<&Rules>, v6: bool) -> IpAddr {
    let low = u128::from(input.u8());
    let framed4 = rules.and_then(|rules| rules.framed_ipv4.first()).filter(|_| low % 4 == 3);
    match (v6, rules.and_then(|r| r.ue_ipv4), rules.and_then(|r| r.ue_ipv6)) {
        (false, _, _) if framed4.is_some() => framed4
            .map_or(SERVER, |net| {
                Ipv4Addr::from(u32::from(net.network()) | low as u32 & !u32::from(net.netmask()))
            })
            .into(),
        (false, Some(address), _) => address.into(),
        // On one of its links, if it has several.
        (true, _, Some(net)) => {
            Ipv6Addr::from(u128::from(net.network()) | ((low << 64 | low) & !u128::from(net.netmask())))
                .into()
        }
        (false, ..) => Ipv4Addr::new(10, 45, 0, low as u8).into(),
        (true, ..) => Ipv6Addr::new(0x2001, 0xdb8, 0x45, low as u16, 0, 0, 0, 1).into(),
    }
}

/// Addresses that are no host's (RFC 1122 §3.2.1.3, RFC 1112 §4, RFC 6890 §2.2, RFC 4291 §2.4 to 2.7, RFC 2644): first, last, and from
/// the middle of each kind.
const NOBODYS: [&str; 26] = [
    "0.0.0.0",
    "0.255.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "224.0.0.1",
    "232.1.2.3",
    "239.255.255.255",
    "240.0.0.0",
    "250.1.2.3",
    "255.255.255.254",
    "255.255.255.255",
    "198.51.100.0",
    "198.51.100.255",
    "192.168.10.0",
    "192.168.10.255",
    "::",
    "::1",
    "::203.0.113.7",
    "::ffff:0.0.0.0",
    "::ffff:203.0.113.7",
    "fe80::",
    "fe80::9",
    "febf:ffff::1",
    "ff02::1",
    "ff0e::1",
    "ffff:ffff::1",
];

/// The MAC address of nobody who was configured.
const LIAR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 0x66]);

/// What attackers send: to addresses that are nobody's, from addresses that are not theirs, pieces of packets that never end, to
/// everybody on a link, and lies about who is where; the late answers of those who were asked, and UEs' errors about what came to them.
pub fn hostile(input: &mut Input<'_>, store: &Store, plane: &mut UserPlane) {
    let (worker, kind) = (input.below(2), input.below(9));
    let asked: Vec<_> = plane.asked.iter().copied().collect();
    let (port, packets) = match kind {
        0 => (0, vec![to_nobody(input, store)]),
        1 => (1, vec![forged(input, store)]),
        2 | 3 => pieces(input),
        4 => (0, scan(input, store)),
        5 => (1, inner_pieces(input, store)),
        6 if !asked.is_empty() => late_answer(input, &asked),
        8 => (0, vec![complaint(input, store)]),
        _ => {
            let port = u16::from(input.flag());
            (port, vec![claim(input, port)])
        }
    };
    plane.receive(worker, port, &packets);
}

fn text(address: &str) -> IpAddr {
    address.parse().expect("an address")
}

/// A session's rules, if there is a session.
fn rules(input: &mut Input<'_>, store: &Store) -> Option<Arc<Rules>> {
    let sessions = store.counts().sessions.max(1);
    store.iter().nth(input.below(sessions)).map(|session| session.rules().clone())
}

/// A session, its UE's address of this family, and a tunnel to send from it.
fn sender(input: &mut Input<'_>, store: &Store, v6: bool) -> (IpAddr, Teid) {
    let rules = rules(input, store);
    let ue = address(input, rules.as_deref(), v6);
    let tunnel = rules.and_then(|rules| rules.pdrs.iter().find_map(|pdr| pdr.tunnel));
    (ue, tunnel.map_or(Teid(1), |tunnel| tunnel.teid))
}

fn from_gnb(teid: Teid, packet: &[u8]) -> Vec<u8> {
    frames::uplink(GNB.into(), N3.into(), teid, None, packet)
}

/// A UE's packet to no host.
fn to_nobody(input: &mut Input<'_>, store: &Store) -> Vec<u8> {
    let nobody = text(input.pick(&NOBODYS));
    let (ue, teid) = sender(input, store, nobody.is_ipv6());
    from_gnb(teid, &frames::user_packet(ue, nobody, Payload::Udp(1000, 5060, b"anybody?")))
}

/// A UE's error about a packet that came to it, or that it says came.
fn complaint(input: &mut Input<'_>, store: &Store) -> Vec<u8> {
    let (ue, teid) = sender(input, store, false);
    let data = [0x5a; 8];
    let payload = match input.below(3) {
        0 => Payload::Tcp(443, 1000, &data),
        1 => Payload::Udp(5060, 1000, &data),
        _ => Payload::Echo(&data),
    };
    let mut error = Vec::new();
    if let IpAddr::V4(source) = ue {
        let received = frames::user_packet(SERVER.into(), ue, payload);
        icmpv4::emit_error(&mut error, source, icmpv4::Icmpv4Error::PortUnreachable, &received);
    }
    from_gnb(teid, &error)
}

/// From the data network to a UE or to us, with a source that nobody has there; one in four asks for an answer.
fn forged(input: &mut Input<'_>, store: &Store) -> Vec<u8> {
    let source = match input.below(4) {
        0 => text(input.pick(&NOBODYS)),
        1 => input.pick(&UE_POOLS.map(|pool| text(pool.split('/').next().unwrap_or_default()))),
        2 => input.pick(&[N3.into(), N4.into(), N6.into(), N3_IPV6.into(), N6_IPV6.into()]),
        _ => {
            let v6 = input.flag();
            sender(input, store, v6).0
        }
    };
    let v6 = source.is_ipv6();
    let to = match input.below(4) {
        0 if v6 => N6_IPV6.into(),
        0 => N6.into(),
        _ => sender(input, store, v6).0,
    };
    let payload = if input.flag() { Payload::Echo(b"forged") } else { Payload::Udp(53, 1000, b"forged") };
    frames::downlink(&frames::user_packet(source, to, payload))
}

/// How many frames of one kind come at once.
fn many(input: &mut Input<'_>) -> u16 {
    1 + u16::from(input.u8() % 64)
}

/// Pieces of packets to us, of which some never come.
fn pieces(input: &mut Input<'_>) -> (u16, Vec<Vec<u8>>) {
    let (port, v6) = (u16::from(input.one_in(4)), input.flag());
    let (from, to): (IpAddr, IpAddr) = match (port, v6) {
        (0, false) => (GNB.into(), N3.into()),
        (0, true) => (GNB_IPV6.into(), N3_IPV6.into()),
        (_, false) => (SERVER.into(), N6.into()),
        (_, true) => (SERVER_IPV6.into(), N6_IPV6.into()),
    };
    let (first, each, count) = (input.u8(), 1 + u16::from(input.u8() % 8), many(input));
    let macs = if port == 0 { (N3_MAC, GNB_MAC) } else { (N6_MAC, ROUTER_MAC) };
    let piece = |n: u16| {
        let identification = u32::from(first) + u32::from(n / each);
        let packet = frames::piece(from, to, identification, n % each);
        frames::ethernet(macs.0, macs.1, &packet)
    };
    (port, (0..count).map(piece).collect())
}

/// Pieces of a packet to a UE.
fn inner_pieces(input: &mut Input<'_>, store: &Store) -> Vec<Vec<u8>> {
    let v6 = input.flag();
    let (ue, _) = sender(input, store, v6);
    let from = if v6 { SERVER_IPV6.into() } else { SERVER.into() };
    let (identification, first, count) = (input.u8(), input.u8() % 4, 1 + input.u8() % 8);
    let piece = |n: u8| frames::downlink(&frames::piece(from, ue, identification.into(), (first + n).into()));
    (0..count).map(piece).collect()
}

/// A UE's packets to one after the other on N6's link.
fn scan(input: &mut Input<'_>, store: &Store) -> Vec<Vec<u8>> {
    let v6 = input.flag();
    let (ue, teid) = sender(input, store, v6);
    let (first, each, count) = (input.u16(), 1 + u16::from(input.u8() % 4), many(input));
    let packet = |n: u16| {
        let host = first.wrapping_add(n / each);
        let to = if v6 {
            Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 1, host).into()
        } else {
            Ipv4Addr::new(198, 51, 100, host as u8).into()
        };
        from_gnb(teid, &frames::user_packet(ue, to, Payload::Udp(1000, 5060, b"anybody?")))
    };
    (0..count).map(packet).collect()
}

/// Somebody who was asked, in good time or when nobody waits any more.
fn late_answer(input: &mut Input<'_>, asked: &[(u16, IpAddr)]) -> (u16, Vec<Vec<u8>>) {
    let (port, address) = asked[input.below(asked.len())];
    let mac = match address {
        IpAddr::V6(GNB_IPV6) => GNB_MAC,
        _ => MacAddr([2, 0, 0, 0, 2, input.u8()]),
    };
    (port, vec![frames::neighbour(port, address, mac, frames::Speech::Answer)])
}

/// Somebody says where somebody is; it may be true.
fn claim(input: &mut Input<'_>, port: u16) -> Vec<u8> {
    let address = match input.below(10) {
        0 => GNB.into(),
        1 => GNB_IPV6.into(),
        2 => witness::GNB.into(),
        3 => IpAddr::from([198, 51, 100, 254]),
        4 => text("fe80::9"),
        5 => Ipv4Addr::new(198, 51, 100, input.u8()).into(),
        6 => Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 1, input.u16()).into(),
        7 => text(input.pick(&NOBODYS)),
        8 => input.pick(&[N3.into(), N6.into(), N3_IPV6.into(), N6_IPV6.into()]),
        _ => SERVER.into(),
    };
    let others =
        [LIAR_MAC, GNB_MAC, ROUTER_MAC, MacAddr([1, 0, 0x5e, 0, 0, 1]), MacAddr::ZERO, N3_MAC, N6_MAC];
    let mac = input.pick(&others);
    let speech = input.pick(&[frames::Speech::Answer, frames::Speech::Unasked, frames::Speech::Question]);
    frames::neighbour(port, address, mac, speech)
}
