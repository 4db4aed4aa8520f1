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
//! What is long is written in parts ([`Publisher::begin`]), between which the writer does something else: readers have the one before until the last part
//! is there.
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

    /// A publication of so many words.
    fn begin(&self, number: u64, length: usize) {
        self.begun.store(number, Ordering::Relaxed);
        // Before all words of it, whenever they are written.
        W::fence(Ordering::Release);
        if let Some(place) = self.page(number).first() {
            place.store(length as u64, Ordering::Relaxed);
        }
    }

    /// Its words from so many on.
    fn put(&self, number: u64, from: usize, words: &[u64]) {
        for (place, word) in self.page(number).iter().skip(1 + from).zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    fn end(&self, number: u64) {
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

    /// Begins a publication with what is appended to an empty list; it is whole when as many words have followed as are announced. One that was
    /// begun before and isn't whole is given up.
    pub fn begin(&mut self, put: impl FnOnce(&mut Vec<u64>) -> usize) {
        self.writing.begin(put);
    }

    /// Goes on with the publication that was begun. What is more than was announced is left out.
    pub fn go_on(&mut self, put: impl FnOnce(&mut Vec<u64>)) {
        self.writing.go_on(put);
    }

    /// Whether all is published that was begun.
    pub const fn is_whole(&self) -> bool {
        self.writing.left == 0
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
    /// The one that is used from now on, as soon as it is whole.
    wider: Option<Arc<Sheet<W>>>,
    /// The publication that was begun last.
    number: u64,
    /// Words of it that are written, and that are to follow.
    written: usize,
    left: usize,
    /// Reused.
    words: Vec<u64>,
}

impl<W: Word> Writing<W> {
    fn new(words: usize) -> Self {
        let first = Arc::new(Sheet::new(words));
        let sheet = Arc::clone(&first);
        Self { first, sheet, wider: None, number: 0, written: 0, left: 0, words: Vec::with_capacity(words) }
    }

    fn publish(&mut self, put: impl FnOnce(&mut Vec<u64>)) {
        self.begin(|words| {
            put(words);
            0
        });
    }

    fn begin(&mut self, put: impl FnOnce(&mut Vec<u64>) -> usize) {
        self.words.clear();
        let follow = put(&mut self.words);
        // Nobody has read a page that never became whole: it is written again.
        self.number += u64::from(self.left == 0);
        (self.written, self.left) = (0, self.words.len() + follow);
        self.wider = (self.left > self.sheet.room()).then(|| Arc::new(Sheet::new(2 * self.left)));
        self.wider.as_ref().unwrap_or(&self.sheet).begin(self.number, self.left);
        self.write();
    }

    fn go_on(&mut self, put: impl FnOnce(&mut Vec<u64>)) {
        self.words.clear();
        put(&mut self.words);
        if self.left > 0 {
            self.write();
        }
    }

    /// Writes the words at hand.
    fn write(&mut self) {
        self.words.truncate(self.left);
        let sheet = self.wider.as_ref().unwrap_or(&self.sheet);
        sheet.put(self.number, self.written, &self.words);
        self.written += self.words.len();
        self.left -= self.words.len();
        if self.left > 0 {
            return;
        }
        sheet.end(self.number);
        if let Some(wider) = self.wider.take() {
            // It is whole before anybody finds it, and nobody else sets it.
            let _ = self.sheet.wider.set(Arc::clone(&wider));
            self.sheet = wider;
        }
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
    fn what_is_written_in_parts_is_there_when_it_is_whole() {
        // There is room, or there has to be more.
        for room in [8, 1] {
            let mut publisher = Publisher::new(room);
            let published = publisher.published();
            publisher.publish(|words| words.push(1));
            let begin = |publisher: &mut Publisher, first| {
                publisher.begin(|words| {
                    words.extend([first, 3]);
                    3
                });
            };
            begin(&mut publisher, 2);
            assert!(!publisher.is_whole());
            publisher.go_on(|words| words.push(4));
            assert_eq!(published.read().unwrap(), [1]);
            // It is given up.
            begin(&mut publisher, 7);
            publisher.go_on(|words| words.extend([4, 5]));
            assert_eq!((published.read().unwrap(), publisher.is_whole()), (vec![1], false));
            publisher.go_on(|words| words.extend([6, 99]));
            assert_eq!((published.read().unwrap(), publisher.is_whole()), (vec![7, 3, 4, 5, 6], true));
            publisher.go_on(|words| words.push(99));
            assert_eq!(published.read().unwrap(), [7, 3, 4, 5, 6]);
            begin(&mut publisher, 8);
            publisher.publish(|words| words.push(9));
            assert_eq!((published.read().unwrap(), publisher.is_whole()), (vec![9], true));
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
