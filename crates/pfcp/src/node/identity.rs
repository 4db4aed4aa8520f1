//! Who is a peer, and when it has forgotten its sessions.
//!
//! A peer's sessions end with its restart, which it tells by another Recovery Time Stamp or by associating anew. Both are one
//! datagram each. So one that comes from another address or port than the peer is known by is no more than a claim: the
//! peer is asked back, by a heartbeat to where it is known. If it answers with the same new time stamp, the claim is its
//! own. If it lives and says nothing of a restart, the claim is refused. If it doesn't answer any more, it is
//! gone, and its name is free.

use super::peer::{Claim, SetUp};
use super::transactions::{Purpose, Transaction};
use super::{Event, Node, Output, PeerId};
use crate::cause::Cause;
use crate::ie::{NodeId, RecoveryTimeStamp};
use crate::message::{HeartbeatRequest, HeartbeatResponse};
use crate::message_type::MessageType;
use std::net::SocketAddr;
use tables::Nanos;

/// What becomes of an association that is asked for.
pub(super) enum Verdict {
    /// It stands.
    Stands,
    /// It is refused.
    Refused(Cause),
    /// The peer whose name or address it would take is asked first.
    AskedBack,
}

/// Whether a time stamp is later than another. They are NTP seconds of 32 bits, which begin again in 2036: what is less than
/// half the circle ahead is later (RFC 5905 §6 reads them so from 1968 to 2104). A node that was started before it
/// knew the time and says 1900 or 1970 is right by its next association at the latest.
const fn is_later(stamp: RecoveryTimeStamp, than: RecoveryTimeStamp) -> bool {
    stamp.0.wrapping_sub(than.0).cast_signed() > 0
}

impl Node {
    /// A peer said when it started; a later time than before means that it has forgotten its sessions. An earlier one is of a
    /// message that was long under way (TS 23.007 §19A).
    pub(super) fn heard_recovery(
        &mut self,
        now: Nanos,
        id: PeerId,
        recovery: RecoveryTimeStamp,
        out: &mut Output,
    ) {
        let Some(before) = self.peers.get(id).map(|peer| peer.recovery) else { return };
        if is_later(recovery, before) {
            self.restarted(now, id, recovery, out);
        } else if recovery != before {
            self.counters.older_recovery += 1;
        }
    }

    /// The same, in a request that came from here.
    pub(super) fn claims_recovery(
        &mut self,
        now: Nanos,
        id: PeerId,
        from: SocketAddr,
        recovery: RecoveryTimeStamp,
        out: &mut Output,
    ) {
        let Some(peer) = self.peers.get(id) else { return };
        if self.config.expects(peer.address, from) || !is_later(recovery, peer.recovery) {
            self.heard_recovery(now, id, recovery, out);
        } else {
            self.ask_back(now, id, None, out);
        }
    }

    fn restarted(&mut self, now: Nanos, id: PeerId, recovery: RecoveryTimeStamp, out: &mut Output) {
        let life = self.peers.new_life();
        if let Some(peer) = self.peers.get_mut(id) {
            peer.recovery = recovery;
            peer.since = now;
            peer.life = life;
            self.counters.peer_restarts += 1;
            self.abandon_requests(id, out);
            out.events.push(Event::PeerRestarted(id));
        }
    }

    /// Notes the association, new or again, unless a peer is to be asked first that would lose its sessions by it; one that
    /// was asked already is not asked again. An association anew deletes the old one's sessions unless the peer asks to
    /// retain them (§6.2.6.2.2).
    pub(super) fn peer_associates(
        &mut self,
        now: Nanos,
        claim: Claim,
        asked: Option<PeerId>,
        out: &mut Output,
    ) -> Verdict {
        let from = claim.key.from;
        if let Some(other) = self.lives_elsewhere(&claim.set_up.node_id, from, asked) {
            return if self.ask_back(now, other, Some(claim), out) {
                Verdict::AskedBack
            } else {
                Verdict::Refused(Cause::NO_RESOURCES)
            };
        }
        let (named, here) = (self.peers.named(&claim.set_up.node_id), self.peers.at(&self.config, from));
        let SetUp { node_id, recovery, retain } = claim.set_up;
        // Another Node ID at this address: the node there is a new one, the old one is gone.
        if let Some(old) = here.filter(|id| named != Some(*id)) {
            self.drop_peer(old, out);
        }
        if let Some(id) = named {
            self.peers.moved(&self.config, id, from);
            if let Some(peer) = self.peers.get_mut(id) {
                peer.last_heard = now;
                peer.alive = true;
                if peer.recovery != recovery || !retain {
                    self.restarted(now, id, recovery, out);
                } else {
                    peer.since = now;
                }
            }
            return Verdict::Stands;
        }
        if self.peers.len() >= self.config.bounds.peers {
            self.counters.too_many_peers += 1;
            return Verdict::Refused(Cause::NO_RESOURCES);
        }
        let id = self.peers.add(now, &self.config, node_id, from, recovery);
        self.counters.associations += 1;
        out.events.push(Event::PeerUp(id));
        Verdict::Stands
    }

    /// The peer that would lose its sessions to a node of this name that speaks from here, while it is alive and not expected to
    /// do so itself; but for the one that was asked.
    pub(super) fn lives_elsewhere(
        &self,
        node_id: &NodeId,
        from: SocketAddr,
        asked: Option<PeerId>,
    ) -> Option<PeerId> {
        let (named, here) = (self.peers.named(node_id), self.peers.at(&self.config, from));
        named.into_iter().chain(here).filter(|id| Some(*id) != asked).find(|id| {
            let peer = self.peers.get(*id);
            peer.is_some_and(|peer| peer.alive && !self.config.expects(peer.address, from))
        })
    }

    /// Asks a peer, where it is known, whether it lives and since when. Whether it is being asked.
    fn ask_back(&mut self, now: Nanos, id: PeerId, claim: Option<Claim>, out: &mut Output) -> bool {
        let Some(peer) = self.peers.get_mut(id) else { return false };
        if peer.asked_back {
            // The first to claim waits for the answer; others, and its own repetitions, may come again.
            peer.claim = peer.claim.take().or(claim);
            return true;
        }
        let to = self.config.request_address(peer.address);
        let request = HeartbeatRequest { recovery: self.config.recovery, source: None };
        let kind = MessageType::HEARTBEAT_REQUEST;
        let encode = |out: &mut Vec<u8>| request.encode(out);
        if self.send(now, Some(id), to, Purpose::AskBack, kind, None, encode, out).is_err() {
            return false;
        }
        self.counters.asked_back += 1;
        if let Some(peer) = self.peers.get_mut(id) {
            (peer.asked_back, peer.claim) = (true, claim);
        }
        true
    }

    /// A peer that was asked back lives.
    pub(super) fn asked_back_answered(
        &mut self,
        now: Nanos,
        transaction: &Transaction,
        body: &[u8],
        out: &mut Output,
    ) {
        let Some(peer) = transaction.peer.and_then(|id| self.peers.get_mut(id)) else { return };
        peer.asked_back = false;
        let claim = peer.claim.take();
        let Ok(response) = HeartbeatResponse::decode(body) else {
            self.counters.malformed_messages += 1;
            return;
        };
        peer.alive = true;
        peer.last_heard = now;
        let (id, address, recovery) = (peer.id, peer.address, response.recovery);
        let restarted = is_later(recovery, peer.recovery);
        self.heard_recovery(now, id, recovery, out);
        let Some(mut claim) = claim else { return };
        // Its sessions have ended by that already.
        claim.set_up.retain |= restarted;
        // It says the same of itself. At another address that is its own only if it has just been restarted.
        let same = claim.set_up.recovery == recovery;
        if same && (restarted || claim.key.from.ip() == address.ip()) {
            self.settle(now, claim, Some(id), out);
        } else {
            self.counters.identities_refused += 1;
            self.answer_set_up(now, claim.key, claim.likeness, Cause::REJECTED, out);
        }
    }

    /// A peer that was asked back is gone.
    pub(super) fn asked_back_in_vain(&mut self, now: Nanos, id: PeerId, out: &mut Output) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.asked_back = false;
        if std::mem::take(&mut peer.alive) {
            self.counters.peers_lost += 1;
            out.events.push(Event::PeerLost(id));
        }
        if let Some(claim) = peer.claim.take() {
            self.settle(now, claim, Some(id), out);
        }
    }

    /// Decides on an association and answers who asks for it.
    pub(super) fn settle(&mut self, now: Nanos, claim: Claim, asked: Option<PeerId>, out: &mut Output) {
        let Claim { key, likeness, .. } = claim;
        match self.peer_associates(now, claim, asked, out) {
            Verdict::Stands => self.answer_set_up(now, key, likeness, Cause::ACCEPTED, out),
            Verdict::Refused(cause) => self.answer_set_up(now, key, likeness, cause, out),
            Verdict::AskedBack => {}
        }
    }

    /// Whether a release in the name of this peer is its own: a heartbeat can't tell, so it is taken from where the peer is
    /// expected only.
    pub(super) fn may_release(&mut self, id: PeerId, from: SocketAddr) -> bool {
        let may = self.peers.get(id).is_some_and(|peer| self.config.expects(peer.address, from));
        self.counters.identities_refused += u64::from(!may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_go_round() {
        let later = |a, b| is_later(RecoveryTimeStamp(a), RecoveryTimeStamp(b));
        // 2026, a second later, and a day before.
        let now = 3_990_000_000;
        assert!(later(now + 1, now) && !later(now, now) && !later(now - 86_400, now));
        // Over the wrap in 2036.
        assert!(later(5, u32::MAX - 5) && !later(u32::MAX - 5, 5));
        // 1970, from a clock that isn't set yet; Unix seconds among themselves.
        assert!(!later(2_208_988_800, now) && later(now, 2_208_988_800));
        assert!(later(1_800_000_001, 1_800_000_000));
    }
}
