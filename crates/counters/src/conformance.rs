//! What every struct of counters holds to: its crate's tests call [`check`].

use crate::Count;
use std::collections::HashSet;
use std::fmt::Debug;

/// Values tried.
const ROUNDS: u64 = 64;

/// What is written is read, the sum is that of each number, and no two numbers have the same name or no meaning.
///
/// # Panics
/// If one of these is not so.
pub fn check<T: Count + PartialEq + Debug>() {
    let mut empty = Vec::new();
    T::default().put(&mut empty);
    assert!(empty.iter().all(|word| *word == 0), "all begin at 0");
    let lists = lists_in::<T>(empty.len());
    for round in 0..ROUNDS {
        let (words, others) = (some(2 * round, &lists), some(2 * round + 1, &lists));
        let (value, other) = (read::<T>(&words), read::<T>(&others));
        assert_eq!(written(&value), words, "what was written is read");
        let mut sum = value;
        sum.merge(&other);
        let expected: Vec<_> = words.iter().zip(&others).map(|(a, b)| a + b).collect();
        assert_eq!(written(&sum), expected, "the sum is that of each number");
    }
    let mut names = HashSet::new();
    for line in T::default().lines() {
        let name = line.full_name();
        let usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "- ".contains(c);
        assert!(!name.is_empty() && name.chars().all(usual), "`{name}` is no name");
        assert!(line.meaning.len() > 4 && line.meaning.ends_with('.'), "`{name}` has no meaning");
        assert!(!line.about.meaning.is_empty(), "`{name}` has no meaning");
        assert!(names.insert(name.clone()), "two are called `{name}`");
    }
}

fn read<T: Count>(words: &[u64]) -> T {
    let mut rest = words;
    let value = T::take(&mut rest);
    assert!(rest.is_empty(), "{} words are left", rest.len());
    value.unwrap_or_default()
}

fn written<T: Count>(value: &T) -> Vec<u64> {
    let mut words = Vec::new();
    value.put(&mut words);
    words
}

/// For each word of an empty value, whether it is the length of a list: that stays 0, for lengths aren't added.
fn lists_in<T: Count>(words: usize) -> Vec<bool> {
    let is_list = |at: usize| {
        let mut one = vec![0; words];
        if let Some(word) = one.get_mut(at) {
            *word = u64::MAX;
        }
        T::take(&mut one.as_slice()).is_none()
    };
    (0..words).map(is_list).collect()
}

/// Numbers that differ, whose sums are numbers.
fn some(round: u64, lists: &[bool]) -> Vec<u64> {
    let mix = |at: u64| (round * 4096 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2;
    (0..).zip(lists).map(|(at, is_list)| if *is_list { 0 } else { mix(at) }).collect()
}
