//! A limited rate that a device has a share of: together with software it never lets more pass than the limit does, judged by a bucket
//! in exact arithmetic that knows nothing of shares.

use super::*;
use crate::reference::bucket::Maximum;
use datapath::{Reason, SessionSnapshot};
use io::offload::{Feature, Features};

/// Nanoseconds: the depth of a worker's buckets, and what its meters gain by rounding each packet to the 64th part of one.
const DEPTH: u64 = 100 * MILLI + 3_000;
const MBIT: u64 = 1_000_000;

/// A device that takes its time, or, every second, one that doesn't.
fn late(seed: u64) -> FlowTableConfig {
    let late = seed % 2 == 1;
    let delay = if late { 2 * MILLI } else { 0 };
    FlowTableConfig { delay, disorder: late, torn: late, ..FlowTableConfig::default() }
}

fn limited(mbr: u64) -> Kind {
    Kind { teid: 9, mbr: Some(mbr), ..Kind::default() }
}

/// What may pass, uplink and downlink.
struct Judge {
    buckets: [Maximum; 2],
    passed: [u64; 2],
}

impl Judge {
    fn new(rate: u64, now: Nanos) -> Self {
        Self { buckets: [Maximum::new(Some(rate), DEPTH, now); 2], passed: [0; 2] }
    }

    fn change(&mut self, rate: u64, now: Nanos) {
        self.buckets = self.buckets.map(|bucket| bucket.changed(Some(rate), DEPTH, now));
    }

    /// Packets that left at one moment: is there an order in which the limit lets all of them pass?
    fn see(&mut self, now: Nanos, sent: &[(usize, Vec<u8>)]) {
        for (uplink, port, front) in [(0, 1, 18), (1, 0, 50)] {
            let own = sent.iter().filter(|(from, _)| *from == port);
            let mut sizes: Vec<_> = own.map(|(_, frame)| frame.len() as u64 - front).collect();
            sizes.sort_unstable();
            for size in sizes {
                let conforms = self.buckets[uplink].conforms(now);
                assert!(conforms, "direction {uplink} at {now:?}, after {} bytes", self.passed[uplink]);
                self.buckets[uplink].take(size);
                self.passed[uplink] += size;
            }
        }
    }
}

/// A session whose UE and peers send as they like.
struct World {
    side: Side,
    judge: Judge,
    rng: StdRng,
    rate: u64,
    sent: u64,
}

impl World {
    fn new(seed: u64, kind: &Kind, table: &FlowTableConfig) -> Self {
        let rate = kind.mbr.unwrap();
        let side = one_session(kind, table);
        let judge = Judge::new(rate, side.now);
        Self { side, judge, rng: StdRng::seed_from_u64(seed), rate, sent: 0 }
    }

    /// Two flows that carry most of the load (in hundredths of the rate), and some that carry the rest; one packet in three
    /// is of a flow of its own, which is the worker's.
    fn run(&mut self, steps: u32, load: u64) {
        for _ in 0..steps {
            let elapsed = self.rng.random_range(MILLI / 2..MILLI * 3 / 2);
            for port in 0..2 {
                let mut left = (elapsed / 1000 * (self.rate / MBIT) * load / 800).cast_signed();
                let mut packets = Vec::new();
                while left > 0 {
                    let flow = [1, 1, 1, 2, 2, 3, 4, 5, 0, 0, 0, 0][self.rng.random_range(0..12)];
                    let flow = if flow == 0 { self.rng.random_range(10_000..60_000) } else { flow };
                    let size = self.rng.random_range(0..1400);
                    let packet = Packet { ports: (flow, 53), tos: 0x20, size, ..PLAIN };
                    packets.push(if port == 0 { packet.uplink() } else { packet.downlink() });
                    left -= size.cast_signed() as i64 + 28;
                }
                self.sent += packets.len() as u64;
                self.side.send(port, &packets);
            }
            self.judge.see(self.side.now, &self.side.collect());
            self.side.tick(elapsed);
        }
    }

    /// In an overload that has lasted.
    fn passes_nearly_all_that_is_allowed(&mut self, mbit: u64, load: u64) {
        let (before, began) = (self.judge.passed, self.side.now);
        self.run(800, load);
        let allowed = self.side.now.since(began) * mbit / 8000;
        for (passed, before) in self.judge.passed.into_iter().zip(before) {
            let share = (passed - before) * 100 / allowed;
            assert!((97..=101).contains(&share), "{share} % of what is allowed");
        }
    }

    fn install(&mut self, kind: &Kind) {
        self.rate = kind.mbr.unwrap();
        self.judge.change(self.rate, self.side.now);
        self.side.install(&rules(1, kind));
    }
}

#[test]
fn a_session_with_an_ambr_is_offloaded() {
    for filters in [false, true] {
        let kind = Kind { filters, ..limited(80 * MBIT) };
        let mut side = one_session(&kind, &FlowTableConfig::default());
        let packets =
            [(0, Packet { tos: 0x20, ..PLAIN }.uplink()), (1, Packet { tos: 0x20, ..PLAIN }.downlink())];
        warm(&mut side, &packets, 2);
        assert_eq!(side.switch.meters(), 2, "one for each direction");
        side.collect();
        let (seen, before) = (side.seen, side.snapshot(place(1)).unwrap());
        for (port, packet) in &packets {
            side.send(*port, &vec![packet.clone(); 100]);
        }
        assert_eq!(side.seen, seen, "no worker has seen them");
        assert_eq!(side.collect().len(), 200);
        let after = side.snapshot(place(1)).unwrap();
        let counted = |snapshot: &SessionSnapshot| {
            snapshot.pdrs.iter().fold((0, 0), |sum, (_, packets, bytes)| (sum.0 + packets, sum.1 + bytes))
        };
        assert_eq!(counted(&after), (counted(&before).0 + 200, counted(&before).1 + 200 * 128));
        // Far more than the rate: what the device drops is in the session's books.
        let long = Packet { tos: 0x20, size: 1300, ..PLAIN }.uplink();
        side.send(0, &vec![long; 2000]);
        assert_eq!(side.seen, seen);
        let passed = side.collect().len() as u64;
        let end = side.snapshot(place(1)).unwrap();
        assert_eq!(counted(&end), (counted(&after).0 + passed, counted(&after).1 + passed * 1328));
        assert_eq!(end.drops, [(Reason::RateExceeded, 2000 - passed)]);
        assert_eq!(side.report().counters.dropped, 2000 - passed);
        // Nothing stays behind.
        side.apply(Command::Remove { token: Token(3), session: place(1) });
        assert_eq!((side.switch.len(), side.switch.meters()), (0, 0));
    }
}

#[test]
fn device_and_software_let_no_more_pass_than_the_limit() {
    for seed in 0..6 {
        let kind = Kind { filters: seed % 2 == 1, ..limited(40 * MBIT) };
        let table = FlowTableConfig { meters_change: seed % 3 != 2, ..late(seed) };
        let mut world = World::new(seed, &kind, &table);
        for load in [30, 200, 90, 400, 10, 120] {
            world.run(150, load);
        }
        let counters = world.side.report().counters;
        assert!(counters.packets > world.sent / 10 && counters.dropped > 0, "{counters:?} of {}", world.sent);
    }
}

/// Nor much less, however often shares are looked at.
#[test]
fn what_is_allowed_passes() {
    let mut world = World::new(7, &limited(40 * MBIT), &FlowTableConfig::default());
    world.run(400, 150);
    world.passes_nearly_all_that_is_allowed(40, 150);
    // And half of the rate passes whole.
    world.run(100, 10);
    let dropped = world.side.report().counters.dropped;
    world.run(500, 50);
    assert_eq!(world.side.report().counters.dropped, dropped);
}

#[test]
fn the_limit_holds_through_orders_moves_and_failures() {
    let mut seen = [0; 6];
    for seed in 0..8 {
        let mut world = World::new(seed, &limited(40 * MBIT), &late(seed));
        let mut broken = false;
        for _ in 0..14 {
            let load = [50, 150, 300][world.rng.random_range(0..3)];
            let steps = world.rng.random_range(20..150);
            world.run(steps, load);
            let step = world.rng.random_range(0..6);
            let failed = broken || world.side.report().down > 0;
            seen[step] += world.side.switch.meters();
            match step {
                0 | 1 => {
                    // What a device that has failed may have still leaves nothing of a rate that is lower than that.
                    let least = if failed { world.rate / MBIT } else { 20 };
                    let mbr = [20, 40, 80, 160][world.rng.random_range(0..4)].max(least) * MBIT;
                    let kind = Kind { filters: world.rng.random(), ..limited(mbr) };
                    world.install(&kind);
                }
                2 if !failed => {
                    let place = place(1);
                    world.side.apply(Command::Remove { token: Token(3), session: place });
                    assert_eq!((world.side.switch.len(), world.side.switch.meters()), (0, 0));
                    world.side.install(&rules(1, &limited(40 * MBIT)));
                    (world.rate, world.judge) = (40 * MBIT, Judge::new(40 * MBIT, world.side.now));
                }
                3 if !failed => {
                    // To a worker that has no such device, and back.
                    let Side { offload, datapath, out, now, .. } = &mut world.side;
                    offload.as_mut().unwrap().withdraw_shard(*now, datapath, place(1).shard, out);
                    let shard = datapath.release(place(1).shard).unwrap();
                    let mut other = Side::new(None, eager());
                    other.now = world.side.now;
                    other.datapath.release(place(1).shard).unwrap();
                    other.datapath.adopt(shard);
                    std::mem::swap(&mut world.side, &mut other);
                    world.run(60, load);
                    std::mem::swap(&mut world.side, &mut other);
                    world.side.now = other.now;
                    world.side.datapath.adopt(other.datapath.release(place(1).shard).unwrap());
                }
                4 => {
                    // It goes on forwarding by the rules and meters that it has.
                    broken = !broken;
                    world.side.switch.set_broken(broken.then(|| Failure::Device("firmware".into())));
                }
                _ => world.side.switch.reset(),
            }
        }
    }
    assert!(seen.iter().all(|meters| *meters > 0), "each met meters in force: {seen:?}");
}

/// The worker's bucket may be overdrawn by one packet; nobody else's tokens may be used up before it is paid for.
#[test]
fn an_overdrawn_bucket_is_paid_for() {
    let table = FlowTableConfig { meters_change: false, ..FlowTableConfig::default() };
    let mut world = World::new(1, &limited(40 * MBIT), &table);
    warm(&mut world.side, &[(0, PLAIN.uplink())], 1);
    let sent = world.side.collect();
    world.judge.see(world.side.now, &sent);
    // Everything is full, and drained at once.
    world.side.tick(150 * MILLI);
    let own = Packet { size: 1400, ..PLAIN };
    let light = Packet { size: 0, ..PLAIN };
    let mut port = 10_000;
    let mut bursts = [400; 300];
    bursts[1..].fill(4);
    for burst in bursts {
        let mut packets = vec![own.uplink(); if burst == 4 { 0 } else { burst }];
        packets.extend((0..burst).map(|_| {
            port += 1;
            Packet { ports: (port, 53), ..own }.uplink()
        }));
        packets.extend(vec![light.uplink(); 60]);
        world.side.send(0, &packets);
        world.judge.see(world.side.now, &world.side.collect());
        world.side.tick(MILLI / 5);
    }
    let counters = world.side.report().counters;
    assert!(counters.dropped > 1000 && counters.packets > 1000, "{counters:?}");
}

/// A device that has failed forwards by its meter still. The worker doesn't use what that may let pass, nor after the limit was raised.
#[test]
fn what_a_failed_device_may_use_is_withheld() {
    let mut world = World::new(2, &limited(40 * MBIT), &FlowTableConfig::default());
    world.run(100, 30);
    world.side.switch.set_broken(Some(Failure::Device("firmware".into())));
    world.run(20, 30);
    assert_eq!(world.side.report().down, 2);
    let rules = world.side.switch.len();
    assert!(rules > 2);
    world.run(200, 300);
    world.install(&limited(80 * MBIT));
    world.run(500, 300);
    assert_eq!(world.side.switch.len(), rules, "in force all the time");
    // Then the worker has all of it again, and the device its share.
    world.side.switch.set_broken(None);
    world.run(1500, 100);
    assert_eq!(world.side.report().down, 0);
    world.passes_nearly_all_that_is_allowed(80, 300);
}

/// What a lower limit leaves is less at once, however much the worker has kept: the device, which has failed, uses its part all the time.
#[test]
fn a_lower_limit_holds_beside_a_failed_device() {
    for eighths in 0..8 {
        let mut world = World::new(2, &limited(80 * MBIT), &FlowTableConfig::default());
        world.run(100, 30);
        world.side.switch.set_broken(Some(Failure::Device("firmware".into())));
        world.run(20, 30);
        assert_eq!(world.side.report().down, 2);
        let send = |world: &mut World, flow: u16, packets: usize| {
            let packet = Packet { ports: (flow, 53), tos: 0x20, size: 972, ..PLAIN }.uplink();
            world.side.send(0, &vec![packet; packets]);
            world.judge.see(world.side.now, &world.side.collect());
        };
        // The device's meter is empty, the worker's bucket is full; and then not any more.
        for _ in 0..150 {
            send(&mut world, 1, 20);
            world.side.tick(MILLI);
        }
        send(&mut world, 9_999, eighths * 100);
        send(&mut world, 1, 20);
        world.install(&limited(40 * MBIT));
        send(&mut world, 9_999, 1000);
    }
}

#[test]
fn a_device_without_meters_has_no_share() {
    let none = FlowTableConfig { meters: 0, ..FlowTableConfig::default() };
    let features: Features = MemSwitch::features().without(Feature::Meter);
    let cannot = FlowTableConfig { features, ..FlowTableConfig::default() };
    for (table, refusal) in [(none, WhyRefused::Full), (cannot, WhyRefused::Unsupported)] {
        let mut hard = one_session(&limited(40 * MBIT), &table);
        let mut soft = Side::new(None, eager());
        soft.install(&rules(1, &limited(40 * MBIT)));
        let packets = vec![Packet { size: 1000, ..PLAIN }.uplink(); 4];
        for _ in 0..200 {
            for side in [&mut hard, &mut soft] {
                side.send(0, &packets);
                side.tick(MILLI);
            }
            assert_eq!(hard.collect(), soft.collect());
        }
        assert!(hard.switch.is_empty());
        assert!(hard.report().counters.refused.get(refusal) > 0, "{:?}", hard.report().counters);
    }
}

/// What is measured before the rate is limited is all that came, whatever the device's meters dropped of it.
#[test]
fn a_second_counter_measures_what_came() {
    let kind = Kind { filters: true, before: Some(2_000_000), ..limited(40 * MBIT) };
    let mut world = World::new(3, &kind, &FlowTableConfig::default());
    let (mut came, mut counters) = (0, 0);
    let mut measured = |world: &mut World| {
        for (_, urr, _, volume) in world.side.reported() {
            came += if urr == UrrId(2) { volume.uplink_packets + volume.downlink_packets } else { 0 };
        }
        came
    };
    for load in [50, 300, 150] {
        world.run(150, load);
        counters = counters.max(world.side.switch.counters());
        let told = measured(&mut world);
        let [_, (id, open)] = world.side.snapshot(place(1)).unwrap().urrs[..] else { panic!("two URRs") };
        assert_eq!((id, told + open.uplink_packets + open.downlink_packets), (UrrId(2), world.sent));
    }
    let report = world.side.report().counters;
    assert!(counters > 0 && report.dropped > 100, "{counters}, {report:?}");
    let snapshot = world.side.snapshot(place(1)).unwrap();
    let passed: u64 = snapshot.pdrs.iter().map(|(_, packets, _)| packets).sum();
    let dropped: u64 = snapshot.drops.iter().map(|(_, packets)| packets).sum();
    assert_eq!(passed + dropped, world.sent);
    assert_eq!(snapshot.pdrs.iter().map(|(.., bytes)| bytes).sum::<u64>(), world.judge.passed.iter().sum());
    world.side.apply(Command::Remove { token: Token(3), session: place(1) });
    assert_eq!((world.side.switch.counters(), world.side.switch.meters()), (0, 0));
    // A device that has no such counters is asked for none of these rules.
    let features = MemSwitch::features().without(Feature::SharedCount);
    let mut world = World::new(3, &kind, &FlowTableConfig { features, ..FlowTableConfig::default() });
    world.run(150, 50);
    assert!(
        world.side.switch.is_empty() && world.side.report().counters.refused.get(WhyRefused::Unsupported) > 0
    );
}

/// The counter and the meter that a rule draws on may go with the rule that makes room for it.
#[test]
fn a_heavier_flow_of_the_same_rules_takes_the_last_ones_place() {
    let kind = Kind { filters: true, before: Some(2_000_000), ..limited(400 * MBIT) };
    let mut side = one_session(&kind, &FlowTableConfig { entries: 1, ..FlowTableConfig::default() });
    let flow = |port: u16| Packet { ports: (port, 53), tos: 0x20, ..PLAIN }.uplink();
    let mut sent = 0;
    let mut round = |side: &mut Side, first: usize, second: usize| {
        for _ in 0..60 {
            side.send(0, &vec![flow(1); first]);
            side.send(0, &vec![flow(2); second]);
            side.tick(MILLI);
            side.collect();
            sent += first + second;
        }
        sent as u64
    };
    round(&mut side, 4, 0);
    assert_eq!((side.switch.len(), side.switch.counters()), (1, 1));
    let sent = round(&mut side, 4, 30);
    let report = side.report();
    assert_eq!(report.some.iter().map(|entry| entry.flow.ports.unwrap().0).collect::<Vec<_>>(), [2]);
    assert_eq!((side.taken_back(TakenBack::Lighter), side.switch.counters()), (1, 1));
    let asked = [WhyRefused::Unsupported, WhyRefused::Exists, WhyRefused::Device];
    assert_eq!(
        asked.map(|why| report.counters.refused.get(why)),
        [0; 3],
        "asked once more, with what is there"
    );
    side.apply(Command::Remove { token: Token(3), session: place(1) });
    let counted: u64 = side
        .reported()
        .into_iter()
        .filter(|(_, urr, ..)| *urr == UrrId(2))
        .map(|(.., volume)| volume.uplink_packets)
        .sum();
    assert_eq!(counted, sent);
}

#[test]
fn a_slice_that_is_only_counted_counts_what_the_device_forwards() {
    for mbr in [None, Some(80 * MBIT)] {
        let kind = Kind { teid: 9, slice: true, mbr, ..Kind::default() };
        let mut side = one_session(&kind, &FlowTableConfig::default());
        let packets = [(0, PLAIN.uplink()), (1, PLAIN.downlink())];
        warm(&mut side, &packets, 2);
        let seen = side.seen;
        packets.iter().for_each(|(port, packet)| side.send(*port, &vec![packet.clone(); 100]));
        assert_eq!(side.seen, seen);
        let pdrs = side.snapshot(place(1)).unwrap().pdrs;
        let both = side.datapath.slices().next().unwrap();
        for ((_, packets, bytes), traffic) in pdrs.into_iter().zip(both) {
            assert!(packets > 100);
            assert_eq!((traffic.green.packets, traffic.green.bytes), (packets, bytes));
        }
    }
}
