//! How many blocks noise destroys: the decoder beside belief propagation in floating point. `millrace bench ldpc-bler` draws the whole curves.
#![allow(clippy::unwrap_used)]

use ran::ldpc::{BaseGraph, BeliefPropagation, Code, Decoder, Effort, Encoder};
use ran::simd::Processor;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// Blocks of a code that are sent by BPSK through noise, and how many of them each decoder loses.
fn lost(code: Code, received: usize, blocks: usize, eb_n0: f64, exact: bool) -> usize {
    let mut random = SmallRng::seed_from_u64(11);
    let (mut reference, mut decoder) = (BeliefPropagation::new(code), Decoder::on(Processor::best()));
    let rate = code.info_bits() as f64 / received as f64;
    let variance = 0.5 / (rate * 10_f64.powf(eb_n0 / 10.0));
    let mut lost = 0;
    for _ in 0..blocks {
        let mut sent = vec![0; code.info_bits().div_ceil(8)];
        random.fill_bytes(&mut sent);
        if let (Some(last), used @ 1..) = (sent.last_mut(), code.info_bits() % 8) {
            *last &= !(0xff >> used);
        }
        let mut coded = vec![0; code.coded_bits().div_ceil(8)];
        Encoder::new().encode(code, &sent, &mut coded).unwrap();
        let llrs: Vec<f64> = (0..received)
            .map(|at| {
                let sign = if coded[at / 8] << (at % 8) & 0x80 == 0 { 1.0 } else { -1.0 };
                let noise: f64 = StandardNormal.sample(&mut random);
                2.0 * (sign + variance.sqrt() * noise) / variance
            })
            .collect();
        let mut found = vec![0; sent.len()];
        if exact {
            let effort = Effort { iterations: 50, early_stop: true };
            reference.decode(&llrs, 0, effort, &mut found).unwrap();
        } else {
            let quarters: Vec<i8> = llrs.iter().map(|llr| (llr * 4.0).round() as i8).collect();
            let effort = Effort { iterations: 20, early_stop: true };
            decoder.decode(code, &quarters, 0, effort, &mut found, |_| true).unwrap();
        }
        lost += usize::from(found != sent);
    }
    lost
}

#[test]
fn as_few_blocks_are_lost_as_by_belief_propagation_with_three_tenths_of_a_decibel_less() {
    // Where belief propagation loses about one block in ten.
    for (graph, z, received, eb_n0) in
        [(BaseGraph::One, 18, 44, 1.25), (BaseGraph::One, 22, 24, 4.7), (BaseGraph::Two, 20, 30, 1.0)]
    {
        let code = Code::new(graph, z).unwrap();
        let by_reference = lost(code, received * z, 300, eb_n0, true);
        let by_decoder = lost(code, received * z, 300, eb_n0 + 0.3, false);
        // Or the comparison would say nothing.
        assert!((10..=60).contains(&by_reference), "{graph:?} {by_reference}");
        assert!(by_decoder <= by_reference, "{graph:?}: {by_decoder} lost, by the reference {by_reference}");
    }
}
