//! Frames of every kind, octet by octet, and what is not quite one.
#![allow(clippy::unwrap_used)]

use super::*;
use packet::tcp::TcpHeader;
use packet::{IpProtocol, MacAddr, PacketBuilder, Teid, VlanId};
use proptest::prelude::*;

fn ip4() -> PacketBuilder {
    PacketBuilder::new().ipv4([10, 60, 0, 1].into(), [198, 51, 100, 7].into())
}

fn outer(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = PacketBuilder::new().ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into()).build(content);
    packet[9] = protocol;
    packet
}

fn in_udp(port: u16, content: &[u8]) -> Vec<u8> {
    PacketBuilder::new().ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into()).udp(50_000, port).build(content)
}

fn ethernet(kind: u16, content: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), content].concat()
}

fn ppp(content: &[u8]) -> Vec<u8> {
    [&[0xff, 3, 0, 0x21][..], content].concat()
}

/// The packet that is in all of them.
fn query() -> Vec<u8> {
    ip4().udp(40_000, 53).build(b"query")
}

/// What it is, of which link, its octets, its stack, the tunnel's number.
type Kind = (&'static str, Link, Vec<u8>, &'static str, Option<u32>);

/// Puts a layer around a packet.
type Wrap = fn(&[u8]) -> Vec<u8>;

fn frames() -> Vec<Kind> {
    let query = query();
    let six = PacketBuilder::new().ipv6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let tag =
        |kind: u16, id: u16, next: u16| [kind.to_be_bytes(), id.to_be_bytes(), next.to_be_bytes()].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &query].concat();
    let bridged = ethernet(0x0800, &query);
    let geneve = |kind: u16, content: &[u8]| {
        [&[1, 0][..], &kind.to_be_bytes(), &[0, 0, 9, 0], &[1, 2, 3, 0], content].concat()
    };
    let gtp = |content: &[u8]| in_udp(2152, &PacketBuilder::new().gtpu(Teid(7)).build(content));
    let data = |control: &[u8], length: usize| {
        let mut frame = vec![0; length];
        frame[..control.len()].copy_from_slice(control);
        [frame, snap.clone()].concat()
    };
    let mpls = |content: &[u8]| [&[0, 1, 0, 64, 0, 2, 1, 64][..], content].concat();
    vec![
        ("plain", Link::Ethernet, ethernet(0x0800, &query), "ethernet/ipv4", None),
        ("padded", Link::Ethernet, [ethernet(0x0800, &query), vec![0; 20]].concat(), "ethernet/ipv4", None),
        (
            "IPv6",
            Link::Ethernet,
            ethernet(0x86dd, &six.udp(40_000, 53).build(b"query")),
            "ethernet/ipv6",
            None,
        ),
        (
            "802.1Q",
            Link::Ethernet,
            [&ethernet(0x8100, &[])[..12], &tag(0x8100, 0x2005, 0x0800), &query].concat(),
            "ethernet/vlan/ipv4",
            None,
        ),
        (
            "802.1ad",
            Link::Ethernet,
            [&ethernet(0, &[])[..12], &tag(0x88a8, 5, 0x8100), &tag(0, 6, 0x0800)[2..], &query].concat(),
            "ethernet/vlan/vlan/ipv4",
            None,
        ),
        (
            "tags of old",
            Link::Ethernet,
            [&ethernet(0, &[])[..12], &tag(0x9100, 5, 0x8100), &tag(0, 6, 0x0800)[2..], &query].concat(),
            "ethernet/vlan/vlan/ipv4",
            None,
        ),
        ("SNAP", Link::Ethernet, ethernet(snap.len() as u16, &snap), "ethernet/llc/ipv4", None),
        ("MPLS", Link::Ethernet, ethernet(0x8847, &mpls(&query)), "ethernet/mpls/ipv4", None),
        (
            "a pseudowire",
            Link::Ethernet,
            ethernet(0x8847, &mpls(&[&[0, 0, 0, 1][..], &bridged].concat())),
            "ethernet/mpls/control-word/ethernet/ipv4",
            None,
        ),
        (
            "a pseudowire without control word",
            Link::Ethernet,
            ethernet(0x8847, &mpls(&bridged)),
            "ethernet/mpls/ethernet/ipv4",
            None,
        ),
        (
            "PPPoE",
            Link::Ethernet,
            ethernet(
                0x8864,
                &[&[0x11, 0, 0, 9][..], &(query.len() as u16 + 2).to_be_bytes(), &[0, 0x21], &query, &[0; 9]]
                    .concat(),
            ),
            "ethernet/pppoe/ppp/ipv4",
            None,
        ),
        ("PPP", Link::Ppp, ppp(&query), "ppp/ipv4", None),
        ("PPP, short", Link::Ppp, [&[0x21][..], &query].concat(), "ppp/ipv4", None),
        ("PPP, outgoing", Link::PppDirection, [vec![1], ppp(&query)].concat(), "ppp/ipv4", None),
        ("nothing around", Link::Ip, query.clone(), "ipv4", None),
        ("BSD", Link::Family, [&[2, 0, 0, 0][..], &query].concat(), "family/ipv4", None),
        ("OpenBSD", Link::Family, [&[0, 0, 0, 2][..], &query].concat(), "family/ipv4", None),
        ("HDLC as PPP", Link::Ppp, [&[0x0f, 0, 8, 0][..], &query].concat(), "hdlc/ipv4", None),
        ("HDLC", Link::Hdlc, [&[0x0f, 0, 8, 0][..], &query].concat(), "hdlc/ipv4", None),
        (
            "Linux' any",
            Link::Cooked,
            [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0][..], &query].concat(),
            "cooked/ipv4",
            None,
        ),
        (
            "Linux' any, second version",
            Link::Cooked2,
            [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &query].concat(),
            "cooked/ipv4",
            None,
        ),
        ("802.11", Link::Wireless, data(&[0x08, 1], 24), "802.11/llc/ipv4", None),
        (
            "802.11 with radiotap, quality of service, and four addresses",
            Link::Radiotap,
            [vec![0, 0, 8, 0, 0, 0, 0, 0], data(&[0x88, 3], 32)].concat(),
            "802.11/llc/ipv4",
            None,
        ),
        (
            "per-packet information",
            Link::Capture,
            [&[0, 0, 8, 0, 1, 0, 0, 0][..], &bridged].concat(),
            "capture/ethernet/ipv4",
            None,
        ),
        ("IP in IP", Link::Ip, outer(4, &query), "ipv4/ip-in-ip/ipv4", Some(0)),
        (
            "IPv6 in IPv4",
            Link::Ip,
            outer(
                41,
                &PacketBuilder::new()
                    .ipv6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
                    .udp(40_000, 53)
                    .build(b"query"),
            ),
            "ipv4/ip-in-ip/ipv6",
            Some(0),
        ),
        ("GRE", Link::Ip, outer(47, &[&[0, 0, 8, 0][..], &query].concat()), "ipv4/gre/ipv4", Some(0)),
        (
            "GRE with everything",
            Link::Ip,
            outer(47, &[&[0xb0, 0, 8, 0, 9, 9, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1][..], &query].concat()),
            "ipv4/gre/ipv4",
            Some(5),
        ),
        (
            "bridged in GRE",
            Link::Ip,
            outer(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 1, 0][..], &bridged].concat()),
            "ipv4/gre/ethernet/ipv4",
            Some(256),
        ),
        (
            "PPTP",
            Link::Ip,
            outer(
                47,
                &[&[0x30, 0x81, 0x88, 0x0b][..], &[0, query.len() as u8 + 4, 0, 3], &[0; 8], &ppp(&query)]
                    .concat(),
            ),
            "ipv4/gre/ppp/ipv4",
            Some(3),
        ),
        (
            "ERSPAN I",
            Link::Ip,
            outer(47, &[&[0, 0, 0x88, 0xbe][..], &bridged].concat()),
            "ipv4/gre/erspan/ethernet/ipv4",
            Some(0),
        ),
        (
            "ERSPAN II",
            Link::Ip,
            outer(
                47,
                &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0x10, 1, 0, 9, 0, 0, 0, 0], &bridged].concat(),
            ),
            "ipv4/gre/erspan/ethernet/ipv4",
            Some(9),
        ),
        (
            "ERSPAN III",
            Link::Ip,
            outer(
                47,
                &[
                    &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..],
                    &[0x20, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 0],
                    &bridged,
                ]
                .concat(),
            ),
            "ipv4/gre/erspan/ethernet/ipv4",
            Some(9),
        ),
        (
            "Ethernet in IP",
            Link::Ip,
            outer(97, &[&[0x30, 0][..], &bridged].concat()),
            "ipv4/etherip/ethernet/ipv4",
            Some(0),
        ),
        ("MPLS in IP", Link::Ip, outer(137, &mpls(&query)), "ipv4/ip-in-ip/mpls/ipv4", Some(0)),
        (
            "VXLAN",
            Link::Ip,
            in_udp(4789, &[&[8, 0, 0, 0, 0, 1, 0, 0][..], &bridged].concat()),
            "ipv4/vxlan/ethernet/ipv4",
            Some(256),
        ),
        (
            "VXLAN with a policy, on Linux' port",
            Link::Ip,
            in_udp(8472, &[&[0x88, 0, 0, 3, 0, 1, 0, 0][..], &bridged].concat()),
            "ipv4/vxlan/ethernet/ipv4",
            Some(256),
        ),
        (
            "VXLAN without Ethernet",
            Link::Ip,
            in_udp(4790, &[&[0x0c, 0, 0, 1, 0, 1, 0, 0][..], &query].concat()),
            "ipv4/vxlan/ipv4",
            Some(256),
        ),
        ("GENEVE", Link::Ip, in_udp(6081, &geneve(0x6558, &bridged)), "ipv4/geneve/ethernet/ipv4", Some(9)),
        (
            "GENEVE without Ethernet",
            Link::Ip,
            in_udp(6081, &geneve(0x0800, &query)),
            "ipv4/geneve/ipv4",
            Some(9),
        ),
        ("GTP-U", Link::Ip, gtp(&query), "ipv4/gtp-u/ipv4", Some(7)),
        ("GTP-U with Ethernet", Link::Ip, gtp(&bridged), "ipv4/gtp-u/ethernet/ipv4", Some(7)),
        (
            "L2TP",
            Link::Ip,
            in_udp(
                1701,
                &[
                    &[0x48, 2][..],
                    &[0, query.len() as u8 + 16, 0, 3, 0, 4, 0, 0, 0, 0, 0xff, 3, 0, 0x21],
                    &query,
                ]
                .concat(),
            ),
            "ipv4/l2tp/ppp/ipv4",
            Some(0x3_0004),
        ),
        (
            "TZSP",
            Link::Ip,
            in_udp(37008, &[&[1, 0, 0, 1, 0, 10, 1, 0xcc, 1][..], &bridged].concat()),
            "ipv4/tzsp/ethernet/ipv4",
            Some(0),
        ),
    ]
}

#[test]
fn every_kind_of_frame_leads_to_the_packet_in_it() {
    for (name, link, frame, stack, tunnel) in frames() {
        let Ok(prepared) = prepare(link, &frame, Tunnels::ALL) else { panic!("{name}: no packet") };
        assert_eq!(prepared.payload, b"query", "{name}");
        assert_eq!(prepared.around.stack.to_string(), stack, "{name}");
        assert_eq!(prepared.around.tunnel.map(|tunnel| tunnel.id), tunnel, "{name}");
        assert_eq!(prepared.ip.key.ports.map(|ports| ports.destination), Some(53), "{name}");
        assert_eq!(prepared.missing, 0, "{name}");
        assert_eq!(prepared.packet.len(), usize::from(prepared.ip.total_len), "{name}");
    }
}

#[test]
fn both_vlans_are_told() {
    let frames = frames();
    let vlans = |name: &str| {
        let (_, link, frame, ..) = frames.iter().find(|it| it.0 == name).unwrap();
        prepare(*link, frame, Tunnels::USUAL).unwrap().around.vlans
    };
    assert_eq!(vlans("plain"), [None; 2]);
    assert_eq!(vlans("802.1Q"), [VlanId::new(5), None]);
    assert_eq!(vlans("802.1ad"), [VlanId::new(5), VlanId::new(6)]);
}

#[test]
fn tunnels_that_are_not_asked_for_stay_closed() {
    for (name, link, frame, _, tunnel) in frames() {
        let prepared = prepare(link, &frame, Tunnels::NONE).unwrap();
        assert_eq!(prepared.around.tunnel, None, "{name}");
        assert_eq!(prepared.payload == b"query", tunnel.is_none(), "{name}");
    }
}

#[test]
fn what_a_port_suggests_and_the_content_denies_is_udp() {
    let query = query();
    let frame = ethernet(0x0800, &query);
    let broken = ethernet(0x0800, &query[..query.len() - 1]);
    let arp = ethernet(0x0806, &[0; 28]);
    let cases: [(u16, Vec<u8>); 12] = [
        (2152, b"hello".to_vec()),
        // Signalling.
        (2152, vec![0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]),
        // GTP' has another protocol type.
        (2152, [&[0x20, 255, 0, query.len() as u8, 0, 0, 0, 1][..], &query].concat()),
        // The inner packet is longer than what is there.
        (2152, [&[0x30, 255, 0, query.len() as u8 - 1, 0, 0, 0, 1][..], &query[..query.len() - 1]].concat()),
        (4789, [&[0, 0, 0, 0, 0, 1, 0, 0][..], &frame].concat()),
        (4789, [&[8, 0, 0, 0, 0, 1, 0, 1][..], &frame].concat()),
        (4789, [&[8, 0, 0, 0, 0, 1, 0, 0][..], &broken].concat()),
        // A tunnel, but nothing that has a flow.
        (4789, [&[8, 0, 0, 0, 0, 1, 0, 0][..], &arp].concat()),
        (6081, [&[0x40, 0, 8, 0, 0, 0, 1, 0][..], &query].concat()),
        // L2TP's own.
        (1701, [&[0xc8, 2][..], &[0; 40]].concat()),
        (37008, [&[2, 0, 0, 1, 1][..], &frame].concat()),
        (37008, [&[1, 0, 0, 1][..], &[0; 64]].concat()),
    ];
    for (port, content) in cases {
        let packet = in_udp(port, &content);
        let prepared = prepare(Link::Ip, &packet, Tunnels::ALL).unwrap();
        assert_eq!(prepared.payload, content, "{port}: {content:02x?}");
        assert_eq!((prepared.around.tunnel, prepared.around.stack.layers().len()), (None, 1), "{port}");
    }
    for (protocol, content) in [(47, vec![0, 2, 8, 0]), (4, frame.clone()), (41, query), (97, frame)] {
        let packet = outer(protocol, &content);
        let prepared = prepare(Link::Ip, &packet, Tunnels::ALL).unwrap();
        assert_eq!((prepared.payload, prepared.around.tunnel), (&content[..], None), "{protocol}");
    }
}

#[test]
fn what_is_no_packet_has_a_reason() {
    let plain = ethernet(0x0800, &query());
    let mut short = plain.clone();
    short[14] = 0x44;
    let labels = ethernet(0x8847, &[0; 80]);
    let tags: Vec<u8> = [[0x81, 0, 0, 1]; 20].concat();
    let cases: Vec<(Link, Vec<u8>, Why, u16)> = vec![
        (Link::Ethernet, ethernet(0x0806, &[0; 28]), Why::Arp, 0x0806),
        (Link::Ethernet, ethernet(38, &[0x42, 0x42, 3, 0, 0]), Why::Stp, 0x4242),
        (Link::Ethernet, ethernet(60, &[0xfe, 0xfe, 3, 0x83, 0]), Why::Llc, 0xfefe),
        (Link::Ethernet, ethernet(0x88cc, &[2, 7]), Why::EtherType, 0x88cc),
        (Link::Ethernet, ethernet(0x8863, &[0x11, 9]), Why::EtherType, 0x8863),
        (Link::Ethernet, ethernet(0x8864, &[0x11, 0, 0, 9, 0, 8, 0xc0, 0x21, 1]), Why::Ppp, 0xc021),
        (Link::Ethernet, ethernet(0x8847, &[0, 0, 0xd1, 64, 0x10, 0, 0, 0]), Why::Label, 13),
        (Link::Ethernet, labels, Why::Deep, 0),
        (Link::Ethernet, [&plain[..12], &tags].concat(), Why::Deep, 0),
        (Link::Ethernet, plain[..13].to_vec(), Why::Truncated, 0),
        (Link::Ethernet, plain[..33].to_vec(), Why::Truncated, 0),
        (Link::Ethernet, short, Why::Malformed, 0),
        (Link::Wireless, vec![0x80, 0, 0], Why::Wireless, 0x8000),
        (Link::Wireless, [&[0x08, 0x41][..], &[0; 60]].concat(), Why::Wireless, 0x0841),
        (Link::Family, vec![16, 0, 0, 0, 1], Why::Family, 0),
        (Link::Capture, vec![0, 0, 8, 0, 0, 3, 0, 0], Why::Link, 0x300),
        (Link::Ip, Vec::new(), Why::Truncated, 0),
    ];
    for (link, frame, why, number) in cases {
        assert_eq!(prepare(link, &frame, Tunnels::ALL), Err(NoPacket { why, number }), "{frame:02x?}");
    }
}

#[test]
fn tunnels_in_tunnels_end_where_the_stack_does() {
    let mut packet = query();
    for _ in 0..20 {
        packet = outer(4, &packet);
    }
    let prepared = prepare(Link::Ip, &packet, Tunnels::ALL).unwrap();
    assert_eq!(prepared.around.stack.layers().len(), MAX_LAYERS - 1);
    assert_eq!(prepared.ip.key.protocol, IpProtocol(4));
}

#[test]
fn a_packet_that_was_cut_off_is_read_as_far_as_it_goes() {
    let header = TcpHeader { source_port: 443, destination_port: 40_000, ..TcpHeader::default() };
    let frame = ethernet(0x0800, &ip4().tcp(header).build(&[7; 1000]));
    let prepared = prepare(Link::Ethernet, &frame[..96], Tunnels::USUAL).unwrap();
    assert_eq!((prepared.payload.len(), prepared.missing, prepared.length()), (42, 958, 1000));
    // In the middle of the transport header.
    let prepared = prepare(Link::Ethernet, &frame[..50], Tunnels::USUAL).unwrap();
    assert_eq!((prepared.payload, prepared.transport().len()), (&[][..], 16));
    // Of a packet that is there as a whole it is nonsense.
    let mut whole = ip4().tcp(header).build(&[]);
    whole[20 + 12] = 0x60;
    assert_eq!(prepare(Link::Ip, &whole, Tunnels::USUAL), Err(Why::Malformed.into()));
}

#[test]
fn a_tunnel_whose_end_was_cut_off_is_a_tunnel() {
    for (name, link, frame, stack, tunnel) in frames() {
        if tunnel.is_none() {
            continue;
        }
        // Two octets of the payload are missing.
        let prepared = prepare(link, &frame[..frame.len() - 2], Tunnels::ALL).unwrap();
        assert_eq!((prepared.payload, prepared.missing), (&b"que"[..], 2), "{name}");
        assert_eq!(prepared.around.stack.to_string(), stack, "{name}");
    }
}

#[test]
fn a_packet_without_a_length_is_as_long_as_it_is() {
    let header = TcpHeader { source_port: 443, destination_port: 40_000, ..TcpHeader::default() };
    let mut packet = ip4().tcp(header).build(&[7; 3000]);
    packet[2..4].fill(0);
    let prepared = prepare(Link::Ip, &packet, Tunnels::USUAL).unwrap();
    assert_eq!((prepared.payload.len(), prepared.missing, prepared.ip.total_len), (3000, 0, 3040));
    for length in 0..packet.len().min(80) {
        check(Link::Ip, &packet[..length]);
    }
    // A tunnel knows how long its packets are.
    let tunnelled = in_udp(2152, &PacketBuilder::new().gtpu(Teid(7)).build(&packet));
    assert_eq!(prepare(Link::Ip, &tunnelled, Tunnels::USUAL).unwrap().around.tunnel, None);
}

#[test]
fn the_stage_puts_together_what_is_fragmented_on_any_level() {
    // A fragmented packet in a GTP-U tunnel whose packets are fragmented themselves.
    let content: Vec<u8> = (0..4000u32).map(|at| (at % 251) as u8).collect();
    let inner = super::fragments::tests::cut(&ip4().udp(40_000, 53).build(&content), 1400);
    let mut stage = Preparation::new(Tunnels::USUAL, Some(Limits::default()));
    let mut seen = Vec::new();
    for fragment in inner {
        let gtpu = in_udp(2152, &PacketBuilder::new().gtpu(Teid(7)).build(&fragment));
        for outer in super::fragments::tests::cut(&gtpu, 800) {
            let frame = ethernet(0x0800, &outer);
            if let Outcome::Packet(prepared) = stage.push(Link::Ethernet, &frame, Nanos(1)) {
                seen.push((prepared.payload.to_vec(), prepared.around.stack.to_string()));
            }
        }
    }
    assert_eq!(seen, [(content, "ethernet/fragments/ipv4/gtp-u/fragments/ipv4".to_owned())]);
    assert_eq!((stage.counters().frames, stage.counters().packets), (6, 1));
    assert_eq!(stage.fragments().map(Fragments::len), Some(0));
}

#[test]
fn without_limits_for_fragments_they_are_handed_on() {
    let fragments = super::fragments::tests::cut(&ip4().udp(40_000, 53).build(&[7; 2000]), 1400);
    let mut stage = Preparation::new(Tunnels::USUAL, None);
    let tunnel = Some(Tunnel { layer: Layer::GtpU, id: 9 });
    let Outcome::Packet(later) = stage.push_from(tunnel, &fragments[1], Nanos(0)) else {
        panic!("no packet")
    };
    assert_eq!((later.ip.fragment.map(|it| it.offset), later.around.tunnel), (Some(1400), tunnel));
}

#[test]
fn frames_cut_off_anywhere_are_harmless() {
    for (_, link, frame, ..) in frames() {
        for length in 0..frame.len() {
            check(link, &frame[..length]);
        }
    }
}

fn check(link: Link, frame: &[u8]) {
    for tunnels in [Tunnels::ALL, Tunnels::NONE] {
        if let Ok(prepared) = prepare(link, frame, tunnels) {
            let within = frame.as_ptr_range();
            for part in [prepared.packet, prepared.payload, prepared.transport()] {
                assert!(part.is_empty() || within.contains(&part.as_ptr()));
            }
            assert_eq!(
                prepared.packet.len() + usize::from(prepared.missing),
                usize::from(prepared.ip.total_len)
            );
        }
    }
}

proptest! {
    #[test]
    fn frames_with_changed_octets_are_harmless(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let frames = frames();
        let (_, link, frame, ..) = which.get(&frames);
        let mut frame = frame.clone();
        for (at, octet) in changes {
            let at = at.index(frame.len());
            frame[at] = octet;
        }
        check(*link, &frame);
        check(*link, &frame[..cut.index(frame.len())]);
    }

    #[test]
    fn layers_of_any_kind_in_any_order_are_looked_through(
        inner in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        link in any::<prop::sample::Index>(),
        change in any::<Option<(prop::sample::Index, u8)>>(),
    ) {
        let query = query();
        let tunnels: [Wrap; 8] = [
            |inside| outer(4, inside),
            |inside| outer(47, &[&[0x30, 0, 8, 0, 0, 0, 0, 5, 0, 0, 0, 1][..], inside].concat()),
            |inside| outer(97, &[&[0x30, 0][..], &ethernet(0x0800, inside)].concat()),
            |inside| outer(137, &[&[0, 1, 1, 64][..], inside].concat()),
            |inside| in_udp(2152, &PacketBuilder::new().gtpu(Teid(7)).gtpu_sequence(9).build(inside)),
            |inside| in_udp(4789, &[&[8, 0, 0, 0, 0, 1, 0, 0][..], &ethernet(0x0800, inside)].concat()),
            |inside| in_udp(6081, &[&[0, 0, 8, 0, 0, 0, 9, 0][..], inside].concat()),
            |inside| in_udp(1701, &[&[0, 2, 0, 3, 0, 4][..], &ppp(inside)].concat()),
        ];
        let links: [Wrap; 4] = [
            |inside| ethernet(0x0800, inside),
            |inside| ethernet(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], inside].concat()),
            |inside| ethernet(0x8847, &[&[0, 1, 1, 64][..], inside].concat()),
            |inside| ethernet(0x8864, &[&[0x11, 0, 0, 9, 0xff, 0xff, 0, 0x21][..], inside].concat()),
        ];
        let packet = inner.iter().fold(query, |packet, tunnel| tunnel.get(&tunnels)(&packet));
        let mut frame = link.get(&links)(&packet);
        let prepared = prepare(Link::Ethernet, &frame, Tunnels::ALL).unwrap();
        // A link has three layers at most, and a tunnel as many with the packet in it: twelve in all.
        prop_assert_eq!(prepared.payload, b"query");
        if let Some((at, octet)) = change {
            let at = at.index(frame.len());
            frame[at] = octet;
            check(Link::Ethernet, &frame);
        }
    }

    #[test]
    fn random_octets_are_harmless(link in 0u32..300, frame in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(link) = Link::of_pcap(link) {
            check(link, &frame);
        }
    }

    #[test]
    fn etherparse_finds_the_same_in_plain_frames(
        tags in 0..3usize,
        v6 in any::<bool>(),
        tcp in any::<bool>(),
        content in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut builder = PacketBuilder::new().ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        for id in 0..tags {
            builder = builder.vlan(packet::VlanTag::customer(VlanId::from_wire(id as u16 + 2)));
        }
        builder = if v6 {
            builder.ipv6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
        } else {
            builder.ipv4([10, 60, 0, 1].into(), [198, 51, 100, 7].into())
        };
        builder = if tcp {
            builder.tcp(TcpHeader { source_port: 443, destination_port: 40_000, ..TcpHeader::default() })
        } else {
            builder.udp(443, 40_000)
        };
        let frame = builder.build(&content);
        let prepared = prepare(Link::Ethernet, &frame, Tunnels::USUAL).unwrap();
        let sliced = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        let (source, payload) = match sliced.transport.unwrap() {
            etherparse::TransportSlice::Tcp(tcp) => (tcp.source_port(), tcp.payload()),
            etherparse::TransportSlice::Udp(udp) => (udp.source_port(), udp.payload()),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(prepared.ip.key.ports.map(|ports| ports.source), Some(source));
        prop_assert_eq!(prepared.payload, payload);
        prop_assert_eq!(prepared.around.vlans.iter().flatten().count(), tags);
    }
}

#[test]
#[ignore = "prints times; they are compared with nothing"]
fn times() {
    let tcp = TcpHeader { source_port: 443, destination_port: 40_000, ..TcpHeader::default() };
    let plain = ip4().tcp(tcp).build(&[7; 400]);
    let gtpu = in_udp(2152, &PacketBuilder::new().gtpu(Teid(7)).build(&plain));
    for (name, frame) in [("plain", ethernet(0x0800, &plain)), ("GTP-U", ethernet(0x0800, &gtpu))] {
        let rounds = 5_000_000;
        let begin = std::time::Instant::now();
        let mut sum = 0;
        for _ in 0..rounds {
            let prepared = prepare(Link::Ethernet, std::hint::black_box(&frame), Tunnels::USUAL).unwrap();
            sum += prepared.payload.len() + std::hint::black_box(&prepared).around.stack.layers().len();
        }
        println!("{name}: {:.1} ns, {sum}", begin.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
}
