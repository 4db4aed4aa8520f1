//! The Toeplitz hash by which a NIC spreads packets over its queues (receive side scaling), and the hash by which a
//! subscriber belongs to a shard.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::flow::Ports;

/// Octets of a key that drivers expect; it serves inputs of up to 36 octets.
pub const KEY_LEN: usize = 40;

/// Octets of the longest input: two IPv6 addresses and two ports.
pub const MAX_INPUT_LEN: usize = 36;

/// The key in Microsoft's specification of receive side scaling, a default of many drivers. Its verification vectors
/// are this module's tests.
pub const MICROSOFT_KEY: [u8; KEY_LEN] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// 0x6d5a repeated: both directions of a flow hash alike, for exchanging addresses and exchanging ports moves input
/// by whole periods of the key.
pub const SYMMETRIC_KEY: [u8; KEY_LEN] = {
    let mut key = [0x6d; KEY_LEN];
    let mut i = 1;
    while i < KEY_LEN {
        key[i] = 0x5a;
        i += 2;
    }
    key
};

/// The key of the UE hash ([`ue_hash`]), to be programmed into NICs that can hash the inner address.
///
/// It is the symmetric key because of its period of 16 bits: the hash of an address does not depend on where in its
/// input a NIC puts it. A NIC that hashes the source address of uplink packets and the destination address of
/// downlink packets, each at its own place in the input vector with the rest masked, still gives both directions of a
/// subscriber the same hash, and it is the one computed here. The price is that only 16 bits of the result are
/// independent: the high half repeats the low one. Millrace uses nine.
pub const UE_KEY: [u8; KEY_LEN] = SYMMETRIC_KEY;

/// A key made ready: for each octet of the input a table of what its 256 values contribute.
///
/// Building costs a few microseconds and `N` KiB (36 for a NIC model), a hash one load and one exclusive-or per octet.
#[derive(Clone)]
pub struct Toeplitz<const N: usize = MAX_INPUT_LEN> {
    tables: [[u32; 256]; N],
}

impl<const N: usize> Toeplitz<N> {
    /// Prepares a key for inputs of up to `N` octets, at most 36.
    pub const fn new(key: &[u8; KEY_LEN]) -> Self {
        const { assert!(N <= MAX_INPUT_LEN) };
        let mut tables = [[0; 256]; N];
        let mut octet = 0;
        while octet < N {
            // Bit b of this octet (0 is the highest) contributes the 32 bits of the key that begin at 8 * octet + b.
            let window = (key[octet] as u64) << 32
                | (key[octet + 1] as u64) << 24
                | (key[octet + 2] as u64) << 16
                | (key[octet + 3] as u64) << 8
                | key[octet + 4] as u64;
            let mut value = 1_u32;
            while value < 256 {
                let lowest = value.trailing_zeros();
                tables[octet][value as usize] =
                    tables[octet][(value & (value - 1)) as usize] ^ (window >> (lowest + 1)) as u32;
                value += 1;
            }
            octet += 1;
        }
        Self { tables }
    }

    /// The hash of `input`, of which only the first `N` octets count.
    #[inline]
    pub fn hash(&self, input: &[u8]) -> u32 {
        self.hash_from(0, input)
    }

    /// The contribution of `input` at `offset` of the whole input.
    #[inline]
    fn hash_from(&self, offset: usize, input: &[u8]) -> u32 {
        let tables = self.tables.get(offset..).unwrap_or_default();
        tables.iter().zip(input).fold(0, |hash, (table, &octet)| hash ^ table[usize::from(octet)])
    }

    /// One IPv4 address.
    #[inline]
    pub fn hash_ipv4(&self, address: Ipv4Addr) -> u32 {
        self.hash(&address.octets())
    }

    /// The upper 64 bits of an IPv6 address.
    #[inline]
    pub fn hash_prefix64(&self, prefix: u64) -> u32 {
        self.hash(&prefix.to_be_bytes())
    }

    /// A pair of addresses, source first; 0 if they are of different families.
    #[inline]
    pub fn hash_addresses(&self, source: IpAddr, destination: IpAddr) -> u32 {
        match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => self.hash(&s.octets()) ^ self.hash_from(4, &d.octets()),
            (IpAddr::V6(s), IpAddr::V6(d)) => self.hash(&s.octets()) ^ self.hash_from(16, &d.octets()),
            _ => 0,
        }
    }

    /// Addresses and ports of a TCP or UDP packet: what NICs call the 4-tuple; the protocol takes no part.
    #[inline]
    pub fn hash_5tuple(&self, source: IpAddr, destination: IpAddr, ports: Ports) -> u32 {
        let at = if source.is_ipv4() { 8 } else { 32 };
        self.hash_addresses(source, destination)
            ^ self.hash_from(at, &ports.source.to_be_bytes())
            ^ self.hash_from(at + 2, &ports.destination.to_be_bytes())
    }
}

impl<const N: usize> std::fmt::Debug for Toeplitz<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Toeplitz for {N} octets")
    }
}

/// Two tables are enough for a key with a period of two octets.
static UE: Toeplitz<2> = Toeplitz::new(&UE_KEY);

/// The UE hash of an IPv4 address: Toeplitz with [`UE_KEY`] over its four octets.
#[inline]
pub fn ue_hash_ipv4(address: Ipv4Addr) -> u32 {
    let bits = address.to_bits();
    ue_fold((bits >> 16) as u16 ^ bits as u16)
}

/// The UE hash of an IPv6 prefix: Toeplitz with [`UE_KEY`] over the upper eight octets, because a UE picks the lower
/// ones as it likes (TS 23.501 §5.8.2.2). Whoever knows that a UE has more than a /64 clears what that disposes of before.
#[inline]
pub fn ue_hash_prefix64(prefix: u64) -> u32 {
    let folded = prefix >> 32 ^ prefix;
    ue_fold((folded >> 16) as u16 ^ folded as u16)
}

/// Octets at distance two contribute alike, so they may be added up before the tables are asked.
#[inline]
fn ue_fold(folded: u16) -> u32 {
    let [a, b] = folded.to_be_bytes();
    UE.tables[0][usize::from(a)] ^ UE.tables[1][usize::from(b)]
}

/// The hash whose low nine bits are a subscriber's shard.
#[inline]
pub fn ue_hash(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(a) => ue_hash_ipv4(a),
        IpAddr::V6(a) => ue_hash_prefix64(prefix64(a)),
    }
}

/// The upper 64 bits of an IPv6 address.
#[inline]
pub const fn prefix64(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}
