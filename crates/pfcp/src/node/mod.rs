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

mod config;
mod counters;
mod output;
mod peer;
mod replies;
mod transactions;

pub use config::{NodeConfig, RequestPort, Role};
pub use counters::NodeCounters;
pub use output::{Event, Output};
pub use peer::{Peer, PeerId};

use crate::cause::Cause;
use crate::header::{Header, HeaderError};
use crate::ids::{Seid, SequenceNumber};
use crate::ie::{NodeId, RecoveryTimeStamp};
use crate::message::{
    AssociationReleaseRequest, AssociationReleaseResponse, AssociationSetupRequest, AssociationSetupResponse,
    AssociationUpdateRequest, AssociationUpdateResponse, HeartbeatRequest, HeartbeatResponse,
    NodeReportResponse, PfdManagementResponse, SessionDeletionResponse, SessionEstablishmentResponse,
    SessionModificationResponse, SessionReportResponse, SessionSetDeletionResponse,
};
use crate::message_type::MessageType;
use peer::Peers;
use replies::{Key, Likeness, ReplyCache, Seen};
use std::net::SocketAddr;
use tables::Nanos;
use transactions::{Due, Purpose, Transaction, Transactions};

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

    fn request_of_peer<'a>(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        peer: Option<PeerId>,
        header: &Header,
        body: &'a [u8],
        out: &mut Output,
    ) -> Incoming<'a> {
        let kind = header.message_type;
        if kind == MessageType::HEARTBEAT_REQUEST {
            // Repeating it does no harm, so that it needs no place in the cache.
            self.heartbeat(now, from, peer, header, body, out);
            return Incoming::Nothing;
        }
        if !self.is_ours_to_answer(kind) {
            self.counters.unknown_messages += 1;
            return Incoming::Nothing;
        }
        let key = Key { from, sequence: header.sequence.0, message_type: kind };
        // The life of a peer ends with its restart: what it asked for before is forgotten, by it and by us. An association set-up
        // begins one: it is told from that of an earlier life by the Recovery Time Stamp in it, or by the release between.
        let life = peer.and_then(|id| self.peers.get(id)).map(|peer| peer.life);
        let sets_up = kind == MessageType::ASSOCIATION_SETUP_REQUEST;
        if sets_up && life.is_none() {
            self.replies.forget(&key);
        }
        let life = life.filter(|_| !sets_up);
        let likeness = Likeness::new(header.seid.unwrap_or_default(), body, life);
        match self.replies.see(now, key, likeness) {
            Seen::InProgress => {
                self.counters.duplicates_in_progress += 1;
                self.peers.count(peer, |peer| peer.repeated += 1);
                return Incoming::Nothing;
            }
            Seen::Answered(reply) => {
                self.counters.replayed_replies += 1;
                self.peers.count(peer, |peer| peer.repeated += 1);
                out.copy(from, reply);
                return Incoming::Nothing;
            }
            Seen::New => {}
        }
        if sets_up {
            self.associate_with_peer(now, from, key, body, out);
            return Incoming::Nothing;
        }
        let Some(peer) = peer else {
            self.counters.no_association += 1;
            self.refuse_without_association(key, header, out);
            return Incoming::Nothing;
        };
        if kind.is_session() {
            self.counters.requests += 1;
            self.peers.count(Some(peer), |peer| peer.requests += 1);
            let seid = header.seid.unwrap_or_default();
            return Incoming::Request {
                handle: RequestHandle { peer, key, likeness },
                message_type: kind,
                seid,
                body,
            };
        }
        self.node_request(now, peer, key, kind, body, out);
        Incoming::Nothing
    }

    /// Which requests our side answers (§7.3, table 7.3-1).
    fn is_ours_to_answer(&self, kind: MessageType) -> bool {
        match kind {
            MessageType::ASSOCIATION_SETUP_REQUEST
            | MessageType::ASSOCIATION_UPDATE_REQUEST
            | MessageType::ASSOCIATION_RELEASE_REQUEST
            | MessageType::SESSION_SET_DELETION_REQUEST => true,
            MessageType::PFD_MANAGEMENT_REQUEST
            | MessageType::SESSION_ESTABLISHMENT_REQUEST
            | MessageType::SESSION_MODIFICATION_REQUEST
            | MessageType::SESSION_DELETION_REQUEST => self.config.role == Role::Up,
            MessageType::NODE_REPORT_REQUEST | MessageType::SESSION_REPORT_REQUEST => {
                self.config.role == Role::Cp
            }
            _ => false,
        }
    }

    fn heartbeat(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        peer: Option<PeerId>,
        header: &Header,
        body: &[u8],
        out: &mut Output,
    ) {
        let Ok(request) = HeartbeatRequest::decode(body) else {
            self.counters.malformed_messages += 1;
            return;
        };
        if let Some(peer) = peer {
            self.heard_recovery(now, peer, request.recovery, out);
        }
        self.counters.heartbeats_answered += 1;
        let recovery = self.config.recovery;
        let response = Header::node(MessageType::HEARTBEAT_RESPONSE, header.sequence);
        out.write(from, &response, |out| HeartbeatResponse { recovery }.encode(out));
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

    /// The peer's Association Setup Request (§6.2.6.2).
    fn associate_with_peer(&mut self, now: Nanos, from: SocketAddr, key: Key, body: &[u8], out: &mut Output) {
        let cause = match AssociationSetupRequest::decode(body) {
            Ok(request) => {
                match self.peer_associates(
                    now,
                    from,
                    request.node_id,
                    request.recovery,
                    request.session_retention,
                    out,
                ) {
                    Ok(_) => Cause::ACCEPTED,
                    Err(cause) => cause,
                }
            }
            Err(error) => {
                self.counters.malformed_messages += 1;
                error.cause
            }
        };
        let response = AssociationSetupResponse {
            node_id: self.config.node_id.clone(),
            cause,
            recovery: self.config.recovery,
            up_features: (self.config.role == Role::Up).then_some(self.config.features),
            cp_features: None,
        };
        self.reply(key, MessageType::ASSOCIATION_SETUP_RESPONSE, None, |out| response.encode(out), out);
        if !cause.is_success() {
            // Room may be found, or the request mended, under the same sequence number.
            self.replies.forget(&key);
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

    /// Association and node messages of a peer with an association.
    fn node_request(
        &mut self,
        now: Nanos,
        peer: PeerId,
        key: Key,
        kind: MessageType,
        body: &[u8],
        out: &mut Output,
    ) {
        let node_id = self.config.node_id.clone();
        match kind {
            MessageType::ASSOCIATION_UPDATE_REQUEST => {
                let (cause, wants_release) = match AssociationUpdateRequest::decode(body) {
                    Ok(request) => (Cause::ACCEPTED, request.release_requested),
                    Err(error) => (error.cause, false),
                };
                let response = AssociationUpdateResponse { node_id, cause };
                self.reply(
                    key,
                    MessageType::ASSOCIATION_UPDATE_RESPONSE,
                    None,
                    |out| response.encode(out),
                    out,
                );
                if wants_release && self.config.role == Role::Cp {
                    self.release(now, peer, out);
                }
            }
            MessageType::ASSOCIATION_RELEASE_REQUEST => {
                let response = AssociationReleaseResponse { node_id, cause: Cause::ACCEPTED };
                self.reply(
                    key,
                    MessageType::ASSOCIATION_RELEASE_RESPONSE,
                    None,
                    |out| response.encode(out),
                    out,
                );
                self.drop_peer(peer, out);
            }
            MessageType::PFD_MANAGEMENT_REQUEST => {
                // Application detection by PFDs is not offered (feature PFDM): say so rather than accept and ignore.
                let response =
                    PfdManagementResponse { cause: Cause::SERVICE_NOT_SUPPORTED, offending_ie: None };
                self.reply(key, MessageType::PFD_MANAGEMENT_RESPONSE, None, |out| response.encode(out), out);
            }
            MessageType::SESSION_SET_DELETION_REQUEST => {
                // No session carries an FQ-CSID here, so that the set is empty and its deletion a success.
                let response =
                    SessionSetDeletionResponse { node_id, cause: Cause::ACCEPTED, offending_ie: None };
                self.reply(
                    key,
                    MessageType::SESSION_SET_DELETION_RESPONSE,
                    None,
                    |out| response.encode(out),
                    out,
                );
            }
            MessageType::NODE_REPORT_REQUEST => {
                let response = NodeReportResponse { node_id, cause: Cause::ACCEPTED, offending_ie: None };
                self.reply(key, MessageType::NODE_REPORT_RESPONSE, None, |out| response.encode(out), out);
            }
            _ => self.counters.unknown_messages += 1,
        }
    }

    fn refuse_without_association(&mut self, key: Key, header: &Header, out: &mut Output) {
        let node_id = self.config.node_id.clone();
        let cause = Cause::NO_ASSOCIATION;
        // The sender's SEID is not known here: the response goes to SEID 0 (§7.2.2.4.2).
        let none = Some(Seid(0));
        match header.message_type {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let response = SessionEstablishmentResponse {
                    node_id,
                    cause,
                    offending_ie: None,
                    up_fseid: None,
                    created_pdrs: Vec::new(),
                    failed_rule: None,
                };
                self.reply(
                    key,
                    MessageType::SESSION_ESTABLISHMENT_RESPONSE,
                    none,
                    |out| response.encode(out),
                    out,
                );
            }
            MessageType::SESSION_MODIFICATION_REQUEST => {
                let response = SessionModificationResponse {
                    cause,
                    offending_ie: None,
                    created_pdrs: Vec::new(),
                    usage_reports: Vec::new(),
                    failed_rule: None,
                };
                self.reply(
                    key,
                    MessageType::SESSION_MODIFICATION_RESPONSE,
                    none,
                    |out| response.encode(out),
                    out,
                );
            }
            MessageType::SESSION_DELETION_REQUEST => {
                let response =
                    SessionDeletionResponse { cause, offending_ie: None, usage_reports: Vec::new() };
                self.reply(
                    key,
                    MessageType::SESSION_DELETION_RESPONSE,
                    none,
                    |out| response.encode(out),
                    out,
                );
            }
            MessageType::SESSION_REPORT_REQUEST => {
                let response = SessionReportResponse { cause, offending_ie: None, drop_buffered: false };
                self.reply(key, MessageType::SESSION_REPORT_RESPONSE, none, |out| response.encode(out), out);
            }
            MessageType::ASSOCIATION_UPDATE_REQUEST => {
                let response = AssociationUpdateResponse { node_id, cause };
                self.reply(
                    key,
                    MessageType::ASSOCIATION_UPDATE_RESPONSE,
                    None,
                    |out| response.encode(out),
                    out,
                );
            }
            MessageType::ASSOCIATION_RELEASE_REQUEST => {
                let response = AssociationReleaseResponse { node_id, cause };
                self.reply(
                    key,
                    MessageType::ASSOCIATION_RELEASE_RESPONSE,
                    None,
                    |out| response.encode(out),
                    out,
                );
            }
            MessageType::PFD_MANAGEMENT_REQUEST => {
                let response = PfdManagementResponse { cause, offending_ie: None };
                self.reply(key, MessageType::PFD_MANAGEMENT_RESPONSE, None, |out| response.encode(out), out);
            }
            _ => {}
        }
        // Once there is an association, the same request may be carried out.
        self.replies.forget(&key);
    }

    /// Sends a response and keeps it for repetitions of the request.
    fn reply(
        &mut self,
        key: Key,
        kind: MessageType,
        seid: Option<Seid>,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Output,
    ) {
        let header = Header { seid, ..Header::node(kind, SequenceNumber(key.sequence)) };
        match out.write(key.from, &header, encode) {
            Some(bytes) => self.replies.answer(&key, bytes),
            None => self.counters.too_long += 1,
        }
    }

    /// Answers a request that was handed out. `seid` is the peer's.
    pub fn respond(
        &mut self,
        handle: RequestHandle,
        kind: MessageType,
        seid: Seid,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Output,
    ) {
        // A peer that was restarted may have used the number again, and must not take this for the answer.
        if self.replies.is_of_another(&handle.key, handle.likeness) {
            return;
        }
        self.reply(handle.key, kind, Some(seid), encode, out);
    }

    fn response_of_peer<'a>(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        header: &Header,
        body: &'a [u8],
        out: &mut Output,
    ) -> Incoming<'a> {
        let Some(transaction) = self.transactions.finish(header.sequence.0, header.message_type, from) else {
            self.counters.unexpected_responses += 1;
            return Incoming::Nothing;
        };
        self.counters.responses += 1;
        match transaction.purpose {
            Purpose::Owner(token) => {
                let (message_type, seid) = (header.message_type, header.seid);
                return Incoming::Response { token, peer: transaction.peer, message_type, seid, body };
            }
            Purpose::Heartbeat => self.heartbeat_answered(now, &transaction, body, out),
            Purpose::Associate => self.association_answered(now, from, body, out),
            Purpose::Association => {
                if let Some(peer) = transaction.peer
                    && transaction.message_type == MessageType::ASSOCIATION_RELEASE_REQUEST
                {
                    self.drop_peer(peer, out);
                }
            }
        }
        Incoming::Nothing
    }

    fn heartbeat_answered(&mut self, now: Nanos, transaction: &Transaction, body: &[u8], out: &mut Output) {
        let (Some(id), Ok(response)) = (transaction.peer, HeartbeatResponse::decode(body)) else {
            self.counters.malformed_messages += 1;
            return;
        };
        let interval = self.config.heartbeat_interval;
        if let Some(peer) = self.peers.get_mut(id) {
            peer.round_trip = Some(now.since(transaction.sent));
            peer.next_heartbeat = Some(now.plus(interval));
        }
        self.heard_recovery(now, id, response.recovery, out);
    }

    fn association_answered(&mut self, now: Nanos, from: SocketAddr, body: &[u8], out: &mut Output) {
        match AssociationSetupResponse::decode(body) {
            Ok(response) if response.cause.is_success() => {
                let _ = self.peer_associates(now, from, response.node_id, response.recovery, false, out);
            }
            Ok(_) => {}
            Err(_) => self.counters.malformed_messages += 1,
        }
    }

    /// Sets an association up from our side. [`Event::PeerUp`] or [`Event::TimedOut`] with token 0 tells how it went.
    pub fn associate(&mut self, now: Nanos, to: SocketAddr, out: &mut Output) -> Result<(), Refused> {
        let request = AssociationSetupRequest {
            node_id: self.config.node_id.clone(),
            recovery: self.config.recovery,
            up_features: (self.config.role == Role::Up).then_some(self.config.features),
            cp_features: None,
            session_retention: false,
        };
        let kind = MessageType::ASSOCIATION_SETUP_REQUEST;
        self.send(now, None, to, Purpose::Associate, kind, None, |out| request.encode(out), out).map(drop)
    }

    /// Ends an association from our side: the CP function releases it, the UP function asks to be released (§6.2.8, §6.2.7).
    pub fn release(&mut self, now: Nanos, peer: PeerId, out: &mut Output) {
        let Some(known) = self.peers.get(peer) else { return };
        let to = self.config.request_address(known.address);
        let node_id = self.config.node_id.clone();
        let purpose = Purpose::Association;
        // No room for the request: the peer notices by our silence.
        let _ = match self.config.role {
            Role::Cp => {
                let kind = MessageType::ASSOCIATION_RELEASE_REQUEST;
                let request = AssociationReleaseRequest { node_id };
                self.send(now, Some(peer), to, purpose, kind, None, |out| request.encode(out), out)
            }
            Role::Up => {
                let kind = MessageType::ASSOCIATION_UPDATE_REQUEST;
                let request = AssociationUpdateRequest {
                    node_id,
                    release_requested: true,
                    reports_usage: false,
                    graceful_release: None,
                    up_features: None,
                    cp_features: None,
                };
                self.send(now, Some(peer), to, purpose, kind, None, |out| request.encode(out), out)
            }
        };
    }

    /// Sends a request of the owner's. `seid` is the peer's; `token` comes back with the response.
    #[allow(clippy::too_many_arguments)]
    pub fn request(
        &mut self,
        now: Nanos,
        peer: PeerId,
        kind: MessageType,
        seid: Seid,
        token: u64,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Output,
    ) -> Result<SequenceNumber, Refused> {
        let known = self.peers.get(peer).ok_or(Refused::NoSuchPeer)?;
        let to = self.config.request_address(known.address);
        self.send(now, Some(peer), to, Purpose::Owner(token), kind, Some(seid), encode, out)
    }

    #[allow(clippy::too_many_arguments)]
    fn send(
        &mut self,
        now: Nanos,
        peer: Option<PeerId>,
        to: SocketAddr,
        purpose: Purpose,
        kind: MessageType,
        seid: Option<Seid>,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Output,
    ) -> Result<SequenceNumber, Refused> {
        if self.transactions.len() >= self.config.max_outstanding {
            self.counters.too_many_outstanding += 1;
            return Err(Refused::TooManyOutstanding);
        }
        let sequence = self.transactions.next_sequence();
        let header = Header { seid, ..Header::node(kind, SequenceNumber(sequence)) };
        let Some(bytes) = out.write(to, &header, encode) else {
            self.counters.too_long += 1;
            return Err(Refused::TooLong);
        };
        self.transactions.start(now, self.config.t1, sequence, peer, to, purpose, kind, bytes);
        self.counters.sent_requests += 1;
        Ok(SequenceNumber(sequence))
    }

    /// Lets time pass: retransmissions, heartbeats. Call it when [`Node::next_deadline`] has come, or more often.
    pub fn tick(&mut self, now: Nanos, out: &mut Output) {
        let (t1, n1) = (self.config.t1, self.config.n1);
        let mut given_up = Vec::new();
        let (counters, peers) = (&mut self.counters, &mut self.peers);
        self.transactions.tick(now, t1, n1, |due| match due {
            Due::Resend(peer, to, bytes) => {
                counters.retransmissions += 1;
                peers.count(peer, |peer| peer.retransmitted += 1);
                out.copy(to, bytes);
            }
            Due::GivenUp(transaction) => given_up.push(transaction),
        });
        for transaction in given_up {
            self.counters.timeouts += 1;
            self.gave_up(now, &transaction, out);
        }
        if self.config.heartbeat_interval > 0 && now >= self.next_heartbeats {
            self.next_heartbeats = now.plus((self.config.heartbeat_interval / 8).clamp(1, 1_000_000_000));
            self.send_heartbeats(now, out);
        }
    }

    fn gave_up(&mut self, now: Nanos, transaction: &Transaction, out: &mut Output) {
        match (transaction.purpose, transaction.peer) {
            (Purpose::Owner(token), peer) => out.events.push(Event::TimedOut { peer, token }),
            (Purpose::Associate, _) => out.events.push(Event::TimedOut { peer: None, token: 0 }),
            (Purpose::Heartbeat, Some(id)) => {
                self.counters.peers_lost += 1;
                out.events.push(Event::PeerLost(id));
                if let Some(peer) = self.peers.get_mut(id) {
                    peer.alive = false;
                    peer.next_heartbeat = Some(now.plus(self.config.heartbeat_interval));
                }
            }
            (Purpose::Association, Some(id)) => self.drop_peer(id, out),
            (Purpose::Heartbeat | Purpose::Association, None) => {}
        }
    }

    fn send_heartbeats(&mut self, now: Nanos, out: &mut Output) {
        let mut due = Vec::new();
        for peer in self.peers.iter_mut() {
            if peer.next_heartbeat.is_some_and(|at| at <= now) {
                peer.next_heartbeat = None;
                due.push((peer.id, self.config.request_address(peer.address)));
            }
        }
        for (id, to) in due {
            let request = HeartbeatRequest { recovery: self.config.recovery, source: None };
            let kind = MessageType::HEARTBEAT_REQUEST;
            let sent =
                self.send(now, Some(id), to, Purpose::Heartbeat, kind, None, |out| request.encode(out), out);
            if let (Err(_), Some(peer)) = (sent, self.peers.get_mut(id)) {
                peer.next_heartbeat = Some(now.plus(self.config.heartbeat_interval));
            }
        }
    }

    /// When [`Node::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let heartbeats = self.peers.iter().filter_map(|peer| peer.next_heartbeat).min();
        let heartbeats = heartbeats.map(|at| at.max(self.next_heartbeats));
        [self.transactions.next_deadline(), heartbeats].into_iter().flatten().min()
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
