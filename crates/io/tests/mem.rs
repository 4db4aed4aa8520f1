//! The in-memory NIC: conformance, and what a NIC does under RSS, overload and faults.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use io::conformance::{self, Expect, FarSide, Wiring};
use io::mem::{Faults, MemConfig, MemError, MemFrame, MemNic, MemWire, RETA_SIZE, RssMode};
use io::{Frame, FramePool, Port, RxQueue, TxQueue};

struct Wire(MemWire);

impl FarSide for Wire {
    fn inject(&mut self, packet: &[u8]) {
        let mut frames = vec![MemFrame::copy_of(packet).unwrap()];
        assert_eq!(self.0.offer(&mut frames), 1);
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.0.collect(&mut frames, usize::MAX);
        frames.iter().map(|frame| frame.bytes().to_vec()).collect()
    }
}

#[test]
fn conforms() {
    for (mtu, longest) in [(1500, 1514), (9000, 9014)] {
        let (mut nic, wire) = MemNic::new(MemConfig { mtu, ..MemConfig::default() }).unwrap();
        let expect = Expect { longest, ..Expect::default() };
        let report = conformance::run(&mut nic, Wiring::Far(&mut Wire(wire)), expect).unwrap();
        assert!(report.received > 600 && report.sent > 300, "{report:?}");
        assert_eq!(report.pool_frames, 8192);
        assert_eq!(nic.pool_in_use(), 0);
    }
}

/// A frame that carries its number, to be steered by a preset hash.
fn numbered(number: u32, hash: u32) -> MemFrame {
    let mut frame = MemFrame::copy_of(&[&[0; 60][..], &number.to_be_bytes()].concat()).unwrap();
    frame.set_rss_hash(hash);
    frame
}

fn number(frame: &MemFrame) -> u32 {
    u32::from_be_bytes(*frame.bytes().last_chunk().unwrap())
}

fn preset(queues: u16, descriptors: usize) -> (MemNic, MemWire) {
    MemNic::new(MemConfig { queues, descriptors, rss: RssMode::Preset, ..MemConfig::default() }).unwrap()
}

#[test]
fn the_redirection_table_steers_and_can_change() {
    let (mut nic, mut wire) = preset(4, 1024);
    let control = nic.control();
    let mut queues: Vec<_> = (0..4).map(|queue| nic.take_queue(queue).unwrap()).collect();
    let burst = |wire: &mut MemWire| {
        let mut frames: Vec<_> = (1..=512u32).map(|i| numbered(i, i)).collect();
        assert_eq!(wire.inject(&mut frames), 512);
    };
    burst(&mut wire);
    for (queue, (rx, _)) in queues.iter_mut().enumerate() {
        let mut frames = Vec::new();
        assert_eq!(rx.rx_burst(&mut frames, 1000), 128);
        let numbers: Vec<u32> = frames.iter().map(number).collect();
        assert!(numbers.iter().all(|n| *n as usize % 4 == queue) && numbers.is_sorted());
        assert!(frames.iter().all(|frame| frame.rss_hash() == Some(number(frame))));
    }
    let mut table = vec![3; RETA_SIZE];
    table[5] = 0;
    control.set_reta(&table).unwrap();
    assert_eq!(control.reta(), table);
    burst(&mut wire);
    let counts: Vec<_> = queues.iter_mut().map(|(rx, _)| rx.rx_burst(&mut Vec::new(), 1000)).collect();
    assert_eq!(counts, [1, 0, 0, 511]);
    let refused = MemError::Reta { entry: 1, queue: 4, queues: 4 };
    assert_eq!(control.set_reta(&[0, 4]).unwrap_err(), refused);
    assert_eq!(control.reta(), table, "a refused table changes nothing");
    assert_eq!(control.queue_stats(3).unwrap().rx_packets, 128 + 511);
    assert!(control.queue_stats(4).is_none());
}

#[test]
fn a_full_ring_loses_on_inject_and_holds_back_on_offer() {
    let (mut nic, mut wire) = preset(2, 8);
    let (mut rx, _tx) = nic.take_queue(0).unwrap();
    let mut frames: Vec<_> = (1..=10).map(|i| numbered(i, 2)).collect();
    assert_eq!(wire.offer(&mut frames), 8);
    assert_eq!(frames.iter().map(number).collect::<Vec<_>>(), [9, 10]);
    assert_eq!(nic.stats().rx_missed, 0);
    assert_eq!(wire.inject(&mut frames), 0);
    assert!(frames.is_empty());
    let stats = nic.stats();
    assert_eq!((stats.rx_packets, stats.rx_bytes, stats.rx_missed), (8, 8 * 64, 2));
    // The other queue isn't affected, and an offer stops at the first frame that finds its queue full.
    frames.extend([numbered(11, 1), numbered(12, 2), numbered(13, 1)]);
    assert_eq!(wire.offer(&mut frames), 1);
    let mut got = Vec::new();
    assert_eq!(rx.rx_burst(&mut got, 100), 8);
    assert_eq!(wire.offer(&mut frames), 2);
    assert_eq!(wire.offer_to(0, &mut got), 7);
    assert_eq!(got.len(), 1);
}

#[test]
fn link_down_and_oversize_are_counted() {
    let (mut nic, mut wire) = preset(1, 64);
    let (mut rx, mut tx) = nic.take_queue(0).unwrap();
    let mut frames = vec![MemFrame::copy_of(&[0; 1522]).unwrap(), MemFrame::copy_of(&[0; 1523]).unwrap()];
    assert_eq!(wire.inject(&mut frames), 1);
    assert_eq!(nic.stats().rx_errors, 1);
    rx.rx_burst(&mut frames, 10);
    assert!(frames[0].append(1));
    frames.push(numbered(1, 1));
    assert_eq!(tx.tx_burst(&mut frames), 2);
    let stats = nic.stats();
    assert_eq!((stats.tx_packets, stats.tx_bytes, stats.tx_errors), (1, 64, 1));
    nic.control().set_link(false);
    assert!(!nic.link_up());
    frames.push(numbered(1, 1));
    assert_eq!((wire.offer(&mut frames), wire.inject(&mut frames), wire.lost_link_down()), (0, 0, 1));
    frames.push(numbered(2, 1));
    assert_eq!(tx.tx_burst(&mut frames), 1);
    assert_eq!(nic.stats().tx_errors, 2);
    nic.control().set_link(true);
    assert_eq!(wire.collect(&mut frames, 10), 1);
    drop(wire);
    assert_eq!(tx.tx_burst(&mut frames), 1);
    assert_eq!(nic.stats().tx_errors, 3, "nobody listens any more");
}

#[test]
fn a_faulty_wire_is_faulty_both_ways() {
    let (mut nic, mut wire) = preset(1, 4096);
    let (mut rx, mut tx) = nic.take_queue(0).unwrap();
    let lossy = Faults { drop_ppm: 500_000, ..Faults::default() };
    wire.set_faults(lossy, Faults { reorder_ppm: 1_000_000, ..Faults::default() }, 42);
    let mut frames: Vec<_> = (0..1000).map(|i| numbered(i, 1)).collect();
    let arrived = wire.inject(&mut frames);
    assert_eq!(arrived as u64 + wire.fault_counts().0.dropped, 1000);
    assert!((400..600).contains(&arrived));
    rx.rx_burst(&mut frames, usize::MAX);
    tx.tx_burst(&mut frames);
    let mut out = Vec::new();
    while wire.collect(&mut out, 64) > 0 {}
    assert_eq!(out.len(), arrived);
    assert_eq!(wire.fault_counts().1.reordered, arrived as u64 / 2);
    assert!(number(&out[0]) > number(&out[1]));
}

#[test]
fn two_threads_lose_nothing() {
    let (mut nic, mut wire) = preset(2, 256);
    let workers: Vec<_> = (0..2)
        .map(|queue| {
            let (mut rx, mut tx) = nic.take_queue(queue).unwrap();
            std::thread::spawn(move || {
                let (mut frames, mut done) = (Vec::with_capacity(64), 0);
                while done < 50_000 {
                    if rx.rx_burst(&mut frames, 64) == 0 {
                        std::thread::yield_now();
                    }
                    while !frames.is_empty() {
                        done += tx.tx_burst(&mut frames);
                    }
                }
            })
        })
        .collect();
    let (mut out, mut back) = (Vec::new(), Vec::new());
    let (mut next, mut expected, mut received) = (0u32, [2u32, 1], 0);
    while received < 100_000 {
        while out.len() < 64 && next < 100_000 {
            next += 1;
            out.push(numbered(next, next));
        }
        wire.offer(&mut out);
        if wire.collect(&mut back, 64) == 0 {
            std::thread::yield_now();
        }
        for frame in back.drain(..) {
            let n = number(&frame);
            let expected = &mut expected[n as usize % 2];
            assert_eq!(n, *expected);
            *expected += 2;
            received += 1;
        }
    }
    for worker in workers {
        worker.join().unwrap();
    }
    let stats = nic.stats();
    assert_eq!((stats.rx_packets, stats.tx_packets, stats.rx_missed), (100_000, 100_000, 0));
}

#[test]
fn absurd_configurations_are_refused() {
    let new = |config| MemNic::new(config).map(|_| ()).unwrap_err();
    let config = MemConfig::default;
    assert_eq!(new(MemConfig { queues: 0, ..config() }), MemError::Queues(0));
    assert_eq!(new(MemConfig { queues: 513, ..config() }), MemError::Queues(513));
    assert_eq!(new(MemConfig { descriptors: 0, ..config() }), MemError::Descriptors(0));
    assert_eq!(new(MemConfig { mtu: 67, ..config() }), MemError::Mtu(67));
    assert_eq!(new(MemConfig { mtu: 9501, ..config() }), MemError::Mtu(9501));
}

#[test]
fn pools_of_one_port_share_a_limit() {
    let (mut nic, _wire) = MemNic::new(MemConfig { pool_frames: 3, ..MemConfig::default() }).unwrap();
    let (mut one, mut two) = (nic.pool(0), nic.pool(1));
    let held = [one.alloc(), two.alloc(), one.alloc()];
    assert!(held.iter().all(Option::is_some) && two.alloc().is_none());
    drop(held);
    assert!(two.alloc().is_some());
}

mod rss {
    use io::mem::RssMode;

    fn ethernet(tags: &[u8], ethertype: [u8; 2], packet: &[u8]) -> Vec<u8> {
        [&[2; 12], tags, &ethertype, packet].concat()
    }

    fn ipv4(source: [u8; 4], destination: [u8; 4], fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, (20 + payload.len()) as u8, 0, 0];
        header.extend_from_slice(&fragment.to_be_bytes());
        header.extend_from_slice(&[64, 17, 0, 0]);
        [&header[..], &source, &destination, payload].concat()
    }

    fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
        [&source.to_be_bytes()[..], &destination.to_be_bytes(), &[0, 0, 0, 0], payload].concat()
    }

    /// A G-PDU with a PDU session container of the given PDU type.
    fn g_pdu(pdu_type: u8, inner: &[u8]) -> Vec<u8> {
        let header = [0x34, 255, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, pdu_type << 4, 9, 0];
        [&header[..], inner].concat()
    }

    const UE: [u8; 4] = [10, 1, 2, 3];
    const SERVER: [u8; 4] = [198, 51, 100, 9];
    const GNB: [u8; 4] = [192, 0, 2, 1];
    const UPF: [u8; 4] = [192, 0, 2, 2];

    #[test]
    fn both_directions_of_a_subscriber_hash_alike() {
        let hash = |frame: &[u8]| RssMode::InnerIp.hash(frame).unwrap();
        let up = ipv4(UE, SERVER, 0, &udp(1000, 443, b"request"));
        let down = ipv4(SERVER, UE, 0, &udp(443, 1000, b"answer"));
        let n3_up = ipv4(GNB, UPF, 0, &udp(2152, 2152, &g_pdu(1, &up)));
        let n9_down = ipv4(GNB, UPF, 0, &udp(2152, 2152, &g_pdu(0, &down)));
        let plain = hash(&ethernet(&[], [8, 0], &down));
        assert_eq!(hash(&ethernet(&[], [8, 0], &n3_up)), plain);
        assert_eq!(hash(&ethernet(&[], [8, 0], &n9_down)), plain);
        assert_eq!(hash(&ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], [8, 0], &n3_up)), plain);
        assert_ne!(hash(&ethernet(&[], [8, 0], &ipv4(SERVER, [10, 1, 2, 4], 0, &[]))), plain);
        assert_eq!(plain, packet::rss::ue_hash(UE.into()), "the hash that says the subscriber's shard");
    }

    #[test]
    fn ipv6_counts_with_its_prefix() {
        let packet = |last: u8| {
            let mut packet = vec![0; 40];
            packet[0] = 0x60;
            packet[24..32].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 1, 0, 2]);
            packet[39] = last;
            ethernet(&[], [0x86, 0xdd], &packet)
        };
        let hash = RssMode::InnerIp.hash(&packet(1));
        assert_eq!(hash, Some(packet::rss::ue_hash([0x2001, 0xdb8, 1, 2, 0, 0, 0, 9].into())));
        assert_eq!(hash, RssMode::InnerIp.hash(&packet(2)));
    }

    #[test]
    fn outer_mode_tells_flows_apart_but_not_fragments() {
        let hash = |packet: &[u8]| RssMode::Outer.hash(&ethernet(&[], [8, 0], packet)).unwrap();
        let (a, b) = (udp(1000, 2152, &[]), udp(1001, 2152, &[]));
        assert_ne!(hash(&ipv4(GNB, UPF, 0, &a)), hash(&ipv4(GNB, UPF, 0, &b)));
        assert_eq!(hash(&ipv4(GNB, UPF, 0x2000, &a)), hash(&ipv4(GNB, UPF, 0x2000, &b)));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut frame in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            for head in [&[8, 0, 0x45][..], &[0x86, 0xdd, 0x60], &[0x81, 0, 1]] {
                if let Some(place) = frame.get_mut(12..15) {
                    place.copy_from_slice(head);
                }
                if frame.len() > 40 {
                    frame[23] = 17;
                    frame[36..38].copy_from_slice(&2152u16.to_be_bytes());
                }
                RssMode::Outer.hash(&frame);
                RssMode::InnerIp.hash(&frame);
            }
        }

        #[test]
        fn truncated_packets_never_panic(cut in 0usize..200) {
            let up = ipv4(UE, SERVER, 0, &udp(1000, 443, b"request"));
            let frame = ethernet(&[], [8, 0], &ipv4(GNB, UPF, 0, &udp(2152, 2152, &g_pdu(1, &up))));
            RssMode::InnerIp.hash(&frame[..cut.min(frame.len())]);
        }
    }
}

#[test]
fn steering_comes_ahead_of_rss() {
    use io::steering::{Control, Duty, Group, Steering};
    use packet::gtpu::MessageType;
    use packet::{Dscp, PacketBuilder, Teid};
    use std::net::Ipv4Addr;

    let (own, peer) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let steering =
        Steering::new(Some(Control::new([own.into()])), vec![Group::new("voice", [Dscp::EF])]).unwrap();
    let config =
        MemConfig { queues: 2, rss: RssMode::Preset, descriptors: 4, steering, ..MemConfig::default() };
    let (mut nic, mut wire) = MemNic::new(config).unwrap();
    let mut ordinary: Vec<_> = (0..2).map(|queue| nic.take_queue(queue).unwrap().0).collect();
    let mut voice: Vec<_> = (0..2).map(|queue| nic.take_steered(Duty::Group(0), queue).unwrap()).collect();
    let mut control = nic.take_steered(Duty::Control, 0).unwrap();
    for (duty, queue) in [(Duty::Control, 0), (Duty::Control, 1), (Duty::Group(0), 2), (Duty::Group(1), 0)] {
        assert!(nic.take_steered(duty, queue).is_none(), "{duty:?} {queue}");
    }
    let packet = |hash, dscp: Dscp, kind| {
        let header = packet::ipv4::Ipv4Header {
            source: peer,
            destination: own,
            tos: dscp.to_tos(),
            ..packet::ipv4::Ipv4Header::default()
        };
        let builder = PacketBuilder::new().ethernet(nic.info().mac, nic.info().mac).ipv4_header(header);
        let bytes = builder.udp(2152, 2152).gtpu_message(kind, Teid(0)).build(&[0; 8]);
        let mut frame = MemFrame::copy_of(&bytes).unwrap();
        frame.set_rss_hash(hash);
        frame
    };
    // The ordinary queues overflow; nothing else is lost by that.
    let mut frames = Vec::new();
    for hash in [2, 3] {
        frames.extend((0..6).map(|_| packet(hash, Dscp::CS0, MessageType::G_PDU)));
        frames.push(packet(hash, Dscp::EF, MessageType::G_PDU));
        frames.push(packet(hash, Dscp::CS0, MessageType::ECHO_REQUEST));
    }
    assert_eq!(wire.inject(&mut frames), 12);
    let mut count = |rx: &mut io::mem::MemRx| rx.rx_burst(&mut frames, 64);
    let counts: Vec<_> = ordinary.iter_mut().chain(&mut voice).map(&mut count).collect();
    assert_eq!((counts.as_slice(), count(&mut control)), ([4, 4, 1, 1].as_slice(), 2));
    let registers = nic.control();
    let missed = |queue| registers.queue_stats(queue).unwrap().rx_missed;
    assert_eq!((0..5).map(missed).collect::<Vec<_>>(), [2, 2, 0, 0, 0]);
    assert_eq!((nic.stats().rx_packets, nic.stats().rx_missed), (12, 4));
}

/// A generator deals out numbered frames of every entry while entries are moved to and fro. Once the change has settled and the
/// queue they left has run empty, no frame of theirs turns up there any more.
#[test]
fn after_a_redirection_has_settled_the_old_queue_gets_nothing_more() {
    use io::BURST;
    use io::redirection::ENTRIES;
    let config = MemConfig { queues: 2, descriptors: 256, ..MemConfig::default() };
    let (mut nic, mut wire) = MemNic::new(config).unwrap();
    let mut redirection = nic.redirection().expect("its hash is the subscriber's");
    let (mut queues, mut burst) = (Vec::new(), Vec::with_capacity(BURST));
    for queue in 0..2 {
        queues.push(nic.take_queue(queue).unwrap().0);
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut address = 0u32;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let mut frames: Vec<MemFrame> = (0..32)
                    .map(|_| {
                        address = address.wrapping_add(1);
                        let builder = packet::PacketBuilder::new()
                            .ethernet(packet::MacAddr([2; 6]), packet::MacAddr([4; 6]))
                            .ipv4([192, 0, 2, 1].into(), address.into())
                            .udp(1, 2);
                        MemFrame::copy_of(&builder.build(&[])).unwrap()
                    })
                    .collect();
                wire.inject(&mut frames);
            }
        });
        let entries: Vec<u16> = (0..ENTRIES as u16).collect();
        for round in 0..400u16 {
            let (to, from) = (round % 2, usize::from(1 - round % 2));
            redirection.redirect(&entries, to).unwrap();
            while !redirection.settled() {
                std::hint::spin_loop();
            }
            while queues[from].rx_burst(&mut burst, BURST) == BURST {
                burst.clear();
            }
            burst.clear();
            for _ in 0..20 {
                assert_eq!(queues[from].rx_burst(&mut burst, BURST), 0, "round {round}");
                queues[1 - from].rx_burst(&mut burst, BURST);
                burst.clear();
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(redirection.redirect(&[1], 2), Err(io::RedirectError::Queue { queue: 2, queues: 2 }));
}
