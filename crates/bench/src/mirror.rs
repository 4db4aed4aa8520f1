//! `mirror`: what copies of packets cost, by target and sampling, and what they cost packets that aren't copied.
//!
//! Sessions and packets are those of [`crate::forward`], in the simple scene. In every round each case is measured once, so that all meet the same
//! neighbours on the machine: no mirror at all, mirrors on one of a thousand sessions, and a mirror of all sessions to each
//! kind of target. A capture is read by another thread, which throws it away: the disk is not what is measured.

use crate::forward::rules;
use crate::path::{self, Cost, Costs, Mix, PAYLOAD, Path, PathError, Subscriber};
use crate::progress::Progress;
use crate::report::Report;
use datapath::Command;
use datapath::mirror::{CaptureRx, Mirror, Order, Scope, Target, capture};
use io::replay::ReplayRx;
use packet::{MacAddr, Teid};
use session::SessionRef;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tables::clock::Tsc;

/// The UEs' port.
const UE_PORT: u16 = 40_000;
/// Where tunnels end: behind the router.
const ANALYSER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 50));
/// One session in so many has a mirror, in the case that is about the others.
const SPARSE: usize = 1_000;
/// Octets of a capture's ring.
const RING: usize = 16 << 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct MirrorConfig {
    /// Sessions.
    pub sessions: usize,
    /// Rounds.
    pub runs: usize,
    /// Packets of each case in each round.
    pub packets: usize,
}

impl MirrorConfig {
    /// As many as a cell's.
    pub fn full() -> Self {
        Self { sessions: 16_384, runs: 7, packets: 2_000_000 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { sessions: 16_384, runs: 3, packets: 300_000 }
    }
}

/// One thing to measure.
struct Case {
    name: &'static str,
    target: Option<Target>,
    mirrored: &'static str,
    sample: u32,
}

fn cases() -> Vec<Case> {
    let port = Target::Port {
        port: 1,
        vlan: None,
        source: MacAddr([2, 0, 0, 0, 6, 1]),
        destination: MacAddr([2, 0, 0, 0, 6, 5]),
        mtu: 1500,
    };
    let erspan = Target::Erspan { destination: ANALYSER, session: 7 };
    let kinds = [
        ("port", port),
        ("gtpu", Target::Gtpu { destination: ANALYSER, teid: Teid(1) }),
        ("gre", Target::Gre { destination: ANALYSER, key: None }),
        ("erspan", erspan),
        ("pcapng", Target::Capture),
    ];
    let mut cases = vec![
        Case { name: "none", target: None, mirrored: "none", sample: 1 },
        Case { name: "erspan", target: Some(erspan), mirrored: "one in 1000", sample: 1 },
    ];
    for sample in [1, 100] {
        let all = |(name, target)| Case { name, target: Some(target), mirrored: "all", sample };
        cases.extend(kinds.map(all));
    }
    cases
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &MirrorConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("mirror", &clock);
    progress.tell(&format!("{} sessions: establishing", config.sessions));
    let mut path = Path::new(clock, |_| ())?;
    let (mut subscribers, mut places) = (Vec::new(), Vec::new());
    for _ in 0..config.sessions {
        subscribers.push(path.add_session(|place, tunnel, ue| {
            places.push(place);
            rules(place, tunnel, ue)
        })?);
    }
    path::shuffle(&mut subscribers);
    let cases = cases();
    for uplink in [true, false] {
        let direction = if uplink { "uplink" } else { "downlink" };
        let source =
            path::stream(uplink, subscribers.iter().map(|subscriber: &Subscriber| (*subscriber, UE_PORT)))?;
        let mut cycles = vec![Costs::default(); cases.len()];
        // One round to warm up.
        for round in 0..=config.runs {
            for (case, cycles) in cases.iter().zip(&mut cycles) {
                progress.tell(&format!("{direction}, round {round}: {}, {}", case.name, case.mirrored));
                let mut packets = Mix::of(ReplayRx::new(source.clone()), u16::from(!uplink));
                let taken =
                    path.mirrored(case, &places, |path| path.forward(&mut packets, config.packets))?;
                if round > 0 {
                    cycles.push(taken);
                }
            }
        }
        for (case, cycles) in cases.iter().zip(&cycles) {
            let params = [
                ("direction", direction.into()),
                ("mirror", case.name.into()),
                ("mirrored", case.mirrored.into()),
                ("payload", (PAYLOAD as u64).into()),
                ("sample", u64::from(case.sample).into()),
            ];
            cycles.report(&mut report, &params);
        }
        progress.keep(&report);
    }
    report.notes.push(
        "cycles are TSC ticks per user's packet, with its share of copies and the port's own cost; of `one in 1000`, the median \
         slice of 256 packets has no mirrored one: it is what the others cost"
            .into(),
    );
    Ok(report)
}

impl Path {
    /// Does something while a case's mirrors are in force.
    fn mirrored(
        &mut self,
        case: &Case,
        places: &[SessionRef],
        measure: impl FnOnce(&mut Self) -> Result<Cost, PathError>,
    ) -> Result<Cost, PathError> {
        let Some(target) = case.target else { return measure(self) };
        let scopes: Vec<Scope> = if case.mirrored == "all" {
            vec![Scope::All]
        } else {
            let some = places.iter().step_by(SPARSE);
            some.map(|place| Scope::Session { place: *place, seid: place.seid(1) }).collect()
        };
        let mut readers = Vec::new();
        for (number, scope) in scopes.iter().enumerate() {
            let (sender, reader) = capture(RING);
            let mirror = Mirror {
                number: number as u16,
                scope: *scope,
                uplink: Some(Box::default()),
                downlink: Some(Box::default()),
                applications: [].into(),
                sample: case.sample,
                truncate: u16::MAX,
                target,
            };
            let capture = (target == Target::Capture).then(|| {
                readers.push(reader);
                sender
            });
            self.apply(Command::Mirror(Order::Add { mirror: Arc::new(mirror), capture }));
        }
        let reader = std::thread::spawn(move || readers.into_iter().for_each(discard));
        let measured = measure(self);
        for number in 0..scopes.len() {
            self.apply(Command::Mirror(Order::Remove { number: number as u16 }));
        }
        // It doesn't panic; and if it did, its hook has said so.
        let _ = reader.join();
        measured
    }
}

/// Reads a capture to its end.
fn discard(mut reader: CaptureRx) {
    loop {
        let over = reader.is_over();
        while reader.next_copy().is_some() {}
        if over {
            return;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_case_copies_what_it_says() {
        let clock = Tsc::process();
        let mut path = Path::new(clock, |_| ()).unwrap();
        let mut places = Vec::new();
        let subscriber = path
            .add_session(|place, tunnel, ue| {
                places.push(place);
                rules(place, tunnel, ue)
            })
            .unwrap();
        let source = path::stream(true, std::iter::once((subscriber, UE_PORT))).unwrap();
        for case in cases() {
            let mut copies = 0;
            let measured = path.mirrored(&case, &places, |path| {
                let cycles = path.forward(&mut Mix::of(ReplayRx::new(source.clone()), 0), 2560);
                let counted = path.datapath.counters().mirrors.first().copied().unwrap_or_default();
                copies = counted.copied.packets;
                assert_eq!(counted.lost(), 0, "{}", case.name);
                cycles
            });
            measured.unwrap();
            let expected = if case.target.is_none() { 0 } else { 2560u64.div_ceil(u64::from(case.sample)) };
            assert_eq!(copies, expected, "{}", case.name);
        }
    }
}
