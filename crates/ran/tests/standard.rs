//! The chain of TS 38.212 §5.1 to §5.5 as the standard words it, bit by bit: what the crate is judged by. It takes only the LDPC encoder from it, which
//! is judged elsewhere.
#![allow(clippy::unwrap_used)]

use ran::crc::Crc;
use ran::ldpc::{BaseGraph, Encoder};
use ran::transport_block::{Format, Layout};

/// A bit, or `None` for a filler: <NULL>.
pub type Bit = Option<bool>;

pub fn unpack(octets: &[u8], count: usize) -> Vec<bool> {
    (0..count).map(|at| octets[at / 8] >> (7 - at % 8) & 1 == 1).collect()
}

pub fn pack(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8)
        .map(|bits| bits.iter().enumerate().fold(0, |octet, (at, &bit)| octet | u8::from(bit) << (7 - at)))
        .collect()
}

/// §5.1: long division by the generator polynomial, which is given by its powers.
pub fn crc(crc: Crc, message: &[bool]) -> Vec<bool> {
    let powers: &[usize] = match crc {
        Crc::Crc24A => &[24, 23, 18, 17, 14, 11, 10, 7, 6, 5, 4, 3, 1, 0],
        Crc::Crc24B => &[24, 23, 6, 5, 1, 0],
        Crc::Crc16 => &[16, 12, 5, 0],
    };
    let degree = powers[0];
    let mut bits = message.to_vec();
    bits.resize(message.len() + degree, false);
    for at in 0..message.len() {
        if bits[at] {
            powers.iter().for_each(|power| bits[at + degree - power] ^= true);
        }
    }
    bits.split_off(message.len())
}

/// §5.2.2: segmentation, with K and K' from `layout`, whose numbers are judged by vectors.
pub fn segments(layout: &Layout, block: &[bool]) -> Vec<Vec<Bit>> {
    let mut with_crc = block.to_vec();
    with_crc.extend(crc(layout.crc(), block));
    let blocks = layout.code_blocks();
    let each = with_crc.len() / blocks;
    with_crc
        .chunks(each)
        .map(|part| {
            let mut part = part.to_vec();
            if blocks > 1 {
                part.extend(crc(Crc::Crc24B, &part));
            }
            let mut part: Vec<Bit> = part.into_iter().map(Some).collect();
            part.resize(layout.code().info_bits(), None);
            part
        })
        .collect()
}

/// §5.3.2: coded bits, fillers among them.
fn code(layout: &Layout, segment: &[Bit]) -> Vec<Bit> {
    let code = layout.code();
    let info: Vec<bool> = segment.iter().map(|bit| bit.unwrap_or(false)).collect();
    let mut coded = vec![0; code.coded_bits().div_ceil(8)];
    Encoder::new().encode(code, &pack(&info), &mut coded).unwrap();
    let mut coded: Vec<Bit> = unpack(&coded, code.coded_bits()).into_iter().map(Some).collect();
    for (bit, of) in coded.iter_mut().zip(&segment[code.punctured_bits()..]) {
        if of.is_none() {
            *bit = None;
        }
    }
    coded
}

/// §5.4.2.1: N_cb and k_0.
fn buffer(format: &Format, layout: &Layout, version: usize) -> (usize, usize) {
    let (n, z) = (layout.code().coded_bits(), layout.code().z());
    let limit = format.limited_buffer.map(|bits| bits * 3 / (2 * layout.code_blocks()));
    let n_cb = limit.map_or(n, |limit| n.min(limit));
    let (numerators, denominator) = match layout.code().graph() {
        BaseGraph::One => ([0, 17, 33, 56], 66),
        BaseGraph::Two => ([0, 13, 25, 43], 50),
    };
    (n_cb, numerators[version] * n_cb / (denominator * z) * z)
}

/// §5.4.2.1: bit selection of a code block, places of the sent bits in the coded ones.
pub fn selected(
    format: &Format,
    layout: &Layout,
    version: usize,
    is_filler: &[bool],
    e: usize,
) -> Vec<usize> {
    let (n_cb, k0) = buffer(format, layout, version);
    let (mut places, mut j) = (Vec::new(), 0);
    while places.len() < e {
        let place = (k0 + j) % n_cb;
        if !is_filler[place] {
            places.push(place);
        }
        j += 1;
    }
    places
}

/// §5.4.2.1: E_r.
pub fn share(format: &Format, blocks: usize, block: usize) -> usize {
    let symbol = format.layers * format.modulation.order();
    let symbols = format.coded_bits / symbol;
    if block < blocks - symbols % blocks {
        symbol * (symbols / blocks)
    } else {
        symbol * symbols.div_ceil(blocks)
    }
}

/// §5.4.2.2: where each interleaved bit comes from.
pub fn interleaved(order: usize, e: usize) -> Vec<usize> {
    let mut places = vec![0; e];
    for j in 0..e / order {
        for i in 0..order {
            places[i + j * order] = i * (e / order) + j;
        }
    }
    places
}

/// All of it.
pub fn encode(format: &Format, layout: &Layout, version: usize, data: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    for (number, segment) in segments(layout, &unpack(data, format.bits)).iter().enumerate() {
        let coded = code(layout, segment);
        let is_filler: Vec<bool> = coded.iter().map(Option::is_none).collect();
        let e = share(format, layout.code_blocks(), number);
        let places = selected(format, layout, version, &is_filler, e);
        sent.extend(
            interleaved(format.modulation.order(), e).into_iter().map(|at| coded[places[at]].unwrap()),
        );
    }
    pack(&sent)
}
