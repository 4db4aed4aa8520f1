//! Neighbours on the links: their MAC addresses, and the frames that wait for one.
//!
//! A frame to a neighbour whose MAC address isn't known is complete but for these six bytes. It waits in a short queue
//! while the worker asks (ARP or neighbour solicitation, three times, a second apart); the answer sets it free, and
//! silence drops it under its own reason. Whatever is learned is used at once and told to the control side, from where
//! the other workers hear of it.

use packet::MacAddr;
use std::collections::VecDeque;
use std::net::IpAddr;
use tables::{BulkMap, Nanos};

/// Solicitations before a neighbour counts as unreachable (RFC 4861 §10, MAX_MULTICAST_SOLICIT).
const TRIES: u8 = 3;
/// Time between solicitations (RFC 4861 §10, RETRANS_TIMER).
const INTERVAL: u64 = Nanos::SECOND;

#[derive(Debug)]
struct Entry<F> {
    interface: u16,
    address: IpAddr,
    mac: Option<MacAddr>,
    frames: VecDeque<F>,
    tries: u8,
    next: Nanos,
}

#[derive(Debug, Clone)]
struct Link {
    v4: BulkMap<u32, u32>,
    v6: BulkMap<u128, u32, 3>,
}

/// What became of a frame given to [`Neighbours::hold`].
#[derive(Debug, PartialEq, Eq)]
pub enum Held<F> {
    /// It waits, and somebody is asking already.
    Waits,
    /// It waits, and is the first: ask now.
    Ask,
    /// There is no room for it.
    Refused(F),
}

/// What is to be done about a neighbour that doesn't answer.
#[derive(Debug)]
pub enum Due<F> {
    /// Ask again.
    Ask(u16, IpAddr),
    /// Give up: drop these.
    Lost(VecDeque<F>),
}

/// All neighbours of one worker.
#[derive(Debug)]
pub struct Neighbours<F> {
    links: Vec<Link>,
    entries: Vec<Option<Entry<F>>>,
    free: Vec<u32>,
    /// Entries without a MAC address.
    asking: Vec<u32>,
    queue: usize,
    max: usize,
    seed: u64,
}

impl<F> Neighbours<F> {
    /// No neighbours. At most `max` are remembered, and `queue` frames wait for each.
    pub const fn new(seed: u64, max: usize, queue: usize) -> Self {
        Self {
            links: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            asking: Vec::new(),
            queue,
            max,
            seed,
        }
    }

    #[inline]
    fn find(&self, interface: u16, address: IpAddr) -> Option<u32> {
        let link = self.links.get(interface as usize)?;
        match address {
            IpAddr::V4(address) => link.v4.get(&address.into()),
            IpAddr::V6(address) => link.v6.get(&address.into()),
        }
    }

    /// A neighbour's MAC address.
    #[inline]
    pub fn mac(&self, interface: u16, address: IpAddr) -> Option<MacAddr> {
        let index = self.find(interface, address)?;
        self.entries.get(index as usize)?.as_ref()?.mac
    }

    fn create(&mut self, interface: u16, address: IpAddr) -> Option<u32> {
        if self.entries.len() - self.free.len() >= self.max {
            return None;
        }
        while self.links.len() <= interface as usize {
            let seed = self.seed ^ self.links.len() as u64;
            self.links.push(Link { v4: BulkMap::new(seed), v6: BulkMap::new(seed) });
        }
        let index = self.free.last().copied().unwrap_or(self.entries.len() as u32);
        let link = self.links.get_mut(interface as usize)?;
        match address {
            IpAddr::V4(address) => link.v4.insert(address.into(), index).ok()?,
            IpAddr::V6(address) => link.v6.insert(address.into(), index).ok()?,
        };
        let entry =
            Entry { interface, address, mac: None, frames: VecDeque::new(), tries: 0, next: Nanos(0) };
        if self.free.pop().is_some() {
            *self.entries.get_mut(index as usize)? = Some(entry);
        } else {
            self.entries.push(Some(entry));
        }
        Some(index)
    }

    fn remove(&mut self, index: u32) -> Option<Entry<F>> {
        let entry = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        if let Some(link) = self.links.get_mut(entry.interface as usize) {
            match entry.address {
                IpAddr::V4(address) => link.v4.remove(&address.into()),
                IpAddr::V6(address) => link.v6.remove(&address.into()),
            };
        }
        Some(entry)
    }

    /// A neighbour said where it is. `Some` if that is news, with the frames that waited for it. If it is
    /// not known and `create` is false (nobody here wanted it), nothing happens.
    pub fn learn(
        &mut self,
        interface: u16,
        address: IpAddr,
        mac: MacAddr,
        create: bool,
    ) -> Option<VecDeque<F>> {
        let index = match self.find(interface, address) {
            Some(index) => index,
            None if create => self.create(interface, address)?,
            None => return None,
        };
        let entry = self.entries.get_mut(index as usize)?.as_mut()?;
        if entry.mac == Some(mac) {
            return None;
        }
        entry.mac = Some(mac);
        entry.tries = 0;
        let frames = std::mem::take(&mut entry.frames);
        self.asking.retain(|asking| *asking != index);
        Some(frames)
    }

    /// Keeps a frame until the neighbour's MAC address is known.
    pub fn hold(&mut self, interface: u16, address: IpAddr, frame: F, now: Nanos) -> Held<F> {
        let Some(index) = self.find(interface, address).or_else(|| self.create(interface, address)) else {
            return Held::Refused(frame);
        };
        let Some(Some(entry)) = self.entries.get_mut(index as usize) else { return Held::Refused(frame) };
        if entry.frames.len() >= self.queue {
            return Held::Refused(frame);
        }
        entry.frames.push_back(frame);
        if entry.tries > 0 {
            return Held::Waits;
        }
        entry.tries = 1;
        entry.next = now.plus(INTERVAL);
        self.asking.push(index);
        Held::Ask
    }

    /// What has to be done now for one neighbour; `None`: nothing more. Call until it says so.
    pub fn due(&mut self, now: Nanos) -> Option<Due<F>> {
        let place = self.asking.iter().position(|index| {
            let entry = self.entries.get(*index as usize).and_then(Option::as_ref);
            entry.is_none_or(|entry| entry.next <= now)
        })?;
        let index = *self.asking.get(place)?;
        let Some(Some(entry)) = self.entries.get_mut(index as usize) else {
            self.asking.swap_remove(place);
            return self.due(now);
        };
        if entry.tries < TRIES {
            entry.tries += 1;
            entry.next = now.plus(INTERVAL);
            return Some(Due::Ask(entry.interface, entry.address));
        }
        self.asking.swap_remove(place);
        self.remove(index).map(|entry| Due::Lost(entry.frames))
    }

    /// Everything that waits, to be dropped: the network changed and interfaces may mean something else now.
    /// Known neighbours are forgotten too.
    pub fn clear(&mut self) -> Vec<F> {
        let frames = self.entries.drain(..).flatten().flat_map(|entry| entry.frames).collect();
        self.links.clear();
        self.free.clear();
        self.asking.clear();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 9));

    #[test]
    fn frames_wait_and_are_set_free_in_order() {
        let mut neighbours: Neighbours<u8> = Neighbours::new(7, 10, 2);
        let now = Nanos(1);
        assert_eq!(neighbours.hold(0, PEER, 1, now), Held::Ask);
        assert_eq!(neighbours.hold(0, PEER, 2, now), Held::Waits);
        assert_eq!(neighbours.hold(0, PEER, 3, now), Held::Refused(3));
        assert_eq!(neighbours.mac(0, PEER), None);
        let mac = MacAddr([2; 6]);
        assert!(neighbours.learn(1, PEER, mac, false).is_none(), "another link's");
        assert_eq!(neighbours.learn(0, PEER, mac, false), Some(VecDeque::from([1, 2])));
        assert!(neighbours.learn(0, PEER, mac, false).is_none(), "no news");
        assert_eq!(neighbours.mac(0, PEER), Some(mac));
        assert!(neighbours.due(Nanos(u64::MAX)).is_none());
    }

    #[test]
    fn silence_loses_the_frames() {
        let mut neighbours: Neighbours<u8> = Neighbours::new(7, 1, 2);
        neighbours.hold(0, PEER, 1, Nanos(0));
        assert_eq!(neighbours.hold(0, IpAddr::from([1, 2, 3, 4]), 9, Nanos(0)), Held::Refused(9), "no room");
        for second in 1..=2 {
            let now = Nanos(second * Nanos::SECOND);
            assert!(matches!(neighbours.due(now), Some(Due::Ask(0, address)) if address == PEER));
            assert!(neighbours.due(now).is_none());
        }
        assert!(matches!(neighbours.due(Nanos(3 * Nanos::SECOND)), Some(Due::Lost(frames)) if frames == [1]));
        assert!(neighbours.due(Nanos(9 * Nanos::SECOND)).is_none());
        assert_eq!(neighbours.hold(0, PEER, 1, Nanos(0)), Held::Ask, "and may try again");
    }
}
