//! What is told of single flows: that they ended, that they go on, that they carried much.
//!
//! **Problem.** A flow's counters are in its line of the shard's table, and the line is gone when the flow ends. Somebody wants to
//! know: who talked to whom, for how long, how much. At a hundred thousand ends a second that must not hold a worker up, and
//! at a flood's million it must cost records, not packets.
//!
//! **Model.** Where a flow leaves the table it is made a [`FlowRecord`] of: its packets' addresses and ports, session and rule,
//! what it counted, when it began and ended, what is known of its application, and the [`End`], as IPFIX names it. Records wait in a list of limited length for the next
//! tick, which sends them to control as a batch. What exceeds the list, the rate that was configured, or the room
//! in the ring to control is counted and forgotten.
//!
//! A flow's counts are of its whole life: a record of a flow that goes on ([`Told::Active`]) is an interim state, and the last one
//! says all. So the ended flows' records and the flows that live add up to the packets that flows served.
//!
//! **Whose flow was it?** A flow knows its rule by the number of the rule's record and by the version of its session's
//! classification. When the session is removed, or its filters change, the records go at once and the flows by and by. Until the
//! last one has ended, what is told of them is kept under the version (`Former`): at most one for each flow that lives, normally
//! none.
//!
//! **Watermarks** ([`Marks`]) ride on the compare that keeps a flow's counters from overflowing: the line that a packet counts in
//! says, too, what was told of it. One that is set while flows live is looked for in all of them, some thousand a tick, so that those
//! beyond it are told of at once.
//!
//! **Cost.** Per packet two compares within the flow's line. Per end a look at the flow's session, which the table's accounts need
//! anyhow, and 128 bytes copied. The walk for interim records reads each line once per active timeout.

use crate::counters::FlowCounters;
use crate::inspect::Finding;
use crate::state::flow::{Flow, Key};
use crate::state::room::Room;
use pfcp::{PdrId, Seid};
use tables::flow::FlowKey;
use tables::{Nanos, RateLimiter};

pub use crate::state::flow::{Marks, Tuple};

/// Records in one event, at most.
const BATCH: usize = 256;
/// Records that wait for a tick, at most.
pub(crate) const WAITING: usize = 4096;
/// The longest active timeout, 26 days: so that places are computed in 64 bits.
const LONGEST_ACTIVE: u64 = 1 << 51;
/// Apart from the flow table's seeds.
const SAMPLING: u64 = 0x7f4a_7c15_9e37_79b9;

/// Why a flow ended: flowEndReason (IPFIX information element 136, RFC 5102 §5.11.3). There is no "end of flow detected" (3), since a TCP
/// connection's end isn't looked for: such a flow becomes idle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum End {
    /// No packet came for as long as was configured.
    IdleTimeout = 1,
    /// Its session or its rule is gone, or the worker stopped.
    ForcedEnd = 4,
    /// It made room for another flow, or its counters were full.
    LackOfResources = 5,
}

impl End {
    /// The name in logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::IdleTimeout => "idle-timeout",
            Self::ForcedEnd => "forced-end",
            Self::LackOfResources => "lack-of-resources",
        }
    }
}

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Told {
    /// It ended.
    Ended(End),
    /// It goes on (active timeout, flowEndReason 2): what it counted until now.
    Active,
    /// It has reached the watermark of so many bytes.
    Bytes(u64),
    /// It has reached the watermark of so many packets.
    Packets(u32),
}

/// A flow, as it is told to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// What about it.
    pub told: Told,
    /// Its packets.
    pub tuple: Tuple,
    /// The session that forwarded them.
    pub seid: Seid,
    /// By this rule.
    pub pdr: PdrId,
    /// Whether the rule is about packets from the UE.
    pub uplink: bool,
    /// Packets forwarded.
    pub packets: u64,
    /// Their bytes, of the UE's own packets.
    pub bytes: u64,
    /// When the first packet passed, to 17 ms.
    pub first: Nanos,
    /// When the last one passed.
    pub last: Nanos,
    /// What is known of its conversation, if that is looked into.
    pub finding: Option<Finding>,
}

/// What is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Of one flow in so many, chosen by their addresses and ports: all that is told of a flow is told, or nothing. Watermarks
    /// are told of all. 0 is taken as 1.
    pub sample: u32,
    /// Records a second of this worker, at most; watermarks beside.
    pub per_second: u32,
    /// A flow that lives longer is told of each time that this has passed, in nanoseconds; 0: when it ends.
    pub active: u64,
    /// Watermarks at the start.
    pub marks: Marks,
}

impl Policy {
    /// Whether a flow is one of those that are told of.
    fn takes(&self, key: &Key) -> bool {
        self.sample <= 1 || ((key.hash(SAMPLING) >> 32) * u64::from(self.sample)) >> 32 == 0
    }
}

/// What waits to be told, and what is told at all.
#[derive(Debug)]
pub(crate) struct Export {
    pub policy: Option<Policy>,
    /// Watermarks in force.
    pub marks: Marks,
    pub limiter: RateLimiter,
    pub waiting: Vec<FlowRecord>,
    /// Shard, and the numbers below which its flows are still to be looked at for new watermarks.
    pub looking_back: Option<(usize, u32)>,
    /// The same for the end of all flows.
    pub closing: (usize, u32),
    /// Reused: flows that were visited.
    pub visited: Vec<(Key, Flow)>,
}

/// With what flows are accounted.
pub(crate) struct Ledger<'a> {
    pub now: Nanos,
    pub export: &'a mut Export,
    pub counters: &'a mut FlowCounters,
    pub room: &'a mut Room,
}

impl Export {
    pub fn new(policy: Option<Policy>) -> Self {
        let per_second = policy.map_or(0, |policy| policy.per_second);
        Self {
            policy: policy.map(|policy| Policy { active: policy.active.min(LONGEST_ACTIVE), ..policy }),
            marks: policy.map_or(Marks::NONE, |policy| policy.marks),
            limiter: RateLimiter::new(per_second, (per_second / 10).max(1)),
            waiting: Vec::new(),
            looking_back: None,
            closing: (0, u32::MAX),
            visited: Vec::new(),
        }
    }

    /// Gives what waits, in batches.
    pub fn flush(&mut self, mut tell: impl FnMut(Box<[FlowRecord]>)) {
        let mut waiting = self.waiting.drain(..);
        while waiting.len() > 0 {
            tell(waiting.by_ref().take(BATCH).collect());
        }
    }
}

impl Ledger<'_> {
    pub fn tell(
        &mut self,
        told: Told,
        key: &Key,
        flow: &Flow,
        (owner, finding): (Option<Owner>, Option<Finding>),
    ) {
        let Some(policy) = self.export.policy else { return };
        let is_mark = matches!(told, Told::Bytes(_) | Told::Packets(_));
        if !is_mark && !policy.takes(key) {
            self.counters.unsampled += 1;
            return;
        }
        let allowed = is_mark || self.export.limiter.allow(self.now);
        let Some(Owner { seid, pdr, uplink, prefix, .. }) =
            owner.filter(|_| allowed && self.export.waiting.len() < WAITING)
        else {
            self.counters.unexported += 1;
            return;
        };
        let ((first, last), packets) = (flow.times(), u64::from(flow.packets()));
        let tuple = key.tuple(prefix);
        let bytes = flow.bytes();
        let record = FlowRecord { told, tuple, seid, pdr, uplink, packets, bytes, first, last, finding };
        self.export.waiting.push(record);
        self.counters.exported += 1;
    }
}

/// Whose a flow is or was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    pub seid: Seid,
    pub pdr: PdrId,
    pub uplink: bool,
    pub prefix: u64,
    /// The rule is still there, and would still be found.
    pub in_force: bool,
}
