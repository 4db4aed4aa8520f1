//! The ways to hosts on the links that packets went to lately: what a route onto a link costs beside one through a router.
//!
//! **Problem.** A router's way stands where the route leads. A host on the link has to be looked up by its address first, in a map
//! and then among all neighbours with their states and queues: two or three lines more for each packet, and the map's hash.
//!
//! **Model.** The way, the address that it belongs to and the neighbour's number are one line, one of two in a place that the address gives.
//! Where more than two hosts want the same place, the map is asked in turn, which is right, but slower. Whoever changes a neighbour
//! takes its line away.
//!
//! **Cost.** Places lie in the second-level cache, and a packet's further work doesn't wait for its own: the processor overlaps packets
//! by itself. A phase of its own, which found a burst's routes and fetched their places before the first packet was served, was measured with
//! 1,024 hosts and 1,000 and 65,536 sessions (uplink, medians of six runs in turn with and without): IPv4 203 and 219 cycles instead of
//! 192 and 209, IPv6 234 and 247 instead of 236 and 246. So there is none.

use crate::network::egress::Egress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tables::hash::mix;

/// Places: at most half a megabyte, of which what is used comes into cache. Of a thousand hosts, one has to wait for its turn.
const MOST_PLACES: usize = 4096;
/// In a line's number: packets went this way since it was last looked at.
const USED: u32 = 1 << 31;

/// One of the two lines in a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    place: usize,
    second: bool,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    key: u128,
    number: u32,
    way: Option<Egress>,
}

const _: () = assert!(size_of::<Line>() == 64, "a way is one cache line");

/// See the module's documentation.
#[derive(Debug)]
pub struct Near(Box<[[Line; 2]]>);

/// What a host is found by. No host has an IPv6 address that begins as those of IPv4 do here: that is a multicast group's.
pub const fn key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => key_v4(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Likewise.
#[inline(always)]
pub const fn key_v4(address: u32) -> u128 {
    0xff << 120 | address as u128
}

/// The address of a host that may be sent to by its destination alone: no group's, and none that is of one link only.
pub fn address(key: u128) -> Option<IpAddr> {
    if key >> 32 == key_v4(0) >> 32 {
        return Some(Ipv4Addr::from_bits(key as u32).into());
    }
    let address = Ipv6Addr::from_bits(key);
    (!address.is_multicast() && !session::rules::is_link_local(address)).then_some(address.into())
}

const EMPTY: Line = Line { key: 0, number: 0, way: None };

impl Line {
    #[inline(always)]
    fn leads_to(&self, interface: u16, key: u128) -> bool {
        self.key == key && self.way.as_ref().is_some_and(|way| way.interface == interface)
    }
}

impl Near {
    /// None, and places for so many, as far as that is reasonable.
    pub fn new(hosts: usize) -> Self {
        Self(vec![[EMPTY; 2]; hosts.min(MOST_PLACES).next_power_of_two()].into())
    }

    /// Places for so many, if there are fewer: then none is in them yet.
    pub fn make_room(&mut self, hosts: usize) {
        let roomier = Self::new(hosts);
        if roomier.0.len() > self.0.len() {
            *self = roomier;
        }
    }

    #[inline(always)]
    const fn place(&self, key: u128) -> usize {
        // A power of two.
        mix(key as u64 ^ (key >> 64) as u64, 0x9e37_79b9_7f4a_7c15) as usize & (self.0.len() - 1)
    }

    /// Where the way to a host on an interface's link is, if it is here.
    #[inline(always)]
    pub fn find(&self, interface: u16, key: u128) -> Option<Spot> {
        let place = self.place(key);
        let [first, second] = self.0.get(place)?;
        if first.leads_to(interface, key) {
            return Some(Spot { place, second: false });
        }
        second.leads_to(interface, key).then_some(Spot { place, second: true })
    }

    #[inline(always)]
    fn line(&mut self, spot: Spot) -> Option<&mut Line> {
        self.0.get_mut(spot.place).map(|[first, second]| if spot.second { second } else { first })
    }

    /// The way that is here, to send a packet there.
    #[inline(always)]
    pub fn take(&mut self, spot: Spot) -> Option<&Egress> {
        let line = self.line(spot)?;
        if line.number & USED == 0 {
            line.number |= USED;
        }
        line.way.as_ref()
    }

    /// Enters the way to the neighbour with this number, and says where. And who had to leave, if packets went there since it was last
    /// looked at.
    pub fn put(&mut self, way: &Egress, number: u32) -> Option<(Spot, Option<u32>)> {
        let key = key(way.target);
        let place = self.place(key);
        let lines = self.0.get_mut(place)?;
        let idle = |line: &Line| line.way.is_none() || line.number & USED == 0;
        // Where nobody sends to; else the first makes room, which came before the second.
        let second = match lines {
            [first, second] if !idle(first) => {
                if !idle(second) {
                    std::mem::swap(first, second);
                }
                true
            }
            _ => false,
        };
        let spot = Spot { place, second };
        let before = std::mem::replace(self.line(spot)?, Line { key, number, way: Some(*way) });
        let gone = (before.way.is_some() && before.number & USED != 0).then_some(before.number & !USED);
        Some((spot, gone))
    }

    fn of(&mut self, way: &Egress) -> Option<&mut Line> {
        self.line(self.find(way.interface, key(way.target))?)
    }

    /// Whether packets went this way since this was last asked.
    pub fn was_used(&mut self, way: &Egress) -> bool {
        self.of(way).is_some_and(|line| {
            let used = line.number & USED != 0;
            line.number &= !USED;
            used
        })
    }

    /// The way is another one now, or none.
    pub fn forget(&mut self, way: &Egress) {
        if let Some(line) = self.of(way) {
            line.way = None;
        }
    }

    /// All ways are.
    pub fn clear(&mut self) {
        self.0.iter_mut().flatten().for_each(|line| line.way = None);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::network::interface::{Interface, Roles};
    use packet::MacAddr;

    fn way(index: u16, target: IpAddr) -> Egress {
        let link = Interface {
            name: "n6".into(),
            port: 0,
            vlan: None,
            mac: MacAddr([2; 6]),
            mtu: 1500,
            roles: Roles::default(),
            addresses: Vec::new(),
            network_instances: Vec::new(),
        };
        Egress::new(index, &link, target, Some([2, 0, 0, 0, 0, 9]))
    }

    #[test]
    fn a_line_is_one_hosts_until_another_wants_its_place() {
        let mut near = Near::new(1 << 20);
        let hosts: Vec<IpAddr> =
            (1..=20_000u32).map(|n| std::net::Ipv4Addr::from(0x0a00_0000 + n).into()).collect();
        let mut displaced = 0;
        for (number, host) in (0..).zip(&hosts) {
            let (spot, gone) = near.put(&way(0, *host), number).unwrap();
            displaced += usize::from(gone.is_some());
            assert!(near.find(1, key(*host)).is_none(), "another link's");
            assert_eq!(near.find(0, key(*host)), Some(spot));
            assert_eq!(near.take(spot).unwrap().target, *host);
        }
        let left: Vec<_> = hosts.iter().filter(|host| near.find(0, key(**host)).is_some()).collect();
        assert_eq!(displaced, hosts.len() - left.len(), "all were used");
        assert!(left.len() > 7_000, "{} of 8,192 lines are taken", left.len());
        let one = way(0, *left[0]);
        assert!(near.was_used(&one) && !near.was_used(&one));
        near.forget(&way(1, one.target));
        assert!(near.find(0, key(one.target)).is_some());
        near.forget(&one);
        assert!(near.find(0, key(one.target)).is_none());
        near.clear();
        assert!(hosts.iter().all(|host| near.find(0, key(*host)).is_none()));
    }

    #[test]
    fn more_hosts_get_more_places() {
        let mut near = Near::new(5);
        near.make_room(3);
        assert_eq!(near.0.len(), 8);
        near.make_room(100);
        assert_eq!(near.0.len(), 128);
        near.make_room(usize::MAX);
        assert_eq!(near.0.len(), MOST_PLACES);
    }

    #[test]
    fn two_hosts_share_a_place_and_a_third_takes_that_of_who_is_idle_or_came_first() {
        // There is one place.
        let mut near = Near::new(1);
        let host = |n: u8| IpAddr::from([203, 0, 113, n]);
        let known = |near: &Near, all: &[u8]| {
            (1..9).all(|n| near.find(0, key(host(n))).is_some() == all.contains(&n))
        };
        for n in [1, 2] {
            let (spot, gone) = near.put(&way(0, host(n)), n.into()).unwrap();
            assert!(gone.is_none() && near.take(spot).is_some());
        }
        assert!(known(&near, &[1, 2]));
        assert_eq!(near.put(&way(0, host(3)), 3).unwrap().1, Some(1), "both were used");
        assert!(known(&near, &[2, 3]));
        assert_eq!(near.put(&way(0, host(4)), 4).unwrap().1, None, "nobody sent to it");
        assert!(known(&near, &[2, 4]));
        assert!(near.was_used(&way(0, host(2))));
        let (spot, _) = near.put(&way(0, host(5)), 5).unwrap();
        assert!(known(&near, &[4, 5]) && near.take(spot).is_some());
        // The same address on two links is two neighbours.
        near.forget(&way(0, host(4)));
        near.put(&way(1, host(5)), 6).unwrap();
        assert!(near.find(0, key(host(5))).is_some() && near.find(1, key(host(5))).is_some());
    }

    #[test]
    fn families_do_not_mix() {
        let mut near = Near::new(1);
        near.put(&way(0, [192, 0, 2, 1].into()), 1);
        for text in ["::ffff:192.0.2.1", "::192.0.2.1"] {
            assert!(near.find(0, key(text.parse::<Ipv6Addr>().unwrap().into())).is_none());
        }
    }
}
