//! Who can't have sent this packet?
//!
//! Some addresses are nobody's on a wire (RFC 1122 §3.2.1.3, RFC 6890, RFC 4291 §2.5 to 2.7), and some are ours: our own and our
//! UEs', whose packets come in tunnels and never from outside. Nearly every packet is neither, and is to be told so by what
//! parsing has in registers: an arithmetic test for the first kind, and of the second a bit for where such addresses may be.
//! Only what one of these points at is looked up.

use crate::Reason;
use crate::network::fib::{Fib, HopId};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A filter by prefix, of 2^16 bits.
type Prefixes = Filter<{ (1 << 16) / 64 }>;
/// The filter of own addresses, of 2^12.
type Own = Filter<{ (1 << 12) / 64 }>;

/// Prefixes of IPv4 that are no host's: this network, loopback, multicast, and reserved, with the limited broadcast.
const NOBODYS_V4: [(u32, u8); 4] = [(0x0000_0000, 8), (0x7f00_0000, 8), (0xe000_0000, 4), (0xf000_0000, 4)];
/// The same of IPv6: the unspecified address, loopback, and both forms that stand for IPv4 addresses; link-local; multicast.
const NOBODYS_V6: [(u128, u8); 4] = [(0, 96), (0xffff << 32, 96), (0xfe80 << 112, 10), (0xff << 120, 8)];

/// Prefixes that no packet is routed to, unless a route says otherwise.
pub(crate) fn nobodys() -> impl Iterator<Item = IpNet> {
    let v4 = NOBODYS_V4.iter().map(|(net, length)| (IpAddr::V4(Ipv4Addr::from_bits(*net)), *length));
    let v6 = NOBODYS_V6.iter().map(|(net, length)| (IpAddr::V6(Ipv6Addr::from_bits(*net)), *length));
    v4.chain(v6).filter_map(|(net, length)| IpNet::new(net, length).ok())
}

/// Both forms of a link's directed broadcast (RFC 1122 §3.2.1.3, RFC 2644).
pub(crate) fn everybody(link: &IpNet) -> Option<[Ipv4Addr; 2]> {
    match link {
        IpNet::V4(net) if net.prefix_len() <= 30 => Some([net.network(), net.broadcast()]),
        _ => None,
    }
}

/// A set that says "not there" or "perhaps".
#[derive(Clone, Debug)]
struct Filter<const WORDS: usize>(Box<[u64; WORDS]>);

impl<const WORDS: usize> Filter<WORDS> {
    fn new() -> Self {
        Self(Box::new([0; WORDS]))
    }

    fn set(&mut self, bit: usize) {
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    #[inline(always)]
    fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0)
    }
}

/// Compiled from a FIB, beside its ingress tables.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Where UEs' and public addresses are, and nobody's: by an IPv4 address's first 16 bits.
    suspects4: Prefixes,
    /// By a hash of an IPv6 address's first bits: as many as the shortest prefix has. A network's hosts share more with its UEs than 32.
    ues6: Prefixes,
    /// How far an address's first half is shifted until only those are left.
    beyond6: u32,
    /// Where our own addresses are, and those of everybody on our links, by a hash.
    own: Own,
}

impl Default for Sources {
    fn default() -> Self {
        Self { suspects4: Filter::new(), ues6: Filter::new(), beyond6: 0, own: Filter::new() }
    }
}

impl Sources {
    pub fn new(fib: &Fib) -> Self {
        let mut sources = Self::default();
        let lengths = fib.ues().iter().filter(|prefix| matches!(prefix, IpNet::V6(_))).map(IpNet::prefix_len);
        let shortest = lengths.min().unwrap_or(64).min(64);
        sources.beyond6 = 64_u32.saturating_sub(shortest.into()).min(63);
        let nobodys4 = nobodys().filter(|prefix| matches!(prefix, IpNet::V4(_)));
        for prefix in fib.ues().iter().copied().chain(nobodys4) {
            match prefix {
                IpNet::V4(net) => {
                    let (first, last) = (u32::from(net.network()), u32::from(net.broadcast()));
                    (first >> 16..=last >> 16).for_each(|bit| sources.suspects4.set(bit as usize));
                }
                // All that there is.
                IpNet::V6(net) if net.prefix_len() == 0 => sources.ues6.0.fill(u64::MAX),
                IpNet::V6(net) => {
                    let bit = sources.by_prefix(net.network().to_bits());
                    sources.ues6.set(bit);
                }
            }
        }
        for address in fib.own() {
            sources.own.set(match address {
                IpAddr::V4(address) => by_address(u64::from(address.to_bits())),
                IpAddr::V6(address) => by_address(folded(address.to_bits())),
            });
        }
        for net in fib.interfaces().iter().flat_map(|interface| &interface.addresses) {
            for address in everybody(net).into_iter().flatten() {
                sources.own.set(by_address(u64::from(address.to_bits())));
            }
        }
        sources
    }

    /// Why a packet from the data network can't have this source.
    #[inline(always)]
    pub fn outside4(&self, fib: &Fib, source: u32) -> Option<Reason> {
        let suspicious =
            self.own.has(by_address(source.into())) | self.suspects4.has((source >> 16) as usize);
        if suspicious { judge(fib, Ipv4Addr::from_bits(source).into()) } else { None }
    }

    /// See [`Sources::outside4`].
    #[inline(always)]
    pub fn outside6(&self, fib: &Fib, source: u128) -> Option<Reason> {
        let suspicious = is_odd6(source)
            | self.own.has(by_address(folded(source)))
            | self.ues6.has(self.by_prefix(source));
        if suspicious { judge(fib, Ipv6Addr::from_bits(source).into()) } else { None }
    }

    #[inline(always)]
    const fn by_prefix(&self, address: u128) -> usize {
        by_hash::<16>((address >> 64) as u64 >> self.beyond6)
    }

    /// Whether this may be no tunnel's far end: ask [`is_no_far_end`].
    #[inline(always)]
    pub fn may_be_no_far_end4(&self, source: u32) -> bool {
        is_odd4(source) | self.own.has(by_address(source.into()))
    }

    /// See [`Sources::may_be_no_far_end4`].
    #[inline(always)]
    pub fn may_be_no_far_end6(&self, source: u128) -> bool {
        is_odd6(source) | self.own.has(by_address(folded(source)))
    }
}

/// Whether this can't be a tunnel's far end, or anybody else's who talks to us: it is nobody's address, or ours. A link-local
/// address is somebody's on the link.
#[cold]
#[inline(never)]
pub(crate) fn is_no_far_end(fib: &Fib, source: IpAddr) -> bool {
    let on_link = matches!(source, IpAddr::V6(address) if session::rules::is_link_local(address));
    fib.is_own(source) || (is_nobody(fib, source) && !on_link)
}

/// Parsing isn't sure.
#[cold]
#[inline(never)]
fn judge(fib: &Fib, source: IpAddr) -> Option<Reason> {
    match fib.route(source) {
        _ if is_nobodys(source) => Some(Reason::MartianSource),
        HopId::MARTIAN if source.is_ipv4() => Some(Reason::MartianSource),
        HopId::OWN => Some(Reason::MartianSource),
        HopId::UE => Some(Reason::UeSourceOutside),
        _ => None,
    }
}

/// Whether this is no host's address, on our links or anywhere.
fn is_nobody(fib: &Fib, address: IpAddr) -> bool {
    is_nobodys(address) || (address.is_ipv4() && fib.route(address) == HopId::MARTIAN)
}

fn is_nobodys(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            NOBODYS_V4.iter().any(|(net, length)| (address.to_bits() ^ net) >> (32 - length) == 0)
        }
        IpAddr::V6(address) => {
            NOBODYS_V6.iter().any(|(net, length)| (address.to_bits() ^ net) >> (128 - length) == 0)
        }
    }
}

/// Whether the first octet is that of an address that is nobody's.
#[inline(always)]
const fn is_odd4(address: u32) -> bool {
    // 0, and 224 and above, which the subtraction brings together.
    address.wrapping_sub(1 << 24) >= 223 << 24 || address >> 24 == 127
}

/// Whether the first two octets are those of an address that is nobody's, or near.
#[inline(always)]
const fn is_odd6(address: u128) -> bool {
    ((address >> 112) as u16).wrapping_sub(1) >= 0xfe7f
}

#[inline(always)]
const fn folded(address: u128) -> u64 {
    (address >> 64) as u64 ^ (address as u64).rotate_left(31)
}

#[inline(always)]
const fn by_address(address: u64) -> usize {
    by_hash::<12>(address)
}

/// So many bits.
#[inline(always)]
const fn by_hash<const BITS: u32>(value: u64) -> usize {
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::network::rib::Rib;

    /// Every address that is one's first or last, and its neighbours: what is never missed may be looked at in vain.
    #[test]
    fn the_quick_test_misses_nothing() {
        for net in nobodys() {
            match net {
                IpNet::V4(net) => {
                    for address in [net.network(), net.broadcast()] {
                        assert!(is_odd4(address.to_bits()), "{address}");
                    }
                }
                IpNet::V6(net) => {
                    for address in [net.network(), net.broadcast()] {
                        assert!(is_odd6(address.to_bits()), "{address}");
                    }
                }
            }
        }
        for address in ["1.0.0.0", "10.0.0.1", "126.255.255.255", "128.0.0.0", "223.255.255.255"] {
            assert!(!is_odd4(address.parse::<Ipv4Addr>().unwrap().to_bits()), "{address}");
        }
        for address in ["64:ff9b::1", "2001:db8::1", "fc00::1", "fdff::1"] {
            assert!(!is_odd6(address.parse::<Ipv6Addr>().unwrap().to_bits()), "{address}");
        }
    }

    #[test]
    fn pools_of_any_length_are_found() {
        let mut rib = Rib::new();
        for pool in ["10.0.0.0/8", "100.64.7.0/24", "3000::/12", "2001:db8:45::/48", "2400:8000::/28"] {
            rib.add_ue_pool(pool.parse().unwrap());
        }
        let fib = rib.fib();
        let sources = Sources::new(&fib);
        for (address, inside) in [("10.200.0.1", true), ("100.64.7.9", true), ("100.64.8.9", false)] {
            let found = sources.outside4(&fib, address.parse::<Ipv4Addr>().unwrap().to_bits());
            assert_eq!(found, inside.then_some(Reason::UeSourceOutside), "{address}");
        }
        for (address, inside) in
            [("300f::1", true), ("2001:db8:45::1", true), ("2001:db8:46::1", false), ("2400:800f::", true)]
        {
            let found = sources.outside6(&fib, address.parse::<Ipv6Addr>().unwrap().to_bits());
            assert_eq!(found, inside.then_some(Reason::UeSourceOutside), "{address}");
        }
    }
    /// A network's hosts and its UEs have addresses of one allocation: who is no UE isn't looked at more closely for that.
    #[test]
    fn a_pools_neighbours_are_beyond_suspicion() {
        let mut rib = Rib::new();
        for pool in ["2001:db8:a00::/40", "2001:db8:4500::/48", "2001:db8:4600:7::/64"] {
            rib.add_ue_pool(pool.parse().unwrap());
        }
        let sources = Sources::new(&rib.fib());
        let suspects = |address: &str| {
            let address = address.parse::<Ipv6Addr>().unwrap().to_bits();
            sources.ues6.has(sources.by_prefix(address))
        };
        assert!(
            suspects("2001:db8:aff::1") && suspects("2001:db8:4500::1") && suspects("2001:db8:4600:7::1")
        );
        assert!(
            !suspects("2001:db8:600::1") && !suspects("2001:db9:4500::1") && !suspects("2001:db8:b00::1")
        );
    }
}
