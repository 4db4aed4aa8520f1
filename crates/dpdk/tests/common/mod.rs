//! Devices and their far sides, for bodies that `testing` runs in processes of their own, since EAL starts once in a process's life.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use dpdk::{DeviceSpec, DpdkPort, DpdkRx, DpdkTx, Eal, EalConfig, Memory, MempoolPool};
use io::conformance::{self, Expect, FarSide, Wiring};
use io::{Frame, FramePool, Port, RxQueue, TxQueue};
use std::process::Command;
use std::time::{Duration, Instant};

pub fn sh(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn start(devices: &[&str]) -> Eal {
    let config = EalConfig { memory: Memory::Auto, ..EalConfig::for_devices(devices.iter().copied()) };
    let eal = Eal::init(&config).unwrap_or_else(|error| panic!("{error}"));
    println!("{}", eal.chosen());
    eal
}

pub fn open(eal: &Eal, spec: &DeviceSpec) -> DpdkPort {
    DpdkPort::open(eal, spec).unwrap_or_else(|error| panic!("{error}"))
}

/// A veth pair `here`-`there`, up, without the kernel's own IPv6 chatter.
pub fn veth(mtu: u16) {
    sh(&format!(
        "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
         ip link add here mtu {mtu} type veth peer name there mtu {mtu}
         ip link set here up; ip link set there up"
    ));
}

/// The other end of the cable, as another port.
pub struct Peer {
    rx: DpdkRx,
    tx: DpdkTx,
    pool: MempoolPool,
    _port: DpdkPort,
}

impl Peer {
    pub fn new(mut port: DpdkPort) -> Self {
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
pub fn against_af_packet(eal: &Eal, port: &mut DpdkPort, peer: &str, expect: Expect, mtu: u16) {
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
