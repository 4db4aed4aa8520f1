//! Identifiers that say where a thing lives: shard, slot and a generation packed into SEIDs and TEIDs.
//!
//! A TEID that Millrace allocates is `generation(8) | shard(9) | slot(15)`, so that an uplink packet finds its
//! record without a hash lookup: 512 shards of 32,768 slots, 16,777,216 tunnels. On the wire it is this number under a secret
//! permutation ([`crate::TeidKey`]), so that nobody guesses it. A UP SEID is
//! `0(1) | generation(30) | shard(9) | slot(24)`. The generation changes when a slot is used again, so that what was said
//! of an old session never reaches a new one. Its highest bits are the [`Epoch`]'s, two of a TEID's and ten of a SEID's, so that
//! 6 and 20 are left that count; these are never all 0, for TEID 0 and SEID 0 have meanings of their own
//! (TS 29.281 §5.1, TS 29.244 §7.2.2.4.2).

use packet::Teid;

/// Number of shards in a process.
pub const SHARDS: usize = 512;
/// Tunnel slots in one shard.
pub const TEID_SLOTS: u32 = 1 << 15;

/// One of the [`SHARDS`] shards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ShardId(u16);

impl ShardId {
    /// From the low nine bits of a hash: the same bits that a NIC's redirection table of 512 entries takes.
    pub const fn from_hash(hash: u32) -> Self {
        Self((hash & (SHARDS as u32 - 1)) as u16)
    }

    /// The shard's number, below [`SHARDS`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Every shard in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS as u16).map(Self)
    }
}

/// Which of a node's lives an identifier was handed out in: the highest bits of its generation, ten of a SEID's and two of a TEID's.
///
/// A process that takes over what another one wrote down knows what that had handed out by then, but not what it handed out afterwards, and
/// SMFs and gNBs go on using both. So it lives in the next epoch, whose SEIDs none of the 1,023 before has, and whose TEIDs none of
/// the three before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Epoch(u16);

impl Epoch {
    /// How many there are.
    const COUNT: u16 = 1 << 10;

    /// Any of them.
    pub const fn of(random: u16) -> Self {
        Self(random % Self::COUNT)
    }

    /// That of whoever takes over.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::of(self.0 + 1)
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// Where a tunnel's record lives: what a TEID of our own making says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TeidRef {
    /// The owner.
    pub shard: ShardId,
    /// Slot in the owner's uplink table, below [`TEID_SLOTS`].
    pub slot: u16,
}

impl TeidRef {
    /// The TEID for this place and generation (1..=255), said openly: on the wire it is sealed ([`crate::TeidKey::seal`]).
    pub const fn teid(self, generation: u8) -> Teid {
        Teid((generation as u32) << 24 | (self.shard.0 as u32) << 15 | self.slot as u32)
    }

    /// Where a TEID (opened) would live if it were ours; the record there says whether it is.
    pub const fn of(teid: Teid) -> Self {
        Self { shard: ShardId((teid.0 >> 15 & 0x1ff) as u16), slot: (teid.0 & 0x7fff) as u16 }
    }
}

/// Where a session lives: what a UP SEID of our own making says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionRef {
    /// The owner.
    pub shard: ShardId,
    /// Slot in the owner's session table, below 2^24.
    pub slot: u32,
}

impl SessionRef {
    /// The SEID on the wire for this place and generation (1..2^30).
    pub const fn seid(self, generation: u32) -> pfcp::Seid {
        pfcp::Seid((generation as u64) << 33 | (self.shard.0 as u64) << 24 | self.slot as u64 & 0xff_ffff)
    }

    /// The generation that a SEID says, if it is ours: 2^30 and above is nobody's.
    pub const fn generation(seid: pfcp::Seid) -> u32 {
        (seid.0 >> 33) as u32
    }

    /// Where a SEID would live if it were ours; the session there says whether it is.
    pub const fn of(seid: pfcp::Seid) -> Self {
        Self { shard: ShardId((seid.0 >> 24 & 0x1ff) as u16), slot: (seid.0 & 0xff_ffff) as u32 }
    }
}
