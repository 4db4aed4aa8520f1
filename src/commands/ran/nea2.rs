//! `millrace ran nea2`.

use super::{input, print, wrong};
use crate::exit::Failure;
use ran::nea2::{Bearer, Count, Direction, Key, Packet, apply_bits};
use serde::Serialize;

/// Arguments of `ran nea2`.
#[derive(clap::Args)]
pub struct Args {
    /// The key: 16 octets, hexadecimal.
    #[arg(long, value_name = "HEX")]
    key: String,
    /// COUNT, of 32 bits: decimal, or hexadecimal after `0x`.
    #[arg(long, value_name = "N", value_parser = input::number)]
    count: u32,
    /// BEARER, of 5 bits: decimal, or hexadecimal after `0x`.
    #[arg(long, value_name = "N", value_parser = input::number)]
    bearer: u32,
    /// DIRECTION.
    #[arg(long, value_enum)]
    direction: Way,
    /// Bits of the message, instead of eight for each octet: what is left of the last octet becomes zero.
    #[arg(long, value_name = "N")]
    bits: Option<usize>,
    /// Write JSON.
    #[arg(long)]
    json: bool,
    /// The message, hexadecimal (`-`: standard input).
    #[arg(value_name = "HEX")]
    message: String,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Way {
    /// To the network.
    #[value(alias = "0")]
    Uplink,
    /// To the UE.
    #[value(alias = "1")]
    Downlink,
}

#[derive(Serialize)]
struct Ciphered {
    bits: usize,
    message: String,
}

/// Runs the command: the same both ways.
pub fn run(args: &Args) -> Result<(), Failure> {
    let key = input::hex(&args.key, "--key").map_err(wrong)?;
    let octets = key.len();
    let key: [u8; 16] =
        key.try_into().map_err(|_| wrong(format!("--key: {octets} octets, where a key has 16")))?;
    // More than 255 is no bearer either.
    let number = u8::try_from(args.bearer).unwrap_or(u8::MAX);
    let bearer = Bearer::new(number).map_err(|error| wrong(format!("--bearer: {error}")))?;
    let direction = match args.direction {
        Way::Uplink => Direction::Uplink,
        Way::Downlink => Direction::Downlink,
    };
    let mut data = input::octets(&args.message, "the message")?;
    let bits = args.bits.unwrap_or(data.len() * 8);
    let packet = Packet { key: &Key::new(key), count: Count(args.count), bearer, direction, data: &mut data };
    apply_bits(packet, bits).map_err(|error| wrong(format!("--bits: {error}")))?;
    data.truncate(bits.div_ceil(8));
    let message = input::to_hex(&data);
    print(args.json, &message, &Ciphered { bits, message: message.clone() })
}
