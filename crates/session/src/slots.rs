//! Slots of one shard with generations: the allocator beneath TEIDs and SEIDs.
//!
//! A slot that is freed waits in a queue, and the queue is only tapped when it is long or the table is full, so that
//! a packet or a message that is late by a moment meets an empty slot and not a stranger. When a slot is used again
//! its generation has moved on. Cost: four bytes a slot ever used, four more while it waits; both operations O(1).

use crate::ids::Epoch;
use std::collections::VecDeque;

/// How many freed slots wait before one of them is used again while the table can still grow.
const QUARANTINE: usize = 64;

const LIVE: u32 = 1 << 31;
const HIDDEN: u32 = 1 << 30;
const GENERATION: u32 = HIDDEN - 1;

/// How generations are made, in bits.
#[derive(Clone, Copy, Debug)]
pub struct Generations {
    /// All of a generation's, at most 30.
    pub bits: u8,
    /// Of them, the highest ones: these are the epoch's. At least one is left, and those that are left are never all 0.
    pub epoch: u8,
}

impl Generations {
    /// Those that count, of [`Self::bits`].
    const fn share(self) -> u8 {
        self.bits - self.epoch
    }

    /// How many an epoch has.
    pub const fn per_epoch(self) -> u32 {
        (1 << self.share()) - 1
    }
}

/// Of TEIDs.
pub const SHORT: Generations = Generations { bits: 8, epoch: 2 };
/// Of SEIDs.
pub const LONG: Generations = Generations { bits: 30, epoch: 10 };

/// The slots of one shard.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Generation in the low 30 bits, [`LIVE`] and [`HIDDEN`] above.
    states: Vec<u32>,
    freed: VecDeque<u32>,
    capacity: u32,
    /// Before the epoch's first generation.
    base: u32,
    /// Generations of an epoch.
    count: u32,
    first_generation: u32,
}

impl Slots {
    /// An empty table of at most `capacity` slots.
    ///
    /// `seed` says where generations begin, so that what a process hands out differs from what it handed out before
    /// it was restarted: a gNB may go on sending to tunnels of the process that is gone.
    pub fn new(capacity: u32, generations: Generations, epoch: Epoch, seed: u32) -> Self {
        let epoch = u32::from(epoch.number()) & ((1 << generations.epoch) - 1);
        let (base, count) = (epoch << generations.share(), generations.per_epoch());
        let first_generation = base + 1 + seed % count;
        Self { states: Vec::new(), freed: VecDeque::new(), capacity, base, count, first_generation }
    }

    /// A free slot and its new generation; `None` if all are taken.
    pub fn allocate(&mut self) -> Option<(u32, u32)> {
        let full = self.states.len() >= self.capacity as usize;
        if full || self.freed.len() > QUARANTINE {
            let slot = self.freed.pop_front()?;
            let state = self.states.get_mut(slot as usize)?;
            let generation = after(*state & GENERATION, self.base, self.count);
            *state = LIVE | generation;
            return Some((slot, generation));
        }
        let slot = self.states.len() as u32;
        self.states.push(LIVE | self.first_generation);
        Some((slot, self.first_generation))
    }

    /// Moves a live slot to its next generation, because somebody else uses the name that this one makes.
    pub fn bump(&mut self, slot: u32) -> Option<u32> {
        let state = self.states.get_mut(slot as usize).filter(|state| **state & LIVE != 0)?;
        let generation = after(*state & GENERATION, self.base, self.count);
        *state = LIVE | generation;
        Some(generation)
    }

    /// Marks a live slot as one that is reached by another name: its own is not on the wire.
    pub fn hide(&mut self, slot: u32) {
        if let Some(state) = self.states.get_mut(slot as usize) {
            *state |= HIDDEN;
        }
    }

    /// Frees a slot. Whether it was taken.
    pub fn release(&mut self, slot: u32) -> bool {
        match self.states.get_mut(slot as usize) {
            Some(state) if *state & LIVE != 0 => {
                *state &= GENERATION;
                self.freed.push_back(slot);
                true
            }
            _ => false,
        }
    }

    /// Whether the slot is taken in this generation and known by its own name.
    pub fn is_visible(&self, slot: u32, generation: u32) -> bool {
        self.states.get(slot as usize) == Some(&(LIVE | generation))
    }

    /// Slots that there are, taken or not.
    pub const fn len(&self) -> usize {
        self.states.len()
    }

    /// Takes a slot that somebody had in a former life, in its generation then. False: it is taken, or beyond the capacity. Afterwards, and before
    /// anything else, [`Self::settle`].
    pub fn restore(&mut self, slot: u32, generation: u32) -> bool {
        let at = slot as usize;
        if slot >= self.capacity || generation == 0 || generation > GENERATION {
            return false;
        }
        if self.states.len() <= at {
            self.states.resize(at + 1, self.base);
        }
        match self.states.get_mut(at) {
            Some(state) if *state & LIVE == 0 => {
                *state = LIVE | generation;
                true
            }
            _ => false,
        }
    }

    /// What was restored is all that there is: the slots between are free.
    pub fn settle(&mut self) {
        let free = self.states.iter().enumerate().filter(|(_, state)| **state & LIVE == 0);
        self.freed = free.map(|(slot, _)| slot as u32).collect();
    }
}

/// The next generation of the epoch: its first after one of another epoch.
const fn after(generation: u32, base: u32, count: u32) -> u32 {
    if generation > base && generation < base + count { generation + 1 } else { base + 1 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const FEW: Generations = Generations { bits: 4, epoch: 2 };

    #[test]
    fn a_freed_slot_waits_and_comes_back_in_a_new_generation() {
        let mut slots = Slots::new(1 << 15, SHORT, Epoch::default(), 0);
        let (slot, generation) = slots.allocate().unwrap();
        assert_eq!((slot, generation), (0, 1));
        assert!(slots.release(slot));
        assert!(!slots.release(slot), "freeing twice is noticed");
        for _ in 0..QUARANTINE {
            let (other, _) = slots.allocate().unwrap();
            assert_ne!(other, 0, "too early");
            slots.release(other);
        }
        assert_eq!(slots.allocate(), Some((0, 2)));
        assert!(!slots.is_visible(0, 1));
        assert!(slots.is_visible(0, 2));
    }

    #[test]
    fn a_full_table_reuses_at_once_and_then_refuses() {
        let mut slots = Slots::new(2, FEW, Epoch::default(), 7);
        assert_eq!(slots.allocate(), Some((0, 2)));
        assert_eq!(slots.allocate(), Some((1, 2)));
        assert_eq!(slots.allocate(), None);
        slots.release(1);
        assert_eq!(slots.allocate(), Some((1, 3)));
        slots.release(1);
        assert_eq!(slots.allocate(), Some((1, 1)), "generation 0 is never used");
    }

    #[test]
    fn a_hidden_slot_has_no_name_of_its_own() {
        let mut slots = Slots::new(8, SHORT, Epoch::default(), 0);
        let (slot, generation) = slots.allocate().unwrap();
        slots.hide(slot);
        assert!(!slots.is_visible(slot, generation));
        assert!(slots.release(slot));
    }

    #[test]
    fn generations_of_another_epoch_are_never_handed_out() {
        let (mut before, mut after) =
            (Slots::new(4, FEW, Epoch::of(3), 1), Slots::new(4, FEW, Epoch::of(3).next(), 1));
        let kept = before.allocate().unwrap();
        assert!(after.restore(kept.0, kept.1) && !after.restore(kept.0, kept.1) && !after.restore(4, 1));
        // Slots 1 and 2 were another's in the meantime, of whom nobody told.
        assert!(after.restore(3, 13));
        after.settle();
        let mut handed_out = vec![kept];
        for _ in 0..8 {
            handed_out.extend([before.allocate().unwrap(), before.allocate().unwrap()]);
            for (slot, _) in handed_out.split_off(handed_out.len() - 2) {
                assert!(before.release(slot));
            }
            for _ in 0..2 {
                let (slot, generation) = after.allocate().unwrap();
                assert!([1, 2].contains(&slot) && (1..=3).contains(&generation), "{slot} {generation}");
                after.release(slot);
            }
        }
        assert!(after.release(kept.0));
        after.allocate();
        after.allocate();
        assert_eq!(after.allocate(), Some((0, 1)), "its first of this epoch");
    }

    proptest! {
        #[test]
        fn never_two_owners(operations in prop::collection::vec((any::<bool>(), 0usize..64), 0..400)) {
            let mut slots = Slots::new(32, Generations { bits: 5, epoch: 2 }, Epoch::of(2), 3);
            let mut held: Vec<u32> = Vec::new();
            let mut last: HashMap<u32, u32> = HashMap::new();
            for (take, pick) in operations {
                if take {
                    if let Some((slot, generation)) = slots.allocate() {
                        prop_assert!(!held.contains(&slot));
                        prop_assert!((17..=23).contains(&generation));
                        if let Some(before) = last.insert(slot, generation) {
                            prop_assert_ne!(before, generation);
                        }
                        held.push(slot);
                    } else {
                        prop_assert_eq!(held.len(), 32);
                    }
                } else if !held.is_empty() {
                    let slot = held.swap_remove(pick % held.len());
                    prop_assert!(slots.release(slot));
                }
                prop_assert_eq!(slots.states.len() - slots.freed.len(), held.len());
            }
        }
    }
}
