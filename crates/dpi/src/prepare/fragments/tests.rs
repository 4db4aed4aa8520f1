//! Datagrams cut up in every way, and fragments that don't belong together.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::prepare::{Link, Tunnels, prepare};
use packet::PacketBuilder;
use packet::ipv4::Ipv4Header;
use packet::tcp::TcpHeader;
use proptest::prelude::*;

const NOW: Nanos = Nanos(1_000);

/// One fragment, from `start` on, of a whole packet.
fn fragment(packet: &[u8], start: usize, end: usize, id: u16) -> Vec<u8> {
    let v6 = packet[0] >> 4 == 6;
    let head = if v6 { 40 } else { usize::from(packet[0] & 15) * 4 };
    let more = end < packet.len() - head;
    let data = &packet[head + start..head + end];
    let mut out = packet[..head].to_vec();
    if v6 {
        let field = start as u16 | u16::from(more);
        out.extend([out[6], 0]);
        out.extend(field.to_be_bytes());
        out.extend([0, 0]);
        out.extend(id.to_be_bytes());
        out[6] = 44;
        out[4..6].copy_from_slice(&(data.len() as u16 + 8).to_be_bytes());
    } else {
        out[2..4].copy_from_slice(&((head + data.len()) as u16).to_be_bytes());
        out[4..6].copy_from_slice(&id.to_be_bytes());
        out[6..8].copy_from_slice(&((start / 8) as u16 | u16::from(more) << 13).to_be_bytes());
        out[10..12].fill(0);
        let sum = packet::checksum::ipv4_header(&out);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    out.extend(data);
    out
}

/// A packet in fragments of at most `room` octets of data, a multiple of eight.
pub(in crate::prepare) fn cut(packet: &[u8], room: usize) -> Vec<Vec<u8>> {
    let head = if packet[0] >> 4 == 6 { 40 } else { usize::from(packet[0] & 15) * 4 };
    let (length, room) = (packet.len() - head, room & !7);
    let id = packet.len() as u16;
    (0..length).step_by(room).map(|start| fragment(packet, start, (start + room).min(length), id)).collect()
}

fn packet(v6: bool, content: &[u8]) -> Vec<u8> {
    if v6 {
        let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        return PacketBuilder::new().ipv6(a, b).udp(40_000, 53).build(content);
    }
    PacketBuilder::new().ipv4([10, 60, 0, 1].into(), [198, 51, 100, 7].into()).udp(40_000, 53).build(content)
}

fn push(fragments: &mut Fragments, bytes: &[u8], now: Nanos) -> (Taken, Vec<u8>) {
    let mut whole = Vec::new();
    let prepared = prepare(Link::Ip, bytes, Tunnels::NONE).unwrap();
    (fragments.push(&prepared, now, &mut whole), whole)
}

/// What each of them became.
fn all(parts: &[Vec<u8>]) -> Vec<Taken> {
    let mut fragments = Fragments::new(Limits::default());
    parts.iter().map(|part| push(&mut fragments, part, NOW).0).collect()
}

/// But for the identification, which the builder leaves empty.
fn same(whole: &[u8], packet: &[u8]) -> bool {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 {
        packet[4..6].copy_from_slice(&whole[4..6]);
        let head = usize::from(packet[0] & 15) * 4;
        packet[10..12].fill(0);
        let sum = packet::checksum::ipv4_header(&packet[..head]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    whole == packet
}

proptest! {
    #[test]
    fn fragments_in_any_order_and_twice_give_the_packet_back(
        v6 in any::<bool>(),
        length in 30..9000usize,
        cuts in prop::collection::btree_set(2..1100usize, 1..20),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 60),
        seed in any::<u8>(),
    ) {
        let content: Vec<u8> = (0..length).map(|at| (at as u8).wrapping_mul(31) ^ seed ^ (at >> 8) as u8).collect();
        let packet = packet(v6, &content);
        let end = packet.len() - if v6 { 40 } else { 20 };
        let mut bounds: Vec<usize> = cuts.into_iter().map(|cut| cut * 8).filter(|cut| *cut < end).collect();
        bounds.insert(0, 0);
        bounds.push(end);
        let mut parts: Vec<Vec<u8>> =
            bounds.windows(2).map(|pair| fragment(&packet, pair[0], pair[1], 9)).collect();
        prop_assume!(parts.len() > 1);
        let count = parts.len();
        for (at, (to, _)) in order.iter().enumerate().take(count) {
            parts.swap(at, to.index(count));
        }
        let mut fragments = Fragments::new(Limits::default());
        for (at, part) in parts.iter().enumerate() {
            let (taken, whole) = push(&mut fragments, part, NOW);
            if at + 1 < count {
                prop_assert_eq!(taken, Taken::Held);
            } else {
                prop_assert_eq!(taken, Taken::Whole);
                prop_assert!(same(&whole, &packet));
            }
            // Once more, while it is known.
            if order[at].1 && at + 1 < count {
                prop_assert_eq!(push(&mut fragments, part, NOW).0, Taken::Refused(Refused::Repeated));
            }
        }
        prop_assert!(fragments.is_empty());
    }

    #[test]
    fn what_is_kept_stays_within_its_limits(
        floods in prop::collection::vec((0..40u16, 0..900usize, 1..1400usize, any::<bool>(), any::<bool>()), 1..300),
    ) {
        let limits = Limits { datagrams: 8, octets: 16 * PAGE, patience: 1_000 };
        let mut fragments = Fragments::new(limits);
        let most = 16 * PAGE + 9 * (std::mem::size_of::<Datagram>() + 64);
        let packets = [packet(false, &[7; 9000]), packet(true, &[7; 9000])];
        for (at, (id, start, length, v6, last)) in floods.into_iter().enumerate() {
            let packet = &packets[usize::from(v6)];
            let end = if last { 9008 } else { (start * 8 + length).next_multiple_of(8).min(9000) };
            prop_assume!(start * 8 < end);
            let part = fragment(packet, start * 8, end, id);
            push(&mut fragments, &part, Nanos(at as u64 * 10));
            prop_assert!(fragments.len() <= 8);
            prop_assert!(fragments.memory() <= most, "{} > {most}", fragments.memory());
            let used: usize = fragments.datagrams.iter().map(|it| it.1.pages.iter().filter(|p| **p != NONE).count()).sum();
            prop_assert_eq!(used + fragments.free.len(), fragments.pages.len());
            prop_assert_eq!(fragments.known.len(), fragments.datagrams.len());
        }
        fragments.expire(Nanos(1_000_000));
        prop_assert!(fragments.is_empty());
        prop_assert_eq!(fragments.free.len(), fragments.pages.len());
    }
}

#[test]
fn the_longest_packet_comes_back_and_what_is_longer_does_not() {
    for v6 in [false, true] {
        let longest = packet(v6, &vec![7; if v6 { 65_535 - 8 } else { 65_535 - 28 }]);
        let mut fragments = Fragments::new(Limits::default());
        let parts = cut(&longest, 1400);
        let results: Vec<_> = parts.iter().map(|part| push(&mut fragments, part, NOW)).collect();
        assert!(same(&results.last().unwrap().1, &longest));
        // The ping of death: an offset that is all right, and a length that is.
        let mut ping = fragment(&longest, 65_504, if v6 { 65_535 } else { 65_515 }, 1);
        ping.extend([0; 64]);
        let length = ping.len() as u16;
        if v6 {
            ping[4..6].copy_from_slice(&(length - 40).to_be_bytes());
        } else {
            ping[2..4].copy_from_slice(&length.to_be_bytes());
        }
        assert_eq!(push(&mut fragments, &ping, NOW).0, Taken::Refused(Refused::Beyond));
    }
}

#[test]
fn a_first_fragment_with_options_can_make_the_others_too_long() {
    let header = Ipv4Header { source: [10, 0, 0, 1].into(), ..Ipv4Header::default() };
    let bare = PacketBuilder::new().ipv4_header(header).build(&vec![7; 65_515]);
    let first = PacketBuilder::new().ipv4_header(header).options(&[1; 8]).build(&vec![7; 40_000]);
    let mut fragments = Fragments::new(Limits::default());
    let mut begin = fragment(&first, 0, 32_000, 5);
    begin[9] = bare[9];
    let sum = packet::checksum::ipv4_header(&{
        let mut it = begin[..28].to_vec();
        it[10..12].fill(0);
        it
    });
    begin[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(push(&mut fragments, &begin, NOW).0, Taken::Held);
    let rest = fragment(&bare, 32_000, 65_515, 5);
    assert_eq!(push(&mut fragments, &rest, NOW).0, Taken::Refused(Refused::Beyond));
}

#[test]
fn an_overlap_spoils_the_datagram_for_good() {
    for v6 in [false, true] {
        let it = packet(v6, &[7; 2000]);
        let end = it.len() - if v6 { 40 } else { 20 };
        let part = |start, end| fragment(&it, start, end, 1);
        let other = {
            let mut part = part(800, 1600);
            *part.last_mut().unwrap() ^= 1;
            part
        };
        let (held, spoilt) = (Taken::Held, Taken::Refused(Refused::Spoilt));
        let overlap = Taken::Refused(Refused::Overlap);
        assert_eq!(all(&[part(0, 800), part(792, 1600), part(1600, end)]), [held, overlap, spoilt]);
        assert_eq!(all(&[part(800, 1600), part(0, 808), part(0, 800)]), [held, overlap, spoilt]);
        // Teardrop: wholly within another.
        assert_eq!(all(&[part(0, 800), part(24, 48), part(800, end)]), [held, overlap, spoilt]);
        // The same place, but other octets.
        assert_eq!(all(&[part(800, 1600), other, part(0, 800)]), [held, overlap, spoilt]);
        let repeated = Taken::Refused(Refused::Repeated);
        assert_eq!(all(&[part(0, 800), part(0, 800), part(800, end)]), [held, repeated, Taken::Whole]);
    }
}

#[test]
fn a_datagram_has_one_end() {
    let long = packet(false, &[7; 2000]);
    let short = packet(false, &[7; 1592]);
    let (last_of_long, last_of_short) = (fragment(&long, 1608, 2008, 1), fragment(&short, 800, 1600, 1));
    let beyond = Taken::Refused(Refused::End);
    let middle = fragment(&long, 1608, 2000, 1);
    assert_eq!(all(&[last_of_short.clone(), last_of_long.clone()]), [Taken::Held, beyond]);
    assert_eq!(all(&[last_of_long, last_of_short.clone()]), [Taken::Held, beyond]);
    assert_eq!(all(&[middle.clone(), last_of_short.clone()]), [Taken::Held, beyond]);
    assert_eq!(all(&[last_of_short, middle]), [Taken::Held, beyond]);
}

#[test]
fn lies_and_tiny_fragments_are_refused() {
    let it = packet(false, &[7; 2000]);
    let refused = |part: &[u8]| push(&mut Fragments::new(Limits::default()), part, NOW).0;
    let mut odd = fragment(&it, 0, 800, 1);
    odd[3] -= 3;
    assert_eq!(refused(&odd), Taken::Refused(Refused::Length));
    assert_eq!(refused(&fragment(&it, 800, 800, 1)), Taken::Refused(Refused::Length));
    assert_eq!(refused(&fragment(&it, 800, 1600, 1)[..400]), Taken::Refused(Refused::Cut));
    let header = TcpHeader { source_port: 1, destination_port: 2, ..TcpHeader::default() };
    let tcp =
        PacketBuilder::new().ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).tcp(header).build(&[7; 100]);
    assert_eq!(refused(&fragment(&tcp, 0, 8, 1)), Taken::Refused(Refused::Tiny));
    assert_eq!(refused(&fragment(&tcp, 8, 120, 1)), Taken::Refused(Refused::Tiny));
    assert_eq!(refused(&fragment(&tcp, 0, 16, 1)), Taken::Held);
}

#[test]
fn too_many_pieces_spoil_a_datagram() {
    let it = packet(true, &[7; 2000]);
    let parts: Vec<_> = (0..=MAX_PIECES).map(|at| fragment(&it, at * 8, at * 8 + 8, 1)).collect();
    assert_eq!(all(&parts).last(), Some(&Taken::Refused(Refused::Pieces)));
}

#[test]
fn headers_of_ipv6_before_the_fragment_header_stay() {
    let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let content = [7; 64];
    let build = |fragment: Option<packet::Fragment>, content: &[u8]| {
        let builder =
            PacketBuilder::new().ipv6(a, b).ipv6_extension(IpProtocol::HOP_BY_HOP, &[1, 4, 0, 0, 0, 0]);
        match fragment {
            Some(it) => builder.ipv6_fragment(it),
            None => builder,
        }
        .ipv6_extension(IpProtocol::DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0])
        .udp_without_checksum(1, 2)
        .build(content)
    };
    let whole = build(None, &content);
    // The first fragment is built; the second one is its headers with the rest of the data.
    let at = |offset, more| Some(packet::Fragment { offset, more, identification: 3 });
    let mut first = build(at(0, true), &content);
    let mut second = build(at(48, false), &content);
    first.truncate(40 + 8 + 8 + 48);
    first[4..6].copy_from_slice(&64u16.to_be_bytes());
    second.drain(56..56 + 48);
    let left = (second.len() - 40) as u16;
    second[4..6].copy_from_slice(&left.to_be_bytes());
    let mut fragments = Fragments::new(Limits::default());
    assert_eq!(push(&mut fragments, &second, NOW).0, Taken::Held);
    let (taken, joined) = push(&mut fragments, &first, NOW);
    assert_eq!(taken, Taken::Whole);
    assert_eq!(joined, whole);
}

#[test]
fn the_oldest_goes_when_there_is_no_room_and_all_go_in_time() {
    let it = packet(false, &[7; 4000]);
    let limits = Limits { datagrams: 3, octets: 3 * PAGE, patience: 100 };
    let mut fragments = Fragments::new(limits);
    for id in 0..4 {
        assert_eq!(push(&mut fragments, &fragment(&it, 0, 800, id), Nanos(u64::from(id))).0, Taken::Held);
    }
    // The first one is gone; the second one is not.
    assert_eq!(fragments.counters().given_up.get(GivenUp::Datagrams), 1);
    assert_eq!(push(&mut fragments, &fragment(&it, 800, 4008, 1), Nanos(10)).0, Taken::Whole);
    // It needed a second page: that was the third one's.
    assert_eq!(fragments.counters().given_up.get(GivenUp::Memory), 1);
    assert_eq!(fragments.len(), 1);
    // A datagram alone that is larger than all the room.
    let mut tight = Fragments::new(Limits { octets: PAGE, ..limits });
    assert_eq!(push(&mut tight, &fragment(&it, 0, 4000, 1), Nanos(0)).0, Taken::Refused(Refused::Memory));
    // The one that is left waited since 3.
    fragments.expire(Nanos(102));
    assert_eq!(fragments.len(), 1);
    fragments.expire(Nanos(103));
    assert_eq!((fragments.len(), fragments.counters().given_up.get(GivenUp::Time)), (0, 1));
}

#[test]
fn fragments_of_different_tunnels_are_not_mixed() {
    let it = packet(false, &[7; 2000]);
    let (first, last) = (fragment(&it, 0, 800, 1), fragment(&it, 800, 2008, 1));
    let mut fragments = Fragments::new(Limits::default());
    let mut whole = Vec::new();
    let mut through = |bytes: &[u8], id| {
        let mut prepared = prepare(Link::Ip, bytes, Tunnels::NONE).unwrap();
        prepared.around.tunnel = Some(Tunnel { layer: crate::prepare::Layer::GtpU, id });
        fragments.push(&prepared, NOW, &mut whole)
    };
    assert_eq!(through(&first, 1), Taken::Held);
    assert_eq!(through(&last, 2), Taken::Held);
    assert_eq!(through(&last, 1), Taken::Whole);
}
