//! What became of rules, for whoever looks.

use super::plan::Ineligible;
use counters::By;
use io::offload::{Capabilities, Counts, Pattern, WhyRefused};

counters::labels! {
    /// Why a rule was taken back.
    pub enum TakenBack: "reason" {
        Session = "session", "Taken back because their session changed or ended.";
        Network = "network", "Taken back because a neighbour, a route or an interface changed.";
        Flow = "flow", "Taken back because their flow ended, or would be handled otherwise.";
        Credit = "credit", "Taken back because a volume threshold or quota came near.";
        Idle = "idle", "Taken back after a silence.";
        Lighter = "lighter", "Taken back because a heavier flow needed the place.";
        Failure = "failure", "Taken back because the NIC failed.";
        Asked = "asked", "Taken back because their worker ended, or gave the shard away.";
    }
}

counters::counters! {
    /// What became of rules.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct OffloadCounters {
        /// Flows that a NIC took.
        pub inserted: u64 = "inserted", Counter;
        /// Packets that NICs have handled, as far as their counters were read.
        pub packets: u64 = "packets", Counter of Packets;
        /// Bytes of the users' packets among them.
        pub bytes: u64 = "bytes", Counter of Bytes;
        /// Packets that NICs dropped, beyond what a rate left to them.
        pub dropped: u64 = "dropped", Counter of Packets;
        /// Times that a NIC failed and lost all its flows.
        pub failures: u64 = "failures", Counter;
        /// Flows whose last counters were lost by that.
        pub lost: u64 = "lost", Counter;
        /// Flows that NICs refused.
        pub refused: By<WhyRefused, { WhyRefused::COUNT }> = "refused", Counter;
        /// Heavy flows that stayed with software.
        pub ineligible: By<Ineligible, { Ineligible::COUNT }> = "stayed", Counter;
        /// Flows taken back from NICs.
        pub taken_back: By<TakenBack, { TakenBack::COUNT }> = "taken-back", Counter;
    }
}

/// A rule in force, for whoever looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryReport {
    /// The port that it is for.
    pub port: u16,
    /// Its packets.
    pub pattern: Pattern,
    /// Whether they come from the UE.
    pub uplink: bool,
    /// How many it has handled.
    pub counts: Counts,
    /// Packets a second, at the last reading.
    pub rate: u64,
}

/// One worker's rules at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffloadReport {
    /// What became of rules.
    pub counters: OffloadCounters,
    /// Rules in force.
    pub entries: usize,
    /// Some of them.
    pub some: Vec<EntryReport>,
    /// What the devices can, by port.
    pub devices: Vec<Capabilities>,
    /// Devices that have failed and weren't tried again yet.
    pub down: usize,
}
