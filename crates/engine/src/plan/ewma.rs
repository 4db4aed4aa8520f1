//! How busy a worker is: an average over polls.

/// An exponentially weighted moving average of parts of a whole, in integers: a shift, a subtraction and an addition for
/// each sample, once the part is known.
///
/// After each poll of up to 32 packets a worker's *core load factor* becomes 0.999 of itself and 0.001 of packets/32: so
/// did the thesis that this follows (S1 §5.2.5; its formula prints 0.0001, with which the factor could not pass 0.1, its text says
/// 0.001). `SHIFT` 10 is the same with 1/1024.
///
/// **What it is not.** An average over polls is not one over time: polls that find nothing are short, so the factor falls
/// within a fraction of a millisecond and rises within some. And it is not linear: a worker that is busy half of its
/// time finds few packets at each poll, one that just keeps up finds its bursts full. Thresholds are to be
/// set for that, and [`Scaler`](super::scaler::Scaler) bears it. A worker that sleeps doesn't poll: its factor stands still.
///
/// ```
/// use engine::plan::ewma::Ewma;
///
/// let mut factor: Ewma = Ewma::new();
/// for _ in 0..100_000 {
///     factor.sample(48, 64);
/// }
/// assert!((factor.value() - 0.75).abs() < 0.001);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ewma<const SHIFT: u32 = 10>(u32);

/// A whole, in the fixed point of samples.
const ONE: u32 = 1 << 16;

impl<const SHIFT: u32> Ewma<SHIFT> {
    /// The sum of weighted samples stays below 2^32.
    const FITS: () = assert!(SHIFT <= 15, "a shift is at most 15");

    /// Zero.
    pub const fn new() -> Self {
        let () = Self::FITS;
        Self(0)
    }

    /// Takes a sample of `part` in `whole`; more than the whole counts as the whole, and of nothing as nothing. With a
    /// constant power of two as whole the division is a shift.
    #[inline]
    pub const fn sample(&mut self, part: u32, whole: u32) {
        let sample = if whole == 0 {
            0
        } else if part >= whole {
            ONE
        } else {
            ((part as u64 * ONE as u64) / whole as u64) as u32
        };
        // The sum is the average times 2^SHIFT, so nothing is lost to rounding.
        self.0 = self.0 - (self.0 >> SHIFT) + sample;
    }

    /// The average, 0 to 1.
    pub fn value(self) -> f32 {
        self.0 as f32 / (ONE << SHIFT) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rises_and_falls_as_the_formula_says() {
        let mut ewma: Ewma = Ewma::new();
        let mut exact = 0.0_f64;
        for poll in 0..20_000 {
            let packets = if poll < 5_000 { 32 } else { u32::from(poll % 7 == 0) * 13 };
            ewma.sample(packets, 32);
            exact += (f64::from(packets) / 32.0 - exact) / 1024.0;
            assert!((f64::from(ewma.value()) - exact).abs() < 0.001, "poll {poll}");
        }
        assert!(Ewma::<10>::new().value() == 0.0);
    }

    #[test]
    fn reaches_both_ends() {
        let mut ewma: Ewma<15> = Ewma::new();
        (0..1_000_000).for_each(|_| ewma.sample(u32::MAX, 1));
        assert!(ewma.value() > 0.999, "{ewma:?}");
        (0..1_000_000).for_each(|_| ewma.sample(5, 0));
        assert!(ewma.value() < 0.001, "{ewma:?}");
    }

    proptest! {
        #[test]
        fn stays_between_nothing_and_the_whole(samples in proptest::collection::vec(any::<(u32, u32)>(), 0..2_000)) {
            let mut ewma: Ewma<3> = Ewma::new();
            for (part, whole) in samples {
                ewma.sample(part, whole);
                prop_assert!((0.0..=1.0).contains(&ewma.value()));
            }
        }
    }
}
