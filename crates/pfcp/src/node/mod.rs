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
//! - Session messages are handed out only from nodes with an association; others get Cause 72.
//! - Everything that grows has a limit in [`NodeConfig`], and each refusal has a counter in [`NodeCounters`].

mod answers;
mod config;
mod counters;
mod output;
mod peer;
mod replies;
mod requests;
mod transactions;

pub use config::{NodeConfig, RequestPort, Role};
pub use counters::NodeCounters;
pub use output::{Event, Output, TurnedAway};
pub use peer::{Peer, PeerId};

use crate::cause::Cause;
use crate::header::{Header, HeaderError};
use crate::ids::Seid;
use crate::ie::{NodeId, RecoveryTimeStamp};
use crate::message_type::MessageType;
use peer::Peers;
use replies::{Key, Likeness, ReplyCache};
use std::net::SocketAddr;
use tables::Nanos;
use transactions::{Purpose, Transactions};

/// What a datagram means to the owner.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// Nothing: the node dealt with it.
    Nothing,
    /// A session request to answer with [`Node::respond`].
    Request {
        /// For the answer.
        handle: RequestHandle,
        /// Its type.
        message_type: MessageType,
        /// The SEID in the header: ours, or 0 in an establishment.
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
    replies: ReplyCache,
    transactions: Transactions,
    counters: NodeCounters,
    /// When peers are next looked through for heartbeats.
    next_heartbeats: Nanos,
}

impl Node {
    /// A node without peers.
    pub fn new(config: NodeConfig) -> Self {
        Self {
            replies: ReplyCache::new(config.reply_cache_entries, config.reply_cache_age),
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
        self.peers.count(peer, |peer| {
            peer.last_heard = now;
            peer.alive = true;
        });
        if header.message_type.is_request() {
            self.request_of_peer(now, from, peer, &header, body, out)
        } else {
            self.response_of_peer(now, from, &header, body, out)
        }
    }

    /// A peer said when it started; another time than before means that it has forgotten its sessions (§6.2.3, TS 23.007 §19A).
    fn heard_recovery(&mut self, now: Nanos, id: PeerId, recovery: RecoveryTimeStamp, out: &mut Output) {
        let life = self.peers.new_life();
        if let Some(peer) = self.peers.get_mut(id)
            && peer.recovery != recovery
        {
            peer.recovery = recovery;
            peer.since = now;
            peer.life = life;
            self.counters.peer_restarts += 1;
            self.abandon_requests(id, out);
            out.events.push(Event::PeerRestarted(id));
        }
    }

    /// Notes the association, new or again. An association anew deletes the old one's sessions unless the peer asks to retain
    /// them (§6.2.6.2.2).
    fn peer_associates(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        node_id: NodeId,
        recovery: RecoveryTimeStamp,
        retain: bool,
        out: &mut Output,
    ) -> Result<PeerId, Cause> {
        if let Some(id) = self.peers.named(&node_id) {
            self.peers.moved(&self.config, id, from);
            let life = self.peers.new_life();
            if let Some(peer) = self.peers.get_mut(id) {
                let restarted = peer.recovery != recovery || !retain;
                peer.recovery = recovery;
                peer.since = now;
                peer.last_heard = now;
                if restarted {
                    peer.life = life;
                    self.counters.peer_restarts += 1;
                    self.abandon_requests(id, out);
                    out.events.push(Event::PeerRestarted(id));
                }
            }
            return Ok(id);
        }
        // Another Node ID at this address: the node there is a new one, the old one is gone.
        if let Some(old) = self.peers.at(&self.config, from) {
            self.drop_peer(old, out);
        }
        if self.peers.len() >= self.config.max_peers {
            self.counters.too_many_peers += 1;
            return Err(Cause::NO_RESOURCES);
        }
        let id = self.peers.add(now, &self.config, node_id, from, recovery);
        self.counters.associations += 1;
        out.events.push(Event::PeerUp(id));
        Ok(id)
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
