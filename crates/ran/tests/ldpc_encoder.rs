//! Encoding against another implementation's codewords, and against the parity checks themselves.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use ran::ldpc::{BaseGraph, Code, Encoder, Error};
use ran::simd::Processor;
use std::path::Path;

/// Codewords of an independent implementation; its first lines give the format.
const CODEWORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/ldpc/codewords.txt");

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The value of each bit of a block, punctured ones among them: what the encoder is judged by shares nothing with it.
fn bits(code: Code, info: &[u8], coded: &[u8]) -> Vec<bool> {
    let bit = |octets: &[u8], at: usize| octets[at / 8] >> (7 - at % 8) & 1 == 1;
    (0..code.punctured_bits())
        .map(|at| bit(info, at))
        .chain((0..code.coded_bits()).map(|at| bit(coded, at)))
        .collect()
}

fn failed_checks(code: Code, bits: &[bool]) -> usize {
    let z = code.z();
    let mut checks = vec![false; code.graph().rows() * z];
    for edge in code.edges() {
        for check in 0..z {
            checks[edge.row * z + check] ^= bits[edge.column * z + (check + edge.shift) % z];
        }
    }
    checks.into_iter().filter(|&failed| failed).count()
}

#[test]
fn codewords_are_those_of_another_implementation() {
    let Ok(text) = std::fs::read_to_string(Path::new(CODEWORDS)) else {
        return testing::skipped(format!("{CODEWORDS} is not there"));
    };
    let mut encoders: Vec<_> = Processor::here().map(Encoder::on).collect();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut judged = 0;
    for line in lines {
        let fields: Vec<_> = line.split_whitespace().collect();
        let graph = if fields[0] == "1" { BaseGraph::One } else { BaseGraph::Two };
        let code = Code::new(graph, fields[1].parse().unwrap()).unwrap();
        let expected = octets(fields[3]);
        for encoder in &mut encoders {
            let mut coded = vec![0xff; expected.len()];
            encoder.encode(code, &octets(fields[2]), &mut coded).unwrap();
            assert_eq!(coded, expected, "{code:?}");
        }
        judged += 1;
    }
    assert_eq!(judged, 90);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn blocks_of_all_codes_fulfil_all_checks_and_hold_their_information(seed in prop::collection::vec(any::<u8>(), 1056)) {
        let mut encoders: Vec<_> = Processor::here().map(Encoder::on).collect();
        for code in Code::all() {
            let mut info = seed[..code.info_bits().div_ceil(8)].to_vec();
            let spare = info.len() * 8 - code.info_bits();
            let mut coded = vec![0xff; code.coded_bits().div_ceil(8)];
            // What stands in the last octet behind the information bits makes no difference.
            Encoder::new().encode(code, &info, &mut coded).unwrap();
            if let Some(last) = info.last_mut() {
                *last = *last >> spare << spare;
            }
            for encoder in &mut encoders {
                let mut again = vec![0; coded.len()];
                encoder.encode(code, &info, &mut again).unwrap();
                prop_assert_eq!(&coded, &again);
            }

            let bits = bits(code, &info, &coded);
            prop_assert_eq!(failed_checks(code, &bits), 0, "{:?}", code);
            for (at, &bit) in bits[..code.info_bits()].iter().enumerate() {
                prop_assert_eq!(info[at / 8] >> (7 - at % 8) & 1 == 1, bit);
            }
            // What is left of the last octet is zero.
            let left = coded.len() * 8 - code.coded_bits();
            prop_assert!(coded[coded.len() - 1].trailing_zeros() as usize >= left);
        }
    }
}

#[test]
fn buffers_of_another_length_than_the_code_needs_are_refused() {
    let code = Code::new(BaseGraph::Two, 7).unwrap();
    let mut encoder = Encoder::new();
    let (info, coded) = (code.info_bits().div_ceil(8), code.coded_bits().div_ceil(8));
    for given in [0, info - 1, info + 1] {
        assert_eq!(
            encoder.encode(code, &vec![0; given], &mut vec![0; coded]),
            Err(Error::InfoLength { given, needed: info })
        );
    }
    for given in [0, coded - 1, coded + 1] {
        assert_eq!(
            encoder.encode(code, &vec![0; info], &mut vec![0; given]),
            Err(Error::CodedLength { given, needed: coded })
        );
    }
    assert_eq!(encoder.encode(code, &vec![0; info], &mut vec![0; coded]), Ok(()));
}
