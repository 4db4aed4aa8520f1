//! Behind which port is this MAC address?
//!
//! **Problem.** A switch learns from the source of each frame where its sender is, and forwards by destination; a frame costs two look-ups. Senders
//! move, fall silent, or are invented by the million.
//!
//! **Model.** A flat cuckoo table ([`crate::cuckoo`], layout in [`crate::image`]) of MAC address and VLAN, each VLAN learning by itself (IEEE 802.1Q, 8.8).
//! An entry is *dynamic*, with the time at which it was last seen, or *static*, and then neither moves nor ages. Time is the caller's, and counts in
//! units of 2^30 ns: learning a sender again within one writes nothing.
//!
//! **Ageing.** [`L2::age`] looks at so many buckets a call, round and round, and removes what was not seen for as long as is configured. So an entry may
//! be answered for one round longer: call it so often that a round takes a few seconds.
//!
//! **Hostile floods.** The table has a limit, each port and each VLAN one of its own; what would exceed one is not learnt, and the answer says which
//! ([`Refusal`]). A flood from one port can thus fill its own share, and moves nothing but what it claims to be. Group addresses and the zero address are no
//! senders. Chosen addresses can't be made to collide without the seed.
//!
//! ```
//! use tables::l2::{L2, L2Config, Learnt, Station};
//! use tables::{Lookup, Nanos};
//! let mut table = L2::new(0x5eed, L2Config::new(1000), Nanos(0))?;
//! let station = Station::new([2, 0, 0, 0, 0, 1], 7);
//! assert_eq!(table.learn(station, 3, Nanos(0)), Learnt::New);
//! assert_eq!(table.learn(station, 4, Nanos(5)), Learnt::Moved { from: 3 });
//! assert_eq!(table.lookup(&station), Some(4));
//! # Ok::<(), tables::CuckooError>(())
//! ```
//!
//! **Cost.** As IPv4 flows: a line or two a look-up, 19.2 bytes an entry. A flush looks at every bucket, at some gigabytes a second.
//!
//! **When not to use it.** For what is not learnt from traffic.

use crate::cuckoo::CuckooError;
use crate::cuckoo::slots::{Short, Slot, SlotProbe, Slots};
use crate::image::{self, Changes, Kind, Layout};
use crate::lookup::Lookup;
use crate::simd::Processor;
use crate::time::Nanos;

/// The slots of [`L2`].
#[derive(Clone, Copy, Debug)]
pub enum Link {}

impl Slot for Link {
    const MASK: [u32; 4] = [u32::MAX, u32::MAX, 0, 0xff];
    const KIND: Kind = Kind::Link;
}

/// A MAC address in a VLAN.
pub type Station = Short<Link>;

/// VLAN numbers.
const VLANS: usize = 1 << 12;
/// Word 2 of a slot: the entry is static.
const STATIC: u32 = 1 << 31;
/// The logarithm of a unit of time.
const UNIT: u32 = 30;

impl Station {
    /// This address in this VLAN, of whose number the lower 12 bits count; 0 stands for frames without a tag.
    pub const fn new(mac: [u8; 6], vlan: u16) -> Self {
        let [a, b, c, d, e, f] = mac;
        let low = u32::from_be_bytes([c, d, e, f]);
        Self::of([low, ((vlan & 0xfff) as u32) << 16 | (a as u32) << 8 | b as u32, 0, 0])
    }

    /// The VLAN.
    pub const fn vlan(&self) -> u16 {
        (self.words[1] >> 16) as u16
    }

    /// The MAC address.
    pub const fn mac(&self) -> [u8; 6] {
        let [_, _, a, b] = self.words[1].to_be_bytes();
        let [c, d, e, f] = self.words[0].to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// Whether frames can come from it.
    const fn is_sender(&self) -> bool {
        self.words[1] >> 8 & 1 == 0 && (self.words[0] != 0 || self.words[1] & 0xffff != 0)
    }
}

/// What a table may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct L2Config {
    /// Entries.
    pub limit: u32,
    /// Dynamic entries of a port.
    pub per_port: u32,
    /// Dynamic entries of a VLAN.
    pub per_vlan: u32,
    /// After how many nanoseconds of silence a dynamic entry goes.
    pub ageing: u64,
}

impl L2Config {
    /// So many entries, of which one port or VLAN may have half; five minutes, as 802.1Q recommends (8.8.3).
    pub const fn new(limit: u32) -> Self {
        let half = limit.div_ceil(2);
        Self { limit, per_port: half, per_vlan: half, ageing: 300 * Nanos::SECOND }
    }
}

/// What came of a frame's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learnt {
    /// It was not known.
    New,
    /// It is where it was.
    Same,
    /// It was behind another port.
    Moved {
        /// Which.
        from: u16,
    },
    /// It is not learnt.
    Refused(Refusal),
}

/// Why not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A group's address, or zero.
    NoSender,
    /// A static entry says otherwise.
    Static,
    /// The port has as many as it may.
    Port,
    /// The VLAN has as many as it may.
    Vlan,
    /// The table has as many as it may.
    Full,
}

/// MAC addresses and their ports; see the module's documentation.
#[derive(Debug)]
pub struct L2 {
    slots: Slots<Link>,
    config: L2Config,
    /// Dynamic entries, by port and by VLAN.
    ports: Vec<u32>,
    vlans: Vec<u32>,
    /// The bucket that is looked at next.
    hand: u32,
    /// What the times of entries count from.
    epoch: Nanos,
}

const fn port_of(words: [u32; 4]) -> u16 {
    ((words[3] >> 8) - 1) as u16
}

const fn station_of(words: [u32; 4]) -> Station {
    Station::of([words[0], words[1], 0, 0])
}

impl L2 {
    /// An empty table with memory for all that it may hold. The seed should be random.
    pub fn new(seed: u64, config: L2Config, now: Nanos) -> Result<Self, CuckooError> {
        let slots = Slots::new(seed, config.limit)?;
        Ok(Self { slots, config, ports: Vec::new(), vlans: vec![0; VLANS], hand: 0, epoch: now })
    }

    /// Looks bulks up with the instructions of this processor, or of the best below it that is here.
    #[must_use]
    pub fn with_processor(mut self, processor: Processor) -> Self {
        self.slots = self.slots.with_processor(processor);
        self
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Dynamic entries of a port.
    pub fn of_port(&self, port: u16) -> u32 {
        self.ports.get(usize::from(port)).copied().unwrap_or(0)
    }

    /// Dynamic entries of a VLAN.
    pub fn of_vlan(&self, vlan: u16) -> u32 {
        self.vlans.get(usize::from(vlan)).copied().unwrap_or(0)
    }

    /// Bytes of memory that the table owns, without a journal.
    pub fn memory(&self) -> usize {
        self.slots.memory() + (self.ports.capacity() + self.vlans.capacity()) * size_of::<u32>()
    }

    /// A frame came from `source` through `port`.
    pub fn learn(&mut self, source: Station, port: u16, now: Nanos) -> Learnt {
        self.learn_prepared(self.slots.probe(&source), source, port, now)
    }

    /// Asks for what [`Self::learn_prepared`] reads.
    #[inline]
    pub fn expect(&self, source: &Station) -> SlotProbe {
        self.slots.expect(source)
    }

    /// As [`Self::learn`], for a source that was prepared or expected.
    pub fn learn_prepared(&mut self, probe: SlotProbe, source: Station, port: u16, now: Nanos) -> Learnt {
        if !source.is_sender() {
            return Learnt::Refused(Refusal::NoSender);
        }
        let seen = self.unit(now);
        let Some((bucket, slot)) = self.slots.position(probe, &source) else {
            return self.enter(probe, source, port, seen);
        };
        let Some(words) = self.slots.slot(bucket, slot) else { return Learnt::Refused(Refusal::Full) };
        let from = port_of(words);
        if words[2] & STATIC != 0 {
            return if from == port { Learnt::Same } else { Learnt::Refused(Refusal::Static) };
        }
        if from != port {
            if self.of_port(port) >= self.config.per_port {
                return Learnt::Refused(Refusal::Port);
            }
            self.count(from, None, false);
            self.count(port, None, true);
        }
        if from != port || words[2] != seen {
            self.slots.write(bucket, slot, slot_of(&source, port, seen));
        }
        if from == port { Learnt::Same } else { Learnt::Moved { from } }
    }

    fn enter(&mut self, probe: SlotProbe, source: Station, port: u16, seen: u32) -> Learnt {
        if self.of_port(port) >= self.config.per_port {
            return Learnt::Refused(Refusal::Port);
        }
        if self.of_vlan(source.vlan()) >= self.config.per_vlan {
            return Learnt::Refused(Refusal::Vlan);
        }
        if self.slots.put(probe, &source, slot_of(&source, port, seen)).is_err() {
            return Learnt::Refused(Refusal::Full);
        }
        self.count(port, Some(source.vlan()), true);
        Learnt::New
    }

    /// Makes a static entry, whatever was there before; its former port.
    pub fn pin(&mut self, station: Station, port: u16) -> Result<Option<u16>, CuckooError> {
        let before = self.slots.put(self.slots.probe(&station), &station, slot_of(&station, port, STATIC))?;
        if let Some(words) = before {
            self.forget(words);
        }
        Ok(before.map(port_of))
    }

    /// Removes an entry, static or not; its port.
    pub fn remove(&mut self, station: &Station) -> Option<u16> {
        let (bucket, slot) = self.slots.position(self.slots.probe(station), station)?;
        let words = self.slots.clear(bucket, slot)?;
        self.forget(words);
        Some(port_of(words))
    }

    /// Looks at the next `buckets` buckets of four, and removes the dynamic entries that were not seen for too long; they are handed to `gone`.
    pub fn age(&mut self, now: Nanos, buckets: u32, gone: &mut impl FnMut(Station, u16)) {
        let now = self.unit(now);
        let most = u32::try_from(self.config.ageing >> UNIT).unwrap_or(u32::MAX);
        for _ in 0..buckets.min(self.slots.buckets()) {
            let bucket = self.hand;
            self.hand = (bucket + 1) % self.slots.buckets();
            self.clear_if(bucket, |words| now.saturating_sub(words[2]) > most, gone);
        }
    }

    /// Removes a VLAN's dynamic entries; how many.
    pub fn flush_vlan(&mut self, vlan: u16) -> u32 {
        self.flush(|words| station_of(words).vlan() == vlan)
    }

    /// Removes a port's dynamic entries, as when its link goes down; how many.
    pub fn flush_port(&mut self, port: u16) -> u32 {
        self.flush(|words| port_of(words) == port)
    }

    fn flush(&mut self, which: impl Fn([u32; 4]) -> bool + Copy) -> u32 {
        let mut count = 0;
        for bucket in 0..self.slots.buckets() {
            self.clear_if(bucket, which, &mut |_, _| count += 1);
        }
        count
    }

    /// Removes the dynamic entries of a bucket that `which` chooses.
    fn clear_if(
        &mut self,
        bucket: u32,
        which: impl Fn([u32; 4]) -> bool,
        gone: &mut impl FnMut(Station, u16),
    ) {
        for slot in 0..4 {
            let chosen =
                self.slots.slot(bucket, slot).filter(|words| words[2] & STATIC == 0 && which(*words));
            if let Some(words) = chosen {
                self.slots.clear(bucket, slot);
                self.forget(words);
                gone(station_of(words), port_of(words));
            }
        }
    }

    /// No longer counts an entry, if it was dynamic.
    fn forget(&mut self, words: [u32; 4]) {
        if words[2] & STATIC == 0 {
            self.count(port_of(words), Some(station_of(words).vlan()), false);
        }
    }

    fn count(&mut self, port: u16, vlan: Option<u16>, more: bool) {
        let port = usize::from(port);
        if self.ports.len() <= port {
            self.ports.resize(port + 1, 0);
        }
        let vlan = vlan.and_then(|vlan| self.vlans.get_mut(usize::from(vlan)));
        for count in self.ports.get_mut(port).into_iter().chain(vlan) {
            *count = if more { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// A moment in the units of the entries.
    const fn unit(&self, now: Nanos) -> u32 {
        (now.since(self.epoch) >> UNIT) as u32 & !STATIC
    }
}

const fn slot_of(station: &Station, port: u16, seen: u32) -> [u32; 4] {
    [station.words[0], station.words[1], seen, (port as u32 + 1) << 8]
}

/// The port, in the phases of [`Slots`].
impl Lookup for L2 {
    type Key = Station;
    type Value = u32;
    type Probe = SlotProbe;

    #[inline(always)]
    fn prepare(&self, key: &Station) -> SlotProbe {
        self.slots.prepare(key)
    }

    #[inline(always)]
    fn step(&self, probe: &mut SlotProbe, key: &Station) -> bool {
        self.slots.step(probe, key)
    }

    #[inline(always)]
    fn finish(&self, probe: SlotProbe, key: &Station) -> Option<u32> {
        self.slots.finish(probe, key)
    }

    fn lookup_bulk(&self, keys: &[Station], out: &mut [Option<u32>]) {
        self.slots.lookup_bulk(keys, out);
    }
}

impl image::Image for L2 {
    fn layout(&self) -> Layout {
        self.slots.layout()
    }

    fn regions(&self) -> Vec<&[u32]> {
        self.slots.regions()
    }

    fn track(&mut self, limit: usize) {
        self.slots.track(limit);
    }

    fn changes(&mut self, into: &mut Changes) {
        self.slots.changes(into);
    }
}

#[cfg(test)]
mod tests;
