//! What one thread has counted, where any other can read it at any time.
//!
//! **The problem.** Whoever asks a worker for its counters waits until it answers, and a control thread that asks for others lets SMFs
//! wait. A dashboard asks all the time.
//!
//! **The model.** The worker writes its numbers down now and then: a [`Publisher`]. Readers, each with a [`Published`], take the last
//! publication. They neither wait for the writer nor hold it up, and what they get is of one moment.
//!
//! There are two pages. Publication `n` is written to page `n` modulo 2 while readers take `n - 1` from the other: a writer that is
//! interrupted in the midst of it leaves the last one whole. Before it writes, the writer says which it begins; a reader that finds
//! afterwards that the one after the next was begun has read from a page that changed, and reads again. That takes two publications
//! during one reading. When there is more to say than a page has room for, the writer makes pages that are twice as large, and the old ones lead
//! to them.
//!
//! **The cost.** For the writer an uncontended store a number; for a reader a cache miss for each eight.
//!
//! **Why it is sound.** Pages are atomic words, so nothing is undefined; what is to be shown is that no two publications are mixed. A
//! reader that saw a word of publication `n + 2` has, by the writer's release fence before that word and its own acquire fence after
//! it, seen that `n + 2` was begun, and drops what it read. It can't see a word older than `n`'s, since it saw that `n` was done
//! (release and acquire) before. `model.rs` tries the schedules.

#[cfg(test)]
mod model;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// A word that threads share: an atomic, or what stands for it in a model.
pub(crate) trait Word: Default + Debug {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// Two pages of one size.
#[derive(Debug)]
struct Sheet<W> {
    /// The publication that was begun last.
    begun: W,
    /// The last that is whole; 0: none.
    done: W,
    /// The length of what is on it, and that.
    pages: [Box<[W]>; 2],
    /// Larger ones, which are used instead.
    wider: OnceLock<Arc<Self>>,
}

impl<W: Word> Sheet<W> {
    fn new(words: usize) -> Self {
        let page = || (0..=words).map(|_| W::default()).collect();
        Self { begun: W::default(), done: W::default(), pages: [page(), page()], wider: OnceLock::new() }
    }

    fn page(&self, number: u64) -> &[W] {
        let [even, odd] = &self.pages;
        if number.is_multiple_of(2) { even } else { odd }
    }

    /// How much fits.
    fn room(&self) -> usize {
        self.page(0).len() - 1
    }

    fn write(&self, number: u64, words: &[u64]) {
        self.begun.store(number, Ordering::Relaxed);
        W::fence(Ordering::Release);
        let all = std::iter::once(words.len() as u64).chain(words.iter().copied());
        for (place, word) in self.page(number).iter().zip(all) {
            place.store(word, Ordering::Relaxed);
        }
        self.done.store(number, Ordering::Release);
    }

    /// The last publication; its number is 0 if there is none. `None`: it was overwritten meanwhile.
    fn read(&self, into: &mut Vec<u64>) -> Option<u64> {
        into.clear();
        let number = self.done.load(Ordering::Acquire);
        if number > 0
            && let Some((length, words)) = self.page(number).split_first()
        {
            let length = length.load(Ordering::Relaxed) as usize;
            into.extend(words.iter().take(length).map(|word| word.load(Ordering::Relaxed)));
        }
        W::fence(Ordering::Acquire);
        (self.begun.load(Ordering::Relaxed) <= number + 1).then_some(number)
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct Publisher {
    writing: Writing<AtomicU64>,
}

impl Publisher {
    /// With room for so many words: if it becomes more, memory is taken.
    pub fn new(words: usize) -> Self {
        Self { writing: Writing::new(words) }
    }

    /// A reader's end.
    pub fn published(&self) -> Published {
        Published(Arc::clone(&self.writing.first))
    }

    /// Publishes what is appended to an empty list.
    pub fn publish(&mut self, put: impl FnOnce(&mut Vec<u64>)) {
        self.writing.publish(put);
    }
}

/// A reader's end.
#[derive(Clone, Debug)]
pub struct Published(Arc<Sheet<AtomicU64>>);

impl Published {
    /// The last publication, if there is one.
    pub fn read(&self) -> Option<Vec<u64>> {
        read(&self.0).map(|(_, words)| words)
    }
}

/// What a writer needs.
#[derive(Debug)]
struct Writing<W> {
    first: Arc<Sheet<W>>,
    sheet: Arc<Sheet<W>>,
    number: u64,
    /// Reused.
    words: Vec<u64>,
}

impl<W: Word> Writing<W> {
    fn new(words: usize) -> Self {
        let first = Arc::new(Sheet::new(words));
        Self { sheet: Arc::clone(&first), first, number: 0, words: Vec::with_capacity(words) }
    }

    fn publish(&mut self, put: impl FnOnce(&mut Vec<u64>)) {
        self.words.clear();
        put(&mut self.words);
        self.number += 1;
        if self.words.len() <= self.sheet.room() {
            self.sheet.write(self.number, &self.words);
            return;
        }
        let wider = Arc::new(Sheet::new(2 * self.words.len()));
        // It is whole before anybody finds it.
        wider.write(self.number, &self.words);
        // Nobody else sets it.
        let _ = self.sheet.wider.set(Arc::clone(&wider));
        self.sheet = wider;
    }
}

fn read<W: Word>(first: &Arc<Sheet<W>>) -> Option<(u64, Vec<u64>)> {
    let mut words = Vec::new();
    loop {
        let mut sheet = first;
        while let Some(wider) = sheet.wider.get() {
            sheet = wider;
        }
        match sheet.read(&mut words) {
            Some(0) => return None,
            Some(number) => return Some((number, words)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn there_is_nothing_before_the_first() {
        let mut publisher = Publisher::new(2);
        let published = publisher.published();
        assert_eq!(published.read(), None);
        publisher.publish(|words| words.extend([1, 2]));
        assert_eq!(published.read().unwrap(), [1, 2]);
        publisher.publish(|words| words.push(3));
        assert_eq!(published.read().unwrap(), [3], "it may be less");
        publisher.publish(|_| {});
        assert_eq!(published.read().unwrap(), [0; 0]);
    }

    #[test]
    fn it_grows_with_what_there_is_to_say() {
        let mut publisher = Publisher::new(0);
        let early = publisher.published();
        for length in [1, 3, 2, 100, 7, 1_000] {
            publisher.publish(|words| words.extend(0..length));
            let expected: Vec<_> = (0..length).collect();
            assert_eq!(early.read().unwrap(), expected);
            assert_eq!(publisher.published().read().unwrap(), expected);
        }
    }

    #[test]
    fn the_last_is_there_when_the_writer_is_gone() {
        let mut publisher = Publisher::new(1);
        let published = publisher.published();
        std::thread::spawn(move || publisher.publish(|words| words.push(7))).join().unwrap();
        assert_eq!(published.read().unwrap(), [7]);
    }

    /// On this machine's memory: no reader ever gets parts of two, and none gets an older one than before.
    #[test]
    fn readers_get_whole_publications_in_order() {
        let mut publisher = Publisher::new(8);
        let stop = AtomicBool::new(false);
        let readers: Vec<_> = (0..3).map(|_| publisher.published()).collect();
        std::thread::scope(|scope| {
            for published in readers {
                let stop = &stop;
                scope.spawn(move || {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let Some(words) = published.read() else { continue };
                        let number = words[0];
                        assert!(words.iter().all(|word| *word == number), "mixed: {words:?}");
                        assert_eq!(words.len() as u64, 1 + number % 200);
                        assert!(number >= last, "{number} after {last}");
                        last = number;
                    }
                });
            }
            for number in 1..20_000 {
                let length = 1 + number % 200;
                publisher.publish(|words| words.extend(std::iter::repeat_n(number, length as usize)));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
