//! What holds for all packets: what is built is read back, etherparse reads the same, and nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use packet::checksum::{self, Sum};
use packet::gtpu::{ExtensionType, MessageType};
use packet::icmpv4::{Echo, Icmpv4Error};
use packet::icmpv6::Icmpv6Error;
use packet::ipv4::Ipv4Header;
use packet::ipv6::Ipv6Header;
use packet::pdu_session::{Downlink, Timestamps, Uplink};
use packet::rewrite::Side;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn payload() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn v4_header() -> impl Strategy<Value = Ipv4Header> {
    let addresses = (any::<Ipv4Addr>(), any::<Ipv4Addr>());
    (addresses, any::<(u8, u8, u16, bool)>()).prop_map(
        |((source, destination), (tos, ttl, identification, df))| Ipv4Header {
            source,
            destination,
            tos,
            ttl,
            identification,
            dont_fragment: df,
            ..Ipv4Header::default()
        },
    )
}

fn v6_header() -> impl Strategy<Value = Ipv6Header> {
    let addresses = (any::<Ipv6Addr>(), any::<Ipv6Addr>());
    (addresses, any::<(u8, u8)>(), 0..1_u32 << 20).prop_map(
        |((source, destination), (traffic_class, hop_limit), flow_label)| Ipv6Header {
            source,
            destination,
            traffic_class,
            hop_limit,
            flow_label,
            ..Ipv6Header::default()
        },
    )
}

fn tcp_header() -> impl Strategy<Value = TcpHeader> {
    any::<(u16, u16, u32, u32, u8, u16)>().prop_map(
        |(source_port, destination_port, sequence, ack, flags, window)| TcpHeader {
            source_port,
            destination_port,
            sequence,
            acknowledgement: ack,
            flags: TcpFlags(flags),
            window,
        },
    )
}

#[derive(Clone, Debug)]
enum Transport {
    Udp(u16, u16),
    Tcp(TcpHeader, Vec<u8>),
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        any::<(u16, u16)>().prop_map(|(s, d)| Transport::Udp(s, d)),
        (tcp_header(), vec(any::<u8>(), 0..40)).prop_map(|(h, o)| Transport::Tcp(h, o)),
    ]
}

fn add(builder: PacketBuilder, transport: &Transport) -> PacketBuilder {
    match transport {
        Transport::Udp(s, d) => builder.udp(*s, *d),
        Transport::Tcp(h, o) => builder.tcp(*h).options(o),
    }
}

fn container() -> impl Strategy<Value = PduSession> {
    let opt24 = || option::of(0..1_u32 << 24);
    let opt32 = || option::of(any::<u32>());
    let down = (any::<(u8, bool)>(), option::of(0..8_u8), option::of(any::<u64>()), opt24(), opt32())
        .prop_map(|((qfi, rqi), ppi, sending_time, sequence, mbs_sequence)| {
            PduSession::Downlink(Downlink {
                qfi: Qfi::from_wire(qfi),
                rqi,
                ppi,
                sending_time,
                sequence,
                mbs_sequence,
            })
        });
    let times = option::of(any::<(u64, u64, u64)>());
    let up = (any::<u8>(), times, (opt32(), opt32(), opt32(), opt32()), opt24()).prop_map(
        |(qfi, times, (downlink_delay, uplink_delay, n3n9_delay, d1_pdcp_delay), sequence)| {
            PduSession::Uplink(Uplink {
                qfi: Qfi::from_wire(qfi),
                times: times.map(|(downlink_sent, downlink_received, uplink_sent)| Timestamps {
                    downlink_sent,
                    downlink_received,
                    uplink_sent,
                }),
                downlink_delay,
                uplink_delay,
                sequence,
                n3n9_delay,
                d1_pdcp_delay,
            })
        },
    );
    prop_oneof![down, up]
}

/// Everything that reads bytes, on the same bytes.
fn read_everything(data: &[u8]) {
    if let Ok(v) = EthernetView::parse(data) {
        let _ = (v.source(), v.destination(), v.outer_tag(), v.inner_tag(), v.ether_type());
        assert_eq!(v.header_len() + v.payload().len(), data.len());
    }
    let _ = ArpView::parse(data).map(|v| (v.operation(), v.sender_mac(), v.target_ip()));
    if let Ok(v) = Ipv4View::parse(data) {
        assert_eq!(v.header_len() + v.payload().len(), v.total_len());
        let _ = (v.checksum_ok(), v.pseudo_header(), v.fragment());
    }
    let _ = Ipv4View::parse_quoted(data).map(|v| v.pseudo_header());
    if let Ok(v) = Ipv6View::parse(data) {
        assert_eq!(ipv6::HEADER_LEN + v.payload().len(), v.total_len());
        if let Ok(upper) = v.upper_layer() {
            assert_eq!(upper.extensions_len + upper.payload.len(), v.payload_len());
            if let Ok(icmp) = Icmpv6View::parse(upper.payload) {
                let _ = ndp::parse(&v, &icmp);
            }
        }
    }
    let _ = Ipv6View::parse_quoted(data).map(|v| v.upper_layer().is_ok());
    let _ = UdpView::parse(data).map(|v| v.checksum_ok(Sum::ZERO));
    let _ = TcpView::parse(data).map(|v| (v.maximum_segment_size(), v.checksum_ok(Sum::ZERO)));
    let _ = Icmpv4View::parse(data).map(|v| (v.echo(), v.quoted(), v.mtu(), v.checksum_ok()));
    let _ = Icmpv6View::parse(data).map(|v| (v.echo(), v.quoted(), v.mtu()));
    if let Ok(v) = GtpuView::parse(data) {
        let _ = (v.sequence(), v.n_pdu_number(), v.not_comprehended(&[]));
        if let Ok(container) = v.pdu_session() {
            assert_eq!(v.qfi().unwrap(), container.map(|c| c.qfi()));
        }
        let chain: usize = v.extensions().map(|e| e.content.len() + 2).sum();
        assert!(chain == 0 || chain + gtpu::LONG_HEADER_LEN == v.header_len());
        let length = usize::from(u16::from_be_bytes([data[2], data[3]]));
        assert_eq!(v.header_len() + v.payload().len(), gtpu::HEADER_LEN + length);
    }
    assert!(gtpu_message::elements(data).count() <= data.len());
    let _ = gtpu_message::ErrorIndication::parse(data);
    let _ = PduSession::parse(data);
    let _ = IpPacket::parse(data).map(|p| p.dscp());
    let _ = rewrite::ports(data);
    let mut out = Vec::new();
    icmpv4::emit_error(&mut out, Ipv4Addr::LOCALHOST, Icmpv4Error::TimeExceeded, data);
    icmpv6::emit_error(&mut out, Ipv6Addr::LOCALHOST, Icmpv6Error::NoRoute, data);
    let mut copy = data.to_vec();
    icmpv4::echo_reply_in_place(&mut copy);
    icmpv6::echo_reply_in_place(&mut copy);
    tcp::clamp_mss(&mut copy, 1000);
    udp::fill_checksum(&mut copy, Sum::ZERO);
    tcp::fill_checksum(&mut copy, Sum::ZERO);
    ethernet::swap_addresses(&mut copy);
    rewrite::decrement_ttl(&mut copy);
    let _ = rewrite::set_ipv4(&mut copy, Side::Source, Ipv4Addr::LOCALHOST);
    let _ = rewrite::set_ipv6(&mut copy, Side::Destination, Ipv6Addr::LOCALHOST);
    let _ = rewrite::set_port(&mut copy, Side::Source, 1);
    assert_eq!(copy.len(), data.len());
}

/// Whether all checksums that a packet (from its IP header on) has are right.
fn adds_up(packet: &[u8]) -> bool {
    let (pseudo, protocol, payload) = if packet[0] >> 4 == 4 {
        let ip = Ipv4View::parse(packet).unwrap();
        if !ip.checksum_ok() {
            return false;
        }
        (ip.pseudo_header(), ip.protocol(), ip.payload())
    } else {
        let ip = Ipv6View::parse(packet).unwrap();
        let upper = ip.upper_layer().unwrap();
        (ip.pseudo_header(upper.protocol, upper.payload.len()), upper.protocol, upper.payload)
    };
    match protocol {
        IpProtocol::UDP => {
            let udp = UdpView::parse(payload).unwrap();
            udp.checksum() != 0 && udp.checksum_ok(pseudo)
        }
        IpProtocol::TCP => TcpView::parse(payload).unwrap().checksum_ok(pseudo),
        IpProtocol::ICMPV4 => Icmpv4View::parse(payload).unwrap().checksum_ok(),
        IpProtocol::ICMPV6 => pseudo.bytes(payload).is_valid(),
        other => panic!("{other}"),
    }
}

/// The sum as RFC 1071 defines it: 16-bit words, one at a time.
fn naive_sum(data: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for word in data.chunks(2) {
        sum += u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(data in vec(any::<u8>(), 0..300)) {
        read_everything(&data);
    }

    /// Arbitrary bytes seldom get past a version field: these are packets with a few octets changed or cut off.
    #[test]
    fn damaged_packets_never_panic(
        v4 in v4_header(), v6 in v6_header(), container in container(), inner in transport(), data in payload(),
        damage in vec(any::<(prop::sample::Index, u8)>(), 0..6), cut: prop::sample::Index,
        at in prop::sample::select(vec![0_usize, 14, 34, 42, 62]),
    ) {
        let builder = PacketBuilder::new()
            .ethernet(MacAddr::BROADCAST, MacAddr::ZERO)
            .ipv4_header(v4)
            .udp(GTP_U_PORT, GTP_U_PORT)
            .gtpu(Teid(1))
            .pdu_session(&container)
            .ipv6_header(v6)
            .ipv6_extension(IpProtocol::HOP_BY_HOP, &[1, 4, 0, 0, 0, 0])
            .ipv6_extension(IpProtocol::ROUTING, &[0; 6]);
        let mut bytes = add(builder, &inner).build(&data);
        for (index, value) in damage {
            let i = index.index(bytes.len());
            bytes[i] = value;
        }
        bytes.truncate(1 + cut.index(bytes.len()));
        read_everything(bytes.get(at..).unwrap_or_default());
    }

    #[test]
    fn sum_is_what_rfc_1071_says(data in vec(any::<u8>(), 0..2000)) {
        let fold = Sum::ZERO.bytes(&data).fold();
        prop_assert_eq!(fold, naive_sum(&data));
    }

    #[test]
    fn sum_of_pieces_is_the_sum(data in vec(any::<u8>(), 0..200), at: prop::sample::Index) {
        let (a, b) = data.split_at(at.index(data.len() + 1) & !1);
        let apart = Sum::ZERO.bytes(a).and(Sum::ZERO.bytes(b));
        prop_assert_eq!(apart.fold(), Sum::ZERO.bytes(&data).fold());
    }

    #[test]
    fn incremental_update_equals_a_fresh_sum(mut data in vec(any::<u8>(), 22..64), at in 0..3_usize, new: u128) {
        data[20] = 1; // a real header is never all zero
        let before = Sum::ZERO.bytes(&data).finish();
        let at = at * 2;
        let old: [u8; 16] = data[at..at + 16].try_into().unwrap();
        let fresh = |n: usize| {
            let mut changed = data.clone();
            changed[at..at + n].copy_from_slice(&new.to_be_bytes()[..n]);
            Sum::ZERO.bytes(&changed).finish()
        };
        let old = u128::from_be_bytes(old);
        prop_assert_eq!(checksum::update_u16(before, (old >> 112) as u16, (new >> 112) as u16), fresh(2));
        prop_assert_eq!(checksum::update_u32(before, (old >> 96) as u32, (new >> 96) as u32), fresh(4));
        prop_assert_eq!(checksum::update_u128(before, old, new), fresh(16));
    }

    /// What PacketBuilder writes, etherparse reads, and its own serialisation is the same octet for octet.
    #[test]
    fn etherparse_agrees_on_ipv4(
        h in v4_header(), options in vec(any::<u8>(), 0..=40), t in transport(), data in payload(),
        tags in vec(any::<(bool, u16)>(), 0..=2),
    ) {
        let mut builder = PacketBuilder::new().ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        for (service, id) in &tags {
            let id = VlanId::from_wire(*id);
            builder = builder.vlan(if *service { VlanTag::service(id) } else { VlanTag::customer(id) });
        }
        let mut frame = add(builder.ipv4_header(h).options(&options), &t).build(&data);
        let exact = frame.len();
        frame.resize(exact.max(60), 0);
        let theirs = SlicedPacket::from_ethernet(&frame).unwrap();
        let ours = EthernetView::parse(&frame).unwrap();
        let ids: Vec<_> = [ours.outer_tag(), ours.inner_tag()].iter().flatten().map(|t| t.id.get()).collect();
        let wanted: Vec<_> = tags.iter().map(|t| t.1 & 0xfff).collect();
        prop_assert_eq!(&ids, &wanted);
        prop_assert_eq!(theirs.vlan_ids().iter().map(|v| v.value()).collect::<Vec<_>>(), wanted);

        let ip = Ipv4View::parse(ours.payload()).unwrap();
        let Some(NetSlice::Ipv4(net)) = &theirs.net else { panic!("not IPv4") };
        let header = net.header();
        prop_assert_eq!(header.to_header().calc_header_checksum(), ip.checksum());
        prop_assert!(ip.checksum_ok());
        prop_assert_eq!(header.source_addr(), ip.source());
        prop_assert_eq!(header.destination_addr(), ip.destination());
        prop_assert_eq!(header.ttl(), ip.ttl());
        prop_assert_eq!(header.dcp().value(), ip.dscp().get());
        prop_assert_eq!(header.dont_fragment(), ip.dont_fragment());
        prop_assert_eq!(header.options(), ip.options());
        prop_assert_eq!(net.payload().payload, ip.payload());
        prop_assert!(adds_up(ours.payload()));

        match theirs.transport {
            Some(TransportSlice::Udp(theirs)) => {
                let udp = UdpView::parse(ip.payload()).unwrap();
                let sum = theirs.to_header().calc_checksum_ipv4(&header.to_header(), theirs.payload()).unwrap();
                prop_assert_eq!(sum, udp.checksum());
                prop_assert_eq!(udp.payload(), &data[..]);
            }
            Some(TransportSlice::Tcp(theirs)) => {
                let tcp = TcpView::parse(ip.payload()).unwrap();
                prop_assert_eq!(theirs.to_header().calc_checksum_ipv4(&header.to_header(), theirs.payload()).unwrap(), tcp.checksum());
                prop_assert_eq!(theirs.sequence_number(), tcp.sequence());
                prop_assert_eq!(theirs.acknowledgment_number(), tcp.acknowledgement());
                prop_assert_eq!(theirs.window_size(), tcp.window());
                prop_assert_eq!(theirs.syn(), tcp.flags().contains(TcpFlags::SYN));
                prop_assert_eq!(theirs.options(), tcp.options());
                prop_assert_eq!(tcp.payload(), &data[..]);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn etherparse_agrees_on_ipv6(h in v6_header(), hop_by_hop: bool, t in transport(), data in payload()) {
        let mut builder = PacketBuilder::new().ipv6_header(h);
        if hop_by_hop {
            builder = builder.ipv6_extension(IpProtocol::HOP_BY_HOP, &[1, 10]);
        }
        let packet = add(builder, &t).build(&data);
        let theirs = SlicedPacket::from_ip(&packet).unwrap();
        let Some(NetSlice::Ipv6(net)) = &theirs.net else { panic!("not IPv6") };
        let ip = Ipv6View::parse(&packet).unwrap();
        prop_assert_eq!(net.header().source_addr(), ip.source());
        prop_assert_eq!(net.header().destination_addr(), ip.destination());
        prop_assert_eq!(net.header().traffic_class(), ip.traffic_class());
        prop_assert_eq!(net.header().flow_label().value(), ip.flow_label());
        prop_assert_eq!(net.header().hop_limit(), ip.hop_limit());
        let upper = ip.upper_layer().unwrap();
        prop_assert_eq!(net.payload().payload, upper.payload);
        prop_assert_eq!(net.payload().ip_number.0, upper.protocol.0);
        let header = net.header().to_header();
        match theirs.transport {
            Some(TransportSlice::Udp(theirs)) => {
                let sum = theirs.to_header().calc_checksum_ipv6(&header, theirs.payload()).unwrap();
                prop_assert_eq!(sum, UdpView::parse(upper.payload).unwrap().checksum());
            }
            Some(TransportSlice::Tcp(theirs)) => {
                let sum = theirs.to_header().calc_checksum_ipv6(&header, theirs.payload()).unwrap();
                prop_assert_eq!(sum, TcpView::parse(upper.payload).unwrap().checksum());
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(adds_up(&packet));
    }

    #[test]
    fn tunnels_round_trip(
        teid: u32, sequence in option::of(any::<u16>()), container in option::of(container()), zero_sum: bool,
        extra in option::of(vec(any::<u8>(), 0..20)), inner in v4_header(), t in transport(), data in payload(),
        (s, d) in any::<(Ipv6Addr, Ipv6Addr)>(),
    ) {
        let user = add(PacketBuilder::new().ipv4_header(inner), &t).build(&data);
        let builder = PacketBuilder::new().ipv6(s, d);
        let builder = if zero_sum { builder.udp_without_checksum(2152, 2152) } else { builder.udp(2152, 2152) };
        let mut builder = builder.gtpu(Teid(teid));
        if let Some(number) = sequence {
            builder = builder.gtpu_sequence(number);
        }
        if let Some(content) = &extra {
            builder = builder.gtpu_extension(ExtensionType::SERVICE_CLASS_INDICATOR, content);
        }
        if let Some(container) = &container {
            builder = builder.pdu_session(container);
        }
        let packet = builder.build(&user);
        let ip = Ipv6View::parse(&packet).unwrap();
        let udp = UdpView::parse(ip.payload()).unwrap();
        prop_assert_eq!(udp.checksum() == 0, zero_sum);
        prop_assert!(udp.checksum_ok(ip.pseudo_header(IpProtocol::UDP, udp.len())));
        let gtpu = GtpuView::parse(udp.payload()).unwrap();
        prop_assert_eq!(gtpu.message_type(), MessageType::G_PDU);
        prop_assert_eq!(gtpu.teid(), Teid(teid));
        prop_assert_eq!(gtpu.sequence(), sequence);
        prop_assert_eq!(gtpu.pdu_session().unwrap(), container);
        prop_assert_eq!(gtpu.qfi().unwrap(), container.map(|c| c.qfi()));
        prop_assert_eq!(gtpu.extensions().count(), usize::from(extra.is_some()) + usize::from(container.is_some()));
        prop_assert_eq!(gtpu.payload(), &user[..]);
        prop_assert!(adds_up(gtpu.payload()));
    }

    #[test]
    fn translation_keeps_checksums(
        v4 in v4_header(), v6 in v6_header(), t in transport(), data in payload(), new4: Ipv4Addr, new6: Ipv6Addr,
        port: u16, source: bool, identifier: u16,
    ) {
        let side = if source { Side::Source } else { Side::Destination };
        let echo = Echo { request: true, identifier, sequence: 1 };
        for base in [PacketBuilder::new().ipv4_header(v4), PacketBuilder::new().ipv6_header(v6)] {
            let with_echo = if base.build(b"")[0] >> 4 == 4 {
                base.clone().icmpv4_echo(echo)
            } else {
                base.clone().icmpv6_echo(echo)
            };
            for builder in [add(base, &t), with_echo] {
                let mut packet = builder.build(&data);
                let before = IpPacket::parse(&packet).unwrap();
                if before.key.source.is_ipv4() {
                    rewrite::set_ipv4(&mut packet, side, new4).unwrap();
                } else {
                    rewrite::set_ipv6(&mut packet, side, new6).unwrap();
                }
                prop_assert!(adds_up(&packet));
                prop_assert_eq!(rewrite::set_port(&mut packet, side, port), Ok(true));
                prop_assert!(adds_up(&packet));
                let after = IpPacket::parse(&packet).unwrap();
                let new: IpAddr = if before.key.source.is_ipv4() { new4.into() } else { new6.into() };
                prop_assert_eq!(if source { after.key.source } else { after.key.destination }, new);
                let ports = rewrite::ports(&packet).unwrap().unwrap();
                prop_assert_eq!(if source { ports.source } else { ports.destination }, port);
                let octet = (port >> 8) as u8;
                rewrite::set_tos(&mut packet, octet).unwrap();
                prop_assert!(adds_up(&packet));
                let after = IpPacket::parse(&packet).unwrap();
                prop_assert_eq!((after.tos, after.flow_label), (octet, before.flow_label));
                if before.ttl > 1 {
                    prop_assert_eq!(rewrite::decrement_ttl(&mut packet), Some(before.ttl - 1));
                    prop_assert!(adds_up(&packet));
                } else {
                    prop_assert_eq!(rewrite::decrement_ttl(&mut packet), None);
                }
            }
        }
    }

    #[test]
    fn header_setters_keep_checksum_and_neighbours(h in v4_header(), v6 in v6_header(), dscp in 0..64_u8, ttl: u8, word: u16) {
        let mut header = [0; 20];
        ipv4::emit_header(&mut header, &h, 0);
        let dscp = Dscp::new(dscp).unwrap();
        ipv4::set_dscp(&mut header, dscp);
        ipv4::set_ttl(&mut header, ttl);
        ipv4::set_identification(&mut header, word);
        let ip = Ipv4View::parse(&header).unwrap();
        prop_assert!(ip.checksum_ok());
        prop_assert_eq!((ip.dscp(), ip.ecn(), ip.ttl(), ip.identification()), (dscp, h.tos & 3, ttl, word));
        prop_assert_eq!(ip.protocol(), h.protocol);

        let mut header = [0; 40];
        ipv6::emit_header(&mut header, &v6, 0);
        ipv6::set_dscp(&mut header, dscp);
        let ip = Ipv6View::parse(&header).unwrap();
        prop_assert_eq!((ip.dscp(), ip.ecn(), ip.flow_label()), (dscp, v6.traffic_class & 3, v6.flow_label));
    }
}
