//! The reply cache: a repeated request gets the same bytes again, and is never carried out twice (§6.4).
//!
//! A request is known by the address and port that it came from and its sequence number. A node that was restarted counts from the
//! beginning, soon and from the same port; so a request is a repetition only if its octets are the same too, and if the
//! sender's association is the one that the first was received in. Entries leave when they are old or when there are too
//! many, the oldest first.

use crate::ids::Seid;
use crate::message_type::MessageType;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::net::SocketAddr;
use tables::Nanos;

/// Whose request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub from: SocketAddr,
    pub sequence: u32,
    pub message_type: MessageType,
}

#[derive(Debug)]
struct Entry {
    /// When the request came: tells this entry from a later one of the same key in the queue.
    since: Nanos,
    /// What repetitions have in common beside the key.
    likeness: Likeness,
    /// `None`: still being worked on.
    reply: Option<Box<[u8]>>,
}

/// What a repeated request has in common with the first beside its [`Key`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Likeness {
    /// Hash of the SEID and the IEs.
    octets: u64,
    /// The life of the peer that it came in, where it has an association.
    life: Option<u64>,
}

impl Likeness {
    pub fn new(seid: Seid, body: &[u8], life: Option<u64>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(seid.0);
        hasher.write(body);
        Self { octets: hasher.finish(), life }
    }

    /// Whether one is a repetition of the other. After a release the sender has no life; what it repeats is answered alike.
    fn repeats(self, other: Self) -> bool {
        let same_life = self.life.is_none() || other.life.is_none() || self.life == other.life;
        self.octets == other.octets && same_life
    }
}

/// What is known of a request that just arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// It is new; from now on it is in progress.
    New,
    /// It is being worked on.
    InProgress,
    /// It was answered.
    Answered(&'a [u8]),
}

#[derive(Debug)]
pub(super) struct ReplyCache {
    entries: HashMap<Key, Entry>,
    order: VecDeque<(Nanos, Key)>,
    limit: usize,
    age: u64,
}

impl ReplyCache {
    pub fn new(limit: usize, age: u64) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), limit: limit.max(1), age }
    }

    /// Looks a request up, and notes it if it is new.
    pub fn see(&mut self, now: Nanos, key: Key, likeness: Likeness) -> Seen<'_> {
        self.forget_old(now);
        if self.entries.get(&key).is_some_and(|entry| entry.likeness.repeats(likeness)) {
            return match self.entries.get(&key).and_then(|entry| entry.reply.as_deref()) {
                Some(reply) => Seen::Answered(reply),
                None => Seen::InProgress,
            };
        }
        while self.order.len() >= self.limit {
            self.forget_oldest();
        }
        self.entries.insert(key, Entry { since: now, likeness, reply: None });
        self.order.push_back((now, key));
        Seen::New
    }

    /// Whether the number was used again, by a request that isn't a repetition of this one.
    pub fn is_of_another(&self, key: &Key, likeness: Likeness) -> bool {
        self.entries.get(key).is_some_and(|entry| !entry.likeness.repeats(likeness))
    }

    /// Keeps the answer. An entry that has been forgotten meanwhile stays forgotten.
    pub fn answer(&mut self, key: &Key, reply: &[u8]) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.reply = Some(reply.into());
        }
    }

    /// The request was not carried out and may come again.
    pub fn forget(&mut self, key: &Key) {
        // Its place in the queue stays until its time; `since` keeps it from taking a successor along.
        self.entries.remove(key);
    }

    fn forget_old(&mut self, now: Nanos) {
        while self.order.front().is_some_and(|(since, _)| now.since(*since) > self.age) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((since, key)) = self.order.pop_front()
            && self.entries.get(&key).is_some_and(|entry| entry.since == since)
        {
            self.entries.remove(&key);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len().max(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SAME: Likeness = Likeness { octets: 1, life: Some(1) };

    fn key(sequence: u32) -> Key {
        Key { from: "192.0.2.1:8805".parse().unwrap(), sequence, message_type: MessageType(50) }
    }

    #[test]
    fn a_repeated_request_is_answered_alike() {
        let mut cache = ReplyCache::new(10, 1_000);
        assert_eq!(cache.see(Nanos(1), key(1), SAME), Seen::New);
        assert_eq!(cache.see(Nanos(2), key(1), SAME), Seen::InProgress);
        cache.answer(&key(1), b"yes");
        assert_eq!(cache.see(Nanos(3), key(1), SAME), Seen::Answered(b"yes"));
        assert_eq!(cache.see(Nanos(3), Key { message_type: MessageType(52), ..key(1) }, SAME), Seen::New);
        assert_eq!(cache.see(Nanos(1_002), key(1), SAME), Seen::New, "too old");
    }

    #[test]
    fn is_bounded_and_the_oldest_go() {
        let mut cache = ReplyCache::new(4, u64::MAX);
        for sequence in 0..100 {
            assert_eq!(cache.see(Nanos(u64::from(sequence)), key(sequence), SAME), Seen::New);
            cache.answer(&key(sequence), b"ok");
            assert!(cache.len() <= 4);
        }
        assert_eq!(cache.see(Nanos(100), key(99), SAME), Seen::Answered(b"ok"));
        assert_eq!(cache.see(Nanos(100), key(95), SAME), Seen::New);
    }

    #[test]
    fn a_forgotten_request_does_not_take_its_successor_along() {
        let mut cache = ReplyCache::new(2, 10);
        assert_eq!(cache.see(Nanos(0), key(1), SAME), Seen::New);
        cache.forget(&key(1));
        assert_eq!(cache.see(Nanos(5), key(1), SAME), Seen::New);
        assert_eq!(
            cache.see(Nanos(11), key(1), SAME),
            Seen::InProgress,
            "the first one's age is not the second's"
        );
    }

    #[test]
    fn a_number_that_is_used_again_is_not_a_repetition() {
        let mut cache = ReplyCache::new(10, 1_000);
        assert_eq!(cache.see(Nanos(1), key(1), Likeness::new(Seid(7), b"set up", Some(1))), Seen::New);
        cache.answer(&key(1), b"yes");
        assert_eq!(
            cache.see(Nanos(2), key(1), Likeness::new(Seid(7), b"set up", Some(1))),
            Seen::Answered(b"yes")
        );
        // Other octets, and the same octets after a restart.
        assert_eq!(cache.see(Nanos(3), key(1), Likeness::new(Seid(7), b"tear down", Some(1))), Seen::New);
        cache.answer(&key(1), b"down");
        assert_eq!(cache.see(Nanos(4), key(1), Likeness::new(Seid(7), b"tear down", Some(2))), Seen::New);
        cache.answer(&key(1), b"down again");
        assert_eq!(
            cache.see(Nanos(5), key(1), Likeness::new(Seid(7), b"tear down", Some(2))),
            Seen::Answered(b"down again")
        );
        // Released meanwhile.
        let released = Likeness::new(Seid(7), b"tear down", None);
        assert_eq!(cache.see(Nanos(5), key(1), released), Seen::Answered(b"down again"));
        assert!(cache.is_of_another(&key(1), Likeness::new(Seid(7), b"tear down", Some(1))));
        // The first one's place in the queue does not take the last one along.
        assert_eq!(
            cache.see(Nanos(1_003), key(1), Likeness::new(Seid(7), b"tear down", Some(2))),
            Seen::Answered(b"down again")
        );
    }
}
