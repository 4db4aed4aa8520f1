//! `net_af_packet`: kernel interfaces, as users set them up first.
//!
//! What the kernel does on the other end of a cable is the kernel's own doing here: its checksums, its chatter, its full rings.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{Peer, against_af_packet, open, sh, start, veth};
use dpdk::{DeviceSpec, DpdkError, DpdkPort, DpdkRx, Mbuf};
use io::conformance::{Expect, FarSide};
use io::{Frame, Port, RxQueue, TxQueue};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Polls until `enough`, for a while.
fn until(rx: &mut DpdkRx, mut enough: impl FnMut(&[Mbuf]) -> bool) -> Vec<Mbuf> {
    let (mut frames, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(5));
    while !enough(&frames) && Instant::now() < deadline {
        rx.rx_burst(&mut frames, 64);
    }
    frames
}

#[test]
fn conforms() {
    testing::in_namespace("conforms_body");
}

#[test]
#[ignore = "run by `conforms` in a namespace of its own"]
fn conforms_body() {
    veth(1500);
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec::new("n3", "net_af_packet0,iface=here"));
    against_af_packet(&eal, &mut port, "there", Expect::default(), 1500);
    let too_long = DeviceSpec { mtu: 9000, ..DeviceSpec::new("x", "net_af_packet1,iface=here") };
    let refused = DpdkPort::open(&eal, &too_long).unwrap_err();
    assert!(matches!(refused, DpdkError::Mtu { wanted: 9000, most: 1500, .. }), "{refused}");
}

#[test]
fn queues() {
    testing::in_namespace("queues_body");
}

#[test]
#[ignore = "run by `queues` in a namespace of its own"]
fn queues_body() {
    veth(1500);
    let eal = start(&[]);
    let spec = DeviceSpec { queues: 2, ..DeviceSpec::new("n3", "net_af_packet0,iface=here") };
    let mut port = open(&eal, &spec);
    let mut far = Peer::new(open(&eal, &DeviceSpec::new("far", "net_af_packet9,iface=there")));
    let mut queues: Vec<_> = (0..2).map(|queue| port.take_queue(queue).unwrap()).collect();
    // UDP over IPv4 from many ports: the kernel spreads flows over the sockets behind the queues.
    let mut counts = [0; 2];
    for source in 0..64u8 {
        let mut packet = vec![0xff; 60];
        packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        packet[12..38].copy_from_slice(&[
            8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x20, source, 8,
            0x68,
        ]);
        far.inject(&packet);
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    while counts.iter().sum::<usize>() < 64 && Instant::now() < deadline {
        for ((rx, tx), count) in queues.iter_mut().zip(&mut counts) {
            let mut frames = Vec::new();
            *count += rx.rx_burst(&mut frames, 64);
            while !frames.is_empty() {
                tx.tx_burst(&mut frames);
            }
        }
    }
    println!("packets per queue: {counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), 64);
    assert!(counts.iter().all(|&count| count > 0), "one queue got everything");
    let mut back = 0;
    while back < 64 && Instant::now() < deadline {
        back += far.collect().len();
    }
    assert_eq!(back, 64);
}

#[test]
fn leaves_fragments_alone() {
    testing::in_namespace("fragments_body");
}

#[test]
#[ignore = "run by `leaves_fragments_alone` in a namespace of its own"]
fn fragments_body() {
    veth(1500);
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec::new("n3", "net_af_packet0,iface=here"));
    let (mut rx, _tx) = port.take_queue(0).unwrap();
    let mut far = Peer::new(open(&eal, &DeviceSpec::new("far", "net_af_packet9,iface=there")));
    // Three fragments of one IPv4 packet, too long together for a frame of the ring.
    let fragment = |offset: u16, more: u16| {
        let [high, low] = ((offset / 8) | (more << 13)).to_be_bytes();
        let mut packet = vec![0xff; 12];
        packet.extend([
            8, 0, 0x45, 0, 0x05, 0xdc, 0x12, 0x34, high, low, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        let sum: u32 = packet[14..34].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[24..26].copy_from_slice(&sum.to_be_bytes());
        packet.resize(1514, low);
        packet
    };
    let sent = [fragment(0, 1), fragment(1480, 1), fragment(2960, 0)];
    for packet in &sent {
        far.inject(packet);
    }
    let mut frames = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(2);
    while frames.len() < sent.len() && Instant::now() < deadline {
        rx.rx_burst(&mut frames, 64);
    }
    let got: Vec<_> = frames.iter().map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(got, sent);
}

#[test]
fn carries_full_frames_of_every_mtu() {
    testing::in_namespace("mtus_body");
}

#[test]
#[ignore = "run by `carries_full_frames_of_every_mtu` in a namespace of its own"]
fn mtus_body() {
    let eal = start(&[]);
    for mtu in [1500, 2000, 4000, 6000, 9000] {
        veth(mtu);
        let mut port = open(&eal, &DeviceSpec { mtu, ..DeviceSpec::new("n3", "net_af_packet0,iface=here") });
        let expect = Expect { longest: usize::from(mtu) + 14, ..Expect::default() };
        against_af_packet(&eal, &mut port, "there", expect, mtu);
        let stats = port.stats();
        assert_eq!((stats.rx_missed, stats.rx_errors), (0, 0), "{mtu}");
        drop(port);
        sh("ip link delete here");
    }
}

#[test]
fn counts_what_finds_no_room() {
    testing::in_namespace("room_body");
}

#[test]
#[ignore = "run by `counts_what_finds_no_room` in a namespace of its own"]
fn room_body() {
    veth(1500);
    let eal = start(&[]);
    let small = DeviceSpec { rx_descriptors: 256, ..DeviceSpec::new("n3", "net_af_packet0,iface=here") };
    let mut port = open(&eal, &small);
    let (mut rx, tx) = port.take_queue(0).unwrap();
    let mut far = Peer::new(open(&eal, &DeviceSpec::new("far", "net_af_packet9,iface=there")));
    // Nobody polls: the ring has as many slots as were asked for.
    for _ in 0..600 {
        far.inject(&[0xff; 60]);
    }
    assert_eq!(until(&mut rx, |frames| frames.len() >= 256).len(), 256);
    assert_eq!((port.stats().rx_packets, port.stats().rx_missed), (256, 344));
    // Asking takes nothing away.
    assert_eq!(port.stats().rx_missed, 344);
    drop((rx, tx, port));

    // Somebody polls, and has no buffers: the same. Buffers that come back go on.
    let poor = DeviceSpec { frames: Some(63), ..small };
    let mut port = open(&eal, &poor);
    let (mut rx, _tx) = port.take_queue(0).unwrap();
    let mut held = Vec::new();
    for _ in 0..600 {
        far.inject(&[0xff; 60]);
        rx.rx_burst(&mut held, 64);
    }
    let had = held.len();
    assert!(had <= 63, "{had}");
    assert_eq!(port.stats().rx_missed as usize, 600 - 256 - had);
    held.clear();
    let mut rest = 0;
    let deadline = Instant::now() + Duration::from_secs(5);
    while rest < 256 && Instant::now() < deadline {
        rest += rx.rx_burst(&mut held, 64);
        held.clear();
    }
    let stats = port.stats();
    assert_eq!((rest, stats.rx_packets + stats.rx_missed), (256, 600));
}

/// Whether the checksum of the TCP or UDP packet in an Ethernet frame is right: all sums to ones.
fn checks(frame: &[u8]) -> bool {
    let packet = &frame[14..];
    let (protocol, addresses, payload) = match packet[0] >> 4 {
        4 => {
            (packet[9], &packet[12..20], &packet[20..usize::from(u16::from_be_bytes([packet[2], packet[3]]))])
        }
        _ => (packet[6], &packet[8..40], &packet[40..]),
    };
    let words = addresses.chunks(2).chain(payload.chunks(2));
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    let sum = sum + u32::from(protocol) + payload.len() as u32;
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

#[test]
fn completes_checksums() {
    testing::in_namespace("checksums_body");
}

#[test]
#[ignore = "run by `completes_checksums` in a namespace of its own"]
fn checksums_body() {
    veth(1500);
    // `there` is the kernel's, with a neighbour behind it that only we are.
    sh("echo 0 > /proc/sys/net/ipv6/conf/there/disable_ipv6
        ip address add 10.9.0.1/24 dev there; ip address add fd00:9::1/64 dev there nodad
        ip neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev there
        ip neighbour add fd00:9::2 lladdr 02:00:00:00:00:02 dev there");
    let eal = start(&[]);
    let mut port =
        open(&eal, &DeviceSpec { queues: 1, ..DeviceSpec::new("n3", "net_af_packet0,iface=here") });
    let (mut rx, _tx) = port.take_queue(0).unwrap();
    for to in ["10.9.0.2:9", "[fd00:9::2]:9"] {
        let socket = UdpSocket::bind(if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" }).unwrap();
        for length in [0, 1, 2, 999, 1400] {
            socket.send_to(&vec![0xa5; length], to).unwrap();
        }
        // Nobody answers; the request to connect is all that is wanted.
        let _ = TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_millis(100));
    }
    let is = |protocol: u8| {
        move |frame: &&Mbuf| {
            let packet = frame.bytes();
            matches!((packet[14] >> 4, packet[23], packet[20]), (4, p, _) | (6, _, p) if p == protocol)
        }
    };
    let count = |frames: &[Mbuf], protocol| frames.iter().filter(is(protocol)).count();
    let frames = until(&mut rx, |frames| count(frames, 17) >= 10 && count(frames, 6) >= 2);
    assert!(count(&frames, 17) == 10 && count(&frames, 6) >= 2, "{}", frames.len());
    for frame in frames.iter().filter(|frame| is(17)(frame) || is(6)(frame)) {
        assert!(checks(frame.bytes()), "{:02x?}", frame.bytes());
    }
}

#[test]
fn counts_what_is_longer_than_a_slot() {
    testing::in_namespace("longer_body");
}

#[test]
#[ignore = "run by `counts_what_is_longer_than_a_slot` in a namespace of its own"]
fn longer_body() {
    veth(9000);
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec::new("n3", "net_af_packet0,iface=here"));
    let (mut rx, _tx) = port.take_queue(0).unwrap();
    let far = DeviceSpec { mtu: 9000, ..DeviceSpec::new("far", "net_af_packet9,iface=there") };
    let mut far = Peer::new(open(&eal, &far));
    far.inject(&[0xff; 1514]);
    far.inject(&[0xff; 9014]);
    let frames = until(&mut rx, |frames| frames.len() >= 2);
    assert!(frames[0].len() == 1514 && frames[1].len() < 2048, "{}", frames[1].len());
    assert_eq!((port.stats().rx_errors, port.stats().rx_missed), (1, 0));
}

#[test]
fn leaves_out_what_this_machine_sends() {
    testing::in_namespace("outgoing_body");
}

#[test]
#[ignore = "run by `leaves_out_what_this_machine_sends` in a namespace of its own"]
fn outgoing_body() {
    veth(1500);
    let eal = start(&[]);
    // One socket, and a group of them.
    for queues in [1, 2] {
        let spec = DeviceSpec { queues, ..DeviceSpec::new("n3", "net_af_packet0,iface=here") };
        let mut port = open(&eal, &spec);
        let mut rx: Vec<_> = (0..queues).map(|queue| port.take_queue(queue).unwrap().0).collect();
        let mut far = Peer::new(open(&eal, &DeviceSpec::new("far", "net_af_packet9,iface=there")));
        sh(
            "ip address add 10.9.0.1/24 dev here; ip neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev here",
        );
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(b"not for us", "10.9.0.2:9").unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while !far.collect().iter().any(|frame| frame.ends_with(b"not for us")) {
            assert!(Instant::now() < deadline, "it did not leave");
        }
        far.inject(&[0xff; 60]);
        let mut frames = Vec::new();
        while frames.is_empty() && Instant::now() < deadline {
            for rx in &mut rx {
                rx.rx_burst(&mut frames, 64);
            }
        }
        // In the order of their arrival: what was sent before it is not there.
        assert_eq!(frames.iter().map(|frame| frame.bytes().to_vec()).collect::<Vec<_>>(), [[0xff; 60]]);
        sh("ip address flush dev here");
    }
}

#[test]
fn warns_of_interfaces_that_lose() {
    testing::in_namespace("warnings_body");
}

#[test]
#[ignore = "run by `warns_of_interfaces_that_lose` in a namespace of its own"]
fn warnings_body() {
    veth(1500);
    let eal = start(&[]);
    let warned = |eal: &dpdk::Eal| {
        open(eal, &DeviceSpec::new("n3", "net_af_packet0,iface=here")).warnings().join("; ")
    };
    assert_eq!(warned(&eal), "");
    sh("ip link set here down");
    assert!(warned(&eal).contains("ip link set here up"), "{}", warned(&eal));
    sh("ip link set here up; ethtool -K here gro on");
    assert!(warned(&eal).contains("ethtool -K here gro off"), "{}", warned(&eal));
}
