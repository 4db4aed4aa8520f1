//! How a transport block becomes code blocks (TS 38.212 §5.2.2, §6.2.2, §7.2.2), and how many coded bits of each are sent (§5.4.2.1).

use super::Error;
use super::format::{Format, MOST_BITS, MOST_CODED_BITS, Modulation, RedundancyVersion};
use super::rate_matching::Circle;
use crate::crc::Crc;
use crate::ldpc::{BaseGraph, Code, LiftingSize};
use std::ops::Range;

/// The largest transport block that has the shorter CRC, and may be of base graph 2 at medium rates.
const SHORT: usize = 3824;

/// All that follows from a [`Format`]: it has been checked, so nothing that takes a layout can find it wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    bits: usize,
    crc: Crc,
    code: Code,
    blocks: usize,
    /// Bits of a code block that are not fillers, its CRC among them: K'.
    block_bits: usize,
    /// N_cb.
    buffer: usize,
    modulation: Modulation,
    layers: usize,
    coded_bits: usize,
}

impl Layout {
    /// Checks a format, and finds what follows from it.
    ///
    /// # Errors
    /// When there is no such transport block: too few bits or too many; bits that don't split into code blocks of one size, which sizes of TS 38.214
    /// §5.1.3.2 always do; coded bits that aren't whole symbols on all layers, or are fewer than a symbol for each code block; a buffer without
    /// room for a bit.
    pub fn new(format: &Format) -> Result<Self, Error> {
        let Format { bits, rate, modulation, layers, coded_bits, limited_buffer } = *format;
        if !(1..=MOST_BITS).contains(&bits) {
            return Err(Error::Bits { given: bits, most: MOST_BITS });
        }
        if !(1..=4).contains(&layers) {
            return Err(Error::Layers(layers));
        }
        let crc = if bits > SHORT { Crc::Crc24A } else { Crc::Crc16 };
        let graph = base_graph(bits, rate.get());
        let all = bits + crc.bits();
        let most = match graph {
            BaseGraph::One => 8448,
            BaseGraph::Two => 3840,
        };
        let (blocks, all) = if all <= most {
            (1, all)
        } else {
            let blocks = all.div_ceil(most - Crc::Crc24B.bits());
            (blocks, all + blocks * Crc::Crc24B.bits())
        };
        if !all.is_multiple_of(blocks) {
            return Err(Error::Uneven { bits, blocks });
        }
        let block_bits = all / blocks;
        let columns = match (graph, bits + crc.bits()) {
            (BaseGraph::One, _) => 22,
            (BaseGraph::Two, 641..) => 10,
            (BaseGraph::Two, 561..) => 9,
            (BaseGraph::Two, 193..) => 8,
            (BaseGraph::Two, _) => 6,
        };
        // There is one: K' is at most 22 (or 10) times the largest.
        let z = LiftingSize::all().find(|z| columns * z.get() >= block_bits);
        let code = Code::of(graph, z.ok_or(Error::Bits { given: bits, most: MOST_BITS })?);
        // N_ref = TBS_LBRM / (C R_LBRM), where R_LBRM is 2/3.
        let limit = limited_buffer
            .map_or(usize::MAX, |most| (most / 2).saturating_mul(3).saturating_add(most % 2) / blocks);
        if limit == 0 {
            return Err(Error::LimitedBuffer(limited_buffer.unwrap_or_default()));
        }
        let (symbol, least) = (layers * modulation.order(), layers * modulation.order() * blocks);
        if !(least..=MOST_CODED_BITS).contains(&coded_bits) {
            return Err(Error::CodedBits { given: coded_bits, least, most: MOST_CODED_BITS });
        }
        if !coded_bits.is_multiple_of(symbol) {
            return Err(Error::PartOfASymbol { coded_bits, symbol });
        }
        let buffer = code.coded_bits().min(limit);
        Ok(Self { bits, crc, code, blocks, block_bits, buffer, modulation, layers, coded_bits })
    }

    /// The transport block's bits, without its CRC: A.
    pub const fn bits(&self) -> usize {
        self.bits
    }

    /// The octets that these bits need.
    pub const fn octets(&self) -> usize {
        self.bits.div_ceil(8)
    }

    /// The transport block's CRC.
    pub const fn crc(&self) -> Crc {
        self.crc
    }

    /// The code of all of its code blocks: base graph and Z_c.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// How many code blocks it has: C.
    pub const fn code_blocks(&self) -> usize {
        self.blocks
    }

    /// Bits of a code block that are not fillers, CRCs among them: K'.
    pub const fn code_block_bits(&self) -> usize {
        self.block_bits
    }

    /// Filler bits of a code block: K - K'.
    pub const fn fillers(&self) -> usize {
        self.code.info_bits() - self.block_bits
    }

    /// Coded bits of a code block that may be sent: N_cb.
    pub const fn buffer_bits(&self) -> usize {
        self.buffer
    }

    /// Its modulation.
    pub const fn modulation(&self) -> Modulation {
        self.modulation
    }

    /// Coded bits that are sent: G.
    pub const fn coded_bits(&self) -> usize {
        self.coded_bits
    }

    /// The octets that these need, packed.
    pub const fn coded_octets(&self) -> usize {
        self.coded_bits.div_ceil(8)
    }

    /// Where a code block's coded bits are among all: E_r of them (TS 38.212 §5.4.2.1).
    pub const fn sent(&self, block: usize) -> Range<usize> {
        let symbol = self.layers * self.modulation.order();
        let symbols = self.coded_bits / symbol;
        let (each, more) = (symbols / self.blocks, symbols % self.blocks);
        // The last ones have a symbol more.
        let few = self.blocks - more;
        let start = each * block + block.saturating_sub(few);
        let length = each + (block >= few) as usize;
        start * symbol..(start + length) * symbol
    }

    /// The CRC of each code block, where there are several.
    pub const fn block_crc(&self) -> Option<Crc> {
        if self.blocks > 1 { Some(Crc::Crc24B) } else { None }
    }

    /// Bits of the transport block, and of its CRC, that are in each code block.
    pub(super) const fn payload(&self) -> usize {
        self.block_bits - if self.blocks > 1 { Crc::Crc24B.bits() } else { 0 }
    }

    /// The coded bits as they are read in a transmission.
    pub(super) fn circle(&self, version: RedundancyVersion) -> Circle {
        let (z, punctured) = (self.code.z(), self.code.punctured_bits());
        // Table 5.4.2.1-2: numerators, and the graph's columns that are sent.
        let (parts, of) = match self.code.graph() {
            BaseGraph::One => ([0, 17, 33, 56], 66),
            BaseGraph::Two => ([0, 13, 25, 43], 50),
        };
        Circle {
            length: self.buffer,
            hole: self.block_bits - punctured..self.code.info_bits() - punctured,
            start: parts[version.number()] * self.buffer / (of * z) * z,
        }
    }
}

/// The base graph of a transport block (TS 38.212 §6.2.2, §7.2.2).
pub fn base_graph(bits: usize, rate: f64) -> BaseGraph {
    if bits <= 292 || bits <= SHORT && rate <= 0.67 || rate <= 0.25 { BaseGraph::Two } else { BaseGraph::One }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::transport_block::CodeRate;

    fn format(bits: usize, rate: f64, coded_bits: usize) -> Format {
        let rate = CodeRate::new(rate).unwrap();
        Format { bits, rate, modulation: Modulation::Qpsk, layers: 1, coded_bits, limited_buffer: None }
    }

    #[test]
    fn base_graphs_change_where_the_standard_says() {
        use BaseGraph::{One, Two};
        for (bits, rate, graph) in [
            (292, 0.9, Two),
            (293, 0.9, One),
            (293, 0.67, Two),
            (3824, 0.67, Two),
            (3824, 0.671, One),
            (3825, 0.67, One),
            (3825, 0.251, One),
            (3825, 0.25, Two),
        ] {
            assert_eq!(base_graph(bits, rate), graph, "{bits} {rate}");
        }
    }

    #[test]
    fn blocks_and_lifting_sizes_change_where_the_standard_says() {
        // A, R; then CRC, C, K', Z.
        for (bits, rate, crc, blocks, block_bits, z) in [
            (3824, 0.9, Crc::Crc16, 1, 3840, 176),
            (3832, 0.9, Crc::Crc24A, 1, 3856, 176),
            (8424, 0.9, Crc::Crc24A, 1, 8448, 384),
            (8448, 0.9, Crc::Crc24A, 2, 4260, 208),
            (3816, 0.2, Crc::Crc16, 1, 3832, 384),
            (3840, 0.2, Crc::Crc24A, 2, 1956, 208),
            (24, 0.5, Crc::Crc16, 1, 40, 7),
            (176, 0.5, Crc::Crc16, 1, 192, 32),
            (184, 0.5, Crc::Crc16, 1, 200, 26),
            (544, 0.5, Crc::Crc16, 1, 560, 72),
            (552, 0.5, Crc::Crc16, 1, 568, 64),
            (624, 0.5, Crc::Crc16, 1, 640, 72),
            (632, 0.5, Crc::Crc16, 1, 648, 72),
        ] {
            let layout = Layout::new(&format(bits, rate, 20_000)).unwrap();
            let found = (layout.crc(), layout.code_blocks(), layout.code_block_bits(), layout.code().z());
            assert_eq!(found, (crc, blocks, block_bits, z), "{bits} {rate}");
            assert_eq!(layout.fillers() + block_bits, layout.code().info_bits());
        }
    }

    #[test]
    fn the_last_blocks_have_a_symbol_more_on_each_layer() {
        // Three code blocks, 3,129 symbols of 6 bits on 2 layers.
        let format = Format { modulation: Modulation::Qam64, layers: 2, ..format(16_896, 0.45, 12 * 3128) };
        let layout = Layout::new(&format).unwrap();
        assert_eq!(layout.code_blocks(), 3);
        let sent: Vec<_> = (0..3).map(|block| layout.sent(block)).collect();
        assert_eq!(sent, [0..12 * 1042, 12 * 1042..12 * 2085, 12 * 2085..12 * 3128]);
    }

    #[test]
    fn the_start_is_a_multiple_of_z_in_a_limited_buffer_too() {
        let whole = format(8424, 0.5, 20_000);
        let starts = |format: &Format| {
            let layout = Layout::new(format).unwrap();
            RedundancyVersion::ALL.map(|version| layout.circle(version).start / 384)
        };
        assert_eq!(starts(&whole), [0, 17, 33, 56]);
        // N_ref is 12,000: 31.25 columns.
        let limited = Format { limited_buffer: Some(8000), ..whole };
        assert_eq!(Layout::new(&limited).unwrap().buffer_bits(), 12_000);
        assert_eq!(starts(&limited), [0, 8, 15, 26]);
        assert_eq!(starts(&format(3816, 0.2, 20_000)), [0, 13, 25, 43]);
    }

    #[test]
    fn what_can_not_be_is_told_from_each_other() {
        let good = format(8448, 0.9, 20_000);
        let error = |format: Format| Layout::new(&format).unwrap_err();
        assert_eq!(error(Format { bits: 0, ..good }), Error::Bits { given: 0, most: MOST_BITS });
        assert_eq!(
            error(Format { bits: usize::MAX, ..good }),
            Error::Bits { given: usize::MAX, most: MOST_BITS }
        );
        assert_eq!(error(Format { bits: 8449, ..good }), Error::Uneven { bits: 8449, blocks: 2 });
        assert_eq!(error(Format { layers: 0, ..good }), Error::Layers(0));
        assert_eq!(error(Format { layers: 5, ..good }), Error::Layers(5));
        let coded = |given| Error::CodedBits { given, least: 4, most: MOST_CODED_BITS };
        assert_eq!(error(Format { coded_bits: 3, ..good }), coded(3));
        assert_eq!(error(Format { coded_bits: usize::MAX, ..good }), coded(usize::MAX));
        assert_eq!(
            error(Format { coded_bits: 5, ..good }),
            Error::PartOfASymbol { coded_bits: 5, symbol: 2 }
        );
        assert_eq!(error(Format { limited_buffer: Some(1), ..good }), Error::LimitedBuffer(1));
        assert!(Layout::new(&Format { limited_buffer: Some(usize::MAX), ..good }).is_ok());
        assert!(Layout::new(&Format { coded_bits: 4, limited_buffer: Some(2), ..good }).is_ok());
    }
}
