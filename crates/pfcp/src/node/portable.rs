//! A node that goes on in another process: the peers notice nothing but a pause.
//!
//! Associations keep their Recovery Time Stamps, both ways, so that nobody takes the other for restarted (§6.2.3, TS 23.007 §19A). Requests of
//! ours keep their sequence numbers, so that what a peer carried out already it doesn't carry out again; and answers that are kept go along for
//! the same reason. Requests that were being worked on are forgotten: whoever sent them sends them again.

use super::peer::Peer;
use super::transactions::{Purpose, Transaction};
use super::{Node, NodeCounters, PeerId};
use crate::ids::SequenceNumber;
use crate::ie::{NodeId, RecoveryTimeStamp};
use crate::message_type::MessageType;
use std::collections::HashMap;
use std::net::SocketAddr;
use tables::Nanos;

/// Sequence numbers that the other process may have given after it wrote down the last: they are not given again soon.
const LEFT_OUT: u32 = 1 << 16;

/// What a node is apart from its configuration, the answers that it keeps ([`Node::replies`]) and requests that wait for a response
/// ([`Node::unanswered`]). Times are those of a clock that goes on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Portable {
    /// In the order of their numbers.
    pub associations: Vec<Association>,
    /// The sequence number that was given last.
    pub last_sequence: u32,
}

/// A peer with an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Association {
    /// Its number there; here it gets another one.
    pub number: u32,
    /// Its Node ID.
    pub node_id: NodeId,
    /// Where the association came from.
    pub address: SocketAddr,
    /// When it started, as it says.
    pub recovery: RecoveryTimeStamp,
    /// Since when the association stands.
    pub since: Nanos,
    /// When something was last heard of it.
    pub last_heard: Nanos,
    /// Whether it answered the last heartbeat, or was heard of since.
    pub alive: bool,
    /// Requests that it sent, that it sent again, and that were sent to it again.
    pub counts: [u64; 3],
    /// What it asked for in an earlier life is no repetition.
    pub life: u32,
}

/// A request that waits for its response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unanswered {
    /// Its sequence number.
    pub sequence: u32,
    /// Where it goes.
    pub to: SocketAddr,
    /// The owner's token.
    pub token: u64,
    /// Its type.
    pub message_type: MessageType,
    /// When it was sent last.
    pub sent: Nanos,
    /// The whole message.
    pub octets: Box<[u8]>,
}

/// An answer that is kept for repetitions of the request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The address that the peer is known under.
    pub peer: SocketAddr,
    /// Port, sequence number and type of the request.
    pub request: u64,
    /// When it came.
    pub since: Nanos,
    /// What repetitions of it have in common: a hash of what it said, which another build of Millrace may reckon otherwise.
    pub body: u64,
    /// And the life of the peer.
    pub life: u32,
    /// The answer.
    pub octets: Box<[u8]>,
}

impl Node {
    /// What another process needs to go on with.
    pub fn portable(&self) -> Portable {
        let mut associations: Vec<Association> = self.peers.iter().map(Association::of).collect();
        associations.sort_unstable_by_key(|peer| peer.number);
        Portable { associations, last_sequence: self.transactions.last_sequence() }
    }

    /// A request of the owner's, if it still waits for its response.
    pub fn unanswered(&self, sequence: SequenceNumber) -> Option<Unanswered> {
        let Transaction { to, purpose: Purpose::Owner(token), message_type, sent, bytes, .. } =
            self.transactions.get(sequence.0)?
        else {
            return None;
        };
        let (to, token, message_type, sent) = (*to, *token, *message_type, *sent);
        Some(Unanswered { sequence: sequence.0, to, token, message_type, sent, octets: bytes.clone() })
    }

    /// Goes on with a request to this peer, which is sent again soon; `None`: it can't be one.
    pub fn go_on_with(&mut self, peer: PeerId, request: Unanswered) -> Option<SequenceNumber> {
        let Unanswered { sequence, to, token, message_type, sent, octets } = request;
        if !(1..=0xff_ffff).contains(&sequence) || self.transactions.get(sequence).is_some() {
            return None;
        }
        let (peer, purpose) = (Some(peer), Purpose::Owner(token));
        let transaction = Transaction { peer, to, purpose, message_type, sent, bytes: octets, attempts: 0 };
        self.transactions.go_on_with(sequence, transaction);
        Some(SequenceNumber(sequence))
    }

    /// Answers that are kept, in the order of each peer's requests.
    pub fn replies(&self) -> impl Iterator<Item = Reply> + '_ {
        self.replies.answered()
    }

    /// Keeps an answer that another process gave.
    pub fn keep(&mut self, reply: Reply) {
        self.replies.keep(reply);
    }

    /// A node without peers goes on with what another one had and counted. What its peers are called here, by their numbers there; of two with one name
    /// or address the second is none.
    pub fn go_on(&mut self, now: Nanos, portable: Portable, counters: NodeCounters) -> HashMap<u32, PeerId> {
        self.counters = counters;
        let mut names = HashMap::new();
        for association in portable.associations {
            let number = association.number;
            if let Some(id) = self.peers.take_over(now, &self.config, association) {
                names.insert(number, id);
            }
        }
        self.transactions.go_on_after(portable.last_sequence.wrapping_add(LEFT_OUT));
        names
    }
}

impl Association {
    fn of(peer: &Peer) -> Self {
        Self {
            number: peer.id.0,
            node_id: peer.node_id.clone(),
            address: peer.address,
            recovery: peer.recovery,
            since: peer.since,
            last_heard: peer.last_heard,
            alive: peer.alive,
            counts: [peer.requests, peer.repeated, peer.retransmitted],
            life: peer.life,
        }
    }
}
