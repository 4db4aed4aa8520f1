//! The conformance body on DPDK's virtual devices.
//!
//! EAL starts once per process and network devices need a namespace that nothing else sees, so each test runs its body in a
//! process of its own under `unshare --net`; the namespace and all in it vanish with the process. Where the machine
//! can't do that, the test says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{Peer, against_af_packet, open, sh, start, veth};
use dpdk::bond::{Bond, Mode, Timeout, Transmit};
use dpdk::{DeviceSpec, DpdkError, DpdkPort, Eal, EalConfig, Memory};
use io::conformance::{self, Expect, FarSide, Wiring};
use io::{Frame, FramePool, Port, RxQueue, TxQueue};
use std::time::{Duration, Instant};

#[test]
fn null() {
    testing::in_process("null_body");
}

#[test]
#[ignore = "run by `null` in a process of its own"]
fn null_body() {
    let eal = start(&[]);
    assert_eq!(Eal::init(&EalConfig::default()).unwrap_err(), DpdkError::Started);
    let affinity = |path| std::fs::read_to_string(path).unwrap();
    let worker = std::thread::spawn(move || affinity("/proc/thread-self/status")).join().unwrap();
    let cpus = |status: &str| status.lines().find(|l| l.starts_with("Cpus_allowed_list")).unwrap().to_owned();
    let init = std::fs::read_to_string(format!("/proc/{}/status", std::process::id())).unwrap();
    assert_eq!(cpus(&worker), cpus(&init), "EAL pinned its caller");

    let mut port = open(&eal, &DeviceSpec { queues: 2, ..DeviceSpec::new("n", "net_null0,size=150") });
    assert_eq!((port.info().queues, port.info().driver.as_str()), (2, "net_null"));
    let mut threads = Vec::new();
    for queue in 0..2 {
        let (mut rx, mut tx) = port.take_queue(queue).unwrap();
        let eal = eal.clone();
        threads.push(std::thread::spawn(move || {
            let outer = eal.register_thread().unwrap();
            let inner = eal.register_thread().unwrap();
            drop(inner);
            let mut frames = Vec::with_capacity(64);
            let start = Instant::now();
            for _ in 0..20_000 {
                assert_eq!(rx.rx_burst(&mut frames, 64), 64);
                assert!(frames.iter().all(|frame| frame.len() == 150 && frame.headroom() == 128));
                assert_eq!(tx.tx_burst(&mut frames), 64);
            }
            println!("net_null: {:.1} ns/packet", start.elapsed().as_nanos() as f64 / (20_000.0 * 64.0));
            rx.rx_burst(&mut frames, 64);
            drop(frames);
            drop(outer);
        }));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(port.take_queue(0).is_none() && port.take_queue(2).is_none());
    assert_eq!(port.stats().tx_packets, 2 * 20_000 * 64);
    assert_eq!(port.frames_in_use(), 0, "all dropped frames are back");
    drop(port);
    drop(eal);
    // Cleaned up, and still not to be started again.
    assert_eq!(Eal::init(&EalConfig::default()).unwrap_err(), DpdkError::Started);
}

#[test]
fn a_frame_that_outlives_everything_stays_valid() {
    testing::in_process("outliving_body");
}

#[test]
#[ignore = "run by `a_frame_that_outlives_everything_stays_valid` in a process of its own"]
fn outliving_body() {
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec::new("n", "net_null0"));
    let mut frame = port.pool(0).alloc().unwrap();
    assert!(frame.append(100));
    frame.bytes_mut().fill(0xa5);
    drop(port);
    drop(eal);
    assert_eq!(frame.bytes(), [0xa5; 100]);
    frame.bytes_mut().fill(1);
    drop(frame);
}

#[test]
fn ring() {
    testing::in_process("ring_body");
}

#[test]
#[ignore = "run by `ring` in a process of its own"]
fn ring_body() {
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec::new("r", "net_ring0"));
    // The driver hands over pointers and looks into no packet.
    let expect = Expect { counts_bytes: false, ..Expect::default() };
    let report = conformance::run(&mut port, Wiring::Loop, expect).unwrap_or_else(|e| panic!("{e}"));
    println!("{report:?}");
    assert_eq!(port.frames_in_use(), 0, "nothing leaked");
}

#[test]
fn af_xdp() {
    testing::in_namespace("af_xdp_body");
}

#[test]
#[ignore = "run by `af_xdp` in a namespace of its own"]
fn af_xdp_body() {
    veth(1500);
    let eal = start(&[]);
    let mut port = match DpdkPort::open(&eal, &DeviceSpec::new("n3", "net_af_xdp0,iface=here")) {
        Ok(port) => port,
        Err(error) => {
            return testing::skipped(error);
        }
    };
    against_af_packet(&eal, &mut port, "there", Expect::default(), 1500);
}

#[test]
fn tap() {
    testing::in_namespace("tap_body");
}

#[test]
#[ignore = "run by `tap` in a namespace of its own"]
fn tap_body() {
    let device = "net_tap0,iface=kernel";
    let eal = start(&[device]);
    let mut port = match DpdkPort::open(&eal, &DeviceSpec::new("n3", device)) {
        Ok(port) => port,
        Err(error) => {
            return testing::skipped(error);
        }
    };
    sh("echo 1 > /proc/sys/net/ipv6/conf/kernel/disable_ipv6; ip link set kernel up");
    against_af_packet(&eal, &mut port, "kernel", Expect::default(), 1500);
    let directory = format!("/var/run/dpdk/millrace{}", std::process::id());
    drop((port, eal));
    assert!(!std::path::Path::new(&directory).exists(), "{directory} was left behind");
}

/// A port of several devices.
fn bonded(number: u8, mode: Mode, primary: Option<usize>, members: &[&str]) -> DeviceSpec {
    let members = members.iter().map(|&member| member.to_owned()).collect();
    let bond = Bond { mode, members, transmit: Transmit::L34, primary, timeout: Timeout::Short };
    DeviceSpec { bond: Some(bond), ..DeviceSpec::new("lag", &format!("net_bonding{number}")) }
}

/// An IPv4 UDP packet of a flow, numbered.
fn numbered(flow: u8, number: u16) -> Vec<u8> {
    let mut packet = vec![0xff; 60];
    packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    packet[12..42].copy_from_slice(&[
        8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x20, flow, 8, 0x68, 0,
        26, 0, 0,
    ]);
    packet[42..44].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The flow and number of one of those, among whatever else the kernel sends.
fn number_of(packet: &[u8]) -> Option<(u8, u16)> {
    let ours = packet.len() >= 60 && packet[6..14] == [2, 0, 0, 0, 0, 9, 8, 0];
    ours.then(|| (packet[35], u16::from_be_bytes([packet[42], packet[43]])))
}

fn carries(port: &DpdkPort) -> Vec<bool> {
    port.members().iter().map(|member| member.active).collect()
}

/// Polls until the members that carry packets are these; says how long that took.
fn until_carried_by(port: &DpdkPort, expected: &[bool], mut poll: impl FnMut()) -> Duration {
    let start = Instant::now();
    while carries(port) != expected {
        assert!(start.elapsed() < Duration::from_secs(45), "{:?}", port.members());
        poll();
        std::thread::sleep(Duration::from_micros(100));
    }
    start.elapsed()
}

#[test]
fn bond_active_backup() {
    testing::in_namespace("bond_active_backup_body");
}

#[test]
#[ignore = "run by `bond_active_backup` in a namespace of its own"]
fn bond_active_backup_body() {
    let devices = ["net_tap0,iface=left", "net_tap1,iface=right"];
    let eal = start(&devices);
    let mut port = match DpdkPort::open(&eal, &bonded(0, Mode::ActiveBackup, Some(0), &devices)) {
        Ok(port) => port,
        Err(error) => {
            return testing::skipped(error);
        }
    };
    assert_eq!(port.info().driver, "net_bonding");
    sh("for i in left right; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; ip link set $i up; done");
    until_carried_by(&port, &[true, false], || ());
    let far = |number: u8, iface: &str| {
        let device = format!("net_af_packet{number},iface={iface}");
        Peer::new(open(&eal, &DeviceSpec::new("far", &device)))
    };
    let mut far = [far(0, "left"), far(1, "right")];
    let (mut rx, mut tx) = port.take_queue(0).unwrap();
    let mut pool = port.pool(0);

    // 2,000 packets/s out; a cable is pulled a quarter of the way and put back at three quarters.
    let (mut got, mut sent, mut changed) = ([Vec::new(), Vec::new()], 0, Vec::new());
    let began = Instant::now();
    while sent < 4_000 {
        match sent {
            1_000 => sh("ip link set left down"),
            3_000 => sh("ip link set left up"),
            _ => {}
        }
        let due = began + Duration::from_micros(500) * u32::from(sent);
        while Instant::now() < due {
            std::thread::yield_now();
        }
        let mut frame = pool.alloc().unwrap();
        assert!(frame.append(60));
        frame.bytes_mut().copy_from_slice(&numbered(1, sent));
        tx.tx_burst(&mut vec![frame]);
        sent += 1;
        let now = carries(&port);
        if changed.last().is_none_or(|(_, last)| *last != now) {
            changed.push((sent, now));
        }
        for (far, got) in far.iter_mut().zip(&mut got) {
            got.extend(far.collect().iter().filter_map(|packet| number_of(packet)).map(|(_, number)| number));
        }
    }
    let deadline = Instant::now() + Duration::from_millis(100);
    while Instant::now() < deadline {
        for (far, got) in far.iter_mut().zip(&mut got) {
            got.extend(far.collect().iter().filter_map(|packet| number_of(packet)).map(|(_, number)| number));
        }
    }
    let [left, right] = &got;
    let lost = usize::from(sent) - left.len() - right.len();
    println!("members that carry packets, from packet on: {changed:?}");
    println!("sent {sent}, by the left {}, by the right {}, lost {lost}", left.len(), right.len());
    let carriers: Vec<_> =
        changed.into_iter().map(|(_, carriers)| carriers).filter(|c| c.contains(&true)).collect();
    assert_eq!(carriers, [[true, false], [false, true], [true, false]]);
    assert!(left.is_sorted() && right.is_sorted(), "reordered");
    assert!(right.len() > 1_500 && left.contains(&999) && left.contains(&3_999));
    // Both links are looked at every 10 ms: 20 packets each time, and the machine is shared.
    assert!(lost <= 400, "{lost} lost");

    // The way back: what comes in by the member in use arrives. A socket's first packet after its interface was down only
    // learns of that.
    let mut frames = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(2);
    while !frames.iter().any(|frame: &dpdk::Mbuf| number_of(frame.bytes()) == Some((2, 7))) {
        assert!(Instant::now() < deadline, "nothing came in");
        far[0].inject(&numbered(2, 7));
        std::thread::sleep(Duration::from_millis(1));
        rx.rx_burst(&mut frames, 64);
    }
    assert!(port.link_up());
}

#[test]
fn bond_balance() {
    testing::in_namespace("bond_balance_body");
}

/// Two veth pairs `near0`-`far0` and `near1`-`far1`; both ends of a side have the same MAC address.
fn two_veths() {
    for pair in 0..2 {
        sh(&format!(
            "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
             ip link add near{pair} address 02:00:00:00:00:aa type veth peer name far{pair} address 02:00:00:00:00:bb
             ip link set near{pair} up; ip link set far{pair} up"
        ));
    }
}

#[test]
#[ignore = "run by `bond_balance` in a namespace of its own"]
fn bond_balance_body() {
    two_veths();
    let eal = start(&[]);
    let near = ["net_af_packet0,iface=near0", "net_af_packet1,iface=near1"];
    let far = |iface: &str| {
        let device = format!("net_af_packet{},iface={iface}", 10 + iface.len());
        Peer::new(open(&eal, &DeviceSpec::new("far", &device)))
    };
    let mut far = [far("far0"), Peer::new(open(&eal, &DeviceSpec::new("far", "net_af_packet9,iface=far1")))];
    for mode in [Mode::Balance, Mode::RoundRobin] {
        let mut port = open(&eal, &bonded(3, mode, None, &near));
        assert_eq!(port.members().iter().map(|member| member.link_up).collect::<Vec<_>>(), [true; 2]);
        until_carried_by(&port, &[true, true], || ());
        let (mut rx, mut tx) = port.take_queue(0).unwrap();
        let mut pool = port.pool(0);
        for number in 0..8 {
            for flow in 0..33 {
                let mut frame = pool.alloc().unwrap();
                assert!(frame.append(60));
                frame.bytes_mut().copy_from_slice(&numbered(flow, number));
                assert_eq!(tx.tx_burst(&mut vec![frame]), 1);
            }
        }
        let mut by = [[0_u16; 2]; 33];
        let deadline = Instant::now() + Duration::from_secs(2);
        while by.iter().flatten().sum::<u16>() < 264 && Instant::now() < deadline {
            for (member, far) in far.iter_mut().enumerate() {
                for (flow, number) in far.collect().iter().filter_map(|packet| number_of(packet)) {
                    let seen = &mut by[usize::from(flow)];
                    assert!(mode == Mode::RoundRobin || seen[member] == number, "flow {flow} reordered");
                    seen[member] += 1;
                }
            }
        }
        let total = by.iter().fold([0; 2], |sum, by| [sum[0] + by[0], sum[1] + by[1]]);
        println!("{mode:?}: {total:?} by member");
        assert_eq!(total[0] + total[1], 264, "lost some");
        let together = by.iter().filter(|by| by.contains(&0)).count();
        match mode {
            Mode::Balance => assert!(together == 33 && total.iter().all(|&n| n >= 32), "{by:?}"),
            _ => assert_eq!((together, total), (0, [132, 132]), "{by:?}"),
        }
        // What comes in by either arrives.
        far.iter_mut().for_each(|far| far.inject(&numbered(40, 1)));
        let mut frames = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(2);
        let came =
            |frames: &[dpdk::Mbuf]| frames.iter().filter(|f| number_of(f.bytes()) == Some((40, 1))).count();
        while came(&frames) < 2 && Instant::now() < deadline {
            rx.rx_burst(&mut frames, 64);
        }
        assert_eq!(came(&frames), 2);
        let (sum, members) = (port.stats(), port.members());
        assert!(sum.tx_packets == 264 && members.iter().all(|member| member.partner.is_none()), "{sum:?}");
    }
}

#[test]
fn bond_lacp() {
    testing::in_namespace("bond_lacp_body");
}

#[test]
#[ignore = "run by `bond_lacp` in a namespace of its own"]
fn bond_lacp_body() {
    let taps = ["net_tap0,iface=left", "net_tap1,iface=right"];
    let eal = start(&taps);
    let mut near = match DpdkPort::open(&eal, &bonded(0, Mode::Lacp, None, &taps)) {
        Ok(port) => port,
        Err(error) => {
            return testing::skipped(error);
        }
    };
    // The kernel's ends of the cables belong to another system.
    sh("for i in left right; do
            echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6
            ip link set $i address 02:00:00:00:00:bb; ip link set $i up
        done");
    let sockets = ["net_af_packet0,iface=left", "net_af_packet1,iface=right"];
    let mut far = open(&eal, &bonded(1, Mode::Lacp, None, &sockets));
    let ((mut near_rx, mut near_tx), (mut far_rx, _far_tx)) =
        (near.take_queue(0).unwrap(), far.take_queue(0).unwrap());
    let mut frames = Vec::new();
    // Neither side sends anything of its own: LACP's packets are the receive halves' doing.
    let mut poll = || {
        near_rx.rx_burst(&mut frames, 64);
        far_rx.rx_burst(&mut frames, 64);
        frames.clear();
    };
    assert_eq!(carries(&near), [false, false], "nobody has agreed yet");
    let took = until_carried_by(&near, &[true, true], &mut poll);
    until_carried_by(&far, &[true, true], &mut poll);
    println!("both sides agreed after {took:?}: {:?}", near.members());
    let partner = |port: &DpdkPort| port.members()[0].partner;
    assert_eq!((partner(&near), partner(&far)), (Some(far.info().mac), Some(near.info().mac)));
    assert!(near.link_up() && far.link_up());

    // Flows spread over both cables; when one is pulled, all go on over the other.
    let mut pool = near.pool(0);
    let mut exchange = |flows: u8| {
        for flow in 0..flows {
            let mut frame = pool.alloc().unwrap();
            assert!(frame.append(60));
            frame.bytes_mut().copy_from_slice(&numbered(flow, 0));
            assert_eq!(near_tx.tx_burst(&mut vec![frame]), 1);
        }
        let (mut got, mut frames) = (0, Vec::new());
        let deadline = Instant::now() + Duration::from_secs(1);
        while got < usize::from(flows) && Instant::now() < deadline {
            far_rx.rx_burst(&mut frames, 64);
            got += frames.drain(..).filter(|frame| number_of(frame.bytes()).is_some()).count();
        }
        got
    };
    let before = near.stats().tx_packets;
    assert_eq!(exchange(64), 64);
    assert!(near.stats().tx_packets >= before + 64);
    sh("ip link set left down");
    let took = until_carried_by(&near, &[false, true], || ());
    println!("a pulled cable was left out after {took:?}");
    assert_eq!(exchange(64), 64);
    assert!(near.members()[1].link_up && !near.members()[0].link_up && near.link_up());
}

#[test]
fn bond_lacp_gives_a_silent_partner_up() {
    testing::in_namespace("bond_lacp_silence_body");
}

/// The other end of one cable, as IEEE 802.1AX has it: an LACPDU when one came, and then as often as it is asked to.
struct Partner {
    cable: Peer,
    number: u8,
    /// What came last: the port's own part of it, and when.
    heard: Option<([u8; 18], Instant)>,
    sent: Option<Instant>,
}

impl Partner {
    fn new(eal: &Eal, number: u8, iface: &str) -> Self {
        let device = format!("net_af_packet{number},iface={iface}");
        let cable = Peer::new(open(eal, &DeviceSpec::new("far", &device)));
        Self { cable, number, heard: None, sent: None }
    }

    /// Whether the port asks for short timeouts: the second bit of the actor's state.
    fn is_hurried(&self) -> Option<bool> {
        self.heard.map(|(actor, _)| actor[14] & 0x02 != 0)
    }

    fn turn(&mut self) {
        let slow = |frame: &Vec<u8>| frame.len() >= 124 && frame[12..16] == [0x88, 0x09, 1, 1];
        let news = self.cable.collect().into_iter().rfind(slow);
        if let Some(frame) = &news {
            // Behind type and length of the actor's part.
            self.heard = Some((frame[18..36].try_into().unwrap(), Instant::now()));
        }
        let period = Duration::from_secs(if self.is_hurried() == Some(true) { 1 } else { 30 });
        let due = self.sent.is_none_or(|sent| sent.elapsed() >= period);
        if let Some((actor, _)) = self.heard.filter(|_| news.is_some() || due) {
            let mut pdu = vec![0x01, 0x80, 0xc2, 0, 0, 2, 2, 0, 0, 0, 0, 0xbb, 0x88, 0x09, 1, 1];
            // Active, aggregating, in sync, collecting and distributing, with short timeouts of its own.
            pdu.extend([
                1,
                20,
                0xff,
                0xff,
                2,
                0,
                0,
                0,
                0,
                0xbb,
                0,
                1,
                0,
                0xff,
                0,
                self.number,
                0x3f,
                0,
                0,
                0,
            ]);
            pdu.extend([2, 20]);
            pdu.extend(actor);
            pdu.extend([3, 16]);
            pdu.resize(124, 0);
            self.cable.inject(&pdu);
            self.sent = Some(Instant::now());
        }
    }
}

#[test]
#[ignore = "run by `bond_lacp_gives_a_silent_partner_up` in a namespace of its own"]
fn bond_lacp_silence_body() {
    let taps = ["net_tap0,iface=left", "net_tap1,iface=right"];
    let eal = start(&taps);
    for timeout in [Timeout::Short, Timeout::Long] {
        let mut spec = bonded(0, Mode::Lacp, None, &taps);
        spec.bond.as_mut().unwrap().timeout = timeout;
        let mut port = match DpdkPort::open(&eal, &spec) {
            Ok(port) => port,
            Err(error) => {
                return testing::skipped(error);
            }
        };
        sh(
            "for i in left right; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; ip link set $i up; done",
        );
        let mut partners = [Partner::new(&eal, 8, "left"), Partner::new(&eal, 9, "right")];
        let (mut rx, _tx) = port.take_queue(0).unwrap();
        let mut frames = Vec::new();
        let mut poll = || {
            rx.rx_burst(&mut frames, 64);
            frames.clear();
        };
        let took = until_carried_by(&port, &[true, true], || {
            poll();
            partners.iter_mut().for_each(Partner::turn);
        });
        println!("{timeout:?}: agreed after {took:?}");
        let hurried = Some(timeout == Timeout::Short);
        assert!(partners.iter().all(|partner| partner.is_hurried() == hurried), "{timeout:?}");
        if timeout == Timeout::Long {
            continue;
        }
        // One falls silent, the other answers on: the one is left out, the other is not.
        let [left, right] = &mut partners;
        let took = until_carried_by(&port, &[false, true], || {
            poll();
            right.turn();
        });
        println!("a silent partner was left out after {took:?}");
        let back = until_carried_by(&port, &[true, true], || {
            poll();
            left.turn();
            right.turn();
        });
        println!("and was back after {back:?}");
    }
}

#[test]
fn bond_errors() {
    testing::in_namespace("bond_errors_body");
}

#[test]
#[ignore = "run by `bond_errors` in a namespace of its own"]
fn bond_errors_body() {
    two_veths();
    let eal = start(&[]);
    let near = ["net_af_packet0,iface=near0", "net_af_packet1,iface=near1"];
    let missing = [near[0], "net_af_packet2,iface=nowhere"];
    let error = DpdkPort::open(&eal, &bonded(0, Mode::Balance, None, &missing)).unwrap_err();
    assert!(matches!(&error, DpdkError::Probe { device, .. } if device.contains("nowhere")), "{error}");
    // Members that are two systems can't speak LACP as one, and this driver sets no addresses.
    sh("ip link set near1 address 02:00:00:00:00:cc");
    let error = DpdkPort::open(&eal, &bonded(0, Mode::Lacp, None, &near)).unwrap_err();
    assert!(matches!(error, DpdkError::Bond { .. }) && error.to_string().contains("one MAC"), "{error}");
    // What failed left nothing behind.
    for _ in 0..2 {
        let port = open(&eal, &bonded(0, Mode::ActiveBackup, None, &near));
        assert_eq!(port.members().len(), 2);
    }
    let port = open(&eal, &DeviceSpec::new("one", near[0]));
    assert!(port.members().is_empty());
}

#[test]
fn errors_say_what_to_do() {
    testing::in_namespace("errors_body");
}

#[test]
#[ignore = "run by `errors_say_what_to_do` in a namespace of its own"]
fn errors_body() {
    let eal = start(&[]);
    let refused = |device: &str| DpdkPort::open(&eal, &DeviceSpec::new("x", device)).unwrap_err();
    assert_eq!(refused("eth0"), DpdkError::Device("eth0".into()));
    assert_eq!(refused("net_null0,a\0b"), DpdkError::Device("net_null0,a\0b".into()));
    let missing = refused("net_af_packet0,iface=nowhere");
    let text = missing.to_string();
    assert!(matches!(missing, DpdkError::Probe { .. }) && text.contains("interface exist"), "{text}");
    assert!(text.contains("nowhere"), "DPDK's own words are kept: {text}");
    assert!(matches!(refused("net_nonsense0"), DpdkError::Probe { .. }));
    assert!(matches!(refused("0000:99:00.0"), DpdkError::Probe { .. }));
    let queues = DeviceSpec { queues: 5000, ..DeviceSpec::new("x", "net_null0") };
    assert!(matches!(DpdkPort::open(&eal, &queues).unwrap_err(), DpdkError::Queues { wanted: 5000, .. }));
    let frames = DeviceSpec { frames: Some(100_000_000), ..DeviceSpec::new("x", "net_null0") };
    assert!(matches!(DpdkPort::open(&eal, &frames).unwrap_err(), DpdkError::Pool { .. }));
    // What failed left nothing behind: the same name works now, twice in a row.
    for _ in 0..2 {
        drop(open(&eal, &DeviceSpec::new("x", "net_null0")));
    }
}

#[test]
fn huge_pages_are_demanded_in_vain() {
    testing::in_process("huge_pages_body");
}

#[test]
#[ignore = "run by `huge_pages_are_demanded_in_vain` in a process of its own"]
fn huge_pages_body() {
    // More than any machine has, so the answer is the same with and without huge pages.
    let config = EalConfig { memory: Memory::HugePages, megabytes: 4 << 20, ..EalConfig::default() };
    let error = Eal::init(&config).unwrap_err();
    assert_eq!(error, DpdkError::HugePages { megabytes: 4 << 20 });
    assert!(error.to_string().contains("nr_hugepages=2097152"));
    // That was asked before EAL was touched, so it can still start another way.
    drop(Eal::init(&EalConfig { memory: Memory::NoHuge, ..EalConfig::default() }).unwrap());
}
