#![allow(clippy::unwrap_used)]
use super::*;
use packet::gtpu::MessageType;
use packet::ipv4::Ipv4Header;
use packet::ipv6::Ipv6Header;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{EtherType, MacAddr, PacketBuilder, Teid, VlanId, VlanTag, arp, ndp};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const OWN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 2);

fn steering() -> Steering {
    let groups = vec![Group::new("voice", [Dscp::EF, Dscp::VA]), Group::new("video", [Dscp::AF41])];
    Steering::new(Some(Control::new([OWN.into(), OWN6.into()])), groups).unwrap()
}

fn ethernet() -> PacketBuilder {
    PacketBuilder::new().ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
}

fn marked(dscp: Dscp) -> PacketBuilder {
    let base = Ipv4Header { source: PEER, destination: OWN, tos: dscp.to_tos() | 1, ..Ipv4Header::default() };
    ethernet().ipv4_header(base)
}

fn arp_request() -> Vec<u8> {
    let mut message = [0; arp::LEN];
    arp::emit_request(&mut message, MacAddr([2, 0, 0, 0, 0, 2]), PEER, OWN);
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 2]);
    frame.extend(EtherType::ARP.0.to_be_bytes());
    frame.extend(message);
    frame
}

fn solicitation(hops: u8) -> Vec<u8> {
    let mut message = Vec::new();
    ndp::emit_neighbour_solicitation(&mut message, PEER6, MacAddr([2, 0, 0, 0, 0, 2]), OWN6);
    message[7] = hops;
    let mut frame = vec![0x33, 0x33, 0xff, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    frame.extend(message);
    frame
}

#[test]
fn control_protocols_go_to_the_control_queue() {
    let steering = steering();
    let gtpu = |kind| ethernet().ipv4(PEER, OWN).udp(2152, 2152).gtpu_message(kind, Teid(0)).build(&[]);
    let udp = |port| ethernet().ipv4(PEER, OWN).udp(49_152, port).build(&[0; 24]);
    let tcp = |source, destination| {
        let header = TcpHeader {
            source_port: source,
            destination_port: destination,
            sequence: 0,
            acknowledgement: 0,
            flags: TcpFlags::SYN,
            window: 0,
        };
        ethernet().ipv6(PEER6, OWN6).tcp(header).build(&[])
    };
    for (name, frame) in [
        ("ARP", arp_request()),
        ("ND", solicitation(255)),
        ("echo request", gtpu(MessageType::ECHO_REQUEST)),
        ("echo response", gtpu(MessageType::ECHO_RESPONSE)),
        ("error indication", gtpu(MessageType::ERROR_INDICATION)),
        ("extensions", gtpu(MessageType::SUPPORTED_EXTENSION_HEADERS)),
        ("PFCP", udp(8805)),
        ("BFD", udp(3784)),
        ("BFD multihop", udp(4784)),
        ("BGP", tcp(50_000, 179)),
        ("BGP, they called", tcp(179, 50_000)),
    ] {
        assert_eq!(steering.duty(&frame), Some(Duty::Control), "{name}");
    }
}

#[test]
fn users_can_not_reach_the_control_queue() {
    let steering = steering();
    let user = Ipv4Addr::new(10, 45, 0, 1);
    let echo =
        |to| ethernet().ipv4(PEER, to).udp(2152, 2152).gtpu_message(MessageType::ECHO_REQUEST, Teid(0));
    let inner = ethernet()
        .ipv4(PEER, OWN)
        .udp_without_checksum(2152, 2152)
        .gtpu(Teid(7))
        .ipv4(user, OWN)
        .udp(2152, 8805)
        .build(&[0x32, 1, 0, 4, 0, 0, 0, 0]);
    let fragment =
        Ipv4Header { source: PEER, destination: OWN, more_fragments: true, ..Ipv4Header::default() };
    for (name, frame) in [
        ("an echo to somebody else", echo(user).build(&[])),
        ("a G-PDU", inner),
        ("a G-PDU's fragment", ethernet().ipv4_header(fragment).udp(2152, 2152).build(&[0x32, 1, 0, 0])),
        ("PFCP to somebody else", ethernet().ipv4(PEER, user).udp(8805, 8805).build(&[0; 16])),
        ("ND from beyond a router", solicitation(254)),
        (
            "an end marker",
            ethernet()
                .ipv4(PEER, OWN)
                .udp(2152, 2152)
                .gtpu_message(MessageType::END_MARKER, Teid(7))
                .build(&[]),
        ),
        ("a ping", ethernet().ipv4(PEER, OWN).udp(7, 7).build(&[])),
    ] {
        assert_eq!(steering.duty(&frame), None, "{name}");
    }
}

#[test]
fn code_points_choose_the_group() {
    let steering = steering();
    for (dscp, duty) in [
        (Dscp::EF, Some(Duty::Group(0))),
        (Dscp::VA, Some(Duty::Group(0))),
        (Dscp::AF41, Some(Duty::Group(1))),
        (Dscp::AF42, None),
        (Dscp::CS0, None),
    ] {
        assert_eq!(steering.duty(&marked(dscp).udp(1, 2).build(&[])), duty);
        let header = Ipv6Header {
            traffic_class: dscp.to_tos() | 3,
            source: PEER6,
            destination: OWN6,
            ..Ipv6Header::default()
        };
        let tagged =
            ethernet().vlan(VlanTag::customer(VlanId::from_wire(7))).ipv6_header(header).udp(1, 2).build(&[]);
        assert_eq!(steering.duty(&tagged), duty);
    }
    assert!(Steering::default().is_none());
    assert_eq!(Steering::default().duty(&arp_request()), None);
}

#[test]
fn every_queue_has_a_place_of_its_own() {
    let steering = steering();
    let queues = 3;
    let mut places: Vec<usize> = (0..3).map(|queue| steering.place(None, queue, queues)).collect();
    for group in 0..2 {
        places.extend((0..3).map(|queue| steering.place(Some(Duty::Group(group)), queue, queues)));
    }
    places.push(steering.place(Some(Duty::Control), 0, queues));
    assert_eq!(places, (0..usize::from(queues) + steering.extra_queues(queues)).collect::<Vec<_>>());
}

#[test]
fn contradictions_are_refused() {
    let groups = |n| vec![Group::new("g", []); n];
    assert_eq!(Steering::new(None, groups(8)), Err(SteeringError::Groups(8)));
    assert!(Steering::new(None, groups(7)).is_ok());
    let twice = vec![Group::new("a", [Dscp::EF, Dscp::EF]), Group::new("b", [Dscp::EF])];
    let error = Steering::new(None, twice).unwrap_err();
    assert_eq!(error.to_string(), "the code point 46 is in the groups `a` and `b`");
}

#[test]
fn what_we_send_is_urgent_if_it_is_ours() {
    let control = Control::new([OWN.into()]);
    let answer =
        |own, kind| ethernet().ipv4(own, PEER).udp(2152, 2152).gtpu_message(kind, Teid(0)).build(&[]);
    assert_eq!(control.urgency(&answer(OWN, MessageType::ECHO_RESPONSE)), Urgency::Control);
    assert_eq!(control.urgency(&arp_request()), Urgency::Control);
    assert_eq!(control.urgency(&[0; 60]), Urgency::Control, "LLDP, LACP and their like");
    assert_eq!(control.urgency(&solicitation(255)), Urgency::Control);
    let user = Ipv4Addr::new(10, 45, 0, 1);
    assert_eq!(control.urgency(&answer(user, MessageType::ECHO_RESPONSE)), Urgency::Marked(Dscp::CS0));
    assert_eq!(control.urgency(&answer(OWN, MessageType::END_MARKER)), Urgency::Marked(Dscp::CS0));
    assert_eq!(control.urgency(&marked(Dscp::EF).udp(1, 2).build(&[])), Urgency::Marked(Dscp::EF));
}

proptest! {
    #[test]
    fn any_bytes_have_a_queue(bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0usize..4) {
        let mut bytes = bytes;
        let ether_types = [[0x08, 0x00], [0x86, 0xdd], [0x08, 0x06], [0x81, 0x00]];
        if let Some(place) = bytes.get_mut(12..14) {
            place.copy_from_slice(&ether_types[kind]);
        }
        let steering = steering();
        let queues = 4;
        let place = steering.place(steering.duty(&bytes), 3, queues);
        prop_assert!(place < usize::from(queues) + steering.extra_queues(queues));
        steering.control().unwrap().urgency(&bytes);
    }
}
