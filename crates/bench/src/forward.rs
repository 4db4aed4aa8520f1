//! `forward`: what the UPF's packet path costs on one core, by direction and number of sessions.
//!
//! Sessions have what an ordinary one has: a PDR, a FAR, a QER with a maximum bit rate and a URR with a volume threshold in each
//! direction. Packets carry 64 bytes of UDP payload and come from and go to many gNBs, routers and servers ([`Scene::MANY`]). Each run goes
//! on where the last one ended and visits every session at least once, in an order that is neither that in which they were established
//! nor that of their first packets, so that neighbours in a burst are not neighbours in memory. The port replays packets from memory on
//! the same core, and its own cost is measured in the same run by sending the packets back as they are.

use crate::path::{self, Costs, GNB, Mix, PAYLOAD, Path, PathError, Subscriber};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use crate::scene::Scene;
use io::replay::Stream;
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
    /// Where they are measured.
    pub scenes: Vec<Scene>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run; at least one of each session.
    pub packets: usize,
}

impl ForwardConfig {
    /// From one session to a million.
    pub fn full() -> Self {
        let sessions = vec![1, 1_000, 16_384, 65_536, 262_144, 1_000_000];
        Self { sessions, scenes: vec![Scene::MANY, Scene::MANY6], runs: 7, packets: 4_000_000 }
    }

    /// The three sizes that have a target, briefly.
    pub fn quick() -> Self {
        let sessions = vec![1_000, 65_536, 1_000_000];
        Self { sessions, scenes: vec![Scene::MANY, Scene::MANY6], runs: 3, packets: 1_000_000 }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &ForwardConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("forward", &clock);
    for &scene in &config.scenes {
        for &sessions in &config.sessions {
            measure(&mut report, config, scene, sessions, clock, progress)?;
        }
    }
    report.notes.push(
        "cycles are TSC ticks; cycles_per_packet (the median of slices of 256 packets; mean_cycles_per_packet counts everything, what the \
         machine did meanwhile too) includes the port's own cost, which port_cycles_per_packet states; scene many: 128 gNBs, 64 \
         routers, 65,536 servers behind 1,024 routes, UDP checksums, packets from a ring of 32,768 buffers; simple: one of each, hot \
         buffers, no UDP checksum, as figures were until 2026-11-22"
            .into(),
    );
    Ok(report)
}

/// Both directions with so many sessions.
fn measure(
    report: &mut Report,
    config: &ForwardConfig,
    scene: Scene,
    sessions: usize,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), PathError> {
    progress.tell(&format!("{sessions} sessions: establishing"));
    let (mut path, mut subscribers) = prepare(scene, sessions, clock, progress)?;
    let packets = config.packets.max(sessions);
    for uplink in [true, false] {
        let direction = if uplink { "uplink" } else { "downlink" };
        progress.tell(&format!("IPv{}, {sessions} sessions: {direction}", scene.ip()));
        let stream = |subscribers: &[Subscriber]| {
            scene.stream(uplink, subscribers.iter().map(|subscriber| (*subscriber, UE_PORT)))
        };
        let mix = |stream: &Stream| Mix::of(scene.receive(stream), u16::from(!uplink));
        // A session's first packet opens its books: what it takes for them lies in the order of the first packets.
        path.forward(&mut mix(&stream(&subscribers)?), packets)?;
        path::shuffle(&mut subscribers);
        let stream = stream(&subscribers)?;
        let (mut through, mut back) = (mix(&stream), mix(&stream));
        let (mut whole, mut port, mut rate) = (Costs::default(), Vec::new(), Vec::new());
        // One run to warm up; port and whole in turn, so that both meet the same neighbours on the machine.
        for run in 0..=config.runs {
            let cost = path.forward(&mut through, packets)?;
            let own = path.port_alone(&mut back, packets);
            if run > 0 {
                whole.push(cost);
                port.push(own);
                rate.push(clock.hz() as f64 / cost.mean);
            }
        }
        let params = [
            ("direction", direction.into()),
            ("ip", scene.ip().into()),
            ("payload", (PAYLOAD as u64).into()),
            ("scene", scene.name.into()),
            ("servers", scene.place().into()),
            ("sessions", (sessions as u64).into()),
        ];
        whole.report(report, &params);
        report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &port));
        report.results.push(Measured::of("packets_per_second", "1/s", &params, &rate));
        progress.keep(report);
    }
    Ok(())
}

/// Sessions, and their subscribers in the order in which first packets come.
fn prepare(
    scene: Scene,
    sessions: usize,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(Path, Vec<Subscriber>), PathError> {
    let mut path = Path::within(scene, clock, |_| ())?;
    let mut subscribers = path.add_sessions(sessions, rules, progress)?;
    path::shuffle(&mut subscribers);
    Ok((path, subscribers))
}

/// The rules of an ordinary session.
pub fn rules(place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    let pdr = |id, source, tunnel, index| Pdr {
        qers: [0].into(),
        urrs: [index].into(),
        ..Pdr::all(PdrId(id), source, tunnel, index)
    };
    let far = |id, destination, outer_header| Far {
        id: FarId(id),
        action: Action::Forward(Forward::to(destination, outer_header)),
    };
    let urr = |id| Urr {
        threshold: VolumeLimit { total: Some(100 << 20), ..VolumeLimit::default() },
        ..Urr::counting(UrrId(id))
    };
    let gnb = OuterHeader { teid: Teid(0x8000_0000 | u32::from(ue)), peer: IpAddr::V4(GNB) };
    let qer = Qer {
        // More than one core can send, so that every packet is metered and none is dropped.
        uplink_mbr: Some(100_000_000_000),
        downlink_mbr: Some(100_000_000_000),
        qfi: Some(Qfi::from_wire(9)),
        ..Qer::open(QerId(1))
    };
    Rules {
        qers: [qer].into(),
        urrs: [urr(1), urr(2)].into(),
        ..Rules::of(
            place,
            Some(ue),
            [pdr(1, Source::Access, Some(tunnel), 0), pdr(2, Source::Core, None, 1)],
            [far(1, Destination::Core, None), far(2, Destination::Access, Some(gnb))],
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn forwards_every_packet_of_every_session() {
        let scenes = [Scene::SIMPLE, Scene::MANY, Scene::MANY6];
        for scene in scenes.into_iter().chain(scenes.map(Scene::on_link)) {
            let (mut path, subscribers) = prepare(scene, 1_000, Tsc::process(), &mut Silent).unwrap();
            for uplink in [true, false] {
                let stream = scene.stream(uplink, subscribers.iter().map(|s| (*s, UE_PORT))).unwrap();
                let mut mix = Mix::of(scene.receive(&stream), u16::from(!uplink));
                path.forward(&mut mix, 2560).unwrap();
            }
            let counters = path.datapath.counters();
            assert_eq!(counters.sent, 5120);
            assert_eq!((counters.uplink.packets, counters.downlink.packets), (2560, 2560));
        }
    }

    #[test]
    fn packets_of_many_are_whole() {
        // A packet made of the template and its words is the packet that the builder makes.
        for (scene, uplink) in
            [(Scene::MANY, true), (Scene::MANY, false), (Scene::MANY6, true), (Scene::MANY6, false)]
        {
            let (_, subscribers) = prepare(scene, 300, Tsc::process(), &mut Silent).unwrap();
            let packets = || subscribers.iter().map(|s| (*s, s.ue.octets()[3].into()));
            let stream = scene.stream(uplink, packets()).unwrap();
            let mut frames = Vec::new();
            io::RxQueue::rx_burst(&mut io::replay::ReplayRx::new(stream), &mut frames, 300);
            for (frame, one) in frames.iter().zip(packets()) {
                let (template, _, _) = scene.patches(uplink, PAYLOAD, std::iter::once(one));
                assert_eq!(io::Frame::bytes(frame), template, "{scene:?} {uplink}");
            }
        }
    }
}
