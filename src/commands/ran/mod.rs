//! `millrace ran`: the radio side's tasks as a calculator. Hexadecimal in, hexadecimal out, one block at a time.

mod input;
mod ldpc;
mod nea2;
mod transport_block;

use crate::exit::{Exit, Failure};
use crate::output;
use serde::Serialize;

/// Arguments of `ran`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand)]
enum Task {
    /// Cipher or decipher a message with 128-NEA2: AES-128 in counter mode (TS 33.501 D.2.1.3).
    Nea2(nea2::Args),
    /// Encode or decode a code block with an NR LDPC code (TS 38.212 §5.3.2).
    Ldpc {
        #[command(subcommand)]
        way: ldpc::Way,
    },
    /// Encode or decode a transport block: CRC, segmentation, LDPC, rate matching, interleaving (TS 38.212 §5.1 to §5.5).
    TransportBlock {
        #[command(subcommand)]
        way: transport_block::Way,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.task {
        Task::Nea2(args) => nea2::run(args),
        Task::Ldpc { way } => ldpc::run(way),
        Task::TransportBlock { way } => transport_block::run(way),
    }
}

/// Prints a result: the octets alone, or with all that is known of them.
fn print<T: Serialize>(json: bool, octets: &str, all: &T) -> Result<(), Failure> {
    if json { output::json(all) } else { output::text(&format!("{octets}\n")) }
}

/// Arguments that lead to nothing.
fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, error.to_string())
}
