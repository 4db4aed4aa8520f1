//! The ways to hosts on the links that packets went to lately: what a route onto a link costs beside one through a router.
//!
//! **Problem.** A router's way stands where the route leads. A host on the link has to be looked up by its address first, in a map
//! and then among all neighbours with their states and queues: two or three lines more for each packet, and the map's hash.
//!
//! **Model.** The way, the address that it belongs to and the neighbour's number are one line, in a place that the address gives. Two
//! hosts may want the same place; then the map is asked in turn, which is right, but slower. Whoever changes a neighbour
//! takes its line away.

use crate::egress::Egress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tables::hash::mix;

/// Lines: of a hundred hosts, two or three have to share one.
const LINES: usize = 2048;
/// In a line's number: packets went this way since it was last looked at.
const USED: u32 = 1 << 31;

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
pub struct Near(Box<[Line]>);

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

#[inline(always)]
const fn place(key: u128) -> usize {
    mix(key as u64 ^ (key >> 64) as u64, 0x9e37_79b9_7f4a_7c15) as usize % LINES
}

impl Near {
    /// None.
    pub fn new() -> Self {
        Self(vec![Line { key: 0, number: 0, way: None }; LINES].into())
    }

    /// Whether the way to a host on an interface's link is here.
    #[inline(always)]
    pub fn has(&self, interface: u16, key: u128) -> bool {
        let line = self.0.get(place(key)).filter(|line| line.key == key);
        line.and_then(|line| line.way.as_ref()).is_some_and(|way| way.interface == interface)
    }

    /// The way to a host on an interface's link, to send a packet there.
    #[inline(always)]
    pub fn take(&mut self, interface: u16, key: u128) -> Option<&Egress> {
        let line = self.0.get_mut(place(key)).filter(|line| line.key == key)?;
        let way = line.way.as_ref().filter(|way| way.interface == interface)?;
        if line.number & USED == 0 {
            line.number |= USED;
        }
        Some(way)
    }

    /// Enters the way to the neighbour with this number. Says who had to leave, if packets went there since it was last looked at.
    pub fn put(&mut self, way: &Egress, number: u32) -> Option<u32> {
        let key = key(way.target);
        let line = self.0.get_mut(place(key))?;
        let before = std::mem::replace(line, Line { key, number, way: Some(*way) });
        (before.way.is_some() && before.number & USED != 0).then_some(before.number & !USED)
    }

    fn of(&mut self, way: &Egress) -> Option<&mut Line> {
        let key = key(way.target);
        let line = self.0.get_mut(place(key)).filter(|line| line.key == key)?;
        line.way.is_some_and(|known| known.interface == way.interface).then_some(line)
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
        self.0.iter_mut().for_each(|line| line.way = None);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::net::{Interface, Roles};
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
        let mut near = Near::new();
        let hosts: Vec<IpAddr> =
            (1..=8000u32).map(|n| std::net::Ipv4Addr::from(0x0a00_0000 + n).into()).collect();
        let mut displaced = 0;
        for (number, host) in (0..).zip(&hosts) {
            displaced += usize::from(near.put(&way(0, *host), number).is_some());
            assert!(near.take(1, key(*host)).is_none(), "another link's");
            assert_eq!(near.take(0, key(*host)).unwrap().target, *host);
        }
        let left: Vec<_> = hosts.iter().filter(|host| near.take(0, key(**host)).is_some()).collect();
        assert_eq!(displaced, 8000 - left.len(), "all were used");
        let one = way(0, *left[0]);
        assert!(near.was_used(&one) && !near.was_used(&one));
        near.forget(&way(1, one.target));
        assert!(near.take(0, key(one.target)).is_some());
        near.forget(&one);
        assert!(near.take(0, key(one.target)).is_none());
        near.clear();
        assert!(hosts.iter().all(|host| near.take(0, key(*host)).is_none()));
    }

    #[test]
    fn families_do_not_mix() {
        let mut near = Near::new();
        near.put(&way(0, [192, 0, 2, 1].into()), 1);
        for text in ["::ffff:192.0.2.1", "::192.0.2.1"] {
            assert!(near.take(0, key(text.parse::<Ipv6Addr>().unwrap().into())).is_none());
        }
    }
}
