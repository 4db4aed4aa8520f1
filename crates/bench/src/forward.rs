//! `forward`: what the UPF's packet path costs on one core, by direction and number of sessions.
//!
//! Sessions have what an ordinary one has: a PDR, a FAR, a QER with a maximum bit rate and a URR with a volume threshold in each
//! direction. Packets carry 64 bytes of UDP payload; sessions come in shuffled order, so that neighbours in a burst are not
//! neighbours in memory. The port replays packets from memory on the same core, and its own cost is measured in the same run
//! by sending the packets back as they are.

use crate::path::{self, GNB, PAYLOAD, Path, PathError, Subscriber};
use crate::report::{Measured, Report};
use io::replay::ReplayRx;
use packet::{Qfi, Teid};
use pfcp::{FarId, PdrId, QerId, UrrId};
use session::SessionRef;
use session::rules::{
    Action, Destination, Far, Forward, OuterHeader, Pdr, Qer, Rules, Source, Tunnel, Urr, VolumeLimit,
};
use std::net::{IpAddr, Ipv4Addr};
use tables::clock::Tsc;

/// The UEs' port.
const UE_PORT: u16 = 40_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ForwardConfig {
    /// Numbers of sessions.
    pub sessions: Vec<usize>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run.
    pub packets: usize,
}

impl ForwardConfig {
    /// From one session to a million.
    pub fn full() -> Self {
        Self { sessions: vec![1, 1_000, 16_384, 65_536, 262_144, 1_000_000], runs: 7, packets: 4_000_000 }
    }

    /// The three sizes that have a target, briefly.
    pub fn quick() -> Self {
        Self { sessions: vec![1_000, 65_536, 1_000_000], runs: 3, packets: 1_000_000 }
    }
}

/// Measures all; `tell` is told what is being measured.
pub fn run(config: &ForwardConfig, clock: Tsc, mut tell: impl FnMut(&str)) -> Result<Report, PathError> {
    let mut report = Report::new("forward", &clock);
    for &sessions in &config.sessions {
        tell(&format!("{sessions} sessions: establishing"));
        let (mut path, subscribers) = prepare(sessions, clock)?;
        for uplink in [true, false] {
            let direction = if uplink { "uplink" } else { "downlink" };
            tell(&format!("{sessions} sessions: {direction}"));
            let source = path::stream(uplink, subscribers.iter().map(|subscriber| (*subscriber, UE_PORT)))?;
            let (mut whole, mut port, mut rate) = (Vec::new(), Vec::new(), Vec::new());
            // One run to warm up; port and whole in turn, so that both meet the same neighbours on the machine.
            for run in 0..=config.runs {
                let cycles =
                    path.forward(ReplayRx::new(source.clone()), u16::from(!uplink), config.packets)?;
                let own = path.port_alone(ReplayRx::new(source.clone()), config.packets);
                if run > 0 {
                    whole.push(cycles);
                    port.push(own);
                    rate.push(clock.hz() as f64 / cycles);
                }
            }
            let params = [
                ("direction", direction.into()),
                ("payload", (PAYLOAD as u64).into()),
                ("sessions", (sessions as u64).into()),
            ];
            report.results.push(Measured::of("cycles_per_packet", "cycles", &params, &whole));
            report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &port));
            report.results.push(Measured::of("packets_per_second", "1/s", &params, &rate));
        }
    }
    report.notes.push(
        "cycles are TSC ticks; cycles_per_packet includes the port's own cost, which port_cycles_per_packet states".into(),
    );
    Ok(report)
}

/// Sessions, and their subscribers in the order in which packets come.
fn prepare(sessions: usize, clock: Tsc) -> Result<(Path, Vec<Subscriber>), PathError> {
    let mut path = Path::new(clock, |_| ())?;
    let mut subscribers = Vec::with_capacity(sessions);
    for _ in 0..sessions {
        subscribers.push(path.add_session(rules)?);
    }
    path::shuffle(&mut subscribers);
    Ok((path, subscribers))
}

/// The rules of an ordinary session.
pub fn rules(place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    let pdr = |id, source, tunnel: Option<Tunnel>, index: u16| Pdr {
        id: PdrId(id),
        precedence: 255,
        source,
        tunnel,
        qfis: Box::default(),
        filters: Box::default(),
        outer_header_removal: tunnel.is_some(),
        far: index,
        qers: [0].into(),
        urrs: [index].into(),
    };
    let far = |id, destination, outer_header| Far {
        id: FarId(id),
        action: Action::Forward(Forward { destination, outer_header, transport_marking: None, instance: 0 }),
    };
    let urr = |id| Urr {
        id: UrrId(id),
        before_enforcement: false,
        threshold: VolumeLimit { total: Some(100 << 20), ..VolumeLimit::default() },
        quota: VolumeLimit::default(),
        quota_generation: 0,
        blocked: false,
        start_of_traffic: false,
        inactive: false,
    };
    let gnb = OuterHeader { teid: Teid(0x8000_0000 | u32::from(ue)), peer: IpAddr::V4(GNB) };
    Rules {
        place,
        seid: place.seid(1),
        ue_ipv4: Some(ue),
        ue_ipv6: None,
        framed_ipv4: Box::default(),
        framed_ipv6: Box::default(),
        slice: None,
        classifier: None,
        pdrs: [pdr(1, Source::Access, Some(tunnel), 0), pdr(2, Source::Core, None, 1)].into(),
        fars: [far(1, Destination::Core, None), far(2, Destination::Access, Some(gnb))].into(),
        qers: [Qer {
            id: QerId(1),
            uplink_open: true,
            downlink_open: true,
            // More than one core can send, so that every packet is metered and none is dropped.
            uplink_mbr: Some(100_000_000_000),
            downlink_mbr: Some(100_000_000_000),
            uplink_gbr: None,
            downlink_gbr: None,
            qfi: Some(Qfi::from_wire(9)),
            reflective: false,
            paging_policy: None,
        }]
        .into(),
        urrs: [urr(1), urr(2)].into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn forwards_every_packet_of_every_session() {
        let (mut path, subscribers) = prepare(100, Tsc::process()).unwrap();
        for uplink in [true, false] {
            let source = path::stream(uplink, subscribers.iter().map(|s| (*s, UE_PORT))).unwrap();
            path.forward(ReplayRx::new(source), u16::from(!uplink), 2560).unwrap();
        }
        let counters = path.datapath.counters();
        assert_eq!(counters.sent, 5120);
        assert_eq!((counters.uplink.packets, counters.downlink.packets), (2560, 2560));
    }
}
