//! The reply cache: a repeated request gets the same bytes again, and is never carried out twice (§6.4).
//!
//! A request is known by the address and port that it came from and its sequence number. Entries leave when they are old
//! or when there are too many, the oldest first.

use crate::message_type::MessageType;
use std::collections::{HashMap, VecDeque};
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
    /// `None`: still being worked on.
    reply: Option<Box<[u8]>>,
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
    pub fn see(&mut self, now: Nanos, key: Key) -> Seen<'_> {
        self.forget_old(now);
        if self.entries.contains_key(&key) {
            return match self.entries.get(&key).and_then(|entry| entry.reply.as_deref()) {
                Some(reply) => Seen::Answered(reply),
                None => Seen::InProgress,
            };
        }
        while self.order.len() >= self.limit {
            self.forget_oldest();
        }
        self.entries.insert(key, Entry { since: now, reply: None });
        self.order.push_back((now, key));
        Seen::New
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

    fn key(sequence: u32) -> Key {
        Key { from: "192.0.2.1:8805".parse().unwrap(), sequence, message_type: MessageType(50) }
    }

    #[test]
    fn a_repeated_request_is_answered_alike() {
        let mut cache = ReplyCache::new(10, 1_000);
        assert_eq!(cache.see(Nanos(1), key(1)), Seen::New);
        assert_eq!(cache.see(Nanos(2), key(1)), Seen::InProgress);
        cache.answer(&key(1), b"yes");
        assert_eq!(cache.see(Nanos(3), key(1)), Seen::Answered(b"yes"));
        assert_eq!(cache.see(Nanos(3), Key { message_type: MessageType(52), ..key(1) }), Seen::New);
        assert_eq!(cache.see(Nanos(1_002), key(1)), Seen::New, "too old");
    }

    #[test]
    fn is_bounded_and_the_oldest_go() {
        let mut cache = ReplyCache::new(4, u64::MAX);
        for sequence in 0..100 {
            assert_eq!(cache.see(Nanos(u64::from(sequence)), key(sequence)), Seen::New);
            cache.answer(&key(sequence), b"ok");
            assert!(cache.len() <= 4);
        }
        assert_eq!(cache.see(Nanos(100), key(99)), Seen::Answered(b"ok"));
        assert_eq!(cache.see(Nanos(100), key(95)), Seen::New);
    }

    #[test]
    fn a_forgotten_request_does_not_take_its_successor_along() {
        let mut cache = ReplyCache::new(2, 10);
        assert_eq!(cache.see(Nanos(0), key(1)), Seen::New);
        cache.forget(&key(1));
        assert_eq!(cache.see(Nanos(5), key(1)), Seen::New);
        assert_eq!(cache.see(Nanos(11), key(1)), Seen::InProgress, "the first one's age is not the second's");
    }
}
