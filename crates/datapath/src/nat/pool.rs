//! Public ports: which shard owns which, and which UE has which.
//!
//! The ports of each public address are cut into blocks. Arithmetic alone says which shard owns a block, so that any worker
//! can tell from a packet's destination who must translate it, as a TEID tells who owns a session. Of up to 512 addresses, each serves
//! its own share of the shards, and all blocks of a shard are on one address: so a UE keeps one public address however
//! many blocks it takes ("paired", RFC 4787 REQ-2). Of more addresses, each belongs to one shard as a whole.

use super::plan::Protocol;
use session::SHARDS;
use std::collections::VecDeque;

const SHARD_COUNT: u32 = SHARDS as u32;
/// In a port's place: nobody's.
const FREE: u32 = u32::MAX;
/// In a port's place: never to be given.
const RESERVED: u32 = u32::MAX - 1;

/// Where a public port is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The owner.
    pub shard: u16,
    /// Its block there.
    pub block: BlockId,
    /// Place in the block.
    pub offset: u16,
}

/// A block of a shard: the address's number in the shard, and the block's among those that the shard has there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(u32);

impl BlockId {
    const fn new(address: u32, block: u32) -> Self {
        Self(address << 16 | block)
    }

    const fn address(self) -> u32 {
        self.0 >> 16
    }

    const fn block(self) -> u32 {
        self.0 & 0xffff
    }
}

/// The arithmetic of one pool.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    addresses: u32,
    /// Blocks of one address.
    blocks: u32,
    first_port: u16,
    /// A block has 2^this ports.
    shift: u32,
}

impl Numbering {
    /// For so many addresses, with blocks of `size` (a power of two) ports. What is left of the ports isn't used.
    pub const fn new(addresses: u32, first_port: u16, size: u16) -> Self {
        let shift = size.trailing_zeros();
        Self { addresses, blocks: (65_536 - first_port as u32) >> shift, first_port, shift }
    }

    /// Blocks of the whole pool.
    pub const fn blocks(&self) -> u32 {
        self.addresses * self.blocks
    }

    /// Ports in a block.
    pub const fn size(&self) -> u16 {
        1 << self.shift
    }

    /// How many shards share an address: those whose number is the address's, modulo the number of addresses.
    const fn lanes(&self, address: u32) -> u32 {
        if self.addresses >= SHARD_COUNT { 1 } else { (SHARD_COUNT - 1 - address) / self.addresses + 1 }
    }

    /// Whether every shard has a block.
    pub const fn serves_all(&self) -> bool {
        self.addresses > 0 && self.blocks >= self.lanes(0)
    }

    /// Where a port of the pool's `address`th address is kept; `None`: it is never given.
    #[inline(always)]
    pub const fn place(&self, address: u32, port: u16) -> Option<Place> {
        if port < self.first_port {
            return None;
        }
        let from = port - self.first_port;
        let (block, offset) = ((from >> self.shift) as u32, from & (self.size() - 1));
        if block >= self.blocks {
            return None;
        }
        let (shard, block) = if self.addresses >= SHARD_COUNT {
            (address % SHARD_COUNT, BlockId::new(address / SHARD_COUNT, block))
        } else {
            let lanes = self.lanes(address);
            (address + self.addresses * (block % lanes), BlockId::new(0, block / lanes))
        };
        Some(Place { shard: shard as u16, block, offset })
    }

    /// The address's number in the pool, and the first port: [`Self::place`] backwards.
    pub const fn port(&self, shard: u16, id: BlockId) -> (u32, u16) {
        let shard = shard as u32;
        let (address, block) = if self.addresses >= SHARD_COUNT {
            (shard + SHARD_COUNT * id.address(), id.block())
        } else {
            let address = shard % self.addresses;
            (address, id.block() * self.lanes(address) + shard / self.addresses)
        };
        (address, self.first_port + (block << self.shift) as u16)
    }

    /// How many addresses a shard has, and how many blocks of each.
    const fn share(&self, shard: u16) -> (u32, u32) {
        let shard = shard as u32;
        if self.addresses == 0 {
            return (0, 0);
        }
        if self.addresses >= SHARD_COUNT {
            return ((self.addresses - shard - 1) / SHARD_COUNT + 1, self.blocks);
        }
        let (address, lane) = (shard % self.addresses, shard / self.addresses);
        let lanes = self.lanes(address);
        (1, (self.blocks + lanes - 1 - lane) / lanes)
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// The subscriber.
    owner: u32,
    /// Where its ports are in `slots`.
    run: u32,
    /// Ports that are taken or reserved, by protocol.
    used: [u16; Protocol::COUNT],
    /// Ports that are taken.
    live: u16,
}

/// Blocks of one address. They are given in order, then those returned longest ago first: what still arrives for a block's
/// former owner has time to cease (RFC 6888 REQ-8).
#[derive(Debug)]
struct Address {
    given: Vec<Option<Block>>,
    returned: VecDeque<u32>,
    limit: u32,
}

impl Address {
    fn free(&self) -> usize {
        (self.limit as usize - self.given.len()) + self.returned.len()
    }
}

/// One shard's blocks of one pool.
#[derive(Debug)]
pub struct Blocks {
    numbering: Numbering,
    shard: u16,
    addresses: Vec<Address>,
    /// By block given, protocol and port: the mapping's number.
    slots: Vec<u32>,
    /// Runs of slots that blocks left.
    runs: Vec<u32>,
}

impl Blocks {
    /// All free.
    pub fn new(numbering: Numbering, shard: u16) -> Self {
        let (addresses, limit) = numbering.share(shard);
        let address = || Address { given: Vec::new(), returned: VecDeque::new(), limit };
        Self {
            numbering,
            shard,
            addresses: (0..addresses).map(|_| address()).collect(),
            slots: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// An address with a free block, the first from a random one on.
    pub fn any_address(&self, random: u64) -> Option<u32> {
        let n = self.addresses.len() as u64;
        let start = if n == 0 { 0 } else { random % n };
        let mut order = (start..n).chain(0..start);
        order.find(|at| self.addresses.get(*at as usize).is_some_and(|a| a.free() > 0)).map(|at| at as u32)
    }

    /// Gives a block of an address to a subscriber. `reserved` ports of that address are left out.
    pub fn take(
        &mut self,
        address: u32,
        owner: u32,
        reserved: impl Iterator<Item = (Protocol, u16)>,
    ) -> Option<BlockId> {
        let place = self.addresses.get_mut(address as usize)?;
        let number = if (place.given.len() as u32) < place.limit {
            place.given.push(None);
            place.given.len() as u32 - 1
        } else {
            place.returned.pop_front()?
        };
        let length = Protocol::COUNT << self.numbering.shift;
        let run = self.runs.pop().unwrap_or_else(|| {
            self.slots.resize(self.slots.len() + length, FREE);
            (self.slots.len() / length) as u32 - 1
        });
        let id = BlockId::new(address, number);
        let mut block = Block { owner, run, used: [0; Protocol::COUNT], live: 0 };
        let (_, first) = self.numbering.port(self.shard, id);
        for (protocol, port) in reserved {
            let Some(offset) = port.checked_sub(first).filter(|o| *o < self.numbering.size()) else {
                continue;
            };
            let slot = self.numbering.slot(run, protocol, offset);
            if let (Some(slot), Some(used)) = (self.slots.get_mut(slot), block.used.get_mut(protocol.index()))
            {
                *slot = RESERVED;
                *used += 1;
            }
        }
        *self.addresses.get_mut(address as usize)?.given.get_mut(number as usize)? = Some(block);
        Some(id)
    }

    fn block(&self, id: BlockId) -> Option<&Block> {
        self.addresses.get(id.address() as usize)?.given.get(id.block() as usize)?.as_ref()
    }

    fn block_mut(&mut self, id: BlockId) -> Option<&mut Block> {
        self.addresses.get_mut(id.address() as usize)?.given.get_mut(id.block() as usize)?.as_mut()
    }

    /// A free port of a block, chosen at random (RFC 6056) among those of the wanted parity (RFC 4787 REQ-4), if there
    /// are any. Says its place in the block.
    pub fn choose(&self, id: BlockId, protocol: Protocol, random: u64, parity: u16) -> Option<u16> {
        let block = self.block(id)?;
        let size = self.numbering.size();
        if block.used.get(protocol.index())? >= &size {
            return None;
        }
        let start = (random as u16 & (size - 1) & !1) | (parity & 1) ^ (self.numbering.first_port & 1);
        let free = |offset: &u16| {
            let slot = self.numbering.slot(block.run, protocol, *offset);
            self.slots.get(slot) == Some(&FREE)
        };
        let of_parity = |start: u16| (0..size / 2).map(move |step| (start + 2 * step) & (size - 1));
        of_parity(start).chain(of_parity(start ^ 1)).find(free)
    }

    /// A port of a block is this mapping's from now on.
    pub fn set(&mut self, id: BlockId, protocol: Protocol, offset: u16, mapping: u32) {
        let Some(block) = self.block_mut(id) else { return };
        block.live += 1;
        if let Some(used) = block.used.get_mut(protocol.index()) {
            *used += 1;
        }
        let run = block.run;
        let slot = self.numbering.slot(run, protocol, offset);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = mapping;
        }
    }

    /// A port is free again. If it was the block's last one, the block is returned, and its owner told.
    pub fn clear(&mut self, id: BlockId, protocol: Protocol, offset: u16) -> Option<u32> {
        let block = self.block_mut(id)?;
        block.live -= 1;
        if let Some(used) = block.used.get_mut(protocol.index()) {
            *used -= 1;
        }
        let Block { run, live, owner, .. } = *block;
        let slot = self.numbering.slot(run, protocol, offset);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = FREE;
        }
        if live > 0 {
            return None;
        }
        self.give_back(id);
        Some(owner)
    }

    /// Returns a block none of whose ports are taken.
    pub fn give_back(&mut self, id: BlockId) {
        let Some(Block { run, .. }) = self.block(id).copied() else { return };
        // Reserved ports are somebody else's in the next block.
        let length = Protocol::COUNT << self.numbering.shift;
        let start = run as usize * length;
        self.slots.get_mut(start..start + length).unwrap_or_default().fill(FREE);
        self.runs.push(run);
        if let Some(address) = self.addresses.get_mut(id.address() as usize) {
            if let Some(place) = address.given.get_mut(id.block() as usize) {
                *place = None;
            }
            address.returned.push_back(id.block());
        }
    }

    /// A free port of a block, if that is given, is not given from now on.
    pub fn reserve(&mut self, id: BlockId, protocol: Protocol, offset: u16) {
        let Some(run) = self.block(id).map(|block| block.run) else { return };
        let slot = self.numbering.slot(run, protocol, offset);
        if let Some(slot) = self.slots.get_mut(slot).filter(|slot| **slot == FREE) {
            *slot = RESERVED;
            if let Some(used) = self.block_mut(id).and_then(|block| block.used.get_mut(protocol.index())) {
                *used += 1;
            }
        }
    }

    /// All mappings that have a port of a block.
    pub fn mappings(&self, id: BlockId) -> Vec<u32> {
        let Some(block) = self.block(id) else { return Vec::new() };
        let start = self.numbering.slot(block.run, Protocol::Tcp, 0);
        let slots = self.slots.get(start..start + (Protocol::COUNT << self.numbering.shift));
        slots.unwrap_or_default().iter().copied().filter(|slot| *slot < RESERVED).collect()
    }

    /// The number of one of the shard's addresses in the pool.
    pub const fn number(&self, address: u32) -> u32 {
        self.numbering.port(self.shard, BlockId::new(address, 0)).0
    }

    /// A block's address, by its number in the pool, and its first port.
    pub const fn port(&self, id: BlockId) -> (u32, u16) {
        self.numbering.port(self.shard, id)
    }

    /// Brings the line that says where a block's ports are. First phase of [`Self::get`].
    #[inline(always)]
    pub fn prefetch_block(&self, id: BlockId) {
        if let Some(address) = self.addresses.get(id.address() as usize) {
            tables::prefetch::prefetch_slice_at(&address.given, id.block() as usize);
        }
    }

    /// Brings the line that says which mapping has a port. Second phase.
    #[inline(always)]
    pub fn prefetch_slot(&self, id: BlockId, protocol: Protocol, offset: u16) {
        if let Some(block) = self.block(id) {
            tables::prefetch::prefetch_slice_at(
                &self.slots,
                self.numbering.slot(block.run, protocol, offset),
            );
        }
    }

    /// The mapping that has a port.
    #[inline(always)]
    pub fn get(&self, id: BlockId, protocol: Protocol, offset: u16) -> Option<u32> {
        let block = self.block(id)?;
        let slot = self.slots.get(self.numbering.slot(block.run, protocol, offset))?;
        (*slot < RESERVED).then_some(*slot)
    }
}

impl Numbering {
    /// Where the slot of a port is, within the run that its block has.
    #[inline(always)]
    const fn slot(&self, run: u32, protocol: Protocol, offset: u16) -> usize {
        ((run as usize * Protocol::COUNT + protocol.index()) << self.shift) + offset as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Few and many addresses, around the number of shards, small and large blocks, odd first ports.
    fn numbering() -> impl Strategy<Value = Numbering> {
        let addresses = prop_oneof![1u32..20, 500u32..530, Just(1024u32), Just(1300u32)];
        (addresses, 0u16..60_000, 4u32..14).prop_map(|(a, first, shift)| Numbering::new(a, first, 1 << shift))
    }

    proptest! {
        #[test]
        fn every_port_has_one_place_and_the_way_back_leads_to_it(
            n in numbering(), address in any::<u32>(), port in any::<u16>()
        ) {
            let address = address % n.addresses;
            if let Some(place) = n.place(address, port) {
                let (back, first) = n.port(place.shard, place.block);
                prop_assert_eq!((back, first + place.offset), (address, port));
                let (addresses, blocks) = n.share(place.shard);
                prop_assert!(place.block.address() < addresses && place.block.block() < blocks);
            } else {
                let used = u32::from(n.first_port) + (n.blocks << n.shift);
                prop_assert!(port < n.first_port || u32::from(port) >= used);
            }
        }
    }

    #[test]
    fn all_blocks_are_shared_out_evenly() {
        for addresses in [1, 3, 64, 256, 512, 700, 1024] {
            let n = Numbering::new(addresses, 1024, 64);
            let shares: Vec<u32> = (0..SHARDS as u16)
                .map(|shard| {
                    let (addresses, blocks) = n.share(shard);
                    addresses * blocks
                })
                .collect();
            assert_eq!(shares.iter().sum::<u32>(), n.blocks());
            assert!(n.serves_all() && shares.iter().all(|share| *share > 0));
            if addresses < SHARD_COUNT && SHARD_COUNT.is_multiple_of(addresses) {
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
        assert!(!Numbering::new(1, 1024, 128).serves_all());
        assert!(Numbering::new(1, 1024, 64).serves_all());
        assert!(!Numbering::new(2, 60_000, 64).serves_all());
    }

    #[test]
    fn a_block_comes_back_with_its_last_port() {
        let mut blocks = Blocks::new(Numbering::new(1, 1024, 64), 7);
        let (_, limit) = blocks.numbering.share(7);
        let reserved = [(Protocol::Tcp, 1024 + 7 * 64 + 5), (Protocol::Udp, 9)];
        let mut seen = HashSet::new();
        for owner in 0..limit {
            let id = blocks.take(0, owner, reserved.into_iter()).unwrap();
            assert!(seen.insert(id));
            if owner == 0 {
                assert_eq!(blocks.get(id, Protocol::Tcp, 5), None);
                assert_eq!(blocks.block(id).unwrap().used, [1, 0, 0]);
            }
        }
        assert_eq!((blocks.take(0, 9, [].into_iter()), blocks.any_address(3)), (None, None));
        let first = BlockId::new(0, 0);
        let mut given = Vec::new();
        while let Some(offset) = blocks.choose(first, Protocol::Tcp, 0x1234_5678, 1) {
            blocks.set(first, Protocol::Tcp, offset, u32::from(offset));
            given.push(offset);
        }
        assert_eq!(given.len(), 63, "all but the reserved one");
        assert!(given.iter().take(31).all(|offset| offset % 2 == 1), "as long as there are odd ones");
        blocks.set(first, Protocol::Icmp, 5, 77);
        assert_eq!(blocks.get(first, Protocol::Icmp, 5), Some(77));
        for offset in given {
            assert_eq!(blocks.get(first, Protocol::Tcp, offset), Some(u32::from(offset)));
            assert_eq!(blocks.clear(first, Protocol::Tcp, offset), None);
        }
        assert_eq!(blocks.clear(first, Protocol::Icmp, 5), Some(0));
        assert_eq!(blocks.get(first, Protocol::Icmp, 5), None);
        assert_eq!(blocks.any_address(3), Some(0));
        assert_eq!(blocks.take(0, 9, [].into_iter()), Some(first));
        assert_eq!(blocks.block(first).unwrap().used, [0, 0, 0]);
    }
}
