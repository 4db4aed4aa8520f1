//! From what was received to information bits: layered min-sum decoding.
//!
//! Each bit has a log-likelihood ratio, LLR, of an octet: ln (P(0) / P(1)) in quarters. A row of the graph hears of each of its bits what all
//! other rows and the channel think of it, and says to each of them what the others make of it: the sign by which the check holds, and the
//! least of their magnitudes, corrected ([`super::messages`]). The next row hears the result at once; that is why rows are called
//! layers, and it halves the iterations.
//!
//! What is said is clipped well below what an octet holds. A bit's sum may then saturate and still tells what each row has added to
//! it; without that, sums that have saturated forget, and a block that has been right comes apart again.

use super::plain::Plain;
use super::{Code, Error, PUNCTURED_COLUMNS};
use crate::simd::Processor;
#[cfg(target_arch = "x86_64")]
use crate::simd::min_sum::MinSum;
use std::ops::Range;

/// How much work a block is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The most iterations.
    pub iterations: usize,
    /// Whether to stop as soon as all checks hold and the caller accepts the bits.
    pub early_stop: bool,
}

/// How decoding ended. The bits are given in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Iterations made.
    pub iterations: usize,
    /// Whether all parity checks of the rows that were used hold.
    pub checks_hold: bool,
    /// Whether the caller has accepted the bits.
    pub accepted: bool,
}

/// What is to be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) code: Code,
    /// Rows that are used.
    pub(crate) rows: usize,
    /// The last information bits, which are known to be zero.
    pub(crate) fillers: usize,
}

impl Job {
    /// Where the fillers are among a block's bits.
    pub(crate) fn fillers(self) -> Range<usize> {
        self.code.info_bits() - self.fillers..self.code.info_bits()
    }

    /// Whether all bits of a column are fillers. Checks then don't hear that column at all.
    pub(crate) fn is_filler_column(self, column: usize) -> bool {
        let (z, fillers) = (self.code.z(), self.fillers());
        fillers.start <= column * z && (column + 1) * z <= fillers.end
    }
}

/// Decodes blocks of any code, one at a time.
#[derive(Debug, Clone)]
pub struct Decoder {
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Plain(Plain),
    #[cfg(target_arch = "x86_64")]
    Vectors(MinSum),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder for the best that this processor has, with memory for the largest code.
    pub fn new() -> Self {
        Self::on(Processor::best())
    }

    /// A decoder for `processor`. Plain code serves where this machine has not got it.
    pub fn on(processor: Processor) -> Self {
        Self { engine: Engine::on(processor) }
    }

    /// Decodes one block.
    ///
    /// `llrs` are those of the first coded bits, ln (P(0) / P(1)) in quarters; coded bits after them were not received. Of the information
    /// bits the last `fillers` are known to be zeros; their LLRs make no difference. `info` gets the information bits.
    ///
    /// When all checks hold, and after the last iteration, `accept` is asked about the information bits: it may check a CRC.
    ///
    /// # Errors
    /// When there are more LLRs or fillers than the code allows, or `info` has not as many octets as the information bits need.
    pub fn decode(
        &mut self,
        code: Code,
        llrs: &[i8],
        fillers: usize,
        effort: Effort,
        info: &mut [u8],
        mut accept: impl FnMut(&[u8]) -> bool,
    ) -> Result<Decoded, Error> {
        let needed = code.info_bits().div_ceil(8);
        if info.len() != needed {
            return Err(Error::InfoLength { given: info.len(), needed });
        }
        if llrs.len() > code.coded_bits() {
            return Err(Error::TooManyReceived { given: llrs.len(), most: code.coded_bits() });
        }
        let most = code.info_bits() - PUNCTURED_COLUMNS * code.z();
        if fillers > most {
            return Err(Error::TooManyFillers { given: fillers, most });
        }
        let job = Job { code, rows: code.rows_for(llrs.len()), fillers };
        self.engine.load(job, llrs);
        for iterations in 1..=effort.iterations {
            self.engine.sweep();
            if effort.early_stop && self.engine.checks_hold() {
                self.engine.pack(info);
                if accept(info) {
                    return Ok(Decoded { iterations, checks_hold: true, accepted: true });
                }
            }
        }
        self.engine.pack(info);
        let checks_hold = self.engine.checks_hold();
        Ok(Decoded { iterations: effort.iterations, checks_hold, accepted: accept(info) })
    }
}

impl Engine {
    #[cfg(target_arch = "x86_64")]
    fn on(processor: Processor) -> Self {
        MinSum::new(processor).map_or_else(|| Self::Plain(Plain::default()), Self::Vectors)
    }

    /// All kinds of vectors that there are belong to another architecture.
    #[cfg(not(target_arch = "x86_64"))]
    fn on(_: Processor) -> Self {
        Self::Plain(Plain::default())
    }

    fn load(&mut self, job: Job, llrs: &[i8]) {
        match self {
            Self::Plain(plain) => plain.load(job, llrs),
            #[cfg(target_arch = "x86_64")]
            Self::Vectors(vectors) => vectors.load(job, llrs),
        }
    }

    fn sweep(&mut self) {
        match self {
            Self::Plain(plain) => plain.sweep(),
            #[cfg(target_arch = "x86_64")]
            Self::Vectors(vectors) => vectors.sweep(),
        }
    }

    fn checks_hold(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.checks_hold(),
            #[cfg(target_arch = "x86_64")]
            Self::Vectors(vectors) => vectors.checks_hold(),
        }
    }

    fn pack(&self, info: &mut [u8]) {
        match self {
            Self::Plain(plain) => plain.pack(info),
            #[cfg(target_arch = "x86_64")]
            Self::Vectors(vectors) => vectors.pack(info),
        }
    }
}
