//! The Internet checksum (RFC 1071), its pseudo headers, and its incremental update (RFC 1624).
//!
//! The sum is kept in the byte order of the wire, not of the machine: ones-complement addition commutes with
//! swapping the bytes (RFC 1071 §2B), so the loop loads native words and one swap at the end is enough.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::IpProtocol;

/// A running ones-complement sum.
///
/// ```
/// use packet::checksum::Sum;
/// // RFC 1071 §3: the words 0001 f203 f4f5 f6f7 add up to ddf2.
/// let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.finish(), !0xddf2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sum(u64);

impl Sum {
    /// Nothing added yet.
    pub const ZERO: Self = Self(0);

    /// Adds bytes. An odd last byte counts as the high half of a word: only the last piece may be odd.
    ///
    /// 32-bit words are added into 64-bit lanes: no carry can be lost below 16 GiB, and the compiler makes vector
    /// code of it, which a chain of add-with-carry would not allow.
    #[inline]
    #[must_use]
    pub fn bytes(self, data: &[u8]) -> Self {
        let (blocks, rest) = data.as_chunks::<16>();
        let mut lanes = [0u64; 4];
        for block in blocks {
            let (words, _) = block.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let mut sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
        let (pairs, odd) = rest.as_chunks::<2>();
        for pair in pairs {
            sum += u64::from(u16::from_ne_bytes(*pair));
        }
        if let [last] = odd {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        self.join(sum)
    }

    /// Adds one word.
    #[inline]
    #[must_use]
    pub const fn word(self, value: u16) -> Self {
        self.join(value.to_be() as u64)
    }

    /// Adds a length or another 32-bit field.
    #[inline]
    #[must_use]
    pub const fn long(self, value: u32) -> Self {
        self.join(value.to_be() as u64)
    }

    /// Adds what another sum has gathered; the bytes behind it must start at an even offset.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        self.join(other.0)
    }

    /// End-around carry keeps 64 bits enough for any number of pieces.
    #[inline]
    const fn join(self, more: u64) -> Self {
        let (sum, carry) = self.0.overflowing_add(more);
        Self(sum + carry as u64)
    }

    /// The sum in 16 bits, host order, not complemented.
    #[inline]
    pub const fn fold(self) -> u16 {
        let s = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let s = (s >> 32) + (s & 0xffff_ffff);
        let s = (s >> 16) + (s & 0xffff);
        let s = (s >> 16) + (s & 0xffff);
        let s = (s >> 16) + (s & 0xffff);
        u16::from_be(s as u16)
    }

    /// The checksum to put in the header, host order.
    #[inline]
    pub const fn finish(self) -> u16 {
        !self.fold()
    }

    /// The checksum to put in a UDP header: a computed zero is sent as all ones, for zero means "none" (RFC 768).
    #[inline]
    pub const fn finish_udp(self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            sum => sum,
        }
    }

    /// Whether bytes that include their own checksum add up.
    #[inline]
    pub const fn is_valid(self) -> bool {
        self.fold() == 0xffff
    }
}

/// The pseudo header of TCP and UDP over IPv4 (RFC 768, RFC 9293 §3.1); `length` is header and payload.
#[inline]
pub fn pseudo_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: IpProtocol, length: u16) -> Sum {
    Sum::ZERO.long(source.to_bits()).long(destination.to_bits()).word(u16::from(protocol.0)).word(length)
}

/// The pseudo header of upper layers over IPv6 (RFC 8200 §8.1); `length` is header and payload.
#[inline]
pub fn pseudo_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: IpProtocol, length: u32) -> Sum {
    Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets()).long(length).word(u16::from(protocol.0))
}

/// The checksum of an IPv4 header (options included) whose checksum field is taken as zero.
#[inline]
pub fn ipv4_header(header: &[u8]) -> u16 {
    let field = match header {
        [_, _, _, _, _, _, _, _, _, _, a, b, ..] => u16::from_be_bytes([*a, *b]),
        _ => 0,
    };
    // Taking the field out of the sum is adding its complement.
    Sum::ZERO.bytes(header).word(!field).finish()
}

/// The checksum after one 16-bit word of the summed data changed from `old` to `new` (RFC 1624 eqn. 3).
#[inline]
#[must_use]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = (!checksum) as u32 + (!old) as u32 + new as u32;
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(sum as u16)
}

/// The same for an aligned 32-bit field, such as an IPv4 address.
#[inline]
#[must_use]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let sum = (!checksum) as u64 + (!old) as u64 + new as u64;
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(sum as u16)
}

/// The same for an IPv6 address.
#[inline]
#[must_use]
pub fn update_u128(checksum: u16, old: u128, new: u128) -> u16 {
    Sum::ZERO.word(!checksum).bytes(&(!old).to_be_bytes()).bytes(&new.to_be_bytes()).finish()
}

/// A UDP checksum stays "none" if it was none, and a computed zero becomes all ones (RFC 768).
#[inline]
#[must_use]
pub const fn keep_udp_rules(before: u16, after: u16) -> u16 {
    match (before, after) {
        (0, _) => 0,
        (_, 0) => 0xffff,
        (_, sum) => sum,
    }
}
