#![allow(clippy::unwrap_used)]
use super::plan::standard_classes;
use super::*;
use io::mem::MemFrame;
use packet::{DropPrecedence, Dscp};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A frame of this length, code point and number.
fn frame(dscp: Dscp, length: usize, number: u32) -> MemFrame {
    let mut bytes = vec![0; length.max(42)];
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, dscp.to_tos()]);
    bytes[23] = 17;
    bytes[38..42].copy_from_slice(&number.to_be_bytes());
    MemFrame::copy_of(&bytes).unwrap()
}

fn number(frame: &MemFrame) -> u32 {
    u32::from_be_bytes(frame.bytes()[38..42].try_into().unwrap())
}

fn dscp(frame: &MemFrame) -> Dscp {
    Dscp::from_tos(frame.bytes()[15])
}

/// A port that takes so many frames and no more.
struct Room {
    frames: usize,
    sent: Vec<MemFrame>,
}

impl TxQueue for Room {
    type Frame = MemFrame;

    fn tx_burst(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        let n = self.frames.min(frames.len());
        self.frames -= n;
        self.sent.extend(frames.drain(..n));
        n
    }
}

fn send(scheduler: &mut Scheduler<MemFrame>, frames: usize) -> Vec<MemFrame> {
    let mut room = Room { frames, sent: Vec::new() };
    assert_eq!(scheduler.send(&mut room), room.sent.len());
    room.sent
}

const STRICT: Kind = Kind::Strict { share: None };

fn scheduler(classes: Vec<Class>) -> Scheduler<MemFrame> {
    Scheduler::new(Arc::new(Plan::new(classes, []).unwrap()))
}

fn put(scheduler: &mut Scheduler<MemFrame>, dscp: Dscp, length: usize, numbers: std::ops::Range<u32>) -> u64 {
    scheduler.put(&mut numbers.map(|number| frame(dscp, length, number)).collect())
}

/// Bytes by code point.
fn bytes(frames: &[MemFrame]) -> BTreeMap<Dscp, usize> {
    let mut sums = BTreeMap::new();
    for frame in frames {
        *sums.entry(dscp(frame)).or_default() += frame.len();
    }
    sums
}

#[test]
fn the_standard_plan_is_one() {
    let plan = Plan::new(standard_classes(), []).unwrap();
    assert_eq!(plan, Plan::standard([]));
    assert_eq!((plan.classes().len(), plan.frames()), (MAX_CLASSES, 1_664));
    let class = |dscp| {
        let (class, precedence) = plan.classify(frame(dscp, 60, 0).bytes());
        (plan.classes()[class].name.as_str(), precedence)
    };
    use DropPrecedence::{Green, Red, Yellow};
    for (dscp, expected) in [
        (Dscp::EF, ("voice", Green)),
        (Dscp::AF43, ("af4", Red)),
        (Dscp::AF12, ("af1", Yellow)),
        (Dscp::CS3, ("af3", Green)),
        (Dscp::CS0, ("best-effort", Green)),
        (Dscp::new(63).unwrap(), ("best-effort", Green)),
        (Dscp::LE, ("lower-effort", Green)),
        (Dscp::CS6, ("control", Yellow)),
    ] {
        assert_eq!(class(dscp), expected);
    }
    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 28]].concat();
    assert_eq!(plan.classify(&arp), (0, Green));
}

#[test]
fn contradictory_plans_are_refused() {
    let class = |name: &str, dscps: &[Dscp], kind| Class::new(name, dscps.iter().copied(), kind, 4);
    let refused = |classes| Plan::new(classes, []).unwrap_err().to_string();
    assert_eq!(refused(vec![]), "there are 1 to 8 egress classes, not 0");
    assert!(refused(vec![class("a", &[Dscp::EF], STRICT)]).starts_with("0 egress classes have no"));
    assert!(refused(vec![class("a", &[], STRICT), class("b", &[], STRICT)]).starts_with("2 egress classes"));
    let twice =
        vec![class("a", &[Dscp::EF], STRICT), class("b", &[Dscp::EF], STRICT), class("c", &[], STRICT)];
    assert_eq!(refused(twice), "the code point 46 is in the egress classes `a` and `b`");
    for kind in
        [Kind::Strict { share: Some(0) }, Kind::Strict { share: Some(100) }, Kind::Weighted { weight: 0 }]
    {
        assert!(refused(vec![class("a", &[], kind)]).starts_with("egress class `a`: a "));
    }
    assert!(refused(vec![Class::new("a", [], STRICT, 0)]).contains("65,536"));
    assert!(refused(vec![Class { bytes: 0, ..class("a", &[], STRICT) }]).contains("byte"));
}

#[test]
fn strict_classes_come_first_in_order() {
    let mut scheduler = scheduler(vec![
        Class::new("first", [Dscp::CS6], STRICT, 100),
        Class::new("second", [Dscp::EF], STRICT, 100),
        Class::new("rest", [], Kind::Weighted { weight: 1 }, 100),
    ]);
    put(&mut scheduler, Dscp::CS0, 100, 0..10);
    put(&mut scheduler, Dscp::EF, 100, 10..20);
    assert_eq!(send(&mut scheduler, 3).iter().map(number).collect::<Vec<_>>(), [10, 11, 12]);
    put(&mut scheduler, Dscp::CS6, 100, 20..22);
    let numbers: Vec<u32> = send(&mut scheduler, 100).iter().map(number).collect();
    let expected: Vec<u32> = (20..22).chain(13..20).chain(0..10).collect();
    assert_eq!(numbers, expected);
    assert!(scheduler.is_empty());
}

#[test]
fn weights_share_bytes_whatever_the_packets_lengths() {
    let mut scheduler = scheduler(vec![
        Class::new("heavy", [Dscp::AF41], Kind::Weighted { weight: 5 }, 20_000),
        Class::new("light", [Dscp::AF31], Kind::Weighted { weight: 2 }, 20_000),
        Class::new("rest", [], Kind::Weighted { weight: 1 }, 20_000),
    ]);
    put(&mut scheduler, Dscp::AF41, 64, 0..20_000);
    put(&mut scheduler, Dscp::AF31, 1_500, 0..2_000);
    put(&mut scheduler, Dscp::CS0, 700, 0..2_000);
    // Three frames at a time: what the port gives back must not disturb the rounds.
    let mut sent = Vec::new();
    for _ in 0..1_000 {
        sent.extend(send(&mut scheduler, 3));
    }
    let sums = bytes(&sent);
    let (heavy, light, rest) = (sums[&Dscp::AF41], sums[&Dscp::AF31], sums[&Dscp::CS0]);
    // Within a quantum of each (and a packet).
    let bound = |weight: usize| weight * QUANTUM as usize + 1_500;
    assert!((heavy / 5).abs_diff(light / 2) <= bound(1), "{sums:?}");
    assert!((light / 2).abs_diff(rest) <= bound(1), "{sums:?}");
    assert!(rest > 20_000, "{sums:?}");
}

#[test]
fn a_share_keeps_a_strict_class_from_starving_the_rest() {
    let mut scheduler = scheduler(vec![
        Class::new("voice", [Dscp::EF], Kind::Strict { share: Some(30) }, 10_000),
        Class::new("rest", [], Kind::Weighted { weight: 1 }, 10_000),
    ]);
    // Alone it may have all.
    put(&mut scheduler, Dscp::EF, 200, 0..3_000);
    assert_eq!(send(&mut scheduler, 3_000).len(), 3_000);
    put(&mut scheduler, Dscp::EF, 200, 0..9_000);
    put(&mut scheduler, Dscp::CS0, 1_000, 0..9_000);
    let sums = bytes(&send(&mut scheduler, 8_000));
    let share = sums[&Dscp::EF] as f64 / (sums[&Dscp::EF] + sums[&Dscp::CS0]) as f64;
    assert!((0.295..0.305).contains(&share), "{share}: what it had alone is not held against it");
    // After a silence it goes ahead, by a bounded lot.
    scheduler.clear();
    put(&mut scheduler, Dscp::CS0, 1_000, 0..5_000);
    send(&mut scheduler, 5_000);
    put(&mut scheduler, Dscp::CS0, 1_000, 0..5_000);
    put(&mut scheduler, Dscp::EF, 200, 0..5_000);
    let first: Vec<Dscp> = send(&mut scheduler, 1_000).iter().map(dscp).collect();
    let ahead = first.iter().take_while(|dscp| **dscp == Dscp::EF).count();
    let expected = AHEAD as usize / 200;
    assert!((expected..expected + 2).contains(&ahead), "{ahead}");
}

#[test]
fn queues_fill_by_precedence_and_are_bounded_in_packets_and_bytes() {
    let video = [Dscp::AF41, Dscp::AF42, Dscp::AF43];
    let weighted = Kind::Weighted { weight: 1 };
    let mut scheduler = scheduler(vec![
        Class::new("video", video, weighted, 100),
        Class { bytes: 1_000, ..Class::new("rest", [], weighted, 100) },
    ]);
    assert_eq!(put(&mut scheduler, Dscp::AF43, 100, 0..60), 10);
    assert_eq!(put(&mut scheduler, Dscp::AF42, 100, 60..120), 35);
    assert_eq!(put(&mut scheduler, Dscp::AF43, 100, 120..121), 1);
    assert_eq!(put(&mut scheduler, Dscp::AF41, 100, 200..230), 5);
    assert_eq!(put(&mut scheduler, Dscp::CS0, 300, 300..310), 7, "three of 300 bytes fit in 1,000");
    let counters: Vec<_> = scheduler.counters().collect();
    let traffic = |packets, length| Traffic { packets, bytes: packets * length };
    assert_eq!(counters[0].queued, traffic(100, 100));
    let (green, yellow, red) = (traffic(5, 100), traffic(35, 100), traffic(11, 100));
    assert_eq!(counters[0].dropped, ByPrecedence { green, yellow, red });
    assert_eq!((counters[1].queued, counters[1].dropped.green), (traffic(3, 300), traffic(7, 300)));
    assert_eq!(scheduler.waiting(), 103);
    assert_eq!((scheduler.clear(), scheduler.waiting()), (103, 0));
    let counters = scheduler.counters().next().unwrap();
    assert_eq!((counters.queued, counters.dropped.green.packets), (Traffic::default(), 30));
}

/// The same rules in the plainest words, a frame at a time.
struct Twin {
    classes: Vec<Class>,
    queues: Vec<Vec<(u32, usize)>>,
    deficit: Vec<usize>,
    credit: Vec<i64>,
    at: usize,
    granted: bool,
}

impl Twin {
    fn new(classes: Vec<Class>) -> Self {
        let n = classes.len();
        let share = |class: &Class| match class.kind {
            Kind::Strict { share: Some(share) } => (100 - i64::from(share)) * 32 * 1_536,
            _ => 0,
        };
        let credit = classes.iter().map(share).collect();
        Self { queues: vec![Vec::new(); n], deficit: vec![0; n], credit, at: 0, granted: false, classes }
    }

    fn class_of(&self, dscp: Dscp) -> usize {
        let listed = self.classes.iter().position(|class| class.dscps.contains(&dscp));
        listed.unwrap_or_else(|| self.classes.iter().position(|class| class.dscps.is_empty()).unwrap())
    }

    /// Whether it is taken.
    fn put(&mut self, dscp: Dscp, length: usize, number: u32) -> bool {
        let class = self.class_of(dscp);
        let mut part = match dscp.drop_precedence() {
            DropPrecedence::Green => 1.0,
            DropPrecedence::Yellow => 0.75,
            DropPrecedence::Red => 0.5,
        };
        if dscp == Dscp::CS6 {
            part = 0.75;
        }
        let queue = &mut self.queues[class];
        let bytes: usize = queue.iter().map(|(_, length)| length).sum();
        let fits = (queue.len() + 1) as f64 <= f64::from(self.classes[class].packets) * part
            && (bytes + length) as f64 <= self.classes[class].bytes as f64 * part;
        if fits {
            queue.push((number, length));
        }
        fits
    }

    fn take(&mut self) -> Option<u32> {
        let n = self.classes.len();
        if self.queues.iter().all(Vec::is_empty) {
            return None;
        }
        let strict: Vec<usize> = (0..n)
            .filter(|&c| matches!(self.classes[c].kind, Kind::Strict { .. }) && !self.queues[c].is_empty())
            .collect();
        let free =
            |c: &usize| matches!(self.classes[*c].kind, Kind::Strict { share: None }) || self.credit[*c] > 0;
        let weighted = (0..n)
            .any(|c| matches!(self.classes[c].kind, Kind::Weighted { .. }) && !self.queues[c].is_empty());
        if let Some(&class) = strict.iter().find(|class| free(class)) {
            return Some(self.serve(class, true));
        }
        if !weighted {
            self.deficit.fill(0);
            self.granted = false;
            return strict.first().map(|&class| self.serve(class, false));
        }
        loop {
            if let Kind::Weighted { weight } = self.classes[self.at].kind {
                if let Some(&(_, length)) = self.queues[self.at].first() {
                    if !self.granted {
                        self.deficit[self.at] += usize::from(weight) * 1_536;
                        self.granted = true;
                    }
                    if self.deficit[self.at] >= length {
                        self.deficit[self.at] -= length;
                        return Some(self.serve(self.at, true));
                    }
                } else {
                    self.deficit[self.at] = 0;
                }
            }
            self.at = (self.at + 1) % n;
            self.granted = false;
        }
    }

    fn serve(&mut self, class: usize, charged: bool) -> u32 {
        let (number, length) = self.queues[class].remove(0);
        for (at, credit) in self.credit.iter_mut().enumerate().filter(|_| charged) {
            if let Kind::Strict { share: Some(share) } = self.classes[at].kind {
                let share = i64::from(share);
                *credit += if at == class { share - 100 } else { share } * i64::from(length as u32);
                *credit = (*credit).min((100 - share) * 32 * 1_536);
            }
        }
        number
    }
}

const POINTS: [Dscp; 7] = [Dscp::CS6, Dscp::EF, Dscp::AF41, Dscp::AF42, Dscp::AF43, Dscp::CS0, Dscp::LE];

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(STRICT),
        (1u8..100).prop_map(|share| Kind::Strict { share: Some(share) }),
        (1u8..=100).prop_map(|weight| Kind::Weighted { weight }),
    ]
}

/// Two to five classes, in any order of kinds.
fn classes() -> impl Strategy<Value = Vec<Class>> {
    let class = (kinds(), 1u32..24, 200u64..20_000);
    proptest::collection::vec(class, 2..=5).prop_map(|specs| {
        let dscps: [&[Dscp]; 5] =
            [&[Dscp::EF], &[], &[Dscp::AF41, Dscp::AF42, Dscp::AF43], &[Dscp::CS6], &[Dscp::LE]];
        let named = specs.into_iter().zip(dscps);
        let make = |((kind, packets, bytes), dscps): ((Kind, u32, u64), &[Dscp])| Class {
            bytes,
            ..Class::new("class", dscps.iter().copied(), kind, packets)
        };
        named.map(make).collect()
    })
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<(usize, usize)>),
    Send(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = proptest::collection::vec((0..POINTS.len(), 42usize..3_000), 1..40).prop_map(Step::Put);
    proptest::collection::vec(prop_oneof![put, (0usize..60).prop_map(Step::Send)], 1..40)
}

proptest! {
    #[test]
    fn does_what_its_twin_does(classes in classes(), steps in steps()) {
        let mut twin = Twin::new(classes.clone());
        let mut scheduler = scheduler(classes);
        let (mut next, mut lost, mut taken, mut sent) = (0, 0, 0u64, 0u64);
        for step in steps {
            match step {
                Step::Put(frames) => {
                    let mut burst = Vec::new();
                    let mut refused = 0;
                    for (point, length) in frames {
                        burst.push(frame(POINTS[point], length, next));
                        if twin.put(POINTS[point], length, next) { taken += 1 } else { refused += 1 }
                        next += 1;
                    }
                    prop_assert_eq!(scheduler.put(&mut burst), refused);
                    prop_assert!(burst.is_empty());
                    lost += refused;
                }
                Step::Send(room) => {
                    let numbers: Vec<u32> = send(&mut scheduler, room).iter().map(number).collect();
                    let expected: Vec<u32> = (0..room).map_while(|_| twin.take()).collect();
                    sent += numbers.len() as u64;
                    prop_assert_eq!(numbers, expected);
                }
            }
            // Every frame is somewhere, and every queue within its bounds.
            prop_assert_eq!(u64::from(next), taken + lost);
            prop_assert_eq!(taken, sent + scheduler.waiting() as u64);
            let mut sums = ClassCounters::default();
            for (counters, (class, queue)) in scheduler.counters().zip(twin.classes.iter().zip(&twin.queues)) {
                let bytes: usize = queue.iter().map(|(_, length)| length).sum();
                prop_assert_eq!(counters.queued, Traffic { packets: queue.len() as u64, bytes: bytes as u64 });
                prop_assert!(counters.queued.packets <= u64::from(class.packets));
                prop_assert!(counters.queued.bytes <= class.bytes);
                sums = sums.plus(counters);
            }
            prop_assert_eq!(sums.sent.packets, sent);
            prop_assert_eq!(sums.dropped.sum().packets, lost);
            prop_assert_eq!(sums.queued.packets, scheduler.waiting() as u64);
        }
    }
}
