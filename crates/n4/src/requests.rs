//! Session requests: establishment, modification, deletion.

use super::far_ends::far_end;
use super::history::{Denial, Subject};
use super::{MAX_PENDING, N4, Order, Pending, convert};
use datapath::command::{Command, Transition};
use pfcp::ie::{ApplyAction, OuterHeaderCreation, UsageReport};
use pfcp::message::{
    SessionDeletionResponse, SessionEstablishmentRequest, SessionEstablishmentResponse,
    SessionModificationRequest, SessionModificationResponse,
};
use pfcp::message_type::MessageType;
use pfcp::node::RequestHandle;
use pfcp::{Cause, DecodeError, FarId, Ies, Seid, ie_type};
use session::model::Outer;
use session::pfd::PfdRefusal;
use session::refusal::Refusal;
use session::store::Session;
use session::usage::Usage;
use std::net::IpAddr;
use tables::Nanos;

/// How often an establishment is tried again after stale sessions made way for it: each time a shard is cleared of them.
const MAKE_WAY: u32 = 4;

/// A request that was carried out here and waits for the shard.
#[derive(Debug)]
pub(super) struct Waiting {
    handle: RequestHandle,
    /// The session at the SMF: where the response goes.
    cp_seid: Seid,
    /// The session here.
    seid: Seid,
    response: Response,
    /// Not all workers know yet where packets of the session go.
    pub(super) fenced: bool,
}

#[derive(Debug)]
enum Response {
    Establishment(SessionEstablishmentResponse),
    Modification(SessionModificationResponse),
    /// The session is gone from the store.
    Deletion,
}

impl From<&PfdRefusal> for Denial {
    fn from(refusal: &PfdRefusal) -> Self {
        Self {
            cause: refusal.cause(),
            offending_ie: Some(refusal.offending_ie()),
            failed_rule: None,
            why: refusal.to_string(),
        }
    }
}

impl From<DecodeError> for Denial {
    fn from(error: DecodeError) -> Self {
        let DecodeError { cause, offending_ie, failed_rule, .. } = error;
        Self { cause, offending_ie, failed_rule, why: format!("the request can't be read: {error}") }
    }
}

impl From<&Refusal> for Denial {
    fn from(refusal: &Refusal) -> Self {
        Self {
            cause: refusal.cause(),
            offending_ie: refusal.offending_ie(),
            failed_rule: refusal.failed_rule(),
            why: refusal.to_string(),
        }
    }
}

/// More gNBs and UPFs than there is room for.
fn too_many_far_ends() -> Denial {
    Denial {
        cause: Cause::NO_RESOURCES,
        offending_ie: Some(ie_type::OUTER_HEADER_CREATION),
        failed_rule: None,
        why: "sessions send to as many gNBs and UPFs as there is room for".into(),
    }
}

impl N4 {
    /// A session request that is neither a repetition nor a stranger's.
    pub(super) fn request(
        &mut self,
        now: Nanos,
        handle: RequestHandle,
        kind: MessageType,
        seid: Seid,
        body: &[u8],
    ) {
        if kind == MessageType::PFD_MANAGEMENT_REQUEST {
            // No worker has to do with it.
            return self.manage_pfds(now, handle, body);
        }
        if self.is_congested(kind) {
            return self.refuse_in_congestion(handle, kind, seid, body);
        }
        match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => self.establish(now, handle, body),
            MessageType::SESSION_MODIFICATION_REQUEST => self.modify(now, handle, seid, body),
            MessageType::SESSION_DELETION_REQUEST => self.delete(handle, seid),
            // The node hands out what is the UP function's to answer, and that is all of it.
            _ => {}
        }
    }

    /// Whether workers are too far behind for one more request of this kind. A UPF that is about to stop takes no new sessions.
    fn is_congested(&self, kind: MessageType) -> bool {
        let most = if kind == MessageType::SESSION_DELETION_REQUEST { 2 * MAX_PENDING } else { MAX_PENDING };
        let is_new = kind == MessageType::SESSION_ESTABLISHMENT_REQUEST;
        self.pending.len() >= most || is_new && self.leaving.is_some()
    }

    /// Cause 74: the SMF may try again, or elsewhere.
    fn refuse_in_congestion(&mut self, handle: RequestHandle, kind: MessageType, seid: Seid, body: &[u8]) {
        self.counters.congested += 1;
        let why = match self.leaving {
            Some(_) => "the UPF is about to stop",
            None => "workers are behind with what they were told to do",
        };
        let cause = Cause::CONGESTION;
        let denial = Denial { cause, offending_ie: None, failed_rule: None, why: why.into() };
        if kind == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            return self.refuse_establishment(handle, cp_seid_of(body), &denial);
        }
        let cp_seid = self.session_of_peer(handle, seid).unwrap_or(Seid(0));
        if kind == MessageType::SESSION_DELETION_REQUEST {
            self.refuse_deletion(handle, seid, cp_seid, &denial);
        } else {
            self.refuse_modification(handle, seid, cp_seid, &denial);
        }
    }

    fn establish(&mut self, now: Nanos, handle: RequestHandle, body: &[u8]) {
        let request = match SessionEstablishmentRequest::decode(body) {
            Ok(request) => request,
            Err(error) => {
                self.counters.malformed += 1;
                return self.refuse_establishment(handle, cp_seid_of(body), &error.into());
            }
        };
        let cp_seid = request.cp_fseid.seid;
        let Some(&population) = self.populations.get(&handle.peer) else {
            let refusal = Refusal::UnknownPeer;
            return self.refuse_establishment(handle, cp_seid, &(&refusal).into());
        };
        let wanted =
            request.create_fars.iter().filter_map(|far| far.forwarding.as_ref()?.outer_header_creation);
        if !self.far_ends.have_room(wanted.filter_map(|header| far_end(&header))) {
            self.counters.too_many_far_ends += 1;
            return self.refuse_establishment(handle, cp_seid, &too_many_far_ends());
        }
        let mut made_way = 0;
        let established = loop {
            match self.store.establish(&request, population) {
                Ok(established) => break established,
                Err(refusal) if made_way < MAKE_WAY && self.make_way(&refusal) => made_way += 1,
                Err(refusal) => {
                    return self.refuse_establishment(handle, cp_seid, &(&refusal).into());
                }
            }
        };
        self.counters.established += 1;
        let rules = established.rules;
        self.far_ends.acquire(&rules);
        let seid = rules.seid;
        self.reports.starts.update(seid, &rules.urrs, now);
        let watched = self.timers.watch_silence(now, seid, established.inactivity_timer);
        if !self.timers.update(now, seid, &established.timings) || !watched {
            self.counters.timers_full += 1;
        }
        let response = SessionEstablishmentResponse {
            node_id: self.node.config().node_id.clone(),
            cause: Cause::ACCEPTED,
            offending_ie: None,
            up_fseid: Some(self.own_fseid(seid)),
            created_pdrs: established.created_pdrs,
            failed_rule: None,
        };
        let response = Response::Establishment(response);
        let token = self.token(Pending::Request(Waiting { handle, cp_seid, seid, response, fenced: false }));
        self.announce_for(token, established.directory, made_way > 0);
        let (shard, transition, query) = (rules.place.shard, Transition::default(), Box::default());
        self.orders.push(Order::Shard(shard, Command::Install { token, rules, transition, query }));
    }

    fn refuse_establishment(&mut self, handle: RequestHandle, cp_seid: Seid, denial: &Denial) {
        let (peer, message) = (handle.peer, MessageType::SESSION_ESTABLISHMENT_REQUEST);
        self.refused(Subject { peer, message, seid: None, cp_seid: of_session(cp_seid) }, denial);
        let response = SessionEstablishmentResponse {
            node_id: self.node.config().node_id.clone(),
            cause: denial.cause,
            offending_ie: denial.offending_ie,
            up_fseid: None,
            created_pdrs: Vec::new(),
            failed_rule: denial.failed_rule,
        };
        let kind = MessageType::SESSION_ESTABLISHMENT_RESPONSE;
        self.node.respond(handle, kind, cp_seid, |out| response.encode(out), &mut self.output);
    }

    fn modify(&mut self, now: Nanos, handle: RequestHandle, seid: Seid, body: &[u8]) {
        let Some(cp_seid) = self.session_of_peer(handle, seid) else {
            let denial: Denial = (&Refusal::UnknownSession(seid)).into();
            return self.refuse_modification(handle, seid, Seid(0), &denial);
        };
        let request = match SessionModificationRequest::decode(body) {
            Ok(request) => request,
            Err(error) => {
                self.counters.malformed += 1;
                return self.refuse_modification(handle, seid, cp_seid, &error.into());
            }
        };
        if !self.have_far_ends(seid, &request) {
            self.counters.too_many_far_ends += 1;
            return self.refuse_modification(handle, seid, cp_seid, &too_many_far_ends());
        }
        let before = self.store.get(seid).map(|session| session.rules().clone());
        let modified = match self.store.modify(seid, &request) {
            Ok(modified) => modified,
            Err(refusal) => {
                return self.refuse_modification(handle, seid, cp_seid, &(&refusal).into());
            }
        };
        self.counters.modified += 1;
        let rules = modified.rules;
        self.far_ends.acquire(&rules);
        if let Some(before) = before {
            self.far_ends.release(&before);
        }
        self.end_episodes(seid, &rules, modified.drop_buffered);
        let watched = self.timers.watch_silence(now, seid, modified.inactivity_timer);
        if !self.timers.update(now, seid, &modified.timings) || !watched {
            self.counters.timers_full += 1;
        }
        let response = SessionModificationResponse {
            cause: Cause::ACCEPTED,
            offending_ie: None,
            created_pdrs: modified.created_pdrs,
            usage_reports: Vec::new(),
            failed_rule: None,
        };
        let cp_seid = modified.cp_fseid.seid;
        let response = Response::Modification(response);
        let token = self.token(Pending::Request(Waiting { handle, cp_seid, seid, response, fenced: false }));
        self.announce_for(token, modified.directory, false);
        let transition =
            Transition { end_markers: modified.end_markers.into(), drop_buffered: modified.drop_buffered };
        let (shard, query) = (rules.place.shard, modified.query.into());
        self.orders.push(Order::Shard(shard, Command::Install { token, rules, transition, query }));
    }

    fn refuse_modification(&mut self, handle: RequestHandle, seid: Seid, cp_seid: Seid, denial: &Denial) {
        let (peer, message) = (handle.peer, MessageType::SESSION_MODIFICATION_REQUEST);
        self.refused(Subject { peer, message, seid: Some(seid), cp_seid: of_session(cp_seid) }, denial);
        let response = SessionModificationResponse {
            cause: denial.cause,
            offending_ie: denial.offending_ie,
            created_pdrs: Vec::new(),
            usage_reports: Vec::new(),
            failed_rule: denial.failed_rule,
        };
        let kind = MessageType::SESSION_MODIFICATION_RESPONSE;
        self.node.respond(handle, kind, cp_seid, |out| response.encode(out), &mut self.output);
    }

    /// Whether there is room for all the gNBs and UPFs that the session would send to.
    fn have_far_ends(&self, seid: Seid, request: &SessionModificationRequest<'_>) -> bool {
        let created =
            request.create_fars.iter().filter_map(|far| far.forwarding.as_ref()?.outer_header_creation);
        let updated =
            request.update_fars.iter().filter_map(|far| far.forwarding.as_ref()?.outer_header_creation);
        let named: Vec<OuterHeaderCreation> = created.chain(updated).collect();
        let mut wanted: Vec<IpAddr> = named.iter().filter_map(far_end).collect();
        // A FAR that begins to forward into the tunnel that it had before takes a place without naming it. Unpacking the
        // session costs, and only matters where places are short.
        if self.far_ends.is_full() {
            let resumed = |far: FarId| {
                let forwards =
                    |action: Option<ApplyAction>| action.is_some_and(|action| action.has(ApplyAction::FORW));
                request.update_fars.iter().any(|update| update.id == far && forwards(update.apply_action))
            };
            let model = self.store.get(seid).and_then(Session::model).unwrap_or_default();
            let fars = model.fars.iter().filter(|far| resumed(far.id));
            wanted.extend(fars.filter_map(|far| match far.outer_header {
                Some(Outer::Tunnel(header)) => Some(header.peer),
                _ => None,
            }));
        }
        self.far_ends.have_room(wanted.into_iter())
    }

    fn delete(&mut self, handle: RequestHandle, seid: Seid) {
        let deleted = self.session_of_peer(handle, seid).and_then(|_| self.store.delete(seid).ok());
        let Some(deleted) = deleted else {
            return self.refuse_deletion(handle, seid, Seid(0), &(&Refusal::UnknownSession(seid)).into());
        };
        self.counters.deleted += 1;
        self.far_ends.release(&deleted.rules);
        self.timers.forget(seid);
        self.forget_episodes(seid);
        self.reports.leave(seid, deleted.sequences);
        let (cp_seid, session) = (deleted.cp_fseid.seid, deleted.rules.place);
        let response = Response::Deletion;
        let token = self.token(Pending::Request(Waiting { handle, cp_seid, seid, response, fenced: false }));
        self.announce(deleted.directory);
        self.orders.push(Order::Shard(session.shard, Command::Remove { token, session }));
    }

    fn refuse_deletion(&mut self, handle: RequestHandle, seid: Seid, cp_seid: Seid, denial: &Denial) {
        let (peer, message) = (handle.peer, MessageType::SESSION_DELETION_REQUEST);
        self.refused(Subject { peer, message, seid: Some(seid), cp_seid: of_session(cp_seid) }, denial);
        let cause = denial.cause;
        let response = SessionDeletionResponse { cause, offending_ie: None, usage_reports: Vec::new() };
        let kind = MessageType::SESSION_DELETION_RESPONSE;
        self.node.respond(handle, kind, cp_seid, |out| response.encode(out), &mut self.output);
    }

    /// The SMF's SEID of a session, if it is this SMF's: nobody touches another's (free5GC and Open5GS users were hit by that).
    fn session_of_peer(&mut self, handle: RequestHandle, seid: Seid) -> Option<Seid> {
        let session = self.store.get(seid)?;
        if self.populations.get(&handle.peer) == Some(&session.peer()) {
            return Some(session.cp_fseid().seid);
        }
        self.counters.foreign_sessions += 1;
        None
    }

    pub(super) fn refused(&mut self, subject: Subject, denial: &Denial) {
        self.counters.refused += 1;
        *self.refused_of.entry(subject.peer).or_default() += 1;
        let address = self.node.peer(subject.peer).map(|peer| peer.address);
        self.history.refused(subject, address, denial);
    }

    /// A worker could not carry out what was planned: it has no place left, or there is a defect here. The session is removed
    /// everywhere, so that both sides agree, and the SMF is told.
    pub(super) fn not_applied(&mut self, waiting: Waiting, why: datapath::Refusal) {
        let Waiting { handle, cp_seid, seid, response, .. } = waiting;
        self.counters.not_applied += 1;
        let (cause, why) = match why {
            datapath::Refusal::SlotBeyondLimit => {
                (Cause::NO_RESOURCES, "the shard of the UE's address has no place for another session")
            }
            datapath::Refusal::TooManyPeers => {
                (Cause::NO_RESOURCES, "a worker has no place for another gNB or UPF")
            }
            datapath::Refusal::NotOwned => {
                (Cause::SYSTEM_FAILURE, "the session's shard was not where it should be, which is a defect")
            }
        };
        let denial = Denial { cause, offending_ie: None, failed_rule: None, why: why.into() };
        self.drop_session(seid);
        match response {
            Response::Establishment(_) => self.refuse_establishment(handle, cp_seid, &denial),
            Response::Modification(_) => self.refuse_modification(handle, seid, cp_seid, &denial),
            Response::Deletion => {
                self.reports.left(seid, &[]);
                self.reports.starts.forget(seid);
                self.refuse_deletion(handle, seid, cp_seid, &denial);
            }
        }
    }

    /// The shard has done it: now the SMF is told.
    pub(super) fn applied(&mut self, now: Nanos, waiting: Waiting, usage: &[Usage]) {
        let Waiting { handle, cp_seid, seid, response, .. } = waiting;
        let message = match response {
            Response::Establishment(_) => MessageType::SESSION_ESTABLISHMENT_REQUEST,
            Response::Modification(_) => MessageType::SESSION_MODIFICATION_REQUEST,
            Response::Deletion => MessageType::SESSION_DELETION_REQUEST,
        };
        let address = self.node.peer(handle.peer).map(|peer| peer.address);
        let subject = Subject { peer: handle.peer, message, seid: Some(seid), cp_seid: Some(cp_seid) };
        self.history.accepted(subject, address);
        match response {
            Response::Establishment(response) => {
                let kind = MessageType::SESSION_ESTABLISHMENT_RESPONSE;
                self.node.respond(handle, kind, cp_seid, |out| response.encode(out), &mut self.output);
            }
            Response::Modification(mut response) => {
                for usage in usage {
                    // What waits behind an unanswered report was measured before: it belongs to this one, above all where the
                    // rule is gone and there will be no other.
                    let (mut usage, mut triggers) = (*usage, convert::trigger(usage.trigger));
                    if let Some((earlier, reasons)) = self.reports.take_usage(seid, usage.urr) {
                        usage.add(&earlier);
                        triggers.0 |= reasons.0;
                    }
                    let number = self.next_sequence(seid, usage.urr);
                    let start = self.reports.starts.report(seid, usage.urr, now);
                    response
                        .usage_reports
                        .push(convert::report(self.wall, now, &usage, triggers, start, number));
                }
                // Reports of removed rules needed the old starts; from here on the new rules count.
                if let Some(session) = self.store.get(seid) {
                    self.reports.starts.update(seid, &session.rules().urrs, now);
                }
                let kind = MessageType::SESSION_MODIFICATION_RESPONSE;
                self.node.respond(handle, kind, cp_seid, |out| response.encode(out), &mut self.output);
            }
            Response::Deletion => {
                let (usage, mut sequences) = self.reports.left(seid, usage);
                let mut usage_reports: Vec<UsageReport> = Vec::with_capacity(usage.len());
                for (usage, triggers) in &usage {
                    let number = sequences.next(usage.urr, usize::MAX, |_| true);
                    let start = self.reports.starts.report(seid, usage.urr, now);
                    usage_reports.push(convert::report(self.wall, now, usage, *triggers, start, number));
                }
                self.reports.starts.forget(seid);
                let response =
                    SessionDeletionResponse { cause: Cause::ACCEPTED, offending_ie: None, usage_reports };
                let kind = MessageType::SESSION_DELETION_RESPONSE;
                self.node.respond(handle, kind, cp_seid, |out| response.encode(out), &mut self.output);
            }
        }
    }
}

/// The session at the SMF, if it is known: 0 stands for none (§7.2.2.4.2).
fn of_session(cp_seid: Seid) -> Option<Seid> {
    (cp_seid != Seid(0)).then_some(cp_seid)
}

/// The SMF's SEID in an establishment request that can't be read as a whole, so that the refusal finds its way; 0 if not even that
/// is there.
fn cp_seid_of(body: &[u8]) -> Seid {
    let fseid = Ies::new(body).map_while(Result::ok).find(|ie| ie.kind == ie_type::F_SEID);
    // A flags octet, then the SEID (§8.2.37).
    let seid = fseid.and_then(|ie| ie.value.get(1..)?.first_chunk::<8>().copied());
    Seid(seid.map_or(0, u64::from_be_bytes))
}
