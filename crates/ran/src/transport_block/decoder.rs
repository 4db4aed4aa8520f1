//! Coded bits, as likely as they are, to transport blocks.

use super::layout::Layout;
use super::{Error, MOST_CODED_BITS, RedundancyVersion};
use crate::bits;
use crate::ldpc::{self, BaseGraph, Effort, MOST_LIFTING};
use crate::simd::{self, Processor};

/// Octets of the largest code block's information bits.
const MOST_INFO: usize = BaseGraph::One.info_columns() * MOST_LIFTING / 8;

/// What has been received of one transport block in all of its transmissions so far: a HARQ process's memory.
#[derive(Debug, Clone)]
pub struct SoftBuffer {
    /// What the buffer was made for.
    layout: Layout,
    /// For each code block the sums of its bits' LLRs: N_cb.
    llrs: Box<[i8]>,
    blocks: Box<[Block]>,
    /// What was decoded: the transport block and its CRC.
    data: Box<[u8]>,
}

/// A code block in a soft buffer.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Where the last coded bit ends that has been received.
    reach: usize,
    /// Whether its CRC holds.
    accepted: bool,
}

impl SoftBuffer {
    /// An empty one, for transport blocks of this layout; sent again, they may have another modulation, and other coded bits.
    pub fn new(layout: &Layout) -> Self {
        let (blocks, bits) = (layout.code_blocks(), layout.bits() + layout.crc().bits());
        Self {
            layout: *layout,
            llrs: vec![0; blocks * layout.buffer_bits()].into(),
            blocks: vec![Block::default(); blocks].into(),
            data: vec![0; bits.div_ceil(8)].into(),
        }
    }

    /// Forgets everything: the next transmission is of a new transport block.
    pub fn clear(&mut self) {
        for (block, llrs) in self.blocks.iter_mut().zip(self.llrs.chunks_mut(self.layout.buffer_bits())) {
            llrs[..block.reach].fill(0);
            *block = Block::default();
        }
    }

    /// Whether the transport block's code blocks are those that the buffer was made for.
    fn is_for(&self, layout: &Layout) -> bool {
        let blocks = |it: &Layout| (it.bits(), it.code(), it.code_blocks(), it.buffer_bits());
        blocks(&self.layout) == blocks(layout)
    }
}

/// How decoding ended.
///
/// CRCs say what is right: error detection is theirs (TS 38.212 §6.2.1, §7.2.1), and by them a receiver answers with ACK or NACK. Parity checks
/// only say when to stop. So bits are not thrown away because of a parity bit that is still wrong, and that nobody is given. What that costs:
/// of blocks that can't be decoded, a CRC of L bits takes one in 2^L for right, most of which parity checks would have caught: one in 65,536
/// of transport blocks of up to 3,824 bits. It is no more than that because a CRC is asked when all checks hold, and after the last iteration, but
/// not after each one. Zeros alone need more than their CRC, which is zero: what is hardly known decodes to them. For them, checks have to hold, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all CRCs hold. The bits are given in any case.
    pub accepted: bool,
    /// Code blocks that could be accepted, in this transmission or before: by their own CRC or, where there is one only, by the transport
    /// block's.
    pub accepted_blocks: usize,
    /// Iterations made, of all code blocks together.
    pub iterations: usize,
}

/// Decodes transport blocks, one at a time.
#[derive(Debug, Clone)]
pub struct Decoder {
    processor: Processor,
    ldpc: ldpc::Decoder,
    /// A code block's information bits.
    info: Box<[u8]>,
    /// What was received of it in this transmission, in the order of its bits.
    received: Box<[i8]>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder for the best that this processor has, with memory for the largest transport block.
    pub fn new() -> Self {
        Self::on(Processor::best())
    }

    /// A decoder for `processor`. Plain code serves where this machine has not got it.
    pub fn on(processor: Processor) -> Self {
        Self {
            processor: if processor.is_here() { processor } else { Processor::Any },
            ldpc: ldpc::Decoder::on(processor),
            info: vec![0; MOST_INFO].into(),
            received: vec![0; MOST_CODED_BITS].into(),
        }
    }

    /// Adds a transmission to what is known of a transport block, and decodes the code blocks that have not been accepted.
    ///
    /// `llrs` are those of the G coded bits, ln (P(0) / P(1)) in quarters. `data` gets the A bits. A code block is decoded until its checks and its
    /// CRC hold; `effort` bounds the iterations of each, after which the CRC decides. One of which nothing is known would decode to zeros, whose CRC holds, and is not
    /// accepted.
    ///
    /// # Errors
    /// When there isn't an LLR for each coded bit, `data` has not as many octets as its bits need, or the soft buffer was made for other code
    /// blocks.
    pub fn decode(
        &mut self,
        layout: &Layout,
        version: RedundancyVersion,
        llrs: &[i8],
        effort: Effort,
        soft: &mut SoftBuffer,
        data: &mut [u8],
    ) -> Result<Outcome, Error> {
        if llrs.len() != layout.coded_bits() {
            return Err(Error::Llrs { given: llrs.len(), needed: layout.coded_bits() });
        }
        if data.len() != layout.octets() {
            return Err(Error::DataLength { given: data.len(), needed: layout.octets() });
        }
        if !soft.is_for(layout) {
            return Err(Error::SoftBuffer);
        }
        let (code, circle) = (layout.code(), layout.circle(version));
        let (payload, info) = (layout.payload(), &mut self.info[..code.info_bits().div_ceil(8)]);
        let crc = layout.block_crc().unwrap_or(layout.crc());
        let mut outcome = Outcome { accepted: false, accepted_blocks: 0, iterations: 0 };
        for (number, (block, sums)) in
            soft.blocks.iter_mut().zip(soft.llrs.chunks_mut(layout.buffer_bits())).enumerate()
        {
            if !block.accepted {
                let received = &llrs[layout.sent(number)];
                let ordered = &mut self.received[..received.len()];
                simd::rate_matching::deinterleave(self.processor, layout.modulation(), received, ordered);
                let reach = simd::rate_matching::combine(self.processor, &circle, ordered, sums);
                block.reach = block.reach.max(reach);
                let known = &sums[..block.reach];
                let decoded = self.ldpc.decode(code, known, layout.fillers(), effort, info, |info| {
                    crc.of(info, layout.code_block_bits()) == 0
                })?;
                // Bits of which nothing is known become zeros, and the CRC of zeros holds.
                let is_proof = decoded.checks_hold || info.iter().any(|&octet| octet != 0);
                block.accepted = decoded.accepted && is_proof && known.iter().any(|&llr| llr != 0);
                outcome.iterations += decoded.iterations;
                bits::copy(info, 0, &mut soft.data, number * payload, payload);
            }
            outcome.accepted_blocks += usize::from(block.accepted);
        }
        let of_block = layout.bits() + layout.crc().bits();
        let all = outcome.accepted_blocks == layout.code_blocks();
        outcome.accepted = all && (layout.code_blocks() == 1 || layout.crc().of(&soft.data, of_block) == 0);
        if all && !outcome.accepted {
            // One of them was accepted wrongly, and nobody knows which.
            soft.blocks.iter_mut().for_each(|block| block.accepted = false);
        }
        bits::copy(&soft.data, 0, data, 0, layout.bits());
        if let (Some(last), used @ 1..) = (data.last_mut(), layout.bits() % 8) {
            *last &= !(0xff >> used);
        }
        Ok(outcome)
    }
}
