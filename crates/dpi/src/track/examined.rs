//! Flows that are looked into.

use crate::classify::Examination;
use crate::knowledge::Likely;
use crate::track::flow::Key;
use std::collections::VecDeque;
use tables::{Full, Slab};

/// A flow that is looked into.
#[derive(Debug)]
pub(crate) struct Examined {
    pub examination: Examination,
    /// The application so far, and why.
    pub application: Likely,
    /// Its flow's.
    pub key: Key,
}

const _: () = assert!(
    size_of::<Examined>() + 120 <= 448,
    "with its flow's line, and a share of the assemblies, 512 bytes"
);

/// All of them, by number, and by age.
#[derive(Debug)]
pub(crate) struct Examinations {
    all: Slab<Examined>,
    /// Number and generation; and some that have ended.
    by_age: VecDeque<(u32, u32)>,
}

impl Examinations {
    pub const fn new(limit: u32) -> Self {
        Self { all: Slab::new(limit), by_age: VecDeque::new() }
    }

    /// Bytes of memory that so many take at most: places are reserved a quarter ahead, and of the numbers in the queue, half may be old, in a buffer
    /// that doubles.
    pub const fn most_memory(limit: u32) -> usize {
        let place = (size_of::<Examined>() + 16) * 5 / 4;
        limit as usize * (place + 4 * size_of::<(u32, u32)>())
    }

    pub const fn len(&self) -> usize {
        self.all.len()
    }

    pub fn memory(&self) -> usize {
        self.all.memory() + self.by_age.capacity() * size_of::<(u32, u32)>()
    }

    /// Asks memory for all of it.
    #[inline]
    pub fn prefetch(&self, number: u32) {
        self.all.prefetch_whole(number);
    }

    pub fn get(&self, number: u32) -> Option<&Examined> {
        self.all.get(number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Examined> {
        self.all.get_mut(number)
    }

    /// One more.
    pub fn begin(&mut self, key: Key) -> Result<u32, Full> {
        let examined = Examined { examination: Examination::default(), application: Likely::default(), key };
        let number = self.all.insert(examined)?;
        if self.by_age.len() > 2 * self.all.len() + 64 {
            let all = &self.all;
            self.by_age.retain(|(number, generation)| all.get_if(*number, *generation).is_some());
        }
        self.by_age.push_back((number, self.all.generation(number)));
        Ok(number)
    }

    pub fn end(&mut self, number: u32) -> Option<Examined> {
        self.all.remove(number)
    }

    /// The key of the one that began first.
    pub fn oldest(&mut self) -> Option<Key> {
        while let Some((number, generation)) = self.by_age.front().copied() {
            match self.all.get_if(number, generation) {
                Some(examined) => return Some(examined.key),
                None => self.by_age.pop_front(),
            };
        }
        None
    }
}
