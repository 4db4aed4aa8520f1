//! A PFCP node without sockets and without a clock: associations, heartbeats, retransmission, repeated requests
//! (TS 29.244 §6.2, §6.4).
//!
//! The owner feeds it datagrams and the time, sends what it finds in [`Output`], and is handed the requests that are its own to
//! answer: session messages. The same code is the UPF's side and the SMF model's.
//!
//! # What it promises
//! - A request is handed out once. Repeated while it is in progress it is swallowed; repeated afterwards it gets the same
//!   bytes again.
//! - A request of the owner's ends in exactly one of [`Incoming::Response`], [`Event::TimedOut`] or the peer's release.
//! - A peer's sessions are ended by itself only: whoever claims to be it from where it isn't expected is believed when it
//!   says the same where it is known, or doesn't answer there any more.
//! - Session messages are handed out only from nodes with an association; others get Cause 72.
//! - What one process promised another one keeps which takes over ([`Node::portable`]).
//! - Everything that grows has a limit in [`NodeConfig`], and each refusal has a counter in [`NodeCounters`].

mod answers;
mod config;
mod counters;
mod identity;
mod output;
mod peer;
mod portable;
mod replies;
mod requests;
mod transactions;

pub use config::{Bounds, NodeConfig, RequestPort, Role};
pub use counters::NodeCounters;
pub use output::{Event, Output, TurnedAway};
pub use peer::{Peer, PeerId};
pub use portable::{Association, Portable, Reply, Unanswered};

use crate::header::{Header, HeaderError};
use crate::ids::Seid;
use crate::message_type::MessageType;
use peer::Peers;
use replies::{Key, Likeness, Replies};
use std::net::{IpAddr, SocketAddr};
use tables::Nanos;
use transactions::{Purpose, Transactions};

/// What a datagram means to the owner.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// Nothing: the node dealt with it.
    Nothing,
    /// A session request, or one that manages PFDs, to answer with [`Node::respond`].
    Request {
        /// For the answer.
        handle: RequestHandle,
        /// Its type.
        message_type: MessageType,
        /// The SEID in the header: ours, or 0 in an establishment and where there is none.
        seid: Seid,
        /// Its IEs.
        body: &'a [u8],
    },
    /// The response to a request of the owner's.
    Response {
        /// The owner's.
        token: u64,
        /// Whom the request was for.
        peer: Option<PeerId>,
        /// Its type.
        message_type: MessageType,
        /// The SEID in the header.
        seid: Option<Seid>,
        /// Its IEs.
        body: &'a [u8],
    },
}

/// A request that waits for the owner's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHandle {
    /// Who asks.
    pub peer: PeerId,
    key: Key,
    likeness: Likeness,
}

/// Why a request of the owner's was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// As many requests wait for a response as the configuration allows.
    #[error("too many PFCP requests wait for a response")]
    TooManyOutstanding,
    /// The association is gone.
    #[error("the PFCP association is gone")]
    NoSuchPeer,
    /// It does not fit into a PFCP message.
    #[error("the message is longer than PFCP can carry")]
    TooLong,
}

/// One end of N4.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    peers: Peers,
    replies: Replies,
    transactions: Transactions,
    counters: NodeCounters,
    /// When peers are next looked through for heartbeats.
    next_heartbeats: Nanos,
}

impl Node {
    /// A node without peers.
    pub fn new(config: NodeConfig) -> Self {
        Self {
            replies: Replies::new(config.bounds.reply_octets, config.reply_cache_age),
            config,
            peers: Peers::default(),
            transactions: Transactions::default(),
            counters: NodeCounters::default(),
            next_heartbeats: Nanos(0),
        }
    }

    /// What it was told.
    pub const fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Changes who may speak ([`NodeConfig::allowed`]).
    pub fn allow(&mut self, allowed: Vec<(IpAddr, u8)>) {
        self.config.allowed = allowed;
    }

    /// Changes [what may grow](NodeConfig::bounds). Peers and requests beyond lower bounds stay; replies go, the oldest first.
    pub fn limit(&mut self, bounds: Bounds) {
        self.config.bounds = bounds;
        self.replies.limit(bounds.reply_octets);
    }

    /// What was counted.
    pub const fn counters(&self) -> &NodeCounters {
        &self.counters
    }

    /// Peers with an association, in no order.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    /// A peer.
    pub fn peer(&self, id: PeerId) -> Option<&Peer> {
        self.peers.get(id)
    }

    /// Octets of replies kept for repeated requests.
    pub const fn kept_octets(&self) -> usize {
        self.replies.octets()
    }

    /// Own requests that wait for a response.
    pub fn outstanding(&self) -> usize {
        self.transactions.len()
    }

    /// Those of them to this peer.
    pub fn outstanding_to(&self, peer: PeerId) -> usize {
        self.transactions.to(peer)
    }

    /// Takes one message of a datagram, as [`crate::header::Datagram`] yields them.
    pub fn receive<'a>(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        message: Result<(Header, &'a [u8]), HeaderError>,
        out: &mut Output,
    ) -> Incoming<'a> {
        if !self.config.allows(from.ip()) {
            self.counters.not_allowed += 1;
            out.events.push(Event::TurnedAway { from, message_type: None, why: TurnedAway::NotAllowed });
            return Incoming::Nothing;
        }
        let (header, body) = match message {
            Ok(decoded) => decoded,
            Err(HeaderError::Version { sequence, .. }) => {
                self.counters.wrong_version += 1;
                if let Some(sequence) = sequence {
                    out.write(
                        from,
                        &Header::node(MessageType::VERSION_NOT_SUPPORTED_RESPONSE, sequence),
                        |_| {},
                    );
                }
                return Incoming::Nothing;
            }
            Err(_) => {
                self.counters.malformed_headers += 1;
                return Incoming::Nothing;
            }
        };
        let peer = self.peers.at(&self.config, from);
        let config = &self.config;
        self.peers.count(peer, |peer| {
            if config.expects(peer.address, from) {
                peer.last_heard = now;
                peer.alive = true;
            }
        });
        if header.message_type.is_request() {
            self.request_of_peer(now, from, peer, &header, body, out)
        } else {
            self.response_of_peer(now, from, &header, body, out)
        }
    }

    /// Requests to this peer have no one left to answer them.
    fn abandon_requests(&mut self, id: PeerId, out: &mut Output) {
        for transaction in self.transactions.abandon(id) {
            match transaction.purpose {
                Purpose::Owner(token) => out.events.push(Event::TimedOut { peer: Some(id), token }),
                Purpose::Heartbeat => {
                    let next = transaction.sent.plus(self.config.heartbeat_interval);
                    if let Some(peer) = self.peers.get_mut(id) {
                        peer.next_heartbeat = Some(next);
                    }
                }
                Purpose::AskBack => {
                    if let Some(peer) = self.peers.get_mut(id) {
                        (peer.asked_back, peer.claim) = (false, None);
                    }
                }
                Purpose::Associate | Purpose::Association => {}
            }
        }
    }

    fn drop_peer(&mut self, id: PeerId, out: &mut Output) {
        if self.peers.remove(&self.config, id).is_some() {
            self.abandon_requests(id, out);
            out.events.push(Event::PeerReleased(id));
        }
    }
}
