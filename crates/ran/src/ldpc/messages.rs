//! What a check says to its bits, by the two least magnitudes that it hears: the arithmetic in which both decoders must agree.
//!
//! Exact belief propagation says to a bit of magnitudes a, b, c, ... of the others a [+] b [+] c ..., where
//! a [+] b = min (a, b) + ln (1 + e^-(a + b)) - ln (1 + e^-|a - b|). Min-sum says the least of them, which is too much; most of the excess is
//! found again with the second least one, so that is what is said here, and scaled for those that come after. To the bit that said the
//! least, for which the second is the least of the others and the third is not known, the second is said, scaled and less an offset.

/// The greatest magnitude that is said.
pub const MOST_SAID: u8 = 31;

/// What is thought of a filler bit: certainly a zero.
pub(crate) const PINNED: i8 = i8::MAX;

/// Two magnitudes, in quarters of natural units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Magnitudes {
    /// The least one; or what is said to all bits but those that said the least.
    pub(crate) first: u8,
    /// The second least one; or what is said to those that said the least.
    pub(crate) second: u8,
}

/// What is taken off magnitudes before they are said. Tables of 16 octets, for that is what vectors can look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction {
    /// Off the least, by its half.
    pub first: [u8; 16],
    /// Off the least too, by how far the second is from it.
    pub gap: [u8; 16],
    /// Off the second, by its half.
    pub second: [u8; 16],
}

/// For rows of few edges.
static FEW: Correction = Correction {
    first: [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5],
    gap: [2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    second: [1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6],
};

/// For rows of many edges.
static MANY: Correction = FEW;

impl Correction {
    /// The one for a row of so many edges.
    pub fn of(degree: usize) -> &'static Self {
        if degree > 10 { &MANY } else { &FEW }
    }

    /// What is said for what was heard.
    pub(crate) fn correct(&self, least: Magnitudes) -> Magnitudes {
        let (first, second) = (least.first.min(MOST_SAID), least.second.min(MOST_SAID));
        let gap = self.gap[usize::from((second - first).min(15))];
        Magnitudes {
            first: first.saturating_sub(self.first[usize::from(first / 2)]).saturating_sub(gap),
            second: second.saturating_sub(self.second[usize::from(second / 2)]),
        }
    }
}
