//! `rte_flow` on DPDK's virtual devices: which rules each of them takes, and that the others are refused with a type.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{open, start};
use dpdk::spread::Spread;
use dpdk::{DeviceSpec, DpdkPort};
use io::offload::{CounterId, Counts, Failure, Feature, Features, FlowOffload, Handle, MeterId, Refused};
use io::{Port, TxQueue};
use tables::{MeterConfig, Nanos};

/// Prints what a device says to a rule of each kind, and returns the names of those that it takes.
fn ask(port: &DpdkPort) -> Vec<&'static str> {
    let flows = port.flows();
    println!("{}: {:?}", port.info().driver, flows.capabilities().features);
    let mut taken = Vec::new();
    for (name, _, answer) in flows.probe() {
        match answer {
            Ok(()) => {
                println!("    {name}: yes");
                taken.push(name);
            }
            Err(refused) => println!("    {name}: {refused}"),
        }
    }
    taken
}

#[test]
fn devices_without_flows_say_so() {
    testing::in_process("without_flows_body");
}

#[test]
#[ignore = "run by `devices_without_flows_say_so` in a process of its own"]
fn without_flows_body() {
    let eal = start(&[]);
    // A table that is too short for 512 shards, on a device that takes no rules.
    let mut port = open(&eal, &DeviceSpec { queues: 3, ..DeviceSpec::new("n", "net_null7") });
    assert_eq!(port.redirection_table(), (0..128).map(|entry| entry % 3).collect::<Vec<_>>());
    assert!(port.redirection().is_none() && matches!(port.spread(), Spread::Otherwise(_)));
    assert_eq!(
        port.remarks(),
        [
            "its RSS can't hash the subscriber's address (IPv4 in GTP-U: not supported: rules): packets reach their \
          worker by hand-off"
        ]
    );
    let (_, tx) = port.take_queue(0).unwrap();
    assert_eq!(tx.unsent(), 0, "a driver that can't tell");
    drop((tx, port));

    let mut ports = ["net_null0", "net_ring0"].map(|device| open(&eal, &DeviceSpec::new("n", device)));
    DpdkPort::connect(&mut ports);
    for port in &mut ports {
        assert!(ask(port).is_empty());
        for (name, rule, answer) in port.flows().probe() {
            assert_eq!(answer, Err(Refused::Unsupported(Feature::Rules)), "{name}");
            let mut offload = port.offload();
            assert_eq!(offload.insert(Nanos(0), &rule), answer.map(|()| Handle(0)));
            assert_eq!(offload.counts(Handle(1)), Err(Failure::Forgotten));
            let config = MeterConfig { rate_bps: 80_000_000, burst_bytes: 500_000 };
            let unsupported = Refused::Unsupported(Feature::Meter);
            assert_eq!(offload.add_meter(Nanos(0), config), Err(unsupported.clone()));
            assert_eq!(offload.set_meter(Nanos(0), MeterId(1), config), Err(unsupported));
            assert_eq!(offload.add_counter(Nanos(0)), Err(Refused::Unsupported(Feature::SharedCount)));
            assert_eq!(offload.counted(CounterId(1)), Err(Failure::Forgotten));
            assert_eq!(offload.remove_counter(CounterId(1)), Err(Failure::Forgotten));
            assert_eq!(offload.dropped(MeterId(1)), Err(Failure::Forgotten));
            assert_eq!(offload.remove_meter(MeterId(1)), Err(Failure::Forgotten));
            assert_eq!(offload.flush(), Ok(()));
        }
    }
}

#[test]
fn tap() {
    testing::in_namespace("tap_body");
}

/// Whether the kernel can carry out what net_tap makes of rules: filters of class "flower".
fn kernel_has_flower() -> bool {
    let commands = "ip link set lo up; tc qdisc add dev lo ingress &&
        tc filter add dev lo ingress protocol ip flower dst_ip 192.0.2.1 action drop";
    let output = std::process::Command::new("sh").args(["-ec", commands]).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
#[ignore = "run by `tap` in a namespace of its own"]
fn tap_body() {
    let device = "net_tap0,iface=kernel";
    let eal = start(&[device]);
    let mut ports = match DpdkPort::open(&eal, &DeviceSpec { queues: 2, ..DeviceSpec::new("n3", device) }) {
        Ok(port) => [port],
        Err(error) => {
            return testing::skipped(error);
        }
    };
    DpdkPort::connect(&mut ports);
    let [port] = &ports;
    println!("{:?}", port.remarks());
    assert!(matches!(port.remarks().as_slice(), [only] if only.contains("by hand-off")));
    let steered = ["destination", "UDP flow", "TCP flow", "IPv6 flow", "VLAN"];
    assert_eq!(ask(port), steered.map(|what| format!("queue by {what}")));
    let mut flows = port.flows();
    let features = [Feature::Rules, Feature::Ethernet, Feature::Addresses, Feature::Queue];
    assert_eq!(flows.capabilities().features, Features::of(&features));
    let flower = kernel_has_flower();
    for (name, rule, answer) in flows.probe() {
        match (&answer, rule.lacks(Features::of(&features))) {
            (Ok(()), None) => {
                let inserted = flows.insert(Nanos(0), &rule);
                if flower {
                    let handle = inserted.unwrap();
                    assert_eq!(flows.remove(handle), Ok(Counts::default()), "{name}");
                } else {
                    println!("    {name}: this kernel has no flower classifier: {inserted:?}");
                    // What net_tap says then: "overlapping rules or Kernel too old for flower support".
                    assert_eq!(inserted, Err(Refused::Exists), "{name}");
                }
            }
            // It names the item or action that it means, or says only that it doesn't want the rule.
            (Err(Refused::Unsupported(feature)), Some(_)) => {
                assert!(rule.needs().has(*feature), "{name}: {feature}");
            }
            (Err(Refused::Device(words)), Some(_)) => assert!(words.contains("not supported"), "{words}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}
