//! What workers decode: noisy code blocks for packets of each size, made before anything runs.
//!
//! A packet's octets are the bits of a transport block, padded up to the next size that splits into code blocks of whole octets (as the sizes of TS 38.214 §5.1.3.2 do). It gets its CRC, is cut into code blocks
//! (TS 38.212 §5.2.2), and each is encoded for the base graph and the lifting size of the block's bits and rate (§6.2.2, §7.2.2). What is sent of it comes through a channel with white Gaussian noise, as LLRs; so
//! decoding takes as many iterations as it would.

use crate::sched::traffic::Chance;
use crate::task::{Decoding, Misfit};
use ran::crc::Crc;
use ran::ldpc::{self, Effort};
use ran::transport_block::{self, CodeRate, Format, Layout, Modulation};

/// What is agreed about all packets' blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channel {
    /// The code rate.
    pub rate: f64,
    /// The energy of a coded bit over the noise's density, in decibels.
    pub decibels: f64,
    /// The most iterations of a block.
    pub iterations: usize,
    /// Different packets of each size.
    pub variants: usize,
    /// What chance begins with.
    pub seed: u64,
}

impl Default for Channel {
    /// Rate 1/2 at 0 dB: 3 dB for a bit of information, so nearly all blocks are decoded, after a few iterations. Up to 8 of these, as in most receivers.
    fn default() -> Self {
        Self { rate: 0.5, decibels: 0.0, iterations: 8, variants: 8, seed: 38_212 }
    }
}

/// Why there is nothing to decode.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum MaterialError {
    /// There is no such transport block.
    #[error("packets of {octets} octets: {why}")]
    Layout {
        /// Octets of a packet.
        octets: u32,
        /// Why not.
        why: transport_block::Error,
    },
    /// The encoder takes no such block.
    #[error(transparent)]
    Code(#[from] ldpc::Error),
    /// The decoder takes no such block.
    #[error(transparent)]
    Decoding(#[from] Misfit),
    /// No sizes of packets.
    #[error("no sizes of packets to make blocks for, or none of each")]
    Nothing,
}

/// A packet as it was received.
#[derive(Debug)]
pub(super) struct Received {
    /// By code block, LLRs in quarters.
    pub(super) llrs: Vec<Vec<i8>>,
    /// What was sent: the packet's octets, and padding.
    pub(super) octets: Vec<u8>,
}

/// Packets of one size.
#[derive(Debug)]
pub(super) struct OfSize {
    /// Octets of packets, at most.
    pub(super) octets: u32,
    pub(super) decoding: Decoding,
    /// Octets of a code block that are the packet's, or padding, or its CRC.
    pub(super) payload: usize,
    pub(super) packets: Vec<Received>,
}

/// Packets of all sizes, the shortest first.
#[derive(Debug)]
pub(super) struct Material(Vec<OfSize>);

/// Sizes that are tried for one that splits evenly.
const TRIES: u32 = 256;

impl Material {
    /// For packets of these sizes.
    pub(super) fn new(sizes: &[u32], channel: &Channel) -> Result<Self, MaterialError> {
        let mut sizes: Vec<u32> = sizes.iter().map(|&octets| octets.max(1)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() || channel.variants == 0 {
            return Err(MaterialError::Nothing);
        }
        let mut chance = Chance::new(channel.seed);
        let of_size = |octets| OfSize::new(octets, channel, &mut chance);
        Ok(Self(sizes.into_iter().map(of_size).collect::<Result<_, _>>()?))
    }

    /// Where packets of that size are: those of the next greater one if there are none, at last of the greatest.
    pub(super) fn place(&self, octets: u32) -> usize {
        self.0.partition_point(|of_size| of_size.octets < octets).min(self.0.len() - 1)
    }

    pub(super) fn at(&self, place: usize) -> &OfSize {
        &self.0[place]
    }

    pub(super) fn sizes(&self) -> usize {
        self.0.len()
    }

    /// LLRs of any packet, at most: octets of a batch's input for it.
    pub(super) fn most_llrs(&self) -> usize {
        let llrs = |packet: &Received| packet.llrs.iter().map(Vec::len).sum();
        self.0.iter().filter_map(|of_size| of_size.packets.first()).map(llrs).max().unwrap_or(0)
    }
}

impl OfSize {
    fn new(octets: u32, channel: &Channel, chance: &mut Chance) -> Result<Self, MaterialError> {
        let layout = layout(octets, channel.rate)?;
        let (code, fillers) = (layout.code(), layout.fillers());
        // The first block's share for all: with another modulation the last ones could have a symbol more.
        let sent = layout.sent(0).len();
        let before_fillers = layout.code_block_bits() - code.punctured_bits();
        let hole = before_fillers..before_fillers + fillers;
        let received = if sent > hole.start { sent + fillers } else { sent };
        let received = received.min(code.coded_bits());
        let effort = Effort { iterations: channel.iterations, early_stop: true };
        let decoding = Decoding::new(code, received, fillers, effort)?;
        let block_crc = layout.block_crc();
        let payload = layout.code_block_bits() / 8 - block_crc.map_or(0, |crc| crc.bits() / 8);
        let mut encoder = ldpc::Encoder::new();
        let mut of_size = Self { octets, decoding, payload, packets: Vec::new() };
        for _ in 0..channel.variants {
            let sent: Vec<u8> = (0..layout.octets()).map(|_| chance.below(256) as u8).collect();
            let mut block = sent.clone();
            attach(layout.crc(), &mut block);
            let mut llrs = Vec::new();
            for part in block.chunks(payload) {
                let mut info = part.to_vec();
                if let Some(crc) = block_crc {
                    attach(crc, &mut info);
                }
                info.resize(code.info_bits().div_ceil(8), 0);
                let mut coded = vec![0; code.coded_bits().div_ceil(8)];
                encoder.encode(code, &info, &mut coded)?;
                let is_one = |at: usize| coded[at / 8] >> (7 - at % 8) & 1 == 1;
                let noisy = (0..received)
                    .map(|at| if hole.contains(&at) { 0 } else { llr(is_one(at), channel.decibels, chance) });
                llrs.push(noisy.collect());
            }
            of_size.packets.push(Received { llrs, octets: sent });
        }
        Ok(of_size)
    }
}

/// The layout of the shortest transport block that holds a packet, and whose code blocks are whole octets.
fn layout(octets: u32, rate: f64) -> Result<Layout, MaterialError> {
    let wrong = |why| MaterialError::Layout { octets, why };
    let rate = CodeRate::new(rate).map_err(wrong)?;
    let mut first_error = None;
    for octets in octets..octets + TRIES {
        let bits = octets as usize * 8;
        let coded_bits = ((bits as f64 / rate.get()) as usize).next_multiple_of(2);
        let modulation = Modulation::Qpsk;
        let format = Format { bits, rate, modulation, layers: 1, coded_bits, limited_buffer: None };
        match Layout::new(&format) {
            Ok(layout) if layout.code_block_bits().is_multiple_of(8) => return Ok(layout),
            Ok(_) => {}
            Err(why) => {
                first_error.get_or_insert(why);
            }
        }
    }
    let none = transport_block::Error::Uneven { bits: octets as usize * 8, blocks: 0 };
    Err(wrong(first_error.unwrap_or(none)))
}

/// Appends the CRC of all octets.
fn attach(crc: Crc, octets: &mut Vec<u8>) {
    let parity = crc.of(octets, octets.len() * 8);
    octets.extend_from_slice(&parity.to_be_bytes()[4 - crc.bits() / 8..]);
}

/// The greatest LLR, in quarters, as a receiver's front end saturates: below what a row of the code can say against it ([`ldpc::MOST_SAID`] at most). A parity bit of a single row that was received wrongly and louder could
/// never be corrected: its check would fail in a block whose information is right.
const LOUDEST: f64 = 20.0;

/// The LLR of a coded bit that came through the channel, in quarters: a zero is sent as 1, a one as -1.
fn llr(is_one: bool, decibels: f64, chance: &mut Chance) -> i8 {
    let variance = 0.5 / 10_f64.powf(decibels / 10.0);
    // Box and Muller's way to a Gaussian.
    let radius = (-2.0 * (1.0 - chance.part()).ln()).sqrt();
    let noise = radius * (std::f64::consts::TAU * chance.part()).cos() * variance.sqrt();
    let received = if is_one { -1.0 } else { 1.0 } + noise;
    (4.0 * 2.0 * received / variance).round().clamp(-LOUDEST, LOUDEST) as i8
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ran::ldpc::BaseGraph;

    /// TS 38.212 §6.2.2 and §5.2.2, by hand for the thesis' sizes at rate 1/2.
    #[test]
    fn blocks_are_those_of_the_standard() {
        let channel = Channel { variants: 1, ..Channel::default() };
        let material = Material::new(&[1458, 243, 486, 243], &channel).unwrap();
        assert_eq!(material.sizes(), 3);
        // 1,944 bits and a CRC of 16: base graph 2, 10 columns, Z = 208.
        let [small, medium, large] = [243, 486, 1458].map(|octets| material.at(material.place(octets)));
        let code = |of_size: &OfSize| (of_size.decoding.code().graph(), of_size.decoding.code().z());
        assert_eq!((code(small), small.packets[0].llrs.len()), ((BaseGraph::Two, 208), 1));
        // 3,888 bits are more than 3,824: base graph 1 and a CRC of 24, 22 columns, Z = 192 (22 * 176 are 3,872).
        assert_eq!((code(medium), medium.packets[0].llrs.len()), ((BaseGraph::One, 192), 1));
        // 11,672 bits and 24, two blocks of 5,848 and 24: Z = 288.
        assert_eq!((code(large), large.packets[0].llrs.len()), ((BaseGraph::One, 288), 2));
        assert_eq!((large.packets[0].octets.len(), large.payload), (1459, 731));
        assert_eq!(material.place(244), material.place(486));
        assert_eq!(material.place(9000), material.place(1458));
    }

    #[test]
    fn what_can_not_be_made_is_refused() {
        let channel = Channel::default();
        assert!(matches!(Material::new(&[], &channel), Err(MaterialError::Nothing)));
        let no_rate = Channel { rate: 0.0, ..channel };
        let error = Material::new(&[243], &no_rate).map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "packets of 243 octets: 0 is not a code rate: it is more than 0 and at most 1"
        );
        let endless = Channel { iterations: usize::MAX, ..channel };
        assert!(matches!(Material::new(&[243], &endless), Err(MaterialError::Decoding(_))));
    }

    #[test]
    fn noise_is_as_loud_as_it_should_be() {
        let mut chance = Chance::new(3);
        // At 0 dB a bit is received wrongly with probability Q(sqrt 2) = 0.0786; half of the 1.3 % that come to no LLR at all are of these.
        let wrong = (0..20_000).filter(|_| llr(true, 0.0, &mut chance) > 0).count();
        assert!((1_250..1_640).contains(&wrong), "{wrong}");
    }
}
