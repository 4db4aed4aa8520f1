//! What an SMF model tells: errors, refusals, batches, counters, usage.

use crate::answers::{Answer, Usage};
use crate::latency::{Latencies, LatencySummary};
use pfcp::ie::UpFunctionFeatures;
use pfcp::{Cause, ie_type as ie};
use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

/// Refusals that a report keeps; the rest is counted.
const KEPT_REFUSALS: usize = 16;

/// The SMF can't go on.
#[derive(Debug, thiserror::Error)]
pub enum SmfError {
    /// The socket failed.
    #[error("N4 socket: {0}")]
    Io(#[from] std::io::Error),
    /// A node request was not answered.
    #[error("the UPF at {upf} did not answer {what} ({tries} tries)")]
    NoAnswer {
        /// Whom.
        upf: SocketAddr,
        /// What was asked.
        what: &'static str,
        /// How often.
        tries: u8,
    },
    /// A node request was refused.
    #[error("the UPF refused {what}: {reason}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Cause and IE.
        reason: Reason,
    },
    /// No UE address is left.
    #[error("the UE address pools have no address for session {0}")]
    PoolExhausted(u32),
    /// No gNB or no QFI is configured.
    #[error("an SMF needs at least one gNB, one QFI and a window of at least one request")]
    NothingToServe,
}

/// Why something was refused, as the UPF put it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reason {
    /// Cause (§8.2.1); `None`: the answer had none.
    pub cause: Option<Cause>,
    /// Offending IE (§8.2.22).
    pub offending_ie: Option<u16>,
    /// Failed Rule ID (§8.2.80): type and ID.
    pub failed_rule: Option<(u8, u32)>,
}

impl Reason {
    pub(super) fn of(answer: &Answer) -> Self {
        Self { cause: answer.cause, offending_ie: answer.offending_ie, failed_rule: answer.failed_rule }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Some(cause) => write!(f, "{cause} ({})", cause.0)?,
            None => f.write_str("no cause")?,
        }
        if let Some(kind) = self.offending_ie {
            write!(f, ", IE {kind} ({})", ie::name(kind).unwrap_or("unknown"))?;
        }
        if let Some((kind, id)) = self.failed_rule {
            let kind = ["PDR", "FAR", "QER", "URR", "BAR"].get(usize::from(kind)).unwrap_or(&"rule");
            write!(f, ", {kind} {id}")?;
        }
        Ok(())
    }
}

/// What the UPF said of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Association {
    /// UP Function Features.
    pub features: UpFunctionFeatures,
    /// Recovery Time Stamp, NTP seconds.
    pub recovery: Option<u32>,
}

/// A step in a session's life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Session Establishment.
    Establish,
    /// The gNB is known: forward.
    Activate,
    /// No gNB for now: buffer and notify.
    Idle,
    /// Another gNB and tunnel, with an end marker to the old one.
    Handover,
    /// Ask for usage.
    Query,
    /// Session Deletion.
    Delete,
}

/// A batch of requests and how it went.
#[derive(Clone, Debug, serde::Serialize)]
pub struct BatchReport {
    /// What was asked.
    pub operation: Operation,
    /// Requests sent, repetitions not counted.
    pub requests: u64,
    /// Answered with success.
    pub accepted: u64,
    /// Answered otherwise.
    pub refused: u64,
    /// Never answered.
    pub unanswered: u64,
    /// Sent again.
    pub repeated: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Requests answered per second.
    pub requests_per_second: f64,
    /// From request to answer.
    pub latency: LatencySummary,
    /// The first refusals: session index and reason.
    pub refusals: Vec<(u32, String)>,
}

impl BatchReport {
    /// Whether every request was accepted.
    pub const fn is_clean(&self) -> bool {
        self.accepted == self.requests
    }
}

/// What [`crate::smf::Smf::measure`] found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct N4Figures {
    /// Sessions that stood all the time.
    pub kept: u32,
    /// The establishment of those that were missing at the beginning.
    pub fill: BatchReport,
    /// Establishments on top.
    pub establish: BatchReport,
    /// Handovers of those.
    pub modify: BatchReport,
    /// Deletions of those.
    pub delete: BatchReport,
}

/// What else happened on N4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct SmfCounters {
    /// Heartbeat requests of the UPF, all answered.
    pub heartbeats: u64,
    /// Restarts of the UPF, by its Recovery Time Stamp; its sessions were gone.
    pub restarts: u64,
    /// Session report requests, all answered.
    pub reports: u64,
    /// Usage reports, in reports and in answers.
    pub usage_reports: u64,
    /// Downlink data reports.
    pub downlink_data: u64,
    /// Error indication reports.
    pub error_indications: u64,
    /// Reports for sessions that don't exist here (answered with cause 65).
    pub unknown_sessions: u64,
    /// Answers whose header names another session than the request's.
    pub wrong_seid: u64,
    /// Establishment responses without Node ID, which strict SMFs don't take.
    pub missing_node_id: u64,
    /// Answers that nobody waits for (late ones, after a repetition).
    pub stray_answers: u64,
    /// Requests of the UPF that came again.
    pub duplicates: u64,
    /// Datagrams that can't be read.
    pub malformed: u64,
    /// Other requests of the UPF; node requests among them are accepted.
    pub others: u64,
}

/// What was reported for a URR so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct UsageTotals {
    /// Usage reports.
    pub reports: u64,
    /// Bytes, both directions.
    pub total_bytes: u64,
    /// Bytes from the UE.
    pub uplink_bytes: u64,
    /// Bytes to the UE.
    pub downlink_bytes: u64,
    /// Packets, where the UPF counts them.
    pub packets: u64,
}

impl UsageTotals {
    pub(super) const fn add(&mut self, usage: &Usage) {
        self.reports += 1;
        self.total_bytes += usage.total;
        self.uplink_bytes += usage.uplink;
        self.downlink_bytes += usage.downlink;
        self.packets += usage.packets;
    }
}

/// A batch in progress.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) operation: Operation,
    pub(super) requests: u64,
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) unanswered: u64,
    pub(super) repeated: u64,
    pub(super) start: Option<Instant>,
    pub(super) end: Option<Instant>,
    pub(super) next_look: Option<Instant>,
    pub(super) latencies: Latencies,
    pub(super) refusals: Vec<(u32, String)>,
}

impl Batch {
    pub(super) fn new(operation: Operation) -> Self {
        Self {
            operation,
            requests: 0,
            accepted: 0,
            refused: 0,
            unanswered: 0,
            repeated: 0,
            start: None,
            end: None,
            next_look: None,
            latencies: Latencies::new(),
            refusals: Vec::new(),
        }
    }

    pub(super) fn refuse(&mut self, session: u32, reason: Reason) {
        self.refused += 1;
        if self.refusals.len() < KEPT_REFUSALS {
            self.refusals.push((session, reason.to_string()));
        }
    }

    pub(super) fn report(self) -> BatchReport {
        let seconds = match (self.start, self.end) {
            (Some(start), Some(end)) => end.duration_since(start).as_secs_f64(),
            _ => 0.0,
        };
        let answered = (self.accepted + self.refused) as f64;
        BatchReport {
            operation: self.operation,
            requests: self.requests,
            accepted: self.accepted,
            refused: self.refused,
            unanswered: self.unanswered,
            repeated: self.repeated,
            seconds,
            requests_per_second: if seconds > 0.0 { answered / seconds } else { 0.0 },
            latency: self.latencies.summary(),
            refusals: self.refusals,
        }
    }
}
