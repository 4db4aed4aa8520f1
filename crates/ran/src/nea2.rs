//! NEA2: ciphering of what PDCP and NAS carry (TS 33.501 D.2.1.3, which is 128-EEA2 of TS 33.401 B.1.3).
//!
//! AES-128 in counter mode. The first counter block is COUNT, BEARER, DIRECTION and zeros; each packet has a key, and so its own round keys, and
//! ciphering and deciphering are the same. A packet's work is short, so [`apply_all`] takes many packets at once:
//!
//! ```
//! use ran::nea2::{self, Bearer, Count, Direction, Key, Packet};
//!
//! let key = Key::new([0x11; 16]);
//! let mut data = *b"plain";
//! let bearer = Bearer::new(3)?;
//! let mut packet = [Packet { key: &key, count: Count(7), bearer, direction: Direction::Uplink, data: &mut data }];
//! nea2::apply_all(&mut packet);
//! nea2::apply_all(&mut packet);
//! assert_eq!(data, *b"plain");
//! # Ok::<(), nea2::NoBearer>(())
//! ```
//!
//! **Cost.** The kernels are in [`simd::aes_ctr`](crate::simd), their choice is made at run time. Without AES instructions the crate `aes` does the
//! work, in constant time.

#[cfg(target_arch = "x86_64")]
use crate::simd::aes_ctr::{self, Job};
use crate::simd::cipher::{Block, CipherUnit, Schedule};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::fmt;

/// A confidentiality key of 128 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Block);

impl Key {
    /// From its octets, in the order in which the standard prints them.
    pub fn new(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// Its round keys, for those who cipher many packets with it and have 176 octets for each key.
    pub fn expand(&self) -> ExpandedKey {
        #[cfg(target_arch = "x86_64")]
        if CipherUnit::Aes.is_here() {
            return ExpandedKey(aes_ctr::expand(&self.0));
        }
        // Plain code starts from the key.
        let mut keys = [[0; 16]; crate::simd::cipher::ROUNDS + 1];
        keys[0] = self.0;
        ExpandedKey(Schedule(keys))
    }
}

/// A key isn't for logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A key with its round keys; what plain code needs of it is the key.
#[derive(Clone)]
pub struct ExpandedKey(Schedule);

impl fmt::Debug for ExpandedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExpandedKey(..)")
    }
}

/// COUNT: a packet's number, of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u32);

/// BEARER: a radio bearer's identity, of 5 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bearer(u8);

/// There is no such bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a bearer's identity has 5 bits, so {0} is none: it is at most 31")]
pub struct NoBearer(pub u8);

impl Bearer {
    /// From its number, which is at most 31.
    pub fn new(number: u8) -> Result<Self, NoBearer> {
        if number < 32 { Ok(Self(number)) } else { Err(NoBearer(number)) }
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// DIRECTION: which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the network: 0.
    Uplink = 0,
    /// To the UE: 1.
    Downlink = 1,
}

/// A packet, with all that its key stream depends on; `K` is [`Key`] or [`ExpandedKey`].
#[derive(Debug)]
pub struct Packet<'a, K = Key> {
    /// The UE's key.
    pub key: &'a K,
    /// Its number.
    pub count: Count,
    /// Its bearer.
    pub bearer: Bearer,
    /// Which way it goes.
    pub direction: Direction,
    /// What is ciphered or deciphered, in place.
    pub data: &'a mut [u8],
}

impl<K> Packet<'_, K> {
    /// The upper half of the first counter block, as a number (TS 33.401 B.1.3). The lower half is zero.
    fn prefix(&self) -> u64 {
        u64::from(self.count.0) << 32 | u64::from(self.bearer.0) << 27 | (self.direction as u64) << 26
    }
}

/// More bits than there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bits} bits don't fit into {octets} octets")]
pub struct TooFewOctets {
    /// Wanted.
    pub bits: usize,
    /// There are.
    pub octets: usize,
}

/// Ciphers or deciphers one packet.
pub fn apply(packet: Packet) {
    apply_all(&mut [packet]);
}

/// Ciphers or deciphers a message of `bits` bits, the first of which is the uppermost of the first octet. In the last octet the bits behind the
/// message become zero, as they are in the standard's test sets; octets behind it stay as they are.
pub fn apply_bits(packet: Packet, bits: usize) -> Result<(), TooFewOctets> {
    let Packet { key, count, bearer, direction, data } = packet;
    let octets = data.len();
    let data = data.get_mut(..bits.div_ceil(8)).ok_or(TooFewOctets { bits, octets })?;
    apply(Packet { key, count, bearer, direction, data });
    if let (Some(last), used @ 1..) = (data.last_mut(), bits % 8) {
        *last &= !(0xff >> used);
    }
    Ok(())
}

/// Ciphers or deciphers packets, each by its own key.
pub fn apply_all(packets: &mut [Packet]) {
    apply_all_by(CipherUnit::best(), packets);
}

/// As [`apply_all`], with keys that were expanded before.
pub fn apply_all_expanded(packets: &mut [Packet<ExpandedKey>]) {
    apply_all_expanded_by(CipherUnit::best(), packets);
}

/// Packets that are handed to the kernel at a time: while these are worked on, memory is asked for the next ones.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 8;

/// As [`apply_all`], by a unit of one's choice.
///
/// # Panics
/// If this machine doesn't have it.
pub fn apply_all_by(unit: CipherUnit, packets: &mut [Packet]) {
    #[cfg(target_arch = "x86_64")]
    if unit != CipherUnit::Any {
        let mut groups = packets.chunks_mut(TOGETHER).peekable();
        while let Some(group) = groups.next() {
            groups
                .peek()
                .into_iter()
                .flat_map(|next| next.iter())
                .for_each(|it| aes_ctr::ask_ahead(&it.key.0, it.data));
            let mut jobs: [Job; TOGETHER] =
                std::array::from_fn(|_| Job { key: &[0; 16], prefix: 0, data: &mut [] });
            let length = group.len();
            for (job, packet) in jobs.iter_mut().zip(group) {
                *job = Job { key: &packet.key.0, prefix: packet.prefix(), data: &mut *packet.data };
            }
            aes_ctr::apply(unit, &mut jobs[..length]);
        }
        return;
    }
    assert!(unit.is_here(), "this processor has no {unit}");
    for packet in packets {
        let prefix = packet.prefix();
        plain(&packet.key.0, prefix, packet.data);
    }
}

/// As [`apply_all_expanded`], by a unit of one's choice.
///
/// # Panics
/// If this machine doesn't have it.
pub fn apply_all_expanded_by(unit: CipherUnit, packets: &mut [Packet<ExpandedKey>]) {
    assert!(unit.is_here(), "this processor has no {unit}");
    for packet in packets {
        let (schedule, prefix) = (&packet.key.0, packet.prefix());
        #[cfg(target_arch = "x86_64")]
        if unit != CipherUnit::Any {
            aes_ctr::apply_expanded(unit, schedule, prefix, packet.data);
            continue;
        }
        plain(&schedule.0[0], prefix, packet.data);
    }
}

/// Blocks whose key stream is made at a time.
const AT_A_TIME: usize = 16;

/// A packet by the crate `aes`: for processors without AES instructions, and what the kernels are held to.
fn plain(key: &Block, prefix: u64, data: &mut [u8]) {
    let cipher = Aes128::new(key.into());
    let mut counter = u128::from(prefix) << 64;
    for part in data.chunks_mut(AT_A_TIME * 16) {
        let mut stream = [aes::Block::default(); AT_A_TIME];
        let stream = &mut stream[..part.len().div_ceil(16)];
        for block in &mut *stream {
            *block = counter.to_be_bytes().into();
            counter += 1;
        }
        cipher.encrypt_blocks(stream);
        part.iter_mut().zip(stream.iter().flatten()).for_each(|(octet, stream)| *octet ^= stream);
    }
}
