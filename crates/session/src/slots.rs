//! Slots of one shard with generations: the allocator beneath TEIDs and SEIDs.
//!
//! A slot that is freed waits in a queue, and the queue is only tapped when it is long or the table is full, so that
//! a packet or a message that is late by a moment meets an empty slot and not a stranger. When a slot is used again
//! its generation has moved on. Cost: four bytes a slot ever used, four more while it waits; both operations O(1).

use std::collections::VecDeque;

/// How many freed slots wait before one of them is used again while the table can still grow.
const QUARANTINE: usize = 64;

const LIVE: u32 = 1 << 31;
const HIDDEN: u32 = 1 << 30;
const GENERATION: u32 = HIDDEN - 1;

/// The slots of one shard.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Generation in the low 30 bits, [`LIVE`] and [`HIDDEN`] above.
    states: Vec<u32>,
    freed: VecDeque<u32>,
    capacity: u32,
    last_generation: u32,
    first_generation: u32,
}

impl Slots {
    /// An empty table of at most `capacity` slots with generations `1..=last_generation` (at most 2^30 - 1).
    ///
    /// `seed` says where generations begin, so that what a process hands out differs from what it handed out before
    /// it was restarted: a gNB may go on sending to tunnels of the process that is gone.
    pub fn new(capacity: u32, last_generation: u32, seed: u32) -> Self {
        let last_generation = last_generation.clamp(1, GENERATION);
        Self {
            states: Vec::new(),
            freed: VecDeque::new(),
            capacity,
            last_generation,
            first_generation: 1 + seed % last_generation,
        }
    }

    /// A free slot and its new generation; `None` if all are taken.
    pub fn allocate(&mut self) -> Option<(u32, u32)> {
        let full = self.states.len() >= self.capacity as usize;
        if full || self.freed.len() > QUARANTINE {
            let slot = self.freed.pop_front()?;
            let state = self.states.get_mut(slot as usize)?;
            let generation = Self::after(*state & GENERATION, self.last_generation);
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
        let generation = Self::after(*state & GENERATION, self.last_generation);
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

    const fn after(generation: u32, last: u32) -> u32 {
        if generation >= last { 1 } else { generation + 1 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn a_freed_slot_waits_and_comes_back_in_a_new_generation() {
        let mut slots = Slots::new(1 << 15, 255, 0);
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
        let mut slots = Slots::new(2, 3, 7);
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
        let mut slots = Slots::new(8, 255, 0);
        let (slot, generation) = slots.allocate().unwrap();
        slots.hide(slot);
        assert!(!slots.is_visible(slot, generation));
        assert!(slots.release(slot));
    }

    proptest! {
        #[test]
        fn never_two_owners(operations in prop::collection::vec((any::<bool>(), 0usize..64), 0..400)) {
            let mut slots = Slots::new(32, 5, 3);
            let mut held: Vec<u32> = Vec::new();
            let mut last: HashMap<u32, u32> = HashMap::new();
            for (take, pick) in operations {
                if take {
                    if let Some((slot, generation)) = slots.allocate() {
                        prop_assert!(!held.contains(&slot));
                        prop_assert!((1..=5).contains(&generation));
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
