//! Kept replies: a repeated request gets the same bytes again, and is never carried out twice (§6.4).
//!
//! A request is known by the address and port that it came from and its sequence number. A node that was restarted counts from the
//! beginning, soon and from the same port; so a request is a repetition only if its octets are the same too, and if the
//! sender's association is the one that the first was received in.
//!
//! What is kept is bounded by octets, over all peers together, and leaves when it is old. Only peers with an association have
//! anything kept, each its own: where it gets too much, the one that has most gives up its oldest. So neither strangers nor a busy
//! neighbour make a peer's repetition a new request. As much as is kept by default lasts for T1 x N1 at the rate at which
//! Millrace answers (`t1_times_n1_at_full_rate_is_kept` beside this).

use super::portable::Reply;
use crate::ids::Seid;
use crate::message_type::MessageType;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::net::SocketAddr;
use tables::Nanos;

/// What a request costs beside the octets of its reply: its record, its place in the index, the allocator's own.
const RECORD: usize = 96;
/// What a peer costs that has anything kept.
const PEER: usize = 256;
/// Below this many, room for requests is not given back.
const SMALL: usize = 1_024;

/// Whose request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub from: SocketAddr,
    pub sequence: u32,
    pub message_type: MessageType,
}

impl Key {
    /// The key among those of one peer: port, sequence number (24 bits), type.
    fn number(&self) -> u64 {
        u64::from(self.from.port()) << 32 | u64::from(self.sequence) << 8 | u64::from(self.message_type.0)
    }
}

/// What a repeated request has in common with the first beside its [`Key`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Likeness {
    /// Hash of the SEID and the IEs.
    octets: u64,
    /// The life of the peer that it came in; 0: without an association.
    life: u32,
}

impl Likeness {
    pub fn new(seid: Seid, body: &[u8], life: Option<u32>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(seid.0);
        hasher.write(body);
        Self { octets: hasher.finish(), life: life.unwrap_or(0) }
    }

    /// Whether one is a repetition of the other. After a release the sender has no life; what it repeats is answered alike.
    const fn repeats(self, other: Self) -> bool {
        self.octets == other.octets && (self.life == 0 || other.life == 0 || self.life == other.life)
    }
}

/// What became of a request that comes again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// It is being worked on.
    InProgress,
    /// It was answered.
    Answered(&'a [u8]),
}

#[derive(Debug)]
struct Record {
    key: u64,
    since: Nanos,
    likeness: Likeness,
    /// `None`: still being worked on.
    reply: Option<Box<[u8]>>,
}

/// What is kept for one peer, in the order of the requests.
#[derive(Debug, Default)]
struct Kept {
    records: VecDeque<Record>,
    /// The number of the first record; they are numbered in order.
    first: u64,
    /// Numbers of records by key. A record that its key no longer leads to is forgotten.
    index: HashMap<u64, u64>,
    octets: usize,
}

impl Kept {
    fn get(&self, key: u64) -> Option<&Record> {
        self.records.get((self.index.get(&key)? - self.first) as usize)
    }

    fn get_mut(&mut self, key: u64) -> Option<&mut Record> {
        self.records.get_mut((self.index.get(&key)? - self.first) as usize)
    }

    /// Gives up the oldest record, and room that is no longer needed.
    fn pop(&mut self) {
        let Some(record) = self.records.pop_front() else { return };
        if let Entry::Occupied(entry) = self.index.entry(record.key)
            && *entry.get() == self.first
        {
            entry.remove();
        }
        self.first += 1;
        self.octets -= RECORD + record.reply.map_or(0, |reply| reply.len());
        let roomy = |room: usize, used: usize| room > SMALL && room / 4 > used;
        if roomy(self.records.capacity(), self.records.len()) {
            self.records.shrink_to(self.records.len() * 2);
        }
        if roomy(self.index.capacity(), self.index.len()) {
            self.index.shrink_to(self.index.len() * 2);
        }
    }
}

#[derive(Debug)]
pub(super) struct Replies {
    /// By the address that a peer is known under. Some have no association any more: a repeated release is answered too.
    peers: HashMap<SocketAddr, Kept>,
    limit: usize,
    age: u64,
    octets: usize,
}

impl Replies {
    pub fn new(limit: usize, age: u64) -> Self {
        Self { peers: HashMap::new(), limit, age, octets: 0 }
    }

    /// Another limit from now on.
    pub fn limit(&mut self, octets: usize) {
        self.limit = octets;
        self.bound();
    }

    /// Octets kept.
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// All answers that are kept, in the order of each peer's requests.
    pub fn answered(&self) -> impl Iterator<Item = Reply> + '_ {
        self.peers.iter().flat_map(|(&peer, kept)| {
            (kept.first..).zip(&kept.records).filter_map(move |(number, record)| {
                // Forgotten, or still being worked on, is as if it never came.
                let is_known = kept.index.get(&record.key) == Some(&number);
                let octets = record.reply.clone().filter(|_| is_known)?;
                let Likeness { octets: body, life } = record.likeness;
                Some(Reply { peer, request: record.key, since: record.since, body, life, octets })
            })
        })
    }

    /// Keeps an answer that another process gave.
    pub fn keep(&mut self, reply: Reply) {
        let Reply { peer, request, since, body, life, octets } = reply;
        self.note(since, peer, request, Likeness { octets: body, life });
        self.put(peer, request, octets);
    }

    /// What became of a request that this one repeats, if it does.
    pub fn find(&self, now: Nanos, peer: SocketAddr, key: &Key, likeness: Likeness) -> Option<Seen<'_>> {
        let record = self.peers.get(&peer)?.get(key.number())?;
        if !record.likeness.repeats(likeness) || now.since(record.since) > self.age {
            return None;
        }
        Some(record.reply.as_deref().map_or(Seen::InProgress, Seen::Answered))
    }

    /// Notes a new request of a peer with an association: from now on it is in progress.
    pub fn begin(&mut self, now: Nanos, peer: SocketAddr, key: &Key, likeness: Likeness) {
        self.note(now, peer, key.number(), likeness);
    }

    fn note(&mut self, now: Nanos, peer: SocketAddr, key: u64, likeness: Likeness) {
        let kept = self.peers.entry(peer).or_insert_with(|| {
            self.octets += PEER;
            Kept { octets: PEER, ..Kept::default() }
        });
        kept.index.insert(key, kept.first + kept.records.len() as u64);
        kept.records.push_back(Record { key, since: now, likeness, reply: None });
        kept.octets += RECORD;
        self.octets += RECORD;
        self.bound();
    }

    /// Whether the number was used again, by a request that isn't a repetition of this one.
    pub fn is_of_another(&self, peer: SocketAddr, key: &Key, likeness: Likeness) -> bool {
        let record = self.peers.get(&peer).and_then(|kept| kept.get(key.number()));
        record.is_some_and(|record| !record.likeness.repeats(likeness))
    }

    /// Keeps the answer. A request that has been forgotten meanwhile stays forgotten.
    pub fn answer(&mut self, peer: SocketAddr, key: &Key, reply: &[u8]) {
        self.put(peer, key.number(), reply.into());
    }

    fn put(&mut self, peer: SocketAddr, key: u64, reply: Box<[u8]>) {
        let Some(kept) = self.peers.get_mut(&peer) else { return };
        let Some(record) = kept.get_mut(key) else { return };
        let length = reply.len();
        let before = record.reply.replace(reply).map_or(0, |reply| reply.len());
        kept.octets = kept.octets + length - before;
        self.octets = self.octets + length - before;
        self.bound();
    }

    /// The request was not carried out and may come again.
    pub fn forget(&mut self, peer: SocketAddr, key: &Key) {
        if let Some(kept) = self.peers.get_mut(&peer) {
            // Its record stays until its time.
            kept.index.remove(&key.number());
        }
    }

    /// Gives up what is old.
    pub fn tidy(&mut self, now: Nanos) {
        let (age, octets) = (self.age, &mut self.octets);
        self.peers.retain(|_, kept| {
            let before = kept.octets;
            while kept.records.front().is_some_and(|record| now.since(record.since) > age) {
                kept.pop();
            }
            let stays = !kept.records.is_empty();
            *octets -= if stays { before - kept.octets } else { before };
            stays
        });
    }

    /// Gives up the oldest of those who have most, until no more is kept than may be; and a little more, so that who has most is
    /// not looked for with each request.
    fn bound(&mut self) {
        if self.octets <= self.limit {
            return;
        }
        let enough = self.limit - self.limit / 64;
        while self.octets > enough {
            let more = self.peers.values_mut().filter(|kept| kept.records.len() > 1);
            let Some(kept) = more.max_by_key(|kept| kept.octets) else { break };
            let before = kept.octets;
            // The newest stays, whose answer may just have come.
            for _ in 0..(kept.records.len() / 8).max(1) {
                if self.octets + kept.octets <= enough + before {
                    break;
                }
                kept.pop();
            }
            self.octets -= before - kept.octets;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SAME: Likeness = Likeness { octets: 1, life: 1 };
    const SECOND: u64 = Nanos::SECOND;

    fn peer(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 0))
    }

    fn key(sequence: u32) -> Key {
        Key { from: "192.0.2.1:8805".parse().unwrap(), sequence, message_type: MessageType(50) }
    }

    /// Looks a request up, and notes it if it is new.
    fn see(replies: &mut Replies, now: u64, key: Key, likeness: Likeness) -> Option<Seen<'_>> {
        if replies.find(Nanos(now), peer(1), &key, likeness).is_none() {
            replies.begin(Nanos(now), peer(1), &key, likeness);
            return None;
        }
        replies.find(Nanos(now), peer(1), &key, likeness)
    }

    fn done(replies: &mut Replies, now: u64, from: SocketAddr, sequence: u32, reply: &[u8]) {
        replies.begin(Nanos(now), from, &key(sequence), SAME);
        replies.answer(from, &key(sequence), reply);
    }

    /// What is counted is what is there.
    fn check(replies: &Replies) {
        for kept in replies.peers.values() {
            let there = kept.records.iter().map(|r| RECORD + r.reply.as_ref().map_or(0, |reply| reply.len()));
            assert_eq!(kept.octets, PEER + there.sum::<usize>());
            let range = kept.first..kept.first + kept.records.len() as u64;
            assert!(kept.index.values().all(|number| range.contains(number)));
        }
        assert_eq!(replies.octets, replies.peers.values().map(|kept| kept.octets).sum::<usize>());
    }

    #[test]
    fn a_repeated_request_is_answered_alike() {
        let mut replies = Replies::new(10_000, 1_000);
        assert_eq!(see(&mut replies, 1, key(1), SAME), None);
        assert_eq!(see(&mut replies, 2, key(1), SAME), Some(Seen::InProgress));
        replies.answer(peer(1), &key(1), b"yes");
        assert_eq!(see(&mut replies, 3, key(1), SAME), Some(Seen::Answered(b"yes")));
        let other = [
            Key { message_type: MessageType(52), ..key(1) },
            Key { from: "192.0.2.1:8806".parse().unwrap(), ..key(1) },
        ];
        for other in other {
            assert_eq!(see(&mut replies, 3, other, SAME), None);
        }
        assert_eq!(see(&mut replies, 1_002, key(1), SAME), None, "too old");
        check(&replies);
    }

    #[test]
    fn the_oldest_go_and_others_keep_theirs() {
        let mut replies = Replies::new(2_000, u64::MAX);
        done(&mut replies, 0, peer(2), 7, b"rarely");
        for sequence in 0..1_000 {
            done(&mut replies, sequence.into(), peer(1), sequence, &[7; 20]);
            assert!(replies.octets() <= 2_000);
            check(&replies);
        }
        let find = |from, sequence| replies.find(Nanos(1_000), from, &key(sequence), SAME);
        assert_eq!(find(peer(1), 999), Some(Seen::Answered(&[7; 20])));
        assert_eq!(find(peer(1), 900), None);
        assert_eq!(
            find(peer(2), 7),
            Some(Seen::Answered(b"rarely")),
            "a busy neighbour takes nothing from it"
        );
        // With a lower limit the oldest go at once, of the one that has most.
        replies.limit(1_000);
        assert!(replies.octets() <= 1_000);
        check(&replies);
        let find = |from, sequence| replies.find(Nanos(1_000), from, &key(sequence), SAME);
        assert_eq!(find(peer(1), 999), Some(Seen::Answered(&[7; 20])));
        assert_eq!(find(peer(2), 7), Some(Seen::Answered(b"rarely")));
        replies.limit(2_000);
        // One that is longer than all may be is kept alone.
        done(&mut replies, 1_000, peer(1), 5_000, &[1; 5_000]);
        assert_eq!(replies.find(Nanos(1_000), peer(1), &key(5_000), SAME), Some(Seen::Answered(&[1; 5_000])));
        done(&mut replies, 1_001, peer(1), 5_001, b"short");
        assert!(replies.octets() <= 2_000);
        check(&replies);
    }

    #[test]
    fn memory_comes_back() {
        let mut replies = Replies::new(1 << 24, 30 * SECOND);
        for sequence in 0..50_000 {
            done(&mut replies, u64::from(sequence), peer(1), sequence, &[7; 100]);
        }
        assert!(replies.octets() > 5_000_000);
        replies.tidy(Nanos(31 * SECOND));
        assert_eq!((replies.octets(), replies.peers.len()), (0, 0));
        // Also where it is asked for little, for long: the room of a burst is given back.
        for sequence in 0..50_000 {
            done(&mut replies, 40 * SECOND, peer(1), sequence, &[7; 100]);
        }
        done(&mut replies, 60 * SECOND, peer(1), 60_000, b"later");
        replies.tidy(Nanos(71 * SECOND));
        let kept = &replies.peers[&peer(1)];
        assert_eq!(kept.records.len(), 1);
        assert!(kept.records.capacity() <= SMALL && kept.index.capacity() <= 2 * SMALL);
        check(&replies);
    }

    /// The README's rate of session requests, all of them establishments, for three times three seconds: the first one
    /// is still known.
    #[test]
    fn t1_times_n1_at_full_rate_is_kept() {
        const RATE: u32 = 95_000;
        let config = crate::node::NodeConfig::new(
            crate::node::Role::Up,
            crate::ie::NodeId::Fqdn("upf".into()),
            crate::ie::RecoveryTimeStamp(1),
        );
        let seconds = config.t1 / SECOND * u64::from(config.n1);
        let mut replies = Replies::new(config.bounds.reply_octets, config.reply_cache_age);
        // Header, Node ID, Cause, F-SEID and a Created PDR with F-TEID and UE address.
        let response = [1; 79];
        for sequence in 0..RATE * seconds as u32 {
            let now = u64::from(sequence) * SECOND / u64::from(RATE);
            done(&mut replies, now, peer(1), sequence, &response);
        }
        let found = replies.find(Nanos(seconds * SECOND), peer(1), &key(0), SAME);
        assert_eq!(found, Some(Seen::Answered(&response)));
    }

    #[test]
    fn a_forgotten_request_does_not_take_its_successor_along() {
        let mut replies = Replies::new(10_000, 10);
        assert_eq!(see(&mut replies, 0, key(1), SAME), None);
        replies.forget(peer(1), &key(1));
        assert_eq!(see(&mut replies, 5, key(1), SAME), None);
        replies.tidy(Nanos(11));
        assert_eq!(
            see(&mut replies, 11, key(1), SAME),
            Some(Seen::InProgress),
            "the first one's age is not the second's"
        );
        check(&replies);
    }

    #[test]
    fn a_number_that_is_used_again_is_not_a_repetition() {
        let mut replies = Replies::new(10_000, 1_000);
        let like = |body: &[u8], life| Likeness::new(Seid(7), body, life);
        assert_eq!(see(&mut replies, 1, key(1), like(b"set up", Some(1))), None);
        replies.answer(peer(1), &key(1), b"yes");
        assert_eq!(see(&mut replies, 2, key(1), like(b"set up", Some(1))), Some(Seen::Answered(b"yes")));
        // Other octets, and the same octets after a restart.
        assert_eq!(see(&mut replies, 3, key(1), like(b"tear down", Some(1))), None);
        replies.answer(peer(1), &key(1), b"down");
        assert_eq!(see(&mut replies, 4, key(1), like(b"tear down", Some(2))), None);
        replies.answer(peer(1), &key(1), b"down again");
        let again = Some(Seen::Answered(&b"down again"[..]));
        assert_eq!(see(&mut replies, 5, key(1), like(b"tear down", Some(2))), again);
        // Released meanwhile.
        assert_eq!(see(&mut replies, 5, key(1), like(b"tear down", None)), again);
        assert!(replies.is_of_another(peer(1), &key(1), like(b"tear down", Some(1))));
        // The first one's place in the queue does not take the last one along.
        replies.tidy(Nanos(1_003));
        assert_eq!(see(&mut replies, 1_003, key(1), like(b"tear down", Some(2))), again);
        check(&replies);
    }
}
