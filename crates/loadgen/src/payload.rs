//! What is in a test packet's payload: who sent it, which one it is, when, and bytes that can be computed again.
//!
//! ```text
//!  0               4               8              12                             20
//! +---------------+---------------+---------------+------------------------------+-----------
//! | magic | length| stream        | sequence      | sent (ns)                    | fill ...
//! +---------------+---------------+---------------+------------------------------+-----------
//! ```
//!
//! The magic depends on the seed, so that another run's packets are not taken for ours; the length is that of the whole
//! payload, so that a packet cut short and made consistent again is found out. The fill is a window of one pool of random bytes; where the window starts follows from stream and sequence. Prefix
//! sums over the pool give the one's complement sum of any window in constant time, so that the UDP checksum of a
//! 1,400-byte packet costs as much as that of a short one.

use crate::rng::{SplitMix64, mix};
use tables::Nanos;

/// Bytes of the payload's header.
pub const HEADER_LEN: usize = 20;
/// The longest IP packet that the generator makes: what a jumbo frame holds.
pub const MAX_IP_LEN: u16 = 9000;

/// Positions at which a window can start (even ones only).
const WINDOW: usize = 1 << 15;
const POOL: usize = WINDOW + MAX_IP_LEN as usize + 1;

/// Which way a packet travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the UE: N3 to N6.
    Uplink,
    /// To the UE: N6 to N3.
    Downlink,
}

/// One numbered sequence of packets: a session, a direction, an IP version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The stream of a session (index below 2^30).
    pub const fn new(session: u32, direction: Direction, family: crate::imix::Family) -> Self {
        let direction = matches!(direction, Direction::Downlink) as u32;
        let family = matches!(family, crate::imix::Family::V6) as u32;
        Self(session << 2 | direction << 1 | family)
    }

    /// The session's index.
    pub const fn session(self) -> u32 {
        self.0 >> 2
    }

    /// Which way.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 { Direction::Uplink } else { Direction::Downlink }
    }

    /// Which IP version.
    pub const fn family(self) -> crate::imix::Family {
        if self.0 & 1 == 0 { crate::imix::Family::V4 } else { crate::imix::Family::V6 }
    }

    /// Which of the session's four streams: 0..=3.
    pub const fn lane(self) -> usize {
        (self.0 & 3) as usize
    }
}

/// The header in front of the fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Whose packet.
    pub stream: StreamId,
    /// Its number in the stream, from 0.
    pub sequence: u32,
    /// When it was made.
    pub sent: Nanos,
}

/// The seed's pool of payload bytes.
#[derive(Clone, Debug)]
pub struct Payloads {
    magic: u16,
    pool: Box<[u8]>,
    /// `sums[i]`: the sum of the first `i` big-endian 16-bit words of the pool.
    sums: Box<[u32]>,
}

impl Payloads {
    /// The pool that follows from a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let mut pool = vec![0; POOL.next_multiple_of(8)];
        for word in pool.as_chunks_mut().0 {
            *word = rng.next_u64().to_le_bytes();
        }
        let mut total = 0_u32;
        let mut sums = vec![0];
        for &word in pool.as_chunks().0 {
            // At most 20,888 words of 16 bits: no overflow.
            total += u32::from(u16::from_be_bytes(word));
            sums.push(total);
        }
        Self { magic: mix(seed) as u16, pool: pool.into(), sums: sums.into() }
    }

    fn start(stamp: Stamp) -> usize {
        mix(u64::from(stamp.stream.0) << 32 | u64::from(stamp.sequence)) as usize & (WINDOW - 2)
    }

    /// Writes stamp and fill over all of `into` and returns the sum of its big-endian 16-bit words (an odd last byte
    /// counts as if a zero followed, RFC 1071 §4.1). A buffer shorter than [`HEADER_LEN`] or longer than
    /// [`MAX_IP_LEN`] is left as it is.
    pub fn write(&self, stamp: Stamp, into: &mut [u8]) -> u32 {
        let start = Self::start(stamp);
        let Some((header, fill)) = into.split_first_chunk_mut::<HEADER_LEN>() else { return 0 };
        let Some(window) = self.pool.get(start..start + fill.len()) else { return 0 };
        let words = fill.len() / 2;
        let at = start / 2;
        let (Some(&upper), Some(&lower)) = (self.sums.get(at + words), self.sums.get(at)) else { return 0 };
        let odd = if fill.len() % 2 == 1 { window.last().map_or(0, |&last| u32::from(last) << 8) } else { 0 };
        fill.copy_from_slice(window);
        let len = HEADER_LEN + words * 2 + fill.len() % 2;
        let first = u32::from(self.magic) << 16 | len as u32;
        header[0..4].copy_from_slice(&first.to_be_bytes());
        header[4..8].copy_from_slice(&stamp.stream.0.to_be_bytes());
        header[8..12].copy_from_slice(&stamp.sequence.to_be_bytes());
        header[12..20].copy_from_slice(&stamp.sent.0.to_be_bytes());
        let halves = |value: u32| (value >> 16) + (value & 0xffff);
        let head = halves(first)
            + halves(stamp.stream.0)
            + halves(stamp.sequence)
            + halves((stamp.sent.0 >> 32) as u32)
            + halves(stamp.sent.0 as u32);
        head + (upper - lower) + odd
    }

    /// The stamp at the start of a payload, and the length that the payload had when it was made; `None` if it isn't
    /// one of this seed's.
    pub fn stamp(&self, payload: &[u8]) -> Option<(Stamp, usize)> {
        let header: &[u8; HEADER_LEN] = payload.first_chunk()?;
        let [first, stream, sequence, high, low] = {
            let words: &[[u8; 4]; 5] = header.as_chunks::<4>().0.first_chunk()?;
            words.map(u32::from_be_bytes)
        };
        let sent = Nanos(u64::from(high) << 32 | u64::from(low));
        let len = usize::from(first as u16);
        ((first >> 16) as u16 == self.magic)
            .then_some((Stamp { stream: StreamId(stream), sequence, sent }, len))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::imix::Family;
    use proptest::prelude::*;

    fn naive_sum(bytes: &[u8]) -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
    }

    proptest! {
        #[test]
        fn sums_and_stamps_agree_with_the_bytes(
            stream: u32, sequence: u32, sent: u64, len in HEADER_LEN..=usize::from(MAX_IP_LEN)
        ) {
            let payloads = Payloads::new(99);
            let stamp = Stamp { stream: StreamId(stream), sequence, sent: Nanos(sent) };
            let mut bytes = vec![0; len];
            prop_assert_eq!(payloads.write(stamp, &mut bytes), naive_sum(&bytes));
            prop_assert_eq!(payloads.stamp(&bytes), Some((stamp, len)));
        }
    }

    #[test]
    fn another_seed_is_another_run() {
        let stamp = Stamp { stream: StreamId(5), sequence: 6, sent: Nanos(7) };
        let mut bytes = [0; 64];
        Payloads::new(1).write(stamp, &mut bytes);
        assert_eq!(Payloads::new(2).stamp(&bytes), None);
        assert_eq!(Payloads::new(1).stamp(&bytes[..19]), None);
        let mut other = [0; 64];
        Payloads::new(1).write(Stamp { sequence: 7, ..stamp }, &mut other);
        assert_ne!(bytes[20..], other[20..]);
    }

    #[test]
    fn stream_ids_take_apart() {
        for direction in [Direction::Uplink, Direction::Downlink] {
            for family in [Family::V4, Family::V6] {
                let id = StreamId::new(1_000_000, direction, family);
                assert_eq!((id.session(), id.direction(), id.family()), (1_000_000, direction, family));
            }
        }
    }
}
