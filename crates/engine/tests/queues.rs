//! More traffic than a link carries, and more than a worker takes: who is served all the same.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{N3_MAC, N6_MAC, UPF, downlink, echo_request, install, network, tunnel, ue, uplink, wait};
use datapath::{Counters, Reason};
use engine::{Engine, EngineConfig, WorkerReport};
use io::mem::{MemConfig, MemFrame, MemNic, MemWire, RssMode};
use io::steering::{Control, Duty, Group, Steering};
use io::{Frame, Port};
use packet::{Dscp, MacAddr};
use std::sync::Arc;
use tables::clock::Tsc;

const SESSIONS: u32 = 16;
const DESCRIPTORS: usize = 256;

fn nic(mac: MacAddr, descriptors: usize, steering: Steering) -> (MemNic, MemWire) {
    let rss = RssMode::InnerIp;
    MemNic::new(MemConfig { mac, queues: 1, rss, descriptors, steering, ..MemConfig::default() }).unwrap()
}

/// One worker between two NICs; the second's descriptors are given.
fn start(steering: &Steering, descriptors: usize) -> (Engine, Vec<MemNic>, MemWire, MemWire) {
    let (n3, n3_wire) = nic(N3_MAC, DESCRIPTORS, steering.clone());
    let (n6, n6_wire) = nic(N6_MAC, descriptors, steering.clone());
    let mut ports = vec![n3, n6];
    let egress = Arc::new(engine::egress::Plan::standard([UPF.into()]));
    let config = EngineConfig { egress, ..EngineConfig::default() };
    let datapath = datapath::Config::new(network().fib());
    let mut engine = Engine::start(&mut ports, &config, &datapath, Tsc::process()).unwrap();
    install(&mut engine, SESSIONS);
    (engine, ports, n3_wire, n6_wire)
}

fn received(engine: &mut Engine) -> u64 {
    engine.reports().unwrap()[0].counters.received
}

fn number(frame: &MemFrame) -> u32 {
    u32::from_be_bytes(frame.bytes()[42..46].try_into().unwrap())
}

/// The queue's drops add up, and no frame is missing.
fn balanced(report: &WorkerReport) -> &Counters {
    let counters = &report.counters;
    let dropped = report.egress.iter().flatten().map(|class| class.dropped.sum());
    assert_eq!(dropped.map(|traffic| traffic.packets).sum::<u64>(), counters.dropped(Reason::TxQueueFull));
    assert_eq!(counters.balance(), 0);
    counters
}

#[test]
fn a_slow_link_loses_no_voice() {
    let (mut engine, ports, mut n3, mut n6) = start(&Steering::default(), 64);
    let mut out = Vec::new();
    let (mut voice, mut video, mut rest) = (0, 0, 0);
    for round in 0..100 {
        // 128 packets come, 64 go: 24 of voice, 8 of video that asks to be spared, the rest as it may.
        let mut burst: Vec<MemFrame> = Vec::new();
        for at in 0..128 {
            let (dscp, number) = match at % 16 {
                0 | 5 | 10 => (Dscp::EF, &mut voice),
                7 => (Dscp::AF41, &mut video),
                _ => (Dscp::CS0, &mut rest),
            };
            let index = *number % SESSIONS;
            burst.push(uplink(tunnel(index).teid, ue(index), dscp, *number));
            *number += 1;
        }
        assert_eq!(n3.offer(&mut burst), 128);
        wait("the worker", || received(&mut engine) == (round + 1) * 128);
        n6.collect(&mut out, 64);
    }
    let mut quiet = 0;
    wait("what is left", || {
        quiet = if n6.collect(&mut out, 64) == 0 { quiet + 1 } else { 0 };
        quiet > 1_000 && ports[1].stats().tx_packets == out.len() as u64 && {
            engine.reports().unwrap()[0].egress.iter().flatten().all(|class| class.queued.packets == 0)
        }
    });
    let arrived = |wanted: Dscp| -> Vec<u32> {
        out.iter().filter(|frame| frame.bytes()[15] == wanted.to_tos()).map(number).collect()
    };
    assert_eq!(arrived(Dscp::EF), (0..voice).collect::<Vec<_>>(), "voice is complete and in order");
    assert_eq!(arrived(Dscp::AF41), (0..video).collect::<Vec<_>>());
    let best_effort = arrived(Dscp::CS0);
    assert!(best_effort.is_sorted(), "a class keeps its order");
    let reports = engine.stop().unwrap();
    let counters = balanced(&reports[0]);
    let lost = u64::from(rest) - best_effort.len() as u64;
    assert!(lost > 1_000, "{lost}");
    assert_eq!((counters.dropped(Reason::TxQueueFull), counters.dropped_total()), (lost, lost));
    assert_eq!(counters.sent, out.len() as u64);
    let classes = &reports[0].egress[1];
    assert_eq!(classes[6].dropped.green.packets, lost, "best effort");
    assert!(classes[1].sent.packets > 0, "voice waited too");
}

#[test]
fn what_a_dead_link_leaves_is_counted_at_the_end() {
    let (mut engine, _ports, mut n3, n6) = start(&Steering::default(), 8);
    let mut burst: Vec<_> = (0..20).map(|i| uplink(tunnel(0).teid, ue(0), Dscp::CS0, i)).collect();
    assert_eq!(n3.offer(&mut burst), 20);
    wait("the worker", || received(&mut engine) == 20);
    assert_eq!(engine.reports().unwrap()[0].egress[1][6].queued.packets, 12);
    let reports = engine.stop().unwrap();
    let counters = &reports[0].counters;
    assert_eq!((counters.sent, counters.dropped(Reason::TxQueueFull), counters.balance()), (8, 12, 0));
    drop(n6);
}

/// Twice what the queues hold arrives in each round from both sides, and the way back to the gNB is congested.
#[test]
fn no_echo_is_lost_while_data_is_dropped() {
    let steering = Steering::new(Some(Control::new([UPF.into()])), Vec::new()).unwrap();
    let (engine, ports, mut n3, mut n6) = start(&steering, DESCRIPTORS);
    let mut frames = Vec::new();
    let mut answers = Vec::new();
    let rounds = 60;
    let mut take = |n3: &mut MemWire, n6: &mut MemWire, slow: usize| {
        let mut out = Vec::new();
        n3.collect(&mut out, slow);
        // The outer UDP payload is GTP-U; the sequence number follows the TEID.
        let echoes = out.iter().map(Frame::bytes).filter(|bytes| bytes[43] == 2);
        answers.extend(echoes.map(|bytes| u16::from_be_bytes([bytes[50], bytes[51]])));
        out.clear();
        n6.collect(&mut out, slow);
        answers.len()
    };
    for round in 0..rounds {
        let index = u32::from(round) % SESSIONS;
        frames.extend((0..512).map(|i| uplink(tunnel(index).teid, ue(index), Dscp::CS0, i)));
        frames.push(echo_request(round));
        n3.inject(&mut frames);
        frames.extend((0..512).map(|i| downlink(ue(index), i)));
        n6.inject(&mut frames);
        // A quarter of what was sent.
        take(&mut n3, &mut n6, 128);
    }
    wait("the answers", || take(&mut n3, &mut n6, 64) == usize::from(rounds));
    answers.sort_unstable();
    assert_eq!(answers, (0..rounds).collect::<Vec<_>>());
    let missed: Vec<u64> = ports.iter().map(|port| port.stats().rx_missed).collect();
    // A ring of 256 was offered 512 at once.
    assert!(missed.iter().all(|missed| *missed >= u64::from(rounds) * 256), "{missed:?}");
    let control = ports[0].control().queue_stats(1).unwrap();
    assert_eq!((control.rx_packets, control.rx_missed), (u64::from(rounds), 0));
    let reports = engine.stop().unwrap();
    balanced(&reports[0]);
    let steered = &reports[0].steered;
    assert_eq!(
        steered.iter().map(|load| (load.port, load.duty)).collect::<Vec<_>>(),
        [(0, Duty::Control), (1, Duty::Control)]
    );
    assert_eq!(steered[0].packets, u64::from(rounds));
}

#[test]
fn urgent_groups_are_polled_before_the_rest() {
    let groups = vec![Group::new("voice", [Dscp::EF]), Group::new("video", [Dscp::AF41])];
    let steering = Steering::new(Some(Control::new([UPF.into()])), groups).unwrap();
    let (mut engine, _ports, mut n3, mut n6) = start(&steering, DESCRIPTORS);
    // The code point of the outermost header counts: a UE's is inside the tunnel, the data network's is not.
    let mut frames: Vec<_> = (0..32).map(|i| uplink(tunnel(0).teid, ue(0), Dscp::EF, i)).collect();
    assert_eq!(n3.inject(&mut frames), 32);
    for (dscp, count) in [(Dscp::EF, 5), (Dscp::AF41, 3), (Dscp::CS0, 2)] {
        for i in 0..count {
            let mut frame = downlink(ue(1), i);
            let header: &mut [u8; 20] = (&mut frame.bytes_mut()[14..34]).try_into().unwrap();
            packet::ipv4::set_dscp(header, dscp);
            frames.push(frame);
        }
    }
    assert_eq!(n6.inject(&mut frames), 10);
    wait("the worker", || received(&mut engine) == 42);
    let reports = engine.stop().unwrap();
    let steered: Vec<_> =
        reports[0].steered.iter().map(|load| (load.duty, load.port, load.packets)).collect();
    let (control, voice, video) = (Duty::Control, Duty::Group(0), Duty::Group(1));
    assert_eq!(
        steered,
        [(control, 0, 0), (control, 1, 0), (voice, 0, 0), (voice, 1, 5), (video, 0, 0), (video, 1, 3)]
    );
    assert_eq!(balanced(&reports[0]).sent, 42);
}
