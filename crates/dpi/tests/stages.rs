//! The first stages, one behind the other: frames of a tunnel, fragmented and out of order, become a stream.
#![allow(clippy::unwrap_used)]

use dpi::classify::Side;
use dpi::kpi::tcp;
use dpi::prepare::{Limits, Link, Outcome, Preparation, Tunnels};
use dpi::reorder::{Pushed, Ready, Reorder, Segment, Stream};
use packet::ipv4::Ipv4Header;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{IpProtocol, MacAddr, PacketBuilder, TcpView, Teid};
use tables::Nanos;

/// A frame with a fragment of what a tunnel's packet carries.
fn frame(identification: u16, offset: usize, more: bool, content: &[u8]) -> Vec<u8> {
    let header = Ipv4Header {
        source: [192, 0, 2, 1].into(),
        destination: [192, 0, 2, 2].into(),
        protocol: IpProtocol::UDP,
        identification,
        more_fragments: more,
        fragment_offset: (offset / 8) as u16,
        ..Ipv4Header::default()
    };
    let ethernet = PacketBuilder::new().ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let mut frame = ethernet.ipv4_header(header).build(content);
    frame[14 + 9] = IpProtocol::UDP.0;
    let header = &mut frame[14..34];
    header[10..12].fill(0);
    let sum = packet::checksum::ipv4_header(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn frames_become_a_stream_with_its_measures() {
    let text: Vec<u8> = (0..21_000u32).map(|at| (at % 251) as u8).collect();
    let mut frames = Vec::new();
    for (number, part) in text.chunks(1400).enumerate() {
        let header = TcpHeader {
            source_port: 443,
            destination_port: 40_000,
            sequence: (u32::MAX - 5000).wrapping_add(number as u32 * 1400),
            flags: TcpFlags::ACK,
            window: 1000,
            ..TcpHeader::default()
        };
        let user = PacketBuilder::new()
            .ipv4([198, 51, 100, 7].into(), [10, 60, 0, 1].into())
            .tcp(header)
            .build(part);
        let tunnelled = PacketBuilder::new()
            .ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
            .udp(2152, 2152)
            .gtpu(Teid(7))
            .build(&user)
            .split_off(20);
        let (first, rest) = tunnelled.split_at(800);
        let last = frame(number as u16, 800, false, rest);
        frames.extend([frame(number as u16, 0, true, first), last]);
    }
    // Pairs of packets overtake each other, with their fragments; the first one stays where it is.
    for at in (4..frames.len() - 2).step_by(6) {
        frames.swap(at, at + 3);
        frames.swap(at + 1, at + 2);
    }
    let mut preparation = Preparation::new(Tunnels::USUAL, Some(Limits::default()));
    let mut reorder = Reorder::new(dpi::reorder::Limits::default());
    let (mut stream, mut tcp, mut read) = (Stream::default(), tcp::Tcp::default(), Vec::new());
    for (at, frame) in frames.iter().enumerate() {
        let now = Nanos(at as u64 * 100_000);
        let Outcome::Packet(packet) = preparation.push(Link::Ethernet, frame, now) else { continue };
        let view = TcpView::parse(packet.transport()).unwrap();
        tcp.push(Side::Server, &tcp::Segment::of(&view, packet.length()), now);
        if let Pushed::InOrder(octets) =
            reorder.push(&mut stream, &Segment::of(&view, packet.missing.into()), now)
        {
            read.extend_from_slice(octets);
        }
        while let Some(ready) = reorder.poll(&mut stream) {
            match ready {
                Ready::Octets(octets) => read.extend_from_slice(octets),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(read, text);
    let server = tcp.way(Side::Server);
    assert_eq!((server.octets, server.retransmissions), (21_000, 0));
    assert_eq!(server.out_of_order, server.after_holes);
    assert!(server.out_of_order > 2);
}
