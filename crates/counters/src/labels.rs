//! What is counted by: enums whose variants have a name and a meaning.

use crate::{About, Count, Line, Words};
use std::marker::PhantomData;

/// An enum that [`labels!`](crate::labels) has declared.
pub trait Label: Copy + 'static {
    /// What its values are: `reason`.
    const KEY: &'static str;
    /// All of them, in the order of the counters.
    const LABELS: &'static [Self];

    /// Its place among them.
    fn place(self) -> usize;

    /// Its name.
    fn name(self) -> &'static str;

    /// What it means.
    fn says(self) -> &'static str;
}

/// Declares an enum by which something is counted, with a name and a meaning for each variant.
#[macro_export]
macro_rules! labels {
    (
        $(#[$attr:meta])*
        $vis:vis enum $name:ident: $key:literal {
            $($(#[$variant_attr:meta])* $variant:ident = $label:literal, $meaning:literal;)*
        }
    ) => {
        $(#[$attr])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        $vis enum $name {
            $(#[doc = $meaning] $(#[$variant_attr])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of the counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many there are: the length of a table of counters.
            pub const COUNT: usize = Self::ALL.len();

            /// Its place in a table of counters.
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The name that counters, traces and documents use.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)* }
            }

            /// What it means and, where there is one, the remedy.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }

        impl $crate::Label for $name {
            const KEY: &'static str = $key;
            const LABELS: &'static [Self] = Self::ALL;

            fn place(self) -> usize {
                self.index()
            }

            fn name(self) -> &'static str {
                self.label()
            }

            fn says(self) -> &'static str {
                self.meaning()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.label())
            }
        }
    };
}

/// A counter for each value of `L`, of which there are `N`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct By<L, const N: usize>([u64; N], PhantomData<L>);

impl<L, const N: usize> Default for By<L, N> {
    fn default() -> Self {
        Self([0; N], PhantomData)
    }
}

impl<L: Label, const N: usize> By<L, N> {
    /// So many more.
    #[inline]
    pub fn add(&mut self, label: L, more: u64) {
        if let Some(count) = self.0.get_mut(label.place()) {
            *count += more;
        }
    }

    /// So many so far.
    #[inline]
    pub fn get(&self, label: L) -> u64 {
        self.0.get(label.place()).copied().unwrap_or(0)
    }

    /// All together.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (L, u64)> + '_ {
        L::LABELS.iter().copied().zip(self.0)
    }
}

impl<L, const N: usize> Words for By<L, N> {
    fn put(&self, to: &mut Vec<u64>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        Some(Self(Words::take(from)?, PhantomData))
    }
}

impl<L: Label, const N: usize> Count for By<L, N> {
    #[inline]
    fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    fn tell(&self, about: &About, lines: &mut Vec<Line>) {
        lines.extend(self.iter().map(|(label, value)| Line {
            about: about.clone(),
            label: Some((L::KEY, label.name())),
            meaning: label.says().to_owned(),
            value,
        }));
    }
}
