//! From transport blocks to coded bits and back (TS 38.212 §5.1 to §5.5, as §6.2 and §7.2 put them together).
//!
//! **Model.** A [`Format`] is what sender and receiver agree about; [`Layout::new`] checks it and finds all that follows: the base graph, the code
//! blocks, their lifting size, their shares of the coded bits. [`Encoder`] attaches the CRCs, cuts the block, codes each piece, takes from it
//! the bits of one redundancy version and interleaves them. [`Decoder`] goes the other way with log-likelihood ratios (LLRs) and adds them to
//! those of earlier transmissions, which a [`SoftBuffer`] keeps for each transport block that is under way. A code block whose CRC once held
//! is not decoded again.
//!
//! ```
//! use ran::ldpc::Effort;
//! use ran::transport_block::{
//!     CodeRate, Decoder, Encoder, Format, Layout, Modulation, RedundancyVersion, SoftBuffer,
//! };
//!
//! let (rate, modulation) = (CodeRate::new(0.5)?, Modulation::of_order(4)?);
//! let format = Format { bits: 64, rate, modulation, layers: 1, coded_bits: 160, limited_buffer: None };
//! let layout = Layout::new(&format)?;
//! let version = RedundancyVersion::new(0)?;
//! let mut coded = [0; 20];
//! Encoder::new().encode(&layout, version, b"octets!!", &mut coded)?;
//!
//! // The channel is a good one.
//! let llrs: Vec<i8> = (0..160).map(|at| if coded[at / 8] << (at % 8) & 0x80 == 0 { 20 } else { -20 }).collect();
//! let effort = Effort { iterations: 8, early_stop: true };
//! let mut data = [0; 8];
//! let mut soft = SoftBuffer::new(&layout);
//! let outcome = Decoder::new().decode(&layout, version, &llrs, effort, &mut soft, &mut data)?;
//! assert!(outcome.accepted);
//! assert_eq!(&data, b"octets!!");
//! # Ok::<(), ran::transport_block::Error>(())
//! ```
//!
//! **Cost.** Nothing is allocated per block: encoder and decoder have memory for the largest one, a soft buffer for its layout. Bits are
//! moved in runs, eight octets at a time, and LLRs in vectors.
//!
//! **What is not here**: retransmission of some code block groups only (CBGTI), scrambling, and the mapping to symbols.

mod decoder;
mod encoder;
mod format;
mod layout;
pub(crate) mod rate_matching;

pub use decoder::{Decoder, Outcome, SoftBuffer};
pub use encoder::Encoder;
pub use format::{CodeRate, Format, MOST_BITS, MOST_CODED_BITS, Modulation, RedundancyVersion};
pub use layout::{Layout, base_graph};

/// Why a transport block can't be coded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Error {
    /// No code rate.
    #[error("{0} is not a code rate: it is more than 0 and at most 1")]
    CodeRate(f64),
    /// No modulation has this order.
    #[error("no modulation has order {0}: Qm is 1, 2, 4, 6, 8 or 10")]
    ModulationOrder(usize),
    /// There is no such redundancy version.
    #[error("{0} is not a redundancy version: they are 0, 1, 2 and 3")]
    RedundancyVersion(usize),
    /// Not a number of layers that one transport block may have.
    #[error("{0} layers, where a transport block has 1 to 4")]
    Layers(usize),
    /// Too few bits or too many.
    #[error("a transport block of {given} bits, where it may have 1 to {most}")]
    Bits {
        /// Bits of the transport block.
        given: usize,
        /// The most.
        most: usize,
    },
    /// Code blocks would not have the same size.
    #[error(
        "{bits} bits, with their CRC, don't split into {blocks} code blocks of one size; sizes of TS 38.214 §5.1.3.2 do"
    )]
    Uneven {
        /// Bits of the transport block.
        bits: usize,
        /// Its code blocks.
        blocks: usize,
    },
    /// Too few coded bits or too many.
    #[error("{given} coded bits, where this transport block may have {least} to {most}")]
    CodedBits {
        /// Coded bits.
        given: usize,
        /// A symbol on each layer for each code block.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The last symbol would not be whole.
    #[error("{coded_bits} coded bits are not whole symbols of {symbol} bits (Qm times layers)")]
    PartOfASymbol {
        /// Coded bits.
        coded_bits: usize,
        /// Bits of a symbol on all layers.
        symbol: usize,
    },
    /// The limited buffer has no room for a bit of each code block.
    #[error("a buffer limited by a transport block of {0} bits has no room")]
    LimitedBuffer(usize),
    /// The transport block's buffer has another length than its bits need.
    #[error("{given} octets given for a transport block that has {needed}")]
    DataLength {
        /// Octets of the buffer.
        given: usize,
        /// Octets that it must have.
        needed: usize,
    },
    /// The buffer for coded bits has another length than these need.
    #[error("{given} octets given for coded bits that need {needed}")]
    CodedLength {
        /// Octets of the buffer.
        given: usize,
        /// Octets that it must have.
        needed: usize,
    },
    /// Not an LLR for each coded bit.
    #[error("{given} LLRs given for {needed} coded bits")]
    Llrs {
        /// LLRs.
        given: usize,
        /// Coded bits.
        needed: usize,
    },
    /// The soft buffer was made for another code, or other code blocks.
    #[error("the soft buffer is another transport block's: its code blocks are not these")]
    SoftBuffer,
    /// What the code says; no layout leads there.
    #[error(transparent)]
    Code(#[from] crate::ldpc::Error),
}
