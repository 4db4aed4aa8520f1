//! What `ctl qos` tells.

use serde::{Deserialize, Serialize};

/// Queues beside the ordinary ones: what waits to be sent, and what ports steer ahead of RSS. All workers together, since
/// the process started.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QosReport {
    /// By port, and by class in order of urgency.
    pub classes: Vec<ClassLine>,
    /// By port, in the order in which they are polled; empty: no port can steer.
    pub receive: Vec<ReceiveLine>,
}

/// A class of packets at a port that was busy. Packets that were sent at once are not in it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ReceiveLine {
    /// The port's name.
    pub port: String,
    /// `control`, or the group's name.
    pub queue: String,
    /// Packets received.
    pub packets: u64,
}
