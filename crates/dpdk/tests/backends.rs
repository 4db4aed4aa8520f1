//! The conformance body on DPDK's virtual devices.
//!
//! EAL starts once per process and network devices need a namespace that nothing else sees, so each test runs its body in a
//! process of its own under `unshare --net`; the namespace and all in it vanish with the process. Where the machine
//! can't do that, the test says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{alone, open, sh, start};
use dpdk::{DeviceSpec, DpdkError, DpdkPort, DpdkRx, DpdkTx, Eal, EalConfig, Memory, MempoolPool};
use io::conformance::{self, Expect, FarSide, Wiring};
use io::{Frame, FramePool, Port, RxQueue, TxQueue};
use std::time::{Duration, Instant};

/// A veth pair `here`-`there`, up, without the kernel's own IPv6 chatter.
fn veth(mtu: u16) {
    sh(&format!(
        "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
         ip link add here mtu {mtu} type veth peer name there mtu {mtu}
         ip link set here up; ip link set there up"
    ));
}

/// The other end of the cable, as another port.
struct Peer {
    rx: DpdkRx,
    tx: DpdkTx,
    pool: MempoolPool,
    _port: DpdkPort,
}

impl Peer {
    fn new(mut port: DpdkPort) -> Self {
        let (rx, tx) = port.take_queue(0).unwrap();
        let pool = port.pool(0);
        Self { rx, tx, pool, _port: port }
    }
}

impl FarSide for Peer {
    fn inject(&mut self, packet: &[u8]) {
        let mut frame = self.pool.alloc().unwrap();
        assert!(frame.append(packet.len()));
        frame.bytes_mut().copy_from_slice(packet);
        let mut frames = vec![frame];
        let deadline = Instant::now() + Duration::from_secs(2);
        while self.tx.tx_burst(&mut frames) == 0 {
            assert!(Instant::now() < deadline, "the peer can't send");
        }
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.rx.rx_burst(&mut frames, 64);
        frames.iter().map(|frame| frame.bytes().to_vec()).collect()
    }
}

/// `device` on one end of a cable, an AF_PACKET port on the interface `peer` at the other.
fn against_af_packet(eal: &Eal, port: &mut DpdkPort, peer: &str, expect: Expect, mtu: u16) {
    let device = format!("net_af_packet9,iface={peer}");
    let far = open(eal, &DeviceSpec { mtu, ..DeviceSpec::new("far", &device) });
    let mut far = Peer::new(far);
    // A driver that starts its link in the background gets a moment.
    let deadline = Instant::now() + Duration::from_secs(3);
    while !port.link_up() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let report = conformance::run(port, Wiring::Far(&mut far), expect).unwrap_or_else(|e| panic!("{e}"));
    println!("{}: {report:?}, {:?}", port.info().driver, port.stats());
}

#[test]
fn null() {
    alone("null_body", false);
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
    alone("outliving_body", false);
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
    alone("ring_body", false);
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
fn af_packet() {
    alone("af_packet_body", true);
}

#[test]
#[ignore = "run by `af_packet` in a namespace of its own"]
fn af_packet_body() {
    veth(1500);
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec::new("n3", "net_af_packet0,iface=here"));
    against_af_packet(&eal, &mut port, "there", Expect::default(), 1500);
    let too_long = DeviceSpec { mtu: 9000, ..DeviceSpec::new("x", "net_af_packet1,iface=here") };
    let refused = DpdkPort::open(&eal, &too_long).unwrap_err();
    assert!(matches!(refused, DpdkError::Mtu { wanted: 9000, most: 1500, .. }), "{refused}");
}

#[test]
fn af_packet_queues() {
    alone("af_packet_queues_body", true);
}

#[test]
#[ignore = "run by `af_packet_queues` in a namespace of its own"]
fn af_packet_queues_body() {
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
fn af_packet_leaves_fragments_alone() {
    alone("af_packet_fragments_body", true);
}

#[test]
#[ignore = "run by `af_packet_leaves_fragments_alone` in a namespace of its own"]
fn af_packet_fragments_body() {
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
fn af_packet_jumbo() {
    alone("af_packet_jumbo_body", true);
}

#[test]
#[ignore = "run by `af_packet_jumbo` in a namespace of its own"]
fn af_packet_jumbo_body() {
    veth(9000);
    let eal = start(&[]);
    let mut port =
        open(&eal, &DeviceSpec { mtu: 9000, ..DeviceSpec::new("n3", "net_af_packet0,iface=here") });
    let expect = Expect { longest: 9014, ..Expect::default() };
    against_af_packet(&eal, &mut port, "there", expect, 9000);
}

#[test]
fn af_xdp() {
    alone("af_xdp_body", true);
}

#[test]
#[ignore = "run by `af_xdp` in a namespace of its own"]
fn af_xdp_body() {
    veth(1500);
    let eal = start(&[]);
    let mut port = match DpdkPort::open(&eal, &DeviceSpec::new("n3", "net_af_xdp0,iface=here")) {
        Ok(port) => port,
        Err(error) => {
            println!("skipped af_xdp: {error}");
            return;
        }
    };
    against_af_packet(&eal, &mut port, "there", Expect::default(), 1500);
}

#[test]
fn tap() {
    alone("tap_body", true);
}

#[test]
#[ignore = "run by `tap` in a namespace of its own"]
fn tap_body() {
    let device = "net_tap0,iface=kernel";
    let eal = start(&[device]);
    let mut port = match DpdkPort::open(&eal, &DeviceSpec::new("n3", device)) {
        Ok(port) => port,
        Err(error) => {
            println!("skipped tap: {error}");
            return;
        }
    };
    sh("echo 1 > /proc/sys/net/ipv6/conf/kernel/disable_ipv6; ip link set kernel up");
    against_af_packet(&eal, &mut port, "kernel", Expect::default(), 1500);
    let directory = format!("/var/run/dpdk/millrace{}", std::process::id());
    drop((port, eal));
    assert!(!std::path::Path::new(&directory).exists(), "{directory} was left behind");
}

#[test]
fn errors_say_what_to_do() {
    alone("errors_body", true);
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
    alone("huge_pages_body", false);
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
