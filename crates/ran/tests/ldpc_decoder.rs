//! Decoding: what was sent is found again, and each processor does the same as plain code does.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use ran::ldpc::{BaseGraph, Code, Decoded, Decoder, Effort, Encoder, Error};
use ran::simd::Processor;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

const EFFORT: Effort = Effort { iterations: 6, early_stop: true };

/// A random block, fillers at its end, and its codeword.
fn block(code: Code, fillers: usize, random: &mut SmallRng) -> (Vec<u8>, Vec<u8>) {
    let mut info = vec![0; code.info_bits().div_ceil(8)];
    random.fill_bytes(&mut info);
    for at in code.info_bits() - fillers..info.len() * 8 {
        info[at / 8] &= !(0x80 >> (at % 8));
    }
    let mut coded = vec![0; code.coded_bits().div_ceil(8)];
    Encoder::new().encode(code, &info, &mut coded).unwrap();
    (info, coded)
}

/// What a receiver makes of the first `received` coded bits: `strength`, more or less, and at random.
fn llrs(coded: &[u8], received: usize, strength: i32, noise: i32, random: &mut SmallRng) -> Vec<i8> {
    (0..received)
        .map(|at| {
            let sent = if coded[at / 8] >> (7 - at % 8) & 1 == 1 { -strength } else { strength };
            (sent + random.random_range(-noise..=noise)).clamp(-128, 127) as i8
        })
        .collect()
}

fn decode(
    decoder: &mut Decoder,
    code: Code,
    llrs: &[i8],
    fillers: usize,
    effort: Effort,
) -> (Decoded, Vec<u8>) {
    let mut info = vec![0xff; code.info_bits().div_ceil(8)];
    let decoded = decoder.decode(code, llrs, fillers, effort, &mut info, |_| true).unwrap();
    (decoded, info)
}

#[test]
fn blocks_of_all_codes_are_found_again_by_each_processor() {
    let mut random = SmallRng::seed_from_u64(1);
    for processor in Processor::here() {
        let mut decoder = Decoder::on(processor);
        for code in Code::all() {
            for fillers in [0, 1, 3 * code.z() + code.z() / 2] {
                let (info, coded) = block(code, fillers, &mut random);
                // Enough for a third of the bits to be wrong at most in none of these, and for the tiny blocks too.
                let mut llrs = llrs(&coded, code.coded_bits(), 12, 16, &mut random);
                // What is said of fillers makes no difference.
                let at = code.info_bits() - fillers - code.punctured_bits();
                llrs[at..at + fillers].fill(-90);
                let (decoded, found) =
                    decode(&mut decoder, code, &llrs, fillers, Effort { iterations: 30, early_stop: true });
                assert_eq!(found, info, "{processor} {code:?} {fillers}");
                assert!(decoded.checks_hold && decoded.accepted && decoded.iterations < 30);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Bit for bit: also where nothing is found, and where sums saturate.
    #[test]
    fn each_processor_decodes_as_plain_code_does(
        seed in any::<u64>(),
        received in 0.25..1.0f64,
        fillers in 0.0..0.9f64,
        strength in prop::sample::select(vec![0, 2, 6, 40, 120]),
        noise in prop::sample::select(vec![1, 4, 12, 90, 127]),
        early_stop in any::<bool>(),
    ) {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut plain = Decoder::on(Processor::Any);
        let mut vectors: Vec<_> =
            Processor::here().filter(|&one| one != Processor::Any).map(|one| (one, Decoder::on(one))).collect();
        for code in Code::all() {
            let fillers = (fillers * (code.info_bits() - code.punctured_bits()) as f64) as usize;
            let received = (received * code.coded_bits() as f64) as usize;
            let (_, coded) = block(code, fillers, &mut random);
            let llrs = llrs(&coded, received, strength, noise, &mut random);
            let effort = Effort { early_stop, ..EFFORT };
            let expected = decode(&mut plain, code, &llrs, fillers, effort);
            for (processor, decoder) in &mut vectors {
                let found = decode(decoder, code, &llrs, fillers, effort);
                prop_assert_eq!(&found, &expected, "{} {:?}", processor, code);
            }
        }
    }
}

#[test]
fn what_the_caller_refuses_is_decoded_on() {
    let code = Code::new(BaseGraph::Two, 36).unwrap();
    let mut random = SmallRng::seed_from_u64(2);
    let (sent, coded) = block(code, 0, &mut random);
    let llrs = llrs(&coded, code.coded_bits(), 20, 1, &mut random);
    for processor in Processor::here() {
        let mut decoder = Decoder::on(processor);
        let mut asked = 0;
        let mut info = vec![0; sent.len()];
        let decoded = decoder.decode(code, &llrs, 0, EFFORT, &mut info, |_| {
            asked += 1;
            false
        });
        assert_eq!(decoded, Ok(Decoded { iterations: 6, checks_hold: true, accepted: false }));
        assert!(asked > 2, "{asked}");
        let accept = |info: &[u8]| info == sent;
        let decoded = decoder.decode(code, &llrs, 0, EFFORT, &mut info, accept).unwrap();
        assert!(decoded.accepted && decoded.iterations < 6);
        // Not asked to stop early, it goes on.
        let effort = Effort { early_stop: false, ..EFFORT };
        let decoded = decoder.decode(code, &llrs, 0, effort, &mut info, accept);
        assert_eq!(decoded, Ok(Decoded { iterations: 6, checks_hold: true, accepted: true }));
    }
}

#[test]
fn what_does_not_fit_the_code_is_refused() {
    let code = Code::new(BaseGraph::One, 5).unwrap();
    let octets = code.info_bits().div_ceil(8);
    let mut decoder = Decoder::new();
    let mut decode = |llrs: usize, fillers, octets: usize| {
        decoder
            .decode(code, &vec![1; llrs], fillers, EFFORT, &mut vec![0; octets], |_| true)
            .map(|decoded| decoded.checks_hold)
    };
    assert_eq!(decode(331, 0, octets), Err(Error::TooManyReceived { given: 331, most: 330 }));
    assert_eq!(decode(330, 101, octets), Err(Error::TooManyFillers { given: 101, most: 100 }));
    assert_eq!(decode(330, 0, octets - 1), Err(Error::InfoLength { given: octets - 1, needed: octets }));
    assert_eq!(decode(330, 100, octets), Ok(true));
    assert_eq!(decode(0, 0, octets), Ok(true));
}
