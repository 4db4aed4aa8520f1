//! The whole world around a UPF of a hundred lines, on in-memory NICs and two threads.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{PerfectUpf, UPF_N3_MAC, UPF_N6_MAC, facts, network};
use io::mem::{Faults, MemConfig, MemFrame, MemNic, MemRx, MemTx};
use io::{Frame, Port, RxQueue, TxQueue};
use loadgen::facts::SessionMix;
use loadgen::imix::SizeProfile;
use loadgen::link::MemLink;
use loadgen::station::{Reaction, Station};
use loadgen::verify::VerifierConfig;
use loadgen::world::{TrafficReport, World, WorldConfig, WorldError};
use packet::MacAddr;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tables::Nanos;

const MTU: u16 = 1600;

fn nic(mac: MacAddr) -> (MemRx, MemTx, MemLink) {
    let (mut nic, wire) = MemNic::new(MemConfig { mac, mtu: MTU, ..MemConfig::default() }).unwrap();
    let (rx, tx) = nic.take_queue(0).unwrap();
    (rx, tx, MemLink::new(wire, MTU))
}

/// Both ports of the UPF, each with its own station, until told to stop.
fn serve(upf: &PerfectUpf, ports: [(MemRx, MemTx); 2], addresses: &[Vec<IpAddr>; 2], stop: &AtomicBool) {
    let [mut n3, mut n6] = ports;
    let macs = [UPF_N3_MAC, UPF_N6_MAC];
    let mut stations =
        [0, 1].map(|side: usize| Station::new(addresses[side].iter().map(|&a| (a, macs[side]))));
    let mut frames = Vec::new();
    let (mut to_n3, mut to_n6): (Vec<MemFrame>, Vec<MemFrame>) = (Vec::new(), Vec::new());
    let copy = |bytes: &[u8]| MemFrame::copy_of(bytes).unwrap();
    while !stop.load(Ordering::Relaxed) {
        n3.0.rx_burst(&mut frames, 64);
        for frame in frames.drain(..) {
            match stations[0].hear(frame.bytes()) {
                Reaction::Reply(reply) => to_n3.push(copy(&reply)),
                Reaction::NotMine if crate::common::is_g_pdu(frame.bytes()) => {
                    to_n6.push(copy(&upf.uplink(frame.bytes())));
                }
                Reaction::Heard | Reaction::NotMine => {}
            }
        }
        n6.0.rx_burst(&mut frames, 64);
        for frame in frames.drain(..) {
            match stations[1].hear(frame.bytes()) {
                Reaction::Reply(reply) => to_n6.push(copy(&reply)),
                Reaction::Heard => {}
                Reaction::NotMine => to_n3.push(copy(&upf.downlink(frame.bytes()))),
            }
        }
        n3.1.tx_burst(&mut to_n3);
        n6.1.tx_burst(&mut to_n6);
        std::thread::yield_now();
    }
}

fn run(outer_v6: bool, faults: Faults, config: WorldConfig, nanos: u64) -> Result<TrafficReport, WorldError> {
    let mut network = network(outer_v6);
    let facts = facts(&network, SessionMix::BALANCED, 200);
    let upf = PerfectUpf::new(&network, &facts);
    let n6_addresses: Vec<IpAddr> = vec!["198.51.100.2".parse().unwrap(), "2001:db8:6::2".parse().unwrap()];
    let addresses = [vec![facts[0].upf_n3], n6_addresses.clone()];
    // The world has to find them out.
    (network.upf_n3_mac, network.upf_n6_mac) = (MacAddr::ZERO, MacAddr::ZERO);
    let (rx3, tx3, n3) = nic(UPF_N3_MAC);
    let (rx6, tx6, n6) = nic(UPF_N6_MAC);
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let flag = Arc::clone(&stop);
        scope.spawn(move || serve(&upf, [(rx3, tx3), (rx6, tx6)], &addresses, &flag));
        let epoch = Instant::now();
        let mut clock = move || Nanos(epoch.elapsed().as_nanos() as u64);
        let config = WorldConfig { upf_n6: n6_addresses, ..config };
        let outcome = World::new(n3, n6, &facts, &network, config, &mut clock).map(|mut world| {
            world.links_mut().0.wire_mut().set_faults(Faults::default(), faults, 3);
            let mut looks = 0;
            let report = world.run(nanos, &mut clock, |progress| {
                looks += 1;
                assert!(progress.seconds > 0.0 && progress.uplink.in_flight <= 256);
                ControlFlow::Continue(())
            });
            assert!(looks > 0);
            report
        });
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

fn config() -> WorldConfig {
    WorldConfig {
        progress_every: 20_000_000,
        verifier: VerifierConfig { sample_every: 1, ..VerifierConfig::default() },
        ..WorldConfig::default()
    }
}

#[test]
fn a_right_upf_loses_nothing() {
    for outer_v6 in [false, true] {
        let report = run(outer_v6, Faults::default(), config(), 300_000_000).unwrap();
        assert_eq!(report.failures(), Vec::<String>::new());
        for direction in [&report.uplink, &report.downlink] {
            assert!(direction.sent_packets > 100, "{direction:?}");
            assert_eq!(direction.received.unique, direction.sent_packets);
            assert_eq!(direction.received.compared, direction.sent_packets);
            assert_eq!(direction.received.bytes, direction.sent_bytes);
            assert!(direction.latency.p50_ns > 0 && direction.latency.p999_ns >= direction.latency.p50_ns);
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["profile"], "imix");
        assert_eq!(json["uplink"]["received"]["faulty"], 0);
    }
}

#[test]
fn a_bad_wire_is_noticed() {
    let faults = Faults { drop_ppm: 10_000, duplicate_ppm: 10_000, corrupt_ppm: 10_000, reorder_ppm: 10_000 };
    let config = WorldConfig { patience: 100_000_000, ..config() };
    let report = run(false, faults, config, 1_000_000_000).unwrap();
    let downlink = &report.downlink;
    assert!(
        downlink.lost > 0 && downlink.received.faulty > 0 && downlink.received.repeated > 0,
        "{downlink:?}"
    );
    assert_eq!((report.uplink.lost, report.uplink.received.faulty), (0, 0), "only N3 was bad, from the UPF");
    assert!(!report.failures().is_empty());
    assert!(!report.faults.is_empty());
}

#[test]
fn a_rate_is_kept() {
    let config =
        WorldConfig { rate: Some(2000), downlink: false, profile: SizeProfile::Payload(64), ..config() };
    let report = run(false, Faults::default(), config, 500_000_000).unwrap();
    assert!((500..=1001).contains(&report.uplink.sent_packets), "{}", report.uplink.sent_packets);
    assert_eq!((report.uplink.lost, report.downlink.sent_packets), (0, 0));
}

#[test]
fn a_upf_that_keeps_silent_is_named() {
    let mut network = network(false);
    let facts = facts(&network, SessionMix::IPV4, 1);
    network.upf_n3_mac = MacAddr::ZERO;
    let (_rx3, _tx3, n3) = nic(UPF_N3_MAC);
    let (_rx6, _tx6, n6) = nic(UPF_N6_MAC);
    let mut now = 0;
    let mut clock = || {
        now += 1_000_000;
        Nanos(now)
    };
    let outcome = World::new(n3, n6, &facts, &network, WorldConfig::default(), &mut clock);
    assert_eq!(outcome.err(), Some(WorldError::Unresolved(facts[0].upf_n3)));
}
