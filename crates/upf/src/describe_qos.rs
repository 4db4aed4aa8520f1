//! Queues as the control socket tells of them.

use super::view::View;
use super::{Backend, sums};
use api::{Answers, ClassLine, CtlError, Qos, QosReport, ReceiveLine};
use engine::egress::Kind;
use io::steering::Duty;
use std::collections::BTreeMap;

impl Answers<Qos> for Backend {
    fn answer(&self, _: Qos) -> Result<QosReport, CtlError> {
        Ok(report(&self.view))
    }
}

fn report(view: &View) -> QosReport {
    let (reports, given) = (view.reports(), view.given());
    let (ports, qos) = (&given.config.ports, &given.config.qos);
    let mut classes = Vec::new();
    for (number, port) in ports.iter().enumerate() {
        for (at, class) in qos.egress.classes().iter().enumerate() {
            let sum = sums::class(&reports, number, at);
            classes.push(ClassLine {
                port: port.name.clone(),
                class: class.name.clone(),
                kind: kind(class.kind),
                queued_packets: sum.queued.packets,
                queued_bytes: sum.queued.bytes,
                sent_packets: sum.sent.packets,
                sent_bytes: sum.sent.bytes,
                dropped_green: sum.dropped.green.packets,
                dropped_yellow: sum.dropped.yellow.packets,
                dropped_red: sum.dropped.red.packets,
            });
        }
    }
    let mut received: BTreeMap<(u16, Duty), u64> = BTreeMap::new();
    for load in reports.iter().flat_map(|report| &report.steered) {
        *received.entry((load.port, load.duty)).or_default() += load.packets;
    }
    let line = |((port, duty), packets): ((u16, Duty), u64)| ReceiveLine {
        port: ports.get(usize::from(port)).map(|port| port.name.clone()).unwrap_or_default(),
        queue: match duty {
            Duty::Control => "control".into(),
            Duty::Group(group) => {
                let group = qos.steering.groups().get(usize::from(group));
                group.map(|group| group.name.clone()).unwrap_or_default()
            }
        },
        packets,
    };
    QosReport { classes, receive: received.into_iter().map(line).collect() }
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Strict { share: None } => "strict".into(),
        Kind::Strict { share: Some(share) } => format!("strict to {share} %"),
        Kind::Weighted { weight } => format!("weight {weight}"),
    }
}
