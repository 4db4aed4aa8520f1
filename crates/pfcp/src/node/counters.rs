//! What a node counts: one name for each thing that can happen to a message.

counters::counters! {
    /// Messages and associations of a PFCP node, since start.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct NodeCounters {
        /// Requests of peers that were passed on.
        pub requests: u64 = "requests", Counter;
        /// Responses of peers to requests of ours.
        pub responses: u64 = "responses", Counter;
        /// Requests of ours, the first time each.
        pub sent_requests: u64 = "sent-requests", Counter;
        /// Requests of ours that were sent again (T1).
        pub retransmissions: u64 = "retransmissions", Counter;
        /// Requests of ours given up after N1 times.
        pub timeouts: u64 = "timeouts", Counter;
        /// Requests of ours refused here, since too many wait for a response.
        pub too_many_outstanding: u64 = "too-many-outstanding", Counter;
        /// Repeated requests answered with the same bytes again.
        pub replayed_replies: u64 = "replayed-replies", Counter;
        /// Repeated requests that are still being worked on.
        pub duplicates_in_progress: u64 = "duplicates-in-progress", Counter;
        /// Responses that nothing waits for: too late, twice, or made up.
        pub unexpected_responses: u64 = "unexpected-responses", Counter;
        /// Datagrams whose header is cut short or whose length lies.
        pub malformed_headers: u64 = "malformed-headers", Counter;
        /// Datagrams of another PFCP version.
        pub wrong_version: u64 = "wrong-version", Counter;
        /// Messages whose IEs can't be read or lack a mandatory one.
        pub malformed_messages: u64 = "malformed-messages", Counter;
        /// Messages of a type that is unknown or not for our side.
        pub unknown_messages: u64 = "unknown-messages", Counter;
        /// Datagrams from addresses that may not speak to us.
        pub not_allowed: u64 = "not-allowed", Counter;
        /// Messages of ours that would have been longer than PFCP can carry.
        pub too_long: u64 = "too-long", Counter;
        /// Session messages from nodes without association.
        pub no_association: u64 = "no-association", Counter;
        /// Associations refused, since there are as many peers as allowed.
        pub too_many_peers: u64 = "too-many-peers", Counter;
        /// Associations made.
        pub associations: u64 = "associations", Counter;
        /// Peers that came back with another Recovery Time Stamp, or associated anew.
        pub peer_restarts: u64 = "peer-restarts", Counter;
        /// Recovery Time Stamps older than the one that the peer had: no restart, a message that comes late or a forged one.
        pub older_recovery: u64 = "older-recovery-time-stamps", Counter;
        /// Peers asked back, with a heartbeat to where they are known, since somebody claims to be them from another address or port.
        pub asked_back: u64 = "peers-asked-back", Counter;
        /// Associations and releases in the name of a peer that lives elsewhere, refused.
        pub identities_refused: u64 = "identities-refused", Counter;
        /// Peers that stopped answering heartbeats.
        pub peers_lost: u64 = "peers-lost", Counter;
        /// Heartbeats answered.
        pub heartbeats_answered: u64 = "heartbeats-answered", Counter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_added_and_passed_on() {
        counters::conformance::check::<NodeCounters>();
    }
}
