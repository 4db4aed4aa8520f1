//! What a subscriber has asked the names of, so that the first packet to an address says more than the address.
//!
//! An answer to a question for a name (RFC 1035) says which addresses the subscriber will use for it. Some tens of addresses are remembered for each
//! subscriber, the oldest makes room; so nobody's questions push out what others have asked. What is remembered is the application, not the
//! name: eight bytes an address.
//!
//! Anybody can send an answer. One counts only if the subscriber has asked for it: the same number, question and ends (RFC 5452 §9.1), and only once.

use crate::classify::End;
use crate::protocols::dns;
use crate::signatures::ApplicationId;
use crate::track::flow::bits;
use std::collections::VecDeque;
use std::net::IpAddr;
use tables::hash::mix;
use tables::prefetch::prefetch_lines;
use tables::{BulkMap, Slab};

/// Addresses that are remembered of a subscriber.
pub(crate) const MOST: usize = 64;
/// Lines that all of them take.
const LINES: usize = MOST / 8 + 1;
/// Upper bits of an entry are those of the address's hash, the lowest are the application's number.
const APPLICATION: u64 = 0xffff;

/// Questions that wait for their answers, of a subscriber: beyond, the first one is forgotten, and its answer teaches nothing.
const QUESTIONS: usize = 8;

/// A message of DNS between a subscriber and a resolver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'m> {
    pub message: dns::Message<'m>,
    /// The name that it asks for, or answers.
    pub host: &'m [u8],
    pub from_subscriber: bool,
    /// The subscriber's port.
    pub port: u16,
    pub resolver: End,
}

/// What a subscriber has asked for.
#[derive(Debug)]
pub(crate) struct Names {
    seed: u64,
    /// Sums of questions without an answer, a ring; 0: none.
    questions: [u32; QUESTIONS],
    next_question: u8,
    /// A ring, once it is full.
    entries: Vec<u64>,
    next: u8,
}

impl Names {
    pub const fn new(seed: u64) -> Self {
        Self { seed, questions: [0; QUESTIONS], next_question: 0, entries: Vec::new(), next: 0 }
    }

    /// Bytes of memory that one has at most.
    pub const MOST_MEMORY: usize = MOST * size_of::<u64>();

    pub const fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<u64>()
    }

    /// Asks memory for them.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_lines(&self.entries, LINES);
    }

    fn hash(&self, address: IpAddr) -> u64 {
        let bits = bits(address);
        mix(
            (bits >> 64) as u64 ^ self.seed,
            mix(bits as u64 ^ self.seed.rotate_left(29), 0x9e37_79b9_7f4a_7c15),
        ) & !APPLICATION
    }

    /// What question and answer have in common, and nobody else knows; never 0.
    fn sum(&self, said: &Said<'_>) -> Option<u32> {
        let question = said.message.questions().next()?;
        let kind = u64::from(question.kind) << 16 | u64::from(question.class);
        let ports = u64::from(said.port) << 16 | u64::from(said.resolver.port);
        let ends = mix(self.hash(said.resolver.address) ^ ports, self.seed.rotate_left(13) | 1);
        let name = u64::from(crc32fast::hash(said.host));
        let asked = mix(name << 16 ^ u64::from(said.message.id) ^ kind << 32, ends | 1);
        Some(((asked >> 32) as u32).max(1))
    }

    /// The subscriber asks this.
    pub fn ask(&mut self, said: &Said<'_>) {
        let Some(sum) = self.sum(said).filter(|sum| !self.questions.contains(sum)) else { return };
        if let Some(place) = self.questions.get_mut(usize::from(self.next_question)) {
            *place = sum;
            self.next_question = (self.next_question + 1) % QUESTIONS as u8;
        }
    }

    /// Whether the subscriber waits for this answer; it does no more.
    pub fn is_awaited(&mut self, said: &Said<'_>) -> bool {
        let sum = self.sum(said);
        let asked = self.questions.iter_mut().find(|it| Some(**it) == sum);
        asked.map(|it| *it = 0).is_some()
    }

    /// This address belongs to this application, said an answer. A later answer replaces an earlier one.
    pub fn learn(&mut self, address: IpAddr, application: ApplicationId) {
        let hash = self.hash(address);
        let entry = hash | u64::from(application.number());
        if let Some(known) = self.entries.iter_mut().find(|it| **it & !APPLICATION == hash) {
            *known = entry;
        } else if self.entries.len() < MOST {
            self.entries.push(entry);
        } else if let Some(oldest) = self.entries.get_mut(usize::from(self.next)) {
            *oldest = entry;
            self.next = (self.next + 1) % MOST as u8;
        }
    }

    /// Whose this address is, as far as the subscriber has asked.
    pub fn application(&self, address: IpAddr) -> Option<ApplicationId> {
        if self.entries.is_empty() {
            return None;
        }
        let hash = self.hash(address);
        let found = self.entries.iter().find(|it| **it & !APPLICATION == hash)?;
        Some(ApplicationId::from_number((found & APPLICATION) as u16))
    }
}

/// Subscribers whose questions are remembered where nobody keeps them: beyond, the first one is forgotten.
const ASKERS: u32 = 4096;

/// Names that subscribers have asked for, by the subscriber's address.
#[derive(Debug)]
pub(crate) struct Askers {
    seed: u64,
    index: BulkMap<u128, u32, 3>,
    all: Slab<(u128, Names)>,
    by_age: VecDeque<u32>,
}

impl Askers {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            index: BulkMap::new(seed.rotate_left(7)),
            all: Slab::new(ASKERS),
            by_age: VecDeque::new(),
        }
    }

    pub fn application(&self, subscriber: IpAddr, address: IpAddr) -> Option<ApplicationId> {
        let number = self.index.get(&bits(subscriber))?;
        self.all.get(number)?.1.application(address)
    }

    /// What this subscriber has asked for; if it hasn't asked before, it does now where it `asks`.
    pub fn names(&mut self, subscriber: IpAddr, asks: bool) -> Option<&mut Names> {
        let key = bits(subscriber);
        let known = self.index.get(&key);
        let number = if asks { known.or_else(|| self.add(key)) } else { known };
        Some(&mut self.all.get_mut(number?)?.1)
    }

    fn add(&mut self, key: u128) -> Option<u32> {
        if self.all.next().is_none()
            && let Some((former, _)) = self.by_age.pop_front().and_then(|number| self.all.remove(number))
        {
            self.index.remove(&former);
        }
        let number = self.all.insert((key, Names::new(self.seed))).ok()?;
        if self.index.insert(key, number).is_err() {
            self.all.remove(number);
            return None;
        }
        self.by_age.push_back(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_address_makes_room() {
        let mut names = Names::new(5);
        let address = |number: usize| IpAddr::from([198, 51, (number >> 8) as u8, number as u8]);
        for number in 0..MOST + 3 {
            names.learn(address(number), ApplicationId::from_number(number as u16));
        }
        names.learn(address(10), ApplicationId::from_number(500));
        for number in 0..MOST + 3 {
            let expected = match number {
                0..3 => None,
                10 => Some(500),
                _ => Some(number as u16),
            };
            assert_eq!(names.application(address(number)).map(ApplicationId::number), expected);
        }
        assert!(names.memory() <= MOST * 8);
    }

    const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01";

    fn said(bytes: &[u8], port: u16, resolver: (u8, u16)) -> Said<'_> {
        let resolver = End { address: [192, 0, 2, resolver.0].into(), port: resolver.1 };
        let message = dns::Message::parse(bytes).unwrap_or_else(|| panic!("no message"));
        Said { message, host: b"a.example", from_subscriber: true, port, resolver }
    }

    /// Number, question, ports and addresses must be the same (RFC 5452 §9.1), and one answer is enough.
    #[test]
    fn an_answer_is_awaited_once_and_only_what_was_asked() {
        let mut names = Names::new(7);
        let asked = said(QUERY, 40_000, (1, 53));
        assert!(!names.is_awaited(&asked), "nobody has asked");
        names.ask(&asked);
        names.ask(&asked);
        for at in [0, 1, 23, 24, 25, 26] {
            let mut forged = QUERY.to_vec();
            forged[at] ^= 1;
            assert!(!names.is_awaited(&said(&forged, 40_000, (1, 53))), "octet {at}");
        }
        assert!(!names.is_awaited(&Said { host: b"b.example", ..asked }));
        for (port, resolver) in [(40_001, (1, 53)), (40_000, (2, 53)), (40_000, (1, 54))] {
            assert!(!names.is_awaited(&said(QUERY, port, resolver)));
        }
        assert!(names.is_awaited(&asked));
        assert!(!names.is_awaited(&asked), "the question was asked twice, and has its answer");
        for port in 1..=QUESTIONS as u16 + 1 {
            names.ask(&said(QUERY, port, (1, 53)));
        }
        assert!(!names.is_awaited(&said(QUERY, 1, (1, 53))), "the first one made room");
        assert!((2..=QUESTIONS as u16 + 1).all(|port| names.is_awaited(&said(QUERY, port, (1, 53)))));
    }

    #[test]
    fn who_asked_first_is_forgotten_first() {
        let mut askers = Askers::new(3);
        let ue = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        let server = IpAddr::from([198, 51, 100, 1]);
        for number in 0..=ASKERS {
            assert!(askers.names(ue(number), false).is_none(), "an answer makes nobody an asker");
            let names = askers.names(ue(number), true);
            names.into_iter().for_each(|it| it.learn(server, ApplicationId::from_number(number as u16)));
        }
        let known = |number| askers.application(ue(number), server).map(ApplicationId::number);
        assert_eq!((known(0), known(1), known(ASKERS)), (None, Some(1), Some(ASKERS as u16)));
    }
}
