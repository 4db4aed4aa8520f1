//! Transport blocks to coded bits.

use super::layout::Layout;
use super::{Error, MOST_CODED_BITS, RedundancyVersion, rate_matching};
use crate::bits;
use crate::ldpc::{self, BaseGraph, MOST_COLUMNS, MOST_LIFTING};
use crate::simd::{self, Processor};

/// Octets of the largest code block's information bits.
const MOST_INFO: usize = BaseGraph::One.info_columns() * MOST_LIFTING / 8;

/// Octets of the largest code block's coded bits, and more.
const MOST_CODED: usize = MOST_COLUMNS * MOST_LIFTING / 8;

/// Octets that may be written behind the last bit.
const SLACK: usize = 8;

/// Encodes transport blocks, one at a time.
#[derive(Debug, Clone)]
pub struct Encoder {
    processor: Processor,
    ldpc: ldpc::Encoder,
    /// A code block's information bits.
    info: Box<[u8]>,
    /// All of its coded bits.
    coded: Box<[u8]>,
    /// Those that are sent.
    selected: Box<[u8]>,
    /// The same, in symbols.
    symbols: Box<[u8]>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for the best that this processor has, with memory for the largest transport block.
    pub fn new() -> Self {
        Self::on(Processor::best())
    }

    /// An encoder for `processor`. Plain code serves where this machine has not got it.
    pub fn on(processor: Processor) -> Self {
        let room = |octets| vec![0; octets].into_boxed_slice();
        Self {
            processor: if processor.is_here() { processor } else { Processor::Any },
            ldpc: ldpc::Encoder::on(processor),
            info: room(MOST_INFO),
            coded: room(MOST_CODED),
            selected: room(MOST_CODED_BITS / 8 + SLACK),
            symbols: room(MOST_CODED_BITS / 8 + SLACK),
        }
    }

    /// Encodes one transport block: `data` holds its A bits, without CRC, `coded` gets the G coded bits of a redundancy version. What is left of
    /// the last octet becomes zero.
    ///
    /// # Errors
    /// When a buffer has not as many octets as its bits need.
    pub fn encode(
        &mut self,
        layout: &Layout,
        version: RedundancyVersion,
        data: &[u8],
        coded: &mut [u8],
    ) -> Result<(), Error> {
        if data.len() != layout.octets() {
            return Err(Error::DataLength { given: data.len(), needed: layout.octets() });
        }
        if coded.len() != layout.coded_octets() {
            return Err(Error::CodedLength { given: coded.len(), needed: layout.coded_octets() });
        }
        if let Some(last) = coded.last_mut() {
            *last = 0;
        }
        let (code, circle) = (layout.code(), layout.circle(version));
        let parity = aligned(layout.crc().of(data, layout.bits()), layout.crc().bits());
        let info = &mut self.info[..code.info_bits().div_ceil(8)];
        let block_coded = &mut self.coded[..code.coded_bits().div_ceil(8)];
        for block in 0..layout.code_blocks() {
            // §5.2.2: a part of the transport block and, in the last one, its CRC; then the code block's own CRC, then fillers.
            let (start, payload) = (block * layout.payload(), layout.payload());
            let of_data = payload.min(layout.bits() - start);
            info[layout.code_block_bits() / 8..].fill(0);
            bits::copy(data, start, info, 0, of_data);
            bits::copy(&parity, 0, info, of_data, payload - of_data);
            if let Some(crc) = layout.block_crc() {
                let parity = aligned(crc.of(info, payload), crc.bits());
                bits::copy(&parity, 0, info, payload, crc.bits());
            }
            self.ldpc.encode(code, info, block_coded)?;
            let sent = layout.sent(block);
            rate_matching::select(&circle, block_coded, sent.len(), &mut self.selected);
            simd::rate_matching::interleave(
                self.processor,
                layout.modulation(),
                &self.selected,
                sent.len(),
                &mut self.symbols,
            );
            // §5.5.
            bits::copy(&self.symbols, 0, coded, sent.start, sent.len());
        }
        Ok(())
    }
}

/// Parity bits as octets, the first of them uppermost in the first.
fn aligned(parity: u32, bits: usize) -> [u8; 4] {
    (parity << (32 - bits)).to_be_bytes()
}
