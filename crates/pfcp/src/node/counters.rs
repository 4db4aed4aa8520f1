//! What a node counts: one name for each thing that can happen to a message.

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $field:ident = $label:literal,)*) => {
        /// Counts since start.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct NodeCounters {
            $($(#[doc = $doc])* pub $field: u64,)*
        }

        impl NodeCounters {
            /// Every counter with its label and its meaning, for metrics and documentation.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($label, concat!($($doc),*), self.$field),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Requests of peers that were passed on.
    requests = "requests",
    /// Responses of peers to requests of ours.
    responses = "responses",
    /// Requests of ours, the first time each.
    sent_requests = "sent-requests",
    /// Requests of ours that were sent again (T1).
    retransmissions = "retransmissions",
    /// Requests of ours given up after N1 times.
    timeouts = "timeouts",
    /// Requests of ours refused here, since too many wait for a response.
    too_many_outstanding = "too-many-outstanding",
    /// Repeated requests answered with the same bytes again.
    replayed_replies = "replayed-replies",
    /// Repeated requests that are still being worked on.
    duplicates_in_progress = "duplicates-in-progress",
    /// Responses that nothing waits for: too late, twice, or made up.
    unexpected_responses = "unexpected-responses",
    /// Datagrams whose header is cut short or whose length lies.
    malformed_headers = "malformed-headers",
    /// Datagrams of another PFCP version.
    wrong_version = "wrong-version",
    /// Messages whose IEs can't be read or lack a mandatory one.
    malformed_messages = "malformed-messages",
    /// Messages of a type that is unknown or not for our side.
    unknown_messages = "unknown-messages",
    /// Datagrams from addresses that may not speak to us.
    not_allowed = "not-allowed",
    /// Messages of ours that would have been longer than PFCP can carry.
    too_long = "too-long",
    /// Session messages from nodes without association.
    no_association = "no-association",
    /// Associations refused, since there are as many peers as allowed.
    too_many_peers = "too-many-peers",
    /// Associations made.
    associations = "associations",
    /// Peers that came back with another Recovery Time Stamp, or associated anew.
    peer_restarts = "peer-restarts",
    /// Recovery Time Stamps older than the one that the peer had: no restart, a message that comes late or a forged one.
    older_recovery = "older-recovery-time-stamps",
    /// Peers asked back, with a heartbeat to where they are known, since somebody claims to be them from another address or port.
    asked_back = "peers-asked-back",
    /// Associations and releases in the name of a peer that lives elsewhere, refused.
    identities_refused = "identities-refused",
    /// Peers that stopped answering heartbeats.
    peers_lost = "peers-lost",
    /// Heartbeats answered.
    heartbeats_answered = "heartbeats-answered",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unique_and_meanings_given() {
        let counters = NodeCounters { timeouts: 7, ..NodeCounters::default() };
        let labels: std::collections::HashSet<_> = counters.each().map(|(label, _, _)| label).collect();
        assert_eq!(labels.len(), counters.each().count());
        assert!(counters.each().all(|(_, meaning, _)| meaning.len() > 10));
        assert!(counters.each().any(|(label, _, value)| (label, value) == ("timeouts", 7)));
    }
}
