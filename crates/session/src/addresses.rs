//! Who may have which UE address: the pools, and a book of what is held outside of them.
//!
//! An address, prefix or framed route is one session's. Inside a pool that is a bit; outside (an SMF that allocates from
//! ranges that this node wasn't told of) it is an entry of an ordered map of ranges that don't overlap.

use crate::config::{Config, PoolConfig};
use crate::ids::ShardId;
use crate::network_instance::Name;
use crate::pool::{Pool, PoolError, Unavailable};
use crate::prefixes::{PrefixLength, PrefixLengths, upper_half};
use ipnet::{IpNet, Ipv6Net};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address can't be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// Another session holds it, or a range with it in.
    #[error("{0} belongs to another session")]
    Taken(IpNet),
    /// It is the node's own, excluded from its pool, or no unicast address.
    #[error("{0} can't be a UE's")]
    Unusable(IpNet),
    /// No pool serves this name with this family.
    #[error("no pool has addresses of this family")]
    NoPool,
    /// The pool is empty.
    #[error("the pool is exhausted")]
    Exhausted,
}

#[derive(Debug)]
struct Named {
    names: Vec<Name>,
    ipv4: Option<Pool>,
    /// Its numbers are the bits of a prefix of this length.
    ipv6: Option<Pool>,
    length: PrefixLength,
}

/// All UE addresses.
#[derive(Debug)]
pub struct Addresses {
    pools: Vec<Named>,
    /// First address to last address of what is held outside the pools. IPv4 as mapped IPv6.
    outside: BTreeMap<u128, u128>,
    /// The node's own addresses.
    own: Vec<IpAddr>,
    lengths: PrefixLengths,
}

/// The shard of a UE's IPv4 address.
pub fn shard_of_ipv4(address: Ipv4Addr) -> ShardId {
    ShardId::from_hash(hash_ipv4(u32::from(address) as u64))
}

/// The shard of a UE's IPv6 prefix: that of its key.
pub fn shard_of_ipv6(lengths: &PrefixLengths, prefix: Ipv6Net) -> ShardId {
    ShardId::from_hash(packet::rss::ue_hash_prefix64(lengths.key(upper_half(prefix.network()))))
}

fn hash_ipv4(number: u64) -> u32 {
    packet::rss::ue_hash_ipv4(Ipv4Addr::from(number as u32))
}

/// The hash of a key, by its bits without those that the UE disposes of.
fn hash_ipv6<const DELEGATED: u8>(number: u64) -> u32 {
    packet::rss::ue_hash_prefix64(number << DELEGATED)
}

/// By their number.
const HASHES_IPV6: [fn(u64) -> u32; 17] = [
    hash_ipv6::<0>,
    hash_ipv6::<1>,
    hash_ipv6::<2>,
    hash_ipv6::<3>,
    hash_ipv6::<4>,
    hash_ipv6::<5>,
    hash_ipv6::<6>,
    hash_ipv6::<7>,
    hash_ipv6::<8>,
    hash_ipv6::<9>,
    hash_ipv6::<10>,
    hash_ipv6::<11>,
    hash_ipv6::<12>,
    hash_ipv6::<13>,
    hash_ipv6::<14>,
    hash_ipv6::<15>,
    hash_ipv6::<16>,
];

/// Whether two pools have a prefix in common: their numbers may be of different kinds.
fn share_ipv6(one: &PoolConfig, other: &PoolConfig) -> bool {
    one.ipv6.iter().any(|a| other.ipv6.iter().any(|b| a.contains(b) || b.contains(a)))
}

/// A range as numbers of one space.
pub(crate) fn range(net: IpNet) -> (u128, u128) {
    match net {
        IpNet::V4(net) => (net.network().to_ipv6_mapped().into(), net.broadcast().to_ipv6_mapped().into()),
        IpNet::V6(net) => (net.network().into(), net.broadcast().into()),
    }
}

impl Addresses {
    /// Builds the pools.
    pub fn new(config: &Config) -> Result<Self, PoolError> {
        let mut pools: Vec<Named> = Vec::with_capacity(config.pools.len());
        for (pool, others) in
            config.pools.iter().enumerate().map(|(at, pool)| (pool, config.pools.iter().take(at)))
        {
            let named = Self::build(pool)?;
            let overlaps = |a: Option<&Pool>, b: Option<&Pool>| a.zip(b).is_some_and(|(a, b)| a.meets(b));
            if pools.iter().any(|other| overlaps(other.ipv4.as_ref(), named.ipv4.as_ref()))
                || others.into_iter().any(|other| share_ipv6(other, pool))
            {
                return Err(PoolError::Overlap);
            }
            pools.push(named);
        }
        let mut own = config.own.clone();
        let locals = [config.n3, config.n9, config.cp].into_iter();
        for local in locals.chain(config.instances.iter().flat_map(|instance| [instance.n3, instance.n9])) {
            own.extend(local.ipv4.map(IpAddr::V4));
            own.extend(local.ipv6.map(IpAddr::V6));
        }
        Ok(Self { pools, outside: BTreeMap::new(), own, lengths: config.prefix_lengths() })
    }

    /// How much of an IPv6 address names a UE.
    pub const fn prefix_lengths(&self) -> &PrefixLengths {
        &self.lengths
    }

    fn build(config: &PoolConfig) -> Result<Named, PoolError> {
        let hash = HASHES_IPV6.get(usize::from(config.ipv6_length.delegated())).copied();
        let hash = hash.unwrap_or(hash_ipv6::<0>);
        Ok(Named {
            names: config.names.clone(),
            ipv4: config.build_ipv4(hash_ipv4)?,
            ipv6: config.build_ipv6(hash)?,
            length: config.ipv6_length,
        })
    }

    /// The pool that serves the first of these names that any pool serves; else the first pool with the family.
    fn pool<'a, P>(&'a mut self, names: &[&[u8]], family: fn(&'a mut Named) -> Option<P>) -> Option<P> {
        let named = names.iter().filter(|name| !name.is_empty()).find_map(|octets| {
            self.pools.iter().position(|pool| pool.names.iter().any(|name| name.is(octets)))
        });
        match named {
            Some(at) => self.pools.get_mut(at).and_then(family),
            None => self.pools.iter_mut().find_map(family),
        }
    }

    /// An IPv4 address out of the pool for one of these names, of this shard if it can be.
    pub fn allocate_ipv4(
        &mut self,
        names: &[&[u8]],
        wish: Option<ShardId>,
    ) -> Result<Ipv4Addr, AddressError> {
        let pool = self.pool(names, |pool| pool.ipv4.as_mut()).ok_or(AddressError::NoPool)?;
        allocate(pool, wish).map(|number| Ipv4Addr::from(number as u32))
    }

    /// A prefix out of the pool for one of these names, of this shard if it can be.
    pub fn allocate_ipv6(&mut self, names: &[&[u8]], wish: Option<ShardId>) -> Result<Ipv6Net, AddressError> {
        let found = self.pool(names, |pool| pool.ipv6.as_mut().zip(Some(pool.length)));
        let (pool, length) = found.ok_or(AddressError::NoPool)?;
        let half = allocate(pool, wish)? << length.delegated();
        Ok(Ipv6Net::new(Ipv6Addr::from_bits(u128::from(half) << 64), length.get()).unwrap_or_default())
    }

    /// Takes an address or prefix that the SMF chose for a UE.
    pub fn reserve(&mut self, net: IpNet) -> Result<(), AddressError> {
        self.check_usable(net)?;
        let Some((pool, first, last)) = self.covering(net) else { return self.reserve_outside(net) };
        if first == last {
            return pool.reserve(first).map(|_| ()).map_err(|error| match error {
                Unavailable::Taken => AddressError::Taken(net),
                Unavailable::Outside => AddressError::Unusable(net),
            });
        }
        // A prefix that is shorter than the pool's UEs' takes all of theirs, or none.
        if last - first >= 1 << 16 || !(first..=last).all(|number| pool.covers(number)) {
            return Err(AddressError::Unusable(net));
        }
        if (first..=last).any(|number| pool.is_used(number)) {
            return Err(AddressError::Taken(net));
        }
        (first..=last).for_each(|number| {
            let _ = pool.reserve(number);
        });
        Ok(())
    }

    /// Takes a network that is routed to a UE. It lies outside the pools, whose addresses are other UEs'.
    pub fn reserve_route(&mut self, net: IpNet) -> Result<(), AddressError> {
        self.check_usable(net)?;
        if net.prefix_len() == 0 {
            return Err(AddressError::Unusable(net));
        }
        if self.covering(net).is_some() {
            return Err(AddressError::Taken(net));
        }
        self.reserve_outside(net)
    }

    fn reserve_outside(&mut self, net: IpNet) -> Result<(), AddressError> {
        let (first, last) = range(net);
        let before = self.outside.range(..=last).next_back();
        if before.is_some_and(|(_, end)| *end >= first) {
            return Err(AddressError::Taken(net));
        }
        self.outside.insert(first, last);
        Ok(())
    }

    /// Gives back an address, prefix or route that was allocated or reserved here.
    pub fn release(&mut self, net: IpNet) {
        if let Some((pool, first, last)) = self.covering(net) {
            (first..=last).for_each(|number| pool.release(number));
        } else {
            self.outside.remove(&range(net).0);
        }
    }

    /// The pool that shares numbers with this network, and the network's numbers in it.
    fn covering(&mut self, net: IpNet) -> Option<(&mut Pool, u64, u64)> {
        match net {
            IpNet::V4(net) => {
                let (first, last) = (u32::from(net.network()) as u64, u32::from(net.broadcast()) as u64);
                let pool = self.pools.iter_mut().filter_map(|pool| pool.ipv4.as_mut());
                Some((pool.into_iter().find(|pool| pool.overlaps(first, last))?, first, last))
            }
            IpNet::V6(net) => {
                let (first, last) = (upper_half(net.network()), upper_half(net.broadcast()));
                self.pools.iter_mut().find_map(|Named { ipv6, length, .. }| {
                    let (first, last) = (first >> length.delegated(), last >> length.delegated());
                    ipv6.as_mut().filter(|pool| pool.overlaps(first, last)).map(|pool| (pool, first, last))
                })
            }
        }
    }

    fn check_usable(&self, net: IpNet) -> Result<(), AddressError> {
        let address = net.network();
        let odd = match address {
            IpAddr::V4(a) => a.is_unspecified() || a.is_broadcast() || a.is_link_local(),
            IpAddr::V6(a) => {
                a.is_unspecified() || crate::rules::is_link_local(a) || a.to_ipv4_mapped().is_some()
            }
        };
        if odd
            || address.is_loopback()
            || address.is_multicast()
            || self.own.iter().any(|own| net.contains(own))
        {
            return Err(AddressError::Unusable(net));
        }
        Ok(())
    }

    /// Addresses and prefixes held inside pools.
    pub fn held_in_pools(&self) -> usize {
        let pools = self.pools.iter().flat_map(|pool| [pool.ipv4.as_ref(), pool.ipv6.as_ref()]);
        pools.flatten().map(|pool| pool.held() as usize).sum()
    }

    /// Addresses, prefixes and routes held outside them.
    pub fn held_outside(&self) -> usize {
        self.outside.len()
    }

    /// Per pool: its index, addresses held and addresses in all, of each family.
    pub fn usage(&self) -> impl Iterator<Item = PoolUsage> {
        let of = |pool: Option<&Pool>| pool.map_or((0, 0), |pool| (pool.held(), pool.capacity()));
        self.pools
            .iter()
            .map(move |pool| PoolUsage { ipv4: of(pool.ipv4.as_ref()), ipv6: of(pool.ipv6.as_ref()) })
    }
}

/// How full a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolUsage {
    /// IPv4 addresses held, and in all.
    pub ipv4: (u32, u32),
    /// IPv6 prefixes held, and in all.
    pub ipv6: (u32, u32),
}

fn allocate(pool: &mut Pool, wish: Option<ShardId>) -> Result<u64, AddressError> {
    let wished = wish.and_then(|shard| pool.allocate_in(shard));
    wished.or_else(|| pool.allocate().map(|(number, _)| number)).ok_or(AddressError::Exhausted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{Ipv4Range, LocalAddresses};

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn addresses() -> Addresses {
        Addresses::new(&Config {
            n3: LocalAddresses { ipv4: Some(Ipv4Addr::new(192, 168, 1, 1)), ipv6: None },
            pools: vec![
                PoolConfig {
                    names: vec![Name::new(b"internet")],
                    ipv4: vec![Ipv4Range::Net("10.45.0.0/16".parse().unwrap())],
                    ipv6: vec!["2001:db8:1::/48".parse().unwrap()],
                    excluded: vec!["10.45.0.1".parse().unwrap()],
                    ..PoolConfig::default()
                },
                PoolConfig {
                    names: vec![Name::new(b"home")],
                    ipv6: vec!["2001:db8:56::/48".parse().unwrap()],
                    ipv6_length: PrefixLength::new(56).unwrap(),
                    ..PoolConfig::default()
                },
                PoolConfig {
                    names: vec![Name::new(b"ims")],
                    ipv4: vec![Ipv4Range::Range([10, 46, 0, 5].into(), [10, 46, 0, 6].into())],
                    ..PoolConfig::default()
                },
            ],
            ..Config::default()
        })
        .unwrap()
    }

    #[test]
    fn the_pool_is_found_by_name_and_the_first_serves_the_rest() {
        let mut addresses = addresses();
        assert_eq!(addresses.allocate_ipv4(&[b"\x03ims"], None).unwrap().octets()[1], 46);
        assert_eq!(addresses.allocate_ipv4(&[b"", b"IMS"], None).unwrap().octets()[1], 46);
        assert_eq!(addresses.allocate_ipv4(&[b"ims"], None), Err(AddressError::Exhausted));
        assert_eq!(addresses.allocate_ipv6(&[b"ims"], None), Err(AddressError::NoPool));
        assert_eq!(addresses.allocate_ipv4(&[b"other"], None).unwrap().octets()[1], 45);
        assert_eq!(addresses.allocate_ipv4(&[], None).unwrap().octets()[1], 45);
    }

    #[test]
    fn both_addresses_of_a_ue_agree_on_the_shard() {
        let mut addresses = addresses();
        for _ in 0..100 {
            let four = addresses.allocate_ipv4(&[], None).unwrap();
            let six = addresses.allocate_ipv6(&[], Some(shard_of_ipv4(four))).unwrap();
            assert_eq!(shard_of_ipv6(addresses.prefix_lengths(), six), shard_of_ipv4(four));
        }
    }

    #[test]
    fn a_pool_of_longer_delegations_gives_each_ue_a_prefix_whose_addresses_are_of_one_shard() {
        let mut addresses = addresses();
        let mut seen = std::collections::HashSet::new();
        while let Ok(prefix) = addresses.allocate_ipv6(&[b"home"], None) {
            assert_eq!((prefix.prefix_len(), prefix.trunc()), (56, prefix));
            assert!("2001:db8:56::/48".parse::<Ipv6Net>().unwrap().contains(&prefix));
            let shard = shard_of_ipv6(addresses.prefix_lengths(), prefix);
            for link in prefix.subnets(64).unwrap() {
                assert_eq!(shard_of_ipv6(addresses.prefix_lengths(), link), shard);
            }
            assert!(seen.insert(prefix));
        }
        assert_eq!(seen.len(), 256);
        let shards: std::collections::HashSet<_> =
            seen.iter().map(|prefix| shard_of_ipv6(addresses.prefix_lengths(), *prefix).index()).collect();
        assert_eq!(shards.len(), 64, "as far as eight bits of the hash reach");
        // What is longer takes the whole of what its UE could have had, and what is shorter all of them.
        for prefix in &seen {
            addresses.release(IpNet::V6(*prefix));
        }
        assert_eq!(addresses.held_in_pools(), 0);
        addresses.reserve(net("2001:db8:56:700::/56")).unwrap();
        assert!(matches!(addresses.reserve(net("2001:db8:56:742::/64")), Err(AddressError::Taken(_))));
        addresses.reserve(net("2001:db8:56:842::/64")).unwrap();
        assert!(matches!(addresses.reserve(net("2001:db8:56:800::/56")), Err(AddressError::Taken(_))));
        addresses.reserve(net("2001:db8:56:1000::/52")).unwrap();
        assert_eq!(addresses.held_in_pools(), 1 + 1 + 16);
        for text in ["2001:db8:56:700::/56", "2001:db8:56:842::/64", "2001:db8:56:1000::/52"] {
            addresses.release(net(text));
        }
        assert_eq!(addresses.held_in_pools(), 0);
    }

    #[test]
    fn an_address_is_one_sessions() {
        let mut addresses = addresses();
        for text in ["10.45.0.9/32", "172.16.0.9/32", "2001:db8:1:5::/64", "2001:db8:9::/64"] {
            addresses.reserve(net(text)).unwrap();
            assert_eq!(addresses.reserve(net(text)), Err(AddressError::Taken(net(text))));
        }
        assert_eq!((addresses.held_in_pools(), addresses.held_outside()), (2, 2));
        for text in ["10.45.0.9/32", "172.16.0.9/32", "2001:db8:1:5::/64", "2001:db8:9::/64"] {
            addresses.release(net(text));
            addresses.reserve(net(text)).unwrap();
        }
    }

    #[test]
    fn a_delegated_prefix_takes_all_its_64s_or_none() {
        let mut addresses = addresses();
        addresses.reserve(net("2001:db8:1:77::/64")).unwrap();
        assert!(matches!(addresses.reserve(net("2001:db8:1::/56")), Err(AddressError::Taken(_))));
        assert_eq!(addresses.held_in_pools(), 1);
        addresses.reserve(net("2001:db8:1:100::/56")).unwrap();
        assert_eq!(addresses.held_in_pools(), 257);
        addresses.release(net("2001:db8:1:100::/56"));
        assert_eq!(addresses.held_in_pools(), 1);
        assert!(matches!(addresses.reserve(net("2001:db8::/32")), Err(AddressError::Unusable(_))));
    }

    #[test]
    fn routes_keep_out_of_pools_and_of_each_other() {
        let mut addresses = addresses();
        addresses.reserve_route(net("192.168.50.0/24")).unwrap();
        assert!(matches!(addresses.reserve_route(net("192.168.0.0/16")), Err(AddressError::Unusable(_))));
        assert!(matches!(addresses.reserve_route(net("192.168.50.128/25")), Err(AddressError::Taken(_))));
        assert!(matches!(addresses.reserve(net("192.168.50.7/32")), Err(AddressError::Taken(_))));
        assert!(matches!(addresses.reserve_route(net("10.0.0.0/8")), Err(AddressError::Taken(_))));
        assert!(matches!(addresses.reserve_route(net("0.0.0.0/0")), Err(AddressError::Unusable(_))));
    }

    #[test]
    fn no_ue_has_an_address_of_ours_or_of_nobody() {
        let mut addresses = addresses();
        for text in [
            "192.168.1.1/32",
            "0.0.0.0/32",
            "127.0.0.1/32",
            "224.0.0.1/32",
            "255.255.255.255/32",
            "fe80::/64",
            "::ffff:1.2.3.4/128",
            "ff02::/64",
        ] {
            assert_eq!(addresses.reserve(net(text)), Err(AddressError::Unusable(net(text))), "{text}");
        }
        assert!(matches!(addresses.reserve(net("10.45.0.1/32")), Err(AddressError::Taken(_))), "the gateway");
    }

    #[test]
    fn overlapping_pools_are_refused() {
        let pool = |text: &str| PoolConfig {
            ipv4: vec![Ipv4Range::Net(text.parse().unwrap())],
            ..Default::default()
        };
        let config = Config { pools: vec![pool("10.0.0.0/8"), pool("10.45.0.0/16")], ..Config::default() };
        assert_eq!(Addresses::new(&config).err(), Some(PoolError::Overlap));
        let pool = |text: &str, length| PoolConfig {
            ipv6: vec![text.parse().unwrap()],
            ipv6_length: PrefixLength::new(length).unwrap(),
            ..Default::default()
        };
        let pools =
            |pools: &[PoolConfig]| Addresses::new(&Config { pools: pools.into(), ..Config::default() }).err();
        let wide = pool("2001:db8:1::/48", 56);
        assert_eq!(pools(&[wide.clone(), pool("2001:db8:1:2345::/64", 64)]), Some(PoolError::Overlap));
        assert_eq!(pools(&[wide, pool("2001:db8:2::/48", 64)]), None);
        assert_eq!(pools(&[pool("2001:db8:1:2300::/57", 56)]), Some(PoolError::PrefixTooLong));
    }
}
