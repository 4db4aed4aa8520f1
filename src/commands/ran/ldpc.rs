//! `millrace ran ldpc`.

use super::input::{self, Received};
use super::{print, wrong};
use crate::exit::{Exit, Failure};
use ran::ldpc::{BaseGraph, Code, Decoder, Effort, Encoder};
use serde::Serialize;

/// Which way.
#[derive(clap::Subcommand)]
pub enum Way {
    /// K information bits (22 Z of base graph 1, 10 Z of base graph 2) to N coded ones (66 Z, 50 Z).
    Encode {
        #[command(flatten)]
        code: Chosen,
        /// Write JSON.
        #[arg(long)]
        json: bool,
        /// The information bits, packed, hexadecimal; fillers are zeros (`-`: standard input).
        #[arg(value_name = "HEX")]
        info: String,
    },
    /// What was received of N coded bits to K information bits. Ends with 1 if the parity checks don't hold.
    Decode {
        #[command(flatten)]
        code: Chosen,
        #[command(flatten)]
        received: Received,
        /// Filler bits: the last information bits, which are known to be zeros.
        #[arg(long, value_name = "N", default_value_t = 0)]
        fillers: usize,
        /// Write JSON.
        #[arg(long)]
        json: bool,
        /// What was received of the first coded bits, hexadecimal; the others are unknown (`-`: standard input).
        #[arg(value_name = "HEX")]
        coded: String,
    },
}

/// A code.
#[derive(clap::Args)]
pub struct Chosen {
    /// The base graph.
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u8).range(1..=2))]
    bg: u8,
    /// The lifting size.
    #[arg(long, value_name = "Z")]
    z: usize,
}

impl Chosen {
    fn code(&self) -> Result<Code, Failure> {
        let graph = if self.bg == 1 { BaseGraph::One } else { BaseGraph::Two };
        Code::new(graph, self.z).map_err(|error| wrong(format!("--z: {error}")))
    }
}

#[derive(Serialize)]
struct Encoded {
    info_bits: usize,
    coded_bits: usize,
    coded: String,
}

#[derive(Serialize)]
struct Decoded {
    checks_hold: bool,
    iterations: usize,
    info_bits: usize,
    info: String,
}

/// Runs the command.
pub fn run(way: &Way) -> Result<(), Failure> {
    match way {
        Way::Encode { code, json, info } => {
            let code = code.code()?;
            let info = input::octets(info, "the information bits")?;
            let mut coded = vec![0; code.coded_bits().div_ceil(8)];
            Encoder::new().encode(code, &info, &mut coded).map_err(wrong)?;
            let coded = input::to_hex(&coded);
            let all =
                Encoded { info_bits: code.info_bits(), coded_bits: code.coded_bits(), coded: coded.clone() };
            print(*json, &coded, &all)
        }
        Way::Decode { code, received, fillers, json, coded } => {
            let code = code.code()?;
            let llrs = received.llrs(coded, "what was received", code.coded_bits())?;
            let mut info = vec![0; code.info_bits().div_ceil(8)];
            let effort = Effort { iterations: received.iterations.into(), early_stop: true };
            let decoded =
                Decoder::new().decode(code, &llrs, *fillers, effort, &mut info, |_| true).map_err(wrong)?;
            let info = input::to_hex(&info);
            let all = Decoded {
                checks_hold: decoded.checks_hold,
                iterations: decoded.iterations,
                info_bits: code.info_bits(),
                info: info.clone(),
            };
            print(*json, &info, &all)?;
            if decoded.checks_hold {
                return Ok(());
            }
            let iterations = decoded.iterations;
            Err(Failure::new(
                Exit::Failed,
                format!("not all parity checks hold after {iterations} iterations"),
            ))
        }
    }
}
