//! `pdr-scan`: what it costs to find out which rule a packet meets, by the number of rules.
//!
//! A session has one to 64 PDRs in each direction with one to 16 filters each. They differ from what the packets are in address,
//! ports or protocol in turn, and only the last filter of the last PDR matches: the worst case of whoever looks at them one
//! after the other. Three kinds of packets: the `first` of a flow, which is classified and entered; `unlearned`, of sessions that
//! may have no flows, which is classified each time; and `known`, which is served by its flow and should not care.

use crate::flows;
use crate::forward::rules;
use crate::path::{self, Mix, Path, PathError, SERVER, SERVER_PORT, Subscriber};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use io::replay::ReplayRx;
use packet::IpProtocol;
use session::rules::{Prefix, Rules, SdfFilter};
use std::net::Ipv4Addr;
use tables::clock::Tsc;

/// Flows of each session in each run.
const FLOWS_PER_SESSION: usize = 256;

/// What to measure.
#[derive(Clone, Debug)]
pub struct PdrScanConfig {
    /// Numbers of PDRs in a direction.
    pub pdrs: Vec<usize>,
    /// Numbers of filters of each.
    pub filters: Vec<usize>,
    /// Sessions.
    pub sessions: usize,
    /// Runs of each.
    pub runs: usize,
}

impl PdrScanConfig {
    /// Up to 64 PDRs of 16 filters.
    pub fn full() -> Self {
        Self { pdrs: vec![1, 2, 4, 8, 16, 32, 64], filters: vec![1, 4, 16], sessions: 256, runs: 5 }
    }

    /// The same, briefly.
    pub fn quick() -> Self {
        Self { sessions: 64, runs: 3, ..Self::full() }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &PdrScanConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("pdr-scan", &clock);
    for &filters in &config.filters {
        for &pdrs in &config.pdrs {
            progress.tell(&format!("{pdrs} PDRs with {filters} filters"));
            let (mut first, mut known, mut unlearned) = (Vec::new(), Vec::new(), Vec::new());
            let (mut path, subscribers) = prepare(config.sessions, pdrs, filters, true, clock)?;
            let (mut forgetful, strangers) = prepare(config.sessions, pdrs, filters, false, clock)?;
            for run in 0..=config.runs {
                let packets = flows_of(&subscribers, run);
                let counted = packets.len() as u64;
                let learned = path.datapath.counters().flows.learned;
                let cycles = [send(&mut path, &packets)?, send(&mut path, &packets)?];
                expect(learned + counted, path.datapath.counters().flows.learned)?;
                let packets = flows_of(&strangers, 0);
                let refused = forgetful.datapath.counters().flows.refused;
                let scanned = send(&mut forgetful, &packets)?;
                expect(refused + counted, forgetful.datapath.counters().flows.refused)?;
                if run > 0 {
                    first.push(cycles[0]);
                    known.push(cycles[1]);
                    unlearned.push(scanned);
                }
            }
            for (packet, runs) in [("first", &first), ("unlearned", &unlearned), ("known", &known)] {
                let params = [
                    ("filters", (filters as u64).into()),
                    ("packet", packet.into()),
                    ("pdrs", (pdrs as u64).into()),
                ];
                report.results.push(Measured::of("cycles_per_packet", "cycles", &params, runs));
            }
            progress.keep(&report);
        }
    }
    report.notes.push(format!(
        "uplink, {} sessions of so many PDRs a direction; the last filter of the last PDR matches; first: a flow's first packet, \
         classified and entered; unlearned: classified each time, since no flow may be entered; known: served by its flow; the \
         port's own cost included",
        config.sessions
    ));
    Ok(report)
}

/// An error if flows were not entered, or refused, as they should have been.
fn expect(expected: u64, found: u64) -> Result<(), PathError> {
    if expected == found { Ok(()) } else { Err(PathError::FlowsLost { expected, found }) }
}

/// Each packet once: cycles per packet.
fn send(path: &mut Path, packets: &[(Subscriber, u16)]) -> Result<f64, PathError> {
    let source = path::stream(true, packets.iter().copied())?;
    Ok(path.forward(&mut Mix::of(ReplayRx::new(source), 0), packets.len())?.median)
}

/// Sessions with these rules, whose flows may be entered or not.
fn prepare(
    sessions: usize,
    pdrs: usize,
    filters: usize,
    learning: bool,
    clock: Tsc,
) -> Result<(Path, Vec<Subscriber>), PathError> {
    let mut path = Path::new(clock, |config| {
        flows::room_for(sessions * config.flows_per_session as usize, config);
        if !learning {
            config.flows_per_session = 0;
        }
    })?;
    let make = |place, tunnel, ue| last_matches(rules(place, tunnel, ue), pdrs, filters);
    let subscribers = (0..sessions).map(|_| path.add_session(make)).collect::<Result<_, _>>()?;
    Ok((path, subscribers))
}

/// A packet of each flow of a run, in the order in which they come; no two runs have a flow in common.
fn flows_of(subscribers: &[Subscriber], run: usize) -> Vec<(Subscriber, u16)> {
    let mut packets = flows::each_flow(subscribers, FLOWS_PER_SESSION);
    for (_, port) in &mut packets {
        *port += (run * FLOWS_PER_SESSION) as u16;
    }
    path::shuffle(&mut packets);
    packets
}

/// So many PDRs in each direction with so many filters each, the last of which is what packets are.
fn last_matches(rules: Rules, pdrs: usize, filters: usize) -> Rules {
    let server = Prefix::V4(SERVER.into());
    let other = |uplink, nth: usize| -> SdfFilter {
        // Each filter has its own: up to 1,024 ranges of 32 ports, and as many addresses.
        let ports = 1_024 + 32 * nth as u16;
        let ports = (ports, ports + 31);
        let elsewhere = Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + nth as u32);
        let everything = (SERVER_PORT, SERVER_PORT);
        match nth % 3 {
            0 => flows::remote(uplink, IpProtocol::UDP, Prefix::V4(elsewhere.into()), everything),
            1 => flows::remote(uplink, IpProtocol::UDP, server, ports),
            _ => flows::remote(uplink, IpProtocol::TCP, server, ports),
        }
    };
    flows::divided(rules, |uplink| {
        let filter = |nth| {
            if nth + 1 == pdrs * filters {
                flows::remote(uplink, IpProtocol::UDP, server, (SERVER_PORT, SERVER_PORT))
            } else {
                other(uplink, nth)
            }
        };
        (0..pdrs).map(|pdr| (0..filters).map(|of_it| filter(pdr * filters + of_it)).collect()).collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_last_filter_of_the_last_rule_matches() {
        let (mut path, subscribers) = prepare(2, 8, 4, true, Tsc::process()).unwrap();
        let packets = flows_of(&subscribers, 0);
        send(&mut path, &packets).unwrap();
        send(&mut path, &packets).unwrap();
        let flows = path.datapath.counters().flows;
        assert_eq!((flows.learned, flows.served), (512, 512));
        // Without its last PDR a session forwards nothing.
        let (mut path, _) = prepare(1, 1, 1, true, Tsc::process()).unwrap();
        let make = |place, tunnel, ue| {
            let mut rules = last_matches(rules(place, tunnel, ue), 64, 16);
            assert_eq!(rules.pdrs.len(), 128);
            assert!(rules.pdrs.iter().all(|pdr| pdr.filters.len() == 16));
            rules.pdrs = rules.pdrs.iter().filter(|pdr| pdr.precedence < 63).cloned().collect();
            rules
        };
        let subscriber = path.add_session(make).unwrap();
        let error = send(&mut path, &[(subscriber, 10_000)]).unwrap_err();
        assert!(matches!(error, PathError::Dropped { reason: "no-rule", .. }), "{error}");
    }

    #[test]
    fn sessions_without_flows_are_classified_each_time() {
        let (mut path, subscribers) = prepare(1, 2, 1, false, Tsc::process()).unwrap();
        send(&mut path, &flows_of(&subscribers, 0)).unwrap();
        send(&mut path, &flows_of(&subscribers, 0)).unwrap();
        let flows = path.datapath.counters().flows;
        assert_eq!((flows.learned, flows.served, flows.refused), (0, 0, 512));
    }
}
