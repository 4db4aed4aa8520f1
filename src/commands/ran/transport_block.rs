//! `millrace ran transport-block`.

use super::input::{self, Received};
use super::{print, wrong};
use crate::exit::{Exit, Failure};
use ran::ldpc::{BaseGraph, Effort};
use ran::transport_block::{
    CodeRate, Decoder, Encoder, Format, Layout, Modulation, RedundancyVersion, SoftBuffer,
};
use serde::Serialize;

/// Which way.
#[derive(clap::Subcommand)]
pub enum Way {
    /// A transport block to the coded bits of a redundancy version.
    Encode {
        #[command(flatten)]
        format: Chosen,
        /// The redundancy version.
        #[arg(long, value_name = "0-3", default_value_t = 0)]
        rv: usize,
        /// Bits of the transport block, instead of eight for each octet.
        #[arg(long, value_name = "A")]
        bits: Option<usize>,
        /// Write JSON: with base graph, lifting size, code blocks.
        #[arg(long)]
        json: bool,
        /// The transport block, packed, hexadecimal (`-`: standard input).
        #[arg(value_name = "HEX")]
        block: String,
    },
    /// What was received in one or several transmissions to a transport block. Ends with 1 if its CRCs don't hold.
    Decode {
        #[command(flatten)]
        format: Chosen,
        #[command(flatten)]
        received: Received,
        /// The redundancy version of each transmission, in their order.
        #[arg(long, value_name = "0-3,...", value_delimiter = ',', default_value = "0")]
        rv: Vec<usize>,
        /// Bits of the transport block.
        #[arg(long, value_name = "A")]
        bits: usize,
        /// Write JSON: with base graph, lifting size, code blocks.
        #[arg(long)]
        json: bool,
        /// What was received of the G coded bits, hexadecimal, once for each transmission (`-`: standard input).
        #[arg(value_name = "HEX", required = true)]
        coded: Vec<String>,
    },
}

/// A format, but for the transport block's size.
#[derive(clap::Args)]
pub struct Chosen {
    /// The code rate R, which takes part in the choice of the base graph: 0.5, 1/3, 948/1024.
    #[arg(long, value_name = "R", value_parser = input::rate)]
    rate: CodeRate,
    /// The modulation order Qm: bits of a symbol.
    #[arg(long, value_name = "1|2|4|6|8|10")]
    qm: usize,
    /// Coded bits that are sent: G.
    #[arg(long, value_name = "G")]
    g: usize,
    /// Layers that they are sent on.
    #[arg(long, value_name = "1-4", default_value_t = 1)]
    layers: usize,
    /// `TBS_LBRM`, in bits: the buffer is limited (TS 38.212 §5.4.2.1).
    #[arg(long, value_name = "N")]
    tbs_lbrm: Option<usize>,
}

impl Chosen {
    fn layout(&self, bits: usize) -> Result<Layout, Failure> {
        let modulation = Modulation::of_order(self.qm).map_err(|error| wrong(format!("--qm: {error}")))?;
        let (rate, layers, coded_bits) = (self.rate, self.layers, self.g);
        Layout::new(&Format { bits, rate, modulation, layers, coded_bits, limited_buffer: self.tbs_lbrm })
            .map_err(wrong)
    }
}

/// What follows from a format.
#[derive(Serialize)]
struct Facts {
    bits: usize,
    base_graph: u8,
    lifting_size: usize,
    code_blocks: usize,
    code_block_bits: usize,
    filler_bits: usize,
    buffer_bits: usize,
    coded_bits: usize,
}

impl Facts {
    fn of(layout: &Layout) -> Self {
        Self {
            bits: layout.bits(),
            base_graph: if layout.code().graph() == BaseGraph::One { 1 } else { 2 },
            lifting_size: layout.code().z(),
            code_blocks: layout.code_blocks(),
            code_block_bits: layout.code_block_bits(),
            filler_bits: layout.fillers(),
            buffer_bits: layout.buffer_bits(),
            coded_bits: layout.coded_bits(),
        }
    }
}

#[derive(Serialize)]
struct Encoded {
    #[serde(flatten)]
    facts: Facts,
    coded: String,
}

#[derive(Serialize)]
struct Decoded {
    #[serde(flatten)]
    facts: Facts,
    accepted: bool,
    accepted_blocks: usize,
    iterations: usize,
    block: String,
}

fn version(number: usize) -> Result<RedundancyVersion, Failure> {
    RedundancyVersion::new(number).map_err(|error| wrong(format!("--rv: {error}")))
}

/// Runs the command.
pub fn run(way: &Way) -> Result<(), Failure> {
    match way {
        Way::Encode { format, rv, bits, json, block } => {
            let version = version(*rv)?;
            let block = input::octets(block, "the transport block")?;
            let layout = format.layout(bits.unwrap_or(block.len() * 8))?;
            let mut coded = vec![0; layout.coded_octets()];
            Encoder::new().encode(&layout, version, &block, &mut coded).map_err(wrong)?;
            let coded = input::to_hex(&coded);
            print(*json, &coded, &Encoded { facts: Facts::of(&layout), coded: coded.clone() })
        }
        Way::Decode { format, received, rv, bits, json, coded } => {
            if rv.len() != coded.len() {
                return Err(wrong(format!(
                    "--rv names {} redundancy versions, and {} transmissions are given: one for each",
                    rv.len(),
                    coded.len()
                )));
            }
            let layout = format.layout(*bits)?;
            let effort = Effort { iterations: received.iterations.into(), early_stop: true };
            let (mut decoder, mut soft) = (Decoder::new(), SoftBuffer::new(&layout));
            let mut block = vec![0; layout.octets()];
            let (mut outcome, mut iterations) = (None, 0);
            for (rv, coded) in rv.iter().zip(coded) {
                let llrs = received.llrs(coded, "what was received", layout.coded_bits())?;
                let decoded = decoder.decode(&layout, version(*rv)?, &llrs, effort, &mut soft, &mut block);
                let decoded = decoded.map_err(wrong)?;
                iterations += decoded.iterations;
                outcome = Some(decoded);
            }
            let (accepted, accepted_blocks) =
                outcome.map_or((false, 0), |outcome| (outcome.accepted, outcome.accepted_blocks));
            let block = input::to_hex(&block);
            let facts = Facts::of(&layout);
            let all = Decoded { facts, accepted, accepted_blocks, iterations, block: block.clone() };
            print(*json, &block, &all)?;
            if accepted {
                return Ok(());
            }
            let blocks = layout.code_blocks();
            Err(Failure::new(
                Exit::Failed,
                format!("the CRC doesn't hold: {accepted_blocks} of {blocks} code blocks were accepted"),
            ))
        }
    }
}
