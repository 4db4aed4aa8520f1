//! Time as an argument: every stage is told the time, none asks for it.

/// Monotonic nanoseconds since an arbitrary start that is the same for the whole process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl counters::Words for Nanos {
    fn put(&self, to: &mut Vec<u64>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        counters::Words::take(from).map(Self)
    }
}

impl Nanos {
    /// One second.
    pub const SECOND: u64 = 1_000_000_000;

    /// `self` plus a number of nanoseconds, saturating.
    #[must_use]
    pub const fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Nanoseconds since `earlier`; zero if `earlier` lies in the future.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
