//! Queues ahead of RSS on DPDK's virtual devices: none of them can in the end, and all work as before.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{open, sh, start};
use dpdk::{DeviceSpec, DpdkPort, DpdkRx};
use io::conformance::{self, Expect, Wiring};
use io::steering::{Control, Duty, Group, Steering};
use io::{Frame, Port, RxQueue};
use packet::Dscp;
use std::time::{Duration, Instant};

/// A control queue and two groups.
fn wanted() -> Steering {
    let groups = vec![Group::new("voice", [Dscp::EF]), Group::new("video", [Dscp::AF41])];
    let own = ["192.0.2.1", "2001:db8::1"].map(|address| address.parse().unwrap());
    Steering::new(Some(Control::new(own)), groups).unwrap()
}

fn spec(name: &str, device: &str) -> DeviceSpec {
    DeviceSpec { steering: wanted(), ..DeviceSpec::new(name, device) }
}

fn nothing_is_steered(port: &mut DpdkPort) {
    assert!(port.steering().is_none());
    for duty in [Duty::Control, Duty::Group(0), Duty::Group(1)] {
        assert!(port.take_steered(duty, 0).is_none());
    }
}

#[test]
fn devices_without_flows() {
    testing::in_process("without_flows_body");
}

#[test]
#[ignore = "run by `devices_without_flows` in a process of its own"]
fn without_flows_body() {
    let eal = start(&[]);
    let mut port = open(&eal, &DeviceSpec { queues: 2, ..spec("n", "net_null0") });
    nothing_is_steered(&mut port);
    let refused = [
        "it has no control queue (not supported: rules)",
        "it has no queues for the group voice and less urgent ones (not supported: rules)",
    ];
    // The first is about spreading.
    assert_eq!(port.remarks()[1..], refused);
    let (mut rx, _tx) = port.take_queue(1).unwrap();
    let mut frames = Vec::new();
    assert_eq!(rx.rx_burst(&mut frames, 64), 64);
    assert!(port.take_queue(2).is_none());

    // As many queues as a ring has: 16.
    let mut port = open(&eal, &spec("r", "net_ring0"));
    assert_eq!(port.remarks(), refused);
    nothing_is_steered(&mut port);
    let expect = Expect { counts_bytes: false, ..Expect::default() };
    conformance::run(&mut port, Wiring::Loop, expect).unwrap_or_else(|error| panic!("{error}"));
    drop(port);
    let mut port = open(&eal, &DeviceSpec { queues: 6, ..spec("few", "net_ring1") });
    nothing_is_steered(&mut port);
    let remark = port.remarks().pop().unwrap();
    assert_eq!(remark, "it steers nothing ahead of RSS: that takes 19 receive queues, it has 16");
    assert!(port.take_queue(5).is_some() && port.take_queue(6).is_none());
}

/// None of these devices has descriptors: frames wait in places that it doesn't tell of, or don't wait.
fn does_not_know(rx: &mut DpdkRx) {
    assert_eq!(rx.waiting(), usize::MAX);
}

#[test]
fn what_waits_is_known_where_a_driver_tells() {
    testing::in_namespace("waiting_body");
}

#[test]
#[ignore = "run by `what_waits_is_known_where_a_driver_tells` in a namespace of its own"]
fn waiting_body() {
    let eal = start(&["net_tap0,iface=kernel"]);
    for device in ["net_null0", "net_ring0", "net_tap0,iface=kernel"] {
        match DpdkPort::open(&eal, &DeviceSpec { rx_descriptors: 512, ..DeviceSpec::new("n", device) }) {
            Ok(mut port) => does_not_know(&mut port.take_queue(0).unwrap().0),
            Err(error) => testing::skipped(format!("{device}: {error}")),
        }
    }
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
    let mut port = match DpdkPort::open(&eal, &spec("n3", device)) {
        Ok(port) => port,
        Err(error) => {
            return testing::skipped(error);
        }
    };
    println!("{:#?}", port.remarks());
    let tagged = DeviceSpec { tagged: true, queues: 2, ..spec("n6", "net_tap1,iface=other") };
    println!("tagged: {:#?}", open(&eal, &tagged).remarks());
    if port.steering().is_some() {
        return testing::skipped("this kernel has a flower classifier: it takes the rules");
    }
    // It would take some rules, and was started with queues for them; the kernel took none, and it was started again without.
    nothing_is_steered(&mut port);
    let [control, groups] = &port.remarks()[..] else { panic!("{:?}", port.remarks()) };
    // What it says when a kernel has no flower classifier.
    let refused = "it has no control queue: it refuses ARP, PFCP, BFD, BGP (overlapping rules or Kernel too old for flower";
    assert!(control.starts_with(refused), "{control}");
    let would_not =
        "; neighbour discovery (not supported: addresses); GTP-U signalling (not supported: tunnels)";
    assert!(control.ends_with(would_not), "{control}");
    assert!(groups.contains("it has no queues for the group voice and less urgent ones ("), "{groups}");
    // Whatever the kernel sends comes to the one queue that is left: there is no other into which it could spread flows.
    sh("echo 1 > /proc/sys/net/ipv6/conf/kernel/disable_ipv6; ip link set kernel up; ip address add 192.0.2.2/24 dev kernel
        ip neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev kernel");
    let (mut rx, _tx) = port.take_queue(0).unwrap();
    let mut sockets = Vec::new();
    for _ in 0..64 {
        let socket = std::net::UdpSocket::bind("192.0.2.2:0").unwrap();
        socket.send_to(b"flow", "192.0.2.1:8805").unwrap();
        sockets.push(socket);
    }
    let (mut frames, mut flows) = (Vec::new(), 0);
    let deadline = Instant::now() + Duration::from_secs(2);
    while flows < 64 && Instant::now() < deadline {
        rx.rx_burst(&mut frames, 64);
        flows += frames.drain(..).filter(|frame| frame.bytes().ends_with(b"flow")).count();
    }
    assert_eq!(flows, 64);
}

#[test]
fn bond_of_taps() {
    testing::in_namespace("bond_of_taps_body");
}

#[test]
#[ignore = "run by `bond_of_taps` in a namespace of its own"]
fn bond_of_taps_body() {
    use dpdk::bond::{Bond, Mode, Timeout, Transmit};

    let members = ["net_tap0,iface=one".to_owned(), "net_tap1,iface=two".to_owned()];
    let eal = start(&[&members[0]]);
    let bond = Bond {
        mode: Mode::ActiveBackup,
        members: members.into(),
        transmit: Transmit::L34,
        primary: None,
        timeout: Timeout::Short,
    };
    let mut port = match DpdkPort::open(&eal, &DeviceSpec { bond: Some(bond), ..spec("lag", "net_bonding0") })
    {
        Ok(port) => port,
        Err(error) => {
            return testing::skipped(error);
        }
    };
    // It asks its members, which say no sooner or later; and works with the queues that it has in the end.
    println!("{:#?}", port.remarks());
    nothing_is_steered(&mut port);
    assert!(!port.remarks().is_empty());
    assert_eq!(port.members().len(), 2);
    assert!(port.take_queue(0).is_some() && port.take_queue(1).is_none());
}
