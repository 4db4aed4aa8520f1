//! Records under small stable numbers.
//!
//! **Problem.** A hash table, a TEID or a timer refers to a record by a number of 32 bits, the record must not move when others
//! come and go, and what was said of a removed record must not reach the one that has its number now.
//!
//! **Layout.** Slots in chunks that grow with the slab (8, 16, 32 ... slots, eight chunks of each size), with a free list threaded
//! through the vacant ones, last freed first used (its lines are the likeliest to be cached). Every slot counts its lives: the
//! *generation* changes at each removal, and a number together with a generation names one record for good (until 2^32 - 1
//! lives later).
//!
//! **Cost.** `get`: two bounds checks and one comparison. Growing reserves a chunk, an eighth of what is there already, and neither
//! moves nor copies a record, nor touches memory ahead of need. An empty slab owns no memory.
//!
//! **When not to use it.** Where records are found by key only: then put them into the table itself.

use crate::chunks::Chunks;
use crate::hash::Full;

/// End of the free list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u32,
    state: State<T>,
}

#[derive(Clone, Debug)]
enum State<T> {
    Vacant { next: u32 },
    Taken(T),
}

/// A growable array with a free list and generations; see the module's documentation.
///
/// ```
/// use tables::Slab;
/// let mut slab = Slab::new(100);
/// let index = slab.insert("first")?;
/// let generation = slab.generation(index);
/// assert_eq!(slab.remove(index), Some("first"));
/// assert_eq!(slab.insert("second")?, index);
/// assert_eq!(slab.get_if(index, generation), None);
/// # Ok::<(), tables::Full>(())
/// ```
#[derive(Clone, Debug)]
pub struct Slab<T> {
    slots: Chunks<Slot<T>>,
    free: u32,
    len: u32,
    limit: u32,
}

impl<T> Slab<T> {
    /// An empty slab of at most `limit` records, which owns no memory.
    pub const fn new(limit: u32) -> Self {
        // The last number marks the end of the free list.
        Self { slots: Chunks::new(), free: NONE, len: 0, limit: if limit < NONE { limit } else { NONE - 1 } }
    }

    /// As [`Self::new`], with memory for `capacity` records.
    pub fn with_capacity(limit: u32, capacity: u32) -> Self {
        let mut slab = Self::new(limit);
        slab.slots.reserve(capacity.min(slab.limit));
        slab
    }

    /// Bytes of memory that the slab owns, itself included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.slots.memory()
    }

    /// Number of records.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no records.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number and generation that the next insertion will give, for records that hold their own name; `None` when full.
    pub fn next(&self) -> Option<(u32, u32)> {
        let index = if self.free == NONE { self.slots.len() } else { self.free };
        (self.len < self.limit).then(|| (index, self.generation(index)))
    }

    /// Stores a record and returns its number.
    pub fn insert(&mut self, value: T) -> Result<u32, Full> {
        if self.len >= self.limit {
            return Err(Full);
        }
        let index = if let Some(slot) = self.slots.get_mut(self.free) {
            let index = self.free;
            if let State::Vacant { next } = slot.state {
                self.free = next;
            }
            slot.state = State::Taken(value);
            index
        } else {
            self.slots.push(Slot { generation: 1, state: State::Taken(value) });
            self.slots.len() - 1
        };
        self.len += 1;
        Ok(index)
    }

    /// Removes a record, and ends its generation.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index)?;
        if matches!(slot.state, State::Vacant { .. }) {
            return None;
        }
        let State::Taken(value) = std::mem::replace(&mut slot.state, State::Vacant { next: self.free })
        else {
            return None;
        };
        // Generation 0 is left for "none".
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        self.free = index;
        self.len -= 1;
        Some(value)
    }

    /// The record of this number.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<&T> {
        match &self.slots.get(index)?.state {
            State::Taken(value) => Some(value),
            State::Vacant { .. } => None,
        }
    }

    /// The record of this number, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        match &mut self.slots.get_mut(index)?.state {
            State::Taken(value) => Some(value),
            State::Vacant { .. } => None,
        }
    }

    /// The record of this number, if it is still the one of that generation.
    #[inline(always)]
    pub fn get_if(&self, index: u32, generation: u32) -> Option<&T> {
        match self.slots.get(index)? {
            Slot { generation: current, state: State::Taken(value) } if *current == generation => Some(value),
            _ => None,
        }
    }

    /// The record of this number, to be changed, if it is still the one of that generation.
    #[inline(always)]
    pub fn get_mut_if(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        match self.slots.get_mut(index)? {
            Slot { generation: current, state: State::Taken(value) } if *current == generation => Some(value),
            _ => None,
        }
    }

    /// The generation of the record of this number, or of the next one to get it; never 0.
    pub fn generation(&self, index: u32) -> u32 {
        self.slots.get(index).map_or(1, |slot| slot.generation)
    }

    /// Prefetches the first line of a record.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        self.slots.prefetch(index);
    }

    /// Prefetches all lines of a record: where most of a large one will be read.
    #[inline(always)]
    pub fn prefetch_whole(&self, index: u32) {
        self.slots.prefetch_whole(index);
    }

    /// All records with their numbers, in order of number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> + '_ {
        self.slots.iter().enumerate().filter_map(|(index, slot)| match &slot.state {
            State::Taken(value) => Some((index as u32, value)),
            State::Vacant { .. } => None,
        })
    }

    /// All records with their numbers, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> + '_ {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| match &mut slot.state {
            State::Taken(value) => Some((index as u32, value)),
            State::Vacant { .. } => None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};

    proptest! {
        #[test]
        fn equals_a_map_with_generations(ops in prop::collection::vec((any::<bool>(), 0_u32..40), 0..300), limit in 0_u32..30) {
            let mut slab = Slab::with_capacity(limit, 10);
            let mut model: BTreeMap<u32, (u32, usize)> = BTreeMap::new();
            let mut names = HashSet::new();
            for (value, (insert, index)) in ops.into_iter().enumerate() {
                if insert {
                    let next = slab.next();
                    match slab.insert(value) {
                        Ok(index) => {
                            let generation = slab.generation(index);
                            prop_assert_eq!(next, Some((index, generation)));
                            prop_assert!(generation != 0 && names.insert((index, generation)), "a name is given once");
                            prop_assert!(model.insert(index, (generation, value)).is_none());
                        }
                        Err(Full) => prop_assert!(model.len() == limit as usize && next.is_none()),
                    }
                } else {
                    prop_assert_eq!(slab.remove(index), model.remove(&index).map(|(_, value)| value));
                }
                prop_assert_eq!(slab.len(), model.len());
                prop_assert!(model.keys().all(|index| *index < limit), "numbers stay below the limit");
            }
            for (index, generation) in names {
                let expected = model.get(&index).filter(|(current, _)| *current == generation).map(|(_, value)| *value);
                prop_assert_eq!(slab.get_if(index, generation).copied(), expected);
                prop_assert_eq!(slab.get_mut_if(index, generation).copied(), expected);
                prop_assert_eq!(slab.get(index).copied(), model.get(&index).map(|(_, value)| *value));
                prop_assert_eq!(slab.get_mut(index).copied(), slab.get(index).copied());
            }
            let all: Vec<_> = slab.iter_mut().map(|(index, value)| (index, *value)).collect();
            prop_assert_eq!(&all, &slab.iter().map(|(index, value)| (index, *value)).collect::<Vec<_>>());
            prop_assert_eq!(all, model.into_iter().map(|(index, (_, value))| (index, value)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_generation_skips_zero() {
        let mut slab = Slab::new(1);
        slab.insert(()).unwrap();
        slab.slots.get_mut(0).unwrap().generation = u32::MAX;
        slab.remove(0);
        assert_eq!(slab.generation(0), 1);
    }
}
