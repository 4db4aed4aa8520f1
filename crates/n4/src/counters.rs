//! What N4 counts beyond [`pfcp::node::NodeCounters`].

counters::counters! {
    /// What session requests led to, since start.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct N4Counters {
        /// Sessions established.
        pub established: u64 = "sessions-established", Counter;
        /// Sessions modified.
        pub modified: u64 = "sessions-modified", Counter;
        /// Sessions deleted by their SMF.
        pub deleted: u64 = "sessions-deleted", Counter;
        /// Sessions removed because their association ended or their SMF restarted.
        pub sessions_swept: u64 = "sessions-swept", Counter;
        /// PFD Management Requests that were accepted.
        pub pfds_taken: u64 = "pfd-requests-accepted", Counter;
        /// Session requests, and PFD Management Requests, refused, for whatever reason; the response says why.
        pub refused: u64 = "requests-refused", Counter;
        /// Session requests, and PFD Management Requests, whose IEs can't be read or lack a mandatory one.
        pub malformed: u64 = "requests-malformed", Counter;
        /// Requests for a session of another SMF, answered as if the session did not exist.
        pub foreign_sessions: u64 = "requests-for-foreign-sessions", Counter;
        /// Requests refused (Cause 74) because workers are behind with orders, or the UPF is about to stop.
        pub congested: u64 = "requests-in-congestion", Counter;
        /// Requests refused because sessions send to as many gNBs and UPFs as allowed already.
        pub too_many_far_ends: u64 = "too-many-far-ends", Counter;
        /// Requests that a worker did not carry out, for want of a place in a shard's or worker's table: the session is removed.
        pub not_applied: u64 = "requests-not-applied", Counter;
        /// Session reports sent.
        pub reports: u64 = "reports-sent", Counter;
        /// Usage added to a report that waits until the SMF has answered the one before.
        pub reports_coalesced: u64 = "reports-coalesced", Counter;
        /// Reports that waited because as many requests as allowed were outstanding.
        pub reports_queued: u64 = "reports-queued", Counter;
        /// Reports that could not be sent, and associations from our side that could not be asked for.
        pub reports_not_sent: u64 = "reports-not-sent", Counter;
        /// Reports that the SMF never answered.
        pub reports_unanswered: u64 = "reports-unanswered", Counter;
        /// Sessions dropped because the SMF said that it doesn't know them.
        pub unknown_to_smf: u64 = "sessions-unknown-to-smf", Counter;
        /// Beginnings and ends of applications' traffic that were reported.
        pub detections: u64 = "applications-reported", Counter;
        /// Beginnings and ends of applications' traffic that were not reported: too many of a session wait for its SMF's answer.
        pub detections_untold: u64 = "applications-not-reported", Counter;
        /// Error Indications of far ends for tunnels that no session sends into.
        pub errors_unmatched: u64 = "error-indications-unmatched", Counter;
        /// Timers that found no room: a period, a time quota or a silence is not watched.
        pub timers_full: u64 = "timers-full", Counter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_added_and_passed_on() {
        counters::conformance::check::<N4Counters>();
    }
}
