//! What waits to be sent, and receive queues ahead of RSS.

use super::Question;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show what waits to be sent, sent and dropped by class at busy ports, and receive queues ahead of RSS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Qos {}

impl Question for Qos {
    const NAME: &'static str = "qos";
    const SEE: &'static str = "qos.md";
    type Answer = QosReport;

    fn show(&self, told: &QosReport) -> Page {
        let mut page = Page::table(&told.classes);
        if told.receive.is_empty() {
            page.say("\nNo port steers ahead of RSS.\n");
        } else {
            page.part(&told.receive);
        }
        page
    }
}

/// Queues beside the ordinary ones: what waits to be sent, and what ports steer ahead of RSS. All workers together, since
/// the process started.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct QosReport {
    /// By port, and by class in order of urgency.
    pub classes: Vec<ClassLine>,
    /// By port, in the order in which they are polled; empty: no port can steer.
    pub receive: Vec<ReceiveLine>,
}

/// A class of packets at a port that was busy. Packets that were sent at once are not in it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassLine {
    /// The port's name.
    pub port: String,
    /// The class's name.
    pub class: String,
    /// `strict`, `strict to 60 %`, `weight 8`.
    pub kind: String,
    /// Packets waiting now.
    pub queued_packets: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets sent after they waited.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_green: u64,
    /// Of medium drop precedence (AFx2), likewise.
    pub dropped_yellow: u64,
    /// Of high drop precedence (AFx3), likewise.
    pub dropped_red: u64,
}

/// A receive queue that a port steers to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveLine {
    /// The port's name.
    pub port: String,
    /// `control`, or the group's name.
    pub queue: String,
    /// Packets received.
    pub packets: u64,
}

columns!(ClassLine, |line| {
    "PORT" Left line.port,
    "CLASS" Left line.class,
    "KIND" Left line.kind,
    "WAITING" Right line.queued_packets,
    "BYTES WAITING" Right line.queued_bytes,
    "SENT AFTER WAITING" Right line.sent_packets,
    "BYTES SENT" Right line.sent_bytes,
    "DROPPED GREEN" Right line.dropped_green,
    "DROPPED YELLOW" Right line.dropped_yellow,
    "DROPPED RED" Right line.dropped_red,
});

columns!(ReceiveLine, |line| {
    "PORT" Left line.port,
    "RECEIVE QUEUE" Left line.queue,
    "PACKETS" Right line.packets,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues() {
        let class = ClassLine {
            port: "access".into(),
            class: "voice".into(),
            kind: "strict to 60 %".into(),
            queued_packets: 12,
            dropped_green: 3,
            ..ClassLine::default()
        };
        let receive = ReceiveLine { port: "access".into(), queue: "control".into(), packets: 77 };
        let mut report = QosReport { classes: vec![class], receive: Vec::new() };
        assert_eq!(
            Qos {}.show(&report).to_string(),
            "PORT    CLASS  KIND            WAITING  BYTES WAITING  SENT AFTER WAITING  BYTES SENT  DROPPED GREEN  \
             DROPPED YELLOW  DROPPED RED\n\
             access  voice  strict to 60 %       12              0                   0           0              3               0            0\n\n\
             No port steers ahead of RSS.\n"
        );
        report.receive.push(receive);
        assert!(Qos {}.show(&report).to_string().ends_with("access  control             77\n"));
    }
}
