//! What the control side tells a worker, and what a worker says back.

use crate::counters::Traffic;
use crate::inspect::{Finding, Inspected};
use crate::state::carried::ApplicationSum;
use packet::{MacAddr, Teid};
use pfcp::Seid;
use session::rules::Rules;
use session::usage::{Trigger, Usage};
use session::{SessionRef, ShardId, TeidRef};
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;
use tables::clock::Tsc;

/// Chosen by the control side, echoed in the answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(pub u64);

/// What to do with the packets of a session whose tunnel towards the radio changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transition {
    /// SNDEM: FARs that send an end marker into their old tunnel, if their outer header really changed (docs/interop.md).
    pub end_markers: Box<[pfcp::FarId]>,
    /// DROBU: discard buffered packets instead of sending them.
    pub drop_buffered: bool,
}

/// One order, applied by the owner of the shard between two bursts: whole, or not at all.
#[derive(Debug)]
pub enum Command {
    /// Make the session in `rules.place` be these rules, whether it existed or not. Answered by [`Event::Applied`], with
    /// the final usage (TERMR) of URRs that the new rules lack and the usage (IMMER) of those in `query`.
    Install {
        /// For the answer.
        token: Token,
        /// The whole session.
        rules: Arc<Rules>,
        /// What happens at the change.
        transition: Transition,
        /// URRs to report now.
        query: Box<[pfcp::UrrId]>,
    },
    /// Forget the session. Answered by [`Event::Applied`] with the final usage of all its URRs.
    Remove {
        /// For the answer.
        token: Token,
        /// Which.
        session: SessionRef,
    },
    /// Report these URRs now, for this reason. Answered by [`Event::Applied`].
    Query {
        /// For the answer.
        token: Token,
        /// Which.
        session: SessionRef,
        /// Empty: all.
        urrs: Box<[pfcp::UrrId]>,
        /// For the report.
        trigger: Trigger,
    },
    /// Tell all about a session (counters per PDR, drops by reason, buffered packets). Answered by [`Event::Snapshot`].
    Inspect {
        /// For the answer.
        token: Token,
        /// Which.
        session: SessionRef,
    },
    /// Write down what packets have counted of some sessions of a shard, for another process. Answered by [`Event::Exported`].
    Export {
        /// For the answer.
        token: Token,
        /// Which shard.
        shard: ShardId,
        /// Which of its sessions.
        slots: Box<[u32]>,
    },
    /// Make the session in `rules.place`, where there is none, be these rules, and go on with what another process's packets have counted.
    /// Answered by [`Event::Restored`] or [`Event::Refused`].
    Restore {
        /// For the answer.
        token: Token,
        /// The whole session.
        rules: Arc<Rules>,
        /// From [`Event::Exported`].
        counted: Box<[u8]>,
    },
    /// Sent to every worker: tell what is known of some neighbours. Answered by [`Event::Neighbours`].
    Neighbours {
        /// For the answer.
        token: Token,
        /// Where to begin: 0, or where the last answer says.
        from: u32,
    },
    /// Sent to every worker: a TEID that an SMF chose leads to this place (or, `None`, no longer).
    Directory {
        /// The TEID on the wire.
        teid: Teid,
        /// Where its record is.
        place: Option<TeidRef>,
    },
    /// Sent to every worker: an address or prefix that doesn't hash to its session's shard leads to this session.
    AddressDirectory {
        /// The prefix (a host prefix for an address).
        prefix: ipnet::IpNet,
        /// Its session; `None`: no longer.
        session: Option<SessionRef>,
    },
    /// Sent to every worker: the network around us changed.
    Fib(Arc<crate::network::fib::Fib>),
    /// Sent to every worker after one of them raised [`Event::Neighbour`].
    Neighbour {
        /// Index of the interface.
        interface: u16,
        /// The neighbour.
        address: IpAddr,
        /// Where it is.
        mac: MacAddr,
        /// It was asked.
        confirmed: bool,
    },
    /// Sent to every worker: limits and rates are others now, those of this configuration that can change while packets flow
    /// ([`crate::Config`] says which). What is beyond a lower limit goes as new things come.
    Limits(Arc<crate::Config>),
    /// Sent to every worker: a mirror begins or ends.
    Mirror(crate::mirror::Order),
    /// Sent to every worker: flows are told of when they have counted so much.
    FlowMarks(crate::state::export::Marks),
    /// Sent to every worker: what flows of applications have carried until now is to be counted. Told by [`Event::Carried`], of which the first that
    /// is later than this one is the answer.
    CountCarried,
    /// Sent to every worker: what each stage of a burst costs is counted until then ([`crate::StageCosts`]).
    CountStages {
        /// Counts the ticks.
        clock: Tsc,
        /// When it ends.
        until: Nanos,
    },
}

impl Command {
    /// The shard whose owner carries it out; `None`: every worker does.
    pub fn shard(&self) -> Option<ShardId> {
        match self {
            Self::Install { rules, .. } | Self::Restore { rules, .. } => Some(rules.place.shard),
            Self::Export { shard, .. } => Some(*shard),
            Self::Remove { session, .. } | Self::Query { session, .. } | Self::Inspect { session, .. } => {
                Some(session.shard)
            }
            Self::Directory { .. }
            | Self::AddressDirectory { .. }
            | Self::Fib(_)
            | Self::Neighbour { .. }
            | Self::Limits(_)
            | Self::Neighbours { .. }
            | Self::Mirror(_)
            | Self::FlowMarks(_)
            | Self::CountCarried
            | Self::CountStages { .. } => None,
        }
    }
}

/// Why a command was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The worker doesn't own the shard.
    NotOwned,
    /// The slot lies beyond the configured limit.
    SlotBeyondLimit,
    /// The table of GTP-U peers is full.
    TooManyPeers,
}

/// What a worker tells the control side.
#[derive(Debug)]
pub enum Event {
    /// A command took effect. A session that does not exist yields no usage and `found: false`.
    Applied {
        /// The command's.
        token: Token,
        /// Whether the session existed before.
        found: bool,
        /// Reports that the command asked for or caused.
        usage: Vec<Usage>,
    },
    /// A command was refused, and nothing was changed.
    Refused {
        /// The command's.
        token: Token,
        /// Why.
        refusal: Refusal,
    },
    /// A usage reporting rule was triggered by traffic.
    Usage {
        /// The session.
        seid: Seid,
        /// One report per rule.
        usage: Vec<Usage>,
    },
    /// The first packet arrived for a rule that buffers and notifies (DLDR).
    DownlinkData {
        /// The session.
        seid: Seid,
        /// The rule that matched.
        pdr: pfcp::PdrId,
        /// QFI of the packet, where it had one, and its DSCP (for paging policy).
        qfi: Option<packet::Qfi>,
        /// The packet's DSCP.
        dscp: packet::Dscp,
    },
    /// The far end of a tunnel says that it doesn't know it (GTP-U Error Indication): ERIR, if a session sends into it. Rate
    /// limited.
    ErrorIndication {
        /// The far end's TEID.
        teid: Teid,
        /// The far end's address.
        peer: IpAddr,
    },
    /// A neighbour that a worker (this one or another) asked for is here, or one moved: other workers should know
    /// ([`Command::Neighbour`]).
    Neighbour {
        /// Index of the interface in the current [`crate::network::fib::Fib`].
        interface: u16,
        /// The neighbour.
        address: IpAddr,
        /// Where it is.
        mac: MacAddr,
        /// It was asked.
        confirmed: bool,
    },
    /// A neighbour says that it is at another MAC address than before: it was replaced, or somebody pretends. Rate limited.
    NeighbourMoved {
        /// Index of the interface.
        interface: u16,
        /// The neighbour.
        address: IpAddr,
        /// Where it was.
        from: MacAddr,
        /// Where it says it is.
        to: MacAddr,
        /// False: what is configured, or was said just before, holds.
        believed: bool,
    },
    /// A packet waits for a neighbour whose MAC address is not known. The worker asks by itself; this is for reports.
    Unresolved {
        /// Index of the interface.
        interface: u16,
        /// The neighbour.
        address: IpAddr,
    },
    /// The session of these mirrors is gone, or never was: they have nothing to copy any more.
    MirrorsEnded {
        /// Their numbers.
        numbers: Vec<u16>,
    },
    /// A translation began or ended: for the log of bindings.
    Nat(crate::nat::Told),
    /// What there is to tell of single flows.
    Flows(Box<[crate::state::export::FlowRecord]>),
    /// Applications' traffic begins or ends, in the order in which it did in each session. Rate limited.
    Applications(Box<[crate::inspect::Detection]>),
    /// What applications' traffic came to at this worker since its start: of flows that live, what they had carried by then.
    Carried {
        /// Then.
        at: Nanos,
        /// Conversations, and what is asked, now.
        inspected: Inspected,
        /// All of them.
        sums: Box<[ApplicationSum]>,
    },
    /// A device that forwards flows by itself has failed: software forwards them again, and the device is tried again later.
    OffloadFailed {
        /// The port.
        port: u16,
        /// What it said.
        failure: String,
    },
    /// Answer to [`Command::Inspect`].
    Snapshot {
        /// The command's.
        token: Token,
        /// `None`: no such session.
        session: Option<Box<SessionSnapshot>>,
    },
    /// Answer to [`Command::Export`].
    Exported {
        /// The command's.
        token: Token,
        /// Of those that were asked for and that there are: whose, and what was counted. By the time that this is heard, the slot may
        /// be another session's.
        sessions: Vec<(Seid, Box<[u8]>)>,
    },
    /// Answer to [`Command::Restore`]: the session is there.
    Restored {
        /// The command's.
        token: Token,
        /// Whether what was counted could be read; else it counts from zero.
        whole: bool,
    },
    /// Answer to [`Command::Neighbours`].
    Neighbours {
        /// The command's.
        token: Token,
        /// Some of them.
        seen: Box<[crate::NeighbourSight]>,
        /// Where to go on; `None`: these were the last.
        next: Option<u32>,
    },
}

/// A session as its shard sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSnapshot {
    /// The UP SEID.
    pub seid: Seid,
    /// The shard that owns it.
    pub shard: ShardId,
    /// Packets and bytes forwarded per PDR, in the rules' order.
    pub pdrs: Vec<(pfcp::PdrId, u64, u64)>,
    /// What each URR measured since its last report, in the rules' order.
    pub urrs: Vec<(pfcp::UrrId, session::usage::Volume)>,
    /// What each URR measured since its quota was given, in the rules' order.
    pub consumed: Vec<(pfcp::UrrId, session::usage::Volume)>,
    /// Drops of this session's packets, reasons that occurred only.
    pub drops: Vec<(crate::Reason, u64)>,
    /// Packets waiting.
    pub buffered: u32,
    /// From where packets of its tunnels passed last, while sources are checked.
    pub heard: Vec<(packet::Teid, std::net::IpAddr)>,
    /// When its last packet was forwarded, or dropped by a gate, meter or quota; 0: none so far.
    pub last_packet: tables::Nanos,
    /// When each URR last measured a packet, in the rules' order; 0: none so far.
    pub last_measured: Vec<(pfcp::UrrId, tables::Nanos)>,
    /// Its flows that are looked into, by what is known of them.
    pub applications: Vec<ApplicationFlows>,
    /// These are all such flows; else its shard has too many to look at.
    pub all_applications: bool,
}

/// Flows that live of a session, of which the same is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationFlows {
    /// What is known.
    pub finding: Finding,
    /// How many there are. A flow has one direction.
    pub flows: u32,
    /// What they have carried from the UE.
    pub uplink: Traffic,
    /// And to it.
    pub downlink: Traffic,
}

impl ApplicationFlows {
    /// None yet.
    pub(crate) fn of(finding: Finding) -> Self {
        Self { finding, flows: 0, uplink: Traffic::default(), downlink: Traffic::default() }
    }
}
