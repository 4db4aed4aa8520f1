//! Usage is never lost, however long control does not listen.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::rig::{N3_MAC, N6_MAC, SESSIONS, network, packet, rules, tunnel, ue, wait};
use datapath::command::{Command, Event, Token, Transition};
use engine::{Engine, EngineConfig};
use io::mem::{MemConfig, MemFrame, MemNic};
use pfcp::UrrId;
use session::SessionRef;
use session::rules::{Rules, Urr, VolumeLimit};
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::clock::Tsc;

/// A session whose SMF wants to hear of every single octet.
fn measured(index: u32) -> Rules {
    let threshold = VolumeLimit { total: Some(1), ..VolumeLimit::default() };
    let urr = Urr { threshold, ..Urr::counting(UrrId(1)) };
    let mut rules = rules(index);
    rules.urrs = [urr].into();
    for pdr in &mut rules.pdrs {
        pdr.urrs = [0].into();
    }
    rules
}

#[test]
fn usage_that_control_had_no_room_for_is_told_later_to_the_last_octet() {
    // More than a worker keeps as single events.
    const PACKETS: u32 = 80_000;
    let nic = |mac| MemNic::new(MemConfig { mac, ..MemConfig::default() }).unwrap();
    let ((n3_nic, mut n3), (n6_nic, mut n6)) = (nic(N3_MAC), nic(N6_MAC));
    let config = EngineConfig { control_ring: 256, ..EngineConfig::default() };
    let datapath = datapath::Config::new(network().fib());
    let mut engine = Engine::start(&mut [n3_nic, n6_nic], &config, &datapath, Tsc::process()).unwrap();
    let mut install = 0;
    for index in 0..SESSIONS {
        let rules = Arc::new(measured(index));
        let (token, transition, query) = (Token(index.into()), Transition::default(), Box::default());
        engine.post(rules.place.shard, Command::Install { token, rules, transition, query });
    }
    wait("sessions", || {
        engine.flush();
        engine.drain(|_, event| install += u32::from(matches!(event, Event::Applied { .. })));
        install == SESSIONS
    });
    // Nobody drains.
    let (mut next, mut left, mut out) = (0, 0, Vec::new());
    let mut frames: Vec<MemFrame> = Vec::new();
    wait("all packets", || {
        // No more under way than every queue holds: none is to be lost.
        while frames.len() < 64 && next < PACKETS && next < left + 256 {
            let index = next % SESSIONS;
            frames.push(packet(tunnel(index).teid, ue(index), next));
            next += 1;
        }
        n3.offer(&mut frames);
        left += n6.collect(&mut out, 64) as u32;
        out.clear();
        left == PACKETS
    });
    // A session goes: what it used is told before that.
    let gone = tunnel(0).place.shard;
    let session = SessionRef { shard: gone, slot: 0 };
    engine.post(gone, Command::Remove { token: Token(1_000), session });
    let (mut told, mut removed) = (BTreeMap::<u64, u64>::new(), None);
    let mut all = 0;
    wait("all usage", || {
        engine.flush();
        engine.drain(|_, event| match event {
            Event::Usage { seid, usage } => {
                let packets: u64 = usage.iter().map(|usage| usage.volume.uplink_packets).sum();
                *told.entry(seid.0).or_default() += packets;
                all += packets;
            }
            Event::Applied { token: Token(1_000), usage, .. } => {
                removed = told.get(&session.seid(1).0).copied();
                all += usage.iter().map(|usage| usage.volume.uplink_packets).sum::<u64>();
            }
            _ => {}
        });
        all == u64::from(PACKETS) && removed.is_some()
    });
    assert_eq!(removed, Some(u64::from(PACKETS / SESSIONS)), "told before the removal was");
    assert!(told.values().all(|packets| *packets == u64::from(PACKETS / SESSIONS)), "{told:?}");
    let reports = engine.stop().unwrap();
    assert_eq!(reports.iter().map(|report| report.load.events_lost).sum::<u64>(), 0);
}
