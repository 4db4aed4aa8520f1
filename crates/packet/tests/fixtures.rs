//! Literal bytes for each protocol, in and out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::gtpu::{ExtensionType, MessageType};
use packet::gtpu_message::{Element, ErrorIndication, elements};
use packet::icmpv4::{Echo, Icmpv4Error};
use packet::icmpv6::Icmpv6Error;
use packet::ndp::{self, Message, NdpOption};
use packet::pdu_session::{Downlink, Timestamps, Uplink};
use packet::rewrite::Side;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::*;

const A: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0xaa]);
const B: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0xbb]);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// The IPv4 header that Wikipedia and many textbooks use for checksums: b861.
const TEXTBOOK: &str = "45 00 00 73 00 00 40 00 40 11 b8 61 c0 a8 00 01 c0 a8 00 c7";

#[test]
fn ethernet_and_tags() {
    let frame = hex("0200000000aa 0200000000bb 88a8 6064 8100 3fff 86dd 01");
    let view = EthernetView::parse(&frame).unwrap();
    assert_eq!((view.destination(), view.source()), (A, B));
    assert_eq!(view.ether_type(), EtherType::IPV6);
    assert_eq!(view.header_len(), 22);
    assert_eq!(view.payload(), [1]);
    let outer = view.outer_tag().unwrap();
    assert_eq!(
        (outer.tpid, outer.priority, outer.drop_eligible, outer.id.get()),
        (EtherType::QINQ, 3, false, 100)
    );
    let inner = view.inner_tag().unwrap();
    assert_eq!((inner.priority, inner.drop_eligible, inner.id.get()), (1, true, 4095));
    assert_eq!(inner.tci(), 0x3fff);

    assert_eq!(EthernetView::parse(&frame[..13]).unwrap_err(), Malformed::Truncated(Layer::Ethernet));
    assert_eq!(EthernetView::parse(&frame[..21]).unwrap_err(), Malformed::Truncated(Layer::Vlan));

    let mut header = [0; 18];
    ethernet::emit_tagged_header(
        &mut header,
        A,
        B,
        VlanTag::customer(VlanId::new(100).unwrap()),
        EtherType::IPV4,
    );
    assert_eq!(header.to_vec(), hex("0200000000aa 0200000000bb 8100 0064 0800"));
    assert!(ethernet::swap_addresses(&mut header));
    assert_eq!(header[..12].to_vec(), hex("0200000000bb 0200000000aa"));

    // A third tag is not looked through.
    let deep = hex("0200000000aa 0200000000bb 8100 0001 8100 0002 8100 0003 0800");
    assert_eq!(EthernetView::parse(&deep).unwrap().ether_type(), EtherType::VLAN);
}

#[test]
fn arp_question_and_answer() {
    let mut request = [0; arp::LEN];
    arp::emit_request(&mut request, A, [192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    assert_eq!(request.to_vec(), hex("0001 0800 06 04 0001 0200000000aa c0000201 000000000000 c0000202"));
    let view = ArpView::parse(&request).unwrap();
    assert_eq!(view.operation(), arp::Operation::Request);
    let mut reply = [0; arp::LEN];
    arp::emit_reply(&mut reply, B, &view);
    assert_eq!(reply.to_vec(), hex("0001 0800 06 04 0002 0200000000bb c0000202 0200000000aa c0000201"));
    assert_eq!(ArpView::parse(&reply).unwrap().target_mac(), A);
    request[1] = 6; // IEEE 802 networks: not ours
    assert_eq!(ArpView::parse(&request).unwrap_err(), Malformed::Field(Layer::Arp));
}

#[test]
fn ipv4_textbook_header() {
    let mut bytes = hex(TEXTBOOK);
    bytes.resize(0x73 + 9, 0xee); // Ethernet padding behind the packet
    let ip = Ipv4View::parse(&bytes).unwrap();
    assert!(ip.checksum_ok());
    assert_eq!(ip.payload().len(), 0x73 - 20);
    assert_eq!((ip.source(), ip.destination()), ([192, 168, 0, 1].into(), [192, 168, 0, 199].into()));
    assert!(ip.dont_fragment());
    assert_eq!(ip.fragment(), None);

    let mut header = [0; 20];
    let fields = ipv4::Ipv4Header {
        source: ip.source(),
        destination: ip.destination(),
        dont_fragment: true,
        ..Default::default()
    };
    ipv4::emit_header(&mut header, &fields, 0x73 - 20);
    assert_eq!(header.to_vec(), hex(TEXTBOOK));
    assert_eq!(checksum::ipv4_header(&header), 0xb861);
}

#[test]
fn ipv4_lies() {
    let good = {
        let mut b = hex(TEXTBOOK);
        b.resize(0x73, 0);
        b
    };
    let with = |at: usize, value: u8| {
        let mut b = good.clone();
        b[at] = value;
        Ipv4View::parse(&b).err()
    };
    assert_eq!(Ipv4View::parse(&good[..19]).err(), Some(Malformed::Truncated(Layer::Ipv4)));
    assert_eq!(with(0, 0x65), Some(Malformed::Version(Layer::Ipv4)));
    assert_eq!(with(0, 0x44), Some(Malformed::HeaderLength(Layer::Ipv4)));
    assert_eq!(with(3, 19), Some(Malformed::TotalLength(Layer::Ipv4)));
    assert_eq!(with(3, 0x74), Some(Malformed::TotalLength(Layer::Ipv4)));
    assert_eq!(
        Ipv4View::parse(&hex("4f00003c 00000000 4011 0000 c0a80001 c0a80002 01010101")).err(),
        Some(Malformed::HeaderLength(Layer::Ipv4))
    );
    assert_eq!(Ipv4View::parse_quoted(&good[..28]).unwrap().payload().len(), 8);
}

#[test]
fn ipv4_fragment_fields() {
    let header = |field: u16| {
        let mut h = [0; 20];
        let fields = ipv4::Ipv4Header {
            identification: 7,
            more_fragments: field & 0x2000 != 0,
            fragment_offset: field & 0x1fff,
            ..Default::default()
        };
        ipv4::emit_header(&mut h, &fields, 0);
        Ipv4View::parse(&h).unwrap().fragment()
    };
    assert_eq!(header(0), None);
    assert_eq!(header(0x2000), Some(Fragment { offset: 0, more: true, identification: 7 }));
    assert_eq!(header(185), Some(Fragment { offset: 1480, more: false, identification: 7 }));
}

#[test]
fn ipv4_in_place_changes_keep_the_checksum() {
    let mut header: [u8; 20] = hex(TEXTBOOK).try_into().unwrap();
    assert_eq!(ipv4::decrement_ttl(&mut header), Some(63));
    ipv4::set_dscp(&mut header, Dscp::new(46).unwrap());
    ipv4::set_total_len(&mut header, 1500);
    ipv4::set_identification(&mut header, 0xbeef);
    assert_eq!(checksum::ipv4_header(&header), u16::from_be_bytes([header[10], header[11]]));
    assert_eq!((header[8], header[1]), (63, 0xb8));
    ipv4::set_ttl(&mut header, 1);
    assert_eq!(ipv4::decrement_ttl(&mut header), None);
    assert_eq!(header[8], 1);
}

#[test]
fn ipv6_extension_headers() {
    let (src, dst): (Ipv6Addr, Ipv6Addr) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    // Hop-by-Hop (PadN), Routing with no segments left, Destination Options, then UDP.
    let bytes = hex("6a b 12345 0020 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002
         2b 00 0104 00000000  3c 00 0400 00000000  11 00 0104 00000000  1234 0035 0008 0000 ff");
    let ip = Ipv6View::parse(&bytes).unwrap();
    assert_eq!((ip.source(), ip.destination()), (src, dst));
    assert_eq!((ip.traffic_class(), ip.flow_label(), ip.hop_limit()), (0xab, 0x12345, 64));
    let upper = ip.upper_layer().unwrap();
    assert_eq!((upper.protocol, upper.extensions_len, upper.fragment), (IpProtocol::UDP, 24, None));
    assert!(!upper.segments_left);
    assert_eq!(UdpView::parse(upper.payload).unwrap().destination_port(), 53);

    let fragment = |offset, more| Fragment { offset, more, identification: 99 };
    let later = PacketBuilder::new().ipv6(src, dst).ipv6_fragment(fragment(1448, true)).udp(1, 2).build(b"");
    let upper = Ipv6View::parse(&later).unwrap().upper_layer().unwrap();
    assert_eq!(upper.fragment, Some(fragment(1448, true)));
    assert_eq!(IpPacket::parse(&later).unwrap().key.ports, None);
    let first = PacketBuilder::new().ipv6(src, dst).ipv6_fragment(fragment(0, true)).udp(1, 2).build(b"");
    assert_eq!(IpPacket::parse(&first).unwrap().key.ports, Some(Ports { source: 1, destination: 2 }));
    let atomic = PacketBuilder::new().ipv6(src, dst).ipv6_fragment(fragment(0, false)).udp(1, 2).build(b"");
    assert_eq!(IpPacket::parse(&atomic).unwrap().fragment, None);

    let ah =
        PacketBuilder::new().ipv6(src, dst).ipv6_extension(IpProtocol::AH, &[0; 14]).udp(1, 2).build(b"");
    let upper = Ipv6View::parse(&ah).unwrap().upper_layer().unwrap();
    assert_eq!((upper.protocol, upper.extensions_len), (IpProtocol::UDP, 16));
}

#[test]
fn ipv6_extension_chains_are_bounded() {
    let any = Ipv6Addr::LOCALHOST;
    let chain = |n| {
        let mut b = PacketBuilder::new().ipv6(any, any);
        for _ in 0..n {
            b = b.ipv6_extension(IpProtocol::DESTINATION_OPTIONS, &[]);
        }
        let bytes = b.udp(1, 2).build(b"");
        Ipv6View::parse(&bytes).unwrap().upper_layer().map(|u| u.protocol)
    };
    assert_eq!(chain(8), Ok(IpProtocol::UDP));
    assert_eq!(chain(9), Err(Malformed::TooMany(Layer::Ipv6Extension)));
    let twice = PacketBuilder::new()
        .ipv6(any, any)
        .ipv6_extension(IpProtocol::DESTINATION_OPTIONS, &[])
        .ipv6_extension(IpProtocol::HOP_BY_HOP, &[])
        .build(b"");
    let error = Ipv6View::parse(&twice).unwrap().upper_layer().unwrap_err();
    assert_eq!(error, Malformed::Field(Layer::Ipv6Extension));
}

#[test]
fn udp_lengths_and_padding() {
    let bytes = hex("0868 0868 000b 0000 616263 eeee");
    assert_eq!(UdpView::parse(&bytes).unwrap().payload(), b"abc");
    for length in ["0000", "0007", "000e"] {
        let bytes = hex(&format!("0868 0868 {length} 0000 616263 eeee"));
        assert_eq!(UdpView::parse(&bytes).unwrap_err(), Malformed::TotalLength(Layer::Udp));
    }
}

#[test]
fn tcp_syn_and_its_mss() {
    // NOP, MSS 1460: the option's value begins at an odd offset.
    for options in ["01 02 04 05b4 00 00 00", "02 04 05b4 01 01 04 02"] {
        let header = TcpHeader {
            source_port: 40000,
            destination_port: 443,
            flags: TcpFlags::SYN,
            ..Default::default()
        };
        let build = PacketBuilder::new().ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).tcp(header);
        let mut packet = build.options(&hex(options)).build(b"");
        assert!(tcp::clamp_mss(&mut packet[20..], 1360));
        assert!(!tcp::clamp_mss(&mut packet[20..], 1360));
        let ip = Ipv4View::parse(&packet).unwrap();
        let view = TcpView::parse(ip.payload()).unwrap();
        assert_eq!(view.maximum_segment_size(), Some(1360));
        assert!(view.checksum_ok(ip.pseudo_header()));
        assert_eq!(view.header_len(), 28);
    }
}

#[test]
fn icmp_echo_reply_in_place() {
    let echo = Echo { request: true, identifier: 0x1234, sequence: 7 };
    let mut ping = PacketBuilder::new()
        .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
        .icmpv4_echo(echo)
        .build(b"payload");
    assert!(icmpv4::echo_reply_in_place(&mut ping));
    let ip = Ipv4View::parse(&ping).unwrap();
    let icmp = Icmpv4View::parse(ip.payload()).unwrap();
    assert!(ip.checksum_ok() && icmp.checksum_ok());
    assert_eq!(ip.source(), Ipv4Addr::new(10, 0, 0, 2));
    assert_eq!((ip.ttl(), icmp.echo()), (64, Some(Echo { request: false, ..echo })));
    assert!(!icmpv4::echo_reply_in_place(&mut ping), "a reply is not answered");

    let mut ping =
        PacketBuilder::new().ipv6(Ipv6Addr::LOCALHOST, ndp::ALL_NODES).icmpv6_echo(echo).build(b"payload");
    ping[7] = 3;
    assert!(icmpv6::echo_reply_in_place(&mut ping));
    let ip = Ipv6View::parse(&ping).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    assert!(icmp.checksum_ok(&ip));
    assert_eq!(ip.hop_limit(), 64);
    assert_eq!((ip.destination(), icmp.echo()), (Ipv6Addr::LOCALHOST, Some(Echo { request: false, ..echo })));
}

#[test]
fn icmp_errors_quote_what_they_are_about() {
    let packet =
        PacketBuilder::new().ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2).build(&[7; 1400]);
    let mut out = Vec::new();
    assert!(icmpv4::emit_error(
        &mut out,
        [192, 0, 2, 1].into(),
        Icmpv4Error::FragmentationNeeded { mtu: 1300 },
        &packet
    ));
    assert_eq!(out.len(), 576);
    let ip = Ipv4View::parse(&out).unwrap();
    assert_eq!(ip.destination(), Ipv4Addr::new(10, 0, 0, 1));
    let icmp = Icmpv4View::parse(ip.payload()).unwrap();
    assert!(ip.checksum_ok() && icmp.checksum_ok());
    assert_eq!((icmp.kind(), icmp.code(), icmp.mtu()), (3, 4, Some(1300)));
    assert_eq!(icmp.quoted().unwrap(), &packet[..548]);
    let error = out.clone();
    assert!(!icmpv4::emit_error(&mut out, [192, 0, 2, 2].into(), Icmpv4Error::TimeExceeded, &error));
    assert_eq!(out, error, "errors are not answered with errors");

    let packet = PacketBuilder::new()
        .ipv6(Ipv6Addr::from_bits(1 << 64), Ipv6Addr::from_bits(2 << 64))
        .udp(1, 2)
        .build(&[7; 1400]);
    let mut out = Vec::new();
    assert!(icmpv6::emit_error(
        &mut out,
        Ipv6Addr::from_bits(3),
        Icmpv6Error::PacketTooBig { mtu: 1280 },
        &packet
    ));
    assert_eq!(out.len(), 1280);
    let ip = Ipv6View::parse(&out).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    assert!(icmp.checksum_ok(&ip));
    assert_eq!(icmp.mtu(), Some(1280));
    let error = out.clone();
    assert!(!icmpv6::emit_error(&mut out, Ipv6Addr::from_bits(4), Icmpv6Error::TimeExceeded, &error));
}

#[test]
fn errors_are_not_sent_about_these() {
    let v4 = |s: [u8; 4], d: [u8; 4], fragment_offset| {
        let header = ipv4::Ipv4Header {
            source: s.into(),
            destination: d.into(),
            fragment_offset,
            ..Default::default()
        };
        let packet = PacketBuilder::new().ipv4_header(header).udp(1, 2).build(b"x");
        icmpv4::emit_error(&mut Vec::new(), [192, 0, 2, 1].into(), Icmpv4Error::TimeExceeded, &packet)
    };
    assert!(v4([10, 0, 0, 1], [10, 0, 0, 2], 0));
    assert!(!v4([10, 0, 0, 1], [224, 0, 0, 1], 0));
    assert!(!v4([10, 0, 0, 1], [255, 255, 255, 255], 0));
    assert!(!v4([0, 0, 0, 0], [10, 0, 0, 2], 0));
    assert!(!v4([10, 0, 0, 1], [10, 0, 0, 2], 8));
    let packet =
        PacketBuilder::new().ipv6(Ipv6Addr::from_bits(1 << 64), ndp::ALL_NODES).udp(1, 2).build(b"x");
    let v6 = |error| icmpv6::emit_error(&mut Vec::new(), Ipv6Addr::from_bits(3), error, &packet);
    assert!(!v6(Icmpv6Error::TimeExceeded));
    assert!(v6(Icmpv6Error::PacketTooBig { mtu: 1300 }));
}

#[test]
fn neighbour_discovery() {
    let (us, them): (Ipv6Addr, Ipv6Addr) = ("fe80::1".parse().unwrap(), "2001:db8::ab:cdef".parse().unwrap());
    assert_eq!(ndp::solicited_node(them), "ff02::1:ffab:cdef".parse::<Ipv6Addr>().unwrap());
    assert_eq!(ndp::multicast_mac(ndp::solicited_node(them)), MacAddr([0x33, 0x33, 0xff, 0xab, 0xcd, 0xef]));
    let mut out = Vec::new();
    ndp::emit_neighbour_solicitation(&mut out, us, A, them);
    // Fixed header, type 135, target, source link-layer address option.
    let expected =
        hex("60000000 0020 3a ff fe800000000000000000000000000001 ff0200000000000000000001ffabcdef
         87 00 0000 00000000 20010db80000000000000000 00abcdef 01 01 0200000000aa");
    assert_eq!((&out[..42], &out[44..]), (&expected[..42], &expected[44..]));
    let read = |bytes: &[u8]| {
        let ip = Ipv6View::parse(bytes).unwrap();
        ndp::parse(&ip, &Icmpv6View::parse(ip.payload()).unwrap()).map(|m| format!("{m:?}"))
    };
    let ip = Ipv6View::parse(&out).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    let Some(Message::NeighbourSolicitation { target, options }) = ndp::parse(&ip, &icmp).unwrap() else {
        panic!()
    };
    assert_eq!((target, options.source_mac(), options.target_mac()), (them, Some(A), None));

    let mut routed = out.clone();
    routed[7] = 254;
    assert_eq!(read(&routed), Err(Malformed::Field(Layer::Ndp)), "it came from off the link");
    let mut damaged = out.clone();
    damaged[60] ^= 1;
    assert_eq!(read(&damaged), Err(Malformed::Field(Layer::Ndp)));

    let mut out = Vec::new();
    let neighbour =
        ndp::NeighbourAdvertisement { target: them, router: true, solicited: true, replace: false };
    ndp::emit_neighbour_advertisement(&mut out, us, B, &neighbour);
    let ip = Ipv6View::parse(&out).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    let Some(Message::NeighbourAdvertisement { neighbour: got, options }) = ndp::parse(&ip, &icmp).unwrap()
    else {
        panic!()
    };
    assert_eq!((got, options.target_mac(), icmp.word()), (neighbour, Some(B), 0xc000_0000));
}

#[test]
fn router_discovery() {
    let us: Ipv6Addr = "fe80::1".parse().unwrap();
    let mut out = Vec::new();
    ndp::emit_router_solicitation(&mut out, us, None);
    let ip = Ipv6View::parse(&out).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    assert!(matches!(ndp::parse(&ip, &icmp), Ok(Some(Message::RouterSolicitation { .. }))));
    assert_eq!((out.len(), ip.destination()), (48, ndp::ALL_ROUTERS));

    let prefix = ndp::PrefixInformation {
        prefix: "2001:db8:1::".parse().unwrap(),
        length: 64,
        on_link: false,
        autonomous: true,
        valid_lifetime: u32::MAX,
        preferred_lifetime: 3600,
    };
    let router =
        ndp::RouterAdvertisement { hop_limit: 64, lifetime: 1800, other: true, ..Default::default() };
    let mut out = Vec::new();
    ndp::emit_router_advertisement(&mut out, us, ndp::ALL_NODES, &router, Some(A), Some(1400), &[prefix]);
    let ip = Ipv6View::parse(&out).unwrap();
    let icmp = Icmpv6View::parse(ip.payload()).unwrap();
    let Some(Message::RouterAdvertisement { router: got, options }) = ndp::parse(&ip, &icmp).unwrap() else {
        panic!()
    };
    assert_eq!(got, router);
    let options: Vec<_> = options.collect();
    assert_eq!(options, [NdpOption::SourceLinkLayer(A), NdpOption::Mtu(1400), NdpOption::Prefix(prefix)]);
}

#[test]
fn gtpu_headers() {
    let mut header = [0; 8];
    gtpu::emit_gpdu(&mut header, Teid(0x01020304), 40);
    assert_eq!(header.to_vec(), hex("30 ff 0028 01020304"));
    let mut header = [0; 16];
    gtpu::emit_gpdu_downlink(&mut header, Teid(0x01020304), Qfi::from_wire(9), true, 40);
    assert_eq!(header.to_vec(), hex("34 ff 0030 01020304 0000 00 85 01 00 49 00"));
    gtpu::emit_gpdu_uplink(&mut header, Teid(1), Qfi::from_wire(9), 0);
    assert_eq!(header.to_vec(), hex("34 ff 0008 00000001 0000 00 85 01 10 09 00"));
    let mut marker = [0; 8];
    gtpu::emit_end_marker(&mut marker, Teid(5));
    assert_eq!(marker.to_vec(), hex("30 fe 0000 00000005"));
}

#[test]
fn gtpu_flags_and_extensions() {
    // E, S and PN; UDP Port, then PDU Session Container; two octets of payload; padding behind.
    let bytes = hex("37 ff 000e 00000007 abcd 2a 40 01 0868 85 01 10 05 00 6869 ee");
    let view = GtpuView::parse(&bytes).unwrap();
    assert_eq!((view.message_type(), view.teid()), (MessageType::G_PDU, Teid(7)));
    assert_eq!((view.sequence(), view.n_pdu_number()), (Some(0xabcd), Some(0x2a)));
    assert_eq!((view.header_len(), view.payload()), (20, &b"hi"[..]));
    let kinds: Vec<_> = view.extensions().map(|e| (e.kind, e.content.to_vec())).collect();
    let expected =
        [(ExtensionType::UDP_PORT, hex("0868")), (ExtensionType::PDU_SESSION_CONTAINER, hex("1005"))];
    assert_eq!(kinds, expected);
    assert_eq!(view.pdu_session().unwrap().unwrap().qfi().get(), 5);
    assert_eq!(view.not_comprehended(&[]), Some(ExtensionType::PDU_SESSION_CONTAINER));
    assert_eq!(
        view.not_comprehended(&[ExtensionType::PDU_SESSION_CONTAINER]),
        None,
        "0x40 need not be understood"
    );

    // Only PN: the sequence number and the next type don't count though they are there.
    let bytes = hex("31 ff 0006 00000007 abcd 2a 85 6869");
    let view = GtpuView::parse(&bytes).unwrap();
    assert_eq!((view.sequence(), view.n_pdu_number()), (None, Some(0x2a)));
    assert_eq!((view.extensions().count(), view.payload()), (0, &b"hi"[..]));
}

#[test]
fn gtpu_lies() {
    let of = |text: &str| GtpuView::parse(&hex(text)).err();
    assert_eq!(of("30 ff 0000 000000"), Some(Malformed::Truncated(Layer::Gtpu)));
    assert_eq!(of("50 ff 0000 00000000"), Some(Malformed::Version(Layer::Gtpu)), "version 2");
    assert_eq!(of("20 ff 0000 00000000"), Some(Malformed::Version(Layer::Gtpu)), "GTP'");
    assert_eq!(of("30 ff 0001 00000000"), Some(Malformed::TotalLength(Layer::Gtpu)));
    assert_eq!(of("32 ff 0003 00000000 000000"), Some(Malformed::Truncated(Layer::Gtpu)));
    assert_eq!(of("34 ff 0004 00000000 00000085"), Some(Malformed::Truncated(Layer::GtpuExtension)));
    assert_eq!(
        of("34 ff 0008 00000000 00000085 00000000"),
        Some(Malformed::HeaderLength(Layer::GtpuExtension))
    );
    assert_eq!(
        of("34 ff 0008 00000000 00000085 02000000"),
        Some(Malformed::HeaderLength(Layer::GtpuExtension))
    );
    let endless = format!("34 ff 0028 00000000 00000020 {}", "01000020".repeat(9));
    assert_eq!(of(&endless), Some(Malformed::TooMany(Layer::GtpuExtension)));
    let bytes = hex("34 ff 0008 00000000 00000085 01 2000 00");
    assert_eq!(GtpuView::parse(&bytes).unwrap().pdu_session(), Err(Malformed::Field(Layer::PduSession)));
}

#[test]
fn gtpu_messages() {
    let mut out = Vec::new();
    gtpu_message::emit_echo_request(&mut out, 0x1234);
    assert_eq!(out, hex("32 01 0004 00000000 1234 0000"));
    out.clear();
    gtpu_message::emit_echo_response(&mut out, 0x1234);
    assert_eq!(out, hex("32 02 0006 00000000 1234 0000 0e 00"));
    assert_eq!(out.len(), gtpu_message::ECHO_RESPONSE_LEN);
    out.clear();
    let error = ErrorIndication { teid: Teid(0xdeadbeef), peer: IpAddr::from([192, 0, 2, 9]) };
    gtpu_message::emit_error_indication(&mut out, 0, &error, Some(2152));
    assert_eq!(out, hex("36 1a 0014 00000000 0000 00 40 01 0868 00 10 deadbeef 85 0004 c0000209"));
    let view = GtpuView::parse(&out).unwrap();
    assert_eq!(ErrorIndication::parse(view.payload()), Ok(error));
    out.clear();
    let error = ErrorIndication { peer: Ipv6Addr::LOCALHOST.into(), ..error };
    gtpu_message::emit_error_indication(&mut out, 0, &error, None);
    assert_eq!(ErrorIndication::parse(GtpuView::parse(&out).unwrap().payload()), Ok(error));
    out.clear();
    gtpu_message::emit_supported_extensions(
        &mut out,
        3,
        &[ExtensionType::PDU_SESSION_CONTAINER, ExtensionType::UDP_PORT],
    );
    assert_eq!(out, hex("32 1f 0008 00000000 0003 0000 8d 02 85 40"));
}

#[test]
fn gtpu_elements() {
    let bytes = hex("0e 05 10 00000009 ff 0003 010203 8d 01 85");
    let read: Vec<_> = elements(&bytes).collect();
    let expected = [
        Ok(Element::Recovery(5)),
        Ok(Element::Teid(Teid(9))),
        Ok(Element::Other(255, &[1, 2, 3])),
        Ok(Element::ExtensionTypes(&[0x85])),
    ];
    assert_eq!(read, expected);
    for bad in ["7f 00", "10 000000", "85 0004 000000", "85 0005 0000000000", "8d 02 85", "0e"] {
        let bytes = hex(bad);
        let read: Vec<_> = elements(&bytes).collect();
        assert!(read.len() == 1 && read[0].is_err(), "{bad}");
    }
    assert!(ErrorIndication::parse(&hex("10 00000009")).is_err(), "both elements are mandatory");
}

#[test]
fn pdu_session_forms() {
    let qfi = Qfi::from_wire(9);
    let both = |container: PduSession, text: &str| {
        let mut out = Vec::new();
        container.emit(&mut out);
        assert_eq!(out, hex(text));
        assert_eq!(PduSession::parse(&out), Ok(container));
    };
    let down = Downlink { qfi, ..Default::default() };
    both(PduSession::Downlink(down), "00 09");
    both(PduSession::Downlink(Downlink { rqi: true, ..down }), "00 49");
    both(PduSession::Downlink(Downlink { ppi: Some(5), ..down }), "00 89 a0 000000");
    both(
        PduSession::Downlink(Downlink {
            sending_time: Some(0x0102030405060708),
            sequence: Some(0xa0b0c0),
            ppi: Some(1),
            ..down
        }),
        "0c 89 20 0102030405060708 a0b0c0",
    );
    both(PduSession::Downlink(Downlink { mbs_sequence: Some(7), ..down }), "02 09 00000007");
    let up = Uplink { qfi, ..Default::default() };
    both(PduSession::Uplink(up), "10 09");
    let times = Timestamps { downlink_sent: 1, downlink_received: 2, uplink_sent: 3 };
    both(
        PduSession::Uplink(Uplink {
            times: Some(times),
            downlink_delay: Some(4),
            uplink_delay: Some(5),
            sequence: Some(6),
            n3n9_delay: Some(7),
            d1_pdcp_delay: Some(8),
            qfi,
        }),
        "1f c9 0000000000000001 0000000000000002 0000000000000003 00000004 00000005 000006 00000007 01 00000008",
    );
    assert_eq!(PduSession::parse(&hex("08 09 00")), Err(Malformed::Truncated(Layer::PduSession)));
    assert_eq!(PduSession::parse(&hex("00")), Err(Malformed::Truncated(Layer::PduSession)));
    assert_eq!(PduSession::parse(&hex("20 09")), Err(Malformed::Field(Layer::PduSession)));
}

#[test]
fn flow_keys() {
    let (ue, dn) = (Ipv4Addr::new(10, 60, 0, 1), Ipv4Addr::new(198, 51, 100, 7));
    let packet = PacketBuilder::new().ipv4(ue, dn).options(&[1, 1, 1]).udp(40000, 53).build(b"query");
    let read = IpPacket::parse(&packet).unwrap();
    let ports = Some(Ports { source: 40000, destination: 53 });
    assert_eq!(
        read.key,
        FlowKey { source: ue.into(), destination: dn.into(), protocol: IpProtocol::UDP, ports }
    );
    assert_eq!((read.total_len, read.transport_offset), (37, 24));
    assert_eq!(read.key.reversed().ports, Some(Ports { source: 53, destination: 40000 }));
    assert_eq!(read.key.reversed().reversed(), read.key);

    let header = ipv4::Ipv4Header { source: ue, destination: dn, fragment_offset: 10, ..Default::default() };
    let later = PacketBuilder::new().ipv4_header(header).build(&[0; 8]);
    assert_eq!(IpPacket::parse(&later).unwrap().key.ports, None);
    let tiny = PacketBuilder::new().ipv4_header(ipv4::Ipv4Header {
        fragment_offset: 0,
        more_fragments: true,
        ..header
    });
    assert_eq!(IpPacket::parse(&tiny.build(&[0; 3])), Err(Malformed::Truncated(Layer::Udp)));
    assert_eq!(IpPacket::parse(&[0x50; 40]), Err(Malformed::Version(Layer::Ipv4)));
}

#[test]
fn translation_keeps_udp_without_checksum() {
    let mut packet = PacketBuilder::new()
        .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
        .udp_without_checksum(1, 2)
        .build(b"x");
    rewrite::set_ipv4(&mut packet, Side::Source, [192, 0, 2, 1].into()).unwrap();
    assert_eq!(rewrite::set_port(&mut packet, Side::Source, 5000), Ok(true));
    let ip = Ipv4View::parse(&packet).unwrap();
    assert!(ip.checksum_ok());
    let udp = UdpView::parse(ip.payload()).unwrap();
    assert_eq!((udp.checksum(), udp.source_port()), (0, 5000));
}

#[test]
fn a_udp_checksum_that_comes_to_zero_is_sent_as_ones() {
    let builder = PacketBuilder::new().ipv6(Ipv6Addr::LOCALHOST, ndp::ALL_NODES).udp(7, 9);
    let checksum_of = |packet: &[u8]| {
        let udp = UdpView::parse(&packet[40..]).unwrap();
        assert!(udp.checksum_ok(Ipv6View::parse(packet).unwrap().pseudo_header(IpProtocol::UDP, udp.len())));
        udp.checksum()
    };
    // The payload that makes up for all the rest.
    let rest = checksum_of(&builder.build(&[0, 0]));
    assert_eq!(checksum_of(&builder.build(&rest.to_be_bytes())), 0xffff);
    // The same by translation: a source port that adds what is missing.
    let mut packet = builder.build(b"translated");
    let (sum, carry) = 7_u16.overflowing_add(checksum_of(&packet));
    assert_eq!(rewrite::set_port(&mut packet, Side::Source, sum + u16::from(carry)), Ok(true));
    assert_eq!(checksum_of(&packet), 0xffff);
}

#[test]
fn sctp_ports_are_left_alone() {
    let header = ipv4::Ipv4Header { protocol: IpProtocol::SCTP, ..Default::default() };
    let mut packet = PacketBuilder::new().ipv4_header(header).build(&hex("0b59 0b59 00000001 12345678"));
    let before = packet.clone();
    assert_eq!(rewrite::set_port(&mut packet, Side::Source, 1), Ok(false));
    assert_eq!(packet, before);
    assert_eq!(rewrite::ports(&packet), Ok(Some(Ports { source: 2905, destination: 2905 })));
}
