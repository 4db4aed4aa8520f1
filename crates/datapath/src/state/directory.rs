//! Where the exceptions are: TEIDs that an SMF chose, and addresses that don't hash to their session's shard.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::Teid;
use session::{PrefixLengths, SessionRef, TeidKey, TeidRef};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::BulkMap;

/// A worker's directories. Every worker has the same, whatever shards it owns.
#[derive(Debug)]
pub struct Directory {
    key: TeidKey,
    lengths: PrefixLengths,
    teids: BulkMap<u32, u32>,
    hosts: BulkMap<u32, u64, 5>,
    /// Keys of UEs' prefixes.
    halves: BulkMap<u64, u64, 3>,
    prefixes: HashMap<IpNet, u64>,
    /// How many entries of `prefixes` have this length, by family.
    lengths4: [u32; 33],
    lengths6: [u32; 129],
}

impl Directory {
    /// Empty directories. The seed should be random.
    /// `key`: what TEIDs of our own making are sealed with. `lengths`: how much of an IPv6 address is its key.
    pub fn new(seed: u64, key: TeidKey, lengths: PrefixLengths) -> Self {
        Self {
            key,
            lengths,
            teids: BulkMap::new(seed),
            hosts: BulkMap::new(seed ^ 1),
            halves: BulkMap::new(seed ^ 2),
            prefixes: HashMap::new(),
            lengths4: [0; 33],
            lengths6: [0; 129],
        }
    }

    /// A TEID leads to this place, or no longer does.
    pub fn set_teid(&mut self, teid: Teid, place: Option<TeidRef>) {
        match place {
            Some(place) => {
                let value = (place.shard.index() as u32) << 16 | place.slot as u32;
                let _ = self.teids.insert(teid.0, value);
            }
            None => {
                self.teids.remove(&teid.0);
            }
        }
    }

    /// The shard and slot of a tunnel.
    #[inline(always)]
    pub fn teid(&self, teid: u32) -> (u16, u16) {
        if !self.teids.is_empty()
            && let Some(value) = self.teids.get(&teid)
        {
            return ((value >> 16) as u16, value as u16);
        }
        let place = TeidRef::of(self.key.open(Teid(teid)));
        (place.shard.index() as u16, place.slot)
    }

    /// An address or a prefix leads to this session, or no longer does.
    pub fn set_prefix(&mut self, prefix: IpNet, session: Option<SessionRef>) {
        let prefix = prefix.trunc();
        let value = session.map(pack);
        match (prefix, value) {
            (IpNet::V4(net), Some(value)) if net.prefix_len() == 32 => {
                let _ = self.hosts.insert(net.network().into(), value);
            }
            (IpNet::V4(net), None) if net.prefix_len() == 32 => {
                self.hosts.remove(&net.network().into());
            }
            (IpNet::V6(net), value) if let Some(key) = self.lengths.key_of(net) => match value {
                Some(value) => drop(self.halves.insert(key, value)),
                None => drop(self.halves.remove(&key)),
            },
            (_, Some(value)) => {
                if self.prefixes.insert(prefix, value).is_none()
                    && let Some(n) = self.count(prefix)
                {
                    *n += 1;
                }
            }
            (_, None) => {
                if self.prefixes.remove(&prefix).is_some()
                    && let Some(n) = self.count(prefix)
                {
                    *n -= 1;
                }
            }
        }
    }

    fn count(&mut self, prefix: IpNet) -> Option<&mut u32> {
        match prefix {
            IpNet::V4(net) => self.lengths4.get_mut(net.prefix_len() as usize),
            IpNet::V6(net) => self.lengths6.get_mut(net.prefix_len() as usize),
        }
    }

    /// The shard and slot of a session, by IPv4 address.
    #[inline(always)]
    pub fn ipv4(&self, address: u32) -> Option<(u16, u32)> {
        if !self.hosts.is_empty()
            && let Some(value) = self.hosts.get(&address)
        {
            return Some(unpack(value));
        }
        if self.prefixes.is_empty() { None } else { self.longest4(address) }
    }

    #[inline(never)]
    fn longest4(&self, address: u32) -> Option<(u16, u32)> {
        let lengths = self.lengths4.iter().enumerate().rev().filter(|(_, n)| **n > 0);
        let mut found = lengths.filter_map(|(length, _)| {
            let net = Ipv4Net::new(Ipv4Addr::from(address), length as u8).ok()?.trunc();
            self.prefixes.get(&IpNet::V4(net)).copied()
        });
        found.next().map(unpack)
    }

    /// The shard and slot of a session, by the key of an IPv6 address; `whole` tells the address if a prefix of another length than UEs'
    /// has to be tried.
    #[inline(always)]
    pub fn ipv6(&self, half: u64, whole: impl FnOnce() -> u128) -> Option<(u16, u32)> {
        if !self.halves.is_empty()
            && let Some(value) = self.halves.get(&half)
        {
            return Some(unpack(value));
        }
        if self.prefixes.is_empty() { None } else { self.longest6(whole()) }
    }

    #[inline(never)]
    fn longest6(&self, address: u128) -> Option<(u16, u32)> {
        let lengths = self.lengths6.iter().enumerate().rev().filter(|(_, n)| **n > 0);
        let mut found = lengths.filter_map(|(length, _)| {
            let net = Ipv6Net::new(Ipv6Addr::from(address), length as u8).ok()?.trunc();
            self.prefixes.get(&IpNet::V6(net)).copied()
        });
        found.next().map(unpack)
    }
}

const fn unpack(value: u64) -> (u16, u32) {
    ((value >> 32) as u16, value as u32)
}

/// Where a session is, as one number: shard above, slot below.
const fn pack(place: SessionRef) -> u64 {
    (place.shard.index() as u64) << 32 | place.slot as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use session::ShardId;

    #[test]
    fn exceptions_come_before_the_rule() {
        let mut directory = Directory::new(7, TeidKey::default(), PrefixLengths::default());
        let own = TeidRef { shard: ShardId::from_hash(5), slot: 77 };
        assert_eq!(directory.teid(own.teid(3).0), (5, 77));
        directory.set_teid(Teid(0x1234), Some(TeidRef { shard: ShardId::from_hash(9), slot: 7232 }));
        assert_eq!(directory.teid(0x1234), (9, 7232));
        directory.set_teid(Teid(0x1234), None);
        assert_eq!(directory.teid(0x1234), (0, 0x1234));
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut directory = Directory::new(7, TeidKey::default(), PrefixLengths::default());
        let place = |slot| SessionRef { shard: ShardId::from_hash(500), slot };
        let mut set = |prefix: &str, slot: Option<u32>| {
            directory.set_prefix(prefix.parse().unwrap(), slot.map(place));
        };
        set("10.0.0.0/8", Some(1));
        set("10.1.0.0/16", Some(2));
        set("10.1.1.1/32", Some(3));
        set("2001:db8::/32", Some(4));
        set("2001:db8:0:7::/64", Some(5));
        set("10.1.0.0/16", Some(6));
        set("10.0.0.0/8", None);
        let v4 = |a: [u8; 4]| directory.ipv4(u32::from_be_bytes(a)).map(|(_, slot)| slot);
        assert_eq!(v4([10, 1, 1, 1]), Some(3));
        assert_eq!(v4([10, 1, 1, 2]), Some(6));
        assert_eq!(v4([10, 2, 1, 2]), None);
        let v6 = |half: u64| directory.ipv6(half, || u128::from(half) << 64);
        assert_eq!(v6(0x2001_0db8_0000_0007), Some((500, 5)));
        assert_eq!(v6(0x2001_0db8_0000_0008), Some((500, 4)));
        assert_eq!(v6(0x2001_0db9_0000_0008), None);
    }
}
