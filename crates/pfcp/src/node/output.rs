//! What a node wants done: datagrams in one buffer that is used again, and what happened to peers.

use super::PeerId;
use crate::cause::Cause;
use crate::encode::encode_message;
use crate::header::Header;
use crate::message_type::MessageType;
use std::net::SocketAddr;
use std::ops::Range;

/// A change in the life of a peer, or the end of a request of the owner's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// An association stands.
    PeerUp(PeerId),
    /// The peer has lost its sessions: drop them. The association stands.
    PeerRestarted(PeerId),
    /// The peer doesn't answer heartbeats. The association stands, in case that it comes back (§6.2.3 leaves the choice).
    PeerLost(PeerId),
    /// The association is released: drop the sessions.
    PeerReleased(PeerId),
    /// A request of the owner's was sent N1 times and not answered.
    TimedOut {
        /// Whom it was for.
        peer: Option<PeerId>,
        /// The owner's token.
        token: u64,
    },
    /// A message was turned away before the owner saw it.
    TurnedAway {
        /// Who sent it.
        from: SocketAddr,
        /// What it was, if it was looked at.
        message_type: Option<MessageType>,
        /// Why.
        why: TurnedAway,
    },
}

/// Why a message never got to the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnedAway {
    /// Its sender is not allowed to speak here; it got no answer.
    NotAllowed,
    /// Its sender has no association.
    NoAssociation,
    /// The association that it asked for can't be had: the Cause that the sender was told.
    Setup(Cause),
    /// It speaks in the name or from the address of a peer that lives, and isn't that peer.
    NotItself,
}

/// Filled by the node's methods; the owner sends the datagrams, handles the events and clears it.
#[derive(Debug, Default)]
pub struct Output {
    /// What happened.
    pub events: Vec<Event>,
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, Range<usize>)>,
}

impl Output {
    /// Datagrams to send, in order.
    pub fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.datagrams.iter().map(|(to, range)| (*to, self.bytes.get(range.clone()).unwrap_or_default()))
    }

    /// Whether there is anything to do.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty() && self.events.is_empty()
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
        self.datagrams.clear();
    }

    /// Appends a message and returns its bytes; `None`, and nothing appended, if it is longer than a message can be.
    pub(super) fn write(
        &mut self,
        to: SocketAddr,
        header: &Header,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Option<&[u8]> {
        let start = self.bytes.len();
        if encode_message(header, &mut self.bytes, body).is_err() {
            self.bytes.truncate(start);
            return None;
        }
        self.datagrams.push((to, start..self.bytes.len()));
        self.bytes.get(start..)
    }

    pub(super) fn copy(&mut self, to: SocketAddr, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.datagrams.push((to, start..self.bytes.len()));
    }
}
