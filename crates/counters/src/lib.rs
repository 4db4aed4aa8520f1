//! What is counted, and what does it mean?
//!
//! # The problem
//! A counter is one `u64` to whoever counts, and much more to whoever looks: it has a name, it only grows or it goes up and down, it
//! counts packets or bytes or time, and somebody has to know what it tells. Written in five places, these disagree.
//!
//! # The model
//! [`counters!`] declares a struct of plain `u64` fields, and says of each its name, its [`Kind`], its [`Unit`] and, as its
//! documentation, its meaning. From this come:
//! - the sum of two of them ([`Count::merge`]), field by field: who wants the total of all workers adds their counters up;
//! - a [`Line`] for each number ([`Count::lines`]), for tables, pages of documentation, JSON and metrics;
//! - the numbers alone, one after the other ([`Words`]): so they are passed between threads.
//!
//! A field may be another such struct: its names follow the field's. What is counted by one of several reasons is [`By`] an enum that
//! [`labels!`] declares.
//!
//! # Example
//! ```
//! use counters::{By, Count};
//!
//! counters::labels! {
//!     /// Why a letter came back.
//!     pub enum Returned: "reason" {
//!         Unknown = "unknown", "Nobody of this name lives there.";
//!         Unpaid = "unpaid", "The stamp was missing.";
//!     }
//! }
//!
//! counters::counters! {
//!     /// What became of letters.
//!     #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
//!     pub struct Letters {
//!         /// Letters delivered.
//!         pub delivered: u64 = "delivered", Counter;
//!         /// Letters that came back.
//!         pub returned: By<Returned, { Returned::COUNT }> = "returned", Counter;
//!         /// What all of them weigh.
//!         pub weight: u64 = "weight", Counter of Bytes;
//!     }
//! }
//!
//! let mut letters = Letters { delivered: 3, ..Letters::default() };
//! letters.returned.add(Returned::Unpaid, 1);
//! let names: Vec<_> = letters.lines().iter().map(|line| line.full_name()).collect();
//! assert_eq!(names, ["delivered", "returned-unknown", "returned-unpaid", "weight"]);
//! assert_eq!(letters.plus(letters).delivered, 6);
//! ```
//!
//! # The cost
//! To count costs nothing beside the addition. Lines are for people: they take memory.
#![forbid(unsafe_code)]

pub mod conformance;

mod labels;
mod words;

pub use labels::{By, Label};
pub use words::{Words, put_all};

/// How a number behaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Kind {
    /// It only grows, from 0 at the start of the process.
    #[default]
    Counter,
    /// It is a state: it goes up and down.
    Gauge,
}

impl Kind {
    /// Its name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unit {
    /// What its name says: requests, sessions, flows.
    #[default]
    One,
    /// Packets or frames.
    Packets,
    /// Bytes.
    Bytes,
    /// Time.
    Nanoseconds,
    /// Time in ticks of the time-stamp counter.
    Ticks,
}

impl Unit {
    /// Its name; `None`: the counter's name says it.
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Self::One => None,
            Self::Packets => Some("packets"),
            Self::Bytes => Some("bytes"),
            Self::Nanoseconds => Some("nanoseconds"),
            Self::Ticks => Some("ticks"),
        }
    }
}

/// What a number is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct About {
    /// Its name.
    pub name: String,
    /// How it behaves.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// What it tells.
    pub meaning: String,
}

impl About {
    /// A field of what this is about.
    #[must_use]
    pub fn field(&self, name: &str, kind: Kind, unit: Unit, meaning: &str) -> Self {
        let join = |before: &str, between: &str, after: &str| match (before, after) {
            ("", only) | (only, "") => only.to_owned(),
            _ => format!("{before}{between}{after}"),
        };
        let (name, meaning) = (join(&self.name, "-", name), join(&self.meaning, " ", meaning.trim()));
        // What is a state is so in all its parts.
        let kind = if self.kind == Kind::Gauge { Kind::Gauge } else { kind };
        Self { name, kind, unit, meaning }
    }
}

/// A number, and what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// What it is; several lines may be about the same and differ in their label.
    pub about: About,
    /// What is counted by, and which of these this is: `("reason", "malformed")`.
    pub label: Option<(&'static str, &'static str)>,
    /// What this one tells.
    pub meaning: String,
    /// The number.
    pub value: u64,
}

impl Line {
    /// Its name, with its label.
    pub fn full_name(&self) -> String {
        match self.label {
            Some((_, label)) => format!("{}-{label}", self.about.name),
            None => self.about.name.clone(),
        }
    }
}

/// Numbers that are added up, and that can be told one by one.
pub trait Count: Words + Default {
    /// Adds what another worker has counted.
    fn merge(&mut self, other: &Self);

    /// The sum of both.
    #[inline]
    #[must_use]
    fn plus(mut self, other: Self) -> Self {
        self.merge(&other);
        self
    }

    /// Appends a line for each number.
    fn tell(&self, about: &About, lines: &mut Vec<Line>);

    /// A line for each number.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.tell(&About::default(), &mut lines);
        lines
    }
}

impl Count for u64 {
    #[inline]
    fn merge(&mut self, other: &Self) {
        *self += other;
    }

    fn tell(&self, about: &About, lines: &mut Vec<Line>) {
        lines.push(Line { about: about.clone(), label: None, meaning: about.meaning.clone(), value: *self });
    }
}

/// By place. Only whoever uses it knows what its places stand for: it tells nothing by itself.
impl<T: Count> Count for Vec<T> {
    fn merge(&mut self, other: &Self) {
        if self.len() < other.len() {
            self.resize_with(other.len(), T::default);
        }
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    fn tell(&self, _: &About, _: &mut Vec<Line>) {}
}

/// Declares a struct of counters: see the [crate's documentation](crate).
///
/// A field's name for people and its [`Kind`] follow its type, then its [`Unit`], if its name doesn't say it. Of a field that is such a
/// struct itself there is only a name, which may be empty. What follows from fields is listed under `also`; the struct has a method of
/// that name.
#[macro_export]
macro_rules! counters {
    (
        $(#[$attr:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $field_vis:vis $field:ident: $type:ty = $label:literal $(, $kind:ident $(of $unit:ident)?)?;
            )*
        }
        $(also {
            $($(#[doc = $also_doc:literal])* $also:ident = $also_label:literal, $also_kind:ident $(of $also_unit:ident)?;)*
        })?
    ) => {
        $(#[$attr])*
        $vis struct $name {
            $($(#[doc = $doc])* $field_vis $field: $type,)*
        }

        $crate::words!($name { $($field),* });

        impl $crate::Count for $name {
            #[inline]
            fn merge(&mut self, other: &Self) {
                $($crate::Count::merge(&mut self.$field, &other.$field);)*
            }

            fn tell(&self, about: &$crate::About, lines: &mut Vec<$crate::Line>) {
                $($(
                    let unit = $crate::unit!($($also_unit)?);
                    let about_this = about.field($also_label, $crate::Kind::$also_kind, unit, concat!($($also_doc),*));
                    $crate::Count::tell(&self.$also(), &about_this, lines);
                )*)?
                $(
                    let (kind, unit) = ($crate::kind!($($kind)?), $crate::unit!($($($unit)?)?));
                    let about_this = about.field($label, kind, unit, concat!($($doc),*));
                    $crate::Count::tell(&self.$field, &about_this, lines);
                )*
            }
        }
    };
}

/// Of a field without one: a counter.
#[doc(hidden)]
#[macro_export]
macro_rules! kind {
    () => {
        $crate::Kind::Counter
    };
    ($kind:ident) => {
        $crate::Kind::$kind
    };
}

/// Of a field without one: its name says it.
#[doc(hidden)]
#[macro_export]
macro_rules! unit {
    () => {
        $crate::Unit::One
    };
    ($unit:ident) => {
        $crate::Unit::$unit
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    labels! {
        /// Why.
        enum Why: "reason" {
            Late = "late", "It came late.";
            Lost = "lost", "It never came.";
        }
    }

    counters! {
        /// Packets and bytes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        struct Both {
            /// Packets.
            packets: u64 = "packets", Counter of Packets;
            /// Bytes.
            bytes: u64 = "bytes", Counter of Bytes;
        }
    }

    counters! {
        /// All that there may be.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        struct All {
            /// Made.
            made: u64 = "made", Counter;
            /// Ended.
            ended: u64 = "ended", Counter;
            /// What did not come.
            refused: By<Why, { Why::COUNT }> = "refused", Counter of Packets;
            /// Sent.
            sent: Both = "sent";
            /// In queues.
            queued: Both = "queued", Gauge;
            /// Without a name of its own.
            rest: Both = "";
            /// Waiting
            /// now.
            waiting: u64 = "waiting", Gauge of Nanoseconds;
            /// By port.
            ports: Vec<Both> = "ports";
        }
        also {
            /// There now.
            live = "live", Gauge;
        }
    }

    impl All {
        fn live(&self) -> u64 {
            self.made.saturating_sub(self.ended)
        }
    }

    #[test]
    fn a_number_is_told_with_all_that_is_known_of_it() {
        let mut all = All { made: 5, ended: 2, waiting: 7, ..All::default() };
        all.refused.add(Why::Lost, 3);
        all.sent.bytes = 9;
        let lines = all.lines();
        let told: Vec<_> = lines.iter().map(|line| (line.full_name(), line.value)).collect();
        let told: Vec<_> = told.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected = [
            ("live", 3),
            ("made", 5),
            ("ended", 2),
            ("refused-late", 0),
            ("refused-lost", 3),
            ("sent-packets", 0),
            ("sent-bytes", 9),
            ("queued-packets", 0),
            ("queued-bytes", 0),
            ("packets", 0),
            ("bytes", 0),
            ("waiting", 7),
        ];
        assert_eq!(told, expected);
        assert_eq!((lines[5].about.kind, lines[7].about.kind), (Kind::Counter, Kind::Gauge));
        let waiting = &lines[11];
        assert_eq!((waiting.about.kind, waiting.about.unit), (Kind::Gauge, Unit::Nanoseconds));
        assert_eq!(waiting.meaning, "Waiting now.");
        let lost = &lines[4];
        assert_eq!((lost.label, lost.about.name.as_str()), (Some(("reason", "lost")), "refused"));
        assert_eq!(
            (lost.meaning.as_str(), lost.about.meaning.as_str()),
            ("It never came.", "What did not come.")
        );
        assert_eq!((lost.about.unit, lines[6].meaning.as_str()), (Unit::Packets, "Sent. Bytes."));
    }

    #[test]
    fn these_hold_to_what_all_hold_to() {
        conformance::check::<Both>();
        conformance::check::<All>();
    }

    fn both() -> impl Strategy<Value = Both> {
        (any::<u32>(), any::<u32>())
            .prop_map(|(packets, bytes)| Both { packets: packets.into(), bytes: bytes.into() })
    }

    proptest! {
        #[test]
        fn lists_of_any_length_are_added_by_place(
            a in proptest::collection::vec(both(), 0..5),
            b in proptest::collection::vec(both(), 0..5),
        ) {
            let mut sum = a.clone();
            sum.merge(&b);
            prop_assert_eq!(sum.len(), a.len().max(b.len()));
            for (at, sum) in sum.iter().enumerate() {
                let of = |list: &[Both]| list.get(at).copied().unwrap_or_default();
                prop_assert_eq!(*sum, of(&a).plus(of(&b)));
            }
        }

        #[test]
        fn what_was_written_is_read(made in any::<u64>(), ports in proptest::collection::vec(both(), 0..5), cut in 0usize..30) {
            let all = All { made, ports, ..All::default() };
            let mut words = Vec::new();
            all.put(&mut words);
            prop_assert_eq!(All::take(&mut words.as_slice()), Some(all));
            let short = words.get(..cut.min(words.len() - 1)).unwrap_or_default();
            prop_assert_eq!(All::take(&mut &*short), None);
        }

        #[test]
        fn no_words_make_more_of_it_than_there_are(words in proptest::collection::vec(any::<u64>(), 0..30)) {
            let mut rest = words.as_slice();
            if let Some(ports) = Vec::<Both>::take(&mut rest) {
                prop_assert!(2 * ports.len() < words.len());
            }
        }
    }
}
