//! Copies of tables, which devices look keys up in while the tables change.
//!
//! **Model.** The owner of a table asks it from time to time what has changed ([`Image::changes`]), and hands that to each device that has a copy
//! ([`Device::follow`](crate::Device::follow)). The device writes the lines that changed into its copy, while look-ups run: there is no
//! second copy and nobody waits. So a look-up may come upon an entry that is just being moved, and not find it. The device tells: an answer that
//! was worked out while lines were on their way comes back as not [steady](crate::Completion::steady), and is to be asked for once more, in memory or here.
//! All others are what the table had at the generation that was followed last. (A memo promises less, and whoever asks one verifies what it says.)
//!
//! [`OnHost`] is a copy in this process's memory: what devices made of threads look keys up in, and the twin of that on a GPU. Whoever has the table itself in
//! reach looks keys up there, faster.

mod follow;
pub mod layout;
mod read;

pub use follow::Follower;
use layout::LINE;
pub use layout::key_words;

use crate::device::Failure;
use crate::task::Task;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tables::image::{Changes, Image, Kind};

/// A table, by a number that its owner gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// How often each copy was written to, by which a device knows whether an answer is steady.
#[derive(Debug, Clone, Default)]
pub struct Versions(BTreeMap<TableId, u64>);

impl Versions {
    /// Lines are written.
    pub fn write(&mut self, table: TableId) {
        *self.0.entry(table).or_default() += 1;
    }

    /// The version of the copy that a task reads; none if it reads none, or there is none.
    pub fn of_task(&self, task: &Task) -> Option<u64> {
        match task {
            Task::Lookup(lookup) => self.0.get(&lookup.table).copied(),
            _ => None,
        }
    }
}

/// A copy's words.
#[derive(Debug, Clone)]
struct Copy {
    kind: Kind,
    words: Arc<[AtomicU32]>,
}

/// Where threads find copies.
#[derive(Debug, Clone, Default)]
pub struct Shelf(Arc<RwLock<BTreeMap<TableId, Copy>>>);

impl Shelf {
    fn copy(&self, table: TableId) -> Option<Copy> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&table).cloned()
    }

    /// Whether there is a copy of it.
    pub fn has(&self, table: TableId) -> bool {
        self.copy(table).is_some()
    }

    /// Looks keys up, each of as many words as the kind has; without a copy of that kind, it says so.
    pub fn look_up(
        &self,
        table: TableId,
        kind: Kind,
        keys: &[u8],
        answers: &mut [u8],
    ) -> Result<(), Failure> {
        let copy = self.copy(table).filter(|copy| copy.kind == kind && copy.words.len() >= read::HEADER);
        let copy = copy.ok_or(Failure::NoTable(table))?;
        let word = |at: usize| copy.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        let words = read::Words(word);
        let mut key = [0; layout::MOST_KEY];
        let key = &mut key[..key_words(kind)];
        for (octets, answer) in keys.chunks_exact(4 * key.len()).zip(answers.as_chunks_mut().0) {
            for (word, octets) in key.iter_mut().zip(octets.as_chunks().0) {
                *word = u32::from_le_bytes(*octets);
            }
            *answer = words.look_up(key).to_le_bytes();
        }
        Ok(())
    }
}

/// Copies in this process's memory.
#[derive(Debug, Default)]
pub struct OnHost {
    shelf: Shelf,
    followers: BTreeMap<TableId, Follower>,
    versions: Versions,
}

impl OnHost {
    /// What threads look keys up in.
    pub fn shelf(&self) -> Shelf {
        self.shelf.clone()
    }

    /// How often which was written.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Brings the copy of a table up to date; the first time, makes it.
    pub fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        let fresh = |image: &dyn Image| -> Result<_, Failure> {
            let longest = image.regions().iter().map(|words| words.len() / LINE).max().unwrap_or(0);
            let follower = Follower::new(image, longest / 4)?;
            let words: Arc<[AtomicU32]> = (0..follower.words()).map(|_| AtomicU32::new(0)).collect();
            Ok((follower, words))
        };
        let follow = |follower: &mut Follower, words: &[AtomicU32]| {
            follower.follow(image, changes, |at, piece| {
                for (word, value) in words[at..].iter().zip(piece) {
                    word.store(*value, Ordering::Relaxed);
                }
                Ok(())
            })
        };
        self.versions.write(table);
        if let (Some(follower), Some(copy)) = (self.followers.get_mut(&table), self.shelf.copy(table)) {
            match follow(follower, &copy.words) {
                // It has outgrown its room: a larger one takes its place, and look-ups that are under way end in the old one.
                Err(Failure::OutOfMemory { .. }) if changes.all => {}
                other => return other,
            }
        }
        let (mut follower, words) = fresh(image)?;
        follow(&mut follower, &words)?;
        let copy = Copy { kind: follower.kind(), words };
        self.shelf.0.write().unwrap_or_else(PoisonError::into_inner).insert(table, copy);
        self.followers.insert(table, follower);
        Ok(())
    }
}
