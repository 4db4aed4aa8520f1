//! Whose flow is it?
//!
//! Of a packet's ends, the subscriber is the one in the networks that subscribers have; if both or neither are, the one with the lower address. So both
//! directions name the same one, whatever was seen first. Where addresses of several networks overlap, subscribers can be told apart by
//! tunnels instead: then each direction of a GTP-U tunnel is a subscriber of its own.

use crate::track::flow::{address, bits};
use crate::track::names::Names;
use std::collections::VecDeque;
use std::net::IpAddr;
use tables::{BulkMap, Full, Lookup, Nanos, Slab};

/// A network, as what an address begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    bits: u128,
    mask: u128,
}

impl Prefix {
    /// `length` is that of the address's own kind; `None`: too long.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let most: u8 = if address.is_ipv4() { 32 } else { 128 };
        let others = most.checked_sub(length)?;
        Some(Self { bits: bits(address), mask: u128::MAX.checked_shl(others.into()).unwrap_or(0) })
    }

    fn has(&self, address: u128) -> bool {
        (address ^ self.bits) & self.mask == 0
    }
}

/// Networks that subscribers have unless told otherwise: private ones (RFC 1918), shared (RFC 6598), unique local (RFC 4193) and link-local.
pub fn private() -> Vec<Prefix> {
    let v4 = |octets: [u8; 4], length| Prefix::new(octets.into(), length);
    let v6 = |first, length| Prefix::new(IpAddr::from([first, 0, 0, 0, 0, 0, 0, 0]), length);
    let all = [
        v4([10, 0, 0, 0], 8),
        v4([172, 16, 0, 0], 12),
        v4([192, 168, 0, 0], 16),
        v4([100, 64, 0, 0], 10),
        v4([169, 254, 0, 0], 16),
        v6(0xfc00, 7),
        v6(0xfe80, 10),
    ];
    all.into_iter().flatten().collect()
}

/// Whether the source is the subscriber; `ports` decide between equal addresses.
#[inline]
pub(crate) fn is_of_source(home: &[Prefix], source: IpAddr, destination: IpAddr, ports: (u16, u16)) -> bool {
    let (from, to) = (bits(source), bits(destination));
    let is_home = |address: u128| home.iter().any(|prefix| prefix.has(address));
    match (is_home(from), is_home(to)) {
        (true, false) => true,
        (false, true) => false,
        _ => (from, ports.0) <= (to, ports.1),
    }
}

/// Who a subscriber is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Identity(u128);

/// Addresses that begin so are nobody's (RFC 6666): numbers of tunnels stand behind it.
const DISCARD: u128 = 0x0100 << 112;

impl Identity {
    /// By address.
    pub fn address(address: IpAddr) -> Self {
        Self(bits(address))
    }

    /// By tunnel.
    pub const fn tunnel(number: u32) -> Self {
        Self(DISCARD | number as u128)
    }

    /// The number of its tunnel, if it is known by that.
    pub const fn as_tunnel(self) -> Option<u32> {
        if self.0 >> 32 == DISCARD >> 32 { Some(self.0 as u32) } else { None }
    }
}

/// What is known of a subscriber.
#[derive(Debug)]
pub(crate) struct Subscriber {
    identity: Identity,
    /// Its address; the first one that was seen, if it is known by its tunnel.
    address: u128,
    flows: u32,
    last: Nanos,
    is_queued: bool,
    /// What it has asked for names of.
    pub names: Names,
}

impl Subscriber {
    pub fn address(&self) -> IpAddr {
        address(self.address)
    }

    pub fn tunnel(&self) -> Option<u32> {
        self.identity.as_tunnel()
    }
}

/// All subscribers of a worker, by number.
#[derive(Debug)]
pub struct Subscribers {
    index: BulkMap<u128, u32, 3>,
    all: Slab<Subscriber>,
    /// Those who had no flow left, number and generation, by time; and some that have one again.
    idle: VecDeque<(u32, u32)>,
    /// How many were forgotten: numbers of subscribers that were found before may be others' now.
    forgotten: u64,
    seed: u64,
}

/// Seconds that a subscriber without flows is remembered, with the names that it has asked for.
const REMEMBERED: u64 = 600;

impl Subscribers {
    /// At most `limit` are known at a time.
    pub(crate) fn new(seed: u64, limit: u32) -> Self {
        let index = BulkMap::new(seed.rotate_left(11));
        Self { index, all: Slab::new(limit), idle: VecDeque::new(), forgotten: 0, seed }
    }

    /// How many are known.
    pub const fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether none is known.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let names: usize = self.all.iter().map(|(_, it)| it.names.memory()).sum();
        self.index.memory() + self.all.memory() + self.idle.capacity() * size_of::<(u32, u32)>() + names
    }

    /// Bytes of memory that so many take at most: places are reserved a quarter ahead, the queue's buffer and the index double, and each
    /// remembers the names that it may.
    pub(crate) const fn most_memory(limit: u32) -> usize {
        let place = (size_of::<Subscriber>() + 16) * 5 / 4;
        limit as usize * (place + 2 * size_of::<(u32, u32)>() + 128 + Names::MOST_MEMORY)
    }

    /// How many were forgotten so far.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(crate) fn prepare(&self, identity: Identity) -> tables::Probe {
        self.index.prepare(&identity.0)
    }

    pub(crate) fn find(&self, probe: tables::Probe, identity: Identity) -> Option<u32> {
        self.index.finish(probe, &identity.0)
    }

    /// Asks memory for one.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        self.all.prefetch_whole(number);
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Subscriber> {
        self.all.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Subscriber> {
        self.all.get_mut(number)
    }

    /// One more. If there are too many, the one that has been without flows for longest is forgotten.
    pub(crate) fn add(&mut self, now: Nanos, identity: Identity, address: IpAddr) -> Result<u32, Full> {
        if self.all.next().is_none() {
            self.forget_one();
        }
        let names = Names::new(self.seed);
        let subscriber =
            Subscriber { identity, address: bits(address), flows: 0, last: now, is_queued: false, names };
        let number = self.all.insert(subscriber)?;
        if self.index.insert(identity.0, number).is_err() {
            self.all.remove(number);
            return Err(Full);
        }
        Ok(number)
    }

    /// It has one more flow.
    pub(crate) fn join(&mut self, number: u32) {
        if let Some(subscriber) = self.all.get_mut(number) {
            subscriber.flows += 1;
        }
    }

    /// It has one less.
    pub(crate) fn leave(&mut self, now: Nanos, number: u32) {
        let generation = self.all.generation(number);
        if let Some(subscriber) = self.all.get_mut(number) {
            subscriber.flows = subscriber.flows.saturating_sub(1);
            subscriber.last = now;
            if subscriber.flows == 0 && !subscriber.is_queued {
                subscriber.is_queued = true;
                self.idle.push_back((number, generation));
            }
        }
    }

    /// Forgets those who have been without flows for long: a few at a time.
    pub(crate) fn expire(&mut self, now: Nanos) {
        for _ in 0..16 {
            let Some((number, generation)) = self.idle.front().copied() else { return };
            let due = self.all.get_if(number, generation).map(|it| it.last.plus(REMEMBERED * Nanos::SECOND));
            if due.is_some_and(|due| due > now) {
                return;
            }
            self.forget_one();
        }
    }

    /// The first one in the queue that has no flow.
    fn forget_one(&mut self) {
        for _ in 0..=self.idle.len() {
            let Some((number, generation)) = self.idle.pop_front() else { return };
            if let Some(subscriber) = self.all.get_mut_if(number, generation) {
                subscriber.is_queued = false;
                if subscriber.flows == 0 {
                    self.index.remove(&subscriber.identity.0);
                    self.all.remove(number);
                    self.forgotten += 1;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn both_directions_name_the_same_subscriber() {
        let home = private();
        let (ue, server): (IpAddr, IpAddr) = ([10, 60, 0, 1].into(), [198, 51, 100, 7].into());
        assert!(is_of_source(&home, ue, server, (40_000, 443)));
        assert!(!is_of_source(&home, server, ue, (443, 40_000)));
        // Neither, and both, are at home.
        for (a, b) in
            [([8, 8, 8, 8], [9, 9, 9, 9]), ([10, 0, 0, 1], [10, 0, 0, 2]), ([10, 0, 0, 1], [10, 0, 0, 1])]
        {
            let (a, b): (IpAddr, IpAddr) = (a.into(), b.into());
            assert_ne!(is_of_source(&home, a, b, (1, 2)), is_of_source(&home, b, a, (2, 1)));
        }
        assert!(is_of_source(&home, "fd00::1".parse().unwrap(), "2001:db8::1".parse().unwrap(), (1, 1)));
    }

    #[test]
    fn who_has_been_without_flows_for_longest_makes_room() {
        let mut all = Subscribers::new(1, 2);
        let who = |last: u8| Identity::address([10, 0, 0, last].into());
        let find = |all: &Subscribers, last| all.find(all.prepare(who(last)), who(last));
        let add = |all: &mut Subscribers, last: u8| {
            let number = all.add(Nanos(0), who(last), [10, 0, 0, last].into());
            if let Ok(number) = number {
                all.join(number);
            }
            number
        };
        let (first, second) = (add(&mut all, 1).unwrap(), add(&mut all, 2).unwrap());
        assert!(add(&mut all, 3).is_err(), "both have flows");
        all.leave(Nanos(1), second);
        all.leave(Nanos(2), first);
        all.join(second);
        assert!(add(&mut all, 3).is_ok());
        assert_eq!((find(&all, 1), find(&all, 2).is_some(), find(&all, 3).is_some()), (None, true, true));
        all.leave(Nanos(3), second);
        all.expire(Nanos(3).plus((REMEMBERED - 1) * Nanos::SECOND));
        assert_eq!(all.len(), 2);
        all.expire(Nanos(3).plus(REMEMBERED * Nanos::SECOND));
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn tunnels_and_addresses_are_apart() {
        assert_eq!(Identity::tunnel(7).as_tunnel(), Some(7));
        assert_eq!(Identity::address([0, 0, 0, 7].into()).as_tunnel(), None);
    }
}
