//! Own requests: sequence numbers, retransmission after T1, giving up after N1 (§6.4).

use super::PeerId;
use crate::message_type::MessageType;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use tables::Nanos;

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The owner's, with the owner's token.
    Owner(u64),
    /// A heartbeat of ours.
    Heartbeat,
    /// A heartbeat to a peer whose name somebody else claims.
    AskBack,
    /// An association set-up of ours, which the peer need not have answered yet.
    Associate,
    /// An association update or release of ours.
    Association,
}

/// A request that waits for its response.
#[derive(Debug)]
pub(super) struct Transaction {
    /// `None` before the association.
    pub peer: Option<PeerId>,
    pub to: SocketAddr,
    pub purpose: Purpose,
    pub message_type: MessageType,
    pub sent: Nanos,
    pub bytes: Box<[u8]>,
    pub attempts: u32,
}

#[derive(Debug, Default)]
pub(super) struct Transactions {
    waiting: HashMap<u32, Transaction>,
    /// T1 is the same for all, so that deadlines come in the order of sending.
    deadlines: VecDeque<(Nanos, u32)>,
    last_sequence: u32,
}

/// What became due.
pub(super) enum Due<'a> {
    /// Send these bytes again.
    Resend(Option<PeerId>, SocketAddr, &'a [u8]),
    /// Nobody answered.
    GivenUp(Transaction),
}

impl Transactions {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The request that waits under this number.
    pub fn get(&self, sequence: u32) -> Option<&Transaction> {
        self.waiting.get(&sequence)
    }

    /// The number that was given last.
    pub const fn last_sequence(&self) -> u32 {
        self.last_sequence
    }

    /// Numbers after this one are given from now on.
    pub const fn go_on_after(&mut self, sequence: u32) {
        self.last_sequence = sequence & 0xff_ffff;
    }

    /// Goes on with a request that another process sent: the next tick sends it again, as often as a new one.
    pub fn go_on_with(&mut self, sequence: u32, transaction: Transaction) {
        self.deadlines.push_front((Nanos(0), sequence));
        self.waiting.insert(sequence, Transaction { attempts: 0, ..transaction });
    }

    /// How many wait for this peer.
    pub fn to(&self, peer: PeerId) -> usize {
        self.waiting.values().filter(|transaction| transaction.peer == Some(peer)).count()
    }

    /// A sequence number that no request waits under: 24 bits, not 0.
    pub fn next_sequence(&mut self) -> u32 {
        loop {
            self.last_sequence = if self.last_sequence >= 0xff_ffff { 1 } else { self.last_sequence + 1 };
            // The number of outstanding requests is bounded far below 2^24, so that this ends.
            if !self.waiting.contains_key(&self.last_sequence) {
                return self.last_sequence;
            }
        }
    }

    /// Notes a request that is being sent now.
    #[allow(clippy::too_many_arguments)]
    pub fn start(
        &mut self,
        now: Nanos,
        t1: u64,
        sequence: u32,
        peer: Option<PeerId>,
        to: SocketAddr,
        purpose: Purpose,
        message_type: MessageType,
        bytes: &[u8],
    ) {
        let transaction =
            Transaction { peer, to, purpose, message_type, sent: now, bytes: bytes.into(), attempts: 1 };
        self.waiting.insert(sequence, transaction);
        self.deadlines.push_back((now.plus(t1), sequence));
    }

    /// The request that this response answers: same number, next message type, same address.
    pub fn finish(
        &mut self,
        sequence: u32,
        message_type: MessageType,
        from: SocketAddr,
    ) -> Option<Transaction> {
        let transaction = self.waiting.get(&sequence)?;
        let answers =
            transaction.message_type.response() == Some(message_type) && transaction.to.ip() == from.ip();
        if answers { self.waiting.remove(&sequence) } else { None }
    }

    /// Handles deadlines that have passed.
    pub fn tick(&mut self, now: Nanos, t1: u64, n1: u32, mut due: impl FnMut(Due<'_>)) {
        while let Some(&(deadline, sequence)) = self.deadlines.front() {
            if deadline > now {
                break;
            }
            self.deadlines.pop_front();
            let Some(transaction) = self.waiting.get_mut(&sequence) else { continue };
            // A number that was used again has a later deadline of its own in the queue.
            if transaction.attempts > 0 && now.since(transaction.sent) < t1 {
                continue;
            }
            if transaction.attempts >= n1 {
                if let Some(transaction) = self.waiting.remove(&sequence) {
                    due(Due::GivenUp(transaction));
                }
            } else {
                transaction.attempts += 1;
                transaction.sent = now;
                due(Due::Resend(transaction.peer, transaction.to, &transaction.bytes));
                self.deadlines.push_back((now.plus(t1), sequence));
            }
        }
    }

    /// Drops what waits for this peer; returns the owner's tokens.
    pub fn abandon(&mut self, peer: PeerId) -> Vec<Transaction> {
        let theirs = |transaction: &Transaction| transaction.peer == Some(peer);
        let numbers: Vec<u32> = self
            .waiting
            .iter()
            .filter(|(_, transaction)| theirs(transaction))
            .map(|(&number, _)| number)
            .collect();
        numbers.iter().filter_map(|number| self.waiting.remove(number)).collect()
    }

    /// When [`Transactions::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.front().map(|(deadline, _)| *deadline)
    }
}
