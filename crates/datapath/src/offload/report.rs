//! What became of rules, for whoever looks.

use super::plan::Ineligible;
use io::offload::{Capabilities, Counts, Pattern, Refused};

/// Why a rule was taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum TakenBack {
    /// Its session changed or ended.
    Session,
    /// A neighbour, a route or an interface changed.
    Network,
    /// Its flow ended, or would be handled otherwise now.
    Flow,
    /// A volume threshold or quota came near.
    Credit,
    /// No packets came.
    Idle,
    /// A heavier flow took its place.
    Lighter,
    /// The device failed.
    Failure,
    /// The worker ends, or gives the shard away.
    Asked,
}

impl TakenBack {
    /// All reasons, in order.
    pub const ALL: [Self; 8] = [
        Self::Session,
        Self::Network,
        Self::Flow,
        Self::Credit,
        Self::Idle,
        Self::Lighter,
        Self::Failure,
        Self::Asked,
    ];

    /// What it means.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Session => "Taken back because their session changed or ended.",
            Self::Network => "Taken back because a neighbour, a route or an interface changed.",
            Self::Flow => "Taken back because their flow ended, or would be handled otherwise.",
            Self::Credit => "Taken back because a volume threshold or quota came near.",
            Self::Idle => "Taken back after a silence.",
            Self::Lighter => "Taken back because a heavier flow needed the place.",
            Self::Failure => "Taken back because the NIC failed.",
            Self::Asked => "Taken back because their worker ended.",
        }
    }

    /// Its name, for counters.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Network => "network",
            Self::Flow => "flow",
            Self::Credit => "credit",
            Self::Idle => "idle",
            Self::Lighter => "lighter",
            Self::Failure => "failure",
            Self::Asked => "asked",
        }
    }
}

/// What became of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadCounters {
    /// Rules that devices took.
    pub inserted: u64,
    /// Rules that they refused, by [`Refused::index`].
    pub refused: [u64; Refused::LABELS.len()],
    /// Candidates that no rule was made for, by [`Ineligible`].
    pub ineligible: [u64; Ineligible::ALL.len()],
    /// Rules taken back, by [`TakenBack`].
    pub taken_back: [u64; TakenBack::ALL.len()],
    /// Packets that rules have handled, as far as counters were read.
    pub packets: u64,
    /// Bytes of the users' packets among them.
    pub bytes: u64,
    /// Packets that meters of devices have dropped.
    pub dropped: u64,
    /// Rules whose last counters were lost with a device's failure.
    pub lost: u64,
    /// Times that a device failed.
    pub failures: u64,
}

/// What refusals mean, by [`Refused::index`].
const REFUSALS: [&str; Refused::LABELS.len()] = [
    "Refused because the NIC can't do that.",
    "Refused because the NIC's flow table was full.",
    "Refused because the NIC took no more flows for the moment.",
    "Refused because the NIC had a rule for these packets.",
    "Refused for another reason.",
];

impl OffloadCounters {
    /// Label, meaning and value of each, for whoever shows them.
    pub fn each(&self) -> Vec<(String, &'static str, u64)> {
        let one = |label: &str, meaning, value| (label.to_owned(), meaning, value);
        let mut each = vec![
            one("inserted", "Flows that a NIC took.", self.inserted),
            one(
                "packets",
                "Packets that NICs have handled, as far as their counters were read.",
                self.packets,
            ),
            one("bytes", "Bytes of the users' packets among them.", self.bytes),
            one("dropped", "Packets that NICs dropped, beyond what a rate left to them.", self.dropped),
            one("failures", "Times that a NIC failed and lost all its flows.", self.failures),
            one("lost", "Flows whose last counters were lost by that.", self.lost),
        ];
        let refused = Refused::LABELS.iter().zip(REFUSALS).zip(self.refused);
        each.extend(refused.map(|((label, meaning), n)| (format!("refused-{label}"), meaning, n)));
        let stayed = Ineligible::ALL.iter().zip(self.ineligible);
        each.extend(stayed.map(|(reason, n)| (format!("stayed-{}", reason.label()), reason.meaning(), n)));
        let back = TakenBack::ALL.iter().zip(self.taken_back);
        each.extend(back.map(|(reason, n)| (format!("taken-back-{}", reason.label()), reason.meaning(), n)));
        each
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        let add = |mine: &mut [u64], theirs: &[u64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        };
        add(&mut self.refused, &other.refused);
        add(&mut self.ineligible, &other.ineligible);
        add(&mut self.taken_back, &other.taken_back);
        self.inserted += other.inserted;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.failures += other.failures;
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
