//! The packet table, and what a scheduler knows of a packet.
//!
//! The table says what packets of a kind ask for: whether they have to leave in the order in which they came, and how soon. Kinds are like QFIs: who sends
//! a packet says of which kind it is. The table that stands for itself is Table 4.1 of the thesis (LIU-IDA/LITH-EX-A--19/092--SE); what "latency sensitive" means in
//! milliseconds it doesn't say, see [`DEADLINE`].

use tables::Nanos;

/// What is taken for the thesis' latency requirement, in nanoseconds. It gives none. Its low test misses 21 % where packets wait 48 to 90 ms (one batch of 128 fills in 42 ms,
/// average 69 ms), and 56 % where the average is 17 ms more: both place the requirement between 81 and 84 ms.
pub const DEADLINE: u64 = 82_000_000;

/// A kind of packets: a row of a [`PacketTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub u8);

/// What packets of a kind ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketKind {
    /// The fewest octets.
    pub least: u32,
    /// The most octets.
    pub most: u32,
    /// Whether they leave in the order in which they came.
    pub ordered: bool,
    /// Nanoseconds from their arrival until they have to leave, if that matters.
    pub within: Option<u64>,
}

/// Which kinds there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketTable(Vec<PacketKind>);

/// Why that is no packet table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No kind, or too many.
    #[error("{0} kinds of packets: it must be 1 to {MOST_KINDS}")]
    Kinds(usize),
    /// A kind that no packet can be of.
    #[error("kind {kind}: no packet has {least} to {most} octets (at least 1, at most {MOST_OCTETS})")]
    Octets {
        /// Its number, from one.
        kind: usize,
        /// Fewest octets.
        least: u32,
        /// Most octets.
        most: u32,
    },
}

/// Kinds in a table.
pub const MOST_KINDS: usize = 16;

/// Octets of a packet.
pub const MOST_OCTETS: u32 = 9_000;

impl PacketTable {
    /// A table of these kinds, numbered in their order from zero.
    pub fn new(kinds: Vec<PacketKind>) -> Result<Self, TableError> {
        if kinds.is_empty() || kinds.len() > MOST_KINDS {
            return Err(TableError::Kinds(kinds.len()));
        }
        for (at, &PacketKind { least, most, .. }) in kinds.iter().enumerate() {
            if least > most || most == 0 || most > MOST_OCTETS {
                return Err(TableError::Octets { kind: at + 1, least, most });
            }
        }
        Ok(Self(kinds))
    }

    /// The thesis' Table 4.1, with such a deadline.
    pub fn thesis(within: u64) -> Self {
        let kind = |least, most, ordered, within| PacketKind { least, most, ordered, within };
        Self(vec![
            kind(0, 255, true, Some(within)),
            kind(0, 255, false, None),
            kind(256, 1024, false, None),
            kind(256, 1024, true, None),
            kind(1025, MOST_OCTETS, false, None),
        ])
    }

    /// All kinds.
    pub fn kinds(&self) -> &[PacketKind] {
        &self.0
    }

    /// What packets of that kind ask for.
    pub fn kind(&self, id: KindId) -> Option<&PacketKind> {
        self.0.get(usize::from(id.0))
    }
}

impl Default for PacketTable {
    fn default() -> Self {
        Self::thesis(DEADLINE)
    }
}

/// What is done to a packet. All need both, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// LDPC decoding.
    Decode = 0,
    /// NEA2.
    Cipher = 1,
}

impl Step {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Decode, Self::Cipher];
}

/// Who decides how often where a packet's steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chain {
    /// Configuration C1: one decision, and the worker does both steps.
    Once,
    /// Configuration C2: one decision for each step.
    EachStep,
}

impl Chain {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Once, Self::EachStep];

    /// The thesis' name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "C1",
            Self::EachStep => "C2",
        }
    }
}

/// A flow whose packets keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// A packet, without its octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// A number that its sender knows it by; the scheduler makes nothing of it.
    pub tag: u64,
    /// What it asks for.
    pub kind: KindId,
    /// Its flow.
    pub flow: FlowId,
    /// Its octets.
    pub octets: u32,
    /// When it came.
    pub arrived: Nanos,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn table_4_1() {
        let table = PacketTable::default();
        let rows: Vec<_> = table.kinds().iter().map(|kind| (kind.ordered, kind.within.is_some())).collect();
        assert_eq!(
            rows,
            [(true, true), (false, false), (false, false), (true, false), (false, false)],
            "reorder, latency sensitive"
        );
        assert_eq!(PacketTable::new(table.kinds().to_vec()), Ok(table));
    }

    #[test]
    fn tables_that_are_none() {
        assert_eq!(PacketTable::new(vec![]), Err(TableError::Kinds(0)));
        let kind = PacketKind { least: 9, most: 8, ordered: false, within: None };
        let error = PacketTable::new(vec![PacketKind { most: 10, ..kind }, kind]).unwrap_err();
        assert_eq!(error.to_string(), "kind 2: no packet has 9 to 8 octets (at least 1, at most 9000)");
        let huge = PacketKind { most: MOST_OCTETS + 1, ..kind };
        assert!(matches!(PacketTable::new(vec![huge]), Err(TableError::Octets { kind: 1, .. })));
        let many = PacketKind { most: 10, ..kind };
        assert_eq!(PacketTable::new(vec![many; 17]), Err(TableError::Kinds(17)));
    }
}
