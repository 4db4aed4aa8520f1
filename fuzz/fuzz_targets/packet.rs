//! Every view, walk, change in place and emitter of `packet` on arbitrary bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::checksum::Sum;
use packet::icmpv4::Icmpv4Error;
use packet::icmpv6::Icmpv6Error;
use packet::rewrite::Side;
use packet::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fuzz_target!(|data: &[u8]| {
    link(data);
    network(data);
    transport(data);
    answers(data);
    changes(data);
});

/// From a frame inwards, as a packet is read when it arrives.
fn link(data: &[u8]) {
    let _ = ArpView::parse(data).map(|v| (v.operation(), v.sender_mac(), v.target_ip()));
    if let Ok(v) = EthernetView::parse(data) {
        let _ = (v.source(), v.destination(), v.outer_tag(), v.inner_tag(), v.ether_type());
        assert_eq!(v.header_len() + v.payload().len(), data.len());
        network(v.payload());
        let _ = ArpView::parse(v.payload()).map(|v| (v.sender_ip(), v.target_mac()));
    }
}

fn network(data: &[u8]) {
    if let Ok(v) = Ipv4View::parse(data) {
        assert_eq!(v.header_len() + v.payload().len(), v.total_len());
        let _ = (v.checksum_ok(), v.fragment());
        let payload = v.payload();
        let _ = UdpView::parse(payload).map(|u| u.checksum_ok(v.pseudo_header()));
        let _ = TcpView::parse(payload).map(|t| (t.maximum_segment_size(), t.checksum_ok(v.pseudo_header())));
        let _ = Icmpv4View::parse(payload).map(|i| (i.echo(), i.quoted(), i.mtu(), i.checksum_ok()));
        if let Ok(quoted) = Icmpv4View::parse(payload).map(|i| i.quoted())
            && let Some(quoted) = quoted
        {
            let _ = Ipv4View::parse_quoted(quoted).map(|q| q.payload().len());
        }
    }
    let _ = Ipv4View::parse_quoted(data).map(|v| v.pseudo_header());
    if let Ok(v) = Ipv6View::parse(data) {
        assert_eq!(ipv6::HEADER_LEN + v.payload().len(), v.total_len());
        if let Ok(upper) = v.upper_layer() {
            assert_eq!(upper.extensions_len + upper.payload.len(), v.payload_len());
            let pseudo = v.pseudo_header(upper.protocol, upper.payload.len());
            let _ = UdpView::parse(upper.payload).map(|u| u.checksum_ok(pseudo));
            if let Ok(icmp) = Icmpv6View::parse(upper.payload) {
                let _ = (icmp.echo(), icmp.quoted(), icmp.mtu());
                let _ = ndp::parse(&v, &icmp);
            }
        }
    }
    let _ = Ipv6View::parse_quoted(data).map(|v| v.upper_layer().is_ok());
    if let Ok(p) = IpPacket::parse(data) {
        let _ = p.dscp();
    }
}

fn transport(data: &[u8]) {
    let _ = UdpView::parse(data).map(|v| v.checksum_ok(Sum::ZERO));
    let _ = TcpView::parse(data).map(|v| (v.maximum_segment_size(), v.checksum_ok(Sum::ZERO)));
    let _ = Icmpv4View::parse(data).map(|v| (v.echo(), v.quoted(), v.mtu(), v.checksum_ok()));
    let _ = Icmpv6View::parse(data).map(|v| (v.echo(), v.quoted(), v.mtu()));
    let _ = rewrite::ports(data);
}

/// An error about any packet is a packet whose checksums are right.
fn answers(data: &[u8]) {
    let mut out = Vec::new();
    icmpv4::emit_error(&mut out, Ipv4Addr::LOCALHOST, Icmpv4Error::TimeExceeded, data);
    if !out.is_empty() {
        let ip = Ipv4View::parse(&out).expect("an ICMP error is a packet");
        assert!(ip.checksum_ok());
        assert!(Icmpv4View::parse(ip.payload()).is_ok_and(|icmp| icmp.checksum_ok()));
    }
    out.clear();
    icmpv6::emit_error(&mut out, Ipv6Addr::LOCALHOST, Icmpv6Error::NoRoute, data);
    if !out.is_empty() {
        let ip = Ipv6View::parse(&out).expect("an ICMPv6 error is a packet");
        let sum = ip.pseudo_header(IpProtocol::ICMPV6, ip.payload().len());
        assert!(sum.bytes(ip.payload()).is_valid());
    }
}

/// Changes in place keep the length, and keep a right checksum right.
fn changes(data: &[u8]) {
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

    if let Ok(before) = Ipv4View::parse(data)
        && before.checksum_ok()
    {
        let mut copy = data.to_vec();
        let _ = rewrite::set_ipv4(&mut copy, Side::Source, Ipv4Addr::new(192, 0, 2, 77));
        rewrite::decrement_ttl(&mut copy);
        let after = Ipv4View::parse(&copy).expect("a packet stays one");
        assert!(after.checksum_ok(), "{:02x?} became {:02x?}", &data[..20], &copy[..20]);
        assert_eq!(after.total_len(), before.total_len());
        let transport_was_ok = UdpView::parse(before.payload())
            .is_ok_and(|u| u.checksum() != 0 && u.checksum_ok(before.pseudo_header()));
        if before.protocol() == IpProtocol::UDP && before.fragment().is_none() && transport_was_ok {
            let udp = UdpView::parse(after.payload()).expect("a datagram stays one");
            assert!(udp.checksum_ok(after.pseudo_header()));
        }
    }
}
