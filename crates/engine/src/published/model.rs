//! The pages under every order of steps that a scheduler comes up with.

#![allow(clippy::unwrap_used)]

use super::{Sheet, Word, Writing, read};
use shuttle::sync::atomic::AtomicU64;
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PUBLICATIONS: u64 = 5;

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn fence(order: Ordering) {
        shuttle::sync::atomic::fence(order);
    }
}

/// A writer and two readers. Each publication is its number, several times; `grows`: more often each time; `parts`: a word at a time, and every other
/// publication is given up once.
fn play(grows: bool, parts: bool) {
    let mut writing = Writing::<AtomicU64>::new(3);
    let first = Arc::clone(&writing.first);
    let length = move |number: u64| if grows { 2 * number } else { 3 };
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let first = Arc::clone(&first);
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..3 {
                    let Some((number, words)) = read(&first) else { continue };
                    assert!(number >= last, "{number} after {last}");
                    assert_eq!(words, vec![number; length(number) as usize], "publication {number}");
                    last = number;
                }
            })
        })
        .collect();
    for number in 1..=PUBLICATIONS {
        let all = length(number);
        if !parts {
            writing.publish(|words| words.extend((0..all).map(|_| number)));
            continue;
        }
        if number % 2 == 0 {
            writing.begin(|words| {
                words.push(99);
                all as usize - 1
            });
        }
        writing.begin(|_| all as usize);
        (0..all).for_each(|_| writing.go_on(|words| words.push(number)));
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert_eq!(read(&first).map(|(number, _)| number), Some(PUBLICATIONS));
}

#[test]
fn readers_get_whole_publications_in_order() {
    shuttle::check_random(|| play(false, false), 2_000);
    shuttle::check_pct(|| play(false, false), 1_000, 3);
}

#[test]
fn and_while_they_are_written_in_parts() {
    for grows in [false, true] {
        shuttle::check_random(move || play(grows, true), 2_000);
        shuttle::check_pct(move || play(grows, true), 1_000, 3);
    }
}

#[test]
fn and_while_pages_grow() {
    shuttle::check_random(|| play(true, false), 2_000);
    shuttle::check_pct(|| play(true, false), 1_000, 3);
}

/// A writer that stands still in the midst of a publication keeps no reader from the one before.
#[test]
fn nobody_waits_for_a_writer_that_stands_still() {
    shuttle::check_random(
        || {
            let mut writing = Writing::<AtomicU64>::new(1);
            writing.publish(|words| words.push(1));
            let sheet: &Sheet<_> = &writing.sheet;
            sheet.begun.store(2, Ordering::Relaxed);
            sheet.page(2)[1].store(2, Ordering::Relaxed);
            assert_eq!(read(&writing.first), Some((1, vec![1])));
        },
        1,
    );
}
