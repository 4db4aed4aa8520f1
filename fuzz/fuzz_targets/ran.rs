//! The radio side's tasks: transport blocks of any format through encoder, channel and decoder on each processor; packets through NEA2. Formats
//! are checked or refused; what is sent over a good channel is found again, and no channel makes anything panic.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use ran::ldpc::Effort;
use ran::nea2::{self, Bearer, Count, Direction, Key, Packet};
use ran::simd::Processor;
use ran::simd::cipher::CipherUnit;
use ran::transport_block::{
    CodeRate, Decoder, Encoder, Format, Layout, Modulation, RedundancyVersion, SoftBuffer,
};

/// Larger ones would only take longer.
const MOST_BITS: usize = 40_000;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    if input.flag() { transport_block(&mut input) } else { cipher(&mut input) }
});

/// Any format, mostly one that exists.
fn format(input: &mut Input) -> Option<Format> {
    let bits = input.u32() as usize;
    let bits = if input.one_in(16) { bits } else { bits % MOST_BITS };
    let rate = if input.one_in(16) { f64::from_bits(input.u64()) } else { f64::from(input.u8()) / 255.0 };
    let order = if input.one_in(16) { input.u16().into() } else { input.pick(&[1, 2, 4, 6, 8, 10]) };
    let layers = if input.one_in(16) { input.u8().into() } else { 1 + input.below(4) };
    let coded_bits = input.u32() as usize;
    let coded_bits = if input.one_in(16) { coded_bits } else { coded_bits % (4 * MOST_BITS) / 120 * 120 };
    let limited_buffer = input.flag().then(|| input.u32() as usize);
    let (rate, modulation) = (CodeRate::new(rate).ok()?, Modulation::of_order(order).ok()?);
    Some(Format { bits, rate, modulation, layers, coded_bits, limited_buffer })
}

fn transport_block(input: &mut Input) {
    let Some(format) = format(input) else { return };
    let Ok(layout) = Layout::new(&format) else { return };
    if layout.bits() > MOST_BITS || layout.coded_bits() > 4 * MOST_BITS {
        return;
    }
    assert_eq!(layout.sent(layout.code_blocks() - 1).end, layout.coded_bits());
    let mut data: Vec<u8> = std::iter::repeat_with(|| input.u8()).take(layout.octets()).collect();
    if let (Some(last), used @ 1..) = (data.last_mut(), layout.bits() % 8) {
        *last &= !(0xff >> used);
    }
    let Ok(version) = RedundancyVersion::new(input.below(5)) else { return };
    let coded: Vec<Vec<u8>> = Processor::here()
        .map(|processor| {
            let mut coded = vec![0xff; layout.coded_octets()];
            Encoder::on(processor).encode(&layout, version, &data, &mut coded).expect("buffers fit");
            coded
        })
        .collect();
    assert!(coded.iter().all(|one| *one == coded[0]));

    // The channel turns some LLRs into others.
    let mut llrs: Vec<i8> = (0..layout.coded_bits())
        .map(|at| if coded[0][at / 8] << (at % 8) & 0x80 == 0 { 40 } else { -40 })
        .collect();
    let clean = input.is_empty();
    while !input.is_empty() {
        let (at, llr) = (input.u32() as usize % llrs.len(), input.u8().cast_signed());
        llrs[at] = llr;
    }
    let effort = Effort { iterations: 4, early_stop: true };
    let outcomes: Vec<_> = Processor::here()
        .map(|processor| {
            let (mut decoder, mut soft) = (Decoder::on(processor), SoftBuffer::new(&layout));
            let mut found = vec![0xff; layout.octets()];
            let mut again = || {
                decoder.decode(&layout, version, &llrs, effort, &mut soft, &mut found).expect("buffers fit")
            };
            let outcomes = (again(), again());
            (outcomes, found)
        })
        .collect();
    assert!(outcomes.iter().all(|one| *one == outcomes[0]));
    let ((first, second), found) = &outcomes[0];
    assert!(first.accepted_blocks <= second.accepted_blocks || !first.accepted);
    // Nothing is punctured but what never is sent: it can only come back.
    if clean
        && version.number() == 0
        && layout.sent(0).len() >= layout.buffer_bits()
        && format.limited_buffer.is_none()
    {
        assert!(second.accepted && *found == data);
    }
}

/// Packets of any keys and lengths: each unit does the same, twice is nothing.
fn cipher(input: &mut Input) {
    let mut made = Vec::new();
    while !input.is_empty() && made.len() < 20 {
        let mut key = [0; 16];
        key.fill_with(|| input.u8());
        let (count, bearer, down) = (Count(input.u32()), input.u8(), input.flag());
        let Ok(bearer) = Bearer::new(bearer) else { continue };
        let length = usize::from(input.u16()) % 2000;
        let direction = if down { Direction::Downlink } else { Direction::Uplink };
        made.push((Key::new(key), count, bearer, direction, input.bytes(length).to_vec()));
    }
    let once: Vec<Vec<Vec<u8>>> = CipherUnit::here()
        .map(|unit| {
            let mut data: Vec<Vec<u8>> = made.iter().map(|one| one.4.clone()).collect();
            for _ in 0..3 {
                let mut packets: Vec<Packet> = made
                    .iter()
                    .zip(&mut data)
                    .map(|((key, count, bearer, direction, _), data)| Packet {
                        key,
                        count: *count,
                        bearer: *bearer,
                        direction: *direction,
                        data,
                    })
                    .collect();
                nea2::apply_all_by(unit, &mut packets);
            }
            data
        })
        .collect();
    assert!(once.iter().all(|one| *one == once[0]));
    for ((key, count, bearer, direction, plain), ciphered) in made.iter().zip(&once[0]) {
        let mut data = ciphered.clone();
        let packet = Packet { key, count: *count, bearer: *bearer, direction: *direction, data: &mut data };
        let bits = plain.len() * 8;
        assert!(nea2::apply_bits(packet, bits).is_ok());
        assert_eq!(data, *plain);
    }
}
