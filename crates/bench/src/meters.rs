//! `meters`: what a rule's meters add to a packet, by their kind and number, from one session to a million meters.
//!
//! Sessions are those of [`crate::forward`], in the simple scene, with other QERs: none, or up to three that each rule draws on, with a maximum bit
//! rate alone (one bucket) or with a guaranteed one beside it (RFC 2698, two buckets); and one slice that all sessions share.

use crate::forward::rules;
use crate::path::{self, Costs, Mix, PAYLOAD, Path, PathError, Subscriber};
use crate::progress::Progress;
use crate::report::Report;
use datapath::Slice;
use io::replay::ReplayRx;
use pfcp::QerId;
use session::rules::{Pdr, Qer, Rules};
use std::sync::Arc;
use tables::clock::Tsc;
use tables::{MeterConfig, SharedMarker};

/// The UEs' port.
const UE_PORT: u16 = 40_000;
/// More than one core can send, so that every packet is metered and none is dropped.
const RATE: u64 = 100_000_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct MetersConfig {
    /// Numbers of sessions. With three QERs each has six meters, one a direction.
    pub sessions: Vec<usize>,
    /// Rounds.
    pub runs: usize,
    /// Packets of each case in each round.
    pub packets: usize,
}

impl MetersConfig {
    /// Up to a million meters.
    pub fn full() -> Self {
        Self { sessions: vec![1, 1_024, 16_384, 174_763], runs: 7, packets: 2_000_000 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { sessions: vec![1_024, 174_763], runs: 3, packets: 300_000 }
    }
}

/// The meters of every rule.
#[derive(Clone, Copy)]
struct Case {
    kind: &'static str,
    meters: u16,
}

const CASES: [Case; 7] = [
    Case { kind: "none", meters: 0 },
    Case { kind: "mbr", meters: 1 },
    Case { kind: "mbr", meters: 2 },
    Case { kind: "mbr", meters: 3 },
    Case { kind: "gbr", meters: 1 },
    Case { kind: "gbr", meters: 3 },
    Case { kind: "slice", meters: 1 },
];

impl Case {
    /// An ordinary session's rules with these meters.
    fn apply(self, mut rules: Rules) -> Rules {
        let (uplink_gbr, downlink_gbr) =
            if self.kind == "gbr" { (Some(RATE), Some(RATE)) } else { (None, None) };
        let qers = if self.kind == "slice" { 0 } else { self.meters };
        let first = rules.qers.first().cloned();
        let qer =
            |at: u16| Some(Qer { id: QerId(u32::from(at) + 1), uplink_gbr, downlink_gbr, ..first.clone()? });
        let made: Box<[Qer]> = (0..qers).filter_map(qer).collect();
        let all = |pdr: &Pdr| Pdr { qers: (0..qers).collect(), ..pdr.clone() };
        rules.pdrs = rules.pdrs.iter().map(all).collect();
        rules.qers = made;
        rules.slice = (self.kind == "slice").then_some(0);
        rules
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &MetersConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("meters", &clock);
    for &sessions in &config.sessions {
        let mut rigs = Vec::new();
        for case in CASES {
            progress.tell(&format!("{sessions} sessions, {} {}: establishing", case.meters, case.kind));
            rigs.push(prepare(sessions, case, clock, progress)?);
        }
        for uplink in [true, false] {
            let direction = if uplink { "uplink" } else { "downlink" };
            let mut cycles = vec![Costs::default(); CASES.len()];
            // One round to warm up; all cases in every round, so that they meet the same neighbours on the machine.
            for round in 0..=config.runs {
                progress.tell(&format!("{sessions} sessions, {direction}, round {round}"));
                for ((path, subscribers), cycles) in rigs.iter_mut().zip(&mut cycles) {
                    // In another order each time: what first packets opened lies in that of the first round.
                    path::shuffle(subscribers);
                    let source = path::stream(uplink, subscribers.iter().map(|one| (*one, UE_PORT)))?;
                    let mut mix = Mix::of(ReplayRx::new(source), u16::from(!uplink));
                    let taken = path.forward(&mut mix, config.packets.max(sessions))?;
                    if round > 0 {
                        cycles.push(taken);
                    }
                }
            }
            for (case, cycles) in CASES.iter().zip(&cycles) {
                let live = sessions as u64 * u64::from(case.meters) * 2;
                let params = [
                    ("direction", direction.into()),
                    ("kind", case.kind.into()),
                    ("live", if case.kind == "slice" { 2 } else { live }.into()),
                    ("meters", u64::from(case.meters).into()),
                    ("payload", (PAYLOAD as u64).into()),
                    ("sessions", (sessions as u64).into()),
                ];
                cycles.report(&mut report, &params);
            }
            progress.keep(&report);
        }
    }
    report.notes.push(
        "cycles are TSC ticks, the port's own included; `meters` of each rule, `live` in all; one mbr is kept in the session's own line"
            .into(),
    );
    Ok(report)
}

/// Sessions with these meters, and their subscribers in the order in which packets come.
fn prepare(
    sessions: usize,
    case: Case,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(Path, Vec<Subscriber>), PathError> {
    let meter = MeterConfig::with_burst_time(RATE, 100_000_000, 10_000);
    let shared = || Some(Arc::new(SharedMarker::new(meter, meter)));
    let mut path = Path::new(clock, |config| {
        config.slices = vec![Slice { uplink: shared(), downlink: shared() }];
    })?;
    let rules = |place, tunnel, ue| case.apply(rules(place, tunnel, ue));
    let mut subscribers = path.add_sessions(sessions, rules, progress)?;
    path::shuffle(&mut subscribers);
    Ok((path, subscribers))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::{Parts, Silent};

    #[test]
    fn many_sessions_are_not_established_in_silence() {
        let mut parts = Parts::default();
        prepare(1 << 15, CASES[0], Tsc::process(), &mut parts).unwrap();
        assert!(parts.0 > 0);
    }

    #[test]
    fn every_packet_is_metered_and_forwarded() {
        for case in CASES {
            let (mut path, subscribers) = prepare(50, case, Tsc::process(), &mut Silent).unwrap();
            for uplink in [true, false] {
                let source = path::stream(uplink, subscribers.iter().map(|one| (*one, UE_PORT))).unwrap();
                path.forward(&mut Mix::of(ReplayRx::new(source), u16::from(!uplink)), 1280).unwrap();
            }
            let counters = path.datapath.counters();
            assert_eq!((counters.sent, counters.yellow), (2560, 0), "{} {}", case.meters, case.kind);
            let [up, down] = path.datapath.slices().next().unwrap();
            let sliced = if case.kind == "slice" { 1280 } else { 0 };
            assert_eq!((up.green.packets, down.green.packets), (sliced, sliced));
        }
    }
}
