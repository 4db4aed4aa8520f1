//! The low-density parity-check codes of NR (TS 38.212 §5.3.2).
//!
//! **Problem.** A transport block is cut into code blocks of up to 8,448 bits. The sender adds parity bits; the receiver, who knows of
//! each bit only how likely it is a one, finds the bits that fulfil all parity checks. Decoding is the heaviest task of a 5G base
//! station: a block has up to 316 times 384 edges between checks and bits, and each is walked several times.
//!
//! **Model.** A [`Code`] is a [`BaseGraph`] lifted by a [`LiftingSize`] Z. All Z bits of a column, and all Z checks of a row, take the same
//! path, only rotated; so they lie side by side in the lanes of vectors. [`Encoder`] and [`Decoder`] own the memory that they work in,
//! serve all codes, and allocate nothing per block.
//!
//! Bits are packed eight to an octet, the first in the highest bit. What is left of the last octet is zero.

mod base_graph;
mod belief_propagation;
mod code;
mod decoder;
mod encoder;
mod messages;
mod plain;

pub use base_graph::{BaseGraph, CORE_ROWS, MOST_COLUMNS, MOST_DEGREE, PUNCTURED_COLUMNS};
pub use belief_propagation::BeliefPropagation;
pub use code::{Code, Edge, LiftingSize, MOST_LIFTING};
#[cfg(target_arch = "x86_64")]
pub(crate) use decoder::Job;
pub use decoder::{Decoded, Decoder, Effort};
pub use encoder::Encoder;
pub(crate) use encoder::{Copies, Plan};
#[cfg(target_arch = "x86_64")]
pub(crate) use messages::PINNED;
pub use messages::{Correction, MOST_SAID};

/// Why a block can't be coded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No base graph may be lifted by that much.
    #[error("{0} is not a lifting size of TS 38.212 Table 5.3.2-1")]
    LiftingSize(usize),
    /// The buffer for information bits has another length than the code's information bits need.
    #[error("{given} octets given for information bits, where the code has {needed}")]
    InfoLength {
        /// Octets of the buffer.
        given: usize,
        /// Octets that it must have.
        needed: usize,
    },
    /// The buffer for coded bits has another length than the code's coded bits need.
    #[error("{given} octets given for coded bits, where the code has {needed}")]
    CodedLength {
        /// Octets of the buffer.
        given: usize,
        /// Octets that it must have.
        needed: usize,
    },
    /// More coded bits were received than the code has.
    #[error("{given} coded bits received, where the code has {most}")]
    TooManyReceived {
        /// Bits received.
        given: usize,
        /// Coded bits of the code.
        most: usize,
    },
    /// More filler bits than information bits that can be fillers.
    #[error("{given} filler bits, where the code may have {most}")]
    TooManyFillers {
        /// Filler bits.
        given: usize,
        /// Information bits but for the first 2 Z.
        most: usize,
    },
}
