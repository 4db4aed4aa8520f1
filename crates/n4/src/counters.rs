//! What N4 counts beyond [`pfcp::node::NodeCounters`].

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $field:ident = $label:literal,)*) => {
        /// Counts since start.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct N4Counters {
            $($(#[doc = $doc])* pub $field: u64,)*
        }

        impl N4Counters {
            /// Every counter with its label and its meaning.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($label, concat!($($doc),*), self.$field),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Sessions established.
    established = "sessions-established",
    /// Sessions modified.
    modified = "sessions-modified",
    /// Sessions deleted by their SMF.
    deleted = "sessions-deleted",
    /// Sessions removed because their association ended or their SMF restarted.
    sessions_swept = "sessions-swept",
    /// Session requests refused, for whatever reason; the response says why.
    refused = "requests-refused",
    /// Session requests whose IEs can't be read or lack a mandatory one.
    malformed = "requests-malformed",
    /// Requests for a session of another SMF, answered as if the session did not exist.
    foreign_sessions = "requests-for-foreign-sessions",
    /// Requests refused (Cause 74) because workers are behind with orders, or the UPF is about to stop.
    congested = "requests-in-congestion",
    /// Requests refused because sessions send to as many gNBs and UPFs as allowed already.
    too_many_far_ends = "too-many-far-ends",
    /// Requests that a worker did not carry out, for want of a place in a shard's or worker's table: the session is removed.
    not_applied = "requests-not-applied",
    /// Session reports sent.
    reports = "reports-sent",
    /// Usage added to a report that waits until the SMF has answered the one before.
    reports_coalesced = "reports-coalesced",
    /// Reports that waited because as many requests as allowed were outstanding.
    reports_queued = "reports-queued",
    /// Reports that could not be sent, and associations from our side that could not be asked for.
    reports_not_sent = "reports-not-sent",
    /// Reports that the SMF never answered.
    reports_unanswered = "reports-unanswered",
    /// Sessions dropped because the SMF said that it doesn't know them.
    unknown_to_smf = "sessions-unknown-to-smf",
    /// Error Indications of far ends for tunnels that no session sends into.
    errors_unmatched = "error-indications-unmatched",
    /// Timers that found no room: a period, a time quota or a silence is not watched.
    timers_full = "timers-full",
}
