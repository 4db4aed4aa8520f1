//! What we ask of peers: associations, heartbeats and the owner's requests, sent again until they are answered or given up.

use super::peer::{Claim, SetUp};
use super::replies::{Key, Likeness};
use super::transactions::{Due, Purpose, Transaction};
use super::{Event, Incoming, Node, Output, PeerId, Refused, Role};
use crate::header::Header;
use crate::ids::{Seid, SequenceNumber};
use crate::message::{
    AssociationReleaseRequest, AssociationSetupRequest, AssociationSetupResponse, AssociationUpdateRequest,
    HeartbeatRequest, HeartbeatResponse,
};
use crate::message_type::MessageType;
use std::net::SocketAddr;
use tables::Nanos;

impl Node {
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
                let request = AssociationUpdateRequest::release(node_id);
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
    pub(super) fn send(
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
        if self.transactions.len() >= self.config.bounds.outstanding {
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

    pub(super) fn response_of_peer<'a>(
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
            Purpose::AskBack => self.asked_back_answered(now, &transaction, body, out),
            Purpose::Associate => self.association_answered(now, from, header, body, out),
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

    /// The answer of a node that we greeted: one that has another's name gets none of its sessions.
    fn association_answered(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        header: &Header,
        body: &[u8],
        out: &mut Output,
    ) {
        match AssociationSetupResponse::decode(body) {
            Ok(response) if response.cause.is_success() => {
                let key = Key { from, sequence: header.sequence.0, message_type: header.message_type };
                let (node_id, recovery) = (response.node_id, response.recovery);
                // Who is known at this address was asked there.
                let here = self.peers.at(&self.config, from);
                if self.lives_elsewhere(&node_id, from, here).is_some() {
                    self.counters.identities_refused += 1;
                    return;
                }
                let set_up = SetUp { node_id, recovery, retain: false };
                let claim = Claim { key, likeness: Likeness::new(Seid(0), body, None), set_up };
                let _ = self.peer_associates(now, claim, here, out);
            }
            Ok(_) => {}
            Err(_) => self.counters.malformed_messages += 1,
        }
    }

    /// Lets time pass: retransmissions, heartbeats. Call it when [`Node::next_deadline`] has come, or more often.
    pub fn tick(&mut self, now: Nanos, out: &mut Output) {
        self.replies.tidy(now);
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
            (Purpose::AskBack, Some(id)) => self.asked_back_in_vain(now, id, out),
            (Purpose::Association, Some(id)) => self.drop_peer(id, out),
            (Purpose::Heartbeat | Purpose::AskBack | Purpose::Association, None) => {}
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
}
