//! Flows in NICs, as `millrace ctl offload` shows them.

use serde::{Deserialize, Serialize};

/// What NICs do by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct OffloadStatus {
    /// Flows in NICs now.
    pub flows: u64,
    /// Some of them: a few of each worker's.
    pub some: Vec<OffloadFlowLine>,
    /// In the order of the configuration; empty if nothing is to be offloaded.
    pub ports: Vec<OffloadPortLine>,
    /// All workers together, in the order of the documentation.
    pub counters: Vec<OffloadCounterLine>,
}

/// A flow in a NIC.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OffloadFlowLine {
    /// The worker that it belongs to.
    pub worker: u16,
    /// The port that it arrives at.
    pub port: String,
    /// Whether it comes from the UE.
    pub uplink: bool,
    /// Its packets.
    pub flow: String,
    /// How many the NIC has handled.
    pub packets: u64,
    /// How many a second, lately.
    pub packets_per_second: u64,
}

/// What a port's NIC can.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OffloadPortLine {
    /// The port.
    pub port: String,
    /// Flows that fit, if the NIC says so.
    pub entries: Option<u32>,
    /// What its rules may contain; empty: it takes none.
    pub features: Vec<String>,
}

/// A counter of flows in NICs, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OffloadCounterLine {
    /// Its label.
    pub counter: String,
    /// What it means.
    pub meaning: String,
    /// Since the process started.
    pub value: u64,
}
