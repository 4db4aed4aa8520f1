//! Known flows: what is left of their throughput.

use super::plane::{Divided, Looks, Plane};
use super::{InspectionConfig, InspectionError};
use crate::flows::each_flow;
use crate::path::{Cost, Costs, Mix, Subscriber, shuffle};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::scene::Scene;
use io::BURST;
use io::replay::{ReplayRx, Stream};
use loadgen::applications::{Application, opening};
use tables::clock::Tsc;

/// Conversations of each session.
pub const CONVERSATIONS: usize = 16;
/// Whom flows are opened to in turn: an application that rules ask for, and nobody that is known.
const NAMES: [&str; 2] = ["www.youtube.com", "w1.example.net"];
/// Packets after which an inspector has to know, or give up.
const PATIENCE: usize = 40;

/// A conversation: a session, and the port of its UE.
pub type Conversation = (Subscriber, u16);

/// Measures known flows of sessions with these rules.
pub fn known(
    report: &mut Report,
    config: &InspectionConfig,
    scene: Scene,
    rules: Divided,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), InspectionError> {
    let what = format!("IPv{}, {} rules", scene.ip(), rules.name());
    let mut lanes = Vec::new();
    for looks in Looks::ALL {
        progress.tell(&format!("{what}: learning {} flows, inspection {}", config.flows, looks.name()));
        let mut plane = Plane::new(scene, looks, rules, (config.flows, None), clock)?;
        let mut conversations = conversations(&mut plane, config.flows, progress)?;
        shuffle(&mut conversations);
        lanes.push((mix(scene, &conversations)?, plane));
    }
    let each = config.packets.max(2 * config.flows);
    let mut costs = [const { (Vec::new(), Vec::new()) }; Looks::ALL.len()];
    let mut port = Vec::new();
    for pass in 0..=config.passes {
        progress.tell(&format!("{what}: known flows"));
        progress.part(pass as u64, config.passes as u64);
        for turn in 0..lanes.len() {
            // Nobody always comes behind the same one.
            let at = (turn + pass) % lanes.len();
            let (Some((mix, plane)), Some((all, _))) = (lanes.get_mut(at), costs.get_mut(at)) else {
                continue;
            };
            let before = plane.path.datapath.counters().inspection.shown;
            let cost = plane.path.forward(mix, each)?;
            if plane.path.datapath.counters().inspection.shown > before {
                plane.none_is_open()?;
            }
            if pass > 0 {
                all.push(cost);
            }
        }
        if let Some((mix, plane)) = lanes.first_mut() {
            port.push(plane.path.port_alone(mix, each / 4));
        }
    }
    let off: Vec<Cost> =
        costs.first().map(|(all, _): &(Vec<Cost>, Vec<f64>)| all.clone()).unwrap_or_default();
    for (looks, (all, _)) in Looks::ALL.into_iter().zip(&costs) {
        let params: [(&'static str, Param); 5] = [
            ("inspection", looks.name().into()),
            ("flows", (config.flows as u64).into()),
            ("ip", scene.ip().into()),
            ("rules", rules.name().into()),
            ("traffic", "known".into()),
        ];
        let mut whole = Costs::default();
        all.iter().for_each(|cost| whole.push(*cost));
        whole.report(report, &params);
        let ratios: Vec<f64> = off.iter().zip(all).map(|(off, own)| off.mean / own.mean).collect();
        report.results.push(Measured::of("throughput_to_off", "x", &params, &ratios));
    }
    let params = [("ip", scene.ip().into()), ("rules", rules.name().into())];
    report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &port));
    progress.keep(report);
    Ok(())
}

/// Sessions with so many flows, which have their verdict: conversations in the order in which they began.
pub fn conversations(
    plane: &mut Plane,
    flows: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<Conversation>, InspectionError> {
    let mut subscribers = plane.establish(flows.div_ceil(2 * CONVERSATIONS), progress)?;
    shuffle(&mut subscribers);
    let mut all = each_flow(&subscribers, CONVERSATIONS);
    // One for each name at least.
    all.truncate(flows.div_ceil(2).max(NAMES.len()));
    shuffle(&mut all);
    let scene = plane.path.scene();
    for (nth, name) in NAMES.iter().enumerate() {
        let own: Vec<_> = all.iter().copied().skip(nth).step_by(NAMES.len()).collect();
        for (from_client, said) in opening(Application::Quic, name, nth as u64) {
            let (template, offsets, patches) = scene.patches_with(from_client, &said, own.iter().copied());
            let stream = Stream::new(&template, offsets, patches).map_err(crate::path::PathError::from)?;
            once(plane, from_client, stream, own.len())?;
        }
    }
    // Both directions of what has said little.
    for _ in 0..PATIENCE {
        for uplink in [true, false] {
            let stream = scene.stream(uplink, all.iter().copied()).map_err(crate::path::PathError::from)?;
            once(plane, uplink, stream, all.len())?;
        }
        if plane.none_is_open().is_ok() {
            break;
        }
    }
    plane.none_is_open()?;
    let known = plane.path.datapath.counters().flows.live();
    let (expected, are_flows) = (2 * all.len() as u64, known > 0);
    if are_flows && known != expected {
        return Err(crate::path::PathError::FlowsLost { expected, found: known }.into());
    }
    Ok(all)
}

/// Each packet of a stream once, whole.
fn once(plane: &mut Plane, uplink: bool, stream: Stream, packets: usize) -> Result<(), InspectionError> {
    let rx = ReplayRx::new(stream).limited(packets as u64);
    plane.path.forward(&mut Mix::of(rx, u16::from(!uplink)), packets.next_multiple_of(4 * BURST))?;
    Ok(())
}

/// Their packets, both directions in turn.
fn mix(scene: Scene, conversations: &[Conversation]) -> Result<Mix, InspectionError> {
    let side =
        |uplink| scene.stream(uplink, conversations.iter().copied()).map(|stream| scene.receive(&stream));
    let sides =
        side(true).and_then(|uplink| Ok((uplink, side(false)?))).map_err(crate::path::PathError::from)?;
    Ok(Mix::both(sides.0, sides.1, 2))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn flows_that_are_asked_for_have_their_verdict_and_no_others_are_shown() {
        for scene in [Scene::MANY, Scene::MANY6] {
            for rules in Divided::ALL {
                for looks in Looks::ALL {
                    let mut plane = Plane::new(scene, looks, rules, (4_000, None), Tsc::process()).unwrap();
                    let all = conversations(&mut plane, 640, &mut Silent).unwrap();
                    let before = plane.path.datapath.counters().clone();
                    plane.path.forward(&mut mix(scene, &all).unwrap(), 2_560).unwrap();
                    let counters = plane.path.datapath.counters();
                    let has_flows = looks.looks() || rules == Divided::Classified;
                    let (live, served) = if has_flows { (640, 2_560) } else { (0, 0) };
                    assert_eq!(counters.flows.live(), live, "{looks:?} {rules:?}");
                    assert_eq!(counters.flows.served - before.flows.served, served, "{looks:?} {rules:?}");
                    let inspection = counters.inspection;
                    let expected = if looks.looks() { (160, 160) } else { (0, 0) };
                    assert_eq!(
                        (inspection.recognised, inspection.unknown + inspection.exhausted),
                        expected,
                        "{looks:?}"
                    );
                    assert_eq!(inspection.shown, before.inspection.shown, "{looks:?}");
                }
            }
        }
    }
}
