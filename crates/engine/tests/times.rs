//! What workers say of when something was.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{Fronted, N3_MAC, N6_MAC, downlink, install, network, packet, rules, tunnel, ue, wait};
use datapath::command::Command;
use datapath::mirror::{Mirror, Order, Scope, Target, capture};
use engine::{Engine, EngineConfig};
use io::RxQueue;
use io::mem::{MemConfig, MemFrame, MemNic, MemRx, MemWire};
use std::sync::Arc;
use tables::clock::Tsc;

/// What the data network sends, if there is one: an answer to each packet, and as promptly as can be, so that it is there
/// when the worker next looks.
struct Prompt {
    nic: MemRx,
    network: Option<MemWire>,
}

impl RxQueue for Prompt {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let Some(network) = &mut self.network else { return self.nic.rx_burst(into, max) };
        let mut asked = Vec::new();
        network.collect(&mut asked, max);
        into.extend(asked.iter().map(|_| downlink(ue(0), 0)));
        asked.len()
    }
}

/// Both pass in one turn of the worker's loop, and whoever reads a capture sees which came first.
#[test]
fn an_answer_is_later_than_what_it_answers() {
    let nic = |mac| MemNic::new(MemConfig { mac, mtu: 9_000, ..MemConfig::default() }).unwrap();
    let ((n3, mut n3_wire), (n6, n6_wire)) = (nic(N3_MAC), nic(N6_MAC));
    let mut network_behind_n6 = Some(n6_wire);
    let mut ports = vec![
        Fronted::new(n3, |nic| Prompt { nic, network: None }),
        Fronted::new(n6, move |nic| Prompt { nic, network: network_behind_n6.take() }),
    ];
    let datapath = datapath::Config::new(network().fib());
    let mut engine = Engine::start(&mut ports, &EngineConfig::default(), &datapath, Tsc::process()).unwrap();
    install(&mut engine, 1);
    let (sender, mut reader) = capture(1 << 16);
    let rules = rules(0);
    let all = Some(Box::default());
    let mirror = Mirror {
        number: 1,
        scope: Scope::Session { place: rules.place, seid: rules.seid },
        uplink: all.clone(),
        downlink: all,
        applications: [].into(),
        sample: 1,
        truncate: 64,
        target: Target::Capture,
    };
    let add = Order::Add { mirror: Arc::new(mirror), capture: Some(sender) };
    engine.post(rules.place.shard, Command::Mirror(add));
    let fence = engine.fence();
    wait("the mirror", || {
        engine.flush();
        engine.drain(|_, _| {});
        engine.passed(fence)
    });
    let mut last = None;
    for round in 0..50 {
        let mut asked = vec![packet(tunnel(0).teid, ue(0), round)];
        n3_wire.offer(&mut asked);
        let mut answers = Vec::new();
        wait("the answer", || n3_wire.collect(&mut answers, 64) == 1);
        for uplink in [true, false] {
            let copy = reader.next_copy().expect("both were copied before they left");
            assert_eq!(copy.uplink, uplink);
            assert!(last < Some(copy.time), "{:?} after {last:?}", copy.time);
            last = Some(copy.time);
        }
    }
    engine.stop().unwrap();
}
