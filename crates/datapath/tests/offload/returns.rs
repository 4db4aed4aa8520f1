//! What takes rules back besides an order about their own session.

use super::*;
use datapath::mirror::{Mirror, Order, Scope, Target};
use io::offload::{Capabilities, Counts, FlowRule, Handle, Refused};
use std::sync::atomic::{AtomicBool, Ordering};

fn kind(teid: u32) -> Kind {
    Kind { teid, ..Kind::default() }
}

#[test]
fn a_mirror_sees_every_packet_from_its_beginning_on() {
    let mut side = one_session(&kind(9), &FlowTableConfig::default());
    let packets = [(0, PLAIN.uplink()), (1, PLAIN.downlink())];
    warm(&mut side, &packets, 2);
    side.collect();
    let mirror = Mirror {
        number: 1,
        scope: Scope::Session { place: place(1), seid: place(1).seid(1) },
        uplink: Some(Box::default()),
        downlink: Some(Box::default()),
        applications: [].into(),
        sample: 1,
        truncate: u16::MAX,
        target: Target::Erspan { destination: HOST.into(), session: 7 },
    };
    side.apply(Command::Mirror(Order::Add { mirror: Arc::new(mirror), capture: None }));
    assert!(side.switch.is_empty());
    assert_eq!(side.taken_back(TakenBack::Asked), 2);
    for _ in 0..20 {
        packets.iter().for_each(|(port, packet)| side.send(*port, std::slice::from_ref(packet)));
        side.tick(MILLI);
        assert_eq!(side.collect().len(), 4, "both packets and both copies");
    }
    assert!(side.switch.is_empty(), "as long as it lasts");
    // When it has ended, nothing keeps them here.
    side.apply(Command::Mirror(Order::Remove { number: 1 }));
    warm(&mut side, &packets, 2);
}

#[test]
fn a_prefix_that_changes_hands_takes_the_rules_for_its_addresses_with_it() {
    let mut side = one_session(&kind(9), &FlowTableConfig::default());
    side.install(&rules(2, &kind(10)));
    let prefix = |number: u8| format!("2001:db8:45:{number:x}::/64").parse().unwrap();
    let lead = |side: &mut Side, number, to| {
        side.apply(Command::AddressDirectory { prefix: prefix(number), session: Some(place(to)) });
    };
    lead(&mut side, 1, 1);
    let down = Packet { v6: true, ..PLAIN }.downlink();
    warm(&mut side, &[(1, down.clone())], 1);
    lead(&mut side, 3, 2);
    assert_eq!(side.switch.len(), 1, "another prefix");
    lead(&mut side, 1, 2);
    assert!(side.switch.is_empty());
    assert_eq!(side.taken_back(TakenBack::Session), 1);
    side.collect();
    side.send(1, &[down]);
    let sent = side.collect();
    assert_eq!(&sent[0].1[46..50], &10u32.to_be_bytes(), "the new owner's tunnel");
}

#[test]
fn a_shard_that_leaves_leaves_no_rule_behind_and_takes_its_counts_along() {
    let mut side = one_session(&kind(9), &FlowTableConfig::default());
    side.install(&rules(2, &kind(10)));
    assert_ne!(place(1).shard, place(2).shard);
    let own = [(0, PLAIN.uplink()), (1, PLAIN.downlink())];
    let other = (1, Packet { ue: 2, ..PLAIN }.downlink());
    let all: Vec<_> = own.iter().cloned().chain([other.clone()]).collect();
    warm(&mut side, &all, 3);
    let (seen, before) = (side.seen, side.snapshot(place(1)).unwrap().pdrs);
    for _ in 0..10 {
        own.iter().for_each(|(port, packet)| side.send(*port, std::slice::from_ref(packet)));
    }
    assert_eq!(side.seen, seen);
    let Side { offload, datapath, out, now, .. } = &mut side;
    offload.as_mut().unwrap().withdraw_shard(*now, datapath, place(1).shard, out);
    let shard = datapath.release(place(1).shard).unwrap();
    assert_eq!((side.switch.len(), side.taken_back(TakenBack::Asked)), (1, 2), "the other shard's stays");
    // What comes for it now is the worker's again, which has it no longer.
    side.send(1, &[PLAIN.downlink()]);
    assert_eq!(side.seen, seen + 1);
    side.out.hand_off.drain().for_each(drop);
    side.datapath.adopt(shard);
    let after = side.snapshot(place(1)).unwrap().pdrs;
    for ((_, packets, bytes), (_, packets0, bytes0)) in after.iter().zip(&before) {
        assert_eq!((packets - packets0, bytes - bytes0), (10, 10 * 128));
    }
}

/// A device whose counters can't be read for a while; rules can be taken back from it.
struct Unreadable {
    device: Box<dyn FlowOffload>,
    fails: Arc<AtomicBool>,
}

impl FlowOffload for Unreadable {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn insert(&mut self, now: Nanos, rule: &FlowRule) -> Result<Handle, Refused> {
        self.device.insert(now, rule)
    }

    fn counts(&mut self, handle: Handle) -> Result<Counts, Failure> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Failure::Device("no counters today".into()));
        }
        self.device.counts(handle)
    }

    fn remove(&mut self, handle: Handle) -> Result<Counts, Failure> {
        self.device.remove(handle)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.device.flush()
    }
}

#[test]
fn what_a_failing_device_still_tells_is_entered() {
    let mut side = one_session(&kind(9), &FlowTableConfig::default());
    let fails = Arc::new(AtomicBool::new(false));
    let devices = side.ports.iter_mut().map(|port| {
        let device = Unreadable { device: port.offload(), fails: Arc::clone(&fails) };
        Box::new(device) as Box<dyn FlowOffload>
    });
    side.offload = Some(Offload::new(eager(), devices.collect()));
    let packets = [(0, PLAIN.uplink()), (1, PLAIN.downlink())];
    warm(&mut side, &packets, 2);
    let seen = side.seen;
    for _ in 0..7 {
        packets.iter().for_each(|(port, packet)| side.send(*port, std::slice::from_ref(packet)));
    }
    assert_eq!(side.seen, seen, "hardware forwards");
    fails.store(true, Ordering::Relaxed);
    (0..5).for_each(|_| side.tick(MILLI));
    let report = side.report();
    assert_eq!((report.entries, report.down, side.switch.len()), (0, 2, 0));
    assert_eq!((report.counters.failures, report.counters.lost), (2, 0));
    assert_eq!(side.taken_back(TakenBack::Failure), 2);
    let counted: u64 = side.snapshot(place(1)).unwrap().pdrs.iter().map(|(_, packets, _)| packets).sum();
    assert_eq!(counted, seen + 14, "every packet, whoever forwarded it");
    fails.store(false, Ordering::Relaxed);
    side.tick(200 * MILLI);
    warm(&mut side, &packets, 2);
}
