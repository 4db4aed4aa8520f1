//! What peers ask of us: heartbeats and associations are answered here, session requests are handed to the owner, repetitions get
//! what the first got.

use super::peer::{Claim, SetUp};
use super::replies::{Key, Likeness, Seen};
use super::{Event, Incoming, Node, Output, PeerId, RequestHandle, Role, TurnedAway};
use crate::cause::Cause;
use crate::header::Header;
use crate::ids::{Seid, SequenceNumber};
use crate::ie::UpFunctionFeatures;
use crate::message::{
    AssociationReleaseResponse, AssociationSetupRequest, AssociationSetupResponse, AssociationUpdateRequest,
    AssociationUpdateResponse, HeartbeatRequest, HeartbeatResponse, NodeReportResponse,
    PfdManagementResponse, SessionDeletionResponse, SessionEstablishmentResponse,
    SessionModificationResponse, SessionReportResponse, SessionSetDeletionResponse,
};
use crate::message_type::MessageType;
use std::net::SocketAddr;
use tables::Nanos;

impl Node {
    pub(super) fn request_of_peer<'a>(
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
        let place = self.config.peer_key(from);
        // The life of a peer ends with its restart: what it asked for before is forgotten, by it and by us. An association set-up
        // begins one: it is told from that of an earlier life by the Recovery Time Stamp in it, or by the release between.
        let life = peer.and_then(|id| self.peers.get(id)).map(|peer| peer.life);
        let sets_up = kind == MessageType::ASSOCIATION_SETUP_REQUEST;
        if sets_up && life.is_none() {
            self.replies.forget(place, &key);
        }
        let life = life.filter(|_| !sets_up);
        let likeness = Likeness::new(header.seid.unwrap_or_default(), body, life);
        match self.replies.find(now, place, &key, likeness) {
            Some(Seen::InProgress) => {
                self.counters.duplicates_in_progress += 1;
                self.peers.count(peer, |peer| peer.repeated += 1);
                return Incoming::Nothing;
            }
            Some(Seen::Answered(reply)) => {
                self.counters.replayed_replies += 1;
                self.peers.count(peer, |peer| peer.repeated += 1);
                out.copy(from, reply);
                return Incoming::Nothing;
            }
            None => {}
        }
        if sets_up {
            self.associate_with_peer(now, key, likeness, body, out);
            return Incoming::Nothing;
        }
        let Some(peer) = peer else {
            self.counters.no_association += 1;
            let why = TurnedAway::NoAssociation;
            out.events.push(Event::TurnedAway { from, message_type: Some(kind), why });
            self.refuse_without_association(key, header, out);
            return Incoming::Nothing;
        };
        self.replies.begin(now, place, &key, likeness);
        // PFDs are the owner's, where it offers to take them (feature PFDM).
        let is_pfds =
            kind == MessageType::PFD_MANAGEMENT_REQUEST && self.config.features.has(UpFunctionFeatures::PFDM);
        if kind.is_session() || is_pfds {
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
            self.claims_recovery(now, peer, from, request.recovery, out);
        }
        self.counters.heartbeats_answered += 1;
        let recovery = self.config.recovery;
        let response = Header::node(MessageType::HEARTBEAT_RESPONSE, header.sequence);
        out.write(from, &response, |out| HeartbeatResponse { recovery }.encode(out));
    }

    /// The peer's Association Setup Request (§6.2.6.2).
    fn associate_with_peer(
        &mut self,
        now: Nanos,
        key: Key,
        likeness: Likeness,
        body: &[u8],
        out: &mut Output,
    ) {
        match AssociationSetupRequest::decode(body) {
            Ok(request) => {
                let (node_id, recovery, retain) =
                    (request.node_id, request.recovery, request.session_retention);
                let set_up = SetUp { node_id, recovery, retain };
                self.settle(now, Claim { key, likeness, set_up }, None, out);
            }
            Err(error) => {
                self.counters.malformed_messages += 1;
                self.answer_set_up(now, key, likeness, error.cause, out);
            }
        }
    }

    /// Answers an Association Setup Request. A refusal isn't kept: room may be found, or the request mended, under the same
    /// sequence number.
    pub(super) fn answer_set_up(
        &mut self,
        now: Nanos,
        key: Key,
        likeness: Likeness,
        cause: Cause,
        out: &mut Output,
    ) {
        let response = AssociationSetupResponse {
            node_id: self.config.node_id.clone(),
            cause,
            recovery: self.config.recovery,
            up_features: (self.config.role == Role::Up).then_some(self.config.features),
            cp_features: None,
        };
        let place = self.config.peer_key(key.from);
        if cause.is_success() {
            self.replies.begin(now, place, &key, likeness);
        } else {
            self.replies.forget(place, &key);
            let (from, message_type) = (key.from, Some(key.message_type));
            let why = if cause == Cause::REJECTED { TurnedAway::NotItself } else { TurnedAway::Setup(cause) };
            out.events.push(Event::TurnedAway { from, message_type, why });
        }
        self.reply(key, MessageType::ASSOCIATION_SETUP_RESPONSE, None, |out| response.encode(out), out);
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
                let may = self.may_release(peer, key.from);
                let cause = if may { Cause::ACCEPTED } else { Cause::REJECTED };
                let response = AssociationReleaseResponse { node_id, cause };
                self.reply(
                    key,
                    MessageType::ASSOCIATION_RELEASE_RESPONSE,
                    None,
                    |out| response.encode(out),
                    out,
                );
                if may {
                    self.drop_peer(peer, out);
                } else {
                    let (from, message_type) = (key.from, Some(kind));
                    out.events.push(Event::TurnedAway { from, message_type, why: TurnedAway::NotItself });
                }
            }
            MessageType::PFD_MANAGEMENT_REQUEST => {
                // It is not offered (feature PFDM): say so rather than accept and ignore.
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

    /// Strangers have nothing kept: each repetition is answered anew, and once there is an association, it is carried out.
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
            Some(bytes) => self.replies.answer(self.config.peer_key(key.from), &key, bytes),
            None => self.counters.too_long += 1,
        }
    }

    /// Answers a request that was handed out. `seid` is the peer's, if it is a session's.
    pub fn respond(
        &mut self,
        handle: RequestHandle,
        kind: MessageType,
        seid: Seid,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Output,
    ) {
        // A peer that was restarted may have used the number again, and must not take this for the answer.
        let place = self.config.peer_key(handle.key.from);
        if self.replies.is_of_another(place, &handle.key, handle.likeness) {
            return;
        }
        self.reply(handle.key, kind, kind.is_session().then_some(seid), encode, out);
    }
}
