//! What a subscriber has asked the names of, so that the first packet to an address says more than the address.
//!
//! An answer to a question for a name (RFC 1035) says which addresses the subscriber will use for it. Some tens of addresses are remembered for each
//! subscriber, the oldest makes room; so nobody's questions push out what others have asked. What is remembered is the application, not the
//! name: eight bytes an address.

use crate::signatures::ApplicationId;
use crate::track::flow::bits;
use std::collections::VecDeque;
use std::net::IpAddr;
use tables::hash::mix;
use tables::{BulkMap, Slab};

/// Addresses that are remembered of a subscriber.
pub(crate) const MOST: usize = 64;
/// Upper bits of an entry are those of the address's hash, the lowest are the application's number.
const APPLICATION: u64 = 0xffff;

/// What a subscriber has asked for.
#[derive(Debug)]
pub(crate) struct Names {
    seed: u64,
    /// A ring, once it is full.
    entries: Vec<u64>,
    next: u8,
}

impl Names {
    pub const fn new(seed: u64) -> Self {
        Self { seed, entries: Vec::new(), next: 0 }
    }

    /// Bytes of memory that one has at most.
    pub const MOST_MEMORY: usize = MOST * size_of::<u64>();

    pub const fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<u64>()
    }

    fn hash(&self, address: IpAddr) -> u64 {
        let bits = bits(address);
        mix(
            (bits >> 64) as u64 ^ self.seed,
            mix(bits as u64 ^ self.seed.rotate_left(29), 0x9e37_79b9_7f4a_7c15),
        ) & !APPLICATION
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

    pub fn learn(&mut self, subscriber: IpAddr, address: IpAddr, application: ApplicationId) {
        let key = bits(subscriber);
        let known = self.index.get(&key).or_else(|| self.add(key));
        if let Some((_, names)) = known.and_then(|number| self.all.get_mut(number)) {
            names.learn(address, application);
        }
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

    #[test]
    fn who_asked_first_is_forgotten_first() {
        let mut askers = Askers::new(3);
        let ue = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        let server = IpAddr::from([198, 51, 100, 1]);
        for number in 0..=ASKERS {
            askers.learn(ue(number), server, ApplicationId::from_number(number as u16));
        }
        let known = |number| askers.application(ue(number), server).map(ApplicationId::number);
        assert_eq!((known(0), known(1), known(ASKERS)), (None, Some(1), Some(ASKERS as u16)));
    }
}
