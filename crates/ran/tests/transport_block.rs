//! Transport blocks against an independent implementation's, and against the standard's own words, bit by bit.
#![allow(clippy::unwrap_used)]

use crate::shared_data::shared_data;
use crate::standard;
use proptest::prelude::*;
use ran::ldpc::Effort;
use ran::simd::Processor;
use ran::transport_block::{
    CodeRate, Decoder, Encoder, Error, Format, Layout, Modulation, Outcome, RedundancyVersion, SoftBuffer,
};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

const EFFORT: Effort = Effort { iterations: 20, early_stop: true };

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// What a receiver hears of coded bits: their signs with `strength`, plus noise.
fn heard(coded: &[u8], count: usize, strength: i32, noise: i32, random: &mut SmallRng) -> Vec<i8> {
    let signs = standard::unpack(coded, count).into_iter().map(|bit| if bit { -strength } else { strength });
    signs.map(|llr| (llr + random.random_range(-noise..=noise)).clamp(-128, 127) as i8).collect()
}

fn data(layout: &Layout, random: &mut SmallRng) -> Vec<u8> {
    let mut data = vec![0; layout.octets()];
    random.fill_bytes(&mut data);
    if let (Some(last), used @ 1..) = (data.last_mut(), layout.bits() % 8) {
        *last &= !(0xff >> used);
    }
    data
}

/// An encoded block, with each processor's equal to the others'.
fn encode(layout: &Layout, version: usize, data: &[u8]) -> Vec<u8> {
    let version = RedundancyVersion::new(version).unwrap();
    let mut all = Processor::here().map(|processor| {
        let mut coded = vec![0xff; layout.coded_octets()];
        Encoder::on(processor).encode(layout, version, data, &mut coded).unwrap();
        coded
    });
    let plain = all.next().unwrap();
    assert!(all.all(|coded| coded == plain));
    plain
}

#[test]
fn coded_bits_are_those_of_another_implementation_and_lead_back() {
    let Some(text) = shared_data("ldpc/transport-blocks.txt") else { return };
    let mut random = SmallRng::seed_from_u64(1);
    let (mut format, mut expected, mut sent, mut judged) = (None, (0, 0, 0), Vec::new(), 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("case") {
            let value = |name: &str| {
                line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap()
            };
            let number = |name| value(name).parse::<usize>().unwrap();
            format = Some(Format {
                bits: number("A"),
                rate: CodeRate::new(value("R").parse().unwrap()).unwrap(),
                modulation: Modulation::of_order(number("Qm")).unwrap(),
                layers: 1,
                coded_bits: number("G"),
                limited_buffer: None,
            });
            expected = (number("BG"), number("C"), number("Z"));
        } else if let Some(hex) = line.strip_prefix("tb ") {
            sent = octets(hex);
        } else if let Some((version, hex)) = line.strip_prefix("rv").and_then(|line| line.split_once(' ')) {
            let layout = Layout::new(&format.unwrap()).unwrap();
            let code = layout.code();
            assert_eq!((code.graph() as usize + 1, layout.code_blocks(), code.z()), expected);
            let version = version.parse().unwrap();
            let coded = encode(&layout, version, &sent);
            assert_eq!(coded, octets(hex), "rv{version} of {layout:?}");
            assert_eq!(coded, standard::encode(&format.unwrap(), &layout, version, &sent));

            let llrs = heard(&coded, layout.coded_bits(), 12, 4, &mut random);
            let mut found = vec![0xff; sent.len()];
            let (mut soft, version) = (SoftBuffer::new(&layout), RedundancyVersion::new(version).unwrap());
            let outcome =
                Decoder::new().decode(&layout, version, &llrs, EFFORT, &mut soft, &mut found).unwrap();
            // These alone have too little of the information bits.
            if version.number() == 0 || version.number() == 3 {
                assert!(outcome.accepted, "{outcome:?} {layout:?} {version}");
                assert_eq!(found, sent);
            }
            judged += 1;
        }
    }
    assert_eq!(judged, 19);
}

/// Formats of all kinds: any number of bits that splits, all modulations and layers, repetition, and buffers that cut the fillers.
fn formats() -> impl Strategy<Value = Format> {
    let bits = prop_oneof![
        4 => 1_usize..700,
        3 => 700_usize..9_000,
        1 => (2_usize..5, 200_usize..1_000).prop_map(|(blocks, octets)| blocks * octets * 8 * 4 - 24),
    ];
    let limit = prop_oneof![2 => Just(None), 1 => (1_usize..30_000).prop_map(Some)];
    (bits, 0.01_f64..=1.0, 0_usize..6, 1_usize..=4, 0.05_f64..6.0, limit).prop_map(
        |(bits, rate, modulation, layers, per_bit, limited_buffer)| {
            let modulation = Modulation::ALL[modulation];
            let symbol = layers * modulation.order();
            let coded_bits = ((bits as f64 * per_bit) as usize / symbol).max(1) * symbol;
            let rate = CodeRate::new(rate).unwrap();
            Format { bits, rate, modulation, layers, coded_bits, limited_buffer }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn coded_bits_are_those_of_the_standard_s_words(format in formats(), version in 0_usize..4, seed in any::<u64>()) {
        let Ok(layout) = Layout::new(&format) else { return Ok(()) };
        let data = data(&layout, &mut SmallRng::seed_from_u64(seed));
        prop_assert_eq!(encode(&layout, version, &data), standard::encode(&format, &layout, version, &data));
    }
}

fn format(bits: usize, coded_bits: usize) -> Format {
    let (rate, modulation) = (CodeRate::new(0.5).unwrap(), Modulation::Qam64);
    Format { bits, rate, modulation, layers: 1, coded_bits, limited_buffer: None }
}

/// Decodes transmissions of one block, one after the other; what came of each.
fn transmissions(
    processor: Processor,
    formats: &[(Format, usize)],
    strength: i32,
    noise: i32,
) -> Vec<Outcome> {
    let mut random = SmallRng::seed_from_u64(7);
    let mut decoder = Decoder::on(processor);
    let first = Layout::new(&formats[0].0).unwrap();
    let (sent, mut soft) = (data(&first, &mut random), SoftBuffer::new(&first));
    let mut all = Vec::new();
    for (format, version) in formats {
        let layout = Layout::new(format).unwrap();
        let coded = encode(&layout, *version, &sent);
        let llrs = heard(&coded, layout.coded_bits(), strength, noise, &mut random);
        let mut found = vec![0xff; sent.len()];
        let version = RedundancyVersion::new(*version).unwrap();
        let outcome = decoder.decode(&layout, version, &llrs, EFFORT, &mut soft, &mut found).unwrap();
        assert_eq!(outcome.accepted, found == sent, "{outcome:?}");
        all.push(outcome);
    }
    all
}

#[test]
fn transmissions_that_fail_alone_succeed_together() {
    // At rate 0.94 with so much noise one is hopeless.
    let (format, again) =
        (format(16_896, 18_000), Format { modulation: Modulation::Qpsk, ..format(16_896, 17_998) });
    for processor in Processor::here() {
        let one = transmissions(processor, &[(format, 0)], 8, 16);
        assert!(!one[0].accepted && one[0].iterations == 3 * 20, "{one:?}");
        // Other redundancy versions, another modulation and another number of coded bits among them.
        let all = transmissions(processor, &[(format, 0), (again, 2), (format, 3), (format, 1)], 8, 16);
        assert!(all.last().unwrap().accepted, "{all:?}");
        // The same one again, which only adds up.
        let all = transmissions(processor, &[(format, 0); 9], 8, 16);
        assert!(all.last().unwrap().accepted, "{all:?}");
        // After acceptance nothing is decoded any more.
        let all = transmissions(processor, &[(format, 0), (format, 0)], 20, 1);
        assert_eq!(all[1], Outcome { accepted: true, accepted_blocks: 3, iterations: 0 });
    }
}

#[test]
fn a_buffer_that_was_cleared_knows_nothing_of_the_block_before() {
    let layout = Layout::new(&format(640, 900)).unwrap();
    let version = RedundancyVersion::new(0).unwrap();
    let mut random = SmallRng::seed_from_u64(3);
    let (mut decoder, mut soft) = (Decoder::new(), SoftBuffer::new(&layout));
    for _ in 0..3 {
        let sent = data(&layout, &mut random);
        let llrs = heard(&encode(&layout, 0, &sent), 900, 20, 2, &mut random);
        let mut found = vec![0; 80];
        soft.clear();
        let outcome = decoder.decode(&layout, version, &llrs, EFFORT, &mut soft, &mut found).unwrap();
        assert!(outcome.accepted && found == sent);
    }
}

#[test]
fn a_block_of_which_nothing_is_known_is_not_accepted() {
    let layout = Layout::new(&format(16_896, 37_548)).unwrap();
    let (outcome, _) = decode(&layout, &vec![0; 37_548], EFFORT, &mut SoftBuffer::new(&layout));
    assert_eq!((outcome.accepted, outcome.accepted_blocks), (false, 0));
}

/// The second redundancy version alone is all parity: what it leaves open becomes zeros, whose CRC holds.
#[test]
fn zeros_that_are_only_what_is_not_known_are_not_accepted() {
    let case =
        Format { modulation: Modulation::Qpsk, rate: CodeRate::new(0.6).unwrap(), ..format(2024, 3376) };
    for processor in Processor::here() {
        let outcome = &transmissions(processor, &[(case, 1)], 40, 0)[0];
        assert_eq!((outcome.accepted, outcome.iterations), (false, EFFORT.iterations));
    }
    // Zeros that were sent are.
    let layout = Layout::new(&format(640, 900)).unwrap();
    let llrs = heard(&encode(&layout, 0, &[0; 80]), 900, 20, 2, &mut SmallRng::seed_from_u64(3));
    let (outcome, found) = decode(&layout, &llrs, EFFORT, &mut SoftBuffer::new(&layout));
    assert_eq!((outcome.accepted, found), (true, vec![0; 80]));
}

/// What is heard, without noise, of code blocks that have these bits; a place among the coded bits that are sent has the sign that `but` says.
fn heard_of(
    format: &Format,
    layout: &Layout,
    segments: &[Vec<Option<bool>>],
    but: impl Fn(usize, usize) -> i8,
) -> Vec<i8> {
    let code = layout.code();
    let fillers = layout.code_block_bits() - code.punctured_bits()..code.info_bits() - code.punctured_bits();
    let is_filler: Vec<bool> = (0..code.coded_bits()).map(|at| fillers.contains(&at)).collect();
    let mut llrs = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let info: Vec<bool> = segment.iter().map(|bit| bit.unwrap_or_default()).collect();
        let mut coded = vec![0; code.coded_bits().div_ceil(8)];
        ran::ldpc::Encoder::new().encode(code, &standard::pack(&info), &mut coded).unwrap();
        let coded = standard::unpack(&coded, code.coded_bits());
        let e = standard::share(format, segments.len(), number);
        let places = standard::selected(format, layout, 0, &is_filler, e);
        llrs.extend(standard::interleaved(format.modulation.order(), e).iter().map(|&at| {
            let strength = but(at, e);
            if coded[places[at]] { -strength } else { strength }
        }));
    }
    llrs
}

/// The first transmission, with all checks and CRCs as the decoder finds them.
fn decode(layout: &Layout, llrs: &[i8], effort: Effort, soft: &mut SoftBuffer) -> (Outcome, Vec<u8>) {
    let mut found = vec![0; layout.octets()];
    let version = RedundancyVersion::new(0).unwrap();
    let outcome = Decoder::new().decode(layout, version, llrs, effort, soft, &mut found).unwrap();
    (outcome, found)
}

#[test]
fn a_wrong_crc_is_not_accepted_though_all_checks_hold() {
    // The codeword of another transport block's CRC: a block of one code block, whose parity bits of §5.1 are turned over before it is coded.
    let format = format(640, 1_320);
    let layout = Layout::new(&format).unwrap();
    let sent = data(&layout, &mut SmallRng::seed_from_u64(5));
    let mut segments = standard::segments(&layout, &standard::unpack(&sent, 640));
    segments[0][650] = segments[0][650].map(|bit| !bit);
    let llrs = heard_of(&format, &layout, &segments, |_, _| 20);
    let (outcome, found) = decode(&layout, &llrs, EFFORT, &mut SoftBuffer::new(&layout));
    assert_eq!(outcome, Outcome { accepted: false, accepted_blocks: 0, iterations: 20 });
    assert_eq!(found, sent);
}

/// The last coded bit of each code block is heard wrong, and so loudly that no check can say otherwise: a check fails for ever, of a parity bit that only
/// it has, while all bits that anybody wants are right.
#[test]
fn a_crc_that_holds_is_enough_though_a_check_does_not() {
    // With the transport block's CRC of 16 bits alone, and with code blocks' own.
    for (bits, coded_bits, blocks) in [(640, 1_320, 1), (16_896, 37_548, 3)] {
        let format = format(bits, coded_bits);
        let layout = Layout::new(&format).unwrap();
        assert_eq!(layout.code_blocks(), blocks);
        let sent = data(&layout, &mut SmallRng::seed_from_u64(6));
        let segments = standard::segments(&layout, &standard::unpack(&sent, bits));
        let llrs = heard_of(&format, &layout, &segments, |at, e| if at + 1 == e { -127 } else { 30 });
        for effort in [EFFORT, Effort { early_stop: false, ..EFFORT }] {
            let mut soft = SoftBuffer::new(&layout);
            let (outcome, found) = decode(&layout, &llrs, effort, &mut soft);
            // Not before the last iteration: a CRC that is asked after each takes more of what is wrong for right.
            let all = Outcome { accepted: true, accepted_blocks: blocks, iterations: blocks * 20 };
            assert_eq!((outcome, found == sent), (all, true));
            // And it stays accepted.
            let (outcome, found) = decode(&layout, &llrs, effort, &mut soft);
            assert_eq!((outcome, found == sent), (Outcome { iterations: 0, ..all }, true));
        }
    }
}

/// What CRCs of code blocks let through, the transport block's finds. Nobody knows which code block is wrong, so each is decoded again.
#[test]
fn a_code_block_that_was_taken_for_right_is_decoded_again() {
    let format = format(16_896, 37_548);
    let layout = Layout::new(&format).unwrap();
    let sent = data(&layout, &mut SmallRng::seed_from_u64(8));
    let right = standard::segments(&layout, &standard::unpack(&sent, 16_896));
    let mut wrong = right.clone();
    let (block, payload) = (&mut wrong[1], layout.code_block_bits() - 24);
    block[7] = block[7].map(|bit| !bit);
    let message: Vec<bool> = block[..payload].iter().flatten().copied().collect();
    let crc = standard::crc(layout.block_crc().unwrap(), &message).into_iter().map(Some);
    block.splice(payload..payload + 24, crc);
    let mut soft = SoftBuffer::new(&layout);
    let (outcome, found) = decode(&layout, &heard_of(&format, &layout, &wrong, |_, _| 20), EFFORT, &mut soft);
    assert_eq!((outcome.accepted, outcome.accepted_blocks, found == sent), (false, 3, false));
    // The same again, and louder.
    let (outcome, found) = decode(&layout, &heard_of(&format, &layout, &right, |_, _| 60), EFFORT, &mut soft);
    assert!(outcome.accepted && outcome.iterations >= 3 && found == sent, "{outcome:?}");
}

#[test]
fn buffers_of_another_length_and_of_another_block_are_refused() {
    let layout = Layout::new(&format(640, 900)).unwrap();
    let version = RedundancyVersion::new(1).unwrap();
    let encode = |data: usize, coded: usize| {
        Encoder::new().encode(&layout, version, &vec![0; data], &mut vec![0; coded])
    };
    assert_eq!(encode(79, 113), Err(Error::DataLength { given: 79, needed: 80 }));
    assert_eq!(encode(80, 112), Err(Error::CodedLength { given: 112, needed: 113 }));
    assert_eq!(encode(80, 113), Ok(()));
    let decode = |llrs: usize, data: usize, of: &Layout| {
        let mut soft = SoftBuffer::new(of);
        let outcome =
            Decoder::new().decode(&layout, version, &vec![9; llrs], EFFORT, &mut soft, &mut vec![0; data]);
        outcome.map(|outcome| outcome.accepted_blocks)
    };
    assert_eq!(decode(899, 80, &layout), Err(Error::Llrs { given: 899, needed: 900 }));
    assert_eq!(decode(900, 81, &layout), Err(Error::DataLength { given: 81, needed: 80 }));
    let other = Layout::new(&format(648, 900)).unwrap();
    assert_eq!(decode(900, 80, &other), Err(Error::SoftBuffer));
    assert!(decode(900, 80, &layout).is_ok());
    assert_eq!(RedundancyVersion::new(4), Err(Error::RedundancyVersion(4)));
    for order in [0, 3, 5, 7, 9, 12] {
        assert_eq!(Modulation::of_order(order), Err(Error::ModulationOrder(order)));
    }
    for rate in [0.0, -0.5, 1.01, f64::INFINITY] {
        assert_eq!(CodeRate::new(rate), Err(Error::CodeRate(rate)));
    }
    assert!(CodeRate::new(f64::NAN).is_err() && CodeRate::of_1024ths(948.0).is_ok());
}
