//! What users write: octets in hexadecimal, numbers, rates, log-likelihood ratios.

use super::wrong;
use crate::exit::Failure;
use ran::transport_block::{CodeRate, MOST_CODED_BITS};
use std::io::Read;

/// Characters that are read at most: an LLR of two digits for each coded bit, and room for line ends.
const MOST: u64 = 3 * MOST_CODED_BITS as u64;

/// The LLR of a hard bit, in quarters of natural units: as sure as a decoder can make use of.
const SURE: i8 = 20;

/// The octets that an argument names: hexadecimal digits, or `-` for those of standard input.
pub fn octets(argument: &str, what: &str) -> Result<Vec<u8>, Failure> {
    if argument != "-" {
        return hex(argument, what).map_err(wrong);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MOST + 1).read_to_string(&mut text);
    read.map_err(|error| wrong(format!("can't read {what} from standard input: {error}")))?;
    if text.len() as u64 > MOST {
        return Err(wrong(format!("{what}: more than {MOST} characters on standard input")));
    }
    hex(&text, &format!("{what} on standard input")).map_err(wrong)
}

/// Octets of two hexadecimal digits each; white space between them, and `0x` before them, may be.
pub fn hex(text: &str, what: &str) -> Result<Vec<u8>, String> {
    let text_of_digits = text.trim_start();
    let skipped = text.len() - text_of_digits.len();
    let prefix = if text_of_digits.starts_with("0x") { 2 } else { 0 };
    let (mut octets, mut first) = (Vec::new(), None);
    for (at, character) in text_of_digits.char_indices().skip(prefix).filter(|(_, it)| !it.is_whitespace()) {
        let Some(digit) = character.to_digit(16) else {
            return Err(format!(
                "{what}: `{character}` at character {} is not a hexadecimal digit",
                text[..skipped + at].chars().count() + 1
            ));
        };
        match first.take() {
            Some(high) => octets.push((high << 4 | digit) as u8),
            None => first = Some(digit),
        }
    }
    if first.is_some() {
        return Err(format!("{what}: an octet has two hexadecimal digits, and the last one has only one"));
    }
    Ok(octets)
}

/// Octets as they are printed.
pub fn to_hex(octets: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    octets.iter().flat_map(|octet| [digit(octet >> 4), digit(octet & 0xf)]).collect()
}

/// A number, decimal or after `0x` hexadecimal: for `clap`.
pub fn number(text: &str) -> Result<u32, String> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    u32::from_str_radix(digits, radix)
        .map_err(|error| format!("{error}; a hexadecimal number begins with 0x, as in 0x398a59b4"))
}

/// A code rate, as a fraction or a decimal number: for `clap`.
pub fn rate(text: &str) -> Result<CodeRate, String> {
    let number = |text: &str| {
        text.parse::<f64>()
            .map_err(|_| format!("`{text}` is not a number; rates are such as 0.5, 1/3 or 948/1024"))
    };
    let rate = match text.split_once('/') {
        Some((part, of)) => number(part)? / number(of)?,
        None => number(text)?,
    };
    CodeRate::new(rate).map_err(|error| error.to_string())
}

/// How what was received is written.
#[derive(clap::Args)]
pub struct Received {
    /// What was received is hard bits, packed, the first one uppermost; else it is an octet for each bit: the log-likelihood ratio ln (P(0) / P(1)) in
    /// quarters, as a signed number (0c: rather a zero, f4: as likely a one, 00: unknown).
    #[arg(long)]
    pub hard: bool,
    /// The most iterations for a code block.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub iterations: u16,
}

impl Received {
    /// Up to `most` log-likelihood ratios.
    pub fn llrs(&self, argument: &str, what: &str, most: usize) -> Result<Vec<i8>, Failure> {
        let octets = octets(argument, what)?;
        if !self.hard {
            return Ok(octets.into_iter().map(u8::cast_signed).collect());
        }
        if octets.len() > most.div_ceil(8) {
            let needed = most.div_ceil(8);
            return Err(wrong(format!(
                "{what}: {} octets of hard bits, where {most} bits need {needed}",
                octets.len()
            )));
        }
        let bits = (octets.len() * 8).min(most);
        Ok((0..bits).map(|at| if octets[at / 8] << (at % 8) & 0x80 == 0 { SURE } else { -SURE }).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn octets_are_read_with_white_space_and_what_is_wrong_is_told_with_its_place() {
        assert_eq!(hex(" 0x00 fF\n7\t3 ", "data"), Ok(vec![0, 0xff, 0x73]));
        assert_eq!(hex("", "data"), Ok(vec![]));
        let error = |text| hex(text, "data").unwrap_err();
        assert_eq!(error(" 0xé0"), "data: `é` at character 4 is not a hexadecimal digit");
        assert_eq!(error("0011g2"), "data: `g` at character 5 is not a hexadecimal digit");
        assert_eq!(error("001"), "data: an octet has two hexadecimal digits, and the last one has only one");
        assert_eq!(to_hex(&[0, 255, 16]), "00ff10");
    }

    #[test]
    fn numbers_are_decimal_or_say_that_they_are_not_and_rates_are_fractions() {
        assert_eq!((number("21"), number("0x15")), (Ok(21), Ok(21)));
        assert!(number("398a59b4").unwrap_err().contains("0x398a59b4"));
        assert_eq!(rate("1/2"), rate("0.5"));
        assert_eq!(rate("948/1024").map(CodeRate::get), Ok(948.0 / 1024.0));
        for wrong in ["", "1/", "half", "1/0", "0/0", "2", "-0.5", "NaN"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hard_bits_become_log_likelihood_ratios() {
        let hard = Received { hard: true, iterations: 1 };
        assert_eq!(hard.llrs("a0", "bits", 3).unwrap_or_default(), [-SURE, SURE, -SURE]);
        assert_eq!(hard.llrs("a0", "bits", 16).unwrap_or_default().len(), 8);
        assert!(hard.llrs("a000", "bits", 8).is_err());
        let soft = Received { hard: false, iterations: 1 };
        assert_eq!(soft.llrs("0cf4", "bits", 8).unwrap_or_default(), [12, -12]);
    }
}
