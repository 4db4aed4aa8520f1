//! The far ends of tunnels: gNBs, other UPFs, the SMF. Each has its outer headers made in advance.
//!
//! A record names its peer by a small number, which is the same in all workers, so that a shard moves from one to another
//! without a look at its sessions. Peers are counted by the FARs that use them and forgotten with the last one; when the
//! network changes, all headers are made anew.

use crate::network::egress::Egress;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// No peer.
pub const NO_PEER: u16 = u16::MAX;

/// A far end and the headers in front of everything that is sent to it.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    references: u32,
    /// The way there; `None`: there is no route, or no source address for it.
    pub egress: Option<Egress>,
    /// What comes behind layer 2.
    pub outer: Outer,
}

/// Outer IP and UDP headers with an empty GTP-U header behind them, all but lengths, TEID and checksum filled in.
#[derive(Debug, Clone, Copy)]
pub enum Outer {
    /// IPv4, UDP, GTP-U with a PDU session container.
    V4 {
        /// The headers.
        template: [u8; 44],
        /// Sum of the IPv4 header's constant words.
        sum: u32,
    },
    /// IPv6 likewise.
    V6 {
        /// The headers.
        template: [u8; 64],
    },
}

impl Outer {
    /// From our address to the peer's, which is of the same family.
    pub fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        let port = packet::GTP_U_PORT.to_be_bytes();
        let [p0, p1] = port;
        let udp = [p0, p1, p0, p1, 0, 0, 0, 0];
        // GTPv1, protocol type GTP, extension header; G-PDU. Then the optional word, which announces a container.
        let gtpu = [0x34, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x85, 1, 0, 0, 0];
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut template = [0; 44];
                // TTL 64; DF clear, because a smaller MTU further on must not lose packets silently.
                let start = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
                let parts = [&start[..], &source.octets(), &destination.octets(), &udp, &gtpu];
                copy(&mut template, &parts.concat());
                let words = template.as_chunks::<2>().0.iter().take(10);
                let sum = words.map(|word| u16::from_be_bytes(*word) as u32).sum();
                Some(Self::V4 { template, sum })
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut template = [0; 64];
                let start = [0x60, 0, 0, 0, 0, 0, 17, 64];
                let parts = [&start[..], &source.octets(), &destination.octets(), &udp, &gtpu];
                copy(&mut template, &parts.concat());
                Some(Self::V6 { template })
            }
            _ => None,
        }
    }

    /// Our address.
    pub fn source(&self) -> IpAddr {
        match self {
            Self::V4 { template, .. } => {
                let octets = template.get(12..).and_then(|rest| rest.first_chunk::<4>());
                octets.map_or(Ipv4Addr::UNSPECIFIED, |octets| Ipv4Addr::from(*octets)).into()
            }
            Self::V6 { template } => {
                let octets = template.get(8..).and_then(|rest| rest.first_chunk::<16>());
                octets.map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets)).into()
            }
        }
    }

    /// Length of the headers without a container: IP, UDP and the short GTP-U header.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        match self {
            Self::V4 { .. } => 36,
            Self::V6 { .. } => 56,
        }
    }
}

fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// The numbers of all workers' peers. A worker asks for one when a peer is new to it, never for a packet.
#[derive(Debug, Default)]
pub struct Numbers(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    /// The number, and how many workers and travelling shards hold it.
    by_address: HashMap<IpAddr, (u16, u32)>,
    free: Vec<u16>,
}

impl Numbers {
    /// One holder more of the peer's number. `None`: `max` peers have one already.
    fn hold(&self, address: IpAddr, max: u16) -> Option<u16> {
        let mut numbered = self.lock();
        if let Some((number, holders)) = numbered.by_address.get_mut(&address) {
            *holders += 1;
            return Some(*number);
        }
        let used = numbered.by_address.len();
        if used >= max as usize {
            return None;
        }
        // Numbers are dense: as many were given as are used now and free now.
        let number = numbered.free.pop().unwrap_or(used as u16);
        numbered.by_address.insert(address, (number, 1));
        Some(number)
    }

    /// One holder less.
    fn give_up(&self, address: IpAddr) {
        let mut numbered = self.lock();
        let Some((number, holders)) = numbered.by_address.get_mut(&address) else { return };
        let number = *number;
        *holders -= 1;
        if *holders == 0 {
            numbered.by_address.remove(&address);
            numbered.free.push(number);
        }
    }

    /// What a worker that panicked has left is whole: nothing here panics between two changes.
    fn lock(&self) -> MutexGuard<'_, Numbered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The peers that a shard's sessions use: what it takes along when it moves. Holds their numbers until it has arrived.
#[derive(Debug)]
pub(crate) struct Luggage {
    numbers: Arc<Numbers>,
    /// Address, number, and how many FARs use it.
    pub peers: Vec<(IpAddr, u16, u32)>,
}

impl Drop for Luggage {
    fn drop(&mut self) {
        for (address, ..) in &self.peers {
            self.numbers.give_up(*address);
        }
    }
}

/// All peers of one worker.
#[derive(Debug)]
pub struct Peers {
    numbers: Arc<Numbers>,
    /// By number; unused ones have no references.
    peers: Vec<Peer>,
    by_address: HashMap<IpAddr, u16>,
    max: u16,
}

impl Peers {
    /// None yet, and never more than `max` (at most 65,535) in all workers with the same numbers.
    pub fn new(max: u16, numbers: Arc<Numbers>) -> Self {
        Self { numbers, peers: Vec::new(), by_address: HashMap::new(), max }
    }

    /// So many more users of this peer; `make` finds the way to a new one, which is told its number. `None`: the table is full.
    pub fn acquire(
        &mut self,
        address: IpAddr,
        users: u32,
        make: impl FnOnce(u16) -> Option<(Egress, Outer)>,
    ) -> Option<u16> {
        if let Some(number) = self.by_address.get(&address) {
            self.peers.get_mut(*number as usize)?.references += users;
            return Some(*number);
        }
        let number = self.numbers.hold(address, self.max)?;
        if self.peers.len() <= number as usize {
            self.peers.resize_with(number as usize + 1, || build(address, 0, None));
        }
        if let Some(place) = self.peers.get_mut(number as usize) {
            *place = build(address, users, make(number));
        }
        self.by_address.insert(address, number);
        Some(number)
    }

    /// So many users less.
    pub fn release(&mut self, number: u16, users: u32) {
        if let Some(peer) = self.peers.get_mut(number as usize)
            && peer.references > 0
        {
            peer.references = peer.references.saturating_sub(users);
            if peer.references == 0 {
                self.by_address.remove(&peer.address);
                self.numbers.give_up(peer.address);
            }
        }
    }

    /// One user less of each.
    pub fn release_all(&mut self, numbers: &[u16]) {
        for number in numbers {
            self.release(*number, 1);
        }
    }

    /// Packs what a shard takes along, and forgets that it used it here.
    pub(crate) fn pack(&mut self, uses: impl Iterator<Item = (u16, u32)>) -> Luggage {
        let mut luggage = Luggage { numbers: Arc::clone(&self.numbers), peers: Vec::new() };
        for (number, users) in uses {
            let Some(address) = self.get(number).map(|peer| peer.address) else { continue };
            if self.numbers.hold(address, self.max).is_some() {
                luggage.peers.push((address, number, users));
            }
            self.release(number, users);
        }
        luggage
    }

    /// The number of a peer that is used here.
    pub(crate) fn number(&self, address: IpAddr) -> Option<u16> {
        self.by_address.get(&address).copied()
    }

    /// The peer with this number.
    #[inline(always)]
    pub fn get(&self, number: u16) -> Option<&Peer> {
        self.peers.get(number as usize)
    }

    /// Finds the way to every peer anew.
    pub fn rebuild(&mut self, mut make: impl FnMut(u16, IpAddr) -> Option<(Egress, Outer)>) {
        for (number, peer) in (0..).zip(&mut self.peers).filter(|(_, peer)| peer.references > 0) {
            *peer = build(peer.address, peer.references, make(number, peer.address));
        }
    }

    /// The way to a peer that is used, to put in a MAC address that became known.
    pub fn egress_mut(&mut self, number: u16) -> Option<&mut Egress> {
        let used = self.peers.get_mut(number as usize).filter(|peer| peer.references > 0);
        used.and_then(|peer| peer.egress.as_mut())
    }

    /// The way to a peer that is used.
    pub fn egress(&self, number: u16) -> Option<&Egress> {
        let used = self.peers.get(number as usize).filter(|peer| peer.references > 0);
        used.and_then(|peer| peer.egress.as_ref())
    }
}

fn build(address: IpAddr, references: u32, way: Option<(Egress, Outer)>) -> Peer {
    let (egress, outer) = way.unzip();
    let outer = outer.unwrap_or(Outer::V4 { template: [0; 44], sum: 0 });
    Peer { address, references, egress, outer }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn peers_are_counted_and_their_places_used_again() {
        let mut peers = Peers::new(2, Arc::default());
        let [a, b, c] = [1u8, 2, 3].map(|n| IpAddr::from([192, 0, 2, n]));
        let first = peers.acquire(a, 1, |_| None).unwrap();
        assert_eq!(peers.acquire(a, 1, |_| None), Some(first));
        let second = peers.acquire(b, 1, |_| None).unwrap();
        assert_ne!(first, second);
        assert_eq!(peers.acquire(c, 1, |_| None), None);
        peers.release(first, 1);
        assert_eq!(peers.acquire(c, 1, |_| None), None, "one user is left");
        peers.release(first, 1);
        assert_eq!(peers.acquire(c, 1, |_| None), Some(first));
        assert_eq!(peers.get(first).unwrap().address, c);
        assert_eq!(peers.by_address.len(), 2);
        peers.release(9, 1);
    }

    #[test]
    fn a_number_means_the_same_everywhere_as_long_as_anybody_holds_it() {
        let numbers = Arc::new(Numbers::default());
        let [mut left, mut right] = [(); 2].map(|()| Peers::new(8, Arc::clone(&numbers)));
        let [a, b] = [1u8, 2].map(|n| IpAddr::from([192, 0, 2, n]));
        let number = left.acquire(a, 3, |_| None).unwrap();
        let other = right.acquire(b, 1, |_| None).unwrap();
        assert_ne!(number, other);
        // Nobody but the luggage knows it now, and nobody else gets its number.
        let luggage = left.pack([(number, 3)].into_iter());
        assert!(left.by_address.is_empty());
        assert_ne!(right.acquire([192, 0, 2, 9].into(), 1, |_| None), Some(number));
        assert_eq!(luggage.peers, [(a, number, 3)]);
        assert_eq!(right.acquire(a, 3, |_| None), Some(number));
        drop(luggage);
        right.release(number, 2);
        assert_eq!(left.acquire(a, 1, |_| None), Some(number));
        left.release(number, 1);
        right.release(number, 1);
        assert_eq!(numbers.lock().by_address.len(), 2);
    }

    #[test]
    fn families_do_not_mix() {
        assert!(Outer::new([1, 2, 3, 4].into(), std::net::Ipv6Addr::LOCALHOST.into()).is_none());
    }
}
