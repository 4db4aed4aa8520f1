//! The far ends of tunnels: gNBs, other UPFs, the SMF. Each has its outer headers made in advance.
//!
//! A record names its peer by a small index that means something in one worker only. Peers are counted by the
//! FARs that use them and forgotten with the last one; when the network changes, all headers are made anew.

use crate::egress::Egress;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// All peers of one worker.
#[derive(Debug)]
pub struct Peers {
    peers: Vec<Peer>,
    by_address: HashMap<IpAddr, u16>,
    free: Vec<u16>,
    max: u16,
}

impl Peers {
    /// None yet, and never more than `max` (at most 65,535).
    pub fn new(max: u16) -> Self {
        Self { peers: Vec::new(), by_address: HashMap::new(), free: Vec::new(), max }
    }

    /// One more user of this peer; `make` finds the way to a new one. `None`: the table is full.
    pub fn acquire(
        &mut self,
        address: IpAddr,
        make: impl FnOnce() -> Option<(Egress, Outer)>,
    ) -> Option<u16> {
        if let Some(index) = self.by_address.get(&address) {
            self.peers.get_mut(*index as usize)?.references += 1;
            return Some(*index);
        }
        if self.by_address.len() >= self.max as usize {
            return None;
        }
        let peer = build(address, make());
        let index = if let Some(index) = self.free.pop() {
            *self.peers.get_mut(index as usize)? = peer;
            index
        } else {
            self.peers.push(peer);
            (self.peers.len() - 1) as u16
        };
        self.by_address.insert(address, index);
        Some(index)
    }

    /// One user less.
    pub fn release(&mut self, index: u16) {
        if let Some(peer) = self.peers.get_mut(index as usize)
            && peer.references > 0
        {
            peer.references -= 1;
            if peer.references == 0 {
                self.by_address.remove(&peer.address);
                self.free.push(index);
            }
        }
    }

    /// One user less of each.
    pub fn release_all(&mut self, indices: &[u16]) {
        for index in indices {
            self.release(*index);
        }
    }

    /// The peer with this index.
    #[inline(always)]
    pub fn get(&self, index: u16) -> Option<&Peer> {
        self.peers.get(index as usize)
    }

    /// Finds the way to every peer anew.
    pub fn rebuild(&mut self, mut make: impl FnMut(IpAddr) -> Option<(Egress, Outer)>) {
        for peer in self.peers.iter_mut().filter(|peer| peer.references > 0) {
            *peer = Peer { references: peer.references, ..build(peer.address, make(peer.address)) };
        }
    }

    /// The ways to the peers, to put in a MAC address that became known.
    pub fn egresses(&mut self) -> impl Iterator<Item = &mut Egress> {
        self.peers.iter_mut().filter_map(|peer| peer.egress.as_mut())
    }
}

fn build(address: IpAddr, way: Option<(Egress, Outer)>) -> Peer {
    match way {
        Some((egress, outer)) => Peer { address, references: 1, egress: Some(egress), outer },
        None => Peer { address, references: 1, egress: None, outer: Outer::V4 { template: [0; 44], sum: 0 } },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn peers_are_counted_and_their_places_used_again() {
        let mut peers = Peers::new(2);
        let [a, b, c] = [1u8, 2, 3].map(|n| IpAddr::from([192, 0, 2, n]));
        let first = peers.acquire(a, || None).unwrap();
        assert_eq!(peers.acquire(a, || None), Some(first));
        let second = peers.acquire(b, || None).unwrap();
        assert_ne!(first, second);
        assert_eq!(peers.acquire(c, || None), None);
        peers.release(first);
        assert_eq!(peers.acquire(c, || None), None, "one user is left");
        peers.release(first);
        assert_eq!(peers.acquire(c, || None), Some(first));
        assert_eq!(peers.get(first).unwrap().address, c);
        assert_eq!(peers.by_address.len(), 2);
        peers.release(9);
    }

    #[test]
    fn families_do_not_mix() {
        assert!(Outer::new([1, 2, 3, 4].into(), std::net::Ipv6Addr::LOCALHOST.into()).is_none());
    }
}
